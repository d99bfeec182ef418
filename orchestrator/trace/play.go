package trace

import "github.com/ocslab/ocslab/topology/opus"

// place is where a rank is: its operation seq of the round-th step of a replay.
type place struct{ round, seq int }

// player plays a trace with blocking operations: one begins when the last of its members has come to it, and each
// member goes on when it is over. What happens does not depend on the order in which ranks are looked at, as each
// waits in one operation only.
type player struct {
	t      *Trace
	rounds int     // steps to play
	at     []place // by rank
	groups [][]int // see groupIndices
	meets  map[sequence][]int

	op   func(ranks []int)         // all have come to their operation at, in which they take part together
	tail func(rank int, round int) // a rank has finished a step
}

func newPlayer(t *Trace, rounds int, groups [][]int) *player {
	return &player{t: t, rounds: rounds, at: make([]place, t.Job.Ranks()), groups: groups, meets: map[sequence][]int{}}
}

// groupIndices returns the index of each rank's group, by axis and rank.
func (t *Trace) groupIndices() [][]int {
	indices := make([][]int, len(t.Job.Axes)+1)
	for axis := range indices {
		indices[axis] = make([]int, t.Job.Ranks())
		for _, g := range t.Job.Groups(axis) {
			for _, x := range g.Members {
				indices[axis][x] = g.Index
			}
		}
	}
	return indices
}

// current returns the operation that a rank has come to; ok is false if it has played all.
func (p *player) current(rank int) (op Op, ok bool) {
	at := p.at[rank]
	if at.round >= p.rounds {
		return Op{}, false
	}
	return p.t.step(at.round).Ranks[rank][at.seq], true
}

// skip takes a rank over the ends of steps.
func (p *player) skip(rank int) {
	at := &p.at[rank]
	for at.round < p.rounds && at.seq == len(p.t.step(at.round).Ranks[rank]) {
		if p.tail != nil {
			p.tail(rank, at.round)
		}
		at.round, at.seq = at.round+1, 0
	}
}

// play plays until nobody can go on, and reports whether all have played all.
func (p *player) play() bool {
	todo := make([]int, len(p.at))
	for i := range todo {
		todo[i] = len(todo) - 1 - i // a stack: rank 0 first
		p.skip(i)
	}
	done := 0
	for len(todo) > 0 {
		rank := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		op, ok := p.current(rank)
		if !ok {
			done++
			continue
		}
		seq := p.t.sequenceOf(rank, op, p.groups[op.Axis][rank])
		need := p.t.size(op.Axis)
		switch {
		case seq.net == ScaleUp:
			need = 1
		case op.Axis == opus.PP && seq.way >= 0:
			need = 2
		}
		ranks := append(p.meets[seq], rank)
		if len(ranks) < need {
			p.meets[seq] = ranks
			continue
		}
		if p.op != nil {
			p.op(ranks)
		}
		for _, x := range ranks {
			p.at[x].seq++
			p.skip(x)
		}
		todo = append(todo, ranks...)
		p.meets[seq] = ranks[:0]
	}
	return done == len(p.at)
}
