package alloc

import (
	"math"
	"slices"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// relax finds the corners of the lower hull of the front, and from those what can be reached between them. A cover that
// is cheapest when a row weighs p and a column q is a corner, and the least cut of a flow; each pair of corners gives the
// weights for which there may be another between them.
func (c *component) relax() {
	c.begin()
	c.bound = make([]int, len(c.rows)+1)
	all := make([]int, len(c.rows))
	for i := range all {
		all[i] = i
	}
	// A component gives up all of its columns if none of its rows, and the other way round.
	corners := []corner{{b: len(c.columns)}}
	c.record(nil, needed(c.byColumn, make([]bool, len(c.rows))))
	c.between(corner{b: len(c.columns)}, corner{a: len(c.rows), rows: all}, &corners)
	for i := 1; i < len(corners); i++ {
		from, to := corners[i-1], corners[i]
		c.record(to.rows, make([]int, to.b))
		for a := from.a; a <= to.a; a++ {
			// The line from corner to corner, rounded up: columns are whole.
			down := (from.b - to.b) * (a - from.a) / (to.a - from.a)
			c.bound[a] = from.b - down
		}
		// From the one corner by rows, from the other by columns: neither is always better.
		greedy(c.byRow, c.byColumn, from.rows, to.a-1, func(rows, columns []int) { c.record(rows, columns) })
		columns := needed(c.byColumn, marks(len(c.rows), to.rows))
		greedy(c.byColumn, c.byRow, columns, from.b-1, func(columns, rows []int) { c.record(rows, columns) })
	}
}

// corner is a cover with a rows and b columns.
type corner struct {
	a, b int
	rows []int // by index
}

// between appends the corners from low, which is there, to high, in order.
func (c *component) between(low, high corner, all *[]corner) {
	p, q := low.b-high.b, high.a-low.a
	if q > 1 || p > 1 {
		if mid := c.cheapest(p, q); p*mid.a+q*mid.b < p*low.a+q*low.b {
			c.between(low, mid, all)
			c.between(mid, high, all)
			return
		}
	}
	*all = append(*all, high)
}

// cheapest is a cover of the least weight if a row weighs p and a column q.
func (c *component) cheapest(p, q int) corner {
	rows, columns := len(c.rows), len(c.columns)
	f := graph.NewFlow(rows + columns + 2)
	source, sink := rows+columns, rows+columns+1
	for i, near := range c.byRow {
		f.Arc(source, i, p, 0)
		for _, j := range near {
			f.Arc(i, rows+j, p+q, 0) // more than the row: never cut
		}
	}
	for j := range c.byColumn {
		f.Arc(rows+j, sink, q, 0)
	}
	f.Send(source, sink, math.MaxInt)
	reached := f.Cut(source)
	var best corner
	gone := make([]bool, rows)
	for i := range c.byRow {
		if !reached[i] {
			best.rows, gone[i] = append(best.rows, i), true
		}
	}
	best.a, best.b = len(best.rows), len(needed(c.byColumn, gone))
	return best
}

// needed returns which of far must be given up, as they have a neighbour that is not gone.
func needed(far [][]int, gone []bool) (all []int) {
	for j, near := range far {
		if slices.ContainsFunc(near, func(r int) bool { return !gone[r] }) {
			all = append(all, j)
		}
	}
	return all
}

// marks are those numbers of n.
func marks(n int, numbers []int) []bool {
	all := make([]bool, n)
	for _, i := range numbers {
		all[i] = true
	}
	return all
}

// greedy gives up one more of near after another, until most are, each time one that frees the most of far; of those, the
// one with the most neighbours. It tells of each step but the first.
func greedy(near, far [][]int, start []int, most int, tell func(near, far []int)) {
	gone, all := marks(len(near), start), slices.Clone(start)
	for len(all) < most {
		frees := make([]int, len(near))
		for _, neighbours := range far {
			last, n := 0, 0
			for _, r := range neighbours {
				if !gone[r] {
					last = r
					n++
				}
			}
			if n == 1 {
				frees[last]++
			}
		}
		best := -1
		for r := range frees {
			if !gone[r] && (best < 0 || frees[r] > frees[best] || frees[r] == frees[best] && len(near[r]) > len(near[best])) {
				best = r
			}
		}
		gone[best] = true
		all = append(all, best)
		tell(all, needed(far, gone))
	}
}
