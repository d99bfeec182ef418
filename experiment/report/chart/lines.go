package chart

import "strings"

// Lines are curves through points, with bounds where those are known.
type Lines struct {
	Frame
	X, Y   Axis
	Curves []Line
	Spans  []Span  // of X
	Levels []Level // of Y
}

// Line is one curve.
type Line struct {
	Label  string
	Tone   Tone
	Points []Point // in order of X
	// Stepped holds each value until the next point; otherwise points are joined straight.
	Stepped bool
	// Loose leaves points unjoined.
	Loose bool
}

// Point is one of a [Line]. Low and High are the bounds of Y: if both are 0, there are none.
type Point struct{ X, Y, Low, High float64 }

// Span is a part of the X axis: a mark's interval.
type Span struct {
	From, To float64
	Label    string
	Tone     Tone
}

// Level is a horizontal line: a threshold.
type Level struct {
	Y     float64
	Label string
}

// mostMarkers is how many points of a curve have a marker each.
const mostMarkers = 60

// shows reports whether both axes can show the point.
func (l Lines) shows(p Point) bool {
	return finite(p.X) && finite(p.Y) && (!l.X.Log || p.X > 0) && (!l.Y.Log || p.Y > 0)
}

func (l Lines) draw(c *canvas) {
	xs, ys := empty, empty
	var labels []string
	for _, curve := range l.Curves {
		labels = append(labels, curve.Label)
		for _, p := range curve.Points {
			if !l.shows(p) {
				continue
			}
			xs.add(p.X)
			ys.add(p.Y)
			if p.bounded() && (!l.Y.Log || p.Low > 0) {
				ys.add(p.Low, p.High)
			}
		}
	}
	for _, s := range l.Spans {
		if !l.X.Log || s.From > 0 {
			xs.add(s.From, s.To)
		}
	}
	for _, v := range l.Levels {
		if !l.Y.Log || v.Y > 0 {
			ys.add(v.Y)
		}
	}
	if l.Y.Kind == Time && !l.Y.Log && ys.lo > 0 && ys.lo < ys.hi {
		ys.lo = 0
	}
	if len(labels) == 1 {
		labels = nil
	}
	curves := len(labels)
	for _, v := range l.Levels {
		labels = append(labels, v.Label)
	}
	if len(labels) > 0 {
		c.legend(labels, func(i int, x, y float64) {
			if i >= curves {
				c.line(x, y, x+22, y, levelClass(i-curves))
				return
			}
			curve := l.Curves[i]
			if !curve.Loose {
				c.line(x, y, x+22, y, curve.Tone.class()+" curve "+curve.Tone.dash())
			}
			curve.Tone.marker(c, x+11, y)
		})
	}
	if l.Y.Title != "" {
		c.y += 15
	}
	title := c.y
	if len(l.Spans) > 0 {
		c.y += 16 * float64(len(l.Spans))
	}
	const height = 200.0
	top, bottom := c.y+6, c.y+6+height
	y := newScale(l.Y, ys, bottom, top)
	left := y.gutter(30)
	x := newScale(l.X, xs, left+2, c.w-10)
	if l.Y.Title != "" {
		c.text(0, title, "start", "soft", textSize, y.caption(), c.w)
	}
	for i, s := range l.Spans {
		s.draw(c, x, title+16*float64(i+1), bottom)
	}
	y.beside(c, left, c.w-10, 30)
	c.y = bottom
	x.below(c, top)
	for i, v := range l.Levels {
		if finite(v.Y) {
			c.line(left, y.at(v.Y), c.w-10, y.at(v.Y), levelClass(i))
		}
	}
	for _, curve := range l.Curves {
		l.curve(c, curve, x, y)
	}
}

func levelClass(i int) string { return "level " + [...]string{"d1", "d2", "d3"}[i%3] }

func (p Point) bounded() bool {
	return (p.Low != 0 || p.High != 0) && finite(p.Low) && finite(p.High)
}

func (l Lines) curve(c *canvas, curve Line, x, y scale) {
	class := curve.Tone.class()
	var d strings.Builder
	var shown []Point
	for _, p := range curve.Points {
		if !l.shows(p) {
			continue
		}
		px, py := num(x.at(p.X)), num(y.at(p.Y))
		switch {
		case len(shown) == 0:
			d.WriteString("M" + px + " " + py)
		case curve.Stepped:
			d.WriteString("H" + px + "V" + py)
		default:
			d.WriteString("L" + px + " " + py)
		}
		shown = append(shown, p)
	}
	if len(shown) > 1 && !curve.Loose {
		c.put(`<path d="{}" class="{} curve {}"/>`, d.String(), class, curve.Tone.dash())
	}
	for _, p := range shown {
		if p.bounded() {
			at, low, high := x.at(p.X), y.at(p.Low), y.at(p.High)
			c.put(`<path d="M{} {}h8M{} {}V{}M{} {}h8" class="whisker"/>`, at-4, low, at, low, high, at-4, high)
		}
	}
	if len(shown) <= mostMarkers && !curve.Stepped {
		for _, p := range shown {
			curve.Tone.marker(c, x.at(p.X), y.at(p.Y))
		}
	}
}

func (s Span) draw(c *canvas, x scale, label, bottom float64) {
	if !finite(s.From) || !finite(s.To) {
		return
	}
	from, to := x.at(min(s.From, s.To)), x.at(max(s.From, s.To))
	c.rect(from, label+4, to, bottom-label-4, ` class="`+s.Tone.class()+` pale"`)
	anchor, at := "start", from
	if from > c.w*0.6 {
		anchor, at = "end", to
	}
	c.text(at, label, anchor, "tick", tickSize, s.Label, c.w/2)
}
