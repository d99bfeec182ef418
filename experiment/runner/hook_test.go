package runner_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
)

// shell returns the words that let a shell run a script, which is only here to be a
// program that does such things.
func shell(t *testing.T, script string) []string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("there is no sh here: %v", err)
	}
	return []string{sh, "-c", script}
}

// gone fails unless the process whose number a hook has written to a file has ended.
func gone(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A process that was killed is there until its parent, here init, has seen that.
	for patience := time.After(20 * time.Second); ; {
		stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(text)), "stat"))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		select {
		case <-patience:
			t.Fatalf("process %s still runs", text)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// begun returns a context that is aborted when a hook has written a line to the file.
func begun(t *testing.T, path string) context.Context {
	ctx, abort := context.WithCancelCause(t.Context())
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(path); err == nil && bytes.HasSuffix(text, []byte("\n")) {
				abort(runner.ErrAbort)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return ctx
}

func TestHook(t *testing.T) {
	const never, grace = time.Hour, time.Hour
	t.Run("Good", func(t *testing.T) {
		output, code, left, err := runner.Hook(t.Context(), t.TempDir(), []string{"OCSLAB_POINT=7"}, shell(t, "echo point $OCSLAB_POINT; echo of two >&2"), never, grace)
		if err != nil || code != 0 || left || output != "point 7\nof two" {
			t.Errorf("output %q, code %d, left %v, error %v", output, code, left, err)
		}
	})
	t.Run("Fails", func(t *testing.T) {
		output, code, _, err := runner.Hook(t.Context(), t.TempDir(), nil, shell(t, "echo the card is gone >&2; exit 3"), never, grace)
		if err == nil || code != 3 || output != "the card is gone" {
			t.Errorf("output %q, code %d, error %v", output, code, err)
		}
	})
	t.Run("NoShell", func(t *testing.T) {
		echo, err := exec.LookPath("echo")
		if err != nil {
			t.Skipf("there is no echo here: %v", err)
		}
		if output, _, _, err := runner.Hook(t.Context(), "", nil, []string{echo, "$HOME;", "*"}, never, grace); err != nil || output != "$HOME; *" {
			t.Errorf("output %q, error %v", output, err)
		}
	})
	t.Run("NotThere", func(t *testing.T) {
		for _, words := range [][]string{{"no-such-program-anywhere"}, {"./no-such-file"}, {""}, {}} {
			if _, code, _, err := runner.Hook(t.Context(), t.TempDir(), nil, words, never, grace); err == nil || code != -1 {
				t.Errorf("%q: code %d, error %v", words, code, err)
			}
		}
	})
	t.Run("BesideTheFile", func(t *testing.T) {
		dir := t.TempDir()
		words := shell(t, "pwd")
		if err := os.WriteFile(filepath.Join(dir, "hook"), []byte("#!"+words[0]+"\npwd\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		want, err := filepath.EvalSymlinks(dir)
		if err != nil {
			t.Fatal(err)
		}
		if output, _, _, err := runner.Hook(t.Context(), dir, nil, []string{"./hook"}, never, grace); err != nil || output != want {
			t.Errorf("output %q, error %v, want %s", output, err, want)
		}
	})
	t.Run("NeverEnds", func(t *testing.T) {
		_, _, _, err := runner.Hook(t.Context(), t.TempDir(), nil, shell(t, "sleep 1000 & wait"), 50*time.Millisecond, grace)
		if err == nil || !strings.Contains(err.Error(), "longer than its timeout of 50ms") {
			t.Errorf("error %v", err)
		}
	})
	for name, script := range map[string]string{
		"WithChild":           "sleep 1000 & echo $$ > leader; echo $! > child; wait",
		"IgnoresSIGTERM":      `trap "" TERM; (trap "" TERM; sleep 1000) & echo $$ > leader; echo $! > child; while :; do wait; done`,
		"ChildIgnoresSIGTERM": `(trap "" TERM; sleep 1000) >/dev/null 2>&1 & echo $$ > leader; echo $! > child; sleep 1000`, // and does not hold the output
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			child := filepath.Join(dir, "child")
			if _, _, _, err := runner.Hook(begun(t, child), dir, nil, shell(t, script), never, 50*time.Millisecond); !errors.Is(err, runner.ErrAbort) {
				t.Fatalf("error %v", err)
			}
			gone(t, filepath.Join(dir, "leader"))
			gone(t, child)
		})
	}
	t.Run("Aborted", func(t *testing.T) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(runner.ErrAbort) })
		if _, _, _, err := runner.Hook(ctx, dir, nil, shell(t, "sleep 1000"), never, grace); !errors.Is(err, runner.ErrAbort) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("LeavesOneBehind", func(t *testing.T) {
		dir := t.TempDir()
		output, code, left, err := runner.Hook(t.Context(), dir, nil, shell(t, "sleep 1000 & echo $! > child; echo begun"), never, 20*time.Millisecond)
		if err != nil || code != 0 || !left || output != "begun" {
			t.Errorf("output %q, code %d, left %v, error %v", output, code, left, err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "child"))
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		for _, d := range strings.TrimSpace(string(text)) {
			pid = 10*pid + int(d-'0')
		}
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Signal(syscall.Signal(0))
		}
		if err != nil {
			t.Errorf("what it has begun has ended: %v", err)
		} else if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	t.Run("Floods", func(t *testing.T) {
		output, _, _, err := runner.Hook(t.Context(), t.TempDir(), nil, shell(t, "i=0; while [ $i -lt 4000 ]; do echo line $i of a flood of lines, all of them alike; i=$((i+1)); done"), never, grace)
		if err != nil || len(output) > runner.HookOutput+4 || !strings.HasSuffix(output, "line 3999 of a flood of lines, all of them alike") || !strings.HasPrefix(output, "... ") {
			t.Errorf("%d bytes, error %v, ends %q", len(output), err, output[max(0, len(output)-60):])
		}
	})
	t.Run("NotText", func(t *testing.T) {
		if output, _, _, err := runner.Hook(t.Context(), t.TempDir(), nil, shell(t, `printf 'a\377b'`), never, grace); err != nil || output != "a\uFFFDb" {
			t.Errorf("output %q, error %v", output, err)
		}
	})
}

// Ensure that the output of a hook that fails is told, and recorded, with what it was.
func TestRunner_HookFails(t *testing.T) {
	w, p := newWorld(), newPlan(1, 1)
	r := w.runner(p)
	r.SetHooks(nil)
	r.Dir = t.TempDir()
	words := shell(t, "echo $OCSLAB_RUN $OCSLAB_RUN_DIR $OCSLAB_POINT $OCSLAB_CONDITION $OCSLAB_PARAM_N ${n}; exit 3")
	r.File.Hooks = plan.Hooks{BeforePoint: []plan.Hook{{Run: words}}}
	r.File.Finally.Hooks = []plan.Hook{{Run: shell(t, "echo at the end $OCSLAB_RUN_DIR $OCSLAB_POINT")}}
	sum, err := r.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "hook of before_point") || !strings.Contains(err.Error(), "it wrote: 20261122T101500-test-3f2a /run 1 1 1 1") {
		t.Errorf("error %v", err)
	}
	if !sum.Restored || sum.Finally != "" {
		t.Errorf("%+v", sum)
	}
	events := w.event("hook")
	if len(events) != 2 || !strings.Contains(events[0], "exit status 3") || !strings.HasSuffix(events[1], "exit code 0; it wrote: at the end /run") {
		t.Errorf("events are %q", events)
	}
}

// Ensure the names of parameters in the environment of hooks, and whose they are.
func TestRunner_HookWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(2, 1)
		r := w.runner(p)
		with := []plan.Hook{{Run: []string{"hook", "${n}"}}}
		r.File.Hooks = plan.Hooks{BeforeRun: with, BeforePoint: with, AfterRun: with}
		r.File.Finally.Hooks = with
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range w.calls {
			if strings.HasPrefix(c, "hook ") {
				got = append(got, c[len("hook hook "):])
			}
		}
		if want := []string{"0", "1", "2", "1", "2", "0", "0"}; !slices.Equal(got, want) {
			t.Errorf("parameters of hooks are %v, want %v", got, want)
		}
	})
}
