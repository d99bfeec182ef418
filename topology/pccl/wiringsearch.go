package pccl

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// Bounds of the search for an assignment of circuits to switches.
const (
	wireSteps = 1 << 16
	wireRuns  = 1 << 12 // runs that are searched; of more, only what can be coloured is solved
)

// search lays runs on ports of several switches. Whether duplex circuits can be assigned so is the question whether
// the edges of a graph can be coloured with a number of colours, for which no fast method is known: so it is tried in a bounded
// number of steps, the run with fewest places left first. If that fails, and all GPUs are cabled alike, those cases are
// solved that can be, by colouring a bipartite graph.
func (p *panel) search(runs []run) error {
	if len(runs) > wireRuns {
		if p.colour(runs) {
			return nil
		}
		return fmt.Errorf("%w: its %d circuits are too many to search for an assignment to switches: want %d at most, or the "+
			"ports of each GPU on one switch", ErrSwitches, len(runs), wireRuns)
	}
	s := &wireSearch{panel: p, runs: runs, of: make([][]int, len(p.ports)), places: make([]int, len(runs)),
		at: make([][2]int, len(runs)), laid: make([]bool, len(runs))}
	for i, r := range runs {
		s.of[r.a] = append(s.of[r.a], i)
		s.of[r.b] = append(s.of[r.b], i)
	}
	for i := range runs {
		s.places[i] = len(s.options(i))
	}
	ok, over := s.solve()
	if ok {
		for i, r := range runs {
			p.lay(r, s.at[i][0], s.at[i][1])
		}
		return nil
	}
	if over && p.colour(runs) {
		return nil
	}
	return s.failed(over)
}

// failed is the error for runs that found no place.
func (s *wireSearch) failed(over bool) error {
	r := s.runs[s.stuck]
	why := "there is no way to"
	if over {
		why = fmt.Sprintf("no way was found in %d steps", wireSteps)
	}
	if most, all := s.most(); most < all {
		why = fmt.Sprintf("there is no way to, as the switches, each by itself, can join %d pairs of ports, and it takes %d", most, all)
	}
	hint := ""
	if r.duplex {
		hint = "let the two directions of a circuit be on different ports, or "
	}
	return fmt.Errorf("%w: %s; GPUs %d and %d are left without free ports on a common switch: %swant other cables, or the ports of "+
		"each GPU on one switch", ErrSwitches, why, r.a, r.b, hint)
}

// most returns how many duplex runs the switches have ports for, at most, counting only the GPUs that have runs: an odd port
// of a switch is of no use. It is no bound, and says so by returning more than all, if some runs are not duplex.
func (s *wireSearch) most() (most, all int) {
	if len(s.runs) == 0 || slices.ContainsFunc(s.runs, func(r run) bool { return !r.duplex }) {
		return 1, 0
	}
	ports := map[[2]string]int{} // by the switches that a port sends into and receives from
	for g, runs := range s.of {
		if len(runs) == 0 {
			continue
		}
		for _, n := range s.panel.options.NICs[g][:s.ports[g]] {
			ports[[2]string{n.Tx.Switch, n.Rx.Switch}]++
		}
	}
	for at, n := range ports {
		if at[0] == at[1] {
			most += n / 2
		} else if at[0] < at[1] {
			most += min(n, ports[[2]string{at[1], at[0]}])
		}
	}
	return most, len(s.runs)
}

// wireSearch is a search in depth.
type wireSearch struct {
	*panel
	runs   []run
	of     [][]int // by GPU: its runs
	places []int   // by run: places that are left
	at     [][2]int
	laid   []bool
	stuck  int // a run that had no place, farthest on
	far    int
}

// solve lays all runs. Over says that it gave up.
func (s *wireSearch) solve() (ok, over bool) {
	type level struct {
		run  int
		rest [][2]int
	}
	next := func() level {
		best := -1
		for i, n := range s.places {
			if !s.laid[i] && (best < 0 || n < s.places[best]) {
				best = i
			}
		}
		return level{best, s.options(best)}
	}
	if len(s.runs) == 0 {
		return true, false
	}
	stack := []level{next()}
	s.stuck = stack[0].run
	for steps := 0; len(stack) > 0; steps++ {
		if steps == wireSteps {
			return false, true
		}
		top := &stack[len(stack)-1]
		if s.laid[top.run] {
			s.put(top.run, false)
		}
		if len(top.rest) == 0 {
			if len(stack) > s.far {
				s.far, s.stuck = len(stack), top.run
			}
			stack = stack[:len(stack)-1]
			continue
		}
		s.at[top.run] = top.rest[0]
		top.rest = top.rest[1:]
		s.put(top.run, true)
		if len(stack) == len(s.runs) {
			return true, false
		}
		stack = append(stack, next())
	}
	return false, false
}

