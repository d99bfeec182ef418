package mzi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// CouplingFigures are the couplings of a module as they were measured.
type CouplingFigures struct {
	Matrix  *ocst.Coupling `json:"-"`
	Pairs   int            `json:"pairs"`   // measured
	Kept    int            `json:"kept"`    // told from none
	Largest float64        `json:"largest"` // rad per rad
	Sigma   float64        `json:"sigma"`   // standard deviation of one, typically
	// Unobserved are pairs that could not be measured, and why. They are taken to be as
	// others that are as far apart.
	Unobserved []string `json:"unobserved,omitempty"`
}

const (
	// couplingStep is the least difference of heat, in rad of the heated element, that a
	// coupling is measured with.
	couplingStep = 0.8
	// couplingDither calibrates how the ratio answers to the phase, near quadrature.
	couplingDither = 0.3
	couplingReads  = 16
	// passLeast is the least share of light that must come through an element on the way to
	// the one that is looked at while it is heated.
	passLeast = 0.7
	// strayPhase is by how much light that does not pass seems to move it all the same, rad:
	// elements lose a little light, so that sums of receivers are not quite free of interference.
	strayPhase = 0.002
	// leastAlike is of how many pairs something must be known to say what such pairs have.
	leastAlike = 8
	// slowSettle is waited for after a heater was changed: five of the slow pole of the
	// substrate, which has a twentieth of the effect.
	slowSettle = 5 * time.Millisecond
	// couplingSettle is enough where what the substrate lags behind is a part of a coupling, or
	// cancels.
	couplingSettle = 3 * time.Millisecond
)

// Couple measures how much the elements heat each other: an element is held at quadrature,
// where its split answers most to its phase, while those around it are heated by turns, half
// of them at a time, in sixteen patterns that tell each from all others. S1 and S2 of a lane
// are watched at once, by its taps; elements of the loop network one after the other, by the
// receivers, with light at one input. Pairs further than [ocst.Reach] apart are taken to be
// free of it. fits must be those of the present temperature; coupling is what is known
// already, and where to write to. bias is the heat that others had when an element was swept,
// as [Calibrated] has it; nil if Phase0 has nothing of it any more. It is taken from Phase0 as
// couplings become known. Elements that are not usable are left alone. The heaters are left
// on.
func (s *Session) Couple(ctx context.Context, fits *[ocst.Elements]ocst.Fit, usable *[ocst.Elements]bool, coupling *ocst.Coupling, bias *[ocst.Elements][ocst.Elements]float64) (*CouplingFigures, error) {
	if bias == nil {
		bias = new([ocst.Elements][ocst.Elements]float64)
	}
	c := coupler{Session: s, fits: fits, usable: usable, g: coupling, bias: bias, figures: &CouplingFigures{Matrix: coupling}}
	if err := s.compareReceivers(ctx, fits, usable); err != nil {
		return c.figures, fmt.Errorf("coupling: %w", err)
	}
	var err error
	if c.background, err = background(usable); err != nil {
		return c.figures, fmt.Errorf("coupling: %w", err)
	}
	if err := c.lanes(ctx); err != nil {
		return c.figures, fmt.Errorf("coupling: %w", err)
	}
	c.guess()
	// From the last column on, so that those behind can be held where they are by then.
	for column := ocst.Columns - 1; column >= 0; column-- {
		for row := range ocst.Rows {
			e := ocst.Loop(column, row)
			if err := c.loop(ctx, e); err != nil {
				return c.figures, fmt.Errorf("coupling: %v: %w", e, err)
			}
		}
	}
	c.finish()
	return c.figures, nil
}

type coupler struct {
	*Session
	fits    *[ocst.Elements]ocst.Fit
	usable  *[ocst.Elements]bool
	g       *ocst.Coupling
	bias    *[ocst.Elements][ocst.Elements]float64
	figures *CouplingFigures
	sigma   [ocst.Elements][ocst.Elements]float64 // of those measured
	// What elements do that have nothing else to do: what they do in operation, so that
	// the case is about as warm.
	background settings
}

// put drives the elements as said, waits, and returns what they gain by their own heaters.
// There may be a gap between the ranges of both arms, and a phase to measure at in it: next
// to it is good enough.
func (s *Session) put(ctx context.Context, fits *[ocst.Elements]ocst.Fit, g *ocst.Coupling, want *settings, settle time.Duration) (own [ocst.Elements]float64, err error) {
	drives, own, err := solve(fits, g, want, Sweeps)
	if err != nil && !errors.Is(err, ErrRange) {
		return own, err
	}
	if err := s.HeatAll(ctx, drives); err != nil {
		return own, err
	}
	return own, s.Wait(ctx, settle)
}

