package hbd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ErrTrace: events that cannot have been.
var ErrTrace = errors.New("the trace cannot be replayed")

// Event is a node that goes down or comes back.
type Event struct {
	At   time.Duration // since the trace began
	Node infinitehbd.Node
	Down bool
}

// ReplayOptions of [Replay].
type ReplayOptions struct {
	Line infinitehbd.Line
	Size int           // nodes of a group
	For  time.Duration // how long the trace is; 0 is until its last event
	Plan Planner       // nil is Fewest(Size)
	// Emulate are the bundles of which one module is emulated; nil is all, an empty list none.
	Emulate []Ref
	Seed    uint64 // of the modules
}

// Replayed is what a trace came to.
type Replayed struct {
	For     time.Duration
	Events  int
	Plans   int // that were made: events at the same time share one
	Points  []WastePoint
	Waste   float64 // mean over time of GPUs that live and are in no group, of all GPUs
	Dead    float64 // mean share of GPUs that are dead
	Bundles uint64  // that were switched, each time counted
	Wear    []Wear  // of the emulated modules, most worn first
	// MeanPerYear is how often a module of the emulated bundles switches in a year of 365 days, in the mean.
	MeanPerYear float64
	Planning    time.Duration // all plans together
	Took        time.Duration
}

// Speed is how much faster than time the replay was.
func (r *Replayed) Speed() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.For) / float64(r.Took)
}

// WastePoint is what holds from a time on.
type WastePoint struct {
	At       time.Duration
	Dead     int     // nodes
	Idle     int     // nodes that live and are in no group
	Groups   int     // rings
	Waste    float64 // share of GPUs that live and are in no group
	Switched int     // bundles
}

// Wear is how often a module has switched, by its own counter.
type Wear struct {
	Ref
	Name     string // of the bundle, as [Name] returns it
	Switches uint32
}

// Replay goes through a trace: at each event a plan is made for all nodes, and its switchings are carried out on
// emulated modules in virtual time, one for each of some bundles. In the end their counters are read, and compared with
// what was planned: an error that matches [ocs.ErrVerify] names the first that differs. A node that goes down takes the
// power from its modules; when it comes back they start anew. Modules do not drift nor age: those that run for a year
// are trimmed while they do.
//
// The error matches ErrTrace for events that cannot be: a node that is not in the line, goes down twice or comes back
// without having been down, or a time below 0. It is else that of the planner.
func Replay(ctx context.Context, events []Event, opt ReplayOptions) (*Replayed, error) {
	began := time.Now()
	if opt.Plan == nil {
		opt.Plan = Fewest(opt.Size)
	}
	events, err := checkTrace(events, &opt)
	if err != nil {
		return nil, err
	}
	p, err := newReplay(opt)
	if err != nil {
		return nil, err
	}
	if err := p.start(); err != nil {
		return nil, err
	}
	for i := 0; i < len(events); {
		if err := context.Cause(ctx); err != nil {
			return p.result, err
		}
		j := i
		for j < len(events) && events[j].At == events[i].At {
			j++
		}
		if err := p.step(events[i:j]); err != nil {
			return p.result, err
		}
		i = j
	}
	err = p.finish(opt.For)
	p.result.Events, p.result.Took = len(events), time.Since(began)
	return p.result, err
}

