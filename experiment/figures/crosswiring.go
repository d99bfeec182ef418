package figures

import (
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/timeline"
)

// crossWiringStep is the step of the paper's job without reconfigurations, and
// crossWiringTable its average step when half of the links are reconfigured once in a period.
const crossWiringStep = 1103 * time.Millisecond

var crossWiringTable = []struct{ Period, Step time.Duration }{
	{30 * time.Second, 1175400 * time.Microsecond},
	{60 * time.Second, 1112800 * time.Microsecond},
	{90 * time.Second, 1103200 * time.Microsecond},
}

// communication is the part of a step that needs the links. The paper does not tell it, so
// this is an assumption; rows say what it changes.
const communication = 0.3

// outages is how many are gone through for each average.
const outages = 20_000

// crossWiringTable1 compares average steps, modelled from the measured outage.
func crossWiringTable1(f *findings, p *report.Paper) {
	conditions := f.conditions()
	paper := chart.Line{Label: "paper", Tone: chart.SeriesTone(0), Loose: true}
	for _, t := range crossWiringTable {
		paper.Points = append(paper.Points, chart.Point{X: float64(t.Period), Y: float64(t.Step)})
	}
	lines := chart.Lines{
		Frame: chart.Frame{
			Title: "Average training step against the period of reconfigurations",
			About: "The paper's three points, and steps modelled from the measured outage of each condition.",
		},
		X:      chart.Axis{Title: "one reconfiguration every", Kind: chart.Time},
		Y:      chart.Axis{Title: "average step", Kind: chart.Time},
		Levels: []chart.Level{{Y: float64(crossWiringStep), Label: "never"}},
		Curves: []chart.Line{paper},
	}
	measured := 0
	for _, c := range conditions {
		s := f.summary(outage, c)
		if s.Count == 0 {
			continue
		}
		measured++
		j := job{label: f.label(c), outage: s.Median, seed: f.seed}
		p.Rows = append(p.Rows, f.outageRow(j, c))
		for _, t := range crossWiringTable {
			p.Rows = append(p.Rows, j.row(t.Period, t.Step))
		}
		p.Rows = append(p.Rows, j.slots(crossWiringTable[0].Period, crossWiringTable[0].Step))
		lines.Curves = append(lines.Curves, j.curve(measured))
	}
	if measured == 0 {
		for _, t := range crossWiringTable {
			p.Rows = append(p.Rows, missing(stepEvery("", t.Period), milliseconds(timeline.Point(int64(t.Step)))))
		}
		return
	}
	p.Rows = append(p.Rows, report.PaperRow{
		Quantity: "step without reconfigurations", Paper: "1103.0 ms", Ours: "1103.0 ms", Deviation: "",
		Note: fmt.Sprintf("An input of the model, as is the part of it that needs the links: %.0f %%, assumed, since the paper does not tell it.", 100*communication),
	}, consistency())
	p.Charts = append(p.Charts, lines)
}

// label tells conditions of a run apart.
func (f *findings) label(c plan.Condition) string {
	switch {
	case c.Settings.Firmware != "":
		return c.Settings.Firmware
	case c.Label != "":
		return c.Label
	}
	return "this lab"
}

// job is a modelled job on links with a measured outage.
type job struct {
	label  string
	outage timeline.Estimate
	seed   uint64
}

// stall is the model with an outage of ns.
func (j job) stall(ns int64) Stall {
	return Stall{Step: crossWiringStep, Share: communication, Outage: time.Duration(max(ns, 0))}
}

// outageRow says what was measured, and of what.
func (f *findings) outageRow(j job, c plan.Condition) report.PaperRow {
	note := "From the first packet lost to all pairs having traffic again."
	if f.summary(sinceCommand(timeline.Traffic), c).Count == 0 {
		note = "There was no traffic: this is the outage of links, or of light."
	}
	if moved := f.moved(c); moved > 0 && moved < 1 {
		note += fmt.Sprintf(" %.0f %% of the circuits were moved.", 100*moved)
		if n := f.bystanders(c); n > 0 {
			note += fmt.Sprintf(" Traffic on the others was interrupted, too (outages: %d): a NIC that gets no light does not send.", n)
		}
	}
	return report.PaperRow{
		Quantity: j.label + ": outage of a reconfiguration", Paper: "not told", Ours: bounds(j.outage).String(),
		Note: sentences(note, f.set("switch and firmware are emulated.")),
	}
}

