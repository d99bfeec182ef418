package graph

// HopcroftKarp returns a largest matching of a bipartite graph: for each left node the right one it is
// matched with, or -1. adjacent lists the right nodes of each left one. It takes O(E √V) time.
func HopcroftKarp(left, right int, adjacent [][]int) (matchLeft []int) {
	m := newMatching(left, right, adjacent)
	m.grow()
	return m.of[0]
}

// VertexCover returns a smallest set of left and right nodes, rows and columns in rising order, such that every edge
// has an end in it. It has as many nodes as a largest matching has edges (König).
func VertexCover(left, right int, adjacent [][]int) (rows, columns []int) {
	m := newMatching(left, right, adjacent)
	m.grow()
	// What alternating paths from left nodes without a mate reach: the cover is the left nodes they do not
	// reach and the right ones they do.
	reached := make([]bool, right)
	m.layer()
	for u := range left {
		if m.level[u] < 0 {
			rows = append(rows, u)
			continue
		}
		for _, v := range adjacent[u] {
			reached[v] = true
		}
	}
	for v, is := range reached {
		if is {
			columns = append(columns, v)
		}
	}
	return rows, columns
}

// matching is the work on one.
type matching struct {
	adjacent [][]int
	of       [2][]int // by side and node, its mate or -1
	level    []int    // by left node, its distance from those without a mate; -1 is out of reach
	next     []int    // by left node, the first neighbour that was not tried in this phase
	queue    []int
}

func newMatching(left, right int, adjacent [][]int) *matching {
	m := &matching{adjacent: adjacent, level: make([]int, left), next: make([]int, left)}
	for side, n := range [2]int{left, right} {
		m.of[side] = make([]int, n)
		for v := range m.of[side] {
			m.of[side][v] = -1
		}
	}
	return m
}

// grow makes the matching as large as it can be.
func (m *matching) grow() {
	for m.layer() {
		clear(m.next)
		for u := range m.of[0] {
			if m.of[0][u] < 0 {
				m.augment(u)
			}
		}
	}
}

// layer finds the distances as far as the shortest augmenting paths go, and reports whether there is one.
func (m *matching) layer() bool {
	m.queue = m.queue[:0]
	for u := range m.level {
		m.level[u] = -1
		if m.of[0][u] < 0 {
			m.level[u] = 0
			m.queue = append(m.queue, u)
		}
	}
	free, last := false, -1
	for i := 0; i < len(m.queue); i++ {
		u := m.queue[i]
		if free && m.level[u] > last {
			break
		}
		for _, v := range m.adjacent[u] {
			w := m.of[1][v]
			if w < 0 {
				free, last = true, m.level[u]
			} else if m.level[w] < 0 {
				m.level[w] = m.level[u] + 1
				m.queue = append(m.queue, w)
			}
		}
	}
	return free
}

// augment looks for a path from u down the layers to a right node without a mate, and reverses it. The
// path is in a slice of its own, since it can be as long as the graph is large.
func (m *matching) augment(u int) {
	path := []int{u}
	for len(path) > 0 {
		u := path[len(path)-1]
		if m.next[u] == len(m.adjacent[u]) {
			path = path[:len(path)-1]
			if len(path) > 0 {
				m.next[path[len(path)-1]]++
			}
			continue
		}
		w := m.of[1][m.adjacent[u][m.next[u]]]
		switch {
		case w < 0:
			for _, u := range path {
				v := m.adjacent[u][m.next[u]]
				m.of[0][u], m.of[1][v] = v, u
				m.next[u]++
			}
			return
		case m.level[w] == m.level[u]+1:
			path = append(path, w)
		default:
			m.next[u]++
		}
	}
}
