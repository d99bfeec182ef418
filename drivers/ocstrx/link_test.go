package ocstrx_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// scratch is where the tests write: bytes without a meaning, as far as the fake board goes.
var scratch = cmis.Address{Page: 0xb6, Offset: 128}

// TestLink is each operation once.
func TestLink(t *testing.T) {
	t.Parallel()
	b := newLinkBoard(8)
	l, _ := openLink(t, ocstrx.LinkConfig{}, b.serve)
	ctx := t.Context()
	if i := l.Info(); l.Slots() != 8 || !l.HasTrigger() || i.Serial != "BOARD1" || i.Firmware != "1.0" || l.String() != "in memory" {
		t.Errorf("got %+v", i)
	}
	buf := make([]byte, 3)
	begun := time.Now()
	r, err := l.Do(ctx,
		ocstrx.Request{Op: ocstrx.OpWrite, Slot: 7, At: scratch, Data: []byte{1, 2, 3}},
		ocstrx.Request{Op: ocstrx.OpTrigger, Mask: 0x81},
		ocstrx.Request{Op: ocstrx.OpRead, Slot: 7, At: scratch, Data: buf})
	ended := time.Now()
	if err != nil || !bytes.Equal(buf, []byte{1, 2, 3}) || r.Requests != 3 {
		t.Errorf("got % x, %+v, %v", buf, r, err)
	}
	order := []time.Time{begun, r.Begun, r.SendStart, r.FirstByte, r.Acked, ended}
	if !slices.IsSortedFunc(order, time.Time.Compare) || r.Begun.Equal(r.SendStart) || r.Sent.Before(r.SendStart) {
		t.Errorf("times out of order: %+v", r)
	}
	b.mu.Lock()
	if len(b.done) != 2 || b.done[1].Kind != trxlink.Trigger || !bytes.Equal(b.done[1].Payload, []byte{0, 0x81}) {
		t.Errorf("done: %v", b.done)
	}
	b.mu.Unlock()

	m := ocstrx.MemoryOf(l, 2)
	if err := m.Write(ctx, scratch, []byte{9}); err != nil {
		t.Error(err)
	}
	if err := m.Read(ctx, scratch, buf[:1]); err != nil || buf[0] != 9 {
		t.Errorf("got %d, %v", buf[0], err)
	}
	reply, err := l.CDB(ctx, 1, 0x8003, []byte{5, 6})
	if err != nil || !bytes.Equal(reply, []byte{0x80, 3, 5, 6}) {
		t.Errorf("CDB: got % x, %v", reply, err)
	}
	var refused *cmis.CDBError
	if _, err := l.CDB(ctx, 1, 0x8007, nil); !errors.As(err, &refused) || refused.Status != cmis.CDBPassword || !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("CDB refused: got %v", err)
	}
	for _, tc := range []struct{ set, held float64 }{{40.25, 40.25}, {math.NaN(), math.NaN()}} {
		if held, now, err := l.Plate(ctx, &tc.set); err != nil || fmt.Sprint(held) != fmt.Sprint(tc.held) || now != 25.5 {
			t.Errorf("plate: got %v, %v, %v", held, now, err)
		}
	}
	if held, _, err := l.Plate(ctx, nil); err != nil || !math.IsNaN(held) {
		t.Errorf("plate: got %v, %v", held, err)
	}
	if r, err := l.Do(ctx); err != nil || r.Requests != 0 {
		t.Errorf("nothing: got %+v, %v", r, err)
	}
}

