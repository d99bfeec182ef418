package timing

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

const (
	splits     = 200 // of halves
	confidence = 0.95
)

// Equals divides the reconfigurations of a pool at random in two halves, again and again, and
// returns what the medians of both differ by in 95 % of cases. The median has to be the
// first quantile that the pool was made for, and the only one. It is 0 where there are fewer than two
// reconfigurations.
func Equals(p *timeline.Pool, draw *rand.Rand) time.Duration {
	n := len(p.Reconfigurations)
	if n < 2 {
		return 0
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	one, other := make([]int32, n), make([]int32, n)
	var at [1]timeline.Interval
	apart := make([]int64, splits)
	for i := range apart {
		clear(one)
		for j := range other {
			other[j] = 1
		}
		for j := range n / 2 { // the first steps of a shuffle
			k := j + draw.IntN(n-j)
			order[j], order[k] = order[k], order[j]
			one[order[j]], other[order[j]] = 1, 0
		}
		p.Quantiles(one, at[:])
		first := at[0].Mid()
		p.Quantiles(other, at[:])
		apart[i] = max(first-at[0].Mid(), at[0].Mid()-first)
	}
	slices.Sort(apart)
	return time.Duration(quantile(apart, confidence))
}

// quantile is that of sorted values, of which there is at least one: as timeline.Quantile
// has it, rounded down.
func quantile(sorted []int64, q float64) int64 {
	xs := make([]timeline.Interval, len(sorted))
	for i, x := range sorted {
		xs[i] = timeline.Point(x)
	}
	return timeline.Quantile(xs, q).Earliest
}
