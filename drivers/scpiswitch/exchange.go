package scpiswitch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// Lines that go with the commands and queries of a request. CR LF is what serial
// lines want, and what all else takes.
const (
	askDone  = "*OPC?"
	askError = ":SYST:ERR?"
	lineEnd  = "\r\n"
)

// request is a command that changes something, a query, or both in this order.
type request struct {
	op      string // for messages: "read power"
	command string // has no reply
	query   string // has one
	ports   bool   // it names ports, so that a bad value is a bad port
	// begin is for the first request of a session. A serial line may hold the
	// rest of what was going on before: half a command, late replies.
	begin bool
}

func (r request) changes() bool { return r.command != "" }

// answer is what a device says to a request.
type answer struct {
	data    string // reply to the query
	errs    []scpi.Error
	receipt ocs.Receipt
	begun   bool // something of the request was sent
}

// doubtful reports whether some of the errors may be somebody else's: a query
// has either a reply or an error.
func (a *answer) doubtful() bool { return a.data != "" || len(a.errs) > 1 }

// exchange carries out a request. An error is an *ocs.OpError; the session is
// dead then unless the device has refused or nothing was sent.
func (s *session) exchange(ctx context.Context, r request) (answer, error) {
	var a answer
	s.raw = s.raw[:0]
	if err := s.once(ctx, r, &a); err != nil || len(a.errs) == 0 {
		return a, err
	}
	more, err := s.drain(ctx, request{op: r.op})
	a.errs = append(a.errs, more...)
	why := error(newRefusal(a.errs, r.ports))
	if err != nil {
		why = fmt.Errorf("%w; then %w", why, cause(err))
	}
	return a, s.sw.fail(r.op, r.text(), string(s.raw), why)
}

// text is what the request asks for, as on the wire.
func (r request) text() string {
	switch {
	case r.command == "" && r.query == "":
		return askError + lineEnd
	case r.command == "":
		return r.query + lineEnd
	case r.query == "":
		return r.command + lineEnd
	}
	return r.command + lineEnd + r.query + lineEnd
}

// drain reads the error queue until it is empty, and returns what was in it.
func (s *session) drain(ctx context.Context, r request) (errs []scpi.Error, err error) {
	// More than any queue holds: another client fills it all the time.
	const most = 1000
	for range most {
		var a answer
		if err := s.once(ctx, request{op: r.op, begin: r.begin}, &a); err != nil {
			return errs, err
		}
		if len(a.errs) == 0 {
			return errs, nil
		}
		errs = append(errs, a.errs...)
	}
	s.end()
	return errs[:1], s.sw.fail(r.op, askError+lineEnd, string(s.raw), fmt.Errorf("more than %d errors are queued at the device, and they do not end", most))
}

// slowest is how long a byte may take, three times what it does at 300 baud. Who
// only says something now and then is not waited for.
const slowest = 100 * time.Millisecond

// once sends a request and waits for its replies. Errors that the device has
// queued are in a.errs.
func (s *session) once(ctx context.Context, r request, a *answer) error {
	if ctx.Err() != nil {
		return s.sw.fail(r.op, "", "", context.Cause(ctx))
	}
	s.tail = s.tail[:0]
	w := waiting{done: r.command != "", data: r.query != "", begin: r.begin, a: a}
	err := s.send(ctx, r, &w)
	w.asked = true
	wait, tries := s.sw.cfg.Timeout, 1
	if r.begin { // a serial line may lose what comes just when it is opened
		wait, tries = wait/4, 4
	}
	since, taken, read := s.now, w.taken, s.read
	for ended := false; err == nil; {
		if ended, err = s.replies(&w); ended || err != nil {
			break
		}
		if w.taken > taken {
			since, taken, read = s.came, w.taken, s.read
		}
		limit := since.Add(wait + time.Duration(s.read-read)*slowest)
		if silent := s.came.Add(wait); s.read > read && silent.Before(limit) {
			limit = silent
		}
		if err = s.fill(ctx, limit); !errors.Is(err, link.ErrSilent) {
			continue
		}
		if tries--; tries > 0 {
			err = s.send(ctx, r, &w)
			since, read = s.now, s.read
		} else {
			err = fmt.Errorf("no reply for %v: %w", s.sw.cfg.Timeout, context.DeadlineExceeded)
		}
	}
	if err != nil {
		if a.begun {
			s.end()
		}
		return s.sw.fail(r.op, r.text(), string(s.raw)+string(s.tail), err)
	}
	a.receipt.Acked = s.now
	if len(a.errs) == 0 {
		s.empty = s.now
	}
	return nil
}

// send writes the lines of a request, with pauses if there have to be some.
func (s *session) send(ctx context.Context, r request, w *waiting) error {
	out, first := s.sw.out[:0], 0
	var lines [5]struct {
		end  int
		owed *bool // whether its reply is still to come; nil of a line that has none
	}
	n := 0
	add := func(line string, owed *bool) {
		out = append(append(out, line...), lineEnd...)
		lines[n].end, lines[n].owed, n = len(out), owed, n+1
	}
	if r.begin {
		add("", nil)
	}
	if r.command != "" {
		add(r.command, nil)
		add(askDone, &w.done)
	}
	if r.query != "" {
		add(r.query, &w.data)
	}
	add(askError, nil)
	s.sw.out, first = out, lines[0].end
	if s.sw.cfg.Gap <= 0 {
		n, err := s.write(ctx, out, first, &w.a.receipt)
		w.sent(n, r)
		return err
	}
	from, owed := 0, (*bool)(nil)
	for _, l := range lines[:n] {
		if err := s.pause(ctx, w, owed); err != nil {
			return err
		}
		n, err := s.write(ctx, out[from:l.end], first, &w.a.receipt)
		w.sent(n, r)
		if err != nil {
			return err
		}
		from, first, owed = l.end, 0, l.owed
	}
	return nil
}

// sent notes that n bytes have been sent.
func (w *waiting) sent(n int, r request) {
	if n > 0 {
		w.a.begun = true
		if r.changes() {
			w.a.receipt.Requests = 1
		}
	}
}

// pause waits until the next command may be sent: Gap after the last one, or
// after the reply to it. Only the reply says when a device has taken a command;
// one that failed has none, so there is an end to waiting for it. It reads
// meanwhile, as a device may not take a command while nobody takes its reply to
// the last one.
func (s *session) pause(ctx context.Context, w *waiting, owed *bool) error {
	const most = 5 // times Gap
	gap := s.sw.cfg.Gap
	for s.now = time.Now(); ; {
		until := s.sw.said.Add(gap)
		if owed != nil && *owed {
			until = s.sw.said.Add(most * gap)
		} else if s.came.After(s.sw.said) {
			until = s.came.Add(gap)
		}
		if !s.now.Before(until) {
			return nil
		}
		if err := s.fill(ctx, until); err != nil && !errors.Is(err, link.ErrSilent) {
			return err
		}
		if _, err := s.replies(w); err != nil {
			return err
		}
	}
}
