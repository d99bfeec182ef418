package tui

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
)

// The smallest terminal that the UI is drawn in.
const (
	leastW = 40
	leastH = 10
)

func (m *model) tooSmall() bool { return m.w < leastW || m.h < leastH }

// View returns the frame. It is drawn only when something is another than at the last.
func (m *model) View() string {
	if m.dirty {
		m.dirty = false
		m.canvas.Reset(m.w, m.h)
		m.draw(m.canvas.Area())
		m.frame = m.writer.Render(&m.canvas)
	}
	return m.frame
}

// frameLines are the lines that are not the screen's: top line, tabs, message, keys.
const frameLines = 4

// banners is how many lines say that something is out of the ordinary.
func (m *model) banners() int {
	n := 0
	if p := m.newest.Panic; p != nil {
		n++
		if p.Lit != "" {
			n++
		}
	}
	if !m.frozen.IsZero() {
		n++
	}
	return n
}

// bodySize is what the screen gets to draw in.
func (m *model) bodySize() (w, h int) {
	w, h = m.w, m.h
	if m.isReadOnly() {
		w, h = w-2, h-2
	}
	return max(w, 0), max(h-frameLines-m.banners(), 0)
}

// fit tells the screens what they get to draw in, when that is another.
func (m *model) fit() {
	w, h := m.bodySize()
	if w == m.bodyW && h == m.bodyH {
		return
	}
	m.bodyW, m.bodyH = w, h
	for _, s := range m.screens {
		s.Resize(w, h)
	}
}

// draw draws everything.
func (m *model) draw(a canvas.Area) {
	if m.tooSmall() {
		m.drawTooSmall(a)
		return
	}
	in := a
	if m.isReadOnly() {
		in = a.Box("READ-ONLY: nothing here can change anything", canvas.S(canvas.FrameRO))
	}
	top, rest := in.Top(1)
	m.drawTop(top)
	rest = m.drawBanners(rest)
	tabs, below := rest.Top(1)
	m.drawTabs(tabs)
	body, bottom := below.Bottom(2)
	m.screen().Draw(body, m.Env())
	message, keys := bottom.Top(1)
	m.drawMessage(message)
	if m.top() == nil {
		m.drawKeys(keys)
	}
	// Windows leave what is above the tabs alone: which lab this is, and how it stands
	// with it, is to be seen whatever is decided.
	for _, l := range m.layers {
		l.draw(m, rest)
	}
}

// drawTooSmall says why nothing is to be seen.
func (m *model) drawTooSmall(a canvas.Area) {
	text := fmt.Sprintf("too small: %d x %d, needs %d x %d", m.w, m.h, leastW, leastH)
	if d, ok := m.top().(*dialog); ok && d.isPanic() {
		text = describe(d.wish) + "? " + confirmKeys()
	}
	if m.isReadOnly() {
		text = "READ-ONLY; " + text
	}
	for y, l := range canvas.Wrap(text, a.W) {
		a.Text(0, y, l, canvas.S(canvas.Warn))
	}
}

// drawTop draws what lab this is, and how it stands with it.
func (m *model) drawTop(a canvas.Area) {
	s := m.newest
	var up, lost, opening, lent int
	for _, sw := range s.Switches {
		switch sw.Status {
		case live.Up:
			up++
		case live.Lost:
			lost++
		case live.Lent:
			lent++
		default:
			opening++
		}
	}
	right := []seg{}
	add := func(n int, what string, role canvas.Role) {
		if n > 0 {
			right = append(right, seg{fmt.Sprintf("%d %s  ", n, what), canvas.S(role)})
		}
	}
	add(lost, "LOST", canvas.Bad)
	add(opening, "opening", canvas.Busy)
	add(lent, "lent to the run", canvas.Busy)
	if up > 0 {
		right = append(right, seg{fmt.Sprintf("%s up  ", natural.Count(up, "switch")), canvas.S(canvas.Good)})
	}
	right = append(right, seg{m.now().Format("15:04:05") + " ", canvas.S(canvas.Text)})
	x := a.W - canvas.Width(row{segs: right}.String())
	row{segs: right}.draw(a.Sub(x, 0, a.W-x, 1), 0)

	left := a.Sub(0, 0, max(0, x-1), 1)
	end := left.Text(1, 0, or(s.File.Name, "lab"), canvas.S(canvas.Text, canvas.Bold)) + 2
	switch {
	case s.Emulated && s.Rung != "":
		end = left.Text(end, 0, "EMULATED ("+s.Rung+")", canvas.S(canvas.Busy)) + 2
	case s.Emulated:
		end = left.Text(end, 0, "EMULATED", canvas.S(canvas.Busy)) + 2
	default:
		end = left.Text(end, 0, "REAL", canvas.S(canvas.Warn, canvas.Bold)) + 2
	}
	if m.isReadOnly() {
		end = left.Text(end, 0, "READ-ONLY", canvas.S(canvas.FrameRO)) + 2
	}
	if s.Opening != "" {
		left.Fit(end, 0, left.W-end, "opening "+s.Opening+"…", canvas.S(canvas.Busy))
	}
}

