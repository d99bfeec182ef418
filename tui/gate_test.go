package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// busy is a state in which every action means something: there is something to undo and to
// redo, a panic to lift, and a run under way.
func busy() *live.State {
	s := *tuitest.Testbed()
	s.Undo, s.Redo = "connect rail0 1>35", "connect rail0 2>34"
	s.Panic = &live.Panic{At: tuitest.Now, Reason: "a test"}
	s.Run = &live.Run{ID: "20261122T150405-opus-toggle-1a2b", Progress: runner.Progress{State: runner.Running, Done: 3, Total: 10}}
	return &s
}

// possible answers every wish with a preview that can be accepted.
func possible(w live.Wish) live.Preview {
	p := risky(w)
	p.Title = tuitest.Title(w)
	return p
}

// finish answers yes to all that is asked, and closes what is left.
func finish(u *ui) {
	for range 8 {
		switch l := u.m.top().(type) {
		case nil:
			return
		case *dialog:
			u.accept()
			if u.m.top() == layer(l) {
				u.keys("esc")
			}
		case *prompt:
			if strings.TrimSpace(l.edit.String()) == "" {
				u.write("because")
			}
			u.keys("enter")
			if u.m.top() == layer(l) {
				u.keys("esc")
			}
		case *picker:
			for range l.items[1:] {
				u.keys("down")
			}
			u.keys("enter")
		default:
			u.keys("esc")
		}
	}
	for u.m.top() != nil {
		u.m.drop(u.m.top())
	}
}

// ways are all ways to ask for something, on the screen that is shown: keys, commands, the
// palette, and the mouse at every zone.
func ways(u *ui, try func(way string, do func())) {
	for _, k := range allKeys() {
		try("key "+k, func() { u.keys(k) })
	}
	for _, k := range []string{"tab", "f5", "delete", "insert", "z", "Z", "alt+y", "ctrl+y"} {
		try("key "+k, func() { u.keys(k) })
	}
	for _, name := range commandNames() {
		rests := []string{"", " rail0 1>36", " rail0 1,2", " gpu1 gpu2", " gpu1", " dp", " because", " 20261122T150405-opus-toggle-1a2b"}
		if _, ok := commandOf(name); !ok {
			rests = rests[:1]
		}
		for _, rest := range rests {
			try("command "+name+rest, func() { u.command(name + rest) })
		}
	}
	for i := range u.m.everything() {
		try(fmt.Sprint("palette ", i), func() {
			u.keys("ctrl+p")
			u.m.top().(*picker).cursor = i
			u.keys("enter")
		})
	}
	u.frame()
	w, h := u.size[0], u.size[1]
	for y := 0; y < h; y++ {
		for x := 0; x < w; x += 3 {
			if _, _, _, ok := u.m.canvas.Hit(x, y); !ok {
				continue
			}
			try(fmt.Sprintf("double click at %d,%d", x, y), func() {
				for range 2 {
					u.send(tea.MouseMsg{X: x, Y: y, Action: tea.MouseActionPress, Button: tea.MouseButtonLeft})
				}
			})
		}
	}
}

// TestGate_ReadOnly shows that nothing that changes anything comes through in read-only
// mode, in whatever way it is asked for: not to the lab, not to a file.
func TestGate_ReadOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("goes through all keys on all screens")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for i, name := range []string{"patch", "links", "timeline", "experiment", "devices", "log"} {
		for _, by := range []string{"option", "key", "state"} {
			if i > 1 && by != "option" {
				continue // the same gate
			}
			t.Run(name+" by "+by, func(t *testing.T) {
				s := busy()
				opt := Options{Screen: name, ReadOnly: by == "option"}
				s.ReadOnly = by == "state"
				u := newUI(t, s, 80, 24, opt)
				u.lab.Answer = possible
				if by == "key" {
					u.keys("R")
				}
				ways(u, func(way string, do func()) {
					if way == "command write" && by != "option" {
						return // ends it, as it should
					}
					if strings.HasPrefix(way, "palette") && by != "option" && strings.HasPrefix(palette(u, way).text, "write") {
						return
					}
					do()
					finish(u)
					if got := u.lab.Mutations(); len(got) > 0 {
						t.Fatalf("%s led to %q", way, got)
					}
					if d := u.dialog(); d != nil {
						t.Fatalf("%s opened a preview", way)
					}
					u.m.show(i)
					u.quit = false
				})
				if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) > 0 {
					t.Errorf("files were written: %q", files)
				}
			})
		}
	}
}

