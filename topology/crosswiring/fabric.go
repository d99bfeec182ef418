package crosswiring

import (
	"fmt"

	"github.com/ocslab/ocslab/internal/natural"
)

// Limits of what is planned: far beyond any cluster, and small enough that what is held fits in memory.
const (
	MaxPods  = 2048    // pods of a fabric
	MaxPorts = 1 << 24 // spine ports of a fabric, and entries of a demand: pods by pods by groups
)

// Check returns why there is no such fabric. The error matches ErrFabric.
func (f Fabric) Check() error {
	switch {
	case f.Pods < 1 || f.Pods > MaxPods:
		return fmt.Errorf("%w: it has %s: want 1 to %d", ErrFabric, natural.Count(f.Pods, "pod"), MaxPods)
	case f.SpinePorts < 2 || f.SpinePorts%2 == 1 || f.SpinePorts > MaxPorts:
		return fmt.Errorf("%w: a spine has %s: want an even number from 2 on, since switches work in pairs",
			ErrFabric, natural.Count(f.SpinePorts, "port"))
	case f.Groups < 1 || f.Groups > MaxPorts:
		return fmt.Errorf("%w: it has %s: want at least 1", ErrFabric, natural.Count(f.Groups, "group"))
	case f.Pods*f.SpinePorts > MaxPorts/f.Groups || f.Pods*f.Pods > MaxPorts/f.Groups:
		return fmt.Errorf("%w: %d pods, %d ports of a spine and %d groups: want at most %d spine ports, and pods by pods by groups",
			ErrFabric, f.Pods, f.SpinePorts, f.Groups, MaxPorts)
	case int(f.Wiring) >= len(wiringNames):
		return fmt.Errorf("%w: %v: want cross, uniform or dual-link", ErrFabric, f.Wiring)
	}
	return nil
}

// String returns such as "4 pods, 8 ports of a spine, 2 groups, cross wiring".
func (f Fabric) String() string {
	return fmt.Sprintf("%s, %s of a spine, %s, %v wiring", natural.Count(f.Pods, "pod"),
		natural.Count(f.SpinePorts, "port"), natural.Count(f.Groups, "group"), f.Wiring)
}

// ParseWiring reads "cross", "uniform" or "dual-link". The error matches ErrFabric.
func ParseWiring(text string) (Wiring, error) {
	for i, name := range wiringNames {
		if text == name {
			return Wiring(i), nil
		}
	}
	return 0, fmt.Errorf("%w: wiring %.40q: want cross, uniform or dual-link", ErrFabric, text)
}

// Pairs returns how many pairs a group has: S/2, which is also how many links an orientation gives a pod to send.
func (f Fabric) Pairs() int { return f.SpinePorts / 2 }

// PodPorts returns how many ports to optical switches a pod has: S·G.
func (f Fabric) PodPorts() int { return f.SpinePorts * f.Groups }

// Ports returns how many spine ports there are: P·S·G, as many as GPUs when the leaves have no more ports up than down.
func (f Fabric) Ports() int { return f.Pods * f.PodPorts() }

// GroupSwitches returns how many switches a group has: S, and S/2 with DualLink.
func (f Fabric) GroupSwitches() int {
	if f.Wiring == DualLink {
		return f.Pairs()
	}
	return f.SpinePorts
}

// Radix returns how many inputs, and as many outputs, a switch needs: P, and 2·P with DualLink.
func (f Fabric) Radix() int {
	if f.Wiring == DualLink {
		return 2 * f.Pods
	}
	return f.Pods
}

// Switches returns all switches in order.
func (f Fabric) Switches() []Switch {
	all := make([]Switch, 0, f.Groups*f.GroupSwitches())
	for h := range f.Groups {
		for k := range f.GroupSwitches() {
			all = append(all, Switch{h, k})
		}
	}
	return all
}

// AllPairs returns all pairs in order.
func (f Fabric) AllPairs() []Pair {
	all := make([]Pair, 0, f.Groups*f.Pairs())
	for h := range f.Groups {
		for c := range f.Pairs() {
			all = append(all, Pair{h, c})
		}
	}
	return all
}

// Members returns the switches of a pair: two with Cross and Uniform, one with DualLink.
func (f Fabric) Members(p Pair) []Switch {
	if f.Wiring == DualLink {
		return []Switch{{p.Group, p.Index}}
	}
	return []Switch{{p.Group, 2 * p.Index}, {p.Group, 2*p.Index + 1}}
}

// PairOf returns the pair of a switch.
func (f Fabric) PairOf(s Switch) Pair {
	if f.Wiring == DualLink {
		return Pair(s)
	}
	return Pair{s.Group, s.Index / 2}
}

// has tells whether there is such a switch.
func (f Fabric) has(s Switch) bool {
	return s.Group >= 0 && s.Group < f.Groups && s.Index >= 0 && s.Index < f.GroupSwitches()
}

// HasPort tells whether there is such a spine port.
func (f Fabric) HasPort(p Port) bool {
	return p.Pod >= 0 && p.Pod < f.Pods && p.Group >= 0 && p.Group < f.Groups && p.Index >= 0 && p.Index < f.SpinePorts
}
