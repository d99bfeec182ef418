package orchestrator_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/topology/opus"
)

// BenchmarkQuorumToAck is what a control plane takes from the last request of a quorum until each rank has its
// leave to run, over TCP and with TL1 switches that take no time. All other ranks have asked before. The reported
// bare-ns is the driver's own change and read-back of the same circuits, in the same run.
func BenchmarkQuorumToAck(b *testing.B) {
	for _, x := range []struct {
		rails, ranks int
		together     bool // all rails at the same moment, or one after the other
	}{{1, 64, false}, {4, 16, false}, {4, 16, true}, {16, 128, false}, {16, 128, true}} {
		at := "one-rail"
		if x.together {
			at = "all-rails"
		}
		b.Run(fmt.Sprintf("ranks=%d/rails=%d/%s", x.rails*x.ranks, x.rails, at), func(b *testing.B) { quorum(b, x.rails, x.ranks, x.together) })
	}
}

func quorum(b *testing.B, rails, ranks int, together bool) {
	j := opus.Job{Name: "quorum", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: ranks / 2}}}
	in, f, err := job.Emulated(j, rails, opus.Pair, 0)
	if err != nil {
		b.Fatal(err)
	}
	l := lab.New(in, lab.Options{Emulated: true})
	defer l.Close()
	var asked atomic.Int64
	all := make(chan struct{}, 1)
	var want atomic.Int64
	// The light takes what the monitors average over, which is no matter of the control plane.
	railOptions := rail.Options{Verify: rail.Table}
	s, err := orchestrator.Open(b.Context(), orchestrator.Options{Lab: l, Job: f, Rail: railOptions, Controller: controller.Options{Log: func(e controller.Event) {
		if e.Kind == controller.EventWrite && asked.Add(1) == want.Load() {
			all <- struct{}{}
		}
	}}})
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()

	shims := make([]*shim.Shim, rails*ranks)
	var joining sync.WaitGroup
	for i := range shims {
		joining.Go(func() {
			var err error
			shims[i], err = shim.Dial(b.Context(), shim.Options{
				Dial: func(ctx context.Context) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
				},
				Job: j, Rail: f.Rails[i/ranks].Name, Rank: i % ranks, Mode: shim.ModeAlways,
			})
			if err != nil {
				b.Error(err)
			}
		})
	}
	joining.Wait()
	if b.Failed() {
		b.FailNow()
	}
	// One rank of each stage asks last.
	last := func(i int) bool { return i%(ranks/2) == ranks/2-1 }
	op := func(i, n int) shim.Op {
		x := i % ranks
		if n%2 == 0 {
			return shim.Op{OpRef: proto.OpRef{Group: j.GroupOf(x, 1).Name, Op: uint64(n / 2)}, Axis: 1, Bytes: 1 << 20}
		}
		return shim.Op{OpRef: proto.OpRef{Group: j.GroupOf(x, opus.PP).Name, Op: uint64(n / 2)}, Axis: opus.PP, Bytes: 1 << 20}
	}
	var times []time.Duration
	var mu sync.Mutex
	for n := 0; b.Loop(); n++ {
		active, nth := shims, n
		if !together { // rails take turns
			r := n % rails
			active, nth = shims[r*ranks:(r+1)*ranks], n/rails
		}
		asked.Store(0)
		want.Store(int64(len(active) / ranks * (ranks - 2)))
		start := make(chan time.Time)
		var round sync.WaitGroup
		for i, sh := range active {
			round.Go(func() {
				o := op(i, nth)
				var at time.Time
				if last(i) {
					at = <-start
				}
				_, err := sh.PreOp(b.Context(), o)
				done := time.Now()
				if err != nil {
					b.Error(err)
					return
				}
				if at.IsZero() {
					at = <-start
				}
				mu.Lock()
				times = append(times, done.Sub(at))
				mu.Unlock()
				if err := sh.PostOp(o); err != nil {
					b.Error(err)
				}
			})
		}
		<-all
		at := time.Now()
		for range active {
			start <- at
		}
		round.Wait()
	}
	b.StopTimer()
	slices.Sort(times)
	bare := bareDriver(b, l, f, j)
	b.ReportMetric(float64(times[len(times)/2]), "p50-ns")
	b.ReportMetric(float64(times[len(times)*99/100]), "p99-ns")
	b.ReportMetric(float64(bare), "bare-ns")
	b.ReportMetric(float64(times[len(times)/2])/float64(bare), "p50/bare")
	for _, sh := range shims {
		sh.Close()
	}
	cancel()
	if err := <-served; err != nil {
		b.Error(err)
	}
	if err := s.Close(context.Background()); err != nil {
		b.Error(err)
	}
}

// bareDriver returns the median time of a change of all circuits of a rail and its read-back.
func bareDriver(b *testing.B, l *lab.Lab, f *job.File, j opus.Job) time.Duration {
	b.Helper()
	sw, err := l.Session(b.Context(), "rail0")
	if err != nil {
		b.Fatal(err)
	}
	defer sw.Close()
	a, err := f.Assignment("rail0", l.File)
	if err != nil {
		b.Fatal(err)
	}
	var maps []ocs.Map
	for _, id := range []opus.ID{{1, 1}, {0, 0}} {
		m, err := opus.Build(j, id, opus.Pair)
		if err != nil {
			b.Fatal(err)
		}
		c, err := a.Map(m)
		if err != nil {
			b.Fatal(err)
		}
		maps = append(maps, c)
	}
	var times []time.Duration
	for n := range 41 {
		began := time.Now()
		if _, err := sw.Apply(b.Context(), ocs.Change{Add: maps[n%2]}); err != nil {
			b.Fatal(err)
		}
		if _, err := sw.CrossConnects(b.Context()); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[len(times)/2]
}
