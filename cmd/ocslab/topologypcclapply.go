package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/collective"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/quantity"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/pccl"
)

// pcclApplyFlags are those of a plan that is run on a lab.
type pcclApplyFlags struct {
	apply, dryRun, leave, bond bool
	hosts                      []string
	repeats                    int
	patience                   time.Duration
}

func (f *pcclApplyFlags) add(c *cobra.Command) {
	s := c.Flags()
	s.BoolVar(&f.apply, "apply", false, "run the plan on the lab: move its switches, meter the transfers, record a run, and put the circuits back")
	s.BoolVar(&f.dryRun, "dry-run", false, "print the circuits of each step of --apply and what changes, and touch nothing")
	s.BoolVar(&f.leave, "leave", false, "with --apply: leave the circuits of the last step")
	s.StringSliceVar(&f.hosts, "hosts", nil, "with --apply: the `HOSTS` that stand for the GPUs, in order (default those of the lab with NICs)")
	s.IntVarP(&f.repeats, "repeats", "n", 1, "with --apply: how often the plan is run")
	s.DurationVar(&f.patience, "patience", collective.DefaultPatience, "with --apply: how long links may take to have light")
	s.BoolVar(&f.bond, "bond", false, "with --apply: wire each circuit on all ports that its GPUs have for it")
	s.String("mode", "safe", "with --apply: what may happen to circuits of nobody's that are in the way: `safe|update`; safe refuses, update moves them")
}

// asked reports whether the plan is to be laid on a lab.
func (f *pcclApplyFlags) asked() bool { return f.apply || f.dryRun }

// check refuses flags that do not go together; moments are the switching times that there are plans for.
func (f *pcclApplyFlags) check(cmd *cobra.Command, moments int) error {
	for _, name := range []string{"leave", "hosts", "repeats", "patience", "bond", "mode"} {
		if cmd.Flags().Changed(name) && !f.asked() {
			return usagef("--%s goes with --apply", name)
		}
	}
	switch {
	case f.asked() && moments == 0:
		return usagef("which plan shall be run? want --switch-time or --measured beside --apply")
	case f.repeats < 1 || f.repeats > collective.MostRepeats:
		return usagef("--repeats %d: want 1 to %d", f.repeats, collective.MostRepeats)
	case f.patience <= 0:
		return usagef("--patience %v: want a time above zero", f.patience)
	}
	return nil
}

// applyCollective lays the plan of a moment on the lab, and runs it there; again plans for another switching time.
func (a *app) applyCollective(ctx context.Context, f *pcclApplyFlags, task *pcclTask, m *pcclMoment, again replanFunc) error {
	l, err := a.file()
	if err != nil {
		return err
	}
	if l == nil {
		return usagef("--apply runs the plan on a lab: want --lab FILE, such as examples/pccl-ring.yaml with --emulated")
	}
	job := collective.Job{Plan: m.chosen().Plan, Start: task.start, Params: task.params, GPUs: f.hosts, Bond: f.bond}
	laid, err := collective.Lay(l, job)
	if err != nil {
		if !errors.Is(err, lab.ErrUnknown) {
			err = usageError{err}
		}
		return fmt.Errorf("lab %s: %w", l.Name, err)
	}
	if f.dryRun {
		a.printSteps(laid)
		return nil
	}
	opt, err := a.collectiveOptions(l, f)
	if err != nil {
		return err
	}
	moreProcessors()
	show := a.progress()
	opt.Progress = func(p runner.Progress) { show.set("%s", progressLine(p)) }
	r, err := collective.Run(ctx, l, job, opt)
	show.done()
	if r != nil {
		a.printApplied(r, m, again, f.leave)
	}
	return err
}

// replanFunc returns the plans of the same task for another switching time.
type replanFunc func(switching time.Duration) (*pcclMoment, error)

// collectiveOptions are how a plan is run and recorded.
func (a *app) collectiveOptions(l *lab.File, f *pcclApplyFlags) (opt collective.Options, err error) {
	opt.Options, err = a.sequenceOptions(l, "pccl", "A collective with the circuits of its plan; transfers are metered, no data is moved.")
	if err != nil {
		return opt, err
	}
	opt.Leave, opt.Repeats, opt.Patience = f.leave, f.repeats, f.patience
	return opt, nil
}

// wiredLine is a step of a plan on one switch.
type wiredLine struct {
	Kind   string  `json:"kind"` // "collective-step"
	Step   int     `json:"step"`
	Name   string  `json:"name"`
	Switch string  `json:"switch"`
	Map    ocs.Map `json:"map"`
	Remove ocs.Map `json:"remove"`
	Add    ocs.Map `json:"add"`
}

