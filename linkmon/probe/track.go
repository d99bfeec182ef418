package probe

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// track is one flow: the sender's log, what arrived, and the verdicts.
//
// Packets between judged and next are in flight. The sender writes sent[seq] and
// then moves next and done; the receiver reads it and then moves judged. The
// sender never has more than half a ring in flight, so a slot is not written while
// it is read, and the other half of got tells duplicates from latecomers.
type track struct {
	flow    Flow
	silence int64 // ns
	mask    uint64

	sent   []sentPacket
	next   atomic.Uint64 // first that has not been begun
	done   atomic.Uint64 // first whose send call has not ended
	judged atomic.Uint64 // first without a verdict

	skipped  atomic.Uint64
	gaps     gaps
	lastSend int64 // of the sender

	mu       sync.Mutex // guards what follows
	got      []gotPacket
	spoiled  uint64 // those before it may have been dropped by our own socket
	highest  uint64 // of those that arrived
	run      outage
	last     Packet // last in sequence that was judged to have arrived
	alive    bool
	judgedAt int64 // when the last one with a verdict was sent
	transit  longest
	refusals []refusal
	failed   error // why there is no traffic at all
	counts   struct{ received, missing, late, duplicated, reordered, unknown, outages uint64 }
	seen     timeline.Interval // the last arrival
	lateTold bool              // since the last outage ended
}

type sentPacket struct {
	before, after int64 // ns
	refused       int   // index in refusals plus 1; 0: the kernel took it
}

type gotPacket struct {
	seq uint64
	at  timeline.Interval
}

// outage is a run of missing packets.
type outage struct {
	missing int
	last    timeline.Interval // send call of the last that is missing
}

type refusal struct {
	text  string
	count uint64
}

// recent is how many arrivals count for how long a packet takes: enough for the rare
// ones that wait for a busy receiver or forwarder.
const recent = 512

// longest knows a maximum of the last recent to twice as many values.
type longest struct {
	n         int
	now, then int64
}

func (l *longest) add(v int64) {
	if l.n++; l.n > recent {
		l.n, l.then, l.now = 1, l.now, 0
	}
	l.now = max(l.now, v)
}

func (l *longest) max() int64 { return max(l.now, l.then) }

// starved is how long the receiver may get no CPU before the sender must pause for want
// of room in the log.
const starved = time.Second

// ringSize is the number of packets that the log of a flow holds, a power of two.
func ringSize(silence, pace time.Duration) uint64 {
	return 2 << bits.Len64(uint64((silence+starved)/pace))
}

func newTrack(flow Flow, silence, pace time.Duration) *track {
	n := ringSize(silence, pace)
	t := &track{flow: flow, silence: int64(silence), mask: n - 1, sent: make([]sentPacket, n), got: make([]gotPacket, n)}
	t.next.Store(1)
	t.done.Store(1)
	t.judged.Store(1)
	return t
}

// begin notes that a packet is about to be sent. It reports false when the receiver
// is too far behind.
func (t *track) begin(now int64) (seq uint64, ok bool) {
	seq = t.next.Load()
	if seq-t.judged.Load() > t.mask/2 {
		t.skipped.Add(1)
		return 0, false
	}
	t.sent[seq&t.mask].before = now
	t.next.Store(seq + 1)
	if t.lastSend != 0 {
		t.gaps.add(now - t.lastSend)
	}
	t.lastSend = now
	return seq, true
}

// end notes that the send call of the packet ended. It returns the text of a
// refusal that is the first of its kind.
func (t *track) end(seq uint64, now int64, err error) (news string) {
	refused := 0
	if err != nil {
		refused, news = t.refuse(err.Error())
	}
	s := &t.sent[seq&t.mask]
	s.after, s.refused = now, refused
	t.done.Store(seq + 1)
	return news
}

// maxRefusals bounds how many kinds of error are told apart.
const maxRefusals = 16

func (t *track) refuse(text string) (kind int, news string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.refusals {
		if r := &t.refusals[i]; r.text == text || i == maxRefusals-1 {
			r.count++
			return i + 1, ""
		}
	}
	if len(t.refusals) == maxRefusals-1 {
		text = "others, such as " + text
	}
	t.refusals = append(t.refusals, refusal{text, 1})
	return len(t.refusals), text
}

// arrival is a packet that was read from a socket.
type arrival struct {
	header
	stamp timeline.Interval // when it arrived, as far as the receiver knows
	read  int64             // when it was read
}

