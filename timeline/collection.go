package timeline

import (
	"cmp"
	"maps"
	"slices"
)

// collection is what marks say of durations since the command. Texts are replaced by small
// numbers, so that the marks of long runs are compared and sorted fast.
type collection struct {
	numbers  []int // of the reconfigurations that have a command, in order
	commands []Interval
	subjects []subject // in order
	stages   []stageEvents
	orphans  int
}

// subject is who reached a stage, as somebody saw it.
type subject struct{ name, host string }

// stageEvents are the times at which a stage was reached, one for each subject and
// reconfiguration, in order of these.
type stageEvents struct {
	stage  Stage
	events []event
}

// event is that a subject reached a stage.
type event struct {
	number   int32 // of the reconfiguration, as a place in collection.numbers
	subject  int32 // a place in collection.subjects
	Interval       // since the command
}

// collect gathers the durations of all stages but the command, stages in canonical order.
func collect(marks []Mark) *collection {
	c := &collection{}
	places := c.gatherCommands(marks)

	// Pass one counts, so that pass two need not grow anything.
	known := make([]int32, len(marks)) // places of subjects, as they are first met; -1: not of use
	bySubject := make(map[subject]int32)
	byStage := make(map[Stage]int)
	for i, m := range marks {
		if _, ok := places.find(m.Reconfiguration); !ok {
			if m.Reconfiguration != 0 {
				c.orphans++
			}
			known[i] = -1
			continue
		}
		if m.Stage == Command {
			known[i] = -1
			continue
		}
		who := subject{m.Subject, m.Host}
		at, ok := bySubject[who]
		if !ok {
			at = int32(len(c.subjects))
			bySubject[who] = at
			c.subjects = append(c.subjects, who)
		}
		known[i] = at
		byStage[m.Stage]++
	}
	rank := c.sortSubjects()

	into := make(map[Stage]int, len(byStage))
	for i, stage := range slices.SortedFunc(maps.Keys(byStage), compareStages) {
		into[stage] = i
		c.stages = append(c.stages, stageEvents{stage, make([]event, 0, byStage[stage])})
	}
	for i, m := range marks {
		if known[i] < 0 {
			continue
		}
		number, _ := places.find(m.Reconfiguration)
		s := &c.stages[into[m.Stage]]
		s.events = append(s.events, event{number, rank[known[i]], m.Interval})
	}
	for i := range c.stages {
		c.stages[i].reduce(c.commands)
	}
	return c
}

// places finds the place of a reconfiguration among those with a command. It remembers
// the last, since marks of one reconfiguration mostly follow each other.
type places struct {
	at    map[int]int32
	last  int
	place int32
	ok    bool
}

func (p *places) find(reconfiguration int) (int32, bool) {
	if p.last != reconfiguration || !p.ok {
		p.last = reconfiguration
		p.place, p.ok = p.at[reconfiguration]
	}
	return p.place, p.ok
}

// gatherCommands numbers the reconfigurations that have a command.
func (c *collection) gatherCommands(marks []Mark) *places {
	commands := make(map[int]Interval)
	for _, m := range marks {
		if m.Stage != Command {
			continue
		}
		at, ok := commands[m.Reconfiguration]
		if !ok {
			at = m.Interval
		}
		commands[m.Reconfiguration] = Earlier(at, m.Interval)
	}
	c.numbers = slices.Sorted(maps.Keys(commands))
	p := &places{at: make(map[int]int32, len(commands))}
	for i, reconfiguration := range c.numbers {
		p.at[reconfiguration] = int32(i)
		c.commands = append(c.commands, commands[reconfiguration])
	}
	return p
}

// sortSubjects puts the subjects in order, and returns the new place of each.
func (c *collection) sortSubjects() []int32 {
	order := make([]int32, len(c.subjects))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := c.subjects[a], c.subjects[b]
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.host, y.host))
	})
	rank, sorted := make([]int32, len(order)), make([]subject, len(order))
	for to, from := range order {
		rank[from], sorted[to] = int32(to), c.subjects[from]
	}
	c.subjects = sorted
	return rank
}

// reduce sorts the events and leaves one of each subject in each reconfiguration: the
// first of a loss, and the last of any other stage. It makes them relative to the command.
func (s *stageEvents) reduce(commands []Interval) {
	slices.SortFunc(s.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.subject, b.subject))
	})
	loss := s.stage.loss()
	kept := s.events[:0]
	for _, e := range s.events {
		if n := len(kept); n > 0 && kept[n-1].number == e.number && kept[n-1].subject == e.subject {
			if loss {
				kept[n-1].Interval = Earlier(kept[n-1].Interval, e.Interval)
			} else {
				kept[n-1].Interval = Later(kept[n-1].Interval, e.Interval)
			}
			continue
		}
		kept = append(kept, e)
	}
	for i := range kept {
		kept[i].Interval = kept[i].Sub(commands[kept[i].number])
	}
	s.events = kept
}
