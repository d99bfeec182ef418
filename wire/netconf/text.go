package netconf

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const whitespace = " \t\r\n"

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// isBlank reports whether s is white space or empty.
func isBlank(s string) bool {
	for i := range len(s) {
		if !isSpace(s[i]) {
			return false
		}
	}
	return true
}

// isChar reports whether a character may occur in XML at all (production 2).
func isChar(r rune) bool {
	return r >= ' ' && r < 0xD800 || r == '\t' || r == '\n' || r == '\r' ||
		r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= utf8.MaxRune
}

// plain has the bytes of text that are taken as they are.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '<' && c != '&' && c != ']'
	}
	t['\t'], t['\n'] = true, true
	return t
}()

// text parses character data up to the next '<' and adds it to the current
// element.
func (p *parser) text() bool {
	s, from := p.s, p.pos
	var buf []byte // what was before from, if it is not as written
	for p.pos < len(s) {
		c := s[p.pos]
		if plain[c] {
			p.pos++
			continue
		}
		switch {
		case c == '<':
			return p.addText(buf, from)
		case c == ']':
			if p.has("]]>") {
				return p.fail(p.pos, `"]]>" must be written as "]]&gt;" in text`)
			}
			p.pos++
		case c == '&':
			buf = append(buf, s[from:p.pos]...)
			r, ok := p.reference()
			if !ok {
				return false
			}
			buf = utf8.AppendRune(buf, r)
			from = p.pos
		case c == '\r':
			buf = append(buf, s[from:p.pos]...)
			buf = append(buf, '\n')
			p.lineEnd()
			from = p.pos
		default:
			if !p.char() {
				return false
			}
		}
	}
	return p.addText(buf, from)
}

// lineEnd skips the line end at pos, which XML reads as one '\n'.
func (p *parser) lineEnd() {
	p.pos++
	if p.has("\n") {
		p.pos++
	}
}

// addText adds buf and what has been read since from to the current element.
func (p *parser) addText(buf []byte, from int) bool {
	t := p.s[from:p.pos]
	if buf != nil {
		t = string(append(buf, t...))
	}
	p.join(t)
	return true
}

// join adds t to the text of the current element. Among children only what is
// not white space counts.
func (p *parser) join(t string) {
	switch f := p.top(); {
	case f.kids < len(p.kids) && isBlank(t):
	case f.text != nil:
		f.text = append(f.text, t...)
	case f.node.Text == "":
		f.node.Text = t
	default:
		f.text = append([]byte(f.node.Text), t...)
	}
}

// dropBlank drops text that is white space and turns out to be before a child.
func (f *frame) dropBlank() {
	if f.text != nil {
		f.node.Text, f.text = string(f.text), nil
	}
	if isBlank(f.node.Text) {
		f.node.Text = ""
	}
}

// char skips the character at pos, which is not plain ASCII.
func (p *parser) char() bool {
	r, size := utf8.DecodeRuneInString(p.s[p.pos:])
	switch {
	case r == utf8.RuneError && size == 1:
		return p.fail(p.pos, "there is a byte that is not UTF-8")
	case !isChar(r):
		return p.fail(p.pos, "the character %U is not allowed in XML", r)
	}
	p.pos += size
	return true
}

// chars checks the characters from pos to end, and goes there.
func (p *parser) chars(end int) bool {
	for p.pos < end {
		if c := p.s[p.pos]; c >= ' ' && c < utf8.RuneSelf {
			p.pos++
		} else if !p.char() {
			return false
		}
	}
	return true
}

// reference parses what begins with '&' at pos.
func (p *parser) reference() (rune, bool) {
	const longest = len("&#x0010FFFF;")
	rest := p.s[p.pos:min(p.pos+longest, len(p.s))]
	end := strings.IndexByte(rest, ';')
	if end < 0 {
		return 0, p.fail(p.pos, `"&" must be written as "&amp;", or be ended by ";"`)
	}
	r, name := rune(0), rest[1:end]
	switch name {
	case "lt":
		r = '<'
	case "gt":
		r = '>'
	case "amp":
		r = '&'
	case "apos":
		r = '\''
	case "quot":
		r = '"'
	default:
		digits, isNumber := strings.CutPrefix(name, "#")
		if !isNumber {
			return 0, p.fail(p.pos, "the entity %q is unknown", name)
		}
		base := 10
		if hex, ok := strings.CutPrefix(digits, "x"); ok {
			digits, base = hex, 16
		}
		// ParseUint takes neither signs nor, with a base, underscores.
		v, err := strconv.ParseUint(digits, base, 31)
		if err != nil || !isChar(rune(v)) {
			return 0, p.fail(p.pos, "%q is not a character of XML", name)
		}
		r = rune(v)
	}
	p.pos += end + 1
	return r, true
}

// comment skips a comment that begins at pos.
func (p *parser) comment() bool {
	start := p.pos
	p.pos += len("<!--")
	n := strings.Index(p.s[p.pos:], "--")
	if n < 0 {
		return p.fail(start, "a comment is not closed")
	}
	if !p.chars(p.pos + n) {
		return false
	}
	if !p.has("-->") {
		return p.fail(p.pos, `"--" is not allowed in a comment`)
	}
	p.pos += len("-->")
	return true
}

// cdata parses a CDATA section that begins at pos.
func (p *parser) cdata() bool {
	start := p.pos
	p.pos += len("<![CDATA[")
	n := strings.Index(p.s[p.pos:], "]]>")
	if n < 0 {
		return p.fail(start, "a CDATA section is not closed")
	}
	t := p.s[p.pos : p.pos+n]
	if !p.chars(p.pos + n) {
		return false
	}
	p.pos += len("]]>")
	if strings.IndexByte(t, '\r') >= 0 {
		t = strings.ReplaceAll(strings.ReplaceAll(t, "\r\n", "\n"), "\r", "\n")
	}
	p.join(t)
	return true
}
