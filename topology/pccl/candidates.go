package pccl

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
)

// stage is a run of equal rounds. It never pays to rewire within one: what rewiring there saves or costs is linear in
// where it is done, so that one end of the run is as good.
type stage struct {
	first, rounds int // which rounds
	set           int // which transfers
	bytes         float64
}

// maxStages bounds the work of decisions, which goes with its square, and of envelopes, with its third power.
const maxStages = 2048

// set is the transfers of a round, in order.
type set struct {
	transfers []Transfer
	turns     bool // each GPU sends to the one so many further, around all GPUs
}

func newSet(gpus int, transfers []Transfer) set {
	return set{transfers, turns(gpus, len(transfers), func(i int) (src, dst int) { return transfers[i].Src, transfers[i].Dst })}
}

// stagesOf takes a schedule apart into stages, and into the different sets of transfers that its rounds have.
func stagesOf(s Schedule) (stages []stage, sets []set, err error) {
	var known index[[]Transfer]
	for i, r := range s.Rounds {
		if k := len(stages) - 1; k >= 0 && stages[k].bytes == r.Bytes && shared(sets[stages[k].set].transfers, r.Transfers) {
			stages[k].rounds++
			continue
		}
		number, isNew := known.find(r.Transfers, func(put func(int)) {
			for _, t := range r.Transfers {
				put(t.Src)
				put(t.Dst)
			}
		}, slices.Equal[[]Transfer])
		if isNew {
			sets = append(sets, newSet(s.GPUs, r.Transfers))
		}
		if k := len(stages) - 1; k >= 0 && stages[k].set == number && stages[k].bytes == r.Bytes {
			stages[k].rounds++
			continue
		}
		if len(stages) == maxStages {
			return nil, nil, fmt.Errorf("%w: more than %d different rounds one after the other: plan them in parts",
				ErrTooLarge, maxStages)
		}
		stages = append(stages, stage{first: i, rounds: 1, set: number, bytes: r.Bytes})
	}
	return stages, sets, nil
}

// shared reports whether two sets are the same memory, as those of a ring algorithm's many rounds are.
func shared(a, b []Transfer) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// index numbers different values in the order in which they come.
type index[T any] struct {
	values []T
	byHash map[uint64][]int
	hash   maphash.Hash
}

// find returns the number of v. What it consists of is put into the hash.
func (x *index[T]) find(v T, parts func(put func(int)), equal func(a, b T) bool) (number int, isNew bool) {
	if x.byHash == nil {
		x.byHash = map[uint64][]int{}
	}
	x.hash.Reset()
	var word [8]byte
	parts(func(n int) {
		binary.LittleEndian.PutUint64(word[:], uint64(n))
		x.hash.Write(word[:])
	})
	key := x.hash.Sum64()
	for _, i := range x.byHash[key] {
		if equal(x.values[i], v) {
			return i, false
		}
	}
	x.values = append(x.values, v)
	x.byHash[key] = append(x.byHash[key], len(x.values)-1)
	return len(x.values) - 1, true
}

// pool is the candidates of a problem.
type pool struct {
	known    index[*Topology]
	networks []*network
	circuits int
}

// Bounds of the memory of all candidates, and of a table of what each costs at each stage.
const (
	maxCircuits = 1 << 25
	maxCells    = 1 << 24
)

// add returns the number of a candidate.
func (p *pool) add(t *Topology, n *network) (number int, err error) {
	number, isNew := p.known.find(t, func(put func(int)) {
		for g, peers := range t.out {
			put(-g)
			for _, x := range peers {
				put(x)
			}
		}
	}, (*Topology).Equal)
	if !isNew {
		return number, nil
	}
	p.networks = append(p.networks, n)
	if p.circuits += len(n.to) + t.gpus; p.circuits > maxCircuits {
		return 0, fmt.Errorf("%w: the candidates have more than %d circuits and GPUs: want fewer GPUs, rounds or unions",
			ErrTooLarge, maxCircuits)
	}
	return number, nil
}

// addStandard adds Start and the Standard topologies.
func (p *pool) addStandard(problem Problem) error {
	for _, t := range append([]*Topology{problem.Start}, problem.Standard...) {
		n := newNetwork(t)
		if err := problem.Params.fits(n); err != nil {
			return t.tooWide(err)
		}
		if _, err := p.add(t, n); err != nil {
			return err
		}
	}
	return nil
}

// addOwn adds the topology of each set of transfers, and returns their numbers.
func (p *pool) addOwn(problem Problem, stages []stage, sets int) ([]int, error) {
	own := make([]int, sets)
	done := make([]bool, sets)
	for _, st := range stages {
		if done[st.set] {
			continue
		}
		done[st.set] = true
		round := problem.Schedule.Rounds[st.first]
		t, err := Direct(problem.Schedule.GPUs, fmt.Sprintf("round %d", st.first), round)
		if err != nil {
			return nil, err
		}
		n := newNetwork(t)
		if err := problem.Params.fits(n); err != nil {
			return nil, fmt.Errorf("%.60s, round %d: %w%s", problem.Schedule.Algorithm, st.first, err, splitHint(problem, round))
		}
		if own[st.set], err = p.add(t, n); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// splitHint says how many sub-rounds a round that does not fit becomes.
func splitHint(problem Problem, round Round) string {
	s := problem.Schedule
	s.Rounds = []Round{round}
	parts, err := s.Split(problem.Params.Transmitters, problem.Params.Receivers)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(": Schedule.Split makes %d sub-rounds of it", len(parts.Rounds))
}
