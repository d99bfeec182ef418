package infinitehbd_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// nodesOf returns the layout of nodes that reach so many others.
func nodesOf(t testing.TB, gpus, k int) infinitehbd.Layout {
	t.Helper()
	l, err := infinitehbd.NewLayout(gpus, k)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lineOf returns the line of Deploy.
func lineOf(t testing.TB, l infinitehbd.Layout, nodes, perToR int) infinitehbd.Line {
	t.Helper()
	order, err := infinitehbd.Deploy(nodes, perToR)
	if err != nil {
		t.Fatal(err)
	}
	return infinitehbd.Line{Layout: l, Order: order}
}

// written returns groups as "[1,5][9,13]".
func written(groups []group) string {
	var b strings.Builder
	for _, g := range groups {
		b.WriteString(strings.ReplaceAll(fmt.Sprint(g), " ", ","))
	}
	return b.String()
}

func TestDeploy(t *testing.T) {
	order, err := infinitehbd.Deploy(16, 4)
	if err != nil {
		t.Fatal(err)
	}
	want := []node{1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 4, 8, 12, 16}
	if d := cmp.Diff(want, order); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The paper's check: the first node of sub-line n follows node D + n - p - 1, the last of the one before.
func TestDeploy_SubLines(t *testing.T) {
	for _, test := range [][2]int{{16, 4}, {16, 2}, {1024, 2}, {96, 8}} {
		nodes, perToR := test[0], test[1]
		order := lineOf(t, nodesOf(t, 4, 2), nodes, perToR).Order
		for n := 2; n <= perToR; n++ {
			at := slices.Index(order, node(n))
			if got, want := order[at-1], node(nodes+n-perToR-1); got != want {
				t.Errorf("%d nodes, %d a ToR: node %d follows node %d, want %d", nodes, perToR, n, got, want)
			}
		}
	}
}

func TestDeploy_Permutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perToR := rapid.IntRange(1, 8).Draw(t, "per ToR")
		tors := rapid.IntRange(1, 20).Draw(t, "ToRs")
		order, err := infinitehbd.Deploy(perToR*tors, perToR)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(order); i += tors {
			seen := map[int]bool{}
			for _, n := range order[i : i+tors] {
				seen[(int(n)-1)/perToR] = true
			}
			if len(seen) != tors {
				t.Fatalf("sub-line %v does not visit every ToR once", order[i:i+tors])
			}
		}
		slices.Sort(order)
		if d := cmp.Diff(count(perToR*tors), order); d != "" {
			t.Fatal(d)
		}
	})
}

func TestDeploy_Impossible(t *testing.T) {
	for _, test := range []struct {
		nodes, perToR int
		says          string
	}{
		{0, 4, "0 nodes"}, {-3, 1, "-3 nodes"}, {16, 0, "ToRs of 0"}, {16, -4, "ToRs of -4"}, {17, 4, "17 nodes in ToRs of 4"},
		{4, 16, "ToRs of 16"},
	} {
		_, err := infinitehbd.Deploy(test.nodes, test.perToR)
		if !errors.Is(err, infinitehbd.ErrLayout) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%d, %d: %v: want ErrLayout saying %q", test.nodes, test.perToR, err, test.says)
		}
	}
}

