package graph_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// bipartite is a small multigraph.
type bipartite struct {
	left, right int
	edges       [][2]int
}

func drawBipartite(t *rapid.T, side, edges int) bipartite {
	g := bipartite{left: rapid.IntRange(0, side).Draw(t, "left"), right: rapid.IntRange(0, side).Draw(t, "right")}
	if g.left > 0 && g.right > 0 {
		g.edges = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]int {
			return [2]int{rapid.IntRange(0, g.left-1).Draw(t, "u"), rapid.IntRange(0, g.right-1).Draw(t, "v")}
		}), 0, edges).Draw(t, "edges")
	}
	return g
}

func (g bipartite) adjacent() [][]int {
	all := make([][]int, g.left)
	for _, e := range g.edges {
		all[e[0]] = append(all[e[0]], e[1])
	}
	return all
}

func (g bipartite) degrees() (left, right []int) {
	left, right = make([]int, g.left), make([]int, g.right)
	for _, e := range g.edges {
		left[e[0]]++
		right[e[1]]++
	}
	return left, right
}

func largest(all ...[]int) int {
	n := 0
	for _, s := range all {
		for _, v := range s {
			n = max(n, v)
		}
	}
	return n
}

// matchable returns the size of a largest matching, by trying everything.
func (g bipartite) matchable(from int, taken uint) int {
	if from == g.left {
		return 0
	}
	best := g.matchable(from+1, taken)
	for _, e := range g.edges {
		if e[0] == from && taken&(1<<e[1]) == 0 {
			best = max(best, 1+g.matchable(from+1, taken|1<<e[1]))
		}
	}
	return best
}

func checkColouring(t rapid.TB, g bipartite) {
	t.Helper()
	colours, n := graph.EdgeColouring(g.left, g.right, g.edges)
	left, right := g.degrees()
	if want := largest(left, right); n != want {
		t.Fatalf("colours = %d, want the largest degree, %d", n, want)
	}
	if len(colours) != len(g.edges) {
		t.Fatalf("%d colours for %d edges", len(colours), len(g.edges))
	}
	type end struct{ side, node, colour int }
	seen := map[end]int{}
	for i, e := range g.edges {
		if colours[i] < 0 || colours[i] >= n {
			t.Fatalf("edge %d has colour %d, want 0 to %d", i, colours[i], n-1)
		}
		for side, v := range e {
			at := end{side, v, colours[i]}
			if other, taken := seen[at]; taken {
				t.Fatalf("edges %d and %d have colour %d and both end at node %d of side %d", other, i, colours[i], v, side)
			}
			seen[at] = i
		}
	}
}

func TestEdgeColouring_AnyGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkColouring(t, drawBipartite(t, 9, 60)) })
}

// Many edges between nodes of very different degree.
func TestEdgeColouring_Skewed(t *testing.T) {
	g := bipartite{left: 300, right: 200}
	for i := range 20000 {
		g.edges = append(g.edges, [2]int{(i * i) % 300, (i * 7 % 1009) * (i % 31) % 200})
	}
	checkColouring(t, g)
}

// Each degree from 1 to 20 goes another way through halving and matching.
func TestEdgeColouring_Regular(t *testing.T) {
	for degree := range 21 {
		checkColouring(t, regular(7, degree))
		checkColouring(t, regular(1, degree))
	}
}

func regular(nodes, degree int) bipartite {
	g := bipartite{left: nodes, right: nodes}
	for u := range nodes {
		for k := range degree {
			g.edges = append(g.edges, [2]int{u, (u*3 + k) % nodes})
		}
	}
	return g
}

func TestEdgeColouring_SameInputSameColours(t *testing.T) {
	g := regular(40, 13)
	first, _ := graph.EdgeColouring(g.left, g.right, g.edges)
	again, _ := graph.EdgeColouring(g.left, g.right, g.edges)
	if !slices.Equal(first, again) {
		t.Error("a second call coloured otherwise")
	}
}

