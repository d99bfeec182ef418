package rail_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/topology/opus"
)

var (
	_ controller.Rail = (*rail.Orchestrator)(nil)
	_ controller.Rail = (*rail.Client)(nil)
)

// figure8 has 24 duplex ports, on 1-24 and 25-48 of the switch.
var figure8 = opus.Job{Name: "figure-8", Stages: 3, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}

// device is a switch in memory on which things go wrong.
type device struct {
	*ocstest.Switch
	apply func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) // in place of that of the switch; nil is that
	read  func(ctx context.Context) (ocs.Map, error)
	power func(ports []ocs.Port) map[ocs.Port]ocs.DBm // nil: it has no monitors
}

func (d *device) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if d.apply != nil {
		return d.apply(ctx, c)
	}
	return d.Switch.Apply(ctx, c)
}

func (d *device) CrossConnects(ctx context.Context) (ocs.Map, error) {
	if d.read != nil {
		return d.read(ctx)
	}
	return d.Switch.CrossConnects(ctx)
}

func (d *device) Power(_ context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	if d.power == nil {
		return ocs.PowerReading{}, fmt.Errorf("power: %w", ocs.ErrNotSupported)
	}
	return ocs.PowerReading{Ports: d.power(ports)}, nil
}
func (d *device) Monitors(context.Context, ...ocs.Port) ([]ocs.Monitor, error) { return nil, nil }
func (d *device) SetMonitor(context.Context, ocs.Monitor) error                { return nil }

// commands returns how many changes were asked for, and forgets nothing.
func (d *device) commands() int { return len(d.Applied()) }

func newDevice() *device { return &device{Switch: ocstest.New(24, ocs.Map{})} }

func options(sw ...ocs.Switch) rail.Options {
	return rail.Options{
		Rail: "rail0", Switch: "ocs1", Job: figure8, Policy: opus.Chain, Assignment: opus.Regular(24, 1, 25), Sessions: sw, Health: -1,
	}
}

