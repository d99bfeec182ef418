package probe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

const (
	testPace    = 100 * time.Microsecond
	testSilence = 2 * time.Millisecond
)

// model is a path with a gate, in time that is only computed.
type model struct {
	flips   []int64 // the gate is open before the first, closed after it, and so on
	packets []mpacket
	reads   []int64 // when the receiver empties its socket
	drops   []bool  // what comes before the read of the same index is dropped by the socket
}

type mpacket struct {
	before, after int64
	gate          int64   // when it comes to the gate
	arrivals      []int64 // the first one, and duplicates
	refused       bool
}

func (m *model) open(at int64) bool {
	n, _ := slices.BinarySearch(m.flips, at)
	return n%2 == 0
}

// drawModel makes a path that breaks at its beginning and reorders and duplicates after
// that, or, with far, one that breaks a fixed time after the send call and keeps the order.
func drawModel(t *rapid.T, far bool) *model {
	ns := func(name string, limit time.Duration) int64 {
		return rapid.Int64Range(0, int64(limit)).Draw(t, name)
	}
	chance := func(name string, percent int) bool {
		return rapid.IntRange(0, 99).Draw(t, name) >= 100-percent // 0, the simplest, is no
	}
	m := &model{}
	n := rapid.IntRange(1, 150).Draw(t, "packets")
	end := int64(n) * int64(testPace)
	for at := ns("flip", 3*time.Millisecond) - int64(testPace); at < end; at += 1 + ns("flip", 3*time.Millisecond) {
		m.flips = append(m.flips, at)
	}
	delay := ns("delay", testSilence/2)
	for i := range n {
		if chance("skipped", 5) {
			continue
		}
		p := mpacket{before: int64(i)*int64(testPace) + ns("late", testPace/2)}
		p.after = p.before + ns("call", testPace/2)
		p.gate = rapid.Int64Range(p.before, p.after).Draw(t, "gate")
		if far {
			p.gate = p.after + delay
		}
		switch {
		case m.open(p.gate) && far:
			p.arrivals = []int64{p.gate + 1000}
		case m.open(p.gate):
			p.arrivals = []int64{p.gate}
			if chance("delayed", 30) {
				p.arrivals[0] += ns("by", testSilence-testPace)
			}
			for chance("again", 5) {
				p.arrivals = append(p.arrivals, p.arrivals[0]+ns("after", 3*testSilence))
			}
		default:
			p.refused = !far && chance("refused", 20)
		}
		m.packets = append(m.packets, p)
	}
	for at := int64(0); at < end+8*int64(testSilence); {
		at += 1 + ns("read", testSilence/2)
		m.reads = append(m.reads, at)
		m.drops = append(m.drops, !far && chance("overrun", 2))
	}
	return m
}

// run gives the model to a track and returns what that tells, and the verdicts that
// the model knows to be right.
func (m *model) run() (events []Event, verdicts []verdict, tr *track) {
	tr = newTrack(Flow{"a", "b"}, testSilence, testPace)
	tell := func(e Event) { events = append(events, e) }
	verdicts = make([]verdict, len(m.packets))
	type step struct {
		at int64
		do func()
	}
	var steps []step
	var socket []arrival
	for i, p := range m.packets {
		seq := uint64(i + 1)
		var err error
		if p.refused {
			err = errors.New("refused")
		}
		steps = append(steps,
			step{p.before, func() { tr.begin(p.before) }},
			step{p.after, func() { tr.end(seq, p.after, err) }})
	}
	for i, p := range m.packets {
		for _, at := range p.arrivals {
			a := arrival{header{seq: uint64(i + 1), sent: p.before}, timeline.Point(at), at}
			steps = append(steps, step{at, func() { socket = append(socket, a) }})
		}
	}
	read := func(now int64, dropped bool) {
		if dropped {
			tr.spoil()
			for seq := tr.judged.Load(); seq < tr.next.Load(); seq++ {
				if verdicts[seq-1] == missing && !m.packets[seq-1].refused {
					verdicts[seq-1] = unknown
				}
			}
		}
		for _, a := range socket {
			if !dropped {
				if a.seq >= tr.judged.Load() {
					verdicts[a.seq-1] = arrived
				}
				tr.arrive(a, tell)
			}
		}
		socket = nil
		tr.judge(now, tell)
	}
	for i, at := range m.reads {
		steps = append(steps, step{at, func() { read(at, m.drops[i]) }})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	for _, s := range steps {
		s.do()
	}
	return events, verdicts, tr
}

type verdict int

const (
	missing verdict = iota
	arrived
	unknown
)

// check holds the events against the truth.
func (m *model) check(t *rapid.T, events []Event, verdicts []verdict) {
	i := 0
	expect := func(kind Kind, lost int) Event {
		if i == len(events) {
			t.Fatalf("event %d is missing: %v", i, kind)
		}
		e := events[i]
		i++
		if e.Kind != kind || e.Lost != lost {
			t.Fatalf("event %d is %v with %d lost, want %v with %d", i-1, e, e.Lost, kind, lost)
		}
		return e
	}
	holds := func(e Event, opens bool) {
		for n, at := range m.flips {
			if e.Contains(at) && (n%2 == 1) == opens {
				return
			}
		}
		t.Fatalf("%v %+v holds no such flip of %v", e, e.Interval, m.flips)
	}
	lost, ever := 0, false
	for j, v := range verdicts {
		switch {
		case v == missing:
			if lost == 0 && ever {
				holds(expect(Lost, 0), false)
			}
			lost++
		case v == arrived && lost > 0:
			e := expect(Resumed, lost)
			if e.FirstAfter.Seq != uint64(j+1) || (e.LastBefore.Seq != 0) != ever {
				t.Fatalf("%v: from %d to %d, want to %d", e, e.LastBefore.Seq, e.FirstAfter.Seq, j+1)
			}
			holds(e, true)
			lost = 0
			fallthrough
		case v == arrived:
			ever = true
		}
	}
	if i < len(events) {
		t.Fatalf("invented: %v", events[i:])
	}
}

func TestTrack_Near(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t, false)
		events, verdicts, tr := m.run()
		m.check(t, events, verdicts)
		if s := tr.state(); s.Received+s.Lost+s.Unknown != uint64(len(m.packets)) {
			t.Fatalf("%d packets: %+v", len(m.packets), s)
		}
	})
}

