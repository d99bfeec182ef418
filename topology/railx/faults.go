package railx

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bypass returns the configuration without some more nodes. On each rail, the two links of such a node are replaced
// by one from the node before it to the one after it; no other link is touched, so what is all-to-all stays so, with
// a link more for one pair on each rail. On a ring that has one node left, no link is. Beyond the paper.
//
// The order in which nodes die does not matter. The error, for a node that is not on the rectangle or if none would be
// left, matches ErrFaults; one that is dead already is no error.
func (c *Config) Bypass(dead ...Node) (*Config, error) {
	all := maps.Clone(c.dead)
	if all == nil {
		all = map[Node]bool{}
	}
	for _, n := range dead {
		if !c.rect.Contains(n) {
			return nil, fmt.Errorf("%w: %v is not among the nodes: want a column of %s and a row of %s",
				ErrFaults, n, span(c.rect.Columns), span(c.rect.Rows))
		}
		all[n] = true
	}
	if len(all) == c.rect.Nodes() {
		return nil, fmt.Errorf("%w: all %d nodes are dead", ErrFaults, len(all))
	}
	return c.with(all, c.off, dead), nil
}

// Restore takes Bypass back for some nodes. One that is not dead is an error that matches ErrFaults.
func (c *Config) Restore(nodes ...Node) (*Config, error) {
	all := maps.Clone(c.dead)
	for _, n := range nodes {
		if !c.dead[n] {
			return nil, fmt.Errorf("%w: %v is not dead: dead are %v", ErrFaults, n, c.Dead())
		}
		delete(all, n)
	}
	return c.with(all, c.off, nodes), nil
}

// Thinned is a pair that has fewer links than before.
type Thinned struct {
	A, B          Node // A before B
	Before, After int
}

// Without returns the configuration that does without some more switches, and which pairs have fewer links then, in
// order. Of all-to-all rings of three nodes or more, any one switch of a row or column may be off, and every two
// nodes still have a link. A switch that does not belong to it is an error that matches ErrFaults.
func (c *Config) Without(off ...Switch) (*Config, []Thinned, error) {
	all := maps.Clone(c.off)
	if all == nil {
		all = map[Switch]bool{}
	}
	type line struct {
		d     Dimension
		group int
	}
	lines := map[line]bool{}
	for _, s := range off {
		if !c.grid.Has(s) || !slices.Contains(c.groups(s.Dimension), s.Group) {
			return nil, nil, fmt.Errorf("%w: there is no switch %v: want rows %s for X, columns %s for Y, and rails 0 to %d",
				ErrFaults, s, span(c.rect.Rows), span(c.rect.Columns), c.grid.Rails-1)
		}
		all[s] = true
		lines[line{s.Dimension, s.Group}] = true
	}
	next := c.with(c.dead, all, nil)
	var thin []Thinned
	for l := range lines {
		before, after := c.pairs(l.d, l.group), next.pairs(l.d, l.group)
		for at, had := range before {
			if has := after[at]; has < had {
				s := Switch{Dimension: l.d, Group: l.group}
				thin = append(thin, Thinned{s.node(at[0]), s.node(at[1]), had, has})
			}
		}
	}
	slices.SortFunc(thin, func(a, b Thinned) int {
		if a.A != b.A {
			return compareNodes(a.A, b.A)
		}
		return compareNodes(a.B, b.B)
	})
	return next, thin, nil
}

func compareNodes(a, b Node) int {
	if a.Column != b.Column {
		return a.Column - b.Column
	}
	return a.Row - b.Row
}

// with returns the configuration with other nodes dead and other switches off. The links of the rows and columns of
// the nodes in changed are drawn anew, and all others kept, unless switches are off that were not.
func (c *Config) with(dead map[Node]bool, off map[Switch]bool, changed []Node) *Config {
	next := *c
	next.dead, next.off = dead, off
	next.links = slices.Clone(c.links)
	for s := range off {
		next.links[c.grid.index(s)] = nil
	}
	for _, n := range changed {
		for rail := range c.grid.Rails {
			for _, s := range [2]Switch{{X, n.Row, rail}, {Y, n.Column, rail}} {
				if i := c.grid.index(s); !off[s] {
					next.links[i] = around(c.planned[i], func(v int) bool { return dead[s.node(v)] }, c.grid.Ports(s.Dimension))
				}
			}
		}
	}
	return &next
}

// around returns the links of rings after the nodes that are dead are taken out of them.
func around(links []Link, dead func(v int) bool, ports int) []Link {
	next := make([]Port, ports)
	for _, l := range links {
		next[l.Plus] = l.Minus
	}
	var left []Link
	for _, l := range links {
		from, _ := l.Plus.Node()
		if dead(from) {
			continue
		}
		to := l.Minus
		for v, _ := to.Node(); dead(v); v, _ = to.Node() {
			to = next[Plus(v)] // planned links are rings, and from is alive: this ends
		}
		if v, _ := to.Node(); v != from {
			left = append(left, Link{l.Plus, to})
		}
	}
	return left
}

// span returns "0 to 4" or "0, 2, 5".
func span(list []int) string {
	if n := len(list); n > 2 && list[n-1]-list[0] == n-1 {
		return fmt.Sprintf("%d to %d", list[0], list[n-1])
	}
	var words []string
	for i, v := range list {
		if i == 8 {
			words = append(words, fmt.Sprintf("... %d", list[len(list)-1]))
			break
		}
		words = append(words, fmt.Sprint(v))
	}
	return strings.Join(words, ", ")
}
