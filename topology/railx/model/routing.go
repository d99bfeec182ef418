package model

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/topology/railx"
)

// Chip is a chip of a node, X from the west and Y from the south.
type Chip struct {
	Node railx.Node
	X, Y int
}

// String returns "(2,3)/0.1".
func (c Chip) String() string { return fmt.Sprintf("%v/%d.%d", c.Node, c.X, c.Y) }

// Step is one hop of a route: to a neighbour in the mesh, or over a rail.
type Step struct {
	From, To  Chip
	Optical   bool
	Dimension railx.Dimension // of the rail
	Rail      int
	Plus      bool // it leaves by the plus of the rail
	VC        int  // the virtual channel at the end of it
}

// Route is a way from chip to chip.
type Route struct {
	Steps []Step
	Share float64 // of the traffic, where several links are as near
}

// Hops returns how many steps are optical, and how many within meshes.
func (r Route) Hops() (optical, mesh int) {
	for _, s := range r.Steps {
		if s.Optical {
			optical++
		} else {
			mesh++
		}
	}
	return optical, mesh
}

// Router is algorithm 1 on the links of a configuration: minimal and deterministic but for equally near links. A packet
// changes to the next virtual channel with each optical hop, so that there are as many as the diameter and one more:
// three. Where the corner in its row is dead, a packet takes its column first; that keeps the order of channels.
type Router struct {
	*network
	m, lanes int
}

// VirtualChannels returns how many virtual channels minimal routes between nodes that are at most diameter hops apart need:
// one for each optical hop, and one for where they begin (section 5).
func VirtualChannels(diameter int) int { return diameter + 1 }

// AdaptiveChannels returns how many virtual channels routes that are not minimal need, if within one of them a packet
// goes first along rails of X and then along rails of Y, as far as it likes, and goes back to X up to bumps times. Rings
// must be kept from deadlock besides: by a bubble, or with twice as many channels (section 5).
func AdaptiveChannels(bumps int) int { return bumps + 1 }

// NewRouter returns a router of a configuration whose rows and columns are all-to-all. Errors are those of [Fluid].
func NewRouter(f Fabric) (*Router, error) {
	n, err := newNetwork(f)
	if err != nil {
		return nil, err
	}
	m, lanes, err := n.mesh()
	if err != nil {
		return nil, err
	}
	if err := n.index(); err != nil {
		return nil, err
	}
	return &Router{n, m, lanes}, nil
}

// Nodes returns the nodes that have links, row by row.
func (r *Router) Nodes() []railx.Node {
	var all []railx.Node
	for i, alive := range r.alive {
		if alive {
			all = append(all, r.name(i))
		}
	}
	return all
}

// Route returns the first of [Router.Routes].
func (r *Router) Route(from, to Chip) (Route, error) {
	all, err := r.Routes(from, to)
	if err != nil {
		return Route{}, err
	}
	return all[0], nil
}

// Routes returns all ways that algorithm 1 may take: more than one if links are equally near. To itself a chip has one without
// steps. An error matches [ErrRoute].
func (r *Router) Routes(from, to Chip) ([]Route, error) {
	for _, c := range []Chip{from, to} {
		if !r.grid.Contains(c.Node) || c.X < 0 || c.Y < 0 || c.X >= r.m || c.Y >= r.m {
			return nil, fmt.Errorf("%w: chip %v is not one of %d x %d nodes of %d x %d chips", ErrRoute, c, r.grid.Columns, r.grid.Rows, r.m, r.m)
		}
		if !r.alive[r.at(0, c.Node.Row, c.Node.Column)] {
			return nil, fmt.Errorf("%w: node %v has no links", ErrRoute, c.Node)
		}
	}
	start := way{chip: from.X + from.Y*r.m, node: r.at(0, from.Node.Row, from.Node.Column), share: 1}
	dimensions, corners, err := r.legs(from.Node, to.Node)
	if err != nil {
		return nil, err
	}
	// Channel 2 is for the last node, 1 for those one hop before it.
	start.vc = 2 - len(dimensions)
	ways := []way{start}
	for i, d := range dimensions {
		var next []way
		for _, w := range ways {
			more, err := r.hop(w, d, corners[i])
			if err != nil {
				return nil, err
			}
			next = append(next, more...)
		}
		ways = next
	}
	all := make([]Route, len(ways))
	for i := range ways {
		r.within(&ways[i], to.X+to.Y*r.m)
		all[i] = Route{ways[i].steps, ways[i].share}
	}
	return all, nil
}

// legs returns along which dimensions a route goes, and to which node each time.
func (r *Router) legs(from, to railx.Node) (dimensions, corners []int, err error) {
	end := r.at(0, to.Row, to.Column)
	switch {
	case from == to:
		return nil, nil, nil
	case from.Column == to.Column:
		return []int{1}, []int{end}, nil
	case from.Row == to.Row:
		return []int{0}, []int{end}, nil
	}
	if corner := r.at(0, from.Row, to.Column); r.alive[corner] {
		return []int{0, 1}, []int{corner, end}, nil
	}
	if corner := r.at(0, to.Row, from.Column); r.alive[corner] {
		return []int{1, 0}, []int{corner, end}, nil
	}
	return nil, nil, fmt.Errorf("%w: from node %v to %v in two hops: both corners are without links", ErrRoute, from, to)
}

// way is a route so far.
type way struct {
	node, chip, vc int
	share          float64
	steps          []Step
}

func (r *Router) chip(node, chip int) Chip {
	return Chip{Node: r.name(node), X: chip % r.m, Y: chip / r.m}
}

// hop goes to the nearest chips with a link to another node, and over it.
func (r *Router) hop(w way, d, to int) ([]way, error) {
	exits, err := r.between(d, w.node, to)
	if err != nil {
		return nil, err
	}
	least := 2 * r.m
	var near []exit
	for _, e := range exits {
		c := edge(d, r.m, r.lanes, e)
		h := abs(c%r.m-w.chip%r.m) + abs(c/r.m-w.chip/r.m)
		if h < least {
			least, near = h, nil
		}
		if h == least {
			near = append(near, e)
		}
	}
	var all []way
	for _, e := range near {
		x := w
		x.steps = slices.Clone(w.steps)
		r.within(&x, edge(d, r.m, r.lanes, e))
		arrive := edge(d, r.m, r.lanes, e.far())
		x.vc++
		x.steps = append(x.steps, Step{From: r.chip(x.node, x.chip), To: r.chip(to, arrive), Optical: true,
			Dimension: []railx.Dimension{railx.X, railx.Y}[d], Rail: e.rail, Plus: e.plus, VC: x.vc})
		x.node, x.chip, x.share = to, arrive, w.share/float64(len(near))
		all = append(all, x)
	}
	return all, nil
}

// within goes to another chip of the node, along the row of the mesh first.
func (r *Router) within(w *way, to int) {
	for w.chip != to {
		next := w.chip
		switch x, want := w.chip%r.m, to%r.m; {
		case x < want:
			next++
		case x > want:
			next--
		case w.chip < to:
			next += r.m
		default:
			next -= r.m
		}
		w.steps = append(w.steps, Step{From: r.chip(w.node, w.chip), To: r.chip(w.node, next), VC: w.vc})
		w.chip = next
	}
}
