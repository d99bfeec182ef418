package pccl

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// drawDecision returns a problem in numbers: n rounds, s standard topologies and one of each round, with some pairs
// that have no path. A round has a path on its own topology. Costs are small whole numbers, so that there are ties.
func drawDecision(r *rand.Rand, n, s int) decision {
	d := decision{enter: make([][]int, n), cost: make([][]float64, s+n)}
	for c := range d.cost {
		d.cost[c] = make([]float64, n)
		for i := range n {
			d.cost[c][i] = float64(r.IntN(12))
			if r.IntN(5) == 0 && c != s+i {
				d.cost[c][i] = math.Inf(1)
			}
		}
	}
	for i := range n {
		for c := range s {
			d.enter[i] = append(d.enter[i], c)
		}
		d.enter[i] = append(d.enter[i], s+i)
	}
	return d
}

// price returns what a sequence of candidates costs without switching, and how often it changes.
func (d decision) price(chosen []int) (cost float64, changes int) {
	wired := 0
	for i, c := range chosen {
		if c != wired {
			changes++
		}
		wired = c
		cost += d.cost[c][i]
	}
	return cost, changes
}

// enumerate goes through all sequences of candidates that the rule allows and that cost something finite.
func (d decision) enumerate(do func(chosen []int)) {
	chosen := make([]int, len(d.enter))
	var next func(i, wired int)
	next = func(i, wired int) {
		if i == len(chosen) {
			do(chosen)
			return
		}
		for c := range d.cost {
			may := c == wired
			for _, x := range d.enter[i] {
				may = may || x == c
			}
			if may && !math.IsInf(d.cost[c][i], 1) {
				chosen[i] = c
				next(i+1, c)
			}
		}
	}
	next(0, 0)
}

// model is a linear program of which each variable is 0 or 1.
type model struct {
	names []string
	index map[string]int
	cost  []float64
	rows  []row
}

// row says that a sum of variables is at least, at most, or just the right side.
type row struct {
	terms map[int]float64
	sense string // ">=", "<=" or "="
	right float64
}

func (m *model) variable(name string) int {
	if m.index == nil {
		m.index = map[string]int{}
	}
	v, ok := m.index[name]
	if !ok {
		v = len(m.names)
		m.index[name] = v
		m.names, m.cost = append(m.names, name), append(m.cost, 0)
	}
	return v
}

func (m *model) add(sense string, right float64, terms map[string]float64) {
	r := row{terms: map[int]float64{}, sense: sense, right: right}
	for name, x := range terms {
		r.terms[m.variable(name)] += x
	}
	m.rows = append(m.rows, r)
}

// solve returns the least cost by branch and bound: variable after variable, giving a branch up as soon as a row can
// no longer hold, or what is spent is as much as a whole solution. No cost may be below 0.
func (m *model) solve() float64 {
	inRows := make([][]int, len(m.names))
	low, high := make([]float64, len(m.rows)), make([]float64, len(m.rows)) // what the sum of a row can still be
	for k, r := range m.rows {
		for v, x := range r.terms {
			inRows[v] = append(inRows[v], k)
			low[k] += min(x, 0)
			high[k] += max(x, 0)
		}
	}
	best := math.Inf(1)
	var next func(v int, spent float64)
	try := func(v int, value, spent float64) {
		possible := true
		for _, k := range inRows[v] {
			x := m.rows[k].terms[v]
			low[k] += x*value - min(x, 0)
			high[k] += x*value - max(x, 0)
			r := m.rows[k]
			possible = possible && (r.sense == ">=" || low[k] <= r.right+1e-9) && (r.sense == "<=" || high[k] >= r.right-1e-9)
		}
		if possible {
			next(v+1, spent+m.cost[v]*value)
		}
		for _, k := range inRows[v] {
			x := m.rows[k].terms[v]
			low[k] -= x*value - min(x, 0)
			high[k] -= x*value - max(x, 0)
		}
	}
	next = func(v int, spent float64) {
		switch {
		case spent >= best:
		case v == len(m.names):
			best = spent
		default:
			try(v, 0, spent)
			try(v, 1, spent)
		}
	}
	next(0, 0)
	return best
}

