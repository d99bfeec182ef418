package mzi_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// rig is an emulated module on a clock of its own, and a session with it.
type rig struct {
	clock  *ocstrx.VirtualClock
	module *ocstrx.Module
	cfg    mzi.Config
	later  func() // called at each wait, if not nil
}

func newRig(seed uint64) *rig {
	b := &rig{clock: &ocstrx.VirtualClock{}}
	b.module = ocstrx.NewModule(ocstrx.DefaultParams(), ocstrx.Options{Seed: seed, Clock: b.clock})
	b.clock.Advance(time.Minute) // it is ready, and as warm as it becomes
	b.cfg = mzi.Config{Memory: b.module, Sleep: func(ctx context.Context, d time.Duration) error {
		b.clock.Advance(d)
		if b.later != nil {
			b.later()
		}
		return ctx.Err()
	}}
	return b
}

// sweep begins a session and sweeps.
func (b *rig) sweep(t testing.TB, scope mzi.SweepScope) (*mzi.Session, *mzi.Calibrated) {
	t.Helper()
	s, err := mzi.Begin(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c, err := s.Sweep(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// phaseErrors are those that the drives of the fits really have at the bias of their sweeps,
// bar and cross of each element.
func phaseErrors(truth ocstrx.Truth, c *mzi.Calibrated) (list []float64) {
	for e, f := range c.Fits {
		x := truth.Elements[e]
		heat := 0.0
		for j, d := range c.Bias[e] {
			heat += truth.Coupling[e][j] * d
		}
		for i, d := range [...]ocst.Drive{f.Fit.Bar, f.Fit.Cross} {
			own := x.Phase(0, d.Volts())
			if _, armB := d.Code(); armB {
				own = -x.Phase(1, d.Volts())
			}
			list = append(list, math.Abs(math.Remainder(x.Phase0+heat+own-math.Pi*float64(1-i), 2*math.Pi)))
		}
	}
	return list
}

func quantile(list []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(list))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// Ensure that the states found by sweeps alone are those that elements really have, of the
// lanes and of the loop network, on modules of any seed.
func TestSweep(t *testing.T) {
	t.Parallel()
	var lanes, loop []float64
	modules := 2
	if testing.Short() {
		modules = 1
	}
	for seed := range modules {
		b := newRig(uint64(seed + 1))
		s, c := b.sweep(t, mzi.SweepScope{})
		if err := c.Err(); err != nil {
			t.Errorf("seed %d: %v", seed+1, err)
		}
		reads, writes := s.Transactions()
		t.Logf("seed %d: %d reads, %d writes, %v, %.2f °C", seed+1, reads, writes, b.clock.Now()-time.Minute, c.Celsius)
		truth := b.module.Truth()
		errs := phaseErrors(truth, c)
		lanes, loop = append(lanes, errs[:4*ocst.Lanes]...), append(loop, errs[4*ocst.Lanes:]...)
	}
	for name, list := range map[string][]float64{"S1 and S2": lanes, "loop network": loop} {
		median, p95 := quantile(list, 0.5), quantile(list, 0.95)
		t.Logf("%s: phase error median %.2f mrad, p95 %.2f mrad, worst %.2f mrad", name, 1e3*median, 1e3*p95, 1e3*slices.Max(list))
		if median > 2e-3 || p95 > 8e-3 {
			t.Errorf("%s: phase error median %.2f mrad, p95 %.2f mrad, want at most 2 and 8", name, 1e3*median, 1e3*p95)
		}
	}
}

// BenchmarkSweep is the CPU time of the sweeps of a whole module, with the emulated one's.
func BenchmarkSweep(b *testing.B) {
	for b.Loop() {
		r := newRig(1)
		s, err := mzi.Begin(b.Context(), r.cfg)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Sweep(b.Context(), mzi.SweepScope{}); err != nil {
			b.Fatal(err)
		}
		reads, writes := s.Transactions()
		b.ReportMetric(float64(reads+writes), "transactions/op")
		b.ReportMetric((r.clock.Now() - time.Minute).Seconds(), "model-s/op")
	}
}
