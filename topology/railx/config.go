package railx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ocslab/ocslab/topology/hamilton"
)

// Config is the links of all switches of a grid. It is immutable.
type Config struct {
	grid  Grid
	shape Shape // nothing left open
	rect  Rectangle
	x, y  plan
	// planned and links are by Grid.index; links of a switch are in order of Plus. Equal ones are often shared.
	// planned is without regard to dead nodes and switches.
	planned, links [][]Link
	dead           map[Node]bool
	off            map[Switch]bool
}

// plan is how the rails of a physical dimension are used.
type plan struct {
	dims []placed
	of   []int // by rail, the index of its logical dimension; -1 is none
}

// placed is a logical dimension on its rails.
type placed struct {
	Logical
	rails    []int // ascending
	sets     [][]int
	rings    [][]int // of Size places each; the ring of the q-th rail is rings[q%len(rings)]
	directed bool    // rings in which each ordered pair occurs
}

// Build lays a shape out on all nodes of a grid. The error matches ErrGrid or ErrShape, and says what would work.
//
// All-to-all dimensions of 4 and 6 nodes, and of even numbers above hamilton.MaxEven, have doubled rings: every two
// nodes have two links as in all others, but both may leave the same side of one.
func Build(g Grid, s Shape) (*Config, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	return BuildOn(g, s, g.Whole())
}

// BuildOn is Build on some nodes only: switches of other rows and columns have no links, and those of these rows and
// columns none to other nodes. So several jobs can share the grid; see Together.
func BuildOn(g Grid, s Shape, r Rectangle) (*Config, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if err := r.check(g); err != nil {
		return nil, err
	}
	c := &Config{grid: g, shape: s, rect: Rectangle{slices.Clone(r.Columns), slices.Clone(r.Rows)}}
	var err error
	if c.shape.X, err = fill(X, s.X, len(r.Columns), g.Rails); err != nil {
		return nil, err
	}
	if c.shape.Y, err = fill(Y, s.Y, len(r.Rows), g.Rails); err != nil {
		return nil, err
	}
	if err := c.checkGlobal(); err != nil {
		return nil, err
	}
	if c.x, err = c.lay(X, c.shape.X, c.rect.Columns); err != nil {
		return nil, err
	}
	if c.y, err = c.lay(Y, c.shape.Y, c.rect.Rows); err != nil {
		return nil, err
	}
	c.planned = make([][]Link, g.Rails*(g.Rows+g.Columns))
	c.draw(X, c.x, c.rect.Rows)
	c.draw(Y, c.y, c.rect.Columns)
	c.links = c.planned
	return c, nil
}

// checkGlobal returns why a Dragonfly does not fit: every two of its groups, which are the columns, must have links.
func (c *Config) checkGlobal() error {
	if len(c.shape.X) != 1 || c.shape.X[0].Kind != Global || len(c.rect.Columns) == 1 {
		return nil
	}
	groups, rows, rails := len(c.rect.Columns), len(c.rect.Rows), c.shape.X[0].Rails
	if groups-1 > rows*rails {
		more := ""
		if rows <= rails {
			more = fmt.Sprintf(", or more rows, up to %d", rails+1)
		}
		return fmt.Errorf("%w: a Dragonfly of %d groups takes %d global rings, and %d rows of %d rails have %d: "+
			"want %d columns at most%s",
			ErrShape, groups, groups-1, rows, rails, rows*rails, rows*rails+1, more)
	}
	return nil
}

// lay puts the logical dimensions of a physical one on rails and nodes, whose numbers are members.
func (c *Config) lay(d Dimension, ls []Logical, members []int) (plan, error) {
	p := plan{of: slices.Repeat([]int{-1}, c.grid.Rails)}
	stride, first := 1, 0
	for i, l := range ls {
		q := placed{Logical: l, sets: sets(members, l.Size, stride)}
		var err error
		if q.rails, err = c.take(d, ls, l, &first); err != nil {
			return plan{}, err
		}
		for _, a := range q.rails {
			p.of[a] = i
		}
		if q.rings, q.directed, err = ringsOf(l); err != nil {
			return plan{}, err
		}
		stride *= l.Size
		p.dims = append(p.dims, q)
	}
	return p, nil
}

// take returns the rails of a logical dimension, *first being the first free one, or the first free lane of each row
// of chips.
func (c *Config) take(d Dimension, ls []Logical, l Logical, first *int) ([]int, error) {
	rails := make([]int, 0, l.Rails)
	m := c.grid.Mesh
	if m == 0 || c.shape.Contiguous || len(ls) == 1 {
		for range l.Rails {
			rails = append(rails, *first)
			*first++
		}
		return rails, nil
	}
	if l.Rails%m != 0 {
		return nil, fmt.Errorf("%w: %v: the rails of %v do not spread evenly over %d rows of chips: "+
			"want a multiple of %[4]d, or contiguous ones",
			ErrShape, d, l, m)
	}
	lanes := c.grid.Rails / m
	for row := range m {
		for lane := range l.Rails / m {
			rails = append(rails, row*lanes+*first+lane)
		}
	}
	*first += l.Rails / m
	return rails, nil
}

// sets returns the nodes of each ring of a logical dimension: those that differ in its coordinate only, which
// changes by one every stride nodes.
func sets(members []int, size, stride int) [][]int {
	all := make([][]int, 0, len(members)/size)
	for x := range members {
		if x/stride%size != 0 {
			continue
		}
		set := make([]int, size)
		for i := range set {
			set[i] = members[x+i*stride]
		}
		all = append(all, set)
	}
	return all
}

