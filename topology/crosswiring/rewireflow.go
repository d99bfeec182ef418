package crosswiring

// shifter brings what some nodes have too much of to others that have too little, along arcs that cost least: a minimum
// cost flow by the primal-dual method, for small whole costs. It keeps its memory between problems.
//
// A planner starts from what would be best for each entry of a matrix by itself, so that no arc costs less than 0, and
// repairs the sums of rows and columns with it.
type shifter struct {
	head   []int32 // by node, its first arc, or -1
	supply []int32 // by node, what it has too much of; too little is below 0
	price  []int32 // by node; no arc with room costs less than the difference of its ends
	dist   []int32 // by node
	state  []uint8 // by node: what a search for paths knows
	at     []int32 // by node, the arc that a search for paths tries next

	arcs []shiftArc // arc a^1 is the way back of arc a

	near  [][]int32 // by distance, the nodes to visit
	path  []int32   // arcs
	total int32     // supply that is left
}

// shiftArc is an arc of a shifter. What is known of it lies together, since that is what its speed depends on.
type shiftArc struct {
	to, next   int32 // node, and the next arc of the one that it leads from, or -1
	room, cost int32
}

// What a search for paths knows of a node.
const (
	fresh uint8 = iota
	onPath
	dead
)

// unreached is more than any distance.
const unreached = 1 << 30

// reset begins a problem.
func (s *shifter) reset(nodes int) {
	s.head, s.supply, s.price = resized(s.head, nodes), resized(s.supply, nodes), resized(s.price, nodes)
	s.dist, s.state, s.at = resized(s.dist, nodes), resized(s.state, nodes), resized(s.at, nodes)
	for v := range s.head {
		s.head[v] = -1
	}
	clear(s.supply)
	clear(s.price)
	s.arcs = s.arcs[:0]
	s.total = 0
}

// resized returns a slice of n elements of any value, in the memory of old if that is enough.
func resized[E any](old []E, n int) []E {
	if cap(old) < n {
		return make([]E, n, n+n/2)
	}
	return old[:n]
}

// arc puts an arc on the network, and returns its number. Room and cost are not below 0.
func (s *shifter) arc(from, to, room, cost int32) int32 {
	a := int32(len(s.arcs))
	s.arcs = append(s.arcs, shiftArc{to, s.head[from], room, cost}, shiftArc{from, s.head[to], 0, -cost})
	s.head[from], s.head[to] = a, a+1
	return a
}

// sent returns how much an arc carries.
func (s *shifter) sent(arc int32) int32 { return s.arcs[arc^1].room }

// bound says that a node has an amount and may have low to high; what flows out of it lessens that. The hub is a node
// that takes and gives what does not matter.
func (s *shifter) bound(node, hub, have, low, high int32) {
	give, take := min(have, high)-low, high-max(have, low) // what it may have less or more beyond what it must
	switch {
	case have > high:
		s.supply[node] = have - high
		take = 0
	case have < low:
		s.supply[node] = have - low
		give = 0
	}
	s.supply[hub] -= s.supply[node]
	if give > 0 {
		s.arc(hub, node, give, 0)
	}
	if take > 0 {
		s.arc(node, hub, take, 0)
	}
}

// run sends all supply, and tells whether that was possible.
func (s *shifter) run() bool {
	for _, n := range s.supply {
		s.total += max(n, 0)
	}
	for s.total > 0 {
		if !s.measure() {
			return false
		}
		for s.send() > 0 {
		}
	}
	return true
}

// measure finds how far each node is from the supply and reprices, so that the nearest shortage is reached by arcs that
// cost nothing. It returns false if none can be reached.
func (s *shifter) measure() bool {
	for d := range s.near {
		s.near[d] = s.near[d][:0]
	}
	for v := range s.dist {
		s.dist[v] = unreached
		if s.supply[v] > 0 {
			s.reach(int32(v), 0)
		}
	}
	limit := int32(-1)
	for d := int32(0); int(d) < len(s.near) && limit < 0; d++ {
		for len(s.near[d]) > 0 && limit < 0 {
			last := len(s.near[d]) - 1
			v := s.near[d][last]
			s.near[d] = s.near[d][:last]
			if s.dist[v] != d {
				continue
			}
			if s.supply[v] < 0 {
				limit = d
				break
			}
			s.relax(v, d)
		}
	}
	if limit < 0 {
		return false
	}
	for v := range s.price {
		s.price[v] += min(s.dist[v], limit)
	}
	return true
}

// relax reaches what is next to a node.
func (s *shifter) relax(v, d int32) {
	for n := s.head[v]; n >= 0; {
		a := &s.arcs[n]
		if far := d + a.cost + s.price[v] - s.price[a.to]; a.room > 0 && far < s.dist[a.to] {
			s.reach(a.to, far)
		}
		n = a.next
	}
}

func (s *shifter) reach(v, d int32) {
	s.dist[v] = d
	for int(d) >= len(s.near) {
		s.near = append(s.near, nil)
	}
	s.near[d] = append(s.near[d], v)
}

// send sends along arcs that cost nothing, and returns how much.
func (s *shifter) send() (n int32) {
	clear(s.state)
	copy(s.at, s.head)
	for v := range s.supply {
		for s.supply[v] > 0 && s.state[v] == fresh && s.follow(int32(v)) {
			n++
		}
	}
	s.total -= n
	return n
}

// follow sends a unit from a node to a shortage, if it finds a path.
func (s *shifter) follow(from int32) bool {
	s.path = s.path[:0]
	s.state[from] = onPath
	for v := from; ; {
		if s.supply[v] < 0 {
			s.supply[from]--
			s.supply[v]++
			s.state[from] = fresh
			for _, a := range s.path {
				s.arcs[a].room--
				s.arcs[a^1].room++
				s.state[s.arcs[a].to] = fresh
			}
			return true
		}
		if a := s.step(v); a >= 0 {
			s.path = append(s.path, a)
			v = s.arcs[a].to
			s.state[v] = onPath
			continue
		}
		s.state[v] = dead
		if len(s.path) == 0 {
			return false
		}
		v = s.arcs[s.path[len(s.path)-1]^1].to
		s.path = s.path[:len(s.path)-1]
	}
}

// step returns an arc from v to a node that was not tried, or -1.
func (s *shifter) step(v int32) int32 {
	for n := s.at[v]; n >= 0; {
		a := &s.arcs[n]
		if a.room > 0 && s.state[a.to] == fresh && a.cost+s.price[v] == s.price[a.to] {
			s.at[v] = n
			return n
		}
		n = a.next
	}
	s.at[v] = -1
	return -1
}
