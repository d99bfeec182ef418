package scpiswitch

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/wire/scpi"
)

// waiting is what is still to come of the replies to a request.
type waiting struct {
	done, data bool   // the reply to askDone, to the query
	asked      bool   // askError has been sent
	begin      bool   // other replies are old ones
	last       string // reply
	taken      int    // replies
	a          *answer
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
	w.taken++
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
	if s.in.Ended() || s.dec.Pending() {
		s.end()
	}
}
