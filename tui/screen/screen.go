// Package screen is what the screens of the UI have in common.
//
// A screen draws a [live.State] and holds where in it one is: cursor, selection, zoom. It
// changes nothing in the lab: what is to be done it returns as a [Request], and the UI
// does it, or refuses.
package screen

import (
	"context"
	"time"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
)

// Env is what a screen draws beside what it holds itself.
type Env struct {
	State    *live.State
	Now      time.Time // ages are as of this; it stands still while frozen
	Filter   filter.Filter
	ReadOnly bool
}

// Clock writes a time of day in the time zone of now, with the date unless it is today's.
func (e Env) Clock(t time.Time) string {
	t = t.In(e.Now.Location())
	if t.Format(time.DateOnly) != e.Now.Format(time.DateOnly) {
		return t.Format(time.DateTime)
	}
	return t.Format(time.TimeOnly)
}

// Screen is one of the six. It is used by one goroutine.
type Screen interface {
	// Name is the action that shows it.
	Name() keymap.Action
	// Where are the places whose keys mean something here, the nearest first.
	Where() []keymap.Where
	// Resize tells what Draw gets to draw in from now on. Any size is possible.
	Resize(w, h int)
	// Draw draws. It depends on nothing but what the screen holds, e, and the size of a, and
	// changes none of them.
	Draw(a canvas.Area, e Env)
	// Do carries out an action of Where.
	Do(act keymap.Action, e Env) []Request
	// Mouse is a click or a turn of the wheel at a zone that Draw has marked.
	Mouse(m Mouse, e Env) []Request
	// Focus moves the cursor to what is named: a switch "rail0", a port "rail0/33", a NIC
	// "gpu1/ens1f0", a reconfiguration "move/12". What is not there changes nothing.
	Focus(subject string, e Env)
	// Subject is what the cursor is on, as Focus takes it; "" if that is nothing.
	Subject(e Env) string
	// Copy is what is copied: the lines selected, or that under the cursor.
	Copy(e Env) string
	// Status is a few words on where one is: "12 of 384, 2 selected".
	Status(e Env) string
	// Deselect clears the selection, and reports whether there was any.
	Deselect() bool
}

// Applied is what a screen also has when it holds selections: they have served their purpose
// when the change that they proposed was applied.
type Applied interface {
	// Applied is told what was applied. It clears what was selected for that.
	Applied(p live.Preview)
}

// Mouse is what a mouse did.
type Mouse struct {
	ID     any // of the zone
	DX, DY int // in the zone
	W, H   int // of the zone
	Wheel  int // lines down; below 0: up; 0 for a click
	Side   int // columns right by a wheel to the side, or with shift
	Double bool
	Shift  bool // also with ctrl or alt: adds to a selection
}

// Request is what a screen wants done: one of the types below.
type Request interface{ request() }

// Propose asks for the preview of a change.
type Propose struct{ Wish live.Wish }

// Goto shows a screen, with its cursor on a subject.
type Goto struct {
	Screen  keymap.Action
	Subject string
}

// Say puts a line at the bottom of the screen.
type Say struct {
	Text string
	Bad  bool
}

// Ask asks for a line of text. Then is called with the answer, and not when it is cancelled.
type Ask struct {
	Title   string
	Initial string
	Files   bool // completes names of files
	Then    func(answer string) []Request
}

// Choice is one of what a prompt completes.
type Choice struct {
	Value string // what is put in
	About string // beside it
}

// Confirm asks whether to do something, in the window that the preview of a change has.
type Confirm struct {
	Title string // what is to be done: "abort the run 20261122T150405"
	Ways  []Way  // to do it, at least one. The first is done unless another is chosen.
}

// Way is one way to do what is to be confirmed.
type Way struct {
	Name  string // one word; "" where there is no other way
	About string // what follows from it, as a sentence
	Then  func() []Request
}

// SaveAs asks for a name and writes a file.
type SaveAs struct {
	Name    string // proposed
	Content []byte
}

// EditFile opens a file in the user's editor. Then is called when that has ended.
type EditFile struct {
	Path string
	Line int
	Then []Request
}

// Call calls something of the lab that is no Propose.
type Call struct {
	Doing   string // "pausing the run"
	CLI     string // the command that does the same
	Mutates bool
	Do      func(ctx context.Context, l live.Lab) error
}

// Show shows a text in a window that can be scrolled.
type Show struct {
	Title string
	Lines []string
}

func (Propose) request()  {}
func (Goto) request()     {}
func (Say) request()      {}
func (Ask) request()      {}
func (Confirm) request()  {}
func (SaveAs) request()   {}
func (EditFile) request() {}
func (Call) request()     {}
func (Show) request()     {}
