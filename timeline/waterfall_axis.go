package timeline

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// axis lays time out on a bar of so many characters. It works in floating point, since a
// character is a long time.
type axis struct {
	from, to float64 // nanoseconds since the command
	width    int     // 0: there are no bars
}

// axisOf holds all of each stage, and the command.
func axisOf(stages []Summary, width int) axis {
	a := axis{width: width}
	for _, s := range stages {
		a.from = min(a.from, float64(s.Median.LowNS))
		a.to = max(a.to, float64(s.P95.HighNS))
	}
	a.to = max(a.to, a.from+1)
	return a
}

// cell is the character that holds ns.
func (a axis) cell(ns float64) int {
	at := int((ns - a.from) / (a.to - a.from) * float64(a.width))
	return min(max(at, 0), a.width-1)
}

// draw returns the bar of a stage.
func (a axis) draw(s Summary, g glyphs) string {
	if a.width == 0 {
		return ""
	}
	bar := a.blank(' ')
	fill := func(r rune, from, to int64) {
		for i := a.cell(float64(from)); i <= a.cell(float64(to)); i++ {
			bar[i] = r
		}
	}
	start := sub(s.Median.NS, int64(s.Step))
	fill(g.lead, 0, start)
	fill(g.step, start, s.Median.NS)
	fill(g.shade, s.Median.LowNS, s.P95.HighNS)
	fill(g.block, s.Median.NS, s.P95.NS)
	return string(bar)
}

// scale returns the ruler and the labels above it: multiples of 1, 2 or 5 and a power of
// ten, in one unit, which stands beside the 0.
func (a axis) scale(g glyphs) (labels, rule string) {
	if a.width == 0 {
		return "", ""
	}
	unit, name := unitOf(int64(min(max(a.to, -a.from), math.MaxInt64/2)))
	if g == asciiGlyphs && name == "µs" {
		name = "us"
	}
	step, decimals := a.step(float64(unit))

	top, ruler := a.blank(' '), a.blank(g.rule)
	free := 0
	for k := math.Ceil(a.from / step); k*step <= a.to; k++ {
		text := strconv.FormatFloat(k*step/float64(unit), 'f', decimals, 64)
		if k == 0 {
			text = "0 " + name
		}
		at := a.cell(k * step)
		ruler[at] = g.tick
		length := utf8.RuneCountInString(text)
		if at = min(at, a.width-length); at >= free { // the last may stand a little to the left
			copy(top[at:], []rune(text))
			free = at + length + 1
		}
	}
	return string(top), string(ruler)
}

// step returns the smallest round step between ticks that leaves room for labels, and
// how many decimals they need in the unit.
func (a axis) step(unit float64) (step float64, decimals int) {
	const room = 8 // characters
	least := (a.to - a.from) / float64(a.width) * room
	for exponent := math.Floor(math.Log10(least)); ; exponent++ {
		for _, digit := range []float64{1, 2, 5} {
			if step = digit * math.Pow(10, exponent); step >= least {
				return step, max(0, int(math.Log10(unit)-exponent))
			}
		}
	}
}

func (a axis) blank(with rune) []rune {
	line := make([]rune, a.width)
	for i := range line {
		line[i] = with
	}
	return line
}
