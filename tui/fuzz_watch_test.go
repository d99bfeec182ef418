package tui

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// moment is what matters of a model before a message.
type moment struct {
	readOnly           bool
	sending, panicking *sending
	dialogs            int     // of changes
	top                *dialog // if that is the topmost
	asked              int     // number of its preview
	mutations          int
}

func (u *ui) moment() moment {
	x := moment{readOnly: u.m.isReadOnly(), sending: u.m.sending, panicking: u.m.panicking, mutations: len(u.lab.Mutations())}
	for _, l := range u.m.layers {
		if d, ok := l.(*dialog); ok && d.question == nil {
			x.dialogs++
		}
	}
	if d, ok := u.m.top().(*dialog); ok {
		x.top, x.asked = d, d.number
	}
	return x
}

// watch looks from outside at what a model does: it judges by frames, keys and calls, and not
// by what the model thinks of them.
type watch struct {
	drawn map[int]time.Time // since when previews that can be accepted are seen, by number
}

// mutating are the actions that read-only lets nobody do. They are written out, since the table
// of keys may be wrong.
var mutating = []keymap.Action{
	keymap.Connect, keymap.Disconnect, keymap.Link, keymap.Unlink, keymap.Configure, keymap.Undo, keymap.Redo,
	keymap.Panic, keymap.Lift, keymap.Run, keymap.Pause, keymap.Stop, keymap.Abort, keymap.Save, keymap.Edit, keymap.Accept,
}

// message looks at what a message has done, before it is drawn.
func (w *watch) message(u *ui, was moment, msg tea.Msg) {
	is := u.moment()
	begun := func(was, is *sending) bool { return is != nil && is != was }
	change, panics := begun(was.sending, is.sending), begun(was.panicking, is.panicking)
	if change && was.sending != nil || panics && was.panicking != nil || change && was.panicking != nil {
		u.tb.Fatalf("a change was begun beside another: %v", msg)
	}
	if change || panics {
		k, ok := msg.(tea.KeyMsg)
		since, drawn := w.drawn[was.asked]
		switch {
		case !ok || k.String() != "y":
			u.tb.Fatalf("something was sent by %v", msg)
		case panics && was.top != nil && was.top.isPanic(): // which is not kept waiting
		case was.top == nil || !drawn:
			u.tb.Fatal("something was sent that had not been drawn")
		case u.clock.Sub(since) < look:
			u.tb.Fatalf("something was sent %v after it was drawn", u.clock.Sub(since))
		}
	}
	if !was.readOnly || !is.readOnly {
		return
	}
	if change || panics || is.dialogs > was.dialogs || is.mutations > was.mutations {
		u.tb.Fatalf("read-only let %v do something: %q", msg, u.lab.Mutations())
	}
	for _, a := range mutating {
		if u.m.gate(a) == nil {
			u.tb.Fatalf("read-only lets %s through", a)
		}
	}
	requests := []screen.Request{screen.SaveAs{}, screen.EditFile{}, screen.Call{Mutates: true}}
	for _, v := range []live.Verb{
		live.Connect, live.Disconnect, live.Link, live.Unlink, live.Configure, live.Restore, live.Undo, live.Redo, live.PanicNow, live.Lift,
	} {
		requests = append(requests, screen.Propose{Wish: live.Wish{Verb: v}})
	}
	for _, r := range requests {
		if u.m.gate(r) == nil {
			u.tb.Fatalf("read-only lets %T through", r)
		}
	}
}

// made looks at what came of a command that was made in read-only.
func (w *watch) made(u *ui, msg tea.Msg) {
	var err error
	switch msg := msg.(type) {
	case calledMsg:
		err = msg.err
	case appliedMsg:
		u.tb.Fatalf("read-only let a change be sent: %v", msg.outcome)
	case savedMsg:
		u.tb.Fatalf("read-only let %s be written", msg.name)
	}
	if errors.Is(err, live.ErrReadOnly) {
		u.tb.Fatalf("only the lab has refused: %v", err)
	}
	if t := reflect.TypeOf(msg); t != nil && t.Name() == "execMsg" {
		u.tb.Fatal("read-only let an editor be opened")
	}
}

// frame notes which preview is seen on a frame.
func (w *watch) frame(u *ui) {
	d, ok := u.m.top().(*dialog)
	if !ok || !strings.Contains(u.m.canvas.String(), "y do it") {
		return
	}
	if _, seen := w.drawn[d.number]; !seen {
		w.drawn[d.number] = u.clock
	}
}

// filesHere is how many files there are in the directory of a fuzzed UI.
func filesHere(u *ui) int {
	list, err := os.ReadDir(".")
	if err != nil {
		u.tb.Fatal(err)
	}
	return len(list)
}
