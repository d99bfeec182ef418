package mzi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// CouplingFigures are the couplings of a module as they were measured.
type CouplingFigures struct {
	Matrix  *ocst.Coupling `json:"-"`
	Pairs   int            `json:"pairs"`   // measured
	Kept    int            `json:"kept"`    // told from none, and kept
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
	// couplingShare is the least share of light that must come through a heated element on
	// the way to the one that is looked at.
	couplingShare = 0.25
	// couplingSure is how many standard deviations a coupling must have to be kept: the far
	// ones are below what can be measured, and noise in their place would add up.
	couplingSure = 2
	// couplingDither calibrates how the ratio answers to the phase, near quadrature.
	couplingDither = 0.3
	couplingReads  = 16
	// slowSettle is waited for after a heater was changed: five of the slow pole of the
	// substrate, which has a twentieth of the effect.
	slowSettle = 5 * time.Millisecond
)

// Couple measures how much the elements heat each other: an element is held at quadrature,
// where its split answers most to its phase, while another is heated. All S1 and S2 are
// watched at once, each by its own lane's taps; elements of the loop network one after the
// other, by the receivers, with light at one input. Pairs further than [ocst.Reach] apart are
// taken to be free of it. fits must be those of the present temperature; coupling is what is
// known already, and where to write to. bias is the heat that others had when an element was
// swept, as [Calibrated] has it; nil if Phase0 has nothing of it any more. It is taken from
// Phase0 as couplings become known. Elements that are not usable are left alone.
func (s *Session) Couple(ctx context.Context, fits *[ocst.Elements]ocst.Fit, usable *[ocst.Elements]bool, coupling *ocst.Coupling, bias *[ocst.Elements][ocst.Elements]float64) (*CouplingFigures, error) {
	if bias == nil {
		bias = new([ocst.Elements][ocst.Elements]float64)
	}
	c := coupler{Session: s, fits: fits, usable: usable, g: coupling, bias: bias, figures: &CouplingFigures{Matrix: coupling}}
	if err := c.paths(ctx); err != nil {
		return c.figures, fmt.Errorf("coupling: %w", err)
	}
	// From the last column on, so that those behind can be held where they are by then.
	for column := ocst.Columns - 1; column >= 0; column-- {
		for row := range ocst.Rows {
			e := ocst.Loop(column, row)
			if err := c.loop(ctx, e); err != nil {
				return c.figures, fmt.Errorf("coupling: %v: %w", e, err)
			}
		}
	}
	c.fill()
	c.figures.Sigma = math.Sqrt(c.variance / float64(max(c.figures.Pairs, 1)))
	return c.figures, s.HeatAll(ctx, [ocst.Elements]ocst.Drive{})
}

type coupler struct {
	*Session
	fits     *[ocst.Elements]ocst.Fit
	usable   *[ocst.Elements]bool
	g        *ocst.Coupling
	bias     *[ocst.Elements][ocst.Elements]float64
	figures  *CouplingFigures
	done     [ocst.Elements][ocst.Elements]bool
	variance float64 // summed over pairs
}

// put drives the elements as said, waits, and returns what they gain by their own heaters.
// There may be a gap between the ranges of both arms, and a phase to measure at in it: next
// to it is good enough.
func (s *Session) put(ctx context.Context, fits *[ocst.Elements]ocst.Fit, g *ocst.Coupling, want *settings) (own [ocst.Elements]float64, err error) {
	drives, own, err := solve(fits, g, want, Sweeps)
	if err != nil && !errors.Is(err, ErrRange) {
		return own, err
	}
	if err := s.HeatAll(ctx, drives); err != nil {
		return own, err
	}
	return own, s.Wait(ctx, slowSettle)
}

// candidate returns what an element is to gain from its own heaters so that its heat
// differs most from what it was, with the light that must pass it passing; false if the
// difference is too small to measure by.
func (c *coupler) candidate(j ocst.Element, was float64, pass func(own float64) float64) (own float64, ok bool) {
	a, b := farthest(c.fits[j])
	best := 0.0
	for k := range 61 {
		d := b + (a-b)*(0.01+0.98*float64(k)/60)
		if pass(d) < couplingShare {
			continue
		}
		if heat := math.Abs(math.Abs(d) - math.Abs(was)); heat > best {
			own, best = d, heat
		}
	}
	return own, best >= couplingStep
}

// keep writes a coupling down. change is the phase that element i gained, heat the radians of
// its own that j gained.
func (c *coupler) keep(i, j ocst.Element, change, sigma, heat float64) {
	g, sd := change/heat, sigma/math.Abs(heat)
	if math.IsNaN(g) || math.Abs(g) >= 0.3 {
		c.unobserved(i, j, "what was read makes no sense")
		return
	}
	c.figures.Pairs++
	c.variance += sd * sd
	if math.Abs(g) < couplingSure*sd {
		g = 0
	} else {
		c.figures.Kept++
	}
	c.figures.Largest = max(c.figures.Largest, math.Abs(g))
	c.store(int(i), int(j), g)
	c.done[i][j] = true
}

