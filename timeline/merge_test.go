package timeline_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

// up is a carrier-up of one subject in reconfiguration 1.
func up(source string, earliest, latest int64) timeline.Mark {
	return timeline.Mark{
		Stage: timeline.CarrierUp, Subject: "gpu1/ens1f0", Host: "gpu1",
		Interval: timeline.Between(earliest, latest), Source: source, Reconfiguration: 1,
	}
}

func TestMerge(t *testing.T) {
	detailed := func(m timeline.Mark, detail string) timeline.Mark { m.Detail = detail; return m }
	type pairs [][2]timeline.Mark
	for _, tc := range []struct {
		name      string
		in, want  []timeline.Mark
		conflicts pairs
	}{
		{name: "Nothing"},
		{
			name: "Overlap",
			in:   []timeline.Mark{detailed(up("netlink", 5, 20), "late"), detailed(up("counters", 0, 10), "k=1")},
			want: []timeline.Mark{detailed(up("counters+netlink", 5, 10), "k=1; late")},
		},
		{
			name: "Touching",
			in:   []timeline.Mark{up("netlink", 10, 20), up("counters", 0, 10)},
			want: []timeline.Mark{up("counters+netlink", 10, 10)},
		},
		{
			name:      "Contradiction",
			in:        []timeline.Mark{up("netlink", 12, 20), up("counters", 0, 10)},
			want:      []timeline.Mark{up("counters", 0, 10), up("netlink", 12, 20)},
			conflicts: pairs{{up("counters", 0, 10), up("netlink", 12, 20)}},
		},
		{
			name: "Flap",
			in:   []timeline.Mark{up("counters", 0, 10), up("counters", 50, 60), up("netlink", 8, 9)},
			want: []timeline.Mark{up("counters+netlink", 8, 9), up("counters", 50, 60)},
		},
		{
			name:      "Chain",
			in:        []timeline.Mark{up("c", 15, 30), up("b", 8, 20), up("a", 0, 10)},
			want:      []timeline.Mark{up("a+b", 8, 10), up("c", 15, 30)},
			conflicts: pairs{{up("a+b", 8, 10), up("c", 15, 30)}},
		},
		{
			name: "OtherHost",
			in: []timeline.Mark{up("counters", 0, 10), func() timeline.Mark {
				m := up("counters", 0, 10)
				m.Host = "gpu0"
				return m
			}()},
			want: []timeline.Mark{func() timeline.Mark {
				m := up("counters", 0, 10)
				m.Host = "gpu0"
				return m
			}(), up("counters", 0, 10)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, conflicts := timeline.Merge(tc.in)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("merged (-want +got):\n%s", d)
			}
			var gotPairs pairs
			for _, c := range conflicts {
				gotPairs = append(gotPairs, [2]timeline.Mark{c.First, c.Second})
			}
			if d := cmp.Diff(tc.conflicts, gotPairs); d != "" {
				t.Errorf("conflicts (-want +got):\n%s", d)
			}
		})
	}
}

func TestMerge_Order(t *testing.T) {
	at := func(ns int64, stage timeline.Stage, subject string) timeline.Mark {
		return timeline.Mark{Stage: stage, Subject: subject, Interval: timeline.Point(ns)}
	}
	want := []timeline.Mark{
		at(1, timeline.Traffic, "a"), at(2, timeline.Ack, "b"), at(2, timeline.Light, "a"), at(2, timeline.Light, "b"),
	}
	in := slices.Clone(want)
	slices.Reverse(in)
	got, _ := timeline.Merge(in[:2], in[2:])
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestConflict_Error(t *testing.T) {
	_, conflicts := timeline.Merge([]timeline.Mark{up("counters", 0, 10)}, []timeline.Mark{up("netlink", 1_000_010, 1_000_020)})
	if len(conflicts) != 1 {
		t.Fatalf("%d conflicts, want 1", len(conflicts))
	}
	const want = "timeline: reconfiguration 1: carrier-up of gpu1/ens1f0: counters and netlink disagree by 1ms"
	if got := conflicts[0].Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMerge_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks := rapid.SliceOfN(anyMark, 0, 25).Draw(t, "marks")
		if rapid.Bool().Draw(t, "crowded") { // so that identities collide
			for i := range marks {
				marks[i].Stage, marks[i].Subject, marks[i].Host = timeline.Light, "p", "h"
			}
		}
		input := slices.Clone(marks)
		merged, conflicts := timeline.Merge(marks)
		if !slices.Equal(input, marks) {
			t.Fatal("the input was changed")
		}

		same := func(name string, gotMarks []timeline.Mark, gotConflicts []timeline.Conflict) {
			if d := cmp.Diff(merged, gotMarks); d != "" {
				t.Fatalf("%s: marks (-want +got):\n%s", name, d)
			}
			if d := cmp.Diff(conflicts, gotConflicts); d != "" {
				t.Fatalf("%s: conflicts (-want +got):\n%s", name, d)
			}
		}
		again, c := timeline.Merge(merged)
		same("idempotent", again, c)
		again, c = timeline.Merge(merged, marks)
		same("absorbing", again, c)
		shuffled := rapid.Permutation(marks).Draw(t, "shuffled")
		cut := rapid.IntRange(0, len(shuffled)).Draw(t, "cut")
		again, c = timeline.Merge(shuffled[cut:], shuffled[:cut])
		same("order-free", again, c)

		for _, m := range marks { // none is lost
			kept := slices.ContainsFunc(merged, func(r timeline.Mark) bool {
				return r.Stage == m.Stage && r.Subject == m.Subject && r.Host == m.Host &&
					r.Reconfiguration == m.Reconfiguration && m.Earliest <= r.Earliest && r.Latest <= m.Latest
			})
			if !kept {
				t.Fatalf("lost %+v", m)
			}
		}
		for _, c := range conflicts {
			if !c.First.Before(c.Second.Interval) {
				t.Fatalf("no conflict: %v", c)
			}
		}
	})
}
