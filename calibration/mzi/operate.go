package mzi

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// OperatingPoint is what was put right of an element with all heaters of the module on.
type OperatingPoint struct {
	Name string `json:"name"`
	// Phase errors that were found in the bar and in the cross state before the last
	// correction, rad. The correction is by their mean; half their difference stays.
	Bar   float64 `json:"bar_error_rad"`
	Cross float64 `json:"cross_error_rad"`
	Moved float64 `json:"moved_rad"` // by all corrections
}

const (
	// operateDither is how far elements are taken to either side of a state to find it: far
	// enough that the difference stands out of the noise.
	operateDither = 1.1
	operateRounds = 2
	operateReads  = 32
	// leastSwing is the least amplitude of the share of an element; ideal ones have 0.5.
	leastSwing = 0.15
)

// Operate puts the phases of all elements right with the heaters of all of them on, as they
// are when the module carries light: the case is warmer than during sweeps by a degree or
// two, and phases move by some hundredths of a radian per degree. Each element that is
// usable is taken to both sides of both of its states; where the split is as much on either
// side is where the state is. It corrects Phase0 of fits, and returns the temperature of the
// case to which they belong then. soak is the
// longest wait for the case to come to a steady temperature.
func (s *Session) Operate(ctx context.Context, fits *[ocst.Elements]ocst.Fit, usable *[ocst.Elements]bool, coupling *ocst.Coupling, soak time.Duration) ([]OperatingPoint, float64, error) {
	o := operator{Session: s, fits: fits, usable: usable, g: coupling, settle: slowSettle}
	celsius, err := o.run(ctx, soak)
	if err != nil {
		return nil, 0, fmt.Errorf("operating point: %w", err)
	}
	var points []OperatingPoint
	for e := range ocst.Element(ocst.Elements) {
		if o.seen[e] {
			o.found[e].Name = e.String()
			points = append(points, o.found[e])
		}
	}
	return points, celsius, nil
}

type operator struct {
	*Session
	fits   *[ocst.Elements]ocst.Fit
	usable *[ocst.Elements]bool
	g      *ocst.Coupling
	settle time.Duration // between a change and a reading
	found  [ocst.Elements]OperatingPoint
	seen   [ocst.Elements]bool
}

func (o *operator) run(ctx context.Context, soak time.Duration) (float64, error) {
	if err := o.compareReceivers(ctx, o.fits, o.usable); err != nil {
		return 0, err
	}
	// Where the heaters are about as warm as they will be.
	want, err := background(o.usable)
	if err != nil {
		return 0, err
	}
	if err := o.Light(ctx, 0); err != nil {
		return 0, err
	}
	if _, err := o.put(ctx, o.fits, o.g, &want, o.settle); err != nil {
		return 0, err
	}
	if err := o.Session.soak(ctx, soak, still); err != nil {
		return 0, err
	}
	for round := range operateRounds {
		if err := o.paths(ctx, want); err != nil {
			return 0, err
		}
		for e := ocst.Loop(0, 0); e < ocst.Elements; e++ {
			o.tell(Progress{Step: "operating point", Done: round*ocst.Elements + int(e), Total: operateRounds * ocst.Elements, Detail: e.String()})
			if err := o.loop(ctx, want, e, round == operateRounds-1); err != nil {
				return 0, fmt.Errorf("%v: %w", e, err)
			}
		}
	}
	return o.Temperature(ctx)
}

// background holds all usable elements in states of normal service: paths to fibre 1, the
// loop at its default permutation.
func background(usable *[ocst.Elements]bool) (want settings, err error) {
	set, err := ocst.Route(ocst.DefaultPermutation())
	if err != nil {
		return want, err
	}
	for e := range ocst.Element(ocst.Elements) {
		if usable[e] {
			column, row, loop := e.IsLoop()
			want[e] = hold(stateTarget(loop && set[column][row]))
		}
	}
	return want, nil
}

// place is how far the states of an element are from where its fit says, rad.
type place struct {
	bar, cross float64
	sigma      float64                // of their mean
	own        [ocst.Elements]float64 // mean of what all elements gained by their own heaters
}

