package mzi

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/ocslab/ocslab/internal/svg"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// The sheet: a landscape page of DIN proportions, with one cell for each element. S1 and
// S2 have a row each with a column for each lane, the loop network is as it is wired.
const (
	sheetWidth, sheetHeight = 1240, 877
	sheetLeft, sheetTop     = 40, 64
	cellWidth, cellHeight   = 148, 122
	cellGap, sectionGap     = 12, 22
)

// cell is where an element is on the sheet, and whether its axis has numbers.
func cell(e ocst.Element) (x, y float64, numbersLeft, numbersBelow bool) {
	column, row, section := int(e)%ocst.Lanes, int(e)/ocst.Lanes, int(e)/ocst.Lanes
	below := true
	if c, r, loop := e.IsLoop(); loop {
		column, row, section = c, 2+r, 2
		below = r == ocst.Rows-1
	}
	return sheetLeft + float64(column)*cellWidth, sheetTop + float64(row)*cellHeight + float64(section+1)*sectionGap, column == 0, below
}

// SheetSVG draws all fits of a module as small pictures on one page of 1240 x 877 pixels,
// with the title above, and a summary. Elements without a fit are left out, and of two fits of
// one element the last counts. Errors are those of w.
func SheetSVG(w io.Writer, title string, fits []SweepFit) error {
	d := newDrawing(w, sheetWidth, sheetHeight, title)
	d.text(sheetLeft, 34, `font-size="17" font-weight="bold"`, title)
	byElement := map[ocst.Element]trace{}
	extent := 1.0
	for _, f := range fits {
		if f.Element >= 0 && f.Element < ocst.Elements {
			t := f.trace()
			byElement[f.Element] = t
			extent = max(extent, t.extent())
		}
	}
	d.text(sheetLeft, 54, `fill="`+colourFaint+`"`, "Share of the light at the bar output over heater power, mW: arm B to the left, arm A to the right. "+
		"Below each name: extinction ratios of bar and cross, dB; root mean square of the residual, 10⁻³.")
	for section, name := range []string{"S1: bar leads out of the module, cross into the loop network", "S2: bar leads to fibre 1, cross to fibre 2", "Loop network, columns from left to right as the light goes"} {
		_, y, _, _ := cell([]ocst.Element{ocst.S1(0), ocst.S2(0), ocst.Loop(0, 0)}[section])
		d.text(sheetLeft, y-6, `font-size="12" font-weight="bold"`, name)
	}
	for e := range ocst.Element(ocst.Elements) {
		if t, ok := byElement[e]; ok {
			d.cell(t, extent*1.04)
		}
	}
	d.summary(byElement)
	return d.End()
}

