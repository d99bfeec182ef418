package systemtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/orchestrator/replay"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/opus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func nowNS() int64 { return timeline.HostAxis().NS(time.Now()) }

// newDevice returns an emulated switch of n x n ports that takes as long as said, for one circuit or for many.
func newDevice(n int, switching time.Duration, model func(*emulator.Personality)) (*emulator.Device, error) {
	p, err := emulator.LoadPersonality("polatis-6000-32x32")
	if err != nil {
		return nil, err
	}
	p.Size = fmt.Sprintf("%dx%d", n, n)
	p.Switching = emulator.Switching{Single: switching, Bulk: switching, Ack: emulator.AckAfter}
	if model != nil {
		model(&p)
	}
	return emulator.New(p, emulator.Options{Name: "ocs1", Seed: 1})
}

// direct drives an emulated switch without a wire, so that it works in virtual time, and fails as wires and switches do.
type direct struct {
	dev    *emulator.Device
	faults *faults // nil: it never fails
}

// fault is what goes wrong with a call.
type fault int

const (
	none   fault = iota
	refuse       // an error, and no effect
	lose         // no effect, and no answer
	hang         // takes effect, but there is no answer
	lie          // acknowledged, and no effect
	half         // an error, and half of it has taken effect
	faultKinds
)

// faults draws what goes wrong.
type faults struct {
	mu     sync.Mutex // guards what follows
	rand   *rand.Rand
	share  float64 // of changes that something goes wrong with
	budget int     // how many at most
	only   fault   // if set, the one kind there is
	drawn  []fault
}

func (f *faults) next(kinds ...fault) fault {
	if f == nil {
		return none
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.budget == 0 || f.rand.Float64() >= f.share {
		return none
	}
	f.budget--
	k := kinds[f.rand.IntN(len(kinds))]
	if f.only != none {
		k = f.only
	}
	f.drawn = append(f.drawn, k)
	return k
}

var errFault = errors.New("the test wants it to fail")

func (s *direct) Identify(context.Context) (ocs.Identity, error) {
	return ocs.Identity{Vendor: "test", Model: "direct", Serial: "1", Geometry: s.dev.Geometry()}, nil
}

func (s *direct) CrossConnects(ctx context.Context) (ocs.Map, error) {
	switch s.faults.next(refuse, lose) {
	case refuse:
		return ocs.Map{}, errFault
	case lose:
		<-ctx.Done()
		return ocs.Map{}, context.Cause(ctx)
	}
	return s.dev.CrossConnects(), context.Cause(ctx)
}

func (s *direct) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	r := ocs.Receipt{Begun: time.Now(), SendStart: time.Now(), Sent: time.Now(), Requests: 1}
	e := emulator.Edit{DropPairs: c.Remove.Slice(), Add: c.Add.Slice()}
	f := s.faults.next(refuse, lose, hang, lie, half)
	switch f {
	case refuse:
		return r, errFault
	case lose:
		<-ctx.Done()
		return r, context.Cause(ctx)
	case half:
		e.DropPairs, e.Add = e.DropPairs[:(len(e.DropPairs)+1)/2], e.Add[:len(e.Add)/2]
	}
	if f != lie {
		op, err := s.dev.Edit(nil, e)
		if err != nil {
			return r, err
		}
		if !emulator.SleepUntil(ctx, op.Ack) {
			return r, context.Cause(ctx)
		}
	}
	switch f {
	case hang:
		<-ctx.Done()
		return r, context.Cause(ctx)
	case half:
		return r, errFault
	}
	r.FirstByte, r.Acked = time.Now(), time.Now()
	return r, nil
}

func (s *direct) Close() error { return nil }

