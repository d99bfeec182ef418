package ocs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Port is a fibre connector on a switch, numbered as the device numbers it,
// from 1 to [MaxPort]. Zero means no port.
type Port uint32

// MaxPort is the highest port number any supported device uses (portFormat of
// the optical-switch YANG module: 1..65535).
const MaxPort Port = 65535

// String returns the decimal number.
func (p Port) String() string { return strconv.FormatUint(uint64(p), 10) }

// Valid reports whether p is in 1..MaxPort. Whether a given device has the
// port is for [Geometry] to say.
func (p Port) Valid() bool { return p >= 1 && p <= MaxPort }

// CrossConnect is one light path from an ingress port to an egress port.
// It is written "3>35".
type CrossConnect struct {
	Ingress, Egress Port
}

// String returns the text form, "3>35".
func (c CrossConnect) String() string {
	return c.Ingress.String() + ">" + c.Egress.String()
}

// Valid reports whether both ports are in range.
func (c CrossConnect) Valid() bool { return c.Ingress.Valid() && c.Egress.Valid() }

// DBm is an absolute optical power in decibels relative to one milliwatt.
// No light at all is negative infinity.
type DBm float64

// DB is a ratio of optical powers in decibels: a loss, a gain, a tolerance.
type DB float64

// NoLight is the power below which a port counts as dark: no receiver of a data
// link works there, and monitors are near their floor.
const NoLight DBm = -45

// Add returns the power after a gain (or, negative, a loss).
func (p DBm) Add(g DB) DBm { return p + DBm(g) }

// Sub returns the ratio p/q.
func (p DBm) Sub(q DBm) DB { return DB(p - q) }

// Milliwatts returns the power in mW. Minus infinity dBm is 0 mW.
func (p DBm) Milliwatts() float64 { return math.Exp(float64(p) * (math.Ln10 / 10)) }

// Milliwatts returns the power in dBm of mw milliwatts; 0 and below give
// negative infinity.
func Milliwatts(mw float64) DBm {
	if mw <= 0 {
		return DBm(math.Inf(-1))
	}
	return DBm(10 * math.Log10(mw))
}

// String returns the power with two decimals and its unit, "-12.05 dBm".
func (p DBm) String() string { return fmt.Sprintf("%.2f dBm", float64(p)) }

// String returns the ratio with two decimals and its unit, "1.50 dB".
func (r DB) String() string { return fmt.Sprintf("%.2f dB", float64(r)) }

// Geometry is how the ports of a device are numbered and what may be joined.
//
// A two-sided N x M device has ingress ports 1..N and egress ports N+1..N+M
// unless IngressBase or EgressBase say otherwise. A single-sided device
// (product codes "<n>xCC") has ports 1..N, each of which may be either end of
// one light path, but of one only.
//
// A bundle of transceivers, which has [Geometry.Lanes], reaches from each ingress
// only a few egress ports: see [Transceivers].
type Geometry struct {
	Ingress int // number of ingress ports; of all ports when SingleSided
	Egress  int // number of egress ports; 0 when SingleSided

	// First ingress and egress port. Zero means 1 and Ingress+1, the
	// numbering of Polatis-style devices.
	IngressBase, EgressBase Port

	SingleSided bool

	// Lanes of each transceiver; zero for a matrix, which joins any ingress to
	// any egress.
	Lanes int
}

// Transceivers returns the geometry of a bundle of optical circuit-switching
// transceivers with so many lanes each. With N = modules * lanes, ingress i of
// 1..N is the transmitter of one lane, module by module, and reaches
//
//	N+i     fibre 1 of the same lane
//	2N+i    fibre 2 of the same lane
//	3N+j    inside the module, the receiver of lane j of the same module
//
// A lane that sends into a fibre also listens to that fibre. So i>N+i or i>2N+i
// excludes every j>3N+i: the receiver cannot listen to both.
func Transceivers(modules, lanes int) Geometry {
	n := modules * lanes
	return Geometry{Ingress: n, Egress: 3 * n, Lanes: lanes}
}

// TwoSided returns the usual geometry of an n x m switch.
func TwoSided(n, m int) Geometry { return Geometry{Ingress: n, Egress: m} }

// SingleSided returns the geometry of an n-port any-to-any switch.
func SingleSided(n int) Geometry { return Geometry{Ingress: n, SingleSided: true} }

// Known reports whether the geometry is known; the zero Geometry is not, and
// permits every port.
func (g Geometry) Known() bool { return g.Ingress > 0 }

