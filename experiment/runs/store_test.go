package runs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
)

// three makes three runs: a done one, one that is interrupted after two points, and one that
// is running, in this order.
func three(t *testing.T, s *runs.Store) (done, interrupted, running *runs.Writer) {
	t.Helper()
	at, mono := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), int64(1)
	s.SetClock(func() (time.Time, int64) { return at, mono })
	make := func(name, lab string) *runs.Writer {
		at, mono = at.Add(time.Hour), mono+int64(time.Hour)
		w, err := s.Create(t.Context(), runs.Creation{Meta: runs.Meta{Name: name, Lab: lab, Figure: "fig-" + lab}, Plan: planned(3)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	done = make("autoneg", "opus")
	points(t, done, planned(3), 1, 2, 3)
	if err := done.Finish(runs.Summary{State: runs.Done, Verdict: "pass"}); err != nil {
		t.Fatal(err)
	}
	done.Close()
	interrupted = make("autoneg night", "opus")
	points(t, interrupted, planned(3), 1, 2)
	interrupted.Close()
	running = make("Delay sweep", "rail")
	points(t, running, planned(3), 3)
	return done, interrupted, running
}

func list(t *testing.T, s *runs.Store, f runs.Filter) []string {
	t.Helper()
	entries, err := s.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range entries {
		lines = append(lines, fmt.Sprintf("%s %s %d/%d %s %s %s", e.Name, e.State, e.Points, e.Planned, e.Verdict, e.Lab, e.Created.Format("15h")))
	}
	return lines
}

var allThree = []string{
	"Delay sweep running 1/3  rail 13h",
	"autoneg night interrupted 2/3  opus 12h",
	"autoneg done 3/3 pass opus 11h",
}

func TestStore_List(t *testing.T) {
	s := open(t, tempDir(t))
	if got := list(t, s, runs.Filter{}); got != nil {
		t.Errorf("empty store: %v", got)
	}
	done, _, running := three(t, s)
	for _, test := range []struct {
		filter runs.Filter
		want   []string
	}{
		{runs.Filter{}, allThree},
		{runs.Filter{Name: "auto"}, allThree[1:]},
		{runs.Filter{State: runs.Running}, allThree[:1]},
		{runs.Filter{Lab: "opus", Limit: 1}, allThree[1:2]},
		{runs.Filter{Figure: "fig-rail"}, allThree[:1]},
		{runs.Filter{Since: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}, allThree[:2]},
		{runs.Filter{State: runs.Failed}, nil},
	} {
		if diff := cmp.Diff(test.want, list(t, s, test.filter)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.filter, diff)
		}
	}
	points(t, running, planned(3), 1)
	if got := list(t, s, runs.Filter{Limit: 1}); got[0] != "Delay sweep running 2/3  rail 13h" {
		t.Errorf("after one more point: %v", got)
	}
	entries, err := s.List(t.Context(), runs.Filter{State: runs.Done})
	if err != nil || len(entries) != 1 || entries[0].ID != done.ID() || entries[0].Dir != done.Dir() || !entries[0].Ended.Equal(entries[0].Created) {
		t.Errorf("entries=%+v, %v", entries, err)
	}
	if r := s.Remark(); r != "" {
		t.Errorf("remark=%q", r)
	}
}

// Ensure that List finds out what the index does not know, and that it is only a cache.
func TestStore_Index(t *testing.T) {
	index := func(s *runs.Store) string { return filepath.Join(s.Dir("index-v1.sqlite")) }
	for name, spoil := range map[string]func(t *testing.T, s *runs.Store){
		"missing": func(t *testing.T, s *runs.Store) {},
		"garbage": func(t *testing.T, s *runs.Store) {
			if err := os.WriteFile(index(s), []byte(strings.Repeat("garbage ", 2000)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"other form": func(t *testing.T, s *runs.Store) {
			runs.Exec(t, s, "create table runs (x)")
		},
		"other content": func(t *testing.T, s *runs.Store) {
			if _, err := s.List(t.Context(), runs.Filter{}); err != nil {
				t.Fatal(err)
			}
			runs.Exec(t, s, "delete from runs where name = 'autoneg'")
			runs.Exec(t, s, "update runs set points = 'many' where name = 'autoneg night'")
			runs.Exec(t, s, "insert into runs values ('20200101T000000-gone-0000', 'gone', 'done', 1, 1, '', 0, '', 1, 1, '')")
		},
		"network": func(t *testing.T, s *runs.Store) { s.SetRemote(func(string) string { return "NFS" }) },
		"no file": func(t *testing.T, s *runs.Store) {
			if err := os.MkdirAll(filepath.Join(index(s), "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, tempDir(t))
			three(t, s)
			for _, suffix := range []string{"", "-wal", "-shm"} {
				os.Remove(index(s) + suffix) // not all are there
			}
			spoil(t, s)
			for range 2 {
				if diff := cmp.Diff(allThree, list(t, s, runs.Filter{})); diff != "" {
					t.Errorf("list (-want +got):\n%s", diff)
				}
			}
			if without := name == "network" || name == "no file"; without != strings.Contains(s.Remark(), "no index") {
				t.Errorf("remark=%q", s.Remark())
			}
		})
	}
}

func TestStore_Reindex(t *testing.T) {
	s := open(t, tempDir(t))
	done, _, _ := three(t, s)
	odd := map[string]string{
		"notes":                     "its name is not the ID",
		".new-20261122T101500-x-00": "just beginning",
		"20261122T101500-copy-0000": "another name",
		"20261122T101500-bare-0000": "run.json",
	}
	for name := range odd {
		if err := os.Mkdir(s.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(s.Dir(".removed-x"), 0o700); err != nil {
		t.Fatal(err)
	}
	meta, err := os.ReadFile(filepath.Join(done.Dir(), "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir("20261122T101500-copy-0000"), "run.json"), meta, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := s.Reindex(t.Context())
	if err != nil || got.Runs != 3 || len(got.Problems) != len(odd) {
		t.Errorf("Reindex: %+v, %v", got, err)
	}
	for _, p := range got.Problems {
		if want, known := odd[filepath.Base(p.Dir)]; !known || !strings.Contains(p.Reason, want) {
			t.Errorf("problem %+v, want %q", p, want)
		}
	}
	if _, err := os.Stat(s.Dir(".removed-x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what remained of a removed run is still there: %v", err)
	}
	if diff := cmp.Diff(allThree, list(t, s, runs.Filter{})); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if !strings.Contains(s.Remark(), "2 cannot be read") {
		t.Errorf("remark=%q", s.Remark())
	}
}

func TestStore_Find(t *testing.T) {
	s := open(t, tempDir(t))
	if _, err := s.Find(t.Context(), "last"); !errors.Is(err, runs.ErrUnknown) {
		t.Errorf("in an empty store: %v", err)
	}
	done, interrupted, running := three(t, s)
	for text, want := range map[string]string{
		"last": running.ID(), done.ID(): done.ID(), "20261122T12": interrupted.ID(), "night": interrupted.ID(),
		"autoneg": "2 runs", "2026": "3 runs", "nothing": "runs list", "": "without a name", "../runs": "runs list",
	} {
		id, err := s.Find(t.Context(), text)
		if err == nil && id != want || err != nil && (!errors.Is(err, runs.ErrUnknown) || !strings.Contains(err.Error(), want)) {
			t.Errorf("Find(%q)=%q, %v, want %q", text, id, err, want)
		}
	}
}

// Runs that begin in the same second have IDs that say nothing of their order.
func TestStore_SameSecond(t *testing.T) {
	s := open(t, tempDir(t))
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	var ids, want []string
	for i, name := range []string{"zeta", "alpha", "mid", "alpha"} {
		w, err := s.Create(t.Context(), runs.Creation{Meta: runs.Meta{Name: name, Created: at.Add(time.Duration(i) * time.Millisecond)}, Plan: planned(1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		if last, err := s.Find(t.Context(), "last"); err != nil || last != w.ID() {
			t.Errorf("after %s: Find(last)=%q, %v", w.ID(), last, err)
		}
		want = append([]string{w.ID()}, want...)
	}
	for range 2 { // from the directories, and from the index
		entries, err := s.List(t.Context(), runs.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		ids = nil
		for _, e := range entries {
			ids = append(ids, e.ID)
		}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	}
	// What cannot be read is not taken for the newest.
	if err := os.WriteFile(filepath.Join(s.Dir(want[0]), "run.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if last, err := s.Find(t.Context(), "last"); err != nil || last != want[1] {
		t.Errorf("with a damaged one: Find(last)=%q, %v, want %q", last, err, want[1])
	}
}

func TestStore_Remove(t *testing.T) {
	s := open(t, tempDir(t))
	done, _, running := three(t, s)
	if err := s.Remove(t.Context(), running.ID()); !errors.Is(err, runs.ErrBusy) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("of a running one: %v, want ErrBusy and the holder", err)
	}
	for _, id := range []string{"..", "", done.ID() + "/..", "20200101T000000-gone-0000"} {
		if err := s.Remove(t.Context(), id); !errors.Is(err, runs.ErrUnknown) {
			t.Errorf("Remove(%q): %v, want ErrUnknown", id, err)
		}
	}
	if err := s.Remove(t.Context(), done.ID()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(allThree[:2], list(t, s, runs.Filter{})); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if _, err := s.Load(t.Context(), done.ID()); !errors.Is(err, runs.ErrUnknown) {
		t.Errorf("Load: %v, want ErrUnknown", err)
	}
	names, err := os.ReadDir(filepath.Dir(running.Dir()))
	if err != nil || len(names) != 3 {
		t.Errorf("directory has %v, %v, want two runs and the index", names, err)
	}
}

func TestStore_Send(t *testing.T) {
	s := open(t, tempDir(t))
	done, _, running := three(t, s)
	if err := s.Send(t.Context(), done.ID(), runs.Pause); !errors.Is(err, runs.ErrIdle) {
		t.Errorf("to a run that is done: %v, want ErrIdle", err)
	}
	if c, ok := running.Control(); ok {
		t.Errorf("Control=%q before anything was sent", c)
	}
	for _, c := range []runs.Control{runs.Pause, runs.Stop} {
		if err := s.Send(t.Context(), running.ID(), c); err != nil {
			t.Fatal(err)
		}
	}
	if c, ok := running.Control(); !ok || c != runs.Stop {
		t.Errorf("Control=%q, %t, want the last that was sent", c, ok)
	}
	if c, ok := running.Control(); ok {
		t.Errorf("Control=%q once more", c)
	}
}

func TestStore_Resume(t *testing.T) {
	s := open(t, tempDir(t))
	done, interrupted, running := three(t, s)
	if _, _, err := s.Resume(t.Context(), running.ID()); !errors.Is(err, runs.ErrBusy) {
		t.Errorf("of a running one: %v, want ErrBusy", err)
	}
	if err := os.WriteFile(filepath.Join(interrupted.Dir(), "control"), []byte("abort\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, r, err := s.Resume(t.Context(), interrupted.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	check(t, r, 1, 2)
	if r.State != runs.Running {
		t.Errorf("state=%s", r.State)
	}
	if c, ok := w.Control(); ok {
		t.Errorf("Control=%q, which was meant for another process", c)
	}
	if got := list(t, s, runs.Filter{State: runs.Running}); len(got) != 2 {
		t.Errorf("running: %v", got)
	}
	if n, err := w.Session(runs.Session{}); n != 1 || err != nil {
		t.Errorf("Session=%d, %v, want 1, as there was none", n, err)
	}

	w, r, err = s.Resume(t.Context(), done.ID())
	if err != nil {
		t.Fatal(err)
	}
	if r.Summary == nil || r.Summary.Verdict != "pass" {
		t.Errorf("summary=%+v, want that from before", r.Summary)
	}
	w.Close()
	if r := load(t, s, done.ID()); r.State != runs.Interrupted || r.Summary != nil {
		t.Errorf("resumed and not finished: state=%s summary=%+v", r.State, r.Summary)
	}
	if _, err := os.Stat(filepath.Join(done.Dir(), "summary-1.json")); err != nil {
		t.Error(err)
	}
}

// Ensure that a store of a newer version is left alone, and other files that cannot be read
// are named.
func TestStore_Load_Files(t *testing.T) {
	for _, test := range []struct{ file, text, want string }{
		{"run.json", `{"format":2,"run":{"new":"form"}}`, "newer"},
		{"run.json", `{"format":1`, "run.json is damaged"},
		{"plan.json", `{`, "plan.json is damaged"},
		{"plan.json", "", "no such file"},
		{"lab.yaml", "", "no such file"},
		{"summary.json", `{"format":2}`, "newer"},
	} {
		s := open(t, tempDir(t))
		done := create(t, s, 1)
		if err := done.Finish(runs.Summary{State: runs.Stopped}); err != nil {
			t.Fatal(err)
		}
		done.Close()
		path := filepath.Join(done.Dir(), test.file)
		if test.text == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Load(t.Context(), done.ID())
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, runs.ErrNewer) != (test.want == "newer") {
			t.Errorf("%s %q: %v, want %q", test.file, test.text, err, test.want)
		}
		before, _ := os.ReadDir(done.Dir())
		if _, _, err := s.Resume(t.Context(), done.ID()); err == nil {
			t.Errorf("%s %q: resumed", test.file, test.text)
		}
		if after, _ := os.ReadDir(done.Dir()); !slices.EqualFunc(before, after, func(a, b os.DirEntry) bool { return a.Name() == b.Name() }) {
			t.Errorf("%s %q: Resume changed the directory from %v to %v", test.file, test.text, before, after)
		}
	}
}

// Ensure that points can be had and a run can go on though its summary is damaged, and that
// this is told.
func TestStore_Summary_Damaged(t *testing.T) {
	s := open(t, tempDir(t))
	w := create(t, s, 3)
	points(t, w, planned(3), 2)
	if err := w.Finish(runs.Summary{State: runs.Failed}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	replace(t, w, "summary.json", []byte("["))
	r := load(t, s, w.ID())
	check(t, r, 2)
	if text := told(r, "recovered"); r.State != runs.Interrupted || r.Summary != nil || len(text) != 1 || !strings.Contains(text[0], "summary.json is damaged") {
		t.Errorf("state=%s summary=%+v told=%q", r.State, r.Summary, text)
	}
	w, r, err := s.Resume(t.Context(), w.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	check(t, r, 2)
	if got := string(read(t, w, "summary-1.json")); got != "[" {
		t.Errorf("what is set aside is %q", got)
	}
	if err := w.Finish(runs.Summary{State: runs.Stopped}); err != nil {
		t.Fatal(err)
	}
	r = load(t, s, w.ID())
	if text := told(r, "recovered"); r.State != runs.Stopped || len(text) != 1 {
		t.Errorf("resumed and finished: state=%s told=%q", r.State, text)
	}
}

// Ensure that a run whose lock cannot be had leaves nothing behind.
func TestStore_Create_Unlocked(t *testing.T) {
	s := open(t, tempDir(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Create(ctx, runs.Creation{Plan: planned(1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("Create: %v, want context.Canceled", err)
	}
	if got := list(t, s, runs.Filter{}); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// Ensure that the index does not call a run what it was, after it could not be told what the
// run has become.
func TestStore_Index_Stuck(t *testing.T) {
	s := open(t, tempDir(t))
	w := create(t, s, 1)
	if err := w.Finish(runs.Summary{State: runs.Stopped}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got := list(t, s, runs.Filter{State: runs.Stopped}); len(got) != 1 {
		t.Fatalf("list=%q", got)
	}
	// Nothing can be written to it, as on a full disk.
	runs.Exec(t, s, `create trigger full before insert on runs begin select raise(abort, 'full'); end`)
	w, _, err := s.Resume(t.Context(), w.ID())
	if err != nil {
		t.Fatal(err)
	}
	points(t, w, planned(1), 1)
	if err := w.Finish(runs.Summary{State: runs.Done}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got := list(t, s, runs.Filter{State: runs.Done}); len(got) != 1 || !strings.Contains(got[0], "1/1") {
		t.Errorf("list=%q, want the run, done", got)
	}
}

func TestStore_Create_Many(t *testing.T) {
	s := open(t, tempDir(t))
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	s.SetClock(func() (time.Time, int64) { return at, 1 })
	if _, err := s.Create(t.Context(), runs.Creation{}); err == nil {
		t.Error("a run without a plan")
	}
	if _, err := s.Create(t.Context(), runs.Creation{Plan: &plan.Plan{}}); err == nil {
		t.Error("a plan that cannot be read again")
	}
	seen := map[string]bool{}
	for _, name := range []string{"", "Ümläut / ../x", strings.Repeat("long ", 40), "a", "a", "a"} {
		w, err := s.Create(t.Context(), runs.Creation{Meta: runs.Meta{Name: name}, Plan: planned(1)})
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		if seen[w.ID()] || len(w.ID()) > 64 || filepath.Base(w.Dir()) != w.ID() {
			t.Errorf("%q: ID %s", name, w.ID())
		}
		seen[w.ID()] = true
		if r := load(t, s, w.ID()); r.Meta.Name != name || r.State != runs.Interrupted {
			t.Errorf("%q: %+v", name, r.Meta)
		}
	}
	if got := list(t, s, runs.Filter{}); len(got) != len(seen) {
		t.Errorf("list=%q", got)
	}
}
