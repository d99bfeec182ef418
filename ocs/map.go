package ocs

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"
)

// Map is a one-to-one partial matching of ingress to egress ports: every
// ingress and every egress appears at most once. It cannot be built otherwise.
//
// A Map is an immutable value; the zero Map is empty. It is safe for
// concurrent use. Compare with [Map.Equal].
type Map struct {
	byIngress []CrossConnect // ascending by ingress
	byEgress  []CrossConnect // the same, ascending by egress
}

// NewMap returns the map that holds exactly ccs. Two cross-connects that share
// an ingress or an egress, or name the same path twice, give an error that
// matches [ErrConflict]; a port outside 1..MaxPort one that matches [ErrPort].
func NewMap(ccs ...CrossConnect) (Map, error) {
	if len(ccs) == 0 {
		return Map{}, nil
	}
	m := Map{byIngress: slices.Clone(ccs), byEgress: slices.Clone(ccs)}
	sortBy(m.byIngress, func(a, b CrossConnect) int { return cmp.Compare(a.Ingress, b.Ingress) })
	sortBy(m.byEgress, func(a, b CrossConnect) int { return cmp.Compare(a.Egress, b.Egress) })
	for i, c := range m.byIngress {
		for _, p := range []Port{c.Ingress, c.Egress} {
			if !p.Valid() {
				return Map{}, &PortError{Port: p, CrossConnect: c, Reason: fmt.Sprintf("is outside 1-%d", MaxPort)}
			}
		}
		if i > 0 && m.byIngress[i-1].Ingress == c.Ingress {
			return Map{}, &ConflictError{Want: c, Have: m.byIngress[i-1], Where: "the same map"}
		}
		if e := m.byEgress[i]; i > 0 && m.byEgress[i-1].Egress == e.Egress {
			return Map{}, &ConflictError{Want: e, Have: m.byEgress[i-1], Where: "the same map"}
		}
	}
	return m, nil
}

// sortBy sorts unless it is done, as it is for what devices and maps give.
func sortBy(ccs []CrossConnect, compare func(a, b CrossConnect) int) {
	if !slices.IsSortedFunc(ccs, compare) {
		slices.SortFunc(ccs, compare)
	}
}

// MustMap is [NewMap] for maps known to be right; it panics otherwise.
func MustMap(ccs ...CrossConnect) Map {
	m, err := NewMap(ccs...)
	if err != nil {
		panic(err)
	}
	return m
}

// filter returns the cross-connects that keep accepts. A subset of a matching
// is a matching, so it cannot fail.
func (m Map) filter(keep func(CrossConnect) bool) Map {
	drop := func(c CrossConnect) bool { return !keep(c) }
	return Map{
		byIngress: slices.DeleteFunc(slices.Clone(m.byIngress), drop),
		byEgress:  slices.DeleteFunc(slices.Clone(m.byEgress), drop),
	}
}

// Len returns the number of cross-connects.
func (m Map) Len() int { return len(m.byIngress) }

// All yields the cross-connects in ascending order of ingress.
func (m Map) All() iter.Seq[CrossConnect] { return slices.Values(m.byIngress) }

// Slice returns the cross-connects in ascending order of ingress. The caller
// owns the slice.
func (m Map) Slice() []CrossConnect { return slices.Clone(m.byIngress) }

// EgressOf returns the egress that ingress is joined to.
func (m Map) EgressOf(ingress Port) (Port, bool) {
	i := sort.Search(len(m.byIngress), func(i int) bool { return m.byIngress[i].Ingress >= ingress })
	if i < len(m.byIngress) && m.byIngress[i].Ingress == ingress {
		return m.byIngress[i].Egress, true
	}
	return 0, false
}

// IngressOf returns the ingress that egress is joined to.
func (m Map) IngressOf(egress Port) (Port, bool) {
	i := sort.Search(len(m.byEgress), func(i int) bool { return m.byEgress[i].Egress >= egress })
	if i < len(m.byEgress) && m.byEgress[i].Egress == egress {
		return m.byEgress[i].Ingress, true
	}
	return 0, false
}

// Has reports whether m holds exactly c.
func (m Map) Has(c CrossConnect) bool {
	e, ok := m.EgressOf(c.Ingress)
	return ok && e == c.Egress
}

