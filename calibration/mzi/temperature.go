package mzi

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// SamePoint is how close in K a new point is to one of the table to replace it.
const SamePoint = 2

// TrimSpan is how far in K the case may move before phases are to be trimmed anew.
const TrimSpan = 5

// DefaultExpiry is how long a table is good for unless asked otherwise. Heaters age by
// about a tenth of a percent in 1000 hours.
const DefaultExpiry = 365 * 24 * time.Hour

// TrimDue reports whether a module that was trimmed or calibrated at one temperature of its
// case wants to be trimmed at another.
func TrimDue(then, now float64) bool { return !(math.Abs(now-then) <= TrimSpan) }

// At returns what a table says of the elements at a temperature of the case: linear between
// its points (a phase takes the shorter way around), and the nearest point beyond them.
func At(t *ocst.Table, celsius float64) ([ocst.Elements]ocst.Fit, error) {
	if len(t.Points) == 0 {
		return [ocst.Elements]ocst.Fit{}, errors.New("calibration table: it has no temperature")
	}
	last := len(t.Points) - 1
	if !(celsius > t.Points[0].Celsius) { // nothing is known of NaN
		return t.Points[0].Elements, nil
	}
	if celsius >= t.Points[last].Celsius {
		return t.Points[last].Elements, nil
	}
	k := slices.IndexFunc(t.Points, func(p ocst.Point) bool { return p.Celsius > celsius })
	low, high := t.Points[k-1], t.Points[k]
	share := (celsius - low.Celsius) / (high.Celsius - low.Celsius)
	fits := low.Elements
	if share > 0.5 {
		fits = high.Elements // ratios and drives are of the nearer one
	}
	mix := func(a, b float64) float64 { return a + share*(b-a) }
	for e := range fits {
		a, b, f := low.Elements[e], high.Elements[e], &fits[e]
		f.Phase0 = wrapped(a.Phase0 + share*wrapped(b.Phase0-a.Phase0))
		f.A = ocst.Arm{Slope: mix(a.A.Slope, b.A.Slope), Curve: mix(a.A.Curve, b.A.Curve)}
		f.B = ocst.Arm{Slope: mix(a.B.Slope, b.B.Slope), Curve: mix(a.B.Curve, b.B.Curve)}
	}
	return fits, nil
}

// Merge puts a new point among those of a table and returns all, in ascending order: it
// replaces those within [SamePoint] K; when there are more than a table holds then, the old
// one that is furthest away from it goes. What it is given stays as it is.
func Merge(points []ocst.Point, p ocst.Point) []ocst.Point {
	away := func(q ocst.Point) float64 { return math.Abs(q.Celsius - p.Celsius) }
	kept := slices.DeleteFunc(slices.Clone(points), func(q ocst.Point) bool { return away(q) <= SamePoint })
	for len(kept) >= ocst.MaxPoints {
		furthest := 0
		for i, q := range kept {
			if away(q) > away(kept[furthest]) {
				furthest = i
			}
		}
		kept = slices.Delete(kept, furthest, furthest+1)
	}
	kept = append(kept, p)
	slices.SortFunc(kept, func(a, b ocst.Point) int { return cmp.Compare(a.Celsius, b.Celsius) })
	return kept
}
