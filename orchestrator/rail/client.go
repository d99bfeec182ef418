package rail

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/orchestrator/proto"
)

// Defaults of [ClientOptions].
const (
	DefaultDeadline = 30 * time.Second
	DefaultPause    = 100 * time.Millisecond
	maxPause        = 2 * time.Second
)

// ClientOptions are what a Client works with. The zero value is usable.
type ClientOptions struct {
	Rail string // for messages
	// Deadline is how long the answer to a request may take, connections that are lost and made anew included. 0 is
	// DefaultDeadline.
	Deadline time.Duration
	// Pause is how long to wait before the second attempt to connect; it doubles with each, up to two seconds. 0 is
	// DefaultPause.
	Pause time.Duration
}

// Client is controller.Rail over a connection. A connection that is lost is made anew; what had been asked
// is asked again, which has no second effect. When another controller has opened the job meanwhile, everything is
// refused as stale until Open. It is safe for concurrent use.
type Client struct {
	opt    ClientOptions
	dial   func(context.Context) (net.Conn, error)
	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup
	alarms chan proto.Alarm
	wake   chan struct{} // there is a reason to connect

	mu     sync.Mutex  // guards what follows
	opened *proto.Open // the last one that was asked for
	open   *call       // and is not answered
	epoch  uint64
	stale  error // why nothing can be asked
	calls  []*call
	sent   []*call // what the next messages opened of this connection answer; nil is a connection that was resumed
	out    *outbox // nil while there is no connection
	closed bool
}

// call is a request that is not answered.
type call struct {
	req    uint64
	msg    proto.Message
	done   func(proto.Done, error)
	opened func(proto.Opened, error)
	timer  *time.Timer
}

func (c *call) fail(err error) {
	c.timer.Stop()
	if c.opened != nil {
		c.opened(proto.Opened{}, err)
		return
	}
	c.done(proto.Done{}, err)
}

