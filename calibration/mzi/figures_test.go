package mzi_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// figures are those of a number of random modules.
type figures struct {
	phase      []float64 // error of Phase0, rad, all elements
	bare, done []float64 // worst leak of a module, dB, see leaks
	passed     int
	cpu, model time.Duration
}

// leaks returns the most light that an element of a module leaks in its states, dB, from its
// phase error alone: with the drives of the table that take no heed of the others, with those
// that do, over states that leave every element in bar and in cross once.
func leaks(table *ocst.Table, truth ocstrx.Truth) (bare, done float64) {
	worst := func(t *ocst.Table) float64 {
		most := 0.0
		for _, cross := range []bool{false, true} {
			var states [ocst.Elements]bool
			for e := range states {
				states[e] = cross != (e%3 == 0)
			}
			drives, err := mzi.Drives(t, truth.Celsius, states)
			if err != nil {
				continue
			}
			var own [ocst.Elements]float64
			for e, d := range drives {
				arm, sign := 0, 1.0
				if _, b := d.Code(); b {
					arm, sign = 1, -1
				}
				own[e] = sign * truth.Elements[e].Phase(arm, d.Volts())
			}
			for e := range own {
				phase := truth.Elements[e].Phase0 + own[e]
				for j, g := range truth.Coupling[e] {
					phase += g * math.Abs(own[j])
				}
				want := math.Pi
				if states[e] {
					want = 0
				}
				most = max(most, math.Pow(math.Sin((phase-want)/2), 2))
			}
		}
		return 10 * math.Log10(max(most, 1e-12))
	}
	uncoupled := *table
	uncoupled.Coupling = ocst.Coupling{}
	return worst(&uncoupled), worst(table)
}

func measure(tb testing.TB, modules int) (f figures) {
	for seed := range modules {
		b := newDevice(uint64(1000+seed), "none")
		began, at := time.Now(), b.clock.Now()
		r, err := mzi.Calibrate(tb.Context(), b.config(), mzi.Options{Now: b.now})
		f.cpu += time.Since(began)
		f.model += b.clock.Now() - at
		if err != nil {
			tb.Logf("module %d: %.250v", 1000+seed, err)
		} else {
			f.passed++
		}
		if r.Table == nil {
			continue
		}
		truth := b.Truth()
		fits, err := mzi.At(r.Table, truth.Celsius)
		if err != nil {
			tb.Fatal(err)
		}
		for e, fit := range fits {
			f.phase = append(f.phase, math.Abs(math.Remainder(fit.Phase0-truth.Elements[e].Phase0, 2*math.Pi)))
		}
		bare, done := leaks(r.Table, truth)
		f.bare, f.done = append(f.bare, bare), append(f.done, done)
	}
	return f
}

// BenchmarkCalibrate calibrates random modules, 200 with -benchtime=200x.
func BenchmarkCalibrate(b *testing.B) {
	f := measure(b, b.N)
	n := float64(b.N)
	b.ReportMetric(1e3*quantileOf(f.phase, 0.5), "mrad-p50")
	b.ReportMetric(1e3*quantileOf(f.phase, 0.95), "mrad-p95")
	b.ReportMetric(quantileOf(f.bare, 0.5), "dB-uncoupled-p50")
	b.ReportMetric(quantileOf(f.done, 0.5), "dB-coupled-p50")
	b.ReportMetric(slices.Max(f.done), "dB-coupled-worst")
	b.ReportMetric(100*float64(f.passed)/n, "%passed")
	b.ReportMetric(f.cpu.Seconds()/n, "cpu-s/module")
	b.ReportMetric(f.model.Seconds()/n, "model-s/module")
}
