package moves

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// parts are the places of the screen; those without room have no cells.
type parts struct{ head, fall, foot, list canvas.Area }

// beside is from how many columns on the list is beside the waterfall.
const beside = 160

// arrange divides the screen.
func (s *Screen) arrange(a canvas.Area, e screen.Env) parts {
	var p parts
	main := a
	if a.W >= beside {
		main, p.list = a.Right(min(84, a.W*2/5))
		main.W -= 2 // between them
	} else {
		h := min(len(e.State.Moves)+2, max(5, a.H/3))
		main, p.list = a.Bottom(min(h, a.H))
	}
	m := s.current(e)
	if m == nil {
		p.fall = main
		return p
	}
	acc := s.known.account(m, e.State)
	p.head, main = main.Top(min(len(s.header(acc, e, main.W, main.H)), max(1, main.H/2)))
	notes := len(footer(acc)) + 1
	if most := main.H - 5; notes > most {
		notes = max(0, min(notes, main.H/4))
	}
	p.fall, p.foot = main.Bottom(notes)
	return p
}

// Draw draws the screen.
func (s *Screen) Draw(a canvas.Area, e screen.Env) {
	l, p, ok := s.look(a, e)
	s.drawList(p.list, a.W >= beside, e)
	if !ok {
		for i, line := range canvas.Wrap(empty(e), p.fall.W-2) {
			p.fall.Text(2, 1+i, line, canvas.S(canvas.Dim))
		}
		return
	}
	for i, h := range s.header(l.account, e, p.head.W, p.head.H+p.fall.H+p.foot.H) {
		p.head.Fit(0, i, p.head.W, h.text, h.style)
	}
	s.drawFall(p.fall, l, e)
	notes := footer(l.account)
	if room := max(0, p.foot.H-1); len(notes) > room {
		if notes = notes[:room]; room > 0 {
			notes[room-1].text += " … (enter shows all)"
		}
	}
	for i, n := range notes {
		p.foot.Fit(0, i, p.foot.W, n.text, n.style)
	}
	if p.foot.H > 0 && len(l.rows) > 0 {
		p.foot.Fit(0, p.foot.H-1, p.foot.W, legend(p.foot.W), canvas.S(canvas.Dim))
	}
}

// empty says why nothing is shown.
func empty(e screen.Env) string {
	if len(e.State.Moves) > 0 {
		return "No reconfiguration passes the filter " + e.Filter.String() + ". esc clears it."
	}
	return "Nothing has been reconfigured since this session began. What is connected, disconnected or linked here, by a run or by others, is shown here while it comes back, layer by layer."
}

// legend explains the bars in so many columns.
func legend(w int) string {
	if long := "█ away   ░ when exactly is not known   ▒ some are back   ━ not back as far as known   ─ since the stage before   ◆ reached   │ usually"; canvas.Width(long) <= w {
		return long
	}
	return "█ away ░ unsure when ▒ some back ━ not back ─ since before ◆ reached │ usual"
}

// said is a line with its style.
type said struct {
	text  string
	style canvas.Style
}

// tall is from how many lines on there is room for what is of use to few.
const tall = 24

