package ocstrx_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// TestLinkHostile is a board that answers something else than what was asked, or nothing.
func TestLinkHostile(t *testing.T) {
	t.Parallel()
	good := func(f trxlink.Frame) trxlink.Frame {
		return trxlink.Frame{Kind: f.Kind | trxlink.Reply, Slot: f.Slot, Seq: f.Seq, Payload: []byte{0, 7}}
	}
	junk := func(f trxlink.Frame) []trxlink.Frame { // what is not a reply to f
		seq, kind, slot, version := good(f), good(f), good(f), good(f)
		seq.Seq++
		kind.Kind = f.Kind
		slot.Slot++
		version.Version = 2
		return []trxlink.Frame{seq, kind, slot, version, {Kind: trxlink.Hello | trxlink.Reply, Slot: trxlink.Board, Seq: f.Seq}}
	}
	for name, tc := range map[string]struct {
		answer func(trxlink.Frame) []trxlink.Frame
		want   error // nil: the read succeeds
	}{
		"junk only":       {junk, context.DeadlineExceeded},
		"junk, then good": {func(f trxlink.Frame) []trxlink.Frame { return append(junk(f), good(f)) }, nil},
		"twice":           {func(f trxlink.Frame) []trxlink.Frame { return []trxlink.Frame{good(f), good(f), good(f)} }, nil},
		"silence":         {func(trxlink.Frame) []trxlink.Frame { return []trxlink.Frame{} }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newLinkBoard(1)
				b.answer = func(f trxlink.Frame) []trxlink.Frame {
					if f.Kind == trxlink.Hello {
						return nil
					}
					return tc.answer(f)
				}
				l, _ := openLink(t, ocstrx.LinkConfig{}, b.serve)
				for range 3 { // nothing is left behind for the next
					begun := time.Now()
					buf := []byte{0}
					_, err := l.Do(t.Context(), ocstrx.Request{Op: ocstrx.OpRead, At: scratch, Data: buf})
					if tc.want == nil && (err != nil || buf[0] != 7) || !errors.Is(err, tc.want) {
						t.Errorf("got %d, %v", buf[0], err)
					}
					if took := time.Since(begun); took > 4*ocstrx.DefaultReplyTimeout+time.Second {
						t.Errorf("took %v", took)
					}
				}
			})
		})
	}
}

// TestLinkTrickle is a board that says something all the time, and never a reply: neither the
// limit of a reply nor the end of a context is forgotten for that.
func TestLinkTrickle(t *testing.T) {
	t.Parallel()
	trickle := func(b *linkBoard) func(net.Conn) {
		return func(conn net.Conn) {
			var dec trxlink.Decoder
			for buf := make([]byte, 4096); ; {
				n, err := conn.Read(buf)
				if err != nil {
					return
				}
				dec.Feed(buf[:n])
				f, ok := dec.Next()
				if ok && f.Kind == trxlink.Hello {
					_, _ = conn.Write(b.do(f).Append(nil))
					continue
				}
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				for { // the begin of a frame that is as long as can be
					if _, err := conn.Write([]byte{0xa5}); err != nil {
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		after time.Duration // that the context ends
		want  error
		most  time.Duration
	}{
		"limit":   {time.Hour, context.DeadlineExceeded, 2100 * time.Millisecond},
		"context": {70 * time.Millisecond, errEnoughLink, 130 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _ := openLink(t, ocstrx.LinkConfig{}, trickle(newLinkBoard(1)))
				ctx, cancel := context.WithCancelCause(t.Context())
				timer := time.AfterFunc(tc.after, func() { cancel(errEnoughLink) })
				defer timer.Stop()
				begun := time.Now()
				_, err := l.Do(ctx, ocstrx.Request{Op: ocstrx.OpRead, At: scratch, Data: make([]byte, 1)})
				if took := time.Since(begun); !errors.Is(err, tc.want) || took > tc.most {
					t.Errorf("got %v after %v", err, took)
				}
			})
		})
	}
}
