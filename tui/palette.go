package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// item is one of what can be picked.
type item struct {
	text  string
	about string
	kind  string // "key", "NIC"
	lower string // what is searched
	do    func(m *model) tea.Cmd
}

// picker is a window with a line to type in and a list to pick from, best match first.
type picker struct {
	title  string
	edit   editor
	items  []item
	shown  []int // of items
	cursor int   // in shown
	top    int
	rows   int // that fit, when it was drawn last
	pick   func(m *model, it item) tea.Cmd
}

func newPicker(title string, items []item) *picker {
	for i := range items {
		items[i].lower = strings.ToLower(items[i].text + " " + items[i].about)
	}
	p := &picker{title: title, edit: newEditor(), items: items}
	p.search()
	return p
}

func (p *picker) text() bool { return true }

func (p *picker) close(m *model) { m.drop(p) }

// search finds what has been typed: every word, somewhere. Without words all is there, in
// its order.
func (p *picker) search() {
	type hit struct{ i, score int }
	var hits []hit
	words := strings.Fields(strings.ToLower(p.edit.String()))
	for i := range p.items {
		total, ok := 0, true
		for _, w := range words {
			s, found := filter.Score(p.items[i].lower, w)
			if total += s; !found {
				ok = false
				break
			}
		}
		if ok {
			hits = append(hits, hit{i, total})
		}
	}
	if len(words) > 0 {
		slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	}
	p.shown = p.shown[:0]
	for _, h := range hits {
		p.shown = append(p.shown, h.i)
	}
	p.cursor, p.top = 0, 0
}

func (p *picker) key(m *model, k tea.KeyMsg) tea.Cmd {
	switch k.String() {
	case "esc", "ctrl+c":
		p.close(m)
		return nil
	case "enter":
		return p.take(m, p.cursor)
	case "up", "ctrl+p", "shift+tab":
		p.move(-1)
	case "down", "ctrl+n", "tab":
		p.move(1)
	case "pgup":
		p.move(-max(1, p.rows))
	case "pgdown":
		p.move(max(1, p.rows))
	default:
		if p.edit.key(k) {
			p.search()
		}
	}
	return nil
}

func (p *picker) move(n int) { p.cursor = max(0, min(p.cursor+n, len(p.shown)-1)) }

// take picks a line, which closes the window.
func (p *picker) take(m *model, i int) tea.Cmd {
	if i < 0 || i >= len(p.shown) {
		return nil
	}
	m.drop(p)
	it := p.items[p.shown[i]]
	if p.pick != nil {
		return p.pick(m, it)
	}
	return it.do(m)
}

// mouse moves the cursor; a click on the line that has it takes that line.
func (p *picker) mouse(m *model, e screen.Mouse) tea.Cmd {
	if e.Wheel != 0 {
		p.move(e.Wheel)
		return nil
	}
	z, ok := e.ID.(pickZone)
	if !ok {
		return nil
	}
	if z.i == p.cursor {
		return p.take(m, z.i)
	}
	p.cursor = max(0, min(z.i, len(p.shown)-1))
	return nil
}

func (p *picker) draw(m *model, a canvas.Area) {
	w := min(a.W-4, 100)
	h := min(len(p.items)+6, a.H, 30)
	in := popup(a, w, h, p.title, canvas.S(canvas.Accent))
	head, list := in.Top(1)
	wide, kinds := p.widths(in.W)
	hint := p.hint(in.W, wide, kinds)
	list, foot := list.Bottom(len(hint))
	x := head.Text(1, 0, "> ", canvas.S(canvas.Accent))
	p.edit.draw(head.Sub(x, 0, head.W-x-1, 1))
	p.rows = list.H
	if p.cursor < p.top {
		p.top = p.cursor
	}
	if p.cursor >= p.top+list.H {
		p.top = p.cursor - list.H + 1
	}
	p.top = max(0, min(p.top, len(p.shown)-list.H))
	for y := 0; y < list.H && p.top+y < len(p.shown); y++ {
		it := p.items[p.shown[p.top+y]]
		l := list.Sub(0, y, list.W, 1)
		if p.top+y == p.cursor {
			l.Set(0, 0, '▸', canvas.S(canvas.Accent))
		}
		l.Fit(2, 0, wide, it.text, canvas.S(canvas.Text))
		l.Fit(wide+4, 0, roomAbout(list.W, wide, kinds), it.about, canvas.S(canvas.Dim))
		l.Fit(list.W-1-kinds, 0, kinds, it.kind, canvas.S(canvas.Dim))
		if p.top+y == p.cursor {
			l.Add(canvas.Cursor)
		}
		l.Zone(pickZone{p.top + y})
	}
	if len(p.shown) == 0 {
		list.Text(2, 0, "nothing has all of these letters", canvas.S(canvas.Dim))
	}
	if len(p.shown) > list.H {
		widget.Scrollbar(list.Sub(list.W-1, 0, 1, list.H), p.top, list.H, len(p.shown))
	}
	for y, l := range hint {
		foot.Text(1, y, l, canvas.S(canvas.Dim))
	}
	foot.TextRight(foot.W-1, len(hint)-1, " "+count(p.cursor+1, 0, len(p.shown)), canvas.S(canvas.Dim))
}

