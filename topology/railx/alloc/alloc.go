package alloc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/topology/railx"
)

const (
	// MostSide is the most rows, and the most columns, that a grid may have here.
	MostSide = railx.MaxNodes
	// MostExact is the largest smaller side of a component for which all choices are looked at.
	MostExact = 22
)

// Allocation is a grid without faults within a grid that has some.
type Allocation struct {
	Grid    railx.Grid // as it was given: Columns and Rows are those of the whole
	Rows    []int      // given up, rising: P of appendix A.5
	Columns []int      // given up, rising: Q
	// Exact says that no allocation has more nodes. Of one by [Largest] it is false only if a component was too large to
	// look at all choices and Bound was not reached.
	Exact bool
	Bound int // no allocation has more nodes than this
}

// Size returns what is left.
func (a Allocation) Size() (columns, rows int) {
	return a.Grid.Columns - len(a.Columns), a.Grid.Rows - len(a.Rows)
}

// Nodes returns how many nodes are left.
func (a Allocation) Nodes() int {
	columns, rows := a.Size()
	return columns * rows
}

// Portion returns how many of all nodes are left, from 0 to 1.
func (a Allocation) Portion() float64 {
	return float64(a.Nodes()) / float64(a.Grid.Columns*a.Grid.Rows)
}

// Kept returns the columns and rows that are left, rising: what a job is wired to.
func (a Allocation) Kept() (columns, rows []int) {
	return others(a.Grid.Columns, a.Columns), others(a.Grid.Rows, a.Rows)
}

// String returns one line: "62 x 62 of 64 x 64 nodes (93.8 %); without rows 3, 9 and columns 1, 4".
func (a Allocation) String() string {
	columns, rows := a.Size()
	text := fmt.Sprintf("%d x %d of %d x %d nodes (%.1f %%)", columns, rows, a.Grid.Columns, a.Grid.Rows, 100*a.Portion())
	var without []string
	if len(a.Rows) > 0 {
		without = append(without, list("row", a.Rows))
	}
	if len(a.Columns) > 0 {
		without = append(without, list("column", a.Columns))
	}
	if len(without) > 0 {
		text += "; without " + strings.Join(without, " and ")
	}
	if !a.Exact {
		text += fmt.Sprintf("; not known to be the best: the bound is %s", natural.Count(a.Bound, "node"))
	}
	return text
}

func list(what string, all []int) string {
	var words []string
	for _, i := range all {
		words = append(words, fmt.Sprint(i))
	}
	if len(all) > 1 {
		what += "s"
	}
	return what + " " + strings.Join(words, ", ")
}

// others returns the numbers below n that are not in sorted.
func others(n int, sorted []int) []int {
	all := make([]int, 0, max(n-len(sorted), 0))
	for i := range n {
		if _, gone := slices.BinarySearch(sorted, i); !gone {
			all = append(all, i)
		}
	}
	return all
}

// Largest returns the allocation with the most nodes; of those, the one with the fewest rows given up. A fault that is
// given twice counts once. An error matches [railx.ErrGrid] if there is no such grid, and [railx.ErrFaults] if a
// fault is outside of it or every node is faulty: as long as one node works, there is an allocation.
func Largest(columns, rows int, faults []railx.Node) (Allocation, error) {
	p, err := newProblem(columns, rows, faults)
	if err != nil {
		return Allocation{}, err
	}
	best, at := 0, -1
	for a, b := range p.reached.columns {
		if nodes := (rows - a) * (columns - b); nodes > best {
			best, at = nodes, a
		}
	}
	if at < 0 {
		return Allocation{}, fmt.Errorf("%w: none of the %d x %d nodes works", railx.ErrFaults, columns, rows)
	}
	return p.allocation(at), nil
}

// Fit returns an allocation that leaves at least wantColumns by wantRows nodes, with as few rows given up as can be. It
// need not be the largest; Exact and Bound say so. An error matches [railx.ErrFaults] if there is none; it names the largest allocation. If that error says "known", a
// component was too large to look at all choices.
func Fit(columns, rows int, faults []railx.Node, wantColumns, wantRows int) (Allocation, error) {
	p, err := newProblem(columns, rows, faults)
	if err != nil {
		return Allocation{}, err
	}
	if wantColumns < 1 || wantRows < 1 || wantColumns > columns || wantRows > rows {
		return Allocation{}, fmt.Errorf("%w: a job of %d x %d nodes in a grid of %d x %d: want 1 x 1 to %d x %d",
			railx.ErrGrid, wantColumns, wantRows, columns, rows, columns, rows)
	}
	for a, b := range p.reached.columns {
		if rows-a >= wantRows && columns-b >= wantColumns {
			return p.allocation(a), nil
		}
	}
	most, err := Largest(columns, rows, faults)
	if err != nil {
		return Allocation{}, err
	}
	is := "there is no"
	if !most.Exact {
		is = "there is no known"
	}
	w, h := most.Size()
	return Allocation{}, fmt.Errorf("%w: %s grid of %d x %d nodes without a fault: the largest is %d x %d",
		railx.ErrFaults, is, wantColumns, wantRows, w, h)
}

// allocation is that of the reached front at a rows given up.
func (p *problem) allocation(a int) Allocation {
	bound := 0
	for a, b := range p.bounded.columns {
		bound = max(bound, (p.height-a)*(p.width-b))
	}
	rows, columns := p.reached.chosen(p.components, a)
	slices.Sort(rows)
	slices.Sort(columns)
	got := Allocation{Grid: railx.Grid{Columns: p.width, Rows: p.height}, Rows: rows, Columns: columns, Bound: bound}
	got.Exact = got.Nodes() >= bound
	return got
}
