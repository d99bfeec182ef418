package orchestrator

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
)

// firstWithin is how long a connection may take to say what it is.
const firstWithin = 10 * time.Second

// Serve serves shims and controllers that connect to l until ctx ends: the first message of a connection says which
// it is. It closes l, and returns when all connections have ended.
func (s *System) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shims, rails := newQueue(l.Addr()), newQueue(l.Addr())
	var serving sync.WaitGroup
	errs := make([]error, 2)
	if s.Controller != nil {
		serving.Go(func() { errs[0] = serveShims(ctx, s.Controller, shims) })
	}
	serving.Go(func() { errs[1] = rail.Serve(ctx, rails, s.Rails) })
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var err error
	for {
		var conn net.Conn
		if conn, err = l.Accept(); err != nil {
			break
		}
		serving.Go(func() { s.sort(conn, shims, rails) })
	}
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	shims.Close()
	rails.Close()
	serving.Wait()
	return errors.Join(append(errs, err)...)
}

// serveShims serves the connections of a queue.
func serveShims(ctx context.Context, c *controller.Controller, q *queue) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		conn, err := q.Accept()
		if err != nil {
			return nil // it is closed by us only
		}
		serving.Go(func() { _ = c.ServeConn(ctx, conn) }) // the controller's log has what went wrong
	}
}

// sort gives a connection to those it wants.
func (s *System) sort(conn net.Conn, shims, rails *queue) {
	_ = conn.SetReadDeadline(time.Now().Add(firstWithin))
	r := bufio.NewReader(conn)
	m, err := proto.Read(r)
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		bye(conn, proto.Bad, "a connection begins with hello or open: "+err.Error())
		return
	}
	first, err := proto.Append(nil, m)
	if err != nil {
		bye(conn, proto.Bad, err.Error())
		return
	}
	again := &replayed{Conn: conn, first: first, rest: r}
	switch m.(type) {
	case *proto.Hello:
		if s.Controller == nil {
			bye(conn, proto.Bad, "there is no controller here, only rails")
			return
		}
		shims.put(again)
	case *proto.Open:
		rails.put(again)
	default:
		bye(conn, proto.Bad, "a connection begins with hello or open, not with "+string(proto.KindOf(m)))
	}
}

func bye(conn net.Conn, code proto.Code, reason string) {
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	if frame, err := proto.Append(nil, &proto.Bye{Code: code, Reason: reason}); err == nil {
		_, _ = conn.Write(frame) // it is closed in any case
	}
}

// replayed is a connection of which the beginning was read already. For writers it is that connection.
type replayed struct {
	net.Conn
	first []byte
	rest  *bufio.Reader
}

func (c *replayed) Read(p []byte) (int, error) {
	switch {
	case len(c.first) > 0:
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	case c.rest == nil:
		return c.Conn.Read(p)
	case c.rest.Buffered() == 0:
		c.first, c.rest = nil, nil // from now on there is only one buffer: the reader's
		return c.Conn.Read(p)
	}
	return c.rest.Read(p)
}

// SyscallConn returns the socket, which is an error if there is none.
func (c *replayed) SyscallConn() (syscall.RawConn, error) {
	if socket, ok := c.Conn.(syscall.Conn); ok {
		return socket.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// queue is a net.Listener of connections that were accepted elsewhere.
type queue struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newQueue(addr net.Addr) *queue {
	return &queue{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (q *queue) put(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.closed:
		c.Close()
	}
}

// Accept returns the next connection, or net.ErrClosed.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (q *queue) Close() error { q.once.Do(func() { close(q.closed) }); return nil }

// Addr returns where the connections came in.
func (q *queue) Addr() net.Addr { return q.addr }
