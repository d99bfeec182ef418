package mzi

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ocslab/ocslab/internal/svg"
)

// Colours are of Okabe and Ito, which people who see few colours can tell apart.
const (
	colourFaint    = svg.Faint
	colourGrid     = "#e4e7eb"
	colourBand     = "#d7e6f2"
	colourMeasured = "#0072b2"
	colourFitted   = "#d55e00"
	colourState    = "#00795a"
	colourBad      = svg.Bad
)

// SVG draws the sweep and its fit as a picture of 640 x 360 pixels, on a paper of its own:
// the measured ratio over the power of the heaters, arm B to the left and arm A to the
// right, the fitted curve, where the states are taken, and what is left over, with twice
// the noise that was expected of it. Errors are those of w.
func (f SweepFit) SVG(w io.Writer) error { return FitSVG(w, "", f) }

// FitSVG draws as [SweepFit.SVG] does, with a few words after the name of the element:
// the serial number of its module.
func FitSVG(w io.Writer, title string, f SweepFit) error {
	const width, height = 640, 360
	t := f.trace()
	heading := f.Element.String()
	if title != "" {
		heading += ", " + title
	}
	d := newDrawing(w, width, height, heading)
	d.text(14, 20, `font-size="13" font-weight="bold"`, heading)
	p := f.powers()
	facts := "φ0 = " + f.phase0()
	if t.unit == "heater power, mW" {
		facts += fmt.Sprintf("    Pπ = %s (arm A), %s (arm B)", p[0], p[1])
	}
	if plausible(f.Celsius) && f.Celsius != 0 {
		d.text(width-14, 20, `text-anchor="end" fill="`+colourFaint+`"`, number(f.Celsius, 1)+" °C")
	}
	if f.Problem != "" {
		for i, l := range folded(f.Problem, 95) {
			if i < 2 {
				d.text(14, 39+float64(i)*15, `font-weight="bold" fill="`+colourBad+`"`, l)
			}
		}
	} else if t.curve != nil {
		d.text(14, 37, `xml:space="preserve" fill="`+colourFaint+`"`, facts)
	}
	extent := t.extent() * 1.03
	low, high := t.ratios()
	main := panel{x: 62, y: 66, w: 562, h: 172, left: -extent, right: extent, bottom: low, top: high}
	rest := panel{x: main.x, y: 258, w: main.w, h: 50, left: -extent, right: extent}
	if t.curve == nil {
		main.h = rest.y + rest.h - main.y // nothing is left over
	}
	d.ratioAxis(main, 0.25, true)
	d.powerTicks(main, t, false)
	d.states(main, t, 11)
	d.fitted(main, t, 1.6)
	d.measured(main, t, 2.1)
	last := main
	if t.curve != nil {
		last = rest
		d.residuals(rest, t)
	}
	d.frame(main)
	d.powerAxis(last, t)
	if f.Problem == "" && t.curve != nil {
		d.legend(main.x+main.w, 37)
	}
	return d.End()
}

// legend explains the signs, to the left of x.
func (d *drawing) legend(x, y float64) {
	d.text(x, y, `text-anchor="end" fill="`+colourFaint+`"`, "fit")
	d.Line(x-34, y-4, x-16, y-4, colourFitted, 1.6, "")
	d.text(x-44, y, `text-anchor="end" fill="`+colourFaint+`"`, "measured")
	d.Dot(x-100, y-4, 2.1, colourMeasured)
}

// residuals draws what is left over, and twice the noise expected.
func (d *drawing) residuals(p panel, t trace) {
	most := 0.0
	for i, r := range t.resid {
		most = max(most, math.Abs(r))
		if !plausible(t.Points[i].Sigma) {
			t.Points[i].Sigma = 0
		}
		most = max(most, 2*t.Points[i].Sigma)
	}
	most = max(most, 1e-6) * 1e3
	grid := step(most*1.05, 1)
	if most < grid*0.55 {
		grid /= 2
	}
	p.top, p.bottom = grid*1.15, -grid*1.15
	var band strings.Builder
	for i, point := range t.Points {
		fmt.Fprintf(&band, "%s,%s ", svg.Px(p.at(t.x[i])), svg.Px(p.up(2e3*point.Sigma)))
	}
	for i := len(t.Points) - 1; i >= 0; i-- {
		fmt.Fprintf(&band, "%s,%s ", svg.Px(p.at(t.x[i])), svg.Px(p.up(-2e3*t.Points[i].Sigma)))
	}
	fmt.Fprintf(d.Out, `<polygon points="%s" fill="%s"/>`+"\n", strings.TrimSpace(band.String()), colourBand)
	for _, y := range []float64{-grid, 0, grid} {
		d.Line(p.x, p.up(y), p.x+p.w, p.up(y), colourGrid, 1, "")
		d.text(p.x-7, p.up(y)+3.5, `text-anchor="end" font-size="10"`, number(y, decimals(grid)))
	}
	d.powerTicks(p, t, true)
	for i, r := range t.resid {
		d.Dot(p.at(t.x[i]), p.up(r*1e3), 1.7, colourMeasured)
	}
	d.frame(p)
	d.Turned(16, p.y+p.h/2, "residual")
	d.Turned(28, p.y+p.h/2, "10⁻³")
	d.text(p.x+p.w, p.y-5, `text-anchor="end" font-size="10" fill="`+colourFaint+`"`,
		fmt.Sprintf("residual %s·10⁻³ rms; shaded: ±2 σ of the noise expected", number(t.Residual*1e3, 2)))
}

