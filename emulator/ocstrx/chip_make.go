package ocstrx

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// startAmbient is the temperature around a module until setAmbient, in °C.
const startAmbient = 25

// newChip draws a chip. The same parameters and seed give the same chip; each kind of
// property has a stream of its own, so that to change the spread of one leaves the others as
// they are. All heaters are off, the laser is on, no lane is lit. The case is as warm as the
// module without heaters makes it.
//
// The parameters must pass check.
func newChip(p Params, seed uint64) *chip {
	c := &chip{
		params: p, seed: seed, on: true, dimmed: 1,
		facet: fromDB(-p.FacetLoss), tapped: 1 - p.Tap,
		noise: stream(seed, "noise").Rand,
	}
	couplers, losses, phases := stream(seed, "couplers"), stream(seed, "losses"), stream(seed, "phases")
	for e := range c.elements {
		kappa1, kappa2 := couplers.normal(0.5, p.CouplerSpread), couplers.normal(0.5, p.CouplerSpread)
		loss := max(0, losses.normal(p.ElementLoss, p.ElementLossSpread))
		c.elements[e] = newMZI(kappa1, kappa2, loss, losses.normal(0, p.ArmLossSpread))
		c.phase0[e] = phases.between(-math.Pi, math.Pi)
	}
	guides := stream(seed, "waveguides")
	c.loop = newLoopNetwork(p.CrossingLoss, func() float64 { return guides.between(-math.Pi, math.Pi) })
	c.makeHeaters(p)
	c.makeCoupling(p)

	ambients := stream(seed, "ambient")
	for e := range c.ambient {
		c.ambient[e] = ambients.between(p.AmbientMin, p.AmbientMax)
		if ambients.Uint64()&1 != 0 {
			c.ambient[e] = -c.ambient[e]
		}
	}
	launches := stream(seed, "launch")
	for lane := range c.launch {
		c.launch[lane] = p.Launch * fromDB(launches.normal(0, p.LaunchSpread))
	}
	taps, darks := stream(seed, "taps"), stream(seed, "dark")
	for n := range diodes {
		c.diodes.gain[n] = taps.normal(1, p.TapSpread)
		c.diodes.dark[n] = darks.between(p.DarkMin, p.DarkMax)
		c.diodes.wired[n], c.diodes.stuck[n] = uint8(n), -1
	}

	c.housing = caseTemperature{ambient: startAmbient, rate: 1 / float64(p.CaseTau)}
	c.housing.begin = startAmbient + p.Power*p.RTh
	c.housing.target = c.housing.begin
	c.slow.dim = 1
	c.reslow(0)
	return c
}

func (c *chip) makeHeaters(p Params) {
	hs := &c.heaters
	hs.bend = p.TCR * p.Rise / math.Pi
	zero := (1-p.SlowWeight)*float64(p.TauSlow) + p.SlowWeight*float64(p.Tau)
	hs.lead = leadNetwork{rate: 1 / zero, gain: float64(p.TauSlow)/zero - 1}
	hs.lead.memo.value = 1
	powers, resistances, responses := stream(c.seed, "power"), stream(c.seed, "resistance"), stream(c.seed, "response")
	for i := range hs.elements {
		e := &hs.elements[i]
		for a := range e.arms {
			mw := powers.normal(p.PowerPi, p.PowerPi*p.PowerPiSpread)
			ohm := resistances.normal(p.Resistance, p.Resistance*p.ResistanceSpread)
			e.arms[a] = heater{gain: math.Pi / (mw / 1000 * ohm), mwPerRadian: mw / math.Pi, ohm: ohm}
		}
		fast := apart(responses.normal(float64(p.Tau), float64(p.Tau)*p.ThermalSpread), zero)
		slow := apart(responses.normal(float64(p.TauSlow), float64(p.TauSlow)*p.ThermalSpread), zero)
		e.weight = responses.normal(p.SlowWeight, p.SlowWeight*p.ThermalSpread)
		e.fast, e.slow = 1/fast, 1/slow
		e.kFast, e.kSlow = 1/(1-fast/zero), 1/(1-slow/zero)
		e.until = endless
	}
}

// apart returns a time constant that is not the one of the lead network: the closed form has
// two exponentials where there would be a single one with a factor of time.
func apart(tau, zero float64) float64 {
	if math.Abs(tau/zero-1) < 1e-6 {
		return zero * (1 + 1e-6)
	}
	return tau
}

func (c *chip) makeCoupling(p Params) {
	s := stream(c.seed, "coupling")
	for i := range c.couple {
		for k := range c.couple[i] {
			j := i + k - ocst.Reach
			near := s.between(p.CouplingMin, p.CouplingMax)
			if j == i || j < 0 || j >= ocst.Elements {
				continue
			}
			c.couple[i][k] = near * math.Pow(p.CouplingDecay, math.Abs(float64(i-j))-1)
		}
	}
}

// draw is a stream of random numbers.
type draw struct{ *rand.Rand }

// stream returns one that depends on the seed and its name alone.
func stream(seed uint64, name string) draw {
	h := fnv.New64a()
	h.Write([]byte(name))
	return draw{rand.New(rand.NewPCG(mix(seed), h.Sum64()))}
}

// normal is normally distributed, cut at three sigma.
func (d draw) normal(mean, sigma float64) float64 {
	return mean + sigma*min(max(d.NormFloat64(), -3), 3)
}

func (d draw) between(lo, hi float64) float64 { return lo + (hi-lo)*d.Float64() }

// fromDB is the factor of power that dB are.
func fromDB(db float64) float64 { return math.Pow(10, db/10) }
