package netconf

import (
	"encoding/xml"
	"strings"
	"unicode/utf8"
)

// attributes parses the attributes of a tag into p.raw, up to and without
// what closes the tag.
func (p *parser) attributes() bool {
	p.raw = p.raw[:0]
	for {
		start := p.pos
		p.skipSpace()
		if p.pos == len(p.s) || strings.IndexByte("/>?", p.s[p.pos]) >= 0 {
			return true
		}
		if p.pos == start {
			return p.fail(p.pos, "white space must precede an attribute")
		}
		if len(p.raw) == MaxAttrs {
			return p.fail(p.pos, "an element has more than %d attributes", MaxAttrs)
		}
		a := rawAttr{at: p.pos}
		var ok bool
		if a.prefix, a.local, ok = p.name("attribute"); !ok {
			return false
		}
		p.skipSpace()
		if !p.has("=") {
			return p.fail(p.pos, "an attribute has no value")
		}
		p.pos++
		p.skipSpace()
		if a.value, ok = p.attributeValue(); !ok {
			return false
		}
		for _, b := range p.raw {
			if a.prefix == b.prefix && a.local == b.local {
				return p.fail(a.at, "an attribute is given twice")
			}
		}
		p.raw = append(p.raw, a)
	}
}

// resolve sets n.Attrs from p.raw and opens the scope of its declarations.
func (p *parser) resolve(n *Node, f *frame) bool {
	if len(p.raw) == 0 {
		return true
	}
	size := 0
	for _, a := range p.raw {
		switch {
		case a.prefix == xmlnsPrefix:
			if !p.declare(a) {
				return false
			}
			size++
		case a.prefix == "" && a.local == xmlnsPrefix:
			if a.value == xmlURI || a.value == xmlnsURI {
				return p.fail(a.at, "a reserved namespace is declared as the default")
			}
			f.space = a.value
		default:
			size++
		}
	}
	if p.count += size; p.count > MaxNodes {
		return p.fail(p.raw[0].at, "there are more than %d elements and attributes", MaxNodes)
	}
	if size == 0 {
		return true
	}
	attrs := p.newAttrs(size)[:0]
	for _, a := range p.raw {
		if a.prefix == "" && a.local == xmlnsPrefix {
			continue
		}
		name := xml.Name{Space: a.prefix, Local: a.local}
		if a.prefix != "" && a.prefix != xmlnsPrefix {
			var ok bool
			if name.Space, ok = p.lookup(a.prefix, a.at); !ok {
				return false
			}
			for _, b := range attrs {
				if b.Name == name {
					return p.fail(a.at, "an attribute is given twice, with two prefixes")
				}
			}
		}
		attrs = append(attrs, xml.Attr{Name: name, Value: a.value})
	}
	n.Attrs = attrs
	return true
}

// declare opens the scope of a prefix.
func (p *parser) declare(a rawAttr) bool {
	switch {
	case a.value == "":
		return p.fail(a.at, "the prefix %.40q is declared without a namespace", a.local)
	case a.local == xmlnsPrefix, a.value == xmlnsURI, (a.local == xmlPrefix) != (a.value == xmlURI):
		return p.fail(a.at, "a reserved prefix or namespace is declared")
	case len(p.bindings) == MaxPrefixes:
		return p.fail(a.at, "more than %d declarations of prefixes are in scope", MaxPrefixes)
	}
	p.bindings = append(p.bindings, binding{a.local, a.value})
	return true
}

// lookup returns the namespace of a prefix.
func (p *parser) lookup(prefix string, at int) (string, bool) {
	for i := len(p.bindings) - 1; i >= 0; i-- {
		if p.bindings[i].prefix == prefix {
			return p.bindings[i].uri, true
		}
	}
	if prefix == xmlPrefix {
		return xmlURI, true
	}
	return "", p.fail(at, "the prefix %.40q is not declared", prefix)
}

// attributeValue parses the quoted value at pos. White space that is not
// written as a reference becomes blanks, as XML 1.0 section 3.3.3 has it.
func (p *parser) attributeValue() (string, bool) {
	if !p.has(`"`) && !p.has("'") {
		return "", p.fail(p.pos, "the value of an attribute must be in quotes")
	}
	quote, start := p.s[p.pos], p.pos
	p.pos++
	from := p.pos
	var buf []byte
	for p.pos < len(p.s) {
		c := p.s[p.pos]
		switch {
		case c == quote:
			v := p.s[from:p.pos]
			if buf != nil {
				v = string(append(buf, v...))
			}
			p.pos++
			return v, true
		case c == '<':
			return "", p.fail(p.pos, `"<" must be written as "&lt;" in an attribute`)
		case c == '&':
			buf = append(buf, p.s[from:p.pos]...)
			r, ok := p.reference()
			if !ok {
				return "", false
			}
			buf = utf8.AppendRune(buf, r)
			from = p.pos
		case c == '\t' || c == '\n' || c == '\r':
			buf = append(buf, p.s[from:p.pos]...)
			buf = append(buf, ' ')
			if c == '\r' {
				p.lineEnd()
			} else {
				p.pos++
			}
			from = p.pos
		case c >= ' ' && c < utf8.RuneSelf:
			p.pos++
		default:
			if !p.char() {
				return "", false
			}
		}
	}
	return "", p.fail(start, "the value of an attribute is not closed")
}
