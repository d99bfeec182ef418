package netconf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Capability is one capability of a [Hello], such as
//
//	urn:ietf:params:netconf:capability:url:1.0?scheme=http,ftp
//	http://www.polatis.com/yang/optical-switch?module=optical-switch&revision=2018-03-22
//
// The second form announces a YANG module (RFC 6020 section 5.6.4).
type Capability struct {
	URI      string   // without the query; of a module, its namespace
	Module   string   // name of the YANG module, "" if it is none
	Revision string   // of the module, as in 2018-03-22; "" if not told
	Features []string // of the module
	Query    string   // all that follows "?", as written
}

// ParseCapability takes a capability apart. Any text is one.
func ParseCapability(s string) Capability {
	var c Capability
	c.URI, c.Query, _ = strings.Cut(strings.Trim(s, whitespace), "?")
	// Some servers escape the ampersand of the XML once too often.
	for param := range strings.SplitSeq(strings.ReplaceAll(c.Query, "&amp;", "&"), "&") {
		key, value, _ := strings.Cut(param, "=")
		switch key {
		case "module":
			c.Module = value
		case "revision":
			c.Revision = value
		case "features":
			if value != "" {
				c.Features = strings.Split(value, ",")
			}
		}
	}
	return c
}

// String returns the capability as it stands in a hello.
func (c Capability) String() string {
	if c.Query == "" {
		return c.URI
	}
	return c.URI + "?" + c.Query
}

// A Hello is the first message of either side (RFC 6241 section 8.1).
type Hello struct {
	Capabilities []string // without white space around
	// SessionID is what the server calls the session. 0 means that there is
	// none, as in the hello of a client. A server that sends none, and a
	// client that sends one, is to be hung up on.
	SessionID uint32
}

// ParseHello reads a hello. What it does not know in there is skipped.
func ParseHello(n *Node) (Hello, error) {
	var h Hello
	if !n.Is(Base, "hello") {
		return h, fmt.Errorf("netconf: the first message must be <hello> of namespace %s, but is %s", Base, describe(n))
	}
	list := n.Child(Base, "capabilities")
	if list == nil {
		return h, fmt.Errorf("netconf: the hello has no <capabilities>: %.200q", n)
	}
	for _, c := range list.Children {
		if c.Is(Base, "capability") {
			h.Capabilities = append(h.Capabilities, strings.Trim(c.Text, whitespace))
		}
	}
	if id := n.Child(Base, "session-id"); id != nil {
		v, err := strconv.ParseUint(strings.Trim(id.Text, whitespace), 10, 32)
		if err != nil || v == 0 {
			return h, fmt.Errorf("netconf: the session-id of the hello must be a number from 1 to 4294967295, but is %.40q", id.Text)
		}
		h.SessionID = uint32(v)
	}
	return h, nil
}

// describe names an element for people.
func describe(n *Node) string {
	switch {
	case n == nil:
		return "nothing"
	case n.Name.Space == "":
		return fmt.Sprintf("<%.60s> of no namespace", n.Name.Local)
	}
	return fmt.Sprintf("<%.60s> of namespace %.120s", n.Name.Local, n.Name.Space)
}

// Node returns the hello as XML.
func (h Hello) Node() *Node {
	list := El(Base, "capabilities")
	for _, c := range h.Capabilities {
		list.Children = append(list.Children, Leaf(Base, "capability", c))
	}
	n := El(Base, "hello", list)
	if h.SessionID != 0 {
		n.Children = append(n.Children, Leaf(Base, "session-id", strconv.FormatUint(uint64(h.SessionID), 10)))
	}
	return n
}

// Has reports whether a capability is announced, given its URI without query.
func (h Hello) Has(uri string) bool {
	return slices.ContainsFunc(h.Capabilities, func(c string) bool {
		u, _, _ := strings.Cut(c, "?")
		return u == uri
	})
}

// Module returns the capability that announces a YANG module, and whether
// there is one.
func (h Hello) Module(name string) (Capability, bool) {
	for _, s := range h.Capabilities {
		if c := ParseCapability(s); c.Module == name && name != "" {
			return c, true
		}
	}
	return Capability{}, false
}

// Negotiate returns the framing for all that follows the two hellos: [Chunked]
// if both sides announce base:1.1. It does not tell whether they have any base
// version in common; they need not talk on if not.
func Negotiate(a, b Hello) Framing {
	if a.Has(Base11Capability) && b.Has(Base11Capability) {
		return Chunked
	}
	return EndOfMessage
}
