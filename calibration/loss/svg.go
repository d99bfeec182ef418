package loss

import (
	"fmt"
	"io"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/svg"
	"github.com/ocslab/ocslab/ocs"
)

// Colours of steps from good to bad: viridis, which those who see few colours read well, and
// which is light at one end, so that paper in black and white shows the same.
var colours = []string{
	"#440154", "#482677", "#404788", "#33638d", "#287d8e", "#1f968b",
	"#29af7f", "#55c667", "#95d840", "#dce319",
}

const (
	colourNoReference = "#d5d9de"
	colourFlag        = "#d6002f"
	hoverCells        = 128 * 128 // up to so many cells have a title each
)

// SVG draws the map as a picture with a legend, on a paper of its own: rows are ingress ports,
// columns egress ports; dark paths are hatched, and what is flagged has a frame, or a triangle
// beside its row or column. Cells say their loss when pointed at; in maps of more than
// 128 x 128, those that are flagged or dark do, and rows for their ports. Errors are those of w.
func (m *Map) SVG(w io.Writer, title string, flags []Flag) error {
	const left, top, wide = 56.0, 92.0, 640.0
	rows, columns := len(m.Ingress), len(m.Egress)
	size := min(max(float64(int(wide/float64(max(rows, columns, 1)))), 2), 26)
	mapWide, mapHigh := size*float64(columns), size*float64(rows)
	lines := flagLines(flags, int(max(left+mapWide, 560)/5.6))
	legendAt := top + mapHigh + 44
	d := svg.New(w, max(left+mapWide+40, 600), legendAt+70+15*float64(len(lines)), title)
	fmt.Fprintf(d.Out, `<defs><pattern id="dark" width="4" height="4" patternUnits="userSpaceOnUse"><rect width="4" height="4" fill="#fff"/><path d="M-1 1l2-2M0 4l4-4M3 5l2-2" stroke="%s" stroke-width="1.1"/></pattern></defs>`+"\n", svg.Ink)
	d.Text(14, 22, `font-size="14" font-weight="bold"`, title)
	d.Text(14, 41, fmt.Sprintf(`fill="%s"`, svg.Faint), m.oneLine())
	d.Text(left, top-30, `font-size="10"`, "egress port →")
	d.Turned(14, top+min(mapHigh/2, 200), "← ingress port")
	m.axes(d, left, top, size)
	sc := m.scale(len(colours))
	m.paint(d, sc, left, top, size)
	m.hover(d, left, top, size)
	m.marks(d, flags, left, top, size)
	fmt.Fprintf(d.Out, `<rect x="%s" y="%s" width="%s" height="%s" fill="none" stroke="%s"/>`+"\n", svg.Px(left), svg.Px(top), svg.Px(mapWide), svg.Px(mapHigh), svg.Faint)
	m.key(d, sc, left, legendAt)
	for i, l := range lines {
		d.Text(left, legendAt+66+15*float64(i), "", l)
	}
	return d.End()
}

// oneLine says in a line how good the map is.
func (m *Map) oneLine() string {
	text := fmt.Sprintf("%d x %d ports, %s measured", len(m.Ingress), len(m.Egress), natural.Count(m.Count(Measured), "path"))
	if mid, ok := m.Median(); ok {
		text += fmt.Sprintf("; median %v, ±%.2f dB (k = 2), ±%.2f over time", mid, float64(m.U()), float64(m.RelativeU()))
	}
	return text
}

// flagLines are the first flags as lines of so many characters.
func flagLines(flags []Flag, width int) (lines []string) {
	const most = 12
	for i, f := range flags {
		if i == most {
			return append(lines, fmt.Sprintf("and %d more", len(flags)-most))
		}
		lines = append(lines, strings.Split(natural.Wrap(f.Text, width, ""), "\n")...)
	}
	return lines
}

