package timeline

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// DefaultWidth is that of a [Waterfall], in characters.
const DefaultWidth = 80

// Waterfall draws a report as text: a line for each stage, in the order of the report,
// on one time axis that begins with the command.
//
//	           0 s      1        2        3            median     step       p95   n
//	           ┬────────┬────────┬────────┬──
//	light      ━█                               200.0 ms ±5.0  +200 ms  200.0 ms  30
//	firmware   ·━━━━━━━━━━━━━━━━━━━━━━━━━━━██  3.155 s ±0.051  +2.96 s   3.285 s  30
//	carrier-up ····························██  3.155 s ±0.051  <1.2 ms   3.286 s  30
//	━━ since the stage before   ██ median to p95   ░░ their confidence bounds
//
// A heavy line is what the stage adds to the median of the one before. A block is the
// spread, from the median to the 95th percentile. Shade is how far off the two may be:
// it goes from the lower confidence bound of the median to the upper one of the
// percentile, and these include what the intervals of the marks leave open. Where all
// of it falls on one character, that is a block.
//
// What the axis cannot resolve, the figures do: the median with the farther of its
// bounds, the step, the percentile, and n, the number of durations they stand on, such
// as 30, or 28/30 when 2 more are missing. Where the marks of two stages are typically
// too wide to tell them apart, the step is not a number but what it should be below:
// <1.2 ms. A stage that was expected and never seen has a line without a bar, below the
// others.
//
// The zero value is ready to use.
type Waterfall struct {
	Width int  // most characters in a line; below 1 is DefaultWidth
	ASCII bool // for terminals and files without Unicode
}

// glyphs are what bars are made of.
type glyphs struct{ lead, step, shade, block, rule, tick rune }

var (
	unicodeGlyphs = glyphs{'·', '━', '░', '█', '─', '┬'}
	asciiGlyphs   = glyphs{'.', '=', ':', '#', '-', '+'}
)

// leastBar is how short a bar may be and still tell something.
const leastBar = 30

