package netconf

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"time"
)

// An RPC is a request (RFC 6241 section 4.1).
type RPC struct {
	MessageID string
	// Attrs are all attributes, message-id and declarations of prefixes among
	// them. The reply has to repeat them.
	Attrs []xml.Attr
	// Operation is the element inside.
	Operation *Node
}

// ParseRPC reads a request. With an error, which is to be sent as the reply,
// the RPC holds what could be made out.
func ParseRPC(n *Node) (RPC, *Error) {
	if !n.Is(Base, "rpc") {
		if n == nil || n.Name.Space == Base {
			return RPC{}, NewError(TypeRPC, OperationNotSupported, "a request must be <rpc>, but is %s", describe(n))
		}
		return RPC{}, NewUnknownNamespace(TypeRPC, n)
	}
	rpc := RPC{Attrs: n.Attrs}
	if len(n.Children) > 0 {
		rpc.Operation = n.Children[0]
	}
	var ok bool
	rpc.MessageID, ok = n.Attr("", "message-id")
	switch {
	case !ok:
		return rpc, NewError(TypeRPC, MissingAttribute, "<rpc> has no message-id").
			with("bad-attribute", "message-id", "bad-element", "rpc")
	case len(n.Children) == 0:
		return rpc, NewError(TypeRPC, MissingElement, "<rpc> has no operation").with("bad-element", "rpc")
	case len(n.Children) > 1:
		return rpc, NewBadElement(TypeRPC, n.Children[1].Name.Local, "<rpc> has more than one operation")
	}
	return rpc, nil
}

// A Reply is what answers an [RPC] (RFC 6241 section 4.2).
type Reply struct {
	MessageID string   // "" if the request had none
	OK        bool     // there is an <ok/>
	Data      *Node    // <data>, nil if there is none
	Errors    []*Error // warnings too
	Body      []*Node  // what is neither <ok/> nor <data> nor an error
}

// ParseReply reads a reply.
func ParseReply(n *Node) (Reply, error) {
	if !n.Is(Base, "rpc-reply") {
		return Reply{}, fmt.Errorf("netconf: a reply must be <rpc-reply> of namespace %s, but is %s", Base, describe(n))
	}
	var r Reply
	r.MessageID, _ = n.Attr("", "message-id")
	for _, c := range n.Children {
		switch {
		case c.Is(Base, "ok"):
			r.OK = true
		case c.Is(Base, "data"):
			r.Data = c
		case c.Is(Base, "rpc-error"):
			r.Errors = append(r.Errors, parseError(c))
		default:
			r.Body = append(r.Body, c)
		}
	}
	return r, nil
}

// Err returns the errors that are not warnings, each an [*Error], joined; nil
// if there is none. A reply may have errors and data.
func (r Reply) Err() error {
	var errs []error
	for _, e := range r.Errors {
		if !e.Warning() {
			errs = append(errs, e)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// AppendReply appends the reply to a request as compact XML, with the
// attributes of the request, and returns the extended slice. The body is
// El(Base, "ok"), or data, or errors.
func AppendReply(dst []byte, rpc RPC, body ...*Node) []byte {
	n := Node{Name: xml.Name{Space: Base, Local: "rpc-reply"}, Attrs: rpc.Attrs, Children: body}
	return n.Append(dst, "")
}

// A Notification is an event of a stream that has been subscribed to (RFC 5277
// section 4).
type Notification struct {
	EventTime time.Time
	Event     *Node // nil if there is none
}

// ParseNotification reads a notification. With an error about the time, the
// event is there all the same.
func ParseNotification(n *Node) (Notification, error) {
	var note Notification
	if !n.Is(NotificationNS, "notification") {
		return note, fmt.Errorf("netconf: a notification must be <notification> of namespace %s, but is %s", NotificationNS, describe(n))
	}
	var when *Node
	for _, c := range n.Children {
		switch {
		case when == nil && c.Is(NotificationNS, "eventTime"):
			when = c
		case note.Event == nil:
			note.Event = c
		}
	}
	if when == nil {
		return note, errors.New("netconf: the notification has no eventTime")
	}
	var err error
	note.EventTime, err = time.Parse(time.RFC3339, strings.Trim(when.Text, whitespace))
	if err != nil {
		return note, fmt.Errorf("netconf: the eventTime of the notification is no time of RFC 3339: %.60q", when.Text)
	}
	return note, nil
}

// Node returns the notification as XML. The time has as many digits behind the
// second as it needs.
func (n Notification) Node() *Node {
	node := El(NotificationNS, "notification", Leaf(NotificationNS, "eventTime", n.EventTime.Format(time.RFC3339Nano)))
	if n.Event != nil {
		node.Children = append(node.Children, n.Event)
	}
	return node
}
