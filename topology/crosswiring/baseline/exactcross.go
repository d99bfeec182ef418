package baseline

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// ExactCross plans Cross or DualLink wiring by search: every link of the demand, and no plan keeps more of the running circuits.
// So it solves the integer linear program of the paper (equations 1 to 7) for small groups. It goes through the matchings
// of one pair of switches after another by the links they leave to the others, of which by Theorem 4.1 all will find a
// place as long as no pod has more than two for each pair.
//
// It is for up to MostExactPods pods and MostExactCrossPairs pairs of a group. The error matches crosswiring.ErrFabric for
// Uniform wiring, crosswiring.ErrDemand as of Demand.Check, crosswiring.ErrConfig as of Config.Check, or ErrTooLarge.
func ExactCross(running *crosswiring.Config, d *crosswiring.Demand) (*crosswiring.Config, error) {
	f := running.Fabric()
	if err := d.Check(f); err != nil {
		return nil, err
	}
	if f.Wiring == crosswiring.Uniform {
		return nil, fmt.Errorf("%w: uniform wiring: want cross or dual-link, for which this planner is", crosswiring.ErrFabric)
	}
	if err := running.Check(); err != nil {
		return nil, err
	}
	if f.Pods > MostExactPods || f.Pairs() > MostExactCrossPairs {
		return nil, fmt.Errorf("%w: %v: want at most %d pods and %d ports of a spine",
			ErrTooLarge, f, MostExactPods, 2*MostExactCrossPairs)
	}
	circuits := map[crosswiring.Switch][]crosswiring.Circuit{}
	for h := range f.Groups {
		old := make([]peers, f.Pairs())
		for c := range old {
			old[c] = evenPeers(running, crosswiring.Pair{Group: h, Index: c})
		}
		s := crossSearch{pods: f.Pods}
		for c, found := range s.find(pack(entries(d, h), f.Pods), old) {
			for i, j := range found[:f.Pods] {
				if j != crosswiring.Dark {
					even := crosswiring.Port{Pod: i, Group: h, Index: 2 * c}
					odd := crosswiring.Port{Pod: int(j), Group: h, Index: 2*c + 1}
					join(f, circuits, even, odd)
					join(f, circuits, odd, even)
				}
			}
		}
	}
	return crosswiring.FromCircuits(f, circuits)
}

// join adds the circuit by which one port sends to another.
func join(f crosswiring.Fabric, all map[crosswiring.Switch][]crosswiring.Circuit, from, to crosswiring.Port) {
	s, in := f.Tx(from)
	_, out := f.Rx(to)
	all[s] = append(all[s], crosswiring.Circuit{In: in, Out: out})
}

// peers is to which pod the even port of each of up to 6 pods leads, or Dark.
type peers [MostExactPods]int8

var nobody = peers{crosswiring.Dark, crosswiring.Dark, crosswiring.Dark, crosswiring.Dark, crosswiring.Dark, crosswiring.Dark}

func evenPeers(c *crosswiring.Config, p crosswiring.Pair) peers {
	all := nobody
	for i := range c.Fabric().Pods {
		if to, any := c.Peer(crosswiring.Port{Pod: i, Group: p.Group, Index: 2 * p.Index}); any {
			all[i] = int8(to.Pod)
		}
	}
	return all
}

// arrived is what some matchings of the first pairs leave.
type arrived struct {
	left  links
	kept  int // links that run where they did
	from  int // the one before, of those of the pair before
	peers peers
}

// crossSearch is a search for the matchings of the pairs of a group.
type crossSearch struct {
	pods    int
	old     peers // of the pair at hand
	most    int   // links that a pod may leave to later pairs
	next    []arrived
	index   map[links]int
	degrees [MostExactPods]int
}

// find returns the matching of each pair.
func (s *crossSearch) find(wanted links, old []peers) []peers {
	layers := [][]arrived{{{left: wanted}}}
	for c := range old {
		s.old, s.most, s.next, s.index = old[c], 2*(len(old)-c-1), nil, map[links]int{}
		for from, a := range layers[c] {
			s.count(a.left)
			s.extend(arrived{a.left, a.kept, from, nobody}, 0, 0)
		}
		layers = append(layers, s.next)
	}
	last := len(layers) - 1
	best := slices.MaxFunc(layers[last], func(a, b arrived) int { return a.kept - b.kept })
	found := make([]peers, last)
	for c := last; c > 0; c-- {
		found[c-1] = best.peers
		best = layers[c-1][best.from]
	}
	return found
}

// count finds how many links each pod has.
func (s *crossSearch) count(left links) {
	s.degrees = [MostExactPods]int{}
	for j := range s.pods {
		for i := range j {
			n := left.of(pairNumber(i, j))
			s.degrees[i] += n
			s.degrees[j] += n
		}
	}
}

// extend goes on with the pods from number i, after those before i have chosen whom to lead to, all of whom are taken.
func (s *crossSearch) extend(a arrived, i int, taken uint8) {
	if i == s.pods {
		s.arrive(a)
		return
	}
	s.extend(a, i+1, taken)
	for j := range s.pods {
		if j == i || taken>>j&1 == 1 || a.left.of(pairNumber(i, j)) == 0 {
			continue
		}
		n := a
		n.left -= one(pairNumber(i, j))
		n.peers[i] = int8(j)
		if int(s.old[i]) == j {
			n.kept++
		}
		s.degrees[i]--
		s.degrees[j]--
		s.extend(n, i+1, taken|1<<j)
		s.degrees[i]++
		s.degrees[j]++
	}
}

// arrive notes what is left if later pairs can carry it, and if no better way to leave it is known.
func (s *crossSearch) arrive(a arrived) {
	for _, n := range s.degrees[:s.pods] {
		if n > s.most {
			return
		}
	}
	at, known := s.index[a.left]
	switch {
	case !known:
		s.index[a.left] = len(s.next)
		s.next = append(s.next, a)
	case a.kept > s.next[at].kept:
		s.next[at] = a
	}
}