func TestTrack_Far(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t, true)
		events, verdicts, _ := m.run()
		// The first packets have nothing before them that tells how long the way is.
		if len(events) > 0 && events[0].Kind == Lost {
			m.check(t, events, verdicts)
		}
	})
}

// send sends a packet that takes no time.
func send(t *track, at int64, err error) (seq uint64) {
	seq, _ = t.begin(at)
	t.end(seq, at, err)
	return seq
}

func TestTrack_Late(t *testing.T) {
	tr := newTrack(Flow{"a", "b"}, testSilence, testPace)
	var events []Event
	tell := func(e Event) { events = append(events, e) }
	come := func(seq uint64, stamp, read int64) bool {
		return tr.arrive(arrival{header{seq: seq, sent: int64(seq) * 1e5}, timeline.Point(stamp), read}, tell)
	}
	for i := range int64(4) {
		send(tr, (i+1)*1e5, nil)
	}
	if come(0, 1e5, 1e5) || come(5, 5e5, 5e5) || tr.arrive(arrival{header{seq: 1, sent: 1}, timeline.Point(1), 1}, tell) {
		t.Error("took a packet that was never sent")
	}
	come(1, 1e5, 1e5)
	come(4, 4e5, 4e5)
	tr.judge(4e5+int64(testSilence), tell)
	if len(events) != 2 || tr.state().Alive != true || tr.state().JudgedNS != 4e5 {
		t.Fatalf("%v, %+v", events, tr.state())
	}
	come(1, 5e5, 5e5)
	come(2, 9e6, 9e6) // really late
	if len(events) != 3 || events[2].Kind != Gap || !events[2].Late || events[2].Interval != timeline.Between(2e5, 9e6) {
		t.Fatalf("told %v of a packet that was late", events[2:])
	}
	tr.lateTold = false // as after another outage
	come(3, 4e5, 9e6)   // in time, but kept from us
	come(3, 4e5, 9e6)
	if len(events) != 4 || events[3].Kind != Gap || !events[3].Late || events[3].Interval != timeline.Between(4e5, 9e6) {
		t.Fatalf("told %v of a packet that was in time", events[3:])
	}
	s := tr.state()
	if s.Sent != 4 || s.Received != 2 || s.Lost != 2 || s.Late != 3 || s.Duplicated != 1 {
		t.Errorf("%+v", s)
	}
}

// A receiver that gets no CPU stops the sender, which never writes over what has
// no verdict.
func TestTrack_Full(t *testing.T) {
	tr := newTrack(Flow{"a", "b"}, testSilence, testPace)
	n := 0
	for ; ; n++ {
		if _, ok := tr.begin(int64(n)); !ok {
			break
		}
		tr.end(uint64(n+1), int64(n), nil)
	}
	if least := int((testSilence + starved) / testPace); n < least {
		t.Errorf("room for %d packets, want %d", n, least)
	}
	if n > len(tr.sent)/2+1 {
		t.Errorf("%d of %d packets are in flight, which leaves too few to tell duplicates by", n, len(tr.sent))
	}
	tr.judge(int64(time.Minute), func(e Event) { t.Error(e) })
	if s := tr.state(); s.Sent != uint64(n) || s.Lost != s.Sent || s.Skipped != 1 || s.Alive {
		t.Errorf("%+v", s)
	}
	if _, ok := tr.begin(0); !ok {
		t.Error("no room after all have been judged")
	}
}

func TestTrack_Refused(t *testing.T) {
	tr := newTrack(Flow{"a", "b"}, testSilence, testPace)
	var events []Event
	tell := func(e Event) { events = append(events, e) }
	seq := send(tr, 10, nil)
	tr.arrive(arrival{header{seq: seq, sent: 10}, timeline.Point(10), 10}, tell)
	for i := range 2 * maxRefusals {
		seq, _ := tr.begin(int64(20 + i))
		news := tr.end(seq, int64(20+i), fmt.Errorf("error %d", i))
		if first := i < maxRefusals; (news != "") != first {
			t.Errorf("refusal %d is news: %q", i, news)
		}
	}
	tr.judge(0, tell) // at once
	if len(events) != 1 || events[0].Kind != Lost || events[0].Interval != timeline.Between(10, 20) ||
		events[0].Text != "packet 2 could not be sent: error 0" {
		t.Errorf("%v", events)
	}
	if s := tr.state(); len(s.Refused) != maxRefusals || s.Refused["others, such as error 15"] != maxRefusals+1 || s.Sent != 1 || s.Lost != 2*maxRefusals {
		t.Errorf("%+v", s)
	}
}
