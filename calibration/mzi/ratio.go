package mzi

import (
	"math"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Pair is one measurement of a sweep: what comes out at both outputs of an element, in µW.
type Pair struct {
	V2         float64 // V² of arm A, -V² of arm B
	Bar, Cross float64 // at the output of the bar state, and of the cross state
	// BarSigma and CrossSigma are the standard deviations of both; 0: as a single
	// reading has them, 0.3 % and 1.25 µW.
	BarSigma, CrossSigma float64
	Launched             float64 // by the modulator; 0: not known
}

// FitSweep fits a sweep that was measured somehow. What is wrong with it is in the Problem
// of what it returns. The extinction ratios are those of the fitted curve.
func FitSweep(e ocst.Element, pairs []Pair) SweepFit {
	f := SweepFit{Element: e}
	for _, p := range pairs {
		for _, x := range [...]float64{p.V2, p.Bar, p.Cross, p.BarSigma, p.CrossSigma, p.Launched} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				f.problem("a measurement is no number")
				return f
			}
		}
	}
	f.flaws("the photodiode at the bar output", len(pairs), func(i int) float64 { return pairs[i].Bar })
	f.flaws("the photodiode at the cross output", len(pairs), func(i int) float64 { return pairs[i].Cross })
	f.fit(pairs, [2]bend{designBend, designBend})
	return f
}

// fit turns powers into the share of light at the bar output, which the laser's power is not
// in, and fits that.
func (f *SweepFit) fit(pairs []Pair, bends [2]bend) {
	light := 0.0
	for _, p := range pairs {
		light += p.Bar + p.Cross
	}
	if light /= float64(max(len(pairs), 1)); light < darkLight {
		f.problem("no light: %.1f µW at its photodiodes", light)
		return
	}
	g := balance(pairs)
	for _, p := range pairs {
		y1, y2 := p.Bar, g*p.Cross
		total := y1 + y2
		if !(total > light/8) {
			continue
		}
		s1, s2 := p.BarSigma, g*p.CrossSigma
		if s1 == 0 || s2 == 0 {
			s1, s2 = math.Hypot(relativeNoise*y1, singleFloor), math.Hypot(relativeNoise*y2, g*singleFloor)
		}
		ratio := y1 / total
		f.Points = append(f.Points, SweepPoint{V2: p.V2, Ratio: ratio, Sigma: math.Hypot((1-ratio)*s1, ratio*s2) / total})
	}
	f.fringe(bends)
}

// flaws looks for readings that no light gives.
func (f *SweepFit) flaws(who string, n int, y func(int) float64) {
	top, low, same := math.Inf(-1), math.Inf(1), 0
	for i := range n {
		v := y(i)
		low = min(low, v)
		switch {
		case v > top:
			top, same = v, 1
		case v == top:
			same++
		}
	}
	switch {
	case n < 8:
	case top == low:
		f.problem("%s always reads the same: it is stuck", who)
	case top > 5*darkLight && same >= n/8+2:
		f.problem("%s is saturated: %d of %d readings are its largest, %.0f µW", who, same, n, top)
	}
}

// balance returns by what the cross side is to be multiplied so that the sum of both sides
// stays the same while light moves between them: the slope of the line through the points
// (cross, bar), with errors in both. Readings are taken relative to what the modulator
// launches, where that is known. The two sides need not have the same loss; a wrong balance
// would bend the fringe.
func balance(pairs []Pair) float64 {
	var n, x, y, xx, yy, xy float64
	for _, p := range pairs {
		l := p.Launched
		if l < darkLight {
			l = 1000
		}
		a, b := p.Cross/l, p.Bar/l
		n, x, y, xx, yy, xy = n+1, x+a, y+b, xx+a*a, yy+b*b, xy+a*b
	}
	xx, yy, xy = xx/n-x*x/n/n, yy/n-y*y/n/n, xy/n-x*y/n/n
	if !(xy < 0) {
		return 1
	}
	// The larger axis of the scatter.
	slope := (yy - xx + math.Hypot(yy-xx, 2*xy)) / (2 * xy)
	if !(-slope > 0.5 && -slope < 2) {
		return 1 // too little light moved to tell
	}
	return -slope
}
