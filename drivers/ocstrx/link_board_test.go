package ocstrx_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// linkBoard is a board made by hand, from the text of package trxlink. Its modules are bytes.
type linkBoard struct {
	slots    int
	features trxlink.Features
	serial   string
	// answer, when set, may answer in place of the board; nil leaves it to the board.
	answer func(trxlink.Frame) []trxlink.Frame

	mu       sync.Mutex // guards what follows
	memory   map[int]map[cmis.Address]byte
	done     []trxlink.Frame // what took effect, in order; not reads
	hellos   int
	frames   int // received
	notArmed int // slot that is not armed, from 1; 0 is none
}

func newLinkBoard(slots int) *linkBoard {
	return &linkBoard{slots: slots, features: trxlink.HasTrigger | trxlink.HasPlate, serial: "BOARD1", memory: map[int]map[cmis.Address]byte{}}
}

// serve serves one connection until it breaks.
func (b *linkBoard) serve(conn net.Conn) {
	defer conn.Close()
	var dec trxlink.Decoder
	var seen []trxlink.Frame // the last ones, and their replies
	var replies []trxlink.Frame
	buf := make([]byte, 4096)
	for {
		if f, ok := dec.Next(); ok {
			b.mu.Lock()
			b.frames++
			b.mu.Unlock()
			if b.answer != nil {
				if fs := b.answer(f); fs != nil {
					for _, f := range fs {
						if _, err := conn.Write(f.Append(nil)); err != nil {
							return
						}
					}
					continue
				}
			}
			i := slices.IndexFunc(seen, func(s trxlink.Frame) bool { return string(s.Append(nil)) == string(f.Append(nil)) })
			if i < 0 {
				if f.Kind == trxlink.Hello {
					seen, replies = nil, nil
				}
				seen, replies = append(seen, f), append(replies, b.do(f))
				if len(seen) > trxlink.Window {
					seen, replies = seen[1:], replies[1:]
				}
				i = len(seen) - 1
			}
			if _, err := conn.Write(replies[i].Append(nil)); err != nil {
				return
			}
			continue
		}
		if dec.Pending() {
			_ = conn.SetReadDeadline(time.Now().Add(trxlink.Gap))
		} else {
			_ = conn.SetReadDeadline(time.Time{})
		}
		n, err := conn.Read(buf)
		dec.Feed(buf[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			dec.Expire()
		case err != nil:
			return
		}
	}
}

// do does a request that has not come before.
func (b *linkBoard) do(f trxlink.Frame) trxlink.Frame {
	b.mu.Lock()
	defer b.mu.Unlock()
	reply := func(code trxlink.Code, p ...byte) trxlink.Frame {
		return trxlink.Frame{Kind: f.Kind | trxlink.Reply, Slot: f.Slot, Seq: f.Seq, Payload: append([]byte{byte(code)}, p...)}
	}
	if f.Slot != trxlink.Board && int(f.Slot) >= b.slots {
		return reply(trxlink.CodeSlot)
	}
	if f.Kind != trxlink.Read && f.Kind != trxlink.Hello {
		b.done = append(b.done, f)
	}
	memory := b.memory[int(f.Slot)]
	if memory == nil {
		memory = map[cmis.Address]byte{}
		b.memory[int(f.Slot)] = memory
	}
	switch f.Kind {
	case trxlink.Hello:
		b.hellos++
		return reply(trxlink.CodeOK, trxlink.Info{Version: 1, Slots: b.slots, Features: b.features, Serial: b.serial, Firmware: "1.0"}.Append(nil, trxlink.Nonce(f.Payload))...)
	case trxlink.Read:
		a, n, err := trxlink.ParseRead(f.Payload)
		if err != nil {
			return reply(trxlink.CodeArgument)
		}
		var p []byte
		for range n {
			p = append(p, memory[a])
			a.Offset++
		}
		return reply(trxlink.CodeOK, p...)
	case trxlink.Write:
		a, data, err := trxlink.ParseWrite(f.Payload)
		if err != nil {
			return reply(trxlink.CodeArgument)
		}
		for _, c := range data {
			memory[a] = c
			a.Offset++
		}
		return reply(trxlink.CodeOK)
	case trxlink.Trigger:
		if b.notArmed > 0 {
			return reply(trxlink.CodeNotArmed, byte(b.notArmed-1))
		}
		return reply(trxlink.CodeOK)
	case trxlink.CDB:
		command := binary.BigEndian.Uint16(f.Payload)
		if command == 0x8007 {
			return reply(trxlink.CodeOK, byte(cmis.CDBPassword))
		}
		return reply(trxlink.CodeOK, append([]byte{byte(cmis.CDBSuccess)}, f.Payload...)...)
	case trxlink.Plate:
		set, _ := trxlink.ParsePlate(f.Payload)
		if set == trxlink.PlateLeave {
			set = trxlink.PlateOff
		}
		return reply(trxlink.CodeOK, trxlink.PlateStatus{Set: set, Now: 25.5}.Append(nil)...)
	}
	return reply(trxlink.CodeKind)
}

// linkDialer dials in memory; serve gets the far ends, near makes something of the near one.
type linkDialer struct {
	serve func(net.Conn)
	near  func(net.Conn) transport.Conn
	wg    sync.WaitGroup
	dials int
}

func (d *linkDialer) Dial(ctx context.Context) (transport.Conn, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	d.dials++
	near, far := net.Pipe()
	d.wg.Go(func() { defer far.Close(); d.serve(far) })
	if d.near != nil {
		return d.near(near), nil
	}
	return near, nil
}

func (d *linkDialer) String() string { return "in memory" }

// openLink opens a link to whoever serves, and closes it at the end of the test.
func openLink(t testing.TB, cfg ocstrx.LinkConfig, serve func(net.Conn)) (*ocstrx.Link, *linkDialer) {
	t.Helper()
	d := &linkDialer{serve: serve}
	cfg.Dialer = d
	l, err := ocstrx.OpenLink(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); d.wg.Wait() })
	return l, d
}

// noisyConn is a bad cable: it flips bits and loses bytes in both directions.
type noisyConn struct {
	net.Conn
	in, out *rand.Rand
	flip    float64 // probability per byte
	drop    float64
}

func noisy(flip, drop float64, seed uint64) func(net.Conn) transport.Conn {
	dials := uint64(0)
	return func(c net.Conn) transport.Conn {
		dials++
		return &noisyConn{c, rand.New(rand.NewPCG(seed, 2*dials)), rand.New(rand.NewPCG(seed, 2*dials+1)), flip, drop}
	}
}

func (c *noisyConn) spoil(p []byte, r *rand.Rand) []byte {
	var out []byte
	for _, b := range p {
		if r.Float64() < c.drop {
			continue
		}
		if r.Float64() < c.flip {
			b ^= 1 << r.IntN(8)
		}
		out = append(out, b)
	}
	return out
}

func (c *noisyConn) Write(p []byte) (int, error) {
	spoiled := c.spoil(p, c.out)
	n, err := c.Conn.Write(spoiled)
	if n == len(spoiled) {
		n = len(p)
	}
	return min(n, len(p)), err
}

func (c *noisyConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		got := copy(p, c.spoil(p[:n], c.in))
		if got > 0 || err != nil {
			return got, err
		}
	}
}
