package replay_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/replay"
	"github.com/ocslab/ocslab/topology/opus"
)

// circuits are those between the first and the second duplex port, the third and the fourth, and so on.
func circuits(ports ...int) (all []opus.Circuit) {
	for i := 0; i < len(ports); i += 2 {
		all = append(all, opus.Circuit{A: ports[i], B: ports[i+1]})
	}
	return all
}

func TestRoute(t *testing.T) {
	figure8 := opus.Job{Stages: 3, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	four := opus.Job{Stages: 1, Axes: []opus.Axis{{Name: "dp", Size: 4}}}
	wide := opus.Job{Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 3}}, Ports: 4}
	for _, x := range []struct {
		name                   string
		job                    opus.Job
		rank, axis, way, lanes int
		result                 proto.Result
		uses                   []opus.Circuit
		slowdown               float64
	}{
		{"both ports to the other", labJob, 0, 1, 0, 0, proto.NoOp, circuits(0, 3, 1, 2), 1},
		{"transfer down", labJob, 0, 0, 0, 1, proto.Applied, circuits(1, 4), 2},
		{"transfer down, closed", labJob, 0, 0, 0, 2, proto.Applied, circuits(0, 5, 1, 4), 1},
		{"transfer up", labJob, 3, 0, 0, 1, "", circuits(3, 6), 2},
		{"second pair of stages", figure8, 4, 0, 1, 1, "", circuits(9, 16), 2},
		{"ring of four", four, 1, 1, 0, 0, "", circuits(1, 2, 3, 4), 1},
		{"four ports", wide, 0, 1, 0, 0, "", circuits(0, 9, 1, 4, 2, 11, 3, 6), 1},
		{"transfer, four ports", wide, 0, 0, 0, 2, "", circuits(1, 12, 3, 14), 2},
		{"transfer, four ports, closed", wide, 0, 0, 0, 4, "", circuits(0, 13, 1, 12, 2, 15, 3, 14), 1},
		// The giant ring 0-1-3-2: one circuit to each neighbour instead of two.
		{"dp on the ring", labJob, 0, 1, 0, 0, proto.OnRing, circuits(1, 2), 2},
		{"pp on the ring", labJob, 1, 0, 0, 0, proto.OnRing, circuits(3, 6), 2},
		{"itself the ring", four, 1, 1, 0, 0, proto.OnRing, circuits(1, 2, 3, 4), 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			uses, slowdown, err := replay.Route(x.job, x.rank, x.axis, x.way, x.lanes, x.result)
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(uses, func(a, b opus.Circuit) int { return a.A - b.A })
			if diff := cmp.Diff(x.uses, uses); diff != "" || slowdown != x.slowdown {
				t.Errorf("slowdown %v, want %v; uses (-want +got):\n%s", slowdown, x.slowdown, diff)
			}
		})
	}
}

// Property: on the giant ring an operation uses circuits of it only, and by them reaches its neighbours in the group
// in as few hops as there are.
func TestRoute_Ring(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := opus.Job{
			Stages: rapid.IntRange(1, 4).Draw(t, "stages"), Ports: rapid.SampledFrom([]int{2, 4}).Draw(t, "ports"),
			Axes: []opus.Axis{{Name: "dp", Size: rapid.IntRange(1, 4).Draw(t, "dp")}, {Name: "cp", Size: rapid.IntRange(1, 3).Draw(t, "cp")}},
		}
		rank, axis, way := rapid.IntRange(0, j.Ranks()-1).Draw(t, "rank"), rapid.IntRange(0, 2).Draw(t, "axis"), 0
		partners := []int{}
		g := j.GroupOf(rank, axis)
		at, n := slices.Index(g.Members, rank), len(g.Members)
		switch {
		case n == 1:
		case axis == opus.PP:
			way = max(at-1, 0)
			partners = append(partners, g.Members[2*way+1-at])
		default:
			partners = append(partners, g.Members[(at+1)%n], g.Members[(at+n-1)%n])
		}
		uses, slowdown, err := replay.Route(j, rank, axis, way, 0, proto.OnRing)
		if err != nil || slowdown < 1 {
			t.Fatalf("slowdown %v, %v", slowdown, err)
		}
		ring, err := opus.GiantRing(j)
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Collect(ring.Circuits())
		for i, c := range uses {
			if !slices.Contains(all, c) || slices.Contains(uses[:i], c) {
				t.Fatalf("%v of %v is not on the ring %v, or there twice", c, uses, all)
			}
		}
		only, err := opus.NewMatching(j, uses...)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range partners {
			got, ok := only.Hops(j, rank, p)
			want, _ := ring.Hops(j, rank, p)
			if !ok || got != want {
				t.Fatalf("from %d to %d by %v: %d hops, %v; want %d", rank, p, uses, got, ok, want)
			}
		}
	})
}
