package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/measured"
	"github.com/ocslab/ocslab/internal/quantity"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/pccl"
)

// bestAlgorithm is what --algorithm says for whichever is the quickest.
const bestAlgorithm = "best"

// pcclFlags are those of the planner of collectives.
type pcclFlags struct {
	collective, bytes, beta, start, algorithm, ties string
	standard                                        []string
	gpus, transmitters, receivers, unions           int
	alpha, switchTime                               time.Duration
	split, free                                     bool

	measured, until string
	robust          []time.Duration
	envelope, csv   bool
	lp              string

	onLab pcclApplyFlags
}

func (a *app) topologyPCCLCommand() *cobra.Command {
	var f pcclFlags
	c := &cobra.Command{
		Use:   "pccl",
		Short: "When to rewire a photonic fabric during a collective, and to what",
		Long: `Plan a collective on GPUs that hang on optical circuit switches (PCCL, arXiv
2509.15450): for each round of the algorithm whether to wire just its transfers, to keep
what is wired, or to wire a standard topology, so that transfers and switching together
take the least time; exact, at a switching time that is given (--switch-time) or that
stored runs have measured (--measured).

TOPOLOGY is ring, torus 8x16, grid 4x4x8, hypercube, dark, or circuits as in 0-1,1-2 (both ways)
or 0>1. ALGORITHM is rhd-halving, rhd-doubling, ring, "ring on torus 8x16", "bucket 8x16",
swing, "swing 8x16"; of an all-to-all dex and linear. The paper's planner is --algorithm
rhd-halving without --standard; best is the quickest of all that fit.

What goes beyond the paper: --free lets topologies of other rounds be wired, too; --unions
wires several rounds at once, for which --transmitters and --split-bandwidth say what a GPU
can do; --robust has one plan for a range of switching times.`,
		Example: "  ocslab topology pccl --collective allreduce --gpus 128 --bytes 256MB --start ring --switch-time 5us\n" +
			"  ocslab --lab lab.yaml topology pccl --gpus 8 --bytes 100MB --alpha 3ms --beta 450MBps --measured rail0\n" +
			"  ocslab topology pccl --gpus 128 --bytes 1GB --algorithm rhd-halving --envelope",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.planCollective(cmd, &f)
		},
	}
	f.add(c)
	f.onLab.add(c)
	c.AddCommand(a.topologyFibresCommand(), a.topologyMeshCommand())
	return c
}

func (f *pcclFlags) add(c *cobra.Command) {
	s := c.Flags()
	s.StringVar(&f.collective, "collective", "all-reduce", "`all-reduce|reduce-scatter|all-gather|all-to-all`")
	s.IntVar(&f.gpus, "gpus", 0, "how many GPUs take part")
	s.StringVar(&f.bytes, "bytes", "", "the buffer of each GPU, a `SIZE` such as 256MB or 64MiB")
	s.DurationVar(&f.alpha, "alpha", 3*time.Microsecond, "what each hop takes")
	s.StringVar(&f.beta, "beta", "450GBps", "bandwidth of a link: a `RATE` such as 450GBps or, in bits, 400Gbps")
	s.StringVar(&f.start, "start", "ring", "`TOPOLOGY` that is wired at the beginning")
	s.StringArrayVar(&f.standard, "standard", nil, "`TOPOLOGIES` that may be wired beside it, separated by commas; all: tori, grids and ring")
	s.StringVar(&f.algorithm, "algorithm", bestAlgorithm, "`ALGORITHM`, or best")
	s.StringVar(&f.ties, "ties", string(pccl.Lex), "which of several shortest paths is taken: `lex|greedy`; greedy spreads load")
	s.IntVar(&f.transmitters, "transmitters", 0, "circuits that may begin at a GPU; rounds that need more are split (default as many as needed)")
	s.IntVar(&f.receivers, "receivers", 0, "circuits that may end at a GPU (default --transmitters)")
	s.BoolVar(&f.split, "split-bandwidth", false, "the circuits of a GPU share its bandwidth (the paper's have all of it each)")
	s.BoolVar(&f.free, "free", false, "let the topology of any round be wired before any round")
	s.IntVar(&f.unions, "unions", 0, "wire up to `N` rounds in a row at once")
	s.DurationVar(&f.switchTime, "switch-time", 0, "how long the switches take, such as 5us or 25ms")
	s.StringVar(&f.measured, "measured", "", "take the switching time of `SWITCH` from stored runs: plans for its median and its 99th percentile")
	s.StringVar(&f.until, "until", string(timeline.Light), "with --measured, when a change is over: `"+strings.Join(measured.Stages(), "|")+"`")
	s.DurationSliceVar(&f.robust, "robust", nil, "one plan for switching times from `LO,HI`, with the least largest regret")
	s.BoolVar(&f.envelope, "envelope", false, "print the best plans at all switching times, and no rounds")
	s.BoolVar(&f.csv, "csv", false, "print rounds, or with --envelope plans, as CSV")
	s.StringVar(&f.lp, "lp", "", "write the decision as an integer program in LP format to `FILE`; - is stdout")
}

