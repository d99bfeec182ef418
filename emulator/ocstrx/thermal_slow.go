package ocstrx

import (
	"math"
	"math/bits"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// caseTemperature goes towards where ambient and power take it, with one pole.
type caseTemperature struct {
	ambient float64
	rate    float64 // 1/ns
	from    time.Duration
	begin   float64
	target  float64
}

func (t *caseTemperature) celsius(at time.Duration) float64 {
	if at <= t.from {
		return t.begin
	}
	return t.target + (t.begin-t.target)*math.Exp(-float64(at-t.from)*t.rate)
}

func (t *caseTemperature) change(at time.Duration, target float64) {
	t.begin, t.from, t.target = t.celsius(at), at, target
}

// slowCell is how often what changes slowly is looked at. It is a grid, and not an age, so
// that nothing depends on who asks when.
const slowCell = time.Millisecond

// driftCell is the grid of the random walks. A step between two is 1.3 mrad by default.
const driftCell = time.Minute

// slow is what changes in seconds and more: it is worked out once for each slowCell.
type slow struct {
	cell  time.Duration // number of the cell
	stale bool
	base  [ocst.Elements]float64 // phase without heat
	heat  float64                // factor of all heat: heaters take less power when hot or old
	laser float64                // factor of all light

	drifted time.Duration // cell of the random walks
	drift   [ocst.Elements]float64
	dim     float64
}

// reslow works out the slow part for a cell.
func (c *chip) reslow(cell time.Duration) {
	s := &c.slow
	s.cell, s.stale = cell, false
	at := cell * slowCell
	if n := at / driftCell; n != s.drifted {
		s.drifted = n
		step := math.Sqrt(driftCell.Hours())
		for e := range s.drift {
			s.drift[e] = c.params.Drift * step * walk(c.seed, e, uint64(n))
		}
		s.dim = fromDB(c.params.LaserDrift * step * walk(c.seed, ocst.Elements, uint64(n)))
	}
	dt := c.housing.celsius(at) - c.params.Reference
	s.heat = 1 / ((1 + c.params.TCR*dt) * (1 + c.params.Ageing*at.Hours()/1000))
	s.laser = s.dim
	for e := range s.base {
		s.base[e] = c.phase0[e] + c.ambient[e]*dt + s.drift[e]
	}
}

// walk is a random walk of steps of unit variance from 0 at n = 0, without a memory: the
// same seed, number and n always give the same. It doubles its way to the power of two below
// n and from there halves the distance (Lévy's construction of Brownian motion).
func walk(seed uint64, number int, n uint64) float64 {
	if n == 0 {
		return 0
	}
	key := mix(seed ^ mix(uint64(number)+0x6472696674))
	top := uint64(1) << (bits.Len64(n) - 1)
	lo, hi := 0.0, normalAt(key, 1)
	for k := uint64(1); ; k *= 2 {
		// lo is the walk at k/2 or 0, hi that at k.
		if k == top {
			if n == k {
				return hi
			}
			lo, hi = hi, hi+math.Sqrt(float64(k))*normalAt(key, 2*k)
			break
		}
		hi += math.Sqrt(float64(k)) * normalAt(key, 2*k)
	}
	for at, half := top, top/2; half > 0; half /= 2 {
		middle := (lo+hi)/2 + math.Sqrt(float64(half)/2)*normalAt(key, at+half)
		switch {
		case n == at+half:
			return middle
		case n < at+half:
			hi = middle
		default:
			lo, at = middle, at+half
		}
	}
	return lo
}

// normalAt is a number of the standard normal distribution that belongs to a place (Box and
// Muller).
func normalAt(key, place uint64) float64 {
	a := mix(key ^ mix(place))
	b := mix(a ^ key)
	u := (float64(a>>11) + 1) / (1 << 53)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*float64(b>>11)/(1<<53))
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
