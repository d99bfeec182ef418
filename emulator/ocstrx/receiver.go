package ocstrx

import (
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// photodiodes are those of a chip with their converters. By number they are array·Lanes +
// lane.
type photodiodes struct {
	gain  [diodes]float64 // of the tap with its photodiode, over the nominal one
	dark  [diodes]float64 // steps of the converter
	wired [diodes]uint8   // which photodiode a reading is of
	stuck [diodes]int16   // what a reading is always, in steps; -1: it is not
}

const (
	diodes = ocst.Photodiodes * ocst.Lanes
	// adcMax is the largest number of the converters of photodiodes and heater currents.
	adcMax = 4095
	// readingUnit is that of registers, in mW.
	readingUnit = 1e-4
)

// read returns what the converters give for the present powers.
func (c *chip) read(at time.Duration) (r readings) {
	p := c.powers(at)
	for array := range r {
		for lane := range r[array] {
			n := array*ocst.Lanes + lane
			// The noise is drawn whether it is used or not: a stuck photodiode changes
			// no other.
			noise := c.noise.NormFloat64()
			steps := c.diodes.stuck[n]
			if steps < 0 {
				from := int(c.diodes.wired[n])
				steps = c.convert(from, p[from/ocst.Lanes][from%ocst.Lanes], noise)
			}
			r[array][lane] = c.register(steps)
		}
	}
	return r
}

// register turns steps of a photodiode's converter into 0.1 µW.
func (c *chip) register(steps int16) uint16 {
	return uint16(math.Round(float64(steps) / adcMax * c.params.FullScale / readingUnit))
}

// convert gives the steps of a photodiode's converter at a power, with noise of unit
// variance.
func (c *chip) convert(diode int, mw, noise float64) int16 {
	mw *= c.diodes.gain[diode]
	relative, floor := c.params.Noise*mw, c.params.Floor*c.params.FullScale
	mw += noise * math.Sqrt(relative*relative+floor*floor)
	steps := mw/c.params.FullScale*adcMax + c.diodes.dark[diode]
	return int16(math.Round(min(max(steps, 0), adcMax)))
}

// The drivers of heaters measure current up to currentScale with 12 bits, and limit it to
// shortCurrent, both in A. The noise is half a step.
const (
	currentScale = 0.05
	shortCurrent = 0.04
	shortOhm     = 5.0
)

// current returns the measured current of a heater in A: none if it is open, as much as the
// driver gives if it is short.
func (c *chip) current(at time.Duration, e ocst.Element, arm int) float64 {
	if e < 0 || e >= ocst.Elements || arm&^1 != 0 {
		return 0
	}
	const step = currentScale / adcMax
	amps := c.trueCurrent(at, int(e), arm) + c.noise.NormFloat64()*step/2
	return math.Round(min(max(amps, 0), currentScale)/step) * step
}

// shorted is the current of a short heater at a voltage asked for.
func shorted(volts float64) float64 { return min(volts/shortOhm, shortCurrent) }

func (c *chip) trueCurrent(at time.Duration, e, arm int) float64 {
	at = c.refresh(at)
	h := &c.heaters.elements[e].arms[arm]
	switch h.broken {
	case open:
		return 0
	case short:
		return shorted(math.Sqrt(h.asked))
	}
	radians := max(c.heaters.input(e, arm, at), 0)
	bent := 1 + c.heaters.bend*radians
	volts := math.Sqrt(radians * bent / h.gain)
	return volts / (h.ohm * bent) * c.slow.heat
}
