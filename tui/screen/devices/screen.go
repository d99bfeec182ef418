// Package devices is the screen of the switches themselves: how they are reached, what they
// say of themselves, what they have reported, and, of transceivers, their heaters, taps and
// calibration.
package devices

import (
	"math"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// Screen is the screen. It is used by one goroutine.
type Screen struct {
	w, h int

	cursor string // the switch; "" is the first
	at     int    // its row when it was last there, for when it is not any more
	top    int    // first row of the list
	open   bool   // the details are shown where there is no room for them beside the list
	module int    // of the switch, from 0
	scroll int    // first line of the details
}

var _ screen.Screen = (*Screen)(nil)

// New returns the screen.
func New() *Screen { return &Screen{} }

// zoneSwitch is a switch by its name, zoneModule a module of it, zoneDetail its details.
type (
	zoneSwitch string
	zoneModule int
	zoneDetail struct{}
)

// Name is the action that shows the screen.
func (s *Screen) Name() keymap.Action { return keymap.Screen5 }

// Where are the places whose keys mean something here.
func (s *Screen) Where() []keymap.Where { return []keymap.Where{keymap.InDevices, keymap.InLists} }

// Resize tells how much there is to draw in.
func (s *Screen) Resize(w, h int) { s.w, s.h = w, h }

// beside is from how many columns on the details are beside the list.
const beside = 100

// leastList is how wide the list is there at least, so that its reasons for having no rows can
// be read.
const leastList = 30

// listWidth is how wide the list is there: as wide as it has a use for, within bounds.
func (s *Screen) listWidth(w, h int, e screen.Env) int {
	rows := s.rows(e)
	most := min(56, w*2/5)
	if len(rows) == 0 {
		return most
	}
	return max(leastList, s.table(rows, s.place(rows), h, e).Need(most, h)+1)
}

// parts are the places of the screen; those without room have no cells.
func (s *Screen) parts(a canvas.Area, e screen.Env) (list, detail canvas.Area) {
	switch {
	case a.W >= beside:
		return a.Left(s.listWidth(a.W, a.H, e))
	case s.open:
		return canvas.Area{}, a
	}
	return a, canvas.Area{}
}

// detailSize is how much there is for the details now.
func (s *Screen) detailSize(e screen.Env) (w, h int) {
	_, d := s.parts(canvas.Area{W: s.w, H: s.h}, e)
	return inside(d.W), max(0, d.H-2)
}

// inside is the width within a border and a blank.
func inside(w int) int { return max(0, w-4) }

// rows are the switches that are shown.
func (s *Screen) rows(e screen.Env) []*live.Switch {
	if e.Filter.Empty() {
		return e.State.Switches
	}
	var list []*live.Switch
	for _, x := range e.State.Switches {
		if e.Filter.Match(words(x)...) {
			list = append(list, x)
		}
	}
	return list
}

// words are what a filter looks at.
func words(x *live.Switch) []string {
	list := []string{x.Name, string(x.Status), x.URL, x.Identity.Vendor, x.Identity.Model, x.Identity.Serial, x.Identity.Firmware, remark(x)}
	for _, a := range x.Alarms {
		list = append(list, a.Severity+" "+a.Text)
	}
	if len(x.Drift) > 0 {
		list = append(list, "drift")
	}
	return list
}

// place is the row of the cursor, -1 if there are no rows.
func (s *Screen) place(rows []*live.Switch) int {
	for i, x := range rows {
		if x.Name == s.cursor {
			return i
		}
	}
	if s.cursor == "" {
		return min(0, len(rows)-1)
	}
	return min(s.at, len(rows)-1)
}

// put moves the cursor to a row, or to the nearest there is.
func (s *Screen) put(at int, rows []*live.Switch) {
	if len(rows) == 0 {
		return
	}
	at = max(0, min(at, len(rows)-1))
	if rows[at].Name != s.cursor {
		s.module, s.scroll = 0, 0
	}
	s.at, s.cursor = at, rows[at].Name
	s.top = widget.Scroll(s.top, at, len(rows), s.h)
}

// current is the switch under the cursor, nil if there is none.
func (s *Screen) current(e screen.Env) *live.Switch {
	rows := s.rows(e)
	if at := s.place(rows); at >= 0 {
		return rows[at]
	}
	return nil
}

// narrow reports whether only the details are shown, or only the list.
func (s *Screen) narrow() bool { return s.w < beside }

// Do carries out an action.
func (s *Screen) Do(act keymap.Action, e screen.Env) []screen.Request {
	rows := s.rows(e)
	at := s.place(rows)
	if at < 0 {
		return nil
	}
	x := rows[at]
	details := s.narrow() && s.open
	_, page := s.detailSize(e)
	step := max(1, page-1)
	switch act {
	case keymap.NextSwitch:
		s.put((at+1)%len(rows), rows)
	case keymap.PrevSwitch:
		s.put((at+len(rows)-1)%len(rows), rows)
	case keymap.Up, keymap.Down:
		by := 1
		if act == keymap.Up {
			by = -1
		}
		if details {
			s.scrollBy(by, x, e)
		} else {
			s.put(at+by, rows)
		}
	case keymap.PageUp:
		s.page(-step, x, rows, e)
	case keymap.PageDown:
		s.page(step, x, rows, e)
	case keymap.Home, keymap.End:
		to := math.MaxInt32
		if act == keymap.Home {
			to = 0
		}
		if details {
			s.scrollBy(to-s.scroll, x, e)
		} else {
			s.put(to, rows)
		}
	case keymap.Left, keymap.Right:
		by := 1
		if act == keymap.Left {
			by = -1
		}
		s.module = max(0, min(s.module+by, len(x.Modules)-1))
	case keymap.Enter:
		if s.narrow() && !s.open {
			s.open, s.scroll = true, 0
			s.put(at, rows)
			return nil
		}
		if x.Status == live.Lost && x.Err != nil {
			return why(x)
		}
		return patch(x)
	case keymap.Open:
		return patch(x)
	}
	return nil
}

// patch is the way to the patch field of a switch.
func patch(x *live.Switch) []screen.Request {
	return []screen.Request{screen.Goto{Screen: keymap.Screen1, Subject: x.Name}}
}

// why shows in full for what reason a switch is not reached.
func why(x *live.Switch) []screen.Request {
	return []screen.Request{screen.Show{Title: x.Name + " is " + string(x.Status), Lines: []string{x.Err.Error(), "", "address  " + x.URL, "o shows its patch field, 6 the log."}}}
}

// page moves by a page: in the details where they are shown, else in the list.
func (s *Screen) page(by int, x *live.Switch, rows []*live.Switch, e screen.Env) {
	if s.narrow() && !s.open {
		s.put(s.place(rows)+by, rows)
		return
	}
	s.scrollBy(by, x, e)
}

// scrollBy moves the details by some lines.
func (s *Screen) scrollBy(by int, x *live.Switch, e screen.Env) {
	w, h := s.detailSize(e)
	n := len(details(x, s.pick(x), w, e))
	s.scroll = max(0, min(s.scroll+by, n-h))
}

// pick is the module of a switch that is looked at.
func (s *Screen) pick(x *live.Switch) int { return max(0, min(s.module, len(x.Modules)-1)) }

// Mouse is a click at a switch or a module, or a turn of the wheel over list or details.
func (s *Screen) Mouse(m screen.Mouse, e screen.Env) []screen.Request {
	rows := s.rows(e)
	at := s.place(rows)
	if at < 0 {
		return nil
	}
	switch id := m.ID.(type) {
	case zoneSwitch:
		if m.Wheel != 0 {
			s.put(at+m.Wheel, rows)
			return nil
		}
		for i, x := range rows {
			if x.Name == string(id) {
				s.put(i, rows)
				if m.Double {
					return s.Do(keymap.Enter, e)
				}
			}
		}
	case zoneModule:
		if m.Wheel != 0 {
			s.scrollBy(m.Wheel, rows[at], e)
			return nil
		}
		s.module = max(0, min(int(id), len(rows[at].Modules)-1))
	case zoneDetail:
		s.scrollBy(m.Wheel, rows[at], e)
	}
	return nil
}

// Focus moves the cursor to a switch, or to that of a port.
func (s *Screen) Focus(subject string, e screen.Env) {
	name, _, _ := strings.Cut(subject, "/")
	rows := s.rows(e)
	for i, x := range rows {
		if x.Name == name {
			s.put(i, rows)
		}
	}
}

// Subject is the switch under the cursor.
func (s *Screen) Subject(e screen.Env) string {
	if x := s.current(e); x != nil {
		return x.Name
	}
	return ""
}

// copyWidth is how wide the text is that is copied.
const copyWidth = 100

// Copy is the details of the switch under the cursor as text.
func (s *Screen) Copy(e screen.Env) string {
	x := s.current(e)
	if x == nil {
		return ""
	}
	lines := []string{x.Name + ": " + statusText(x, e)}
	for _, r := range details(x, s.pick(x), copyWidth, e) {
		lines = append(lines, r.String())
	}
	return strings.Join(lines, "\n")
}

// Status says which switch of how many it is, and how many are not up.
func (s *Screen) Status(e screen.Env) string {
	rows := s.rows(e)
	at := s.place(rows)
	if at < 0 {
		return "no switch"
	}
	down := 0
	for _, x := range e.State.Switches {
		if x.Status == live.Lost || x.Status == live.Opening {
			down++
		}
	}
	text := strconv.Itoa(at+1) + " of " + strconv.Itoa(len(rows))
	if down > 0 {
		text += ", " + strconv.Itoa(down) + " not reached"
	}
	if n := len(rows[at].Modules); n > 0 {
		text += ", module " + strconv.Itoa(s.pick(rows[at])+1) + " of " + strconv.Itoa(n)
	}
	return text
}

// Deselect closes the details where they are in the way of the list, and reports whether
// they were.
func (s *Screen) Deselect() bool {
	had := s.open && s.narrow()
	s.open = false
	return had
}
