package lab_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
	"pgregory.net/rapid"
)

// protecting returns sw behind a gate whose lab file protects ports of it.
func protecting(t interface{ Fatal(...any) }, sw ocs.Switch, ports ...ocs.Port) ocs.Switch {
	text := "switches: [{name: rail0, url: tl1://192.0.2.1}]\nprotect: ["
	for i, p := range ports {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("rail0/%d", p)
	}
	f, err := lab.Parse("lab.yaml", []byte(text+"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return lab.New(f, lab.Options{}).Adopt("rail0", "tl1://192.0.2.1:3082", sw)
}

// Ensure a protected port keeps its light whatever the change is.
func TestGuard(t *testing.T) {
	for _, tc := range []struct {
		name, have, remove, add string
		refused                 bool
	}{
		{"other ports", "31>63", "", "1>33", false},
		{"its ingress", "", "", "31>40", true},
		{"its egress", "", "", "1>63", true},
		{"removal", "31>63", "31>63", "", true},
		{"its partner taken over by egress", "31>50", "", "2>50", true},
		{"its partner taken over by ingress", "5>63", "", "5>40", true},
		{"removal of others", "1>33,31>63", "1>33", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inner := ocstest.New(32, parseMap(t, tc.have))
			sw := protecting(t, inner, 31, 63)
			_, err := sw.Apply(t.Context(), ocs.Change{Remove: parseMap(t, tc.remove), Add: parseMap(t, tc.add)})
			if errors.Is(err, ocs.ErrInterlock) != tc.refused {
				t.Fatalf("err=%v, want refused=%v", err, tc.refused)
			}
			if sent := len(inner.Applied()) > 0; sent == tc.refused {
				t.Fatalf("sent=%v, want %v", sent, !tc.refused)
			}
		})
	}
}

func TestGuard_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) ocs.Map {
			egress := rapid.Permutation(ocs.TwoSided(8, 8).EgressPorts()).Draw(t, label)
			var ccs []ocs.CrossConnect
			for i, e := range egress {
				if rapid.Bool().Draw(t, "there") {
					ccs = append(ccs, ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: e})
				}
			}
			return ocs.MustMap(ccs...)
		}
		have, want := draw("have"), draw("want")
		protected := rapid.SliceOfNDistinct(rapid.SampledFrom(ocs.TwoSided(8, 8).Ports()), 1, 3, rapid.ID[ocs.Port]).Draw(t, "protected")
		inner := ocstest.New(8, have)
		sw := protecting(t, inner, protected...)
		for _, c := range []ocs.Change{ocs.Diff(have, want), {Add: want}} { // planned, and blind
			inner.Set(have)
			_, _ = sw.Apply(context.Background(), c)
			after, _ := inner.CrossConnects(context.Background())
			for _, p := range protected {
				for _, held := range have.At(p) {
					if !after.Has(held) {
						t.Fatalf("%v of protected port %d went dark by %v", held, p, c)
					}
				}
				if len(after.At(p)) != len(have.At(p)) {
					t.Fatalf("protected port %d was moved by %v", p, c)
				}
			}
		}
	})
}

type restarter struct {
	*ocstest.Switch
	did []string
}

func (r *restarter) BootMode(context.Context) (ocs.BootMode, error) { return ocs.BootDark, nil }
func (r *restarter) SetBootMode(context.Context, ocs.BootMode) error {
	r.did = append(r.did, "boot mode")
	return nil
}
func (r *restarter) Restart(context.Context) error { r.did = append(r.did, "restart"); return nil }
func (r *restarter) Shutters(context.Context, ...ocs.Port) (map[ocs.Port]bool, error) {
	return map[ocs.Port]bool{1: true}, nil
}
func (r *restarter) SetShutters(_ context.Context, _ bool, ports ...ocs.Port) error {
	r.did = append(r.did, "shutters "+ocs.FormatPorts(ports))
	return nil
}

// Ensure the capabilities that could darken a protected port are guarded, and
// that others pass.
func TestGuard_Capabilities(t *testing.T) {
	ctx := t.Context()
	inner := &restarter{Switch: ocstest.New(8, ocs.Map{})}
	sw := protecting(t, inner, 3)
	s, _ := ocs.As[ocs.Shutter](sw)
	r, _ := ocs.As[ocs.Restarter](sw)
	for name, err := range map[string]error{
		"shutter": s.SetShutters(ctx, true, 2, 3), "all shutters": s.SetShutters(ctx, true),
		"boot mode": r.SetBootMode(ctx, ocs.BootDark), "restart": r.Restart(ctx),
	} {
		if !errors.Is(err, ocs.ErrInterlock) {
			t.Errorf("%s: err=%v", name, err)
		}
	}
	if err := s.SetShutters(ctx, true, 2); err != nil {
		t.Error(err)
	}
	if m, err := r.BootMode(ctx); m != ocs.BootDark || err != nil {
		t.Error(m, err)
	}
	if m, err := s.Shutters(ctx); !m[1] || err != nil {
		t.Error(m, err)
	}
	if len(inner.did) != 1 || inner.did[0] != "shutters 2" {
		t.Errorf("did %v", inner.did)
	}
	plain := protecting(t, ocstest.New(8, ocs.Map{}), 3)
	if _, ok := ocs.As[ocs.Shutter](plain); ok {
		t.Error("a switch without shutters has got some")
	}
}
