package infinitehbd

import (
	"fmt"
	"maps"
	"slices"
)

// Build returns the states in which all bundles of the line join the GPUs of each group to one ring: for nodes that
// follow each other in a group the paths that lead from one to the other; all other bundles are looped, those of
// dead nodes dark. A group of one node is the ring of its own GPUs. Groups may reach over nodes of others.
//
// A node that is dead twice or is not in the line is an error that matches ErrNode. Groups that cannot be are one that
// matches ErrGroup and names the node: not in the line, dead, in two places, not in the order of the line, or without
// a path to the next. So are groups in which a node needs both paths of one bundle, to neighbours on both sides: a group
// must end there (ours; with odd K the distance K has a single bundle).
func (l Line) Build(groups []Group, dead []Node) (*Plan, error) {
	p, err := l.blank(dead)
	if err != nil {
		return nil, err
	}
	in := map[Node]bool{}
	for _, g := range groups {
		if len(g) == 0 {
			return nil, fmt.Errorf("%w: a group has no nodes: want one or more", ErrGroup)
		}
		for _, n := range g {
			if err := p.member(n, in[n]); err != nil {
				return nil, fmt.Errorf("%w: group %v: %w", ErrGroup, g, err)
			}
			in[n] = true
		}
		if err := p.join(g); err != nil {
			return nil, fmt.Errorf("%w: group %v: %w", ErrGroup, g, err)
		}
		p.groups = append(p.groups, slices.Clone(g))
	}
	return p, nil
}

// blank returns a plan without groups.
func (l Line) blank(dead []Node) (*Plan, error) {
	at, gone, err := l.gone(dead)
	if err != nil {
		return nil, err
	}
	l.Order = slices.Clone(l.Order)
	p := &Plan{line: l, at: at, states: make(map[Node][]State, len(l.Order))}
	k := len(l.Layout.Bundles)
	all := make([]State, k*len(l.Order))
	for i, n := range l.Order {
		p.states[n] = all[i*k : (i+1)*k : (i+1)*k]
		if gone[i] {
			p.darken(n)
		}
	}
	return p, nil
}

// darken makes all bundles of a node dark.
func (p *Plan) darken(n Node) {
	for b := range p.states[n] {
		p.states[n][b] = Dark
	}
}

// member returns why a node cannot be in a group.
func (p *Plan) member(n Node, taken bool) error {
	states, ok := p.states[n]
	switch {
	case !ok:
		return fmt.Errorf("%w: node %d is not in the line", ErrNode, n)
	case taken:
		return fmt.Errorf("node %d is in a group already", n)
	case states[0] == Dark:
		return fmt.Errorf("node %d is dead", n)
	}
	return nil
}

// join puts the bundles of a group on their paths.
func (p *Plan) join(g Group) error {
	span := 0
	for i := 1; i < len(g); i++ {
		gap, err := p.gap(g[i-1], g[i])
		if err != nil {
			return err
		}
		if span += gap; span >= len(p.line.Order) {
			return fmt.Errorf("node %d is not in the order of the line: the group goes around it", g[i])
		}
		out, forth, _ := p.line.Layout.Find(gap)
		in, back, _ := p.line.Layout.Find(-gap)
		if s := p.states[g[i-1]][out]; s != Loop {
			return fmt.Errorf("node %d needs both paths of bundle %s, to nodes %d and %d: a group must end there",
				g[i-1], p.line.Layout.bundle(out), g[i-2], g[i])
		}
		p.states[g[i-1]][out], p.states[g[i]][in] = forth, back
	}
	return nil
}

// gap returns how far a node is before another, if there is a path.
func (p *Plan) gap(a, b Node) (int, error) {
	gap := p.at[b] - p.at[a]
	if p.line.Closed && gap < 0 {
		gap += len(p.line.Order)
	}
	if gap < 0 {
		return 0, fmt.Errorf("node %d is before node %d in the line: want groups in its order", b, a)
	}
	if _, _, ok := p.line.Layout.Find(gap); !ok {
		return 0, fmt.Errorf("node %d is %d behind node %d: there are paths over %d only", b, gap, a, p.line.Layout.Distances())
	}
	return gap, nil
}

