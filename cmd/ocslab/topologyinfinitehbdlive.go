package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/hbd"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// lineFlags say which line of nodes a lab has.
type lineFlags struct {
	gpus, hops int
	distances  []int
	dead       string
}

func (f *lineFlags) add(c *cobra.Command) {
	s := c.Flags()
	s.IntVar(&f.gpus, "gpus", 4, "GPUs of a node")
	s.IntVar(&f.hops, "hops", 2, "K: how many nodes away a bundle reaches, and bundles of a node")
	s.IntSliceVar(&f.distances, "distances", nil, "they reach these distances instead, such as 1,2,4")
	s.StringVar(&f.dead, "dead", "", "`NODES` that are dead, and not asked")
}

// domain opens the line of the lab.
func (a *app) domain(ctx context.Context, f *lineFlags) (*hbd.Domain, []infinitehbd.Node, error) {
	l, err := a.lab()
	if err != nil {
		return nil, nil, err
	}
	if l == nil {
		return nil, nil, usagef("want --lab FILE: \"ocslab topology infinitehbd --nodes 4 --tp 8 --write-lab FILE\" writes an emulated one")
	}
	layout, err := (&infiniteFlags{gpus: f.gpus, hops: f.hops, distances: f.distances}).layout()
	if err != nil {
		return nil, nil, usageError{err}
	}
	line, err := hbd.LineOf(l.File, layout)
	if err != nil {
		return nil, nil, usageError{err}
	}
	dead, err := parseNodes("dead", f.dead)
	if err != nil {
		return nil, nil, usageError{err}
	}
	for _, n := range dead {
		if !slices.Contains(line.Order, n) {
			return nil, nil, usagef("--dead: the lab has no node %d", n)
		}
	}
	d, err := hbd.New(l, line)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return d, dead, d.Open(ctx, dead...)
}

func (a *app) infiniteWalkCommand() *cobra.Command {
	var f lineFlags
	c := &cobra.Command{
		Use:   "walk",
		Short: "Walk the rings of a lab by their light",
		Long: `Ask every bundle of the lab what its lanes do, what light they send and what light they get, and
follow that from GPU to GPU. Nothing is changed, and nothing of any plan is believed. Exit code
5: light is missing somewhere.`,
		Example: "  ocslab --lab hbd.yaml topology infinitehbd walk",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, dead, err := a.domain(cmd.Context(), &f)
			if err != nil {
				return err
			}
			w, err := d.Walk(cmd.Context(), dead...)
			if err != nil {
				return err
			}
			return a.printWalk(d, w)
		},
	}
	f.add(c)
	return c
}

// infiniteWalk is what the light of a line says.
type infiniteWalk struct {
	Kind     string     `json:"kind"` // "infinitehbd-walk"
	Rings    [][]string `json:"rings"`
	Chains   [][]string `json:"chains"` // of GPUs that do not close to a ring
	Lit      int        `json:"lit_lanes"`
	NoLight  int        `json:"lanes_without_light"`
	Unlocked int        `json:"lanes_not_locked"`
	HalfOpen []string   `json:"half_open"`
	Mixed    []string   `json:"mixed"`  // switches whose lanes are not all alike
	Silent   []string   `json:"silent"` // switches that do not answer
}

func gpuNames(all [][]infinitehbd.GPU) [][]string {
	names := make([][]string, len(all))
	for i, ring := range all {
		for _, g := range ring {
			names[i] = append(names[i], g.String())
		}
	}
	return names
}

func (a *app) printWalk(d *hbd.Domain, w *hbd.Walk) error {
	line := d.Line()
	out := infiniteWalk{Kind: "infinitehbd-walk", Rings: gpuNames(w.Rings), Chains: gpuNames(w.Chains), Lit: w.Lit, NoLight: len(w.NoLight), Unlocked: len(w.Unlocked),
		HalfOpen: []string{}, Mixed: []string{}, Silent: []string{}}
	for _, c := range w.HalfOpen {
		out.HalfOpen = append(out.HalfOpen, line.Name(c.A)+" - "+line.Name(c.B))
	}
	for _, r := range w.Mixed {
		out.Mixed = append(out.Mixed, d.Name(r))
	}
	for _, r := range w.Silent {
		out.Silent = append(out.Silent, d.Name(r))
	}
	if a.set.JSON {
		a.json(out)
	} else {
		for _, l := range hbd.RingLines(w.Rings) {
			a.printf("%s\n", l)
		}
		for _, chain := range out.Chains {
			a.printf("not closed: %s\n", shorten(strings.Join(chain, " "), false))
		}
		a.printf("%s lit\n", natural.Count(w.Lit, "lane"))
	}
	if w.Whole() {
		return nil
	}
	return fmt.Errorf("%w: %s", ocs.ErrVerify, walkFaults(out))
}

// walkFaults says what is not as it should be.
func walkFaults(w infiniteWalk) string {
	var all []string
	add := func(n int, what, tail string, names []string) {
		if n == 0 {
			return
		}
		text := natural.Count(n, what) + tail
		if len(names) > 0 {
			text += " (" + strings.Join(names[:min(3, len(names))], ", ") + ")"
		}
		all = append(all, text)
	}
	add(len(w.Silent), "bundle", " without an answer", w.Silent)
	add(len(w.Mixed), "bundle", " whose lanes differ", w.Mixed)
	add(len(w.HalfOpen), "cable", " half open", w.HalfOpen)
	add(w.NoLight, "lane", " without light", nil)
	add(w.Unlocked, "lane", " not locked", nil)
	add(len(w.Chains), "chain", " of GPUs not closed", nil)
	return strings.Join(all, "; ")
}

