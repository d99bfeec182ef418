package timeline_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

const never = timeline.Never

// later is what is known of something that had not come at a time.
func later(than int64) timeline.Interval {
	return timeline.Interval{Earliest: than, Latest: never}
}

// months makes a closed interval of what is known of whole months as (from, to].
func months(from, to int64) timeline.Interval {
	if to == never {
		return later(from)
	}
	return timeline.Interval{Earliest: from + 1, Latest: to}
}

// radiotherapy is table 1 of Finkelstein and Wolfe, Biometrics 41 (1985): months until
// breast retraction, for the 46 patients with radiotherapy alone.
var radiotherapy = [][2]int64{
	{45, never}, {6, 10}, {0, 7}, {46, never}, {46, never}, {7, 16}, {17, never}, {7, 14}, {37, 44}, {0, 8},
	{4, 11}, {15, never}, {11, 15}, {22, never}, {46, never}, {46, never}, {25, 37}, {46, never}, {26, 40}, {46, never},
	{27, 34}, {36, 44}, {46, never}, {36, 48}, {37, never}, {40, never}, {17, 25}, {46, never}, {11, 18}, {38, never},
	{5, 12}, {37, never}, {0, 5}, {18, never}, {24, never}, {36, never}, {5, 11}, {19, 35}, {17, 25}, {24, never},
	{32, never}, {33, never}, {19, 26}, {37, never}, {34, never}, {36, never},
}

func TestTurnbull(t *testing.T) {
	p, between := timeline.Point, timeline.Between
	var cosmesis []timeline.Interval
	for _, x := range radiotherapy {
		cosmesis = append(cosmesis, months(x[0], x[1]))
	}
	for _, tc := range []struct {
		name      string
		xs        []timeline.Interval
		want      []timeline.Step
		precision float64
	}{
		{"None", nil, nil, 0},
		{"OnePoint", []timeline.Interval{p(5)}, []timeline.Step{{p(5), 1}}, 1e-12},
		{"OneInterval", []timeline.Interval{between(5, 9)}, []timeline.Step{{between(5, 9), 1}}, 1e-12},
		{"Reversed", []timeline.Interval{{Earliest: 9, Latest: 5}}, []timeline.Step{{between(5, 9), 1}}, 1e-12},
		{"EndsTouch", []timeline.Interval{between(1, 2), between(2, 3)}, []timeline.Step{{p(2), 1}}, 1e-12},
		{"Apart", []timeline.Interval{between(1, 2), between(3, 4), between(3, 9)}, []timeline.Step{{between(1, 2), 1. / 3}, {between(3, 4), 2. / 3}}, 1e-6},
		{"Overlapping", []timeline.Interval{between(0, 10), between(5, 15), between(20, 30)}, []timeline.Step{{between(5, 10), 2. / 3}, {between(20, 30), 1. / 3}}, 1e-6},
		{"AllNever", []timeline.Interval{later(3), later(7)}, []timeline.Step{{timeline.Interval{Earliest: 8, Latest: never}, 1}}, 1e-12},
		{"EndOfTime", []timeline.Interval{p(never), p(math.MinInt64), between(math.MinInt64, never)},
			[]timeline.Step{{p(math.MinInt64), 1. / 3}, {p(never), 2. / 3}}, 1e-6},

		// By hand: [1,2] and [4,5] hold masses a and 1-a; one interval holds both. The
		// likelihood a (1-a) (1-a) is largest at a = 1/3.
		{"Bridge", []timeline.Interval{between(0, 2), between(4, 6), between(4, 6), between(1, 5)},
			[]timeline.Step{{between(1, 2), 1. / 3}, {between(4, 5), 2. / 3}}, 1e-5},

		// With ties, and one that had not come at a time at which others came: Kaplan and
		// Meier have 1 - 1/4 left after 1, and of that one half after 2.
		{"KaplanMeier", []timeline.Interval{p(1), later(1), p(2), p(3)},
			[]timeline.Step{{p(1), 0.25}, {p(2), 0.375}, {p(3), 0.375}}, 1e-6},

		// As the vignette of the R package "interval" (Fay and Shaw, J. Stat. Softw. 36,
		// 2010) has it, to its four digits.
		{"Cosmesis", cosmesis, []timeline.Step{
			{months(4, 5), 0.0463}, {months(6, 7), 0.0334}, {months(7, 8), 0.0887}, {months(11, 12), 0.0708},
			{months(24, 25), 0.0926}, {months(33, 34), 0.0818}, {months(38, 40), 0.1209}, {months(46, 48), 0.4656},
		}, 0.00006},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := timeline.Turnbull(tc.xs)
			if d := gocmp.Diff(tc.want, got.Steps, cmpopts.EquateApprox(0, tc.precision)); d != "" || got.Count != len(tc.xs) {
				t.Errorf("Count = %d (-want +got):\n%s", got.Count, d)
			}
		})
	}
}