// NewPlan returns the plan of states that were read back: of each node those of its bundles, in the order of
// Layout.Bundles. Nodes that are left out are dark. The groups are the nodes that are joined by cables with both ends on
// the path; whether they are rings is for Rings to say. A node by itself counts as idle. States that cannot be, and
// nodes that are not in the line, are an error that matches ErrNode.
func NewPlan(line Line, states map[Node][]State) (*Plan, error) {
	p, err := line.blank(nil)
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(states)) {
		own, ok := p.states[n]
		if !ok {
			return nil, fmt.Errorf("%w: node %d has states, and is not in the line", ErrNode, n)
		}
		if len(states[n]) != len(own) {
			return nil, fmt.Errorf("%w: node %d has %d states: want %d, one for each bundle", ErrNode, n, len(states[n]), len(own))
		}
		for b, s := range states[n] {
			if s > Dark {
				return nil, fmt.Errorf("%w: bundle %d.%s is in %v: want LOOP, PATH1, PATH2 or DARK",
					ErrNode, n, line.Layout.bundle(b), s)
			}
		}
		copy(own, states[n])
	}
	for _, n := range line.Order {
		if _, ok := states[n]; !ok {
			p.darken(n)
		}
	}
	p.groups = p.joined()
	return p, nil
}

// joined returns the groups of two and more nodes that cables join: each from its front, in the order of the line.
func (p *Plan) joined() []Group {
	n := len(p.line.Order)
	next := make([][]int, n) // the places that whole cables join to each
	front := make([]bool, n) // no cable leads to it from behind
	for i := range front {
		front[i] = true
	}
	for i := range n {
		for _, c := range p.cablesOf(i) {
			if a, b := p.ends(c); a && b {
				j := p.at[c.B.Node]
				next[i], next[j] = append(next[i], j), append(next[j], i)
				front[j] = false
			}
		}
	}
	var groups []Group
	met := make([]bool, n)
	for _, fronts := range []bool{true, false} { // what has no front is a closed line joined all around
		for i := range n {
			if !met[i] && len(next[i]) > 0 && front[i] == fronts {
				groups = append(groups, p.reachable(i, next, met))
			}
		}
	}
	slices.SortFunc(groups, func(a, b Group) int { return p.at[a[0]] - p.at[b[0]] })
	return groups
}

// reachable returns all nodes that are joined to that of a place, and marks them as met.
func (p *Plan) reachable(from int, next [][]int, met []bool) Group {
	n := len(met)
	met[from] = true
	list := []int{from}
	for i := 0; i < len(list); i++ {
		for _, j := range next[list[i]] {
			if !met[j] {
				met[j] = true
				list = append(list, j)
			}
		}
	}
	slices.SortFunc(list, func(a, b int) int { return (a-from+n)%n - (b-from+n)%n })
	g := make(Group, len(list))
	for i, j := range list {
		g[i] = p.line.Order[j]
	}
	return g
}

// cablesOf returns the cables that lead forwards from a place of the line.
func (p *Plan) cablesOf(place int) []Cable {
	var list []Cable
	for _, b := range p.line.Layout.Bundles {
		for _, d := range b.Reach {
			if d <= 0 {
				continue
			}
			if c, ok := p.line.cable(place, d); ok {
				list = append(list, c)
			}
		}
	}
	return list
}

// ends returns which ends of a cable have their bundle on its path.
func (p *Plan) ends(c Cable) (a, b bool) {
	return p.states[c.A.Node][c.A.Bundle] == c.A.Path, p.states[c.B.Node][c.B.Bundle] == c.B.Path
}

// Line returns the line that the plan is for.
func (p *Plan) Line() Line {
	l := p.line
	l.Order = slices.Clone(l.Order)
	return l
}

// Groups returns the groups, each from its front.
func (p *Plan) Groups() []Group {
	groups := make([]Group, len(p.groups))
	for i, g := range p.groups {
		groups[i] = slices.Clone(g)
	}
	return groups
}

