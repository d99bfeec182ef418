package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/hbd"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// infiniteFlags say which line of nodes, and what is to run on it.
type infiniteFlags struct {
	nodes, gpus, hops int
	distances         []int
	closed            bool
	perToR, perDomain int

	tp, resize, job int
	relax           string
	phi             float64
	dead, was       string
	repairs         bool // --was-dead or --resize is given

	states, cables  bool
	writeLab, model string

	apply, leave bool
}

// aligned is the relaxation that weighs sets against groups; the others are those of [infinitehbd.Relax].
const aligned = "sets"

var relaxations = []string{infinitehbd.ByDomain.String(), infinitehbd.ByCost.String(), infinitehbd.ByToR.String(), aligned}

func (a *app) topologyInfiniteHBDCommand() *cobra.Command {
	var f infiniteFlags
	c := &cobra.Command{
		Use:   "infinitehbd",
		Short: "Rings of GPUs over transceivers that switch, around nodes that are dead",
		Long: `Plan InfiniteHBD (arXiv 2502.03885): nodes in a line, each joined to those up to K before and
behind it by bundles of OCSTrx, form rings of GPUs of any size, and fewer than K dead nodes in a
row are bypassed. Printed are the groups, the ring of each GPU by GPU, and what every bundle that is not
looped does: L and R lead to the nodes before and behind, X both ways.

--was-dead LIST starts from the plan with those nodes dead (or none), and prints which bundles
have to switch for --dead: the fewest, beside those that cutting the line anew would take.
--resize TP does the same for rings of another size. --job GPUS places a job in a fat-tree of
--per-tor and --per-domain nodes with as few crossings of ToRs as there is room for.

With --lab and --apply the bundles are brought to it, first to that of --was-dead if given, and the
rings walked by their light; a run is recorded. The switches of the lab are named such as n06-r for
bundle R of node 6; --write-lab makes an emulated lab with its cables.`,
		Example: "  ocslab topology infinitehbd --nodes 16 --per-tor 4 --tp 8 --was-dead none --dead 6\n" +
			"  ocslab topology infinitehbd --nodes 16 --per-tor 4 --per-domain 8 --tp 8 --dead 6 --job 56\n" +
			"  ocslab topology infinitehbd --nodes 16 --tp 8 --resize 16\n" +
			"  ocslab topology infinitehbd --nodes 4 --tp 8 --write-lab hbd.yaml --model ocstrx-8x112g\n" +
			"  ocslab --lab hbd.yaml --emulated topology infinitehbd --nodes 4 --tp 8 --apply",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := goesWith(cmd, "apply", "leave", "mode"); err != nil {
				return err
			}
			if err := goesWith(cmd, "job", "relax"); err != nil {
				return err
			}
			if err := goesWith(cmd, "write-lab", "model"); err != nil {
				return err
			}
			if err := f.check(cmd); err != nil {
				return usageError{err}
			}
			f.repairs = cmd.Flags().Changed("was-dead") || f.resize != 0
			return a.topologyInfiniteHBD(cmd, &f)
		},
	}
	s := c.Flags()
	s.IntVar(&f.nodes, "nodes", 0, "nodes of the line")
	s.IntVar(&f.gpus, "gpus", 4, "GPUs of a node")
	s.IntVar(&f.hops, "hops", 2, "K: how many nodes away a bundle reaches, and bundles of a node")
	s.IntSliceVar(&f.distances, "distances", nil, "reach these distances instead, such as 1,2,4")
	s.BoolVar(&f.closed, "closed", false, "cable the last nodes to the first")
	s.IntVar(&f.perToR, "per-tor", 1, "nodes of a Top-of-Rack switch: neighbours in the line are in different ones")
	s.IntVar(&f.perDomain, "per-domain", 0, "nodes of an aggregation domain (default all)")
	s.IntVar(&f.tp, "tp", 0, "GPUs of a ring: a multiple of those of a node")
	s.StringVar(&f.dead, "dead", "", "`NODES` that are dead, such as 6,10-12")
	s.StringVar(&f.was, "was-dead", "", "start from the plan with these `NODES` dead; none is none")
	s.IntVar(&f.resize, "resize", 0, "start from the plan, and go to rings of so many GPUs")
	s.IntVar(&f.job, "job", 0, "place a job of so many GPUs")
	s.StringVar(&f.relax, "relax", relaxations[0], "with --job, what is given up first when there is no room: `"+strings.Join(relaxations, "|")+"`; domain is the paper's")
	s.Float64Var(&f.phi, "phi", 0.1, "part of the traffic that is between rings, for the share that crosses ToRs")
	s.BoolVar(&f.states, "states", false, "print every bundle, also those that are looped or dark")
	s.BoolVar(&f.cables, "cables", false, "print the cables")
	s.StringVar(&f.writeLab, "write-lab", "", "write an emulated lab for the line to `FILE`; - is stdout")
	s.StringVar(&f.model, "model", "", "with --write-lab, the model of its boards (default "+hbd.EightModules+")")
	s.BoolVar(&f.apply, "apply", false, "bring it about on the bundles of the lab")
	s.BoolVar(&f.leave, "leave", true, "with --apply, leave it so; --leave=false puts back what was there")
	a.addMode(c, string(ocs.Safe))
	c.AddCommand(a.topologyFaultsCommand(), a.infiniteWalkCommand(), a.infiniteCablesCommand(), a.infiniteBypassCommand())
	return c
}

