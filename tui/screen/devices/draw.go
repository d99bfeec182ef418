package devices

import (
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// Draw draws the screen.
func (s *Screen) Draw(a canvas.Area, e screen.Env) {
	list, detail := s.parts(a, e)
	rows := s.rows(e)
	at := s.place(rows)
	s.drawList(list, rows, at, e)
	if at >= 0 {
		s.drawDetail(detail, rows[at], e)
	}
}

// status is how a state of a switch looks: a sign, and a role.
func status(x *live.Switch) (sign string, role canvas.Role) {
	switch x.Status {
	case live.Up:
		return "●", canvas.Good
	case live.Lost:
		return "✗", canvas.Bad
	case live.Lent:
		return "◐", canvas.Busy
	}
	return "○", canvas.Busy
}

// columns of the list.
var columns = []widget.Column{
	{Name: "switch", Keep: 100, Max: 24},
	{Name: "state", Keep: 95},
	{Name: "for", Width: 6, Keep: 60, Right: true},
	{Name: "model", Keep: 50, Max: 28},
	{Name: "ports", Keep: 40},
	{Name: "circuits", Keep: 45, Right: true},
	{Name: "", Width: 12, Keep: 55, Grow: true}, // remark
}

func (s *Screen) drawList(a canvas.Area, rows []*live.Switch, at int, e screen.Env) {
	if a.W <= 0 || a.H <= 0 {
		return
	}
	s.table(rows, at, a.H, e).Draw(a)
}

// table is the list of switches in h lines.
func (s *Screen) table(rows []*live.Switch, at, h int, e screen.Env) widget.Table {
	return widget.Table{
		Columns: columns, Rows: len(rows), Top: widget.Scroll(s.top, at, len(rows), h), Cursor: at, SortedBy: -1,
		Row:   func(i int) []widget.Value { return cells(rows[i], e) },
		Zone:  func(i int) any { return zoneSwitch(rows[i].Name) },
		Empty: empty(e),
	}
}

// cells are the columns of a switch.
func cells(x *live.Switch, e screen.Env) []widget.Value {
	sign, role := status(x)
	usual := canvas.Text
	if x.Status == live.Lost || x.Status == live.Opening {
		usual = canvas.Stale
	}
	ports, circuits := "", ""
	if x.Identity.Geometry.Known() {
		ports = x.Identity.Geometry.String()
	}
	if !x.MapAt.IsZero() {
		circuits = strconv.Itoa(x.Map.Len())
	}
	note := canvas.Dim
	if worrying(x) {
		note = canvas.Warn
	}
	return []widget.Value{
		widget.V(x.Name, usual), widget.V(sign+" "+string(x.Status), role), widget.V(widget.Age(e.Now.Sub(x.Since)), usual),
		widget.V(x.Identity.Model, usual), widget.V(ports, usual), widget.V(circuits, usual), widget.V(remark(x), note),
	}
}

// worrying reports whether a remark on a switch takes attention.
func worrying(x *live.Switch) bool {
	return x.Err != nil || len(x.Drift) > 0 || grave(x) > 0
}

// grave counts alarms that are critical or major.
func grave(x *live.Switch) int {
	n := 0
	for _, a := range x.Alarms {
		if a.Severity == "critical" || a.Severity == "major" {
			n++
		}
	}
	return n
}

// remark says in a few words what there is to know of a switch.
func remark(x *live.Switch) string {
	var list []string
	if x.Tries > 0 && x.Status != live.Up {
		list = append(list, tries(x.Tries))
	}
	if n := grave(x); n > 0 {
		list = append(list, natural.Count(n, "alarm"))
	}
	if n := len(x.Drift); n > 0 {
		list = append(list, "drift")
	}
	if n := len(x.Shut); n > 0 {
		list = append(list, strconv.Itoa(n)+" shut")
	}
	if n := len(x.Modules); n > 0 {
		list = append(list, natural.Count(n, "module"))
	}
	if len(list) == 0 && x.Emulated {
		list = append(list, "emulated")
	}
	return strings.Join(list, ", ")
}

func tries(n int) string {
	if n == 1 {
		return "1 try"
	}
	return strconv.Itoa(n) + " tries"
}

// empty says why there are no rows.
func empty(e screen.Env) string {
	switch {
	case len(e.State.Switches) > 0:
		return "No switch passes the filter " + e.Filter.String() + ". esc clears it."
	case e.State.Opening != "":
		return "The lab is being opened: " + e.State.Opening + "."
	}
	return "The lab file has no switches. Add some to it: e edits it."
}

// drawDetail draws the details of a switch, from line scroll on.
func (s *Screen) drawDetail(a canvas.Area, x *live.Switch, e screen.Env) {
	if a.W < 4 || a.H < 3 {
		return
	}
	sign, role := status(x)
	in := a.Box("", canvas.S(canvas.Frame))
	a.Zone(zoneDetail{})
	title := a.Sub(2, 0, a.W-4, 1)
	end := title.Text(0, 0, " "+x.Name+" ", canvas.S(canvas.Title, canvas.Bold))
	title.Fit(end, 0, a.W-4-end, sign+" "+statusText(x, e)+" ", canvas.S(role))
	in = in.Sub(1, 0, in.W-2, in.H)
	lines := details(x, s.pick(x), in.W, e)
	top := max(0, min(s.scroll, len(lines)-in.H))
	for y, r := range lines[top:min(len(lines), top+in.H)] {
		r.draw(in.Sub(0, y, in.W, 1))
	}
	if len(lines) > in.H {
		widget.Scrollbar(a.Sub(a.W-1, 1, 1, a.H-2), top, in.H, len(lines))
	}
}

// statusText is the state of a switch in words: "up for 12 min".
func statusText(x *live.Switch, e screen.Env) string {
	text := string(x.Status)
	if x.Status == live.Lent {
		text = "lent to a run"
	}
	if !x.Since.IsZero() {
		text += " for " + widget.Age(e.Now.Sub(x.Since))
	}
	return text
}