// axes writes the numbers of ports, as many as have room.
func (m *Map) axes(d *svg.Drawing, left, top, size float64) {
	every := 1
	for float64(every)*size < 22 {
		every *= 2
	}
	for j := 0; j < len(m.Egress); j += every {
		x := left + (float64(j)+0.5)*size
		d.Line(x, top-4, x, top, svg.Faint, 1, "")
		d.Text(x, top-14, `text-anchor="middle" font-size="10"`, m.Egress[j].String())
	}
	every = 1
	for float64(every)*size < 13 {
		every *= 2
	}
	for i := 0; i < len(m.Ingress); i += every {
		y := top + (float64(i)+0.5)*size
		d.Line(left-4, y, left, y, svg.Faint, 1, "")
		d.Text(left-14, y+3.5, `text-anchor="end" font-size="10"`, m.Ingress[i].String())
	}
}

// paint draws all cells, one path of SVG for each colour.
func (m *Map) paint(d *svg.Drawing, sc scale, left, top, size float64) {
	const dark, none = 1000, 1001
	shapes := map[int]*strings.Builder{}
	colourOf := func(i, j int) (int, bool) {
		switch c := m.At(i, j); c.State {
		case Measured:
			return sc.of(c.Loss), true
		case Dark:
			return dark, true
		case NoReference:
			return none, true
		}
		return 0, false
	}
	for i := range m.Ingress {
		for j := 0; j < len(m.Egress); {
			k, ok := colourOf(i, j)
			end := j + 1
			for ; end < len(m.Egress); end++ { // cells of one colour are one stripe
				if next, also := colourOf(i, end); next != k || also != ok {
					break
				}
			}
			if ok {
				if shapes[k] == nil {
					shapes[k] = &strings.Builder{}
				}
				length := svg.Px(size * float64(end-j))
				fmt.Fprintf(shapes[k], "M%s %sh%sv%sh-%sz", svg.Px(left+size*float64(j)), svg.Px(top+size*float64(i)), length, svg.Px(size), length)
			}
			j = end
		}
	}
	for k := range len(colours) {
		if s := shapes[k]; s != nil {
			fmt.Fprintf(d.Out, `<path fill="%s" shape-rendering="crispEdges" d="%s"/>`+"\n", colours[k], s)
		}
	}
	if s := shapes[none]; s != nil {
		fmt.Fprintf(d.Out, `<path fill="%s" d="%s"/>`+"\n", colourNoReference, s)
	}
	if s := shapes[dark]; s != nil {
		fmt.Fprintf(d.Out, `<path fill="url(#dark)" d="%s"/>`+"\n", s)
	}
}

// says is what a cell says when it is pointed at.
func (m *Map) says(i, j int) string {
	c := m.At(i, j)
	switch c.State {
	case Measured:
		return fmt.Sprintf("%v: %v", m.Path(i, j), c.Loss)
	case Dark:
		return fmt.Sprintf("%v: dark, above %.1f dB", m.Path(i, j), float64(c.Loss))
	case NoPath:
		return ""
	}
	return fmt.Sprintf("%v: %v", m.Path(i, j), c.State)
}

// hover lays clear rectangles over the map that have titles.
func (m *Map) hover(d *svg.Drawing, left, top, size float64) {
	area := func(x, y, width float64, says string) {
		fmt.Fprintf(d.Out, `<rect x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`+"\n", svg.Px(x), svg.Px(y), svg.Px(width), svg.Px(size), svg.Escape(says))
	}
	fmt.Fprintln(d.Out, `<g fill-opacity="0">`)
	each := len(m.cells) <= hoverCells
	for i := range m.Ingress {
		y := top + size*float64(i)
		if !each {
			area(left, y, size*float64(len(m.Egress)), m.rowSays(i))
		}
		for j := range m.Egress {
			if says := m.says(i, j); each && says != "" {
				area(left+size*float64(j), y, size, says)
			}
		}
	}
	fmt.Fprintln(d.Out, "</g>")
}

