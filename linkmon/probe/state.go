package probe

import (
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// FlowState is how a flow stands.
type FlowState struct {
	Flow Flow

	Sent       uint64 // handed to the kernel, refused ones not among them
	Received   uint64 // arrived, each counted once
	Lost       uint64 // did not arrive within Silence, or were refused
	Late       uint64 // arrived after all, but after Silence, or so late that a duplicate looks the same
	Duplicated uint64 // arrived again
	Reordered  uint64 // arrived after one that was sent later
	Unknown    uint64 // may have been dropped by the receiver's own socket
	Outages    uint64 // events of kind Lost so far, whether read or not
	Skipped    uint64 // not sent, since the sender was late or the receiver far behind

	// Refused counts the send calls that failed, by the words of the error.
	Refused map[string]uint64

	// Alive says whether the last packet that there is a verdict on arrived. JudgedNS
	// is when that was sent, on timeline.HostAxis: all that happened to packets sent
	// until then has been told.
	Alive    bool
	JudgedNS int64

	LastSend    timeline.Interval // the last send call; zero before the first
	LastReceive timeline.Interval // the last receive stamp; zero before the first

	// Time from one send call to the next: bounds of the quantiles, at most an eighth above
	// them, and the maximum.
	SendGapP50, SendGapP99, SendGapMax time.Duration

	Err error // why the flow has no traffic at all; nil when it could be set up
}

func (t *track) state() FlowState {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts
	s := FlowState{
		Flow: t.flow, Sent: t.done.Load() - 1,
		Received: c.received, Lost: c.missing, Late: c.late, Duplicated: c.duplicated,
		Reordered: c.reordered, Unknown: c.unknown, Outages: c.outages, Skipped: t.skipped.Load(),
		Alive: t.alive, JudgedNS: t.judgedAt, LastReceive: t.seen,
		SendGapP50: t.gaps.quantile(0.5), SendGapP99: t.gaps.quantile(0.99), SendGapMax: time.Duration(t.gaps.max.Load()),
		Err: t.failed,
	}
	if s.Sent > 0 { // not written again before there is a verdict on it, which needs t.mu
		last := &t.sent[s.Sent&t.mask]
		s.LastSend = timeline.Between(last.before, last.after)
	}
	for _, r := range t.refusals {
		if s.Refused == nil {
			s.Refused = map[string]uint64{}
		}
		s.Refused[r.text] = r.count
		s.Sent -= min(s.Sent, r.count) // one may have been counted that is not done
	}
	return s
}
