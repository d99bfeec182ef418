package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/topology"
)

// runFlags are those of all commands that begin a run.
type runFlags struct {
	repeats int
	seed    uint64
	rung    string
	plan    bool
}

func (r *runFlags) add(f *pflag.FlagSet) {
	f.IntVarP(&r.repeats, "repeats", "n", 0, "repeats of each condition, in place of those of the file")
	f.Uint64Var(&r.seed, "seed", 0, "seed of all that is random, in place of that of the file")
	f.StringVar(&r.rung, "rung", "", "what emulated NICs are: `tap|veth|memory` (default the best there is here)")
	f.BoolVar(&r.plan, "plan", false, "print every step, the circuits it changes and the time it takes, and touch nothing")
	f.String("mode", "safe", "what may happen to circuits that are in none of the configurations and in the way: `safe|update`; safe refuses, update moves them")
}

func (a *app) runCommand() *cobra.Command {
	var flags runFlags
	var reportTo string
	var schema bool
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "Run an experiment: written once, run on the emulator or on a testbed, kept and reported",
		Long: `Run the experiment that FILE describes, and keep all that was measured as a run:
see "ocslab runs" and "ocslab report". With --emulated the lab is emulated; the lab file
is that of --lab, or the one that the experiment names.

One interrupt (Ctrl-C) ends it after the point that is under way, a second one at once;
SIGUSR1 pauses it and lets it go on, and so do "ocslab runs pause" and "ocslab runs
continue". However it ends, the light is left as "finally" says. A run that was killed goes
on with "ocslab runs resume": finished points are not measured again.

The exit code is 5 when a limit of the experiment is not kept.

Parameters that ocslab knows; all others are yours, for hooks and as ${name}:

` + knownParameters() + `
Planners of a topology, with their arguments and what these are without "with":

` + knownPlanners(),
		Example: "  ocslab --emulated run examples/experiments/opus-toggle.yaml --plan\n  ocslab --emulated run examples/experiments/opus-toggle.yaml --report out.html\n  ocslab run --schema > experiment.schema.json",
		Args: func(_ *cobra.Command, args []string) error {
			if want := 1; !schema && len(args) != want {
				return fmt.Errorf("want one experiment file, found %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if schema {
				_, err := a.out.Write(plan.Schema())
				return err
			}
			f, err := plan.Load(args[0])
			if err != nil {
				return usageError{err}
			}
			return a.experiment(cmd, f, "", &flags, htmlTo(reportTo))
		},
	}
	flags.add(c.Flags())
	c.Flags().StringVar(&reportTo, "report", "", "write the report to `FILE`, as HTML")
	c.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of experiment files, for editors")
	return c
}

// knownParameters lists parameters for the help.
func knownParameters() string {
	var t table
	for _, p := range plan.Parameters() {
		t.row(p.Name, p.About)
	}
	return t.String()
}

// knownPlanners lists planners for the help.
func knownPlanners() string {
	var t table
	for _, p := range topology.Planners() {
		t.row(p.Name, p.About)
		for _, arg := range p.Arguments {
			t.row("", fmt.Sprintf("%s: %d  %s", arg.Name, arg.Default, arg.About))
		}
	}
	return t.String()
}

// experiment plans an experiment, and prints the plan or runs it.
func (a *app) experiment(cmd *cobra.Command, f *plan.File, figure string, flags *runFlags, to reportFlags) error {
	c := execution.Creation{File: f, Rung: flags.rung, Figure: figure, Command: os.Args[1:]}
	var err error
	if c.Mode, err = a.moveMode(); err != nil {
		return err
	}
	if _, err := rungOf(flags.rung); err != nil {
		return err
	}
	if c.Lab, c.LabText, err = a.labOf(f); err != nil {
		return err
	}
	opt := plan.Options{Emulated: a.set.Emulated}
	if cmd.Flags().Changed("seed") {
		opt.Seed = &flags.seed
	}
	if cmd.Flags().Changed("repeats") {
		opt.Repeats = &flags.repeats
	}
	if c.Plan, err = f.Resolve(c.Lab, opt); err != nil {
		return usageError{err}
	}
	if flags.plan {
		return a.printPlan(c.Plan, f)
	}
	with, err := a.executionOptions()
	if err != nil {
		return err
	}
	if err := a.noPanic(c.Lab, with.Lab); err != nil {
		return fmt.Errorf("no run begins: %w", err)
	}
	if a.set.Emulated {
		if done, err := enter(); done {
			return err
		}
	}
	moreProcessors()
	x, err := execution.Begin(cmd.Context(), with, c)
	if err != nil {
		return err
	}
	return a.finishRun(cmd.Context(), with.Store, x, false, to)
}