func start(t testing.TB, opt rail.Options) *rail.Orchestrator {
	t.Helper()
	o, err := rail.New(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

type answer struct {
	done proto.Done
	err  error
}

// asker is a controller that waits.
type asker struct {
	r     controller.Rail
	mu    sync.Mutex
	epoch uint64
	req   uint64
}

func openMessage() proto.Open {
	return proto.Open{Version: proto.Version, Rail: "rail0", Controller: "a test", Job: figure8, Policy: opus.Chain}
}

func opened(t testing.TB, r controller.Rail) (*asker, proto.Opened) {
	t.Helper()
	got := make(chan proto.Opened, 1)
	r.Open(openMessage(), func(o proto.Opened, err error) {
		if err != nil {
			t.Errorf("open: %v", err)
		}
		got <- o
	})
	state := <-got
	return &asker{r: r, epoch: state.Epoch}, state
}

func (a *asker) next() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.req++
	return a.req
}

func (a *asker) later(f func(done func(proto.Done, error))) chan answer {
	got := make(chan answer, 1)
	f(func(d proto.Done, err error) { got <- answer{d, err} })
	return got
}

func (a *asker) idLater(id string) chan answer {
	return a.later(func(done func(proto.Done, error)) {
		a.r.Apply(proto.Apply{Req: a.next(), Epoch: a.epoch, ID: id}, done)
	})
}

func (a *asker) id(id string) answer { return <-a.idLater(id) }

func (a *asker) joinLater(join [][2]int, part ...int) chan answer {
	return a.later(func(done func(proto.Done, error)) {
		a.r.Apply(proto.Apply{Req: a.next(), Epoch: a.epoch, Join: join, Part: part}, done)
	})
}

func (a *asker) ring() answer {
	return <-a.later(func(done func(proto.Done, error)) {
		a.r.GiantRing(proto.GiantRing{Req: a.next(), Epoch: a.epoch, Reason: "a test"}, done)
	})
}

func (a *asker) mark(dead bool) answer {
	return <-a.later(func(done func(proto.Done, error)) {
		a.r.Mark(proto.Mark{Req: a.next(), Epoch: a.epoch, Dead: dead, Reason: "a test"}, done)
	})
}

func holds(t testing.TB, sw ocs.Switch, want ocs.Map) {
	t.Helper()
	got, err := sw.CrossConnects(context.Background())
	if err != nil || !got.Equal(want) {
		t.Errorf("the switch holds %v, %v; want %v", got, err, want)
	}
}

func mapOf(t testing.TB, id string) ocs.Map {
	t.Helper()
	m, err := buildMap(id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func buildMap(id string) (ocs.Map, error) { return buildMapOf(opus.Chain, id) }

func buildMapOf(policy opus.Policy, id string) (ocs.Map, error) {
	var m opus.Matching
	var err error
	if id == "ring" {
		m, err = opus.GiantRing(figure8)
	} else {
		var d opus.ID
		if d, err = figure8.ParseID(id); err == nil {
			m, err = opus.Build(figure8, d, policy)
		}
	}
	if err != nil {
		return ocs.Map{}, err
	}
	return opus.Regular(24, 1, 25).Map(m)
}

func codeOf(err error) proto.Code {
	var r *proto.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// TestApply_Figure8 follows the example of the paper from the giant ring on, on the switch's own read-back.
func TestApply_Figure8(t *testing.T) {
	sw := newDevice()
	o := start(t, options(sw))
	a, state := opened(t, o)
	if state.Shape != proto.Giant || state.Epoch != 1 || len(state.Circuits) != 12 {
		t.Fatalf("it begins as %+v", state)
	}
	holds(t, sw, mapOf(t, "ring"))
	for _, x := range []struct {
		id             string
		removed, added int // -1: not looked at
		commands       int
	}{
		{"111", -1, -1, 1},
		{"001", 16, 8, 1}, // no circuit only goes dark: one of its ends serves the pipeline
		{"111", 8, 16, 1},
		{"211", 8, 8, 1},
		{"111", 8, 8, 1},
		{"222", 24, 24, 1},
		{"222", 0, 0, 0},
		{"000", -1, -1, -1},
		{"111", -1, -1, -1},
		{"201", 16, 8, 2}, // stage 1 goes dark first
		{"111", 8, 16, 1},
	} {
		before := sw.commands()
		got := a.id(x.id)
		if got.err != nil {
			t.Fatalf("%s: %v", x.id, got.err)
		}
		if x.removed >= 0 && (got.done.Removed != x.removed || got.done.Added != x.added) {
			t.Errorf("%s: removed %d and added %d, want %d and %d", x.id, got.done.Removed, got.done.Added, x.removed, x.added)
		}
		if n := sw.commands() - before; x.commands >= 0 && n != x.commands {
			t.Errorf("%s: %d commands, want %d", x.id, n, x.commands)
		}
		if noop := got.done.Result == proto.NoOp; noop != (x.removed == 0) {
			t.Errorf("%s: %+v", x.id, got.done)
		}
		holds(t, sw, mapOf(t, x.id))
	}
	if s := o.Status(); s.Shape != proto.Digits || s.ID != "111" || s.Pending != 0 || s.Counters.NoOps != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestApply_Circuits(t *testing.T) {
	sw := newDevice()
	a, _ := opened(t, start(t, options(sw)))
	a.id("111")
	for _, x := range []struct {
		join [][2]int
		part []int
		want string // at ports 0 to 7
	}{
		{[][2]int{{1, 4}, {5, 0}}, nil, "1>30,2>29,5>26,6>25"}, // as they are
		{[][2]int{{0, 3}}, nil, "1>28,4>25"},
		{nil, []int{0}, ""},
		{[][2]int{{0, 2}, {1, 3}}, []int{6}, "1>27,2>28,3>25,4>26"},
	} {
		if got := <-a.joinLater(x.join, x.part...); got.err != nil {
			t.Fatalf("%v: %v", x, got.err)
		}
		m, _ := sw.CrossConnects(t.Context())
		want, err := ocs.ParseMap(x.want)
		if err != nil {
			t.Fatal(err)
		}
		for c := range want.All() {
			if !m.Has(c) {
				t.Errorf("%v: %v is missing in %v", x.join, c, m)
			}
		}
	}
	for _, x := range []proto.Apply{
		{Join: [][2]int{{0, 24}}}, {Join: [][2]int{{0, -1}}}, {Join: [][2]int{{0, 0}}}, {Join: [][2]int{{0, 1}, {1, 2}}}, {Part: []int{99}},
		{ID: "11"}, {ID: "113"}, {ID: "111", Part: []int{1}}, {},
	} {
		x.Epoch, x.Req = a.epoch, a.next()
		got := <-a.later(func(done func(proto.Done, error)) { a.r.Apply(x, done) })
		if codeOf(got.err) != proto.Bad {
			t.Errorf("%+v: got %v", x, got.err)
		}
	}
}

// TestApply_NoLostUpdate has two stages change at the same time, each request naming the ID that follows from all before
// it.
func TestApply_NoLostUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		var mu sync.Mutex
		busy, most := 0, 0
		sw.apply = func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			time.Sleep(200 * time.Millisecond)
			mu.Lock()
			busy--
			mu.Unlock()
			return sw.Switch.Apply(ctx, c)
		}
		a, _ := opened(t, start(t, options(sw, sw)))
		a.id("111")
		begun := time.Now()
		one := a.idLater("211")
		synctest.Wait()
		two := a.idLater("221")
		synctest.Wait()
		three := a.idLater("222")
		for _, c := range []chan answer{one, two, three} {
			if got := <-c; got.err != nil || got.done.Removed != 8 {
				t.Errorf("got %+v", got)
			}
		}
		holds(t, sw, mapOf(t, "222"))
		if most != 2 {
			t.Errorf("%d at the same time, want 2", most)
		}
		if d := time.Since(begun); d > 400*time.Millisecond {
			t.Errorf("it took %v of the clock of the test", d)
		}
		// The same stage twice: one after the other, and the last one counts.
		first, second, same := a.idLater("122"), a.idLater("222"), a.idLater("222")
		if got := <-first; got.err != nil {
			t.Error(got.err)
		}
		select {
		case got := <-same:
			t.Errorf("a request without a change was answered before that on which it relies: %+v", got)
		default:
		}
		if got := <-second; got.err != nil || got.done.Result != proto.Applied {
			t.Errorf("got %+v", got)
		}
		if got := <-same; got.err != nil || got.done.Result != proto.NoOp {
			t.Errorf("got %+v", got)
		}
		holds(t, sw, mapOf(t, "222"))
	})
}

// TestApply_Batch has what is ready while the only session is busy carried out with one command.
func TestApply_Batch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		a, _ := opened(t, start(t, options(sw)))
		a.id("111")
		sw.apply = func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
			time.Sleep(200 * time.Millisecond)
			return sw.Switch.Apply(ctx, c)
		}
		before := sw.commands()
		first := a.idLater("211")
		synctest.Wait()
		second, third := a.idLater("221"), a.idLater("222")
		for _, c := range []chan answer{first, second, third} {
			if got := <-c; got.err != nil {
				t.Error(got.err)
			}
		}
		if n := sw.commands() - before; n != 2 {
			t.Errorf("%d commands, want 2", n)
		}
		holds(t, sw, mapOf(t, "222"))
	})
}

