package scpiserver_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/scpiserver"
	"github.com/ocslab/ocslab/ocs"
)

// personality is a small unit with exact timing.
func personality() emulator.Personality {
	return emulator.Personality{
		Model: "test", Vendor: "Polatis", Product: "N-VST-16x16-LU1-DMHNV-801", Firmware: "6.5.2.18", Size: "16x16",
		Switching: emulator.Switching{Single: 20 * time.Millisecond, Bulk: 40 * time.Millisecond, Rise: time.Millisecond, Ack: emulator.AckAfter},
		Optics:    emulator.Optics{Loss: 1.5, LossMax: 2.7, LossSpread: 0.3, Launch: -1, LaunchSpread: 0.8},
		Monitors:  emulator.Monitors{Sides: emulator.MonitorsBoth, Floor: -60, Accuracy: 0.5, Default: 4},
		Control: emulator.Control{
			Busy: emulator.Takeover, Boot: ocs.BootRestore, Reboot: time.Minute,
			Users: []emulator.User{{Name: "admin", Password: "root", Group: emulator.Admin}},
		},
	}
}

func newServer(t testing.TB, p emulator.Personality) *scpiserver.Server {
	t.Helper()
	d, err := emulator.New(p, emulator.Options{Name: "OCS1", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &scpiserver.Server{Device: d}
}

// client is one end of a session inside a synctest bubble.
type client struct {
	t testing.TB
	net.Conn
	got   chan []byte
	ended chan struct{} // closed when ServeSession has returned
}

// dial begins a session that ends with the test.
func dial(t testing.TB, s *scpiserver.Server) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{t: t, Conn: ours, got: make(chan []byte, 1<<16), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		s.ServeSession(ctx, theirs, emulator.SessionInfo{Client: "192.0.2.1", User: "nobody"})
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

// do sends text and returns what comes back within a second.
func (c *client) do(text string) string {
	c.t.Helper()
	c.send(text)
	time.Sleep(time.Second)
	return c.read()
}

// want does text and wants exactly reply.
func (c *client) want(text, reply string) {
	c.t.Helper()
	if got := c.do(text); got != reply {
		c.t.Errorf("%.80q: got %.300q, want %q", text, got, reply)
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

// checkNoGoroutines reports goroutines of the server that have not ended; in a
// bubble synctest does.
func checkNoGoroutines(t testing.TB) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for range 500 {
		n := runtime.Stack(buf, true)
		if !strings.Contains(string(buf[:n]), "scpiserver.(*") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
}
