package mzi

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// The loop network has photodiodes behind its outputs only, and joins light again that took
// different ways: an element that gets light at both inputs has its fringe shifted. What
// helps is that an element loses no light. The sum at the two receivers of a last element is
// what enters that element, whatever its state is; so is the sum at the four receivers of a
// half's lower or upper pair what enters an element of column 3. Light of which way it may
// be, in such sums it does not interfere any more. So:
//
//   - Sweeping an element of column 4, one receiver of its pair gains what the other loses:
//     that compares their losses. With these, sweeping one of column 3 compares the pairs.
//   - An element of column 2 is lit at one input only, if one lane is lit, and divides its
//     light between two elements of column 3, so between the sums behind them. Its sweep is
//     a clean fringe whatever all other elements do, on a pedestal. They only must let light
//     come to it: a few settings are tried.
//   - With column 2 known, the two ways through a half come out at different elements of
//     column 3, and sweeps of column 1 are clean; then those of column 0. Now light can be
//     led to one input of each element of columns 3 and 4.
//
// So far sweeps are coarse. With what they say each element is swept once more, with all
// the light led to one of its inputs and all others where they belong, and its extinction
// ratios are measured.

// half is 4·4: the upper (0) or lower (1) one. Its elements are rows 2h and 2h+1 of columns
// 1 to 3.
const halves = 2

// network is what is known of the loop network so far.
type network struct {
	*swept
	receivers
	fits [ocst.Elements]ocst.Fit
	rng  *rand.Rand
}

func newNetwork(w *swept) *network {
	n := &network{swept: w, rng: rand.New(rand.NewPCG(1, 2))}
	for i := range n.weight {
		n.weight[i] = 1
	}
	for h := range n.pair {
		n.pair[h] = [2]float64{1, 1}
	}
	return n
}

// network sweeps the loop network.
func (w *swept) network(ctx context.Context) error {
	n := newNetwork(w)
	for lane := 0; lane < ocst.Lanes; lane += 2 {
		s1 := ocst.S1(lane)
		if p := w.out.Fits[s1].Problem; p != "" {
			n.giveUp("%v, which lights it, cannot be used", s1)
			return nil
		}
	}
	for _, step := range [...]func(context.Context) (bool, error){
		n.compare, n.pairs, n.column2, n.column1, n.column0, n.column3, n.column4,
	} {
		if ok, err := step(ctx); err != nil || !ok {
			return err
		}
	}
	n.known = &n.receivers
	return n.again(ctx)
}

// compareReceivers finds out what the losses behind the loop network are, if the sweeps have
// not yet: by what its last elements move. fits are those of S1, which lead light into it.
func (s *Session) compareReceivers(ctx context.Context, fits *[ocst.Elements]ocst.Fit, usable *[ocst.Elements]bool) error {
	if s.known != nil {
		return nil
	}
	w := &swept{Session: s, out: &Calibrated{}, base: middling}
	n := newNetwork(w)
	if usable[ocst.S1(0)] { // all light is of lane 1 here
		w.out.Fits[ocst.S1(0)].Fit = fits[ocst.S1(0)]
		for _, step := range [...]func(context.Context) (bool, error){n.compare, n.pairs} {
			if ok, err := step(ctx); err != nil || !ok {
				return errors.Join(err, w.out.Err())
			}
		}
	}
	s.known = &n.receivers
	return nil
}

// giveUp says of all loop elements that have no fit why.
func (n *network) giveUp(format string, args ...any) {
	for column := range ocst.Columns {
		for row := range ocst.Rows {
			f := &n.out.Fits[ocst.Loop(column, row)]
			f.problem(notSwept+format, args...)
		}
	}
}

// light lights one lane into the loop, and sets elements; the others have their bias.
func (n *network) light(ctx context.Context, lane int, set map[ocst.Element]ocst.Drive) error {
	drives := n.base
	drives[ocst.S1(lane)] = n.out.Fits[ocst.S1(lane)].Fit.Cross
	for e, d := range set {
		drives[e] = d
	}
	if err := n.HeatAll(ctx, drives); err != nil {
		return err
	}
	if err := n.Light(ctx, 1<<lane); err != nil {
		return err
	}
	return n.Wait(ctx, settle)
}

