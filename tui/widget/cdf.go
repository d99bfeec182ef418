package widget

import (
	"math"
	"slices"
	"strconv"

	"github.com/ocslab/ocslab/tui/canvas"
)

// curve is a CDF in columns of dots: which part of all is over at each, certainly and at most.
// It is made by counting, not by sorting, since it is made for each frame.
type curve struct {
	low, high []float64
	some      bool // there is something to draw
}

func newCurve(s *Series, of scale, columns int) curve {
	values, never := s.came()
	c := curve{make([]float64, columns), make([]float64, columns), len(values) > 0}
	column := func(ns int64) int {
		return max(0, min(int(math.Ceil(of.at(clamp(ns))*float64(columns-1)-1e-9)), columns-1))
	}
	for _, v := range values {
		c.low[column(v.Latest)]++
		c.high[column(v.Earliest)]++
	}
	low, high, all := 0.0, 0.0, float64(len(values)+never)
	for x := range columns {
		low, high = low+c.low[x], high+c.high[x]
		c.low[x], c.high[x] = low/all, high/all
	}
	return c
}

// CDF draws which part of all durations was over after which time, in dots of braille: of
// each series a band between what is certain and what may be, which is a line where values
// are known well. Durations that never came count as later than all that is shown. The
// letters of the series stand beside their bands; that with the index at is drawn last, so
// that nothing is in front of it.
func CDF(a canvas.Area, series []Series, at int) {
	if a.W <= 0 || a.H <= 0 || len(series) == 0 {
		return
	}
	low, high, ok := span(series)
	if !ok {
		never := 0
		if at >= 0 && at < len(series) {
			_, never = series[at].came()
		}
		nothing(a, never)
		return
	}
	const left = 6 // "100 % "
	plot := a.Sub(left, 0, a.W-left, a.H-2)
	if plot.W < 8 || plot.H < 2 {
		a.Fit(0, 0, a.W, "from "+Time(low)+" to "+Time(high)+"; too small for a curve", canvas.S(canvas.Dim))
		return
	}
	scale := newScale(low, high)
	marks := scale.marks(max(2, plot.W/12))
	for _, part := range percents(plot.H) {
		y := row(plot, float64(part)/100)
		a.TextRight(left-1, y, strconv.Itoa(part)+" %", canvas.S(canvas.Dim))
		for x := range plot.W {
			plot.Set(x, y, '┄', canvas.S(canvas.Frame))
		}
	}
	timeAxis(a.Sub(left, a.H-2, a.W-left, 2), scale, marks)
	dots := newDots(plot.W, plot.H)
	curves := make([]curve, len(series))
	for k := range series {
		curves[k] = newCurve(&series[k], scale, 2*plot.W)
		if k != at {
			dots.band(curves[k])
			dots.draw(plot, canvas.S(series[k].Role))
		}
	}
	if at >= 0 && at < len(series) {
		dots.band(curves[at])
		dots.draw(plot, canvas.S(series[at].Role, canvas.Bold))
	}
	if len(series) > 1 {
		for k := range series {
			letter(plot, curves[k], &series[k], float64(k%8+1)/float64(min(len(series), 8)+1))
		}
	}
}

// letter puts the letter of a series where its curve reaches a part of all, or ends.
func letter(a canvas.Area, c curve, s *Series, part float64) {
	if !c.some {
		return
	}
	part = min(part, c.high[len(c.high)-1])
	x := slices.IndexFunc(c.high, func(high float64) bool { return high >= part })
	a.Set(x/2, row(a, part), s.Letter, canvas.S(s.Role, canvas.Bold, canvas.Reverse))
}

// row is the line of an area at which a part of its height is.
func row(a canvas.Area, part float64) int {
	return max(0, min(int((1-part)*float64(a.H-1)+0.5), a.H-1))
}

// percents are those that have a line of their own in a plot of h lines.
func percents(h int) []int {
	switch {
	case h >= 9:
		return []int{0, 25, 50, 75, 95, 100}
	case h >= 5:
		return []int{0, 50, 100}
	}
	return []int{0, 100}
}

// timeAxis draws an axis with labels in two lines.
func timeAxis(a canvas.Area, s scale, marks []int64) {
	for x := range a.W {
		a.Set(x, 0, '─', canvas.S(canvas.Frame))
	}
	texts, unit := s.labels(marks)
	free := 0 // the first column that has no label yet
	end := a.W
	if unit != "" {
		end -= canvas.Width(unit) + 1
		a.Text(end+1, 1, unit, canvas.S(canvas.Dim))
	}
	for i, ns := range marks {
		x := max(0, min(int(s.at(ns)*float64(a.W-1)+0.5), a.W-1))
		a.Set(x, 0, '┬', canvas.S(canvas.Frame))
		w := canvas.Width(texts[i])
		if at := max(0, min(x-w/2, end-w)); at >= free {
			a.Text(at, 1, texts[i], canvas.S(canvas.Dim))
			free = at + w + 1
		}
	}
}

// dotPlot is a plot of 2 x 4 dots in each cell.
type dotPlot struct {
	w, h  int // in cells
	cells []rune
}

func newDots(w, h int) *dotPlot { return &dotPlot{w, h, make([]rune, w*h)} }

// dot returns the bit of the dot at x, y within its cell.
func dot(x, y int) rune {
	return [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}[y][x]
}

func (d *dotPlot) set(x, y int) {
	if x >= 0 && y >= 0 && x < 2*d.w && y < 4*d.h {
		d.cells[y/4*d.w+x/2] |= dot(x%2, y%4)
	}
}

// band sets the dots between the lower and the upper curve, and those that join each column
// with the one before.
func (d *dotPlot) band(c curve) {
	if !c.some {
		return
	}
	bottom := 4*d.h - 1
	y := func(part float64) int { return int((1-part)*float64(bottom) + 0.5) }
	before := bottom // where the upper curve was
	for x := range 2 * d.w {
		from, to := y(c.high[x]), y(c.low[x])
		for i := from; i <= max(to, before); i++ {
			d.set(x, i)
		}
		before = from
	}
}

// draw puts the dots on an area, where there are any, and forgets them.
func (d *dotPlot) draw(a canvas.Area, style canvas.Style) {
	for i, r := range d.cells {
		if r != 0 {
			a.Set(i%d.w, i/d.w, 0x2800+r, style)
		}
	}
	clear(d.cells)
}
