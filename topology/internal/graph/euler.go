package graph

// EulerPartition splits the edges of a bipartite multigraph into two halves such that at every node the
// numbers of edges in both differ by at most one; at a node of even degree they are equal. It takes linear time.
//
// It walks along unused edges, first from nodes of odd degree, and puts an edge in the half that is true when it
// leads from left to right: a walk leaves each node it enters on the other side, so the halves alternate there.
func EulerPartition(left, right int, edges [][2]int) (half []bool) {
	half = make([]bool, len(edges))
	ends := compact(edges)
	newIncidence(left, right, len(ends)).fill(ends).euler(ends, half)
	return half
}

// compact returns edges in half the memory, since what is done with them is bound by that.
func compact(edges [][2]int) [][2]int32 {
	all := make([][2]int32, len(edges))
	for i, e := range edges {
		all[i] = [2]int32{int32(e[0]), int32(e[1])}
	}
	return all
}

// incidence lists the edges at each node; node v of the right side is left+v.
type incidence struct {
	left, right int
	start       []int32 // by node, where its edges begin in edge; one more than there are nodes
	edge        []int32
	next, rest  []int32 // scratch of euler, by node
	used        []bool  // scratch of euler, by edge
}

// newIncidence returns an incidence that can be filled with up to most edges, any number of times.
func newIncidence(left, right, most int) *incidence {
	n := left + right
	return &incidence{
		left: left, right: right,
		start: make([]int32, n+1), edge: make([]int32, 2*most),
		next: make([]int32, n), rest: make([]int32, n), used: make([]bool, most),
	}
}

// fill makes in the incidence of these edges, and returns it.
func (in *incidence) fill(ends [][2]int32) *incidence {
	clear(in.start)
	for _, e := range ends {
		in.start[e[0]+1]++
		in.start[int(e[1])+in.left+1]++
	}
	for v := range in.left + in.right {
		in.start[v+1] += in.start[v]
		in.next[v] = in.start[v]
	}
	for i, e := range ends {
		for _, v := range [2]int{int(e[0]), int(e[1]) + in.left} {
			in.edge[in.next[v]] = int32(i)
			in.next[v]++
		}
	}
	return in
}

// at returns the edges at a node.
func (in *incidence) at(node int) []int32 { return in.edge[in.start[node]:in.start[node+1]] }

// euler writes the half of each edge that in was filled with.
func (in *incidence) euler(ends [][2]int32, half []bool) {
	clear(in.used[:len(ends)])
	n := in.left + in.right
	for v := range n {
		in.next[v] = in.start[v]
		in.rest[v] = in.start[v+1] - in.start[v]
	}
	for v := range n {
		if in.rest[v]%2 == 1 { // the walk ends at another such node, and both are even afterwards
			in.walk(v, ends, half)
		}
	}
	for v := range n {
		for in.rest[v] > 0 {
			in.walk(v, ends, half)
		}
	}
}

// walk follows unused edges until there is none.
func (in *incidence) walk(v int, ends [][2]int32, half []bool) {
	for in.rest[v] > 0 {
		for in.used[in.edge[in.next[v]]] {
			in.next[v]++
		}
		e := in.edge[in.next[v]]
		in.used[e] = true
		in.rest[v]--
		half[e] = v < in.left
		if v < in.left {
			v = in.left + int(ends[e][1])
		} else {
			v = int(ends[e][0])
		}
		in.rest[v]--
	}
}
