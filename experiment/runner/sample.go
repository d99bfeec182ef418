package runner

import (
	"maps"
	"math"
	"slices"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// equalWithin is how many dB readings may differ and still be told as equal.
const equalWithin = 0.05

// samples returns the readings of one reconfiguration by subject, those of one subject in
// order of time. Of readings in a row that differ by no more than equalWithin from the
// first of them, the first and the last are kept; failed readings are left out.
func samples(reconfiguration int, readings map[string][]timeline.Sample) []runs.Sample {
	var kept []runs.Sample
	for _, subject := range slices.Sorted(maps.Keys(readings)) {
		var first, last float64 // of the row
		row := 0                // how long it is
		var pending runs.Sample // the last of the row, unless that is the first
		for _, r := range readings[subject] {
			if math.IsNaN(r.PowerDBm) || math.IsInf(r.PowerDBm, 1) {
				continue
			}
			s := runs.Sample{Reconfiguration: reconfiguration, Subject: subject, EarliestNS: r.Earliest, LatestNS: r.Latest}
			if s.Dark = math.IsInf(r.PowerDBm, -1); !s.Dark {
				s.PowerDBm = r.PowerDBm
			}
			if last = r.PowerDBm; row > 0 && alike(first, last) {
				pending = s
				row++
				continue
			}
			if row > 1 {
				kept = append(kept, pending)
			}
			kept = append(kept, s)
			first, row = last, 1
		}
		if row > 1 {
			kept = append(kept, pending)
		}
	}
	return kept
}

// alike reports whether two powers are as good as equal. No light at all is only like itself.
func alike(a, b float64) bool { return a == b || math.Abs(a-b) <= equalWithin }