// setup is what a system is made from.
type setup struct {
	trace       *trace.Trace
	rails       int // all on one switch; 0 is 1
	policy      opus.Policy
	granularity controller.Granularity
	mode        shim.Mode
	switching   time.Duration
	steps       int // 0 is 1
	faults      *faults
	sessions    func(*emulator.Device) ([]ocs.Switch, error) // nil: direct ones
	dir         string                                       // of the journals

	// cuts are when, from the start, connections of ranks are cut, and which. They come back.
	cuts map[time.Duration]int
	// restarts are when the controller ends, and is started anew.
	restarts []time.Duration

	size      int                                                       // ingress ports of the switch; 0 is as many as are needed
	model     func(*emulator.Personality)                               // of the switch, if set; before anything else
	orchestra func(*rail.Options)                                       // of the rails of the job, if set
	control   func(*controller.Options)                                 // of the controllers, if set
	remote    func(string, *rail.Orchestrator) (controller.Rail, error) // reaches a rail; nil is directly
	ready     func(*bench)                                              // before the ranks begin
	told      func(*bench, controller.Event)                            // may not call back
	host      func(string, int) string                                  // of ranks
	timeout   time.Duration                                             // of shims
}

// bench is what a test can get hold of while ranks run.
type bench struct {
	*switchboard
	dev   *emulator.Device
	rails map[string]*rail.Orchestrator
	opt   controller.Options // of the first controller
}

func (s setup) railNames() []string {
	var names []string
	for i := range max(s.rails, 1) {
		names = append(names, fmt.Sprintf("rail%d", i))
	}
	return names
}

// assignment is the cabling of a rail: its ports follow those of the rail before.
func (s setup) assignment(i int) opus.Assignment {
	n := s.trace.Job.DuplexPorts()
	return opus.Regular(n, ocs.Port(1+i*n), ocs.Port(s.ingress()+1+i*n))
}

// neighbour is another job on the same switch: two ranks, which are on their ring all the time.
var neighbour = opus.Job{Name: "neighbour", Stages: 1, Axes: []opus.Axis{{Name: "dp", Size: 2}}}

func (s setup) neighbour() opus.Assignment {
	n := neighbour.DuplexPorts()
	return opus.Regular(n, ocs.Port(s.ingress()-n+1), ocs.Port(2*s.ingress()-n+1))
}

// ingress is how many ingress ports the switch has: those of the rails, and then those of the neighbour.
func (s setup) ingress() int {
	if s.size > 0 {
		return s.size
	}
	return max(8, max(s.rails, 1)*s.trace.Job.DuplexPorts()+neighbour.DuplexPorts())
}

// outcome is what became of a run.
type outcome struct {
	err     error // of the replay
	result  *replay.Result
	ops     []check.Op
	truth   check.Truth
	verdict *check.Verdict
	status  map[string]rail.Status // of each rail, at the end
	held    ocs.Map                // by the switch, at the end
	began   int64
	events  []string // of the controller
	details []string // what these say to people

	neighbour []check.Disturbance // of the other job, while this one ran
}

// switchboard connects shims to the controller that there is.
type switchboard struct {
	ctx context.Context

	mu    sync.Mutex // guards what follows
	ctl   *controller.Controller
	gone  map[int]bool                             // ranks that cannot connect any more
	wrap  func(rank int, theirs net.Conn) net.Conn // what a rank's connection is led through; nil is nothing
	end   func()
	conns map[int][]net.Conn // by rank; the sides of the ranks
	all   sync.WaitGroup     // of what runs
}

func (b *switchboard) start(opt controller.Options) error {
	c, err := controller.New(opt)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	ran := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ctl, b.end = c, func() { cancel(); <-ran }
	b.all.Go(func() { c.Run(ctx); close(ran) })
	return nil
}

func (b *switchboard) dial(rank int) (net.Conn, error) {
	ours, theirs := net.Pipe()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil || b.ctl == nil || b.gone[rank] {
		return nil, net.ErrClosed
	}
	if b.wrap != nil {
		theirs = b.wrap(rank, theirs)
	}
	b.conns[rank] = append(b.conns[rank], ours)
	c := b.ctl
	b.all.Go(func() { c.ServeConn(b.ctx, theirs) })
	return ours, nil
}

func (b *switchboard) cut(rank int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns[rank] {
		c.Close()
	}
	b.conns[rank] = nil
}

// kill ends a rank as a crash of its host does: it does not come back.
func (b *switchboard) kill(rank int) {
	b.mu.Lock()
	b.gone[rank] = true
	b.mu.Unlock()
	b.cut(rank)
}

