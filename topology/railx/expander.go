package railx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ocslab/ocslab/topology/hamilton"
)

const (
	powerSteps  = 80      // of the iteration for an eigenvalue, when choices are compared
	moreSteps   = 5000    // and at most when the best is told
	expandWork  = 2 << 25 // additions that the choice of rings may take, about
	expandTries = 3000    // choices that are looked at
)

// Expanding returns as many rings of a decomposition of k nodes as there are rails, chosen for the largest spectral
// gap, and that gap: 1 minus the second largest eigenvalue of the graph's adjacency over its degree, links going both
// ways. A gap near 1 is a graph without bottlenecks. If k-1 rails or more are there the rings are all of them. Beyond
// the paper.
//
// All choices are compared where there are at most 3,000 and k is small; else the best is found by exchanging one
// ring at a time, for a bounded time, and need not be the best of all. The choice is the same each time. The
// error, for fewer than 2 nodes, too many of them, or no rail, matches ErrShape.
func Expanding(k, rails int) (rings [][]int, gap float64, err error) {
	if k < 2 || rails < 1 {
		return nil, 0, fmt.Errorf("%w: an expander of %d nodes on %d rails: want 2 nodes or more, and a rail",
			ErrShape, k, rails)
	}
	all, _, err := hamilton.Cycles(k)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: an expander of %d nodes: %w", ErrShape, k, err)
	}
	e := expander{k: k, rings: all, x: make([]float64, k), y: make([]float64, k)}
	if rails >= len(all) {
		return all, e.gap(count(len(all)), powerSteps), nil
	}
	chosen := e.choose(rails)
	gap = e.gap(chosen, max(powerSteps, min(moreSteps, expandWork/(2*k*rails))))
	for _, t := range chosen {
		rings = append(rings, all[t])
	}
	return rings, gap, nil
}

type expander struct {
	k     int
	rings [][]int
	x, y  []float64
}

// choose returns the best choice of n rings that it finds.
func (e *expander) choose(n int) (best []int) {
	gap := math.Inf(-1)
	m := len(e.rings)
	tries := min(expandTries, max(2, expandWork/(powerSteps*2*e.k*n)))
	if choices(m, n, tries) <= tries {
		for c := count(n); c != nil; c = following(c, m) {
			if g := e.gap(c, powerSteps); g > gap+1e-9 {
				best, gap = slices.Clone(c), g
			}
		}
		return best
	}
	best = make([]int, n)
	for i := range best {
		best[i] = i * m / n
	}
	gap = e.gap(best, powerSteps)
	random := rand.New(rand.NewPCG(uint64(e.k), uint64(n)))
	for range tries {
		c := slices.Clone(best)
		t := random.IntN(m)
		if slices.Contains(c, t) {
			continue
		}
		c[random.IntN(n)] = t
		slices.Sort(c)
		if g := e.gap(c, powerSteps); g > gap+1e-9 {
			best, gap = c, g
		}
	}
	return best
}

// choices returns how many ways there are to choose n of m, or anything above most if there are more than that.
func choices(m, n, most int) int {
	c := 1
	for i := 1; i <= min(n, m-n); i++ {
		if c = c * (m - i + 1) / i; c > most {
			return c
		}
	}
	return c
}

// following changes c to the next choice of 0 to m-1 in order, and returns nil after the last.
func following(c []int, m int) []int {
	for i := len(c) - 1; i >= 0; i-- {
		if c[i] < m-len(c)+i {
			c[i]++
			for j := i + 1; j < len(c); j++ {
				c[j] = c[j-1] + 1
			}
			return c
		}
	}
	return nil
}

// gap returns the spectral gap of some of the rings. The all-ones vector has the largest eigenvalue, the degree; away
// from it, the power iteration on the adjacency plus the degree, which has no negative eigenvalue, finds the second
// largest.
func (e *expander) gap(chosen []int, steps int) float64 {
	degree := 2 * float64(len(chosen))
	for i := range e.x {
		e.x[i] = math.Sin(float64(i*i+3*i) + 0.5)
	}
	second := 0.0
	for range steps {
		e.center()
		for i, v := range e.x {
			e.y[i] = degree * v
		}
		for _, t := range chosen {
			ring := e.rings[t]
			before := ring[e.k-1]
			for _, v := range ring {
				e.y[v] += e.x[before]
				e.y[before] += e.x[v]
				before = v
			}
		}
		second = 0
		for i, v := range e.x {
			second += v * e.y[i]
		}
		e.x, e.y = e.y, e.x
	}
	return 1 - (second-degree)/degree
}

// center takes the mean out of x and makes its length 1.
func (e *expander) center() {
	mean, length := 0.0, 0.0
	for _, v := range e.x {
		mean += v / float64(e.k)
	}
	for i := range e.x {
		e.x[i] -= mean
		length += e.x[i] * e.x[i]
	}
	if length = math.Sqrt(length); length > 0 {
		for i := range e.x {
			e.x[i] /= length
		}
	}
}
