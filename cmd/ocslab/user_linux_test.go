package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Ensure an ordinary user gets real interfaces, too, in a user namespace.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	path := filepath.Join(publicProgram(t), "ocslab")
	cmd := exec.Command(path, "demo", "-n", "1", "--rung", "veth", "--warm-ups", "1")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "TMPDIR=" + os.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"veth pairs in network namespaces", "\ncarrier-up ", "\ntraffic ", "transitions counted by the kernel"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "MISSING") {
		t.Errorf("transitions are missing:\n%s", out)
	}
}

// publicProgram returns a directory that everybody can read, with the program in it.
func publicProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	// t.TempDir is closed to others.
	dir, err := os.MkdirTemp("", "ocslab-user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "ocslab"), program, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir // the test binary knows by its name what to be
}

// Ensure that commands that only read work for a user who may not write to the state directory, and that one that
// moves light sends nothing there.
func TestReadOnlyState(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	b := newBench(t, false)
	state := filepath.Join(b.dir, "state")
	if code, out := b.run(t, state, "connect", "a", "1>33"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	dir := publicProgram(t)
	readable := filepath.Join(dir, "state")
	lab, err := os.ReadFile(b.file)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "lab.yaml"), lab, 0o644), os.CopyFS(readable, os.DirFS(state))); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(readable, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{
		"show a": 0, "history": 0, "snapshot": 0, "panic --status": 0, "connect a 2>34 --dry-run": 0,
		"connect a 2>34": exitFailed, "undo": exitFailed, "disconnect a 1": exitFailed, "shutters a close 1": exitFailed,
	} {
		args := append([]string{"--lab", filepath.Join(dir, "lab.yaml"), "--state-dir", readable}, strings.Fields(command)...)
		cmd := exec.Command(filepath.Join(dir, "ocslab"), args...)
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "OCSLAB_RECHECK=0s"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%s: %v, want exit code %d\n%s", command, err, want, out)
		}
		if want != 0 && !strings.Contains(string(out), "permission denied") {
			t.Errorf("%s does not say why:\n%s", command, out)
		}
	}
	if got := b.devices["a"].CrossConnects().String(); got != "1>33" {
		t.Errorf("the switch holds %s", got)
	}
	if b.devices["a"].ShutterClosed(1) {
		t.Error("a shutter was closed")
	}
}
