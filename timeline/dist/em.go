package dist

import (
	"cmp"
	"math"
	"slices"
)

// component is a mode while it is being fitted, in nanoseconds.
type component struct{ share, mean, spread float64 }

// likelihood is what the cells say of components: how likely they are, and the sums that
// the next step of EM and the slope of the likelihood are made of.
type likelihood struct {
	log float64
	sum [MaxModes]sums
}

// sums are of the cells, each with the probability that it belongs to the component: of 1,
// of the expected distance from its mean, and of the square of that, in spreads.
type sums struct{ count, first, second float64 }

// judge is the step of expectation. belongs, if it is not nil, is called with each cell's
// probabilities of belonging to the components.
func judge(cells []cell, at []component, belongs func(i int, p []float64)) likelihood {
	var l likelihood
	var logShare, logs, mean, square [MaxModes]float64
	for k, c := range at {
		logShare[k] = math.Log(c.share)
	}
	for i, x := range cells {
		most := math.Inf(-1)
		for k, c := range at {
			logs[k], mean[k], square[k] = within((x.lo-c.mean)/c.spread, (x.hi-c.mean)/c.spread)
			logs[k] += logShare[k]
			most = max(most, logs[k])
		}
		total := 0.0
		for k := range at {
			logs[k] = math.Exp(logs[k] - most)
			total += logs[k]
		}
		l.log += most + math.Log(total)
		for k := range at {
			p := logs[k] / total
			logs[k] = p
			s := &l.sum[k]
			s.count += p
			if p > 0 { // what is infinitely far away counts as nothing
				s.first += p * mean[k]
				s.second += p * square[k]
			}
		}
		if belongs != nil {
			belongs(i, logs[:len(at)])
		}
	}
	return l
}

// limits are what components keep to. Means are not below 0.
type limits struct {
	floor float64 // least spread
	fixed int     // the component whose spread is not changed; -1 is none
}

// leastShare keeps the logarithm of a share finite.
const leastShare = 1e-9

// next is the step of maximization.
func (l *likelihood) next(at []component, n int, lim limits) []component {
	to := make([]component, len(at))
	total := 0.0
	for k, c := range at {
		s := l.sum[k]
		to[k] = component{max(s.count/float64(n), leastShare), c.mean, c.spread}
		total += to[k].share
		if s.count < 1e-6 {
			continue
		}
		to[k].mean = max(c.mean+c.spread*s.first/s.count, 0)
		shift := (to[k].mean - c.mean) / c.spread
		if k != lim.fixed {
			variance := s.second/s.count - 2*shift*s.first/s.count + shift*shift
			to[k].spread = max(c.spread*math.Sqrt(max(variance, 0)), lim.floor)
		}
	}
	for k := range to {
		to[k].share /= total
	}
	return to
}

// leap goes on from three points of EM in a row the way that they point, as SQUAREM does
// (Varadhan and Roland 2008). EM alone is slow where the intervals are wide.
func leap(a, b, c []component, lim limits) []component {
	rr, vv := 0.0, 0.0
	each := func(do func(k int, get func(component) float64)) {
		for k := range a {
			do(k, func(x component) float64 { return x.mean / c[k].spread })
			do(k, func(x component) float64 { return math.Log(x.spread) })
			do(k, func(x component) float64 { return math.Log(x.share) })
		}
	}
	each(func(k int, get func(component) float64) {
		r := get(b[k]) - get(a[k])
		v := get(c[k]) - get(b[k]) - r
		rr += r * r
		vv += v * v
	})
	if !(vv > 0) {
		return nil
	}
	step := max(math.Sqrt(rr/vv), 1)
	to := make([]component, len(a))
	total := 0.0
	for k := range a {
		on := func(get func(component) float64) float64 {
			r := get(b[k]) - get(a[k])
			v := get(c[k]) - get(b[k]) - r
			return get(a[k]) + 2*step*r + step*step*v
		}
		to[k].mean = max(on(func(x component) float64 { return x.mean }), 0)
		to[k].spread = max(math.Exp(min(on(func(x component) float64 { return math.Log(x.spread) }), 100)), lim.floor)
		if k == lim.fixed {
			to[k].spread = a[k].spread
		}
		to[k].share = max(math.Exp(min(on(func(x component) float64 { return math.Log(x.share) }), 0)), leastShare)
		total += to[k].share
	}
	for k := range to {
		to[k].share /= total
	}
	return to
}

