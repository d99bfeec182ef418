package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/pods"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/baseline"
	"github.com/ocslab/ocslab/topology/crosswiring/walk"
)

// crossFlags say how large a cluster is, and what its pods shall be joined by.
type crossFlags struct {
	pods, ports, groups     int
	wiring                  string
	demand, running, random string
	swap                    float64
	seed                    uint64
	planner                 string
	rounds                  int
	budget                  time.Duration
	without                 []string
	compare                 bool

	detail                            []string
	circuits, fibres, force           bool
	out, writeDemand, writeLab, model string
	switching                         time.Duration
	hosts                             bool

	apply, leave bool
	order        string
}

var demandShapes = []string{"full", "jobs"}

func (a *app) topologyCrossWiringCommand() *cobra.Command {
	var f crossFlags
	c := &cobra.Command{
		Use:   "crosswiring",
		Short: "Circuits between pods that satisfy any symmetric demand, on few new ones",
		Long: `Plan Cross Wiring (arXiv 2411.01503): pods with a spine in each group, whose ports go to pairs of
optical switches with crossed fibres. Any symmetric demand that fits the ports becomes a matching for each
switch, such that every port hears from where it sends to; with --running it is the one that leaves
most circuits of the running configuration as they are. What is planned is followed fibre by fibre
before it is printed.

--demand FILE is how many links two pods have: a JSON matrix or list, or CSV of group,pod,pod,links,
or pod,pod,links which is spread over the groups; - is stdin. --random full or jobs draws one, and
--swap F exchanges a part of the links of the running configuration.
--out writes the configuration, as --running reads it; --fibres prints where every fibre goes.

With --lab and --apply the switches are brought to it, the two of a pair together, read back and the
light followed; a run is recorded. The switches of the lab are named such as g0-k5 for switch 5 of
group 0, or hosts p3 have NICs h0k5; --write-lab makes an emulated lab.`,
		Example: "  ocslab topology crosswiring --pods 128 --spine-ports 16 --groups 16 --random full --out now.json\n" +
			"  ocslab topology crosswiring --pods 128 --spine-ports 16 --groups 16 --running now.json --swap 0.02 --compare\n" +
			"  echo '[[0,1,1],[1,0,1],[1,1,0]]' | ocslab topology crosswiring --pods 3 --spine-ports 2 --groups 1 --demand - --circuits\n" +
			"  ocslab topology crosswiring --pods 4 --spine-ports 8 --groups 4 --write-lab pods.yaml\n" +
			"  ocslab --lab pods.yaml --emulated topology crosswiring --pods 4 --spine-ports 8 --groups 4 --random full --apply",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := goesWith(cmd, "apply", "order", "leave", "mode"); err != nil {
				return err
			}
			if err := goesWith(cmd, "write-lab", "model", "switching", "hosts"); err != nil {
				return err
			}
			return a.topologyCrossWiring(cmd, &f)
		},
	}
	s := c.Flags()
	s.IntVar(&f.pods, "pods", 0, "pods")
	s.IntVar(&f.ports, "spine-ports", 0, "ports of a spine to optical switches, which is the switches of a group: even")
	s.IntVar(&f.groups, "groups", 1, "groups: spines of a pod")
	s.StringVar(&f.wiring, "wiring", crosswiring.Cross.String(), "`cross|dual-link|uniform`: dual-link for switches that join ports both ways; uniform for comparison, with --method greedy, helios or exact")
	s.StringVar(&f.demand, "demand", "", "`FILE` of how many links two pods shall have; - is stdin")
	s.StringVar(&f.random, "random", "", "draw a demand: `full|jobs`, all ports or rings of an odd number of pods")
	s.StringVar(&f.running, "running", "", "`FILE` of the running configuration (--out of a plan); - is stdin")
	s.Float64Var(&f.swap, "swap", 0, "with --running, the demand is what runs with this part of the links exchanged, such as 0.02")
	s.Uint64Var(&f.seed, "seed", 1, "of what is drawn, and of the orders that are tried")
	s.StringVar(&f.planner, "method", string(crosswiring.Best), "with --running, how to plan: `"+strings.Join(methodNames(), "|")+"`; with --wiring uniform greedy, helios or exact")
	s.IntVar(&f.rounds, "rounds", 0, "with --running, how often a few pairs of a group are rearranged; -1 is never (default by size)")
	s.DurationVar(&f.budget, "budget", 0, "with --running, end that after so long")
	s.StringArrayVar(&f.without, "without", nil, "`PAIR` of switches that is off, such as 0/3: pair 3 of group 0")
	s.BoolVar(&f.compare, "compare", false, "with --running, also plan by all other methods, and print what each keeps")
	s.StringArrayVar(&f.detail, "switch", nil, "print the circuits of this `SWITCH`, such as 0/5")
	s.BoolVar(&f.circuits, "circuits", false, "print the circuits of all switches")
	s.BoolVar(&f.fibres, "fibres", false, "print where every fibre goes, with labels, as CSV, and nothing else")
	s.StringVar(&f.out, "out", "", "write the configuration to `FILE`")
	s.StringVar(&f.writeDemand, "write-demand", "", "write the demand to `FILE`")
	s.BoolVar(&f.force, "force", false, "with --out and --write-demand, replace a file that is there")
	s.StringVar(&f.writeLab, "write-lab", "", "write an emulated lab for the fabric to `FILE`; - is stdout")
	s.StringVar(&f.model, "model", "", "with --write-lab, the model of its switches (default one with enough ports)")
	s.DurationVar(&f.switching, "switching", 0, "with --write-lab, how long the switches take (default as the model)")
	s.BoolVar(&f.hosts, "hosts", false, "with --write-lab, a host for each pod, too, with a NIC for each spine port")
	s.BoolVar(&f.apply, "apply", false, "bring it about on the switches of the lab")
	s.BoolVar(&f.leave, "leave", true, "with --apply, leave it so; --leave=false puts back what was there")
	s.StringVar(&f.order, "order", string(pods.Auto), "with --apply, `auto|staged|paired`: in rounds that leave each two pods a link, or all pairs at once")
	a.addMode(c, string(ocs.Safe))
	return c
}

