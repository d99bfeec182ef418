package mesh

import (
	"context"
	"math"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// Constants of the greedy router, whose values the paper does not give.
const (
	greedyTrials  = 64
	greedyPenalty = 10 // factor on a full waveguide that a path wanted
)

// Greedy is the router of the paper's algorithm 3, for comparison: circuits in their order, each by a cheapest
// path; if that meets a full waveguide, those get dearer and it tries again. Weights begin at 1, as with the
// printed 0 the penalty, a factor, would do nothing. Of several cheapest paths it takes the one with the lowest
// next node. It knows nothing of states, takes wavelength 1 for any, and its verdict is Routed or NotFound.
func (m *Mesh) Greedy(ctx context.Context, requests []Request, opt Options) (*Result, error) {
	opt, err := m.check(requests, opt)
	if err != nil {
		return nil, err
	}
	r := &Result{Verdict: Routed, Circuits: make([]Circuit, len(requests))}
	weight := make([][]float64, opt.Wavelengths)
	use := make([][]int, opt.Wavelengths)
	for w := range weight {
		weight[w], use[w] = make([]float64, len(m.edges)), make([]int, len(m.edges))
		for e := range weight[w] {
			weight[w][e] = 1
		}
	}
	for i, q := range requests {
		q.Wavelength = max(q.Wavelength, 1)
		r.Circuits[i].Request = q
		weight, use := weight[q.Wavelength-1], use[q.Wavelength-1]
		for range greedyTrials {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			r.Tried.Rounds++
			c := Circuit{Request: q, Nodes: m.dijkstra(q.Src, q.Dst, weight)}
			crowded := false
			m.steps(c, func(e, _ int, _ Pairing) {
				if use[e] >= opt.Capacity {
					crowded = true
					weight[e] = min(weight[e]*greedyPenalty, 1e12)
				}
			})
			if crowded {
				continue
			}
			m.steps(c, func(e, _ int, _ Pairing) {
				use[e]++
				weight[e]++
			})
			r.Circuits[i] = c
			break
		}
		if r.Circuits[i].Nodes == nil {
			r.Verdict = NotFound
		}
	}
	r.finish(m, opt)
	return r, nil
}

// dijkstra returns the cheapest path with the lowest next node at each; nil if there is none.
func (m *Mesh) dijkstra(src, dst int, weight []float64) []int {
	_, dist := m.distances(dst, weight)
	if math.IsInf(dist[src], 1) {
		return nil
	}
	nodes := []int{src}
	for at := src; at != dst; nodes = append(nodes, at) {
		next, least := -1, math.Inf(1)
		for k := m.off[at]; k < m.off[at+1]; k++ { // sums of weights round: the least, not what is equal
			to := int(m.to[k])
			if d := dist[to] + weight[m.edge[k]]; dist[to] < dist[at] && d < least {
				next, least = to, d
			}
		}
		at = next
	}
	return nodes
}

// distances returns how far all nodes are from one, +Inf where no path leads, and those that are reached in order
// of that.
func (m *Mesh) distances(from int, weight []float64) (order []int, dist []float64) {
	dist = make([]float64, m.Nodes())
	for n := range dist {
		dist[n] = math.Inf(1)
	}
	dist[from] = 0
	done := make([]bool, m.Nodes())
	var q graph.Queue
	for q.Push(from, 0); q.Len() > 0; {
		at, _ := q.Pop()
		if done[at] {
			continue
		}
		done[at] = true
		order = append(order, at)
		for k := m.off[at]; k < m.off[at+1]; k++ {
			to := int(m.to[k])
			if d := dist[at] + weight[m.edge[k]]; d < dist[to] {
				dist[to] = d
				q.Push(to, d)
			}
		}
	}
	return order, dist
}
