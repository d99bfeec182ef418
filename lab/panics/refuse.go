package panics

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// ErrInForce: a panic keeps dark what would get light. Nothing was sent.
var ErrInForce = errors.New("a panic is in force")

// Refuse returns an error that matches [ErrInForce], and says how to lift the panic, when circuits that are to be
// added to a device would bring light to where one of calls keeps it dark: a circuit with a port that the panic has
// darkened, or with one of own, the ports of the lab on that switch, where the panic has darkened anything. A circuit
// behind a shutter that the panic has closed and read back gets no light, and passes, so that what was done since can
// be undone.
func Refuse(calls []Call, device string, own []ocs.Port, add ocs.Map) error {
	for _, c := range calls {
		d, dark := c.On(device)
		if !dark || !c.Lifted.IsZero() {
			continue
		}
		keeps := func(p ocs.Port) bool {
			return slices.Contains(d.Closed, p) || slices.Contains(own, p) || len(d.Removed.At(p)) > 0
		}
		for x := range add.All() {
			if d.Now() == IsDark && (slices.Contains(d.Closed, x.Ingress) || slices.Contains(d.Closed, x.Egress)) {
				continue
			}
			for _, p := range []ocs.Port{x.Ingress, x.Egress} {
				if keeps(p) {
					return fmt.Errorf("%w: %v would bring light to port %d, %s", ErrInForce, x, p, c.since())
				}
			}
		}
	}
	return nil
}

// Refusal is the error with which a run is refused while the panic is in force. It matches [ErrInForce].
func (c Call) Refusal() error { return fmt.Errorf("%w, %s", ErrInForce, c.since()) }

// since says when a panic was called, by whom and why, and how it is lifted.
func (c Call) since() string {
	return fmt.Sprintf("since %s, called by %s: %s; \"ocslab panic --lift --id %d\" gives the light back",
		c.At.Local().Format(time.DateTime), c.Who, c.Reason, c.N)
}