// screenTitles are what the tabs say.
var screenTitles = map[keymap.Action]string{
	keymap.Screen1: "Patch", keymap.Screen2: "Links", keymap.Screen3: "Timeline",
	keymap.Screen4: "Experiment", keymap.Screen5: "Devices", keymap.Screen6: "Log",
}

func (m *model) screenTitle(i int) string {
	name := m.screens[i].Name()
	return or(screenTitles[name], string(name))
}

// drawTabs draws the names of the screens, with blanks between them as there is room.
func (m *model) drawTabs(a canvas.Area) {
	names := make([]string, len(m.screens))
	total := 0
	for i := range m.screens {
		names[i] = fmt.Sprintf(" %d %s ", i+1, m.screenTitle(i))
		total += canvas.Width(names[i])
	}
	if total > a.W {
		for i := range names {
			if i != m.at {
				names[i] = fmt.Sprintf(" %d ", i+1)
			}
		}
	}
	gap := 0
	if total+len(names)*2 <= a.W {
		gap = 1
	}
	for x := range a.W {
		a.Set(x, 0, '─', canvas.S(canvas.Frame))
	}
	x := 1
	for i, name := range names {
		style := canvas.S(canvas.Dim)
		if i == m.at {
			style = canvas.S(canvas.Accent, canvas.Reverse)
		}
		end := a.Text(x, 0, name, style)
		a.Sub(x, 0, end-x, 1).Zone(tabZone{i})
		x = end + gap
	}
}

// drawBanners draws what is out of the ordinary, a line each, and returns what is below.
func (m *model) drawBanners(a canvas.Area) canvas.Area {
	if p := m.newest.Panic; p != nil {
		var l canvas.Area
		l, a = a.Top(1)
		style := canvas.S(canvas.Bad, canvas.Reverse)
		l.Fill(' ', style)
		text := " PANIC since " + p.At.Format("15:04:05")
		if p.Who != "" {
			text += " by " + p.Who
		}
		end := " :lift ends it "
		l.Fit(0, 0, l.W-canvas.Width(end), text+": "+p.Reason, style)
		l.TextRight(l.W, 0, end, style)
		if p.Lit != "" {
			l, a = a.Top(1)
			l.Fill(' ', style)
			l.Fit(0, 0, l.W, " ⚠ "+p.Lit, style)
		}
	}
	if !m.frozen.IsZero() {
		var l canvas.Area
		l, a = a.Top(1)
		style := canvas.S(canvas.Warn, canvas.Reverse)
		l.Fill(' ', style)
		l.Fit(0, 0, l.W, fmt.Sprintf(" FROZEN %s; %s since; f goes on", age(m.now().Sub(m.frozen)),
			natural.Count(int(m.newest.Version-m.shown.Version), "change")), style)
	}
	return a
}

// drawMessage draws what happened last at the left, and where one is at the right.
func (m *model) drawMessage(a canvas.Area) {
	status := m.screen().Status(m.Env())
	if f := m.filters[m.at]; !f.Empty() {
		status = strings.TrimSuffix("/"+f.String()+"  "+status, "  ")
	}
	status = canvas.Cut(status, a.W/2)
	x := a.W - canvas.Width(status) - 1
	a.Text(x, 0, status, canvas.S(canvas.Dim))
	text, style := m.message()
	if (style.Role == canvas.Bad || style.Role == canvas.Warn) && canvas.Width(text) > x-3 && m.logged(text) {
		text += "; 6 shows all"
	}
	a.Fit(1, 0, max(0, x-3), keepEnd(text, max(0, x-3)), style)
}

// recentLines is how many lines of the log are searched for a message.
const recentLines = 100

// logged reports whether the log has all of a message.
func (m *model) logged(message string) bool {
	log := m.newest.Log
	for i := len(log) - 1; i >= max(0, len(log)-recentLines); i-- {
		if t := log[i].Text; t != "" && strings.HasSuffix(message, t) {
			return true
		}
	}
	return false
}

