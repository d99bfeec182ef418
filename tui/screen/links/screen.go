// Package links is the screen of the NICs: carrier, firmware, light and traffic of each,
// and, beside or below, all that is known of the one under the cursor.
package links

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// Screen is the screen. It is used by one goroutine.
type Screen struct {
	w, h int

	cursor   string // the NIC; "" is the first
	at       int    // its row when it was last there, for when it is not any more
	top      int
	selected map[string]bool
	anchor   string // where a selection with shift begins
	sorted   int    // a column, -1: as in the lab file
	reverse  bool
	open     bool // the details are shown where there is no room for them beside the table
}

var _ screen.Screen = (*Screen)(nil)

// New returns the screen.
func New() *Screen { return &Screen{selected: map[string]bool{}, sorted: -1} }

// Name is the action that shows the screen.
func (s *Screen) Name() keymap.Action { return keymap.Screen2 }

// Where are the places whose keys mean something here.
func (s *Screen) Where() []keymap.Where { return []keymap.Where{keymap.InLinks, keymap.InLists} }

// Resize tells how much there is to draw in.
func (s *Screen) Resize(w, h int) { s.w, s.h = w, h }

// zoneRow, zoneColumn and zoneLacks are what is clicked at.
type (
	zoneRow    string // a NIC
	zoneColumn int
	zoneLacks  struct{}
)

// parts are the places of the screen; those without room have no cells.
type parts struct{ table, detail, lacks canvas.Area }

// beside is from how many columns on the details are always there.
const beside = 150

// arrange divides the screen.
func (s *Screen) arrange(a canvas.Area, e screen.Env) parts {
	var p parts
	p.table = a
	if len(e.State.Lacks) > 0 && a.H >= 4 {
		p.table, p.lacks = p.table.Bottom(1)
	}
	switch {
	case a.W >= beside:
		p.table, p.detail = p.table.Right(min(72, a.W*2/5))
	case s.open && p.table.H >= 22:
		p.table, p.detail = p.table.Top(min(8, len(e.State.NICs)+2))
	case s.open:
		p.detail, p.table = p.table, canvas.Area{}
	}
	return p
}

// rows are the NICs that are shown, in order.
func (s *Screen) rows(e screen.Env) []*live.NIC {
	list := make([]*live.NIC, 0, len(e.State.NICs))
	for _, n := range e.State.NICs {
		if e.Filter.Empty() || e.Filter.Match(words(n, e)...) {
			list = append(list, n)
		}
	}
	if s.sorted >= 0 && s.sorted < len(columns) {
		less := columns[s.sorted].compare
		slices.SortStableFunc(list, func(a, b *live.NIC) int {
			c := less(a, b)
			if s.reverse {
				c = -c
			}
			return c
		})
	}
	return list
}

// words are what a filter looks at.
func words(n *live.NIC, e screen.Env) []string {
	list := []string{n.Name, string(n.Carrier), n.State, n.Hears, n.HeardBy, n.Firmware, n.Tx.String(), n.Rx.String(), remark(n, e)}
	if n.Traffic != "" {
		list = append(list, "traffic "+n.Traffic)
	}
	if !n.RxAt.IsZero() && dark(n.RxPower) {
		list = append(list, "dark")
	}
	return list
}

// place is the row of the cursor, -1 if there are no rows.
func (s *Screen) place(rows []*live.NIC) int {
	for i, n := range rows {
		if n.Name == s.cursor {
			return i
		}
	}
	if s.cursor == "" {
		return min(0, len(rows)-1)
	}
	return min(s.at, len(rows)-1)
}

// put moves the cursor to a row, or to the nearest there is.
func (s *Screen) put(rows []*live.NIC, at int, e screen.Env) {
	if len(rows) == 0 {
		return
	}
	s.at = max(0, min(at, len(rows)-1))
	s.cursor = rows[s.at].Name
	h := s.arrange(canvas.Area{W: s.w, H: s.h}, e).table.H
	s.top = widget.Scroll(s.top, s.at, len(rows), h)
}

