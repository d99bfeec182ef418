package moves

import (
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/live"
)

// key is a stage of a subject.
type key struct {
	stage   timeline.Stage
	subject string
}

// row is what came back, or should: the light of a port, the carrier of a NIC. In the view
// by stages it is all that reach the stage.
type row struct {
	key          // the subject is "" for a stage
	back, of int // how many have come back, of how many

	start, end, first          timeline.Interval // since the command
	hasStart, hasEnd, hasFirst bool
	lead                       int64 // the stage before, where there is no start
	waiting                    bool  // expected, and not seen
	gone                       bool  // gone, and not expected back
	why                        string
}

// account is what the marks of a reconfiguration say. It does not change any more.
type account struct {
	move *live.Move
	// command is when it was sent; commanded is false when no mark says so, and times are
	// since the first mark.
	command   timeline.Interval
	commanded bool
	marks     []timeline.Mark // merged, in no order

	at     map[key]timeline.Interval // since the command
	rows   []row                     // by stage, then subject
	stages []row                     // one for each stage
	missed int                       // expected and not seen
	total  timeline.Interval         // when the last of what has come was back
	last   key                       // which that was
	ports  map[string]string         // of NICs: where their light comes from
}

// lossOf returns the stage that takes away what a stage brings back, and false if there is
// none.
func lossOf(s timeline.Stage) (timeline.Stage, bool) {
	switch s {
	case timeline.Light:
		return timeline.Dark, true
	case timeline.CarrierUp:
		return timeline.CarrierDown, true
	case timeline.Traffic:
		return timeline.TrafficLost, true
	}
	return "", false
}

// returns are the stages that have rows, in the order of these.
var returns = []timeline.Stage{timeline.Ack, timeline.Light, timeline.Firmware, timeline.CarrierUp, timeline.Traffic}

// word is what a stage is called where it names a row.
func word(s timeline.Stage) string {
	if s == timeline.CarrierUp {
		return "carrier"
	}
	return string(s)
}

// newAccount reads the marks of a reconfiguration. Of NICs by name, ports has where their
// light comes from; it is kept.
func newAccount(m *live.Move, ports map[string]string) *account {
	a := &account{move: m, at: make(map[key]timeline.Interval, len(m.Marks)), ports: ports, marks: m.Marks}
	if repeats(m.Marks) {
		a.marks, _ = timeline.Merge(m.Marks)
	}
	a.collect(a.measure())
	a.group()
	return a
}

// repeats reports whether something was seen more than once, so that there is something to
// merge.
func repeats(marks []timeline.Mark) bool {
	type thing struct {
		key
		host string
	}
	seen := make(map[thing]struct{}, len(marks))
	for i := range marks {
		m := &marks[i]
		seen[thing{key{m.Stage, m.Subject}, m.Host}] = struct{}{}
	}
	return len(seen) < len(marks)
}

// measure finds when each stage of each subject was reached since the command, and returns
// that as package timeline has it, too.
func (a *account) measure() []timeline.Duration {
	marks := a.marks
	for _, m := range marks {
		if m.Stage != timeline.Command {
			continue
		}
		if !a.commanded {
			a.command = m.Interval
		}
		a.command, a.commanded = timeline.Earlier(a.command, m.Interval), true
	}
	if len(marks) > 0 && !a.commanded { // done by somebody else, or by hand
		first := marks[0].Earliest
		for _, m := range marks {
			first = min(first, m.Earliest)
		}
		a.command = timeline.Point(first)
		numbers := map[int]bool{}
		for _, m := range marks {
			if !numbers[m.Reconfiguration] {
				numbers[m.Reconfiguration] = true
				marks = append(slices.Clip(marks), timeline.Mark{Stage: timeline.Command, Interval: a.command, Reconfiguration: m.Reconfiguration})
			}
		}
	}
	durations := timeline.Durations(marks)
	for i := range durations {
		d := &durations[i]
		k := key{d.Stage, d.Subject}
		was, ok := a.at[k]
		switch {
		case !ok:
			a.at[k] = d.Interval
		case lost(d.Stage): // seen at two hosts
			a.at[k] = timeline.Earlier(was, d.Interval)
		default:
			a.at[k] = timeline.Later(was, d.Interval)
		}
	}
	return durations
}

// lost reports whether a stage is one that takes something away.
func lost(s timeline.Stage) bool {
	return s == timeline.Dark || s == timeline.CarrierDown || s == timeline.TrafficLost
}

// collect makes the rows.
func (a *account) collect(durations []timeline.Duration) {
	const (
		there = 1 << iota
		comes // it is expected back
		goes  // it is expected to be lost
	)
	known := make(map[key]uint8, len(a.at)+len(a.move.Expected))
	var subjects [8][]key // by place in returns
	note := func(k key, what uint8) (news bool) {
		was := known[k]
		if was == 0 {
			if i := slices.Index(returns, k.stage); i >= 0 {
				subjects[i] = append(subjects[i], k)
			}
		}
		known[k] = was | what
		return was&what == 0
	}
	for i := range durations { // in their order, so that little is left to sort
		note(rowOf(key{durations[i].Stage, durations[i].Subject}), there)
	}
	for _, x := range a.move.Expected {
		if x.Stage == timeline.Command {
			continue
		}
		k, what := key{x.Stage, x.Subject}, uint8(comes)
		row := rowOf(k)
		if row != k {
			what = goes
		}
		if _, seen := a.at[k]; note(row, what) && !seen {
			a.missed++
		}
	}
	a.rows = make([]row, 0, len(known))
	for _, keys := range subjects {
		slices.SortFunc(keys, func(x, y key) int { return natural.Compare(x.subject, y.subject) })
		for _, k := range keys {
			a.rows = append(a.rows, a.row(k, known[k]&comes != 0))
		}
	}
	for i := range a.rows {
		r := &a.rows[i]
		if r.hasEnd && (a.last == key{} || r.end.Mid() > a.at[a.last].Mid()) {
			a.last = r.key
		}
		if r.hasEnd {
			a.total = timeline.Later(a.total, r.end)
		}
	}
}

