package mzi

import (
	"math"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ratio is the share of light at the output of the bar state, and its standard deviation.
type ratio struct{ r, sigma float64 }

// split returns the share of bar in bar + cross, each a sum of photodiodes, of the mean of n
// readings.
func (s *Session) split(p *Powers, bar, cross []photodiode, n int) ratio {
	var sum, variance [2]float64
	for i, list := range [][]photodiode{bar, cross} {
		for _, pd := range list {
			y, floor := p[pd.array][pd.lane], s.floor[pd.array][pd.lane]
			sum[i] += y
			variance[i] += (floor*floor + readingNoise*readingNoise*y*y) / float64(n)
		}
	}
	total := sum[0] + sum[1]
	if !(total > leastLight) {
		return ratio{math.NaN(), math.Inf(1)}
	}
	return ratio{sum[0] / total, math.Sqrt(sum[1]*sum[1]*variance[0]+sum[0]*sum[0]*variance[1]) / (total * total)}
}

const (
	// readingNoise is the noise of a reading relative to it, for the estimates of accuracy.
	readingNoise = 0.003
	leastLight   = 10 // µW below which no ratio is taken
)

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

// tapsOf are the photodiodes at the bar and cross outputs of S1 or S2 of a lane.
func tapsOf(e ocst.Element) (bar, cross []photodiode) {
	if e < ocst.Lanes {
		lane := int(e)
		return []photodiode{{ocst.PDOut1, lane}, {ocst.PDOut2, lane}}, []photodiode{{ocst.PDLoopTap, lane}}
	}
	lane := int(e) - ocst.Lanes
	return []photodiode{{ocst.PDOut1, lane}}, []photodiode{{ocst.PDOut2, lane}}
}
