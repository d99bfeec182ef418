package netconf

import (
	"encoding/xml"
	"slices"
	"strings"
)

// A Node is an XML element.
//
// Nodes are passed around by pointer and shared freely, between trees too:
// what [Filter] and [Edit] return shares nodes with what they were given. So
// treat a Node as immutable once it has been handed on, and [Node.Clone] it to
// change it.
type Node struct {
	// Name is the name with the URI of its namespace in Space, "" for none.
	Name xml.Name
	// Attrs are the attributes in the order written. Default namespace
	// declarations are not among them, as they are in the names. Declarations
	// of prefixes are, with Space "xmlns" as in encoding/xml, since text may
	// refer to them; they do not matter to [Equal], [Filter] and [Edit].
	Attrs []xml.Attr
	// Children are the child elements in the order written.
	Children []*Node
	// Text is the character data, entities and CDATA resolved and otherwise
	// exactly as written, blanks included. Of an element that has children as
	// well it is all that stands between them, or "" if that is white space.
	Text string
}

// El returns an element with children.
func El(space, local string, children ...*Node) *Node {
	return &Node{Name: xml.Name{Space: space, Local: local}, Children: children}
}

// Leaf returns an element with text.
func Leaf(space, local, text string) *Node {
	return &Node{Name: xml.Name{Space: space, Local: local}, Text: text}
}

// Is reports whether n is an element of that name. It may be nil.
func (n *Node) Is(space, local string) bool {
	return n != nil && n.Name.Local == local && n.Name.Space == space
}

// Child returns the first child of that name, or nil. An empty space stands
// for any namespace. n may be nil, so that calls can be chained.
func (n *Node) Child(space, local string) *Node {
	if n == nil {
		return nil
	}
	for _, c := range n.Children {
		if c.Name.Local == local && (space == "" || c.Name.Space == space) {
			return c
		}
	}
	return nil
}

// Value returns the text of the first child of that name in any namespace,
// exactly as written, or "" if there is none. n may be nil.
func (n *Node) Value(local string) string {
	if c := n.Child("", local); c != nil {
		return c.Text
	}
	return ""
}

// Attr returns the value of an attribute and whether there is one. An empty
// space stands for attributes without namespace.
func (n *Node) Attr(space, local string) (string, bool) {
	for _, a := range n.Attrs {
		if a.Name.Local == local && a.Name.Space == space {
			return a.Value, true
		}
	}
	return "", false
}

// Clone returns a deep copy that shares no memory with n. What [Parse] returns
// keeps the whole message in memory for as long as any part of it is in use; a
// clone does not.
func (n *Node) Clone() *Node {
	if n == nil {
		return nil
	}
	c := &Node{Name: cloneName(n.Name), Text: strings.Clone(n.Text)}
	if n.Attrs != nil {
		c.Attrs = make([]xml.Attr, len(n.Attrs))
		for i, a := range n.Attrs {
			c.Attrs[i] = xml.Attr{Name: cloneName(a.Name), Value: strings.Clone(a.Value)}
		}
	}
	if n.Children != nil {
		c.Children = make([]*Node, len(n.Children))
		for i, child := range n.Children {
			c.Children[i] = child.Clone()
		}
	}
	return c
}

func cloneName(n xml.Name) xml.Name {
	return xml.Name{Space: strings.Clone(n.Space), Local: strings.Clone(n.Local)}
}

// String returns n as compact XML, for messages and tests.
func (n *Node) String() string {
	if n == nil {
		return ""
	}
	return string(n.Append(nil, ""))
}

// Equal reports whether two elements are the same to a reader: names,
// attributes in any order, text, and children in the same order. Declarations
// of prefixes do not count.
func Equal(a, b *Node) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && a.Name == b.Name && a.Text == b.Text &&
		sameAttrs(a.Attrs, b.Attrs) && slices.EqualFunc(a.Children, b.Children, Equal)
}

func sameAttrs(a, b []xml.Attr) bool {
	return contains(a, b) && contains(b, a)
}

// contains reports whether all attributes of b, but for declarations, are
// among those of a.
func contains(a, b []xml.Attr) bool {
	for _, x := range b {
		if !isDeclaration(x) && !slices.Contains(a, x) {
			return false
		}
	}
	return true
}

// isDeclaration reports whether an attribute declares a prefix.
func isDeclaration(a xml.Attr) bool { return a.Name.Space == xmlnsPrefix }
