package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// measured is what was measured under one condition, and what several figures need of it.
type measured struct {
	plan      plan.Condition
	recs      []runs.Reconfiguration
	report    timeline.Report
	durations map[timeline.Stage][]timeline.Duration
	pools     map[timeline.Stage]*timeline.Pool      // for medians
	waited    map[timeline.Stage][]timeline.Duration // in vain
	seed      uint64

	stages map[timeline.Stage]*Stage              // once they are made
	draws  map[timeline.Stage][]timeline.Interval // medians of resamples, once they are drawn
}

// measure gathers what was measured under a condition.
func (s *split) measure(c plan.Condition) *measured {
	marks, expected := s.marks[c.Number], s.expected[c.Number]
	if expected == nil {
		expected = []timeline.Expectation{} // a run knows what it expects: nothing, then
	}
	m := &measured{
		plan: c, recs: s.recs[c.Number], seed: s.seed,
		report:    timeline.Summarize(marks, timeline.Options{Seed: s.seed, Expected: expected}),
		durations: byStage(timeline.Durations(marks)),
		waited:    map[timeline.Stage][]timeline.Duration{},
		pools:     map[timeline.Stage]*timeline.Pool{},
		stages:    map[timeline.Stage]*Stage{},
		draws:     map[timeline.Stage][]timeline.Interval{},
	}
	for _, e := range m.report.Missed {
		if d, ok := s.waited(e); ok {
			m.waited[e.Stage] = append(m.waited[e.Stage], d)
		}
	}
	for _, sum := range m.report.Stages {
		m.pools[sum.Stage] = timeline.NewPool(m.durations[sum.Stage], 0.5)
	}
	for _, sum := range m.report.Stages {
		m.stages[sum.Stage] = m.stage(sum, s)
	}
	return m
}

// condition says what was found.
func (m *measured) condition(s *split) Condition {
	c := Condition{
		Condition: m.plan, Reconfigurations: len(m.recs), Report: m.report, Held: map[string]int{}, Waited: map[timeline.Stage]int{},
		NICs: m.nics(s), Pairs: m.pairs(s),
	}
	for stage, list := range m.waited {
		c.Waited[stage] = len(list)
	}
	points := map[int]bool{}
	for _, rec := range m.recs {
		points[rec.Point] = true
		for _, nic := range rec.Held {
			c.Held[nic]++
		}
	}
	c.Points = len(points)
	for _, sum := range m.report.Stages {
		c.Stages = append(c.Stages, *m.stages[sum.Stage])
	}
	c.Outliers, c.OutlierCount = m.outliers()
	c.Typical = m.typical()
	c.Slowest = m.slowest()
	return c
}

// stage says more of one stage.
func (m *measured) stage(sum timeline.Summary, s *split) *Stage {
	durations, pool := m.durations[sum.Stage], m.pools[sum.Stage]
	x := &Stage{
		Summary: sum, Min: pool.Quantile(0), Max: pool.Quantile(1), Box: boxOf(pool, durations),
		Counted: m.counted(sum),
	}
	intervals := make([]timeline.Interval, 0, len(durations)+len(m.waited[sum.Stage]))
	for _, list := range [][]timeline.Duration{durations, m.waited[sum.Stage]} {
		for _, d := range list {
			intervals = append(intervals, d.Interval)
		}
	}
	x.Distribution = timeline.Turnbull(intervals)
	x.AA = m.halves(sum.Stage)
	x.Calibrated = s.calibrated(m.plan.Number, sum.Stage, len(pool.Reconfigurations))
	x.Floor = max(x.AA, sum.Resolution, x.Calibrated)
	x.Drift = m.drift(sum.Stage, s)
	return x
}

// calibrated is the floor of a stage by the timing calibrations of the set-ups that a condition
// was measured on: the largest, where there were several.
func (s *split) calibrated(condition int, stage timeline.Stage, reconfigurations int) time.Duration {
	var floor time.Duration
	for _, set := range s.run.Setups {
		c, ok := set.Timing()
		if !ok || !slices.Contains(set.Conditions, condition) {
			continue
		}
		for _, f := range c.Floors {
			if f.Stage == stage {
				floor = max(floor, f.At(reconfigurations))
			}
		}
	}
	return floor
}

