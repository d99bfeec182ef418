package mzi_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// fakeElement is an element and its two photodiodes, in as few words as possible: phase linear in
// power, resistance that rises with it, noise of 0.3 % and 5e-4 of full scale, 12 bits.
type fakeElement struct {
	kappa    [2]float64
	phase0   float64
	slope    [2]float64 // rad/V²
	bend     float64
	gain     [2]float64 // of the photodiodes' ways
	rng      *rand.Rand
	constant [2]bool // photodiodes that do not see light
	step     float64 // factor of the light from half of the sweep on
	limit    float64 // largest reading
	unsteady float64 // by how much the losses of one side come and go
}

func newFakeElement(seed uint64) *fakeElement {
	rng := rand.New(rand.NewPCG(seed, 1))
	d := &fakeElement{rng: rng, phase0: (2*rng.Float64() - 1) * math.Pi, bend: 0.0054, step: 1, limit: 2.5}
	for i := range 2 {
		d.kappa[i] = 0.5 + 0.02*rng.NormFloat64()
		d.slope[i] = math.Pi / (0.022 * (1 + 0.06*rng.NormFloat64()) * 400 * (1 + 0.05*rng.NormFloat64()))
		d.gain[i] = 1 + 0.05*rng.NormFloat64()
	}
	return d
}

// own is the phase that signed V² gives.
func (d *fakeElement) own(v2 float64) float64 {
	arm, sign := 0, 1.0
	if v2 < 0 {
		arm, sign = 1, -1
	}
	h := d.slope[arm] * math.Abs(v2)
	for range 40 {
		h = d.slope[arm] * math.Abs(v2) / (1 + d.bend*h)
	}
	return sign * h
}

// read gives what both photodiodes say, in µW.
func (d *fakeElement) read(v2 float64, late bool) (bar, cross float64) {
	k1, k2 := d.kappa[0], d.kappa[1]
	swing := 2 * math.Sqrt(k1*k2*(1-k1)*(1-k2)) * math.Cos(d.phase0+d.own(v2))
	light := 2.0
	if late {
		light *= d.step
	}
	y := [2]float64{light * ((1-k1)*(1-k2) + k1*k2 - swing), light * (k1*(1-k2) + k2*(1-k1) + swing)}
	for i := range y {
		mw := y[i] * d.gain[i] * (1 + float64(i)*d.unsteady*(2*d.rng.Float64()-1))
		if d.constant[i] {
			mw = 0.4
		}
		mw += d.rng.NormFloat64() * math.Hypot(0.003*mw, 5e-4*2.5)
		if d.constant[i] {
			mw = 0.4
		}
		y[i] = math.Round(min(max(mw, 0), d.limit)/2.5*4095) / 4095 * 2500
	}
	return y[0], y[1]
}

// points are those of a sweep as Session.Sweep makes it.
func (d *fakeElement) points() (list []mzi.Pair) {
	for k := range 64 {
		v2 := (2*float64(k)/63 - 1) * ocst.DACFull * ocst.DACFull
		drive := ocst.DriveOf(math.Sqrt(math.Abs(v2)), v2 < 0)
		v2 = math.Copysign(drive.Volts()*drive.Volts(), v2)
		bar, cross := d.read(v2, k >= 32)
		list = append(list, mzi.Pair{V2: v2, Bar: bar, Cross: cross})
	}
	return list
}

// errors returns how far the phase is from that of the states with the drives fitted.
func (d *fakeElement) errors(f mzi.SweepFit) (bar, cross float64) {
	at := func(drive ocst.Drive) float64 {
		v2 := drive.Volts() * drive.Volts()
		if _, armB := drive.Code(); armB {
			v2 = -v2
		}
		return d.phase0 + d.own(v2)
	}
	return math.Abs(math.Remainder(at(f.Fit.Bar)-math.Pi, 2*math.Pi)), math.Abs(math.Remainder(at(f.Fit.Cross), 2*math.Pi))
}

// Ensure that the states of 200 random elements are found as well as noise allows, with one
// reading at each point.
func TestFitSweep_random(t *testing.T) {
	t.Parallel()
	var errs, slopes, leak []float64
	for seed := range uint64(200) {
		d := newFakeElement(seed)
		f := mzi.FitSweep(0, d.points())
		if f.Problem != "" {
			t.Errorf("seed %d: %s", seed, f.Problem)
			continue
		}
		bar, cross := d.errors(f)
		errs = append(errs, bar, cross)
		for arm, a := range [...]ocst.Arm{f.Fit.A, f.Fit.B} {
			v2 := 9.0
			want := math.Abs(d.own(v2 * float64(1-2*arm)))
			slopes = append(slopes, math.Abs(a.Phase(math.Sqrt(v2))/want-1))
		}
		leak = append(leak, 20*math.Log10(bar/2))
	}
	t.Logf("phase error: median %.2f mrad, p95 %.2f mrad, worst %.2f mrad; slope error p95 %.3f %%; leak of the phase error alone: median %.0f dB, worst %.0f dB",
		1e3*quantile(errs, 0.5), 1e3*quantile(errs, 0.95), 1e3*slices.Max(errs), 100*quantile(slopes, 0.95), quantile(leak, 0.5), slices.Max(leak))
	if m, p := quantile(errs, 0.5), quantile(errs, 0.95); m > 1.6e-3 || p > 5e-3 {
		t.Errorf("phase error: median %.2f mrad, p95 %.2f mrad, want at most 1.6 and 5", 1e3*m, 1e3*p)
	}
}

