package tui

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"

	"github.com/ocslab/ocslab/lab/blackout"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/tuitest"
)

const connect = "connect rail0 1>34,7>36"

// previewed returns a UI with a preview open, drawn just now.
func previewed(t *testing.T) *ui {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = risky
	u.command(connect)
	if u.dialog() == nil {
		t.Fatal("no preview is open")
	}
	return u
}

func TestDialog_Accept(t *testing.T) {
	u := previewed(t)
	u.accept()
	u.mutations("apply " + connect)
	u.wants(connect + ": done")
	if u.dialog() != nil || u.m.sending != nil {
		t.Error("something is still open")
	}
}

// Every key but y leaves everything as it is; those for it also close the window, and so
// does that for a panic, which cannot wait. Enter does neither.
func TestDialog_OtherKeys(t *testing.T) {
	for _, k := range append(allKeys(), "j", "tab", "space", "ctrl+y", "alt+y", "ctrl+j", "ctrl+m") {
		if k == "y" {
			continue
		}
		u := previewed(t)
		u.pass(time.Second)
		u.keys(k)
		u.mutations()
		b, _ := keymap.For(k, keymap.InPreview)
		want := b.Action == keymap.Cancel || k == "!" || k == "alt+!"
		if closed := u.dialog() == nil || u.dialog().isPanic(); closed != want {
			t.Errorf("%s: closed: %t", k, closed)
		}
		if k == "enter" {
			u.wants("y does it, esc does not")
		}
	}
}

// A y that was typed ahead, is pasted, or comes from a key held down accepts nothing.
func TestDialog_TooEarly(t *testing.T) {
	tests := map[string]func(u *ui){
		"before the preview is there": func(u *ui) {
			u.hold = true
			u.command(connect)
			u.keys("y", "y")
			u.release()
		},
		"at once": func(u *ui) { u.command(connect); u.keys("y") },
		"held down": func(u *ui) {
			u.command(connect)
			for range 40 {
				u.pass(30 * time.Millisecond)
				u.keys("y")
			}
		},
		"pasted": func(u *ui) {
			u.command(connect)
			u.pass(time.Second)
			u.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("y"), Paste: true})
		},
		"several at once": func(u *ui) {
			u.command(connect)
			u.pass(time.Second)
			u.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("yy")})
		},
		"too small to see": func(u *ui) {
			u.send(tea.WindowSizeMsg{Width: 30, Height: 8})
			u.m.request(screen.Propose{Wish: live.Wish{Verb: live.Undo}})
			u.pass(time.Second)
			u.keys("y")
		},
		"not drawn": func(u *ui) {
			u.command(connect)
			u.m.Update(tea.WindowSizeMsg{Width: 30, Height: 8})
			u.size = [2]int{30, 8}
			u.pass(time.Second)
			u.keys("y")
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			u := newPages(t, tuitest.Testbed(), Options{})
			u.lab.Answer = risky
			do(u)
			u.mutations()
		})
	}
}

// TestDialog_OtherKeyThanOpened: whatever opens a preview, it does not accept it.
func TestDialog_OtherKeyThanOpened(t *testing.T) {
	accept, _ := keymap.Of(keymap.Accept)
	for _, b := range keymap.Bindings() {
		for _, k := range b.Keys {
			if b.Mutates && b.Action != keymap.Accept && slices.Contains(accept.Keys, k) {
				t.Errorf("%s opens (%s) and accepts", k, b.Action)
			}
		}
	}
	if slices.Contains(accept.Keys, "enter") {
		t.Error("enter, which opens previews, accepts them")
	}
}

func TestDialog_Policy(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	var asked []ocs.Policy
	u.lab.Answer = func(w live.Wish) live.Preview {
		asked = append(asked, w.Policy)
		p := risky(w)
		if w.Policy == "" || w.Policy == ocs.Safe {
			p.Err = fmt.Errorf("rail0: %w: 2>34", ocs.ErrConflict)
		}
		return p
	}
	u.command(connect)
	u.wants("cannot be done", "port is busy: 2>34", "m policy: safe")
	u.accept()
	u.mutations()
	u.keys("m")
	u.wants("m policy: update")
	u.keys("y") // the new one has not been seen yet
	u.mutations()
	u.keys("m")
	u.keys("m")
	u.keys("m")
	u.accept()
	u.mutations("apply " + connect)
	if want := []ocs.Policy{"", ocs.Update, ocs.Overwrite, ocs.Safe, ocs.Update}; !slices.Equal(asked, want) {
		t.Errorf("asked with %q, want %q", asked, want)
	}
}

func TestDialog_NoPolicy(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = risky
	u.keys("u", "m")
	u.wants("there is no choice here")
	u.wantsNot("policy:")
}

// A preview of another wish, or of one that was closed, is not taken.
func TestDialog_Late(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = risky
	u.hold = true
	u.command(connect)
	u.keys("esc")
	u.command("undo")
	u.send(previewMsg{1, risky(live.Wish{Verb: live.Connect})})
	if d := u.dialog(); d == nil || d.ready {
		t.Fatal("the preview of something else is shown")
	}
	u.release()
	if d := u.dialog(); d == nil || !d.ready || d.preview.Wish.Verb != live.Undo {
		t.Fatal("the preview is not shown")
	}
	u.keys("esc")
	u.mutations()
}

