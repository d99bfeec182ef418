package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/lab/blackout"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/styles"
)

// Update takes a message, as bubbletea wants it.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	was := m.dirty
	m.dirty = true
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.KeyMsg:
		if m.marks == nil {
			m.begin(m.now(), msg.Type != tea.KeyRunes || len(msg.Runes) == 1 && !msg.Paste)
		}
		cmd = m.key(msg)
	case tea.MouseMsg:
		if at, alone, ok := m.marks.parse(msg); ok {
			m.begin(at, alone)
			m.dirty = was
			return m, nil
		}
		cmd = m.mouse(msg)
	case stateMsg:
		m.take()
		cmd = m.waitAgain()
	case tickMsg:
		cmd = m.tick()
	case previewMsg:
		cmd = m.previewed(msg)
	case appliedMsg:
		cmd = m.applied(msg)
	case loadedMsg:
		cmd = m.loaded(msg)
	case calledMsg:
		m.called(msg)
	case savedMsg:
		m.saved(msg)
	case copiedMsg:
		m.copied(msg)
	case editedMsg:
		cmd = m.edited(msg)
	case reloadedMsg:
		m.reloaded(msg)
	case readOnlyMsg:
		m.becameReadOnly(msg)
	case tea.ResumeMsg:
		cmd = m.mouseAgain()
	default:
		m.dirty = was
	}
	m.fit()
	return m, cmd
}

// places are where keys mean something now.
func (m *model) places() []keymap.Where {
	return append(slices.Clip(m.screen().Where()), keymap.Everywhere)
}

// key takes a key, or several.
func (m *model) key(k tea.KeyMsg) tea.Cmd {
	alone := m.read.alone && !k.Paste && (k.Type != tea.KeyRunes || len(k.Runes) == 1)
	m.read.alone = false // bubbletea makes several keys of a sequence that it does not know
	switch {
	case m.read.shut:
		return nil
	case alone:
		return m.press(k)
	}
	m.read.acting = true
	defer func() { m.read.acting = false }()
	return m.burst(k)
}

// press takes a key that arrived alone.
func (m *model) press(k tea.KeyMsg) tea.Cmd {
	top := m.top()
	switch {
	case isPanic(k) && !m.typing(k):
		return m.panicOver()
	case m.tooSmall():
		// What cannot be seen is not acted on. Of a panic all is seen that there is to know.
		if d, ok := top.(*dialog); ok && d.isPanic() {
			return d.key(m, k)
		}
		if b, ok := keymap.For(k.String(), keymap.Everywhere); ok && b.Action == keymap.Quit && top == nil {
			return m.quit()
		}
		return nil
	case top != nil:
		return top.key(m, k)
	}
	b, ok := keymap.For(k.String(), m.places()...)
	if !ok {
		return nil
	}
	return m.do(b.Action)
}

// isPanic reports whether a key is the panic key.
func isPanic(k tea.KeyMsg) bool {
	b, _ := keymap.For(k.String(), keymap.Everywhere)
	return b.Action == keymap.Panic
}

// typing reports whether the panic key is a letter: in a prompt, which must have been open when the read began that
// the key came with. A list to pick from is no prompt: nothing in it has such a letter. With alt it is no letter
// either, but has arrived together with an esc.
func (m *model) typing(k tea.KeyMsg) bool {
	p, ok := m.top().(*prompt)
	return ok && m.read.began == layer(p) && !k.Alt && !m.tooSmall()
}

// asText marks several letters that came at once as pasted: otherwise the word "enter" has the
// name of a key, and is taken for it.
func asText(k tea.KeyMsg) tea.KeyMsg {
	k.Paste = k.Paste || k.Type == tea.KeyRunes && len(k.Runes) > 1
	return k
}

// panicOver asks whether to panic, in place of whatever is open: a change that waits to be
// accepted is put away, which accepts nothing.
func (m *model) panicOver() tea.Cmd {
	if d, ok := m.top().(*dialog); ok && d.isPanic() {
		d.urgent = true
		return nil
	}
	if m.gate(keymap.Panic) == nil && m.panicking == nil {
		m.closeAll()
	}
	cmd := m.do(keymap.Panic)
	if d, ok := m.top().(*dialog); ok && d.isPanic() {
		d.urgent = true
	}
	return cmd
}

