package pccl

import (
	"fmt"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// Split divides each round in which more transfers begin at a GPU than it has transmitters, or end than it has
// receivers, into the fewest sub-rounds that respect both: the largest of degree/limit, rounded up. 0 is as many as
// needed. Rounds that need no division stay what they are. A negative number is an error that matches [ErrArgument].
//
// The paper asks for sub-rounds (section 4.1) and gives no method. Here each GPU is divided into parts of as many
// transfers as there are sub-rounds; a colouring of the transfers with that many colours, which exists because the
// graph from senders to receivers is bipartite (König), gives each part one transfer a sub-round at most.
func (s Schedule) Split(transmitters, receivers int) (Schedule, error) {
	if transmitters < 0 || receivers < 0 {
		return Schedule{}, fmt.Errorf("%w: %d transmitters and %d receivers: want 1 or more, or 0 for as many as needed",
			ErrArgument, transmitters, receivers)
	}
	if err := s.Valid(); err != nil {
		return Schedule{}, err
	}
	var rounds []Round
	for _, r := range s.Rounds {
		rounds = append(rounds, r.split(s.GPUs, transmitters, receivers)...)
	}
	s.Rounds = rounds
	return s, nil
}

// Degree returns the most transfers that begin and that end at one GPU.
func (r Round) Degree() (out, in int) {
	from, to := map[int]int{}, map[int]int{}
	for _, t := range r.Transfers {
		from[t.Src]++
		to[t.Dst]++
		out, in = max(out, from[t.Src]), max(in, to[t.Dst])
	}
	return out, in
}

// Parts returns how many sub-rounds [Schedule.Split] makes of a round; limits of 0 are as many as needed.
func (r Round) Parts(transmitters, receivers int) int {
	out, in := r.Degree()
	n := 1
	if transmitters > 0 {
		n = max(n, (out+transmitters-1)/transmitters)
	}
	if receivers > 0 {
		n = max(n, (in+receivers-1)/receivers)
	}
	return n
}

func (r Round) split(gpus, transmitters, receivers int) []Round {
	n := r.Parts(transmitters, receivers)
	if n == 1 {
		return []Round{r}
	}
	// part numbers the parts of each GPU as their transfers come: a part is full after n of them.
	type end struct{ part, used int }
	part := func(ends []end, x int, parts *int) int {
		e := &ends[x]
		if e.used%n == 0 {
			e.part, *parts = *parts, *parts+1
		}
		e.used++
		return e.part
	}
	from, to := make([]end, gpus), make([]end, gpus)
	var left, right int
	edges := make([][2]int, len(r.Transfers))
	for i, t := range r.Transfers {
		edges[i] = [2]int{part(from, t.Src, &left), part(to, t.Dst, &right)}
	}
	colours, _ := graph.EdgeColouring(left, right, edges)
	parts := make([]Round, n)
	for i, t := range r.Transfers {
		p := &parts[colours[i]]
		p.Bytes = r.Bytes
		p.Transfers = append(p.Transfers, t)
	}
	return parts
}