// Freireich et al. (1963), weeks of remission under 6-MP, with the estimate of Kaplan and
// Meier as textbooks have it since Gehan (1965).
func TestTurnbull_Remission(t *testing.T) {
	var xs []timeline.Interval
	for _, w := range []int64{6, 6, 6, 7, 10, 13, 16, 22, 23} {
		xs = append(xs, timeline.Point(w))
	}
	for _, w := range []int64{6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35} {
		xs = append(xs, later(w))
	}
	d := timeline.Turnbull(xs)
	for _, want := range []struct {
		week int64
		left float64
	}{{5, 1}, {6, 0.857}, {7, 0.807}, {10, 0.753}, {13, 0.690}, {16, 0.627}, {22, 0.538}, {23, 0.448}, {35, 0.448}} {
		low, high := d.CDF(want.week)
		if math.Abs(1-low-want.left) > 0.0006 || low != high {
			t.Errorf("week %d: between %.4f and %.4f are left, want %.3f", want.week, 1-high, 1-low, want.left)
		}
	}
	if got := d.Quantile(0.5); got != timeline.Point(23) {
		t.Errorf("median %v, want 23", got)
	}
	if got := d.Quantile(0.9); got.Latest != never {
		t.Errorf("90 %% by %v, want never known", got)
	}
}

// anyIntervals draws points, intervals, ties, and what never came.
var anyIntervals = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) timeline.Interval {
	at := rapid.Int64Range(0, 30).Draw(t, "at")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return timeline.Point(at)
	case 1:
		return later(at)
	}
	return timeline.Between(at, at+rapid.Int64Range(0, 12).Draw(t, "width"))
}), 1, 40)

// holds returns the mass of the steps that lie within x.
func holds(steps []timeline.Step, x timeline.Interval) float64 {
	if x.Latest == never {
		x.Earliest++
	}
	sum := 0.0
	for _, s := range steps {
		if x.Earliest <= s.Earliest && s.Latest <= x.Latest {
			sum += s.Mass
		}
	}
	return sum
}

func logLikelihood(steps []timeline.Step, xs []timeline.Interval) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(holds(steps, x))
	}
	return sum
}

func TestTurnbull_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := anyIntervals.Draw(t, "xs")
		d := timeline.Turnbull(xs)
		sum := 0.0
		for i, s := range d.Steps {
			if s.Mass <= 0 || s.Earliest > s.Latest || i > 0 && d.Steps[i-1].Latest >= s.Earliest {
				t.Fatalf("step %d of %v", i, d.Steps)
			}
			sum += s.Mass
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("masses add up to %v", sum)
		}
		if again := timeline.Turnbull(rapid.Permutation(xs).Draw(t, "shuffled")); gocmp.Diff(d, again, cmpopts.EquateApprox(0, 1e-9)) != "" {
			t.Fatalf("the order of xs has an influence:\n%v\n%v", d, again)
		}

		// Kuhn and Tucker: no place, of a step or not, would gain by more mass.
		for at := int64(0); at <= 45; at++ {
			pull := 0.0
			for _, x := range xs {
				if x.Earliest <= at && at <= x.Latest && (x.Latest != never || x.Earliest < at) {
					pull += 1 / holds(d.Steps, x)
				}
			}
			if n := float64(len(xs)); pull > n+1e-4 {
				t.Fatalf("more mass at %d makes it likelier: %v of %v\n%v", at, pull, n, d.Steps)
			}
		}
		// Nor is any other distribution on the same steps likelier.
		best := logLikelihood(d.Steps, xs)
		other := slices.Clone(d.Steps)
		rest := 0.0
		for i := range other {
			other[i].Mass *= rapid.Float64Range(0.01, 1).Draw(t, "factor")
			rest += other[i].Mass
		}
		for i := range other {
			other[i].Mass /= rest
		}
		if l := logLikelihood(other, xs); l > best+1e-6 {
			t.Fatalf("%v is likelier: %v against %v", other, l, best)
		}
	})
}

