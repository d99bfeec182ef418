package infinitehbd

import (
	"cmp"
	"fmt"
	"slices"
)

// How many fronts a search may have: about a gigabyte, and about 20 s.
const (
	maxFronts = 1 << 23
	maxTries  = 1 << 26 // from all places to begin at
)

// search finds the placement with the most groups at the least cost. It goes along the line and decides for each living
// node whether it is idle, begins a group, or goes on with one that is open. What is to come depends only on the open
// groups: the last node of each, how many it has, and what that node can still switch to. So among the ways that lead
// to the same open groups only the best is followed.
type search struct {
	line   Line
	size   int // of groups, in nodes
	width  int // open groups at most
	living int

	// By place of the line.
	alive []bool
	was   [][]State // what bundles are in; nil if it does not matter
	alone []int     // the cost of a node with all bundles looped
	idle  []int     // the cost of a node in no group, on top
	part  []member  // of what runs

	forth, back []hop // by distance

	least int // groups that there are at any rate
	steps []step
}

// hop is what leads over a distance.
type hop struct {
	ok     bool
	bundle int
	path   State
	shared bool // the bundle leads the other way as well
}

// member is which running group a node is in, from 1, and how many it has. Zero is none.
type member struct{ group, size int }

// open is a group that is being put together.
type open struct {
	last   int32 // its last node, counted along the search
	nodes  int32
	shared int32 // the bundle that its last node may not use again, from 1; 0 is none
	kept   bool  // all its nodes are of one group that runs and has as many as groups shall have
}

// front is the open groups, by their last nodes; those with no nodes are unused.
type front [MaxOverlap]open

// worth is how good a way is.
type worth struct{ groups, cost, kept int }

func (w worth) compare(o worth) int {
	return cmp.Or(cmp.Compare(o.groups, w.groups), cmp.Compare(w.cost, o.cost), cmp.Compare(o.kept, w.kept))
}

// way is the best that leads to a front.
type way struct {
	front front
	worth worth
	steps int32 // the last that were taken, in search.steps; -1 is none
	step  step  // that goes on from them, if it is of a node
}

// step puts a node into a group: behind the last node of the group, or as its first, which is 0. Both are counted
// along the search, from 1.
type step struct {
	before     int32 // the step before, in search.steps
	node, last int32
}

func newSearch(l Line, size int, dead []Node) (*search, error) {
	sure, err := l.Place(size, dead)
	if err != nil {
		return nil, err
	}
	_, gone, err := l.gone(dead)
	if err != nil {
		return nil, err
	}
	n := len(l.Order)
	s := &search{line: l, size: size, width: 1, living: n - len(dead), least: len(sure),
		alive: make([]bool, n), alone: make([]int, n), idle: make([]int, n), part: make([]member, n)}
	for i := range s.alive {
		s.alive[i] = !gone[i]
	}
	s.hops()
	return s, nil
}

// hops lists what leads over each distance.
func (s *search) hops() {
	most := min(s.line.Layout.Hops(), len(s.line.Order))
	s.forth, s.back = make([]hop, most+1), make([]hop, most+1)
	for d := 1; d <= most; d++ {
		s.forth[d], s.back[d] = s.hop(d), s.hop(-d)
	}
}

func (s *search) hop(distance int) hop {
	b, path, ok := s.line.Layout.Find(distance)
	if !ok {
		return hop{}
	}
	r := s.line.Layout.Bundles[b].Reach
	return hop{true, b, path, r[0] < 0 && r[1] > 0 || r[0] > 0 && r[1] < 0}
}

// from makes the cost the bundles that switch, and keeps groups that run.
func (s *search) from(p *Plan) {
	s.was = make([][]State, len(s.alive))
	for i, n := range s.line.Order {
		s.was[i] = p.states[n]
		for b := range s.was[i] {
			if s.alive[i] {
				s.alone[i] += s.changes(i, b, Loop)
			}
		}
	}
	for g, group := range p.groups {
		for _, n := range group {
			s.part[p.at[n]] = member{g + 1, len(group)}
		}
	}
}

