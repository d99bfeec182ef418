package analysis

import (
	"cmp"
	"slices"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// pairs returns what was found of each circuit that was made, in the order of their ends.
// Of what is said of one, the last stage counts that was seen of it at all: traffic between
// its NICs, else the carrier of the NIC that it leads to, else light at the port.
func (m *measured) pairs(s *split) []Pair {
	type ends struct{ from, to string }
	type circuit struct {
		onSwitch string
		ocs.CrossConnect
	}
	joints := map[circuit]joint{} // the same are made again and again
	last := []timeline.Stage{timeline.Traffic, timeline.CarrierUp, timeline.Light}
	found := map[ends]*[3][]timeline.Interval{} // by place in last
	var here [3]map[string]timeline.Interval    // of one reconfiguration, by subject
	var next [3]int                             // place in the durations of each stage
	for i := range here {
		here[i] = map[string]timeline.Interval{}
	}
	for _, rec := range m.recs { // in the order of the durations
		for i, stage := range last {
			durations := m.durations[stage]
			clear(here[i])
			for next[i] < len(durations) && durations[next[i]].Reconfiguration <= rec.Number {
				if d := &durations[next[i]]; d.Reconfiguration == rec.Number {
					here[i][d.Subject] = d.Interval
				}
				next[i]++
			}
		}
		for _, name := range sortedKeys(rec.Added) {
			for c := range rec.Added[name].All() {
				j, ok := joints[circuit{name, c}]
				if !ok {
					j = s.fibres.joint(name, c)
					joints[circuit{name, c}] = j
				}
				at := found[ends{j.from, j.to}]
				if at == nil {
					at = &[3][]timeline.Interval{}
					found[ends{j.from, j.to}] = at
				}
				for i, subject := range []string{j.flow, j.to, j.egress} {
					if d, ok := here[i][subject]; ok {
						at[i] = append(at[i], d)
					}
				}
			}
		}
	}
	var list []Pair
	for e, at := range found {
		for i, xs := range at {
			if len(xs) > 0 {
				list = append(list, Pair{From: e.from, To: e.to, Count: len(xs), Median: timeline.Quantile(xs, 0.5), Stage: last[i]})
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b Pair) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return list
}
