package systemtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// pipes leads to a front end through pipes in memory, so that the wire works in virtual time.
type pipes struct {
	ctx    context.Context
	server *tl1server.Server
	all    *sync.WaitGroup
}

func (p pipes) Dial(context.Context) (transport.Conn, error) {
	ours, theirs := net.Pipe()
	p.all.Go(func() { p.server.ServeConn(p.ctx, theirs) })
	return ours, nil
}

func (p pipes) String() string { return "ocs1" }

// liar is a session whose changes are acknowledged and not carried out while lies are left.
type liar struct {
	ocs.Switch
	wire *wire
}

func (l *liar) Unwrap() ocs.Switch { return l.Switch }

func (l *liar) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	l.wire.mu.Lock()
	lies, dies := l.wire.lies != 0 && (l.wire.about == 0 || slices.Contains(c.Add.Ports(), l.wire.about)), l.wire.dies && c.Add.Len() > 0
	if lies && l.wire.lies > 0 {
		l.wire.lies--
	}
	l.wire.mu.Unlock()
	if dies {
		close(l.wire.dying)
		<-ctx.Done()
		return ocs.Receipt{}, context.Cause(ctx)
	}
	if lies {
		now := time.Now()
		return ocs.Receipt{Begun: now, SendStart: now, Sent: now, FirstByte: now, Acked: now, Requests: 1}, nil
	}
	return l.Switch.Apply(ctx, c)
}

// wire is the TL1 emulator, and all sessions with it.
type wire struct {
	tl1server.Server
	ctx      context.Context
	all      sync.WaitGroup
	sessions []ocs.Switch

	mu    sync.Mutex // guards what follows
	lies  int        // acknowledgements that are lies; less than 0: all
	about ocs.Port   // what lies are about; 0: all
	dies  bool       // the orchestrator, when it has disconnected and is about to connect
	dying chan struct{}
}

func (w *wire) open(dev *emulator.Device) ([]ocs.Switch, error) {
	w.Device = dev
	for range 2 {
		sw, err := tl1switch.Open(w.ctx, tl1switch.Config{Dialer: pipes{w.ctx, &w.Server, &w.all}, Device: "ocs1", Password: secret.New("root")})
		if err != nil {
			return w.sessions, err
		}
		w.sessions = append(w.sessions, &liar{sw, w})
	}
	return w.sessions, nil
}

// fault makes commands go wrong from now on; see emulator.ParseFault.
func (w *wire) fault(texts ...string) {
	for _, text := range texts {
		f, err := emulator.ParseFault(text)
		if err != nil {
			panic(err) // a mistake of the test
		}
		w.Faults.Add(f)
	}
}

// testbed is the lab of the example, with its job on rail 0: ranks 0 and 1 (gpu1, gpu2) are the first stage, 2 and 3 the second.
type testbed struct {
	lab *lab.File
	job *job.File
}

func loadTestbed(t *testing.T) testbed {
	t.Helper()
	l, err := lab.Load("../../examples/opus-rails.yaml")
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Load("../../examples/lab-job.yaml", l)
	if err != nil {
		t.Fatal(err)
	}
	return testbed{l, j}
}

// program is a step of the job: activations to the second stage, and gradients in two pieces. Ranks in late take
// that much longer to compute.
func (b testbed) program(compute time.Duration, late map[int]time.Duration) *trace.Trace {
	j := b.job.Job()
	t := &trace.Trace{Name: j.Name, Job: j, Rails: 1, Steps: []trace.Step{{Ranks: make([][]trace.Op, j.Ranks())}}}
	for x := range j.Ranks() {
		wait := (compute + late[x]).Microseconds()
		t.Steps[0].Ranks[x] = []trace.Op{
			{Axis: opus.PP, Kind: trace.SendRecv, Peer: (x + 2) % 4, Bytes: 1 << 20, ComputeBeforeUS: wait, DurationUS: 20_000},
			{Axis: 1, Kind: trace.AllReduce, Bytes: 1 << 20, ComputeBeforeUS: wait, DurationUS: 10_000},
			{Axis: 1, Kind: trace.AllReduce, Bytes: 1 << 20, DurationUS: 10_000},
		}
	}
	return t
}

