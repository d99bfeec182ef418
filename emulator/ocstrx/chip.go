package ocstrx

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// chip is the photonic chip of one module, with its heaters, photodiodes and package. It
// has no clock of its own: methods are told the time since the module was made, which never
// goes backwards; an earlier time is taken for the latest one. Between calls nothing
// happens. What is asked, and when, changes nothing but the noise of later readings.
//
// It is for one goroutine at a time.
type chip struct {
	params Params
	seed   uint64
	now    time.Duration

	heaters  heaters
	housing  caseTemperature
	slow     slow
	elements [ocst.Elements]mzi
	loop     loopNetwork
	diodes   photodiodes

	phase0  [ocst.Elements]float64 // at the reference temperature, when made
	ambient [ocst.Elements]float64 // rad/K
	couple  [ocst.Elements]band

	launch [ocst.Lanes]float64 // mW, with the laser as it was made
	lit    uint8
	on     bool    // the laser
	dead   bool    // no power at all
	dimmed float64 // what faults leave of the laser
	input  [2][ocst.Lanes]float64
	facet  float64 // transmission
	tapped float64

	noise *rand.Rand
}

// powers are optical powers in mW, by photodiode array and lane: towards the fibres and into
// the loop network those in the waveguides, at the receivers and behind the modulators those
// that arrive.
type powers [ocst.Photodiodes][ocst.Lanes]float64

// readings are powers as registers give them, in 0.1 µW, with the dark readings.
type readings [ocst.Photodiodes][ocst.Lanes]uint16

// set has the controller drive the heater of an arm (0 is A) with a voltage from at on. It
// goes through the lead network, which cancels the slow pole of the element. The voltage is
// rounded to what the converter can give. Elements and arms that are not there are ignored.
func (c *chip) set(at time.Duration, e ocst.Element, arm int, volts float64) {
	c.drive(at, e, arm, volts, true)
}

// setDirect drives a heater without the lead network, as calibration does.
func (c *chip) setDirect(at time.Duration, e ocst.Element, arm int, volts float64) {
	c.drive(at, e, arm, volts, false)
}

func (c *chip) drive(at time.Duration, e ocst.Element, arm int, volts float64, lead bool) {
	if e < 0 || e >= ocst.Elements || arm&^1 != 0 {
		return
	}
	at = c.advance(at)
	before := c.heaters.steady
	c.heaters.set(at, int(e), arm, dac(volts), lead)
	if c.heaters.steady != before {
		c.repower(at)
	}
}

// advance moves the chip to a time and returns it, or the present if that is later.
func (c *chip) advance(at time.Duration) time.Duration {
	if at > c.now {
		c.now = at
	}
	return c.now
}

// light says whose modulators pass light, bit 0 is lane 0. A modulator that does not passes
// none at all.
func (c *chip) light(at time.Duration, lanes uint8) {
	c.advance(at)
	c.lit = lanes
}

// laser switches the laser.
func (c *chip) laser(at time.Duration, on bool) {
	if at = c.advance(at); on != c.on {
		c.on = on
		c.repower(at)
	}
}

// unpower takes the power from the module, or gives it back.
func (c *chip) unpower(at time.Duration, dead bool) {
	at = c.advance(at)
	c.dead = dead
	c.repower(at)
}

// setAmbient changes the temperature around the module.
func (c *chip) setAmbient(at time.Duration, celsius float64) {
	if math.IsNaN(celsius) {
		return
	}
	at = c.advance(at)
	c.housing.ambient = min(max(celsius, -60), 150)
	c.repower(at)
}

// setInput sets the light that a fibre (0 or 1) brings for a lane, in mW before the facet.
func (c *chip) setInput(fibre, lane int, mw float64) {
	if fibre&^1 == 0 && lane >= 0 && lane < ocst.Lanes {
		c.input[fibre][lane] = min(max(mw, 0), 1000)
	}
}

// lane returns the powers in mW in the waveguides towards the fibres and into the loop
// network of one lane. It is what a settle loop asks: all lanes at one time cost the least.
func (c *chip) lane(at time.Duration, lane int) (out1, out2, loop float64) {
	c.refresh(at)
	if !c.on || c.lit>>lane&1 == 0 {
		return 0, 0, 0
	}
	return c.paths(lane)
}

func (c *chip) paths(lane int) (out1, out2, loop float64) {
	s1, s2 := ocst.S1(lane), ocst.S2(lane)
	bar, cross := c.elements[s1].powers(c.phase(int(s1)))
	p := c.launch[lane] * c.slow.laser * c.dimmed
	out1, out2 = c.elements[s2].powers(c.phase(int(s2)))
	return p * bar * out1, p * bar * out2, p * cross
}

// phase is the phase difference of an element now; refresh must have been called.
func (c *chip) phase(e int) float64 {
	return c.slow.base[e] + c.slow.heat*(c.heaters.own[e]+c.couple[e].of(&c.heaters.heat, e))
}

// refresh brings all that depends on the time to at.
func (c *chip) refresh(at time.Duration) time.Duration {
	at = c.advance(at)
	c.heaters.advance(at)
	if cell := at / slowCell; cell != c.slow.cell || c.slow.stale {
		c.reslow(cell)
	}
	return at
}

// powers returns all optical powers.
func (c *chip) powers(at time.Duration) (p powers) {
	c.refresh(at)
	for fibre, pd := range [2]int{ocst.PDRx1, ocst.PDRx2} {
		for lane, mw := range c.input[fibre] {
			p[pd][lane] = mw * c.facet
		}
	}
	if !c.on || c.lit == 0 {
		return p
	}
	for lane := range ocst.Lanes {
		if c.lit>>lane&1 != 0 {
			p[ocst.PDLaunched][lane] = c.launch[lane] * c.slow.laser * c.dimmed
			p[ocst.PDOut1][lane], p[ocst.PDOut2][lane], p[ocst.PDLoopTap][lane] = c.paths(lane)
		}
	}
	c.loopPowers(&p[ocst.PDLoopTap], &p[ocst.PDRxLoop])
	return p
}

// power returns the electrical power of the module in W: what it takes without heaters, less
// that of the laser while that is off, and the heaters with their drivers.
func (c *chip) power(at time.Duration) float64 {
	return c.idlePower() + c.heaterPower(at)*c.params.DriverFactor
}

func (c *chip) idlePower() float64 {
	switch {
	case c.dead:
		return 0
	case c.on:
		return c.params.Power
	}
	return c.params.Power - c.params.LaserPower
}

// heaterPower returns the power in the heaters, in W.
func (c *chip) heaterPower(at time.Duration) float64 {
	at = c.refresh(at)
	return c.heaters.power(at) * c.slow.heat / 1000
}

// temperature returns that of the case in °C.
func (c *chip) temperature(at time.Duration) float64 {
	return c.housing.celsius(c.advance(at))
}

// repower lets the case go to a new temperature, after a change of power or ambient.
func (c *chip) repower(at time.Duration) {
	power := c.idlePower() + c.heaters.steady/1000*c.params.DriverFactor
	c.housing.change(at, c.housing.ambient+power*c.params.RTh)
	c.slow.stale = true
}