// goesWith refuses flags that mean nothing without another.
func goesWith(cmd *cobra.Command, flag string, names ...string) error {
	if cmd.Flags().Changed(flag) {
		return nil
	}
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return usagef("--%s goes with --%s", name, flag)
		}
	}
	return nil
}

// mostNodes is how many nodes a plan is made for here: more take gigabytes to print.
const mostNodes = 1 << 17

// check refuses what cannot be meant.
func (f *infiniteFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case f.nodes > mostNodes:
		return fmt.Errorf("--nodes %d: want up to %d", f.nodes, mostNodes)
	case given("hops") && given("distances"):
		return fmt.Errorf("--hops reaches all distances up to K, and --distances names them: one or the other")
	case given("job") && len(f.distances) > 0 && !f.contiguous():
		return fmt.Errorf("--job places by --hops, or --distances without gaps: not %v", f.distances)
	}
	for _, x := range []struct {
		flag  string
		value int
	}{{"resize", f.resize}, {"job", f.job}, {"per-domain", f.perDomain}} {
		if given(x.flag) && x.value < 1 {
			return fmt.Errorf("--%s %d: want 1 or more", x.flag, x.value)
		}
	}
	return nil
}

// contiguous reports whether nodes reach all others up to the farthest.
func (f *infiniteFlags) contiguous() bool {
	for d := 1; d <= len(f.distances); d++ {
		if !slices.Contains(f.distances, d) {
			return false
		}
	}
	return true
}

// flags are those that say which line it is.
func (f *infiniteFlags) lineFlags() string {
	text := fmt.Sprintf("--nodes %d --tp %d", f.nodes, f.tp)
	if f.gpus != 4 {
		text += fmt.Sprintf(" --gpus %d", f.gpus)
	}
	if len(f.distances) > 0 {
		text += " --distances " + strings.ReplaceAll(strings.Trim(fmt.Sprint(f.distances), "[]"), " ", ",")
	} else if f.hops != 2 {
		text += fmt.Sprintf(" --hops %d", f.hops)
	}
	if f.perToR != 1 {
		text += fmt.Sprintf(" --per-tor %d", f.perToR)
	}
	if f.closed {
		text += " --closed"
	}
	return text
}

// infiniteWish is what the flags ask for.
type infiniteWish struct {
	line     infinitehbd.Line
	tree     infinitehbd.Tree
	dead     []infinitehbd.Node
	before   *infinitehbd.Plan // nil if there is none
	plan     *infinitehbd.Plan
	repaired *infinitehbd.Repaired
	cut      []infinitehbd.Switching // what cutting the line anew would switch
	placed   *infinitehbd.Placement
	tp       int // of plan
	took     time.Duration
	rings    [][]infinitehbd.GPU
	lost     error // there is no ring at all
	gaps     bool  // nodes do not reach all others up to the farthest
}

