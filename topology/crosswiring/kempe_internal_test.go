package crosswiring

import (
	"testing"

	"pgregory.net/rapid"
)

// A place costs as many links as it moves, is free at both ends then, and no other exchange of two pairs moves fewer.
func TestPalette_FindIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, pairs := rapid.IntRange(2, 7).Draw(t, "pods"), rapid.IntRange(2, 5).Draw(t, "pairs")
		old := matchings(pairs, pods)
		for c := range old {
			p := newPalette(old, pods)
			for range pods {
				u, v := rapid.Int32Range(0, int32(pods-1)).Draw(t, "u"), rapid.Int32Range(0, int32(pods-1)).Draw(t, "v")
				if u != v && p.to[c][u] == Dark && p.from[c][v] == Dark {
					p.set(c, u, v)
				}
			}
		}
		u := rapid.Int32Range(0, int32(pods-1)).Draw(t, "from")
		v := (u + rapid.Int32Range(1, int32(pods-1)).Draw(t, "to")) % int32(pods)
		now := copied(old, pods)
		p := newPalette(now, pods)
		at, ok := p.find(u, v, old)
		least := leastExchange(old, pods, u, v)
		if ok != (least >= 0) || ok && at.cost != least {
			t.Fatalf("it finds %v, %+v: want %d links to move", ok, at, least)
		}
		if !ok {
			return
		}
		p.put(u, v, at)
		moved, links := 0, 0
		for c := range old {
			for x, y := range old[c] {
				links += int(lit(y))
				if y != Dark && now[c][x] != y {
					moved++
				}
			}
		}
		after := 0
		for c, peers := range newPalette(now, pods).from {
			for y, x := range peers {
				after += int(lit(x))
				if p.from[c][y] != x {
					t.Fatalf("pair %d: the link into pod %d is from %d, and is taken to be from %d", c, y, x, p.from[c][y])
				}
			}
		}
		if moved != at.cost || after != links+1 || now[at.pair][u] != v {
			t.Fatalf("%d links moved, of %d there are %d: want %d moved and one more", moved, links, after, at.cost)
		}
	})
}

func copied(old [][]int32, pods int) [][]int32 {
	now := matchings(len(old), pods)
	for c := range old {
		copy(now[c], old[c])
	}
	return now
}

// leastExchange returns how few links move when two pairs exchange theirs on any components of their union until a link
// has a place on the first of them, or -1. It tries every two pairs.
func leastExchange(old [][]int32, pods int, u, v int32) int {
	least := -1
	for a := range old {
		for b := range old {
			n := exchange(old[a], old[b], pods, u, v)
			if a != b && n >= 0 && (least < 0 || n < least) {
				least = n
			}
		}
	}
	return least
}

// exchange moves links off pair a until u sends nothing on it and v receives nothing, and what they displace off b, and so
// on. It returns how many moved, or -1 if what moves comes to where the link shall be.
func exchange(a, b []int32, pods int, u, v int32) (n int) {
	type link struct {
		on   int
		u, v int32
	}
	var queue []link
	moves := map[link]bool{}
	push := func(on int, of []int32, hits func(x, y int32) bool) {
		for x := range int32(pods) {
			l := link{on, x, of[x]}
			if of[x] != Dark && hits(x, of[x]) && !moves[l] {
				moves[l] = true
				queue = append(queue, l)
			}
		}
	}
	sides := [2][]int32{a, b}
	push(0, a, func(x, y int32) bool { return x == u || y == v })
	for i := 0; i < len(queue); i++ {
		l := queue[i]
		if l.on == 1 && (l.u == u || l.v == v) {
			return -1 // it comes to where the place should be
		}
		push(1-l.on, sides[1-l.on], func(x, y int32) bool { return x == l.u || y == l.v })
	}
	return len(moves)
}
