package live

import (
	"sync"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// calm is how long after a change of our own a difference at its ports is taken for a
// device that has not brought its answers up to date.
const calm = time.Second

// ledger tells foreign changes of circuits from our own. It follows the rules of package
// drift. What is different is that the circuits are read over another session than they are
// changed over, so that reading does not stand in front of a change; a reading and a change
// may then overlap, and what is read may be of before or after. It is safe for concurrent
// use.
type ledger struct {
	mu      sync.Mutex // guards what follows
	known   ocs.Map
	valid   bool // there is a known map, and no change of unknown fate since
	started bool // there is a known map
	under   int  // changes that are being sent
	changes int  // changes that were begun so far
	latest  time.Time
	touched map[ocs.Port]time.Time // by changes of our own, until when they are let alone; zero while one is being sent
}

// glance is what was known when the circuits began to be read.
type glance struct {
	at      time.Time
	changes int
	under   bool
}

func newLedger() *ledger { return &ledger{touched: map[ocs.Port]time.Time{}} }

// look is called before the circuits are read.
func (l *ledger) look(now time.Time) glance {
	l.mu.Lock()
	defer l.mu.Unlock()
	return glance{now, l.changes, l.under > 0}
}

// sending is called before a change of our own is sent, and returns the ports that it
// touches. When it has returned, sent is called with these.
func (l *ledger) sending(c ocs.Change) []ocs.Port {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under++
	l.changes++
	ports := l.concerned(c)
	for _, p := range ports {
		l.touched[p] = time.Time{}
	}
	return ports
}

// concerned returns the ports of a change, and those of the circuits that it takes over.
func (l *ledger) concerned(c ocs.Change) []ocs.Port {
	ports := c.Ports()
	for a := range c.Add.All() {
		for _, rival := range l.known.Rivals(a) {
			ports = append(ports, rival.Ingress, rival.Egress)
		}
	}
	return ports
}

// sent notes what became of a change: it was carried out, or, with an error, that is not
// known, unless no request was sent.
func (l *ledger) sent(c ocs.Change, ports []ocs.Port, requests int, err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under--
	if requests == 0 && err != nil {
		for _, p := range ports {
			l.touched[p] = now
		}
		return
	}
	l.latest = now
	for _, p := range ports {
		l.touched[p] = now.Add(calm)
	}
	if err != nil {
		l.valid = false
		return
	}
	l.known = c.Over(l.known)
}

// changedSince reports whether a change of our own was sent since a time.
func (l *ledger) changedSince(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.under > 0 || l.latest.After(at)
}

// saw returns what others have changed, by circuits that were read. The first are what
// there was.
func (l *ledger) saw(m ocs.Map, before glance) ocs.Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started {
		l.known, l.valid, l.started = m, l.under == 0, true
		return ocs.Change{}
	}
	overlapped := before.under || before.changes != l.changes || l.under > 0
	if !l.valid && !overlapped { // what a change of unknown fate has left is ours
		l.valid, l.known = true, l.adopt(m)
	}
	for p, until := range l.touched {
		if !until.IsZero() && before.at.After(until) && !overlapped {
			delete(l.touched, p)
		}
	}
	d := ocs.Diff(l.known, m)
	foreign := ocs.Change{Remove: l.keep(d.Remove, false), Add: l.keep(d.Add, false)}
	l.known = foreign.Over(l.known)
	return foreign
}

// adopt returns the known map with what m has at the ports that were touched.
func (l *ledger) adopt(m ocs.Map) ocs.Map {
	d := ocs.Diff(l.known, m)
	return ocs.Change{Remove: l.keep(d.Remove, true), Add: l.keep(d.Add, true)}.Over(l.known)
}

// keep returns the circuits of which a port was touched, or those of which none was.
func (l *ledger) keep(m ocs.Map, touched bool) ocs.Map {
	var ccs []ocs.CrossConnect
	for c := range m.All() {
		_, a := l.touched[c.Ingress]
		_, b := l.touched[c.Egress]
		if (a || b) == touched {
			ccs = append(ccs, c)
		}
	}
	return ocs.MustMap(ccs...)
}
