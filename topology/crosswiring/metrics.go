package crosswiring

import (
	"fmt"
	"math"
	"time"
)

// LTRR returns how much of a demand is realised, as the cosine of the angle between the links there are and the links
// there shall be, by group and pods (equation 15): 1 if they are the same, and also if they are in proportion, which is why
// Realised stands beside it. A demand for no links is realised. The error matches ErrDemand if the two differ in shape.
func LTRR(realised, demand *Demand) (float64, error) {
	if err := sameShape(realised, demand); err != nil {
		return 0, err
	}
	var dot, a, b float64
	for k, x := range realised.links {
		y := float64(demand.links[k])
		dot += float64(x) * y
		a += float64(x) * float64(x)
		b += y * y
	}
	switch {
	case b == 0:
		return 1, nil
	case a == 0:
		return 0, nil
	}
	return min(dot/math.Sqrt(a*b), 1), nil
}

// Realised returns which part of the links of a demand there is, from 0 to 1 (ours): the sum of the lesser of what there
// is and what there shall be, by the sum of the latter. The error matches ErrDemand if the two differ in shape.
func Realised(realised, demand *Demand) (float64, error) {
	if err := sameShape(realised, demand); err != nil {
		return 0, err
	}
	var have, want float64
	for k, x := range realised.links {
		have += float64(max(min(x, demand.links[k]), 0))
		want += float64(max(demand.links[k], 0))
	}
	if want == 0 {
		return 1, nil
	}
	return have / want, nil
}

func sameShape(a, b *Demand) error {
	if a.pods != b.pods || a.groups != b.groups {
		return fmt.Errorf("%w: one is for %d pods and %d groups, the other for %d and %d",
			ErrDemand, a.pods, a.groups, b.pods, b.groups)
	}
	return nil
}

// Kept returns which part of the circuits of a configuration another one still has, from 0 to 1; 1 if it has none. The
// error matches ErrConfig if they are of two fabrics.
func Kept(from, to *Config) (float64, error) {
	common, a, _, err := overlap(from, to)
	if err != nil || a == 0 {
		return 1, err
	}
	return float64(common) / float64(a), nil
}

// Similarity returns the cosine between the circuits of two configurations, from 0 to 1: with all ports in use it is what
// Kept is. Two dark ones are the same. The error matches ErrConfig if they are of two fabrics.
func Similarity(from, to *Config) (float64, error) {
	common, a, b, err := overlap(from, to)
	switch {
	case err != nil:
		return 0, err
	case a == 0 && b == 0:
		return 1, nil
	case a == 0 || b == 0:
		return 0, nil
	}
	return float64(common) / math.Sqrt(float64(a)*float64(b)), nil
}

// overlap counts the circuits that both have, and those of each.
func overlap(from, to *Config) (common, a, b int, err error) {
	if from.fabric != to.fabric {
		return 0, 0, 0, fmt.Errorf("%w: one configuration is of %v, the other of %v", ErrConfig, from.fabric, to.fabric)
	}
	for i, out := range from.out {
		if out != Dark {
			a++
			if out == to.out[i] {
				common++
			}
		}
		if to.out[i] != Dark {
			b++
		}
	}
	return common, a, b, nil
}

// MRAR returns how little a strategy rewires over consecutive topologies beside a reference (equation 16): the sum of
// Similarity from each configuration to the next, by that of the reference. The reference is the exact optimum, or the
// best that is known where that is out of reach, which is to be said. The error matches ErrConfig if there are fewer than
// two configurations, not as many of both, of several fabrics, or if the reference keeps nothing.
func MRAR(strategy, reference []*Config) (float64, error) {
	if len(strategy) < 2 || len(strategy) != len(reference) {
		return 0, fmt.Errorf("%w: %d configurations beside %d: want as many, and at least two",
			ErrConfig, len(strategy), len(reference))
	}
	var sum [2]float64
	for i, all := range [2][]*Config{strategy, reference} {
		for l := 1; l < len(all); l++ {
			s, err := Similarity(all[l-1], all[l])
			if err != nil {
				return 0, err
			}
			sum[i] += s
		}
	}
	if sum[1] == 0 {
		return 0, fmt.Errorf("%w: the reference keeps no circuit", ErrConfig)
	}
	return sum[0] / sum[1], nil
}

// KingmanWait returns about how long a change waits for its turn when changes come at an interval on average and a plan
// takes a service time (Kingman's formula for one server): rho/(1-rho)·(ca²+cs²)/2·service, where rho is service by
// interval and ca² and cs² are squared coefficients of variation, 1 for exponential and 0 for constant times. stable is
// false when the queue grows without end, rho being 1 or more, or the arguments are no times and variations; the wait
// means nothing then.
func KingmanWait(interval, service time.Duration, ca2, cs2 float64) (wait time.Duration, stable bool) {
	if interval <= 0 || service < 0 || service >= interval || !(ca2 >= 0 && cs2 >= 0) {
		return 0, false
	}
	rho := float64(service) / float64(interval)
	w := rho / (1 - rho) * (ca2 + cs2) / 2 * float64(service)
	if w >= math.MaxInt64 {
		return 0, false
	}
	return time.Duration(w), true
}
