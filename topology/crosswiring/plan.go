package crosswiring

import "fmt"

// Plan returns circuits that satisfy a demand, from nothing: every link of it, and no others. It splits the links of each
// group into those that lead out of a pod and those that lead in, by trails, and what leads out into a matching for each
// pair, by halving; both take next to linear time (ours; the paper finds minimum cost flows). The same demand gives the
// same circuits. The demand has groups; see Demand.Fit.
//
// It is for Cross and DualLink, where any demand that passes Demand.Check can be satisfied (Theorem 4.1). The error
// matches ErrFabric, also for Uniform, where that is not so, or ErrDemand.
func Plan(f Fabric, d *Demand) (*Config, error) {
	if err := d.checkShape(f); err != nil {
		return nil, err
	}
	if f.Wiring == Uniform {
		return nil, fmt.Errorf("%w: uniform wiring cannot satisfy every demand, so this planner is not for it: "+
			"want cross or dual-link, or a planner that leaves links out", ErrFabric)
	}
	c := darkConfig(f)
	s := newSplitter(f.Pods)
	for h := range f.Groups {
		if !d.sound(h, f.SpinePorts) { // a group at a time, since what was looked at is in the cache
			return nil, d.check(f.SpinePorts)
		}
		s.colour(s.orient(d.group(h)), f.Pairs(), func(pair int, arcs [][2]int32) {
			even, odd, far := c.both(Pair{h, pair})
			for _, a := range arcs {
				even[a[0]], odd[a[1]] = a[1]+far, a[0]
			}
		})
	}
	return c, nil
}
