package crosswiring

import (
	"fmt"
	"slices"
)

// Incremental adds and takes away single links, as jobs come and go, and remembers what is free. It is ours. It is used by
// one goroutine at a time.
type Incremental struct {
	fabric  Fabric
	groups  []*palette
	out, in [][]int32 // by group and pod, links by direction
}

// NewIncremental starts from a configuration, which it does not change. The error matches ErrFabric for Uniform wiring, or
// ErrConfig as of Config.Check.
func NewIncremental(running *Config) (*Incremental, error) {
	f := running.fabric
	if err := f.Check(); err != nil {
		return nil, err
	}
	if f.Wiring == Uniform {
		return nil, fmt.Errorf("%w: uniform wiring has no pairs of switches that carry a link: want cross or dual-link", ErrFabric)
	}
	if err := running.Check(); err != nil {
		return nil, err
	}
	x := &Incremental{fabric: f}
	for h := range f.Groups {
		to, out, in := matchings(f.Pairs(), f.Pods), make([]int32, f.Pods), make([]int32, f.Pods)
		for c := range to {
			running.peers(Pair{h, c}, to[c])
			for u, v := range to[c] {
				if v != Dark {
					out[u]++
					in[v]++
				}
			}
		}
		x.groups, x.out, x.in = append(x.groups, newPalette(to, f.Pods)), append(x.out, out), append(x.in, in)
	}
	return x, nil
}

// Insert adds a link and returns how many running links move to other ports for it, which lose their light for a while. It
// moves no link if there is a pair that is free at both ends, else up to two that are in the way on some pair if they have
// a place elsewhere, else those on the shortest path along which two pairs can exchange theirs. Fewer may do.
//
// It is 0 if both spines have at most S/2 links with this one, whatever was inserted and removed before: the pairs that one
// end uses to send and the other to receive are, one way or the other, fewer than all, so that one pair is free at both.
// Above that it may be 0, too.
//
// The error matches ErrDemand if there are no such pods or group, or no port is left at one of them. Nothing has changed
// then.
func (x *Incremental) Insert(l Link) (moved int, err error) {
	if err := x.check(l); err != nil {
		return 0, err
	}
	for _, pod := range [2]int{l.A, l.B} {
		if n := x.out[l.Group][pod] + x.in[l.Group][pod]; int(n) >= x.fabric.SpinePorts {
			return 0, fmt.Errorf("%w: pod %d in group %d has %d links on %d ports, and no port for one of %v",
				ErrDemand, pod, l.Group, n, x.fabric.SpinePorts, l)
		}
	}
	if moved, ok := x.insert(l); ok {
		return moved, nil
	}
	moved = x.turn(l)
	more, _ := x.insert(l)
	return moved + more, nil
}

// insert adds a link in the direction that moves fewer, and of two such in that of the less loaded ends. It returns
// false if both ends send, or both receive, on all pairs.
func (x *Incremental) insert(l Link) (moved int, ok bool) {
	p := x.groups[l.Group]
	a, b := int32(l.A), int32(l.B)
	there, ok := p.find(a, b, p.to)
	back, okBack := p.find(b, a, p.to)
	if !ok && !okBack {
		return 0, false
	}
	least := there.cost
	if !ok || okBack && back.cost < least {
		least = back.cost
	}
	for n := 1; n <= 2 && n < least; n++ {
		if x.displace(l, n) {
			return n, true
		}
	}
	if !ok || okBack && (back.cost < there.cost || back.cost == there.cost && x.load(l.Group, b, a) < x.load(l.Group, a, b)) {
		a, b, there = b, a, back
	}
	x.put(l.Group, a, b, there)
	return there.cost, true
}

// displace adds a link on a pair where n others are in its way, each of which goes to a pair that is free at both ends of
// it, maybe turned round. It returns false if there is no such pair; nothing has changed then.
func (x *Incremental) displace(l Link, n int) bool {
	p := x.groups[l.Group]
	for _, way := range [2][2]int32{{int32(l.A), int32(l.B)}, {int32(l.B), int32(l.A)}} {
		for c := range p.to {
			u, v := way[0], way[1]
			same := p.to[c][u] == v // which is no other
			if !same && int(lit(p.to[c][u])+lit(p.from[c][v])) == n && x.displaceOn(l.Group, hop{c, u, v}) {
				return true
			}
		}
	}
	return false
}

// displaceOn is displace on a pair that does not run the same link.
func (x *Incremental) displaceOn(group int, at hop) bool {
	p := x.groups[group]
	var gone, moved []hop
	if v := p.to[at.pair][at.u]; v != Dark {
		gone = append(gone, hop{at.pair, at.u, v})
	}
	if u := p.from[at.pair][at.v]; u != Dark {
		gone = append(gone, hop{at.pair, u, at.v})
	}
	for _, g := range gone {
		x.unset(group, g.pair, g.u, g.v)
	}
	x.set(group, at)
	for _, g := range gone {
		to := hop{p.free(g.u, g.v), g.u, g.v}
		if to.pair < 0 {
			to = hop{p.free(g.v, g.u), g.v, g.u}
		}
		if to.pair < 0 {
			break
		}
		x.set(group, to)
		moved = append(moved, to)
	}
	if len(moved) == len(gone) {
		return true
	}
	for _, m := range append(moved, at) {
		x.unset(group, m.pair, m.u, m.v)
	}
	for _, g := range gone {
		x.set(group, g)
	}
	return false
}

func (x *Incremental) set(group int, at hop) {
	x.put(group, at.u, at.v, place{pair: at.pair, other: -1})
}

// load returns how loaded the fuller end of a link is in its direction.
func (x *Incremental) load(group int, u, v int32) int32 { return max(x.out[group][u], x.in[group][v]) }

