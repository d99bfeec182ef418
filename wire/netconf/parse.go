package netconf

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Limits of what [Parse] accepts. They are far beyond what a device of a
// thousand ports sends, and keep the memory and time a message can cost
// proportional to its length.
const (
	MaxDepth    = 128     // elements within each other
	MaxNodes    = 1 << 18 // elements and attributes of a message
	MaxAttrs    = 64      // attributes of an element, declarations too
	MaxPrefixes = 128     // declarations of prefixes in scope
)

// A SyntaxError is text that is not well-formed XML, or XML that [Parse]
// refuses.
type SyntaxError struct {
	Line    int    // counted from 1
	Offset  int    // in bytes, counted from 0
	Excerpt string // the text there
	Msg     string // one clause, without position
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("netconf: %s in line %d, byte %d of the message, at %q", e.Msg, e.Line, e.Offset, e.Excerpt)
}

// Parse parses a message, which is one XML element in UTF-8, perhaps behind an
// XML declaration. Comments are dropped, and so is white space between
// elements. Prefixes of elements and attributes are resolved; those in text
// are not.
//
// Parse is strict: what is not well-formed by XML 1.0 and Namespaces in XML is
// refused with a [*SyntaxError], and so are document types, entities other
// than the five of XML and processing instructions, which RFC 6241 section 3
// or common sense forbid in a message, and whatever exceeds [MaxDepth] and the
// other limits.
//
// The result does not refer to msg.
func Parse(msg []byte) (*Node, error) {
	// Room for all but deep or wide messages, in one piece.
	var room struct {
		frames   [16]frame
		kids     [32]*Node
		raw      [8]rawAttr
		bindings [8]binding
	}
	p := parser{
		s:        string(msg),
		frames:   room.frames[:0],
		kids:     room.kids[:0],
		raw:      room.raw[:0],
		bindings: room.bindings[:0],
	}
	n := p.document()
	if p.err != nil {
		return nil, p.err
	}
	return n, nil
}

const (
	xmlPrefix   = "xml"
	xmlnsPrefix = "xmlns"
	xmlURI      = "http://www.w3.org/XML/1998/namespace"
	xmlnsURI    = "http://www.w3.org/2000/xmlns/"
)

// A binding is a prefix in scope.
type binding struct{ prefix, uri string }

// A frame is an element whose end has not come.
type frame struct {
	node     *Node
	tag      string // its name as written
	space    string // default namespace inside
	kids     int    // index in parser.kids of its first child
	bindings int    // length of parser.bindings outside
	text     []byte // its text, if that is in several pieces; in node.Text otherwise
}

// A rawAttr is an attribute as written.
type rawAttr struct {
	prefix, local, value string
	at                   int
}

type parser struct {
	s   string
	pos int
	err *SyntaxError

	frames   []frame
	kids     []*Node // children so far of all elements in frames
	bindings []binding
	raw      []rawAttr // of the current tag
	count    int       // of elements and attributes

	// Memory for many nodes, attributes and lists of children at once.
	nodes    []Node
	attrs    []xml.Attr
	pointers []*Node
}

// fail notes the first error and returns false, so that callers return it.
func (p *parser) fail(at int, format string, args ...any) bool {
	if p.err == nil {
		at = min(at, len(p.s))
		p.err = &SyntaxError{
			Line:    1 + strings.Count(p.s[:at], "\n"),
			Offset:  at,
			Excerpt: p.s[at:min(at+excerptLen, len(p.s))],
			Msg:     fmt.Sprintf(format, args...),
		}
	}
	return false
}

func (p *parser) has(prefix string) bool { return strings.HasPrefix(p.s[p.pos:], prefix) }

func (p *parser) skipSpace() {
	for p.pos < len(p.s) && isSpace(p.s[p.pos]) {
		p.pos++
	}
}

// document parses all of the message.
func (p *parser) document() *Node {
	// White space before the declaration is not XML, but what a line end
	// behind the last "]]>]]>" leaves.
	p.skipSpace()
	if p.has("<?xml") && p.pos+5 < len(p.s) && isSpace(p.s[p.pos+5]) && !p.declaration() {
		return nil
	}
	if !p.misc() {
		return nil
	}
	if p.pos == len(p.s) {
		p.fail(p.pos, "there is no element")
		return nil
	}
	if p.s[p.pos] != '<' {
		p.fail(p.pos, "there is text before the first element")
		return nil
	}
	root := p.root()
	if p.err != nil || !p.misc() {
		return nil
	}
	if p.pos < len(p.s) {
		p.fail(p.pos, "there is something behind the end of the message")
		return nil
	}
	return root
}

// misc skips white space and comments.
func (p *parser) misc() bool {
	for {
		p.skipSpace()
		if !p.has("<!--") {
			return true
		}
		if !p.comment() {
			return false
		}
	}
}

