package advice

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrProblem: a problem is not consistent, or nothing solves it. Test with errors.Is.
var ErrProblem = errors.New("no such problem of phases and topologies")

const (
	// Never is the time of a phase on a topology that does not carry it.
	Never time.Duration = math.MaxInt64
	// Longest is the longest duration that a problem may have; with at most MaxPhases phases no sum
	// overflows.
	Longest = 24 * time.Hour
	// MaxPhases is how many phases a problem may have.
	MaxPhases = 1 << 15
)

// Problem is the choice of a topology for each phase of a cyclic step: after the last phase comes the first
// of the next step.
type Problem struct {
	// Time says how long phase i takes on topology j: Time[i][j], from 0 to Longest, or Never. All phases
	// have the same topologies.
	Time [][]time.Duration
	// Window is how long nothing is sent between phase i and the next, from 0 to Longest.
	Window []time.Duration
	// Delay is how long a reconfiguration takes, all in all, from 0 to Longest.
	Delay time.Duration
}

// Plan is a solution of a problem.
type Plan struct {
	Topology []int         // by phase
	Time     time.Duration // all phases, and what of the reconfigurations is not hidden in windows
	Changes  int           // reconfigurations in a step, hidden or not
}

// Changed reports whether the topology changes after phase i, before the next one.
func (p Plan) Changed(i int) bool { return p.Topology[i] != p.Topology[(i+1)%len(p.Topology)] }

// Exposed returns how much longer a step takes by a reconfiguration after phase i, if there is one: what of
// the delay does not fit into the window.
func (p Problem) Exposed(i int) time.Duration { return max(0, p.Delay-p.Window[i]) }

// Check returns why the problem is not one; such an error matches [ErrProblem].
func (p Problem) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrProblem, fmt.Sprintf(format, args...))
	}
	n := len(p.Time)
	switch {
	case n == 0 || n > MaxPhases:
		return bad("it has %d phases: want 1 to %d", n, MaxPhases)
	case len(p.Window) != n:
		return bad("it has %d phases and %d windows: want one after each", n, len(p.Window))
	case p.Delay < 0 || p.Delay > Longest:
		return bad("a reconfiguration takes %v: want 0 to %v", p.Delay, Longest)
	case len(p.Time[0]) == 0:
		return bad("it has no topology")
	}
	for i, row := range p.Time {
		if len(row) != len(p.Time[0]) {
			return bad("phase %d has times for %d topologies, and the first one for %d", i, len(row), len(p.Time[0]))
		}
		for j, d := range row {
			if d < 0 || d > Longest && d != Never {
				return bad("phase %d takes %v on topology %d: want 0 to %v, or Never", i, d, j, Longest)
			}
		}
		if w := p.Window[i]; w < 0 || w > Longest {
			return bad("the window after phase %d is %v: want 0 to %v", i, w, Longest)
		}
	}
	return nil
}

// length is that of a path: of two that take equally long, the one with fewer changes is shorter.
type length struct {
	time    time.Duration
	changes int
}

var endless = length{time: Never}

func (l length) less(o length) bool {
	return l.time < o.time || l.time == o.time && l.changes < o.changes
}

// plus adds time; nothing can be added to what is endless.
func (l length) plus(d time.Duration, changes int) length {
	if l.time == Never || d == Never {
		return endless
	}
	return length{l.time + d, l.changes + changes}
}

// Best returns the plan that takes least time and, of such, one with the fewest changes. It is exact: for
// each topology that the step could begin with, the shortest path around the cycle. As a change costs the
// same whichever topologies it is between, each phase needs only the shortest path so far, so all takes
// O(n·K²) for n phases and K topologies. An error matches [ErrProblem]: the problem is not one, or some
// phase works on no topology.
func (p Problem) Best() (Plan, error) {
	if err := p.Check(); err != nil {
		return Plan{}, err
	}
	n, k := len(p.Time), len(p.Time[0])
	best, first := endless, -1
	for start := range k {
		if l, _ := p.around(start, nil); l.less(best) {
			best, first = l, start
		}
	}
	if first < 0 {
		return Plan{}, fmt.Errorf("%w: one of its %d phases works on none of the %d topologies", ErrProblem, n, k)
	}
	from := make([][]int, n)
	_, last := p.around(first, from)
	plan := Plan{Topology: make([]int, n), Time: best.time, Changes: best.changes}
	for i := n - 1; i >= 0; i-- {
		plan.Topology[i] = last
		if i > 0 {
			last = from[i][last]
		}
	}
	return plan, nil
}