// Lines returns the drawing, from the scale to the legend. No line is longer than the
// width, none ends in blanks or a line break. Columns are left out where there is no
// room for them and bars of 30 characters: first the percentile, then the step, then the
// count. Where there is no room for bars, the columns have it. Of a report without
// stages there is nothing to draw.
func (w Waterfall) Lines(r Report) []string {
	if len(r.Stages)+len(r.Unseen) == 0 {
		return nil
	}
	width := w.Width
	if width < 1 {
		width = DefaultWidth
	}
	g := unicodeGlyphs
	if w.ASCII {
		g = asciiGlyphs
	}

	names, columns := w.table(r)
	columns, bar := fit(columns, width-names.width())
	if len(r.Stages) == 0 {
		bar = 0
	}
	a := axisOf(r.Stages, bar)

	var lines []string
	labels, rule := a.scale(g)
	if len(columns) > 0 {
		lines = append(lines, line(names, columns, heading, labels))
	}
	if bar > 0 {
		lines = append(lines, line(names, nil, heading, rule))
	}
	for i := range names.cells {
		drawn := string(a.blank(' '))
		if i < len(r.Stages) {
			drawn = a.draw(r.Stages[i], g)
		}
		lines = append(lines, line(names, columns, i, drawn))
	}
	legend := fmt.Sprintf("%[1]c%[1]c since the stage before   %[2]c%[2]c median to p95   %[3]c%[3]c their confidence bounds", g.step, g.block, g.shade)
	if bar > 0 && utf8.RuneCountInString(legend) <= width {
		lines = append(lines, legend)
	}
	for i, l := range lines {
		l = string([]rune(l)[:min(width, utf8.RuneCountInString(l))])
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines
}

// column is one of the table beside the bars, its cells by line.
type column struct {
	title string
	cells []string
	rank  int // from 0; columns of higher rank are left out first
}

func (c column) width() int {
	width := utf8.RuneCountInString(c.title)
	for _, cell := range c.cells {
		width = max(width, utf8.RuneCountInString(cell))
	}
	return width
}

// table writes the report in columns.
func (w Waterfall) table(r Report) (names column, columns []column) {
	median, step := column{title: "median", rank: 0}, column{title: "step", rank: 2}
	p95, n := column{title: "p95", rank: 3}, column{title: "n", rank: 1}
	row := func(stage Stage, medianText, stepText, p95Text, nText string) {
		names.cells = append(names.cells, string(stage))
		median.cells = append(median.cells, medianText)
		step.cells = append(step.cells, stepText)
		p95.cells = append(p95.cells, p95Text)
		n.cells = append(n.cells, nText)
	}
	before := time.Duration(0) // the resolution of the stage before
	for _, s := range r.Stages {
		count := strconv.Itoa(s.Count)
		if s.Missing > 0 {
			count += "/" + strconv.Itoa(s.Count+s.Missing)
		}
		late, _, _ := strings.Cut(s.P95.text(), " ±")
		row(s.Stage, s.Median.text(), stepText(int64(s.Step), int64(before/2+s.Resolution/2)), late, count)
		before = s.Resolution
	}
	for _, u := range r.Unseen {
		row(u.Stage, "never", "", "", "0/"+strconv.Itoa(u.Missing))
	}
	columns = []column{median, step, p95, n}
	if w.ASCII {
		plain := strings.NewReplacer("±", "+-", "µ", "u")
		for _, c := range columns {
			for i := range c.cells {
				c.cells[i] = plain.Replace(c.cells[i])
			}
		}
	}
	return names, columns
}

// fit leaves out columns until a bar has room beside the rest or, if it never has, until
// the rest has room itself. A cut-off number would be a wrong one.
func fit(columns []column, room int) (kept []column, bar int) {
	below := func(rank int) { // keeps those columns
		kept, bar = nil, room-1
		for _, c := range columns {
			if c.rank < rank {
				kept = append(kept, c)
				bar -= 2 + c.width()
			}
		}
	}
	for rank := len(columns); rank > 0; rank-- {
		if below(rank); bar >= leastBar {
			return kept, bar
		}
	}
	for rank := len(columns); rank > 0; rank-- {
		if below(rank); bar >= 0 {
			return kept, 0
		}
	}
	return nil, 0
}

// heading is the line of titles.
const heading = -1

// line joins a name, a bar and the cells of line i.
func line(names column, columns []column, i int, bar string) string {
	name := ""
	if i != heading {
		name = names.cells[i]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s %s", names.width(), name, bar)
	for _, c := range columns {
		cell := c.title
		if i != heading {
			cell = c.cells[i]
		}
		fmt.Fprintf(&b, "  %*s", c.width(), cell)
	}
	return b.String()
}

// text is the statistic with its farther bound: "203.11 ms ±0.42".
func (e Estimate) text() string {
	half := max(sub(e.NS, e.LowNS), sub(e.HighNS, e.NS))
	if half <= 0 {
		return figure(e.NS, 4)
	}
	return Point(e.NS).Widen(time.Duration(half)).String()
}

// stepText is the difference of two medians that are known only so well: what is not
// resolved is only bounded.
func stepText(step, known int64) string {
	if known > 0 && step <= known {
		most := add(step, known)
		return "<" + figure(add(most, max(worth(most, 2)/2-1, 0)), 2) // rounded up
	}
	return "+" + figure(step, 3)
}

// figure writes ns in the unit that fits, rounded to so many digits.
func figure(ns int64, digits int) string {
	step := worth(ns, digits)
	// Not ns+step/2, which could overflow.
	if rest := ns % step; rest >= step-rest {
		ns = add(ns, step-rest)
	} else if -rest > step+rest {
		ns = sub(ns, step+rest)
	} else {
		ns -= rest
	}
	unit, name := unitOf(max(ns, -ns))
	return decimal(ns, unit, step) + " " + name
}

// worth is that of the last of so many digits of ns.
func worth(ns int64, digits int) int64 {
	step := int64(1)
	for most := int64(math.Pow10(digits)); ns/step >= most || ns/step <= -most; {
		step *= 10
	}
	return step
}
