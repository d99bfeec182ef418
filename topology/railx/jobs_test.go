package railx_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/railx"
)

// Faults at {0,1} x {0,1} of 8 x 8: rectangles of 48 and 12 nodes, which is every healthy one.
func TestRectangles(t *testing.T) {
	g := railx.Grid{Columns: 8, Rows: 8, Rails: 7}
	got, err := railx.Rectangles(g, railx.Node{Column: 0, Row: 0}, railx.Node{Column: 0, Row: 1}, railx.Node{Column: 1, Row: 0}, railx.Node{Column: 1, Row: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []railx.Rectangle{
		{Columns: []int{0, 1, 2, 3, 4, 5, 6, 7}, Rows: []int{2, 3, 4, 5, 6, 7}}, {Columns: []int{2, 3, 4, 5, 6, 7}, Rows: []int{0, 1}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// Three faults in one column: two groups of columns, but four of rows only if they are looked at.
	got, err = railx.Rectangles(railx.Grid{Columns: 3, Rows: 3, Rails: 2}, railx.Node{Column: 0, Row: 0}, railx.Node{Column: 1, Row: 1}, railx.Node{Column: 0, Row: 2})
	if err != nil || len(got) != 2 {
		t.Errorf("%v, %v: want two rectangles, by rows", got, err)
	}
	if _, err := railx.Rectangles(g, railx.Node{Column: 8}); !errors.Is(err, railx.ErrFaults) {
		t.Errorf("%v: want ErrFaults", err)
	}
	if _, err := railx.Rectangles(railx.Grid{Columns: 1, Rows: 1, Rails: 1}, railx.Node{}); !errors.Is(err, railx.ErrFaults) {
		t.Errorf("%v: want ErrFaults", err)
	}
	if _, err := railx.Rectangles(railx.Grid{}); !errors.Is(err, railx.ErrGrid) {
		t.Errorf("%v: want ErrGrid", err)
	}
}

// Rectangles have every healthy node once and no other, and are no more than the rows or columns with faults, and one.
// Jobs that are fitted into them never share a port, and each is what it is alone.
func TestJobsOnOneGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := railx.Grid{Columns: rapid.IntRange(1, 9).Draw(t, "columns"), Rows: rapid.IntRange(1, 9).Draw(t, "rows"), Rails: 8}
		node := rapid.Custom(func(t *rapid.T) railx.Node {
			return railx.Node{Column: rapid.IntRange(0, g.Columns-1).Draw(t, "column"), Row: rapid.IntRange(0, g.Rows-1).Draw(t, "row")}
		})
		faults := rapid.SliceOfNDistinct(node, 0, g.Columns*g.Rows-1, rapid.ID[railx.Node]).Draw(t, "faults")
		free, err := railx.Rectangles(g, faults...)
		if err != nil {
			t.Fatal(err)
		}
		rows, columns := map[int]bool{}, map[int]bool{}
		for _, n := range faults {
			rows[n.Row], columns[n.Column] = true, true
		}
		if most := min(len(rows), len(columns)) + 1; len(free) > most {
			t.Fatalf("%d rectangles: want %d at most", len(free), most)
		}
		covers(t, g, free, faults)

		var jobs []*railx.Config
		var taken []railx.Rectangle
		for range rapid.IntRange(0, 6).Draw(t, "jobs") {
			w, h := rapid.IntRange(1, 5).Draw(t, "w"), rapid.IntRange(1, 5).Draw(t, "h")
			job, left, ok := railx.Fit(free, w, h)
			if fits := slices.ContainsFunc(free, func(r railx.Rectangle) bool { return len(r.Columns) >= w && len(r.Rows) >= h }); ok != fits {
				t.Fatalf("%d x %d fits %t, says Fit of %v", w, h, ok, free)
			}
			if !ok {
				continue
			}
			free, taken = left, append(taken, job)
			c, err := railx.BuildOn(g, rapid.SampledFrom([]railx.Shape{railx.Torus2D(), railx.HyperX2D()}).Draw(t, "shape"), job)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, c)
		}
		covers(t, g, append(slices.Clone(free), taken...), faults)
		all, err := railx.Together(jobs...)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, links := range all {
			n += len(links)
		}
		for _, c := range jobs {
			n -= c.CountLinks()
			for _, s := range c.Switches() {
				for _, l := range c.Links(s) {
					if !slices.Contains(all[s], l) {
						t.Fatalf("%v has lost %v", s, l)
					}
				}
			}
		}
		if n != 0 {
			t.Fatalf("%d links more than those of the jobs", n)
		}
		if len(jobs) > 0 && jobs[0].CountLinks() > 0 {
			if _, err := railx.Together(append(jobs, jobs[0])...); !errors.Is(err, railx.ErrShape) {
				t.Fatalf("a job twice: %v", err)
			}
		}
	})
}

