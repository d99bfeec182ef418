package infinitehbd_test

import (
	"errors"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// columns lists all placements on one sub-line, each as the nodes of its groups in order.
func columns(living uint, n, m, hops int) [][]uint {
	var all [][]uint
	var walk func(at, last int, open uint, done []uint)
	walk = func(at, last int, open uint, done []uint) {
		if at == n {
			if open == 0 {
				all = append(all, done)
			}
			return
		}
		walk(at+1, last, open, done)
		if living&(1<<at) == 0 || open != 0 && at-last > hops {
			return
		}
		open |= 1 << at
		if bits.OnesCount(open) == m {
			walk(at+1, at, 0, append(done[:len(done):len(done)], open))
			return
		}
		walk(at+1, at, open, done)
	}
	walk(0, 0, 0, nil)
	return all
}

// mostSets returns the most sets that any two placements have in common which have need groups together, or -1.
func mostSets(a, b [][]uint, need int) int {
	most := -1
	for _, x := range a {
		for _, y := range b {
			if len(x)+len(y) < need {
				continue
			}
			sets, i, j := 0, 0, 0
			for i < len(x) && j < len(y) {
				switch {
				case x[i] == y[j]:
					sets++
					i, j = i+1, j+1
				case x[i] < y[j]:
					i++
				default:
					j++
				}
			}
			most = max(most, sets)
		}
	}
	return most
}

// With two nodes a ToR, no placement within the bounds of a domain has more sets.
func TestTree_Align_Most(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tors := rapid.IntRange(4, 9).Draw(t, "ToRs")
		tree := infinitehbd.Tree{Nodes: 2 * tors, PerToR: 2, PerDomain: 2 * tors}
		m := rapid.IntRange(2, 3).Draw(t, "m")
		layout, err := infinitehbd.NewLayout(4, 2)
		if err != nil {
			t.Fatal(err)
		}
		living := [2]uint{1<<tors - 1, 1<<tors - 1}
		dead := rapid.SliceOfNDistinct(rapid.SampledFrom(count(tree.Nodes)), 1, 5, rapid.ID).Draw(t, "dead")
		for _, n := range dead {
			living[(n-1)%2] &^= 1 << tree.ToR(n)
		}
		sides := [2][][]uint{columns(living[0], tors, m, 2), columns(living[1], tors, m, 2)}
		need := -rapid.IntRange(0, 2).Draw(t, "fewer groups than there are at most")
		for _, all := range sides {
			need += len(slices.MaxFunc(all, func(a, b []uint) int { return len(a) - len(b) }))
		}
		if need < 1 {
			return
		}
		want := mostSets(sides[0], sides[1], need)
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
