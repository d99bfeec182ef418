package tl1switch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/wire/tl1"
)

// piece reads once, and takes the messages that end in what came. It reports
// whether the request that waits has got its reply. An error is the end of the
// stream, unless it matches os.ErrDeadlineExceeded. Called with the right to
// read.
func (s *session) piece() (replied bool, err error) {
	n, err := s.conn.Read(s.buf)
	now := time.Now()
	came := s.buf[:n]
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return false, err
	}
	s.trace(came)
	// Blanks that came before a request are not the beginning of its reply.
	begun := s.begun.Load() && s.begun.Swap(false)
	if s.begin.IsZero() || begun && !s.dec.Pending() {
		s.begin = now
	}
	s.dec.Feed(came)
	var last []byte // message in this piece
	for {
		m, ok, bad := s.dec.Next()
		if !ok {
			break
		}
		if bad == nil {
			last = m.Raw
			replied = s.take(m, s.begin, now) || replied
		} else if last = malformed(bad); last != nil {
			s.setStray(last)
		} else {
			return replied, bad // too long: no end is in sight
		}
		s.begin = now
	}
	switch {
	case s.dec.Pending():
		s.keepTail(came, last)
	case last != nil, len(bytes.TrimSpace(came)) > 0: // or an echo, or a prompt
		s.begin = time.Time{}
		s.dropTail()
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return replied, s.reason(err)
	}
	return replied, nil
}

// malformed returns the text that an error of the decoder says is no message.
func malformed(err error) []byte {
	var bad *tl1.MessageError
	if errors.As(err, &bad) {
		return bad.Raw
	}
	return nil
}

// reason says in words why the stream ended.
func (s *session) reason(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.why != nil:
		return s.why
	case errors.Is(err, io.EOF) && s.tail != "":
		return fmt.Errorf("the device closed the session in mid-reply: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the device closed the session: %w", io.EOF)
	}
	return fmt.Errorf("the session broke: %w", err)
}

// keepTail remembers the beginning of an incomplete message. Piece is what was
// read, last the last complete message that ended in it, if one did.
func (s *session) keepTail(piece, last []byte) {
	if last != nil {
		s.dropTail()
		piece = behind(piece, last)
	}
	const most = 512
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail += string(piece[:min(len(piece), most-len(s.tail))])
}

func (s *session) dropTail() {
	if s.tail == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = ""
}

// behind returns what follows in piece after a message that ended in it, and
// may have begun before it.
func behind(piece, message []byte) []byte {
	for end := len(piece); end > 0; end-- {
		if head := piece[:end]; bytes.HasSuffix(message, head) || bytes.HasSuffix(head, message) {
			return piece[end:]
		}
	}
	return piece
}

func (s *session) setStray(raw []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stray = string(raw)
}

// take routes a message: to who waits for it, to who listens, or nowhere. It
// reports whether the one who waits has got all of the reply.
func (s *session) take(m tl1.Message, first, now time.Time) bool {
	switch m.Kind {
	case tl1.Autonomous:
		s.sw.announce(m, now)
		return false
	case tl1.Acknowledgement:
		if m.Ack == tl1.IP || m.Ack == tl1.PF {
			return false // the reply is still to come
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A device that could not read the tag says 0. That is for the one who
	// waits unless it may be for one who no longer does.
	lostTag := (m.CTAG == "0" || m.CTAG == "") && m.Completion == tl1.DENY && !s.owed
	if s.long != nil && s.long.add(m, s.ctag, now) {
		return false
	}
	if s.ctag == "" || m.CTAG != s.ctag && !lostTag {
		s.stray = string(m.Raw)
		return false
	}
	if len(s.blocks) == 0 {
		s.first = first
	}
	more := m.More || m.Completion == tl1.RTRV
	if more || len(s.blocks) > 0 {
		s.blocks = append(s.blocks, m)
	}
	if more {
		return false
	}
	if len(s.blocks) > 0 {
		m = tl1.Join(s.blocks)
	}
	s.deliverLocked(reading{msg: m, first: s.first, last: now})
	return true
}

// readReply reads the reply, if nobody else reads and it comes soon. Otherwise
// it leaves that to the session's goroutine, as a read cannot be waited for
// together with the end of ctx.
func (s *session) readReply(ctx context.Context, now time.Time) {
	if d, ok := ctx.Deadline(); ok && d.Sub(now) < link.Patience {
		s.relieve()
		return
	}
	select {
	case s.right <- struct{}{}:
	default:
		return
	}
	if !s.waiting() { // the session's goroutine was reading, and has had the reply meanwhile
		<-s.right
		return
	}
	// Left alone while there is some time, as in send.
	if s.readBy.Sub(now) < link.Patience/2 {
		s.setReadDeadline(now.Add(link.Patience))
	}
	for {
		replied, err := s.piece()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.readBy = time.Time{}
			s.relieve()
		case err != nil:
			s.finish(err)
			return
		case !replied:
			continue
		}
		<-s.right
		return
	}
}