// Ensure that what is said of the uncertainty is true: the errors are about as large.
func TestFitSweep_sigma(t *testing.T) {
	t.Parallel()
	sum, n := 0.0, 0.0
	for seed := range uint64(50) {
		d := newFakeElement(1000 + seed)
		f := mzi.FitSweep(0, d.points())
		e := math.Remainder(f.Fit.Phase0-d.phase0, 2*math.Pi) / f.Phase0Sigma
		sum, n = sum+e*e, n+1
	}
	if chi := math.Sqrt(sum / n); chi < 0.7 || chi > 1.5 {
		t.Errorf("errors of the phase are %.2f times what is said of them", chi)
	}
}

// Ensure that each way in which a sweep is useless is named, and that what cancels does.
func TestFitSweep_problems(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change  func(*fakeElement)
		problem string // part of it
	}{
		"none":                     {func(*fakeElement) {}, ""},
		"laser step in mid-sweep":  {func(d *fakeElement) { d.step = 0.8 }, ""},
		"stuck photodiode":         {func(d *fakeElement) { d.constant[0] = true }, "stuck"},
		"the other is stuck":       {func(d *fakeElement) { d.constant[1] = true }, "stuck"},
		"saturated converter":      {func(d *fakeElement) { d.limit = 1.2 }, "saturated"},
		"no light":                 {func(d *fakeElement) { d.gain = [2]float64{0.001, 0.001} }, "no light"},
		"no couplers":              {func(d *fakeElement) { d.kappa = [2]float64{0, 0} }, "no fringe"},
		"heaters without effect":   {func(d *fakeElement) { d.slope = [2]float64{} }, "no fringe"},
		"π is beyond the range":    {func(d *fakeElement) { d.slope = [2]float64{0.13, 0.13}; d.phase0 = 0.2 }, "beyond the range"},
		"weak, and in range still": {func(d *fakeElement) { d.slope = [2]float64{0.18, 0.18}; d.phase0 = math.Pi / 2 }, ""},
		"unsteady light":           {func(d *fakeElement) { d.unsteady = 0.1 }, "further from a fringe"},
	} {
		d := newFakeElement(7)
		tt.change(d)
		f := mzi.FitSweep(3, d.points())
		if !strings.Contains(f.Problem, tt.problem) || (tt.problem == "") != (f.Problem == "") {
			t.Errorf("%s: problem is %q, want one with %q", name, f.Problem, tt.problem)
		}
		if tt.problem == "" {
			if bar, cross := d.errors(f); bar > 0.01 || cross > 0.01 {
				t.Errorf("%s: phase errors %.1f and %.1f mrad", name, 1e3*bar, 1e3*cross)
			}
		}
	}
}

// Ensure that few, no or senseless points are a problem named, not a panic.
func TestFitSweep_badInput(t *testing.T) {
	t.Parallel()
	nan := newFakeElement(1).points()
	nan[5].Bar = math.NaN()
	for name, points := range map[string][]mzi.Pair{
		"none": nil, "one": newFakeElement(1).points()[:1], "zero": make([]mzi.Pair, 64), "no number": nan,
	} {
		if f := mzi.FitSweep(0, points); f.Problem == "" {
			t.Errorf("%s: no problem is named: %+v", name, f.Fit)
		}
	}
}

// Ensure that of the fringes that reach a state the one is taken that wants less power, and
// the other when that arm does not reach.
func TestDriveFor(t *testing.T) {
	t.Parallel()
	arm := ocst.Arm{Slope: 0.35}
	weak := ocst.Arm{Slope: 0.1} // 1.1 rad at most
	for name, tt := range map[string]struct {
		fit   ocst.Fit
		heat  float64
		cross bool
		want  float64 // rad, negative of arm B
		err   bool
	}{
		"cross, by B":             {ocst.Fit{Phase0: 1, A: arm, B: arm}, 0, true, -1, false},
		"cross, by A":             {ocst.Fit{Phase0: -1, A: arm, B: arm}, 0, true, 1, false},
		"bar, by A":               {ocst.Fit{Phase0: 1, A: arm, B: arm}, 0, false, math.Pi - 1, false},
		"bar, by B":               {ocst.Fit{Phase0: -1, A: arm, B: arm}, 0, false, -(math.Pi - 1), false},
		"phase is taken modulo":   {ocst.Fit{Phase0: 1 + 4*math.Pi, A: arm, B: arm}, 0, true, -1, false},
		"heat of others":          {ocst.Fit{Phase0: 1, A: arm, B: arm}, 0.5, true, -1.5, false},
		"arm B is weak":           {ocst.Fit{Phase0: 2.9, A: arm, B: weak}, 0, true, 2*math.Pi - 2.9, false},
		"arm A is weak":           {ocst.Fit{Phase0: -2.9, A: weak, B: arm}, 0, true, -(2*math.Pi - 2.9), false},
		"both are weak":           {ocst.Fit{Phase0: 2, A: weak, B: weak}, 0, true, -1.089, true},
		"no slope is not reached": {ocst.Fit{Phase0: 2}, 0, true, 0, true},
	} {
		d, err := mzi.DriveFor(tt.fit, tt.heat, tt.cross)
		if (err != nil) != tt.err {
			t.Errorf("%s: %v", name, err)
		}
		if got := tt.fit.Own(d); math.Abs(got-tt.want) > 2e-3 {
			t.Errorf("%s: %.4f rad, want %.4f", name, got, tt.want)
		}
	}
}
