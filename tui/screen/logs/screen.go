// Package logs is the screen of all that was sent to switches, received from them, done here,
// and has happened.
package logs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/decode"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// Screen is the screen of the log. It is used by one goroutine.
//
// The newest line is at the bottom, and stays there until somebody goes up. From then on the
// line under the cursor stays where it is, whatever comes.
type Screen struct {
	w, h int
	all  bool // routine lines, too

	following bool
	cursor    uint64 // number of the line under the cursor, while not following
	bottom    uint64 // number of the lowest line shown, while not following
	anchor    uint64 // the other end of the selection; 0 is none

	list list
}

var _ screen.Screen = (*Screen)(nil)

// New returns the screen, which follows the log.
func New() *Screen { return &Screen{following: true} }

// zoneLine is a line of the log, by its number; zoneBelow says how many are below.
type (
	zoneLine  uint64
	zoneBelow struct{}
)

// Name is the action that shows the screen.
func (s *Screen) Name() keymap.Action { return keymap.Screen6 }

// Where are the places whose keys mean something here.
func (s *Screen) Where() []keymap.Where { return []keymap.Where{keymap.InLog, keymap.InLists} }

// Resize tells how much there is to draw in.
func (s *Screen) Resize(w, h int) { s.w, s.h = w, h }

// view is what of a log is shown: lines [top, end) of list, with the cursor on line cursor, -1
// when there are none.
type view struct {
	list             []*live.Entry
	top, end, cursor int
	below            int // lines that are not shown, as they are newer
}

// rows is how many lines of log there are in h lines of screen.
func rows(h int) int { return max(0, h-1) }

// look returns what is shown in h lines.
func (s *Screen) look(e screen.Env, h int) view {
	s.list.of(e.State.Log, e.Filter, s.all)
	v := view{list: s.list.shown, cursor: -1}
	n := len(v.list)
	if n == 0 {
		return v
	}
	page := rows(h)
	if s.following {
		v.end, v.cursor = n, n-1
	} else {
		page = max(0, page-1) // one line says what is below
		v.cursor = min(place(v.list, s.cursor), n-1)
		v.end = min(place(v.list, s.bottom)+1, n)
		v.end = max(v.end, v.cursor+1, min(page, n))
		if v.cursor < v.end-page {
			v.end = v.cursor + page
		}
	}
	v.top = max(0, v.end-page)
	v.below = n - v.end
	return v
}

// put moves the cursor to a line of the list. At the last one the screen follows the log
// again, when that is wished.
func (s *Screen) put(at int, follow bool, e screen.Env) {
	v := s.look(e, s.h)
	n := len(v.list)
	if n == 0 {
		s.following = true
		return
	}
	if at >= n-1 && follow {
		s.following = true
		return
	}
	at = max(0, min(at, n-1))
	page := max(1, rows(s.h)-1)
	end := v.end
	if s.following {
		end = n
	}
	if at >= end {
		end = at + 1
	}
	if at < end-page {
		end = at + page
	}
	s.following = false
	s.cursor = v.list[at].N
	s.bottom = v.list[max(0, min(end, n)-1)].N
}

// current is the line under the cursor, nil if there is none.
func (s *Screen) current(e screen.Env) *live.Entry {
	v := s.look(e, s.h)
	if v.cursor < 0 {
		return nil
	}
	return v.list[v.cursor]
}

// selected are the indexes [from, to) of the lines that are selected; both are 0 for none.
func (s *Screen) selected(v view) (from, to int) {
	if s.anchor == 0 || v.cursor < 0 {
		return 0, 0
	}
	at := min(place(v.list, s.anchor), len(v.list)-1)
	return min(at, v.cursor), max(at, v.cursor) + 1
}

// Do carries out an action.
func (s *Screen) Do(act keymap.Action, e screen.Env) []screen.Request {
	v := s.look(e, s.h)
	page := max(1, rows(s.h)-2)
	switch act {
	case keymap.Up:
		s.put(v.cursor-1, false, e)
	case keymap.Down:
		s.put(v.cursor+1, true, e)
	case keymap.PageUp:
		s.put(v.cursor-page, false, e)
	case keymap.PageDown:
		s.put(v.cursor+page, true, e)
	case keymap.Home:
		s.put(0, false, e)
	case keymap.End:
		s.following = true
	case keymap.All:
		s.all = !s.all
	case keymap.Select:
		if s.anchor != 0 {
			s.anchor = 0
		} else if x := s.current(e); x != nil {
			s.put(v.cursor, false, e) // so that what is selected is what was meant
			s.anchor = x.N
		}
	case keymap.Enter:
		if x := s.current(e); x != nil {
			return []screen.Request{show(x, e)}
		}
	case keymap.Save:
		return s.save(v, e)
	}
	return nil
}

// Mouse is a click at a line, which puts the cursor there, or a turn of the wheel.
func (s *Screen) Mouse(m screen.Mouse, e screen.Env) []screen.Request {
	v := s.look(e, s.h)
	if m.Wheel != 0 {
		s.scroll(v, m.Wheel, e)
		return nil
	}
	switch id := m.ID.(type) {
	case zoneBelow:
		s.following = true
	case zoneLine:
		at := place(v.list, uint64(id))
		if at == len(v.list) || v.list[at].N != uint64(id) {
			return nil
		}
		if m.Shift && s.anchor == 0 && v.cursor >= 0 {
			s.anchor = v.list[v.cursor].N
		} else if !m.Shift {
			s.anchor = 0
		}
		s.put(at, false, e)
		if m.Double {
			return s.Do(keymap.Enter, e)
		}
	}
	return nil
}

