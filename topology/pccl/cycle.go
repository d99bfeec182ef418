package pccl

import (
	"fmt"
	"slices"
	"strings"
)

// RingOn lays the ring algorithm out along a cycle of a topology that visits each GPU once, so that each of
// its transfers is one hop; see [Cycle] for when there is one. From GPU to the next GPU by number, as the algorithm "ring"
// sends, would be several hops on a torus or a grid, and no fair baseline.
func RingOn(t *Topology, c Collective, bytes float64) (Schedule, error) {
	name := Algorithm("ring on " + t.name)
	if !slices.Contains([]Collective{ReduceScatter, AllGather, AllReduce}, c) {
		return Schedule{}, fmt.Errorf("%w: %s does not compute %.40q: want %s, %s or %s", ErrArgument, name, c,
			ReduceScatter, AllGather, AllReduce)
	}
	if err := checkBytes(bytes); err != nil {
		return Schedule{}, err
	}
	if err := checkTotal(c, name, t.gpus, t.gpus-1); err != nil {
		return Schedule{}, err
	}
	cycle, err := Cycle(t)
	if err != nil {
		return Schedule{}, err
	}
	return ringAlong(c, name, cycle, bytes), nil
}

// ringAlong passes data along a cycle of all GPUs.
func ringAlong(c Collective, name Algorithm, cycle []int, bytes float64) Schedule {
	n := len(cycle)
	next := make([]int, n)
	for i, x := range cycle {
		next[x] = cycle[(i+1)%n]
	}
	step := everyone(n, bytes/float64(n), func(x int) int { return next[x] })
	rounds := make([]Round, n-1)
	for i := range rounds {
		rounds[i] = step // rounds are only read, and share their transfers
	}
	return finish(c, name, n, bytes, rounds)
}

func layRing(c Collective, rest string, gpus int, bytes float64) (Schedule, error) {
	if text, ok := strings.CutPrefix(rest, "on "); ok {
		t, err := ParseTopology(text, gpus)
		if err != nil {
			return Schedule{}, err
		}
		return RingOn(t, c, bytes)
	}
	if err := checkTotal(c, RingPass, gpus, gpus-1); err != nil {
		return Schedule{}, err
	}
	cycle := make([]int, gpus)
	for i := range cycle {
		cycle[i] = i
	}
	return ringAlong(c, RingPass, cycle, bytes), nil
}

// searchSteps bounds the search of [Cycle].
const searchSteps = 1 << 18

// Cycle returns a cycle of a topology that visits each GPU once, from GPU 0. Every ring, torus and hypercube has
// one, and every grid of two or more dimensions and an even number of GPUs; these are constructed. That of any other
// topology is searched for, in a bounded number of steps. That there is none, or that none was found, is an error that matches
// [ErrSize] for lattices and [ErrArgument] otherwise.
func Cycle(t *Topology) ([]int, error) {
	switch {
	case t.dims == nil:
		return search(t)
	case len(t.dims) == 1 && (t.wrap || t.gpus == 2):
		return steps(t.gpus, 1), nil
	case len(t.dims) == 1:
		return nil, fmt.Errorf("%w: %s is a line, and no cycle visits each GPU of it once: want a ring, or a grid of two dimensions",
			ErrSize, t.name)
	case t.gpus%2 == 0:
		return gridCycle(t.dims), nil
	case t.wrap:
		return oddCycle(t.dims), nil
	}
	return nil, fmt.Errorf("%w: no cycle visits each GPU of %s once: its GPUs alternate along a way, and %d is odd: want an even "+
		"number of GPUs, or a torus", ErrSize, t.name, t.gpus)
}

// steps returns 0, by, 2*by, ..., n of them.
func steps(n, by int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i * by
	}
	return all
}

// gridCycle returns a cycle of a grid of which one dimension is even: along that dimension by one column, and back by
// all others, to and fro.
func gridCycle(dims []int) []int {
	even, stride := 0, make([]int, len(dims))
	volume := 1
	for i := len(dims) - 1; i >= 0; i-- {
		stride[i] = volume
		volume *= dims[i]
		if dims[i]%2 == 0 {
			even = i
		}
	}
	path := []int{0} // a way through the grid of the other dimensions
	for i := len(dims) - 1; i >= 0; i-- {
		if i == even {
			continue
		}
		var longer []int
		for at := range dims[i] {
			for k := range path {
				if at%2 == 1 {
					k = len(path) - 1 - k
				}
				longer = append(longer, at*stride[i]+path[k])
			}
		}
		path = longer
	}
	cycle := []int{0}
	columns := path[1:]
	for row := range dims[even] {
		for k := range columns {
			if row%2 == 1 {
				k = len(columns) - 1 - k
			}
			cycle = append(cycle, row*stride[even]+columns[k])
		}
	}
	for row := dims[even] - 1; row > 0; row-- {
		cycle = append(cycle, row*stride[even])
	}
	return cycle
}

// oddCycle returns a cycle of a torus of odd sizes, dimension by dimension: of two cycles, the longer one counts rows. Each row is
// gone round, but for the last step, which leads to the next row instead: so one row begins a column before or after
// the last one did, by the direction. With the right number of each, the last row ends in the column where the first began.
func oddCycle(dims []int) []int {
	cycle, stride := []int{0}, 1
	for _, d := range slices.Backward(dims) {
		rows, columns := steps(d, stride), cycle
		stride *= d
		if len(columns) == 1 {
			cycle = rows
			continue
		}
		if len(rows) < len(columns) {
			rows, columns = columns, rows
		}
		cycle = nil
		back := (len(rows) + len(columns)) / 2 // rows after which the column is one less; the others are one more
		at := 0
		for i, row := range rows {
			by := 1
			if i >= back {
				by = len(columns) - 1
			}
			for k := range columns {
				cycle = append(cycle, row+columns[(at+k*by)%len(columns)])
			}
			at = (at + (len(columns)-1)*by) % len(columns)
		}
	}
	return cycle
}

// search looks for a cycle from GPU 0, where fewest ways lead on first.
func search(t *Topology) ([]int, error) {
	visited := make([]bool, t.gpus)
	free := func(x int) int {
		n := 0
		for _, y := range t.out[x] {
			if !visited[y] {
				n++
			}
		}
		return n
	}
	visited[0] = true
	cycle := []int{0}
	ways := [][]int{t.ways(0, visited, free)} // by place of the cycle: where to go on that has not been tried
	for tried := 0; len(cycle) > 0; tried++ {
		if tried == searchSteps {
			return nil, fmt.Errorf("%w: no cycle that visits each GPU of %s once was found in %d steps: want another one",
				ErrArgument, t.name, searchSteps)
		}
		last := len(cycle) - 1
		if len(cycle) == t.gpus && t.Has(cycle[last], 0) {
			return cycle, nil
		}
		if len(ways[last]) == 0 {
			visited[cycle[last]] = false
			cycle, ways = cycle[:last], ways[:last]
			continue
		}
		x := ways[last][0]
		ways[last] = ways[last][1:]
		visited[x] = true
		cycle = append(cycle, x)
		ways = append(ways, t.ways(x, visited, free))
	}
	return nil, fmt.Errorf("%w: no cycle visits each GPU of %s once: want another topology, or the algorithm ring", ErrArgument, t.name)
}

// ways returns where x leads that was not visited.
func (t *Topology) ways(x int, visited []bool, free func(x int) int) []int {
	var all []int
	for _, y := range t.out[x] {
		if !visited[y] {
			all = append(all, y)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return free(a) - free(b) })
	return all
}
