package railx_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/railx"
)

func TestTorusToHyperX(t *testing.T) {
	torus, hyperx := build(t, grid5, railx.Torus2D()), build(t, grid5, railx.HyperX2D())
	next := railx.Settle(torus, hyperx)
	check(t, next)
	d := railx.Diff(torus, next)
	if d.Removed() != 150 || d.Added() != 150 || d.Ports() != 300 || len(d.Switches) != 30 || d.Untouched != 10 {
		t.Errorf("%d removed, %d added, %d ports of %d switches, %d untouched: want 150, 150, 300 of 30, 10",
			d.Removed(), d.Added(), d.Ports(), len(d.Switches), d.Untouched)
	}
	for _, s := range d.Switches {
		if s.Switch.Rail == 0 || len(s.Removed) != 5 || len(s.Added) != 5 || len(s.Ports) != 10 {
			t.Errorf("%v: -%v +%v: want 5 links each, and none on rail 0", s.Switch, s.Removed, s.Added)
		}
	}
	row, column := build(t, railx.Grid{Columns: 5, Rows: 1, Rails: 4}, railx.Torus2D()), build(t, railx.Grid{Columns: 5, Rows: 1, Rails: 4}, railx.HyperX2D())
	if d := railx.Diff(row, railx.Settle(row, column)); d.Removed() != 15 {
		t.Errorf("a row: %d links replaced: want 15 of 20", d.Removed())
	}
	if back := railx.Diff(next, railx.Settle(next, torus)); back.Ports() != 300 {
		t.Errorf("back: %d ports: want 300", back.Ports())
	}
	if nothing := railx.Diff(next, next); len(nothing.Switches) != 0 || nothing.Untouched != 40 {
		t.Errorf("to itself: %+v", nothing)
	}
	if first := railx.Diff(nil, torus); first.Added() != 200 || first.Removed() != 0 || len(first.Switches) != 40 {
		t.Errorf("from nothing: %d added, %d removed", first.Added(), first.Removed())
	}
}

// Between different grids, switches that only one has are told as well.
func TestDiffOfGrids(t *testing.T) {
	small, large := build(t, railx.Grid{Columns: 3, Rows: 2, Rails: 2}, railx.Torus2D()), build(t, grid5, railx.Torus2D())
	d, back := railx.Diff(small, large), railx.Diff(large, small)
	if d.Removed() != back.Added() || d.Added() != back.Removed() || len(d.Switches) != len(back.Switches) {
		t.Errorf("there -%d +%d, back -%d +%d", d.Removed(), d.Added(), back.Removed(), back.Added())
	}
	if small.CountLinks()+d.Added()-d.Removed() != large.CountLinks() {
		t.Errorf("-%d +%d of %d are not %d", d.Removed(), d.Added(), small.CountLinks(), large.CountLinks())
	}
	if !slices.IsSortedFunc(back.Switches, func(a, b railx.SwitchDelta) int { return strings.Compare(a.Switch.String(), b.Switch.String()) }) {
		t.Error("the switches are not in order")
	}
	if railx.Settle(small, large) != large {
		t.Error("something was settled")
	}
}