// At returns the cross-connects that use p at either end: none, one, or, where
// p is both an ingress and an egress, two.
func (m Map) At(p Port) []CrossConnect {
	var ccs []CrossConnect
	if e, ok := m.EgressOf(p); ok {
		ccs = append(ccs, CrossConnect{p, e})
	}
	if i, ok := m.IngressOf(p); ok && i != p {
		ccs = append(ccs, CrossConnect{i, p})
	}
	return ccs
}

// Rivals returns the cross-connects of m that c would displace: those other
// than c that share its ingress or its egress.
func (m Map) Rivals(c CrossConnect) []CrossConnect {
	var ccs []CrossConnect
	if e, ok := m.EgressOf(c.Ingress); ok && e != c.Egress {
		ccs = append(ccs, CrossConnect{c.Ingress, e})
	}
	if i, ok := m.IngressOf(c.Egress); ok && i != c.Ingress {
		ccs = append(ccs, CrossConnect{i, c.Egress})
	}
	return ccs
}

// Minus returns the cross-connects of m that o does not hold.
func (m Map) Minus(o Map) Map {
	return m.filter(func(c CrossConnect) bool { return !o.Has(c) })
}

// Plus returns m with those of o added. It fails as [NewMap] does; a
// cross-connect held by both is not a conflict.
func (m Map) Plus(o Map) (Map, error) {
	return NewMap(append(m.Slice(), o.Minus(m).byIngress...)...)
}

// Equal reports whether both hold the same cross-connects.
func (m Map) Equal(o Map) bool { return slices.Equal(m.byIngress, o.byIngress) }

// Ports returns every port used by m once, in ascending order.
func (m Map) Ports() []Port {
	ps := make([]Port, 0, 2*m.Len())
	for c := range m.All() {
		ps = append(ps, c.Ingress, c.Egress)
	}
	slices.Sort(ps)
	return slices.Compact(ps)
}

// Change takes one map to another: the cross-connects to remove and those to
// add. Its inverse exchanges the two.
type Change struct {
	Remove, Add Map
}

// Diff returns the smallest change that takes from to to.
func Diff(from, to Map) Change {
	return Change{Remove: from.Minus(to), Add: to.Minus(from)}
}

// Empty reports whether the change does nothing.
func (c Change) Empty() bool { return c.Remove.Len() == 0 && c.Add.Len() == 0 }

// Inverse returns the change that undoes c.
func (c Change) Inverse() Change { return Change{Remove: c.Add, Add: c.Remove} }

// ApplyTo returns m after the change. Removing what m does not hold gives an
// error that matches [ErrNotConnected], adding onto a busy port one that
// matches [ErrConflict]; m is never changed.
func (c Change) ApplyTo(m Map) (Map, error) {
	for r := range c.Remove.All() {
		if !m.Has(r) {
			return Map{}, fmt.Errorf("remove %v: %w", r, ErrNotConnected)
		}
	}
	rest := m.Minus(c.Remove)
	for a := range c.Add.All() {
		if rivals := rest.Rivals(a); len(rivals) > 0 {
			return Map{}, &ConflictError{Want: a, Have: rivals[0]}
		}
		if rest.Has(a) {
			return Map{}, &ConflictError{Want: a, Have: a}
		}
	}
	return rest.Plus(c.Add)
}

// Over returns what a device holds that has carried out c on m and takes over busy ports: what
// of m is in the way of c.Add is gone.
func (c Change) Over(m Map) Map {
	gone := make(map[CrossConnect]bool, c.Remove.Len())
	for x := range c.Remove.All() {
		gone[x] = true
	}
	for x := range c.Add.All() {
		for _, rival := range m.Rivals(x) {
			gone[rival] = true
		}
	}
	ccs := c.Add.Slice()
	for x := range m.All() {
		if !gone[x] && !c.Add.Has(x) {
			ccs = append(ccs, x)
		}
	}
	return MustMap(ccs...)
}

// Ports returns every port whose light the change may interrupt or bring, in
// ascending order.
func (c Change) Ports() []Port {
	ps := append(c.Remove.Ports(), c.Add.Ports()...)
	slices.Sort(ps)
	return slices.Compact(ps)
}

// String returns the change for people: "- 1>36 + 1>33,2>34", or "no change".
func (c Change) String() string {
	switch {
	case c.Empty():
		return "no change"
	case c.Add.Len() == 0:
		return "- " + c.Remove.String()
	case c.Remove.Len() == 0:
		return "+ " + c.Add.String()
	}
	return "- " + c.Remove.String() + " + " + c.Add.String()
}
