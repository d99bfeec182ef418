package timeline

import (
	"cmp"
	"math"
	"slices"
)

// Pool is durations of one kind, sorted once, so that quantiles are found fast again and
// again while whole reconfigurations count more or less often: in a bootstrap, or in
// halves. It does not change, and several goroutines may use it at once.
type Pool struct {
	// Reconfigurations are those that the pool has durations of, in order of their
	// numbers. Do not change them.
	Reconfigurations []int

	qs      []float64 // in ascending order
	sizes   []int32   // durations of each reconfiguration
	lows    ends
	highs   ends
	fromLow []shortcut // for each of qs
	fromHi  []shortcut
}

// ends are the lower or the upper ends of durations, sorted.
type ends []end

type end struct {
	ns   int64
	from int32 // reconfiguration
}

// shortcut is a place in ends that the search for a quantile may begin at. Nearly all
// resamples have their quantile behind it.
type shortcut struct {
	at    int
	below []int32 // how many ends of each reconfiguration lie before it; nil: there is no shortcut
}

// NewPool returns the pool of durations for the quantiles qs, which are in ascending
// order, each from 0 to 1.
func NewPool(durations []Duration, qs ...float64) *Pool {
	numbers := make([]int, 0, len(durations))
	for _, d := range durations {
		if n := len(numbers); n == 0 || numbers[n-1] != d.Reconfiguration {
			numbers = append(numbers, d.Reconfiguration)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	events := make([]event, len(durations))
	for i, d := range durations {
		number, _ := slices.BinarySearch(numbers, d.Reconfiguration)
		events[i] = event{number: int32(number), Interval: d.Interval}
	}
	p := newPool(events, len(numbers), slices.Clone(qs))
	p.Reconfigurations = numbers
	return p
}

// newPool pools events of reconfigurations that are numbered from 0.
func newPool(events []event, reconfigurations int, qs []float64) *Pool {
	p := &Pool{qs: qs, sizes: make([]int32, reconfigurations), lows: make(ends, len(events)), highs: make(ends, len(events))}
	for i, e := range events {
		p.sizes[e.number]++
		p.lows[i] = end{e.Earliest, e.number}
		p.highs[i] = end{e.Latest, e.number}
	}
	p.lows.sort()
	p.highs.sort()
	p.fromLow, p.fromHi = p.lows.shortcuts(p.sizes, qs), p.highs.shortcuts(p.sizes, qs)
	return p
}

// Quantile returns what [Quantile] gives for all durations, of which there must be one.
func (p *Pool) Quantile(q float64) Interval {
	at := positionOf(len(p.lows), q)
	floor, _ := at.between(p.lows[at.at].ns, p.lows[at.next].ns)
	_, ceil := at.between(p.highs[at.at].ns, p.highs[at.next].ns)
	return Interval{floor, ceil}
}

// Count is how many durations there are.
func (p *Pool) Count() int { return len(p.lows) }

// Quantiles writes to at what [Quantile] gives for each of the pool's qs when the
// durations of reconfiguration i count times[i] times. It reports false, and leaves at
// alone, when that leaves no durations. Its cost grows with the number of
// reconfigurations and the spread of resamples, and not with the number of durations.
func (p *Pool) Quantiles(times []int32, at []Interval) bool {
	n := dot(times, p.sizes)
	if n == 0 {
		return false
	}
	p.lows.quantiles(times, n, p.qs, p.fromLow, func(q int, floor, _ int64) { at[q].Earliest = floor })
	p.highs.quantiles(times, n, p.qs, p.fromHi, func(q int, _, ceil int64) { at[q].Latest = ceil })
	return true
}

// quantiles finds those of the n ends that there are when each reconfiguration counts so
// many times, each rounded down and up.
func (e ends) quantiles(times []int32, n int, qs []float64, from []shortcut, found func(q int, floor, ceil int64)) {
	i, below := 0, 0 // below is how many of the n come before e[i]
	for q := range qs {
		p := positionOf(n, qs[q])
		if s := from[q]; s.below != nil && s.at > i {
			if b := dot(times, s.below); b <= p.at {
				i, below = s.at, b
			}
		}
		for {
			upTo := below + int(times[e[i].from])
			if upTo > p.at {
				break
			}
			below = upTo
			i++
		}
		// Go on with copies: the next quantile may lie between the same two ends.
		j, upTo := i, below+int(times[e[i].from])
		for upTo <= p.next {
			j++
			upTo += int(times[e[j].from])
		}
		floor, ceil := p.between(e[i].ns, e[j].ns)
		found(q, floor, ceil)
	}
}

// shortcuts returns where searches may begin: six standard deviations of a bootstrap's
// rank before the quantile of all. None is given where it would save nothing.
func (e ends) shortcuts(sizes []int32, qs []float64) []shortcut {
	list := make([]shortcut, len(qs))
	before := 0 // where the search for the quantile before ends
	for q := range qs {
		at := positionOf(len(e), qs[q]).at
		if at-before > len(sizes)/2 {
			below := e[:at].count(len(sizes))
			variance := 0.0
			for r, b := range below {
				d := float64(b) - qs[q]*float64(sizes[r])
				variance += d * d
			}
			start := at - int(math.Ceil(6*math.Sqrt(variance))) - 1
			if start-before > len(sizes)/2 {
				list[q] = shortcut{start, e[:start].count(len(sizes))}
			}
		}
		before = at
	}
	return list
}

// count returns how many ends each reconfiguration has.
func (e ends) count(reconfigurations int) []int32 {
	n := make([]int32, reconfigurations)
	for _, x := range e {
		n[x.from]++
	}
	return n
}

func (e ends) sort() {
	slices.SortFunc(e, func(a, b end) int { return cmp.Compare(a.ns, b.ns) })
}

func dot(a, b []int32) int {
	sum := 0
	b = b[:len(a)]
	for i, x := range a {
		sum += int(x) * int(b[i])
	}
	return sum
}