// A ring that is there is found again, on whatever rail, and with Relabel under whatever names.
func TestSettleFindsRings(t *testing.T) {
	g := railx.Grid{Columns: 8, Rows: 8, Rails: 7}
	torus, hyperx := build(t, g, railx.Torus2D()), build(t, g, railx.HyperX2D())
	plain, settled, relabelled := railx.Diff(torus, hyperx).Removed(), railx.Settle(torus, hyperx), railx.Relabel(torus, hyperx)
	check(t, settled)
	check(t, relabelled)
	some, same := railx.Diff(torus, settled), railx.Diff(torus, relabelled)
	// Each of the 8 links of the torus' ring is on some ring of any decomposition, so that many stay of the 56 of a
	// group. But no ring of the decomposition of 8 is the torus' own, and one can be made to be.
	if plain != 768 || some.Removed() != 768 || same.Removed() != 768 || some.Untouched != 0 || same.Untouched != 16 {
		t.Errorf("%d links as built; settled %d, %d untouched; relabelled %d, %d untouched: want 768; 0; 16",
			plain, some.Removed(), some.Untouched, same.Removed(), same.Untouched)
	}
	// Three rails of the HyperX, on two of which the nodes have other names, and a torus on the others.
	links := map[railx.Switch][]railx.Link{}
	for _, s := range torus.Switches() {
		links[s] = torus.Links(s)
		if s.Rail < 3 {
			for i, l := range hyperx.Links(s) {
				v, _ := l.Plus.Node()
				w, _ := l.Minus.Node()
				links[s][i] = railx.Link{Plus: railx.Plus((3*v + 1) % 8), Minus: railx.Minus((3*w + 1) % 8)}
			}
		}
	}
	seen, err := torus.Observed(links)
	if err != nil {
		t.Fatal(err)
	}
	renamed := railx.Relabel(seen, hyperx)
	check(t, renamed)
	if d, all := railx.Diff(seen, renamed), railx.Diff(seen, railx.Settle(seen, hyperx)); d.Removed() >= all.Removed() || d.Untouched < 48 {
		t.Errorf("%d removed, %d untouched; settled %d: want fewer, and three rails of each group untouched", d.Removed(), d.Untouched, all.Removed())
	}
	if d := railx.Diff(settled, railx.Settle(settled, hyperx)); len(d.Switches) != 0 {
		t.Errorf("the same rings are moved: %d links", d.Removed())
	}
	if d := railx.Diff(relabelled, railx.Relabel(relabelled, hyperx)); d.Removed() > railx.Diff(relabelled, railx.Settle(relabelled, hyperx)).Removed() {
		t.Errorf("Relabel is worse than Settle")
	}
}

// No choice of rails is better than that of Settle: all are tried.
func TestSettleIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "nodes")
		rails := rapid.IntRange(n-1, 5).Draw(t, "rails")
		g := railx.Grid{Columns: n, Rows: 1, Rails: rails}
		old, err := railx.Build(g, railx.HyperX2D())
		if err != nil {
			t.Fatal(err)
		}
		// Old rings: those of the HyperX, on other rails, around dead nodes.
		links := map[railx.Switch][]railx.Link{}
		order := rapid.Permutation(sequence(rails)).Draw(t, "order")
		if n > 2 {
			if old, err = old.Bypass(railx.Node{Column: rapid.IntRange(0, n-1).Draw(t, "dead")}); err != nil {
				t.Fatal(err)
			}
		}
		for a, to := range order {
			links[railx.Switch{Dimension: railx.X, Rail: to}] = old.Links(railx.Switch{Dimension: railx.X, Rail: a})
		}
		if old, err = old.Observed(links); err != nil {
			t.Fatal(err)
		}
		next, err := railx.Build(g, railx.HyperX2D())
		if err != nil {
			t.Fatal(err)
		}
		got := railx.Diff(old, railx.Settle(old, next)).Added()
		least := math.MaxInt
		permute(sequence(rails), func(to []int) {
			added := 0
			for a, from := range to {
				for _, l := range next.Links(railx.Switch{Dimension: railx.X, Rail: from}) {
					if !slices.Contains(old.Links(railx.Switch{Dimension: railx.X, Rail: a}), l) {
						added++
					}
				}
			}
			least = min(least, added)
		})
		if got != least {
			t.Fatalf("Settle adds %d links, and %d would do", got, least)
		}
	})
}

