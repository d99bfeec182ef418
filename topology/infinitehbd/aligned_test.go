package infinitehbd_test

import (
	"errors"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// columns lists all placements on one sub-line, each as the nodes of its groups in order. No node has both its neighbours
// at an odd distance of hops, which has one bundle.
func columns(living uint, n, m, hops int) [][]uint {
	var all [][]uint
	var walk func(at, last, gap int, open uint, done []uint)
	walk = func(at, last, gap int, open uint, done []uint) {
		if at == n {
			if open == 0 {
				all = append(all, done)
			}
			return
		}
		walk(at+1, last, gap, open, done)
		before := gap
		gap = 0
		if open != 0 {
			gap = at - last
		}
		if living&(1<<at) == 0 || gap > hops || hops%2 == 1 && gap == hops && before == hops {
			return
		}
		open |= 1 << at
		if bits.OnesCount(open) == m {
			walk(at+1, at, 0, 0, append(done[:len(done):len(done)], open))
			return
		}
		walk(at+1, at, gap, open, done)
	}
	walk(0, 0, 0, 0, nil)
	return all
}

// chosen are groups of one sub-line, in order.
type chosen [4]uint

// mostSets returns the most groups that placements of all sub-lines have in common which have need groups together, or -1.
func mostSets(lines [][][]uint, need int) int {
	room := map[chosen]int{} // the groups there can be on all sub-lines that have these
	for i, line := range lines {
		with := map[chosen]int{}
		for _, placement := range line {
			for pick := range 1 << len(placement) {
				var c chosen
				n := 0
				for k, g := range placement {
					if pick&(1<<k) != 0 {
						c[n] = g
						n++
					}
				}
				with[c] = max(with[c], len(placement))
			}
		}
		for c, n := range with {
			before, ok := room[c]
			if i == 0 || ok {
				with[c] = before + n
			} else {
				delete(with, c)
			}
		}
		room = with
	}
	most := -1
	for c, n := range room {
		if n >= need {
			most = max(most, slices.Index(append(c[:], 0), 0))
		}
	}
	return most
}

// No placement within the bounds of a domain has more sets.
func TestTree_Align_Most(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perToR, hops := rapid.IntRange(2, 4).Draw(t, "per ToR"), rapid.IntRange(1, 3).Draw(t, "K")
		tors := rapid.IntRange(4, 9).Draw(t, "ToRs")
		tree := infinitehbd.Tree{Nodes: perToR * tors, PerToR: perToR, PerDomain: perToR * tors}
		m := rapid.IntRange(2, 4).Draw(t, "m")
		layout, err := infinitehbd.NewLayout(4, hops)
		if err != nil {
			t.Fatal(err)
		}
		dead := rapid.SliceOfNDistinct(rapid.SampledFrom(count(tree.Nodes)), 1, 3*perToR, rapid.ID).Draw(t, "dead")
		if rapid.Bool().Draw(t, "whole ToRs") { // so that sets have long gaps
			for tor := rapid.IntRange(0, 2).Draw(t, "first"); tor < tors; tor += hops {
				for rank := range perToR * min(hops-1, tors-tor-1) {
					if n := node(tor+1)*node(perToR) + node(rank) + 1; !slices.Contains(dead, n) {
						dead = append(dead, n)
					}
				}
			}
		}
		var lines [][][]uint
		need := -rapid.IntRange(0, 3).Draw(t, "fewer groups than there are at most")
		for rank := range perToR {
			living := uint(1)<<tors - 1
			for _, n := range dead {
				if (int(n)-1)%perToR == rank {
					living &^= 1 << tree.ToR(n)
				}
			}
			lines = append(lines, columns(living, tors, m, hops))
			need += len(slices.MaxFunc(lines[rank], func(a, b []uint) int { return len(a) - len(b) }))
		}
		if need < 1 {
			return
		}
		want := mostSets(lines, need)
		p, err := tree.Align(layout, infinitehbd.Request{GPUs: 4 * m * need, TP: 4 * m}, dead)
		if err != nil {
			t.Fatal(err)
		}
		c, err := tree.CrossToR(p.Groups, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Groups) < need || c.Complete != want {
			t.Fatalf("%d groups %v with %d sets, want %d and %d", len(p.Groups), p.Groups, c.Complete, need, want)
		}
	})
}

