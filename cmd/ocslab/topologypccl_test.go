package main

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/pccl"
)

// TestLowerHull: at any switching time the hull is as low as the lowest of all lines, its pieces follow one another,
// and the piece of that time is the one that is the lowest.
func TestLowerHull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pccl.Piece {
			return pccl.Piece{Changes: rapid.IntRange(0, 9).Draw(t, "changes"), Time: float64(rapid.IntRange(0, 50).Draw(t, "time"))}
		}), 1, 12).Draw(t, "lines")
		r := float64(rapid.IntRange(0, 200).Draw(t, "r")) / 4
		want := math.Inf(1)
		for _, p := range all {
			want = min(want, p.Time+float64(p.Changes)*r)
		}
		hull := lowerHull(all)
		if got := lowest(hull, r); math.Abs(got-want) > 1e-9 {
			t.Fatalf("at %g the hull %v is %g high, want %g", r, hull, got, want)
		}
		at := 0.0
		for _, p := range hull {
			if p.From != at || p.To <= p.From {
				t.Fatalf("%v does not go on at %g", hull, at)
			}
			if p.From <= r && r < p.To && math.Abs(p.Time+float64(p.Changes)*r-want) > 1e-9 {
				t.Fatalf("at %g it is not %v", r, p)
			}
			at = p.To
		}
		if !math.IsInf(at, 1) {
			t.Fatalf("%v ends at %g", hull, at)
		}
	})
	if got := lowerHull(nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
