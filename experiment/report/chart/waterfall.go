package chart

import "github.com/ocslab/ocslab/timeline"

// Waterfall shows when things came to be, a row for each, on one axis of time. A bar goes
// from where the one before ended to where this one is, and a whisker as far as that may be
// off.
type Waterfall struct {
	Frame
	Rows []Row
}

// Row is a line of a [Waterfall]. All times are since the command, in nanoseconds.
type Row struct {
	Label string
	Sub   string // a second line of the label; may be ""
	Tone  Tone
	From  int64             // where the bar begins
	To    int64             // and ends
	At    timeline.Interval // what To may be: the ends of a mark, or confidence bounds
	// Tail is the end of the spread of what To is the median of, such as the 95th
	// percentile; not above To there is none.
	Tail int64
	Note string // beside the bar: "203.1 ms ±0.4"
	// Absent is a row without a bar: what was expected and did not come.
	Absent bool
}

func (w Waterfall) draw(c *canvas) {
	extent := empty
	extent.add(0)
	for _, r := range w.Rows {
		if !r.Absent {
			extent.add(float64(r.To), float64(max(r.Tail, r.To)), float64(r.At.Earliest))
			if r.At.Latest < timeline.Never {
				extent.add(float64(r.At.Latest))
			}
		}
	}
	layout := c.rows(len(w.Rows), func(i int) string { return w.Rows[i].Label }, func(i int) string { return w.Rows[i].Note },
		func(i int) string { return w.Rows[i].Sub })
	x := newScale(Axis{Title: "time since the command"}, extent, layout.left, layout.right)

	// The grid lies below the bars, so room is kept for it first.
	top := c.y
	c.y += float64(len(w.Rows)) * layout.height
	bottom := c.y + 4
	c.y = bottom
	x.below(c, top)
	end := c.y
	c.line(x.at(0), top, x.at(0), bottom, "axis")
	c.y = top
	for _, r := range w.Rows {
		layout.texts(c, r.Label, r.Sub, r.Note)
		r.draw(c, x, c.y+layout.bar)
		c.y += layout.height
	}
	c.y = end
}

// draw draws what is in the plot, with its middle at y.
func (r Row) draw(c *canvas, x scale, y float64) {
	if r.Absent {
		c.line(x.from, y, x.to, y, "lead")
		return
	}
	zero, from, to := x.at(0), x.at(float64(min(r.From, r.To))), x.at(float64(r.To))
	if from > zero {
		c.line(zero, y, from, y, "lead")
	}
	if r.Tail > r.To {
		c.rect(to, y-4, x.at(float64(r.Tail)), 8, ` class="`+r.Tone.class()+` pale"`)
	}
	c.rect(from, y-6, to, 12, r.Tone.paint())
	if r.At.Earliest < r.At.Latest {
		c.whisker(x.at(float64(r.At.Earliest)), x.at(float64(r.At.Latest)), y, 8, "whisker")
	} else {
		c.line(to, y-8, to, y+8, "whisker")
	}
}
