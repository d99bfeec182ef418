package plane_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/opus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func nowNS() int64 { return timeline.HostAxis().NS(time.Now()) }

// labJob has two stages of two ranks, whose eight duplex ports are cabled in order.
var labJob = opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}

// exactly is a switch that takes 20 ms to the nanosecond.
func exactly(t testing.TB) *emulator.Device {
	t.Helper()
	p, err := emulator.ParsePersonality("exact", []byte(`
model: exact
vendor: Test
product: T
firmware: "1"
size: 8x8
switching: {single: 20ms, bulk: 20ms, rise: 200us, ack: after}
optics: {loss_db: 1, loss_max_db: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	d, err := emulator.New(p, emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// id joins the ports as a topology ID says, and waits until there is light. Only under synctest.
func id(t testing.TB, d *emulator.Device, text string) {
	t.Helper()
	digits, err := labJob.ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := opus.Build(labJob, digits, opus.Pair)
	if err != nil {
		t.Fatal(err)
	}
	all, err := cabled.Map(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Edit(nil, emulator.Edit{Only: true, Add: all.Slice()}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
}

var cabled = opus.Regular(8, 1, 9)

func emulated(t testing.TB, d *emulator.Device, opt plane.EmulatedOptions) *plane.Emulated {
	t.Helper()
	opt.Devices = map[string]*emulator.Device{"ocs": d}
	opt.Assignments = map[string]opus.Assignment{"rail0": cabled}
	e := plane.NewEmulated(opt)
	t.Cleanup(func() { e.Close() })
	return e
}

// dp is the part of a rank in an operation of its dp group: 10 ms, 10,000 bytes.
func dp(rank int, op uint64) plane.Transfer {
	g := labJob.GroupOf(rank, 1)
	return plane.Transfer{
		Rail: "rail0", Switch: "ocs", Rank: rank, Ref: proto.OpRef{Group: g.Name, Op: op}, Axis: 1, Members: g.Members,
		Bytes: 10_000, Duration: 10 * time.Millisecond, Uses: labJob.GroupCircuits(g),
	}
}

// result is what Do returned, and when.
type result struct {
	plane.Outcome
	err error
	at  time.Time
}

// do plays the parts at once, and returns what became of them.
func do(ctx context.Context, p plane.Plane, parts ...plane.Transfer) []result {
	all := make([]result, len(parts))
	var wg sync.WaitGroup
	for i, t := range parts {
		wg.Go(func() {
			all[i].Outcome, all[i].err = p.Do(ctx, t)
			all[i].at = time.Now()
		})
	}
	wg.Wait()
	return all
}

// pipes is a listener whose connections are pipes, so that it works under synctest.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func listen() *pipes { return &pipes{conns: make(chan net.Conn), ended: make(chan struct{})} }

func (l *pipes) dial(context.Context) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case l.conns <- b:
		return a, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { l.once.Do(func() { close(l.ended) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func mustMap(t testing.TB, text string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
