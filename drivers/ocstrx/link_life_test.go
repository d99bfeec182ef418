package ocstrx_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/trxlink"
)

var errEnoughLink = errors.New("enough")

// TestLinkContext is a call that nobody waits for any more: it returns soon, says that a
// write may have been done, and its late reply is not taken for that of the next call.
func TestLinkContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newLinkBoard(2)
		var quick atomic.Bool
		b.answer = func(f trxlink.Frame) []trxlink.Frame {
			if !quick.Load() && f.Kind != trxlink.Hello {
				time.Sleep(300 * time.Millisecond)
			}
			return nil
		}
		l, d := openLink(t, ocstrx.LinkConfig{}, b.serve)
		for _, op := range []ocstrx.Op{ocstrx.OpWrite, ocstrx.OpRead} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errEnoughLink)
			begun := time.Now()
			_, err := l.Do(ctx, ocstrx.Request{Op: op, At: scratch, Data: []byte{5}})
			var re *ocstrx.RequestError
			if !errors.As(err, &re) || !errors.Is(err, errEnoughLink) || re.Unsure != (op == ocstrx.OpWrite) || time.Since(begun) > 100*time.Millisecond {
				t.Errorf("%d: got %v after %v", op, err, time.Since(begun))
			}
			cancel()
			if _, err := l.Do(ctx, ocstrx.Request{Op: op, At: scratch, Data: []byte{6}}); !errors.Is(err, errEnoughLink) {
				t.Errorf("ended before: got %v", err)
			}
		}
		quick.Store(true)
		buf := []byte{0}
		if _, err := l.Do(t.Context(), ocstrx.Request{Op: ocstrx.OpRead, At: scratch, Data: buf}); err != nil || buf[0] != 5 {
			t.Errorf("got %d, %v", buf[0], err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if d.dials != 1 || b.hellos != 2 {
			t.Errorf("%d dials, %d greetings", d.dials, b.hellos)
		}
	})
}

// TestLinkBreaks is a stream that ends in mid-write: that call fails and says that nobody
// knows, and the next one has a new stream.
func TestLinkBreaks(t *testing.T) {
	t.Parallel()
	b := newLinkBoard(2)
	served := 0
	l, d := openLink(t, ocstrx.LinkConfig{}, func(conn net.Conn) {
		if served++; served > 1 {
			b.serve(conn)
			return
		}
		var dec trxlink.Decoder
		for buf := make([]byte, 4096); ; {
			n, err := conn.Read(buf)
			if err != nil {
				t.Error(err)
				return
			}
			dec.Feed(buf[:n])
			f, ok := dec.Next()
			if ok && f.Kind != trxlink.Hello {
				return
			} else if ok {
				_, _ = conn.Write(b.do(f).Append(nil))
			}
		}
	})
	write := ocstrx.Request{Op: ocstrx.OpWrite, At: scratch, Data: []byte{1}}
	_, err := l.Do(t.Context(), write)
	var re *ocstrx.RequestError
	if !errors.As(err, &re) || !re.Unsure || !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if r, err := l.Do(t.Context(), write); err != nil || r.Requests != 1 || d.dials != 2 {
		t.Errorf("got %+v, %v after %d dials", r, err, d.dials)
	}
}

// TestLinkOtherBoard is a board that was replaced while the stream was broken.
func TestLinkOtherBoard(t *testing.T) {
	t.Parallel()
	b := newLinkBoard(2)
	l, d := openLink(t, ocstrx.LinkConfig{}, func(conn net.Conn) {
		go func() { time.Sleep(20 * time.Millisecond); conn.Close() }()
		b.serve(conn)
	})
	d.wg.Wait()
	b.serial = "BOARD2"
	read := ocstrx.Request{Op: ocstrx.OpRead, At: scratch, Data: make([]byte, 1)}
	_, _ = l.Do(t.Context(), read)
	if _, err := l.Do(t.Context(), read); err == nil || !bytes.Contains([]byte(err.Error()), []byte("another board")) {
		t.Errorf("got %v", err)
	}
}

// TestLinkClose is Close while a call waits, and twice.
func TestLinkClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newLinkBoard(1)
		b.answer = func(f trxlink.Frame) []trxlink.Frame {
			if f.Kind == trxlink.Hello {
				return nil
			}
			return []trxlink.Frame{}
		}
		l, _ := openLink(t, ocstrx.LinkConfig{Timeout: time.Hour}, b.serve)
		read := ocstrx.Request{Op: ocstrx.OpRead, At: scratch, Data: make([]byte, 1)}
		results := make(chan error, 2)
		for range 2 { // one has the turn, one waits for it
			go func() { _, err := l.Do(context.Background(), read); results <- err }()
		}
		time.Sleep(time.Minute)
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-results; !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
		if _, err := l.Do(t.Context(), read); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after: got %v", err)
		}
	})
}

// TestLinkVersion is a board of a later protocol, and one that cannot be one.
func TestLinkVersion(t *testing.T) {
	t.Parallel()
	info := trxlink.Info{Version: 1, Slots: 1}.Append(nil, trxlink.Nonce{})
	for name, tc := range map[string]struct {
		payload []byte
		want    error
	}{
		"refuses":   {[]byte{byte(trxlink.CodeVersion)}, ocs.ErrNotSupported},
		"is newer":  {append([]byte{0, 2}, info[1:]...), ocs.ErrNotSupported},
		"no slots":  {append([]byte{0, 1, 0}, info[2:]...), nil},
		"200 slots": {append([]byte{0, 1, 200}, info[2:]...), nil},
		"short":     {[]byte{0, 1}, nil},
		"empty":     {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := &linkDialer{serve: func(conn net.Conn) {
				b := newLinkBoard(1)
				b.answer = func(f trxlink.Frame) []trxlink.Frame {
					return []trxlink.Frame{{Version: 2, Kind: f.Kind | trxlink.Reply, Slot: f.Slot, Seq: f.Seq, Payload: tc.payload}}
				}
				b.serve(conn)
			}}
			l, err := ocstrx.OpenLink(t.Context(), ocstrx.LinkConfig{Dialer: d})
			d.wg.Wait()
			var op *ocs.OpError
			if l != nil || !errors.As(err, &op) || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := ocstrx.OpenLink(t.Context(), ocstrx.LinkConfig{}); err == nil {
		t.Error("no dialer: got no error")
	}
}
