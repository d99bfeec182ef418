package tl1switch_test

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

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/internal/secret"
)

// TestMain checks that no goroutine of the driver outlives its Switch.
func TestMain(m *testing.M) {
	code := m.Run()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(2 * time.Second); code == 0; time.Sleep(10 * time.Millisecond) {
		all := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(all, "tl1switch.(*") {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "goroutines are left:\n"+all)
			code = 1
		}
	}
	os.Exit(code)
}

const password = "hunter2-secret"

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
		l := &line{p.t, far, bufio.NewReader(far)}
		script(l)
		if extra := l.next(); extra != "" {
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
type line struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

// idle lets a session see what the device does while nothing is asked: its own
// goroutine begins to read a moment after the last request. The time is that of
// the bubble.
func idle() {
	time.Sleep(30 * time.Millisecond)
	synctest.Wait()
}

// next returns the next command without its terminator, "" at the end.
func (l *line) next() string {
	s, err := l.in.ReadString(';')
	if err != nil {
		return s
	}
	return s[:len(s)-1]
}

// expect reads one command and compares it.
func (l *line) expect(want string) {
	if got := l.next(); got+";" != want {
		l.t.Errorf("got command %q, want %q", got+";", want)
	}
}

func (l *line) send(s string) {
	if _, err := l.Write([]byte(s)); err != nil {
		l.t.Logf("peer: %v", err)
	}
}

// ask reads one command, compares it and completes it with data lines.
func (l *line) ask(want string, text ...string) {
	l.expect(want)
	l.send(completed(tag(want), text...))
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

// is reports whether err matches target, where nil matches only nil.
func is(err, target error) bool {
	if target == nil {
		return err == nil
	}
	return errors.Is(err, target)
}
