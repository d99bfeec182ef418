package replay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/opus"
)

// Defaults of Options: the protocol by which the paper measures (section 5.2).
const (
	DefaultSteps  = 5
	DefaultWarmUp = 5
)

// ErrOptions: what is to be replayed makes no sense. Test with errors.Is.
var ErrOptions = errors.New("cannot be replayed")

// Options say what is replayed, and against what.
type Options struct {
	Trace *trace.Trace
	Job   opus.Job // the zero Job: that of the trace
	Rails []string // the names of those that are played here
	Ranks []int    // of each rail, that are played here; nil: all. The others are played by other processes

	// AllRails is how many rails the job has, whoever plays them; 0 is len(Rails). A dead rail's traffic is shared by the others.
	AllRails int
	// Switches are the names that the plane and the log know the switches of rails by; a rail that is not in it is on a
	// switch of its own name.
	Switches map[string]string

	// Dial returns what connects a rank's shim to the controller. It is not needed with Native.
	Dial func(rail string, rank int) func(context.Context) (net.Conn, error)
	// Native leaves out the control plane and the circuits: each operation runs at once at the full bandwidth of a rank. It is
	// the baseline.
	Native  bool
	Mode    shim.Mode                          // of the shims
	Timeout time.Duration                      // of the shims; 0 is theirs
	Profile int                                // steps that shims learn from; 0 is their default
	Host    func(rail string, rank int) string // of a rank, for messages; nil, or "": nobody says

	Plane plane.Plane
	Clock *plane.Clock // that ranks sleep by; nil is package time

	Steps  int // that are measured; 0 is DefaultSteps
	WarmUp int // steps before those; 0 is DefaultWarmUp, and below 0 there are none

	// Compress makes computation and operations that many times shorter than the trace says; 0 is 1. To see what a switch of
	// time d would do to the real job, let the emulated one take d/Compress and look at Step.Scaled.
	Compress float64
	// IgnoreLanes takes the durations of the trace to be those on the circuits that there are on the plan, so that
	// an operation that has only some of the ports of a rank is not slower.
	IgnoreLanes bool

	// Log gets every operation of every rank on a rail, when it is complete, one at a time. Progress gets every step, also of
	// the warm-up, when the last rank here has finished it. Both must return soon.
	Log      func(check.Op)
	Progress func(Step)
	// Events gets what the shims log, of which rank.
	Events func(rail string, rank int, e shim.Event)
}

// Step is a step of all ranks that are played here.
type Step struct {
	Index  int  // from 0, counting those of the warm-up
	WarmUp bool //

	// Wall is the time from the end of the step before (of the first: from when all shims were connected) at the last rank to
	// the end of this one at the last. Scaled is Wall times Options.Compress: what the step takes if everything, also
	// the switch and the control plane, is as much slower.
	Wall, Scaled time.Duration

	Ops   int   // on rails
	Asked int   // of them, for how many the shim had to ask the controller
	Lost  int64 // bytes
	// Reconfigurations is by how much the generations of the rails went up, as the grants of this step tell: a change that
	// comes after a step's last grant counts for the next step. -1: no rank was told a generation before.
	Reconfigurations int

	// Waited is how long PreOp took, in sum and for the rank that waited longest. It includes waiting for the other members of
	// groups, which is no fault of the control plane: what that costs is the difference of Wall to a Native run.
	Waited, LongestWait time.Duration
	// Late is by how much ranks that then had to ask woke up late, in sum over the operations of the rank of which it is
	// most: the step may be that much too long. LatestWake is the most that a rank was late at all.
	Late, LatestWake time.Duration

	OnRing, Detours int // operations that ran on the giant ring, and on other rails
}

// Result is what a replay has measured.
type Result struct {
	Steps []Step // those after the warm-up that all ranks have finished
	Warm  []Step // those of the warm-up
	Lost  int64  // bytes, warm-up and unfinished steps included
	Ops   int    // on rails, in the same way
	Shims []ShimStats
}

// ShimStats are what the shim of a rank counted.
type ShimStats struct {
	Rail  string
	Rank  int
	Stats shim.Stats
}