// ringsOf returns the rings of a logical dimension over places 0 to Size-1.
func ringsOf(l Logical) (rings [][]int, directed bool, err error) {
	switch {
	case l.Size == 1 || l.Kind == Dark:
		return nil, false, nil
	case l.Kind == Torus:
		return [][]int{count(l.Size)}, true, nil
	case l.Kind == Expander:
		rings, _, err = Expanding(l.Size, l.Rails)
		return rings, false, err
	case l.Kind == Global && l.Size%2 == 1:
		// The two rings of any two columns are to be on different rows. In the zig-zag, also of a prime, and in doubled
		// rings they are always half a turn apart; the directed rings of an even number have no such order.
		rings, err = hamilton.ZigZag(l.Size)
		return rings, true, err
	case l.Kind == Global:
		rings, err = hamilton.Doubled(l.Size)
		return rings, false, err
	}
	rings, directed, err = hamilton.Cycles(l.Size)
	return rings, directed, err
}

// draw fills in planned for the switches of a dimension.
func (c *Config) draw(d Dimension, p plan, groups []int) {
	for _, q := range p.dims {
		drawn := make([][]Link, len(q.rings)) // groups share what is the same
		for t, ring := range q.rings {
			drawn[t] = linksOf(ring, q.sets)
		}
		for i, group := range groups {
			for at, rail := range q.rails {
				if len(q.rings) == 0 {
					continue
				}
				t := at
				if q.Kind == Global {
					t += i * len(q.rails)
				}
				c.planned[c.grid.index(Switch{d, group, rail})] = drawn[t%len(q.rings)]
			}
		}
	}
}

// linksOf returns the links of a ring, laid over each of the sets.
func linksOf(ring []int, sets [][]int) []Link {
	links := make([]Link, 0, len(ring)*len(sets))
	for _, set := range sets {
		for i, place := range ring {
			links = append(links, Link{Plus(set[place]), Minus(set[ring[(i+1)%len(ring)]])})
		}
	}
	sortLinks(links)
	return links
}

func sortLinks(links []Link) {
	slices.SortFunc(links, func(a, b Link) int {
		if a.Plus != b.Plus {
			return int(a.Plus) - int(b.Plus)
		}
		return int(a.Minus) - int(b.Minus)
	})
}

// Grid returns the grid it is for.
func (c *Config) Grid() Grid { return c.grid }

// Shape returns the shape it has, with all sizes and rails that it was left to Build to choose.
func (c *Config) Shape() Shape {
	s := c.shape
	s.X, s.Y = slices.Clone(s.X), slices.Clone(s.Y)
	return s
}

// Rectangle returns which nodes it is on, dead ones included.
func (c *Config) Rectangle() Rectangle {
	return Rectangle{slices.Clone(c.rect.Columns), slices.Clone(c.rect.Rows)}
}

// Nodes returns the nodes that are in use, by column, then by row.
func (c *Config) Nodes() []Node {
	nodes := make([]Node, 0, c.rect.Nodes())
	for _, i := range c.rect.Columns {
		for _, j := range c.rect.Rows {
			if n := (Node{i, j}); !c.dead[n] {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// Dead returns the nodes that are bypassed, by column, then by row.
func (c *Config) Dead() []Node {
	return slices.SortedFunc(maps.Keys(c.dead), func(a, b Node) int {
		if a.Column != b.Column {
			return a.Column - b.Column
		}
		return a.Row - b.Row
	})
}

// Off returns the switches that it does without, in order.
func (c *Config) Off() []Switch {
	return slices.SortedFunc(maps.Keys(c.off), func(a, b Switch) int { return c.grid.index(a) - c.grid.index(b) })
}

// Switches returns those of the rows and columns that it is on, but for those that are off: X before Y, then by group,
// then by rail.
func (c *Config) Switches() []Switch {
	list := make([]Switch, 0, c.grid.Rails*(len(c.rect.Rows)+len(c.rect.Columns)))
	for s := range c.all() {
		if !c.off[s] {
			list = append(list, s)
		}
	}
	return list
}

// all yields the switches of the rows and columns that it is on, in order.
func (c *Config) all() func(yield func(Switch) bool) {
	return func(yield func(Switch) bool) {
		for _, d := range []Dimension{X, Y} {
			for _, group := range c.groups(d) {
				for rail := range c.grid.Rails {
					if !yield(Switch{d, group, rail}) {
						return
					}
				}
			}
		}
	}
}

func (c *Config) groups(d Dimension) []int {
	if d == X {
		return c.rect.Rows
	}
	return c.rect.Columns
}

func (c *Config) plan(d Dimension) plan {
	if d == X {
		return c.x
	}
	return c.y
}

// on returns the links of a switch without copying them.
func (c *Config) on(s Switch) []Link {
	if !c.grid.Has(s) {
		return nil
	}
	return c.links[c.grid.index(s)]
}

// Links returns the links of a switch in order of Plus; none if the grid has no such switch.
func (c *Config) Links(s Switch) []Link { return slices.Clone(c.on(s)) }

// CountLinks returns how many links all switches have.
func (c *Config) CountLinks() int {
	n := 0
	for _, links := range c.links {
		n += len(links)
	}
	return n
}
