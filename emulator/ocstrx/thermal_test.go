package ocstrx

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

const us = time.Microsecond

// heatOf returns the phase that an element has by its own heaters.
func heatOf(c *chip, at time.Duration, e ocst.Element) float64 {
	c.refresh(at)
	return c.slow.heat * c.heaters.own[e]
}

// volts returns the voltage that gives so many radians to an arm of an ideal element.
func volts(c *chip, e ocst.Element, arm int, radians float64) float64 {
	t := c.truth()
	return t.Elements[e].Volts(arm, radians)
}

// Without the lead network heat has two poles, at the rates and with the weight of the
// element.
func TestTwoPoles(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 1)
	x := c.truth().Elements[7]
	c.setDirect(0, 7, 1, 3)
	final := x.Phase(1, dac(3))
	for _, at := range []time.Duration{us, 10 * us, 50 * us, 200 * us, time.Millisecond, 5 * time.Millisecond} {
		want := (1-x.SlowWeight)*(1-math.Exp(-float64(at)/float64(x.Tau))) + x.SlowWeight*(1-math.Exp(-float64(at)/float64(x.TauSlow)))
		// The time constants of Truth are rounded to nanoseconds.
		near(t, at.String(), -heatOf(c, at, 7)/final, want, 1e-4)
	}
	// By then the case is a little warmer, which the truth of that time knows.
	end := -heatOf(c, time.Second, 7)
	near(t, "after a second", end, c.truth().Elements[7].Phase(1, dac(3)), 1e-12)
}

// With the lead network, and constants that are those it knows, phase follows the drive
// with one pole: up, down to nothing, and when the next step comes before the last one has
// settled. With heaters whose resistance rises it is off by less than 1 mrad per radian.
func TestLeadNetworkGivesOnePole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		tcr, tolerance float64
	}{{0, 1e-9}, {1e-3, 1e-3}} {
		p := idealParams()
		p.TCR = test.tcr
		p.Reference = 25 + 8.5*1.2
		c := newChip(p, 1)
		const e = 3
		// Steps of the drive in radians; the converter's end is 1.2 π.
		steps := []struct {
			at      time.Duration
			radians float64
		}{{0, 2}, {100 * us, math.Pi}, {120 * us, 1}, {400 * us, -2.5}, {401 * us, 0}, {900 * us, 0.5}, {3 * time.Millisecond, 0}, {5 * time.Millisecond, -3}}
		one, set := 0.0, 0.0 // what one pole would have, and what was set last
		last := time.Duration(0)
		for i, s := range steps {
			one = set + (one-set)*math.Exp(-float64(s.at-last)/float64(p.Tau))
			last = s.at
			armA, armB := 0.0, 0.0
			if s.radians > 0 {
				armA = volts(c, e, 0, s.radians)
			} else {
				armB = volts(c, e, 1, -s.radians)
			}
			c.set(s.at, e, 0, armA)
			c.set(s.at, e, 1, armB)
			// What was set is rounded to codes.
			truth := c.truth()
			set = truth.Elements[e].Phase(0, dac(armA)) - truth.Elements[e].Phase(1, dac(armB))
			end := s.at + 5*time.Millisecond
			if i+1 < len(steps) {
				end = steps[i+1].at
			}
			for at := s.at; at < end; at += 7 * us {
				want := set + (one-set)*math.Exp(-float64(at-s.at)/float64(p.Tau))
				near(t, "phase at "+at.String(), heatOf(c, at, e), want, test.tolerance*math.Pi)
			}
		}
	}
}

// Without it, what is left of a step after ten time constants is what the slow pole has:
// the test above would otherwise prove nothing.
func TestSlowPoleShows(t *testing.T) {
	t.Parallel()
	c := newChip(idealParams(), 1)
	c.setDirect(0, 3, 0, volts(c, 3, 0, math.Pi))
	near(t, "missing phase", math.Pi-heatOf(c, 150*us, 3), 0.05*math.Pi*math.Exp(-0.15), 1e-3)
}

