package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/timeline"
)

// section is the timeline of the last measured step.
func (r *labResult) section() report.StudySection {
	_, end := r.measured()
	step := end - 1
	s := report.StudySection{Title: fmt.Sprintf("Timeline of a step: %s (%s)", r.name, r.firmware)}
	changes := r.in(step, "")
	if len(changes) == 0 {
		s.Text = "Nothing was reconfigured."
		return s
	}
	s.Text = aboutTimeline
	if why := r.unseen(); why != "" {
		s.Text += " " + why
	}
	for _, x := range r.job.Rails {
		s.Charts = append(s.Charts, r.waterfall(x.Name, r.in(step, x.Name)))
	}
	lines := slices.Concat(r.lines(changes), []string{""}, r.perNIC(changes), []string{""}, r.stages(changes))
	s.Pre = strings.Join(lines, "\n") + "\n"
	return s
}

// unseen says what is missing of a timeline here, and why.
func (r *labResult) unseen() string {
	why := map[string][]string{}
	var order []string
	for _, x := range r.missing {
		if why[x.Why] == nil {
			order = append(order, x.Why)
		}
		if !slices.Contains(why[x.Why], x.Name) {
			why[x.Why] = append(why[x.Why], x.Name)
		}
	}
	var all []string
	for _, x := range order {
		all = append(all, fmt.Sprintf("Not watched: %s (%s).", strings.Join(why[x], ", "), x))
	}
	if r.on == fabric.Memory {
		all = append([]string{"No network devices can be made here, so carriers are those of the emulation and not of a kernel."}, all...)
	}
	return strings.Join(all, " ")
}

// span is from when the first of marks was reached until the last was, since a command: "3.012 - 3.345 s".
func span(c *labChange, marks []timeline.Mark) string {
	if len(marks) == 0 {
		return "-"
	}
	first, last := time.Duration(marks[0].Latest-c.begun), time.Duration(marks[len(marks)-1].Latest-c.begun)
	if first == last {
		return fmt.Sprintf("%.3f", first.Seconds())
	}
	return fmt.Sprintf("%.3f-%.3f", first.Seconds(), last.Seconds())
}

// lines are the reconfigurations, a line each.
func (r *labResult) lines(changes []*labChange) []string {
	const format = "%8s  %-6s %-9s %5s  %7s  %-13s  %-15s  %9s"
	all := []string{fmt.Sprintf(format, "at", "rail", "to", "-/+", "ack", "light", "carrier", "operation"),
		fmt.Sprintf(format, "s", "", "", "", "s", "s", "s", "s")}
	for _, c := range changes {
		operation := "-"
		if m := r.of(c, timeline.Traffic); len(m) > 0 {
			operation = span(c, m[:1])
		}
		at := time.Duration(c.begun - changes[0].begun)
		line := fmt.Sprintf(format, fmt.Sprintf("%.3f", at.Seconds()), c.rail, c.id, fmt.Sprintf("%d/%d", len(c.removed), len(c.added)),
			fmt.Sprintf("%.3f", c.took().Seconds()), span(c, r.of(c, timeline.Light)), span(c, r.of(c, timeline.CarrierUp)), operation)
		all = append(all, strings.TrimRight(line, " "))
	}
	return all
}

// perNIC is when each NIC had carrier after each reconfiguration of its rail.
func (r *labResult) perNIC(changes []*labChange) []string {
	all := []string{"carrier of each NIC after each of these, in s (. light not touched, - gone before the link was up)"}
	for _, x := range r.job.Rails {
		ours := slices.DeleteFunc(slices.Clone(changes), func(c *labChange) bool { return c.rail != x.Name })
		head := fmt.Sprintf("%-16s", x.Name)
		for _, c := range ours {
			head += fmt.Sprintf("%10s", c.id)
		}
		all = append(all, head)
		for _, nic := range slices.Concat(x.Ranks...) {
			line := fmt.Sprintf("%-16s", nic)
			for _, c := range ours {
				up := slices.DeleteFunc(r.of(c, timeline.CarrierUp), func(m timeline.Mark) bool { return m.Subject != nic })
				switch {
				case len(up) > 0:
					line += fmt.Sprintf("%10.3f", time.Duration(up[0].Latest-c.begun).Seconds())
				case r.touches(c, nic):
					line += fmt.Sprintf("%10s", "-")
				default:
					line += fmt.Sprintf("%10s", ".")
				}
			}
			all = append(all, line)
		}
	}
	return all
}

// stages are the reconfigurations of a step together, by stage.
func (r *labResult) stages(changes []*labChange) []string {
	in := map[int]bool{}
	for _, c := range changes {
		in[c.number] = true
	}
	marks := slices.DeleteFunc(slices.Clone(r.marks), func(m timeline.Mark) bool { return !in[m.Reconfiguration] })
	expected := slices.DeleteFunc(slices.Clone(r.expected), func(e timeline.Expectation) bool { return !in[e.Reconfiguration] })
	return append([]string{"all of these together, by stage"},
		timeline.Waterfall{Width: 100}.Lines(timeline.Summarize(marks, timeline.Options{Expected: expected}))...)
}

// waterfall draws the reconfigurations of a rail in a step.
func (r *labResult) waterfall(rail string, changes []*labChange) chart.Waterfall {
	w := chart.Waterfall{Frame: chart.Frame{Title: fmt.Sprintf("%s: a step on %s", r.name, rail),
		About: "Reconfigurations one below the other: acknowledgement, light, carrier from the first to the last NIC, and the first operations."}}
	if len(changes) == 0 {
		return w
	}
	start := changes[0].begun
	for _, c := range changes {
		from := c.begun - start
		ack := from + int64(c.took())
		w.Rows = append(w.Rows, chart.Row{Label: "to " + c.id, Sub: fmt.Sprintf("%d removed, %d added", len(c.removed), len(c.added)),
			Tone: chart.StageTone(timeline.Ack), From: from, To: ack, At: timeline.Point(ack), Note: "acknowledged after " + brief(time.Duration(ack-from))})
		for _, stage := range []timeline.Stage{timeline.Light, timeline.CarrierUp, timeline.Traffic} {
			marks := r.of(c, stage)
			if len(marks) == 0 {
				continue
			}
			first, last := marks[0], marks[len(marks)-1]
			at := timeline.Between(first.Earliest-start, first.Latest-start)
			row := chart.Row{Label: string(stage), Tone: chart.StageTone(stage), From: from, To: at.Latest, At: at}
			row.Tail = last.Latest - start
			row.Note = fmt.Sprintf("%s to %s", brief(time.Duration(first.Latest-c.begun)), brief(time.Duration(last.Latest-c.begun)))
			w.Rows = append(w.Rows, row)
		}
	}
	return w
}
