package proto

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
)

// MaxFrame is how long a frame may be, in bytes without its length: that of a phase table
// of many operations, with much to spare.
const MaxFrame = 16 << 20

// ErrFrame: what was read is no message of this protocol. Test with errors.Is.
var ErrFrame = errors.New("not a message of the Opus control plane")

func (*Hello) kind() Kind      { return "hello" }
func (*Welcome) kind() Kind    { return "welcome" }
func (*JoinGroup) kind() Kind  { return "join-group" }
func (*GroupOK) kind() Kind    { return "group-ok" }
func (*PhaseTable) kind() Kind { return "phase-table" }
func (*Boundaries) kind() Kind { return "boundaries" }
func (*TopoWrite) kind() Kind  { return "topo-write" }
func (*Withdraw) kind() Kind   { return "withdraw" }
func (*Release) kind() Kind    { return "release" }
func (*TopoAck) kind() Kind    { return "topo-ack" }
func (*TopoNack) kind() Kind   { return "topo-nack" }
func (*Fallback) kind() Kind   { return "fallback" }
func (*Resume) kind() Kind     { return "resume" }
func (*Bye) kind() Kind        { return "bye" }
func (*Open) kind() Kind       { return "open" }
func (*Opened) kind() Kind     { return "opened" }
func (*Apply) kind() Kind      { return "apply" }
func (*GiantRing) kind() Kind  { return "giant-ring" }
func (*Mark) kind() Kind       { return "mark" }
func (*Done) kind() Kind       { return "done" }
func (*Failed) kind() Kind     { return "failed" }
func (*Alarm) kind() Kind      { return "alarm" }

var kinds = func() map[Kind]reflect.Type {
	all := map[Kind]reflect.Type{}
	for _, m := range []Message{
		&Hello{}, &Welcome{}, &JoinGroup{}, &GroupOK{}, &PhaseTable{}, &Boundaries{}, &TopoWrite{}, &Withdraw{}, &Release{},
		&TopoAck{}, &TopoNack{}, &Fallback{}, &Resume{}, &Bye{},
		&Open{}, &Opened{}, &Apply{}, &GiantRing{}, &Mark{}, &Done{}, &Failed{}, &Alarm{},
	} {
		all[m.kind()] = reflect.TypeOf(m).Elem()
	}
	return all
}()

// Kinds returns every kind of message, in alphabetical order.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }

// KindOf returns the kind of a message.
func KindOf(m Message) Kind { return m.kind() }

// Append appends the frame of a message to dst. It fails only when the frame would be longer than MaxFrame.
func Append(dst []byte, m Message) ([]byte, error) {
	if b, ok := appendHot(dst, m); ok {
		return b, nil
	}
	return appendAny(dst, m)
}

// appendAny is Append for every message.
func appendAny(dst []byte, m Message) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return dst, fmt.Errorf("message %s: %w", m.kind(), err)
	}
	head := `{"kind":"` + string(m.kind()) + `"`
	if len(body) > 2 {
		head += ","
	}
	n := len(head) + len(body) - 1
	if n > MaxFrame {
		return dst, fmt.Errorf("message %s: %d bytes, and a frame has %d at most", m.kind(), n, MaxFrame)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	dst = append(dst, head...)
	return append(dst, body[1:]...), nil
}

// Parse reads the body of a frame, and keeps nothing of it. The error matches ErrFrame and quotes the beginning of what was read.
func Parse(body []byte) (Message, error) {
	if m := parseHot(body); m != nil {
		return m, nil
	}
	return parseAny(body)
}

// parseAny is Parse for every message in any form.
func parseAny(body []byte) (Message, error) {
	var head struct {
		Kind Kind `json:"kind"`
	}
	kind := firstKind(body)
	if kind == "" { // it may stand anywhere
		if err := json.Unmarshal(body, &head); err != nil {
			return nil, fmt.Errorf("%w: %.120q: %v", ErrFrame, body, err)
		}
		kind = head.Kind
	}
	t, known := kinds[kind]
	if !known {
		return nil, fmt.Errorf("%w: %.120q: unknown kind %.40q", ErrFrame, body, kind)
	}
	m := reflect.New(t).Interface().(Message)
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %.120q: %v", ErrFrame, kind, body, err)
	}
	return m, nil
}

// firstKind returns the kind of a message that begins with it, as Append writes them, and is spelled plainly; "" otherwise.
func firstKind(body []byte) Kind {
	rest, ok := bytes.CutPrefix(body, []byte(`{"kind":"`))
	if !ok {
		return ""
	}
	name, _, ok := bytes.Cut(rest, []byte{'"'})
	if _, known := kinds[Kind(name)]; !ok || !known {
		return ""
	}
	return Kind(name)
}

// Read reads one message. At the end of the stream between two messages the error is io.EOF, in the middle of one
// it matches io.ErrUnexpectedEOF. What is no message matches ErrFrame; nothing sensible follows it.
func Read(r *bufio.Reader) (Message, error) {
	const head = 4
	size, err := peek(r, head)
	if err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(size))
	if n > MaxFrame {
		return nil, fmt.Errorf("%w: it begins with %q, which as a length is %d: %d is the most", ErrFrame, size, n, MaxFrame)
	}
	if whole := head + int(n); whole <= r.Size() { // nearly all are: it is read where it lies
		frame, err := peek(r, whole)
		if err != nil {
			return nil, err
		}
		m, err := Parse(frame[head:])
		_, _ = r.Discard(whole) // it is there
		return m, err
	}
	_, _ = r.Discard(head)
	// A length is no reason to believe it: what is read grows with what has come.
	body, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && len(body) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return Parse(body)
}

// peek returns the next n bytes. If the stream ends within them, that is unexpected.
func peek(r *bufio.Reader, n int) ([]byte, error) {
	b, err := r.Peek(n)
	if err == nil {
		return b, nil
	}
	if errors.Is(err, io.EOF) && len(b) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}
