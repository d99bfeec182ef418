package lab

import (
	"context"
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// Interlock returns sw with ports that nobody may move: a change that touches
// one of them, also by taking over what it is joined to, is refused with an
// error that matches [ocs.ErrInterlock] before anything is sent. Without ports
// it returns sw itself.
func Interlock(sw ocs.Switch, name string, ports []ocs.Port) ocs.Switch {
	if len(ports) == 0 {
		return sw
	}
	return &interlock{Switch: sw, name: name, ports: ports}
}

type interlock struct {
	ocs.Switch
	name  string
	ports []ocs.Port
}

// Unwrap returns the switch inside. Its capabilities pass by the interlock,
// but for the shutters and the restart, which are guarded, too.
func (i *interlock) Unwrap() ocs.Switch { return i.Switch }

// Apply reads the map first, since a device that takes over busy ports darkens
// circuits that the change does not name.
func (i *interlock) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	touched := c.Ports()
	if c.Add.Len() > 0 {
		have, err := i.Switch.CrossConnects(ctx)
		if err != nil {
			return ocs.Receipt{}, err
		}
		for a := range c.Add.All() {
			for _, p := range []ocs.Port{a.Ingress, a.Egress} {
				for _, held := range have.At(p) {
					touched = append(touched, held.Ingress, held.Egress)
				}
			}
		}
	}
	if err := i.guard("change circuits", touched); err != nil {
		return ocs.Receipt{}, err
	}
	return i.Switch.Apply(ctx, c)
}

func (i *interlock) guard(op string, touched []ocs.Port) error {
	for _, p := range i.ports {
		if slices.Contains(touched, p) {
			return &ocs.OpError{Op: op, Device: i.name, Err: fmt.Errorf("%w: the lab file protects port %d", ocs.ErrInterlock, p)}
		}
	}
	return nil
}

// Shutters reads the shutters.
func (i *interlock) Shutters(ctx context.Context, ports ...ocs.Port) (map[ocs.Port]bool, error) {
	s, ok := ocs.As[ocs.Shutter](i.Switch)
	if !ok {
		return nil, i.unsupported("read shutters")
	}
	return s.Shutters(ctx, ports...)
}

// SetShutters refuses protected ports, also by naming none, which is no port
// for some drivers and all for others.
func (i *interlock) SetShutters(ctx context.Context, closed bool, ports ...ocs.Port) error {
	s, ok := ocs.As[ocs.Shutter](i.Switch)
	if !ok {
		return i.unsupported("set shutters")
	}
	touched := ports
	if len(ports) == 0 {
		touched = i.ports
	}
	if err := i.guard("set shutters", touched); err != nil {
		return err
	}
	return s.SetShutters(ctx, closed, ports...)
}

// BootMode reads the boot mode.
func (i *interlock) BootMode(ctx context.Context) (ocs.BootMode, error) {
	r, ok := ocs.As[ocs.Restarter](i.Switch)
	if !ok {
		return "", i.unsupported("read boot mode")
	}
	return r.BootMode(ctx)
}

// SetBootMode is refused, as it decides about protected ports at the next
// restart.
func (i *interlock) SetBootMode(context.Context, ocs.BootMode) error {
	return i.guard("set boot mode", i.ports)
}

// Restart is refused: it interrupts all light.
func (i *interlock) Restart(context.Context) error { return i.guard("restart", i.ports) }

func (i *interlock) unsupported(op string) error {
	return &ocs.OpError{Op: op, Device: i.name, Err: ocs.ErrNotSupported}
}