// literal is the paper's 0/1 model: variables t[i][j] for j up to i + |S|, (4) one topology for each round, (5) a
// topology of a round that is used later is used in all rounds between. Printed takes the range of (5) as it is
// printed, from the number of the topology on; otherwise it is from the round that the topology belongs to.
func literal(d decision, standard int, switchTime float64, printed bool) *model {
	m := &model{}
	t := func(i, k int) string { return fmt.Sprintf("t%d,%d", i, k) }
	n := len(d.enter)
	there := func(i, k int) bool { return k < standard+i+1 && !math.IsInf(d.cost[k][i], 1) }
	for i := range n {
		one := map[string]float64{}
		for k := range d.cost {
			if there(i, k) {
				m.cost[m.variable(t(i, k))] = d.cost[k][i]
				one[t(i, k)] = 1
			}
		}
		m.add("=", 1, one)
		for k := standard; k <= i+standard-1; k++ {
			from := k - standard
			if printed {
				from = k
			}
			for j := from; j < i && there(i, k); j++ {
				if there(j, k) {
					m.add("<=", 0, map[string]float64{t(i, k): 1, t(j, k): -1})
				} else {
					m.add("<=", 0, map[string]float64{t(i, k): 1})
				}
			}
		}
		for k := range d.cost { // linear: y rises with t
			if !there(i, k) || i == 0 && k == 0 {
				continue
			}
			y := fmt.Sprintf("y%d,%d", i, k)
			m.cost[m.variable(y)] = switchTime
			rise := map[string]float64{y: 1, t(i, k): -1}
			if i > 0 && there(i-1, k) {
				rise[t(i-1, k)] = 1
			}
			m.add(">=", 0, rise)
		}
	}
	return m
}

// readLP reads what WriteLP writes, and no more of the format than that.
func readLP(in io.Reader) (*model, error) {
	m := &model{}
	var (
		section string
		words   []string
		binary  []string
	)
	flush := func() error {
		defer func() { words = nil }()
		if len(words) == 0 {
			return nil
		}
		return m.read(section, words)
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "\\")
		switch head := strings.TrimSpace(text); head {
		case "Minimize", "Subject To", "Binary", "End":
			if err := flush(); err != nil {
				return nil, err
			}
			section = head
			continue
		}
		for _, w := range strings.Fields(text) {
			if section == "Binary" {
				binary = append(binary, w)
				continue
			}
			if strings.HasSuffix(w, ":") {
				if err := flush(); err != nil {
					return nil, err
				}
			}
			words = append(words, w)
		}
	}
	if section != "End" {
		return nil, fmt.Errorf("no end: %q", section)
	}
	for _, name := range binary {
		if _, ok := m.index[name]; !ok {
			return nil, fmt.Errorf("binary %s is nowhere else", name)
		}
		delete(m.index, name)
	}
	for name := range m.index {
		if !strings.HasPrefix(name, "y") {
			return nil, fmt.Errorf("%s is not binary", name)
		}
	}
	return m, lines.Err()
}

// read takes a labelled row or the objective.
func (m *model) read(section string, words []string) error {
	r := row{terms: map[int]float64{}}
	sign, factor := 1.0, 1.0
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch x, err := strconv.ParseFloat(w, 64); {
		case w == "+" || w == "-":
			if sign = 1; w == "-" {
				sign = -1
			}
		case w == ">=" || w == "<=" || w == "=":
			right, err := strconv.ParseFloat(words[i+1], 64)
			if err != nil {
				return err
			}
			r.sense, r.right = w, right
			i++
		case err == nil:
			factor = x
		default:
			r.terms[m.variable(w)] += sign * factor
			sign, factor = 1, 1
		}
	}
	if section == "Minimize" {
		for v, x := range r.terms {
			m.cost[v] += x
		}
		return nil
	}
	if r.sense == "" {
		return fmt.Errorf("%s says nothing", words[0])
	}
	m.rows = append(m.rows, r)
	return nil
}
