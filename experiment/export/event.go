package export

import (
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/ocslab/ocslab/experiment/runs"
)

// event is one of a trace.
type event struct {
	at, length      int64 // ns
	phase           phase
	category, name  string
	process, thread int
	args            object
	sequence        int // in which it was made
}

// phase is what an event is; the letters are those of Chrome's format.
type phase byte

const (
	slice   phase = 'X'
	instant phase = 'i'
	counter phase = 'C'
)

// Threads of the experiment's process.
const (
	pointThread = 10
	eventThread = 11
)

// pending is a heap of events, in order of time. Those of one track that begin together stay
// in the order in which they were made: what holds the others first.
type pending []event

func (p pending) Len() int      { return len(p) }
func (p pending) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *pending) Push(e any)   { *p = append(*p, e.(event)) }

func (p pending) Less(i, j int) bool {
	a, b := &p[i], &p[j]
	return cmp.Or(
		cmp.Compare(a.at, b.at), cmp.Compare(a.process, b.process), cmp.Compare(a.thread, b.thread),
		cmp.Compare(a.sequence, b.sequence),
	) < 0
}

func (p *pending) Pop() any {
	last := len(*p) - 1
	e := (*p)[last]
	(*p)[last] = event{}
	*p = (*p)[:last]
	return e
}

// events writes the JSON of a trace.
type events struct {
	w    io.Writer
	buf  []byte
	some bool   // there is an event before the next
	line object // of the event that is written; kept for its memory
	err  error
}

func (o *events) begin(r *runs.Run) {
	var about object
	about.text("run", r.Meta.ID)
	about.text("name", r.Meta.Name)
	about.text("lab", r.Meta.Lab)
	about.text("ocslab", r.Meta.Version)
	about.text("created", wall(r.Meta.Created))
	o.buf = append(o.buf, `{"displayTimeUnit":"ms","otherData":{`...)
	o.buf = append(o.buf, about...)
	o.buf = append(o.buf, "},\"traceEvents\":[\n"...)
}

func (o *events) end() error {
	o.buf = append(o.buf, "\n]}\n"...)
	o.flush()
	return o.err
}

func (o *events) flush() {
	if o.err == nil {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf = o.buf[:0]
}

// group names a process. Its number is its place, too.
func (o *events) group(process int, name string) { o.name("process", process, 0, name, process) }

// track names a thread. Its number is its place, too.
func (o *events) track(process, thread int, name string) {
	o.name("thread", process, thread, name, thread)
}

func (o *events) name(what string, process, thread int, name string, place int) {
	var e, called, sorted object
	e.text("ph", "M")
	e.whole("pid", int64(process))
	e.whole("tid", int64(thread))
	called.text("name", name)
	sorted.whole("sort_index", int64(place))
	second := slices.Clone(e)
	e.text("name", what+"_name")
	second.text("name", what+"_sort_index")
	o.write(e, called)
	o.write(second, sorted)
}

func (o *events) event(x event) {
	e := o.line[:0]
	e.text("ph", string(rune(x.phase)))
	e.whole("pid", int64(x.process))
	e.whole("tid", int64(x.thread))
	e.key("ts")
	e = appendMicroseconds(e, x.at)
	switch x.phase {
	case slice:
		e.key("dur")
		e = appendMicroseconds(e, x.length)
	case instant:
		e.text("s", "t") // on its track
	}
	e.text("cat", x.category)
	e.text("name", x.name)
	o.write(e, x.args)
	o.line = e
}

func (o *events) write(e, args object) {
	if o.some {
		o.buf = append(o.buf, ",\n"...)
	}
	o.some = true
	o.buf = append(o.buf, '{')
	o.buf = append(o.buf, e...)
	o.buf = append(o.buf, `,"args":{`...)
	o.buf = append(o.buf, args...)
	o.buf = append(o.buf, "}}"...)
	if len(o.buf) >= flushAt {
		o.flush()
	}
}

// appendMicroseconds writes nanoseconds, which are not negative, exactly.
func appendMicroseconds(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1000, 10)
	if rest := ns % 1000; rest != 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
	return b
}
