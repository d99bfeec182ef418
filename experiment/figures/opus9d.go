package figures

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/timeline"
)

// opus9d compares how the time is shared by the layers, with auto-negotiation and without.
func opus9d(f *findings, p *report.Paper) {
	bars := chart.Bars{
		Frame: chart.Frame{
			Title: "Stages of a reconfiguration",
			About: "How long the switch, the link and the traffic take one after the other, the paper's above ours, with auto-negotiation and without.",
		},
		Axis: chart.Axis{Title: "since the command", Kind: chart.Time},
	}
	stages := func(label string, light, up, traffic time.Duration) chart.Bar {
		return chart.Bar{Label: label, Parts: []chart.Part{
			{Label: "switch and light", Tone: chart.StageTone(timeline.Light), Value: float64(max(light, 0))},
			{Label: "light to carrier", Tone: chart.StageTone(timeline.CarrierUp), Value: float64(max(up, 0))},
			{Label: "carrier to traffic", Tone: chart.StageTone(timeline.Traffic), Value: float64(max(traffic, 0))},
		}}
	}
	for _, way := range []string{"on", "off"} {
		paper := opusLinkUp[way]
		rested := f.rested(way)
		light, up := f.summary(sinceCommand(timeline.Light), rested...), f.summary(linkUp, rested...)
		carrier, after := f.summary(sinceCommand(timeline.CarrierUp), rested...), f.summary(trafficAfterCarrier, rested...)
		with := "auto-negotiation " + way + ": "
		back := published{opusSwitching.low, opusSwitching.low + opusPower.high, "200 to 300 ms"}
		p.Rows = append(p.Rows,
			back.row(with+"command to light", light.Median, light.Count, f.set("the switch is emulated with 200 ms.")),
			paper.row(with+"light to carrier", up.Median, up.Count, pairedNote, f.set(firmwareNote)),
			opusRDMA.row(with+"carrier to traffic", after.Median, after.Count, probeNote))
		quantity := with + "share of the switch in the time to carrier"
		low, high := part(back.low, paper.low), part(back.high, paper.low)
		if light.Count > 0 && carrier.Median.NS > 0 {
			p.Rows = append(p.Rows, share(quantity, low, high, float64(light.Median.NS)/float64(carrier.Median.NS),
				"The paper's is computed by us from the durations in its text; the shares that the figure shows were not available."))
		} else {
			p.Rows = append(p.Rows, missing(quantity, fmt.Sprintf("%.1f to %.1f %%", 100*low, 100*high)))
		}
		bars.Rows = append(bars.Rows, stages(way+", paper", opusSwitching.low, paper.low, (opusRDMA.low+opusRDMA.high)/2))
		if up.Count > 0 {
			bars.Rows = append(bars.Rows, stages(way+", ours", time.Duration(light.Median.NS), time.Duration(up.Median.NS), time.Duration(after.Median.NS)))
		}
	}
	p.Charts = append(p.Charts, bars)
}

// part is what a is of a and b together.
func part(a, b time.Duration) float64 { return float64(a) / float64(a+b) }
