package hbd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// DemoOptions of [Demo].
type DemoOptions struct {
	Options             // Store and the like
	Lab     lab.Options // of which the timeout, the trace, the authority and the command are used
	Seed    uint64      // of the emulated modules
	Model   string      // of the boards; "" is EightModules
	// Trace is replayed on TraceLine with groups of TraceSize nodes; nil replays nothing. For and Emulate are those of
	// [ReplayOptions].
	Trace     []Event
	TraceLine infinitehbd.Line
	TraceSize int
	TraceFor  time.Duration
	Emulate   []Ref
	// Tell is given each result as it is there. Nil tells nobody.
	Tell func(DemoStage)
}

// DemoStage is one thing that was shown.
type DemoStage struct {
	Name  string // "program"
	Title string
	// Plan is how long planning took.
	Plan     time.Duration
	Report   *Report // nil if nothing was switched, or it is that of Bypass
	Bypass   *Bypass
	Cabling  *Cabling
	Replayed *Replayed
	Lines    []string
}

// Nodes of the demonstration: 16, 4 to a ToR, groups of 2 for TP-8.
const (
	demoNodes  = 16
	demoPerToR = 4
	demoSize   = 2
)

// Demo shows InfiniteHBD at work on emulated OCSTrx boards behind real sockets, 256 modules on 32 boards: rings are
// programmed and walked by light; a node dies and is bypassed by the plan that switches the fewest bundles and by that
// which cuts groups anew; the node behind it dies too, with 2 hops and with 3; groups become larger and smaller;
// swapped cables are found; a trace is replayed. Each change is a run in the store. The error is the first thing that
// is not as planned.
func Demo(ctx context.Context, opt DemoOptions) error {
	if opt.Tell == nil {
		opt.Tell = func(DemoStage) {}
	}
	for _, stage := range []func(context.Context, DemoOptions) error{demoRings, demoThreeHops, demoCables, demoTrace} {
		if err := stage(ctx, opt); err != nil {
			return err
		}
	}
	return nil
}

// bed is an emulated line, and what runs on it.
type bed struct {
	*Domain
	opt     DemoOptions
	running *infinitehbd.Plan
}

// newBed opens an emulated lab. Close it.
func newBed(ctx context.Context, hops int, model string, opt DemoOptions, edit func(string) string) (*bed, error) {
	layout, err := infinitehbd.NewLayout(4, hops)
	if err != nil {
		return nil, err
	}
	order, err := infinitehbd.Deploy(demoNodes, demoPerToR)
	if err != nil {
		return nil, err
	}
	line := infinitehbd.Line{Layout: layout, Order: order}
	text, err := LabFile(line, LabOptions{Model: model, Seed: opt.Seed})
	if err != nil {
		return nil, err
	}
	if edit != nil {
		text = []byte(edit(string(text)))
	}
	f, err := lab.Parse("infinitehbd.yaml", text)
	if err != nil {
		return nil, err
	}
	l := lab.New(f, opt.Lab.Forgetful())
	d, err := New(l, line)
	if err == nil {
		err = d.Open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	opt.LabText = text
	return &bed{Domain: d, opt: opt}, nil
}

// options are those of a change that is kept as a run of a name.
func (b *bed) options(name, about string) Options {
	o := b.opt.Options
	o.Name, o.About, o.Mode = "infinitehbd-"+name, about, ocs.Update // the lab is ours alone
	return o
}

// program brings about the rings of the paper's placement.
func (b *bed) program(ctx context.Context, name string, dead ...infinitehbd.Node) (*Report, time.Duration, error) {
	began := time.Now()
	plan, err := Cut(demoSize)(b.blank(), dead)
	if err != nil {
		return nil, 0, err
	}
	planned := time.Since(began)
	r, err := b.Bring(ctx, nil, plan, b.options(name, fmt.Sprintf("%s of %d nodes", natural.Count(len(plan.Groups()), "ring"),
		demoSize)))
	b.running = plan
	return r, planned, err
}

// blank is a plan in which nothing is known.
func (b *bed) blank() *infinitehbd.Plan {
	p, _ := infinitehbd.NewPlan(b.line, nil) // the line has been checked
	return p
}

// demoRings is the line with 2 hops.
func demoRings(ctx context.Context, opt DemoOptions) (err error) {
	b, err := newBed(ctx, 2, opt.Model, opt, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.lab.Close()) }()
	r, planned, err := b.program(ctx, "program")
	if err != nil {
		return err
	}
	lines := append(BundleLines(b.running), RingLines(r.Walk.Rings)...)
	opt.Tell(DemoStage{Name: "program", Title: fmt.Sprintf("%d nodes, %d modules on %d boards: dark to rings of 8 GPUs",
		demoNodes, len(r.Modules), r.Bundles),
		Plan: planned, Report: r, Lines: append(lines, r.Lines()...)})
	for _, by := range []struct {
		name, title string
		plan        Planner
	}{
		{"bypass-cut", "node 6 dies: groups are cut anew, as the paper does", Cut(demoSize)},
		{"bypass", "node 6 dies: the plan that switches the fewest bundles", Fewest(demoSize)},
	} {
		if err := b.bypass(ctx, by.name, by.title, 6, by.plan); err != nil {
			return err
		}
		if by.name == "bypass" {
			break
		}
		if err := b.revive(ctx, 6); err != nil {
			return err
		}
	}
	if err := b.bypass(ctx, "break", "node 10 dies, too: next to node 6 in the line, which 2 hops do not reach over", 10,
		Fewest(demoSize)); err != nil {
		return err
	}
	if err := b.revive(ctx, 6, 10); err != nil {
		return err
	}
	return b.resize(ctx)
}

