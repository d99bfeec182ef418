package runner_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

const leakExperiment = `name: leak
sequence: [dp, pp]
parameters: {firmware: quick}
finally: {light: restore}
`

// Ensure that set-ups leave neither files nor goroutines open, since a run may have hundreds.
func TestLab_Leaks(t *testing.T) {
	f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		t.Fatal(err)
	}
	file, err := plan.Parse("leak.yaml", []byte(leakExperiment))
	if err != nil {
		t.Fatal(err)
	}
	p, err := file.Resolve(f, plan.Options{Emulated: true})
	if err != nil {
		t.Fatal(err)
	}
	l := runner.NewLab(f, lab.Options{Emulated: true, StateDir: t.TempDir()}, p, file.Measure, ocs.Safe)
	l.Rung = fabric.Memory
	setUp := func() {
		t.Helper()
		if err := l.Find(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, err := l.Open(t.Context(), p.Conditions)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Light(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	const setUps = 5
	setUp() // some things are opened once
	files, routines := openFiles(t), runtime.NumGoroutine()
	for range setUps {
		setUp()
	}
	// What has been told to end may take a moment.
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		moreFiles, moreRoutines := openFiles(t)-files, runtime.NumGoroutine()-routines
		if moreFiles < setUps && moreRoutines < setUps {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %d set-ups %d more files are open, and %d more goroutines run", setUps, moreFiles, moreRoutines)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
