// Package moves is the screen of reconfigurations: when each layer came back after one, how
// surely that is known, what that usually is, and who is slow.
package moves

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// Screen is the screen. It is used by one goroutine.
type Screen struct {
	w, h int

	// The cursor is on the newest reconfiguration, also when a newer one begins, until it
	// is moved down; then it stays on that of the number.
	held   bool
	number int
	top    int // of the list

	inRows bool // the cursor is in the waterfall
	row    key
	fall   int // the first row of the waterfall that is shown

	view    view
	order   order
	reverse bool
	scale   scale
	zoomed  *widget.TimeAxis // nil: all of it is shown

	known memory
}

// view is what the rows of the waterfall are.
type view uint8

const (
	byRoom   view = iota // each subject if there is room for all, else stages
	byEach               // each stage of each subject
	byStages             // one row for each stage
)

// order is the order of rows.
type order uint8

const (
	byStage order = iota
	byTime        // what came last first
	bySubject
	orders // how many there are
)

func (o order) String() string {
	return [...]string{"by stage", "slowest first", "by subject"}[o]
}

// scale is that of the axis.
type scale uint8

const (
	byRange scale = iota // logarithmic if times differ by a factor of more than spread
	linear
	logarithmic
)

var _ screen.Screen = (*Screen)(nil)

// New returns the screen.
func New() *Screen { return &Screen{known: newMemory()} }

// Name is the action that shows the screen.
func (s *Screen) Name() keymap.Action { return keymap.Screen3 }

// Where are the places whose keys mean something here.
func (s *Screen) Where() []keymap.Where { return []keymap.Where{keymap.InTimeline, keymap.InLists} }

// Resize tells how much there is to draw in.
func (s *Screen) Resize(w, h int) { s.w, s.h = w, h }

// zoneMove, zoneRow and zoneAxis are what is clicked at.
type (
	zoneMove int // a reconfiguration
	zoneRow  key
	zoneAxis struct{}
)

// shown are the reconfigurations that the filter lets through, newest first.
func (s *Screen) shown(e screen.Env) []*live.Move {
	if e.Filter.Empty() {
		return e.State.Moves
	}
	var list []*live.Move
	for _, m := range e.State.Moves {
		text, _ := result(s.known.account(m, e.State))
		if e.Filter.Match("#"+strconv.Itoa(m.Number), m.Title, m.By, m.CLI, text, m.Phase) {
			list = append(list, m)
		}
	}
	return list
}

// place is where in a list the cursor is, -1 if that is empty.
func (s *Screen) place(list []*live.Move) int {
	if !s.held {
		return min(0, len(list)-1)
	}
	for i, m := range list {
		if m.Number == s.number {
			return i
		}
	}
	for i, m := range list { // it is forgotten, or filtered away: the next older one
		if m.Number < s.number {
			return i
		}
	}
	return len(list) - 1
}

// current is the reconfiguration under the cursor, nil if there is none.
func (s *Screen) current(e screen.Env) *live.Move {
	list := s.shown(e)
	if at := s.place(list); at >= 0 {
		return list[at]
	}
	return nil
}

// put moves the cursor of the list.
func (s *Screen) put(list []*live.Move, at int, e screen.Env) {
	if len(list) == 0 {
		return
	}
	before := s.place(list)
	at = max(0, min(at, len(list)-1))
	s.held, s.number = at > 0 || list[0] != e.State.Moves[0], list[at].Number
	if at != before {
		s.zoomed, s.fall = nil, 0
	}
	s.top = widget.Scroll(s.top, at, len(list), s.arrange(canvas.Area{W: s.w, H: s.h}, e).list.H)
}

// rowsOf are the rows of the waterfall in their order.
func (s *Screen) rowsOf(a *account, room int) []row {
	rows := a.rows
	if s.grouped(a, room) {
		rows = a.stages
	}
	if s.order == byStage && !s.reverse {
		return rows
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(x, y row) int {
		c := 0
		switch s.order {
		case byStage:
			c = cmp.Compare(slices.Index(returns, x.stage), slices.Index(returns, y.stage))
		case byTime:
			c = cmp.Compare(lateness(y), lateness(x))
		case bySubject:
			c = natural.Compare(x.subject, y.subject)
		}
		if s.reverse {
			c = -c
		}
		return c
	})
	return rows
}

// lateness is what rows are ordered by: what is waited for is later than all that has come.
func lateness(r row) int64 {
	if r.waiting {
		return timeline.Never
	}
	return r.end.Mid()
}

// grouped reports whether rows are stages when there is room for so many.
func (s *Screen) grouped(a *account, room int) bool {
	return s.view == byStages || s.view == byRoom && len(a.rows) > room
}

// look is what there is to see of the current reconfiguration.
type look struct {
	*account
	rows []row
	room int // rows of the waterfall that are shown at once
	at   int // the row with the cursor, -1: none has
}

