package ocstrx_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// restartBoard is a linkBoard that forgets whom it has met and what it has done when it
// restarts, which the line does not show. Requests count from 1, without HELLO.
type restartBoard struct {
	*linkBoard
	at      int  // restarts at this request
	swallow bool // it has done that one, and not answered
	n       int
	greeted bool
}

func (b *restartBoard) serve(conn net.Conn) {
	b.answer = func(f trxlink.Frame) []trxlink.Frame {
		if f.Kind == trxlink.Hello {
			b.greeted = true
			return []trxlink.Frame{b.do(f)}
		}
		if b.n++; b.n == b.at {
			if b.greeted = false; b.swallow {
				b.do(f)
				return []trxlink.Frame{}
			}
		}
		if !b.greeted {
			return []trxlink.Frame{{Kind: f.Kind | trxlink.Reply, Slot: f.Slot, Seq: f.Seq, Payload: []byte{byte(trxlink.CodeHello)}}}
		}
		return []trxlink.Frame{b.do(f)}
	}
	b.linkBoard.serve(conn)
}

// TestLinkRestart: a board that restarts takes no command twice, though it remembers none.
// When it cannot have done anything the host goes on as if nothing had happened; else it says
// what it does not know.
func TestLinkRestart(t *testing.T) {
	t.Parallel()
	var writes []ocstrx.Request
	for slot := range 6 {
		writes = append(writes, ocstrx.Request{Op: ocstrx.OpWrite, Slot: slot, At: scratch, Data: []byte{1}})
	}
	for _, c := range []struct {
		name    string
		at      int
		swallow bool
		fails   bool
		index   int
		unsure  bool
		done    int // writes of the first call
	}{
		{"between two calls", 1, false, false, 0, false, 6},
		{"among requests", 4, false, true, 3, false, 3},
		{"the first done and not told", 1, true, true, 0, true, 1},
		{"the last done and not told", 6, true, true, 5, true, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &restartBoard{linkBoard: newLinkBoard(6), at: c.at, swallow: c.swallow}
				l, _ := openLink(t, ocstrx.LinkConfig{}, b.serve)
				_, err := l.Do(t.Context(), writes...)
				if (err != nil) != c.fails || len(b.done) != c.done {
					t.Fatalf("got %v, %d writes were done, want %d", err, len(b.done), c.done)
				}
				var re *ocstrx.RequestError
				if c.fails && (!errors.As(err, &re) || re.Index != c.index || re.Unsure != c.unsure || !strings.Contains(err.Error(), "restarted")) {
					t.Errorf("got %v, request %d", err, re.Index)
				}
				if _, err := l.Do(t.Context(), writes...); err != nil || len(b.done) != c.done+6 || b.hellos != 2 {
					t.Errorf("afterwards: %v, %d writes, %d greetings", err, len(b.done), b.hellos)
				}
				b.greeted = false
				if _, err := l.CDB(t.Context(), 0, 0x8001, []byte{1}); err != nil || len(b.done) != c.done+7 {
					t.Errorf("a CDB command after another restart: %v", err)
				}
			})
		})
	}
}

// TestLinkNeverGreeted is a board that wants HELLO again and again: that ends.
func TestLinkNeverGreeted(t *testing.T) {
	t.Parallel()
	b := newLinkBoard(1)
	b.answer = func(f trxlink.Frame) []trxlink.Frame {
		if f.Kind == trxlink.Hello {
			return nil
		}
		return []trxlink.Frame{{Kind: f.Kind | trxlink.Reply, Slot: f.Slot, Seq: f.Seq, Payload: []byte{byte(trxlink.CodeHello)}}}
	}
	l, _ := openLink(t, ocstrx.LinkConfig{}, b.serve)
	if _, err := l.Do(t.Context(), ocstrx.Request{At: scratch, Data: make([]byte, 1)}); err == nil || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("got %v", err)
	}
}

// TestLinkStaleHello: the reply to a HELLO of who was here before is not taken for ours,
// though it has the same sequence number. Else the replies behind it would be.
func TestLinkStaleHello(t *testing.T) {
	t.Parallel()
	b := newLinkBoard(2)
	b.answer = func(f trxlink.Frame) []trxlink.Frame {
		if f.Kind != trxlink.Hello {
			return nil
		}
		other := f
		other.Payload = []byte("them")
		stale := b.do(other)
		stale.Payload[2] = 5 // slots
		return []trxlink.Frame{stale, b.do(f)}
	}
	l, _ := openLink(t, ocstrx.LinkConfig{}, b.serve)
	if l.Slots() != 2 {
		t.Errorf("took the reply to another HELLO: %+v", l.Info())
	}
}

// TestLinkNoModule: an empty slot is told as that, and no other refusal is.
func TestLinkNoModule(t *testing.T) {
	t.Parallel()
	b := newLinkBoard(2)
	b.answer = func(f trxlink.Frame) []trxlink.Frame {
		if f.Kind == trxlink.Hello {
			return nil
		}
		code := trxlink.CodeNoModule
		if f.Slot == 1 {
			code = trxlink.CodeBusy
		}
		return []trxlink.Frame{{Kind: f.Kind | trxlink.Reply, Slot: f.Slot, Seq: f.Seq, Payload: []byte{byte(code)}}}
	}
	l, _ := openLink(t, ocstrx.LinkConfig{}, b.serve)
	for slot, empty := range []bool{true, false} {
		_, err := l.Do(t.Context(), ocstrx.Request{Slot: slot, At: scratch, Data: make([]byte, 1)})
		if errors.Is(err, cmis.ErrNoModule) != empty {
			t.Errorf("slot %d: %v", slot, err)
		}
	}
	if _, err := ocstrx.Open(t.Context(), ocstrx.Config{Bus: l}); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a module that is busy was taken for an empty slot: %v", err)
	}
}