// parseNodes reads "6,10-12"; "" and "none" are none.
func parseNodes(flag, text string) (nodes []infinitehbd.Node, err error) {
	if text == "" || text == "none" {
		return nil, nil
	}
	const most = 1 << 20
	for part := range strings.SplitSeq(text, ",") {
		first, last, two := strings.Cut(part, "-")
		if !two {
			last = first
		}
		a, errA := strconv.Atoi(strings.TrimSpace(first))
		b, errB := strconv.Atoi(strings.TrimSpace(last))
		if errA != nil || errB != nil || a < 1 || b < a || b > most {
			return nil, fmt.Errorf("--%s %.40q: want nodes such as 6,10-12, from 1, or none", flag, text)
		}
		for n := a; n <= b; n++ {
			nodes = append(nodes, infinitehbd.Node(n))
		}
	}
	return nodes, nil
}

func (f *infiniteFlags) layout() (infinitehbd.Layout, error) {
	if len(f.distances) > 0 {
		return infinitehbd.LayoutOf(f.gpus, f.distances)
	}
	return infinitehbd.NewLayout(f.gpus, f.hops)
}

// size returns how many nodes a ring of tp GPUs has.
func (f *infiniteFlags) size(flag string, tp int) (int, error) {
	if tp < 1 || tp%f.gpus != 0 {
		return 0, fmt.Errorf("--%s %d: want a multiple of the %d GPUs of a node", flag, tp, f.gpus)
	}
	return tp / f.gpus, nil
}

func (f *infiniteFlags) wish() (w infiniteWish, err error) {
	if f.nodes == 0 || f.tp == 0 {
		return w, fmt.Errorf("want --nodes and --tp, such as --nodes 16 --tp 8")
	}
	layout, err := f.layout()
	if err != nil {
		return w, err
	}
	w.tree = infinitehbd.Tree{Nodes: f.nodes, PerToR: f.perToR, PerDomain: cmp.Or(f.perDomain, f.nodes)}
	if w.line, err = w.tree.Line(layout); err != nil {
		return w, err
	}
	w.line.Closed, w.gaps = f.closed, len(f.distances) > 0 && !f.contiguous()
	w.tp = f.tp
	if w.dead, err = parseNodes("dead", f.dead); err != nil {
		return w, err
	}
	m, err := f.size("tp", f.tp)
	if err != nil {
		return w, err
	}
	if err := w.line.Check(); err != nil {
		return w, err
	}
	began := time.Now()
	switch {
	case f.job != 0 && f.repairs:
		return w, fmt.Errorf("--job places a new job; --was-dead and --resize change one that runs: one or the other")
	case f.job != 0:
		err = w.place(f, layout)
	case f.repairs:
		err = w.change(f, m)
	default:
		w.plan, err = w.planOf(m, w.dead)
	}
	w.took = time.Since(began)
	if err != nil {
		return w, err
	}
	if w.lost == nil && len(w.plan.Groups()) == 0 {
		w.lost = fmt.Errorf("%w: a ring takes %s within reach of each other, and %d of %d live", infinitehbd.ErrRoom,
			natural.Count(w.tp/f.gpus, "node"), len(w.plan.Idle()), f.nodes)
	}
	w.rings, err = w.plan.Rings()
	return w, err
}

// planOf returns the plan with as many groups as there is room for: cut from the front of the line, or searched for where
// nodes do not reach all others up to the farthest, which may interleave groups.
func (w *infiniteWish) planOf(m int, dead []infinitehbd.Node) (*infinitehbd.Plan, error) {
	if w.gaps {
		return w.repair(nil, m, dead)
	}
	groups, err := w.line.Place(m, dead)
	if err != nil {
		return nil, err
	}
	return w.line.Build(groups, dead)
}

// repair repairs a plan, or nil for one without groups.
func (w *infiniteWish) repair(running *infinitehbd.Plan, m int, dead []infinitehbd.Node) (plan *infinitehbd.Plan, err error) {
	if running == nil {
		if running, err = w.line.Build(nil, dead); err != nil {
			return nil, err
		}
	}
	r, err := infinitehbd.Repair(running, dead, w.repairOptions(m))
	if errors.Is(err, infinitehbd.ErrRoom) && r != nil {
		return r.Plan, nil
	}
	if err != nil {
		return nil, err
	}
	return r.Plan, nil
}

