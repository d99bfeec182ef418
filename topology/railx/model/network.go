package model

import (
	"fmt"

	"github.com/ocslab/ocslab/topology/railx"
)

// Fabric is wired: a [railx.Config], or anything else that has links.
type Fabric interface {
	Grid() railx.Grid
	Switches() []railx.Switch
	Links(railx.Switch) []railx.Link
}

const (
	// mostPairs bounds the ordered pairs of nodes in a row, over all rows, and of columns: 160 x 160 nodes.
	mostPairs = 1 << 22
)

// exit is a port by which a node reaches another of its row or column.
type exit struct {
	rail int
	plus bool // whether it is that node's plus: the link ends at the other's minus
}

// network is a fabric, ready for looking things up.
type network struct {
	grid  railx.Grid
	size  [2]int   // of a row, of a column
	alive []bool   // by at: whether the node has a link
	nodes int      // that are alive
	links [][2]int // by at: from a plus to a minus
	exits [][]exit // between, X then Y; nil before index
	of    []wire   // of links: where each is
}

// wire is where a link is.
type wire struct {
	d, group, rail int
}

func newNetwork(f Fabric) (*network, error) {
	g := f.Grid()
	if err := g.Check(); err != nil {
		return nil, err
	}
	n := &network{grid: g, size: [2]int{g.Columns, g.Rows}, alive: make([]bool, g.Columns*g.Rows)}
	for _, s := range f.Switches() {
		if !g.Has(s) {
			return nil, fmt.Errorf("%w: switch %v is not one of %d x %d nodes with %d rails", railx.ErrLink, s, g.Columns, g.Rows, g.Rails)
		}
		for _, l := range f.Links(s) {
			if err := n.add(s, l); err != nil {
				return nil, err
			}
		}
	}
	if g.Columns*g.Rows == 1 {
		n.alive[0] = true
	}
	for _, a := range n.alive {
		if a {
			n.nodes++
		}
	}
	if n.nodes == 0 {
		return nil, fmt.Errorf("%w: the configuration has no links: build one first", ErrRoute)
	}
	return n, nil
}

func (n *network) add(s railx.Switch, l railx.Link) error {
	d := dimension(s.Dimension)
	v, plus := l.Plus.Node()
	w, minusIsPlus := l.Minus.Node()
	if !plus || minusIsPlus || v < 0 || w < 0 || v >= n.size[d] || w >= n.size[d] {
		return fmt.Errorf("%w: link %v of switch %v: want one from a plus to a minus of %d nodes", railx.ErrLink, l, s, n.size[d])
	}
	from, to := n.at(d, s.Group, v), n.at(d, s.Group, w)
	n.alive[from], n.alive[to] = true, true
	if v != w { // a ring of one node carries nothing
		n.links = append(n.links, [2]int{from, to})
		n.of = append(n.of, wire{d, s.Group, s.Rail})
	}
	return nil
}

func dimension(d railx.Dimension) int {
	if d == railx.Y {
		return 1
	}
	return 0
}

// at numbers the nodes: the v-th of a group of a dimension.
func (n *network) at(d, group, v int) int {
	if d == 0 {
		return v + group*n.grid.Columns
	}
	return group + v*n.grid.Columns
}

// place is the inverse of at: the group of a node in a dimension, and its number there.
func (n *network) place(d, i int) (group, v int) {
	if d == 0 {
		return i / n.grid.Columns, i % n.grid.Columns
	}
	return i % n.grid.Columns, i / n.grid.Columns
}

func (n *network) name(i int) railx.Node {
	return railx.Node{Column: i % n.grid.Columns, Row: i / n.grid.Columns}
}

// index makes what between looks up.
func (n *network) index() error {
	c, r := n.grid.Columns, n.grid.Rows
	if c*c*r > mostPairs || r*r*c > mostPairs {
		return fmt.Errorf("%w: %d x %d nodes are too many for routes between all of them: want at most 160 x 160", ErrArgument, c, r)
	}
	n.exits = make([][]exit, c*c*r+r*r*c)
	for i, l := range n.links {
		x := n.of[i]
		out, back := n.slot(x.d, l[0], l[1]), n.slot(x.d, l[1], l[0])
		n.exits[out] = append(n.exits[out], exit{x.rail, true})
		n.exits[back] = append(n.exits[back], exit{x.rail, false})
	}
	return nil
}

func (n *network) slot(d, from, to int) int {
	group, v := n.place(d, from)
	_, w := n.place(d, to)
	i := (group*n.size[d]+v)*n.size[d] + w
	if d == 1 {
		i += n.grid.Columns * n.grid.Columns * n.grid.Rows
	}
	return i
}

// between returns the exits of a node to another of its row or column. The error says that there is none.
func (n *network) between(d, from, to int) ([]exit, error) {
	if all := n.exits[n.slot(d, from, to)]; len(all) > 0 {
		return all, nil
	}
	line := "row"
	if d == 1 {
		line = "column"
	}
	return nil, fmt.Errorf("%w: nodes %v and %v have no link to each other, and routes here go straight along a %s: want one that "+
		"is all-to-all", ErrRoute, n.name(from), n.name(to), line)
}

// mesh returns m and n, which routes between chips need.
func (n *network) mesh() (m, lanes int, err error) {
	if m = n.grid.Mesh; m < 1 || m > 256 {
		return 0, 0, fmt.Errorf("%w: nodes of %d x %d chips: say how many chips a node has: 1 to 256 along a side", ErrArgument, m, m)
	}
	return m, n.grid.Rails / m, nil
}

// edge is the chip of a node at which a rail ends, by x + y·m: east and west in row rail/n of the mesh for X, north and
// south in column rail/n for Y.
func edge(d, m, lanes int, e exit) int {
	line, far := e.rail/lanes, 0
	if e.plus {
		far = m - 1
	}
	if d == 0 {
		return far + line*m
	}
	return line + far*m
}

// far is the exit at the other end: where the link arrives.
func (e exit) far() exit { return exit{e.rail, !e.plus} }
