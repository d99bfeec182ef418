package emulator

import (
	"slices"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// EventKind is what an [Event] is about.
type EventKind uint8

const (
	PortEvent     EventKind = iota // a port was enabled or disabled
	PowerEvent                     // a power alarm came or went
	CircuitEvent                   // cross-connects were made or removed
	ActivityEvent                  // somebody did something else, see [Device.Edit] and [Device.Report]
)

// Event is something a device reports on its own.
type Event struct {
	Kind      EventKind
	Severity  string // "critical", "major", "minor", or "" for a plain event
	Port      ocs.Port
	Condition string // "PORT", "LOS", "DEGRADED", "OXC", "SYSTEM", "USER", "OPM"
	Text      string
	Change    ocs.Change // of a CircuitEvent
	// By is who caused it; the zero value is nobody who is connected.
	By   SessionInfo
	Time time.Time // by the device's clock, see [Device.Now]
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

// Observe calls f for each event from now on, for as long as the device lasts;
// unlike a Subscription it misses none. f must return at once and not call
// methods of the device.
func (d *Device) Observe(f func(Event)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.observers = append(d.observers, f)
}

// Report tells the subscribers what a client did that the device does not see: a
// login, a restart that is to come. The category is "SYSTEM", "USER", "OXC" or
// "OPM".
func (d *Device) Report(by *Session, category, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.publishLocked(Event{Kind: ActivityEvent, Condition: category, Text: text, By: by.infoLocked()})
}

// infoLocked returns who s is; nil is nobody.
func (s *Session) infoLocked() SessionInfo {
	if s == nil {
		return SessionInfo{}
	}
	return s.info
}

// heardLocked reports whether anybody wants to know of events.
func (d *Device) heardLocked() bool { return len(d.subs)+len(d.observers) > 0 }

func (d *Device) publishLocked(e Event) {
	e.Time = d.clockLocked()
	for _, f := range d.observers {
		f(e)
	}
	for _, s := range d.subs {
		select {
		case s.c <- e:
		default:
		}
	}
}
