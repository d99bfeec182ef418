package ocstrx

import (
	"math"
	"testing"
	"time"
)

// A random walk has steps of variance 1 between neighbours, is n away after n steps, and its
// steps know nothing of each other.
func TestWalk(t *testing.T) {
	t.Parallel()
	const seeds = 4000
	for _, n := range []uint64{1, 2, 3, 7, 8, 100, 1023, 1 << 20, 1<<40 + 12345} {
		var step, total, product float64
		for seed := range uint64(seeds) {
			a, b, c := walk(seed, 5, n-1), walk(seed, 5, n), walk(seed, 5, n+1)
			step += (b - a) * (b - a)
			total += b * b
			product += (b - a) * (c - b)
		}
		// The variance of a variance from so many is 2/seeds: four sigma.
		const tolerance = 4 * 1.42 / 63
		near(t, "variance of a step", step/seeds, 1, tolerance)
		near(t, "variance of the walk", total/seeds/float64(n), 1, tolerance)
		near(t, "covariance of two steps", product/seeds, 0, tolerance)
	}
	if walk(1, 2, 1000) == walk(1, 3, 1000) || walk(1, 2, 1000) == walk(2, 2, 1000) {
		t.Error("two walks are one")
	}
	if walk(1, 2, 0) != 0 {
		t.Error("the walk does not begin at 0")
	}
}

// Phases drift as a random walk: over an hour by what the parameter says, and one minute
// after the other.
func TestDrift(t *testing.T) {
	t.Parallel()
	var hour, day float64
	n := 0
	for seed := range uint64(60) {
		p := idealParams()
		p.Drift = 0.01
		c := newChip(p, seed)
		before := phases(c, 0)
		for i, x := range phases(c, time.Hour) {
			hour += (x - before[i]) * (x - before[i])
		}
		for i, x := range phases(c, 24*time.Hour) {
			day += (x - before[i]) * (x - before[i])
			n++
		}
	}
	near(t, "drift in an hour", math.Sqrt(hour/float64(n)), 0.01, 0.0007)
	near(t, "drift in a day", math.Sqrt(day/float64(n)), 0.01*math.Sqrt(24), 0.0035)
}

// Temperature moves the phase of an element by its own coefficient, and takes some power
// from all heaters; age does as well.
func TestAmbientAndAge(t *testing.T) {
	t.Parallel()
	p := DefaultParams()
	p.Drift = 0
	c := newChip(p, 9)
	begin := c.truth()
	c.setAmbient(0, 60)
	c.refresh(time.Hour)
	hot := c.truth()
	near(t, "case", hot.Celsius-begin.Celsius, 35, 1e-6)
	positive := 0
	for i, e := range hot.Elements {
		if a := math.Abs(e.Ambient); a < 0.01 || a > 0.05 {
			t.Errorf("element %d gains %g rad/K", i, e.Ambient)
		}
		if e.Ambient > 0 {
			positive++
		}
		near(t, "phase", e.Phase0, begin.Elements[i].Phase0+35*e.Ambient, 1e-6)
		near(t, "resistance", e.Resistance[0]/begin.Elements[i].Resistance[0], (1+30.2e-3)/(1-4.8e-3), 1e-5)
	}
	if positive < 8 || positive > 28 {
		t.Errorf("%d of 36 coefficients are positive", positive)
	}
	c.refresh(1000 * time.Hour)
	old := c.truth()
	near(t, "resistance after 1000 hours", old.Elements[0].Resistance[0]/hot.Elements[0].Resistance[0], 1.001, 1e-5)
	near(t, "phase for a voltage", old.Elements[0].Gain[0]/hot.Elements[0].Gain[0], 1/1.001, 1e-5)
}
