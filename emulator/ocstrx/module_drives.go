package ocstrx

import (
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// What follows is the firmware's arithmetic: from the table, the temperature and the states
// that elements are to have, to codes for the converters.

// sweeps is how often the heat of all neighbours is put right. Coupling is a few percent, so
// each sweep gains more than an order of magnitude; what is left after four is below the
// step of a converter.
const sweeps = 4

// fitsAt returns the table's fits at a temperature: on the line through the two points next to
// it, which goes on beyond the outermost for as far as these two are apart. Phases take the
// shorter way round.
func fitsAt(t *ocst.Table, celsius float64, into *[ocst.Elements]ocst.Fit) {
	points := t.Points
	if len(points) == 1 {
		*into = points[0].Elements
		return
	}
	i := slices.IndexFunc(points, func(p ocst.Point) bool { return p.Celsius >= celsius })
	if i < 0 {
		i = len(points) - 1
	}
	i = max(i, 1)
	lo, hi := &points[i-1], &points[i]
	x := min(max((celsius-lo.Celsius)/(hi.Celsius-lo.Celsius), -1), 2)
	between := func(a, b float64) float64 { return a + x*(b-a) }
	arm := func(a, b ocst.Arm) ocst.Arm {
		return ocst.Arm{Slope: between(a.Slope, b.Slope), Curve: between(a.Curve, b.Curve)}
	}
	for e := range into {
		a, b := &lo.Elements[e], &hi.Elements[e]
		into[e] = ocst.Fit{
			Phase0: a.Phase0 + x*math.Remainder(b.Phase0-a.Phase0, 2*math.Pi),
			A:      arm(a.A, b.A), B: arm(a.B, b.B),
			Bar: a.Bar, Cross: a.Cross,
			BarER: between(a.BarER, b.BarER), CrossER: between(a.CrossER, b.CrossER),
		}
	}
}

// target is the phase of a state.
func target(cross bool) float64 {
	if cross {
		return 0
	}
	return math.Pi
}

// solver is the problem of one moment: which phase each element must gain by its heaters,
// when all of them warm each other.
type solver struct {
	fits     [ocst.Elements]ocst.Fit
	coupling *ocst.Coupling
	room     float64                // volts that the lead network can raise without reaching the converter's end
	own      [ocst.Elements]float64 // what is looked for; positive by arm A
}

// solve finds own, from what is there now. An element that is free takes the arm that needs
// less, unless that leaves the lead network no room: without it, 5 % of a swing take a
// millisecond. One that is not free stays on the turn of its fringe that it is on, because the
// other one is reached only through the wrong state.
func (s *solver) solve(want *[ocst.Elements]float64, free *[ocst.Elements]bool) {
	for range sweeps {
		for i := range s.own {
			warm := 0.0
			row := &s.coupling[i]
			for j := max(i-ocst.Reach, 0); j <= min(i+ocst.Reach, ocst.Elements-1); j++ {
				warm += row[j] * math.Abs(s.own[j])
			}
			need := want[i] - s.fits[i].Phase0 - warm
			if free[i] {
				s.own[i] = s.chosen(i, math.Remainder(need, 2*math.Pi))
			} else {
				s.own[i] += math.Remainder(need-s.own[i], 2*math.Pi)
			}
		}
	}
	for i := range s.own {
		s.own[i] = s.within(i, s.own[i])
	}
}

var none [ocst.Elements]bool

// chosen returns d or, if that leaves too little room, the same phase by the other arm where
// that leaves more.
func (s *solver) chosen(i int, d float64) float64 {
	if other := d - math.Copysign(2*math.Pi, d); !s.reaches(i, d, s.room) && s.spare(i, other) > s.spare(i, d) {
		d = other
	}
	return s.within(i, d)
}

// spare is how much more phase than d its arm can give.
func (s *solver) spare(i int, d float64) float64 {
	if d < 0 {
		return s.fits[i].B.Phase(ocst.DACFull) + d
	}
	return s.fits[i].A.Phase(ocst.DACFull) - d
}

// within returns d or, if no voltage gives it, the same phase by the other arm; if that
// cannot either, as much of d as can be.
func (s *solver) within(i int, d float64) float64 {
	if s.reaches(i, d, ocst.DACFull) {
		return d
	}
	if other := d - math.Copysign(2*math.Pi, d); s.reaches(i, other, ocst.DACFull) {
		return other
	}
	f := &s.fits[i]
	return min(max(d, -f.B.Phase(ocst.DACFull)), f.A.Phase(ocst.DACFull))
}

// reaches reports whether a voltage up to most gives d.
func (s *solver) reaches(i int, d, most float64) bool {
	arm := s.fits[i].A
	if d < 0 {
		arm = s.fits[i].B
	}
	volts, ok := arm.Volts(math.Abs(d))
	return ok && volts <= most
}

// drive returns the code for what was found.
func (s *solver) drive(i int) ocst.Drive {
	d := s.own[i]
	arm, armB := s.fits[i].A, false
	if d < 0 {
		arm, armB = s.fits[i].B, true
	}
	volts, ok := arm.Volts(math.Abs(d))
	if !ok {
		volts = ocst.DACFull
	}
	return ocst.DriveOf(volts, armB)
}

// resolve works out the codes that all elements are to have for states, at the temperature
// of this moment. The solver is the module's own, and holds the fits afterwards.
func (m *Module) resolve(states *[ocst.Elements]bool, free *[ocst.Elements]bool) (drives [ocst.Elements]ocst.Drive) {
	s := &m.solver
	celsius := m.chip.temperature(m.now)
	fitsAt(m.table, celsius, &s.fits)
	s.coupling, s.room = &m.table.Coupling, ocst.DACFull/math.Sqrt(1+m.lead())
	var want [ocst.Elements]float64
	for i := range want {
		want[i] = target(states[i]) + m.trim[i]
		s.own[i] = s.fits[i].Own(m.drives[i])
	}
	s.solve(&want, free)
	for i := range drives {
		drives[i] = s.drive(i)
	}
	m.solvedAt = celsius
	return drives
}

// hold puts the heaters where they must be now for the states that the elements have. An
// element that has come to the end of an arm must go on with the other one, and its light
// would go the wrong way meanwhile: lanes that have light there are switched anew, to where
// they are.
func (m *Module) hold() {
	drives := m.resolve(&m.states, &none)
	if lanes := m.jumping(&drives); lanes != 0 {
		m.start(order{lanes, m.path, m.loop})
		return
	}
	m.apply(&drives)
}

// jumping returns the lit lanes whose light passes an element that would jump.
func (m *Module) jumping(drives *[ocst.Elements]ocst.Drive) (lanes uint8) {
	var onLoop, jumping uint8
	for lane, p := range m.path {
		bit := uint8(1) << lane
		if p == ocst.LoopPath {
			onLoop |= bit
		}
		s1, s2 := ocst.S1(lane), ocst.S2(lane)
		if m.jumps(s1, drives[s1]) || p != ocst.LoopPath && m.jumps(s2, drives[s2]) {
			jumping |= bit
		}
	}
	for e := ocst.Loop(0, 0); e < ocst.Elements; e++ {
		if m.jumps(e, drives[e]) {
			jumping |= onLoop
		}
	}
	return jumping & m.lit
}

// jumps reports whether an element would be given its phase by the other arm, most of 2π
// away, and not by a little more or less of what it has. Fits are those that the solver holds.
func (m *Module) jumps(e ocst.Element, to ocst.Drive) bool {
	f := &m.solver.fits[e]
	return math.Abs(f.Own(to)-f.Own(m.drives[e])) > math.Pi
}

// apply drives what is to change.
func (m *Module) apply(drives *[ocst.Elements]ocst.Drive) {
	for e, d := range drives {
		m.drive(ocst.Element(e), d)
	}
}

// drive gives one element a code; the other arm gets nothing.
func (m *Module) drive(e ocst.Element, d ocst.Drive) {
	old := m.drives[e]
	if d == old {
		return
	}
	m.drives[e] = d
	_, armB := d.Code()
	if _, wasB := old.Code(); wasB != armB {
		m.chip.set(m.now, e, armNumber(wasB), 0)
	}
	m.chip.set(m.now, e, armNumber(armB), d.Volts())
}

// armNumber counts the arms of an element: 0 is A, 1 is B.
func armNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}

