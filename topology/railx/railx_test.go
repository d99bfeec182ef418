package railx_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/topology/hamilton"
	"github.com/ocslab/ocslab/topology/railx"
)

var grid5 = railx.Grid{Columns: 5, Rows: 5, Rails: 4, Mesh: 2}

func build(t testing.TB, g railx.Grid, s railx.Shape) *railx.Config {
	t.Helper()
	c, err := railx.Build(g, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func check(t testing.TB, c *railx.Config) {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
}

func shape(t testing.TB, text string) railx.Shape {
	t.Helper()
	s, err := railx.ParseShape(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// text writes links as the paper's tables do.
func text(links []railx.Link) string {
	var words []string
	for _, l := range links {
		words = append(words, l.String())
	}
	return strings.Join(words, " ")
}

// Equation (1): 100K chips in several ways, 200K.
func TestCounts(t *testing.T) {
	for _, test := range []struct {
		radix, mesh, lanes int
		chips, switches    int
	}{
		{128, 5, 1, 102_400, 5 * 128}, {320, 2, 1, 102_400, 2 * 320}, {128, 7, 9, 200_704, 63 * 128}, {128, 4, 2, 65_536, 8 * 128},
	} {
		g, err := railx.Full(test.radix, test.mesh, test.lanes)
		if err != nil {
			t.Fatal(err)
		}
		n, err := g.Counts()
		if err != nil {
			t.Fatal(err)
		}
		if n.Chips != test.chips || n.Switches != test.switches || n.PortsOfSwitch != test.radix {
			t.Errorf("%+v: %+v: want %d chips, %d switches", g, n, test.chips, test.switches)
		}
	}
	n, err := railx.Grid{Columns: 5, Rows: 5, Rails: 4}.Counts()
	if d := cmp.Diff(railx.Counts{Nodes: 25, Switches: 40, Links: 200, PortsOfSwitch: 10}, n); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
}

func TestImpossibleGrids(t *testing.T) {
	for _, g := range []railx.Grid{
		{}, {Columns: -1, Rows: 5, Rails: 4}, {Columns: 5, Rows: 1 << 62, Rails: 4}, {Columns: 5, Rows: 5},
		{Columns: 2048, Rows: 2048, Rails: math.MaxInt}, {Columns: 5, Rows: 5, Rails: 4, Mesh: 3}, {Columns: 5, Rows: 5, Rails: 4, Mesh: -1},
		{Columns: 1, Rows: 1, Rails: 1<<19 + 1}, {Columns: 5, Rows: 5, Rails: 4, Radix: 8}, {Columns: 5, Rows: 5, Rails: 4, Radix: -8},
	} {
		if _, err := railx.Build(g, railx.Torus2D()); !errors.Is(err, railx.ErrGrid) {
			t.Errorf("%+v: %v: want ErrGrid", g, err)
		}
		if _, err := g.Counts(); !errors.Is(err, railx.ErrGrid) {
			t.Errorf("%+v: %v: want ErrGrid", g, err)
		}
	}
	for _, full := range [][3]int{{0, 1, 1}, {1 << 62, 1, 1}, {128, 0, 1}, {128, 1, -1}, {128, math.MaxInt, math.MaxInt}} {
		if _, err := railx.Full(full[0], full[1], full[2]); !errors.Is(err, railx.ErrGrid) {
			t.Errorf("%v: %v: want ErrGrid", full, err)
		}
	}
	big := railx.Grid{Columns: 1, Rows: 1, Rails: 1 << 19, Mesh: 1 << 19}
	if n, err := big.Counts(); err != nil || n.Chips != 1<<38 {
		t.Errorf("%+v, %v: want 2^38 chips", n, err)
	}
}

func TestChips(t *testing.T) {
	g := railx.Grid{Columns: 5, Rows: 5, Rails: 6, Mesh: 3} // two ports at each edge chip
	for _, test := range []struct {
		d    railx.Dimension
		rail int
		plus bool
		want railx.Chip
	}{
		{railx.X, 0, true, railx.Chip{X: 2, Y: 0, Edge: "east"}},
		{railx.X, 3, false, railx.Chip{X: 0, Y: 1, Edge: "west", Lane: 1}},
		{railx.Y, 5, true, railx.Chip{X: 2, Y: 2, Edge: "north", Lane: 1}},
		{railx.Y, 2, false, railx.Chip{X: 1, Y: 0, Edge: "south"}},
	} {
		got, err := g.Chip(test.d, test.rail, test.plus)
		if err != nil || got != test.want {
			t.Errorf("%v/%d: %+v, %v: want %+v", test.d, test.rail, got, err, test.want)
		}
	}
	for _, bad := range []func() (railx.Chip, error){
		func() (railx.Chip, error) { return g.Chip(railx.X, 6, true) },
		func() (railx.Chip, error) { return g.Chip('Z', 0, true) },
		func() (railx.Chip, error) { return railx.Grid{Columns: 1, Rows: 1, Rails: 2}.Chip(railx.X, 0, true) },
	} {
		if _, err := bad(); !errors.Is(err, railx.ErrGrid) {
			t.Errorf("%v: want ErrGrid", err)
		}
	}
}

// The links of a row of five in the ports of its switches.
func TestHyperXOfFive(t *testing.T) {
	c := build(t, grid5, railx.HyperX2D())
	check(t, c)
	for rail, want := range []string{
		"0-3 2-5 4-7 6-9 8-1", "0-5 2-7 4-9 6-1 8-3", "0-7 2-9 4-1 6-3 8-5", "0-9 2-1 4-3 6-5 8-7",
	} {
		for group := range 5 {
			for _, d := range []railx.Dimension{railx.X, railx.Y} {
				if got := text(c.Links(railx.Switch{Dimension: d, Group: group, Rail: rail})); got != want {
					t.Errorf("%v/%d/%d: %s: want %s", d, group, rail, got, want)
				}
			}
		}
	}
	if d, err := c.Diameter(); d != 2 || err != nil {
		t.Errorf("diameter %d, %v: want 2", d, err)
	}
	if got := len(c.Switches()); got != 40 || c.CountLinks() != 200 {
		t.Errorf("%d switches, %d links: want 40, 200", got, c.CountLinks())
	}
	if got := c.Shape().String(); got != "x=a2a:5:4 y=a2a:5:4" {
		t.Errorf("shape %q", got)
	}
	for _, p := range c.Pairs() {
		if p.Lanes != 2 || c.Lanes(p.A, p.B) != 2 || c.Lanes(p.B, p.A) != 2 {
			t.Errorf("%+v: want 2 lanes", p)
		}
	}
	if n := len(c.Pairs()); n != 100 {
		t.Errorf("%d pairs: want 100", n)
	}
}

func TestTorus(t *testing.T) {
	c := build(t, grid5, railx.Torus2D())
	check(t, c)
	rings := 0
	for _, s := range c.Switches() {
		if d := cmp.Diff([][]int{{0, 1, 2, 3, 4}}, c.Rings(s)); d != "" {
			t.Errorf("%v (-want +got)\n%s", s, d)
		}
		rings += len(c.Rings(s))
	}
	if d, err := c.Diameter(); rings != 40 || d != 4 || err != nil {
		t.Errorf("%d rings, diameter %d, %v: want 40 and 4", rings, d, err)
	}
	if got := c.Lanes(railx.Node{Column: 1, Row: 2}, railx.Node{Column: 2, Row: 2}); got != 4 {
		t.Errorf("%d lanes between neighbours: want 4", got)
	}
	for _, none := range [][2]railx.Node{{{1, 2}, {3, 2}}, {{1, 2}, {2, 3}}, {{1, 2}, {1, 2}}, {{1, 2}, {1, 9}}} {
		if got := c.Lanes(none[0], none[1]); got != 0 {
			t.Errorf("%v: %d lanes: want 0", none, got)
		}
	}
}

// A row of nine as three by three, rails 0 and 1 for CP and 2 and 3 for EP (RailX, section 3.3.4).
func TestSplit(t *testing.T) {
	g := railx.Grid{Columns: 9, Rows: 1, Rails: 4}
	c := build(t, g, shape(t, "x=torus:3:2,a2a:3:2"))
	check(t, c)
	for rail, want := range [][][]int{
		{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}, {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}},
		{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}}, {{0, 6, 3}, {1, 7, 4}, {2, 8, 5}},
	} {
		s := railx.Switch{Dimension: railx.X, Rail: rail}
		if d := cmp.Diff(want, c.Rings(s)); d != "" {
			t.Errorf("rail %d (-want +got)\n%s", rail, d)
		}
		for _, ring := range want {
			for i, u := range ring {
				if l := (railx.Link{Plus: railx.Plus(u), Minus: railx.Minus(ring[(i+1)%3])}); !slices.Contains(c.Links(s), l) {
					t.Errorf("rail %d has no link %v", rail, l)
				}
			}
		}
	}
	// With two rows of two chips at each edge, either dimension gets a lane of both; or whole rows of chips if asked.
	g.Mesh = 2
	balanced := build(t, g, shape(t, "x=torus:3:2,a2a:3:2"))
	check(t, balanced)
	for rail, first := range []int{1, 3, 1, 6} {
		if got := balanced.Rings(railx.Switch{Dimension: railx.X, Rail: rail})[0][1]; got != first {
			t.Errorf("balanced: on rail %d node %d follows 0: want %d", rail, got, first)
		}
	}
	uneven := build(t, g, shape(t, "x=torus:3:1,torus:3:3 contiguous"))
	check(t, uneven)
	for rail, first := range []int{1, 3, 3, 3} {
		if got := uneven.Rings(railx.Switch{Dimension: railx.X, Rail: rail})[0][1]; got != first {
			t.Errorf("uneven: on rail %d node %d follows 0: want %d", rail, got, first)
		}
	}
	if _, err := railx.Build(g, shape(t, "x=torus:3:1,torus:3:3")); !errors.Is(err, railx.ErrShape) || !strings.Contains(err.Error(), "contiguous") {
		t.Errorf("%v: want ErrShape that says contiguous", err)
	}
}

// Dragonfly of four rails: 21 groups of 5, one ring of 21 on each of 20 X switches (RailX, section 3.3.3).
func TestDragonfly(t *testing.T) {
	g := railx.Grid{Columns: 21, Rows: 5, Rails: 4}
	c := build(t, g, railx.Dragonfly())
	check(t, c)
	x, y := 0, 0
	var global [][]int
	for _, s := range c.Switches() {
		rings := c.Rings(s)
		if len(rings) != 1 {
			t.Fatalf("%v has %d rings: want one", s, len(rings))
		}
		if s.Dimension == railx.X {
			x++
			global = append(global, rings[0])
		} else {
			y++
		}
	}
	if err := hamilton.Check(21, global, true); err != nil {
		t.Error(err)
	}
	if d, err := c.Diameter(); x != 20 || y != 84 || d != 3 || err != nil || len(c.Nodes()) != 105 {
		t.Errorf("%d X and %d Y switches, diameter %d of %d nodes, %v: want 20, 84, 3, 105", x, y, d, len(c.Nodes()), err)
	}
	if g.Ports(railx.X) != 42 || g.Ports(railx.Y) != 10 {
		t.Errorf("%d and %d ports: want 42 and 10", g.Ports(railx.X), g.Ports(railx.Y))
	}
	g.Columns = 22
	if _, err := railx.Build(g, railx.Dragonfly()); !errors.Is(err, railx.ErrShape) || !strings.Contains(err.Error(), "want 21 columns") {
		t.Errorf("%v: want ErrShape that says 21 columns", err)
	}
}

// Each two groups of a Dragonfly have two links at least, at different rows, also where there are fewer groups than
// rings.
func TestDragonflyAtAllSizes(t *testing.T) {
	for rails := 2; rails <= 5; rails++ {
		for columns := 2; columns <= rails*rails+rails+1; columns++ {
			c := build(t, railx.Grid{Columns: columns, Rows: rails + 1, Rails: rails}, railx.Dragonfly())
			check(t, c)
			if d, err := c.Diameter(); d > 3 || err != nil {
				t.Errorf("%d rails, %d groups: diameter %d, %v: want 3 at most", rails, columns, d, err)
			}
			for a := range columns {
				for b := range a {
					links, rows := 0, 0
					for j := range rails + 1 {
						if n := c.Lanes(railx.Node{Column: a, Row: j}, railx.Node{Column: b, Row: j}); n > 0 {
							rows, links = rows+1, links+n
						}
					}
					if links < 2 || rows < 2 {
						t.Errorf("%d rails, %d groups: %d and %d have %d links at %d rows", rails, columns, b, a, links, rows)
					}
				}
			}
		}
	}
}

// Every size of HyperX that rails allow, with rails to spare: copies, and rings that repeat.
func TestHyperXOfEverySize(t *testing.T) {
	for n := 1; n <= 21; n++ {
		for _, rails := range []int{max(n-1, 1), n, 2*n + 1} {
			c := build(t, railx.Grid{Columns: n, Rows: 1, Rails: rails}, railx.HyperX2D())
			check(t, c)
			for v := range n {
				for w := range v {
					if got := c.Lanes(railx.Node{Column: v}, railx.Node{Column: w}); got < 2*(rails/(n-1)) {
						t.Errorf("%d nodes, %d rails: %d lanes of %d and %d", n, rails, got, v, w)
					}
				}
			}
		}
	}
	c := build(t, railx.Grid{Columns: 5, Rows: 1, Rails: 10}, railx.HyperX2D())
	for rail, like := range map[int]int{4: 0, 7: 3, 8: 0, 9: 1} {
		got := c.Links(railx.Switch{Dimension: railx.X, Rail: rail})
		if d := cmp.Diff(c.Links(railx.Switch{Dimension: railx.X, Rail: like}), got); d != "" {
			t.Errorf("rail %d is not like %d:\n%s", rail, like, d)
		}
	}
}

func TestShapesThatDoNotFit(t *testing.T) {
	for _, test := range []struct {
		shape string
		says  string
	}{
		{"hyperx", "want 5 nodes at most, 5 rails, or an expander"},
		{"x=torus y=torus:4", "want sizes whose product is 6"},
		{"x=torus:4,torus y=torus", "leave their size or rails open"},
		{"x=torus:5:2,torus y=torus", "want sizes whose product is 6"},
		{"x=torus:3:4,torus:2:4 y=torus", "more rails than the 4"},
		{"x=torus:6:4,torus:1 y=torus", ""},
		{"x=torus:2:4,torus:3 y=torus", "no rail is left"},
		{"x=torus:65535:4 y=torus", "more than the 6 nodes"},
		{"x=torus y=global", "in X"},
		{"x=global,torus:2 y=torus", "alone"},
		{"x=torus", "and there are 6 nodes"},
		{"x=torus:3:4,dark:2:1 y=torus", "want none"},
	} {
		c, err := railx.Build(railx.Grid{Columns: 6, Rows: 6, Rails: 4}, shape(t, test.shape))
		if test.says == "" {
			if err != nil {
				t.Errorf("%s: %v", test.shape, err)
			} else if err := c.Check(); err != nil {
				t.Errorf("%s: %v", test.shape, err)
			}
			continue
		}
		if !errors.Is(err, railx.ErrShape) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v: want ErrShape that says %q", test.shape, err, test.says)
		}
	}
	huge := []railx.Logical{{Size: math.MaxInt, Rails: math.MaxInt}, {Size: math.MaxInt, Rails: math.MaxInt}}
	for _, ls := range [][]railx.Logical{huge, huge[:1], {{Kind: 9}}, {{Size: -6}}, {{Rails: -1}}, make([]railx.Logical, 100), {{Size: 1, Rails: 4}, {Size: 6, Rails: math.MaxInt}}} {
		if _, err := railx.Build(railx.Grid{Columns: 6, Rows: 6, Rails: 4}, railx.Split(ls, ls)); !errors.Is(err, railx.ErrShape) {
			t.Errorf("%v: %v: want ErrShape", ls[:1], err)
		}
	}
}

// Fewer rails than a HyperX takes, if an expander is asked for.
func TestExpander(t *testing.T) {
	c := build(t, railx.Grid{Columns: 24, Rows: 24, Rails: 3}, railx.Expander2D())
	check(t, c)
	d, err := c.Diameter()
	if err != nil {
		t.Fatal(err)
	}
	_, gap, err := railx.Expanding(24, 3)
	if err != nil {
		t.Fatal(err)
	}
	// The torus on as many rails has a gap of (1-cos(2 pi/24)) = 0.034 and a diameter of 24.
	if d > 8 || gap < 0.3 {
		t.Errorf("diameter %d, gap %.3f: want far better than a torus", d, gap)
	}
	// All rings make the complete graph, twice: eigenvalues 2(k-1) and -2.
	for _, k := range []int{3, 5, 6, 8, 21} {
		rings, gap, err := railx.Expanding(k, k)
		if want := 1 + 1/float64(k-1); err != nil || len(rings) != k-1 || math.Abs(gap-want) > 1e-6 {
			t.Errorf("%d: %d rings, gap %v, %v: want %d, %v", k, len(rings), gap, err, k-1, want)
		}
	}
	// One ring: the gap of a cycle; every ring has it.
	if _, gap, err := railx.Expanding(7, 1); err != nil || math.Abs(gap-(1-math.Cos(2*math.Pi/7))) > 1e-6 {
		t.Errorf("gap of a ring of 7: %v, %v", gap, err)
	}
	// Of a prime number the rings are a circulant, whose eigenvalues are known. All choices, and not all of them.
	for _, test := range [][2]int{{13, 3}, {31, 2}, {31, 8}, {61, 5}} {
		k, rails := test[0], test[1]
		rings, gap, err := railx.Expanding(k, rails)
		if err != nil || len(rings) != rails {
			t.Fatalf("%v: %d rings, %v", test, len(rings), err)
		}
		second, steps := -1.0, map[int]bool{}
		for j := 1; j < k; j++ {
			sum := 0.0
			for _, ring := range rings {
				sum += math.Cos(2*math.Pi*float64(j*ring[1])/float64(k)) / float64(rails)
				steps[ring[1]] = true
			}
			second = max(second, sum)
		}
		if math.Abs(gap-(1-second)) > 1e-3 || len(steps) != rails {
			t.Errorf("%v: gap %.4f, %d different rings: want %.4f and %d", test, gap, len(steps), 1-second, rails)
		}
	}
	first, _, _ := railx.Expanding(31, 2)
	if again, _, _ := railx.Expanding(31, 2); cmp.Diff(first, again) != "" {
		t.Error("another choice the next time")
	}
	for _, bad := range [][2]int{{1, 1}, {5, 0}, {hamilton.MaxSize + 1, 2}} {
		if _, _, err := railx.Expanding(bad[0], bad[1]); !errors.Is(err, railx.ErrShape) {
			t.Errorf("%v: %v: want ErrShape", bad, err)
		}
	}
}

func TestParseShape(t *testing.T) {
	for text, want := range map[string]railx.Shape{
		"torus": railx.Torus2D(), " HyperX ": railx.HyperX2D(), "dragonfly": railx.Dragonfly(), "expander": railx.Expander2D(),
		"x=torus:3:2,a2a:3:2 y=torus:5:4": railx.Split(
			[]railx.Logical{{Size: 3, Kind: railx.Torus, Rails: 2}, {Size: 3, Kind: railx.AllToAll, Rails: 2}},
			[]railx.Logical{{Size: 5, Kind: railx.Torus, Rails: 4}}),
		"y=all-to-all":     {Name: "split", Y: []railx.Logical{{Kind: railx.AllToAll}}},
		"contiguous torus": {Name: "torus", X: railx.Torus2D().X, Y: railx.Torus2D().Y, Contiguous: true},
	} {
		got, err := railx.ParseShape(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got)\n%s", text, d)
		}
	}
	for text, says := range map[string]string{
		"": "names none", "contiguous": "names none", "torsu": `did you mean "torus"`, "x=tours:3": `did you mean "torus"`,
		"x=torus:-1": "want a whole number", "x=torus:3:2:1": "want kind:size:rails", "x=torus x=torus": "has said what x is",
		"torus hyperx": "has said what it is", "z=torus": "want torus, hyperx", "x=": "want kind:size:rails", "torus y=a2a": "has said what y is",
		"x=" + strings.Repeat("torus,", 40) + "torus": "want 16 at most",
	} {
		if _, err := railx.ParseShape(text); !errors.Is(err, railx.ErrShape) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v: want ErrShape that says %q", text, err, says)
		}
	}
}

