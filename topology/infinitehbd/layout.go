package infinitehbd

import (
	"fmt"
	"slices"
)

// The sizes up to which layouts are made.
const (
	maxGPUs  = 1 << 10
	maxReach = 1 << 20
)

// NewLayout returns the nodes of the paper: gpus GPUs each, and bundles with paths to the nodes 1..hops before and
// behind it. Bundles that lead backwards (L) hold the distances -1/-2, -3/-4 ..., those that lead forwards (R) +1/+2,
// +3/+4 ...; if hops is odd, the last distance has one bundle for both directions (X). A node has hops bundles, of
// which each is an edge of its internal cycle, so hops is at most gpus; and 2 bundles for 1 hop, since with a single one
// no node could have two neighbours.
//
// The paper fixes neither which bundle holds which distance nor which edges are bundles. Of nodes of 4 GPUs L is
// the edge of GPUs 1 and 2, R that of 3 and 4, and X that of 2 and 3; of other nodes the bundles are spread over the
// cycle in the order L, X, R. What cannot be is an error that matches ErrLayout.
func NewLayout(gpus, hops int) (Layout, error) {
	if hops < 1 || hops > maxGPUs {
		return Layout{}, fmt.Errorf("%w: a reach of %d nodes: want 1 or more, and at most the GPUs of a node", ErrLayout, hops)
	}
	distances := make([]int, hops)
	for i := range distances {
		distances[i] = i + 1
	}
	return LayoutOf(gpus, distances)
}

// LayoutOf is NewLayout for any distances, each 1 or more and there once. Powers of two suit exchanges between nodes
// whose numbers differ in one bit (section 7 of the paper). Nodes reach fewer of their neighbours then: Repair knows,
// and Build says where there is no path.
func LayoutOf(gpus int, distances []int) (Layout, error) {
	if gpus < 2 || gpus > maxGPUs {
		return Layout{}, fmt.Errorf("%w: nodes of %d GPUs: want 2 to %d", ErrLayout, gpus, maxGPUs)
	}
	if len(distances) == 0 {
		return Layout{}, fmt.Errorf("%w: no distance is given: want one or more", ErrLayout)
	}
	sorted := slices.Sorted(slices.Values(distances))
	for i, d := range sorted {
		if d < 1 || d > maxReach {
			return Layout{}, fmt.Errorf("%w: a distance of %d nodes: want 1 to %d", ErrLayout, d, maxReach)
		}
		if i > 0 && d == sorted[i-1] {
			return Layout{}, fmt.Errorf("%w: the distance %d is given twice: want each once", ErrLayout, d)
		}
	}
	left, both, right := sides(sorted)
	l := Layout{GPUs: gpus}
	n := len(left) + len(both) + len(right)
	if n > gpus {
		return Layout{}, fmt.Errorf("%w: %d distances take %d bundles, and a node of %d GPUs has %d edges: want fewer distances",
			ErrLayout, len(sorted), n, gpus, gpus)
	}
	l.place(left, both, right)
	return l, nil
}

// sides divides distances in ascending order into the bundles that lead backwards, both ways and forwards.
func sides(distances []int) (left, both, right []Bundle) {
	for ; len(distances) > 1; distances = distances[2:] {
		a, b := distances[0], distances[1]
		left = append(left, Bundle{Reach: [2]int{-a, -b}})
		right = append(right, Bundle{Reach: [2]int{a, b}})
	}
	for _, d := range distances {
		if len(left) > 0 {
			both = []Bundle{{Name: "X", Reach: [2]int{-d, d}}}
		} else {
			left, right = []Bundle{{Reach: [2]int{-d}}}, []Bundle{{Reach: [2]int{d}}}
		}
	}
	name(left, "L")
	name(right, "R")
	return left, both, right
}

// name numbers bundles if there are several.
func name(bundles []Bundle, side string) {
	for i := range bundles {
		bundles[i].Name = side
		if len(bundles) > 1 {
			bundles[i].Name = fmt.Sprint(side, i+1)
		}
	}
}

// place gives each bundle an edge of the cycle, spread evenly, and makes the others copper. The upper ends of all
// bundles lie on the side of the cycle that faces from L to R, so that rings pass a node without crossing.
func (l *Layout) place(left, both, right []Bundle) {
	around := slices.Concat(left, both, right)
	taken := make([]bool, l.GPUs)
	for i := range around {
		edge := i * l.GPUs / len(around)
		taken[edge] = true
		first, second := l.edge(edge)
		b := &around[i]
		if b.Upper, b.Lower = first, second; i < len(left) {
			b.Upper, b.Lower = second, first
		}
	}
	for edge := range l.GPUs {
		if !taken[edge] {
			first, second := l.edge(edge)
			l.Copper = append(l.Copper, [2]int{first, second})
		}
	}
	x := len(left) + len(both)
	l.Bundles = slices.Concat(around[:len(left)], around[x:], around[len(left):x])
}