// climb maximizes the likelihood from a start, until a round gains less than enough. step,
// if it is not nil, is told of each likelihood that is kept.
func climb(cells []cell, start []component, lim limits, enough float64, rounds int, step func(float64)) ([]component, likelihood) {
	at := start
	l := judge(cells, at, nil)
	for range rounds {
		if step != nil {
			step(l.log)
		}
		before := l.log
		b := l.next(at, len(cells), lim)
		lb := judge(cells, b, nil)
		c := lb.next(b, len(cells), lim)
		if to := leap(at, b, c, lim); to != nil {
			if lt := judge(cells, to, nil); lt.log >= lb.log {
				at, l = to, lt
			} else {
				at, l = c, judge(cells, c, nil)
			}
		} else {
			at, l = c, judge(cells, c, nil)
		}
		if l.log-before < enough {
			break
		}
	}
	return at, l
}

// starts returns where to begin to look for so many modes: the durations cut into parts of
// equal numbers, at the widest gaps, at the widest gaps that leave enough on both sides,
// and where each is nearest to the middle of its part.
func starts(cells []cell, modes int, floor float64) [][]component {
	mids := make([]float64, 0, len(cells))
	for _, c := range cells {
		if !math.IsInf(c.hi, 1) {
			mids = append(mids, c.mid())
		}
	}
	slices.Sort(mids)
	n := len(mids)
	equal := make([]int, 0, modes+1)
	for k := range modes + 1 {
		equal = append(equal, k*n/modes)
	}
	var list [][]component
	seen := map[[MaxModes + 1]int]bool{}
	add := func(cuts []int) {
		key := [MaxModes + 1]int{}
		copy(key[:], cuts)
		if len(cuts) != modes+1 || seen[key] {
			return
		}
		seen[key] = true
		list = append(list, componentsOf(mids, cuts, floor))
	}
	add(equal)
	if modes > 1 {
		add(gaps(mids, modes, 1))
		add(gaps(mids, modes, max(MinOfMode, int(minPart*float64(n)))))
		add(nearest(mids, equal))
	}
	return list
}

// componentsOf returns a component for each part of sorted values.
func componentsOf(mids []float64, cuts []int, floor float64) []component {
	list := make([]component, 0, len(cuts)-1)
	for k := range len(cuts) - 1 {
		part := mids[cuts[k]:cuts[k+1]]
		mean, square := 0.0, 0.0
		for _, x := range part {
			mean += x / float64(len(part))
		}
		for _, x := range part {
			square += (x - mean) * (x - mean) / float64(len(part))
		}
		list = append(list, component{float64(len(part)) / float64(len(mids)), max(mean, 0), max(math.Sqrt(square), floor)})
	}
	return list
}

// gaps cuts sorted values where they are farthest apart, with so many in each part. There
// may be fewer cuts than wanted.
func gaps(mids []float64, parts, least int) []int {
	byWidth := make([]int, 0, len(mids))
	for i := 1; i < len(mids); i++ {
		if mids[i] > mids[i-1] {
			byWidth = append(byWidth, i)
		}
	}
	slices.SortStableFunc(byWidth, func(i, j int) int { return -cmp.Compare(mids[i]-mids[i-1], mids[j]-mids[j-1]) })
	cuts := []int{0, len(mids)}
	for _, i := range byWidth {
		if len(cuts) == parts+1 {
			break
		}
		at, _ := slices.BinarySearch(cuts, i)
		if i-cuts[at-1] >= least && cuts[at]-i >= least {
			cuts = slices.Insert(cuts, at, i)
		}
	}
	return cuts
}

// nearest moves the cuts until each value is in the part whose mean is nearest.
func nearest(mids []float64, cuts []int) []int {
	cuts = slices.Clone(cuts)
	for range 50 {
		moved := false
		c := componentsOf(mids, cuts, 0)
		for k := 1; k < len(cuts)-1; k++ {
			i, _ := slices.BinarySearch(mids, (c[k-1].mean+c[k].mean)/2)
			if i = min(max(i, cuts[k-1]+1), cuts[k+1]-1); i != cuts[k] {
				cuts[k], moved = i, true
			}
		}
		if !moved {
			break
		}
	}
	return cuts
}
