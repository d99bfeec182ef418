package ocstrx_test

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/serialline"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// linkLine serves a board on a pseudo-terminal until the end of the test.
func linkLine(t testing.TB, fe emulator.FrontEnd) string {
	t.Helper()
	line, err := serialline.Listen(filepath.Join(t.TempDir(), "tty"))
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Serve(t, func(ctx context.Context) error { return line.Serve(ctx, fe) })
	return line.Path()
}

// TestLinkSerial is a link over a real serial line: everything of TestLinkEmulated that
// could depend on it, and that the line can be opened again, with half a request in it.
func TestLinkSerial(t *testing.T) {
	t.Parallel()
	board, clock := linkEmulated(t, "ocstrx-8x112g-x8")
	path := linkLine(t, board)
	for range 3 {
		l, err := ocstrx.OpenLink(t.Context(), ocstrx.LinkConfig{Dialer: transport.Serial{Path: path}})
		if err != nil {
			t.Fatal(err)
		}
		var requests []ocstrx.Request
		for slot := range l.Slots() {
			requests = append(requests, ocstrx.Request{Op: ocstrx.OpWrite, Slot: slot, At: ocst.At(ocst.RegStaged),
				Data: []byte{byte(1 + rand.IntN(2)), 0xff, byte(ocst.CommitNow)}})
		}
		for slot := range l.Slots() { // long ones: more than 1 KiB in one go
			requests = append(requests, ocstrx.Request{Op: ocstrx.OpWrite, Slot: slot, At: ocst.At(128), Data: make([]byte, 8)},
				ocstrx.Request{Slot: slot, At: ocst.At(128), Data: make([]byte, 128)})
		}
		if r, err := l.Do(t.Context(), requests...); err != nil || r.Requests != len(requests) {
			t.Fatal(r, err)
		}
		clock.Advance(2 * time.Millisecond)
		if s := linkStatus(t, l, 8)[7]; s.Path != ocst.Path(requests[7].Data[0]) {
			t.Errorf("got %+v", s)
		}
		l.Close()
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		half := trxlink.Frame{Kind: trxlink.Write, Payload: make([]byte, 100)}.Append(nil)
		if _, err := f.Write(half[:50]); err != nil {
			t.Error(err)
		}
		f.Close()
	}
}

// linkFile is a terminal without anything in between, not even its settings.
type linkFile string

func (f linkFile) String() string { return string(f) }

func (f linkFile) Dial(context.Context) (transport.Conn, error) {
	fd, err := unix.Open(string(f), unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), string(f)), nil
}

// BenchmarkDo is one read of the status over a pseudo-terminal, against a bare exchange of
// bytes that are as many over another one: what a Link costs, over transport.Serial, and
// over a bare file.
func BenchmarkDo(b *testing.B) {
	line := func(b *testing.B) string {
		board, _ := linkEmulated(b, "ocstrx-8x112g-x8")
		return linkLine(b, board)
	}
	for name, dialer := range map[string]func(path string) transport.Dialer{
		"serial": func(path string) transport.Dialer { return transport.Serial{Path: path} },
		"file":   func(path string) transport.Dialer { return linkFile(path) },
	} {
		b.Run(name, func(b *testing.B) {
			l, err := ocstrx.OpenLink(b.Context(), ocstrx.LinkConfig{Dialer: dialer(line(b))})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			conn, err := dialer(line(b)).Dial(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			(&bareHost{ReadWriter: conn}).greet(b)
			var linked, bare []time.Duration
			data := make([]byte, ocst.StatusSpan.Length)
			reply := make([]byte, len(trxlink.Frame{}.Append(nil))+1+len(data))
			do := func() {
				begun := time.Now()
				if _, err := l.Do(b.Context(), ocstrx.Request{At: ocst.StatusSpan.Address, Data: data}); err != nil {
					b.Fatal(err)
				}
				linked = append(linked, time.Since(begun))
			}
			ask := func(seq uint8) {
				p := trxlink.Frame{Kind: trxlink.Read, Seq: seq, Payload: trxlink.AppendRead(nil, ocst.StatusSpan.Address, len(data))}.Append(nil)
				begun := time.Now()
				if _, err := conn.Write(p); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, reply); err != nil {
					b.Fatal(err)
				}
				bare = append(bare, time.Since(begun))
			}
			for i := 0; b.Loop(); i++ {
				if i%4 < 2 { // who goes first alternates
					do()
					ask(uint8(i))
				} else {
					ask(uint8(i))
					do()
				}
			}
			drivertest.Report(b, linked, "do")
			drivertest.Report(b, bare, "raw")
			drivertest.Ratio(b, linked, bare, "x-raw")
		})
	}
}
