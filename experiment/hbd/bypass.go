package hbd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// Planner returns the plan to go on with when nodes are dead: all of them, not only those that have died just now.
type Planner func(running *infinitehbd.Plan, dead []infinitehbd.Node) (*infinitehbd.Plan, error)

// Fewest plans as [infinitehbd.Repair]: as many groups of m nodes as there can be, and the fewest bundles switched. 0
// is as many nodes as the groups have that run.
func Fewest(m int) Planner {
	return func(running *infinitehbd.Plan, dead []infinitehbd.Node) (*infinitehbd.Plan, error) {
		r, err := infinitehbd.Repair(running, dead, infinitehbd.RepairOptions{Size: m})
		if r != nil && errors.Is(err, infinitehbd.ErrRoom) {
			return r.Plan, nil // no ring is left, and that is what there is to be brought about
		}
		if err != nil {
			return nil, err
		}
		return r.Plan, nil
	}
}

// Cut plans as the paper: groups of m nodes are cut anew from the front of the line ([infinitehbd.Line.Place]).
func Cut(m int) Planner {
	return func(running *infinitehbd.Plan, dead []infinitehbd.Node) (*infinitehbd.Plan, error) {
		line := running.Line()
		groups, err := line.Place(m, dead)
		if err != nil {
			return nil, err
		}
		return line.Build(groups, dead)
	}
}

// BypassOptions of [Domain.Bypass].
type BypassOptions struct {
	Options
	Detect DetectOptions
	Plan   Planner // nil is Fewest(0)
	// Fail makes the failure, once all bundles are watched, and returns when it is there. Nil waits for one to come.
	Fail func(ctx context.Context) error
}

// Moment is something that happened on the way around a node.
type Moment struct {
	Name   string            // "killed", "dark", "detected", "planned", "command", "triggered", "switched", "locked", "walked"
	At     timeline.Interval // on the axis of this host
	Source string            // who says so
}

// Bypass is how a node that died was bypassed.
type Bypass struct {
	Failure *Failure
	// Moments are in the order in which they must have happened. "killed" is there only when Fail was called.
	Moments []Moment
	Plan    *infinitehbd.Plan // that was brought about
	Report  *Report
	// Planning is how long the planner took.
	Planning time.Duration
	Groups   int // rings before
	// Lost are the groups that the failure took the light from; Kept those that were not touched; Moved are others,
	// whose bundles were switched to make room.
	Lost, Kept, Moved []infinitehbd.Group
	// DeadGPUs are those of nodes that died, IdleGPUs those of living nodes that were in a group and are in none now.
	DeadGPUs, IdleGPUs int
	// Down is from the failure, or the dark if nobody says when it failed, until the last lane was locked of the rings
	// in which living nodes of the lost groups are now. Back is false, and Down zero, if there are none: all of them
	// are idle.
	Down timeline.Interval
	Back bool
	// Disturbed is the longest time for which a ring was away that had not lost anybody, from first dark to last lock.
	Disturbed timeline.Interval
}

// ErrNoBypass: what failed is no node.
var ErrNoBypass = errors.New("what failed is no node, and only nodes are bypassed")

// Bypass watches all bundles until a node dies, or several at once, plans without them, and brings the plan about. The
// error matches ErrNoBypass if anything else fails, [infinitehbd.ErrGroup] or others of the planner, and is else that
// of [Domain.Detect] or [Domain.Bring]. The result holds what was done.
func (d *Domain) Bypass(ctx context.Context, running *infinitehbd.Plan, opt BypassOptions) (*Bypass, error) {
	if opt.Plan == nil {
		opt.Plan = Fewest(0)
	}
	b := &Bypass{Groups: len(running.Groups())}
	opt.Detect.Without = running.Dead()
	if err := b.detect(ctx, d, opt); err != nil {
		return b, err
	}
	f := b.Failure
	if f.Kind != NodeDead {
		return b, fmt.Errorf("%w: %s", ErrNoBypass, f.Text)
	}
	began := time.Now()
	plan, err := opt.Plan(running, append(running.Dead(), b.dead()...))
	b.Planning = time.Since(began)
	if err != nil {
		return b, err
	}
	b.Plan = plan
	b.add("planned", timeline.HostAxis().Span(began.Add(b.Planning), time.Now()), "planner")
	b.Report, err = d.Bring(ctx, running, plan, opt.Options)
	if b.Report != nil {
		b.conclude(running)
	}
	return b, err
}

func (b *Bypass) add(name string, at timeline.Interval, source string) {
	b.Moments = append(b.Moments, Moment{name, at, source})
}

