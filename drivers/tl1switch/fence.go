package tl1switch

import (
	"context"
	"errors"
	"time"

	"github.com/ocslab/ocslab/wire/tl1"
)

// longReply is what follows the first message of a reply that may have more.
type longReply struct {
	ctag string
	more []tl1.Message
	last time.Time // when the last of them had come
}

// add takes m if it is one of them; ctag is that of the request that waits.
func (l *longReply) add(m tl1.Message, ctag string, now time.Time) bool {
	if m.CTAG != l.ctag || m.CTAG == ctag {
		return false
	}
	l.more, l.last = append(l.more, m), now
	return true
}

// fence makes sure that a long reply is complete, and joins its messages in a.
// They give no sign of which is the last, but the device answers in order: with
// the reply to another question all of them have come.
func (s *session) fence(ctx context.Context, r request, a *answer) error {
	l := s.long // who has the turn has set it
	if l == nil || !r.long {
		return nil
	}
	_, err := s.exchange(ctx, request{op: r.op, code: "RTRV-HDR", read: true, after: l})
	var refused *tl1.Error
	if err != nil && !errors.As(err, &refused) { // a refusal does as well
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(l.more) == 0 {
		return nil
	}
	a.msg = tl1.Join(append([]tl1.Message{a.msg}, l.more...))
	a.receipt.Acked = l.last
	if err = a.msg.Err(); err != nil {
		err = s.sw.fail(r.op, "", string(a.msg.Raw), s.sw.classify(err))
	}
	return err
}
