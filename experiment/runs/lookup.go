package runs

import (
	"fmt"
	"slices"
	"sort"

	"github.com/ocslab/ocslab/timeline"
)

// Reconfiguration returns the reconfiguration of that number, or nil.
func (r *Run) Reconfiguration(number int) *Reconfiguration {
	i := sort.Search(len(r.Reconfigurations), func(i int) bool { return r.Reconfigurations[i].Number >= number })
	if i < len(r.Reconfigurations) && r.Reconfigurations[i].Number == number {
		return &r.Reconfigurations[i]
	}
	return nil
}

// MarksOf returns the marks of a reconfiguration: a part of r.Marks.
func (r *Run) MarksOf(number int) []timeline.Mark {
	return part(r.Marks, number, func(m *timeline.Mark) int { return m.Reconfiguration })
}

// TruthOf returns what an emulated lab did in a reconfiguration: a part of r.Truth.
func (r *Run) TruthOf(number int) []timeline.Mark {
	return part(r.Truth, number, func(m *timeline.Mark) int { return m.Reconfiguration })
}

// ExpectedOf returns what should have been seen in a reconfiguration: a part of r.Expected.
func (r *Run) ExpectedOf(number int) []timeline.Expectation {
	return part(r.Expected, number, func(e *timeline.Expectation) int { return e.Reconfiguration })
}

// SamplesOf returns the readings of a reconfiguration: a part of r.Samples.
func (r *Run) SamplesOf(number int) []Sample {
	return part(r.Samples, number, func(s *Sample) int { return s.Reconfiguration })
}

// part returns the items of one reconfiguration of a list that is in order of them. Nobody
// can append to the list through it.
func part[T any](all []T, number int, of func(*T) int) []T {
	from := sort.Search(len(all), func(i int) bool { return of(&all[i]) >= number })
	to := from + sort.Search(len(all)-from, func(i int) bool { return of(&all[from+i]) > number })
	return all[from:to:to]
}

// Untold reports whether that an expectation was not met says nothing of when it may have been, as when a monitor was
// not read often enough to see the dark.
func (r *Reconfiguration) Untold(e timeline.Expectation) bool {
	for _, why := range []string{timeline.NoDark.String(), timeline.TooFewSamples.String(), timeline.TooBrief, timeline.OutOfSight} {
		if slices.Contains(r.Unresolved, fmt.Sprintf("%s: %s: %s", e.Subject, e.Stage, why)) {
			return true
		}
	}
	return false
}

// Differs says in what two devices of one name differ, "" if in nothing that matters to what is measured of them.
func (d Device) Differs(from Device) string {
	for _, x := range []struct{ what, a, b string }{
		{"vendor", d.Vendor, from.Vendor}, {"model", d.Model, from.Model}, {"serial number", d.Serial, from.Serial},
		{"firmware", d.Firmware, from.Firmware}, {"size", d.Size, from.Size},
	} {
		if x.a != x.b {
			return fmt.Sprintf("%s (%q and %q)", x.what, x.a, x.b)
		}
	}
	return ""
}
