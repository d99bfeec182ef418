package chart

import (
	"strings"

	"github.com/ocslab/ocslab/timeline"
)

// CDF shows which part of all durations was not above a time. Of durations that are intervals
// it is known for some stretches only by how much the curve rises there, and not where: such a
// stretch is a box.
type CDF struct {
	Frame
	Curves []Curve
}

// Curve is one of a [CDF].
type Curve struct {
	Label        string
	Tone         Tone
	Distribution timeline.Distribution
}

// mostSteps is how many steps of a distribution are drawn; others are joined with
// neighbours, outwards.
const mostSteps = 200

func (d CDF) draw(c *canvas) {
	extent, late := empty, empty // late: of what never came
	for _, curve := range d.Curves {
		for _, s := range curve.Distribution.Steps {
			if s.Latest < timeline.Never {
				extent.add(float64(s.Earliest), float64(s.Latest))
			} else {
				late.add(float64(s.Earliest))
			}
		}
	}
	if extent.lo > extent.hi {
		extent = late
	}
	a := Axis{Title: "time since the command", Log: extent.wide()}

	labels := make([]string, len(d.Curves))
	for i, curve := range d.Curves {
		labels[i] = curve.Label
	}
	if len(labels) > 1 || len(labels) == 1 && labels[0] != "" {
		c.legend(labels, func(i int, x, y float64) {
			t := d.Curves[i].Tone
			c.rect(x, y-5, x+22, 10, ` class="`+t.class()+` pale"`)
			c.line(x, y, x+22, y, t.class()+" curve "+t.dash())
		})
	}
	c.y += 15
	c.text(0, c.y, "start", "soft", textSize, "part of all durations (%)", c.w)
	c.y += 6
	height := 190.0
	top, bottom := c.y+6, c.y+6+height
	y := newScale(Axis{Kind: Portion}, span{0, 1}, bottom, top)
	left := y.gutter(36)
	x := newScale(a, extent, left+4, c.w-10)
	y.beside(c, left, c.w-10, 36)
	c.y = bottom
	x.below(c, top)
	for _, curve := range d.Curves {
		curve.draw(c, x, y)
	}
}

func (curve Curve) draw(c *canvas, x, y scale) {
	steps := join(curve.Distribution.Steps, x)
	if len(steps) == 0 {
		return
	}
	// The upper edge there, and the lower edge back.
	var upper, lower strings.Builder
	upper.WriteString("M" + num(x.from) + " " + num(y.at(0)))
	lower.WriteString("M" + num(x.from) + " " + num(y.at(0)))
	mass, low := 0.0, 0.0
	back := make([]string, 0, 2*len(steps))
	back = append(back, "H"+num(x.from))
	for _, s := range steps {
		if s.never && s.from >= x.to {
			break // it may come any time later than is drawn
		}
		mass += s.Mass
		upper.WriteString("H" + num(s.from) + "V" + num(y.at(mass)))
		if s.never {
			continue
		}
		lower.WriteString("H" + num(s.to) + "V" + num(y.at(mass)))
		back = append(back, "V"+num(y.at(low)), "H"+num(s.to))
		low = mass
	}
	back = append(back, "V"+num(y.at(low)))
	// All curves go on to the right end, where what never came is still missing.
	upper.WriteString("H" + num(x.to))
	lower.WriteString("H" + num(x.to))
	var area strings.Builder
	area.WriteString(upper.String())
	for i := len(back) - 1; i >= 0; i-- {
		area.WriteString(back[i])
	}
	class := curve.Tone.class()
	c.put(`<path d="{}Z" class="{} pale"/>`, area.String(), class)
	c.put(`<path d="{}{}" class="{} curve {}"/>`, upper.String(), lower.String(), class, curve.Tone.dash())
}

// drawn is a step in pixels.
type drawn struct {
	from, to float64
	never    bool
	Mass     float64
}

// join brings steps to pixels and joins neighbours that lie so close together that nobody
// could tell, until few enough are left. Joined steps reach as far as all of them did.
func join(steps []timeline.Step, x scale) []drawn {
	joined := make([]drawn, 0, mostSteps)
	for near := 0.5; ; near *= 2 {
		joined = joined[:0]
		for _, step := range steps {
			s := drawn{x.at(float64(step.Earliest)), x.at(float64(step.Latest)), step.Latest >= timeline.Never, step.Mass}
			last := len(joined) - 1
			if last < 0 || s.never != joined[last].never || s.to-joined[last].from > near {
				if joined = append(joined, s); len(joined) > mostSteps {
					break
				}
				continue
			}
			joined[last].to = max(joined[last].to, s.to)
			joined[last].Mass += s.Mass
		}
		if len(joined) <= mostSteps || near > x.to-x.from { // the latter only of steps out of order
			return joined
		}
	}
}
