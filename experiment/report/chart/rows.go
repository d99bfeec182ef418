package chart

// rows lays out charts that have a row for each thing: beside the plot are labels and notes
// or, where there is no room, above each row.
type rows struct {
	left, right float64 // of the plot
	height      float64 // of a row
	bar         float64 // the middle of a bar, below the top of its row
	above       bool
}

const (
	mostLabel = 320.0 // pixels
	mostNote  = 215.0
)

// rows finds the places for n rows. Sub is a second line below a label, "" if it has none; nil
// if none has.
func (c *canvas) rows(n int, label, note, sub func(i int) string) rows {
	var labels, notes float64
	tall := false // some rows have two lines
	for i := range n {
		labels = max(labels, textWidth(clean(label(i)), textSize))
		notes = max(notes, textWidth(clean(note(i)), textSize))
		if sub != nil && sub(i) != "" {
			labels = max(labels, textWidth(clean(sub(i)), tickSize))
			tall = true
		}
	}
	if c.slim() {
		r := rows{left: 6, right: c.w - 10, height: 38, bar: 27, above: true}
		if tall {
			r.height, r.bar = 53, 42
		}
		return r
	}
	r := rows{left: 12, right: c.w - 12, height: 25, bar: 12.5}
	if tall {
		r.height, r.bar = 34, 16
	}
	if labels > 0 {
		r.left = min(labels, mostLabel) + 12
	}
	if notes > 0 {
		r.right = c.w - min(notes, mostNote) - 12
	}
	return r
}

// texts writes the label, its second line, and the note of the row that begins at c.y.
func (r rows) texts(c *canvas, label, sub, note string) {
	if !r.above {
		y := c.y + r.bar + 4.5
		if sub != "" {
			c.text(r.left-10, y+7, "end", "tick", tickSize, sub, mostLabel)
			y -= 7
		}
		c.text(r.left-10, y, "end", "", textSize, label, mostLabel)
		if note != "" {
			c.text(r.right+12, c.y+r.bar+4.5, "start", "soft", textSize, note, mostNote)
		}
		return
	}
	y := c.y + 14
	if sub != "" {
		c.text(0, y+15, "start", "tick", tickSize, sub, c.w)
	}
	noteWidth := textWidth(clean(note), textSize)
	c.text(0, y, "start", "", textSize, label, c.w-noteWidth-10)
	if note != "" {
		c.text(c.w, y, "end", "soft", textSize, note, c.w)
	}
}
