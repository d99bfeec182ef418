package servertest

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long these tests wait for what comes at once on a machine
// that is not loaded.
const patience = 30 * time.Second

// running is how many servers run.
var running atomic.Int32

// Run runs serve until the test or stop ends it. Stop, which may be called more
// than once, waits until serve has returned, and reports its error, that it
// does not return, and, if nothing else runs, goroutines that servers have left.
func Run(t testing.TB, serve func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	running.Add(1)
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			if running.Add(-1) == 0 {
				noGoroutines(t)
			}
		case <-time.After(patience):
			t.Error("Serve does not return")
		}
	})
	t.Cleanup(stop)
	return stop
}

// Serve is Run on a loopback port.
func Serve(t testing.TB, serve func(context.Context, net.Listener) error) (addr string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), Run(t, func(ctx context.Context) error { return serve(ctx, l) })
}

// noGoroutines reports goroutines in methods of the front ends, whose packages
// have names that end in "server". In a bubble synctest does.
func noGoroutines(t testing.TB) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for range 500 {
		if n := runtime.Stack(buf, true); !strings.Contains(string(buf[:n]), "server.(*") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
}

// TCP is the client's end of a session over a real socket. Nothing takes it
// longer than half a minute.
type TCP struct {
	net.Conn
	R *bufio.Reader // of Conn
}

// DialTCP connects to addr.
func DialTCP(addr string) (*TCP, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &TCP{conn, bufio.NewReader(conn)}, conn.SetDeadline(time.Now().Add(patience))
}

// Ask sends text and returns what comes back, up to and with end.
func (c *TCP) Ask(text string, end byte) (string, error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	return c.R.ReadString(end)
}

// ReadUntil reads until what has come is all that is wanted, and returns it. What
// comes along with the end is in it.
func ReadUntil(r io.Reader, all func(string) bool) (string, error) {
	var got strings.Builder
	for buf := make([]byte, 4096); !all(got.String()); {
		n, err := r.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			return got.String(), err
		}
	}
	return got.String(), nil
}

// Clients runs n clients at once, the first of which is 0, and reports their
// errors.
func Clients(t testing.TB, n int, client func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := client(i); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

// HalfClosed returns what a client hears that sends text and closes its side at
// once.
func HalfClosed(t testing.TB, addr, text string) string {
	t.Helper()
	c, err := DialTCP(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("%v after %q", err, got)
	}
	return string(got)
}
