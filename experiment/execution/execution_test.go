package execution_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

const brief = `name: brief
sequence: [dp, pp]
parameters: {firmware: quick, switching: 0ms}
repeats: 2
warm_ups: 0
nulls: {count: 0}
wait: settled
measure: {traffic: false}
finally: {light: restore}
`

// begin returns what it takes to begin a run on a lab file of its own.
func begin(t *testing.T) (execution.Options, execution.Creation) {
	t.Helper()
	dir := t.TempDir()
	store, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(path, examples.OpusTestbed, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := lab.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := plan.Parse(filepath.Join(dir, "brief.yaml"), []byte(brief))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Resolve(l, plan.Options{Emulated: true})
	if err != nil {
		t.Fatal(err)
	}
	opt := execution.Options{Store: store, Lab: lab.Options{Emulated: true, StateDir: dir, Command: "run brief.yaml"}, Version: "1"}
	return opt, execution.Creation{File: f, Lab: l, LabText: examples.OpusTestbed, Plan: p, Mode: ocs.Safe, Rung: "memory", Command: []string{"run", "brief.yaml"}}
}

// Ensure that a run can be begun, stopped, gone on with in a lab whose file has changed, which is
// recorded, and that nothing is left then.
func TestExecution(t *testing.T) {
	opt, c := begin(t)
	x, err := execution.Begin(t.Context(), opt, c)
	if err != nil {
		t.Fatal(err)
	}
	id := x.Writer.ID()
	r := x.Runner(x.Writer)
	r.Stop() // before the first point
	if _, err := r.Run(t.Context()); !errors.Is(err, runner.ErrStop) {
		t.Fatalf("stopped: %v", err)
	}
	if err := os.WriteFile(c.Lab.Path, append(slices.Clone(examples.OpusTestbed), "# later\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	opt.Lab.Emulated = false // the run knows better
	if x, err = execution.Resume(t.Context(), opt, id); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(x.Changed, "has changed since the run began") {
		t.Errorf("the lab file: %q", x.Changed)
	}
	if _, err := x.Runner(x.Writer).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, err := opt.Store.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if done.State != runs.Done || len(done.Done) != 2 || len(done.Sessions) != 2 {
		t.Errorf("%s, %d points in %d sessions", done.State, len(done.Done), len(done.Sessions))
	}
	if !slices.ContainsFunc(done.Events, func(e runs.Event) bool { return e.Kind == "lab-changed" && e.Session == 2 }) {
		t.Errorf("that the lab has changed is not among %+v", done.Events)
	}
	if err := execution.Left(done); !errors.Is(err, execution.ErrNothingLeft) {
		t.Errorf("left: %v", err)
	}
	done.Dropped, done.Done = map[int]bool{2: true}, map[int]bool{1: true}
	if err := execution.Left(done); !errors.Is(err, execution.ErrNothingLeft) {
		t.Errorf("a point was not needed: %v", err)
	}
	done.Dropped = nil
	if err := execution.Left(done); err != nil {
		t.Errorf("a point is left: %v", err)
	}
}

// Ensure that a run which cannot begin is none.
func TestBegin_Refused(t *testing.T) {
	opt, c := begin(t)
	open := lab.New(c.Lab, opt.Lab)
	sw, err := open.Switch(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := ocs.ParseMap("1>40")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ocs.Reconcile(t.Context(), sw, foreign, ocs.Overwrite); err != nil {
		t.Fatal(err)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := execution.Begin(t.Context(), opt, c); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("with a foreign circuit in the way: %v", err)
	}
	if list, err := opt.Store.List(t.Context(), runs.Filter{}); err != nil || len(list) > 0 {
		t.Errorf("%d runs, %v", len(list), err)
	}
	c.Mode = ocs.Update
	x, err := execution.Begin(t.Context(), opt, c)
	if err != nil {
		t.Fatalf("when it may be moved: %v", err)
	}
	if err := x.Writer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := execution.Resume(t.Context(), opt, "20000101T000000-none-0000"); !errors.Is(err, runs.ErrUnknown) {
		t.Errorf("what is not there: %v", err)
	}
}
