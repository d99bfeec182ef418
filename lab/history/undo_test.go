package history_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

// Ensure that one undo takes back a group of several changes of one device, also those whose outcome is not known and
// that took effect, did not, or did so by half.
func TestPlanUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 5
		draw := func(label string) ocs.Map {
			var circuits []ocs.CrossConnect
			for i, e := range rapid.Permutation(ocs.TwoSided(n, n).EgressPorts()).Draw(t, label) {
				if rapid.Bool().Draw(t, "there") {
					circuits = append(circuits, ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: e})
				}
			}
			return ocs.MustMap(circuits...)
		}
		before := draw("before")
		have := before
		var entries []history.Entry
		for i := range rapid.IntRange(1, 6).Draw(t, "changes") {
			c := ocs.Diff(have, draw("want"))
			if c.Empty() {
				continue
			}
			e := history.Entry{ID: i + 1, Device: device, Group: 1, Change: c, State: history.Done}
			removed, added := true, true
			switch rapid.SampledFrom([]string{"done", "done", "failed", "pending", "unverified"}).Draw(t, "outcome") {
			case "failed":
				e.State, removed, added = history.Failed, false, false
			case "pending":
				e.State = history.Pending
				removed = rapid.Bool().Draw(t, "removed")
				added = removed && rapid.Bool().Draw(t, "added")
			case "unverified":
				e.State, added = history.Unverified, rapid.Bool().Draw(t, "added")
			}
			if removed {
				have = have.Minus(c.Remove)
			}
			if added {
				have = must(have.Plus(c.Add))
			}
			entries = append(entries, e)
		}
		if len(entries) == 0 {
			return
		}
		back, err := history.PlanUndo(have, history.Together(entries, entries[0]))
		if err != nil {
			t.Fatalf("%v holds %v: %v", entries, have, err)
		}
		if got := must(have.Minus(back.Remove).Plus(back.Add)); !got.Equal(before) && entries[0].State != history.Failed {
			t.Fatalf("undo leads to %v, want %v; changes %v", got, before, entries)
		}
	})
}

func must(m ocs.Map, err error) ocs.Map {
	if err != nil {
		panic(err)
	}
	return m
}

// Ensure that the undo of a group leaves alone what other users did in between.
func TestPlanUndo_Others(t *testing.T) {
	entry := func(c string, s history.State) history.Entry {
		return history.Entry{Device: device, Group: 1, Change: change(c), State: s}
	}
	for _, tc := range []struct {
		name, have string
		entries    []history.Entry
		want       string
	}{
		{"made again by another user", "1>9", []history.Entry{entry("/1>9", history.Done), entry("1>9/", history.Done)}, "/"},
		{"removed by another user", "", []history.Entry{entry("/1>9,2>10", history.Done)}, "/"},
		{"the removal was not sent", "1>9", []history.Entry{entry("/1>9", history.Done), entry("1>9/", history.Pending)}, "1>9/"},
		{"the last was not sent", "1>9", []history.Entry{entry("/1>9", history.Done), entry("1>9/1>10", history.Pending)}, "1>9/"},
		{"the last was sent", "1>10", []history.Entry{entry("/1>9", history.Done), entry("1>9/1>10", history.Pending)}, "1>10/"},
		{"moved away", "1>11", []history.Entry{entry("1>9/1>10", history.Done)}, "busy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			have, err := ocs.ParseMap(tc.have)
			if err != nil {
				t.Fatal(err)
			}
			got, err := history.PlanUndo(have, tc.entries)
			if tc.want == "busy" {
				if err == nil {
					t.Errorf("got %v, want an error", got)
				}
				return
			}
			if want := change(tc.want); err != nil || !got.Remove.Equal(want.Remove) || !got.Add.Equal(want.Add) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		})
	}
}
