package infinitehbd_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// count returns nodes 1..n.
func count(n int) []infinitehbd.Node {
	nodes := make([]infinitehbd.Node, n)
	for i := range nodes {
		nodes[i] = infinitehbd.Node(i + 1)
	}
	return nodes
}

func TestCables(t *testing.T) {
	for _, test := range []struct {
		name string
		line infinitehbd.Line
		want []string
	}{
		{"open", infinitehbd.Line{Layout: newLayout(t, 4, 1, 2, 3), Order: []infinitehbd.Node{1, 5, 2, 6}}, []string{
			"1.R PATH1 - 5.L PATH1", "1.R PATH2 - 2.L PATH2", "1.X PATH2 - 6.X PATH1",
			"5.R PATH1 - 2.L PATH1", "5.R PATH2 - 6.L PATH2",
			"2.R PATH1 - 6.L PATH1",
		}},
		{"closed", infinitehbd.Line{Layout: newLayout(t, 4, 1, 2), Order: count(5), Closed: true}, []string{
			"1.R PATH1 - 2.L PATH1", "1.R PATH2 - 3.L PATH2",
			"2.R PATH1 - 3.L PATH1", "2.R PATH2 - 4.L PATH2",
			"3.R PATH1 - 4.L PATH1", "3.R PATH2 - 5.L PATH2",
			"4.R PATH1 - 5.L PATH1", "4.R PATH2 - 1.L PATH2",
			"5.R PATH1 - 1.L PATH1", "5.R PATH2 - 2.L PATH2",
		}},
		{"powers of two", infinitehbd.Line{Layout: newLayout(t, 4, 1, 4), Order: count(6)}, []string{
			"1.R PATH1 - 2.L PATH1", "1.R PATH2 - 5.L PATH2",
			"2.R PATH1 - 3.L PATH1", "2.R PATH2 - 6.L PATH2",
			"3.R PATH1 - 4.L PATH1", "4.R PATH1 - 5.L PATH1", "5.R PATH1 - 6.L PATH1",
		}},
		{"one node", infinitehbd.Line{Layout: newLayout(t, 4, 1, 2), Order: count(1)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			cables, err := test.line.Cables()
			if err != nil {
				t.Fatal(err)
			}
			if len(cables) != len(test.want) {
				t.Fatalf("%d cables, want %d", len(cables), len(test.want))
			}
			for i, c := range cables {
				if got := test.line.Name(c.A) + " - " + test.line.Name(c.B); got != test.want[i] {
					t.Errorf("cable %d is %s, want %s", i+1, got, test.want[i])
				}
			}
		})
	}
}

func TestLinesThatCannotBe(t *testing.T) {
	k2 := newLayout(t, 4, 1, 2)
	for _, test := range []struct {
		name string
		line infinitehbd.Line
		is   error
		says string
	}{
		{"no layout", infinitehbd.Line{Order: count(3)}, infinitehbd.ErrLayout, "0 GPUs"},
		{"empty", infinitehbd.Line{Layout: k2}, infinitehbd.ErrNode, "empty"},
		{"node 0", infinitehbd.Line{Layout: k2, Order: []infinitehbd.Node{1, 0}}, infinitehbd.ErrNode, "node 0, at place 2"},
		{"twice", infinitehbd.Line{Layout: k2, Order: []infinitehbd.Node{1, 2, 1}}, infinitehbd.ErrNode, "node 1 is at places 1 and 3"},
		{"too short to close", infinitehbd.Line{Layout: k2, Order: count(4), Closed: true}, infinitehbd.ErrLayout, "want 5 or more"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantError(t, test.line.Check(), test.is, test.says)
			_, err := test.line.Cables()
			wantError(t, err, test.is, test.says)
			_, err = test.line.Build(nil, nil)
			wantError(t, err, test.is, test.says)
			_, err = infinitehbd.NewPlan(test.line, nil)
			wantError(t, err, test.is, test.says)
			_, err = infinitehbd.SpreadIdle(test.line, 2, nil)
			wantError(t, err, test.is, test.says)
		})
	}
	if got, want := (infinitehbd.Line{Layout: k2}).Name(infinitehbd.End{Node: 3, Bundle: 7}), "3.bundle 7 LOOP"; got != want {
		t.Errorf("the name of no bundle is %q, want %q", got, want)
	}
}

// No path of a bundle has two cables, ends match, and a closed line leaves no path without.
func TestCableProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := infinitehbd.Line{Layout: drawLayout(t), Closed: rapid.Bool().Draw(t, "closed")}
		least := 1
		if l.Closed {
			least = 2*l.Layout.Hops() + 1
		}
		n := rapid.IntRange(least, 20).Draw(t, "nodes")
		l.Order = rapid.Permutation(count(n)).Draw(t, "order")
		cables, err := l.Cables()
		if err != nil {
			t.Fatal(err)
		}
		at := map[infinitehbd.Node]int{}
		for i, node := range l.Order {
			at[node] = i
		}
		used := map[infinitehbd.End]bool{}
		reach := func(e infinitehbd.End) int { return l.Layout.Bundles[e.Bundle].Reach[e.Path-infinitehbd.Path1] }
		for _, c := range cables {
			if used[c.A] || used[c.B] || c.A == c.B {
				t.Fatalf("%v: an end has two cables", c)
			}
			used[c.A], used[c.B] = true, true
			far := at[c.B.Node] - at[c.A.Node]
			if l.Closed {
				far = (far + n) % n
			}
			if reach(c.A) != far || reach(c.B) != -far {
				t.Fatalf("%v: leads over %d and %d, and its nodes are %d apart", c, reach(c.A), reach(c.B), far)
			}
		}
		if want := n * len(l.Layout.Distances()); l.Closed && len(cables) != want {
			t.Fatalf("%d cables, want %d", len(cables), want)
		}
	})
}
