package netconf

import (
	"strconv"
	"strings"
	"time"
)

// A Get is the parameters of <get> or <get-config>.
type Get struct {
	Source string // the datastore, "running" for example; "" for <get>
	Filter *Node  // <filter> for [Filter], nil if there is none
}

// ParseGet reads a <get> or <get-config>. Filters other than of type subtree
// are refused.
func ParseGet(op *Node) (Get, *Error) {
	var g Get
	for _, c := range op.Children {
		switch {
		case c.Is(Base, "filter") && g.Filter == nil:
			typ, ok := c.Attr("", "type")
			if !ok {
				typ, ok = c.Attr(Base, "type") // some clients write nc:type
			}
			if ok && typ != "subtree" {
				return g, NewError(TypeProtocol, BadAttribute, "filters of type %.40q are not supported, only subtree", typ).
					with("bad-attribute", "type", "bad-element", "filter")
			}
			g.Filter = c
		case c.Is(Base, "source") && g.Source == "" && op.Name.Local == "get-config":
			var err *Error
			if g.Source, err = datastore(c); err != nil {
				return g, err
			}
		default:
			return g, unexpected(c)
		}
	}
	if g.Source == "" && op.Name.Local == "get-config" {
		return g, NewMissingElement(TypeProtocol, "source")
	}
	return g, nil
}

// datastore returns the name inside <source> or <target>.
func datastore(n *Node) (string, *Error) {
	if len(n.Children) != 1 {
		return "", NewBadElement(TypeProtocol, n.Name.Local, "<%s> must name one datastore", n.Name.Local)
	}
	c := n.Children[0]
	if c.Name.Space != Base {
		return "", unexpected(c)
	}
	switch c.Name.Local {
	case "running", "candidate", "startup":
		return c.Name.Local, nil
	case "url":
		return "", NewError(TypeProtocol, OperationNotSupported, "the capability :url is not supported")
	}
	return "", unexpected(c)
}

// unexpected returns the error for a parameter of an operation of the base
// namespace that is unknown or is given again.
func unexpected(n *Node) *Error {
	if n.Name.Space != Base && n.Name.Space != NotificationNS {
		return NewUnknownNamespace(TypeProtocol, n)
	}
	return NewUnknownElement(TypeProtocol, n)
}

// ParseTarget reads the datastore of a <lock> or <unlock>.
func ParseTarget(op *Node) (string, *Error) {
	var target string
	for _, c := range op.Children {
		if !c.Is(Base, "target") || target != "" {
			return "", unexpected(c)
		}
		var err *Error
		if target, err = datastore(c); err != nil {
			return "", err
		}
	}
	if target == "" {
		return "", NewMissingElement(TypeProtocol, "target")
	}
	return target, nil
}

// ParseKillSession reads the session of a <kill-session>. Whether there is
// such a session, and that it is another one, has to be checked elsewhere.
func ParseKillSession(op *Node) (uint32, *Error) {
	id := op.Child(Base, "session-id")
	if id == nil {
		return 0, NewMissingElement(TypeProtocol, "session-id")
	}
	v, err := strconv.ParseUint(strings.Trim(id.Text, whitespace), 10, 32)
	if err != nil || v == 0 {
		return 0, NewError(TypeProtocol, InvalidValue, "a session-id must be a number from 1 to 4294967295, but is %.40q", id.Text).
			with("bad-element", "session-id")
	}
	return uint32(v), nil
}

// A Subscription is the parameters of <create-subscription> (RFC 5277 section
// 2.1.1).
type Subscription struct {
	Stream string // default NETCONF
	Filter *Node  // nil for all events
	// Start asks for a replay of what was logged since, Stop ends the
	// subscription. They are zero if not given.
	Start, Stop time.Time
}

// ParseSubscription reads a <create-subscription>. Whether the start is in the
// future has to be checked elsewhere.
func ParseSubscription(op *Node) (Subscription, *Error) {
	s := Subscription{Stream: "NETCONF"}
	instant := func(n *Node, t *time.Time) *Error {
		v, err := time.Parse(time.RFC3339, strings.Trim(n.Text, whitespace))
		if err != nil {
			return NewBadElement(TypeProtocol, n.Name.Local, "%s is no time of RFC 3339: %.60q", n.Name.Local, n.Text)
		}
		*t = v
		return nil
	}
	for _, c := range op.Children {
		var err *Error
		switch {
		case c.Is(NotificationNS, "stream"):
			s.Stream = strings.Trim(c.Text, whitespace)
		case c.Is(NotificationNS, "filter"), c.Is(Base, "filter"): // ncclient has it in the wrong namespace
			if typ, ok := c.Attr("", "type"); ok && typ != "subtree" {
				return s, NewError(TypeProtocol, BadAttribute, "filters of type %.40q are not supported, only subtree", typ).
					with("bad-attribute", "type", "bad-element", "filter")
			}
			s.Filter = c
		case c.Is(NotificationNS, "startTime"):
			err = instant(c, &s.Start)
		case c.Is(NotificationNS, "stopTime"):
			err = instant(c, &s.Stop)
		default:
			err = unexpected(c)
		}
		if err != nil {
			return s, err
		}
	}
	switch {
	case s.Stop.IsZero():
	case s.Start.IsZero():
		return s, NewMissingElement(TypeProtocol, "startTime")
	case !s.Stop.After(s.Start):
		return s, NewBadElement(TypeProtocol, "stopTime", "stopTime must be later than startTime")
	}
	return s, nil
}
