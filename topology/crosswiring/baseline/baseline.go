package baseline

import (
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// ErrTooLarge: a fabric that is too large for an exact search. Test with errors.Is.
var ErrTooLarge = errors.New("too large for an exact search")

// Limits of the exact searches.
const (
	MostExactPods       = 6 // pods of Exact and ExactCross
	MostExactPorts      = 8 // ports of a spine of Exact
	MostExactCrossPairs = 3 // pairs of a group of ExactCross
)

// OddBound returns which part of the links of a fully loaded demand Uniform wiring can realise at most, from 0 to 1 (ours):
// a switch joins pods in twos, so of an odd number P of them it leaves one out, and 2⌊P/2⌋/P of the ports are in use. It is 1
// for an even number, and 0 below 2 pods.
func OddBound(pods int) float64 {
	if pods < 2 {
		return 0
	}
	return float64(pods/2*2) / float64(pods)
}

// uniform checks the arguments of a planner for Uniform wiring.
func uniform(f crosswiring.Fabric, d *crosswiring.Demand, running *crosswiring.Config) error {
	if err := d.Check(f); err != nil {
		return err
	}
	if f.Wiring != crosswiring.Uniform {
		return fmt.Errorf("%w: %v wiring: want uniform, for which this planner is", crosswiring.ErrFabric, f.Wiring)
	}
	return runs(f, running)
}

// runs checks that a running configuration, if there is one, is of the fabric and can be used by ports.
func runs(f crosswiring.Fabric, running *crosswiring.Config) error {
	if running == nil {
		return nil
	}
	if running.Fabric() != f {
		return fmt.Errorf("%w: what runs is of %v, the plan of %v: want the same", crosswiring.ErrConfig, running.Fabric(), f)
	}
	return running.Check()
}

// group is the work of a planner for Uniform wiring on a group.
type group struct {
	pods    int
	left    []int32 // links without a place, by pod and pod; symmetric
	running []int   // the pod that each pod is joined to on the switch at hand, or Dark
}

// pick chooses the links of a switch: the peer of each pod, or Dark.
type pick func(g *group, peers []int)

// each plans switch after switch of each group by a choice from the links that are left.
func each(f crosswiring.Fabric, d *crosswiring.Demand, running *crosswiring.Config, choose pick) (*crosswiring.Config, error) {
	circuits := map[crosswiring.Switch][]crosswiring.Circuit{}
	peers, dark := make([]int, f.Pods), make([]int, f.Pods)
	for i := range dark {
		dark[i] = crosswiring.Dark
	}
	for h := range f.Groups {
		g := &group{pods: f.Pods, left: entries(d, h)}
		for k := range f.SpinePorts {
			s := crosswiring.Switch{Group: h, Index: k}
			g.running = dark
			if running != nil {
				g.running = running.Matching(s)
			}
			copy(peers, dark)
			choose(g, peers)
			for i, j := range peers {
				if j != crosswiring.Dark {
					g.left[i*f.Pods+j]--
					circuits[s] = append(circuits[s], crosswiring.Circuit{In: i, Out: j})
				}
			}
		}
	}
	return crosswiring.FromCircuits(f, circuits)
}

// entries returns the demand of a group by pod and pod.
func entries(d *crosswiring.Demand, h int) []int32 {
	n := d.Pods()
	all := make([]int32, n*n)
	for i := range n {
		for j := range n {
			all[i*n+j] = int32(d.At(h, i, j))
		}
	}
	return all
}
