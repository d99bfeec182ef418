package timeline

import (
	"slices"
)

// Accuracy tells how well the marks of one stage agree with the truth.
type Accuracy struct {
	Stage  Stage `json:"stage"`
	Count  int   `json:"count"`  // marks that were matched with a truth
	Inside int   `json:"inside"` // those that contain the truth; see [Compare]

	// Unmatched counts marks without any truth, and truths that no mark was matched
	// with: events invented and events missed.
	Unmatched int `json:"unmatched"`

	// Quantiles and maximum of the distance between the middle of a mark and that of
	// its truth, and the median width of the marks. 0 when Count is 0.
	ErrP50NS   int64 `json:"err_p50_ns"`
	ErrP95NS   int64 `json:"err_p95_ns"`
	ErrMaxNS   int64 `json:"err_max_ns"`
	WidthP50NS int64 `json:"width_p50_ns"`
}

// MarshalJSON writes one object: kind ("accuracy"), stage, count, inside, unmatched,
// err_p50_ns, err_p95_ns, err_max_ns and width_p50_ns.
func (a Accuracy) MarshalJSON() ([]byte, error) {
	type fields Accuracy
	return encode(struct {
		Kind string `json:"kind"`
		fields
	}{"accuracy", fields(a)})
}

// Compare holds marks against the truth log of an emulator, by stage in canonical
// order. Each mark is matched with the truth of the same reconfiguration, stage and
// subject whose middle is nearest; hosts are not compared. Several marks may match one
// truth, so marks can be compared before and after they are merged.
//
// A mark contains the truth when the intervals overlap. Command and ack are stamped at our
// socket and their truth at the device's: there a mark of a command must begin before the
// device had it, and one of an ack end after the device sent it.
func Compare(marks, truth []Mark) []Accuracy {
	type tally struct {
		Accuracy
		errs, widths []int64
	}
	tallies := make(map[Stage]*tally)
	of := func(s Stage) *tally {
		if tallies[s] == nil {
			tallies[s] = &tally{Accuracy: Accuracy{Stage: s}}
		}
		return tallies[s]
	}

	type place struct {
		stage   Stage
		subject string
	}
	const none = -1
	first := make(map[place]int32)      // truth of this reconfiguration
	next := make([]int32, len(truth))   // further truths of the same place, in order
	matched := make([]bool, len(truth)) // with a mark
	truths := make(map[int][]int32)     // by reconfiguration
	for _, group := range byReconfiguration(truth) {
		truths[truth[group[0]].Reconfiguration] = group
	}
	for _, group := range byReconfiguration(marks) {
		clear(first)
		for _, i := range slices.Backward(truths[marks[group[0]].Reconfiguration]) {
			at := place{truth[i].Stage, truth[i].Subject}
			next[i] = none
			if head, ok := first[at]; ok {
				next[i] = head
			}
			first[at] = i
		}
		for _, i := range group {
			m := &marks[i]
			t := of(m.Stage)
			nearest, ok := first[place{m.Stage, m.Subject}]
			if !ok {
				t.Unmatched++
				continue
			}
			for c := next[nearest]; c != none; c = next[c] {
				if midDistance(m.Interval, truth[c].Interval) < midDistance(m.Interval, truth[nearest].Interval) {
					nearest = c
				}
			}
			matched[nearest] = true
			t.Count++
			if contains(*m, truth[nearest].Interval) {
				t.Inside++
			}
			t.errs = append(t.errs, midDistance(m.Interval, truth[nearest].Interval))
			t.widths = append(t.widths, int64(m.Width()))
		}
	}
	for i, t := range truth {
		if !matched[i] {
			of(t.Stage).Unmatched++
		}
	}

	var result []Accuracy
	for _, t := range tallies {
		if t.Count > 0 {
			t.ErrP50NS = quantileOf(t.errs, 0.5).Mid()
			t.ErrP95NS = quantileOf(t.errs, 0.95).Mid()
			t.ErrMaxNS = quantileOf(t.errs, 1).Mid()
			t.WidthP50NS = quantileOf(t.widths, 0.5).Mid()
		}
		result = append(result, t.Accuracy)
	}
	slices.SortFunc(result, func(a, b Accuracy) int { return compareStages(a.Stage, b.Stage) })
	return result
}

func contains(m Mark, truth Interval) bool {
	switch m.Stage {
	case Command:
		return m.Earliest <= truth.Latest
	case Ack:
		return m.Latest >= truth.Earliest
	}
	_, overlap := m.Intersect(truth)
	return overlap
}

func midDistance(a, b Interval) int64 {
	low, high := min(a.Mid(), b.Mid()), max(a.Mid(), b.Mid())
	return sub(high, low)
}
