package netconfswitch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/wire/netconf"
)

// piece reads once, and routes the messages that end in what came. It reports
// whether one of them was a reply that somebody waited for. An error is the end
// of the stream, unless it matches os.ErrDeadlineExceeded. Called with the turn
// to read.
func (s *session) piece() (replied bool, err error) {
	// What came together with the hello has not been looked at, and is no
	// reply: nothing had been asked.
	n, err := s.conn.Read(s.buf)
	now := time.Now()
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return false, err
	}
	if s.begin.IsZero() {
		s.begin = now
	}
	s.dec.Feed(s.buf[:n])
	whole := false
	for {
		msg, ok, bad := s.dec.Next()
		if bad != nil {
			s.keepRest(s.buf[:n], whole)
			return replied, fmt.Errorf("the device does not keep to the framing: %w", bad)
		}
		if !ok {
			break
		}
		whole = true
		mine, bad := s.take(msg, s.begin, now)
		if bad != nil {
			return replied, bad
		}
		replied = replied || mine
		s.begin = now
	}
	if s.dec.Pending() {
		s.keepRest(s.buf[:n], whole)
	} else {
		s.begin = time.Time{}
		s.dropRest()
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return replied, s.reason(err)
	}
	return replied, nil
}

// reason says in words why the stream ended.
func (s *session) reason(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.why != nil:
		return s.why
	case errors.Is(err, io.EOF) && len(s.tail) > 0:
		return fmt.Errorf("the device closed the session in mid-message: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the device closed the session: %w", io.EOF)
	}
	return fmt.Errorf("the session broke: %w", err)
}

// keepRest remembers the beginning of an incomplete message. Piece is what was
// read; whole says that another message ended in it.
func (s *session) keepRest(piece []byte, whole bool) {
	if whole {
		s.rest = s.rest[:0]
		end := "]]>]]>"
		if s.framing == netconf.Chunked {
			end = "\n##\n"
		}
		if i := bytes.LastIndex(piece, []byte(end)); i >= 0 {
			piece = piece[i+len(end):]
		}
	}
	s.rest = append(s.rest, piece[:min(len(piece), tailSize-len(s.rest))]...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
	s.tail = append(s.tail[:0], s.rest...)
}

func (s *session) dropRest() {
	if len(s.rest) == 0 {
		return
	}
	s.rest = s.rest[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = s.tail[:0]
}

// take routes a message: to who waits for it, to who listens, or nowhere. It
// reports whether somebody waited. An error ends the session: who sends what is
// no NETCONF message cannot be trusted with the next one.
func (s *session) take(msg []byte, first, now time.Time) (replied bool, err error) {
	if len(bytes.TrimSpace(msg)) == 0 {
		return false, nil // the line end that some send behind a delimiter, delimited
	}
	s.sw.received(msg)
	root, err := netconf.Parse(msg)
	if err != nil {
		s.setStray(msg, now)
		return false, fmt.Errorf("the device sent what cannot be read: %w", err)
	}
	switch {
	case root.Is(netconf.NotificationNS, "notification"):
		s.sw.announce(root, msg, now)
		return false, nil
	case root.Name.Local != "rpc-reply":
		s.setStray(msg, now)
		return false, fmt.Errorf("the device sent <%.40s> where a reply or a notification should be", root.Name.Local)
	}
	reply, err := netconf.ParseReply(root)
	if err != nil {
		s.setStray(msg, now)
		return false, fmt.Errorf("the device sent what cannot be read: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := reply.MessageID
	c := s.calls[id]
	if c == nil && id == "" && len(reply.Errors) > 0 && len(s.calls) == 1 && s.owed == 0 {
		// A device that could not read the request cannot name it.
		for id, c = range s.calls {
		}
	}
	if c == nil {
		s.stray = stray{string(msg[:min(len(msg), tailSize)]), now}
		s.owed = max(s.owed-1, 0)
		return false, nil
	}
	delete(s.calls, id)
	c.got <- reading{reply, bytes.Clone(msg), first, now, nil}
	if s.retired && len(s.calls) == 0 {
		return true, errRetired
	}
	return true, nil
}

func (s *session) setStray(msg []byte, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stray = stray{string(msg[:min(len(msg), tailSize)]), now}
}

// readReply reads the reply to c, if nobody else reads and it comes soon.
// Otherwise it leaves that to the session's goroutine, as a read cannot be
// waited for together with the end of ctx.
func (s *session) readReply(ctx context.Context, c *call, now time.Time) {
	if d, ok := ctx.Deadline(); ok && d.Sub(now) < link.Patience {
		s.relieve()
		return
	}
	select {
	case s.reading <- struct{}{}:
	default:
		return
	}
	// Left alone while there is some time, as in send.
	if s.readBy.Sub(now) < link.Patience/2 {
		s.setReadDeadline(now.Add(link.Patience))
	}
	for len(c.got) == 0 {
		_, err := s.piece()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.readBy = time.Time{}
			s.reading.Pass()
			s.relieve()
			return
		case err != nil:
			s.finish(err)
			return
		}
	}
	s.reading.Pass()
	if s.wanted() {
		s.relieve()
	}
}
