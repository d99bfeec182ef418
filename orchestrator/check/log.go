package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Version is that of the logs; others are refused.
const Version = 1

// MaxLine is the longest line of a log in bytes.
const MaxLine = 1 << 20

// kind is what a log is of.
type kind string

const (
	opLog    kind = "operations"
	truthLog kind = "truth"
)

// header is the first line of a log.
type header struct {
	Kind    kind `json:"kind"`
	Version int  `json:"version"`
}

// line is a line of a truth log: one of its fields is set.
type line struct {
	Change *Change `json:"change,omitempty"`
	Light  *Light  `json:"light,omitempty"`
}

// LineError is a line of a log that could not be read.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error returns one sentence.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns Err.
func (e *LineError) Unwrap() error { return e.Err }

// ErrTorn: the last line of a log has no end, as when the program that wrote it was killed. Test with errors.Is.
var ErrTorn = errors.New("the line has no end")

// read calls each with the lines of a log after its header. Its error is a *LineError, or one of r.
func read(r io.Reader, want kind, each func(data []byte) error) error {
	b := bufio.NewReaderSize(r, 1<<16)
	var long []byte
	for n := 1; ; n++ {
		data, err := b.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], data...)
			for errors.Is(err, bufio.ErrBufferFull) && len(long) <= MaxLine {
				data, err = b.ReadSlice('\n')
				long = append(long, data...)
			}
			data = long
		}
		if len(data) > MaxLine {
			return &LineError{n, fmt.Errorf("it is longer than %d bytes", MaxLine)}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil && len(data) > 0 {
			return &LineError{n, ErrTorn}
		}
		if err != nil {
			if n == 1 {
				return &LineError{1, fmt.Errorf("a log of kind %q begins with a header, and this is empty", want)}
			}
			return nil
		}
		if n == 1 {
			err = readHeader(data, want)
		} else {
			err = each(data)
		}
		if err != nil {
			return &LineError{n, err}
		}
	}
}

func readHeader(data []byte, want kind) error {
	var h header
	if err := strict(data, &h); err != nil {
		return err
	}
	if h.Kind != want {
		return fmt.Errorf("this is a log of kind %q, and %q is wanted", h.Kind, want)
	}
	if h.Version != Version {
		return fmt.Errorf("the log has version %d, and this program knows %d", h.Version, Version)
	}
	return nil
}

// strict reads one JSON object with no key that v does not have.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return errors.New("there is more text after the object")
	}
	return nil
}

// ReadOps reads an operation log: a header {"kind":"operations","version":1}, then one [Op] on each line. It is strict:
// an unknown key, an end before a beginning, or a line that is cut off is a *LineError, and what was read
// before that line is returned with it. The last line of a process that was killed gives one that matches [ErrTorn].
func ReadOps(r io.Reader) ([]Op, error) {
	var ops []Op
	err := read(r, opLog, func(data []byte) error {
		var op Op
		if err := strict(data, &op); err != nil {
			return err
		}
		if err := op.validate(); err != nil {
			return err
		}
		ops = append(ops, op)
		return nil
	})
	return ops, err
}

// WriteOps writes an operation log. For one that grows while ranks run, see [OpLog].
func WriteOps(w io.Writer, ops []Op) error {
	l := NewOpLog(w)
	for _, op := range ops {
		l.Add(op)
	}
	return l.Flush()
}

// OpLog writes an operation log while ranks run. It is safe for concurrent use. Its [OpLog.Flush] must be called at the end.
type OpLog struct {
	mu sync.Mutex // guards w
	w  lineWriter
}

// NewOpLog returns a log on w, with its header.
func NewOpLog(w io.Writer) *OpLog { return &OpLog{w: newLineWriter(w, opLog)} }

// Add writes an operation, buffered. An error is that of Flush.
func (l *OpLog) Add(op Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w.write(op)
}

// Flush writes what is buffered, and returns the first error there was.
func (l *OpLog) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.flush()
}

// ReadTruth reads a truth log: a header {"kind":"truth","version":1}, then on each line either {"change":...}, a [Change],
// or {"light":...}, a [Light]. Errors are those of [ReadOps].
func ReadTruth(r io.Reader) (Truth, error) {
	var t Truth
	err := read(r, truthLog, func(data []byte) error {
		var l line
		if err := strict(data, &l); err != nil {
			return err
		}
		switch {
		case l.Change != nil && l.Light == nil:
			if err := l.Change.validate(); err != nil {
				return err
			}
			t.Changes = append(t.Changes, *l.Change)
		case l.Light != nil && l.Change == nil:
			if err := l.Light.validate(); err != nil {
				return err
			}
			t.Lights = append(t.Lights, *l.Light)
		default:
			return errors.New(`want one of "change" and "light"`)
		}
		return nil
	})
	return t, err
}

// WriteTruth writes a truth log: changes first, each kind in its order.
func WriteTruth(w io.Writer, t Truth) error {
	l := newLineWriter(w, truthLog)
	l.truth(t)
	return l.flush()
}

// lineWriter writes lines of JSON, buffered.
type lineWriter struct {
	b   *bufio.Writer
	e   *json.Encoder
	err error // the first
}

func newLineWriter(w io.Writer, of kind) lineWriter {
	b := bufio.NewWriterSize(w, 1<<16)
	l := lineWriter{b: b, e: json.NewEncoder(b)}
	l.e.SetEscapeHTML(false) // maps are full of ">"
	l.write(header{of, Version})
	return l
}

func (l *lineWriter) write(v any) {
	if l.err == nil {
		l.err = l.e.Encode(v)
	}
}

func (l *lineWriter) truth(t Truth) {
	for i := range t.Changes {
		l.write(line{Change: &t.Changes[i]})
	}
	for i := range t.Lights {
		l.write(line{Light: &t.Lights[i]})
	}
}

func (l *lineWriter) flush() error {
	if l.err == nil {
		l.err = l.b.Flush()
	}
	return l.err
}
