package crosswiring

import (
	"math/rand/v2"
	"slices"
)

// keeper gives directed links to pairs of switches, such that as many circuits as it can find stay. It keeps its memory
// between problems.
type keeper struct {
	*ties
	pods int

	left  []int32 // by way, links that have no pair yet
	later []int32 // by way, running circuits of the pairs that are still to come
	rows  []int32 // by pod, links out that have no pair yet
	cols  []int32 // by pod, links in

	into  []int32 // by pod, which one leads to it in the matching at hand, or Dark
	open  []int32 // the ways that have links left, and maybe others
	come  []int32 // scratch of repair: the ways that the matching at hand gets
	order []int   // of the pairs

	own, steal int32 // what it costs to end a circuit of the pair at hand, and to take a link from a later one
}

func newKeeper(pods int) *keeper {
	return &keeper{ties: newTies(pods), pods: pods, own: 1, steal: 1}
}

// load takes the ways from the ties, which are oriented.
func (k *keeper) load() {
	n := 2 * len(k.all)
	k.left, k.later, k.open = resized(k.left, n), resized(k.later, n), resized(k.open, n)
	k.rows, k.cols, k.into = resized(k.rows, k.pods), resized(k.cols, k.pods), resized(k.into, k.pods)
	clear(k.rows)
	clear(k.cols)
	for i := range k.all {
		x := &k.all[i]
		k.left[2*i], k.left[2*i+1] = x.out, x.links-x.out
		k.later[2*i], k.later[2*i+1] = x.there, x.back
		k.open[2*i], k.open[2*i+1] = int32(2*i), int32(2*i+1)
		k.rows[x.u] += x.out
		k.cols[x.v] += x.out
		k.rows[x.v] += x.links - x.out
		k.cols[x.u] += x.links - x.out
	}
}

// ends returns from which pod to which a way leads.
func (k *keeper) ends(way int) (from, to int32) {
	x := &k.all[way>>1]
	if way&1 == 0 {
		return x.u, x.v
	}
	return x.v, x.u
}

// attempts are ways to weigh what a pair keeps against what it takes from later ones. None is best on all demands.
var attempts = [][2]int32{{1, 1}, {1, 2}, {2, 1}}

// attempt makes the keeper weigh in another way.
func (k *keeper) attempt(i int) {
	k.own, k.steal = attempts[i%len(attempts)][0], attempts[i%len(attempts)][1]
}

// sequence fills one pair after another, in random order: old are their running circuits, and next what they get. The
// ties are oriented with at most as many links out of a pod, and in, as there are pairs; so each matching that covers the
// pods which have no pair to spare leaves a demand of which the same is true for the pairs that are left.
func (k *keeper) sequence(old, next [][]int32, rng *rand.Rand) {
	k.load()
	k.order = resized(k.order, len(old))
	for i := range k.order {
		k.order[i] = i
	}
	rng.Shuffle(len(k.order), func(i, j int) { k.order[i], k.order[j] = k.order[j], k.order[i] })
	for i, c := range k.order {
		k.match(old[c], next[c], int32(len(old)-i))
	}
}

// match fills a pair of switches when pairs are left, this one among them. Of the matchings that cover the pods with as
// many links as that, it finds the one that keeps most circuits less those that it takes from later pairs: links that
// run on a later one and of which there is none to spare.
func (k *keeper) match(old, next []int32, pairs int32) {
	for v := range k.into {
		k.into[v], next[v] = Dark, Dark
	}
	for u, v := range old {
		if v == Dark {
			continue
		}
		if way := k.way(int32(u), v); way >= 0 {
			k.later[way] = max(0, k.later[way]-1) // since improver may have forgotten some
			if k.left[way] > 0 {
				next[u], k.into[v] = v, int32(u)
			}
		}
	}
	if k.repair(next, pairs) {
		k.fill(next)
	}
	for u, v := range next {
		if v == Dark {
			continue
		}
		k.left[k.way(int32(u), v)]--
		k.rows[u]--
		k.cols[v]--
	}
}

// repair changes a matching at least cost until it covers the pods that need it. It tells whether there is one that need
// not be covered.
func (k *keeper) repair(next []int32, pairs int32) (loose bool) {
	n := int32(k.pods)
	hub := 2 * n
	k.flow.reset(int(hub) + 1)
	for u := range n {
		row, col := k.rows[u] == pairs, k.cols[u] == pairs
		loose = loose || !row || !col
		k.flow.bound(u, hub, lit(next[u]), one(row), 1)
		k.flow.bound(n+u, hub, -lit(k.into[u]), -1, -one(col))
	}
	if k.settled() {
		return loose
	}
	k.open = slices.DeleteFunc(k.open, func(way int32) bool { return k.left[way] == 0 })
	first := int32(len(k.flow.arcs))
	for _, way := range k.open {
		u, v := k.ends(int(way))
		if next[u] == v {
			k.flow.arc(u, n+v, 1, k.own)
		} else {
			k.flow.arc(n+v, u, 1, k.steal*one(k.left[way] <= k.later[way]))
		}
	}
	k.flow.run()
	k.come = k.come[:0]
	for i, way := range k.open { // first what goes, since what comes may take its place
		if k.flow.sent(first+2*int32(i)) == 0 {
			continue
		}
		if u, v := k.ends(int(way)); next[u] == v {
			next[u], k.into[v] = Dark, Dark
		} else {
			k.come = append(k.come, way)
		}
	}
	for _, way := range k.come {
		u, v := k.ends(int(way))
		next[u], k.into[v] = v, u
	}
	return loose
}

func lit(pod int32) int32 { return one(pod != Dark) }

func one(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}

// fill adds links where both pods are dark and no later pair wants them, so that later pairs have fewer to place.
func (k *keeper) fill(next []int32) {
	for _, way := range k.open {
		if u, v := k.ends(int(way)); k.left[way] > k.later[way] && next[u] == Dark && k.into[v] == Dark {
			next[u], k.into[v] = v, u
		}
	}
}

// keptLinks returns how many links are on the same pairs in both.
func keptLinks(old, next [][]int32) (n int) {
	for c := range old {
		n += keptOn(old[c], next[c])
	}
	return n
}

func keptOn(old, next []int32) (n int) {
	for u, v := range old {
		if v != Dark && next[u] == v {
			n++
		}
	}
	return n
}

// matchings returns dark matchings of that many pairs in one piece of memory.
func matchings(pairs, pods int) [][]int32 {
	flat := slices.Repeat([]int32{Dark}, pairs*pods)
	all := make([][]int32, pairs)
	for c := range all {
		all[c] = flat[c*pods : (c+1)*pods : (c+1)*pods]
	}
	return all
}
