package scpiswitch_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/drivers/transport"
)

// TestMain checks that no goroutine of the driver outlives its Switch.
func TestMain(m *testing.M) { os.Exit(drivertest.Main(m, "scpiswitch.(*")) }

// peer is the device at the far end of in-memory connections.
type peer struct {
	*drivertest.Peer[*line]
	t testing.TB
}

func newPeer(t testing.TB, scripts ...func(*line)) *peer {
	return &peer{drivertest.NewPeer(t, func(l drivertest.Line) *line { return &line{Line: l} }, scripts...), t}
}

func (p *peer) Dial(ctx context.Context) (transport.Conn, error) { return p.Connect(ctx) }

func (p *peer) config() scpiswitch.Config { return scpiswitch.Config{Dialer: p, Device: "rail0"} }

// line is one connection as the device sees it.
type line struct {
	drivertest.Line
	closed bool
}

// Close hangs up on lines that have come.
func (l *line) Close() error {
	l.closed = true
	return l.Conn.Close()
}

// Rest is what comes after the script, unless that has hung up.
func (l *line) Rest() string {
	rest := l.next()
	if l.closed {
		return ""
	}
	return rest
}

// next returns the next line without its end, "" at the end. Empty lines mean
// nothing to a device.
func (l *line) next() string {
	s, err := l.In.ReadString('\n')
	for s == "\r\n" {
		s, err = l.In.ReadString('\n')
	}
	if err != nil {
		return s
	}
	if !strings.HasSuffix(s, "\r\n") {
		l.T.Errorf("%q does not end with CR LF", s)
	}
	return strings.TrimSuffix(s, "\r\n")
}

// expect reads lines and compares them.
func (l *line) expect(want ...string) {
	for _, w := range want {
		if got := l.next(); got != w {
			l.T.Errorf("got %q, want %q", got, w)
		}
	}
}

// fine is what devices say when there is no error.
const fine = "0, \"No error\"\r\n"

// empty serves a query of the error queue, as sessions begin with.
func (l *line) empty() {
	l.expect(":SYST:ERR?")
	l.Send(fine)
}

// ask serves a query.
func (l *line) ask(query, reply string) {
	l.expect(query, ":SYST:ERR?")
	l.Send(reply + "\r\n")
	l.Send(fine)
}

// fail serves a query that gives errors instead of a reply.
func (l *line) fail(query string, errs ...string) {
	l.expect(query)
	for _, e := range errs {
		l.expect(":SYST:ERR?")
		l.Send(e + "\r\n")
	}
	l.empty()
}

// change serves a command that has no reply.
func (l *line) change(command string) {
	l.expect(command, "*OPC?", ":SYST:ERR?")
	l.Send("1\r\n")
	l.Send(fine)
}

// refuse serves a command that gives an error.
func (l *line) refuse(command, err string) {
	l.expect(command, "*OPC?", ":SYST:ERR?")
	l.Send("1\r\n" + err + "\r\n")
	l.empty()
}

// talk runs a test against a peer in a bubble. Every session begins with a query
// of the error queue, which the scripts need not serve.
func talk(t *testing.T, client func(t *testing.T, sw *scpiswitch.Switch), scripts ...func(*line)) {
	t.Helper()
	talkWith(t, nil, client, scripts...)
}

func talkWith(t *testing.T, set func(*scpiswitch.Config), client func(t *testing.T, sw *scpiswitch.Switch), scripts ...func(*line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		for _, s := range scripts {
			p.Add(1, func(l *line) {
				l.empty()
				s(l)
			})
		}
		cfg := p.config()
		if set != nil {
			set(&cfg)
		}
		sw, err := scpiswitch.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		client(t, sw)
		sw.Close()
		p.Finish()
	})
}

// wrapped is a dialer whose connections wrap makes something else of.
type wrapped struct {
	transport.Dialer
	wrap func(transport.Conn) transport.Conn
}

func (d wrapped) Dial(ctx context.Context) (transport.Conn, error) {
	c, err := d.Dialer.Dial(ctx)
	if err == nil {
		c = d.wrap(c)
	}
	return c, err
}
