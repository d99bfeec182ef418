package netconf

import (
	"encoding/xml"
	"strconv"
	"unicode/utf8"
)

// Append appends n as XML to dst and returns the extended slice. With an empty
// indent there is no white space between elements; otherwise each element
// begins a line of its own and is indented by one more indent than the one
// around it. Elements that have text are never broken up.
//
// Namespaces of elements are declared as the default where they change.
// Attributes of a namespace get a prefix that is declared in n, or one that is
// made up. Text is escaped so that "]]>" cannot occur; characters that XML
// does not allow become U+FFFD. Names are written as they are.
func (n *Node) Append(dst []byte, indent string) []byte {
	return appendNode(dst, n, indent, "", nil, 0)
}

// appendNode writes n at a depth, where space is the default namespace and
// scope the prefixes declared.
func appendNode(dst []byte, n *Node, indent, space string, scope []binding, depth int) []byte {
	dst = append(dst, '<')
	dst = append(dst, n.Name.Local...)
	if n.Name.Space != space {
		dst = append(dst, ` xmlns="`...)
		dst = appendEscaped(dst, n.Name.Space, true)
		dst = append(dst, '"')
	}
	if len(n.Attrs) > 0 {
		dst, scope = appendAttrs(dst, n.Attrs, scope)
	}
	if n.Text == "" && len(n.Children) == 0 {
		return append(dst, '/', '>')
	}
	dst = append(dst, '>')
	dst = appendEscaped(dst, n.Text, false)
	if n.Text != "" {
		indent = ""
	}
	for _, c := range n.Children {
		dst = appendLine(dst, indent, depth+1)
		dst = appendNode(dst, c, indent, n.Name.Space, scope, depth+1)
	}
	if len(n.Children) > 0 {
		dst = appendLine(dst, indent, depth)
	}
	dst = append(dst, '<', '/')
	dst = append(dst, n.Name.Local...)
	return append(dst, '>')
}

// appendLine begins a line, if there are any.
func appendLine(dst []byte, indent string, depth int) []byte {
	if indent == "" {
		return dst
	}
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, indent...)
	}
	return dst
}

// appendAttrs writes attributes and returns the prefixes in scope with them.
func appendAttrs(dst []byte, attrs []xml.Attr, scope []binding) ([]byte, []binding) {
	for _, a := range attrs {
		if isDeclaration(a) {
			scope = append(scope, binding{a.Name.Local, a.Value})
		}
	}
	for _, a := range attrs {
		prefix := a.Name.Space
		switch prefix {
		case "":
			if a.Name.Local == xmlnsPrefix {
				continue // what it would say is in the names
			}
		case xmlnsPrefix:
		case xmlURI:
			prefix = xmlPrefix
		default:
			var declared bool
			if prefix, declared = findPrefix(scope, a.Name.Space); !declared {
				scope = append(scope, binding{prefix, a.Name.Space})
				dst = appendAttr(dst, xmlnsPrefix, prefix, a.Name.Space)
			}
		}
		dst = appendAttr(dst, prefix, a.Name.Local, a.Value)
	}
	return dst, scope
}

func appendAttr(dst []byte, prefix, local, value string) []byte {
	dst = append(dst, ' ')
	if prefix != "" {
		dst = append(dst, prefix...)
		dst = append(dst, ':')
	}
	dst = append(dst, local...)
	dst = append(dst, '=', '"')
	dst = appendEscaped(dst, value, true)
	return append(dst, '"')
}

// findPrefix returns a prefix for a namespace, and whether it is in scope; if
// not, the prefix is new.
func findPrefix(scope []binding, uri string) (prefix string, declared bool) {
	lookup := func(prefix string) (uri string, ok bool) {
		for i := len(scope) - 1; i >= 0; i-- {
			if scope[i].prefix == prefix {
				return scope[i].uri, true
			}
		}
		return "", false
	}
	for i := len(scope) - 1; i >= 0; i-- {
		if scope[i].uri == uri {
			if u, _ := lookup(scope[i].prefix); u == uri {
				return scope[i].prefix, true
			}
		}
	}
	prefix = "nc" // what everybody calls the base namespace
	for i := 1; ; i++ {
		if _, taken := lookup(prefix); !taken && (uri == Base || i > 1) {
			return prefix, false
		}
		prefix = "ns" + strconv.Itoa(i)
	}
}

// appendEscaped appends text, or the value of an attribute.
func appendEscaped(dst []byte, s string, attr bool) []byte {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		size, esc := 1, ""
		switch {
		case c == '&':
			esc = "&amp;"
		case c == '<':
			esc = "&lt;"
		case c == '>':
			esc = "&gt;"
		case c == '\r':
			esc = "&#13;"
		case c == '"' && attr:
			esc = "&quot;"
		case c == '\n' && attr:
			esc = "&#10;"
		case c == '\t' && attr:
			esc = "&#9;"
		case c == '\n', c == '\t', c >= ' ' && c < utf8.RuneSelf:
		default:
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); !isChar(r) || r == utf8.RuneError && size == 1 {
				esc = string(utf8.RuneError)
			}
		}
		if esc != "" {
			dst = append(dst, s[from:i]...)
			dst = append(dst, esc...)
			from = i + size
		}
		i += size
	}
	return append(dst, s[from:]...)
}