// Mean returns the mean of the measured steps; Index is how many they are. Counts are rounded down.
func (r *Result) Mean() Step {
	var m Step
	n := len(r.Steps)
	if n == 0 {
		return m
	}
	for _, s := range r.Steps {
		m.Wall += s.Wall
		m.Scaled += s.Scaled
		m.Ops += s.Ops
		m.Asked += s.Asked
		m.Lost += s.Lost
		m.Reconfigurations += s.Reconfigurations
		m.Waited += s.Waited
		m.LongestWait += s.LongestWait
		m.Late += s.Late
		m.LatestWake = max(m.LatestWake, s.LatestWake)
		m.OnRing += s.OnRing
		m.Detours += s.Detours
	}
	d := time.Duration(n)
	m.Wall, m.Scaled, m.Waited, m.LongestWait, m.Late = m.Wall/d, m.Scaled/d, m.Waited/d, m.LongestWait/d, m.Late/d
	m.Ops, m.Asked, m.Lost, m.Reconfigurations = m.Ops/n, m.Asked/n, m.Lost/int64(n), m.Reconfigurations/n
	m.OnRing, m.Detours = m.OnRing/n, m.Detours/n
	m.Index = n
	return m
}

func (o *Options) fill() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
	}
	if o.Trace == nil || len(o.Trace.Steps) == 0 {
		return bad("there is no step in the trace")
	}
	if o.Job.Stages == 0 {
		o.Job = o.Trace.Job
	}
	if err := o.Job.Check(); err != nil {
		return err
	}
	if len(o.Rails) == 0 {
		return bad("no rail is named")
	}
	if o.Plane == nil {
		return bad("there is no data plane")
	}
	if o.Dial == nil && !o.Native {
		return bad("nobody says how to reach the controller")
	}
	n := o.Job.Ranks()
	for i, s := range o.Trace.Steps {
		if len(s.Ranks) != n {
			return bad("step %d of the trace has %d ranks, and the job %d", i, len(s.Ranks), n)
		}
	}
	if o.Ranks == nil {
		for x := range n {
			o.Ranks = append(o.Ranks, x)
		}
	}
	for i, x := range o.Ranks {
		if x < 0 || x >= n || slices.Contains(o.Ranks[:i], x) {
			return bad("rank %d is not one of the %d of the job, or named twice", x, n)
		}
	}
	if o.AllRails == 0 {
		o.AllRails = len(o.Rails)
	}
	if o.Steps == 0 {
		o.Steps = DefaultSteps
	}
	if o.WarmUp == 0 {
		o.WarmUp = DefaultWarmUp
	}
	o.WarmUp = max(o.WarmUp, 0)
	if o.Compress == 0 {
		o.Compress = 1
	}
	if o.Steps < 0 || !(o.Compress >= 1e-3) || o.Compress > 1e9 {
		return bad("%d steps, compressed %v times", o.Steps, o.Compress)
	}
	return nil
}

// Run replays the trace. Every rank here is a goroutine for each rail; all begin when all their shims are
// connected. With the first error all stop, and it says which rank, step and operation; the result then has the steps
// that were complete. The end of ctx is such an error. When Run returns nothing of it runs any more.
func Run(ctx context.Context, opt Options) (*Result, error) {
	if err := opt.fill(); err != nil {
		return &Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{opt: opt, routes: newRouter(opt.Job, !opt.IgnoreLanes && !opt.Native), cancel: cancel, dead: map[string]bool{}}
	for _, rail := range opt.Rails {
		for _, rank := range opt.Ranks {
			r.players = append(r.players, &player{run: r, rail: rail, rank: rank, sw: opt.switchOf(rail)})
		}
	}
	r.steps = make([]tally, opt.WarmUp+opt.Steps)
	r.generations = map[string]uint64{}
	r.log = &opLog{to: opt.Log}

	r.each(func(p *player) error { return p.connect(ctx) })
	if context.Cause(ctx) == nil {
		r.lastEnd = nowNS()
		r.each(func(p *player) error { return p.play(ctx, r.lastEnd) })
	}
	err := context.Cause(ctx)
	r.each(func(p *player) error { p.close(); return nil })
	return r.result(), err
}

func (o *Options) switchOf(rail string) string {
	if s := o.Switches[rail]; s != "" {
		return s
	}
	return rail
}

func nowNS() int64 { return timeline.HostAxis().NS(time.Now()) }

// run is one replay.
type run struct {
	opt     Options
	routes  *router
	players []*player
	cancel  context.CancelCauseFunc
	log     *opLog

	mu          sync.Mutex // guards what follows
	dead        map[string]bool
	steps       []tally
	done        []Step
	generations map[string]uint64 // of each rail, at the end of the step before
	lastEnd     int64
	ops         int
	lost        int64
}

// each calls f for all players at once and waits for all. The first error ends the run.
func (r *run) each(f func(*player) error) {
	var all sync.WaitGroup
	for _, p := range r.players {
		all.Go(func() {
			if err := f(p); err != nil {
				r.cancel(err)
			}
		})
	}
	all.Wait()
}

// tally collects a step.
type tally struct {
	ranks int // that have finished it
	step  Step
	end   int64
	gens  map[string]uint64
}

// finish adds what a rank did in a step; the last rank closes it.
func (r *run) finish(index int, rail string, s Step, gen uint64, end int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.steps[index]
	if t.ranks++; t.ranks == 1 || end > t.end {
		t.end = end
	}
	t.step.Ops += s.Ops
	t.step.Asked += s.Asked
	t.step.Lost += s.Lost
	t.step.Waited += s.Waited
	t.step.LongestWait = max(t.step.LongestWait, s.Waited)
	t.step.Late = max(t.step.Late, s.Late)
	t.step.LatestWake = max(t.step.LatestWake, s.LatestWake)
	t.step.OnRing += s.OnRing
	t.step.Detours += s.Detours
	if t.gens == nil {
		t.gens = map[string]uint64{}
	}
	t.gens[rail] = max(t.gens[rail], gen)
	if t.ranks < len(r.players) {
		return
	}
	t.step.Index, t.step.WarmUp = index, index < r.opt.WarmUp
	t.step.Wall = time.Duration(t.end - r.lastEnd)
	t.step.Scaled = time.Duration(float64(t.step.Wall) * r.opt.Compress)
	r.lastEnd = t.end
	for rail, gen := range t.gens {
		before, known := r.generations[rail]
		switch {
		case gen == 0: // nobody asked
		case !known:
			t.step.Reconfigurations = -1
			r.generations[rail] = gen
		default:
			if t.step.Reconfigurations >= 0 && gen > before {
				t.step.Reconfigurations += int(gen - before)
			}
			r.generations[rail] = max(gen, before)
		}
	}
	r.done = append(r.done, t.step)
	if r.opt.Progress != nil {
		r.opt.Progress(t.step)
	}
}

func (r *run) result() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := &Result{Ops: r.ops, Lost: r.lost}
	for _, s := range r.done {
		if s.WarmUp {
			res.Warm = append(res.Warm, s)
		} else {
			res.Steps = append(res.Steps, s)
		}
	}
	for _, p := range r.players {
		if p.shim != nil {
			res.Shims = append(res.Shims, ShimStats{p.rail, p.rank, p.shim.Stats()})
		}
	}
	return res
}

