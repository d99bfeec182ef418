package panels

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

// list returns the patch list of circuits that are drawn.
func list(t interface {
	Fatal(...any)
	Context() context.Context
}, rows, columns, circuits int, seed uint64, directed bool) *fibre.Patch {
	g, err := fibre.Grid(rows, columns)
	if err != nil {
		t.Fatal(err)
	}
	requests, err := fibre.Random(g.Servers(), circuits, seed)
	if err != nil {
		t.Fatal(err)
	}
	r, err := fibre.Route(t.Context(), g, requests, fibre.Options{Directed: directed, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return r.Patch()
}

// Ensure the lab that is written for a room holds every patch list that fits, with a port for each end of a fibre and no
// port twice, and is a lab file; and that a circuit can be followed through it.
func TestLabFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(1, 5).Draw(t, "rows"), rapid.IntRange(2, 5).Draw(t, "columns")
		directed := rapid.Bool().Draw(t, "directed")
		p := list(t, rows, columns, rapid.IntRange(1, 60).Draw(t, "circuits"), rapid.Uint64().Draw(t, "seed"), directed)
		room := Room{Rows: rows, Columns: columns, Fibres: p.Result.Fibres + rapid.IntRange(0, 60).Draw(t, "spare")}
		text, err := LabFile(room, LabOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := lab.Parse("room.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		cables, err := Cables(f, room, p)
		if err != nil {
			t.Fatal(err)
		}
		a := &applying{file: f, patch: p, cables: cables, want: map[string]ocs.Map{}}
		if err := a.maps(); err != nil {
			t.Fatal(err)
		}
		if err := a.follow(a.want); err != nil || a.report.Circuits != len(p.Result.Requests) {
			t.Fatalf("%d circuits followed: %v", a.report.Circuits, err)
		}
		// A panel that lacks any one fibre, or has two exchanged, is noticed.
		c := rapid.SampledFrom(cables).Draw(t, "fibre")
		name := c.Sender.Tx.Switch
		a.want[name] = a.want[name].Minus(ocs.MustMap(ocs.CrossConnect{Ingress: c.Sender.Tx.Port, Egress: c.Receiver.Rx.Port}))
		if err := a.follow(a.want); !errors.Is(err, ocs.ErrVerify) {
			t.Fatalf("without %v: %v", c.Fibre, err)
		}
	})
}

// Ensure what has no room says what would.
func TestLabFile_Refuses(t *testing.T) {
	for _, tt := range []struct {
		room Room
		want string
	}{
		{Room{0, 4, 1}, "want 2 to"}, {Room{2, 2, 0}, "1 to"}, {Room{1, 1, 1}, "patch panels"}, {Room{1, 500, 1}, "192 servers or fewer"},
		{Room{1 << 40, 1 << 40, 1}, "want 2 to"}, {Room{64, 64, 60000}, "patch panels"},
	} {
		if _, err := LabFile(tt.room, LabOptions{}); !errors.Is(err, ErrRoom) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want one with %q", tt.room, err, tt.want)
		}
	}
	text, err := LabFile(Room{2, 3, 1}, LabOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse("room.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	p := list(t, 2, 3, 30, 1, false)
	if _, err := Cables(f, Room{2, 3, 1}, p); !errors.Is(err, ErrRoom) || !strings.Contains(err.Error(), "--write-lab") {
		t.Errorf("more fibres than NICs: %v", err)
	}
}

// Ensure a list is brought about, read back and recorded, that doing it again moves nothing, that another comes beside
// it, as each fibre has ports of its own, and that with Update it replaces the one before.
func TestApply(t *testing.T) {
	store, err := runs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	room := Room{Rows: 2, Columns: 3, Fibres: 8}
	text, err := LabFile(room, LabOptions{Switching: 1e6, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse("room.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	opt := sequence.Options{Name: "fibres", LabText: text, Leave: true, Options: execution.Options{
		Store: store, Lab: lab.Options{Emulated: true, StateDir: t.TempDir(), Command: "test"},
	}}
	first, second := list(t, 2, 3, 12, 1, false), list(t, 2, 3, 12, 2, false)
	r, err := Apply(t.Context(), f, room, first, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Fibres) != len(first.Fibres) || r.Circuits != 12 || r.Kept != 0 || r.Removed != 0 {
		t.Errorf("%+v", r)
	}
	for _, x := range r.Fibres {
		if !x.Held {
			t.Errorf("%+v was not read back", x.Fibre)
		}
	}
	run, err := store.Load(t.Context(), r.Run)
	if err != nil || run.Summary == nil || run.Summary.State != runs.Done {
		t.Errorf("run %+v: %v", run, err)
	}
	if r, err = Apply(t.Context(), f, room, first, opt); err != nil || r.Kept != len(first.Fibres) {
		t.Fatalf("again: %+v, %v", r, err)
	}
	r, err = Apply(t.Context(), f, room, second, opt)
	if err != nil || r.Kept+r.Left != len(first.Fibres) || r.Left == 0 || r.Removed != 0 {
		t.Fatalf("another list beside the first: %+v, %v", r, err)
	}
	left := r.Left
	opt.Mode = ocs.Update
	if r, err = Apply(t.Context(), f, room, second, opt); err != nil {
		t.Fatal(err)
	}
	if r.Kept != len(second.Fibres) || r.Removed != left || r.Left != 0 || r.Circuits != 12 {
		t.Errorf("%d kept of %d, and %d removed of %d", r.Kept, len(second.Fibres), r.Removed, left)
	}
	// Nothing else is left: the same once more has all of it and nothing to remove.
	if r, err = Apply(t.Context(), f, room, second, opt); err != nil || r.Kept != len(second.Fibres) || r.Removed != 0 {
		t.Errorf("the second list again: %+v, %v", r, err)
	}
}
