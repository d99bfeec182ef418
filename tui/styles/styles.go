// Package styles has all colours of the terminal UI, and writes canvases out.
//
// A theme gives each role of package canvas a colour and, since colours are never the
// only sign, attributes. A terminal with fewer colours gets the nearest it has, one with
// NO_COLOR set attributes only, and one whose locale is not UTF-8 characters of ASCII
// in place of lines, blocks and dots.
//
// # One hand
//
// All screens and windows keep to these rules, so that who knows one can read all:
//
//   - Text has a contrast of 4.5:1 at least to the background its theme is for, frames 3:1.
//   - Titles of boxes and rules, and names of columns, are in [canvas.Title]. They begin with a
//     small letter, unless they are a name: "state", "Rx power", "NIC".
//   - [canvas.Bad] is for what should be otherwise. A port that is dark because nothing is
//     connected to it is [canvas.Dim].
//   - The cursor is a line, or a cell, in reverse, with "▸" in front of a line; what is selected
//     has "●" there. Of what may be on or off, "●" is on, and "○" is off.
//   - What is old says so in words: "stale", "was", or its age. [canvas.Stale] only adds to that.
//   - "-" stands for what there is none of; "?" for what is not known; "…" for what is cut off.
//   - A number has its unit behind it, or in the name of its column: "-2.8 dBm", "out dBm". Ages
//     have one digit behind the point below ten seconds, and come before a text as "5 s ago:".
//   - Numbers are at the right of their column, all else is at the left.
//   - A key stands before what it does: "u undo". A command stands behind "$".
//   - A list without rows says why, and which key is next.
package styles

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/ocslab/ocslab/tui/canvas"
)

// Theme is the colours of each role.
type Theme struct {
	Name  string
	About string
	looks [canvas.Roles]look
}

// look is how a role is shown: colours as "#rrggbb", or "" for the terminal's own.
type look struct {
	fg, bg string
	attr   canvas.Attr
}

// Themes are all there are; the first is the default on dark backgrounds, the second on
// light ones.
func Themes() []Theme { return themes[:] }

// ByName returns the theme of that name.
func ByName(name string) (Theme, bool) {
	for _, t := range themes {
		if t.Name == name {
			return t, true
		}
	}
	return Theme{}, false
}

var themes = [...]Theme{
	{"dark", "for dark backgrounds", [canvas.Roles]look{
		canvas.Text: {}, canvas.Dim: {fg: "#8a93a3"}, canvas.Title: {fg: "#9fb6d4", attr: canvas.Bold},
		canvas.Accent: {fg: "#5fb3ff", attr: canvas.Bold}, canvas.Good: {fg: "#5fd787"}, canvas.Warn: {fg: "#ffd75f"},
		canvas.Bad: {fg: "#ff6b6b", attr: canvas.Bold}, canvas.Light: {fg: "#ffb454"}, canvas.Stale: {fg: "#868c96"},
		canvas.Busy: {fg: "#c792ea"}, canvas.Frame: {fg: "#667084"}, canvas.FrameRO: {fg: "#ff9e64", attr: canvas.Bold},
		canvas.Series1: {fg: "#5fb3ff"}, canvas.Series2: {fg: "#ffb454"}, canvas.Series3: {fg: "#5fd787"},
		canvas.Series4: {fg: "#c792ea"}, canvas.Series5: {fg: "#ff6b6b"}, canvas.Series6: {fg: "#56c8c8"},
	}},
	{"light", "for light backgrounds", [canvas.Roles]look{
		canvas.Text: {}, canvas.Dim: {fg: "#5c6470"}, canvas.Title: {fg: "#1f4e79", attr: canvas.Bold},
		canvas.Accent: {fg: "#005fb8", attr: canvas.Bold}, canvas.Good: {fg: "#1a7f37"}, canvas.Warn: {fg: "#8a5a00"},
		canvas.Bad: {fg: "#b3261e", attr: canvas.Bold}, canvas.Light: {fg: "#a04a00"}, canvas.Stale: {fg: "#6b7079"},
		canvas.Busy: {fg: "#7a3ea8"}, canvas.Frame: {fg: "#868f9c"}, canvas.FrameRO: {fg: "#c2410c", attr: canvas.Bold},
		canvas.Series1: {fg: "#005fb8"}, canvas.Series2: {fg: "#a04a00"}, canvas.Series3: {fg: "#1a7f37"},
		canvas.Series4: {fg: "#7a3ea8"}, canvas.Series5: {fg: "#b3261e"}, canvas.Series6: {fg: "#0b6e6e"},
	}},
	{"contrast", "few, strong colours, for dark backgrounds", [canvas.Roles]look{
		canvas.Text: {fg: "#ffffff"}, canvas.Dim: {fg: "#d0d0d0"}, canvas.Title: {fg: "#ffffff", attr: canvas.Bold | canvas.Underline},
		canvas.Accent: {fg: "#00ffff", attr: canvas.Bold}, canvas.Good: {fg: "#00ff00"}, canvas.Warn: {fg: "#ffff00", attr: canvas.Bold},
		canvas.Bad: {fg: "#ffffff", bg: "#c00000", attr: canvas.Bold}, canvas.Light: {fg: "#ffff00"}, canvas.Stale: {fg: "#b0b0b0"},
		canvas.Busy: {fg: "#ff80ff"}, canvas.Frame: {fg: "#ffffff"}, canvas.FrameRO: {fg: "#000000", bg: "#ffaf00", attr: canvas.Bold},
		canvas.Series1: {fg: "#00ffff"}, canvas.Series2: {fg: "#ffff00"}, canvas.Series3: {fg: "#00ff00"},
		canvas.Series4: {fg: "#ff80ff"}, canvas.Series5: {fg: "#ff8080"}, canvas.Series6: {fg: "#ffffff"},
	}},
	{"mono", "no colours, as with NO_COLOR", plain},
}

