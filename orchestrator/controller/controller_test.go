package controller_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var job = opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}

// A fakeRail carries requests out one after another; each takes a while.
type fakeRail struct {
	opened proto.Opened
	refuse error // of open
	alarms chan proto.Alarm
	took   time.Duration
	fail   func(m any) error

	mu    sync.Mutex
	asked []string
	queue chan func()
}

func newRail(t *testing.T, o proto.Opened) *fakeRail {
	r := &fakeRail{opened: o, alarms: make(chan proto.Alarm, 1), took: 200 * time.Millisecond, queue: make(chan func(), 100)}
	go func() {
		for f := range r.queue {
			f()
		}
	}()
	t.Cleanup(func() { close(r.queue) })
	return r
}

func (r *fakeRail) ask(name string, m any, d proto.Done, done func(proto.Done, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, name)
	var err error
	if r.fail != nil {
		err = r.fail(m)
	}
	r.queue <- func() {
		time.Sleep(r.took)
		done(d, err)
	}
}

func (r *fakeRail) requests() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.asked, ", ")
}

func (r *fakeRail) Open(o proto.Open, done func(proto.Opened, error)) {
	r.queue <- func() { done(r.opened, r.refuse) }
}

func (r *fakeRail) Apply(a proto.Apply, done func(proto.Done, error)) {
	r.ask("apply "+a.ID, a, proto.Done{Req: a.Req, Generation: a.Req, Shape: proto.Digits, Result: proto.Applied, Attempts: 1, CommandNS: 1, SwitchAckNS: 2, VerifiedNS: 3}, done)
}

func (r *fakeRail) GiantRing(g proto.GiantRing, done func(proto.Done, error)) {
	r.ask("giant ring", g, proto.Done{Req: g.Req, Generation: g.Req, Shape: proto.Giant, Result: proto.Applied}, done)
}

func (r *fakeRail) Mark(m proto.Mark, done func(proto.Done, error)) {
	shape := proto.Digits
	if m.Dead {
		shape = proto.Dead
	}
	r.ask(fmt.Sprint("mark ", m.Dead), m, proto.Done{Req: m.Req, Shape: shape}, done)
}

func (r *fakeRail) Alarms() <-chan proto.Alarm { return r.alarms }
func (r *fakeRail) Close() error               { return nil }

// A peer is a shim, as literally as its messages.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	rank int
}

func (p *peer) send(m proto.Message) {
	p.t.Helper()
	frame, err := proto.Append(nil, m)
	if err == nil {
		_, err = p.conn.Write(frame)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) read() proto.Message {
	p.t.Helper()
	m, err := proto.Read(p.in)
	if err != nil {
		p.t.Fatalf("rank %d: %v", p.rank, err)
	}
	return m
}

func (p *peer) want(want proto.Message) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.read()); diff != "" {
		p.t.Errorf("rank %d: want -, got +:\n%s", p.rank, diff)
	}
}

func (p *peer) ask(req uint64, group string, op uint64) {
	p.t.Helper()
	p.send(&proto.TopoWrite{Req: req, Epoch: 3, OpRef: proto.OpRef{Group: group, Op: op}, Mode: proto.Demand})
}

func (p *peer) result(want proto.Result) {
	p.t.Helper()
	ack, ok := p.read().(*proto.TopoAck)
	if !ok || ack.Result != want {
		p.t.Errorf("rank %d got %+v, want %s", p.rank, ack, want)
	}
}

// A bench is a controller that runs, and what connects to it.
type bench struct {
	*testing.T
	c   *controller.Controller
	ctx context.Context
	wg  *sync.WaitGroup
}

func newBench(t *testing.T, opt controller.Options) *bench {
	t.Helper()
	opt.Job = job
	c, err := controller.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{T: t, c: c, ctx: ctx, wg: &sync.WaitGroup{}}
	b.wg.Go(func() {
		if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); b.wg.Wait() })
	return b
}

func (b *bench) dial(rank int) *peer {
	here, there := net.Pipe()
	b.Cleanup(func() { here.Close() })
	b.wg.Go(func() { _ = b.c.ServeConn(b.ctx, there) })
	return &peer{t: b.T, conn: here, in: bufio.NewReader(here), rank: rank}
}

