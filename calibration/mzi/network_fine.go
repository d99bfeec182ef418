package mzi

import (
	"context"
	"math"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// again sweeps all elements finely.
func (n *network) again(ctx context.Context) error {
	for column := range ocst.Columns {
		for row := range ocst.Rows {
			if err := n.fine(ctx, column, row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *network) fine(ctx context.Context, column, row int) error {
	e := ocst.Loop(column, row)
	w := n.ways(e)[0]
	v, set := w.view, n.drives(w.states)
	if err := n.light(ctx, v.lane, set); err != nil {
		return err
	}
	f, err := n.sweep(ctx, e, v, true)
	if err != nil {
		return err
	}
	if f.Problem == "" {
		if err := n.extinctions(ctx, &f, column, row, v); err != nil {
			return err
		}
		n.fits[e] = f.Fit
	}
	if err := n.light(ctx, v.lane, set); err != nil {
		return err
	}
	n.keep(f)
	return nil
}

// extinctions measures the extinction ratios of a loop element that has been swept.
func (n *network) extinctions(ctx context.Context, f *SweepFit, column, row int, v view) error {
	for _, cross := range [...]bool{false, true} {
		d, bright, dark := f.Fit.Bar, v.bar, v.cross
		if cross {
			d, bright, dark = f.Fit.Cross, v.cross, v.bar
		}
		var er float64
		var err error
		switch column {
		case 0, 1:
			er, err = n.toggled(ctx, f.Element, d, cross, column, row, v, bright, dark)
		case 2:
			// What leaks elsewhere goes where this element is bright.
			hide := 0
			if cross {
				hide = 1
			}
			if err = n.light(ctx, v.lane, n.drives(n.middle(row, 0, hide).states)); err == nil {
				er, err = n.ratioAt(ctx, f.Element, d, bright, dark, loopOnly)
			}
		default:
			er, err = n.ratioAt(ctx, f.Element, d, bright, dark, loopOnly)
		}
		if err != nil {
			return err
		}
		if cross {
			f.Fit.CrossER = er
		} else {
			f.Fit.BarER = er
		}
	}
	return nil
}

// toggled measures an extinction ratio of an element of columns 0 or 1. Its dark output
// leads through elements that leak as much as it does itself; so the element of column 2
// behind the dark output is switched over, and what comes and goes with that is its light.
func (n *network) toggled(ctx context.Context, e ocst.Element, d ocst.Drive, cross bool, column, row int, v view, bright, dark group) (float64, error) {
	// Where the dark output's light is in column 2, at which input, and where it goes there.
	var half, quarter, input, out int
	if column == 0 {
		half, quarter, input, out = 1, 0, row/2, 1
		if cross {
			half, out = 0, 0
		}
	} else {
		half, quarter, input, out = row/2, 1, row%2, 1
		if cross {
			quarter, out = 0, 0
		}
	}
	behind := ocst.Loop(2, 2*half+quarter)
	if err := n.Heat(ctx, e, d); err != nil {
		return 0, err
	}
	var seen [2]Powers
	for away := range seen {
		to := out
		if away == 1 {
			to = 1 - out
		}
		if err := n.Heat(ctx, behind, n.drive(behind, input != to)); err != nil {
			return 0, err
		}
		if err := n.Wait(ctx, 2*settle); err != nil {
			return 0, err
		}
		var err error
		if seen[away], err = n.powers(ctx, toggleReadings, loopOnly); err != nil {
			return 0, err
		}
	}
	if err := n.Heat(ctx, behind, n.drive(behind, input != out)); err != nil {
		return 0, err
	}
	light := dark.of(&seen[0]) - dark.of(&seen[1])
	least := math.Sqrt(n.variance(dark, &seen[0], toggleReadings) + n.variance(dark, &seen[1], toggleReadings))
	return ratioDB(bright.of(&seen[0]), max(light, least)), nil
}
