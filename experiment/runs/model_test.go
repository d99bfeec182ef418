package runs_test

import (
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/runs"
)

// Ensure that whatever is done in whatever order, with crashes and a full disk in between,
// just those points are there that FinishPoint has returned nil for.
func TestWriter_Model(t *testing.T) {
	t.Parallel()
	const number = 12
	p := planned(number)
	parent := tempDir(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(parent, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s, err := runs.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s.SetRemote(func(string) string { return "test" }) // no index
		room, stuck := 1<<30, false
		fill(s, &room, syscall.ENOSPC, &stuck)
		w, err := s.Create(t.Context(), runs.Creation{Plan: p})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { w.Close() }()
		done, dropped, sessions, open := map[int]bool{}, map[int]bool{}, 0, 0
		look := func(r *runs.Run) {
			check(t, r, slices.Collect(maps.Keys(done))...)
			if !maps.Equal(r.Dropped, dropped) || len(r.Sessions) != sessions {
				t.Errorf("dropped=%v, want %v; sessions=%d, want %d", r.Dropped, dropped, len(r.Sessions), sessions)
			}
		}
		begin := func(t *rapid.T) {
			point := rapid.SampledFrom(p.Points).Draw(t, "point")
			err := w.BeginPoint(point)
			if (err == nil) != (open == 0 && !done[point.ID]) {
				t.Fatalf("BeginPoint(%d): %v, while %d is open and %v are done", point.ID, err, open, done)
			}
			if err == nil {
				open = point.ID
				contentOf(point, p.Seed).record(w)
			}
		}
		finish := func(t *rapid.T) {
			err := w.FinishPoint()
			if (err == nil) != (open > 0) {
				t.Fatalf("FinishPoint: %v, while %d is open", err, open)
			}
			if err == nil {
				done[open], open = true, 0
			}
		}
		resume := func(t *rapid.T) {
			w.Close()
			var r *runs.Run
			var err error
			room, stuck, open = 1<<30, false, 0
			if w, r, err = s.Resume(t.Context(), w.ID()); err != nil {
				t.Fatal(err)
			}
			look(r)
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin":  begin,
			"finish": finish,
			"point": func(t *rapid.T) {
				begin(t)
				if open > 0 {
					finish(t)
				}
			},
			"abandon": func(t *rapid.T) {
				if err := w.AbandonPoint("why not"); err != nil {
					t.Fatal(err)
				}
				open = 0
			},
			"drop": func(t *rapid.T) {
				id := rapid.IntRange(1, number).Draw(t, "drop")
				if err := w.DropPoint(id, "known"); err != nil {
					t.Fatal(err)
				}
				dropped[id] = true
			},
			"event": func(t *rapid.T) {
				if err := w.Event(runs.Event{Kind: "hook", Text: "called"}); err != nil {
					t.Fatal(err)
				}
			},
			"session": func(t *rapid.T) {
				sessions++
				if n, err := w.Session(runs.Session{}); n != sessions || err != nil {
					t.Fatalf("Session=%d, %v, want %d", n, err, sessions)
				}
			},
			"full": func(t *rapid.T) {
				if open == 0 {
					t.Skip("no point is open")
				}
				room = rapid.IntRange(0, 400).Draw(t, "room") // less than any point needs
				if err := w.FinishPoint(); err == nil {
					t.Fatal("FinishPoint on a full disk")
				}
				room = 1 << 30
			},
			// A process dies while it writes a point: any part of it is left.
			"crash": func(t *rapid.T) {
				if open == 0 {
					t.Skip("no point is open")
				}
				room, stuck = rapid.IntRange(0, 400).Draw(t, "left"), true
				if err := w.FinishPoint(); err == nil {
					t.Fatal("FinishPoint after the crash")
				}
				look(mustLoad(t, s, w.ID())) // while the lock is still held
				resume(t)
			},
			"resume": resume,
			"finish run": func(t *rapid.T) {
				if err := w.Finish(runs.Summary{State: runs.Stopped}); err != nil {
					t.Fatal(err)
				}
				if r := mustLoad(t, s, w.ID()); r.State != runs.Stopped || r.Summary.Points != len(done) {
					t.Fatalf("state=%s summary=%+v, want %d points", r.State, r.Summary, len(done))
				}
				resume(t)
			},
			"": func(t *rapid.T) { look(mustLoad(t, s, w.ID())) },
		})
	})
}

func mustLoad(t *rapid.T, s *runs.Store, id string) *runs.Run {
	r, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
