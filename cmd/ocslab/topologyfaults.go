package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/topology/infinitehbd/faults"
)

// faultFlags say what breaks, and in which cluster.
type faultFlags struct {
	nodes, gpus, perServer, servers, stride int
	hops, tps                               []int
	step, shift, half, days, rate           float64
	placed                                  bool
	job                                     int
	seed                                    uint64
	write                                   string
}

// topologyFaultsCommand replays a trace of faults on all architectures.
func (a *app) topologyFaultsCommand() *cobra.Command {
	var f faultFlags
	c := &cobra.Command{
		Use:   "faults [TRACE]",
		Short: "What a trace of faults leaves of a cluster: InfiniteHBD, NVL-x, TPUv4",
		Long: `Replay a trace of faults, and print the part of all GPUs that is healthy and in no full ring,
for InfiniteHBD and the architectures that its paper compares. TRACE is a JSON list of fault_start
and fault_end events as its authors have published one (github.com/stepfun-ai/InfiniteHBD-Trace;
give --servers 400); without it, one like that is drawn. Events without their other half are
named, and a fault that does not end lasts until the end.

Time runs from the first event to the last. A trace smaller than the cluster is repeated. Where its servers stand is drawn, with --seed.
Servers of --per-server nodes fail with one or several of them (--half).`,
		Example: "  ocslab topology infinitehbd faults --nodes 2448 --stride 4\n  ocslab topology infinitehbd faults fault_trace.json --servers 400 --tp 32 --job 9216",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.replayFaults(&f, args) },
	}
	s := c.Flags()
	s.IntVar(&f.nodes, "nodes", 2448, "nodes of the cluster")
	s.IntVar(&f.gpus, "gpus", 4, "GPUs of a node")
	s.IntVar(&f.perServer, "per-server", 2, "nodes of a server, which fail together or one by one")
	s.IntVar(&f.servers, "servers", 0, "servers that the trace is of (default those that it names)")
	s.IntVar(&f.stride, "stride", 4, "neighbours in the line are so many nodes apart (--per-tor of a plan)")
	s.IntSliceVar(&f.hops, "hops", []int{2, 3}, "K of InfiniteHBD")
	s.IntSliceVar(&f.tps, "tp", []int{8, 16, 32, 64}, "GPUs of a ring")
	s.Float64Var(&f.step, "step", 0, "days between samples (default every change, weighed by its duration)")
	s.Float64Var(&f.shift, "shift", 0, "let each copy of the trace be so much of its length later")
	s.Float64Var(&f.half, "half", 0, "probability that a node is concerned when its server fails (default 0.503, from the paper's fault rate)")
	s.BoolVar(&f.placed, "in-order", false, "let servers stand in the order in which the trace names them")
	s.IntVar(&f.job, "job", 0, "also print how much of the time a job of so many `GPUS` has to wait")
	s.Float64Var(&f.days, "days", 0, "of a trace that is drawn (default 349)")
	s.Float64Var(&f.rate, "per-year", 0, "faults of a server in a year, of a trace that is drawn (default 1.54)")
	s.Uint64Var(&f.seed, "seed", 1, "of all that is drawn")
	s.StringVar(&f.write, "write-trace", "", "write the trace to `FILE`")
	return c
}

