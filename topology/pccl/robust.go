package pccl

import (
	"fmt"
	"math"
)

// Robust returns the plan for a switching time that is only known to be between low and high, in seconds: the one
// whose largest regret is least, that is, what it costs more than the plan that would have been best had the time
// been known. Worst is that regret in seconds; Plan is made for high. Beyond the paper.
//
// The plan whose largest cost is least is no question: what a plan costs grows with the switching time, so that it is
// Best(high), which gives away what a fast switch offers. Regret weighs both ends. That of a plan with k changes is
// its line less the envelope; the envelope being concave, it is largest at low or at high. Any number of changes is
// tried, also those that are best nowhere. Of equals that with fewer changes is taken.
func (t *Table) Robust(low, high float64) (plan Plan, worst float64, err error) {
	if err := checkTime("lowest switching time", low); err != nil {
		return Plan{}, 0, err
	}
	if err := checkTime("highest switching time", high); err != nil {
		return Plan{}, 0, err
	}
	if low > high {
		return Plan{}, 0, fmt.Errorf("%w: switching times from %v to %v s: want the lower one first", ErrArgument, low, high)
	}
	x := t.exact()
	atLow, atHigh := x.least(low), x.least(high)
	if math.IsInf(atLow, 1) {
		return Plan{}, 0, t.noPath(t.d.cost[0])
	}
	best := -1
	for k, v := range x.total {
		if math.IsInf(v, 1) {
			continue
		}
		costLow, costHigh := v+float64(k)*low, v+float64(k)*high
		regret := max(costLow-atLow, costHigh-atHigh)
		// Rounding is that of the costs, not of their small difference.
		if best < 0 || regret < worst-rounding*costHigh {
			best, worst = k, regret
		}
	}
	return t.plan(t.byRound(x.with(best)), high), max(worst, 0), nil
}

// least returns the best cost at a switching time.
func (x changes) least(switchTime float64) float64 {
	best := math.Inf(1)
	for k, v := range x.total {
		best = min(best, v+float64(k)*switchTime)
	}
	return best
}