// changes is 1 if a bundle switches when it comes to be in a state, otherwise 0.
func (s *search) changes(place, bundle int, to State) int {
	if s.was == nil || s.was[place][bundle] == to {
		return 0
	}
	return 1
}

// spread makes the cost the nodes that are idle anywhere but evenly between the groups.
func (s *search) spread() {
	var run []int
	start, last := s.starts()[0], 0
	for i := range s.alive {
		at := (start + i) % len(s.alive)
		if !s.alive[at] {
			continue
		}
		if len(run) > 0 && (i-last >= len(s.forth) || !s.forth[i-last].ok) {
			s.spreadRun(run)
			run = run[:0]
		}
		s.idle[at] = 1
		run = append(run, at)
		last = i
	}
	s.spreadRun(run)
}

// spreadRun chooses the idle nodes of places that follow each other.
func (s *search) spreadRun(run []int) {
	groups, idle := len(run)/s.size, len(run)%s.size
	for k := range idle {
		before := (2*k + 1) * groups / (2 * idle)
		s.idle[run[before*s.size+k]] = 0
	}
}

// fronts returns about how many there can be along the line.
func (s *search) fronts() float64 {
	hops := min(s.line.Layout.Hops(), len(s.alive))
	n := float64(len(s.alive))
	for k := range min(s.width, hops) {
		n *= float64(hops-k) / float64(k+1) * float64(min(s.size, s.living))
	}
	return n
}

// groups returns the best placement, in the order of the line. One that would take too long to find is an error
// that matches ErrGroup.
func (s *search) groups() ([]Group, error) {
	if s.size > s.living {
		return nil, nil
	}
	starts := s.starts()
	if n := s.fronts(); n > maxFronts || n*float64(len(starts)) > maxTries {
		return nil, fmt.Errorf("%w: groups of %d on %d nodes that reach %d, %d across each other: too many placements, "+
			"want smaller groups or less overlap", ErrGroup, s.size, len(s.alive), s.line.Layout.Hops(), s.width)
	}
	var best worth
	var placed [][]int
	for _, start := range starts {
		w, p, ok := s.along(start)
		if ok && (placed == nil || w.compare(best) < 0) { // no groups are the worst of all
			best, placed = w, p
		}
	}
	slices.SortFunc(placed, func(a, b []int) int { return a[0] - b[0] })
	groups := make([]Group, len(placed))
	for i, places := range placed {
		for _, at := range places {
			groups[i] = append(groups[i], s.line.Order[at])
		}
	}
	return groups, nil
}

// starts returns the places to begin at: the front of the line. A closed line has none, so it is any place with
// nothing across it: that behind a break, or else one of as many as a group can cover.
func (s *search) starts() []int {
	if !s.line.Closed {
		return []int{0}
	}
	n, gone := len(s.alive), 0
	hops := s.line.Layout.Hops()
	for i := range n + hops {
		if gone++; s.alive[i%n] {
			gone = 0
		}
		if gone >= hops {
			return []int{(i + 1) % n}
		}
	}
	list := make([]int, min(n, min(n, s.size)*hops))
	for i := range list {
		list[i] = i
	}
	return list
}

// along goes along the line from a place, and returns the places of each group.
func (s *search) along(start int) (worth, [][]int, bool) {
	n := len(s.alive)
	left := s.living
	s.steps = s.steps[:0]
	ways, next := []way{{steps: -1}}, []way(nil)
	index := map[front]int{}
	for i := range n {
		at := (start + i) % n
		clear(index)
		next = next[:0]
		if s.alive[at] {
			left--
		}
		for _, w := range ways {
			s.onwards(w, int32(i), start, func(w way) {
				next = s.follow(next, index, w, i, left)
			})
		}
		s.take(next)
		ways, next = next, ways
	}
	for _, w := range ways {
		if w.front == (front{}) {
			return w.worth, s.trace(w.steps, start), true
		}
	}
	return worth{}, nil, false
}

