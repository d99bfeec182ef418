package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

func (a *app) runsResumeCommand() *cobra.Command {
	var reportTo string
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was killed, stopped, or failed",
		Long: `Go on with a run where it ended: what was set up is set up anew, finished points are
not measured again, and at the end the light is put back as the first session found it.
Order and all that is random are those of the plan. The lab is as it was stored with the
run.`,
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
	case !only && restored && before.State == runs.Done && len(before.Done) == planned(before):
		nothing = "is done: there is nothing to go on with"
	}
	if nothing != "" {
		a.printf("%s %s\n", id, nothing)
		if a.set.JSON {
			return a.printEnd(before, analysis.Of(before))
		}
		return nil
	}
	if before.Meta.Emulated {
		if done, err := enter(); done {
			return err
		}
	}
	moreProcessors()
	w, so, err := store.Resume(ctx, id)
	if err != nil {
		return err
	}
	x := &execution{app: a, file: so.File, plan: so.Plan, meta: so.Meta, mode: ocs.Policy(so.Meta.Mode), only: only}
	if x.lab, err = lab.Parse(so.Meta.LabPath, so.Lab); err == nil {
		err = x.prepare()
	}
	if err != nil {
		return errors.Join(err, w.Close())
	}
	x.bench.Circuits = found(so)
	if x.bench.Circuits == nil { // it was killed before it could record them
		if err := x.bench.Find(ctx); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	if now, err := os.ReadFile(so.Meta.LabPath); so.Meta.LabPath != "" && err == nil && !bytes.Equal(now, so.Lab) {
		text := fmt.Sprintf("%s has changed since the run began; the run goes on with the lab as it was then", so.Meta.LabPath)
		fmt.Fprintf(a.err, "ocslab: %s\n", text)
		x.event = &runs.Event{Kind: "lab-changed", Wall: time.Now().UTC(), Text: text}
	}
	return a.finishRun(ctx, store, x, w, so, to)
}

// found are the circuits that a run has found, as one of its sessions has recorded; nil if
// none has, or there is no run yet.
func found(r *runs.Run) map[string]ocs.Map {
	if r == nil {
		return nil
	}
	for _, s := range r.Sessions {
		if s.Found != nil {
			return s.Found
		}
	}
	return nil
}
