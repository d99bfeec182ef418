package emulator

import (
	"fmt"
	"math"

	"github.com/ocslab/ocslab/ocs"
)

// VOAMode is how a variable optical attenuator is controlled.
type VOAMode string

const (
	VOANone      VOAMode = "NONE"      // attenuates nothing
	VOARelative  VOAMode = "RELATIVE"  // keeps the output at Level dB from the light at a reference port
	VOAAbsolute  VOAMode = "ABSOLUTE"  // keeps the output at Level dBm
	VOAConverged VOAMode = "CONVERGED" // went to Level dBm once and stays where it was then
	VOAMaximum   VOAMode = "MAXIMUM"   // attenuates as much as it can
	VOAFixed     VOAMode = "FIXED"     // stays where it was when that was asked for
)

// VOA is the setting of the attenuator at an egress port. The zero value
// attenuates nothing.
type VOA struct {
	Mode  VOAMode `json:"mode"`  // "" is VOANone
	Level float64 `json:"level"` // dBm, or dB for VOARelative: zero or less
	// Reference is the port whose light VOARelative looks at; 0 is the ingress
	// that is connected.
	Reference ocs.Port `json:"reference,omitempty"`
}

// HasVOA reports whether port n has an attenuator.
func (d *Device) HasVOA(n ocs.Port) bool { return d.p.Optics.VOAMax > 0 && d.g.IsEgress(n) }

// VOA returns how the attenuator at port n is set.
func (d *Device) VOA(n ocs.Port) VOA {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.voaLocked(n)
}

func (d *Device) voaLocked(n ocs.Port) VOA {
	if v, ok := d.voas[n]; ok {
		return v.VOA
	}
	return VOA{Mode: VOANone}
}

// Attenuation returns how much the attenuator at port n takes away now.
func (d *Device) Attenuation(n ocs.Port) ocs.DB {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.heldLocked(n)
	if !ok || c.Egress != n {
		return 0
	}
	return ocs.DB(d.attenuationLocked(c))
}

// voa is an attenuator that has been set.
type voa struct {
	VOA
	Held float64 `json:"held_db,omitempty"` // of the modes that stay where they were
}

func (d *Device) checkVOA(n ocs.Port, v VOA) error {
	switch v.Mode {
	case "", VOANone, VOARelative, VOAAbsolute, VOAConverged, VOAMaximum, VOAFixed:
	default:
		return fmt.Errorf("attenuator mode %.40q", string(v.Mode))
	}
	switch {
	case !d.HasVOA(n):
		return &ocs.PortError{Port: n, Geometry: d.g, Reason: "has no attenuator"}
	case v.Reference != 0 && !d.g.Has(v.Reference):
		return &ocs.PortError{Port: v.Reference, Geometry: d.g, Reason: "is not a port"}
	case math.IsNaN(v.Level) || v.Level < -100 || v.Level > 100:
		return fmt.Errorf("attenuator level %g is outside -100 to 100", v.Level)
	}
	return nil
}

func (d *Device) setVOAsLocked(set map[ocs.Port]VOA, now int64) {
	for n, v := range set {
		c, connected := d.heldLocked(n)
		connected = connected && c.Egress == n
		var next voa
		next.VOA = v
		if connected {
			next.Held = d.attenuationLocked(c)
			if v.Mode == VOAConverged {
				next.Held = d.need(d.unattenuatedLocked(c) - v.Level)
			}
		}
		d.voas[n] = next
		if v.Mode == "" || v.Mode == VOANone {
			delete(d.voas, n)
		}
		if connected {
			d.relightLocked(n, now)
		}
	}
}

// need is the attenuation in dB that comes nearest to what is asked for.
func (d *Device) need(db float64) float64 { return min(max(db, 0), d.p.Optics.VOAMax) }

// unattenuatedLocked is the power in dBm that would leave c without attenuator.
func (d *Device) unattenuatedLocked(c ocs.CrossConnect) float64 {
	return float64(d.ports[c.Ingress].launch-d.ports[c.Egress].loss) - float64(d.losses.of(c))
}

// attenuationLocked is what the attenuator at the egress of c takes away, dB.
func (d *Device) attenuationLocked(c ocs.CrossConnect) float64 {
	v, ok := d.voas[c.Egress]
	if !ok {
		return 0
	}
	power := d.unattenuatedLocked(c)
	if math.IsInf(power, 0) {
		return v.Held
	}
	switch v.Mode {
	case VOAMaximum:
		return d.p.Optics.VOAMax
	case VOAFixed, VOAConverged:
		return v.Held
	case VOAAbsolute:
		return d.need(power - v.Level)
	case VOARelative:
		ref := c.Ingress
		if v.Reference != 0 {
			ref = v.Reference
		}
		return d.need(power - (float64(d.ports[ref].launch) + v.Level))
	}
	return 0
}
