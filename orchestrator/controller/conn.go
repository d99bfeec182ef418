package controller

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/timeline"
)

// A rail drives an engine: it brings the events, and carries out what comes of them. Messages and requests are only queued under
// the lock, in the order in which the engine decided.
type rail struct {
	c    *Controller
	name string
	to   Rail
	open chan struct{} // closed when the orchestrator has been opened
	live atomic.Bool

	mu      sync.Mutex // guards what follows
	e       *engine
	conns   []*conn // by rank
	timer   *time.Timer
	at      int64 // of timer; 0: not set
	stopped bool
	told    []*conn // have something to write since the lock was taken
}

func nowNS() int64 { return timeline.HostAxis().NS(time.Now()) }

// do takes the engine through one event. Those that have been sent something get it when others may go on already.
func (r *rail) do(event func(e *engine)) {
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return
	}
	r.e.now = nowNS()
	event(r.e)
	changed := r.carryOut()
	r.arm()
	told := r.told
	r.told = nil
	r.mu.Unlock()
	for _, c := range told {
		c.flush()
	}
	if changed {
		r.c.others()
	}
}

// carryOut does what the engine wants. It reports whether the rail has begun or ceased to live.
func (r *rail) carryOut() (changed bool) {
	for len(r.e.out) > 0 {
		out := r.e.out
		r.e.out = nil
		for _, a := range out {
			switch {
			case a.ack != nil:
				own := *a.ack
				own.Req = a.req
				r.tell(r.conns[a.rank], &own)
			case a.apply != nil:
				r.to.Apply(*a.apply, r.answered(a.apply.Req))
			case a.giant != nil:
				r.to.GiantRing(*a.giant, r.answered(a.giant.Req))
			case a.mark != nil:
				r.to.Mark(*a.mark, r.answered(a.mark.Req))
			case a.state:
				live := r.e.mode != dead && r.e.mode != overtaken
				changed = r.live.Swap(live) != live || changed || !live
			case a.close != nil:
				c := a.close.(*conn)
				c.queue(a.msg)
				c.finish()
			default:
				r.tell(r.conns[a.rank], a.msg)
			}
		}
	}
	return changed
}

func (r *rail) answered(req uint64) func(proto.Done, error) {
	return func(d proto.Done, err error) { r.do(func(e *engine) { e.done(req, d, err) }) }
}

// arm sets the timer for what the engine has to be told the time for.
func (r *rail) arm() {
	at, ok := r.e.nextDue()
	if !ok || r.at != 0 && r.at <= at {
		return // a timer that fires early sets the next one
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.at = at
	r.timer = time.AfterFunc(time.Duration(max(at-r.e.now, 0)), func() {
		r.do(func(e *engine) {
			r.at = 0
			e.tick()
		})
	})
}

func (r *rail) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

// tell queues a message, and sees to it that do flushes the connection.
func (r *rail) tell(c *conn, m proto.Message) {
	if c != nil && c.queue(m) {
		r.told = append(r.told, c)
	}
}

// maxQueue is how many bytes may wait for a shim that does not read.
const maxQueue = 32 << 20

// A conn writes to a shim. What the socket takes at once is written by whoever has something to say; what it does not, and all to
// a connection that is no socket, by a goroutine of its own, which writes what has come together meanwhile at once.
type conn struct {
	net.Conn
	eager  *proto.Eager
	mu     sync.Mutex
	buf    []byte
	busy   bool // the goroutine is writing
	ended  bool
	signal chan struct{} // of capacity 1: there is something for the goroutine
}

func newConn(nc net.Conn) *conn {
	return &conn{Conn: nc, eager: proto.NewEager(nc), signal: make(chan struct{}, 1)}
}

func (c *conn) send(m proto.Message) {
	if c.queue(m) {
		c.flush()
	}
}

// queue adds a message to what is to be written, behind all that was queued before. It reports whether flush has to be called.
func (c *conn) queue(m proto.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	first := len(c.buf) == 0
	buf, err := proto.Append(c.buf, m)
	if err != nil || len(buf) > maxQueue {
		c.ended = true
		c.Close()
		c.wake()
		return false
	}
	c.buf = buf
	return first
}

// flush writes what is queued, or leaves it to the goroutine.
func (c *conn) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.buf) == 0 {
		return
	}
	if !c.busy {
		left := c.eager.Write(c.buf)
		c.buf = c.buf[:copy(c.buf, left)]
	}
	if len(c.buf) > 0 {
		c.wake()
	}
}

func (c *conn) wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// finish ends the connection when all has been written.
func (c *conn) finish() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.wake()
}

func (c *conn) run() {
	var spare []byte
	for range c.signal {
		c.mu.Lock()
		buf, ended := c.buf, c.ended
		c.buf, c.busy = spare[:0], len(buf) > 0
		c.mu.Unlock()
		if len(buf) > 0 {
			if _, err := c.Conn.Write(buf); err != nil {
				break
			}
			c.mu.Lock()
			c.busy = false
			c.mu.Unlock()
		}
		spare = buf
		if ended {
			break
		}
	}
	c.Close()
}

// lastWords is how long a shim that does not read is given for what is still to be written to it.
const lastWords = time.Second

