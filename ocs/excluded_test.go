package ocs

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestExcluded: what stands in the way of a cross-connect is found by looking at two ports,
// and is the same as looking at all that are there, in their order.
func TestExcluded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.SampledFrom([]Geometry{
			Transceivers(2, 4), Transceivers(1, 8), SingleSided(8), TwoSided(5, 7), {},
			{Ingress: 6, SingleSided: true, IngressBase: 11},
		}).Draw(t, "geometry")
		in, out := g.IngressPorts(), g.EgressPorts()
		if !g.Known() {
			in, out = []Port{1, 2}, []Port{2, 3}
		}
		draw := func() CrossConnect {
			return CrossConnect{rapid.SampledFrom(in).Draw(t, "ingress"), rapid.SampledFrom(out).Draw(t, "egress")}
		}
		// Also what the device cannot hold.
		var m Map
		for range 12 {
			if more, err := m.Plus(MustMap(draw())); err == nil {
				m = more
			}
		}
		c := draw()
		var want []CrossConnect
		for d := range m.All() {
			if g.Excludes(c, d) {
				want = append(want, d)
			}
		}
		if got := g.excluded(m, c); !slices.Equal(got, want) {
			t.Fatalf("%v, %v beside %v: got %v, want %v", g, c, m, got, want)
		}
	})
}

// TestParseGeometry_Ports: a bundle is no larger than there are numbers of ports.
func TestParseGeometry_Ports(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"2047 modules of 8 lanes": true, "2048 modules of 8 lanes": false, "4096 modules of 16 lanes": false,
	} {
		if g, err := ParseGeometry(text); (err == nil) != good {
			t.Errorf("%s: %v, %v", text, g, err)
		}
	}
}
