package baseline

import (
	"fmt"
	"math/bits"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// Exact plans Uniform wiring by search: no plan realises more links, and of those that realise as many none rewires less.
// So it solves what the paper gives an integer linear program to, as far as we can read it: to find a place for all links
// but as few as can be, and then to remove and add few circuits. running may be nil. It goes through the matchings of one switch
// after another by what they leave without a place, and leaves out what cannot lead to the fewest.
//
// It is for up to MostExactPods pods and MostExactPorts ports of a spine. The error is as of Greedy, or matches ErrTooLarge.
func Exact(f crosswiring.Fabric, d *crosswiring.Demand, running *crosswiring.Config) (*crosswiring.Config, error) {
	if err := uniform(f, d, running); err != nil {
		return nil, err
	}
	if f.Pods > MostExactPods || f.SpinePorts > MostExactPorts {
		return nil, fmt.Errorf("%w: %v: want at most %d pods and %d ports of a spine",
			ErrTooLarge, f, MostExactPods, MostExactPorts)
	}
	circuits := map[crosswiring.Switch][]crosswiring.Circuit{}
	u := newUniformSearch(f.Pods)
	for h := range f.Groups {
		old := make([]uint16, f.SpinePorts)
		if running != nil {
			for k := range old {
				old[k] = pairsOf(running.Matching(crosswiring.Switch{Group: h, Index: k}))
			}
		}
		for k, pairs := range u.find(pack(entries(d, h), f.Pods), old) {
			s := crosswiring.Switch{Group: h, Index: k}
			for p, ends := range u.ends {
				if pairs>>p&1 == 1 {
					circuits[s] = append(circuits[s], crosswiring.Circuit{In: ends[0], Out: ends[1]},
						crosswiring.Circuit{In: ends[1], Out: ends[0]})
				}
			}
		}
	}
	return crosswiring.FromCircuits(f, circuits)
}

// links is a number of links for each two of up to 6 pods, 4 bits each, by pairNumber.
type links uint64

// pairNumber numbers the pairs of pods: those with pods below j come before those with j, j being the higher one.
func pairNumber(i, j int) int { return max(i, j)*(max(i, j)-1)/2 + min(i, j) }

func (l links) of(pair int) int { return int(l >> (4 * pair) & 15) }

// one is a single link.
func one(pair int) links { return 1 << (4 * pair) }

// pack makes links of a symmetric matrix.
func pack(matrix []int32, pods int) (l links) {
	for j := range pods {
		for i := range j {
			l += links(matrix[i*pods+j]) << (4 * pairNumber(i, j))
		}
	}
	return l
}

// pairsOf returns the set of pairs that a symmetric matching joins.
func pairsOf(peers []int) (set uint16) {
	for i, j := range peers {
		if i < j {
			set |= 1 << pairNumber(i, j)
		}
	}
	return set
}

// matching is a symmetric matching.
type matching struct {
	pairs uint16
	links links
}

// uniformSearch is a search for the matchings of the switches of a group.
type uniformSearch struct {
	ends      [][2]int // of pairs
	matchings []matching
	subsets   []subset // of pods
}

// subset is a set of pods: no switch has more than most links within it.
type subset struct {
	pairs uint16
	most  int
}

func newUniformSearch(pods int) *uniformSearch {
	u := &uniformSearch{}
	for j := range pods {
		for i := range j {
			u.ends = append(u.ends, [2]int{i, j})
		}
	}
	u.extend(matching{}, 0, 0)
	for set := range 1 << pods {
		s := subset{}
		for p, ends := range u.ends {
			if set>>ends[0]&1 == 1 && set>>ends[1]&1 == 1 {
				s.pairs |= 1 << p
			}
		}
		for i := range pods {
			s.most += set >> i & 1
		}
		if s.most /= 2; s.most > 0 {
			u.subsets = append(u.subsets, s)
		}
	}
	return u
}

// extend adds all matchings that extend one by pairs from a number on.
func (u *uniformSearch) extend(m matching, from int, taken uint8) {
	u.matchings = append(u.matchings, m)
	for p := from; p < len(u.ends); p++ {
		if both := uint8(1)<<u.ends[p][0] | uint8(1)<<u.ends[p][1]; taken&both == 0 {
			u.extend(matching{m.pairs | 1<<p, m.links + one(p)}, p+1, taken|both)
		}
	}
}

// lost returns how many links find no place on so many switches, at least: where many are within few pods.
func (u *uniformSearch) lost(left links, switches int) (most int) {
	for _, s := range u.subsets {
		n := -switches * s.most
		for p := range u.ends {
			if s.pairs>>p&1 == 1 {
				n += left.of(p)
			}
		}
		most = max(most, n)
	}
	return most
}

// reached is what some matchings of the first switches leave.
type reached struct {
	left  links
	cost  int    // circuits that were removed and added, by two
	from  int    // the one before, of those of the switch before
	pairs uint16 // of the last switch
}

// find returns the pairs that each switch joins.
func (u *uniformSearch) find(wanted links, old []uint16) []uint16 {
	for most := u.lost(wanted, len(old)); ; most++ {
		if found := u.within(wanted, old, most); found != nil {
			return found
		}
	}
}

// within is find with at most so many links without a place, or nil if that is too few.
func (u *uniformSearch) within(wanted links, old []uint16, most int) []uint16 {
	layers := [][]reached{{{left: wanted}}}
	for k, runs := range old {
		var next []reached
		index := map[links]int{}
		for from, r := range layers[k] {
			there := r.left.some(len(u.ends))
			for _, m := range u.matchings {
				if m.pairs&^there != 0 {
					continue
				}
				n := reached{r.left - m.links, r.cost + bits.OnesCount16(m.pairs^runs), from, m.pairs}
				at, known := index[n.left]
				if !known {
					at = -1
					if u.lost(n.left, len(old)-k-1) <= most {
						at = len(next)
						next = append(next, n)
					}
					index[n.left] = at
				}
				if at >= 0 && n.cost < next[at].cost {
					next[at] = n
				}
			}
		}
		if len(next) == 0 {
			return nil
		}
		layers = append(layers, next)
	}
	return trace(layers)
}

// trace returns the choices that led to the cheapest of the last ones.
func trace(layers [][]reached) []uint16 {
	last := len(layers) - 1
	at := 0
	for i, r := range layers[last] {
		if r.cost < layers[last][at].cost {
			at = i
		}
	}
	choices := make([]uint16, last)
	for k := last; k > 0; k-- {
		choices[k-1] = layers[k][at].pairs
		at = layers[k][at].from
	}
	return choices
}

// some returns the set of pairs that have links.
func (l links) some(pairs int) (set uint16) {
	for p := range pairs {
		if l.of(p) > 0 {
			set |= 1 << p
		}
	}
	return set
}