// TestApply_EarlyRelease gives ports that only go dark to the next request while the rest of the change is still under
// way.
func TestApply_EarlyRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		a, _ := opened(t, start(t, options(sw, sw)))
		a.id("111")
		sw.apply = func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
			if c.Add.Len() > 0 {
				time.Sleep(200 * time.Millisecond)
			}
			return sw.Switch.Apply(ctx, c)
		}
		begun := time.Now()
		// Ports 16 to 19 (stage 2) go dark, 0 to 7 are joined otherwise.
		long := a.joinLater([][2]int{{0, 2}, {1, 3}, {4, 6}, {5, 7}}, 16, 17)
		short := a.joinLater([][2]int{{16, 17}})
		for _, c := range []chan answer{long, short} {
			if got := <-c; got.err != nil {
				t.Error(got.err)
			}
		}
		if d := time.Since(begun); d != 200*time.Millisecond {
			t.Errorf("it took %v of the clock of the test, want one switching time", d)
		}
	})
}

// TestFaults crosses what can go wrong with when it does.
func TestFaults(t *testing.T) {
	errDrop := errors.New("connection reset by peer")
	faults := map[string]struct {
		apply func(sw *device, ctx context.Context, c ocs.Change) (ocs.Receipt, error)
		code  proto.Code
	}{
		"silent": {func(_ *device, ctx context.Context, _ ocs.Change) (ocs.Receipt, error) {
			<-ctx.Done()
			return ocs.Receipt{}, context.Cause(ctx)
		}, proto.Timeout},
		"silent, but it did": {func(sw *device, ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
			_, _ = sw.Switch.Apply(ctx, c)
			<-ctx.Done()
			return ocs.Receipt{}, context.Cause(ctx)
		}, ""},
		"lie":  {func(*device, context.Context, ocs.Change) (ocs.Receipt, error) { return ocs.Receipt{Requests: 1}, nil }, proto.Verify},
		"deny": {func(*device, context.Context, ocs.Change) (ocs.Receipt, error) { return ocs.Receipt{}, ocs.ErrDenied }, proto.Conflict},
		"drop": {func(*device, context.Context, ocs.Change) (ocs.Receipt, error) { return ocs.Receipt{}, errDrop }, proto.Timeout},
		"half": {func(sw *device, ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
			_, _ = sw.Switch.Apply(ctx, ocs.Change{Remove: c.Remove})
			return ocs.Receipt{Requests: 1}, errDrop
		}, proto.Timeout},
	}
	for name, fault := range faults {
		for _, last := range []bool{false, true} {
			for _, to := range []string{"222", "201"} { // one command, and two
				t.Run(fmt.Sprintf("%s/last=%t/%s", name, last, to), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						sw := newDevice()
						o := start(t, options(sw))
						a, _ := opened(t, o)
						a.id("111")
						n := 0
						sw.apply = func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
							if n++; n == 1 || last {
								return fault.apply(sw, ctx, c)
							}
							return sw.Switch.Apply(ctx, c)
						}
						got := a.id(to)
						fails := last && fault.code != "" && name != "half"
						if name == "half" && last && got.err == nil {
							fails = false
						} else if name == "half" && last {
							fails = true
						}
						if !fails {
							if got.err != nil || got.done.Attempts < 2 || got.done.Result != proto.Applied {
								t.Fatalf("got %+v", got)
							}
							holds(t, sw, mapOf(t, to))
							return
						}
						if codeOf(got.err) != fault.code || !strings.Contains(got.err.Error(), "rail0") {
							t.Fatalf("got %v", got.err)
						}
						s := o.Status()
						if s.Shape != proto.Circuits || s.ID != "" || s.Reason == "" || len(s.Unsure) == 0 {
							t.Errorf("got %+v", s)
						}
						m, _ := sw.CrossConnects(t.Context())
						for _, c := range s.Circuits {
							for _, x := range opus.Regular(24, 1, 25).CrossConnects(opus.Circuit{A: c[0], B: c[1]}) {
								if !m.Has(x) {
									t.Errorf("it says that %v is there", x)
								}
							}
						}
						sw.apply = nil
						if got := a.ring(); got.err != nil || got.done.Shape != proto.Giant {
							t.Fatalf("got %+v", got)
						}
						holds(t, sw, mapOf(t, "ring"))
						if got := a.id(to); got.err != nil {
							t.Errorf("back to the plan: %v", got.err)
						}
						holds(t, sw, mapOf(t, to))
					})
				})
			}
		}
	}
}

