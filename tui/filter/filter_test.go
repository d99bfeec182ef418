package filter_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/tui/filter"
)

func TestFilter_Match(t *testing.T) {
	fields := []string{"gpu1/ens1f0", "rail0/33", "Lost"}
	for _, test := range []struct {
		text string
		want bool
	}{
		{"", true},
		{"   ", true},
		{"gpu1", true},
		{"g1e0", true}, // fuzzy: in this order
		{"0e1g", false},
		{"'g1e0", false}, // exactly
		{"'u1/e", true},
		{"lost", true}, // case is the same
		{"LOST", true},
		{"!lost", false},
		{"!g1e0", true},    // inverse is exact, or it would take away too much
		{"gpu1 !up", true}, // all words
		{"gpu1 !rail", false},
		{"gpu1 rail0/33", true},
		{"gpu1rail", false}, // not across fields
		{"!", true},
		{"'", true},
		{"!'lost", false},
	} {
		if got := filter.Parse(test.text).Match(fields...); got != test.want {
			t.Errorf("%q: %v, want %v", test.text, got, test.want)
		}
	}
}

func TestScore(t *testing.T) {
	better := func(pattern, a, b string) {
		t.Helper()
		x, okX := filter.Score(a, pattern)
		y, okY := filter.Score(b, pattern)
		if !okX || okY && x <= y {
			t.Errorf("%q: %q has %d (%v), %q has %d (%v)", pattern, a, x, okX, b, y, okY)
		}
	}
	better("undo", "undo", "redo, then undo")
	better("dis", "disconnect", "redistribute")
	better("cf", "configure", "a circuit is off")
	better("gl", "goto links", "signal")
	better("ü", "übung", "x")
}

// What matches, matches inversely not, and the other way round.
func TestFilter_Inverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-zA-Z0-9/]{1,6}`).Draw(t, "word")
		fields := rapid.SliceOf(rapid.String()).Draw(t, "fields")
		if filter.Parse("'"+word).Match(fields...) == filter.Parse("!"+word).Match(fields...) {
			t.Fatalf("%q: both or neither", word)
		}
		if filter.Parse("'"+word).Match(fields...) && !filter.Parse(word).Match(fields...) {
			t.Fatalf("%q: exactly, but not fuzzily", word)
		}
	})
}
