package model_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/topology/railx"
	"github.com/ocslab/ocslab/topology/railx/model"
)

// hyperx builds all-to-all rows and columns of side nodes of mesh x mesh chips with lanes ports at an edge.
func hyperx(t testing.TB, side, mesh, lanes int) *railx.Config {
	t.Helper()
	c, err := railx.Build(railx.Grid{Columns: side, Rows: side, Rails: mesh * lanes, Mesh: mesh}, railx.HyperX2D())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Figure 14's network: theory is 1.0, and a mesh twice as fast as the ports is enough.
func TestFluid(t *testing.T) {
	c := hyperx(t, 9, 4, 2)
	for _, x := range []struct {
		spread        model.Spread
		optical, mesh float64 // 0: not given
		throughput    map[float64]float64
	}{
		{model.Nearest, 1.0008, 3.1135, map[float64]float64{1: 0.642, 2: 0.999, 3: 0.999, 4: 0.999, 8: 0.999}},
		{model.Every, 0, 0, map[float64]float64{1: 0.545, 2: 1.090, 3: 1.124, 4: 1.124, 8: 1.124}},
	} {
		a, err := model.Fluid(c, x.spread)
		if err != nil {
			t.Fatal(err)
		}
		if a.Nodes != 81 || a.Chips != 1296 || a.Lanes != 2 || a.Detours != 0 {
			t.Errorf("%s: got %+v, want 81 nodes, 1296 chips, 2 lanes, no detours", x.spread, a)
		}
		if x.optical != 0 && (math.Abs(a.Optical-x.optical) > 5e-5 || math.Abs(a.Mesh-x.mesh) > 5e-5) {
			t.Errorf("%s: got loads of %.5f and %.5f, want %.4f and %.4f", x.spread, a.Optical, a.Mesh, x.optical, x.mesh)
		}
		for kappa, want := range x.throughput {
			if got := a.Throughput(kappa); math.Abs(got-want) > 6e-4 {
				t.Errorf("%s, kappa %v: got %.4f, want %.3f", x.spread, kappa, got, want)
			}
		}
		t.Logf("%s: %+v", x.spread, a)
	}
}

// slow is the fluid model without any of its sums: every pair of chips, on the routes of the router.
func slow(t *testing.T, f model.Fabric) (optical, mesh float64) {
	t.Helper()
	r, err := model.NewRouter(f)
	if err != nil {
		t.Fatal(err)
	}
	var chips []model.Chip
	g := f.Grid()
	for _, n := range r.Nodes() {
		for i := range g.Mesh * g.Mesh {
			chips = append(chips, model.Chip{Node: n, X: i % g.Mesh, Y: i / g.Mesh})
		}
	}
	each := 1 / float64(len(chips)-1)
	type channel struct {
		from    model.Chip
		optical bool
		d       railx.Dimension
		rail    int
		plus    bool
		to      model.Chip
	}
	load := map[channel]float64{}
	for _, from := range chips {
		for _, to := range chips {
			routes, err := r.Routes(from, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, route := range routes {
				for _, s := range route.Steps {
					load[channel{s.From, s.Optical, s.Dimension, s.Rail, s.Plus, s.To}] += each * route.Share
				}
			}
		}
	}
	for c, v := range load {
		if c.optical {
			optical = max(optical, v)
		} else {
			mesh = max(mesh, v)
		}
	}
	return optical, mesh
}

// The sums must be those of all pairs, one by one, also where nodes and switches are dead.
func TestFluid_AllPairs(t *testing.T) {
	whole := hyperx(t, 5, 2, 2)
	bypassed, err := whole.Bypass(railx.Node{Column: 2, Row: 3}, railx.Node{Column: 4, Row: 3})
	if err != nil {
		t.Fatal(err)
	}
	dark, _, err := whole.Without(railx.Switch{Dimension: railx.X, Group: 1, Rail: 2})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*railx.Config{"whole": whole, "bypassed": bypassed, "dark switch": dark, "one chip wide": hyperx(t, 3, 1, 2)} {
		a, err := model.Fluid(c, model.Nearest)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		optical, mesh := slow(t, c)
		if math.Abs(a.Optical-optical) > 1e-9 || math.Abs(a.Mesh-mesh) > 1e-9 {
			t.Errorf("%s: got %.9f and %.9f, one by one %.9f and %.9f", name, a.Optical, a.Mesh, optical, mesh)
		}
		// From three nodes of row 3, to four of each of two columns.
		if want := map[string]int{"bypassed": 24}[name]; a.Detours != want {
			t.Errorf("%s: got %d detours, want %d", name, a.Detours, want)
		}
	}
}

func TestFluid_Errors(t *testing.T) {
	torus, err := railx.Build(railx.Grid{Columns: 5, Rows: 5, Rails: 4, Mesh: 2}, railx.Torus2D())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := railx.Build(railx.Grid{Columns: 5, Rows: 5, Rails: 4}, railx.HyperX2D())
	if err != nil {
		t.Fatal(err)
	}
	corners, err := hyperx(t, 5, 2, 2).Bypass(railx.Node{Column: 2, Row: 3}, railx.Node{Column: 4, Row: 4})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		c      *railx.Config
		spread model.Spread
		is     error
		text   string
	}{
		"corners":  {corners, model.Nearest, model.ErrRoute, "both corners"},
		"torus":    {torus, model.Nearest, model.ErrRoute, "all-to-all"},
		"no chips": {plain, model.Nearest, model.ErrArgument, "how many chips"},
		"spread":   {torus, "widest", model.ErrArgument, "nearest"},
	} {
		if _, err := model.Fluid(x.c, x.spread); !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, x.is, x.text)
		}
	}
}

// Diameters of table 2, over planned links.
func TestDiameter(t *testing.T) {
	for name, x := range map[string]struct {
		g    railx.Grid
		s    railx.Shape
		want int
	}{
		"torus 8x8":  {railx.Grid{Columns: 8, Rows: 8, Rails: 4}, railx.Torus2D(), 8},
		"torus 5x7":  {railx.Grid{Columns: 5, Rows: 7, Rails: 2}, railx.Torus2D(), 5},
		"hyperx 5x5": {railx.Grid{Columns: 5, Rows: 5, Rails: 4}, railx.HyperX2D(), model.HyperXDiameter},
		"hyperx 9x9": {railx.Grid{Columns: 9, Rows: 9, Rails: 8}, railx.HyperX2D(), model.HyperXDiameter},
		"dragonfly":  {railx.Grid{Columns: 21, Rows: 5, Rails: 4}, railx.Dragonfly(), model.DragonflyDiameter},
		"one row":    {railx.Grid{Columns: 5, Rows: 1, Rails: 4}, railx.HyperX2D(), 1},
	} {
		c, err := railx.Build(x.g, x.s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := c.Diameter(); err != nil || got != x.want {
			t.Errorf("%s: got %d, %v, want %d", name, got, err, x.want)
		}
	}
}

func BenchmarkFluid(b *testing.B) {
	for _, x := range []struct {
		name              string
		side, mesh, lanes int
	}{{"1296 chips", 9, 4, 2}, {"51200 chips", 57, 4, 14}} {
		c := hyperx(b, x.side, x.mesh, x.lanes)
		for _, s := range []model.Spread{model.Nearest, model.Every} {
			b.Run(x.name+"/"+string(s), func(b *testing.B) {
				for b.Loop() {
					if _, err := model.Fluid(c, s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
