package advice

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// ErrOptions: the options or the case are not possible. Test with errors.Is.
var ErrOptions = errors.New("not possible")

// Options are what Advise has to know beside the trace.
type Options struct {
	Switch  time.Duration // from the command until the light is back, from 0 to an hour
	Control time.Duration // of the control plane, for each reconfiguration, from 0 to an hour
	// Firmware is that of the NICs; nil is links that are there as soon as the light is.
	Firmware *firmwarenotes.Profile
	Policy   opus.Policy // how stages are joined; "" is opus.Pair
	Step     int         // of the trace, from 0
}

// Choice is what is advised.
type Choice string

const (
	// GiantRing is to stay on the giant ring.
	GiantRing Choice = "giant-ring"
	// Always is to reconfigure at each boundary, as Opus does.
	Always Choice = "always"
	// Partly is to reconfigure at some of the boundaries.
	Partly Choice = "partly"
	// Once is to set the one topology that all phases have, and leave it.
	Once Choice = "once"
)

// Outcome is what a way to run the job comes to.
type Outcome struct {
	Step    time.Duration `json:"step_ns"`
	Changes int           `json:"changes"`    // reconfigurations of the stage in a step, hidden or not
	Exposed time.Duration `json:"exposed_ns"` // what of them is not hidden
	Slower  time.Duration `json:"slower_ns"`  // what operations take longer on other topologies than their own
}

// Phase is a phase of the stage, and the window after it.
type Phase struct {
	Axis   string        `json:"axis"`
	Ops    int           `json:"ops"`        // on the rail, of the rank that has most
	Rail   time.Duration `json:"rail_ns"`    // in which the rank that communicates most does, on the phase's own topology
	Ring   time.Duration `json:"on_ring_ns"` // the same on the giant ring
	Window time.Duration `json:"window_ns"`  // until the next phase; the last one's until the next step's first

	Hidden    bool          `json:"hidden"`       // whether a reconfiguration fits into the window
	Demand    time.Duration `json:"demand_ns"`    // what it costs when it is asked for at the end of the window
	Provision time.Duration `json:"provision_ns"` // and at its beginning

	Topology string `json:"topology"` // that the plan has: "giant ring", or the axis that is served
	Change   bool   `json:"change"`   // whether the plan reconfigures after this phase
}

// BreakEven is how slow reconfigurations may be.
type BreakEven struct {
	// Pays is whether there is any delay, be it 0, with which reconfiguring somewhere makes the step
	// shorter.
	Pays bool `json:"pays"`
	// Delay is the longest one, all in all: the switch, control, and the link.
	Delay time.Duration `json:"delay_ns"`
	// Always is the longest delay with which reconfiguring at each boundary is better than the giant ring;
	// -1 if there is none.
	Always time.Duration `json:"always_ns"`
	// SwitchPays is whether any switch is fast enough with the control plane and the firmware of the
	// options, and Switch is the longest time that it may take.
	SwitchPays bool          `json:"switch_pays"`
	Switch     time.Duration `json:"switch_ns"`
	// Unnoticed is whether that holds only because the firmware does not notice so short a darkness, and
	// links stay up.
	Unnoticed bool `json:"unnoticed"`
}

// Advice is whether to reconfigure a job's rails, and where. Durations are integers of nanoseconds in JSON.
type Advice struct {
	Trace    string `json:"trace"`
	Job      string `json:"job,omitempty"`
	Stages   int    `json:"stages"`
	Stage    int    `json:"stage"` // that this is about: the one that waits longest
	Firmware string `json:"firmware,omitempty"`

	Switch  time.Duration `json:"switch_ns"`
	Control time.Duration `json:"control_ns"`
	LinkUp  time.Duration `json:"link_up_ns"`
	Delay   time.Duration `json:"delay_ns"` // their sum
	// Stretch is by how much the firmware's link-up becomes longer when links come and go as often as they
	// do with Always. It is in none of the numbers.
	Stretch time.Duration `json:"stretch_ns"`

	Native time.Duration `json:"native_ns"` // the step if reconfigurations took no time
	Phases []Phase       `json:"phases"`

	Demand    Outcome `json:"demand"`    // reconfigures at each boundary when the next phase is about to begin
	Provision Outcome `json:"provision"` // and as soon as a phase ends
	Ring      Outcome `json:"ring"`      // stays on the giant ring
	Best      Outcome `json:"best"`      // the plan in Phases, provisioned
	// Simulated are the steps of Demand, Provision and Ring when all stages and their dependencies are
	// played (trace.Simulate), instead of the delays of one stage added up. They may be longer, as stages
	// wait for each other.
	SimulatedDemand    time.Duration `json:"simulated_demand_ns"`
	SimulatedProvision time.Duration `json:"simulated_provision_ns"`
	SimulatedRing      time.Duration `json:"simulated_ring_ns"`

	BreakEven BreakEven `json:"break_even"`
	Choice    Choice    `json:"choice"`
}