// edge returns the GPUs of an edge of the cycle, from 0.
func (l *Layout) edge(i int) (first, second int) { return i + 1, (i+1)%l.GPUs + 1 }

// Hops returns the largest distance that a node reaches; K where there are all up to it.
func (l Layout) Hops() int {
	most := 0
	for _, b := range l.Bundles {
		most = max(most, b.Reach[0], b.Reach[1])
	}
	return most
}

// Distances returns the distances at which a node reaches others, forwards as well as backwards, in ascending order.
func (l Layout) Distances() []int {
	var list []int
	for _, b := range l.Bundles {
		for _, r := range b.Reach {
			if r > 0 {
				list = append(list, r)
			}
		}
	}
	slices.Sort(list)
	return list
}

// Find returns the bundle and the state in which it leads over a distance, and whether there is one.
func (l Layout) Find(distance int) (bundle int, path State, ok bool) {
	for i, b := range l.Bundles {
		if path, ok := b.Path(distance); ok {
			return i, path, true
		}
	}
	return 0, Loop, false
}

// Check returns an error that matches ErrLayout if the layout cannot be: its edges are not one cycle of all GPUs, a
// distance is reached twice, or one way only.
func (l Layout) Check() error {
	if l.GPUs < 2 || l.GPUs > maxGPUs {
		return fmt.Errorf("%w: nodes of %d GPUs: want 2 to %d", ErrLayout, l.GPUs, maxGPUs)
	}
	if n := len(l.Bundles) + len(l.Copper); len(l.Bundles) == 0 || n != l.GPUs {
		return fmt.Errorf("%w: %d bundles and %d copper cables: want one or more bundles, and %d edges in all",
			ErrLayout, len(l.Bundles), len(l.Copper), l.GPUs)
	}
	if err := l.checkReach(); err != nil {
		return err
	}
	return l.checkCycle()
}

func (l Layout) checkReach() error {
	holder := map[int]string{}
	names := map[string]bool{}
	for _, b := range l.Bundles {
		if b.Name == "" || names[b.Name] {
			return fmt.Errorf("%w: a bundle is named %q: want a name that no other has", ErrLayout, b.Name)
		}
		names[b.Name] = true
		if b.Reach == [2]int{} {
			return fmt.Errorf("%w: bundle %s has no path: want one or two", ErrLayout, b.Name)
		}
		for _, r := range b.Reach {
			if r < -maxReach || r > maxReach {
				return fmt.Errorf("%w: bundle %s has a path over %d nodes: want at most %d", ErrLayout, b.Name, r, maxReach)
			}
			if other, ok := holder[r]; ok && r != 0 {
				return fmt.Errorf("%w: bundles %s and %s both lead to %+d: want one of them", ErrLayout, other, b.Name, r)
			}
			holder[r] = b.Name
		}
	}
	for _, b := range l.Bundles {
		for _, r := range b.Reach {
			if _, ok := holder[-r]; !ok {
				return fmt.Errorf("%w: bundle %s leads to %+d, and none to %+d, where its cable would end", ErrLayout, b.Name, r, -r)
			}
		}
	}
	return nil
}

// checkCycle follows the edges of a node whose bundles are all looped.
func (l Layout) checkCycle() error {
	at := make([][]int, l.GPUs) // the neighbours of each GPU
	join := func(a, b int) error {
		if a < 1 || a > l.GPUs || b < 1 || b > l.GPUs || a == b {
			return fmt.Errorf("%w: an edge of GPUs %d and %d: want two of 1..%d", ErrLayout, a, b, l.GPUs)
		}
		at[a-1], at[b-1] = append(at[a-1], b-1), append(at[b-1], a-1)
		return nil
	}
	for _, b := range l.Bundles {
		if err := join(b.Upper, b.Lower); err != nil {
			return err
		}
	}
	for _, c := range l.Copper {
		if err := join(c[0], c[1]); err != nil {
			return err
		}
	}
	for gpu, n := range at {
		if len(n) != 2 {
			return fmt.Errorf("%w: GPU %d is on %d edges: want 2", ErrLayout, gpu+1, len(n))
		}
	}
	met := 1
	for last, gpu := 0, at[0][0]; gpu != 0; met++ {
		next := at[gpu][0]
		if next == last {
			next = at[gpu][1]
		}
		last, gpu = gpu, next
	}
	if met != l.GPUs {
		return fmt.Errorf("%w: the edges make a cycle of %d GPUs: want all %d on one", ErrLayout, met, l.GPUs)
	}
	return nil
}
