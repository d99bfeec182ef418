package plane

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// Clock wakes goroutines at instants on the axis of the host. The timers of package time end up to a millisecond
// late, since the poller of the runtime sleeps whole milliseconds; a Clock of [NewClock] stands on a
// timer of the kernel that wakes the poller when it is time. The nil *Clock stands on package time, whose time may be that of a
// test. It is safe for concurrent use. Nothing spins.
type Clock struct {
	mu      sync.Mutex // guards what follows
	waiters waiters
	closed  bool
	nap     nap
	ended   chan struct{}
}

// nap is a timer that one goroutine waits for.
type nap interface {
	set(ns int64) // from any goroutine, also while another waits: never stops it
	wait()        // until it has expired since it was last waited for, or for no reason
	close()
}

const never = int64(1<<63 - 1)

// NewClock starts a clock. Close it. Where there is no precise timer it stands on package time.
func NewClock() *Clock {
	n, err := newNap()
	if err != nil {
		return nil
	}
	c := &Clock{nap: n, ended: make(chan struct{})}
	go c.run()
	return c
}

// Sleep waits until an instant on the axis of the host, or for the end of ctx, whose cause it then returns.
func (c *Clock) Sleep(ctx context.Context, ns int64) error {
	w := c.alarm(ns)
	defer w.stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.done:
		return nil
	}
}

// Close ends the clock; who sleeps wakes up. The nil Clock can be closed, too.
func (c *Clock) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.nap.set(0)
	c.mu.Unlock()
	<-c.ended
}

// alarm returns a channel that is closed at an instant; stop frees what it holds.
func (c *Clock) alarm(ns int64) *waiter {
	w := &waiter{at: ns, done: make(chan struct{}), clock: c}
	left := ns - nowNS()
	if left <= 0 {
		close(w.done)
		return w
	}
	if c == nil {
		w.timer = time.AfterFunc(time.Duration(left), func() { close(w.done) })
		return w
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		close(w.done)
		return w
	}
	heap.Push(&c.waiters, w)
	if c.waiters[0] == w {
		c.nap.set(ns)
	}
	return w
}

func (c *Clock) run() {
	defer close(c.ended)
	defer c.nap.close()
	for {
		c.mu.Lock()
		for now := nowNS(); len(c.waiters) > 0 && (c.closed || c.waiters[0].at <= now); {
			close(heap.Pop(&c.waiters).(*waiter).done)
		}
		closed := c.closed
		if len(c.waiters) > 0 {
			c.nap.set(c.waiters[0].at)
		} else {
			c.nap.set(never)
		}
		c.mu.Unlock()
		if closed {
			return
		}
		c.nap.wait()
	}
}

// waiter is somebody who waits for an instant.
type waiter struct {
	at    int64
	done  chan struct{}
	clock *Clock
	timer *time.Timer // of the nil Clock
	index int         // in the heap of the clock; -1: no longer in it
}

func (w *waiter) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.clock == nil {
		return
	}
	select {
	case <-w.done:
		return
	default:
	}
	w.clock.mu.Lock()
	defer w.clock.mu.Unlock()
	if w.index >= 0 && w.index < len(w.clock.waiters) && w.clock.waiters[w.index] == w {
		heap.Remove(&w.clock.waiters, w.index)
	}
}

// waiters is a heap, the earliest first.
type waiters []*waiter

func (ws waiters) Len() int           { return len(ws) }
func (ws waiters) Less(i, j int) bool { return ws[i].at < ws[j].at }
func (ws waiters) Swap(i, j int) {
	ws[i], ws[j] = ws[j], ws[i]
	ws[i].index, ws[j].index = i, j
}

func (ws *waiters) Push(x any) {
	w := x.(*waiter)
	w.index = len(*ws)
	*ws = append(*ws, w)
}

func (ws *waiters) Pop() any {
	old := *ws
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*ws = old[:len(old)-1]
	w.index = -1
	return w
}

// nowNS is the present on the axis of the host.
func nowNS() int64 { return timeline.HostAxis().NS(time.Now()) }
