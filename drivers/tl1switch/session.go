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
	// long is true when the reply may come in several messages, each complete.
	long  bool
	after *longReply // that this request is the fence of
}

// answer is the complete reply to a request.
type answer struct {
	msg     tl1.Message
	receipt ocs.Receipt
}

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
	told    arc
	writeBy time.Time // write deadline of conn

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
		conn: conn, sw: sw,
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
	idle := time.NewTicker(patience)
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
	}
}

// active reports whether a request has begun lately.
func (s *session) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.since) < patience
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
	now := time.Now()
	s.await(ctag, now, r)
	n, err := s.send(ctx, out, now, &a.receipt)
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
			return a, s.fence(ctx, r, &a)
		}
		err = s.sw.classify(err)
	}
	return a, s.sw.fail(r.op, string(shown), string(a.msg.Raw), err)
}

// await makes the session expect the reply to a request.
func (s *session) await(ctag string, now time.Time, r request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select { // a reply that came when its waiter had given up
	case <-s.got:
	default:
	}
	s.ctag, s.since, s.blocks, s.stray = ctag, now, nil, ""
	s.long = r.after
	if r.long && s.sw.d.fenced() {
		s.long = &longReply{ctag: ctag}
	}
	if !s.timing {
		s.timing = true
		s.timer.Reset(s.sw.cfg.Timeout)
	}
	if !s.alive() { // nobody reads any more
		s.deliverLocked(reading{err: s.err})
	}
	s.begun.Store(true)
}

// patience is how long a read or write of a request may block before it is
// looked whether anybody still waits for it, and how long after a request the
// session's goroutine begins to read.
const patience = 20 * time.Millisecond

// send writes the whole request, says when, and returns how much it wrote. When
// that is only a part the stream is closed, since the device would take the next
// request for the rest.
func (s *session) send(ctx context.Context, p []byte, now time.Time, when *ocs.Receipt) (n int, err error) {
	limit := now.Add(s.sw.cfg.Timeout)
	for {
		// Left alone while there is some time: setting it may wake a thread.
		if s.writeBy.Sub(now) < patience/2 {
			s.writeBy = now.Add(patience)
			// If this fails, so does Write.
			_ = s.conn.SetWriteDeadline(s.writeBy)
			now = time.Now()
		}
		when.SendStart = now
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
	s.readReply(ctx, a.receipt.Sent)
	var r reading
	select {
	case r = <-s.got: // the usual case, and much cheaper alone
	default:
		select {
		case r = <-s.got:
		case <-ctx.Done():
			select {
			case r = <-s.got: // it was there, too
			default:
				return fmt.Errorf("no reply: %w", context.Cause(ctx))
			}
		}
	}
	a.msg, a.receipt.FirstByte, a.receipt.Acked = r.msg, r.first, r.last
	return r.err
}

// readReply reads the reply, if nobody else reads and it comes soon. Otherwise
// it leaves that to the session's goroutine, as a read cannot be waited for
// together with the end of ctx.
func (s *session) readReply(ctx context.Context, now time.Time) {
	if d, ok := ctx.Deadline(); ok && d.Sub(now) < patience {
		s.relieve()
		return
	}
	select {
	case s.right <- struct{}{}:
	default:
		return
	}
	// Left alone while there is some time, as in send.
	if s.readBy.Sub(now) < patience/2 {
		s.setReadDeadline(now.Add(patience))
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

// giveUp stops waiting. It returns what the device said instead of a reply,
// and err with what is to be said about that.
func (s *session) giveUp(err error) (reply string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	blocks := s.blocks
	s.ctag, s.blocks, s.owed = "", nil, true
	s.relieve() // the reply may still come
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

// errBadPort is a port that the device does not have: refused as well.
var errBadPort = fmt.Errorf("%w: %w", ocs.ErrDenied, ocs.ErrPort)

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
		kind = errBadPort
	case sw.cfg.Dialect == Glimmerglass && strings.Contains(text, "locked"):
		kind = ocs.ErrInterlock
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
