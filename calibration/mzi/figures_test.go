package mzi_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// figures are those of a number of random modules. Of phases, index 0 is of S1 and S2, index 1
// of the loop network.
type figures struct {
	phase      [2][]float64 // error of Phase0, that is with all heaters off, rad
	state      [2][]float64 // error of bar and cross at the operating point, rad
	place      [2][]float64 // of the mean of both: what the converter's steps have no part in
	bare, done []float64    // worst leak of a module, dB, see leaks
	ideal      []float64    // with all known exactly: what the converter's steps leave
	passed     int
	cpu, model time.Duration
	reads      int
}

// phases returns how far all elements are from their states, with the drives of a table, rad.
func phases(table *ocst.Table, truth ocstrx.Truth, states [ocst.Elements]bool) (errs [ocst.Elements]float64, err error) {
	drives, err := mzi.Drives(table, truth.Celsius, states)
	if err != nil {
		return errs, err
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
		if !states[e] {
			phase -= math.Pi
		}
		errs[e] = math.Remainder(phase, 2*math.Pi)
	}
	return errs, nil
}

// operating adds how far each element is from both of its states while all others are where
// they are in operation: out by fibre 1, the loop at its default.
func (f *figures) operating(table *ocst.Table, truth ocstrx.Truth) error {
	set, err := ocst.Route(ocst.DefaultPermutation())
	if err != nil {
		return err
	}
	var states [ocst.Elements]bool
	for e := range states {
		if column, row, loop := ocst.Element(e).IsLoop(); loop {
			states[e] = set[column][row]
		}
	}
	for e := range states {
		with, group, sum := states, 0, 0.0
		if e >= 2*ocst.Lanes {
			group = 1
		}
		for _, with[e] = range []bool{false, true} {
			errs, err := phases(table, truth, with)
			if err != nil {
				return err
			}
			f.state[group] = append(f.state[group], math.Abs(errs[e]))
			sum += errs[e]
		}
		f.place[group] = append(f.place[group], math.Abs(sum)/2)
	}
	return nil
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
			errs, err := phases(t, truth, states)
			if err != nil {
				continue
			}
			for _, e := range errs {
				most = max(most, math.Pow(math.Sin(e/2), 2))
			}
		}
		return 10 * math.Log10(max(most, 1e-12))
	}
	uncoupled := *table
	uncoupled.Coupling = ocst.Coupling{}
	return worst(&uncoupled), worst(table)
}

// exact is a table that has the truth.
func exact(table *ocst.Table, truth ocstrx.Truth) *ocst.Table {
	t := *table
	t.Points = []ocst.Point{{Celsius: truth.Celsius}}
	for e := range ocst.Element(ocst.Elements) {
		t.Points[0].Elements[e] = truth.Fit(e)
	}
	t.Coupling = truth.Coupling
	return &t
}

func measure(tb testing.TB, modules int, ambient float64) (f figures) {
	for seed := range modules {
		b := newDevice(uint64(1000+seed), "none")
		b.SetAmbient(ambient)
		began, at := time.Now(), b.clock.Now()
		r, err := mzi.Calibrate(tb.Context(), b.config(), mzi.Options{Now: b.now})
		f.cpu += time.Since(began)
		f.model += b.clock.Now() - at
		f.reads += r.Readings
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
			group := 0
			if e >= 2*ocst.Lanes {
				group = 1
			}
			f.phase[group] = append(f.phase[group], math.Abs(math.Remainder(fit.Phase0-truth.Elements[e].Phase0, 2*math.Pi)))
		}
		if err := f.operating(r.Table, truth); err != nil {
			tb.Logf("module %d: %v", 1000+seed, err)
		}
		bare, done := leaks(r.Table, truth)
		_, ideal := leaks(exact(r.Table, truth), truth)
		f.bare, f.done, f.ideal = append(f.bare, bare), append(f.done, done), append(f.ideal, ideal)
	}
	return f
}

// BenchmarkCalibrate calibrates random modules without a table, and shows how good they are:
//
//	go test ./calibration/mzi -run '^$' -bench Calibrate -benchtime 200x
func BenchmarkCalibrate(b *testing.B) {
	for _, ambient := range []float64{0, 25, 45} {
		b.Run(fmt.Sprintf("%.0fC", ambient), func(b *testing.B) {
			f := measure(b, b.N, ambient)
			n := float64(b.N)
			for _, row := range []struct {
				name string
				list [2][]float64
			}{{"phase without heat", f.phase}, {"phase of a state", f.state}, {"middle of the states", f.place}} {
				all := slices.Concat(row.list[0], row.list[1])
				line := fmt.Sprintf("%-21s mrad p50, p95, max:", row.name)
				for i, list := range [][]float64{row.list[0], row.list[1], all} {
					line += fmt.Sprintf("  %s %.2f %.2f %.2f", [...]string{"S1, S2", "loop", "all"}[i], 1e3*quantileOf(list, 0.5), 1e3*quantileOf(list, 0.95), 1e3*quantileOf(list, 1))
				}
				b.Log(line)
			}
			b.Logf("worst leak of a module by phase, dB p50 (worst): %.1f (%.1f) uncompensated, %.1f (%.1f) compensated, %.1f if all were known",
				quantileOf(f.bare, 0.5), slices.Max(f.bare), quantileOf(f.done, 0.5), slices.Max(f.done), quantileOf(f.ideal, 0.5))
			b.ReportMetric(1e3*quantileOf(slices.Concat(f.place[0], f.place[1]), 0.5), "mrad-p50")
			b.ReportMetric(1e3*quantileOf(slices.Concat(f.place[0], f.place[1]), 0.95), "mrad-p95")
			b.ReportMetric(quantileOf(f.bare, 0.5), "dB-uncoupled-p50")
			b.ReportMetric(quantileOf(f.done, 0.5), "dB-coupled-p50")
			b.ReportMetric(slices.Max(f.done), "dB-coupled-worst")
			b.ReportMetric(100*float64(f.passed)/n, "%passed")
			b.ReportMetric(f.cpu.Seconds()/n, "cpu-s/module")
			b.ReportMetric(f.model.Seconds()/n, "model-s/module")
			b.ReportMetric(float64(f.reads)/n, "reads/module")
		})
	}
}
