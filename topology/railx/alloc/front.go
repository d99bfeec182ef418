package alloc

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/ocslab/ocslab/topology/railx"
)

// problem is a grid with faults, its components and what they come to.
type problem struct {
	width, height    int
	components       []*component
	reached, bounded *total // the same if all components are exact
}

// component is a connected part of the graph of faults.
type component struct {
	rows, columns []int   // of the grid, rising
	byRow         [][]int // for each of rows: which of columns, by index
	byColumn      [][]int
	// front is, for each number of rows given up, the fewest columns that then must be; choices says which
	// rows those are, by index. The columns follow from them. Where a number of rows has no choice of its own, the
	// one below it has, with as many columns.
	front   []int
	choices [][]int
	// bound is what no choice can be below; nil if front is exact.
	bound []int
	// singles is how many faults that are alone in their row and column this stands for: its front is
	// singles - a. They are all the same, and there may be many.
	singles bool
}

// total is the combined front of several components.
type total struct {
	columns []int     // the fewest columns given up, by rows given up
	taken   [][]int16 // for each component: how many of its rows, by the rows of it and those before it
}

func newProblem(columns, rows int, faults []railx.Node) (*problem, error) {
	if columns < 1 || rows < 1 || columns > MostSide || rows > MostSide {
		return nil, fmt.Errorf("%w: %d columns and %d rows: want 1 to %d of each", railx.ErrGrid, columns, rows, MostSide)
	}
	for _, f := range faults {
		if f.Column < 0 || f.Column >= columns || f.Row < 0 || f.Row >= rows {
			return nil, fmt.Errorf("%w: node %v is outside of the grid: columns are 0 to %d, rows 0 to %d",
				railx.ErrFaults, f, columns-1, rows-1)
		}
	}
	p := &problem{width: columns, height: rows, components: split(columns, rows, faults)}
	exact := true
	for _, c := range p.components {
		c.solve()
		exact = exact && c.bound == nil
	}
	p.reached = combine(p.components, func(c *component) []int { return c.front })
	p.bounded = p.reached
	if !exact {
		p.bounded = combine(p.components, func(c *component) []int {
			if c.bound != nil {
				return c.bound
			}
			return c.front
		})
	}
	return p, nil
}

// split returns the connected components, those that are one fault each as one, the first.
func split(width, height int, faults []railx.Node) []*component {
	faults = slices.Clone(faults)
	slices.SortFunc(faults, func(a, b railx.Node) int { return cmp.Or(a.Row-b.Row, a.Column-b.Column) })
	faults = slices.Compact(faults)

	// Rows are 0 to height-1, columns follow.
	parent := make([]int, width+height)
	for i := range parent {
		parent[i] = i
	}
	root := func(v int) int {
		for parent[v] != v {
			parent[v] = parent[parent[v]]
			v = parent[v]
		}
		return v
	}
	for _, f := range faults {
		parent[root(f.Row)] = root(height + f.Column)
	}
	members := map[int][]railx.Node{}
	var order []int
	for _, f := range faults {
		r := root(f.Row)
		if members[r] == nil {
			order = append(order, r)
		}
		members[r] = append(members[r], f)
	}
	singles := &component{singles: true}
	all := []*component{singles}
	for _, r := range order {
		if m := members[r]; len(m) == 1 {
			singles.rows, singles.columns = append(singles.rows, m[0].Row), append(singles.columns, m[0].Column)
		} else {
			all = append(all, newComponent(m))
		}
	}
	return all
}

func newComponent(faults []railx.Node) *component {
	c := &component{}
	for _, f := range faults {
		c.rows, c.columns = append(c.rows, f.Row), append(c.columns, f.Column)
	}
	slices.Sort(c.rows)
	slices.Sort(c.columns)
	c.rows, c.columns = slices.Compact(c.rows), slices.Compact(c.columns)
	c.byRow, c.byColumn = make([][]int, len(c.rows)), make([][]int, len(c.columns))
	for _, f := range faults {
		i, _ := slices.BinarySearch(c.rows, f.Row)
		j, _ := slices.BinarySearch(c.columns, f.Column)
		c.byRow[i], c.byColumn[j] = append(c.byRow[i], j), append(c.byColumn[j], i)
	}
	return c
}

// solve finds the front.
func (c *component) solve() {
	switch {
	case c.singles:
		for a := range len(c.rows) + 1 {
			c.front = append(c.front, len(c.rows)-a)
		}
	case min(len(c.rows), len(c.columns)) > MostExact:
		c.relax()
	case len(c.rows) <= len(c.columns):
		c.begin()
		s := search{near: c.byRow, far: len(c.columns), done: c.record}
		s.run()
	default:
		c.begin()
		// The rows that must go are those which meet a column that stays.
		s := search{near: c.byColumn, far: len(c.rows), done: func(near, far []int) bool { return c.record(far, near) }}
		s.run()
	}
	if !c.singles {
		c.settle()
	}
}

