package ocstrx

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// What is drawn has the means and spreads of the parameters.
func TestSpreads(t *testing.T) {
	t.Parallel()
	type moments struct{ n, sum, squares float64 }
	var kappa, powerPi, ohm, loss, tau, slow, weight moments
	add := func(m *moments, x float64) { m.n++; m.sum += x; m.squares += x * x }
	var quadrant [4]int
	for seed := range uint64(100) {
		for _, e := range newChip(DefaultParams(), seed).truth().Elements {
			add(&kappa, e.Kappa1)
			add(&kappa, e.Kappa2)
			add(&powerPi, e.PowerPi[1])
			add(&ohm, e.Resistance[0])
			add(&loss, (e.Loss[0]+e.Loss[1])/2)
			add(&tau, e.Tau.Seconds())
			add(&slow, e.TauSlow.Seconds())
			add(&weight, e.SlowWeight)
			quadrant[int(math.Floor(4*(wrap(e.Phase0)+math.Pi)/(2*math.Pi)))&3]++
		}
	}
	for _, test := range []struct {
		what       string
		m          moments
		mean, part float64 // sigma relative to the mean
	}{
		{"κ", kappa, 0.5, 0.04}, {"P for π", powerPi, 22, 0.06},
		// At 35.2 °C, 4.8 K below the reference.
		{"resistance", ohm, 400 * 0.9952, 0.05},
		{"loss", loss, 0.5, 0.1}, {"τ", tau, 15e-6, 0.02}, {"slow τ", slow, 1e-3, 0.02}, {"weight", weight, 0.05, 0.02},
	} {
		mean := test.m.sum / test.m.n
		near(t, "mean of "+test.what, mean/test.mean, 1, 4*test.part/math.Sqrt(test.m.n))
		near(t, "spread of "+test.what, math.Sqrt(test.m.squares/test.m.n-mean*mean)/test.mean, test.part, 0.06*test.part)
	}
	for _, n := range quadrant {
		near(t, "phases in a quadrant", float64(n), 900, 120)
	}
}

// Drive takes the element there, with the arm that needs less.
func TestTruthDrive(t *testing.T) {
	t.Parallel()
	truth := newChip(DefaultParams(), 1).truth()
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, ocst.Elements-1).Draw(t, "element")
		want := rapid.Float64Range(-20, 20).Draw(t, "radians")
		d, ok := truth.Elements[i].Drive(want)
		got := truth.own(i, d)
		if !ok {
			t.Skip("out of reach")
		}
		near(t, "phase", wrap(got-want), 0, 2e-3)
		// 1.2 π is what an arm reaches; beyond π the other one is there unless it is weak.
		if math.Abs(got) > math.Pi+2e-3 && truth.Elements[i].Phase(1, ocst.DACFull) > math.Pi && truth.Elements[i].Phase(0, ocst.DACFull) > math.Pi {
			t.Errorf("%g rad are made by %g rad", want, got)
		}
	})
}

// The two terms of a table tell the phase of an arm to 1 mrad.
func TestTruthFit(t *testing.T) {
	t.Parallel()
	truth := newChip(DefaultParams(), 1).truth()
	worst := 0.0
	for i, x := range truth.Elements {
		f := truth.Fit(ocst.Element(i))
		for v := 0.0; v <= ocst.DACFull; v += 0.05 {
			worst = max(worst, math.Abs(f.A.Phase(v)-x.Phase(0, v)), math.Abs(f.B.Phase(v)-x.Phase(1, v)))
		}
		bar, cross := truth.Elements[i].Phase0+truth.own(i, f.Bar), truth.Elements[i].Phase0+truth.own(i, f.Cross)
		near(t, "phase in bar", math.Abs(wrap(bar)), math.Pi, 2e-3)
		near(t, "phase in cross", wrap(cross), 0, 2e-3)
	}
	t.Logf("worst error %.3g rad", worst)
	if worst > 1e-3 {
		t.Errorf("the fit is wrong by %.2g rad, want at most 1 mrad", worst)
	}
}

// The factory's table is one that a module takes, survives being written, and leads the chip
// to its states at any case temperature in its range.
func TestFactoryTable(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for seed := range uint64(5) {
		c := newChip(DefaultParams(), seed)
		table := c.factoryTable("SN1", made)
		pages, err := table.Pages()
		if err != nil {
			t.Fatal(err)
		}
		if table, err = ocst.ParsePages(pages); err != nil {
			t.Fatal(err)
		}
		if err := table.Usable("SN1", made.AddDate(10, 0, 0)); err != nil {
			t.Error(err)
		}
		for i, path := range table.Verified.Paths {
			if path.Loss < 0.7 || path.Loss > 6 || path.Isolation < 15 {
				t.Errorf("path %d loses %.2f dB with an isolation of %.2f dB", i, path.Loss, path.Isolation)
			}
		}
		var squares float64
		for _, point := range table.Points {
			p := DefaultParams()
			p.Drift, p.Ageing = 0, 0
			// A case that is as warm as the point, whatever the module draws.
			p.RTh = 0
			c := newChip(p, seed)
			c.setAmbient(0, point.Celsius)
			at := time.Hour
			c.refresh(at)
			truth := c.truth()
			for i, f := range point.Elements {
				e := wrap(f.Phase0 - truth.Elements[i].Phase0)
				squares += e * e
				near(t, "phase0", e, 0, 3.1e-3)
				near(t, "phase of 2.5 V", f.A.Phase(2.5), truth.Elements[i].Phase(0, 2.5), 2.5e-3)
			}
		}
		near(t, "rms error of the phases", math.Sqrt(squares/float64(3*ocst.Elements)), 1e-3, 2.5e-4)
	}
}
