package timeline

import (
	"cmp"
	"math"
	"slices"
)

// Turnbull returns the nonparametric maximum likelihood estimate of the distribution of
// values of which each lies in one of xs, ends included, and nobody knows where. Of points
// it is their empirical distribution, and of points and of intervals that end at [Never]
// that of Kaplan and Meier; such an interval begins after its Earliest. An interval whose
// Earliest is after its Latest is taken the other way round.
//
// The estimate assumes that how wide an interval is does not depend on where in it the
// value lies, as with a poll that goes on whatever happens. It is not smooth: of many
// values in wide intervals, few steps remain, and a step says nothing of where in it its
// values are. The order of xs has no influence.
//
// Only the innermost intervals can hold mass (Peto 1973, Turnbull 1976): those that begin
// where one of xs begins and end where one ends, with no other end between. Their masses
// are found by steps of expectation and maximization and of iterative convex minorants in
// turn (Wellner and Zhan 1997), each in time linear in the number of intervals. They end
// when the conditions of Kuhn and Tucker hold (Gentleman and Geyer 1994), which also bound
// how much likelier any other distribution could be: by a factor of less than 1 + 1e-6, or,
// of more than 100 values, 1 + 1e-8 for each.
//
// Of more than 4096 values the intervals are first widened a little, so that they begin and
// end with one of at most 3 * 1024 cells, each of which is one instant or has less than one
// in 1024 of all their ends. That is less than what chance does to so many values, and
// every interval still holds its value.
func Turnbull(xs []Interval) Distribution {
	d := Distribution{Count: len(xs)}
	if len(xs) == 0 {
		return d
	}
	spans := make([]span, len(xs))
	for i, x := range xs {
		if x.Latest == Never && x.Earliest < Never {
			x.Earliest++
		}
		spans[i] = span{Between(x.Earliest, x.Latest), 1}
	}
	if len(spans) > exactUpTo {
		spans = coarsen(spans)
	}
	inner, seen := innermost(spans)
	mass := likeliest(len(inner), seen)
	for i, m := range mass {
		if m > 0 {
			d.Steps = append(d.Steps, Step{inner[i], m})
		}
	}
	return d
}

// span is an interval that so many values are known to lie in.
type span struct {
	Interval
	weight float64
}

// cover is how many of the values lie in one of the innermost intervals from first to last.
type cover struct {
	first, last int32
	weight      float64
}

const (
	exactUpTo = 4096 // values; more are coarsened
	parts     = 1024 // of the ends, for cells
)

// coarsen widens spans so that they begin and end with cells, and joins those that are then
// equal. A cell is one instant, or holds few of the ends; and one begins after each of the
// widest gaps between ends, so that what lies apart stays apart.
func coarsen(spans []span) []span {
	ends := make([]int64, 0, 2*len(spans))
	for _, x := range spans {
		ends = append(ends, x.Earliest, x.Latest)
	}
	slices.Sort(ends)
	gaps := make([]uint64, 0, len(ends))
	for i := 1; i < len(ends); i++ {
		if ends[i] != ends[i-1] {
			gaps = append(gaps, uint64(ends[i])-uint64(ends[i-1]))
		}
	}
	slices.Sort(gaps)
	wide := uint64(0)
	if n := len(gaps) - parts; n >= 0 {
		wide = gaps[n]
	}
	var cells []Interval
	few, held := len(ends)/parts, 0 // held is how many the last cell has
	for i := 0; i < len(ends); {
		next := i + 1
		for next < len(ends) && ends[next] == ends[i] {
			next++
		}
		if i == 0 || held+next-i > few || uint64(ends[i])-uint64(ends[i-1]) > wide {
			cells = append(cells, Point(ends[i]))
			held = 0
		}
		cells[len(cells)-1].Latest = ends[i]
		held += next - i
		i = next
	}
	cellOf := func(ns int64) uint64 {
		i, found := slices.BinarySearchFunc(cells, ns, func(c Interval, ns int64) int { return cmp.Compare(c.Earliest, ns) })
		if !found {
			i--
		}
		return uint64(i)
	}
	pairs := make([]uint64, len(spans)) // of first and last cell
	for i, x := range spans {
		pairs[i] = cellOf(x.Earliest)<<32 | cellOf(x.Latest)
	}
	slices.Sort(pairs)
	var wider []span
	for i, p := range pairs {
		if i > 0 && p == pairs[i-1] {
			wider[len(wider)-1].weight++
			continue
		}
		wider = append(wider, span{Interval{cells[p>>32].Earliest, cells[p&math.MaxUint32].Latest}, 1})
	}
	return wider
}

// innermost sorts spans, and returns the innermost intervals in order, and which of them
// each of spans covers, equal ones together.
func innermost(spans []span) (inner []Interval, seen []cover) {
	lows, highs := make([]int64, len(spans)), make([]int64, len(spans))
	for i, x := range spans {
		lows[i], highs[i] = x.Earliest, x.Latest
	}
	slices.Sort(lows)
	slices.Sort(highs)
	// A beginning followed by an end, with neither between; at one time beginnings come
	// first, since the ends belong to the intervals.
	for i, j := 0, 0; i < len(lows); {
		for i+1 < len(lows) && lows[i+1] <= highs[j] {
			i++
		}
		inner = append(inner, Interval{lows[i], highs[j]})
		i++
		for i < len(lows) && j < len(highs) && highs[j] < lows[i] {
			j++
		}
	}

	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.Earliest, b.Earliest), cmp.Compare(a.Latest, b.Latest))
	})
	first := 0 // innermost interval that does not begin before the span; only grows
	for _, x := range spans {
		for inner[first].Earliest < x.Earliest {
			first++
		}
		last, _ := slices.BinarySearchFunc(inner, x.Latest, func(in Interval, t int64) int {
			if in.Latest <= t {
				return -1
			}
			return 1
		})
		c := cover{int32(first), int32(last - 1), x.weight}
		if n := len(seen); n > 0 && seen[n-1].first == c.first && seen[n-1].last == c.last {
			seen[n-1].weight += x.weight
			continue
		}
		seen = append(seen, c)
	}
	// Spans that begin apart may cover the same.
	slices.SortFunc(seen, func(a, b cover) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last))
	})
	kept := seen[:1]
	for _, c := range seen[1:] {
		if l := &kept[len(kept)-1]; l.first == c.first && l.last == c.last {
			l.weight += c.weight
			continue
		}
		kept = append(kept, c)
	}
	return inner, kept
}

