package mzi

import (
	"math/rand/v2"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// scene is a setting of the loop network in which an element is looked at from outside.
// Light of one lane comes to one of its inputs, and leaves by two ways to two receivers; all
// other elements are in the bar or cross state. Elements leak a percent of the light or less,
// but a tenth of the field, and what meets again interferes: so the ways share no element,
// and the element's other input comes from a lane whose way has none in common with that
// of the light. What reaches a receiver by any other way has leaked twice then.
type scene struct {
	element    ocst.Element
	lane       int // lit
	states     ocst.States
	bar, cross int // receivers of the light in either state of the element
	// Elements that the light passes before it, and on either way behind it.
	before, onBar, onCross elementSet
	// Elements before its other input, on which light must not come that has leaked once.
	beside elementSet
	ways   [ocst.Lanes]elementSet // of all lanes, before the column of the element
}

type elementSet uint64

func (s elementSet) has(e ocst.Element) bool { return s>>uint(e)&1 != 0 }
func (s *elementSet) add(e ocst.Element)     { *s |= 1 << uint(e) }

// sceneTries is how many settings are looked at to find one that will do. One of some
// dozen does.
const sceneTries = 4000

// scenes calls yield with scenes of an element of the loop network that can be set with
// the elements that are usable, in an order that is always the same, until it returns false.
func scenes(e ocst.Element, usable *[ocst.Elements]bool, yield func(*scene) bool) {
	random := rand.New(rand.NewPCG(uint64(e), 0))
	for range sceneTries {
		s := scene{element: e, lane: random.IntN(ocst.Lanes)}
		bits := random.Uint32()
		for column := range s.states {
			for row := range s.states[column] {
				s.states[column][row] = bits&1 != 0
				bits >>= 1
			}
		}
		if s.trace() && s.reachable(usable) && !yield(&s) {
			return
		}
	}
}

// reachable reports whether all that the light passes can be set.
func (s *scene) reachable(usable *[ocst.Elements]bool) bool {
	if !usable[ocst.S1(s.lane)] {
		return false
	}
	for e := range ocst.Element(ocst.Elements) {
		if (s.before | s.onBar | s.onCross).has(e) && !usable[e] {
			return false
		}
	}
	return true
}

// trace finds the ways of the light; false if the scene will not do.
func (s *scene) trace() bool {
	column, row, loop := s.element.IsLoop()
	if !loop {
		return false
	}
	// The lanes whose ways end at the inputs of the element.
	from := [2]int{-1, -1}
	for lane := range ocst.Lanes {
		line := lane
		var way elementSet
		for c := range column {
			r, input := ocst.Wire(c, line)
			way.add(ocst.Loop(c, r))
			line = ocst.Line(c, r, output(s.states[c][r], input))
		}
		if r, input := ocst.Wire(column, line); r == row {
			from[input] = lane
		}
		s.ways[lane] = way
	}
	input := 0
	if from[1] == s.lane {
		input = 1
	}
	if from[input] != s.lane {
		return false
	}
	s.before, s.beside = s.ways[from[input]], s.ways[from[1-input]]
	if s.before&s.beside != 0 {
		return false
	}
	s.onBar, s.bar = s.behind(column, ocst.Line(column, row, input))
	s.onCross, s.cross = s.behind(column, ocst.Line(column, row, 1-input))
	return s.onBar&s.onCross == 0
}

// behind follows a line that leaves a column: the elements it passes, and its receiver.
func (s *scene) behind(column, line int) (way elementSet, receiver int) {
	for c := column + 1; c < ocst.Columns; c++ {
		r, input := ocst.Wire(c, line)
		way.add(ocst.Loop(c, r))
		line = ocst.Line(c, r, output(s.states[c][r], input))
	}
	return way, line
}

func output(cross bool, input int) int {
	if cross {
		return 1 - input
	}
	return input
}

// sight says by what of a scene an element can be watched while another changes its state.
type sight uint8

const (
	nothing   sight = iota
	both            // the split between both receivers
	barOnly         // the power at the receiver of the bar state, for the other is behind the one that changes
	crossOnly       // likewise
)

// while returns what can be watched while element j goes through any state.
func (s *scene) while(j ocst.Element) sight {
	column, row, loop := j.IsLoop()
	switch {
	case s.before.has(j):
		return nothing
	case s.beside.has(j):
		// It could lead to the other input what another lane's way brings there.
		for _, way := range s.ways {
			if way.has(j) && way&s.before != 0 {
				return nothing
			}
		}
		return both
	case !loop || !(s.onBar | s.onCross).has(j):
		return both
	}
	var stray elementSet
	for out := range 2 {
		way, _ := s.behind(column, ocst.Line(column, row, out))
		stray |= way
	}
	switch {
	case s.onBar.has(j) && stray&s.onCross == 0:
		return crossOnly
	case s.onCross.has(j) && stray&s.onBar == 0:
		return barOnly
	}
	return nothing
}

// put holds the elements of the scene in their states, and lights the way into it.
func (s *scene) put(want *settings, usable *[ocst.Elements]bool) {
	want[ocst.S1(s.lane)] = hold(stateTarget(true))
	for e := ocst.Loop(0, 0); e < ocst.Elements; e++ {
		if column, row, _ := e.IsLoop(); usable[e] {
			want[e] = hold(stateTarget(s.states[column][row]))
		}
	}
}

// watch is the share of light that an element of a scene sends its bar way, from powers at
// the receivers. through is what of the launched light arrives at both together; it is only
// wanted where one of them is watched alone.
func (s *Session) watch(p *Powers, c *scene, how sight, through float64, n int) ratio {
	bar, cross := []photodiode{{ocst.PDRxLoop, c.bar}}, []photodiode{{ocst.PDRxLoop, c.cross}}
	if how == both {
		return s.split(p, bar, cross, n)
	}
	// Of one receiver over what both would have.
	launched := p[ocst.PDLaunched][c.lane] * through
	one := c.bar
	if how == crossOnly {
		one = c.cross
	}
	rest := *p
	rest[ocst.PDRxLoop][c.bar], rest[ocst.PDRxLoop][c.cross] = 0, 0
	rest[ocst.PDRxLoop][one] = p[ocst.PDRxLoop][one]
	other := c.bar + c.cross - one
	rest[ocst.PDRxLoop][other] = launched - rest[ocst.PDRxLoop][one]
	return s.split(&rest, bar, cross, n)
}

// throughput is the share of the launched light that arrives at both receivers.
func (s *scene) throughput(p *Powers) float64 {
	return (p[ocst.PDRxLoop][s.bar] + p[ocst.PDRxLoop][s.cross]) / max(p[ocst.PDLaunched][s.lane], 1)
}