// cell draws one element.
func (d *drawing) cell(t trace, extent float64) {
	x, y, left, below := cell(t.Element)
	low, high := t.ratios()
	p := panel{x: x, y: y + 28, w: cellWidth - cellGap, h: cellHeight - 46, left: -extent, right: extent, bottom: low, top: high}
	d.text(x, y+11, `font-size="10.5"`, t.Element.String())
	d.ratioAxis(p, 0.5, false)
	if left {
		for _, v := range []float64{0, 0.5, 1} {
			d.text(x-4, p.up(v)+3, `text-anchor="end" font-size="8.5"`, number(v, 1))
		}
	}
	grid := step(extent, 1) // of V², in a cell that has no power, other than its neighbours'
	if grid > extent {
		grid /= 2
	}
	for _, v := range []float64{-grid, 0, grid} {
		d.Line(p.at(v), p.y, p.at(v), p.y+p.h, colourGrid, 1, "")
		if below {
			d.text(p.at(v), p.y+p.h+11, `text-anchor="middle" font-size="8.5"`, number(math.Abs(v), decimals(grid)))
		}
	}
	d.states(p, t, 0)
	d.measured(p, t, 1.3)
	d.fitted(p, t, 0.8)
	if t.Problem != "" {
		d.text(x, y+23, `font-size="9" font-weight="bold" fill="`+colourBad+`"`, shortened(t.Problem, 27))
		fmt.Fprintf(d.Out, `<rect x="%s" y="%s" width="%s" height="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", svg.Px(p.x), svg.Px(p.y), svg.Px(p.w), svg.Px(p.h), colourBad)
		return
	}
	d.text(x, y+23, `font-size="9" fill="`+colourFaint+`"`, fmt.Sprintf("%s / %s dB", number(t.Fit.BarER, 1), number(t.Fit.CrossER, 1)))
	d.text(p.x+p.w, y+23, `text-anchor="end" font-size="9" fill="`+colourFaint+`"`, number(t.Residual*1e3, 2))
	d.frame(p)
}

// summary says in the empty corner beside the loop network how good the module is.
func (d *drawing) summary(byElement map[ocst.Element]trace) {
	x, y, _, _ := cell(ocst.Loop(0, 0))
	x += 5*cellWidth + 24
	y += 11
	var ratios, sigmas, residuals, powers []float64
	var bad []string
	worst, least := "", math.Inf(1)
	for e := range ocst.Element(ocst.Elements) {
		t, ok := byElement[e]
		switch {
		case !ok:
			continue
		case t.Problem != "":
			bad = append(bad, fmt.Sprintf("%v: %s", e, t.Problem))
			continue
		}
		for _, s := range t.states {
			if s.er == 0 {
				continue
			}
			ratios = append(ratios, s.er)
			if s.er < least {
				worst, least = fmt.Sprintf("%s of %v", s.name, e), s.er
			}
		}
		if finite(t.Phase0Sigma, t.Residual, t.PPi[0], t.PPi[1]) {
			sigmas = append(sigmas, t.Phase0Sigma*1e3)
			residuals = append(residuals, t.Residual*1e3)
			powers = append(powers, t.PPi[:]...)
		}
	}
	d.text(x, y, `font-size="12" font-weight="bold"`, "Summary")
	line := func(format string, args ...any) {
		y += 19
		d.text(x, y, `font-size="11"`, fmt.Sprintf(format, args...))
	}
	line("%d elements, %d of them cannot be used", len(byElement), len(bad))
	if len(ratios) > 0 {
		line("extinction ratio: median %s dB, least %s dB (%s)", number(median(ratios), 1), number(least, 1), worst)
	}
	if len(powers) > 0 {
		line("Pπ : %s to %s mW, median %s mW", number(slices.Min(powers), 1), number(slices.Max(powers), 1), number(median(powers), 1))
		line("φ0 : standard deviation %s mrad in the median, %s mrad at most", number(median(sigmas), 2), number(slices.Max(sigmas), 2))
		line("residual: %s·10⁻³ rms in the median, %s·10⁻³ at most", number(median(residuals), 2), number(slices.Max(residuals), 2))
	}
	y += 8
	const most = 8 // problems
	for i, b := range bad {
		if i == most {
			b = fmt.Sprintf("and %d more", len(bad)-most)
		}
		if i <= most {
			y += 15
			d.text(x, y, `font-size="10" fill="`+colourBad+`"`, shortened(b, 75))
		}
	}
	y += 26
	d.Dot(x+9, y-4, 2.1, colourMeasured)
	d.text(x+26, y, "", "measured")
	d.Line(x+96, y-4, x+114, y-4, colourFitted, 1.6, "")
	d.text(x+122, y, "", "fit")
	d.Line(x+166, y-10, x+166, y+2, colourState, 1.2, "4 3")
	d.text(x+174, y, "", "where bar and cross are taken")
	if len(ratios) > 0 {
		d.stacks(x, y+34, byElement)
	}
}

// stacks draws how the extinction ratios are spread, one dot for each state of an
// element, in columns of 1 dB.
func (d *drawing) stacks(x, y float64, byElement map[ocst.Element]trace) {
	const width, size = 380, 8.0
	count := map[int][]bool{} // whether it is of the cross state
	low, high := math.MaxInt, 0
	for e := range ocst.Element(ocst.Elements) {
		for i, s := range byElement[e].states {
			if s.er == 0 {
				continue
			}
			n := int(min(s.er, 70))
			count[n] = append(count[n], i == 1)
			low, high = min(low, n), max(high, n)
		}
	}
	most := 0
	for _, c := range count {
		most = max(most, len(c))
	}
	low, high = low/5*5, high/5*5+5
	wide := min(width/float64(high-low), 26)
	tall := min(size, 200/float64(most))
	bottom := y + 14 + tall*float64(most)
	d.text(x, y, `font-size="12" font-weight="bold"`, "Extinction ratios")
	r := min(wide, tall)/2 - 0.6
	d.Dot(x+124, y-4, 3, colourMeasured)
	d.text(x+132, y, "", "bar")
	d.ring(x+168, y-4, 3, colourMeasured)
	d.text(x+176, y, "", "cross")
	for n := low; n <= high; n++ {
		at := x + wide*float64(n-low)
		if n%5 == 0 {
			d.Line(at, bottom, at, bottom+4, colourFaint, 1, "")
			d.text(at, bottom+16, `text-anchor="middle" font-size="10"`, fmt.Sprint(n))
		}
		slices.SortFunc(count[n], func(a, b bool) int { return value(a) - value(b) })
		for i, cross := range count[n] {
			cx, cy := at+wide/2, bottom-tall*(float64(i)+0.5)-1
			if cross {
				d.ring(cx, cy, r, colourMeasured)
			} else {
				d.Dot(cx, cy, r, colourMeasured)
			}
		}
	}
	end := x + wide*float64(high-low)
	d.Line(x, bottom, end, bottom, colourFaint, 1, "")
	d.text((x+end)/2, bottom+31, `text-anchor="middle" font-size="10"`, "dB; each dot is one state of one element")
}

// shortened cuts text to n characters.
func shortened(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

func value(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (d *drawing) ring(x, y, r float64, colour string) {
	fmt.Fprintf(d.Out, `<circle cx="%s" cy="%s" r="%s" fill="none" stroke="%s" stroke-width="1.2"/>`+"\n", svg.Px(x), svg.Px(y), svg.Px(r-0.6), colour)
}

// median of numbers, of which there is one at least.
func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
