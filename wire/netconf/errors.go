package netconf

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// Layers that an [Error] may come from, for its Type.
const (
	TypeTransport   = "transport"
	TypeRPC         = "rpc"
	TypeProtocol    = "protocol"
	TypeApplication = "application"
)

// Tags of errors (RFC 6241 appendix A).
const (
	InUse                 = "in-use"
	InvalidValue          = "invalid-value"
	TooBig                = "too-big"
	MissingAttribute      = "missing-attribute"
	BadAttribute          = "bad-attribute"
	UnknownAttribute      = "unknown-attribute"
	MissingElement        = "missing-element"
	BadElement            = "bad-element"
	UnknownElement        = "unknown-element"
	UnknownNamespace      = "unknown-namespace"
	AccessDenied          = "access-denied"
	LockDenied            = "lock-denied"
	ResourceDenied        = "resource-denied"
	RollbackFailed        = "rollback-failed"
	DataExists            = "data-exists"
	DataMissing           = "data-missing"
	OperationNotSupported = "operation-not-supported"
	OperationFailed       = "operation-failed"
	MalformedMessage      = "malformed-message" // not for peers that know base:1.0 only
)

const (
	severityError   = "error"
	severityWarning = "warning"
)

// An Error is an rpc-error (RFC 6241 section 4.3).
type Error struct {
	Type     string // TypeRPC and so on
	Tag      string // InUse and so on
	Severity string // "error" or "warning"
	AppTag   string // of the data model or the device, "" if there is none
	Path     string // XPath of what the error is about, "" if not told
	Message  string // for people
	// Namespaces declare the prefixes in Path, as in [Node.Attrs].
	Namespaces []xml.Attr
	// Info has details, such as <bad-element>.
	Info []*Node
}

// NewError returns an error of severity error.
func NewError(typ, tag, format string, args ...any) *Error {
	return &Error{Type: typ, Tag: tag, Severity: severityError, Message: fmt.Sprintf(format, args...)}
}

// with adds details, given as names and values in turns.
func (e *Error) with(info ...string) *Error {
	for i := 0; i < len(info); i += 2 {
		e.Info = append(e.Info, Leaf(Base, info[i], info[i+1]))
	}
	return e
}

// NewMissingElement returns the error for an element that should be there.
func NewMissingElement(typ, element string) *Error {
	return NewError(typ, MissingElement, "<%s> is missing", element).with("bad-element", element)
}

// NewBadElement returns the error for an element whose value is wrong.
func NewBadElement(typ, element, format string, args ...any) *Error {
	return NewError(typ, BadElement, format, args...).with("bad-element", element)
}

// NewUnknownElement returns the error for an element that should not be there.
func NewUnknownElement(typ string, n *Node) *Error {
	return NewError(typ, UnknownElement, "there is no %s here", describe(n)).with("bad-element", n.Name.Local)
}

// NewUnknownNamespace returns the error for an element of a namespace that the
// device does not have.
func NewUnknownNamespace(typ string, n *Node) *Error {
	return NewError(typ, UnknownNamespace, "the namespace of %s is unknown", describe(n)).
		with("bad-element", n.Name.Local, "bad-namespace", n.Name.Space)
}

// NewLockDenied returns the error for a lock that is held by a session, or by
// something else than NETCONF if session is 0.
func NewLockDenied(session uint32) *Error {
	e := NewError(TypeProtocol, LockDenied, "session %d has the lock", session)
	if session == 0 {
		e.Message = "the lock is not held by a NETCONF session"
	}
	return e.with("session-id", strconv.FormatUint(uint64(session), 10))
}

// Warning reports whether the request was carried out all the same.
func (e *Error) Warning() bool { return e.Severity == severityWarning }

// Error gives all but the details in one line, such as
//
//	data-missing at /cross-connects/pair[ingress='1']: "there is no such pair" (application error)
func (e *Error) Error() string {
	var b strings.Builder
	if b.WriteString(e.Tag); e.Tag == "" {
		b.WriteString("error without tag")
	}
	if e.AppTag != "" {
		b.WriteString(" (" + e.AppTag + ")")
	}
	if e.Path != "" {
		b.WriteString(" at " + e.Path)
	}
	if e.Message != "" {
		fmt.Fprintf(&b, ": %q", e.Message)
	}
	if e.Type != "" {
		fmt.Fprintf(&b, " (%s %s)", e.Type, e.Severity)
	}
	return b.String()
}

// Node returns the error as <rpc-error>.
func (e *Error) Node() *Node {
	n := El(Base, "rpc-error",
		Leaf(Base, "error-type", e.Type),
		Leaf(Base, "error-tag", e.Tag),
		Leaf(Base, "error-severity", e.Severity))
	add := func(local, text string) *Node {
		c := Leaf(Base, local, text)
		if text != "" {
			n.Children = append(n.Children, c)
		}
		return c
	}
	add("error-app-tag", e.AppTag)
	add("error-path", e.Path).Attrs = e.Namespaces
	if e.Message != "" {
		// RFC 6241 wants the language to be told.
		add("error-message", e.Message).Attrs = []xml.Attr{{Name: xml.Name{Space: xmlURI, Local: "lang"}, Value: "en"}}
	}
	if len(e.Info) > 0 {
		n.Children = append(n.Children, El(Base, "error-info", e.Info...))
	}
	return n
}

// ParseErrors returns the errors in a reply, warnings too, in their order.
// What is missing in them is left empty, but for a severity, which is "error"
// then.
func ParseErrors(reply *Node) []*Error {
	var errs []*Error
	if reply == nil {
		return nil
	}
	for _, c := range reply.Children {
		if c.Is(Base, "rpc-error") {
			errs = append(errs, parseError(c))
		}
	}
	return errs
}

func parseError(n *Node) *Error {
	value := func(local string) string {
		if c := n.Child(Base, local); c != nil {
			return strings.Trim(c.Text, whitespace)
		}
		return ""
	}
	e := &Error{
		Type:     value("error-type"),
		Tag:      value("error-tag"),
		Severity: value("error-severity"),
		AppTag:   value("error-app-tag"),
		Path:     value("error-path"),
		Message:  value("error-message"),
	}
	if e.Severity == "" {
		e.Severity = severityError
	}
	if path := n.Child(Base, "error-path"); path != nil {
		for _, a := range path.Attrs {
			if isDeclaration(a) {
				e.Namespaces = append(e.Namespaces, a)
			}
		}
	}
	if info := n.Child(Base, "error-info"); info != nil {
		e.Info = info.Children
	}
	return e
}
