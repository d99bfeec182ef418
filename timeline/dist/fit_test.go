package dist_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/timeline/dist"
)

// seen returns n durations of m, each seen in an interval of the given width.
func seen(m dist.Mixture, n int, width time.Duration, seed uint64) []timeline.Interval {
	r := rand.New(rand.NewPCG(seed, 7))
	xs := make([]timeline.Interval, n)
	for i := range xs {
		d := int64(m.Draw(r))
		low := d - r.Int64N(int64(width)+1)
		xs[i] = timeline.Between(low, low+int64(width))
	}
	return xs
}

func fit(t testing.TB, xs []timeline.Interval, opt dist.FitOptions) dist.Fitted {
	t.Helper()
	f, err := dist.Fit(xs, opt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// quick does without the bootstrap.
var quick = dist.FitOptions{Resamples: -1}

// TestFit_Coverage recovers known mixtures: of many fits, about as many are within two
// standard errors as should be.
func TestFit_Coverage(t *testing.T) {
	for _, tc := range []struct {
		name  string
		m     dist.Mixture
		n     int
		width time.Duration
	}{
		{"points", dist.Mixture{{Share: 1, Median: 200 * ms, Spread: 3 * ms}}, 60, 0},
		{"wider than the spread", dist.Mixture{{Share: 1, Median: 200 * ms, Spread: 3 * ms}}, 200, 10 * ms},
		{"two modes", dist.Mixture{{Share: 0.7, Median: 20 * ms, Spread: ms}, {Share: 0.3, Median: 35 * ms, Spread: 2 * ms}}, 200, ms},
		{"two modes, wide", dist.Mixture{{Share: 0.7, Median: 3000 * ms, Spread: 50 * ms}, {Share: 0.3, Median: 6000 * ms, Spread: 100 * ms}}, 100, 120 * ms},
		{"three modes", dist.Mixture{{Share: 0.5, Median: 20 * ms, Spread: ms}, {Share: 0.25, Median: 30 * ms, Spread: ms}, {Share: 0.25, Median: 50 * ms, Spread: 3 * ms}}, 300, ms / 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const seeds = 60
			all, in, right := 0, 0, 0
			for seed := range uint64(seeds) {
				f := fit(t, seen(tc.m, tc.n, tc.width, seed), quick)
				if len(f.Mixture) != len(tc.m) {
					continue
				}
				right++
				for k, x := range f.Mixture {
					e, want := f.Errors[k], tc.m[k]
					within := func(got, want, se float64) {
						all++
						if math.Abs(got-want) <= 2*se {
							in++
						}
					}
					within(float64(x.Median), float64(want.Median), float64(e.Median))
					within(float64(x.Spread), float64(want.Spread), float64(e.Spread))
					if len(tc.m) > 1 {
						within(x.Share, want.Share, e.Share)
					}
				}
			}
			t.Logf("modes right in %d of %d; %d of %d parameters within 2 standard errors", right, seeds, in, all)
			if right < seeds*9/10 || in < all*88/100 {
				t.Errorf("modes right in %d of %d; %d of %d parameters within 2 standard errors", right, seeds, in, all)
			}
		})
	}
}

// TestFit_ClosedForm: without intervals, one mode is the mean and the standard deviation,
// and their standard errors are the textbook's.
func TestFit_ClosedForm(t *testing.T) {
	const n = 400
	xs := seen(dist.Mixture{{Share: 1, Median: 200 * ms, Spread: 3 * ms}}, n, 0, 3)
	values := make([]float64, n)
	for i, x := range xs {
		values[i] = float64(x.Earliest)
	}
	mean, sd := stat.PopMeanStdDev(values, nil)
	f := fit(t, xs, dist.FitOptions{Modes: 1, Resamples: -1})
	near := func(what string, got, want, part float64) {
		t.Helper()
		if math.Abs(got-want) > part*math.Abs(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("median", float64(f.Mixture[0].Median), mean, 1e-8)
	near("spread", float64(f.Mixture[0].Spread), sd, 1e-6)
	near("error of the median", float64(f.Errors[0].Median), sd/math.Sqrt(n), 1e-3)
	near("error of the spread", float64(f.Errors[0].Spread), sd/math.Sqrt(2*n), 1e-3)
	logs := 0.0
	for _, x := range values {
		logs += distuv.Normal{Mu: mean, Sigma: sd}.LogProb(x)
	}
	near("likelihood", f.LogLikelihood, logs, 1e-8)
	near("likelihood of the mixture", f.Mixture.LogLikelihood(xs), logs, 1e-8)

	model := distuv.Normal{Mu: float64(f.Mixture[0].Median), Sigma: float64(f.Mixture[0].Spread)}
	drawn := make([]float64, 200_000)
	for i := range drawn {
		drawn[i] = model.Quantile((float64(i) + 0.5) / float64(len(drawn)))
	}
	stat.SortWeighted(values, nil)
	ks := stat.KolmogorovSmirnov(values, nil, drawn, nil)
	near("Kolmogorov-Smirnov", f.Distance.KSLow, ks, 1e-2)
	near("Kolmogorov-Smirnov, at most", f.Distance.KSHigh, ks, 1e-2)
	w := 0.0
	for i, x := range values {
		w += math.Abs(x-model.Quantile((float64(i)+0.5)/n)) / n
	}
	near("Wasserstein", float64(f.Distance.WassersteinLow), w, 2e-2)
}

func TestFit_TooFew(t *testing.T) {
	xs := seen(dist.Mixture{{Share: 1, Median: 200 * ms, Spread: 3 * ms}}, 12, ms, 1)
	for range 30 {
		xs = append(xs, timeline.Interval{Earliest: int64(time.Minute), Latest: timeline.Never}) // say nothing
	}
	_, err := dist.Fit(xs, dist.FitOptions{})
	var few *dist.TooFewError
	if !errors.Is(err, dist.ErrTooFew) || !errors.As(err, &few) || few.Have != 12 || few.Need != dist.MinCount {
		t.Errorf("got %v", err)
	}
	if _, err = dist.Fit(xs, dist.FitOptions{Min: 5}); !errors.Is(err, dist.ErrTooFew) {
		t.Errorf("fewer than can be: %v", err)
	}
	if _, err = dist.Fit(nil, dist.FitOptions{}); !errors.Is(err, dist.ErrTooFew) {
		t.Errorf("none: %v", err)
	}
}

func TestFit_Odd(t *testing.T) {
	one := dist.Mixture{{Share: 1, Median: 20 * ms, Spread: ms}}
	equal := make([]timeline.Interval, 50)
	for i := range equal {
		equal[i] = timeline.Point(int64(20 * ms))
	}
	t.Run("all equal", func(t *testing.T) {
		f := fit(t, equal, dist.FitOptions{})
		if m := f.Mixture; len(m) != 1 || m[0].Median != 20*ms || m[0].Spread != 0 || f.Errors[0].AtMost == 0 || f.Errors[0].AtMost > 5 {
			t.Errorf("%+v %+v", m, f.Errors)
		}
	})
	t.Run("two values only", func(t *testing.T) {
		xs := append([]timeline.Interval(nil), equal...)
		for range 50 {
			xs = append(xs, timeline.Point(int64(30*ms)))
		}
		f := fit(t, xs, quick)
		if m := f.Mixture; len(m) != 2 || m[0].Median != 20*ms || m[1].Median != 30*ms || math.Abs(m[0].Share-0.5) > 1e-6 {
			t.Errorf("%+v", m)
		}
	})
	t.Run("wide intervals that all overlap", func(t *testing.T) {
		f := fit(t, seen(dist.Mixture{{Share: 1, Median: 20 * ms}}, 60, 10*ms, 2), quick)
		e := f.Errors[0]
		if len(f.Mixture) != 1 || e.AtMost == 0 || e.AtMost > 3*ms || (f.Mixture[0].Median-20*ms).Abs() > ms {
			t.Errorf("%+v %+v", f.Mixture, e)
		}
	})
	t.Run("huge outliers", func(t *testing.T) {
		xs := append(seen(one, 100, ms, 3), timeline.Point(int64(10*time.Second)), timeline.Point(int64(time.Hour)))
		f := fit(t, xs, quick)
		if m := f.Mixture; len(f.Outliers) != 2 || f.Count != 100 || len(m) != 1 || (m[0].Median-20*ms).Abs() > ms/2 || m[0].Spread > 2*ms {
			t.Errorf("%+v, outliers %v", m, f.Outliers)
		}
	})
	t.Run("what never came is no tail", func(t *testing.T) {
		xs := seen(one, 100, ms, 4)
		for range 10 {
			xs = append(xs, timeline.Interval{Earliest: int64(5 * time.Second), Latest: timeline.Never})
		}
		if f := fit(t, xs, quick); f.Never != 10 || f.Open != 0 || f.Count != 100 || len(f.Mixture) != 1 {
			t.Errorf("%+v", f)
		}
	})
	t.Run("what was not waited for is a tail", func(t *testing.T) {
		xs := seen(one, 300, 0, 5)
		open := 0
		for i, x := range xs {
			if x.Earliest > int64(20*ms) {
				xs[i] = timeline.Interval{Earliest: int64(20 * ms), Latest: timeline.Never}
				open++
			}
		}
		f := fit(t, xs, dist.FitOptions{})
		m := f.Mixture[0]
		if f.Open != open || len(f.Mixture) != 1 || math.Abs(float64(m.Median-20*ms)) > 4*float64(f.Errors[0].Median) ||
			math.Abs(float64(m.Spread-ms)) > 4*float64(f.Errors[0].Spread) {
			t.Errorf("%+v ± %+v of %d open", f.Mixture, f.Errors, f.Open)
		}
	})
	t.Run("rounded to milliseconds", func(t *testing.T) {
		xs := seen(dist.Mixture{{Share: 1, Median: 200 * ms, Spread: 5 * ms}}, 300, 0, 6)
		for i, x := range xs {
			xs[i] = timeline.Point(int64(time.Duration(x.Earliest).Round(ms)))
		}
		if f := fit(t, xs, quick); len(f.Mixture) != 1 {
			t.Errorf("%+v", f.Mixture)
		}
	})
}

// TestFit_Plausible: a fit of what is a mixture is plausible, and one of what is none is not.
func TestFit_Plausible(t *testing.T) {
	low := 0
	for seed := range uint64(20) {
		f := fit(t, seen(dist.Mixture{{Share: 1, Median: 20 * ms, Spread: ms}}, 60, ms/2, seed), dist.FitOptions{Resamples: 39})
		if f.P <= 0.05 {
			low++
		}
	}
	if low > 5 {
		t.Errorf("%d of 20 are called implausible", low)
	}
	r := rand.New(rand.NewPCG(1, 1))
	skew := make([]timeline.Interval, 400)
	for i := range skew {
		skew[i] = timeline.Point(int64(10*ms) + int64(r.ExpFloat64()*float64(5*ms)))
	}
	if f := fit(t, skew, dist.FitOptions{Modes: 1}); f.P > 0.05 {
		t.Errorf("an exponential distribution is called normal: p = %v", f.P)
	}
}

// TestFit_Properties: whatever the intervals are, a fit is a mixture with finite numbers,
// depends on nothing but them, and not on their order.
func TestFit_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(20, 60).Draw(t, "n")
		xs := make([]timeline.Interval, n)
		scale := rapid.SampledFrom([]int64{10, 1e6, 1e12}).Draw(t, "scale")
		for i := range xs {
			a := rapid.Int64Range(0, scale).Draw(t, "from")
			b := a + rapid.Int64Range(0, scale/10).Draw(t, "width")
			xs[i] = timeline.Between(a, b)
			if rapid.IntRange(0, 9).Draw(t, "open") == 0 {
				xs[i].Latest = timeline.Never
			}
		}
		f, err := dist.Fit(xs, dist.FitOptions{Resamples: 2})
		if errors.Is(err, dist.ErrTooFew) {
			t.Skip("too few are left without outliers")
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Mixture.Check(); err != nil {
			t.Fatalf("%v: %+v", err, f.Mixture)
		}
		for _, x := range []float64{f.LogLikelihood, f.P, f.Distance.KSLow, f.Distance.KSHigh} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("%+v", f)
			}
		}
		if d := f.Distance; d.KSLow > d.KSHigh || d.WassersteinLow > d.WassersteinHigh || d.KSHigh > 1 || d.WassersteinLow < 0 {
			t.Fatalf("%+v", d)
		}
		if f.Count+f.Never+len(f.Outliers) != n || len(f.Errors) != len(f.Mixture) {
			t.Fatalf("%+v of %d", f, n)
		}
		rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
		again, _ := dist.Fit(xs, dist.FitOptions{Resamples: 2})
		if a, b := fmt.Sprint(f), fmt.Sprint(again); a != b {
			t.Fatalf("depends on the order:\n%s\n%s", a, b)
		}
	})
}

func BenchmarkFit(b *testing.B) {
	m := dist.Mixture{{Share: 0.7, Median: 20 * ms, Spread: ms}, {Share: 0.3, Median: 35 * ms, Spread: 2 * ms}}
	for _, n := range []int{100, 1000, 10_000} {
		for _, width := range []time.Duration{0, 5 * ms} {
			b.Run(fmt.Sprintf("n=%d/width=%v", n, width), func(b *testing.B) {
				xs := seen(m, n, width, 1)
				for b.Loop() {
					if _, err := dist.Fit(xs, quick); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
