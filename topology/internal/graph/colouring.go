package graph

import "math/rand/v2"

// EdgeColouring gives each edge of a bipartite multigraph a colour from 0 to n-1 such that edges of a colour
// have no end in common. n is the largest degree, and no fewer do (König); it is 0 without edges.
//
// Nodes of low degree are merged and edges added until all have the same degree; then it is halved by an
// Euler partition where it is even, and where it is odd a perfect matching, found by random walks of a fixed
// seed, is one colour (Goel, Kapralov, Khanna: Perfect matchings in O(n log n) time in regular bipartite graphs, 2013).
// That takes O(E log n) expected time.
func EdgeColouring(left, right int, edges [][2]int) (colours []int, n int) {
	colours = make([]int, len(edges))
	degrees := [2][]int{make([]int, left), make([]int, right)}
	for _, e := range edges {
		for side, v := range e {
			degrees[side][v]++
			n = max(n, degrees[side][v])
		}
	}
	if n == 0 {
		return colours, 0
	}
	ends, nodes := regular(edges, degrees, n)
	c := colouring{
		ends: ends, id: make([]int32, len(ends)), colours: colours,
		in: newIncidence(nodes, nodes, len(ends)), half: make([]bool, len(ends)),
		mate: [2][]int32{make([]int32, nodes), make([]int32, nodes)}, choice: make([]int32, nodes),
		random: rand.New(rand.NewPCG(1, uint64(len(edges)))),
	}
	for i := range c.id {
		c.id[i] = int32(i)
	}
	c.colour(0, len(ends), n, 0)
	return colours, n
}

// regular returns edges of which the first are those given and in which all nodes, as many on the left as on the
// right, have degree n. It merges nodes, which only asks more of a colouring, so that at most one on each
// side has no more than n/2 edges: there are at most 2E+n edges then.
func regular(edges [][2]int, degrees [2][]int, n int) (ends [][2]int32, nodes int) {
	var to, sums [2][]int
	for side, all := range degrees {
		to[side], sums[side] = merge(all, n)
	}
	nodes = max(len(sums[0]), len(sums[1]))
	for side := range sums {
		sums[side] = append(sums[side], make([]int, nodes-len(sums[side]))...)
	}
	ends = make([][2]int32, 0, nodes*n)
	for _, e := range edges {
		ends = append(ends, [2]int32{int32(to[0][e[0]]), int32(to[1][e[1]])})
	}
	b := 0
	for a := range nodes {
		for ; sums[0][a] < n; sums[0][a]++ {
			for sums[1][b] == n {
				b++
			}
			sums[1][b]++
			ends = append(ends, [2]int32{int32(a), int32(b)})
		}
	}
	return ends, nodes
}

// merge puts nodes together while they have at most n edges, and returns which goes where and the sums of degrees.
func merge(degrees []int, n int) (to, sums []int) {
	to = make([]int, len(degrees))
	low := -1 // where nodes of at most n/2 edges are collected
	for v, d := range degrees {
		switch {
		case 2*d > n:
			to[v] = len(sums)
			sums = append(sums, d)
			continue
		case low < 0 || sums[low]+d > n:
			low = len(sums)
			sums = append(sums, 0)
		}
		to[v] = low
		sums[low] += d
	}
	return to, sums
}

// colouring is the work on a regular graph. A part of its edges is a range of ends and id.
type colouring struct {
	ends    [][2]int32
	id      []int32 // which edge it was; those beyond colours were added
	colours []int
	in      *incidence
	half    []bool
	mate    [2][]int32 // by node, its edge in the matching that is being made
	choice  []int32    // by left node, the edge a random walk left it by last
	random  *rand.Rand
}

// colour gives the edges of a range, which are regular of a degree, the colours from first on.
func (c *colouring) colour(from, to, degree, first int) {
	if degree%2 == 1 {
		matched := to
		if degree > 1 {
			c.match(from, to)
			matched = c.divide(from, to)
		}
		for _, id := range c.id[from:matched] {
			if int(id) < len(c.colours) {
				c.colours[id] = first
			}
		}
		from, degree, first = matched, degree-1, first+1
	}
	if degree == 0 {
		return
	}
	c.in.fill(c.ends[from:to]).euler(c.ends[from:to], c.half[from:to])
	middle := c.divide(from, to)
	c.colour(from, middle, degree/2, first)
	c.colour(middle, to, degree/2, first+degree/2)
}

// divide moves the edges of a range that are in half to its begin, and returns where the others begin.
func (c *colouring) divide(from, to int) int {
	for i := from; i < to; i++ {
		if c.half[i] {
			c.ends[from], c.ends[i] = c.ends[i], c.ends[from]
			c.id[from], c.id[i] = c.id[i], c.id[from]
			c.half[from], c.half[i] = c.half[i], c.half[from]
			from++
		}
	}
	return from
}

// match finds a perfect matching among the edges of a range, which are regular of degree 2 or more, and sets half to
// say which are in it. From a node without a mate it walks at random, along any edge to the right and along the
// matching back, until it meets another; the walk without its loops is an augmenting path.
func (c *colouring) match(from, to int) {
	ends, half := c.ends[from:to], c.half[from:to]
	c.in.fill(ends)
	for side := range c.mate {
		for v := range c.mate[side] {
			c.mate[side][v] = -1
		}
	}
	for start := range c.choice {
		for u := start; ; {
			at := c.in.at(u)
			e := at[c.random.IntN(len(at))]
			for e == c.mate[0][u] {
				e = at[c.random.IntN(len(at))]
			}
			c.choice[u] = e
			back := c.mate[1][ends[e][1]]
			if back < 0 {
				break
			}
			u = int(ends[back][0])
		}
		for u := start; ; {
			e := c.choice[u]
			v := ends[e][1]
			back := c.mate[1][v]
			c.mate[0][u], c.mate[1][v] = e, e
			if back < 0 {
				break
			}
			u = int(ends[back][0])
		}
	}
	clear(half)
	for _, e := range c.mate[0] {
		half[e] = true
	}
}