// checkTrace returns events in order of time, and the time of the trace.
func checkTrace(events []Event, opt *ReplayOptions) ([]Event, error) {
	if err := opt.Line.Check(); err != nil {
		return nil, err
	}
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	in, down := map[infinitehbd.Node]bool{}, map[infinitehbd.Node]bool{}
	for _, n := range opt.Line.Order {
		in[n] = true
	}
	for _, e := range events {
		switch {
		case e.At < 0:
			return nil, fmt.Errorf("%w: an event of node %d at %v: want 0 or later", ErrTrace, e.Node, e.At)
		case !in[e.Node]:
			return nil, fmt.Errorf("%w: an event at %v of node %d, which is not in the line", ErrTrace, e.At, e.Node)
		case down[e.Node] && e.Down:
			return nil, fmt.Errorf("%w: node %d goes down at %v and is down already", ErrTrace, e.Node, e.At)
		case !down[e.Node] && !e.Down:
			return nil, fmt.Errorf("%w: node %d comes back at %v and was not down", ErrTrace, e.Node, e.At)
		}
		down[e.Node] = e.Down
	}
	last := time.Duration(0)
	if len(events) > 0 {
		last = events[len(events)-1].At
	}
	if opt.For == 0 {
		opt.For = last
	}
	if opt.For < last || opt.For < 0 {
		return nil, fmt.Errorf("%w: it is %v long, and its last event is at %v", ErrTrace, opt.For, last)
	}
	return events, nil
}

// replay is a trace that is gone through.
type replay struct {
	opt     ReplayOptions
	clock   *ocstrx.VirtualClock
	modules map[Ref]*ocstrx.Module
	planned map[Ref]uint32
	down    map[infinitehbd.Node]bool
	running *infinitehbd.Plan
	at      time.Duration // of the last point
	area    [2]float64    // of waste and dead, in node-seconds
	result  *Replayed
}

