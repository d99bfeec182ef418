package tl1server

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/wire/tl1"
)

// session is one client. Its commands are read and answered by one goroutine,
// its events are reported by another while somebody is logged in.
type session struct {
	srv       *Server
	dev       *emulator.Device
	dialect   *dialect
	conn      io.ReadWriteCloser
	end       context.CancelFunc // closes conn
	me        *emulator.Session
	style     tl1.Style
	reporters sync.WaitGroup

	// wire is held while a command is carried out or a message is written, so
	// that messages stay whole; it guards what follows. It is locked before mu.
	wire  lock
	buf   []byte
	atag  int
	stamp int64 // second that date and clock stand for
	date  string
	clock string

	mu      sync.Mutex // guards what follows; not held while anything is written
	user    string     // "" before login
	group   emulator.Group
	quiet   bool                   // autonomous messages are inhibited
	events  *emulator.Subscription // nil before login
	idle    *time.Timer            // runs while no command does
	expires time.Time              // when the session has idled; zero while a command runs
}

// lock is a mutex that may be held while the client does not read: unlike those
// who wait for a sync.Mutex, those who wait for it are idle to testing/synctest.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

func newSession(s *Server, conn io.ReadWriteCloser, end context.CancelFunc) *session {
	p := s.Device.Personality()
	return &session{
		srv: s, dev: s.Device, dialect: dialectOf(p), conn: conn, end: end, wire: make(lock, 1),
		style: tl1.Style{ShortLead: p.TL1.ShortLead, After: p.TL1.Prompt},
	}
}

// run serves until the client is gone or ctx ends.
func (ss *session) run(ctx context.Context) {
	defer ss.reporters.Wait()
	defer ss.conn.Close() // lest a report is stuck in it
	defer ss.logout()
	var in tl1.CommandDecoder
	buf := make([]byte, 4096)
	if ss.dev.Personality().TL1.Greet && !ss.writeLocked([]byte(ss.style.After)) {
		return
	}
	for {
		n, err := ss.conn.Read(buf)
		read := time.Now()
		in.Feed(buf[:n])
		for {
			raw, ok, tooLong := in.Next()
			if !ok {
				break
			}
			if ctx.Err() != nil {
				return
			}
			if tooLong != nil {
				ok = ss.refuse(ctx, deny(tl1.SSRE, "Command too long"))
			} else {
				ok = ss.handle(ctx, raw, read)
			}
			if !ok {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// handle answers one command and reports whether the session goes on.
func (ss *session) handle(ctx context.Context, raw []byte, read time.Time) bool {
	ss.wake()
	defer ss.rest()
	c, err := tl1.ParseCommand(raw)
	ctag := strings.TrimSpace(c.CTAG.Raw)
	if !validCTAG(ctag) {
		ctag = nullTag
	}
	fault := ss.srv.Faults.Next(c.Code)

	// What a command brings about is reported after its reply, unless that has
	// to wait.
	ss.wire.Lock()
	defer ss.wire.Unlock()
	ss.echoLocked(raw, c.Code)
	if fault.Kind == emulator.FaultLose {
		return true
	}
	var r reply
	switch {
	case err != nil:
		r.err = syntax(&c, err)
	case fault.Kind == emulator.FaultDeny:
		r.err = deny(tl1.SROF, "Requested operation failed")
	default:
		r, r.err = ss.dispatch(&c)
	}
	if r.op.Number > 0 {
		ss.dev.Record(timeline.Command, read, read, r.op)
		ss.wire.Unlock()
		due := emulator.SleepUntil(ctx, r.op.Ack)
		ss.wire.Lock()
		if !due {
			return false
		}
	}
	before := time.Now()
	goOn, told := ss.answerLocked(ctx, r, ctag, fault)
	if told && r.op.Number > 0 {
		ss.dev.Record(timeline.Ack, before, time.Now(), r.op)
	}
	if r.reboot {
		ss.dev.Reboot()
		return false
	}
	return goOn
}

// refuse answers what is not even a command.
func (ss *session) refuse(ctx context.Context, err *denial) bool {
	ss.wire.Lock()
	defer ss.wire.Unlock()
	goOn, _ := ss.answerLocked(ctx, reply{err: err}, nullTag, emulator.Fault{})
	return goOn
}

// wake stops the idle time for the time of a command.
func (ss *session) wake() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.expires = time.Time{}
	if ss.idle != nil {
		ss.idle.Stop()
	}
}

// rest starts the idle time anew.
func (ss *session) rest() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.user == "" {
		return
	}
	after := ss.dev.IdleTimeout(ss.group)
	if after == 0 {
		return
	}
	ss.expires = time.Now().Add(after)
	if ss.idle == nil {
		ss.idle = time.AfterFunc(after, ss.idled)
	} else {
		ss.idle.Reset(after)
	}
}

func (ss *session) idled() {
	ss.mu.Lock()
	late := ss.expires.IsZero() || time.Now().Before(ss.expires) // a command came first
	if !late {
		ss.logoutLocked()
	}
	ss.mu.Unlock()
	if !late && ss.dev.Personality().TL1.IdleCloses {
		ss.end()
	}
}

func (ss *session) login(user string, g emulator.Group) {
	events := ss.dev.Subscribe()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.user, ss.group, ss.quiet, ss.events = user, g, ss.dev.Personality().TL1.Quiet, events
	ss.me.SetUser(user)
	ss.reporters.Go(func() { ss.report(events) })
}

func (ss *session) logout() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.logoutLocked()
	if ss.idle != nil {
		ss.idle.Stop()
	}
}

func (ss *session) logoutLocked() {
	ss.user, ss.group, ss.expires = "", "", time.Time{}
	ss.me.SetUser("")
	if ss.events != nil {
		ss.events.Close()
		ss.events = nil
	}
}

func (ss *session) who() (string, emulator.Group) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.user, ss.group
}

// syntax answers a command that cannot be read with the code of the field that
// is wrong, and the place where it begins.
func syntax(c *tl1.Command, err error) *denial {
	code, at := tl1.IICM, 1
	var se *tl1.SyntaxError
	if errors.As(err, &se) && se.Offset > 1 { // else it is the verb
		step := func(k tl1.Code, f tl1.Field) {
			if se.Offset >= f.Offset {
				code, at = k, f.Offset
			}
		}
		step(tl1.IITA, c.TID)
		step(tl1.IIAC, c.AID)
		step(tl1.IICT, c.CTAG)
		step(tl1.IIPG, c.GB)
		for _, b := range c.Blocks {
			step(tl1.IPNV, b.Field)
		}
	}
	return badField(code, at)
}

func badField(code tl1.Code, offset int) *denial {
	return deny(code, "Parse error at offset %d in command", offset)
}