// header are the lines above the waterfall: errors first, then what was done, and what is slow.
func (s *Screen) header(a *account, e screen.Env, w, h int) []said {
	m := a.move
	var lines []said
	if m.Err != nil {
		for _, l := range canvas.Wrap("✗ "+m.Err.Error(), w) {
			lines = append(lines, said{l, canvas.S(canvas.Bad)})
		}
	}
	lines = append(lines, said{fmt.Sprintf("#%d %s", m.Number, m.Title), canvas.S(canvas.Text, canvas.Bold)})
	state, role := result(a)
	text := e.Clock(m.Began) + " by " + m.By + ": " + state
	slow := s.slow(a, e)
	if m.Running {
		text = e.Clock(m.Began) + " by " + m.By + ", running for " + widget.Age(e.Now.Sub(m.Began))
		if role = canvas.Busy; m.Phase != "" && slow == "" {
			text += ", waiting for " + m.Phase
		}
	}
	lines = append(lines, said{text, canvas.S(role)})
	if m.CLI != "" && h >= tall {
		lines = append(lines, said{"$ " + m.CLI, canvas.S(canvas.Dim)})
	}
	for _, name := range slices.SortedFunc(maps.Keys(m.Reports), natural.Compare) {
		text, role := reported(name, m.Reports[name])
		lines = append(lines, said{text, canvas.S(role)})
	}
	for _, l := range canvas.Wrap(slow, w) {
		if l != "" {
			lines = append(lines, said{l, canvas.S(canvas.Warn)})
		}
	}
	return lines
}

// result says in few words what has become of a reconfiguration.
func result(a *account) (string, canvas.Role) {
	m := a.move
	switch {
	case m.Running:
		return "… running", canvas.Busy
	case m.Err != nil:
		return "✗ failed", canvas.Bad
	case a.missed > 0:
		return fmt.Sprintf("! %d missing", a.missed), canvas.Warn
	case len(a.rows) == 0:
		return "- not measured", canvas.Dim
	case len(m.Expected) == 0:
		return "- as seen", canvas.Text
	}
	if kindOf(m) == removes {
		return "✓ done", canvas.Good
	}
	return "✓ all back", canvas.Good
}

// outcomes are the states of circuits in the order they are told in: trouble first.
var outcomes = []struct {
	state ocs.State
	text  string
	role  canvas.Role
}{
	{ocs.Failed, "NOT connected", canvas.Bad}, {ocs.Stuck, "NOT removed", canvas.Bad},
	{ocs.Vanished, "gone by others", canvas.Warn}, {ocs.Appeared, "come by others", canvas.Warn},
	{ocs.Connected, "connected", canvas.Text}, {ocs.Removed, "removed", canvas.Text}, {ocs.Kept, "kept", canvas.Text},
}

// reported says what became of the circuits of a switch.
func reported(name string, r ocs.Report) (string, canvas.Role) {
	if !r.ReadBack {
		return name + ": " + r.Change.String() + ", not read back: what it holds is not known", canvas.Warn
	}
	var list []string
	role := canvas.Text
	for _, o := range outcomes {
		var of []string
		for _, x := range r.Outcomes {
			if x.State == o.state {
				of = append(of, x.CrossConnect.String())
			}
		}
		if len(of) == 0 {
			continue
		}
		if len(list) == 0 {
			role = o.role
		}
		text := strings.Join(of, ",")
		if len(of) > 8 {
			text = natural.Count(len(of), "circuit")
		}
		list = append(list, o.text+" "+text)
	}
	if len(list) == 0 {
		return name + ": nothing to do", canvas.Text
	}
	return name + ": " + strings.Join(list, ", "), role
}

// slow says which step took the most of the way to what came last, or, while it runs, what
// is waited for, and what that usually takes.
func (s *Screen) slow(a *account, e screen.Env) string {
	if a.move.Running {
		return s.awaited(a, e)
	}
	x, ok := a.slowest()
	if !ok || a.total.Mid() <= 0 {
		return ""
	}
	part := 100 * float64(x.took.Mid()) / float64(a.at[a.last].Mid())
	text := fmt.Sprintf("slow: %s of %s, %s of %s (%.0f %%)", word(x.stage), x.subject, rough(x.took), rough(a.at[a.last]), part)
	if (x.before != key{}) {
		text += " since " + word(x.before.stage)
	}
	if u, ok := s.known.usually(a.move, e.State, x.key, x.before); ok {
		text += "; usually " + rough(u.at)
	}
	return text
}

