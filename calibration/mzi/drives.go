package mzi

import (
	"fmt"
	"math"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Sweeps is how often [Drives] goes over all elements after the first, uncompensated
// choice. Each time the phase error that coupling leaves falls by about the sum of an
// element's couplings, a factor of ten or more; three leave less than the converter's step.
const Sweeps = 3

// Drives returns the drives that bring all elements of a module to the states wanted (true
// is cross) at a temperature of its case, with what they heat each other taken into account.
// Of the two arms the one that needs less phase is heated, or the other when the first does
// not reach. Between the points of the table it interpolates, beyond them it takes the
// nearest. An element that reaches its state with neither arm is an error, which matches
// [ErrRange]; so is a table without a point.
func Drives(t *ocst.Table, celsius float64, states [ocst.Elements]bool) ([ocst.Elements]ocst.Drive, error) {
	fits, err := At(t, celsius)
	if err != nil {
		return [ocst.Elements]ocst.Drive{}, err
	}
	var want settings
	for e, cross := range states {
		want[e] = hold(stateTarget(cross))
	}
	drives, _, err := solve(&fits, &t.Coupling, &want, Sweeps)
	return drives, err
}

// stateTarget is the phase of a state: π for bar, 0 for cross.
func stateTarget(cross bool) float64 {
	if cross {
		return 0
	}
	return math.Pi
}

// setting says what an element is to do: be kept at a phase, whatever the others heat, or
// gain so much from its own heaters, whatever phase that makes. The zero value is cold.
type setting struct {
	held  bool
	phase float64 // if held, modulo 2π
	own   float64 // if not: positive of arm A, negative of arm B
}

type settings [ocst.Elements]setting

func hold(phase float64) setting { return setting{held: true, phase: phase} }
func fixed(own float64) setting  { return setting{own: own} }

// solve finds drives for settings, and what phase each element gains by its own heaters. It
// works on the latter: sweep by sweep each held element takes what its phase lacks, with the
// heat of the others as it is known by then. It converges where the choice of the arm
// changes as well: |d|, the heat, hardly does there, for both choices are near π. An element
// out of whose range its setting is gets what comes next to it, and the error says so.
func solve(fits *[ocst.Elements]ocst.Fit, coupling *ocst.Coupling, want *settings, sweeps int) (drives [ocst.Elements]ocst.Drive, own [ocst.Elements]float64, err error) {
	var beyond [ocst.Elements]error
	for e, s := range want {
		if !s.held {
			drives[e], beyond[e] = driveOwn(fits[e], s.own)
			own[e] = fits[e].Own(drives[e])
		}
	}
	for sweep := range 1 + sweeps {
		heat := [ocst.Elements]float64{}
		if sweep > 0 {
			for e := range heat {
				heat[e] = heatFrom(coupling, e, &own)
			}
		}
		for e, s := range want {
			if !s.held {
				continue
			}
			// DriveFor takes an element to cross, phase 0, less what it gains otherwise.
			drives[e], beyond[e] = DriveFor(fits[e], heat[e]-s.phase, true)
			own[e] = fits[e].Own(drives[e])
		}
	}
	for e, err := range beyond {
		if err != nil {
			return drives, own, fmt.Errorf("%v: %w", ocst.Element(e), err)
		}
	}
	return drives, own, nil
}

// heatFrom is the phase that an element gains from the heaters of all others.
func heatFrom(coupling *ocst.Coupling, e int, own *[ocst.Elements]float64) float64 {
	sum := 0.0
	for j := max(0, e-ocst.Reach); j < min(ocst.Elements, e+ocst.Reach+1); j++ {
		sum += coupling[e][j] * math.Abs(own[j])
	}
	return sum
}

// driveOwn returns the drive by which an element gains so much phase: positive of arm A,
// negative of arm B.
func driveOwn(f ocst.Fit, own float64) (ocst.Drive, error) {
	arm, armB := f.A, false
	if own < 0 {
		arm, armB = f.B, true
	}
	v, ok := arm.Volts(math.Abs(own))
	if !ok {
		return ocst.DriveOf(ocst.DACFull, armB), ErrRange
	}
	return ocst.DriveOf(v, armB), nil
}

// farthest is the most phase that the arms of an element give, of arm B negative.
func farthest(f ocst.Fit) (a, b float64) {
	return f.A.Phase(ocst.DACFull), -f.B.Phase(ocst.DACFull)
}

// wrapped brings a phase into -π to π.
func wrapped(phase float64) float64 { return math.Remainder(phase, 2*math.Pi) }
