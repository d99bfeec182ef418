package blackout

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// ErrInForce: a panic keeps dark what would get light. Nothing was sent.
var ErrInForce = errors.New("a panic is in force")

// Light is what would get light: circuits on a switch, or whatever a run moves.
type Light struct {
	Switch, Device string  // of the circuits; "" is any switch of the lab
	Add            ocs.Map // the circuits that come to be
}

// Refuse returns an error that matches [ErrInForce], and says how to lift it, when something
// would bring light to where a panic in force keeps it dark: a circuit with a port that the
// panic has darkened, or that is one of the ports of the lab's NICs on a switch where it has
// darkened anything; or anything at all, as long as a panic concerns a switch of the lab. A
// circuit behind a shutter that the panic has closed for certain gets no light, and passes, so
// that what was done since can be taken back. That the panics cannot be read is a reason to
// refuse.
//
// Of Options it uses File, Device and StateDir.
func (b *Blackout) Refuse(l Light) error {
	if l.Switch == "" && l.Device == "" {
		calls, err := b.InForce()
		if err != nil || len(calls) == 0 {
			return err
		}
		return fmt.Errorf("%w, %s", ErrInForce, calls[0].since())
	}
	if l.Add.Len() == 0 {
		return nil
	}
	calls, err := Read(b.opt.StateDir)
	if err != nil {
		return err
	}
	for _, c := range calls {
		d, dark := c.On(l.Device)
		if !dark || !c.Lifted.IsZero() {
			continue
		}
		ports := sorted(d.Closed, d.Removed.Ports(), own(b.opt.File, l.Switch))
		for x := range l.Add.All() {
			if d.Now() == IsDark && (slices.Contains(d.Closed, x.Ingress) || slices.Contains(d.Closed, x.Egress)) {
				continue
			}
			for _, p := range []ocs.Port{x.Ingress, x.Egress} {
				if slices.Contains(ports, p) {
					return fmt.Errorf("%w: %v would bring light to port %d, %s", ErrInForce, x, p, c.since())
				}
			}
		}
	}
	return nil
}

// own are the ports of a switch that are the lab's; none without a lab.
func own(f *lab.File, name string) []ocs.Port {
	if f == nil {
		return nil
	}
	return Ports(f, name)
}

// since says when a panic was called, by whom and why, and how it is lifted.
func (c Call) since() string {
	return fmt.Sprintf("since %s, called by %s: %s; \"ocslab panic --lift --id %d\" gives the light back",
		c.At.Local().Format(time.DateTime), c.Who, c.Reason, c.N)
}
