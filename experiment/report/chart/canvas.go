package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Widths of drawings, in pixels: a column of text, and the screen of a telephone.
const (
	wide   = 832.0
	narrow = 344.0
)

// Sizes of text, in pixels. They are also in the style.
const (
	textSize  = 13.0
	tickSize  = 11.5
	titleSize = 15.0
)

// canvas collects the elements of a drawing, from top to bottom.
type canvas struct {
	w, y float64 // the width, and how far the drawing reaches down
	b    strings.Builder
}

func newCanvas(width float64) *canvas { return &canvas{w: width, y: 4} }

// slim reports whether there is no room for columns of text beside a plot.
func (c *canvas) slim() bool { return c.w < 500 }

// put writes elements: each {} of the template stands for one of the arguments, which are
// coordinates or text that is escaped already.
func (c *canvas) put(template string, args ...any) {
	for _, a := range args {
		before, after, _ := strings.Cut(template, "{}")
		c.b.WriteString(before)
		switch a := a.(type) {
		case float64:
			c.b.WriteString(num(a))
		case string:
			c.b.WriteString(a)
		}
		template = after
	}
	c.b.WriteString(template)
}

// title writes a heading over what follows; of a file it is larger than of a part.
func (c *canvas) title(text string, large bool) {
	if text == "" {
		return
	}
	class, size := "part", textSize
	if large {
		class, size = "head", titleSize
	}
	c.y += size + 2
	c.text(0, c.y, "start", class, size, text, c.w)
	c.y += 8
}

// text writes a line of text that is not wider than room; what does not fit is cut off, and
// then the whole is a tooltip.
func (c *canvas) text(x, y float64, anchor, class string, size float64, text string, room float64) {
	text = clean(text)
	shown := fit(text, room, size)
	whole := ""
	if shown != text {
		whole = "<title>" + html.EscapeString(text) + "</title>"
	}
	at := ""
	if anchor != "start" {
		at = ` text-anchor="` + anchor + `"`
	}
	if class != "" {
		at += ` class="` + class + `"`
	}
	c.put(`<text x="{}" y="{}"{}>{}{}</text>`, x, y, at, html.EscapeString(shown), whole)
}

// line draws a straight line.
func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	c.put(`<path d="M{} {}L{} {}" class="{}"/>`, x1, y1, x2, y2, class)
}

// rect draws a filled rectangle that is wide enough to be seen.
func (c *canvas) rect(x1, y, x2, height float64, paint string) {
	const least = 1.5
	if x2-x1 < least {
		middle := (x1 + x2) / 2
		x1, x2 = middle-least/2, middle+least/2
	}
	c.put(`<rect x="{}" y="{}" width="{}" height="{}"{}/>`, x1, y, x2-x1, height, paint)
}

// whisker draws an interval: a line with an end at each side.
func (c *canvas) whisker(x1, x2, y, half float64, class string) {
	c.put(`<path d="M{} {}v{}M{} {}H{}M{} {}v{}" class="{}"/>`,
		x1, y-half, 2*half, x1, y, x2, x2, y-half, 2*half, class)
}

// element closes the drawing and returns it as an element of a page.
func (c *canvas) element(f Frame, class string) string {
	return fmt.Sprintf(`<svg class="%s" viewBox="0 0 %s %s" width="%s" height="%s" role="img">%s%s</svg>`,
		class, num(c.w), num(c.y), num(c.w), num(c.y), names(f), c.b.String())
}

// file closes the drawing and returns it as a file.
func (c *canvas) file(f Frame) string {
	const margin = 12
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="oc" viewBox="%d %d %s %s" width="%s" height="%s" role="img">`+
		"%s\n<style>%s</style>\n%s\n"+`<rect x="%d" y="%d" width="100%%" height="100%%" class="ground"/>`+"\n%s</svg>\n",
		-margin, -margin, num(c.w+2*margin), num(c.y+2*margin), num(c.w+2*margin), num(c.y+2*margin),
		names(f), style, defs, -margin, -margin, c.b.String())
}

func names(f Frame) string {
	s := "<title>" + html.EscapeString(clean(f.Title)) + "</title>"
	if f.About != "" {
		s += "<desc>" + html.EscapeString(clean(f.About)) + "</desc>"
	}
	return s
}

// num writes a coordinate: a tenth of a pixel is enough. What is not finite is 0, for a
// drawing must not break; callers leave such things out.
func num(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		x = 0
	}
	s := strconv.FormatFloat(x, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// clean makes a text that XML can hold: other characters become U+FFFD.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r < ' ' || r == 0xFFFE || r == 0xFFFF:
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// fit cuts a text so that it is about as wide as room at most. What is cut out is before the
// end: names that differ often do so there.
func fit(s string, room, size float64) string {
	if textWidth(s, size) <= room {
		return s
	}
	room = (room - textWidth("…", size)) / size
	runes := []rune(s)
	head, tail := 0, len(runes)
	for left := room / 3; head < tail; head++ {
		if left -= runeWidth(runes[head]); left < 0 {
			break
		}
	}
	for left := room * 2 / 3; tail > head; tail-- {
		if left -= runeWidth(runes[tail-1]); left < 0 {
			break
		}
	}
	return strings.TrimRight(string(runes[:head]), " ") + "…" + strings.TrimLeft(string(runes[tail:]), " ")
}

// textWidth is about how wide a text is. Which font shows it is not known, so it is rather
// too large.
func textWidth(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		w += runeWidth(r)
	}
	return w * size
}

// runeWidth is in parts of the size of the text.
func runeWidth(r rune) float64 {
	switch {
	case strings.ContainsRune(" .,:;'|!iljIft()[]/-", r):
		return 0.4
	case strings.ContainsRune("mwMW%@…", r):
		return 0.98
	case r >= 'A' && r <= 'Z':
		return 0.72
	case r >= 0x1100 && (r <= 0x11FF || r >= 0x2E80): // East Asian, emoji
		return 1.05
	}
	return 0.64
}
