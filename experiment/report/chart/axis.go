package chart

import (
	"math"
	"strconv"
)

// Axis says what the numbers along an axis are.
type Axis struct {
	Title string // "switching time"
	Kind  Kind
	Log   bool // for numbers above 0; others are then drawn at the lower end
	Whole bool // no ticks between whole numbers
}

// Kind is what a number is.
type Kind int

// The kinds of numbers.
const (
	Time    Kind = iota // nanoseconds
	Number              // a plain number; its unit belongs into the title
	Portion             // of 1, shown in percent
)

// span is what an axis has to hold.
type span struct{ lo, hi float64 }

var empty = span{math.Inf(1), math.Inf(-1)}

func (s *span) add(values ...float64) {
	for _, v := range values {
		if finite(v) {
			s.lo, s.hi = min(s.lo, v), max(s.hi, v)
		}
	}
}

// wide reports whether times differ so much that only a logarithmic axis shows all of them.
func (s span) wide() bool { return s.lo > 0 && s.hi/s.lo >= 30 }

// finite reports whether v is a number that can be drawn; all of int64 can.
func finite(v float64) bool { return math.Abs(v) <= 1e19 }

// scale brings numbers to pixels.
type scale struct {
	Axis
	span
	from, to float64 // pixels of lo and hi
	unit     float64
	unitName string
}

// newScale holds s, or something sensible if that is empty, with a little air at the ends
// that are not 0.
func newScale(a Axis, s span, from, to float64) scale {
	if s.lo > s.hi {
		s = span{0, 1}
		if a.Kind == Time {
			s.hi = 1e6
		}
		a.Log = false
	}
	if a.Log && s.lo <= 0 {
		a.Log = false
	}
	if a.Log {
		s.lo = max(s.lo, s.hi/1e15)
		air := math.Pow(max(s.hi/s.lo, 1.5), 0.03)
		s = span{s.lo / air, s.hi * air}
	} else {
		air := (s.hi - s.lo) * 0.03
		if air <= 0 {
			air = max(math.Abs(s.hi)*0.05, 1e-6)
		}
		if s.lo != 0 {
			s.lo -= air
		}
		if s.hi != 0 && (a.Kind != Portion || s.hi > 1) {
			s.hi += air
		}
	}
	out := scale{Axis: a, span: s, from: from, to: to, unit: 1}
	switch a.Kind {
	case Time:
		typical := max(math.Abs(s.lo), math.Abs(s.hi))
		if a.Log {
			typical = math.Sqrt(s.lo * s.hi)
		}
		out.unit, out.unitName = UnitOf(typical)
	case Portion:
		out.unit, out.unitName = 0.01, "%"
	}
	return out
}

// UnitOf is the unit in which times of about that size, in nanoseconds and not below 0, are
// written.
func UnitOf[N int64 | float64](ns N) (worth N, name string) {
	switch {
	case ns >= 1e9:
		return 1e9, "s"
	case ns >= 1e6:
		return 1e6, "ms"
	case ns >= 1e3:
		return 1e3, "µs"
	}
	return 1, "ns"
}

// at is the pixel of a number. What lies outside is at the end.
func (s scale) at(v float64) float64 {
	v = min(max(v, s.lo), s.hi)
	part := (v - s.lo) / (s.hi - s.lo)
	if s.Log {
		part = math.Log(v/s.lo) / math.Log(s.hi/s.lo)
	}
	return s.from + part*(s.to-s.from)
}

// caption is the title with the unit.
func (s scale) caption() string {
	if s.unitName == "" {
		return s.Title
	}
	return s.Title + " (" + s.unitName + ")"
}

// tick is a round number on an axis.
type tick struct {
	at    float64
	label string
}

