package baseline

import (
	"math"
	"slices"
)

// matcher finds matchings of maximum weight in general graphs: Edmonds' primal-dual method, in O(n³) time (see Galil, "Efficient
// Algorithms for Finding Maximum Matching in Graphs", 1986). It grows alternating trees from all free nodes. Each node has a
// price, and so has each blossom, an odd cycle that is treated as one node; the prices of the ends of an edge are never
// less together than twice its weight, and edges where they are as much, the tight ones, are those that trees grow by. When
// no tight edge is left the prices change until there is one, or until the price of a free node is 0: the matching is
// optimal then.
//
// Nodes are numbered from 1, those beyond n are blossoms, and 0 is none.
type matcher struct {
	n, used int // nodes, and numbers in use with blossoms
	size    int // numbers there are
	edges   []edge
	price   []int64
	mate    []int   // by node or blossom, the node at the far end of its matched edge
	nearest []int   // by tree-less or even blossom, the node of an even one from which the least slack leads to it
	top     []int   // the outermost blossom that it is in
	parent  []int   // by odd blossom, and free even ones 0, the node from which the tree leads to it
	side    []int8  // by outermost blossom
	inside  []int   // by blossom and node, which of its members the node is in
	members [][]int // of a blossom in order around it, from the one that leads to the root
	seen    []int
	round   int
	queue   []int
}

// edge is an edge between two nodes, also where it stands for the best edge between two blossoms.
type edge struct {
	u, v   int
	weight int64
}

// Sides of outermost blossoms.
const (
	outside int8 = iota - 1 // in no tree
	even
	odd
)

// newMatcher returns a matcher for up to n nodes.
func newMatcher(n int) *matcher {
	size := n + n/2 + 2
	return &matcher{
		n: n, size: size, edges: make([]edge, size*size), price: make([]int64, size), mate: make([]int, size),
		nearest: make([]int, size), top: make([]int, size), parent: make([]int, size), side: make([]int8, size),
		inside: make([]int, size*(n+1)), members: make([][]int, size), seen: make([]int, size),
	}
}

// match returns with which node, counted from 0, each of n is matched, or -1. Weights are symmetric, and 0 or more; edges of
// weight 0 are none. n is at most that of newMatcher.
func (m *matcher) match(n int, weight func(i, j int) int64) []int {
	m.load(n, weight)
	for m.grow() {
	}
	all := make([]int, n)
	for u := range all {
		all[u] = m.mate[u+1] - 1
	}
	return all
}

func (m *matcher) load(n int, weight func(i, j int) int64) {
	m.n = n
	clear(m.mate)
	clear(m.top)
	clear(m.inside)
	m.used = m.n
	heaviest := int64(0)
	for u := 1; u <= m.n; u++ {
		m.top[u] = u
		m.inside[u*(m.n+1)+u] = u
		for v := 1; v <= m.n; v++ {
			w := int64(0)
			if u != v {
				w = weight(u-1, v-1)
			}
			*m.edge(u, v) = edge{u, v, w}
			heaviest = max(heaviest, w)
		}
	}
	for u := 1; u <= m.n; u++ {
		m.price[u] = heaviest
	}
}

func (m *matcher) edge(u, v int) *edge { return &m.edges[u*m.size+v] }

// slack is how far an edge is from being tight.
func (m *matcher) slack(e *edge) int64 { return m.price[e.u] + m.price[e.v] - 2*e.weight }

// offer makes a node the nearest to a blossom if it is nearer.
func (m *matcher) offer(u, x int) {
	if m.nearest[x] == 0 || m.slack(m.edge(u, x)) < m.slack(m.edge(m.nearest[x], x)) {
		m.nearest[x] = u
	}
}

// findNearest finds the nearest node to a blossom.
func (m *matcher) findNearest(x int) {
	m.nearest[x] = 0
	for u := 1; u <= m.n; u++ {
		if m.edge(u, x).weight > 0 && m.top[u] != x && m.side[m.top[u]] == even {
			m.offer(u, x)
		}
	}
}

