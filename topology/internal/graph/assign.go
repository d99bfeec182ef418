package graph

import "math"

// Assign gives each row of a cost matrix a column of its own such that the sum of the costs is least: the
// Hungarian method, in O(rows² columns) time. All rows are equally long. +Inf and NaN forbid a place; other
// costs may be negative, but not -Inf. ok is false if there is no such assignment: more rows than columns, or too much forbidden.
func Assign(cost [][]float64) (column []int, total float64, ok bool) {
	if len(cost) == 0 {
		return nil, 0, true
	}
	if len(cost) > len(cost[0]) {
		return nil, 0, false
	}
	h := newHungarian(cost)
	for r := range cost {
		if !h.place(r) {
			return nil, 0, false
		}
	}
	column = make([]int, len(cost))
	for c, r := range h.row {
		if r >= 0 {
			column[r] = c
		}
	}
	for r, c := range column {
		total += cost[r][c]
	}
	return column, total, true
}

// hungarian is an assignment of the first rows, and prices that prove it least.
type hungarian struct {
	cost     [][]float64
	ofRow    []float64 // price of each row
	ofColumn []float64 // price of each column; a cost is never below the two prices of its place
	row      []int     // by column, the row that has it, or -1

	slack []float64 // by column, how far the best of the rows in the tree is above the prices
	from  []int     // by column, the column before it on the way from the root, or -1
	done  []bool    // by column, whether its row is in the tree
}

func newHungarian(cost [][]float64) *hungarian {
	n := len(cost[0])
	h := &hungarian{
		cost: cost, ofRow: make([]float64, len(cost)), ofColumn: make([]float64, n), row: make([]int, n),
		slack: make([]float64, n), from: make([]int, n), done: make([]bool, n),
	}
	for c := range h.row {
		h.row[c] = -1
	}
	return h
}

// place assigns one more row: it grows a tree of alternating paths from that row by least slack until it
// meets a free column.
func (h *hungarian) place(root int) bool {
	clear(h.done)
	for c := range h.slack {
		h.slack[c], h.from[c] = math.Inf(1), -1
	}
	last := -1 // the column that was reached last; -1 is the root
	for r := root; r >= 0; r = h.row[last] {
		best, next := math.Inf(1), -1
		for c, cost := range h.cost[r] {
			if h.done[c] {
				continue
			}
			if s := cost - h.ofRow[r] - h.ofColumn[c]; s < h.slack[c] {
				h.slack[c], h.from[c] = s, last
			}
			if h.slack[c] < best {
				best, next = h.slack[c], c
			}
		}
		if next < 0 {
			return false
		}
		h.reprice(root, best)
		h.done[next] = true
		last = next
	}
	for last >= 0 {
		before := h.from[last]
		if before < 0 {
			h.row[last] = root
		} else {
			h.row[last] = h.row[before]
		}
		last = before
	}
	return true
}

// reprice raises the rows of the tree by what is missing to the next column, and lowers its columns.
func (h *hungarian) reprice(root int, by float64) {
	h.ofRow[root] += by
	for c := range h.slack {
		if h.done[c] {
			h.ofRow[h.row[c]] += by
			h.ofColumn[c] -= by
		} else {
			h.slack[c] -= by
		}
	}
}
