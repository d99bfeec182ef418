package railx

import (
	"fmt"
	"math"
	"slices"
)

const (
	// MaxNodes is how many nodes a row or column of a grid may have.
	MaxNodes = 2048
	// MaxLinks is how many links a configuration may have: 2*Columns*Rows*Rails of a grid in use as a whole.
	MaxLinks = 1 << 21
	// MaxSwitches is how many switches a grid may have.
	MaxSwitches = 1 << 20
)

// Check returns why there is no such grid; the error matches ErrGrid and says what would work.
func (g Grid) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrGrid, fmt.Sprintf(format, args...))
	}
	switch {
	case g.Columns < 1 || g.Rows < 1 || g.Columns > MaxNodes || g.Rows > MaxNodes:
		return bad("%d columns and %d rows: want 1 to %d of each", g.Columns, g.Rows, MaxNodes)
	case g.Rails < 1 || g.Rails > MaxLinks/2/(g.Columns*g.Rows):
		return bad("%d rails on %d nodes: want 1 or more, and 2*nodes*rails links at most %d",
			g.Rails, g.Columns*g.Rows, MaxLinks)
	case g.Rails > MaxSwitches/(g.Columns+g.Rows):
		return bad("%d rails of %d rows and columns: want at most %d switches in all", g.Rails, g.Columns+g.Rows, MaxSwitches)
	case g.Mesh < 0 || g.Mesh > 0 && g.Rails%g.Mesh != 0:
		return bad("%d rails on nodes of %d by %[2]d chips: want a multiple of %[2]d, as each chip of an edge has as many ports",
			g.Rails, g.Mesh)
	case g.Radix < 0 || g.Radix > 0 && g.Radix/2 < max(g.Columns, g.Rows):
		return bad("switches of %d duplex ports take %d nodes, two ports each, and there are %d in a line: want %d ports",
			g.Radix, g.Radix/2, max(g.Columns, g.Rows), 2*max(g.Columns, g.Rows))
	}
	return nil
}

// Contains reports whether the grid has that node.
func (g Grid) Contains(n Node) bool {
	return n.Column >= 0 && n.Column < g.Columns && n.Row >= 0 && n.Row < g.Rows
}

// Has reports whether the grid has that switch.
func (g Grid) Has(s Switch) bool {
	return s.Rail >= 0 && s.Rail < g.Rails && s.Group >= 0 && s.Group < g.groups(s.Dimension)
}

// groups returns how many rows or columns have switches of a dimension.
func (g Grid) groups(d Dimension) int {
	switch d {
	case X:
		return g.Rows
	case Y:
		return g.Columns
	}
	return 0
}

// Ports returns how many duplex ports the nodes take of a switch of that dimension: two each.
func (g Grid) Ports(d Dimension) int {
	if d == X {
		return 2 * g.Columns
	}
	return 2 * g.Rows
}

// index numbers the switches of the grid: X before Y, then by group, then by rail.
func (g Grid) index(s Switch) int {
	if s.Dimension == X {
		return s.Group*g.Rails + s.Rail
	}
	return (g.Rows+s.Group)*g.Rails + s.Rail
}

// at is the inverse of index.
func (g Grid) at(i int) Switch {
	if group := i / g.Rails; group < g.Rows {
		return Switch{X, group, i % g.Rails}
	}
	return Switch{Y, i/g.Rails - g.Rows, i % g.Rails}
}

// node returns the node with number v in the group of a switch.
func (s Switch) node(v int) Node {
	if s.Dimension == X {
		return Node{v, s.Group}
	}
	return Node{s.Group, v}
}

// Counts is how much there is of everything.
type Counts struct {
	Nodes, Chips, Switches int
	Links                  int // with all ports in use: a duplex circuit and two fibre pairs each
	PortsOfSwitch          int // duplex ports that are in use on the largest switch
}

// Counts returns how much the grid takes: for one that is Full, equation (1) of RailX. Chips are 0 if Mesh is. The
// error, of a grid that cannot be or whose chips overflow, matches ErrGrid.
func (g Grid) Counts() (Counts, error) {
	if err := g.Check(); err != nil {
		return Counts{}, err
	}
	nodes := g.Columns * g.Rows
	if g.Mesh > 0 && g.Mesh > math.MaxInt/g.Mesh/nodes {
		return Counts{}, fmt.Errorf("%w: %d nodes of %d by %[3]d chips are more than can be counted", ErrGrid, nodes, g.Mesh)
	}
	return Counts{
		Nodes: nodes, Chips: nodes * g.Mesh * g.Mesh, Switches: g.Rails * (g.Columns + g.Rows),
		Links: 2 * nodes * g.Rails, PortsOfSwitch: max(g.Ports(X), g.Ports(Y)),
	}, nil
}