func TestEulerPartition_Halves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawBipartite(t, 8, 60)
		half := graph.EulerPartition(g.left, g.right, g.edges)
		if len(half) != len(g.edges) {
			t.Fatalf("%d halves for %d edges", len(half), len(g.edges))
		}
		difference := map[[2]int]int{}
		for i, e := range g.edges {
			for side, v := range e {
				if half[i] {
					difference[[2]int{side, v}]++
				} else {
					difference[[2]int{side, v}]--
				}
			}
		}
		left, right := g.degrees()
		for side, degrees := range [2][]int{left, right} {
			for v, d := range degrees {
				if got := difference[[2]int{side, v}]; got < -1 || got > 1 || (got-d)%2 != 0 {
					t.Fatalf("node %d of side %d has %d edges, and the halves differ by %d", v, side, d, got)
				}
			}
		}
	})
}

func TestHopcroftKarp_Largest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawBipartite(t, 6, 20)
		adjacent := g.adjacent()
		match := graph.HopcroftKarp(g.left, g.right, adjacent)
		size, taken := 0, map[int]bool{}
		for u, v := range match {
			if v < 0 {
				continue
			}
			if !slices.Contains(adjacent[u], v) || taken[v] {
				t.Fatalf("%v is no matching of %v", match, adjacent)
			}
			taken[v] = true
			size++
		}
		if want := g.matchable(0, 0); size != want || len(match) != g.left {
			t.Fatalf("matching %v of %v has %d edges, want %d", match, adjacent, size, want)
		}
	})
}

func TestVertexCover_Smallest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawBipartite(t, 6, 20)
		rows, columns := graph.VertexCover(g.left, g.right, g.adjacent())
		for _, e := range g.edges {
			if !slices.Contains(rows, e[0]) && !slices.Contains(columns, e[1]) {
				t.Fatalf("rows %v and columns %v do not cover edge %v", rows, columns, e)
			}
		}
		// No cover can be smaller than a matching.
		if got, want := len(rows)+len(columns), g.matchable(0, 0); got != want {
			t.Fatalf("rows %v and columns %v cover %v: %d lines, want %d", rows, columns, g.edges, got, want)
		}
		if !slices.IsSorted(rows) || !slices.IsSorted(columns) {
			t.Fatalf("rows %v or columns %v are not in order", rows, columns)
		}
	})
}

// Graphs that are too large to try everything: a matching is a flow of units.
func TestHopcroftKarp_SameAsFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawBipartite(t, 40, 120)
		f := graph.NewFlow(g.left + g.right + 2)
		source, sink := g.left+g.right, g.left+g.right+1
		for u := range g.left {
			f.Arc(source, u, 1, 0)
		}
		for v := range g.right {
			f.Arc(g.left+v, sink, 1, 0)
		}
		for _, e := range g.edges {
			f.Arc(e[0], g.left+e[1], 1, 0)
		}
		size := 0
		for _, v := range graph.HopcroftKarp(g.left, g.right, g.adjacent()) {
			if v >= 0 {
				size++
			}
		}
		rows, columns := graph.VertexCover(g.left, g.right, g.adjacent())
		if want, _ := f.Send(source, sink, math.MaxInt); size != want || len(rows)+len(columns) != want {
			t.Fatalf("a matching of %d and a cover of %d, want %d", size, len(rows)+len(columns), want)
		}
	})
}

// A path of many nodes in the worst order: what recursion and long augmenting paths make of it.
func TestHopcroftKarp_LongPath(t *testing.T) {
	const n = 20000
	adjacent := make([][]int, n)
	for u := range adjacent {
		adjacent[u] = []int{u}
		if u > 0 {
			adjacent[u] = []int{u - 1, u}
		}
	}
	for u, v := range graph.HopcroftKarp(n, n, adjacent) {
		if v < 0 {
			t.Fatalf("left node %d has no mate", u)
		}
	}
}

