package timeline

import "slices"

// Expectation is that a subject reaches a stage in one reconfiguration. Whoever changes
// circuits knows from them what should follow: each new circuit gives light at its
// egress and carrier to the NIC behind it, and traffic to that pair of NICs.
type Expectation struct {
	Reconfiguration int
	Stage           Stage
	Subject         string // as in [Mark], seen from whatever host
}

// Unseen is a stage that was expected and that no subject ever reached.
type Unseen struct {
	Stage   Stage `json:"stage"`
	Missing int   `json:"missing"` // how often it was expected
}

// missing counts by stage what was expected of the reconfigurations that have a command
// and not seen in them.
func missing(marks []Mark, expected []Expectation) map[Stage]int {
	commanded := make(map[int]bool)
	seen := make(map[Expectation]bool, len(marks))
	for _, m := range marks {
		if m.Stage == Command {
			commanded[m.Reconfiguration] = true
		}
		seen[Expectation{m.Reconfiguration, m.Stage, m.Subject}] = true
	}
	counts := make(map[Stage]int)
	for _, e := range expected {
		if commanded[e.Reconfiguration] && e.Stage != Command && !seen[e] {
			counts[e.Stage]++
			seen[e] = true // what is expected twice is missing once
		}
	}
	return counts
}

// expect replaces what Missing is by what was expected and not seen.
func (r *Report) expect(marks []Mark, expected []Expectation) {
	counts := missing(marks, expected)
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
