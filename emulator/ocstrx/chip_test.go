package ocstrx

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// idealParams are those of a device without errors, losses or noise: 3.3 V give 1.2 π, and
// phases are still random.
func idealParams() Params {
	p := DefaultParams()
	p.CouplerSpread, p.PowerPiSpread, p.ResistanceSpread, p.TCR, p.ThermalSpread = 0, 0, 0, 0, 0
	p.CouplingMin, p.CouplingMax, p.AmbientMin, p.AmbientMax, p.Drift, p.Ageing = 0, 0, 0, 0, 0, 0
	p.LaunchSpread, p.LaserDrift = 0, 0
	p.ElementLoss, p.ElementLossSpread, p.ArmLossSpread, p.CrossingLoss = 0, 0, 0, 0
	p.Noise, p.Floor = 0, 0
	return p
}

// settle drives all elements so that they have their states at the time that it returns, by
// the truth and with the coupling solved. Elements that cannot are errors.
func settle(t interface{ Errorf(string, ...any) }, c *chip, at time.Duration, states [ocst.Elements]bool) time.Duration {
	return apply(c, at, solve(t, c.truth(), states))
}

// solve finds the drives that the truth asks for.
func solve(t interface{ Errorf(string, ...any) }, truth Truth, states [ocst.Elements]bool) (drives [ocst.Elements]ocst.Drive) {
	var own [ocst.Elements]float64
	for range 8 {
		for i := range own {
			want := phaseOf(states[i]) - truth.Elements[i].Phase0
			for j, g := range truth.Coupling[i] {
				want -= g * math.Abs(own[j])
			}
			d, ok := truth.Elements[i].Drive(want)
			if !ok {
				t.Errorf("element %d cannot gain %.3f rad", i, want)
			}
			drives[i] = d
			own[i] = truth.own(i, d)
		}
	}
	return drives
}

// apply sets all heaters, and returns when they have settled.
func apply(c *chip, at time.Duration, drives [ocst.Elements]ocst.Drive) time.Duration {
	for i, d := range drives {
		_, armB := d.Code()
		arm := 0
		if armB {
			arm = 1
		}
		c.set(at, ocst.Element(i), 1-arm, 0)
		c.set(at, ocst.Element(i), arm, d.Volts())
	}
	return at + 100*time.Millisecond
}

func (t *Truth) own(i int, d ocst.Drive) float64 {
	if _, armB := d.Code(); armB {
		return -t.Elements[i].Phase(1, d.Volts())
	}
	return t.Elements[i].Phase(0, d.Volts())
}

// The loss budget of the three paths, up to the taps.
func TestLossBudget(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 5)
	c.light(0, 0xff)
	at := time.Duration(0)
	for _, test := range []struct {
		path   ocst.Path
		array  int
		lo, hi float64
	}{
		{ocst.Path1, ocst.PDOut1, 0.6, 1.4}, {ocst.Path2, ocst.PDOut2, 0.6, 1.4}, {ocst.LoopPath, ocst.PDLoopTap, 0.3, 0.7},
	} {
		at = settle(t, c, at, pathStates(test.path))
		p := c.powers(at)
		for lane := range ocst.Lanes {
			loss := toDB(p[ocst.PDLaunched][lane] / p[test.array][lane])
			if loss < test.lo || loss > test.hi {
				t.Errorf("%v of lane %d loses %.2f dB, want %g to %g", test.path, lane+1, loss, test.lo, test.hi)
			}
			for _, other := range []int{ocst.PDOut1, ocst.PDOut2, ocst.PDLoopTap} {
				if other != test.array && toDB(p[other][lane]/p[test.array][lane]) > -20 {
					t.Errorf("%v of lane %d: array %d gets %.3g mW", test.path, lane+1, other, p[other][lane])
				}
			}
			out1, out2, loop := c.lane(at, lane)
			if p[ocst.PDOut1][lane] != out1 || p[ocst.PDOut2][lane] != out2 || p[ocst.PDLoopTap][lane] != loop {
				t.Errorf("lane and powers do not agree on lane %d", lane+1)
			}
		}
	}
}

func pathStates(p ocst.Path) (states [ocst.Elements]bool) {
	for lane := range ocst.Lanes {
		states[ocst.S1(lane)] = p == ocst.LoopPath
		states[ocst.S2(lane)] = p == ocst.Path2
	}
	return states
}

// A lane that is not lit, a laser that is off, and nothing from the fibres: no light.
func TestDark(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 1)
	if c.powers(0) != (powers{}) {
		t.Error("there is light with no lane lit")
	}
	c.light(0, 0xff)
	c.laser(0, false)
	if c.powers(0) != (powers{}) {
		t.Error("there is light with the laser off")
	}
	c.setInput(1, 3, 1)
	c.setInput(2, 0, 1) // there is no such fibre
	near(t, "light from fibre 2", c.powers(0)[ocst.PDRx2][3], math.Pow(10, -0.12), 1e-12)
}

