package export

import (
	"slices"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/timeline"
)

var (
	timeColumns = []string{"earliest_ns", "latest_ns", "mid_ns"}
	// sinceColumns are empty where a reconfiguration had no command.
	sinceColumns = []string{"after_earliest_ns", "after_latest_ns", "after_mid_ns"}

	markColumns     = slices.Concat([]string{"stage", "subject", "host", "source"}, timeColumns, sinceColumns, []string{"detail"})
	durationColumns = slices.Concat([]string{"stage", "subject", "host"}, sinceColumns)
	sampleColumns   = slices.Concat([]string{"subject"}, timeColumns, sinceColumns, []string{"power_dbm", "dark"})
)

// interval writes three cells. What ends at [timeline.Never] has no end and no middle.
func (o *rows) interval(at timeline.Interval) {
	o.whole(at.Earliest)
	if at.Latest == timeline.Never {
		o.none()
		o.none()
		return
	}
	o.whole(at.Latest)
	o.whole(at.Mid())
}

// when writes an instant on the axis of the marks, and since the command.
func (o *rows) when(x *index, reconfiguration int, at timeline.Interval) {
	o.interval(at)
	since, ok := x.since(reconfiguration, at)
	if !ok {
		for range sinceColumns {
			o.none()
		}
		return
	}
	o.interval(since)
}

func marks(x *index, o *rows) { o.marks(x, x.run.Marks) }

func truth(x *index, o *rows) { o.marks(x, x.run.Truth) }

func (o *rows) marks(x *index, marks []timeline.Mark) {
	for i := range marks {
		m := &marks[i]
		o.move(x, m.Reconfiguration)
		o.text(string(m.Stage))
		o.text(m.Subject)
		o.text(m.Host)
		o.text(m.Source)
		o.when(x, m.Reconfiguration, m.Interval)
		o.text(m.Detail)
		if !o.end() {
			return
		}
	}
}

func durations(x *index, o *rows) {
	marks, _ := analysis.OneKind(x.run.Marks, nil)
	for _, d := range timeline.Durations(marks) {
		if m := x.run.Reconfiguration(d.Reconfiguration); m != nil && m.Null {
			continue
		}
		o.move(x, d.Reconfiguration)
		o.text(string(d.Stage))
		o.text(d.Subject)
		o.text(d.Host)
		o.interval(d.Interval)
		if !o.end() {
			return
		}
	}
}

func samples(x *index, o *rows) {
	for i := range x.run.Samples {
		s := &x.run.Samples[i]
		o.move(x, s.Reconfiguration)
		o.text(s.Subject)
		o.when(x, s.Reconfiguration, timeline.Interval{Earliest: s.EarliestNS, Latest: s.LatestNS})
		if s.Dark {
			o.none()
		} else {
			o.number(s.PowerDBm)
		}
		o.yes(s.Dark)
		if !o.end() {
			return
		}
	}
}
