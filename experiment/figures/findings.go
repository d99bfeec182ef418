package figures

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// findings are the marks of a run in the form that comparisons ask for: what came how long
// after what, at the same NIC.
type findings struct {
	run      *runs.Run
	emulated bool
	seed     uint64
	port     map[string]string // that a NIC receives from: "gpu1/ens1f0" to "rail0/33"
	moments  map[int]moments   // by reconfiguration, null toggles left out
	truth    map[int]moments   // the same of the truth, of emulated labs
	typical  map[int]int       // by condition, the reconfiguration most like the medians
	numbers  map[int][]int     // the reconfigurations of each condition, in order
}

// moments are when stages were reached in one reconfiguration, by subject. As everywhere,
// the first loss counts and the last return.
type moments map[timeline.Stage]map[string]timeline.Interval

func newFindings(r *runs.Run, a *analysis.Analysis) *findings {
	f := &findings{
		run: r, emulated: r.Meta.Emulated,
		port: map[string]string{}, numbers: map[int][]int{}, typical: map[int]int{},
	}
	if r.Plan != nil {
		f.seed = r.Plan.Seed
	}
	for _, s := range r.Setups {
		for _, n := range s.NICs {
			f.port[n.Name] = n.Rx
		}
	}
	counts := map[int]bool{}
	for _, c := range r.Reconfigurations {
		if !c.Null {
			counts[c.Number] = true
			f.numbers[c.Condition] = append(f.numbers[c.Condition], c.Number)
		}
	}
	f.moments, f.truth = momentsOf(r.Marks, counts), momentsOf(r.Truth, counts)
	for _, c := range a.Conditions {
		f.typical[c.Number] = c.Typical
	}
	return f
}

func momentsOf(marks []timeline.Mark, counts map[int]bool) map[int]moments {
	all := make(map[int]moments, len(counts))
	for _, m := range marks {
		if !counts[m.Reconfiguration] {
			continue
		}
		of := all[m.Reconfiguration]
		if of == nil {
			of = moments{}
			all[m.Reconfiguration] = of
		}
		if of[m.Stage] == nil {
			of[m.Stage] = map[string]timeline.Interval{}
		}
		at, seen := of[m.Stage][m.Subject]
		switch {
		case !seen:
			at = m.Interval
		case first(m.Stage):
			at = timeline.Earlier(at, m.Interval)
		default:
			at = timeline.Later(at, m.Interval)
		}
		of[m.Stage][m.Subject] = at
	}
	return all
}

// first reports whether the first of several marks of a stage counts.
func first(s timeline.Stage) bool {
	switch s {
	case timeline.Command, timeline.Dark, timeline.CarrierDown, timeline.TrafficLost:
		return true
	}
	return false
}

// extreme folds the moments of a stage by [timeline.Earlier] or [timeline.Later]. It reports false if there are none.
func (m moments) extreme(s timeline.Stage, fold func(a, b timeline.Interval) timeline.Interval) (at timeline.Interval, ok bool) {
	for _, i := range m[s] {
		if ok {
			i = fold(at, i)
		}
		at, ok = i, true
	}
	return at, ok
}

// conditions are those of the plan that have reconfigurations.
func (f *findings) conditions() []plan.Condition {
	var all []plan.Condition
	if f.run.Plan != nil {
		for _, c := range f.run.Plan.Conditions {
			if len(f.numbers[c.Number]) > 0 {
				all = append(all, c)
			}
		}
	}
	return all
}

// autoneg says whether a condition is with auto-negotiation, by the parameter autoneg (on or
// off), or by the profile of emulated firmware. It is "" if neither tells.
func (f *findings) autoneg(c plan.Condition) string {
	if v, ok := c.Parameters["autoneg"]; ok {
		return v
	}
	profiles := []string{c.Settings.Firmware}
	if c.Settings.Firmware == "" { // that of the lab
		profiles = nil
		for _, s := range f.run.Setups {
			if slices.Contains(s.Conditions, c.Number) {
				for _, n := range s.NICs {
					profiles = append(profiles, n.Firmware)
				}
			}
		}
	}
	found := ""
	for i, p := range profiles {
		_, way, _ := strings.Cut(p, "/autoneg-")
		if i > 0 && way != found {
			return ""
		}
		found = way
	}
	return found
}

// quantity says what is asked of one reconfiguration: durations at its NICs, pairs or ports.
type quantity func(f *findings, m moments) []timeline.Interval

// sinceCommand is how long after the command each subject reached a stage.
func sinceCommand(s timeline.Stage) quantity {
	return func(f *findings, m moments) (found []timeline.Interval) {
		command, ok := m.extreme(timeline.Command, timeline.Earlier)
		if !ok {
			return nil
		}
		for _, subject := range slices.Sorted(maps.Keys(m[s])) {
			if s == timeline.Light && !f.isPort(subject) {
				continue
			}
			found = append(found, m[s][subject].Sub(command))
		}
		return found
	}
}