// kaplanMeier returns the part that is left after each time of points and what never came.
func kaplanMeier(xs []timeline.Interval, at int64) float64 {
	left := 1.0
	for t := int64(0); t <= at; t++ {
		came, waited := 0, 0
		for _, x := range xs {
			if x.Latest != never && x.Earliest == t {
				came++
			}
			if x.Earliest >= t {
				waited++
			}
		}
		if waited > 0 {
			left *= 1 - float64(came)/float64(waited)
		}
	}
	return left
}

func TestTurnbull_KaplanMeier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) timeline.Interval {
			at := rapid.Int64Range(0, 20).Draw(t, "at")
			if rapid.Bool().Draw(t, "never") {
				return later(at)
			}
			return timeline.Point(at)
		}), 1, 40).Draw(t, "xs")
		d := timeline.Turnbull(xs)
		for at := range int64(20) {
			// What never came has one step, after the last time it was waited for; the rest
			// is points.
			low, _ := d.CDF(at)
			if want := 1 - kaplanMeier(xs, at); math.Abs(low-want) > 1e-4 {
				t.Fatalf("at %d: %v, want %v\n%v", at, low, want, d.Steps)
			}
		}
	})
}

// Of points it is the empirical distribution: few as they are, many within their steps.
func TestTurnbull_Points(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 20_000} {
		random := rand.New(rand.NewPCG(uint64(n), 3))
		values := make([]int64, n)
		var xs []timeline.Interval
		for i := range values {
			values[i] = int64(random.ExpFloat64() * 1e9)
			xs = append(xs, timeline.Point(values[i]))
		}
		d := timeline.Turnbull(xs)
		slices.Sort(values)
		widest := 0.0
		for i, at := range values {
			low, high := d.CDF(at)
			if is := float64(i+1) / float64(n); is < low-1e-6 || is > high+1e-6 {
				t.Fatalf("%d values: %v are at most %d, want between %v and %v", n, is, at, low, high)
			}
			widest = max(widest, high-low)
		}
		want := 0.0
		if n > 4096 {
			want = 1. / 512
		}
		if widest > want {
			t.Errorf("%d values: a step has a mass of %v", n, widest)
		}
		if len(d.Steps) > 3*1024 {
			t.Errorf("%d values: %d steps", n, len(d.Steps))
		}
	}
}

// Of many values, a few far from the others stay apart from them, and what is there often
// stays alone.
func TestTurnbull_ManyStayApart(t *testing.T) {
	var xs []timeline.Interval
	for i := range int64(10_000) {
		xs = append(xs, timeline.Between(i*100, i*100+50))
	}
	for range 3000 {
		xs = append(xs, timeline.Point(-7))
	}
	xs = append(xs, timeline.Point(5e9), timeline.Point(7e9), later(30e9))
	d := timeline.Turnbull(xs)
	n := float64(len(xs))
	if s := d.Steps[0]; s.Interval != timeline.Point(-7) || math.Abs(s.Mass-3000/n) > 1e-6 {
		t.Errorf("first step %v %v, want 3000 of %v at -7", s.Interval, s.Mass, n)
	}
	last := d.Steps[len(d.Steps)-3:]
	for i, want := range []timeline.Interval{timeline.Point(5e9), timeline.Point(7e9), {Earliest: 30e9 + 1, Latest: never}} {
		if last[i].Interval != want || math.Abs(last[i].Mass-1/n) > 1e-6 {
			t.Errorf("step %v %v, want %v with one of %v", last[i].Interval, last[i].Mass, want, n)
		}
	}
}