func methodNames() (names []string) {
	for _, m := range crosswiring.Methods() {
		names = append(names, string(m))
	}
	return names
}

// crossWish is what the flags ask for.
type crossWish struct {
	fabric  crosswiring.Fabric
	demand  *crosswiring.Demand
	running *crosswiring.Config // nil if there is none
	config  *crosswiring.Config
	report  *crosswiring.RewireReport // nil if nothing ran
	change  *crosswiring.Change
	off     []crosswiring.Pair
	took    time.Duration
	links   int // followed fibre by fibre
	partial error
	others  []crossMethod
}

type crossMethod struct {
	method crosswiring.Method
	kept   int
	took   time.Duration
}

// mostPorts is how many spine ports a plan is made for here: more take long to follow and to print.
const mostPorts = 1 << 19

func (f *crossFlags) fabric() (crosswiring.Fabric, error) {
	if f.pods == 0 || f.ports == 0 {
		return crosswiring.Fabric{}, fmt.Errorf("want --pods and --spine-ports, such as --pods 128 --spine-ports 16 --groups 16")
	}
	all := []crosswiring.Wiring{crosswiring.Cross, crosswiring.Uniform, crosswiring.DualLink}
	var names []string
	for _, w := range all {
		if names = append(names, w.String()); w.String() == f.wiring {
			x := crosswiring.Fabric{Pods: f.pods, SpinePorts: f.ports, Groups: f.groups, Wiring: w}
			if err := x.Check(); err != nil {
				return x, err
			}
			if x.Ports() > mostPorts {
				return x, fmt.Errorf("%s are %d spine ports: want up to %d", fabricText(x), x.Ports(), mostPorts)
			}
			return x, nil
		}
	}
	return crosswiring.Fabric{}, fmt.Errorf("--wiring %.20q%s: want one of %s", f.wiring, strictyaml.DidYouMean(f.wiring, names), strings.Join(names, ", "))
}

// parsePart reads "0/5".
func parsePart(flag, text, what string) (group, index int, err error) {
	g, i, ok := strings.Cut(text, "/")
	group, errG := strconv.Atoi(g)
	index, errI := strconv.Atoi(i)
	if !ok || errG != nil || errI != nil {
		return 0, 0, fmt.Errorf("--%s %.40q: want %s as GROUP/NUMBER, both from 0, such as 0/5", flag, text, what)
	}
	return group, index, nil
}

// pairsOff returns the pairs of --without.
func (f *crossFlags) pairsOff() (off []crosswiring.Pair, err error) {
	for _, text := range f.without {
		g, i, err := parsePart("without", text, "a pair")
		if err != nil {
			return nil, err
		}
		off = append(off, crosswiring.Pair{Group: g, Index: i})
	}
	return off, nil
}

