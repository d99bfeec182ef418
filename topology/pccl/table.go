package pccl

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Table is the cost of each round of a problem on each candidate. It answers for any switching time, without working
// out costs again. It is immutable, and safe for concurrent use.
type Table struct {
	p          Problem
	candidates []*Topology
	networks   []*network
	slowdown   []float64 // by candidate
	stages     []stage
	stageOf    []int32 // by round
	sets       []set
	own        []int    // by set: its candidate
	loads      [][]load // by candidate and set
	d          decision

	segments func() *segments // worked out when first needed
	exact    func() changes
}

// NewTable works out the costs of all candidates of a problem. It takes one search from each GPU on each topology,
// and a step for each hop of each transfer; on topologies with one circuit at each GPU, such as those of most rounds,
// just one for each transfer.
//
// Errors match ErrArgument, ErrSize (of them [ErrTooLarge] if the table itself would be), or ErrTransmitters: for a
// topology that does not fit the transmitters and receivers of a GPU, and for a round, which [Schedule.Split] makes fit.
//
// The rounds of the schedule are not copied, and have to stay as they are.
func NewTable(p Problem) (*Table, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	t := &Table{p: p}
	var err error
	if t.stages, t.sets, err = stagesOf(p.Schedule); err != nil {
		return nil, err
	}
	for i, st := range t.stages {
		for range st.rounds {
			t.stageOf = append(t.stageOf, int32(i))
		}
	}
	var found pool
	if err := found.addStandard(p); err != nil {
		return nil, err
	}
	standard := len(found.networks)
	if t.own, err = found.addOwn(p, t.stages, len(t.sets)); err != nil {
		return nil, err
	}
	var unions [][]int
	if p.Unions > 1 {
		if unions, err = found.addUnions(p, t.stages); err != nil {
			return nil, err
		}
	}
	t.candidates, t.networks = found.known.values, found.networks
	if cells := len(t.candidates) * len(t.stages); cells > maxCells {
		return nil, fmt.Errorf("%w: %d candidates for %d different rounds: want fewer standard topologies, rounds or unions",
			ErrTooLarge, len(t.candidates), len(t.stages))
	}
	for _, n := range t.networks {
		t.slowdown = append(t.slowdown, p.Params.slowdown(n))
	}
	t.d.enter = enterable(p.Free, len(t.candidates), standard, t.stages, t.own, unions)
	if err := t.route(); err != nil {
		return nil, err
	}
	t.d.cost = make([][]float64, len(t.candidates))
	for c := range t.candidates {
		t.d.cost[c] = make([]float64, len(t.stages))
		for i, st := range t.stages {
			t.d.cost[c][i] = float64(st.rounds) * t.cost(i, c).Time
		}
	}
	t.segments = sync.OnceValue(func() *segments { s := t.d.segments(); return &s })
	t.exact = sync.OnceValue(func() changes { return t.segments().exact() })
	return t, nil
}

// Candidates returns what may be wired: first Start, then the Standard topologies, those of the rounds in the order
// in which they come, and the unions. Each is there once, under the name under which it comes first. It is for
// reading only.
func (t *Table) Candidates() []*Topology { return t.candidates }

// Own returns the candidate that has just the transfers of a round, or -1 if there is no such round.
func (t *Table) Own(round int) int {
	if round < 0 || round >= len(t.stageOf) {
		return -1
	}
	return t.own[t.stages[t.stageOf[round]].set]
}

// Cost returns what a round costs on a candidate: +Inf if a transfer has no path.
func (t *Table) Cost(round, candidate int) (Cost, error) {
	if round < 0 || round >= len(t.stageOf) || candidate < 0 || candidate >= len(t.candidates) {
		return Cost{}, fmt.Errorf("%w: round %d on candidate %d: there are %d rounds and %d candidates",
			ErrArgument, round, candidate, len(t.stageOf), len(t.candidates))
	}
	st := t.stages[t.stageOf[round]]
	l := t.loads[candidate][st.set]
	if l.dilation == unknown {
		var at [1]load
		new(router).route(t.networks[candidate], t.sets[st.set:st.set+1], t.p.Params.Ties, at[:])
		l = at[0]
	}
	return t.p.Params.cost(l, t.slowdown[candidate], st.bytes), nil
}

