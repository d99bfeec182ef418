package railx

import (
	"fmt"
	"math/bits"
	"slices"
)

// Pair is two nodes of a row or column and how many links they have.
type Pair struct {
	A, B  Node // A before B, by column, then by row
	Lanes int  // 1 or more
}

// Lanes returns how many links two nodes have. It is 0 for nodes that share neither row nor column.
func (c *Config) Lanes(a, b Node) int {
	var s Switch
	var v, w int
	switch {
	case !c.grid.Contains(a) || !c.grid.Contains(b) || a == b:
		return 0
	case a.Row == b.Row:
		s, v, w = Switch{Dimension: X, Group: a.Row}, a.Column, b.Column
	case a.Column == b.Column:
		s, v, w = Switch{Dimension: Y, Group: a.Column}, a.Row, b.Row
	default:
		return 0
	}
	n := 0
	for s.Rail = range c.grid.Rails {
		links := c.on(s)
		for _, want := range [2]Link{{Plus(v), Minus(w)}, {Plus(w), Minus(v)}} {
			i, _ := slices.BinarySearchFunc(links, want.Plus, func(l Link, p Port) int { return int(l.Plus) - int(p) })
			for ; i < len(links) && links[i].Plus == want.Plus; i++ {
				if links[i] == want {
					n++
				}
			}
		}
	}
	return n
}

// Pairs returns all pairs that have links, in order.
func (c *Config) Pairs() []Pair {
	var all []Pair
	for _, d := range []Dimension{X, Y} {
		for _, group := range c.groups(d) {
			s := Switch{Dimension: d, Group: group}
			for at, lanes := range c.pairs(d, group) {
				all = append(all, Pair{s.node(at[0]), s.node(at[1]), lanes})
			}
		}
	}
	slices.SortFunc(all, func(p, q Pair) int {
		if p.A != q.A {
			return compareNodes(p.A, q.A)
		}
		return compareNodes(p.B, q.B)
	})
	return all
}

// pairs returns how many links each two nodes of a row or column have, the lower number first.
func (c *Config) pairs(d Dimension, group int) map[[2]int]int {
	n := map[[2]int]int{}
	for rail := range c.grid.Rails {
		for _, l := range c.on(Switch{d, group, rail}) {
			n[l.ends()]++
		}
	}
	return n
}

// ends returns the numbers of the two nodes, the lower first.
func (l Link) ends() [2]int {
	v, _ := l.Plus.Node()
	w, _ := l.Minus.Node()
	return [2]int{min(v, w), max(v, w)}
}

// Diameter returns the most links on a shortest path between two living nodes. The error, when some two have no path,
// matches ErrLink. It takes little time where all rows are alike, and all columns, as Build has them; else, time in
// proportion to nodes times links.
func (c *Config) Diameter() (int, error) {
	if i, j := c.rect.Columns, c.rect.Rows; len(i) > 1 && len(j) > 1 && c.alike() {
		// Rows and columns are gone along independently of each other.
		sum := 0
		for _, line := range []Rectangle{{i, j[:1]}, {i[:1], j}} {
			one := *c
			one.rect = line
			d, err := one.Diameter()
			if err != nil {
				return 0, err
			}
			sum += d
		}
		return sum, nil
	}
	nodes := c.Nodes()
	number := make(map[Node]int, len(nodes))
	for i, n := range nodes {
		number[n] = i
	}
	words := (len(nodes) + 63) / 64
	// Neighbours are lists of numbers, each once.
	near := make([][]int32, len(nodes))
	for _, d := range []Dimension{X, Y} {
		if d == X && len(c.rect.Columns) == 1 || d == Y && len(c.rect.Rows) == 1 {
			continue
		}
		for _, group := range c.groups(d) {
			s := Switch{Dimension: d, Group: group}
			for at := range c.pairs(d, group) {
				i, a := number[s.node(at[0])]
				j, b := number[s.node(at[1])]
				if a && b && i != j {
					near[i], near[j] = append(near[i], int32(j)), append(near[j], int32(i))
				}
			}
		}
	}
	diameter := 0
	seen, queue, far := make([]uint64, words), make([]int32, 0, len(nodes)), make([]int, len(nodes))
	for root := range nodes {
		clear(seen)
		seen[root/64] |= 1 << (root % 64)
		queue, far[root] = append(queue[:0], int32(root)), 0
		for at := 0; at < len(queue) && len(queue) < len(nodes); at++ {
			v := queue[at]
			for _, w := range near[v] {
				if seen[w/64]>>(w%64)&1 == 0 {
					seen[w/64] |= 1 << (w % 64)
					far[w] = far[v] + 1
					queue = append(queue, w)
				}
			}
		}
		if len(queue) < len(nodes) {
			return 0, fmt.Errorf("%w: %v reaches %d of %d nodes, and not %v",
				ErrLink, nodes[root], len(queue), len(nodes), nodes[unseen(seen)])
		}
		diameter = max(diameter, far[queue[len(queue)-1]])
	}
	return diameter, nil
}

// alike reports whether all rows have the same links, and all columns: whether their lists are shared.
func (c *Config) alike() bool {
	if len(c.dead) > 0 {
		return false
	}
	for s := range c.all() {
		if first := (Switch{s.Dimension, c.groups(s.Dimension)[0], s.Rail}); !same(c.on(s), c.on(first)) {
			return false
		}
	}
	return true
}

// unseen returns the first number that is not in a set.
func unseen(set []uint64) int {
	for i, w := range set {
		if w != ^uint64(0) {
			return i*64 + bits.TrailingZeros64(^w)
		}
	}
	return 0
}
