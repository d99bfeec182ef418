package pccl

import (
	"fmt"
	"math"
	"slices"
)

// Best returns the cheapest plan at a switching time in seconds, of equals that with fewer changes, then the
// one with lower candidates. It never costs more than Static. A switching time that is none is an error that
// matches ErrArgument.
func (t *Table) Best(switchTime float64) (Plan, error) {
	if err := checkTime("switching time", switchTime); err != nil {
		return Plan{}, err
	}
	chosen, total := t.segments().best(switchTime)
	if math.IsInf(total, 1) {
		return Plan{}, t.noPath(t.d.cost[0])
	}
	return t.plan(t.byRound(chosen), switchTime), nil
}

// Static returns the plan that never rewires. If a transfer has no path on Start the error matches ErrDisconnected.
func (t *Table) Static() (Plan, error) { return t.Follow(make([]int, len(t.stageOf)), 0) }

// Always returns the plan that wires each round's own topology. Where that is wired already, as in a ring algorithm,
// nothing changes.
func (t *Table) Always(switchTime float64) (Plan, error) {
	choice := make([]int, len(t.stageOf))
	for i := range choice {
		choice[i] = t.Own(i)
	}
	return t.Follow(choice, switchTime)
}

// Follow returns the plan that has candidate choice[i] wired in round i, one for each round. Errors match
// ErrDisconnected if a transfer has no path, and ErrArgument if there is no such candidate, or the problem's rule
// does not let it be wired there.
func (t *Table) Follow(choice []int, switchTime float64) (Plan, error) {
	if err := checkTime("switching time", switchTime); err != nil {
		return Plan{}, err
	}
	if len(choice) != len(t.stageOf) {
		return Plan{}, fmt.Errorf("%w: candidates for %d rounds: the schedule has %d", ErrArgument,
			len(choice), len(t.stageOf))
	}
	wired := 0
	for i, c := range choice {
		if c < 0 || c >= len(t.candidates) {
			return Plan{}, fmt.Errorf("%w: round %d: there is no candidate %d: want 0 to %d", ErrArgument, i, c,
				len(t.candidates)-1)
		}
		st := int(t.stageOf[i])
		if _, may := slices.BinarySearch(t.d.enter[st], c); c != wired && !may {
			return Plan{}, fmt.Errorf("%w: before round %d the paper's rule does not let %s be wired: it is the topology of "+
				"another round, wired at that one and then kept or given up; Free lets it be", ErrArgument, i, t.candidates[c].name)
		}
		wired = c
		if math.IsInf(t.cost(st, c).Time, 1) {
			return Plan{}, t.lost(i, c)
		}
	}
	return t.plan(choice, switchTime), nil
}

// lost returns which transfer of a round has no path on a candidate.
func (t *Table) lost(round, candidate int) error {
	transfers := t.sets[t.stages[t.stageOf[round]].set].transfers
	if missing, ok := new(router).missing(t.networks[candidate], transfers); ok {
		return fmt.Errorf("%w: round %d, transfer %d>%d on %s: let it be rewired, or start from a connected topology",
			ErrDisconnected, round, missing.Src, missing.Dst, t.candidates[candidate].name)
	}
	return fmt.Errorf("%w: round %d on %s", ErrDisconnected, round, t.candidates[candidate].name)
}

// noPath returns the first round that costs +Inf.
func (t *Table) noPath(cost []float64) error {
	for i, c := range cost {
		if math.IsInf(c, 1) {
			return t.lost(t.stages[i].first, 0)
		}
	}
	return fmt.Errorf("%w: no plan is possible", ErrDisconnected)
}

// byRound returns the candidates of rounds, given those of stages.
func (t *Table) byRound(chosen []int) []int {
	all := make([]int, len(t.stageOf))
	for i, st := range t.stageOf {
		all[i] = chosen[st]
	}
	return all
}