// TestLinkRefusals is what makes no sense, refused before it is sent, and what the board
// refuses: which request it was, and which sentinel it matches.
func TestLinkRefusals(t *testing.T) {
	t.Parallel()
	b := newLinkBoard(4)
	b.features = trxlink.HasTrigger
	b.notArmed = 3
	code := func(f trxlink.Frame) []trxlink.Frame {
		if f.Kind != trxlink.Write {
			return nil
		}
		return []trxlink.Frame{{Kind: f.Kind | trxlink.Reply, Slot: f.Slot, Seq: f.Seq, Payload: f.Payload[3:]}}
	}
	b.answer = code
	l, _ := openLink(t, ocstrx.LinkConfig{}, b.serve)
	read := func(slot int) ocstrx.Request {
		return ocstrx.Request{Op: ocstrx.OpRead, Slot: slot, At: scratch, Data: make([]byte, 1)}
	}
	answered := func(c ...byte) ocstrx.Request { // the board answers a write with what is written
		return ocstrx.Request{Op: ocstrx.OpWrite, Slot: 1, At: scratch, Data: c}
	}
	for name, tc := range map[string]struct {
		request ocstrx.Request
		want    error // nil is any
		text    string
	}{
		"slot":          {read(4), ocs.ErrDenied, "in memory: read B6h:128 of module 5: there is no module 5, only 1 to 4: refused by the device"},
		"slot below":    {read(-1), ocs.ErrDenied, ""},
		"mask":          {ocstrx.Request{Op: ocstrx.OpTrigger, Mask: 0x10}, ocs.ErrDenied, ""},
		"no mask":       {ocstrx.Request{Op: ocstrx.OpTrigger}, ocs.ErrDenied, ""},
		"no bytes":      {ocstrx.Request{Op: ocstrx.OpRead, At: scratch}, nil, ""},
		"two pages":     {ocstrx.Request{Op: ocstrx.OpWrite, At: scratch, Data: make([]byte, 129)}, nil, ""},
		"operation":     {ocstrx.Request{Op: 9}, nil, ""},
		"not armed":     {ocstrx.Request{Op: ocstrx.OpTrigger, Mask: 0xf}, ocs.ErrDenied, ""},
		"empty slot":    {answered(byte(trxlink.CodeNoModule)), ocs.ErrDenied, ""},
		"busy":          {answered(byte(trxlink.CodeBusy)), ocs.ErrDenied, ""},
		"version":       {answered(byte(trxlink.CodeVersion)), ocs.ErrNotSupported, ""},
		"unknown":       {answered(99), ocs.ErrDenied, ""},
		"too long":      {answered(0, 1, 2), nil, ""},
		"not supported": {answered(byte(trxlink.CodeNotPresent)), ocs.ErrNotSupported, ""},
	} {
		t.Run(name, func(t *testing.T) {
			// Behind a read that is fine, so that the index is not 0.
			_, err := l.Do(t.Context(), read(0), tc.request)
			var which *ocstrx.RequestError
			var op *ocs.OpError
			if !errors.As(err, &which) || which.Index != 1 || which.Unsure || !errors.As(err, &op) || op.Device != "in memory" {
				t.Fatalf("got %v", err)
			}
			if tc.want != nil && !errors.Is(err, tc.want) || tc.text != "" && err.Error() != tc.text {
				t.Errorf("got %v", err)
			}
		})
	}
	var which *ocstrx.NotArmedError
	if _, err := l.Do(t.Context(), ocstrx.Request{Op: ocstrx.OpTrigger, Mask: 0xf}); !errors.As(err, &which) || which.Slot != 2 {
		t.Errorf("got %v", err)
	}
	if _, err := l.CDB(t.Context(), 4, 0x8001, nil); !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("CDB of no slot: got %v", err)
	}
	if _, err := l.CDB(t.Context(), 0, 0x8001, make([]byte, 121)); err == nil {
		t.Error("CDB of 121 bytes: got no error")
	}
	hot := 300.0
	if _, _, err := l.Plate(t.Context(), &hot); !errors.Is(err, ocs.ErrNotSupported) {
		t.Errorf("plate: got %v", err)
	}
}

// TestLinkOrder is what may be under way together: the fake board answers nothing until the
// line is silent, so what has come by then was sent without waiting.
func TestLinkOrder(t *testing.T) {
	t.Parallel()
	write := func(slot int) ocstrx.Request {
		return ocstrx.Request{Op: ocstrx.OpWrite, Slot: slot, At: scratch, Data: []byte{1}}
	}
	read := func(slot int) ocstrx.Request {
		return ocstrx.Request{Op: ocstrx.OpRead, Slot: slot, At: scratch, Data: make([]byte, 128)}
	}
	trigger := ocstrx.Request{Op: ocstrx.OpTrigger, Mask: 3}
	for name, tc := range map[string]struct {
		requests []ocstrx.Request
		bursts   []int
	}{
		"reads of one":           {slices.Repeat([]ocstrx.Request{read(0)}, 12), []int{8, 4}},
		"writes to different":    {[]ocstrx.Request{write(0), write(1), write(2)}, []int{3}},
		"writes to one":          {[]ocstrx.Request{write(0), write(0), write(0)}, []int{1, 1, 1}},
		"read after write":       {[]ocstrx.Request{write(0), read(1), read(0), read(2)}, []int{2, 2}},
		"write after read":       {[]ocstrx.Request{read(0), write(0)}, []int{1, 1}},
		"trigger waits":          {[]ocstrx.Request{write(0), write(1), trigger, read(0), read(1)}, []int{2, 1, 2}},
		"two triggers":           {[]ocstrx.Request{trigger, trigger}, []int{1, 1}},
		"arm all, read them all": {[]ocstrx.Request{write(0), write(1), write(2), read(0), read(1), read(2)}, []int{3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newLinkBoard(8)
				var bursts []int
				l, _ := openLink(t, ocstrx.LinkConfig{Timeout: time.Second}, func(conn net.Conn) {
					var dec trxlink.Decoder
					var held []trxlink.Frame
					for buf := make([]byte, 4096); ; {
						_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
						n, err := conn.Read(buf)
						dec.Feed(buf[:n])
						for f, ok := dec.Next(); ok; f, ok = dec.Next() {
							held = append(held, f)
						}
						if n > 0 {
							continue
						}
						if errors.Is(err, io.EOF) {
							return
						}
						if len(held) > 0 && held[0].Kind != trxlink.Hello {
							bursts = append(bursts, len(held))
						}
						for _, f := range held {
							if _, err := conn.Write(b.do(f).Append(nil)); err != nil {
								return
							}
						}
						held = nil
					}
				})
				if r, err := l.Do(t.Context(), tc.requests...); err != nil || r.Requests != len(tc.requests) {
					t.Error(r, err)
				}
				l.Close()
				synctest.Wait()
				if !slices.Equal(bursts, tc.bursts) {
					t.Errorf("got bursts of %v, want %v", bursts, tc.bursts)
				}
			})
		})
	}
}
