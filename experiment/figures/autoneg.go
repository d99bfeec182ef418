package figures

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/timeline"
)

// noRest is a dwell below which there is none.
const noRest = 100 * time.Millisecond

// rested are the conditions with auto-negotiation as given that rest before each
// reconfiguration; if none does, all of them.
func (f *findings) rested(way string) []plan.Condition {
	var all, rested []plan.Condition
	for _, c := range f.conditions() {
		if f.autoneg(c) != way {
			continue
		}
		all = append(all, c)
		if c.Settings.Dwell >= noRest {
			rested = append(rested, c)
		}
	}
	if len(rested) > 0 {
		return rested
	}
	return all
}

// autoneg compares link-ups rested and in rapid succession.
func autoneg(f *findings, p *report.Paper) {
	lines := chart.Lines{
		Frame: chart.Frame{
			Title: "Light to carrier, one reconfiguration after the other",
			About: "The slowest NIC of each reconfiguration, in the order of each condition; lines across are what the paper reports.",
		},
		X: chart.Axis{Title: "reconfiguration of the condition", Kind: chart.Number, Whole: true},
		Y: chart.Axis{Title: "light to carrier", Kind: chart.Time},
		Levels: []chart.Level{
			{Y: 6e9, Label: "paper: 6 s, auto-negotiation on"},
			{Y: 3e9, Label: "paper: 3 s, off"},
			{Y: 10e9, Label: "paper: up to 10 s, rapid"},
		},
	}
	for _, way := range []string{"on", "off"} {
		with := "auto-negotiation " + way
		s := f.summary(linkUp, f.rested(way)...)
		p.Rows = append(p.Rows, opusLinkUp[way].row(with+", rested: light to carrier", s.Median, s.Count, pairedNote, f.set(firmwareNote)))

		found := false
		for _, c := range f.conditions() {
			if f.autoneg(c) != way {
				continue
			}
			label := with + ", rested"
			if c.Settings.Dwell < noRest {
				label = with + ", rapid"
				at, _ := f.largest(linkUp, c)
				median := f.summary(linkUp, c).Median
				found = true
				p.Rows = append(p.Rows, opusRapid.row(label+": light to carrier, the slowest",
					timeline.Estimate{NS: at.Mid(), LowNS: at.Earliest, HighNS: at.Latest}, f.summary(linkUp, c).Count,
					fmt.Sprintf("The median is %v.", bounds(median)),
					"The paper does not say after how many repeats, nor whether this was without auto-negotiation.",
					f.set("the firmware's seconds after more than two link-ups in 20 s are assumed so that the most is 10 s.")))
			}
			lines.Curves = append(lines.Curves, f.inOrder(c, label, len(lines.Curves)))
		}
		if !found {
			p.Rows = append(p.Rows, missing(with+", rapid: light to carrier, the slowest", opusRapid.text))
		}
	}
	if len(lines.Curves) > 0 {
		p.Charts = append(p.Charts, lines)
	}
}

// inOrder is the curve of the slowest link-ups of a condition.
func (f *findings) inOrder(c plan.Condition, label string, i int) chart.Line {
	line := chart.Line{Label: label, Tone: chart.SeriesTone(i)}
	for place, number := range f.numbers[c.Number] {
		var slowest timeline.Interval
		for _, d := range linkUp(f, f.moments[number]) {
			slowest = timeline.Later(slowest, d)
		}
		if slowest.Latest > 0 {
			line.Points = append(line.Points, chart.Point{
				X: float64(place + 1), Y: float64(slowest.Mid()),
				Low: float64(slowest.Earliest), High: float64(slowest.Latest),
			})
		}
	}
	return line
}
