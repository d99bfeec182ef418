// Package canvas is a grid of styled cells that screens are drawn on.
//
// A widget is a function of what it shows and of an [Area], the rectangle it may draw
// in. Whatever it draws outside is cut off, so no widget has to count columns to keep
// a frame whole. What is drawn is text and a [Role], which says what the text means;
// which colours that has, package styles decides when the canvas is written out.
//
// Places that react to the mouse are marked while they are drawn ([Area.Zone]), so that
// what is hit is what is seen.
package canvas

import (
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// wide knows how wide characters are. Unlike the default of its package it does not
// depend on the locale, in which lines of a frame could count as two columns.
var wide = &runewidth.Condition{StrictEmojiNeutral: true}

// Role is what a piece of text means. Package styles gives it colours; the text itself
// must say the same without them.
type Role uint8

// The roles.
const (
	Text    Role = iota // what is shown
	Dim                 // what is there to explain: units, rules, keys nobody has asked for
	Title               // headings, and names of columns
	Accent              // what is one's own: the selection, keys
	Good                // up, lit, kept
	Warn                // takes attention: drift, late, near a limit
	Bad                 // lost, failed, dark where light should be
	Light               // optical power, circuits in the matrix
	Stale               // what was so, and is not known to be so now
	Busy                // under way
	Frame               // borders and rules
	FrameRO             // the frame in read-only mode
	Series1             // series of charts, in an order that eyes tell apart
	Series2
	Series3
	Series4
	Series5
	Series6
	Roles // how many there are
)

// Attr are attributes beside the role.
type Attr uint8

// The attributes.
const (
	Bold Attr = 1 << iota
	Reverse
	Underline
	Cursor // where the cursor is: reverse, in the colour of one's own
	Marked // selected, beside the cursor
	Strike
)

// Style is a role and attributes.
type Style struct {
	Role Role
	Attr Attr
}

// With returns s with more attributes.
func (s Style) With(a Attr) Style { s.Attr |= a; return s }

// S returns the style of a role and attributes.
func S(r Role, attrs ...Attr) Style {
	s := Style{Role: r}
	for _, a := range attrs {
		s.Attr |= a
	}
	return s
}

// Cell is one column of one line. The second column of a wide character has the rune 0.
type Cell struct {
	Rune  rune
	Style Style
}

// Zone is a rectangle that reacts to the mouse.
type Zone struct {
	X, Y, W, H int // on the canvas
	ID         any // what it is, as its owner knows it; comparable
}

// Canvas is a grid of W x H cells. It is used by one goroutine at a time.
type Canvas struct {
	W, H  int
	cells []Cell
	zones []Zone
}

// New returns a canvas of blanks. Sizes below 0 count as 0.
func New(w, h int) *Canvas {
	c := &Canvas{}
	c.Reset(w, h)
	return c
}

// Reset makes the canvas blank, without zones, and w x h, and keeps its memory.
func (c *Canvas) Reset(w, h int) {
	c.W, c.H = max(w, 0), max(h, 0)
	if n := c.W * c.H; cap(c.cells) < n {
		c.cells = make([]Cell, n)
	} else {
		c.cells = c.cells[:n]
	}
	for i := range c.cells {
		c.cells[i] = Cell{Rune: ' '}
	}
	c.zones = c.zones[:0]
}

// At returns the cell at a place, a blank outside.
func (c *Canvas) At(x, y int) Cell {
	if x < 0 || y < 0 || x >= c.W || y >= c.H {
		return Cell{Rune: ' '}
	}
	return c.cells[y*c.W+x]
}

// Row returns the cells of a line, which are the canvas's own.
func (c *Canvas) Row(y int) []Cell { return c.cells[y*c.W : (y+1)*c.W] }

// Hit returns the zone at a place that was marked last, and where in it that is.
func (c *Canvas) Hit(x, y int) (z Zone, dx, dy int, ok bool) {
	for i := len(c.zones) - 1; i >= 0; i-- {
		z := c.zones[i]
		if x >= z.X && y >= z.Y && x < z.X+z.W && y < z.Y+z.H {
			return z, x - z.X, y - z.Y, true
		}
	}
	return Zone{}, 0, 0, false
}

// Area returns all of the canvas as an area to draw in.
func (c *Canvas) Area() Area { return Area{c: c, W: c.W, H: c.H} }

// String returns the text without styles, each line without blanks at its end.
func (c *Canvas) String() string {
	var b strings.Builder
	for y := range c.H {
		line := make([]rune, 0, c.W)
		for _, cell := range c.Row(y) {
			if cell.Rune != 0 {
				line = append(line, cell.Rune)
			}
		}
		b.WriteString(strings.TrimRight(string(line), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// Area is a rectangle of a canvas that has coordinates of its own, from 0,0 at its top
// left. What is drawn outside of it is cut off. The zero Area has no cells.
type Area struct {
	c    *Canvas
	x, y int // of its top left on the canvas
	W, H int
}

// Sub returns the part of a that begins at x, y and is w x h, as far as a reaches.
func (a Area) Sub(x, y, w, h int) Area {
	if x < 0 {
		w, x = w+x, 0
	}
	if y < 0 {
		h, y = h+y, 0
	}
	return Area{c: a.c, x: a.x + x, y: a.y + y, W: max(0, min(w, a.W-x)), H: max(0, min(h, a.H-y))}
}

// Top returns the first h lines, and what is below.
func (a Area) Top(h int) (top, rest Area) {
	h = max(0, min(h, a.H))
	return a.Sub(0, 0, a.W, h), a.Sub(0, h, a.W, a.H-h)
}

// Bottom returns what is above the last h lines, and these.
func (a Area) Bottom(h int) (rest, bottom Area) {
	h = max(0, min(h, a.H))
	return a.Sub(0, 0, a.W, a.H-h), a.Sub(0, a.H-h, a.W, h)
}

// Left returns the first w columns, and what is right of them.
func (a Area) Left(w int) (left, rest Area) {
	w = max(0, min(w, a.W))
	return a.Sub(0, 0, w, a.H), a.Sub(w, 0, a.W-w, a.H)
}

// Right returns what is left of the last w columns, and these.
func (a Area) Right(w int) (rest, right Area) {
	w = max(0, min(w, a.W))
	return a.Sub(0, 0, a.W-w, a.H), a.Sub(a.W-w, 0, w, a.H)
}

// Set draws one character that is one column wide.
func (a Area) Set(x, y int, r rune, s Style) {
	if x < 0 || y < 0 || x >= a.W || y >= a.H {
		return
	}
	a.c.put((a.y+y)*a.c.W+a.x+x, Cell{Rune: r, Style: s})
}

// put writes a cell, and makes no half characters of wide ones.
func (c *Canvas) put(i int, cell Cell) {
	if c.cells[i].Rune == 0 && i > 0 {
		c.cells[i-1].Rune = ' '
	}
	if i+1 < len(c.cells) && c.cells[i+1].Rune == 0 && cell.Rune != 0 {
		c.cells[i+1].Rune = ' '
	}
	c.cells[i] = cell
}

// Text draws one line of text from x, y on, and returns the column after it, also when it
// was cut off. Control characters, of which the text of a device may have some, are
// shown as "·"; characters of no width are left out.
func (a Area) Text(x, y int, text string, s Style) int {
	inside := y >= 0 && y < a.H
	for _, r := range text {
		w := 1
		switch {
		case r < 0x20 || r == 0x7f || r == unicode.ReplacementChar || unicode.IsControl(r):
			r = '·'
		case r >= 0x300: // below, all are one column wide
			w = wide.RuneWidth(r)
		}
		if w == 0 {
			continue
		}
		if inside && x >= 0 && x+w <= a.W {
			i := (a.y+y)*a.c.W + a.x + x
			a.c.put(i, Cell{Rune: r, Style: s})
			if w == 2 {
				a.c.put(i+1, Cell{Rune: 0, Style: s})
			}
		}
		x += w
	}
	return x
}

// TextRight draws a line of text that ends before column x, cut off at its left end if it
// is longer than x columns.
func (a Area) TextRight(x, y int, text string, s Style) {
	a.Text(x-Width(text), y, text, s)
}

// Fit draws a line of text in w columns; text that is longer ends with "…".
func (a Area) Fit(x, y, w int, text string, s Style) {
	a.Sub(x, y, w, 1).Text(0, 0, Cut(text, min(w, a.W-x)), s)
}

// Fill fills the area with one character.
func (a Area) Fill(r rune, s Style) {
	for y := range a.H {
		for x := range a.W {
			a.Set(x, y, r, s)
		}
	}
}

// Add adds attributes to all cells, and leaves text and roles alone.
func (a Area) Add(attr Attr) {
	for y := range a.H {
		for x := range a.W {
			a.c.cells[(a.y+y)*a.c.W+a.x+x].Style.Attr |= attr
		}
	}
}

// Paint gives all cells a role, and leaves text and attributes alone.
func (a Area) Paint(r Role) {
	for y := range a.H {
		for x := range a.W {
			a.c.cells[(a.y+y)*a.c.W+a.x+x].Style.Role = r
		}
	}
}

// Box draws a border around the area with a title in it, and returns what is inside. The title
// of a box in the role Frame is in the role Title, which is easier to read; others have the
// role of their box. An area too small for a border is returned as it is.
func (a Area) Box(title string, s Style) Area {
	if a.W < 4 || a.H < 3 {
		return a
	}
	for x := 1; x < a.W-1; x++ {
		a.Set(x, 0, '─', s)
		a.Set(x, a.H-1, '─', s)
	}
	for y := 1; y < a.H-1; y++ {
		a.Set(0, y, '│', s)
		a.Set(a.W-1, y, '│', s)
	}
	a.Set(0, 0, '╭', s)
	a.Set(a.W-1, 0, '╮', s)
	a.Set(0, a.H-1, '╰', s)
	a.Set(a.W-1, a.H-1, '╯', s)
	if title != "" {
		if s.Role == Frame {
			s.Role = Title
		}
		a.Fit(2, 0, a.W-4, " "+title+" ", s.With(Bold))
	}
	return a.Sub(1, 1, a.W-2, a.H-2)
}

// Rule draws a line across, with a title in it.
func (a Area) Rule(y int, title string, s Style) {
	for x := range a.W {
		a.Set(x, y, '─', s)
	}
	if title != "" {
		a.Fit(2, y, a.W-2, " "+title+" ", Style{Role: Title, Attr: Bold})
	}
}

// Zone marks the area as a place that reacts to the mouse.
func (a Area) Zone(id any) {
	if a.W > 0 && a.H > 0 {
		a.c.zones = append(a.c.zones, Zone{X: a.x, Y: a.y, W: a.W, H: a.H, ID: id})
	}
}

// Clear makes the area blank and forgets zones that lie in it.
func (a Area) Clear() {
	a.Fill(' ', Style{})
	if a.c == nil {
		return
	}
	kept := a.c.zones[:0]
	for _, z := range a.c.zones {
		if z.X < a.x || z.Y < a.y || z.X+z.W > a.x+a.W || z.Y+z.H > a.y+a.H {
			kept = append(kept, z)
		}
	}
	a.c.zones = kept
}

// Modal forgets all zones: what is drawn from here on is all that reacts to the mouse.
func (a Area) Modal() {
	if a.c != nil {
		a.c.zones = a.c.zones[:0]
	}
}

// Width is how many columns Text uses for a text.
func Width(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case r < 0x300:
			n++
		default:
			n += wide.RuneWidth(r)
		}
	}
	return n
}

// Cut shortens text to w columns, the last of which is then "…".
func Cut(text string, w int) string {
	if w <= 0 {
		return ""
	}
	if len(text) <= w || Width(text) <= w {
		return text
	}
	if w == 1 {
		return "…"
	}
	if n := fitting(text, w-1); Width(text[:n]) < w {
		return text[:n] + "…"
	}
	return "…"
}

// fitting is how many bytes of text fit in w columns: at least those of one character.
func fitting(text string, w int) int {
	n := 0
	for i, r := range text {
		rw := 1
		if r >= 0x300 {
			rw = wide.RuneWidth(r)
		}
		if n += rw; n > w && i > 0 {
			return i
		}
	}
	return len(text)
}

// Wrap breaks text into lines of at most w columns, between words where it can.
func Wrap(text string, w int) []string {
	if w <= 0 {
		return nil
	}
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			for Width(word) > w {
				if line != "" {
					lines, line = append(lines, line), ""
				}
				n := fitting(word, w)
				lines, word = append(lines, word[:n]), word[n:]
			}
			switch {
			case word == "": // all of it is on lines of its own
			case line == "":
				line = word
			case Width(line)+1+Width(word) <= w:
				line += " " + word
			default:
				lines, line = append(lines, line), word
			}
		}
		if line != "" || strings.TrimSpace(paragraph) == "" {
			lines = append(lines, line)
		}
	}
	return lines
}
