package chart

import (
	"cmp"
	"slices"
	"strings"
)

// Series shows how times change over a run: a panel for each line, on one axis from the
// first to the last.
type Series struct {
	Frame
	XTitle string // "reconfiguration"
	YTitle string // "since the command"; the unit is added
	Lines  []SeriesLine
	Events []Event
}

// SeriesLine is one thing that is followed: for each bin the median, as a line, and a band
// around it.
type SeriesLine struct {
	Label string
	Tone  Tone
	Bins  []Bin // in order
}

// Bin is what was seen from one place to another of the axis.
type Bin struct {
	From, To          float64
	Low, Median, High int64 // ns
}

// Event is a vertical line.
type Event struct {
	At    float64
	Label string // "null toggle", "resumed": events of one label have one sign
}

// mostEvents is how many lines of one label are drawn, spread evenly.
const mostEvents = 100

func (s Series) draw(c *canvas) {
	const height, gap, room = 78.0, 26.0, 18.0
	extent := empty
	for _, l := range s.Lines {
		for _, b := range l.Bins {
			extent.add(b.From, b.To)
		}
	}
	for _, e := range s.Events {
		extent.add(e.At)
	}
	labels := s.labels()
	c.legend(labels, func(i int, x, y float64) { c.line(x+11, y-8, x+11, y+7, eventClass(i)) })

	scales := make([]scale, len(s.Lines))
	left := 0.0
	for i, l := range s.Lines {
		values := empty
		for _, b := range l.Bins {
			values.add(float64(b.Low), float64(b.High))
		}
		y := newScale(Axis{}, values, height, 0)
		scales[i] = y
		left = max(left, y.gutter(room))
	}
	x := newScale(Axis{Title: s.XTitle, Kind: Number, Whole: true}, extent, left, c.w-8)
	if extent.lo <= extent.hi {
		x.lo, x.hi = extent.lo, max(extent.hi, extent.lo+1)
	}
	top := c.y
	for i, l := range s.Lines {
		c.y += gap - 8
		l.Tone.marker(c, 6, c.y-4.5)
		c.text(18, c.y, "start", "part", textSize, l.Label, c.w/2)
		title := "(" + scales[i].unitName + ")"
		if !c.slim() {
			title = strings.TrimSpace(s.YTitle + " " + title)
		}
		c.text(c.w-8, c.y, "end", "tick", tickSize, title, c.w/2)
		c.y += 8
		y := scales[i]
		y.from, y.to = c.y+height, c.y
		y.beside(c, left, c.w-8, room)
		l.draw(c, x, y)
		c.y += height
		c.line(left, c.y, c.w-8, c.y, "axis")
	}
	s.events(c, labels, x, top, c.y)
	x.below(c, c.y)
}

// labels are the distinct ones of events.
func (s Series) labels() []string {
	var labels []string
	for _, e := range s.Events {
		if !slices.Contains(labels, e.Label) {
			labels = append(labels, e.Label)
		}
	}
	return labels
}

func eventClass(i int) string { return "event " + [...]string{"d2", "d0", "d1", "d3"}[i%4] }

func (s Series) events(c *canvas, labels []string, x scale, top, bottom float64) {
	for i, label := range labels {
		var at []float64
		for _, e := range s.Events {
			if e.Label == label && finite(e.At) {
				at = append(at, e.At)
			}
		}
		slices.SortFunc(at, cmp.Compare[float64])
		step := max(1, (len(at)+mostEvents-1)/mostEvents)
		var d strings.Builder
		for k := 0; k < len(at); k += step {
			d.WriteString("M" + num(x.at(at[k])) + " " + num(top+4) + "V" + num(bottom))
		}
		c.put(`<path d="{}" class="{}"/>`, d.String(), eventClass(i))
	}
}

func (l SeriesLine) draw(c *canvas, x, y scale) {
	if len(l.Bins) == 0 {
		return
	}
	var band, back, line strings.Builder
	for i, b := range l.Bins {
		// A bin reaches to the next, as far as that is not further than it is wide itself.
		middle := x.at((b.From + b.To) / 2)
		command := "L"
		if i == 0 {
			command = "M"
		}
		band.WriteString(command + num(middle) + " " + num(y.at(float64(b.High))))
		line.WriteString(command + num(middle) + " " + num(y.at(float64(b.Median))))
	}
	for i := len(l.Bins) - 1; i >= 0; i-- {
		b := l.Bins[i]
		back.WriteString("L" + num(x.at((b.From+b.To)/2)) + " " + num(y.at(float64(b.Low))))
	}
	class := l.Tone.class()
	if len(l.Bins) == 1 {
		b := l.Bins[0]
		middle := x.at((b.From + b.To) / 2)
		c.line(middle, y.at(float64(b.Low)), middle, y.at(float64(b.High)), class+" curve")
		l.Tone.marker(c, middle, y.at(float64(b.Median)))
		return
	}
	c.put(`<path d="{}{}Z" class="{} pale"/>`, band.String(), back.String(), class)
	c.put(`<path d="{}" class="{} curve"/>`, line.String(), class)
}
