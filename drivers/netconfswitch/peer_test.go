package netconfswitch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/drivers/transport"
)

// TestMain checks that no goroutine of the driver outlives its Switch.
func TestMain(m *testing.M) {
	code := m.Run()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(2 * time.Second); code == 0; time.Sleep(10 * time.Millisecond) {
		all := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(all, "netconfswitch.(*") {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "goroutines are left:\n"+all)
			code = 1
		}
	}
	os.Exit(code)
}

// peer is the device at the far end of in-memory connections. Each Dial runs
// the next of its scripts; one that is nil refuses the connection. It fails the
// test on traffic that no script asks for, and on scripts that have not run.
type peer struct {
	t       testing.TB
	mu      sync.Mutex // guards scripts and dials
	scripts []func(*line)
	dials   int
	running sync.WaitGroup
}

func newPeer(t testing.TB, scripts ...func(*line)) *peer { return &peer{t: t, scripts: scripts} }

func (p *peer) Dial(ctx context.Context) (transport.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dials++; p.dials > len(p.scripts) {
		p.t.Errorf("dialed %d times, want %d", p.dials, len(p.scripts))
		return nil, syscall.ECONNREFUSED
	}
	script := p.scripts[p.dials-1]
	if script == nil {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	p.running.Go(func() {
		defer far.Close()
		l := &line{t: p.t, Conn: far, in: bufio.NewReader(far)}
		script(l)
		if extra, _ := io.ReadAll(l.in); len(extra) > 0 {
			p.t.Errorf("not expected: %q", extra)
		}
	})
	return near, nil
}

func (p *peer) String() string { return "in memory" }

// finish waits until the scripts have run; the Switch must be closed.
func (p *peer) finish() {
	p.t.Helper()
	p.running.Wait()
	if p.dials < len(p.scripts) {
		p.t.Errorf("dialed %d times, want %d", p.dials, len(p.scripts))
	}
}

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
	t testing.TB
	net.Conn
	in      *bufio.Reader
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
	if _, err := io.ReadFull(l.in, got); err != nil || string(got) != ourHello {
		l.t.Errorf("got hello %q, %v", got, err)
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
			l.t.Logf("peer: %v", err)
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
			c, err := l.in.ReadByte()
			if err != nil {
				return b.String()
			}
			b.WriteByte(c)
		}
		return strings.TrimSuffix(b.String(), "]]>]]>")
	}
	var b strings.Builder
	for {
		nl, err := l.in.ReadString('\n')
		header, _ := l.in.ReadString('\n')
		if err != nil || nl != "\n" || !strings.HasPrefix(header, "#") {
			return b.String()
		}
		if header == "##\n" {
			return b.String()
		}
		n, err := strconv.Atoi(strings.Trim(header, "#\n"))
		if err != nil {
			l.t.Errorf("got chunk header %q", header)
		}
		data := make([]byte, n)
		_, _ = io.ReadFull(l.in, data)
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
		l.t.Errorf("got message %q", m)
		return ""
	}
	l.id = sub[1]
	return sub[2]
}

// expect reads one operation and compares it.
func (l *line) expect(want string) {
	if got := l.next(); got != want {
		l.t.Errorf("got operation %q,\nwant %q", got, want)
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

// idle lets a session see what the device does while nothing is asked: its own
// goroutine begins to read a moment after the last request. The time is that of
// the bubble.
func idle() {
	time.Sleep(30 * time.Millisecond)
	synctest.Wait()
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

// is reports whether err matches target, where nil matches only nil.
func is(err, target error) bool {
	if target == nil {
		return err == nil
	}
	return errors.Is(err, target)
}
