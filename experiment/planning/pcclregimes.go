package planning

import (
	"context"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment/collective"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/quantity"
	"github.com/ocslab/ocslab/timeline"
)

// pcclRegimes measures the three regimes of a schedule on three classes of switch.
func pcclRegimes(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	r, err := collective.Demo(ctx, collective.DemoOptions{Repeats: opt.Repeats, Progress: opt.Progress})
	if err != nil {
		return nil, err
	}
	return regimes(r), nil
}

// regimes writes up what was measured.
func regimes(r *collective.Report) *report.Study {
	s := &report.Study{
		Emulated: "Switches are emulated, behind real sockets and drivers. Transfers are metered, and no data is moved: what is measured is the time in which " +
			"circuits and links let so many bytes pass, and the planner's model is not used for that.",
		Facts: [][2]string{
			{"schedule", fmt.Sprintf("%s of %s on %d GPUs, on a ring at first", r.Schedule, quantity.Bytes(r.Bytes), r.GPUs)},
			{"links", fmt.Sprintf("%s a hop, %s: the paper's, 1000 times slower, so that switches there are do what those of the paper do",
				quantity.Seconds(r.Params.Alpha), quantity.Rate(1/r.Params.Beta))},
			{"switching time", "measured on each switch, from the decision until light is back and the map has been read back, and then planned with"},
		},
	}
	s.Paper.Title = "its cost model at nominal switching times, and what was measured"
	section := report.StudySection{
		Title:   "Three plans on three switches",
		Text:    "Rewire for each round, for some, or never: the quickest plan depends on the switch, and the planner finds it from the switching time that was measured. Predicted and measured should agree within 5 %; from and to are the least and the most of the repeats.",
		Columns: []string{"switch, plan", "chosen", "predicted", "measured", "from", "to", "error"},
	}
	for _, c := range r.Classes {
		s.Facts = append(s.Facts, [2]string{c.Name, switchText(c)})
		for _, o := range c.Plans {
			chosen, by := "", deviation(o.Predicted, o.Measured)
			if o.Chosen {
				chosen = "yes"
			}
			name := fmt.Sprintf("%s: %s", c.Name, named(o))
			least, most := ends(o.Totals)
			section.Table = append(section.Table, []string{name, chosen, milli(o.Predicted), milli(o.Measured), milli(least), milli(most), by})
		}
		best, fastest := c.Chosen(), c.Fastest()
		s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: fmt.Sprintf("%s, %v: %s", c.Name, c.Nominal, named(best)), Paper: milli(best.Nominal),
			Ours: milli(best.Measured), Deviation: deviation(best.Nominal, best.Measured),
			Note: "The model counts the switch alone. What was measured holds the driver, reading back and seeing the light, too; with those in the switching time it is as predicted below."})
		row := report.PaperRow{Quantity: c.Name + ": the planner chose the quickest", Paper: "yes", Ours: "yes", Deviation: "as planned"}
		if !fastest.Chosen {
			row.Ours, row.Deviation = "no, "+named(fastest), "not as planned"
			row.Note = "A machine that is busy can do that where two plans are close: see the spread."
		}
		s.Paper.Rows = append(s.Paper.Rows, row)
	}
	section.Charts = []chart.Chart{totals(r)}
	s.Sections = append(s.Sections, section)
	for _, c := range r.Classes {
		s.Sections = append(s.Sections, rounds(c, c.Chosen()))
	}
	return s
}

// named is a plan in words.
func named(o collective.Outcome) string { return natural.Count(o.Plan.Changes, "change") }

func milli(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

// deviation of what was measured, in percent.
func deviation(predicted, measured time.Duration) string {
	if predicted <= 0 {
		return "-"
	}
	by := 100 * (float64(measured)/float64(predicted) - 1)
	return fmt.Sprintf("%+.1f %%", by)
}

// ends are the least and the most of several durations.
func ends(all []time.Duration) (least, most time.Duration) {
	for i, d := range all {
		if i == 0 {
			least = d
		}
		least, most = min(least, d), max(most, d)
	}
	return least, most
}

func switchText(c collective.Class) string {
	least, most := ends(c.Switching)
	return fmt.Sprintf("%s, spoken to in %s, emulated with %s: %s measured in %s, %s to %s, of which %s from the request on the wire to the light", c.About, c.Protocol, milli(c.Nominal), milli(c.Measured),
		natural.Count(len(c.Switching), "toggle"), milli(least), milli(most), milli(c.Light))
}

// totals shows what each plan took on each switch: transfers and switching.
func totals(r *collective.Report) *chart.Bars {
	bars := &chart.Bars{
		Frame: chart.Frame{Title: "What each plan took on each switch", About: "Measured; the note beside each bar has what was predicted. The chosen plan is marked."},
		Axis:  chart.Axis{Title: "reduce-scatter", Kind: chart.Time},
	}
	for _, c := range r.Classes {
		for _, o := range c.Plans {
			var moving, switching time.Duration
			for _, x := range o.Rounds {
				moving, switching = moving+x.Measured, switching+x.Switching
			}
			label := fmt.Sprintf("%s: %s", c.Name, named(o))
			if o.Chosen {
				label += " (chosen)"
			}
			bars.Rows = append(bars.Rows, chart.Bar{Label: label, Note: fmt.Sprintf("%s, predicted %s", milli(o.Measured), milli(o.Predicted)), Parts: []chart.Part{
				{Label: "transfers", Tone: chart.StageTone(timeline.Traffic), Value: float64(moving)},
				{Label: "switching", Tone: chart.StageTone(timeline.Light), Value: float64(switching)},
			}})
		}
	}
	return bars
}

// rounds are those of the plan that was chosen.
func rounds(c collective.Class, o collective.Outcome) report.StudySection {
	s := report.StudySection{
		Title:   fmt.Sprintf("Rounds on %s: %s", c.Name, named(o)),
		Columns: []string{"round", "wired", "switching", "predicted", "measured", "error"},
	}
	for _, x := range o.Rounds {
		switching := "-"
		if x.Changed {
			switching = milli(x.Switching)
		}
		s.Table = append(s.Table, []string{fmt.Sprint(x.Number), x.Topology, switching, milli(x.Predicted), milli(x.Measured), deviation(x.Predicted, x.Measured)})
	}
	return s
}
