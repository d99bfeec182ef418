package netconfswitch

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	juniper "github.com/Juniper/go-netconf/netconf"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// XML namespaces of the YANG modules.
const (
	opticalNS = "http://www.polatis.com/yang/optical-switch"
	polatisNS = "http://www.polatis.com/yang/polatis-switch"
)

// Revisions of the modules from which on something is different.
const (
	pairSince = "2017-08-04" // optical-switch: pair, port-config, opm-*; before, pairs and ports
	maskSince = "2017-09-11" // polatis-switch: mask-notification; before, enable-notifications
)

// announced is what a device says of itself in its hello.
type announced struct {
	oldOptical bool // optical-switch before pairSince
	polatis    bool // has polatis-switch
	oldPolatis bool // polatis-switch before maskSince
	interleave bool // takes requests on a session with a subscription
	notifies   bool
	rollback   bool // knows error-option rollback-on-error
}

// pair is what the list in cross-connects is called.
func (a *announced) pair() string {
	if a.oldOptical {
		return "pairs"
	}
	return "pair"
}

// understand reads the capabilities of a hello. A module without a revision is
// taken for the newest.
func understand(capabilities []string) (announced, error) {
	var a announced
	optical := false
	for _, uri := range capabilities {
		c := netconf.ParseCapability(uri)
		old := func(since string) bool { return c.Revision != "" && c.Revision < since }
		switch base, _, _ := strings.Cut(uri, "?"); {
		case c.Module == "optical-switch", base == opticalNS:
			optical, a.oldOptical = true, old(pairSince)
		case c.Module == "polatis-switch", base == polatisNS:
			a.polatis, a.oldPolatis = true, old(maskSince)
		case base == "urn:ietf:params:netconf:capability:notification:1.0":
			a.notifies = true
		case base == "urn:ietf:params:netconf:capability:interleave:1.0":
			a.interleave = true
		case base == "urn:ietf:params:netconf:capability:rollback-on-error:1.0":
			a.rollback = true
		}
	}
	if !optical {
		return a, fmt.Errorf("the device does not announce the YANG module optical-switch (%s): %w", list(capabilities), ocs.ErrNotSupported)
	}
	return a, nil
}

// list names capabilities for people.
func list(capabilities []string) string {
	const most = 8
	if len(capabilities) == 0 {
		return "it announces nothing"
	}
	var names []string
	for _, uri := range capabilities {
		if c := netconf.ParseCapability(uri); c.Module != "" {
			uri = c.Module
		}
		uri = strings.TrimPrefix(uri, "urn:ietf:params:netconf:")
		names = append(names, fmt.Sprintf("%.60s", uri))
	}
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return "it announces " + strings.Join(names, ", ") + more
}

// greeting is the stream while hellos are exchanged. It implements
// juniper.Transport, whose NewSession cannot report errors: they are kept in
// err.
type greeting struct {
	s   *session
	err error
	// said is what the device sent, for an error.
	said string
}

var _ juniper.Transport = (*greeting)(nil)

// ReceiveHello reads the device's hello. It never returns nil, since NewSession
// does not look at the error.
func (g *greeting) ReceiveHello() (*juniper.HelloMessage, error) {
	hello := &juniper.HelloMessage{}
	msg, err := g.read()
	if err != nil {
		g.err = err
		return hello, err
	}
	g.said = string(msg)
	g.s.sw.received(msg)
	root, err := netconf.Parse(msg)
	if err != nil {
		g.err = fmt.Errorf("the hello of the device cannot be read: %w", err)
		return hello, g.err
	}
	h, err := netconf.ParseHello(root)
	if err != nil {
		g.err = fmt.Errorf("the device does not begin with a hello: %w", err)
		return hello, g.err
	}
	hello.SessionID, hello.Capabilities = int(h.SessionID), h.Capabilities
	return hello, nil
}

// read returns the first message. What follows it stays in the decoder.
func (g *greeting) read() ([]byte, error) {
	s := g.s
	for {
		msg, ok, err := s.dec.Next()
		if ok || err != nil {
			return msg, err
		}
		n, err := s.conn.Read(s.buf)
		s.begin = time.Now()
		s.dec.Feed(s.buf[:n])
		if n > 0 && len(g.said) < tailSize {
			g.said += string(s.buf[:min(n, tailSize-len(g.said))])
		}
		switch {
		case n > 0 || err == nil:
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("the device closed the session before its hello was complete: %w", io.ErrUnexpectedEOF)
		default:
			return nil, fmt.Errorf("the session broke before the hello of the device: %w", err)
		}
	}
}

// SendHello sends ours. The capabilities it is called with are a global of the
// library that anybody may change, so they are not used.
func (g *greeting) SendHello(hello *juniper.HelloMessage) error {
	if g.err != nil {
		return g.err
	}
	hello.Capabilities = []string{netconf.Base10Capability, netconf.Base11Capability}
	text, err := xml.Marshal(hello)
	if err != nil {
		g.err = err
		return err
	}
	out := netconf.AppendMessage(nil, append([]byte(xml.Header), text...), netconf.EndOfMessage)
	g.s.sw.sent(out)
	if _, err := g.s.conn.Write(out); err != nil {
		g.err = fmt.Errorf("the session broke: %w", err)
	}
	return g.err
}

// SetVersion chooses the framing of all that follows.
func (g *greeting) SetVersion(version string) {
	if version == "v1.1" {
		g.s.framing = netconf.Chunked
		g.s.dec.SetFraming(netconf.Chunked)
	}
}

// Send, Receive and Close make a juniper.Transport; nobody calls them while
// hellos are exchanged, and afterwards the session does that itself.
func (g *greeting) Send([]byte) error        { return errors.ErrUnsupported }
func (g *greeting) Receive() ([]byte, error) { return nil, errors.ErrUnsupported }
func (g *greeting) Close() error             { return g.s.conn.Close() }

// greet exchanges hellos until ctx ends. With an error it returns what the
// device said.
func (s *session) greet(ctx context.Context) (said string, err error) {
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	g := &greeting{s: s}
	hello := juniper.NewSession(g)
	if !stop() { // closed, or about to be
		return g.said, fmt.Errorf("no hello: %w", s.sw.life.Gone(ctx))
	}
	if g.err != nil {
		return g.said, g.err
	}
	if !s.dec.Pending() {
		s.begin = time.Time{}
	}
	if s.dev, err = understand(hello.ServerCapabilities); err != nil {
		return "", err
	}
	return "", nil
}
