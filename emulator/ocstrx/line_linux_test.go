package ocstrx

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/serialline"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// TestSerialLine ensures that a board can be talked to over a serial line, by one host after
// another.
func TestSerialLine(t *testing.T) {
	p, err := LoadPersonality("ocstrx-8x112g")
	if err != nil {
		t.Fatal(err)
	}
	board, err := NewBoard(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	line, err := serialline.Listen("")
	if err != nil {
		t.Fatal(err)
	}
	servertest.Run(t, func(ctx context.Context) error { return line.Serve(ctx, board) })
	for host := range byte(3) {
		f, err := os.OpenFile(line.Path(), os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		hello := trxlink.Frame{Kind: trxlink.Hello, Slot: trxlink.Board, Seq: 0xff, Payload: []byte("host")}
		request := trxlink.Frame{Kind: trxlink.Read, Seq: host, Payload: trxlink.AppendRead(nil, ocst.At(ocst.RegMagic), 4)}
		if _, err := f.Write(request.Append(hello.Append(nil))); err != nil {
			t.Fatal(err)
		}
		var in trxlink.Decoder
		buf := make([]byte, 100)
		for {
			if r, ok := in.Next(); ok {
				if r.Seq == hello.Seq {
					continue
				}
				if r.Seq != host || string(r.Payload[1:]) != ocst.Magic {
					t.Errorf("reply %v", r)
				}
				break
			}
			n, err := f.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			in.Feed(buf[:n])
		}
		f.Close()
	}
}
