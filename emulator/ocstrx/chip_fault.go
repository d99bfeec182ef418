package ocstrx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// DeviceFault is something broken in a module. The zero value is none.
type DeviceFault struct {
	Kind    DeviceFaultKind
	Element ocst.Element // of heaters
	Arm     Arm
	// Diode is the photodiode that is stuck, or one of two that are swapped with Other.
	Diode, Other Photodiode
}

// DeviceFaultKind is what is broken.
type DeviceFaultKind string

const (
	// HeaterOpen: no current, no heat.
	HeaterOpen DeviceFaultKind = "heater-open"
	// HeaterShort: all the current that the driver gives, no heat where it belongs.
	HeaterShort DeviceFaultKind = "heater-short"
	// WeakHeater: a phase of π takes 1.8 times the power, which is beyond the converter.
	WeakHeater DeviceFaultKind = "weak-heater"
	// StuckPD: a photodiode reads what it did when it broke.
	StuckPD DeviceFaultKind = "stuck-pd"
	// SwappedTaps: two photodiodes are connected to each other's converter.
	SwappedTaps DeviceFaultKind = "swapped-taps"
	// LaserLow: 10 dB less light.
	LaserLow DeviceFaultKind = "laser-low"
	// LaserStep: 1 dB less light.
	LaserStep DeviceFaultKind = "laser-step"
	// Hot: 80 °C around the module.
	Hot DeviceFaultKind = "hot"
)

const (
	weakFactor   = 1.8
	lowLaser     = -10 // dB
	laserStep    = -1  // dB
	hotAmbient   = 80  // °C
	wantsElement = "want ELEMENT from 1 to 36, or ELEMENT.a or ELEMENT.b for one arm"
	wantsDiode   = "want ARRAY:LANE"
)

// Arm says which heaters of an element are meant.
type Arm uint8

// Arms of an element.
const (
	BothArms Arm = iota
	ArmA
	ArmB
)

func (a Arm) has(arm int) bool { return a == BothArms || int(a) == arm+1 }

// Photodiode is one of a module: its array (ocst.PDOut1 and so on) and lane, from 0.
type Photodiode struct{ Array, Lane int }

var arrayNames = [ocst.Photodiodes]string{"out1", "out2", "loop", "rx1", "rx2", "rx-loop", "launched"}

// String is such as "out1:3" for lane 3 counted from 1.
func (p Photodiode) String() string {
	if !p.exists() {
		return "none"
	}
	return fmt.Sprintf("%s:%d", arrayNames[p.Array], p.Lane+1)
}

func (p Photodiode) exists() bool {
	return p.Array >= 0 && p.Array < ocst.Photodiodes && p.Lane >= 0 && p.Lane < ocst.Lanes
}

func (p Photodiode) index() int { return p.Array*ocst.Lanes + p.Lane }

// String is what ParseDeviceFault reads.
func (f DeviceFault) String() string {
	switch f.Kind {
	case HeaterOpen, HeaterShort, WeakHeater:
		return fmt.Sprintf("%s:%d%s", f.Kind, int(f.Element)+1, [...]string{"", ".a", ".b"}[f.Arm%3])
	case StuckPD:
		return fmt.Sprintf("%s:%v", f.Kind, f.Diode)
	case SwappedTaps:
		if f.Diode.Array == f.Other.Array {
			return fmt.Sprintf("%s:%v:%d", f.Kind, f.Diode, f.Other.Lane+1)
		}
		return fmt.Sprintf("%s:%v:%v", f.Kind, f.Diode, f.Other)
	}
	return string(f.Kind)
}