// One seed is one device, to the last bit, with its noise; another seed is another.
func TestSeed(t *testing.T) {
	t.Parallel()
	const seed = 42
	a, b := newChip(DefaultParams(), seed), newChip(DefaultParams(), seed)
	for _, c := range []*chip{a, b} {
		c.light(0, 0xff)
		settle(t, c, 0, pathStates(ocst.Path2))
	}
	if a.read(time.Second) != b.read(time.Second) || !reflect.DeepEqual(a.truth(), b.truth()) {
		t.Error("two chips of one seed differ")
	}
	made := time.Unix(1e9, 0)
	if !reflect.DeepEqual(a.factoryTable("X", made), newChip(DefaultParams(), seed).factoryTable("X", made)) {
		t.Error("the factory's table depends on what was done with the chip")
	}
	c := newChip(DefaultParams(), seed+1)
	if c.truth().Elements[0].Kappa1 == a.truth().Elements[0].Kappa1 {
		t.Error("two seeds give the same coupler")
	}
}

// To change the spread of one property leaves all others as they were.
func TestStreamsAreApart(t *testing.T) {
	t.Parallel()
	p := DefaultParams()
	p.PowerPiSpread = 0
	a, b := newChip(DefaultParams(), 3).truth(), newChip(p, 3).truth()
	for i := range a.Elements {
		a.Elements[i].PowerPi, a.Elements[i].Gain = b.Elements[i].PowerPi, b.Elements[i].Gain
	}
	if !reflect.DeepEqual(a, b) {
		t.Error("the spread of the heaters' power changes something else")
	}
}

// command is something done to a chip.
type command struct {
	at     time.Duration
	kind   int
	e      ocst.Element
	arm    int
	amount float64
}

func (m command) do(c *chip) {
	switch m.kind {
	case 0, 1, 2:
		c.set(m.at, m.e, m.arm, m.amount*ocst.DACFull)
	case 3, 4:
		c.setDirect(m.at, m.e, m.arm, m.amount*ocst.DACFull)
	case 5:
		c.setAmbient(m.at, 80*m.amount)
	case 6:
		c.laser(m.at, m.amount > 0.3)
	case 7:
		c.light(m.at, uint8(255*m.amount))
	}
}

func drawCommands(t *rapid.T, within time.Duration) []command {
	n := rapid.IntRange(1, 12).Draw(t, "commands")
	list := make([]command, n)
	at := time.Duration(0)
	for i := range list {
		at += time.Duration(math.Pow(10, rapid.Float64Range(0, math.Log10(float64(within))).Draw(t, "log gap")))
		list[i] = command{
			at, rapid.IntRange(0, 7).Draw(t, "kind"), ocst.Element(rapid.IntRange(0, ocst.Elements-1).Draw(t, "element")),
			rapid.IntRange(0, 1).Draw(t, "arm"), rapid.Float64Range(0, 1).Draw(t, "amount"),
		}
	}
	return list
}

// Who asks a chip, what and when, changes nothing in it: two chips that get the same
// commands are the same to the last bit, though one is asked all the time.
func TestAskingChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		quiet, asked := newChip(DefaultParams(), seed), newChip(DefaultParams(), seed)
		r := rand.New(rand.NewPCG(seed, 1))
		last := time.Duration(0)
		ask := func(until time.Duration) {
			for range 5 {
				at := last + time.Duration(r.Int64N(int64(until-last)+1))
				switch r.IntN(6) {
				case 0:
					asked.read(at)
				case 1:
					asked.lane(at, r.IntN(ocst.Lanes))
				case 2:
					asked.current(at, ocst.Element(r.IntN(ocst.Elements)), r.IntN(2))
				case 3:
					asked.power(at)
				case 4:
					asked.temperature(at)
				case 5:
					asked.truth()
				}
				last = max(last, at)
			}
			last = until
		}
		for _, m := range drawCommands(t, 10*time.Minute) {
			ask(m.at)
			m.do(quiet)
			m.do(asked)
		}
		at := last + time.Millisecond + time.Duration(r.Int64N(int64(time.Hour)))
		ask(at - time.Duration(r.Int64N(int64(time.Millisecond)))) // soon before
		ask(at)
		if quiet.powers(at) != asked.powers(at) {
			t.Errorf("powers at %v depend on who has asked: %v, or %v", at, quiet.powers(at), asked.powers(at))
		}
		if a, b := quiet.truth(), asked.truth(); a != b {
			t.Errorf("the truth at %v depends on who has asked", at)
		}
		if quiet.power(at) != asked.power(at) || quiet.temperature(at) != asked.temperature(at) {
			t.Errorf("power or temperature at %v depends on who has asked", at)
		}
		at += time.Second
		quiet.refresh(at)
		near(t, "power that the case has been told of", quiet.heaters.steady, quiet.heaters.power(at), 1e-6)
	})
}

