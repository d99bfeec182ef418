package measured

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline"
)

// of returns what a run says of a switch, and in words what of it cannot be used. When the device changed in the course
// of a run, which a resumed one can, the last counts.
func of(r *runs.Run, subject string, stage timeline.Stage) (found, []string) {
	f := found{run: r}
	var kept runs.Run
	kept.Marks, kept.Expected = analysis.OneKind(r.Marks, r.Expected)
	mine := subjects(r, subject)
	var kinds []identity // of all changes, each once
	var is []int         // of each of f.changes
	for i := range r.Reconfigurations {
		rec := &r.Reconfigurations[i]
		if rec.Null || rec.Added[subject].Len() == 0 {
			continue
		}
		id, ok := identify(r, rec, subject)
		if !ok {
			continue
		}
		c, ok := measure(rec, kept.MarksOf(rec.Number), kept.ExpectedOf(rec.Number), subject, stage, mine)
		if !ok {
			continue
		}
		k := slices.Index(kinds, id)
		if k < 0 {
			k = len(kinds)
			kinds = append(kinds, id)
		}
		f.changes, is = append(f.changes, c), append(is, k)
	}
	if len(f.changes) == 0 {
		return f, []string{fmt.Sprintf("it has no change of %s that was watched until %s", subject, stage)}
	}
	for _, k := range kinds {
		if k.as != kinds[0].as {
			return found{run: r}, []string{fmt.Sprintf("it emulated %s as %s and as %s", subject, kinds[0].as, k.as)}
		}
	}
	last := is[len(is)-1]
	f.is = kinds[last]
	var notes []string
	if before := len(f.changes); len(kinds) > 1 {
		f.changes = slices.Collect(func(yield func(change) bool) {
			for i, c := range f.changes {
				if is[i] == last && !yield(c) {
					return
				}
			}
		})
		why := kinds[0].differs(f.is)
		if last == 0 {
			why = kinds[1].differs(f.is)
		}
		notes = append(notes, fmt.Sprintf("%d of its %d changes: %s", before-len(f.changes), before, why))
	}
	return f, notes
}

// differs says in what i is not the same as want, "" if in nothing that matters.
func (i identity) differs(want identity) string {
	if what := i.device.Differs(want.device); what != "" {
		return "another " + what
	}
	switch {
	case i.emulated != want.emulated:
		return "one was emulated and the other was not"
	case i.as != want.as:
		return fmt.Sprintf("it was emulated as %s, and later as %s", i.as, want.as)
	}
	return ""
}

// identify says what a reconfiguration was of.
func identify(r *runs.Run, rec *runs.Reconfiguration, subject string) (identity, bool) {
	for _, s := range r.Setups {
		d := device(s, subject)
		if d == nil || s.Session != rec.Session || len(s.Conditions) > 0 && !slices.Contains(s.Conditions, rec.Condition) {
			continue
		}
		id := identity{emulated: r.Meta.Emulated, device: runs.Device{
			Name: d.Name, Vendor: d.Vendor, Model: d.Model, Serial: d.Serial, Firmware: d.Firmware, Size: d.Size, Emulated: d.Emulated,
		}}
		if id.emulated {
			id.as = emulation(r, subject, r.Plan.Condition(rec.Condition))
		}
		return id, true
	}
	return identity{}, false
}

// emulation says how a switch was emulated, as far as that makes it slower or faster.
func emulation(r *runs.Run, subject string, c *plan.Condition) string {
	var e lab.Emulate
	if f, err := lab.Parse("lab.yaml", r.Lab); err == nil {
		if s, ok := f.Switch(subject); ok && s.Emulate != nil {
			e = *s.Emulate
		}
	}
	if c != nil {
		if c.Settings.Model != "" {
			e.Model = c.Settings.Model
		}
		if c.Settings.Ack != "" {
			e.Ack = c.Settings.Ack
		}
		if c.Settings.Switching != nil {
			e.Switching = c.Settings.Switching
		}
	}
	words := []string{e.Model}
	add := func(name string, d *time.Duration) {
		if d != nil {
			words = append(words, name, d.String())
		}
	}
	add("switching", e.Switching)
	add("jitter", e.Jitter)
	if e.Ack != "" {
		words = append(words, "ack", e.Ack)
	}
	return strings.Join(words, " ")
}

// subjects are the NICs whose light comes from the switch.
func subjects(r *runs.Run, subject string) map[string]bool {
	mine := map[string]bool{}
	for _, s := range r.Setups {
		for _, n := range s.NICs {
			if strings.HasPrefix(n.Rx, subject+"/") {
				mine[n.Name] = true
			}
		}
	}
	return mine
}

// about reports whether what a mark is of hangs on the switch: the switch, a port of it, a NIC that it gives light to, or
// a flow to such a NIC.
func about(of, subject string, mine map[string]bool) bool {
	if _, to, flow := strings.Cut(of, ">"); flow {
		of = to
	}
	return of == subject || strings.HasPrefix(of, subject+"/") || mine[of]
}

// ownLight reports whether the switch's own monitors were to see light come: they then say when it did, and not the modules of
// NICs, which are read so seldom that they may miss the dark.
func ownLight(expected []timeline.Expectation, subject string) bool {
	return slices.ContainsFunc(expected, func(e timeline.Expectation) bool {
		return e.Stage == timeline.Light && strings.HasPrefix(e.Subject, subject+"/")
	})
}

// measure returns how long one reconfiguration took; false when that was not watched, or not to its end.
func measure(rec *runs.Reconfiguration, marks []timeline.Mark, expected []timeline.Expectation, subject string, stage timeline.Stage, mine map[string]bool) (change, bool) {
	if stage == timeline.Light && ownLight(expected, subject) {
		mine = nil
	}
	var began, over timeline.Interval
	commanded, seen := false, map[string]timeline.Interval{}
	for _, m := range marks {
		switch {
		case m.Stage == timeline.Command && m.Subject == subject:
			if !commanded {
				began = m.Interval
			}
			began, commanded = timeline.Earlier(began, m.Interval), true
		case m.Stage == stage && about(m.Subject, subject, mine):
			if have, ok := seen[m.Subject]; !ok || m.Earliest > have.Earliest {
				seen[m.Subject] = m.Interval
			}
		}
	}
	if !commanded {
		return change{}, false
	}
	for _, e := range expected {
		if _, came := seen[e.Subject]; came || e.Stage != stage || !about(e.Subject, subject, mine) || rec.Untold(e) {
			continue
		}
		if slices.Contains(rec.Unresolved, fmt.Sprintf("%s: %s: %s", e.Subject, e.Stage, timeline.CutShort)) {
			return change{}, false
		}
		return change{never: true}, true
	}
	if len(seen) == 0 {
		return change{}, false
	}
	first := true
	for _, at := range seen {
		if first {
			over, first = at, false
		}
		over = timeline.Later(over, at)
	}
	took := over.Sub(began)
	return change{took: timeline.Between(max(took.Earliest, min(0, took.Latest)), took.Latest)}, true
}
