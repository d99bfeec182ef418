package faults

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/ocslab/ocslab/internal/natural"
)

// Errors of this package. Test with errors.Is.
var (
	// ErrTrace: a trace that cannot be read.
	ErrTrace = errors.New("not a fault trace")
	// ErrArgument: a trace, a cluster, an architecture or a size that cannot be.
	ErrArgument = errors.New("nothing can be replayed like that")
)

// MostEvents is how many events a trace can have.
const MostEvents = 1 << 22

// Fault is a time for which a server is down.
type Fault struct {
	Server     int // from 0, in the order in which the trace names them first
	Start, End float64
	Kind       Kind
}

// Kind is what a trace says of a fault.
type Kind struct {
	Level string `json:"Level"` // "Hardware Failure"
	Class string `json:"Class"` // "GPU"
	Desc  string `json:"Desc"`
}

// Trace is what has failed, and when. Times are days.
type Trace struct {
	Names      []string // of servers
	Start, End float64  // of the first event and the last
	Faults     []Fault  // by start
	// Unmatched are events without their other half. A fault that does not end lasts until the end of the trace; an
	// end without a beginning is left out.
	Unmatched []Unmatched
}

// Unmatched is an event without its other half.
type Unmatched struct {
	Event  int // in the file, from 1
	Server string
	At     float64 // days
	Begins bool    // it is a beginning
}

// String returns one clause: "event 17: server a1 recovers on day 3.50 from no fault".
func (u Unmatched) String() string {
	if u.Begins {
		return fmt.Sprintf("event %d: server %s fails on day %.2f and does not recover", u.Event, u.Server, u.At)
	}
	return fmt.Sprintf("event %d: server %s recovers on day %.2f from no fault", u.Event, u.Server, u.At)
}

// event is one of a file.
type event struct {
	Server string  `json:"node_id"`
	At     float64 `json:"event_time"`
	Type   string  `json:"event_type"`
	Kind   Kind    `json:"fault_type"`
}

const (
	starts = "fault_start"
	ends   = "fault_end"
)

// mostOpen is how many faults of a server can be open at once.
const mostOpen = 1 << 10

// Parse reads a trace: a JSON list of events in the order of time, each with node_id, event_time (days), event_type
// ("fault_start" or "fault_end") and perhaps fault_type; other fields are not read. The end of a fault belongs to the
// oldest open one of its server that has the same fault_type, or else to the oldest. Errors match [ErrTrace] and name the
// event; events without their other half are no error, see [Trace.Unmatched].
func Parse(r io.Reader, name string) (*Trace, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrTrace, name, fmt.Sprintf(format, args...))
	}
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, bad("it must be a JSON list of events")
	}
	p := parser{t: &Trace{}, numbers: map[string]int{}, open: map[int][]opened{}}
	for n := 1; d.More(); n++ {
		if n > MostEvents {
			return nil, bad("there are more than %d events", MostEvents)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, bad("event %d: %v", n, err)
		}
		e, err := read(raw)
		if err == nil {
			err = p.take(n, e)
		}
		if err != nil {
			return nil, bad("event %d: %v", n, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, bad("the list of events does not end: %v", err)
	}
	if d.More() {
		return nil, bad("there is something behind the list of events")
	}
	if p.n == 0 {
		return nil, bad("there are no events")
	}
	p.close()
	return p.t, nil
}

// read returns the event of a JSON object.
func read(data []byte) (e event, err error) {
	fields, err := object(data)
	if err != nil {
		return e, err
	}
	for _, name := range []string{"node_id", "event_time", "event_type"} {
		if _, ok := fields[name]; !ok {
			return e, fmt.Errorf("it has no %s", name)
		}
	}
	if json.Unmarshal(fields["node_id"], &e.Server) != nil || e.Server == "" {
		return e, fmt.Errorf("node_id %.40s: want the name of a server", fields["node_id"])
	}
	if json.Unmarshal(fields["event_time"], &e.At) != nil || string(fields["event_time"]) == "null" || math.Abs(e.At) > 1e6 {
		return e, fmt.Errorf("event_time %.40s: want a number of days, up to 1e6", fields["event_time"])
	}
	if json.Unmarshal(fields["event_type"], &e.Type) != nil || e.Type != starts && e.Type != ends {
		return e, fmt.Errorf("event_type %.40s: want %q or %q", fields["event_type"], starts, ends)
	}
	kind, ok := fields["fault_type"]
	if !ok || string(kind) == "null" {
		return e, nil
	}
	if fields, err = object(kind); err != nil {
		return e, fmt.Errorf("fault_type: %w", err)
	}
	for name, field := range map[string]*string{"Level": &e.Kind.Level, "Class": &e.Kind.Class, "Desc": &e.Kind.Desc} {
		if raw, ok := fields[name]; ok && json.Unmarshal(raw, field) != nil {
			return e, fmt.Errorf("%s %.40s: want a text", name, raw)
		}
	}
	return e, nil
}

// object returns the fields of a JSON object, which it has once each.
func object(data []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%.40s: want an object", data)
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // the keys of an object are
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("it has %.40q twice", name)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		fields[name] = raw
	}
	return fields, nil
}

type opened struct {
	event int
	fault Fault
}

type parser struct {
	t       *Trace
	n       int
	numbers map[string]int
	open    map[int][]opened
}

