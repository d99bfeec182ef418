package ocstrx

import (
	"sync"
	"time"
)

// Clock is the time that modules live in. Now is safe for concurrent use and never goes
// backwards.
type Clock interface {
	// Now returns the time since some moment in the past, at or before the making of the
	// modules that use the clock.
	Now() time.Duration
}

// RealClock returns the clock of the machine, 0 at this moment.
func RealClock() Clock { return realClock{time.Now()} }

type realClock struct{ start time.Time }

func (c realClock) Now() time.Duration { return time.Since(c.start) }

// VirtualClock is a clock that stands still until it is advanced. The zero value is at 0 and
// ready. It is safe for concurrent use.
type VirtualClock struct {
	mu  sync.Mutex // guards now
	now time.Duration
}

// Now implements [Clock].
func (c *VirtualClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on; a negative d does nothing.
func (c *VirtualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += max(d, 0)
}
