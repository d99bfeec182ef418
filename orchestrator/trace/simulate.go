package trace

import (
	"time"
)

// Mode is how the circuits of a phase are asked for.
type Mode string

const (
	Native    Mode = ""          // not at all: they are always there, which is the ideal
	Demand    Mode = "demand"    // when its first operation is about to start
	Provision Mode = "provision" // when the phase before has ended
)

// Model is what [Simulate] assumes of the switch and the control plane.
type Model struct {
	Delta time.Duration // until moved circuits can be used
	Kappa time.Duration // what the control plane adds to each reconfiguration; a request that moves nothing is free
	Mode  Mode
}

// Simulation is what [Simulate] finds.
type Simulation struct {
	// Step is how long a step takes on average, once steps follow each other in a steady rhythm.
	Step time.Duration
	// Exposed is what of it is due to reconfigurations: the difference to Native.
	Exposed time.Duration
	// Moves is how often a group (of a transfer: two ranks) has to have its circuits moved before an operation, in all steps
	// of the trace together. Groups that move at the same time count each.
	Moves int
	// Ops are the operations of each rank in the last time that all steps were played. Times count from when the first
	// rank began with these steps.
	Ops [][]Span
}

// Span is an operation of a rank in a [Simulation].
type Span struct {
	Step, Seq int           // where it is in the trace
	Issue     time.Duration // the rank was ready for it
	Start     time.Duration // all were ready, and the circuits there
	End       time.Duration
}

// Simulate plays a trace, which has passed [Trace.Check], over and over until its rhythm is steady. Operations block: one
// starts when the last of its members issues it, takes as long as that of its members who takes longest, and
// ends for all at once. There is no barrier at the end of a step, beyond what the trace has.
//
// The circuits of a rank are those of one axis at a time. An operation for which a member has to go over to another
// axis waits for a reconfiguration, which takes Delta+Kappa and begins, with Demand, when the last member issues the
// operation, and with Provision when the last of them has ended its operation before (on the rail). So the exposed part
// of a boundary with window W is Delta+Kappa, and max(0, Delta+Kappa-W). What is not in the model: groups of a
// stage that have to wait for each other, wrong predictions, the time of requests that move nothing, and slower
// operations on a fallback ring.
func Simulate(t *Trace, m Model) *Simulation {
	run := simulate(t, m)
	s := &Simulation{Step: run.step, Moves: run.moves, Ops: make([][]Span, len(run.spans))}
	if m.Mode != Native {
		s.Exposed = run.step - simulate(t, Model{}).step
	}
	for rank, spans := range run.spans {
		for _, p := range spans {
			if p.last {
				s.Ops[rank] = append(s.Ops[rank], p.Span)
			}
		}
	}
	return s
}

// StepTime returns how long a step takes on average by simulation without any delay for switching.
func (t *Trace) StepTime() time.Duration { return simulate(t, Model{}).step }

// played is an operation of the last two cycles; a cycle is all steps of the trace once.
type played struct {
	Span
	last bool // of the last cycle
}

// run is a simulation of some cycles.
type run struct {
	step   time.Duration
	moves  int        // in the last cycle
	spans  [][]played // by rank; times count from the begin of the last cycle
	steady bool
}

// simulate plays as many cycles as the rhythm takes to become steady, within limits.
func simulate(t *Trace, m Model) *run {
	ops := 0
	for _, s := range t.Steps {
		for _, r := range s.Ranks {
			ops += 1 + len(r) // a step costs something even if it is empty
		}
	}
	groups := t.groupIndices()
	cycles := 4
	for {
		r := simulateCycles(t, m, cycles, groups)
		// A rhythm of several cycles never becomes steady in this sense; its average is good enough.
		if cycles *= 4; r.steady || cycles > 64 || cycles*ops > 1<<22 {
			return r
		}
	}
}

func simulateCycles(t *Trace, m Model, cycles int, groups [][]int) *run {
	var (
		steps = len(t.Steps)
		n     = t.Job.Ranks()
		r     = &run{spans: make([][]played, n)}
		clock = make([]time.Duration, n)
		freed = make([]time.Duration, n) // the end of the last operation that needed circuits
		axis  = make([]int, n)           // that the circuits of the rank are of; -1: none yet
		ends  = make([][]time.Duration, cycles)
	)
	for i := range axis {
		axis[i] = -1
	}
	for i := range ends {
		ends[i] = make([]time.Duration, n)
	}
	p := newPlayer(t, cycles*steps, groups)
	p.tail = func(rank, round int) {
		clock[rank] += time.Duration(t.step(round).TailUS) * time.Microsecond
		if round%steps == steps-1 {
			ends[round/steps][rank] = clock[rank]
		}
	}
	p.op = func(ranks []int) {
		var start, free, duration time.Duration
		rail, move := false, false
		for _, x := range ranks {
			op, _ := p.current(x)
			start = max(start, clock[x]+time.Duration(op.ComputeBeforeUS)*time.Microsecond)
			duration = max(duration, t.Duration(op))
			if t.onRail(op) {
				rail = true
				free = max(free, freed[x])
				move = move || axis[x] != op.Axis
				axis[x] = op.Axis
			}
		}
		if move {
			switch m.Mode {
			case Demand:
				start += m.Delta + m.Kappa
			case Provision:
				start = max(start, free+m.Delta+m.Kappa)
			}
			if p.at[ranks[0]].round/steps == cycles-1 {
				r.moves++
			}
		}
		for _, x := range ranks {
			at := p.at[x]
			if cycle := at.round / steps; cycle >= cycles-2 {
				op, _ := p.current(x)
				r.spans[x] = append(r.spans[x], played{
					Span: Span{
						Step: at.round % steps, Seq: at.seq,
						Issue: clock[x] + time.Duration(op.ComputeBeforeUS)*time.Microsecond, Start: start, End: start + duration,
					},
					last: cycle == cycles-1,
				})
			}
			clock[x] = start + duration
			if rail {
				freed[x] = clock[x]
			}
		}
	}
	p.play()

	a, b, c := ends[cycles-3], ends[cycles-2], ends[cycles-1]
	r.steady = true
	for x := range n {
		if d := c[0] - b[0]; c[x]-b[x] != d || b[x]-a[x] != d {
			r.steady = false
		}
	}
	if r.steady {
		r.step = (c[0] - b[0]) / time.Duration(steps)
	} else {
		half := cycles / 2
		r.step = (latest(c) - latest(ends[half-1])) / time.Duration(half*steps)
	}
	begin := b[0]
	for _, x := range b {
		begin = min(begin, x)
	}
	for _, spans := range r.spans {
		for i := range spans {
			s := &spans[i]
			s.Issue, s.Start, s.End = s.Issue-begin, s.Start-begin, s.End-begin
		}
	}
	return r
}

func latest(times []time.Duration) time.Duration {
	var last time.Duration
	for _, x := range times {
		last = max(last, x)
	}
	return last
}