func (w *infiniteWish) repairOptions(m int) infinitehbd.RepairOptions {
	o := infinitehbd.RepairOptions{Size: m}
	if w.gaps {
		o.Overlap = min(infinitehbd.MaxOverlap, w.line.Layout.Hops())
	}
	return o
}

// place places a job.
func (w *infiniteWish) place(f *infiniteFlags, layout infinitehbd.Layout) (err error) {
	if f.closed {
		return fmt.Errorf("--job is for a line that is not closed")
	}
	r := infinitehbd.Request{GPUs: f.job, TP: f.tp}
	switch i := slices.Index(relaxations, f.relax); {
	case i < 0:
		return fmt.Errorf("--relax %.20q%s: want one of %s", f.relax, strictyaml.DidYouMean(f.relax, relaxations), strings.Join(relaxations, ", "))
	case f.relax == aligned:
		w.placed, err = w.tree.Align(layout, r, w.dead)
	default:
		r.Relax = infinitehbd.Relax(i)
		w.placed, err = w.tree.Orchestrate(layout, r, w.dead)
	}
	if err != nil {
		return err
	}
	groups, err := w.tree.Choose(w.placed.Groups, (f.job+f.tp-1)/f.tp)
	if err != nil {
		return err
	}
	w.plan, err = w.line.Build(groups, w.dead)
	return err
}

// change repairs or resizes the plan of before.
func (w *infiniteWish) change(f *infiniteFlags, m int) (err error) {
	was, err := parseNodes("was-dead", f.was)
	if err != nil {
		return err
	}
	if w.before, err = w.planOf(m, was); err != nil {
		return err
	}
	if f.resize == 0 {
		w.repaired, err = infinitehbd.Repair(w.before, w.dead, w.repairOptions(m))
	} else {
		if len(was) > 0 {
			return fmt.Errorf("--resize starts from the plan around --dead: it takes no --was-dead")
		}
		if w.before, err = w.planOf(m, w.dead); err != nil {
			return err
		}
		if m, err = f.size("resize", f.resize); err != nil {
			return err
		}
		w.tp = f.resize
		w.repaired, err = infinitehbd.Repair(w.before, w.before.Dead(), w.repairOptions(m))
	}
	if err != nil && (!errors.Is(err, infinitehbd.ErrRoom) || w.repaired == nil) {
		return err
	}
	w.plan, w.lost = w.repaired.Plan, err
	again, err := w.planOf(m, w.dead)
	if err != nil {
		return err
	}
	w.cut = infinitehbd.Diff(w.before, again)
	return nil
}

func (a *app) topologyInfiniteHBD(cmd *cobra.Command, f *infiniteFlags) error {
	w, err := f.wish()
	switch {
	case errors.Is(err, infinitehbd.ErrRoom):
		return err
	case err != nil:
		return usageError{err}
	}
	if f.writeLab != "" {
		if f.apply {
			return usagef("--write-lab writes a lab, and --apply drives one: one at a time")
		}
		text, err := hbd.LabFile(w.line, hbd.LabOptions{Model: f.model, Seed: 1})
		if err != nil {
			return usageError{err}
		}
		return a.writeLab(f.writeLab, text, "infinitehbd "+f.lineFlags()+" --apply")
	}
	if f.apply && w.lost == nil {
		return a.applyInfiniteHBD(cmd.Context(), f, &w)
	}
	return errors.Join(a.printInfiniteHBD(f, &w), w.lost)
}

