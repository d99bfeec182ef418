package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/timeline"
)

// series follows each stage over the run. With several conditions, whose points are mixed,
// it shows how far each duration is from the median of its condition.
func (b *book) series() chart.Chart {
	place := b.inOrder()
	d := chart.Series{
		Frame:  chart.Frame{Title: "Over the run"},
		XTitle: "reconfigurations, in the order they were done",
		YTitle: "since the command",
		Events: b.incidents(),
	}
	type key struct {
		condition int
		stage     timeline.Stage
	}
	medians := map[key]int64{}
	several := len(b.a.Conditions) > 1
	if several {
		d.YTitle = "from the median of the condition"
		for _, c := range b.a.Conditions {
			for _, s := range c.Stages {
				medians[key{c.Number, s.Stage}] = s.Median.NS
			}
		}
	}
	width := max(1, (len(place)+mostBins-1)/mostBins)
	values := map[timeline.Stage][][]int64{}
	for _, rec := range b.r.Reconfigurations {
		if rec.Null {
			continue // what is seen there belongs to no condition
		}
		marks, _ := b.marksOf(rec.Number)
		for _, x := range timeline.Durations(marks) {
			if x.Latest >= timeline.Never || !slices.Contains(b.stageList, x.Stage) {
				continue
			}
			v := x.Mid()
			if several {
				v -= medians[key{rec.Condition, x.Stage}]
			}
			bins := values[x.Stage]
			if bins == nil {
				bins = make([][]int64, (len(place)+width-1)/width)
				values[x.Stage] = bins
			}
			at := place[rec.Number] / width
			bins[at] = append(bins[at], v)
		}
	}
	for _, stage := range b.stageList {
		l := chart.SeriesLine{Label: string(stage), Tone: chart.StageTone(stage)}
		for i, v := range values[stage] {
			if len(v) == 0 {
				continue
			}
			slices.Sort(v)
			l.Bins = append(l.Bins, chart.Bin{
				From: float64(i*width) + 0.5, To: float64(min((i+1)*width, len(place))) + 0.5,
				Low: v[(len(v)-1)/20], Median: timeline.Between(v[(len(v)-1)/2], v[len(v)/2]).Mid(), High: v[len(v)-1-(len(v)-1)/20],
			})
		}
		if len(l.Bins) > 0 {
			d.Lines = append(d.Lines, l)
		}
	}
	if len(d.Lines) == 0 {
		return nil
	}
	return d
}

// inOrder says of each reconfiguration, by number, as the how-manieth it was done, from 0.
func (b *book) inOrder() map[int]int {
	order := make([]int, len(b.r.Reconfigurations))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		p, q := b.r.Reconfigurations[x], b.r.Reconfigurations[y]
		return cmp.Or(cmp.Compare(p.Session, q.Session), cmp.Compare(p.MonoNS, q.MonoNS), cmp.Compare(p.Number, q.Number))
	})
	place := make(map[int]int, len(order))
	for at, i := range order {
		place[b.r.Reconfigurations[i].Number] = at
	}
	return place
}

// incidents are what is marked in a series: null toggles, resumes, and events.
func (b *book) incidents() []chart.Event {
	place := b.inOrder()
	var events []chart.Event
	walls := make([]time.Time, 0, len(b.r.Reconfigurations))
	for _, rec := range b.r.Reconfigurations {
		walls = append(walls, rec.Wall)
		if rec.Null {
			events = append(events, chart.Event{At: float64(place[rec.Number]) + 1, Label: "null toggle"})
		}
	}
	slices.SortFunc(walls, time.Time.Compare)
	at := func(t time.Time) float64 {
		n, _ := slices.BinarySearchFunc(walls, t, time.Time.Compare)
		return float64(n) + 0.5
	}
	for _, s := range b.r.Sessions {
		if s.Number > 1 {
			events = append(events, chart.Event{At: at(s.Begun), Label: "resumed"})
		}
	}
	for _, e := range b.r.Events {
		switch e.Kind {
		case "clock-step", "paused", "continued", "lab-changed", "stopped-early":
			events = append(events, chart.Event{At: at(e.Wall), Label: e.Kind})
		}
	}
	return events
}