// ParseDeviceFault reads a fault. Elements and lanes count from 1: the elements 1 to 8 are
// S1 of the lanes, 9 to 16 S2, 17 to 36 the loop network column by column. Arrays are out1,
// out2, loop, rx1, rx2, rx-loop and launched.
//
//	heater-open:12        both heaters of element 12; heater-open:12.a that of arm A
//	heater-short:12
//	weak-heater:12
//	stuck-pd:out1:3
//	swapped-taps:out1:3:5          lanes 3 and 5
//	swapped-taps:out1:3:out2:3
//	laser-low, laser-step, hot
func ParseDeviceFault(s string) (DeviceFault, error) {
	kind, rest, more := strings.Cut(s, ":")
	f := DeviceFault{Kind: DeviceFaultKind(kind)}
	var err error
	switch f.Kind {
	case HeaterOpen, HeaterShort, WeakHeater:
		f.Element, f.Arm, err = parseHeater(rest)
	case StuckPD:
		f.Diode, rest, err = parseDiode(rest, -1)
		if err == nil && rest != "" {
			err = fmt.Errorf("%q is too much: %s", rest, wantsDiode)
		}
	case SwappedTaps:
		if f.Diode, rest, err = parseDiode(rest, -1); err != nil {
			break
		}
		f.Other, rest, err = parseDiode(rest, f.Diode.Array)
		switch {
		case err != nil:
		case rest != "":
			err = fmt.Errorf("%q is too much: want ARRAY:LANE:LANE or ARRAY:LANE:ARRAY:LANE", rest)
		case f.Other == f.Diode:
			err = fmt.Errorf("photodiode %v cannot be swapped with itself", f.Diode)
		}
	case LaserLow, LaserStep, Hot:
		if more {
			err = fmt.Errorf("%q is too much: it takes nothing", rest)
		}
	default:
		err = fmt.Errorf("no such fault: want heater-open, heater-short, weak-heater, stuck-pd, swapped-taps, laser-low, laser-step or hot, or noise or drop of the line")
	}
	if err != nil {
		return DeviceFault{}, fmt.Errorf("fault %.60q: %w", s, err)
	}
	return f, nil
}

func parseHeater(s string) (ocst.Element, Arm, error) {
	number, arm, _ := strings.Cut(s, ".")
	n, ok := count(number, ocst.Elements)
	which := slices.Index([]string{"", "a", "b"}, strings.ToLower(arm))
	if !ok || which < 0 || strings.HasSuffix(s, ".") {
		return 0, 0, fmt.Errorf("%q: %s", s, wantsElement)
	}
	return ocst.Element(n), Arm(which), nil
}

// parseDiode reads "ARRAY:LANE", or "LANE" if there is an array to assume, and returns what
// follows.
func parseDiode(s string, array int) (Photodiode, string, error) {
	head, rest, _ := strings.Cut(s, ":")
	if n := slices.Index(arrayNames[:], head); n >= 0 {
		array = n
		head, rest, _ = strings.Cut(rest, ":")
	}
	lane, ok := count(head, ocst.Lanes)
	if array < 0 || !ok {
		return Photodiode{}, "", fmt.Errorf("%q: %s with an array of %s and a lane from 1 to %d",
			s, wantsDiode, strings.Join(arrayNames[:], ", "), ocst.Lanes)
	}
	return Photodiode{array, lane}, rest, nil
}

// count reads a number from 1 to n and returns it counted from 0.
func count(s string, n int) (int, bool) {
	v, err := strconv.Atoi(s)
	return v - 1, err == nil && v >= 1 && v <= n
}

// fault breaks something, for good. Of light, faults add up. What is not there is left alone.
func (c *chip) fault(at time.Duration, f DeviceFault) {
	at = c.refresh(at)
	switch f.Kind {
	case HeaterOpen, HeaterShort, WeakHeater:
		if f.Element < 0 || f.Element >= ocst.Elements {
			return
		}
		c.heaters.hurt(at, f)
		c.repower(at)
	case StuckPD:
		if f.Diode.exists() {
			from := int(c.diodes.wired[f.Diode.index()])
			p := c.powers(at)
			c.diodes.stuck[f.Diode.index()] = c.convert(from, p[from/ocst.Lanes][from%ocst.Lanes], 0)
		}
	case SwappedTaps:
		if f.Diode.exists() && f.Other.exists() {
			w := &c.diodes.wired
			w[f.Diode.index()], w[f.Other.index()] = w[f.Other.index()], w[f.Diode.index()]
		}
	case LaserLow:
		c.dimmed *= fromDB(lowLaser)
	case LaserStep:
		c.dimmed *= fromDB(laserStep)
	case Hot:
		c.setAmbient(at, hotAmbient)
	}
}

// hurt breaks heaters of an element. What heat there is goes away as it does when a heater
// is switched off.
func (hs *heaters) hurt(at time.Duration, f DeviceFault) {
	e := &hs.elements[f.Element]
	for arm := range e.arms {
		h := &e.arms[arm]
		if !f.Arm.has(arm) {
			continue
		}
		hs.steady -= h.power(hs.bend)
		switch f.Kind {
		case HeaterOpen:
			h.broken = open
		case HeaterShort:
			h.broken = short
		case WeakHeater:
			h.gain /= weakFactor
			h.mwPerRadian *= weakFactor
		}
		hs.steady += h.power(hs.bend)
	}
	hs.replan(int(f.Element), at)
}