// rough writes a time with three digits where it is known so well, and else as it is known.
func rough(i timeline.Interval) string {
	unit, name, digits := 1e9, " s", 2
	switch mid := max(i.Mid(), -i.Mid()); {
	case mid < 1e6: // less than a millisecond: as it is
		return i.String()
	case mid < 1e9:
		unit, name, digits = 1e6, " ms", 0
		if mid < 1e8 {
			digits = 1
		}
	case mid >= 1e10:
		digits = 1
	}
	if step := unit / []float64{1, 10, 100}[digits]; float64(i.Width()) > step {
		return i.String()
	}
	return strconv.FormatFloat(float64(i.Mid())/unit, 'f', digits, 64) + name
}

// awaited says what has been waited for longest beyond the usual.
func (s *Screen) awaited(a *account, e screen.Env) string {
	var latest row
	var usual timeline.Interval
	found, known, n := false, false, 0
	for _, r := range a.rows {
		if !r.waiting {
			continue
		}
		n++
		u, ok := s.known.usually(a.move, e.State, r.key, key{})
		// The last stage of all decides when it is over: rows are in the order of stages.
		if !found || r.stage == latest.stage && ok && (!known || u.at.Mid() > usual.Mid()) {
			latest, usual, found, known = r, u.at, true, ok
		}
	}
	if !found {
		return ""
	}
	text := fmt.Sprintf("waiting: %s of %s for %s", word(latest.stage), latest.subject, widget.Age(e.Now.Sub(a.move.Began)))
	if n > 1 {
		text += fmt.Sprintf(" (and %d more)", n-1)
	}
	if known {
		text += "; usually back at " + rough(usual)
	}
	return text
}

// footer are the lines below the waterfall: what could not be resolved, and who kept the link.
func footer(a *account) []said {
	var lines []said
	for _, u := range a.move.Unresolved {
		lines = append(lines, said{"not resolved: " + u, canvas.S(canvas.Warn)})
	}
	if len(a.move.Held) > 0 {
		lines = append(lines, said{"kept the link: " + strings.Join(a.move.Held, ", "), canvas.S(canvas.Text)})
	}
	if !a.commanded && len(a.marks) > 0 {
		lines = append(lines, said{"no command of ours: 0 is the first mark", canvas.S(canvas.Dim)})
	}
	return lines
}

// drawFall draws the waterfall.
func (s *Screen) drawFall(a canvas.Area, l look, e screen.Env) {
	if len(l.rows) == 0 {
		text := "No marks: nothing of this was measured."
		if l.move.Running {
			text = "No marks yet."
		}
		a.Fit(2, 1, a.W-2, text, canvas.S(canvas.Dim))
		return
	}
	x := s.axis(l, e)
	corner := "since command"
	if !l.commanded {
		corner = "since 1st mark"
	}
	if x.Log() {
		corner += ", log"
	}
	widget.Waterfall{
		Axis: x, Corner: corner, Heads: []string{"back at", "away for", "usually"},
		Rows: len(l.rows), Top: widget.Scroll(s.fall, l.at, len(l.rows), l.room+1), Cursor: l.at,
		Row:      func(i int) widget.Bar { return s.bar(l, l.rows[i], x, e) },
		Zone:     func(i int) any { return zoneRow(l.rows[i].key) },
		ZoneAxis: zoneAxis{},
	}.Draw(a)
}

// roles are the colours of stages.
var roles = map[timeline.Stage]canvas.Role{
	timeline.Ack: canvas.Text, timeline.Light: canvas.Light, timeline.Firmware: canvas.Series4,
	timeline.CarrierUp: canvas.Series1, timeline.Traffic: canvas.Series3,
}

