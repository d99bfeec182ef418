package runner_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/ocs"
)

// TestMain is also the process that works on a run until it is killed.
func TestMain(m *testing.M) {
	if state := os.Getenv("RUNNER_TEST_STATE"); state != "" {
		if err := work(state, os.Getenv("RUNNER_TEST_RUN")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work resumes a run of the store at state. The light is in a file there.
func work(state, id string) error {
	store, err := runs.Open(state)
	if err != nil {
		return err
	}
	writer, run, err := store.Resume(context.Background(), id)
	if err != nil {
		return err
	}
	fmt.Println("resumed")
	light := filepath.Join(state, "light")
	r := &runner.Runner{
		Plan: run.Plan, File: run.File, Writer: writer, Done: run.Done, Dropped: run.Dropped, Marks: run.Marks,
		Session: runs.Session{Found: asFound},
		Open: func(context.Context, []plan.Condition) (runner.Bench, error) {
			return &fileBench{bench{world: newWorld()}, light}, nil
		},
		Light: func(_ context.Context, want map[string]ocs.Map) error {
			if want == nil {
				want = asFound
			}
			return statedir.WriteFile(light, []byte(name(want)))
		},
	}
	_, err = r.Run(context.Background())
	return err
}

// fileBench moves light that is in a file.
type fileBench struct {
	bench
	light string
}

func (b *fileBench) Move(_ context.Context, number int, to map[string]ocs.Map, _ plan.Wait) (experiment.Move, error) {
	return seen(number), os.WriteFile(b.light, []byte(name(to)), 0o600)
}

func (b *fileBench) Null(_ context.Context, number int, _ time.Duration) (experiment.Move, error) {
	return seen(number), nil
}

const crashExperiment = `name: crash
sequence: [dp, pp]
finally: {light: restore}
`

// Ensure that after kill -9 at any moment a run can be resumed, that every point of the
// plan is recorded once in the end, whole, and that the light is where it should be.
func TestRunner_Killed(t *testing.T) {
	const stores = 2 // at the same time
	kills := 200 / stores
	if testing.Short() {
		kills = 10
	}
	for n := range stores {
		t.Run(fmt.Sprint("Store", n), func(t *testing.T) {
			t.Parallel()
			killRuns(t, rand.New(rand.NewPCG(20261122, uint64(n))), kills)
		})
	}
}

// killRuns makes runs in a store and kills who works on them, that often in all.
func killRuns(t *testing.T, rng *rand.Rand, kills int) {
	state := t.TempDir()
	store, err := runs.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(2, 5)
	p.Conditions[1].Setup = "another"
	for i := range p.Conditions {
		p.Conditions[i].Settings.Dwell = 0
	}
	killed, finished, most := 0, 0, 0
	for killed < kills {
		w, err := store.Create(t.Context(), runs.Creation{Meta: runs.Meta{Name: "crash"}, Experiment: []byte(crashExperiment), Plan: p})
		if err != nil {
			t.Fatal(err)
		}
		id := w.ID()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for ended := false; !ended; {
			var after time.Duration // never
			if killed < kills {
				after = time.Duration(rng.ExpFloat64() * float64(15*time.Millisecond))
			}
			if ended, err = workAndKill(state, id, after, rng.IntN(8) == 0); err != nil {
				t.Fatal(err)
			}
			if !ended {
				killed++
			}
			r, err := store.Load(t.Context(), id)
			if err != nil {
				t.Fatalf("after kill %d: %v", killed, err)
			}
			wholePoints(t, r)
			most = max(most, len(r.Sessions))
		}
		r, err := store.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Done) != len(p.Points) || r.State != runs.Done || r.Summary == nil || !r.Summary.Restored || r.Summary.Points != len(p.Points) {
			t.Errorf("%d of %d points are done, the run is %s, summary %+v", len(r.Done), len(p.Points), r.State, r.Summary)
		}
		if light, err := os.ReadFile(filepath.Join(state, "light")); err != nil || string(light) != "found" {
			t.Errorf("the light is at %q, error %v", light, err)
		}
		finished++
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills in %d runs of %d points, of at most %d sessions", killed, finished, len(p.Points), most)
}

// workAndKill lets a process work on a run and kills it, unless it is done sooner: that long
// after it has resumed the run, or after it was started. 0 does not kill it.
func workAndKill(state, id string, after time.Duration, atStart bool) (ended bool, err error) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "RUNNER_TEST_STATE="+state, "RUNNER_TEST_RUN="+id)
	var stderr strings.Builder
	child.Stderr = &stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := child.Start(); err != nil {
		return false, err
	}
	if after > 0 {
		if !atStart {
			_, _ = bufio.NewReader(stdout).ReadString('\n')
		}
		time.Sleep(after)
		_ = child.Process.Kill() // it may have ended
	}
	err = child.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && !exit.Exited() && stderr.Len() == 0:
		return false, nil
	}
	return false, fmt.Errorf("%w: %s", err, stderr.String())
}

// wholePoints sees that what is recorded is exactly the points that are done.
func wholePoints(t *testing.T, r *runs.Run) {
	t.Helper()
	var want, got []int
	marks := 0
	for _, p := range r.Plan.Points {
		if r.Done[p.ID] {
			for k := range p.Reconfigurations(r.Plan.Condition(p.Condition)) {
				want = append(want, p.First+k)
				marks += 3
			}
		}
	}
	for _, x := range r.Reconfigurations {
		got = append(got, x.Number)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) || len(r.Marks) != marks {
		t.Errorf("reconfigurations %v with %d marks are recorded, want %v with %d", got, len(r.Marks), want, marks)
	}
}