// wish plans; lab is what the switches of a lab hold, or nil.
func (f *crossFlags) wish(stdin io.Reader, lab *crosswiring.Config) (w crossWish, err error) {
	if w.fabric, err = f.fabric(); err != nil {
		return w, err
	}
	w.running = lab
	if f.running == "-" && f.demand == "-" {
		return w, fmt.Errorf("--running - and --demand -: one of them can be stdin")
	}
	if f.running != "" {
		text, err := readInput(stdin, f.running)
		if err != nil {
			return w, err
		}
		if w.running, err = crosswiring.ParseConfig(bytes.NewReader(text), f.running); err != nil {
			return w, err
		}
		if w.running.Fabric() != w.fabric {
			return w, fmt.Errorf("--running %s is of another fabric: %s, where %s are asked for", f.running, fabricText(w.running.Fabric()), fabricText(w.fabric))
		}
	}
	if w.off, err = f.pairsOff(); err != nil {
		return w, err
	}
	if w.demand, err = f.wanted(&w, stdin); err != nil {
		return w, err
	}
	return w, f.plan(&w)
}

func fabricText(f crosswiring.Fabric) string {
	return fmt.Sprintf("%s, %s of %s, %v wiring", natural.Count(f.Pods, "pod"), natural.Count(f.Groups, "group"), natural.Count(f.SpinePorts, "spine port"), f.Wiring)
}

