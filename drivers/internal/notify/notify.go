// Package notify hands what a device reports on its own to those who listen.
package notify

import (
	"context"
	"slices"
	"sync"

	"github.com/ocslab/ocslab/ocs"
)

// Hub is where a driver publishes events. The zero value is ready, and it is
// safe for concurrent use.
type Hub struct {
	mu   sync.Mutex // guards what follows
	subs []*Listener
}

// queued is how many events may wait for a listener.
const queued = 256

// Listener is one call of Notify.
type Listener struct {
	queue chan ocs.Event
	lost  int // dropped since the last one queued; guarded by the hub
}

// Wanted reports whether anybody listens.
func (h *Hub) Wanted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs) > 0
}

// Add returns a listener that gets the events from now on.
func (h *Hub) Add() *Listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &Listener{queue: make(chan ocs.Event, queued)}
	h.subs = append(h.subs, l)
	return l
}

// Remove ends what Add began.
func (h *Hub) Remove(l *Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs = slices.DeleteFunc(h.subs, func(o *Listener) bool { return o == l })
}

// Publish hands e to every listener. One that is busy gets it later, and when
// too many wait, not at all: the next event it gets says how many were lost.
func (h *Hub) Publish(e ocs.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.subs {
		e.Lost = l.lost
		select {
		case l.queue <- e:
			l.lost = 0
		default:
			l.lost++
		}
	}
}

// Run calls f for each event, one at a time and in order, until ctx ends or
// ended is closed, and returns context.Cause(ctx) or why(). Events that came
// before the end are handed on first.
func (l *Listener) Run(ctx context.Context, ended <-chan struct{}, why func() error, f func(ocs.Event)) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-l.queue:
			f(e)
			continue
		case <-ended:
		}
		select {
		case e := <-l.queue:
			f(e)
		default:
			return why()
		}
	}
}