// palette returns what the palette has at the number in "palette 12".
func palette(u *ui, way string) item {
	var n int
	if _, err := fmt.Sscanf(way, "palette %d", &n); err != nil {
		u.tb.Fatal(err)
	}
	return u.m.everything()[n]
}

// acting are pages that return for each action what a screen returns.
func acting() []screen.Screen {
	call := func(doing string, do func(ctx context.Context, l live.Lab) error) []screen.Request {
		return []screen.Request{screen.Call{Doing: doing, Mutates: true, Do: do}}
	}
	wish := func(w live.Wish) []screen.Request { return []screen.Request{screen.Propose{Wish: w}} }
	does := map[keymap.Action][]screen.Request{
		keymap.Connect:    wish(live.Wish{Verb: live.Connect, Switch: "rail0", Map: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 36})}),
		keymap.Disconnect: wish(live.Wish{Verb: live.Disconnect, Switch: "rail0", Ports: []ocs.Port{1}}),
		keymap.Link:       wish(live.Wish{Verb: live.Link, NICs: []string{"gpu1/ens1f0", "gpu2/ens1f0"}}),
		keymap.Unlink:     wish(live.Wish{Verb: live.Unlink, NICs: []string{"gpu1/ens1f0"}}),
		keymap.Run:        call("starting", func(ctx context.Context, l live.Lab) error { return l.StartRun(ctx, ocs.Safe) }),
		keymap.Pause:      call("pausing", func(_ context.Context, l live.Lab) error { return l.PauseRun() }),
		keymap.Stop:       call("stopping", func(_ context.Context, l live.Lab) error { return l.StopRun() }),
		keymap.Abort:      call("aborting", func(_ context.Context, l live.Lab) error { return l.AbortRun() }),
	}
	all := pages()
	for _, s := range all {
		s.(*page).does = does
	}
	return all
}

