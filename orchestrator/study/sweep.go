package study

import (
	"context"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
)

// archived is a step in the archive of the paper's measurements, with provisioning.
type archived struct{ delay, step time.Duration }

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// archives are the archived averages, by trace. Their steps at 0 ms include what the paper's control plane takes.
var archives = map[string][]archived{
	"config-1": {
		{0, ms(10222)}, {ms(10), ms(10370.5)}, {ms(50), ms(10320.3)}, {ms(100), ms(10614.2)}, {ms(250), ms(11269.2)},
		{ms(500), ms(12557)}, {ms(750), ms(13953.8)}, {ms(1000), ms(15121.5)},
	},
	"config-2": {
		{0, ms(13973)}, {ms(10), ms(13986)}, {ms(50), ms(14093)}, {ms(100), ms(14308)}, {ms(250), ms(15027)},
		{ms(500), ms(16173)}, {ms(750), ms(17593)}, {ms(1000), ms(18721)},
	},
}

// sweep measures steps at the archive's delays.
func sweep(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	compress := 10.
	if opt.Compress > 0 {
		compress = opt.Compress
	}
	s := &report.Study{Emulated: emulated, Facts: [][2]string{
		{"protocol", fmt.Sprintf("mean of %s after %d; played %g times faster and scaled back, and with it what the control plane takes",
			natural.Count(asked(opt, steps), "step"), steps, compress)},
	}}
	s.Paper.Title = "figure 10, provisioning: archived averages"
	for _, name := range []string{"config-1", "config-2"} {
		t, err := generate(name)
		if err != nil {
			return nil, err
		}
		table := report.StudySection{Title: t.Name + ": step by switching time", Columns: []string{
			"switching time", "archive", "here, provisioned", "deviation", "model", "here, on demand", "model, on demand", "switch commands a step and rail"}}
		lines := map[string]*chart.Line{}
		var order []*chart.Line
		add := func(label string, delay, step time.Duration) {
			if lines[label] == nil {
				lines[label] = &chart.Line{Label: label, Tone: chart.SeriesTone(len(order)), Loose: label[0] == 'a'}
				order = append(order, lines[label])
			}
			lines[label].Points = append(lines[label].Points, chart.Point{X: float64(delay), Y: float64(step)})
		}
		for _, a := range archives[name] {
			steps := map[shim.Mode]time.Duration{}
			var commands float64
			for _, mode := range []shim.Mode{shim.ModeProvision, shim.ModeDemand} {
				out, err := play(ctx, opt, t, a.delay, mode, compress, nil)
				if err != nil {
					return s, err
				}
				steps[mode] = out.Result.Mean().Scaled
				if mode == shim.ModeProvision {
					commands = float64(out.Result.Mean().Reconfigurations) / float64(t.Rails)
				}
			}
			model := trace.Simulate(t, trace.Model{Delta: a.delay, Mode: trace.Provision}).Step
			demand := trace.Simulate(t, trace.Model{Delta: a.delay, Mode: trace.Demand}).Step
			add("archive of the paper", a.delay, a.step)
			add("here, provisioned", a.delay, steps[shim.ModeProvision])
			add("here, on demand", a.delay, steps[shim.ModeDemand])
			add("model, provisioned", a.delay, model)
			add("model, on demand", a.delay, demand)
			ours := steps[shim.ModeProvision]
			table.Table = append(table.Table, []string{a.delay.String(), seconds(a.step), seconds(ours), percent(a.step, ours), seconds(model),
				seconds(steps[shim.ModeDemand]), seconds(demand), fmt.Sprintf("%.1f", commands)})
			row := report.PaperRow{Quantity: fmt.Sprintf("%s, %v", t.Name, a.delay), Paper: seconds(a.step), Ours: seconds(ours), Deviation: percent(a.step, ours)}
			if a.delay == ms(10) && name == "config-1" {
				row.Note = "The archived point is above that of 50 ms: noise."
			}
			s.Paper.Rows = append(s.Paper.Rows, row)
		}
		l := chart.Lines{Frame: chart.Frame{Title: t.Name + ": step against switching time"},
			X: chart.Axis{Title: "switching time", Kind: chart.Time}, Y: chart.Axis{Title: "step", Kind: chart.Time}}
		for _, x := range order {
			l.Curves = append(l.Curves, *x)
		}
		table.Charts = append(table.Charts, l)
		s.Sections = append(s.Sections, table)
	}
	if len(s.Paper.Rows) > 0 {
		s.Paper.Rows[0].Note = "The windows of the traces were fitted to these averages; what is found is whether the running control plane keeps to them."
	}
	return s, nil
}

// ppOnly shows that a job along one axis reconfigures nothing.
func ppOnly(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	t, err := generate("config-3")
	if err != nil {
		return nil, err
	}
	s := &report.Study{Emulated: emulated}
	s.Paper.Title = "figure 11, configuration 3 (DeepSeek-v3-16B, TP4 PP4)"
	base, err := play(ctx, opt, t, 0, native, 10, nil)
	if err != nil {
		return s, err
	}
	table := report.StudySection{Title: "Steps and changes", Columns: []string{"switching time", "step", "against no control plane", "changes before the steps", "changes in measured steps"}}
	table.Table = append(table.Table, []string{"no control plane", seconds(base.Result.Mean().Scaled), "", "0", "0"})
	var first time.Duration
	for _, delay := range []time.Duration{0, ms(100)} {
		out, err := play(ctx, opt, t, delay, shim.ModeProvision, 10, nil)
		if err != nil {
			return s, err
		}
		step, during := out.Result.Mean().Scaled, 0
		for _, x := range out.Result.Steps {
			during += x.Reconfigurations
		}
		var all uint64
		for _, r := range out.Rails {
			all += r.Counters.Changes
		}
		table.Table = append(table.Table, []string{delay.String(), seconds(step), percent(base.Result.Mean().Scaled, step),
			fmt.Sprintf("%d on %d rails", all-uint64(during), len(out.Rails)), fmt.Sprint(during)})
		if delay == 0 {
			first = step
			s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "step against no control plane, 0 ms", Paper: "+6.46 %", Ours: percent(base.Result.Mean().Scaled, step),
				Note: "The archive has 7.7473 s against 7.2788 s, which is 6.44 %. Scaled back from a replay that is faster: the control plane's own time is then counted as often."})
		} else {
			s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "step at 100 ms against 0 ms", Paper: "the same", Ours: percent(first, step)},
				report.PaperRow{Quantity: "switch commands in the measured steps", Paper: "0", Ours: fmt.Sprint(during)})
		}
	}
	s.Sections = append(s.Sections, table)
	return s, nil
}
