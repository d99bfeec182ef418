package export

import (
	"cmp"
	"slices"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// index finds what belongs together in a run.
type index struct {
	run        *runs.Run
	varied     []string // parameters
	conditions map[int]*plan.Condition
	moves      map[int]*runs.Reconfiguration
	commands   map[int]timeline.Interval // of each reconfiguration: of the first, if several switches had one
}

func indexOf(r *runs.Run) *index {
	x := &index{
		run:        r,
		conditions: map[int]*plan.Condition{},
		moves:      make(map[int]*runs.Reconfiguration, len(r.Reconfigurations)),
		commands:   make(map[int]timeline.Interval, len(r.Reconfigurations)),
	}
	if r.Plan != nil {
		x.varied = r.Plan.Varied
		for i := range r.Plan.Conditions {
			c := &r.Plan.Conditions[i]
			x.conditions[c.Number] = c
		}
	}
	for i := range r.Reconfigurations {
		x.moves[r.Reconfigurations[i].Number] = &r.Reconfigurations[i]
	}
	for i := range r.Marks {
		m := &r.Marks[i]
		if m.Stage != timeline.Command {
			continue
		}
		first, ok := x.commands[m.Reconfiguration]
		if !ok {
			first = m.Interval
		}
		x.commands[m.Reconfiguration] = timeline.Interval{
			Earliest: min(first.Earliest, m.Earliest), Latest: min(first.Latest, m.Latest),
		}
	}
	return x
}

// since returns when the interval was, counted from the command of its reconfiguration. It
// reports false when there was no command.
func (x *index) since(reconfiguration int, at timeline.Interval) (timeline.Interval, bool) {
	command, ok := x.commands[reconfiguration]
	return at.Sub(command), ok
}

// label returns what tells a condition from others, "" if nothing does.
func (x *index) label(condition int) string {
	if c := x.conditions[condition]; c != nil {
		return c.Label
	}
	return ""
}

// groups are the places of things in a list, by reconfiguration.
type groups struct {
	order []int
	spans map[int][2]int // in order, by reconfiguration
}

// group groups n things; those of one reconfiguration stay in their order.
func group(n int, reconfiguration func(i int) int) groups {
	g := groups{make([]int, n), map[int][2]int{}}
	for i := range g.order {
		g.order[i] = i
	}
	slices.SortStableFunc(g.order, func(a, b int) int { return cmp.Compare(reconfiguration(a), reconfiguration(b)) })
	for from := 0; from < n; {
		number, to := reconfiguration(g.order[from]), from+1
		for to < n && reconfiguration(g.order[to]) == number {
			to++
		}
		g.spans[number] = [2]int{from, to}
		from = to
	}
	return g
}

// of returns the places of what belongs to a reconfiguration.
func (g groups) of(reconfiguration int) []int {
	span := g.spans[reconfiguration]
	return g.order[span[0]:span[1]]
}
