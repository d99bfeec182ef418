package drivertest

import (
	"bufio"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// Line is one connection as the device sees it. A protocol embeds it in what its
// scripts work with.
type Line struct {
	net.Conn
	T  testing.TB
	In *bufio.Reader // of Conn
}

// Send writes s. The driver may have hung up: that is for the test to find out.
func (l *Line) Send(s string) {
	if _, err := l.Write([]byte(s)); err != nil {
		l.T.Logf("peer: %v", err)
	}
}

// Rest returns what comes until the driver hangs up.
func (l *Line) Rest() string {
	rest, _ := io.ReadAll(l.In)
	return string(rest)
}

// Peer is the device at the far end of in-memory connections. Each Connect runs
// the next of its scripts; one that is nil refuses the connection. It fails the test on traffic that no script asks for,
// and on scripts that have not run. L is what a connection is to the scripts.
type Peer[L interface{ Rest() string }] struct {
	t       testing.TB
	line    func(Line) L
	running sync.WaitGroup

	mu      sync.Mutex // guards scripts and dials
	scripts []func(L)
	dials   int
}

// NewPeer returns a peer whose scripts get what line makes of a connection.
func NewPeer[L interface{ Rest() string }](t testing.TB, line func(Line) L, scripts ...func(L)) *Peer[L] {
	return &Peer[L]{t: t, line: line, scripts: scripts}
}

// Connect connects to the next script; it is what a dialer does.
func (p *Peer[L]) Connect(ctx context.Context) (net.Conn, error) {
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
		l := p.line(Line{Conn: far, T: p.t, In: bufio.NewReader(far)})
		script(l)
		if rest := l.Rest(); rest != "" {
			p.t.Errorf("not expected: %q", rest)
		}
	})
	return near, nil
}

func (p *Peer[L]) String() string { return "in memory" }

// Add has n more connections served by a script.
func (p *Peer[L]) Add(n int, script func(L)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts = append(p.scripts, slices.Repeat([]func(L){script}, n)...)
}

// RefuseNext refuses the next connection, before the scripts that are left.
func (p *Peer[L]) RefuseNext() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts = slices.Insert(p.scripts, p.dials, nil)
}

// Wait waits until the scripts that were begun have ended; the Switch must be
// closed.
func (p *Peer[L]) Wait() { p.running.Wait() }

// Finish waits until all scripts have run; the Switch must be closed.
func (p *Peer[L]) Finish() {
	p.t.Helper()
	p.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dials < len(p.scripts) {
		p.t.Errorf("dialed %d times, want %d", p.dials, len(p.scripts))
	}
}