// plain is all roles without colours: what NO_COLOR leaves of any theme.
var plain = [canvas.Roles]look{
	canvas.Title: {attr: canvas.Bold}, canvas.Accent: {attr: canvas.Bold}, canvas.Warn: {attr: canvas.Bold},
	canvas.Bad: {attr: canvas.Bold | canvas.Underline}, canvas.FrameRO: {attr: canvas.Bold},
}

// Writer writes canvases for one terminal. It is used by one goroutine at a time.
type Writer struct {
	Theme   Theme
	Profile termenv.Profile
	ASCII   bool // characters of ASCII only

	made struct { // what codes was made for
		theme   string
		profile termenv.Profile
	}
	codes [canvas.Roles]string // the select graphic rendition of each role, without "\x1b[" and "m"
	buf   []byte
}

// NewWriter returns a Writer for what a terminal can do, as the environment tells.
func NewWriter(theme Theme, environ func(string) string) *Writer {
	w := &Writer{Theme: theme, Profile: lipgloss.ColorProfile()}
	if environ("NO_COLOR") != "" {
		w.Profile = termenv.Ascii
	}
	w.ASCII = !utf8Locale(environ)
	return w
}

// utf8Locale reports whether the locale's characters are UTF-8. A locale that nobody set
// is taken for one: minimal containers have none, and terminals have been UTF-8 for long.
func utf8Locale(environ func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(environ(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}

// Render returns the canvas as lines of text with escape sequences, without a newline at
// the end. Runs of cells of one style share a sequence.
func (w *Writer) Render(c *canvas.Canvas) string {
	if w.codes[canvas.Bad] == "" || w.made.theme != w.Theme.Name || w.made.profile != w.Profile {
		w.compile()
	}
	w.buf = w.buf[:0]
	for y := range c.H {
		if y > 0 {
			w.buf = append(w.buf, '\n')
		}
		row := c.Row(y)
		end := len(row)
		for end > 0 && row[end-1] == (canvas.Cell{Rune: ' '}) {
			end--
		}
		var now canvas.Style
		styled := false
		for _, cell := range row[:end] {
			if cell.Rune == 0 {
				continue
			}
			if cell.Style != now {
				if styled {
					w.buf = append(w.buf, "\x1b[0m"...)
				}
				now = cell.Style
				styled = w.begin(now)
			}
			r := cell.Rune
			if w.ASCII && r >= 0x80 {
				r = ASCII(r)
			}
			w.buf = utf8.AppendRune(w.buf, r)
		}
		if styled {
			w.buf = append(w.buf, "\x1b[0m"...)
		}
	}
	return string(w.buf)
}

// begin writes the sequence of a style, and reports whether there is one.
func (w *Writer) begin(s canvas.Style) bool {
	look := w.looks()[s.Role]
	attr := look.attr | s.Attr
	role := s.Role
	if attr&canvas.Cursor != 0 { // the cursor looks the same wherever it is
		role, attr = canvas.Accent, attr|canvas.Reverse
	}
	code := w.codes[role]
	if attr == 0 && code == "" {
		return false
	}
	w.buf = append(w.buf, "\x1b["...)
	sep := ""
	for _, a := range sgr {
		if attr&a.attr != 0 {
			w.buf = append(w.buf, sep...)
			w.buf = append(w.buf, a.code...)
			sep = ";"
		}
	}
	if code != "" {
		w.buf = append(w.buf, sep...)
		w.buf = append(w.buf, code...)
	}
	w.buf = append(w.buf, 'm')
	return true
}

var sgr = []struct {
	attr canvas.Attr
	code string
}{
	{canvas.Bold, "1"}, {canvas.Underline, "4"}, {canvas.Marked, "4"}, {canvas.Reverse, "7"}, {canvas.Strike, "9"},
}

func (w *Writer) looks() *[canvas.Roles]look {
	if w.Profile == termenv.Ascii {
		return &plain
	}
	return &w.Theme.looks
}

// compile turns colours into what the terminal has.
func (w *Writer) compile() {
	for r := range w.codes {
		l := w.looks()[r]
		var parts []string
		if l.fg != "" && w.Profile != termenv.Ascii {
			if c := w.Profile.Color(l.fg); c != nil {
				parts = append(parts, c.Sequence(false))
			}
		}
		if l.bg != "" && w.Profile != termenv.Ascii {
			if c := w.Profile.Color(l.bg); c != nil {
				parts = append(parts, c.Sequence(true))
			}
		}
		w.codes[r] = strings.Join(parts, ";")
	}
	w.made.theme, w.made.profile = w.Theme.Name, w.Profile
}

// ASCII returns the nearest character of ASCII.
func ASCII(r rune) rune {
	if a, ok := ascii[r]; ok {
		return a
	}
	switch {
	case r < 0x80:
		return r
	case r >= 0x2800 && r <= 0x28ff: // braille
		if r == 0x2800 {
			return ' '
		}
		return '*'
	case r >= 0x2500 && r <= 0x257f: // lines
		return '+'
	case r >= 0x2580 && r <= 0x259f: // blocks
		return '#'
	}
	return '?'
}

var ascii = map[rune]rune{
	'─': '-', '━': '=', '│': '|', '┃': '|', '┄': '.', '╌': '.', '┊': ':', '╭': '+', '╮': '+', '╰': '+', '╯': '+',
	'·': '.', '•': '*', '…': '~', '●': '@', '○': 'o', '◌': ':', '◐': '%', '■': '#', '□': '=', '▪': 's', '▫': ',', '◆': '*', '◇': '=',
	'▲': '^', '▼': 'v', '△': '^', '▽': 'v', '▶': '>', '▸': '>', '▹': '>', '◀': '<', '◂': '<', '→': '>', '←': '<', '↑': '^', '↓': 'v', '↔': '=', '⇄': '=', '⏎': '<',
	'░': '.', '▒': ':', '▓': '%', '█': '#', '▏': '|', '▎': '|', '▍': '|', '▌': '|', '▕': '|',
	'▁': '_', '▂': '_', '▃': '-', '▄': '-', '▅': '=', '▆': '=', '▇': '#', '▀': '"',
	'✓': '+', '✔': '+', '✗': 'x', '✘': 'x', '×': 'x', '±': '~', 'µ': 'u', '°': 'o', '≤': '<', '≥': '>', '≈': '~', '−': '-', '–': '-', '—': '-', '“': '"', '”': '"', '’': '\'', '⚠': '!', '⟳': '@', '⏸': '"', 'Σ': 'S', 'π': 'p', 'Δ': 'D',
}
