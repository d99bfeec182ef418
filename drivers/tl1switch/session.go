package tl1switch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/drivers/transport"
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
}

// answer is the complete reply to a request.
type answer struct {
	msg     tl1.Message
	receipt ocs.Receipt
}

// session is one open stream with a reader of its own.
type session struct {
	conn transport.Conn
	sw   *Switch

	// Who has the turn may use these.
	told    arc
	writeBy time.Time // write deadline of conn

	begun atomic.Bool // a request has begun since the last read
	got   chan reading
	ended chan struct{} // closed when the reader has ended; err is set then
	err   error

	mu     sync.Mutex // guards what follows
	ctag   string     // of the request that waits; "" when none does
	since  time.Time  // when that began to wait
	timer  *time.Timer
	timing bool // timer is running
	blocks []tl1.Message
	first  time.Time // when blocks[0] began
	owed   bool      // a request was given up, its reply may still come
	stray  string    // the last reply that nobody waited for
	tail   string    // an incomplete message, shortened
	why    error     // it was us who closed
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
	s := &session{conn: conn, sw: sw, got: make(chan reading, 1), ended: make(chan struct{})}
	s.timer = time.AfterFunc(time.Hour, s.timeout)
	s.timer.Stop()
	go s.read()
	return s
}

// close ends the session, for the given reason unless it has one already, and
// waits for its reader.
func (s *session) close(why error) {
	s.mu.Lock()
	if s.why == nil {
		s.why = why
	}
	s.mu.Unlock()
	s.conn.Close()
	<-s.ended
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

// read is the reader: it owns the receiving side of the stream.
func (s *session) read() {
	s.err = s.receive()
	s.conn.Close()
	close(s.ended)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.deliverLocked(reading{err: s.err})
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

// receive reads until the stream ends or makes no sense, and returns why.
func (s *session) receive() error {
	dec := tl1.Decoder{MaxLen: s.sw.cfg.MaxReply}
	trace := s.sw.received()
	defer trace(nil)
	buf := make([]byte, 16<<10)
	var first time.Time // when what the decoder holds began to come; zero when it holds nothing
	for {
		n, err := s.conn.Read(buf)
		now := time.Now()
		trace(buf[:n])
		// Blanks that came before a request are not the beginning of its reply.
		begun := s.begun.Load() && s.begun.Swap(false)
		if first.IsZero() || begun && !dec.Pending() {
			first = now
		}
		dec.Feed(buf[:n])
		var last []byte // message in this piece
		for {
			m, ok, bad := dec.Next()
			if !ok {
				break
			}
			var malformed *tl1.MessageError
			switch {
			case bad == nil:
				last = m.Raw
				s.take(m, first, now)
			case errors.As(bad, &malformed):
				last = malformed.Raw
				s.setStray(last)
			default:
				return bad // too long: no end is in sight
			}
			first = now
		}
		switch {
		case dec.Pending():
			s.keepTail(buf[:n], last)
		case last != nil:
			first = time.Time{}
			s.dropTail()
		}
		if err != nil {
			return s.reason(err)
		}
	}
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
	if s.tail == "" { // only the reader writes it
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

// take routes a message: to who waits for it, to who listens, or nowhere.
func (s *session) take(m tl1.Message, first, now time.Time) {
	switch m.Kind {
	case tl1.Autonomous:
		s.sw.events.publish(func() ocs.Event { return s.sw.eventOf(m, now) })
		return
	case tl1.Acknowledgement:
		if m.Ack == tl1.IP || m.Ack == tl1.PF {
			return // the reply is still to come
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A device that could not read the tag says 0. That is for the one who
	// waits unless it may be for one who no longer does.
	lostTag := (m.CTAG == "0" || m.CTAG == "") && m.Completion == tl1.DENY && !s.owed
	if s.ctag == "" || m.CTAG != s.ctag && !lostTag {
		s.stray = string(m.Raw)
		return
	}
	if len(s.blocks) == 0 {
		s.first = first
	}
	more := m.More || m.Completion == tl1.RTRV
	if more || len(s.blocks) > 0 {
		s.blocks = append(s.blocks, m)
	}
	if more {
		return
	}
	if len(s.blocks) > 0 {
		m = tl1.Join(s.blocks)
	}
	s.deliverLocked(reading{msg: m, first: s.first, last: now})
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
	s.await(ctag)
	n, err := s.send(ctx, out, &a.receipt)
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
			return a, nil
		}
		err = s.sw.classify(err)
	}
	return a, s.sw.fail(r.op, string(shown), string(a.msg.Raw), err)
}

// await makes the session expect the reply to a request.
func (s *session) await(ctag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select { // a reply that came when its waiter had given up
	case <-s.got:
	default:
	}
	s.ctag, s.since, s.blocks, s.stray = ctag, time.Now(), nil, ""
	if !s.timing {
		s.timing = true
		s.timer.Reset(s.sw.cfg.Timeout)
	}
	if !s.alive() { // the reader is past looking
		s.deliverLocked(reading{err: s.err})
	}
	s.begun.Store(true)
}

// patience is how long a write may block before it is looked whether anybody
// still waits for it.
const patience = 20 * time.Millisecond

// send writes the whole request, says when, and returns how much it wrote. When
// that is only a part the stream is closed, since the device would take the next
// request for the rest.
func (s *session) send(ctx context.Context, p []byte, when *ocs.Receipt) (n int, err error) {
	now := time.Now()
	limit := now.Add(s.sw.cfg.Timeout)
	for {
		// Left alone while there is some time: setting it may wake a thread.
		if s.writeBy.Sub(now) < patience/2 {
			s.writeBy = now.Add(patience)
			// If this fails, so does Write.
			_ = s.conn.SetWriteDeadline(s.writeBy)
		}
		when.SendStart = time.Now()
		m, err := s.conn.Write(p[n:])
		when.Sent = time.Now()
		if n += m; err == nil {
			return n, nil
		}
		now = when.Sent
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			s.close(fmt.Errorf("the session broke: %w", err))
			return n, s.err // Close or the reader may have come first
		case ctx.Err() != nil:
			err = fmt.Errorf("not sent: %w", context.Cause(ctx))
		case now.After(limit):
			err = fmt.Errorf("not sent within %v: %w", s.sw.cfg.Timeout, context.DeadlineExceeded)
		default:
			continue
		}
		if n > 0 {
			s.close(err)
		}
		return n, err
	}
}

// wait waits for the reply and fills in a.
func (s *session) wait(ctx context.Context, a *answer) error {
	var r reading
	select {
	case r = <-s.got:
	case <-ctx.Done():
		select {
		case r = <-s.got: // it was there, too
		default:
			return fmt.Errorf("no reply: %w", context.Cause(ctx))
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

// fail makes the error for an operation.
func (sw *Switch) fail(op, request, reply string, err error) error {
	return &ocs.OpError{Op: op, Device: sw.cfg.Device, Request: sw.hide.text(request), Reply: sw.hide.text(reply), Err: err}
}

// denial is a refusal by the device; it matches the sentinels of ocs that fit,
// and *tl1.Error.
type denial struct {
	said *tl1.Error
	kind error
}

func (d *denial) Error() string   { return d.said.Error() }
func (d *denial) Unwrap() []error { return []error{d.kind, d.said} }

// badPort is a port that the device does not have: refused as well.
var badPort = fmt.Errorf("%w: %w", ocs.ErrDenied, ocs.ErrPort)

// classify says which contract of ocs a refusal falls under.
func (sw *Switch) classify(err error) error {
	var e *tl1.Error
	if !errors.As(err, &e) {
		return err
	}
	e.Text = sw.hide.text(e.Text)
	text := strings.ToLower(e.Text)
	kind := ocs.ErrDenied
	switch code := tl1.Code(e.Code); {
	case e.Completion != tl1.DENY:
		// Done in part: none of the others, as they promise that nothing was.
	case code == tl1.IICM, code == tl1.ICNV, code == tl1.INUP:
		kind = ocs.ErrNotSupported
	case code == tl1.IDNC, strings.Contains(text, "in use"):
		kind = ocs.ErrConflict
	case strings.Contains(text, "invalid oxc port"):
		kind = badPort
	}
	return &denial{e, kind}
}

// notLoggedIn reports whether a request had no effect because the device has
// forgotten the login.
func notLoggedIn(err error) bool {
	var e *tl1.Error
	return errors.As(err, &e) && e.Completion == tl1.DENY && e.NotLoggedIn()
}

var errClosed = fmt.Errorf("the switch was closed: %w", net.ErrClosed)