// uneven is a step in which ranks 1 and 3 have a transfer between their gradients, and the others of their groups have not.
func (b testbed) uneven() *trace.Trace {
	t := b.program(0, nil)
	for _, x := range []int{1, 3} {
		ops := t.Steps[0].Ranks[x]
		t.Steps[0].Ranks[x] = []trace.Op{ops[0], ops[1], ops[0], ops[2]}
	}
	return t
}

// ending is how a replay ends.
type ending string

const (
	goesOn      ending = "goes on"
	fallsBack   ending = "falls back to the giant ring and completes"
	detours     ending = "goes on through the other rail"
	failsClosed ending = "fails closed"
	refused     ending = "is refused before anything moves"
)

// nth calls f, once and not from the controller's own goroutine, when it sends the n-th change to a rail.
func nth(n int, f func(*bench)) func(*bench, controller.Event) {
	return func(b *bench, e controller.Event) {
		if e.Kind != controller.EventCommand {
			return
		}
		if n--; n == 0 {
			f(b)
		}
	}
}

// aside runs f beside everything else.
func (b *bench) aside(f func()) { b.all.Go(f) }

// faultCase is one thing that goes wrong.
type faultCase struct {
	setup func(t *testing.T, s *setup, w *wire)
	ends  ending
	shape proto.Shape // of the rail; "" where there is none
	says  []string    // all of these are in one message
	also  func(t *testing.T, s setup, o outcome)
}

// messages are all that people are told.
func (o outcome) messages(rigErr error) []string {
	var all []string
	for _, err := range []error{rigErr, o.err} {
		if err != nil {
			all = append(all, err.Error())
		}
	}
	for name, st := range o.status {
		if name != "neighbour" && st.Reason != "" {
			all = append(all, st.Reason)
		}
	}
	seen := map[string]bool{}
	for _, d := range o.details {
		if !seen[d] {
			all = append(all, d)
		}
		seen[d] = true
	}
	return all
}