// moved is the part of the circuits that the first reconfiguration of a condition brought
// about; the others were there before. It is 0 if that is not known.
func (f *findings) moved(c plan.Condition) float64 {
	for _, r := range f.run.Reconfigurations {
		to := slices.Index(c.Sequence, r.To)
		if r.Condition != c.Number || r.Null || to < 0 || to >= len(c.Maps) {
			continue
		}
		all, added := 0, 0
		for name, m := range c.Maps[to] {
			all += m.Len()
			added += r.Added[name].Len()
		}
		return float64(added) / float64(max(all, 1))
	}
	return 0
}

// bystanders is how often traffic was interrupted whose circuits were not moved.
func (f *findings) bystanders(c plan.Condition) int {
	count := 0
	for i, number := range f.run.NoteOf {
		if _, ours := slices.BinarySearch(f.numbers[c.Number], number); ours && f.run.Notes[i].Kind == watch.Outage {
			count++
		}
	}
	return count
}

func stepEvery(label string, period time.Duration) string {
	if label != "" {
		label += ": "
	}
	return fmt.Sprintf("%saverage step, one reconfiguration every %.0f s, modelled", label, period.Seconds())
}

// row compares the average step at a period.
func (j job) row(period, paper time.Duration) report.PaperRow {
	r := report.PaperRow{Quantity: stepEvery(j.label, period), Paper: milliseconds(timeline.Point(int64(paper)))}
	if _, ok := j.stall(j.outage.HighNS).Average(period); !ok {
		r.Ours = "no time is left for steps"
		return r
	}
	low := j.stall(j.outage.LowNS).Simulate(period, outages, j.seed)
	high := j.stall(j.outage.HighNS).Simulate(period, outages, j.seed)
	step := timeline.Between(int64(low), int64(high))
	lost := j.stall(j.outage.NS)
	least, most := lost, lost
	least.Share, most.Share = 0, 1
	r.Ours, r.Deviation = milliseconds(step), exactly(paper, "").deviation(step)
	r.Note = fmt.Sprintf("Lost in each: %s, the paper's by arithmetic %s. Between %s and %s if communication were 0 or 100 %% of a step.",
		shortly(lost.Lost()), shortly(lostPerEvent(crossWiringStep, paper, period)), shortly(least.Lost()), shortly(most.Lost()))
	return r
}

// slots is the same for a transport that had packets in flight.
func (j job) slots(period, paper time.Duration) report.PaperRow {
	const timeout, retry = 20, 7 // NCCL's defaults
	r := report.PaperRow{
		Quantity: stepEvery(j.label, period) + ", with packets in flight",
		Paper:    milliseconds(timeline.Point(int64(paper))),
	}
	s := j.stall(j.outage.NS)
	if _, alive, _ := probe.NextSlot(s.Outage, timeout, retry); !alive {
		r.Ours = "the connection is lost"
		r.Note = fmt.Sprintf("RDMA (ConnectX-6, timeout %d, %d retries) gives up before.", timeout, retry)
		return r
	}
	s.Resume = func(away time.Duration) time.Duration {
		slot, _, _ := probe.NextSlot(away, timeout, retry)
		return slot
	}
	step := timeline.Point(int64(s.Simulate(period, outages, j.seed)))
	r.Ours, r.Deviation = milliseconds(step), exactly(paper, "").deviation(step)
	r.Note = fmt.Sprintf("RDMA sends again only at its slots (ConnectX-6, timeout %d, %d retries); lost in each: %s.", timeout, retry, shortly(s.Lost()))
	return r
}

// consistency says what is odd about the paper's own figures.
func consistency() report.PaperRow {
	text := ""
	for i, t := range crossWiringTable {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s every %.0f s", shortly(lostPerEvent(crossWiringStep, t.Step, t.Period)), t.Period.Seconds())
	}
	return report.PaperRow{
		Quantity: "time lost in one reconfiguration", Paper: text, Ours: "one value for all periods",
		Note: "By arithmetic from the table: what a single reconfiguration costs there shrinks with how rarely it comes, to nearly nothing. No constant loss for each explains that, so no model of this kind can meet all three rows.",
	}
}

// curve is the model in closed form.
func (j job) curve(i int) chart.Line {
	line := chart.Line{Label: j.label, Tone: chart.SeriesTone(i)}
	for period := 20 * time.Second; period <= 120*time.Second; period += 2 * time.Second {
		if step, ok := j.stall(j.outage.NS).Average(period); ok {
			line.Points = append(line.Points, chart.Point{X: float64(period), Y: float64(step)})
		}
	}
	return line
}

// milliseconds shows steps as the paper does.
func milliseconds(step timeline.Interval) string { return shown(step, time.Millisecond, "ms", 1) }

// shortly shows a duration with three digits.
func shortly(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}
