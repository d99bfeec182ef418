package pccl

import (
	"fmt"
	"math"
)

// Piece is a range of switching times in which the same plan is best.
type Piece struct {
	Changes  int
	Time     float64 // seconds, without switching
	From, To float64 // switching times in seconds, From <= r < To; the last To is +Inf
	Plan     Plan    // made for the switching time From
}

// maxPlanned bounds the memory of an envelope: rounds of all of its plans.
const maxPlanned = 1 << 24

// Envelope returns the best plans at all switching times, in their rising order, and so with fewer and fewer changes.
// Where two meet they cost the same, and the one with fewer changes counts. The cost of a plan with k changes is a
// line, its time without switching and k times the switching time; the pieces are those of the lower envelope of the
// best lines for each k. The best cost is thus concave in the switching time.
func (t *Table) Envelope() ([]Piece, error) {
	x := t.exact()
	corners := x.corners()
	if len(corners) == 0 {
		return nil, t.noPath(t.d.cost[0])
	}
	if n := len(t.stageOf); n > maxPlanned/len(corners) {
		return nil, fmt.Errorf("%w: its envelope is %d plans of %d rounds: want fewer rounds, or one switching time",
			ErrTooLarge, len(corners), n)
	}
	pieces := make([]Piece, len(corners))
	for i, c := range corners {
		plan := t.plan(t.byRound(x.with(c.changes)), c.from)
		pieces[i] = Piece{
			Changes: plan.Changes, Time: plan.Alpha + plan.Beta,
			From: c.from, To: math.Inf(1), Plan: plan,
		}
		if i > 0 {
			pieces[i-1].To = c.from
		}
	}
	return pieces, nil
}

// corner is where a number of changes begins to be the best.
type corner struct {
	changes int
	from    float64
}

// corners returns the lower envelope, from switching time 0 on.
func (x changes) corners() []corner {
	best := 0
	for k, v := range x.total {
		if less(v, x.total[best]) {
			best = k
		}
	}
	if math.IsInf(x.total[best], 1) {
		return nil
	}
	all := []corner{{changes: best}}
	for best > 0 {
		at, next := math.Inf(1), -1
		for k := range best { // the fewest changes first, so that of lines through one point they win
			if r := (x.total[k] - x.total[best]) / float64(best-k); less(r, at) {
				at, next = r, k
			}
		}
		if next < 0 {
			break
		}
		all = append(all, corner{changes: next, from: at})
		best = next
	}
	return all
}
