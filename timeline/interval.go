package timeline

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Interval is a closed span of nanoseconds: the true instant, or the true
// duration, is somewhere in it. Earliest <= Latest always holds for intervals made
// by this package; build others with [Point] or [Between]. The zero value is the
// point 0.
type Interval struct {
	Earliest int64 `json:"earliest_ns"`
	Latest   int64 `json:"latest_ns"`
}

// Point returns the interval that holds only ns.
func Point(ns int64) Interval { return Interval{ns, ns} }

// Between returns the interval from the smaller to the larger of a and b.
func Between(a, b int64) Interval { return Interval{min(a, b), max(a, b)} }

// Width is Latest - Earliest.
func (i Interval) Width() time.Duration { return time.Duration(sub(i.Latest, i.Earliest)) }

// Mid is the middle, rounded down.
func (i Interval) Mid() int64 {
	// The unsigned difference is right even where the signed one overflows.
	return i.Earliest + int64((uint64(i.Latest)-uint64(i.Earliest))/2)
}

// Contains reports whether ns lies in the interval, ends included.
func (i Interval) Contains(ns int64) bool { return i.Earliest <= ns && ns <= i.Latest }

// Intersect returns what i and o share. It reports false, with the zero Interval,
// when they share nothing.
func (i Interval) Intersect(o Interval) (Interval, bool) {
	both := Interval{max(i.Earliest, o.Earliest), min(i.Latest, o.Latest)}
	if both.Earliest > both.Latest {
		return Interval{}, false
	}
	return both, true
}

// Hull returns the smallest interval that holds both i and o.
func (i Interval) Hull(o Interval) Interval {
	return Interval{min(i.Earliest, o.Earliest), max(i.Latest, o.Latest)}
}

// Sub returns i - o: every difference of an instant in i and an instant in o.
func (i Interval) Sub(o Interval) Interval {
	return Interval{sub(i.Earliest, o.Latest), sub(i.Latest, o.Earliest)}
}

// Widen moves both ends outwards by d. A negative d counts as 0.
func (i Interval) Widen(d time.Duration) Interval {
	d = max(d, 0)
	return Interval{sub(i.Earliest, int64(d)), add(i.Latest, int64(d))}
}

// Earlier holds the first of two instants, whichever that was.
func Earlier(a, b Interval) Interval {
	return Interval{min(a.Earliest, b.Earliest), min(a.Latest, b.Latest)}
}

// Later holds the last of two instants, whichever that was.
func Later(a, b Interval) Interval {
	return Interval{max(a.Earliest, b.Earliest), max(a.Latest, b.Latest)}
}

// Before reports whether i is certainly before o: Latest < o.Earliest.
func (i Interval) Before(o Interval) bool { return i.Latest < o.Earliest }

// Shift brings an interval over from another host's axis. The offset ns is that
// host's 0 on this axis, known to ±bound; a negative bound counts as 0.
func (i Interval) Shift(ns int64, bound time.Duration) Interval {
	return Interval{add(i.Earliest, ns), add(i.Latest, ns)}.Widen(bound)
}

// String shows the middle and half the width in one unit, such as
// "203.11 ms ±0.42": the half width has two significant digits, rounded up, so that no
// instant of the interval
// lies outside what is shown. A point has no "±" and all its digits.
func (i Interval) String() string {
	const far = 1 << 62
	if i.Earliest < -far || i.Latest > far {
		return fmt.Sprintf("%d..%d ns", i.Earliest, i.Latest) // rounding could overflow
	}
	// step is the worth of the last digit shown.
	step := int64(1)
	for half := (i.Latest - i.Earliest + 1) / 2; half/step >= 100; {
		step *= 10
	}
	mid := floorDiv(i.Mid()+step/2, step) * step
	half := max(i.Latest-mid, mid-i.Earliest)
	half = (half + step - 1) / step * step

	unit, name := unitOf(max(mid, -mid, half))
	if i.Earliest == i.Latest {
		return decimal(mid, unit, 1) + " " + name
	}
	return decimal(mid, unit, step) + " " + name + " ±" + decimal(half, unit, step)
}

// unitOf returns the largest unit that is not larger than ns.
func unitOf(ns int64) (unit int64, name string) {
	unit, name = 1, "ns"
	for _, u := range []struct {
		ns   int64
		name string
	}{{1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}} {
		if ns >= u.ns {
			unit, name = u.ns, u.name
		}
	}
	return unit, name
}

// decimal writes ns in the given unit with as many decimals as step needs. All
// three are exact: unit and step are powers of ten.
func decimal(ns, unit, step int64) string {
	s := strconv.FormatInt(ns/unit, 10)
	if ns < 0 && ns > -unit {
		s = "-0"
	}
	rest := max(ns%unit, -(ns % unit))
	if step >= unit {
		return s
	}
	s += "."
	for unit > step {
		unit /= 10
		s += string(rune('0' + rest/unit))
		rest %= unit
	}
	return s
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// add and sub saturate. At the end of int64 an interval then still holds every
// value that can be written down.
func add(a, b int64) int64 {
	s := a + b
	switch {
	case b > 0 && s < a:
		return math.MaxInt64
	case b < 0 && s > a:
		return math.MinInt64
	}
	return s
}

func sub(a, b int64) int64 {
	d := a - b
	switch {
	case b < 0 && d < a:
		return math.MaxInt64
	case b > 0 && d > a:
		return math.MinInt64
	}
	return d
}
