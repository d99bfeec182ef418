package ocstrx

import (
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Moments are when a module truly did what it did last, which nothing outside of tests may know.
type Moments struct {
	Began  time.Time             // the last switch: commit or trigger, to 1 µs
	Ended  time.Time             // its light was let out, or it failed
	Locked [ocst.Lanes]time.Time // the receiver recovered the clock; zero: it has not
	Lost   [ocst.Lanes]time.Time // the receiver last lost light that it had; zero: never
}

// Moments returns them by the clock of the machine, with its monotonic reading. It is false for a module that lives in
// another clock.
func (m *Module) Moments() (Moments, bool) {
	c, real := m.clock.(realClock)
	if !real {
		return Moments{}, false
	}
	m.lockNow()
	defer m.mu.Unlock()
	var all Moments
	if len(m.log) > 0 {
		began := m.started + time.Duration(m.log[0].At)*time.Microsecond
		all.Began, all.Ended = c.start.Add(began), c.start.Add(began+m.log[0].Duration)
	}
	for lane := range ocst.Lanes {
		if m.hearing.lock(lane) == ocst.Locked {
			all.Locked[lane] = c.start.Add(m.hearing.lockAt[lane])
		}
		if at := m.hearing.lostAt[lane]; at > 0 {
			all.Lost[lane] = c.start.Add(at)
		}
	}
	return all, true
}
