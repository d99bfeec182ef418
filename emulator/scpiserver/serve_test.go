package scpiserver_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/scpiserver"
)

var _ emulator.FrontEnd = (*scpiserver.Server)(nil)

// tcp is a session over a real socket.
type tcp struct{ *servertest.TCP }

func dialTCP(addr string) (*tcp, error) {
	c, err := servertest.DialTCP(addr)
	return &tcp{c}, err
}

// ask sends text and returns the next line with its end.
func (c *tcp) ask(text string) (string, error) { return c.Ask(text, '\n') }

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
	addr, stop := servertest.Serve(t, s.Serve)
	servertest.Clients(t, 100, func(i int) error {
		c, err := dialTCP(addr)
		if err != nil {
			return err
		}
		defer c.Close()
		for j := range 20 {
			got, err := c.ask(fmt.Sprintf(":OXC:SWIT:CONN:ADD (@%d),(@%d);PORT? %d;:SYST:ERR?;FOO%d\n", i+1, i+101, i+1, j))
			want := fmt.Sprintf("\"%d\";-113, \"Undefined header;FOO%d\"\r\n", i+101, j-1)
			if j == 0 {
				want = fmt.Sprintf("\"%d\";0, \"No error\"\r\n", i+101)
			}
			if err != nil || got != want {
				return fmt.Errorf("got %q, %w, want %q", got, err, want)
			}
		}
		_, err = io.WriteString(c, ":OXC:SWIT:CONN:SUB (@1") // gone in mid-command
		return err
	})
	if n := s.Device.CrossConnects().Len(); n != 100 {
		t.Errorf("%d cross-connects, want 100", n)
	}
	stop()
}

// Ensure that clients which never read hold up neither others nor the end.
func TestServe_ClientsThatHang(t *testing.T) {
	s := newServer(t, fast())
	addr, stop := servertest.Serve(t, s.Serve)
	line := strings.Repeat(":OXC:SWIT:PORT:STAT?;", 500) + "\n"
	servertest.Clients(t, 3, func(int) error {
		c, err := dialTCP(addr)
		if err != nil {
			return err
		}
		t.Cleanup(func() { c.Close() })
		for { // until the server reads no more
			c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			if _, err := io.WriteString(c, line); err != nil {
				return nil
			}
		}
	})
	c, err := dialTCP(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.ask("*OPC?\n"); got != "1\r\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	stop()
}

// Ensure that what came before the end of the input is answered.
func TestServe_HalfClosed(t *testing.T) {
	addr, _ := servertest.Serve(t, newServer(t, personality()).Serve)
	if got := servertest.HalfClosed(t, addr, ":OXC:SWIT:CONN:ADD (@1),(@17);STAT?\n*IDN?"); got != "(@1),(@17)\r\n" {
		t.Errorf("got %q", got)
	}
}

// BenchmarkSwitch measures a change with its acknowledgement over a socket, of a
// matrix that takes no time.
func BenchmarkSwitch(b *testing.B) {
	for _, n := range []int{1, 192} {
		b.Run(fmt.Sprintf("pairs=%d", n), func(b *testing.B) {
			p := fast()
			p.Size = "192x192"
			addr, stop := servertest.Serve(b, newServer(b, p).Serve)
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
			stop()
		})
	}
}
