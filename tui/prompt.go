package tui

import (
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/charmbracelet/bubbles/cursor"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// longest is how long a line that is typed can be.
const longest = 4096

// editor is a line of text that is being typed: an input of bubbles that is drawn on a canvas.
type editor struct{ in textinput.Model }

func newEditor() editor {
	in := textinput.New()
	in.CharLimit = longest
	in.Cursor.SetMode(cursor.CursorStatic)
	in.Focus()
	in.KeyMap.Paste.SetEnabled(false) // reads the clipboard of the machine that ocslab runs on
	in.KeyMap.AcceptSuggestion.SetEnabled(false)
	in.KeyMap.NextSuggestion.SetEnabled(false)
	in.KeyMap.PrevSuggestion.SetEnabled(false)
	in.KeyMap.DeleteWordForward.SetEnabled(false) // panics at the last character, in v1.0.0
	return editor{in}
}

func (e *editor) String() string { return e.in.Value() }

func (e *editor) set(s string) {
	e.in.SetValue(s)
	e.in.CursorEnd()
}

// atEnd reports whether the next character goes behind all others.
func (e *editor) atEnd() bool { return e.in.Position() == len([]rune(e.in.Value())) }

// key takes a key, and reports whether the text is another now. Lines of a pasted text become
// one, and what cannot be seen is left out.
func (e *editor) key(k tea.KeyMsg) (changed bool) {
	if k.Type == tea.KeyRunes || k.Type == tea.KeySpace {
		if k.Alt && k.String() != "alt+b" && k.String() != "alt+f" { // a word back, a word on
			return false
		}
		k.Runes = []rune(strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' || r == '\t' || unicode.IsPrint(r) {
				return r
			}
			return -1
		}, strings.ReplaceAll(string(k.Runes), "\r\n", "\n")))
	}
	before := e.in.Value()
	e.in, _ = e.in.Update(k)
	return e.in.Value() != before
}

// draw draws the line in the first line of an area, scrolled so that the cursor is seen.
func (e *editor) draw(a canvas.Area) {
	if a.W <= 0 {
		return
	}
	text, at := []rune(e.in.Value()), e.in.Position()
	from := 0
	for canvas.Width(string(text[from:at])) > a.W-1 {
		from++
	}
	s := canvas.S(canvas.Text)
	x := a.Text(0, 0, string(text[from:at]), s)
	under := " "
	if at < len(text) {
		under = string(text[at])
	}
	end := a.Text(x, 0, under, s.With(canvas.Cursor))
	if at < len(text) {
		a.Text(end, 0, string(text[at+1:]), s)
	}
}

// prompt asks for a line of text at the bottom of the screen.
type prompt struct {
	title string
	hint  string // what it is for, while nothing is typed
	edit  editor

	// complete returns how many characters of the text stay, and what can follow; nil: nothing
	// is completed.
	complete func(text string) (from int, cs []screen.Choice)
	change   func(m *model, text string)              // after each change; nil: nothing
	enter    func(m *model, text string) tea.Cmd      // with the answer, when the prompt is closed
	check    func(m *model, text string) (why string) // why it cannot be entered; nil: it always can
	cancel   func(m *model)                           // on esc; nil: nothing

	why     string // what check has said
	base    string // what was typed before tab
	pick    int    // of what tab offers, -1 for none
	cs      []screen.Choice
	from    int
	recalls bool // up and down go through the commands before
	recall  int
}

func (p *prompt) text() bool { return true }

func (p *prompt) close(m *model) {
	m.drop(p)
	if p.cancel != nil {
		p.cancel(m)
	}
}

// open puts the prompt up, with a text in it.
func (m *model) open(p *prompt, text string) {
	p.edit = newEditor()
	p.edit.set(text)
	p.recall = len(m.history)
	p.offer()
	m.push(p)
}

// offer finds what can follow.
func (p *prompt) offer() {
	p.pick, p.base = -1, p.edit.String()
	p.cs, p.from = nil, 0
	if p.complete != nil && p.edit.atEnd() {
		p.from, p.cs = p.complete(p.base)
	}
}

