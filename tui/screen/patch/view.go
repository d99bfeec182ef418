package patch

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// recent is how long a change of others is marked in the field, and told how long above it.
const (
	recent = time.Minute
	told   = 5 * time.Minute
)

// view is the switch that is shown and what the screen holds of it, at a moment. It is made
// anew for each frame and each key, so nothing in it can be out of date.
type view struct {
	e         screen.Env
	sw        *live.Switch // nil if the lab has none
	g         ocs.Geometry
	ins, outs axis
	f         field       // its cursor is in the field, or in a row of the list
	rows      []place     // of the list, while that is shown
	tx, rx    []*live.NIC // by place on ins and outs
	drifted   []ocs.Map   // circuits that others have made lately
	mapOld    bool
	powerOld  bool
}

// axis is the ports along one side of the field, in ascending order.
type axis struct {
	first ocs.Port
	n     int
	list  []ocs.Port // instead, where ports are not known to follow each other
}

// at returns the port of a place from 0 to n-1.
func (a axis) at(i int) ocs.Port {
	if a.list != nil {
		return a.list[i]
	}
	return a.first + ocs.Port(i)
}

// index returns the place of a port, -1 if it has none.
func (a axis) index(p ocs.Port) int {
	if a.list != nil {
		if i, ok := slices.BinarySearch(a.list, p); ok {
			return i
		}
		return -1
	}
	if p < a.first || int(p-a.first) >= a.n {
		return -1
	}
	return int(p - a.first)
}

// look returns the view of the switch that is chosen.
func (s *Screen) look(e screen.Env) *view {
	v := &view{e: e}
	if e.State == nil || len(e.State.Switches) == 0 {
		return v
	}
	if v.sw = e.State.Switch(s.name); v.sw == nil {
		v.sw = e.State.Switches[0]
	}
	v.f = field{zoom: zoomAuto}
	if f := s.fields[v.sw.Name]; f != nil {
		v.f = *f
	}
	v.g = v.sw.Identity.Geometry
	v.mapOld, v.powerOld = v.sw.MapStale(e.Now), v.sw.PowerStale(e.Now)
	v.axes()
	v.attach()
	for _, d := range v.sw.Drift {
		if e.Now.Sub(d.At) < recent {
			v.drifted = append(v.drifted, d.Change.Add)
		}
	}
	v.f.at = v.inside(v.f.at)
	if s.asList {
		// Nothing may be done to what the filter hides.
		if v.rows = s.rows(v); len(v.rows) == 0 {
			v.f.at = place{}
		} else {
			v.f.at = v.rows[s.rowAt(v, v.rows)]
		}
	}
	return v
}

// axes finds the ports. A device that does not tell its geometry has those that are in use
// and those of NICs.
func (v *view) axes() {
	if v.g.Known() {
		v.ins, v.outs = axis{first: max(v.g.IngressBase, 1), n: v.g.Ingress}, axis{first: v.g.EgressBase, n: v.g.Egress}
		switch {
		case v.g.SingleSided:
			v.outs = v.ins
		case v.g.EgressBase == 0:
			v.outs.first = v.ins.first + ocs.Port(v.g.Ingress)
		}
		return
	}
	var ins, outs []ocs.Port
	for c := range v.sw.Map.All() {
		ins, outs = append(ins, c.Ingress), append(outs, c.Egress)
	}
	for _, n := range v.e.State.NICs {
		if n.Tx.Switch == v.sw.Name {
			ins = append(ins, n.Tx.Port)
		}
		if n.Rx.Switch == v.sw.Name {
			outs = append(outs, n.Rx.Port)
		}
	}
	v.ins, v.outs = listed(ins), listed(outs)
}

func listed(ports []ocs.Port) axis {
	slices.Sort(ports)
	ports = slices.Compact(ports)
	return axis{n: len(ports), list: ports}
}

// attach finds the NICs at the ports.
func (v *view) attach() {
	v.tx, v.rx = make([]*live.NIC, v.ins.n), make([]*live.NIC, v.outs.n)
	for _, n := range v.e.State.NICs {
		if n.Tx.Switch == v.sw.Name {
			if i := v.ins.index(n.Tx.Port); i >= 0 {
				v.tx[i] = n
			}
		}
		if n.Rx.Switch == v.sw.Name {
			if i := v.outs.index(n.Rx.Port); i >= 0 {
				v.rx[i] = n
			}
		}
	}
}

// inside returns the place, or the nearest that there is in the field; the zero place if
// the field has no ports.
func (v *view) inside(p place) place {
	if v.ins.n == 0 || v.outs.n == 0 {
		return place{}
	}
	if p == (place{}) {
		return place{v.ins.at(0), v.outs.at(0)}
	}
	return place{v.ins.nearest(p.in), v.outs.nearest(p.out)}
}

// nearest returns the port, or the one of the axis that is next to it; 0 for 0.
func (a axis) nearest(p ocs.Port) ocs.Port {
	switch {
	case p == 0 || a.index(p) >= 0:
		return p
	case p < a.at(0):
		return a.at(0)
	}
	last := a.at(0)
	for i := range a.n {
		if q := a.at(i); q <= p {
			last = q
		}
	}
	return last
}

// sender is the NIC whose light enters at an ingress, receiver that to which the light of an
// egress goes; nil if there is none.
func (v *view) sender(in ocs.Port) *live.NIC {
	if i := v.ins.index(in); i >= 0 {
		return v.tx[i]
	}
	return nil
}