// push puts the nodes of a blossom into the queue of those whose edges are to be looked at.
func (m *matcher) push(x int) {
	if x <= m.n {
		m.queue = append(m.queue, x)
		return
	}
	for _, y := range m.members[x] {
		m.push(y)
	}
}

// put makes b the outermost blossom of all that is in x.
func (m *matcher) put(x, b int) {
	m.top[x] = b
	if x > m.n {
		for _, y := range m.members[x] {
			m.put(y, b)
		}
	}
}

// steps returns how many steps of even number lead around blossom b to member x, and turns the blossom to make it even.
func (m *matcher) steps(b, x int) int {
	at := slices.Index(m.members[b], x)
	if at%2 == 0 {
		return at
	}
	slices.Reverse(m.members[b][1:])
	return len(m.members[b]) - at
}

// marry matches blossom u with v by the edge between them, and what is in u around it.
func (m *matcher) marry(u, v int) {
	e := *m.edge(u, v)
	m.mate[u] = e.v
	if u <= m.n {
		return
	}
	x := m.inside[u*(m.n+1)+e.u]
	at := m.steps(u, x)
	for i := range at {
		m.marry(m.members[u][i], m.members[u][i^1])
	}
	m.marry(x, v)
	rotate(m.members[u], at)
}

// rotate makes the element at a place the first.
func rotate(all []int, at int) {
	slices.Reverse(all[:at])
	slices.Reverse(all[at:])
	slices.Reverse(all)
}

// augment matches u with v, and all the way from u to the root of its tree the other way round.
func (m *matcher) augment(u, v int) {
	for {
		next := m.top[m.mate[u]]
		m.marry(u, v)
		if next == 0 {
			return
		}
		up := m.top[m.parent[next]]
		m.marry(next, up)
		u, v = up, next
	}
}

// meet returns where the ways from two even blossoms to their roots meet, or 0.
func (m *matcher) meet(u, v int) int {
	m.round++
	for u != 0 || v != 0 {
		if u != 0 {
			if m.seen[u] == m.round {
				return u
			}
			m.seen[u] = m.round
			if u = m.top[m.mate[u]]; u != 0 {
				u = m.top[m.parent[u]]
			}
		}
		u, v = v, u
	}
	return 0
}

// shrink makes a blossom of the cycle from where the ways of u and v meet.
func (m *matcher) shrink(u, base, v int) {
	b := m.n + 1
	for b <= m.used && m.top[b] != 0 {
		b++
	}
	m.used = max(m.used, b)
	m.price[b], m.side[b], m.mate[b], m.parent[b] = 0, even, m.mate[base], m.parent[base]
	m.members[b] = append(m.members[b][:0], base)
	climb := func(x int) {
		for x != base {
			y := m.top[m.mate[x]]
			m.members[b] = append(m.members[b], x, y)
			m.push(y)
			x = m.top[m.parent[y]]
		}
	}
	climb(u)
	slices.Reverse(m.members[b][1:])
	climb(v)
	m.put(b, b)
	m.join(b)
	m.findNearest(b)
}

// join gives a new blossom the tightest edges of its members.
func (m *matcher) join(b int) {
	for x := 1; x <= m.used; x++ {
		m.edge(b, x).weight, m.edge(x, b).weight = 0, 0
	}
	row := m.inside[b*(m.n+1) : (b+1)*(m.n+1)]
	clear(row)
	for _, y := range m.members[b] {
		for x := 1; x <= m.used; x++ {
			if e := m.edge(y, x); e.weight > 0 && (m.edge(b, x).weight == 0 || m.slack(e) < m.slack(m.edge(b, x))) {
				*m.edge(b, x), *m.edge(x, b) = *e, *m.edge(x, y)
			}
		}
		for x := 1; x <= m.n; x++ {
			if m.inside[y*(m.n+1)+x] != 0 {
				row[x] = y
			}
		}
	}
}

