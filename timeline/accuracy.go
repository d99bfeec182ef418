package timeline

import (
	"slices"
)

// Accuracy tells how well the marks of one stage agree with the truth.
type Accuracy struct {
	Stage  Stage `json:"stage"`
	Count  int   `json:"count"`  // marks that were matched with a truth
	Inside int   `json:"inside"` // those whose interval overlaps that of the truth

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
func Compare(marks, truth []Mark) []Accuracy {
	type identity struct {
		reconfiguration int
		stage           Stage
		subject         string
	}
	type event struct {
		Interval
		seen bool
	}
	events := make(map[identity][]event)
	for _, t := range truth {
		id := identity{t.Reconfiguration, t.Stage, t.Subject}
		events[id] = append(events[id], event{Interval: t.Interval})
	}

	type tally struct {
		Accuracy
		errs, widths []Interval
	}
	tallies := make(map[Stage]*tally)
	of := func(s Stage) *tally {
		if tallies[s] == nil {
			tallies[s] = &tally{Accuracy: Accuracy{Stage: s}}
		}
		return tallies[s]
	}
	for _, m := range marks {
		t := of(m.Stage)
		candidates := events[identity{m.Reconfiguration, m.Stage, m.Subject}]
		if len(candidates) == 0 {
			t.Unmatched++
			continue
		}
		nearest := &candidates[0]
		for i := range candidates[1:] {
			if c := &candidates[i+1]; midDistance(m.Interval, c.Interval) < midDistance(m.Interval, nearest.Interval) {
				nearest = c
			}
		}
		nearest.seen = true
		t.Count++
		if _, overlap := m.Intersect(nearest.Interval); overlap {
			t.Inside++
		}
		t.errs = append(t.errs, Point(midDistance(m.Interval, nearest.Interval)))
		t.widths = append(t.widths, Point(int64(m.Width())))
	}
	for id, candidates := range events {
		for _, c := range candidates {
			if t := of(id.stage); !c.seen {
				t.Unmatched++
			}
		}
	}

	var result []Accuracy
	for _, t := range tallies {
		t.ErrP50NS = Quantile(t.errs, 0.5).Mid()
		t.ErrP95NS = Quantile(t.errs, 0.95).Mid()
		t.ErrMaxNS = Quantile(t.errs, 1).Mid()
		t.WidthP50NS = Quantile(t.widths, 0.5).Mid()
		result = append(result, t.Accuracy)
	}
	slices.SortFunc(result, func(a, b Accuracy) int { return compareStages(a.Stage, b.Stage) })
	return result
}

func midDistance(a, b Interval) int64 {
	low, high := min(a.Mid(), b.Mid()), max(a.Mid(), b.Mid())
	return sub(high, low)
}
