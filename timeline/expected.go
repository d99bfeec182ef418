package timeline

import (
	"cmp"
	"slices"
)

// Expectation is that a subject reaches a stage in one reconfiguration. Whoever changes
// circuits knows from them what should follow: each new circuit gives light at its
// egress and carrier to the NIC behind it, and traffic to that pair of NICs.
type Expectation struct {
	Reconfiguration int
	Stage           Stage
	Subject         string // as in [Mark], seen from whatever host
}

// Reasons why an expectation was not met that say nothing of when it may have been, as
// [NoDark] and [TooFewSamples] do of light.
const (
	TooBrief   = "down for too short a time to be seen"
	OutOfSight = "it went out of sight"
)

// CutShort is why an expectation was not met when nobody waited any longer: it says that it was not met until then.
const CutShort = "not until the waiting was cut short"

// Unseen is a stage that was expected and that no subject ever reached.
type Unseen struct {
	Stage   Stage `json:"stage"`
	Missing int   `json:"missing"` // how often it was expected
}

// missed returns what was expected and that no mark shows, each once, by reconfiguration,
// stage in canonical order, and subject. Expectations of a reconfiguration without a
// command mark, and of the command itself, are left out.
func missed(marks []Mark, expected []Expectation) []Expectation {
	// Expectations become numbers: marks are many, and what they are compared with is small.
	commanded := make(map[int]bool)
	for _, m := range marks {
		if m.Stage == Command {
			commanded[m.Reconfiguration] = true
		}
	}
	things := make(map[[2]string]int32) // stage and subject
	wanted := make(map[int][]int32)
	for _, e := range expected {
		if !commanded[e.Reconfiguration] || e.Stage == Command {
			continue
		}
		thing := [2]string{string(e.Stage), e.Subject}
		id, ok := things[thing]
		if !ok {
			id = int32(len(things))
			things[thing] = id
		}
		wanted[e.Reconfiguration] = append(wanted[e.Reconfiguration], id)
	}
	names := make([][2]string, len(things))
	for thing, id := range things {
		names[id] = thing
	}

	seen := make(map[int][]int32)
	for _, m := range marks {
		if id, ok := things[[2]string{string(m.Stage), m.Subject}]; ok {
			seen[m.Reconfiguration] = append(seen[m.Reconfiguration], id)
		}
	}
	var list []Expectation
	for reconfiguration, ids := range wanted {
		slices.Sort(ids)
		here := seen[reconfiguration]
		slices.Sort(here)
		for _, id := range slices.Compact(ids) {
			if _, ok := slices.BinarySearch(here, id); !ok {
				list = append(list, Expectation{reconfiguration, Stage(names[id][0]), names[id][1]})
			}
		}
	}
	slices.SortFunc(list, func(a, b Expectation) int {
		return cmp.Or(cmp.Compare(a.Reconfiguration, b.Reconfiguration), compareStages(a.Stage, b.Stage), cmp.Compare(a.Subject, b.Subject))
	})
	return list
}

// expect replaces what Missing is by what was expected and not seen.
func (r *Report) expect(marks []Mark, expected []Expectation) {
	r.Missed = missed(marks, expected)
	counts := make(map[Stage]int)
	for _, e := range r.Missed {
		counts[e.Stage]++
	}
	for i := range r.Stages {
		s := &r.Stages[i]
		s.Missing = counts[s.Stage]
		delete(counts, s.Stage)
	}
	for stage, n := range counts {
		r.Unseen = append(r.Unseen, Unseen{stage, n})
	}
	slices.SortFunc(r.Unseen, func(a, b Unseen) int { return compareStages(a.Stage, b.Stage) })
}