// covers checks that rectangles have every node but those once.
func covers(t *rapid.T, g railx.Grid, rects []railx.Rectangle, but []railx.Node) {
	seen := map[railx.Node]int{}
	for _, r := range rects {
		for _, i := range r.Columns {
			for _, j := range r.Rows {
				n := railx.Node{Column: i, Row: j}
				seen[n]++
				if !r.Contains(n) {
					t.Fatalf("%v does not contain %v", r, n)
				}
			}
		}
	}
	for _, n := range but {
		seen[n]++
	}
	if len(seen) != g.Columns*g.Rows || slices.Max(slices.Collect(maps.Values(seen))) != 1 {
		t.Fatalf("%v and %v are not each node once", rects, but)
	}
}

func TestFitKeepsTheLargest(t *testing.T) {
	g := railx.Grid{Columns: 6, Rows: 4, Rails: 5}
	odd, err := railx.BuildOn(g, railx.Torus2D(), railx.Rectangle{Columns: []int{0, 2, 5}, Rows: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := odd.Bypass(railx.Node{Column: 1, Row: 1}); !errors.Is(err, railx.ErrFaults) || !strings.Contains(err.Error(), "column of 0, 2, 5 and a row of 1") {
		t.Errorf("%v: want ErrFaults that says which nodes there are", err)
	}
	if odd.Grid() != g || odd.Rectangle().Nodes() != 3 {
		t.Errorf("%+v %v", odd.Grid(), odd.Rectangle())
	}
	job, left, ok := railx.Fit([]railx.Rectangle{g.Whole()}, 5, 1)
	want := []railx.Rectangle{{Columns: []int{0, 1, 2, 3, 4, 5}, Rows: []int{1, 2, 3}}, {Columns: []int{5}, Rows: []int{0}}}
	if d := cmp.Diff(want, left); !ok || d != "" || job.Nodes() != 5 {
		t.Errorf("%v %t (-want +got)\n%s", job, ok, d)
	}
	_, left, ok = railx.Fit([]railx.Rectangle{g.Whole()}, 1, 3)
	want = []railx.Rectangle{{Columns: []int{1, 2, 3, 4, 5}, Rows: []int{0, 1, 2, 3}}, {Columns: []int{0}, Rows: []int{3}}}
	if d := cmp.Diff(want, left); !ok || d != "" {
		t.Errorf("%t (-want +got)\n%s", ok, d)
	}
	for _, none := range [][2]int{{7, 1}, {1, 5}, {0, 1}, {1, -1}} {
		if _, left, ok := railx.Fit([]railx.Rectangle{g.Whole()}, none[0], none[1]); ok || len(left) != 1 {
			t.Errorf("%v fits", none)
		}
	}
}

func TestImpossibleRectangles(t *testing.T) {
	for _, r := range []railx.Rectangle{
		{}, {Columns: []int{0}}, {Columns: []int{0, 0}, Rows: []int{1}}, {Columns: []int{1, 0}, Rows: []int{1}},
		{Columns: []int{5}, Rows: []int{1}}, {Columns: []int{0}, Rows: []int{-1}},
	} {
		if _, err := railx.BuildOn(grid5, railx.Torus2D(), r); !errors.Is(err, railx.ErrGrid) {
			t.Errorf("%v: %v: want ErrGrid", r, err)
		}
	}
	if _, err := railx.Together(build(t, grid5, railx.Torus2D()), build(t, railx.Grid{Columns: 2, Rows: 2, Rails: 2}, railx.Torus2D())); !errors.Is(err, railx.ErrShape) {
		t.Errorf("two grids: %v", err)
	}
	if all, err := railx.Together(); err != nil || len(all) != 0 {
		t.Errorf("no jobs: %v, %v", all, err)
	}
}

// A ring is two cross-connects for each link, on a switch of 32 x 32.
func TestMaps(t *testing.T) {
	c := build(t, grid5, railx.HyperX2D())
	cables, err := railx.Regular(grid5, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := cables.Check(); err != nil {
		t.Fatal(err)
	}
	all, err := c.Maps(cables)
	if err != nil {
		t.Fatal(err)
	}
	// Rail 0: 0-3 2-5 4-7 6-9 8-1, in ports of the switch from 1 and from 33.
	want, err := ocs.ParseMap("1>36,4>33,3>38,6>35,5>40,8>37,7>42,10>39,9>34,2>41")
	if err != nil {
		t.Fatal(err)
	}
	if got := all["x2-0"]; len(all) != 40 || !got.Equal(want) {
		t.Errorf("%d maps, x2-0 %v: want 40, %v", len(all), got, want)
	}
	if got := cables[railx.Switch{Dimension: railx.Y, Group: 2, Rail: 1}][7]; got.Name != "n2-3/y1m" || got.Tx.String() != "y2-1/8" || got.Rx.String() != "y2-1/40" {
		t.Errorf("%+v", got)
	}
}

// Whatever the cables, links come back out of the circuits they make.
func TestCablesThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := railx.Grid{Columns: rapid.IntRange(1, 6).Draw(t, "columns"), Rows: rapid.IntRange(1, 6).Draw(t, "rows"), Rails: 5}
		c, err := railx.Build(g, rapid.SampledFrom([]railx.Shape{railx.Torus2D(), railx.HyperX2D()}).Draw(t, "shape"))
		if err != nil {
			t.Fatal(err)
		}
		cables, err := railx.Regular(g, 0)
		if err != nil {
			t.Fatal(err)
		}
		// All switches of the grid in one, in any order of ports.
		n := 0
		for _, ports := range cables {
			n += len(ports)
		}
		tx, rx := rapid.Permutation(sequence(n)).Draw(t, "tx"), rapid.Permutation(sequence(n)).Draw(t, "rx")
		for _, s := range c.Switches() {
			for p := range cables[s] {
				n--
				cables[s][p].Tx.Switch, cables[s][p].Rx.Switch = "all", "all"
				cables[s][p].Tx.Port, cables[s][p].Rx.Port = ocs.Port(tx[n]+1), ocs.Port(rx[n]+1001)
			}
		}
		if err := cables.Check(); err != nil {
			t.Fatal(err)
		}
		all, err := c.Maps(cables)
		if err != nil {
			t.Fatal(err)
		}
		if all["all"].Len() != 2*c.CountLinks() {
			t.Fatalf("%d circuits for %d links", all["all"].Len(), c.CountLinks())
		}
		links, err := cables.Links(all)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := c.Observed(links)
		if err != nil {
			t.Fatal(err)
		}
		if err := seen.Check(); err != nil {
			t.Fatal(err)
		}
		if d := railx.Diff(c, seen); len(d.Switches) != 0 {
			t.Fatalf("%+v", d)
		}
	})
}

