package logs

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/decode"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// Widths of columns: the time with its milliseconds, the direction in words, and without.
const (
	timeWidth  = 12
	wordWidth  = 10
	arrowWidth = 1
	mostSwitch = 16
	// withWords is from how many columns on directions are told in words, too.
	withWords = 100
	// leastCLI is how many columns a command must have behind what was done.
	leastCLI = 40
	// rawFrom is from how many columns on the raw message stands behind what it means.
	rawFrom = 30
)

// Draw draws the log.
func (s *Screen) Draw(a canvas.Area, e screen.Env) {
	if a.W <= 0 || a.H <= 0 {
		return
	}
	v := s.look(e, a.H)
	g := columns(a.W, v)
	g.head(a)
	if len(v.list) == 0 {
		for i, l := range canvas.Wrap(s.empty(e), a.W-2) {
			a.Text(2, 2+i, l, canvas.S(canvas.Dim))
		}
		return
	}
	from, to := s.selected(v)
	for i, x := range v.list[v.top:v.end] {
		line := a.Sub(0, 1+i, a.W, 1)
		g.line(line, x, e)
		n := v.top + i
		if n >= from && n < to {
			line.Set(0, 0, '●', canvas.S(canvas.Accent))
		}
		if n == v.cursor {
			if n < from || n >= to {
				line.Set(0, 0, '▸', canvas.S(canvas.Accent))
			}
			line.Add(canvas.Cursor)
		}
		line.Zone(zoneLine(x.N))
	}
	page := v.end - v.top
	if len(v.list) > page {
		widget.Scrollbar(a.Sub(a.W-1, 1, 1, page), v.top, page, len(v.list))
	}
	if !s.following {
		s.foot(a, v)
	}
}

// foot says how much is below what is shown.
func (s *Screen) foot(a canvas.Area, v view) {
	_, line := a.Bottom(1)
	text, role := "the end of the log; End follows it", canvas.Dim
	if v.below > 0 {
		text, role = fmt.Sprintf("▼ %d new below; End follows", v.below), canvas.Warn
	}
	line.Fit(2, 0, a.W-2, text, canvas.S(role))
	line.Zone(zoneBelow{})
}

// empty says why there are no lines.
func (s *Screen) empty(e screen.Env) string {
	hidden := ""
	if n := len(s.list.quiet); n > 0 {
		hidden = fmt.Sprintf(" %d lines of routine reading are hidden; a shows them.", n)
	}
	switch {
	case !e.Filter.Empty():
		return "No line passes the filter " + e.Filter.String() + "; esc clears it." + hidden
	case len(e.State.Log) > 0:
		return "Nothing but routine so far." + hidden
	case e.State.Opening != "":
		return "Nothing has been said yet: the lab is being opened (" + e.State.Opening + ")."
	}
	return "Nothing has been said yet. All that is sent to switches and received from them will be here, with what it means."
}

// grid is where columns begin.
type grid struct {
	at    int // of the name of the switch
	name  int // width of that
	dir   int // where the direction is
	words bool
	text  int // where the text is
	raw   int // where the message as it was sent is, unless the text is longer; 0: behind the text
	w     int
}

// columns divides w columns for what is shown.
func columns(w int, v view) grid {
	g := grid{at: 2 + timeWidth + 1, w: w, words: w >= withWords}
	for _, x := range v.list[v.top:v.end] {
		g.name = max(g.name, canvas.Width(x.Switch))
	}
	g.name = min(g.name, mostSwitch, max(0, w/6))
	if g.name > 0 {
		g.name = min(max(g.name, len("switch")), max(0, w/6))
	}
	g.dir = g.at
	if g.name > 0 {
		g.dir += g.name + 1
	}
	g.text = g.dir + arrowWidth + 1
	if g.words {
		g.text = g.dir + wordWidth + 1
		for _, x := range v.list[v.top:v.end] {
			n := canvas.Width(x.Text)
			if x.Bad && x.Kind != live.Event {
				n += len("bad: ")
			}
			if x.Raw != "" && n <= (w-g.text)/2 {
				g.raw = max(g.raw, g.text+n+2)
			}
		}
	}
	return g
}

// head draws the names of the columns.
func (g grid) head(a canvas.Area) {
	title := canvas.S(canvas.Title)
	a.Fit(2, 0, timeWidth, "time", title)
	a.Fit(g.at, 0, g.name, "switch", title)
	a.Fit(g.text, 0, a.W-g.text, "what was said and done", title)
	if what := "as it was sent"; g.raw >= g.text+len("what was said and done")+2 && g.raw+2+len(what) <= a.W {
		a.Text(g.raw+2, 0, what, title)
	}
}

// line draws a line of the log.
func (g grid) line(a canvas.Area, x *live.Entry, e screen.Env) {
	var stamp [timeWidth]byte
	faint := canvas.S(canvas.Dim)
	a.Text(2, 0, string(appendTime(stamp[:0], x.At, e.Now)), faint)
	a.Fit(g.at, 0, g.name, x.Switch, canvas.S(canvas.Text))
	arrow, word, role := direction(x)
	if x.Routine && !x.Bad {
		role = canvas.Dim
	}
	at := canvas.S(role)
	a.Text(g.dir, 0, arrow, at)
	if g.words {
		a.Fit(g.dir+2, 0, wordWidth-2, word, at)
	}
	right := a.W - 1 // for the scrollbar
	text := role
	if x.Kind == live.Event && !x.Bad || x.Kind == live.Did && !x.Bad {
		text = canvas.Text
	}
	end := g.text
	if x.Bad && x.Kind != live.Event { // that it is an event says as much
		end = a.Sub(0, 0, right, 1).Text(end, 0, "bad: ", canvas.S(canvas.Bad))
	}
	done := x.Kind == live.Did && x.CLI != ""
	w := canvas.Width(x.Text)
	if done && right-end-w-2 < leastCLI { // the command says all that the text does
		a.Fit(end, 0, right-end, "$ "+x.CLI, canvas.S(text))
		return
	}
	a.Fit(end, 0, right-end, x.Text, canvas.S(text))
	end += w + 2
	switch {
	case done:
		a.Fit(end, 0, right-end, "$ "+x.CLI, faint)
	case x.Raw != "" && right-end >= rawFrom:
		end = max(end, g.raw)
		a.Fit(end, 0, right-end, "│ "+decode.Visible(canvas.Cut(trimmed(x.Raw), right-end+1)), faint)
	}
}

// trimmed is the beginning of a message without the line ends in front of it.
func trimmed(raw string) string {
	for raw != "" && (raw[0] == '\r' || raw[0] == '\n' || raw[0] == ' ') {
		raw = raw[1:]
	}
	return raw[:min(len(raw), 512)]
}

// appendTime writes a time of day to the millisecond, or, when it was another day, the day and
// the minute: "11-21 15:04 ".
func appendTime(b []byte, t, now time.Time) []byte {
	t = t.In(now.Location())
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.AppendFormat(b, "01-02 15:04")
	}
	return t.AppendFormat(b, "15:04:05.000")
}
