package crosswiring

import (
	"math/rand/v2"
	"time"
)

// improver rearranges the links of a few pairs of a group at a time, to keep more circuits (large neighbourhood search).
type improver struct {
	old, next [][]int32 // by pair
	kept      []int     // by pair
	pods      int
	rng       *rand.Rand

	few           *keeper
	pick          []int      // numbers of pairs, shuffled
	label, pod    []int32    // random names of pods, and back
	fewOld, fresh [][]int32  // of the pairs that are rearranged, by random names
	from          [2][]int32 // scratch of swap
	mark          []bool
	stack         []int32 // scratch of swapAt
}

// newImprover returns an improver of next. It uses few, and forgets what is in it.
func newImprover(old, next [][]int32, few *keeper, rng *rand.Rand) *improver {
	pods := few.pods
	x := &improver{old: old, next: next, kept: make([]int, len(old)), pods: pods, rng: rng, few: few}
	for c := range old {
		x.kept[c] = keptOn(old[c], next[c])
		x.pick = append(x.pick, c)
	}
	for u := range pods {
		x.label, x.pod = append(x.label, int32(u)), append(x.pod, int32(u))
	}
	x.fewOld, x.fresh = matchings(most, pods), matchings(most, pods)
	x.from = [2][]int32{make([]int32, pods), make([]int32, pods)}
	x.mark = make([]bool, pods)
	return x
}

// most is how many pairs a round rearranges at most.
const most = 8

// run does rounds, and returns how many there were, and whether the deadline ended them.
func (x *improver) run(rounds int, deadline time.Time) (done int, late bool) {
	x.swapAll()
	for ; done < rounds && x.short(x.pick); done++ {
		if !deadline.IsZero() && !time.Now().Before(deadline) {
			return done, true
		}
		x.round()
	}
	x.swapAll()
	return done, false
}

// round rearranges 2 to 8 pairs, if one of them keeps not all, unless that is worse.
func (x *improver) round() {
	n := min(2+x.rng.IntN(most-1), len(x.old)) // often more than there are: all
	x.shuffle(n)
	few, before := x.pick[:n], 0
	if !x.short(few) {
		return
	}
	for _, c := range few {
		before += x.kept[c]
	}
	x.rename(few)
	if x.rng.IntN(2) == 0 {
		x.few.disturb(x.rng)
	}
	x.few.orient(n)
	x.few.attempt(x.rng.IntN(len(attempts)))
	x.few.sequence(x.fewOld[:n], x.fresh[:n], x.rng)
	if keptLinks(x.fewOld[:n], x.fresh[:n]) >= before {
		x.accept(few)
	}
}

// shuffle draws the pairs to rearrange to the front of pick.
func (x *improver) shuffle(n int) {
	for i := range n {
		j := i + x.rng.IntN(len(x.pick)-i)
		x.pick[i], x.pick[j] = x.pick[j], x.pick[i]
	}
}

// short tells whether one of the pairs keeps fewer circuits than it ran.
func (x *improver) short(pairs []int) bool {
	for _, c := range pairs {
		for u, v := range x.old[c] {
			if v != Dark && x.next[c][u] != v {
				return true
			}
		}
	}
	return false
}

// rename takes the links of a few pairs, with random names of the pods, so that ties are broken another way each time.
func (x *improver) rename(few []int) {
	x.rng.Shuffle(x.pods, func(i, j int) {
		x.pod[i], x.pod[j] = x.pod[j], x.pod[i]
	})
	for i, u := range x.pod {
		x.label[u] = int32(i)
	}
	x.few.reset()
	for i, c := range few {
		for u := range x.pods {
			x.fewOld[i][x.label[u]] = x.named(x.old[c][u])
		}
		for i, u := range x.pod {
			if v := x.next[c][u]; v != Dark {
				x.few.want(int32(i), x.label[v], 1)
			}
		}
	}
	for i := range few {
		x.few.running(x.fewOld[i])
	}
}

func (x *improver) named(pod int32) int32 {
	if pod == Dark {
		return Dark
	}
	return x.label[pod]
}

// accept takes over what was found for a few pairs.
func (x *improver) accept(few []int) {
	for i, c := range few {
		for u, v := range x.fresh[i] {
			if v != Dark {
				v = x.pod[v]
			}
			x.next[c][x.pod[u]] = v
		}
		x.kept[c] = keptOn(x.old[c], x.next[c])
	}
}

// swapAll exchanges parts of every two pairs as long as that keeps more.
func (x *improver) swapAll() {
	for again := true; again; {
		again = false
		for a := range x.old {
			for b := range a {
				if x.swap(a, b) {
					again = true
				}
			}
		}
	}
}

// swap exchanges the circuits of two pairs on each component of their union for which that keeps more, which is the best
// for the two if every link keeps its direction. It tells whether anything changed.
func (x *improver) swap(a, b int) (better bool) {
	clear(x.mark)
	for i, c := range [2]int{a, b} {
		for v := range x.from[i] {
			x.from[i][v] = Dark
		}
		for u, v := range x.next[c] {
			if v != Dark {
				x.from[i][v] = int32(u)
			}
		}
	}
	for u := range x.mark {
		if !x.mark[u] && x.swapAt(a, b, int32(u)) {
			better = true
		}
	}
	return better
}

// swapAt is swap of the component of links from a pod.
func (x *improver) swapAt(a, b int, pod int32) bool {
	x.stack = append(x.stack[:0], pod)
	x.mark[pod] = true
	gain := 0
	for i := 0; i < len(x.stack); i++ {
		u := x.stack[i]
		on, off := x.next[a][u], x.next[b][u]
		gain += stays(x.old[a][u], off) + stays(x.old[b][u], on) - stays(x.old[a][u], on) - stays(x.old[b][u], off)
		for _, v := range [2]int32{on, off} {
			if v == Dark {
				continue
			}
			for _, w := range [2]int32{x.from[0][v], x.from[1][v]} {
				if w != Dark && !x.mark[w] {
					x.mark[w] = true
					x.stack = append(x.stack, w)
				}
			}
		}
	}
	if gain <= 0 {
		return false
	}
	for _, u := range x.stack {
		x.next[a][u], x.next[b][u] = x.next[b][u], x.next[a][u]
	}
	x.kept[a], x.kept[b] = keptOn(x.old[a], x.next[a]), keptOn(x.old[b], x.next[b])
	return true
}

// stays returns 1 if a circuit is there and the same.
func stays(a, b int32) int { return int(one(a != Dark && a == b)) }