func TestDistribution(t *testing.T) {
	if got := (timeline.Distribution{}).Quantile(0.5); got != (timeline.Interval{}) {
		t.Errorf("median of nothing: %v", got)
	}
	d := timeline.Distribution{Count: 4, Steps: []timeline.Step{
		{timeline.Between(10, 20), 0.25}, {timeline.Point(30), 0.5}, {timeline.Interval{Earliest: 40, Latest: never}, 0.25},
	}}
	for q, want := range map[float64]timeline.Interval{
		math.NaN(): timeline.Between(10, 20), -1: timeline.Between(10, 20), 0: timeline.Between(10, 20), 0.2: timeline.Between(10, 20),
		0.25: timeline.Between(10, 30), 0.5: timeline.Point(30), 0.75: timeline.Between(30, never),
		0.8: timeline.Between(40, never), 1: timeline.Between(40, never), 7: timeline.Between(40, never),
	} {
		if got := d.Quantile(q); got != want {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}
	for ns, want := range map[int64][2]float64{
		9: {0, 0}, 10: {0, 0.25}, 19: {0, 0.25}, 20: {0.25, 0.25}, 30: {0.75, 0.75}, 40: {0.75, 1}, never: {0.75, 1},
	} {
		if low, high := d.CDF(ns); low != want[0] || high != want[1] {
			t.Errorf("CDF(%d) = %v, %v, want %v", ns, low, high, want)
		}
	}
}

// Things that are looked at less and less often: of each is known between which two looks
// it happened. Turnbull comes nearer to the median the more there are, while the middles of
// the intervals do not.
func TestTurnbull_FindsWhatMiddlesMiss(t *testing.T) {
	const truth = math.Ln2 * 1e9
	off := func(at timeline.Interval) float64 {
		return max(float64(at.Earliest)-truth, truth-float64(at.Latest), 0) / truth
	}
	for _, tc := range []struct {
		n    int
		most float64
	}{{400, 0.15}, {4000, 0.07}, {40_000, 0.04}} {
		random := rand.New(rand.NewPCG(11, 12))
		var xs, middles []timeline.Interval
		for range tc.n {
			at := int64(random.ExpFloat64() * 1e9)
			look, next := int64(0), int64(3e8*random.Float64())+1
			for next < at {
				look, next = next, 3*next
			}
			x := timeline.Between(look, next)
			xs = append(xs, x)
			middles = append(middles, timeline.Point(x.Mid()))
		}
		o := off(timeline.Turnbull(xs).Quantile(0.5))
		t.Logf("of %d, the median is off by %.1f %%, and that of the middles by %.1f %%", tc.n, 100*o, 100*off(timeline.Quantile(middles, 0.5)))
		if o > tc.most {
			t.Errorf("of %d, the median is off by %.1f %%, want at most %.0f %%", tc.n, 100*o, 100*tc.most)
		}
		if o := off(timeline.Quantile(middles, 0.5)); o < 0.05 {
			t.Errorf("the middles are off by %.1f %% only: this test shows nothing", 100*o)
		}
	}
}

// Bounds hold the truth about as often as they say, whatever the distribution, when each
// duration is only known to lie in an interval.
func TestSummarize_CoverageOfIntervals(t *testing.T) {
	bimodal := func(r *rand.Rand) float64 {
		if r.IntN(10) < 3 {
			return 6 + 0.1*r.NormFloat64()
		}
		return 3 + 0.05*r.NormFloat64()
	}
	for name, draw := range map[string]func(*rand.Rand) float64{
		"exponential": (*rand.Rand).ExpFloat64,
		"lognormal":   func(r *rand.Rand) float64 { return math.Exp(0.4 * r.NormFloat64()) },
		"bimodal":     bimodal,
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(21, 22))
			large := make([]float64, 400_000)
			for i := range large {
				large[i] = draw(random)
			}
			slices.Sort(large)
			median, p95 := int64(large[len(large)/2]*1e9), int64(large[len(large)*95/100]*1e9)

			const dataSets, reconfigurations = 200, 100
			heldMedian, heldP95 := 0, 0
			for range dataSets {
				var marks []timeline.Mark
				for r := range reconfigurations {
					marks = append(marks, mark(r+1, timeline.Command, "s", timeline.Point(0)))
					at := int64(draw(random) * 1e9)
					width := random.Int64N(2e7)
					early := random.Int64N(width + 1)
					marks = append(marks, mark(r+1, timeline.Light, "a", timeline.Between(at-early, at-early+width)))
				}
				s := timeline.Summarize(marks, timeline.Options{Resamples: 200, Seed: random.Uint64()}).Stages[0]
				if s.Median.LowNS <= median && median <= s.Median.HighNS {
					heldMedian++
				}
				if s.P95.LowNS <= p95 && p95 <= s.P95.HighNS {
					heldP95++
				}
			}
			t.Logf("bounds hold the median in %d and p95 in %d of %d", heldMedian, heldP95, dataSets)
			// 95 % of 200 is 190, give or take 3; of upper quantiles a bootstrap promises less.
			if heldMedian < 184 || heldP95 < 176 {
				t.Errorf("bounds hold the median in %d and p95 in %d of %d", heldMedian, heldP95, dataSets)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks := anyRun.Draw(t, "marks")
		durations := timeline.Durations(marks)
		stages := timeline.Stages()
		if !slices.IsSortedFunc(durations, func(a, b timeline.Duration) int {
			return cmp.Or(cmp.Compare(slices.Index(stages, a.Stage), slices.Index(stages, b.Stage)), cmp.Compare(a.Reconfiguration, b.Reconfiguration),
				cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Host, b.Host))
		}) {
			t.Fatalf("not in order: %v", durations)
		}
		by := map[timeline.Stage][]timeline.Interval{}
		for _, d := range durations {
			by[d.Stage] = append(by[d.Stage], d.Interval)
		}
		report := timeline.Summarize(marks, timeline.Options{Resamples: 1})
		if len(report.Stages) != len(by) {
			t.Fatalf("durations of %d stages, want %d", len(by), len(report.Stages))
		}
		for _, s := range report.Stages {
			if s.Count != len(by[s.Stage]) || s.Median.NS != timeline.Quantile(by[s.Stage], 0.5).Mid() {
				t.Fatalf("%s: %v does not come from %v", s.Stage, s, by[s.Stage])
			}
		}
	})
}