func (b *bench) hello(rail string, rank int) *peer {
	b.Helper()
	p := b.dial(rank)
	p.send(&proto.Hello{Version: 1, Job: "lab", Rail: rail, Rank: rank})
	if w, ok := p.read().(*proto.Welcome); !ok || w.Epoch != 3 {
		b.Fatalf("rank %d got %+v", rank, w)
	}
	return p
}

// join has all ranks of a rail say hello and join their groups.
func (b *bench) join(rail string) []*peer {
	b.Helper()
	var all []*peer
	for x := range job.Ranks() {
		all = append(all, b.hello(rail, x))
	}
	for axis, name := range job.AxisNames() {
		for _, g := range job.Groups(axis) {
			for i, x := range g.Members {
				all[x].send(&proto.JoinGroup{Group: g.Name, Axis: name, Members: g.Members, Index: i})
			}
			for _, x := range g.Members {
				all[x].want(&proto.GroupOK{Group: g.Name, Domain: "rail", Rails: b.rails()})
			}
		}
	}
	return all
}

func (b *bench) rails() (names []string) {
	for _, r := range b.c.Status().Rails {
		names = append(names, r.Rail)
	}
	return names
}

func TestController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rail := newRail(t, proto.Opened{Epoch: 3, Generation: 5, Shape: proto.Digits, ID: "00"})
		b := newBench(t, controller.Options{Rails: map[string]controller.Rail{"rail0": rail}})
		ranks := b.join("rail0")
		for _, group := range []string{"dp/0", "dp/1"} {
			for x := range ranks {
				if x/2 == int(group[3]-'0') {
					ranks[x].ask(7, group, 0)
				}
			}
			synctest.Wait() // connections are read each by itself: the first group is served first only if the second asks later
		}
		for _, p := range ranks {
			ack := p.read().(*proto.TopoAck)
			if ack.ReadyNS == 0 || ack.Req != 7 {
				t.Errorf("%+v", ack)
			}
			ack.ReadyNS, ack.Generation = 0, 0
			if diff := cmp.Diff(&proto.TopoAck{Req: 7, ID: "11", Result: proto.Applied, CommandNS: 1, SwitchAckNS: 2, VerifiedNS: 3}, ack); diff != "" {
				t.Error(diff)
			}
		}
		if got, want := rail.requests(), "apply 10, apply 11"; got != want {
			t.Errorf("the rail was asked to %s, want %s", got, want)
		}
		s := b.c.Status().Rails[0]
		if s.ID != "11" || s.Ranks != 4 || len(s.Holders) != 4 || s.Counters.Acks != 4 {
			t.Errorf("%+v", s)
		}
		for _, p := range ranks {
			p.send(&proto.Bye{Reason: "the job is over"})
			if _, err := proto.Read(p.in); !errors.Is(err, io.EOF) {
				t.Errorf("after bye: %v", err)
			}
		}
		synctest.Wait()
		if s := b.c.Status().Rails[0]; s.Ranks != 0 || len(s.Holders) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestWatchdog: whoever waits too long is told for whom.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rail := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: "00"})
		b := newBench(t, controller.Options{
			Rails: map[string]controller.Rail{"rail0": rail}, Barrier: time.Minute,
			Who: func(rail string, rank int) string { return fmt.Sprintf("rank %d of %s (gpu%d)", rank, rail, rank+1) },
		})
		ranks := b.join("rail0")
		start := time.Now()
		ranks[0].ask(1, "dp/0", 0)
		ranks[0].want(&proto.TopoNack{Req: 1, Code: proto.Timeout, Detail: "operation 0 of dp/0 on rail rail0 waited for rank 1 of rail0 (gpu2)"})
		if got := time.Since(start); got != time.Minute {
			t.Errorf("after %v", got)
		}
		// A rank that goes takes those with it that wait for it.
		ranks[0].ask(2, "dp/0", 0)
		synctest.Wait()
		ranks[1].conn.Close()
		ranks[0].want(&proto.TopoNack{Req: 2, Code: proto.RankLost, Detail: "rank 1 of rail0 (gpu2) is gone, and dp/0 waits for it"})
	})
}

