package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/ocslab/ocslab/experiment/hbd"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// infiniteOptions are how bundles are brought to a plan and that is recorded: under --mode, and not where a panic is in
// force, be it now or by the time that a change is to be sent.
func (a *app) infiniteOptions(l *lab.Lab) (opt hbd.Options, err error) {
	with, err := a.executionOptions()
	if err != nil {
		return opt, err
	}
	if err := a.noPanic(l.File, with.Lab); err != nil {
		return opt, fmt.Errorf("nothing is moved: %w", err)
	}
	opt.Store = with.Store
	opt.Version, opt.Revision, opt.Args = with.Version, with.Revision, os.Args[1:]
	opt.Mode = ocs.Safe // of commands without --mode
	if a.set.Mode != "" {
		if opt.Mode, err = a.moveMode(); err != nil {
			return opt, err
		}
	}
	return opt, nil
}

// applyInfiniteHBD brings a plan about on the lab: first that of before, if there is one.
func (a *app) applyInfiniteHBD(ctx context.Context, f *infiniteFlags, w *infiniteWish) error {
	l, err := a.lab()
	if err != nil {
		return err
	}
	if l == nil {
		return usagef("--apply needs --lab FILE: \"ocslab topology infinitehbd --nodes %d --hops %d --tp %d --write-lab FILE\" writes an emulated one", f.nodes, f.hops, f.tp)
	}
	if err := sameLine(l, w.line); err != nil {
		return usageError{err}
	}
	d, err := hbd.New(l, w.line)
	if err != nil {
		return usageError{err}
	}
	opt, err := a.infiniteOptions(l)
	if err != nil {
		return err
	}
	dead := w.dead
	if w.before != nil {
		dead = w.before.Dead()
	}
	if err := d.Open(ctx, dead...); err != nil {
		return err
	}
	found, err := d.States(ctx)
	if err != nil && found == nil {
		return err
	}
	steps := []*infinitehbd.Plan{w.plan}
	if w.before != nil {
		steps = []*infinitehbd.Plan{w.before, w.plan}
	}
	opt.Ours = steps
	err = a.bringSteps(ctx, d, steps, w.tp, opt)
	if f.leave {
		return err
	}
	ctx = context.WithoutCancel(ctx) // whoever has gone
	opt.About = "InfiniteHBD: as it was found"
	_, back := d.Bring(ctx, nil, found, opt)
	return errors.Join(err, back, a.darkenAgain(ctx, d, found, dead))
}

