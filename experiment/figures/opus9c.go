package figures

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/timeline"
)

// opus9c compares the layers of one reconfiguration, with auto-negotiation.
func opus9c(f *findings, p *report.Paper) {
	var with []plan.Condition
	for _, c := range f.conditions() {
		if f.autoneg(c) != "off" {
			with = append(with, c)
		}
	}
	light, up := f.summary(sinceCommand(timeline.Light), with...), f.summary(linkUp, with...)
	ack, power := f.summary(sinceCommand(timeline.Ack), with...), f.summary(lightAfterAck, with...)
	carrier := f.summary(carrierAfterFirmware, with...)
	after, whole := f.summary(trafficAfterCarrier, with...), f.summary(sinceCommand(timeline.Traffic), with...)

	resolution := ""
	if carrier.Resolution > 10*time.Microsecond {
		resolution = fmt.Sprintf("The firmware can be asked only every so often: a single mark is known to %v.", carrier.Resolution.Round(10*time.Microsecond))
	}
	if t := f.trueSummary(carrierAfterFirmware, with...); t.Count > 0 {
		resolution = sentences(resolution, fmt.Sprintf("What the emulation did, by its own log: %v.", bounds(t.Median)))
	}
	total := published{
		opusSwitching.low + 6*time.Second + opusRDMA.low,
		opusSwitching.low + opusPower.high + 6*time.Second + opusRDMA.high, "6.3 to 6.5 s",
	}
	p.Rows = append(p.Rows,
		opusSwitching.row("command to acknowledgement of the switch", ack.Median, ack.Count,
			f.set("the emulated switch takes the paper's time, and acknowledges when the light has settled; when the real one does is not published.")),
		opusPower.row("then, optical power back at the receivers", power.Median, power.Count,
			"The paper's receivers were sampled every 100 ms. Below 0 the light was there before the acknowledgement was."),
		opusLinkUp["on"].row("then, link-up: light to carrier", up.Median, up.Count, pairedNote, f.set(firmwareNote)),
		opusCarrier.row("of this, firmware to the kernel's carrier", carrier.Median, carrier.Count,
			"The unit is lost in the paper's text; µs is our reading.", f.set("75 µs with a spread of 2 µs."), resolution),
		opusRDMA.row("then, carrier to traffic", after.Median, after.Count, probeNote),
		total.row("all: command to traffic", whole.Median, whole.Count, "The paper's is the sum of the above, made by us."),
	)
	if len(with) == 0 {
		return
	}
	if number := f.typical[with[0].Number]; number != 0 {
		if c, ok := f.powerChart(number); ok {
			p.Charts = append(p.Charts, c)
		}
	}
	if whole.Count > 0 && light.Count > 0 && up.Count > 0 {
		p.Charts = append(p.Charts, f.stateChart(with, light, whole))
	}
}

// powerChart shows the power at the ports of a reconfiguration around its move, and where
// the paper saw it.
func (f *findings) powerChart(number int) (chart.Lines, bool) {
	command, ok := f.moments[number].extreme(timeline.Command, timeline.Earlier)
	if !ok {
		return chart.Lines{}, false
	}
	from, to := -100*time.Millisecond, 500*time.Millisecond // the rest of the time is flat
	if last, ok := f.moments[number].extreme(timeline.Light, timeline.Later); ok {
		to = max(to, 2*time.Duration(last.Sub(command).Latest))
	}
	lines := chart.Lines{
		Frame: chart.Frame{
			Title: "Optical power at the receivers",
			About: "The power at each port that light was moved to, from 100 ms before the command on. The paper's switch was done after 200 ms, and its receivers had power within another 100 ms.",
		},
		X: chart.Axis{Title: "since the command", Kind: chart.Time},
		Y: chart.Axis{Title: "dBm", Kind: chart.Number},
		Spans: []chart.Span{{
			From: float64(opusSwitching.low), To: float64(opusSwitching.low + opusPower.high),
			Label: "paper: power is back", Tone: chart.SeriesTone(7),
		}},
	}
	curves := map[string]int{}
	for _, s := range f.run.Samples {
		x := timeline.Interval{Earliest: s.EarliestNS, Latest: s.LatestNS}.Sub(command).Mid()
		if s.Reconfiguration != number || s.Dark || x < int64(from) || x > int64(to) || !f.lit(number, s.Subject) {
			continue
		}
		i, seen := curves[s.Subject]
		if !seen {
			i = len(lines.Curves)
			curves[s.Subject] = i
			lines.Curves = append(lines.Curves, chart.Line{Label: s.Subject, Tone: chart.SeriesTone(i)})
		}
		lines.Curves[i].Points = append(lines.Curves[i].Points, chart.Point{X: float64(x), Y: s.PowerDBm})
	}
	return lines, len(lines.Curves) > 0
}

// lit reports whether light was moved to a port.
func (f *findings) lit(number int, port string) bool {
	_, ok := f.moments[number][timeline.Light][port]
	return ok
}

// stateChart shows light, link and traffic as there or away, the paper's and ours.
func (f *findings) stateChart(of []plan.Condition, light, traffic timeline.Summary) chart.Bars {
	ms := func(d time.Duration) float64 { return float64(max(d, 0)) }
	median := func(s timeline.Stage) time.Duration {
		return time.Duration(f.summary(sinceCommand(s), of...).Median.NS)
	}
	end := max(time.Duration(traffic.Median.NS), 6500*time.Millisecond) * 11 / 10
	row := func(label string, there, away timeline.Stage, names [2]string, lost, back time.Duration) chart.Bar {
		lost = max(lost, 0)
		return chart.Bar{Label: label, Parts: []chart.Part{
			{Label: names[0], Tone: chart.StageTone(there), Value: ms(lost)},
			{Label: names[1], Tone: chart.StageTone(away), Value: ms(back - lost)},
			{Label: names[0], Tone: chart.StageTone(there), Value: ms(end - max(back, lost))},
		}}
	}
	lights, links, flows := [2]string{"light", "no light"}, [2]string{"link", "no link"}, [2]string{"traffic", "no traffic"}
	rdma := (opusRDMA.low + opusRDMA.high) / 2
	up := opusSwitching.low + opusLinkUp["on"].low
	return chart.Bars{
		Frame: chart.Frame{
			Title: "Light, link and traffic during one reconfiguration",
			About: "For each layer the paper's moments above ours (medians). When the layers were lost is not in the paper; its rows begin at the command.",
		},
		Axis: chart.Axis{Title: "since the command", Kind: chart.Time},
		Rows: []chart.Bar{
			row("light, paper", timeline.Light, timeline.Dark, lights, 0, opusSwitching.low+opusPower.high),
			row("light, ours", timeline.Light, timeline.Dark, lights, median(timeline.Dark), time.Duration(light.Median.NS)),
			row("link, paper", timeline.CarrierUp, timeline.CarrierDown, links, 0, up),
			row("link, ours", timeline.CarrierUp, timeline.CarrierDown, links, median(timeline.CarrierDown), median(timeline.CarrierUp)),
			row("traffic, paper", timeline.Traffic, timeline.TrafficLost, flows, 0, up+rdma),
			row("traffic, ours", timeline.Traffic, timeline.TrafficLost, flows, median(timeline.TrafficLost), time.Duration(traffic.Median.NS)),
		},
	}
}
