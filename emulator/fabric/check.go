package fabric

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/ocs"
)

// Smallest and largest MTU of the NICs.
const (
	MinMTU     = 576
	DefaultMTU = 1500
	MaxMTU     = 9216
)

// check reports what no fabric can be.
func (c *Config) check() error {
	if len(c.NICs) == 0 {
		return errors.New("fabric: there are no NICs; give at least one")
	}
	if c.MTU != 0 && (c.MTU < MinMTU || c.MTU > MaxMTU) {
		return fmt.Errorf("fabric: an MTU of %d: want %d to %d, or 0 for %d", c.MTU, MinMTU, MaxMTU, DefaultMTU)
	}
	for name, d := range c.Switches {
		if d == nil {
			return fmt.Errorf("fabric: switch %q has no device", name)
		}
	}
	return nil
}

// checkLocked reports why n cannot be added to the NICs that are there.
func (f *Fabric) checkLocked(n NIC) error {
	if err := checkName(n.Host, 63); err != nil {
		return fmt.Errorf("fabric: host %w", err)
	}
	if err := checkName(n.Name, 15); err != nil { // IFNAMSIZ less the zero byte
		return fmt.Errorf("fabric: host %s: interface %w", n.Host, err)
	}
	key := n.Host + "/" + n.Name
	switch {
	case n.Name == "lo":
		return fmt.Errorf("fabric: %s: every host has an interface lo already; give the NIC another name", key)
	case f.nics[key] != nil:
		return fmt.Errorf("fabric: %s is there twice; names of the NICs of a host must differ", key)
	case !(n.TxLoss >= 0 && n.RxLoss >= 0):
		return fmt.Errorf("fabric: %s: its fibres lose %v and %v: want 0 or more, or infinity", key, n.TxLoss, n.RxLoss)
	case n.Profile.Refresh < 0:
		return fmt.Errorf("fabric: %s: firmware profile %s: a refresh time of %v", key, n.Profile.Name, n.Profile.Refresh)
	}
	for _, side := range []struct {
		word, role string
		port       Port
		used       map[Port]*nic
		is         func(ocs.Geometry, ocs.Port) bool
	}{
		{"sends into", "ingress", n.Tx, f.byTx, ocs.Geometry.IsIngress},
		{"receives from", "egress", n.Rx, f.byRx, ocs.Geometry.IsEgress},
	} {
		d := f.switches[side.port.Switch]
		if d == nil {
			return fmt.Errorf("fabric: %s %s port %d of switch %q, which is not one of the switches (%s)", key, side.word, side.port.Port,
				side.port.Switch, strings.Join(slices.Sorted(maps.Keys(f.switches)), ", "))
		}
		if g := d.Geometry(); !side.is(g, side.port.Port) {
			return fmt.Errorf("fabric: %s %s switch %s: %w", key, side.word, side.port.Switch,
				&ocs.PortError{Port: side.port.Port, Geometry: g, Reason: "is not an " + side.role + " port"})
		}
		if other := side.used[side.port]; other != nil {
			return fmt.Errorf("fabric: %s %s %s, but so does %s; one fibre goes to one NIC", key, side.word, side.port, other.key)
		}
	}
	return nil
}

// checkName says what is wrong with a name, which becomes that of a directory and
// of an interface.
func checkName(s string, most int) error {
	switch {
	case s == "":
		return errors.New("without a name")
	case len(s) > most:
		return fmt.Errorf("name %.80q has %d bytes; %d are possible", s, len(s), most)
	}
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			return fmt.Errorf("name %q: want letters, digits, and after the first also . _ -", s)
		}
	}
	return nil
}