// Any input is survived, and nothing gets lost or made: no output is brighter than what was
// launched, no number is none.
func TestHostileInput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newChip(DefaultParams(), rapid.Uint64().Draw(t, "seed"))
		c.light(0, 0xff)
		for range rapid.IntRange(1, 10).Draw(t, "calls") {
			at := time.Duration(rapid.Int64Range(-1e9, 1e18).Draw(t, "at"))
			volts := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1, 3.3, 1e300}).Draw(t, "volts")
			e := ocst.Element(rapid.IntRange(-2, ocst.Elements+2).Draw(t, "element"))
			arm := rapid.IntRange(-1, 3).Draw(t, "arm")
			c.set(at, e, arm, volts)
			c.setDirect(at, e+1, arm, volts)
			c.setAmbient(at, volts)
			c.setInput(arm, int(e), volts)
			c.current(at, e, arm)
			p := c.powers(at)
			for lane := range ocst.Lanes {
				in, out := p[ocst.PDLaunched][lane], p[ocst.PDOut1][lane]+p[ocst.PDOut2][lane]+p[ocst.PDLoopTap][lane]
				if !(in > 0 && out > 0 && out < in) {
					t.Fatalf("lane %d has %g mW of %g mW", lane+1, out, in)
				}
			}
			sum := 0.0
			for lane := range ocst.Lanes {
				sum += p[ocst.PDLoopTap][lane] - p[ocst.PDRxLoop][lane]
			}
			if !(sum > 0) {
				t.Fatalf("the loop network gains %g mW", -sum)
			}
			for array, lanes := range c.read(at) {
				for lane, v := range lanes {
					if v > 25000 {
						t.Fatalf("array %d, lane %d reads %d, beyond the full scale", array, lane, v)
					}
				}
			}
			if p := c.power(at); !(p > 0 && p < 20) {
				t.Fatalf("the module draws %g W", p)
			}
		}
	})
}

// What draws power: the laser, and heaters with their drivers. The case follows with one
// pole, to 1.2 K above ambient for each watt.
func TestPowerAndTemperature(t *testing.T) {
	t.Parallel()
	c := newChip(idealParams(), 1)
	near(t, "power", c.power(0), 8.5, 1e-9)
	near(t, "temperature", c.temperature(time.Hour), 25+8.5*1.2, 1e-9)
	for e := range ocst.Element(ocst.Elements) {
		c.setDirect(time.Hour, e, 0, math.Sqrt(0.022*400)) // a phase of π
	}
	// The drive is rounded to codes: 2e-4 of it at this voltage.
	near(t, "heaters", c.heaterPower(time.Hour), 36*0.022, 5e-4)
	near(t, "power", c.power(time.Hour), 8.5+36*0.022*3.5, 1e-3)
	begin, end := 25+8.5*1.2, 25+(8.5+36*0.022*3.5)*1.2
	near(t, "temperature then", c.temperature(time.Hour), begin, 1e-9)
	near(t, "temperature after one time constant", c.temperature(time.Hour+5*time.Second), end-(end-begin)/math.E, 1e-3)
	near(t, "temperature in the end", c.temperature(2*time.Hour), end, 1e-3)
	c.laser(2*time.Hour, false)
	near(t, "power without laser", c.power(2*time.Hour), 7+36*0.022*3.5, 1e-3)
	c.setAmbient(2*time.Hour, 60)
	near(t, "temperature in the heat", c.temperature(3*time.Hour), 60+(7+36*0.022*3.5)*1.2, 1e-3)
}

// All heaters at what two arms need at most keep the module within 12 W on average, and
// within what they need at π in any case.
func TestPowerOfStates(t *testing.T) {
	t.Parallel()
	sum, most := 0.0, 0.0
	const chips = 40
	for seed := range uint64(chips) {
		c := newChip(DefaultParams(), seed)
		at := settle(t, c, 0, loopStates(t, ocst.DefaultPermutation()))
		p := c.power(at)
		sum, most = sum+p, max(most, p)
	}
	t.Logf("mean %.2f W, most %.2f W of %d modules", sum/chips, most, chips)
	if most > 12 {
		t.Errorf("a module draws %.2f W, want at most 12", most)
	}
}

// Nothing that is asked often allocates.
func TestNoAllocations(t *testing.T) {
	c := newChip(DefaultParams(), 1)
	c.light(0, 0xff)
	at := settle(t, c, 0, pathStates(ocst.LoopPath))
	for name, ask := range map[string]func(){
		"lane":    func() { c.lane(at, 3) },
		"powers":  func() { c.powers(at) },
		"read":    func() { c.read(at) },
		"set":     func() { c.set(at, 4, 0, 1+float64(at%2)) },
		"current": func() { c.current(at, 4, 0) },
	} {
		if n := testing.AllocsPerRun(100, func() { at += 1001 * time.Microsecond; ask() }); n != 0 {
			t.Errorf("%s allocates %g times", name, n)
		}
	}
}