func TestDialog_CancelledWhileLooking(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.hold = true
	u.command(connect)
	var ctx context.Context
	u.lab.Answer = func(w live.Wish) live.Preview { return live.Preview{Wish: w} }
	d := u.dialog()
	canceled := false
	inner := d.cancel
	d.cancel = func() { canceled = true; inner() }
	_ = ctx
	u.keys("esc")
	if !canceled || u.dialog() != nil {
		t.Error("it goes on looking")
	}
}

func TestDialog_NothingToDo(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = func(w live.Wish) live.Preview {
		return live.Preview{Wish: w, Title: "undo", Err: fmt.Errorf("nothing was changed here: %w", live.ErrNothing)}
	}
	u.keys("u")
	u.wants("nothing was changed here: nothing to do")
	u.lab.Answer = func(w live.Wish) live.Preview { return live.Preview{Wish: w, Title: "connect rail0 1>35"} }
	u.command("connect rail0 1>35")
	u.wants("nothing to do, it is so already")
	if u.dialog() != nil {
		t.Error("a window is open")
	}
}

// There is one pending change at most: one that waits, or one that is being sent.
func TestDialog_OnlyOne(t *testing.T) {
	u := previewed(t)
	u.request(screen.Propose{Wish: live.Wish{Verb: live.Undo}})
	u.wants("nothing was begun: another change waits to be accepted")
	u.hold = true
	u.accept()
	u.wants("sending: " + connect)
	u.keys("u")
	u.wants("sending: " + connect)
	if u.dialog() != nil {
		t.Fatal("a second preview is open while a change is being sent")
	}
	u.command("undo")
	if u.dialog() != nil {
		t.Fatal("a second preview is open while a change is being sent")
	}
	u.release()
	u.mutations("apply " + connect)
}

// A switch that has changed meanwhile is looked at again, and accepted again.
func TestDialog_Changed(t *testing.T) {
	u := previewed(t)
	u.lab.Become = func(p live.Preview) live.Outcome {
		return live.Outcome{Title: p.Title, Text: "nothing was sent: 1>36 is there now", Err: fmt.Errorf("rail0: %w", live.ErrChanged)}
	}
	u.accept()
	u.wants("It has changed since it was looked at, so nothing was sent")
	u.mutations("apply " + connect)
	u.keys("y")
	u.mutations("apply " + connect)
	u.lab.Become = nil
	u.accept()
	u.mutations("apply "+connect, "apply "+connect)
}

// A window that opens by itself must not take keys that are meant for another.
func TestDialog_ChangedWhileTyping(t *testing.T) {
	u := previewed(t)
	u.lab.Become = func(p live.Preview) live.Outcome { return live.Outcome{Title: p.Title, Err: live.ErrChanged} }
	u.hold = true
	u.accept()
	u.keys(":")
	u.release()
	if u.dialog() != nil {
		t.Error("a preview opened over a prompt")
	}
}

func TestDialog_Failed(t *testing.T) {
	u := previewed(t)
	u.lab.Become = func(p live.Preview) live.Outcome {
		return live.Outcome{Title: p.Title, Err: errors.New("rail0: denied")}
	}
	u.accept()
	u.wants("✗ " + connect + ": rail0: denied")
}

func TestDialog_Scroll(t *testing.T) {
	u := previewed(t)
	d := u.dialog()
	last := d.all - d.fits
	if last < 3 {
		t.Fatalf("all of it is seen: %d of %d lines", d.fits, d.all)
	}
	u.wants(fmt.Sprintf("%d lines below", last))
	u.wantsNot("$ ocslab connect")
	u.keys("pgdown")
	u.wants("$ ocslab connect", fmt.Sprintf("%d lines above", last))
	u.keys("k", "up")
	u.wants("2 lines below")
	u.send(tea.MouseMsg{X: 40, Y: 12, Action: tea.MouseActionPress, Button: tea.MouseButtonWheelDown})
	if d.top != last {
		t.Errorf("line %d is the first, want %d", d.top, last)
	}
	u.mutations()
}

// A preview of which nothing, or not every warning, has been seen is not accepted.
func TestDialog_Unseen(t *testing.T) {
	u := newPages(t, busy(), Options{})
	u.lab.Answer = risky
	u.keys("f")
	u.send(tea.WindowSizeMsg{Width: 40, Height: 10})
	u.command(connect)
	u.accept()
	u.accept()
	u.mutations()
	u.send(tea.WindowSizeMsg{Width: 40, Height: 14})
	u.accept()
	u.mutations()
	u.wants("not all warnings have")
	for range 20 {
		u.keys("down")
	}
	u.accept()
	u.mutations("apply " + connect)
}

// A click closes at most: it could hit by chance.
func TestDialog_Mouse(t *testing.T) {
	closed := 0
	for y := range 24 {
		for x := 0; x < 80; x += 5 {
			u := previewed(t)
			u.pass(time.Second)
			u.send(tea.MouseMsg{X: x, Y: y, Action: tea.MouseActionPress, Button: tea.MouseButtonLeft})
			u.mutations()
			if u.dialog() == nil {
				closed++
			}
		}
	}
	if closed == 0 {
		t.Error("no click cancels")
	}
}