// TestFailure_Dependents: what relies on a request that fails does, too; what has begun on other ports does not.
func TestFailure_Dependents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		o := start(t, options(sw, sw))
		a, _ := opened(t, o)
		a.id("111")
		sw.apply = func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
			time.Sleep(100 * time.Millisecond)
			if _, stage0 := c.Add.EgressOf(1); stage0 {
				return ocs.Receipt{}, ocs.ErrDenied
			}
			return sw.Switch.Apply(ctx, c)
		}
		bad, good := a.idLater("211"), a.idLater("221")
		behind, named := a.idLater("121"), a.idLater("122")
		if got := <-bad; codeOf(got.err) != proto.Conflict {
			t.Errorf("got %+v", got)
		}
		if got := <-good; got.err != nil {
			t.Errorf("got %+v", got)
		}
		if got := <-behind; codeOf(got.err) != proto.Conflict || !strings.Contains(got.err.Error(), "relies") {
			t.Errorf("got %+v", got)
		}
		got := <-named // it had begun, or not
		if got.err != nil && codeOf(got.err) != proto.Conflict {
			t.Errorf("got %+v", got)
		}
		sw.apply = nil
		if got := a.id("221"); got.err != nil {
			t.Error(got.err)
		}
		holds(t, sw, mapOf(t, "221"))
		if s := o.Status(); s.Shape != proto.Digits || s.ID != "221" || s.Unsure != nil {
			t.Errorf("got %+v", s)
		}
	})
}

func TestMark(t *testing.T) {
	sw := newDevice()
	opt := options(sw)
	opt.Dir = t.TempDir()
	o := start(t, opt)
	a, _ := opened(t, o)
	a.id("221")
	before := sw.commands()
	if got := a.mark(true); got.err != nil || got.done.Shape != proto.Dead {
		t.Fatalf("got %+v", got)
	}
	if got := a.id("111"); codeOf(got.err) != proto.RailDead {
		t.Errorf("got %+v", got)
	}
	if got := a.ring(); codeOf(got.err) != proto.RailDead {
		t.Errorf("got %+v", got)
	}
	o.Close()
	o = start(t, opt)
	if n := sw.commands() - before; n != 0 {
		t.Errorf("a dead rail got %d commands", n)
	}
	a, state := opened(t, o)
	if state.Shape != proto.Dead || !strings.HasPrefix(state.Reason, "a test; it stays so until") {
		t.Fatalf("got %+v", state)
	}
	sw.Set(ocs.Map{})
	sw.apply = func(context.Context, ocs.Change) (ocs.Receipt, error) { return ocs.Receipt{}, ocs.ErrDenied }
	if got := a.mark(false); got.err == nil || o.Status().Shape != proto.Dead {
		t.Errorf("it cannot have come back: %+v, %+v", got, o.Status())
	}
	sw.apply = nil
	if got := a.mark(false); got.err != nil {
		t.Errorf("got %+v", got)
	}
}

