package mzi

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Least size of a plot in a terminal.
const (
	leastColumns = 40
	leastRows    = 10
)

// Text draws the sweep for a terminal of so many columns and lines, at least 40 and 10:
// the fitted curve in braille dots, measured points as bullets, power below and the ratio
// at the left. Each line ends with a newline, and none with a blank.
func (f SweepFit) Text(width, height int) string { return f.trace().terminal(width, height, false) }

// ASCII draws as [SweepFit.Text] does, with characters that every terminal has.
func (f SweepFit) ASCII(width, height int) string { return f.trace().terminal(width, height, true) }

// terminal draws a heading, the names of the states, the plot, its axis and two lines of
// numbers.
func (t trace) terminal(width, height int, ascii bool) string {
	width, height = max(width, leastColumns), max(height, leastRows)
	const left = 6 // columns of the numbers at the left, with the axis
	plain := func(s string) string { return s }
	if ascii {
		plain = asciiOf.Replace
	}
	var facts []string
	switch p := t.powers(); {
	case t.Problem != "":
		facts = folded(plain("cannot be used: "+t.Problem), width)
	case t.curve == nil:
		facts = []string{"no fit"}
	default:
		facts = folded(plain(fmt.Sprintf("Pπ %s (A), %s (B); residual %s·10⁻³ rms", p[0], p[1], number(t.Residual*1e3, 2))), width)
	}
	facts = facts[:min(len(facts), 3)]
	c := newCanvas(width-left, height-5-len(facts), ascii)
	low, high := t.ratios()
	extent := t.extent() * 1.02
	column := func(x float64) float64 { return (x + extent) / (2 * extent) }
	row := func(y float64) float64 { return (high - y) / (high - low) }
	for i := 1; i < len(t.curve); i++ {
		a, b := t.curve[i-1], t.curve[i]
		c.stroke(column(a[0]), row(a[1]), column(b[0]), row(b[1]))
	}
	for i, p := range t.Points {
		c.put(column(t.x[i]), row(p.Ratio))
	}

	var out strings.Builder
	line := func(s string) {
		if runes := []rune(s); len(runes) > width {
			s = string(runes[:width])
		}
		out.WriteString(strings.TrimRight(s, " ") + "\n")
	}
	head := t.Element.String()
	if t.curve != nil {
		head += "  φ0 " + t.phase0()
	}
	line(plain(head))
	names := blanks(width - left)
	for _, s := range t.states {
		write(names, int(column(s.x)*float64(width-left)), s.label())
	}
	line(strings.Repeat(" ", left) + string(names))

	axis, corner, rule, tick := "│", "└", "─", '┬'
	if ascii {
		axis, corner, rule, tick = "|", "+", "-", '+'
	}
	marks := map[int]string{}
	for _, y := range []float64{0, 0.25, 0.5, 0.75, 1} {
		if n := int(row(y) * float64(c.rows)); len(marks) == 0 || c.rows >= 10 || y == 0.5 || y == 1 {
			marks[n] = number(y, 2)
		}
	}
	for i := range c.rows {
		line(fmt.Sprintf("%4s %s%s", marks[i], axis, c.row(i)))
	}
	base, numbers := []rune(strings.Repeat(rule, width-left)), blanks(width-left)
	grid := step(2*extent, max((width-left)/12, 2))
	for n := -math.Floor(extent / grid); n*grid <= extent; n++ {
		at := int(column(n*grid) * float64(width-left))
		base[min(at, len(base)-1)] = tick
		write(numbers, at, number(math.Abs(n*grid), decimals(grid)))
	}
	line("     " + corner + string(base))
	line(strings.Repeat(" ", left) + string(numbers))
	under := blanks(width - left)
	write(under, 0, plain("← B"))
	write(under, width, plain("A →"))
	write(under, (width-left)/2, plain(t.unit))
	line(strings.Repeat(" ", left) + string(under))
	for _, l := range facts {
		line(l)
	}
	return out.String()
}

// asciiOf replaces what else the lines have that is not ASCII.
var asciiOf = strings.NewReplacer("φ0", "phi0", "Pπ", "P_pi", "π", "pi", "·10⁻³", "e-3", "±", "+-", "\u2212", "-", "←", "<-", "→", "->", "V²", "V^2", "°", "deg ", "µ", "u", "²", "^2")

func blanks(n int) []rune { return []rune(strings.Repeat(" ", n)) }

// write puts s into line with its middle at a column, moved inwards to fit, unless it
// would touch what is there.
func write(line []rune, middle int, s string) {
	n := utf8.RuneCountInString(s)
	at := min(max(middle-n/2, 0), len(line)-n)
	if at < 0 || strings.TrimSpace(string(line[max(at-1, 0):min(at+n+1, len(line))])) != "" {
		return
	}
	copy(line[at:], []rune(s))
}

// canvas is drawn on with lines of braille dots, 2 x 4 to a character, and with bullets.
// Without braille a line is drawn with full stops.
type canvas struct {
	columns, rows int
	ascii         bool
	dots          []uint8 // of each character, in the bits of Unicode
	points        []bool
}

func newCanvas(columns, rows int, ascii bool) *canvas {
	return &canvas{columns, rows, ascii, make([]uint8, columns*rows), make([]bool, columns*rows)}
}

// brailleBits are the bits of the dots of a character, by row and column.
var brailleBits = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// stroke draws a line between two places, from 0, 0 at the top left to 1, 1.
func (c *canvas) stroke(x1, y1, x2, y2 float64) {
	w, h := float64(2*c.columns), float64(4*c.rows)
	steps := max(int(math.Ceil(max(math.Abs(x2-x1)*w, math.Abs(y2-y1)*h))), 1)
	for i := range steps + 1 {
		s := float64(i) / float64(steps)
		x, y := int((x1+s*(x2-x1))*w), int((y1+s*(y2-y1))*h)
		if x >= 0 && x < 2*c.columns && y >= 0 && y < 4*c.rows {
			c.dots[y/4*c.columns+x/2] |= brailleBits[y%4][x%2]
		}
	}
}

// put draws a bullet.
func (c *canvas) put(x, y float64) {
	i, j := int(x*float64(c.columns)), int(y*float64(c.rows))
	if i >= 0 && i < c.columns && j >= 0 && j < c.rows {
		c.points[j*c.columns+i] = true
	}
}

// row is one line of the canvas.
func (c *canvas) row(j int) string {
	var s strings.Builder
	for i := j * c.columns; i < (j+1)*c.columns; i++ {
		switch {
		case c.points[i] && c.ascii:
			s.WriteByte('o')
		case c.points[i]:
			s.WriteRune('•')
		case c.dots[i] == 0:
			s.WriteByte(' ')
		case c.ascii:
			s.WriteByte('.')
		default:
			s.WriteRune(0x2800 + rune(c.dots[i]))
		}
	}
	return s.String()
}
