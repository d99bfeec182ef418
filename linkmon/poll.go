package linkmon

import (
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// pace is how the poller passes the time between sweeps. Its methods are called from
// the poller's goroutine.
type pace interface {
	begin()
	pause()
	cpu() time.Duration // that the goroutine has used, if it has a thread of its own
}

// Rest makes the pauses between sweeps at least d, and 0 as long as the Options say again, from
// the next pause on. No transition is lost by that, but when each was is known less well, and
// several may share an interval; while nobody measures, a hundredth of the processor time is
// worth that. It may be called at any time.
func (m *Monitor) Rest(d time.Duration) { m.rest.Store(int64(max(d, 0))) }

// nap is how long the next pause is.
func (m *Monitor) nap() time.Duration { return max(m.opt.Poll, time.Duration(m.rest.Load())) }

// late is how much later than it should a sweep begins when that is worth a Gap.
const late = 20 * time.Millisecond

// poll sweeps until the monitor stops.
func (m *Monitor) poll() {
	defer close(m.polled)
	m.pace.begin()
	for {
		// Asked before the sweep and not after: Close wants one more.
		last := m.stopping.Load()
		m.sweep()
		if last {
			return
		}
		m.pace.pause()
	}
}

// sweep reads the counters of every link once.
func (m *Monitor) sweep() {
	began := time.Now()
	var flushes []chan struct{}
	if m.asked.Load() {
		m.asked.Store(false)
		m.mu.Lock()
		flushes, m.flushes = m.flushes, nil
		retired := m.retired
		m.retired = nil
		m.mu.Unlock()
		for _, l := range retired { // none of them is in the list any more
			m.bury(l)
		}
	}
	m.period(began)
	links := *m.links.Load()
	if !m.opt.NoCounters {
		at := time.Now()
		for _, l := range links {
			at = m.look(l, at)
		}
	}
	if flushes != nil {
		for _, l := range links {
			m.audit(l)
		}
		m.cpu.Store(int64(m.pace.cpu()))
		for _, done := range flushes {
			close(done)
		}
	}
}

// period takes note of how long the sweeps are apart.
func (m *Monitor) period(began time.Time) {
	before := m.lastSweep
	m.lastSweep = began
	m.sweeps.Add(1)
	if before.IsZero() || m.opt.NoCounters {
		return
	}
	d := began.Sub(before)
	if int64(d) > m.longest.Load() {
		m.longest.Store(int64(d))
	}
	if d <= m.nap()+late {
		return
	}
	m.late.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.hosts {
		m.pushLocked(Event{
			Kind: Gap, Host: h.Name, Interval: m.axis.Span(before, began), Source: fromCounters, Late: true,
			Text: fmt.Sprintf("the counters were not read for %v: no transition is lost, but several may share this interval", d.Round(time.Millisecond)),
		})
	}
}

// look reads the counter of a link. It is given the time and returns it, so that there
// is one reading of the clock for one of a counter.
func (m *Monitor) look(l *link, began time.Time) time.Time {
	if l.ended {
		return began
	}
	changes, err := l.counter.Changes()
	end := time.Now()
	switch {
	case err != nil:
		m.fail(l, err, began, end)
		return end
	case changes == l.last && !l.deaf:
		l.from = began
		return end
	}
	m.changed(l, changes, m.axis.Span(l.from, end))
	l.last, l.from, l.deaf = changes, began, false
	return time.Now()
}

// changed reports what a read of the counter has shown that was not there before.
func (m *Monitor) changed(l *link, changes uint32, at timeline.Interval) {
	k := changes - l.last
	if k == 0 {
		return
	}
	if l.host.sync != nil {
		l.host.sync.poke(l)
	}
	r, err := read(l.counter, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	l.movedLocked(k, l.firstLocked(r, err), at, fromCounters)
	if err == nil && r.halves && r.changes == l.sum {
		l.halves, l.ups, l.downs = true, r.up, r.down // should they have jumped
	}
}

// firstLocked returns where the first of the transitions went that a link made since
// the last that was reported. The reading may be of later than the last of them.
func (l *link) firstLocked(r reading, err error) carrier {
	switch {
	case err == nil && r.halves && l.halves:
		return firstOf(l.state, r.up-l.ups, r.down-l.downs)
	case l.state == unknown:
		return up // as firstOf
	}
	return l.state.other()
}

// fail deals with a counter that cannot be read.
func (m *Monitor) fail(l *link, err error, began, end time.Time) {
	if errors.Is(err, ErrGone) {
		l.ended = true
		m.mu.Lock()
		l.host.lost = append(l.host.lost, l)
		m.mu.Unlock()
		l.host.look()
		return
	}
	if l.deaf {
		return
	}
	l.deaf = true
	m.mu.Lock()
	defer m.mu.Unlock()
	e := l.eventLocked(Gap, m.axis.Span(began, end), fromCounters)
	e.Text = fmt.Sprintf("the carrier counters cannot be read from here on: %v", err)
	m.pushLocked(e)
}

// audit reads the counters of both directions and holds them against what was
// reported.
func (m *Monitor) audit(l *link) {
	if l.ended {
		return
	}
	began := time.Now()
	r, err := read(l.counter, false)
	end := time.Now()
	if err != nil {
		m.fail(l, err, began, end)
		return
	}
	if !m.opt.NoCounters {
		m.changed(l, r.changes, m.axis.Span(l.from, end))
	}
	l.last, l.from, l.deaf = r.changes, began, false
	sum := r.changes
	if r.halves {
		sum = r.up + r.down
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l.countLocked(sum)
}

// countLocked takes the sum of the counters of both directions into the account.
func (l *link) countLocked(sum uint32) {
	reported := l.acct.Reported + l.acct.Merged
	// The account does not wrap; the counters do.
	l.acct.Counted = reported + int(int32(sum-l.sum0-uint32(reported)))
	l.audited = reported
}

// bury tells what is left to tell of a link that is gone, and lets go of it.
func (m *Monitor) bury(l *link) {
	if !l.ended && !m.opt.NoCounters {
		m.look(l, time.Now())
	}
	at := m.axis.Span(l.from, time.Now())
	m.mu.Lock()
	if n := l.farewell; n != nil {
		at.Latest = max(min(at.Latest, n.seen.Latest), at.Earliest)
		if n.counted && int32(n.changes-l.last) > 0 {
			if !m.opt.NoCounters {
				l.movedLocked(n.changes-l.sum, l.firstLocked(reading{}, ErrGone), at, fromNetlink)
			}
			l.last = n.changes
		}
	}
	l.countLocked(l.last)
	l.acct.Removed = true
	m.gone = append(m.gone, l.acct)
	m.pushLocked(l.eventLocked(Removed, at, fromCounters))
	m.mu.Unlock()
	l.counter.Close()
}
