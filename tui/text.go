package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/widget"
)

// seg is a piece of a line in one style.
type seg struct {
	text  string
	style canvas.Style
}

// row is a line of a window, as long as it likes; flow breaks it.
type row struct {
	segs   []seg
	indent int // of the lines after the first
}

func line(segs ...seg) row { return row{segs: segs, indent: 2} }

// plain makes rows of text without styles.
func plain(lines []string) []row {
	rows := make([]row, len(lines))
	for i, l := range lines {
		rows[i] = line(seg{text: strings.ReplaceAll(l, "\t", "    ")})
	}
	return rows
}

// String is the text of the row.
func (r row) String() string {
	var b strings.Builder
	for _, s := range r.segs {
		b.WriteString(s.text)
	}
	return b.String()
}

// flow breaks a row into rows of at most w columns: between pieces if that is enough, or
// between words.
func (r row) flow(w int) []row {
	if canvas.Width(r.String()) <= w {
		return []row{r}
	}
	indent := min(r.indent, w/3)
	out := []row{{}}
	x := 0
	next := func() {
		out = append(out, row{segs: []seg{{text: strings.Repeat(" ", indent)}}})
		x = indent
	}
	for _, s := range r.segs {
		if n := canvas.Width(s.text); x+n <= w {
			out[len(out)-1].segs = append(out[len(out)-1].segs, s)
			x += n
			continue
		}
		text := s.text
		if n := canvas.Width(strings.TrimSpace(text)); x > indent && indent+n <= w {
			next()
			text = strings.TrimSpace(text)
			out[len(out)-1].segs = append(out[len(out)-1].segs, seg{text, s.style})
			x += n
			continue
		}
		lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
		for i, l := range wrapFrom(strings.TrimLeft(text, " "), w-x-canvas.Width(lead), w-indent) {
			if i > 0 {
				next()
			} else {
				l = lead + l
			}
			out[len(out)-1].segs = append(out[len(out)-1].segs, seg{l, s.style})
			x += canvas.Width(l)
		}
	}
	return out
}

// wrapFrom breaks text into lines, of which the first has another width than the rest.
func wrapFrom(text string, first, rest int) []string {
	if first < 8 {
		return append([]string{""}, canvas.Wrap(text, max(rest, 1))...)
	}
	lines := canvas.Wrap(text, first)
	if len(lines) <= 1 {
		return lines
	}
	tail := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(text, " "), lines[0]), " ")
	if strings.Contains(lines[0], " ") {
		// Wrap has made one blank of several: count words instead.
		words := strings.Fields(text)
		tail = strings.Join(words[min(len(words), len(strings.Fields(lines[0]))):], " ")
	}
	return append(lines[:1:1], canvas.Wrap(tail, max(rest, 1))...)
}

// draw draws the row at line y.
func (r row) draw(a canvas.Area, y int) {
	x := 0
	for _, s := range r.segs {
		x = a.Text(x, y, s.text, s.style)
	}
}

// popup clears a window of w x h in the middle of an area, but for its last two lines, in
// which messages are read. It draws a border and returns what is inside. Nothing but what
// is drawn after it reacts to the mouse.
func popup(a canvas.Area, w, h int, title string, s canvas.Style) canvas.Area {
	a.Modal()
	a, _ = a.Bottom(2)
	w, h = min(w, a.W), min(h, a.H)
	win := a.Sub((a.W-w)/2, (a.H-h)/2, w, h)
	win.Clear()
	return win.Box(title, s)
}

// age is how long ago something was.
func age(d time.Duration) string { return widget.Age(d) }

// short is a duration with three digits at most.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return age(d)
}

// sentence is text with a stop at its end.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsRune(".!?:", rune(s[len(s)-1])) {
		return s
	}
	return s + "."
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// pad makes text at least w columns wide, and ends it with a blank.
func pad(s string, w int) string {
	return s + strings.Repeat(" ", max(1, w-canvas.Width(s)))
}
