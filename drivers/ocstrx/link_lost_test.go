package ocstrx_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// linkScript serves HELLO, and hands all other frames to f with where replies go.
func linkScript(b *linkBoard, f func(conn net.Conn, f trxlink.Frame)) func(net.Conn) {
	return func(conn net.Conn) {
		var dec trxlink.Decoder
		for buf := make([]byte, 4096); ; {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			dec.Feed(buf[:n])
			for r, ok := dec.Next(); ok; r, ok = dec.Next() {
				if r.Kind == trxlink.Hello {
					_, _ = conn.Write(b.do(r).Append(nil))
					continue
				}
				f(conn, r)
			}
		}
	}
}

// TestLinkLost is one request of eight that gets lost, or its reply: that is seen by the
// replies to those behind it, long before its time is over.
func TestLinkLost(t *testing.T) {
	t.Parallel()
	for _, reply := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newLinkBoard(8)
			frames := 0
			l, _ := openLink(t, ocstrx.LinkConfig{}, linkScript(b, func(conn net.Conn, f trxlink.Frame) {
				if frames++; frames == 3 && !reply {
					return
				}
				if r := b.do(f).Append(nil); frames != 3 {
					_, _ = conn.Write(r)
				}
			}))
			var requests []ocstrx.Request
			for slot := range 8 {
				requests = append(requests, ocstrx.Request{Slot: slot, At: scratch, Data: make([]byte, 1)})
			}
			begun := time.Now()
			r, err := l.Do(t.Context(), requests...)
			if took := time.Since(begun); err != nil || took > 2*20*time.Millisecond || frames != 9 {
				t.Errorf("reply lost %t: got %v, %v, %d frames", reply, err, took, frames)
			}
			if r.Requests != 8 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// TestLinkLastLost is a trigger whose reply is lost: the receipt spans both times that it was
// sent, as either may have been the one that took effect.
func TestLinkLastLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newLinkBoard(8)
		frames := 0
		l, _ := openLink(t, ocstrx.LinkConfig{}, linkScript(b, func(conn net.Conn, f trxlink.Frame) {
			if frames++; frames == 2 {
				_, _ = conn.Write(b.do(f).Append(nil))
			}
		}))
		begun := time.Now()
		r, err := l.Do(t.Context(), ocstrx.Request{Op: ocstrx.OpTrigger, Mask: 1})
		if err != nil || r.Requests != 1 || !r.SendStart.Equal(begun) || r.Sent.Sub(begun) != ocstrx.DefaultReplyTimeout {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

// TestLinkFalseBegin is noise that looks like the begin of a long frame before a reply: it
// is given up after a gap, and the reply in it is found.
func TestLinkFalseBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newLinkBoard(8)
		head := trxlink.Frame{Kind: trxlink.Read, Payload: make([]byte, trxlink.MaxPayload)}.Append(nil)[:9]
		frames := 0
		l, _ := openLink(t, ocstrx.LinkConfig{}, linkScript(b, func(conn net.Conn, f trxlink.Frame) {
			frames++
			_, _ = conn.Write(b.do(f).Append(head))
		}))
		begun := time.Now()
		_, err := l.Do(t.Context(), ocstrx.Request{At: scratch, Data: make([]byte, 1)})
		if took := time.Since(begun); err != nil || took > 2*trxlink.Gap || frames != 1 {
			t.Errorf("got %v, %v, %d frames", err, took, frames)
		}
	})
}

// TestLinkStops is that nothing is sent behind what was refused, and that replies to what was
// under way already are waited for.
func TestLinkStops(t *testing.T) {
	t.Parallel()
	b := newLinkBoard(2)
	b.answer = func(f trxlink.Frame) []trxlink.Frame {
		if f.Kind == trxlink.Write && f.Slot == 0 {
			return []trxlink.Frame{{Kind: f.Kind | trxlink.Reply, Slot: f.Slot, Seq: f.Seq, Payload: []byte{byte(trxlink.CodeNoModule)}}}
		}
		return nil
	}
	l, _ := openLink(t, ocstrx.LinkConfig{}, b.serve)
	write := func(slot int) ocstrx.Request {
		return ocstrx.Request{Op: ocstrx.OpWrite, Slot: slot, At: scratch, Data: []byte{1}}
	}
	r, err := l.Do(t.Context(), write(0), write(1), write(1), ocstrx.Request{Op: ocstrx.OpTrigger, Mask: 3})
	var re *ocstrx.RequestError
	if !errors.As(err, &re) || re.Index != 0 || re.Unsure || !errors.Is(err, ocs.ErrDenied) || r.Requests != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.done) != 1 || b.done[0].Slot != 1 || b.hellos != 1 {
		t.Errorf("done: %v; %d greetings", b.done, b.hellos)
	}
}

// FuzzLinkReplies has the board say anything. What is not the reply is not taken for it, so
// a call either has the bytes of a reply that fits or fails, in time.
func FuzzLinkReplies(f *testing.F) {
	f.Add([]byte(nil), byte(0))
	f.Add([]byte{0xfe, 0, 7}, byte(3))
	f.Add([]byte{1, 2, 0xfe, 0xfe, 3, 0xfe, 0, 7}, byte(200))
	f.Add([]byte{0xa5, 0x5a, 1, 0x82, 0, 0, 1, 0, 0xfe, 0, 7}, byte(0))
	f.Fuzz(func(t *testing.T, noise []byte, piece byte) {
		synctest.Test(t, func(t *testing.T) {
			b := newLinkBoard(1)
			l, _ := openLink(t, ocstrx.LinkConfig{Timeout: 50 * time.Millisecond}, linkScript(b, func(conn net.Conn, f trxlink.Frame) {
				// Behind each FEh, a reply with a good head, and what follows as payload.
				parts := bytes.Split(noise, []byte{0xfe})
				said := parts[0]
				for _, p := range parts[1:] {
					said = trxlink.Frame{Kind: trxlink.Read | trxlink.Reply, Seq: f.Seq, Payload: p[:min(len(p), trxlink.MaxPayload)]}.Append(said)
				}
				for len(said) > 0 {
					n, err := conn.Write(said[:min(int(piece)+1, len(said))])
					if err != nil {
						return
					}
					said = said[n:]
				}
			}))
			begun := time.Now()
			data := []byte{0}
			_, err := l.Do(t.Context(), ocstrx.Request{At: scratch, Data: data})
			var re *ocstrx.RequestError
			if err != nil && !errors.As(err, &re) || err == nil && !bytes.Contains(noise, []byte{0xfe, 0, data[0]}) {
				t.Errorf("got %d, %v", data, err)
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("took %v", took)
			}
			var op *ocs.OpError
			if err != nil && errors.As(err, &op) && op.Reply == "" && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, io.EOF) {
				t.Errorf("got %v", err)
			}
		})
	})
}
