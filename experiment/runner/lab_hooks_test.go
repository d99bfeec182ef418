package runner_test

import (
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

const hooksExperiment = `name: hooks
sequence: [dp, pp]
parameters: {firmware: quick}
measure: {traffic: false}
finally: {light: restore}
`

// Ensure that who looks on is told of each Move, also of one that fails, and of what the watch
// sees meanwhile.
func TestLab_LooksOn(t *testing.T) {
	f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		t.Fatal(err)
	}
	file, err := plan.Parse("hooks.yaml", []byte(hooksExperiment))
	if err != nil {
		t.Fatal(err)
	}
	p, err := file.Resolve(f, plan.Options{Emulated: true})
	if err != nil {
		t.Fatal(err)
	}
	l := runner.NewLab(f, lab.Options{Emulated: true, StateDir: t.TempDir()}, p, file.Measure, ocs.Safe)
	l.Rung = fabric.Memory
	var mu sync.Mutex
	seen := map[timeline.Stage]int{}
	l.Tap = func(r watch.Record) {
		mu.Lock()
		defer mu.Unlock()
		if r.Mark != nil {
			seen[r.Mark.Stage]++
		}
	}
	type told struct {
		to    map[string]ocs.Map
		moved experiment.Move
	}
	var moves []told
	l.Moved = func(to map[string]ocs.Map, mv experiment.Move) { moves = append(moves, told{to, mv}) }

	if err := l.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := l.Open(t.Context(), p.Conditions)
	if err != nil {
		t.Fatal(err)
	}
	c := p.Conditions[0]
	wait := plan.Wait{Until: plan.UntilCarrier}
	if _, err := b.Move(t.Context(), 0, c.Maps[0], wait); err != nil {
		t.Fatal(err)
	}
	mv, err := b.Move(t.Context(), 7, c.Maps[1], wait)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Null(t.Context(), 8, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if len(moves) != 2 {
		t.Fatalf("told of %d moves, want 2", len(moves))
	}
	for i, m := range moves {
		if want := c.Maps[i]["rail0"]; !m.to["rail0"].Equal(want) || !m.moved.Reports["rail0"].After.Equal(want) {
			t.Errorf("move %d: told of %v, which became %v, want %v", i, m.to, m.moved.Reports["rail0"].After, want)
		}
	}
	if len(moves[1].moved.Marks) != len(mv.Marks) || len(mv.Marks) == 0 {
		t.Errorf("told of %d marks, want %d", len(moves[1].moved.Marks), len(mv.Marks))
	}
	mu.Lock()
	defer mu.Unlock()
	nics := 0
	for _, h := range f.Hosts {
		nics += len(h.NICs)
	}
	if seen[timeline.CarrierDown] < nics || seen[timeline.CarrierUp] < nics {
		t.Errorf("the watch saw %v, want each of %d NICs go down and come up", seen, nics)
	}
}