func TestPanic(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = possible
	u.keys("!", "!", "enter")
	if d := u.dialog(); d == nil || d.wish.Reason != blackout.NoReason {
		t.Fatal("no preview of the panic")
	}
	u.keys("y") // at once
	u.mutations(`apply panic --reason "no reason given"`)
	u.command("panic smoke in the rack")
	u.accept()
	u.mutations(`apply panic --reason "no reason given"`, `apply panic --reason "smoke in the rack"`)
	u.command("panic")
	u.keys("esc")
	if u.dialog() != nil {
		t.Error("esc does not close the question")
	}
	u.mutations(`apply panic --reason "no reason given"`, `apply panic --reason "smoke in the rack"`)
}

func TestPaste(t *testing.T) {
	for _, b := range keymap.Bindings() {
		for _, k := range b.Keys {
			if len(k) != 1 || b.Action == keymap.Panic {
				continue
			}
			u := newPages(t, busy(), Options{})
			u.m.screens = acting()
			u.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k), Paste: true})
			if got := u.page().did; len(got) > 0 || u.m.top() != nil || u.m.at != 0 || u.quit {
				t.Errorf("pasted %q did something: %v", k, got)
			}
		}
	}
	for _, text := range []string{"jjj", ":q", "/x", "ccy", "qqq"} {
		u := newPages(t, busy(), Options{})
		u.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: true})
		if got := u.page().did; len(got) > 0 || u.m.top() != nil || u.quit {
			t.Errorf("pasted %q did something: %v", text, got)
		}
		u.wants("pasted text is not taken as keys")
	}
	u := newPages(t, tuitest.Testbed(), Options{})
	u.keys(":")
	u.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("connect rail0 1>34\r\n7>36\x1b[2J"), Paste: true})
	if got := u.m.top().(*prompt).edit.String(); got != "connect rail0 1>34 7>36[2J" {
		t.Errorf("pasted into a prompt: %q", got)
	}
}

func TestBurst(t *testing.T) {
	burst := func(s string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(s)} }
	u := newPages(t, tuitest.Testbed(), Options{})
	u.m.screens = acting()
	u.send(burst("jjj"))
	if got := u.page().did; !slices.Equal(got, []keymap.Action{keymap.Down, keymap.Down, keymap.Down}) {
		t.Errorf("a key held down did %v", got)
	}
	u.send(burst("jcy"))
	if got := u.page().did; len(got) != 4 || u.m.top() != nil {
		t.Errorf("a burst did %v", got)
	}
	u.send(burst("quit"))
	if u.quit {
		t.Error("a burst quits")
	}
	u.keys(":")
	for _, word := range []string{"enter", "esc", "up", "tab", "home", "left", "backspace", "ctrl+c"} {
		u.send(burst(word))
		if p, ok := u.m.top().(*prompt); !ok || p.edit.String() != word {
			t.Fatalf("the word %q is taken for the key", word)
		}
		u.keys("ctrl+u")
	}
	u.keys("esc")
	u.send(burst(":goto rail0/33"))
	if p, ok := u.m.top().(*prompt); !ok || p.edit.String() != "goto rail0/33" {
		t.Error("what follows : is not typed")
	}
	u.keys("enter")
	if u.page().focus != "rail0/33" {
		t.Errorf("the cursor is on %q", u.page().focus)
	}
}

// TestBurst_Navigation: keys that only change what is shown work when typed faster than they
// are read; nothing is proposed or accepted, and nothing is done behind a key that is left.
func TestBurst_Navigation(t *testing.T) {
	burst := func(s string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(s)} }
	u := newUI(t, tuitest.Testbed(), 80, 24, Options{})
	u.lab.Answer = risky
	tests := []struct {
		keys string
		at   int
		says string
	}{
		{"2jj", 1, ""}, {"3C", 2, "C was left alone"}, {"45", 4, ""}, {"1vv", 0, ""}, {"-", 4, ""}, {"1c2", 0, "c was left alone"},
		{"2u", 1, "u was left alone"}, {"2y1", 1, "y was left alone"}, {"1R", 0, "R was left alone"},
	}
	for _, x := range tests {
		u.send(burst(x.keys))
		if u.m.at != x.at || u.m.top() != nil {
			t.Errorf("%s: screen %d, want %d; window %T", x.keys, u.m.at, x.at, u.m.top())
		}
		if x.says != "" {
			u.wants(x.says)
		}
		u.mutations()
	}
	u.send(burst("1'12>40"))
	if p, ok := u.m.top().(*prompt); !ok || p.edit.String() != "12>40" {
		t.Errorf("what follows ' is not typed: %T", u.m.top())
	}
	u.keys("esc")
	u.command(connect)
	u.pass(time.Second)
	u.send(burst("2y"))
	if u.m.at != 0 || u.dialog() == nil {
		t.Error("a preview is left by a burst")
	}
	u.mutations()
}