// states takes the elements given to both sides of both of their states, and finds where these
// are: where the share is as much on either side. read takes the readings.
func (o *operator) states(ctx context.Context, want settings, elements []ocst.Element, read func() ([]ratio, error)) ([]place, error) {
	var side [2][2][]ratio // of bar and cross, above and below
	var own [2][2][ocst.Elements]float64
	for i := range side {
		for k, dither := range []float64{operateDither, -operateDither} {
			for _, e := range elements {
				want[e] = hold(stateTarget(i == 1) + dither)
			}
			var err error
			if own[i][k], err = o.put(ctx, o.fits, o.g, &want, o.settle); err != nil {
				return nil, err
			}
			if side[i][k], err = read(); err != nil {
				return nil, err
			}
		}
	}
	places := make([]place, len(elements))
	for n, e := range elements {
		p := &places[n]
		phase := func(i, k int) float64 { return o.fits[e].Phase0 + own[i][k][e] + heatFrom(o.g, int(e), &own[i][k]) }
		// The share at bar is largest at the bar state, and least at cross.
		swing := (side[0][0][n].r + side[0][1][n].r - side[1][0][n].r - side[1][1][n].r) / (4 * math.Cos(operateDither))
		for i, found := range [...]*float64{&p.bar, &p.cross} {
			half := wrapped(phase(i, 0)-phase(i, 1)) / 2
			x := (side[i][1][n].r - side[i][0][n].r) / (2 * swing * math.Sin(half))
			if i == 1 {
				x = -x
			}
			if !(math.Abs(x) < 0.9 && swing > leastSwing) { // nor NaN
				return nil, fmt.Errorf("%v is a radian or more away from where its calibration says that it is: sweep it anew", e)
			}
			// The middle of both sides is not quite the state, for the converter has steps.
			*found = math.Asin(x) - wrapped(phase(i, 0)-half-stateTarget(i == 1))
			for k := range 2 {
				p.sigma += math.Pow(side[i][k][n].sigma/(4*swing*math.Sin(half)), 2)
			}
		}
		p.sigma = math.Sqrt(p.sigma)
		for i := range own {
			for k := range own[i] {
				for j, x := range own[i][k] {
					p.own[j] += x / 4
				}
			}
		}
	}
	return places, nil
}

// correct moves the phase of an element by the mean of what was found in both states.
func (o *operator) correct(e ocst.Element, bar, cross float64) {
	mean := (bar + cross) / 2
	f := &o.found[e]
	f.Bar, f.Cross, f.Moved = bar, cross, f.Moved+mean
	o.seen[e] = true
	o.fits[e].Phase0 = wrapped(o.fits[e].Phase0 + mean)
}

// paths does S1 and S2 of all lanes at once.
func (o *operator) paths(ctx context.Context, want settings) error {
	var s1, s2 []ocst.Element
	for lane := range ocst.Lanes {
		if o.usable[ocst.S1(lane)] {
			s1 = append(s1, ocst.S1(lane))
			if o.usable[ocst.S2(lane)] {
				s2 = append(s2, ocst.S2(lane))
			}
		}
	}
	if err := o.Light(ctx, 0xff); err != nil {
		return err
	}
	for _, elements := range [][]ocst.Element{s1, s2} {
		read := func() ([]ratio, error) {
			p, err := o.Powers(ctx, operateReads)
			list := make([]ratio, len(elements))
			for k, e := range elements {
				list[k] = o.share(tapsOf(e), &p, operateReads)
			}
			return list, err
		}
		found, err := o.states(ctx, want, elements, read)
		if err != nil {
			return err
		}
		for k, e := range elements {
			o.correct(e, found[k].bar, found[k].cross)
		}
	}
	return nil
}

// loop does an element of the loop network, by one way to it or by all.
func (o *operator) loop(ctx context.Context, want settings, e ocst.Element, all bool) error {
	if !o.usable[e] {
		return nil
	}
	// What comes to its other input after it has leaked twice moves a null by some mrad, by
	// another amount in each way: the mean of some is closer.
	var ways []way
	for _, w := range o.known.ways(e) {
		if w.usable(o.usable) && (all || len(ways) == 0) {
			ways = append(ways, w)
		}
	}
	if len(ways) == 0 {
		return nil
	}
	var bar, cross float64
	one := []ocst.Element{e}
	for _, w := range ways {
		if err := o.Light(ctx, 1<<w.lane); err != nil {
			return err
		}
		want := want
		w.put(&want)
		read := func() ([]ratio, error) {
			p, err := o.powers(ctx, operateReads, loopOnly)
			return []ratio{o.share(w.view, &p, operateReads)}, err
		}
		found, err := o.states(ctx, want, one, read)
		if err != nil {
			return err
		}
		bar += found[0].bar / float64(len(ways))
		cross += found[0].cross / float64(len(ways))
	}
	o.correct(e, bar, cross)
	return nil
}