// look returns what there is to see when it is drawn in an area, and false if there is
// nothing.
func (s *Screen) look(a canvas.Area, e screen.Env) (look, parts, bool) {
	p := s.arrange(a, e)
	m := s.current(e)
	if m == nil {
		return look{at: -1}, p, false
	}
	l := look{account: s.known.account(m, e.State), at: -1}
	l.room = widget.WaterfallRows(p.fall.H)
	l.rows = s.rowsOf(l.account, l.room)
	if s.inRows {
		l.at = max(0, slices.IndexFunc(l.rows, func(r row) bool { return r.key == s.row }))
		l.at = min(l.at, len(l.rows)-1)
	}
	return l, p, true
}

func (s *Screen) sized() canvas.Area { return canvas.Area{W: s.w, H: s.h} }

// putRow moves the cursor of the waterfall.
func (s *Screen) putRow(l look, at int) {
	if len(l.rows) == 0 {
		return
	}
	at = max(0, min(at, len(l.rows)-1))
	s.inRows, s.row = true, l.rows[at].key
	s.fall = widget.Scroll(s.fall, at, len(l.rows), l.room+1)
}

// Do carries out an action.
func (s *Screen) Do(act keymap.Action, e screen.Env) []screen.Request {
	l, p, ok := s.look(s.sized(), e)
	if !ok {
		return nil
	}
	list := s.shown(e)
	at, page := s.place(list), max(1, widget.Rows(p.list.H)-1)
	move := func(by int) {
		if s.inRows {
			s.putRow(l, l.at+by)
		} else {
			s.put(list, at+by, e)
		}
	}
	if s.inRows {
		page = max(1, l.room-1)
	}
	switch act {
	case keymap.Up:
		move(-1)
	case keymap.Down:
		move(1)
	case keymap.PageUp:
		move(-page)
	case keymap.PageDown:
		move(page)
	case keymap.Home:
		move(-len(list) - len(l.rows))
	case keymap.End:
		move(len(list) + len(l.rows))
	case keymap.NextRow:
		s.putRow(l, l.at+1)
	case keymap.PrevRow:
		if l.at < 0 {
			l.at = len(l.rows)
		}
		s.putRow(l, l.at-1)
	case keymap.View:
		if s.grouped(l.account, l.room) {
			s.view = byEach
		} else {
			s.view = byStages
		}
		s.fall = 0
	case keymap.Sort:
		s.order, s.reverse = (s.order+1)%orders, false
	case keymap.Reverse:
		s.reverse = !s.reverse
	case keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.Left, keymap.Right, keymap.All:
		s.axisKey(act, l, e)
	case keymap.Enter:
		return []screen.Request{screen.Show{Title: fmt.Sprintf("#%d %s", l.move.Number, l.move.Title), Lines: strings.Split(strings.TrimSuffix(everything(l.account, e), "\n"), "\n")}}
	case keymap.Open:
		return s.open(l, e)
	case keymap.Save:
		return save(l.account, e)
	}
	return nil
}

// axisKey changes the part of the axis that is shown, and its scale.
func (s *Screen) axisKey(act keymap.Action, l look, e screen.Env) {
	x := s.axis(l, e)
	switch act {
	case keymap.ZoomIn:
		x = x.Zoom(0.5)
	case keymap.ZoomOut:
		x = x.Zoom(2)
		if fit := s.fit(l, e); x.From <= fit.From && x.To >= fit.To {
			s.zoomed = nil
			return
		}
	case keymap.Left:
		x = x.Pan(-0.125)
	case keymap.Right:
		x = x.Pan(0.125)
	case keymap.ZoomFit:
		s.zoomed = nil
		return
	case keymap.All:
		if s.zoomed = nil; x.Log() {
			s.scale = linear
		} else {
			s.scale = logarithmic
		}
		return
	}
	s.zoomed = &x
}

// open shows the subject of the row under the cursor, or else of what is slow.
func (s *Screen) open(l look, e screen.Env) []screen.Request {
	subject := ""
	switch slow, ok := l.slowest(); {
	case l.at >= 0 && l.rows[l.at].subject != "":
		subject = l.rows[l.at].subject
	case l.at < 0 && ok:
		subject = slow.subject
	}
	if _, to, pair := strings.Cut(subject, ">"); pair {
		subject = to
	}
	sw, _, port := strings.Cut(subject, "/")
	switch {
	case subject == "":
		return say("no NIC or port here: n chooses a row, v shows each")
	case e.State.NIC(subject) != nil:
		return []screen.Request{screen.Goto{Screen: keymap.Screen2, Subject: subject}}
	case e.State.Switch(sw) != nil && port:
		return []screen.Request{screen.Goto{Screen: keymap.Screen1, Subject: subject}}
	case e.State.Switch(sw) != nil:
		return []screen.Request{screen.Goto{Screen: keymap.Screen5, Subject: subject}}
	}
	return say(subject + " is not in this lab any more")
}

func say(text string) []screen.Request { return []screen.Request{screen.Say{Text: text}} }

