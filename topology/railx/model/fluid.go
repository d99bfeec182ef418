package model

import (
	"fmt"

	"github.com/ocslab/ocslab/topology/railx"
)

// Spread says which of several links to the same node chips use.
type Spread string

const (
	// Nearest is the link whose chip is the fewest hops of the mesh away; equally near ones share. As in the paper.
	Nearest Spread = "nearest"
	// Every uses all links alike, however far they are: more mesh for better balanced links. Beyond the paper.
	Every Spread = "every"
)

// AllToAll is how busy links are when every chip sends one unit in all, as much to each other chip.
type AllToAll struct {
	Nodes, Chips int
	Lanes        int     // n
	Optical      float64 // units on the busiest direction of an optical link
	Mesh         float64 // units on the busiest direction of a link of a mesh
	Detours      int     // ordered pairs of nodes that go along their column first, since the corner in the row is dead
}

// Throughput returns what each chip sends, in port bandwidths, when the busiest link is full; a link of the mesh is as wide
// as kappa·n ports. It is 0 for a kappa that is not above 0.
func (a AllToAll) Throughput(kappa float64) float64 {
	if !(kappa > 0) {
		return 0
	}
	mesh := kappa * float64(a.Lanes)
	switch {
	case a.Mesh == 0:
		return 1 / a.Optical
	case a.Optical == 0:
		return mesh / a.Mesh
	}
	return min(1/a.Optical, mesh/a.Mesh)
}

// mostWork bounds chips times the nodes of a row and column times chips of a node.
const mostWork = 1 << 30

// Fluid loads every ordered pair of chips of a configuration with the same, on the routes of algorithm 1: within the node to
// an edge chip with a link to the right column, over it, within that node to one with a link to the right node, over it, and
// within that node to the chip. Nodes without links take no part; where one of those is in the corner, the column is taken
// first. Rows and columns must be all-to-all: an error matches [ErrRoute] and names two nodes without a link, or
// [ErrArgument] if the grid does not say how many chips a node has, or is too large.
func Fluid(f Fabric, s Spread) (AllToAll, error) {
	n, err := newNetwork(f)
	if err != nil {
		return AllToAll{}, err
	}
	if s == "" {
		s = Nearest
	}
	if s != Nearest && s != Every {
		return AllToAll{}, fmt.Errorf("%w: links are to be spread %q: want %q or %q", ErrArgument, s, Nearest, Every)
	}
	m, lanes, err := n.mesh()
	if err != nil {
		return AllToAll{}, err
	}
	chips, lines := m*m, n.grid.Columns+n.grid.Rows
	if len(n.alive) > mostWork/chips/(chips+lines) {
		return AllToAll{}, fmt.Errorf("%w: %d nodes of %d x %d chips are too many for a fluid model: take fewer nodes", ErrArgument, n.nodes, m, m)
	}
	out := AllToAll{Nodes: n.nodes, Chips: n.nodes * chips, Lanes: lanes}
	if out.Chips < 2 {
		return AllToAll{}, fmt.Errorf("%w: one chip has nobody to send to: want two or more", ErrArgument)
	}
	if err := n.index(); err != nil {
		return AllToAll{}, err
	}
	x := newFluid(n, m, lanes, s, out.Chips)
	for _, pass := range []func() error{x.rows, x.columns, x.detours, x.arrive} {
		if err := pass(); err != nil {
			return AllToAll{}, err
		}
	}
	for _, v := range x.optical {
		out.Optical = max(out.Optical, v)
	}
	for _, v := range x.mesh {
		out.Mesh = max(out.Mesh, v)
	}
	out.Detours = x.around
	return out, nil
}

// fluid is the state of a model. A chip is numbered by x + y·m within its node.
type fluid struct {
	*network
	m, lanes, chips int // chips of a node
	spread          Spread
	each            float64 // from a chip to each other one
	column          []int   // nodes of each column that are alive
	around          int

	optical []float64     // by node, dimension, rail and sign of the port it leaves by
	mesh    []float64     // by node, chip and direction
	onward  [][]float64   // by node and chip: what has come along the row for the whole column
	last    [][]float64   // by node and chip: what has come for the whole node
	bent    []map[int]leg // by node: what has come along the column and goes on along the row to a node
	walk    *meshWalk
}

// leg is by chip.
type leg []float64

func newFluid(n *network, m, lanes int, s Spread, all int) *fluid {
	x := &fluid{network: n, m: m, lanes: lanes, chips: m * m, spread: s, each: 1 / float64(all-1),
		column: make([]int, n.grid.Columns), optical: make([]float64, len(n.alive)*2*n.grid.Rails*2),
		mesh: make([]float64, len(n.alive)*m*m*4), walk: newMeshWalk(m), bent: make([]map[int]leg, len(n.alive))}
	x.onward, x.last = make([][]float64, len(n.alive)), make([][]float64, len(n.alive))
	for i, alive := range n.alive {
		x.onward[i], x.last[i] = make([]float64, x.chips), make([]float64, x.chips)
		if alive {
			x.column[i%n.grid.Columns]++
		}
	}
	return x
}

// leave sends amounts of the chips of a node over the links to another, and adds them to what arrives there.
func (x *fluid) leave(d, from, to int, amounts func(chip int) float64, arrive []float64) error {
	exits, err := x.between(d, from, to)
	if err != nil {
		return err
	}
	near := make([]int, len(exits)) // the chip of each
	for i, e := range exits {
		near[i] = edge(d, x.m, x.lanes, e)
	}
	for chip := range x.chips {
		amount := amounts(chip)
		if amount == 0 {
			continue
		}
		least, ties := x.m*2, 0
		for _, c := range near {
			switch h := x.hops(chip, c); {
			case x.spread == Every:
				least, ties = -1, len(near)
			case h < least:
				least, ties = h, 1
			case h == least:
				ties++
			}
		}
		share := amount / float64(ties)
		for i, c := range near {
			if least >= 0 && x.hops(chip, c) != least {
				continue
			}
			e := exits[i]
			x.walk.add(chip, c, share)
			x.optical[port(x.grid.Rails, from, d, e)] += share
			arrive[edge(d, x.m, x.lanes, e.far())] += share
		}
	}
	return nil
}

