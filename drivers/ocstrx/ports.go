package ocstrx

import (
	"fmt"
	"math/bits"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// aim is where the light of a lane goes. The zero aim is darkness.
type aim struct {
	path ocst.Path
	to   uint8 // the lane whose receiver it is, of LoopPath; else 0
}

// aims are those of the lanes of a module.
type aims [ocst.Lanes]aim

// aimsOf returns where a module says that its light goes.
func aimsOf(s ocst.LaneStatus) (a aims) {
	if !lit(s.State) {
		return a
	}
	for lane, path := range s.Path {
		a[lane].path = path
		if path == ocst.LoopPath {
			a[lane].to = s.Loop[lane]
		}
	}
	return a
}

// lit reports whether modules carry light in that state.
func lit(s ocst.State) bool {
	switch s {
	case ocst.StateReady, ocst.StateArmed, ocst.StateBreak, ocst.StateSettle, ocst.StateLocking:
		return true
	}
	return false
}

// circuit returns what a lane makes with its aim; false when it is dark.
func (sw *Switch) circuit(slot, lane int, a aim) (ocs.CrossConnect, bool) {
	n := ocs.Port(sw.geo.Ingress)
	in := ocs.Port(slot*ocst.Lanes + lane + 1)
	switch a.path {
	case ocst.Path1:
		return ocs.CrossConnect{Ingress: in, Egress: n + in}, true
	case ocst.Path2:
		return ocs.CrossConnect{Ingress: in, Egress: 2*n + in}, true
	case ocst.LoopPath:
		return ocs.CrossConnect{Ingress: in, Egress: 3*n + ocs.Port(slot*ocst.Lanes+int(a.to)+1)}, true
	}
	return ocs.CrossConnect{}, false
}

// wish is a circuit to remove or to add, as its module sees it.
type wish struct {
	circuit ocs.CrossConnect
	lane    int
	aim     aim
}

// locate finds the module and lane of a circuit. An error matches [ocs.ErrPort].
func (sw *Switch) locate(c ocs.CrossConnect) (slot int, w wish, err error) {
	g := sw.geo
	bad := &ocs.PortError{Geometry: g, CrossConnect: c}
	switch {
	case !g.IsIngress(c.Ingress):
		bad.Port, bad.Reason = c.Ingress, "is not an ingress port"
	case !g.IsEgress(c.Egress):
		bad.Port, bad.Reason = c.Egress, "is not an egress port"
	case !g.Reaches(c.Ingress, c.Egress):
		bad.Port, bad.Reason = c.Egress, fmt.Sprintf("cannot be reached from port %d", c.Ingress)
	default:
		in, out := int(c.Ingress-1), int(c.Egress-1)
		w = wish{circuit: c, lane: in % ocst.Lanes}
		w.aim.path = []ocst.Path{ocst.Path1, ocst.Path2, ocst.LoopPath}[out/g.Ingress-1]
		if w.aim.path == ocst.LoopPath {
			w.aim.to = uint8(out % ocst.Lanes)
		}
		return in / ocst.Lanes, w, nil
	}
	return 0, w, bad
}

// share is what a change wants of one module.
type share struct {
	slot        int
	remove, add []wish
}

// split divides a change by modules, in ascending order. An error matches [ocs.ErrPort].
func (sw *Switch) split(c ocs.Change) ([]share, error) {
	all := make([]share, len(sw.in))
	for r := range c.Remove.All() {
		slot, w, err := sw.locate(r)
		if err != nil {
			return nil, err
		}
		all[slot].remove = append(all[slot].remove, w)
	}
	for a := range c.Add.All() {
		slot, w, err := sw.locate(a)
		if err != nil {
			return nil, err
		}
		all[slot].add = append(all[slot].add, w)
	}
	some := all[:0]
	for slot, s := range all {
		if s.slot = slot; len(s.remove)+len(s.add) > 0 {
			some = append(some, s)
		}
	}
	return some, nil
}

// removed returns the aims that are left of those of a module without what the share
// removes. An error matches [ocs.ErrNotConnected].
func (s share) removed(now aims) (aims, error) {
	rest := now
	for _, r := range s.remove {
		if rest[r.lane] != r.aim {
			return now, fmt.Errorf("remove %v: %w", r.circuit, ocs.ErrNotConnected)
		}
		rest[r.lane] = aim{}
	}
	return rest, nil
}

// target returns the aims that a module is to have which has some now. Errors match
// [ocs.ErrNotConnected] and [ocs.ErrConflict].
func (sw *Switch) target(s share, now aims) (aims, error) {
	rest, err := s.removed(now)
	if err != nil {
		return now, err
	}
	want := rest
	for _, a := range s.add {
		if have, busy := sw.circuit(s.slot, a.lane, rest[a.lane]); busy && have != a.circuit {
			return now, &ocs.ConflictError{Want: a.circuit, Have: have}
		}
		want[a.lane] = a.aim
	}
	for _, a := range s.add {
		if other, shared := want.rival(a.lane); shared {
			have, _ := sw.circuit(s.slot, other, want[other])
			return now, &ocs.ConflictError{Want: a.circuit, Have: have}
		}
	}
	return want, nil
}

// rival returns a lane that cannot have its aim together with that of the one given: both
// would be heard by one receiver, or a receiver would listen to two places.
func (a aims) rival(lane int) (other int, found bool) {
	for other, o := range a {
		switch {
		case other == lane:
		case a[lane].path == ocst.LoopPath && o.path == ocst.LoopPath && o.to == a[lane].to,
			a[lane].path == ocst.LoopPath && int(a[lane].to) == other && o.onFibre(),
			a[lane].onFibre() && o.path == ocst.LoopPath && int(o.to) == lane:
			return other, true
		}
	}
	return 0, false
}

func (a aim) onFibre() bool { return a.path == ocst.Path1 || a.path == ocst.Path2 }

// moves are what a module has to be told so that its lanes get their aims.
type moves struct {
	lanes [ocst.Mixed]uint8 // mask of the lanes to switch, by path
	loop  *ocst.Permutation // to be staged before; nil if that is staged already
}

// plan returns the moves from what a module says to what is wanted of it. Lanes that stay
// on the loop stay where they go.
func plan(now ocst.LaneStatus, want aims) (moves, error) {
	var m moves
	var loop [ocst.Lanes]int
	have := aimsOf(now)
	for lane, a := range want {
		if a != have[lane] {
			m.lanes[a.path] |= 1 << lane
		}
		loop[lane] = -1
		if a.path == ocst.LoopPath {
			loop[lane] = int(a.to)
		}
	}
	if m.none() {
		return m, nil
	}
	// The commit takes what is staged, whoever has staged it.
	p, err := now.Loop.Complete(loop)
	if err == nil && p != now.Next {
		m.loop = &p
	}
	return m, err
}

// none reports whether nothing has to be switched.
func (m moves) none() bool { return m.lanes == [ocst.Mixed]uint8{} }

// paths returns to how many paths lanes are switched.
func (m moves) paths() (n int) {
	for _, mask := range m.lanes {
		n += (bits.Len8(mask) + 7) / 8
	}
	return n
}
