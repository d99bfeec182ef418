package ocstrx

import (
	"context"
	"fmt"

	"github.com/ocslab/ocslab/ocs"
)

// CrossConnects returns what the modules say of their lanes. Dark lanes are in no circuit,
// and so are those of a module without light. While a module switches what it says is
// neither old nor new, so it is asked again. Light that a foreign host has sent through
// the loop to a receiver that listens to its fibre is told as a circuit.
func (sw *Switch) CrossConnects(ctx context.Context) (ocs.Map, error) {
	const op = "read cross-connects"
	var all []seen
	for n := 0; ; n++ {
		var err error
		if all, _, err = sw.look(ctx, op, sw.present()); err != nil {
			return ocs.Map{}, err
		}
		busy := false
		for _, s := range all {
			busy = busy || s.state().Busy()
		}
		// A switch that never ends is not waited for: it is told as it stands.
		if !busy || n == asks {
			break
		}
		if err := sw.pause(ctx, pauses(n)); err != nil {
			return ocs.Map{}, sw.fail(op, err)
		}
	}
	var ccs []ocs.CrossConnect
	for _, s := range all {
		for lane, a := range aimsOf(s.lanes) {
			if c, lit := sw.circuit(s.slot, lane, a); lit {
				if !sw.geo.Reaches(c.Ingress, c.Egress) {
					return ocs.Map{}, sw.fail(op, fmt.Errorf("%s contradicts itself: its loop takes lane %d to a lane %d", moduleName(s.slot), lane+1, a.to+1))
				}
				ccs = append(ccs, c)
			}
		}
	}
	m, err := ocs.NewMap(ccs...)
	if err != nil {
		// Not wrapped: nobody asked for anything that could be a conflict.
		return m, sw.fail(op, fmt.Errorf("the modules contradict themselves: %v", err))
	}
	return m, nil
}

// asks are how often a module that is switching is asked again.
const asks = 20