// printSteps prints what each step wires.
func (a *app) printSteps(l *collective.Layout) {
	for i, changes := range l.Changes() {
		s := l.Steps[i]
		a.printf("%sstep %d, %s:\n", map[bool]string{true: "\n"}[i == 0], i, s.Name)
		for _, name := range sorted(s.Maps) {
			c := changes[name]
			if a.set.JSON {
				a.json(wiredLine{"collective-step", i, s.Name, name, s.Maps[name], c.Remove, c.Add})
			}
			a.printf("  %s  %s\n", name, cmp.Or(s.Maps[name].String(), "nothing"))
			if i > 0 {
				a.printf("    %s; %d of %d circuits stay\n", cmp.Or(c.String(), "no change"), s.Maps[name].Len()-c.Add.Len(), s.Maps[name].Len())
			}
		}
	}
	a.printf("\nNothing was touched. To run it: the same with --apply in place of --dry-run.\n")
}

// appliedLine is a plan that was run.
type appliedLine struct {
	Kind        string `json:"kind"` // "collective-run"
	Run         string `json:"run"`
	State       string `json:"state"`
	Restored    bool   `json:"restored"`
	Repeats     int    `json:"repeats"`
	PredictedNS int64  `json:"predicted_ns"`
	MeasuredNS  *int64 `json:"measured_ns,omitempty"` // the median
	SwitchedNS  *int64 `json:"switched_ns,omitempty"` // what a change took, the median of all
}

// appliedRound is a round of a plan that was run.
type appliedRound struct {
	Kind        string `json:"kind"` // "collective-measured"
	Repeat      int    `json:"repeat"`
	Round       int    `json:"round"`
	Topology    string `json:"topology"`
	Changed     bool   `json:"changed"`
	PredictedNS int64  `json:"predicted_ns"`
	MeasuredNS  int64  `json:"measured_ns"`
	SwitchingNS int64  `json:"switching_ns"`
	WaitedNS    int64  `json:"waited_ns"`
	BeginNS     int64  `json:"begin_ns,omitempty"`
	CommandNS   int64  `json:"command_ns,omitempty"`
	AckNS       int64  `json:"ack_ns,omitempty"`
	LightNS     int64  `json:"light_ns,omitempty"`
	GoNS        int64  `json:"go_ns"`
	EndNS       int64  `json:"end_ns"`
}

// printApplied prints what running a plan came to.
func (a *app) printApplied(r *collective.Result, m *pcclMoment, again replanFunc, leave bool) {
	line := appliedLine{
		Kind: "collective-run", Run: r.ID, State: string(r.Summary.State), Restored: r.Summary.Restored, Repeats: len(r.Repeats),
		PredictedNS: nanoseconds(m.chosen().Total),
	}
	var totals []time.Duration
	for i, repeat := range r.Repeats {
		totals = append(totals, repeat.Total)
		for _, x := range repeat.Rounds {
			if a.set.JSON {
				a.json(appliedRound{"collective-measured", i + 1, x.Number, x.Topology, x.Changed, int64(x.Predicted), int64(x.Measured),
					int64(x.Switching), int64(x.Waited), x.Begin, x.Command, x.Ack, x.Light, x.Go, x.End})
			}
		}
	}
	if len(totals) > 0 {
		took := int64(middle(totals))
		line.MeasuredNS = &took
		a.printf("\n")
		a.printMeasured(r.Repeats[0].Rounds, len(r.Repeats))
		a.printf("\ntotal: predicted %s, measured %s (%+.1f %%)%s\n", inPlans(time.Duration(line.PredictedNS)), inPlans(time.Duration(took)),
			100*(float64(took)/max(float64(line.PredictedNS), 1)-1), medianOf(len(totals)))
	}
	if switched, light, n := switchedIn(r.Repeats); n > 0 {
		line.SwitchedNS = new(int64)
		*line.SwitchedNS = int64(switched)
		a.printSwitched(m, again, switched, light, n)
	}
	if a.set.JSON {
		a.json(line)
	}
	left := "the circuits are put back"
	if !r.Summary.Restored {
		left = "the circuits are NOT where they should be left: ocslab runs finish " + r.ID
	} else if line.State == "done" && leave {
		left = "the circuits of the last step are left"
	}
	a.printf("run %s: %s; %s. To look at it: ocslab runs show %s\n", r.ID, line.State, left, r.ID)
}

