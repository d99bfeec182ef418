package runs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
)

// killedPoints is how many points the run has that is killed all the time.
const killedPoints = 150

// TestMain is also the process that writes until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("RUNS_TEST_WRITER"); dir != "" {
		ops, _ := strconv.Atoi(os.Getenv("RUNS_TEST_OPS"))
		part, _ := strconv.ParseFloat(os.Getenv("RUNS_TEST_PART"), 64)
		if err := writer(dir, &deadly{ops: ops, part: part}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// deadly kills its own process in the middle of one of its operations. A kill from outside
// hardly ever hits one.
type deadly struct {
	ops  int     // operations until then; negative: never
	part float64 // of the last write that is still done
}

type deadlyDisk struct {
	runs.Disk
	*deadly
}

// due reports whether this operation is the last.
func (d *deadly) due() bool {
	d.ops--
	return d.ops == -1
}

func die() {
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		panic(err)
	}
	_ = p.Kill()
	select {} // until the signal is there
}

func (d deadlyDisk) WriteAt(b []byte, at int64) (int, error) {
	if d.due() {
		_, _ = d.Disk.WriteAt(b[:int(d.part*float64(len(b)))], at)
		die()
	}
	return d.Disk.WriteAt(b, at)
}

// Sync does nothing: what the kernel has, a kill does not take away.
func (d deadlyDisk) Sync() error {
	if d.due() {
		die()
	}
	return nil
}

// writer goes on with the one run in dir, or begins it, and says after each step on standard
// output what it has done.
func writer(dir string, d *deadly) error {
	ctx := context.Background()
	s, err := runs.Open(dir)
	if err != nil {
		return err
	}
	// No index: it would take most of the time, and is another test's.
	s.SetRemote(func(string) string { return "test" })
	s.SetDisk(func(path string) (runs.Disk, error) {
		real, err := runs.OpenDisk(path)
		return deadlyDisk{real, d}, err
	})
	plan := planned(killedPoints)
	done := map[int]bool{}
	id, err := s.Find(ctx, "last")
	var w *runs.Writer
	if errors.Is(err, runs.ErrUnknown) {
		w, err = s.Create(ctx, runs.Creation{Meta: runs.Meta{Name: "killed"}, Plan: plan})
	} else if err == nil {
		var r *runs.Run
		if w, r, err = s.Resume(ctx, id); err == nil {
			done = r.Done
		}
	}
	if err != nil {
		return err
	}
	fmt.Println("open", w.ID())
	if _, err := w.Session(runs.Session{}); err != nil {
		return err
	}
	fmt.Println("session")
	for _, p := range plan.Points {
		if done[p.ID] {
			continue
		}
		if n, _ := os.Stdin.Read(make([]byte, 1)); n == 0 {
			time.Sleep(time.Minute) // is killed
		}
		if p.ID%10 == 0 { // not all that is written is a point
			if err := w.Event(runs.Event{Kind: "hook", Point: p.ID, Text: "called"}); err != nil {
				return err
			}
		}
		if err := write(w, p, plan.Seed); err != nil {
			return err
		}
		fmt.Println("done", p.ID)
	}
	if err := w.Finish(runs.Summary{State: runs.Done}); err != nil {
		return err
	}
	fmt.Println("finished")
	return w.Close()
}

// life runs a writer until it dies: after that many lines by our hand, and then not many more
// points, or by its own. It returns the points that it said were done.
func life(t *testing.T, dir string, lines, ops int, part float64) (done []int, finished bool) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "RUNS_TEST_WRITER="+dir, fmt.Sprint("RUNS_TEST_OPS=", ops), fmt.Sprint("RUNS_TEST_PART=", part))
	child.Stdin = strings.NewReader(strings.Repeat(".", killedPoints))
	if lines >= 0 {
		child.Stdin = strings.NewReader(strings.Repeat(".", lines+2))
	}
	var stderr strings.Builder
	child.Stderr = &stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(stdout); ; lines-- {
		if lines == 0 {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if !in.Scan() {
			break
		}
		var id int
		if n, _ := fmt.Sscanf(in.Text(), "done %d", &id); n == 1 {
			done = append(done, id)
		}
		finished = finished || in.Text() == "finished"
	}
	_ = child.Wait() // it was killed
	if stderr.Len() > 0 {
		t.Fatal(stderr.String())
	}
	return done, finished
}

// Ensure that a process killed at any of 200 random moments loses nothing but the point it was
// at, and that in the end the run has the points of its plan, each as it was measured.
func TestWriter_Killed(t *testing.T) {
	t.Parallel()
	const stores = 4 // at the same time
	kills := 200 / stores
	if testing.Short() {
		kills = 10
	}
	for n := range stores {
		t.Run(fmt.Sprint("Store", n), func(t *testing.T) {
			t.Parallel()
			killWriters(t, rand.New(rand.NewPCG(20261122, uint64(n))), kills)
		})
	}
}

// killWriters kills that many processes that write one run, one after the other.
func killWriters(t *testing.T, rng *rand.Rand, kills int) {
	dir := tempDir(t)
	s := open(t, dir)
	s.SetRemote(func(string) string { return "test" })
	done := map[int]bool{}
	id := ""
	// look checks what there is.
	look := func(said []int) *runs.Run {
		for _, n := range said {
			if done[n] {
				t.Errorf("point %d was done twice", n)
			}
			done[n] = true
		}
		if id == "" {
			var err error
			if id, err = s.Find(t.Context(), "last"); errors.Is(err, runs.ErrUnknown) {
				return nil // it did not come so far
			} else if err != nil {
				t.Fatal(err)
			}
		}
		r := load(t, s, id)
		for n := range r.Done { // it may not have come to say so
			done[n] = true
		}
		var ids []int
		for n := range done {
			ids = append(ids, n)
		}
		check(t, r, ids...)
		return r
	}
	for range kills {
		lines, ops := -1, -1
		if rng.IntN(3) == 0 {
			lines = rng.IntN(6)
		} else {
			ops = rng.IntN(12)
		}
		said, finished := life(t, dir, lines, ops, rng.Float64())
		if finished {
			t.Fatal("the run was over before it was killed often enough: it needs more points")
		}
		look(said)
		if t.Failed() {
			t.FailNow()
		}
	}
	before := len(done)
	said, finished := life(t, dir, -1, -1, 0)
	r := look(said)
	if !finished || r.State != runs.Done || len(r.Done) != killedPoints || r.Summary.Points != killedPoints {
		t.Errorf("in the end: finished=%t state=%s points=%d summary=%+v", finished, r.State, len(r.Done), r.Summary)
	}
	torn, err := filepath.Glob(filepath.Join(s.Dir(id), "*.torn-*"))
	if err != nil || len(torn) == 0 {
		t.Errorf("no write was torn, so that was not tested: %v", err)
	}
	t.Logf("%d kills, %d sessions, %d writes torn; %d points before the last session", kills, len(r.Sessions), len(torn), before)
}
