package opus_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/opus"
)

func drawJob(t *rapid.T) opus.Job {
	j := opus.Job{
		Stages: rapid.IntRange(1, 6).Draw(t, "stages"),
		Ports:  rapid.SampledFrom([]int{0, 2, 2, 2, 3, 4, 5}).Draw(t, "ports"),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "axes") {
		j.Axes = append(j.Axes, opus.Axis{Name: fmt.Sprint("axis", i+1), Size: rapid.IntRange(1, 4).Draw(t, "size")})
	}
	return j
}

func drawID(t *rapid.T, j opus.Job, name string) opus.ID {
	id := make(opus.ID, j.Stages)
	for s := range id {
		id[s] = uint8(rapid.IntRange(0, len(j.Axes)).Draw(t, name))
	}
	return id
}

// drawAssignment returns an irregular one.
func drawAssignment(t *rapid.T, j opus.Job) opus.Assignment {
	n := j.DuplexPorts()
	numbers := make([]int, n+3)
	for i := range numbers {
		numbers[i] = i
	}
	ins, outs := rapid.Permutation(numbers).Draw(t, "ingress"), rapid.Permutation(numbers).Draw(t, "egress")
	a := make(opus.Assignment, n)
	for q := range a {
		a[q] = opus.Fibre{In: ocs.Port(1 + ins[q]), Out: ocs.Port(1000 + outs[q])}
	}
	return a
}

func must[T any](t *rapid.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// checkMatching is invariant I1: a partial matching, duplex-symmetric, of the ports of the job, that joins no port and no
// rank to itself.
func checkMatching(t *rapid.T, j opus.Job, m opus.Matching, a opus.Assignment) {
	t.Helper()
	seen := map[int]bool{}
	for c := range m.Circuits() {
		if c.A >= c.B || c.A < 0 || c.B >= j.DuplexPorts() || seen[c.A] || seen[c.B] {
			t.Fatalf("circuit %v of %v", c, m)
		}
		if c.A/j.PortsPerRank() == c.B/j.PortsPerRank() {
			t.Fatalf("circuit %v joins a rank to itself", c)
		}
		seen[c.A], seen[c.B] = true, true
		for _, ends := range [][2]int{{c.A, c.B}, {c.B, c.A}} {
			if peer, ok := m.Peer(ends[0]); !ok || peer != ends[1] {
				t.Fatalf("the peer of %d is %d, not %d", ends[0], peer, ends[1])
			}
		}
	}
	if circuits := must[ocs.Map](t)(a.Map(m)); circuits.Len() != 2*m.Len() {
		t.Fatalf("%d cross-connects of %d circuits", circuits.Len(), m.Len())
	}
}

func TestProperty_Build(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		a := drawAssignment(t, j)
		p := rapid.SampledFrom(opus.Policies).Draw(t, "policy")
		id := drawID(t, j, "id")
		m := must[opus.Matching](t)(opus.Build(j, id, p))
		checkMatching(t, j, m, a)

		// Each stage at a symmetrical axis has all circuits of its groups, and no others.
		for x := range j.Ranks() {
			axis := int(id[j.Stage(x)])
			if axis == opus.PP {
				continue
			}
			g := j.GroupOf(x, axis)
			for _, c := range j.GroupCircuits(g) {
				if peer, ok := m.Peer(c.A); !ok || peer != c.B {
					t.Fatalf("%s lacks %v of group %s", id, c, g)
				}
			}
			lanes := 0
			for _, y := range g.Members {
				lanes += m.Lanes(x, y)
			}
			if want := j.PortsPerRank() / 2 * 2; len(g.Members) > 1 && lanes != want {
				t.Fatalf("rank %d has %d ports for group %s, want %d", x, lanes, g, want)
			}
		}
		// What is at PP is joined to PP only.
		for c := range m.Circuits() {
			x, y := c.A/j.PortsPerRank(), c.B/j.PortsPerRank()
			sx, sy := j.Stage(x), j.Stage(y)
			if id[sx] != id[sy] || sx != sy && id[sx] != opus.PP || sx == sy && id[sx] == opus.PP {
				t.Fatalf("%s joins ranks %d and %d of stages %d and %d", id, x, y, sx, sy)
			}
		}
		ring := must[opus.Matching](t)(opus.GiantRing(j))
		checkMatching(t, j, ring, a)
		for x := range j.Ranks() {
			hops, ok := ring.Hops(j, 0, x)
			if back, _ := ring.Hops(j, x, 0); !ok || hops > j.Ranks()/2 || back != hops {
				t.Fatalf("from rank 0 to %d on the giant ring: %d hops, %v", x, hops, ok)
			}
		}
	})
}