// ServeConn serves one shim until its connection ends or ctx is done, and closes the connection. Run must be
// running; until it has opened the shim's rail, the shim waits. The error is nil after a bye, and matches ErrRefused when the shim
// was sent away.
func (c *Controller) ServeConn(ctx context.Context, nc net.Conn) error {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true)
	}
	cn := newConn(nc)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(cn.run)
	defer func() {
		_ = nc.SetWriteDeadline(time.Now().Add(lastWords))
		cn.finish()
	}()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	in := bufio.NewReader(nc)
	r, hello, err := c.greet(ctx, in)
	if err == nil {
		err = r.serve(cn, in, hello)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refusal *proto.Refusal
	if errors.As(err, &refusal) {
		cn.send(&proto.Bye{Code: refusal.Code, Reason: refusal.Detail})
		if c.opt.Log != nil {
			ev := Event{AtNS: nowNS(), Kind: EventRefused, Rank: -1, Code: refusal.Code, Detail: refusal.Detail}
			if hello != nil {
				ev.Rail, ev.Rank = hello.Rail, hello.Rank
			}
			c.opt.Log(ev)
		}
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// greet reads the hello of a shim.
func (c *Controller) greet(ctx context.Context, in *bufio.Reader) (*rail, *proto.Hello, error) {
	refuse := func(code proto.Code, format string, args ...any) error {
		return &proto.Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
	}
	m, err := proto.Read(in)
	if errors.Is(err, proto.ErrFrame) {
		return nil, nil, refuse(proto.Bad, "%v", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the hello of a shim: %w", err)
	}
	h, ok := m.(*proto.Hello)
	if !ok {
		return nil, nil, refuse(proto.Bad, "the connection begins with %s: want hello", proto.KindOf(m))
	}
	r := c.rails[h.Rail]
	switch {
	case h.Version != proto.Version:
		err = refuse(proto.Bad, "the shim speaks version %d of the protocol: want %d", h.Version, proto.Version)
	case h.Job != c.opt.Job.Name:
		err = refuse(proto.Bad, "the shim is of job %.80q, and this is the controller of %q", h.Job, c.opt.Job.Name)
	case r == nil:
		err = refuse(proto.Bad, "the shim is on rail %.80q, and job %s has %v", h.Rail, h.Job, c.names)
	case h.Rank < 0 || h.Rank >= len(r.conns):
		err = refuse(proto.Bad, "rail %s of job %s has no rank %d: want 0 to %d", h.Rail, h.Job, h.Rank, len(r.conns)-1)
	}
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-r.open:
		return r, h, nil
	case <-ctx.Done():
		return nil, h, context.Cause(ctx)
	}
}

// The ranks of a run that has ended have left, but the ends of their connections may still be on their way when those of the
// next run come.
const (
	endWithin = 2 * time.Second
	endEvery  = 5 * time.Millisecond
)

// awaitEnd waits a little while for the other ranks of the last run to leave, if this one begins anew. If they stay, it is
// only this one that has: it is let in, and what it asks for is refused as over.
func (r *rail) awaitEnd(rank int) {
	for end := time.Now().Add(endWithin); time.Now().Before(end); time.Sleep(endEvery) {
		wait := false
		r.do(func(e *engine) { wait = rank >= 0 && rank < len(e.ranks) && e.between(rank) })
		if !wait {
			return
		}
	}
}

// serve carries on after hello.
func (r *rail) serve(c *conn, in *bufio.Reader, h *proto.Hello) error {
	first := h.Epoch == 0 && len(h.Holds) == 0
	if first {
		r.awaitEnd(h.Rank)
	}
	var err error
	r.do(func(e *engine) {
		if e.mode == overtaken {
			err = &proto.Refusal{Code: proto.Stale, Detail: e.reason}
			return
		}
		if first {
			if err = e.anew(r.c.opt); err != nil {
				return
			}
		}
		if err = e.ended(h); err != nil {
			return
		}
		// The welcome comes before anything that the hello leads to.
		if err = e.check(h.Rank, h.Holds); err != nil {
			return
		}
		welcome := &proto.Welcome{Epoch: e.epoch, Run: e.run, MonoNS: e.now}
		if e.barrier >= 0 {
			welcome.TimeoutNS = e.barrier + e.drain
		}
		r.tell(c, welcome)
		r.conns[h.Rank] = c
		err = e.hello(h.Rank, c, h.Holds)
	})
	if err != nil {
		return err
	}
	clean := false
	defer func() {
		r.do(func(e *engine) {
			e.lost(h.Rank, c, clean)
			if r.conns[h.Rank] == c {
				r.conns[h.Rank] = nil
			}
		})
	}()
	for {
		m, err := proto.Read(in)
		switch {
		case errors.Is(err, proto.ErrFrame):
			return &proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("%s: %v", r.c.opt.Who(r.name, h.Rank), err)}
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s has gone without bye: %w", r.c.opt.Who(r.name, h.Rank), io.ErrUnexpectedEOF)
		case err != nil:
			return fmt.Errorf("%s is lost: %w", r.c.opt.Who(r.name, h.Rank), err)
		}
		if _, clean = m.(*proto.Bye); clean {
			return nil
		}
		r.do(func(e *engine) {
			if e.ranks[h.Rank].conn != c {
				err = io.ErrClosedPipe // another connection has taken its place
				return
			}
			err = e.message(h.Rank, m)
		})
		if err != nil {
			return err
		}
	}
}

// message is told what a rank has sent. An error ends its connection.
func (e *engine) message(rank int, m proto.Message) error {
	switch m := m.(type) {
	case *proto.JoinGroup:
		return e.join(rank, m)
	case *proto.PhaseTable:
		return e.phaseTable(rank, m)
	case *proto.TopoWrite:
		e.write(rank, m)
	case *proto.Withdraw:
		e.withdraw(rank, m.Req)
	case *proto.Release:
		e.release(rank, m)
	default:
		return &proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("%s sends %s, which is not for a controller", e.who(rank), proto.KindOf(m))}
	}
	return nil
}

// check returns why a hello with these holds would be refused.
func (e *engine) check(rank int, holds []proto.OpRef) error {
	for _, ref := range holds {
		if _, err := e.find(rank, ref); err != nil {
			return err
		}
	}
	return nil
}
