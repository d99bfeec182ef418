package timeline

import (
	"cmp"
	"slices"
)

// Stage is one layer of a timeline. The text is what JSON and tables show.
type Stage string

// The stages. A subject is what the stage happened to.
const (
	Command     Stage = "command"      // switch: the last request byte was written
	Ack         Stage = "ack"          // switch: the completing reply byte was read
	Dark        Stage = "dark"         // switch port or NIC module: optical power was lost
	Light       Stage = "light"        // switch port or NIC module: optical power is back and settled
	Firmware    Stage = "firmware"     // NIC: firmware or PHY reports link
	CarrierDown Stage = "carrier-down" // network device: the kernel lost carrier
	CarrierUp   Stage = "carrier-up"   // network device: the kernel has carrier again
	TrafficLost Stage = "traffic-lost" // pair of NICs: the last packet before the gap
	Traffic     Stage = "traffic"      // pair of NICs: the first packet after the gap
)

var canonical = []Stage{Command, Ack, Dark, TrafficLost, CarrierDown, Light, Firmware, CarrierUp, Traffic}

// Stages returns all stages in canonical order: first the command and its answer,
// then what is lost, then what comes back, each from the light upwards. It is an
// order for display and for breaking ties. It is not a claim about time: many
// switches acknowledge after the light is back, and some before.
func Stages() []Stage { return slices.Clone(canonical) }

// Valid reports whether s is one of [Stages].
func (s Stage) Valid() bool { return slices.Contains(canonical, s) }

// rank is the place in canonical order; an unknown stage comes last.
func (s Stage) rank() int {
	if i := slices.Index(canonical, s); i >= 0 {
		return i
	}
	return len(canonical)
}

func compareStages(a, b Stage) int {
	return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a, b))
}

// loss reports whether the stage takes something away. Of several such marks the
// first counts, while something is back only when it is back for good: there the
// last one counts.
func (s Stage) loss() bool { return s == Dark || s == TrafficLost || s == CarrierDown }
