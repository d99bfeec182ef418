package railx

import (
	"fmt"
	"slices"
)

// Rectangles divides the healthy nodes of a grid into as few rectangles as it can by rows or by columns: rows in
// which the same columns are healthy make up one rectangle, and the other way round, whichever gives fewer (rows if
// neither does). Every healthy node is in just one, so that nothing is lost to faults when several jobs share the
// grid (RailX, figure 20; the construction is ours). They come largest first. The error, for a fault outside of the
// grid or if no node is left, matches ErrFaults.
func Rectangles(g Grid, faults ...Node) ([]Rectangle, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	dead := map[Node]bool{}
	for _, n := range faults {
		if !g.Contains(n) {
			return nil, fmt.Errorf("%w: %v is not in the grid: want a column of 0 to %d and a row of 0 to %d",
				ErrFaults, n, g.Columns-1, g.Rows-1)
		}
		dead[n] = true
	}
	if len(dead) == g.Columns*g.Rows {
		return nil, fmt.Errorf("%w: all %d nodes are faulty", ErrFaults, len(dead))
	}
	rects := alike(g.Rows, g.Columns, func(row, column int) bool { return dead[Node{column, row}] })
	columns := alike(g.Columns, g.Rows, func(column, row int) bool { return dead[Node{column, row}] })
	if len(columns) < len(rects) {
		for i, r := range columns {
			columns[i] = Rectangle{Columns: r.Rows, Rows: r.Columns}
		}
		rects = columns
	}
	slices.SortStableFunc(rects, func(a, b Rectangle) int { return b.Nodes() - a.Nodes() })
	return rects, nil
}

// alike groups rows that are healthy in the same columns.
func alike(rows, columns int, dead func(row, column int) bool) []Rectangle {
	var rects []Rectangle
	where := map[string]int{}
	pattern := make([]byte, columns)
	for row := range rows {
		healthy := false
		for column := range columns {
			pattern[column] = 0
			if !dead(row, column) {
				pattern[column], healthy = 1, true
			}
		}
		if !healthy {
			continue
		}
		i, known := where[string(pattern)]
		if !known {
			i = len(rects)
			where[string(pattern)] = i
			r := Rectangle{}
			for column, p := range pattern {
				if p == 1 {
					r.Columns = append(r.Columns, column)
				}
			}
			rects = append(rects, r)
		}
		rects[i].Rows = append(rects[i].Rows, row)
	}
	return rects
}

// Fit takes the nodes of a job, so many columns by so many rows, out of the first of the free rectangles that is
// large enough, and returns them and what is then free. What is left of that rectangle is cut in two such that the
// larger part is as large as can be. If ok is false no rectangle is large enough, and left is free.
func Fit(free []Rectangle, columns, rows int) (job Rectangle, left []Rectangle, ok bool) {
	for i, r := range free {
		w, h := len(r.Columns), len(r.Rows)
		if columns < 1 || rows < 1 || w < columns || h < rows {
			continue
		}
		job = Rectangle{slices.Clone(r.Columns[:columns]), slices.Clone(r.Rows[:rows])}
		side := Rectangle{slices.Clone(r.Columns[columns:]), slices.Clone(r.Rows)} // all rows
		below := Rectangle{slices.Clone(job.Columns), slices.Clone(r.Rows[rows:])}
		if max((w-columns)*rows, w*(h-rows)) > max(side.Nodes(), below.Nodes()) {
			side.Rows, below.Columns = slices.Clone(job.Rows), slices.Clone(r.Columns) // all columns
		}
		if side.Nodes() < below.Nodes() {
			side, below = below, side
		}
		left = slices.Clone(free[:i])
		for _, part := range []Rectangle{side, below} {
			if part.Nodes() > 0 {
				left = append(left, part)
			}
		}
		return job, append(left, free[i+1:]...), true
	}
	return Rectangle{}, free, false
}

// Together returns the links of all switches with several jobs on one grid. Two that both use a port, which they
// cannot unless they share a node, are an error that matches ErrShape; so are different grids.
func Together(jobs ...*Config) (map[Switch][]Link, error) {
	all := map[Switch][]Link{}
	for _, c := range jobs {
		if c.grid != jobs[0].grid {
			return nil, fmt.Errorf("%w: jobs of two grids, %+v and %+v", ErrShape, jobs[0].grid, c.grid)
		}
		for _, s := range c.Switches() {
			all[s] = append(all[s], c.on(s)...)
		}
	}
	for s, links := range all {
		sortLinks(links)
		used := make([]bool, jobs[0].grid.Ports(s.Dimension))
		for _, l := range links {
			for _, p := range [2]Port{l.Plus, l.Minus} {
				if int(p) >= len(used) || p < 0 || used[p] {
					v, _ := p.Node()
					return nil, fmt.Errorf("%w: %v: two jobs use port %d, of node %v", ErrShape, s, p, s.node(v))
				}
				used[p] = true
			}
		}
	}
	return all, nil
}
