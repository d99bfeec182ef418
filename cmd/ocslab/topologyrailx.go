package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/grid"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/hamilton"
	"github.com/ocslab/ocslab/topology/railx"
	"github.com/ocslab/ocslab/topology/railx/model"
)

// railxFlags say which grid, and what it is to be.
type railxFlags struct {
	nodes, shape, from    string
	rails, mesh, radix    int
	dead, without, detail []string
	relabel, crossConns   bool
	writeLab, model       string
	switching             time.Duration
	hosts                 bool

	apply, leave    bool
	drain, directed bool
	order           string
}

func (a *app) topologyRailXCommand() *cobra.Command {
	var f railxFlags
	c := &cobra.Command{
		Use:   "railx",
		Short: "What to wire in a grid of nodes with optical rails: torus, HyperX, Dragonfly",
		Long: `Plan a RailX grid (arXiv 2507.18889): nodes in columns and rows, each with rails along its
row (X) and along its column (Y); a rail is two duplex ports, "+" and "-", and each rail of a
row or column has an optical switch. Printed are the rings that each switch holds, what
changes against another shape with the fewest links moved, and what dead nodes or
switches leave.

SHAPE is torus, hyperx (all-to-all in each row and column), dragonfly, expander (for too few
rails), or logical dimensions KIND:SIZE:RAILS such as "x=torus:3:2,a2a:3:2 y=torus:5:4".

With --lab and --apply the switches are brought to it, first to --from if that is given, one
rail at a time where that keeps the pairs joined that are, and read back; a run is recorded. The
switches of the lab are named such as x3-0 for rail 0 of row 3, or hosts n2-3 have NICs
x0p, x0m, y0p ... that say where they are; --write-lab makes an emulated lab.`,
		Example: "  ocslab topology railx --nodes 5 --rails 4 --shape hyperx --from torus\n" +
			"  ocslab topology railx --nodes 5 --rails 4 --shape hyperx --dead 2,3 --switch X/3/0\n" +
			"  ocslab topology railx --nodes 5 --rails 4 --write-lab grid.yaml\n" +
			"  ocslab --lab grid.yaml --emulated topology railx --nodes 5 --rails 4 --shape hyperx --from torus --apply",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.topologyRailX(cmd, &f) },
	}
	s := c.Flags()
	s.StringVar(&f.nodes, "nodes", "", "nodes in each row and column: `N`, or columns x rows, such as 21x5")
	s.IntVar(&f.rails, "rails", 0, "rails of each node in each dimension")
	s.StringVar(&f.shape, "shape", "torus", "`SHAPE` that is wanted")
	s.StringVar(&f.from, "from", "", "`SHAPE` of before: print what changes")
	s.IntVar(&f.mesh, "mesh", 0, "a node is a mesh of `M` by M chips (for counts, and to treat all chips alike)")
	s.IntVar(&f.radix, "radix", 0, "duplex ports of a switch (default as many as needed)")
	s.StringArrayVar(&f.dead, "dead", nil, "`COLUMN,ROW` of a node that is bypassed")
	s.StringArrayVar(&f.without, "without", nil, "`SWITCH` that is off, such as X/1/2")
	s.StringArrayVar(&f.detail, "switch", nil, "print only this `SWITCH`, such as X/3/0")
	s.BoolVar(&f.crossConns, "cross-connects", false, "print links as cross-connects of a switch with as many ports as needed")
	s.BoolVar(&f.directed, "directed", false, "want every node to precede every other on some rail: of 4 and 6 nodes that cannot be, and every two are neighbours twice instead")
	s.BoolVar(&f.relabel, "relabel", false, "with --from, also renumber nodes within the rings where that leaves more links")
	s.StringVar(&f.writeLab, "write-lab", "", "write an emulated lab for the grid to `FILE`; - is stdout")
	s.StringVar(&f.model, "model", "", "with --write-lab, the model of its switches (default one with enough ports)")
	s.DurationVar(&f.switching, "switching", 0, "with --write-lab, how long the switches take (default as the model)")
	s.BoolVar(&f.hosts, "hosts", false, "with --write-lab, a host for each node, too")
	s.BoolVar(&f.apply, "apply", false, "bring it about on the switches of the lab")
	s.BoolVar(&f.leave, "leave", true, "with --apply, leave it so; --leave=false puts back what was there")
	s.BoolVar(&f.drain, "drain", false, "with --apply, remove the circuits of switches that are off (--without) first; else they are neither touched nor asked")
	s.StringVar(&f.order, "order", string(grid.Auto), "with --apply, `auto|rolling|together`: one rail at a time, or all at once")
	a.addMode(c, string(ocs.Safe))
	c.AddCommand(a.topologyAllocateCommand())
	return c
}

