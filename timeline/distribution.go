package timeline

import "math"

// Never is the Latest of an interval that holds what has not come: it may come at any
// time later than Earliest, or not at all.
const Never = math.MaxInt64

// Distribution is the distribution of durations each of which is known to lie in an
// interval, by [Turnbull].
type Distribution struct {
	Steps []Step // in order of time, not overlapping
	Count int    // durations it was made from
}

// Step says that a part of all durations lies in an interval; where in it, nobody knows. Of
// what never came, the interval ends at [Never].
type Step struct {
	Interval
	Mass float64 // above 0; all add up to 1
}

// rounding is how much sums of masses may be off.
const rounding = 1e-9

// Quantile returns the interval in which the q-quantile lies: each time before and at
// which there is a part q of the durations, and after and at which the rest, wherever in
// its interval each step lies. It ends at [Never] when so many never came. A q outside
// 0..1 counts as the nearer of the two, NaN as 0. Of no durations the result is the zero
// Interval.
func (d Distribution) Quantile(q float64) Interval {
	if len(d.Steps) == 0 {
		return Interval{}
	}
	if !(q > 0) { // also for NaN
		q = 0
	}
	q = min(q, 1)
	last := len(d.Steps) - 1
	sum, i := d.Steps[0].Mass, 0
	for i < last && sum < q-rounding {
		i++
		sum += d.Steps[i].Mass
	}
	at := d.Steps[i].Interval
	if i < last && q > 0 && sum <= q+rounding {
		at = at.Hull(d.Steps[i+1].Interval)
	}
	return at
}

// CDF returns between what the part of durations of at most ns nanoseconds lies: low
// counts the steps that have certainly ended by then, high also those that have begun.
func (d Distribution) CDF(ns int64) (low, high float64) {
	for _, s := range d.Steps {
		if s.Earliest > ns {
			break
		}
		high += s.Mass
		if s.Latest <= ns && s.Latest != Never {
			low += s.Mass
		}
	}
	return min(low, 1), min(high, 1)
}
