package hbd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ErrHalfOpen: a cable was left with one end on the path and the other not.
var ErrHalfOpen = errors.New("a cable is half open")

// Defaults of [Options].
const (
	DefaultSettle   = time.Millisecond // in which a change of path is over (InfiniteHBD, section 4.1)
	DefaultPatience = 2 * time.Second
)

// Options of [Domain.Bring]. The zero value keeps neither history nor run.
type Options struct {
	// History is where changes are recorded before they are sent; nil records none. Command stands in it.
	History *history.Log
	Command string

	Store             *runs.Store // keeps a run of it when it is over; nil keeps none
	Name, About       string      // of the run; "" is "infinitehbd"
	LabText           []byte      // that the lab was parsed from; nil stores what the lab writes as
	Args              []string    // the arguments that begin it, for people
	Version, Revision string      // of ocslab

	// Settle is the settle window: a cable that is certainly half open for longer is an alarm. 0 is DefaultSettle.
	Settle time.Duration
	// Patience is how long receivers may take to lock; 0 is DefaultPatience.
	Patience time.Duration
}

// Report is what [Domain.Bring] came to.
type Report struct {
	Run     string // its ID; "" if none was kept
	Bundles int    // that were switched
	Lanes   int    // that go to another place now
	Groups  []GroupTime
	Modules []ModuleTime // of all bundles that were switched, in the order of the line
	// HalfOpen is how long each cable was so that came or went, the longest first; Alarms are those of them
	// that certainly were for longer than the settle window.
	HalfOpen, Alarms []HalfOpen
	// Begun is when the first command was sent that prepares a bundle, Command the first that switched one, Light the last
	// light, Locked the last lock, all on the axis of this host. They are zero if nothing was switched.
	Begun, Command, Light, Locked timeline.Interval
	Took                          time.Duration // Bring as a whole, without the keeping of the run
	Walk                          *Walk         // in the end; nil if it was not reached
}

// ModuleTime is when a module of a bundle did what. Times are on the axis of this host.
type ModuleTime struct {
	Ref
	Module   int // from 1
	From, To infinitehbd.State
	Command  timeline.Interval // the command, or the trigger of its board, was written
	Busy     timeline.Interval // the switch began: light was taken away
	Settled  timeline.Interval // the heaters had settled and the light was let out
	Clear    timeline.Interval // all its receivers had light
	Locked   timeline.Interval // all its receivers had recovered the clock
	Took     time.Duration     // from Busy to Settled by the module's own clock
	Switches uint32            // in its life: wear
}

// GroupTime is how long the ring of a group was away.
type GroupTime struct {
	Group   infinitehbd.Group
	Bundles int               // that were switched
	Dark    timeline.Interval // its first light went
	Locked  timeline.Interval // its last lane was locked
	Down    timeline.Interval // from one to the other, and no less than the longest switch by a module's own clock
}

// HalfOpen is how long one end of a cable was on the path alone.
type HalfOpen struct {
	Cable infinitehbd.Cable
	For   timeline.Interval
}

// job is a bundle that is switched.
type job struct {
	ref      Ref
	from, to infinitehbd.State
	report   ocs.Report
	done     bool // all of it was brought about
	modules  []ModuleTime
}

// bringing is a plan that is being brought about.
type bringing struct {
	d      *Domain
	opt    Options
	from   *infinitehbd.Plan
	to     *infinitehbd.Plan
	jobs   []*job // in the order of the line
	report *Report
	wall   time.Time
	ns     int64
}