// railxWish is what the flags ask for.
type railxWish struct {
	grid     railx.Grid
	from, to *railx.Config // from is nil if there is none
	thinned  []railx.Thinned
	only     []railx.Switch
	took     time.Duration // to plan it
	doubled  error         // why all-to-all rings have no direction, nil if they have
}

// doubled returns why some all-to-all dimension of a shape has rings in which every two nodes are neighbours twice, and not each
// before the other once.
func doubled(s railx.Shape) error {
	for _, l := range slices.Concat(s.X, s.Y) {
		if l.Kind == railx.AllToAll && l.Size > 1 {
			if _, err := hamilton.Directed(l.Size); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseGrid reads "5" or "21x5", columns first.
func parseGrid(text string) (columns, rows int, err error) {
	c, r, two := strings.Cut(text, "x")
	if !two {
		r = c
	}
	columns, err = strconv.Atoi(c)
	if err == nil {
		rows, err = strconv.Atoi(r)
	}
	if err != nil || columns < 1 || rows < 1 {
		return 0, 0, fmt.Errorf("--nodes %.40q: want a number of nodes such as 5, or columns and rows such as 21x5", text)
	}
	return columns, rows, nil
}

// parseNode reads "2,3", the column first.
func parseNode(flag, text string) (n railx.Node, err error) {
	c, r, ok := strings.Cut(strings.Trim(text, "()"), ",")
	n.Column, err = strconv.Atoi(strings.TrimSpace(c))
	if err == nil {
		n.Row, err = strconv.Atoi(strings.TrimSpace(r))
	}
	if err != nil || !ok {
		return n, fmt.Errorf("--%s %.40q: want a node as COLUMN,ROW, both from 0, such as 2,3", flag, text)
	}
	return n, nil
}

// parseRail reads "X/3/0".
func parseRail(flag, text string, g railx.Grid) (s railx.Switch, err error) {
	parts := strings.Split(text, "/")
	bad := fmt.Errorf("--%s %.40q: want a switch such as X/3/0, rail 0 of row 3, or Y/2/1, rail 1 of column 2", flag, text)
	if len(parts) != 3 || parts[0] != "X" && parts[0] != "Y" && parts[0] != "x" && parts[0] != "y" {
		return s, bad
	}
	s.Dimension = railx.Dimension(strings.ToUpper(parts[0])[0])
	for i, to := range []*int{&s.Group, &s.Rail} {
		if *to, err = strconv.Atoi(parts[i+1]); err != nil {
			return s, bad
		}
	}
	if !g.Has(s) {
		return s, fmt.Errorf("--%s %v: the grid of %d columns and %d rows with %d rails has no such switch", flag, s, g.Columns, g.Rows, g.Rails)
	}
	return s, nil
}

func (f *railxFlags) wish() (w railxWish, err error) {
	if f.nodes == "" || f.rails == 0 {
		return w, fmt.Errorf("want --nodes and --rails, such as --nodes 5 --rails 4")
	}
	w.grid = railx.Grid{Rails: f.rails, Mesh: f.mesh, Radix: f.radix}
	if w.grid.Columns, w.grid.Rows, err = parseGrid(f.nodes); err != nil {
		return w, err
	}
	if err := w.grid.Check(); err != nil {
		return w, err
	}
	began := time.Now()
	if w.to, err = buildShape(w.grid, f.shape); err != nil {
		return w, fmt.Errorf("--shape: %w", err)
	}
	if w.doubled = doubled(w.to.Shape()); w.doubled != nil && f.directed {
		return w, fmt.Errorf("--shape with --directed: %w", w.doubled)
	}
	var dead []railx.Node
	for _, text := range f.dead {
		n, err := parseNode("dead", text)
		if err != nil {
			return w, err
		}
		dead = append(dead, n)
	}
	if f.from != "" {
		if w.from, err = buildShape(w.grid, f.from); err != nil {
			return w, fmt.Errorf("--from: %w", err)
		}
		if f.relabel {
			w.to = railx.Relabel(w.from, w.to)
		}
		w.to = railx.Settle(w.from, w.to)
	} else if f.relabel {
		return w, fmt.Errorf("--relabel goes with --from")
	}
	if len(dead) > 0 {
		if w.to, err = w.to.Bypass(dead...); err != nil {
			return w, fmt.Errorf("--dead: %w", err)
		}
	}
	off, err := railsOf("without", f.without, w.grid)
	if err != nil {
		return w, err
	}
	if len(off) > 0 {
		if w.to, w.thinned, err = w.to.Without(off...); err != nil {
			return w, fmt.Errorf("--without: %w", err)
		}
	}
	w.took = time.Since(began)
	w.only, err = railsOf("switch", f.detail, w.grid)
	return w, err
}

func railsOf(flag string, texts []string, g railx.Grid) (all []railx.Switch, err error) {
	for _, text := range texts {
		s, err := parseRail(flag, text, g)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func buildShape(g railx.Grid, text string) (*railx.Config, error) {
	s, err := railx.ParseShape(text)
	if err != nil {
		return nil, err
	}
	return railx.Build(g, s)
}

func (a *app) topologyRailX(cmd *cobra.Command, f *railxFlags) error {
	w, err := f.wish()
	if err != nil {
		return usageError{err}
	}
	order := grid.Order(f.order)
	if !slices.Contains([]grid.Order{grid.Auto, grid.Rolling, grid.Together}, order) {
		return usagef("--order %q: want auto, rolling or together", f.order)
	}
	if f.writeLab != "" {
		if f.apply {
			return usagef("--write-lab writes a lab, and --apply drives one: one at a time")
		}
		text, err := grid.LabFile(w.grid, grid.LabOptions{Model: f.model, Switching: f.switching, Seed: 1, Hosts: f.hosts})
		if err != nil {
			return usageError{err}
		}
		return a.writeLab(f.writeLab, text, "railx ... --apply")
	}
	if f.apply {
		return a.applyRailX(cmd.Context(), &w, grid.Options{Order: order, Drain: f.drain}, f.leave)
	}
	return a.printRailX(f, &w)
}

// writeLab writes a lab file for a planner; try is what to give to "ocslab topology" next.
func (a *app) writeLab(path string, text []byte, try string) error {
	if path == "-" {
		_, err := a.out.Write(text)
		return err
	}
	if err := writeOut(path, text, false); err != nil {
		return err
	}
	a.printf("written to %s; try: ocslab --lab %s --emulated topology %s\n", path, path, try)
	return nil
}

// railxLine is a switch of a grid.
type railxLine struct {
	Kind    string   `json:"kind"`   // "railx-switch"
	Switch  string   `json:"switch"` // "X/3/0"
	Rings   [][]int  `json:"rings"`  // of nodes, by their number in the row or column
	Links   [][2]int `json:"links"`  // duplex ports, "+" and "-"
	Map     ocs.Map  `json:"map"`
	Removed [][2]int `json:"removed"` // from --from
	Added   [][2]int `json:"added"`
}

// railxSummary is a grid.
type railxSummary struct {
	Kind      string `json:"kind"` // "railx-plan"
	Shape     string `json:"shape"`
	Columns   int    `json:"columns"`
	Rows      int    `json:"rows"`
	Rails     int    `json:"rails"`
	Nodes     int    `json:"nodes"`
	Chips     int    `json:"chips,omitempty"`
	Switches  int    `json:"switches"`
	Ports     int    `json:"ports_per_switch"`
	Links     int    `json:"links"`
	Diameter  int    `json:"diameter,omitempty"`
	PlanNS    int64  `json:"plan_ns"`
	From      string `json:"from,omitempty"`
	Changed   int    `json:"changed_switches"` // of --from
	Untouched int    `json:"untouched_switches"`
	Removed   int    `json:"removed_links"`
	Added     int    `json:"added_links"`
	Rewired   int    `json:"rewired_ports"`
	// Floor is the fewest links that two nodes with links before and after have when rails are moved one at a
	// time; absent if no two have.
	Floor *int `json:"rolling_floor,omitempty"`
	Steps int  `json:"rolling_steps,omitempty"`
	// Thinned are pairs that have fewer links with switches off.
	Thinned int `json:"thinned_pairs"`
	// Doubled says that all-to-all rings have no direction: of 4 and 6 nodes none can.
	Doubled bool `json:"doubled"`
	// AllToAll is what each chip sends to all others, in port bandwidths, by the fluid model at kappa 2; absent if
	// --mesh is not given, or some row or column is not all-to-all.
	AllToAll float64 `json:"all_to_all_ports,omitempty"`
}

func (w *railxWish) summary() (railxSummary, error) {
	counts, err := w.grid.Counts()
	if err != nil {
		return railxSummary{}, err
	}
	s := railxSummary{
		Kind: "railx-plan", Shape: w.to.Shape().String(), Columns: w.grid.Columns, Rows: w.grid.Rows, Rails: w.grid.Rails,
		Nodes: len(w.to.Nodes()), Chips: counts.Chips, Switches: len(w.to.Switches()), Ports: counts.PortsOfSwitch,
		Links: w.to.CountLinks(), PlanNS: w.took.Nanoseconds(), Thinned: len(w.thinned), Doubled: w.doubled != nil,
	}
	if w.grid.Columns*w.grid.Rows <= 4096 { // of more it takes long
		if d, err := w.to.Diameter(); err == nil {
			s.Diameter = d
		}
	}
	if w.grid.Mesh > 0 && w.grid.Columns*w.grid.Rows <= 4096 {
		if load, err := model.Fluid(w.to, model.Nearest); err == nil {
			s.AllToAll = load.Throughput(model.KappaNeeded)
		}
	}
	if w.from == nil {
		return s, nil
	}
	d := railx.Diff(w.from, w.to)
	s.From, s.Changed, s.Untouched = w.from.Shape().String(), len(d.Switches), d.Untouched
	s.Removed, s.Added, s.Rewired = d.Removed(), d.Added(), d.Ports()
	if steps, floor, _ := railx.Rolling(w.from, w.to); floor != math.MaxInt {
		s.Floor, s.Steps = &floor, len(steps)
	}
	return s, nil
}

func (a *app) printRailX(f *railxFlags, w *railxWish) error {
	s, err := w.summary()
	if err != nil {
		return usageError{err}
	}
	cables, err := railx.Regular(w.grid, 0)
	if err != nil {
		return usageError{err}
	}
	var lines []railxLine
	deltas := map[railx.Switch]railx.SwitchDelta{}
	if w.from != nil {
		for _, d := range railx.Diff(w.from, w.to).Switches {
			deltas[d.Switch] = d
		}
	}
	for _, sw := range w.to.Switches() {
		if len(w.only) > 0 && !slices.Contains(w.only, sw) {
			continue
		}
		maps, err := cables.Maps(map[railx.Switch][]railx.Link{sw: w.to.Links(sw)})
		if err != nil {
			return err
		}
		l := railxLine{Kind: "railx-switch", Switch: sw.String(), Rings: append([][]int{}, w.to.Rings(sw)...), Links: linkPorts(w.to.Links(sw)),
			Removed: linkPorts(deltas[sw].Removed), Added: linkPorts(deltas[sw].Added)}
		for _, m := range maps {
			l.Map = m
		}
		lines = append(lines, l)
	}
	if a.set.JSON {
		for _, l := range lines {
			a.json(l)
		}
		for _, t := range w.thinned {
			a.json(thinnedLine{"railx-thinned", t.A.String(), t.B.String(), t.Before, t.After})
		}
		a.json(s)
		return nil
	}
	a.printRailXHead(&s, w)
	a.printRings(lines, f.crossConns, w.from != nil, len(w.only) > 0)
	a.printThinned(w.thinned)
	return nil
}

type thinnedLine struct {
	Kind   string `json:"kind"` // "railx-thinned"
	A      string `json:"a"`
	B      string `json:"b"`
	Before int    `json:"before"` // links
	After  int    `json:"after"`
}

func linkPorts(links []railx.Link) [][2]int {
	all := make([][2]int, len(links))
	for i, l := range links {
		all[i] = [2]int{int(l.Plus), int(l.Minus)}
	}
	return all
}

func (a *app) printRailXHead(s *railxSummary, w *railxWish) {
	a.printf("%s on %s and %s with %s each way\n", s.Shape, natural.Count(s.Columns, "column"), natural.Count(s.Rows, "row"), natural.Count(s.Rails, "rail"))
	what := natural.Count(s.Nodes, "node")
	if s.Chips > 0 {
		what += fmt.Sprintf(" (%d chips in the whole grid)", s.Chips)
	}
	a.printf("  %s, %s of up to %d duplex ports, %s", what, natural.Count(s.Switches, "switch"), s.Ports, natural.Count(s.Links, "link"))
	if s.Diameter > 0 {
		a.printf(", at most %s between nodes", natural.Count(s.Diameter, "link"))
	}
	a.printf("; planned in %v\n", w.took.Round(10*time.Microsecond))
	if x, y := w.grid.Ports(railx.X), w.grid.Ports(railx.Y); x != y {
		a.printf("  %s of %d duplex ports along rows, %s of %d along columns\n",
			natural.Count(w.grid.Rows*w.grid.Rails, "switch"), x, natural.Count(w.grid.Columns*w.grid.Rails, "switch"), y)
	}
	if s.AllToAll > 0 {
		a.printf("  all-to-all of all chips, by the fluid model: each sends as fast as %.3f of its ports, with meshes twice as fast as those (kappa 2)\n", s.AllToAll)
	}
	told := map[railx.Logical]bool{}
	for _, l := range slices.Concat(w.to.Shape().X, w.to.Shape().Y) {
		if l.Kind == railx.Expander && l.Size > 1 && !told[l] {
			told[l] = true
			if _, gap, err := railx.Expanding(l.Size, l.Rails); err == nil {
				a.printf("  an expander of %d nodes on %s: spectral gap %.3f (1 or more: no bottleneck)\n", l.Size, natural.Count(l.Rails, "rail"), gap)
			}
		}
	}
	if w.doubled != nil {
		a.printf("  all-to-all has no directed rings of that many nodes: every two nodes are neighbours on two rails instead\n")
	}
	if w.from == nil {
		return
	}
	a.printf("  from %s: %s unchanged, %d rewired; %s go, %d come, %d ports\n", s.From, natural.Count(s.Untouched, "switch"),
		s.Changed, natural.Count(s.Removed, "link"), s.Added, s.Rewired)
	switch {
	case s.Changed == 0:
	case s.Floor == nil:
		a.printf("  no two nodes have links before and after: move all at once\n")
	case *s.Floor == 0:
		a.printf("  one rail at a time: some pair that has links before and after has none for a while, whatever the order\n")
	default:
		a.printf("  one rail at a time: in %s; pairs with links before and after keep %d at least\n", natural.Count(s.Steps, "step"), *s.Floor)
	}
}

// printRings prints switches, those of a rail that are alike in all rows or columns on one line.
func (a *app) printRings(lines []railxLine, crossConnects, delta, each bool) {
	type row struct{ name, rings, what string }
	var rows []row
	for _, l := range lines {
		r := row{l.Switch, formatRings(l.Rings), formatLinks(l.Links)}
		if crossConnects {
			r.what = l.Map.String()
		}
		if delta {
			r.what = "unchanged"
			if len(l.Removed)+len(l.Added) > 0 {
				r.what = "-" + strings.ReplaceAll(formatLinks(l.Removed), " ", " -") + " +" + strings.ReplaceAll(formatLinks(l.Added), " ", " +")
			}
		}
		rows = append(rows, r)
	}
	t := table{align: "<<<"}
	heading := "links"
	if crossConnects {
		heading = "cross-connects"
	}
	if delta {
		heading = "change"
	}
	t.row("switch", "rings of nodes", heading)
	type like struct{ dimension, rail, rings, what string }
	groups := map[like][]int{}
	var order []like
	for _, r := range rows {
		parts := strings.Split(r.name, "/")
		k := like{parts[0], parts[2], r.rings, r.what}
		if groups[k] == nil {
			order = append(order, k)
		}
		n, _ := strconv.Atoi(parts[1]) // it was a number
		groups[k] = append(groups[k], n)
	}
	for _, k := range order {
		t.row(k.dimension+"/"+ranges(groups[k])+"/"+k.rail, shorten(k.rings, each), shorten(k.what, each))
	}
	a.printf("\n")
	t.write(a.out, "")
}

// shorten cuts what is long, unless single switches were asked for.
func shorten(text string, whole bool) string {
	const most = 60
	if whole || len(text) <= most {
		return text
	}
	return text[:most-3] + "..."
}

func formatRings(rings [][]int) string {
	if len(rings) == 0 {
		return "-"
	}
	var all []string
	for _, r := range rings {
		all = append(all, strings.Trim(fmt.Sprint(r), "[]"))
	}
	return strings.Join(all, " | ")
}

func formatLinks(links [][2]int) string {
	if len(links) == 0 {
		return "-"
	}
	var all []string
	for _, l := range links {
		all = append(all, fmt.Sprintf("%d-%d", l[0], l[1]))
	}
	return strings.Join(all, " ")
}

func (a *app) printThinned(thinned []railx.Thinned) {
	if len(thinned) == 0 {
		return
	}
	a.printf("\n%s with fewer links:\n", natural.Count(len(thinned), "pair"))
	t := table{align: "  <>>"}
	for i, p := range thinned {
		if i == 20 {
			t.row(fmt.Sprintf("and %d more", len(thinned)-i))
			break
		}
		t.row(p.A.String(), p.B.String(), fmt.Sprintf("%d -> %d", p.Before, p.After))
	}
	t.write(a.out, "  ")
}