// burst takes keys of a read that has several: from a key held down on a slow line, from somebody who types fast, or
// from a paste, whether the terminal marks it or not. Moves of the cursor are carried out, and of the screen where no
// window is open, and what follows : or / or ' is text. The first key that is anything else ends it, and is left alone
// with all behind it, since nobody has seen what the keys before have done. Only the panic key always counts, and then
// nothing behind it does.
func (m *model) burst(k tea.KeyMsg) tea.Cmd {
	var cmds []tea.Cmd
	letters := k.Type == tea.KeyRunes
	for i := 0; i == 0 || letters && i < len(k.Runes); i++ {
		one := k
		if letters && len(k.Runes) > 0 {
			one.Runes, one.Paste = k.Runes[i:i+1], false
		}
		name := one.String()
		if isPanic(one) && !m.typing(k) {
			m.read.shut = true
			return tea.Batch(append(cmds, m.panicOver())...)
		}
		top := m.top()
		b, ok := keymap.For(name, m.places()...)
		switch {
		case m.read.stray || m.tooSmall():
		case top != nil && top.text():
			rest := k
			if letters {
				n := len(k.Runes)
				panics := func(r rune) bool { return isPanic(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}) }
				if j := slices.IndexFunc(k.Runes[i:], panics); j >= 0 && !m.typing(k) {
					n = i + j
				}
				rest.Runes = k.Runes[i:n]
				i = n - 1
			}
			cmds = append(cmds, top.key(m, asText(rest)))
		case k.Paste:
			// A text that is pasted by mistake must not act as if its letters had been pressed.
			m.stray("pasted text is not taken as keys: press : or / first, then paste")
		case ok && isMove(b.Action) && top != nil:
			cmds = append(cmds, top.key(m, one))
		case ok && (isMove(b.Action) || isNavigation(b.Action)) && top == nil:
			cmds = append(cmds, m.do(b.Action))
			if b.Action == keymap.GoTo && (m.top() == nil || !m.top().text()) {
				m.read.stray = true // what follows was meant for its prompt
			}
		default:
			m.stray(keymap.Name(name) + " was left alone: of several keys at once, as from a paste, only moves are taken")
		}
	}
	return tea.Batch(cmds...)
}

// stray leaves a key alone with all that came behind it at once, and says why.
func (m *model) stray(why string) {
	m.read.stray = true
	m.say(why, false)
}

// isMove reports whether an action only moves the cursor, or what is seen.
func isMove(a keymap.Action) bool {
	switch a {
	case keymap.Up, keymap.Down, keymap.Left, keymap.Right, keymap.PageUp, keymap.PageDown, keymap.Home, keymap.End,
		keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit:
		return true
	}
	return false
}

// isNavigation reports whether an action only changes what is shown, or asks for a text
// that is accepted by another key.
func isNavigation(a keymap.Action) bool {
	switch a {
	case keymap.Screen1, keymap.Screen2, keymap.Screen3, keymap.Screen4, keymap.Screen5, keymap.Screen6,
		keymap.LastView, keymap.NextSwitch, keymap.PrevSwitch, keymap.NextRow, keymap.PrevRow, keymap.View,
		keymap.Command, keymap.Filter, keymap.GoTo:
		return true
	}
	return false
}

