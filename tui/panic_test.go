package tui

import (
	"errors"
	"testing"

	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/screen/runscreen"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// Ensure a panic does not wait for a change that is being sent, which may hang.
func TestPanic_WhileSending(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = possible
	u.command("connect rail0 1>36")
	u.hold = true
	u.accept()
	if u.m.sending == nil {
		t.Fatal("nothing is being sent")
	}
	change := u.held
	u.held, u.hold = nil, false
	u.command("panic smoke")
	if d := u.dialog(); d == nil || d.wish.Verb != live.PanicNow {
		t.Fatalf("no preview of the panic:\n%s", u.text())
	}
	u.hold = true
	u.accept()
	u.wants("sending: panic", "and connect rail0 1>36")
	u.hold = false
	u.keys("!")
	if u.dialog() != nil {
		t.Error("a panic was begun while another was being sent")
	}
	u.release()
	u.mutations(`apply panic --reason "smoke"`)
	if u.m.sending == nil {
		t.Error("the change counts as sent, since the panic was")
	}
	for _, c := range change {
		u.do(c)
	}
	if u.m.isSending() {
		t.Error("something still counts as being sent")
	}
	u.mutations(`apply panic --reason "smoke"`, "apply connect rail0 1>36")
}

// Ensure that what is refused while a change is being sent is readable then, and is not
// overwritten by what becomes of that change.
func TestRefused_WhileSending(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = possible
	u.command("connect rail0 1>36")
	u.hold = true
	u.accept()
	u.keys("u")
	u.wants("✗ not begun: undo; sending: connect rail0 1>36")
	u.release()
	u.wants("✗ not begun: undo; connect rail0 1>36: done")
	u.mutations("apply connect rail0 1>36")
	u.command("connect rail0 1>36")
	u.accept()
	u.wantsNot("not begun")
}

// Ensure that a panic says where light may still be on, in a line of its own.
func TestPanic_StillLit(t *testing.T) {
	s := tuitest.Testbed()
	s.Panic = &live.Panic{At: tuitest.Now, Who: "mara", Reason: "smoke", Lit: "light may still be on at rail1: not reached: connection refused"}
	u := newUI(t, s, 80, 24, Options{})
	u.wants("PANIC since", "⚠ light may still be on at rail1: not reached: connection refused")
	s = tuitest.Testbed()
	s.Panic = &live.Panic{At: tuitest.Now, Who: "mara", Reason: "smoke"}
	u.state(s)
	u.wantsNot("light may still be on")
}

// Ensure that the commands that are shown open the lab that is open here, and are quoted.
func TestCalls_CommandsOfThisLab(t *testing.T) {
	s := tuitest.Testbed()
	s.Program = []string{"ocslab", "--lab", "my lab.yaml", "--emulated"}
	u := newPages(t, s, Options{})
	for _, tt := range []struct{ got, want string }{
		{u.m.load("a b.yaml").CLI, "ocslab --lab 'my lab.yaml' --emulated run 'a b.yaml' --plan"},
		{
			runscreen.Resume(u.m.Env(), "20260101-1").Ways[0].Then()[0].(screen.Call).CLI,
			"ocslab --lab 'my lab.yaml' --emulated runs resume 20260101-1",
		},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

// Ensure the panic key works over whatever is open, and puts a change away that waits to be
// accepted.
func TestPanic_OverWindows(t *testing.T) {
	u := newPages(t, busy(), Options{})
	u.lab.Answer = possible
	u.command("connect rail0 1>36")
	u.keys("!", "y")
	u.mutations(`apply panic --reason "no reason given"`)

	for _, open := range []string{"?", "ctrl+p", "C", "q"} {
		u.keys(open, "!")
		if d := u.dialog(); d == nil || !d.isPanic() || len(u.m.layers) != 1 {
			t.Errorf("%s: no panic is asked for, or not that alone:\n%s", open, u.text())
		}
		u.keys("esc")
	}
	u.command("connect rail0 1>36")
	u.m.readOnly = true
	u.keys("!")
	if d := u.dialog(); d == nil || d.isPanic() {
		t.Error("read-only lets the panic key put a preview away")
	}
	u.mutations(`apply panic --reason "no reason given"`)
}

// Ensure nobody is told that nothing was sent when a part was.
func TestApplied_Part(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = possible
	u.lab.Become = func(p live.Preview) live.Outcome {
		return live.Outcome{Title: p.Title, ID: []int{7}, Err: errors.Join(live.ErrChanged)}
	}
	u.command("connect rail0 1>36")
	u.accept()
	u.wants("A part was sent")
	u.wantsNot("nothing was sent")
}

// Ensure an undo that came too late does not offer to take back another change, which is what
// undo means by then.
func TestApplied_UndoChanged(t *testing.T) {
	for _, key := range []string{"u", "U"} {
		u := newPages(t, tuitest.Testbed(), Options{})
		u.lab.Answer = possible
		u.lab.Become = func(p live.Preview) live.Outcome {
			return live.Outcome{Title: p.Title, Text: "somebody was faster", Err: live.ErrChanged}
		}
		u.keys(key)
		u.accept()
		if u.dialog() != nil {
			t.Errorf("%s: a preview of another change:\n%s", key, u.text())
		}
		u.wants("somebody was faster")
	}
}
