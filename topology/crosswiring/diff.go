package crosswiring

import "fmt"

// SwitchChange is what changes on a switch. Inputs of Removed and Added are in order.
type SwitchChange struct {
	Switch         Switch
	Removed, Added []Circuit
}

// RewiredPorts returns how many inputs of the switch lead elsewhere than before, or to nothing, or newly to something.
func (s SwitchChange) RewiredPorts() int {
	inputs := map[int]bool{}
	for _, c := range s.Removed {
		inputs[c.In] = true
	}
	for _, c := range s.Added {
		inputs[c.In] = true
	}
	return len(inputs)
}

// Change is what it takes to go from one configuration to another.
type Change struct {
	Switches []SwitchChange // those on which anything changes, in order
	Kept     int            // circuits that both have
	Removed  int            // circuits that go
	Added    int            // circuits that come
	Rewired  int            // the sum of RewiredPorts
	Links    int            // links, between spine ports, that both have: their light is never touched
	Lost     int            // links of the former that the latter does not have
}

// Diff returns what changes between two configurations of one fabric. The error matches ErrConfig if they are of two.
func Diff(from, to *Config) (*Change, error) {
	if from.fabric != to.fabric {
		return nil, fmt.Errorf("%w: one configuration is of %v, the other of %v", ErrConfig, from.fabric, to.fabric)
	}
	c := &Change{}
	for _, s := range from.fabric.Switches() {
		one := SwitchChange{Switch: s}
		old, next := from.at(s), to.at(s)
		for in, out := range old {
			switch {
			case out == next[in] && out != Dark:
				c.Kept++
			case out != next[in]:
				c.Rewired++
				if out != Dark {
					one.Removed = append(one.Removed, Circuit{in, int(out)})
				}
				if next[in] != Dark {
					one.Added = append(one.Added, Circuit{in, int(next[in])})
				}
			}
		}
		if len(one.Removed)+len(one.Added) > 0 {
			c.Switches = append(c.Switches, one)
			c.Removed += len(one.Removed)
			c.Added += len(one.Added)
		}
	}
	for _, l := range from.Links() {
		if to.joins(l) {
			c.Links++
		} else {
			c.Lost++
		}
	}
	return c, nil
}

// joins tells whether a link is there.
func (c *Config) joins(l PortLink) bool {
	b, any := c.peer(l.A)
	if !any || b != l.B {
		return false
	}
	a, any := c.peer(l.B)
	return any && a == l.A
}
