package chart

// Boxes are box plots, a row for each, on one axis of time.
type Boxes struct {
	Frame
	Rows []Box
}

// Box is one row, in nanoseconds: quartiles, whiskers, and what lies outside of them.
type Box struct {
	Group                     string // rows of one group stand together under this heading
	Label                     string
	Tone                      Tone
	Low, Q1, Median, Q3, High int64
	Least, Most               int64 // of all; both 0 if they are not known
	Outliers                  []int64
	Note                      string // beside the row: "n 30"
}

// mostOutliers is how many points of a row are drawn: those farthest out.
const mostOutliers = 60

func (b Boxes) draw(c *canvas) {
	extent := empty
	for _, r := range b.Rows {
		extent.add(float64(r.Low), float64(r.Q1), float64(r.Q3), float64(r.High))
		least, most := r.ends()
		if least > 0 || r.Low <= 0 { // the least of all takes no logarithmic axis away
			extent.add(float64(least))
		}
		extent.add(float64(most))
		for _, o := range r.Outliers {
			extent.add(float64(o))
		}
	}
	if !extent.wide() && extent.lo > 0 && extent.lo < extent.hi/2 {
		extent.lo = 0 // a scale that begins with the command, when that costs little
	}
	layout := c.rows(len(b.Rows), func(i int) string { return b.Rows[i].Label }, func(i int) string { return b.Rows[i].Note }, nil)
	if layout.left < 90 && !layout.above {
		layout.left = 90 // for the groups
	}
	x := newScale(Axis{Title: "time since the command", Log: extent.wide()},
		extent, layout.left, layout.right)

	const heading = 24
	top := c.y
	end := top + float64(len(b.Rows))*layout.height
	for i, r := range b.Rows {
		if b.begins(i) && r.Group != "" {
			end += heading
		}
	}
	c.y = end + 2
	x.below(c, top)
	end, c.y = c.y, top
	for i, r := range b.Rows {
		if b.begins(i) && r.Group != "" {
			r.Tone.marker(c, 6, c.y+13)
			c.text(18, c.y+17.5, "start", "part", textSize, r.Group, c.w)
			c.y += heading
		}
		layout.texts(c, r.Label, "", r.Note)
		r.draw(c, x, c.y+layout.bar)
		c.y += layout.height
	}
	c.y = end
}

// begins reports whether row i is the first of its group.
func (b Boxes) begins(i int) bool { return i == 0 || b.Rows[i].Group != b.Rows[i-1].Group }

// ends are the least and the most, which are not inside of the whiskers.
func (r Box) ends() (least, most int64) {
	if r.Least == 0 && r.Most == 0 {
		return r.Low, r.High
	}
	return min(r.Least, r.Low), max(r.Most, r.High)
}

func (r Box) draw(c *canvas, x scale, y float64) {
	at := func(ns int64) float64 { return x.at(float64(ns)) }
	if least, most := r.ends(); least < r.Low || most > r.High {
		c.line(at(least), y, at(r.Low), y, "lead")
		c.line(at(r.High), y, at(most), y, "lead")
	}
	c.line(at(r.Low), y, at(r.Q1), y, "whisker")
	c.line(at(r.Q3), y, at(r.High), y, "whisker")
	c.line(at(r.Low), y-4, at(r.Low), y+4, "whisker")
	c.line(at(r.High), y-4, at(r.High), y+4, "whisker")
	c.rect(at(r.Q1), y-7, at(r.Q3), 14, ` class="`+r.Tone.class()+` ground"`)
	c.rect(at(r.Q1), y-7, at(r.Q3), 14, ` class="`+r.Tone.class()+` pale edge"`)
	c.line(at(r.Median), y-8.5, at(r.Median), y+8.5, r.Tone.class()+" median")
	for _, o := range r.Outliers[:min(len(r.Outliers), mostOutliers)] {
		c.put(`<circle cx="{}" cy="{}" r="2.4" class="{} hollow"/>`, at(o), y, r.Tone.class())
	}
}