func (v *view) receiver(out ocs.Port) *live.NIC {
	if i := v.outs.index(out); i >= 0 {
		return v.rx[i]
	}
	return nil
}

// nicAt is the NIC at a port in a role, nil if there is none.
func (v *view) nicAt(p ocs.Port, in bool) *live.NIC {
	if in {
		return v.sender(p)
	}
	return v.receiver(p)
}

// name is what is at a port: its NIC, or its label, or what it is of a transceiver; "" if nothing
// is known.
func (v *view) name(p ocs.Port, in bool) string {
	if n := v.nicAt(p, in); n != nil {
		return n.Name
	}
	if l := v.sw.Labels[p]; l != "" {
		return l
	}
	return v.lane(p)
}

// lane is what a port of a bundle of transceivers is, in short: "m2.5 f1" is fibre 1 of lane 5 of
// module 2. It is "" for others.
func (v *view) lane(p ocs.Port) string {
	if v.g.Lanes == 0 || !v.g.Has(p) {
		return ""
	}
	n := int(p - v.ins.first)
	lane := n % v.g.Ingress
	return "m" + itoa(lane/v.g.Lanes+1) + "." + itoa(lane%v.g.Lanes+1) + " " + [...]string{"tx", "f1", "f2", "rx"}[min(n/v.g.Ingress, 3)]
}

// peer is the circuit that a port is in, in a role.
func (v *view) peer(p ocs.Port, in bool) (ocs.CrossConnect, bool) {
	if in {
		out, ok := v.sw.Map.EgressOf(p)
		return ocs.CrossConnect{Ingress: p, Egress: out}, ok
	}
	from, ok := v.sw.Map.IngressOf(p)
	return ocs.CrossConnect{Ingress: from, Egress: p}, ok
}

// circuitAt returns the circuit at a place: the pair, or that of the one port.
func (v *view) circuitAt(p place) (ocs.CrossConnect, bool) {
	switch {
	case p.out == 0:
		return v.peer(p.in, true)
	case p.in == 0:
		return v.peer(p.out, false)
	}
	return p.circuit(), v.sw.Map.Has(p.circuit())
}

// light is what is known of the light of a circuit.
type light uint8

const (
	unmeasured light = iota
	lit
	dark
)

// light tells from the power that leaves the switch.
func (v *view) light(c ocs.CrossConnect) light {
	p, ok := v.sw.Power[c.Egress]
	switch {
	case !ok || v.powerOld:
		return unmeasured
	case p < ocs.NoLight:
		return dark
	}
	return lit
}

// loss is what a circuit takes of the light, where both ends are measured and there is some.
func (v *view) loss(c ocs.CrossConnect) (ocs.DB, bool) {
	in, ok := v.sw.Power[c.Ingress]
	out, also := v.sw.Power[c.Egress]
	if !ok || !also || in < ocs.NoLight || out < ocs.NoLight {
		return 0, false
	}
	return in.Sub(out), true
}

// byOthers reports whether somebody else has made a circuit lately.
func (v *view) byOthers(c ocs.CrossConnect) bool {
	for _, m := range v.drifted {
		if m.Has(c) {
			return true
		}
	}
	return false
}

func (v *view) protected(c ocs.CrossConnect) bool {
	return len(v.sw.Protected) > 0 && (v.sw.Protected[c.Ingress] || v.sw.Protected[c.Egress])
}

// reaches reports whether a pair can be a circuit at all.
func (v *view) reaches(in, out ocs.Port) bool {
	return v.g.Reaches(in, out) && !(v.g.SingleSided && in == out)
}

// inTheWay returns the circuits that would have to go for c.
func (v *view) inTheWay(c ocs.CrossConnect) []ocs.CrossConnect {
	way := v.sw.Map.Rivals(c)
	if !v.g.SingleSided && v.g.Lanes == 0 {
		return way
	}
	for x := range v.sw.Map.All() {
		if v.g.Excludes(c, x) && !slices.Contains(way, x) {
			way = append(way, x)
		}
	}
	return way
}

// releases returns the port that stands for a circuit when it is to be disconnected. Ports of
// one number on both sides can be in two circuits; then the other end is taken.
func (v *view) releases(c ocs.CrossConnect) ocs.Port {
	if len(v.sw.Map.At(c.Ingress)) > 1 && len(v.sw.Map.At(c.Egress)) == 1 {
		return c.Egress
	}
	return c.Ingress
}

// comparePlaces orders by ingress, then egress; single egress ports come last.
func comparePlaces(a, b place) int {
	if (a.in == 0) != (b.in == 0) {
		if a.in == 0 {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.out, b.out))
}

func itoa(n int) string { return strconv.Itoa(n) }

func count(n int, what string) string { return natural.Count(n, what) }

func age(d time.Duration) string { return widget.Age(d) }

// decimals writes a power or a loss without its unit.
func decimals(x float64, n int) string { return strconv.FormatFloat(x, 'f', n, 64) }

// power writes the power at a port without its unit; "" where it is not measured.
func (v *view) power(p ocs.Port) string {
	x, ok := v.sw.Power[p]
	switch {
	case !ok:
		return ""
	case x < -90: // also minus infinity
		return "none"
	}
	return decimals(float64(x), 2)
}