// current is the NIC under the cursor, nil if there is none.
func (s *Screen) current(e screen.Env) *live.NIC {
	rows := s.rows(e)
	if at := s.place(rows); at >= 0 {
		return rows[at]
	}
	return nil
}

// chosen are the NICs that are selected, those that are not shown too, in the order of the
// lab file.
func (s *Screen) chosen(e screen.Env) []*live.NIC {
	var list []*live.NIC
	for _, n := range e.State.NICs {
		if s.selected[n.Name] {
			list = append(list, n)
		}
	}
	return list
}

// meant are the NICs that are selected, or that under the cursor.
func (s *Screen) meant(e screen.Env) []*live.NIC {
	list := s.chosen(e)
	if n := s.current(e); len(list) == 0 && n != nil {
		list = append(list, n)
	}
	return list
}

// Do carries out an action.
func (s *Screen) Do(act keymap.Action, e screen.Env) []screen.Request {
	rows := s.rows(e)
	at := s.place(rows)
	page := max(1, widget.Rows(s.arrange(canvas.Area{W: s.w, H: s.h}, e).table.H)-1)
	switch act {
	case keymap.Up:
		s.put(rows, at-1, e)
	case keymap.Down:
		s.put(rows, at+1, e)
	case keymap.PageUp:
		s.put(rows, at-page, e)
	case keymap.PageDown:
		s.put(rows, at+page, e)
	case keymap.Home:
		s.put(rows, 0, e)
	case keymap.End:
		s.put(rows, len(rows)-1, e)
	case keymap.Select:
		if at >= 0 {
			s.toggle(rows[at].Name)
			s.put(rows, at+1, e)
		}
	case keymap.SelectAll:
		s.selectAll(rows)
	case keymap.Sort:
		s.sorted, s.reverse = next(s.sorted), false
	case keymap.Reverse:
		s.reverse = !s.reverse
	case keymap.Enter:
		s.open = !s.open
		s.put(rows, at, e)
	case keymap.Open:
		if at >= 0 {
			return s.patch(rows[at], e)
		}
	case keymap.Link:
		return s.link(e)
	case keymap.Unlink:
		if list := names(s.meant(e)); len(list) > 0 {
			return []screen.Request{screen.Propose{Wish: live.Wish{Verb: live.Unlink, NICs: list}}}
		}
		return say("no NIC to unlink: none is under the cursor or selected")
	case keymap.All:
		return lacking(e)
	case keymap.Save:
		return s.save(rows, e)
	}
	return nil
}

// patch shows the patch field, at the port that the NIC's light comes from.
func (s *Screen) patch(n *live.NIC, e screen.Env) []screen.Request {
	if e.State.Switch(n.Rx.Switch) == nil {
		return say(n.Name + " is on no switch of this lab")
	}
	return []screen.Request{screen.Goto{Screen: keymap.Screen1, Subject: n.Rx.String()}}
}

// link wishes for a link of the two NICs that are selected, or of one that is and that
// under the cursor.
func (s *Screen) link(e screen.Env) []screen.Request {
	list := names(s.chosen(e))
	if n := s.current(e); len(list) == 1 && n != nil && n.Name != list[0] {
		list = append(list, n.Name)
	}
	if len(list) != 2 {
		return say(fmt.Sprintf("a link has two NICs: select them with space; %d selected now", len(s.chosen(e))))
	}
	return []screen.Request{screen.Propose{Wish: live.Wish{Verb: live.Link, NICs: list}}}
}

// lacking shows what is not watched, and why.
func lacking(e screen.Env) []screen.Request {
	var lines []string
	for _, l := range e.State.Lacks {
		lines = append(lines, l.Reason, "    "+strings.Join(l.Subjects, ", "), "")
	}
	for _, n := range e.State.NICs {
		if !n.Watched {
			lines = append(lines, n.Name+": not watched: "+orUnknown(n.Why))
		}
	}
	if len(lines) == 0 {
		return say("everything is watched")
	}
	return []screen.Request{screen.Show{Title: "what is not watched", Lines: lines}}
}

