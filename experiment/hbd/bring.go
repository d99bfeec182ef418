package hbd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// ErrHalfOpen: a cable was left with one end on the path and the other not.
var ErrHalfOpen = errors.New("a cable is half open")

// Defaults of [Options].
const (
	DefaultSettle   = time.Millisecond // in which a change of path is over (InfiniteHBD, section 4.1)
	DefaultPatience = 2 * time.Second
)

// Options of [Domain.Bring]. The zero value keeps no run.
type Options struct {
	Store             *runs.Store // keeps a run of it when it is over; nil keeps none
	Name, About       string      // of the run; "" is "infinitehbd"
	LabText           []byte      // that the lab was parsed from; nil stores what the lab writes as
	Args              []string    // the arguments that begin it, for people
	Version, Revision string      // of ocslab

	// Mode is what may happen to light that is nobody's on a bundle that is to be switched: Safe (the zero value) gives
	// ocs.ErrConflict, Update takes it. A loop may always be taken, as it leads out of no node, and so may circuits of
	// from, of to, and of the plans in Ours.
	Mode ocs.Policy
	Ours []*infinitehbd.Plan

	// Settle is the settle window: a cable that is certainly half open for longer is an alarm. 0 is DefaultSettle.
	Settle time.Duration
	// Patience is how long receivers may take to lock; 0 is DefaultPatience.
	Patience time.Duration
}

// Report is what [Domain.Bring] came to.
type Report struct {
	Run     string // its ID; "" if none was kept
	Bundles int    // that were switched, and not put back
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
	Switch   string // of the lab
	Module   int    // from 1
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
	Text  string // "the cable n02-r/1 - n03-l/1"
	For   timeline.Interval
}

// job is a bundle that is switched.
type job struct {
	ref      Ref
	name     string // of the switch
	from, to infinitehbd.State
	report   ocs.Report
	done     bool // all of it was brought about
	modules  []ModuleTime
	watch    watch
}

// bringing is a plan that is being brought about.
type bringing struct {
	d      *Domain
	opt    Options
	from   *infinitehbd.Plan
	to     *infinitehbd.Plan
	ours   []*infinitehbd.Plan // whose circuits may be taken; see Options.Mode
	jobs   []*job              // in the order of the line
	report *Report
	wall   time.Time
	ns     int64
}

// Bring brings the bundles of the line from one plan to another, and walks the rings. Only what differs is touched, and
// nothing of nodes that are dead in to. A nil from is what the bundles say, and nothing is sent then before all of them
// have been checked under Options.Mode. Bundles have their circuits for themselves: others are removed where something
// is to be changed.
//
// Bundles of a group, and those at the two ends of a cable that comes or goes, switch together or, if one of them
// fails, not at all: those that have switched are put back. Boards that are armed wait no longer than ocst.ArmTimeout
// for the others. Bundles that do not switch together do not depend on each other. The error matches
// [infinitehbd.ErrGroup] for a plan with a half-open cable, [infinitehbd.ErrNode] for one of another line,
// [ocs.ErrConflict] for light that is nobody's, ErrHalfOpen when a cable was left half open, [ocs.ErrVerify] when the
// light does not close the rings of the plan, and is else that of a bundle. The Report holds what was done.
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
	b := &bringing{d: d, opt: opt, from: from, to: to, ours: append(slices.Clone(opt.Ours), to), report: &Report{}, wall: now.UTC(), ns: timeline.HostAxis().NS(now)}
	if from != nil {
		b.ours = append(b.ours, from)
	}
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
	var looks map[Ref]look
	if b.from == nil {
		var err error
		if looks, err = b.d.lookAll(ctx, refs, 0); err != nil {
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
			if l, asked := looks[r]; asked {
				if err := b.foreign(r, l.circuits(), len(l.modules)); err != nil {
					return err
				}
			}
			b.jobs = append(b.jobs, &job{ref: r, name: b.d.Name(r), from: from, to: to})
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

// part switches bundles together, or none of them, and watches their receivers until they have settled.
func (b *bringing) part(ctx context.Context, jobs []*job) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	intents := make([]lab.Intent, len(jobs))
	for i, j := range jobs {
		var err error
		if intents[i], err = b.intent(ctx, j, watching); err != nil {
			return err
		}
	}
	reports, err := b.d.lab.Gate().ApplyAll(ctx, intents)
	for i, j := range jobs {
		j.report, j.done = reports[i].Report, err == nil
	}
	if err != nil {
		cancel() // the walk says what is missing
	}
	errs := make([]error, len(jobs))
	var all sync.WaitGroup
	for i, j := range jobs {
		all.Go(func() { errs[i] = experiment.Guard(j.watch.wait) })
	}
	all.Wait()
	for i, j := range jobs {
		if reports[i].PutBack {
			j.modules = nil
		}
	}
	return cmp.Or(err, errors.Join(errs...))
}

// intent is the change of one bundle. Its receivers are watched with another context, from when it has switched on.
func (b *bringing) intent(ctx context.Context, j *job, watching context.Context) (i lab.Intent, err error) {
	opened, t, err := b.d.switchOf(ctx, j.ref)
	if err != nil {
		return i, err
	}
	n, err := modules(ctx, opened)
	if err != nil {
		return i, fmt.Errorf("%s: %w", b.d.Name(j.ref), err)
	}
	return lab.Intent{
		On: opened, Verify: lab.VerifyTable, // the walk looks at the light
		Plan: func(have ocs.Map) (ocs.Change, error) {
			c, err := ocs.Plan(have, MapOf(j.to, n), ocs.Overwrite)
			if err == nil && !c.Empty() {
				err = b.foreign(j.ref, have, n)
			}
			return c, err
		},
		Wrap: func(sw ocs.Switch) ocs.Switch {
			return &timed{Switch: sw, job: j, begin: func() {
				j.watch.begin(func() error { return b.settle(watching, j, t) })
			}}
		},
	}, nil
}

// foreign returns why a bundle may not be switched that holds have: see Options.Mode.
func (b *bringing) foreign(r Ref, have ocs.Map, modules int) error {
	if b.opt.Mode != "" && b.opt.Mode != ocs.Safe {
		return nil
	}
	known := []ocs.Map{MapOf(infinitehbd.Loop, modules)}
	for _, p := range b.ours {
		known = append(known, MapOf(p.State(r.Node, r.Bundle), modules))
	}
	for c := range have.All() {
		if !slices.ContainsFunc(known, func(m ocs.Map) bool { return m.Has(c) }) {
			return fmt.Errorf("%s: %w: it has the circuit %v, which is of none of the plans: the mode update takes it",
				b.d.Name(r), ocs.ErrConflict, c)
		}
	}
	return nil
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
		b.report.HalfOpen = append(b.report.HalfOpen, HalfOpen{c, b.d.cableText(c), apart(a, o)})
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