func (x *Incremental) put(group int, u, v int32, at place) {
	x.groups[group].put(u, v, at)
	x.out[group][u]++
	x.in[group][v]++
}

func (x *Incremental) unset(group, pair int, u, v int32) {
	x.groups[group].unset(pair, u, v)
	x.out[group][u]--
	x.in[group][v]--
}

// hop is a link on a pair.
type hop struct {
	pair int
	u, v int32
}

// turn turns round the links of a shortest path such that a link has room where both ends send on all pairs: the path
// leads from one end along links to a pod that can send more. Where both receive on all, it leads to one end from a pod
// that can receive more. There is one, since no pod has more links than twice the pairs. It returns how many links moved.
func (x *Incremental) turn(l Link) (moved int) {
	p, pairs := x.groups[l.Group], int32(x.fabric.Pairs())
	from, next, used, backward := int32(l.A), p.to, x.out[l.Group], false
	if used[l.A] < pairs {
		from, next, used, backward = int32(l.B), p.from, x.in[l.Group], true
	}
	path := shortest(next, from, func(w int32) bool { return used[w] < pairs })
	for i, s := range path {
		if backward {
			path[i].u, path[i].v = s.v, s.u
		}
		x.unset(l.Group, s.pair, path[i].u, path[i].v)
	}
	for _, s := range path {
		if at, ok := p.find(s.v, s.u, p.to); ok {
			x.put(l.Group, s.v, s.u, at)
			moved += 1 + at.cost
		}
	}
	return moved
}

// shortest returns the links of a shortest path from a pod to one that will do, by where they lead on each pair.
func shortest(next [][]int32, from int32, done func(pod int32) bool) (path []hop) {
	by := map[int32]hop{from: {}}
	queue := []int32{from}
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		if done(u) {
			for w := u; w != from; w = by[w].u {
				path = append(path, by[w])
			}
			return path
		}
		for c := range next {
			v := next[c][u]
			if v == Dark {
				continue
			}
			if _, seen := by[v]; !seen {
				by[v] = hop{c, u, v}
				queue = append(queue, v)
			}
		}
	}
	return nil
}

// Remove takes a link away, and touches no other. The error matches ErrDemand if there is none.
func (x *Incremental) Remove(l Link) error {
	if err := x.check(l); err != nil {
		return err
	}
	p := x.groups[l.Group]
	a, b := int32(l.A), int32(l.B)
	if x.load(l.Group, b, a) > x.load(l.Group, a, b) {
		a, b = b, a
	}
	for _, way := range [2][2]int32{{a, b}, {b, a}} {
		for c := range slices.Backward(p.to) {
			if p.to[c][way[0]] == way[1] {
				x.unset(l.Group, c, way[0], way[1])
				return nil
			}
		}
	}
	return fmt.Errorf("%w: %v have no link to take away", ErrDemand, l)
}

// Choose returns the group in which a link between two pods moves fewest others by an exchange between two pairs, and of
// those the one with the less loaded spines. The error matches ErrDemand if there are no such pods, or no group has a port left at both.
func (x *Incremental) Choose(a, b int) (group int, err error) {
	if err := x.check(Link{0, a, b}); err != nil {
		return 0, err
	}
	group = -1
	var least [2]int
	for h, p := range x.groups {
		degree := max(x.out[h][a]+x.in[h][a], x.out[h][b]+x.in[h][b])
		if int(degree) >= x.fabric.SpinePorts {
			continue
		}
		cost := len(p.to) * p.pods // of links that have to turn round: more than any exchange
		if there, ok := p.find(int32(a), int32(b), p.to); ok {
			cost = there.cost
		}
		if back, ok := p.find(int32(b), int32(a), p.to); ok {
			cost = min(cost, back.cost)
		}
		if now := [2]int{cost, int(degree)}; group < 0 || slices.Compare(now[:], least[:]) < 0 {
			group, least = h, now
		}
	}
	if group < 0 {
		return 0, fmt.Errorf("%w: no group has a port left for a link between pods %d and %d", ErrDemand, a, b)
	}
	return group, nil
}

// check returns why there cannot be such a link.
func (x *Incremental) check(l Link) error {
	if l.Group < 0 || l.Group >= x.fabric.Groups || min(l.A, l.B) < 0 || max(l.A, l.B) >= x.fabric.Pods || l.A == l.B {
		return fmt.Errorf("%w: there is no link of %v: want two pods of %d and a group of %d",
			ErrDemand, l, x.fabric.Pods, x.fabric.Groups)
	}
	return nil
}

// Config returns the circuits as they are now, as a copy.
func (x *Incremental) Config() *Config {
	c := darkConfig(x.fabric)
	for h, p := range x.groups {
		for pair, peers := range p.to {
			c.setPeers(Pair{h, pair}, peers)
		}
	}
	return c
}

// Insert returns the configuration with more links, which may name the same pods several times, and how many running ones
// move for them, as Incremental.Insert does. The error matches ErrFabric, ErrConfig or ErrDemand.
func Insert(running *Config, links ...Link) (next *Config, moved int, err error) {
	x, err := NewIncremental(running)
	if err != nil {
		return nil, 0, err
	}
	for _, l := range links {
		n, err := x.Insert(l)
		if err != nil {
			return nil, 0, err
		}
		moved += n
	}
	return x.Config(), moved, nil
}

// Remove returns the configuration with fewer links; no others are touched. The error matches ErrFabric, ErrConfig or
// ErrDemand.
func Remove(running *Config, links ...Link) (*Config, error) {
	x, err := NewIncremental(running)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if err := x.Remove(l); err != nil {
			return nil, err
		}
	}
	return x.Config(), nil
}