// TestDetour: when one of two rails dies, its operations take the other; when both have died, none.
func TestDetour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(any) error {
			return &proto.Refusal{Code: proto.Timeout, Attempts: 3, Detail: "the switch is silent"}
		}
		rail0 := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: "00"})
		rail1 := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: "00"})
		rail0.fail, rail1.fail = silent, silent
		b := newBench(t, controller.Options{Rails: map[string]controller.Rail{"rail0": rail0, "rail1": rail1}})
		first, second := b.join("rail0"), b.join("rail1")
		for _, p := range first[:2] {
			p.ask(1, "dp/0", 0)
		}
		for _, p := range first {
			p.want(&proto.Fallback{Rail: "rail0", Dead: true, Reason: "the switch is silent"})
		}
		for _, p := range first[:2] {
			p.result(proto.Detoured)
		}
		if got, want := rail0.requests(), "apply 10, giant ring, mark true"; got != want {
			t.Errorf("the rail was asked to %s, want %s", got, want)
		}
		for _, p := range second[:2] {
			p.ask(1, "dp/0", 0)
		}
		for _, p := range second {
			p.want(&proto.Fallback{Rail: "rail1", Dead: true, Reason: "the switch is silent"})
		}
		second[0].want(&proto.TopoNack{Req: 1, Code: proto.RailDead, Detail: "rail rail1 is dead, and no other rail lives: the switch is silent"})
		synctest.Wait()
		for _, p := range first[:2] {
			p.ask(2, "dp/0", 1)
		}
		first[0].want(&proto.TopoNack{Req: 2, Code: proto.RailDead, Detail: "rail rail0 is dead, and no other rail lives: the switch is silent"})
	})
}

// TestAlarm: nothing is granted until the orchestrator has looked at the rail.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rail := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: "00"})
		b := newBench(t, controller.Options{Rails: map[string]controller.Rail{"rail0": rail}})
		ranks := b.join("rail0")
		rail.alarms <- proto.Alarm{Detail: "somebody moved port 1"}
		synctest.Wait()
		start := time.Now()
		for _, x := range []int{0, 2} {
			ranks[x].ask(1, "pp/0", 0)
		}
		ranks[0].result(proto.NoOp)
		if got := time.Since(start); got != rail.took {
			t.Errorf("granted after %v", got)
		}
		if got, want := rail.requests(), "mark false"; got != want {
			t.Errorf("the rail was asked to %s, want %s", got, want)
		}
	})
}

func TestGreeting(t *testing.T) {
	for name, x := range map[string]struct {
		send proto.Message
		want string
	}{
		"no hello":  {&proto.Withdraw{Req: 1}, "the connection begins with withdraw: want hello"},
		"version":   {&proto.Hello{Version: 2, Job: "lab", Rail: "rail0"}, "the shim speaks version 2 of the protocol: want 1"},
		"job":       {&proto.Hello{Version: 1, Job: "other", Rail: "rail0"}, `the shim is of job "other", and this is the controller of "lab"`},
		"rail":      {&proto.Hello{Version: 1, Job: "lab", Rail: "rail9"}, `the shim is on rail "rail9", and job lab has [rail0]`},
		"rank":      {&proto.Hello{Version: 1, Job: "lab", Rail: "rail0", Rank: 4}, "rail rail0 of job lab has no rank 4: want 0 to 3"},
		"its holds": {&proto.Hello{Version: 1, Job: "lab", Rail: "rail0", Holds: []proto.OpRef{{Group: "dp/1"}}}, "rank 0 of rail0 is not in group dp/1, whose members are [2 3]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rail := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: "00"})
				b := newBench(t, controller.Options{Rails: map[string]controller.Rail{"rail0": rail}})
				p := b.dial(0)
				p.send(x.send)
				if bye, ok := p.read().(*proto.Bye); !ok || bye.Reason != x.want {
					t.Errorf("got %+v, want %s", bye, x.want)
				}
			})
		})
	}
}