// isPort reports whether a subject is a port of a switch; modules of NICs are slower to tell.
func (f *findings) isPort(subject string) bool {
	_, nic := f.port[subject]
	return !nic
}

// light is when a NIC had light again: by the switch's monitor of the port that it receives
// from, or else by its own module.
func (f *findings) light(m moments, nic string) (at timeline.Interval, ok bool) {
	if at, ok = m[timeline.Light][f.port[nic]]; !ok {
		at, ok = m[timeline.Light][nic]
	}
	return at, ok
}

// lightAfterAck is how long after the acknowledgement optical power was back at a port.
func lightAfterAck(f *findings, m moments) (found []timeline.Interval) {
	ack, ok := m.extreme(timeline.Ack, timeline.Later)
	if !ok {
		return nil
	}
	for _, subject := range slices.Sorted(maps.Keys(m[timeline.Light])) {
		if f.isPort(subject) {
			found = append(found, m[timeline.Light][subject].Sub(ack))
		}
	}
	return found
}

// linkUp is how long after the light a NIC had carrier.
func linkUp(f *findings, m moments) (found []timeline.Interval) {
	for _, nic := range slices.Sorted(maps.Keys(m[timeline.CarrierUp])) {
		if light, ok := f.light(m, nic); ok {
			found = append(found, m[timeline.CarrierUp][nic].Sub(light))
		}
	}
	return found
}

// carrierAfterFirmware is how long after the firmware the kernel called the link up.
func carrierAfterFirmware(_ *findings, m moments) (found []timeline.Interval) {
	for _, nic := range slices.Sorted(maps.Keys(m[timeline.CarrierUp])) {
		if firmware, ok := m[timeline.Firmware][nic]; ok {
			found = append(found, m[timeline.CarrierUp][nic].Sub(firmware))
		}
	}
	return found
}

// trafficAfterCarrier is how long after the later of its two carriers a pair had traffic.
func trafficAfterCarrier(_ *findings, m moments) (found []timeline.Interval) {
	for _, pair := range slices.Sorted(maps.Keys(m[timeline.Traffic])) {
		from, to, _ := strings.Cut(pair, ">")
		a, okA := m[timeline.CarrierUp][from]
		b, okB := m[timeline.CarrierUp][to]
		switch {
		case okA && okB:
			a = timeline.Later(a, b)
		case okB: // the other's link was held
			a = b
		case !okA:
			continue
		}
		found = append(found, m[timeline.Traffic][pair].Sub(a))
	}
	return found
}

// outage is how long traffic was away in a reconfiguration: from the first packet that was
// lost to when the last pair was back. Where there is no traffic it is that of links, and
// where there are none that of light.
func outage(_ *findings, m moments) []timeline.Interval {
	for _, s := range outageStages {
		lost, okLost := m.extreme(s.lost, timeline.Earlier)
		back, okBack := m.extreme(s.back, timeline.Later)
		if okLost && okBack {
			return []timeline.Interval{back.Sub(lost)}
		}
	}
	return nil
}

var outageStages = []struct{ lost, back timeline.Stage }{
	{timeline.TrafficLost, timeline.Traffic},
	{timeline.CarrierDown, timeline.CarrierUp},
	{timeline.Dark, timeline.Light},
}

// summary pools a quantity over the reconfigurations of conditions. Its Count is 0 if there
// is nothing.
func (f *findings) summary(q quantity, conditions ...plan.Condition) timeline.Summary {
	return f.pool(f.moments, q, conditions)
}

// trueSummary does so with the truth.
func (f *findings) trueSummary(q quantity, conditions ...plan.Condition) timeline.Summary {
	return f.pool(f.truth, q, conditions)
}

// pool lets [timeline.Summarize] do it, for whom a quantity is a stage some time after a
// command at 0: so bounds are those of a bootstrap of reconfigurations here, too.
func (f *findings) pool(of map[int]moments, q quantity, conditions []plan.Condition) timeline.Summary {
	const pooled = timeline.Traffic
	var marks []timeline.Mark
	for _, c := range conditions {
		for _, number := range f.numbers[c.Number] {
			for i, d := range q(f, of[number]) {
				if i == 0 {
					marks = append(marks, timeline.Mark{Stage: timeline.Command, Reconfiguration: number})
				}
				marks = append(marks, timeline.Mark{Stage: pooled, Subject: strconv.Itoa(i), Interval: d, Reconfiguration: number})
			}
		}
	}
	report := timeline.Summarize(marks, timeline.Options{Seed: f.seed})
	if len(report.Stages) == 0 {
		return timeline.Summary{}
	}
	return report.Stages[0]
}

// largest is the largest of a quantity.
func (f *findings) largest(q quantity, c plan.Condition) (at timeline.Interval, ok bool) {
	for _, number := range f.numbers[c.Number] {
		for _, d := range q(f, f.moments[number]) {
			if ok {
				d = timeline.Later(at, d)
			}
			at, ok = d, true
		}
	}
	return at, ok
}
