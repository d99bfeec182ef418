package tl1server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
)

// tcp is a session over a real socket.
type tcp struct{ *servertest.TCP }

func dialTCP(addr string) (*tcp, error) {
	conn, err := servertest.DialTCP(addr)
	if err != nil {
		return nil, err
	}
	c := &tcp{conn}
	return c, c.want("ACT-USER::admin:1::root;", "1 COMPLD")
}

// want sends a command and wants a reply with status.
func (c *tcp) want(text, status string) error {
	got, err := c.Ask(text, ';')
	if err != nil || !containsLine(got, "M  "+status) {
		return fmt.Errorf("%s: got %q, %v", text, got, err)
	}
	return nil
}

func containsLine(s, line string) bool { return strings.Contains("\n"+s, "\n"+line+"\r\n") }

func TestServe_Clients(t *testing.T) {
	p := personality()
	p.TL1.OwnCircuits = true // these clients take what comes next for their reply
	s := newServer(t, p)
	addr, stop := servertest.Serve(t, s.Serve)
	servertest.Clients(t, 8, func(i int) error {
		for j := range 250 { // 2,000 sessions in all
			c, err := dialTCP(addr)
			if err != nil {
				return err
			}
			if j%50 == 0 {
				err = c.want(fmt.Sprintf("ENT-PATCH::%d,%d:2:;", i+1, i+17), "2 COMPLD")
			}
			if j%2 == 0 {
				io.WriteString(c, "RTRV-PATCH::") // gone in mid-command
			}
			c.Close()
			if err != nil {
				return err
			}
		}
		return nil
	})
	if got := s.Device.CrossConnects().Len(); got != 8 {
		t.Errorf("%d cross-connects, want 8", got)
	}
	stop()
}

// Ensure that Serve returns at once when clients neither read nor write.
func TestServe_StopsWithClientsThatHang(t *testing.T) {
	s := newServer(t, personality())
	s.Faults.Add(emulator.Fault{Kind: emulator.FaultFlood, Verb: "RTRV-HDR"})
	addr, stop := servertest.Serve(t, s.Serve)
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
	stop()
	if d := time.Since(start); d > time.Second {
		t.Errorf("Serve took %v to return", d)
	}
}

// A client that closes its side for writing still gets its replies.
func TestServe_HalfClosed(t *testing.T) {
	addr, _ := servertest.Serve(t, newServer(t, personality()).Serve)
	got := servertest.HalfClosed(t, addr, "ACT-USER::admin:1::root;ENT-PATCH::1,17:2:;RTRV-PATCH:::3:;")
	if !containsLine(got, `   "1,17"`) {
		t.Errorf("got %q", got)
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
			var ended error
			addr, stop := servertest.Serve(t, func(ctx context.Context, l net.Listener) error {
				f := &failing{Listener: l, err: test.err}
				f.times.Store(3)
				ended = newServer(t, personality()).Serve(ctx, f)
				return nil
			})
			c, err := dialTCP(addr)
			if err == nil {
				c.Close()
			}
			if (err != nil) != test.ends {
				t.Errorf("login: %v", err)
			}
			if stop(); errors.Is(ended, test.err) != test.ends {
				t.Errorf("Serve: %v", ended)
			}
		})
	}
}