// What Align places can be built, is enough, and has as many sets as what Orchestrate finds within the same bounds.
func TestTree_Align_NoWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t)
		layout, err := infinitehbd.NewLayout(4, rapid.IntRange(2, 3).Draw(t, "K"))
		if err != nil {
			t.Fatal(err)
		}
		m := rapid.IntRange(1, 4).Draw(t, "m")
		dead := drawFaults(t, count(tree.Nodes))
		r := infinitehbd.Request{GPUs: rapid.IntRange(1, tree.Nodes*4).Draw(t, "GPUs"), TP: 4 * m}
		r.Relax = infinitehbd.Relax(rapid.IntRange(0, 2).Draw(t, "relax"))
		orchestrated, err := tree.Orchestrate(layout, r, dead)
		aligned, alignErr := tree.Align(layout, r, dead)
		if errors.Is(err, infinitehbd.ErrRoom) && errors.Is(alignErr, infinitehbd.ErrRoom) {
			return
		}
		if err != nil || alignErr != nil {
			t.Fatal(err, alignErr)
		}
		line, err := tree.Line(layout)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := line.Build(aligned.Groups, dead); err != nil {
			t.Fatal(err)
		}
		if len(aligned.Groups)*r.TP < r.GPUs {
			t.Fatalf("%d groups for %+v", len(aligned.Groups), r)
		}
		got, want := complete(t, tree, aligned), complete(t, tree, orchestrated)
		if bounds := tree.PerToR * tree.Domains(); orchestrated.Constraints >= bounds && got < want {
			t.Fatalf("%d sets, and Orchestrate has %d", got, want)
		}
	})
}

// complete returns how many complete sets a placement has.
func complete(t rapid.TB, tree infinitehbd.Tree, p *infinitehbd.Placement) int {
	t.Helper()
	c, err := tree.CrossToR(p.Groups, 1)
	if err != nil {
		t.Fatal(err)
	}
	return c.Complete
}

// Small domains are aligned one by one, and still much is out of line: 1,024 nodes in domains of 128.
func TestTree_Align_SmallDomains(t *testing.T) {
	tree := infinitehbd.Tree{Nodes: 1024, PerToR: 2, PerDomain: 128}
	layout := nodesOf(t, 8, 3)
	const draws = 20
	for _, test := range []struct {
		faults                   float64
		groups                   int
		domain, cost, tor, align float64 // of the pairs that cross
	}{
		{.05, 230, .33, .27, .24, .034}, {.08, 217, .34, .27, .22, .040},
	} {
		var sum [4]float64
		for draw := range uint64(draws) {
			dead := drawn(tree.Nodes, test.faults, 11, draw)
			r := infinitehbd.Request{GPUs: test.groups * 32, TP: 32}
			for i := range sum {
				place := tree.Align
				if i < 3 {
					place, r.Relax = tree.Orchestrate, infinitehbd.Relax(i)
				}
				p, err := place(layout, r, dead)
				if err != nil {
					t.Fatal(err)
				}
				c, err := tree.CrossToR(p.Groups, 1)
				if err != nil {
					t.Fatal(err)
				}
				sum[i] += c.Ratio() / draws
			}
		}
		t.Logf("%v dead: %.3f", test.faults, sum)
		for i, want := range []float64{test.domain, test.cost, test.tor, test.align} {
			if got := sum[i]; got < want*.8 || got > want*1.2 {
				t.Errorf("%v dead, way %d: %.3f cross, want %.3f within a fifth", test.faults, i, got, want)
			}
		}
	}
}

// Domains of more than 256 ToRs are aligned in parts.
func TestTree_Align_LongDomain(t *testing.T) {
	tree := infinitehbd.Tree{Nodes: 1400, PerToR: 2, PerDomain: 1400}
	layout := nodesOf(t, 8, 3)
	dead := drawn(tree.Nodes, .05, 5, 0)
	p, err := tree.Align(layout, infinitehbd.Request{GPUs: 1272 * 8, TP: 32}, dead)
	if err != nil {
		t.Fatal(err)
	}
	line, err := tree.Line(layout)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := line.Build(p.Groups, dead); err != nil {
		t.Fatal(err)
	}
	if n := complete(t, tree, p); n < 140 || len(p.Groups) < 318 {
		t.Errorf("%d groups with %d sets, want 318 and most of them in sets", len(p.Groups), n)
	}
}