// switchedIn returns what n changes took, from the barrier before to the next transfer, and what of it was from the command to
// the light, 0 if that is not known; medians.
func switchedIn(repeats []collective.Repeat) (switched, light time.Duration, n int) {
	var all, lights []time.Duration
	for _, repeat := range repeats {
		for _, x := range repeat.Rounds {
			if x.Changed {
				all = append(all, x.Switching+x.Waited)
			}
			if x.Changed && 0 < x.Command && x.Command < x.Light {
				lights = append(lights, time.Duration(x.Light-x.Command))
			}
		}
	}
	return middle(all), middle(lights), len(all)
}

// middle is the median, of an even number the lower one, of none 0. It sorts.
func middle(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

// offPlan is by how large a share of the planned switching time a change may take more or less without a word.
const offPlan = 0.05

// printSwitched says that changes did not take what was planned with, and whether that makes another plan the best.
func (a *app) printSwitched(m *pcclMoment, again replanFunc, switched, light time.Duration, n int) {
	low, high := m.Switch, max(m.Switch, m.High)
	if s := switched.Seconds(); a.set.JSON || low*(1-offPlan) <= s && s <= high*(1+offPlan) {
		return
	}
	planned := quantity.Seconds(low)
	if m.High > 0 {
		planned += " to " + quantity.Seconds(high)
	}
	a.printf("\nA change took %s (the median of %d), and was planned with %s.", inPlans(switched), n, planned)
	if light > 0 {
		a.printf(" From the command to the light, which is what\n"+
			"--measured counts, it is %s; the rest is reading the map before and after, and seeing the light.", inPlans(light))
	}
	a.printf("\n")
	other, err := again(switched)
	if err != nil {
		return // what was planned at one time can be at any
	}
	best := other.chosen()
	if best.same(m.chosen()) {
		a.printf("With %s the plan is the same, predicted %s", inPlans(switched), quantity.Seconds(best.Total))
	} else {
		a.printf("With %s another plan is the best: %s, %s, %s", inPlans(switched), best.Schedule.Algorithm,
			natural.Count(best.Changes, "change"), quantity.Seconds(best.Total))
	}
	a.printf(". To plan with it: --switch-time %s\n", strings.ReplaceAll(inPlans(switched), " ", ""))
}

func medianOf(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", the median of %d repeats", n)
}

// printMeasured prints rounds as they were predicted and measured.
func (a *app) printMeasured(rounds []collective.Round, repeats int) {
	if a.set.JSON {
		return
	}
	t := table{align: "rlrrrr"}
	t.row("round", "on", "switched", "predicted", "measured", "deviation")
	for _, x := range rounds {
		switched := ""
		if x.Changed {
			switched = inPlans(x.Switching + x.Waited)
		}
		t.row(fmt.Sprint(x.Number), x.Topology, switched, inPlans(x.Predicted), inPlans(x.Measured),
			fmt.Sprintf("%+.1f %%", 100*(float64(x.Measured)/max(float64(x.Predicted), 1)-1)))
	}
	t.write(a.out, "")
	if repeats > 1 {
		a.printf("(the first of %s)\n", natural.Count(repeats, "repeat"))
	}
	if slices.ContainsFunc(rounds, func(x collective.Round) bool { return x.Predicted < time.Millisecond }) {
		a.printf("\nRounds of less than a millisecond are shorter than this machine can time: scale --alpha and --beta.\n")
	}
	a.printf("\nNo data was moved: transfers are metered, each piece by its turn on every link, and only\nwhile the switch says that the link has light. Times are of this machine's clock.\n")
}

// pcclDemoCommand is "ocslab demo pccl".
func (a *app) pcclDemoCommand() *cobra.Command {
	var opt collective.DemoOptions
	c := &cobra.Command{
		Use:   "pccl",
		Short: "See when rewiring pays: one collective on three classes of switches",
		Long: `Run a ReduceScatter of 8 GPUs and 100 MB on three emulated switches: MEMS mirrors with
25 ms over TL1, 100 ms over SCPI, 200 ms over NETCONF. For each measure the switching
time through its driver, plan with that (PCCL, arXiv 2509.15450), run the chosen plan and
the two that are best elsewhere, and print what was predicted and what it took.

Hops take 3 ms and links carry 0.45 GB/s, 1000 times slower than in the paper, so that the
three regimes lie where the switching times of such switches do. No data is moved:
transfers are metered, piece by piece on the links that they pass, and only while the
emulated switch has light there. Wants a quiet machine; needs nothing but 127.0.0.1.`,
		Example: "  ocslab demo pccl\n  ocslab --json demo pccl -n 5",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.Repeats < 1 || opt.Toggles < 1 {
				return usagef("--repeats %d, --toggles %d: want 1 or more, and an even number of toggles", opt.Repeats, opt.Toggles)
			}
			moreProcessors()
			show := a.progress()
			opt.Progress = func(text string) { show.set("%s", text) }
			r, err := collective.Demo(cmd.Context(), opt)
			show.done()
			if errors.Is(err, pccl.ErrArgument) {
				return usageError{err}
			}
			if r != nil {
				a.printDemo(r)
			}
			return err
		},
	}
	c.Flags().IntVarP(&opt.Repeats, "repeats", "n", collective.DefaultRepeats, "how often each plan is run; the median counts")
	c.Flags().IntVar(&opt.Toggles, "toggles", collective.DefaultToggles, "by how many changes the switching time is measured")
	c.Flags().Uint64Var(&opt.Seed, "seed", 1, "seed of all that is random")
	return c
}