// cost returns what a round of a stage costs, +Inf if that is not known because no plan can get there.
func (t *Table) cost(stage, candidate int) Cost {
	st := t.stages[stage]
	return t.p.Params.cost(t.loads[candidate][st.set], t.slowdown[candidate], st.bytes)
}

// maxSteps bounds the work of a table: a minute or so.
const maxSteps = 1 << 34

// route works out the loads that a plan may need: of a candidate that can be wired from a stage on, those of the sets
// of that stage and later ones.
func (t *Table) route() error {
	from := make([]int, len(t.candidates)) // the first stage that may have it; 0 is Start
	for c := range from {
		from[c] = len(t.stages)
	}
	from[0] = 0
	for i := len(t.stages) - 1; i >= 0; i-- {
		for _, c := range t.d.enter[i] {
			from[c] = i
		}
	}
	last := make([]int, len(t.sets))
	for i, st := range t.stages {
		last[st.set] = i
	}
	t.loads = make([][]load, len(t.candidates))
	needed := make([][]int, len(t.candidates))
	steps := 0.0
	for c, n := range t.networks {
		t.loads[c] = make([]load, len(t.sets))
		transfers := 0
		for q := range t.sets {
			if last[q] < from[c] {
				t.loads[c][q].dilation = unknown
				continue
			}
			needed[c] = append(needed[c], q)
			transfers += len(t.sets[q].transfers)
		}
		steps += n.steps(len(needed[c]), transfers, t.p.Params.Ties)
	}
	if steps > maxSteps {
		return fmt.Errorf("%w: the cost table would take %.2g steps, more than %.2g: want fewer GPUs or standard topologies, "+
			"or an algorithm of fewer rounds", ErrTooLarge, steps, float64(maxSteps))
	}
	t.routeAll(needed, steps)
	return nil
}

// routeAll routes the sets needed on each candidate, on all processors if it takes long enough for that.
func (t *Table) routeAll(needed [][]int, steps float64) {
	var next atomic.Int64
	work := func() {
		var (
			r      router
			rounds []set
			result []load
		)
		for c := int(next.Add(1)) - 1; c < len(needed); c = int(next.Add(1)) - 1 {
			rounds = rounds[:0]
			for _, q := range needed[c] {
				rounds = append(rounds, t.sets[q])
			}
			result = grown(result, len(rounds))
			r.route(t.networks[c], rounds, t.p.Params.Ties, result)
			for i, q := range needed[c] {
				t.loads[c][q] = result[i]
			}
		}
	}
	workers := min(runtime.GOMAXPROCS(0), len(needed))
	if steps < 1e5 {
		workers = 1
	}
	var all sync.WaitGroup
	for range workers - 1 {
		all.Go(work)
	}
	work()
	all.Wait()
}

// steps estimates the work of routing that many sets of transfers, of so many in all. The hops of a path are taken to
// be those to the GPU farthest from GPU 0.
func (n *network) steps(sets, transfers int, ties Ties) float64 {
	if n.chain != nil && !(n.chain.duplex && ties == Greedy) { // both ways around may be as short: see onChains
		return float64(transfers + sets*n.gpus)
	}
	r := router{distance: make([]int32, n.gpus), queue: make([]int32, n.gpus)}
	r.search(0, n.first, n.to)
	var far int32
	for _, d := range r.distance {
		far = max(far, d)
	}
	searches := math.Ceil(float64(sets)/batch) * float64(n.gpus)
	return searches*float64(n.gpus+len(n.to)) + float64(transfers)*float64(far)
}