func TestBack(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.keys("2", "5", " ", "/")
	u.m.screen().(*page).marked = true
	u.write("line")
	u.keys("enter", "?", "/")
	u.write("x")
	steps := []func() bool{
		func() bool { return len(u.m.layers) == 1 && u.m.top().(*window).filter == "" }, // the search
		func() bool { return len(u.m.layers) == 0 },                                     // the help
		func() bool { return u.m.filters[4].Empty() },
		func() bool { return !u.page().marked },
		func() bool { return u.m.at == 1 },
		func() bool { return u.m.at == 0 },
		func() bool { return u.m.at == 0 && !u.quit },
	}
	for i, ok := range steps {
		u.keys("esc")
		if !ok() {
			t.Fatalf("after %d times esc:\n%s", i+1, u.text())
		}
	}
}

func TestScreens(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	tests := []struct {
		key  string
		want int
	}{
		{"3", 2}, {"tab", 3}, {"shift+tab", 2}, {"-", 3}, {"-", 2}, {"6", 5}, {"tab", 0}, {"shift+tab", 5}, {"1", 0}, {"1", 0}, {"-", 5},
	}
	for _, x := range tests {
		u.keys(x.key)
		if u.m.at != x.want {
			t.Errorf("%s shows screen %d, want %d", x.key, u.m.at+1, x.want+1)
		}
	}
}

func TestFilter(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.keys("/")
	u.write("'line 7")
	u.wants("patch line 7")
	u.wantsNot("patch line 8")
	u.keys("enter", "2")
	u.wants("links line 8")
	u.keys("1")
	u.wants("/'line 7")
	u.keys("/", "esc")
	u.wants("patch line 8")
	u.command("filter 'line 3")
	u.wantsNot("patch line 4")
	u.command("filter")
	u.wants("patch line 4")
}

func TestFreeze(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.keys("f")
	at := u.m.Env().Now
	s := *tuitest.Testbed()
	s.Version += 3
	u.pass(5 * time.Second)
	u.state(&s)
	if u.m.Env().State == &s || !u.m.Env().Now.Equal(at) {
		t.Error("what is frozen moves")
	}
	u.wants("FROZEN 5.0 s; 3 changes since")
	u.keys("f")
	if u.m.Env().State != &s || u.m.Env().Now.Equal(at) {
		t.Error("it stands still")
	}
	u.wantsNot("FROZEN")
}

// The age of a message is before it, so that a narrow terminal does not cut it off.
func TestMessage_Age(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.m.say("a message that is longer than a terminal of eighty columns is wide, which many are", false)
	u.pass(12 * time.Second)
	u.wants(" 12 s ago: a message that")
}

func TestReadOnly(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.keys("R")
	u.wants("READ-ONLY")
	if !u.lab.State().ReadOnly {
		t.Error("the lab was not told")
	}
	u.keys("u")
	u.wants("undo: read-only: nothing was sent")
	u.command("write")
	u.wantsNot("READ-ONLY")
	u = newPages(t, tuitest.Testbed(), Options{ReadOnly: true})
	u.command("write")
	u.wants("READ-ONLY", "started read-only")
	u.keys("R")
	u.wants("read-only already")
}

func TestQuit(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.keys("q")
	if !u.quit {
		t.Error("q does not quit")
	}

	u = previewed(t)
	u.hold = true
	u.accept()
	u.keys("ctrl+c")
	u.wants("quits after it")
	if u.quit {
		t.Fatal("quits while a change is being sent")
	}
	u.release()
	if !u.quit {
		t.Error("does not quit after the change")
	}

	u = previewed(t)
	u.lab.Become = func(p live.Preview) live.Outcome { return live.Outcome{Title: p.Title, Err: errors.New("denied")} }
	u.hold = true
	u.accept()
	u.keys("q", "q")
	u.wants("quit now, while a change is being sent?")
	u.keys("esc")
	u.keys("q")
	u.release()
	if u.quit {
		t.Error("a failure is not shown")
	}

	s := busy()
	u = newPages(t, s, Options{})
	u.keys("q", "enter", "q") // the last closes the question
	if u.quit || u.m.top() != nil {
		t.Error("q and enter quit during a run, or leave the question open")
	}
	u.keys("q")
	u.accept()
	if !u.quit {
		t.Error("cannot be quit during a run")
	}
}

func TestMouse(t *testing.T) {
	press := func(x, y int, b tea.MouseButton) tea.MouseMsg {
		return tea.MouseMsg{X: x, Y: y, Action: tea.MouseActionPress, Button: b}
	}
	u := newPages(t, tuitest.Testbed(), Options{})
	u.send(press(5, 4, tea.MouseButtonLeft))
	u.send(press(5, 4, tea.MouseButtonLeft))
	u.send(press(5, 4, tea.MouseButtonLeft))
	u.clock = u.clock.Add(doubleClick)
	u.send(press(5, 4, tea.MouseButtonLeft))
	u.send(press(6, 4, tea.MouseButtonLeft))
	u.send(tea.MouseMsg{X: 6, Y: 4, Action: tea.MouseActionRelease})
	u.send(tea.MouseMsg{X: 6, Y: 4, Action: tea.MouseActionPress, Button: tea.MouseButtonLeft, Ctrl: true})
	u.send(press(9, 5, tea.MouseButtonWheelDown))
	u.send(tea.MouseMsg{X: 9, Y: 5, Action: tea.MouseActionPress, Button: tea.MouseButtonWheelUp, Shift: true})
	want := []screen.Mouse{
		{ID: 2, DX: 5, W: 80, H: 1}, {ID: 2, DX: 5, W: 80, H: 1, Double: true}, {ID: 2, DX: 5, W: 80, H: 1},
		{ID: 2, DX: 5, W: 80, H: 1}, {ID: 2, DX: 6, W: 80, H: 1}, {ID: 2, DX: 6, W: 80, H: 1, Double: true, Shift: true},
		{ID: 3, DX: 9, W: 80, H: 1, Wheel: notch}, {ID: 3, DX: 9, W: 80, H: 1, Side: -notch},
	}
	if got := u.page().mice; !slices.Equal(got, want) {
		t.Errorf("the screen was told\n%+v, want\n%+v", got, want)
	}
	u.frame()
	for x := range 80 {
		if z, _, _, ok := u.m.canvas.Hit(x, 1); ok {
			u.send(press(x, 1, tea.MouseButtonLeft))
			if u.m.at != z.ID.(tabZone).i {
				t.Errorf("a click at column %d shows screen %d", x, u.m.at+1)
			}
		}
	}
	if u.m.at != 5 {
		t.Error("the last tab was not clicked")
	}
	u.keys("1", "?")
	n := len(u.m.screens[0].(*page).mice)
	u.send(press(5, 4, tea.MouseButtonLeft))
	if len(u.m.screens[0].(*page).mice) != n {
		t.Error("a click goes through a window")
	}
}

