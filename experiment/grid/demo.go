package grid

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/railx"
	"github.com/ocslab/ocslab/topology/railx/alloc"
)

// Gap is the pause between communication along the context and expert dimensions of a training job, in which a
// dimension could be used for the other (RailX, section 5.2 and appendix A.4).
const Gap = 6 * time.Millisecond

// DemoOptions of [Demo].
type DemoOptions struct {
	sequence.Options               // Store, History and the like
	Switching        time.Duration // of the emulated switches; 0 is 25 ms
	Toggles          int           // of a dimension between two uses; 0 is 50
	Seed             uint64
	// Tell is given each result as it is there. Nil prints nothing.
	Tell func(DemoStage)
}

// DemoStage is one thing that was shown.
type DemoStage struct {
	Name  string // "hyperx"
	Title string
	// Plan is how long planning took.
	Plan    time.Duration
	Moved   *Report // nil if nothing was
	Lines   []string
	Toggles []Toggles // of the stage "toggle"
}

// Toggles are how long changes took that go to and fro.
type Toggles struct {
	Switching time.Duration // of the emulated switches
	// Ack is from the first command to the last reply, Light to the last light, of those changes of which every monitor
	// saw the light go and come: a switch that is quicker than its monitors leaves few.
	Ack, Light []timeline.Interval
}

// Demo shows a RailX grid at work on emulated switches behind real sockets: torus to HyperX, a dead node, a dead switch, a Dragonfly,
// a dimension that goes to and fro between two uses, and a grid around faults (of which a slice is emulated). Each
// stage is a run in the store. The error is the first thing that is not as planned.
func Demo(ctx context.Context, opt DemoOptions) error {
	opt.Lab = opt.Lab.Forgetful() // without the memory of other demonstrations
	if opt.Switching == 0 {
		opt.Switching = 25 * time.Millisecond
	}
	if opt.Toggles == 0 {
		opt.Toggles = 50
	}
	if opt.Tell == nil {
		opt.Tell = func(DemoStage) {}
	}
	for _, stage := range []func(context.Context, DemoOptions) error{demoGrid, demoDragonfly, demoToggle, demoFaults} {
		if err := stage(ctx, opt); err != nil {
			return err
		}
	}
	return nil
}

// emulated returns an emulated lab for a grid.
func emulated(g railx.Grid, switching time.Duration, seed uint64) (*lab.File, []byte, railx.Cables, error) {
	text, err := LabFile(g, LabOptions{Switching: switching, Seed: seed, Hosts: true})
	if err != nil {
		return nil, nil, nil, err
	}
	f, err := lab.Parse("railx.yaml", text)
	if err != nil {
		return nil, nil, nil, err
	}
	cables, err := Cables(context.Background(), f, g, nil) // the lab has hosts: nobody is asked
	return f, text, cables, err
}

// bed is an emulated lab and what is shown on it.
type bed struct {
	opt    DemoOptions
	file   *lab.File
	text   []byte
	cables railx.Cables
}

func newBed(g railx.Grid, opt DemoOptions) (*bed, error) {
	f, text, cables, err := emulated(g, opt.Switching, opt.Seed)
	return &bed{opt, f, text, cables}, err
}

// move brings the bed from one configuration to another; from may be nil.
func (b *bed) move(ctx context.Context, name string, from, to *railx.Config, order Order) (*railx.Config, *Report, error) {
	o := b.opt.Options
	o.Name, o.LabText = "railx-"+name, b.text
	return Apply(ctx, b.file, b.cables, from, to, Options{Options: o, Order: order, Drain: true})
}

// demoGrid is 5 x 5 nodes with 4 rails.
func demoGrid(ctx context.Context, opt DemoOptions) error {
	g := railx.Grid{Columns: 5, Rows: 5, Rails: 4, Mesh: 2}
	b, err := newBed(g, opt)
	if err != nil {
		return err
	}
	began := time.Now()
	torus, err := railx.Build(g, railx.Torus2D())
	if err != nil {
		return err
	}
	plan := time.Since(began)
	_, r, err := b.move(ctx, "torus", nil, torus, Together)
	if err != nil {
		return err
	}
	opt.Tell(DemoStage{Name: "torus", Title: "5 x 5 nodes, 4 rails: 40 switches, dark to torus", Moved: r, Plan: plan})

	began = time.Now()
	hyperx, err := railx.Build(g, railx.HyperX2D())
	if err != nil {
		return err
	}
	hyperx = railx.Settle(torus, hyperx)
	plan = time.Since(began)
	for _, order := range []Order{Together, Rolling} {
		if _, r, err = b.move(ctx, "hyperx", torus, hyperx, order); err != nil {
			return err
		}
		title := "torus to HyperX, all switches at once"
		if order == Rolling {
			title = "the same, one rail at a time"
		}
		opt.Tell(DemoStage{Name: "hyperx-" + string(order), Title: title, Plan: plan, Moved: r})
	}
	if err := b.deadNode(ctx, hyperx, railx.Node{Column: 2, Row: 3}); err != nil {
		return err
	}
	return b.deadSwitch(ctx, hyperx, railx.Switch{Dimension: railx.X, Group: 1, Rail: 2})
}

