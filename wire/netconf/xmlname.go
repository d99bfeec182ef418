package netconf

import "unicode/utf8"

// Classes of bytes in names.
const (
	nameStart = 1 // may begin a name, or begins a character that has to be looked at
	nameInner = 2 // may not begin a name
)

var nameBytes = func() (t [256]uint8) {
	for c := range len(t) {
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', c == '_', c >= utf8.RuneSelf:
			t[c] = nameStart
		case '0' <= c && c <= '9', c == '-', c == '.':
			t[c] = nameInner
		}
	}
	return t
}()

// isNameRune reports whether a name may hold, or begin with, a character that
// is not ASCII (XML 1.0 fifth edition, productions 4 and 4a).
func isNameRune(r rune, first bool) bool {
	in := func(lo, hi rune) bool { return lo <= r && r <= hi }
	if r == utf8.RuneError {
		return false
	}
	return in(0xC0, 0x2FF) && r != 0xD7 && r != 0xF7 ||
		in(0x370, 0x1FFF) && r != 0x37E ||
		in(0x200C, 0x200D) || in(0x2070, 0x218F) || in(0x2C00, 0x2FEF) ||
		in(0x3001, 0xD7FF) || in(0xF900, 0xFDCF) || in(0xFDF0, 0xFFFD) || in(0x10000, 0xEFFFF) ||
		!first && (r == 0xB7 || in(0x300, 0x36F) || in(0x203F, 0x2040))
}

// name parses the name of an element or attribute.
func (p *parser) name(what string) (prefix, local string, ok bool) {
	start, colon := p.pos, -1
	first := true
	for p.pos < len(p.s) {
		c := p.s[p.pos]
		if c == ':' {
			if colon >= 0 || first {
				return "", "", p.fail(start, "the name of an %s has a colon too many", what)
			}
			colon, first = p.pos, true
			p.pos++
			continue
		}
		size := 1
		if kind := nameBytes[c]; kind == 0 || first && kind != nameStart {
			break
		} else if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(p.s[p.pos:]); !isNameRune(r, first) {
				break
			}
		}
		p.pos += size
		first = false
	}
	switch {
	case first && colon < 0:
		return "", "", p.fail(start, "%s", p.noName(what))
	case first:
		return "", "", p.fail(start, "the name of an %s ends with a colon", what)
	case colon >= 0:
		return p.s[start:colon], p.s[colon+1 : p.pos], true
	}
	return "", p.s[start:p.pos], true
}

// noName tells what is where a name should be.
func (p *parser) noName(what string) string {
	switch {
	case p.has("!DOCTYPE"):
		return "a document type is not allowed in NETCONF"
	case p.has("?"):
		return "processing instructions are not allowed"
	}
	return "the name of an " + what + " is expected"
}