// detour notes that a rail is dead, and returns by how much that slows down all of them.
func (r *run) detour(rail string, dead bool) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if dead {
		r.dead[rail] = true
	} else {
		delete(r.dead, rail)
	}
	left := r.opt.AllRails - len(r.dead)
	if left < 1 {
		return 1 // the controller refuses such operations
	}
	return float64(r.opt.AllRails) / float64(left)
}

// opLog hands operations over one at a time.
type opLog struct {
	mu sync.Mutex // one call at a time
	to func(check.Op)
}

func (l *opLog) add(op check.Op) {
	if l.to == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to(op)
}

// player is one rank on one rail.
type player struct {
	run  *run
	rail string
	sw   string
	rank int
	shim *shim.Shim // nil if native

	at     int64        // when it is free, on the axis of the host
	result proto.Result // of the last grant that was asked for: what follows without asking runs in the same way
	gen    uint64
}

func (p *player) wrap(err error, format string, args ...any) error {
	host := ""
	if p.run.opt.Host != nil {
		if name := p.run.opt.Host(p.rail, p.rank); name != "" {
			host = " (" + name + ")"
		}
	}
	return fmt.Errorf("rank %d of %s%s%s: %w", p.rank, p.rail, host, fmt.Sprintf(format, args...), err)
}

func (p *player) connect(ctx context.Context) error {
	o := p.run.opt
	if o.Native {
		return nil
	}
	so := shim.Options{
		Dial: o.Dial(p.rail, p.rank), Job: o.Job, Rail: p.rail, Rank: p.rank, Mode: o.Mode,
		ProfileSteps: o.Profile, Timeout: o.Timeout, LocalRank: slices.Index(o.Rails, p.rail),
	}
	if o.Host != nil {
		so.Host = o.Host(p.rail, p.rank)
	}
	if o.Events != nil {
		so.Log = func(e shim.Event) { o.Events(p.rail, p.rank, e) }
	}
	s, err := shim.Dial(ctx, so)
	if err != nil {
		return p.wrap(err, "")
	}
	p.shim = s
	return nil
}

func (p *player) close() {
	if p.shim != nil {
		p.shim.Close() // a lost connection has been told of where it mattered
	}
}

