package linkmon

import (
	"fmt"

	"github.com/ocslab/ocslab/timeline"
)

// EventKind says what an [Event] tells.
type EventKind uint8

const (
	Transition   EventKind = iota + 1 // carrier came or went
	Announcement                      // the kernel told about a transition
	Gap                               // something could not be observed for a while
	Added                             // an interface is watched from now on
	Removed                           // an interface is gone
	Renamed                           // an interface has another name
	OperState                         // the operational state changed (RFC 2863)
)

// String returns the kind as one word, such as "transition".
func (k EventKind) String() string {
	switch k {
	case Transition:
		return "transition"
	case Announcement:
		return "announcement"
	case Gap:
		return "gap"
	case Added:
		return "added"
	case Removed:
		return "removed"
	case Renamed:
		return "renamed"
	case OperState:
		return "operstate"
	}
	return fmt.Sprintf("EventKind(%d)", k)
}

// The sources of events.
const (
	fromCounters = "counters"
	fromNetlink  = "netlink"
	fromBPF      = "netlink+bpf"
)

// Event is one thing that happened to an interface, or to the observation.
type Event struct {
	Kind      EventKind
	Host      string
	Interface string // "" for a Gap that concerns the whole host
	Index     int    // of the interface; 0 for such a gap
	Up        bool   // of Transition and Announcement: carrier came

	// When it happened, on timeline.HostAxis. That of an Announcement is when the
	// transition happened, which is no later than its announcement.
	timeline.Interval

	// Number of the transition on this interface since it was taken up, from 1. An
	// Announcement has that of its transition. With NoCounters they are counted as heard.
	Number int

	// Shared is how many transitions share this interval because one sweep found
	// them together; their order is known, but not how they lie in it. 1 is usual.
	Shared int

	// Seen is when the kernel announced it, of an Announcement: the point at
	// which the message went into our socket with BPF, else from the earliest time
	// known until it was read.
	Seen timeline.Interval

	Source string // "counters", "netlink" or "netlink+bpf"

	// Late says of a Gap that the sweep which ended it was late, because the machine was busy.
	Late bool

	// Text is for people: of a Gap why, of Renamed the old name, of OperState the
	// new state.
	Text string
}

// Mark returns the event as a mark of a timeline, carrier-up or carrier-down of the
// subject "host/interface", and false if it is neither Transition nor Announcement.
// Those of a transition and of its announcement overlap, so timeline.Merge makes one
// mark of them. The reconfiguration is for the caller to fill in.
func (e Event) Mark() (timeline.Mark, bool) {
	m := timeline.Mark{
		Stage:    timeline.CarrierDown,
		Subject:  e.Host + "/" + e.Interface,
		Host:     e.Host,
		Interval: e.Interval,
		Source:   fromNetlink,
	}
	switch e.Kind {
	case Transition:
		if e.Source == fromCounters {
			m.Source = fromCounters
		}
	case Announcement:
	default:
		return timeline.Mark{}, false
	}
	if e.Up {
		m.Stage = timeline.CarrierUp
	}
	if e.Shared > 1 {
		m.Detail = fmt.Sprintf("one of %d transitions in this interval", e.Shared)
	}
	return m, true
}

// String describes the event in one line for people.
func (e Event) String() string {
	where := e.Host
	if e.Interface != "" {
		where += "/" + e.Interface
	}
	s := fmt.Sprintf("%s %s", where, e.Kind)
	switch e.Kind {
	case Transition, Announcement:
		dir := "down"
		if e.Up {
			dir = "up"
		}
		s += fmt.Sprintf(" %d: %s", e.Number, dir)
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s + " at " + e.Interval.String()
}