// The quantiles of a pool are those of the durations copied as often as they count.
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var durations []timeline.Duration
		for r := range rapid.IntRange(1, 12).Draw(t, "reconfigurations") {
			for range rapid.SampledFrom([]int{1, 3, 40}).Draw(t, "subjects") {
				at := random.Int64N(1000) + int64(r%3)*300
				durations = append(durations, timeline.Duration{Reconfiguration: 10 * (r + 1), Interval: timeline.Between(at, at+random.Int64N(50))})
			}
		}
		qs := []float64{0.1, 0.5, 0.9}
		p := timeline.NewPool(durations, qs...)
		times := make([]int32, len(p.Reconfigurations))
		for i := range times {
			times[i] = int32(rapid.IntRange(0, 3).Draw(t, "times"))
		}
		var copies []timeline.Interval
		for _, d := range durations {
			for range times[d.Reconfiguration/10-1] {
				copies = append(copies, d.Interval)
			}
		}
		var at [3]timeline.Interval
		if ok := p.Quantiles(times, at[:]); ok != (len(copies) > 0) {
			t.Fatalf("Quantiles = %v of %d durations", ok, len(copies))
		}
		for i, q := range qs {
			if want := timeline.Quantile(copies, q); at[i] != want {
				t.Fatalf("%v-quantile %v, want %v", q, at[i], want)
			}
		}
	})
}

func BenchmarkTurnbull(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []struct {
		name  string
		width func() int64
	}{
		{"Points", func() int64 { return 0 }},
		{"Polled", func() int64 { return 134_000 }},
		{"Overlapping", func() int64 { return 10_000_000 }},
		{"Mixed", func() int64 { return random.Int64N(10_000_000) }},
	} {
		var xs []timeline.Interval
		for range 100_000 {
			width := kind.width()
			at := int64(2e8*math.Exp(0.02*random.NormFloat64())) - random.Int64N(width+1)
			xs = append(xs, timeline.Between(at, at+width))
		}
		b.Run(kind.name, func(b *testing.B) {
			for b.Loop() {
				timeline.Turnbull(xs)
			}
		})
	}
}
