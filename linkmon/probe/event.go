package probe

import (
	"fmt"

	"github.com/ocslab/ocslab/timeline"
)

// Kind says what an [Event] tells.
type Kind uint8

const (
	// Lost is the beginning of an outage of a flow that had traffic before.
	Lost Kind = iota + 1
	// Resumed is the end of an outage, or the first packet of a flow that had
	// none to begin with.
	Resumed
	// Gap is something that the probe itself could not do. What happened to the
	// traffic meanwhile is known less well, or not at all.
	Gap
)

// String is the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Lost:
		return "lost"
	case Resumed:
		return "resumed"
	case Gap:
		return "gap"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Flow is traffic in one direction, between [Endpoint]s by name.
type Flow struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// String is what marks have as their subject: "gpu1/ens1f0>gpu2/ens1f0".
func (f Flow) String() string { return f.From + ">" + f.To }

// Packet is one packet of a flow. The zero Packet stands for none.
type Packet struct {
	Seq      uint64            // from 1
	Sent     timeline.Interval // the send call
	Received timeline.Interval // the kernel's receive stamp
}

// Event is something that became known about a flow.
type Event struct {
	Kind Kind
	Flow Flow   // zero for a Gap that is not of one flow
	Host string // Options.Host

	// When it happened, on timeline.HostAxis; see the package comment. Of a Gap, from
	// when to when.
	timeline.Interval

	LastBefore Packet // the last that arrived before the outage; none if there never was traffic
	FirstAfter Packet // of Resumed

	// Lost counts, of Resumed, the packets of the outage that did not arrive; of a
	// Gap, those that the probe itself dropped or did not send.
	Lost int

	// Late says of a Gap that the machine was too busy: something was done, or arrived, later
	// than the probe assumes when it judges packets.
	Late bool

	Text string // one sentence for people
}

// Mark returns the event as a mark with the source "probe". A Gap is none.
func (e Event) Mark() (timeline.Mark, bool) {
	m := timeline.Mark{Subject: e.Flow.String(), Host: e.Host, Interval: e.Interval, Source: "probe", Detail: e.Text}
	switch e.Kind {
	case Lost:
		m.Stage = timeline.TrafficLost
	case Resumed:
		m.Stage = timeline.Traffic
	default:
		return timeline.Mark{}, false
	}
	return m, true
}

// String describes the event in one line for people.
func (e Event) String() string {
	if e.Flow == (Flow{}) {
		return fmt.Sprintf("%v %v: %s", e.Kind, e.Interval, e.Text)
	}
	return fmt.Sprintf("%v %v %v: %s", e.Kind, e.Flow, e.Interval, e.Text)
}
