//go:build unix

package runs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/experiment/runs"
)

// Ensure that a named pipe in the place of a file, at which open waits, holds nobody up.
func TestStore_Pipe(t *testing.T) {
	for _, name := range []string{"run.json", "plan.json", "experiment.yaml", "lab.yaml", "events.ndjson", "samples.ndjson", "summary.json", "lock"} {
		s := open(t, tempDir(t))
		w := create(t, s, 1)
		w.Close()
		path := filepath.Join(w.Dir(), name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Reindex(t.Context()); err != nil {
			t.Errorf("%s: Reindex: %v", name, err)
		}
		_, err := s.Load(t.Context(), w.ID())
		if wanted := name != "lock"; (err != nil) != wanted || wanted && !strings.Contains(err.Error(), name+" is not a file") {
			t.Errorf("%s: Load: %v", name, err)
		}
	}
}

// Ensure that one in the place of what is sent does not hold up who measures.
func TestControl_Pipe(t *testing.T) {
	s := open(t, tempDir(t))
	w := create(t, s, 1)
	defer w.Close()
	if err := unix.Mkfifo(filepath.Join(w.Dir(), "control"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, ok := w.Control(); ok {
		t.Errorf("Control=%q", c)
	}
	if err := s.Send(t.Context(), w.ID(), runs.Pause); err != nil {
		t.Fatal(err)
	}
	if c, ok := w.Control(); !ok || c != runs.Pause {
		t.Errorf("Control=%q, %t, want what was sent", c, ok)
	}
}