// expand takes an odd blossom of price 0 apart: the even way around it stays in the tree.
func (m *matcher) expand(b int) {
	for _, x := range m.members[b] {
		m.put(x, x)
	}
	entry := m.inside[b*(m.n+1)+m.edge(b, m.parent[b]).u]
	at := m.steps(b, entry)
	all := m.members[b]
	for i := 0; i < at; i += 2 {
		x, y := all[i], all[i+1]
		m.parent[x] = m.edge(y, x).u
		m.side[x], m.side[y] = odd, even
		m.nearest[x] = 0
		m.findNearest(y)
		m.push(y)
	}
	m.side[entry], m.parent[entry] = odd, m.parent[b]
	for _, x := range all[at+1:] {
		m.side[x] = outside
		m.findNearest(x)
	}
	m.top[b] = 0
}

// take grows a tree by a tight edge from an even node, and tells whether the matching has one more edge by it.
func (m *matcher) take(e edge) bool {
	u, v := m.top[e.u], m.top[e.v]
	switch m.side[v] {
	case outside:
		m.parent[v], m.side[v] = e.u, odd
		next := m.top[m.mate[v]]
		m.nearest[v], m.nearest[next] = 0, 0
		m.side[next] = even
		m.push(next)
	case even:
		base := m.meet(u, v)
		if base == 0 {
			m.augment(u, v)
			m.augment(v, u)
			return true
		}
		m.shrink(u, base, v)
	}
	return false
}

// outermost tells whether a number is in use, and in no other blossom.
func (m *matcher) outermost(x int) bool { return m.top[x] == x }

// grow finds one more edge for the matching, and tells whether there is any.
func (m *matcher) grow() bool {
	m.queue = m.queue[:0]
	for x := 1; x <= m.used; x++ {
		m.side[x], m.nearest[x] = outside, 0
		if m.outermost(x) && m.mate[x] == 0 {
			m.parent[x], m.side[x] = 0, even
			m.push(x)
		}
	}
	if len(m.queue) == 0 {
		return false
	}
	for {
		if m.scan() {
			return true
		}
		if !m.reprice() {
			return false
		}
		m.queue = m.queue[:0]
		if m.tightened() {
			return true
		}
		for b := m.n + 1; b <= m.used; b++ {
			if m.outermost(b) && m.side[b] == odd && m.price[b] == 0 {
				m.expand(b)
			}
		}
	}
}

// scan grows trees by the tight edges of the nodes in the queue.
func (m *matcher) scan() bool {
	for i := 0; i < len(m.queue); i++ {
		u := m.queue[i]
		if m.side[m.top[u]] == odd {
			continue
		}
		for v := 1; v <= m.n; v++ {
			e := m.edge(u, v)
			if e.weight == 0 || m.top[u] == m.top[v] {
				continue
			}
			if m.slack(e) > 0 {
				m.offer(u, m.top[v])
			} else if m.take(*e) {
				return true
			}
		}
	}
	return false
}

// reprice changes prices as far as they may, and tells whether that is short of a price of 0 for free nodes.
func (m *matcher) reprice() bool {
	change := int64(math.MaxInt64)
	for x := 1; x <= m.used; x++ {
		if !m.outermost(x) {
			continue
		}
		if x > m.n && m.side[x] == odd {
			change = min(change, m.price[x]/2)
		}
		if near := m.nearest[x]; near != 0 && m.side[x] != odd {
			slack := m.slack(m.edge(near, x))
			if m.side[x] == even {
				slack /= 2
			}
			change = min(change, slack)
		}
	}
	for u := 1; u <= m.n; u++ {
		switch m.side[m.top[u]] {
		case even:
			if m.price[u] <= change {
				return false
			}
			m.price[u] -= change
		case odd:
			m.price[u] += change
		}
	}
	for b := m.n + 1; b <= m.used; b++ {
		if !m.outermost(b) {
			continue
		}
		switch m.side[b] {
		case even:
			m.price[b] += 2 * change
		case odd:
			m.price[b] -= 2 * change
		}
	}
	return true
}

// tightened grows trees by the edges that became tight.
func (m *matcher) tightened() bool {
	for x := 1; x <= m.used; x++ {
		near := m.nearest[x]
		if !m.outermost(x) || near == 0 || m.top[near] == x {
			continue
		}
		if e := m.edge(near, x); m.slack(e) == 0 && m.take(*e) {
			return true
		}
	}
	return false
}