func (p *prompt) key(m *model, k tea.KeyMsg) tea.Cmd {
	switch k.String() {
	case "esc", "ctrl+c":
		p.close(m)
		return nil
	case "enter":
		text := p.edit.String()
		if p.check != nil {
			if p.why = p.check(m, text); p.why != "" {
				return nil
			}
		}
		m.drop(p)
		return p.enter(m, text)
	case "tab":
		p.next(m, 1)
		return nil
	case "shift+tab":
		p.next(m, -1)
		return nil
	case "up":
		p.remember(m, -1)
		return nil
	case "down":
		p.remember(m, 1)
		return nil
	}
	changed := p.edit.key(k)
	p.offer()
	if changed {
		p.changed(m)
	}
	return nil
}

func (p *prompt) changed(m *model) {
	p.why = ""
	if p.change != nil {
		p.change(m, p.edit.String())
	}
}

// next puts in the next of what can follow. The only one is taken for good.
func (p *prompt) next(m *model, n int) {
	if len(p.cs) == 0 {
		return
	}
	if p.pick < 0 && n < 0 {
		p.pick = 0
	}
	p.pick = (p.pick + n + len(p.cs)) % len(p.cs)
	base := []rune(p.base)
	text := string(base[:min(p.from, len(base))]) + p.cs[p.pick].Value
	if len(p.cs) == 1 {
		if !strings.HasSuffix(text, string(filepath.Separator)) {
			text += " "
		}
		p.edit.set(text)
		p.offer()
	} else {
		p.edit.set(text)
	}
	p.changed(m)
}

// remember goes through the commands before.
func (p *prompt) remember(m *model, n int) {
	if !p.recalls {
		p.next(m, n)
		return
	}
	if len(m.history) == 0 {
		return
	}
	p.recall = max(0, min(p.recall+n, len(m.history)))
	text := ""
	if p.recall < len(m.history) {
		text = m.history[p.recall]
	}
	p.edit.set(text)
	p.offer()
	p.changed(m)
}

// pickZone is where a click takes something that is offered.
type pickZone struct{ i int }

func (p *prompt) mouse(m *model, e screen.Mouse) tea.Cmd {
	if z, ok := e.ID.(pickZone); ok && e.Wheel == 0 && z.i < len(p.cs) {
		p.pick = z.i - 1
		p.next(m, 1)
	}
	return nil
}

// offered is how many lines of what can follow are shown at most.
const offered = 8

// draw draws the prompt in the line above the last, and what can follow above that.
func (p *prompt) draw(_ *model, a canvas.Area) {
	a.Modal()
	above, bottom := a.Bottom(2)
	bottom.Clear()
	x := bottom.Text(0, 0, " "+p.title, canvas.S(canvas.Accent))
	if p.title != ":" && p.title != "/" {
		x++
	}
	p.edit.draw(bottom.Sub(x, 0, bottom.W-x, 1))
	switch {
	case p.why != "":
		bottom.Fit(1, 1, bottom.W-2, p.why, canvas.S(canvas.Bad))
	default:
		hint := "enter takes it, esc cancels"
		if p.complete != nil {
			hint += ", tab completes"
		}
		if p.recalls {
			hint += ", ↑ the commands before"
		}
		if p.hint != "" {
			hint = p.hint + "; " + hint
		}
		bottom.Fit(1, 1, bottom.W-2, hint, canvas.S(canvas.Dim))
	}
	p.drawOffer(above)
}

