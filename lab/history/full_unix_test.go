//go:build unix

package history_test

import (
	"errors"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/lab/history"
)

// Ensure that a write that ends half way, as on a full disk, leaves no trace,
// and that the change is not sent. A limit to the size of files does it.
func TestRecorder_ShortWrite(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	end(t, l, begin(t, l, history.Entry{}), history.Done)
	whole := read(t, dir, "history.ndjson")
	fake := &fakeSwitch{}
	sw := l.Wrap(fake, history.Entry{Device: device})

	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	lower := limit
	lower.Cur = uint64(len(whole) + 40)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &lower); err != nil {
		t.Fatal(err)
	}
	_, err := sw.Apply(t.Context(), change("/1>33"))
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EFBIG) || fake.calls != 0 {
		t.Errorf("Apply: %v, %d calls, want EFBIG and no call", err, fake.calls)
	}
	if got := read(t, dir, "history.ndjson"); got != whole {
		t.Errorf("file=%q, want %q", got, whole)
	}
	if _, err := sw.Apply(t.Context(), change("/1>33")); err != nil || sw.ID() != 2 {
		t.Errorf("Apply: %v, ID %d, want 2", err, sw.ID())
	}
}