func TestOpen(t *testing.T) {
	sw := newDevice()
	o := start(t, options(sw))
	if got := <-(&asker{}).later(func(done func(proto.Done, error)) { o.Apply(proto.Apply{Req: 1, ID: "111"}, done) }); codeOf(got.err) != proto.Stale {
		t.Errorf("nobody has opened: got %v", got.err)
	}
	for _, change := range []func(*proto.Open){
		func(m *proto.Open) { m.Version = 7 },
		func(m *proto.Open) { m.Rail = "rail7" },
		func(m *proto.Open) { m.Job.Stages = 7 },
		func(m *proto.Open) { m.Policy = opus.Pair },
	} {
		m := openMessage()
		change(&m)
		got := make(chan error, 1)
		o.Open(m, func(_ proto.Opened, err error) { got <- err })
		if err := <-got; codeOf(err) != proto.Bad {
			t.Errorf("%+v: got %v", m, err)
		}
	}
	a, _ := opened(t, o)
	m := openMessage()
	m.Resume = a.epoch
	resumed := make(chan uint64, 1)
	o.Open(m, func(s proto.Opened, err error) { resumed <- s.Epoch })
	if e := <-resumed; e != a.epoch {
		t.Errorf("resumed with epoch %d, want %d", e, a.epoch)
	}
	b, _ := opened(t, o)
	before := sw.commands()
	if got := a.id("111"); codeOf(got.err) != proto.Stale || sw.commands() != before {
		t.Errorf("got %+v", got)
	}
	o.Open(m, func(_ proto.Opened, err error) { resumed <- uint64(len(codeOf(err))) })
	if e := <-resumed; e != uint64(len(proto.Stale)) {
		t.Error("it could resume an epoch that is over")
	}
	if got := b.id("111"); got.err != nil {
		t.Error(got.err)
	}
}

// TestOpen_TakesOver: requests of the controller before that have not begun have no effect, and those that have are
// waited for.
func TestOpen_TakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		o := start(t, options(sw))
		a, _ := opened(t, o)
		a.id("111")
		sw.apply = func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
			time.Sleep(time.Millisecond)
			return sw.Switch.Apply(ctx, c)
		}
		first := a.idLater("211")
		synctest.Wait()
		second := a.idLater("111")
		b, state := opened(t, o)
		if got := <-first; got.err != nil {
			t.Error(got.err)
		}
		if got := <-second; codeOf(got.err) != proto.Stale {
			t.Errorf("got %+v", got)
		}
		if state.ID != "211" || state.Shape != proto.Digits || state.Epoch != a.epoch+1 {
			t.Errorf("got %+v", state)
		}
		holds(t, sw, mapOf(t, "211"))
		if got := b.id("211"); got.done.Result != proto.NoOp {
			t.Errorf("got %+v", got)
		}
	})
}

// TestRepeat answers a request that is made again with what it had.
func TestRepeat(t *testing.T) {
	sw := newDevice()
	o := start(t, options(sw))
	a, _ := opened(t, o)
	m := proto.Apply{Req: 5, Epoch: a.epoch, ID: "111"}
	first := <-a.later(func(done func(proto.Done, error)) { o.Apply(m, done) })
	n := sw.commands()
	again := <-a.later(func(done func(proto.Done, error)) { o.Apply(m, done) })
	if again.err != nil || cmp.Diff(first.done, again.done) != "" || sw.commands() != n {
		t.Errorf("got %+v, want %+v", again, first)
	}
	m.ID = "222"
	if got := <-a.later(func(done func(proto.Done, error)) { o.Apply(m, done) }); codeOf(got.err) != proto.Bad {
		t.Errorf("got %+v", got)
	}
}

