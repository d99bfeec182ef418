package tl1switch_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/internal/secret"
)

// TestMain checks that no goroutine of the driver outlives its Switch.
func TestMain(m *testing.M) { os.Exit(drivertest.Main(m, "tl1switch.(*")) }

const password = "hunter2-secret"

// peer is the device at the far end of in-memory connections.
type peer struct {
	*drivertest.Peer[*line]
	t testing.TB
}

func newPeer(t testing.TB, scripts ...func(*line)) *peer {
	return &peer{drivertest.NewPeer(t, func(l drivertest.Line) *line { return &line{Line: l} }, scripts...), t}
}

func (p *peer) Dial(ctx context.Context) (transport.Conn, error) { return p.Connect(ctx) }

func (p *peer) config() tl1switch.Config {
	return tl1switch.Config{Dialer: p, Device: "rail0", Password: secret.New(password)}
}

// open returns a Switch on the peer; closing it is up to the test.
func (p *peer) open() *tl1switch.Switch {
	p.t.Helper()
	sw, err := tl1switch.Open(context.Background(), p.config())
	if err != nil {
		p.t.Fatal(err)
	}
	return sw
}

// line is one connection as the device sees it.
type line struct{ drivertest.Line }

// next returns the next command without its terminator, "" at the end.
func (l *line) next() string {
	s, err := l.In.ReadString(';')
	if err != nil {
		return s
	}
	return s[:len(s)-1]
}

// expect reads one command and compares it.
func (l *line) expect(want string) {
	if got := l.next(); got+";" != want {
		l.T.Errorf("got command %q, want %q", got+";", want)
	}
}

// ask reads one command, compares it and completes it with data lines.
func (l *line) ask(want string, text ...string) {
	l.expect(want)
	l.Send(completed(tag(want), text...))
}

// login serves the beginning of every session; n is the tag of its first
// command.
func (l *line) login(n int) {
	l.ask(fmt.Sprintf("ACT-USER::admin:%d::\"%s\";", n, password))
	l.ask(fmt.Sprintf("OPR-ARC-EQPT::REPMGR:%d::IND;", n+1))
}

// tag returns the CTAG of a command.
func tag(command string) string {
	f := strings.Split(command, ":")
	return strings.TrimSuffix(f[min(3, len(f)-1)], ";")
}

const header = "\r\n\n   rail0 26-11-20 10:00:00\r\n"

func completed(ctag string, text ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sM  %s COMPLD\r\n", header, ctag)
	for _, t := range text {
		fmt.Fprintf(&b, "   \"%s\"\r\n", t)
	}
	return b.String() + ";"
}

func denied(ctag, code, text string) string {
	return fmt.Sprintf("%sM  %s DENY\r\n   %s\r\n   /* %s */\r\n;", header, ctag, code, text)
}

func autonomous(n int, text string) string {
	return fmt.Sprintf("%sA  %d REPT EVT EQPT\r\n   \"%s\"\r\n;", header, n, text)
}
