// Package svg writes the marks that drawings of calibrations are made of as SVG. Charts of
// reports have a package of their own, which knows axes and themes.
package svg

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// Colours of drawings on paper of their own.
const (
	Paper = "#ffffff"
	Ink   = "#20242b"
	Faint = "#5c6470"
	Bad   = "#b3261e"
)

// Drawing writes a file. Out takes elements that have no method here; errors of writing are those
// that End returns. It is used by one goroutine at a time.
type Drawing struct{ Out *bufio.Writer }

// New begins a drawing of so many pixels, with a title for those who cannot see it.
func New(w io.Writer, width, height float64, title string) *Drawing {
	d := &Drawing{bufio.NewWriter(w)}
	fmt.Fprintf(d.Out, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" font-family="Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif" font-size="11" fill="%s">`+"\n",
		Px(width), Px(height), Px(width), Px(height), Ink)
	fmt.Fprintf(d.Out, "<title>%s</title>\n", Escape(title))
	fmt.Fprintf(d.Out, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", Paper)
	return d
}

// End ends the drawing and returns the first error of writing.
func (d *Drawing) End() error {
	fmt.Fprintln(d.Out, "</svg>")
	return d.Out.Flush()
}

// Text writes a line of text, with more attributes as they are in SVG.
func (d *Drawing) Text(x, y float64, attributes, s string) { d.Markup(x, y, attributes, Escape(s)) }

// Markup is Text of what is SVG already.
func (d *Drawing) Markup(x, y float64, attributes, s string) {
	fmt.Fprintf(d.Out, `<text x="%s" y="%s" %s>%s</text>`+"\n", Px(x), Px(y), attributes, s)
}

// Turned writes upwards, with its middle at x, y.
func (d *Drawing) Turned(x, y float64, s string) {
	fmt.Fprintf(d.Out, `<text transform="translate(%s %s) rotate(-90)" text-anchor="middle" font-size="10">%s</text>`+"\n", Px(x), Px(y), Escape(s))
}

// Line draws a straight line, dashed unless dashes is "".
func (d *Drawing) Line(x1, y1, x2, y2 float64, colour string, width float64, dashes string) {
	if dashes != "" {
		dashes = ` stroke-dasharray="` + dashes + `"`
	}
	fmt.Fprintf(d.Out, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-width="%s"%s/>`+"\n", Px(x1), Px(y1), Px(x2), Px(y2), colour, Px(width), dashes)
}

// Dot draws a disc.
func (d *Drawing) Dot(x, y, r float64, colour string) {
	fmt.Fprintf(d.Out, `<circle cx="%s" cy="%s" r="%s" fill="%s"/>`+"\n", Px(x), Px(y), Px(r), colour)
}

// Px is a length in pixels, to a tenth.
func Px(x float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
}

// Escape writes text so that it is text in SVG, too.
func Escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes all
	return b.String()
}
