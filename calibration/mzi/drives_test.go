package mzi

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// plainFit is an element whose arms give 1.09 π each, phase linear in V².
func plainFit(phase0 float64) ocst.Fit {
	arm := ocst.Arm{Slope: 1.09 * math.Pi / (ocst.DACFull * ocst.DACFull)}
	return ocst.Fit{Phase0: phase0, A: arm, B: arm}
}

// worstLeak is the most light, in dB, that elements leak whose phases are not where they
// should be.
func worstLeak(fits *[ocst.Elements]ocst.Fit, g *ocst.Coupling, own *[ocst.Elements]float64, want *settings) float64 {
	worst := 0.0
	for e, s := range want {
		err := fits[e].Phase0 + own[e] + heatFrom(g, e, own) - s.phase
		worst = max(worst, math.Pow(math.Sin(err/2), 2))
	}
	return 10 * math.Log10(max(worst, 1e-20))
}

// The leak that neighbours of 2 % cause, without compensation and after each sweep. An
// element of one arm, which must go round by up to 2π, is the worst case: it leaks -15.9 dB,
// and after a sweep -18.9, because some of them wrap; then -45 and -68 dB. Two arms halve the
// heat, and where one wraps into the other the heat hardly changes.
func TestSolve_sweeps(t *testing.T) {
	t.Parallel()
	var worst [Sweeps + 1]float64
	for i := range worst {
		worst[i] = math.Inf(-1)
	}
	random := rand.New(rand.NewPCG(5, 0))
	for range 50 {
		fits, g, want := randomModule(random)
		for sweeps := range worst {
			_, _, err := solve(&fits, &g, &want, sweeps)
			if err != nil {
				t.Fatal(err)
			}
			// The converter's steps are left out of it: as if drives were exact.
			own := exact(&fits, &g, &want, sweeps, wrapped)
			worst[sweeps] = max(worst[sweeps], worstLeak(&fits, &g, &own, &want))
		}
	}
	t.Logf("worst leak of 50 modules after 0 to %d sweeps: %.1f dB", Sweeps, worst)
	for sweeps, most := range []float64{-15, -30, -45, -60} {
		if worst[sweeps] > most {
			t.Errorf("after %d sweeps the worst leak is %.1f dB, want at most %.0f", sweeps, worst[sweeps], most)
		}
	}
	if worst[0] < -26 {
		t.Errorf("without compensation the worst leak is %.1f dB: there was nothing to compensate", worst[0])
	}
}

func randomModule(random *rand.Rand) (fits [ocst.Elements]ocst.Fit, g ocst.Coupling, want settings) {
	for e := range fits {
		fits[e] = plainFit((random.Float64()*2 - 1) * math.Pi)
		want[e] = hold(stateTarget(random.IntN(2) == 1))
		for _, j := range []int{e - 1, e + 1} {
			if j >= 0 && j < ocst.Elements {
				g[e][j] = 0.02
			}
		}
	}
	return fits, g, want
}

// exact is what solve does with a converter of infinitely many steps.
func exact(fits *[ocst.Elements]ocst.Fit, g *ocst.Coupling, want *settings, sweeps int, wrap func(float64) float64) (own [ocst.Elements]float64) {
	for sweep := range 1 + sweeps {
		last := own
		for e, s := range want {
			heat := 0.0
			if sweep > 0 {
				heat = heatFrom(g, e, &last)
			}
			own[e] = wrap(s.phase - fits[e].Phase0 - heat)
		}
	}
	return own
}

// BenchmarkSolve reports the worst leak of 20 elements with neighbours of 2 %, falling by half
// with each element further, after each sweep: of elements with one arm, which need up to 2π
// and wrap, and of push-pull ones.
func BenchmarkSolve(b *testing.B) {
	random := rand.New(rand.NewPCG(5, 0))
	fits, g, want := randomModule(random)
	for i := range g {
		for j := range g[i] {
			if d := max(i-j, j-i); d > 0 && d <= ocst.Reach && i < 20 && j < 20 {
				g[i][j] = 0.02 * math.Pow(0.5, float64(d-1))
			} else {
				g[i][j] = 0
			}
		}
	}
	for b.Loop() {
		if _, _, err := solve(&fits, &g, &want, Sweeps); err != nil {
			b.Fatal(err)
		}
	}
	for sweeps := range Sweeps + 1 {
		two := exact(&fits, &g, &want, sweeps, wrapped)
		one := exact(&fits, &g, &want, sweeps, func(x float64) float64 { return wrapped(x-math.Pi) + math.Pi })
		b.ReportMetric(worstLeak(&fits, &g, &one, &want), fmt.Sprintf("dB-one-arm-%d", sweeps))
		b.ReportMetric(worstLeak(&fits, &g, &two, &want), fmt.Sprintf("dB-push-pull-%d", sweeps))
	}
}

// Ensure that what Drives returns brings elements to their states within what the
// converter's steps allow, whatever the module and the states are.
func TestDrives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		table := &ocst.Table{Points: []ocst.Point{{Celsius: 30}}}
		fits := &table.Points[0].Elements
		var states [ocst.Elements]bool
		for e := range fits {
			fits[e] = plainFit(rapid.Float64Range(-math.Pi, math.Pi).Draw(r, "phase"))
			states[e] = rapid.Bool().Draw(r, "cross")
			for j := max(0, e-ocst.Reach); j < min(ocst.Elements, e+ocst.Reach+1); j++ {
				if j != e {
					d := math.Abs(float64(j - e))
					table.Coupling[e][j] = rapid.Float64Range(0.01, 0.05).Draw(r, "g") * math.Pow(0.4, d-1)
				}
			}
		}
		drives, err := Drives(table, 30, states)
		if err != nil {
			r.Fatal(err)
		}
		var own [ocst.Elements]float64
		for e := range own {
			own[e] = fits[e].Own(drives[e])
		}
		for e := range own {
			if x := wrapped(fits[e].Phase0 + own[e] + heatFrom(&table.Coupling, e, &own) - stateTarget(states[e])); math.Abs(x) > 0.02 {
				r.Fatalf("%v is %.4f rad away from its state", ocst.Element(e), x)
			}
		}
	})
}

// Ensure that what cannot be solved is an error and not a drive: no table, NaN, arms that
// are too weak for a state.
func TestDrives_bad(t *testing.T) {
	t.Parallel()
	var states [ocst.Elements]bool
	if _, err := Drives(&ocst.Table{}, 30, states); err == nil {
		t.Error("a table without a point: no error")
	}
	table := &ocst.Table{Points: []ocst.Point{{Celsius: 30}}}
	for e := range table.Points[0].Elements {
		table.Points[0].Elements[e] = plainFit(0)
	}
	weak := ocst.Arm{Slope: 0.1}
	table.Points[0].Elements[20].A, table.Points[0].Elements[20].B = weak, weak
	if _, err := Drives(table, 30, states); err == nil {
		t.Error("an element that cannot reach bar: no error")
	}
}