func TestMouse_Released(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	if cmd := u.m.press(key("M")); fmt.Sprintf("%T", cmd()) != fmt.Sprintf("%T", tea.DisableMouse()) {
		t.Error("M does not leave the mouse to the terminal")
	}
	if cmd := u.m.mouseAgain(); cmd != nil {
		t.Error("takes the mouse that was left to the terminal")
	}
	if cmd := u.m.press(key("M")); fmt.Sprintf("%T", cmd()) != fmt.Sprintf("%T", tea.EnableMouseCellMotion()) {
		t.Error("M does not take the mouse back")
	}
}

func TestCopy(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.keys("Y")
	u.wants("nothing here to copy")
	u.page().copies = "1>33\n2>34"
	u.keys("Y")
	u.wants("copied 2 lines")
	if got, want := u.out.String(), "\x1b]52;c;"+base64.StdEncoding.EncodeToString([]byte("1>33\n2>34"))+"\x07"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	u.page().copies = strings.Repeat("x", mostCopied+1)
	u.keys("Y")
	u.wants("ctrl+s saves it")
}

func TestOSC52(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"", "", "\x1b]52;c;eA==\x07"},
		{"TMUX", "/tmp/tmux-0/default,1,0", "\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\"},
		{"TERM", "screen-256color", "\x1bP\x1b]52;c;eA==\x07\x1b\\"},
	}
	for _, x := range tests {
		got := osc52("x", func(name string) string {
			if name == x.name {
				return x.value
			}
			return ""
		})
		if got != x.want {
			t.Errorf("%s=%s: %q, want %q", x.name, x.value, got, x.want)
		}
	}
	for part := range strings.SplitSeq(osc52(strings.Repeat("x", 5000), func(n string) string { return map[string]string{"TERM": "screen"}[n] }), "\x1b\\") {
		if len(part) > 768 {
			t.Errorf("%d bytes at once", len(part))
		}
	}
}

func TestSave(t *testing.T) {
	t.Chdir(t.TempDir())
	u := newPages(t, tuitest.Testbed(), Options{})
	u.keys("ctrl+s", "enter")
	u.wants("saved ocslab-patch-20261122-150405.txt")
	data, err := os.ReadFile("ocslab-patch-20261122-150405.txt")
	if err != nil || !strings.Contains(string(data), "patch line 19\n") {
		t.Errorf("%q, %v", data, err)
	}
	u.keys("ctrl+s", "enter")
	u.wants("is there already")
	u.keys("ctrl+s")
	u.keys("ctrl+u", "enter")
	u.wants("a file needs a name")
}

