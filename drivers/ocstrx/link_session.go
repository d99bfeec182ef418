package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// session is one open stream. All but conn is for who has the turn of the link.
type session struct {
	conn transport.Conn
	l    *Link
	dead bool // conn is closed

	writeBy time.Time // deadline of conn
	in      link.Reader

	dec  trxlink.Decoder
	buf  []byte
	now  time.Time // when the last read or write returned
	came time.Time // when something was last read

	// To tell when the first byte of a frame came.
	fed, framed int // bytes read, and those that were in frames
	reads       []piece
}

// piece is one read, of which the decoder may still have bytes.
type piece struct {
	end int // bytes read with it and before
	at  time.Time
}

func newSession(conn transport.Conn, l *Link) *session {
	return &session{conn: conn, l: l, in: link.Reader{Conn: conn}, buf: make([]byte, 4<<10), now: time.Now()}
}

// end closes the stream.
func (s *session) end() {
	s.dead = true
	s.conn.Close()
}

// maxWrite is the most that is written at once, in bytes. Lines are known that lose what is
// beyond some KiB.
const maxWrite = 1 << 10

// write writes p in pieces, one after another. It gives up when nothing passes for the
// timeout of a reply, or ctx ends; it returns how much it wrote, and when the first piece
// began and the last one ended.
func (s *session) write(ctx context.Context, p []byte) (n int, begun, ended time.Time, err error) {
	begun = time.Now()
	s.now = begun
	for limit := begun.Add(s.l.cfg.Timeout); n < len(p); {
		// Left alone while there is some time: setting it may wake a thread.
		if s.writeBy.Sub(s.now) < link.Patience/2 {
			s.writeBy = s.now.Add(link.Patience)
			_ = s.conn.SetWriteDeadline(s.writeBy) // if this fails, so does Write
		}
		m, err := s.conn.Write(p[n:min(n+maxWrite, len(p))])
		s.now = time.Now()
		if m > 0 {
			if s.l.cfg.Trace != nil {
				s.l.cfg.Trace(true, p[n:n+m])
			}
			n += m
			limit = s.now.Add(s.l.cfg.Timeout)
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return n, begun, s.now, s.broken(err)
		case ctx.Err() != nil:
			return n, begun, s.now, fmt.Errorf("not all was sent: %w", context.Cause(ctx))
		case s.now.After(limit):
			return n, begun, s.now, fmt.Errorf("nothing could be sent for %v: %w", s.l.cfg.Timeout, context.DeadlineExceeded)
		}
		// Perhaps the board takes nothing until somebody takes what it says.
		for err = nil; err == nil && ctx.Err() == nil && s.now.Before(limit); {
			err = s.read(ctx, s.now.Add(link.Patience))
		}
		if err != nil && !errors.Is(err, link.ErrSilent) {
			return n, begun, s.now, err
		}
	}
	return n, begun, s.now, nil
}

// read reads once and feeds the decoder. It returns link.ErrSilent when nothing has come
// until limit, and what ends the call when ctx ends or the stream breaks.
func (s *session) read(ctx context.Context, limit time.Time) error {
	n, broken, err := s.in.Read(ctx, s.buf, s.now, limit)
	s.now = time.Now()
	switch {
	case broken:
		return s.broken(err)
	case err == nil:
		s.feed(s.buf[:n])
	}
	return err
}

// feed takes in what was read.
func (s *session) feed(p []byte) {
	if s.l.cfg.Trace != nil {
		s.l.cfg.Trace(false, p)
	}
	s.came = s.now
	s.fed += len(p)
	s.reads = append(s.reads, piece{s.fed, s.now})
	s.dec.Feed(p)
}

// overhead is what a frame has beside its payload, in bytes.
var overhead = len(trxlink.Frame{}.Append(nil))

// next returns the next frame, and when its first byte had been read.
func (s *session) next() (f trxlink.Frame, first time.Time, ok bool) {
	f, ok = s.dec.Next()
	used := s.dec.Skipped() + s.framed
	i := 0
	for i < len(s.reads) && s.reads[i].end <= used {
		i++
	}
	if ok {
		first = s.reads[i].at
		s.framed += len(f.Payload) + overhead
	}
	s.reads = s.reads[:copy(s.reads, s.reads[i:])]
	return f, first, ok
}

// stalled gives up a frame that has begun and did not go on, and returns when that is to be
// looked at again; limit if there is none.
func (s *session) stalled(limit time.Time) (expired bool, until time.Time) {
	if !s.dec.Pending() {
		return false, limit
	}
	end := s.came.Add(trxlink.Gap)
	if s.now.Before(end) {
		if end.Before(limit) {
			return false, end
		}
		return false, limit
	}
	s.dec.Expire()
	return true, limit
}

// broken closes the stream and says why it ended.
func (s *session) broken(err error) error {
	s.end()
	switch {
	case s.l.life.Err() != nil:
		return link.ErrClosed
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the board closed the link: %w", io.EOF)
	}
	return fmt.Errorf("the link broke: %w", err)
}