// demoClass is a class of switches of the demo.
type demoClass struct {
	Kind        string  `json:"kind"` // "demo-class"
	Class       string  `json:"class"`
	Protocol    string  `json:"protocol"`
	NominalNS   int64   `json:"nominal_ns"`
	MeasuredNS  int64   `json:"measured_ns"`
	LightNS     int64   `json:"light_ns"`
	SwitchingNS []int64 `json:"switching_ns"`
}

// demoPlan is a plan of the demo.
type demoPlan struct {
	Kind        string  `json:"kind"` // "demo-plan"
	Class       string  `json:"class"`
	Changes     int     `json:"changes"`
	Chosen      bool    `json:"chosen"`
	Fastest     bool    `json:"fastest"`
	PredictedNS int64   `json:"predicted_ns"`
	NominalNS   int64   `json:"nominal_ns"`
	MeasuredNS  int64   `json:"measured_ns"`
	TotalsNS    []int64 `json:"totals_ns"`
}

// printDemo prints what the demo has found.
func (a *app) printDemo(r *collective.Report) {
	if a.set.JSON {
		a.jsonDemo(r)
		return
	}
	a.printf("%s on %d GPUs, %g MB; %g ms a hop, %g GB/s a link; begins on a ring\n", r.Schedule, r.GPUs, r.Bytes/1e6,
		1e3*r.Params.Alpha, 1/r.Params.Beta/1e9)
	for _, c := range r.Classes {
		a.printf("\n%s (%s), %s, emulated with %s: a change took %s (%s to %s), of which %s is light\n\n", c.Name, c.About, c.Protocol, inPlans(c.Nominal),
			inPlans(c.Measured), inPlans(c.Switching[0]), inPlans(c.Switching[len(c.Switching)-1]), inPlans(c.Light))
		t := table{align: "lrrrrl"}
		t.row("plan", "at "+inPlans(c.Nominal), "predicted", "measured", "deviation", "wired in each round")
		for _, o := range c.Plans {
			name := "  " + o.Name
			if o.Chosen {
				name = "> " + o.Name
			}
			t.row(name, inPlans(o.Nominal), inPlans(o.Predicted), inPlans(o.Measured), fmt.Sprintf("%+.1f %%", 100*o.Deviation()), wiredIn(o.Plan))
		}
		t.write(a.out, "")
		if fastest := c.Fastest(); fastest.Chosen {
			a.printf("The chosen plan (>) is the fastest.\n")
		} else {
			a.printf("The chosen plan (>) is NOT the fastest: %s took %s less. Is this machine busy?\n",
				fastest.Name, inPlans(c.Chosen().Measured-fastest.Measured))
		}
	}
	a.printf("\nNo data was moved: transfers are metered on the links that they pass, and only while the\nemulated switch has light there. To do it on a lab: ocslab topology pccl ... --apply.\n")
}

// wiredIn names what is wired in each round; what is in brackets is kept.
func wiredIn(p pccl.Plan) string {
	var names []string
	for _, r := range p.Rounds {
		name := r.Topology.Name()
		if !r.Changed {
			name = "(" + name + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func (a *app) jsonDemo(r *collective.Report) {
	for _, c := range r.Classes {
		a.json(demoClass{"demo-class", c.Name, c.Protocol, int64(c.Nominal), int64(c.Measured), int64(c.Light), wholeNS(c.Switching)})
		fastest := c.Fastest()
		for _, o := range c.Plans {
			a.json(demoPlan{"demo-plan", c.Name, o.Plan.Changes, o.Chosen, o.Plan.Changes == fastest.Plan.Changes,
				int64(o.Predicted), int64(o.Nominal), int64(o.Measured), wholeNS(o.Totals)})
		}
	}
}

// inPlans is a time as plans have it.
func inPlans(d time.Duration) string { return quantity.Seconds(d.Seconds()) }

func wholeNS(all []time.Duration) []int64 {
	ns := make([]int64, 0, len(all))
	for _, d := range all {
		ns = append(ns, int64(d))
	}
	return ns
}