// save proposes to write the marks to a file, a line of JSON for each.
func save(a *account, e screen.Env) []screen.Request {
	if len(a.marks) == 0 {
		return say("there are no marks to save")
	}
	var b bytes.Buffer
	for _, m := range inOrder(a.marks) {
		text, err := m.MarshalJSON()
		if err != nil {
			return []screen.Request{screen.Say{Text: "not saved: " + err.Error(), Bad: true}}
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	name := fmt.Sprintf("ocslab-move-%d-%s.ndjson", a.move.Number, a.move.Began.In(e.Now.Location()).Format("20060102-150405"))
	return []screen.Request{screen.SaveAs{Name: name, Content: b.Bytes()}}
}

// Mouse carries out a click or a turn of the wheel.
func (s *Screen) Mouse(m screen.Mouse, e screen.Env) []screen.Request {
	l, _, ok := s.look(s.sized(), e)
	if !ok {
		return nil
	}
	list := s.shown(e)
	switch id := m.ID.(type) {
	case zoneAxis:
		switch {
		case m.Side != 0:
			s.pan(m.Side, l, e)
		case m.Wheel < 0:
			s.axisKey(keymap.ZoomIn, l, e)
		case m.Wheel > 0:
			s.axisKey(keymap.ZoomOut, l, e)
		}
	case zoneRow:
		at := slices.IndexFunc(l.rows, func(r row) bool { return r.key == key(id) })
		switch {
		case m.Side != 0:
			s.pan(m.Side, l, e)
		case m.Wheel != 0:
			s.putRow(l, l.at+m.Wheel)
		case at >= 0:
			s.putRow(l, at)
			if l.at = at; m.Double {
				return s.open(l, e)
			}
		}
	case zoneMove:
		s.inRows = false
		at := s.place(list)
		if m.Wheel != 0 {
			s.put(list, at+m.Wheel, e)
			return nil
		}
		if i := slices.IndexFunc(list, func(x *live.Move) bool { return x.Number == int(id) }); i >= 0 {
			s.put(list, i, e)
			if m.Double {
				return s.Do(keymap.Enter, e)
			}
		}
	default:
		if m.Wheel != 0 && s.inRows {
			s.putRow(l, l.at+m.Wheel)
		} else if m.Wheel != 0 {
			s.put(list, s.place(list)+m.Wheel, e)
		}
	}
	return nil
}

// pan moves the axis by a wheel to the side.
func (s *Screen) pan(side int, l look, e screen.Env) {
	act := keymap.Right
	if side < 0 {
		act = keymap.Left
	}
	s.axisKey(act, l, e)
}

// Focus moves the cursor to a reconfiguration, "move/12", or to the first row of the
// waterfall of the current one that is of a NIC or port.
func (s *Screen) Focus(subject string, e screen.Env) {
	if text, ok := strings.CutPrefix(subject, "move/"); ok {
		number, err := strconv.Atoi(text)
		list := s.shown(e)
		at := slices.IndexFunc(list, func(m *live.Move) bool { return m.Number == number })
		if err == nil && at >= 0 {
			s.inRows = false
			s.put(list, at, e)
		}
		return
	}
	l, _, ok := s.look(s.sized(), e)
	if !ok || !slices.ContainsFunc(l.account.rows, func(r row) bool { return r.subject == subject }) {
		return
	}
	s.view = byEach
	l, _, _ = s.look(s.sized(), e)
	s.putRow(l, slices.IndexFunc(l.rows, func(r row) bool { return r.subject == subject }))
}

// Subject is the reconfiguration under the cursor, or the subject of the row of the
// waterfall that has it.
func (s *Screen) Subject(e screen.Env) string {
	l, _, ok := s.look(s.sized(), e)
	switch {
	case !ok:
		return ""
	case l.at >= 0 && l.rows[l.at].subject != "":
		return l.rows[l.at].subject
	}
	return fmt.Sprintf("move/%d", l.move.Number)
}

// Copy returns the marks of the row under the cursor, or of all of the reconfiguration.
func (s *Screen) Copy(e screen.Env) string {
	l, _, ok := s.look(s.sized(), e)
	switch {
	case !ok:
		return ""
	case l.at < 0:
		return everything(l.account, e)
	}
	r := l.rows[l.at]
	var of []timeline.Mark
	for _, m := range l.marks {
		if k := rowOf(key{m.Stage, m.Subject}); k.stage == r.stage && (r.subject == "" || k.subject == r.subject) {
			of = append(of, m)
		}
	}
	return strings.Join(marksTable(l.account, of), "\n") + "\n"
}

// Status says where the cursor is, and how the rows are ordered.
func (s *Screen) Status(e screen.Env) string {
	l, _, ok := s.look(s.sized(), e)
	if !ok {
		return "no reconfigurations"
	}
	list := s.shown(e)
	text := fmt.Sprintf("%d of %s", s.place(list)+1, natural.Count(len(list), "reconfiguration"))
	if l.at >= 0 {
		text = fmt.Sprintf("row %d of %d of #%d, esc: back to the list", l.at+1, len(l.rows), l.move.Number)
	}
	if s.order != byStage || s.reverse {
		text += ", " + s.order.String()
		if s.reverse {
			text += ", the other way"
		}
	}
	if s.zoomed != nil {
		text += ", zoomed (0: all)"
	}
	return text
}

// Deselect takes the cursor out of the waterfall, and reports whether it was there.
func (s *Screen) Deselect() bool {
	was := s.inRows
	s.inRows = false
	return was
}
