package ocstrx_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// TestLinkNoise does thousands of requests over lines that spoil bytes both ways. No
// answer is ever wrong, writes that succeed were done once, those that fail at most once,
// and the module's share of what was done is in order.
func TestLinkNoise(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		flip, drop float64
		calls      int
		fails      float64 // at most, of all calls
	}{{0, 0, 100, 0}, {1e-4, 1e-4, 800, 0}, {2e-3, 0, 400, 0.01}, {0, 2e-3, 400, 0.01}, {5e-3, 5e-3, 250, 0.2}, {0.03, 0.03, 60, 1}} {
		t.Run(fmt.Sprintf("flip %g drop %g", tc.flip, tc.drop), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { linkNoise(t, tc.flip, tc.drop, tc.calls, tc.fails) })
		})
	}
}

func linkNoise(t *testing.T, flip, drop float64, calls int, most float64) {
	const slots = 8
	b := newLinkBoard(slots)
	d := &linkDialer{serve: b.serve, near: noisy(flip, drop, 7)}
	var l *ocstrx.Link
	for range 20 {
		var err error
		if l, err = ocstrx.OpenLink(t.Context(), ocstrx.LinkConfig{Dialer: d, Timeout: 100 * time.Millisecond, Retries: 5}); err == nil {
			break
		}
	}
	if l == nil {
		t.Fatal("cannot open the link")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var known [slots][]byte // what a slot holds; nil when unsure
	for i := range known {
		known[i] = make([]byte, 32)
	}
	const sent, sure = 1, 2
	var writes []byte // by number
	failed := 0
	for range calls {
		var requests []ocstrx.Request
		var ids []int
		for range 1 + rnd.IntN(12) {
			r := ocstrx.Request{Slot: rnd.IntN(slots), At: scratch, Data: make([]byte, 32)}
			id := -1
			switch rnd.IntN(5) {
			case 0, 1:
				r.Op = ocstrx.OpWrite
				id = len(writes)
				writes = append(writes, sent)
				binary.BigEndian.PutUint32(r.Data, uint32(id))
				for j := 4; j < 32; j++ {
					r.Data[j] = byte(rnd.Uint32())
				}
			case 2:
				if rnd.IntN(4) == 0 {
					r = ocstrx.Request{Op: ocstrx.OpTrigger, Mask: uint16(1 + rnd.IntN(255))}
				}
			}
			requests, ids = append(requests, r), append(ids, id)
		}
		_, err := l.Do(t.Context(), requests...)
		var re *ocstrx.RequestError
		if err != nil {
			failed++
			if !errors.As(err, &re) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
		}
		for i, r := range requests {
			switch {
			case r.Op == ocstrx.OpTrigger:
			case r.Op == ocstrx.OpWrite && re == nil, r.Op == ocstrx.OpWrite && i < re.Index:
				writes[ids[i]] = sure
				known[r.Slot] = r.Data
			case r.Op == ocstrx.OpWrite:
				known[r.Slot] = nil
			case (re == nil || i < re.Index) && known[r.Slot] == nil:
				known[r.Slot] = r.Data
			case re == nil || i < re.Index:
				if !bytes.Equal(r.Data, known[r.Slot]) {
					t.Fatalf("read of module %d gives % x, and it holds % x", r.Slot+1, r.Data, known[r.Slot])
				}
			}
		}
	}
	l.Close()
	d.wg.Wait()
	times := make([]int, len(writes))
	last := map[uint8]uint32{}
	for _, f := range b.done {
		if f.Kind != trxlink.Write {
			continue
		}
		id := binary.BigEndian.Uint32(f.Payload[3:])
		times[id]++
		if was, ok := last[f.Slot]; ok && id < was {
			t.Errorf("module %d was given %d after %d", f.Slot+1, id, was)
		}
		last[f.Slot] = id
	}
	for id, n := range times {
		if n > 1 || writes[id] == sure && n != 1 {
			t.Errorf("write %d was done %d times", id, n)
		}
	}
	t.Logf("%d calls, %d failed; %d frames reached the board, %d greetings", calls, failed, b.frames, b.hellos)
	if float64(failed) > most*float64(calls) {
		t.Errorf("%d of %d calls failed", failed, calls)
	}
}
