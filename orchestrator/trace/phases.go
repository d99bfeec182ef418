package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/ocslab/ocslab/topology/opus"
)

// Phase is a longest run of a rank's operations along one axis. Only operations that need circuits count: others
// may lie between them, and so may computation.
type Phase struct {
	Axis        int
	First, Last int   // of its operations, by place in the step; inclusive
	Ops         int   // that need circuits
	Bytes       int64 // of these
}

// Phases returns the phases of each rank in a step, which ends the last one: a phase that goes on in the next step is
// another there.
func Phases(t *Trace, step int) [][]Phase {
	ranks := make([][]Phase, t.Job.Ranks())
	for rank, ops := range t.step(step).Ranks {
		for i, op := range ops {
			if !t.onRail(op) {
				continue
			}
			if n := len(ranks[rank]); n == 0 || ranks[rank][n-1].Axis != op.Axis {
				ranks[rank] = append(ranks[rank], Phase{Axis: op.Axis, First: i})
			}
			p := &ranks[rank][len(ranks[rank])-1]
			p.Last, p.Ops, p.Bytes = i, p.Ops+1, p.Bytes+op.Bytes
		}
	}
	return ranks
}

// AxisChanges returns how often a stage goes over to another axis in a step, the one from its last phase to the first
// of the next, equal step included. It is a count of the schedule alone: the most of any rank of the stage,
// whatever the stages beside it do.
func AxisChanges(t *Trace, step, stage int) int {
	most := 0
	n := t.Job.RanksPerStage()
	for _, phases := range Phases(t, step)[stage*n : (stage+1)*n] {
		changes := len(phases)
		if changes > 0 && phases[0].Axis == phases[changes-1].Axis {
			changes--
		}
		most = max(most, changes)
	}
	return most
}

// OneFOneBChanges returns what [AxisChanges] is for a stage of a plain 1F1B schedule of p stages and m microbatches, if
// a data-parallel operation belongs to the computation of each microbatch, forward and backward, and to the
// optimizer. It is 0 where there is no such schedule: fewer than two stages, no microbatch, no such stage.
func OneFOneBChanges(p, m, stage int) int {
	switch {
	case p < 2 || m < 1 || stage < 0 || stage >= p:
		return 0
	case stage == p-1:
		return 2*m + 2
	case stage > 0:
		return 4*m + 2
	case m >= p:
		return 2 * (m + p - 1)
	}
	return 2 * (2*m - 1)
}

// Reconfigurations returns how many reconfigurations of the rail people speak of when they talk about a step: the most
// that any one stage goes over to another axis ([AxisChanges]). Changes of two stages at the same boundary count as
// one then, and so does a stage that follows its neighbour a little later. Published counts agree: 4 in the lab
// (two stages, one microbatch), 6 in configurations 1 and 2 (two of each). For every single change of a digit see
// [Trace.TopologyIDs].
func (t *Trace) Reconfigurations(step int) int {
	most := 0
	for stage := range t.Job.Stages {
		most = max(most, AxisChanges(t, step, stage))
	}
	return most
}

// TopologyIDs returns the topology IDs of a step in their order: the one that it begins with, and one for each change,
// when operations start as in a simulation without delays, each setting the digits that it needs (a symmetrical one
// that of its stage, a transfer those of its two). Of operations that start at once the lower stage is first.
// A controller that changes several stages at a time passes over some of them.
func (t *Trace) TopologyIDs(step int) []opus.ID {
	type start struct {
		last        bool // of the last cycle, in the step
		rank, stage int
		op          Op
		at          time.Duration
	}
	s := simulate(t, Model{})
	var starts []start
	for rank, spans := range s.spans {
		for _, span := range spans {
			op := t.Steps[span.Step].Ranks[rank][span.Seq]
			if t.onRail(op) {
				starts = append(starts, start{span.last && span.Step == step%len(t.Steps), rank, t.Job.Stage(rank), op, span.Start})
			}
		}
	}
	slices.SortFunc(starts, func(a, b start) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.stage, b.stage), cmp.Compare(a.rank, b.rank))
	})
	id := make(opus.ID, t.Job.Stages)
	var ids []opus.ID
	for _, x := range starts {
		if x.last && ids == nil {
			ids = append(ids, id)
		}
		var next opus.ID
		if x.op.Kind.transfer() {
			next = id.Transfer(min(x.stage, t.Job.Stage(x.op.Peer)))
		} else {
			next = id.Symmetrical(x.stage, x.op.Axis)
		}
		if x.last && !slices.Equal(id, next) {
			ids = append(ids, next)
		}
		id = next
	}
	return ids
}

// Window is the time between two phases of a stage along different axes, in which circuits can be moved without
// anybody waiting.
type Window struct {
	Stage         int
	Rank          int           // the first of those that it is of: all of the stage, unless their phases differ
	Before, After int           // axes
	Start         time.Duration // from the beginning of the simulated steps; before 0 if the phase before ended earlier
	Duration      time.Duration // 0 also if the phases of different ranks overlap
}

// Windows returns the windows that end in a step, by stage and then by time, when the trace is played over and over
// without delays for switching: the one before the first phase of the step, too, if the step before ended with
// another axis. An operation starts when the last of its members issues it, and ends for all at once; the window
// between two phases is from the latest end of an operation of the one to the earliest start of one of the other.
// Ranks of a stage with different phases have windows of their own.
func Windows(t *Trace, step int) []Window {
	s := simulate(t, Model{})
	var all []Window
	n := t.Job.RanksPerStage()
	for stage := range t.Job.Stages {
		var own [][]Window // one list for each way in which ranks of the stage go over
		for rank := stage * n; rank < (stage+1)*n; rank++ {
			mine := t.windowsOf(s.spans[rank], rank, step)
			same := slices.IndexFunc(own, func(w []Window) bool {
				return slices.EqualFunc(w, mine, func(a, b Window) bool { return a.Before == b.Before && a.After == b.After })
			})
			if same < 0 {
				own = append(own, mine)
				continue
			}
			for i, m := range mine {
				w := &own[same][i]
				start, end := max(w.Start, m.Start), min(w.Start+w.Duration, m.Start+m.Duration)
				w.Start, w.Duration = start, end-start // below 0 for the moment, if they overlap
			}
		}
		for _, w := range own {
			for i := range w {
				w[i].Duration = max(w[i].Duration, 0)
			}
			all = append(all, w...)
		}
	}
	slices.SortStableFunc(all, func(a, b Window) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Start, b.Start))
	})
	return all
}

// windowsOf returns the windows of one rank that end in the step.
func (t *Trace) windowsOf(spans []played, rank, step int) []Window {
	var all []Window
	axis, end := -1, time.Duration(0)
	for _, s := range spans {
		op := t.Steps[s.Step].Ranks[rank][s.Seq]
		if !t.onRail(op) {
			continue
		}
		if axis >= 0 && axis != op.Axis && s.last && s.Step == step%len(t.Steps) {
			all = append(all, Window{
				Stage: t.Job.Stage(rank), Rank: rank, Before: axis, After: op.Axis,
				Start: end, Duration: s.Start - end,
			})
		}
		axis, end = op.Axis, s.End
	}
	return all
}
