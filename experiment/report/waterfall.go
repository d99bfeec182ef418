package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
)

// waterfalls are those of the medians of all conditions.
func (b *book) waterfalls() chart.Chart {
	s := chart.Stack{Frame: chart.Frame{Title: "When each layer came: medians since the command"}}
	for _, c := range b.shown[:min(len(b.shown), mostCurves)] {
		if len(c.Stages) > 0 {
			s.Charts = append(s.Charts, medians(c))
		}
	}
	if len(s.Charts) == 0 {
		return nil
	}
	return s
}

// medians is the waterfall of a condition.
func medians(c analysis.Condition) chart.Waterfall {
	w := chart.Waterfall{Frame: chart.Frame{Title: name(c)}}
	for _, s := range c.Stages {
		w.Rows = append(w.Rows, chart.Row{
			Label: string(s.Stage),
			Tone:  chart.StageTone(s.Stage),
			From:  s.Median.NS - int64(s.Step),
			To:    s.Median.NS,
			At:    timeline.Interval{Earliest: s.Median.LowNS, Latest: s.Median.HighNS},
			Tail:  s.P95.NS,
			Note:  estimate(s.Median, s.Resolution),
		})
		w.About += fmt.Sprintf("%s at %s. ", s.Stage, value(s.Median, s.Resolution))
	}
	for _, u := range c.Report.Unseen {
		w.Rows = append(w.Rows, chart.Row{Label: string(u.Stage), Absent: true, Note: fmt.Sprintf("never, of %d", u.Missing)})
	}
	return w
}

// exhibit is one reconfiguration that is drawn.
type exhibit struct {
	number  int
	why     string
	outlier bool // for which it is drawn
	more    int  // outliers
}

// title says which it is, and why it is drawn.
func (e exhibit) title() string {
	t := fmt.Sprintf("Reconfiguration %d: %s", e.number, e.why)
	if e.more > 0 {
		t += fmt.Sprintf(" (and %d more)", e.more)
	}
	return t
}

// exhibits are the reconfigurations that are worth a drawing: of the first conditions the
// typical and the slowest, then the outliers, farthest first.
func (b *book) exhibits() []exhibit {
	var all []exhibit
	add := func(number int, why string, outlier bool) {
		if b.reconfiguration(number) == nil {
			return
		}
		for i := range all {
			if all[i].number == number {
				if outlier && all[i].outlier {
					all[i].more++
					return
				}
				all[i].why += "; " + why
				all[i].outlier = outlier
				return
			}
		}
		if len(all) < mostWaterfalls {
			all = append(all, exhibit{number: number, why: why, outlier: outlier})
		}
	}
	for _, c := range b.shown[:min(len(b.shown), mostWaterfalls/4)] {
		of := ""
		if c.Label != "" {
			of = " of " + c.Label
		}
		add(c.Typical, "typical"+of, false)
		add(c.Slowest, "slowest"+of, false)
	}
	for _, o := range b.outliers() {
		add(o.Reconfiguration, fmt.Sprintf("outlier: %s of %s", o.Stage, o.Subject), true)
	}
	return all
}

// outliers are those of all conditions, farthest first.
func (b *book) outliers() []analysis.Outlier {
	var all []analysis.Outlier
	for _, c := range b.a.Conditions {
		all = append(all, c.Outliers...)
	}
	slices.SortStableFunc(all, func(x, y analysis.Outlier) int { return cmp.Compare(y.Score, x.Score) })
	return all
}

// single is the waterfall of one reconfiguration: its marks, as the intervals they are.
type single struct {
	exhibit
	command timeline.Interval
	found   bool // the command
	marks   []timeline.Mark
	missing []timeline.Expectation
	order   []timeline.Stage // of the medians of its condition
}

// singles collects what is drawn of the exhibits.
func (b *book) singles(exhibits []exhibit) []*single {
	all := make([]*single, len(exhibits))
	for i, e := range exhibits {
		s := &single{exhibit: e, order: b.order(e.number)}
		all[i] = s
		marks, expected := b.marksOf(e.number)
		for _, m := range marks {
			switch {
			case m.Stage != timeline.Command:
				s.marks = append(s.marks, m)
			case !s.found || m.Earliest < s.command.Earliest:
				s.command, s.found = m.Interval, true
			}
		}
		for _, e := range expected {
			if !s.saw(e) {
				s.missing = append(s.missing, e)
			}
		}
	}
	return all
}

// order is that of the stages in the statistics of a reconfiguration's condition, so that all
// its waterfalls have the same.
func (b *book) order(number int) []timeline.Stage {
	var order []timeline.Stage
	for _, c := range b.a.Conditions {
		if rec := b.reconfiguration(number); rec != nil && rec.Condition == c.Number {
			for _, s := range c.Stages {
				order = append(order, s.Stage)
			}
		}
	}
	return order
}

func (s *single) saw(e timeline.Expectation) bool {
	return e.Stage == timeline.Command || slices.ContainsFunc(s.marks, func(m timeline.Mark) bool {
		return m.Stage == e.Stage && m.Subject == e.Subject
	})
}

// mostMarks is how many marks of a reconfiguration have a row each; of more, the first and
// the last of each stage have.
const mostMarks = 16

// chart draws the reconfiguration. Patience is how long was waited for what is missing.
func (s *single) chart(patience time.Duration) chart.Chart {
	w := chart.Waterfall{Frame: chart.Frame{Title: s.title()}}
	if !s.found {
		return nil
	}
	byStage := map[timeline.Stage][]timeline.Mark{}
	for _, m := range s.marks {
		m.Interval = m.Sub(s.command)
		byStage[m.Stage] = append(byStage[m.Stage], m)
	}
	type group struct {
		stage timeline.Stage
		marks []timeline.Mark
	}
	var groups []group
	for stage, marks := range byStage {
		slices.SortStableFunc(marks, func(a, b timeline.Mark) int {
			return cmp.Or(cmp.Compare(a.Mid(), b.Mid()), natural.Compare(a.Subject, b.Subject))
		})
		groups = append(groups, group{stage, marks})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(slices.Index(s.order, a.stage), slices.Index(s.order, b.stage)),
			cmp.Compare(chart.StageTone(a.stage), chart.StageTone(b.stage)))
	})
	var before int64 // when the last of the stage before was there
	for _, g := range groups {
		for i, m := range g.marks {
			label := string(g.stage)
			if len(s.marks) > mostMarks {
				switch {
				case len(g.marks) == 1:
				case i == 0:
					label += ", first"
				case i == len(g.marks)-1:
					label += ", last"
				default:
					continue
				}
			}
			w.Rows = append(w.Rows, chart.Row{
				Label: label, Sub: m.Subject, Tone: chart.StageTone(g.stage), From: min(before, m.Mid()), To: m.Mid(),
				At: m.Interval, Note: interval(m.Interval),
			})
		}
		before = max(before, g.marks[len(g.marks)-1].Mid())
	}
	const mostMissing = 6
	for i, e := range s.missing {
		if i == mostMissing {
			w.Rows = append(w.Rows, chart.Row{Label: fmt.Sprintf("and %d more", len(s.missing)-i), Absent: true, Note: "not seen"})
			break
		}
		note := "not seen"
		if patience > 0 {
			note = "not within " + exact(patience)
		}
		w.Rows = append(w.Rows, chart.Row{Label: string(e.Stage), Sub: e.Subject, Absent: true, Note: note})
	}
	if len(w.Rows) == 0 {
		return nil
	}
	return w
}
