package crosswiring

import (
	"errors"
	"fmt"
)

// ErrStages: some pods lose their last link for a while in the order that was found. Test with errors.Is.
var ErrStages = errors.New("pods lose their last link for a while")

// Stages returns the pairs of switches that differ, in rounds such that every two pods that have links before and after, in
// any groups, keep one at any time, even if all pairs of a round switch at once. Links that a pair has before and after
// are taken to stay lit meanwhile; of circuits without a partner (see Config.Check) there is no link.
//
// A round has every pair, in order, that takes no last link away. If there is none, as when two pods have their only links
// before and after on one pair, a round of the pair that darkens fewest pods follows: then all rounds are returned with an
// error that matches ErrStages and names these pods and pairs. The order is found greedily, so there may be a better one.
// It is ours. Other errors match ErrFabric for Uniform wiring, or ErrConfig for configurations of two fabrics.
func Stages(from, to *Config) ([][]Pair, error) {
	f := from.fabric
	if err := f.Check(); err != nil {
		return nil, err
	}
	if f.Wiring == Uniform {
		return nil, fmt.Errorf("%w: uniform wiring has no pairs of switches that carry a link: want cross or dual-link", ErrFabric)
	}
	if f != to.fabric {
		return nil, fmt.Errorf("%w: one configuration is of %v, the other of %v", ErrConfig, f, to.fabric)
	}
	s := newStager(from, to)
	var rounds [][]Pair
	for len(s.rest) > 0 {
		rounds = append(rounds, s.round())
	}
	if len(s.dark) > 0 {
		return rounds, fmt.Errorf("%w: %s", ErrStages, list(s.dark[:min(named, len(s.dark))], len(s.dark)))
	}
	return rounds, nil
}

// pairMove is what a pair of switches changes: links by the number of their pods, lower times all plus higher.
type pairMove struct {
	pair        Pair
	gone, comes []int32
}

// stager orders the pairs that change.
type stager struct {
	pods int
	live []int32 // by pod and pod, links that are lit
	must []bool  // by pod and pod, whether one is to stay lit
	rest []pairMove
	dark []string // what could not be kept
}

func newStager(from, to *Config) *stager {
	n := from.fabric.Pods
	s := &stager{pods: n, live: make([]int32, n*n), must: make([]bool, n*n)}
	after := make([]int32, n*n)
	old, next := make([]int32, n), make([]int32, n)
	for _, p := range from.fabric.AllPairs() {
		from.lit(p, old)
		to.lit(p, next)
		m := pairMove{pair: p}
		for u := range n {
			if old[u] != Dark {
				s.live[s.number(u, old[u])]++
			}
			if next[u] != Dark {
				after[s.number(u, next[u])]++
			}
			if old[u] == next[u] {
				continue
			}
			if old[u] != Dark {
				m.gone = append(m.gone, s.number(u, old[u]))
			}
			if next[u] != Dark {
				m.comes = append(m.comes, s.number(u, next[u]))
			}
		}
		if len(m.gone)+len(m.comes) > 0 || !samePair(from, to, p) {
			s.rest = append(s.rest, m)
		}
	}
	for i, links := range s.live {
		s.must[i] = links > 0 && after[i] > 0
	}
	return s
}

// lit writes the links of a pair as peers does, without circuits that have no way back.
func (c *Config) lit(p Pair, into []int32) {
	c.peers(p, into)
	_, odd, _ := c.both(p)
	for u, v := range into {
		if v < 0 || int(v) >= len(odd) || odd[v] != int32(u) {
			into[u] = Dark
		}
	}
}

// samePair tells whether a pair has the same circuits in two configurations.
func samePair(from, to *Config, p Pair) bool {
	for _, s := range from.fabric.Members(p) {
		at := to.at(s)
		for in, out := range from.at(s) {
			if at[in] != out {
				return false
			}
		}
	}
	return true
}

func (s *stager) number(u int, v int32) int32 {
	return min(int32(u), v)*int32(s.pods) + max(int32(u), v)
}

// round takes the pairs of the next round out of rest.
func (s *stager) round() (round []Pair) {
	var now, later []pairMove
	for _, m := range s.rest {
		if s.take(m) == 0 {
			now = append(now, m)
		} else {
			s.give(m.gone)
			later = append(later, m)
		}
	}
	if len(now) == 0 {
		now, later = s.force()
	}
	for _, m := range now {
		s.give(m.comes)
		round = append(round, m.pair)
	}
	s.rest = later
	return round
}

// take takes away what goes, and returns how many pods that darkens that should stay lit.
func (s *stager) take(m pairMove) (dark int) {
	for _, l := range m.gone {
		s.live[l]--
		if s.live[l] == 0 && s.must[l] {
			dark++
		}
	}
	return dark
}

func (s *stager) give(links []int32) {
	for _, l := range links {
		s.live[l]++
	}
}

// force takes the pair that darkens fewest pods, and notes which.
func (s *stager) force() (now, later []pairMove) {
	best, least := 0, -1
	for i, m := range s.rest {
		if dark := s.take(m); least < 0 || dark < least {
			best, least = i, dark
		}
		s.give(m.gone)
	}
	m := s.rest[best]
	s.take(m)
	for _, l := range m.gone {
		if s.live[l] == 0 && s.must[l] {
			s.dark = append(s.dark, fmt.Sprintf("pods %d and %d while %v changes", l/int32(s.pods), l%int32(s.pods), m.pair))
			s.must[l] = false // it is said once
		}
	}
	return []pairMove{m}, append(s.rest[:best:best], s.rest[best+1:]...)
}
