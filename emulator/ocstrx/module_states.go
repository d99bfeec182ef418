package ocstrx

import (
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Times of the state machine.
const (
	resetTime  = time.Millisecond
	warmUpTaus = 10 // of the slow time constant
	noEvent    = time.Duration(math.MaxInt64)
)

// Temperatures of the case, °C, and the most that a module may draw, W.
const (
	warmCelsius = 70
	hotCelsius  = 75
	maxPower    = 12.0
)

// advanceTo lets everything happen, and be heard, that was to until a time. The senders must
// have been called, see callSenders.
func (m *Module) advanceTo(at time.Duration) {
	m.happen(at)
	m.hear(at)
}

// happen lets everything happen that was to until a time, but for what receivers do. Nothing
// runs in the background: whoever asks a module something has it catch up first, event by
// event, so that what happens is the same whoever asks when. The chip is never ahead of the
// clock.
func (m *Module) happen(at time.Duration) {
	for {
		next, do := m.next()
		if next > at {
			break
		}
		m.now = max(m.now, next)
		do(m)
	}
	m.now = max(m.now, at)
	m.supervise()
}

// next returns the event that comes first, and when.
func (m *Module) next() (time.Duration, func(*Module)) {
	at, do := m.until, (*Module).stateEnds
	earlier := func(t time.Duration, f func(*Module)) {
		if t < at {
			at, do = t, f
		}
	}
	if m.run != nil {
		earlier(m.run.next, (*Module).step)
	}
	earlier(m.armedUntil, (*Module).armEnds)
	earlier(m.calUntil, (*Module).endSession)
	earlier(m.trackAt, (*Module).track)
	if m.plate != nil {
		earlier(m.plate.next, (*Module).followPlate)
	}
	return at, do
}

// stateNow is what the state register says.
func (m *Module) stateNow() ocst.State {
	switch {
	case m.run != nil:
		return m.run.state
	case m.state != ocst.StateReady:
		return m.state
	case m.armed != 0:
		return ocst.StateArmed
	case m.hearing.locking():
		return ocst.StateLocking
	}
	return ocst.StateReady
}

// setState changes the state; what CMIS calls the state of the module may change with it.
func (m *Module) setState(s ocst.State) {
	before := cmisState(m.state)
	m.state = s
	if cmisState(s) != before && s != ocst.StateReset {
		m.moduleFlag(cmis.ModuleStateChanged)
	}
}

func cmisState(s ocst.State) cmis.ModuleState {
	switch s {
	case ocst.StateReset, ocst.StateLowPower:
		return cmis.ModuleLowPower
	case ocst.StateWarmUp:
		return cmis.ModulePowerUp
	case ocst.StateFault:
		return cmis.ModuleFault
	}
	return cmis.ModuleReady
}

// reset is the supply that comes back, or a software reset. What is kept without power is
// the table, the log and the counter of switches.
func (m *Module) reset() {
	m.setState(ocst.StateReset)
	m.until, m.started = m.now+resetTime, m.now
	m.fault, m.faultAt = ocst.NoFault, nowhere
	m.run = nil
	m.disarm()
	m.calUntil, m.trackAt = noEvent, noEvent
	m.session, m.password, m.staged = false, false, nil
	m.trim = [ocst.Elements]float64{}
	m.states = [ocst.Elements]bool{}
	m.loop = ocst.DefaultPermutation()
	m.result, m.sequence, m.duration = ocst.NoFault, 0, 0
	m.capture.clear()
	m.cdb = cdb{}
	m.heatersOff()
	m.dark()
	m.setLaser(false)
	m.clearRegisters()
	m.table = m.storedTable()
}

// nowhere is RegFaultAt when there is no place to name.
const nowhere = 0xff

// stateEnds goes on from a state that has a time.
func (m *Module) stateEnds() {
	m.until = noEvent
	switch m.state {
	case ocst.StateReset:
		m.setState(ocst.StateLowPower)
		m.leaveLowPower()
	case ocst.StateWarmUp:
		m.setState(ocst.StateReady)
	}
}

// leaveLowPower goes on unless the host wants low power.
func (m *Module) leaveLowPower() {
	if m.control()&cmis.LowPwrRequestSW == 0 {
		m.warmUp()
	}
}

// warmUp brings the heaters to where the table says. Without a table there is nothing to
// wait for but one.
func (m *Module) warmUp() {
	if m.table == nil {
		m.setState(ocst.StateCal)
		m.fault = ocst.FaultTable
		m.flag(ocst.FlagTable)
		return
	}
	m.fault = ocst.NoFault
	m.setState(ocst.StateWarmUp)
	m.until = m.now + warmUpTaus*m.p.TauSlow
	m.setLaser(true)
	m.loopStates(&m.states, m.loop)
	all := allFree
	drives := m.resolve(&m.states, &all)
	m.apply(&drives)
	m.trackSoon()
}

var allFree = func() (all [ocst.Elements]bool) {
	for i := range all {
		all[i] = true
	}
	return all
}()

// lowPower takes light and heat away, and stays until the host wants otherwise.
func (m *Module) lowPower() {
	m.abort(ocst.FaultNotAllowed)
	m.quiet()
	m.until = noEvent
	m.fault = ocst.NoFault
	m.setState(ocst.StateLowPower)
}

// quiet ends whatever the module was told to do, and leaves it dark and cold.
func (m *Module) quiet() {
	m.disarm()
	m.session, m.calUntil, m.staged = false, noEvent, nil
	m.dark()
	m.setLaser(false)
	m.heatersOff()
	m.trackAt = noEvent
}

// dark takes the light from all lanes.
func (m *Module) dark() {
	m.path = [ocst.Lanes]ocst.Path{}
	m.lit = 0
	m.shine()
	m.round++
	m.relit = 0
	m.tune(0)
}

// shine has the modulators pass the lanes that are lit and that the host has not disabled.
func (m *Module) shine() {
	m.chip.light(m.now, m.bright())
	m.send(false)
}

// bright are the lanes that carry light.
func (m *Module) bright() uint8 { return m.lit &^ m.disabled() }

func (m *Module) setLaser(on bool) {
	m.laser = on
	m.chip.laser(m.now, on)
	m.send(false)
}

// fail is a fault that the module cannot go on with: all lanes dark, heaters and laser off,
// until it is reset.
func (m *Module) fail(f ocst.Fault, where int) {
	m.abort(f)
	m.quiet()
	m.until = noEvent
	m.fault, m.faultAt = f, uint8(where)
	m.flag(flagOf(f))
	m.setState(ocst.StateFault)
}

func flagOf(f ocst.Fault) ocst.Flags {
	switch f {
	case ocst.FaultOpen, ocst.FaultShort:
		return ocst.FlagHeater
	case ocst.FaultTimeout:
		return ocst.FlagTimeout
	case ocst.FaultTwoPaths:
		return ocst.FlagTwoPaths
	case ocst.FaultHot:
		return ocst.FlagTemperature
	case ocst.FaultTable:
		return ocst.FlagTable
	case ocst.FaultHalfOpen:
		return ocst.FlagHalfOpen
	}
	return 0
}

// brownOut is the supply that goes and comes.
func (m *Module) brownOut() {
	broken := m.run != nil
	m.abort(ocst.FaultBrownOut)
	m.reset()
	if broken {
		m.result = ocst.FaultBrownOut
	}
}

// softReset is bit 3 of the control register.
func (m *Module) softReset() {
	m.abort(ocst.FaultNotAllowed)
	m.reset()
}

// supervise is what the firmware looks at all the time: temperature, and that no lane that
// is lit has light where it does not belong.
func (m *Module) supervise() {
	if m.dead {
		return
	}
	celsius := m.chip.temperature(m.now)
	if celsius >= warmCelsius {
		m.flag(ocst.FlagTemperature)
		m.moduleFlag(cmis.TempHighWarning)
	}
	if celsius >= hotCelsius {
		m.moduleFlag(cmis.TempHighAlarm)
		switch m.state {
		case ocst.StateWarmUp, ocst.StateCal, ocst.StateReady:
			m.fail(ocst.FaultHot, nowhere)
		}
	}
	// What a session was allowed may become too much: cold heaters take more.
	if m.session && m.chip.power(m.now) > maxPower {
		m.fail(ocst.FaultPower, nowhere)
	}
	if m.state != ocst.StateReady || m.run != nil {
		return
	}
	bright := m.bright()
	for lane := range ocst.Lanes {
		if bright>>lane&1 == 0 {
			continue
		}
		if f := m.compare(lane, outputOf(m.path[lane])); f != ocst.NoFault {
			m.fail(f, lane)
			return
		}
	}
}

// Temperature is followed closely while it changes, and looked at less and less often while
// it does not: a module that nobody asks anything for a day has little to catch up with.
const (
	trackLeast = 250 * time.Millisecond
	trackMost  = time.Hour
	trackMove  = 0.2 // °C between two looks that is a change
	trackSolve = 0.5 // °C after which the heaters are set anew
)

// trackSoon is called when something may change the temperature.
func (m *Module) trackSoon() {
	m.trackIn = trackLeast
	m.trackAt = noEvent
	if m.state == ocst.StateReady || m.state == ocst.StateWarmUp || m.state == ocst.StateCal {
		m.tracked = m.chip.temperature(m.now)
		m.trackAt = m.now + m.trackIn
	}
}

// track sets the heaters to the temperature of the module, which has changed since.
func (m *Module) track() {
	celsius := m.chip.temperature(m.now)
	if math.Abs(celsius-m.tracked) > trackMove {
		m.trackIn = max(m.trackIn/2, trackLeast)
	} else {
		m.trackIn = min(2*m.trackIn, trackMost)
	}
	m.tracked = celsius
	m.trackAt = m.now + m.trackIn
	if m.run == nil && m.state == ocst.StateReady && math.Abs(celsius-m.solvedAt) > trackSolve {
		m.hold()
	}
	if celsius >= warmCelsius {
		m.supervise()
	}
}
