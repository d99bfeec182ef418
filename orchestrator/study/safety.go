package study

import (
	"context"
	"fmt"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/rehearse"
	"github.com/ocslab/ocslab/orchestrator/shim"
)

// safety runs the hazard in three granularities.
func safety(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	t, err := generate("hazard")
	if err != nil {
		return nil, err
	}
	s := &report.Study{Emulated: emulated}
	s.Paper.Title = "section 6: the digit is of a stage, the barrier of a group"
	table := report.StudySection{Title: "One step on a switch of 20 ms",
		Text:    "The group dp of stage 0 that is ready first needs the ingress ports 1,2,5,6 and parts 9,10,13,14 from them. A change of the whole digit moves all 16.",
		Columns: []string{"granularity", "changes", "cross-connects removed", "violations", "on ingress ports", "bytes lost"}}
	for _, g := range controller.Granularities {
		opt.Progress(string(g))
		ask := rehearse.Options{Trace: t, Switching: ms(20)}
		ask.Replay.Mode, ask.Replay.Steps, ask.Replay.WarmUp = shim.ModeDemand, 1, -1
		ask.System.Controller.Granularity = g
		out, err := rehearse.Run(ctx, ask)
		if err != nil {
			return s, err
		}
		r, v := out.Rails["rail0"].Counters, out.Verdict
		table.Table = append(table.Table, []string{string(g), fmt.Sprint(r.Changes), fmt.Sprint(r.Removed), fmt.Sprint(v.Total()), ocs.FormatPorts(v.Ingress()), fmt.Sprint(v.Lost)})
		row := report.PaperRow{Quantity: string(g) + ": ingress ports changed under operations", Paper: "0", Ours: fmt.Sprint(len(v.Ingress()))}
		switch g {
		case controller.Published:
			row.Paper, row.Note = "not discussed", "The published rule: a digit changes when one group has asked. The observer must find the ports 3,4,7,8,11,12,15,16: it found "+ocs.FormatPorts(v.Ingress())+"."
		case controller.Stage:
			row.Note = "A digit changes when all groups of the axis in the stage have asked, and nobody uses what goes."
		case controller.Circuit:
			row.Note = "A request moves the circuits of its own group."
		}
		s.Paper.Rows = append(s.Paper.Rows, row)
		if g == controller.Published {
			s.Sections = append(s.Sections, report.StudySection{Title: "What the observer says of the published granularity", Pre: v.String()})
		}
	}
	s.Sections = append([]report.StudySection{table}, s.Sections...)
	return s, nil
}
