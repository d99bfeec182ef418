package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/hbd"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/topology/infinitehbd/faults"
)

func (a *app) infiniteDemoCommand() *cobra.Command {
	var seed uint64
	var model, trace string
	var servers, nodes int
	c := &cobra.Command{
		Use:   "infinitehbd",
		Short: "Rings of GPUs over 256 emulated transceivers: a node dies and is bypassed",
		Long: `Emulate 16 nodes with two bundles of eight OCSTrx each, behind real sockets and joined by
emulated fibres. Program rings of 8 GPUs, walk them by light, and kill a node: how long until that is
known, planned around, switched, locked and walked again, with the plan that switches the
fewest bundles and with that of the paper. Kill the next node, with reach 2 and 3; go from rings
of 8 GPUs to 16 and back; find two swapped cables; and replay a trace of faults on 800 nodes
with the wear of their modules. Each change is a run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt := hbd.DemoOptions{Seed: seed, Model: model, Tell: a.tellInfinite}
			if err := a.demoTrace(&opt, trace, servers, nodes, seed); err != nil {
				return usageError{err}
			}
			with, err := a.executionOptions()
			if err != nil {
				return err
			}
			opt.Options = hbd.Options{Store: with.Store, Version: with.Version, Revision: with.Revision,
				Args: []string{"demo", "infinitehbd"}}
			opt.Lab = with.Lab
			return hbd.Demo(cmd.Context(), opt)
		},
	}
	s := c.Flags()
	s.Uint64Var(&seed, "seed", 1, "of the emulated modules, and of all that is drawn")
	s.StringVar(&model, "model", hbd.EightModules, "of the boards; "+hbd.OneModule+" has one module")
	s.StringVar(&trace, "faults", "", "`FILE` of faults to replay (see ocslab topology infinitehbd faults; default one that is drawn)")
	s.IntVar(&servers, "servers", 0, "servers that the trace is of (default those that it names)")
	s.IntVar(&nodes, "nodes", 800, "nodes to replay the trace on; 0 leaves that out")
	return c
}

// demoTrace has a trace of faults replayed on a line of nodes with three bundles.
func (a *app) demoTrace(opt *hbd.DemoOptions, file string, servers, nodes int, seed uint64) error {
	if nodes == 0 {
		return nil
	}
	const perServer, stride, hops, emulated = 2, 4, 3, 16
	f := faultFlags{servers: servers, seed: seed}
	if file == "" && servers == 0 {
		f.servers = nodes / perServer
	}
	var args []string
	if file != "" {
		args = []string{file}
	}
	trace, err := f.trace(args)
	if err != nil {
		return err
	}
	layout, err := infinitehbd.NewLayout(4, hops)
	if err != nil {
		return err
	}
	order, err := infinitehbd.Deploy(nodes, stride)
	if err != nil {
		return fmt.Errorf("--nodes: %w", err)
	}
	events, err := faults.Events(trace, faults.Cluster{Nodes: nodes, PerServer: perServer}, faults.Options{Servers: f.servers, Seed: seed})
	if err != nil {
		return err
	}
	const day = 24 * time.Hour
	after := func(days float64) time.Duration { return time.Duration(days * float64(day)) }
	opt.Trace = []hbd.Event{}
	for _, e := range events {
		opt.Trace = append(opt.Trace, hbd.Event{At: after(e.At), Node: e.Node, Down: e.Down})
	}
	opt.TraceLine = infinitehbd.Line{Layout: layout, Order: order}
	opt.TraceSize, opt.TraceFor = 8, after(trace.End-trace.Start)
	for n := 1; n <= min(emulated, nodes); n++ {
		for b := range layout.Bundles {
			opt.Emulate = append(opt.Emulate, hbd.Ref{Node: infinitehbd.Node(n), Bundle: b})
		}
	}
	return nil
}

// infiniteStage is a stage of the demonstration.
type infiniteStage struct {
	Kind    string           `json:"kind"` // "infinitehbd-stage"
	Stage   string           `json:"stage"`
	Title   string           `json:"title"`
	PlanNS  int64            `json:"plan_ns"`
	Moments []infiniteMoment `json:"moments,omitempty"`
	Text    []string         `json:"text"`
}

// infiniteMoment is what happened on the way around a node, in time since the first.
type infiniteMoment struct {
	Name     string `json:"name"`
	Source   string `json:"source"`
	Earliest int64  `json:"earliest_ns"`
	Latest   int64  `json:"latest_ns"`
}

func bypassMoments(b *hbd.Bypass) (all []infiniteMoment) {
	if b == nil {
		return nil
	}
	for _, m := range b.Moments {
		from := b.Moments[0].At
		all = append(all, infiniteMoment{m.Name, m.Source, m.At.Earliest - from.Earliest, m.At.Latest - from.Earliest})
	}
	return all
}

func (a *app) tellInfinite(s hbd.DemoStage) {
	if a.set.JSON {
		r := s.Report
		if s.Bypass != nil {
			r = s.Bypass.Report
		}
		if r != nil {
			a.printBrought(s.Title, r)
		}
		a.json(infiniteStage{"infinitehbd-stage", s.Name, s.Title, s.Plan.Nanoseconds(), bypassMoments(s.Bypass), append([]string{}, s.Lines...)})
		return
	}
	a.printf("== %s", s.Title)
	if s.Plan > 0 {
		a.printf(" (planned in %v)", s.Plan.Round(time.Microsecond))
	}
	a.printf("\n")
	for _, l := range s.Lines {
		a.printf("%s\n", l)
	}
	a.printf("\n")
}