// The golden figure: an ideal device, PATH1 to LOOP without pre-emphasis, τ = 15 µs. S1
// swings by π and passes -25 dB at 3.3 τ, 50 µs after the drive.
func TestGoldenSwing(t *testing.T) {
	t.Parallel()
	c := newChip(idealParams(), 2)
	c.light(0, 1)
	at := apply(c, 0, solve(t, c.truth(), pathStates(ocst.Path1)))
	loop := ocst.S1(0)
	drives := solve(t, c.truth(), pathStates(ocst.LoopPath))
	apply(c, at, drives)
	ratio := func(after time.Duration) float64 {
		out1, out2, in := c.lane(at+after, 0)
		return toDB((out1 + out2) / in)
	}
	// Before it has moved, light is where it was, but for the rounding to codes.
	if r := ratio(0); r < 50 {
		t.Errorf("%v begins at %.1f dB, want the other state", loop, r)
	}
	after := time.Duration(0)
	for ratio(after) > -25 {
		after += 100 * time.Nanosecond
	}
	want := 15e3 * math.Log(math.Pi/(2*math.Pow(10, -25.0/20)))
	near(t, "time to -25 dB, ns", float64(after), want, 300)
	near(t, "time to -25 dB, µs", after.Seconds()*1e6, 50, 0.6)
	for ratio(after) > -30 {
		after += 100 * time.Nanosecond
	}
	near(t, "time to -30 dB, in τ", float64(after)/15e3, 3.9, 0.05)
}

// The closed form against a numerical integration of what it solves, for any sequence of
// drives: both arms, with the lead network and without, beyond the converter's range.
func TestClosedFormAgainstIntegration(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultParams()
		p.CouplingMin, p.CouplingMax = 0, 0
		c := newChip(p, rapid.Uint64().Draw(t, "seed"))
		const i = 20
		e, bend := c.heaters.elements[i], c.heaters.bend
		const dt = 250 * time.Nanosecond
		zero := 1 / c.heaters.lead.rate
		n := newIntegrator(&e, bend, zero, float64(dt))
		at := time.Duration(0)
		direct := rapid.Bool().Draw(t, "direct")
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
				direct = !direct
			}
			arm := rapid.IntRange(0, 1).Draw(t, "arm")
			v := rapid.SampledFrom([]float64{0, 0, 0.2, 0.5, 1, 2, 3, 3.25, 3.3}).Draw(t, "volts")
			if direct {
				c.setDirect(at, i, arm, v)
			} else {
				c.set(at, i, arm, v)
			}
			n.set(arm, dac(v)*dac(v), direct, c.heaters.lead.gain)
			steps := rapid.IntRange(1, 4000).Draw(t, "ticks")
			for range steps {
				n.step()
			}
			at += dt * time.Duration(steps)
			// If nobody asks, the next drive has to catch up.
			if rapid.Bool().Draw(t, "ask nothing") {
				continue
			}
			c.refresh(at)
			near(t, "own heat at "+at.String(), c.heaters.own[i], n.heat(0)-n.heat(1), 1e-3)
			near(t, "both arms' heat", c.heaters.heat[i+ocst.Reach], n.heat(0)+n.heat(1), 1e-3)
		}
	})
}

// integrator is one element stepped through time, with the controller as it is meant to be:
// V² of both arms follows from what was asked and the state of the lead network.
type integrator struct {
	e          *thermal
	bend       float64
	asked      [2]float64
	lag        float64
	fast, slow [2]float64
	// How much each goes towards its goal in a step.
	dz, df, ds float64
}

func newIntegrator(e *thermal, bend, zero, dt float64) *integrator {
	return &integrator{e: e, bend: bend, dz: 1 - math.Exp(-dt/zero), df: 1 - math.Exp(-dt*e.fast), ds: 1 - math.Exp(-dt*e.slow)}
}

func (n *integrator) set(arm int, v2 float64, direct bool, gain float64) {
	change := v2 - n.asked[arm]
	if change == 0 && !direct {
		return
	}
	n.asked[arm] = v2
	if direct {
		n.lag = 0
		return
	}
	if arm == 1 {
		change = -change
	}
	n.lag += gain * change
}

func (n *integrator) step() {
	middle := n.lag * (1 - n.dz/2)
	n.lag *= 1 - n.dz
	out := n.asked
	to, from := 0, 1
	if middle < 0 {
		to, from, middle = 1, 0, -middle
	}
	taken := min(middle, out[from])
	out[from] -= taken
	out[to] = min(out[to]+middle-taken, fullV2)
	for arm := range 2 {
		// Independent of heater.radians: q = h(1 + bend·h) by iteration.
		q := n.e.arms[arm].gain * out[arm]
		h := q
		for range 8 {
			h = q / (1 + n.bend*h)
		}
		n.fast[arm] += (h - n.fast[arm]) * n.df
		n.slow[arm] += (h - n.slow[arm]) * n.ds
	}
}