// likelihood is the search for the likeliest masses.
type likelihood struct {
	seen  []cover
	total float64 // of the weights

	mass []float64
	upTo []float64 // sum of the masses before each, and of all

	// How the logarithm of the likelihood changes with each sum, and how that does.
	slope, bend []float64
	// Scratch, so that steps allocate nothing.
	better []float64
	blocks []block
}

// block is a stretch of sums that are equal.
type block struct {
	value, weight float64
	until         int
}

const (
	mostSteps = 20_000 // of likeliest: far more than have been seen
	closeness = 1e-6   // of likeliest, in the logarithm of the likelihood, of up to 100 values
	tiny      = 1e-13  // masses below this are none
)

// likeliest returns the masses of n innermost intervals that make what was seen likeliest.
func likeliest(n int, seen []cover) []float64 {
	l := &likelihood{
		seen: seen, mass: make([]float64, n), upTo: make([]float64, n+1), better: make([]float64, n+1),
		slope: make([]float64, n+1), bend: make([]float64, n+1),
	}
	for _, c := range seen {
		l.total += c.weight
	}
	for i := range l.mass {
		l.mass[i] = 1 / float64(n)
	}
	enough := closeness * max(1, l.total/100)
	for range mostSteps {
		if l.expect() <= enough {
			break
		}
		l.minorant()
	}
	sum := 0.0
	for i, m := range l.mass {
		if m < tiny {
			l.mass[i] = 0
		}
		sum += l.mass[i]
	}
	for i := range l.mass {
		l.mass[i] /= sum
	}
	return l.mass
}

// add sums up the masses.
func (l *likelihood) add() {
	sum := 0.0
	for i, m := range l.mass {
		l.upTo[i] = sum
		sum += m
	}
	l.upTo[len(l.mass)] = sum
}

// expect is one step of expectation and maximization: each value is shared out over what
// it covers in proportion to the masses. It returns a bound of how much the logarithm of
// the likelihood could still grow, before the step.
func (l *likelihood) expect() float64 {
	l.add()
	slope := l.slope
	clear(slope)
	for _, c := range l.seen {
		share := c.weight / (l.upTo[c.last+1] - l.upTo[c.first])
		slope[c.first] += share
		slope[c.last+1] -= share
	}
	pull, most := 0.0, 0.0
	for i := range l.mass {
		pull += slope[i]
		most = max(most, pull)
		l.mass[i] *= pull / l.total
	}
	return most - l.total
}

// minorant is one step of Newton's method on each sum by itself, after which the sums are
// made to grow again where they do not. It goes as far along as makes what was seen likelier.
func (l *likelihood) minorant() {
	l.add()
	before := l.log(l.upTo)
	clear(l.slope)
	clear(l.bend)
	for _, c := range l.seen {
		share := 1 / (l.upTo[c.last+1] - l.upTo[c.first])
		first, second := c.weight*share, c.weight*share*share
		l.slope[c.first] -= first
		l.slope[c.last+1] += first
		l.bend[c.first] += second
		l.bend[c.last+1] += second
	}
	// Pool adjacent violators. The first sum is 0 and the last is 1.
	n := len(l.mass)
	l.blocks = l.blocks[:0]
	for i := 1; i < n; i++ {
		b := block{l.upTo[i] + l.slope[i]/l.bend[i], l.bend[i], i + 1}
		for k := len(l.blocks) - 1; k >= 0 && l.blocks[k].value >= b.value; k-- {
			a := l.blocks[k]
			w := a.weight + b.weight
			b.value, b.weight = (a.value*a.weight+b.value*b.weight)/w, w
			l.blocks = l.blocks[:k]
		}
		l.blocks = append(l.blocks, b)
	}
	l.better[0], l.better[n] = 0, 1
	i := 1
	for _, b := range l.blocks {
		v := min(max(b.value, 0), 1)
		for ; i < b.until; i++ {
			l.better[i] = v
		}
	}
	gain := 0.0 // per step, to first order
	for i := range l.better {
		gain += l.slope[i] * (l.better[i] - l.upTo[i])
	}
	for range 30 {
		if l.log(l.better) >= before+gain/10 && gain >= 0 {
			for i := range l.mass {
				l.mass[i] = max(l.better[i+1]-l.better[i], 0)
			}
			return
		}
		gain /= 2
		for i := range l.better {
			l.better[i] = (l.better[i] + l.upTo[i]) / 2
		}
	}
}

// log returns the logarithm of the likelihood of sums.
func (l *likelihood) log(upTo []float64) float64 {
	sum, product := 0.0, 1.0 // a logarithm of many factors takes hardly longer than of one
	for _, c := range l.seen {
		p := upTo[c.last+1] - upTo[c.first]
		if p <= 0 {
			return math.Inf(-1)
		}
		if c.weight != 1 || p < 1e-30 {
			sum += c.weight * math.Log(p)
			continue
		}
		if product *= p; product < 1e-250 {
			sum += math.Log(product)
			product = 1
		}
	}
	return sum + math.Log(product)
}
