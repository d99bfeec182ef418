package export

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

var (
	pointColumns = []string{"place", "state", "session", "first_reconfiguration", "reconfigurations", "begun"}
	moveColumns  = []string{"begun", "mono_ns", "removed", "added", "marks", "held", "unresolved", "readings", "patience_ns"}

	summaryColumns = []string{
		"points", "reconfigurations", "stage", "count", "missing",
		"median_ns", "median_low_ns", "median_high_ns", "p95_ns", "p95_low_ns", "p95_high_ns", "p99_ns", "p99_low_ns", "p99_high_ns",
		"min_earliest_ns", "min_latest_ns", "max_earliest_ns", "max_latest_ns",
		"resolution_ns", "floor_ns", "step_ns", "share", "drift_ns", "drift_low_ns", "drift_high_ns",
	}
)

// points writes the plan: place is that in the order in which points are run, and state
// one of done, dropped and open.
func points(x *index, o *rows) {
	if x.run.Plan == nil {
		return
	}
	moves := map[int][]int{} // places of reconfigurations, by point
	for i, m := range x.run.Reconfigurations {
		moves[m.Point] = append(moves[m.Point], i)
	}
	for i, p := range x.run.Plan.Points {
		o.condition(x, p.Condition)
		o.point(p.ID, p.Repeat, p.Null)
		o.whole(int64(i + 1))
		switch {
		case x.run.Done[p.ID]:
			o.text("done")
		case x.run.Dropped[p.ID]:
			o.text("dropped")
		default:
			o.text("open")
		}
		of := moves[p.ID]
		if len(of) == 0 {
			o.none()
		} else {
			o.whole(int64(x.run.Reconfigurations[of[0]].Session))
		}
		o.whole(int64(p.First))
		o.whole(int64(len(of)))
		if len(of) == 0 {
			o.none()
		} else {
			o.text(wall(x.run.Reconfigurations[of[0]].Wall))
		}
		if !o.end() {
			return
		}
	}
}

func reconfigurations(x *index, o *rows) {
	seen := map[int]int64{}
	for i := range x.run.Marks {
		seen[x.run.Marks[i].Reconfiguration]++
	}
	for i := range x.run.Reconfigurations {
		m := &x.run.Reconfigurations[i]
		o.move(x, m.Number)
		o.text(wall(m.Wall))
		o.whole(m.MonoNS)
		o.text(circuits(m.Removed))
		o.text(circuits(m.Added))
		o.whole(seen[m.Number])
		o.text(strings.Join(m.Held, " "))
		o.text(strings.Join(m.Unresolved, "; "))
		o.whole(int64(m.Readings))
		o.whole(m.PatienceNS)
		if !o.end() {
			return
		}
	}
}

// summary has a row also for stages that were expected and never came.
func summary(x *index, o *rows) {
	for _, c := range analysis.Of(x.run).Conditions {
		for _, s := range c.Stages {
			o.summary(x, &c, s.Stage, s.Count, s.Missing)
			for _, e := range []timeline.Estimate{s.Median, s.P95, s.P99} {
				o.estimate(e)
			}
			for _, at := range []timeline.Interval{s.Min, s.Max} {
				o.whole(at.Earliest)
				o.whole(at.Latest)
			}
			o.whole(int64(s.Resolution))
			o.whole(int64(s.Floor))
			o.whole(int64(s.Step))
			o.number(s.Share)
			o.estimate(s.Drift)
			if !o.end() {
				return
			}
		}
		for _, u := range c.Report.Unseen {
			o.summary(x, &c, u.Stage, 0, u.Missing)
			for o.cells < len(o.keys) {
				o.none()
			}
			if !o.end() {
				return
			}
		}
	}
}

func (o *rows) summary(x *index, c *analysis.Condition, stage timeline.Stage, count, missing int) {
	o.condition(x, c.Number)
	o.whole(int64(c.Points))
	o.whole(int64(c.Reconfigurations))
	o.text(string(stage))
	o.whole(int64(count))
	o.whole(int64(missing))
}

func (o *rows) estimate(e timeline.Estimate) {
	o.whole(e.NS)
	o.whole(e.LowNS)
	o.whole(e.HighNS)
}

// wall writes a time of day, "" if it is not known.
func wall(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// circuits writes maps of switches as "rail0 1>33,2>34; rail1 1>33".
func circuits(of map[string]ocs.Map) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name].Len() > 0 {
			parts = append(parts, name+" "+of[name].String())
		}
	}
	return strings.Join(parts, "; ")
}
