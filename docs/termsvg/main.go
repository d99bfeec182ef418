// Command termsvg draws the text of a terminal as an SVG picture. It is run by
// hand to make the pictures of the documentation from real output:
//
//	ocslab demo | go run ./docs/termsvg -prompt 'go run ./cmd/ocslab demo' > docs/demo.svg
//	tmux capture-pane -e -p -t SESSION | go run ./docs/termsvg > docs/tui-patch.svg
//
// It knows the sequences that set colours and attributes, and leaves all others out.
package main

import (
	"bufio"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
)

const (
	charWidth = 8.4 // of a 14 px monospace font
	margin    = 16
)

// The colours of what has none of its own; -light changes them.
var (
	background = "#11151c"
	foreground = "#d7dde6"
)

func main() {
	prompt := flag.String("prompt", "", "command line to show above the text")
	light := flag.Bool("light", false, "draw on white, as on a light terminal")
	flag.Parse()
	if *light {
		onWhite()
	}
	if err := draw(os.Stdout, os.Stdin, *prompt); err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(1)
	}
}

// onWhite makes the colours those of a light terminal.
func onWhite() {
	background, foreground = "#ffffff", "#1f2328"
	base = [...]string{
		"#24292f", "#b3261e", "#1a7f37", "#8a5a00", "#005fb8", "#7a3ea8", "#0b6e6e", "#6e7781",
		"#57606a", "#d1362c", "#2da44e", "#b08800", "#218bff", "#a475f9", "#3192aa", "#8c959f",
	}
}

// look is how a character is shown: colours as "#rrggbb", "" for the default.
type look struct {
	fg, bg                             string
	bold, dim, underline, rev, crossed bool
}

// colours are those it comes to.
func (l look) colours() (fg, bg string) {
	fg, bg = l.fg, l.bg
	if l.rev {
		if fg == "" {
			fg = foreground
		}
		if bg == "" {
			bg = background
		}
		fg, bg = bg, fg
	}
	if fg == "" {
		fg = foreground
	}
	return fg, bg
}

// span is characters of one look, from a column on.
type span struct {
	column int
	text   []rune
	look   look
}

// parse reads a line, and goes on with the look that the one before ended with.
func parse(line string, now look) (spans []span, width int, end look) {
	for len(line) > 0 {
		if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
			n := strings.IndexFunc(rest, func(r rune) bool { return r >= 0x40 && r <= 0x7e })
			if n < 0 {
				return spans, width, now
			}
			if rest[n] == 'm' {
				now = now.set(rest[:n])
			}
			line = rest[n+1:]
			continue
		}
		r, size := rune(line[0]), 1
		for i, x := range line {
			if i > 0 {
				size = i
				break
			}
			r, size = x, len(line)
		}
		line = line[size:]
		if r < ' ' {
			continue
		}
		last := len(spans) - 1
		if last < 0 || spans[last].look != now {
			spans = append(spans, span{column: width, look: now})
			last++
		}
		spans[last].text = append(spans[last].text, r)
		width += runewidth.RuneWidth(r)
	}
	return spans, width, now
}

// set changes the look as a sequence of numbers says.
func (l look) set(codes string) look {
	numbers := strings.FieldsFunc(codes, func(r rune) bool { return r == ';' || r == ':' })
	if len(numbers) == 0 {
		return look{}
	}
	for i := 0; i < len(numbers); i++ {
		n, _ := strconv.Atoi(numbers[i])
		switch {
		case n == 0:
			l = look{}
		case n == 1:
			l.bold = true
		case n == 2:
			l.dim = true
		case n == 4:
			l.underline = true
		case n == 7:
			l.rev = true
		case n == 9:
			l.crossed = true
		case n == 22:
			l.bold, l.dim = false, false
		case n == 24:
			l.underline = false
		case n == 27:
			l.rev = false
		case n == 29:
			l.crossed = false
		case n >= 30 && n <= 37:
			l.fg = palette(n - 30)
		case n >= 90 && n <= 97:
			l.fg = palette(n - 90 + 8)
		case n >= 40 && n <= 47:
			l.bg = palette(n - 40)
		case n >= 100 && n <= 107:
			l.bg = palette(n - 100 + 8)
		case n == 39:
			l.fg = ""
		case n == 49:
			l.bg = ""
		case n == 38 || n == 48:
			var colour string
			colour, i = extended(numbers, i)
			if n == 38 {
				l.fg = colour
			} else {
				l.bg = colour
			}
		}
	}
	return l
}