// drives returns those of elements in their states.
func (n *network) drives(set states) map[ocst.Element]ocst.Drive {
	drives := map[ocst.Element]ocst.Drive{}
	for e, cross := range set {
		drives[e] = n.drive(e, cross)
	}
	return drives
}

// drive returns that of an element in a state.
func (n *network) drive(e ocst.Element, cross bool) ocst.Drive {
	if cross {
		return n.fits[e].Cross
	}
	return n.fits[e].Bar
}

// best returns the one of some settings with which an element moves most light from one
// group to the other: it is driven to three phases a third of a fringe apart.
func (n *network) best(ctx context.Context, e ocst.Element, v view, settings []map[ocst.Element]ocst.Drive) (map[ocst.Element]ocst.Drive, error) {
	const slope = math.Pi / (0.022 * nominalOhms)
	third := math.Sqrt(2 * math.Pi / 3 / slope)
	probes := [3]ocst.Drive{ocst.DriveOf(third, true), 0, ocst.DriveOf(third, false)}
	var found map[ocst.Element]ocst.Drive
	most := -1.0
	for _, set := range settings {
		if err := n.light(ctx, v.lane, set); err != nil {
			return nil, err
		}
		var re, im float64
		for i, d := range probes {
			if err := n.Heat(ctx, e, d); err != nil {
				return nil, err
			}
			if err := n.Wait(ctx, settle); err != nil {
				return nil, err
			}
			p, err := n.powers(ctx, 1, loopOnly)
			if err != nil {
				return nil, err
			}
			sin, cos := math.Sincos(2 * math.Pi / 3 * float64(i-1))
			y := v.bar.of(&p) - v.cross.of(&p)
			re, im = re+y*cos, im+y*sin
		}
		if moved := math.Hypot(re, im); moved > most {
			most, found = moved, set
		}
	}
	return found, n.light(ctx, v.lane, found)
}

// random returns settings of the columns given.
func (n *network) random(count int, columns ...int) (list []map[ocst.Element]ocst.Drive) {
	for range count {
		set := map[ocst.Element]ocst.Drive{}
		for _, column := range columns {
			for row := range ocst.Rows {
				volts := math.Sqrt(n.rng.Float64()) * 3
				set[ocst.Loop(column, row)] = ocst.DriveOf(volts, n.rng.IntN(2) == 1)
			}
		}
		list = append(list, set)
	}
	return list
}

// tries are three drives of an element, a third of a fringe apart: with one of them at
// least three quarters of its light take either way.
func tries() [3]ocst.Drive {
	const slope = math.Pi / (0.022 * nominalOhms)
	third := math.Sqrt(2 * math.Pi / 3 / slope)
	return [3]ocst.Drive{ocst.DriveOf(third, true), 0, ocst.DriveOf(third, false)}
}

// compare compares the two receivers of each last element.
func (n *network) compare(ctx context.Context) (bool, error) {
	for k := range ocst.Rows {
		e := ocst.Loop(4, k)
		v := view{which: loopOnly, bar: group{{ocst.PDRxLoop, 2 * k, 1}}, cross: group{{ocst.PDRxLoop, 2*k + 1, 1}}}
		if _, err := n.best(ctx, e, v, n.random(10, 0, 1, 2, 3)); err != nil {
			return false, err
		}
		list, _, _, err := n.run(ctx, e, v, coarsePoints, coarsePer)
		if err != nil {
			return false, err
		}
		if other := n.stranger(k, list); other >= 0 {
			n.out.Fits[e].problem("the light that it moves shows at %s: receivers are swapped", diodeName(ocst.PDRxLoop, other))
			n.giveUp("receivers of the loop are swapped")
			return false, nil
		}
		n.weight[2*k+1] = balance(n.measured(v, list, coarsePer))
	}
	return true, nil
}