// scroll moves what is shown by some lines, and the cursor only as far as it must.
func (s *Screen) scroll(v view, lines int, e screen.Env) {
	n := len(v.list)
	if n == 0 || lines > 0 && s.following {
		return
	}
	page := max(1, rows(s.h)-1)
	end := min(max(v.end+lines, min(page, n)), n)
	if end == n && lines > 0 {
		s.following = true
		return
	}
	s.following = false
	s.cursor = v.list[min(max(v.cursor, end-page, 0), end-1)].N
	s.bottom = v.list[end-1].N
}

// Focus puts the cursor on the newest line of a switch.
func (s *Screen) Focus(subject string, e screen.Env) {
	v := s.look(e, s.h)
	for i := len(v.list) - 1; i >= 0; i-- {
		if name := v.list[i].Switch; name != "" && (name == subject || strings.HasPrefix(subject, name+"/")) {
			s.put(i, true, e)
			return
		}
	}
}

// Subject is the switch that the line under the cursor is about.
func (s *Screen) Subject(e screen.Env) string {
	if x := s.current(e); x != nil {
		return x.Switch
	}
	return ""
}

// Copy is the command of what was done here, or the message as it was sent or received, of
// each line that is selected or of that under the cursor.
func (s *Screen) Copy(e screen.Env) string {
	v := s.look(e, s.h)
	from, to := s.selected(v)
	if to == 0 {
		if v.cursor < 0 {
			return ""
		}
		return copied(v.list[v.cursor])
	}
	var all []string
	for _, x := range v.list[from:to] {
		all = append(all, copied(x))
	}
	return strings.Join(all, "\n")
}

func copied(x *live.Entry) string {
	switch {
	case x.Kind == live.Did && x.CLI != "":
		return x.CLI
	case x.Raw != "":
		return strings.Trim(x.Raw, "\r\n")
	}
	return x.Text
}

// Status says where in the log one is, and what is hidden.
func (s *Screen) Status(e screen.Env) string {
	v := s.look(e, s.h)
	text := natural.Count(len(v.list), "line")
	switch {
	case v.cursor < 0:
	case s.following:
		text += ", follows"
	case v.below > 0:
		text = fmt.Sprintf("%d of %s, %d below", v.cursor+1, text, v.below)
	default:
		text = fmt.Sprintf("%d of %s", v.cursor+1, text)
	}
	if from, to := s.selected(v); to > 0 {
		text += fmt.Sprintf(", %d selected", to-from)
	}
	if n := len(s.list.quiet); n > 0 {
		text += fmt.Sprintf(", %d routine hidden (a)", n)
	}
	return text
}

// Deselect clears the selection, and reports whether there was any.
func (s *Screen) Deselect() bool {
	had := s.anchor != 0
	s.anchor = 0
	return had
}

// arrow and word say which way a line went, or what it is.
func direction(x *live.Entry) (arrow, word string, role canvas.Role) {
	switch x.Kind {
	case live.Sent:
		arrow, word, role = "→", "sent", canvas.Text
	case live.Received:
		arrow, word, role = "←", "received", canvas.Text
	case live.Did:
		arrow, word, role = "▶", "did", canvas.Accent
	default:
		arrow, word, role = "!", "event", canvas.Warn
	}
	if x.Bad {
		role = canvas.Bad
	}
	return arrow, word, role
}

// save is the request to save what is shown, all of it.
func (s *Screen) save(v view, e screen.Env) []screen.Request {
	if len(v.list) == 0 {
		return []screen.Request{screen.Say{Text: "there is nothing to save: no line of the log is shown", Bad: true}}
	}
	var b strings.Builder
	for _, x := range v.list {
		_, word, _ := direction(x)
		fmt.Fprintf(&b, "%s\t%s\t%s\t", x.At.Format("2006-01-02T15:04:05.000000Z07:00"), orDash(x.Switch), word)
		switch {
		case x.Raw != "":
			b.WriteString(strconv.Quote(x.Raw))
		case x.CLI != "":
			b.WriteString(strconv.Quote(x.Text) + "\t$ " + decode.Visible(x.CLI))
		default:
			b.WriteString(strconv.Quote(x.Text))
		}
		b.WriteByte('\n')
	}
	name := "ocslab-log-" + e.Now.Format("20060102-150405") + ".txt"
	return []screen.Request{screen.SaveAs{Name: name, Content: []byte(b.String())}}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// show is the request to show all of a line.
func show(x *live.Entry, e screen.Env) screen.Show {
	arrow, word, _ := direction(x)
	what := word
	if x.Routine {
		what += ", routine"
	}
	if x.Bad {
		what += ", bad"
	}
	lines := []string{
		"time       " + x.At.Format("2006-01-02 15:04:05.000000") + ", " + widget.Age(e.Now.Sub(x.At)) + " ago",
		"switch     " + orDash(x.Switch),
		"direction  " + arrow + " " + what,
		"means      " + decode.Visible(x.Text),
	}
	if x.CLI != "" {
		lines = append(lines, "command    $ "+decode.Visible(x.CLI))
	}
	if x.Raw != "" {
		lines = append(lines, "", natural.Count(len(x.Raw), "byte")+":")
		lines = append(lines, decode.Pretty(x.Raw)...)
	}
	return screen.Show{Title: "line " + strconv.FormatUint(x.N, 10) + " of the log", Lines: lines}
}
