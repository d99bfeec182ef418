package crosswiring

import "math/rand/v2"

// tie is what two pods have to do with each other in some pairs of switches of a group.
type tie struct {
	u, v  int32 // pods, u < v
	links int32 // that they shall have
	there int32 // running circuits from u to v on the even ports
	back  int32 // running circuits from v to u
	out   int32 // links planned from u to v; the others are from v to u
}

// flat returns between which numbers of links from u to v the circuits kept are most: below low and above high each
// link loses one.
func (t *tie) flat() (low, high int32) {
	low, high = t.there, t.links-t.back
	if low > high {
		low, high = high, low
	}
	return max(low, 0), min(high, t.links)
}

// kept returns how many links keep their direction.
func (t *tie) kept() int32 { return min(t.out, t.there) + min(t.links-t.out, t.back) }

// ties is a symmetric demand on some pairs of switches of a group, with what runs on them. It keeps its memory between
// problems.
type ties struct {
	pods int
	all  []tie
	slot []int32 // by pod and pod, the lower one first, the number of the tie plus 1

	flow   shifter
	out    []int32 // scratch, by pod
	degree []int32 // scratch, by pod
}

func newTies(pods int) *ties { return &ties{pods: pods, slot: make([]int32, pods*pods)} }

// reset forgets all ties.
func (t *ties) reset() {
	for _, x := range t.all {
		t.slot[int(x.u)*t.pods+int(x.v)] = 0
	}
	t.all = t.all[:0]
}

// way returns the number of the way from u to v: twice that of the tie, and one more when v is the lower. It is below 0
// if they shall have no links.
func (t *ties) way(u, v int32) int32 {
	if u < v {
		return 2 * (t.slot[int(u)*t.pods+int(v)] - 1)
	}
	return 2*(t.slot[int(v)*t.pods+int(u)]-1) | 1
}

// want adds links between two pods.
func (t *ties) want(u, v, links int32) {
	if u > v {
		u, v = v, u
	}
	at := &t.slot[int(u)*t.pods+int(v)]
	if *at == 0 {
		t.all = append(t.all, tie{u: u, v: v})
		*at = int32(len(t.all))
	}
	t.all[*at-1].links += links
}

// wantAll adds the links of a symmetric matrix.
func (t *ties) wantAll(matrix []int32) {
	for u := range t.pods {
		for v, n := range matrix[u*t.pods : (u+1)*t.pods] {
			if v > u && n > 0 {
				t.want(int32(u), int32(v), n)
			}
		}
	}
}

// running counts the circuits of a pair of switches.
func (t *ties) running(peers []int32) {
	for u, v := range peers {
		if v == Dark {
			continue
		}
		if w := t.way(int32(u), v); w >= 0 {
			if w&1 == 0 {
				t.all[w>>1].there++
			} else {
				t.all[w>>1].back++
			}
		}
	}
}

// orient gives each link a direction such that as many as can be keep theirs, and no pod has more than most links either
// way. It returns false if that is not possible: if a pod has more than twice as many.
func (t *ties) orient(most int) bool {
	return t.orientWithin(func(degree int32) (low, high int32) { return max(0, degree-int32(most)), min(int32(most), degree) })
}

// orientEvenly is orient such that at every pod the links out are half of all, up or down.
func (t *ties) orientEvenly() bool {
	return t.orientWithin(func(degree int32) (low, high int32) { return degree / 2, (degree + 1) / 2 })
}

// orientWithin is orient with bounds on the links out of a pod by how many it has.
//
// It first takes for each tie what is best for it, evenly where that leaves a choice, and then turns links along
// cheapest paths between pods until all are within their bounds. So the number of links that keep their direction is the
// most there is. What it needs is as many nodes as pods, and not two for each.
func (t *ties) orientWithin(bounds func(degree int32) (low, high int32)) bool {
	t.guess()
	hub := int32(t.pods)
	t.flow.reset(t.pods + 1)
	for u := range t.pods {
		low, high := bounds(t.degree[u])
		if low > high {
			return false
		}
		t.flow.bound(int32(u), hub, t.out[u], low, high)
	}
	if t.settled() {
		return true
	}
	first := int32(len(t.flow.arcs))
	for i := range t.all {
		x := &t.all[i]
		low, high := x.flat()
		t.flow.arc(x.u, x.v, x.out-low, 0)
		t.flow.arc(x.u, x.v, low, 1)
		t.flow.arc(x.v, x.u, high-x.out, 0)
		t.flow.arc(x.v, x.u, x.links-high, 1)
	}
	if !t.flow.run() {
		return false
	}
	for i := range t.all {
		a := first + int32(8*i)
		t.all[i].out += t.flow.sent(a+4) + t.flow.sent(a+6) - t.flow.sent(a) - t.flow.sent(a+2)
	}
	return true
}

// settled tells whether all sums are as they should be.
func (t *ties) settled() bool {
	for _, n := range t.flow.supply {
		if n != 0 {
			return false
		}
	}
	return true
}

// guess orients each tie by itself, towards the pod that sends less.
func (t *ties) guess() {
	t.out, t.degree = resized(t.out, t.pods), resized(t.degree, t.pods)
	clear(t.out)
	clear(t.degree)
	for i := range t.all {
		x := &t.all[i]
		low, high := x.flat()
		over := (2*t.out[x.v] - t.degree[x.v]) - (2*t.out[x.u] - t.degree[x.u]) // what v sends more than it receives, beyond u
		x.out = max(low, min((2*x.links+over+2)>>2, high))
		t.out[x.u] += x.out
		t.out[x.v] += x.links - x.out
		t.degree[x.u] += x.links
		t.degree[x.v] += x.links
	}
}

// kept returns how many links keep their direction.
func (t *ties) kept() (n int) {
	for i := range t.all {
		n += int(t.all[i].kept())
	}
	return n
}

// disturb forgets what runs between two pods, so that the links of others may turn, too.
func (t *ties) disturb(rng *rand.Rand) {
	if len(t.all) > 0 {
		x := &t.all[rng.IntN(len(t.all))]
		x.there, x.back = 0, 0
	}
}
