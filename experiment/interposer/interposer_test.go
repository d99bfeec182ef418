package interposer

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	emulated "github.com/ocslab/ocslab/emulator/mesh"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/pccl"
	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

// newBench returns an emulated mesh and its bench.
func newBench(t interface{ Fatal(...any) }, rows, columns int, settling time.Duration) (*emulated.Device, *Bench) {
	d, err := emulated.New(emulated.Options{Rows: rows, Columns: columns, Settling: settling})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Emulated{d}, Options{Patience: 10 * settling})
	if err != nil {
		t.Fatal(err)
	}
	return d, b
}

// rounds are the circuits of a recursive-halving AllReduce.
func rounds(t *testing.T, b *Bench, gpus int) [][]mesh.Request {
	t.Helper()
	all, err := demoRounds(b.Mesh(), DemoOptions{GPUs: gpus, Collective: pccl.AllReduce, Algorithm: pccl.RHDHalving})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Ensure the emulator and the tracer of the planner, which share nothing, agree on where light goes, whatever the states.
func TestEmulated_AgreesWithTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(1, 5).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "columns")
		d, err := emulated.New(emulated.Options{Rows: rows, Columns: columns, Settling: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		m, err := mesh.Grid(rows, columns)
		if err != nil {
			t.Fatal(err)
		}
		set := &mesh.Setting{}
		phases := map[int]float64{}
		for n := range rows * columns {
			s := rapid.SampledFrom([]mesh.State{mesh.Bar, mesh.Cross}).Draw(t, "state")
			set.States = append(set.States, s)
			if err := d.Stick(n, emulated.Fault{Phase: phaseOf(s)}); err != nil { // at once
				t.Fatal(err)
			}
		}
		side := rapid.SampledFrom([]mesh.Side{mesh.North, mesh.East, mesh.South, mesh.West})
		node := rapid.IntRange(0, rows*columns-1)
		set.Taps = append(set.Taps, mesh.Tap{Node: node.Draw(t, "source"), Side: side.Draw(t, "side"), Wavelength: 1, Adds: true})
		for range rapid.IntRange(1, 4).Draw(t, "sinks") {
			tap := mesh.Tap{Node: node.Draw(t, "sink"), Side: side.Draw(t, "side"), Wavelength: rapid.IntRange(1, 2).Draw(t, "wavelength")}
			if !slices.Contains(set.Taps, tap) {
				set.Taps = append(set.Taps, tap)
			}
		}
		e := Emulated{d}
		if err := e.Set(context.Background(), phases, set.Taps); err != nil {
			t.Fatal(err)
		}
		want := m.Trace(set, nil)[0].Sink
		rays, err := e.Light(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got := -1
		for _, r := range rays {
			if r.Power > -15 { // some ways of 25 MZIs twice lose 5 dB; what leaks is below 30
				got = r.Sink
			}
		}
		if got != want {
			t.Fatalf("light comes out at tap %d by emulation and at %d by trace", got, want)
		}
	})
}

// Ensure rounds are set, read back, traced and seen, and that the time of switching is that of the heaters.
func TestBench_Bring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const settling = time.Millisecond
		_, b := newBench(t, 16, 16, settling)
		for i, requests := range rounds(t, b, 16) {
			r, err := b.Bring(t.Context(), requests)
			if err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
			if len(r.Attempts) != 1 || !r.Attempts[0].Right() {
				t.Fatalf("round %d: %+v", i, r.Attempts)
			}
			a := r.Attempts[0]
			if a.Set+a.Kept == 0 || a.Taps != 32 {
				t.Errorf("round %d: %d heaters set, %d kept, %d taps", i, a.Set, a.Kept, a.Taps)
			}
			if full := timeline.Between(int64(settling-between), int64(settling+between)); a.Set > 0 {
				if _, near := full.Intersect(a.Switching); !near || a.Switching.Width() > 2*between {
					t.Errorf("round %d: switching took %v, and heaters take %v", i, a.Switching, settling)
				}
			}
			if a.Crosstalk > -10 || a.Weakest < -5 {
				t.Errorf("round %d: weakest %v, crosstalk %v", i, a.Weakest, a.Crosstalk)
			}
		}
		// The same again takes nothing.
		again := rounds(t, b, 16)
		if _, err := b.Bring(t.Context(), again[0]); err != nil {
			t.Fatal(err)
		}
		r, err := b.Bring(t.Context(), again[0])
		if err != nil || r.Attempts[0].Set != 0 || r.Attempts[0].Switching.Latest != 0 {
			t.Errorf("the same again: %+v, %v", r.Attempts, err)
		}
	})
}

