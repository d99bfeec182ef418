package main

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/figures"
	"github.com/ocslab/ocslab/experiment/planning"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/orchestrator/study"
)

func (a *app) figureCommand() *cobra.Command {
	var flags runFlags
	var to reportFlags
	var sequence []string
	var names []string
	var compress float64
	var trace string
	var list table
	for _, f := range figures.All() {
		names = append(names, f.Name)
		list.about(f.Name, f.About)
	}
	studies := slices.Concat(study.All(), planning.All())
	for _, f := range studies {
		names = append(names, f.Name)
		list.about(f.Name, f.About)
	}
	c := &cobra.Command{
		Use:   "figure NAME",
		Short: "Measure what a figure of a paper shows, and put the two side by side",
		Long: `Run the experiment behind a figure of a paper and compare: on the emulated testbed, or
with --lab FILE on yours, between the configurations that --sequence names.

` + list.String() + `
A preset is an experiment like any other (see examples/experiments), and what it measures
is a run: "ocslab report" writes it again. Those of the control plane and of planners
(opus-control-overhead and below) are no runs: they compute, or make their own emulated
labs, and are written as html, svg or csv.`,
		Example:   "  ocslab --emulated figure opus-9d --out opus-9d.html\n  ocslab --lab lab.yaml figure autoneg -n 10 --sequence dp,pp",
		Args:      cobra.ExactArgs(1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := to.check(); err != nil {
				return err
			}
			if !slices.Contains(names, args[0]) {
				return usageError{report.UnknownFigure(args[0], names)}
			}
			if f, err := report.FindFigure(studies, args[0]); err == nil {
				if a.set.Lab != "" || len(sequence) > 0 {
					return usagef("figure %s computes, or makes its own emulated lab: it takes no --lab and no --sequence", f.Name)
				}
				if compress != 0 && !f.Plays {
					return usagef("figure %s plays no training job: it takes no --compress", f.Name)
				}
				if trace != "" && !f.Replays {
					return usagef("figure %s replays no faults: it takes no --faults", f.Name)
				}
				return a.study(cmd.Context(), f, report.FigureOptions{Repeats: flags.repeats, Compress: compress, Trace: trace}, to)
			}
			p, err := figures.Find(args[0])
			if err != nil {
				return usageError{err}
			}
			if to.out == "" {
				to.out = p.Name + "." + to.format
			}
			l, err := a.file()
			if err != nil {
				return err
			}
			if l == nil {
				a.set.Emulated = true // what the presets are made for
			}
			f, err := p.File(figures.Options{Lab: l, Emulated: a.set.Emulated, Sequence: sequence})
			if err != nil {
				return usageError{err}
			}
			return a.experiment(cmd, f, p.Name, &flags, to)
		},
	}
	flags.add(c.Flags())
	to.add(c.Flags())
	c.Flags().StringVar(&to.out, "out", "", "`FILE` to write; - is stdout (default NAME.html, or the end of the format)")
	c.Flags().Float64Var(&compress, "compress", 0, "of figures of the control plane: make computation so many times shorter (default the figure's own)")
	c.Flags().StringVar(&trace, "faults", "", "of figures that replay faults: a `FILE` of them (see ocslab topology infinitehbd faults; default one that is drawn)")
	c.Flags().StringSliceVar(&sequence, "sequence", nil, "`CONF,CONF`: the configurations of the lab to go through, in place of dp,pp")
	return c
}

// study makes a figure that is no run, prints it and writes it to a file.
func (a *app) study(ctx context.Context, f report.Figure, opt report.FigureOptions, to reportFlags) error {
	if !slices.Contains([]string{"html", "svg", "csv"}, to.format) {
		return usagef("--format %s: figure %s is no run; want html, svg or csv", to.format, f.Name)
	}
	if f.Hosts {
		if done, err := enter(); done || err != nil {
			return err
		}
		moreProcessors()
	}
	if to.out == "" {
		to.out = f.Name + "." + to.format
	}
	began := time.Now()
	tell := a.progress()
	opt.Version, _ = version()
	opt.Progress = func(what string) {
		tell.set("%s (%v of about %s)", what, time.Since(began).Round(time.Second), f.Takes)
	}
	s, err := f.Run(ctx, opt)
	tell.done()
	if err != nil {
		return err
	}
	if a.set.JSON {
		a.printPaper(&s.Paper)
	} else if to.out == "-" { // the file alone, for whoever reads it
	} else if err := s.Text(a.out); err != nil {
		return err
	}
	write := map[string]func(io.Writer) error{"html": s.HTML, "csv": s.CSV, "svg": func(w io.Writer) error { return s.SVG(w, "") }}[to.format]
	if err := a.writeFile(to.out, write); err != nil {
		return err
	}
	if to.out != "-" {
		a.printf("\nwritten to %s\n", to.out)
	}
	return nil
}