// stop ends the controller as a crash does: without a word to anybody.
func (b *switchboard) stop() {
	b.mu.Lock()
	end := b.end
	b.ctl = nil // nobody listens
	b.mu.Unlock()
	end() // before the connections, since it must not see one end before the others
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, cs := range b.conns {
		for _, c := range cs {
			c.Close()
		}
	}
	clear(b.conns)
}

// run replays the trace on a whole system, and returns what became of it. An error is one of the rig.
func run(ctx context.Context, s setup) (out outcome, err error) {
	names := s.railNames()
	dev, err := newDevice(s.ingress(), s.switching, s.model)
	if err != nil {
		return out, err
	}
	rec := check.Record("ocs1", dev, nil)
	ctx, cancel := context.WithCancel(ctx)
	board := &switchboard{ctx: ctx, conns: map[int][]net.Conn{}, gone: map[int]bool{}}

	assignments, switches, rails := map[string]opus.Assignment{}, map[string]string{}, map[string]controller.Rail{}
	orchestrators := map[string]*rail.Orchestrator{}
	sessions := []ocs.Switch{&direct{dev, s.faults}, &direct{dev, s.faults}}
	if s.sessions != nil {
		if sessions, err = s.sessions(dev); err != nil {
			cancel()
			return out, err
		}
	}
	var before check.Truth // until the neighbour had its ring
	defer func() {
		for _, o := range orchestrators {
			err = errors.Join(err, o.Close())
		}
		for _, sw := range sessions {
			sw.Close()
		}
		truth, stopErr := rec.Stop()
		out.truth = truth
		out.held = dev.CrossConnects()
		out.verdict = check.Check(out.ops, out.truth)
		after := check.Truth{Changes: truth.Changes[len(before.Changes):], Lights: truth.Lights}
		for _, f := range s.neighbour() {
			out.neighbour = append(out.neighbour, after.Bystanders("ocs1", f.In, f.Out)...)
		}
		err = errors.Join(err, stopErr)
	}()
	defer board.all.Wait()
	defer cancel()
	next, err := rail.New(ctx, rail.Options{
		Rail: "neighbour", Switch: "ocs1", Job: neighbour, Assignment: s.neighbour(), Sessions: []ocs.Switch{&direct{dev: dev}}, Health: -1,
	})
	if err != nil {
		return out, fmt.Errorf("rail.New: %w", err)
	}
	orchestrators["neighbour"] = next
	before = rec.Truth()
	begin, began := context.WithTimeout(ctx, time.Minute) // New waits for the switch as long as it may
	defer began()
	for i, name := range names {
		assignments[name], switches[name] = s.assignment(i), "ocs1"
		opt := rail.Options{
			Rail: name, Switch: "ocs1", Job: s.trace.Job, Policy: s.policy, Assignment: assignments[name], Sessions: sessions,
			Health: -1, Dir: s.dir,
		}
		if s.orchestra != nil {
			s.orchestra(&opt)
		}
		o, err := rail.New(begin, opt)
		if err != nil {
			return out, fmt.Errorf("rail.New: %w", err)
		}
		orchestrators[name], rails[name] = o, o
		if s.remote != nil {
			if rails[name], err = s.remote(name, o); err != nil {
				return out, err
			}
		}
	}
	b := &bench{switchboard: board, dev: dev, rails: orchestrators}
	var events sync.Mutex
	opt := controller.Options{Job: s.trace.Job, Policy: s.policy, Rails: rails, Granularity: s.granularity, Log: func(e controller.Event) {
		events.Lock()
		defer events.Unlock()
		out.events = append(out.events, fmt.Sprintf("%v %s %s rank %d %v %s req %d id %s join %v part %v gen %d %s %s %s", time.Duration(e.AtNS-out.began), e.Rail, e.Kind, e.Rank, e.Ref,
			e.Mode, e.Req, e.ID, e.Join, e.Part, e.Generation, e.Result, e.Code, e.Detail))
		if e.Detail != "" && e.Kind != controller.EventOpened {
			out.details = append(out.details, fmt.Sprintf("%s: %s", e.Kind, e.Detail))
		}
		if s.told != nil {
			s.told(b, e)
		}
	}}
	if s.control != nil {
		s.control(&opt)
	}
	b.opt = opt
	if err := board.start(opt); err != nil {
		return out, err
	}
	emulated := plane.NewEmulated(plane.EmulatedOptions{Devices: map[string]*emulator.Device{"ocs1": dev}, Assignments: assignments})
	defer emulated.Close()

	events.Lock()
	out.began = nowNS()
	events.Unlock()
	if s.ready != nil {
		s.ready(b)
	}
	for at, rank := range s.cuts {
		defer time.AfterFunc(at, func() { board.cut(rank) }).Stop()
	}
	for _, at := range s.restarts {
		board.all.Go(func() {
			select {
			case <-time.After(at):
			case <-ctx.Done():
				return
			}
			board.stop()
			if ctx.Err() == nil {
				board.start(opt) // the first one has shown that the options are good
			}
		})
	}
	out.result, out.err = replay.Run(ctx, replay.Options{
		Trace: s.trace, Rails: names, Switches: switches, Plane: emulated, Mode: s.mode, Steps: max(s.steps, 1), WarmUp: -1, Profile: 3, Host: s.host, Timeout: s.timeout,
		Log: func(op check.Op) { out.ops = append(out.ops, op) },
		Dial: func(_ string, rank int) func(context.Context) (net.Conn, error) {
			return func(context.Context) (net.Conn, error) { return board.dial(rank) }
		},
	})
	// What was under way when the replay ended, well or not, comes to an end by itself. The last words of the ranks may still
	// be on their way to the controller, and lead to a change: in virtual time they are there when some of it has passed.
	for quiet := 0; quiet < 3; quiet++ {
		time.Sleep(time.Millisecond)
		for _, o := range orchestrators {
			if o.Status().Pending > 0 {
				quiet = -1
			}
		}
	}
	out.status = map[string]rail.Status{}
	for name, o := range orchestrators {
		out.status[name] = o.Status()
	}
	return out, nil
}