func newReplay(opt ReplayOptions) (*replay, error) {
	p := &replay{opt: opt, clock: &ocstrx.VirtualClock{}, modules: map[Ref]*ocstrx.Module{}, planned: map[Ref]uint32{},
		down: map[infinitehbd.Node]bool{}, result: &Replayed{For: opt.For}}
	emulate := opt.Emulate
	if emulate == nil {
		emulate = (&Domain{line: opt.Line}).refs()
	}
	in := map[infinitehbd.Node]bool{}
	for _, n := range opt.Line.Order {
		in[n] = true
	}
	params := ocstrx.DefaultParams()
	params.Drift, params.Ageing, params.LaserDrift = 0, 0, 0
	names := namesOf(opt.Line)
	made := make([]*ocstrx.Module, len(emulate))
	for _, r := range emulate {
		if !in[r.Node] || r.Bundle < 0 || r.Bundle >= len(opt.Line.Layout.Bundles) {
			return nil, fmt.Errorf("%w: there is no bundle %d of node %d to emulate", infinitehbd.ErrNode, r.Bundle, r.Node)
		}
	}
	err := spread(len(emulate), func(i int) error {
		made[i] = ocstrx.NewModule(params, ocstrx.Options{Name: names[emulate[i].Node][emulate[i].Bundle],
			Seed: opt.Seed + uint64(i), Clock: p.clock})
		return nil
	})
	for i, r := range emulate {
		p.modules[r] = made[i]
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// starting is more than what a module takes to be ready, and switching more than a switch.
const (
	starting  = 50 * time.Millisecond
	switching = 2 * time.Millisecond
)

// start brings about the first plan.
func (p *replay) start() error {
	dark, err := infinitehbd.NewPlan(p.opt.Line, nil)
	if err != nil {
		return err
	}
	groups, err := p.opt.Line.Place(p.opt.Size, nil)
	if err != nil {
		return err
	}
	first, err := p.opt.Line.Build(groups, nil)
	if err != nil {
		return err
	}
	p.running = first
	p.clock.Advance(starting)
	switched, err := p.carry(infinitehbd.Diff(dark, first))
	p.point(0, switched)
	return err
}

// step does events of one time.
func (p *replay) step(events []Event) error {
	at := events[0].At
	p.account(at)
	if behind := at - p.clock.Now(); behind > 0 {
		p.clock.Advance(behind)
	}
	for _, e := range events {
		p.down[e.Node] = e.Down
		for b := range p.opt.Line.Layout.Bundles {
			if m := p.modules[Ref{e.Node, b}]; m != nil && e.Down {
				m.BrownOut()
			}
		}
	}
	p.clock.Advance(starting)
	var dead []infinitehbd.Node
	for _, n := range p.opt.Line.Order {
		if p.down[n] {
			dead = append(dead, n)
		}
	}
	began := time.Now()
	to, err := p.opt.Plan(p.running, dead)
	p.result.Planning += time.Since(began)
	if err != nil {
		return fmt.Errorf("at %v: %w", at, err)
	}
	diff := infinitehbd.Diff(p.running, to)
	p.running = to
	switched, err := p.carry(diff)
	p.point(at, switched)
	return err
}

// carry has modules switch, all at the same time.
func (p *replay) carry(all []infinitehbd.Switching) (int, error) {
	p.result.Plans++
	p.result.Bundles += uint64(len(all))
	var emulated []infinitehbd.Switching
	for _, s := range all {
		if r := (Ref{s.Node, s.Bundle}); p.modules[r] != nil {
			p.planned[r]++
			emulated = append(emulated, s)
		}
	}
	err := spread(len(emulated), func(i int) error {
		s := emulated[i]
		m := p.modules[Ref{s.Node, s.Bundle}]
		if err := m.Write(context.Background(), ocst.At(ocst.RegStaged),
			[]byte{byte(pathOf[s.To]), 0xff, byte(ocst.CommitNow)}); err != nil {
			return fmt.Errorf("%s: %w", m.Name(), err)
		}
		return nil
	})
	p.clock.Advance(switching)
	return len(all), err
}

// pathOf is what a module calls a state.
var pathOf = map[infinitehbd.State]ocst.Path{
	infinitehbd.Loop: ocst.LoopPath, infinitehbd.Path1: ocst.Path1, infinitehbd.Path2: ocst.Path2, infinitehbd.Dark: ocst.Dark,
}

// spread does n things on all processors, and returns all errors in order.
func spread(n int, do func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = experiment.Guard(func() error { return do(i) })
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// account adds what has held since the last point.
func (p *replay) account(at time.Duration) {
	if n := len(p.result.Points); n > 0 {
		last := p.result.Points[n-1]
		p.area[0] += float64(last.Idle) * (at - p.at).Seconds()
		p.area[1] += float64(last.Dead) * (at - p.at).Seconds()
	}
	p.at = at
}

// point writes down what holds from now on.
func (p *replay) point(at time.Duration, switched int) {
	idle, dead := len(p.running.Idle()), len(p.running.Dead())
	p.result.Points = append(p.result.Points, WastePoint{At: at, Dead: dead, Idle: idle, Groups: len(p.running.Groups()),
		Waste: float64(idle) / float64(len(p.opt.Line.Order)), Switched: switched})
}

// finish reads the counters.
func (p *replay) finish(end time.Duration) error {
	p.account(end)
	r := p.result
	if end > 0 {
		all := float64(len(p.opt.Line.Order)) * end.Seconds()
		r.Waste, r.Dead = p.area[0]/all, p.area[1]/all
	}
	total := 0.0
	for ref, m := range p.modules {
		buf := make([]byte, ocst.StatusSpan.Length)
		if err := m.Read(context.Background(), ocst.StatusSpan.Address, buf); err != nil {
			return fmt.Errorf("%s: %w", m.Name(), err)
		}
		s, err := ocst.DecodeStatus(buf)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name(), err)
		}
		r.Wear = append(r.Wear, Wear{ref, m.Name(), s.Switches})
		total += float64(s.Switches)
	}
	slices.SortFunc(r.Wear, func(a, b Wear) int {
		return cmp.Or(cmp.Compare(b.Switches, a.Switches), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Bundle, b.Bundle))
	})
	if years := end.Hours() / (365 * 24); years > 0 && len(r.Wear) > 0 {
		r.MeanPerYear = total / float64(len(r.Wear)) / years
	}
	for _, w := range r.Wear {
		if w.Switches != p.planned[w.Ref] {
			return fmt.Errorf("%w: the module of %s has counted %d switches, and %d were planned", ocs.ErrVerify,
				p.modules[w.Ref].Name(), w.Switches, p.planned[w.Ref])
		}
	}
	return nil
}
