package analysis

import (
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/timeline"
)

// nics returns what was found at each NIC, in the order of the lab, then of names: of light
// what its module says, or else the monitor of the port that it receives from; of traffic,
// the direction that ends there. Bounds are order statistics, whose probability is that of
// a binomial distribution: at one NIC, reconfigurations are independent of each other.
func (m *measured) nics(s *split) []NIC {
	type key struct {
		nic   string
		stage timeline.Stage
	}
	at := map[key][]timeline.Interval{}
	names := map[string]bool{}
	add := func(d *timeline.Duration, nic string) {
		names[nic] = true
		k := key{nic, d.Stage}
		at[k] = append(at[k], d.Interval)
	}
	modules := s.modules(m.plan.Number)
	for i := range modules {
		add(&modules[i], modules[i].Subject)
	}
	hasModule := map[string]bool{}
	for name := range names {
		hasModule[name] = true
	}
	for _, stage := range timeline.Stages() {
		durations := m.durations[stage]
		for i := range durations {
			d := &durations[i]
			nic, port := s.fibres.nic(d.Subject)
			switch {
			case port && hasModule[nic], nic == "":
			case port, strings.Contains(d.Subject, ">"), strings.HasPrefix(d.Subject, d.Host+"/"):
				add(d, nic)
			}
		}
	}
	missing := map[key]int{}
	for _, e := range m.report.Missed {
		nic, port := s.fibres.nic(e.Subject)
		if (names[nic] || slices.Contains(s.fibres.names, nic)) && !(port && hasModule[nic]) {
			names[nic] = true
			missing[key{nic, e.Stage}]++
		}
	}

	var order []string
	for _, name := range s.fibres.names {
		if names[name] {
			order = append(order, name)
			delete(names, name)
		}
	}
	var rest []string
	for name := range names {
		rest = append(rest, name)
	}
	slices.Sort(rest)
	var list []NIC
	for _, name := range append(order, rest...) {
		n := NIC{Name: name, Stages: map[timeline.Stage]timeline.Summary{}, Unseen: map[timeline.Stage]int{}}
		for _, stage := range timeline.Stages() {
			k := key{name, stage}
			switch {
			case len(at[k]) > 0:
				n.Stages[stage] = summarize(stage, at[k], missing[k])
			case missing[k] > 0:
				n.Unseen[stage] = missing[k]
			}
		}
		list = append(list, n)
	}
	return list
}

// nic returns the NIC that a subject belongs to, and whether the subject is a port.
func (f *fibres) nic(subject string) (name string, port bool) {
	if nic, ok := f.byPort[subject]; ok {
		return nic, true
	}
	if _, to, pair := strings.Cut(subject, ">"); pair {
		return to, false
	}
	return subject, false
}

// modules returns the durations that modules gave and that OneKind left out.
func (s *split) modules(condition int) []timeline.Duration {
	var marks []timeline.Mark
	any := false
	for _, m := range s.left[condition] {
		any = any || m.Source == optics.Source
		if m.Source == optics.Source || m.Stage == timeline.Command {
			marks = append(marks, m)
		}
	}
	if !any {
		return nil
	}
	return timeline.Durations(marks)
}

// summarize tells of a stage at one NIC.
func summarize(stage timeline.Stage, xs []timeline.Interval, missing int) timeline.Summary {
	lows, highs, widths := make([]int64, len(xs)), make([]int64, len(xs)), make([]int64, len(xs))
	for i, x := range xs {
		lows[i], highs[i], widths[i] = x.Earliest, x.Latest, int64(x.Width())
	}
	slices.Sort(lows)
	slices.Sort(highs)
	slices.Sort(widths)
	of := func(q float64) timeline.Estimate {
		low, high := ranks(len(xs), q)
		at := timeline.Interval{Earliest: quantile(lows, q), Latest: quantile(highs, q)}
		return estimateOf(at, timeline.Interval{Earliest: lows[low], Latest: highs[high]})
	}
	return timeline.Summary{
		Stage: stage, Count: len(xs), Missing: missing, Resolution: time.Duration(quantile(widths, 0.5)),
		Median: of(0.5), P95: of(0.95), P99: of(0.99),
	}
}
