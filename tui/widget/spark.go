package widget

import (
	"math"

	"github.com/ocslab/ocslab/tui/canvas"
)

// Slot is what was read of something in one stretch of time, which a chart shows as one
// column. A slot that is neither Lit nor Dark is one in which nothing was read: a gap.
type Slot struct {
	Low, High float64 // of what was read above the level that counts as dark
	Lit       bool    // there is such, so Low and High mean something
	Dark      bool    // something was read that is at that level or below
}

// Add enters a reading into the slot. What is at most dark, or no number, is dark.
func (s *Slot) Add(v, dark float64) {
	switch {
	case !(v > dark):
		s.Dark = true
	case s.Lit:
		s.Low, s.High = min(s.Low, v), max(s.High, v)
	default:
		s.Low, s.High, s.Lit = v, v, true
	}
}

// Range returns the lowest and the highest value of slots, moved apart evenly until they
// are least from each other, so that noise does not fill a chart. It reports false when
// no slot has a value.
func Range(slots []Slot, least float64) (lo, hi float64, ok bool) {
	for _, s := range slots {
		if !s.Lit {
			continue
		}
		if !ok {
			lo, hi, ok = s.Low, s.High, true
		}
		lo, hi = min(lo, s.Low), max(hi, s.High)
	}
	if more := least - (hi - lo); ok && more > 0 {
		lo, hi = lo-more/2, hi+more/2
	}
	return lo, hi, ok
}

// sparks are the levels of a Spark, the lowest first.
var sparks = [...]rune{'▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// Dark is how charts show that something was read and was dark.
const Dark = '×'

// Spark draws the last slots in one line, each a column, the newest at the right: the
// middle of what was read as a block between lo and hi, Dark where something was dark, which is
// bad in the role Light only, and nothing where nothing was read. What is beyond lo and hi is shown at the nearer of them.
func Spark(a canvas.Area, slots []Slot, lo, hi float64, s canvas.Style) {
	n := min(a.W, len(slots))
	slots = slots[len(slots)-n:]
	dark := s
	if s.Role == canvas.Light {
		dark.Role = canvas.Bad
	}
	for i, slot := range slots {
		x := a.W - n + i
		switch {
		case slot.Dark:
			a.Set(x, 0, Dark, dark)
		case slot.Lit:
			a.Set(x, 0, sparks[level(slot.Low/2+slot.High/2, lo, hi, len(sparks))], s)
		}
	}
}

// level is in which of n equal parts from lo to hi a value lies, from 0.
func level(v, lo, hi float64, n int) int {
	part := (v - lo) / (hi - lo)
	if !(hi > lo) || math.IsNaN(part) {
		return (n - 1) / 2
	}
	return int(min(max(part*float64(n), 0), float64(n-1)))
}

// dots are the bits of the eight dots of a braille character, by column and by line.
var dots = [2][4]rune{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}

// Chart draws the last slots as a line between lo and hi, two to a column, the newest at
// the right. A slot in which several values were read is as high as they are apart. Slots
// in which something was dark are marked in the last line of the area, which has nothing
// else in it.
func Chart(a canvas.Area, slots []Slot, lo, hi float64, s canvas.Style) {
	plot, floor := a.Bottom(1)
	if plot.H == 0 || plot.W == 0 {
		return
	}
	n := min(2*a.W, len(slots))
	slots = slots[len(slots)-n:]
	last := -1 // the height of the slot before, in dots; -1: it was not lit
	column := [2][]rune{make([]rune, plot.H), make([]rune, plot.H)}
	flush := func(x int) {
		for y := range plot.H {
			if r := column[0][y] | column[1][y]; r != 0 {
				plot.Set(x, y, 0x2800|r, s)
			}
			column[0][y], column[1][y] = 0, 0
		}
	}
	for i, slot := range slots {
		at := 2*a.W - n + i
		if slot.Dark {
			role := canvas.Bad
			if s.Role == canvas.Stale {
				role = canvas.Stale
			}
			floor.Set(at/2, 0, Dark, canvas.S(role))
		}
		if slot.Lit {
			from, to := level(slot.Low, lo, hi, 4*plot.H), level(slot.High, lo, hi, 4*plot.H)
			here := (from + to) / 2
			switch { // joined to the one before
			case last >= 0 && last < from:
				from = last + 1
			case last > to:
				to = last - 1
			}
			for d := from; d <= to; d++ {
				up := 4*plot.H - 1 - d
				column[at%2][up/4] |= dots[at%2][up%4]
			}
			last = here
		} else {
			last = -1
		}
		if at%2 == 1 {
			flush(at / 2)
		}
	}
}
