package ocstrx

import (
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Powers that the firmware compares with.
const (
	twoPathsRatio = 15.0 // dB: stray light above this below the right output is a second path
	laserLow      = 0.5  // of the nominal power of a lane
	sensitivity   = 0.05 // mW at a receiver, about -13 dBm, that clock recovery needs
)

func sortEnds(ends []driveEnd) {
	slices.SortFunc(ends, func(a, b driveEnd) int { return int(b.at - a.at) })
}

// startSettle gives the light back, unmodulated, and begins to compare taps.
func (m *Module) startSettle() {
	r := m.run
	r.state = ocst.StateSettle
	r.settle = m.now
	if e, f := m.heaterFault(); f != ocst.NoFault {
		m.fail(f, int(e))
		return
	}
	if r.lit == 0 && !r.loopMoves {
		m.settled()
		return
	}
	m.lit |= r.lit
	m.shine()
	for lane := range ocst.Lanes {
		m.capture.launched[lane] = float32(m.launched(lane))
	}
	r.deadline = m.now + time.Duration(m.control16(ocst.RegTimeout))*time.Microsecond
	r.seenAt = noEvent
	m.then(0, (*Module).settle)
}

// settle compares the taps of all lanes that were switched, once every microsecond.
func (m *Module) settle() {
	r := m.run
	good := r.lit & m.bright()
	look := r.seenAt == noEvent || m.now-r.seenAt >= stillTime
	left := uint8(0)
	for lane := range ocst.Lanes {
		if good>>lane&1 == 0 {
			continue
		}
		taps := m.taps(lane)
		m.capture.sample(m.now-r.begun, lane, &taps)
		right := outputOf(r.to[lane])
		stray := 0.0
		for i, mw := range taps {
			if i == right {
				continue
			}
			stray = max(stray, mw)
			if mw*r.limits[lane][i] > taps[right] {
				left |= 1 << lane
			}
		}
		if look {
			if r.seenAt != noEvent && stray > stillFall*r.seen[lane] {
				r.still |= 1 << lane
			}
			r.seen[lane] = stray
		}
	}
	if look {
		r.seenAt = m.now
	}
	if (m.now-r.settle)%beamStep == 0 {
		m.send(true)
	}
	switch {
	case left == 0 && (!r.loopMoves || m.now >= r.drive+loopTaus*m.p.Tau):
		if f, lane := m.confirm(); f != ocst.NoFault {
			m.fail(f, lane)
			return
		}
		m.settled()
	case m.now >= r.deadline:
		f, lane := m.whyNot(left)
		m.fail(f, lane)
	default:
		m.then(settleStep, (*Module).settle)
	}
}

// whyNot names what keeps lanes from settling.
func (m *Module) whyNot(left uint8) (ocst.Fault, int) {
	r := m.run
	for lane := range ocst.Lanes {
		if left>>lane&1 == 0 {
			continue
		}
		f := m.compare(lane, outputOf(r.to[lane]))
		if f == ocst.FaultTwoPaths && r.still>>lane&1 == 0 {
			f = ocst.FaultTimeout // the light is still on its way
		}
		if f == ocst.NoFault {
			f = ocst.FaultTimeout
		}
		return f, lane
	}
	return ocst.FaultTimeout, nowhere
}

// confirm is the last look before the host gets its light back: no second path, light from
// the laser, and light at the receivers of the loop.
func (m *Module) confirm() (ocst.Fault, int) {
	r := m.run
	good := r.lit & m.bright()
	for lane := range ocst.Lanes {
		if good>>lane&1 == 0 {
			continue
		}
		if f := m.compare(lane, outputOf(r.to[lane])); f != ocst.NoFault {
			return f, lane
		}
		// What is lost in the loop is some dB, what goes to another receiver 20 or more.
		if r.to[lane] == ocst.LoopPath && m.seen(ocst.PDRxLoop*ocst.Lanes+int(r.loop[lane]))*ratioTwoPaths < m.launched(lane) {
			return ocst.FaultTimeout, lane
		}
	}
	return ocst.NoFault, nowhere
}

// settled chooses what the receivers listen to, and then gives the lanes back to the host.
func (m *Module) settled() { m.then(selectTime, (*Module).selected) }
func (m *Module) selected() {
	m.look()
	m.then(unmuteTime, (*Module).unmuted)
}
func (m *Module) unmuted() {
	m.look()
	m.complete()
}

// look adds a sample to the capture after the settle loop has ended.
func (m *Module) look() {
	r := m.run
	for lane := range ocst.Lanes {
		if r.lit>>lane&1 != 0 {
			taps := m.taps(lane)
			m.capture.sample(m.now-r.begun, lane, &taps)
		}
	}
}

// compare says what is wrong with the light of a lane that is to be at one output.
func (m *Module) compare(lane, right int) ocst.Fault {
	taps := m.taps(lane)
	launched := m.launched(lane)
	if launched < laserLow*m.p.Launch {
		return ocst.FaultLaser
	}
	for i, mw := range taps {
		if i != right && mw*ratioTwoPaths > taps[right] && mw*ratioTwoPaths > launched*leastPath {
			return ocst.FaultTwoPaths
		}
	}
	if taps[right]*ratioTwoPaths < launched {
		return ocst.FaultTimeout // no light at all where it should be
	}
	return ocst.NoFault
}

var ratioTwoPaths = fromDB(twoPathsRatio)

// leastPath is the share of the light of a lane that a path passes at least.
const leastPath = 0.5

// taps are the powers that the photodiodes at the outputs of a lane see, in mW: those of the
// lane, unless a photodiode is stuck or wired to another place. The comparators behind them
// are much faster than the converters, and their noise is not modelled.
func (m *Module) taps(lane int) (mw [outputs]float64) {
	mw[0], mw[1], mw[2] = m.chip.lane(m.now, lane)
	for i := range mw {
		n := i*ocst.Lanes + lane
		if m.chip.diodes.stuck[n] >= 0 || int(m.chip.diodes.wired[n]) != n {
			mw[i] = m.seen(n)
		}
	}
	return mw
}

// launched is what the photodiode behind the modulator of a lane sees, in mW.
func (m *Module) launched(lane int) float64 {
	c := m.chip
	n := ocst.PDLaunched*ocst.Lanes + lane
	if c.diodes.stuck[n] >= 0 || int(c.diodes.wired[n]) != n {
		return m.seen(n)
	}
	if !c.on || c.lit>>lane&1 == 0 {
		return 0
	}
	c.refresh(m.now)
	return c.launch[lane] * c.slow.laser * c.dimmed
}

// seen is what one photodiode sees, in mW.
func (m *Module) seen(n int) float64 {
	d := &m.chip.diodes
	if steps := d.stuck[n]; steps >= 0 {
		return max(float64(steps)-d.dark[n], 0) / adcMax * m.p.FullScale
	}
	from := int(d.wired[n])
	p := m.chip.powers(m.now)
	return p[from/ocst.Lanes][from%ocst.Lanes]
}

// heaterFault looks for a heater whose current does not fit its drive. What is hardly
// driven tells nothing, and does nothing either.
func (m *Module) heaterFault() (ocst.Element, ocst.Fault) {
	for e := range ocst.Element(ocst.Elements) {
		for arm, volts := range m.chip.driven(m.now, e) {
			if volts < heaterLeast {
				continue
			}
			if f := heaterState(volts, m.chip.current(m.now, e, arm), m.p.Resistance); f != ocst.NoFault {
				return e, f
			}
		}
	}
	return 0, ocst.NoFault
}

// driven returns the voltages that the controller gives both arms of an element: what they
// were set to, and what the lead network adds and takes, as [heaters.plan] has it.
func (c *chip) driven(at time.Duration, e ocst.Element) (volts [2]float64) {
	at = c.refresh(at)
	t := &c.heaters.elements[e]
	lag := t.lag * c.heaters.lead.decay(at-t.from)
	to, from := 0, 1
	if lag < 0 {
		to, from, lag = 1, 0, -lag
	}
	volts[to] = math.Sqrt(min(t.arms[to].asked+max(lag-t.arms[from].asked, 0), fullV2))
	volts[from] = math.Sqrt(max(t.arms[from].asked-lag, 0))
	return volts
}

const (
	heaterLeast = 0.3 // V
	heaterOpen  = 0.3 // of the current that belongs to the voltage
	heaterShort = 2.5
)

// heaterState judges a heater by its current.
func heaterState(volts, amps, ohm float64) ocst.Fault {
	switch right := volts / ohm; {
	case amps < heaterOpen*right:
		return ocst.FaultOpen
	case amps > heaterShort*right:
		return ocst.FaultShort
	}
	return ocst.NoFault
}