func TestEdit(t *testing.T) {
	t.Chdir(t.TempDir())
	u := newPages(t, tuitest.Testbed(), Options{})
	u.keys("e")
	u.wants("built in and has no file")

	if err := os.WriteFile("opus-testbed.yaml", []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	if u.m.press(key("e")) == nil {
		t.Fatal("no editor")
	}
	info, err := os.Stat("opus-testbed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	request := screen.EditFile{Path: "opus-testbed.yaml", Then: []screen.Request{screen.Goto{Screen: keymap.Screen2}}}
	u.send(editedMsg{request: request, before: info})
	u.wants("was not changed", "links line 1")
	if err := os.WriteFile("opus-testbed.yaml", []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	u.send(editedMsg{request: request, before: info})
	u.wants("opus-testbed.yaml is in force")
	u.lab.Fail = map[string]error{"reload": errors.New("the lab is busy")}
	u.send(editedMsg{request: request, before: info})
	u.wants("was not taken: the lab is busy")
	u.send(editedMsg{request: request, before: info, err: errors.New("exit status 1")})
	u.wants("the editor (vi): exit status 1")
}

func TestEditor(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	tests := []struct {
		env  func(string) string
		line int
		want string
	}{
		{env(), 0, "vi f"}, {env(), 7, "vi +7 f"}, {env("EDITOR", "nano"), 7, "nano +7 f"},
		{env("EDITOR", "nano", "VISUAL", "code -w"), 7, "code -w --goto f:7"}, {env("EDITOR", "/usr/bin/hx"), 3, "/usr/bin/hx f:3"},
		{env("EDITOR", "mine"), 3, "mine f"}, {env("VISUAL", "  ", "EDITOR", "ed"), 0, "ed f"},
	}
	for _, x := range tests {
		words := editorOf(x.env)
		got := strings.Join(append(words, editorArgs(words[0], screen.EditFile{Path: "f", Line: x.line})...), " ")
		if got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

func TestCommand_Errors(t *testing.T) {
	tests := map[string]string{
		"conect rail0 1>33":        "do you mean connect?",
		"frobnicate":               `there is no command "frobnicate"`,
		"connect rail9 1>33":       `no switch "rail9"; do you mean rail0?`,
		"connect spine 1>33":       `no switch "spine"; there are rail0`,
		"connect rail0 1-33":       "connect: ",
		"connect rail0":            "nothing to connect",
		"disconnect rail0 x":       "disconnect: ",
		"disconnect rail0":         "no ports",
		"link gpu1":                "want two NICs",
		"link gpu1 gpu1":           "named twice",
		"link gpu1 gpu9":           `no NIC "gpu9"`,
		"unlink gpux":              `no NIC "gpux"`,
		"configure dd":             `no configuration "dd"; do you mean dp?`,
		"restore":                  "want a plan file",
		"resume":                   "want the ID of one run",
		"goto mars":                `"mars" is no switch, port, NIC`,
		"goto move/99":             "no reconfiguration move/99",
		"theme pink":               "there are dark, light",
		"screen nine":              "want one of patch, links",
		"undo 3":                   "undo takes nothing after it",
		"accept":                   "is for a preview only",
		"cancel":                   "is for a preview only",
		"up and away":              "up takes nothing after it",
		"configure a configurable": "want the name of one configuration",
	}
	for text, want := range tests {
		u := newPages(t, tuitest.Testbed(), Options{})
		u.command(text)
		p, ok := u.m.top().(*prompt)
		if !ok {
			t.Errorf("%s: the prompt is gone: %s", text, u.m.note.text)
			continue
		}
		if !strings.Contains(p.why, want) {
			t.Errorf("%s: %q, want %q", text, p.why, want)
		}
		u.mutations()
	}
}

func TestCommand_Wishes(t *testing.T) {
	tests := map[string]live.Wish{
		"connect rail0 1>33, 2>34": {Verb: live.Connect, Switch: "rail0", Map: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}, ocs.CrossConnect{Ingress: 2, Egress: 34})},
		"disconnect rail0 1,2":     {Verb: live.Disconnect, Switch: "rail0", Ports: []ocs.Port{1, 2}},
		"link gpu1 gpu2/ens1f0":    {Verb: live.Link, NICs: []string{"gpu1/ens1f0", "gpu2/ens1f0"}},
		"unlink gpu1":              {Verb: live.Unlink, NICs: []string{"gpu1/ens1f0"}},
		"configure dp":             {Verb: live.Configure, Configuration: "dp"},
		"restore my plan.json":     {Verb: live.Restore, File: "my plan.json"},
		"undo":                     {Verb: live.Undo},
		"redo":                     {Verb: live.Redo},
		"lift":                     {Verb: live.Lift},
		"panic  smoke, and fire":   {Verb: live.PanicNow, Reason: "smoke, and fire"},
	}
	for text, want := range tests {
		u := newPages(t, tuitest.Testbed(), Options{})
		u.lab.Answer = risky
		u.command(text)
		d := u.dialog()
		if d == nil {
			t.Errorf("%s: no preview: %s", text, u.text())
			continue
		}
		if fmt.Sprint(d.wish) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", text, d.wish, want)
		}
	}
}

func TestCommand_Run(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.command("run toggle.yaml")
	if u.m.at != 3 || !slices.Equal(u.page().did, []keymap.Action{keymap.Run}) {
		t.Errorf("screen %d did %v", u.m.at+1, u.m.screens[3].(*page).did)
	}
	u.lab.Fail = map[string]error{"load": errors.New("toggle.yaml:3: unknown key")}
	u.command("run toggle.yaml")
	u.wants("loading toggle.yaml: toggle.yaml:3: unknown key")
	if len(u.page().did) != 1 {
		t.Error("runs what could not be loaded")
	}
	u.command("resume 20261122T150405-x-1a2b")
	u.mutations()
	u.wants("go on with 20261122T150405-x-1a2b?")
	u.accept()
	u.mutations("resume 20261122T150405-x-1a2b")
}

func TestCommand_History(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	for _, c := range []string{"theme light", "theme dark", "filter x", "theme light"} {
		u.command(c)
	}
	u.keys(":", "up")
	text := func() string { return u.m.top().(*prompt).edit.String() }
	for _, want := range []string{"theme light", "filter x", "theme dark", "theme dark"} {
		if text() != want {
			t.Errorf("%q, want %q", text(), want)
		}
		u.keys("up")
	}
	u.keys("down", "down", "down", "down")
	if text() != "" {
		t.Errorf("%q at the end", text())
	}
	if u.keys("esc"); u.m.writer.Theme.Name != "light" {
		t.Errorf("theme %s", u.m.writer.Theme.Name)
	}
}

func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, f := range []string{"toggle.yaml", "tables.yaml", ".hidden"} {
		if err := os.WriteFile(f, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("runs", 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ typed, keys, want string }{
		{"disc", "tab", "disconnect "},
		{"disconnect r", "tab", "disconnect rail0 "},
		{"link gpu1 g", "tab", "link gpu1 gpu1/ens1f0"},
		{"link gpu1 g", "tab tab", "link gpu1 gpu2/ens1f0"},
		{"link gpu1 g", "shift+tab", "link gpu1 gpu4/ens1f0"},
		{"configure ", "tab tab", "configure pp"},
		{"theme l", "tab", "theme light "},
		{"run tog", "tab", "run toggle.yaml "},
		{"run r", "tab", "run runs/"},
		{"run .", "tab", "run .hidden "},
		{"restore t", "tab tab tab", "restore tables.yaml"},
		{"goto move/2", "tab", "goto move/2"},
		{"undo x", "tab", "undo x"},
		{"cfg", "tab", "configure "},
	}
	for _, x := range tests {
		u := newPages(t, tuitest.Testbed(), Options{})
		u.keys(":")
		u.write(x.typed)
		u.keys(strings.Fields(x.keys)...)
		if got := u.m.top().(*prompt).edit.String(); got != x.want {
			t.Errorf("%q and %s: %q, want %q", x.typed, x.keys, got, x.want)
		}
	}
}

func TestEditing(t *testing.T) {
	tests := []struct{ keys, want string }{
		{"a b c left X", "abXc"}, {"a b ctrl+a X", "Xab"}, {"a b home X end Y", "XabY"}, {"a b c backspace", "ab"},
		{"a b c left left delete", "ac"}, {"a   b ctrl+w", ""}, {"a b ctrl+u c", "c"}, {"a b c left left ctrl+k", "a"},
		{"backspace delete a", "a"}, {"ä 漢 left backspace", "漢"}, {"a b ctrl+left X alt+f Y", "XabY"},
		{"a b left alt+d alt+x ctrl+v", "ab"}, {"a \u202e \u200b b", "ab"},
	}
	for _, x := range tests {
		e := newEditor()
		for _, k := range strings.Fields(x.keys) {
			e.key(key(k))
		}
		if e.String() != x.want {
			t.Errorf("%s: %q, want %q", x.keys, e.String(), x.want)
		}
	}
}

func TestPalette(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = risky
	pick := func(text string) {
		u.keys("ctrl+p")
		u.write(text)
		u.keys("enter")
	}
	pick("gpu2/ens")
	if u.m.at != 1 || u.page().focus != "gpu2/ens1f0" {
		t.Errorf("screen %d, %q", u.m.at+1, u.page().focus)
	}
	pick("laser")
	if u.m.at != 0 || u.page().focus != "rail0/7" {
		t.Errorf("screen %d, %q", u.m.at+1, u.page().focus)
	}
	pick("configure dp")
	if d := u.dialog(); d == nil || d.wish.Configuration != "dp" {
		t.Error("no preview of the configuration")
	}
	u.keys("esc")
	pick("disconnect switch")
	if p, ok := u.m.top().(*prompt); !ok || p.edit.String() != "disconnect " {
		t.Error("the command is not typed")
	}
	u.keys("esc")
	u.keys("ctrl+p")
	u.write("zzzzqqqq")
	u.wants("nothing has all of these letters")
	u.keys("enter")
	if _, ok := u.m.top().(*picker); !ok {
		t.Error("nothing was picked, and the window is gone")
	}
}

// An action of another screen shows that screen, and does nothing that moves light there.
func TestDoAnywhere(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{Screen: "links"})
	u.command("connect")
	if u.m.at != 0 || len(u.page().did) > 0 {
		t.Errorf("screen %d did %v", u.m.at+1, u.page().did)
	}
	u.wants("choose, then press c")
	u.keys("2")
	u.command("view")
	if u.m.at != 0 || !slices.Equal(u.page().did, []keymap.Action{keymap.View}) {
		t.Errorf("screen %d did %v", u.m.at+1, u.page().did)
	}
}

func TestAsk(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	var got []string
	then := func(answer string) []screen.Request {
		got = append(got, answer)
		return []screen.Request{screen.Say{Text: "answered " + answer}}
	}
	u.request(screen.Ask{Title: "port", Initial: "12", Then: then})
	u.write(">40")
	u.keys("enter")
	u.wants("answered 12>40")
	u.request(screen.Ask{Title: "port", Then: then})
	u.keys("esc")
	if !slices.Equal(got, []string{"12>40"}) {
		t.Errorf("answers: %q", got)
	}
}

func TestCall(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	c := screen.Call{Doing: "pausing the run", CLI: "ocslab runs pause x", Mutates: true, Do: func(_ context.Context, l live.Lab) error { return l.PauseRun() }}
	u.request(c)
	u.wants("pausing the run: done   $ ocslab runs pause x")
	u.lab.Fail = map[string]error{"pause": errors.New("there is no run")}
	u.request(c)
	u.wants("✗ pausing the run: there is no run")
	u.mutations("pause", "pause")
}

func TestWindow(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("entry %d", i))
	}
	u.request(screen.Show{Title: "Many", Lines: lines})
	u.keys("G")
	u.wants("entry 99", "100 of 100")
	u.keys("g", "pgdown", "j", "k")
	u.wants("entry 20")
	u.wantsNot("entry 2 ")
	u.keys("/")
	u.write("y 7")
	u.keys("enter")
	u.wants(" of 19")
	u.keys("Y")
	u.wants("copied 19 lines")
	u.keys("esc", "esc")
	if u.m.top() != nil {
		t.Error("the window is still open")
	}
}