func orUnknown(why string) string {
	if why == "" {
		return "nobody knows why"
	}
	return why
}

func say(text string) []screen.Request { return []screen.Request{screen.Say{Text: text}} }

func names(list []*live.NIC) []string {
	var out []string
	for _, n := range list {
		out = append(out, n.Name)
	}
	return out
}

// toggle selects a NIC, or not.
func (s *Screen) toggle(name string) {
	if s.anchor = name; s.selected[name] {
		delete(s.selected, name)
		return
	}
	s.selected[name] = true
}

// selectAll selects all that is shown, or, when all of it is selected, none of it.
func (s *Screen) selectAll(rows []*live.NIC) {
	all := true
	for _, n := range rows {
		all = all && s.selected[n.Name]
	}
	for _, n := range rows {
		if all {
			delete(s.selected, n.Name)
		} else {
			s.selected[n.Name] = true
		}
	}
}

// Mouse carries out a click or a turn of the wheel.
func (s *Screen) Mouse(m screen.Mouse, e screen.Env) []screen.Request {
	rows := s.rows(e)
	if m.Wheel != 0 {
		s.put(rows, s.place(rows)+m.Wheel, e)
		return nil
	}
	switch id := m.ID.(type) {
	case zoneLacks:
		return lacking(e)
	case zoneColumn:
		if s.sorted == int(id) {
			s.reverse = !s.reverse
		} else {
			s.sorted, s.reverse = int(id), false
		}
	case zoneRow:
		at := slices.IndexFunc(rows, func(n *live.NIC) bool { return n.Name == string(id) })
		if at < 0 {
			return nil
		}
		from := s.place(rows)
		if i := slices.IndexFunc(rows, func(n *live.NIC) bool { return n.Name == s.anchor }); i >= 0 {
			from = i
		}
		s.put(rows, at, e)
		switch {
		case m.Shift && from >= 0:
			for i := min(from, at); i <= max(from, at); i++ {
				s.selected[rows[i].Name] = true
			}
		case m.Double:
			s.open = true
		}
		if !m.Shift {
			s.anchor = string(id)
		}
	}
	return nil
}

// Focus moves the cursor to a NIC, or to the NIC that hangs on a port.
func (s *Screen) Focus(subject string, e screen.Env) {
	rows := s.rows(e)
	for i, n := range rows {
		if n.Name == subject || n.Rx.String() == subject || n.Tx.String() == subject {
			s.put(rows, i, e)
			return
		}
	}
}

// Subject is the NIC under the cursor.
func (s *Screen) Subject(e screen.Env) string {
	if n := s.current(e); n != nil {
		return n.Name
	}
	return ""
}

// Status says how many NICs there are, how many of them are up, and what is selected.
func (s *Screen) Status(e screen.Env) string {
	rows := s.rows(e)
	up := 0
	for _, n := range e.State.NICs {
		if n.Carrier == live.CarrierUp {
			up++
		}
	}
	text := fmt.Sprintf("%d of %s up", up, natural.Count(len(e.State.NICs), "NIC"))
	if len(rows) != len(e.State.NICs) {
		text = fmt.Sprintf("%d shown, ", len(rows)) + text
	}
	if n := len(s.chosen(e)); n > 0 {
		text += fmt.Sprintf(", %d selected", n)
	}
	if s.sorted >= 0 {
		text += ", by " + columns[s.sorted].Name
	}
	return text
}

// Applied takes the NICs that a change named out of the selection.
func (s *Screen) Applied(p live.Preview) {
	for _, name := range p.Wish.NICs {
		delete(s.selected, name)
	}
	if len(s.selected) == 0 {
		s.anchor = ""
	}
}

// Deselect closes the details, or, when they are not open, clears the selection.
func (s *Screen) Deselect() bool {
	if s.open && s.w < beside {
		s.open = false
		return true
	}
	had := len(s.selected) > 0
	clear(s.selected)
	s.anchor = ""
	return had
}
