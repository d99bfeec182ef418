package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Conflict is a pair of marks of the same thing from different sources that cannot
// both be right: First ends before Second begins.
type Conflict struct{ First, Second Mark }

// Error describes the conflict in one sentence.
func (c Conflict) Error() string {
	return fmt.Sprintf("timeline: reconfiguration %d: %s of %s: %s and %s disagree by %s",
		c.First.Reconfiguration, c.First.Stage, c.First.Subject, c.First.Source, c.Second.Source,
		time.Duration(sub(c.Second.Earliest, c.First.Latest)))
}

// Merge joins marks of the same reconfiguration, stage, subject and host.
//
// Marks that overlap are taken for one event: the result is their intersection, with
// the sources, and the details, sorted, each once, joined by "+" and "; ". Where more
// than two marks overlap only in part, they are joined from the earliest on for as
// long as all of them still share an instant.
//
// Marks that do not overlap are all kept. If one source saw both, the thing happened
// twice (a link that flapped). If no source saw both, the sources contradict each
// other, and neighbours in time that do so are reported as a [Conflict].
//
// The result is in order of Earliest, then stage (canonical), subject and host. It
// does not depend on the order of the input, and merging it again, also together with
// the input, changes nothing. Every input interval holds the result it became part of.
func Merge(marks ...[]Mark) (merged []Mark, conflicts []Conflict) {
	type identity struct {
		reconfiguration int
		stage           Stage
		subject, host   string
	}
	byIdentity := make(map[identity][]Mark)
	for _, m := range slices.Concat(marks...) {
		id := identity{m.Reconfiguration, m.Stage, m.Subject, m.Host}
		byIdentity[id] = append(byIdentity[id], m)
	}
	for _, same := range byIdentity {
		events := mergeSame(same)
		for i := 1; i < len(events); i++ {
			if !shareSource(events[i-1], events[i]) {
				conflicts = append(conflicts, Conflict{events[i-1], events[i]})
			}
		}
		merged = append(merged, events...)
	}
	slices.SortFunc(merged, compareMarks)
	slices.SortFunc(conflicts, func(a, b Conflict) int {
		return cmp.Or(compareMarks(a.First, b.First), compareMarks(a.Second, b.Second))
	})
	return merged, conflicts
}

const (
	sourceSeparator = "+"
	detailSeparator = "; "
)

// mergeSame joins marks of one identity. Going by Earliest, each result ends before
// the next begins, and that is what makes Merge idempotent.
func mergeSame(marks []Mark) []Mark {
	slices.SortFunc(marks, compareMarks)
	var events []Mark
	for _, m := range marks {
		m.Source = union(sourceSeparator, m.Source)
		m.Detail = union(detailSeparator, m.Detail)
		if len(events) > 0 {
			last := &events[len(events)-1]
			if both, ok := last.Intersect(m.Interval); ok {
				last.Interval = both
				last.Source = union(sourceSeparator, last.Source, m.Source)
				last.Detail = union(detailSeparator, last.Detail, m.Detail)
				continue
			}
		}
		events = append(events, m)
	}
	return events
}

func shareSource(a, b Mark) bool {
	of := strings.Split(b.Source, sourceSeparator)
	return slices.ContainsFunc(strings.Split(a.Source, sourceSeparator), func(s string) bool {
		return slices.Contains(of, s)
	})
}

// union joins what the lists hold, sorted, each once, without empty parts.
func union(separator string, lists ...string) string {
	parts := strings.Split(strings.Join(lists, separator), separator)
	slices.Sort(parts)
	parts = slices.DeleteFunc(slices.Compact(parts), func(s string) bool { return s == "" })
	return strings.Join(parts, separator)
}
