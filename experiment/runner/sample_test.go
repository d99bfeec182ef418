package runner_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/timeline"
)

func TestSamples(t *testing.T) {
	nan, dark := math.NaN(), math.Inf(-1)
	for _, c := range []struct {
		name   string
		powers []float64
		want   []int // what is kept, by place
	}{
		{"none", nil, nil},
		{"one", []float64{-3}, []int{0}},
		{"a row", []float64{-3, -3.04, -2.96, -3}, []int{0, 3}},
		{"a slow drift", []float64{-3, -3.03, -3.06, -3.09, -3.12}, []int{0, 1, 2, 3, 4}},
		{"a dip", []float64{-3, -3, -3, -20, dark, dark, dark, -20, -3, -3, -3}, []int{0, 2, 3, 4, 6, 7, 8, 10}},
		{"failed readings", []float64{nan, -3, nan, -3, math.Inf(1), -3, nan}, []int{1, 5}},
		{"two rows", []float64{-3, -3, -5, -5}, []int{0, 1, 2, 3}},
	} {
		var readings []timeline.Sample
		for i, p := range c.powers {
			readings = append(readings, timeline.Sample{Interval: timeline.Between(int64(10*i), int64(10*i+1)), PowerDBm: p})
		}
		var got []int
		for _, s := range runner.Samples(map[string][]timeline.Sample{"rail0/33": readings}) {
			i := int(s.EarliestNS / 10)
			got = append(got, i)
			if want := c.powers[i]; s.Dark != math.IsInf(want, -1) || !s.Dark && s.PowerDBm != want || s.Dark && s.PowerDBm != 0 || s.LatestNS != s.EarliestNS+1 {
				t.Errorf("%s: reading %d became %+v", c.name, i, s)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: readings %v are kept, want %v", c.name, got, c.want)
		}
	}
}

// Ensure that from what is kept, with lines between, no reading is off by more than twice
// what counts as equal.
func TestSamples_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		powers := rapid.SliceOf(rapid.OneOf(rapid.Float64Range(-3.2, -3), rapid.Float64Range(-40, 0), rapid.Just(math.Inf(-1)))).Draw(t, "powers")
		var readings []timeline.Sample
		for i, p := range powers {
			readings = append(readings, timeline.Sample{Interval: timeline.Point(int64(i)), PowerDBm: p})
		}
		kept := runner.Samples(map[string][]timeline.Sample{"x": readings})
		if (len(kept) == 0) != (len(powers) == 0) {
			t.Fatalf("%d readings are kept of %d", len(kept), len(powers))
		}
		if len(kept) > 0 && (kept[0].EarliestNS != 0 || kept[len(kept)-1].EarliestNS != int64(len(powers)-1)) {
			t.Fatalf("the first and the last of %d readings are not kept: %v", len(powers), kept)
		}
		at := 0
		for i, p := range powers {
			for at+1 < len(kept) && kept[at+1].EarliestNS <= int64(i) {
				at++
			}
			k := kept[at]
			if dark := math.IsInf(p, -1); dark != k.Dark || !dark && math.Abs(p-k.PowerDBm) > 0.1 {
				t.Fatalf("reading %d, %v, would be taken for %+v", i, p, k)
			}
		}
	})
}