func (f *faultFlags) trace(args []string) (*faults.Trace, error) {
	if len(args) == 0 {
		return faults.Generate(faults.GenerateOptions{Servers: f.servers, Days: f.days, PerYear: f.rate, Seed: f.seed})
	}
	if f.days != 0 || f.rate != 0 {
		return nil, fmt.Errorf("--days and --per-year are of a trace that is drawn, and %s is given", args[0])
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return faults.Parse(file, args[0])
}

// Lines of "ocslab topology infinitehbd faults --json".
type (
	faultRow struct {
		Kind string `json:"kind"` // "fault-row"
		faults.Row
		Waiting *float64 `json:"waiting,omitempty"` // share of the time, of --job
	}
	faultUnmatched struct {
		Kind  string `json:"kind"` // "fault-unmatched"
		Event int    `json:"event"`
		Text  string `json:"text"`
	}
	faultSummary struct {
		Kind      string  `json:"kind"` // "fault-replay"
		GPUs      int     `json:"gpus"`
		Servers   int     `json:"servers"` // of the trace
		Failing   int     `json:"failing_servers"`
		Faults    int     `json:"faults"`
		Days      float64 `json:"days"`
		Down      float64 `json:"servers_down"` // share, mean of daily samples
		DownP99   float64 `json:"servers_down_p99"`
		Dead      float64 `json:"nodes_dead"` // share in the cluster, mean
		Samples   int     `json:"samples"`
		Unmatched int     `json:"unmatched_events"`
	}
)

// check refuses clusters that cannot be.
func (f *faultFlags) check() error {
	for _, k := range f.hops {
		if _, err := infinitehbd.NewLayout(f.gpus, k); err != nil {
			return fmt.Errorf("--gpus and --hops: %w", err)
		}
	}
	if f.job < 0 {
		return fmt.Errorf("--job %d: want a number of GPUs", f.job)
	}
	return nil
}

func (a *app) replayFaults(f *faultFlags, args []string) error {
	if err := f.check(); err != nil {
		return usageError{err}
	}
	trace, err := f.trace(args)
	if err != nil {
		return usageError{err}
	}
	order, err := infinitehbd.Deploy(f.nodes, f.stride)
	if err != nil {
		return usageError{fmt.Errorf("--nodes and --stride: %w", err)}
	}
	servers := cmp.Or(f.servers, len(trace.Names))
	stats, err := trace.Stats(servers)
	if err != nil {
		return usageError{fmt.Errorf("--servers: %w", err)}
	}
	r, err := faults.Simulate(trace, faults.Cluster{Nodes: f.nodes, GPUs: f.gpus, PerServer: f.perServer, Order: order}, f.architectures(), f.tps,
		faults.Options{Step: f.step, Servers: servers, Placed: f.placed, Shift: f.shift, Half: f.half, Seed: f.seed})
	if err != nil {
		return usageError{err}
	}
	if f.write != "" {
		var text strings.Builder
		if err := trace.WriteJSON(&text); err != nil {
			return err
		}
		if err := writeOut(f.write, []byte(text.String()), false); err != nil {
			return err
		}
	}
	s := faultSummary{"fault-replay", r.GPUs, servers, stats.Failing, len(trace.Faults), trace.End - trace.Start, stats.Mean, stats.P99, r.Dead, r.Samples, len(trace.Unmatched)}
	if a.set.JSON {
		for _, u := range trace.Unmatched {
			a.json(faultUnmatched{"fault-unmatched", u.Event, u.String()})
		}
		for i := range r.Rows {
			l := faultRow{Kind: "fault-row", Row: r.Rows[i]}
			if f.job > 0 {
				w := r.Rows[i].Waiting(f.job)
				l.Waiting = &w
			}
			a.json(l)
		}
		a.json(s)
		return nil
	}
	a.printFaults(f, trace, r, &s)
	return nil
}

// architectures are those of the paper, with the reaches asked for.
func (f *faultFlags) architectures() (all []faults.Architecture) {
	for _, x := range faults.Architectures() {
		if x.Rule != faults.Bypass {
			all = append(all, x)
			continue
		}
		if x.Size != 2 {
			continue
		}
		for _, k := range f.hops {
			all = append(all, faults.Architecture{Name: fmt.Sprintf("InfiniteHBD K=%d", k), Rule: faults.Bypass, Size: k})
		}
	}
	return all
}

func (a *app) printFaults(f *faultFlags, trace *faults.Trace, r *faults.Result, s *faultSummary) {
	a.printf("%s of %s in %.0f days; %.2f %% of them down on average, %.2f %% on the worst day of a hundred\n", natural.Count(s.Faults, "fault"),
		natural.Count(s.Servers, "server"), s.Days, 100*s.Down, 100*s.DownP99)
	for i, u := range trace.Unmatched {
		if i == 10 {
			a.printf("  and %d more events without their other half\n", len(trace.Unmatched)-i)
			break
		}
		a.printf("  %v\n", u)
	}
	a.printf("%d GPUs, %.2f %% of the nodes dead on average, %s\n\n", s.GPUs, 100*s.Dead, natural.Count(s.Samples, "sample"))
	t := table{align: "<>>>>>>"}
	head := []string{"healthy GPUs in no ring", "TP", "mean", "p50", "p99", "worst", "usable"}
	if f.job > 0 {
		head = append(head, fmt.Sprintf("%d wait", f.job))
		t.align += ">"
	}
	t.row(head...)
	percent := func(x float64) string { return fmt.Sprintf("%.3f %%", 100*x) }
	for i := range r.Rows {
		x := &r.Rows[i]
		cells := []string{x.Name, fmt.Sprint(x.TP), percent(x.Mean), percent(x.P50), percent(x.P99), percent(x.Max), fmt.Sprintf("%.0f", x.Usable)}
		if f.job > 0 {
			cells = append(cells, fmt.Sprintf("%.1f %%", 100*x.Waiting(f.job)))
		}
		t.row(cells...)
	}
	t.write(a.out, "")
	if f.write != "" {
		a.printf("\nthe trace is written to %s\n", f.write)
	}
}
