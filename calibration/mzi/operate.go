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
	operateDither = 0.7
	operateRounds = 2
	operateReads  = 16
	operateLooks  = 3 // scenes of an element of the loop network, in the last round
	// idealSwing is the amplitude of the ratio of an element; what couplers make of it
	// is a few percent of a small error, and gone in the second round.
	idealSwing = 0.5
)

// Operate puts the phases of all elements right with the heaters of all of them on, as they
// are when the module carries light: the case is warmer than during sweeps by a degree or
// two, and phases move by some hundredths of a radian per degree. Each element that is
// usable is taken to both sides of both of its states; where the split is as much on either
// side is where the state is. It corrects Phase0 of fits, and returns the temperature of the
// case to which they belong then. soak is the
// longest wait for the case to come to a steady temperature.
func (s *Session) Operate(ctx context.Context, fits *[ocst.Elements]ocst.Fit, usable *[ocst.Elements]bool, coupling *ocst.Coupling, soak time.Duration) ([]OperatingPoint, float64, error) {
	o := operator{Session: s, fits: fits, usable: usable, g: coupling}
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
	found  [ocst.Elements]OperatingPoint
	seen   [ocst.Elements]bool
}

func (o *operator) run(ctx context.Context, soak time.Duration) (float64, error) {
	// Where the heaters are about as warm as they will be.
	want, err := o.background()
	if err != nil {
		return 0, err
	}
	if err := o.Light(ctx, 0); err != nil {
		return 0, err
	}
	if _, err := o.put(ctx, o.fits, o.g, &want); err != nil {
		return 0, err
	}
	if err := o.soak(ctx, soak); err != nil {
		return 0, err
	}
	for round := range operateRounds {
		if err := o.paths(ctx, want); err != nil {
			return 0, err
		}
		for e := ocst.Loop(0, 0); e < ocst.Elements; e++ {
			o.tell(Progress{Step: "operating point", Done: round*ocst.Elements + int(e), Total: operateRounds * ocst.Elements, Detail: e.String()})
			if err := o.loop(ctx, want, e, 1+round*(operateLooks-1)); err != nil {
				return 0, fmt.Errorf("%v: %w", e, err)
			}
		}
	}
	return o.Temperature(ctx)
}

// background holds all usable elements in states of normal service: paths to fibre 1, the
// loop at its default permutation.
func (o *operator) background() (want settings, err error) {
	states, err := ocst.Route(ocst.DefaultPermutation())
	if err != nil {
		return want, err
	}
	for e := range ocst.Element(ocst.Elements) {
		if o.usable[e] {
			column, row, loop := e.IsLoop()
			want[e] = hold(stateTarget(loop && states[column][row]))
		}
	}
	return want, nil
}

// around reads the ratios with the elements given taken to both sides of a state, and
// returns how far they are from it, rad. ratios takes the readings.
func (o *operator) around(ctx context.Context, want settings, elements []ocst.Element, cross bool, ratios func() ([]ratio, error)) ([]float64, error) {
	var side [2][]ratio
	var own [2][ocst.Elements]float64
	for k, dither := range []float64{operateDither, -operateDither} {
		for _, e := range elements {
			want[e] = hold(stateTarget(cross) + dither)
		}
		var err error
		if own[k], err = o.put(ctx, o.fits, o.g, &want); err != nil {
			return nil, err
		}
		if side[k], err = ratios(); err != nil {
			return nil, err
		}
	}
	errs := make([]float64, len(elements))
	for k, e := range elements {
		// The share at bar is largest at the bar state, and least at cross.
		up := o.fits[e].Phase0 + own[0][e] + heatFrom(o.g, int(e), &own[0])
		half := wrapped(up-(o.fits[e].Phase0+own[1][e]+heatFrom(o.g, int(e), &own[1]))) / 2
		x := (side[1][k].r - side[0][k].r) / (2 * idealSwing * math.Sin(half))
		if cross {
			x = -x
		}
		if math.IsNaN(x) || math.Abs(x) > 0.9 {
			return nil, fmt.Errorf("%v is a radian or more away from where its calibration says that it is: sweep it anew", e)
		}
		// The middle of both sides is not quite the state, for the converter has steps.
		errs[k] = math.Asin(x) - wrapped(up-half-stateTarget(cross))
	}
	return errs, nil
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
				bar, cross := tapsOf(e)
				list[k] = o.split(&p, bar, cross, operateReads)
			}
			return list, err
		}
		bar, err := o.around(ctx, want, elements, false, read)
		if err != nil {
			return err
		}
		cross, err := o.around(ctx, want, elements, true, read)
		if err != nil {
			return err
		}
		for k, e := range elements {
			o.correct(e, bar[k], cross[k])
		}
	}
	return nil
}

// loop does an element of the loop network, in so many scenes.
func (o *operator) loop(ctx context.Context, want settings, e ocst.Element, looks int) error {
	if !o.usable[e] {
		return nil
	}
	// What leaks twice still moves a null by some mrad, by another amount in each scene: the
	// mean of some is closer.
	var views []scene
	scenes(e, o.usable, func(s *scene) bool {
		views = append(views, *s)
		return len(views) < looks
	})
	if len(views) == 0 {
		return nil
	}
	var bar, cross float64
	one := []ocst.Element{e}
	for i := range views {
		s := &views[i]
		if err := o.Light(ctx, 1<<s.lane); err != nil {
			return err
		}
		want := want
		s.put(&want, o.usable)
		read := func() ([]ratio, error) {
			p, err := o.powers(ctx, operateReads, loopOnly)
			return []ratio{o.watch(&p, s, both, 0, operateReads)}, err
		}
		inBar, err := o.around(ctx, want, one, false, read)
		if err != nil {
			return err
		}
		inCross, err := o.around(ctx, want, one, true, read)
		if err != nil {
			return err
		}
		bar += inBar[0] / float64(len(views))
		cross += inCross[0] / float64(len(views))
	}
	o.correct(e, bar, cross)
	return nil
}
