package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/timeline"
)

// Numbers have no digit further than they are known: of what they may be off by, two digits
// count.

// grain is the worth of the last digit of what is known to ±half, and at least that of the
// fourth digit of ns.
func grain(ns, half int64) int64 {
	step := int64(1)
	for half/step >= 100 || half == 0 && magnitude(ns)/step >= 10_000 {
		step *= 10
	}
	return step
}

func magnitude(ns int64) int64 { return max(ns, -max(ns, -math.MaxInt64)) }

// rounding is where a number goes that lies between two that can be written.
type rounding int

const (
	down rounding = iota - 1
	near
	up
)

// in writes ns in a unit, rounded to multiples of step.
func in(ns, worth, step int64, way rounding) string {
	const far = math.MaxInt64 / 4
	if ns > far || ns < -far {
		return "∞"
	}
	rest := ((ns % step) + step) % step
	ns -= rest
	if way == up && rest > 0 || way == near && rest >= step-rest && rest > 0 {
		ns += step
	}
	decimals := 0
	for w := worth; w > step && decimals < 9; w /= 10 {
		decimals++
	}
	s := strconv.FormatFloat(float64(ns)/float64(worth), 'f', decimals, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return s
}

// value is a statistic without its bounds, to as many digits as they allow: "203.1 ms".
// Resolution is that of what it was made from.
func value(e timeline.Estimate, resolution time.Duration) string {
	half := uncertainty(e, resolution)
	worth, name := chart.UnitOf(max(magnitude(e.NS), half))
	return in(e.NS, worth, grain(e.NS, half), near) + " " + name
}

// bounds are those of a statistic, rounded outwards, in its unit: "[202.9, 203.6]".
func bounds(e timeline.Estimate, resolution time.Duration) string {
	half := uncertainty(e, resolution)
	worth, _ := chart.UnitOf(max(magnitude(e.NS), half))
	step := grain(e.NS, half)
	return "[" + in(e.LowNS, worth, step, down) + ", " + in(e.HighNS, worth, step, up) + "]"
}

func uncertainty(e timeline.Estimate, resolution time.Duration) int64 {
	half := int64(resolution) / 2
	if low := e.NS - e.LowNS; low > half {
		half = low
	}
	if high := e.HighNS - e.NS; high > half && e.HighNS < timeline.Never {
		half = high
	}
	return half
}

// estimate is a statistic with its bounds: "203.1 ms [202.9, 203.6]".
func estimate(e timeline.Estimate, resolution time.Duration) string {
	return value(e, resolution) + " " + bounds(e, resolution)
}

// interval is where something lies: "203.1 ms ±0.4", or "after 30 s".
func interval(i timeline.Interval) string {
	if i.Latest >= timeline.Never {
		return "after " + exact(time.Duration(i.Earliest))
	}
	return i.String()
}

// exact writes a time that somebody has chosen, with all its digits.
func exact(d time.Duration) string {
	worth, name := chart.UnitOf(magnitude(int64(d)))
	s := in(int64(d), worth, 1, near)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s + " " + name
}

// about writes a time to three digits.
func about(d time.Duration) string { return rounded(d, 3, near) }

// most writes a time to two digits, rounded up: what something does not exceed.
func most(d time.Duration) string { return rounded(d, 2, up) }

func rounded(d time.Duration, digits int, way rounding) string {
	ns, step := int64(d), int64(1)
	for limit := int64(math.Pow10(digits)); magnitude(ns)/step >= limit; {
		step *= 10
	}
	worth, name := chart.UnitOf(magnitude(ns))
	return in(ns, worth, step, way) + " " + name
}

// percent writes a part of 1.
func percent(part float64) string {
	switch {
	case math.IsNaN(part) || math.IsInf(part, 0):
		return "–"
	case part != 0 && math.Abs(part) < 0.001:
		return "< 0.1 %"
	case math.Abs(part) < 0.1 && part != 0:
		return strconv.FormatFloat(100*part, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(100*part, 'f', 0, 64) + " %"
}

// bound writes a number that a limit is about, in the limit's unit.
func bound(of plan.Quantity, v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.Abs(v) >= timeline.Never/4:
		return "∞"
	}
	switch of {
	case plan.Missing, plan.Count:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case plan.Share:
		return percent(v)
	}
	return about(time.Duration(v))
}

// decimal writes a plain number.
func decimal(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// nanoseconds is a number of them as an integer, at the ends of the range if it is beyond.
func nanoseconds(v float64) int64 {
	switch {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= -math.MaxInt64:
		return -math.MaxInt64
	}
	return int64(v)
}
