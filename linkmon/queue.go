package linkmon

import (
	"context"
	"io"
)

// queue holds events until they are read. It grows as needed. Guarded by Monitor.mu.
type queue struct {
	events []Event
	head   int
	closed bool
	more   chan struct{} // holds one: there may be something to read
}

func (q *queue) push(e Event) {
	if q.head > 0 && len(q.events) == cap(q.events) && q.head >= len(q.events)/2 {
		n := copy(q.events, q.events[q.head:])
		clear(q.events[n:])
		q.events, q.head = q.events[:n], 0
	}
	q.events = append(q.events, e)
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *queue) pop() (Event, bool) {
	if q.head == len(q.events) {
		return Event{}, false
	}
	e := q.events[q.head]
	q.events[q.head] = Event{}
	if q.head++; q.head == len(q.events) {
		q.head = 0
		if q.events = q.events[:0]; cap(q.events) > 1<<14 {
			q.events = nil // a burst is over
		}
	}
	return e, true
}

// pushLocked queues an event.
func (m *Monitor) pushLocked(e Event) {
	if e.Kind == Gap {
		m.gaps++
	}
	m.queue.push(e)
}

// Next returns the next event, in order of becoming known, and waits for it if need be.
// After Close it returns what is left and then io.EOF. No event is ever
// dropped: those that nobody reads are kept. An error other than io.EOF is that of the
// context.
func (m *Monitor) Next(ctx context.Context) (Event, error) {
	for {
		m.mu.Lock()
		e, ok := m.queue.pop()
		closed := m.queue.closed
		if closed || m.queue.head < len(m.queue.events) {
			m.queue.wake() // for whoever else waits
		}
		m.mu.Unlock()
		switch {
		case ok:
			return e, nil
		case closed:
			return Event{}, io.EOF
		}
		select {
		case <-m.queue.more:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}
