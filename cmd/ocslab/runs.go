package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/export"
	"github.com/ocslab/ocslab/experiment/runs"
)

func (a *app) runsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "runs",
		Short: "List, show, export, compare and go on with runs of experiments",
		Long: `Runs are kept in the state directory, one directory each. A RUN is its ID, a part of
it that no other run has, or "last".`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(
		a.runsListCommand(), a.runsShowCommand(), a.runsExportCommand(), a.runsDiffCommand(), a.runsRemoveCommand(),
		a.runsReindexCommand(), a.runsResumeCommand(), a.runsFinishCommand(),
		a.runsSendCommand(runs.Pause, "Hold a run after the point that is under way"),
		a.runsSendCommand(runs.Continue, "Let a run go on that is held"),
		a.runsSendCommand(runs.Stop, "End a run after the point that is under way"),
		a.runsSendCommand(runs.Abort, "End a run at once; the light is put back"),
	)
	return c
}

// completeRun completes the first argument with runs, and completeRuns all of them.
func (a *app) completeRun(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeRuns(cmd, args, text)
}

func (a *app) completeRuns(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if a.settle(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ids := []string{"last"}
	if store, err := a.runs(); err == nil {
		list, _ := store.List(cmd.Context(), runs.Filter{Limit: 50})
		for _, e := range list {
			ids = append(ids, e.ID)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// findRun returns the store and the ID that a text means.
func (a *app) findRun(ctx context.Context, text string) (*runs.Store, string, error) {
	store, err := a.runs()
	if err != nil {
		return nil, "", err
	}
	id, err := store.Find(ctx, text)
	return store, id, err
}

// keepSmall makes the collector work rather than the heap grow far beyond what is in use
// now, a run: what is done with it takes half as much again.
func keepSmall() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetMemoryLimit(int64(max(m.HeapAlloc*9/5, 256<<20)))
}

// loadRun loads the run that a text means.
func (a *app) loadRun(ctx context.Context, text string) (*runs.Run, error) {
	store, id, err := a.findRun(ctx, text)
	if err != nil {
		return nil, err
	}
	r, err := store.Load(ctx, id)
	keepSmall()
	return r, err
}

func (a *app) runsListCommand() *cobra.Command {
	var f runs.Filter
	var state string
	var since time.Duration
	c := &cobra.Command{
		Use:   "list",
		Short: "List runs, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			states := []runs.State{runs.Running, runs.Interrupted, runs.Done, runs.Stopped, runs.Failed}
			if f.State = runs.State(state); state != "" && !slices.Contains(states, f.State) {
				return usagef("--state %q: want running, interrupted, done, stopped or failed", state)
			}
			if f.Limit < 0 || since < 0 {
				return usagef("--last and --since are not below 0")
			}
			if since > 0 {
				f.Since = time.Now().Add(-since)
			}
			store, err := a.runs()
			if err != nil {
				return err
			}
			list, err := store.List(cmd.Context(), f)
			if err != nil {
				return err
			}
			if text := store.Remark(); text != "" {
				fmt.Fprintf(a.err, "ocslab: %s\n", text)
			}
			t := table{align: "...>"}
			if len(list) > 0 {
				t.row("run", "state", "name", "points", "lab", "verdict")
			}
			for _, e := range list {
				if a.set.JSON {
					a.json(struct {
						Kind string `json:"kind"` // "run"
						runs.Entry
					}{"run", e})
				}
				where := e.Lab
				if e.Emulated {
					where += ", emulated"
				}
				t.row(e.ID, string(e.State), e.Name, fmt.Sprintf("%d/%d", e.Points, e.Planned), where, cmp.Or(e.Verdict, "-"))
			}
			if !a.set.JSON {
				t.write(a.out, "")
			}
			return nil
		},
	}
	c.Flags().StringVar(&f.Name, "name", "", "only those with this in their name")
	c.Flags().StringVar(&state, "state", "", "only those in this state: `running|interrupted|done|stopped|failed`")
	c.Flags().DurationVar(&since, "since", 0, "only those begun within this time, such as 24h")
	c.Flags().IntVarP(&f.Limit, "last", "n", 0, "only the last `N`")
	return c
}

func (a *app) runsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show RUN",
		Short:             "Show what a run is, how far it is, and what it came to",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.loadRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			a.printHead(r)
			x := analysis.Of(r)
			a.printRun(r, x)
			_ = a.printEnd(r, x) // a limit that was not kept can be shown, too
			switch r.State {
			case runs.Stopped, runs.Failed, runs.Interrupted:
				a.printf("%s\n", r.Plan.GoOn(r.Meta.ID, r.Summary != nil && r.Summary.Restored))
			}
			return nil
		},
	}
}

