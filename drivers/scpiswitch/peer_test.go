package scpiswitch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
)

// TestMain checks that no goroutine of the driver outlives its Switch.
func TestMain(m *testing.M) {
	code := m.Run()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(2 * time.Second); code == 0; time.Sleep(10 * time.Millisecond) {
		all := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(all, "scpiswitch.(*") {
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

func newPeer(t testing.TB, scripts ...func(*line)) *peer {
	return &peer{t: t, scripts: scripts}
}

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
		if extra := l.next(); extra != "" && !l.closed {
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

func (p *peer) config() scpiswitch.Config { return scpiswitch.Config{Dialer: p, Device: "rail0"} }

// line is one connection as the device sees it.
type line struct {
	t testing.TB
	net.Conn
	in     *bufio.Reader
	closed bool
}

// Close hangs up on lines that have come.
func (l *line) Close() error {
	l.closed = true
	return l.Conn.Close()
}

// next returns the next line without its end, "" at the end. Empty lines mean
// nothing to a device.
func (l *line) next() string {
	s, err := l.in.ReadString('\n')
	for s == "\r\n" {
		s, err = l.in.ReadString('\n')
	}
	if err != nil {
		return s
	}
	if !strings.HasSuffix(s, "\r\n") {
		l.t.Errorf("%q does not end with CR LF", s)
	}
	return strings.TrimSuffix(s, "\r\n")
}

// expect reads lines and compares them.
func (l *line) expect(want ...string) {
	for _, w := range want {
		if got := l.next(); got != w {
			l.t.Errorf("got %q, want %q", got, w)
		}
	}
}

func (l *line) send(s string) {
	if _, err := l.Write([]byte(s)); err != nil {
		l.t.Logf("peer: %v", err)
	}
}

// fine is what devices say when there is no error.
const fine = "0, \"No error\"\r\n"

// empty serves a query of the error queue, as sessions begin with.
func (l *line) empty() {
	l.expect(":SYST:ERR?")
	l.send(fine)
}

// ask serves a query.
func (l *line) ask(query, reply string) {
	l.expect(query, ":SYST:ERR?")
	l.send(reply + "\r\n")
	l.send(fine)
}

// fail serves a query that gives errors instead of a reply.
func (l *line) fail(query string, errs ...string) {
	l.expect(query)
	for _, e := range errs {
		l.expect(":SYST:ERR?")
		l.send(e + "\r\n")
	}
	l.empty()
}

// change serves a command that has no reply.
func (l *line) change(command string) {
	l.expect(command, "*OPC?", ":SYST:ERR?")
	l.send("1\r\n")
	l.send(fine)
}

// refuse serves a command that gives an error.
func (l *line) refuse(command, err string) {
	l.expect(command, "*OPC?", ":SYST:ERR?")
	l.send("1\r\n" + err + "\r\n")
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
			p.scripts = append(p.scripts, func(l *line) {
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
		p.finish()
	})
}

func mustMap(t testing.TB, s string) ocs.Map {
	t.Helper()
	if s == "" {
		return ocs.Map{}
	}
	m, err := ocs.ParseMap(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// is reports whether err matches target, where nil matches only nil.
func is(err, target error) bool {
	if target == nil {
		return err == nil
	}
	return errors.Is(err, target)
}
