package collective

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/topology/pccl"
)

// routes returns for each transfer the GPUs that it passes on t, its ends included: a shortest path, and of several that
// which ties says. It is written anew from the words of [pccl.Ties], and takes nothing from the planner.
func routes(t *pccl.Topology, transfers []pccl.Transfer, ties pccl.Ties) ([][]int, error) {
	into := make([][]int, t.GPUs()) // who has a circuit to each
	for c := range t.Circuits() {
		into[c.Dst] = append(into[c.Dst], c.Src)
	}
	far := map[int][]int{} // hops to a GPU from each
	load := map[pccl.Transfer]int{}
	paths := make([][]int, 0, len(transfers))
	for _, x := range transfers {
		if far[x.Dst] == nil {
			far[x.Dst] = hops(into, x.Dst)
		}
		if far[x.Dst][x.Src] < 0 {
			return nil, fmt.Errorf("from GPU %d to GPU %d on %s: %w: want a topology that joins all that exchange data",
				x.Src, x.Dst, t.Name(), pccl.ErrDisconnected)
		}
		w := walker{t, far[x.Dst], load}
		path := w.lowest(x.Src, nil)
		if ties == pccl.Greedy {
			path = w.least(x.Src)
		}
		for i := range len(path) - 1 {
			load[pccl.Transfer{Src: path[i], Dst: path[i+1]}]++
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// hops returns how far each GPU is from one, in hops; -1 if it has no path.
func hops(into [][]int, to int) []int {
	far := slices.Repeat([]int{-1}, len(into))
	far[to] = 0
	for queue := []int{to}; len(queue) > 0; queue = queue[1:] {
		for _, before := range into[queue[0]] {
			if far[before] < 0 {
				far[before] = far[queue[0]] + 1
				queue = append(queue, before)
			}
		}
	}
	return far
}

// walker walks on shortest paths to one GPU.
type walker struct {
	t    *pccl.Topology
	far  []int
	load map[pccl.Transfer]int
}

// nearer yields the neighbours of a GPU that are one hop nearer, the lowest first.
func (w walker) nearer(at int) func(yield func(next, load int) bool) {
	return func(yield func(next, load int) bool) {
		for _, next := range w.t.Out(at) {
			if w.far[next] == w.far[at]-1 && !yield(next, w.load[pccl.Transfer{Src: at, Dst: next}]) {
				return
			}
		}
	}
}

// lowest returns the path that takes at each hop the lowest neighbour of those that may returns true for; nil is all.
func (w walker) lowest(from int, may func(at, next int) bool) []int {
	path := []int{from}
	for at := from; w.far[at] > 0; {
		for next := range w.nearer(at) {
			if may == nil || may(at, next) {
				at = next
				break
			}
		}
		path = append(path, at)
	}
	return path
}

// least returns the path with the least highest load, of these with the least sum of loads, and of these the lowest.
func (w walker) least(from int) []int {
	most := map[int]int{w.to(): 0} // the least highest load from each GPU
	w.fill(from, most, func(at int) int {
		best := -1
		for next, load := range w.nearer(at) {
			if x := max(load, most[next]); best < 0 || x < best {
				best = x
			}
		}
		return best
	})
	allowed := func(next, load int) bool { return max(load, most[next]) <= most[from] }
	sum := map[int]int{w.to(): 0}
	w.fill(from, sum, func(at int) int {
		best := -1
		for next, load := range w.nearer(at) {
			if x := load + sum[next]; allowed(next, load) && sum[next] >= 0 && (best < 0 || x < best) {
				best = x
			}
		}
		return best // -1: no path that is allowed
	})
	return w.lowest(from, func(at, next int) bool {
		load := w.load[pccl.Transfer{Src: at, Dst: next}]
		return allowed(next, load) && sum[next] >= 0 && load+sum[next] == sum[at]
	})
}

// to returns where the paths end.
func (w walker) to() int { return slices.Index(w.far, 0) }

// fill works out a value of each GPU that is on a shortest path, the nearest to the end first.
func (w walker) fill(from int, values map[int]int, value func(at int) int) {
	layers := [][]int{{from}}
	seen := map[int]bool{from: true}
	for w.far[layers[len(layers)-1][0]] > 1 {
		var layer []int
		for _, at := range layers[len(layers)-1] {
			for next := range w.nearer(at) {
				if !seen[next] {
					seen[next] = true
					layer = append(layer, next)
				}
			}
		}
		layers = append(layers, layer)
	}
	for _, layer := range slices.Backward(layers) {
		for _, at := range layer {
			values[at] = value(at)
		}
	}
}
