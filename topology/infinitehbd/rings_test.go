package infinitehbd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

type (
	group = infinitehbd.Group
	node  = infinitehbd.Node
	state = infinitehbd.State
)

// sixteen is the line of 16 nodes in ToRs of 4.
var sixteen = []node{1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 4, 8, 12, 16}

func mustBuild(t testing.TB, l infinitehbd.Line, groups []group, dead ...node) *infinitehbd.Plan {
	t.Helper()
	p, err := l.Build(groups, dead)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// on writes which bundles of a plan are on a path.
func on(p *infinitehbd.Plan) string {
	var words []string
	l := p.Line()
	for _, n := range l.Order {
		for b, bundle := range l.Layout.Bundles {
			if s := p.State(n, b); s != infinitehbd.Loop {
				words = append(words, fmt.Sprintf("%d.%s=%v", n, bundle.Name, s))
			}
		}
	}
	return strings.Join(words, " ")
}

func TestRings(t *testing.T) {
	for _, test := range []struct {
		k, nodes   int
		group      group
		dead       []node
		want, ring string
	}{
		{2, 3, group{1, 3}, []node{2}, "1.R=PATH2 2.L=DARK 2.R=DARK 3.L=PATH2", "1.1 1.2 1.3 3.2 3.3 3.4 3.1 1.4"},
		{2, 3, group{1, 2, 3}, nil, "1.R=PATH1 2.L=PATH1 2.R=PATH1 3.L=PATH1", "1.1 1.2 1.3 2.2 2.3 3.2 3.3 3.4 3.1 2.4 2.1 1.4"},
		{3, 5, group{1, 4}, []node{2, 3}, "1.X=PATH2 2.L=DARK 2.R=DARK 2.X=DARK 3.L=DARK 3.R=DARK 3.X=DARK 4.X=PATH1",
			"1.1 1.2 4.2 4.1 4.4 4.3 1.3 1.4"},
		{3, 5, group{1, 4, 5}, []node{2, 3},
			"1.X=PATH2 2.L=DARK 2.R=DARK 2.X=DARK 3.L=DARK 3.R=DARK 3.X=DARK 4.R=PATH1 4.X=PATH1 5.L=PATH1",
			"1.1 1.2 4.2 4.1 4.4 5.1 5.4 5.3 5.2 4.3 1.3 1.4"},
		{2, 2, group{2}, nil, "", "2.1 2.2 2.3 2.4"},
		{1, 3, group{1, 2, 3}, nil, "1.R=PATH1 2.L=PATH1 2.R=PATH1 3.L=PATH1", "1.1 1.2 1.3 2.2 2.3 3.2 3.3 3.4 3.1 2.4 2.1 1.4"},
		{4, 8, group{1, 4, 8}, nil, "1.R2=PATH1 4.L2=PATH1 4.R2=PATH2 8.L2=PATH2", "1.1 1.2 1.3 1.4 4.3 4.4 8.3 8.4 8.1 8.2 4.1 4.2"},
	} {
		t.Run(fmt.Sprintf("K=%d %v", test.k, test.group), func(t *testing.T) {
			l := infinitehbd.Line{Layout: nodesOf(t, 4, test.k), Order: count(test.nodes)}
			p := mustBuild(t, l, []group{test.group}, test.dead...)
			if got := on(p); got != test.want {
				t.Errorf("states:\n got %s\nwant %s", got, test.want)
			}
			rings, err := p.Rings()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Trim(fmt.Sprint(rings[0]), "[]"); len(rings) != 1 || got != test.ring {
				t.Errorf("ring:\n got %s\nwant %s", got, test.ring)
			}
		})
	}
}

// 16 nodes in ToRs of 4, groups of 2, node 6 dead.
func TestStatesAroundDeadNode(t *testing.T) {
	l := infinitehbd.Line{Layout: newLayout(t, 4, 1, 2), Order: sixteen}
	p := mustBuild(t, l, []group{{1, 5}, {9, 13}, {2, 10}, {14, 3}, {7, 11}, {15, 4}, {8, 12}}, 6)
	want := "1.R=PATH1 5.L=PATH1 9.R=PATH1 13.L=PATH1 2.R=PATH2 6.L=DARK 6.R=DARK 10.L=PATH2 14.R=PATH1 3.L=PATH1" +
		" 7.R=PATH1 11.L=PATH1 15.R=PATH1 4.L=PATH1 8.R=PATH1 12.L=PATH1"
	if got := on(p); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := p.Idle(); !slices.Equal(got, []node{16}) {
		t.Errorf("idle: %v, want 16", got)
	}
	if got := p.Dead(); !slices.Equal(got, []node{6}) {
		t.Errorf("dead: %v, want 6", got)
	}
}

func TestIdleNodes(t *testing.T) {
	l := infinitehbd.Line{Layout: newLayout(t, 4, 1, 2), Order: count(6)}
	groups, err := l.Place(2, []node{2})
	if err != nil {
		t.Fatal(err)
	}
	p := mustBuild(t, l, groups, 2)
	if got, want := fmt.Sprint(p.Groups(), p.Idle()), "[[1 3] [4 5]] [6]"; got != want {
		t.Errorf("groups and idle nodes %s, want %s", got, want)
	}
}

func TestGroupsThatCannotBe(t *testing.T) {
	k2, k3 := newLayout(t, 4, 1, 2), newLayout(t, 4, 1, 2, 3)
	for _, test := range []struct {
		name   string
		layout infinitehbd.Layout
		groups []group
		dead   []node
		is     error
		says   []string
	}{
		{"not in the line", k2, []group{{1, 99}}, nil, infinitehbd.ErrGroup, []string{"node 99 is not in the line"}},
		{"not in the line", k2, []group{{99}}, nil, infinitehbd.ErrNode, []string{"node 99"}},
		{"twice", k2, []group{{1, 2}, {2, 3}}, nil, infinitehbd.ErrGroup, []string{"[2 3]", "node 2 is in a group"}},
		{"twice in one", k2, []group{{1, 1}}, nil, infinitehbd.ErrGroup, []string{"node 1 is in a group"}},
		{"dead", k2, []group{{1, 2}}, []node{2}, infinitehbd.ErrGroup, []string{"node 2 is dead"}},
		{"order", k2, []group{{2, 1}}, nil, infinitehbd.ErrGroup, []string{"node 1 is before node 2"}},
		{"too far", k2, []group{{1, 4}}, nil, infinitehbd.ErrGroup, []string{"node 4 is 3 behind node 1", "[1 2]"}},
		{"no path", newLayout(t, 4, 1, 4), []group{{1, 3}}, nil, infinitehbd.ErrGroup, []string{"3 is 2 behind node 1", "[1 4]"}},
		{"empty", k2, []group{{}}, nil, infinitehbd.ErrGroup, []string{"no nodes"}},
		{"forced boundary", k3, []group{{1, 4, 7}}, nil, infinitehbd.ErrGroup, []string{"node 4", "bundle X", "nodes 1 and 7"}},
		{"unknown dead", k2, nil, []node{17}, infinitehbd.ErrNode, []string{"node 17"}},
		{"dead twice", k2, nil, []node{3, 3}, infinitehbd.ErrNode, []string{"node 3 is twice among the dead"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := infinitehbd.Line{Layout: test.layout, Order: count(8)}.Build(test.groups, test.dead)
			wantError(t, err, test.is, test.says...)
		})
	}
	closed := infinitehbd.Line{Layout: k3, Order: count(8), Closed: true}
	_, err := closed.Build([]group{{1, 3, 6, 8, 2}}, nil)
	wantError(t, err, infinitehbd.ErrGroup, "node 2 is not in the order", "goes around")
}

// states returns all states of a plan, as they would be read back.
func states(p *infinitehbd.Plan) map[node][]state {
	l := p.Line()
	all := map[node][]state{}
	for _, n := range l.Order {
		for b := range l.Layout.Bundles {
			all[n] = append(all[n], p.State(n, b))
		}
	}
	return all
}

func TestHalfOpen(t *testing.T) {
	l := infinitehbd.Line{Layout: newLayout(t, 4, 1, 2), Order: count(4)}
	read := states(mustBuild(t, l, []group{{1, 2, 3}}))
	read[2][1] = infinitehbd.Path2 // 2.R leads to node 4, that does not know
	p, err := infinitehbd.NewPlan(l, read)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.HalfOpen() {
		got = append(got, l.Name(c.A)+" - "+l.Name(c.B))
	}
	if want := "2.R PATH1 - 3.L PATH1, 2.R PATH2 - 4.L PATH2"; strings.Join(got, ", ") != want {
		t.Errorf("half open: %v, want %s", got, want)
	}
	_, err = p.Rings()
	wantError(t, err, infinitehbd.ErrGroup, "group [1 2]", "2.R PATH2, and its other end 4.L LOOP")
}

func TestStatesReadBack(t *testing.T) {
	k3 := newLayout(t, 4, 1, 2, 3)
	l := infinitehbd.Line{Layout: k3, Order: count(7), Closed: true}
	loop := func() map[node][]state {
		m := map[node][]state{}
		for _, n := range l.Order {
			m[n] = make([]state, 3)
		}
		return m
	}
	for _, test := range []struct {
		name   string
		spoil  func(map[node][]state)
		groups string
		says   string // of the rings; "" is none
	}{
		{"loops", func(map[node][]state) {}, "[]", ""},
		{"nothing known of one", func(m map[node][]state) { delete(m, 3) }, "[]", ""},
		{"over the end", func(m map[node][]state) { m[7][1], m[2][0] = infinitehbd.Path2, infinitehbd.Path2 }, "[[7 2]]", ""},
		{"a path alone", func(m map[node][]state) { m[5][2] = infinitehbd.Path2 }, "[]", "5.X PATH2 is on"},
		{"a dark bundle in a ring", func(m map[node][]state) {
			m[1][1], m[2][0], m[2][1] = infinitehbd.Path1, infinitehbd.Path1, infinitehbd.Dark
		}, "[[1 2]]", "broken at 2.3: 2.R DARK"},
		{"all around", func(m map[node][]state) {
			for n := range m {
				m[n][0], m[n][1] = infinitehbd.Path1, infinitehbd.Path1
			}
		}, "[[1 2 3 4 5 6 7]]", "has 14 GPUs: want 28"},
		{"a tree", func(m map[node][]state) {
			m[1][1], m[2][0], m[2][1], m[3][0] = infinitehbd.Path1, infinitehbd.Path1, infinitehbd.Path1, infinitehbd.Path1
			m[2][2], m[5][2] = infinitehbd.Path2, infinitehbd.Path1
		}, "[[1 2 3 5]]", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := loop()
			test.spoil(read)
			p, err := infinitehbd.NewPlan(l, read)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(p.Groups()); got != test.groups {
				t.Errorf("groups %s, want %s", got, test.groups)
			}
			if _, err = p.Rings(); test.says == "" && err != nil {
				t.Error(err)
			} else if test.says != "" {
				wantError(t, err, infinitehbd.ErrGroup, test.says)
			}
		})
	}
	for _, test := range []struct {
		states map[node][]state
		says   string
	}{
		{map[node][]state{9: make([]state, 3)}, "node 9"},
		{map[node][]state{2: {0}}, "node 2 has 1 states"},
		{map[node][]state{2: {0, 7, 0}}, "2.R is in state 7"},
	} {
		_, err := infinitehbd.NewPlan(l, test.states)
		wantError(t, err, infinitehbd.ErrNode, test.says)
	}
	open := infinitehbd.Line{Layout: k3, Order: count(2)}
	p, err := infinitehbd.NewPlan(open, map[node][]state{1: {0, 1, 1}, 2: {1, 0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Rings()
	wantError(t, err, infinitehbd.ErrGroup, "1.X PATH1 leads to no node")
}

// drawFaults draws dead nodes of a line.
func drawFaults(t *rapid.T, nodes []node) []node {
	var dead []node
	share := rapid.IntRange(0, 5).Draw(t, "dead tenths")
	for _, n := range nodes {
		if rapid.IntRange(0, 9).Draw(t, "alive") < share {
			dead = append(dead, n)
		}
	}
	return dead
}

// drawLine draws a line of up to most nodes.
func drawLine(t *rapid.T, most int) infinitehbd.Line {
	l := infinitehbd.Line{Layout: drawLayout(t), Closed: rapid.Bool().Draw(t, "closed")}
	least := 2*l.Layout.Hops() + 1
	if least > most {
		l.Closed = false
	}
	if !l.Closed {
		least = 1
	}
	l.Order = rapid.Permutation(count(rapid.IntRange(least, most).Draw(t, "nodes"))).Draw(t, "order")
	return l
}

// Whatever groups are built: each is one ring of all its GPUs, both ends of each cable agree, the plan that is
// read back is the same, and only nodes next to a change switch paths.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLine(t, 24)
		m := rapid.IntRange(1, 5).Draw(t, "m")
		dead := drawFaults(t, l.Order)
		groups, err := infinitehbd.SpreadIdle(l, m, dead)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Build(groups, dead)
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, p, m)
		back, err := infinitehbd.NewPlan(l, states(p))
		if err != nil {
			t.Fatal(err)
		}
		if len(infinitehbd.Diff(p, back)) != 0 || m > 1 && !sameGroups(p.Groups(), back.Groups()) {
			t.Fatalf("%v is read back as %v", p.Groups(), back.Groups())
		}
		if len(groups) == 0 {
			return
		}
		gone := rapid.IntRange(0, len(groups)-1).Draw(t, "gone")
		less, err := l.Build(slices.Delete(slices.Clone(groups), gone, gone+1), dead)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range infinitehbd.Diff(p, less) {
			if !slices.Contains(groups[gone], s.Node) || s.To != infinitehbd.Loop {
				t.Fatalf("without group %v node %d switches to %v", groups[gone], s.Node, s.To)
			}
		}
	})
}

func sameGroups(a, b []group) bool {
	return slices.EqualFunc(a, b, func(a, b group) bool { return slices.Equal(a, b) })
}

// checkPlan checks that all groups are disjoint rings of m nodes, and that no cable is half open.
func checkPlan(t *rapid.T, p *infinitehbd.Plan, m int) {
	rings, err := p.Rings()
	if err != nil {
		t.Fatal(err)
	}
	if half := p.HalfOpen(); len(half) > 0 {
		t.Fatalf("half open: %v", half)
	}
	met := map[infinitehbd.GPU]bool{}
	for i, ring := range rings {
		if want := m * p.Line().Layout.GPUs; len(ring) != want {
			t.Fatalf("the ring of %v has %d GPUs, want %d", p.Groups()[i], len(ring), want)
		}
		for _, g := range ring {
			if met[g] || !slices.Contains(p.Groups()[i], g.Node) {
				t.Fatalf("%v is met twice, or in a ring of others", g)
			}
			met[g] = true
		}
	}
}