// Ensure MZIs that are stuck are found, whether they read back what they are or not, and circuits go around them or, where
// that can be, through them.
func TestBench_Bring_Stuck(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault emulated.Fault
		want  Stuck
	}{
		{"seen", emulated.Fault{Phase: math.Pi}, Stuck{Wanted: mesh.Bar, Read: mesh.Cross}},
		{"between", emulated.Fault{Phase: 1}, Stuck{Wanted: mesh.Bar, Read: mesh.Third}},
		{"unseen", emulated.Fault{Phase: math.Pi, Unseen: true}, Stuck{Wanted: mesh.Bar, Read: mesh.Bar, Dark: true}},
		{"unseen between", emulated.Fault{Phase: 1.5, Unseen: true}, Stuck{Wanted: mesh.Bar, Read: mesh.Bar, Dark: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := newBench(t, 3, 9, time.Millisecond)
				requests := []mesh.Request{{Src: 9, Dst: 17}} // along the middle
				for n := 10; n < 17; n++ {
					if n == 13 {
						continue
					}
					b.stuck[n] = Stuck{Node: n, Read: mesh.Bar} // straight on
				}
				if err := d.Stick(13, tt.fault); err != nil {
					t.Fatal(err)
				}
				r, err := b.Bring(t.Context(), requests)
				if err != nil && !errors.Is(err, ErrNoWay) {
					t.Fatal(err)
				}
				got := r.Attempts[0].Stuck
				if len(got) != 1 || got[0].Node != 13 {
					t.Fatalf("found %+v, and node 13 is stuck", got)
				}
				tt.want.Node, tt.want.Probes = 13, got[0].Probes
				if got[0] != tt.want {
					t.Errorf("found %+v, want %+v", got[0], tt.want)
				}
				if tt.want.Dark && (got[0].Probes < 1 || got[0].Probes > 3) {
					t.Errorf("%d receivers to find one of 7", got[0].Probes)
				}
			})
		})
	}
}

// Ensure MZIs get stuck one by one until there is no way, that it is proved then, and that until then the light is right.
func TestDemo(t *testing.T) {
	for _, unseen := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var stages []DemoStage
			err := Demo(t.Context(), DemoOptions{
				Rows: 6, Columns: 6, GPUs: 4, Collective: pccl.AllReduce, Algorithm: pccl.RHDHalving, Stuck: 36, Unseen: unseen, Seed: 1,
				Tell: func(s DemoStage) { stages = append(stages, s) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(stages) < 6 {
				t.Fatalf("%d stages", len(stages))
			}
			for i, s := range stages[:len(stages)-1] {
				if s.Err != nil || !s.Report.Attempts[len(s.Report.Attempts)-1].Right() {
					t.Errorf("stage %d: %v", i, s.Err)
				}
				if n := len(s.Broken); n > 0 && len(s.Report.Attempts) < 2 {
					t.Errorf("stage %d: node %d got stuck and nobody saw it", i, s.Broken[n-1])
				}
			}
			last := stages[len(stages)-1]
			if !errors.Is(last.Err, ErrNoWay) || last.Report.Result.Verdict != mesh.Impossible {
				t.Errorf("in the end: %v", last.Err)
			}
		})
	}
}

// Ensure what cannot be shown is refused.
func TestDemo_Refuses(t *testing.T) {
	for _, opt := range []DemoOptions{
		{Rows: 0, Columns: 4, GPUs: 4}, {Rows: 4, Columns: 4, GPUs: 3}, {Rows: 4, Columns: 4, GPUs: 64},
		{Rows: 4, Columns: 4, GPUs: 4, Stuck: -1}, {Rows: 4, Columns: 4, GPUs: 4, Settling: -1}, {Rows: 1 << 20, Columns: 1 << 20, GPUs: 4},
		{Rows: 4, Columns: 4, GPUs: 4, Wavelengths: -1},
	} {
		opt.Collective, opt.Algorithm = pccl.AllReduce, pccl.RHDHalving
		if err := Demo(t.Context(), opt); err == nil {
			t.Errorf("%+v: no error", opt)
		}
	}
}

// broken loses the light of all, and says that all is well.
type broken struct{ Emulated }

func (broken) Light(context.Context) ([]Ray, error) { return nil, nil }

// Ensure light that is gone for no reason that can be found is an error, and not a success.
func TestBench_Bring_NoLight(t *testing.T) {
	d, err := emulated.New(emulated.Options{Rows: 1, Columns: 2})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(broken{Emulated{d}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Bring(t.Context(), []mesh.Request{{Src: 0, Dst: 1}})
	if !errors.Is(err, ocs.ErrVerify) || len(r.Attempts) != 1 || len(r.Attempts[0].Dark) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
