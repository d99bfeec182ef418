package tui

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/styles"
)

// model is the whole UI: six screens, and the windows over them. It is used by the one
// goroutine that bubbletea has for that; what may take long is done by commands, whose
// messages come back to Update.
type model struct {
	ctx context.Context // of all that is sent to the lab; outlives a screen that is closed
	lab guard
	opt Options
	out io.Writer // for sequences that are no part of a frame
	now func() time.Time
	env func(string) string // the environment

	// wait and tick return the commands that wait for the next State and the next second.
	// Tests that carry out commands themselves replace them.
	wait, tick func() tea.Cmd

	screens []screen.Screen
	at      int             // the one that is shown
	last    int             // the one before it
	trail   []int           // those before, for going back
	filters []filter.Filter // by screen

	newest *live.State // what the lab said last
	shown  *live.State // what is drawn: newest, or that of when it was frozen
	frozen time.Time   // zero if it is not

	readOnly bool // by option or by key; the State can say it, too
	layers   []layer
	marks    *marker // of the reads of the terminal; nil: each message is one
	read     read    // what the keys that are being acted on came with
	sending  *sending
	// panicking is a panic on its way, which does not wait for what is being sent.
	panicking *sending
	quitting  bool // when what is being sent has been
	note      note
	history   []string // of commands
	asked     int      // number of the preview that was asked for last

	mouseOn bool
	click   click

	w, h         int
	bodyW, bodyH int // what the screens were told
	canvas       canvas.Canvas
	writer       *styles.Writer
	dirty        bool
	frame        string // what View returned last
}

// layer is a window or a prompt over the screen. All keys and clicks go to the topmost.
type layer interface {
	draw(m *model, a canvas.Area)
	key(m *model, k tea.KeyMsg) tea.Cmd
	// mouse is a click or the wheel at a zone, nil for a click beside all of them.
	mouse(m *model, e screen.Mouse) tea.Cmd
	// text reports whether what is typed or pasted is text, and no keys.
	text() bool
	// close takes it away without having done anything.
	close(m *model)
}

// isSending reports whether a change, or a panic, is on its way.
func (m *model) isSending() bool { return m.sending != nil || m.panicking != nil }

// read is what the model knows of the read that a key came with.
type read struct {
	at     time.Time // when it returned
	before time.Time // when the one before it returned
	alone  bool      // it is one key
	began  layer     // what was topmost then
	stray  bool      // a key of it was left alone, and so are those behind it
	shut   bool      // the panic key was in it: what is behind it does nothing
	acting bool      // one of several keys is being acted on
}

// begin begins a read.
func (m *model) begin(at time.Time, alone bool) {
	m.read = read{at: at, before: m.read.at, alone: alone, began: m.top()}
}

// sending is a change on its way.
type sending struct {
	title string
	since time.Time
	done  chan struct{} // closed when it has been read back, or has failed
}

// note is the line at the bottom.
type note struct {
	text string
	bad  bool
	at   time.Time
	// refused is the wish that was not begun, as another change was being sent.
	refused string
}

// click is the click before this one.
type click struct {
	id   any
	x, y int
	at   time.Time
}

func newModel(ctx context.Context, opt Options, out io.Writer) (*model, error) {
	theme, first, err := check(opt)
	if err != nil {
		return nil, err
	}
	if opt.Environ == nil {
		opt.Environ = os.Getenv
	}
	m := &model{
		ctx: ctx, opt: opt, out: out, now: time.Now, env: opt.Environ,
		screens: newScreens(), mouseOn: !opt.NoMouse, readOnly: opt.ReadOnly,
		writer: styles.NewWriter(theme, opt.Environ), dirty: true,
	}
	m.lab = guard{Lab: opt.Lab, closed: newFlag(opt.ReadOnly)}
	m.wait, m.tick = m.waitForState, m.waitForTick
	m.filters = make([]filter.Filter, len(m.screens))
	m.take()
	if m.at = m.indexOf(first); m.at < 0 {
		var names []string
		for _, s := range m.screens {
			names = append(names, string(s.Name()))
		}
		return nil, fmt.Errorf("there is no screen %q; there are %s", opt.Screen, and(names))
	}
	m.last = m.at
	return m, nil
}