// around returns the length of the shortest path that begins with topology start and comes back to it, and
// the topology of its last phase. If from is not nil, it notes in from[i][j] which topology comes before
// phase i on topology j.
func (p Problem) around(start int, from [][]int) (length, int) {
	k := len(p.Time[0])
	row := make([]length, k)
	for j := range row {
		row[j] = endless
	}
	row[start] = length{}.plus(p.Time[0][start], 0)
	next := make([]length, k)
	for i := 1; i < len(p.Time); i++ {
		shortest := 0
		for j := range row {
			if row[j].less(row[shortest]) {
				shortest = j
			}
		}
		moved := row[shortest].plus(p.Exposed(i-1), 1)
		if from != nil {
			from[i] = make([]int, k)
		}
		for j := range next {
			l, before := row[j], j
			if moved.less(l) {
				l, before = moved, shortest
			}
			next[j] = l.plus(p.Time[i][j], 0)
			if from != nil {
				from[i][j] = before
			}
		}
		row, next = next, row
	}
	best, last := row[start], start
	for j, l := range row {
		if j == start {
			continue
		}
		if l = l.plus(p.Exposed(len(p.Time)-1), 1); l.less(best) {
			best, last = l, j
		}
	}
	return best, last
}

// Follow returns the plan that has the given topology in each phase. It is endless, with a Time of Never,
// if one of the phases does not work there. An error matches [ErrProblem].
func (p Problem) Follow(topology []int) (Plan, error) {
	if err := p.Check(); err != nil {
		return Plan{}, err
	}
	if len(topology) != len(p.Time) {
		return Plan{}, fmt.Errorf("%w: it has %d phases, and the plan %d", ErrProblem, len(p.Time), len(topology))
	}
	plan := Plan{Topology: topology}
	sum := length{}
	for i, j := range topology {
		if j < 0 || j >= len(p.Time[i]) {
			return Plan{}, fmt.Errorf("%w: there is no topology %d: want 0 to %d", ErrProblem, j, len(p.Time[i])-1)
		}
		sum = sum.plus(p.Time[i][j], 0)
		if plan.Changed(i) {
			plan.Changes++
			sum = sum.plus(p.Exposed(i), 0)
		}
	}
	plan.Time = sum.time
	return plan, nil
}

// BreakEven returns the longest delay with which it still pays to reconfigure: with which the best plan has
// changes and is shorter than each topology kept throughout. Since nothing becomes shorter with a longer
// delay, this is exact to the nanosecond. The delay of the problem does not matter.
//
// If it pays with no delay, not even 0, pays is false. If no topology carries all phases, or Longest still
// pays, the result is Longest. An error matches [ErrProblem].
func (p Problem) BreakEven() (delay time.Duration, pays bool, err error) {
	at := func(d time.Duration) (bool, error) {
		p.Delay = d
		plan, err := p.Best()
		return plan.Changes > 0, err
	}
	if yes, err := at(0); err != nil || !yes {
		return 0, false, err
	}
	if yes, err := at(Longest); err != nil || yes {
		return Longest, true, err
	}
	low, high := time.Duration(0), Longest // pays with low, not with high
	for high-low > 1 {
		mid := low + (high-low)/2
		yes, err := at(mid)
		if err != nil {
			return 0, false, err
		}
		if yes {
			low = mid
		} else {
			high = mid
		}
	}
	return low, true, nil
}