// State returns what a bundle does; Dark if there is no such node or bundle.
func (p *Plan) State(n Node, bundle int) State {
	if states := p.states[n]; bundle >= 0 && bundle < len(states) {
		return states[bundle]
	}
	return Dark
}

// Dead returns the nodes of which all bundles are dark, in the order of the line.
func (p *Plan) Dead() []Node {
	return p.filter(p.dead)
}

func (p *Plan) dead(n Node) bool {
	return !slices.ContainsFunc(p.states[n], func(s State) bool { return s != Dark })
}

// Idle returns the nodes that are neither dead nor in a group, in the order of the line.
func (p *Plan) Idle() []Node {
	in := map[Node]bool{}
	for _, g := range p.groups {
		for _, n := range g {
			in[n] = true
		}
	}
	return p.filter(func(n Node) bool { return !in[n] && !p.dead(n) })
}

func (p *Plan) filter(keep func(Node) bool) []Node {
	var list []Node
	for _, n := range p.line.Order {
		if keep(n) {
			list = append(list, n)
		}
	}
	return list
}

// HalfOpen returns the cables that have the bundle of one end on the path, and that of the other not. Such a bundle
// has left its loop and found nobody.
func (p *Plan) HalfOpen() []Cable {
	var list []Cable
	for i := range p.line.Order {
		for _, c := range p.cablesOf(i) {
			if a, b := p.ends(c); a != b {
				list = append(list, c)
			}
		}
	}
	return list
}

// Diff returns the bundles that are in different states, in the order of the line, of two plans for the same line. Nodes
// that are dead in the second do not count, for nobody switches them; nor do nodes that only one of the lines has.
func Diff(from, to *Plan) []Switching {
	var list []Switching
	for _, n := range to.line.Order {
		if to.dead(n) {
			continue
		}
		before := from.states[n]
		for b, s := range to.states[n] {
			if b < len(before) && before[b] != s {
				list = append(list, Switching{n, b, before[b], s})
			}
		}
	}
	return list
}

// Rings returns the GPUs of each group in the order in which the ring meets them: copper, loops and cables are
// followed from GPU 1 of the first node, whatever made the states. Each GPU must be on two edges, and the ring must be one
// cycle of all GPUs of the group and no other; no bundle of a node outside of groups may be on a path. The first thing
// that is not so is an error that matches ErrGroup and names the GPU or the bundle.
func (p *Plan) Rings() ([][]GPU, error) {
	w := newWalk(p)
	rings := make([][]GPU, len(p.groups))
	in := make([]bool, len(p.line.Order))
	for i, g := range p.groups {
		for _, n := range g {
			in[p.at[n]] = true
		}
		ring, err := w.ring(g)
		if err != nil {
			return nil, fmt.Errorf("%w: group %v: %w", ErrGroup, g, err)
		}
		rings[i] = ring
	}
	for i, n := range p.line.Order {
		for b, s := range p.states[n] {
			if !in[i] && (s == Path1 || s == Path2) {
				return nil, fmt.Errorf("%w: %s is on, and node %d is in no group", ErrGroup, p.line.Name(End{n, b, s}), n)
			}
		}
	}
	return rings, nil
}

// walk is what each GPU is joined to. A GPU has two slots, one for each of its edges of the internal cycle: that of
// GPU g (from 0) of the node at a place, out of G, is 2(place·G+g) and the next.
type walk struct {
	p       *Plan
	links   []int    // the slot that each slot is joined to, or -1
	bundles [][2]int // the slots of upper and lower of each bundle, within a node
	copper  [][2]int
}