// pcclTask is what shall be planned.
type pcclTask struct {
	collective pccl.Collective
	gpus       int
	bytes      float64
	start      *pccl.Topology
	params     pccl.Params
	tables     []*pccl.Table // of one algorithm each
	leftOut    []pccl.LeftOut
}

// pcclMoment is a switching time that plans are made for.
type pcclMoment struct {
	At      string  // "given", "median", "p99", "robust"
	Switch  float64 // seconds
	High    float64 // of a range; else 0
	Choices []pcclChoice
	Worst   float64 // of a robust plan: how much slower than the best one it is at most, seconds
}

// chosen is the plan that is the quickest.
func (m *pcclMoment) chosen() *pcclChoice { return &m.Choices[0] }

// pcclChoice is the plan of one algorithm.
type pcclChoice struct {
	pccl.Plan
	Static, Always float64 // seconds, if it were never rewired, and if it were for each round; may be infinite
	table          *pccl.Table
}

// same reports whether two plans decide alike.
func (c *pcclChoice) same(o *pcclChoice) bool {
	return c.Schedule.Algorithm == o.Schedule.Algorithm && slices.EqualFunc(c.Rounds, o.Rounds, func(x, y pccl.PlannedRound) bool {
		return x.Changed == y.Changed && x.Topology.Equal(y.Topology)
	})
}

// planCollective is the command.
func (a *app) planCollective(cmd *cobra.Command, f *pcclFlags) error {
	if err := f.check(cmd, a.set.JSON); err != nil {
		return err
	}
	task, err := f.task()
	if err != nil {
		return unplannable(err)
	}
	var times *measured.Times
	var moments []pcclMoment
	switch {
	case f.measured != "":
		if times, err = a.measuredTimes(cmd.Context(), f); err != nil {
			return err
		}
		moments = momentsOf(times)
	case f.robust != nil:
		moments = []pcclMoment{{At: "robust", Switch: f.robust[0].Seconds(), High: f.robust[1].Seconds()}}
	case cmd.Flags().Changed("switch-time"):
		moments = []pcclMoment{{At: "given", Switch: f.switchTime.Seconds()}}
	}
	if err := f.onLab.check(cmd, len(moments)); err != nil {
		return err
	}
	pieces, err := task.envelope()
	if err != nil {
		return unplannable(err)
	}
	for i := range moments {
		if err := task.choose(&moments[i], pieces); err != nil {
			return unplannable(err)
		}
	}
	if f.lp != "" {
		m := moments[0]
		err := a.writeFile(f.lp, func(w io.Writer) error { return m.chosen().table.WriteLP(w, m.Switch) })
		if err != nil || f.lp == "-" {
			return err
		}
	}
	if f.csv {
		return a.pcclCSV(moments, pieces, f.envelope)
	}
	if a.set.JSON {
		a.pcclJSON(task, times, moments, pieces, f.envelope)
	} else {
		a.pcclText(task, times, moments, pieces, f)
	}
	if f.onLab.asked() {
		return a.applyCollective(cmd.Context(), &f.onLab, task, &moments[0], func(switching time.Duration) (*pcclMoment, error) {
			m := &pcclMoment{At: "given", Switch: switching.Seconds()}
			return m, task.choose(m, pieces)
		})
	}
	return nil
}

// unplannable is an error of the planner for somebody who has typed flags: that it is about an argument goes without saying.
func unplannable(err error) error {
	return usagef("%s", strings.ReplaceAll(err.Error(), pccl.ErrArgument.Error()+": ", ""))
}

// check refuses flags that do not go together.
func (f *pcclFlags) check(cmd *cobra.Command, json bool) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	asked := 0
	for _, name := range []string{"switch-time", "measured", "robust"} {
		if given(name) {
			asked++
		}
	}
	switch {
	case asked > 1:
		return usagef("--switch-time, --measured and --robust are three ways to say how long the switches take: want one")
	case asked == 0 && !f.envelope:
		return usagef("how long do the switches take? want --switch-time 5us, --measured SWITCH, or --envelope for all times")
	case given("until") && f.measured == "":
		return usagef("--until goes with --measured")
	case given("measured") && f.measured == "":
		return usagef("--measured wants the name of a switch")
	case f.lp != "" && (asked == 0 || f.robust != nil):
		return usagef("--lp wants one switching time: --switch-time or --measured")
	case (f.csv || f.lp == "-") && f.onLab.asked():
		return usagef("--apply prints what it does: it goes with neither --csv nor --lp -")
	case f.csv && json:
		return usagef("--csv and --json are two forms of the same: want one")
	case f.robust != nil && (len(f.robust) != 2 || f.robust[0] < 0 || f.robust[1] < f.robust[0]):
		return usagef("--robust: want two times, the lower first, such as 5us,50us")
	case f.alpha < 0:
		return usagef("--alpha %v: want 0 or more", f.alpha)
	case f.unions > 1 && f.transmitters == 0:
		return usagef("--unions %d: circuits of several rounds at once take more transmitters than one round: want --transmitters, how many a GPU has", f.unions)
	case f.switchTime < 0:
		return usagef("--switch-time %v: want 0 or more", f.switchTime)
	case f.gpus == 0:
		return usagef("how many GPUs take part? want --gpus, 2 or more")
	case f.bytes == "":
		return usagef("how large is the buffer of a GPU? want --bytes, such as 256MB")
	}
	return nil
}

