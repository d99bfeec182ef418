package linkmon

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// carrier is what is known about the carrier of a link.
type carrier uint8

const (
	unknown carrier = iota // nobody has said: the interface is administratively down
	down
	up
)

func carrierOf(isUp bool) carrier {
	if isUp {
		return up
	}
	return down
}

func (c carrier) other() carrier { return up + down - c }

const (
	// mostShared is how many transitions of one sweep are reported one by one. More
	// than that is no link but a counter that jumped.
	mostShared = 1 << 16
	// mostRecent is how many transitions of a link are kept to be joined with their
	// announcements, and mostPending how many announcements for transitions.
	mostRecent  = 1024
	mostPending = 1024
)

// link is one interface that is watched.
type link struct {
	host    *host
	index   int
	counter Counter

	// Of the poller alone.
	last  uint32    // carrier_changes as last read
	from  time.Time // when that read began
	deaf  bool      // reads fail, and that was told
	ended bool      // found to be gone

	// What follows is guarded by Monitor.mu.

	acct     LinkAccount // Counted is as of the last audit
	audited  int         // Reported+Merged as of the last audit
	sum0     uint32      // carrier_changes when the link was taken up
	since    int64       // when that was at the earliest
	state    carrier
	oper     string
	number   int    // of the last transition
	sum      uint32 // carrier_changes at that
	ups      uint32 // and how many of them went up, and down
	downs    uint32
	halves   bool // ups and downs are known
	recent   ring
	pending  []notice // of transitions that no sweep has found yet
	told     int      // number of the last transition announced
	heard    int64    // NoCounters: no transition before this is unheard of
	farewell *notice  // of RTM_DELLINK
}

// notice is what a message from the kernel says about a link.
type notice struct {
	index   int
	carrier bool
	changes uint32
	counted bool
	seen    timeline.Interval
	source  string
}

// past is a transition that has been reported.
type past struct {
	number, shared int
	up             bool
	at             timeline.Interval
}

// ring keeps the last mostRecent transitions.
type ring struct {
	buf  []past
	next int // place of the oldest once buf is full
}

func (r *ring) add(p past) {
	if len(r.buf) < mostRecent {
		r.buf = append(r.buf, p)
		return
	}
	r.buf[r.next] = p
	r.next = (r.next + 1) % mostRecent
}

// find returns the transition of that number. Merged transitions have none.
func (r *ring) find(number int) (past, bool) {
	for i := range r.buf { // from the youngest: that is nearly always it
		p := r.buf[(r.next-1-i+2*len(r.buf))%len(r.buf)]
		if p.number == number {
			return p, true
		}
		if p.number < number {
			break
		}
	}
	return past{}, false
}

// eventLocked begins an event of the link.
func (l *link) eventLocked(kind EventKind, at timeline.Interval, source string) Event {
	return Event{Kind: kind, Host: l.host.Name, Interface: l.acct.Interface, Index: l.index, Interval: at, Source: source}
}

// movedLocked reports the k transitions that lie in at, of which the first went to
// the given state.
func (l *link) movedLocked(k uint32, first carrier, at timeline.Interval, source string) {
	m := l.host.m
	shown := min(k, mostShared)
	if merged := k - shown; merged > 0 {
		l.acct.Merged += int(merged)
		e := l.eventLocked(Gap, at, source)
		e.Text = fmt.Sprintf("%d transitions at once: only the last %d are reported one by one", k, shown)
		m.pushLocked(e)
	}
	for i := k - shown; i < k; i++ {
		dir := first
		if i%2 == 1 {
			dir = first.other()
		}
		l.state = dir
		e := l.eventLocked(Transition, at, source)
		e.Up, e.Number, e.Shared = dir == up, l.number+int(i)+1, int(k)
		m.pushLocked(e)
		l.acct.Reported++
		l.recent.add(past{e.Number, e.Shared, e.Up, at})
	}
	l.sum += k
	l.number += int(k)
	if first == up {
		l.ups, l.downs = l.ups+(k+1)/2, l.downs+k/2
	} else {
		l.ups, l.downs = l.ups+k/2, l.downs+(k+1)/2
	}
	l.joinLocked()
}

