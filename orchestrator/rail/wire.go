package rail

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/orchestrator/proto"
)

const (
	// openWithin is how long a connection may take to say which rail it is for.
	openWithin = 30 * time.Second
	// writeWithin is how long the other side may take none of what is written.
	writeWithin = 30 * time.Second
	// maxUnread is how much may wait for a side that reads slower than it is written to.
	maxUnread = 64 << 20
)

// outbox writes messages to a connection, those that wait with one write. It is safe for concurrent use.
type outbox struct {
	conn net.Conn

	mu     sync.Mutex // guards what follows
	more   *sync.Cond
	buf    []byte
	closed bool
}

func newOutbox(conn net.Conn) *outbox {
	b := &outbox{conn: conn}
	b.more = sync.NewCond(&b.mu)
	return b
}

// put queues a message. After the end it is dropped; one that cannot be written ends the connection.
func (b *outbox) put(m proto.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	var err error
	if b.buf, err = proto.Append(b.buf, m); err != nil || len(b.buf) > maxUnread {
		b.closed = true
		b.conn.Close()
	}
	b.more.Signal()
}

// end has what is queued written, then run return.
func (b *outbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.more.Signal()
}

// run writes until end, or until writing fails, and closes the connection.
func (b *outbox) run() {
	defer b.conn.Close()
	var writing []byte
	for {
		b.mu.Lock()
		for len(b.buf) == 0 && !b.closed {
			b.more.Wait()
		}
		if len(b.buf) == 0 {
			b.mu.Unlock()
			return
		}
		writing, b.buf = b.buf, writing[:0]
		b.mu.Unlock()
		_ = b.conn.SetWriteDeadline(time.Now().Add(writeWithin))
		if _, err := b.conn.Write(writing); err != nil {
			b.end()
			b.mu.Lock()
			b.buf = nil
			b.mu.Unlock()
		}
	}
}

// Serve serves rails, by name, to controllers that connect to l, until ctx ends or l fails; then it closes l and all
// connections. Messages are those of package proto. Many controllers may be connected; who opened a rail last has it.
// For TLS give a listener that does it.
func Serve(ctx context.Context, l net.Listener, rails map[string]*Orchestrator) error {
	return emulator.Accept(ctx, l, func(ctx context.Context, conn net.Conn) { ServeConn(ctx, conn, rails) })
}

// ServeConn serves one controller, until it or ctx ends, and closes the connection.
func ServeConn(ctx context.Context, conn net.Conn, rails map[string]*Orchestrator) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	out := newOutbox(conn)
	all.Go(out.run)
	defer out.end()
	bye := func(code proto.Code, format string, args ...any) {
		out.put(&proto.Bye{Code: code, Reason: fmt.Sprintf(format, args...)})
		out.end()
	}
	r := bufio.NewReader(conn)
	_ = conn.SetReadDeadline(time.Now().Add(openWithin))
	m, err := proto.Read(r)
	if err != nil {
		if errors.Is(err, proto.ErrFrame) {
			bye(proto.Bad, "%v", err)
		}
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	open, ok := m.(*proto.Open)
	if !ok {
		bye(proto.Bad, "a connection begins with open, not with %s", proto.KindOf(m))
		return
	}
	o := rails[open.Rail]
	if o == nil {
		bye(proto.Bad, "there is no rail %.60q here", open.Rail)
		return
	}
	alarms := o.subscribe()
	defer o.unsubscribe(alarms)
	all.Go(func() {
		for a := range alarms {
			out.put(&a)
		}
	})
	s := &served{o: o, out: out, bye: bye}
	for {
		if !s.take(m) {
			return
		}
		if m, err = proto.Read(r); err != nil {
			if errors.Is(err, proto.ErrFrame) {
				bye(proto.Bad, "%v", err)
			}
			return
		}
	}
}

// served is a connection of a controller.
type served struct {
	o   *Orchestrator
	out *outbox
	bye func(proto.Code, string, ...any)
}

// take begins what a message asks for; false ends the connection.
func (s *served) take(m proto.Message) bool {
	switch m := m.(type) {
	case *proto.Open:
		s.o.Open(*m, func(state proto.Opened, err error) {
			var r *proto.Refusal
			switch {
			case errors.As(err, &r):
				s.bye(r.Code, "%s", r.Detail)
			case err != nil:
				s.bye("", "%v", err)
			default:
				s.out.put(&state)
			}
		})
	case *proto.Apply:
		s.o.Apply(*m, s.answer(m.Req))
	case *proto.GiantRing:
		s.o.GiantRing(*m, s.answer(m.Req))
	case *proto.Mark:
		s.o.Mark(*m, s.answer(m.Req))
	case *proto.Bye:
		return false
	default:
		s.bye(proto.Bad, "%s is no message for the orchestrator of a rail", proto.KindOf(m))
		return false
	}
	return true
}

func (s *served) answer(req uint64) func(proto.Done, error) {
	return func(d proto.Done, err error) {
		var r *proto.Refusal
		switch {
		case err == nil:
			s.out.put(&d)
		case errors.As(err, &r):
			s.out.put(&proto.Failed{Req: req, Code: r.Code, Attempts: r.Attempts, Detail: r.Detail})
		default: // the orchestrator ends: what becomes of the request is not known
			s.bye("", "%v", err)
		}
	}
}
