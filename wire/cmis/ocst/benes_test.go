package ocst_test

import (
	"testing"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Ensure that every one of the 8! permutations is routed, by following the light of
// every lane through the wiring.
func TestRoute_all(t *testing.T) {
	t.Parallel()
	n := 0
	permutations(func(p ocst.Permutation) {
		n++
		s, err := ocst.Route(p)
		if err != nil {
			t.Fatal(err)
		}
		for lane, want := range p {
			if got, _ := s.Follow(lane); got != int(want) {
				t.Fatalf("%v: lane %d arrives at %d, want %d", p, lane, got, want)
			}
		}
	})
	if n != 40320 {
		t.Errorf("%d permutations were tried, want 8!", n)
	}
}

// permutations calls f with every permutation (Heap's algorithm).
func permutations(f func(ocst.Permutation)) {
	p := ocst.Permutation{0, 1, 2, 3, 4, 5, 6, 7}
	var heap func(k int)
	heap = func(k int) {
		if k == 1 {
			f(p)
			return
		}
		for i := range k {
			heap(k - 1)
			j := 0
			if k%2 == 0 {
				j = i
			}
			if i < k-1 {
				p[j], p[k-1] = p[k-1], p[j]
			}
		}
	}
	heap(ocst.Lanes)
}

func BenchmarkRoute(b *testing.B) {
	p := ocst.Permutation{3, 7, 0, 5, 1, 6, 2, 4}
	for b.Loop() {
		if _, err := ocst.Route(p); err != nil {
			b.Fatal(err)
		}
	}
}
