package analysis

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ocslab/ocslab/calibration/timing"
	"github.com/ocslab/ocslab/timeline"
)

const (
	resamples  = 500 // of medians, for differences
	confidence = 0.95
)

// random is the source of what is drawn for a stage: its place in canonical order, so that
// what is drawn for one does not depend on which others there are.
func random(seed uint64, stage timeline.Stage, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, purpose<<8|uint64(slices.Index(timeline.Stages(), stage)+1)))
}

// Purposes of random numbers.
const (
	forHalves = iota + 1
	forCounted
	forMedians // and above: one for each condition
)

// halves returns what the medians of a stage in halves of the reconfigurations differ by, see
// [timing.Equals].
func (m *measured) halves(stage timeline.Stage) time.Duration {
	return timing.Equals(m.pools[stage], random(m.seed, stage, forHalves))
}

// resampled returns the medians of a stage in resamples that draw whole reconfigurations.
func (m *measured) resampled(stage timeline.Stage) []timeline.Interval {
	if draws, ok := m.draws[stage]; ok {
		return draws
	}
	draws := resample(m.pools[stage], random(m.seed, stage, forMedians+uint64(m.plan.Number)), 1)[0]
	m.draws[stage] = draws
	return draws
}

// resample draws as many of a pool's reconfigurations as there are, with replacement, again
// and again, and returns what each of its quantiles then is.
func resample(p *timeline.Pool, draw *rand.Rand, quantiles int) [][]timeline.Interval {
	n := len(p.Reconfigurations)
	times := make([]int32, n)
	at := make([]timeline.Interval, quantiles)
	draws := make([][]timeline.Interval, quantiles)
	for range resamples {
		clear(times)
		for range n {
			times[draw.IntN(n)]++
		}
		p.Quantiles(times, at)
		for q := range at {
			draws[q] = append(draws[q], at[q])
		}
	}
	return draws
}

// boundsOf returns the confidence bounds of what resamples gave.
func boundsOf(draws []timeline.Interval) timeline.Interval {
	const tail = (1 - confidence) / 2
	return timeline.Interval{Earliest: timeline.Quantile(draws, tail).Earliest, Latest: timeline.Quantile(draws, 1-tail).Latest}
}

// differences returns how much later the stages come in b than in a.
func differences(a, b *measured) []Difference {
	var list []Difference
	for _, sum := range b.report.Stages {
		if x, y := a.stages[sum.Stage], b.stages[sum.Stage]; x != nil {
			median := shift(a, b, sum.Stage)
			list = append(list, Difference{
				Condition: b.plan.Number, Stage: sum.Stage, Median: median, Resolved: resolved(median, x.Floor, y.Floor),
			})
		}
	}
	return list
}

// shift is the difference of the medians of a stage that both have. Its bounds are
// percentiles of a bootstrap of both, and include what the intervals leave open; with fewer
// than two reconfigurations on one side they are those of all its durations.
func shift(a, b *measured, stage timeline.Stage) timeline.Estimate {
	x, y := a.stages[stage], b.stages[stage]
	var low, high int64
	if len(a.pools[stage].Reconfigurations) < 2 || len(b.pools[stage].Reconfigurations) < 2 {
		low, high = y.Median.LowNS-x.Median.HighNS, y.Median.HighNS-x.Median.LowNS
	} else {
		from, to := a.resampled(stage), b.resampled(stage)
		apart := make([]timeline.Interval, resamples)
		for i := range apart {
			apart[i] = to[i].Sub(from[i])
		}
		bounds := boundsOf(apart)
		low, high = bounds.Earliest, bounds.Latest
	}
	ns := y.Median.NS - x.Median.NS
	return timeline.Estimate{NS: ns, LowNS: min(low, ns), HighNS: max(high, ns)}
}

// resolved reports whether a difference is above chance and above what the set-up shows
// between equals.
func resolved(d timeline.Estimate, floors ...time.Duration) bool {
	return (d.LowNS > 0 || d.HighNS < 0) && max(d.NS, -d.NS) > int64(slices.Max(floors))
}