// rowOf is the row that a stage belongs to.
func rowOf(k key) key {
	switch k.stage {
	case timeline.Dark:
		k.stage = timeline.Light
	case timeline.CarrierDown:
		k.stage = timeline.CarrierUp
	case timeline.TrafficLost:
		k.stage = timeline.Traffic
	}
	return k
}

// row returns what is known of a stage that brings something back.
func (a *account) row(k key, expected bool) row {
	r := row{key: k, of: 1}
	r.end, r.hasEnd = a.at[k]
	if loss, ok := lossOf(k.stage); ok {
		r.start, r.hasStart = a.at[key{loss, k.subject}]
	}
	if r.hasEnd {
		r.back = 1
	}
	r.waiting = expected && !r.hasEnd
	r.gone = !expected && !r.hasEnd
	if before, ok := a.before(k); ok {
		r.lead = a.at[before].Mid()
	}
	if prefix := k.subject + ": " + string(k.stage) + ": "; r.waiting {
		for _, u := range a.move.Unresolved {
			if why, ok := strings.CutPrefix(u, prefix); ok {
				r.why = why
			}
		}
	}
	return r
}

// before is what had to be reached before a stage of a subject: the last of what was
// reached of the light, the firmware and the carrier below it. It reports false if
// nothing of that was.
func (a *account) before(k key) (key, bool) {
	var below [8]key
	n := 0
	add := func(s timeline.Stage, subject string) {
		if n < len(below) {
			below[n] = key{s, subject}
			n++
		}
	}
	nic := func(name string, stage timeline.Stage) {
		if port := a.ports[name]; port != "" {
			add(timeline.Light, port)
		}
		if stage != timeline.Light {
			add(timeline.Light, name)
		}
		if stage == timeline.CarrierUp || stage == timeline.Traffic {
			add(timeline.Firmware, name)
		}
		if stage == timeline.Traffic {
			add(timeline.CarrierUp, name)
		}
	}
	switch k.stage {
	case timeline.Firmware, timeline.CarrierUp:
		nic(k.subject, k.stage)
	case timeline.Traffic:
		from, to, _ := strings.Cut(k.subject, ">")
		nic(from, k.stage)
		nic(to, k.stage)
	}
	end, known := a.at[k]
	best, ok := key{}, false
	for _, b := range below[:n] {
		at, seen := a.at[b]
		if !seen || known && at.Mid() > end.Mid() {
			continue
		}
		if !ok || at.Mid() >= a.at[best].Mid() {
			best, ok = b, true
		}
	}
	return best, ok
}

// group makes one row of all rows of a stage.
func (a *account) group() {
	for _, stage := range returns {
		g := row{key: key{stage: stage}}
		for i := range a.rows {
			r := &a.rows[i]
			if r.stage != stage || r.gone {
				continue
			}
			if g.of == 0 || r.lead < g.lead {
				g.lead = r.lead
			}
			if r.hasStart {
				if !g.hasStart {
					g.start, g.hasStart = r.start, true
				}
				g.start = timeline.Earlier(g.start, r.start)
			}
			if r.hasEnd {
				if !g.hasFirst {
					g.first, g.end, g.hasFirst = r.end, r.end, true
				}
				g.first, g.end = timeline.Earlier(g.first, r.end), timeline.Later(g.end, r.end)
				g.back++
			}
			g.of++
			g.waiting = g.waiting || r.waiting
			if g.why == "" {
				g.why = r.why
			}
		}
		g.hasEnd = g.hasFirst && !g.waiting
		if g.hasEnd && g.of == 1 {
			g.hasFirst = false
		}
		if g.of > 0 {
			a.stages = append(a.stages, g)
		}
	}
}

// step is one stage of the way from the command to what came last, and how long it took.
type step struct {
	key
	before key // the zero key is the command
	took   timeline.Interval
}

// slowest returns the longest step on the way to what came last. It reports false when
// nothing has come.
func (a *account) slowest() (step, bool) {
	if (a.last == key{}) {
		return step{}, false
	}
	var best step
	found := false
	for at := a.last; ; {
		before, ok := a.before(at)
		took, _ := a.took(at, before)
		if !found || took.Mid() > best.took.Mid() {
			best, found = step{at, before, took}, true
		}
		if !ok {
			return best, true
		}
		at = before
	}
}

// took returns how long a stage took since another one, or since the command if that is the
// zero key. It reports false if one of them was not reached.
func (a *account) took(k, before key) (timeline.Interval, bool) {
	end, ok := a.at[k]
	if !ok || before == (key{}) {
		return end, ok
	}
	begin, ok := a.at[before]
	return end.Sub(begin), ok
}