// cheapest tries every assignment.
func cheapest(cost [][]float64, row int, taken uint) float64 {
	if row == len(cost) {
		return 0
	}
	best := math.Inf(1)
	for c, x := range cost[row] {
		if taken&(1<<c) == 0 && !math.IsNaN(x) {
			best = min(best, x+cheapest(cost, row+1, taken|1<<c))
		}
	}
	return best
}

func TestAssign_Least(t *testing.T) {
	place := rapid.OneOf(
		rapid.Float64Range(-100, 100),
		rapid.Map(rapid.IntRange(-3, 3), func(n int) float64 { return float64(n) }),
		rapid.SampledFrom([]float64{math.Inf(1), math.NaN(), 0}),
	)
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(0, 6).Draw(t, "rows"), rapid.IntRange(0, 6).Draw(t, "columns")
		cost := make([][]float64, rows)
		for r := range cost {
			cost[r] = rapid.SliceOfN(place, columns, columns).Draw(t, "costs")
		}
		column, total, ok := graph.Assign(cost)
		want := cheapest(cost, 0, 0)
		if ok == math.IsInf(want, 1) {
			t.Fatalf("ok = %v, and the least total is %v", ok, want)
		}
		if !ok {
			return
		}
		sum, taken := 0.0, map[int]bool{}
		for r, c := range column {
			if c < 0 || c >= columns || taken[c] {
				t.Fatalf("columns = %v", column)
			}
			taken[c] = true
			sum += cost[r][c]
		}
		if len(column) != rows || sum != total || math.Abs(total-want) > 1e-9*(1+math.Abs(want)) {
			t.Fatalf("columns %v for %v and sum %v, want %v", column, total, sum, want)
		}
	})
}

// network is a small one with arcs of small capacity.
type network struct {
	nodes int
	arcs  []networkArc
}

type networkArc struct {
	from, to, capacity int
	cost               float64
}

func drawNetwork(t *rapid.T) network {
	g := network{nodes: rapid.IntRange(2, 5).Draw(t, "nodes")}
	// Arcs that lead upwards may have any cost, since a cycle needs one that leads downwards: prices of 0, 1, 2 ... that
	// are taken off keep every cycle's sum at 0 or more.
	tilt := float64(rapid.IntRange(0, 4).Draw(t, "tilt"))
	g.arcs = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) networkArc {
		a := networkArc{
			from: rapid.IntRange(0, g.nodes-1).Draw(t, "from"), to: rapid.IntRange(0, g.nodes-1).Draw(t, "to"),
			capacity: rapid.IntRange(0, 2).Draw(t, "capacity"), cost: float64(rapid.IntRange(0, 5).Draw(t, "cost")),
		}
		a.cost -= tilt * float64(a.to-a.from)
		return a
	}), 0, 6).Draw(t, "arcs")
	return g
}

// all returns by what is sent the least cost, by trying every flow.
func (g network) all(source, sink int) map[int]float64 {
	best := map[int]float64{}
	balance := make([]int, g.nodes)
	var try func(i int, cost float64)
	try = func(i int, cost float64) {
		if i < len(g.arcs) {
			a := g.arcs[i]
			for n := range a.capacity + 1 {
				balance[a.from] -= n
				balance[a.to] += n
				try(i+1, cost+float64(n)*a.cost)
				balance[a.from] += n
				balance[a.to] -= n
			}
			return
		}
		for v, b := range balance {
			if v != source && v != sink && b != 0 {
				return
			}
		}
		if c, known := best[balance[sink]]; !known || cost < c {
			best[balance[sink]] = cost
		}
	}
	try(0, 0)
	return best
}

func TestFlow_MostAndCheapest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawNetwork(t)
		f := graph.NewFlow(g.nodes)
		for i, a := range g.arcs {
			if n := f.Arc(a.from, a.to, a.capacity, a.cost); n != i {
				t.Fatalf("arc %d has number %d", i, n)
			}
		}
		source, sink := 0, g.nodes-1
		all := g.all(source, sink)
		most := 0
		for n := range all {
			most = max(most, n)
		}
		limit := rapid.IntRange(0, 4).Draw(t, "limit")
		sent, cost := f.Send(source, sink, limit)
		if want := min(limit, most); sent != want || math.Abs(cost-all[want]) > 1e-9 {
			t.Fatalf("sent %d of at most %d for %v, want %d for %v", sent, limit, cost, want, all[want])
		}
		more, extra := f.Send(source, sink, math.MaxInt)
		if sent+more != most || math.Abs(cost+extra-all[most]) > 1e-9 {
			t.Fatalf("sent %d and %d for %v, want %d for %v", sent, more, cost+extra, most, all[most])
		}
		checkFlow(t, g, f, source, sink, most, all[most])
	})
}

