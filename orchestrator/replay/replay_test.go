package replay_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/replay"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

func options(t testing.TB, c *controller) replay.Options {
	t.Helper()
	p := plane.NewEmulated(plane.EmulatedOptions{
		Patience: time.Second, Assignments: map[string]opus.Assignment{"rail0": cabled, "rail1": cabled},
	})
	t.Cleanup(func() { p.Close(); c.wg.Wait() })
	return replay.Options{
		Trace: labTrace(), Rails: []string{"rail0", "rail1"}, Dial: c.dial, Mode: shim.ModeAlways,
		Plane: p, Steps: 3, WarmUp: 1,
	}
}

// Ensure steps take what the trace says when nobody is in the way, compressed or not, with a control plane and
// without.
func TestRun(t *testing.T) {
	for _, x := range []struct {
		name     string
		native   bool
		compress float64
		wall     time.Duration
	}{{"native", true, 0, 10 * time.Millisecond}, {"free", false, 0, 10 * time.Millisecond}, {"compressed", false, 10, time.Millisecond}} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &controller{}
				opt := options(t, c)
				opt.Native, opt.Compress = x.native, x.compress
				var progress []int
				opt.Progress = func(s replay.Step) { progress = append(progress, s.Index) }
				var log []check.Op
				opt.Log = func(op check.Op) { log = append(log, op) }
				got, err := replay.Run(t.Context(), opt)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]int{0, 1, 2, 3}, progress); diff != "" {
					t.Errorf("progress (-want +got):\n%s", diff)
				}
				asked := 16
				if x.native {
					asked = 0
				}
				for i, s := range append(got.Warm, got.Steps...) {
					want := replay.Step{Index: i, WarmUp: i == 0, Wall: x.wall, Scaled: 10 * time.Millisecond, Ops: 16, Asked: asked}
					if !x.native && i == 0 {
						want.Reconfigurations = -1
					}
					if diff := cmp.Diff(want, s); diff != "" {
						t.Errorf("step %d (-want +got):\n%s", i, diff)
					}
				}
				if got.Ops != 64 || got.Lost != 0 || len(log) != 64 || got.Mean().Wall != x.wall || got.Mean().Index != 3 {
					t.Errorf("%d operations, %d logged, %d bytes lost; mean %v", got.Ops, len(log), got.Lost, got.Mean())
				}
				c.wg.Wait() // all shims are closed, so what they said last has been read
				if c.byes != len(got.Shims) || !x.native && len(got.Shims) != 8 {
					t.Errorf("%d shims, and %d of them said goodbye", len(got.Shims), c.byes)
				}
				for _, op := range log {
					if op.Rail != "rail0" || op.Rank != 2 || op.Step != 1 || op.Group != "pp/0" || x.native {
						continue
					}
					op.EndNS -= op.BeginNS
					op.BeginNS = 0
					want := check.Op{
						Rail: "rail0", Switch: "rail0", Rank: 2, Step: 1, Group: "pp/0", Op: 1, Uses: op.Uses,
						EndNS: int64(x.wall) * 3 / 10, Bytes: 2000, Result: "noop",
					}
					if diff := cmp.Diff(want, op); diff != "" || op.Uses.String() != "1>14,2>13,5>10,6>9" {
						t.Errorf("log: on %v (-want +got):\n%s", op.Uses, diff)
					}
				}
			})
		})
	}
}

// Ensure a shim that has learnt the steps asks for the first operation of a phase and for transfers, and says
// beforehand what it will ask for.
func TestRun_Learns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		opt := options(t, c)
		opt.Mode, opt.WarmUp, opt.Steps = shim.ModeProvision, 8, 4
		for i, op := range opt.Trace.Steps[0].Ranks { // two operations of dp in a row
			opt.Trace.Steps[0].Ranks[i] = append(op[:1:1], op...)
		}
		got, err := replay.Run(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range append(got.Warm, got.Steps...) {
			asked := 24
			if i >= shim.DefaultProfileSteps {
				asked = 16
			}
			if s.Wall != 13*time.Millisecond || s.Ops != 24 || s.Asked != asked {
				t.Errorf("step %d takes %v: %d operations, %d asked for, want %d", i, s.Wall, s.Ops, s.Asked, asked)
			}
		}
		for _, x := range got.Shims {
			if x.Stats.Mispredictions > 0 || x.Stats.Provisioned == 0 {
				t.Errorf("rank %d of %s: %+v", x.Rank, x.Rail, x.Stats)
			}
		}
	})
}

// Ensure what the control plane takes is in the steps to its full length.
func TestRun_Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &controller{}
		var gen uint64
		c.answer = func(_ string, _ int, w *proto.TopoWrite) proto.Message {
			time.Sleep(4 * time.Millisecond)
			return &proto.TopoAck{Result: proto.Applied, Generation: gen + w.Op + 1} // one change in each step
		}
		opt := options(t, c)
		opt.Compress = 10
		got, err := replay.Run(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got.Steps {
			want := replay.Step{
				Index: s.Index, Wall: 9 * time.Millisecond, Scaled: 90 * time.Millisecond, Ops: 16, Asked: 16, Reconfigurations: 2,
				Waited: 64 * time.Millisecond, LongestWait: 8 * time.Millisecond,
			}
			if diff := cmp.Diff(want, s); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	})
}

