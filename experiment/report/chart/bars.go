package chart

// Bars are stacked bars, a row for each.
type Bars struct {
	Frame
	Axis Axis // is never logarithmic
	Rows []Bar
}

// Bar is one row.
type Bar struct {
	Label string
	Parts []Part
	Note  string // beside the bar
}

// Part is a piece of a [Bar]. What is not above 0 is left out.
type Part struct {
	Label string // in the legend, once for each label
	Tone  Tone
	Value float64
}

func (b Bars) draw(c *canvas) {
	extent := empty
	extent.add(0)
	var labels []string
	var tones []Tone
	known := map[string]bool{}
	for _, r := range b.Rows {
		sum := 0.0
		for _, p := range r.Parts {
			if !known[p.Label] {
				known[p.Label] = true
				labels, tones = append(labels, p.Label), append(tones, p.Tone)
			}
			if p.Value > 0 && finite(p.Value) {
				sum += p.Value
			}
		}
		if b.Axis.Kind == Portion && sum < 1.001 {
			sum = min(sum, 1)
		}
		extent.add(sum)
	}
	if b.Axis.Kind == Portion {
		extent.add(1)
	}
	if len(labels) > 1 {
		c.legend(labels, func(i int, x, y float64) {
			c.rect(x, y-5.5, x+22, 11, tones[i].paint())
			tones[i].marker(c, x+11, y)
		})
		c.y += 4
	}
	a := b.Axis
	a.Log = false
	layout := c.rows(len(b.Rows), func(i int) string { return b.Rows[i].Label }, func(i int) string { return b.Rows[i].Note }, nil)
	x := newScale(a, extent, layout.left, layout.right)
	top := c.y
	c.y += float64(len(b.Rows))*layout.height + 3
	x.below(c, top)
	end := c.y
	c.y = top
	for _, r := range b.Rows {
		layout.texts(c, r.Label, "", r.Note)
		at := 0.0
		for _, p := range r.Parts {
			if !(p.Value > 0) || !finite(p.Value) {
				continue
			}
			from, to := x.at(at), x.at(at+p.Value)
			c.put(`<rect x="{}" y="{}" width="{}" height="15"{}/>`, from, c.y+layout.bar-7.5, max(to-from-0.8, 0.4), p.Tone.paint())
			if to-from >= 20 {
				p.Tone.marker(c, (from+to)/2, c.y+layout.bar)
			}
			at += p.Value
		}
		c.y += layout.height
	}
	c.y = end
}
