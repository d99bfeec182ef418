// Package dist models durations that vary, such as those of the stages of a timeline: as
// mixtures of normal distributions. The emulator draws from them, firmware notes and
// personalities hold them, and what fits them to measurements finds them.
package dist

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Mode is one of the ways in which a duration comes about: normally distributed around a
// median.
type Mode struct {
	Share  float64       `yaml:"share,required" json:"share"` // of all, relative to the other modes, more than 0
	Median time.Duration `yaml:"median,required" json:"median_ns"`
	Spread time.Duration `yaml:"spread" json:"spread_ns"` // standard deviation
}

// Mixture is one or more modes, of which each duration belongs to one by chance.
type Mixture []Mode

// longest keeps what is computed from modes, up to 40 spreads from a median, far away from
// overflow.
const longest time.Duration = math.MaxInt64 / 128

// Check returns what is wrong with m, if anything, in one sentence: it has no modes, a share
// is not above 0 or the sum of all is no number, or a duration is negative or longer than two
// years.
func (m Mixture) Check() error {
	if len(m) == 0 {
		return fmt.Errorf("there are no modes")
	}
	for i, x := range m {
		switch {
		case !(x.Share > 0) || math.IsInf(x.Share, 0):
			return fmt.Errorf("the share of mode %d is %g: want more than 0", i+1, x.Share)
		case x.Median < 0 || x.Spread < 0:
			return fmt.Errorf("the median or the spread of mode %d is negative", i+1)
		case x.Median > longest || x.Spread > longest:
			return fmt.Errorf("the median or the spread of mode %d is longer than two years", i+1)
		}
	}
	if math.IsInf(m.total(), 0) {
		return fmt.Errorf("the shares of the modes are too large to be added up")
	}
	return nil
}

func (m Mixture) total() float64 {
	sum := 0.0
	for _, x := range m {
		sum += x.Share
	}
	return sum
}

// Draw returns a duration, which may be negative where a spread allows it. Of a single mode
// without spread, r is not used and may be nil; m has at least one mode.
func (m Mixture) Draw(r *rand.Rand) time.Duration {
	x := m[0]
	if len(m) > 1 {
		at := r.Float64() * m.total()
		for _, x = range m {
			if at -= x.Share; at < 0 {
				break
			}
		}
	}
	if x.Spread == 0 {
		return x.Median
	}
	return x.Median + time.Duration(r.NormFloat64()*float64(x.Spread))
}

// CDF returns the probability of a duration of d or less.
func (m Mixture) CDF(d time.Duration) float64 {
	sum := 0.0
	for _, x := range m {
		switch {
		case x.Spread > 0:
			sum += x.Share / 2 * math.Erfc(float64(x.Median-d)/float64(x.Spread)/math.Sqrt2)
		case d >= x.Median:
			sum += x.Share
		}
	}
	return min(sum/m.total(), 1)
}

// Quantile returns the shortest duration, to a nanosecond, of which CDF is at least q; q is
// above 0 and below 1, and m one that Check accepts.
func (m Mixture) Quantile(q float64) time.Duration {
	low, high := m[0].Median, m[0].Median
	for _, x := range m {
		low, high = min(low, x.Median-40*x.Spread), max(high, x.Median+40*x.Spread)
	}
	for low < high {
		if mid := low + (high-low)/2; m.CDF(mid) >= q {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
