package timeline

import (
	"math"
	"math/bits"
	"slices"
)

// Quantile returns an interval that holds the q-quantile of the true values, when
// each of xs holds one of them: from the quantile of the lower ends, rounded down, to
// that of the upper ends, rounded up. Quantiles interpolate linearly between order
// statistics (type 7 of Hyndman and Fan 1996, the default of R and NumPy). A q outside
// 0..1 counts as the nearer of the two, NaN as 0. Of no values at all the result is
// the zero Interval, so look at len(xs) first. What ends at [Never] is later than all that
// does not, by any time: a quantile between the two ends at Never.
//
// Of few values an upper quantile says little: with fewer than 20 the 0.95-quantile,
// and with fewer than 100 the 0.99-quantile, lies between the two largest.
func Quantile(xs []Interval, q float64) Interval {
	if len(xs) == 0 {
		return Interval{}
	}
	lows, highs := make([]int64, len(xs)), make([]int64, len(xs))
	for i, x := range xs {
		lows[i], highs[i] = x.Earliest, x.Latest
	}
	slices.Sort(lows)
	slices.Sort(highs)
	p := positionOf(len(xs), q)
	low, _ := p.of(lows)
	_, high := p.of(highs)
	return Interval{low, high}
}

// quantileOf sorts xs and returns their q-quantile, rounded down and up; there is at
// least one.
func quantileOf(xs []int64, q float64) Interval {
	slices.Sort(xs)
	floor, ceil := positionOf(len(xs), q).of(xs)
	return Interval{floor, ceil}
}

// position is where a quantile lies among n ordered values: after the value with
// index at, by part/2^63 of the way to the next. It is fixed-point so that rounding
// down and up are exact, and the result encloses whatever the magnitude.
type position struct {
	at, next int
	part     uint64
}

func positionOf(n int, q float64) position {
	if !(q > 0) { // also for NaN
		q = 0
	}
	h := float64(n-1) * min(q, 1)
	// 0.07*100 is a little more than 7 in floating point; that little would add 1 ns.
	if whole := math.Round(h); math.Abs(h-whole) < 1e-9 {
		h = whole
	}
	whole, part := math.Modf(h)
	at := int(whole)
	return position{at, min(at+1, n-1), uint64(part * (1 << 63))}
}

func (p position) of(sorted []int64) (floor, ceil int64) {
	return p.between(sorted[p.at], sorted[p.next])
}

// between needs a <= b.
func (p position) between(a, b int64) (floor, ceil int64) {
	hi, lo := bits.Mul64(uint64(b)-uint64(a), p.part)
	floor = a + int64(hi<<1|lo>>63)
	switch {
	case b == Never && p.part > 0:
		return floor, Never
	case lo<<1 != 0:
		return floor, floor + 1
	}
	return floor, floor
}
