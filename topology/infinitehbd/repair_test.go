package infinitehbd_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// in16 is the line of 16 nodes that reach k others, with groups of m.
func in16(t testing.TB, k, m int, dead ...node) (infinitehbd.Line, *infinitehbd.Plan) {
	t.Helper()
	l := infinitehbd.Line{Layout: nodesOf(t, 4, k), Order: sixteen}
	groups, err := l.Place(m, dead)
	if err != nil {
		t.Fatal(err)
	}
	return l, mustBuild(t, l, groups, dead...)
}

// switched writes switchings as "2.R PATH1>LOOP".
func switched(l infinitehbd.Line, list []infinitehbd.Switching) []string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = fmt.Sprintf("%d.%s %v>%v", s.Node, l.Layout.Bundles[s.Bundle].Name, s.From, s.To)
	}
	return words
}

// Node 6 dies: cut anew from the front 20 bundles switch, and 1 is enough.
func TestOneSwitchInsteadOfTwenty(t *testing.T) {
	l, running := in16(t, 2, 2)
	_, anew := in16(t, 2, 2, 6)
	if got := len(infinitehbd.Diff(running, anew)); got != 20 {
		t.Errorf("cut anew: %d bundles switch, want 20", got)
	}
	r, err := infinitehbd.Repair(running, []node{6}, infinitehbd.RepairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(switched(l, r.Switchings)), "[2.R PATH1>LOOP]"; got != want {
		t.Errorf("repaired: %s, want %s", got, want)
	}
	if len(r.Kept) != 7 || r.Short != 1 || fmt.Sprint(r.Ended) != "[[2 6]]" || fmt.Sprint(r.Plan.Idle()) != "[2]" {
		t.Errorf("kept %v, ended %v, %d short, idle %v: want 7, [2 6], 1, 2", r.Kept, r.Ended, r.Short, r.Plan.Idle())
	}
}

func TestRepair(t *testing.T) {
	for _, test := range []struct {
		k, m             int
		dead             []node
		groups, switched int
		kept             int
	}{
		{2, 2, nil, 8, 0, 8},
		{2, 2, []node{6}, 7, 1, 7},
		{2, 3, []node{6}, 5, 14, 1},    // all living nodes are needed, so that all blocks shift to 16, which was idle
		{2, 4, []node{6}, 3, 4, 3},     // what is left of its group is looped
		{2, 2, []node{6, 10}, 6, 2, 6}, // neighbours in the line: a break that costs both groups
		{3, 2, []node{6, 10}, 7, 4, 6}, // no break: what is left of both is one group
		{2, 4, []node{6, 10}, 3, 2, 3},
	} {
		t.Run(fmt.Sprintf("K=%d m=%d %v", test.k, test.m, test.dead), func(t *testing.T) {
			_, running := in16(t, test.k, test.m)
			r, err := infinitehbd.Repair(running, test.dead, infinitehbd.RepairOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if g := len(r.Plan.Groups()); g != test.groups || len(r.Switchings) != test.switched || len(r.Kept) != test.kept {
				t.Errorf("%d groups, %d switched, %d kept: want %d, %d, %d\n%v", g, len(r.Switchings), len(r.Kept),
					test.groups, test.switched, test.kept, r.Plan.Groups())
			}
		})
	}
}

// Of placements that switch as many bundles, 11, the one that keeps two groups is taken, instead of shifting all.
func TestRepairKeepsGroups(t *testing.T) {
	for _, test := range []struct {
		running    []group
		dead       node
		kept, want string
	}{
		{[]group{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}, 1, "[[5 6 7 8] [9 10 11 12]]", "[13 14 15 16]"},
		{[]group{{5, 6, 7, 8}, {9, 10, 11, 12}, {13, 14, 15, 16}}, 16, "[[5 6 7 8] [9 10 11 12]]", "[1 2 3 4]"},
	} {
		l := infinitehbd.Line{Layout: newLayout(t, 4, 1, 2), Order: count(16)}
		r, err := infinitehbd.Repair(mustBuild(t, l, test.running), []node{test.dead}, infinitehbd.RepairOptions{})
		if err != nil {
			t.Fatal(err)
		}
		groups := fmt.Sprint(r.Plan.Groups())
		if len(r.Switchings) != 11 || fmt.Sprint(r.Kept) != test.kept || !strings.Contains(groups, test.want) {
			t.Errorf("%d dies: %s, %d switched, kept %v: want 11, kept %s, and %s", test.dead, groups, len(r.Switchings),
				r.Kept, test.kept, test.want)
		}
	}
}

// A node that comes back is put to use with the bundles that need be.
func TestRepairOfNodeThatComesBack(t *testing.T) {
	l, running := in16(t, 2, 2)
	without, err := infinitehbd.Repair(running, []node{6}, infinitehbd.RepairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := infinitehbd.Repair(without.Plan, nil, infinitehbd.RepairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(switched(l, r.Switchings)), "[2.R LOOP>PATH1 6.L DARK>PATH1 6.R DARK>LOOP]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if r.Short != 0 {
		t.Errorf("%d groups short of those that ran: want 0", r.Short)
	}
}

// With an overlap a group can reach around another instead of shifting all: 5 bundles instead of 7.
func TestRepairWithOverlap(t *testing.T) {
	l := infinitehbd.Line{Layout: newLayout(t, 4, 1, 2), Order: count(5)}
	running := mustBuild(t, l, []group{{1, 2}, {3, 4}})
	for overlap, want := range map[int]int{0: 7, 1: 7, 2: 5, infinitehbd.MaxOverlap: 5} {
		r, err := infinitehbd.Repair(running, []node{1}, infinitehbd.RepairOptions{Overlap: overlap})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Switchings) != want {
			t.Errorf("overlap %d: %v, want %d", overlap, switched(l, r.Switchings), want)
		}
	}
}

func TestRepairsThatCannotBe(t *testing.T) {
	l, running := in16(t, 2, 2)
	mixed := mustBuild(t, l, []group{{1, 5}, {9, 13, 2}})
	none := mustBuild(t, l, nil)
	long := mustBuild(t, infinitehbd.Line{Layout: newLayout(t, 4, 1, 2, 3, 4), Order: count(1024)}, nil)
	for _, test := range []struct {
		name    string
		running *infinitehbd.Plan
		dead    []node
		options infinitehbd.RepairOptions
		is      error
		says    string
	}{
		{"unknown", running, []node{17}, infinitehbd.RepairOptions{}, infinitehbd.ErrNode, "17"},
		{"twice", running, []node{3, 3}, infinitehbd.RepairOptions{}, infinitehbd.ErrNode, "3"},
		{"mixed sizes", mixed, nil, infinitehbd.RepairOptions{}, infinitehbd.ErrGroup, "[1 5] and [9 13 2]"},
		{"no groups", none, nil, infinitehbd.RepairOptions{}, infinitehbd.ErrGroup, "no groups run"},
		{"size", running, nil, infinitehbd.RepairOptions{Size: -1}, infinitehbd.ErrGroup, "-1"},
		{"overlap", running, nil, infinitehbd.RepairOptions{Overlap: 5}, infinitehbd.ErrGroup, "overlap of 5"},
		{"too many placements", long, nil, infinitehbd.RepairOptions{Size: 32, Overlap: 3}, infinitehbd.ErrGroup, "less overlap"},
		{"larger than anything", running, nil, infinitehbd.RepairOptions{Size: math.MaxInt}, infinitehbd.ErrRoom, "of 16 living nodes"},
		{"larger than the line", running, nil, infinitehbd.RepairOptions{Size: 17}, infinitehbd.ErrRoom, "of 16 living nodes no 17"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := infinitehbd.Repair(test.running, test.dead, test.options)
			wantError(t, err, test.is, test.says)
		})
	}
	if _, err := infinitehbd.Resize(running, 0); !errors.Is(err, infinitehbd.ErrGroup) {
		t.Errorf("groups of 0 nodes: %v", err)
	}
	if _, err := infinitehbd.SpreadIdle(l, 0, nil); !errors.Is(err, infinitehbd.ErrGroup) {
		t.Errorf("groups of 0 nodes: %v", err)
	}
}

// Faults that leave no ring are told, and what is left is there.
func TestFaultsThatLeaveNoRing(t *testing.T) {
	l, running := in16(t, 2, 4)
	dead := []node{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	r, err := infinitehbd.Repair(running, dead, infinitehbd.RepairOptions{})
	wantError(t, err, infinitehbd.ErrRoom, "of 3 living nodes no 4", "4 groups that ran")
	if len(r.Ended) != 4 || r.Short != 4 || len(r.Plan.Groups()) != 0 || len(r.Plan.Idle()) != 3 {
		t.Errorf("ended %v, %d short, idle %v", r.Ended, r.Short, r.Plan.Idle())
	}
	if _, err := infinitehbd.Repair(running, l.Order, infinitehbd.RepairOptions{}); !errors.Is(err, infinitehbd.ErrRoom) {
		t.Errorf("all are dead: %v", err)
	}
}

// Tensor parallelism over 8, 16 and again 8 GPUs: only bundles at the boundaries switch.
func TestResize(t *testing.T) {
	for _, dead := range [][]node{nil, {6}} {
		l, p := in16(t, 2, 2, dead...)
		for _, step := range []struct{ size, groups int }{{4, 4 - len(dead)}, {2, 8 - len(dead)}} {
			r, err := infinitehbd.Resize(p, step.size)
			if err != nil {
				t.Fatal(err)
			}
			if g := len(r.Plan.Groups()); g != step.groups {
				t.Errorf("dead %v, size %d: %d groups, want %d", dead, step.size, g, step.groups)
			}
			if len(r.Switchings) != 8 {
				t.Errorf("dead %v, size %d: %v, want 8", dead, step.size, switched(l, r.Switchings))
			}
			for _, s := range r.Switchings {
				if s.From != infinitehbd.Loop && s.To != infinitehbd.Loop {
					t.Errorf("dead %v, size %d: %v is no boundary", dead, step.size, s)
				}
			}
			p = r.Plan
		}
	}
}

func TestSpreadIdle(t *testing.T) {
	for _, test := range []struct {
		name   string
		nodes  int
		closed bool
		m      int
		dead   []node
		want   string
	}{
		{"in the middle", 9, false, 2, nil, "[[1 2] [3 4] [6 7] [8 9]]"},
		{"two", 14, false, 3, nil, "[[1 2 3] [5 6 7] [8 9 10] [12 13 14]]"},
		{"behind a dead node", 9, false, 2, []node{1}, "[[2 3] [4 5] [6 7] [8 9]]"},
		{"of each part", 12, false, 2, []node{6, 7}, "[[1 2] [4 5] [8 9] [11 12]]"},
		{"over the end", 12, true, 2, []node{6, 7}, "[[2 3] [4 5] [8 9] [10 11] [12 1]]"},
		{"idle over the end", 13, true, 2, []node{6, 7}, "[[2 3] [4 5] [8 9] [10 11] [13 1]]"},
		{"none", 3, false, 4, nil, "[]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := infinitehbd.Line{Layout: newLayout(t, 4, 1, 2), Order: count(test.nodes), Closed: test.closed}
			groups, err := infinitehbd.SpreadIdle(l, test.m, test.dead)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(groups); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// Spread idle nodes make repairs short: fewer bundles switch, over all single faults.
func TestSpreadIdleShortensRepairs(t *testing.T) {
	l := infinitehbd.Line{Layout: newLayout(t, 4, 1, 2), Order: count(42)}
	switches := func(groups []group) (sum, most int) {
		running := mustBuild(t, l, groups)
		for _, n := range l.Order {
			r, err := infinitehbd.Repair(running, []node{n}, infinitehbd.RepairOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sum, most = sum+len(r.Switchings), max(most, len(r.Switchings))
		}
		return sum, most
	}
	packed, err := l.Place(4, nil)
	if err != nil {
		t.Fatal(err)
	}
	spread, err := infinitehbd.SpreadIdle(l, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, most := switches(packed)
	sumSpread, mostSpread := switches(spread)
	if 2*sumSpread > sum || 2*mostSpread > most {
		t.Errorf("spread: %d in all and %d at most; packed: %d and %d", sumSpread, mostSpread, sum, most)
	}
}

// oracle finds the best placements by trying all.
type oracle struct {
	line    infinitehbd.Line
	m       int
	overlap int
	ok      []bool // living and not yet in a group, by place
	across  []int  // groups, by place
	groups  []group
	yield   func([]group)
}

// all yields every set of groups, of which each begins at or behind a place.
func (o *oracle) all(from int) {
	o.yield(o.groups)
	for i := from; i < len(o.ok); i++ {
		if o.ok[i] {
			o.extend(i, i, nil)
		}
	}
}

// extend puts the node at a place, which may be beyond the end of a closed line, into a group that began at first.
func (o *oracle) extend(first, place int, g group) {
	n := len(o.ok)
	o.ok[place%n] = false
	defer func() { o.ok[place%n] = true }()
	g = append(g[:len(g):len(g)], o.line.Order[place%n])
	if len(g) == o.m {
		o.close(first, place, g)
		return
	}
	for _, d := range o.line.Layout.Distances() {
		next := place + d
		if (o.line.Closed || next < n) && next-first < n && o.ok[next%n] {
			o.extend(first, next, g)
		}
	}
}

func (o *oracle) close(first, last int, g group) {
	sound := true
	for i := first; i <= last; i++ {
		o.across[i%len(o.ok)]++
		sound = sound && o.across[i%len(o.ok)] <= o.overlap
	}
	if sound {
		o.groups = append(o.groups, g)
		o.all(first + 1)
		o.groups = o.groups[:len(o.groups)-1]
	}
	for i := first; i <= last; i++ {
		o.across[i%len(o.ok)]--
	}
}

// best returns the most groups, and the fewest bundles that switch and the most groups kept with as many.
func (o *oracle) best(running *infinitehbd.Plan, dead []node) (groups, switched, kept int) {
	o.ok, o.across = make([]bool, len(o.line.Order)), make([]int, len(o.line.Order))
	for i, n := range o.line.Order {
		o.ok[i] = !slices.Contains(dead, n)
	}
	ran := map[string]bool{}
	for _, g := range running.Groups() {
		ran[fmt.Sprint(g)] = true
	}
	o.yield = func(list []group) {
		if len(list) < groups {
			return
		}
		p, err := o.line.Build(list, dead)
		if err != nil {
			return // a node would need both paths of a bundle
		}
		n, same := len(infinitehbd.Diff(running, p)), 0
		for _, g := range list {
			if ran[fmt.Sprint(g)] {
				same++
			}
		}
		if len(list) > groups || n < switched || n == switched && same > kept {
			groups, switched, kept = len(list), n, same
		}
	}
	switched = 1 << 30
	o.all(0)
	return groups, switched, kept
}

// No placement whatever has more groups, switches fewer bundles with as many, or keeps more groups with as few.
func TestRepairIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLine(t, 11)
		m := rapid.IntRange(1, 4).Draw(t, "m")
		overlap := rapid.IntRange(1, infinitehbd.MaxOverlap).Draw(t, "overlap")
		if l.Closed || m == 1 {
			overlap = 1
		}
		if len(l.Order) > 9 && overlap > 1 {
			l.Order = l.Order[:9]
		}
		running := drawRunning(t, l, m)
		dead := drawFaults(t, l.Order)
		r, err := infinitehbd.Repair(running, dead, infinitehbd.RepairOptions{Size: m, Overlap: overlap})
		if err != nil && !errors.Is(err, infinitehbd.ErrRoom) {
			t.Fatal(err)
		}
		checkPlan(t, r.Plan, m)
		o := &oracle{line: l, m: m, overlap: overlap}
		groups, switched, kept := o.best(running, dead)
		if g := r.Plan.Groups(); len(g) != groups || len(r.Switchings) != switched || len(r.Kept) != kept {
			t.Fatalf("closed %v, from %v, dead %v: %v: %d groups, %d switched, %d kept; the best has %d, %d, %d", l.Closed,
				running.Groups(), dead, g, len(g), len(r.Switchings), len(r.Kept), groups, switched, kept)
		}
		if (err != nil) != (groups == 0) {
			t.Fatalf("%d groups, and the error %v", groups, err)
		}
		again, _ := infinitehbd.Repair(running, shuffled(dead), infinitehbd.RepairOptions{Size: m, Overlap: overlap})
		if !sameGroups(r.Plan.Groups(), again.Plan.Groups()) {
			t.Fatalf("%v, and with the dead in another order %v", r.Plan.Groups(), again.Plan.Groups())
		}
	})
}

func shuffled(nodes []node) []node {
	list := slices.Clone(nodes)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// drawRunning draws a plan that runs: placed with other nodes dead, some groups left out, maybe of another size.
func drawRunning(t *rapid.T, l infinitehbd.Line, m int) *infinitehbd.Plan {
	if rapid.IntRange(0, 4).Draw(t, "another size") == 0 {
		m = rapid.IntRange(1, 4).Draw(t, "size before")
	}
	was := drawFaults(t, l.Order)
	groups, err := l.Place(m, was)
	if err != nil {
		t.Fatal(err)
	}
	groups = slices.DeleteFunc(groups, func(group) bool { return rapid.IntRange(0, 5).Draw(t, "ended") == 0 })
	p, err := l.Build(groups, was)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// With all distances, spread groups are as many as those that are packed.
func TestSpreadIdleLosesNoGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLine(t, 40)
		m := rapid.IntRange(1, 6).Draw(t, "m")
		dead := drawFaults(t, l.Order)
		packed, err := l.Place(m, dead)
		if err != nil {
			t.Fatal(err)
		}
		spread, err := infinitehbd.SpreadIdle(l, m, dead)
		if err != nil {
			t.Fatal(err)
		}
		d := l.Layout.Distances()
		if consecutive := d[len(d)-1] == len(d); len(spread) < len(packed) || consecutive && len(spread) > len(packed) {
			t.Fatalf("distances %v, closed %v, dead %v: spread %v, packed %v", d, l.Closed, dead, spread, packed)
		}
	})
}