// hops is the distance of two chips of a node.
func (x *fluid) hops(a, b int) int {
	return abs(a%x.m-b%x.m) + abs(a/x.m-b/x.m)
}

func abs(a int) int { return max(a, -a) }

// port numbers the ports of all nodes.
func port(rails, node, d int, e exit) int {
	i := ((node*2+d)*rails + e.rail) * 2
	if e.plus {
		i++
	}
	return i
}

// flush adds what was walked to the mesh of a node.
func (x *fluid) flush(node int) {
	x.walk.flush(x.mesh[node*x.chips*4 : (node+1)*x.chips*4])
}

// rows is the first leg: along the row, to the column of the destination.
func (x *fluid) rows() error {
	for i, alive := range x.alive {
		if !alive {
			continue
		}
		for c := range x.grid.Columns {
			row, here := x.place(0, i)
			corner := x.at(0, row, c)
			switch {
			case c == here || x.column[c] == 0:
			case x.alive[corner]:
				amount := x.each * float64(x.column[c]*x.chips)
				if err := x.leave(0, i, corner, func(int) float64 { return amount }, x.onward[corner]); err != nil {
					return err
				}
			default:
				if err := x.bend(i, c); err != nil {
					return err
				}
			}
		}
		x.flush(i)
	}
	return nil
}

// bend goes along the column first, for all nodes of column c.
func (x *fluid) bend(from, c int) error {
	column, _ := x.place(1, from)
	for row := range x.grid.Rows {
		corner, to := x.at(0, row, column), x.at(0, row, c)
		if !x.alive[to] {
			continue
		}
		if !x.alive[corner] {
			return fmt.Errorf("%w: from node %v to %v in two hops: both corners, %v and %v, are without links", ErrRoute,
				x.name(from), x.name(to), railx.Node{Column: c, Row: x.name(from).Row}, x.name(corner))
		}
		if x.bent[corner] == nil {
			x.bent[corner] = map[int]leg{}
		}
		if x.bent[corner][to] == nil {
			x.bent[corner][to] = make(leg, x.chips)
		}
		amount := x.each * float64(x.chips)
		if err := x.leave(1, from, corner, func(int) float64 { return amount }, x.bent[corner][to]); err != nil {
			return err
		}
		x.around++
	}
	return nil
}

// columns is the second leg: along the column, to the node of the destination.
func (x *fluid) columns() error {
	for i, alive := range x.alive {
		if !alive {
			continue
		}
		column, here := x.place(1, i)
		part := 1 / float64(x.column[column])
		for row := range x.grid.Rows {
			to := x.at(1, column, row)
			if !x.alive[to] {
				continue
			}
			if row == here {
				for chip, v := range x.onward[i] {
					x.last[i][chip] += v * part
				}
				continue
			}
			own := x.each * float64(x.chips)
			err := x.leave(1, i, to, func(chip int) float64 { return own + x.onward[i][chip]*part }, x.last[to])
			if err != nil {
				return err
			}
		}
		x.flush(i)
	}
	return nil
}

// detours is the second leg of what went along the column first.
func (x *fluid) detours() error {
	for i, all := range x.bent {
		for to := range x.alive { // in order: sums of floats are the same each time
			if l := all[to]; l != nil {
				if err := x.leave(0, i, to, func(chip int) float64 { return l[chip] }, x.last[to]); err != nil {
					return err
				}
			}
		}
		if len(all) > 0 {
			x.flush(i)
		}
	}
	return nil
}

// arrive is the last leg, and what chips of a node send to each other.
func (x *fluid) arrive() error {
	for i, alive := range x.alive {
		if !alive {
			continue
		}
		for from, v := range x.last[i] {
			for to := range x.chips {
				x.walk.add(from, to, v/float64(x.chips)+x.each)
			}
		}
		x.flush(i)
	}
	return nil
}

// The directions of the links that leave a chip.
const (
	east = iota
	west
	north
	south
)

// meshWalk collects what goes along a mesh, first along its row and then along its column.
type meshWalk struct {
	m    int
	flat []float64 // by row, from and to column
	tall []float64 // by column, from and to row
}

func newMeshWalk(m int) *meshWalk {
	return &meshWalk{m, make([]float64, m*m*m), make([]float64, m*m*m)}
}

func (w *meshWalk) add(from, to int, amount float64) {
	m := w.m
	w.flat[(from/m*m+from%m)*m+to%m] += amount
	w.tall[(to%m*m+from/m)*m+to/m] += amount
}

// flush adds all to the links of a node, by chip and direction, and forgets it.
func (w *meshWalk) flush(links []float64) {
	m := w.m
	for line := range m {
		for from := range m {
			for to := range m {
				i := (line*m+from)*m + to
				for at := from; at < to; at++ {
					links[(at+line*m)*4+east] += w.flat[i]
					links[(line+at*m)*4+north] += w.tall[i]
				}
				for at := from; at > to; at-- {
					links[(at+line*m)*4+west] += w.flat[i]
					links[(line+at*m)*4+south] += w.tall[i]
				}
			}
		}
	}
	clear(w.flat)
	clear(w.tall)
}
