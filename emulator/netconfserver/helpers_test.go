package netconfserver_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/netconfserver"
	"github.com/ocslab/ocslab/ocs"
)

// personality is a small unit with exact timing.
func personality() emulator.Personality {
	return emulator.Personality{
		Model: "test", Vendor: "Polatis", Product: "N-VST-16x16", Firmware: "6.7.3.9", Size: "16x16",
		Switching: emulator.Switching{Single: 20 * time.Millisecond, Bulk: 40 * time.Millisecond, Rise: time.Millisecond, Ack: emulator.AckAfter},
		Optics:    emulator.Optics{Loss: 1.5, LossMax: 2.7, Launch: -1, VOAMax: 20},
		Monitors:  emulator.Monitors{Sides: emulator.MonitorsBoth, Floor: -60, Default: 4},
		Control: emulator.Control{
			Busy: emulator.Takeover, Boot: ocs.BootRestore, Reboot: time.Minute, Failed: []uint32{16},
			Users: []emulator.User{
				{Name: "admin", Password: "root", Group: emulator.Admin}, {Name: "user", Password: "pw", Group: emulator.Operator},
				{Name: "view", Group: emulator.Viewer},
			},
		},
	}
}

func newServer(t testing.TB, p emulator.Personality) *netconfserver.Server {
	t.Helper()
	d, err := emulator.New(p, emulator.Options{Name: "rail0", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &netconfserver.Server{Device: d}
}

const (
	base   = `xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"`
	opsw   = `xmlns="http://www.polatis.com/yang/optical-switch"`
	plts   = `xmlns="http://www.polatis.com/yang/polatis-switch"`
	hello  = `<hello ` + base + `><capabilities><capability>urn:ietf:params:netconf:base:1.0</capability></capabilities></hello>`
	hello1 = `<hello ` + base + `><capabilities><capability>urn:ietf:params:netconf:base:1.1</capability></capabilities></hello>`
	eom    = "]]>]]>"
)

// client is one end of a session inside a synctest bubble. It speaks base:1.0
// unless it is told otherwise, and knows framing by itself.
type client struct {
	t *testing.T
	net.Conn
	got   chan []byte
	ended chan struct{} // closed when ServeSession has returned
	id    int           // of the last request
}

// dial begins a session as a user that ends with the test.
func dial(t *testing.T, s *netconfserver.Server, user string) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{t: t, Conn: ours, got: make(chan []byte, 1<<16), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		s.ServeSession(ctx, theirs, emulator.SessionInfo{User: user, Client: "192.0.2.1", Port: 830})
	}()
	go func() {
		defer close(c.got)
		for {
			buf := make([]byte, 4096)
			n, err := ours.Read(buf)
			if err != nil {
				return
			}
			c.got <- buf[:n]
		}
	}()
	t.Cleanup(func() { cancel(); ours.Close() })
	return c
}

// login is dial and the exchange of hellos.
func login(t *testing.T, s *netconfserver.Server, user string) *client {
	t.Helper()
	c := dial(t, s, user)
	c.send(hello + eom)
	if got := c.read(); !strings.Contains(got, "<session-id>") {
		t.Fatalf("hello: %q", got)
	}
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("%.80q: %v", text, err)
	}
}

// read returns what has come when nothing more comes now.
func (c *client) read() string {
	synctest.Wait()
	var b strings.Builder
	for {
		select {
		case p, ok := <-c.got:
			if !ok {
				return b.String()
			}
			b.Write(p)
			synctest.Wait()
		default:
			return b.String()
		}
	}
}

// do sends an operation and returns what comes back within a second, without
// envelope and delimiter if that is one reply.
func (c *client) do(operation string) string {
	c.t.Helper()
	c.id++
	c.send(`<rpc message-id="1" ` + base + `>` + operation + `</rpc>` + eom)
	time.Sleep(time.Second)
	got := c.read()
	inner, ok := strings.CutPrefix(got, `<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="1">`)
	if rest, whole := strings.CutSuffix(inner, "</rpc-reply>"+eom); ok && whole {
		return rest
	}
	return got
}

// want does an operation and wants all of parts in what comes back.
func (c *client) want(operation string, parts ...string) {
	c.t.Helper()
	got := c.do(operation)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			c.t.Errorf("%.300s:\ngot  %.2000s\nwant %s", operation, got, part)
		}
	}
}

// edit does an edit-config of running.
func (c *client) edit(config string) string {
	c.t.Helper()
	return c.do(`<edit-config><target><running/></target><config>` + config + `</config></edit-config>`)
}

func (c *client) wantEdit(config string, parts ...string) {
	c.t.Helper()
	got := c.edit(config)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			c.t.Errorf("%.300s:\ngot  %.2000s\nwant %s", config, got, part)
		}
	}
}

// closed reports whether the server has ended the session.
func (c *client) closed() bool {
	synctest.Wait()
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// pairs are cross-connects as an edit has them.
func pairs(ccs ...ocs.CrossConnect) string {
	var b strings.Builder
	b.WriteString("<cross-connects " + opsw + ">")
	for _, c := range ccs {
		b.WriteString("<pair><ingress>" + c.Ingress.String() + "</ingress><egress>" + c.Egress.String() + "</egress></pair>")
	}
	b.WriteString("</cross-connects>")
	return b.String()
}

// wellFormed reports whether encoding/xml, which is not ours, can read msg.
func wellFormed(msg []byte) error {
	d := xml.NewDecoder(bytes.NewReader(msg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// checkNoGoroutines reports goroutines of the server that have not ended; in a
// bubble synctest does.
func checkNoGoroutines(t testing.TB) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for range 200 {
		n := runtime.Stack(buf, true)
		if !strings.Contains(string(buf[:n]), "netconfserver.(*") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
}