// bypass has a node die.
func (b *bed) bypass(ctx context.Context, name, title string, n infinitehbd.Node, plan Planner) error {
	o := BypassOptions{Options: b.options(name, title), Plan: plan,
		Fail: func(ctx context.Context) error { return b.SetPower(ctx, n, false) }}
	p, err := b.Domain.Bypass(ctx, b.running, o)
	if err != nil {
		return err
	}
	if p.Failure.Node != n {
		return fmt.Errorf("node %d died, and node %d was found", n, p.Failure.Node)
	}
	b.running = p.Plan
	lines := append(p.Lines(), p.Report.Lines()...)
	b.opt.Tell(DemoStage{Name: name, Title: title, Plan: p.Planning, Bypass: p, Lines: lines})
	return nil
}

// revive gives nodes their power back, and brings about the first rings again.
func (b *bed) revive(ctx context.Context, nodes ...infinitehbd.Node) error {
	for _, n := range nodes {
		if err := b.SetPower(ctx, n, true); err != nil {
			return err
		}
	}
	_, _, err := b.program(ctx, "revive")
	return err
}

// resize goes from 8 GPUs to 16 and back.
func (b *bed) resize(ctx context.Context) error {
	for _, size := range []int{2 * demoSize, demoSize} {
		began := time.Now()
		to, err := infinitehbd.Resize(b.running, size)
		if err != nil {
			return err
		}
		planned := time.Since(began)
		name, title := fmt.Sprintf("tp-%d", 4*size), fmt.Sprintf("rings of %d GPUs each", 4*size)
		r, err := b.Bring(ctx, b.running, to.Plan, b.options(name, title))
		if err != nil {
			return err
		}
		b.running = to.Plan
		b.opt.Tell(DemoStage{Name: name, Title: title, Plan: planned, Report: r, Lines: append(r.Lines(), RingLines(r.Walk.Rings)...)})
	}
	return nil
}

// demoThreeHops is the same with 3 hops, and one module to a bundle: nodes 6 and 10 die, and the line does not break.
func demoThreeHops(ctx context.Context, opt DemoOptions) (err error) {
	b, err := newBed(ctx, 3, OneModule, opt, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.lab.Close()) }()
	if _, _, err := b.program(ctx, "three-hops"); err != nil {
		return err
	}
	if err := b.bypass(ctx, "three-hops-6", "with 3 hops, one module to a bundle: node 6 dies", 6, Fewest(demoSize)); err != nil {
		return err
	}
	return b.bypass(ctx, "three-hops-10", "and node 10: 3 hops reach over both", 10, Fewest(demoSize))
}

// demoCables swaps two cables.
func demoCables(ctx context.Context, opt DemoOptions) (err error) {
	b, err := newBed(ctx, 2, OneModule, opt, func(text string) string {
		text = strings.Replace(text, "b: n05-l/1}\n", "b: n05-l/1, emulate: {b: n09-l/1}}\n", 1)
		return strings.Replace(text, "b: n09-l/1}\n", "b: n09-l/1, emulate: {b: n05-l/1}}\n", 1)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.lab.Close()) }()
	began := time.Now()
	c, err := b.CheckCables(ctx)
	if err != nil {
		return err
	}
	opt.Tell(DemoStage{Name: "cables", Title: "two cables are swapped, and light tells which", Cabling: c, Lines: append(c.Text,
		fmt.Sprintf("%d fibres right, %d wrong: found in %d rounds and %v", c.Fibres, len(c.Wrong), c.Rounds,
			time.Since(began).Round(time.Millisecond)))})
	return nil
}

// demoTrace replays a trace.
func demoTrace(ctx context.Context, opt DemoOptions) error {
	if opt.Trace == nil {
		return nil
	}
	r, err := Replay(ctx, opt.Trace, ReplayOptions{Line: opt.TraceLine, Size: opt.TraceSize, For: opt.TraceFor,
		Emulate: opt.Emulate, Seed: opt.Seed})
	if err != nil {
		return err
	}
	opt.Tell(DemoStage{Name: "trace", Title: fmt.Sprintf("%.1f days of faults on %d nodes", r.For.Hours()/24,
		len(opt.TraceLine.Order)),
		Plan: r.Planning, Replayed: r, Lines: r.Lines()})
	return nil
}
