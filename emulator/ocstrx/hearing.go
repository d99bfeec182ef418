package ocstrx

import (
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// hearing is what the receivers of a module do. It comes behind what the module does else,
// which may be some way ahead: that of a module which is asked for its light only, by another
// one at the end of a cable, happens without what it hears.
type hearing struct {
	until time.Duration // up to which everything has been heard

	tuned    tuning
	source   [ocst.Lanes]source        // what each receiver gets light from, of what it listens to
	lockAt   [ocst.Lanes]time.Duration // when it has locked, or will have; noEvent: there is no data
	lostAt   [ocst.Lanes]time.Duration // when it last lost light; 0: never
	waiting  uint8                     // lanes of the last switch whose receivers have not locked yet
	data     [2]uint8                  // of the cables, by fibre: lanes that carry data
	los, lol uint8                     // lanes that have lost the light of a cable since flags were latched

	tunings []tuning // to come, in order of time
}

// tuning is what the receivers listen to from a time on.
type tuning struct {
	at    time.Duration
	want  [ocst.Lanes]source // 0: it is muted, or listens to nothing
	loop  uint8              // receivers that the loop network has light for
	round uint32             // counts what begins or ends a switch
	lit   uint8              // lanes that the last switch lit
	anew  bool               // the module has started anew
}

// tune has the receivers listen to what they are switched to as of now. Loop are those that
// the loop network has light for.
func (m *Module) tune(loop uint8) {
	t := tuning{at: m.now, loop: loop, round: m.round, lit: m.relit, anew: m.state == ocst.StateReset}
	if m.state == ocst.StateReady {
		muted := uint8(0)
		if m.run != nil {
			muted = m.muted()
		}
		for lane := range ocst.Lanes {
			if muted>>lane&1 == 0 {
				t.want[lane] = m.listensTo(lane)
			}
		}
	}
	m.looped = loop
	m.hearing.tunings = append(m.hearing.tunings, t)
}

// listen has the receivers listen, and looks at the light in the loop network.
func (m *Module) listen() {
	loop := uint8(0)
	if m.state == ocst.StateReady {
		p := m.chip.powers(m.now)
		for lane, mw := range p[ocst.PDRxLoop] {
			if mw >= sensitivity {
				loop |= 1 << lane
			}
		}
	}
	m.tune(loop)
}

// mute takes the light from the receivers of lanes that are being switched.
func (m *Module) mute() { m.tune(m.looped) }

// hear lets everything be heard until a time. What the other ends of the cables have sent until
// then must have been asked for.
func (m *Module) hear(at time.Duration) {
	h := &m.hearing
	rays := [2]*ray{m.feeds[0].Load(), m.feeds[1].Load()}
	for {
		next, from := noEvent, -1
		if len(h.tunings) > 0 {
			next = h.tunings[0].at
		}
		for fibre, r := range rays {
			if t := r.next(); t < next {
				next, from = t, fibre
			}
		}
		if next > at || next == noEvent {
			break
		}
		h.locksEnd(max(next, h.until))
		h.until = max(next, h.until)
		if from >= 0 {
			m.hearBeam(from, rays[from])
			continue
		}
		t := h.tunings[0]
		if h.tunings = h.tunings[1:]; len(h.tunings) == 0 {
			h.tunings = nil
		}
		if t.round != h.tuned.round {
			h.waiting = t.lit
		}
		if t.anew {
			h.los, h.lol = 0, 0
		}
		h.tuned = t
		m.match(false)
	}
	h.until = max(at, h.until)
	h.locksEnd(h.until)
}

// hearBeam is other light from a cable.
func (m *Module) hearBeam(fibre int, r *ray) {
	b := r.take()
	for lane, mw := range b.mw {
		m.chip.setInput(fibre, lane, mw*r.through)
	}
	m.hearing.data[fibre] = b.data
	m.match(true)
}

// match finds what each receiver gets of what it listens to. One that gets light it did not
// have, or data, begins to lock. What comes and goes by a cable is kept for the flags.
func (m *Module) match(cable bool) {
	h := &m.hearing
	for lane := range ocst.Lanes {
		s, data := h.tuned.want[lane], true
		switch s {
		case fromFibre1, fromFibre2:
			fibre := int(s - fromFibre1)
			if m.chip.input[fibre][lane]*m.chip.facet < sensitivity {
				s = 0
			}
			data = m.feeds[fibre].Load() == nil || h.data[fibre]>>lane&1 != 0
		case fromLoop:
			if h.tuned.loop>>lane&1 == 0 {
				s = 0
			}
		}
		if cable && s == 0 && h.source[lane] != 0 {
			h.los |= 1 << lane
		}
		if cable && s != 0 && (s != h.source[lane] || !data && h.lockAt[lane] != noEvent) {
			h.lol |= 1 << lane
		}
		if s == 0 && h.source[lane] != 0 {
			h.lostAt[lane] = h.until
		}
		switch {
		case s == 0:
		case !data:
			h.lockAt[lane] = noEvent
		case s != h.source[lane] || h.lockAt[lane] == noEvent:
			h.lockAt[lane] = h.until + lockLeast + time.Duration(m.rng.Int64N(int64(lockMost-lockLeast)))
		}
		h.source[lane] = s
	}
}

// locksEnd notes which of the receivers of the last switch have locked until a time.
func (h *hearing) locksEnd(at time.Duration) {
	for lane := range ocst.Lanes {
		if h.source[lane] != 0 && h.lockAt[lane] <= at {
			h.waiting &^= 1 << lane
		}
	}
}

// lock is what the receiver of a lane does.
func (h *hearing) lock(lane int) ocst.Lock {
	switch {
	case h.source[lane] == 0:
		return ocst.NoLight
	case h.until < h.lockAt[lane]:
		return ocst.Acquiring
	}
	return ocst.Locked
}

// locking reports whether a receiver of the last switch has light and has not locked yet.
func (h *hearing) locking() bool {
	for lane := range ocst.Lanes {
		if h.waiting>>lane&1 != 0 && h.lock(lane) == ocst.Acquiring {
			return true
		}
	}
	return false
}