// ratioAxis draws the lines of the ratio, with their numbers if that is wanted.
func (d *drawing) ratioAxis(p panel, grid float64, numbers bool) {
	for y := math.Ceil(p.bottom/grid) * grid; y <= p.top; y += grid {
		d.Line(p.x, p.up(y), p.x+p.w, p.up(y), colourGrid, 1, "")
		if numbers {
			d.text(p.x-7, p.up(y)+3.5, `text-anchor="end" font-size="10"`, number(y, 2))
		}
	}
	if numbers {
		d.Turned(16, p.y+p.h/2, "share at the bar output")
	}
}

// powerTicks draws the lines of the power, with their numbers if that is wanted: without
// a sign, since the sign is the arm.
func (d *drawing) powerTicks(p panel, t trace, numbers bool) {
	grid := step(2*t.extent(), 8)
	for n := -math.Floor(t.extent() / grid); n*grid <= t.extent(); n++ {
		x := p.at(n * grid)
		colour := colourGrid
		if n == 0 {
			colour = "#b9c0c9"
		}
		d.Line(x, p.y, x, p.y+p.h, colour, 1, "")
		if numbers {
			d.text(x, p.y+p.h+14, `text-anchor="middle" font-size="10"`, number(math.Abs(n*grid), decimals(grid)))
		}
	}
}

// powerAxis draws the numbers and names of the axis of power below a panel.
func (d *drawing) powerAxis(p panel, t trace) {
	if t.curve == nil {
		d.powerTicks(p, t, true)
		d.frame(p)
	}
	y := p.y + p.h + 32
	d.text(p.x, y, `fill="`+colourFaint+`"`, "← arm B")
	d.text(p.x+p.w/2, y, `text-anchor="middle"`, t.unit)
	d.text(p.x+p.w, y, `text-anchor="end" fill="`+colourFaint+`"`, "arm A →")
}

// states marks where the states are taken, with names above the panel if size is not 0.
// They are half a period apart, so that the names do not meet.
func (d *drawing) states(p panel, t trace, size float64) {
	for _, s := range t.states {
		x := p.at(s.x)
		if s.x < p.left || s.x > p.right {
			continue
		}
		d.Line(x, p.y, x, p.y+p.h, colourState, 1.2, "4 3")
		if size == 0 {
			continue
		}
		label := s.label()
		half := float64(len(label)) * size * 0.27
		at := min(max(x, p.x+half), p.x+p.w-half)
		d.text(at, p.y-6, fmt.Sprintf(`text-anchor="middle" font-size="%s" fill="%s"`, svg.Px(size), colourState), label)
	}
}

func (d *drawing) fitted(p panel, t trace, width float64) {
	if t.curve == nil {
		return
	}
	var line strings.Builder
	for _, c := range t.curve {
		fmt.Fprintf(&line, "%s,%s ", svg.Px(p.at(c[0])), svg.Px(p.up(c[1])))
	}
	fmt.Fprintf(d.Out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%s"/>`+"\n", strings.TrimSpace(line.String()), colourFitted, svg.Px(width))
}

func (d *drawing) measured(p panel, t trace, r float64) {
	for i, point := range t.Points {
		d.Dot(p.at(t.x[i]), p.up(point.Ratio), r, colourMeasured)
	}
}

// folded cuts text at blanks into lines of at most n characters, if it can.
func folded(text string, n int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if k := len(lines) - 1; k >= 0 && len(lines[k])+1+len(word) <= n {
			lines[k] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// panel is a part of a drawing with axes of its own.
type panel struct {
	x, y, w, h               float64 // pixels
	left, right, bottom, top float64 // units of the axes
}

// at and up are where a number is on the page; at the edge if it is beyond.
func (p panel) at(x float64) float64 {
	return p.x + p.w*min(max((x-p.left)/(p.right-p.left), 0), 1)
}

func (p panel) up(y float64) float64 {
	return p.y + p.h*min(max((p.top-y)/(p.top-p.bottom), 0), 1)
}

// drawing writes an SVG file.
type drawing struct{ *svg.Drawing }

func newDrawing(w io.Writer, width, height float64, title string) *drawing {
	return &drawing{svg.New(w, width, height, title)}
}

// text writes a line of text, in which the second letters of φ0 and Pπ are indices.
func (d *drawing) text(x, y float64, attributes, s string) {
	s = svg.Escape(s)
	for _, name := range []string{"φ0", "Pπ"} {
		letter, index := splitRune(name)
		s = strings.ReplaceAll(s, name+" ", letter+`<tspan dy="2.5" font-size="75%">`+index+`</tspan><tspan dy="-2.5"> </tspan>`)
	}
	d.Markup(x, y, attributes, s)
}

func (d *drawing) frame(p panel) {
	fmt.Fprintf(d.Out, `<rect x="%s" y="%s" width="%s" height="%s" fill="none" stroke="%s"/>`+"\n", svg.Px(p.x), svg.Px(p.y), svg.Px(p.w), svg.Px(p.h), colourFaint)
}

// splitRune cuts off the first character.
func splitRune(s string) (first, rest string) {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n], s[n:]
}