// String returns "32x32", "48xCC" for a single-sided device, or "8 modules of
// 8 lanes".
func (g Geometry) String() string {
	switch {
	case !g.Known():
		return "unknown"
	case g.Lanes == g.Ingress:
		return fmt.Sprintf("1 module of %d lanes", g.Lanes)
	case g.Lanes > 0:
		return fmt.Sprintf("%d modules of %d lanes", g.Ingress/g.Lanes, g.Lanes)
	case g.SingleSided:
		return fmt.Sprintf("%dxCC", g.Ingress)
	}
	return fmt.Sprintf("%dx%d", g.Ingress, g.Egress)
}

// ParseGeometry reads the form that [Geometry.String] writes.
func ParseGeometry(s string) (Geometry, error) {
	var modules, lanes int
	if n, _ := fmt.Sscanf(strings.Replace(s, "modules", "module", 1), "%d module of %d lanes", &modules, &lanes); n == 2 {
		if g := Transceivers(modules, lanes); modules > 0 && lanes > 0 && lanes <= 16 && modules <= int(MaxPort)/(4*lanes) && g.String() == s {
			return g, nil
		}
	}
	a, b, ok := strings.Cut(strings.TrimSpace(s), "x")
	n, errN := strconv.ParseUint(a, 10, 15)
	if !ok || errN != nil || n == 0 {
		return Geometry{}, fmt.Errorf("switch size %q: want \"<ingress>x<egress>\", such as 32x32, or \"<ports>xCC\"", s)
	}
	if b == "CC" {
		return SingleSided(int(n)), nil
	}
	m, err := strconv.ParseUint(b, 10, 15)
	if err != nil || m == 0 {
		return Geometry{}, fmt.Errorf("switch size %q: want \"<ingress>x<egress>\", such as 32x32, or \"<ports>xCC\"", s)
	}
	return TwoSided(int(n), int(m)), nil
}

func (g Geometry) ingressBase() Port { return max(g.IngressBase, 1) }

func (g Geometry) egressBase() Port {
	switch {
	case g.SingleSided:
		return g.ingressBase()
	case g.EgressBase == 0:
		return g.ingressBase() + Port(g.Ingress)
	}
	return g.EgressBase
}

func (g Geometry) egressCount() int {
	if g.SingleSided {
		return g.Ingress
	}
	return g.Egress
}

// IsIngress reports whether light may enter at p.
func (g Geometry) IsIngress(p Port) bool {
	return p >= g.ingressBase() && p < g.ingressBase()+Port(g.Ingress)
}

// IsEgress reports whether light may leave at p.
func (g Geometry) IsEgress(p Port) bool {
	return p >= g.egressBase() && p < g.egressBase()+Port(g.egressCount())
}

// Has reports whether the device has port p. An unknown geometry has every
// valid port.
func (g Geometry) Has(p Port) bool {
	return !g.Known() && p.Valid() || g.IsIngress(p) || g.IsEgress(p)
}

// IngressPorts returns the ingress ports in ascending order.
func (g Geometry) IngressPorts() []Port { return portRange(g.ingressBase(), g.Ingress) }

// EgressPorts returns the egress ports in ascending order; of a single-sided
// device these are the same as the ingress ports.
func (g Geometry) EgressPorts() []Port { return portRange(g.egressBase(), g.egressCount()) }

// Ports returns every port once, in ascending order.
func (g Geometry) Ports() []Port {
	if g.SingleSided {
		return g.IngressPorts()
	}
	return append(g.IngressPorts(), g.EgressPorts()...)
}

func portRange(first Port, n int) []Port {
	ps := make([]Port, n)
	for i := range ps {
		ps[i] = first + Port(i)
	}
	return ps
}

// PortName says for people what port p of a bundle of transceivers is, "module 2
// lane 5 fibre 1"; "" for a matrix, whose ports have numbers only.
func (g Geometry) PortName(p Port) string {
	if g.Lanes == 0 || !g.Has(p) {
		return ""
	}
	n := int(p - g.ingressBase())
	where := []string{"transmitter", "fibre 1", "fibre 2", "receiver"}[n/g.Ingress]
	lane := fmt.Sprintf("lane %d %s", n%g.Ingress%g.Lanes+1, where)
	if g.Ingress == g.Lanes {
		return lane
	}
	return fmt.Sprintf("module %d %s", n%g.Ingress/g.Lanes+1, lane)
}

// Reaches reports whether light from ingress can be sent to egress, if nothing
// else is in the way. An unknown geometry reaches everything.
func (g Geometry) Reaches(ingress, egress Port) bool {
	switch {
	case !g.Known():
		return true
	case !g.IsIngress(ingress) || !g.IsEgress(egress):
		return false
	case g.Lanes == 0:
		return true
	}
	from, to := int(ingress-g.ingressBase()), int(egress-g.egressBase())
	if place := to / g.Ingress; place < 2 {
		return to%g.Ingress == from
	}
	return to%g.Ingress/g.Lanes == from/g.Lanes
}