// Lines of "ocslab topology infinitehbd --json".
type (
	infiniteGroup struct {
		Kind  string   `json:"kind"` // "infinitehbd-group"
		Nodes []int    `json:"nodes"`
		Ring  []string `json:"ring"` // of GPUs, "2.3" is GPU 3 of node 2
	}
	infiniteBundle struct {
		Kind   string `json:"kind"` // "infinitehbd-bundle"
		Node   int    `json:"node"`
		Bundle string `json:"bundle"`
		State  string `json:"state"`
		From   string `json:"from,omitempty"` // if it has to switch
	}
	infiniteCable struct {
		Kind string `json:"kind"` // "infinitehbd-cable"
		A    string `json:"a"`    // "2.R PATH1"
		B    string `json:"b"`
	}
	infiniteSummary struct {
		Kind       string  `json:"kind"` // "infinitehbd-plan"
		Nodes      int     `json:"nodes"`
		GPUs       int     `json:"gpus_per_node"`
		Hops       int     `json:"hops"`
		TP         int     `json:"tp"`
		Groups     int     `json:"groups"`
		Used       int     `json:"gpus_in_rings"`
		Idle       []int   `json:"idle_nodes"`
		Dead       []int   `json:"dead_nodes"`
		Waste      float64 `json:"waste"`              // healthy GPUs in no ring, of all
		Crossing   float64 `json:"cross_tor_share"`    // of all traffic
		Switched   *int    `json:"switched,omitempty"` // bundles, from the plan of before
		Cut        *int    `json:"switched_by_cutting_anew,omitempty"`
		Kept       int     `json:"kept_groups,omitempty"`
		Ended      int     `json:"ended_groups,omitempty"`
		Short      int     `json:"groups_less,omitempty"`
		Constraint *int    `json:"constraints,omitempty"`
		Most       int     `json:"most_constraints,omitempty"`
		PlanNS     int64   `json:"plan_ns"`
	}
)

func numbers(nodes []infinitehbd.Node) []int {
	all := make([]int, len(nodes))
	for i, n := range nodes {
		all[i] = int(n)
	}
	return all
}

func (w *infiniteWish) summary(f *infiniteFlags) (infiniteSummary, error) {
	groups := w.plan.Groups()
	s := infiniteSummary{Kind: "infinitehbd-plan", Nodes: f.nodes, GPUs: f.gpus, Hops: w.line.Layout.Hops(), TP: w.tp, Groups: len(groups),
		Used: len(groups) * w.tp, Idle: numbers(w.plan.Idle()), Dead: numbers(w.plan.Dead()), PlanNS: w.took.Nanoseconds()}
	s.Waste = float64(len(s.Idle)) / float64(f.nodes)
	c, err := w.tree.CrossToR(groups, f.phi)
	if err != nil {
		return s, err
	}
	s.Crossing = c.Share
	if w.repaired != nil {
		n, cut := len(w.repaired.Switchings), len(w.cut)
		s.Switched, s.Cut = &n, &cut
		s.Kept, s.Ended, s.Short = len(w.repaired.Kept), len(w.repaired.Ended), w.repaired.Short
	}
	if w.placed != nil {
		s.Constraint, s.Most = &w.placed.Constraints, w.placed.Most
	}
	return s, nil
}

// bundles returns what bundles do: all, or those that lead somewhere or switch.
func (w *infiniteWish) bundles(all bool) (lines []infiniteBundle) {
	from := map[[2]int]infinitehbd.State{}
	if w.repaired != nil {
		for _, s := range w.repaired.Switchings {
			from[[2]int{int(s.Node), s.Bundle}] = s.From
		}
	}
	for _, n := range w.line.Order {
		for i, b := range w.line.Layout.Bundles {
			l := infiniteBundle{Kind: "infinitehbd-bundle", Node: int(n), Bundle: b.Name}
			state := w.plan.State(n, i)
			l.State = state.String()
			was, switches := from[[2]int{int(n), i}]
			if switches {
				l.From = was.String()
			}
			if all || switches || state == infinitehbd.Path1 || state == infinitehbd.Path2 {
				lines = append(lines, l)
			}
		}
	}
	return lines
}