// bar returns how a row is drawn.
func (s *Screen) bar(l look, r row, x widget.TimeAxis, e screen.Env) widget.Bar {
	b := widget.Bar{
		Name: word(r.stage) + " " + r.subject, Role: roles[r.stage],
		Start: r.start, HasStart: r.hasStart, End: r.end, HasEnd: r.hasEnd, First: r.first, HasFirst: r.hasFirst,
		Lead: r.lead, HasLead: !r.hasStart,
	}
	if r.subject == "" {
		b.Name = fmt.Sprintf("%s %d/%d", word(r.stage), r.back, r.of)
	}
	back, away, usual := widget.V("", canvas.Text), widget.V("", canvas.Text), widget.V("", canvas.Dim)
	if r.hasEnd {
		back.Text = r.end.String()
		if r.hasStart {
			away.Text = r.end.Sub(r.start).String()
		}
	} else {
		b.Open, b.Until = true, x.To
		switch {
		case r.gone:
			b.Note, b.NoteRole = "not expected back", canvas.Dim
			b.HasLead = false
		case l.move.Running:
			b.Until, b.Growing = elapsed(l.move, e), true
			back = widget.V("waiting "+widget.Age(time.Duration(b.Until)), canvas.Busy)
		default:
			b.Note, b.NoteRole = missing(r), canvas.Bad
			if back = widget.V("not seen", canvas.Bad); r.of > 1 {
				back.Text = fmt.Sprintf("%d not seen", r.of-r.back)
			}
		}
	}
	if u, ok := s.known.usually(l.move, e.State, r.key, key{}); ok && !r.gone {
		usual.Text = rough(u.at)
		b.Usual, b.HasUsual = u.at.Mid(), true
	}
	b.Cells = []widget.Value{back, away, usual}
	return b
}

// missing says why something has not come.
func missing(r row) string {
	if r.why == "" {
		return "missing"
	}
	return r.why
}

// elapsed is how long ago the command was, in nanoseconds.
func elapsed(m *live.Move, e screen.Env) int64 { return max(0, int64(e.Now.Sub(m.Began))) }

// spread is by what factor times have to differ to be shown on a logarithmic axis by
// themselves.
const spread = 100

// axis is that of the waterfall.
func (s *Screen) axis(l look, e screen.Env) widget.TimeAxis {
	if s.zoomed != nil {
		return *s.zoomed
	}
	return s.fit(l, e)
}

// fit is the axis that holds all there is from the command on: every mark, and, while more is
// waited for, now and when it usually comes. It never begins before the command: a monitor that
// averages may date a mark there, which is of no length worth showing. Bars say so by "<0".
func (s *Screen) fit(l look, e screen.Env) widget.TimeAxis {
	var x widget.TimeAxis
	least, missing := int64(timeline.Never), false
	for _, r := range l.account.rows {
		if r.hasStart {
			x.To = max(x.To, r.start.Latest)
		}
		if r.hasEnd {
			x.To = max(x.To, r.end.Latest)
			if mid := r.end.Mid(); mid > 0 {
				least = min(least, mid)
			}
		}
		missing = missing || r.waiting && !l.move.Running
		if r.waiting && l.move.Running {
			if u, ok := s.known.usually(l.move, e.State, r.key, key{}); ok {
				x.To = max(x.To, u.at.Latest)
			}
		}
	}
	if now := 1.05 * float64(elapsed(l.move, e)); l.move.Running && now > float64(x.To) {
		x.To = widget.RoundUp(now) // so that it is not another one in each frame
	}
	if missing { // room to say so
		x.To += x.To / 2
	}
	x.To = max(x.To+x.To/50, x.From+int64(time.Microsecond))
	if log := x.To/spread > least; s.scale == logarithmic || s.scale == byRange && log {
		least = min(least, x.To/10)
		for x.Knee = int64(time.Microsecond); x.Knee*10 <= least; {
			x.Knee *= 10
		}
	}
	return x
}