// play is the life of a rank.
func (p *player) play(ctx context.Context, start int64) error {
	o := p.run.opt
	p.at = start
	for index := range o.WarmUp + o.Steps {
		ts := o.Trace.Steps[index%len(o.Trace.Steps)]
		var s Step
		for i, ref := range o.Trace.Refs(p.rank, index) {
			if err := p.op(ctx, index, ts.Ranks[p.rank][i], ref, &s); err != nil {
				return err
			}
		}
		p.at += p.scaled(float64(ts.TailUS) * 1e3)
		if err := p.sleep(ctx, &s); err != nil {
			return p.wrap(err, ", at the end of step %d", index)
		}
		if p.shim != nil {
			began := nowNS()
			if err := p.shim.Step(ctx); err != nil {
				return p.wrap(err, ", at the end of step %d", index)
			}
			took := nowNS() - began
			p.at += took
			s.Waited += time.Duration(took)
		}
		p.run.finish(index, p.rail, s, p.gen, p.at)
	}
	return nil
}

// scaled is how long something of the trace takes here, in ns.
func (p *player) scaled(ns float64) int64 { return int64(ns / p.run.opt.Compress) }

// sleep waits until the rank is free, and notes how late it woke.
func (p *player) sleep(ctx context.Context, s *Step) error {
	if err := p.run.opt.Clock.Sleep(ctx, p.at); err != nil {
		return err
	}
	s.LatestWake = max(s.LatestWake, time.Duration(nowNS()-p.at))
	return nil
}

// op plays one operation.
func (p *player) op(ctx context.Context, index int, op trace.Op, ref trace.Ref, s *Step) error {
	fail := func(err error) error {
		if ref.Group == "" {
			return p.wrap(err, ", step %d", index)
		}
		return p.wrap(err, ", step %d, %s operation %d", index, ref.Group, ref.Index)
	}
	o := p.run.opt
	p.at += p.scaled(float64(op.ComputeBeforeUS) * 1e3)
	duration := time.Duration(p.scaled(float64(o.Trace.Duration(op))))
	if ref.Group == "" || op.Net == trace.ScaleUp { // inside the host
		p.at += int64(duration)
		return nil
	}
	if err := p.sleep(ctx, s); err != nil {
		return fail(err)
	}
	t := plane.Transfer{
		Rail: p.rail, Switch: p.sw, Rank: p.rank, Ref: proto.OpRef{Group: ref.Group, Op: ref.Index, Way: ref.Way}, Axis: op.Axis,
		Members: ref.Members, Bytes: op.Bytes, Duration: duration, IssuedNS: p.at,
	}
	onRail := op.Net != trace.FrontEnd
	if !onRail {
		t.Net = string(op.Net)
	}
	so := shim.Op{OpRef: t.Ref, Axis: op.Axis, Kind: op.Kind, Net: trace.RailNet, Bytes: op.Bytes}
	if onRail && p.shim != nil {
		if err := p.ask(ctx, so, &t, s); err != nil {
			return fail(err)
		}
	}
	out, err := o.Plane.Do(ctx, t)
	if err != nil {
		return fail(err)
	}
	p.at = out.EndNS
	if !onRail {
		return nil
	}
	if p.shim != nil {
		if err := p.shim.PostOp(so); err != nil {
			return fail(err)
		}
	}
	s.Ops++
	s.Lost += out.Lost
	p.run.count(out.Lost)
	p.run.log.add(check.Op{
		Rail: p.rail, Switch: p.sw, Rank: p.rank, Step: index, Group: ref.Group, Op: ref.Index, Way: ref.Way, Uses: out.Uses,
		BeginNS: min(t.IssuedNS, out.BeginNS), // it may have used its circuits from when it had leave, though it waited for others
		EndNS:   out.EndNS, Bytes: op.Bytes, Lost: out.Lost, Result: string(t.Grant),
	})
	return nil
}

func (r *run) count(lost int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops++
	r.lost += lost
}

// ask gets the leave to run an operation, and fills in how.
func (p *player) ask(ctx context.Context, op shim.Op, t *plane.Transfer, s *Step) error {
	began := nowNS()
	g, err := p.shim.PreOp(ctx, op)
	if err != nil {
		return err
	}
	if g.Asked || g.WaitedNS > 0 {
		now := nowNS()
		s.Late += time.Duration(max(began-p.at, 0))
		s.Waited += time.Duration(now - began)
		// Not before the leave was given.
		t.IssuedNS = now
	}
	if g.Asked {
		s.Asked++
		p.result = g.Result
		p.gen = max(p.gen, g.Generation)
	}
	t.Grant = g.Result
	if t.Grant == "" {
		t.Grant = p.result
	}
	x, err := p.run.routes.route(p.rank, op.Axis, op.Way, g.Lanes, t.Grant)
	if err != nil {
		return err
	}
	switch t.Slowdown = p.run.detour(p.rail, t.Grant == proto.Detoured); t.Grant {
	case proto.Detoured:
		s.Detours++
		return nil
	case proto.OnRing:
		s.OnRing++
	}
	t.Uses = x.uses
	t.Slowdown *= x.slowdown
	return nil
}
