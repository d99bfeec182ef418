package dist

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// LogLikelihood returns the logarithm of the probability of intervals if durations are
// distributed as m says; see [Fit]. A mode without spread has one of half a nanosecond
// here. m has at least one mode.
func (m Mixture) LogLikelihood(intervals []timeline.Interval) float64 {
	cells := make([]cell, len(intervals))
	for i, x := range intervals {
		cells[i] = cellOf(x)
	}
	return judge(cells, m.components(0.5), nil).log
}

func (m Mixture) components(floor float64) []component {
	at := make([]component, 0, MaxModes)
	for _, x := range m {
		at = append(at, component{x.Share / m.total(), float64(x.Median), max(float64(x.Spread), floor)})
	}
	return at
}

// Distance returns how far m is from durations, each of which lies in one of intervals.
// Wasserstein distances leave out the part of the durations that never came.
func (m Mixture) Distance(intervals []timeline.Interval) Distance {
	data := timeline.Turnbull(intervals)
	var d Distance
	d.KSLow, d.KSHigh = m.kolmogorov(data)

	// The mean distance of quantiles, in as many parts as change anything.
	parts := min(max(2*len(intervals), 200), 2000)
	sorted := m.quantiles(parts)
	low, high, count := 0.0, 0.0, 0
	i, sum := 0, 0.0
	for k, model := range sorted {
		q := (float64(k) + 0.5) / float64(parts)
		for i < len(data.Steps)-1 && sum+data.Steps[i].Mass < q {
			sum += data.Steps[i].Mass
			i++
		}
		if len(data.Steps) == 0 || data.Steps[i].Latest == timeline.Never {
			break
		}
		at := data.Steps[i]
		below, above := float64(at.Earliest-model), float64(model-at.Latest)
		low += max(below, above, 0)
		high += max(math.Abs(float64(model-at.Earliest)), math.Abs(float64(model-at.Latest)))
		count++
	}
	if count > 0 {
		d.WassersteinLow = time.Duration(math.Round(low / float64(count)))
		d.WassersteinHigh = time.Duration(math.Round(high / float64(count)))
	}
	return d
}

// quantiles returns the quantiles of m in the middle of so many equal parts.
func (m Mixture) quantiles(parts int) []int64 {
	list := make([]int64, parts)
	for k := range list {
		list[k] = int64(m.Quantile((float64(k) + 0.5) / float64(parts)))
	}
	return list
}

// kolmogorov returns between what the largest difference of the distribution functions
// lies. Between two steps the data's is known; within one it is somewhere from the sum
// before to that after.
func (m Mixture) kolmogorov(data timeline.Distribution) (low, high float64) {
	cdf := func(ns int64) float64 { return m.CDF(time.Duration(ns)) }
	sum, from := 0.0, 0.0
	for _, s := range data.Steps {
		before := cdf(s.Earliest - 1)
		low = max(low, math.Abs(before-sum), math.Abs(from-sum))
		if s.Latest == timeline.Never {
			from = sum // what comes after is not known
			break
		}
		from = cdf(s.Latest)
		high = max(high, math.Abs(from-sum), math.Abs(before-(sum+s.Mass)))
		sum += s.Mass
	}
	if len(data.Steps) > 0 && data.Steps[len(data.Steps)-1].Latest != timeline.Never {
		low = max(low, math.Abs(from-1))
	}
	return low, max(low, high)
}

// maxPairs is of a Q-Q plot.
const maxPairs = 60

// quantilePairs returns the quantiles of the durations beside those of m. The bands are
// those of order statistics (Wilson), widened by what the intervals leave open.
func (m Mixture) quantilePairs(intervals []timeline.Interval, resolution time.Duration) []QuantilePair {
	n := len(intervals)
	data := timeline.Turnbull(intervals)
	pairs := make([]QuantilePair, 0, min(n, maxPairs))
	for k := range min(n, maxPairs) {
		q := (float64(k) + 0.5) / float64(min(n, maxPairs))
		p := QuantilePair{Q: q, Model: m.Quantile(q), Data: data.Quantile(q)}
		low, high := wilson(q, n)
		p.Low, p.High = m.Quantile(low)-resolution, m.Quantile(high)+resolution
		pairs = append(pairs, p)
	}
	return pairs
}

// wilson returns the score interval of 95 % for a portion q of n.
func wilson(q float64, n int) (low, high float64) {
	const z = 1.959964
	zz := z * z / float64(n)
	mid, half := q+zz/2, z*math.Sqrt(q*(1-q)/float64(n)+zz/float64(4*n))
	return max((mid-half)/(1+zz), 1e-9), min((mid+half)/(1+zz), 1-1e-9)
}

// Like returns as many durations as there are intervals, drawn from m and seen as those
// were: each lies somewhere in an interval as wide as one of them, and what had not come
// within the time that was waited for others is open, too. m has at least one mode.
func (m Mixture) Like(intervals []timeline.Interval, r *rand.Rand) []timeline.Interval {
	var widths, patience []int64
	for _, x := range intervals {
		if x.Latest == timeline.Never {
			patience = append(patience, x.Earliest)
		} else {
			widths = append(widths, int64(x.Width()))
		}
	}
	slices.Sort(patience)
	list := make([]timeline.Interval, len(intervals))
	for i := range list {
		at := int64(m.Draw(r))
		if n := len(patience); n > 0 && at > patience[n/2] {
			list[i] = timeline.Interval{Earliest: patience[n/2], Latest: timeline.Never}
			continue
		}
		width := int64(0)
		if len(widths) > 0 {
			width = widths[r.IntN(len(widths))]
		}
		low := at
		if width > 0 {
			low -= r.Int64N(width + 1)
		}
		list[i] = timeline.Interval{Earliest: low, Latest: low + width}
	}
	return list
}

// defaultResamples is of a bootstrap.
const defaultResamples = 99

// plausible returns how probable a distance of ks or more is if the choice is right.
func (c *choice) plausible(values []timeline.Interval, ks float64, opt FitOptions) (p float64, resamples int) {
	resamples = opt.Resamples
	if resamples == 0 {
		resamples = defaultResamples
	}
	if n := len(values); n > 2000 {
		resamples = min(resamples, max(resamples*2000/n, 39))
	}
	if resamples <= 0 {
		return 1, 0
	}
	m := mixtureOf(c.at)
	r := rand.New(rand.NewPCG(opt.Seed, 1))
	cells := make([]cell, len(values))
	asFar := 1
	for range resamples {
		drawn := m.Like(values, r)
		for i, x := range drawn {
			cells[i] = cellOf(x)
		}
		at, _ := climb(cells, c.at, c.lim, 1e-2, 20, nil)
		if low, _ := mixtureOf(at).kolmogorov(timeline.Turnbull(drawn)); low >= ks {
			asFar++
		}
	}
	return float64(asFar) / float64(resamples+1), resamples
}

// mixtureOf is that of components as they are.
func mixtureOf(at []component) Mixture {
	m := make(Mixture, len(at))
	for k, x := range at {
		m[k] = Mode{x.share, time.Duration(math.Round(x.mean)), time.Duration(math.Round(x.spread))}
	}
	return m
}
