package baseline

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// Planner finds circuits for one demand after another.
type Planner struct {
	Name   string
	Wiring crosswiring.Wiring
	// Next plans a demand when a configuration runs, which is nil at first.
	Next func(f crosswiring.Fabric, running *crosswiring.Config, d *crosswiring.Demand) (*crosswiring.Config, error)
}

// NameExact is what the planner of ExactCross is called.
const NameExact = "exact"

// CrossPlanners returns planners for Cross wiring: those methods of crosswiring.Rewire, or all if none is named.
func CrossPlanners(methods ...crosswiring.Method) []Planner {
	if len(methods) == 0 {
		methods = crosswiring.Methods()
	}
	var all []Planner
	for _, m := range methods {
		all = append(all, Planner{string(m), crosswiring.Cross,
			func(f crosswiring.Fabric, running *crosswiring.Config, d *crosswiring.Demand) (*crosswiring.Config, error) {
				if running == nil {
					return crosswiring.Plan(f, d)
				}
				next, _, err := crosswiring.Rewire(running, d, crosswiring.RewireOptions{Method: m})
				return next, err
			}})
	}
	return all
}

// UniformPlanners returns Greedy and Helios.
func UniformPlanners() []Planner {
	return []Planner{uniformPlanner("uniform greedy", Greedy), uniformPlanner("uniform helios", Helios)}
}

func uniformPlanner(name string,
	plan func(crosswiring.Fabric, *crosswiring.Demand, *crosswiring.Config) (*crosswiring.Config, error)) Planner {
	return Planner{name, crosswiring.Uniform,
		func(f crosswiring.Fabric, running *crosswiring.Config, d *crosswiring.Demand) (*crosswiring.Config, error) {
			return plan(f, d, running)
		}}
}

// ExactPlanners returns ExactCross and Exact, for small fabrics.
func ExactPlanners() []Planner {
	cross := func(f crosswiring.Fabric, running *crosswiring.Config, d *crosswiring.Demand) (*crosswiring.Config, error) {
		if running == nil {
			return crosswiring.Plan(f, d)
		}
		return ExactCross(running, d)
	}
	return []Planner{{NameExact, crosswiring.Cross, cross}, uniformPlanner("uniform exact", Exact)}
}

// Sequence is consecutive random demands. The paper has 100 that use all ports, and does not say how they are drawn.
type Sequence struct {
	Length int // demands, 2 or more; 0 is 100
	// Changed is which share of the links moves from each demand to the next, by crosswiring.Swapped; 0 is that every
	// demand is drawn anew, by crosswiring.RandomFull.
	Changed float64
	Jobs    bool // demands are of jobs, by crosswiring.JobShaped, drawn anew
	Seed    uint64
}

// Spread is the mean of some numbers, and the least of them.
type Spread struct{ Mean, Min float64 }

// Row is what a planner does with a sequence.
type Row struct {
	Planner  string
	Wiring   crosswiring.Wiring
	LTRR     Spread // over the demands
	Realised Spread // over the demands, as crosswiring.Realised
	Kept     Spread // from each configuration to the next, as crosswiring.Similarity
	// MRAR is the mean of Kept, by that of the reference (equation 16). It may be above 1: the reference is at best optimal
	// for each step from where it is, and not for all steps, and planners that leave links out have others to keep.
	MRAR float64
	// PlanMean and PlanMax are how long plans took, without the first.
	PlanMean, PlanMax time.Duration
}

// Comparison is what planners do with a sequence.
type Comparison struct {
	Rows []Row
	// Reference is the planner by which MRAR is: the exact one if it is among the planners. Or else it is the one for Cross
	// wiring that keeps most, so the best that is known and no optimum; Exact is false then. With no planner for Cross
	// wiring there is no reference, and MRAR is 0.
	Reference string
	Exact     bool
}