// Dial returns a Client of a rail that is served where dial leads. It connects with the first Open, and ends with ctx or
// Close.
func Dial(ctx context.Context, dial func(context.Context) (net.Conn, error), opt ClientOptions) *Client {
	opt.Deadline, opt.Pause = cmp.Or(opt.Deadline, DefaultDeadline), cmp.Or(opt.Pause, DefaultPause)
	c := &Client{opt: opt, dial: dial, alarms: make(chan proto.Alarm, 1), wake: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.ended.Go(c.run)
	return c
}

// Open takes the job over. A refusal, as of a job that is not the rail's, is a *proto.Refusal.
func (c *Client) Open(m proto.Open, done func(proto.Opened, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		go done(proto.Opened{}, c.gone())
		return
	}
	if c.open != nil {
		go done(proto.Opened{}, &proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("rail %s is being opened already", c.opt.Rail)})
		return
	}
	k := &call{msg: &m, opened: done}
	c.open, c.opened, c.stale = k, &m, nil
	k.timer = time.AfterFunc(c.opt.Deadline, func() { c.expire(k) })
	if c.out != nil {
		c.sent = append(c.sent, k)
		c.out.put(&m)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Apply asks for circuits; see proto.Apply. The number of the request must not be zero.
func (c *Client) Apply(a proto.Apply, done func(proto.Done, error)) { c.ask(a.Req, &a, done) }

// GiantRing asks for the giant ring.
func (c *Client) GiantRing(g proto.GiantRing, done func(proto.Done, error)) { c.ask(g.Req, &g, done) }

// Mark marks the rail dead, or has it looked at again.
func (c *Client) Mark(m proto.Mark, done func(proto.Done, error)) { c.ask(m.Req, &m, done) }

func (c *Client) ask(req uint64, m proto.Message, done func(proto.Done, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	switch {
	case c.closed:
		err = c.gone()
	case c.stale != nil:
		err = c.stale
	case req == 0:
		err = &proto.Refusal{Code: proto.Bad, Detail: "a request over a connection needs a number other than 0"}
	case c.opened == nil:
		err = &proto.Refusal{Code: proto.Stale, Detail: fmt.Sprintf("rail %s was not opened", c.opt.Rail)}
	}
	if err != nil {
		go done(proto.Done{}, err)
		return
	}
	k := &call{req: req, msg: m, done: done}
	k.timer = time.AfterFunc(c.opt.Deadline, func() { c.expire(k) })
	c.calls = append(c.calls, k)
	if c.out != nil {
		c.out.put(m)
	}
}

// expire gives up on k.
func (c *Client) expire(k *call) {
	c.mu.Lock()
	if c.open == k {
		c.open = nil
		c.opened, c.stale = nil, nil
	} else if i := slices.Index(c.calls, k); i >= 0 {
		c.calls = slices.Delete(c.calls, i, i+1)
	} else {
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	k.fail(fmt.Errorf("rail %s gave no answer within %v: %w", c.opt.Rail, c.opt.Deadline, context.DeadlineExceeded))
}

// Alarms returns the channel of alarms; see controller.Rail.
func (c *Client) Alarms() <-chan proto.Alarm { return c.alarms }

// Close ends the connection. What is not answered fails with an error that matches net.ErrClosed; what becomes of it is
// not known.
func (c *Client) Close() error {
	c.cancel()
	c.ended.Wait()
	return nil
}

func (c *Client) gone() error { return fmt.Errorf("rail %s: %w", c.opt.Rail, net.ErrClosed) }

// run keeps a connection, from the first Open on.
func (c *Client) run() {
	defer func() {
		c.mu.Lock()
		c.closed = true
		all := c.calls
		if c.open != nil {
			all = append(all, c.open)
		}
		c.calls, c.open = nil, nil
		c.mu.Unlock()
		for _, k := range all {
			k.fail(c.gone())
		}
		close(c.alarms)
	}()
	pause := c.opt.Pause
	for c.ctx.Err() == nil {
		c.mu.Lock()
		idle := c.opened == nil || c.stale != nil
		c.mu.Unlock()
		if idle {
			select {
			case <-c.wake:
			case <-c.ctx.Done():
			}
			continue
		}
		begun := time.Now()
		if conn, err := c.dial(c.ctx); err == nil {
			c.talk(conn)
			if time.Since(begun) > maxPause {
				pause = c.opt.Pause
			}
		}
		if c.ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		idle = c.opened == nil || c.stale != nil
		c.mu.Unlock()
		if !idle {
			emulator.SleepUntil(c.ctx, time.Now().Add(pause))
			pause = min(2*pause, maxPause)
		}
	}
}

// talk has one connection, until it ends.
func (c *Client) talk(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true)
	}
	stop := context.AfterFunc(c.ctx, func() { conn.Close() })
	defer stop()
	out := newOutbox(conn)
	var writer sync.WaitGroup
	writer.Go(out.run)
	defer writer.Wait()
	defer out.end()
	defer conn.Close()

	c.mu.Lock()
	if c.opened == nil {
		c.mu.Unlock()
		return
	}
	first := *c.opened
	if c.open == nil {
		first.Resume = c.epoch
	}
	c.sent = []*call{c.open}
	out.put(&first)
	for _, k := range c.calls {
		out.put(k.msg)
	}
	c.out = out
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.out = nil
		c.mu.Unlock()
	}()
	for r := bufio.NewReader(conn); ; {
		m, err := proto.Read(r)
		if err != nil || !c.take(m) {
			return
		}
	}
}

// take answers who asked; false ends the connection.
func (c *Client) take(m proto.Message) bool {
	switch m := m.(type) {
	case *proto.Opened:
		c.mu.Lock()
		var k *call
		if len(c.sent) > 0 {
			k, c.sent = c.sent[0], c.sent[1:]
		}
		c.epoch = m.Epoch
		if k != c.open {
			k = nil // its time is over
		}
		if k != nil {
			c.open = nil
		}
		c.mu.Unlock()
		if k != nil {
			k.timer.Stop()
			k.opened(*m, nil)
		}
	case *proto.Done:
		if k := c.answered(m.Req); k != nil {
			k.done(*m, nil)
		}
	case *proto.Failed:
		if k := c.answered(m.Req); k != nil {
			k.done(proto.Done{}, &proto.Refusal{Code: m.Code, Attempts: m.Attempts, Detail: m.Detail})
		}
	case *proto.Alarm:
		select {
		case <-c.alarms:
		default:
		}
		c.alarms <- *m // only this goroutine sends
	case *proto.Bye:
		c.refused(m)
		return false
	default:
		return false
	}
	return true
}

// answered takes the oldest call of that number.
func (c *Client) answered(req uint64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.calls, func(k *call) bool { return k.req == req })
	if i < 0 {
		return nil
	}
	k := c.calls[i]
	c.calls = slices.Delete(c.calls, i, i+1)
	k.timer.Stop()
	return k
}

// refused ends what a bye ends: all, if it says why in a code; without one the rail is only being restarted.
func (c *Client) refused(m *proto.Bye) {
	if m.Code == "" {
		return
	}
	err := &proto.Refusal{Code: m.Code, Detail: cmp.Or(m.Reason, "the rail hung up")}
	c.mu.Lock()
	all := c.calls
	if c.open != nil {
		all = append(all, c.open)
	}
	c.calls, c.open, c.opened, c.stale = nil, nil, nil, err
	c.mu.Unlock()
	for _, k := range all {
		k.fail(err)
	}
}
