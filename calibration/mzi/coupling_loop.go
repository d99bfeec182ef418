package mzi

import (
	"context"
	"fmt"
	"math"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// loop measures the row of an element of the loop network: in as many scenes as it takes to
// watch it while each of those around it is heated.
func (c *coupler) loop(ctx context.Context, e ocst.Element) error {
	c.tell(Progress{Step: "coupling", Done: int(e), Total: ocst.Elements, Detail: e.String()})
	if !c.usable[e] {
		return nil
	}
	left := map[ocst.Element]bool{}
	for j := max(0, e-ocst.Reach); j < min(ocst.Elements, e+ocst.Reach+1); j++ {
		if j != e && c.usable[j] {
			left[j] = true
		}
	}
	for len(left) > 0 {
		// The scene in which most of those left can be done.
		var best *scene
		most := 0
		scenes(e, c.usable, func(s *scene) bool {
			n := 0
			for j := range left {
				if s.while(j) != nothing {
					n++
				}
			}
			if n > most {
				best, most = s, n
			}
			return most < len(left)
		})
		if best == nil {
			break
		}
		if err := c.scene(ctx, best, left); err != nil {
			return err
		}
	}
	for j := max(0, e-ocst.Reach); j < min(ocst.Elements, e+ocst.Reach+1); j++ {
		if left[j] {
			c.unobserved(e, j, "in every setting the light of both meets again")
		}
	}
	return nil
}

// scene measures what the element of a scene gains from all those in left that the scene
// allows, and takes them out of it.
func (c *coupler) scene(ctx context.Context, s *scene, left map[ocst.Element]bool) error {
	e := s.element
	if err := c.Light(ctx, 1<<s.lane); err != nil {
		return err
	}
	base := c.idle()
	s.put(&base, c.usable)
	base[e] = hold(math.Pi / 2)
	own, err := c.put(ctx, c.fits, c.g, &base)
	if err != nil {
		return err
	}
	// What others heat shows from here on: the element itself is not held any more.
	base[e] = fixed(own[e])
	read := func(want *settings) (p Powers, own [ocst.Elements]float64, err error) {
		if own, err = c.put(ctx, c.fits, c.g, want); err != nil {
			return p, own, err
		}
		p, err = c.powers(ctx, couplingReads, loopOnly)
		return p, own, err
	}
	var side [2]Powers
	through, apart := 0.0, 0.0
	for k, dither := range []float64{couplingDither, -couplingDither} {
		want := base
		want[e] = fixed(nudged(c.fits[e], own[e], dither))
		var at [ocst.Elements]float64
		if side[k], at, err = read(&want); err != nil {
			return err
		}
		if k == 0 {
			apart = at[e]
		} else {
			apart -= at[e]
		}
		through += s.throughput(&side[k]) / 2
	}
	before, own, err := read(&base)
	if err != nil {
		return err
	}
	for j := max(0, e-ocst.Reach); j < min(ocst.Elements, e+ocst.Reach+1); j++ {
		how := s.while(j)
		if !left[j] || how == nothing {
			continue
		}
		delete(left, j)
		d, ok := c.candidate(j, own[j], func(float64) float64 { return 1 })
		if !ok {
			c.unobserved(e, j, "its heat cannot be changed enough")
			continue
		}
		want := base
		want[j] = fixed(d)
		heated, _, err := read(&want)
		if err != nil {
			return err
		}
		after, _, err := read(&base)
		if err != nil {
			return err
		}
		see := func(p *Powers) ratio { return c.watch(p, s, how, through, couplingReads) }
		answer, ok := slopeOf(see(&side[0]), see(&side[1]), apart/2)
		if !ok {
			c.unobserved(e, j, fmt.Sprintf("the element does not answer at quadrature in light of lane %d", s.lane+1))
			continue
		}
		hot := see(&heated)
		change := answer.phase(hot) - (answer.phase(see(&before))+answer.phase(see(&after)))/2
		c.keep(e, j, change, hot.sigma*math.Sqrt(1.5)/math.Abs(answer.swing), math.Abs(d)-math.Abs(own[j]))
		before = after
	}
	return nil
}
