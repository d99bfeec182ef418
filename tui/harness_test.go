package tui

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// ui drives a model as bubbletea does, on one goroutine: commands are carried out at
// once, and a frame is drawn after each message.
type ui struct {
	tb    testing.TB
	m     *model
	lab   *tuitest.Lab
	clock time.Time
	out   bytes.Buffer // what was written beside frames
	quit  bool
	held  []tea.Cmd // not carried out yet, while hold is set
	hold  bool
	size  [2]int

	undrawn bool   // no frame is drawn after a message, as when the next comes at once
	watch   *watch // what is watched over at each message; nil is nothing
}

// newUI returns a model of w x h on a lab that is in a state, with nothing under way.
func newUI(tb testing.TB, s *live.State, w, h int, opt Options) *ui {
	tb.Helper()
	return newUIOf(tb, s, w, h, opt, false)
}

// newPages is newUI with pages in place of the screens.
func newPages(tb testing.TB, s *live.State, opt Options) *ui {
	tb.Helper()
	return newUIOf(tb, s, 80, 24, opt, true)
}

func newUIOf(tb testing.TB, s *live.State, w, h int, opt Options, pagesOnly bool) *ui {
	tb.Helper()
	u := &ui{tb: tb, lab: tuitest.NewLab(s), clock: tuitest.Now}
	opt.Lab = u.lab
	if opt.Environ == nil {
		opt.Environ = func(string) string { return "" }
	}
	m, err := newModel(tb.Context(), opt, io.Writer(&u.out))
	if err != nil {
		tb.Fatal(err)
	}
	u.m = m
	m.now = func() time.Time { return u.clock }
	m.wait = func() tea.Cmd { return nil }
	m.tick = func() tea.Cmd { return nil }
	m.writer.Profile = termenv.ANSI256
	if pagesOnly {
		m.screens = pages()
	}
	u.do(m.Init())
	u.send(tea.WindowSizeMsg{Width: w, Height: h})
	return u
}

// send gives the model a message, carries out what follows, and draws.
func (u *ui) send(msg tea.Msg) {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		u.size = [2]int{size.Width, size.Height}
	}
	before := u.moment()
	_, cmd := u.m.Update(msg)
	if u.watch != nil {
		u.watch.message(u, before, msg)
	}
	if !u.undrawn {
		u.frame()
		if u.watch != nil {
			u.watch.frame(u)
		}
	}
	u.doAs(cmd, before.readOnly && u.m.isReadOnly())
}

// request is a request of a screen.
func (u *ui) request(r screen.Request) {
	cmd := u.m.request(r)
	u.m.dirty = true
	u.frame()
	u.do(cmd)
}

// frame draws, and checks what is true of every frame.
func (u *ui) frame() string {
	view := u.m.View()
	lines := strings.Split(view, "\n")
	if u.size[1] > 0 && len(lines) != u.size[1] {
		u.tb.Fatalf("a frame of %d lines in a terminal of %d", len(lines), u.size[1])
	}
	for i, l := range lines {
		if n := lipgloss.Width(l); n > u.size[0] {
			u.tb.Fatalf("line %d has %d columns in a terminal of %d: %q", i, n, u.size[0], l)
		}
		if !utf8.ValidString(l) {
			u.tb.Fatalf("line %d is no UTF-8: %q", i, l)
		}
	}
	return view
}

// do carries out a command and takes what comes of it.
func (u *ui) do(cmd tea.Cmd) { u.doAs(cmd, false) }

// doAs is do for a command that was made while the UI was read-only, or was not.
func (u *ui) doAs(cmd tea.Cmd, readOnly bool) {
	if cmd == nil {
		return
	}
	if u.hold {
		u.held = append(u.held, func() tea.Msg {
			u.doAs(cmd, readOnly)
			return nil
		})
		return
	}
	msg := cmd()
	if u.watch != nil && readOnly {
		u.watch.made(u, msg)
	}
	switch msg := msg.(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			u.doAs(c, readOnly)
		}
	case tea.QuitMsg:
		u.quit = true
	default:
		if reflect.TypeOf(msg).PkgPath() == reflect.TypeOf(tea.QuitMsg{}).PkgPath() {
			if _, ok := msg.(tea.ResumeMsg); !ok {
				return // bubbletea's own: clearing the screen, the mouse, an editor
			}
		}
		u.send(msg)
	}
}

// release carries out what was held.
func (u *ui) release() {
	u.hold = false
	held := u.held
	u.held = nil
	for _, c := range held {
		u.do(c)
	}
}

// pass lets time pass.
func (u *ui) pass(d time.Duration) {
	u.clock = u.clock.Add(d)
	u.send(tickMsg{})
}

// state gives the lab a new State, of which the model is told.
func (u *ui) state(s *live.State) {
	u.lab.Set(s)
	u.send(stateMsg{})
}

// keys presses keys, by the names of bubbletea.
func (u *ui) keys(names ...string) {
	for _, n := range names {
		u.send(key(n))
	}
}

// write types a text, letter by letter.
func (u *ui) write(text string) {
	for _, r := range text {
		u.keys(string(r))
	}
}

// command types a command.
func (u *ui) command(text string) {
	u.keys(":")
	u.write(text)
	u.keys("enter")
}

// accept waits until a y counts, and presses it.
func (u *ui) accept() {
	u.pass(look)
	u.keys("y")
}

// dialog is the preview that is open, nil if none is.
func (u *ui) dialog() *dialog {
	for _, l := range u.m.layers {
		if d, ok := l.(*dialog); ok {
			return d
		}
	}
	return nil
}

// page is the page that is shown.
func (u *ui) page() *page { return u.m.screen().(*page) }

// text is what is on the screen.
func (u *ui) text() string {
	u.frame()
	return u.m.canvas.String()
}

func (u *ui) wants(parts ...string) {
	u.tb.Helper()
	for _, p := range parts {
		if !strings.Contains(u.text(), p) {
			u.tb.Errorf("%q is not on the screen:\n%s", p, u.text())
		}
	}
}

func (u *ui) wantsNot(parts ...string) {
	u.tb.Helper()
	for _, p := range parts {
		if strings.Contains(u.text(), p) {
			u.tb.Errorf("%q is on the screen:\n%s", p, u.text())
		}
	}
}

// mutations are what the lab was asked to change.
func (u *ui) mutations(want ...string) {
	u.tb.Helper()
	if got := u.lab.Mutations(); fmt.Sprint(got) != fmt.Sprint(want) {
		u.tb.Errorf("the lab was asked for %q, want %q", got, want)
	}
}

// key is the message of a key.
func key(name string) tea.KeyMsg {
	if k, ok := named[name]; ok {
		return k
	}
	name, alt := strings.CutPrefix(name, "alt+")
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name), Alt: alt}
}

// named are all keys that are no letters, by name.
var named = func() map[string]tea.KeyMsg {
	m := map[string]tea.KeyMsg{" ": {Type: tea.KeySpace, Runes: []rune{' '}}}
	for t := tea.KeyType(-100); t < 130; t++ {
		k := tea.KeyMsg{Type: t}
		if n := k.String(); n != "" && t != tea.KeyRunes && t != tea.KeySpace {
			m[n] = k
		}
	}
	return m
}()

// allKeys are all keys that mean anything somewhere.
func allKeys() []string {
	var keys []string
	for _, b := range keymap.Bindings() {
		keys = append(keys, b.Keys...)
	}
	return keys
}