func TestLine_Place(t *testing.T) {
	deploy := lineOf(t, nodesOf(t, 4, 2), 16, 4)
	k3 := lineOf(t, nodesOf(t, 4, 3), 16, 4)
	six := infinitehbd.Line{Layout: nodesOf(t, 4, 2), Order: count(6)}
	seven := infinitehbd.Line{Layout: nodesOf(t, 4, 3), Order: count(7)}
	closed := func(l infinitehbd.Line) infinitehbd.Line {
		l.Closed = true
		return l
	}
	powers := newLayout(t, 8, 1, 2, 4)
	nodes := func(n ...node) []node { return n }
	for _, test := range []struct {
		name string
		line infinitehbd.Line
		m    int
		dead []node
		want string
	}{
		{"none dead", deploy, 2, nil, "[1,5][9,13][2,6][10,14][3,7][11,15][4,8][12,16]"},
		{"one dead", deploy, 2, nodes(6), "[1,5][9,13][2,10][14,3][7,11][15,4][8,12]"},
		{"a break", deploy, 2, nodes(6, 10), "[1,5][9,13][14,3][7,11][15,4][8,12]"},
		{"no break for K=3", k3, 2, nodes(10, 6), "[1,5][9,13][2,14][3,7][11,15][4,8][12,16]"},
		{"four in a row", deploy, 4, nil, "[1,5,9,13][2,6,10,14][3,7,11,15][4,8,12,16]"},
		{"six in a line", six, 2, nodes(2), "[1,3][4,5]"},
		{"all dead", six, 2, count(6), ""},
		{"one each", six, 1, nodes(3, 4), "[1][2][5][6]"},
		{"larger than the line", six, 7, nil, ""},
		{"an end where both paths of a bundle are needed", seven, 3, nodes(2, 3, 5, 6), ""},
		{"which may be the end", seven, 2, nodes(2, 3, 5, 6), "[1,4]"},
		{"or the front", infinitehbd.Line{Layout: seven.Layout, Order: count(8)}, 3, nodes(2, 3, 5, 6), "[4,7,8]"},
		{"not round an open line", six, 3, nodes(3, 4), ""},
		{"round a closed one", closed(six), 4, nodes(3, 4), "[5,6,1,2]"},
		{"round without a break", closed(six), 5, nodes(3), "[1,2,4,5,6]"},
		{"round with an end in between", closed(infinitehbd.Line{Layout: seven.Layout, Order: count(8)}), 4,
			nodes(3, 4, 6, 7), "[5,8,1,2]"},
		{"powers of two over two", infinitehbd.Line{Layout: powers, Order: count(6)}, 2, nodes(2, 6), "[1,3][4,5]"},
		{"powers of two not over three", infinitehbd.Line{Layout: powers, Order: count(6)}, 2, nodes(2, 3), "[4,5]"},
	} {
		groups, err := test.line.Place(test.m, test.dead)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := written(groups); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if _, err := test.line.Build(groups, test.dead); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestLine_Place_Impossible(t *testing.T) {
	six := infinitehbd.Line{Layout: nodesOf(t, 4, 2), Order: count(6)}
	twice := infinitehbd.Line{Layout: six.Layout, Order: append(count(6), 3)}
	for _, test := range []struct {
		line infinitehbd.Line
		m    int
		dead []node
		is   error
		says string
	}{
		{six, 0, nil, infinitehbd.ErrGroup, "0 nodes"},
		{six, -2, nil, infinitehbd.ErrGroup, "-2 nodes"},
		{six, 2, []node{7}, infinitehbd.ErrNode, "node 7"},
		{six, 2, []node{-1}, infinitehbd.ErrNode, "node -1"},
		{six, 2, []node{5, 5}, infinitehbd.ErrNode, "node 5 is twice"},
		{twice, 2, nil, infinitehbd.ErrNode, "node 3"},
		{infinitehbd.Line{Layout: six.Layout}, 2, nil, infinitehbd.ErrNode, "empty"},
		{infinitehbd.Line{Order: count(6)}, 2, nil, infinitehbd.ErrLayout, "0 GPUs"},
	} {
		_, err := test.line.Place(test.m, test.dead)
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("m=%d dead %v: %v: want %v saying %q", test.m, test.dead, err, test.is, test.says)
		}
	}
}

// packer finds the most groups by trying all of them, also those that leave out living nodes or reach over each other.
type packer struct {
	line infinitehbd.Line
	m    int
	all  []uint // the nodes of every group that can be, by place
	best map[uint]int
}

func newPacker(l infinitehbd.Line, m int) *packer {
	p := &packer{line: l, m: m, best: map[uint]int{}}
	for first := range l.Order {
		p.grow([]int{first}, 1<<first)
	}
	return p
}

// grow lists the groups that begin with some places, checked by the plan that they make.
func (p *packer) grow(places []int, taken uint) {
	g := make(group, len(places))
	for i, at := range places {
		g[i] = p.line.Order[at]
	}
	if _, err := p.line.Build([]group{g}, nil); err != nil {
		return
	}
	if len(places) == p.m {
		p.all = append(p.all, taken)
		return
	}
	last := places[len(places)-1]
	for d := 1; d <= p.line.Layout.Hops(); d++ {
		at := last + d
		if p.line.Closed {
			at %= len(p.line.Order)
		}
		if at < len(p.line.Order) && taken&(1<<at) == 0 {
			p.grow(append(places[:len(places):len(places)], at), taken|1<<at)
		}
	}
}

// most returns how many groups fit on free places.
func (p *packer) most(free uint) int {
	if free == 0 {
		return 0
	}
	if n, ok := p.best[free]; ok {
		return n
	}
	low := free & -free
	n := p.most(free &^ low)
	for _, g := range p.all {
		if g&low != 0 && g&^free == 0 {
			n = max(n, 1+p.most(free&^g))
		}
	}
	p.best[free] = n
	return n
}

// drawRuns draws dead nodes in runs that K hops lead over just so, or just not.
func drawRuns(t *rapid.T, nodes []node, k int) []node {
	var dead []node
	for len(nodes) > 0 {
		n := min(rapid.SampledFrom([]int{0, 0, k - 1, k - 1, k}).Draw(t, "run"), len(nodes))
		dead = append(dead, nodes[:n]...)
		nodes = nodes[min(n+1, len(nodes)):]
	}
	return dead
}

func TestLine_Place_Most(t *testing.T) {
	packers := map[string]*packer{}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 4).Draw(t, "K")
		closed := rapid.Bool().Draw(t, "closed")
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		if closed {
			n = rapid.IntRange(2*k+1, 12).Draw(t, "nodes of the ring")
		}
		m := rapid.IntRange(1, 5).Draw(t, "m")
		line := infinitehbd.Line{Order: count(n), Closed: closed}
		var err error
		if line.Layout, err = infinitehbd.NewLayout(4+4*(k/4), k); err != nil {
			t.Fatal(err)
		}
		dead := drawRuns(t, line.Order, k)
		groups, err := line.Place(m, dead)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := line.Build(groups, dead); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint(k, closed, n, m)
		if packers[id] == nil {
			packers[id] = newPacker(line, m)
		}
		free := uint(1)<<n - 1
		for _, d := range dead {
			free &^= 1 << (d - 1)
		}
		if want := packers[id].most(free); len(groups) != want {
			t.Fatalf("%d groups %v, want %d", len(groups), groups, want)
		}
	})
}