// stranger returns a receiver that sees element k of the last column move and is not one of
// its own, or -1.
func (n *network) stranger(k int, list []reading) int {
	var lo, hi [ocst.Lanes]float64
	for i, r := range list {
		for j, y := range r.powers[ocst.PDRxLoop] {
			if i == 0 {
				lo[j], hi[j] = y, y
			}
			lo[j], hi[j] = min(lo[j], y), max(hi[j], y)
		}
	}
	own := max(hi[2*k]-lo[2*k], hi[2*k+1]-lo[2*k+1])
	for j := range lo {
		if j/2 != k && hi[j]-lo[j] > 0.5*own && hi[j]-lo[j] > 2*darkLight {
			return j
		}
	}
	return -1
}

// pairs compares the two pairs of receivers that each element of column 3 leads to.
func (n *network) pairs(ctx context.Context) (bool, error) {
	for half := range halves {
		for m := range 2 {
			e := ocst.Loop(3, 2*half+m)
			v := view{which: loopOnly, bar: n.entering(2*m, 1), cross: n.entering(2*m+1, 1)}
			if _, err := n.best(ctx, e, v, n.random(10, 0, 1, 2)); err != nil {
				return false, err
			}
			list, _, _, err := n.run(ctx, e, v, coarsePoints, coarsePer)
			if err != nil {
				return false, err
			}
			n.pair[half][m] = balance(n.measured(v, list, coarsePer))
		}
	}
	return true, nil
}

// coarse sweeps an element with the best of some settings, and remembers its fit.
func (n *network) coarse(ctx context.Context, e ocst.Element, v view, settings ...map[ocst.Element]ocst.Drive) (bool, error) {
	var err error
	if len(settings) == 1 {
		err = n.light(ctx, v.lane, settings[0])
	} else {
		_, err = n.best(ctx, e, v, settings)
	}
	if err != nil {
		return false, err
	}
	f := n.out.Fits[e]
	if f.Problem == "" {
		if f, err = n.sweep(ctx, e, v, false); err != nil {
			return false, err
		}
	}
	if f.Problem != "" {
		n.out.Fits[e] = f
		n.giveUp("%v, which its light passes, cannot be used", e)
		return false, nil
	}
	n.fits[e] = f.Fit
	return true, nil
}

// column2 sweeps it with lane 1 lit, which comes to input 0 of its elements.
func (n *network) column2(ctx context.Context) (bool, error) {
	for row := range ocst.Rows {
		half := row / 2
		var settings []map[ocst.Element]ocst.Drive
		for _, first := range tries() {
			for _, second := range tries() {
				settings = append(settings, map[ocst.Element]ocst.Drive{
					ocst.Loop(0, 0): first, ocst.Loop(1, 2*half): second,
				})
			}
		}
		v := view{which: loopOnly, bar: n.behind(half, 0), cross: n.behind(half, 1)}
		if ok, err := n.coarse(ctx, ocst.Loop(2, row), v, settings...); err != nil || !ok {
			return ok, err
		}
	}
	return true, nil
}

func (n *network) column1(ctx context.Context) (bool, error) {
	for row := range ocst.Rows {
		half, input := row/2, row%2
		w := n.through(row, 0)
		var settings []map[ocst.Element]ocst.Drive
		for _, first := range tries() {
			set := map[ocst.Element]ocst.Drive{ocst.Loop(0, 2*input): first}
			for quarter := range 2 {
				e := ocst.Loop(2, 2*half+quarter)
				set[e] = n.drive(e, w.states[e])
			}
			settings = append(settings, set)
		}
		if ok, err := n.coarse(ctx, ocst.Loop(1, row), w.view, settings...); err != nil || !ok {
			return ok, err
		}
	}
	return true, nil
}

func (n *network) column0(ctx context.Context) (bool, error) { return n.column(ctx, 0) }
func (n *network) column3(ctx context.Context) (bool, error) { return n.column(ctx, 3) }
func (n *network) column4(ctx context.Context) (bool, error) { return n.column(ctx, 4) }

// column sweeps one to which light can be led by now.
func (n *network) column(ctx context.Context, column int) (bool, error) {
	for row := range ocst.Rows {
		e := ocst.Loop(column, row)
		w := n.ways(e)[0]
		if ok, err := n.coarse(ctx, e, w.view, n.drives(w.states)); err != nil || !ok {
			return ok, err
		}
	}
	return true, nil
}