// waited returns the duration of what was waited for in vain. It reports false if it may
// have come all the same, and nobody can tell when: between two readings, with too few of
// them, or out of sight. That is missing, but not late.
func (s *split) waited(e timeline.Expectation) (d timeline.Duration, ok bool) {
	d = timeline.Duration{Reconfiguration: e.Reconfiguration, Stage: e.Stage, Subject: e.Subject, Interval: timeline.Interval{Latest: timeline.Never}}
	rec := s.run.Reconfiguration(e.Reconfiguration)
	if rec == nil {
		return d, true
	}
	for _, why := range []string{timeline.NoDark.String(), timeline.TooFewSamples.String(), timeline.TooBrief, timeline.OutOfSight} {
		if slices.Contains(rec.Unresolved, fmt.Sprintf("%s: %s: %s", e.Subject, e.Stage, why)) {
			return d, false
		}
	}
	d.Earliest = max(rec.PatienceNS, 0)
	return d, true
}

// counted returns estimates in which what was waited for in vain counts as later than that.
func (m *measured) counted(sum timeline.Summary) map[plan.Quantity]timeline.Estimate {
	quantities, quantiles := []plan.Quantity{plan.P50, plan.P95, plan.P99}, []float64{0.5, 0.95, 0.99}
	estimates, pool := []timeline.Estimate{sum.Median, sum.P95, sum.P99}, m.pools[sum.Stage]
	if vain := m.waited[sum.Stage]; len(vain) > 0 {
		pool = timeline.NewPool(slices.Concat(m.durations[sum.Stage], vain), quantiles...)
		for i, draws := range resample(pool, random(m.seed, sum.Stage, forCounted), len(quantiles)) {
			estimates[i] = estimateOf(pool.Quantile(quantiles[i]), boundsOf(draws))
		}
	}
	counted := map[plan.Quantity]timeline.Estimate{}
	n := pool.Count()
	ranked := func(rank int) timeline.Interval { return pool.Quantile(float64(rank) / float64(n-1)) }
	for i, of := range quantities {
		low, high := ranks(n, quantiles[i])
		estimates[i].LowNS = min(estimates[i].LowNS, ranked(low).Earliest)
		estimates[i].HighNS = max(estimates[i].HighNS, ranked(high).Latest)
		counted[of] = estimates[i]
	}
	latest := pool.Quantile(1)
	counted[plan.Max] = estimateOf(latest, latest)
	return counted
}

// estimateOf is a statistic that lies in an interval, with its bounds.
func estimateOf(at, bounds timeline.Interval) timeline.Estimate {
	ns := at.Mid()
	if at.Latest == timeline.Never {
		ns = at.Earliest
	}
	bounds = bounds.Hull(at)
	return timeline.Estimate{NS: ns, LowNS: bounds.Earliest, HighNS: bounds.Latest}
}

// ranks returns the places of the ordered values, of n that are independent of each other,
// between which their quantile q lies with a confidence of 95 %, if there are enough.
func ranks(n int, q float64) (low, high int) {
	at, reach := float64(n)*q, 1.959964*math.Sqrt(float64(n)*q*(1-q)) // of a binomial distribution
	return max(int(math.Floor(at-reach))-1, 0), min(int(math.Ceil(at+reach)), n-1)
}

// boxOf returns the box of durations, which are those of the pool.
func boxOf(pool *timeline.Pool, durations []timeline.Duration) Box {
	b := Box{Q1: pool.Quantile(0.25).Mid(), Median: pool.Quantile(0.5).Mid(), Q3: pool.Quantile(0.75).Mid()}
	b.Low, b.High = b.Q1, b.Q3
	reach := 1.5 * float64(b.Q3-b.Q1)
	for i := range durations {
		x := durations[i].Mid()
		if float64(b.Q1)-float64(x) <= reach {
			b.Low = min(b.Low, x)
		}
		if float64(x)-float64(b.Q3) <= reach {
			b.High = max(b.High, x)
		}
	}
	return b
}

// quantile is that of sorted values, of which there is at least one: as timeline.Quantile
// has it, rounded down.
func quantile(sorted []int64, q float64) int64 {
	h := q * float64(len(sorted)-1)
	i := int(h)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	apart := uint64(sorted[i+1]) - uint64(sorted[i]) // which may be more than an int64 has
	return sorted[i] + int64(uint64((h-float64(i))*float64(apart)))
}

