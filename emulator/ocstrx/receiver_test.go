package ocstrx

import (
	"math"
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Readings are the power, plus the dark reading, with noise of 0.3 % and 5e-4 of the full
// scale, in steps of a converter of 12 bits.
func TestReadingNoise(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 3)
	c.light(0, 0xff)
	truth := c.truth()
	want := c.powers(0)
	const n = 4000
	var sum, squares [ocst.Photodiodes][ocst.Lanes]float64
	for range n {
		for array, lanes := range c.read(0) {
			for lane, v := range lanes {
				step := float64(v) / 1e4 / 2.5 * 4095
				near(t, "reading in steps", step, math.Round(step), 0.09)
				x := float64(v) - truth.Dark[array][lane]
				sum[array][lane] += x
				squares[array][lane] += x * x
			}
		}
	}
	for array := range sum {
		for lane := range sum[array] {
			mw := want[array][lane]
			mean := sum[array][lane] / n
			sigma := math.Sqrt(squares[array][lane]/n - mean*mean)
			noise := 1e4 * math.Hypot(0.003*mw, 5e-4*2.5)
			rounding := 1e4 * 2.5 / 4095 / math.Sqrt(12)
			near(t, "mean, 0.1 µW", mean, 1e4*mw, 5*noise/math.Sqrt(n)+0.5)
			near(t, "noise, 0.1 µW", sigma, math.Hypot(noise, rounding), 0.1*noise)
		}
	}
}

// Without light readings are positive, so that noise is seen on both sides of the mean and
// averages to it.
func TestDarkReadings(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		c := newChip(DefaultParams(), seed)
		for range 50 {
			for array, lanes := range c.read(0) {
				for lane, v := range lanes {
					if v == 0 || v > 270 {
						t.Fatalf("array %d, lane %d reads %d in the dark", array, lane, v)
					}
				}
			}
		}
	}
}

func TestReadingSaturates(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 1)
	c.setInput(0, 0, 100)
	if got := c.read(0)[ocst.PDRx1][0]; got != 25000 {
		t.Errorf("a reading of 76 mW is %d, want the full scale of 25000", got)
	}
}

// Taps that differ change readings, not light.
func TestTapSpread(t *testing.T) {
	t.Parallel()
	p := idealParams()
	p.TapSpread = 0.05
	c, alike := newChip(p, 1), newChip(idealParams(), 1)
	c.light(0, 0xff)
	alike.light(0, 0xff)
	if c.powers(0) != alike.powers(0) {
		t.Error("the taps change the light")
	}
	truth, w, got, alikeGot := c.truth(), c.powers(0), c.read(0), alike.read(0)
	for lane := range ocst.Lanes {
		mw := w[ocst.PDLaunched][lane]
		want := mw*1e4*truth.Gain[ocst.PDLaunched][lane] + truth.Dark[ocst.PDLaunched][lane]
		near(t, "reading", float64(got[ocst.PDLaunched][lane]), min(want, 25000), 4)
	}
	if got == alikeGot {
		t.Error("taps that differ give the same readings")
	}
}

// The measured current is what voltage and resistance say, less as the heater gets warm.
func TestCurrent(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 6)
	const e = 21
	c.setDirect(0, e, 1, 3)
	at := 20 * time.Millisecond
	c.refresh(at)
	x := c.truth().Elements[e]
	hot := x.Phase(1, dac(3)) * x.Bend // relative rise of resistance
	near(t, "rise", hot, x.Phase(1, dac(3))/math.Pi*17e-3, 1e-4)
	want := dac(3) / (x.Resistance[1] * (1 + hot))
	near(t, "true current", c.trueCurrent(at, e, 1), want, 2e-6)
	mean := 0.0
	for range 1000 {
		mean += c.current(at, e, 1) / 1000
	}
	near(t, "mean of the measured current", mean, want, 2e-6)
	near(t, "power of V and I", dac(3)*want, x.Phase(1, dac(3))*x.PowerPi[1]/math.Pi/1000, 1e-7)
	near(t, "heater power", c.heaterPower(at), dac(3)*want, 1e-5)
	if got := c.current(at, e, 0); got > 4*currentScale/adcMax {
		t.Errorf("the other arm draws %g A", got)
	}
}
