package model

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/topology/railx"
)

// mostVerified bounds the chips whose pairs are all looked at.
const mostVerified = 2048

// Verified is what all routes of a configuration are.
type Verified struct {
	Pairs, Routes         int // ordered pairs of chips; routes, if several links are as near
	MostOptical, MostMesh int // hops of the longest
	Channels              int // of those that are used, with their virtual channels
	Dependencies          int // pairs of channels of which a packet can hold the one and want the other
	VirtualChannels       int
}

// Verify goes along every route between any two chips, and checks that each step is a link of the configuration, that steps
// follow each other, that no route has more hops than section 4.1 says (6m-6 instead of 5m-6 in meshes where a pair has lost a
// link or a node is dead), and that no packets can wait for each other in a circle. VirtualChannels is how many there are, 0 for the three of algorithm 1; with fewer, those above share the last. An
// error matches [ErrRoute], [ErrDeadlock], which names channels of a circle, or [ErrArgument] if there are more than
// 2048 chips.
func Verify(f Fabric, virtualChannels int) (Verified, error) {
	r, err := NewRouter(f)
	if err != nil {
		return Verified{}, err
	}
	nodes := r.Nodes()
	chips := make([]Chip, 0, len(nodes)*r.m*r.m)
	if len(nodes)*r.m*r.m > mostVerified {
		return Verified{}, fmt.Errorf("%w: %d nodes of %d x %d chips are too many to go along all routes: want at most %d chips",
			ErrArgument, len(nodes), r.m, r.m, mostVerified)
	}
	for _, n := range nodes {
		for i := range r.m * r.m {
			chips = append(chips, Chip{Node: n, X: i % r.m, Y: i / r.m})
		}
	}
	if virtualChannels < 0 {
		return Verified{}, fmt.Errorf("%w: %d virtual channels: want 1 or more, or 0 for as many as are needed", ErrArgument, virtualChannels)
	}
	if virtualChannels == 0 {
		virtualChannels = VirtualChannels(HyperXDiameter)
	}
	v := &verifier{Router: r, joined: joined(f), numbers: map[channel]int32{}, most: virtualChannels,
		meshHops: 6 * (r.m - 1)}
	if r.whole() {
		v.meshHops = meshHops(r.m)
	}
	v.out.VirtualChannels = virtualChannels
	for _, from := range chips {
		for _, to := range chips {
			if err := v.pair(from, to); err != nil {
				return v.out, err
			}
		}
	}
	v.out.Channels = len(v.names)
	return v.out, v.acyclic()
}

// nodePort is a port of a node, as light sees it.
type nodePort struct {
	node railx.Node
	d    railx.Dimension
	rail int
	plus bool
}

// joined returns both ends of every link. It reads them anew, since it checks what the router has made of them.
func joined(f Fabric) map[nodePort]nodePort {
	ends := map[nodePort]nodePort{}
	for _, s := range f.Switches() {
		for _, l := range f.Links(s) {
			var p [2]nodePort
			for i, at := range []railx.Port{l.Plus, l.Minus} {
				v, plus := at.Node()
				node := railx.Node{Column: v, Row: s.Group}
				if s.Dimension == railx.Y {
					node = railx.Node{Column: s.Group, Row: v}
				}
				p[i] = nodePort{node, s.Dimension, s.Rail, plus}
			}
			ends[p[0]], ends[p[1]] = p[1], p[0]
		}
	}
	return ends
}

// channel is a direction of a link on a virtual channel. Rails are told apart by the port they leave.
type channel struct {
	from Chip
	to   Chip
	port nodePort
	vc   int
}

type verifier struct {
	*Router
	joined   map[nodePort]nodePort
	most     int // virtual channels
	meshHops int // that a route may have
	out      Verified
	numbers  map[channel]int32
	names    []channel
	after    [][]int32 // by channel: those that a packet holding it can want
}

// whole reports whether all nodes have links, and two at least to each other one of their row and column.
func (r *Router) whole() bool {
	for i := range r.alive {
		for d := range 2 {
			group, here := r.place(d, i)
			for v := range r.size[d] {
				if v != here && len(r.exits[r.slot(d, i, r.at(d, group, v))]) < 2 {
					return false
				}
			}
		}
	}
	return true
}

