package railx

import (
	"fmt"
	"slices"
)

// Trace follows the light through a switch: from the "+" of a node through its link, in at the "-" of the next, out
// at that node's "+", until it is back. It returns the rings, as numbers of nodes in the group of the switch, each
// from its lowest and in that order. It relies on nothing but the links, so it also holds for those that Observed has
// from devices. The error of links that are no rings matches ErrLink and says where the light is lost.
func (c *Config) Trace(s Switch) ([][]int, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%v: %w: %s", s, ErrLink, fmt.Sprintf(format, args...))
	}
	if !c.grid.Has(s) {
		return nil, bad("there is no such switch")
	}
	ports := c.grid.Ports(s.Dimension)
	peer := make([]Port, ports)
	for p := range peer {
		peer[p] = -1
	}
	for _, l := range c.on(s) {
		for _, end := range [2]Link{l, {l.Minus, l.Plus}} {
			if end.Plus < 0 || int(end.Plus) >= ports {
				return nil, bad("link %v has a port that is none: want 0 to %d", l, ports-1)
			}
			if peer[end.Plus] >= 0 {
				return nil, bad("port %d is in two links", end.Plus)
			}
			peer[end.Plus] = end.Minus
		}
	}
	var rings [][]int
	done := make([]bool, ports/2)
	for v := range done {
		var ring []int
		for at := v; !done[at] && peer[Plus(at)] >= 0; {
			done[at] = true
			ring = append(ring, at)
			next, plus := peer[Plus(at)].Node()
			if plus {
				return nil, bad("the light that leaves %v at \"+\" arrives at the \"+\" of %v", s.node(at), s.node(next))
			}
			if peer[Plus(next)] < 0 {
				return nil, bad("the light of %v arrives at %v and goes no further: \"+\" has no link", s.node(at), s.node(next))
			}
			at = next
		}
		if len(ring) > 0 {
			rings = append(rings, ring)
		}
	}
	for v := range done {
		if !done[v] && peer[Minus(v)] >= 0 {
			return nil, bad("the \"-\" of %v has a link though its \"+\" has none", s.node(v))
		}
	}
	return rings, nil
}

// Rings returns the rings of a switch as Trace does, and none if there is anything wrong with its links.
func (c *Config) Rings(s Switch) [][]int {
	rings, err := c.Trace(s)
	if err != nil {
		return nil
	}
	return rings
}

// Check returns why the links are not those of the shape, knowing nothing of how they were made: on each switch,
// rings through just the nodes that are to be on one, those that are dead left out; on a torus in the order of the
// nodes; and on all-to-all and global dimensions each two nodes or columns joined as often as the rails allow.
// Switches that are off have no links. The error matches ErrLink and is about the first thing that is wrong.
func (c *Config) Check() error {
	used := make([]bool, len(c.links))
	for s := range c.all() {
		used[c.grid.index(s)] = true
	}
	for i, links := range c.links {
		if s := c.grid.at(i); len(links) > 0 && (!used[i] || c.off[s]) {
			return fmt.Errorf("%v: %w: it has %d, and is to have none", s, ErrLink, len(links))
		}
	}
	for _, d := range []Dimension{X, Y} {
		p := c.plan(d)
		for i := range p.dims {
			if err := c.checkLogical(d, &p.dims[i]); err != nil {
				return err
			}
		}
		for rail, of := range p.of {
			for _, group := range c.groups(d) {
				if s := (Switch{d, group, rail}); of < 0 && len(c.on(s)) > 0 {
					return fmt.Errorf("%v: %w: it has %d, and its rail is not in use", s, ErrLink, len(c.on(s)))
				}
			}
		}
	}
	return nil
}

// checkLogical checks the rings of a logical dimension in all groups, and what they join.
func (c *Config) checkLogical(d Dimension, q *placed) error {
	size := q.Size
	set := make([]int, c.grid.Ports(d)/2) // by node, which set it is in; -1 is none
	place := make([]int, len(set))        // and where in it
	for v := range set {
		set[v] = -1
	}
	for i, members := range q.sets {
		for at, v := range members {
			set[v], place[v] = i, at
		}
	}
	// Arcs by set and the places of both ends; of a global dimension, whose columns are one set, for all rows together.
	var arcs []int32
	if q.Kind == AllToAll || q.Kind == Global {
		arcs = make([]int32, len(q.sets)*size*size)
	}
	offs := 0
	for _, group := range c.groups(d) {
		if q.Kind != Global {
			clear(arcs)
			offs = 0
		}
		for _, rail := range q.rails {
			s := Switch{d, group, rail}
			if c.off[s] {
				offs++
				continue
			}
			rings, err := c.Trace(s)
			if err != nil {
				return err
			}
			if err := c.checkRings(s, q, rings, set, place); err != nil {
				return err
			}
			if arcs == nil {
				continue
			}
			for _, ring := range rings {
				for i, v := range ring {
					w := ring[(i+1)%len(ring)]
					arcs[(set[v]*size+place[v])*size+place[w]]++
				}
			}
		}
		if q.Kind == AllToAll {
			if err := c.checkPairs(d, group, q, arcs, offs); err != nil {
				return err
			}
		}
	}
	if q.Kind == Global {
		return c.checkGroups(q, arcs, offs)
	}
	return nil
}

