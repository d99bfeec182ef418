package mesh_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

func grid(t testing.TB, rows, columns int) *mesh.Mesh {
	t.Helper()
	m, err := mesh.Grid(rows, columns)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func route(t testing.TB, m *mesh.Mesh, requests []mesh.Request, opt mesh.Options) *mesh.Result {
	t.Helper()
	r, err := m.Route(context.Background(), requests, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func pairs(p ...[2]int) (requests []mesh.Request) {
	for _, q := range p {
		requests = append(requests, mesh.Request{Src: q[0], Dst: q[1]})
	}
	return requests
}

func ways(r *mesh.Result) (nodes [][]int) {
	for _, c := range r.Circuits {
		nodes = append(nodes, c.Nodes)
	}
	return nodes
}

// Ensure that small meshes are routed as worked out by hand, and that the exact search alone finds the same verdicts.
func TestRoute_Vectors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		rows, columns int
		requests      []mesh.Request
		verdict       mesh.Verdict
		want          [][]int
		cut           *mesh.Cut
	}{
		{"two of 3x3", 3, 3, pairs([2]int{0, 2}, [2]int{0, 8}), mesh.Routed, [][]int{{0, 1, 2}, {0, 3, 4, 5, 8}}, nil},
		{"a third at a corner", 3, 3, pairs([2]int{0, 2}, [2]int{0, 8}, [2]int{0, 4}), mesh.Impossible, nil,
			&mesh.Cut{Nodes: []int{0}, Crossing: []int{0, 1, 2}, Edges: 2, Room: 2}},
		{"greedy fails", 2, 3, pairs([2]int{0, 1}, [2]int{0, 2}, [2]int{1, 2}), mesh.Routed, [][]int{{0, 1}, {0, 3, 4, 5, 2}, {1, 2}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := grid(t, test.rows, test.columns)
			r := route(t, m, test.requests, mesh.Options{})
			if r.Verdict != test.verdict {
				t.Fatalf("%s, want %s: %+v", r.Verdict, test.verdict, r)
			}
			if diff := cmp.Diff(test.cut, r.Cut); diff != "" {
				t.Errorf("cut:\n%s", diff)
			}
			if test.want != nil {
				if diff := cmp.Diff(test.want, ways(r)); diff != "" {
					t.Errorf("ways:\n%s", diff)
				}
			}
		})
	}
}

// Ensure that the paper's greedy router does what was worked out for it, its failure included.
func TestGreedy_Vectors(t *testing.T) {
	t.Parallel()
	r, err := grid(t, 2, 3).Greedy(context.Background(), pairs([2]int{0, 1}, [2]int{0, 2}, [2]int{1, 2}), mesh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{0, 1}, {0, 3, 4, 1, 2}, nil}, ways(r)); diff != "" || r.Verdict != mesh.NotFound {
		t.Errorf("%s:\n%s", r.Verdict, diff)
	}
	r, err = grid(t, 3, 3).Greedy(context.Background(), pairs([2]int{0, 2}, [2]int{0, 8}), mesh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{0, 1, 2}, {0, 3, 4, 5, 8}}, ways(r)); diff != "" || r.Verdict != mesh.Routed {
		t.Errorf("%s:\n%s", r.Verdict, diff)
	}
}

// Ensure that negotiation routes at least as many of 40 draws of random pairs as an earlier one did of other
// draws, and that with exact search all are decided. The figures of greedy depend on the draws and on constants
// that the paper does not give.
func TestRoute_Random(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ side, pairs, greedy, negotiated int }{
		{4, 4, 31, 39}, {6, 6, 28, 39}, {6, 8, 10, 28}, {8, 8, 17, 40}, {8, 10, 7, 37}, {16, 16, 16, 40},
	} {
		m := grid(t, test.side, test.side)
		greedy, negotiated, routed, cut, exhausted, open := 0, 0, 0, 0, 0, 0
		for seed := range uint64(40) {
			requests, err := m.RandomPairs(test.pairs, seed+1)
			if err != nil {
				t.Fatal(err)
			}
			g, err := m.Greedy(context.Background(), requests, mesh.Options{})
			if err != nil {
				t.Fatal(err)
			}
			n := route(t, m, requests, mesh.Options{States: -1})
			r := n
			if n.Verdict != mesh.Routed {
				r = route(t, m, requests, mesh.Options{})
			}
			verify(t, m, requests, mesh.Options{}, r)
			greedy += count(g.Verdict == mesh.Routed)
			negotiated += count(n.Verdict == mesh.Routed)
			routed += count(r.Verdict == mesh.Routed)
			cut += count(r.Cut != nil)
			exhausted += count(r.Exhausted)
			open += count(r.Verdict == mesh.NotFound)
		}
		t.Logf("%dx%d, %d pairs: greedy %d (%d), negotiated %d (%d), with exact search %d, impossible %d by a cut, %d by exhaustion",
			test.side, test.side, test.pairs, greedy, test.greedy, negotiated, test.negotiated, routed, cut, exhausted)
		if negotiated < test.negotiated || greedy > negotiated || negotiated > routed || open > 0 {
			t.Errorf("%dx%d, %d pairs: want %d or more by negotiation, no fewer than greedily, and all decided",
				test.side, test.side, test.pairs, test.negotiated)
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