func TestProperty_RingOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		order := opus.RingOrder(j)
		sorted := slices.Clone(order)
		slices.Sort(sorted)
		even := j.Stages%2 == 0
		for _, a := range j.Axes {
			even = even || a.Size%2 == 0
		}
		for i, x := range order {
			if sorted[i] != i {
				t.Fatalf("%v does not have each rank once", order)
			}
			y, last := order[(i+1)%len(order)], i == len(order)-1
			differ, step := 0, 0
			for axis := range len(j.Axes) + 1 {
				if d := j.Coordinate(y, axis) - j.Coordinate(x, axis); d != 0 {
					differ++
					step = max(d, -d)
				}
			}
			if !last && (differ != 1 || step != 1) || last && even && differ != 1 {
				t.Fatalf("%v: from %d to %d %d coordinates change, by %d", order, x, y, differ, step)
			}
		}
	})
}

func TestProperty_Change(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		a := drawAssignment(t, j)
		p := rapid.SampledFrom(opus.Policies).Draw(t, "policy")
		table := must[*opus.Table](t)(opus.NewTable(j, p, a))
		from, to := drawID(t, j, "from"), drawID(t, j, "to")
		was, will := must[opus.Matching](t)(opus.Build(j, from, p)), must[opus.Matching](t)(opus.Build(j, to, p))
		if m := must[opus.Matching](t)(table.Matching(from)); !m.Equal(was) {
			t.Fatalf("the table has %v at %s, want %v", m, from, was)
		}
		d := must[opus.Delta](t)(table.Change(from, to))
		if diff := cmp.Diff(must[opus.Delta](t)(was.Delta(will, a)), d, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the change is not that of the two matchings (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(d.Inverse(), must[opus.Delta](t)(table.Change(to, from)), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the way back (-want +got):\n%s", diff)
		}
		change := must[ocs.Change](t)(d.Change())
		have, want := must[ocs.Map](t)(a.Map(was)), must[ocs.Map](t)(a.Map(will))
		if got := must[ocs.Map](t)(change.ApplyTo(have)); !got.Equal(want) {
			t.Fatalf("the change leads to %v, want %v", got, want)
		}
		if least := ocs.Diff(have, want); !least.Remove.Equal(change.Remove) || !least.Add.Equal(change.Add) {
			t.Fatalf("the change is %v, and %v is enough", change, least)
		}

		// I2: what is programmed is of the stages that are touched; and those are near a digit that changes.
		perStage := j.DuplexPorts() / j.Stages
		stages := map[int]bool{}
		for _, s := range d.Stages {
			stages[s] = true
		}
		ofStages := map[ocs.Port]bool{}
		for q, f := range a {
			if stages[q/perStage] {
				ofStages[f.In], ofStages[f.Out] = true, true
			}
		}
		for _, port := range change.Ports() {
			if !ofStages[port] {
				t.Fatalf("port %d is of no stage of %v", port, d.Stages)
			}
		}
		if p != opus.Chain {
			return
		}
		for s := range stages {
			near := false
			for k := max(s-1, 0); k <= min(s+1, j.Stages-1); k++ {
				near = near || from[k] != to[k]
			}
			if !near {
				t.Fatalf("%s to %s touches stage %d", from, to, s)
			}
		}
	})
}