func (v *verifier) pair(from, to Chip) error {
	routes, err := v.Routes(from, to)
	if err != nil {
		return err
	}
	v.out.Pairs++
	for _, route := range routes {
		v.out.Routes++
		at, before := from, int32(-1)
		for _, s := range route.Steps {
			if s.From != at {
				return fmt.Errorf("%w: from %v to %v: a step begins at %v and the one before it ends at %v", ErrRoute, from, to, s.From, at)
			}
			if err := v.step(s); err != nil {
				return err
			}
			before, at = v.depend(before, s), s.To
		}
		optical, mesh := route.Hops()
		if at != to || optical > HyperXDiameter || mesh > v.meshHops {
			return fmt.Errorf("%w: from %v to %v ends at %v after %d optical and %d mesh hops: want at most %d and %d", ErrRoute, from, to, at,
				optical, mesh, HyperXDiameter, v.meshHops)
		}
		v.out.MostOptical, v.out.MostMesh = max(v.out.MostOptical, optical), max(v.out.MostMesh, mesh)
	}
	return nil
}

// step checks that there is such a link.
func (v *verifier) step(s Step) error {
	if !s.Optical {
		if s.From.Node == s.To.Node && abs(s.From.X-s.To.X)+abs(s.From.Y-s.To.Y) == 1 {
			return nil
		}
		return fmt.Errorf("%w: from %v to %v is no link of a mesh", ErrRoute, s.From, s.To)
	}
	for _, end := range []struct {
		chip Chip
		plus bool
	}{{s.From, s.Plus}, {s.To, !s.Plus}} {
		c, err := v.grid.Chip(s.Dimension, s.Rail, end.plus)
		if err != nil {
			return err
		}
		if c.X != end.chip.X || c.Y != end.chip.Y {
			return fmt.Errorf("%w: rail %v/%d is at another chip of its node than %v", ErrRoute, s.Dimension, s.Rail, end.chip)
		}
	}
	from := nodePort{s.From.Node, s.Dimension, s.Rail, s.Plus}
	if to := (nodePort{s.To.Node, s.Dimension, s.Rail, !s.Plus}); v.joined[from] != to {
		return fmt.Errorf("%w: nothing is wired from %v to %v on rail %v/%d", ErrRoute, s.From, s.To, s.Dimension, s.Rail)
	}
	return nil
}

// depend notes that a packet holds the channel before when it wants that of the step, and returns the latter.
func (v *verifier) depend(before int32, s Step) int32 {
	c := channel{from: s.From, to: s.To, vc: min(s.VC, v.most-1)}
	if s.Optical {
		c.port = nodePort{s.From.Node, s.Dimension, s.Rail, s.Plus}
	}
	i, known := v.numbers[c]
	if !known {
		i = int32(len(v.names))
		v.numbers[c], v.names, v.after = i, append(v.names, c), append(v.after, nil)
	}
	if before >= 0 && !slices.Contains(v.after[before], i) {
		v.after[before] = append(v.after[before], i)
		v.out.Dependencies++
	}
	return i
}

// acyclic takes away channels that wait for no other until none are left.
func (v *verifier) acyclic() error {
	waits := make([]int, len(v.after)) // how many wait for it
	for _, all := range v.after {
		for _, w := range all {
			waits[w]++
		}
	}
	var free []int32
	for i, n := range waits {
		if n == 0 {
			free = append(free, int32(i))
		}
	}
	gone := 0
	for ; len(free) > 0; gone++ {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, w := range v.after[i] {
			if waits[w]--; waits[w] == 0 {
				free = append(free, w)
			}
		}
	}
	if gone == len(v.after) {
		return nil
	}
	for i, n := range waits {
		if n > 0 {
			c := v.names[i]
			return fmt.Errorf("%w: %d of %d channels wait in or behind a circle with %d virtual channels, as that from %v to %v: want %d",
				ErrDeadlock, len(v.after)-gone, len(v.after), v.most, c.from, c.to, VirtualChannels(HyperXDiameter))
		}
	}
	return nil
}
