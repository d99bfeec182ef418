package pccl

import (
	"errors"
	"fmt"
)

// addUnions adds the topologies that have the circuits of several stages in a row, up to as many as the problem
// allows and transmitters suffice for. It returns by stage those that begin with it.
//
// The paper wires one round at a time. With more transmitters than a round uses, circuits for the next rounds can be
// wired along, at less bandwidth each: worth it where hops and switching, not bytes, are what takes long.
func (p *pool) addUnions(problem Problem, stages []stage) ([][]int, error) {
	begin := make([][]int, len(stages))
	for a := range stages {
		rounds := []Round{problem.Schedule.Rounds[stages[a].first]}
		for b := a + 1; b < len(stages) && b-a < problem.Unions; b++ {
			rounds = append(rounds, problem.Schedule.Rounds[stages[b].first])
			name := fmt.Sprintf("rounds %d to %d", stages[a].first, stages[b].first+stages[b].rounds-1)
			t, err := Direct(problem.Schedule.GPUs, name, rounds...)
			if err != nil {
				return nil, err
			}
			n := newNetwork(t)
			if errors.Is(problem.Params.fits(n), ErrTransmitters) {
				break // nor does any that has more rounds
			}
			number, err := p.add(t, n)
			if err != nil {
				return nil, err
			}
			begin[a] = append(begin[a], number)
		}
	}
	return begin, nil
}