func FuzzParseShape(f *testing.F) {
	for _, s := range []string{"torus", "hyperx contiguous", "x=torus:3:2,a2a:3:2 y=torus:5:4", "x=global y=a2a", "y=expander:0:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := railx.ParseShape(text)
		if err != nil {
			if !errors.Is(err, railx.ErrShape) {
				t.Fatalf("%v: want ErrShape", err)
			}
			return
		}
		again, err := railx.ParseShape(s.String())
		if err != nil {
			t.Fatalf("%q is written %q: %v", text, s, err)
		}
		again.Name = s.Name
		if d := cmp.Diff(s, again); d != "" {
			t.Fatalf("%q is written %q (-want +got)\n%s", text, s, d)
		}
		c, err := railx.Build(railx.Grid{Columns: 9, Rows: 5, Rails: 4}, s)
		if err == nil {
			err = c.Check()
		} else if errors.Is(err, railx.ErrShape) {
			err = nil
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

func ExampleBuild() {
	g := railx.Grid{Columns: 5, Rows: 5, Rails: 4}
	torus, _ := railx.Build(g, railx.Torus2D())
	hyperx, _ := railx.Build(g, railx.HyperX2D())
	delta := railx.Diff(torus, railx.Settle(torus, hyperx))
	fmt.Println(delta.Removed(), "links rewired on", len(delta.Switches), "switches,", delta.Untouched, "untouched")
	// Output: 150 links rewired on 30 switches, 10 untouched
}

// All rails of a dimension for CP, then all for EP: neither has a link of the other (RailX, appendix A.4). That is more to
// rewire than where both have half of the rails all the time, which is nothing.
func TestAllRailsForOne(t *testing.T) {
	g := railx.Grid{Columns: 9, Rows: 1, Rails: 4, Mesh: 2}
	cp, ep := build(t, g, shape(t, "x=torus:3:4,dark:3")), build(t, g, shape(t, "x=dark:3,a2a:3:4"))
	check(t, cp)
	check(t, ep)
	if d := railx.Diff(cp, railx.Settle(cp, ep)); d.Removed() != 36 || d.Added() != 36 || len(d.Switches) != 4 {
		t.Errorf("-%d +%d on %d switches: want 36 each on 4", d.Removed(), d.Added(), len(d.Switches))
	}
	if got := ep.Lanes(railx.Node{Column: 1}, railx.Node{Column: 7}); got != 4 {
		t.Errorf("%d lanes: want 4", got)
	}
	if _, err := cp.Diameter(); !errors.Is(err, railx.ErrLink) {
		t.Errorf("%v: want ErrLink, as nothing joins the rings", err)
	}
	if got := cp.Shape().String(); got != "x=torus:3:4,dark:3:0" {
		t.Error(got)
	}
}

// Where rows and columns are alike the diameter is the sum of theirs; the search over all nodes agrees.
func TestDiameters(t *testing.T) {
	for text, want := range map[string]int{"torus": 3 + 2, "hyperx": 2, "x=torus:3:2,a2a:2 y=a2a:4": 1 + 1 + 1, "x=torus y=a2a": 4} {
		c := build(t, railx.Grid{Columns: 6, Rows: 4, Rails: 5}, shape(t, text))
		links := map[railx.Switch][]railx.Link{}
		for _, s := range c.Switches() {
			links[s] = c.Links(s)
		}
		seen, err := c.Observed(links) // in memory of its own, so nothing is seen to be alike
		if err != nil {
			t.Fatal(err)
		}
		fast, err := c.Diameter()
		if err != nil {
			t.Fatal(err)
		}
		slow, err := seen.Diameter()
		if err != nil || fast != want || slow != want {
			t.Errorf("%s: %d and %d, %v: want %d", text, fast, slow, err, want)
		}
	}
}