// heatersOff drives nothing any more, by either way of driving.
func (m *Module) heatersOff() {
	for e := range ocst.Element(ocst.Elements) {
		for arm := range 2 {
			m.chip.setDirect(m.now, e, arm, 0)
		}
	}
	m.drives = [ocst.Elements]ocst.Drive{}
}

// A step of a heater's drive is met by the lead network, which puts 1+lead times as much on
// it at first, see chip.set. Overdrive leaves room for that below the converter's end; what the
// other arm has been given until then is part of the step.
func (m *Module) lead() float64 {
	tau, slow := float64(m.p.Tau), float64(m.p.TauSlow)
	zero := (1-m.p.SlowWeight)*slow + m.p.SlowWeight*tau
	return slow/zero - 1
}

// Overdrive is worth it where an element has a way to go, and the converter has more to give
// than it needs in the end, both in radians.
const (
	overdriveLeast = 0.3
	overdriveSpare = 0.1
)

// overdrive returns what to give an element that is to go from one code to another, and for
// how long, so that it then is where the other code keeps it. It reports false where that
// gains nothing. Fits are those that the solver holds.
func (m *Module) overdrive(e ocst.Element, from, to ocst.Drive) (ocst.Drive, time.Duration, bool) {
	f := &m.solver.fits[e]
	d1, d2 := f.Own(from), f.Own(to)
	if math.Abs(d2-d1) < overdriveLeast {
		return 0, 0, false
	}
	lead, had := m.lead(), from.Volts()*from.Volts()
	if d1 > 0 != (d2 > d1) {
		had = -had
	}
	volts := math.Sqrt(min(fullV2+lead*had, (1+lead)*fullV2) / (1 + lead))
	// Both arms have the same time constant, so what counts is where their difference would
	// end: this arm at the most, the other one off.
	end := f.A.Phase(volts)
	if d2 < d1 {
		end = -f.B.Phase(volts)
	}
	if (end-d2)*math.Copysign(1, d2-d1) < overdriveSpare {
		return 0, 0, false
	}
	t := float64(m.p.Tau) * math.Log((end-d1)/(end-d2))
	return ocst.DriveOf(volts, d2 < d1), time.Duration(t), true
}