// More dead nodes never make room, longer reach never takes it, and the order of the dead does not matter.
func TestLine_Place_Monotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := infinitehbd.Line{Order: count(rapid.IntRange(1, 60).Draw(t, "nodes"))}
		m := rapid.IntRange(1, 5).Draw(t, "m")
		dead := rapid.Permutation(drawFaults(t, line.Order)).Draw(t, "dead")
		fewer := dead[:rapid.IntRange(0, len(dead)).Draw(t, "fewer")]
		before := -1
		for k := 2; k <= 5; k++ {
			var err error
			if line.Layout, err = infinitehbd.NewLayout(8, k); err != nil {
				t.Fatal(err)
			}
			groups, err := line.Place(m, dead)
			if err != nil {
				t.Fatal(err)
			}
			more, err := line.Place(m, fewer)
			if err != nil {
				t.Fatal(err)
			}
			if len(more) < len(groups) || len(groups) < before {
				t.Fatalf("K=%d: %d groups, %d with fewer dead, %d with a hop less", k, len(groups), len(more), before)
			}
			before = len(groups)
			slices.Sort(dead)
			again, err := line.Place(m, dead)
			if d := cmp.Diff(groups, again); d != "" || err != nil {
				t.Fatal(d, err)
			}
		}
	})
}

// drawn returns a part of the nodes, dead.
func drawn(nodes int, part float64, seed, draw uint64) []node {
	order := rand.New(rand.NewPCG(seed, draw)).Perm(nodes)
	var dead []node
	for _, at := range order[:int(part*float64(nodes)+.5)] {
		dead = append(dead, node(at+1))
	}
	return dead
}