// TestWelcome: shims are told how long an answer may take, and that it may take for ever.
func TestWelcome(t *testing.T) {
	for barrier, want := range map[time.Duration]time.Duration{0: controller.DefaultBarrier + 5*time.Second, time.Second: 6 * time.Second, -1: 0} {
		synctest.Test(t, func(t *testing.T) {
			rail := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: "00"})
			b := newBench(t, controller.Options{Rails: map[string]controller.Rail{"rail0": rail}, Barrier: barrier, Drain: 5 * time.Second})
			p := b.dial(0)
			p.send(&proto.Hello{Version: 1, Job: "lab", Rail: "rail0"})
			if w, ok := p.read().(*proto.Welcome); !ok || w.TimeoutNS != int64(want) {
				t.Errorf("with barriers of %v: %+v, want %v", barrier, w, want)
			}
		})
	}
}

// TestConnectsAgain: the new connection of a rank takes the place of the old one.
func TestConnectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rail := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: "00"})
		b := newBench(t, controller.Options{Rails: map[string]controller.Rail{"rail0": rail}})
		old := b.hello("rail0", 0)
		now := b.hello("rail0", 0)
		old.want(&proto.Bye{Reason: "the rank has connected again"})
		if _, err := proto.Read(old.in); !errors.Is(err, io.EOF) {
			t.Errorf("the old connection: %v", err)
		}
		now.send(&proto.JoinGroup{Group: "dp/0", Axis: "dp", Members: []int{0, 1}, Index: 0})
		synctest.Wait()
		if s := b.c.Status().Rails[0]; s.Ranks != 1 || !slices.Equal(s.Missing, []int{1, 2, 3}) {
			t.Errorf("%+v", s)
		}
	})
}

// TestConnectsAgain_Ended: a rank of a run that has ended comes back when the next one has begun, and takes nobody's place.
func TestConnectsAgain_Ended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rail := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: "00"})
		b := newBench(t, controller.Options{Rails: map[string]controller.Rail{"rail0": rail}})
		for _, p := range b.join("rail0") {
			p.conn.Close()
		}
		synctest.Wait()
		now := b.join("rail0")
		again := func(run uint64) *peer {
			p := b.dial(1)
			p.send(&proto.Hello{Version: 1, Job: "lab", Rail: "rail0", Rank: 1, Epoch: 3, Run: run})
			return p
		}
		again(1).want(&proto.Bye{Code: proto.Conflict, Reason: "rank 1 of rail0 comes back to run 1 of job lab, and it is at run 2"})
		for _, p := range now[:2] {
			p.ask(1, "dp/0", 0)
		}
		for _, p := range now[:2] {
			p.result(proto.Applied)
		}
		p := again(2) // of this run
		if w, ok := p.read().(*proto.Welcome); !ok || w.Run != 2 {
			t.Errorf("%+v", w)
		}
	})
}

func TestRun_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rail := newRail(t, proto.Opened{})
		rail.refuse = errors.New("nobody is there")
		c, err := controller.New(controller.Options{Job: job, Rails: map[string]controller.Rail{"rail0": rail}})
		if err != nil {
			t.Fatal(err)
		}
		if err, want := c.Run(t.Context()), "rail rail0 could not be opened: nobody is there"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestNew(t *testing.T) {
	rails := map[string]controller.Rail{"rail0": nil}
	for name, opt := range map[string]controller.Options{
		"job": {Rails: rails}, "rails": {Job: job},
		"policy":      {Job: job, Rails: rails, Policy: "par"},
		"granularity": {Job: job, Rails: rails, Granularity: "group"},
	} {
		if _, err := controller.New(opt); !errors.Is(err, controller.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServe: over sockets.
func TestServe(t *testing.T) {
	rail := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: "00"})
	rail.took = 0
	c, err := controller.New(controller.Options{Job: job, Rails: map[string]controller.Rail{"rail0": rail}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- c.Serve(ctx, l) }()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	p := &peer{t: t, conn: nc, in: bufio.NewReader(nc)}
	p.send(&proto.Hello{Version: 1, Job: "lab", Rail: "rail0"})
	if w, ok := p.read().(*proto.Welcome); !ok || w.Epoch != 3 || w.TimeoutNS <= 0 {
		t.Errorf("%+v", w)
	}
	if _, err := nc.Write([]byte("GET / HTTP/1.1\r\n")); err != nil {
		t.Fatal(err)
	}
	if bye, ok := p.read().(*proto.Bye); !ok || bye.Code != proto.Bad {
		t.Errorf("%+v", bye)
	}
	cancel()
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