func (p *parser) take(n int, e event) error {
	if p.n > 0 && e.At < p.t.End {
		return fmt.Errorf("event_time %g comes after %g: want events in the order of time", e.At, p.t.End)
	}
	if p.n == 0 {
		p.t.Start = e.At
	}
	p.t.End = e.At
	p.n++
	s, known := p.numbers[e.Server]
	if !known {
		s = len(p.t.Names)
		p.numbers[e.Server] = s
		p.t.Names = append(p.t.Names, e.Server)
	}
	if e.Type == starts {
		if len(p.open[s]) == mostOpen {
			return fmt.Errorf("server %.40q has %d faults that have not ended: want fewer at once", e.Server, mostOpen)
		}
		p.open[s] = append(p.open[s], opened{n, Fault{Server: s, Start: e.At, Kind: e.Kind}})
		return nil
	}
	list := p.open[s]
	if len(list) == 0 {
		p.t.Unmatched = append(p.t.Unmatched, Unmatched{n, e.Server, e.At, false})
		return nil
	}
	i := max(slices.IndexFunc(list, func(o opened) bool { return o.fault.Kind == e.Kind }), 0)
	f := list[i].fault
	f.End = e.At
	p.t.Faults = append(p.t.Faults, f)
	p.open[s] = slices.Delete(list, i, i+1)
	return nil
}

// close ends what is open.
func (p *parser) close() {
	for s, list := range p.open {
		for _, o := range list {
			o.fault.End = p.t.End
			p.t.Faults = append(p.t.Faults, o.fault)
			p.t.Unmatched = append(p.t.Unmatched, Unmatched{o.event, p.t.Names[s], o.fault.Start, true})
		}
	}
	p.t.sort()
	slices.SortFunc(p.t.Unmatched, func(a, b Unmatched) int { return a.Event - b.Event })
}

func (t *Trace) sort() {
	slices.SortStableFunc(t.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), a.Server-b.Server, cmp.Compare(a.End, b.End))
	})
}

// check returns why a trace cannot be replayed.
func (t *Trace) check() error {
	if length := t.End - t.Start; !(length > 0) || math.IsInf(length, 1) {
		return fmt.Errorf("%w: the trace lasts from day %g to day %g: want some time", ErrArgument, t.Start, t.End)
	}
	for i, f := range t.Faults {
		switch {
		case f.Server < 0 || f.Server >= len(t.Names):
			return fmt.Errorf("%w: fault %d is of server %d, and the trace names %d", ErrArgument, i+1, f.Server, len(t.Names))
		case !(t.Start <= f.Start && f.Start <= f.End && f.End <= t.End):
			return fmt.Errorf("%w: fault %d lasts from day %g to day %g: want it within the trace, from %g to %g",
				ErrArgument, i+1, f.Start, f.End, t.Start, t.End)
		}
	}
	return nil
}

// WriteJSON writes the faults as [Parse] reads them. It reads no other servers than those that fail, and its trace
// begins with the first fault and ends with the last end: nothing else is in the format.
func (t *Trace) WriteJSON(w io.Writer) error {
	all := []event{}
	for _, f := range t.Faults {
		all = append(all, event{t.Names[f.Server], f.Start, starts, f.Kind}, event{t.Names[f.Server], f.End, ends, f.Kind})
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.At, b.At) })
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(all)
}

// Stats is what a trace is like.
type Stats struct {
	Servers, Failing int     // servers in all, and those that fail at all
	Mean             float64 // share of servers that are down
	P50, P99, Max    float64 // of daily samples
	RepairMean       float64 // days
	RepairP50        float64
	RepairP99        float64
}

// Stats returns what the trace is like for so many servers, of which it may name fewer: those that never fail. The
// error matches [ErrArgument] if it names more, or cannot be replayed.
func (t *Trace) Stats(servers int) (Stats, error) {
	if servers < len(t.Names) {
		return Stats{}, fmt.Errorf("%w: the trace names %s, more than %d", ErrArgument, natural.Count(len(t.Names), "server"), servers)
	}
	c, opt := Cluster{Nodes: servers, PerServer: 1}, Options{Servers: servers, Placed: true, Half: 1}
	if err := complete(t, &c, &opt); err != nil {
		return Stats{}, err
	}
	s := Stats{Servers: servers}
	failing := map[int]bool{}
	var repairs, shares []float64
	for _, f := range t.Faults {
		failing[f.Server] = true
		repairs = append(repairs, f.End-f.Start)
	}
	n := nodes{all: changes(t, c, opt), down: make([]int32, servers)}
	for day := range days(t, 1) {
		n.to(day)
		shares = append(shares, float64(n.dead)/float64(servers))
	}
	s.Failing = len(failing)
	s.RepairMean, s.RepairP50, s.RepairP99 = mean(repairs), quantile(repairs, 0.5), quantile(repairs, 0.99)
	s.Mean, s.P50, s.P99, s.Max = mean(shares), quantile(shares, 0.5), quantile(shares, 0.99), quantile(shares, 1)
	return s, nil
}

// mean returns 0 for nothing.
func mean(xs []float64) (m float64) {
	for _, x := range xs {
		m += x / float64(len(xs))
	}
	return m
}

// quantile returns the smallest value that a share of q is at most; xs is put in order.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return xs[min(max(int(math.Ceil(q*float64(len(xs))))-1, 0), len(xs)-1)]
}
