package ocstrx

import (
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// order is what a switch is to do.
type order struct {
	lanes uint8
	path  [ocst.Lanes]ocst.Path // of those lanes
	loop  ocst.Permutation
}

// commit does what was written to the commit register.
func (m *Module) commit(c ocst.Commit) {
	if m.run != nil {
		m.refuse(ocst.FaultBusy)
		return
	}
	switch c {
	case ocst.CommitNow, ocst.CommitArm:
		o, ok := m.stagedOrder()
		switch {
		case m.state != ocst.StateReady, c == ocst.CommitNow && m.armed != 0:
			m.refuse(ocst.FaultNotAllowed)
		case !ok:
			m.refuse(ocst.FaultStage)
		case c == ocst.CommitArm:
			m.arm(o)
		default:
			m.start(o)
		}
	case ocst.CommitTrigger:
		m.trigger()
	case ocst.CommitDisarm:
		m.disarm()
		m.result = ocst.NoFault
	default:
		m.refuse(ocst.FaultStage)
	}
}

// refuse notes that a command was not done.
func (m *Module) refuse(f ocst.Fault) {
	m.result = f
	m.flag(ocst.FlagRejected)
}

// stagedOrder reads the staged registers; false if they make no sense.
func (m *Module) stagedOrder() (order, bool) {
	o := order{lanes: m.control8(ocst.RegMask), loop: m.stagedLoop()}
	path := ocst.Path(m.control8(ocst.RegStaged))
	for lane := range o.path {
		o.path[lane] = path
	}
	return o, o.lanes != 0 && path <= ocst.LoopPath && o.loop.Check() == nil
}

// arm adds to what waits for the trigger. The loop is taken as it is staged now.
func (m *Module) arm(o order) {
	for lane := range ocst.Lanes {
		if o.lanes>>lane&1 != 0 {
			m.armedPath[lane] = o.path[lane]
		}
	}
	m.armed |= o.lanes
	m.armedLoop = o.loop
	m.armedUntil = m.now + ocst.ArmTimeout
	m.result = ocst.NoFault
}

func (m *Module) disarm() { m.armed, m.armedUntil = 0, noEvent }

// armEnds is a trigger that did not come.
func (m *Module) armEnds() {
	m.disarm()
	m.result = ocst.FaultHalfOpen
	m.flag(ocst.FlagHalfOpen)
}

// trigger switches what is armed.
func (m *Module) trigger() {
	switch {
	case m.run != nil:
		m.refuse(ocst.FaultBusy)
	case m.armed == 0:
		m.refuse(ocst.FaultNotArmed)
	default:
		o := order{m.armed, m.armedPath, m.armedLoop}
		m.disarm()
		m.start(o)
	}
}

// run is a switch under way.
type run struct {
	state ocst.State // Break or Settle
	next  time.Duration
	do    func(*Module)
	begun time.Duration

	lanes    uint8 // whose light is away: those of the order, on a loop that moves, and with an element that jumps
	from, to [ocst.Lanes]ocst.Path
	loop     ocst.Permutation
	lit      uint8 // those of lanes that will have light

	states    [ocst.Elements]bool
	drives    [ocst.Elements]ocst.Drive
	loopMoves bool
	// Ends of overdrive, the next one last.
	ends     [ocst.Elements]driveEnd
	overs    int
	drive    time.Duration // when heaters began to move
	settle   time.Duration // when the light came back
	deadline time.Duration
	limits   [ocst.Lanes][outputs]float64 // how much brighter the right output must be
	seen     [ocst.Lanes]float64          // stray light over right, at the last look
	seenAt   time.Duration
	still    uint8 // lanes whose stray light hardly falls any more
}

// driveEnd is when overdrive of an element ends.
type driveEnd struct {
	at      time.Duration
	element ocst.Element
}

// Outputs of a lane, in the order of the photodiodes at them.
const outputs = 3

// outputOf is the output that a path sends to.
func outputOf(p ocst.Path) int {
	switch p {
	case ocst.Path2:
		return ocst.PDOut2
	case ocst.LoopPath:
		return ocst.PDLoopTap
	}
	return ocst.PDOut1
}

// loopStates sets the elements of the loop network so that it does p, which has been
// checked.
func (m *Module) loopStates(states *[ocst.Elements]bool, p ocst.Permutation) {
	s, err := ocst.Route(p)
	if err != nil {
		return
	}
	for column := range ocst.Columns {
		for row := range ocst.Rows {
			states[ocst.Loop(column, row)] = s[column][row]
		}
	}
}

// start begins a switch. The light of the lanes goes away at once.
func (m *Module) start(o order) {
	m.runMemory = run{begun: m.now, from: m.path, to: m.path, loop: o.loop, states: m.states}
	r := &m.runMemory
	m.run = r
	m.result = ocst.NoFault
	m.round++
	m.relit = 0

	r.lanes = o.lanes
	m.loopStates(&r.states, o.loop)
	r.loopMoves = r.states != m.states
	for lane, p := range m.path {
		if r.loopMoves && p == ocst.LoopPath {
			r.lanes |= 1 << lane
		}
	}
	for lane := range ocst.Lanes {
		if o.lanes>>lane&1 != 0 {
			r.to[lane] = o.path[lane]
		}
		if r.lanes>>lane&1 == 0 || r.to[lane] == ocst.Dark {
			continue
		}
		r.lit |= 1 << lane
		loop := r.to[lane] == ocst.LoopPath
		r.states[ocst.S1(lane)] = loop
		if !loop {
			r.states[ocst.S2(lane)] = r.to[lane] == ocst.Path2
		}
	}

	m.takeLight(r.lanes)
	m.capture.begin(r)
	r.state = ocst.StateBreak
	m.then(breakTime, (*Module).startDrive)
}

// takeLight takes light and receivers away from lanes.
func (m *Module) takeLight(lanes uint8) {
	m.lit &^= lanes
	m.shine()
	m.mute()
}

// Times of a switch.
const (
	breakTime    = 2 * time.Microsecond
	driveTime    = 10 * time.Microsecond
	settleStep   = time.Microsecond
	selectTime   = 5 * time.Microsecond
	unmuteTime   = 3 * time.Microsecond
	loopTaus     = 4 // that elements of the loop network get: no tap sees them one by one
	lockLeast    = 100 * time.Microsecond
	lockMost     = time.Millisecond
	stillTime    = 10 * time.Microsecond
	stillFall    = 0.8 // of stray light in stillTime, about 1 dB: less is no transient
	settleRatio  = 25.0
	settleMargin = 1.0
)

// then has the switch go on after d.
func (m *Module) then(d time.Duration, do func(*Module)) { m.run.next, m.run.do = m.now+d, do }

// step goes on with the switch.
func (m *Module) step() { m.run.do(m) }

// startDrive sets the heaters.
func (m *Module) startDrive() {
	r := m.run
	free := m.mayMove(r)
	before := m.drives
	r.drives = m.resolve(&r.states, &free)
	if more := m.jumping(&r.drives); more != 0 {
		// The new neighbours' heat takes an element of another lane to the end of its arm.
		r.lanes |= more
		r.lit |= more
		m.takeLight(more)
		m.then(breakTime, (*Module).startDrive)
		return
	}
	r.drive = m.now
	m.findLimits(r)
	changed := r.states != m.states
	for e, d := range r.drives {
		if m.jumps(ocst.Element(e), d) {
			_, _, loop := ocst.Element(e).IsLoop()
			changed, r.loopMoves = true, r.loopMoves || loop
		}
	}
	m.states = r.states
	m.apply(&r.drives)
	long := time.Duration(0)
	if changed {
		long = driveTime
		if m.control8(ocst.RegControl)&ocst.PreEmphasis != 0 {
			long = m.startOverdrive(r, &before)
		}
	}
	if m.chip.power(m.now) > maxPower {
		m.fail(ocst.FaultPower, nowhere)
		return
	}
	m.drivesGoOn(long)
}

// mayMove are the elements that carry no light, and so may change to the other arm.
func (m *Module) mayMove(r *run) (free [ocst.Elements]bool) {
	loopLit := false
	for lane := range ocst.Lanes {
		dark := m.lit>>lane&1 == 0
		free[ocst.S1(lane)], free[ocst.S2(lane)] = dark, dark
		loopLit = loopLit || !dark && m.path[lane] == ocst.LoopPath
	}
	for e := ocst.Loop(0, 0); e < ocst.Elements; e++ {
		free[e] = !loopLit
	}
	// What has light stays, and what keeps its state need not cross the range either.
	for e := range free {
		free[e] = free[e] && (r.states[e] != m.states[e] || !m.settledOn(e))
	}
	return free
}

// settledOn reports whether an element is driven within the range of its converter.
func (m *Module) settledOn(e int) bool {
	code, _ := m.drives[e].Code()
	return code < ocst.DACMax
}

// startOverdrive gives elements more than they need, for as long as brings them there
// soonest, and returns how long the slowest of them takes. It does without when the
// module would draw too much.
func (m *Module) startOverdrive(r *run, before *[ocst.Elements]ocst.Drive) time.Duration {
	for e := range ocst.Element(ocst.Elements) {
		d, long, ok := m.overdrive(e, before[e], r.drives[e])
		if !ok {
			continue
		}
		m.drive(e, d)
		r.ends[r.overs] = driveEnd{m.now + long, e}
		r.overs++
	}
	if r.overs == 0 {
		return driveTime
	}
	if m.chip.power(m.now) > maxPower {
		r.overs = 0
		m.apply(&r.drives)
		return driveTime
	}
	sortEnds(r.ends[:r.overs])
	// To the next step of the settle loop.
	return (r.ends[0].at - m.now + settleStep - 1) / settleStep * settleStep
}

// drivesGoOn waits for what comes first: an end of overdrive, or that of the whole drive.
func (m *Module) drivesGoOn(long time.Duration) {
	r := m.run
	if r.settle == 0 {
		r.settle = m.now + long
	}
	m.nextDrive()
}

func (m *Module) nextDrive() {
	r := m.run
	if r.overs > 0 {
		m.then(max(r.ends[r.overs-1].at-m.now, 0), (*Module).endOverdrive)
		return
	}
	m.then(max(r.settle-m.now, 0), (*Module).startSettle)
}

func (m *Module) endOverdrive() {
	r := m.run
	r.overs--
	e := r.ends[r.overs].element
	m.drive(e, r.drives[e])
	m.nextDrive()
}

// findLimits says for each lane how much brighter its output must be than the others: 25 dB
// or, where the couplers do not allow that, a little less than what calibration has found.
func (m *Module) findLimits(r *run) {
	fits := &m.solver.fits
	for lane := range ocst.Lanes {
		s1, s2 := &fits[ocst.S1(lane)], &fits[ocst.S2(lane)]
		l := &r.limits[lane]
		switch r.to[lane] {
		case ocst.Path1:
			l[ocst.PDOut2], l[ocst.PDLoopTap] = s2.BarER, s1.BarER
		case ocst.Path2:
			l[ocst.PDOut1], l[ocst.PDLoopTap] = s2.CrossER, s1.BarER
		case ocst.LoopPath:
			l[ocst.PDOut1], l[ocst.PDOut2] = s1.CrossER, s1.CrossER
		}
		if r.to[lane] != ocst.LoopPath {
			// The light that stays has S2 behind it, the stray light in the loop has not.
			l[ocst.PDLoopTap] -= m.p.ElementLoss
		}
		for i := range l {
			l[i] = fromDB(min(settleRatio, l[i]-settleMargin))
		}
	}
}

// complete ends a switch that went well.
func (m *Module) complete() {
	r := m.run
	m.run = nil
	m.path, m.loop = r.to, r.loop
	m.sequence++
	m.switches++
	m.flag(ocst.FlagDone)
	m.record(r, ocst.NoFault)
	m.round++
	m.relit = r.lit
	m.listen()
	m.send(false)
	m.cdbSwitched()
}

// abort ends a switch that did not go well. Its lanes are dark; the caller sees to the rest.
func (m *Module) abort(f ocst.Fault) {
	r := m.run
	if r == nil {
		return
	}
	m.run = nil
	m.result = f
	for lane := range ocst.Lanes {
		if r.lanes>>lane&1 != 0 {
			m.path[lane] = ocst.Dark
		}
	}
	m.lit &^= r.lanes
	m.shine()
	m.record(r, f)
	m.cdbSwitched()
}
