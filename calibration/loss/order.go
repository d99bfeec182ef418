package loss

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// Order returns maps that together make every path from one of the ingress ports to one of
// the egress ports exactly once, in as few maps as can be: see the package comment. Of a
// single-sided switch, a port is never joined to itself; a path whose ends are the same
// pair the other way round is another one.
//
// An error matches [ocs.ErrPort] when the switch has no such port in that role, or
// [ocs.ErrNotSupported] when it does not reach every egress from every ingress, as
// transceivers do not. The geometry must be known.
func Order(g ocs.Geometry, ingress, egress []ocs.Port) ([]ocs.Map, error) {
	ingress, egress, err := portsOf(g, ingress, egress)
	if err != nil {
		return nil, err
	}
	if g.SingleSided {
		return tournament(ingress, egress)
	}
	n, m := len(ingress), len(egress)
	if n == 0 || m == 0 {
		return nil, nil
	}
	maps := make([]ocs.Map, 0, max(n, m))
	for k := range max(n, m) {
		ccs := make([]ocs.CrossConnect, 0, min(n, m))
		for x := range min(n, m) {
			// The shorter side stays, the longer is gone along.
			c := ocs.CrossConnect{Ingress: ingress[x%n], Egress: egress[(x+k)%m]}
			if n > m {
				c = ocs.CrossConnect{Ingress: ingress[(x+k)%n], Egress: egress[x]}
			}
			ccs = append(ccs, c)
		}
		one, err := ocs.NewMap(ccs...)
		if err != nil {
			return nil, err
		}
		maps = append(maps, one)
	}
	return maps, nil
}

// tournament returns the maps of a single-sided switch. In the first rounds all ports meet,
// those with light sending, the lower one if both have; in the others those with light only,
// the higher one sending.
func tournament(ingress, egress []ocs.Port) ([]ocs.Map, error) {
	sends, takes := map[ocs.Port]bool{}, map[ocs.Port]bool{}
	for _, p := range ingress {
		sends[p] = true
	}
	var both []ocs.Port
	for _, p := range egress {
		takes[p] = true
		if sends[p] {
			both = append(both, p)
		}
	}
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(ingress, egress))))
	first := func(a, b ocs.Port) (ocs.CrossConnect, bool) {
		if sends[a] && takes[b] {
			return ocs.CrossConnect{Ingress: a, Egress: b}, true
		}
		return ocs.CrossConnect{Ingress: b, Egress: a}, sends[b] && takes[a]
	}
	second := func(a, b ocs.Port) (ocs.CrossConnect, bool) {
		return ocs.CrossConnect{Ingress: b, Egress: a}, true
	}
	maps, err := rounds(all, first)
	if err != nil {
		return nil, err
	}
	back, err := rounds(both, second)
	return append(maps, back...), err
}

// rounds lets every two ports meet once by the circle method; path says, of a lower and
// a higher port, which path that is, if any.
func rounds(ports []ocs.Port, path func(a, b ocs.Port) (ocs.CrossConnect, bool)) ([]ocs.Map, error) {
	circle := slices.Clone(ports)
	if len(circle)%2 == 1 {
		circle = append(circle, 0) // whoever meets it rests
	}
	var maps []ocs.Map
	for range len(circle) - 1 {
		var ccs []ocs.CrossConnect
		for i := range len(circle) / 2 {
			a, b := circle[i], circle[len(circle)-1-i]
			if a > b {
				a, b = b, a
			}
			if a == 0 {
				continue
			}
			if c, ok := path(a, b); ok {
				ccs = append(ccs, c)
			}
		}
		if len(ccs) > 0 {
			m, err := ocs.NewMap(ccs...)
			if err != nil {
				return nil, err
			}
			maps = append(maps, m)
		}
		last := circle[len(circle)-1]
		copy(circle[2:], circle[1:len(circle)-1])
		circle[1] = last
	}
	return maps, nil
}

// portsOf checks ports and puts them in order. The switch must reach all from all.
func portsOf(g ocs.Geometry, ingress, egress []ocs.Port) (in, out []ocs.Port, err error) {
	if !g.Known() {
		return nil, nil, fmt.Errorf("the switch does not say how many ports it has: %w", ocs.ErrNotSupported)
	}
	if g.Lanes > 0 {
		return nil, nil, fmt.Errorf("%v reach a few egress ports from each ingress only, so they have no map of losses: %w", g, ocs.ErrNotSupported)
	}
	in = slices.Compact(slices.Sorted(slices.Values(ingress)))
	out = slices.Compact(slices.Sorted(slices.Values(egress)))
	for _, p := range in {
		if !g.IsIngress(p) {
			return nil, nil, &ocs.PortError{Port: p, Geometry: g, Reason: "is not an ingress port"}
		}
	}
	for _, p := range out {
		if !g.IsEgress(p) {
			return nil, nil, &ocs.PortError{Port: p, Geometry: g, Reason: "is not an egress port"}
		}
	}
	return in, out, nil
}