func (a *app) infiniteCablesCommand() *cobra.Command {
	var f lineFlags
	var dark bool
	c := &cobra.Command{
		Use:   "check-cables",
		Short: "Find swapped and dead cables of a lab by light",
		Long: `Light the lanes of all bundles in a pattern that tells each of them, and see who receives what.
That takes a few seconds, and all light there is: bundles have to be dark before, or --darken takes
theirs away. They are dark afterwards. Exit code 5: some cable is not where the lab file has it.`,
		Example: "  ocslab --lab hbd.yaml topology infinitehbd check-cables --darken",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, dead, err := a.domain(cmd.Context(), &f)
			if err != nil {
				return err
			}
			if l, err := a.lab(); err != nil {
				return err
			} else if _, err := a.infiniteOptions(l); err != nil { // no light while a panic is in force
				return err
			}
			if dark {
				if err := d.MayCheck(cmd.Context(), dead...); err != nil {
					return err
				}
				if err := d.Darken(cmd.Context(), dead...); err != nil {
					return err
				}
			}
			r, err := d.CheckCables(cmd.Context(), dead...)
			if err != nil {
				return err
			}
			if a.set.JSON {
				a.json(infiniteCabling{"infinitehbd-cables", r.Fibres, len(r.Wrong), r.Rounds, append([]string{}, r.Text...)})
			} else {
				for _, l := range r.Text {
					a.printf("%s\n", l)
				}
				a.printf("%s right, %d wrong, found in %s\n", natural.Count(r.Fibres, "fibre"), len(r.Wrong), natural.Count(r.Rounds, "round"))
			}
			if len(r.Wrong) > 0 {
				return fmt.Errorf("%w: %s not where the lab file has them", ocs.ErrVerify, natural.Count(len(r.Wrong), "fibre"))
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().BoolVar(&dark, "darken", false, "take the light from all bundles first")
	return c
}

// infiniteCabling is what light says of the cables.
type infiniteCabling struct {
	Kind   string   `json:"kind"` // "infinitehbd-cables"
	Right  int      `json:"fibres_right"`
	Wrong  int      `json:"fibres_wrong"`
	Rounds int      `json:"rounds"`
	Text   []string `json:"text"`
}

func (a *app) infiniteBypassCommand() *cobra.Command {
	var f lineFlags
	var nodes, tp int
	var cut bool
	c := &cobra.Command{
		Use:   "bypass",
		Short: "Watch the nodes of a lab, and bypass those that die",
		Long: `Watch all bundles, and when a node dies bring its rings about without it: with the plan that
switches the fewest bundles, or with --cut by cutting the line anew, as in the paper. What runs is read from the
lab. Printed is when the node fell dark, was found dead, planned around, switched and locked, and that
the rings are closed by light. A bundle or a cable that fails alone is told apart, and ends it with
exit code 4. Ctrl-C ends it, too.`,
		Example: "  ocslab --lab hbd.yaml topology infinitehbd bypass --tp 8 -n 1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			d, dead, err := a.domain(ctx, &f)
			if err != nil {
				return err
			}
			if tp < 1 || tp%f.gpus != 0 {
				return usagef("--tp %d: want a multiple of the %d GPUs of a node", tp, f.gpus)
			}
			if l, err := a.lab(); err != nil {
				return err
			} else if _, err := a.infiniteOptions(l); err != nil { // no light while a panic is in force
				return err
			}
			running, err := d.States(ctx)
			if running == nil || err != nil && (len(dead) == 0 || errors.Is(err, hbd.ErrMixed)) {
				return err
			}
			if len(running.Groups()) == 0 {
				return fmt.Errorf("%w: no ring runs on the lab: bring some about with --apply first", infinitehbd.ErrRoom)
			}
			for i := 0; nodes == 0 || i < nodes; i++ {
				if running, err = a.bypass(ctx, d, running, tp/f.gpus, cut); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().IntVar(&tp, "tp", 0, "GPUs of a ring")
	c.Flags().IntVarP(&nodes, "nodes", "n", 0, "end after so many nodes (default never)")
	c.Flags().BoolVar(&cut, "cut", false, "cut the line anew, as in the paper")
	return c
}

// bypass waits for a node to die, and bypasses it.
func (a *app) bypass(ctx context.Context, d *hbd.Domain, running *infinitehbd.Plan, size int, cut bool) (*infinitehbd.Plan, error) {
	l, err := a.lab()
	if err != nil {
		return nil, err
	}
	opt := hbd.BypassOptions{Plan: func(p *infinitehbd.Plan, dead []infinitehbd.Node) (*infinitehbd.Plan, error) {
		r, err := infinitehbd.Repair(p, dead, infinitehbd.RepairOptions{Size: size})
		if r == nil {
			return nil, err
		}
		return r.Plan, err
	}}
	if cut {
		opt.Plan = hbd.Cut(size)
	}
	if opt.Options, err = a.infiniteOptions(l); err != nil {
		return nil, err
	}
	opt.About = "InfiniteHBD: a node that died is bypassed"
	opt.Detect.Began = func() {
		a.printf("watching %s in %s\n", natural.Count(len(d.Line().Order)-len(running.Dead()), "node"), natural.Count(len(running.Groups()), "ring"))
	}
	b, err := d.Bypass(ctx, running, opt)
	if b != nil && b.Failure != nil {
		if a.set.JSON {
			a.json(infiniteStage{"infinitehbd-stage", "bypass", b.Failure.Text, b.Planning.Nanoseconds(), bypassMoments(b), append([]string{}, b.Lines()...)})
		} else {
			for _, line := range b.Lines() {
				a.printf("%s\n", line)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return b.Plan, nil
}
