package infinitehbd_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

func TestTree_CrossToR(t *testing.T) {
	tree := infinitehbd.Tree{Nodes: 16, PerToR: 4, PerDomain: 16}
	line := lineOf(t, nodesOf(t, 4, 2), 16, 4)
	for _, test := range []struct {
		name string
		m    int
		dead []node
		want infinitehbd.CrossToR
	}{
		// ToRs 0,1 and 2,3 four times each.
		{"aligned", 2, nil, infinitehbd.CrossToR{Sets: [][]int{{0, 2, 4, 6}, {1, 3, 5, 7}}, Complete: 2, Pairs: 12}},
		// ToRs 0,1 2,3 0,2 3,0 1,2 3,0 1,2: all cross but the last pair of groups.
		{"one dead", 2, []node{6}, infinitehbd.CrossToR{Sets: [][]int{{0, 1, 2, 3}, {5, 4, 6}}, Pairs: 10, Crossing: 8, Share: .08}},
		{"one group", 16, nil, infinitehbd.CrossToR{Sets: [][]int{{0}}}},
		{"none", 17, nil, infinitehbd.CrossToR{}},
	} {
		groups, err := line.Place(test.m, test.dead)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tree.CrossToR(groups, .1)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if math.Abs(got.Share-test.want.Share) < 1e-12 {
			got.Share = test.want.Share
		}
		if d := cmp.Diff(test.want, *got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, d)
		}
	}
}

func TestTree_Choose(t *testing.T) {
	tree := infinitehbd.Tree{Nodes: 8, PerToR: 2, PerDomain: 8}
	groups := []group{{1, 6}, {3, 7}, {4, 8}, {5, 2}} // the second and the third are a set
	for n, want := range []string{"", "[3,7]", "[3,7][4,8]", "[1,6][3,7][4,8]", "[1,6][3,7][4,8][5,2]"} {
		chosen, err := tree.Choose(groups, n)
		if err != nil {
			t.Fatal(err)
		}
		if got := written(chosen); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for _, n := range []int{-1, 5} {
		_, err := tree.Choose(groups, n)
		wantError(t, err, infinitehbd.ErrRoom, "there are 4")
	}
	_, err := tree.Choose([]group{{1}, {1}}, 1)
	wantError(t, err, infinitehbd.ErrGroup, "node 1")
}

func TestTree_CrossToR_Impossible(t *testing.T) {
	tree := infinitehbd.Tree{Nodes: 8, PerToR: 2, PerDomain: 8}
	for _, test := range []struct {
		tree   infinitehbd.Tree
		groups []group
		phi    float64
		is     error
		says   string
	}{
		{tree, nil, math.NaN(), infinitehbd.ErrShare, "NaN"},
		{tree, nil, -.1, infinitehbd.ErrShare, "-0.1"},
		{tree, nil, 1.1, infinitehbd.ErrShare, "1.1"},
		{tree, nil, math.Inf(1), infinitehbd.ErrShare, "+Inf"},
		{tree, []group{{1, 2}, {3}}, 1, infinitehbd.ErrGroup, "group 2 has 1 node "},
		{tree, []group{{}}, 1, infinitehbd.ErrGroup, "group 1 has 0 nodes"},
		{tree, []group{{1, 2}, {3, 2}}, 1, infinitehbd.ErrGroup, "node 2 is in group 1 and in group 2"},
		{tree, []group{{1, 9}}, 1, infinitehbd.ErrNode, "node 9 of group 1"},
		{tree, []group{{0, 1}}, 1, infinitehbd.ErrNode, "node 0 of group 1"},
		{infinitehbd.Tree{}, nil, 1, infinitehbd.ErrLayout, "0 nodes"},
	} {
		_, err := test.tree.CrossToR(test.groups, test.phi)
		wantError(t, err, test.is, test.says)
	}
}

// Each group is in one set, each set but the last has one group for each node of a ToR, and complete sets visit the
// same ToRs.
func TestTree_CrossToR_Sets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t)
		nodes := rapid.Permutation(count(tree.Nodes)).Draw(t, "nodes")
		m := rapid.IntRange(1, 4).Draw(t, "m")
		var groups []group
		for ; len(nodes) >= m; nodes = nodes[m:] {
			groups = append(groups, nodes[:m])
		}
		c, err := tree.CrossToR(groups, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := map[int]bool{}
		for i, set := range c.Sets {
			if len(set) != tree.PerToR && i < len(c.Sets)-1 {
				t.Fatalf("set %d of %d has %d groups", i, len(c.Sets), len(set))
			}
			for _, g := range set {
				in[g] = true
				for rank, n := range groups[g] {
					if i < c.Complete && tree.ToR(n) != tree.ToR(groups[set[0]][rank]) {
						t.Fatalf("groups %v and %v are in a complete set", groups[set[0]], groups[g])
					}
				}
			}
		}
		if len(in) != len(groups) || c.Crossing > c.Pairs || c.Share < 0 || c.Share > 1 {
			t.Fatalf("%+v of %d groups", c, len(groups))
		}
	})
}
