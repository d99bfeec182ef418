package crosswiring

// palette is which links run on which pairs of a group, from both ends: an edge colouring of links from pods to pods with
// a colour for each pair. Links that are inserted find a pair that is free at both ends, or two pairs whose circuits are
// exchanged along an alternating path (Kempe) until there is one.
type palette struct {
	pods int
	to   [][]int32 // by pair and pod, where the link out of it leads, or Dark
	from [][]int32 // by pair and pod, where the link into it comes from
}

// newPalette returns the palette of matchings, which it goes on to change.
func newPalette(to [][]int32, pods int) *palette {
	p := &palette{pods: pods, to: to, from: matchings(len(to), pods)}
	for c := range to {
		for u, v := range to[c] {
			if v != Dark {
				p.from[c][v] = int32(u)
			}
		}
	}
	return p
}

// set puts a link on a pair that is free at both ends.
func (p *palette) set(pair int, u, v int32) { p.to[pair][u], p.from[pair][v] = v, u }

// unset takes a link off a pair.
func (p *palette) unset(pair int, u, v int32) { p.to[pair][u], p.from[pair][v] = Dark, Dark }

// free returns the first pair that is free at both ends of a link, or -1.
func (p *palette) free(u, v int32) int {
	for c := range p.to {
		if p.to[c][u] == Dark && p.from[c][v] == Dark {
			return c
		}
	}
	return -1
}

// place says where a link can go: on a pair, after the path from an end of the link has changed to another pair.
type place struct {
	pair, other int  // other is -1 if the pair is free at both ends
	back        bool // the path is that from where the link begins, and not from where it leads
	cost        int  // circuits of old that are lost on the path, less those that come back
}

// reversed returns the palette of the same links the other way round; it shares the memory.
func (p *palette) reversed() *palette { return &palette{p.pods, p.from, p.to} }

// find returns the cheapest place of a link. It returns false if u has no pair for a link out or v none for one in.
func (p *palette) find(u, v int32, old [][]int32) (best place, ok bool) {
	if c := p.free(u, v); c >= 0 {
		if i := p.freeAsBefore(u, v, old); i >= 0 {
			c = i
		}
		return place{pair: c, other: -1}, true
	}
	r := p.reversed()
	for a := range p.to {
		if p.to[a][u] != Dark {
			continue
		}
		for b := range p.to {
			if p.from[b][v] != Dark {
				continue
			}
			if cost := p.cost(a, b, v, old, false); !ok || cost < best.cost {
				best, ok = place{a, b, false, cost}, true
			}
			if cost := r.cost(b, a, u, old, true); cost < best.cost {
				best = place{b, a, true, cost}
			}
		}
	}
	return best, ok
}

// freeAsBefore returns a pair that is free at both ends and on which the link ran, or -1.
func (p *palette) freeAsBefore(u, v int32, old [][]int32) int {
	for c := range p.to {
		if p.to[c][u] == Dark && p.from[c][v] == Dark && old[c][u] == v {
			return c
		}
	}
	return -1
}

// cost returns what the path from v along pairs a and b in turn costs. It never comes to a pod that sends nothing on
// a: it comes to pods that send by their links on a. Of a reversed palette back is true; old never is.
func (p *palette) cost(a, b int, v int32, old [][]int32, back bool) (n int) {
	for {
		u := p.from[a][v]
		if u == Dark {
			return n
		}
		n += changed(old, a, b, u, v, back)
		if v = p.to[b][u]; v == Dark {
			return n
		}
		n += changed(old, b, a, u, v, back)
	}
}

// changed returns 1 if the link from u to v, or back, ran on pair a, and one less if it did on b, to which it goes.
func changed(old [][]int32, a, b int, u, v int32, back bool) int {
	if back {
		u, v = v, u
	}
	return int(one(old[a][u] == v) - one(old[b][u] == v))
}

// put puts a link at its place.
func (p *palette) put(u, v int32, at place) {
	switch {
	case at.other >= 0 && at.back:
		p.reversed().flip(at.pair, at.other, u)
	case at.other >= 0:
		p.flip(at.pair, at.other, v)
	}
	p.set(at.pair, u, v)
}

// flip exchanges pairs a and b along the path from v, after which nothing comes to v on a.
func (p *palette) flip(a, b int, v int32) {
	carried := p.from[a][v] // the link from it to v is off pair a, and has to go on b
	p.from[a][v] = Dark
	for carried != Dark {
		u := carried
		next := p.to[b][u]
		p.set(b, u, v)
		p.to[a][u] = Dark
		if next == Dark {
			return
		}
		w := p.from[a][next]
		p.set(a, u, next)
		if w == Dark {
			p.from[b][next] = Dark
		}
		v, carried = next, w
	}
}

// kempe keeps every running circuit that the ties still want, and inserts the links that are missing one by one. The ties
// are oriented as for sequence.
func (k *keeper) kempe(old, next [][]int32) {
	k.load()
	for c := range old {
		for u, v := range old[c] {
			next[c][u] = Dark
			if v == Dark {
				continue
			}
			if way := k.way(int32(u), v); way >= 0 && k.left[way] > 0 {
				next[c][u] = v
				k.left[way]--
			}
		}
	}
	p := newPalette(next, k.pods)
	for way, n := range k.left {
		u, v := k.ends(way)
		for range n {
			if at, ok := p.find(u, v, old); ok {
				p.put(u, v, at)
			}
		}
	}
}