// do carries out an action, if the gate lets it.
func (m *model) do(act keymap.Action) tea.Cmd {
	if err := m.gate(act); err != nil {
		m.fail("", err)
		return nil
	}
	if i := m.indexOf(act); i >= 0 {
		m.show(i)
		return nil
	}
	switch act {
	case keymap.NextScreen:
		m.show((m.at + 1) % len(m.screens))
	case keymap.PrevScreen:
		m.show((m.at + len(m.screens) - 1) % len(m.screens))
	case keymap.LastView:
		m.show(m.last)
	case keymap.Back:
		m.back()
	case keymap.Quit:
		return m.quit()
	case keymap.Help:
		m.help()
	case keymap.Command:
		m.askCommand("")
	case keymap.Palette:
		m.palette()
	case keymap.Filter:
		m.askFilter()
	case keymap.Freeze:
		m.freeze()
	case keymap.Copy:
		return m.copy(m.screen().Copy(m.Env()))
	case keymap.Save:
		if rs := m.screen().Do(act, m.Env()); len(rs) > 0 {
			return m.requests(rs)
		}
		return m.request(m.saveScreen())
	case keymap.Edit:
		if rs := m.screen().Do(act, m.Env()); len(rs) > 0 {
			return m.requests(rs)
		}
		return m.request(screen.EditFile{Path: m.newest.File.Path})
	case keymap.Mouse:
		return m.toggleMouse()
	case keymap.NewTheme:
		m.nextTheme()
	case keymap.Redraw:
		return tea.ClearScreen
	case keymap.Suspend:
		return tea.Suspend
	case keymap.ReadOnly:
		return m.setReadOnly(true)
	case keymap.Write:
		return m.setReadOnly(false)
	case keymap.Configure:
		m.askConfiguration()
	case keymap.Undo:
		return m.request(screen.Propose{Wish: live.Wish{Verb: live.Undo}})
	case keymap.Redo:
		return m.request(screen.Propose{Wish: live.Wish{Verb: live.Redo}})
	case keymap.Panic:
		return m.request(screen.Propose{Wish: live.Wish{Verb: live.PanicNow, Reason: blackout.NoReason}})
	case keymap.Lift:
		return m.request(screen.Propose{Wish: live.Wish{Verb: live.Lift}})
	default:
		return m.requests(m.screen().Do(act, m.Env()))
	}
	return nil
}

// doAnywhere carries out an action that was asked for by name. One of another screen shows
// that screen; if it moves light, that is all, since what the cursor is on there has not
// been seen.
func (m *model) doAnywhere(act keymap.Action) tea.Cmd {
	if err := m.gate(act); err != nil {
		m.fail("", err)
		return nil
	}
	places := placesOf(act)
	if slices.Contains(places, keymap.Everywhere) || slices.ContainsFunc(m.screen().Where(), func(w keymap.Where) bool { return slices.Contains(places, w) }) {
		return m.do(act)
	}
	for i, s := range m.screens {
		if slices.ContainsFunc(s.Where(), func(w keymap.Where) bool { return slices.Contains(places, w) }) {
			m.show(i)
			if !keymap.Mutates(act) {
				return m.do(act)
			}
			b, _ := keymap.Of(act)
			m.say(fmt.Sprintf("%s is of this screen: choose, then press %s", act, b.Key()), false)
			return nil
		}
	}
	m.say(fmt.Sprintf("%s means nothing here", act), true)
	return nil
}

// placesOf returns all places where an action means something.
func placesOf(act keymap.Action) []keymap.Where {
	var all []keymap.Where
	for _, b := range keymap.Bindings() {
		if b.Action == act {
			all = append(all, b.Where...)
		}
	}
	return all
}

// keepTrail is how many screens one can go back.
const keepTrail = 20

// show shows a screen. A number that there is not changes nothing.
func (m *model) show(i int) {
	if i < 0 || i >= len(m.screens) || i == m.at {
		return
	}
	m.trail = append(m.trail, m.at)
	if len(m.trail) > keepTrail {
		m.trail = slices.Delete(m.trail, 0, 1)
	}
	m.last, m.at = m.at, i
}

// back goes back one step: clears the filter, or the selection, or shows the screen before.
// Windows and prompts take the key themselves.
func (m *model) back() {
	switch {
	case !m.filters[m.at].Empty():
		m.filters[m.at] = filter.Filter{}
	case m.screen().Deselect():
	case len(m.trail) > 0:
		n := len(m.trail) - 1
		m.last, m.at = m.at, m.trail[n]
		m.trail = m.trail[:n]
	}
}