// declaration parses <?xml ...?>.
func (p *parser) declaration() bool {
	start := p.pos
	p.pos += len("<?xml")
	if !p.attributes() {
		return false
	}
	if !p.has("?>") {
		return p.fail(p.pos, "the XML declaration is not closed")
	}
	p.pos += 2
	version := false
	for _, a := range p.raw {
		switch {
		case a.prefix != "":
			return p.fail(a.at, "the XML declaration has an unknown attribute")
		case a.local == "version":
			version = true
			if a.value != "1.0" {
				return p.fail(a.at, "only XML 1.0 is understood")
			}
		case a.local == "encoding":
			if !strings.EqualFold(a.value, "UTF-8") {
				return p.fail(a.at, "only UTF-8 is understood")
			}
		case a.local != "standalone":
			return p.fail(a.at, "the XML declaration has an unknown attribute")
		}
	}
	if !version {
		return p.fail(start, "the XML declaration has no version")
	}
	return true
}

// root parses an element with all that is in it.
func (p *parser) root() *Node {
	root := p.startTag()
	for p.err == nil && len(p.frames) > 0 {
		if p.pos == len(p.s) {
			p.fail(p.pos, "the element %.40q is not closed", p.top().tag)
			break
		}
		if p.s[p.pos] != '<' {
			p.text()
			continue
		}
		rest := p.s[p.pos+1:]
		switch {
		case rest == "":
			p.fail(p.pos, "a tag is not closed")
		case rest[0] == '/':
			p.endTag()
		case rest[0] == '!' && strings.HasPrefix(rest, "!--"):
			p.comment()
		case rest[0] == '!' && strings.HasPrefix(rest, "![CDATA["):
			p.cdata()
		default:
			p.startTag()
		}
	}
	return root
}

func (p *parser) top() *frame { return &p.frames[len(p.frames)-1] }

// startTag parses a tag that begins at pos, and opens the element unless it is
// an empty-element tag.
func (p *parser) startTag() *Node {
	start := p.pos
	p.pos++
	prefix, local, ok := p.name("element")
	if !ok {
		return nil
	}
	tag := p.s[start+1 : p.pos]
	f := frame{tag: tag, kids: len(p.kids), bindings: len(p.bindings)}
	if len(p.frames) > 0 {
		f.space = p.top().space
	}

	n := p.newNode()
	if p.pos < len(p.s) && p.s[p.pos] != '>' {
		if !p.attributes() || !p.resolve(n, &f) {
			return nil
		}
	}
	n.Name.Local = local
	n.Name.Space = f.space
	if prefix != "" {
		if n.Name.Space, ok = p.lookup(prefix, start+1); !ok {
			return nil
		}
		if n.Name.Space == xmlURI {
			p.fail(start, "an element cannot have the prefix xml")
			return nil
		}
	}

	if p.count++; p.count > MaxNodes {
		p.fail(start, "there are more than %d elements and attributes", MaxNodes)
		return nil
	}
	if len(p.frames) > 0 {
		if outer := p.top(); outer.kids == len(p.kids) {
			outer.dropBlank()
		}
		p.kids = append(p.kids, n)
		f.kids++
	}
	switch {
	case p.has(">"):
		p.pos++
		if len(p.frames) == MaxDepth {
			p.fail(start, "more than %d elements are within each other", MaxDepth)
			return nil
		}
		f.node = n
		p.frames = append(p.frames, f)
	case p.has("/>"):
		p.pos += 2
		p.bindings = p.bindings[:f.bindings]
	default:
		p.fail(start, "the tag of %.40q is not closed", tag)
	}
	return n
}

// endTag parses a tag that begins at pos with "</".
func (p *parser) endTag() {
	f := p.top()
	start := p.pos
	p.pos += 2
	if !p.has(f.tag) {
		p.fail(start, "the element %.40q is not closed", f.tag)
		return
	}
	p.pos += len(f.tag)
	p.skipSpace()
	if !p.has(">") {
		p.fail(start, "the element %.40q is not closed", f.tag)
		return
	}
	p.pos++
	if f.text != nil {
		f.node.Text = string(f.text)
	}
	f.node.Children = p.children(p.kids[f.kids:])
	p.kids = p.kids[:f.kids]
	p.bindings = p.bindings[:f.bindings]
	p.frames = p.frames[:len(p.frames)-1]
}

// newNode returns a zero Node.
func (p *parser) newNode() *Node {
	const most = 4096
	if len(p.nodes) == 0 {
		size := most
		if p.count == 0 {
			// Most elements have a tag to begin and a tag to end.
			size = min(strings.Count(p.s, "<")/2+1, most)
		}
		p.nodes = make([]Node, size)
	}
	n := &p.nodes[0]
	p.nodes = p.nodes[1:]
	return n
}

// newAttrs returns n attributes.
func (p *parser) newAttrs(n int) []xml.Attr {
	if len(p.attrs) < n {
		if p.attrs == nil {
			p.attrs = make([]xml.Attr, n) // few messages have any but on the first element
		} else {
			p.attrs = make([]xml.Attr, max(n, 32))
		}
	}
	a := p.attrs[:n:n]
	p.attrs = p.attrs[n:]
	return a
}

// children returns a copy of kids.
func (p *parser) children(kids []*Node) []*Node {
	n := len(kids)
	if n == 0 {
		return nil
	}
	if len(p.pointers) < n {
		// No more than the nodes at hand are to come before the next ones.
		p.pointers = make([]*Node, n+len(p.kids)+len(p.nodes))
	}
	c := p.pointers[:n:n]
	p.pointers = p.pointers[n:]
	copy(c, kids)
	return c
}