// spread is a robust standard deviation of values around their median: 1.4826 times the
// median absolute deviation, or the resolution where that is larger.
func spread(values []int64, median int64, resolution time.Duration) float64 {
	deviations := make([]int64, len(values))
	for i, x := range values {
		deviations[i] = max(x-median, median-x)
	}
	slices.Sort(deviations)
	return max(1.4826*float64(quantile(deviations, 0.5)), float64(resolution), 1)
}

const (
	farOut       = 5  // score of an outlier, at least
	mostOutliers = 50 // that are kept, of a condition
)

// spreads are the spread of a pool to either side of its median, and not less than that to
// both. Where more than a tenth of all lies far out on one side, that is no accident but
// another kind of durations, as of links that come up in one of two times: the spread there
// is that of a normal distribution of which a tenth is as far.
func spreads(pool *timeline.Pool, both float64) (below, above float64) {
	const tenth = 1.2816 // standard deviations
	last := pool.Count() - 1
	far := float64(last*9/10) / float64(max(last, 1)) // of few, the last but one
	off := func(q float64) float64 {
		return math.Abs(float64(pool.Quantile(q).Mid())-float64(pool.Quantile(0.5).Mid())) / tenth
	}
	return max(both, off(1-far)), max(both, off(far))
}

// outliers returns the worst, and how many there are.
func (m *measured) outliers() (worst []Outlier, count int) {
	for _, sum := range m.report.Stages {
		durations := m.durations[sum.Stage]
		mids := make([]int64, len(durations))
		for i, d := range durations {
			mids[i] = d.Mid()
		}
		below, above := spreads(m.pools[sum.Stage], spread(mids, sum.Median.NS, sum.Resolution))
		for i, d := range durations {
			off := float64(mids[i]) - float64(sum.Median.NS)
			if score := max(off/above, -off/below); score > farOut {
				worst = append(worst, Outlier{d.Reconfiguration, d.Stage, d.Subject, d.Interval, score})
			}
		}
	}
	slices.SortStableFunc(worst, func(a, b Outlier) int { return cmp.Compare(b.Score, a.Score) })
	return slices.Clip(worst[:min(len(worst), mostOutliers)]), len(worst)
}

// typical returns the reconfiguration whose stages are nearest to the medians of all, in
// units of their spread; one that has all stages before one that has not, and the first of
// equals. It is 0 when there is none.
func (m *measured) typical() int {
	type distance struct {
		stages int
		sum    float64
	}
	far := map[int]distance{}
	for _, sum := range m.report.Stages {
		medians := m.medians(sum.Stage)
		values := make([]int64, len(medians))
		for i, x := range medians {
			values[i] = x.ns
		}
		width := spread(values, sum.Median.NS, sum.Resolution)
		for _, x := range medians {
			d := far[x.reconfiguration]
			d.stages++
			d.sum += math.Abs(float64(x.ns)-float64(sum.Median.NS)) / width
			far[x.reconfiguration] = d
		}
	}
	best := 0
	for _, rec := range m.recs {
		d, ok := far[rec.Number]
		if ok && (best == 0 || d.stages > far[best].stages || d.stages == far[best].stages && d.sum < far[best].sum) {
			best = rec.Number
		}
	}
	return best
}

// slowest returns the reconfiguration in which the last stage was latest; 0: there is none.
func (m *measured) slowest() int {
	if len(m.report.Stages) == 0 {
		return 0
	}
	last := m.report.Stages[len(m.report.Stages)-1].Stage
	slowest := slices.MaxFunc(m.durations[last], func(a, b timeline.Duration) int {
		return cmp.Or(cmp.Compare(a.Mid(), b.Mid()), cmp.Compare(b.Reconfiguration, a.Reconfiguration))
	})
	return slowest.Reconfiguration
}

// median is that of one stage in one reconfiguration.
type median struct {
	reconfiguration int
	ns              int64
}

// medians returns those of a stage, in order of reconfigurations.
func (m *measured) medians(stage timeline.Stage) []median {
	var list []median
	var mids []int64
	durations := m.durations[stage]
	for begin := 0; begin < len(durations); {
		end := begin
		mids = mids[:0]
		for ; end < len(durations) && durations[end].Reconfiguration == durations[begin].Reconfiguration; end++ {
			mids = append(mids, durations[end].Mid())
		}
		slices.Sort(mids)
		list = append(list, median{durations[begin].Reconfiguration, quantile(mids, 0.5)})
		begin = end
	}
	return list
}
