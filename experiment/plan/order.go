package plan

import (
	"math/rand/v2"
	"slices"
)

// points lays out the points of conditions in the order in which they are run.
func points(conditions []Condition, repeats int, order Order, nulls int, seed uint64) []Point {
	done := make([]Point, 0, len(conditions)*repeats+nulls)
	for c := range conditions {
		for r := range repeats {
			done = append(done, Point{Condition: c + 1, Repeat: r + 1})
		}
	}
	done = append(done, nullPoints(conditions, nulls)...)
	next := 1
	for i := range done {
		p := &done[i]
		p.ID, p.First = i+1, next
		next += p.Reconfigurations(&conditions[p.Condition-1])
	}
	repeated, null := done[:len(conditions)*repeats], done[len(conditions)*repeats:]
	return withNulls(inOrder(conditions, repeated, repeats, order, stream(seed, "order")), null, len(conditions), repeats)
}

// inOrder puts the repeats of conditions, which are in fixed order, in order.
func inOrder(conditions []Condition, fixed []Point, repeats int, order Order, r *rand.Rand) []Point {
	groups := setups(conditions)
	done := make([]Point, 0, len(fixed))
	switch order {
	case Fixed:
		return slices.Clone(fixed)
	case Interleaved:
		for round := range repeats {
			shuffle(r, groups)
			for _, g := range groups {
				shuffle(r, g)
				for _, c := range g {
					done = append(done, fixed[c*repeats+round])
				}
			}
		}
	default:
		shuffle(r, groups)
		for _, g := range groups {
			from := len(done)
			for _, c := range g {
				done = append(done, fixed[c*repeats:(c+1)*repeats]...)
			}
			shuffle(r, done[from:])
		}
	}
	return done
}

func shuffle[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// setups returns the indices of conditions by their set-up, in the order in which these
// occur first.
func setups(conditions []Condition) [][]int {
	var groups [][]int
	at := map[string]int{}
	for i, c := range conditions {
		g, ok := at[c.Setup]
		if !ok {
			g = len(groups)
			at[c.Setup] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// nullPoints deals n null toggles out to conditions, as evenly as can be.
func nullPoints(conditions []Condition, n int) []Point {
	var nulls []Point
	for c := range conditions {
		from, to := c*n/len(conditions), (c+1)*n/len(conditions)
		for k := range to - from {
			nulls = append(nulls, Point{Condition: c + 1, Repeat: k + 1, Null: true})
		}
	}
	return nulls
}

// withNulls puts null toggles between the points of their conditions, which they follow, so
// that no testbed is opened for them. The toggles of one condition are spread evenly over
// its points, and those of different conditions stand at different parts of that distance,
// so that all are spread over the run where conditions take turns.
func withNulls(points, nulls []Point, conditions, repeats int) []Point {
	of := make([][]Point, conditions+1)
	with := 0 // conditions that have any
	for _, n := range nulls {
		if len(of[n.Condition]) == 0 {
			with++
		}
		of[n.Condition] = append(of[n.Condition], n)
	}
	follow := make([][][]Point, conditions+1) // by condition and how many of its points are before
	rank := 0
	for c, mine := range of {
		if len(mine) == 0 {
			continue
		}
		follow[c] = make([][]Point, repeats)
		for k, n := range mine {
			// (k + (rank+1/2)/with) / len(mine) of all, without rounding
			at := (2*with*k + 2*rank + 1) * repeats / (2 * with * len(mine))
			follow[c][at] = append(follow[c][at], n)
		}
		rank++
	}
	seen := make([]int, conditions+1)
	done := make([]Point, 0, len(points)+len(nulls))
	for _, p := range points {
		done = append(done, p)
		if follow[p.Condition] != nil {
			done = append(done, follow[p.Condition][seen[p.Condition]]...)
		}
		seen[p.Condition]++
	}
	return done
}