func (a *app) runsExportCommand() *cobra.Command {
	var what, format, out string
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Write what was measured as CSV or NDJSON, for pandas and the like",
		Long: `Write one table of a run:

  marks             one row for each mark, with the interval it lies in
  durations         how long after the command each subject reached each stage
  points            the plan and what of it is done
  reconfigurations  what was changed, when, and what did not come back
  samples           readings of power monitors
  truth             what an emulated lab did
  summary           statistics of each stage in each condition

Columns that end in _ns hold whole nanoseconds; what is not known is empty.`,
		Example:           "  ocslab runs export last --table durations --out durations.csv\n  ocslab runs export last --format ndjson | head",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(export.Tables(), what) {
				return usagef("--table %q: want one of %s", what, strings.Join(export.Tables(), ", "))
			}
			write := map[string]func(io.Writer, *runs.Run, string) error{"csv": export.CSV, "ndjson": export.NDJSON}[format]
			if write == nil {
				return usagef("--format %q: want csv or ndjson", format)
			}
			r, err := a.loadRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.writeFile(out, func(w io.Writer) error { return write(w, r, what) })
		},
	}
	c.Flags().StringVar(&what, "table", "durations", "`"+strings.Join(export.Tables(), "|")+"`")
	c.Flags().StringVar(&format, "format", "csv", "`csv|ndjson`")
	c.Flags().StringVar(&out, "out", "-", "`FILE` to write; - is stdout")
	return c
}

func (a *app) runsDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "diff RUN RUN",
		Short:             "Compare two runs: what came earlier or later, and what was set up otherwise",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			first, err := a.loadRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			second, err := a.loadRun(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			return a.printComparison(analysis.Compare(first, second))
		},
	}
}

func (a *app) runsRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "rm RUN...",
		Short:             "Delete runs and all that was measured in them",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.runs()
			if err != nil {
				return err
			}
			var ids []string
			for _, text := range args { // all are known before one is deleted
				id, err := store.Find(cmd.Context(), text)
				if err != nil {
					return err
				}
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
			for _, id := range ids {
				if err := store.Remove(cmd.Context(), id); err != nil {
					return err
				}
				if a.set.JSON {
					a.json(struct {
						Kind string `json:"kind"`
						Run  string `json:"run"`
					}{"removed", id})
				}
				a.printf("removed %s\n", id)
			}
			return nil
		},
	}
}

func (a *app) runsReindexCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reindex",
		Short: "Make the index of runs anew from their directories",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := a.runs()
			if err != nil {
				return err
			}
			found, err := store.Reindex(cmd.Context())
			if err != nil {
				return err
			}
			if a.set.JSON {
				a.json(struct {
					Kind     string `json:"kind"`
					Runs     int    `json:"runs"`
					Problems int    `json:"problems"`
				}{"reindexed", found.Runs, len(found.Problems)})
			}
			a.printf("%d runs\n", found.Runs)
			for _, p := range found.Problems {
				fmt.Fprintf(a.err, "ocslab: %s: %s\n", p.Dir, p.Reason)
			}
			return nil
		},
	}
}

func (a *app) runsSendCommand(c runs.Control, short string) *cobra.Command {
	return &cobra.Command{
		Use:               string(c) + " RUN",
		Short:             short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, id, err := a.findRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return store.Send(cmd.Context(), id, c)
		},
	}
}