// detect watches, and makes the failure.
func (b *Bypass) detect(ctx context.Context, d *Domain, opt BypassOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	told := opt.Detect.Began
	opt.Detect.Began = func() {
		close(watched)
		if told != nil {
			told()
		}
	}
	failed := make(chan error, 1)
	go func() {
		defer close(failed)
		select {
		case <-watched:
		case <-ctx.Done():
			return
		}
		if opt.Fail == nil {
			return
		}
		from := time.Now()
		err := experiment.Guard(func() error { return opt.Fail(ctx) })
		b.add("killed", timeline.HostAxis().Span(from, time.Now()), "emulator")
		if err != nil {
			cancel() // nothing will be seen
		}
		failed <- err
	}()
	var err error
	b.Failure, err = d.Detect(ctx, opt.Detect)
	cancel()
	if why := <-failed; why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	if err != nil {
		return err
	}
	if b.Failure.Dark != (timeline.Interval{}) {
		b.add("dark", b.Failure.Dark, "receivers of neighbours")
	}
	b.add("detected", b.Failure.Seen, "detector")
	return nil
}

// conclude works out what the bypass came to.
func (b *Bypass) conclude(running *infinitehbd.Plan) {
	r := b.Report
	if r.Bundles > 0 {
		b.add("command", r.Begun, "driver")
		b.add("triggered", r.Command, "driver")
		b.add("switched", r.Light, "modules")
		b.add("locked", r.Locked, "modules")
	}
	if r.Walk != nil {
		b.add("walked", r.Walk.At, "light")
	}
	switched := map[infinitehbd.Node]bool{}
	for _, m := range r.Modules {
		switched[m.Node] = true
	}
	after := map[infinitehbd.Node]bool{}
	for _, g := range b.Plan.Groups() {
		for _, n := range g {
			after[n] = true
		}
	}
	gpus := b.Plan.Line().Layout.GPUs
	b.DeadGPUs = gpus * len(b.dead())
	isDead := func(n infinitehbd.Node) bool { return slices.Contains(b.dead(), n) }
	for _, g := range running.Groups() {
		switch {
		case slices.ContainsFunc(g, isDead):
			b.Lost = append(b.Lost, g)
		case slices.ContainsFunc(g, func(n infinitehbd.Node) bool { return switched[n] }):
			b.Moved = append(b.Moved, g)
		default:
			b.Kept = append(b.Kept, g)
		}
		for _, n := range g {
			if !isDead(n) && !after[n] {
				b.IdleGPUs += gpus
			}
		}
	}
	var locked timeline.Interval
	for _, g := range r.Groups {
		if slices.ContainsFunc(g.Group, func(n infinitehbd.Node) bool { return b.lost(n) }) {
			b.Back, locked = true, timeline.Later(locked, g.Locked)
		} else {
			b.Disturbed = timeline.Later(b.Disturbed, g.Down)
		}
	}
	if b.Back {
		b.Down = since(locked, b.Moments[0].At)
	}
}

// dead returns the nodes that have died.
func (b *Bypass) dead() []infinitehbd.Node {
	all := []infinitehbd.Node{b.Failure.Node}
	for _, f := range b.Failure.Also {
		all = append(all, f.Node)
	}
	return all
}

// lost reports whether a node was in a ring that the failure took the light from.
func (b *Bypass) lost(n infinitehbd.Node) bool {
	return slices.ContainsFunc(b.Lost, func(g infinitehbd.Group) bool { return slices.Contains(g, n) })
}

// At returns when something happened, and whether it did.
func (b *Bypass) At(name string) (timeline.Interval, bool) {
	for _, m := range b.Moments {
		if m.Name == name {
			return m.At, true
		}
	}
	return timeline.Interval{}, false
}

// SetPower takes power from all emulated boards of a node at the same time, or gives it back. The error matches
// [ocs.ErrNotSupported] for bundles that are not emulated by this program.
func (d *Domain) SetPower(ctx context.Context, n infinitehbd.Node, on bool) error {
	var boards []interface{ SetPower(bool) error }
	for b := range d.line.Layout.Bundles {
		r := Ref{n, b}
		sw, err := d.lab.Switch(ctx, d.Name(r))
		if err != nil {
			return err
		}
		if sw.Emulated == nil {
			return fmt.Errorf("%s is not emulated here: %w", d.Name(r), ocs.ErrNotSupported)
		}
		boards = append(boards, sw.Emulated)
	}
	for _, b := range boards {
		if err := b.SetPower(on); err != nil {
			return err
		}
	}
	return nil
}
