package tl1server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
)

// serve starts a server on loopback. The function stops it and reports how Serve
// ended.
func serve(t testing.TB, s *tl1server.Server, wrap func(net.Listener) net.Listener) (string, func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if wrap != nil {
		l = wrap(l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return addr, func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(5 * time.Second):
			return errors.New("Serve does not return")
		}
	}
}

// tcp is a session over a real socket.
type tcp struct {
	net.Conn
	r *bufio.Reader
}

func dialTCP(addr string) (*tcp, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &tcp{conn, bufio.NewReader(conn)}
	return c, c.want("ACT-USER::admin:1::root;", "1 COMPLD")
}

// want sends a command and wants a reply with status.
func (c *tcp) want(text, status string) error {
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	got, err := c.r.ReadString(';')
	if err != nil || len(got) < len(status) || !containsLine(got, "M  "+status) {
		return fmt.Errorf("%s: got %q, %v", text, got, err)
	}
	return nil
}

func containsLine(s, line string) bool {
	for len(s) > 0 {
		i := 0
		for i < len(s) && s[i] != '\n' {
			i++
		}
		if s[:i] == line+"\r" {
			return true
		}
		s = s[min(i+1, len(s)):]
	}
	return false
}

func TestServe_Clients(t *testing.T) {
	p := personality()
	p.TL1.OwnCircuits = true // these clients take what comes next for their reply
	s := newServer(t, p)
	addr, stop := serve(t, s, nil)
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for j := range 250 { // 2,000 sessions in all
				c, err := dialTCP(addr)
				if err != nil {
					t.Error(err)
					return
				}
				if j%50 == 0 {
					if err := c.want(fmt.Sprintf("ENT-PATCH::%d,%d:2:;", i+1, i+17), "2 COMPLD"); err != nil {
						t.Error(err)
					}
				}
				if j%2 == 0 {
					io.WriteString(c, "RTRV-PATCH::") // gone in mid-command
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	if got := s.Device.CrossConnects().Len(); got != 8 {
		t.Errorf("%d cross-connects, want 8", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	checkNoGoroutines(t)
}

// Ensure that Serve returns at once when clients neither read nor write.
func TestServe_StopsWithClientsThatHang(t *testing.T) {
	s := newServer(t, personality())
	s.Faults.Add(emulator.Fault{Kind: emulator.FaultFlood, Verb: "RTRV-HDR"})
	addr, stop := serve(t, s, nil)
	for range 4 {
		c, err := dialTCP(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "RTRV-HDR:::2:;") // 10 MB that nobody reads
	}
	half, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	time.Sleep(50 * time.Millisecond)
	start := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("Serve took %v to return", d)
	}
	checkNoGoroutines(t)
}

// A client that closes its side for writing still gets its replies.
func TestServe_HalfClosed(t *testing.T) {
	addr, stop := serve(t, newServer(t, personality()), nil)
	c, err := dialTCP(addr)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "ENT-PATCH::1,17:2:;RTRV-PATCH:::3:;")
	c.Conn.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(c.r)
	if err != nil || !containsLine(string(got), `   "1,17"`) {
		t.Errorf("got %q, %v", got, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// failing is a listener of which Accept fails a number of times.
type failing struct {
	net.Listener
	err   error
	times atomic.Int32
}

func (l *failing) Accept() (net.Conn, error) {
	if l.times.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: l.err}
	}
	return l.Listener.Accept()
}

func TestServe_AcceptFails(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		ends bool
	}{{"Passing", syscall.EMFILE, false}, {"Aborted", syscall.ECONNABORTED, false}, {"ForGood", syscall.EINVAL, true}} {
		t.Run(test.name, func(t *testing.T) {
			addr, stop := serve(t, newServer(t, personality()), func(l net.Listener) net.Listener {
				f := &failing{Listener: l, err: test.err}
				f.times.Store(3)
				return f
			})
			c, err := dialTCP(addr)
			if err == nil {
				c.Close()
			}
			if (err != nil) != test.ends {
				t.Errorf("login: %v", err)
			}
			if err := stop(); errors.Is(err, test.err) != test.ends {
				t.Errorf("Serve: %v", err)
			}
			checkNoGoroutines(t)
		})
	}
}