// keepEnd cuts a text that is too wide before its last clause, which is what can be done
// next: "1>34,2>33,… ; u takes it back (change 6)". A clause that would leave little of the
// rest is cut as any other text is.
func keepEnd(text string, w int) string {
	i := strings.LastIndex(text, "; ")
	if i < 0 || canvas.Width(text) <= w || canvas.Width(text[i:]) > w/2 {
		return text
	}
	return canvas.Cut(text[:i], w-canvas.Width(text[i:])) + text[i:]
}

// message is what the message line says: what is being sent, or what was said or happened
// last.
func (m *model) message() (string, canvas.Style) {
	now := m.now()
	if s := cmp.Or(m.panicking, m.sending); s != nil {
		text := "sending: " + s.title + ", " + age(now.Sub(s.since))
		if m.panicking != nil && m.sending != nil {
			text += "; and " + m.sending.title
		}
		if m.quitting {
			text += "; quits after it"
		}
		if m.note.bad { // said since it is being sent
			text = "✗ " + m.note.text + "; " + text
		}
		return text, canvas.S(canvas.Busy)
	}
	if p := m.newest.Pending; p != "" {
		return "under way: " + p, canvas.S(canvas.Busy)
	}
	e := m.newest.LastEvent
	if m.note.text != "" && (e == nil || !e.At.After(m.note.at)) {
		style := canvas.S(canvas.Text)
		if m.note.bad {
			style = canvas.S(canvas.Bad)
		}
		text := m.note.text
		if m.note.bad {
			text = "✗ " + text
		}
		if d := now.Sub(m.note.at); d >= noteAge { // in front, where nothing cuts it off
			text = age(d) + " ago: " + text
		}
		return text, style
	}
	if e == nil {
		return "", canvas.Style{}
	}
	text := e.Text
	if e.Switch != "" && !strings.HasPrefix(text, e.Switch) {
		text = e.Switch + ": " + text
	}
	style := canvas.S(canvas.Text)
	if e.Bad {
		style = canvas.S(canvas.Warn)
		text = "! " + text
	}
	return age(now.Sub(e.At)) + " ago: " + text, style
}

// noteAge is how old a message is before its age is shown.
const noteAge = 5e9

// drawKeys draws what the keys do here, as many as there is room for.
func (m *model) drawKeys(a canvas.Area) {
	last := "? help"
	x, end := 1, a.W-canvas.Width(last)-1
	for _, b := range m.hints() {
		key, name := b.Key(), " "+strings.ReplaceAll(string(b.Action), "-", " ")
		if x+canvas.Width(key+name) > end-2 {
			break
		}
		x = a.Text(x, 0, key, canvas.S(canvas.Accent))
		x = a.Text(x, 0, name, canvas.S(canvas.Dim)) + 2
	}
	x = a.Text(end, 0, "?", canvas.S(canvas.Accent))
	a.Text(x, 0, last[1:], canvas.S(canvas.Dim))
}

// hints are the bindings whose keys are shown: first what changes something here, then what
// brings a configuration about and takes it back, then the rest. Those that the gate would
// refuse are left out, and those that do nothing in this lab, and the second of two that
// belong together.
func (m *model) hints() []keymap.Binding {
	var out []keymap.Binding
	add := func(b keymap.Binding) {
		switch {
		case b.Key() == "" || isMove(b.Action) || m.gate(b.Action) != nil:
			return
		case b.Action == keymap.PrevSwitch || b.Action == keymap.PrevRow:
			return
		case b.Action == keymap.NextSwitch && len(m.newest.Switches) < 2:
			return
		case b.Action == keymap.Configure && (m.newest.File == nil || len(m.newest.File.Configurations) == 0):
			return
		}
		for _, x := range out {
			if x.Action == b.Action {
				return
			}
		}
		out = append(out, b)
	}
	of := func(mutates bool) {
		for _, w := range m.screen().Where() {
			if w == keymap.InLists || w == keymap.Everywhere {
				continue
			}
			for _, b := range keymap.Bindings() {
				if b.In(w) && b.Mutates == mutates {
					add(b)
				}
			}
		}
	}
	// What acts comes first: a narrow terminal has no room for all.
	of(true)
	for _, act := range [...]keymap.Action{keymap.Configure, keymap.Undo} {
		if b, ok := keymap.Of(act); ok {
			add(b)
		}
	}
	of(false)
	for _, act := range [...]keymap.Action{keymap.Filter, keymap.Command, keymap.Palette, keymap.Copy, keymap.Freeze, keymap.Quit} {
		if b, ok := keymap.Of(act); ok {
			add(b)
		}
	}
	return out
}
