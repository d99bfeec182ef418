package blackout

import (
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// Light is what would get light: circuits on a switch, or whatever a run moves.
type Light struct {
	Switch, Device string  // of the circuits; "" is any switch of the lab
	Add            ocs.Map // the circuits that come to be
}

// Refuse is [panics.Refuse] for the panics that are remembered; the zero Light is refused as
// long as a panic concerns a switch of the lab. That the panics cannot be read is a reason to
// refuse.
//
// Of Options it uses File, Device and StateDir.
func (b *Blackout) Refuse(l Light) error {
	if l.Switch == "" && l.Device == "" {
		calls, err := b.InForce()
		if err != nil || len(calls) == 0 {
			return err
		}
		return calls[0].Refusal()
	}
	if l.Add.Len() == 0 {
		return nil
	}
	calls, err := panics.Read(b.opt.StateDir)
	if err != nil {
		return err
	}
	var own []ocs.Port
	if b.opt.File != nil {
		own = b.opt.File.OwnPorts(l.Switch)
	}
	return panics.Refuse(calls, l.Device, own, l.Add)
}