// checkFlow looks at the flow itself, and at the cut that proves that no more goes.
func checkFlow(t *rapid.T, g network, f *graph.Flow, source, sink, most int, cost float64) {
	balance, through, sum := make([]int, g.nodes), 0, 0.0
	cut := f.Cut(source)
	for i, a := range g.arcs {
		on := f.On(i)
		if on < 0 || on > a.capacity {
			t.Fatalf("arc %d of capacity %d carries %d", i, a.capacity, on)
		}
		balance[a.from] -= on
		balance[a.to] += on
		sum += float64(on) * a.cost
		if cut[a.from] && !cut[a.to] {
			through += a.capacity
		}
	}
	for v, b := range balance {
		want := 0
		switch v {
		case source:
			want = -most
		case sink:
			want = most
		}
		if b != want {
			t.Fatalf("node %d keeps %d, want %d", v, b, want)
		}
	}
	if math.Abs(sum-cost) > 1e-9 {
		t.Fatalf("the arcs come to %v, want %v", sum, cost)
	}
	if !cut[source] || cut[sink] || through != most {
		t.Fatalf("the cut %v lets %d through, want %d", cut, through, most)
	}
}

// Costs that are no whole numbers: what is rounded must not keep a path from being seen.
func TestFlow_SameAsAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		cost := make([][]float64, n)
		f := graph.NewFlow(2*n + 2)
		for r := range cost {
			cost[r] = rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), n, n).Draw(t, "costs")
			f.Arc(2*n, r, 1, 0)
			f.Arc(n+r, 2*n+1, 1, 0)
			for c, x := range cost[r] {
				f.Arc(r, n+c, 1, x)
			}
		}
		_, want, _ := graph.Assign(cost)
		sent, got := f.Send(2*n, 2*n+1, math.MaxInt)
		if sent != n || math.Abs(got-want) > 1e-6 {
			t.Fatalf("sent %d for %v, want %d for %v", sent, got, n, want)
		}
	})
}

// A cycle of negative cost is the caller's mistake; it must not hang.
func TestFlow_NegativeCycleEnds(t *testing.T) {
	f := graph.NewFlow(3)
	f.Arc(0, 1, 5, -1)
	f.Arc(1, 0, 5, -1)
	f.Arc(1, 2, 3, 1)
	if sent, _ := f.Send(0, 2, math.MaxInt); sent != 3 {
		t.Errorf("sent %d, want 3", sent)
	}
	if sent, cost := f.Send(1, 1, 7); sent != 0 || cost != 0 {
		t.Errorf("sent %d for %v from a node to itself, want nothing", sent, cost)
	}
}

func TestQueue_InOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q graph.Queue
		type item struct {
			key  float64
			node int
		}
		var want []item
		for range rapid.IntRange(0, 40).Draw(t, "pushes") {
			x := item{float64(rapid.IntRange(0, 5).Draw(t, "key")), rapid.IntRange(0, 5).Draw(t, "node")}
			q.Push(x.node, x.key)
			want = append(want, x)
		}
		slices.SortFunc(want, func(a, b item) int {
			if a.key != b.key {
				return int(a.key - b.key)
			}
			return a.node - b.node
		})
		for i, w := range want {
			if node, key := q.Pop(); (item{key, node}) != w || q.Len() != len(want)-1-i {
				t.Fatalf("item %d is node %d at %v and %d are left, want %v", i, node, key, q.Len(), w)
			}
		}
	})
}
