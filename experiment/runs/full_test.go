package runs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ocslab/ocslab/experiment/runs"
)

// flaky is a disk with so much room, which can be stuck: then nothing can be cut off either.
type flaky struct {
	runs.Disk
	room  *int
	stuck *bool
	fail  error
}

func (f *flaky) WriteAt(b []byte, at int64) (int, error) {
	fits := min(len(b), *f.room)
	*f.room -= fits
	if n, err := f.Disk.WriteAt(b[:fits], at); err != nil || fits == len(b) {
		return n, err
	}
	return fits, &os.PathError{Op: "write", Path: "a file", Err: f.fail}
}

func (f *flaky) Sync() error { return nil }

func (f *flaky) Truncate(size int64) error {
	if *f.stuck {
		return f.fail
	}
	return f.Disk.Truncate(size)
}

// fill gives the store such disks.
func fill(s *runs.Store, room *int, fail error, stuck *bool) {
	s.SetDisk(func(path string) (runs.Disk, error) {
		d, err := runs.OpenDisk(path)
		return &flaky{d, room, stuck, fail}, err
	})
}

func size(t testing.TB, w *runs.Writer, name string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(w.Dir(), name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// Ensure that a disk that is full wherever in a point loses only that, and leaves nothing of
// it, and that the point can be written when there is room again.
func TestFinishPoint_Full(t *testing.T) {
	for _, fail := range []struct {
		err  error
		text string
	}{
		{syscall.ENOSPC, "the disk is full"},
		{syscall.EDQUOT, "the disk quota is used up"},
		{syscall.EROFS, "the file system is read-only"},
		{syscall.EIO, "the disk fails"},
		{errors.New("odd"), "the disk does not take it"},
	} {
		s := open(t, tempDir(t))
		room := 1 << 20
		fill(s, &room, fail.err, new(bool))
		w := create(t, s, 3)
		p := planned(3)
		points(t, w, p, 2)
		events, samples := size(t, w, "events.ndjson"), size(t, w, "samples.ndjson")
		for fits := 0; ; fits += 97 {
			room = fits
			err := write(w, p.Points[2], p.Seed)
			if err == nil {
				break
			}
			for _, want := range []string{"point 1", fail.text, "the 1 finished points", "ocslab runs resume " + w.ID()} {
				if !strings.Contains(err.Error(), want) {
					t.Fatalf("error=%v, want %q in it", err, want)
				}
			}
			if !errors.Is(err, fail.err) {
				t.Fatalf("error=%v, want %v", err, fail.err)
			}
			if e, n := size(t, w, "events.ndjson"), size(t, w, "samples.ndjson"); e != events || n != samples {
				t.Fatalf("with room for %d: files went from %d and %d to %d and %d", fits, events, samples, e, n)
			}
			check(t, load(t, s, w.ID()), 2)
			room = 0
			if err := w.AbandonPoint("the disk is full"); !errors.Is(err, fail.err) {
				t.Fatalf("AbandonPoint: %v, want %v", err, fail.err)
			}
		}
		check(t, load(t, s, w.ID()), 1, 2)
		room = 500
		if err := write(w, p.Points[0], p.Seed); err == nil {
			t.Fatal("the point had room, so nothing is tested")
		}
		room = 1 << 20 // the same, without being measured again
		if err := w.FinishPoint(); err != nil {
			t.Fatal(err)
		}
		check(t, load(t, s, w.ID()), 1, 2, 3)
	}
}

// Ensure that what cannot even be cut off does not count, stays in the way of nothing, and is
// moved away by the next session.
func TestFinishPoint_Stuck(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir)
	room := 1 << 20
	stuck := true
	fill(s, &room, syscall.EIO, &stuck)
	w := create(t, s, 3)
	p := planned(3)
	points(t, w, p, 2)
	good := size(t, w, "samples.ndjson")
	room = 150
	if err := write(w, p.Points[0], p.Seed); err == nil {
		t.Fatal("the point was written")
	}
	if size(t, w, "samples.ndjson") != good+150 {
		t.Fatal("nothing was written, so nothing is tested")
	}
	room = 1 << 20
	if err := w.FinishPoint(); err == nil {
		t.Error("a point was written behind a torn one")
	}
	check(t, load(t, s, w.ID()), 2)
	w.Close()

	s = open(t, dir)
	w, r, err := s.Resume(t.Context(), w.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	check(t, r, 2)
	if size(t, w, "samples.ndjson") != good || size(t, w, "samples.ndjson.torn-1") != 150 {
		t.Errorf("samples have %d bytes, want %d, and 150 moved away", size(t, w, "samples.ndjson"), good)
	}
	points(t, w, p, 1, 3)
	check(t, load(t, s, w.ID()), 1, 2, 3)
}
