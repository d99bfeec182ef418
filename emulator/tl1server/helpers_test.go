package tl1server_test

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
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/ocs"
)

// personality is a small unit with exact timing.
func personality() emulator.Personality {
	return emulator.Personality{
		Model: "test", Vendor: "Polatis", Product: "N-VST-16x16", Firmware: "6.7.3.9", Size: "16x16",
		Switching: emulator.Switching{Single: 20 * time.Millisecond, Bulk: 40 * time.Millisecond, Rise: time.Millisecond, Ack: emulator.AckAfter},
		Optics:    emulator.Optics{Loss: 1.5, LossMax: 2.7, LossSpread: 0.3, Launch: -1, LaunchSpread: 0.8},
		Monitors:  emulator.Monitors{Sides: emulator.MonitorsBoth, Floor: -60, Accuracy: 0.5, Noise: 0.02, Default: 4},
		Control: emulator.Control{
			Busy: emulator.Takeover, Boot: ocs.BootRestore, Reboot: time.Minute,
			Users: []emulator.User{
				{Name: "admin", Password: "root", Group: emulator.Admin}, {Name: "user", Password: "pw", Group: emulator.Operator},
				{Name: "view", Group: emulator.Viewer}, {Name: "odd", Password: "a=b,c", Group: emulator.Viewer},
			},
		},
	}
}

func newServer(t testing.TB, p emulator.Personality) *tl1server.Server {
	t.Helper()
	d, err := emulator.New(p, emulator.Options{Name: "POLATIS1", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &tl1server.Server{Device: d}
}

// client is one end of a session inside a synctest bubble.
type client struct {
	t *testing.T
	net.Conn
	got   chan []byte
	ended chan struct{} // closed when ServeConn has returned
}

// dial begins a session that ends with the test.
func dial(t *testing.T, s *tl1server.Server) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{t: t, Conn: ours, got: make(chan []byte, 1<<16), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		s.ServeConn(ctx, theirs)
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

// login is dial and ACT-USER as the administrator.
func login(t *testing.T, s *tl1server.Server) *client {
	t.Helper()
	c := dial(t, s)
	c.want("ACT-USER::admin:1::root;", "M  1 COMPLD")
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

// want does text and wants one message with all of parts.
func (c *client) want(text string, parts ...string) {
	c.t.Helper()
	got := c.do(text)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			c.t.Errorf("%.80q: got %q, want %q in it", text, got, part)
		}
	}
	if n := strings.Count(got, "\r\n\n   "); n != 1 {
		c.t.Errorf("%.80q: got %d messages: %.300q", text, n, got)
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
	for range 100 {
		n := runtime.Stack(buf, true)
		if !strings.Contains(string(buf[:n]), "tl1server.(*") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
}