// follow adds a way if no better leads to the same front, its groups can all be closed, and there can be as many as
// there are at any rate.
func (s *search) follow(ways []way, index map[front]int, w way, i, left int) []way {
	nodes := left
	for _, g := range w.front {
		if g.nodes > 0 && i+1-int(g.last) >= len(s.forth) {
			return ways
		}
		nodes += int(g.nodes)
	}
	if w.worth.groups+nodes/s.size < s.least {
		return ways
	}
	j, ok := index[w.front]
	if !ok {
		index[w.front] = len(ways)
		return append(ways, w)
	}
	if w.worth.compare(ways[j].worth) < 0 {
		ways[j] = w
	}
	return ways
}

// take keeps the steps of ways, now that no better ones can replace them.
func (s *search) take(ways []way) {
	for i := range ways {
		if w := &ways[i]; w.step.node > 0 {
			s.steps = append(s.steps, w.step)
			w.steps, w.step = int32(len(s.steps)-1), step{}
		}
	}
}

// onwards yields the ways on from one over a node: dead or idle, first of a group, next of one that is open.
func (s *search) onwards(w way, i int32, start int, yield func(way)) {
	at := (start + int(i)) % len(s.alive)
	if !s.alive[at] {
		yield(w)
		return
	}
	w.worth.cost += s.alone[at]
	idle := w
	idle.worth.cost += s.idle[at]
	yield(idle)
	opened := 0
	for opened < s.width && w.front[opened].nodes > 0 {
		opened++
	}
	if opened < s.width {
		first := w
		s.add(&first, opened, open{last: i, nodes: 1, kept: s.part[at].size == s.size}, -1)
		yield(first)
	}
	for k := range opened {
		if next, ok := s.extend(w, k, opened-1, i, start); ok {
			yield(next)
		}
	}
}

// extend goes on with the open group k; to is where it is in the front then, behind all others.
func (s *search) extend(w way, k, to int, i int32, start int) (way, bool) {
	g := w.front[k]
	d := int(i - g.last)
	forth, back := s.forth[d], s.back[d]
	if !forth.ok || forth.shared && g.shared == int32(forth.bundle+1) {
		return w, false
	}
	from, at := (start+int(g.last))%len(s.alive), (start+int(i))%len(s.alive)
	w.worth.cost += s.changes(from, forth.bundle, forth.path) - s.changes(from, forth.bundle, Loop)
	w.worth.cost += s.changes(at, back.bundle, back.path) - s.changes(at, back.bundle, Loop)
	next := open{last: i, nodes: g.nodes + 1}
	if back.shared {
		next.shared = int32(back.bundle + 1)
	}
	next.kept = g.kept && s.part[at] == s.part[from]
	copy(w.front[k:], w.front[k+1:])
	w.front[MaxOverlap-1] = open{}
	s.add(&w, to, next, g.last)
	return w, true
}

// add puts an open group into the front, or closes it if it has all its nodes. Its last node follows another, or -1.
func (s *search) add(w *way, to int, g open, last int32) {
	w.step = step{w.steps, g.last + 1, last + 1}
	if int(g.nodes) < s.size {
		w.front[to] = g
		return
	}
	w.worth.groups++
	if g.kept {
		w.worth.kept++
	}
}

// trace returns the places of the groups that steps have put together.
func (s *search) trace(last int32, start int) [][]int {
	var steps []step
	for ; last >= 0; last = s.steps[last].before {
		steps = append(steps, s.steps[last])
	}
	var groups [][]int
	of := map[int32]int{} // the group of a node
	for _, st := range slices.Backward(steps) {
		g, ok := of[st.last]
		if !ok {
			g = len(groups)
			groups = append(groups, nil)
		}
		of[st.node] = g
		groups[g] = append(groups[g], (start+int(st.node)-1)%len(s.alive))
	}
	return groups
}
