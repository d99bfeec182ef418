package mzi

import (
	"context"
	"errors"
	"math"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// loop measures the row of an element of the loop network, by as many ways to it as it
// takes: first what the heat of those adds that its light does not pass, all at once, then
// of the others, one by one.
func (c *coupler) loop(ctx context.Context, e ocst.Element) error {
	c.tell(Progress{Step: "coupling", Done: int(e), Total: ocst.Elements, Detail: e.String()})
	if !c.usable[e] {
		return nil
	}
	left := c.around(e)
	for _, free := range []bool{true, false} {
		for _, w := range c.known.ways(e) {
			var now, later []ocst.Element
			for _, j := range left {
				if !w.usable(c.usable) || w.fixed.has(j) || free && (w.passed|w.stray).has(j) {
					later = append(later, j)
				} else {
					now = append(now, j)
				}
			}
			if len(now) == 0 {
				continue
			}
			left = later
			if err := c.along(ctx, e, &w, now, free); err != nil {
				return err
			}
		}
	}
	for _, j := range left {
		c.unobserved(e, j, "it keeps stray light away, and must stay as it is")
	}
	return nil
}

// along measures what an element gains from others, in light that comes by a way.
func (c *coupler) along(ctx context.Context, e ocst.Element, w *way, from []ocst.Element, free bool) error {
	if err := c.Light(ctx, 1<<w.lane); err != nil {
		return err
	}
	base := c.background
	w.put(&base)
	reads := couplingReads
	if !free {
		reads /= 2 // eight sums are taken of each pair
	}
	read := func() ([]ratio, error) {
		p, err := c.powers(ctx, reads, loopOnly)
		return []ratio{c.share(w.view, &p, reads)}, err
	}
	if free {
		return c.design(ctx, []ocst.Element{e}, base, from, read)
	}
	for _, j := range from {
		if err := c.pair(ctx, e, j, w, base, read); err != nil {
			return err
		}
	}
	return nil
}

// pair measures what e gains from j, which the light passes: by where its states are, with two
// drives of j with which it lets most of the light through. What comes to the receivers by
// another way does not count there, for it is as much on either side of a state.
func (c *coupler) pair(ctx context.Context, e, j ocst.Element, w *way, base settings, read func() ([]ratio, error)) error {
	base[e] = hold(math.Pi / 2)
	_, own, err := solve(c.fits, c.g, &base, Sweeps)
	if err != nil && !errors.Is(err, ErrRange) {
		return err
	}
	cross, sure := w.states[j]
	sure = sure && w.passed.has(j)
	stray := strayPhase
	if !sure {
		stray /= 4 // only light that has leaked changes its way
	}
	phase0 := c.fits[j].Phase0 + heatFrom(c.g, int(j), &own)
	low, high, ok := c.levels(j, func(own float64) bool { return !sure || passShare(phase0+own, cross) >= passLeast })
	if !ok {
		c.unobserved(e, j, "its heat cannot be changed enough with the light passing it")
		return nil
	}
	o := operator{Session: c.Session, fits: c.fits, usable: c.usable, g: c.g, settle: couplingSettle}
	var sum, heat, variance float64
	for _, sign := range [...]float64{-1, 1} {
		base[j] = fixed(low)
		if sign > 0 {
			base[j] = fixed(high)
		}
		found, err := o.states(ctx, base, []ocst.Element{e}, read)
		if err != nil {
			return err
		}
		sum += sign * (found[0].bar + found[0].cross) / 2
		heat += sign * math.Abs(found[0].own[j])
		variance += found[0].sigma * found[0].sigma
	}
	c.keep(e, j, sum+c.g[e][j]*heat, math.Sqrt(variance+4*stray*stray), heat)
	return nil
}

// levels returns what an element is to gain from its own heaters so that its heat differs most
// and light passes it.
func (c *coupler) levels(j ocst.Element, pass func(own float64) bool) (low, high float64, ok bool) {
	a, b := farthest(c.fits[j])
	least, most := math.Inf(1), math.Inf(-1)
	for k := range 121 {
		d := b + (a-b)*(0.01+0.98*float64(k)/120)
		if !pass(d) {
			continue
		}
		if heat := math.Abs(d); heat < least {
			low, least = d, heat
		}
		if heat := math.Abs(d); heat > most {
			high, most = d, heat
		}
	}
	return low, high, most-least >= couplingStep
}