func TestNew_Refuses(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*rail.Options, *device)
		want   error
	}{
		"a circuit of others": {func(_ *rail.Options, d *device) { d.Set(ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 60})) }, ocs.ErrConflict},
		"protected":           {func(o *rail.Options, _ *device) { o.Protected = []ocs.Port{30} }, ocs.ErrInterlock},
		"no such port":        {func(o *rail.Options, _ *device) { o.Assignment = opus.Regular(24, 10, 60) }, ocs.ErrPort},
		"no light":            {func(o *rail.Options, d *device) { o.Verify, o.Sessions = rail.Light, []ocs.Switch{d.Switch} }, ocs.ErrNotSupported},
		"not cabled":          {func(o *rail.Options, _ *device) { o.Assignment = opus.Regular(23, 1, 40) }, opus.ErrJob},
	} {
		sw := &device{Switch: ocstest.New(32, ocs.Map{})}
		opt := options(sw)
		opt.Assignment = opus.Regular(24, 1, 33)
		if name == "protected" {
			opt.Assignment = opus.Regular(24, 9, 33)
		}
		x.change(&opt, sw)
		if name == "a circuit of others" {
			opt.Assignment = opus.Regular(24, 1, 33)
		}
		if o, err := rail.New(t.Context(), opt); !errors.Is(err, x.want) {
			t.Errorf("%s: got %v", name, err)
			if err == nil {
				o.Close()
			}
		} else if sw.commands() != 0 {
			t.Errorf("%s: it changed something", name)
		}
	}
	// Update moves it.
	sw := &device{Switch: ocstest.New(32, ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 60}, ocs.CrossConnect{Ingress: 30, Egress: 61}))}
	opt := options(sw)
	opt.Assignment, opt.Takeover = opus.Regular(24, 1, 33), ocs.Update
	a, _ := opened(t, start(t, opt))
	if got := a.id("111"); got.err != nil {
		t.Error(got.err)
	}
	if m, _ := sw.CrossConnects(t.Context()); m.Len() != 25 || !m.Has(ocs.CrossConnect{Ingress: 30, Egress: 61}) {
		t.Errorf("got %v", m)
	}
}

// TestNew_Dead: a switch that refuses everything leaves a rail that says that it is dead, and can be brought back.
func TestNew_Dead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		sw.apply = func(context.Context, ocs.Change) (ocs.Receipt, error) { return ocs.Receipt{}, ocs.ErrDenied }
		o := start(t, options(sw))
		a, state := opened(t, o)
		if state.Shape != proto.Dead || !strings.Contains(state.Reason, "refused") {
			t.Fatalf("got %+v", state)
		}
		if got := a.id("111"); codeOf(got.err) != proto.RailDead {
			t.Errorf("got %+v", got)
		}
		sw.apply = nil
		if got := a.mark(false); got.err != nil || got.done.Shape != proto.Giant {
			t.Errorf("got %+v", got)
		}
		holds(t, sw, mapOf(t, "ring"))
		// The giant ring fails, too: what it holds is not certain, until it is marked.
		sw.apply = func(context.Context, ocs.Change) (ocs.Receipt, error) { return ocs.Receipt{}, ocs.ErrDenied }
		a.id("111")
		sw.Set(ocs.Map{})
		if got := a.ring(); codeOf(got.err) != proto.Conflict {
			t.Errorf("got %+v", got)
		}
		if got := a.mark(true); got.err != nil || o.Status().Shape != proto.Dead {
			t.Errorf("got %+v, %+v", got, o.Status())
		}
	})
}

// TestClose answers all that is outstanding, and what comes later.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		o := start(t, options(sw))
		a, _ := opened(t, o)
		a.id("111")
		sw.apply = func(ctx context.Context, _ ocs.Change) (ocs.Receipt, error) {
			<-ctx.Done()
			return ocs.Receipt{}, context.Cause(ctx)
		}
		one, two, three := a.idLater("222"), a.idLater("111"), a.joinLater([][2]int{{0, 1}})
		synctest.Wait()
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		for _, c := range []chan answer{one, two, three, a.idLater("222")} {
			if got := <-c; !errors.Is(got.err, net.ErrClosed) {
				t.Errorf("got %+v", got)
			}
		}
		if _, open := <-o.Alarms(); open {
			t.Error("the channel of alarms is open")
		}
	})
}

func TestGate(t *testing.T) {
	sw := newDevice()
	var panicked error
	opt := options(sw)
	opt.Gate = func() error { return panicked }
	o := start(t, opt)
	a, _ := opened(t, o)
	a.id("111")
	panicked = fmt.Errorf("a panic is in force: %w", ocs.ErrInterlock)
	before := sw.commands()
	if got := a.id("222"); codeOf(got.err) != proto.Conflict || sw.commands() != before {
		t.Errorf("got %+v", got)
	}
	if s := o.Status(); s.Unsure != nil || s.Shape != proto.Digits || s.ID != "111" {
		t.Errorf("nothing was changed, and it is %+v", s)
	}
	panicked = nil
	if got := a.id("222"); got.err != nil {
		t.Error(got.err)
	}
}