// rowSays is what a row says when it is pointed at.
func (m *Map) rowSays(i int) string {
	var all []float64
	dark := 0
	for j := range m.Egress {
		switch c := m.At(i, j); c.State {
		case Measured:
			all = append(all, float64(c.Loss))
		case Dark:
			dark++
		}
	}
	text := fmt.Sprintf("ingress %d: %s", m.Ingress[i], natural.Count(len(all), "path"))
	if len(all) > 0 {
		mid := medianOf(all) // sorts
		text += fmt.Sprintf(", %.2f dB in the median, %.2f to %.2f", mid, all[0], all[len(all)-1])
	}
	if dark > 0 {
		text += fmt.Sprintf(", %d dark", dark)
	}
	return text
}

// marks points at what is flagged.
func (m *Map) marks(d *svg.Drawing, flags []Flag, left, top, size float64) {
	triangle := func(x, y, dx, dy float64, says string) { // its tip, and where it points
		fmt.Fprintf(d.Out, `<path fill="%s" d="M%s %sL%s %sL%s %sz"><title>%s</title></path>`+"\n", colourFlag,
			svg.Px(x), svg.Px(y), svg.Px(x-8*dx-4*dy), svg.Px(y-8*dy-4*dx), svg.Px(x-8*dx+4*dy), svg.Px(y-8*dy+4*dx), svg.Escape(says))
	}
	const most = 2000
	for n, f := range flags {
		if n == most {
			return
		}
		if f.Path != (ocs.CrossConnect{}) {
			i, j := m.index(f.Path)
			fmt.Fprintf(d.Out, `<rect x="%s" y="%s" width="%s" height="%s" fill="#fff" fill-opacity="0" stroke="%s" stroke-width="2"><title>%s</title></rect>`+"\n",
				svg.Px(left+size*float64(j)-1), svg.Px(top+size*float64(i)-1), svg.Px(size+2), svg.Px(size+2), colourFlag, svg.Escape(m.says(i, j)+"; "+f.Text))
			continue
		}
		for i, p := range m.Ingress {
			if p == f.Port && f.Side == "ingress" {
				triangle(left+size*float64(len(m.Egress))+3, top+size*(float64(i)+0.5), -1, 0, f.Text)
			}
		}
		for j, p := range m.Egress {
			if p == f.Port && f.Side == "egress" {
				triangle(left+size*(float64(j)+0.5), top+size*float64(len(m.Ingress))+3, 0, -1, f.Text)
			}
		}
	}
}

// key draws the legend.
func (m *Map) key(d *svg.Drawing, sc scale, x, y float64) {
	const wide = 40.0
	d.Text(x, y-6, `font-size="10"`, "insertion loss, dB")
	for k, c := range colours {
		fmt.Fprintf(d.Out, `<rect x="%s" y="%s" width="%s" height="12" fill="%s"/>`+"\n", svg.Px(x+wide*float64(k)), svg.Px(y), svg.Px(wide), c)
		d.Text(x+wide*float64(k), y+25, `text-anchor="middle" font-size="10"`, fmt.Sprintf("%.2f", sc.from(k)))
	}
	d.Text(x+wide*float64(len(colours)), y+25, `text-anchor="middle" font-size="10"`, "and more")
	at := x
	for _, s := range []struct {
		State
		fill, text string
	}{{Dark, "url(#dark)", "dark"}, {NoReference, colourNoReference, "no reference"}, {Unmeasured, svg.Paper, "not measured"}} {
		if m.Count(s.State) > 0 {
			fmt.Fprintf(d.Out, `<rect x="%s" y="%s" width="12" height="12" fill="%s" stroke="%s"/>`+"\n", svg.Px(at), svg.Px(y+34), s.fill, svg.Faint)
			d.Text(at+18, y+44, "", s.text)
			at += 110
		}
	}
}
