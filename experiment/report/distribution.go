package report

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/timeline"
)

// distributions are the CDFs of all stages.
func (b *book) distributions() chart.Chart {
	s := chart.Stack{Frame: chart.Frame{Title: "Distribution of the time since the command"}}
	for _, stage := range b.stageList {
		s.Charts = append(s.Charts, b.cdf(stage))
	}
	if len(s.Charts) == 0 {
		return nil
	}
	return s
}

// cdf compares the conditions at one stage.
func (b *book) cdf(stage timeline.Stage) chart.CDF {
	d := chart.CDF{Frame: chart.Frame{Title: string(stage)}}
	for i, c := range b.a.Conditions[:min(len(b.a.Conditions), mostCurves)] {
		s, ok := stageOf(c, stage)
		if !ok {
			continue
		}
		d.Curves = append(d.Curves, chart.Curve{Label: c.Label, Tone: chart.SeriesTone(i), Distribution: s.Distribution})
		d.About += fmt.Sprintf("%s: half by %s, 95 %% by %s. ", name(c), value(s.Median, s.Resolution), value(s.P95, s.Resolution))
	}
	return d
}

// boxes is a box for each stage and condition.
func (b *book) boxes() chart.Chart {
	d := chart.Boxes{Frame: chart.Frame{Title: "Quartiles of the time since the command"}}
	conditions := b.a.Conditions[:min(len(b.a.Conditions), mostCurves)]
	outliers := map[int]map[timeline.Stage][]int64{}
	for _, c := range conditions {
		of := map[timeline.Stage][]int64{}
		for _, o := range c.Outliers {
			of[o.Stage] = append(of[o.Stage], o.Mid())
		}
		outliers[c.Number] = of
	}
	for _, stage := range b.stageList {
		for _, c := range conditions {
			s, ok := stageOf(c, stage)
			if !ok {
				continue
			}
			row := chart.Box{
				Label: c.Label, Tone: chart.StageTone(stage),
				Least: s.Min.Mid(), Most: s.Max.Mid(),
				Low: s.Box.Low, Q1: s.Box.Q1, Median: s.Box.Median, Q3: s.Box.Q3, High: s.Box.High,
				Outliers: beyond(outliers[c.Number][stage], s.Box.Low, s.Box.High), Note: fmt.Sprintf("n %d", s.Count),
			}
			if len(conditions) > 1 {
				row.Group = string(stage)
			} else {
				row.Label = string(stage)
			}
			d.Rows = append(d.Rows, row)
		}
	}
	if len(d.Rows) == 0 {
		return nil
	}
	return d
}

// pages makes a stack of box plots that are too many for one page, by stage.
func pages(c chart.Chart) chart.Chart {
	const most = 30 // rows
	d, ok := c.(chart.Boxes)
	if !ok || len(d.Rows) <= most {
		return c
	}
	s := chart.Stack{Frame: d.Frame}
	for from := 0; from < len(d.Rows); {
		to := from + 1
		for to < len(d.Rows) && d.Rows[to].Group == d.Rows[from].Group {
			to++
		}
		s.Charts = append(s.Charts, chart.Boxes{Frame: chart.Frame{Title: "Quartiles of " + d.Rows[from].Group}, Rows: d.Rows[from:to]})
		from = to
	}
	slices.Reverse(s.Charts) // the last stage first
	return s
}

// beyond are the values outside of the whiskers.
func beyond(values []int64, low, high int64) []int64 {
	var outside []int64
	for _, v := range values {
		if v < low || v > high {
			outside = append(outside, v)
		}
	}
	return outside
}

// stages shows what each stage adds to the whole.
func (b *book) stages() chart.Chart {
	d := chart.Bars{Frame: chart.Frame{Title: "What each stage adds to the whole"},
		Axis: chart.Axis{Title: "part of the median of the last stage", Kind: chart.Portion}}
	for _, c := range b.shown {
		if len(c.Stages) == 0 {
			continue
		}
		row := chart.Bar{Label: name(c), Note: value(c.Report.Total, c.Stages[len(c.Stages)-1].Resolution)}
		for _, s := range c.Stages {
			row.Parts = append(row.Parts, chart.Part{Label: string(s.Stage), Tone: chart.StageTone(s.Stage), Value: s.Share})
			d.About += fmt.Sprintf("%s: %s %s. ", name(c), s.Stage, percent(s.Share))
		}
		d.Rows = append(d.Rows, row)
	}
	if len(d.Rows) == 0 {
		return nil
	}
	return d
}
