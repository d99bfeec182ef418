package loss

import (
	"math"

	"github.com/ocslab/ocslab/ocs"
)

// scale puts losses into steps, from good to bad.
type scale struct {
	low, step float64
	n         int
}

// scale returns one of n steps for the losses of m. What is far above all others does not
// stretch it: it is in the last step, which has no end.
func (m *Map) scale(n int) scale {
	all := m.losses()
	if len(all) == 0 {
		return scale{0, 1, n}
	}
	mid := medianOf(all)
	width := 6 * float64(spread(all))
	low := max(all[0], mid-width)
	high := min(all[len(all)-1], max(mid+width, mid+2*float64(DefaultFloor)))
	// Steps of whole twentieths of a dB, so that the legend has few digits.
	step := max(math.Ceil((high-low)/float64(n)*20)/20, 0.05)
	return scale{math.Floor(low/step) * step, step, n}
}

// of returns the step of a loss, from 0.
func (s scale) of(loss ocs.DB) int {
	return min(max(int((float64(loss)-s.low)/s.step), 0), s.n-1)
}

// from is where a step begins.
func (s scale) from(k int) float64 { return s.low + float64(k)*s.step }