// around lists the usable elements in reach of one.
func (c *coupler) around(e ocst.Element) (list []ocst.Element) {
	for j := max(0, e-ocst.Reach); j < min(ocst.Elements, e+ocst.Reach+1); j++ {
		if j != e && c.usable[j] {
			list = append(list, j)
		}
	}
	return list
}

// lanes measures the rows of S1 and S2, both of a lane at once: they are too far apart to
// heat each other.
func (c *coupler) lanes(ctx context.Context) error {
	if err := c.Light(ctx, 0xff); err != nil {
		return err
	}
	for lane := range ocst.Lanes {
		var watched []ocst.Element
		factors := map[ocst.Element]bool{}
		for _, e := range []ocst.Element{ocst.S1(lane), ocst.S2(lane)} {
			if !c.usable[ocst.S1(lane)] || !c.usable[e] {
				continue
			}
			watched = append(watched, e)
			for _, j := range c.around(e) {
				factors[j] = true
			}
		}
		var list []ocst.Element
		for j := range ocst.Element(ocst.Elements) {
			if factors[j] {
				list = append(list, j)
			}
		}
		c.tell(Progress{Step: "coupling", Done: 2 * lane, Total: ocst.Elements, Detail: fmt.Sprintf("lane %d", lane+1)})
		if err := c.design(ctx, watched, c.background, list, func() ([]ratio, error) {
			p, err := c.Powers(ctx, couplingReads)
			list := make([]ratio, len(watched))
			for k, e := range watched {
				list[k] = c.share(tapsOf(e), &p, couplingReads)
			}
			return list, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// answers finds how the ratios of elements at quadrature answer to their phases.
func (c *coupler) answers(ctx context.Context, watched []ocst.Element, base settings, own [ocst.Elements]float64, read func() ([]ratio, error)) (list []slope, ok []bool, err error) {
	var side [2][]ratio
	var at [2][ocst.Elements]float64
	for k, dither := range []float64{couplingDither, -couplingDither} {
		for _, e := range watched {
			base[e] = fixed(nudged(c.fits[e], own[e], dither))
		}
		if at[k], err = c.put(ctx, c.fits, c.g, &base, couplingSettle); err != nil {
			return nil, nil, err
		}
		if side[k], err = read(); err != nil {
			return nil, nil, err
		}
	}
	list, ok = make([]slope, len(watched)), make([]bool, len(watched))
	for k, e := range watched {
		list[k], ok[k] = slopeOf(side[0][k], side[1][k], (at[0][e]-at[1][e])/2)
	}
	return list, ok, nil
}

// runs and columns are a two-level design: columns of the Hadamard matrix of sixteen rows,
// without the slow ones, for temperature drifts slowly. As many elements are around one, and
// any of them are less than so many apart.
const runs = 16

var columns = [2*ocst.Reach + 1]int{1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15}

func hot(run int, j ocst.Element) bool {
	return bits.OnesCount(uint(run&columns[int(j)%len(columns)]))%2 != 0
}

// design measures what the elements watched gain from each of those around them that are
// among the factors. The factors are heated at will.
func (c *coupler) design(ctx context.Context, watched []ocst.Element, base settings, factors []ocst.Element, read func() ([]ratio, error)) error {
	if len(watched) == 0 || len(factors) == 0 {
		return nil
	}
	level := func(j ocst.Element, share float64) setting {
		a, _ := farthest(c.fits[j])
		return fixed(0.95 * share * min(a, math.Pi))
	}
	for _, j := range factors {
		base[j] = level(j, 0.5)
	}
	for _, e := range watched {
		base[e] = hold(math.Pi / 2)
	}
	own, err := c.put(ctx, c.fits, c.g, &base, couplingSettle)
	if err != nil {
		return err
	}
	for _, e := range watched { // from here on it shows when they are heated
		base[e] = fixed(own[e])
	}
	answer, ok, err := c.answers(ctx, watched, base, own, read)
	if err != nil {
		return err
	}
	var phase [runs][]float64
	var heat [runs][ocst.Elements]float64
	variance := make([]float64, len(watched))
	for run := range runs {
		for _, j := range factors {
			base[j] = fixed(0)
			if hot(run, j) {
				base[j] = level(j, 1)
			}
		}
		own, err := c.put(ctx, c.fits, c.g, &base, couplingSettle)
		if err != nil {
			return err
		}
		heat[run] = own
		r, err := read()
		if err != nil {
			return err
		}
		phase[run] = make([]float64, len(watched))
		for k := range watched {
			phase[run][k] = answer[k].phase(r[k])
			sigma := r[k].sigma / answer[k].swing
			variance[k] += sigma * sigma
		}
	}
	for k, e := range watched {
		for _, j := range factors {
			if max(e-j, j-e) > ocst.Reach || j == e {
				continue
			}
			if !ok[k] {
				c.unobserved(e, j, "the element does not answer at quadrature")
				continue
			}
			var change, apart float64
			for run := range runs {
				if hot(run, j) {
					change, apart = change+phase[run][k], apart+math.Abs(heat[run][j])
				} else {
					change, apart = change-phase[run][k], apart-math.Abs(heat[run][j])
				}
			}
			c.keep(e, j, change, math.Sqrt(variance[k]), apart)
		}
	}
	return nil
}

// keep writes a coupling down. change is the phase that element i gained, heat the radians of
// its own that j gained.
func (c *coupler) keep(i, j ocst.Element, change, sigma, heat float64) {
	g, sd := change/heat, sigma/math.Abs(heat)
	if !(math.Abs(g) < 0.3) || !(sd < 0.3) { // NaN is neither
		c.unobserved(i, j, "what was read makes no sense")
		return
	}
	c.store(int(i), int(j), g)
	c.sigma[i][j] = sd
}

// finish weighs what was measured of each pair against what others as far apart have: coupling
// is a matter of distance first. Far ones are below what can be measured well, and of some
// pairs nothing was measured.
func (c *coupler) finish() {
	var variance float64
	var measured [ocst.Reach + 1][]float64
	for i := range c.g {
		for j, g := range c.g[i] {
			if sd := c.sigma[i][j]; sd > 0 {
				measured[max(i-j, j-i)] = append(measured[max(i-j, j-i)], g)
				variance += sd * sd
				c.figures.Pairs++
				if math.Abs(g) > 2*sd {
					c.figures.Kept++
				}
				c.figures.Largest = max(c.figures.Largest, math.Abs(g))
			}
		}
	}
	c.figures.Sigma = math.Sqrt(variance / float64(max(c.figures.Pairs, 1)))
	for i := range c.g {
		for _, j := range c.around(ocst.Element(i)) {
			list := measured[max(i-int(j), int(j)-i)]
			if len(list) == 0 || !c.usable[i] {
				continue
			}
			slices.Sort(list)
			middle := list[len(list)/2]
			spread := (list[len(list)*5/6] - list[len(list)/6]) / 2
			g, trust := middle, 0.0
			if sd := c.sigma[i][j]; sd > 0 {
				trust = spread * spread / (spread*spread + sd*sd)
				if len(list) < leastAlike || !(trust > 0) {
					trust = 1
				}
				g += trust * (c.g[i][j] - middle)
			}
			c.store(i, int(j), g)
		}
	}
}

// guess gives the elements of the loop network, of which nothing is known yet, the couplings
// that S1 and S2 have by the median. So they are nearly in the states that they should have.
func (c *coupler) guess() {
	var measured [ocst.Reach + 1][]float64
	for i := range 2 * ocst.Lanes {
		for j, g := range c.g[i] {
			if c.sigma[i][j] > 0 {
				measured[max(i-j, j-i)] = append(measured[max(i-j, j-i)], g)
			}
		}
	}
	for e := ocst.Loop(0, 0); e < ocst.Elements; e++ {
		for _, j := range c.around(e) {
			if list := measured[max(e-j, j-e)]; len(list) > 0 && c.usable[e] && c.g[e][j] == 0 {
				slices.Sort(list)
				c.store(int(e), int(j), list[len(list)/2])
			}
		}
	}
}

// store takes a coupling over, and what it says of the heat during sweeps from the phase.
func (c *coupler) store(i, j int, g float64) {
	c.fits[i].Phase0 -= (g - c.g[i][j]) * c.bias[i][j]
	c.g[i][j] = g
}

func (c *coupler) unobserved(i, j ocst.Element, why string) {
	c.figures.Unobserved = append(c.figures.Unobserved, fmt.Sprintf("%v heated by %v: %s", i, j, why))
}

// nudged returns what an element is to gain from its own heaters to be so much further in
// phase, within its range.
func nudged(f ocst.Fit, own, by float64) float64 {
	a, b := farthest(f)
	return min(max(own+by, b), a)
}

// passShare is the share of the light that goes on in the bar or cross state of an element
// at a phase; ideal couplers are near enough for that.
func passShare(phase float64, cross bool) float64 {
	bar := (1 - math.Cos(phase)) / 2
	if cross {
		return 1 - bar
	}
	return bar
}
