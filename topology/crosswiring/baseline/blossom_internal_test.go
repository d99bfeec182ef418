package baseline

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// heaviest is the weight of the best matching by trying all: by the set of nodes that are left.
func heaviest(n int, weight func(i, j int) int64) int64 {
	best := make([]int64, 1<<n)
	for set := 1; set < 1<<n; set++ {
		i := bits.TrailingZeros(uint(set))
		best[set] = best[set&^(1<<i)]
		for j := i + 1; j < n; j++ {
			if w := weight(i, j); set>>j&1 == 1 && w > 0 {
				best[set] = max(best[set], w+best[set&^(1<<i)&^(1<<j)])
			}
		}
	}
	return best[1<<n-1]
}

// matched is the weight of a matching, which must be one.
func matched(t interface{ Fatalf(string, ...any) }, peers []int, weight func(i, j int) int64) (sum int64) {
	for i, j := range peers {
		if j < 0 {
			continue
		}
		if j == i || j >= len(peers) || peers[j] != i || weight(i, j) == 0 {
			t.Fatalf("%v is no matching: node %d", peers, i)
		}
		if i < j {
			sum += weight(i, j)
		}
	}
	return sum
}

func TestMatcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 11).Draw(t, "nodes")
		most := rapid.Int64Range(1, 9).Draw(t, "most")
		density := rapid.IntRange(1, 10).Draw(t, "density")
		seed := rapid.Uint64().Draw(t, "seed")
		random := rand.New(rand.NewPCG(seed, 0))
		m := newMatcher(n) // used several times, as for all switches of a group
		for range 3 {
			w := make([]int64, n*n)
			for i := range n {
				for j := range i {
					if random.IntN(10) < density {
						w[i*n+j] = 1 + random.Int64N(most)
						w[j*n+i] = w[i*n+j]
					}
				}
			}
			weight := func(i, j int) int64 { return w[i*n+j] }
			peers := m.match(n, weight)
			if got, want := matched(t, peers, weight), heaviest(n, weight); got != want {
				t.Fatalf("weight %d of %v, want %d", got, peers, want)
			}
		}
	})
}

// Larger graphs, where blossoms are within blossoms.
func TestMatcher_Large(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, x := range []struct{ n, times int }{{8, 2000}, {10, 1000}, {12, 200}, {14, 20}, {15, 20}, {16, 10}} {
		n := x.n
		m := newMatcher(n)
		for range x.times {
			w := make([]int64, n*n)
			for i := range n {
				for j := range i {
					if random.IntN(3) == 0 {
						w[i*n+j] = 1 + random.Int64N(4)
						w[j*n+i] = w[i*n+j]
					}
				}
			}
			weight := func(i, j int) int64 { return w[i*n+j] }
			peers := m.match(n, weight)
			if got, want := matched(t, peers, weight), heaviest(n, weight); got != want {
				t.Fatalf("%d nodes: weight %d, want %d", n, got, want)
			}
		}
	}
}