// Ensure nothing is granted where there is no light, though all circuits are there, that this is an alarm, told once, and
// that the rail goes on when the light is back.
func TestDark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		var off atomic.Pointer[error]
		opt := options(sw)
		opt.Health = time.Second
		opt.Dark = func() error {
			if err := off.Load(); err != nil {
				return *err
			}
			return nil
		}
		o := start(t, opt)
		a, _ := opened(t, o)
		a.id("111")
		panicked := fmt.Errorf("a panic is in force: %w", ocs.ErrInterlock)
		off.Store(&panicked)
		before := sw.commands()
		for _, id := range []string{"111", "222"} {
			if got := a.id(id); codeOf(got.err) != proto.Conflict || !strings.Contains(got.err.Error(), "a panic is in force") || sw.commands() != before {
				t.Errorf("%s: got %+v", id, got)
			}
		}
		time.Sleep(5 * time.Second)
		if alarm := <-o.Alarms(); !strings.Contains(alarm.Detail, "a panic is in force") || o.Status().Counters.Alarms != 1 {
			t.Errorf("alarms: %+v of %d", alarm, o.Status().Counters.Alarms)
		}
		if got := a.ring(); codeOf(got.err) != proto.Conflict { // which looks, as ports are unsure after what has failed
			t.Errorf("ring: got %+v", got)
		}
		off.Store(nil)
		for _, id := range []string{"111", "222"} {
			if got := a.id(id); got.err != nil {
				t.Errorf("%s: %v", id, got.err)
			}
		}
	})
}

// TestHealth: circuits that others changed are told of, those that the switch has lost are made again.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		opt := options(sw)
		opt.Health = time.Second
		opt.Where = func(p ocs.Port) string { return fmt.Sprintf("gpu of port %d", p) }
		o := start(t, opt)
		a, _ := opened(t, o)
		a.id("111")
		time.Sleep(3 * time.Second)
		if s := o.Status(); s.Counters.Alarms != 0 {
			t.Fatalf("got %+v", s)
		}

		want := mapOf(t, "111")
		sw.Set(ocs.Map{}) // it has been restarted
		if alarm := <-o.Alarms(); !strings.Contains(alarm.Detail, "made again") || len(alarm.Circuits) != 12 {
			t.Errorf("got %+v", alarm)
		}
		synctest.Wait()
		holds(t, sw, want)
		if s := o.Status(); s.Unsure != nil || s.ID != "111" {
			t.Errorf("got %+v", s)
		}

		sw.Set(want.Minus(ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 30})))
		alarm := <-o.Alarms()
		if !strings.Contains(alarm.Detail, "gpu of port 1") || cmp.Diff(alarm.Circuits, [][2]int{{0, 5}}) != "" {
			t.Errorf("got %+v", alarm)
		}
		if s := o.Status(); !slices.Equal(s.Unsure, []int{0, 5}) || slices.Contains(s.Circuits, [2]int{0, 5}) {
			t.Errorf("got %+v", s)
		}
		if got := a.id("111"); got.err != nil || got.done.Added != 1 {
			t.Errorf("got %+v", got)
		}
		holds(t, sw, want)

		// Somebody else's circuit at a port of the job.
		sw.Set(want.Minus(ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 30}, ocs.CrossConnect{Ingress: 6, Egress: 25})))
		<-o.Alarms()
		if got := a.id("211"); got.err != nil {
			t.Errorf("got %+v", got)
		}
		holds(t, sw, mapOf(t, "211"))
	})
}

func TestLight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		var lit atomic.Bool
		lit.Store(true)
		var stuck atomic.Uint32
		sw.power = func(ports []ocs.Port) map[ocs.Port]ocs.DBm {
			all := map[ocs.Port]ocs.DBm{}
			for _, p := range ports {
				if all[p] = -10; uint32(p) == stuck.Load() || p > 24 && !lit.Load() {
					all[p] = -60
				}
			}
			return all
		}
		opt := options(sw)
		opt.Verify, opt.Health = rail.Light, 10*time.Second
		o := start(t, opt)
		a, _ := opened(t, o)
		begun := time.Now()
		lit.Store(false)
		time.AfterFunc(100*time.Millisecond, func() { lit.Store(true) })
		if got := a.id("111"); got.err != nil || got.done.LightNS == 0 || time.Since(begun) < 100*time.Millisecond {
			t.Errorf("got %+v after %v", got, time.Since(begun))
		}
		stuck.Store(26)
		if got := a.id("222"); codeOf(got.err) != proto.Verify || !strings.Contains(got.err.Error(), "port 1 of rank 0") {
			t.Errorf("got %+v", got)
		}
		stuck.Store(0)
		a.id("111")
		stuck.Store(26)
		if alarm := <-o.Alarms(); !strings.Contains(alarm.Detail, "no light") {
			t.Errorf("got %+v", alarm)
		}
	})
}

