package timeline_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

func points(ns ...int64) []timeline.Interval {
	xs := make([]timeline.Interval, len(ns))
	for i, x := range ns {
		xs[i] = timeline.Point(x)
	}
	return xs
}

func TestQuantile_Table(t *testing.T) {
	hundred := make([]int64, 101)
	for i := range hundred {
		hundred[i] = int64(i)
	}
	ten := points(1000, 2000, 3000, 4000, 10000)
	for _, tc := range []struct {
		xs   []timeline.Interval
		q    float64
		want timeline.Interval
	}{
		{nil, 0.5, timeline.Interval{}},
		{points(7), 0.99, timeline.Point(7)},
		{points(6, 5), 0.5, timeline.Between(5, 6)}, // 5.5
		{points(-6, -5), 0.5, timeline.Between(-6, -5)},
		// R: quantile(c(1, 2, 3, 4, 10)*1000, c(0, .25, .5, .95, .99, 1)); 0.95 and 0.99
		// are a hair off in binary.
		{ten, 0, timeline.Point(1000)},
		{ten, 0.25, timeline.Point(2000)},
		{ten, 0.5, timeline.Point(3000)},
		{ten, 0.95, timeline.Between(8799, 8800)},
		{ten, 0.99, timeline.Between(9759, 9760)},
		{ten, 1, timeline.Point(10000)},
		{ten, -1, timeline.Point(1000)},
		{ten, 2, timeline.Point(10000)},
		{ten, math.NaN(), timeline.Point(1000)},
		{points(hundred...), 0.07, timeline.Point(7)},
		{points(hundred...), 0.95, timeline.Point(95)},
		{points(hundred...), 0.99, timeline.Point(99)},
		{[]timeline.Interval{timeline.Between(0, 100), timeline.Between(10, 20), timeline.Between(15, 16)}, 0.5, timeline.Between(10, 20)},
		{points(math.MinInt64, math.MaxInt64-1), 0.5, timeline.Point(-1)},
		// Of what never came, nobody knows when it comes.
		{[]timeline.Interval{timeline.Point(10), later(20)}, 0, timeline.Point(10)},
		{[]timeline.Interval{timeline.Point(10), later(20)}, 0.5, timeline.Between(15, never)},
		{[]timeline.Interval{timeline.Point(10), timeline.Point(12), later(20)}, 0.5, timeline.Point(12)},
		{[]timeline.Interval{timeline.Point(10), later(20), later(20)}, 0.5, later(20)},
	} {
		if got := timeline.Quantile(tc.xs, tc.q); got != tc.want {
			t.Errorf("Quantile(%v, %v) = %+v, want %+v", tc.xs, tc.q, got, tc.want)
		}
	}
}

// The quantiles of large samples come close to those of the distribution.
func TestQuantile_Distributions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	uniform, exponential, normal := make([]int64, 30_000), make([]int64, 30_000), make([]int64, 30_000)
	for i := range uniform {
		uniform[i] = int64(random.Float64() * 1e9)
		exponential[i] = int64(random.ExpFloat64() * 1e9)
		normal[i] = int64(random.NormFloat64() * 1e9)
	}
	for _, tc := range []struct {
		name string
		xs   []int64
		want map[float64]float64 // in units of 1e9
	}{
		{"Uniform", uniform, map[float64]float64{0.5: 0.5, 0.95: 0.95, 0.99: 0.99}},
		{"Exponential", exponential, map[float64]float64{0.5: math.Ln2, 0.95: math.Log(20), 0.99: math.Log(100)}},
		{"Normal", normal, map[float64]float64{0.5: 0, 0.95: 1.644854, 0.99: 2.326348}},
	} {
		for q, want := range tc.want {
			got := float64(timeline.Quantile(points(tc.xs...), q).Mid()) / 1e9
			if math.Abs(got-want) > 0.18 { // 3 standard errors of the worst, the exponential p99
				t.Errorf("%s: Quantile(%v) = %.4f, want %.4f", tc.name, q, got, want)
			}
		}
	}
}

// The result encloses the quantile of any values that the intervals allow, computed
// here in exact fractions.
func TestQuantile_Encloses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(anyInterval, 1, 12).Draw(t, "xs")
		// These place a quantile exactly in 63 bits.
		q := rapid.OneOf(
			rapid.Map(rapid.IntRange(0, 1024), func(k int) float64 { return float64(k) / 1024 }),
			rapid.SampledFrom([]float64{0.95, 0.99}),
		).Draw(t, "q")
		truth := make([]int64, len(xs))
		for i, x := range xs {
			truth[i] = inside(t, x, "truth")
		}
		before := slices.Clone(xs)
		got := timeline.Quantile(xs, q)
		if !slices.Equal(before, xs) {
			t.Fatal("the input was changed")
		}

		slices.Sort(truth)
		h := float64(len(xs)-1) * q
		if whole := math.Round(h); math.Abs(h-whole) < 1e-9 {
			h = whole
		}
		i := int(h)
		want := new(big.Rat).SetInt64(truth[i])
		if i+1 < len(truth) {
			d := new(big.Rat).Sub(new(big.Rat).SetInt64(truth[i+1]), want)
			part := new(big.Rat).Sub(new(big.Rat).SetFloat64(h), new(big.Rat).SetInt64(int64(i)))
			want.Add(want, d.Mul(d, part))
		}
		if want.Cmp(big.NewRat(got.Earliest, 1)) < 0 || want.Cmp(big.NewRat(got.Latest, 1)) > 0 {
			t.Fatalf("Quantile = %+v does not hold %s", got, want.FloatString(3))
		}
	})
}