func newWalk(p *Plan) *walk {
	w := &walk{p: p, links: make([]int, 2*p.line.Layout.GPUs*len(p.line.Order))}
	for i := range w.links {
		w.links[i] = -1
	}
	w.slots()
	for i, n := range p.line.Order {
		for _, c := range w.copper {
			w.join(i, c[0], i, c[1])
		}
		for b, s := range p.states[n] {
			if s == Loop {
				w.join(i, w.bundles[b][0], i, w.bundles[b][1])
			}
		}
		for _, c := range p.cablesOf(i) {
			if a, b := p.ends(c); a && b {
				j := p.at[c.B.Node]
				for side := range 2 {
					w.join(i, w.bundles[c.A.Bundle][side], j, w.bundles[c.B.Bundle][side])
				}
			}
		}
	}
	return w
}

// slots gives the ends of the edges of a node the slots of their GPUs, in the order of the edges.
func (w *walk) slots() {
	used := make([]int, w.p.line.Layout.GPUs)
	take := func(gpu int) int {
		used[gpu-1]++
		return 2*(gpu-1) + used[gpu-1] - 1
	}
	for _, b := range w.p.line.Layout.Bundles {
		w.bundles = append(w.bundles, [2]int{take(b.Upper), take(b.Lower)})
	}
	for _, c := range w.p.line.Layout.Copper {
		w.copper = append(w.copper, [2]int{take(c[0]), take(c[1])})
	}
}

func (w *walk) join(i, a, j, b int) {
	size := 2 * w.p.line.Layout.GPUs
	a, b = i*size+a, j*size+b
	w.links[a], w.links[b] = b, a
}

// gpu returns whose a slot is.
func (w *walk) gpu(slot int) GPU {
	g := w.p.line.Layout.GPUs
	return GPU{w.p.line.Order[slot/2/g], slot/2%g + 1}
}

// ring follows the ring of a group, first to the lower numbered neighbour in the same node.
func (w *walk) ring(g Group) ([]GPU, error) {
	start := w.first(g[0])
	want := len(g) * w.p.line.Layout.GPUs
	ring := make([]GPU, 0, want)
	for out := start; ; {
		at := w.gpu(out)
		if !slices.Contains(g, at.Node) {
			return nil, fmt.Errorf("the ring leads to %v, of another node", at)
		}
		ring = append(ring, at)
		in := w.links[out]
		if in < 0 {
			return nil, w.broken(out)
		}
		if out = in ^ 1; out == start {
			break
		}
	}
	if len(ring) != want {
		return nil, fmt.Errorf("the ring of %v has %d GPUs: want %d", ring[0], len(ring), want)
	}
	return ring, nil
}

// first returns the slot by which to leave GPU 1 of a node.
func (w *walk) first(n Node) int {
	slot := 2 * w.p.line.Layout.GPUs * w.p.at[n]
	near := func(s int) (gpu int, ok bool) {
		to := w.links[s]
		if to < 0 || w.gpu(to).Node != n {
			return 0, false
		}
		return w.gpu(to).GPU, true
	}
	a, okA := near(slot)
	if b, okB := near(slot + 1); okB && (!okA || b < a) {
		return slot + 1
	}
	return slot
}

// broken says why a slot is joined to nothing: its bundle is the only thing that can be.
func (w *walk) broken(slot int) error {
	at := w.gpu(slot)
	local := slot % (2 * w.p.line.Layout.GPUs)
	b := slices.IndexFunc(w.bundles, func(s [2]int) bool { return slices.Contains(s[:], local) })
	e := End{at.Node, b, w.p.states[at.Node][b]}
	if e.Path == Dark {
		return fmt.Errorf("the ring is broken at %v: %s", at, w.p.line.Name(e))
	}
	reach := w.p.line.Layout.Bundles[b].Reach[e.Path-Path1]
	far, ok := w.p.line.place(w.p.at[at.Node] + reach)
	if !ok || reach == 0 {
		return fmt.Errorf("the ring is broken at %v: %s leads to no node", at, w.p.line.Name(e))
	}
	other := End{Node: w.p.line.Order[far]}
	other.Bundle, _, _ = w.p.line.Layout.Find(-reach)
	other.Path = w.p.states[other.Node][other.Bundle]
	return fmt.Errorf("the ring is broken at %v: %s, and its other end %s", at, w.p.line.Name(e), w.p.line.Name(other))
}
