package scpiserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/scpiserver"
)

var _ emulator.FrontEnd = (*scpiserver.Server)(nil)

// serve starts a server on loopback. The function stops it and reports how Serve
// ended.
func serve(t testing.TB, s *scpiserver.Server) (string, func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return l.Addr().String(), func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(10 * time.Second):
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
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	return &tcp{conn, bufio.NewReader(conn)}, nil
}

// ask sends text and returns the next line with its end.
func (c *tcp) ask(text string) (string, error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	return c.r.ReadString('\n')
}

// fast is a personality that acknowledges at once.
func fast() emulator.Personality {
	p := personality()
	p.Switching = emulator.Switching{Ack: emulator.AckBefore}
	return p
}

// Ensure that a hundred clients at once are served, each as if alone.
func TestServe_Clients(t *testing.T) {
	p := fast()
	p.Size = "100x100"
	s := newServer(t, p)
	addr, stop := serve(t, s)
	var clients sync.WaitGroup
	for i := range 100 {
		clients.Go(func() {
			c, err := dialTCP(addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for j := range 20 {
				got, err := c.ask(fmt.Sprintf(":OXC:SWIT:CONN:ADD (@%d),(@%d);PORT? %d;:SYST:ERR?;FOO%d\n", i+1, i+101, i+1, j))
				want := fmt.Sprintf("\"%d\";-113, \"Undefined header;FOO%d\"\r\n", i+101, j-1)
				if j == 0 {
					want = fmt.Sprintf("\"%d\";0, \"No error\"\r\n", i+101)
				}
				if err != nil || got != want {
					t.Errorf("client %d: got %q, %v, want %q", i, got, err, want)
					return
				}
			}
			io.WriteString(c, ":OXC:SWIT:CONN:SUB (@1") // gone in mid-command
		})
	}
	clients.Wait()
	if n := s.Device.CrossConnects().Len(); n != 100 {
		t.Errorf("%d cross-connects, want 100", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	checkNoGoroutines(t)
}

// Ensure that clients which never read hold up neither others nor the end.
func TestServe_ClientsThatHang(t *testing.T) {
	s := newServer(t, fast())
	addr, stop := serve(t, s)
	var stuck sync.WaitGroup
	line := strings.Repeat(":OXC:SWIT:PORT:STAT?;", 500) + "\n"
	for range 3 {
		c, err := dialTCP(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		stuck.Go(func() {
			for { // until the server reads no more
				c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
				if _, err := io.WriteString(c, line); err != nil {
					return
				}
			}
		})
	}
	stuck.Wait()
	c, err := dialTCP(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.ask("*OPC?\n"); got != "1\r\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	checkNoGoroutines(t)
}

// Ensure that what came before the end of the input is answered.
func TestServe_HalfClosed(t *testing.T) {
	addr, stop := serve(t, newServer(t, personality()))
	c, err := dialTCP(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, ":OXC:SWIT:CONN:ADD (@1),(@17);STAT?\n*IDN?")
	c.Conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c); string(got) != "(@1),(@17)\r\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	checkNoGoroutines(t)
}

// BenchmarkSwitch measures a change with its acknowledgement over a socket, of a
// matrix that takes no time.
func BenchmarkSwitch(b *testing.B) {
	for _, n := range []int{1, 192} {
		b.Run(fmt.Sprintf("pairs=%d", n), func(b *testing.B) {
			p := fast()
			p.Size = "192x192"
			addr, stop := serve(b, newServer(b, p))
			c, err := dialTCP(addr)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Time{})
			var lines [2]string
			for k := range lines {
				in, out := "", ""
				for i := range n {
					in += fmt.Sprintf(",%d", i+1)
					out += fmt.Sprintf(",%d", 193+(i+k)%192)
				}
				lines[k] = fmt.Sprintf(":OXC:SWIT:CONN:ADD (@%s),(@%s);*OPC?\n", in[1:], out[1:])
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if got, err := c.ask(lines[i%2]); got != "1\r\n" {
					b.Fatalf("got %q, %v", got, err)
				}
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/change")
			if err := stop(); err != nil {
				b.Error(err)
			}
		})
	}
}
