package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// Light is a line of the truth log of an emulated switch: an egress that had the settled light of an ingress.
type Light struct {
	Switch  string   `json:"switch"`
	Ingress ocs.Port `json:"ingress"`
	Egress  ocs.Port `json:"egress"`
	FromNS  int64    `json:"from_ns"`  // it had settled
	UntilNS int64    `json:"until_ns"` // it began to go; MaxInt64: it has not
}

// Path returns the cross-connect that the light takes.
func (l Light) Path() ocs.CrossConnect { return ocs.CrossConnect{Ingress: l.Ingress, Egress: l.Egress} }

func (l Light) validate() error {
	switch {
	case l.Switch == "":
		return fmt.Errorf("the light of %v needs a switch", l.Path())
	case !l.Ingress.Valid() || !l.Egress.Valid():
		return fmt.Errorf("light of %v: ports are 1 to %d", l.Path(), ocs.MaxPort)
	case l.UntilNS < l.FromNS:
		return fmt.Errorf("the light of %v goes at %d, before it comes at %d", l.Path(), l.UntilNS, l.FromNS)
	}
	return nil
}

// Change is a line of the truth log, too: cross-connects that a switch has removed and made at one moment, in its own
// words.
type Change struct {
	Switch string  `json:"switch"`
	AtNS   int64   `json:"at_ns"` // not before the first effect; see the package comment for how soon after it
	Remove ocs.Map `json:"remove"`
	Add    ocs.Map `json:"add"`
	By     string  `json:"by,omitempty"` // who asked for it, for people: "session 2 (TL1, admin at 127.0.0.1)"
}

// Circuits returns the change in the words of package ocs.
func (c Change) Circuits() ocs.Change { return ocs.Change{Remove: c.Remove, Add: c.Add} }

func (c Change) validate() error {
	if c.Switch == "" {
		return fmt.Errorf("the change %v needs a switch", c.Circuits())
	}
	return nil
}

// Truth is what switches did with circuits and light, in no particular order. Truth of several switches, or of one in
// pieces, is joined with [Truth.Join].
type Truth struct {
	Changes []Change
	Lights  []Light
}

// Join returns all of t and u. Neither is changed.
func (t Truth) Join(u Truth) Truth {
	return Truth{Changes: slices.Concat(t.Changes, u.Changes), Lights: slices.Concat(t.Lights, u.Lights)}
}

// Generations returns, by port, how many changes of a switch have touched it. Ports that are not in the result were left
// alone: their circuits are still of generation 0.
func (t Truth) Generations(sw string) map[ocs.Port]int {
	g := map[ocs.Port]int{}
	for _, c := range t.Changes {
		if c.Switch == sw {
			for _, p := range c.Circuits().Ports() {
				g[p]++
			}
		}
	}
	return g
}

// Disturbance is something that happened to a port which was to be left alone.
type Disturbance struct {
	Switch string
	Port   ocs.Port
	AtNS   int64
	// Change is what touched the port; nil if its light went while the switch reported no change, as with a
	// shutter, a fibre, or a restart that puts the same circuits back.
	Change *Change
}

// String returns one sentence.
func (d Disturbance) String() string {
	if d.Change == nil {
		return fmt.Sprintf("the light at port %d of %s went, and no circuit was changed", d.Port, d.Switch)
	}
	by := ""
	if d.Change.By != "" {
		by = " by " + d.Change.By
	}
	return fmt.Sprintf("port %d of %s was changed%s: %v", d.Port, d.Switch, by, near(d.Change.Circuits(), d.Port))
}

// Bystanders returns what happened to ports that a change was to leave alone, those of another job on the same
// switch, in order of time and port: nothing, if the control plane keeps its promise. The light of a circuit that is
// changed goes with the change and is not told again.
func (t Truth) Bystanders(sw string, ports ...ocs.Port) []Disturbance {
	var all []Disturbance
	changed := map[ocs.Port][]int64{} // when
	for i := range t.Changes {
		c := &t.Changes[i]
		if c.Switch != sw {
			continue
		}
		for _, p := range c.Circuits().Ports() {
			if slices.Contains(ports, p) {
				all = append(all, Disturbance{sw, p, c.AtNS, c})
				changed[p] = append(changed[p], c.AtNS)
			}
		}
	}
	for _, l := range t.Lights {
		if l.Switch != sw || l.UntilNS == math.MaxInt64 {
			continue
		}
		for _, p := range []ocs.Port{l.Ingress, l.Egress} {
			// A change is stamped at or soon after the moment its light goes.
			told := slices.ContainsFunc(changed[p], func(at int64) bool { return l.UntilNS <= at && at-l.UntilNS <= stampNS })
			if slices.Contains(ports, p) && !told {
				all = append(all, Disturbance{Switch: sw, Port: p, AtNS: l.UntilNS})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Disturbance) int { return cmp.Or(cmp.Compare(a.AtNS, b.AtNS), cmp.Compare(a.Port, b.Port)) })
	return all
}

// stampNS is how late the stamp of a change may be for Bystanders to see that a light went with it. Nothing
// depends on it but which of two sentences is told.
const stampNS = 50e6

// near returns the part of a change that touches one of ports.
func near(c ocs.Change, ports ...ocs.Port) ocs.Change {
	part := func(m ocs.Map) ocs.Map {
		var ccs []ocs.CrossConnect
		for cc := range m.All() {
			if slices.Contains(ports, cc.Ingress) || slices.Contains(ports, cc.Egress) {
				ccs = append(ccs, cc)
			}
		}
		return ocs.MustMap(ccs...) // a part of a matching is one
	}
	return ocs.Change{Remove: part(c.Remove), Add: part(c.Add)}
}