// begin makes a front of which nothing is known.
func (c *component) begin() {
	c.front, c.choices = make([]int, len(c.rows)+1), make([][]int, len(c.rows)+1)
	for a := range c.front {
		c.front[a] = math.MaxInt
	}
}

// record notes a cover, unless there is a better one, and reports whether it was new.
func (c *component) record(rows, columns []int) bool {
	for a := 0; a <= len(rows); a++ {
		if c.front[a] <= len(columns) {
			return false
		}
	}
	c.front[len(rows)], c.choices[len(rows)] = len(columns), slices.Clone(rows)
	return true
}

// settle makes the front fall: giving up more rows never needs more columns.
func (c *component) settle() {
	for a := 1; a < len(c.front); a++ {
		if c.front[a] >= c.front[a-1] {
			c.front[a], c.choices[a] = c.front[a-1], c.choices[a-1]
		}
	}
}

// search goes through which of the near side to give up: all others need their neighbours of the far side to be.
type search struct {
	near [][]int
	far  int
	done func(near, far []int) bool // told of each cover; says whether it was worth it

	order  []int      // of the near side, those with the most neighbours first
	wants  [][]uint64 // by place in order: its neighbours, a bit each
	needed [][]uint64 // by place in order: what those before it that are kept need, a bit each
	gone   []int      // of the near side
	least  [][2]int   // sizes of covers that were found, none of which is better than another
}

func (s *search) run() {
	s.order = make([]int, len(s.near))
	for i := range s.order {
		s.order[i] = i
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return len(s.near[b]) - len(s.near[a]) })
	words := (s.far + 63) / 64
	s.wants, s.needed = make([][]uint64, len(s.order)), make([][]uint64, len(s.order)+1)
	for i := range s.needed {
		s.needed[i] = make([]uint64, words)
	}
	for i, v := range s.order {
		s.wants[i] = make([]uint64, words)
		for _, w := range s.near[v] {
			s.wants[i][w/64] |= 1 << (w % 64)
		}
	}
	s.step(0, 0)
}

// step decides about the i-th of the order, count being how many of the far side are needed so far.
func (s *search) step(i, count int) {
	// A cover that is known to need no more of either side is better than all that can still come.
	for _, l := range s.least {
		if l[0] <= len(s.gone) && l[1] <= count {
			return
		}
	}
	if i == len(s.order) {
		s.finish(count)
		return
	}
	next := s.needed[i+1]
	copy(next, s.needed[i])
	s.gone = append(s.gone, s.order[i])
	s.step(i+1, count)
	s.gone = s.gone[:len(s.gone)-1]

	count = 0
	for w, want := range s.wants[i] {
		next[w] = s.needed[i][w] | want
		count += bits.OnesCount64(next[w])
	}
	s.step(i+1, count)
}

func (s *search) finish(count int) {
	far := make([]int, 0, count)
	for w, set := range s.needed[len(s.order)] {
		for ; set != 0; set &= set - 1 {
			far = append(far, w*64+bits.TrailingZeros64(set))
		}
	}
	if s.done(s.gone, far) {
		at := [2]int{len(s.gone), count}
		s.least = slices.DeleteFunc(s.least, func(l [2]int) bool { return l[0] >= at[0] && l[1] >= at[1] })
		s.least = append(s.least, at)
	}
}

// combine adds up fronts: the fewest columns for each number of rows.
func combine(all []*component, front func(*component) []int) *total {
	t := &total{columns: []int{0}}
	for _, c := range all {
		f := front(c)
		sum := make([]int, len(t.columns)+len(f)-1)
		taken := make([]int16, len(sum))
		for i := range sum {
			sum[i] = math.MaxInt
		}
		for a, b := range t.columns {
			for x, y := range f {
				if b+y < sum[a+x] {
					sum[a+x], taken[a+x] = b+y, int16(x)
				}
			}
		}
		t.columns, t.taken = sum, append(t.taken, taken)
	}
	return t
}

// chosen returns the rows and columns that are given up when a rows may be.
func (t *total) chosen(all []*component, a int) (rows, columns []int) {
	for i := len(all) - 1; i >= 0; i-- {
		c, n := all[i], int(t.taken[i][a])
		a -= n
		if c.singles {
			rows, columns = append(rows, c.rows[:n]...), append(columns, c.columns[n:]...)
			continue
		}
		gone := make([]bool, len(c.rows))
		for _, r := range c.choices[n] {
			gone[r] = true
			rows = append(rows, c.rows[r])
		}
		for j, near := range c.byColumn {
			if slices.ContainsFunc(near, func(r int) bool { return !gone[r] }) {
				columns = append(columns, c.columns[j])
			}
		}
	}
	return rows, columns
}