// wanted returns the demand, for all groups of the fabric.
func (f *crossFlags) wanted(w *crossWish, stdin io.Reader) (*crosswiring.Demand, error) {
	given := 0
	for _, x := range []bool{f.demand != "", f.random != "", f.swap != 0} {
		if x {
			given++
		}
	}
	switch {
	case given != 1 && !(given == 0 && w.running != nil && len(w.off) > 0):
		return nil, fmt.Errorf("want one of --demand FILE, --random full|jobs and --swap FRACTION")
	case f.demand != "":
		text, err := readInput(stdin, f.demand)
		if err != nil {
			return nil, err
		}
		name := f.demand
		if name == "-" {
			name = "stdin"
		}
		d, err := crosswiring.ParseDemand(bytes.NewReader(text), name)
		if err != nil {
			return nil, err
		}
		if w.running != nil {
			d, err = d.FitRunning(w.running) // near what runs
		} else {
			d, err = d.Fit(w.fabric)
		}
		if err == nil {
			err = d.Check(w.fabric)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return d, nil
	case f.random == demandShapes[0]:
		return crosswiring.RandomFull(w.fabric, f.seed)
	case f.random == demandShapes[1]:
		return crosswiring.JobShaped(w.fabric, f.seed)
	case f.random != "":
		return nil, fmt.Errorf("--random %.20q%s: want full or jobs", f.random, strictyaml.DidYouMean(f.random, demandShapes))
	case w.running == nil:
		return nil, fmt.Errorf("--swap exchanges links of what runs: it goes with --running")
	}
	return crosswiring.Swapped(w.running.Demand(), f.swap, f.seed)
}

// plan plans, and follows every fibre.
func (f *crossFlags) plan(w *crossWish) (err error) {
	if w.fabric.Wiring == crosswiring.Uniform {
		return f.planUniform(w)
	}
	method := crosswiring.Method(f.planner)
	switch {
	case !slices.Contains(crosswiring.Methods(), method):
		return fmt.Errorf("--method %.20q%s: want one of %s", f.planner, strictyaml.DidYouMean(f.planner, methodNames()), strings.Join(methodNames(), ", "))
	case f.rounds < -1:
		return fmt.Errorf("--rounds %d: want -1 for none, 0 for as many as usual, or more", f.rounds)
	case f.budget < 0:
		return fmt.Errorf("--budget %v: want a time above zero, or 0 for none", f.budget)
	}
	began := time.Now()
	opt := crosswiring.RewireOptions{Method: method, Seed: f.seed, Rounds: f.rounds, Without: w.off}
	if f.budget > 0 {
		opt.Deadline = began.Add(f.budget)
	}
	switch {
	case w.running != nil || len(w.off) > 0:
		from := w.running
		if from == nil {
			if from, err = crosswiring.NewConfig(w.fabric); err != nil {
				return err
			}
		}
		w.config, w.report, err = crosswiring.Rewire(from, w.demand, opt)
		if errors.Is(err, crosswiring.ErrPartial) {
			w.partial, err = err, nil
		}
	case f.compare:
		return fmt.Errorf("--compare is of what is kept: it goes with --running")
	default:
		w.config, err = crosswiring.Plan(w.fabric, w.demand)
	}
	w.took = time.Since(began)
	if err != nil {
		return err
	}
	if err := w.follow(); err != nil {
		return err
	}
	if f.compare && w.running != nil {
		return f.compareMethods(w, opt)
	}
	return nil
}

// uniformMethods are the planners of Uniform wiring, the first the default.
var uniformMethods = []struct {
	name string
	plan func(crosswiring.Fabric, *crosswiring.Demand, *crosswiring.Config) (*crosswiring.Config, error)
}{{"greedy", baseline.Greedy}, {"helios", baseline.Helios}, {"exact", baseline.Exact}}

// planUniform plans as well as Uniform wiring allows: not every demand can be satisfied.
func (f *crossFlags) planUniform(w *crossWish) (err error) {
	if f.compare || len(w.off) > 0 || f.budget != 0 || f.rounds != 0 {
		return fmt.Errorf("--compare, --without, --rounds and --budget are not for --wiring uniform")
	}
	if f.planner == string(crosswiring.Best) {
		f.planner = uniformMethods[0].name
	}
	var names []string
	for _, m := range uniformMethods {
		if names = append(names, m.name); m.name != f.planner {
			continue
		}
		began := time.Now()
		w.config, err = m.plan(w.fabric, w.demand, w.running)
		w.took = time.Since(began)
		if err != nil {
			return err
		}
		return w.follow()
	}
	return fmt.Errorf("--method %.20q%s: want one of %s with --wiring uniform", f.planner, strictyaml.DidYouMean(f.planner, names), strings.Join(names, ", "))
}

// follow compares the plan with what runs, and follows every fibre.
func (w *crossWish) follow() (err error) {
	if w.running != nil {
		if w.change, err = crosswiring.Diff(w.running, w.config); err != nil {
			return err
		}
	}
	r, err := walk.Walk(w.fabric.Fibres(), w.config.AllCircuits())
	if err != nil {
		return err
	}
	if len(r.Violations) > 0 {
		return fmt.Errorf("%w: %w", ocs.ErrVerify, r.Violations[0])
	}
	w.links = len(r.Links)
	return nil
}

func (f *crossFlags) compareMethods(w *crossWish, opt crosswiring.RewireOptions) error {
	opt.Deadline = time.Time{}
	for _, m := range crosswiring.Methods() {
		opt.Method = m
		began := time.Now()
		_, r, err := crosswiring.Rewire(w.running, w.demand, opt)
		if err != nil && !errors.Is(err, crosswiring.ErrPartial) {
			return err
		}
		w.others = append(w.others, crossMethod{m, r.Kept(), time.Since(began)})
	}
	return nil
}

func (a *app) topologyCrossWiring(cmd *cobra.Command, f *crossFlags) error {
	if f.fibres || f.writeLab != "" {
		return a.writeCrossWiring(f)
	}
	if !slices.Contains([]pods.Order{pods.Auto, pods.Paired, pods.Staged}, pods.Order(f.order)) {
		return usagef("--order %q: want auto, staged or paired", f.order)
	}
	if f.apply {
		return a.applyCrossWiring(cmd, f)
	}
	w, err := f.wish(cmd.InOrStdin(), nil)
	switch {
	case errors.Is(err, ocs.ErrVerify):
		return err
	case err != nil:
		return usageError{err}
	}
	if err := f.write(&w); err != nil {
		return err
	}
	return errors.Join(a.printCrossWiring(f, &w), w.partial)
}

// write writes the files that were asked for.
func (f *crossFlags) write(w *crossWish) error {
	for _, x := range []struct {
		path  string
		write func(io.Writer) error
	}{{f.out, w.config.WriteJSON}, {f.writeDemand, w.demand.WriteJSON}} {
		if x.path == "" {
			continue
		}
		var text bytes.Buffer
		if err := x.write(&text); err != nil {
			return err
		}
		if err := writeOut(x.path, text.Bytes(), f.force); err != nil {
			return err
		}
	}
	return nil
}

// writeCrossWiring prints what does not depend on a demand: fibres, or a lab.
func (a *app) writeCrossWiring(f *crossFlags) error {
	fabric, err := f.fabric()
	switch {
	case err != nil:
		return usageError{err}
	case f.apply:
		return usagef("--fibres and --write-lab write what a fabric is, and --apply drives one: one at a time")
	case f.fibres && f.writeLab != "":
		return usagef("--fibres and --write-lab: one at a time")
	case f.fibres && a.set.JSON:
		return usagef("--fibres is CSV: it takes no --json")
	case f.switching < 0:
		return usagef("--switching %v: want 0 or more", f.switching)
	case f.fibres:
		return fabric.WriteFibres(a.out)
	}
	text, err := pods.LabFile(fabric, pods.LabOptions{Model: f.model, Switching: f.switching, Seed: f.seed, Hosts: f.hosts})
	if err != nil {
		return usageError{err}
	}
	return a.writeLab(f.writeLab, text, fmt.Sprintf("crosswiring --pods %d --spine-ports %d --groups %d%s --random full --apply", f.pods, f.ports, f.groups, wiringFlag(fabric)))
}

func wiringFlag(f crosswiring.Fabric) string {
	if f.Wiring == crosswiring.Cross {
		return ""
	}
	return fmt.Sprintf(" --wiring %v", f.Wiring)
}

// Lines of "ocslab topology crosswiring --json".
type (
	crossSwitch struct {
		Kind    string   `json:"kind"`   // "crosswiring-switch"
		Switch  string   `json:"switch"` // "0/5"
		Out     []int    `json:"out"`    // by input; -1 is dark
		Removed []string `json:"removed"`
		Added   []string `json:"added"`
	}
	crossMethodLine struct {
		Kind   string `json:"kind"` // "crosswiring-method"
		Method string `json:"method"`
		Kept   int    `json:"kept"`
		PlanNS int64  `json:"plan_ns"`
	}
	crossLost struct {
		Kind  string `json:"kind"` // "crosswiring-lost"
		Link  string `json:"link"`
		Links int    `json:"links"`
	}
	crossSummary struct {
		Kind     string  `json:"kind"` // "crosswiring-plan"
		Pods     int     `json:"pods"`
		Ports    int     `json:"spine_ports"`
		Groups   int     `json:"groups"`
		Wiring   string  `json:"wiring"`
		Switches int     `json:"switches"`
		Wanted   int     `json:"links_wanted"`
		Links    int     `json:"links"` // followed fibre by fibre
		Realised float64 `json:"realised"`
		LTRR     float64 `json:"ltrr"`
		PlanNS   int64   `json:"plan_ns"`
		// Of --running. Circuits are two for each link.
		Method    string `json:"method,omitempty"`
		Running   *int   `json:"running_circuits,omitempty"`
		Kept      *int   `json:"kept,omitempty"`
		AtMost    int    `json:"kept_at_most,omitempty"`
		Removed   int    `json:"removed"`
		Added     int    `json:"added"`
		Rewired   int    `json:"rewired_ports"`
		Changed   int    `json:"changed_switches"`
		Untouched int    `json:"untouched_links"`
		Lost      int    `json:"lost_links"`
		Rerouted  int    `json:"rerouted_links"`
	}
)

func (w *crossWish) summary(f *crossFlags) (s crossSummary, err error) {
	x := w.fabric
	s = crossSummary{Kind: "crosswiring-plan", Pods: x.Pods, Ports: x.SpinePorts, Groups: x.Groups, Wiring: x.Wiring.String(), Switches: x.Groups * x.GroupSwitches(),
		Wanted: w.demand.Total(), Links: w.links, PlanNS: w.took.Nanoseconds()}
	have := w.config.Demand()
	if s.Realised, err = crosswiring.Realised(have, w.demand); err != nil {
		return s, err
	}
	if s.LTRR, err = crosswiring.LTRR(have, w.demand); err != nil {
		return s, err
	}
	if w.report != nil {
		s.Method, s.AtMost = f.planner, w.report.AtMost()
		running, kept := w.report.Running(), w.report.Kept()
		s.Running, s.Kept = &running, &kept
		s.Lost, s.Rerouted = w.report.LostLinks(), w.report.Rerouted
	}
	if c := w.change; c != nil {
		if w.report == nil {
			running, kept := w.running.Count(), c.Kept
			s.Method, s.Running, s.Kept = f.planner, &running, &kept
		}
		s.Removed, s.Added, s.Rewired, s.Changed, s.Untouched = c.Removed, c.Added, c.Rewired, len(c.Switches), c.Links
	}
	return s, nil
}

// lines returns the switches asked for.
func (w *crossWish) lines(f *crossFlags) (lines []crossSwitch, err error) {
	changes := map[crosswiring.Switch]crosswiring.SwitchChange{}
	if w.change != nil {
		for _, c := range w.change.Switches {
			changes[c.Switch] = c
		}
	}
	var all []crosswiring.Switch
	for _, text := range f.detail {
		g, i, err := parsePart("switch", text, "a switch")
		if err != nil {
			return nil, err
		}
		sw := crosswiring.Switch{Group: g, Index: i}
		if w.config.Matching(sw) == nil {
			return nil, fmt.Errorf("--switch %s: there is no such switch in %s", text, fabricText(w.fabric))
		}
		all = append(all, sw)
	}
	if f.circuits {
		all = nil
		for _, p := range w.fabric.AllPairs() {
			all = append(all, w.fabric.Members(p)...)
		}
	}
	for _, sw := range all {
		l := crossSwitch{Kind: "crosswiring-switch", Switch: sw.String(), Out: w.config.Matching(sw), Removed: []string{}, Added: []string{}}
		for _, c := range changes[sw].Removed {
			l.Removed = append(l.Removed, c.String())
		}
		for _, c := range changes[sw].Added {
			l.Added = append(l.Added, c.String())
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func (a *app) printCrossWiring(f *crossFlags, w *crossWish) error {
	s, err := w.summary(f)
	if err != nil {
		return err
	}
	lines, err := w.lines(f)
	if err != nil {
		return usageError{err}
	}
	if !a.set.JSON {
		a.printCrossText(f, w, &s, lines)
		return nil
	}
	for _, l := range lines {
		a.json(l)
	}
	for _, m := range w.others {
		a.json(crossMethodLine{"crosswiring-method", string(m.method), m.kept, m.took.Nanoseconds()})
	}
	if w.report != nil {
		for _, l := range w.report.Lost {
			a.json(crossLost{"crosswiring-lost", l.Link.String(), l.Links})
		}
	}
	a.json(s)
	return nil
}

func (a *app) printCrossText(f *crossFlags, w *crossWish, s *crossSummary, lines []crossSwitch) {
	a.printf("%s: %s; planned in %v\n", fabricText(w.fabric), natural.Count(s.Switches, "switch"), w.took.Round(time.Microsecond))
	a.printf("  %s of %d wanted, followed fibre by fibre: %.4g realised, LTRR %.4f\n", natural.Count(s.Links, "link"), s.Wanted, s.Realised, s.LTRR)
	if w.change != nil {
		part := func(n int) string {
			if *s.Running == 0 {
				return "0"
			}
			return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(*s.Running))
		}
		most := ""
		if w.report != nil {
			most = fmt.Sprintf(" (no plan keeps more than %s)", part(s.AtMost))
		}
		a.printf("  of %s running %s stay%s: %d go, %d come, %d ports on %s; the light of %s is not touched\n",
			natural.Count(*s.Running, "circuit"), part(*s.Kept), most, s.Removed, s.Added, s.Rewired, natural.Count(s.Changed, "switch"), natural.Count(s.Untouched, "link"))
	}
	if w.report != nil && len(w.off) > 0 {
		a.printf("  with %s off: %s lost, %d rerouted\n", natural.Count(len(w.off), "pair"), natural.Count(s.Lost, "link"), s.Rerouted)
	}
	if len(w.others) > 0 {
		a.printf("\n")
		t := table{align: "<>>>"}
		t.row("method", "circuits kept", "of all", "time")
		for _, m := range w.others {
			t.row(string(m.method), fmt.Sprint(m.kept), fmt.Sprintf("%.1f %%", 100*float64(m.kept)/float64(max(1, *s.Running))), fmt.Sprintf("%.2f ms", inMS(m.took.Nanoseconds())))
		}
		t.write(a.out, "  ")
		a.printf("  bisect is our reading of the paper's MDMCF; euler plans from nothing\n")
	}
	if len(lines) == 0 {
		return
	}
	a.printf("\n")
	for _, l := range lines {
		var all []string
		for in, out := range l.Out {
			if out >= 0 {
				all = append(all, fmt.Sprintf("%d>%d", in, out))
			}
		}
		a.printf("%s: %s\n", l.Switch, shorten(strings.Join(all, ","), len(f.detail) > 0 || f.circuits))
		if len(l.Removed)+len(l.Added) > 0 {
			a.printf("  removes %s; adds %s\n", strings.Join(l.Removed, ","), strings.Join(l.Added, ","))
		}
	}
}