// task lays out the schedules and works out their tables.
func (f *pcclFlags) task() (*pcclTask, error) {
	t := &pcclTask{gpus: f.gpus}
	var err error
	if t.collective, err = pccl.ParseCollective(f.collective); err != nil {
		return nil, usagef("--collective: %w", err)
	}
	if t.bytes, err = quantity.ParseBytes(f.bytes); err != nil {
		return nil, usagef("--bytes: %w", err)
	}
	rate, err := quantity.ParseRate(f.beta)
	if err != nil {
		return nil, usagef("--beta: %w", err)
	}
	if t.start, err = pccl.ParseTopology(f.start, f.gpus); err != nil {
		return nil, usagef("--start: %w", err)
	}
	standard, err := f.standards()
	if err != nil {
		return nil, err
	}
	p := pccl.Params{
		Alpha: f.alpha.Seconds(), Beta: 1 / rate, Ties: pccl.Ties(f.ties), Split: f.split,
		Transmitters: f.transmitters, Receivers: cmp.Or(f.receivers, f.transmitters),
	}
	t.params = p
	problems, err := f.problems(t, standard, p)
	if err != nil {
		return nil, err
	}
	for i := range problems {
		problem := &problems[i]
		problem.Free, problem.Unions = f.free, f.unions
		if p.Transmitters > 0 || p.Receivers > 0 {
			if problem.Schedule, err = problem.Schedule.Split(p.Transmitters, p.Receivers); err != nil {
				return nil, err
			}
		}
	}
	if t.tables, t.leftOut, err = pccl.Tables(problems); err != nil {
		return nil, err
	}
	if f.algorithm == bestAlgorithm {
		t.leftOut = append(t.leftOut, pccl.Oversized(t.collective, f.gpus)...)
	}
	return t, nil
}

// problems are those of one algorithm, or of all that fit.
func (f *pcclFlags) problems(t *pcclTask, standard []*pccl.Topology, p pccl.Params) ([]pccl.Problem, error) {
	if f.algorithm == bestAlgorithm {
		return pccl.Portfolio(t.collective, f.gpus, t.bytes, t.start, standard, p)
	}
	algorithm, err := pccl.ParseAlgorithm(f.algorithm)
	if err != nil {
		return nil, usagef("--algorithm: %w; or best", err)
	}
	s, err := pccl.New(t.collective, algorithm, f.gpus, t.bytes)
	if err != nil {
		return nil, err
	}
	return []pccl.Problem{{Schedule: s, Start: t.start, Standard: standard, Params: p}}, nil
}

