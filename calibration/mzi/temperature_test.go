package mzi

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

func pointsAt(celsius ...float64) (list []ocst.Point) {
	for _, c := range celsius {
		list = append(list, ocst.Point{Celsius: c})
	}
	return list
}

// Ensure that a new point replaces one that is near, is added where there is room, and
// pushes out the one that is furthest away where there is none.
func TestMerge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		old      []float64
		add      float64
		want     []float64
		replaced bool
	}{
		{name: "first", add: 40, want: []float64{40}},
		{name: "added in order", old: []float64{25, 60}, add: 40, want: []float64{25, 40, 60}},
		{name: "near", old: []float64{25, 40, 60}, add: 41.5, want: []float64{25, 41.5, 60}},
		{name: "near two", old: []float64{25, 39, 42}, add: 40.5, want: []float64{25, 40.5}},
		{name: "full, low one goes", old: []float64{10, 40, 60}, add: 50, want: []float64{40, 50, 60}},
		{name: "full, high one goes", old: []float64{10, 40, 70}, add: 20, want: []float64{10, 20, 40}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			old := pointsAt(test.old...)
			var got []float64
			for _, p := range Merge(old, ocst.Point{Celsius: test.add}) {
				got = append(got, p.Celsius)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			for i, p := range old {
				if p.Celsius != test.old[i] {
					t.Errorf("what it was given has changed")
				}
			}
		})
	}
}

// Ensure that phases go the shorter way around between two points, and that nothing is
// extrapolated.
func TestAt(t *testing.T) {
	t.Parallel()
	table := &ocst.Table{Points: pointsAt(20, 40)}
	table.Points[0].Elements[7] = ocst.Fit{Phase0: 3, A: ocst.Arm{Slope: 0.3}, BarER: 20}
	table.Points[1].Elements[7] = ocst.Fit{Phase0: -3, A: ocst.Arm{Slope: 0.4}, BarER: 30}
	for _, test := range []struct{ celsius, phase, slope, er float64 }{
		{20, 3, 0.3, 20}, {-40, 3, 0.3, 20}, {math.NaN(), 3, 0.3, 20}, {40, -3, 0.4, 30}, {90, -3, 0.4, 30},
		{30, math.Pi, 0.35, 20}, {25, 3 + (2*math.Pi-6)/4, 0.325, 20}, {39, -3 - (2*math.Pi-6)/20, 0.395, 30},
	} {
		fits, err := At(table, test.celsius)
		if err != nil {
			t.Fatal(err)
		}
		f := fits[7]
		if math.Abs(math.Remainder(f.Phase0-test.phase, 2*math.Pi)) > 1e-9 || math.Abs(f.A.Slope-test.slope) > 1e-9 || f.BarER != test.er {
			t.Errorf("at %g °C: %+v, want phase %g, slope %g, ratio %g", test.celsius, f, test.phase, test.slope, test.er)
		}
	}
}

func TestTrimDue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		then, now float64
		want      bool
	}{{40, 44.9, false}, {40, 45.1, true}, {40, 34.9, true}, {40, math.NaN(), true}} {
		if got := TrimDue(test.then, test.now); got != test.want {
			t.Errorf("TrimDue(%g, %g) = %v", test.then, test.now, got)
		}
	}
}

// The sequence of leaks from a drift of 0.5 rad, without noise: each step takes away four
// fifths of the sine of the error.
func TestTrimStep(t *testing.T) {
	t.Parallel()
	e := 0.5
	dark := func(x float64) float64 { return math.Pow(math.Sin(x/2), 2) }
	for i, want := range []float64{-24.7, -38.6, -52.6, -66.5} {
		e += TrimStep(dark(e+TrimDither), dark(e-TrimDither), TrimDither, TrimGain)
		if got := 10 * math.Log10(dark(e)); math.Abs(got-want) > 0.1 {
			t.Errorf("after step %d the leak is %.2f dB, want %.1f", i+1, got, want)
		}
	}
}
