package crosswiring

// bisect gives the links to pairs by halving: it puts every other pair into each half, and gives each half its links
// such that as many as can stay in it, by a minimum cost flow between rows and columns, until a half is a single pair.
// The ties are oriented as for sequence. This is like the MDMCF of the paper as far as we can read it.
func (k *keeper) bisect(old, next [][]int32) {
	k.load()
	pairs := make([]int, len(old))
	for c := range pairs {
		pairs[c] = c
	}
	k.halve(pairs, append([]int32(nil), k.left...), old, next)
}

// halve gives links, by way, to some pairs.
func (k *keeper) halve(pairs []int, links []int32, old, next [][]int32) {
	if len(pairs) == 0 {
		return
	}
	if len(pairs) == 1 {
		peers := next[pairs[0]]
		for u := range peers {
			peers[u] = Dark
		}
		for way, n := range links {
			if n > 0 {
				u, v := k.ends(way)
				peers[u] = v
			}
		}
		return
	}
	var half [2][]int
	for i, c := range pairs {
		half[i%2] = append(half[i%2], c)
	}
	first := k.share(half[0], half[1], links, old)
	for way := range links {
		links[way] -= first[way]
	}
	k.halve(half[0], first, old, next)
	k.halve(half[1], links, old, next)
}

// share returns the links that one half gets of those for both. To give it n of a way costs |n - what it runs| +
// |all - n - what the other runs|, which falls by 2 to a flat part and rises by 2 after it.
func (k *keeper) share(this, other []int, links []int32, old [][]int32) []int32 {
	low, high := k.count(this, old), k.count(other, old)
	n, hub := int32(k.pods), 2*int32(k.pods)
	room, rest := int32(len(this)), int32(len(other))
	first := make([]int32, len(links))
	clear(k.rows)
	clear(k.cols)
	have := make([]int32, hub)
	for way, all := range links {
		a, b := low[way], all-high[way]
		low[way], high[way] = max(min(a, b), 0), min(max(a, b), all)
		u, v := k.ends(way)
		k.rows[u] += all
		k.cols[v] += all
		first[way] = low[way]
		if lack := k.rows[u]*room/(room+rest) + k.cols[v]*room/(room+rest) - have[u] - have[n+v]; lack > 0 {
			first[way] = min(high[way], low[way]+(lack+1)/2)
		}
		have[u] += first[way]
		have[n+v] += first[way]
	}
	k.flow.reset(int(hub) + 1)
	for u := range n {
		k.flow.bound(u, hub, have[u], max(0, k.rows[u]-rest), min(room, k.rows[u]))
		k.flow.bound(n+u, hub, -have[n+u], -min(room, k.cols[u]), -max(0, k.cols[u]-rest))
	}
	if k.settled() {
		return first
	}
	start := int32(len(k.flow.arcs))
	for way, all := range links {
		u, v := k.ends(way)
		k.flow.arc(u, n+v, first[way]-low[way], 0)
		k.flow.arc(u, n+v, low[way], 1)
		k.flow.arc(n+v, u, high[way]-first[way], 0)
		k.flow.arc(n+v, u, all-high[way], 1)
	}
	k.flow.run()
	for way := range links {
		a := start + int32(8*way)
		first[way] += k.flow.sent(a+4) + k.flow.sent(a+6) - k.flow.sent(a) - k.flow.sent(a+2)
	}
	return first
}

// count returns by way how many circuits run on some pairs.
func (k *keeper) count(pairs []int, old [][]int32) []int32 {
	n := make([]int32, len(k.left))
	for _, c := range pairs {
		for u, v := range old[c] {
			if v == Dark {
				continue
			}
			if way := k.way(int32(u), v); way >= 0 {
				n[way]++
			}
		}
	}
	return n
}