// arrive takes a packet in. It reports false when it is not one of ours; tell gets
// what there is to say.
func (t *track) arrive(a arrival, tell func(Event)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.seq == 0 || a.seq >= t.next.Load() {
		return false
	}
	g := &t.got[a.seq&t.mask]
	if a.seq < t.judged.Load() {
		if g.seq == a.seq {
			t.counts.duplicated++
			return true
		}
		t.counts.late++
		if !t.lateTold && t.last.Seq != 0 { // without traffic before, no outage has been told
			t.lateTold = true
			tell(t.lateGap(a))
		}
		return true
	}
	if t.sent[a.seq&t.mask].before != a.sent {
		return false
	}
	if g.seq == a.seq {
		t.counts.duplicated++
		return true
	}
	*g = gotPacket{a.seq, a.stamp}
	t.counts.received++
	t.seen = a.stamp
	if a.seq < t.highest {
		t.counts.reordered++
	}
	t.highest = max(t.highest, a.seq)
	return true
}

// lateGap is what there is to say of a packet that comes after it was counted as missing.
func (t *track) lateGap(a arrival) Event {
	e := Event{Kind: Gap, Flow: t.flow, Interval: timeline.Between(a.sent, a.read), Lost: 1, Late: true}
	e.Text = fmt.Sprintf("packet %d was counted as missing and arrived %v after it was sent, so the outage it was counted to may be none",
		a.seq, time.Duration(a.stamp.Latest-a.sent))
	if a.stamp.Latest <= a.sent+t.silence {
		e.Interval = timeline.Between(a.stamp.Earliest, a.read)
		e.Text = fmt.Sprintf("packet %d came in time but was handed over only %v later, so the outage it was counted to may be none; give the receiver more CPU",
			a.seq, time.Duration(a.read-a.stamp.Latest))
	}
	return e
}

// spoil notes that the receiving socket dropped packets of its own accord before
// now.
func (t *track) spoil() {
	t.mu.Lock()
	t.spoiled = t.next.Load()
	t.mu.Unlock()
}

// judge gives the verdicts that can be given when all that arrived before horizon
// has been taken in.
func (t *track) judge(horizon int64, tell func(Event)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seq, done := t.judged.Load(), t.done.Load()
	for ; seq < done; seq++ {
		s, g := t.sent[seq&t.mask], t.got[seq&t.mask]
		switch {
		case g.seq == seq:
			t.arrivedLocked(Packet{seq, timeline.Between(s.before, s.after), g.at}, tell)
		case s.refused != 0:
			t.missingLocked(seq, s, tell)
		case horizon < s.after+t.silence:
			t.judged.Store(seq)
			return
		case seq < t.spoiled:
			t.counts.unknown++
		default:
			t.missingLocked(seq, s, tell)
		}
		t.judgedAt = s.before
	}
	t.judged.Store(seq)
}

func (t *track) arrivedLocked(p Packet, tell func(Event)) {
	if t.run.missing > 0 {
		text := fmt.Sprintf("%d packets lost", t.run.missing)
		if t.last.Seq == 0 {
			text = fmt.Sprintf("no traffic since the probe began, %d packets lost", t.run.missing)
		}
		tell(Event{
			Kind: Resumed, Flow: t.flow,
			Interval:   timeline.Between(t.run.last.Earliest, p.Received.Latest),
			LastBefore: t.last, FirstAfter: p, Lost: t.run.missing, Text: text,
		})
		t.run, t.lateTold = outage{}, false
	}
	t.transit.add(p.Received.Latest - p.Sent.Latest)
	t.last, t.alive = p, true
}

func (t *track) missingLocked(seq uint64, s sentPacket, tell func(Event)) {
	if t.run.missing == 0 && t.last.Seq != 0 {
		text := fmt.Sprintf("packet %d did not arrive", seq)
		if s.refused != 0 {
			text = fmt.Sprintf("packet %d could not be sent: %s", seq, t.refusals[s.refused-1].text)
		}
		t.counts.outages++
		tell(Event{
			Kind: Lost, Flow: t.flow,
			Interval:   timeline.Between(t.last.Sent.Earliest, s.after+t.transit.max()),
			LastBefore: t.last, Text: text,
		})
	}
	t.run.missing++
	t.run.last = timeline.Between(s.before, s.after)
	t.alive = false
	t.counts.missing++
}