// freeze makes what is shown stand still, or lets it go on.
func (m *model) freeze() {
	if m.frozen.IsZero() {
		m.frozen = m.now()
		return
	}
	m.frozen = time.Time{}
	m.shown = m.newest
}

func (m *model) toggleMouse() tea.Cmd {
	m.mouseOn = !m.mouseOn
	if m.mouseOn {
		m.say("the mouse is taken; M leaves it to the terminal", false)
		return tea.EnableMouseCellMotion
	}
	m.say("the mouse is the terminal's, for marking text; M takes it back", false)
	return tea.DisableMouse
}

// mouseAgain takes the mouse back after another program has had the terminal, which
// bubbletea does not.
func (m *model) mouseAgain() tea.Cmd {
	if m.mouseOn {
		return tea.EnableMouseCellMotion
	}
	return nil
}

func (m *model) nextTheme() {
	names := themeNames()
	i := slices.Index(names, m.writer.Theme.Name)
	m.setTheme(names[(i+1)%len(names)])
}

func (m *model) setTheme(name string) {
	if t, ok := styles.ByName(name); ok {
		m.writer.Theme = t
		m.say("theme "+t.Name+": "+t.About, false)
	}
}

// quit quits, or asks first when something is under way.
func (m *model) quit() tea.Cmd {
	stay := func(m *model) { m.quitting = false }
	switch {
	case m.isSending() && m.quitting:
		m.confirm(&question{title: "quit now, while a change is being sent", no: stay, ways: []way{
			{about: "What becomes of the change is not watched any more.", do: func(*model) tea.Cmd { return tea.Quit }},
		}})
	case m.isSending():
		m.quitting = true
		m.say("quits as soon as the change has been read back", false)
	case runUnderWay(m.newest):
		m.confirm(&question{title: "quit, while a run is under way", no: stay, ways: []way{
			{about: "The run ends after the point under way, and puts the light back.", do: func(*model) tea.Cmd { return tea.Quit }},
		}})
	default:
		return tea.Quit
	}
	return nil
}

// readOnlyMsg is what the lab said to the wish for read-only, or for its end.
type readOnlyMsg struct {
	on  bool
	err error
}

// setReadOnly begins or ends read-only. It begins here at once, whatever the lab says.
func (m *model) setReadOnly(on bool) tea.Cmd {
	if !on && m.read.acting {
		m.stray("read-only was not ended by several keys at once, as from a paste")
		return nil
	}
	if !on && m.opt.ReadOnly {
		m.say("started read-only, so it stays so: start ocslab tui without --read-only", true)
		return nil
	}
	if on && m.opt.ReadOnly {
		m.say("read-only already, and until the end: it was started so", false)
		return nil
	}
	if on {
		m.readOnly = true
		m.lab.closed.Store(true)
	}
	return func() tea.Msg { return readOnlyMsg{on, m.lab.SetReadOnly(on)} }
}

func (m *model) becameReadOnly(msg readOnlyMsg) {
	switch {
	case msg.err != nil && msg.on:
		m.fail("read-only here; the lab says", msg.err)
	case msg.err != nil:
		m.fail("still read-only", msg.err)
	case msg.on:
		m.say("read-only: nothing that changes anything passes; :write ends it", false)
	default:
		m.readOnly = false
		m.say("changes pass again", false)
	}
	m.take()
}

// requests carries out what a screen wants done.
func (m *model) requests(rs []screen.Request) tea.Cmd {
	var cmds []tea.Cmd
	for _, r := range rs {
		if cmd := m.request(r); cmd != nil {
			cmds = append(cmds, cmd)
		}
	}
	switch len(cmds) {
	case 0:
		return nil
	case 1:
		return cmds[0]
	}
	return tea.Batch(cmds...)
}

