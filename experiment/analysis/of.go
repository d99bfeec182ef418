package analysis

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// Of analyses a run, as far as it is recorded. The same run gives the same analysis: all
// that is random is drawn from the seed of its plan. It leaves the run as it was, and
// keeps no reference to its marks.
func Of(r *runs.Run) *Analysis {
	s := newSplit(r)
	a := &Analysis{Measured: len(r.Reconfigurations)}
	for _, rec := range s.recs[disturbed] {
		a.Busy = append(a.Busy, Busy{rec.Number, rec.Busy})
	}
	for _, rec := range r.Reconfigurations {
		for _, p := range rec.Dark {
			if !slices.Contains(a.Dark, p) {
				a.Dark = append(a.Dark, p)
			}
		}
	}
	conditions := s.conditions()
	found := make([]*measured, len(conditions))
	a.Conditions = make([]Condition, len(conditions))
	var all sync.WaitGroup
	all.Go(func() {
		a.Violations = timeline.Check(r.Marks)
		a.Conflicts = conflicts(r.Marks)
		if len(r.Truth) > 0 {
			trusted := func(m timeline.Mark) bool {
				rec := r.Reconfiguration(m.Reconfiguration)
				return rec == nil || len(rec.Busy) == 0
			}
			a.Accuracy = timeline.Compare(filter(r.Marks, trusted), filter(r.Truth, trusted))
		}
	})
	turn := make(chan struct{}, runtime.GOMAXPROCS(0)) // holds one for each that is at work
	for i, c := range conditions {
		all.Go(func() {
			turn <- struct{}{}
			found[i] = s.measure(c)
			a.Conditions[i] = found[i].condition(s)
			<-turn
		})
	}
	all.Wait()
	for i := 1; i < len(found); i++ {
		a.Differences = append(a.Differences, differences(found[0], found[i])...)
	}
	a.Background = s.background(a.Conditions)
	for i := range a.Conditions {
		a.Conditions[i].blame(a.Background)
	}
	a.judge(s.limits())
	return a
}

// conflicts returns pairs of marks of one thing, seen by different sources, of which only
// one can be right.
func conflicts(marks []timeline.Mark) []timeline.Conflict {
	type identity struct {
		stage         timeline.Stage
		subject, host string
	}
	// Merging all would take long, and hardly anything is there twice.
	var twice []timeline.Mark
	first := make(map[identity]int)
	for begin := 0; begin < len(marks); {
		end := begin
		clear(first)
		for ; end < len(marks) && marks[end].Reconfiguration == marks[begin].Reconfiguration; end++ {
			m := marks[end]
			id := identity{m.Stage, m.Subject, m.Host}
			at, ok := first[id]
			switch {
			case !ok:
				first[id] = end
				continue
			case at >= 0:
				twice = append(twice, marks[at])
				first[id] = -1
			}
			twice = append(twice, m)
		}
		begin = end
	}
	_, conflicts := timeline.Merge(twice)
	return conflicts
}

// split is a run taken apart by condition.
type split struct {
	run      *runs.Run
	seed     uint64
	fibres   *fibres
	marks    map[int][]timeline.Mark
	left     map[int][]timeline.Mark // with what modules say of light; nil if nothing was left out of marks
	expected map[int][]timeline.Expectation
	recs     map[int][]runs.Reconfiguration
}

// Keys of a split beside the numbers of conditions, which are from 1.
const (
	nulls     = 0  // null toggles, of all conditions
	nobody    = -1 // reconfigurations that the run does not list
	disturbed = -2 // those that the machine was too busy for
)

func newSplit(r *runs.Run) *split {
	s := &split{run: r, fibres: newFibres(r.Lab)}
	if r.Plan != nil {
		s.seed = r.Plan.Seed
	}
	key := func(number int) int {
		rec := r.Reconfiguration(number)
		switch {
		case rec == nil:
			return nobody
		case len(rec.Busy) > 0:
			return disturbed
		case rec.Null:
			return nulls
		}
		return rec.Condition
	}
	kind, expected := OneKind(r.Marks, r.Expected)
	marks := kind
	wanted := func(timeline.Mark) bool { return true }
	if r.File != nil && len(r.File.Measure.Stages) > 0 {
		stages := append([]timeline.Stage{timeline.Command}, r.File.Measure.Stages...)
		wanted = func(m timeline.Mark) bool { return slices.Contains(stages, m.Stage) }
		marks = filter(kind, wanted)
		expected = filter(expected, func(e timeline.Expectation) bool { return slices.Contains(stages, e.Stage) })
	}
	s.marks = parts(marks, func(m *timeline.Mark) int { return key(m.Reconfiguration) })
	if len(kind) < len(r.Marks) {
		s.left = parts(filter(r.Marks, wanted), func(m *timeline.Mark) int { return key(m.Reconfiguration) })
	}
	s.expected = parts(expected, func(e *timeline.Expectation) int { return key(e.Reconfiguration) })
	s.recs = parts(r.Reconfigurations, func(rec *runs.Reconfiguration) int { return key(rec.Number) })
	return s
}

func filter[T any](list []T, keep func(T) bool) []T {
	var kept []T
	for _, x := range list {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// parts divides a list by key. A part that is one stretch of the list shares its memory:
// marks are many, and those of a condition mostly follow each other.
func parts[K comparable, T any](list []T, key func(*T) K) map[K][]T {
	by := make(map[K][]T)
	for begin := 0; begin < len(list); {
		k := key(&list[begin])
		end := begin + 1
		for end < len(list) && key(&list[end]) == k {
			end++
		}
		if have, ok := by[k]; ok {
			by[k] = append(have, list[begin:end]...) // copies the first time, for want of room
		} else {
			by[k] = list[begin:end:end]
		}
		begin = end
	}
	return by
}

// conditions returns those of the plan of which at least one repeat is done.
func (s *split) conditions() []plan.Condition {
	if s.run.Plan == nil {
		return nil
	}
	return filter(s.run.Plan.Conditions, func(c plan.Condition) bool { return c.Number > 0 && len(s.recs[c.Number]) > 0 })
}

func (s *split) limits() []plan.Limit {
	if s.run.File == nil {
		return nil
	}
	return s.run.File.Limits
}

// byStage returns the stretches of durations that are of one stage. Durations come in
// this order.
func byStage(durations []timeline.Duration) map[timeline.Stage][]timeline.Duration {
	return parts(durations, func(d *timeline.Duration) timeline.Stage { return d.Stage })
}

// byTime orders reconfigurations as they were done.
func byTime(a, b *runs.Reconfiguration) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.MonoNS, b.MonoNS), cmp.Compare(a.Number, b.Number))
}
