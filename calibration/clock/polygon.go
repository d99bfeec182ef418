package clock

import (
	"math"
	"time"
)

// apart is by how much clocks whose rates differ by drift run apart in d, rounded up.
func apart(drift float64, d time.Duration) time.Duration {
	ns := math.Ceil(drift * float64(d))
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(ns, 0))
}

// line is a clock that is ahead by offset + rate·s after s seconds. Both are against a
// reference, so that float64 holds them to far below a nanosecond.
type line struct {
	rate   float64 // ns per second, which is parts per billion
	offset float64 // ns
}

func (l line) at(s float64) float64 { return l.offset + l.rate*s }

// limit is a point that lines must pass above, or below.
type limit struct {
	s, ns float64
	below bool // the line passes below it
}

// over is by how much the line is on the wrong side.
func (l limit) over(x line) float64 {
	if l.below {
		return x.at(l.s) - l.ns
	}
	return l.ns - x.at(l.s)
}

// polygon is a convex set of lines: those of its corners and all between. None is the empty
// set.
type polygon []line

// cut returns the lines of p that keep the limit (Sutherland and Hodgman, with one edge).
func (p polygon) cut(l limit) polygon {
	inside := true
	for _, x := range p {
		if l.over(x) > 0 {
			inside = false
			break
		}
	}
	if inside {
		return p
	}
	var q polygon
	for i, x := range p {
		y := p[(i+1)%len(p)]
		dx, dy := l.over(x), l.over(y)
		if dx <= 0 {
			q = append(q, x)
		}
		if dx < 0 && dy > 0 || dx > 0 && dy < 0 {
			f := dx / (dx - dy)
			q = append(q, line{x.rate + f*(y.rate-x.rate), x.offset + f*(y.offset-x.offset)})
		}
	}
	return q
}

// rates returns the least and the greatest rate.
func (p polygon) rates() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, x := range p {
		low, high = min(low, x.rate), max(high, x.rate)
	}
	return low, high
}

// at returns between what the lines are after s seconds.
func (p polygon) at(s float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, x := range p {
		low, high = min(low, x.at(s)), max(high, x.at(s))
	}
	return low, high
}

// offsets returns between what the offsets of the lines with a rate are, which is one that
// some line has.
func (p polygon) offsets(rate float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i, x := range p {
		y := p[(i+1)%len(p)]
		if x.rate > y.rate {
			x, y = y, x
		}
		if rate < x.rate || rate > y.rate {
			continue
		}
		at := [2]float64{x.offset, y.offset}
		if y.rate > x.rate {
			at[0] += (rate - x.rate) / (y.rate - x.rate) * (y.offset - x.offset)
			at[1] = at[0]
		}
		low, high = min(low, at[0], at[1]), max(high, at[0], at[1])
	}
	return low, high
}

// middle returns the centroid, which is one of the lines.
func (p polygon) middle() line {
	var area, rate, offset float64
	var mean line
	for i, x := range p {
		y := p[(i+1)%len(p)]
		// Against the first corner, so that nothing large is subtracted.
		xr, xo, yr, yo := x.rate-p[0].rate, x.offset-p[0].offset, y.rate-p[0].rate, y.offset-p[0].offset
		c := xr*yo - yr*xo
		area += c
		rate += c * (xr + yr)
		offset += c * (xo + yo)
		mean.rate += x.rate / float64(len(p))
		mean.offset += x.offset / float64(len(p))
	}
	c := line{p[0].rate + rate/(3*area), p[0].offset + offset/(3*area)}
	lowRate, highRate := p.rates()
	low, high := p.at(0)
	if !(c.rate >= lowRate && c.rate <= highRate && c.offset >= low && c.offset <= high) { // no area to speak of
		return mean
	}
	return c
}
