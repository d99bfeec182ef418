package graph_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

func matrix(n int, seed uint64) [][]float64 {
	random := rand.New(rand.NewPCG(seed, 1))
	cost := make([][]float64, n)
	for r := range cost {
		cost[r] = make([]float64, n)
		for c := range cost[r] {
			cost[r][c] = random.Float64()
		}
	}
	return cost
}

// The Hungarian method beside the same problem as a flow.
func BenchmarkAssign(b *testing.B) {
	for _, n := range []int{63, 256} {
		cost := matrix(n, 1)
		b.Run(fmt.Sprintf("hungarian-%d", n), func(b *testing.B) {
			for b.Loop() {
				graph.Assign(cost)
			}
		})
		if n > 63 {
			continue
		}
		b.Run(fmt.Sprintf("flow-%d", n), func(b *testing.B) {
			for b.Loop() {
				f := graph.NewFlow(2*n + 2)
				for r := range cost {
					f.Arc(2*n, r, 1, 0)
					f.Arc(n+r, 2*n+1, 1, 0)
					for c, x := range cost[r] {
						f.Arc(r, n+c, 1, x)
					}
				}
				f.Send(2*n, 2*n+1, math.MaxInt)
			}
		})
	}
}

func BenchmarkEdgeColouring(b *testing.B) {
	for _, size := range [][2]int{{8, 7}, {128, 128}, {512, 511}, {512, 512}, {8192, 8}} {
		g := regular(size[0], size[1])
		b.Run(fmt.Sprintf("%d-nodes-%d-regular", size[0], size[1]), func(b *testing.B) {
			for b.Loop() {
				graph.EdgeColouring(g.left, g.right, g.edges)
			}
			b.ReportMetric(float64(len(g.edges)), "edges")
		})
	}
}

// 65 000 edges: what a cluster of some thousand ports comes to.
func BenchmarkLarge(b *testing.B) {
	g := regular(4096, 16)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range g.edges {
		g.edges[i][1] = random.IntN(g.right)
	}
	b.Run("euler-partition", func(b *testing.B) {
		for b.Loop() {
			graph.EulerPartition(g.left, g.right, g.edges)
		}
	})
	b.Run("hopcroft-karp", func(b *testing.B) {
		for b.Loop() {
			graph.HopcroftKarp(g.left, g.right, g.adjacent())
		}
	})
	for _, costs := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("flow-%d-costs", costs), func(b *testing.B) {
			for b.Loop() {
				n := g.left + g.right
				f := graph.NewFlow(n + 2)
				for v := range g.left {
					f.Arc(n, v, 8, 0)
					f.Arc(g.left+v, n+1, 8, 0)
				}
				for i, e := range g.edges {
					f.Arc(e[0], g.left+e[1], 1, float64(i%costs))
				}
				f.Send(n, n+1, math.MaxInt)
			}
		})
	}
}
