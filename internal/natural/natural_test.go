package natural_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/internal/natural"
)

// Ensure numbers count as numbers, wherever they stand, and leading zeros hardly at all.
func TestCompare(t *testing.T) {
	want := []string{"", "gpu", "gpu1/ens1f0", "gpu2/ens1f0", "gpu2/ens1f10", "gpu010", "gpu10", "gpu10/ens1f0", "rail0/9", "rail0/33", "rail10/1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, natural.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Ensure it is an order, in which only equal texts are equal.
func TestCompare_Order(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("a/019")), 0, 6, -1)
	rapid.Check(t, func(rt *rapid.T) {
		a, b, c := text.Draw(rt, "a"), text.Draw(rt, "b"), text.Draw(rt, "c")
		if x, y := natural.Compare(a, b), natural.Compare(b, a); x != -y || (x == 0) != (strings.Compare(a, b) == 0) {
			rt.Fatalf("%q and %q: %d and %d", a, b, x, y)
		}
		if natural.Compare(a, b) <= 0 && natural.Compare(b, c) <= 0 && natural.Compare(a, c) > 0 {
			rt.Fatalf("%q, %q, %q", a, b, c)
		}
	})
}

// Ensure that one thing has no s, and that several can be spoken.
func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 points", 1: "1 point", 2: "2 points", -1: "-1 points"} {
		if got := natural.Count(n, "point"); got != want {
			t.Errorf("Count(%d): %q, want %q", n, got, want)
		}
	}
	for what, want := range map[string]string{"switch": "2 switches", "dash": "2 dashes", "bus": "2 buses", "box": "2 boxes", "path": "2 paths"} {
		if got := natural.Count(2, what); got != want {
			t.Errorf("Count(2): %q, want %q", got, want)
		}
	}
}
