package analysis

import (
	"cmp"
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
	missed    []timeline.Expectation
	pools     map[timeline.Stage]*timeline.Pool // for medians
	seed      uint64

	stages map[timeline.Stage]*Stage              // once they are made
	draws  map[timeline.Stage][]timeline.Interval // medians of resamples, once they are drawn
}

// measure gathers what was measured under a condition.
func (s *split) measure(c plan.Condition) *measured {
	marks, expected := s.marks[c.Number], s.expected[c.Number]
	m := &measured{
		plan: c, recs: s.recs[c.Number], seed: s.seed,
		report:    timeline.Summarize(marks, timeline.Options{Seed: s.seed, Expected: expected}),
		durations: byStage(timeline.Durations(marks)),
		missed:    timeline.Missed(marks, expected),
		pools:     map[timeline.Stage]*timeline.Pool{},
		stages:    map[timeline.Stage]*Stage{},
		draws:     map[timeline.Stage][]timeline.Interval{},
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
		Condition: m.plan, Reconfigurations: len(m.recs), Report: m.report, Held: map[string]int{},
		NICs: m.nics(s), Pairs: m.pairs(s),
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
	durations := m.durations[sum.Stage]
	x := &Stage{Summary: sum, Min: durations[0].Interval, Max: durations[0].Interval}
	intervals, mids := make([]timeline.Interval, 0, len(durations)), make([]int64, 0, len(durations))
	for _, d := range durations {
		x.Min = timeline.Interval{Earliest: min(x.Min.Earliest, d.Earliest), Latest: min(x.Min.Latest, d.Latest)}
		x.Max = timeline.Interval{Earliest: max(x.Max.Earliest, d.Earliest), Latest: max(x.Max.Latest, d.Latest)}
		intervals = append(intervals, d.Interval)
		mids = append(mids, d.Mid())
	}
	for _, e := range m.missed {
		if e.Stage == sum.Stage {
			intervals = append(intervals, unseen(s.reconfiguration(e.Reconfiguration)))
		}
	}
	x.Distribution = timeline.Turnbull(intervals)
	slices.Sort(mids)
	x.Box = boxOf(mids)
	x.AA = m.halves(sum.Stage)
	x.Floor = max(x.AA, sum.Resolution)
	x.Drift = m.drift(sum.Stage, s)
	return x
}

// unseen is the duration of what was waited for and did not come.
func unseen(rec *runs.Reconfiguration) timeline.Interval {
	patience := int64(0)
	if rec != nil {
		patience = max(rec.PatienceNS, 0)
	}
	return timeline.Interval{Earliest: patience, Latest: timeline.Never}
}

// boxOf returns the box of sorted values.
func boxOf(sorted []int64) Box {
	b := Box{Q1: quantile(sorted, 0.25), Median: quantile(sorted, 0.5), Q3: quantile(sorted, 0.75)}
	b.Low, b.High = b.Q1, b.Q3
	reach := 1.5 * float64(b.Q3-b.Q1)
	for _, x := range sorted {
		if float64(b.Q1)-float64(x) <= reach {
			b.Low = min(b.Low, x)
			break
		}
	}
	for _, x := range slices.Backward(sorted) {
		if float64(x)-float64(b.Q3) <= reach {
			b.High = max(b.High, x)
			break
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
	return sorted[i] + int64((h-float64(i))*float64(sorted[i+1]-sorted[i]))
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

// outliers returns the worst, and how many there are.
func (m *measured) outliers() (worst []Outlier, count int) {
	for _, sum := range m.report.Stages {
		durations := m.durations[sum.Stage]
		mids := make([]int64, len(durations))
		for i, d := range durations {
			mids[i] = d.Mid()
		}
		width := spread(mids, sum.Median.NS, sum.Resolution)
		for i, d := range durations {
			if score := math.Abs(float64(mids[i])-float64(sum.Median.NS)) / width; score > farOut {
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