// ticks are round numbers at least room pixels apart, so that their labels do not touch:
// multiples of 1, 2 or 5 and a power of ten.
func (s scale) ticks(room float64) []tick {
	if s.Log {
		return s.logTicks(room)
	}
	if s.hi-s.lo <= 1e-12*max(math.Abs(s.lo), math.Abs(s.hi)) {
		return nil // floating point has nothing in between
	}
	least := (s.hi - s.lo) / s.unit / math.Abs(s.to-s.from) * room
	if s.Whole {
		least = max(least, 1)
	}
	step, exponent := niceStep(least)
	decimals := max(0, -exponent)
	var ticks []tick
	first := math.Ceil(s.lo/s.unit/step - 1e-9)
	for i := 0; ; i++ {
		k := first + float64(i)
		v := k * step * s.unit
		if v > s.hi+1e-9*(s.hi-s.lo) {
			return ticks
		}
		if k == 0 {
			v = 0 // never -0
		}
		ticks = append(ticks, tick{s.at(v), strconv.FormatFloat(v/s.unit, 'f', decimals, 64)})
	}
}

// logTicks are powers of ten and, where there is room, 2 and 5 times them.
func (s scale) logTicks(room float64) []tick {
	var digits []float64
	decade := math.Abs(s.to-s.from) / math.Log10(s.hi/s.lo) // pixels
	every := 1.0
	switch {
	case decade*0.3 >= room:
		digits = []float64{1, 2, 5}
	default:
		digits = []float64{1}
		every = math.Ceil(room / decade)
	}
	lowest := math.Floor(math.Log10(s.lo / s.unit))
	if s.hi/s.lo < 10 { // hardly a decade: round numbers as on a straight axis
		straight := s
		straight.Log = false
		var ticks []tick
		for _, t := range straight.ticks(room) {
			v, _ := strconv.ParseFloat(t.label, 64)
			ticks = append(ticks, tick{s.at(v * s.unit), t.label})
		}
		return thin(ticks, room)
	}
	var ticks []tick
	for e := lowest; e <= math.Log10(s.hi/s.unit); e++ {
		if math.Mod(e, every) != 0 {
			continue
		}
		for _, d := range digits {
			v := d * math.Pow(10, e) * s.unit
			if v >= s.lo && v <= s.hi {
				ticks = append(ticks, tick{s.at(v), strconv.FormatFloat(v/s.unit, 'f', max(0, -int(e)), 64)})
			}
		}
	}
	return ticks
}

// thin leaves out ticks that are closer to the one before than room.
func thin(ticks []tick, room float64) []tick {
	var kept []tick
	for _, t := range ticks {
		if len(kept) == 0 || math.Abs(t.at-kept[len(kept)-1].at) >= room {
			kept = append(kept, t)
		}
	}
	return kept
}

// niceStep is the smallest 1, 2 or 5 times a power of ten that is not below least, and that
// power.
func niceStep(least float64) (step float64, exponent int) {
	if !(least > 0) || math.IsInf(least, 0) {
		least = 1
	}
	for exponent = int(math.Floor(math.Log10(least))); ; exponent++ {
		for _, digit := range []float64{1, 2, 5} {
			if step = digit * math.Pow(10, float64(exponent)); step >= least*(1-1e-9) {
				return step, exponent
			}
		}
	}
}

// below draws the axis under a plot, with a grid through it, and moves c.y below the title.
func (s scale) below(c *canvas, top float64) {
	bottom := c.y
	ticks := s.ticks(48)
	for _, t := range ticks {
		c.line(t.at, top, t.at, bottom, "grid")
	}
	c.line(s.from, bottom, s.to, bottom, "axis")
	for i, t := range ticks {
		anchor := "middle"
		half := textWidth(t.label, tickSize) / 2
		if i == 0 && t.at-half < 0 {
			anchor = "start"
		} else if t.at+half > c.w {
			anchor = "end"
		}
		c.text(t.at, bottom+15, anchor, "tick", tickSize, t.label, 80)
	}
	c.y = bottom + 15
	if caption := s.caption(); caption != "" {
		c.y += 17
		c.text((s.from+s.to)/2, c.y, "middle", "soft", textSize, caption, c.w)
	}
	c.y += 6
}

// beside draws the axis at the left of a plot.
func (s scale) beside(c *canvas, left, right float64, room float64) {
	for _, t := range s.ticks(room) {
		c.line(left, t.at, right, t.at, "grid")
		c.text(left-6, t.at+4, "end", "tick", tickSize, t.label, left)
	}
}

// gutter is how wide the labels of an axis at the left are.
func (s scale) gutter(room float64) float64 {
	w := 0.0
	for _, t := range s.ticks(room) {
		w = max(w, textWidth(t.label, tickSize))
	}
	return w + 10
}