// checkRings returns why the rings of a switch are not one through the living nodes of each set.
func (c *Config) checkRings(s Switch, q *placed, rings [][]int, set, place []int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%v: %w: %s", s, ErrLink, fmt.Sprintf(format, args...))
	}
	length := make([]int, len(q.sets)) // of the ring of each set; 0 is none
	for _, ring := range rings {
		of := set[ring[0]]
		for i, v := range ring {
			w := ring[(i+1)%len(ring)]
			switch n := s.node(v); {
			case set[v] < 0:
				return bad("%v has links, and none of the shape's", n)
			case c.dead[n]:
				return bad("%v has links, and is dead", n)
			case set[v] != of:
				return bad("%v and %v are on one ring, and are to be on two", s.node(ring[0]), n)
			case len(ring) == 1:
				return bad("%v is linked to itself", n)
			case q.Kind == Torus && w != c.after(s, q.sets[of], place[v]):
				return bad("%v is followed by %v: want %v, the next of the torus",
					n, s.node(w), s.node(c.after(s, q.sets[of], place[v])))
			}
		}
		if length[of] > 0 {
			return bad("%v and %v are on two rings, and are to be on one", s.node(ring[0]), s.node(q.sets[of][0]))
		}
		length[of] = len(ring)
	}
	for i, members := range q.sets {
		living := 0
		for _, v := range members {
			if !c.dead[s.node(v)] {
				living++
			}
		}
		if living > 1 && length[i] != living {
			return bad("the ring of %v has %d nodes: want %d", s.node(members[0]), length[i], living)
		}
	}
	return nil
}

// after returns the next node of a set that is alive.
func (c *Config) after(s Switch, set []int, place int) int {
	for i := 1; i < len(set); i++ {
		if v := set[(place+i)%len(set)]; !c.dead[s.node(v)] {
			return v
		}
	}
	return set[place]
}

// checkPairs returns which two nodes of a row or column are not joined as often as all-to-all has it. On switches that
// are off, at most one link of any two is lost each.
func (c *Config) checkPairs(d Dimension, group int, q *placed, arcs []int32, offs int) error {
	if q.Size < 2 {
		return nil
	}
	copies := q.Rails / (q.Size - 1)
	ordered, both := copies-offs, 2*copies-offs
	if q.Size == 2 {
		both -= offs // the only ring has both arcs
	}
	s := Switch{Dimension: d, Group: group}
	for i, members := range q.sets {
		for a, v := range members {
			for b, w := range members {
				if a == b || c.dead[s.node(v)] || c.dead[s.node(w)] {
					continue
				}
				there := int(arcs[(i*q.Size+a)*q.Size+b])
				back := int(arcs[(i*q.Size+b)*q.Size+a])
				if q.directed && there < ordered {
					return fmt.Errorf("%v/%d: %w: %v comes before %v on %d rings: want %d",
						d, group, ErrLink, s.node(v), s.node(w), there, ordered)
				}
				if there+back < both {
					return fmt.Errorf("%v/%d: %w: %v and %v have %d links: want %d",
						d, group, ErrLink, s.node(v), s.node(w), there+back, both)
				}
			}
		}
	}
	return nil
}

// checkGroups returns which two columns of a Dragonfly are not joined as often as its global rings have it.
func (c *Config) checkGroups(q *placed, arcs []int32, offs int) error {
	if q.Size < 2 {
		return nil
	}
	copies := len(c.rect.Rows) * q.Rails / (q.Size - 1)
	ofRow := (q.Rails + q.Size - 2) / (q.Size - 1) // the most that a row has of one arc
	lost := make([]map[int]bool, q.Size)           // by column, the rows in which its node is dead
	for i, v := range q.sets[0] {
		for _, j := range c.rect.Rows {
			if c.dead[Node{v, j}] {
				if lost[i] == nil {
					lost[i] = map[int]bool{}
				}
				lost[i][j] = true
			}
		}
	}
	for a := range q.Size {
		for b := range a {
			rows := len(lost[a])
			for j := range lost[b] {
				if !lost[a][j] {
					rows++
				}
			}
			there, back := int(arcs[a*q.Size+b]), int(arcs[b*q.Size+a])
			if want := 2 * (copies - offs - rows*ofRow); there+back < want {
				return fmt.Errorf("%v: %w: columns %d and %d have %d: want %d",
					X, ErrLink, q.sets[0][b], q.sets[0][a], there+back, want)
			}
		}
	}
	return nil
}

// Observed returns the configuration with the links that switches really have, as Cables.Links reads them; switches
// that are not in it have none. Check and Trace then say whether they are what they should be, and Diff from it what
// is to be done. The error, for a switch that the grid does not have, matches ErrLink.
func (c *Config) Observed(links map[Switch][]Link) (*Config, error) {
	next := *c
	next.links = make([][]Link, len(c.links))
	for s, list := range links {
		if !c.grid.Has(s) {
			return nil, fmt.Errorf("%v: %w: there is no such switch", s, ErrLink)
		}
		list = slices.Clone(list)
		for i, l := range list {
			if l.Plus%2 != 0 && l.Minus%2 == 0 { // a duplex circuit has no direction
				list[i] = Link{l.Minus, l.Plus}
			}
		}
		sortLinks(list)
		next.links[c.grid.index(s)] = list
	}
	return &next, nil
}