// Ensure operations of a rail on its giant ring are slower by the lanes that are left, and those of a dead one slow
// down all rails.
func TestRun_Fallback(t *testing.T) {
	for _, x := range []struct {
		result          proto.Result
		wall            time.Duration
		onRing, detours int
	}{{proto.OnRing, 15 * time.Millisecond, 8, 0}, {proto.Detoured, 15 * time.Millisecond, 0, 8}} {
		t.Run(string(x.result), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &controller{answer: func(rail string, _ int, _ *proto.TopoWrite) proto.Message {
					if rail == "rail1" {
						return &proto.TopoAck{Result: x.result, Generation: 3}
					}
					return &proto.TopoAck{Result: proto.NoOp, Generation: 1}
				}}
				got, err := replay.Run(t.Context(), options(t, c))
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range got.Steps {
					if s.OnRing != x.onRing || s.Detours != x.detours || s.Wall != x.wall {
						t.Errorf("%+v", s)
					}
				}
			})
		})
	}
}

// Ensure a job whose ranks are in two processes runs as in one.
func TestRun_Subset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := options(t, &controller{})
		ended := make(chan error)
		for _, ranks := range [][]int{{0, 3}, {1, 2}} {
			opt := opt
			opt.Ranks = ranks
			go func() {
				got, err := replay.Run(t.Context(), opt)
				if err == nil && (got.Mean().Wall != 10*time.Millisecond || got.Ops != 32) {
					err = errors.New("it is not as in one")
				}
				ended <- err
			}()
		}
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// Ensure the first error stops all, and says whose it is.
func TestRun_Fails(t *testing.T) {
	run := func(t *testing.T, ctx context.Context, c *controller, change func(*replay.Options)) (*replay.Result, error) {
		opt := options(t, c)
		change(&opt)
		return replay.Run(ctx, opt)
	}
	has := func(t *testing.T, err error, is error, texts ...string) {
		t.Helper()
		if !errors.Is(err, is) {
			t.Errorf("got %v, want %v", err, is)
		}
		for _, text := range texts {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%v does not have %q", err, text)
			}
		}
	}
	t.Run("refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &controller{}
			c.answer = func(rail string, rank int, w *proto.TopoWrite) proto.Message {
				if rail == "rail1" && rank == 3 && w.Op == 2 && w.Group == "dp/1" {
					return &proto.TopoNack{Code: proto.RailDead, Detail: "the rail is dead"}
				}
				return &proto.TopoAck{Result: proto.NoOp}
			}
			got, err := run(t, t.Context(), c, func(*replay.Options) {})
			has(t, err, shim.ErrRailDead, "rank 3 of rail1, step 2, dp/1 operation 2", "the rail is dead")
			if len(got.Warm)+len(got.Steps) != 2 || got.Steps[0].Wall != 10*time.Millisecond {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("a rank that never comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, err := run(t, t.Context(), &controller{}, func(o *replay.Options) { o.Ranks = []int{0, 2, 3} })
			has(t, err, plane.ErrMissing, "rank 0 of rail", "step 0, dp/0 operation 0", "waited 1s for rank 1")
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 25*time.Millisecond, errors.New("that is enough"))
			defer cancel()
			got, err := run(t, ctx, &controller{}, func(*replay.Options) {})
			if err == nil || !strings.Contains(err.Error(), "that is enough") || len(got.Steps)+len(got.Warm) != 2 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	})
	for want, change := range map[string]func(*replay.Options){
		"no step in the trace": func(o *replay.Options) { o.Trace = nil },
		"no rail is named":     func(o *replay.Options) { o.Rails = nil },
		"no data plane":        func(o *replay.Options) { o.Plane = nil },
		"reach the controller": func(o *replay.Options) { o.Dial = nil },
		"rank 4 is not one":    func(o *replay.Options) { o.Ranks = []int{1, 4} },
		"named twice":          func(o *replay.Options) { o.Ranks = []int{1, 1} },
		"-1 steps":             func(o *replay.Options) { o.Steps = -1 },
		"compressed -3 times":  func(o *replay.Options) { o.Compress = -3 },
		"has 4 ranks, and the": func(o *replay.Options) { o.Job = labJob; o.Job.Stages = 3 },
	} {
		_, err := run(t, t.Context(), &controller{}, change)
		has(t, err, replay.ErrOptions, want)
	}
}

// BenchmarkRun is what the replay itself costs: 64 ranks on 4 rails, 16 operations of a rank in a step, without a control
// plane and with one that grants at once. Of a step it reports how much longer than the trace it takes, and how late ranks woke.
func BenchmarkRun(b *testing.B) {
	job := opus.Job{Name: "bench", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 32}}}
	tr := &trace.Trace{Name: "bench", Job: job, Rails: 4, Steps: []trace.Step{{Ranks: make([][]trace.Op, 64), TailUS: 1000}}}
	for rank := range tr.Steps[0].Ranks {
		for range 16 {
			tr.Steps[0].Ranks[rank] = append(tr.Steps[0].Ranks[rank], trace.Op{
				Axis: 1, Kind: trace.AllReduce, Bytes: 1 << 20, ComputeBeforeUS: 5000, DurationUS: 1000,
			})
		}
	}
	for _, native := range []bool{true, false} {
		b.Run(map[bool]string{true: "native", false: "asking"}[native], func(b *testing.B) {
			clock := plane.NewClock()
			defer clock.Close()
			p := plane.NewEmulated(plane.EmulatedOptions{Clock: clock})
			defer p.Close()
			c := &controller{}
			defer c.wg.Wait()
			got, err := replay.Run(context.Background(), replay.Options{
				Trace: tr, Rails: []string{"a", "b", "c", "d"}, Dial: c.dial, Mode: shim.ModeAlways, Native: native,
				Plane: p, Clock: clock, Steps: b.N, WarmUp: 1,
			})
			if err != nil {
				b.Fatal(err)
			}
			m := got.Mean()
			b.ReportMetric(float64(m.Wall-97*time.Millisecond)/1e3, "µs-over/step")
			b.ReportMetric(float64(m.LatestWake)/1e3, "µs-late-max")
		})
	}
}
