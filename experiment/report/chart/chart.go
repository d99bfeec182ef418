package chart

import (
	"html/template"
	"io"
)

// Chart is one of the types of this package.
type Chart interface {
	frame() Frame
	// draw draws below c.y, and moves that down.
	draw(c *canvas)
}

// Frame is what all charts have.
type Frame struct {
	Title string // what it shows; also for those who cannot see it
	About string // what is to be seen in it, in a sentence or two, for those who cannot; may be ""
}

func (f Frame) frame() Frame { return f }

// Title is that of a chart.
func Title(c Chart) string { return c.frame().Title }

// Stack is several charts, one below the other, in one drawing; each has its title above it.
type Stack struct {
	Frame
	Charts []Chart
}

// SVG writes a file with one chart, its title above it, and its own style.
func SVG(w io.Writer, chart Chart) error {
	c := newCanvas(wide)
	c.title(chart.frame().Title, true)
	chart.draw(c)
	_, err := io.WriteString(w, c.file(chart.frame()))
	return err
}

// HTML returns a chart without a visible title, for a page that holds [Style] and [Defs]
// once. It is drawn twice, for a column of text and for a telephone, of which the style
// shows one.
func HTML(chart Chart) template.HTML {
	var both string
	for _, v := range []struct {
		width float64
		class string
	}{{wide, "oc oc-wide"}, {narrow, "oc oc-narrow"}} {
		c := newCanvas(v.width)
		chart.draw(c)
		both += c.element(chart.frame(), v.class)
	}
	return template.HTML(both)
}

func (s Stack) draw(c *canvas) {
	for i, chart := range s.Charts {
		if i > 0 {
			c.y += 14
		}
		c.title(chart.frame().Title, false)
		chart.draw(c)
	}
}
