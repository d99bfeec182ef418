package tl1switch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// request is one command. Its parts are in wire form.
type request struct {
	op     string // for messages: "read power"
	code   string
	aid    string
	blocks []string
	shown  []string // stands for blocks wherever the request is shown
	// again is true when doing it twice is the same as doing it once.
	again bool
	// read is true when it changes nothing at all.
	read bool
	// long is true when the reply may come in several messages, each complete.
	long  bool
	after *longReply // that this request is the fence of
}

// answer is the complete reply to a request.
type answer struct {
	msg     tl1.Message
	receipt ocs.Receipt
}

// exchange sends one request and waits for its reply. Called with the turn.
func (s *session) exchange(ctx context.Context, r request) (answer, error) {
	var a answer
	if ctx.Err() != nil {
		return a, s.sw.fail(r.op, "", "", context.Cause(ctx))
	}
	ctag := s.sw.nextTag()
	out := tl1.AppendCommand(s.sw.out[:0], r.code, "", r.aid, ctag, r.blocks...)
	s.sw.out = out
	shown := out
	if r.shown != nil {
		shown = tl1.AppendCommand(nil, r.code, "", r.aid, ctag, r.shown...)
	}

	s.sw.sent(shown)
	now := time.Now()
	s.await(ctag, now, r)
	n, err := s.send(ctx, out, now, &a.receipt)
	if n > 0 {
		a.receipt.Requests = 1
	}
	if err == nil {
		err = s.wait(ctx, &a)
	}
	switch {
	case err != nil:
		reply, why := s.giveUp(err)
		return a, s.sw.fail(r.op, string(shown), reply, why)
	case a.msg.Kind == tl1.Acknowledgement && (r.read || a.msg.Ack != tl1.OK):
		err = &denial{&tl1.Error{Completion: tl1.DENY, Code: string(a.msg.Ack), CTAG: ctag}, ocs.ErrDenied}
	case a.msg.Completion == tl1.DELAY:
		err = errors.New("put off by the device, the result is not known")
	default:
		if err = a.msg.Err(); err == nil {
			return a, s.fence(ctx, r, &a)
		}
		err = s.sw.classify(err)
	}
	return a, s.sw.fail(r.op, string(shown), string(a.msg.Raw), err)
}

// await makes the session expect the reply to a request.
func (s *session) await(ctag string, now time.Time, r request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select { // a reply that came when its waiter had given up
	case <-s.got:
	default:
	}
	s.ctag, s.since, s.blocks, s.stray = ctag, now, nil, ""
	s.long = r.after
	if r.long && s.sw.d.fenced() {
		s.long = &longReply{ctag: ctag}
	}
	if !s.timing {
		s.timing = true
		s.timer.Reset(s.sw.cfg.Timeout)
	}
	if !s.alive() { // nobody reads any more
		s.deliverLocked(reading{err: s.err})
	}
	s.begun.Store(true)
}

// send writes the whole request, says when, and returns how much it wrote. When
// that is only a part the stream is closed.
func (s *session) send(ctx context.Context, p []byte, now time.Time, when *ocs.Receipt) (n int, err error) {
	n, broken, err := s.out.Write(ctx, p, now, s.sw.cfg.Timeout, when)
	if broken {
		s.close(err)
		err = s.err // Close or the reader may have come first
	}
	return n, err
}

// wait waits for the reply and fills in a.
func (s *session) wait(ctx context.Context, a *answer) error {
	s.readReply(ctx, a.receipt.Sent)
	var r reading
	select {
	case r = <-s.got: // the usual case, and much cheaper alone
	default:
		select {
		case r = <-s.got:
		case <-ctx.Done():
			select {
			case r = <-s.got: // it was there, too
			default:
				return fmt.Errorf("no reply: %w", context.Cause(ctx))
			}
		}
	}
	a.msg, a.receipt.FirstByte, a.receipt.Acked = r.msg, r.first, r.last
	return r.err
}

// giveUp stops waiting. It returns what the device said instead of a reply,
// and err with what is to be said about that.
func (s *session) giveUp(err error) (reply string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	blocks := s.blocks
	s.ctag, s.blocks, s.owed = "", nil, true
	s.relieve() // the reply may still come
	var long *tl1.TooLongError
	switch {
	case errors.As(err, &long):
		return string(long.Head), fmt.Errorf("the reply does not end: %w", tooLong{long})
	case len(blocks) > 0:
		return string(tl1.Join(blocks).Raw) + s.tail, err
	case s.tail != "":
		return s.tail, err
	case s.stray != "":
		return s.stray, fmt.Errorf("%w; what came belongs to another request", err)
	}
	return "", err
}

// tooLong is a tl1.TooLongError without the excerpt, which is in the reply.
type tooLong struct{ *tl1.TooLongError }

func (e tooLong) Error() string { return fmt.Sprintf("more than %d bytes", e.Limit) }
func (e tooLong) Unwrap() error { return e.TooLongError }

// nextTag returns the next correlation tag. Called with the turn.
func (sw *Switch) nextTag() string {
	sw.ctag = sw.ctag%999999 + 1
	return strconv.Itoa(sw.ctag)
}
