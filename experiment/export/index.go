package export

import (
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// index finds what belongs together in a run.
type index struct {
	run      *runs.Run
	varied   []string                  // parameters
	commands map[int]timeline.Interval // of each reconfiguration: of the first, if several switches had one
}

func indexOf(r *runs.Run) *index {
	x := &index{run: r, commands: make(map[int]timeline.Interval, len(r.Reconfigurations))}
	if r.Plan != nil {
		x.varied = r.Plan.Varied
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

// condition returns the one of that number; an empty one if the plan does not have it.
func (x *index) condition(number int) *plan.Condition {
	if c := x.run.Plan.Condition(number); c != nil {
		return c
	}
	return &plan.Condition{}
}
