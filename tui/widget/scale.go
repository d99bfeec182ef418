package widget

import (
	"math"
	"strconv"
	"time"
)

// A scale is an axis of time: it maps nanoseconds to a part of its length, from 0 to 1, and
// has marks at round values. It is linear, or logarithmic where values are of very different
// sizes.
type scale struct {
	low, high int64 // its ends; low < high
	log       bool
}

// logFrom is how many times the smallest value the largest is, from where on a scale is
// logarithmic.
const logFrom = 1000

// outermost is beyond all durations that are drawn, some three years; see [clamp].
const outermost = int64(1e17)

func clamp(ns int64) int64 { return max(-outermost, min(ns, outermost)) }

// newScale returns a scale for values from low to high.
func newScale(low, high int64) scale {
	low, high = clamp(min(low, high)), clamp(max(low, high))
	if low > 0 && high/low >= logFrom {
		return scale{low, high, true}
	}
	// What differs by less than a ten-thousandth is shown as that: labels have to be legible.
	least := max(1, max(absolute(low), absolute(high))/10000)
	if high-low < least {
		low = (low+high)/2 - least/2
		high = low + least
	}
	return scale{low: low, high: high}
}

func absolute(ns int64) int64 { return max(ns, -ns) }

// at is where a value is, from 0 to 1 inside of the scale.
func (s scale) at(ns int64) float64 {
	if s.log {
		low := math.Log(float64(s.low))
		return (math.Log(float64(max(ns, 1))) - low) / (math.Log(float64(s.high)) - low)
	}
	return (float64(ns) - float64(s.low)) / (float64(s.high) - float64(s.low))
}

// steps are the round values from the last at or below the low end to the first at or above
// the high one: at most n+1 of them, but two in any case, and three where 0 lies between.
func (s scale) steps(n int) []int64 {
	n = max(n, 2)
	if s.log {
		return s.logSteps(n)
	}
	step := niceStep(float64(s.high-s.low) / float64(n))
	for (ceilTo(s.high, step)-floorTo(s.low, step))/step > int64(n) {
		step = niceStep(float64(step) * 1.01)
	}
	var list []int64
	for x := floorTo(s.low, step); ; x += step {
		list = append(list, x)
		if x >= s.high {
			return list
		}
	}
}

// marks are the round values on the scale, some n of them. Where there are none to be had, the
// scale becomes longer, so that it has two.
func (s *scale) marks(n int) []int64 {
	var best []int64
	for k := n; k <= 2*n && len(best) < 3; k++ {
		var list []int64
		for _, x := range s.steps(k) {
			if x >= s.low && x <= s.high {
				list = append(list, x)
			}
		}
		if len(list) > len(best) {
			best = list
		}
	}
	if len(best) < 2 {
		best = s.steps(n)
		s.low, s.high = best[0], best[len(best)-1]
	}
	return best
}

// logSteps are 1, 2 and 5 times powers of ten, or only the powers, or only some of these.
func (s scale) logSteps(n int) []int64 {
	for _, digits := range [][]int64{{1, 2, 5}, {1, 3}, {1}} {
		if list := s.powers(10, digits); len(list) <= n+1 {
			return list
		}
	}
	every := int64(100)
	for ; every < outermost && len(s.powers(every, []int64{1})) > n+1; every *= 10 {
	}
	return s.powers(every, []int64{1})
}

// powers are the digits times powers of a base, from the last at or below the low end to the
// first at or above the high one.
func (s scale) powers(base int64, digits []int64) []int64 {
	var list []int64
	for power := int64(1); ; power *= base {
		for _, d := range digits {
			x := power * d
			if x <= s.low {
				list = list[:0]
			}
			list = append(list, x)
			if x >= s.high {
				return list
			}
		}
		if power > math.MaxInt64/10/base {
			return append(list, math.MaxInt64)
		}
	}
}

// niceStep is the least of 1, 2 and 5 times powers of ten that is not below x, which is at
// most 1e18.
func niceStep(x float64) int64 {
	for power := int64(1); ; power *= 10 {
		for _, d := range []int64{1, 2, 5} {
			if float64(power*d) >= x {
				return power * d
			}
		}
	}
}

func floorTo(ns, step int64) int64 {
	x := ns / step * step
	if x > ns {
		x -= step
	}
	return x
}

func ceilTo(ns, step int64) int64 { return -floorTo(-ns, step) }

// unitOf is the unit in which values up to the given size are written, in nanoseconds, and
// its name.
func unitOf(ns int64) (int64, string) {
	switch ns = absolute(ns); {
	case ns >= int64(time.Second):
		return int64(time.Second), "s"
	case ns >= int64(time.Millisecond):
		return int64(time.Millisecond), "ms"
	case ns >= int64(time.Microsecond):
		return int64(time.Microsecond), "µs"
	}
	return 1, "ns"
}

// inUnit writes a value in a unit, with the digits that a step of the axis needs.
func inUnit(ns, unit, step int64) string {
	digits := 0
	for u := unit; u > 1 && step%u != 0; u /= 10 {
		digits++
	}
	return strconv.FormatFloat(float64(ns)/float64(unit), 'f', digits, 64)
}

// labels writes the steps of a scale. All of a linear one are in the same unit, which is
// returned; of a logarithmic one each has its own, and unit is "".
func (s scale) labels(steps []int64) (texts []string, unit string) {
	texts = make([]string, len(steps))
	if s.log {
		for i, x := range steps {
			texts[i] = Time(x)
		}
		return texts, ""
	}
	most := int64(0)
	for _, x := range steps {
		most = max(most, absolute(x))
	}
	u, name := unitOf(most)
	for i, x := range steps {
		texts[i] = inUnit(x, u, steps[1]-steps[0])
	}
	return texts, name
}

// Time writes a time in nanoseconds with three digits or, of whole units, four, in the unit
// that suits it: "203 ms", "1.25 s", "0 s", "-3.1 µs".
func Time(ns int64) string {
	if ns == 0 {
		return "0 s"
	}
	u, name := unitOf(ns)
	v := float64(ns) / float64(u)
	digits := 2
	switch size := math.Abs(v); {
	case size >= 99.95:
		digits = 0
	case size >= 9.995:
		digits = 1
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 { // "20.0 ms" says no more than "20 ms" where that is exact
		if short := strconv.FormatFloat(v, 'f', -1, 64); len(short) < len(text) {
			text = short
		}
	}
	return text + " " + name
}
