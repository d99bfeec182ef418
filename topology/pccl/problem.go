package pccl

import (
	"fmt"
)

// Problem is what a plan is sought for: a schedule, what is wired at its beginning, and what may be wired.
//
// Candidates are Start, which may be returned to, the Standard topologies, and for each round its own topology, which
// has just its transfers. By the paper's rule a round's own topology is wired before its round, and may be kept for
// later rounds, but not returned to; Start and the Standard ones may be wired before any round.
//
// The rule is that of the paper's text. Its inequality (5), as printed, is something else: there the number of a
// topology is taken for that of a round, and plans that break the rule pass.
type Problem struct {
	Schedule Schedule
	Start    *Topology
	Standard []*Topology // one that equals Start or an earlier one is left out
	Params   Params
	// Free lets any candidate be wired before any round. It is never worse than the paper's rule; beyond the paper.
	Free bool
	// Unions is the longest run of rounds whose transfers may be wired all at once, so that one rewiring serves several
	// rounds; equal rounds in a row count as one, and 0 and 1 are no unions. Those that do not fit Params.Transmitters,
	// which have to be set, are left out. Honest with Params.Split only: without it, a GPU has the more bandwidth the
	// more circuits it has. Beyond the paper.
	Unions int
}

// Best returns the cheapest plan at a switching time in seconds. See [Table.Best].
func (p Problem) Best(switchTime float64) (Plan, error) {
	t, err := NewTable(p)
	if err != nil {
		return Plan{}, err
	}
	return t.Best(switchTime)
}

// Envelope returns the best plans at all switching times. See [Table.Envelope].
func (p Problem) Envelope() ([]Piece, error) {
	t, err := NewTable(p)
	if err != nil {
		return nil, err
	}
	return t.Envelope()
}

// check returns why there is no such problem.
func (p Problem) check() error {
	if err := p.Params.check(); err != nil {
		return err
	}
	if err := p.Schedule.Valid(); err != nil {
		return err
	}
	for i, r := range p.Schedule.Rounds {
		if err := r.checkBytes(); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	if p.Start == nil {
		return fmt.Errorf("%w: no start: say what is wired at the beginning; Dark(%d) is nothing", ErrArgument,
			p.Schedule.GPUs)
	}
	for i, t := range append([]*Topology{p.Start}, p.Standard...) {
		if t == nil {
			return fmt.Errorf("%w: standard topology %d is nil", ErrArgument, i-1)
		}
		if t.gpus != p.Schedule.GPUs {
			return fmt.Errorf("%w: topology %s joins %d GPUs, the schedule %d", ErrSize, t.name, t.gpus, p.Schedule.GPUs)
		}
	}
	if p.Unions < 0 {
		return fmt.Errorf("%w: unions of %d rounds: want 0 or more", ErrArgument, p.Unions)
	}
	if p.Unions > 1 && p.Params.Transmitters == 0 {
		return fmt.Errorf("%w: unions of rounds take more circuits than one round: say how many transmitters a GPU has",
			ErrArgument)
	}
	return nil
}