func (a *app) printInfiniteHBD(f *infiniteFlags, w *infiniteWish) error {
	s, err := w.summary(f)
	if err != nil {
		return usageError{err}
	}
	cables, err := w.line.Cables()
	if err != nil {
		return usageError{err}
	}
	if !a.set.JSON {
		a.printInfiniteText(f, w, &s, cables)
		return nil
	}
	for i, g := range w.plan.Groups() {
		l := infiniteGroup{Kind: "infinitehbd-group", Nodes: numbers(g)}
		for _, gpu := range w.rings[i] {
			l.Ring = append(l.Ring, gpu.String())
		}
		a.json(l)
	}
	for _, l := range w.bundles(f.states) {
		a.json(l)
	}
	if f.cables {
		for _, c := range cables {
			a.json(infiniteCable{"infinitehbd-cable", w.line.Name(c.A), w.line.Name(c.B)})
		}
	}
	a.json(s)
	return nil
}

func (a *app) printInfiniteText(f *infiniteFlags, w *infiniteWish, s *infiniteSummary, cables []infinitehbd.Cable) {
	a.printf("%s of %s, %s; rings of %d GPUs over nodes up to %d away; planned in %v\n", natural.Count(s.Nodes, "node"), natural.Count(s.GPUs, "GPU"),
		natural.Count(len(cables), "cable"), s.TP, s.Hops, w.took.Round(time.Microsecond))
	a.printf("  %s of %d GPUs", natural.Count(s.Groups, "ring"), s.Used)
	if len(s.Idle) > 0 {
		a.printf("; idle %s", joinInts(s.Idle))
	}
	if len(s.Dead) > 0 {
		a.printf("; dead %s", joinInts(s.Dead))
	}
	a.printf("; %.1f %% of all GPUs wasted\n", 100*s.Waste)
	if s.Constraint != nil {
		a.printf("  placed under %d of %d constraints; %.2f %% of the traffic crosses ToRs\n", *s.Constraint, s.Most, 100*s.Crossing)
	}
	if w.repaired != nil {
		a.printf("  %s %s, where cutting the line anew takes %d; %s as %s\n", natural.Count(*s.Switched, "bundle"), plural(*s.Switched, "switches", "switch"), *s.Cut,
			natural.Count(s.Kept, "ring"), plural(s.Kept, "it is", "they are"))
		if s.Short > 0 && f.resize == 0 {
			a.printf("  %s fewer than before\n", natural.Count(s.Short, "ring"))
		}
	}
	a.printInfiniteRings(f, w)
	a.printBundles(f, w)
	if f.cables {
		a.printf("\n")
		for _, c := range cables {
			a.printf("%s - %s\n", w.line.Name(c.A), w.line.Name(c.B))
		}
	}
}

func (a *app) printInfiniteRings(f *infiniteFlags, w *infiniteWish) {
	if len(w.rings) == 0 {
		return
	}
	const most = 40
	a.printf("\n")
	t := table{align: ""}
	t.row("group", "ring")
	for i, g := range w.plan.Groups() {
		if i == most && !f.states {
			t.row(fmt.Sprintf("and %d more (--states prints all)", len(w.rings)-most))
			break
		}
		var ring []string
		for _, gpu := range w.rings[i] {
			ring = append(ring, gpu.String())
		}
		t.row(joinInts(numbers(g)), shorten(strings.Join(ring, " "), f.states))
	}
	t.write(a.out, "")
}

func (a *app) printBundles(f *infiniteFlags, w *infiniteWish) {
	lines := w.bundles(f.states)
	if w.repaired != nil && !f.states { // what stays is not of interest
		lines = slices.DeleteFunc(lines, func(l infiniteBundle) bool { return l.From == "" })
	}
	if len(lines) == 0 {
		return
	}
	const most = 80
	a.printf("\n")
	t := table{align: ">"}
	t.row("node", "bundle", "state")
	for i, l := range lines {
		if i == most && !f.states {
			t.row("", fmt.Sprintf("and %d more (--states prints all)", len(lines)-most))
			break
		}
		state := l.State
		if l.From != "" {
			state = l.From + " -> " + l.State
		}
		t.row(fmt.Sprint(l.Node), l.Bundle, state)
	}
	t.write(a.out, "")
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func joinInts(xs []int) string {
	const most = 24
	var all []string
	for i, x := range xs {
		if i == most {
			all = append(all, fmt.Sprintf("and %d more", len(xs)-most))
			break
		}
		all = append(all, fmt.Sprint(x))
	}
	return strings.Join(all, " ")
}
