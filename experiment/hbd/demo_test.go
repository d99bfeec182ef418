package hbd

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// demo gives the demonstration, and returns its stages by name, its store, and the state directory.
func demo(t testing.TB, model string) (map[string]DemoStage, *runs.Store, string) {
	t.Helper()
	dir := t.TempDir()
	store, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	line := lineOf(t, 8, 2)
	stages := map[string]DemoStage{}
	if err := Demo(t.Context(), DemoOptions{
		Options: Options{Store: store}, Lab: lab.Options{StateDir: dir, Command: "demo infinitehbd"}, Model: model, Seed: 1,
		Trace: []Event{{time.Hour, 3, true}, {2 * time.Hour, 3, false}}, TraceLine: line, TraceSize: 2, TraceFor: 3 * time.Hour,
		Tell: func(s DemoStage) {
			stages[s.Name] = s
			t.Log(s.Name, s.Title)
			for _, l := range s.Lines {
				t.Log("  ", l)
			}
		},
	}); err != nil {
		t.Fatal(err)
	}
	return stages, store, dir
}

// Ensure the demonstration shows what is known of it: bundles switched by either plan, the break with 2 hops and none with
// 3, the boundaries of a resize, the swapped cables; and that its runs are in the store with their light, and all it changed in the history.
func TestDemo(t *testing.T) {
	stages, store, dir := demo(t, OneModule)
	entries, _, err := lab.Files(dir).Entries()
	if err != nil || len(entries) < 32 || entries[0].Command != "demo infinitehbd" {
		t.Errorf("history: %d changes, %v", len(entries), err)
	}
	if r := stages["program"].Report; r.Bundles != 32 || len(r.Groups) != 8 || len(r.Walk.Rings) != 8 {
		t.Errorf("program: %d bundles, %d groups, %d rings", r.Bundles, len(r.Groups), len(r.Walk.Rings))
	}
	for _, tt := range []struct {
		name                            string
		bundles, rings, lost, untouched int
	}{
		{"bypass-cut", 20, 7, 1, 2}, {"bypass", 1, 7, 1, 7}, {"break", 1, 6, 1, 6}, {"three-hops-10", 3, 7, 1, 6},
	} {
		b := stages[tt.name].Bypass
		if b == nil {
			t.Errorf("%s is missing", tt.name)
			continue
		}
		if got := []int{b.Report.Bundles, len(b.Plan.Groups()), len(b.Lost), len(b.Kept)}; got[0] != tt.bundles ||
			got[1] != tt.rings || got[2] != tt.lost || got[3] != tt.untouched {
			t.Errorf("%s: bundles, rings, lost, untouched %v, want %+v", tt.name, got, tt)
		}
	}
	for name, rings := range map[string]int{"tp-16": 4, "tp-8": 8} {
		if r := stages[name].Report; r.Bundles != 8 || len(r.Walk.Rings) != rings {
			t.Errorf("%s: %d bundles, %d rings", name, r.Bundles, len(r.Walk.Rings))
		}
	}
	if c := stages["cables"].Cabling; len(c.Text) != 1 || len(c.Wrong) != 4*lanes {
		t.Errorf("cables: %q, %d wrong", c.Text, len(c.Wrong))
	}
	if r := stages["trace"].Replayed; r.Plans != 3 || len(r.Wear) != 16 {
		t.Errorf("trace: %+v", r)
	}
	list, err := store.List(t.Context(), runs.Filter{Name: "bypass-cut"})
	if err != nil || len(list) != 1 || list[0].State != runs.Done {
		t.Fatalf("runs: %+v, %v", list, err)
	}
	run, err := store.Load(t.Context(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Reconfigurations) != 1 || len(run.Marks) < 20*lanes || len(run.Expected) != 20*lanes || len(run.Setups) != 1 {
		t.Errorf("the run has %d reconfigurations, %d marks, %d expected", len(run.Reconfigurations), len(run.Marks), len(run.Expected))
	}
	for _, e := range run.Events {
		if e.Kind == "recovered" || e.Kind == "skipped" {
			t.Error(e.Text)
		}
	}
}

// BenchmarkDemo is the whole demonstration on 256 modules.
func BenchmarkDemo(b *testing.B) {
	for b.Loop() {
		demo(b, EightModules)
	}
}

// BenchmarkReplay is 348 days of 800 nodes, one module to a bundle.
func BenchmarkReplay(b *testing.B) {
	line := lineOf(b, 800, 2)
	events := trace(800, 348*24*time.Hour)
	for b.Loop() {
		r, err := Replay(b.Context(), events, ReplayOptions{Line: line, Size: 8, For: 348 * 24 * time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(r.Speed(), "x-time")
		b.ReportMetric(r.MeanPerYear, "switches/year")
	}
}

// trace returns about one failure of each node in a while, of up to ten days.
func trace(nodes int, end time.Duration) (events []Event) {
	for n := range nodes {
		at := time.Duration(n*7919%nodes) * (end / time.Duration(nodes))
		back := at + time.Duration(1+n%240)*time.Hour
		if back < end {
			events = append(events, Event{at, infinitehbd.Node(n + 1), true}, Event{back, infinitehbd.Node(n + 1), false})
		}
	}
	return events
}
