// Package study repeats what the Opus paper found about its control plane, each on the real control plane of
// this project, and puts the two side by side.
//
//	f, err := report.FindFigure(study.All(), "opus-delay-sweep")
//	s, err := f.Run(ctx, report.FigureOptions{})
//	err = s.HTML(w)
//
// Computation and the data plane are modelled: step times are no training results. What the control plane and the emulated
// switches do is measured; see package replay.
package study

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/orchestrator/rehearse"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
)

// Steps are measured after as many more, if no other number is asked for, as in the paper (section 5.2). Ranks learn from
// the first five, whatever these are.
const steps = 5

// asked is how many steps are measured.
func asked(opt report.FigureOptions, otherwise int) int {
	if opt.Repeats > 0 {
		return opt.Repeats
	}
	return otherwise
}

const (
	paper    = "Photonic Rails in ML Datacenters with Opus, arXiv 2602.12521"
	emulated = "Switches, NICs and training are emulated. Computation and collectives take as long as a model says; the control plane, its " +
		"sockets and drivers are those that drive real switches, and what they take is measured."
)

var figures = []report.Figure{
	{Name: "opus-control-overhead", Title: "Opus, figure 11: what the control plane costs when the switch takes no time",
		About: "Steps of configuration 2 on a switch of 0 ms, asked for on demand and provisioned, against no control plane.",
		Takes: "2 minutes", Paper: paper, Make: overhead},
	{Name: "opus-delay-sweep", Title: "Opus, figure 10: step time against switching time, on the running control plane",
		About: "Steps of configurations 1 and 2 at switching times from 0 to 1000 ms, on demand and provisioned, beside the archived ones.",
		Takes: "8 minutes", Paper: paper, Make: sweep},
	{Name: "opus-pp-only", Title: "Opus, figure 11: a job with pipeline parallelism only",
		About: "Configuration 3 needs one change at its start and then none, whatever the switch takes.",
		Takes: "1 minute", Paper: paper, Make: ppOnly},
	{Name: "opus-lab-job", Title: "Opus, section 5.1: the lab job on the two-rail testbed",
		About: "Four changes a step on real network interfaces with firmware profiles: what the paper could not overlap.",
		Takes: "2 minutes", Paper: paper, Hosts: true, Make: labJob},
	{Name: "opus-safety", Title: "Opus: what an observer sees of the published granularity, and of two that mend it",
		About: "A pipeline transfer runs while another group of the stage goes over to data parallelism.",
		Takes: "1 minute", Paper: paper, Make: safety},
	{Name: "opus-cost-power", Title: "Opus, figure 14: cost and power",
		About: "The four ratios, by closed forms, and with the two ports that rings need.",
		Takes: "a moment", Paper: paper, Make: costPower},
	{Name: "opus-scale", Title: "Opus, figures 12 to 14: steps at scale, modelled",
		About: "A small model beside the paper's simulations; report only.",
		Takes: "a moment", Paper: paper, Make: scale},
}

// All returns the figures in the order in which they should be listed.
func All() []report.Figure { return slices.Clone(figures) }

// generate makes a trace of that name.
func generate(name string) (*trace.Trace, error) {
	g, err := trace.Find(name)
	if err != nil {
		return nil, err
	}
	return g.Generate(trace.Options{})
}

// play replays a trace on emulated switches; log, which may be nil, is told what the controller does.
func play(ctx context.Context, o report.FigureOptions, t *trace.Trace, switching time.Duration, mode shim.Mode, compress float64, log func(controller.Event)) (*rehearse.Outcome, error) {
	if o.Compress > 0 {
		compress = o.Compress
	}
	o.Progress(fmt.Sprintf("%s, %s, %v", t.Name, mode, switching))
	opt := rehearse.Options{Trace: t, Switching: time.Duration(float64(switching) / compress)}
	opt.Replay.Mode, opt.Replay.Steps, opt.Replay.WarmUp, opt.Replay.Compress = mode, asked(o, steps), steps, compress
	opt.Replay.Native, opt.System.Controller.Log = mode == native, log
	opt.System.Rail.Verify = rail.Table // the paper's control plane does not look at the light
	out, err := rehearse.Run(ctx, opt)
	if err == nil && out.Verdict != nil && !out.Verdict.OK() {
		err = fmt.Errorf("%s, %s, %v: the observer does not agree: %v", t.Name, mode, switching, out.Verdict)
	}
	return out, err
}

// native is no mode of shims: the ranks have none.
const native shim.Mode = "native"

// percent is by how much b is above a, "+1.23 %".
func percent(a, b time.Duration) string {
	if a == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.2f %%", 100*(float64(b)/float64(a)-1))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