// Advise returns whether the job of a trace should reconfigure its rails, and where in its step. Errors
// match [ErrOptions] or trace.ErrTrace, or are of package opus.
func Advise(t *trace.Trace, opt Options) (*Advice, error) {
	if err := opt.check(t); err != nil {
		return nil, err
	}
	if opt.Policy == "" {
		opt.Policy = opus.Pair
	}
	all, err := newTopologies(t.Job, opt.Policy)
	if err != nil {
		return nil, err
	}
	a := &Advice{
		Trace: t.Name, Job: t.Job.Name, Stages: t.Job.Stages,
		Switch: opt.Switch, Control: opt.Control, LinkUp: linkUp(opt.Firmware, opt.Switch), Native: t.StepTime(),
	}
	if opt.Firmware != nil {
		a.Firmware = opt.Firmware.Name
	}
	a.Delay = a.Switch + a.Control + a.LinkUp

	var longest *stage
	stages, err := newStages(t, opt.Step, all)
	if err != nil {
		return nil, err
	}
	for _, st := range stages {
		st.problem.Delay = a.Delay
		if st.always, err = st.problem.Follow(st.own); err != nil {
			return nil, err
		}
		if longest == nil || st.waits() > longest.waits() ||
			st.waits() == longest.waits() && st.always.Changes > longest.always.Changes {
			longest = st
		}
	}
	a.Stage = longest.index
	if err := a.solve(longest, all); err != nil {
		return nil, err
	}
	if a.BreakEven, err = breakEven(longest, opt); err != nil {
		return nil, err
	}
	a.Stretch = stretch(opt.Firmware, a.LinkUp, a.Provision)
	for _, x := range []struct {
		mode trace.Mode
		step *time.Duration
	}{{trace.Demand, &a.SimulatedDemand}, {trace.Provision, &a.SimulatedProvision}} {
		*x.step = trace.Simulate(t, trace.Model{Delta: a.Switch + a.LinkUp, Kappa: a.Control, Mode: x.mode}).Step
	}
	a.SimulatedRing, err = onRing(t, all)
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (opt Options) check(t *trace.Trace) error {
	if err := t.Check(); err != nil {
		return err
	}
	const most = time.Hour
	switch {
	case opt.Switch < 0 || opt.Switch > most:
		return fmt.Errorf("%w: switching takes %v: want 0 to %v", ErrOptions, opt.Switch, most)
	case opt.Control < 0 || opt.Control > most:
		return fmt.Errorf("%w: control takes %v: want 0 to %v", ErrOptions, opt.Control, most)
	case opt.Policy != "" && !slices.Contains(opus.Policies, opt.Policy):
		return fmt.Errorf("%w: there is no policy %.40q", ErrOptions, string(opt.Policy))
	case opt.Step < 0 || opt.Step >= len(t.Steps):
		return fmt.Errorf("%w: there is no step %d in trace %q, which has %d, from 0",
			ErrOptions, opt.Step, t.Name, len(t.Steps))
	}
	return nil
}

// solve fills in phases and outcomes.
func (a *Advice) solve(st *stage, all topologies) error {
	p := st.problem
	best, err := p.Best()
	if err != nil {
		return err
	}
	kept := make([]int, len(p.Time)) // the giant ring, which is 0
	ring, err := p.Follow(kept)
	if err != nil {
		return err
	}
	a.Provision, a.Ring, a.Best = a.outcome(st, st.always), a.outcome(st, ring), a.outcome(st, best)
	a.Demand = a.Provision
	a.Demand.Exposed = time.Duration(a.Demand.Changes) * a.Delay
	a.Demand.Step = a.Native + a.Demand.Exposed

	a.Phases = st.phases
	for i := range a.Phases {
		ph := &a.Phases[i]
		if st.always.Changed(i) {
			ph.Demand, ph.Provision = a.Delay, p.Exposed(i)
			ph.Hidden = ph.Provision == 0
		}
		ph.Topology, ph.Change = all.names[best.Topology[i]], best.Changed(i)
	}
	switch {
	case best.Changes == 0 && best.Topology[0] == giant:
		a.Choice = GiantRing
	case best.Changes == 0:
		a.Choice = Once
	case slices.Equal(best.Topology, st.own):
		a.Choice = Always
	default:
		a.Choice = Partly
	}
	return nil
}

// outcome turns a plan into what it means for the step.
func (a *Advice) outcome(st *stage, plan Plan) Outcome {
	o := Outcome{Changes: plan.Changes}
	for i, j := range plan.Topology {
		o.Slower += st.problem.Time[i][j] - st.problem.Time[i][st.own[i]]
		if plan.Changed(i) {
			o.Exposed += st.problem.Exposed(i)
		}
	}
	o.Step = a.Native + o.Slower + o.Exposed
	return o
}

// stage is the cycle of phases of a stage.
type stage struct {
	index   int
	phases  []Phase
	own     []int // topology of each phase
	problem Problem
	always  Plan // with own
}

// waits returns for how long the stage waits for its circuits in a step, if it always reconfigures.
func (st *stage) waits() time.Duration {
	sum := time.Duration(0)
	for i := range st.own {
		if st.always.Changed(i) {
			sum += st.problem.Exposed(i)
		}
	}
	return sum
}

// newStages takes the phases of each stage from the trace. Ranks of a stage go through the same axes, as a
// rule; those that do not are looked at as a stage of their own.
func newStages(t *trace.Trace, step int, all topologies) ([]*stage, error) {
	var stages []*stage
	phases, windows := trace.Phases(t, step), trace.Windows(t, step)
	for s := range t.Job.Stages {
		var alike []*stage
		for x := s * t.Job.RanksPerStage(); x < (s+1)*t.Job.RanksPerStage(); x++ {
			cycle := join(phases[x])
			same := func(c []trace.Phase, j int) bool { return own(c[0].Axis) == j }
			i := slices.IndexFunc(alike, func(st *stage) bool { return slices.EqualFunc(cycle, st.own, same) })
			if i < 0 {
				st := &stage{index: s}
				for _, c := range cycle {
					st.phases = append(st.phases, Phase{Axis: t.Job.AxisNames()[c[0].Axis]})
					st.own = append(st.own, own(c[0].Axis))
				}
				// Windows are those of all ranks that are alike, under the name of the first.
				mine := slices.DeleteFunc(slices.Clone(windows), func(w trace.Window) bool { return w.Rank != x })
				if err := st.open(mine, len(phases[x]) > len(cycle)); err != nil {
					return nil, err
				}
				i = len(alike)
				alike = append(alike, st)
			}
			if err := alike[i].count(t, step, x, cycle, all); err != nil {
				return nil, err
			}
		}
		for _, st := range alike {
			st.pose(all)
			stages = append(stages, st)
		}
	}
	return stages, nil
}

// open puts the windows of a step after the phases that they follow. The first window is the one before the
// first phase of the step, unless that phase goes on from the step before.
func (st *stage) open(windows []trace.Window, goesOn bool) error {
	n := len(st.phases)
	if n < 2 {
		return nil
	}
	for i := range st.phases {
		k := i
		if !goesOn {
			k = (i + 1) % n
		}
		if len(windows) != n || own(windows[k].Before) != st.own[i] {
			return fmt.Errorf("%w: the phases of stage %d are along other axes at the end of the step before",
				trace.ErrTrace, st.index)
		}
		st.phases[i].Window = windows[k].Duration
	}
	return nil
}

// count adds what a rank does in its phases; of each phase the rank counts that communicates longest.
func (st *stage) count(t *trace.Trace, step, rank int, cycle [][]trace.Phase, all topologies) error {
	for i, parts := range cycle {
		var rail, ring time.Duration
		ops := 0
		for _, ph := range parts {
			for _, op := range t.Steps[step].Ranks[rank][ph.First : ph.Last+1] {
				if op.Axis != ph.Axis || !onRail(op) {
					continue
				}
				factor, err := all.slowdown(op.Axis, op.Kind)
				if err != nil {
					return err
				}
				d := t.Duration(op)
				ops++
				rail += d
				ring += time.Duration(math.Round(float64(d) * factor))
			}
		}
		p := &st.phases[i]
		p.Ops, p.Rail, p.Ring = max(p.Ops, ops), max(p.Rail, rail), max(p.Ring, ring)
	}
	return nil
}

// pose makes the problem of the phases and windows.
func (st *stage) pose(all topologies) {
	if len(st.phases) == 0 { // it never uses the rail: one phase of nothing
		st.phases, st.own = []Phase{{Axis: all.names[own(opus.PP)]}}, []int{own(opus.PP)}
	}
	for i, p := range st.phases {
		times := slices.Repeat([]time.Duration{Never}, len(all.names))
		times[giant], times[st.own[i]] = p.Ring, p.Rail
		st.problem.Time = append(st.problem.Time, times)
		st.problem.Window = append(st.problem.Window, p.Window)
	}
}

// join returns the phases of a rank's step as a cycle: a last one along the axis of the first is a part of
// the first, across the end of the step.
func join(phases []trace.Phase) [][]trace.Phase {
	n := len(phases)
	if n > 1 && phases[0].Axis == phases[n-1].Axis {
		n--
	}
	cycle := make([][]trace.Phase, n)
	for i, p := range phases {
		cycle[i%n] = append(cycle[i%n], p)
	}
	return cycle
}

// linkUp returns how long the firmware takes from light to link after a switch was dark for that long:
// medians.
func linkUp(p *firmwarenotes.Profile, dark time.Duration) time.Duration {
	if p == nil || dark < unnoticed(p) {
		return 0
	}
	return p.Detect.Median + p.Train.Median + p.Carrier.Median
}

// unnoticed returns which darkness is surely too short for the firmware to notice.
func unnoticed(p *firmwarenotes.Profile) time.Duration {
	if p.Debounce.Spread == 0 {
		return p.Debounce.Median
	}
	return p.Debounce.Min
}

// stretch returns how much longer link-ups become that come as often and as regularly as in the outcome.
func stretch(p *firmwarenotes.Profile, linkUp time.Duration, o Outcome) time.Duration {
	if p == nil || p.Burst == nil || linkUp == 0 || o.Changes == 0 {
		return 0
	}
	gap := int64(o.Step) / int64(o.Changes)
	if gap <= 0 {
		return 0
	}
	var before []int64
	for at := -gap; at >= -int64(p.Burst.Window) && len(before) < 1000; at -= gap {
		before = append(before, at)
	}
	slices.Reverse(before)
	return p.Burst.Stretch(before, 0)
}

// onRing returns the step of a trace that is played on the giant ring.
func onRing(t *trace.Trace, all topologies) (time.Duration, error) {
	var failed error
	slow := rewrite(t, func(op *trace.Op, _ bool) bool {
		if onRail(*op) {
			factor, err := all.slowdown(op.Axis, op.Kind)
			if err != nil {
				failed = err
			}
			op.DurationUS = int64(math.Round(float64(t.Duration(*op)) * factor / 1e3))
		}
		return true
	})
	return slow.StepTime(), failed
}

func onRail(op trace.Op) bool { return op.Net == "" || op.Net == trace.RailNet }

// rewrite returns a trace whose operations are changed, and left out where the function says no. The
// computation before what is left out remains. last tells the last operation of a rank.
func rewrite(t *trace.Trace, change func(op *trace.Op, last bool) bool) *trace.Trace {
	out := *t
	out.Steps = make([]trace.Step, len(t.Steps))
	for i, step := range t.Steps {
		out.Steps[i] = trace.Step{Ranks: make([][]trace.Op, len(step.Ranks)), TailUS: step.TailUS}
		for x, ops := range step.Ranks {
			pending := int64(0)
			for k, op := range ops {
				op.ComputeBeforeUS += pending
				pending = op.ComputeBeforeUS
				if change(&op, k == len(ops)-1) {
					out.Steps[i].Ranks[x] = append(out.Steps[i].Ranks[x], op)
					pending = 0
				}
			}
		}
	}
	return &out
}

func breakEven(st *stage, opt Options) (BreakEven, error) {
	delay, pays, err := st.problem.BreakEven()
	if err != nil || !pays {
		return BreakEven{Always: -1}, err
	}
	b := BreakEven{Pays: true, Delay: delay, Always: st.alwaysEven()}
	left := delay - opt.Control
	if left < 0 {
		return b, nil
	}
	if f := opt.Firmware; f == nil {
		b.SwitchPays, b.Switch = true, left
	} else if noticed := left - linkUp(f, Longest); noticed >= unnoticed(f) {
		b.SwitchPays, b.Switch = true, noticed
	} else if u := unnoticed(f); u > 0 {
		b.SwitchPays, b.Switch, b.Unnoticed = true, min(left, u-1), true
	}
	return b, nil
}

// alwaysEven returns the longest delay with which reconfiguring at each boundary takes less than the giant
// ring, or -1.
func (st *stage) alwaysEven() time.Duration {
	gain := time.Duration(0) // of own topologies over the ring
	for i, times := range st.problem.Time {
		gain += times[giant] - times[st.own[i]]
	}
	if gain <= 0 {
		return -1
	}
	p := st.problem
	n := sort.Search(int(Longest), func(d int) bool {
		p.Delay = time.Duration(d)
		sum := time.Duration(0)
		for i := range p.Window {
			if st.always.Changed(i) {
				sum += p.Exposed(i)
			}
		}
		return sum >= gain
	})
	return time.Duration(n) - 1
}
