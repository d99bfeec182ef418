package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// message is one request of the protocol, and how it goes.
type message struct {
	kind    trxlink.Kind
	slot    uint8
	payload []byte
	length  int           // of what follows the code in a good reply; -1 is any
	timeout time.Duration // until it is sent again
	tries   int           // that are left

	seq         uint8
	wire        []byte
	sends       int       // times that it was sent
	first, last int       // numbers of its first and last transmission
	begun       time.Time // when the first one began
	sent        time.Time // when the last one ended

	done             bool
	reply            trxlink.Frame
	firstByte, acked time.Time
}

// set makes m the message for r.
func (m *message) set(r Request, cfg LinkConfig) {
	*m = message{payload: m.payload[:0], wire: m.wire[:0], timeout: cfg.Timeout, tries: cfg.Retries + 1, slot: uint8(r.Slot)}
	switch r.Op {
	case OpRead:
		m.kind, m.length = trxlink.Read, len(r.Data)
		m.payload = trxlink.AppendRead(m.payload, r.At, len(r.Data))
	case OpWrite:
		m.kind = trxlink.Write
		m.payload = trxlink.AppendWrite(m.payload, r.At, r.Data)
	case OpTrigger:
		m.kind, m.slot = trxlink.Trigger, trxlink.Board
		m.payload = trxlink.AppendTrigger(m.payload, r.Mask)
	}
}

// waits reports whether m is not to be sent before the reply to an earlier message has come.
// The board does what it gets: if that one is lost on the way, it does m first. So only
// those may be under way together whose order does not matter: reads, and what is for
// different modules.
func (m *message) waits(earlier *message) bool {
	if m.slot == trxlink.Board || earlier.slot == trxlink.Board {
		return true
	}
	return m.slot == earlier.slot && (m.kind != trxlink.Read || earlier.kind != trxlink.Read)
}

// changes reports whether m changes something.
func (m *message) changes() bool { return m.kind != trxlink.Read && m.kind != trxlink.Hello }

// unsure reports whether m changes something, was sent, and has no reply.
func (m *message) unsure() bool { return m.sends > 0 && !m.done && m.changes() }

// untouched reports whether all of msgs that were sent came to a board that has started anew
// and has done nothing. One that was sent again may have been done before that.
func untouched(msgs []message) bool {
	for i := range msgs {
		if m := &msgs[i]; m.sends > 1 || m.sends == 1 && !m.startedAnew() {
			return false
		}
	}
	return true
}

// failure is a message that failed.
type failure struct {
	index  int
	unsure bool // as in RequestError
	err    error
}