// A request for circuits never moves more than the digit of the stage would, and gets what it asks for.
func TestProperty_With(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		a := opus.Regular(j.DuplexPorts(), 1, 1001)
		p := rapid.SampledFrom(opus.Policies).Draw(t, "policy")
		id := drawID(t, j, "id")
		m := must[opus.Matching](t)(opus.Build(j, id, p))
		stage := rapid.IntRange(0, j.Stages-1).Draw(t, "stage")
		axis := rapid.IntRange(0, len(j.Axes)).Draw(t, "axis")
		rank := stage*j.RanksPerStage() + rapid.IntRange(0, j.RanksPerStage()-1).Draw(t, "place")
		g := j.GroupOf(rank, axis)
		next, join := id, []opus.Circuit(nil)
		switch {
		case axis != opus.PP:
			next, join = id.Symmetrical(stage, axis), j.GroupCircuits(g)
		case stage+1 < j.Stages:
			next, join = id.Transfer(stage), j.TransferCircuits(g, stage, false)
		}
		part := rapid.SliceOfN(rapid.IntRange(0, j.DuplexPorts()-1), 0, 2).Draw(t, "part")

		got, removed, added, err := m.With(join, part)
		if err != nil {
			t.Fatal(err)
		}
		checkMatching(t, j, got, a)
		for _, c := range join {
			if peer, ok := got.Peer(c.A); !ok || peer != c.B {
				t.Fatalf("%v is not joined in %v", c, got)
			}
		}
		// removed and added are the difference.
		var want [2][]opus.Circuit
		for c := range m.Circuits() {
			if peer, _ := got.Peer(c.A); peer != c.B {
				want[0] = append(want[0], c)
			}
		}
		for c := range got.Circuits() {
			if peer, _ := m.Peer(c.A); peer != c.B {
				want[1] = append(want[1], c)
			}
		}
		if diff := cmp.Diff(want, [2][]opus.Circuit{removed, added}); diff != "" {
			t.Fatalf("removed and added (-want +got):\n%s", diff)
		}
		if len(part) > 0 {
			return
		}
		asked := must[opus.Delta](t)(m.Delta(got, a)).Ports
		digit := must[opus.Delta](t)(m.Delta(must[opus.Matching](t)(opus.Build(j, next, p)), a)).Ports
		if len(asked) > len(digit) && p != opus.Pair && p != opus.Ring {
			t.Fatalf("circuits of %s move ports %v, the digit %v", g, asked, digit)
		}
		if axis != opus.PP {
			for _, q := range asked {
				if !slices.Contains(digit, q) {
					t.Fatalf("circuits of %s move port %d, and the digit does not", g, q)
				}
			}
		}
	})
}

func TestProperty_Forms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		id := drawID(t, j, "id")
		if back := must[opus.ID](t)(j.ParseID(id.String())); !slices.Equal(back, id) {
			t.Fatalf("%s is read as %s", id, back)
		}
		seen := map[string]bool{}
		for axis := range len(j.Axes) + 1 {
			ranks := map[int]bool{}
			for _, g := range j.Groups(axis) {
				found, ok := j.FindGroup(g.Name)
				if diff := cmp.Diff(g, found); !ok || diff != "" || seen[g.Name] {
					t.Fatalf("%s: %v (-want +got):\n%s", g, ok, diff)
				}
				seen[g.Name] = true
				for i, x := range g.Members {
					if ranks[x] || j.Coordinate(x, axis) != i {
						t.Fatalf("rank %d is twice in an axis, or in the wrong place of %s", x, g)
					}
					ranks[x] = true
				}
			}
			if len(ranks) != j.Ranks() {
				t.Fatalf("axis %d has %d of %d ranks", axis, len(ranks), j.Ranks())
			}
		}
		if len(seen) != j.GroupCount() {
			t.Fatalf("%d groups, and GroupCount says %d", len(seen), j.GroupCount())
		}
	})
}
