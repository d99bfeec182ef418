package tui

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// window shows lines that can be scrolled, searched and copied.
type window struct {
	title     string
	rows      []row
	filter    string
	top       int
	fits, all int // lines that are seen, and that there are
	full      bool
}

func newWindow(title string, rows []row) *window { return &window{title: title, rows: rows} }

func (w *window) text() bool { return false }

func (w *window) close(m *model) { m.drop(w) }

func (w *window) scroll(n int) { w.top = max(0, min(w.top+n, w.all-w.fits)) }

func (w *window) key(m *model, k tea.KeyMsg) tea.Cmd {
	b, ok := keymap.For(k.String(), keymap.InLists, keymap.Everywhere)
	switch {
	case !ok:
	case b.Action == keymap.Up:
		w.scroll(-1)
	case b.Action == keymap.Down:
		w.scroll(1)
	case b.Action == keymap.PageUp:
		w.scroll(-w.fits)
	case b.Action == keymap.PageDown:
		w.scroll(w.fits)
	case b.Action == keymap.Home:
		w.scroll(-w.all)
	case b.Action == keymap.End:
		w.scroll(w.all)
	case b.Action == keymap.Filter:
		w.search(m)
	case b.Action == keymap.Copy:
		var lines []string
		for _, r := range w.matching() {
			lines = append(lines, strings.TrimRight(r.String(), " "))
		}
		return m.copy(strings.Join(lines, "\n"))
	case b.Action == keymap.Back && w.filter != "":
		w.filter, w.top = "", 0
	case b.Action == keymap.Back, b.Action == keymap.Quit, b.Action == keymap.Enter, b.Action == keymap.Help:
		m.drop(w)
	}
	return nil
}

// search asks what the lines must have.
func (w *window) search(m *model) {
	set := func(_ *model, text string) { w.filter, w.top = text, 0 }
	m.open(&prompt{
		title: "/", hint: "lines that have this", change: set,
		enter:  func(m *model, text string) tea.Cmd { set(m, text); return nil },
		cancel: func(m *model) { set(m, "") },
	}, w.filter)
}

func (w *window) mouse(m *model, e screen.Mouse) tea.Cmd {
	if e.Wheel != 0 {
		w.scroll(e.Wheel)
	}
	return nil
}

// matching are the lines that have what is searched.
func (w *window) matching() []row {
	if strings.TrimSpace(w.filter) == "" {
		return w.rows
	}
	words := strings.Fields(strings.ToLower(w.filter))
	var rows []row
	for _, r := range w.rows {
		text := strings.ToLower(r.String())
		if !slices.ContainsFunc(words, func(x string) bool { return !strings.Contains(text, x) }) {
			rows = append(rows, r)
		}
	}
	return rows
}

func (w *window) draw(_ *model, a canvas.Area) {
	width := min(a.W-4, 120)
	var lines []row
	widest := canvas.Width(w.title) + 6
	for _, r := range w.matching() {
		for _, l := range r.flow(width - 5) {
			lines = append(lines, l)
			widest = max(widest, canvas.Width(l.String()))
		}
	}
	if !w.full {
		width = min(width, max(widest+5, 56))
	}
	in := popup(a, width, min(max(len(lines), 1)+3, a.H), w.title, canvas.S(canvas.Accent))
	in = in.Sub(1, 0, in.W-1, in.H)
	body, foot := in.Bottom(1)
	w.fits, w.all = body.H, len(lines)
	w.scroll(0)
	for y := 0; y < body.H && w.top+y < len(lines); y++ {
		lines[w.top+y].draw(body.Sub(0, 0, body.W-1, body.H), y)
	}
	if len(lines) == 0 {
		body.Text(0, 0, "no line has this", canvas.S(canvas.Dim))
	}
	if w.all > w.fits {
		widget.Scrollbar(body.Sub(body.W-1, 0, 1, body.H), w.top, w.fits, w.all)
	}
	copies, _ := keymap.Of(keymap.Copy)
	hint := "esc closes, / searches, " + copies.Key() + " copies"
	if w.filter != "" {
		hint = "lines with " + w.filter + ": esc shows all"
	}
	foot.Fit(0, 0, foot.W-16, hint, canvas.S(canvas.Dim))
	foot.TextRight(foot.W-1, 0, count(min(w.top+1, w.all), min(w.top+w.fits, w.all), w.all), canvas.S(canvas.Dim))
}

// help shows all keys, those of this screen first.
func (m *model) help() {
	w := newWindow("keys of "+m.screenTitle(m.at), m.helpRows())
	w.full = true
	m.push(w)
}

// placeTitles is what places are called in the help.
var placeTitles = map[keymap.Where]string{
	keymap.Everywhere: "Everywhere", keymap.InLists: "In lists, matrices and charts", keymap.InPatch: "Patch field", keymap.InLinks: "Links",
	keymap.InTimeline: "Timeline", keymap.InExperiment: "Experiment", keymap.InDevices: "Devices", keymap.InLog: "Log",
	keymap.InPreview: "Where something waits to be confirmed: a change, a panic, a run, quitting",
}

// helpRows are the lines of the help.
func (m *model) helpRows() []row {
	var rows []row
	for _, l := range m.opt.Intro {
		rows = append(rows, line(seg{l, canvas.S(canvas.Text)}))
	}
	if len(m.opt.Intro) > 0 {
		rows = append(rows, row{})
	}
	places := slices.Clone(m.screen().Where())
	for _, w := range []keymap.Where{keymap.InLists, keymap.Everywhere, keymap.InPreview, keymap.InPatch, keymap.InLinks, keymap.InTimeline,
		keymap.InExperiment, keymap.InDevices, keymap.InLog} {
		if !slices.Contains(places, w) {
			places = append(places, w)
		}
	}
	for _, w := range places {
		rows = append(rows, m.helpOf(w)...)
	}
	rows = append(rows, line(seg{"Commands", canvas.S(canvas.Title)}, seg{"  after :", canvas.S(canvas.Dim)}))
	for _, c := range commands {
		rows = append(rows, row{indent: 16, segs: []seg{{"  " + pad(c.name, 14), canvas.S(canvas.Accent)}, {pad(c.usage, 24), canvas.S(canvas.Text)}, {c.about, canvas.S(canvas.Dim)}}})
	}
	return rows
}

// helpOf are the lines of one place, none if it has no keys.
func (m *model) helpOf(w keymap.Where) []row {
	var rows []row
	for _, b := range keymap.Bindings() {
		if !b.In(w) {
			continue
		}
		var names []string
		for _, k := range b.Keys {
			names = append(names, keymap.Name(k))
		}
		keys := strings.Join(names, " ")
		if keys == "" {
			keys = ":" + string(b.Action)
		}
		style := canvas.S(canvas.Text)
		help := b.Help
		if m.isReadOnly() && b.Mutates {
			style, help = canvas.S(canvas.Stale), help+" (not while read-only)"
		}
		segs := []seg{{"  " + pad(keys, 14), canvas.S(canvas.Accent)}, {help + strings.Repeat(" ", max(0, 46-canvas.Width(help))), style}}
		if b.CLI != "" {
			segs = append(segs, seg{"  $ " + b.CLI, canvas.S(canvas.Dim)})
		}
		rows = append(rows, row{segs: segs, indent: 16})
	}
	if len(rows) == 0 {
		return nil
	}
	title := line(seg{or(placeTitles[w], string(w)), canvas.S(canvas.Title)})
	return append(append([]row{title}, rows...), row{})
}