func sequence(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// permute visits all orders of a list.
func permute(list []int, visit func([]int)) {
	var do func(int)
	do = func(i int) {
		if i == len(list) {
			visit(list)
			return
		}
		for j := i; j < len(list); j++ {
			list[i], list[j] = list[j], list[i]
			do(i + 1)
			list[i], list[j] = list[j], list[i]
		}
	}
	do(0)
}

// Node 2 of a row of five dies; and node (2,3) of a grid.
func TestBypass(t *testing.T) {
	c := build(t, grid5, railx.HyperX2D())
	dead := railx.Node{Column: 2, Row: 3}
	next, err := c.Bypass(dead)
	if err != nil {
		t.Fatal(err)
	}
	check(t, next)
	d := railx.Diff(c, next)
	if len(d.Switches) != 8 || d.Removed() != 16 || d.Added() != 8 || d.Untouched != 32 {
		t.Fatalf("%d switches, -%d +%d: want 8, -16 +8", len(d.Switches), d.Removed(), d.Added())
	}
	want := map[int][2]string{0: {"2-5 4-7", "2-7"}, 1: {"0-5 4-9", "0-9"}, 2: {"4-1 8-5", "8-1"}, 3: {"4-3 6-5", "6-3"}}
	for _, s := range d.Switches {
		if s.Switch.Dimension != railx.X {
			continue
		}
		if s.Switch.Group != 3 || text(s.Removed) != want[s.Switch.Rail][0] || text(s.Added) != want[s.Switch.Rail][1] {
			t.Errorf("%v: -%s +%s: want %v", s.Switch, text(s.Removed), text(s.Added), want[s.Switch.Rail])
		}
	}
	if diff := cmp.Diff([]railx.Node{dead}, next.Dead()); diff != "" || len(next.Nodes()) != 24 {
		t.Errorf("dead, and %d nodes left (-want +got)\n%s", len(next.Nodes()), diff)
	}
	back, err := next.Restore(dead)
	if err != nil {
		t.Fatal(err)
	}
	if d := railx.Diff(c, back); len(d.Switches) != 0 {
		t.Errorf("not restored: %+v", d)
	}
	two := []railx.Node{{Column: 1, Row: 4}, {Column: 2, Row: 0}, dead}
	more, err := next.Bypass(two[1], two[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(two, more.Dead()); diff != "" {
		t.Errorf("dead (-want +got)\n%s", diff)
	}
	for _, bad := range []railx.Node{{Column: 5}, {Column: -1}, {Row: 7}} {
		if _, err := c.Bypass(bad); !errors.Is(err, railx.ErrFaults) || !strings.Contains(err.Error(), "0 to 4") {
			t.Errorf("%v: %v: want ErrFaults", bad, err)
		}
	}
	if _, err := c.Bypass(c.Nodes()...); !errors.Is(err, railx.ErrFaults) {
		t.Errorf("all dead: %v: want ErrFaults", err)
	}
	if _, err := c.Restore(dead); !errors.Is(err, railx.ErrFaults) {
		t.Errorf("restored what is not dead: %v", err)
	}
}

// Whatever nodes die, in whatever order, no link between survivors goes, and the shape is what it was around the dead.
func TestAnyBypass(t *testing.T) {
	shapes := []string{"hyperx", "torus", "dragonfly", "x=torus:3,a2a:2:1 y=a2a", "expander"}
	rapid.Check(t, func(t *rapid.T) {
		g := railx.Grid{Columns: 6, Rows: 5, Rails: 5}
		s, err := railx.ParseShape(rapid.SampledFrom(shapes).Draw(t, "shape"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := railx.Build(g, s)
		if err != nil {
			t.Fatal(err)
		}
		nodes := rapid.SliceOfNDistinct(rapid.SampledFrom(c.Nodes()), 0, 20, rapid.ID[railx.Node]).Draw(t, "dead")
		now := c
		for _, n := range nodes {
			before := now
			if now, err = now.Bypass(n); err != nil {
				t.Fatal(err)
			}
			for _, d := range railx.Diff(before, now).Switches {
				if len(d.Removed) > 2 || len(d.Added) > 1 {
					t.Fatalf("%v: -%v +%v: want two links for one", d.Switch, d.Removed, d.Added)
				}
			}
		}
		if err := now.Check(); err != nil {
			t.Fatal(err)
		}
		for _, p := range c.Pairs() {
			if living := !slices.Contains(nodes, p.A) && !slices.Contains(nodes, p.B); living && now.Lanes(p.A, p.B) < p.Lanes {
				t.Fatalf("%+v has %d lanes", p, now.Lanes(p.A, p.B))
			}
		}
		at := rapid.IntRange(0, len(nodes)).Draw(t, "restored")
		back, err := now.Restore(nodes[at:]...)
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Bypass(nodes[:at]...)
		if err != nil {
			t.Fatal(err)
		}
		if d := railx.Diff(back, again); len(d.Switches) != 0 {
			t.Fatalf("restored some of them: %+v", d)
		}
	})
}

// Any one switch may fail: every pair of a row keeps a link (from three nodes), five of ten at half their bandwidth.
func TestWithout(t *testing.T) {
	c := build(t, grid5, railx.HyperX2D())
	gone := railx.Switch{Dimension: railx.X, Group: 1, Rail: 2}
	next, thin, err := c.Without(gone)
	if err != nil {
		t.Fatal(err)
	}
	check(t, next)
	var want []railx.Thinned
	for _, pair := range [][2]int{{0, 2}, {0, 3}, {1, 3}, {1, 4}, {2, 4}} {
		want = append(want, railx.Thinned{
			A: railx.Node{Column: pair[0], Row: 1}, B: railx.Node{Column: pair[1], Row: 1}, Before: 2, After: 1})
	}
	if d := cmp.Diff(want, thin); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := railx.Diff(c, next); len(d.Switches) != 0 || len(next.Switches()) != 39 || len(next.Links(gone)) != 0 {
		t.Errorf("a switch that is off is to be changed: %+v", d)
	}
	first := railx.Switch{Dimension: railx.X}
	both, _, err := next.Without(first)
	if err != nil {
		t.Fatal(err)
	}
	check(t, both)
	if diff := cmp.Diff([]railx.Switch{first, gone}, both.Off()); diff != "" {
		t.Error(diff)
	}
	for n := 3; n <= 14; n++ {
		row := build(t, railx.Grid{Columns: n, Rows: 1, Rails: n - 1}, railx.HyperX2D())
		for rail := range n - 1 {
			next, thin, err := row.Without(railx.Switch{Dimension: railx.X, Rail: rail})
			if err != nil {
				t.Fatal(err)
			}
			check(t, next)
			if len(next.Pairs()) != n*(n-1)/2 {
				t.Errorf("%d nodes without rail %d: %d pairs", n, rail, len(next.Pairs()))
			}
			for _, p := range thin {
				if p.Before != 2 || p.After != 1 {
					t.Errorf("%d nodes without rail %d: %+v", n, rail, p)
				}
			}
			if n > 3 && len(thin) != n {
				t.Errorf("%d nodes without rail %d: %d pairs at half: want %[1]d", n, rail, len(thin))
			}
		}
	}
	for _, bad := range []railx.Switch{{Dimension: 'Z'}, {Dimension: railx.X, Group: 5}, {Dimension: railx.Y, Rail: -1}} {
		if _, _, err := c.Without(bad); !errors.Is(err, railx.ErrFaults) {
			t.Errorf("%v: %v: want ErrFaults", bad, err)
		}
	}
}

// Settle leaves switches that are off alone, and a bypass after it leaves them dark.
func TestOffStaysOff(t *testing.T) {
	torus, hyperx := build(t, grid5, railx.Torus2D()), build(t, grid5, railx.HyperX2D())
	gone := railx.Switch{Dimension: railx.X, Group: 1, Rail: 0}
	hyperx, _, err := hyperx.Without(gone)
	if err != nil {
		t.Fatal(err)
	}
	next := railx.Settle(torus, hyperx)
	check(t, next)
	next, err = next.Bypass(railx.Node{Column: 0, Row: 1})
	if err != nil {
		t.Fatal(err)
	}
	check(t, next)
	if len(next.Links(gone)) != 0 {
		t.Errorf("%v has links", gone)
	}
	if len(railx.Relabel(torus, next).Links(gone)) != 0 {
		t.Errorf("%v has links", gone)
	}
}

// Any link that is changed, lost or doubled is noticed.
func TestCheckNotices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := railx.ParseShape(rapid.SampledFrom([]string{"torus", "hyperx", "x=torus:3:2,a2a:2:1 y=a2a:4:3"}).Draw(t, "shape"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := railx.Build(railx.Grid{Columns: 6, Rows: 4, Rails: 5}, s)
		if err != nil {
			t.Fatal(err)
		}
		all := map[railx.Switch][]railx.Link{}
		var lit []railx.Switch
		for _, s := range c.Switches() {
			if all[s] = c.Links(s); len(all[s]) > 0 {
				lit = append(lit, s)
			}
		}
		at := rapid.SampledFrom(lit).Draw(t, "switch")
		links := all[at]
		i, j := rapid.IntRange(0, len(links)-1).Draw(t, "i"), rapid.IntRange(0, len(links)-1).Draw(t, "j")
		switch rapid.IntRange(0, 4).Draw(t, "how") {
		case 0:
			links = slices.Delete(links, i, i+1)
		case 1:
			links = append(links, links[i])
		case 2:
			if i == j {
				return
			}
			links[i], links[j] = railx.Link{Plus: links[i].Plus, Minus: links[j].Plus}, railx.Link{Plus: links[i].Minus, Minus: links[j].Minus}
		case 3:
			links[i].Minus += railx.Port(rapid.SampledFrom([]int{-1000, -2, 1, 2, 1000}).Draw(t, "by"))
		case 4:
			if i == j {
				return
			}
			links[i].Minus, links[j].Minus = links[j].Minus, links[i].Minus
		}
		all[at] = links
		seen, err := c.Observed(all)
		if err != nil {
			t.Fatal(err)
		}
		if err := seen.Check(); !errors.Is(err, railx.ErrLink) {
			t.Fatalf("%v with %v: %v: want ErrLink", at, links, err)
		}
	})
}

func TestCheckNoticesOthers(t *testing.T) {
	c, err := railx.BuildOn(grid5, railx.Torus2D(), railx.Rectangle{Columns: []int{0, 2}, Rows: []int{1, 3}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, c)
	all := map[railx.Switch][]railx.Link{}
	for _, s := range c.Switches() {
		all[s] = c.Links(s)
	}
	all[railx.Switch{Dimension: railx.X, Group: 0}] = []railx.Link{{Plus: 0, Minus: 3}, {Plus: 2, Minus: 1}}
	seen, err := c.Observed(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := seen.Check(); !errors.Is(err, railx.ErrLink) || !strings.Contains(err.Error(), "X/0/0") {
		t.Errorf("%v: want ErrLink of X/0/0", err)
	}
	if _, err := c.Observed(map[railx.Switch][]railx.Link{{Dimension: railx.X, Group: 9}: nil}); !errors.Is(err, railx.ErrLink) {
		t.Errorf("%v: want ErrLink", err)
	}
	if _, err := c.Trace(railx.Switch{Dimension: 'Q'}); !errors.Is(err, railx.ErrLink) {
		t.Errorf("%v: want ErrLink", err)
	}
	none, err := c.Observed(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Diameter(); !errors.Is(err, railx.ErrLink) || !strings.Contains(err.Error(), "(0,1) reaches 1 of 2 nodes, and not (2,1)") {
		t.Errorf("%v: want ErrLink that names (2,1)", err)
	}
}

// One rail at a time: pairs keep a link. The floor is what a walk over the steps sees.
func TestRolling(t *testing.T) {
	torus, hyperx := build(t, grid5, railx.Torus2D()), build(t, grid5, railx.HyperX2D())
	settled := railx.Settle(torus, hyperx)
	steps, floor, err := railx.Rolling(torus, settled)
	if err != nil {
		t.Fatal(err)
	}
	// Not in the order of the rails: the one that gets the ring in reverse must not be the last.
	if len(steps) != 3 || floor != 2 || steps[2][0].Rail == 3 {
		t.Errorf("%d steps, floor %d, %v last: want 3, 2, and not rail 3", len(steps), floor, steps[2][0])
	}
	for i, step := range steps {
		if len(step) != 10 {
			t.Errorf("step %d is of %d switches: want one of each row and column", i, len(step))
		}
	}
	if got := walk(t, torus, settled, steps); got != floor {
		t.Errorf("the walk sees a floor of %d, not %d", got, floor)
	}
	if steps, floor, err := railx.Rolling(torus, torus); len(steps) != 0 || floor != 4 || err != nil {
		t.Errorf("to itself: %v, %d, %v", steps, floor, err)
	}
	if _, _, err := railx.Rolling(torus, build(t, railx.Grid{Columns: 2, Rows: 2, Rails: 1}, railx.Torus2D())); !errors.Is(err, railx.ErrGrid) {
		t.Errorf("%v: want ErrGrid", err)
	}
	// A single rail has to let go.
	one := railx.Grid{Columns: 4, Rows: 1, Rails: 1}
	ring := build(t, one, railx.Torus2D())
	around, err := ring.Observed(map[railx.Switch][]railx.Link{
		{Dimension: railx.X}: {{Plus: 0, Minus: 7}, {Plus: 6, Minus: 5}, {Plus: 4, Minus: 3}, {Plus: 2, Minus: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	steps, floor, err = railx.Rolling(ring, around)
	if !errors.Is(err, railx.ErrCut) || floor != 0 || len(steps) != 1 || !strings.Contains(err.Error(), "(0,0) and (1,0)") {
		t.Errorf("%v, floor %d, %v: want ErrCut that names a pair, and the step", steps, floor, err)
	}
}

// walk changes switches step by step and returns the fewest links of any pair that has some before and after.
func walk(t interface{ Fatal(...any) }, old, next *railx.Config, steps [][]railx.Switch) int {
	var pairs []railx.Pair
	floor := math.MaxInt
	see := func(c *railx.Config) {
		for _, p := range pairs {
			floor = min(floor, c.Lanes(p.A, p.B))
		}
	}
	for _, p := range old.Pairs() {
		if next.Lanes(p.A, p.B) > 0 {
			pairs = append(pairs, p)
		}
	}
	now := map[railx.Switch][]railx.Link{}
	show := func() *railx.Config {
		c, err := old.Observed(now)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, s := range old.Switches() {
		now[s] = old.Links(s)
	}
	see(show())
	for _, step := range steps {
		for _, s := range step {
			now[s] = slices.DeleteFunc(slices.Clone(now[s]), func(l railx.Link) bool { return !slices.Contains(next.Links(s), l) })
		}
		see(show())
		for _, s := range step {
			now[s] = next.Links(s)
		}
		see(show())
	}
	if d := railx.Diff(show(), next); len(d.Switches) != 0 {
		t.Fatal("the steps do not end at next")
	}
	return floor
}

// The order of Rolling is walked, and no other order of the rails of a row is better.
func TestRollingIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := railx.Grid{Columns: rapid.IntRange(2, 5).Draw(t, "nodes"), Rows: 1, Rails: 4}
		draw := func(name string) *railx.Config {
			c, err := railx.Build(g, rapid.SampledFrom([]railx.Shape{railx.Torus2D(), railx.HyperX2D()}).Draw(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if g.Columns > 2 && rapid.Bool().Draw(t, "a node is dead") {
				if c, err = c.Bypass(railx.Node{Column: rapid.IntRange(0, g.Columns-1).Draw(t, "dead")}); err != nil {
					t.Fatal(err)
				}
			}
			return c
		}
		old, next := draw("old"), draw("next")
		steps, floor, err := railx.Rolling(old, next)
		if (floor < 1) != errors.Is(err, railx.ErrCut) {
			t.Fatalf("floor %d: %v", floor, err)
		}
		if got := walk(t, old, next, steps); got != floor {
			t.Fatalf("the walk sees a floor of %d, not %d", got, floor)
		}
		permute(sequence(len(steps)), func(order []int) {
			var other [][]railx.Switch
			for _, i := range order {
				other = append(other, steps[i])
			}
			if got := walk(t, old, next, other); got > floor {
				t.Fatalf("%v has a floor of %d, and Rolling %d", other, got, floor)
			}
		})
	})
}

// More rails than all orders can be tried of.
func TestRollingOfManyRails(t *testing.T) {
	g := railx.Grid{Columns: 17, Rows: 1, Rails: 16}
	torus, hyperx := build(t, g, railx.Torus2D()), build(t, g, railx.HyperX2D())
	steps, floor, err := railx.Rolling(torus, railx.Settle(torus, hyperx))
	if err != nil || len(steps) != 15 || floor != 2 {
		t.Fatalf("%d steps, floor %d, %v: want 15 and 2, which is what pairs have in the end", len(steps), floor, err)
	}
	if got := walk(t, torus, railx.Settle(torus, hyperx), steps); got != floor {
		t.Errorf("the walk sees a floor of %d, not %d", got, floor)
	}
}

// One row has a single link for each pair, and one column is turned around on both of its rails, each of which carries
// pairs of its own: whichever is first, the other's pairs are cut in the end, and the error says so.
func TestRollingCutsLater(t *testing.T) {
	g := railx.Grid{Columns: 3, Rows: 5, Rails: 2}
	old, err := railx.Build(g, shape(t, "x=torus y=expander"))
	if err != nil {
		t.Fatal(err)
	}
	if old, _, err = old.Without(railx.Switch{Dimension: railx.X, Group: 0, Rail: 1}); err != nil {
		t.Fatal(err)
	}
	links := map[railx.Switch][]railx.Link{}
	for _, s := range old.Switches() {
		links[s] = old.Links(s)
		if s.Dimension != railx.Y || s.Group != 1 {
			continue
		}
		for i, l := range links[s] {
			from, _ := l.Plus.Node()
			to, _ := l.Minus.Node()
			links[s][i] = railx.Link{Plus: railx.Plus(to), Minus: railx.Minus(from)}
		}
		slices.SortFunc(links[s], func(a, b railx.Link) int { return int(a.Plus) - int(b.Plus) })
	}
	next, err := old.Observed(links)
	if err != nil {
		t.Fatal(err)
	}
	steps, floor, err := railx.Rolling(old, next)
	if floor != 0 || !errors.Is(err, railx.ErrCut) || len(steps) != 2 {
		t.Fatalf("floor %d in %d steps, %v: want 0 in 2, and ErrCut", floor, len(steps), err)
	}
	if got := walk(t, old, next, steps); got != 0 {
		t.Errorf("the walk sees a floor of %d", got)
	}
	if pairs := old.Pairs(); !slices.IsSortedFunc(pairs, func(p, q railx.Pair) int {
		return slices.Compare([]int{p.A.Column, p.A.Row, p.B.Column, p.B.Row}, []int{q.A.Column, q.A.Row, q.B.Column, q.B.Row})
	}) {
		t.Errorf("pairs are out of order: %v", pairs)
	}
}

// What does not fit in one dimension is said though the other fits.
func TestUnevenRailsOfOneDimension(t *testing.T) {
	for _, text := range []string{"x=torus:3:1,torus:3:3 y=torus", "x=torus y=torus:3:1,torus:3:3"} {
		g := railx.Grid{Columns: 9, Rows: 9, Rails: 4, Mesh: 2}
		if _, err := railx.Build(g, shape(t, text)); !errors.Is(err, railx.ErrShape) || !strings.Contains(err.Error(), "spread evenly") {
			t.Errorf("%s: %v: want ErrShape about rows of chips", text, err)
		}
	}
}

// What a switch that is off takes from a pair is no more than the links it had: both of two nodes, and of doubled rings one.
func TestCheckWithSwitchesOff(t *testing.T) {
	off := railx.Switch{Dimension: railx.X}
	two, thin, err := build(t, railx.Grid{Columns: 2, Rows: 1, Rails: 3}, railx.HyperX2D()).Without(off)
	if err != nil {
		t.Fatal(err)
	}
	check(t, two)
	want := []railx.Thinned{{B: railx.Node{Column: 1}, Before: 6, After: 4}}
	if d := cmp.Diff(want, thin); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	four, _, err := build(t, railx.Grid{Columns: 4, Rows: 1, Rails: 3}, railx.HyperX2D()).Without(off)
	if err != nil {
		t.Fatal(err)
	}
	check(t, four)
	// The same ring on both of the others: two pairs have nothing.
	one, other := railx.Switch{Dimension: railx.X, Rail: 1}, railx.Switch{Dimension: railx.X, Rail: 2}
	seen, err := four.Observed(map[railx.Switch][]railx.Link{one: four.Links(one), other: four.Links(one)})
	if err != nil {
		t.Fatal(err)
	}
	if err := seen.Check(); !errors.Is(err, railx.ErrLink) || !strings.Contains(err.Error(), "have 0 links: want 1") {
		t.Errorf("%v: want ErrLink of a pair without links", err)
	}
}