// Bring brings the bundles of the line from one plan to another, and walks the rings. Only what differs is touched, and
// nothing of nodes that are dead in to. A nil from is what the bundles say. Bundles have their circuits for themselves:
// others are removed where something is to be changed.
//
// Bundles of a group, and those at the two ends of a cable that comes or goes, switch together or, if one of them
// cannot be prepared, not at all. Boards that are armed wait no longer than [ocst.ArmTimeout] for the others. What went
// well is left so when something else fails. The error matches [infinitehbd.ErrGroup] for a plan with a half-open
// cable, [infinitehbd.ErrNode] for one of another line, ErrHalfOpen when a cable was left half open, [ocs.ErrVerify]
// when the light does not close the rings of the plan, and is else that of a bundle. The Report holds what was done.
func (d *Domain) Bring(ctx context.Context, from, to *infinitehbd.Plan, opt Options) (*Report, error) {
	for _, p := range []*infinitehbd.Plan{from, to} {
		if p != nil && !slices.Equal(p.Line().Order, d.line.Order) {
			return nil, fmt.Errorf("%w: the plan is for another line than the lab", infinitehbd.ErrNode)
		}
	}
	if open := to.HalfOpen(); len(open) > 0 {
		return nil, fmt.Errorf("%w: the plan has %s on the path at one end only", infinitehbd.ErrGroup, d.cableText(open[0]))
	}
	if opt.Settle == 0 {
		opt.Settle = DefaultSettle
	}
	if opt.Patience == 0 {
		opt.Patience = DefaultPatience
	}
	now := time.Now()
	b := &bringing{d: d, opt: opt, from: from, to: to, report: &Report{}, wall: now.UTC(), ns: timeline.HostAxis().NS(now)}
	if err := b.plan(ctx); err != nil {
		return nil, err
	}
	err := b.carry(ctx)
	b.conclude()
	if walked := b.walk(ctx, err == nil); err == nil || errors.Is(walked, ErrHalfOpen) {
		err = errors.Join(err, walked)
	}
	b.report.Took = time.Since(now)
	if kept := b.keep(ctx, err); kept != nil {
		err = errors.Join(err, fmt.Errorf("the run was not kept: %w", kept))
	}
	return b.report, err
}

// plan finds what is to be switched.
func (b *bringing) plan(ctx context.Context) error {
	refs := b.d.refs(b.to.Dead()...)
	mixed := map[Ref]bool{}
	if b.from == nil {
		looks, err := b.d.lookAll(ctx, refs, 0)
		if err != nil {
			return err
		}
		states := map[infinitehbd.Node][]infinitehbd.State{}
		for _, r := range refs {
			l := looks[r]
			s, err := l.state()
			if err != nil && !errors.Is(err, ErrMixed) {
				return fmt.Errorf("%s: %w", b.d.Name(r), err)
			}
			mixed[r] = err != nil
			states[r.Node] = append(states[r.Node], s)
		}
		if b.from, err = infinitehbd.NewPlan(b.d.line, states); err != nil {
			return err
		}
	}
	for _, r := range refs {
		from, to := b.from.State(r.Node, r.Bundle), b.to.State(r.Node, r.Bundle)
		if from != to || mixed[r] {
			b.jobs = append(b.jobs, &job{ref: r, from: from, to: to})
		}
	}
	return nil
}

// carry switches part by part, all parts at the same time.
func (b *bringing) carry(ctx context.Context) error {
	parts := b.parts()
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() { errs[i] = experiment.Guard(func() error { return b.part(ctx, part) }) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// parts divides jobs so that those are together that are of one group, and those at the two ends of a cable that comes
// or goes.
func (b *bringing) parts() [][]*job {
	jobs, group := map[Ref]int{}, map[infinitehbd.Node]int{}
	part := make([]int, len(b.jobs)) // of each job, as the first that is together with it
	for i, j := range b.jobs {
		jobs[j.ref], part[i] = i, i
	}
	join := func(i, k int) {
		from, to := max(part[i], part[k]), min(part[i], part[k])
		for x := range part {
			if part[x] == from {
				part[x] = to
			}
		}
	}
	for _, c := range b.d.cables {
		i, is := jobs[Ref{c.A.Node, c.A.Bundle}]
		k, also := jobs[Ref{c.B.Node, c.B.Bundle}]
		if !is || !also {
			continue
		}
		a, o := b.jobs[i], b.jobs[k]
		if a.from == c.A.Path && o.from == c.B.Path || a.to == c.A.Path && o.to == c.B.Path {
			join(i, k)
		}
	}
	for i, g := range b.to.Groups() {
		for _, n := range g {
			group[n] = i + 1
		}
	}
	first := map[int]int{} // job of each group
	for i, j := range b.jobs {
		g := group[j.ref.Node]
		if k, met := first[g]; met {
			join(i, k)
		} else if g > 0 {
			first[g] = i
		}
	}
	all := make([][]*job, len(b.jobs))
	for i, j := range b.jobs {
		all[part[i]] = append(all[part[i]], j)
	}
	return slices.DeleteFunc(all, func(p []*job) bool { return len(p) == 0 })
}

// part switches bundles together, or none of them.
func (b *bringing) part(ctx context.Context, jobs []*job) error {
	together := ocs.NewRendezvous(len(jobs))
	err := side(jobs, func(j *job) error {
		return together.Do(ctx, func(ctx context.Context) error { return b.apply(ctx, j) })
	})
	if err != nil {
		return err
	}
	return side(jobs, func(j *job) error { return b.settle(ctx, j) })
}

// side does something with jobs side by side.
func side(jobs []*job, do func(*job) error) error {
	errs := make([]error, len(jobs))
	var all sync.WaitGroup
	for i, j := range jobs {
		all.Go(func() { errs[i] = experiment.Guard(func() error { return do(j) }) })
	}
	all.Wait()
	// A rendezvous gives everybody the error of the one that failed: that one is told first, and alone.
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil && !errors.Is(err, ocs.ErrPartner) }); i >= 0 {
		errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ocs.ErrPartner) })
	}
	return errors.Join(errs...)
}