// settled returns why a rail did not end in a state that is known: at its plan, on the giant ring, or dead.
func (o outcome) settled(s setup) error {
	for i, name := range s.railNames() {
		st, a, job := o.status[name], s.assignment(i), s.trace.Job
		var want opus.Matching
		var err error
		switch st.Shape {
		case proto.Dead: // what it is sure of is there
			for _, c := range st.Circuits {
				for _, x := range []ocs.CrossConnect{{Ingress: a[c[0]].In, Egress: a[c[1]].Out}, {Ingress: a[c[1]].In, Egress: a[c[0]].Out}} {
					if !o.held.Has(x) {
						return fmt.Errorf("%s is dead and sure of %v, which the switch does not hold: %v", name, x, o.held)
					}
				}
			}
			continue
		case proto.Giant:
			want, err = opus.GiantRing(job)
		case proto.Digits:
			var id opus.ID
			if id, err = job.ParseID(st.ID); err == nil {
				policy := s.policy
				if policy == "" {
					policy = opus.Pair
				}
				want, err = opus.Build(job, id, policy)
			}
		case proto.Circuits:
			var cs []opus.Circuit
			for _, c := range st.Circuits {
				cs = append(cs, opus.Circuit{A: c[0], B: c[1]})
			}
			want, err = opus.NewMatching(job, cs...)
		default:
			err = errors.New("that is none of those that it may be in")
		}
		if err != nil {
			return fmt.Errorf("%s is in shape %q (%s): %w", name, st.Shape, st.ID, err)
		}
		cs, err := a.Map(want)
		if err != nil {
			return err
		}
		ports := map[ocs.Port]bool{}
		for _, f := range a {
			ports[f.In], ports[f.Out] = true, true
		}
		var held []ocs.CrossConnect
		for c := range o.held.All() {
			if ports[c.Ingress] || ports[c.Egress] {
				held = append(held, c)
			}
		}
		if got := ocs.MustMap(held...); !got.Equal(cs) {
			return fmt.Errorf("%s says %s %s, which is %v, and the switch holds %v", name, st.Shape, st.ID, cs, got)
		}
	}
	return nil
}
