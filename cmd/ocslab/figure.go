package main

import (
	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/figures"
)

func (a *app) figureCommand() *cobra.Command {
	var flags runFlags
	var to reportFlags
	var sequence []string
	var names []string
	var list table
	for _, f := range figures.All() {
		names = append(names, f.Name)
		list.row(f.Name, f.About)
	}
	c := &cobra.Command{
		Use:   "figure NAME",
		Short: "Measure what a figure of a paper shows, and put the two side by side",
		Long: `Run the experiment behind a figure of a paper and compare: on the emulated testbed, or
with --lab FILE on yours, between the configurations that --sequence names.

` + list.String() + `
A preset is an experiment like any other (see examples/experiments), and what it measures
is a run: "ocslab report" writes it again.`,
		Example:   "  ocslab --emulated figure opus-9d --out opus-9d.html\n  ocslab --lab lab.yaml figure autoneg -n 10 --sequence dp,pp",
		Args:      cobra.ExactArgs(1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := figures.Find(args[0])
			if err != nil {
				return usageError{err}
			}
			if err := to.check(); err != nil {
				return err
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
	c.Flags().StringSliceVar(&sequence, "sequence", nil, "`CONF,CONF`: the configurations of the lab to go through, in place of dp,pp")
	return c
}
