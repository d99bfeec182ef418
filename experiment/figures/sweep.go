package figures

import (
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/timeline"
)

// delaySweep compares modelled steps with archived ones.
func delaySweep(f *findings, p *report.Paper) {
	light := chart.Line{Label: "to light", Tone: chart.StageTone(timeline.Light)}
	traffic := chart.Line{Label: "to traffic", Tone: chart.StageTone(timeline.Traffic)}
	ours := chart.Line{Label: "ours, from the measured delay", Tone: chart.SeriesTone(0), Loose: true}
	for _, c := range f.conditions() {
		toLight := f.summary(sinceCommand(timeline.Light), c)
		note := "to light"
		if toLight.Count == 0 { // too short for the monitors: they never saw it dark
			if toLight = f.summary(sinceCommand(timeline.Ack), c); toLight.Count == 0 {
				continue
			}
			note = "to the acknowledgement (no darkness was seen)"
		}
		delay, low, high := toLight.Median.NS, max(toLight.Median.LowNS, 0), max(toLight.Median.HighNS, 0)
		step := timeline.Between(int64(opusConfig1.Step(time.Duration(low))), int64(opusConfig1.Step(time.Duration(high))))
		note = fmt.Sprintf("Measured: %v %s", bounds(toLight.Median), note)
		toTraffic := f.summary(sinceCommand(timeline.Traffic), c)
		if toTraffic.Count > 0 {
			note += fmt.Sprintf(", %v to traffic", bounds(toTraffic.Median))
		}
		note += "."
		if c.Settings.Switching == nil { // what the switch takes is what was found
			p.Rows = append(p.Rows, report.PaperRow{
				Quantity: "training step with this switch, modelled",
				Paper:    nearest(time.Duration(delay)), Ours: seconds(step), Note: note,
			})
		} else {
			set := *c.Settings.Switching
			p.Rows = append(p.Rows, stepRow(set, step, note))
			x := float64(set)
			light.Points = append(light.Points, point(x, toLight.Median))
			if toTraffic.Count > 0 {
				traffic.Points = append(traffic.Points, point(x, toTraffic.Median))
			}
		}
		ours.Points = append(ours.Points, chart.Point{X: float64(delay), Y: added(step.Mid()), Low: added(step.Earliest), High: added(step.Latest)})
	}
	if len(ours.Points) == 0 {
		for _, a := range opusArchive {
			p.Rows = append(p.Rows, missing(stepQuantity(a.Delay), seconds(timeline.Point(int64(a.Step)))))
		}
		return
	}
	p.Rows[0].Note += " Delays are measured, step times are modelled: the archive's step without delay, and six windows (5 of 26 ms, 1 of 1680 ms) that hide what fits into them." +
		" The windows were fitted to this archive, so what the deviation tells is whether the measured delay is the one that was asked for."
	if f.emulated {
		p.Rows[0].Note += " Switching times are those that the emulator was set to."
	}
	if len(light.Points) > 0 {
		p.Charts = append(p.Charts, chart.Lines{
			Frame: chart.Frame{
				Title: "Measured delay against switching time",
				About: "Medians since the command, with bounds of 95 % confidence.",
			},
			X:      chart.Axis{Title: "switching time that was set", Kind: chart.Time},
			Y:      chart.Axis{Title: "since the command", Kind: chart.Time},
			Curves: []chart.Line{light, traffic},
		})
	}
	p.Charts = append(p.Charts, stepChart(ours))
}

func point(x float64, e timeline.Estimate) chart.Point {
	return chart.Point{X: x, Y: float64(e.NS), Low: float64(e.LowNS), High: float64(e.HighNS)}
}

func stepQuantity(set time.Duration) string {
	return fmt.Sprintf("training step at %d ms, modelled", set.Milliseconds())
}

// stepRow compares the step at a delay with the archive, if that has the delay.
func stepRow(set time.Duration, step timeline.Interval, note string) report.PaperRow {
	for _, a := range opusArchive {
		if a.Delay != set {
			continue
		}
		if set == 10*time.Millisecond {
			note += " The archived point is above that of 50 ms: noise."
		}
		return report.PaperRow{
			Quantity: stepQuantity(set), Paper: seconds(timeline.Point(int64(a.Step))), Ours: seconds(step),
			Deviation: exactly(a.Step, "").deviation(step), Note: note,
		}
	}
	return report.PaperRow{Quantity: stepQuantity(set), Paper: "not archived", Ours: seconds(step), Note: note}
}

// added is what a step is beyond that without delay.
func added(step int64) float64 { return float64(step - int64(opusConfig1.Base)) }

// nearest says what the archive has at the delay nearest to d.
func nearest(d time.Duration) string {
	best := opusArchive[0]
	for _, a := range opusArchive {
		if math.Abs(float64(a.Delay-d)) < math.Abs(float64(best.Delay-d)) {
			best = a
		}
	}
	return fmt.Sprintf("%s at %d ms", seconds(timeline.Point(int64(best.Step))), best.Delay.Milliseconds())
}

// seconds shows steps, to the millisecond: the archive is not known any better.
func seconds(step timeline.Interval) string { return shown(step, time.Second, "s", 3) }

// stepChart shows steps against delays: ours, the archive's, the model, and what it would be
// if nothing were hidden.
func stepChart(ours chart.Line) chart.Lines {
	paper := chart.Line{Label: "archive of the paper", Tone: chart.SeriesTone(1), Loose: true}
	model := chart.Line{Label: "model", Tone: chart.SeriesTone(2)}
	demand := chart.Line{Label: "model, nothing hidden", Tone: chart.SeriesTone(3)}
	for _, a := range opusArchive {
		paper.Points = append(paper.Points, chart.Point{X: float64(a.Delay), Y: added(int64(a.Step))})
	}
	for d := time.Duration(0); d <= time.Second; d += 20 * time.Millisecond {
		model.Points = append(model.Points, chart.Point{X: float64(d), Y: added(int64(opusConfig1.Step(d)))})
		demand.Points = append(demand.Points, chart.Point{X: float64(d), Y: added(int64(opusConfig1.Demand(d)))})
	}
	return chart.Lines{
		Frame: chart.Frame{
			Title: "What reconfigurations add to a training step",
			About: "Beyond the step without delay: modelled from measured delays, and the averages in the archive of the paper.",
		},
		X:      chart.Axis{Title: "delay", Kind: chart.Time},
		Y:      chart.Axis{Title: "added to the step", Kind: chart.Time},
		Curves: []chart.Line{model, demand, paper, ours},
	}
}
