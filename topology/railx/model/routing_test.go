package model_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/topology/railx"
	"github.com/ocslab/ocslab/topology/railx/model"
)

// Section 5: no circle with three virtual channels, at most 2 optical and 5m-6 mesh hops; with fewer channels there is one.
func TestVerify(t *testing.T) {
	for name, x := range map[string]struct {
		side, mesh, lanes int
		wantMesh          int // 0: only the bound
	}{"m=2 n=2": {5, 2, 2, 4}, "m=2 n=1": {3, 2, 1, 4}, "m=4 n=1": {5, 4, 1, 14}} {
		c := hyperx(t, x.side, x.mesh, x.lanes)
		v, err := model.Verify(c, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		chips := x.side * x.side * x.mesh * x.mesh
		if v.Pairs != chips*chips || v.MostOptical != 2 || v.MostMesh > 5*x.mesh-6 || v.VirtualChannels != 3 || v.Routes < v.Pairs {
			t.Errorf("%s: got %+v, want %d pairs, 2 optical and at most %d mesh hops", name, v, chips*chips, 5*x.mesh-6)
		}
		optical, mesh := model.Size{Radix: 128, Mesh: x.mesh, Lanes: x.lanes}.HyperXHops()
		if v.MostOptical > optical || v.MostMesh > mesh {
			t.Errorf("%s: %d and %d hops are more than %d and %d", name, v.MostOptical, v.MostMesh, optical, mesh)
		}
		t.Logf("%s: %+v", name, v)
		if _, err := model.Verify(c, 1); !errors.Is(err, model.ErrDeadlock) {
			t.Errorf("%s with one channel: got %v, want ErrDeadlock", name, err)
		}
	}
}

// Routes around dead nodes keep the order of channels, and use only links that are there.
func TestVerify_Faults(t *testing.T) {
	whole := hyperx(t, 5, 2, 2)
	bypassed, err := whole.Bypass(railx.Node{Column: 2, Row: 3}, railx.Node{Column: 2, Row: 1}, railx.Node{Column: 0, Row: 1})
	if err == nil {
		bypassed, _, err = bypassed.Without(railx.Switch{Dimension: railx.Y, Group: 4, Rail: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := model.Verify(bypassed, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := 22 * 4 * 22 * 4; v.Pairs != want {
		t.Errorf("got %d pairs, want %d", v.Pairs, want)
	}
}

// A router that believes in links that have since gone must be found out.
type moved struct {
	*railx.Config
	asked *int
	other *railx.Config
}

func (m moved) Links(s railx.Switch) []railx.Link {
	if *m.asked++; *m.asked > len(m.Config.Switches()) {
		return m.other.Links(s)
	}
	return m.Config.Links(s)
}

func TestVerify_LinksThatAreNotThere(t *testing.T) {
	c := hyperx(t, 5, 2, 2)
	torus, err := railx.Build(c.Grid(), railx.Torus2D())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Verify(moved{c, new(int), torus}, 0); !errors.Is(err, model.ErrRoute) {
		t.Errorf("got %v, want ErrRoute", err)
	}
}

func TestVerify_Arguments(t *testing.T) {
	if _, err := model.Verify(hyperx(t, 5, 2, 2), -1); !errors.Is(err, model.ErrArgument) {
		t.Errorf("-1 virtual channels: got %v, want ErrArgument", err)
	}
	if _, err := model.Verify(hyperx(t, 13, 4, 3), 0); !errors.Is(err, model.ErrArgument) {
		t.Errorf("2704 chips: got %v, want ErrArgument", err)
	}
}

func TestVirtualChannels(t *testing.T) {
	for _, x := range [][2]int{{1, 2}, {model.HyperXDiameter, 3}, {model.DragonflyDiameter, 4}} {
		if got := model.VirtualChannels(x[0]); got != x[1] {
			t.Errorf("diameter %d: got %d, want %d", x[0], got, x[1])
		}
	}
	for bumps, want := range []int{1, 2, 3} {
		if got := model.AdaptiveChannels(bumps); got != want {
			t.Errorf("%d bumps: got %d, want %d", bumps, got, want)
		}
	}
}

// The circulant of five nodes has node 0 and 1 joined on rails 0 and 3; rail 0 is at row 0 of the mesh, rail 3 at row 1.
func TestRoute(t *testing.T) {
	r, err := model.NewRouter(hyperx(t, 5, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	at := func(column, row, x, y int) model.Chip {
		return model.Chip{Node: railx.Node{Column: column, Row: row}, X: x, Y: y}
	}
	got, err := r.Route(at(0, 0, 0, 0), at(1, 0, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	optical, _ := got.Hops()
	if optical != 1 || got.Steps[len(got.Steps)-1].VC != 2 {
		t.Errorf("got %+v, want one optical hop, the last channel 2", got)
	}
	same, err := r.Route(at(0, 0, 0, 0), at(0, 0, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := model.Route{Share: 1, Steps: []model.Step{
		{From: at(0, 0, 0, 0), To: at(0, 0, 1, 0), VC: 2}, {From: at(0, 0, 1, 0), To: at(0, 0, 1, 1), VC: 2},
	}}
	if d := cmp.Diff(want, same); d != "" {
		t.Errorf("within a node (-want +got):\n%s", d)
	}
	for name, to := range map[string]model.Chip{"node": at(5, 0, 0, 0), "chip": at(0, 0, 2, 0)} {
		if _, err := r.Routes(at(0, 0, 0, 0), to); !errors.Is(err, model.ErrRoute) {
			t.Errorf("no such %s: got %v, want ErrRoute", name, err)
		}
	}
}
