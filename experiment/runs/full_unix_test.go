//go:build unix

package runs_test

import (
	"errors"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/experiment/runs"
)

// Ensure that a write of a real file that ends half way leaves no trace. A limit to the size
// of files does it.
func TestFinishPoint_ShortWrite(t *testing.T) {
	s := open(t, t.TempDir())
	s.SetDisk(runs.OpenDisk)
	w := create(t, s, 3)
	p := planned(3)
	points(t, w, p, 2)
	events, samples := size(t, w, "events.ndjson"), size(t, w, "samples.ndjson")

	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	lower := limit
	lower.Cur = uint64(max(events, samples) + 40)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &lower); err != nil {
		t.Fatal(err)
	}
	err := write(w, p.Points[0], p.Seed)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EFBIG) {
		t.Fatalf("FinishPoint: %v, want EFBIG", err)
	}
	if e, n := size(t, w, "events.ndjson"), size(t, w, "samples.ndjson"); e != events || n != samples {
		t.Errorf("files have %d and %d bytes, want %d and %d", e, n, events, samples)
	}
	check(t, load(t, s, w.ID()), 2)
	if err := w.FinishPoint(); err != nil {
		t.Fatal(err)
	}
	check(t, load(t, s, w.ID()), 2, 3)
}