// bringSteps brings plans about one after another.
func (a *app) bringSteps(ctx context.Context, d *hbd.Domain, steps []*infinitehbd.Plan, tp int, opt hbd.Options) error {
	for i, to := range steps {
		opt.About = fmt.Sprintf("InfiniteHBD: %s of %d GPUs", natural.Count(len(to.Groups()), "ring"), tp)
		if i < len(steps)-1 {
			opt.About += ", before the change"
		}
		r, err := d.Bring(ctx, nil, to, opt)
		if r != nil {
			a.printBrought(opt.About, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// darkenAgain takes the light from nodes that were dark when they were found, which a plan takes for dead.
func (a *app) darkenAgain(ctx context.Context, d *hbd.Domain, found *infinitehbd.Plan, dead []infinitehbd.Node) error {
	var others []infinitehbd.Node
	dark := found.Dead()
	for _, n := range d.Line().Order {
		if !slices.Contains(dark, n) || slices.Contains(dead, n) {
			others = append(others, n)
		}
	}
	if len(others) == len(d.Line().Order) {
		return nil
	}
	return d.Darken(ctx, others...)
}

// sameLine returns why a line is not the one that the cables of a lab say, if it has any.
func sameLine(l *lab.Lab, line infinitehbd.Line) error {
	if len(l.File.Cables) == 0 {
		return nil
	}
	have, err := hbd.LineOf(l.File, line.Layout)
	if err != nil {
		return err
	}
	if slices.Equal(have.Order, line.Order) && have.Closed == line.Closed {
		return nil
	}
	text := func(x infinitehbd.Line) string {
		end := ""
		if x.Closed {
			end = ", closed"
		}
		return joinInts(numbers(x.Order)) + end
	}
	return fmt.Errorf("the cables of the lab are those of the line %s, and the plan is for %s: see --per-tor and --closed", text(have), text(line))
}

// Lines of --apply with --json.
type (
	infiniteModule struct {
		Kind     string `json:"kind"` // "infinitehbd-module"
		Node     int    `json:"node"`
		Bundle   string `json:"switch"`
		Module   int    `json:"module"`
		From     string `json:"from"`
		To       string `json:"to"`
		BusyNS   int64  `json:"busy_ns"` // from the command
		Settled  int64  `json:"settled_ns"`
		Clear    *int64 `json:"light_ns,omitempty"`
		Locked   *int64 `json:"locked_ns,omitempty"`
		TookNS   int64  `json:"took_ns"` // by the module's own log
		Switches uint32 `json:"switches"`
		Width    int64  `json:"uncertainty_ns"` // of locked, or of settled
	}
	infiniteDone struct {
		Kind    string `json:"kind"` // "infinitehbd-applied"
		Run     string `json:"run"`
		Bundles int    `json:"bundles"`
		Lanes   int    `json:"lanes"`
		Rings   int    `json:"rings"` // that the light closes
		Lit     int    `json:"lit_lanes"`
		Alarms  int    `json:"half_open_alarms"`
		Light   int64  `json:"light_ns"` // from the first command; at most
		Locked  int64  `json:"locked_ns"`
		TookNS  int64  `json:"took_ns"`
	}
)

func (a *app) printBrought(about string, r *hbd.Report) {
	since := func(x timeline.Interval) int64 {
		if x == (timeline.Interval{}) {
			return 0
		}
		return x.Latest - r.Command.Earliest
	}
	done := infiniteDone{Kind: "infinitehbd-applied", Run: r.Run, Bundles: r.Bundles, Lanes: r.Lanes, Alarms: len(r.Alarms),
		Light: since(r.Light), Locked: since(r.Locked), TookNS: r.Took.Nanoseconds()}
	if r.Walk != nil {
		done.Rings, done.Lit = len(r.Walk.Rings), r.Walk.Lit
	}
	if a.set.JSON {
		for i := range r.Modules {
			a.json(infiniteModuleOf(&r.Modules[i]))
		}
		a.json(done)
		return
	}
	a.printf("%s\n", about)
	if r.Bundles == 0 {
		a.printf("  no bundle was switched\n")
	} else {
		a.printf("  %s, %s: all light after %.2f ms, all locked after %.2f ms from the first command\n", natural.Count(r.Bundles, "bundle"), natural.Count(r.Lanes, "lane"),
			inMS(done.Light), inMS(done.Locked))
	}
	if len(r.Groups) > 0 {
		longest := r.Groups[0]
		for _, g := range r.Groups {
			if g.Down.Latest > longest.Down.Latest {
				longest = g
			}
		}
		a.printf("  the ring of nodes %s was away longest: %v\n", joinInts(numbers(longest.Group)), down(longest.Down))
	}
	for _, h := range r.Alarms {
		a.printf("  half open: %s for %v\n", h.Text, down(h.For))
	}
	if r.Walk != nil {
		a.printf("  walked by light: %s, %s lit\n", natural.Count(done.Rings, "ring"), natural.Count(done.Lit, "lane"))
	}
	if r.Run != "" {
		a.printf("  \"ocslab runs show %s\" has every mark\n", r.Run)
	}
}

func down(x timeline.Interval) string {
	return fmt.Sprintf("%.2f to %.2f ms", inMS(x.Earliest), inMS(x.Latest))
}

func infiniteModuleOf(m *hbd.ModuleTime) infiniteModule {
	from := m.Command.Earliest
	l := infiniteModule{Kind: "infinitehbd-module", Node: int(m.Node), Bundle: m.Switch, Module: m.Module, From: m.From.String(), To: m.To.String(),
		BusyNS: m.Busy.Latest - from, Settled: m.Settled.Latest - from, TookNS: m.Took.Nanoseconds(), Switches: m.Switches, Width: int64(m.Settled.Width())}
	after := func(x timeline.Interval) *int64 {
		if x == (timeline.Interval{}) {
			return nil
		}
		ns := x.Latest - from
		l.Width = int64(x.Width())
		return &ns
	}
	l.Clear, l.Locked = after(m.Clear), after(m.Locked)
	return l
}