// joinLocked announces what was heard before a sweep found it.
func (l *link) joinLocked() {
	kept := l.pending[:0]
	for _, n := range l.pending {
		if !l.announceLocked(n) {
			kept = append(kept, n)
		}
	}
	l.pending = kept
}

// noticeLocked takes a message about the link.
func (l *link) noticeLocked(n notice) {
	if l.host.m.opt.NoCounters {
		l.listenLocked(n)
		return
	}
	if !n.counted || l.announceLocked(n) {
		return
	}
	if len(l.pending) == mostPending {
		l.pending = append(l.pending[:0], l.pending[1:]...)
	}
	l.pending = append(l.pending, n)
}

// announceLocked reports the announcement of the transition whose count the message
// carries, unless that was announced before. It returns false when no sweep has found
// that transition yet.
func (l *link) announceLocked(n notice) bool {
	// The difference has a sign: a message may be older than what it is compared with.
	number := l.number + int(int32(n.changes-l.sum))
	if number > l.number {
		return false
	}
	if number <= l.told {
		return true
	}
	p, ok := l.recent.find(number)
	if !ok {
		p = past{number: number, shared: 1, up: n.carrier, at: timeline.Between(min(l.since, n.seen.Latest), n.seen.Latest)}
	}
	l.told = number
	l.acct.Announced++
	e := l.eventLocked(Announcement, p.at, n.source)
	e.Latest = max(min(p.at.Latest, n.seen.Latest), p.at.Earliest)
	e.Seen = timeline.Interval{Earliest: min(max(n.seen.Earliest, p.at.Earliest), n.seen.Latest), Latest: n.seen.Latest}
	e.Up, e.Number, e.Shared = p.up, number, p.shared
	l.host.m.pushLocked(e)
	return true
}

// fillTime is more than the kernel takes from looking at a link to handing the
// message to a socket.
const fillTime = int64(time.Millisecond)

// listenLocked does what an ordinary listener does: it compares the state in the
// message with that in the one before.
func (l *link) listenLocked(n notice) {
	now := carrierOf(n.carrier)
	at := timeline.Between(min(l.heard, n.seen.Latest), n.seen.Latest)
	l.heard = n.seen.Earliest - fillTime
	if l.state == unknown || l.state == now {
		l.state = now
		return
	}
	l.movedLocked(1, now, at, n.source)
}

// firstOf returns where the first of k transitions went, given the state before and
// how the counters moved since. Transitions alternate, so the counter that moved
// further tells; when both moved alike the state does.
func firstOf(before carrier, ups, downs uint32) carrier {
	switch d := int32(ups - downs); {
	case d > 0:
		return up
	case d < 0:
		return down
	case before == unknown:
		return up // a link that nobody brought up yet is dark
	}
	return before.other()
}

// reading is what the counters of a link say at one moment.
type reading struct {
	changes, up, down uint32
	halves            bool // up and down are known, and belong to changes
	state             carrier
}

// read takes a consistent reading, if the link holds still for as long as that.
func read(c Counter, withState bool) (r reading, err error) {
	for range 8 {
		var err2 error
		r.up, r.down, err2 = c.UpDown()
		r.state = unknown
		if withState {
			if isUp, err := c.Carrier(); err == nil {
				r.state = carrierOf(isUp)
			}
		}
		if r.changes, err = c.Changes(); err != nil {
			return r, err
		}
		if r.halves = err2 == nil && r.up+r.down == r.changes; r.halves {
			break
		}
		if err2 != nil && !withState { // Linux before 4.16: nothing to compare with
			break
		}
	}
	if r.halves && r.state == unknown {
		switch r.up - r.down { // it began in one state, and alternates
		case 1:
			r.state = up
		case 1<<32 - 1:
			r.state = down
		}
	}
	return r, nil
}