func (c faultCase) run(t *testing.T, bed testbed) {
	w := &wire{dying: make(chan struct{})}
	s := setup{
		trace: bed.program(0, nil), policy: opus.Pair, mode: shim.ModeAlways, switching: 25 * time.Millisecond, steps: 3, size: 32, sessions: w.open,
		host: bed.job.Host,
		control: func(o *controller.Options) {
			o.Who = bed.job.Who
		},
		orchestra: func(o *rail.Options) {
			name := o.Rail
			o.Where = func(p ocs.Port) string { return bed.job.Where(name, bed.lab, p) }
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx = ctx
	defer w.all.Wait()
	defer cancel()
	if c.setup != nil {
		c.setup(t, &s, w)
	}
	o, err := run(ctx, s)
	if c.ends == refused {
		if err == nil {
			t.Fatal("the rail begins, want an error")
		}
	} else if err != nil {
		t.Fatalf("the rig: %v", err)
	}
	messages := o.messages(err)
	results := map[string]int{}
	for _, op := range o.ops {
		results[op.Result]++
	}
	got := goesOn
	switch {
	case err != nil:
		got = refused
	case o.err != nil:
		got = failsClosed
	case results[string(proto.Detoured)] > 0:
		got = detours
	case results[string(proto.OnRing)] > 0:
		got = fallsBack
	}
	if got != c.ends {
		t.Errorf("it %s, want: it %s: %v", got, c.ends, o.err)
	}
	if shape := o.status["rail0"].Shape; shape != c.shape {
		t.Errorf("the rail ends as %q, want %q", shape, c.shape)
	}
	said := false
	for _, m := range messages {
		all := true
		for _, part := range c.says {
			all = all && strings.Contains(m, part)
		}
		said = said || all
	}
	if testing.Verbose() {
		t.Log(strings.Join(messages, "\n"))
	}
	if !said && len(c.says) > 0 {
		t.Errorf("no message has all of %q:\n%s", c.says, strings.Join(messages, "\n"))
	}
	if o.verdict.Total() > 0 || o.verdict.Lost > 0 {
		t.Errorf("%v%s", o.verdict, o.losses())
	}
	if o.neighbour != nil {
		t.Errorf("the other job on the switch: %v", o.neighbour)
	}
	if err == nil {
		if err := o.settled(s); err != nil {
			t.Errorf("the end: %v", err)
		}
	}
	if c.also != nil {
		c.also(t, s, o)
	}
	if t.Failed() && testing.Verbose() {
		t.Logf("replay: %v\n%s", o.err, tail(o.events))
	}
}

// between puts f on the way from a rank to the controller, and g on the way back; nil is nothing.
func (b *bench) between(rank int, f, g func(proto.Message) []proto.Message) {
	as := func(m proto.Message) []proto.Message { return []proto.Message{m} }
	if f == nil {
		f = as
	}
	if g == nil {
		g = as
	}
	b.wrap = func(x int, conn net.Conn) net.Conn {
		if x != rank {
			return conn
		}
		ours, theirs := net.Pipe()
		b.aside(func() { pump(conn, ours, f) })
		b.aside(func() { pump(ours, conn, g) })
		return theirs
	}
}

// twice stands between a rank and the controller, and asks for everything twice, and once more as of an epoch that is over.
// It keeps the answers to what the rank does not know of.
type twice struct {
	mu    sync.Mutex
	stale []string // what the answers to requests of an old epoch say
	again int      // answers to repetitions
}

const strangers = uint64(1) << 40

// pump carries messages, each as what it becomes, until either end is closed.
func pump(from, to net.Conn, each func(proto.Message) []proto.Message) {
	defer to.Close()
	defer from.Close()
	for r := bufio.NewReader(from); ; {
		m, err := proto.Read(r)
		if err != nil {
			return
		}
		var frames []byte
		for _, m := range each(m) {
			if frames, err = proto.Append(frames, m); err != nil {
				return
			}
		}
		if _, err := to.Write(frames); err != nil {
			return
		}
	}
}

func (c *twice) asked(m proto.Message) []proto.Message {
	w, ok := m.(*proto.TopoWrite)
	if !ok {
		return []proto.Message{m}
	}
	again, old := *w, *w
	again.Req += strangers
	old.Req, old.Epoch = old.Req+2*strangers, old.Epoch-1
	return []proto.Message{&old, m, &again}
}

func (c *twice) answered(m proto.Message) []proto.Message {
	switch m := m.(type) {
	case *proto.TopoAck:
		if m.Req >= strangers {
			c.mu.Lock()
			c.again++
			c.mu.Unlock()
			return nil
		}
	case *proto.TopoNack:
		if m.Req >= 2*strangers {
			c.mu.Lock()
			c.stale = append(c.stale, fmt.Sprintf("%s: %s", m.Code, m.Detail))
			c.mu.Unlock()
		}
		if m.Req >= strangers {
			return nil
		}
	}
	return []proto.Message{m}
}

// serveRail serves a rail over pipes, and returns what dials it and what cuts the connection that there is.
func serveRail(w *wire, name string, o func() *rail.Orchestrator) (dial func(context.Context) (net.Conn, error), cut func()) {
	var mu sync.Mutex
	var conn net.Conn
	dial = func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		mu.Lock()
		conn = ours
		mu.Unlock()
		w.all.Go(func() { rail.ServeConn(w.ctx, theirs, map[string]*rail.Orchestrator{name: o()}) })
		return ours, nil
	}
	return dial, func() {
		mu.Lock()
		defer mu.Unlock()
		conn.Close()
	}
}

var faultCases = map[string]faultCase{
	"silent switch": {
		setup: func(_ *testing.T, s *setup, w *wire) { s.told = nth(3, func(*bench) { w.fault("lose:*") }) },
		ends:  failsClosed, shape: proto.Dead,
		says: []string{"rank ", " of rail0 (gpu", "dp/", "rail rail0", "port 0 of rank 0 (gpu1/ens1f0)"},
	},
	"silent for one change": {
		setup: func(_ *testing.T, s *setup, w *wire) { s.told = nth(4, func(*bench) { w.fault("lose:ENT-PATCH:3") }) },
		ends:  fallsBack, shape: proto.Giant,
		says: []string{"rail rail0", "port 0 of rank 0 (gpu1/ens1f0)"},
	},
	"lying acknowledgement": {
		setup: func(_ *testing.T, s *setup, w *wire) {
			s.told = nth(4, func(*bench) { w.mu.Lock(); w.lies = 3; w.mu.Unlock() })
		},
		ends: fallsBack, shape: proto.Giant,
		says: []string{"fallback: rail rail0: port 0 of rank 0 (gpu1/ens1f0)", "device does not hold what was asked for"},
	},
	"nothing but lies": {
		setup: func(_ *testing.T, s *setup, w *wire) {
			s.told = nth(3, func(*bench) { w.mu.Lock(); w.lies = -1; w.mu.Unlock() })
		},
		ends: failsClosed, shape: proto.Dead,
		// Which of the changes is the one that fails for good, and so which port of rank 0 is named, is a matter of who comes first.
		says: []string{"rank ", " of rail0 (gpu", "dp/", "rail rail0: ", "port ", " of rank 0 (gpu1/ens1f", "device does not hold what was asked for"},
	},
	"slow rank": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.trace = loadTestbed(t).program(0, map[int]time.Duration{1: 10 * time.Second})
		},
		ends: goesOn, shape: proto.Digits,
	},
	"rank too slow": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.trace = loadTestbed(t).program(0, map[int]time.Duration{1: 40 * time.Second})
		},
		ends: failsClosed, shape: proto.Digits,
		says: []string{"rank 3 of rail0 (gpu4)", "waited for rank 1 of rail0 (gpu2)", "pp/1"},
	},
	"rank dies in the barrier": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.told = func(b *bench, e controller.Event) {
				if e.Kind == controller.EventWrite && e.Rank == 1 && e.Ref.Group == "dp/0" && e.Ref.Op == 2 {
					b.aside(func() { b.kill(1) })
				}
			}
			s.trace = loadTestbed(t).program(0, map[int]time.Duration{0: 10 * time.Millisecond}) // it is there first
		},
		ends: failsClosed, shape: proto.Digits,
		says: []string{"waited for rank 1 of rail0 (gpu2), which is gone", "dp/0"},
	},
	"rank dies while others wait for it": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.told = func(b *bench, e controller.Event) {
				if e.Kind == controller.EventWrite && e.Rank == 0 && e.Ref.Group == "dp/0" && e.Ref.Op == 2 {
					b.aside(func() { b.kill(1) })
				}
			}
			s.trace = loadTestbed(t).program(0, map[int]time.Duration{1: 10 * time.Millisecond})
		},
		ends: failsClosed, shape: proto.Digits,
		says: []string{"rank 0 of rail0 (gpu1)", "rank 1 of rail0 (gpu2) is gone, and dp/0 waits for it"},
	},
	"members disagree about a boundary": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.trace, s.mode, s.steps = loadTestbed(t).uneven(), shim.ModeProvision, 8
			s.granularity = controller.Circuit
		},
		ends: goesOn, shape: proto.Circuits,
	},
	"members disagree about a boundary, and nobody unites them": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.trace, s.mode, s.steps = loadTestbed(t).uneven(), shim.ModeProvision, 8
			s.granularity = controller.Circuit
			own := s.control
			s.control = func(o *controller.Options) { own(o); o.NoUnion = true }
		},
		ends: failsClosed, shape: proto.Circuits,
		says: []string{"rank 0 of rail0 (gpu1)", "pp/1"},
	},
	"members disagree about their schedule": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			// Rank 0 waits before the second stage does.
			late := map[int]time.Duration{1: 50 * time.Millisecond, 2: 200 * time.Millisecond, 3: 200 * time.Millisecond}
			s.trace, s.mode, s.steps = loadTestbed(t).program(0, late), shim.ModeProvision, 8
			ranks := s.trace.Steps[0].Ranks
			ranks[1] = ranks[1][:2]
		},
		ends: failsClosed, shape: proto.Digits,
		says: []string{"operation 1 of dp/0 on rail rail0 waited for rank 1 of rail0 (gpu2)"},
	},
	"members disagree about how often they meet": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.mode, s.steps = shim.ModeProvision, 8
			times := 0
			s.told = func(b *bench, e controller.Event) {
				if e.Kind != controller.EventRefused {
					return
				}
				if times++; times == 100 { // without end, and without a pause: time would stand still
					t.Error("a table is refused 100 times")
					b.aside(func() { b.kill(2); b.kill(3) })
				}
			}
			s.ready = func(b *bench) {
				b.between(2, func(m proto.Message) []proto.Message {
					if table, ok := m.(*proto.PhaseTable); ok {
						table.Period["dp/1"]++
					}
					return []proto.Message{m}
				}, nil)
			}
		},
		ends: failsClosed, shape: proto.Digits,
		says: []string{"rank 2 of rail0 (gpu3)", "rank 3 of rail0 (gpu4)", "dp/1", "their schedules do not agree"},
	},
	"members disagree about who they are": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.ready = func(b *bench) {
				b.between(2, func(m proto.Message) []proto.Message {
					if j, ok := m.(*proto.JoinGroup); ok && j.Group == "dp/1" {
						j.Members = []int{2, 3, 4}
					}
					return []proto.Message{m}
				}, nil)
			}
		},
		ends: failsClosed, shape: proto.Giant,
		says: []string{"rank 2 of rail0 (gpu3) takes group dp/1 for members [2 3 4]"},
	},
	"silent from the beginning": {
		setup: func(_ *testing.T, s *setup, w *wire) { w.fault("lose:ENT-PATCH") },
		ends:  failsClosed, shape: proto.Dead,
		says: []string{"rail rail0 is dead", "port 0 of rank 0 (gpu1/ens1f0)"},
	},
	"lies for a while": {
		setup: func(_ *testing.T, s *setup, w *wire) {
			s.steps = 60
			s.told = nth(4, func(*bench) { w.mu.Lock(); w.lies = 3; w.mu.Unlock() })
			own := s.control
			s.control = func(o *controller.Options) { own(o); o.ResumeAfter = time.Second }
		},
		ends: fallsBack, shape: proto.Digits,
		says: []string{"fallback: rail rail0: port 0 of rank 0 (gpu1/ens1f0)"},
	},
	"one of two rails lies": {
		setup: func(_ *testing.T, s *setup, w *wire) {
			s.rails, s.steps = 2, 8
			s.told = nth(4, func(*bench) { w.mu.Lock(); w.lies, w.about = -1, 1; w.mu.Unlock() })
		},
		ends: detours, shape: proto.Dead,
		says: []string{"dead: rail rail0: port 0 of rank 0 (gpu1/ens1f0)"},
	},
	"somebody else takes a port": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.trace = loadTestbed(t).program(10*time.Second, nil)
			own := s.orchestra
			s.orchestra = func(o *rail.Options) { own(o); o.Health = time.Second }
			s.told = nth(2, func(b *bench) {
				b.aside(func() {
					time.Sleep(5 * time.Second) // all ranks compute
					if _, err := b.dev.Connect([]ocs.CrossConnect{{Ingress: 2, Egress: 50}}); err != nil {
						panic(err)
					}
				})
			})
		},
		ends: failsClosed, shape: proto.Dead,
		says: []string{"rank ", " of rail0 (gpu", "pp/", "2>50 of ocs1 leads from or to port 1 of rank 0 (gpu1/ens1f1) and is not the job's"},
	},
	"duplicate and stale requests": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			c := &twice{}
			s.ready = func(b *bench) { b.between(2, c.asked, c.answered) }
			t.Cleanup(func() {
				if len(c.stale) == 0 || c.again == 0 {
					t.Errorf("%d answers to requests of an old epoch, and %d to repetitions, want some of both", len(c.stale), c.again)
				}
			})
		},
		also: func(t *testing.T, _ setup, o outcome) {
			// Each step changes both stages together, and then each of them; the first begins with both on the ring.
			if got, want := o.status["rail0"].Counters.Requests, uint64(9); got != want {
				t.Errorf("%d changes, want %d as without duplicates", got, want)
			}
		},
		ends: goesOn, shape: proto.Digits,
		says: []string{"rank 2 of rail0 (gpu3) asks in epoch 0, and it is 1"},
	},
	"port beyond the switch": {
		setup: func(_ *testing.T, s *setup, _ *wire) {
			own := s.orchestra
			s.orchestra = func(o *rail.Options) { own(o); o.Assignment[5].Out = 65 }
		},
		ends: refused,
		says: []string{"rail rail0: port 1 of rank 2 (gpu3/ens1f1) sends into port 6 and receives from port 65 of ocs1, which is 32x32"},
	},
	"port of another": {
		setup: func(_ *testing.T, s *setup, _ *wire) {
			own := s.orchestra
			s.orchestra = func(o *rail.Options) { own(o); o.Assignment[5].Out = 62 }
		},
		ends: refused,
		says: []string{"rail rail0: 31>62 of ocs1 leads from or to port 1 of rank 2 (gpu3/ens1f1) and is not the job's"},
	},
	"protected port": {
		setup: func(_ *testing.T, s *setup, _ *wire) {
			own := s.orchestra
			s.orchestra = func(o *rail.Options) { own(o); o.Protected = []ocs.Port{38} }
		},
		ends: refused,
		says: []string{"rail rail0: port 1 of rank 2 (gpu3/ens1f1) leads to port 38 of ocs1: port is protected"},
	},
	"session drops": {
		setup: func(_ *testing.T, s *setup, w *wire) { s.told = nth(3, func(*bench) { w.fault("close:ENT-PATCH:1") }) },
		ends:  goesOn, shape: proto.Digits,
	},
	"switch restarts": {
		setup: func(_ *testing.T, s *setup, _ *wire) {
			s.model = func(p *emulator.Personality) { p.Control.Reboot = 100 * time.Millisecond }
			s.told = nth(3, func(b *bench) { b.aside(b.dev.Reboot) })
		},
		ends: goesOn, shape: proto.Digits,
	},
	"switch restarts for long": {
		setup: func(_ *testing.T, s *setup, _ *wire) { s.told = nth(3, func(b *bench) { b.aside(b.dev.Reboot) }) },
		ends:  failsClosed, shape: proto.Dead,
		says: []string{"rank ", " of rail0 (gpu", "dp/", "rail rail0", "port 0 of rank 0 (gpu1/ens1f0)"},
	},
	"somebody else connects": {
		setup: func(t *testing.T, s *setup, _ *wire) {
			s.trace = loadTestbed(t).program(10*time.Second, nil)
			own := s.orchestra
			s.orchestra = func(o *rail.Options) { own(o); o.Health = time.Second }
			s.told = nth(2, func(b *bench) {
				b.aside(func() {
					time.Sleep(5 * time.Second) // all ranks compute
					if _, err := b.dev.Connect([]ocs.CrossConnect{{Ingress: 2, Egress: 40}}); err != nil {
						panic(err)
					}
				})
			})
		},
		ends: goesOn, shape: proto.Digits,
		says: []string{"alarm: rail rail0", "port 1 of rank 0 (gpu1/ens1f1)", "are joined to others than they were left with"},
	},
	"stuck mirror": {
		setup: func(_ *testing.T, s *setup, _ *wire) { s.told = nth(3, func(b *bench) { b.dev.Unlight(38) }) },
		ends:  failsClosed, shape: proto.Dead,
		says: []string{
			"rank ", " of rail0 (gpu", "dp/", "rail rail0: no light came within 1s at port 38, port 1 of rank 2 (gpu3/ens1f1), of ocs1, though ", ">38: in -", " dBm, out -",
		},
	},
	"stuck mirror of one of two rails": {
		setup: func(_ *testing.T, s *setup, _ *wire) {
			s.rails = 2
			third := nth(3, func(b *bench) { b.dev.Unlight(38) })
			s.told = func(b *bench, e controller.Event) {
				if e.Rail == "rail0" {
					third(b, e)
				}
			}
		},
		ends: detours, shape: proto.Dead,
		says: []string{"dead: rail rail0: no light came within 1s at port 38, port 1 of rank 2 (gpu3/ens1f1), of ocs1, though "},
	},
	"dark path": { // which the giant ring does not need
		setup: func(_ *testing.T, s *setup, _ *wire) {
			s.told = nth(3, func(b *bench) {
				if err := b.dev.SetPathLoss(ocs.CrossConnect{Ingress: 1, Egress: 36}, ocs.DB(math.Inf(1))); err != nil {
					panic(err)
				}
			})
		},
		ends: fallsBack, shape: proto.Giant,
		says: []string{"fallback: rail rail0: no light came within 1s at port 36, port 1 of rank 1 (gpu2/ens1f1), of ocs1, though 1>36: in -"},
	},
	"controller killed and replaced": {
		setup: func(_ *testing.T, s *setup, _ *wire) { s.restarts = []time.Duration{85 * time.Millisecond} },
		ends:  goesOn, shape: proto.Digits,
	},
	"controller killed when one of two members has its leave": {
		setup: func(_ *testing.T, s *setup, _ *wire) {
			killed := false // by the connection's only goroutine that reads answers
			s.ready = func(b *bench) {
				b.between(2, nil, func(m proto.Message) []proto.Message {
					if ack, ok := m.(*proto.TopoAck); !ok || ack.Req != 2 || killed {
						return []proto.Message{m}
					}
					killed = true
					b.aside(func() {
						time.Sleep(time.Millisecond) // rank 3 has its own
						b.stop()
						b.start(b.opt)
					})
					return nil
				})
			}
		},
		ends: goesOn, shape: proto.Digits,
	},
	"two controllers": {
		setup: func(_ *testing.T, s *setup, _ *wire) {
			s.told = nth(3, func(b *bench) {
				b.aside(func() {
					opt := b.opt
					opt.Log, opt.Name = nil, "a rival"
					if c, err := controller.New(opt); err == nil {
						c.Run(b.ctx)
					}
				})
			})
		},
		ends: failsClosed, shape: proto.Digits,
		// The controller learns of it from its rail, or from a request that was refused.
		says: []string{"rank ", " of rail0 (gpu", "dp/", "another controller has taken over: ", "rail rail0", "a rival"},
	},
	"connection to the rail is cut": {
		setup: func(t *testing.T, s *setup, w *wire) {
			var cut func()
			s.remote = func(name string, o *rail.Orchestrator) (controller.Rail, error) {
				dial, c := serveRail(w, name, func() *rail.Orchestrator { return o })
				cut = c
				client := rail.Dial(w.ctx, dial, rail.ClientOptions{Rail: name})
				w.all.Go(func() { <-w.ctx.Done(); client.Close() })
				return client, nil
			}
			s.told = nth(3, func(b *bench) { b.aside(func() { time.Sleep(10 * time.Millisecond); cut() }) })
		},
		ends: goesOn, shape: proto.Digits,
	},
	"orchestrator killed between disconnect and connect": {
		setup: func(t *testing.T, s *setup, w *wire) {
			s.dir, s.policy = t.TempDir(), opus.Chain // ports go dark
			var mu sync.Mutex
			var now *rail.Orchestrator
			get := func() *rail.Orchestrator { mu.Lock(); defer mu.Unlock(); return now }
			var opt rail.Options
			disconnected := make(chan struct{})
			own := s.orchestra
			s.orchestra = func(o *rail.Options) {
				own(o)
				o.Changed = func(e rail.Event) {
					if e.What == rail.Disconnected {
						close(disconnected)
					}
				}
				opt = *o
				opt.Changed = nil
			}
			var cut func()
			s.remote = func(name string, o *rail.Orchestrator) (controller.Rail, error) {
				now = o
				dial, c := serveRail(w, name, get)
				cut = c
				client := rail.Dial(w.ctx, dial, rail.ClientOptions{Rail: name})
				w.all.Go(func() { <-w.ctx.Done(); client.Close() })
				return client, nil
			}
			s.told = nth(1, func(b *bench) {
				w.mu.Lock()
				w.dies = true
				w.mu.Unlock()
				b.aside(func() {
					select {
					case <-w.dying:
						<-disconnected
					case <-b.ctx.Done():
						return
					}
					w.mu.Lock()
					w.dies = false
					w.mu.Unlock()
					mu.Lock() // until it is there again nobody reaches it
					defer mu.Unlock()
					cut()
					now.Close()
					next, err := rail.New(b.ctx, opt)
					if err != nil {
						panic(err)
					}
					now, b.rails[opt.Rail] = next, next
				})
			})
		},
		ends: failsClosed, shape: proto.Digits,
		says: []string{"rank ", " of rail0 (gpu", "pp/", "epoch 1 of rail rail0 is over: it is at 2"},
	},
}

