package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

func (a *app) tracesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "traces",
		Short: "Traces of training jobs: what ranks compute and communicate, step by step",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.tracesListCommand(), a.tracesWriteCommand(), a.tracesShowCommand(), a.tracesImportCommand())
	return c
}

func (a *app) tracesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the workloads that traces can be generated for",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, g := range trace.Generators() {
				if a.set.JSON {
					a.json(struct {
						Kind  string `json:"kind"` // "generator"
						Name  string `json:"name"`
						About string `json:"about"`
					}{"generator", g.Name, g.About})
					continue
				}
				a.printf("%s\n%s\n", g.Name, natural.Wrap(g.About, columns, "  "))
			}
			return nil
		},
	}
}

func (a *app) tracesWriteCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "write TRACE",
		Short:   "Write a trace as JSON lines",
		Example: "  ocslab traces write lab-job --out lab-job.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := loadTrace(args[0])
			if err != nil {
				return err
			}
			return a.writeFile(out, func(w io.Writer) error { return t.Write(w) })
		},
	}
	c.Flags().StringVar(&out, "out", "-", "`FILE` to write; - is stdout")
	return c
}

// traceLine is a trace.
type traceLine struct {
	Kind             string `json:"kind"` // "trace"
	Trace            string `json:"trace"`
	Ranks            int    `json:"ranks"` // of a rail
	Rails            int    `json:"rails"`
	Shape            string `json:"shape"` // "PP2 DP2"
	Steps            int    `json:"steps"`
	StepNS           int64  `json:"step_ns"` // without delays
	Reconfigurations int    `json:"reconfigurations"`
}

// windowLine is a window between two phases.
type windowLine struct {
	Kind       string `json:"kind"` // "window"
	Step       int    `json:"step"`
	Stage      int    `json:"stage"`
	Rank       int    `json:"rank"`
	Before     string `json:"before"`
	After      string `json:"after"`
	DurationNS int64  `json:"duration_ns"`
}

func (a *app) tracesShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show TRACE",
		Short: "Show the phases of a trace, and the windows between them",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := loadTrace(args[0])
			if err != nil {
				return err
			}
			axes := t.Job.AxisNames()
			if a.set.JSON {
				a.json(traceLine{"trace", t.Name, t.Job.Ranks(), max(t.Rails, 1), shapeOf(t), len(t.Steps), int64(t.StepTime()), t.Reconfigurations(0)})
				for step := range t.Steps {
					for _, w := range trace.Windows(t, step) {
						a.json(windowLine{"window", step, w.Stage, w.Rank, axes[w.Before], axes[w.After], int64(w.Duration)})
					}
				}
				return nil
			}
			a.printf("%s: %s of %s on %s\n%s\n", t.Name, natural.Count(t.Job.Ranks(), "rank"), shapeOf(t), natural.Count(max(t.Rails, 1), "rail"), natural.Wrap(t.About, columns, ""))
			a.printf("a step takes %v without delays; %s\n", t.StepTime().Round(time.Microsecond), natural.Count(t.Reconfigurations(0), "reconfiguration"))
			for stage := range t.Job.Stages {
				x := stage * t.Job.RanksPerStage()
				text := fmt.Sprintf("stage %d:", stage)
				for _, p := range trace.Phases(t, 0)[x] {
					text += fmt.Sprintf(" %s(%d)", axes[p.Axis], p.Ops)
				}
				a.printf("%s\n", text)
			}
			list := table{align: "<<>"}
			list.row("stage", "between", "window")
			for _, w := range trace.Windows(t, 0) {
				list.row(fmt.Sprint(w.Stage), axes[w.Before]+" and "+axes[w.After], w.Duration.Round(time.Microsecond).String())
			}
			list.write(a.out, "  ")
			return nil
		},
	}
}

func (a *app) tracesImportCommand() *cobra.Command {
	var out string
	var stages int
	var axes, groups []string
	var opt trace.Chakra
	c := &cobra.Command{
		Use:   "import FILE...",
		Short: "Make a trace from execution traces of MLCommons Chakra",
		Long: `Make a trace of one step from execution traces of MLCommons Chakra, in the JSON form
that its chakra_jsonizer writes: one FILE for each rank of a rail, in order. What
overlapped there follows one after the other here, so steps come out longer. Process
groups are named with --group NAME=AXIS, where AXIS may also be scale-up or
front-end/AXIS.`,
		Example: "  ocslab traces import rank*.json --stages 2 --axis dp=4 --group 1=dp --group 2=pp --out job.jsonl",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			opt.Job = opus.Job{Name: opt.Name, Stages: stages}
			for _, x := range axes {
				name, size, _ := strings.Cut(x, "=")
				n, err := strconv.Atoi(size)
				if err != nil {
					return usagef("--axis %q: want NAME=SIZE, such as dp=4", x)
				}
				opt.Job.Axes = append(opt.Job.Axes, opus.Axis{Name: name, Size: n})
			}
			opt.Groups = map[string]string{}
			for _, x := range groups {
				name, axis, ok := strings.Cut(x, "=")
				if !ok {
					return usagef("--group %q: want NAME=AXIS, such as 1=dp", x)
				}
				opt.Groups[name] = axis
			}
			var ranks []io.Reader
			for _, path := range args {
				f, err := os.Open(path)
				if err != nil {
					return usageError{err}
				}
				defer f.Close()
				ranks = append(ranks, f)
			}
			t, err := trace.ImportChakra(opt, ranks...)
			if err != nil {
				return usageError{err}
			}
			return a.writeFile(out, func(w io.Writer) error { return t.Write(w) })
		},
	}
	f := c.Flags()
	f.StringVar(&out, "out", "-", "`FILE` to write; - is stdout")
	f.StringVar(&opt.Name, "name", "imported", "`NAME` of the trace")
	f.IntVar(&stages, "stages", 1, "stages of the pipeline")
	f.StringSliceVar(&axes, "axis", nil, "`NAME=SIZE` of each other axis, the outermost first")
	f.StringArrayVar(&groups, "group", nil, "`NAME=AXIS` of each process group")
	f.IntVar(&opt.Rails, "rails", 1, "ranks of a host")
	f.Float64Var(&opt.Gbps, "gbps", trace.DefaultGbps, "rate of a duplex port")
	return c
}