// indexOf returns which screen an action shows, -1 if none.
func (m *model) indexOf(act keymap.Action) int {
	return slices.IndexFunc(m.screens, func(s screen.Screen) bool { return s.Name() == act })
}

func (m *model) screen() screen.Screen { return m.screens[m.at] }

// top is the topmost layer, nil if there is only the screen.
func (m *model) top() layer {
	if len(m.layers) == 0 {
		return nil
	}
	return m.layers[len(m.layers)-1]
}

func (m *model) push(l layer) { m.layers = append(m.layers, l) }

// closeAll takes all layers away without having done anything.
func (m *model) closeAll() {
	for len(m.layers) > 0 {
		l := m.top()
		l.close(m)
		m.drop(l)
	}
}

// drop takes a layer away, wherever it is.
func (m *model) drop(l layer) {
	m.layers = slices.DeleteFunc(m.layers, func(x layer) bool { return x == l })
}

// noState stands in until the lab has said anything.
var noState = &live.State{File: &lab.File{}}

// take takes the newest State, which is shown unless what is shown is frozen.
func (m *model) take() {
	s := m.lab.State()
	if s == nil {
		s = noState
	}
	if s.File == nil {
		c := *s
		c.File = noState.File
		s = &c
	}
	m.newest = s
	if m.frozen.IsZero() {
		m.shown = s
	}
}

// isReadOnly reports whether nothing may be changed: by option, by key, or since the lab
// says so.
func (m *model) isReadOnly() bool { return m.readOnly || m.newest.ReadOnly }

// Env is what the screen that is shown draws.
func (m *model) Env() screen.Env {
	now := m.now()
	if !m.frozen.IsZero() {
		now = m.frozen
	}
	return screen.Env{State: m.shown, Now: now, Filter: m.filters[m.at], ReadOnly: m.isReadOnly()}
}

// say puts a line at the bottom.
func (m *model) say(text string, bad bool) { m.note = note{text: text, bad: bad, at: m.now()} }

// fail says what did not work.
func (m *model) fail(doing string, err error) {
	text := err.Error()
	if doing != "" {
		text = doing + ": " + text
	}
	m.say(text, true)
}

// Init starts what runs by itself, and loads the experiment that was given.
func (m *model) Init() tea.Cmd {
	title := "ocslab"
	if n := m.newest.File.Name; n != "" {
		title += " " + n
	}
	cmds := []tea.Cmd{m.wait(), m.tick(), tea.SetWindowTitle(title)}
	if path := m.opt.Experiment; path != "" {
		m.show(m.indexOf(keymap.Screen4))
		cmds = append(cmds, m.request(m.load(path)))
	}
	return tea.Batch(cmds...)
}

// running reports whether something is under way that people watch.
func (m *model) running() bool {
	return m.isSending() || m.newest.Pending != "" || m.newest.Opening != "" || runUnderWay(m.newest) ||
		len(m.newest.Moves) > 0 && m.newest.Moves[0].Running
}

// runUnderWay reports whether an experiment is running.
func runUnderWay(s *live.State) bool {
	return s.Run != nil && s.Run.ID != "" && !s.Run.Ended
}

// Messages of what runs by itself.
type (
	stateMsg struct{} // there is a newer State
	tickMsg  struct{} // time has passed
)

// waitForState waits until there is a newer State. It comes back live.PublishEvery after
// the one before at the earliest, however often the lab has something to tell.
func (m *model) waitForState() tea.Cmd {
	return func() tea.Msg {
		select {
		case _, ok := <-m.lab.Changed():
			if !ok {
				return nil
			}
			return stateMsg{}
		case <-m.ctx.Done():
			return nil
		}
	}
}

// waitAgain waits for the State after this one.
func (m *model) waitAgain() tea.Cmd {
	wait := m.wait()
	if wait == nil {
		return nil
	}
	return func() tea.Msg {
		t := time.NewTimer(live.PublishEvery)
		defer t.Stop()
		select {
		case <-t.C:
			return wait()
		case <-m.ctx.Done():
			return nil
		}
	}
}

// waitForTick waits until ages have to be drawn anew: sooner while somebody is watching
// something run.
func (m *model) waitForTick() tea.Cmd {
	d := time.Second
	if m.running() {
		d = 250 * time.Millisecond
	}
	return tea.Tick(d, func(time.Time) tea.Msg { return tickMsg{} })
}