// TestKill stops the process at each call of the switch, and begins again with the journal as it was at that moment.
func TestKill(t *testing.T) {
	errKilled := errors.New("killed")
	for n := 1; ; n++ {
		sw := newDevice()
		opt := options(sw)
		opt.Dir, opt.Attempts = t.TempDir(), 1
		o := start(t, opt)
		a, _ := opened(t, o)
		a.id("111")
		calls, dir := 0, t.TempDir()
		cut := func() bool {
			if calls++; calls == n {
				copyJournal(t, opt.Dir, dir)
			}
			return calls >= n
		}
		sw.apply = func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
			if cut() {
				return ocs.Receipt{}, errKilled
			}
			return sw.Switch.Apply(ctx, c)
		}
		sw.read = func(ctx context.Context) (ocs.Map, error) {
			if cut() {
				return ocs.Map{}, errKilled
			}
			return sw.Switch.CrossConnects(ctx)
		}
		at := "111"
		for _, id := range []string{"201", "222", "000"} {
			if got := a.id(id); got.err != nil {
				break
			}
			at = id
		}
		o.Close()
		if calls < n {
			if n < 8 {
				t.Fatalf("only %d calls", n)
			}
			return
		}
		sw.apply, sw.read = nil, nil
		opt.Dir = dir
		o = start(t, opt)
		_, state := opened(t, o)
		if state.Shape != proto.Digits || state.Epoch < 2 {
			t.Errorf("killed at call %d after %s: got %+v", n, at, state)
		}
		holds(t, sw, mapOf(t, state.ID))
		o.Close()
	}
}

func copyJournal(t testing.TB, from, to string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(from, "*.journal"))
	if err != nil || len(all) != 1 {
		t.Fatalf("journals: %v, %v", all, err)
	}
	text, err := os.ReadFile(all[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, filepath.Base(all[0])), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTorn begins with a journal that was cut off at each of its bytes.
func TestTorn(t *testing.T) {
	sw := newDevice()
	opt := options(sw)
	opt.Dir = t.TempDir()
	o := start(t, opt)
	a, _ := opened(t, o)
	for _, id := range []string{"111", "001"} {
		a.id(id)
	}
	<-a.joinLater([][2]int{{0, 2}}, 1)
	dir := t.TempDir()
	copyJournal(t, opt.Dir, dir)
	o.Close()
	all, _ := filepath.Glob(filepath.Join(dir, "*.journal"))
	text, err := os.ReadFile(all[0])
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(text) + 1 {
		if testing.Short() && n%7 > 0 {
			continue
		}
		opt.Dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(opt.Dir, filepath.Base(all[0])), text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := rail.New(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		s := o.Status()
		o.Close()
		torn, _ := filepath.Glob(filepath.Join(opt.Dir, "*.torn-*"))
		if whole := n == 0 || text[n-1] == '\n'; whole != (len(torn) == 0) {
			t.Errorf("cut at %d: moved aside: %v", n, torn)
		}
		m, _ := sw.CrossConnects(t.Context())
		switch s.Shape {
		case proto.Giant:
			holds(t, sw, mapOf(t, "ring"))
		case proto.Digits:
			holds(t, sw, mapOf(t, s.ID))
		case proto.Circuits:
			if m.Len() != 2*len(s.Circuits) {
				t.Errorf("cut at %d: %v, and the switch holds %v", n, s.Circuits, m)
			}
		default:
			t.Errorf("cut at %d: %+v", n, s)
		}
	}
}

func TestDisjoint(t *testing.T) {
	sw := &device{Switch: ocstest.New(64, ocs.Map{})}
	opt := options(sw)
	opt.Assignment = opus.Regular(24, 1, 65)
	one := start(t, opt)
	opt.Assignment = opus.Regular(24, 25, 89)
	opt.Job.Name = "other"
	two := start(t, opt)
	opt.Assignment = opus.Regular(24, 40, 89)
	if err := rail.Disjoint(one, two); err != nil {
		t.Error(err)
	}
	// Another job's changes leave this one's circuits alone.
	a, _ := opened(t, one)
	a.id("111")
	before := one.Status()
	m := openMessage()
	m.Job.Name = "other"
	got := make(chan uint64, 1)
	two.Open(m, func(o proto.Opened, err error) { got <- o.Epoch })
	b := &asker{r: two, epoch: <-got}
	for range 5 {
		b.id("222")
		b.id("000")
	}
	if d := cmp.Diff(before, one.Status()); d != "" {
		t.Error(d)
	}
	for _, c := range sw.Applied()[3:] {
		for _, p := range c.Ports() {
			if p <= 24 || p >= 65 && p < 89 {
				t.Errorf("%v touches the other job", c)
			}
		}
	}
	three := opt
	three.Takeover = ocs.Update
	three.Sessions = []ocs.Switch{newBig()}
	if err := rail.Disjoint(one, start(t, three), two); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("got %v", err)
	}
}

func newBig() *device { return &device{Switch: ocstest.New(64, ocs.Map{})} }