// exchange sends messages in order and waits for their replies. As many as may be go out at
// once, and the next when all of those have been answered: one write for eight costs less
// than keeping the line full would gain. When one fails no more are sent.
func (l *Link) exchange(ctx context.Context, msgs []message) (r ocs.Receipt, f *failure) {
	var progress time.Time // when the last reply came
	base, next, stop := 0, 0, len(msgs)
	fail := func(i int, err error) {
		stop = next
		if f == nil || i < f.index {
			f = &failure{index: i, err: err}
		}
	}
	giveUp := func(err error) (ocs.Receipt, *failure) {
		fail(base, err)
		for i := base; i < next; i++ {
			f.unsure = f.unsure || msgs[i].unsure()
			l.doubt = l.doubt || msgs[i].sends > 0 && !msgs[i].done
		}
		return receipt(msgs[:next]), f
	}
	for s := l.s; ; {
		if base == next {
			for next < stop && next-base < trxlink.Outstanding && free(msgs[base:next], &msgs[next]) {
				l.number(&msgs[next])
				next++
			}
			if base == next {
				return receipt(msgs[:next]), f
			}
			if err := l.send(ctx, msgs[base:next], func(*message) bool { return true }); err != nil {
				return giveUp(err)
			}
		}
		if frame, first, ok := s.next(); ok {
			i := match(msgs[base:next], frame)
			if i < 0 {
				continue // late, or not for us
			}
			m := &msgs[base+i]
			m.done, m.reply, m.firstByte, m.acked = true, frame, first, s.now
			progress = s.now
			if err := m.refused(); err != nil {
				fail(base+i, err)
			}
			if m.startedAnew() {
				l.doubt = true
				f.unsure = f.unsure || m.changes() && m.sends > 1
			}
			// Requests are done in order: what was sent before this one and has no reply
			// was lost, or its reply was.
			if err := l.send(ctx, msgs[base:base+i], func(o *message) bool { return !o.done && o.last < m.first }); err != nil {
				return giveUp(err)
			}
			for base < next && msgs[base].done {
				base++
			}
			continue
		}
		oldest := &msgs[base]
		limit := oldest.sent
		if limit.Before(progress) {
			limit = progress
		}
		limit = limit.Add(oldest.timeout)
		if !s.now.Before(limit) {
			if oldest.tries--; oldest.tries <= 0 {
				return giveUp(fmt.Errorf("no reply for %v, %d times: %w", oldest.timeout, oldest.sends, context.DeadlineExceeded))
			}
			progress = time.Time{}
			if err := l.send(ctx, msgs[base:next], func(o *message) bool { return !o.done }); err != nil {
				return giveUp(err)
			}
			continue
		}
		expired, until := s.stalled(limit)
		if expired {
			continue
		}
		if ctx.Err() != nil {
			return giveUp(link.GivenUp(ctx))
		}
		if err := s.read(ctx, until); err != nil && !errors.Is(err, link.ErrSilent) {
			return giveUp(err)
		}
	}
}

// free reports whether m can be sent together with those of underWay.
func free(underWay []message, m *message) bool {
	for i := range underWay {
		if m.waits(&underWay[i]) {
			return false
		}
	}
	return true
}

// number gives m the next sequence number, and so its bytes.
func (l *Link) number(m *message) {
	m.seq = l.seq
	l.seq++
	m.wire = trxlink.Frame{Kind: m.kind, Slot: m.slot, Seq: m.seq, Payload: m.payload}.Append(m.wire[:0])
}

// send sends those of msgs that are wanted, in one go.
func (l *Link) send(ctx context.Context, msgs []message, wanted func(*message) bool) error {
	l.out = l.out[:0]
	for i := range msgs {
		if wanted(&msgs[i]) {
			l.out = append(l.out, msgs[i].wire...)
		}
	}
	if len(l.out) == 0 {
		return nil
	}
	n, begun, ended, err := l.s.write(ctx, l.out)
	for i, at := 0, 0; i < len(msgs) && at < n; i++ {
		m := &msgs[i]
		if !wanted(m) {
			continue
		}
		at += len(m.wire)
		if m.sends == 0 {
			m.begun, m.first = begun, l.sends
		}
		m.sends, m.last, m.sent = m.sends+1, l.sends, ended
		l.sends++
	}
	return err
}

// match returns to which of msgs f is the reply, or -1.
func match(msgs []message, f trxlink.Frame) int {
	for i := range msgs {
		m := &msgs[i]
		if !m.done && f.Seq == m.seq && f.Slot == m.slot && f.Kind == m.kind|trxlink.Reply && m.sends > 0 &&
			(f.Version == trxlink.Version || m.kind == trxlink.Hello) && !m.stale(f) {
			return i
		}
	}
	return -1
}

// receipt is that of messages that were meant to be sent.
func receipt(msgs []message) (r ocs.Receipt) {
	for i := range msgs {
		m := &msgs[i]
		if m.sends == 0 {
			continue
		}
		if r.Requests == 0 {
			r.Begun = m.begun
		}
		r.Requests++
		r.SendStart, r.Sent, r.FirstByte, r.Acked = m.begun, m.sent, m.firstByte, m.acked
	}
	return r
}
