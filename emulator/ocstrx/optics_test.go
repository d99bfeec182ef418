package ocstrx

import (
	"math"
	"math/cmplx"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

func toDB(ratio float64) float64 { return 10 * math.Log10(ratio) }

// near fails the test unless got is within tolerance of want.
func near(t interface {
	Helper()
	Errorf(string, ...any)
}, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.9g, want %.9g within %.3g", what, got, want, tolerance)
	}
}

// Without loss all light comes out, from either input, and fields do what powers say.
func TestElementKeepsPower(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kappa := rapid.Float64Range(0, 1)
		m := newMZI(kappa.Draw(t, "kappa1"), kappa.Draw(t, "kappa2"), 0, 0)
		phase := rapid.Float64Range(-10, 10).Draw(t, "phase")
		bar, cross := m.powers(phase)
		near(t, "bar + cross", bar+cross, 1, 1e-12)
		f := m.fields(phase, rapid.Float64Range(-10, 10).Draw(t, "common"))
		near(t, "bar by fields", sqr(f[0][0]), bar, 1e-12)
		near(t, "cross by fields", sqr(f[1][0]), cross, 1e-12)
		near(t, "out of input 1", sqr(f[0][1])+sqr(f[1][1]), 1, 1e-12)
		product := f[0][0]*cmplx.Conj(f[0][1]) + f[1][0]*cmplx.Conj(f[1][1])
		near(t, "product of the columns", cmplx.Abs(product), 0, 1e-12)
	})
}

func sqr(x complex128) float64 { return real(x)*real(x) + imag(x)*imag(x) }

// The textbook formula, and that bar is a phase of π.
func TestElementFormula(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k1, k2 := rapid.Float64Range(0, 1).Draw(t, "k1"), rapid.Float64Range(0, 1).Draw(t, "k2")
		d := rapid.Float64Range(-7, 7).Draw(t, "phase")
		m := newMZI(k1, k2, 0, 0)
		bar, _ := m.powers(d)
		near(t, "bar", bar, (1-k1)*(1-k2)+k1*k2-2*math.Sqrt(k1*k2*(1-k1)*(1-k2))*math.Cos(d), 1e-12)
	})
	ideal := newMZI(0.5, 0.5, 0, 0)
	bar, _ := ideal.powers(math.Pi)
	_, cross := ideal.powers(0)
	near(t, "bar at π", bar, 1, 1e-12)
	near(t, "cross at 0", cross, 1, 1e-12)
}

// Leaks of coupler errors (Miller, Optica 2, 747, 2015, tells of the same limit): equal ones
// spoil the cross state, opposite ones the bar state.
func TestLeakOfCouplers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ delta, leak float64 }{{0.01, -34}, {0.02, -28}, {0.05, -20}} {
		equal := newMZI(0.5+test.delta, 0.5+test.delta, 0, 0)
		leak, _ := equal.powers(0)
		near(t, "leak of equal errors in cross", toDB(leak), test.leak, 0.1)
		if _, null := equal.powers(math.Pi); null > 1e-15 {
			t.Errorf("equal errors of %g leave %g in the bar state, want none", test.delta, null)
		}
		_, er := equal.extinction(1)
		near(t, "extinction in cross", er, -test.leak, 0.1)
		opposite := newMZI(0.5+test.delta, 0.5-test.delta, 0, 0)
		_, leak = opposite.powers(math.Pi)
		near(t, "leak of opposite errors in bar", toDB(leak), test.leak, 0.1)
		er, _ = opposite.extinction(2)
		near(t, "extinction in bar", er, -test.leak, 0.1)
	}
}

func TestLeakOfPhaseError(t *testing.T) {
	t.Parallel()
	m := newMZI(0.5, 0.5, 0, 0)
	for _, test := range []struct{ phase, leak float64 }{{0.112, -25}, {0.063, -30}} {
		leak, _ := m.powers(test.phase)
		near(t, "leak", toDB(leak), test.leak, 0.1)
		_, leak = m.powers(math.Pi + test.phase)
		near(t, "leak", toDB(leak), test.leak, 0.1)
	}
}

// With losses, too, fields and powers say the same, and the extinction ratio is the worse of
// both inputs at the best phase of each state.
func TestLossyElement(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kappa := rapid.Float64Range(0.35, 0.65)
		m := newMZI(kappa.Draw(t, "kappa1"), kappa.Draw(t, "kappa2"), 0.5, rapid.Float64Range(-2, 2).Draw(t, "imbalance"))
		phase := rapid.Float64Range(-10, 10).Draw(t, "phase")
		bar, cross := m.powers(phase)
		f := m.fields(phase, 0)
		near(t, "bar by fields", sqr(f[0][0]), bar, 1e-12)
		near(t, "cross by fields", sqr(f[1][0]), cross, 1e-12)
		b, c := m.fields(math.Pi, 0), m.fields(0, 0)
		one := [2]float64{sqr(b[0][0]) / sqr(b[1][0]), sqr(c[1][0]) / sqr(c[0][0])}
		both := [2]float64{min(one[0], sqr(b[1][1])/sqr(b[0][1])), min(one[1], sqr(c[0][1])/sqr(c[1][1]))}
		for inputs, want := range map[int][2]float64{1: one, 2: both} {
			barER, crossER := m.extinction(inputs)
			near(t, "extinction in bar", barER, min(toDB(want[0]), 110), 0.01+max(0, barER-90))
			near(t, "extinction in cross", crossER, min(toDB(want[1]), 110), 0.01+max(0, crossER-90))
		}
	})
}

