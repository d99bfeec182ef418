package scpiswitch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// session is one open stream. All but conn is for who has the turn.
type session struct {
	conn transport.Conn
	sw   *Switch
	dead bool // conn is closed

	writeBy time.Time // deadline of conn
	in      link.Reader

	dec   scpi.ReplyDecoder
	buf   []byte
	raw   []byte    // replies since the last exchange began
	most  int       // bytes in raw
	tail  []byte    // of a reply that has not ended, shortened
	now   time.Time // when the last read or write returned
	came  time.Time // when something was last read
	read  int       // bytes, ever
	begin time.Time // when what the decoder holds began to come
	empty time.Time // when the error queue was last seen empty
}

func newSession(conn transport.Conn, sw *Switch) *session {
	return &session{
		conn: conn, sw: sw, in: link.Reader{Conn: conn},
		dec: scpi.ReplyDecoder{MaxLen: sw.cfg.MaxReply}, buf: make([]byte, 16<<10),
		most: sw.cfg.MaxReply + 64<<10, // a long reply, and many errors
	}
}

// end closes the stream.
func (s *session) end() {
	s.dead = true
	s.conn.Close()
}

// write writes all of p, gives up when nothing passes for Config.Timeout or ctx
// ends, and returns how much it wrote. The first head bytes of p are what r
// times: the last write of them was between r.SendStart and r.Sent.
func (s *session) write(ctx context.Context, p []byte, head int, r *ocs.Receipt) (n int, err error) {
	now := time.Now()
	defer func() { s.now = now }()
	for limit := now.Add(s.sw.cfg.Timeout); ; {
		// Left alone while there is some time: setting it may wake a thread.
		if s.writeBy.Sub(now) < link.Patience/2 {
			s.writeBy = now.Add(link.Patience)
			_ = s.conn.SetWriteDeadline(s.writeBy) // if this fails, so does Write
			now = time.Now()
		}
		timed := n < head
		if timed {
			r.SendStart = now
		}
		m, err := s.conn.Write(p[n:])
		now = time.Now()
		if timed {
			r.Sent = now
		}
		if s.sw.cfg.Trace != nil && m > 0 {
			s.sw.cfg.Trace(true, p[n:n+m])
		}
		if n += m; err == nil {
			s.sw.said = now
			return n, nil
		}
		if m > 0 {
			limit = now.Add(s.sw.cfg.Timeout)
		}
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			s.end()
			return n, s.reason(err)
		case ctx.Err() != nil:
			err = fmt.Errorf("not sent: %w", context.Cause(ctx))
		case now.After(limit):
			err = fmt.Errorf("nothing could be sent for %v: %w", s.sw.cfg.Timeout, context.DeadlineExceeded)
		case m > 0:
			continue
		default:
			// Perhaps the device takes nothing until somebody takes what it says.
			s.now = now
			err = s.fill(ctx, now.Add(link.Patience))
			if now = s.now; err == nil || errors.Is(err, link.ErrSilent) {
				continue
			}
		}
		return n, err
	}
}

// fill reads once and feeds the decoder. It returns link.ErrSilent when nothing
// has come until limit, and what gives up the request when ctx ends or the
// session breaks.
func (s *session) fill(ctx context.Context, limit time.Time) error {
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
	if s.sw.cfg.Trace != nil {
		s.sw.cfg.Trace(false, p)
	}
	s.came = s.now
	s.read += len(p)
	if !s.dec.Pending() {
		s.begin = s.now
	}
	s.dec.Feed(p)
	if i := bytes.LastIndexAny(p, "\r\n"); i >= 0 {
		p, s.tail = p[i+1:], s.tail[:0]
	}
	const most = 512
	s.tail = append(s.tail, p[:min(len(p), most-len(s.tail))]...)
}

// broken closes the stream and says why it ended.
func (s *session) broken(err error) error {
	s.end()
	return s.reason(err)
}

// reason says in words why the stream ended.
func (s *session) reason(err error) error {
	switch {
	case s.sw.life.Err() != nil:
		return link.ErrClosed
	case errors.Is(err, io.EOF) && len(bytes.TrimSpace(s.tail)) > 0:
		return fmt.Errorf("the device closed the session in mid-reply: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the device closed the session: %w", io.EOF)
	}
	return fmt.Errorf("the session broke: %w", err)
}
