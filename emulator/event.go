package emulator

import (
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// EventKind is what an [Event] is about.
type EventKind uint8

const (
	PortEvent  EventKind = iota // a port was enabled or disabled
	PowerEvent                  // a power alarm came or went
)

// Event is something a device reports on its own.
type Event struct {
	Kind      EventKind
	Severity  string // "critical", "major", "minor", or "" for a plain event
	Port      ocs.Port
	Condition string
	Text      string
}

// Subscription receives the events of a device.
type Subscription struct {
	// C delivers the events until Close. When nobody reads it, those that do
	// not fit are dropped: a device does not wait for its clients.
	C <-chan Event
	c chan Event
	d *Device
}

// Subscribe returns the events from now on. The caller must Close it.
func (d *Device) Subscribe() *Subscription {
	c := make(chan Event, 64)
	s := &Subscription{C: c, c: c, d: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subs = append(d.subs, s)
	return s
}

// Close ends the subscription and closes C. It may be called more than once.
func (s *Subscription) Close() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if i := slices.Index(s.d.subs, s); i >= 0 {
		s.d.subs = slices.Delete(s.d.subs, i, i+1)
		close(s.c)
	}
}

func (d *Device) publishLocked(e Event) {
	for _, s := range d.subs {
		select {
		case s.c <- e:
		default:
		}
	}
}