// request carries out one request, if the gate lets it.
func (m *model) request(r screen.Request) tea.Cmd {
	if r == nil {
		return nil
	}
	if err := m.gate(r); err != nil {
		m.fail("", err)
		return nil
	}
	if c, ok := r.(screen.Call); ok && c.Mutates && m.read.acting {
		m.stray(c.Doing + ": not begun by several keys at once, as from a paste")
		return nil
	}
	switch r := r.(type) {
	case screen.Propose:
		return m.propose(r.Wish)
	case screen.Confirm:
		m.confirm(m.questionOf(r))
	case screen.Goto:
		m.goTo(r)
	case screen.Say:
		m.say(r.Text, r.Bad)
	case screen.Ask:
		m.ask(r)
	case screen.SaveAs:
		m.askName(r)
	case screen.EditFile:
		return m.edit(r)
	case screen.Call:
		return m.call(r)
	case screen.Show:
		m.push(newWindow(r.Title, plain(r.Lines)))
	}
	return nil
}

// goTo shows a screen with its cursor on a subject.
func (m *model) goTo(g screen.Goto) {
	if i := m.indexOf(g.Screen); i >= 0 {
		m.show(i)
	}
	if g.Subject != "" {
		m.fit()
		m.screen().Focus(g.Subject, m.Env())
	}
}

// calledMsg is what came of a Call.
type calledMsg struct {
	call screen.Call
	err  error
}

// call calls something of the lab, on a goroutine of its own.
func (m *model) call(c screen.Call) tea.Cmd {
	if c.Do == nil {
		return nil
	}
	m.say(c.Doing+"…", false)
	return func() tea.Msg { return calledMsg{c, c.Do(m.ctx, m.lab)} }
}

func (m *model) called(msg calledMsg) {
	if msg.err != nil {
		m.fail(msg.call.Doing, msg.err)
		if lines := strings.Split(msg.err.Error(), "\n"); len(lines) > 1 { // as of a file with several errors
			rows := make([]row, 0, len(lines))
			for _, l := range lines {
				rows = append(rows, line(seg{l, canvas.S(canvas.Bad)}))
			}
			m.push(newWindow(msg.call.Doing, rows))
		}
		return
	}
	// Something said meanwhile is newer, and stays.
	if m.note.text == msg.call.Doing+"…" {
		text := msg.call.Doing + ": done"
		if msg.call.CLI != "" {
			text += "   $ " + msg.call.CLI
		}
		m.say(text, false)
	}
}

// load is the request to plan an experiment.
func (m *model) load(path string) screen.Call {
	path = expand(path)
	return screen.Call{
		Doing: "loading " + path, CLI: m.newest.Command("run", path, "--plan"),
		Do: func(ctx context.Context, l live.Lab) error { return l.LoadRun(ctx, path) },
	}
}

// saveScreen is the request to save what is shown as text.
func (m *model) saveScreen() screen.SaveAs {
	var c canvas.Canvas
	c.Reset(m.bodyW, m.bodyH)
	m.screen().Draw(c.Area(), m.Env())
	name := fmt.Sprintf("ocslab-%s-%s.txt", m.screen().Name(), m.Env().Now.Format("20060102-150405"))
	return screen.SaveAs{Name: name, Content: []byte(c.String())}
}

// savedMsg is what came of writing a file.
type savedMsg struct {
	name string
	size int
	err  error
}

// save writes a file that must not be there yet: a slip of the fingers shall not cost
// anybody a measurement.
func (m *model) save(name string, content []byte) tea.Cmd {
	if err := m.gate(screen.SaveAs{}); err != nil {
		m.fail("", err)
		return nil
	}
	return func() tea.Msg {
		f, err := os.OpenFile(expand(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return savedMsg{name: name, err: err}
		}
		_, err = f.Write(content)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return savedMsg{name: name, size: len(content), err: err}
	}
}

func (m *model) saved(msg savedMsg) {
	switch {
	case errors.Is(msg.err, os.ErrExist):
		m.say(msg.name+" is there already, and was left as it is: choose another name", true)
	case msg.err != nil:
		m.fail("nothing was saved", msg.err)
	default:
		m.say(fmt.Sprintf("saved %s (%d bytes)", msg.name, msg.size), false)
	}
}

// expand replaces a ~ at the beginning of a name by the home directory.
func expand(name string) string {
	if len(name) >= 2 && name[0] == '~' && os.IsPathSeparator(name[1]) {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, name[2:])
		}
	}
	return name
}
