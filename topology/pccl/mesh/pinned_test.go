package mesh

import (
	"testing"

	"pgregory.net/rapid"
)

// Ensure circuits go around MZIs that are stuck or use them as they are, and that light finds its way with them so; and
// that an answer of impossible agrees with one that tries all.
func TestMesh_Pinned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := Grid(rapid.IntRange(2, 5).Draw(t, "rows"), rapid.IntRange(2, 5).Draw(t, "columns"))
		if err != nil {
			t.Fatal(err)
		}
		stuck := rapid.MapOfN(rapid.IntRange(0, m.Nodes()-1), rapid.SampledFrom([]State{Bar, Cross, Third}), 0, 6).Draw(t, "stuck")
		requests, err := m.RandomPairs(rapid.IntRange(1, 2).Draw(t, "pairs"), rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		layout := m.Pinned(nil, stuck)
		r, err := m.Route(t.Context(), requests, Options{Strict: true, Layout: layout})
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != Routed {
			if r.Verdict == NotFound {
				t.Fatalf("a mesh of %d nodes is small enough to be sure", m.Nodes())
			}
			return
		}
		set := *r.Setting
		for n, s := range stuck {
			if s != Third {
				set.States[n] = s // whatever was asked for
			}
		}
		if faults := m.Check(requests, &set, nil); len(faults) > 0 {
			t.Errorf("with %v stuck: %v", stuck, faults)
		}
		for _, c := range r.Circuits {
			for _, n := range c.Nodes[1 : len(c.Nodes)-1] {
				if stuck[n] == Third {
					t.Errorf("%v crosses node %d, which has no state", c.Nodes, n)
				}
			}
		}
	})
}

// Ensure a mesh in which every way is stuck is told to be impossible, and by what.
func TestMesh_Pinned_Impossible(t *testing.T) {
	m, err := Grid(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		stuck State
		want  Verdict
	}{{Bar, Routed}, {Cross, Impossible}, {Third, Impossible}} {
		r, err := m.Route(t.Context(), []Request{{Src: 0, Dst: 2}}, Options{Strict: true, Layout: m.Pinned(nil, map[int]State{1: tt.stuck})})
		if err != nil || r.Verdict != tt.want {
			t.Errorf("node 1 stuck in %v: %v, %v; want %v", tt.stuck, r.Verdict, err, tt.want)
		}
	}
}