// TestGate_Open shows that every action that changes something reaches the lab, or a file,
// when it may: without this, the test above could not fail.
func TestGate_Open(t *testing.T) {
	want := map[keymap.Action]string{
		keymap.Connect: "apply connect rail0 1>36", keymap.Disconnect: "apply disconnect rail0 1",
		keymap.Link: "apply link [gpu1/ens1f0 gpu2/ens1f0]", keymap.Unlink: "apply unlink [gpu1/ens1f0]",
		keymap.Configure: "apply configure pp", keymap.Undo: "apply undo", keymap.Redo: "apply redo",
		keymap.Panic: `apply panic --reason "no reason given"`, keymap.Lift: "apply lift",
		keymap.Run: "start", keymap.Pause: "pause", keymap.Stop: "stop", keymap.Abort: "abort",
	}
	for _, b := range keymap.Bindings() {
		if !b.Mutates {
			continue
		}
		where := b.Where[0]
		open := func(t *testing.T) *ui {
			s := busy()
			s.Run.Ended = true
			u := newPages(t, s, Options{})
			u.m.screens = acting()
			for i, x := range u.m.screens {
				if slices.Contains(x.Where(), where) {
					u.m.show(i)
				}
			}
			u.m.bodyW = 0
			u.send(tickMsg{})
			u.lab.Answer = possible
			return u
		}
		for _, k := range b.Keys {
			t.Run(fmt.Sprintf("key %s for %s", k, b.Action), func(t *testing.T) {
				t.Chdir(t.TempDir())
				u := open(t)
				switch b.Action {
				case keymap.Accept:
					u.command("connect rail0 1>36")
					u.pass(look)
					u.keys(k)
					u.mutations("apply connect rail0 1>36")
				case keymap.Save:
					u.keys(k)
					u.keys("enter")
					if files, _ := filepath.Glob("*.txt"); len(files) != 1 {
						t.Errorf("%q were written", files)
					}
				case keymap.Edit:
					if err := os.WriteFile("opus-testbed.yaml", nil, 0o644); err != nil {
						t.Fatal(err)
					}
					if cmd := u.m.press(key(k)); cmd == nil || !strings.Contains(fmt.Sprintf("%T", cmd()), "exec") {
						t.Error("no editor was started")
					}
				default:
					u.keys(k)
					finish(u)
					u.mutations(want[b.Action])
				}
			})
		}
		switch b.Action {
		case keymap.Accept, keymap.Save, keymap.Edit:
			continue
		}
		t.Run(fmt.Sprintf("command %s", b.Action), func(t *testing.T) {
			u := open(t)
			u.command(string(b.Action))
			finish(u)
			u.mutations(want[b.Action])
		})
		t.Run(fmt.Sprintf("palette %s", b.Action), func(t *testing.T) {
			u := open(t)
			u.keys("ctrl+p")
			p := u.m.top().(*picker)
			p.cursor = slices.IndexFunc(p.items, func(it item) bool { return it.text == string(b.Action) })
			u.keys("enter")
			finish(u)
			u.mutations(want[b.Action])
		})
	}
}

// TestGate_RealScreens shows that the ways of the read-only test lead somewhere on the
// real screens.
func TestGate_RealScreens(t *testing.T) {
	u := newUI(t, tuitest.Testbed(), 80, 24, Options{})
	u.lab.Answer = possible
	u.keys("enter")
	finish(u)
	u.keys("right", "right", "d")
	finish(u)
	u.keys("2", " ", "down", " ", "L")
	finish(u)
	u.mutations("apply connect rail0 1>33", "apply disconnect rail0 1", "apply link [gpu1/ens1f0 gpu3/ens1f0]")
}

// TestGuard_Mislabelled: a call that does not say that it changes something is stopped by
// the guard.
func TestGuard_Mislabelled(t *testing.T) {
	for _, readOnly := range []bool{true, false} {
		u := newPages(t, busy(), Options{ReadOnly: readOnly})
		for _, do := range []func(ctx context.Context, l live.Lab) error{
			func(ctx context.Context, l live.Lab) error { return l.StartRun(ctx, ocs.Safe) },
			func(ctx context.Context, l live.Lab) error { return l.Resume(ctx, "x") },
			func(_ context.Context, l live.Lab) error { return l.PauseRun() },
			func(_ context.Context, l live.Lab) error { return l.StopRun() },
			func(_ context.Context, l live.Lab) error { return l.AbortRun() },
			func(ctx context.Context, l live.Lab) error { return l.Apply(ctx, live.Preview{}).Err },
		} {
			u.do(u.m.request(screen.Call{Doing: "looking", Do: do}))
		}
		if got := len(u.lab.Mutations()); got != map[bool]int{true: 0, false: 6}[readOnly] {
			t.Errorf("read-only %t: %d calls came through", readOnly, got)
		}
	}
}

func TestGate_UnknownRequest(t *testing.T) {
	if mutates, _ := requestMutates(nil); !mutates {
		t.Error("a request that is not known may pass")
	}
	for _, r := range []screen.Request{screen.Propose{}, screen.SaveAs{}, screen.EditFile{}, screen.Call{Mutates: true}} {
		if mutates, _ := requestMutates(r); !mutates {
			t.Errorf("%T may pass", r)
		}
	}
}