// A difference of the arms' losses leaves a floor in both states.
func TestLeakOfArms(t *testing.T) {
	t.Parallel()
	m := newMZI(0.5, 0.5, 0.5, 0.5)
	bar, cross := m.powers(math.Pi)
	near(t, "loss", toDB(bar), -0.5, 0.01)
	d := (m.a - m.b) / (m.a + m.b)
	near(t, "floor", toDB(cross/bar), toDB(d*d), 0.01)
}

// With ideal elements the network is the one of package ocst, whatever the states: light
// arrives where ocst.States.Follow says, in all of its strength.
func TestLoopNetworkWiring(t *testing.T) {
	t.Parallel()
	p := idealParams()
	rapid.Check(t, func(t *rapid.T) {
		c := newChip(p, rapid.Uint64().Draw(t, "seed"))
		var states ocst.States
		for column := range states {
			for row := range states[column] {
				cross := rapid.Bool().Draw(t, "cross")
				states[column][row] = cross
				c.phase0[ocst.Loop(column, row)] = phaseOf(cross)
			}
		}
		for lane := range ocst.Lanes {
			c.phase0[ocst.S1(lane)] = phaseOf(true)
		}
		c.slow.stale = true
		for lane := range ocst.Lanes {
			c.light(0, 1<<lane)
			got := c.powers(0)
			to, _ := states.Follow(lane)
			near(t, "light at the receiver", got[ocst.PDRxLoop][to], p.Launch*(1-p.Tap), 1e-9)
		}
	})
}

func phaseOf(cross bool) float64 {
	if cross {
		return 0
	}
	return math.Pi
}

// A lossless network gives to its receivers all that enters it, however its elements stand,
// and light of two lanes adds up in power: it does not interfere.
func TestLoopNetworkKeepsPower(t *testing.T) {
	t.Parallel()
	p := idealParams()
	p.CouplerSpread = 0.1
	rapid.Check(t, func(t *rapid.T) {
		c := newChip(p, rapid.Uint64().Draw(t, "seed")) // all phases are random
		var sum [ocst.Lanes]float64
		for lane := range ocst.Lanes {
			c.light(0, 1<<lane)
			got := c.powers(0)
			total := 0.0
			for i, mw := range got[ocst.PDRxLoop] {
				sum[i] += mw
				total += mw
			}
			near(t, "total", total, got[ocst.PDLoopTap][lane]*(1-p.Tap), 1e-12)
			if lane > 0 && got[ocst.PDLoopTap][0] != 0 {
				t.Errorf("lane 1 is dark and has light in its loop")
			}
		}
		c.light(0, 0xff)
		for i, mw := range c.powers(0).at(ocst.PDRxLoop) {
			near(t, "all lanes together", mw, sum[i], 1e-12)
		}
	})
}

func (p powers) at(array int) [ocst.Lanes]float64 { return p[array] }

// Waveguides cross as the wiring makes them: a shuffle of eight lines crosses six times, that
// of each half of four once, and nothing crosses behind the last column.
func TestLoopNetworkCrossings(t *testing.T) {
	t.Parallel()
	n := newLoopNetwork(1, func() float64 { return 1 })
	for column, want := range []float64{6, 2, 2, 6, 0} {
		crossings := 0.0
		for _, g := range n.guide[column] {
			crossings -= toDB(sqr(g)) / 2 // two waveguides to a crossing, 1 dB each
		}
		near(t, "crossings", crossings, want, 1e-9)
	}
}

// Light of one lane does interfere with itself: with all elements half open, what arrives
// depends on the phases within the network.
func TestLoopNetworkInterferes(t *testing.T) {
	t.Parallel()
	c := newChip(idealParams(), 1)
	for e := range c.phase0 {
		c.phase0[e] = math.Pi / 2
	}
	c.slow.stale = true
	c.light(0, 1)
	before := c.powers(0)
	c.loop.guide[1][0] *= 1i
	after := c.powers(0)
	changed := 0.0
	for i := range ocst.Lanes {
		changed = max(changed, math.Abs(after[ocst.PDRxLoop][i]-before[ocst.PDRxLoop][i]))
	}
	if changed < 0.01 {
		t.Errorf("a quarter of a wave in one waveguide changes the receivers by %g mW, want more", changed)
	}
}

// A calibrated real device takes every lane where a random permutation says, with what the
// loss budget allows, and with little light elsewhere.
func TestRandomPermutationsArrive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newChip(DefaultParams(), rapid.Uint64().Draw(t, "seed"))
		perm := rapid.Permutation([]uint8{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "permutation")
		at := settle(t, c, 0, loopStates(t, ocst.Permutation(perm)))
		for lane, to := range perm {
			c.light(at, 1<<lane)
			got := c.powers(at)
			in := got[ocst.PDLaunched][lane]
			// Six elements, and up to 3 crossings at a time.
			if loss := toDB(in / got[ocst.PDRxLoop][to]); loss < 2 || loss > 5.5 {
				t.Errorf("lane %d reaches lane %d with a loss of %.2f dB", lane+1, to+1, loss)
			}
			for other, mw := range got[ocst.PDRxLoop] {
				if other != int(to) && toDB(mw/got[ocst.PDRxLoop][to]) > -15 {
					t.Errorf("lane %d, which goes to lane %d, is only %.1f dB weaker at lane %d", lane+1, to+1, toDB(got[ocst.PDRxLoop][to]/mw), other+1)
				}
			}
		}
	})
}

// loopStates has all lanes on the loop. True is cross.
func loopStates(t interface{ Fatal(...any) }, p ocst.Permutation) (states [ocst.Elements]bool) {
	routed, err := ocst.Route(p)
	if err != nil {
		t.Fatal(err)
	}
	for lane := range ocst.Lanes {
		states[ocst.S1(lane)] = true
	}
	for column := range routed {
		for row, cross := range routed[column] {
			states[ocst.Loop(column, row)] = cross
		}
	}
	return states
}