// deadNode takes a node out of its rings.
func (b *bed) deadNode(ctx context.Context, hyperx *railx.Config, dead railx.Node) error {
	began := time.Now()
	bypass, err := hyperx.Bypass(dead)
	if err != nil {
		return err
	}
	plan := time.Since(began)
	_, r, err := b.move(ctx, "bypass", hyperx, bypass, Together)
	if err != nil {
		return err
	}
	// What wiring the rest anew would take: the largest grid without the node loses its row or its column.
	g := hyperx.Grid()
	left, err := alloc.Largest(g.Columns, g.Rows, []railx.Node{dead})
	if err != nil {
		return err
	}
	columns, rows := left.Kept()
	anew, err := railx.BuildOn(g, railx.Split(
		[]railx.Logical{{Kind: railx.AllToAll}}, []railx.Logical{{Kind: railx.AllToAll}}), railx.Rectangle{Columns: columns, Rows: rows})
	lines := []string{fmt.Sprintf("row %d and column %d are all-to-all without %v, and the others were not touched", dead.Row, dead.Column, dead)}
	if err == nil {
		d := railx.Diff(hyperx, railx.Settle(hyperx, anew))
		lines = append(lines, fmt.Sprintf("to wire the largest grid without it anew (%v): %d switches, %d links removed, %d added, and %d nodes left instead of %d",
			left, len(d.Switches), d.Removed(), d.Added(), left.Nodes(), len(bypass.Nodes())))
	}
	b.opt.Tell(DemoStage{Name: "bypass", Title: fmt.Sprintf("node %v dies and is bypassed", dead), Plan: plan, Moved: r, Lines: lines})
	return nil
}

// deadSwitch turns a switch off.
func (b *bed) deadSwitch(ctx context.Context, hyperx *railx.Config, off railx.Switch) error {
	began := time.Now()
	rest, thinned, err := hyperx.Without(off)
	if err != nil {
		return err
	}
	plan := time.Since(began)
	_, r, err := b.move(ctx, "switch-off", hyperx, rest, Together)
	if err != nil {
		return err
	}
	var pairs []string
	for _, t := range thinned {
		if t.After == 0 {
			return fmt.Errorf("without %v, %v and %v have no link", off, t.A, t.B)
		}
		pairs = append(pairs, fmt.Sprintf("%v-%v", t.A, t.B))
	}
	b.opt.Tell(DemoStage{Name: "switch-off", Title: fmt.Sprintf("switch %v goes dark", off), Plan: plan, Moved: r, Lines: []string{
		fmt.Sprintf("every pair of row %d still has a link; at half bandwidth: %s", off.Group, strings.Join(pairs, " "))}})
	return nil
}

// demoDragonfly is 21 groups of 5 nodes.
func demoDragonfly(ctx context.Context, opt DemoOptions) error {
	g := railx.Grid{Columns: 21, Rows: 5, Rails: 4, Mesh: 2}
	b, err := newBed(g, opt)
	if err != nil {
		return err
	}
	began := time.Now()
	dragonfly, err := railx.Build(g, railx.Dragonfly())
	if err != nil {
		return err
	}
	plan := time.Since(began)
	diameter, err := dragonfly.Diameter()
	if err != nil {
		return err
	}
	_, r, err := b.move(ctx, "dragonfly", nil, dragonfly, Together)
	if err != nil {
		return err
	}
	opt.Tell(DemoStage{Name: "dragonfly", Title: "Dragonfly of 21 groups of 5 nodes: 20 switches of 42 ports and 84 of 10", Plan: plan, Moved: r,
		Lines: []string{fmt.Sprintf("at most %d links between nodes", diameter)}})
	return nil
}

