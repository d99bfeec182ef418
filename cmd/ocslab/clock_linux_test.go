package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/timeline"
)

// clockLab is a lab with one host, far, whose agent is a script of sh: $0 is the program, "$@"
// what it is told.
type clockLab struct{ dir, program string }

func newClockLab(t *testing.T, agent string) clockLab {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := clockLab{dir: t.TempDir()}
	l.program = filepath.Join(l.dir, "ocslab") // the name by which the test binary knows what to be
	if err := os.Symlink(self, l.program); err != nil {
		t.Fatal(err)
	}
	script, err := json.Marshal(agent)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("name: clocks\nswitches: [{name: sw, url: \"tl1://127.0.0.1:1\"}]\nhosts:\n  - {name: far, agent: [sh, -c, %s, %q]}\n", script, l.program)
	if err := os.WriteFile(filepath.Join(l.dir, "lab.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// calibrate is ocslab calibrate clock.
func (l clockLab) calibrate(args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd = exec.Command(l.program, append([]string{"--lab", "lab.yaml", "calibrate", "clock"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = l.dir, stdout, stderr
	cmd.Env = append(os.Environ(), "OCSLAB_STATE_DIR="+filepath.Join(l.dir, "state"))
	return cmd, stdout, stderr
}

// Ensure clocks whose offset is known are found: of a process of this machine 0, of one in a
// time namespace what that is shifted by, exactly. All that is claimed holds it, and no more than
// the round trip is left open. When the way back takes 5 ms, the middle is off by half of that,
// and the bounds hold the truth all the same.
func TestCalibrateClock_Truth(t *testing.T) {
	for _, tc := range []struct {
		name, agent string
		truth       int64
		root        bool
		lopsided    bool
	}{
		{name: "process", agent: `exec "$0" "$@"`},
		{name: "ahead", agent: `exec unshare --time --monotonic 5 "$0" "$@"`, truth: 5e9, root: true},
		{name: "boot", agent: `exec unshare --time --monotonic 86400 --boottime 86400 "$0" "$@"`, truth: 86400e9, root: true},
		{name: "lopsided", agent: `"$0" "$@" | while IFS= read -r line; do sleep 0.005; printf '%s\n' "$line"; done`, lopsided: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.root && os.Geteuid() != 0 {
				t.Skip("needs root, to make a time namespace")
			}
			args := []string{"--json", "--for", "300ms", "--every", "100ms"}
			if tc.lopsided {
				args = append(args, "--exchanges", "4")
			}
			cmd, stdout, stderr := newClockLab(t, tc.agent).calibrate(args...)
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			var line clockLine
			if err := json.Unmarshal(stdout.Bytes(), &line); err != nil {
				t.Fatalf("%v: %s", err, stdout)
			}
			holds := func(what string, low, high int64) {
				if !timeline.Between(low, high).Contains(tc.truth) {
					t.Errorf("%s: %d..%d does not hold %d", what, low, high, tc.truth)
				}
			}
			for i, b := range line.Batches {
				holds(fmt.Sprintf("batch %d", i), b.LowNS, b.HighNS)
			}
			for i, b := range line.Bounds {
				holds(fmt.Sprintf("bound %d", i), b.LowNS, b.HighNS)
			}
			holds("offset", line.Offset.LowNS, line.Offset.HighNS)
			if line.Drift.Low > 0 || line.Drift.High < 0 {
				t.Errorf("drift %v of one and the same clock", line.Drift)
			}
			if got, want := len(line.Batches), 4; got < 2 || got > want { // a tick that is late is left out
				t.Errorf("%d batches, want %d", got, want)
			}
			if off := line.Offset.MidNS - tc.truth; tc.lopsided && off > -1e6 { // half of 5 ms, less what the way there may take
				t.Errorf("the middle is off by %v, which is not what an answer that is late by 5 ms makes of it", time.Duration(off))
			}
			t.Logf("offset off by %v, ±%v; best round trip %v", time.Duration(line.Offset.MidNS-tc.truth), line.Offset.Half(), time.Duration(line.RTTBestNS))
		})
	}
}

// fifo is a named pipe: what is written there is waited for by wait.
func fifo(t *testing.T, dir string) (path string, wait func()) {
	t.Helper()
	path = filepath.Join(dir, "ready")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() {
		if _, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure an interruption ends a calibration with the batch after it, and its result is told and
// kept.
func TestCalibrateClock_Interrupted(t *testing.T) {
	dir := t.TempDir()
	ready, wait := fifo(t, dir)
	// 32 answers are for the first look at the clock; then the first batch.
	l := newClockLab(t, `n=0; "$0" "$@" | while IFS= read -r line; do n=$((n+1)); [ $n -eq 150 ] && echo > `+ready+`; printf '%s\n' "$line"; done`)
	cmd, stdout, stderr := l.calibrate("--for", "1h", "--every", "10ms")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("err = %v, want exit code %d: %s", err, exitInterrupted, stderr)
	}
	for _, want := range []string{"far: ", "  before ", "  after ", "Kept as version 1"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

// Ensure a signal goes on to the command, which is waited for, and whose exit code is ours.
func TestCalibrateClock_AroundInterrupted(t *testing.T) {
	dir := t.TempDir()
	ready, wait := fifo(t, dir)
	l := newClockLab(t, `exec "$0" "$@"`)
	command := `trap 'echo put back; exit 9' INT TERM; echo > ` + ready + `; while :; do sleep 0.01; done`
	cmd, stdout, stderr := l.calibrate("--around", "--", "sh", "-c", command)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 9 {
		t.Errorf("err = %v, want exit code 9: %s", err, stderr)
	}
	if got, want := stdout.String(), "put back\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if !strings.Contains(stderr.String(), "  after ") {
		t.Errorf("no batch after it:\n%s", stderr)
	}
}
