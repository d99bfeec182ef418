package crosswiring

import (
	"slices"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// trails directs the edges of a graph along edge-disjoint trails. It is scratch for any number of graphs of at most so
// many vertices.
type trails struct {
	mate []int32 // by end of an edge, 2e and 2e+1, the end at the same vertex by which the trail goes on, or -1
	open []int32 // by vertex, the end that has no mate yet, or -1
	flip []bool  // by edge, whether its trail leads from its second vertex to its first
	done []bool
}

func newTrails(vertices int) *trails { return &trails{open: make([]int32, vertices)} }

// direct writes flip, such that at every vertex as many edges lead in as out, and one more or less if its degree is
// odd. At each vertex it pairs the ends of edges, so that all edges become trails; along a trail one edge of each two that
// are paired leads in and the other out. In a bipartite graph that halves the edges, by what leads from left to right.
func (t *trails) direct(edges [][2]int32) {
	t.mate = slices.Grow(t.mate[:0], 2*len(edges))[:2*len(edges)]
	t.flip = slices.Grow(t.flip[:0], len(edges))[:len(edges)]
	t.done = slices.Grow(t.done[:0], len(edges))[:len(edges)]
	clear(t.done)
	for _, e := range edges {
		t.open[e[0]], t.open[e[1]] = -1, -1
	}
	for i, e := range edges {
		t.pair(int32(2*i), e[0])
		t.pair(int32(2*i+1), e[1])
	}
	for i := range edges {
		if !t.done[i] {
			t.done[i], t.flip[i] = true, false
			t.follow(int32(2*i+1), 1)
			t.follow(int32(2*i), 0)
		}
	}
}

// pair gives an end at a vertex its mate.
func (t *trails) pair(end, vertex int32) {
	other := t.open[vertex]
	if other < 0 {
		t.mate[end], t.open[vertex] = -1, end
		return
	}
	t.mate[end], t.mate[other], t.open[vertex] = other, end, -1
}

// follow directs the edges beyond an end: away from it if forward is 1, towards it if it is 0.
func (t *trails) follow(end, forward int32) {
	for end = t.mate[end]; end >= 0 && !t.done[end/2]; end = t.mate[end^1] {
		t.done[end/2], t.flip[end/2] = true, end&1 == forward
	}
}

// splitter takes the demand of groups apart. It is scratch for groups of so many pods.
type splitter struct {
	pods   int
	trails *trails
	odd    [][2]int32
	arcs   [][2]int32 // of the last orient: from a pod to a pod, as often as links lead that way
	sides  [][2]int32
}

func newSplitter(pods int) *splitter { return &splitter{pods: pods, trails: newTrails(2 * pods)} }

// orient splits the links of a group, a sound matrix C, into arcs: C = A + Aᵀ where A says how many lead from a pod to
// another. The links in and out of a pod are as many, or differ by one (Theorem 3.1). Half of what two pods have goes each
// way, and what is left over goes along trails (ours; the paper finds a minimum cost flow). The arcs are good until it is
// called again.
func (s *splitter) orient(links []int32) [][2]int32 {
	s.arcs, s.odd = s.arcs[:0], s.odd[:0]
	n := s.pods
	for i := range n {
		for k, x := range links[i*n+i+1 : (i+1)*n] {
			if x == 0 {
				continue
			}
			there := [2]int32{int32(i), int32(i + 1 + k)}
			back := [2]int32{there[1], there[0]}
			for range x / 2 {
				s.arcs = append(s.arcs, there, back)
			}
			if x%2 == 1 {
				s.odd = append(s.odd, there)
			}
		}
	}
	s.trails.direct(s.odd)
	for i, e := range s.odd {
		if s.trails.flip[i] {
			e[0], e[1] = e[1], e[0]
		}
		s.arcs = append(s.arcs, e)
	}
	return s.arcs
}

// colour splits arcs into matchings: no two of a colour leave a pod, and no two reach one. There are so many colours, and
// no pod has more arcs in or out. It may reorder arcs, and calls each for those of every colour that there are. A power of
// two is halved until one is left; other numbers take an edge colouring.
func (s *splitter) colour(arcs [][2]int32, colours int, each func(colour int, arcs [][2]int32)) {
	if colours&(colours-1) == 0 {
		s.halves(arcs, 0, colours, each)
		return
	}
	edges := make([][2]int, len(arcs))
	for i, a := range arcs {
		edges[i] = [2]int{int(a[0]), int(a[1])}
	}
	of, n := graph.EdgeColouring(s.pods, s.pods, edges)
	byColour := make([][][2]int32, n)
	for i, a := range arcs {
		byColour[of[i]] = append(byColour[of[i]], a)
	}
	for c, some := range byColour {
		each(c, some)
	}
}

// halves gives arcs of at most a degree, a power of two, the colours from first on.
func (s *splitter) halves(arcs [][2]int32, first, degree int, each func(colour int, arcs [][2]int32)) {
	if degree == 1 || len(arcs) == 0 {
		each(first, arcs)
		return
	}
	middle := s.halve(arcs)
	s.halves(arcs[:middle], first, degree/2, each)
	s.halves(arcs[middle:], first+degree/2, degree/2, each)
}

// halve reorders arcs into two halves, and returns where the second begins: what leaves a pod is as much in both, or
// differs by one, and so is what reaches it.
func (s *splitter) halve(arcs [][2]int32) int {
	s.sides = append(s.sides[:0], arcs...)
	for i := range s.sides {
		s.sides[i][1] += int32(s.pods)
	}
	s.trails.direct(s.sides)
	low, high := 0, len(arcs)
	for i, a := range s.sides {
		a[1] -= int32(s.pods)
		if s.trails.flip[i] {
			high--
			arcs[high] = a
		} else {
			arcs[low] = a
			low++
		}
	}
	return low
}