// extended reads a colour of 256 or of 24 bits, which begins at numbers[i], and returns where
// it ends.
func extended(numbers []string, i int) (string, int) {
	at := func(k int) int {
		if k >= len(numbers) {
			return 0
		}
		n, _ := strconv.Atoi(numbers[k])
		return n & 255
	}
	switch at(i + 1) {
	case 5:
		return palette(at(i + 2)), i + 2
	case 2:
		return fmt.Sprintf("#%02x%02x%02x", at(i+2), at(i+3), at(i+4)), i + 4
	}
	return "", i + 1
}

// base are the first 16 colours of a terminal.
var base = [...]string{
	"#1c2028", "#ff6b6b", "#5fd787", "#ffd75f", "#5fa8ff", "#c792ea", "#56c8c8", "#c8ccd4",
	"#6b7280", "#ff8787", "#87ffaf", "#ffe08a", "#87c3ff", "#dcb3ff", "#87e0e0", "#ffffff",
}

// palette is one of the 256 colours of a terminal.
func palette(n int) string {
	switch {
	case n < len(base):
		return base[n]
	case n < 232:
		steps := [...]int{0, 95, 135, 175, 215, 255}
		n -= 16
		return fmt.Sprintf("#%02x%02x%02x", steps[n/36], steps[n/6%6], steps[n%6])
	}
	g := 8 + (n-232)*10
	return fmt.Sprintf("#%02x%02x%02x", g, g, g)
}