// Compare follows planners over a sequence on a fabric, whose wiring is that of each planner. Each goes on from its own
// circuits, after a first plan from nothing. The same arguments give the same rows, but for the times. The error matches
// crosswiring.ErrFabric, crosswiring.ErrDemand if there is no such sequence, or is what a planner returns.
func Compare(f crosswiring.Fabric, s Sequence, planners []Planner) (*Comparison, error) {
	if s.Length == 0 {
		s.Length = 100
	}
	if s.Length < 2 {
		return nil, fmt.Errorf("%w: a sequence of %d: want 2 or more", crosswiring.ErrDemand, s.Length)
	}
	followers := make([]follower, len(planners))
	for i, p := range planners {
		followers[i] = follower{planner: p, fabric: f, row: Row{Planner: p.Name, Wiring: p.Wiring}}
		followers[i].fabric.Wiring = p.Wiring
	}
	var d *crosswiring.Demand
	for n := range s.Length {
		var err error
		if d, err = s.next(f, d, n); err != nil {
			return nil, err
		}
		for i := range followers {
			if err := followers[i].step(d, n); err != nil {
				return nil, fmt.Errorf("%s, demand %d: %w", followers[i].planner.Name, n+1, err)
			}
		}
	}
	c := &Comparison{}
	for i := range followers {
		c.Rows = append(c.Rows, followers[i].end(s.Length))
	}
	c.refer()
	return c, nil
}

// next returns the demand of a number, after that before it.
func (s Sequence) next(f crosswiring.Fabric, before *crosswiring.Demand, n int) (*crosswiring.Demand, error) {
	seed := s.Seed*1_000_003 + uint64(n) // so that sequences of neighbouring seeds have nothing in common
	switch {
	case s.Jobs:
		return crosswiring.JobShaped(f, seed)
	case before == nil || s.Changed == 0:
		return crosswiring.RandomFull(f, seed)
	}
	return crosswiring.Swapped(before, s.Changed, seed)
}

// follower is a planner on its way through a sequence.
type follower struct {
	planner Planner
	fabric  crosswiring.Fabric
	running *crosswiring.Config
	row     Row
	spent   time.Duration
}

// step plans a demand.
func (f *follower) step(d *crosswiring.Demand, n int) error {
	start := time.Now()
	next, err := f.planner.Next(f.fabric, f.running, d)
	took := time.Since(start)
	if err != nil {
		return err
	}
	have := next.Demand()
	ltrr, err := crosswiring.LTRR(have, d)
	if err != nil {
		return err
	}
	realised, err := crosswiring.Realised(have, d)
	if err != nil {
		return err
	}
	f.row.LTRR.add(ltrr, n == 0)
	f.row.Realised.add(realised, n == 0)
	if n > 0 {
		kept, err := crosswiring.Similarity(f.running, next)
		if err != nil {
			return err
		}
		f.row.Kept.add(kept, n == 1)
		f.spent += took
		f.row.PlanMax = max(f.row.PlanMax, took)
	}
	f.running = next
	return nil
}

// add counts a number; Mean is the sum until the end.
func (s *Spread) add(x float64, first bool) {
	s.Mean += x
	if first || x < s.Min {
		s.Min = x
	}
}

// end returns the row of so many demands.
func (f *follower) end(n int) Row {
	r := f.row
	r.LTRR.Mean /= float64(n)
	r.Realised.Mean /= float64(n)
	r.Kept.Mean /= float64(n - 1)
	r.PlanMean = f.spent / time.Duration(n-1)
	return r
}

// refer finds the reference, and MRAR by it.
func (c *Comparison) refer() {
	var reference *Row
	for i := range c.Rows {
		r := &c.Rows[i]
		switch {
		case r.Wiring == crosswiring.Uniform:
		case r.Planner == NameExact:
			reference, c.Exact = r, true
		case !c.Exact && (reference == nil || r.Kept.Mean > reference.Kept.Mean):
			reference = r
		}
	}
	if reference == nil || reference.Kept.Mean == 0 {
		return
	}
	c.Reference = reference.Planner
	for i := range c.Rows {
		c.Rows[i].MRAR = c.Rows[i].Kept.Mean / reference.Kept.Mean
	}
}