// Ensure that whatever goes wrong, ranks go on, fall back or stop, and are told why; that each rail ends in a state that
// is known, that no byte is lost, and that the other job on the switch does not notice.
func TestFaults(t *testing.T) {
	bed := loadTestbed(t)
	for name, c := range faultCases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(t, bed) })
		})
	}
}

// Ensure that nothing that goes wrong with single commands, or with all of a kind, is worse than that.
func TestFaults_Wire(t *testing.T) {
	bed := loadTestbed(t)
	for _, kind := range []emulator.FaultKind{
		emulator.FaultDeny, emulator.FaultLose, emulator.FaultHang, emulator.FaultClose, emulator.FaultTag, emulator.FaultFlood, emulator.FaultTwice,
		emulator.FaultShred,
	} {
		for _, verb := range []string{"ENT-PATCH", "DLT-PATCH", "RTRV-PATCH", "RTRV-PORT-POWER", "RTRV-PORT-PMON", "ACT-USER"} {
			for _, times := range []int{1, 0} {
				text := fmt.Sprintf("%s:%s:%d", kind, verb, times)
				t.Run(text, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						c := faultCase{ends: goesOn, shape: proto.Digits, setup: func(t *testing.T, s *setup, w *wire) {
							s.policy = opus.Chain // removes some circuits without making others
							n := 2
							if verb == "DLT-PATCH" {
								n = 1
							}
							s.told = nth(n, func(*bench) { w.fault(text) })
						}}
						harmless := kind == emulator.FaultTwice || kind == emulator.FaultShred
						// What took effect is seen by reading, whatever was answered; but nothing helps when that cannot be done.
						fatal := (verb == "RTRV-PATCH" || verb == "RTRV-PORT-POWER") && !harmless || verb == "ENT-PATCH" && (kind == emulator.FaultDeny || kind == emulator.FaultLose)
						switch noEffect := kind == emulator.FaultDeny || kind == emulator.FaultLose; {
						case times == 0 && fatal:
							c.ends, c.shape = failsClosed, proto.Dead
						case times == 0 && verb == "DLT-PATCH" && noEffect:
							c.ends, c.shape = fallsBack, proto.Giant // which is there still
						}
						c.run(t, bed)
					})
				})
			}
		}
	}
}

// Ensure a rail does not wait for ever for a switch that says nothing, whoever calls.
func TestFaults_SilentAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, err := newDevice(32, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		late := errors.New("that is for ever")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, late)
		defer cancel()
		bed := loadTestbed(t)
		s := setup{trace: bed.program(0, nil), size: 32}
		sw := &direct{dev, &faults{rand: rand.New(rand.NewPCG(1, 1)), share: 1, budget: -1, only: lose}}
		o, err := rail.New(ctx, rail.Options{Rail: "rail0", Switch: "ocs1", Job: bed.job.Job(), Assignment: s.assignment(0), Sessions: []ocs.Switch{sw}})
		switch {
		case err == nil:
			o.Close()
			t.Error("it begins with a switch that says nothing")
		case errors.Is(err, late):
			t.Errorf("it waits for as long as it is let: %v", err)
		case !strings.Contains(err.Error(), "ocs1"):
			t.Errorf("got %q, want the name of the switch", err)
		}
	})
}