// standards are the topologies that may be wired beside the first.
func (f *pcclFlags) standards() ([]*pccl.Topology, error) {
	var all []*pccl.Topology
	add := func(text string) error {
		t, err := pccl.ParseTopology(strings.TrimSpace(text), f.gpus)
		if err != nil {
			return usagef("--standard: %w", err)
		}
		all = append(all, t)
		return nil
	}
	for _, list := range f.standard {
		names := []string{list}
		if strings.Trim(list, "0123456789->, ") != "" { // not the commas between circuits
			names = strings.Split(list, ",")
		}
		for _, name := range names {
			if strings.TrimSpace(name) == "all" {
				names = append(names, f.lattices()...)
			}
		}
		for _, name := range names {
			if strings.TrimSpace(name) == "all" {
				continue
			}
			if err := add(name); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// lattices are those that there are of so many GPUs.
func (f *pcclFlags) lattices() []string {
	var names []string
	for _, name := range []string{"ring", "torus 2d", "grid 2d", "torus 3d", "grid 3d"} {
		if _, err := pccl.ParseTopology(name, f.gpus); err == nil { // not every number has them
			names = append(names, name)
		}
	}
	return names
}

// measuredTimes are those of stored runs.
func (a *app) measuredTimes(ctx context.Context, f *pcclFlags) (*measured.Times, error) {
	store, err := a.runs()
	if err != nil {
		return nil, err
	}
	opt := measured.Options{Stage: timeline.Stage(f.until), Emulated: a.set.Emulated}
	l, err := a.file()
	if err != nil {
		return nil, err
	}
	if l != nil {
		if _, ok := l.Switch(f.measured); !ok {
			var names []string
			for _, s := range l.Switches {
				names = append(names, s.Name)
			}
			return nil, usagef("--measured: the lab %s has no switch %q: it has %s", l.Name, f.measured, strings.Join(names, ", "))
		}
		opt.Lab = l.Name
	}
	t, err := measured.Switching(ctx, store, f.measured, opt)
	if errors.Is(err, measured.ErrMixed) || err != nil && !slices.Contains(measured.Stages(), f.until) {
		return nil, usageError{err}
	}
	if err == nil && !measured.Known(t.Median) {
		return nil, errors.New(neverCame(&t) + "; find out why before anything is planned on it")
	}
	return &t, err
}

// momentsOf are the times that are worth a plan.
func momentsOf(t *measured.Times) []pcclMoment {
	moments := []pcclMoment{{At: "median", Switch: float64(t.Median.NS) / 1e9}}
	if measured.Known(t.P99) {
		moments = append(moments, pcclMoment{At: "p99", Switch: float64(t.P99.NS) / 1e9})
	}
	return moments
}

// envelope is the best plan of all algorithms at each switching time.
func (t *pcclTask) envelope() ([]pccl.Piece, error) {
	var all []pccl.Piece
	for _, table := range t.tables {
		pieces, err := table.Envelope()
		if err != nil {
			return nil, err
		}
		all = append(all, pieces...)
	}
	return lowerHull(all), nil
}

// lowerHull keeps of lines Time + Changes*r those that are the lowest at some r of 0 or more, in order of r. Equal ones
// are there once, the first.
func lowerHull(all []pccl.Piece) []pccl.Piece {
	var hull []pccl.Piece
	at, line := 0.0, func(p pccl.Piece, r float64) float64 { return p.Time + float64(p.Changes)*r }
	for {
		// The lowest at r, and of these the one that is the lowest just after it.
		best := -1
		for i, p := range all {
			if best < 0 || line(p, at) < line(all[best], at) || line(p, at) == line(all[best], at) && p.Changes < all[best].Changes {
				best = i
			}
		}
		if best < 0 {
			return nil
		}
		p := all[best]
		p.From, p.To = at, math.Inf(1)
		var less []pccl.Piece
		for _, q := range all {
			if q.Changes < p.Changes {
				less = append(less, q)
				p.To = min(p.To, (q.Time-p.Time)/float64(p.Changes-q.Changes))
			}
		}
		if p.To > at {
			hull = append(hull, p)
		}
		if math.IsInf(p.To, 1) {
			return hull
		}
		all, at = less, max(at, p.To)
	}
}

// lowest is the least total time at a switching time.
func lowest(pieces []pccl.Piece, r float64) float64 {
	least := math.Inf(1)
	for _, p := range pieces {
		least = min(least, p.Time+float64(p.Changes)*r)
	}
	return least
}

// choose makes the plans of a moment, best first. For a range each algorithm has the plan with the least regret against
// its own best ones, and of these that with the least regret against all algorithms comes first.
func (t *pcclTask) choose(m *pcclMoment, pieces []pccl.Piece) error {
	regret := func(p pccl.Plan, r float64) float64 {
		return p.Alpha + p.Beta + float64(p.Changes)*r - lowest(pieces, r)
	}
	worst := map[*pccl.Table]float64{}
	for _, table := range t.tables {
		c := pcclChoice{table: table}
		var err error
		if m.High > 0 {
			// What a plan takes grows in a straight line, and what is best is bent downwards: the most is at an end.
			if c.Plan, _, err = table.Robust(m.Switch, m.High); err == nil {
				worst[table] = max(regret(c.Plan, m.Switch), regret(c.Plan, m.High))
			}
		} else {
			c.Plan, err = table.Best(m.Switch)
		}
		if err != nil {
			return err
		}
		for of, plan := range map[*float64]func() (pccl.Plan, error){
			&c.Static: table.Static, &c.Always: func() (pccl.Plan, error) { return table.Always(c.Switch) },
		} {
			p, err := plan()
			if err != nil && !errors.Is(err, pccl.ErrDisconnected) {
				return err
			}
			if *of = p.Total; err != nil {
				*of = math.Inf(1)
			}
		}
		m.Choices = append(m.Choices, c)
	}
	slices.SortStableFunc(m.Choices, func(x, y pcclChoice) int {
		return cmp.Or(cmp.Compare(worst[x.table], worst[y.table]), cmp.Compare(x.Total, y.Total), cmp.Compare(x.Changes, y.Changes))
	})
	m.Worst = worst[m.chosen().table]
	return nil
}
