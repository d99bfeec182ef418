package baseline

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// Greedy plans Uniform wiring one switch after another: it joins the two pods of which most links are left without a place,
// then of the others those, until no two are left that want a link. Of equals it takes those that the switch joins already,
// and then any, in an order drawn with a fixed seed: by number it would realise less. This is our reading of the greedy
// planner that the paper compares with; running may be nil. Links that find no place are left out: Config.Demand says which
// found one.
//
// The error matches crosswiring.ErrFabric, also for another wiring, crosswiring.ErrDemand as of Demand.Check, or
// crosswiring.ErrConfig if what runs is of another fabric or cannot be used.
func Greedy(f crosswiring.Fabric, d *crosswiring.Demand, running *crosswiring.Config) (*crosswiring.Config, error) {
	if err := uniform(f, d, running); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 1))
	var wanted []wish
	return each(f, d, running, func(g *group, peers []int) {
		wanted = g.wishes(wanted[:0], random)
		slices.SortFunc(wanted, func(a, b wish) int { return cmp.Compare(b.rank, a.rank) })
		for _, w := range wanted {
			if peers[w.i] == crosswiring.Dark && peers[w.j] == crosswiring.Dark {
				peers[w.i], peers[w.j] = int(w.j), int(w.i)
			}
		}
	})
}

// wish is two pods that want a link. The higher the rank the sooner they get it.
type wish struct {
	i, j int32
	rank int64
}

// wishes appends all pods that have links left without a place.
func (g *group) wishes(all []wish, random *rand.Rand) []wish {
	n := g.pods
	for i := range n {
		for j := i + 1; j < n; j++ {
			left := int64(g.left[i*n+j])
			if left == 0 {
				continue
			}
			rank := 2 * left
			if g.running[i] == j {
				rank++
			}
			all = append(all, wish{int32(i), int32(j), rank<<32 | int64(random.Uint32())})
		}
	}
	return all
}
