package blackout

import (
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// Held is what a switch holds, as far as it matters here.
type Held struct {
	Map ocs.Map
	// Shut says of each port that has a shutter whether that is closed.
	Shut map[ocs.Port]bool
}

// Step is what a panic, or lifting one, comes to on one switch.
type Step struct {
	Switch string
	Device string // as in the history
	Have   Held   // what it was planned on
	Close  []ocs.Port
	Open   []ocs.Port
	Change ocs.Change
	// Left are circuits that stay lit in a panic, since they use a port that is protected,
	// or stay away when it is lifted, since a port is not free.
	Left ocs.Map
	// Note says, for people, why there is nothing to do, or why something is left.
	Note string
	// Nobody says that nothing of the lab is on the switch: it is left alone, be it lit or dark.
	Nobody bool
	// Stale says that the switch did not answer, and that Have is what it said last.
	Stale bool
	Err   error // why it did not answer
}

// Empty reports whether there is nothing to do.
func (s Step) Empty() bool { return len(s.Close) == 0 && len(s.Open) == 0 && s.Change.Empty() }

// Notes of steps.
const (
	noteNobody    = "no NIC and no cable of the lab is on it: its light is left alone"
	noteDark      = "dark already"
	noteNothing   = "nothing of it is to be given back"
	noteProtected = "stays lit, as it uses a port that the lab file protects"
	noteTaken     = "cannot be put back, as a port is in use otherwise"
)

// darken plans a panic on a switch: its ports that are the lab's, those that are protected,
// and what it holds.
func darken(name string, own, protected []ocs.Port, g ocs.Geometry, have Held) Step {
	s := Step{Switch: name, Have: have}
	if len(own) == 0 {
		s.Note, s.Nobody = noteNobody, true
		return s
	}
	for _, p := range own {
		if closed, has := have.Shut[p]; has && !closed && g.Has(p) {
			s.Close = append(s.Close, p)
		}
	}
	var remove, left []ocs.CrossConnect
	for c := range have.Map.All() {
		ours := slices.Contains(own, c.Ingress) || slices.Contains(own, c.Egress)
		if !ours || shutters(have, own, c) {
			continue
		}
		if slices.Contains(protected, c.Ingress) || slices.Contains(protected, c.Egress) {
			left = append(left, c)
		} else {
			remove = append(remove, c)
		}
	}
	s.Change.Remove, s.Left = mapOf(remove), mapOf(left)
	switch {
	case len(left) > 0:
		s.Note = s.Left.String() + " " + noteProtected
	case s.Empty():
		s.Note = noteDark
	}
	return s
}

// shutters reports whether a shutter at a port of ours darkens a circuit.
func shutters(have Held, own []ocs.Port, c ocs.CrossConnect) bool {
	for _, p := range []ocs.Port{c.Ingress, c.Egress} {
		if _, has := have.Shut[p]; has && slices.Contains(own, p) {
			return true
		}
	}
	return false
}

// relight plans the end of a panic on a switch: opens what it has closed and puts back what
// it has removed, the newest first, as far as ports are free.
func relight(name string, dark []darkening, g ocs.Geometry, have Held) Step {
	s := Step{Switch: name, Have: have}
	after := have.Map
	var left []ocs.CrossConnect
	for _, d := range dark {
		for _, p := range d.Closed {
			if have.Shut[p] {
				s.Open = append(s.Open, p)
			}
		}
		add, rest := putBack(after, d.Removed, g)
		after, _ = after.Plus(add) // it was made to fit
		s.Change.Add, _ = s.Change.Add.Plus(add)
		left = append(left, rest.Slice()...)
	}
	slices.Sort(s.Open)
	s.Open = slices.Compact(s.Open)
	s.Left = mapOf(left)
	switch {
	case len(left) > 0:
		s.Note = formatCircuits(left) + " " + noteTaken
	case s.Empty():
		s.Note = "as before already"
	}
	return s
}

// putBack returns the circuits of gone that a switch holding have is missing and can take,
// and those that it cannot.
func putBack(have, gone ocs.Map, g ocs.Geometry) (add, left ocs.Map) {
	var free, taken []ocs.CrossConnect
	for c := range gone.All() {
		switch {
		case have.Has(c):
		case len(have.Rivals(c)) > 0 || excluded(have, c, g):
			taken = append(taken, c)
		default:
			free = append(free, c)
		}
	}
	return mapOf(free), mapOf(taken)
}

// excluded reports whether the device cannot hold c beside what it has, though no port is
// shared in the same role.
func excluded(have ocs.Map, c ocs.CrossConnect, g ocs.Geometry) bool {
	if !g.SingleSided && g.Lanes == 0 {
		return false
	}
	for other := range have.All() {
		if g.Excludes(c, other) {
			return true
		}
	}
	return false
}

// mapOf is the map of circuits that are known to fit together; of those that do not, as
// many as do.
func mapOf(circuits []ocs.CrossConnect) ocs.Map {
	m, err := ocs.NewMap(circuits...)
	if err == nil {
		return m
	}
	m = ocs.Map{}
	for _, c := range circuits {
		if one, err := ocs.NewMap(c); err == nil {
			if sum, err := m.Plus(one); err == nil {
				m = sum
			}
		}
	}
	return m
}

// formatCircuits writes circuits that need not fit together.
func formatCircuits(circuits []ocs.CrossConnect) string {
	if m, err := ocs.NewMap(circuits...); err == nil {
		return m.String()
	}
	text := ""
	for i, c := range circuits {
		if i > 0 {
			text += ","
		}
		text += c.String()
	}
	return text
}
