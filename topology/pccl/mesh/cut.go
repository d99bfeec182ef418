package mesh

import (
	"slices"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// Work that is done at most for cuts.
const (
	mostRectangles = 1 << 24 // times requests
	mostFlowNodes  = 1 << 12
	mostSweeps     = 64
)

// cutter looks for cuts that prove that not all requests can be routed.
type cutter struct {
	m        *Mesh
	opt      Options
	requests []Request
	looked   int
}

// wavelengths returns of what a cut may speak: of all requests together, 0, and of those that must have one
// wavelength.
func (c *cutter) wavelengths() []int {
	classes := []int{0}
	for _, r := range c.requests {
		if r.Wavelength > 0 && c.opt.Wavelengths > 1 {
			classes = append(classes, r.Wavelength)
		}
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// room returns how many circuits the waveguides of a boundary carry.
func (c *cutter) room(edges, wavelength int) int {
	if wavelength == 0 {
		return edges * c.opt.Capacity * c.opt.Wavelengths
	}
	return edges * c.opt.Capacity
}

// of returns a set of nodes as a cut.
func (c *cutter) of(inside []bool, wavelength int) *Cut {
	cut := &Cut{Wavelength: wavelength}
	for n, in := range inside {
		if in {
			cut.Nodes = append(cut.Nodes, n)
		}
	}
	for _, e := range c.m.edges {
		if inside[e[0]] != inside[e[1]] {
			cut.Edges++
		}
	}
	for i, r := range c.requests {
		if (wavelength == 0 || r.Wavelength == wavelength) && inside[r.Src] != inside[r.Dst] {
			cut.Crossing = append(cut.Crossing, i)
		}
	}
	cut.Room = c.room(cut.Edges, wavelength)
	return cut
}

// first returns a cut found without routing: a single node, a rectangle, or what divides a node from the other
// ends of its circuits.
func (c *cutter) first() *Cut {
	for _, w := range c.wavelengths() {
		if cut := c.nodes(w); cut != nil {
			return cut
		}
		if cut := c.rectangles(w); cut != nil {
			return cut
		}
		if cut := c.flows(w); cut != nil {
			return cut
		}
	}
	return nil
}

// ends returns how many of the requests end at each node.
func (c *cutter) ends(wavelength int) []int {
	ends := make([]int, c.m.Nodes())
	for _, r := range c.requests {
		if wavelength == 0 || r.Wavelength == wavelength {
			ends[r.Src]++
			ends[r.Dst]++
		}
	}
	return ends
}

func (c *cutter) nodes(wavelength int) *Cut {
	c.looked += c.m.Nodes()
	for n, ends := range c.ends(wavelength) {
		if ends > c.room(c.m.Degree(n), wavelength) {
			inside := make([]bool, c.m.Nodes())
			inside[n] = true
			return c.of(inside, wavelength)
		}
	}
	return nil
}

// rectangles looks at those whose borders are at ends of requests or of the mesh: a rectangle that is larger than
// that has no smaller boundary. It leaves out what would take too long.
func (c *cutter) rectangles(wavelength int) *Cut {
	rows, columns := []int{0, c.m.rows - 1}, []int{0, c.m.columns - 1}
	if c.m.rows == 0 {
		return nil
	}
	for n, ends := range c.ends(wavelength) {
		if ends > 0 {
			rows, columns = append(rows, n/c.m.columns), append(columns, n%c.m.columns)
		}
	}
	slices.Sort(rows)
	slices.Sort(columns)
	rows, columns = slices.Compact(rows), slices.Compact(columns)
	if n := len(rows) * len(columns); n*n/4*len(c.requests) > mostRectangles {
		return nil
	}
	for i, top := range rows {
		for _, bottom := range rows[i:] {
			for j, left := range columns {
				for _, right := range columns[j:] {
					c.looked++
					if c.crossing(top, left, bottom, right, wavelength) > c.room(c.boundary(top, left, bottom, right), wavelength) {
						return c.of(c.inside(top, left, bottom, right), wavelength)
					}
				}
			}
		}
	}
	return nil
}

func (c *cutter) boundary(top, left, bottom, right int) (edges int) {
	for _, border := range []struct {
		open   bool
		length int
	}{
		{top > 0, right - left + 1}, {bottom < c.m.rows-1, right - left + 1},
		{left > 0, bottom - top + 1}, {right < c.m.columns-1, bottom - top + 1},
	} {
		if border.open {
			edges += border.length
		}
	}
	return edges
}

func (c *cutter) crossing(top, left, bottom, right, wavelength int) (n int) {
	in := func(node int) bool {
		row, column := node/c.m.columns, node%c.m.columns
		return top <= row && row <= bottom && left <= column && column <= right
	}
	for _, r := range c.requests {
		if (wavelength == 0 || r.Wavelength == wavelength) && in(r.Src) != in(r.Dst) {
			n++
		}
	}
	return n
}

func (c *cutter) inside(top, left, bottom, right int) []bool {
	inside := make([]bool, c.m.Nodes())
	for row := top; row <= bottom; row++ {
		for column := left; column <= right; column++ {
			inside[row*c.m.columns+column] = true
		}
	}
	return inside
}

// flows looks at the requests of each node that has several: whether they could be routed if there were no others.
// That is a flow, and where it falls short a least cut of it proves it.
func (c *cutter) flows(wavelength int) *Cut {
	if c.m.Nodes() > mostFlowNodes {
		return nil
	}
	tried := 0
	for n, ends := range c.ends(wavelength) {
		if ends < 2 {
			continue
		}
		if tried++; tried > mostSweeps {
			return nil
		}
		c.looked++
		sink := c.m.Nodes()
		f := graph.NewFlow(sink + 1)
		for _, e := range c.m.edges {
			f.Arc(e[0], e[1], c.room(1, wavelength), 0)
			f.Arc(e[1], e[0], c.room(1, wavelength), 0)
		}
		for _, r := range c.requests {
			if (wavelength == 0 || r.Wavelength == wavelength) && (r.Src == n || r.Dst == n) {
				f.Arc(r.Src+r.Dst-n, sink, 1, 0)
			}
		}
		if sent, _ := f.Send(n, sink, ends); sent < ends {
			return c.of(f.Cut(n)[:sink], wavelength)
		}
	}
	return nil
}

// congested looks where a negotiation has made waveguides dear: for each end of a request at all that is nearer than
// some distance, by price.
func (c *cutter) congested(s *search) *Cut {
	price := make([]float64, len(c.m.edges))
	for _, w := range c.wavelengths() {
		for e := range price {
			price[e] = unit
			for l := range c.opt.Wavelengths {
				if w == 0 || w == l+1 {
					price[e] += 8 * float64(s.history[l*len(price)+e])
				}
			}
		}
		tried := 0
		for n, ends := range c.ends(w) {
			if ends == 0 {
				continue
			}
			if tried++; tried > mostSweeps {
				break
			}
			if cut := c.sweep(n, price, w); cut != nil {
				return cut
			}
		}
	}
	return nil
}

// sweep looks at all sets of nodes that are nearer to one than some distance.
func (c *cutter) sweep(from int, price []float64, wavelength int) *Cut {
	order, _ := c.m.distances(from, price)
	ends := make([][]int, c.m.Nodes()) // the other ends of the requests of a node
	for _, r := range c.requests {
		if wavelength == 0 || r.Wavelength == wavelength {
			ends[r.Src], ends[r.Dst] = append(ends[r.Src], r.Dst), append(ends[r.Dst], r.Src)
		}
	}
	inside := make([]bool, c.m.Nodes())
	edges, crossing := 0, 0
	for _, n := range order {
		inside[n] = true
		c.looked++
		for k := c.m.off[n]; k < c.m.off[n+1]; k++ {
			edges += outside(inside[c.m.to[k]])
		}
		for _, other := range ends[n] {
			crossing += outside(inside[other])
		}
		if crossing > c.room(edges, wavelength) {
			return c.of(inside, wavelength)
		}
	}
	return nil
}

// outside is what a node that comes in adds for a neighbour: one more that crosses, or one less.
func outside(in bool) int {
	if in {
		return -1
	}
	return 1
}
