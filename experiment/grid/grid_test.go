package grid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/railx"
)

// Ensure a lab that was written for a grid is read back, and that its hosts and its names
// say the same of where the ports are.
func TestCables(t *testing.T) {
	g := railx.Grid{Columns: 3, Rows: 2, Rails: 2}
	sized := func(context.Context, string) (ocs.Geometry, error) { return ocs.TwoSided(32, 32), nil }
	var both []railx.Cables
	for _, hosts := range []bool{false, true} {
		text, err := LabFile(g, LabOptions{Hosts: hosts, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		f, err := lab.Parse("grid.yaml", text)
		if err != nil {
			t.Fatalf("hosts %v: %v", hosts, err)
		}
		cables, err := Cables(t.Context(), f, g, sized)
		if err != nil {
			t.Fatalf("hosts %v: %v", hosts, err)
		}
		for _, ports := range cables {
			for i := range ports {
				ports[i].Name = ""
			}
		}
		both = append(both, cables)
	}
	if diff := cmp.Diff(both[0], both[1]); diff != "" {
		t.Errorf("names (-) and hosts (+) differ:\n%s", diff)
	}
	want := topology.NIC{Tx: topology.Port{Switch: "y2-1", Port: 4}, Rx: topology.Port{Switch: "y2-1", Port: 36}}
	if got := both[0][railx.Switch{Dimension: railx.Y, Group: 2, Rail: 1}][railx.Minus(1)]; got != want {
		t.Errorf("the - of node (2,1) on rail 1 of its column is %+v, want %+v", got, want)
	}
}

// Ensure what a lab lacks is said, and by what it could be had.
func TestCables_Lacking(t *testing.T) {
	g := railx.Grid{Columns: 3, Rows: 2, Rails: 2}
	text, err := LabFile(g, LabOptions{Hosts: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		text     string
		geometry ocs.Geometry
		want     string
	}{
		{"switch", "name: a\nswitches: [{name: x0-0, emulate: {model: polatis-6000-32x32}}]\n", ocs.TwoSided(32, 32), "--write-lab"},
		{"ports", "name: a\nswitches: [{name: x0-0, emulate: {model: polatis-6000-32x32}}]\n", ocs.TwoSided(4, 4), "takes 6 of each"},
		{"sides", "name: a\nswitches: [{name: x0-0, emulate: {model: polatis-6000-32x32}}]\n", ocs.SingleSided(48), "have no sides"},
		{"NIC", strings.Replace(string(text), "name: x1m", "name: z1m", 1), ocs.Geometry{}, "no NIC n0-0/x1m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := lab.Parse("grid.yaml", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			_, err = Cables(t.Context(), f, g, func(context.Context, string) (ocs.Geometry, error) { return tt.geometry, nil })
			if !errors.Is(err, railx.ErrCables) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	for model, want := range map[string]string{"foo": "want polatis-6000-32x32, fast-mems-25ms", "polatis-6000-32x32": "want fast-mems-25ms"} {
		g := railx.Grid{Columns: 5, Rows: 1, Rails: 1}
		if model != "foo" {
			g.Columns = 20 // of 40 ports
		}
		if _, err := LabFile(g, LabOptions{Model: model}); !errors.Is(err, railx.ErrGrid) || !strings.Contains(err.Error(), want) {
			t.Errorf("model %s: error %v, want one with %q", model, err, want)
		}
	}
	for _, g := range []railx.Grid{{Columns: 200, Rows: 1, Rails: 1}, {Columns: 100, Rows: 100, Rails: 40}} {
		if _, err := LabFile(g, LabOptions{}); !errors.Is(err, railx.ErrGrid) {
			t.Errorf("%+v: error %v", g, err)
		}
	}
}

// options are those of runs in a directory of the test.
func options(t *testing.T, name string, text []byte) sequence.Options {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return sequence.Options{Name: name, LabText: text, Options: execution.Options{
		Store: store, Lab: lab.Options{Emulated: true, Authority: lab.Files(t.TempDir()), Command: "test"},
	}}
}

// Ensure a grid is brought from a torus to a HyperX, in both orders, with the links moved that the paper's
// example has (150 of 200 on 5 x 5 nodes; here 3 x 3 with 2 rails: 6 of 12 switches), verified and recorded.
func TestApply(t *testing.T) {
	g := railx.Grid{Columns: 3, Rows: 3, Rails: 2}
	torus, err := railx.Build(g, railx.Torus2D())
	if err != nil {
		t.Fatal(err)
	}
	hyperx, err := railx.Build(g, railx.HyperX2D())
	if err != nil {
		t.Fatal(err)
	}
	f, text, cables, err := emulated(g, 2*time.Millisecond, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range []Order{Auto, Together} {
		t.Run(string(order), func(t *testing.T) {
			opt := options(t, "grid", text)
			_, r, err := Apply(t.Context(), f, cables, torus, hyperx, Options{Options: opt, Order: order})
			if err != nil {
				t.Fatal(err)
			}
			want := Together
			if order == Auto {
				want = Rolling
			}
			if r.Order != want || len(r.Steps) != 1 || len(r.Steps[0].Switches) != 6 {
				t.Errorf("order %s, steps %+v", r.Order, r.Steps)
			}
			if r.Delta.Untouched != 6 || r.Delta.Removed() != 18 || r.Rings != 12 || r.Links != 36 {
				t.Errorf("%d untouched, %d removed, %d rings of %d links", r.Delta.Untouched, r.Delta.Removed(), r.Rings, r.Links)
			}
			for _, d := range r.Down {
				if d.For.Latest != 0 {
					t.Errorf("%v and %v had no link for %v, and rail 0 stays as it is", d.A, d.B, d.For)
				}
			}
			run, err := opt.Store.Load(t.Context(), r.Run)
			if err != nil || run.Meta.Name != "grid" || run.Summary == nil || run.Summary.State != runs.Done {
				t.Errorf("run %+v: %v", run, err)
			}
		})
	}
}

// Ensure a switch that is off is left alone, or emptied if that was asked for, and that the rest is verified.
func TestApply_Off(t *testing.T) {
	g := railx.Grid{Columns: 3, Rows: 3, Rails: 2}
	hyperx, err := railx.Build(g, railx.HyperX2D())
	if err != nil {
		t.Fatal(err)
	}
	off := railx.Switch{Dimension: railx.X, Group: 1, Rail: 1}
	rest, _, err := hyperx.Without(off)
	if err != nil {
		t.Fatal(err)
	}
	for _, drain := range []bool{false, true} {
		f, text, cables, err := emulated(g, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !drain { // it is dead: the lab does not lead to it
			for i := range f.Switches {
				if f.Switches[i].Name == cables[off][0].Tx.Switch {
					f.Switches[i].Emulate, f.Switches[i].URL = nil, "tl1://admin@127.0.0.1:1"
				}
			}
		}
		from := hyperx
		if !drain {
			from = nil
		}
		_, r, err := Apply(t.Context(), f, cables, from, rest, Options{Options: options(t, "off", text), Drain: drain})
		if err != nil {
			t.Fatalf("drain %v: %v", drain, err)
		}
		if r.Rings != 11 || r.Links != 33 {
			t.Errorf("drain %v: %d rings of %d links", drain, r.Rings, r.Links)
		}
	}
}

// Ensure a drain empties a switch that no step would touch, and that, where several switches of the grid are parts of one of
// the lab's, only the part moves that is meant, one rail after the other.
func TestApply_Shared(t *testing.T) {
	g := railx.Grid{Columns: 3, Rows: 3, Rails: 2}
	hyperx, err := railx.Build(g, railx.HyperX2D())
	if err != nil {
		t.Fatal(err)
	}
	dead, err := hyperx.Bypass(railx.Node{Column: 1, Row: 1})
	if err != nil {
		t.Fatal(err)
	}
	f, text, cables := shared(t, g)
	opt := options(t, "shared", text)
	opt.Lab.StateDir, opt.Leave = t.TempDir(), true
	if _, _, err := Apply(t.Context(), f, cables, nil, hyperx, Options{Options: opt}); err != nil {
		t.Fatal(err)
	}
	_, r, err := Apply(t.Context(), f, cables, hyperx, dead, Options{Options: opt, Order: Rolling})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) != 2 || r.Rings != 12 || r.Links != 32 {
		t.Errorf("%d steps, %d rings of %d links", len(r.Steps), r.Rings, r.Links)
	}
	run, err := opt.Store.Load(t.Context(), r.Run)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, m := range run.Plan.Conditions[0].Maps {
		sizes = append(sizes, m["big"].Len())
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	if want := []int{64, 68, 72}; !slices.Equal(sizes, want) { // after both rails, after one, before
		t.Errorf("the steps have %v circuits: want %v", sizes, want)
	}

	off := railx.Switch{Dimension: railx.X, Group: 1, Rail: 1}
	rest, _, err := dead.Without(off)
	if err != nil {
		t.Fatal(err)
	}
	if _, r, err = Apply(t.Context(), f, cables, nil, rest, Options{Options: opt, Drain: true}); err != nil {
		t.Fatal(err)
	}
	if r.Rings != 11 || r.Links != 30 {
		t.Errorf("drained: %d rings of %d links", r.Rings, r.Links)
	}
}

// shared returns a lab in which all switches of a grid are parts of one.
func shared(t *testing.T, g railx.Grid) (*lab.File, []byte, railx.Cables) {
	t.Helper()
	text := "name: one\nswitches: [{name: big, emulate: {model: polatis-7000-384x384, switching: 1ms}}]\nhosts:\n"
	port := 0
	for row := range g.Rows {
		for column := range g.Columns {
			n := railx.Node{Column: column, Row: row}
			text += fmt.Sprintf("  - name: %s\n    nics:\n", hostName(n))
			for s := range switches(g) {
				if _, here := place(s, n); here {
					text += fmt.Sprintf("      - {name: %s, tx: big/%d, rx: big/%d}\n", nicName(s, true), port+1, port+385)
					text += fmt.Sprintf("      - {name: %s, tx: big/%d, rx: big/%d}\n", nicName(s, false), port+2, port+386)
					port += 2
				}
			}
		}
	}
	f, err := lab.Parse("one.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	cables, err := Cables(t.Context(), f, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f, []byte(text), cables
}

// Ensure pairs that are cut are reported as such, for as long as the switch takes at least: with one of two rails of a row dead,
// the other cannot be moved without.
func TestApply_Cut(t *testing.T) {
	const switching = 60 * time.Millisecond
	g := railx.Grid{Columns: 3, Rows: 1, Rails: 2}
	torus, err := railx.Build(g, railx.Torus2D())
	if err != nil {
		t.Fatal(err)
	}
	hyperx, err := railx.Build(g, railx.Split([]railx.Logical{{Kind: railx.AllToAll}}, nil))
	if err != nil {
		t.Fatal(err)
	}
	to, _, err := railx.Settle(torus, hyperx).Without(railx.Switch{Dimension: railx.X})
	if err != nil {
		t.Fatal(err)
	}
	f, text, cables, err := emulated(g, switching, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := Apply(t.Context(), f, cables, torus, to, Options{Options: options(t, "cut", text)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Order != Together || r.Why == "" || len(r.Down) != 3 {
		t.Errorf("order %s because of %q; pairs %+v", r.Order, r.Why, r.Down)
	}
	for _, d := range r.Down {
		if d.Known && d.For.Latest < switching.Nanoseconds() {
			t.Errorf("%v and %v had no link for %v, and the switch takes %v", d.A, d.B, d.For, switching)
		}
	}
}

// Ensure that bins hold every duration, also if all are the same.
func TestHistogram(t *testing.T) {
	for _, took := range [][]timeline.Interval{
		nil,
		{timeline.Point(5e6)},
		{timeline.Point(5e6), timeline.Point(5e6), timeline.Point(9e6)},
	} {
		lines := strings.Join(histogram(took), "\n")
		marks := 0
		for _, line := range strings.Split(lines, "\n") {
			if fields := strings.Fields(line); len(fields) > 2 {
				marks += int(fields[2][0] - '0')
			}
		}
		if marks != len(took) {
			t.Errorf("%d durations: %d in\n%s", len(took), marks, lines)
		}
	}
}