// put lays a run, or takes it away, and counts again what that leaves its neighbours.
func (s *wireSearch) put(i int, laid bool) {
	r := s.runs[i]
	s.mark(r, s.at[i][0], s.at[i][1], laid)
	s.laid[i] = laid
	for _, g := range []int{r.a, r.b} {
		for _, k := range s.of[g] {
			if !s.laid[k] {
				s.places[k] = len(s.options(k))
			}
		}
	}
}

// options returns where a run can be laid: where it stands first. Of ports of a GPU that are alike only the lowest is tried.
func (s *wireSearch) options(i int) [][2]int {
	r := s.runs[i]
	var all [][2]int
	if at, to, ok := s.standing(r); ok {
		all = append(all, [2]int{at, to})
	}
	from, to := s.distinct(r, r.a, true), s.distinct(r, r.b, false)
	for _, a := range from {
		for _, b := range to {
			c := Circuit{r.a, a, r.b, b}
			if s.free(r, a, b) && s.joined(c) && (!r.duplex || s.joined(c.back())) && !slices.Contains(all, [2]int{a, b}) {
				all = append(all, [2]int{a, b})
			}
		}
	}
	return all
}

// distinct returns the ports of a GPU that are free for one end of a run, one of each kind. Ports are of one kind
// if they are on the same switches and the same of their directions are free.
func (s *wireSearch) distinct(r run, gpu int, sends bool) []int {
	type kind struct {
		tx, rx string
		other  bool
	}
	var ports []int
	seen := map[kind]bool{}
	for port := range s.ports[gpu] {
		tx, rx := s.tx[gpu][port], s.rx[gpu][port]
		used, other := tx, rx
		if !sends {
			used, other = rx, tx
		}
		nic := s.panel.options.NICs[gpu][port]
		k := kind{nic.Tx.Switch, nic.Rx.Switch, other}
		if used || r.duplex && other || seen[k] {
			continue
		}
		seen[k] = true
		ports = append(ports, port)
	}
	return ports
}

// colour lays runs where port c of each GPU is on the same switch for each c, and the runs are the edges of a bipartite graph:
// from senders to receivers if none is duplex, or between two halves of the GPUs. It gives up what stands.
func (p *panel) colour(runs []run) bool {
	ports := slices.Min(p.ports)
	for c := range ports {
		first := p.options.NICs[0][c]
		for _, nics := range p.options.NICs[:len(p.ports)] {
			if nics[c].Tx.Switch != first.Tx.Switch || nics[c].Rx.Switch != first.Tx.Switch {
				return false
			}
		}
	}
	left := p.halves(runs)
	if left == nil {
		return false
	}
	edges := make([][2]int, len(runs))
	for i, r := range runs {
		edges[i] = [2]int{r.a, r.b}
		if r.duplex && !left[r.a] {
			edges[i] = [2]int{r.b, r.a}
		}
	}
	colours, n := graph.EdgeColouring(len(p.ports), len(p.ports), edges)
	if n > ports {
		return false
	}
	for g := range p.ports {
		clear(p.tx[g])
		clear(p.rx[g])
	}
	for i, r := range runs {
		p.lay(r, colours[i], colours[i])
	}
	return true
}

// halves divides the GPUs in two so that each duplex run joins one half to the other; nil if that cannot be, or if there are
// runs of both kinds.
func (p *panel) halves(runs []run) []bool {
	left := make([]bool, len(p.ports))
	next := make([][]int, len(p.ports))
	duplex := 0
	for _, r := range runs {
		if r.duplex {
			duplex++
			next[r.a], next[r.b] = append(next[r.a], r.b), append(next[r.b], r.a)
		}
	}
	if duplex != 0 && duplex != len(runs) {
		return nil
	}
	seen := make([]bool, len(p.ports))
	for g := range next {
		if seen[g] {
			continue
		}
		seen[g], left[g] = true, true
		for todo := []int{g}; len(todo) > 0; todo = todo[1:] {
			x := todo[0]
			for _, y := range next[x] {
				if seen[y] && left[y] == left[x] {
					return nil
				}
				if !seen[y] {
					seen[y], left[y] = true, !left[x]
					todo = append(todo, y)
				}
			}
		}
	}
	return left
}