// widths are the columns of names and of kinds in a window of w columns. Kinds are left out
// of a narrow one.
func (p *picker) widths(w int) (name, kind int) {
	for _, i := range p.shown {
		name, kind = max(name, canvas.Width(p.items[i].text)), max(kind, canvas.Width(p.items[i].kind))
	}
	if w <= 50 {
		kind = 0
	}
	return min(name, w*2/5), kind
}

// roomAbout is how many columns there are for what is said about an item.
func roomAbout(w, name, kind int) int {
	if kind > 0 {
		kind++
	}
	return w - name - kind - 6
}

// hint is what the foot says: the keys, and before them what there was no room for about
// the item that has the cursor.
func (p *picker) hint(w, name, kind int) []string {
	keys := "enter takes it, esc closes, type to search"
	if p.cursor >= len(p.shown) {
		return []string{keys}
	}
	it := p.items[p.shown[p.cursor]]
	if canvas.Width(it.about) <= roomAbout(w, name, kind) && canvas.Width(it.text) <= name {
		return []string{keys}
	}
	lines := canvas.Wrap(it.text+": "+it.about, w-2)
	return append(lines[:min(len(lines), 3)], keys)
}

// count is where one is: "3 of 12", "3-10 of 12".
func count(from, to, of int) string {
	switch {
	case of == 0:
		return "none"
	case to > from:
		return fmt.Sprintf("%d-%d of %d", from, to, of)
	}
	return fmt.Sprintf("%d of %d", from, of)
}

// palette offers whatever can be done, and gone to.
func (m *model) palette() { m.push(newPicker("do, or go to", m.everything())) }

// everything is what the palette has: actions and commands, then what the lab has.
func (m *model) everything() []item {
	var items []item
	seen := map[keymap.Action]bool{}
	for _, b := range keymap.Bindings() {
		if seen[b.Action] || !inPalette(b) {
			continue
		}
		seen[b.Action] = true
		it := item{text: string(b.Action), about: b.Help, kind: b.Key(), do: func(m *model) tea.Cmd { return m.doAnywhere(b.Action) }}
		if m.isReadOnly() && b.Mutates {
			it.about = "(read-only) " + it.about
		}
		items = append(items, it)
	}
	for _, c := range commands {
		if c.palette {
			items = append(items, item{text: c.name + " " + c.usage, about: c.about, kind: ":", do: func(m *model) tea.Cmd {
				m.askCommand(c.name + " ")
				return nil
			}})
		}
	}
	s := m.newest
	for _, sw := range s.Switches {
		items = append(items, going(sw.Name, strings.TrimSpace(string(sw.Status)+" "+sw.Identity.Model), "switch", keymap.Screen1))
		var labelled []ocs.Port
		for p := range sw.Labels {
			labelled = append(labelled, p)
		}
		slices.Sort(labelled)
		for _, p := range labelled {
			items = append(items, going(fmt.Sprintf("%s/%d", sw.Name, p), sw.Labels[p], "port", keymap.Screen1))
		}
	}
	for _, n := range s.NICs {
		items = append(items, going(n.Name, fmt.Sprintf("carrier %s, tx %s, rx %s", n.Carrier, n.Tx, n.Rx), "NIC", keymap.Screen2))
	}
	for _, name := range s.File.ConfigNames() {
		items = append(items, item{text: "configure " + name, about: m.configuration(name), kind: "config", do: func(m *model) tea.Cmd {
			return m.request(configure(name))
		}})
	}
	for _, mv := range s.Moves {
		items = append(items, going(fmt.Sprintf("move/%d", mv.Number), mv.Began.Format("15:04:05")+" "+mv.Title, "move", keymap.Screen3))
	}
	return items
}

// inPalette reports whether an action is one to be found by name: not a move of the
// cursor, and not what is for a dialog only.
func inPalette(b keymap.Binding) bool {
	if isMove(b.Action) || b.Action == keymap.Palette || b.Action == keymap.Enter || b.Action == keymap.Back {
		return false
	}
	return !(len(b.Where) == 1 && b.In(keymap.InPreview))
}

func going(subject, about, kind string, to keymap.Action) item {
	return item{text: subject, about: about, kind: kind, do: func(m *model) tea.Cmd {
		return m.request(screen.Goto{Screen: to, Subject: subject})
	}}
}

// switchNames are the names of all switches of the lab.
func switchNames(s *live.State) []string {
	var names []string
	for i := range s.File.Switches {
		names = append(names, s.File.Switches[i].Name)
	}
	slices.SortFunc(names, natural.Compare)
	return names
}

// nicNames are the full names of all NICs of the lab.
func nicNames(s *live.State) []string {
	var names []string
	for i := range s.File.Hosts {
		for j := range s.File.Hosts[i].NICs {
			names = append(names, s.File.Hosts[i].NICs[j].FullName())
		}
	}
	slices.SortFunc(names, natural.Compare)
	return names
}