// apply switches one bundle, reads it back and compares.
func (b *bringing) apply(ctx context.Context, j *job) error {
	sw, _, err := b.d.switchOf(ctx, j.ref)
	if err != nil {
		return err
	}
	n, err := modules(ctx, sw)
	if err != nil {
		return fmt.Errorf("%s: %w", b.d.Name(j.ref), err)
	}
	want := MapOf(j.to, n)
	if b.opt.History == nil {
		j.report, err = ocs.Reconcile(ctx, sw, want, ocs.Overwrite)
	} else {
		r := b.opt.History.Wrap(sw, history.Entry{Switch: sw.Name, Device: sw.Device, Command: b.opt.Command})
		j.report, err = ocs.Reconcile(ctx, r, want, ocs.Overwrite)
		err = errors.Join(err, r.Confirm(j.report, err))
	}
	if err != nil {
		return fmt.Errorf("%s to %v: %w", b.d.Name(j.ref), j.to, err)
	}
	j.done = true
	j.times(n)
	return nil
}

// times says when the modules did what, as far as the receipt tells. The trigger took effect after it had begun to be
// written, and so early that the switch was over when the last module was read.
func (j *job) times(n int) {
	r := j.report.Receipt
	axis := timeline.HostAxis()
	for m := range n {
		t := ModuleTime{Ref: j.ref, Module: m + 1, From: j.from, To: j.to}
		i := slices.IndexFunc(r.Parts, func(p ocs.Part) bool { return p.Name == fmt.Sprintf("module %d", m+1) })
		if i < 0 || r.SendStart.IsZero() {
			continue // it was as it should be
		}
		t.Took = r.Parts[i].Took
		sent, over := axis.NS(r.SendStart), axis.NS(r.Acked)
		t.Command = axis.Span(r.SendStart, r.Sent)
		t.Busy = timeline.Between(sent, max(sent, over-int64(t.Took)))
		t.Settled = timeline.Between(sent+int64(t.Took), max(sent+int64(t.Took), over))
		j.modules = append(j.modules, t)
	}
}

// settle waits until the lanes of a bundle are locked, and writes down when. A bundle that is dark has nothing to lock.
func (b *bringing) settle(ctx context.Context, j *job) error {
	if len(j.modules) == 0 {
		return nil
	}
	until := time.Now().Add(b.opt.Patience)
	last := make([]int64, len(j.modules)) // when a reading began that was too early
	clear, locked := make([]bool, len(j.modules)), make([]bool, len(j.modules))
	for {
		l := b.d.look(ctx, j.ref, 0)
		if l.err != nil {
			return l.err
		}
		all := true
		for i := range j.modules {
			t := &j.modules[i]
			at := timeline.Between(max(t.Settled.Earliest, last[i]), max(t.Settled.Earliest, l.at.Latest))
			lit, lock, wear := l.lit(t.Module, j.to)
			t.Switches = wear
			if lit && !clear[i] {
				clear[i], t.Clear = true, at
			}
			if lit && lock && !locked[i] {
				locked[i], t.Locked = true, at
			}
			if !locked[i] {
				last[i], all = l.at.Earliest, false
			}
		}
		if all || j.to == infinitehbd.Dark || time.Now().After(until) {
			return nil // the walk says what is missing
		}
		if err := pause.For(ctx, 200*time.Microsecond); err != nil {
			return err
		}
	}
}

// lit reports whether all lanes of a module have light in a state, whether they are locked, and its wear.
func (l *look) lit(module int, s infinitehbd.State) (light, locked bool, switches uint32) {
	for i := range l.modules {
		t := &l.modules[i]
		if t.Slot+1 != module {
			continue
		}
		light, locked = true, true
		for lane := range t.Lanes {
			light = light && sends(&t.Lanes[lane], s) && receives(&t.Lanes[lane], s)
			locked = locked && t.Lanes[lane].Lock == ocst.Locked
		}
		return light, locked, t.Switches
	}
	return false, false, 0
}