// plan puts a plan together, of candidates that are possible.
func (t *Table) plan(choice []int, switchTime float64) Plan {
	p := Plan{Schedule: t.p.Schedule, Rounds: make([]PlannedRound, len(choice)), Switch: switchTime}
	wired := 0
	for i, c := range choice {
		st := t.stages[t.stageOf[i]]
		p.Rounds[i] = PlannedRound{Topology: t.candidates[c], Changed: c != wired, Cost: t.cost(int(t.stageOf[i]), c)}
		if c != wired {
			p.Changes++
		}
		wired = c
		hops, shared := t.p.Params.parts(t.loads[c][st.set], t.slowdown[c], st.bytes)
		p.Alpha += hops
		p.Beta += shared
	}
	p.Reconfiguration = float64(p.Changes) * switchTime
	p.Total = p.Alpha + p.Beta + p.Reconfiguration
	return p
}

// Bounds of the work and memory of BestBy: prices that are looked at, and prices and choices that are kept.
const (
	maxMoves  = 1 << 32
	maxMemory = 1 << 26
)

// BestBy returns the cheapest plan if rewiring one candidate to another costs as many seconds as the function says:
// by ports that are touched, by switches with delays of their own, less what idle time hides. +Inf forbids; what is
// below 0 or NaN is an error that matches ErrArgument. It is asked once for each two candidates, from one goroutine.
// Beyond the paper.
//
// Plan.Reconfiguration is the sum of those costs, and Plan.Switch what they are on average.
func (t *Table) BestBy(switchTime func(from, to int) float64) (Plan, error) {
	k := len(t.candidates)
	moves := 0.0
	for _, st := range t.stages {
		moves += float64(st.rounds) * float64(k) * float64(k)
	}
	if moves > maxMoves || max(len(t.stageOf), k) > maxMemory/k {
		return Plan{}, fmt.Errorf("%w: %d rounds on %d candidates are too many if each rewiring has its price: want fewer of either",
			ErrTooLarge, len(t.stageOf), k)
	}
	price := make([][]float64, k)
	for to := range k {
		price[to] = make([]float64, k)
		for from := range k {
			if from == to {
				continue
			}
			s := switchTime(from, to)
			if !(s >= 0) || s > largest && !math.IsInf(s, 1) {
				return Plan{}, fmt.Errorf("%w: rewiring %s to %s takes %v s: want 0 to %g, or +Inf", ErrArgument,
					t.candidates[from].name, t.candidates[to].name, s, float64(largest))
			}
			price[to][from] = s
		}
	}
	choice := t.cheapest(price)
	if choice == nil {
		return Plan{}, fmt.Errorf("%w: with the rewirings that are allowed no plan serves all rounds", ErrDisconnected)
	}
	p := t.plan(choice, 0)
	wired := 0
	for _, c := range choice {
		p.Reconfiguration += price[c][wired]
		wired = c
	}
	if p.Changes > 0 {
		p.Switch = p.Reconfiguration / float64(p.Changes)
	}
	p.Total = p.Alpha + p.Beta + p.Reconfiguration
	return p, nil
}

// cheapest finds the shortest path through the layers of rounds and candidates, of equals that with fewer changes.
// Rounds of a stage are told apart here: on a way of two rewirings something may be wired for a single round.
func (t *Table) cheapest(price [][]float64) []int {
	k := len(t.candidates)
	cost, changes := make([]float64, k), make([]int, k)
	for c := range cost {
		cost[c] = math.Inf(1)
	}
	cost[0] = 0
	from := make([][]int32, len(t.stageOf))
	for i, st := range t.stageOf {
		from[i] = make([]int32, k)
		next, nextChanges := slices.Clone(cost), slices.Clone(changes)
		for c := range from[i] {
			from[i][c] = int32(c)
		}
		for _, c := range t.d.enter[st] {
			for b, so := range cost {
				with := so + price[c][b]
				if less(with, next[c]) || b != c && changes[b]+1 < nextChanges[c] && !less(next[c], with) && !math.IsInf(with, 1) {
					next[c], nextChanges[c], from[i][c] = with, changes[b]+1, int32(b)
				}
			}
		}
		for c := range next {
			next[c] += t.cost(int(st), c).Time
		}
		cost, changes = next, nextChanges
	}
	at := 0
	for c := range cost {
		if less(cost[c], cost[at]) || !less(cost[at], cost[c]) && changes[c] < changes[at] {
			at = c
		}
	}
	if math.IsInf(cost[at], 1) {
		return nil
	}
	choice := make([]int, len(t.stageOf))
	for i := len(choice) - 1; i >= 0; i-- {
		choice[i] = at
		at = int(from[i][at])
	}
	return choice
}
