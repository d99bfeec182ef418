package scpiswitch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

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

// waiting is what is still to come of the replies to a request.
type waiting struct {
	done, data bool   // the reply to askDone, to the query
	asked      bool   // askError has been sent
	begin      bool   // other replies are old ones
	last       string // reply
	a          *answer
}

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
	limit := s.now.Add(wait)
	for ended := false; err == nil; {
		if ended, err = s.replies(&w); ended || err != nil {
			break
		}
		if s.came.Add(wait).After(limit) {
			limit = s.came.Add(wait)
		}
		if err = s.fill(ctx, limit); !errors.Is(err, errSilent) {
			continue
		}
		if tries--; tries > 0 {
			err = s.send(ctx, r, &w)
			limit = s.now.Add(wait)
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
	const most = 10 // times Gap
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
		if err := s.fill(ctx, until); err != nil && !errors.Is(err, errSilent) {
			return err
		}
		if _, err := s.replies(w); err != nil {
			return err
		}
	}
}

// replies takes the replies that have come, and reports whether they were the
// last.
func (s *session) replies(w *waiting) (ended bool, err error) {
	for {
		line, ok, err := s.dec.Next()
		if err != nil {
			var long *scpi.TooLongError
			if errors.As(err, &long) {
				s.tail = append(s.tail[:0], long.Head...)
				err = fmt.Errorf("the reply does not end: %w", tooLong{long})
			}
			return false, err
		}
		if !ok {
			return false, nil
		}
		line = bytes.TrimSpace(line)
		if s.raw = append(append(s.raw, line...), lineEnd...); len(s.raw) > s.most {
			return false, errors.New("the device goes on and on, and does not answer")
		}
		begin := s.begin
		s.begin = s.now
		if len(line) == 0 || w.knows(line) {
			continue
		}
		if w.a.receipt.FirstByte.IsZero() {
			w.a.receipt.FirstByte = begin
		}
		if ended, err := w.take(string(line)); ended || err != nil {
			return ended, err
		}
	}
}

// isError reports whether a reply is one to askError, <number>,"<text>", and
// whether the number is zero.
func isError(line []byte) (is, none bool) {
	number, text, _ := bytes.Cut(line, []byte(","))
	number, text = bytes.TrimSpace(number), bytes.TrimSpace(text)
	if len(number) > 0 && (number[0] == '-' || number[0] == '+') {
		number = number[1:]
	}
	if len(number) == 0 || len(text) == 0 || text[0] != '"' || len(bytes.Trim(number, "0123456789")) > 0 {
		return false, false
	}
	return true, len(bytes.Trim(number, "0")) == 0
}

// knows reports whether a reply is an old one: "No error" to an earlier request,
// or the one just before once more.
func (w *waiting) knows(line []byte) bool {
	if is, none := isError(line); is {
		return none && (w.done || w.data || !w.asked) || w.begin && !w.asked
	}
	return w.begin || string(line) == w.last
}

// take takes the next reply, and reports whether it was the last.
func (w *waiting) take(line string) (ended bool, err error) {
	w.last = line
	is, _ := isError([]byte(line))
	switch {
	case is:
		errs, err := scpi.ParseError(line)
		if err != nil {
			return false, fmt.Errorf("cannot understand the error that the device tells: %w", err)
		}
		if w.done || !w.asked {
			// Perhaps of another request: no refusal, which would be a promise.
			return false, fmt.Errorf("%w came out of turn, so the session is given up", &errs[0])
		}
		w.a.errs = errs
		return true, nil
	case w.done && (line == "1" || line == "+1"):
		w.done = false
	case w.data && !w.done:
		w.data, w.a.data = false, line
	default:
		return false, fmt.Errorf("%.60q is no reply to this request, so the session is given up", line)
	}
	return false, nil
}

// forget drops replies that nobody waits for. A part of one, or what broke the
// session behind a reply, ends it.
func (s *session) forget() {
	s.raw = s.raw[:0]
	for {
		_, ok, err := s.dec.Next()
		if err != nil {
			s.end()
			return
		}
		if !ok {
			break
		}
	}
	if s.late != nil || s.dec.Pending() {
		s.end()
	}
}