func TestCablesThatDoNotFit(t *testing.T) {
	c := build(t, grid5, railx.Torus2D())
	x := railx.Switch{Dimension: railx.X}
	regular := func() railx.Cables {
		cables, err := railx.Regular(grid5, 0)
		if err != nil {
			t.Fatal(err)
		}
		return cables
	}
	for name, change := range map[string]func(railx.Cables){
		"port 9 is not cabled": func(c railx.Cables) { c[x] = c[x][:9] },
		"is not cabled":        func(c railx.Cables) { delete(c, x) },
		"no switch joins":      func(c railx.Cables) { c[x][3].Rx.Switch = "elsewhere" },
		"switch x0-0":          func(c railx.Cables) { c[x][3].Tx = c[x][4].Tx },
	} {
		cables := regular()
		change(cables)
		if _, err := c.Maps(cables); !errors.Is(err, railx.ErrCables) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for says, change := range map[string]func(railx.Cables){
		"both send into x0-0/5":       func(c railx.Cables) { c[x][3].Tx = c[x][4].Tx },
		"both receive from x0-0/15":   func(c railx.Cables) { c[x][3].Rx = c[x][4].Rx },
		"want ports from 1 to 65535":  func(c railx.Cables) { c[x][3].Rx.Port = 0 },
		"port 3 of X/0/0 is cabled":   func(c railx.Cables) { c[x][3].Tx.Port = 70000 },
		"port 4 of X/0/0 and port 2 ": func(c railx.Cables) { c[railx.Switch{Dimension: railx.Y}][2].Tx = c[x][4].Tx },
	} {
		cables := regular()
		change(cables)
		if err := cables.Check(); !errors.Is(err, railx.ErrCables) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: want ErrCables that says %q", err, says)
		}
	}
	for says, circuits := range map[string]string{
		"comes back to it": "1>11", "and not back": "1>12,2>13,3>11", "not cabled to X/0/0": "1>30",
	} {
		m, err := ocs.ParseMap(circuits)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := regular().Links(map[string]ocs.Map{"x0-0": m}); !errors.Is(err, railx.ErrCables) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v: want ErrCables that says %q", circuits, err, says)
		}
	}
	both, err := ocs.ParseMap("1>13,3>11,2>14,4>12") // "+" to "+", "-" to "-"
	if err != nil {
		t.Fatal(err)
	}
	links, err := regular().Links(map[string]ocs.Map{"x0-0": both})
	if err != nil || text(links[x]) != "0-2 1-3" {
		t.Errorf("%v, %v: want 0-2 1-3", links[x], err)
	}
	for _, size := range []int{9, -1, 40000} {
		if _, err := railx.Regular(grid5, size); !errors.Is(err, railx.ErrCables) {
			t.Errorf("size %d: %v: want ErrCables", size, err)
		}
	}
	if _, err := railx.Regular(railx.Grid{}, 0); !errors.Is(err, railx.ErrGrid) {
		t.Errorf("%v: want ErrGrid", err)
	}
}

func TestPortsAndNames(t *testing.T) {
	for p := range railx.Port(10) {
		v, plus := p.Node()
		if back := map[bool]railx.Port{true: railx.Plus(v), false: railx.Minus(v)}[plus]; back != p {
			t.Errorf("%d is of node %d, which has %d", p, v, back)
		}
	}
	s := railx.Switch{Dimension: railx.Y, Group: 2, Rail: 1}
	if got := s.String() + " " + (railx.Node{Column: 2, Row: 3}).String(); got != "Y/2/1 (2,3)" {
		t.Error(got)
	}
	if got := railx.Kind(9).String(); got != "kind 9" {
		t.Error(got)
	}
}
