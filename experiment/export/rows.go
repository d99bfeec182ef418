package export

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ocslab/ocslab/internal/jsontext"
)

// rows writes a table cell by cell, as CSV or as NDJSON.
type rows struct {
	w     io.Writer
	buf   []byte
	keys  [][]byte // what comes before each cell: nothing but a comma in CSV, the key in NDJSON
	json  bool
	cells int // of this row so far
	err   error
}

// flushAt is how much is written at once.
const flushAt = 64 << 10

// csvRows begins with the header.
func csvRows(w io.Writer, columns []string) *rows {
	o := &rows{w: w, keys: make([][]byte, len(columns))}
	for i := range columns[1:] {
		o.keys[i+1] = []byte(",")
	}
	for _, name := range columns {
		o.text(name)
	}
	o.end()
	return o
}

func jsonRows(w io.Writer, kind string, columns []string) *rows {
	o := &rows{w: w, json: true}
	for i, name := range columns {
		var key []byte
		if i == 0 {
			key = append(jsontext.Append([]byte(`{"kind":`), kind), ',')
		} else {
			key = append(key, ',')
		}
		o.keys = append(o.keys, append(jsontext.Append(key, name), ':'))
	}
	return o
}

func (o *rows) cell() {
	o.buf = append(o.buf, o.keys[o.cells]...)
	o.cells++
}

// none is a cell without a value.
func (o *rows) none() {
	o.cell()
	if o.json {
		o.buf = append(o.buf, "null"...)
	}
}

// text takes an empty text for none.
func (o *rows) text(s string) {
	switch {
	case s == "":
		o.none()
	case o.json:
		o.cell()
		o.buf = jsontext.Append(o.buf, s)
	default:
		o.cell()
		o.buf = appendField(o.buf, s)
	}
}

// appendField appends a text as RFC 4180 has it, in quotes when there is need.
func appendField(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if !strings.ContainsAny(s, "\",\r\n") && s[0] != ' ' && s[len(s)-1] != ' ' {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, bytes.ReplaceAll([]byte(s), []byte(`"`), []byte(`""`))...)
	return append(b, '"')
}

func (o *rows) whole(n int64) {
	o.cell()
	o.buf = strconv.AppendInt(o.buf, n, 10)
}

func (o *rows) number(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		o.none()
		return
	}
	o.cell()
	o.buf = appendNumber(o.buf, f)
}

func (o *rows) yes(b bool) {
	o.cell()
	o.buf = strconv.AppendBool(o.buf, b)
}

// end ends a row. It reports false when nothing more can be written.
func (o *rows) end() bool {
	o.cells = 0
	if o.json {
		o.buf = append(o.buf, '}')
	}
	o.buf = append(o.buf, '\n')
	if len(o.buf) >= flushAt {
		o.flush()
	}
	return o.err == nil
}

func (o *rows) flush() error {
	if o.err == nil {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf = o.buf[:0]
	return o.err
}
