package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// screen is a terminal of tmux that a program runs in.
type screen struct {
	t      *testing.T
	socket string
	script strings.Builder // what was done and seen, for people
}

// newScreen starts a command in a terminal of that size.
func newScreen(t *testing.T, width, height int, env []string, args ...string) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux")
	}
	s := &screen{t: t, socket: filepath.Join(t.TempDir(), "tmux")}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	command := []string{"-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height)}
	for _, e := range env {
		command = append(command, "-e", e)
	}
	// What it has said and its exit code stay to be read.
	s.tmux(append(command, strings.Join(quoted, " ")+"; echo exit code $?; exec sleep 1000")...)
	s.tmux("set-option", "-g", "window-size", "manual")
	s.tmux("set-option", "-g", "escape-time", "0")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() })
	s.note("$ %s   (%dx%d)", strings.Join(quoted, " "), width, height)
	return s
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *screen) note(format string, args ...any) { fmt.Fprintf(&s.script, format+"\n", args...) }

// text is what is on the screen.
func (s *screen) text() string {
	s.t.Helper()
	return s.tmux("capture-pane", "-p")
}

// keys types keys, named as tmux names them.
func (s *screen) keys(keys ...string) {
	s.t.Helper()
	s.note("keys  %s", strings.Join(keys, " "))
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

// literal types text as it is.
func (s *screen) literal(text string) {
	s.t.Helper()
	s.note("types %q", text)
	s.tmux("send-keys", "-l", text)
}

// click clicks at a column and a line, from 1.
func (s *screen) click(x, y int) {
	s.t.Helper()
	s.note("click %d,%d", x, y)
	s.tmux("send-keys", "-l", fmt.Sprintf("\x1b[<0;%d;%dM\x1b[<0;%d;%dm", x, y, x, y))
}

// accept accepts the preview that is shown. One that has only just appeared is not accepted,
// so it may take another try.
func (s *screen) accept() {
	s.t.Helper()
	s.note("keys  y")
	for deadline := time.Now().Add(patience); strings.Contains(s.text(), "do nothing ]"); {
		if time.Now().After(deadline) {
			s.t.Fatalf("the preview stays\n%s", s.text())
		}
		s.tmux("send-keys", "y")
		time.Sleep(400 * time.Millisecond) // one that comes too soon puts it off
	}
}

// resize gives the terminal another size.
func (s *screen) resize(width, height int) {
	s.t.Helper()
	s.note("size  %dx%d", width, height)
	s.tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// patience is how long something may take to be seen; the machine may be busy.
const patience = 40 * time.Second

// until waits until what is on the screen is as wanted.
func (s *screen) until(what string, ok func(text string) bool) string {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		text := s.text()
		if ok(text) {
			s.note("sees  %s", what)
			return text
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("did not see %s\n%s\nuntil then:\n%s", what, text, s.script.String())
		}
		time.Sleep(20 * time.Millisecond) // between two looks, not to be safe
	}
}

// want waits for text that matches each of the patterns.
func (s *screen) want(patterns ...string) string {
	s.t.Helper()
	return s.until(strings.Join(patterns, "  and  "), func(text string) bool {
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(text) {
				return false
			}
		}
		return true
	})
}

// gone waits until nothing matches.
func (s *screen) gone(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	return s.until("no "+pattern, func(text string) bool { return !re.MatchString(text) })
}