// fill estimates couplings that could not be measured: by the median of those measured of
// elements as far apart. Coupling is a matter of distance first.
func (c *coupler) fill() {
	measured := map[int][]float64{}
	for i := range c.g {
		for j, g := range c.g[i] {
			if c.done[i][j] {
				measured[max(i-j, j-i)] = append(measured[max(i-j, j-i)], g)
			}
		}
	}
	for i := range c.g {
		for j := max(0, i-ocst.Reach); j < min(ocst.Elements, i+ocst.Reach+1); j++ {
			if list := measured[max(i-j, j-i)]; len(list) > 0 && c.usable[i] && c.usable[j] && i != j && !c.done[i][j] {
				slices.Sort(list)
				c.store(i, j, list[len(list)/2])
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

// paths measures the rows of S1 and S2, of all lanes together.
func (c *coupler) paths(ctx context.Context) error {
	if err := c.Light(ctx, 0xff); err != nil {
		return err
	}
	const watched = 2 * ocst.Lanes
	base := c.idle()
	for e := range ocst.Element(watched) {
		if c.usable[e] {
			base[e] = hold(math.Pi / 2)
		}
	}
	own, err := c.put(ctx, c.fits, c.g, &base)
	if err != nil {
		return err
	}
	for e := range base { // from here on it shows when they heat each other
		base[e] = fixed(own[e])
	}
	read := func() (r [watched]ratio, err error) {
		p, err := c.Powers(ctx, couplingReads)
		for e := range r {
			bar, cross := tapsOf(ocst.Element(e))
			r[e] = c.split(&p, bar, cross, couplingReads)
		}
		return r, err
	}
	// How the ratios answer. Those that are nudged together are too far apart to heat each
	// other, and never of one lane.
	var answer [watched]slope
	var known [watched]bool
	for first := range ocst.Element(ocst.Reach + 1) {
		var side [2][watched]ratio
		var at [2][ocst.Elements]float64
		for k, dither := range []float64{couplingDither, -couplingDither} {
			want := base
			for e := first; e < watched; e += ocst.Reach + 1 {
				if c.usable[e] {
					want[e] = fixed(nudged(c.fits[e], own[e], dither))
				}
			}
			if at[k], err = c.put(ctx, c.fits, c.g, &want); err != nil {
				return err
			}
			if side[k], err = read(); err != nil {
				return err
			}
		}
		for e := first; e < watched; e += ocst.Reach + 1 {
			if c.usable[e] {
				answer[e], known[e] = slopeOf(side[0][e], side[1][e], (at[0][e]-at[1][e])/2)
			}
		}
	}
	for j := range ocst.Element(watched + ocst.Reach) {
		c.tell(Progress{Step: "coupling", Done: int(j), Total: ocst.Elements, Detail: j.String()})
		if !c.usable[j] {
			continue
		}
		d, ok := c.candidate(j, own[j], func(d float64) float64 {
			if j >= ocst.Lanes {
				return 1 // no tap of another element is behind it
			}
			return passShare(c.fits[j].Phase0+d, false)
		})
		var before, heated, after [watched]ratio
		want := base
		want[j] = fixed(d)
		for _, step := range []struct {
			want *settings
			into *[watched]ratio
		}{{&base, &before}, {&want, &heated}, {&base, &after}} {
			if _, err := c.put(ctx, c.fits, c.g, step.want); err != nil {
				return err
			}
			if *step.into, err = read(); err != nil {
				return err
			}
		}
		for i := max(0, j-ocst.Reach); i < min(watched, j+ocst.Reach+1); i++ {
			switch {
			case i == j || !c.usable[i]:
			case !ok:
				c.unobserved(i, j, "its heat cannot be changed enough")
			case !known[i]:
				c.unobserved(i, j, "the element does not answer at quadrature")
			default:
				change := answer[i].phase(heated[i]) - (answer[i].phase(before[i])+answer[i].phase(after[i]))/2
				c.keep(i, j, change, heated[i].sigma*math.Sqrt(1.5)/math.Abs(answer[i].swing), math.Abs(d)-math.Abs(own[j]))
			}
		}
	}
	return nil
}

// nudged returns what an element is to gain from its own heaters to be so much further in
// phase, within its range.
func nudged(f ocst.Fit, own, by float64) float64 {
	a, b := farthest(f)
	return min(max(own+by, b), a)
}

// idle is what elements do that have nothing else to do: half of them are cold, half as warm
// as they can be. So the heat of each can be changed much, and all together are about as
// warm as in operation.
func (c *coupler) idle() (want settings) {
	for e := 1; e < ocst.Elements; e += 2 {
		if c.usable[e] {
			a, _ := farthest(c.fits[e])
			want[e] = fixed(0.95 * min(a, math.Pi))
		}
	}
	return want
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
