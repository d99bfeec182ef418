package netconfserver_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
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
type client struct{ *servertest.Client }

// dial begins a session as a user that ends with the test.
func dial(t *testing.T, s *netconfserver.Server, user string) *client {
	t.Helper()
	return &client{servertest.Dial(t, session(s, user))}
}

func session(s *netconfserver.Server, user string) servertest.Session {
	return func(ctx context.Context, conn io.ReadWriteCloser) {
		s.ServeSession(ctx, conn, emulator.SessionInfo{User: user, Client: "192.0.2.1", Port: 830})
	}
}

// login is dial and the exchange of hellos.
func login(t *testing.T, s *netconfserver.Server, user string) *client {
	t.Helper()
	c := dial(t, s, user)
	c.Send(hello + eom)
	if got := c.Hear(); !strings.Contains(got, "<session-id>") {
		t.Fatalf("hello: %q", got)
	}
	return c
}

// do sends an operation and returns what comes back within a second, without
// envelope and delimiter if that is one reply.
func (c *client) do(operation string) string {
	c.T.Helper()
	got := c.Do(`<rpc message-id="1" ` + base + `>` + operation + `</rpc>` + eom)
	inner, ok := strings.CutPrefix(got, `<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="1">`)
	if rest, whole := strings.CutSuffix(inner, "</rpc-reply>"+eom); ok && whole {
		return rest
	}
	return got
}

// want does an operation and wants all of parts in what comes back.
func (c *client) want(operation string, parts ...string) {
	c.T.Helper()
	c.check(operation, c.do(operation), parts)
}

func (c *client) check(sent, got string, parts []string) {
	c.T.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			c.T.Errorf("%.300s:\ngot  %.2000s\nwant %s", sent, got, part)
		}
	}
}

// edit does an edit-config of running.
func (c *client) edit(config string) string {
	c.T.Helper()
	return c.do(`<edit-config><target><running/></target><config>` + config + `</config></edit-config>`)
}

func (c *client) wantEdit(config string, parts ...string) {
	c.T.Helper()
	c.check(config, c.edit(config), parts)
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