func (p *prompt) drawOffer(a canvas.Area) {
	if len(p.cs) == 0 || a.H < 4 {
		return
	}
	n := min(len(p.cs), offered, a.H-2)
	top := max(0, min(p.pick-n/2, len(p.cs)-n))
	value, about := 0, 0
	for _, c := range p.cs[top : top+n] {
		value, about = max(value, canvas.Width(c.Value)), max(about, canvas.Width(c.About))
	}
	w := min(a.W, value+about+6)
	title := ""
	if len(p.cs) > n {
		w = max(w, min(a.W, 20))
		title = count(top+1, top+n, len(p.cs))
	}
	win := a.Sub(0, a.H-n-2, w, n+2)
	win.Clear()
	in := win.Box(title, canvas.S(canvas.Frame))
	for i, c := range p.cs[top : top+n] {
		l := in.Sub(0, i, in.W, 1)
		x := in.W/2 + 2
		if canvas.Width(c.Value) < in.W/2 || c.About == "" {
			x = l.Text(1, 0, pad(c.Value, value+1), canvas.S(canvas.Text))
		} else {
			l.Fit(1, 0, in.W/2, c.Value, canvas.S(canvas.Text))
		}
		l.Fit(x+1, 0, in.W-x-2, c.About, canvas.S(canvas.Dim))
		if top+i == p.pick {
			l.Add(canvas.Cursor)
		}
		l.Zone(pickZone{top + i})
	}
}

// askFilter asks for the filter of the screen, which is in force while it is typed.
func (m *model) askFilter() {
	at := m.at
	set := func(m *model, text string) { m.filters[at] = filter.Parse(text) }
	m.open(&prompt{
		title: "/", hint: "fuzzy words, 'exact, !inverse; esc clears", change: set,
		enter:  func(m *model, text string) tea.Cmd { set(m, text); return nil },
		cancel: func(m *model) { set(m, "") },
	}, m.filters[at].String())
}

// ask asks what a screen wants to know.
func (m *model) ask(q screen.Ask) {
	then := func(m *model, answer string) tea.Cmd {
		if q.Then == nil {
			return nil
		}
		return m.requests(q.Then(answer))
	}
	p := &prompt{title: q.Title + ":", enter: then}
	if q.Files {
		p.complete = func(text string) (int, []screen.Choice) { return 0, files(text) }
		p.enter = func(m *model, text string) tea.Cmd { return then(m, strings.TrimSpace(text)) }
	}
	m.open(p, q.Initial)
}

// askName asks under which name to save a file.
func (m *model) askName(s screen.SaveAs) {
	m.open(&prompt{
		title: "save as:", complete: func(text string) (int, []screen.Choice) { return 0, files(text) },
		check: func(_ *model, text string) string {
			if strings.TrimSpace(text) == "" {
				return "a file needs a name"
			}
			return ""
		},
		enter: func(m *model, text string) tea.Cmd { return m.save(strings.TrimSpace(text), s.Content) },
	}, s.Name)
}

// askConfiguration asks which configuration of the lab to bring about.
func (m *model) askConfiguration() {
	names := m.newest.File.ConfigNames()
	if len(names) == 0 {
		m.say("the lab file has no configurations", true)
		return
	}
	var items []item
	for _, n := range names {
		items = append(items, item{text: n, about: m.configuration(n)})
	}
	p := newPicker("configuration", items)
	p.pick = func(m *model, it item) tea.Cmd { return m.request(configure(it.text)) }
	m.push(p)
}

// configuration says what a configuration connects.
func (m *model) configuration(name string) string {
	maps, err := m.newest.File.Config(name)
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, sw := range m.newest.File.Switches {
		if want, ok := maps[sw.Name]; ok {
			words = append(words, sw.Name+" "+want.String())
		}
	}
	return strings.Join(words, "; ")
}

func configure(name string) screen.Propose {
	return screen.Propose{Wish: live.Wish{Verb: live.Configure, Configuration: name}}
}

// mostFiles is how many names of a directory are offered.
const mostFiles = 200

// files are the names that begin so. Directories end with a separator; what begins with a
// dot is offered when a dot was typed.
func files(text string) []screen.Choice {
	dir, start := filepath.Split(text)
	read := expand(dir)
	if read == "" {
		read = "."
	}
	entries, err := os.ReadDir(read)
	if err != nil {
		return nil
	}
	var cs []screen.Choice
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, start) || strings.HasPrefix(name, ".") && !strings.HasPrefix(start, ".") {
			continue
		}
		c := screen.Choice{Value: dir + name}
		if e.IsDir() {
			c.Value += string(filepath.Separator)
		}
		if cs = append(cs, c); len(cs) == mostFiles {
			break
		}
	}
	return cs
}
