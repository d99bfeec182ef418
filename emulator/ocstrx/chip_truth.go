package ocstrx

import (
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Truth is what a module really is at one time: what calibration tries to find. It is for
// tests and figures.
type Truth struct {
	Celsius  float64 // of the case
	Elements [ocst.Elements]ElementTruth
	Coupling ocst.Coupling                         // as of ocst.Table
	Launch   [ocst.Lanes]float64                   // mW behind the modulators, laser on and lane lit
	Dark     [ocst.Photodiodes][ocst.Lanes]float64 // mean reading without light, 0.1 µW
	Gain     [ocst.Photodiodes][ocst.Lanes]float64 // reading over power, without the dark reading
}

// ElementTruth is one element.
type ElementTruth struct {
	Kappa1, Kappa2 float64    // power that the couplers take across
	Loss           [2]float64 // of arms A and B, dB
	Phase0         float64    // radians with all heaters of the module off, now; not wrapped
	Ambient        float64    // rad/K of the case
	PowerPi        [2]float64 // mW for π, of arms A and B
	Resistance     [2]float64 // Ω, now, with no current in it
	Tau, TauSlow   time.Duration
	SlowWeight     float64
	// Settled, the phase from the voltage at an arm is the positive root h of
	// h·(1 + Bend·h) = Gain·V². A broken heater has no gain.
	Gain [2]float64
	Bend float64
	// Extinction ratios that couplers and arms allow, dB; of loop elements the worse input.
	BarER, CrossER float64
}

// Phase returns the radians that a voltage gives to one arm (0 is A) when it has settled.
func (e ElementTruth) Phase(arm int, volts float64) float64 {
	q := e.Gain[arm] * volts * volts
	return 2 * q / (1 + math.Sqrt(1+4*e.Bend*q))
}

// Volts returns the voltage that gives so many radians to one arm. It may be more than the
// converter has, and is infinite of a broken heater.
func (e ElementTruth) Volts(arm int, radians float64) float64 {
	return math.Sqrt(max(radians, 0) * (1 + e.Bend*radians) / e.Gain[arm])
}

// Drive returns the drive that adds so many radians, modulo 2π, to the phase: by the arm
// that takes less of them. It is false if no arm can; the drive is then the one that comes
// next to it.
func (e ElementTruth) Drive(radians float64) (ocst.Drive, bool) {
	need := [2]float64{math.Mod(radians, 2*math.Pi), 0}
	if need[0] < 0 {
		need[0] += 2 * math.Pi
	}
	need[1] = 2*math.Pi - need[0]
	first := 0
	if need[1] < need[0] {
		first = 1
	}
	for _, arm := range [2]int{first, 1 - first} {
		if v := e.Volts(arm, need[arm]); v <= ocst.DACFull {
			return ocst.DriveOf(v, arm == 1), true
		}
	}
	missing := func(arm int) float64 { return need[arm] - e.Phase(arm, ocst.DACFull) }
	if missing(1-first) < missing(first) {
		first = 1 - first
	}
	return ocst.DriveOf(ocst.DACFull, first == 1), false
}

// Fit returns what a perfect calibration would find of an element. The two terms of an arm
// are fitted over the converter's range; they are within 1 mrad of what Phase says.
func (t *Truth) Fit(e ocst.Element) ocst.Fit {
	x := t.Elements[e]
	f := ocst.Fit{Phase0: wrap(x.Phase0), A: x.arm(0), B: x.arm(1), BarER: x.BarER, CrossER: x.CrossER}
	f.Bar, _ = x.Drive(math.Pi - x.Phase0)
	f.Cross, _ = x.Drive(-x.Phase0)
	return f
}

// arm fits the two terms of ocst.Arm by least squares.
func (e ElementTruth) arm(n int) ocst.Arm {
	var s2, s3, s4, b1, b2 float64 // sums of powers of u = V², and of phase with u and u²
	for i := 1; i <= 64; i++ {
		u := fullV2 * float64(i) / 64
		p := e.Phase(n, math.Sqrt(u))
		s2, s3, s4 = s2+u*u, s3+u*u*u, s4+u*u*u*u
		b1, b2 = b1+p*u, b2+p*u*u
	}
	det := s2*s4 - s3*s3
	return ocst.Arm{Slope: (b1*s4 - b2*s3) / det, Curve: (b2*s2 - b1*s3) / det}
}

// wrap returns the phase between -π and π that is the same modulo 2π.
func wrap(phase float64) float64 { return math.Remainder(phase, 2*math.Pi) }

// truth returns it for the latest time that the chip was told.
func (c *chip) truth() Truth {
	c.refresh(c.now)
	t := c.truthAt(&c.slow.base, c.slow.heat)
	t.Celsius = c.housing.celsius(c.now)
	for lane := range t.Launch {
		t.Launch[lane] *= c.slow.laser * c.dimmed
	}
	return t
}

// truthAt returns it for given phases, and a factor of heat.
func (c *chip) truthAt(phase0 *[ocst.Elements]float64, heat float64) Truth {
	t := Truth{Launch: c.launch}
	for i := range t.Elements {
		m, h := &c.elements[i], &c.heaters.elements[i]
		e := ElementTruth{
			Kappa1: m.kappa1, Kappa2: m.kappa2, Loss: [2]float64{-20 * math.Log10(m.a), -20 * math.Log10(m.b)},
			Phase0: phase0[i], Ambient: c.ambient[i],
			Tau: time.Duration(math.Round(1 / h.fast)), TauSlow: time.Duration(math.Round(1 / h.slow)), SlowWeight: h.weight,
			Bend: c.heaters.bend / heat,
		}
		for arm, h := range h.arms {
			e.PowerPi[arm], e.Resistance[arm] = h.mwPerRadian*math.Pi, h.ohm/heat
			if h.broken == intact {
				e.Gain[arm] = h.gain * heat
			}
		}
		inputs := 1
		if _, _, loop := ocst.Element(i).IsLoop(); loop {
			inputs = 2
		}
		e.BarER, e.CrossER = m.extinction(inputs)
		t.Elements[i] = e
		for k, g := range c.couple[i] {
			if g != 0 {
				t.Coupling[i][i+k-ocst.Reach] = g
			}
		}
	}
	for n := range diodes {
		array, lane := n/ocst.Lanes, n%ocst.Lanes
		t.Dark[array][lane] = c.diodes.dark[n] / adcMax * c.params.FullScale / readingUnit
		t.Gain[array][lane] = c.diodes.gain[n]
	}
	return t
}
