package loss_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/calibration/loss"
	"github.com/ocslab/ocslab/ocs"
)

// some draws some of the ports, at least one.
func some(t *rapid.T, ports []ocs.Port, name string) []ocs.Port {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(ports), 1, len(ports), rapid.ID[ocs.Port]).Draw(t, name)
}

// made counts how often each path is made, and fails when a map is not valid.
func made(t rapid.TB, g ocs.Geometry, maps []ocs.Map) map[ocs.CrossConnect]int {
	paths := map[ocs.CrossConnect]int{}
	for _, m := range maps {
		if err := g.Check(m); err != nil {
			t.Fatalf("map %v: %v", m, err)
		}
		if m.Len() == 0 {
			t.Fatal("an empty map")
		}
		for c := range m.All() {
			paths[c]++
		}
	}
	return paths
}

// Every path once, in the fewest maps there can be.
func TestOrder_TwoSided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := ocs.TwoSided(rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "m"))
		in, out := some(t, g.IngressPorts(), "ingress"), some(t, g.EgressPorts(), "egress")
		maps, err := loss.Order(g, in, out)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(maps), max(len(in), len(out)); got != want {
			t.Errorf("%d maps, want %d", got, want)
		}
		paths := made(t, g, maps)
		for _, i := range in {
			for _, j := range out {
				if n := paths[ocs.CrossConnect{Ingress: i, Egress: j}]; n != 1 {
					t.Errorf("%d>%d is made %d times", i, j, n)
				}
			}
		}
		if got, want := len(paths), len(in)*len(out); got != want {
			t.Errorf("%d paths, want %d", got, want)
		}
	})
}

// Of a single-sided switch: each way of each pair once, the other way only if light enters there, too.
func TestOrder_SingleSided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := ocs.SingleSided(rapid.IntRange(2, 30).Draw(t, "n"))
		ports := some(t, g.Ports(), "ports")
		lit := ports
		if !rapid.Bool().Draw(t, "all have light") {
			lit = some(t, ports, "lit")
		}
		maps, err := loss.Order(g, lit, ports)
		if err != nil {
			t.Fatal(err)
		}
		paths := made(t, g, maps)
		want := 0
		for _, i := range lit {
			for _, j := range ports {
				if i == j {
					continue
				}
				want++
				if n := paths[ocs.CrossConnect{Ingress: i, Egress: j}]; n != 1 {
					t.Errorf("%d>%d is made %d times", i, j, n)
				}
			}
		}
		if len(paths) != want {
			t.Errorf("%d paths, want %d", len(paths), want)
		}
		n, l := len(ports), len(lit)
		switch {
		case want == 0:
		case l == n && n%2 == 0 && len(maps) != 2*(n-1), l == n && n%2 == 1 && len(maps) != 2*n:
			t.Errorf("%d maps of %d ports with light", len(maps), n)
		case len(maps) > n+l-2+2:
			t.Errorf("%d maps of %d ports, %d with light: two more than any order needs", len(maps), n, l)
		}
	})
}

func TestOrder_Refused(t *testing.T) {
	for _, tc := range []struct {
		name    string
		g       ocs.Geometry
		in, out []ocs.Port
		want    error
	}{
		{"unknown geometry", ocs.Geometry{}, []ocs.Port{1}, []ocs.Port{2}, ocs.ErrNotSupported},
		{"transceivers", ocs.Transceivers(1, 8), []ocs.Port{1}, []ocs.Port{9}, ocs.ErrNotSupported},
		{"egress as ingress", ocs.TwoSided(4, 4), []ocs.Port{5}, []ocs.Port{6}, ocs.ErrPort},
		{"no such egress", ocs.TwoSided(4, 4), []ocs.Port{1}, []ocs.Port{9}, ocs.ErrPort},
	} {
		if _, err := loss.Order(tc.g, tc.in, tc.out); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}
