package netconfswitch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/wire/netconf"
)

// session is one open stream, on which any number of requests may be under way.
//
// Who has the right to read reads it, and hands to others what is theirs: a
// request that waits for its reply does so itself, since waking another
// goroutine for it costs more than all else; the session's own goroutine does
// when a reply takes long, when the one who read has its reply and others wait
// still, and when nothing is asked, so that events and the end of the stream are
// seen.
type session struct {
	conn    transport.Conn
	sw      *Switch
	dev     announced
	framing netconf.Framing

	subscribed atomic.Bool // notifications come here

	writing link.Turn // who has it may use what follows
	to      link.Writer
	out     []byte

	reading link.Turn // who has it may use what follows
	dec     netconf.Decoder
	buf     []byte
	begin   time.Time // when what the decoder holds began to come; zero when it holds nothing
	readBy  time.Time // read deadline of conn; zero when there is none
	rest    []byte    // beginning of an incomplete message, shortened

	relief chan struct{} // holds one: the session's goroutine is to read
	once   sync.Once
	ended  chan struct{} // closed when nothing is read any more; err is set then
	err    error

	mu      sync.Mutex // guards what follows
	calls   map[string]*call
	since   time.Time // when the newest call began
	timer   *time.Timer
	timing  bool      // timer is running
	retired bool      // is closed with the last call
	owed    int       // calls that were given up, whose reply may still come
	heard   time.Time // when something was read last
	stray   stray     // the last message that nobody waited for
	tail    []byte    // copy of rest
	why     error     // it was us who closed
	warned  error     // what could not be switched on; who has the turn to listen may use it
}

// call is a request that waits for its reply.
type call struct {
	since time.Time
	got   chan reading // holds one
}

// reading is a reply and when its first and its last byte had been read, or
// why there is none.
type reading struct {
	reply       netconf.Reply
	raw         []byte
	first, last time.Time
	err         error
}

// stray is a message that nobody waited for.
type stray struct {
	text string
	at   time.Time
}

// tailSize is how much of an incomplete message is kept for errors.
const tailSize = 512

// newSession exchanges hellos on conn, and the first request, until ctx ends.
// With an error it returns what the device said; the caller closes conn then, and
// calls watch otherwise.
func newSession(ctx context.Context, conn transport.Conn, sw *Switch) (s *session, said string, err error) {
	s = &session{
		conn: conn, sw: sw, to: link.Writer{Conn: conn},
		writing: link.NewTurn(), reading: link.NewTurn(), relief: make(chan struct{}, 1), ended: make(chan struct{}),
		dec: netconf.Decoder{MaxMessage: sw.cfg.MaxMessage}, buf: make([]byte, 32<<10),
		calls: map[string]*call{},
	}
	s.timer = time.AfterFunc(time.Hour, s.timeout)
	s.timer.Stop()
	if said, err := s.greet(ctx); err != nil {
		return nil, said, err
	}
	reply, said, err := s.first(ctx)
	if err != nil {
		return nil, said, err
	}
	sw.learn(reply)
	return s, "", nil
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
	case s.reading <- struct{}{}: // nobody read
		s.finish(s.reason(io.EOF))
	}
}

// retire closes the session as soon as nobody waits for a reply.
func (s *session) retire() {
	s.mu.Lock()
	s.retired = true
	idle := len(s.calls) == 0
	s.mu.Unlock()
	if idle {
		s.close(errRetired)
	}
}

var errRetired = errors.New("the session was given up")

func (s *session) alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// usable reports whether a request may be sent. It may not when the device has
// stopped in the middle of a reply that nobody waits for any more: the next one
// would be behind that.
func (s *session) usable() bool {
	if !s.alive() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stuck := s.owed > 0 && len(s.tail) > 0 && len(s.calls) == 0 && time.Since(s.heard) > 5*link.Patience
	return !s.retired && s.why == nil && !stuck
}

// finish ends the session for good. Called with the turn to read, which is
// kept.
func (s *session) finish(err error) {
	s.once.Do(func() {
		s.conn.Close()
		s.sw.received(s.rest)
		s.sw.forget(s)
		s.err = err
		close(s.ended)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.timer.Stop()
		for id, c := range s.calls {
			delete(s.calls, id)
			c.got <- reading{err: err}
		}
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
		case s.reading <- struct{}{}:
		}
		s.setReadDeadline(time.Time{})
		for {
			replied, err := s.piece()
			if err != nil {
				s.finish(err)
				return
			}
			if replied && !s.wanted() {
				break
			}
		}
		s.reading.Pass()
		if s.waiting() { // began to wait before the turn was given back
			s.relieve()
		}
	}
}

// wanted reports whether there is something to read for.
func (s *session) wanted() bool {
	return s.waiting() || s.subscribed.Load() && s.sw.events.Wanted()
}

func (s *session) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
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

// setReadDeadline is conn's; if it fails, so does Read. Called with the turn to
// read.
func (s *session) setReadDeadline(t time.Time) {
	s.readBy = t
	_ = s.conn.SetReadDeadline(t)
}

// timeout gives up the calls whose time is over. The timer is not set for each
// call but looks for those that are as old as that, since setting a timer costs
// more than most else that is done for a request.
func (s *session) timeout() {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.sw.cfg.Timeout
	now := time.Now()
	next := time.Duration(-1)
	for id, c := range s.calls {
		left := limit - now.Sub(c.since)
		switch {
		case left <= 0:
			delete(s.calls, id)
			c.got <- reading{err: fmt.Errorf("no reply within %v: %w", limit, context.DeadlineExceeded)}
		case next < 0 || left < next:
			next = left
		}
	}
	if s.timing = next >= 0; s.timing {
		s.timer.Reset(next)
	}
}