// drawList draws the last reconfigurations.
func (s *Screen) drawList(a canvas.Area, right bool, e screen.Env) {
	if a.H < 2 {
		return
	}
	head, rest := a.Top(1)
	if right {
		for y := range a.H {
			a.Set(0, y, '│', canvas.S(canvas.Frame))
		}
		a = a.Sub(2, 0, a.W-2, a.H)
	} else {
		head.Rule(0, "reconfigurations", canvas.S(canvas.Frame))
		a = rest
	}
	list := s.shown(e)
	at := s.place(list)
	t := widget.Table{
		Columns: []widget.Column{
			{Name: "#", Keep: 90, Right: true}, {Name: "when", Keep: 60}, {Name: "by", Keep: 50, Max: 18},
			{Name: "what", Keep: 80, Width: 12, Grow: true}, {Name: "last back at", Keep: 70, Right: true}, {Name: "result", Keep: 100, Width: 13},
		},
		Rows: len(list), Top: widget.Scroll(s.top, at, len(list), a.H), Cursor: at, SortedBy: -1,
		Zone: func(i int) any { return zoneMove(list[i].Number) },
		Row: func(i int) []widget.Value {
			m := list[i]
			acc := s.known.account(m, e.State)
			text, role := result(acc)
			total := widget.V("-", canvas.Dim)
			if (acc.last != key{}) && !m.Running {
				total = widget.V(acc.total.String(), canvas.Text)
			}
			return []widget.Value{
				widget.V(strconv.Itoa(m.Number), canvas.Text), widget.V(e.Clock(m.Began), canvas.Text), widget.V(m.By, canvas.Text),
				widget.V(m.Title, canvas.Text), total, widget.V(text, role),
			}
		},
	}
	t.Draw(a)
}

// everything is all that is known of a reconfiguration, in lines.
func everything(a *account, e screen.Env) string {
	m := a.move
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	text, _ := result(a)
	put("#%d %s", m.Number, m.Title)
	put("%s by %s: %s", m.Began.In(e.Now.Location()).Format("2006-01-02 15:04:05.000"), m.By, text)
	if m.CLI != "" {
		put("$ %s", m.CLI)
	}
	if m.Err != nil {
		put("failed: %v", m.Err)
	}
	for _, name := range slices.SortedFunc(maps.Keys(m.Reports), natural.Compare) {
		text, _ := reported(name, m.Reports[name])
		put("%s", text)
	}
	if len(m.ID) > 0 {
		put("in the history as %s", strings.Trim(fmt.Sprint(m.ID), "[]"))
	}
	for _, r := range a.rows {
		if r.waiting {
			put("expected and not seen: %s of %s", word(r.stage), r.subject)
		}
	}
	for _, l := range footer(a) {
		put("%s", l.text)
	}
	if len(a.marks) > 0 {
		put("")
		for _, l := range marksTable(a, a.marks) {
			put("%s", l)
		}
		put("")
		put("To measure the same again and again: ocslab measure --from CONF --to CONF")
	}
	return b.String()
}

// inOrder returns marks in the order of time.
func inOrder(marks []timeline.Mark) []timeline.Mark {
	marks = slices.Clone(marks)
	slices.SortStableFunc(marks, func(a, b timeline.Mark) int {
		return cmp.Or(cmp.Compare(a.Earliest, b.Earliest), cmp.Compare(a.Latest, b.Latest))
	})
	return marks
}

// marksTable writes marks as lines with aligned columns, below their names.
func marksTable(a *account, marks []timeline.Mark) []string {
	cells := [][]string{{"since the command", "stage", "subject", "seen by", "at", "detail"}}
	if !a.commanded {
		cells[0][0] = "since the first mark"
	}
	for _, m := range inOrder(marks) {
		cells = append(cells, []string{m.Sub(a.command).String(), string(m.Stage), m.Subject, m.Source, m.Host, m.Detail})
	}
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], canvas.Width(c))
		}
	}
	var lines []string
	for _, row := range cells {
		var b strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", widths[i]-canvas.Width(c))
			if i == 0 {
				b.WriteString(pad + c + "  ")
			} else {
				b.WriteString(c + pad + "  ")
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}