// demoToggle has a row of 9 nodes go to and fro between 3 rings of 3 (context parallelism) and all-to-all among 3
// (experts) on all rails.
func demoToggle(ctx context.Context, opt DemoOptions) error {
	g := railx.Grid{Columns: 9, Rows: 1, Rails: 4, Mesh: 2}
	began := time.Now()
	split, err := railx.Build(g, railx.Split([]railx.Logical{{Kind: railx.Torus, Size: 3, Rails: 2}, {Kind: railx.AllToAll, Size: 3, Rails: 2}}, nil))
	if err != nil {
		return err
	}
	// One use has all rails as the first two of the split are, the other as the last two are.
	cp, err := like(split, 0, 1)
	if err != nil {
		return err
	}
	ep, err := like(split, 2, 3)
	if err != nil {
		return err
	}
	plan := time.Since(began)
	stage := DemoStage{Name: "toggle", Plan: plan,
		Title: fmt.Sprintf("a row of 9 nodes goes to and fro between two uses (CP and EP) %d times", opt.Toggles)}
	for _, switching := range []time.Duration{opt.Switching, time.Millisecond} {
		o := opt
		o.Switching = switching
		b, err := newBed(g, o)
		if err != nil {
			return err
		}
		took, err := b.toggle(ctx, cp, ep)
		if err != nil {
			return err
		}
		stage.Toggles = append(stage.Toggles, Toggles{switching, took.acks, took.lights})
		stage.Lines = append(stage.Lines, took.lines(switching)...)
	}
	opt.Tell(stage)
	return nil
}

// like returns a configuration whose rails have, in turn, the links of some of c's.
func like(c *railx.Config, rails ...int) (*railx.Config, error) {
	links := map[railx.Switch][]railx.Link{}
	for s := range switches(c.Grid()) {
		of := s
		of.Rail = rails[s.Rail%len(rails)]
		links[s] = c.Links(of)
	}
	return c.Observed(links)
}

// toggled is how long changes took, from the first command.
type toggled struct{ acks, lights []timeline.Interval }

// toggle goes to and fro.
func (b *bed) toggle(ctx context.Context, one, other *railx.Config) (toggled, error) {
	var steps []sequence.Step
	maps := [2]sequence.Step{{Name: "cp"}, {Name: "ep"}}
	for i, c := range []*railx.Config{one, other} {
		m, err := c.Maps(b.cables)
		if err != nil {
			return toggled{}, err
		}
		maps[i].Maps = m
	}
	for i := range b.opt.Toggles + 1 { // the first is from the dark
		steps = append(steps, maps[i%2])
	}
	o := b.opt.Options
	o.Name, o.LabText = "railx-toggle", b.text
	var took toggled
	o.After = func(_ context.Context, step int, mv experiment.Move) error {
		if step > 0 {
			took.add(mv)
		}
		return nil
	}
	_, err := sequence.Play(ctx, b.file, steps, o)
	return took, err
}

// add adds a change.
func (t *toggled) add(mv experiment.Move) {
	var first, acked, lit timeline.Interval
	count := map[timeline.Stage]int{}
	for _, m := range mv.Marks {
		count[m.Stage]++
		switch m.Stage {
		case timeline.Command:
			if count[m.Stage] == 1 {
				first = m.Interval
			}
			first = timeline.Earlier(first, m.Interval)
		case timeline.Ack:
			acked = timeline.Later(acked, m.Interval)
		case timeline.Light:
			lit = timeline.Later(lit, m.Interval)
		}
	}
	expected := 0
	for _, e := range mv.Expected {
		if e.Stage == timeline.Light {
			expected++
		}
	}
	if count[timeline.Command] == 0 {
		return
	}
	t.acks = append(t.acks, acked.Sub(first))
	if expected > 0 && count[timeline.Light] == expected {
		t.lights = append(t.lights, lit.Sub(first))
	}
}

// lines say what the changes came to.
func (t *toggled) lines(switching time.Duration) []string {
	took, until := t.lights, "last light"
	if 2*len(t.lights) < len(t.acks) {
		took, until = t.acks, fmt.Sprintf("last reply (light was resolved in %d of %d: it is back before the monitors read again)", len(t.lights), len(t.acks))
	}
	median, worst := timeline.Quantile(took, 0.5), timeline.Quantile(took, 0.99)
	verdict := fmt.Sprintf("fits into the gap of %v", Gap)
	if over := time.Duration(worst.Latest) - Gap; over > 0 {
		verdict = fmt.Sprintf("misses the gap of %v by up to %.1f ms", Gap, over.Seconds()*1000)
	}
	return append([]string{fmt.Sprintf("switches of %v, %d changes, first command to %s:", switching, len(took), until),
		fmt.Sprintf("  median %s, p99 %s: %s", msText(median), msText(worst), verdict)}, histogram(took)...)
}