// conclude works out what the report says of all.
func (b *bringing) conclude() {
	r := b.report
	in := map[infinitehbd.Node]int{}
	groups := b.to.Groups()
	times := make([]GroupTime, len(groups))
	for i, g := range groups {
		times[i].Group = g
		for _, n := range g {
			in[n] = i + 1
		}
	}
	for _, j := range b.jobs {
		if len(j.modules) == 0 {
			continue
		}
		r.Bundles++
		begun := timeline.Point(timeline.HostAxis().NS(j.report.Receipt.Begun))
		r.Begun = earlier(r.Bundles == 1, r.Begun, begun)
		r.Lanes += lanes * len(j.modules)
		if g := in[j.ref.Node]; g > 0 {
			times[g-1].Bundles++
		}
		for _, t := range j.modules {
			first := len(r.Modules) == 0
			r.Command = earlier(first, r.Command, t.Command)
			r.Light, r.Locked = timeline.Later(r.Light, t.Settled), timeline.Later(r.Locked, t.Locked)
			r.Modules = append(r.Modules, t)
			if g := in[t.Node]; g > 0 {
				g := &times[g-1]
				g.Dark = earlier(g.Dark == (timeline.Interval{}), g.Dark, t.Busy)
				g.Locked = timeline.Later(g.Locked, t.Locked)
				g.Down.Earliest = max(g.Down.Earliest, int64(t.Took))
			}
		}
	}
	for _, t := range times {
		if t.Bundles > 0 {
			down := since(t.Locked, t.Dark)
			t.Down = timeline.Between(max(t.Down.Earliest, down.Earliest), max(t.Down.Earliest, down.Latest))
			r.Groups = append(r.Groups, t)
		}
	}
	b.halfOpen()
}

// since is how long after another instant one was that came later for certain.
func since(later, first timeline.Interval) timeline.Interval {
	d := later.Sub(first)
	return timeline.Between(max(0, d.Earliest), max(0, d.Latest))
}

func earlier(first bool, a, b timeline.Interval) timeline.Interval {
	if first {
		return b
	}
	return timeline.Earlier(a, b)
}

// halfOpen works out how long cables had one end on the path alone.
func (b *bringing) halfOpen() {
	jobs := map[Ref]*job{}
	for _, j := range b.jobs {
		jobs[j.ref] = j
	}
	for _, c := range b.d.cables {
		ja, jb := jobs[Ref{c.A.Node, c.A.Bundle}], jobs[Ref{c.B.Node, c.B.Bundle}]
		if ja == nil || jb == nil || !ja.done || !jb.done {
			continue
		}
		var a, o timeline.Interval
		switch {
		case ja.to == c.A.Path && jb.to == c.B.Path:
			a, o = ja.last(), jb.last()
		case ja.from == c.A.Path && jb.from == c.B.Path && ja.to != c.A.Path && jb.to != c.B.Path:
			a, o = ja.first(), jb.first()
		default:
			continue
		}
		b.report.HalfOpen = append(b.report.HalfOpen, HalfOpen{c, apart(a, o)})
	}
	slices.SortStableFunc(b.report.HalfOpen, func(x, y HalfOpen) int { return int(y.For.Latest - x.For.Latest) })
	for _, h := range b.report.HalfOpen {
		if h.For.Earliest > int64(b.opt.Settle) {
			b.report.Alarms = append(b.report.Alarms, h)
		}
	}
}

// last is when the last module of a bundle had let its light out, first when the first had taken it away.
func (j *job) last() (at timeline.Interval) {
	for _, t := range j.modules {
		at = timeline.Later(at, t.Settled)
	}
	return at
}

func (j *job) first() (at timeline.Interval) {
	for i, t := range j.modules {
		at = earlier(i == 0, at, t.Busy)
	}
	return at
}

// apart is how far two instants are from each other.
func apart(a, b timeline.Interval) timeline.Interval {
	d := a.Sub(b)
	switch {
	case d.Earliest > 0:
		return d
	case d.Latest < 0:
		return timeline.Between(-d.Latest, -d.Earliest)
	}
	return timeline.Between(0, max(-d.Earliest, d.Latest))
}

// walk follows the light in the end, also when something has failed. It checks it if all went well.
func (b *bringing) walk(ctx context.Context, well bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	patience := b.opt.Patience
	if !well {
		patience = 0 // what failed is dark
	}
	w, err := b.d.Await(ctx, patience, b.to.Dead()...)
	if err != nil {
		return err
	}
	b.report.Walk = w
	if len(w.HalfOpen) > 0 {
		return fmt.Errorf("%w: %s is on the path at one end only", ErrHalfOpen, b.d.cableText(w.HalfOpen[0]))
	}
	if !well {
		return nil
	}
	return b.d.Check(w, b.to)
}