func draw(w io.Writer, r io.Reader, prompt string) error {
	var lines [][]span
	columns := runewidth.StringWidth(prompt) + 2
	lineHeight := 19
	var now look
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		text := strings.ReplaceAll(in.Text(), "\t", "    ")
		if strings.Contains(text, "\x1b[") || strings.ContainsAny(text, "│█") {
			lineHeight = 17 // so that lines of frames join
		}
		var spans []span
		var width int
		spans, width, now = parse(text, now)
		lines = append(lines, spans)
		columns = max(columns, width)
	}
	if err := in.Err(); err != nil {
		return err
	}
	rows := len(lines)
	if prompt != "" {
		rows++
	}
	width, height := float64(columns)*charWidth+2*margin, rows*lineHeight+2*margin
	p := picture{w: bufio.NewWriter(w), height: float64(lineHeight)}
	fmt.Fprintf(p.w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">`+"\n", width, height)
	fmt.Fprintf(p.w, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	y := float64(margin)
	if prompt != "" {
		p.text(margin, y, []rune("$ "+prompt), look{fg: "#7ee787"})
		y += p.height
	}
	for _, spans := range lines {
		for _, s := range spans {
			p.span(margin+float64(s.column)*charWidth, y, s)
		}
		y += p.height
	}
	fmt.Fprintln(p.w, "</svg>")
	return p.w.Flush()
}

type picture struct {
	w      *bufio.Writer
	height float64 // of a line
}

// span draws what is behind the characters, then those that are shapes, then the others.
func (p *picture) span(x, y float64, s span) {
	fg, bg := s.look.colours()
	wide := float64(runewidth.StringWidth(string(s.text))) * charWidth
	if bg != "" {
		p.rect(x, y, wide, p.height, bg)
	}
	var run []rune
	from, at := x, x
	flush := func() {
		p.text(from, y, run, s.look)
		run = run[:0]
	}
	for _, r := range s.text {
		next := at + float64(runewidth.RuneWidth(r))*charWidth
		if p.shape(at, y, r, fg) {
			flush()
			from = next
		} else {
			run = append(run, r)
		}
		at = next
	}
	flush()
}

// text draws characters at the top left of a line.
func (p *picture) text(x, y float64, text []rune, l look) {
	trimmed := strings.TrimRight(string(text), " ")
	if trimmed == "" && !l.underline {
		return
	}
	if !l.underline && !l.crossed {
		text = []rune(trimmed)
	}
	lead := len(text) - len([]rune(strings.TrimLeft(string(text), " ")))
	if !l.underline && !l.crossed {
		x, text = x+float64(lead)*charWidth, text[lead:]
	}
	fg, _ := l.colours()
	attr := ""
	if l.bold {
		attr += ` font-weight="bold"`
	}
	if l.dim {
		attr += ` opacity="0.6"`
	}
	switch {
	case l.underline:
		attr += ` text-decoration="underline"`
	case l.crossed:
		attr += ` text-decoration="line-through"`
	}
	// textLength keeps the columns in line whatever font there is.
	fmt.Fprintf(p.w, `<text x="%.1f" y="%.1f" fill="%s"%s xml:space="preserve" textLength="%.1f" lengthAdjust="spacingAndGlyphs">`,
		x, y+p.height-5, fg, attr, float64(runewidth.StringWidth(string(text)))*charWidth)
	_ = xml.EscapeText(p.w, []byte(string(text))) // Flush tells
	fmt.Fprint(p.w, "</text>\n")
}

func (p *picture) rect(x, y, w, h float64, fill string) {
	fmt.Fprintf(p.w, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" shape-rendering="crispEdges"/>`+"\n", x, y, w, h, fill)
}

// The arms of lines, from the middle of a character to its sides.
const (
	up = 1 << iota
	right
	down
	left
)

// arms are the characters of lines with straight arms.
var arms = map[rune]int{
	'─': left | right, '│': up | down, '┼': up | right | down | left,
	'┬': left | right | down, '┴': left | right | up, '├': up | down | right, '┤': up | down | left,
	'┌': right | down, '┐': left | down, '└': up | right, '┘': up | left,
	'╴': left, '╵': up, '╶': right, '╷': down,
}

// shape draws lines, blocks and dots, which fonts draw with gaps, and reports whether it did.
func (p *picture) shape(x, y float64, r rune, fg string) bool {
	w, h := charWidth, p.height
	eighth := func(n rune) float64 { return float64(n) / 8 }
	line := func(d string) {
		fmt.Fprintf(p.w, `<path d="%s" stroke="%s" fill="none"/>`+"\n", d, fg)
	}
	cx, cy := x+w/2, y+h/2
	switch {
	case r == '█':
		p.rect(x, y, w, h, fg)
	case r == '▀':
		p.rect(x, y, w, h/2, fg)
	case r >= '▁' && r <= '▇':
		p.rect(x, y+h*(1-eighth(r-'▁'+1)), w, h*eighth(r-'▁'+1), fg)
	case r >= '▉' && r <= '▏':
		p.rect(x, y, w*eighth(8-(r-'█')), h, fg)
	case r == '▐':
		p.rect(x+w/2, y, w/2, h, fg)
	case r >= '░' && r <= '▓':
		fmt.Fprintf(p.w, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" opacity="%.2f" shape-rendering="crispEdges"/>`+"\n", x, y, w, h, fg, 0.25*float64(r-'░'+1))
	case r > 0x2800 && r <= 0x28ff:
		// Bits of braille: three dots down at the left, three at the right, then the fourth row.
		for bit, at := range [8][2]float64{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}} {
			if r&(1<<bit) != 0 {
				fmt.Fprintf(p.w, `<circle cx="%.1f" cy="%.1f" r="1.3" fill="%s"/>`+"\n", x+w*(0.25+0.5*at[0]), y+h*(0.125+0.25*at[1]), fg)
			}
		}
	case arms[r] != 0:
		d := ""
		for i, to := range [...][2]float64{{cx, y}, {x + w, cy}, {cx, y + h}, {x, cy}} {
			if arms[r]&(1<<i) != 0 {
				d += fmt.Sprintf("M%.1f %.1fL%.1f %.1f", cx, cy, to[0], to[1])
			}
		}
		line(d)
	case r == '━':
		p.rect(x, cy-1.5, w, 3, fg)
	case r == '┄' || r == '╌':
		line(fmt.Sprintf("M%.1f %.1fh%.1fm%.1f 0h%.1f", x+w/8, cy, w/4, w/4, w/4))
	case r == '┊' || r == '┆':
		line(fmt.Sprintf("M%.1f %.1fv%.1fm0 %.1fv%.1fm0 %.1fv%.1fm0 %.1fv%.1f", cx, y+h/16, h/8, h/8, h/8, h/8, h/8, h/8, h/8))
	case r == '╭':
		line(fmt.Sprintf("M%.1f %.1fV%.1fQ%.1f %.1f %.1f %.1f", cx, y+h, cy+4, cx, cy, x+w, cy))
	case r == '╮':
		line(fmt.Sprintf("M%.1f %.1fV%.1fQ%.1f %.1f %.1f %.1f", cx, y+h, cy+4, cx, cy, x, cy))
	case r == '╰':
		line(fmt.Sprintf("M%.1f %.1fV%.1fQ%.1f %.1f %.1f %.1f", cx, y, cy-4, cx, cy, x+w, cy))
	case r == '╯':
		line(fmt.Sprintf("M%.1f %.1fV%.1fQ%.1f %.1f %.1f %.1f", cx, y, cy-4, cx, cy, x, cy))
	default:
		return false
	}
	return true
}
