package pccl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// LeftOut is an algorithm that was not considered, and why: an error that matches [ErrTooLarge].
type LeftOut struct {
	Algorithm Algorithm
	Err       error
}

// Tables works out the tables of several problems, in their order, and leaves out those that are too large. It fails if
// that leaves none, or if one of them is not right.
func Tables(problems []Problem) (tables []*Table, left []LeftOut, err error) {
	if len(problems) == 0 {
		return nil, nil, fmt.Errorf("%w: no problems to choose among", ErrArgument)
	}
	for _, p := range problems {
		t, err := NewTable(p)
		switch {
		case err == nil:
			tables = append(tables, t)
		case errors.Is(err, ErrTooLarge):
			left = append(left, LeftOut{p.Schedule.Algorithm, err})
		default:
			return nil, nil, err
		}
	}
	if len(tables) == 0 {
		return nil, nil, left[0].Err
	}
	return tables, left, nil
}

// Alternative is what one of several algorithms would take.
type Alternative struct {
	Plan
	// Static is the plan of the same schedule without rewiring. It has no rounds, and its Total is +Inf, if a transfer
	// has no path then.
	Static Plan
}

// Choose plans several problems at one switching time and returns their plans, best first; equals in the order of the
// problems. Those that are too large are left out, see [Tables]. The paper feeds one algorithm to its program; where
// switching is slow another one that was made for what is wired is often several times faster without any rewiring.
// Beyond the paper.
func Choose(problems []Problem, switchTime float64) ([]Alternative, error) {
	tables, _, err := Tables(problems)
	if err != nil {
		return nil, err
	}
	all := make([]Alternative, len(tables))
	for i, t := range tables {
		s := t.p.Schedule
		if all[i].Plan, err = t.Best(switchTime); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Algorithm, err)
		}
		all[i].Static, err = t.Static()
		if errors.Is(err, ErrDisconnected) {
			all[i].Static = Plan{Schedule: s, Total: math.Inf(1)}
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Algorithm, err)
		}
	}
	slices.SortStableFunc(all, func(a, b Alternative) int {
		switch {
		case less(a.Total, b.Total):
			return -1
		case less(b.Total, a.Total):
			return 1
		}
		return 0
	})
	return all, nil
}

// Portfolio returns a problem for each algorithm that computes a collective among that many GPUs: what [Algorithms]
// lists, and the ring laid along a cycle of start and of each standard topology that has one.
// Beyond the paper, which plans recursive halving only.
func Portfolio(
	c Collective, gpus int, bytes float64, start *Topology, standard []*Topology, p Params,
) ([]Problem, error) {
	if start == nil {
		return nil, fmt.Errorf("%w: no start: say what is wired at the beginning", ErrArgument)
	}
	algorithms := Algorithms(c, gpus)
	if len(algorithms) == 0 {
		first := RingPass
		if c == AllToAll {
			first = Linear
		}
		if _, err := New(c, first, gpus, bytes); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: no algorithm computes %.40s among %d GPUs", ErrArgument, c, gpus)
	}
	var schedules []Schedule
	for _, a := range algorithms {
		s, err := New(c, a, gpus, bytes)
		if err != nil {
			return nil, err
		}
		schedules = append(schedules, s)
	}
	if slices.Contains(algorithms, RingPass) {
		schedules = append(schedules, embedded(c, gpus, bytes, append([]*Topology{start}, standard...))...)
	}
	problems := make([]Problem, 0, len(schedules))
	for _, s := range schedules {
		problems = append(problems, Problem{Schedule: s, Start: start, Standard: standard, Params: p})
	}
	return problems, nil
}

// embedded returns the ring algorithm along the cycles of topologies that have one and on which it
// is not the plain ring.
func embedded(c Collective, gpus int, bytes float64, topologies []*Topology) []Schedule {
	var all []Schedule
	for _, t := range topologies {
		if t == nil || t.gpus != gpus {
			continue // NewTable says so
		}
		s, err := RingOn(t, c, bytes)
		if err != nil {
			continue // no such cycle, or none found
		}
		plain := !slices.ContainsFunc(s.Rounds[0].Transfers, func(x Transfer) bool { return x.Dst != (x.Src+1)%gpus })
		known := slices.ContainsFunc(all, func(o Schedule) bool {
			return slices.Equal(o.Rounds[0].Transfers, s.Rounds[0].Transfers)
		})
		if !plain && !known {
			all = append(all, s)
		}
	}
	return all
}

// Concat returns the schedule that runs schedules of the same GPUs one after the other, so that they are planned as
// one: what is wired at the end of one serves the next. Its collective is not one of the four, unless there is but
// one schedule; Bytes is the largest buffer.
func Concat(schedules ...Schedule) (Schedule, error) {
	if len(schedules) == 0 {
		return Schedule{}, fmt.Errorf("%w: no schedules", ErrArgument)
	}
	all := schedules[0]
	all.Rounds = nil
	var algorithms, collectives []string
	for i, s := range schedules {
		if s.GPUs != all.GPUs {
			return Schedule{}, fmt.Errorf("%w: schedule %d is of %d GPUs, the first of %d", ErrSize, i, s.GPUs, all.GPUs)
		}
		algorithms = append(algorithms, string(s.Algorithm))
		collectives = append(collectives, string(s.Collective))
		all.Bytes = max(all.Bytes, s.Bytes)
		all.Rounds = append(all.Rounds, s.Rounds...)
	}
	all.Algorithm = Algorithm(strings.Join(algorithms, ", "))
	all.Collective = Collective(strings.Join(collectives, ", "))
	return all, nil
}
