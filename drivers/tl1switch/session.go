package tl1switch

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/wire/tl1"
)

// session is one open stream.
//
// Who has the right to read reads it: a request that waits for its reply does so
// itself, since waking another goroutine for it costs more than all else; the
// session's own goroutine does when a reply takes long, and when nothing is
// asked, so that events and the end of the stream are seen.
type session struct {
	conn transport.Conn
	sw   *Switch

	// Who has the turn may use these.
	told arc
	out  link.Writer

	right  chan struct{} // holds one token; who has it may use what follows
	dec    tl1.Decoder
	buf    []byte
	begin  time.Time // when what the decoder holds began to come; zero when it holds nothing
	readBy time.Time // read deadline of conn; zero when there is none
	trace  func(p []byte)

	relief chan struct{} // holds one: the session's goroutine is to read
	begun  atomic.Bool   // a request has begun since the last read
	got    chan reading
	once   sync.Once
	ended  chan struct{} // closed when nothing is read any more; err is set then
	err    error

	mu     sync.Mutex // guards what follows
	ctag   string     // of the request that waits; "" when none does
	since  time.Time  // when that began to wait
	timer  *time.Timer
	timing bool // timer is running
	blocks []tl1.Message
	first  time.Time  // when blocks[0] began
	owed   bool       // a request was given up, its reply may still come
	stray  string     // the last reply that nobody waited for
	long   *longReply // to the last request, if it was a long one or the fence of one
	tail   string     // an incomplete message, shortened; written by who may read
	why    error      // it was us who closed
}

// arc is what a session was told about autonomous messages.
type arc uint8

const (
	nothing arc = iota
	inhibited
	allowed
)

// reading is a reply and when its first and its last byte had been read, or
// why there is none.
type reading struct {
	msg         tl1.Message
	first, last time.Time
	err         error
}

func newSession(conn transport.Conn, sw *Switch) *session {
	s := &session{
		conn: conn, sw: sw, out: link.Writer{Conn: conn},
		right: make(chan struct{}, 1), relief: make(chan struct{}, 1),
		dec: tl1.Decoder{MaxLen: sw.cfg.MaxReply}, buf: make([]byte, 16<<10), trace: sw.received(),
		got: make(chan reading, 1), ended: make(chan struct{}),
	}
	s.timer = time.AfterFunc(time.Hour, s.timeout)
	s.timer.Stop()
	go s.watch()
	return s
}

// close ends the session, for the given reason unless it has one already.
func (s *session) close(why error) {
	s.mu.Lock()
	if s.why == nil {
		s.why = why
	}
	s.mu.Unlock()
	s.conn.Close()
	select {
	case <-s.ended: // who read has noticed
	case s.right <- struct{}{}: // nobody read
		s.finish(s.reason(net.ErrClosed))
	}
}

func (s *session) alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// usable reports whether a request may be sent. It may not when the device has
// stopped in the middle of a reply that was given up: what it says next would
// be taken for the rest of that.
func (s *session) usable() bool {
	if !s.alive() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.owed || s.tail == ""
}

// finish ends the session for good. Called with the right to read, which is
// kept.
func (s *session) finish(err error) {
	s.once.Do(func() {
		s.conn.Close()
		s.trace(nil)
		s.err = err
		close(s.ended)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.timer.Stop()
		s.deliverLocked(reading{err: err})
	})
}

// watch is the session's own goroutine: it reads when nobody else does.
func (s *session) watch() {
	idle := time.NewTicker(link.Patience)
	defer idle.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-s.relief:
		case <-idle.C:
			if s.active() {
				continue // whoever asks reads
			}
		}
		select {
		case <-s.ended:
			return
		case s.right <- struct{}{}:
		}
		s.setReadDeadline(time.Time{})
		for {
			replied, err := s.piece()
			if err != nil {
				s.finish(err)
				return
			}
			if replied && !s.sw.events.Wanted() {
				break
			}
		}
		<-s.right
		if s.waiting() { // began to wait before the right was given back
			s.relieve()
		}
	}
}

// waiting reports whether a request waits for its reply.
func (s *session) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctag != ""
}

// active reports whether a request has begun lately.
func (s *session) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.since) < link.Patience
}

// relieve makes the session's goroutine read.
func (s *session) relieve() {
	select {
	case s.relief <- struct{}{}:
	default:
	}
}

// setReadDeadline is conn's; if it fails, so does Read. Called with the right to
// read.
func (s *session) setReadDeadline(t time.Time) {
	s.readBy = t
	_ = s.conn.SetReadDeadline(t)
}

// deliverLocked hands r to the request that waits, if one does.
func (s *session) deliverLocked(r reading) {
	if s.ctag != "" {
		s.ctag = ""
		s.got <- r // there is room: one for each request
	}
}

// timeout gives up the request that waits when its time is over. The timer is
// not set for each request but looks whether there is one as old as that, since
// setting a timer costs more than all else that is done for a request.
func (s *session) timeout() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timing = s.ctag != ""
	if !s.timing {
		return
	}
	limit := s.sw.cfg.Timeout
	if left := limit - time.Since(s.since); left > 0 {
		s.timer.Reset(left)
		return
	}
	s.timing = false
	s.deliverLocked(reading{err: fmt.Errorf("no reply within %v: %w", limit, context.DeadlineExceeded)})
}