// Full returns the largest grid that switches of radix duplex ports join, of nodes of mesh by mesh chips with lanes
// optical ports at each edge chip: radix/2 nodes each way and mesh*lanes rails (RailX, section 3.2). The error
// matches ErrGrid.
func Full(radix, mesh, lanes int) (Grid, error) {
	if radix < 2 || radix/2 > MaxNodes || mesh < 1 || lanes < 1 || mesh > MaxLinks/lanes {
		return Grid{}, fmt.Errorf("%w: switches of %d duplex ports, nodes of %d by %[3]d chips, %d ports at each: "+
			"want 2 to %d ports of a switch, and 1 or more of the others", ErrGrid, radix, mesh, lanes, 2*MaxNodes+1)
	}
	g := Grid{Columns: radix / 2, Rows: radix / 2, Rails: mesh * lanes, Mesh: mesh, Radix: radix}
	return g, g.Check()
}

// Chip is a chip of a node's mesh and the edge of it at which a fibre leaves.
type Chip struct {
	X, Y int // from 0, at the west and at the south
	Edge string
	Lane int // among the optical ports of that edge, from 0
}

// Chip returns where a rail ends in a node: rail a of X at the east ("+") and west ("-") of row a/n of the mesh, rail
// b of Y at the north and south of column b/n, n being how many ports an edge chip has. The error, also if the grid
// says nothing of chips, matches ErrGrid.
func (g Grid) Chip(d Dimension, rail int, plus bool) (Chip, error) {
	if err := g.Check(); err != nil {
		return Chip{}, err
	}
	if g.Mesh == 0 || rail < 0 || rail >= g.Rails || g.groups(d) == 0 {
		return Chip{}, fmt.Errorf("%w: the chip of rail %v/%d: want a grid that says how many chips a node has, "+
			"and a rail from 0 to %d", ErrGrid, d, rail, g.Rails-1)
	}
	lanes := g.Rails / g.Mesh
	at, lane := rail/lanes, rail%lanes
	switch {
	case d == X && plus:
		return Chip{g.Mesh - 1, at, "east", lane}, nil
	case d == X:
		return Chip{0, at, "west", lane}, nil
	case plus:
		return Chip{at, g.Mesh - 1, "north", lane}, nil
	}
	return Chip{at, 0, "south", lane}, nil
}

// Rectangle is a set of columns and a set of rows, and all nodes where they cross. Neither has to be contiguous, since
// switches skip nodes as they like (RailX, section 5.1).
type Rectangle struct{ Columns, Rows []int } // ascending, each once

// Whole returns the rectangle of all nodes.
func (g Grid) Whole() Rectangle { return Rectangle{count(g.Columns), count(g.Rows)} }

// Nodes returns how many nodes the rectangle has.
func (r Rectangle) Nodes() int { return len(r.Columns) * len(r.Rows) }

// Contains reports whether the node is in the rectangle.
func (r Rectangle) Contains(n Node) bool {
	_, column := slices.BinarySearch(r.Columns, n.Column)
	_, row := slices.BinarySearch(r.Rows, n.Row)
	return column && row
}

// check returns why the grid has no such rectangle.
func (r Rectangle) check(g Grid) error {
	for _, line := range []struct {
		of   string
		have []int
		n    int
	}{{"columns", r.Columns, g.Columns}, {"rows", r.Rows, g.Rows}} {
		if len(line.have) == 0 {
			return fmt.Errorf("%w: a rectangle without %s: want one or more", ErrGrid, line.of)
		}
		for i, v := range line.have {
			if v < 0 || v >= line.n || i > 0 && v <= line.have[i-1] {
				return fmt.Errorf("%w: a rectangle with %d among its %s: want numbers from 0 to %d, ascending, each once",
					ErrGrid, v, line.of, line.n-1)
			}
		}
	}
	return nil
}

// count returns 0 to n-1.
func count(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