// listens returns the ingress of the lane whose receiver c occupies, and whether
// it listens to a fibre there rather than to the module itself.
func (g Geometry) listens(c CrossConnect) (lane Port, fibre bool) {
	to := int(c.Egress - g.egressBase())
	return g.ingressBase() + Port(to%g.Ingress), to/g.Ingress < 2
}

// Excludes reports whether the device can hold either of two cross-connects, but
// not both, though they share no ingress and no egress: a port of a single-sided
// device would have two roles, or the receiver of a transceiver's lane would
// listen to two places.
func (g Geometry) Excludes(c, d CrossConnect) bool {
	switch {
	case c == d || !g.Known():
		return false
	case g.SingleSided:
		return c.Ingress == d.Egress || c.Egress == d.Ingress
	case g.Lanes == 0 || !g.Reaches(c.Ingress, c.Egress) || !g.Reaches(d.Ingress, d.Egress):
		return false
	}
	lane, fibre := g.listens(c)
	other, otherFibre := g.listens(d)
	return lane == other && fibre != otherFibre
}

// excluded returns those of m that c excludes, by ingress; see [Geometry.Excludes].
func (g Geometry) excluded(m Map, c CrossConnect) (list []CrossConnect) {
	ingress, egress := c.Egress, c.Ingress // of a single-sided device: their other roles
	switch {
	case g.Lanes > 0 && g.IsEgress(c.Egress):
		lane, _ := g.listens(c)
		ingress, egress = lane, g.egressBase()+Port(2*g.Ingress)+lane-g.ingressBase()
	case !g.SingleSided:
		return nil
	}
	if in, busy := m.IngressOf(egress); busy && g.Excludes(c, CrossConnect{in, egress}) {
		list = append(list, CrossConnect{in, egress})
	}
	if out, busy := m.EgressOf(ingress); busy && g.Excludes(c, CrossConnect{ingress, out}) {
		list = append(list, CrossConnect{ingress, out})
	}
	slices.SortFunc(list, func(a, b CrossConnect) int { return cmp.Compare(a.Ingress, b.Ingress) })
	return slices.Compact(list)
}

// Check reports the first cross-connect of m that the device cannot hold, as
// an error that matches [ErrPort]. An unknown geometry accepts every map.
func (g Geometry) Check(m Map) error {
	if !g.Known() {
		return nil
	}
	for c := range m.All() {
		switch {
		case !g.IsIngress(c.Ingress):
			return &PortError{Port: c.Ingress, Geometry: g, CrossConnect: c, Reason: "is not an ingress port"}
		case !g.IsEgress(c.Egress):
			return &PortError{Port: c.Egress, Geometry: g, CrossConnect: c, Reason: "is not an egress port"}
		case !g.Reaches(c.Ingress, c.Egress):
			return &PortError{Port: c.Egress, Geometry: g, CrossConnect: c, Reason: fmt.Sprintf("cannot be reached from port %d", c.Ingress)}
		}
		if g.Lanes > 0 {
			lane, fibre := g.listens(c)
			if e, sends := m.EgressOf(lane); sends && !fibre && g.Excludes(c, CrossConnect{lane, e}) {
				return &PortError{Port: c.Egress, Geometry: g, CrossConnect: c, Reason: fmt.Sprintf("is of a lane that listens to its fibre, in %d>%d,", lane, e)}
			}
		}
		if !g.SingleSided {
			continue
		}
		if c.Ingress == c.Egress {
			return &PortError{Port: c.Ingress, Geometry: g, CrossConnect: c, Reason: "cannot be joined to itself"}
		}
		if _, both := m.IngressOf(c.Ingress); both {
			return &PortError{Port: c.Ingress, Geometry: g, CrossConnect: c, Reason: "cannot be ingress and egress at once"}
		}
	}
	return nil
}

// ranges describes the ports of g for people.
func (g Geometry) ranges() string {
	in := fmt.Sprintf("%d-%d", g.ingressBase(), g.ingressBase()+Port(g.Ingress)-1)
	if g.SingleSided {
		return "ports " + in
	}
	if n := Port(g.Ingress); g.Lanes > 0 {
		return fmt.Sprintf("ingress i of %s reaches its fibre 1 at %d+i, its fibre 2 at %d+i, and of its own module the receiver of lane j at %d+j", in, n, 2*n, 3*n)
	}
	return fmt.Sprintf("ingress %s, egress %d-%d", in, g.egressBase(), g.egressBase()+Port(g.Egress)-1)
}
