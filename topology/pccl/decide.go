package pccl

import "math"

// decision is a problem in numbers: what each stage costs on each candidate, and which candidates may be wired
// before it. Candidate 0 is wired at the beginning.
type decision struct {
	cost  [][]float64 // by candidate and stage; +Inf is impossible
	enter [][]int     // by stage, rising
}

// rounding is how much of themselves two costs may differ by and still count as equal. Costs are sums, and what
// is equal may be added in different orders.
const rounding = 1e-12

// less reports whether a is smaller than b by more than rounding.
func less(a, b float64) bool { return a < b*(1-rounding) }

// segments is what is best between two changes, for all of them. A plan is nothing but a sequence of
// such: what it costs depends on the past only through what is wired, and a change may come from anything.
type segments struct {
	n      int
	stay   []float64 // by number of stages: of the first ones, on candidate 0
	value  []float64 // by first stage * n + last stage: of a segment with a change before it
	choice []int32   // which candidate that is: of equals, the lowest
}

func (d decision) segments() segments {
	n := len(d.enter)
	s := segments{n: n, stay: make([]float64, n+1), value: make([]float64, n*n), choice: make([]int32, n*n)}
	for i := range n {
		s.stay[i+1] = s.stay[i] + d.cost[0][i]
	}
	for i := range s.value {
		s.value[i] = math.Inf(1)
	}
	for i, may := range d.enter {
		value, choice := s.value[i*n:(i+1)*n], s.choice[i*n:(i+1)*n]
		for _, c := range may {
			sum := 0.0
			for j := i; j < n && !math.IsInf(sum, 1); j++ {
				sum += d.cost[c][j]
				if less(sum, value[j]) {
					value[j], choice[j] = sum, int32(c)
				}
			}
		}
	}
	return s
}

// best returns the candidate of each stage that is cheapest together at a switching time, of equals that with fewer
// changes, and what it costs: +Inf if nothing is possible. It is the paper's integer program with the range of (5)
// put right, solved exactly in n*n/2 steps, by Bellman's principle.
func (s segments) best(switchTime float64) (chosen []int, total float64) {
	cost := make([]float64, s.n+1)
	changes := make([]int, s.n+1)
	from := make([]int, s.n+1) // where the last segment begins; -1 is none
	for j := range s.n + 1 {
		cost[j], from[j] = s.stay[j], -1
		for i := range j {
			with := cost[i] + switchTime + s.value[i*s.n+j-1]
			if less(with, cost[j]) || changes[i]+1 < changes[j] && !less(cost[j], with) && !math.IsInf(with, 1) {
				cost[j], changes[j], from[j] = with, changes[i]+1, i
			}
		}
	}
	return s.trace(func(_, j int) int { return from[j] }, changes[s.n]), cost[s.n]
}

// trace returns the candidates of a plan with k changes, given where the last of k changes before stage j is; -1 is
// nowhere.
func (s segments) trace(from func(k, j int) int, k int) []int {
	chosen := make([]int, s.n)
	for j := s.n; j > 0; k-- {
		i := from(k, j)
		if i < 0 {
			break
		}
		for x := i; x < j; x++ {
			chosen[x] = int(s.choice[i*s.n+j-1])
		}
		j = i
	}
	return chosen
}

// changes is the best for each number of changes.
type changes struct {
	s     *segments
	total []float64 // by number of changes: without switching; +Inf is impossible
	from  [][]int16 // by number of changes and of stages: where the last change is
}

// exact returns what is best with each number of changes, up to the number from which on nothing gets better. A
// change to what is wired already counts too; that only makes a number no worse than a smaller one.
func (s *segments) exact() changes {
	_, least := s.best(0)
	x := changes{s: s, total: []float64{s.stay[s.n]}, from: [][]int16{nil}}
	before := s.stay
	for k := 1; k <= s.n && less(least, x.total[k-1]); k++ {
		now, from := make([]float64, s.n+1), make([]int16, s.n+1)
		for j := range now {
			now[j], from[j] = math.Inf(1), -1
			for i := k - 1; i < j; i++ {
				if with := before[i] + s.value[i*s.n+j-1]; less(with, now[j]) {
					now[j], from[j] = with, int16(i)
				}
			}
		}
		x.total, x.from = append(x.total, now[s.n]), append(x.from, from)
		before = now
	}
	return x
}

// with returns the best candidates with k changes.
func (x changes) with(k int) []int {
	return x.s.trace(func(k, j int) int {
		if k == 0 {
			return -1
		}
		return int(x.from[k][j])
	}, k)
}