// executionOptions are those of all runs.
func (a *app) executionOptions() (opt execution.Options, err error) {
	opt.Version, opt.Revision = version()
	if opt.Store, err = a.runs(); err != nil {
		return opt, err
	}
	opt.Lab, err = a.labOptions()
	return opt, err
}

// labOf returns the lab that an experiment is for, and its text.
func (a *app) labOf(f *plan.File) (*lab.File, []byte, error) {
	path := a.set.Lab
	if path == "" && f.Lab != "" {
		path = f.Lab
		if !filepath.IsAbs(path) && f.Path != "" {
			path = filepath.Join(filepath.Dir(f.Path), path)
		}
	}
	if path == "" {
		l, err := a.file()
		if err == nil && l == nil {
			err = usagef("which lab? Give --lab FILE, or lab: in the experiment, or --emulated alone for the built-in testbed")
		}
		return l, examples.OpusTestbed, err
	}
	text, err := strictyaml.ReadFile(path)
	if err != nil {
		return nil, nil, usagef("lab file: %w", err)
	}
	l, err := lab.Parse(path, text)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return l, text, nil
}

// finishRun does what is left of a run, or only what is due at its end, prints what came of
// it, and writes the report.
func (a *app) finishRun(ctx context.Context, store *runs.Store, x *execution.Execution, only bool, to reportFlags) error {
	id := x.Writer.ID()
	if a.set.JSON {
		a.json(runLine{Kind: "run", Run: id, Name: x.Meta.Name, Dir: x.Writer.Dir(), Planned: len(x.Plan.Points), Seed: x.Plan.Seed, ExpectedNS: int64(x.Plan.Total())})
	}
	a.printf("run %s: %s, %s\n", id, x.Plan.Size(), plan.About(x.Plan.Total()))
	err := a.carryOut(ctx, x, only)
	// What is recorded is told also of a run that went wrong.
	tell, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	r, loadErr := store.Load(tell, id)
	if loadErr != nil {
		return errors.Join(err, loadErr)
	}
	an := analysis.Of(r)
	if to.out != "" && to.out != "-" { // first, since whoever reads the output may have gone
		err = errors.Join(err, a.writeReport(r, an, to))
	}
	a.printRun(r, an)
	if to.out == "-" {
		err = errors.Join(err, a.writeReport(r, an, to))
	}
	return errors.Join(err, a.printEnd(r, an))
}

// carryOut does the work, or only what is due at the end.
func (a *app) carryOut(ctx context.Context, x *execution.Execution, only bool) error {
	r := x.Runner(&streaming{Writer: x.Writer, app: a})
	show := a.progress()
	defer show.done()
	r.Progress = func(p runner.Progress) { show.set("%s", progressLine(p)) }
	stop := runner.Signals(r, func(text string) {
		show.done()
		fmt.Fprintf(a.err, "ocslab: %s\n", text)
	})
	defer stop()
	if ctx.Err() != nil { // one came before
		r.Abort()
	}
	own := context.WithoutCancel(ctx) // from here on signals are for the runner
	if only {
		end, err := r.Finish(own)
		if end.Restored && errors.Is(err, runner.ErrStop) {
			err = nil // that points are left is what was asked for
		}
		return err
	}
	_, err := r.Run(own)
	return err
}

// runLine is the first line of a run.
type runLine struct {
	Kind       string `json:"kind"` // "run"
	Run        string `json:"run"`
	Name       string `json:"name"`
	Dir        string `json:"dir"`
	Planned    int    `json:"planned"` // points
	Seed       uint64 `json:"seed"`
	ExpectedNS int64  `json:"expected_ns"`
}

// progressLine is a bar and what is done.
func progressLine(p runner.Progress) string {
	const width = 20
	full := 0
	if p.Total > 0 {
		full = width * p.Done / p.Total
	}
	bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
	parts := []string{fmt.Sprintf("%s %d/%d", bar, p.Done, p.Total)}
	switch p.State {
	case runner.Pausing, runner.Paused, runner.Stopping, runner.Aborting, runner.Leaving:
		parts = append(parts, string(p.State))
	}
	for _, text := range []string{p.Label, p.Step} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if p.Left > 0 {
		parts = append(parts, plan.About(p.Left)+" left")
	}
	return strings.Join(parts, "  ")
}

// runs opens the store of runs.
func (a *app) runs() (*runs.Store, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	return runs.Open(dir)
}

// writeFile writes a file that a command makes, or stdout for "-".
func (a *app) writeFile(path string, write func(w io.Writer) error) (err error) {
	if path == "-" {
		return write(a.out)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}