func msText(i timeline.Interval) string {
	return fmt.Sprintf("%.1f ms ±%.1f", float64(i.Mid())/1e6, float64(i.Width())/2e6)
}

// histogram draws durations by their middles.
func histogram(took []timeline.Interval) []string {
	const bins, wide = 8, 40
	if len(took) == 0 {
		return nil
	}
	low, high := took[0].Mid(), took[0].Mid()
	for _, t := range took {
		low, high = min(low, t.Mid()), max(high, t.Mid())
	}
	width := max(1, (high-low+bins)/bins)
	counts := make([]int, bins)
	for _, t := range took {
		counts[min(bins-1, int((t.Mid()-low)/width))]++
	}
	most := slices.Max(counts)
	var lines []string
	for i, n := range counts {
		from := float64(low+int64(i)*width) / 1e6
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %6.2f ms  %3d  %s", from, n, strings.Repeat("#", (n*wide+most-1)/most)), " "))
	}
	return lines
}

// demoFaults wires what faults leave of 64 x 64 nodes; the first rails of one row of that are emulated.
func demoFaults(ctx context.Context, opt DemoOptions) error {
	const side, rails, slice = 64, 63, 8
	rng := rand.New(rand.NewPCG(opt.Seed, 0))
	var dead []railx.Node
	for row := range side {
		for column := range side {
			if rng.Float64() < 0.001 {
				dead = append(dead, railx.Node{Column: column, Row: row})
			}
		}
	}
	began := time.Now()
	left, err := alloc.Largest(side, side, dead)
	if err != nil {
		return err
	}
	found := time.Since(began)
	columns, rows := left.Kept()
	g := railx.Grid{Columns: side, Rows: side, Rails: rails}
	all, err := railx.BuildOn(g, railx.HyperX2D(), railx.Rectangle{Columns: columns, Rows: rows})
	if err != nil {
		return err
	}
	plan := time.Since(began)

	// The slice: a row of the grid with its first rails, as a grid of its own.
	part := railx.Grid{Columns: side, Rows: 1, Rails: slice}
	b, err := newBed(part, opt)
	if err != nil {
		return err
	}
	links := map[railx.Switch][]railx.Link{}
	for rail := range slice {
		links[railx.Switch{Dimension: railx.X, Rail: rail}] = all.Links(railx.Switch{Dimension: railx.X, Group: rows[0], Rail: rail})
	}
	run, rings, err := b.links(ctx, part, links)
	if err != nil {
		return err
	}
	opt.Tell(DemoStage{Name: "faults", Title: fmt.Sprintf("%d dead nodes among 64 x 64: HyperX on what is left", len(dead)), Plan: plan, Lines: []string{
		fmt.Sprintf("%v (found in %v)", left, found.Round(time.Microsecond)),
		fmt.Sprintf("planned: %d switches, %d links; emulated: the first %d rails of row %d, %d rings of %d nodes read back as planned (run %s)",
			len(all.Switches()), all.CountLinks(), slice, rows[0], rings, len(columns), run)}})
	return nil
}

// links brings links of a grid about, reads them back and returns how many rings they are.
func (b *bed) links(ctx context.Context, g railx.Grid, want map[railx.Switch][]railx.Link) (run string, rings int, err error) {
	maps, err := b.cables.Maps(want)
	if err != nil {
		return "", 0, err
	}
	o := b.opt.Options
	o.Name, o.LabText = "railx-slice", b.text
	var session *sequence.Session
	o.Opened = func(s *sequence.Session) error { session = s; return nil }
	o.After = func(ctx context.Context, _ int, _ experiment.Move) error {
		circuits, err := Read(ctx, session.Testbed.Lab, b.cables)
		if err != nil {
			return err
		}
		now, err := b.cables.Links(circuits)
		if err != nil {
			return err
		}
		plain, err := railx.Build(g, railx.Torus2D())
		if err != nil {
			return err
		}
		c, err := plain.Observed(now)
		if err != nil {
			return err
		}
		for s, links := range want {
			if !slices.Equal(c.Links(s), links) {
				return fmt.Errorf("%v holds other links than planned", s)
			}
			found, err := c.Trace(s)
			if err != nil {
				return err
			}
			rings += len(found)
		}
		return nil
	}
	r, err := sequence.Play(ctx, b.file, []sequence.Step{{Name: "slice", Maps: maps}}, o)
	if r != nil {
		run = r.ID
	}
	return run, rings, err
}
