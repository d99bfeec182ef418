package railx

import (
	"slices"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// SwitchDelta is what changes on a switch.
type SwitchDelta struct {
	Switch         Switch
	Removed, Added []Link // in order of Plus; removed before anything is added
	Ports          []Port // those of Removed and Added, ascending, each once
}

// Delta is what changes from one configuration to another, and nothing else. Switches are independent of each other.
type Delta struct {
	Switches  []SwitchDelta // those with a change, in order
	Untouched int           // switches that have links, the same before and after
}

// Removed returns how many links go.
func (d Delta) Removed() int { return d.sum(func(s SwitchDelta) int { return len(s.Removed) }) }

// Added returns how many links come.
func (d Delta) Added() int { return d.sum(func(s SwitchDelta) int { return len(s.Added) }) }

// Ports returns how many duplex ports are rewired.
func (d Delta) Ports() int { return d.sum(func(s SwitchDelta) int { return len(s.Ports) }) }

func (d Delta) sum(of func(SwitchDelta) int) int {
	n := 0
	for _, s := range d.Switches {
		n += of(s)
	}
	return n
}

// Diff returns what has to change to get from old to next. Switches that next does without are left alone. A nil old
// has no links.
func Diff(old, next *Config) Delta {
	var d Delta
	visit := func(s Switch, before, after []Link) {
		switch {
		case next.off[s]:
		case !same(before, after):
			c := SwitchDelta{Switch: s, Removed: minus(before, after), Added: minus(after, before)}
			if c.Ports = portsOf(c.Removed, c.Added); len(c.Ports) > 0 {
				d.Switches = append(d.Switches, c)
				return
			}
			fallthrough
		default:
			if len(after) > 0 {
				d.Untouched++
			}
		}
	}
	if old == nil {
		old = &Config{grid: next.grid, links: make([][]Link, len(next.links))}
	}
	for i, after := range next.links {
		s := next.grid.at(i)
		visit(s, old.on(s), after)
	}
	if old.grid != next.grid {
		for i, before := range old.links {
			if s := old.grid.at(i); !next.grid.Has(s) {
				visit(s, before, nil)
			}
		}
		slices.SortStableFunc(d.Switches, func(a, b SwitchDelta) int { return compareSwitches(a.Switch, b.Switch) })
	}
	return d
}

func compareSwitches(a, b Switch) int {
	switch {
	case a.Dimension != b.Dimension:
		return int(a.Dimension) - int(b.Dimension)
	case a.Group != b.Group:
		return a.Group - b.Group
	}
	return a.Rail - b.Rail
}

// same reports whether both are the same memory, which says that they are equal but not that they differ.
func same(a, b []Link) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// minus returns the links of a that are not in b; both are in order.
func minus(a, b []Link) []Link {
	var left []Link
	merge(a, b, func(l Link, both bool) {
		if !both {
			left = append(left, l)
		}
	})
	return left
}

// common returns how many links of a are in b; both are in order.
func common(a, b []Link) int {
	n := 0
	merge(a, b, func(_ Link, both bool) {
		if both {
			n++
		}
	})
	return n
}

// merge visits the links of a and says of each whether it is in b; both are in order.
func merge(a, b []Link, visit func(l Link, both bool)) {
	j := 0
	for _, l := range a {
		for j < len(b) && (b[j].Plus < l.Plus || b[j].Plus == l.Plus && b[j].Minus < l.Minus) {
			j++
		}
		visit(l, j < len(b) && b[j] == l)
	}
}

func portsOf(lists ...[]Link) []Port {
	var ports []Port
	for _, links := range lists {
		for _, l := range links {
			ports = append(ports, l.Plus, l.Minus)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// Settle returns next with its rings on those rails where the most links of old can stay: rails of a logical
// dimension are interchangeable in each row and column. It is the least that has to be rewired without moving a ring
// to other nodes (the Hungarian method for each group and logical dimension; beyond the paper). Configurations of
// different grids have nothing to settle: next is returned as it is.
func Settle(old, next *Config) *Config {
	if old == nil || old.grid != next.grid {
		return next
	}
	settled := *next
	settled.planned, settled.links = slices.Clone(next.planned), slices.Clone(next.links)
	for _, d := range []Dimension{X, Y} {
		for _, q := range next.plan(d).dims {
			if len(q.rings) < 2 {
				continue
			}
			var last *group
			for _, at := range next.groups(d) {
				g := newGroup(old, next, d, at, q.rails)
				if !g.sameAs(last) {
					g.assign()
				} else {
					g.to = last.to
				}
				for a, t := range g.to {
					settled.planned[g.index[a]], settled.links[g.index[a]] = next.planned[g.index[t]], next.links[g.index[t]]
				}
				last = g
			}
		}
	}
	return &settled
}

// group is the rails of a logical dimension in one row or column, those that are off left out.
type group struct {
	index     []int // of their switches
	old, next [][]Link
	to        []int // by rail, which ring of next it gets
}

func newGroup(old, next *Config, d Dimension, at int, rails []int) *group {
	g := &group{}
	for _, rail := range rails {
		s := Switch{d, at, rail}
		if next.off[s] {
			continue
		}
		i := next.grid.index(s)
		g.index = append(g.index, i)
		g.old, g.next = append(g.old, old.links[i]), append(g.next, next.links[i])
	}
	return g
}

// sameAs reports that the rails have the very links that those of o have, so that what is good for o is for g.
func (g *group) sameAs(o *group) bool {
	if o == nil || len(g.old) != len(o.old) {
		return false
	}
	for a := range g.old {
		if !same(g.old[a], o.old[a]) || !same(g.next[a], o.next[a]) {
			return false
		}
	}
	return true
}

// assign chooses which ring each rail gets. Of choices with as many links that stay it takes one with the most rails
// untouched, and of those one that leaves rings on their rails: extras that amount to less than a link all together.
func (g *group) assign() {
	n := len(g.old)
	cost, extra := make([][]float64, n), 0.5/float64(n)
	for a := range cost {
		cost[a] = make([]float64, n)
		for t := range cost[a] {
			n := common(g.old[a], g.next[t])
			cost[a][t] = -float64(n)
			if n == len(g.old[a]) && n == len(g.next[t]) {
				cost[a][t] -= extra
			}
		}
		cost[a][a] -= extra / float64(2*n)
	}
	to, _, ok := graph.Assign(cost)
	if !ok {
		to = count(n) // nothing is forbidden, so this does not happen
	}
	g.to = to
}

// relabelTries is how many namings Relabel looks at for each logical dimension of each group.
const relabelTries = 256

// Relabel does more than Settle: where a row or column is all-to-all as a whole, it also renumbers the nodes in the
// new rings so that one of them is a ring that is there already. All-to-all is that under any numbering; other
// logical dimensions are left alone. It tries up to 256 ways to lay a ring of next on one of old. As many links stay
// as with Settle or more, and of as many those that leave more switches untouched: from a torus, whose links are each
// on some ring of any decomposition, that is all there is to win. Beyond the paper.
func Relabel(old, next *Config) *Config {
	best := Settle(old, next)
	if old == nil || old.grid != next.grid || len(next.dead) > 0 || len(next.off) > 0 {
		return best
	}
	for _, d := range []Dimension{X, Y} {
		for _, q := range next.plan(d).dims {
			if q.Kind != AllToAll || len(q.sets) != 1 || q.Size < 4 {
				continue
			}
			best = relabel(old, best, d, q)
		}
	}
	return best
}

// relabel is Relabel for one logical dimension, which is alone with its nodes.
func relabel(old, next *Config, d Dimension, q placed) *Config {
	better := *next
	better.planned = slices.Clone(next.planned)
	var last *group
	var drawn [][]Link // what the last group got, by rail
	for _, at := range next.groups(d) {
		g := newGroup(old, next, d, at, q.rails)
		if !g.sameAs(last) {
			drawn = g.renumber(old, d, at, q)
		}
		for a, i := range g.index {
			better.planned[i] = drawn[a]
		}
		last = g
	}
	better.links = slices.Clone(better.planned)
	return &better
}

// renumber returns the links of the group's rails under the best numbering found.
func (g *group) renumber(old *Config, d Dimension, at int, q placed) [][]Link {
	kept := func(next [][]Link) int { // links first, then rails that are not touched
		n := 0
		for a := range next {
			here := common(g.old[a], next[a])
			n += here * (len(next) + 1)
			if here == len(g.old[a]) && here == len(next[a]) {
				n++
			}
		}
		return n
	}
	best, most := g.next, kept(g.next)
	var models [][]int
	for _, rail := range q.rails {
		for _, ring := range old.Rings(Switch{d, at, rail}) {
			known := slices.ContainsFunc(models, func(m []int) bool { return slices.Equal(m, ring) })
			if !known && sameNodes(ring, q.sets[0]) {
				models = append(models, ring)
			}
		}
	}
	tries := 0
	for _, model := range models {
		for turn := range q.Size * len(q.rings) {
			if tries++; tries > relabelTries {
				return best
			}
			name := make([]int, q.Size) // by place, the node that is there
			for i, place := range q.rings[turn/q.Size] {
				name[place] = model[(i+turn)%q.Size]
			}
			next := g.named(q, name)
			if n := kept(next); n > most {
				best, most = next, n
			}
		}
	}
	return best
}

// named returns the links of the group's rails with those nodes at the places of the rings, on the best rails.
func (g *group) named(q placed, name []int) [][]Link {
	drawn := make([][]Link, len(q.rings))
	for t, ring := range q.rings {
		drawn[t] = linksOf(ring, [][]int{name})
	}
	try := &group{index: g.index, old: g.old, next: make([][]Link, len(g.next))}
	for a := range try.next {
		try.next[a] = drawn[a%len(drawn)]
	}
	try.assign()
	next := make([][]Link, len(try.next))
	for a, t := range try.to {
		next[a] = try.next[t]
	}
	return next
}

// sameNodes reports whether a ring is through just those nodes, which are ascending.
func sameNodes(ring, nodes []int) bool {
	sorted := slices.Clone(ring)
	slices.Sort(sorted)
	return slices.Equal(sorted, nodes)
}