func TestTheme(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	for range themeNames() {
		u.keys("T")
	}
	if u.m.writer.Theme.Name != "dark" {
		t.Errorf("theme %s after all", u.m.writer.Theme.Name)
	}
	u.m.writer.Profile = termenv.Ascii
	if strings.Contains(u.frame(), "38;") && u.m.dirty {
		t.Error("colours without colours")
	}
}

func TestNoColour(t *testing.T) {
	m, err := newModel(t.Context(), Options{Lab: tuitest.NewLab(tuitest.Testbed()), Environ: func(n string) string {
		return map[string]string{"NO_COLOR": "1"}[n]
	}}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if v := m.View(); strings.Contains(v, "38;") || !strings.Contains(v, "\x1b[") {
		t.Errorf("colours, or no attributes:\n%q", v)
	}
}

// A frame is drawn only when something is another.
func TestView_Same(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	a := u.m.View()
	u.m.Update(struct{}{})
	if u.m.dirty {
		t.Error("a message that means nothing makes a new frame")
	}
	u.m.Update(tickMsg{})
	if !u.m.dirty || u.m.View() != a {
		t.Error("a tick makes no frame, or another one")
	}
}

func TestResize(t *testing.T) {
	u := newUI(t, busy(), 80, 24, Options{ReadOnly: true})
	u.keys("f")
	for _, name := range []string{"1", "2", "3", "4", "5", "6", "?", "ctrl+p", ":", "q"} {
		u.keys(name)
		for w := 0; w < 100; w += 7 {
			for h := 0; h < 30; h += 3 {
				u.send(tea.WindowSizeMsg{Width: w, Height: h})
			}
		}
		u.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	}
}

func TestNewModel_Errors(t *testing.T) {
	for _, x := range []struct {
		opt  Options
		want string
	}{
		{Options{Theme: "pink"}, "there are dark, light, contrast and mono"},
		{Options{Screen: "nine"}, `no screen "nine"; there are patch, links`},
	} {
		x.opt.Lab = tuitest.NewLab(tuitest.Testbed())
		if _, err := newModel(t.Context(), x.opt, io.Discard); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
}

// TestPump: however often the lab tells of something, the UI takes a State each 50 ms.
func TestPump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lab := tuitest.NewLab(tuitest.Testbed())
		ctx, cancel := context.WithCancel(t.Context())
		m, err := newModel(ctx, Options{Lab: lab, Environ: func(string) string { return "" }}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(500 * time.Microsecond):
					lab.Set(tuitest.Testbed())
				}
			}
		}()
		began, n := time.Now(), 0
		cmd := m.wait()
		for time.Since(began) < time.Second {
			msg := cmd()
			if _, ok := msg.(stateMsg); !ok {
				t.Fatalf("%T", msg)
			}
			_, cmd = m.Update(msg)
			n++
		}
		close(stop)
		if n < 15 || n > 21 {
			t.Errorf("%d states taken in a second", n)
		}
		cancel()
		if msg := cmd(); msg != nil {
			t.Errorf("%T after the end", msg)
		}
		if m.newest != lab.State() {
			lab.Set(lab.State())
			m.Update(stateMsg{})
		}
		synctest.Wait()
	})
}

func TestTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := newModel(t.Context(), Options{Lab: tuitest.NewLab(tuitest.Testbed()), Environ: func(string) string { return "" }}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		m.tick()()
		if d := time.Since(began); d != 250*time.Millisecond {
			t.Errorf("%v while a reconfiguration is under way", d)
		}
		s := *tuitest.Testbed()
		s.Moves = s.Moves[1:]
		m.newest = &s
		began = time.Now()
		m.tick()()
		if d := time.Since(began); d != time.Second {
			t.Errorf("%v while nothing is", d)
		}
	})
}

func TestExperimentAtStart(t *testing.T) {
	u := newUIOf(t, tuitest.Testbed(), 80, 24, Options{Experiment: filepath.Join("examples", "toggle.yaml")}, true)
	if u.m.at != 3 {
		t.Errorf("screen %d", u.m.at+1)
	}
	u.wants("loading examples/toggle.yaml: done")
}

func TestNearest(t *testing.T) {
	names := commandNames()
	for word, want := range map[string]string{"conect": "connect", "disconect": "disconnect", "pnic": "panic", "quti": "quit", "undoo": "undo", "conf": "configure", "zzzzzz": ""} {
		if got := nearest(word, names); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

// TestNoState: before a lab has said anything there is something to look at.
func TestNoState(t *testing.T) {
	for _, s := range []*live.State{nil, {}} {
		u := newUI(t, s, 80, 24, Options{})
		u.keys("1", "2", "3", "4", "5", "6", "?", "esc", "ctrl+p", "esc", "C", "e")
		u.mutations()
	}
}
