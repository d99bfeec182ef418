package pccl

// chains is a topology of disjoint cycles and paths, all in one direction or all duplex: rings, lines, and what most
// rounds have for their own. There is at most one shortest way from a GPU to another, or two around a duplex cycle, and
// what a transfer loads is a stretch of which only the ends need to be noted. The GPUs are put in a row, one chain after
// the other.
type chains struct {
	links  []link  // by GPU
	row    []int32 // by place: the GPU
	duplex bool
	turns  bool // each GPU has a circuit to the one so many further, around all GPUs, and no other
}

// link is where a GPU is in its chain.
type link struct {
	place, base int32 // in the row: of the GPU, and of the beginning of its chain
	length      int32 // how many GPUs the chain has if it is a cycle, otherwise 0
}

// newChains returns nil if a network is something else.
func newChains(n *network) *chains {
	if n.out > 2 || n.in > 2 {
		return nil
	}
	c := &chains{links: make([]link, n.gpus), row: make([]int32, 0, n.gpus), duplex: n.out > 1 || n.in > 1}
	if c.duplex && !n.symmetric() {
		return nil
	}
	seen := make([]bool, n.gpus)
	for g := range int32(n.gpus) { // paths first, each from its beginning
		into := n.inFirst[g+1] - n.inFirst[g]
		if !seen[g] && (into == 0 || c.duplex && into == 1) {
			c.walk(n, g, seen, false)
		}
	}
	for g := range int32(n.gpus) {
		if !seen[g] {
			c.walk(n, g, seen, true)
		}
	}
	if !c.duplex {
		c.turns = turns(n.gpus, len(n.to), func(i int) (src, dst int) { return int(n.from[i]), int(n.to[n.inEdge[i]]) })
	}
	return c
}

// symmetric reports whether each circuit has one back.
func (n *network) symmetric() bool {
	for g := range int32(n.gpus) {
		for _, p := range n.to[n.first[g]:n.first[g+1]] {
			if n.edge(p, g) < 0 {
				return false
			}
		}
	}
	return true
}

// walk appends a chain to the row.
func (c *chains) walk(n *network, begin int32, seen []bool, closed bool) {
	base := len(c.row)
	for g, more := begin, true; more; {
		seen[g] = true
		c.row = append(c.row, g)
		more = false
		for _, p := range n.to[n.first[g]:n.first[g+1]] {
			if !seen[p] {
				g, more = p, true
				break
			}
		}
	}
	for i, g := range c.row[base:] {
		c.links[g] = link{place: int32(base + i), base: int32(base)}
		if closed {
			c.links[g].length = int32(len(c.row) - base)
		}
	}
}

// turns reports whether there are as many transfers as GPUs, one from each to the one so many further, around all.
func turns(gpus, transfers int, transfer func(i int) (src, dst int)) bool {
	if transfers != gpus {
		return false
	}
	src, dst := transfer(0)
	by := dst - src + gpus
	seen := make([]bool, gpus)
	for i := range gpus {
		if src, dst = transfer(i); seen[src] || (src+by)%gpus != dst {
			return false
		}
		seen[src] = true
	}
	return true
}

// onChains routes on chains. It is not ok if both ways around a cycle are as short and the loads decide.
func (r *router) onChains(c *chains, s set, ties Ties) (l load, ok bool) {
	if c.turns && s.turns { // all go as far as the first, and each circuit carries as many as that is hops
		a, b := c.links[s.transfers[0].Src], c.links[s.transfers[0].Dst]
		if a.base != b.base {
			return load{dilation: noPath}, true
		}
		hops := (b.place - a.place + a.length) % a.length
		return load{congestion: hops, dilation: hops}, true
	}
	r.ahead, r.back = grown(r.ahead, len(c.links)+1), grown(r.back, len(c.links)+1)
	clear(r.ahead)
	clear(r.back)
	for _, t := range s.transfers {
		a, b := c.links[t.Src], c.links[t.Dst]
		hops := b.place - a.place
		if a.base != b.base || hops < 0 && a.length == 0 && !c.duplex {
			return load{dilation: noPath}, true
		}
		if hops < 0 {
			hops += a.length
		}
		switch behind := a.length - hops; { // the hops the other way, if the chain is duplex
		case c.duplex && a.length > 0 && behind == hops && ties == Greedy:
			return load{}, false
		case c.duplex && (hops < 0 || a.length > 0 && (behind < hops || behind == hops && c.lowerBehind(a))):
			hops = behind
			stretch(r.back, b, hops)
		default:
			stretch(r.ahead, a, hops)
		}
		l.dilation = max(l.dilation, hops)
	}
	var ahead, back int32
	for i := range r.ahead {
		ahead, back = ahead+r.ahead[i], back+r.back[i]
		l.congestion = max(l.congestion, ahead, back)
	}
	return l, true
}

// lowerBehind reports whether, of the two neighbours on a cycle, the one behind has the lower number.
func (c *chains) lowerBehind(at link) bool {
	i := at.place - at.base
	return c.row[at.base+(i+at.length-1)%at.length] < c.row[at.base+(i+1)%at.length]
}

// stretch notes one more transfer on so many circuits along the row from a place on.
func stretch(ends []int32, from link, hops int32) {
	last := from.place + hops
	if end := from.base + from.length; from.length > 0 && last > end { // around: to the end, and from the beginning
		ends[from.base]++
		ends[end]--
		last -= from.length
	}
	ends[from.place]++
	ends[last]--
}
