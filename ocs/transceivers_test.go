package ocs_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

// Ensure that a lane of a transceiver reaches its two fibres and the receivers of its own
// module, and nothing else.
func TestTransceivers_Reaches(t *testing.T) {
	t.Parallel()
	g := ocs.Transceivers(2, 8)
	for _, tt := range []struct {
		in, out ocs.Port
		want    bool
		name    string
	}{
		{3, 19, true, "module 1 lane 3 fibre 1"},
		{3, 35, true, "module 1 lane 3 fibre 2"},
		{3, 49, true, "module 1 lane 1 receiver"},
		{3, 56, true, "module 1 lane 8 receiver"},
		{3, 57, false, "module 2 lane 1 receiver"},
		{3, 20, false, "module 1 lane 4 fibre 1"},
		{3, 36, false, "module 1 lane 4 fibre 2"},
		{9, 57, true, "module 2 lane 1 receiver"},
		{9, 25, true, "module 2 lane 1 fibre 1"},
		{16, 64, true, "module 2 lane 8 receiver"},
		{16, 65, false, ""},
		{17, 19, false, "module 1 lane 3 fibre 1"},
	} {
		if got := g.Reaches(tt.in, tt.out); got != tt.want {
			t.Errorf("%d reaches %d: %v, want %v", tt.in, tt.out, got, tt.want)
		}
		if got := g.PortName(tt.out); got != tt.name {
			t.Errorf("port %d is %q, want %q", tt.out, got, tt.name)
		}
	}
	if got := g.PortName(9); got != "module 2 lane 1 transmitter" {
		t.Errorf("port 9 is %q", got)
	}
	if got := ocs.Transceivers(1, 8).PortName(17); got != "lane 1 fibre 2" {
		t.Errorf("port 17 of a single module is %q", got)
	}
	if got := ocs.TwoSided(4, 4).PortName(1); got != "" {
		t.Errorf("a port of a matrix is called %q", got)
	}
}

// Ensure that a map in which the receiver of a lane would have to listen to two places is
// refused, and that of the changes that need it none is planned under safe.
func TestTransceivers_exclusive(t *testing.T) {
	t.Parallel()
	g := ocs.Transceivers(1, 8)
	for text, ok := range map[string]bool{
		"1-8>9-16":            true,
		"1-8>17-24":           true,
		"1-4>29-32,5-8>25-28": true,
		"1>9,2>18":            true,
		"3>28":                true,  // lane 4 is dark, and listens
		"3>28,4>12":           false, // lane 4 listens to fibre 1
		"3>28,4>20":           false,
		"3>28,4>27":           true,
		"3>27":                true,
	} {
		m, err := ocs.ParseMap(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Check(m); (err == nil) != ok || err != nil && !errors.Is(err, ocs.ErrPort) {
			t.Errorf("%s: %v", text, err)
		}
	}
	sw := bundle{ocstest.New(32, ocs.Map{}), g}
	ctx := context.Background()
	want := func(text string, policy ocs.Policy) (ocs.Report, error) {
		m, err := ocs.ParseMap(text)
		if err != nil {
			t.Fatal(err)
		}
		return ocs.Reconcile(ctx, sw, m, policy)
	}
	if _, err := want("4>12", ocs.Safe); err != nil {
		t.Fatal(err)
	}
	var conflict *ocs.ConflictError
	if _, err := want("3>28", ocs.Safe); !errors.Is(err, ocs.ErrConflict) || !errors.As(err, &conflict) {
		t.Errorf("3>28 while lane 4 listens to its fibre: %v", err)
	} else if got := conflict.Error(); got != "3>28 excludes 4>12, which is there" {
		t.Errorf("the conflict says %q", got)
	}
	if r, err := want("3>28", ocs.Update); err != nil || r.Change.String() != "- 4>12 + 3>28" {
		t.Errorf("under update: %v, %v", r.Change, err)
	}
}

// bundle is a switch in memory that says it is a bundle of transceivers.
type bundle struct {
	*ocstest.Switch
	g ocs.Geometry
}

func (b bundle) Identify(context.Context) (ocs.Identity, error) {
	return ocs.Identity{Model: "OCSTrx", Geometry: b.g}, nil
}

// Ensure that Excludes is symmetric, and that a map passes Check if and only if each of its
// circuits can be reached and no two exclude each other.
func TestTransceivers_check(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		g := ocs.Transceivers(rapid.IntRange(1, 3).Draw(rt, "modules"), rapid.SampledFrom([]int{2, 8}).Draw(rt, "lanes"))
		m := ocs.Map{}
		for range rapid.IntRange(0, 6).Draw(rt, "n") {
			c := ocs.CrossConnect{
				Ingress: ocs.Port(rapid.IntRange(1, g.Ingress).Draw(rt, "in")),
				Egress:  ocs.Port(rapid.IntRange(g.Ingress+1, 4*g.Ingress).Draw(rt, "out")),
			}
			if next, err := m.Plus(ocs.MustMap(c)); err == nil {
				m = next
			}
		}
		ok := true
		for c := range m.All() {
			ok = ok && g.Reaches(c.Ingress, c.Egress)
			for d := range m.All() {
				if g.Excludes(c, d) != g.Excludes(d, c) {
					rt.Fatalf("%v and %v exclude each other one way only", c, d)
				}
				ok = ok && !g.Excludes(c, d)
			}
		}
		if err := g.Check(m); (err == nil) != ok {
			rt.Fatalf("%v: %v", m, err)
		}
	})
}

// Ensure that the text form of a bundle can be read again, and that what looks like one
// and is none is refused.
func TestTransceivers_String(t *testing.T) {
	t.Parallel()
	for _, g := range []ocs.Geometry{ocs.Transceivers(1, 8), ocs.Transceivers(8, 8), ocs.Transceivers(2, 4)} {
		got, err := ocs.ParseGeometry(g.String())
		if err != nil || got != g {
			t.Errorf("%q reads as %+v, %v", g.String(), got, err)
		}
	}
	for _, s := range []string{"0 modules of 8 lanes", "1 modules of 8 lanes", "2 module of 8 lanes", "-1 modules of 8 lanes", "8 modules of 0 lanes", "8 modules of 8 lanes ", "99999 modules of 8 lanes"} {
		if g, err := ocs.ParseGeometry(s); err == nil {
			t.Errorf("%q reads as %+v", s, g)
		}
	}
}
