package analysis

import (
	"slices"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/timeline"
)

// Enough reports whether the marks of a condition's repeats so far meet a stop rule: half
// the width of the statistic's confidence interval is within its tolerance. How many
// repeats are done in any case is for the caller to see to. A stage that has not been seen
// in two reconfigurations is never known well enough; what is only counted always is.
func Enough(r plan.Stop, marks []timeline.Mark, seed uint64) bool {
	marks, _ = OneKind(marks, nil)
	report := timeline.Summarize(marks, timeline.Options{Seed: seed})
	if report.Reconfigurations < 2 {
		return false
	}
	if r.When.Of == plan.Missing || r.When.Of == plan.Count {
		return true
	}
	c := Condition{Report: report}
	for _, sum := range report.Stages {
		c.Stages = append(c.Stages, Stage{Summary: sum})
	}
	i := slices.IndexFunc(report.Stages, func(s timeline.Summary) bool { return s.Stage == r.When.Stage })
	if i < 0 {
		return false
	}
	if r.When.Of == plan.Max {
		c.Stages[i].Max = timeline.NewPool(byStage(timeline.Durations(marks))[r.When.Stage]).Quantile(1)
	}
	reached := map[int]bool{}
	for _, m := range marks {
		if m.Stage == r.When.Stage {
			reached[m.Reconfiguration] = true
		}
	}
	v := c.value(r.When)
	if len(reached) < 2 || max(v.lowNeed, v.highNeed) > 0 {
		return false
	}
	half := (v.high - v.low) / 2
	if r.Within.Time > 0 {
		return r.When.Of != plan.Share && half <= float64(r.Within.Time)
	}
	return half <= r.Within.Part*max(v.at, -v.at)
}
