package analysis

import (
	"math"
	"slices"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// mostDrifting is how many values a robust line is laid through at most: it looks at all
// pairs. Of more reconfigurations, medians of as many stretches are taken.
const mostDrifting = 200

// drift returns how much later a stage comes in the last reconfiguration than in the first:
// the median slope of all pairs of reconfigurations, in the order in which they were done
// (Theil and Sen), with the confidence bounds of Sen (1968). It is 0 where there are fewer
// than two; so few that there are no such bounds have all slopes and 0 between them.
func (m *measured) drift(stage timeline.Stage, s *split) timeline.Estimate {
	type done struct {
		rec *runs.Reconfiguration
		ns  int64
	}
	var list []done
	for _, x := range m.medians(stage) {
		if rec := s.run.Reconfiguration(x.reconfiguration); rec != nil {
			list = append(list, done{rec, x.ns})
		}
	}
	slices.SortFunc(list, func(a, b done) int { return byTime(a.rec, b.rec) })
	stretches := min(len(list), mostDrifting)
	values := make([]int64, stretches)
	for i := range values {
		var part []int64
		for _, x := range list[i*len(list)/stretches : (i+1)*len(list)/stretches] {
			part = append(part, x.ns)
		}
		slices.Sort(part)
		values[i] = quantile(part, 0.5)
	}
	return theilSen(values)
}

// theilSen returns how much values grow from the first to the last.
func theilSen(values []int64) timeline.Estimate {
	n := len(values)
	var slopes []float64
	for i := range values {
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (float64(values[j])-float64(values[i]))/float64(j-i))
		}
	}
	if len(slopes) == 0 {
		return timeline.Estimate{}
	}
	slices.Sort(slopes)
	pairs := float64(len(slopes))
	// Of how many more pairs grow than shrink, where nothing drifts, this is 95 %.
	chance := 1.959964 * math.Sqrt(float64(n)*float64(n-1)*float64(2*n+5)/18)
	at := func(i float64) int64 {
		return whole(slopes[int(min(max(i, 0), pairs-1))] * float64(n-1))
	}
	e := timeline.Estimate{
		LowNS:  at(math.Floor((pairs-chance)/2) - 1),
		HighNS: at(math.Ceil((pairs + chance) / 2)),
	}
	middle := (slopes[(len(slopes)-1)/2] + slopes[len(slopes)/2]) / 2
	e.NS = min(max(whole(middle*float64(n-1)), e.LowNS), e.HighNS)
	if (pairs-chance)/2 < 1 {
		e.LowNS, e.HighNS = min(e.LowNS, 0), max(e.HighNS, 0)
	}
	return e
}

// whole is ns rounded, or the nearest that 64 bits have.
func whole(ns float64) int64 {
	switch ns = math.Round(ns); {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	}
	return int64(ns)
}
