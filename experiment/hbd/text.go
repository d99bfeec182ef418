package hbd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// BundleLines say what every bundle of a plan does, four nodes to a line: "2: L LOOP  R PATH1".
func BundleLines(p *infinitehbd.Plan) []string {
	const nodes = 4
	var lines []string
	var row []string
	line := p.Line()
	for i, n := range line.Order {
		text := fmt.Sprintf("%3d:", n)
		for b := range line.Layout.Bundles {
			text += fmt.Sprintf(" %s %-5v", line.Layout.Bundles[b].Name, p.State(n, b))
		}
		if row = append(row, text); len(row) == nodes || i == len(line.Order)-1 {
			lines, row = append(lines, strings.TrimRight(strings.Join(row, "  "), " ")), nil
		}
	}
	return lines
}

// RingLines say which GPUs each ring has.
func RingLines(rings [][]infinitehbd.GPU) []string {
	var lines []string
	for i, r := range rings {
		gpus := make([]string, len(r))
		for i, g := range r {
			gpus[i] = g.String()
		}
		lines = append(lines, fmt.Sprintf("ring %d of %d GPUs: %s", i+1, len(r), strings.Join(gpus, " ")))
	}
	return lines
}

// Lines say how long modules and rings took: of each step the median and the longest, over all modules.
func (r *Report) Lines() []string {
	lines := []string{fmt.Sprintf("%s switched: %s, %s", natural.Count(r.Bundles, "bundle"),
		natural.Count(len(r.Modules), "module"), natural.Count(r.Lanes, "lane"))}
	if len(r.Modules) == 0 {
		return lines
	}
	for _, s := range []struct {
		name string
		of   func(ModuleTime) timeline.Interval
	}{
		{"command written to light taken away", func(t ModuleTime) timeline.Interval { return since(t.Busy, t.Command) }},
		{"taken away to heaters settled (its own clock)",
			func(t ModuleTime) timeline.Interval { return timeline.Point(int64(t.Took)) }},
		{"settled to light at all receivers", func(t ModuleTime) timeline.Interval { return since(t.Clear, t.Settled) }},
		{"settled to all receivers locked", func(t ModuleTime) timeline.Interval { return since(t.Locked, t.Settled) }},
	} {
		var all []timeline.Interval
		for _, t := range r.Modules {
			if t.To != infinitehbd.Dark && t.Locked != (timeline.Interval{}) {
				all = append(all, s.of(t))
			}
		}
		if len(all) > 0 {
			lines = append(lines, fmt.Sprintf("  %-45s median %v, longest %v", s.name, span(timeline.Quantile(all, 0.5)),
				span(timeline.Quantile(all, 1))))
		}
	}
	var down []timeline.Interval
	for _, g := range r.Groups {
		down = append(down, g.Down)
	}
	if len(down) > 0 {
		lines = append(lines,
			fmt.Sprintf("rings that were switched: %d, from first dark to all lanes locked: median %v, longest %v", len(down),
				span(timeline.Quantile(down, 0.5)), span(timeline.Quantile(down, 1))))
	}
	if len(r.HalfOpen) > 0 {
		worst := slices.MaxFunc(r.HalfOpen, func(a, b HalfOpen) int { return int(a.For.Earliest - b.For.Earliest) })
		lines = append(lines,
			fmt.Sprintf("cables that were half open meanwhile: %d, the longest certainly for %s, possibly for %s; alarms: %d",
				len(r.HalfOpen), ms(worst.For.Earliest), ms(r.HalfOpen[0].For.Latest), len(r.Alarms)))
	}
	return lines
}

// Lines say when what happened, counted from the first moment, and what it cost.
func (b *Bypass) Lines() []string {
	if b.Failure == nil || len(b.Moments) == 0 {
		return nil
	}
	lines := []string{b.Failure.Text}
	for _, m := range b.Moments {
		at := m.At.Sub(timeline.Point(b.Moments[0].At.Earliest))
		lines = append(lines, fmt.Sprintf("  %-10s %-24s %s", m.Name, span(at), m.Source))
	}
	if b.Report == nil {
		return lines
	}
	lines = append(lines, fmt.Sprintf("the plan took %v; %s switched; rings: %d before, %d now; %d lost, %d untouched, %d moved",
		b.Planning.Round(time.Microsecond), natural.Count(b.Report.Bundles, "bundle"), b.Groups,
		len(b.Plan.Groups()), len(b.Lost), len(b.Kept), len(b.Moved)))
	if b.Back {
		lines = append(lines, fmt.Sprintf("nodes of the ring that was lost were in a ring again after %s", span(b.Down)))
	}
	if b.Disturbed.Latest > 0 {
		lines = append(lines, fmt.Sprintf("rings that were alive were away for up to %s", span(b.Disturbed)))
	}
	return append(lines, fmt.Sprintf("GPUs lost: %d dead, %d idle", b.DeadGPUs, b.IdleGPUs))
}

// span shows an interval by its ends.
func span(i timeline.Interval) string {
	if i.Earliest == i.Latest {
		return ms(i.Earliest)
	}
	return fmt.Sprintf("%s to %s", ms(i.Earliest), ms(i.Latest))
}

// ms shows nanoseconds in milliseconds.
func ms(ns int64) string { return fmt.Sprintf("%.3f ms", float64(ns)/1e6) }

// Lines say what a trace came to.
func (r *Replayed) Lines() []string {
	lines := []string{
		fmt.Sprintf("%s, %s, %s switched; %.3g times as fast as time", natural.Count(r.Events, "event"),
			natural.Count(r.Plans, "plan"), natural.Count(int(r.Bundles), "bundle"), r.Speed()),
		fmt.Sprintf("GPUs dead %.3f %%, alive and in no ring %.3f %%, means over time", 100*r.Dead, 100*r.Waste),
	}
	if len(r.Wear) > 0 {
		lines = append(lines,
			fmt.Sprintf("wear by the counters of %d modules: most worn is that of %s with %d switches; %.1f a year in the mean",
				len(r.Wear), r.Wear[0].Name, r.Wear[0].Switches, r.MeanPerYear))
	}
	return lines
}
