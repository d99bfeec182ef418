package netconfswitch_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/drivers/transport"
)

// TestMain checks that no goroutine of the driver outlives its Switch.
func TestMain(m *testing.M) { os.Exit(drivertest.Main(m, "netconfswitch.(*")) }

// peer is the device at the far end of in-memory connections.
type peer struct {
	*drivertest.Peer[*line]
	t testing.TB
}

func newPeer(t testing.TB, scripts ...func(*line)) *peer {
	return &peer{drivertest.NewPeer(t, func(l drivertest.Line) *line { return &line{Line: l} }, scripts...), t}
}

func (p *peer) Dial(ctx context.Context) (transport.Conn, error) { return p.Connect(ctx) }

func (p *peer) config() netconfswitch.Config {
	return netconfswitch.Config{Dialer: p, Device: "rail0"}
}

// open returns a Switch on the peer; closing it is up to the test.
func (p *peer) open() *netconfswitch.Switch {
	p.t.Helper()
	sw, err := netconfswitch.Open(context.Background(), p.config())
	if err != nil {
		p.t.Fatal(err)
	}
	return sw
}

// line is one connection as the device sees it. It knows NETCONF from the RFCs,
// not from the packages that the driver uses.
type line struct {
	drivertest.Line
	chunked bool
	size    int // of the pieces that are written and of chunks; 0 is as they are
	id      string
}

const (
	base10     = "urn:ietf:params:netconf:base:1.0"
	base11     = "urn:ietf:params:netconf:base:1.1"
	notifies   = "urn:ietf:params:netconf:capability:notification:1.0"
	interleave = "urn:ietf:params:netconf:capability:interleave:1.0"
	optical    = "http://www.polatis.com/yang/optical-switch?module=optical-switch&amp;revision=2018-03-22"
	oldOptical = "http://www.polatis.com/yang/optical-switch?module=optical-switch&amp;revision=2017-02-09"
	polatis    = "http://www.polatis.com/yang/polatis-switch?module=polatis-switch&amp;revision=2018-01-19"
	oldPolatis = "http://www.polatis.com/yang/polatis-switch?module=polatis-switch&amp;revision=2017-05-30"
)

// modern is what a device of today announces.
var modern = []string{base10, base11, notifies, interleave, optical, polatis}

func helloText(caps ...string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities><capability>` +
		strings.Join(caps, "</capability><capability>") + `</capability></capabilities><session-id>4</session-id></hello>`
}

const ourHello = `<?xml version="1.0" encoding="UTF-8"?>
<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities><capability>urn:ietf:params:netconf:base:1.0</capability><capability>urn:ietf:params:netconf:base:1.1</capability></capabilities></hello>]]>]]>`

// hello serves the beginning of a session; none is modern.
func (l *line) hello(caps ...string) {
	if len(caps) == 0 {
		caps = modern
	}
	l.raw(helloText(caps...) + "]]>]]>")
	l.takeHello()
	l.chunked = strings.Contains(strings.Join(caps, " "), base11)
	l.first()
}

// first serves the first request of a session, and says nothing.
func (l *line) first() { l.ask(asks("product-information", ""), "<data/>") }

func (l *line) takeHello() {
	got := make([]byte, len(ourHello))
	if _, err := io.ReadFull(l.In, got); err != nil || string(got) != ourHello {
		l.T.Errorf("got hello %q, %v", got, err)
	}
}

// raw writes text in pieces.
func (l *line) raw(s string) {
	for len(s) > 0 {
		n := len(s)
		if l.size > 0 {
			n = min(l.size, n)
		}
		if _, err := l.Write([]byte(s[:n])); err != nil {
			l.T.Logf("peer: %v", err)
			return
		}
		s = s[n:]
	}
}

// frame returns a message with its framing.
func (l *line) frame(message string) string {
	if !l.chunked {
		return message + "]]>]]>"
	}
	var b strings.Builder
	for len(message) > 0 {
		n := len(message)
		if l.size > 0 {
			n = min(n, l.size)
		}
		fmt.Fprintf(&b, "\n#%d\n%s", n, message[:n])
		message = message[n:]
	}
	return b.String() + "\n##\n"
}

// message returns the next message, "" at the end.
func (l *line) message() string {
	if !l.chunked {
		var b strings.Builder
		for !strings.HasSuffix(b.String(), "]]>]]>") {
			c, err := l.In.ReadByte()
			if err != nil {
				return b.String()
			}
			b.WriteByte(c)
		}
		return strings.TrimSuffix(b.String(), "]]>]]>")
	}
	var b strings.Builder
	for {
		nl, err := l.In.ReadString('\n')
		header, _ := l.In.ReadString('\n')
		if err != nil || nl != "\n" || !strings.HasPrefix(header, "#") {
			return b.String()
		}
		if header == "##\n" {
			return b.String()
		}
		n, err := strconv.Atoi(strings.Trim(header, "#\n"))
		if err != nil {
			l.T.Errorf("got chunk header %q", header)
		}
		data := make([]byte, n)
		_, _ = io.ReadFull(l.In, data)
		b.Write(data)
	}
}

var envelope = regexp.MustCompile(`^<rpc message-id="([0-9a-f-]{32,})" xmlns="urn:ietf:params:xml:ns:netconf:base:1\.0">(.*)</rpc>$`)

// next returns the next operation, "" at the end.
func (l *line) next() string {
	m := l.message()
	if m == "" {
		return ""
	}
	sub := envelope.FindStringSubmatch(m)
	if sub == nil {
		l.T.Errorf("got message %q", m)
		return ""
	}
	l.id = sub[1]
	return sub[2]
}

// expect reads one operation and compares it.
func (l *line) expect(want string) {
	if got := l.next(); got != want {
		l.T.Errorf("got operation %q,\nwant %q", got, want)
	}
}

// reply returns a framed reply to the last operation.
func (l *line) reply(body string) string { return l.frame(replyTo(l.id, body)) }

func replyTo(id, body string) string {
	return `<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="` + id + `">` + body + `</rpc-reply>`
}

// ask reads one operation, compares it and answers.
func (l *line) ask(want, body string) {
	l.expect(want)
	l.raw(l.reply(body))
}

const ok = "<ok/>"

// rpcError is an rpc-error by hand.
func rpcError(tag, path, message string) string {
	if path != "" {
		path = "<error-path>" + path + "</error-path>"
	}
	return "<rpc-error><error-type>application</error-type><error-tag>" + tag + "</error-tag><error-severity>error</error-severity>" +
		path + "<error-message xml:lang=\"en\">" + message + "</error-message></rpc-error>"
}

// data is a reply with one container of optical-switch.
func data(container, content string) string {
	return `<data><` + container + ` xmlns="http://www.polatis.com/yang/optical-switch">` + content + `</` + container + `></data>`
}

// asks is a filtered get of one container.
func asks(container, selection string) string {
	filter := `<` + container + ` xmlns="http://www.polatis.com/yang/optical-switch"/>`
	if selection != "" {
		filter = strings.TrimSuffix(filter, "/>") + ">" + selection + "</" + container + ">"
	}
	return `<get><filter type="subtree">` + filter + `</filter></get>`
}

// edits is an edit-config of one container.
func edits(container, content string) string {
	return `<edit-config><target><running/></target><config><` + container +
		` xmlns="http://www.polatis.com/yang/optical-switch" xmlns:nc="urn:ietf:params:xml:ns:netconf:base:1.0">` +
		content + `</` + container + `></config></edit-config>`
}
