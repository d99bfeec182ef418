package dist

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

// TestClimb: the likelihood never falls, from wherever EM begins.
func TestClimb(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(20, 80).Draw(t, "n")
		cells := make([]cell, n)
		for i := range cells {
			from := rapid.Int64Range(0, 1e9).Draw(t, "from")
			x := timeline.Between(from, from+rapid.Int64Range(0, 1e8).Draw(t, "width"))
			if rapid.IntRange(0, 19).Draw(t, "open") == 0 {
				x.Latest = timeline.Never
			}
			cells[i] = cellOf(x)
		}
		start := make([]component, rapid.IntRange(1, MaxModes).Draw(t, "modes"))
		for k := range start {
			start[k] = component{
				share: 1 / float64(len(start)), mean: rapid.Float64Range(0, 1e9).Draw(t, "mean"),
				spread: rapid.Float64Range(1e3, 1e9).Draw(t, "spread"),
			}
		}
		last := math.Inf(-1)
		climb(cells, start, limits{floor: 1e3, fixed: -1}, 1e-6, 200, func(l float64) {
			if l < last-1e-6*(1+math.Abs(last)*1e-6) {
				t.Fatalf("from %v to %v", last, l)
			}
			last = l
		})
	})
}

// TestWithin compares with sums over many points, also where little of the normal
// distribution lies.
func TestWithin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		a := r.NormFloat64() * 12
		b := a + math.Exp(r.NormFloat64()*3-3)
		logP, mean, square := within(a, b)
		near := a
		if math.Abs(b) < math.Abs(a) {
			near = b
		}
		if a < 0 && b > 0 {
			near = 0
		}
		var p, first, second float64
		const parts = 4000
		from, end := max(a, -20), min(b, 20)
		if math.Abs(near) > 1 { // the rest is nothing
			from, end = a, b
			if near == a {
				end = min(b, a+40/math.Abs(near))
			} else {
				from = max(a, b-40/math.Abs(near))
			}
		}
		for i := range parts {
			x := from + (float64(i)+0.5)/parts*(end-from)
			w := math.Exp(-(x*x - near*near) / 2)
			p, first, second = p+w, first+w*x, second+w*x*x
		}
		want := math.Log(p*(end-from)/parts) - near*near/2 - logRootTwoPi
		if math.Abs(logP-want) > 1e-4 || math.Abs(mean-first/p) > 1e-4*(1+math.Abs(mean)) || math.Abs(square-second/p) > 1e-4*(1+square) {
			t.Fatalf("between %v and %v: %v %v %v, want %v %v %v", a, b, logP, mean, square, want, first/p, second/p)
		}
	}
	if logP, mean, _ := within(1e9, math.Inf(1)); math.IsNaN(logP) || mean < 1e9 || mean > 1e9+1 {
		t.Errorf("far out: %v, %v", logP, mean)
	}
}