func (n *integrator) heat(arm int) float64 {
	return (1-n.e.weight)*n.fast[arm] + n.e.weight*n.slow[arm]
}

// Heat of one element is linear in power: with constant resistance, the response to two
// sequences of drives at once is the sum of both.
func TestSuperposition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultParams()
		p.TCR = 0
		seed := rapid.Uint64().Draw(t, "seed")
		const e = ocst.Element(9)
		var one, other, both = newChip(p, seed), newChip(p, seed), newChip(p, seed)
		// V² of arm A: each at most 0.4 of the range, so that the lead network stays in it.
		var a, b float64
		level := rapid.Float64Range(0.05, 0.4)
		at := time.Duration(0)
		for _, c := range []*chip{one, other} {
			set(c, at, e, 0.2)
		}
		a, b = 0.2, 0.2
		set(both, at, e, 0.4)
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			at += time.Duration(rapid.IntRange(0, 2000).Draw(t, "gap")) * us
			if rapid.Bool().Draw(t, "which") {
				a = level.Draw(t, "a")
				set(one, at, e, a)
			} else {
				b = level.Draw(t, "b")
				set(other, at, e, b)
			}
			set(both, at, e, a+b)
			later := at + time.Duration(rapid.IntRange(0, 3000).Draw(t, "later"))*us
			// Rounding to codes: half a step each, 1.7 mrad.
			near(t, "phase of both", heatOf(both, later, e), heatOf(one, later, e)+heatOf(other, later, e), 4e-3)
			at = later
		}
	})
}

// set drives arm A with a share of the converter's largest V².
func set(c *chip, at time.Duration, e ocst.Element, share float64) {
	c.set(at, e, 0, ocst.DACFull*math.Sqrt(share))
}

// The heat of an element, of either arm, reaches its neighbours: up to six numbers away,
// less with each, and nobody further.
func TestCoupling(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 4)
	truth := c.truth()
	const j = 18
	before := phases(c, 0)
	c.setDirect(0, j, 1, 3)
	at := 100 * time.Millisecond
	c.refresh(at)
	heat := -heatOf(c, at, j)
	after := phases(c, at)
	// The case is 0.1 % of a kelvin warmer by then; and base moves with it.
	c.refresh(at)
	for i := range after {
		g := truth.Coupling[i][j]
		moved := after[i] - before[i] - truth.Elements[i].Ambient*(c.slowCelsius()-truth.Celsius)
		distance := max(i-j, j-i)
		switch {
		case i == j:
			near(t, "own phase", moved, -heat, 1e-6)
			continue
		case distance > ocst.Reach:
			if g != 0 {
				t.Errorf("element %d is coupled to %d", i, j)
			}
		default:
			lo, hi := 0.01*math.Pow(0.4, float64(distance-1)), 0.05*math.Pow(0.4, float64(distance-1))
			if g < lo || g > hi {
				t.Errorf("coupling over %d elements is %g, want %g to %g", distance, g, lo, hi)
			}
		}
		near(t, "phase of a neighbour", moved, g*heat, 1e-6)
	}
}

func phases(c *chip, at time.Duration) (p [ocst.Elements]float64) {
	c.refresh(at)
	for i := range p {
		p[i] = c.phase(i)
	}
	return p
}

// slowCelsius is the temperature that phases have been worked out for.
func (c *chip) slowCelsius() float64 { return c.housing.celsius(c.slow.cell * slowCell) }

// Nearly every element can be brought to both of its states, and what falls short of π by
// one arm takes the other.
func TestReachOfHeaters(t *testing.T) {
	t.Parallel()
	arms, short, stuck := 0, 0, 0
	const chips = 200
	for seed := range uint64(chips) {
		truth := newChip(DefaultParams(), seed).truth()
		for _, e := range truth.Elements {
			for arm := range 2 {
				arms++
				if e.Phase(arm, ocst.DACFull) < math.Pi {
					short++
				}
			}
			for _, state := range []float64{0, math.Pi} {
				if _, ok := e.Drive(state - e.Phase0); !ok {
					stuck++
				}
			}
		}
	}
	t.Logf("of %d arms %d do not reach π; %d of %d states are out of reach", arms, short, stuck, arms)
	if short > arms/100 || stuck > 0 {
		t.Errorf("of %d arms %d do not reach π, and %d states are out of reach; want less than 1 %%, and none", arms, short, stuck)
	}
}
