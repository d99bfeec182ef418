package export

import (
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// DarkDBm is what a trace shows where a power monitor saw no light: its format has no
// number for that, and without one the last power would be shown on.
const DarkDBm = -60

// Trace writes the run as a trace in Chrome's JSON format, which ui.perfetto.dev and
// chrome://tracing open.
//
// One group of tracks shows points and, in them, reconfigurations; the others show one
// layer each, with a track for each switch (from command to acknowledgement), port or
// module (while it is dark), NIC (while its carrier is down, with what the firmware says
// as instants) and flow (while there is no traffic), the optical power of ports as
// counters, and, of an emulated lab, the same tracks again for what really happened. A
// flow that gets its circuit in this reconfiguration is shown from the command on.
//
// A mark is an interval, and a slice begins and ends at its middle; the arguments have
// both ends in nanoseconds since the command (of the command: since the reconfiguration
// began). What was expected and did not come back ends with its reconfiguration and has the
// argument "missing". Times are microseconds since the run began, with three decimals;
// sessions of different boots are placed by the wall clock, and so are events.
//
// Events are written in order of time, and slices of one track are beside or within each
// other.
func Trace(w io.Writer, r *runs.Run) error {
	t := tracerOf(r)
	t.out = &events{w: w}
	t.out.begin(r)
	t.names()
	t.notes()
	for i, m := range t.order {
		t.reconfiguration(i, m)
		t.settle(t.earliest[i+1])
	}
	t.settle(math.MaxInt64)
	if err := t.out.end(); err != nil {
		return fmt.Errorf("export: trace of run %s: %w", r.Meta.ID, err)
	}
	return nil
}

// tracer makes the events of a trace.
type tracer struct {
	*index
	out      *events
	tracks   tracks
	shown    []track // in order
	axis     axis
	order    []*runs.Reconfiguration // in order of time
	ends     []int64                 // of each of order, on the axis
	earliest []int64                 // what order[i] and all after it show is not before this; one more than order
	busy     map[int]int64           // until when each track is taken
	pending  pending                 // events that wait for others that may be before them
	written  int
}

func tracerOf(r *runs.Run) *tracer {
	t := &tracer{index: indexOf(r), busy: map[int]int64{}}
	t.tracks, t.shown = tracksOf(r.Marks, r.Truth)

	shown := map[int]extent{} // by session
	extents := make(map[int]extent, len(r.Reconfigurations))
	for i := range r.Reconfigurations {
		m := &r.Reconfigurations[i]
		t.order = append(t.order, m)
		e := t.extent(m)
		extents[m.Number] = e
		s, ok := shown[m.Session]
		if !ok {
			s = nothing
		}
		s.include(e.from)
		s.include(e.to)
		shown[m.Session] = s
	}
	t.axis = axisOf(r, shown)
	slices.SortStableFunc(t.order, func(a, b *runs.Reconfiguration) int {
		return cmp.Or(cmp.Compare(t.begin(a), t.begin(b)), cmp.Compare(a.Number, b.Number))
	})
	t.ends = make([]int64, len(t.order))
	t.earliest = make([]int64, len(t.order)+1)
	t.earliest[len(t.order)] = math.MaxInt64
	next := int64(math.MaxInt64)
	for i, m := range slices.Backward(t.order) {
		t.earliest[i] = min(t.earliest[i+1], t.axis.at(m.Session, extents[m.Number].from))
		t.ends[i] = max(t.begin(m), min(next, t.axis.at(m.Session, t.end(m))))
		next = t.begin(m)
	}
	return t
}

// begin is when a reconfiguration begins, on the axis.
func (t *tracer) begin(m *runs.Reconfiguration) int64 { return t.axis.at(m.Session, m.MonoNS) }

// end is when the last that was measured of it happened, or when nobody waited for more,
// on the axis of the marks.
func (t *tracer) end(m *runs.Reconfiguration) int64 {
	end := m.MonoNS
	for _, mark := range t.run.MarksOf(m.Number) {
		end = max(end, mark.Mid())
	}
	if len(m.Unresolved) > 0 {
		end = max(end, plus(m.MonoNS, m.PatienceNS))
	}
	if m.Null && t.run.Plan != nil {
		end = max(end, plus(m.MonoNS, t.run.Plan.Window))
	}
	return end
}

// extent is the time from the first to the last that is shown of a reconfiguration.
func (t *tracer) extent(m *runs.Reconfiguration) extent {
	e := extent{m.MonoNS, t.end(m)}
	if command, ok := t.commands[m.Number]; ok {
		e.include(command.Mid())
	}
	for _, mark := range t.run.MarksOf(m.Number) {
		e.include(mark.Mid())
	}
	for _, mark := range t.run.TruthOf(m.Number) {
		e.include(mark.Mid())
	}
	for _, s := range t.run.SamplesOf(m.Number) {
		e.include(middle(s))
	}
	return e
}

func middle(s runs.Sample) int64 {
	return timeline.Interval{Earliest: s.EarliestNS, Latest: s.LatestNS}.Mid()
}

// reconfiguration makes the events of order[i].
func (t *tracer) reconfiguration(i int, m *runs.Reconfiguration) {
	begin, end := t.begin(m), t.ends[i]
	if i == 0 || t.order[i-1].Point != m.Point {
		t.point(i, m)
	}
	name := strconv.Itoa(m.Number) + ": " + m.From + " to " + m.To
	if m.Null {
		name = strconv.Itoa(m.Number) + ": null toggle"
	}
	var args object
	args.whole("reconfiguration", int64(m.Number))
	args.text("condition", t.condition(m.Condition).Label)
	if c := circuits(m.Removed); c != "" {
		args.text("removed", c)
	}
	if c := circuits(m.Added); c != "" {
		args.text("added", c)
	}
	for k, text := range m.Unresolved {
		args.text("unresolved "+strconv.Itoa(k+1), text)
	}
	for k, nic := range m.Held {
		args.text("held "+strconv.Itoa(k+1), nic)
	}
	t.add(event{at: begin, length: end - begin, phase: slice, category: "reconfiguration", name: name,
		process: experimentProcess, thread: pointThread, args: args})

	t.layers(m, end, t.run.MarksOf(m.Number), false)
	t.layers(m, end, t.run.TruthOf(m.Number), true)
	for _, s := range t.run.SamplesOf(m.Number) {
		power := s.PowerDBm
		if s.Dark || math.IsNaN(power) || math.IsInf(power, 0) {
			power = DarkDBm
		}
		var args object
		args.number("dBm", power)
		t.add(event{at: t.axis.at(m.Session, middle(s)), phase: counter, category: "power", name: s.Subject, process: powerProcess(), args: args})
	}
}

// point makes the slice of the point that begins with order[i].
func (t *tracer) point(i int, m *runs.Reconfiguration) {
	last := i
	for last+1 < len(t.order) && t.order[last+1].Point == m.Point {
		last++
	}
	c := t.condition(m.Condition)
	name := fmt.Sprintf("point %d, repeat %d", m.Point, m.Repeat)
	if m.Null {
		name = fmt.Sprintf("point %d, null toggle %d", m.Point, m.Repeat)
	}
	if c.Label != "" {
		name += ": " + c.Label
	}
	var args object
	args.whole("point", int64(m.Point))
	args.whole("condition", int64(m.Condition))
	args.whole("repeat", int64(m.Repeat))
	args.whole("session", int64(m.Session))
	if m.Null {
		args.yes("null")
	}
	for _, name := range t.varied {
		args.text("param_"+name, c.Parameters[name])
	}
	begin := t.begin(m)
	t.add(event{at: begin, length: t.ends[last] - begin, phase: slice, category: "point", name: name,
		process: experimentProcess, thread: pointThread, args: args})
}

// layers makes slices and instants of the marks of one reconfiguration.
func (t *tracer) layers(m *runs.Reconfiguration, end int64, marks []timeline.Mark, truth bool) {
	byTrack := map[track][]*timeline.Mark{}
	for i := range marks {
		if key, ok := trackOf(&marks[i], truth); ok {
			byTrack[key] = append(byTrack[key], &marks[i])
		}
	}
	for key, on := range byTrack {
		slices.SortStableFunc(on, func(a, b *timeline.Mark) int { return cmp.Compare(a.Mid(), b.Mid()) })
		t.track(m, end, key, on)
	}
}

// track makes the slices and instants of one track in one reconfiguration.
func (t *tracer) track(m *runs.Reconfiguration, end int64, key track, on []*timeline.Mark) {
	l := &layers[key.layer]
	var open *timeline.Mark
	for i, mark := range on {
		switch {
		case mark.Stage == l.lost && open == nil:
			open = mark
		case mark.Stage == l.back && open != nil:
			t.slice(m, key, open, mark, t.at(m, mark))
			open = nil
		case mark.Stage == l.back && i == 0:
			command, ok := t.commands[m.Number]
			if !ok || command.Mid() > mark.Mid() {
				t.instant(m, key, mark)
				break
			}
			t.slice(m, key, &timeline.Mark{Stage: timeline.Command, Interval: command}, mark, t.at(m, mark))
		default:
			t.instant(m, key, mark)
		}
	}
	switch {
	case open == nil:
	case t.expects(m, l.back, key.subject):
		t.slice(m, key, open, nil, end)
	default:
		t.instant(m, key, open)
	}
}

// expects reports whether a stage should have come.
func (t *tracer) expects(m *runs.Reconfiguration, stage timeline.Stage, subject string) bool {
	return slices.ContainsFunc(t.run.ExpectedOf(m.Number), func(e timeline.Expectation) bool {
		return e.Stage == stage && e.Subject == subject
	})
}

// at is where a mark is drawn.
func (t *tracer) at(m *runs.Reconfiguration, mark *timeline.Mark) int64 {
	return t.axis.at(m.Session, mark.Mid())
}

// slice makes a slice from one mark to another, or, if that is missing, to end. Where the
// track is still taken by the slice before, it begins with the end of that.
func (t *tracer) slice(m *runs.Reconfiguration, key track, from, to *timeline.Mark, end int64) {
	thread, l := t.tracks[key], &layers[key.layer]
	begin := max(t.at(m, from), t.busy[thread])
	end = max(end, begin)
	t.busy[thread] = end
	args := t.about(m)
	t.mark(&args, m, from)
	if to != nil {
		t.mark(&args, m, to)
	} else {
		args.text("missing", string(l.back))
	}
	t.add(event{at: begin, length: end - begin, phase: slice, category: l.name, name: l.between,
		process: key.process(), thread: thread, args: args})
}

func (t *tracer) instant(m *runs.Reconfiguration, key track, mark *timeline.Mark) {
	args := t.about(m)
	t.mark(&args, m, mark)
	t.add(event{at: t.at(m, mark), phase: instant, category: layers[key.layer].name, name: string(mark.Stage),
		process: key.process(), thread: t.tracks[key], args: args})
}

// about begins arguments with the reconfiguration that something belongs to.
func (t *tracer) about(m *runs.Reconfiguration) object {
	args := make(object, 0, 384) // about as much as a slice needs
	args.whole("reconfiguration", int64(m.Number))
	args.text("condition", t.condition(m.Condition).Label)
	return args
}

// mark writes the ends of a mark, since the command where there was one.
func (t *tracer) mark(args *object, m *runs.Reconfiguration, mark *timeline.Mark) {
	at, ok := t.since(m.Number, mark.Interval)
	if !ok || mark.Stage == timeline.Command {
		at = mark.Sub(timeline.Point(m.MonoNS)) // since the reconfiguration began
	}
	stage := string(mark.Stage)
	args.whole(stage+"_earliest_ns", at.Earliest)
	args.whole(stage+"_latest_ns", at.Latest)
	if mark.Source != "" {
		args.text(stage+"_source", mark.Source)
	}
	if mark.Detail != "" {
		args.text(stage+"_detail", mark.Detail)
	}
}

// names writes what groups and tracks are called, and their order.
func (t *tracer) names() {
	t.out.group(experimentProcess, "experiment")
	t.out.track(experimentProcess, pointThread, "points and reconfigurations")
	if len(t.run.Events) > 0 {
		t.out.track(experimentProcess, eventThread, "events")
	}
	if len(t.run.Samples) > 0 {
		t.out.group(powerProcess(), "optical power")
	}
	named := map[int]bool{}
	hosts := map[track]int{} // of each subject
	for _, key := range t.shown {
		key.host = ""
		hosts[key]++
	}
	for _, key := range t.shown {
		if p := key.process(); !named[p] {
			named[p] = true
			name := layers[key.layer].name
			if key.truth {
				name = "truth: " + name
			}
			t.out.group(p, name)
		}
		name := key.subject
		if hosts[track{key.truth, key.layer, key.subject, ""}] > 1 {
			name += " (seen by " + key.host + ")"
		}
		t.out.track(key.process(), t.tracks[key], name)
	}
}

// notes makes instants of what a reader of the run should know.
func (t *tracer) notes() {
	for _, e := range t.run.Events {
		i := slices.IndexFunc(t.run.Sessions, func(s runs.Session) bool { return s.Number == e.Session })
		if i < 0 || e.Wall.IsZero() {
			continue // it has no place in time
		}
		s := &t.run.Sessions[i]
		var args object
		args.text("text", e.Text)
		args.whole("session", int64(e.Session))
		t.add(event{at: t.axis.at(s.Number, plus(s.MonoNS, int64(e.Wall.Sub(s.Begun)))), phase: instant, category: "event", name: e.Kind,
			process: experimentProcess, thread: eventThread, args: args})
	}
}

func (t *tracer) add(e event) {
	e.sequence = t.written
	t.written++
	heap.Push(&t.pending, e)
}

// settle writes the events that nothing can be before any more.
func (t *tracer) settle(before int64) {
	for len(t.pending) > 0 && t.pending[0].at <= before {
		t.out.event(heap.Pop(&t.pending).(event))
	}
}
