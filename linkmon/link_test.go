package linkmon

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

func TestRing(t *testing.T) {
	var r ring
	if _, ok := r.find(1); ok {
		t.Error("found something in nothing")
	}
	for n := 1; n <= 3*mostRecent+7; n++ {
		if n%10 == 0 {
			continue // merged
		}
		r.add(past{number: n})
		if p, ok := r.find(n); !ok || p.number != n {
			t.Fatalf("%d: found %d, %v", n, p.number, ok)
		}
		if _, ok := r.find(n - n%10); ok {
			t.Fatalf("%d: found what is not there", n)
		}
		if old := n - mostRecent; old > 0 && old%10 != 0 {
			if p, ok := r.find(old); !ok || p.number != old {
				t.Fatalf("%d: %d is forgotten", n, old)
			}
		}
	}
	if _, ok := r.find(1); ok {
		t.Error("the oldest is still there")
	}
}

func TestQueue(t *testing.T) {
	q := queue{more: make(chan struct{}, 1)}
	in, out := 0, 0
	for round := range 2000 { // always more in than out, then all out
		for range 1 + round%20 {
			in++
			q.push(Event{Number: in})
		}
		for range round % 20 {
			out++
			if e, ok := q.pop(); !ok || e.Number != out {
				t.Fatalf("got %d, want %d", e.Number, out)
			}
		}
	}
	if cap(q.events) > 4*(in-out) {
		t.Errorf("holds %d places for %d events", cap(q.events), in-out)
	}
	for ; out < in; out++ {
		if e, ok := q.pop(); !ok || e.Number != out+1 {
			t.Fatalf("got %d, want %d", e.Number, out+1)
		}
	}
	if _, ok := q.pop(); ok {
		t.Error("more out than in")
	}
}

// What is announced and found in any order, late or never.
func TestJoin(t *testing.T) {
	m := &Monitor{queue: queue{more: make(chan struct{}, 1)}}
	l := &link{host: &host{m: m}, sum: 1<<32 - 2, sum0: 1<<32 - 2, since: 50, state: down}
	at := func(ns int64) timeline.Interval { return timeline.Between(ns, ns+100) }
	told := func(changes uint32, ns int64) {
		l.noticeLocked(notice{changes: changes, counted: true, seen: at(ns), source: fromNetlink})
	}
	drain := func() (events []Event) {
		for {
			e, ok := m.queue.pop()
			if !ok {
				return events
			}
			if e.Kind == Announcement {
				events = append(events, e)
			}
		}
	}
	told(1<<32-2, 0) // of before
	told(1, 1150)    // ahead of the sweep, beyond the wrap
	if got := drain(); len(got) != 0 {
		t.Fatalf("announced: %v", got)
	}
	l.movedLocked(3, up, at(1100), fromCounters)
	got := drain()
	if len(got) != 1 || got[0].Number != 3 || !got[0].Up || got[0].Shared != 3 || got[0].Interval != at(1100) || got[0].Seen.Earliest != 1150 {
		t.Fatalf("announced: %+v", got)
	}
	told(1, 1300) // again
	told(0, 1300) // older than that
	l.noticeLocked(notice{changes: 2})
	if got := drain(); len(got) != 0 {
		t.Fatalf("announced: %v", got)
	}
	l.movedLocked(1, down, at(2000), fromCounters)
	told(2, 1950) // the kernel said so before the sweep ended
	if got = drain(); len(got) != 1 || got[0].Number != 4 || got[0].Latest != 2050 || got[0].Seen.Earliest != 2000 {
		t.Fatalf("announced: %+v", got)
	}
	for n := range mostRecent + 1 {
		l.movedLocked(1, l.state.other(), at(int64(3000+n)), fromCounters)
	}
	told(3, 9000) // forgotten: some time since the beginning
	if got = drain(); len(got) != 1 || got[0].Number != 5 || got[0].Earliest != 50 || got[0].Latest != 9100 {
		t.Fatalf("announced: %+v", got)
	}
	for n := range uint32(2 * mostPending) {
		told(l.sum+n+1, 9000)
	}
	if len(l.pending) != mostPending {
		t.Errorf("%d pending", len(l.pending))
	}
}

// still is a host with one link that does nothing.
type still struct{}

func (still) Interfaces() ([]Interface, error)       { return []Interface{{7, "nic0"}}, nil }
func (still) Open(Interface) (Counter, error)        { return still{}, nil }
func (still) Changes() (uint32, error)               { return 3, nil }
func (still) UpDown() (ups, downs uint32, err error) { return 2, 1, nil }
func (still) Carrier() (bool, error)                 { return true, nil }
func (still) Close() error                           { return nil }

// The kernel has said that a link is gone. That holds, whatever is still listed, until it
// says that there is one of that index again.
func TestGoneIsGone(t *testing.T) {
	m, err := Start(t.Context(), Options{Poll: time.Hour, Hosts: []Host{{Name: "gpu1", Counters: still{}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h := m.hosts[0]
	told := func(msg linkMessage) {
		m.mu.Lock()
		h.toldLocked(msg, timeline.Point(m.axis.NS(time.Now())), true)
		m.mu.Unlock()
		for range 2 {
			if err := m.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	told(linkMessage{index: 7, gone: true})
	if got := m.Links(); len(got) != 0 {
		t.Errorf("still there: %v", got)
	}
	told(linkMessage{index: 7, changes: 1, counted: true})
	if got := m.Links(); len(got) != 1 || got[0].Transitions != 2 || !got[0].Carrier {
		t.Errorf("not there again: %v", got)
	}
	if a := m.Account(); a.Err() != nil || len(a.PerLink) != 2 {
		t.Errorf("%+v", a)
	}
}
