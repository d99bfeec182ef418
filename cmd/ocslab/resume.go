package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/lab"
)

func (a *app) runsResumeCommand() *cobra.Command {
	var reportTo string
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was killed, stopped, or failed",
		Long: `Go on with a run where it ended: what was set up is set up anew, finished points are
not measured again, and at the end the light is put back as the first session found it.
Order and all that is random are those of the plan. The lab is as it was stored with the
run. What "topology ... --apply" has begun is begun again by that, and is refused here.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.resume(cmd.Context(), args[0], false, htmlTo(reportTo))
		},
	}
	c.Flags().StringVar(&reportTo, "report", "", "write the report to `FILE`, as HTML")
	return c
}

func (a *app) runsFinishCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "finish RUN",
		Short:             "Put the light back that a killed run has left, without measuring the rest",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.resume(cmd.Context(), args[0], true, reportFlags{})
		},
	}
}

// resume goes on with a run, or does only what is due at its end.
func (a *app) resume(ctx context.Context, text string, only bool, to reportFlags) error {
	store, id, err := a.findRun(ctx, text)
	if err != nil {
		return err
	}
	before, err := store.Load(ctx, id)
	if err != nil {
		return err
	}
	nothing := ""
	switch restored := before.Summary != nil && before.Summary.Restored; {
	case only && restored:
		nothing = "has left the light as it should"
	case !only && execution.Left(before) != nil:
		nothing = "is done: there is nothing to go on with"
	}
	if !only && nothing == "" {
		if err := execution.Resumable(before); err != nil {
			return usageError{err}
		}
	}
	if nothing != "" {
		a.printf("%s %s\n", id, nothing)
		if a.set.JSON {
			return a.printEnd(before, analysis.Of(before))
		}
		return nil
	}
	with, err := a.executionOptions()
	if err != nil {
		return err
	}
	f, err := lab.Parse(before.Meta.LabPath, before.Lab)
	if err != nil {
		return err
	}
	if before.Meta.LabPath == "" {
		f.Path = "" // the built-in testbed
	}
	opt := with.Lab
	opt.Emulated = before.Meta.Emulated
	if err := a.noPanic(f, opt); err != nil {
		return fmt.Errorf("%s is not gone on with, and no light is put back: %w", id, err)
	}
	if before.Meta.Emulated {
		if done, err := enter(); done {
			return err
		}
	}
	moreProcessors()
	x, err := execution.Resume(ctx, with, id)
	if err != nil {
		return err
	}
	if x.Changed != "" {
		fmt.Fprintf(a.err, "ocslab: %s\n", x.Changed)
	}
	return a.finishRun(ctx, store, x, only, to)
}
