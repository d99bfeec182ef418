package mzi

import (
	"math"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ratio is a share of light, and its standard deviation.
type ratio struct{ r, sigma float64 }

// share is that of light at the bar output of a view, of the mean of n readings.
func (s *Session) share(v view, p *Powers, n int) ratio {
	y := [2]float64{v.bar.of(p), v.cross.of(p)}
	variance := [2]float64{s.variance(v.bar, p, n), s.variance(v.cross, p, n)}
	total := y[0] + y[1]
	if !(total > leastLight) {
		return ratio{math.NaN(), math.Inf(1)}
	}
	return ratio{y[0] / total, math.Sqrt(y[1]*y[1]*variance[0]+y[0]*y[0]*variance[1]) / (total * total)}
}

const leastLight = 10 // µW below which no share is taken

// slope tells phase from ratio near quadrature: what was read a known phase to either side.
type slope struct{ middle, swing float64 }

func slopeOf(up, down ratio, dither float64) (slope, bool) {
	if math.Abs(dither) < couplingDither/4 { // at the end of its range
		return slope{}, false
	}
	s := slope{(up.r + down.r) / 2, (up.r - down.r) / (2 * math.Sin(dither))}
	return s, math.Abs(s.swing) > 0.2 // half of that of an ideal element, or less: not at quadrature
}

// phase is how far a ratio is from the middle, rad.
func (s slope) phase(r ratio) float64 {
	return math.Asin(min(max((r.r-s.middle)/s.swing, -1), 1))
}

// tapsOf is where S1 or S2 of a lane is seen, if all lanes are lit.
func tapsOf(e ocst.Element) view {
	lane := int(e) % ocst.Lanes
	out1, out2 := group{{ocst.PDOut1, lane, 1}}, group{{ocst.PDOut2, lane, 1}}
	if e < ocst.Lanes {
		return view{lane: lane, bar: append(out1, out2...), cross: group{{ocst.PDLoopTap, lane, 1}}}
	}
	return view{lane: lane, bar: out1, cross: out2}
}