// installed makes the test binary callable as ocslab, and returns its path.
func installed(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	path := filepath.Join(t.TempDir(), "ocslab") // testscript.Main goes by the name
	if err := errors.Join(err, os.Symlink(self, path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ensure a lab engineer can do a morning's work: see the switch, connect in three keys, see
// the light, undo, resize, filter, be told what others do, lose the switch and get it back.
func TestTUI(t *testing.T) {
	dir := t.TempDir()
	ocslab := installed(t)
	env := []string{"OCSLAB_STATE_DIR=" + filepath.Join(dir, "state"), "HOME=" + dir, "TERM=screen-256color", "LANG=C.UTF-8"}
	device := emulated(t, ocslab, "127.0.0.1:0")
	lab := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(lab, fmt.Appendf(nil, `name: bench
switches:
  - {name: rail0, url: "tl1://admin@%s"}
hosts:
  - {name: gpu1, nics: [{name: ens1f0, tx: rail0/1, rx: rail0/33}]}
  - {name: gpu2, nics: [{name: ens1f0, tx: rail0/2, rx: rail0/34}]}
protect: [rail0/31]
`, device.addr), 0o644); err != nil {
		t.Fatal(err)
	}
	other := func(args ...string) {
		t.Helper()
		cmd := exec.Command(ocslab, append([]string{"--state-dir", filepath.Join(dir, "other")}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}

	s := newScreen(t, 120, 40, env, ocslab, "--lab", lab, "tui")
	s.want(`bench  REAL`, `1 switch up`, `1>33 free`)

	s.keys("Right")
	s.want(`1>34 free`) // keys that arrive together would not act
	s.keys("Enter")
	s.want(`─ preview ─`, `\+ 1>34 +gpu1/ens1f0 → gpu2/ens1f0`, `\$ ocslab --lab \S+ connect rail0 '1>34'`, `\[ esc +do nothing \]`)
	s.keys("Enter")
	s.want(`─ preview ─`, `y does it, esc does not`)
	s.keys("Escape")
	s.gone(`─ preview ─`)
	s.want(`1>34 free`)
	s.keys("Enter")
	s.want(`\+ 1>34`)
	s.accept()
	s.want(`1>34 connected, read back as asked`, `● 1>34 light`, `loss +\d\.\d\d dB`, `set by us, change 1`)

	s.keys("u")
	s.want(`─ preview ─`, `- 1>34`)
	s.accept()
	s.want(`1>34 free`)
	s.keys("U")
	s.want(`─ preview ─`, `\+ 1>34`)
	s.accept()
	s.want(`● 1>34 light`)

	other("connect", "tl1://admin@"+device.addr, "5>40")
	s.want(`somebody else: \+ 5>40 \(admin\)`)

	s.resize(80, 24)
	s.want(`bench  REAL`, `rail0`, `1>34`)
	s.keys("v") // the list
	s.want(`1 +34 +gpu1/ens1f0`, `5 +40`)
	s.keys("/")
	s.want(`fuzzy words`) // before that ! is the panic key
	s.literal("!others")
	s.gone(`(?m)^\W+5 +40`)
	s.keys("Enter") // kept
	s.gone(`fuzzy words`)
	s.keys("Escape") // cleared
	s.want(`5 +40`)
	s.resize(120, 40)

	device.kill()
	s.want(`LOST`, `rail0 does not answer any more`, `stale`)
	emulated(t, ocslab, device.addr)
	s.want(`1 switch up`, `while it was away`)
	s.gone(`LOST`)
	s.want(`1 +gpu1/ens1f0 .* not connected`) // the device has forgotten, and that is what is shown

	s.keys("6")
	s.want(`→ sent +connect 1>34 \(ENT-PATCH\)`, `▶ did +\$ ocslab --lab \S+ connect rail0 '1>34'`, `rail0 is back after`)
	s.literal("/")
	s.literal("'ENT-PATCH")
	s.gone(`RTRV-PATCH`)
	s.keys("Escape")
	s.gone(`fuzzy words`) // or the bytes of the click would be taken for the rest of a key
	s.click(5, 2)         // the first tab
	s.want(`not connected`)

	s.keys("q")
	s.want(`exit code 0`)
	t.Logf("\n%s", s.script.String())
}

// device is "ocslab emulate" of one switch.
type device struct {
	cmd  *exec.Cmd
	addr string
}

func (d *device) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// emulated starts a switch that listens for TL1 at an address.
func emulated(t *testing.T, ocslab, addr string) *device {
	t.Helper()
	d := &device{cmd: exec.Command(ocslab, "--json", "emulate", "--model", "polatis-6000-32x32", "--name", "rail0", "--tl1", addr)}
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	var ready struct {
		Endpoints map[string]string `json:"endpoints"`
	}
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	d.addr = ready.Endpoints["tl1"]
	return d
}

// Ensure a panic key that arrives with others in one write asks for the panic and does nothing else, and that
// one y in a write of its own does it.
func TestTUI_Burst(t *testing.T) {
	dir := t.TempDir()
	env := []string{"OCSLAB_STATE_DIR=" + filepath.Join(dir, "state"), "HOME=" + dir, "TERM=screen-256color", "NO_COLOR=1", "LANG=C.UTF-8"}
	s := newScreen(t, 120, 40, env, installed(t), "tui", "--rung", "memory")
	s.want(`1 switch up`)
	s.keys("Right")
	s.want(`1>34 free`)
	s.keys("Enter")
	s.want(`do nothing \]`, `\+ 1>34`)
	s.accept()
	s.want(`● 1>34 light`)
	s.literal("!smoke\ry")
	s.want(`─ panic ─`, `panic: no reason given`, `rail0\s`, `y do it`)
	s.until("1 circuit, and no panic in force", func(text string) bool {
		return strings.Contains(text, "1 circuit") && !strings.Contains(text, "PANIC since")
	})
	s.keys("y")
	s.want(`PANIC since .*no reason given`, `rail0 .*(closed|removed)`)
	s.keys("q")
	s.want(`exit code 0`)
	t.Logf("\n%s", s.script.String())
}

// Ensure that in read-only mode nothing that is typed or clicked reaches a switch.
func TestTUI_ReadOnly(t *testing.T) {
	dir := t.TempDir()
	env := []string{"OCSLAB_STATE_DIR=" + filepath.Join(dir, "state"), "HOME=" + dir, "TERM=screen-256color", "NO_COLOR=1", "LANG=C.UTF-8"}
	s := newScreen(t, 100, 30, env, installed(t), "tui", "--read-only", "--rung", "memory")
	s.want(`READ-ONLY`, `1 switch up`)
	s.keys("Right")
	s.want(`1>34 free`)
	s.keys("Enter")
	s.want(`✗ connect: read-only`)
	for _, x := range [][2]string{
		{"d", "disconnect"}, {"c", "connect"}, {"C", "configure"}, {"u", "undo"}, {"U", "redo"}, {"!", "panic"}, {"e", "edit"},
	} {
		s.keys(x[0])
		s.want(`✗ ` + x[1] + `: read-only`)
	}
	s.keys(":")
	s.literal("connect rail0 1>34")
	s.keys("Enter")
	s.want(`:connect rail0 1>34`, `connect: read-only: nothing was sent`)
	s.keys("Escape")
	s.gone(`:connect`)
	s.keys("v")
	s.want(`ingress +egress`)
	if text := s.text(); strings.Contains(text, "● light") || strings.Contains(text, "─ preview ─") {
		t.Errorf("something was connected, or proposed:\n%s", text)
	}
	s.keys("q")
	s.want(`exit code 0`)
	if data, err := os.ReadFile(filepath.Join(dir, "state", "history.ndjson")); err == nil && len(data) > 0 {
		t.Error("there is a change in the history")
	}
}

// Ensure the commands that the UI shows work in another shell while it is open on the
// emulated testbed, on the same switch and in the same history.
func TestTUI_Beside(t *testing.T) {
	dir := t.TempDir()
	ocslab := installed(t)
	state := filepath.Join(dir, "state")
	env := []string{"OCSLAB_STATE_DIR=" + state, "HOME=" + dir, "TERM=screen-256color", "NO_COLOR=1", "LANG=C.UTF-8"}
	s := newScreen(t, 120, 40, env, ocslab, "tui", "--rung", "memory")
	s.want(`1 switch up`)
	other := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(ocslab, append([]string{"--state-dir", state, "--emulated"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	other("connect", "rail0", "1>34")
	s.want(`1 circuit`)
	s.keys("u")
	s.want(`do nothing \]`, `- 1>34`)
	s.accept()
	s.want(`0 circuits`)
	if text := other("history"); !strings.Contains(text, "undone by 3") {
		t.Errorf("the history is\n%s", text)
	}
	s.keys("q")
	s.want(`exit code 0`)
}

// Ensure the demo, which remembers nothing, leaves nothing in the history that is not on the
// switches that others emulate.
func TestTUI_Demo(t *testing.T) {
	dir := t.TempDir()
	env := []string{"OCSLAB_STATE_DIR=" + filepath.Join(dir, "state"), "HOME=" + dir, "TMPDIR=" + dir, "TERM=screen-256color", "NO_COLOR=1", "LANG=C.UTF-8"}
	s := newScreen(t, 120, 40, env, installed(t), "demo", "--tui", "--rung", "memory")
	s.want(`1 switch up`)
	s.keys("Right")
	s.want(`1>34 free`)
	s.keys("Enter")
	s.want(`do nothing \]`, `\+ 1>34`)
	s.accept()
	s.want(`1>34 connected`)
	s.keys("q")
	s.want(`exit code 0`)
	if data, err := os.ReadFile(filepath.Join(dir, "state", "history.ndjson")); err == nil && len(data) > 0 {
		t.Errorf("the history has\n%s", data)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "ocslab-demo-*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// Ensure warnings go where they are sent, and to where they went before afterwards.
func TestWarnTo(t *testing.T) {
	var before, during bytes.Buffer
	w, flags := log.Writer(), log.Flags()
	defer func() { log.SetOutput(w); log.SetFlags(flags) }()
	log.SetOutput(&before)
	restore := warnTo(slog.NewTextHandler(&during, nil))
	slog.Warn("one")
	restore()
	slog.Warn("two")
	if a, b := during.String(), before.String(); !strings.Contains(a, "one") || strings.Contains(a, "two") || !strings.Contains(b, "two") || strings.Contains(b, "one") {
		t.Errorf("during: %q, after: %q", a, b)
	}
}
