package hbd

import (
	"fmt"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

const (
	lanes = ocst.Lanes
	// half: lanes below it are those of the upper GPU, the others of the lower.
	half = lanes / 2
)

// MapOf returns the circuits of a bundle of so many modules in a state; see [ocs.Transceivers] for its ports. In a loop
// the lanes of the upper GPU go to those of the lower, lane i to lane i XOR 4 of the same module. Dark is empty. A state
// or a number of modules that cannot be gives an empty map.
func MapOf(s infinitehbd.State, modules int) ocs.Map {
	n := modules * lanes
	if modules < 1 || 4*n > int(ocs.MaxPort) {
		return ocs.Map{}
	}
	ccs := make([]ocs.CrossConnect, 0, n)
	for lane := range n {
		if to := target(s, lane, n); to >= 0 {
			ccs = append(ccs, ocs.CrossConnect{Ingress: ocs.Port(lane + 1), Egress: ocs.Port(to + 1)})
		}
	}
	return ocs.MustMap(ccs...)
}

// target is the egress of a lane of n in a state, all from 0; -1 for none.
func target(s infinitehbd.State, lane, n int) int {
	switch s {
	case infinitehbd.Loop:
		return 3*n + (lane ^ half)
	case infinitehbd.Path1:
		return n + lane
	case infinitehbd.Path2:
		return 2*n + lane
	}
	return -1
}

// StateOf returns the state of a bundle of so many modules by the circuits that it holds. Lanes that are not all
// in one state give Dark and an error that matches ErrMixed and names the first lane that is not as lane 1 is.
func StateOf(m ocs.Map, modules int) (infinitehbd.State, error) {
	n := modules * lanes
	var all infinitehbd.State
	for lane := range n {
		s, err := laneState(m, lane, n)
		if err != nil {
			return infinitehbd.Dark, err
		}
		if lane == 0 {
			all = s
		}
		if s != all {
			return infinitehbd.Dark, fmt.Errorf("%w: lane 1 of module 1 is %v, and %s is %v", ErrMixed, all, laneName(lane), s)
		}
	}
	if n == 0 {
		return infinitehbd.Dark, nil
	}
	return all, nil
}

// laneState returns the state of one lane of n.
func laneState(m ocs.Map, lane, n int) (infinitehbd.State, error) {
	to, lit := m.EgressOf(ocs.Port(lane + 1))
	if !lit {
		return infinitehbd.Dark, nil
	}
	for _, s := range []infinitehbd.State{infinitehbd.Loop, infinitehbd.Path1, infinitehbd.Path2} {
		if int(to) == target(s, lane, n)+1 {
			return s, nil
		}
	}
	return infinitehbd.Dark, fmt.Errorf("%w: %s leads to port %d, which is none of its states", ErrMixed, laneName(lane), to)
}

// laneName names a lane of a bundle, from 0, for people.
func laneName(lane int) string {
	return fmt.Sprintf("lane %d of module %d", lane%lanes+1, lane/lanes+1)
}
