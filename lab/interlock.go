package lab

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/ocslab/ocslab/lab/lease"
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
	kept := map[ocs.Port]error{}
	for _, p := range ports {
		kept[p] = fmt.Errorf("%w: the lab file protects port %d", ocs.ErrInterlock, p)
	}
	return lock{name, func(context.Context) (map[ocs.Port]error, error) { return kept, nil }}.around(sw)
}

// Leases returns sw with the ports that others have leased, by the state directory dir, when a change is
// made: it is refused as [Interlock] does, with an error that says who has the port and matches
// [lease.ErrLeased]. Leases of this program are in nobody's way.
func Leases(sw ocs.Switch, name, dir, device string) ocs.Switch {
	return lock{name, func(ctx context.Context) (map[ocs.Port]error, error) {
		if lease.Ignored(ctx) {
			return nil, nil
		}
		all, err := lease.InForce(dir, device)
		kept := map[ocs.Port]error{}
		for _, l := range all {
			if l.PID == os.Getpid() {
				continue
			}
			for _, p := range l.Ports {
				kept[p] = fmt.Errorf("port %d: %w: %v", p, lease.ErrLeased, l)
			}
		}
		return kept, err
	}}.around(sw)
}

// lock says what may not be touched on the switch of that name.
type lock struct {
	name string
	kept func(context.Context) (map[ocs.Port]error, error) // ports nobody may move now, and why
}

// around guards all that sw has to move light with.
func (l lock) around(sw ocs.Switch) ocs.Switch {
	shutter, shuts := ocs.As[ocs.Shutter](sw)
	restarter, restarts := ocs.As[ocs.Restarter](sw)
	sw = &interlock{sw, l}
	if shuts {
		sw = &shutterLock{sw, shutter, l}
	}
	if restarts {
		sw = &restartLock{sw, restarter, l}
	}
	return sw
}

// interlock guards the circuits of a switch.
type interlock struct {
	ocs.Switch
	lock
}

// Unwrap returns the switch inside. Its capabilities pass by the interlock, but for the shutters
// and the restart, which have locks of their own.
func (i *interlock) Unwrap() ocs.Switch { return i.Switch }

// Apply reads the map first, since a device that takes over busy ports darkens
// circuits that the change does not name.
func (i *interlock) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	kept, err := i.kept(ctx)
	if err != nil {
		return ocs.Receipt{}, err
	}
	touched := c.Ports()
	if c.Add.Len() > 0 && len(kept) > 0 {
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
	if err := i.refuse("change circuits", kept, touched); err != nil {
		return ocs.Receipt{}, err
	}
	return i.Switch.Apply(ctx, c)
}

// refuse returns the error about the lowest port that is kept and touched.
func (l lock) refuse(op string, kept map[ocs.Port]error, touched []ocs.Port) error {
	for _, p := range slices.Sorted(maps.Keys(kept)) {
		if slices.Contains(touched, p) {
			return &ocs.OpError{Op: op, Device: l.name, Err: kept[p]}
		}
	}
	return nil
}

// guard refuses op if it touches a port that is kept; no ports stand for all.
func (l lock) guard(ctx context.Context, op string, touched ...ocs.Port) error {
	kept, err := l.kept(ctx)
	if err != nil {
		return err
	}
	if len(touched) == 0 {
		touched = slices.Collect(maps.Keys(kept))
	}
	return l.refuse(op, kept, touched)
}

// shutterLock guards the shutters of a switch that has them.
type shutterLock struct {
	ocs.Switch
	ocs.Shutter
	lock
}

// Unwrap returns the switch inside.
func (l *shutterLock) Unwrap() ocs.Switch { return l.Switch }

// SetShutters refuses ports that are kept, also by naming none, which is no port for some
// drivers and all for others.
func (l *shutterLock) SetShutters(ctx context.Context, closed bool, ports ...ocs.Port) error {
	if err := l.guard(ctx, "set shutters", ports...); err != nil {
		return err
	}
	return l.Shutter.SetShutters(ctx, closed, ports...)
}

// restartLock guards the restart of a switch that has it.
type restartLock struct {
	ocs.Switch
	ocs.Restarter
	lock
}

// Unwrap returns the switch inside.
func (l *restartLock) Unwrap() ocs.Switch { return l.Switch }

// SetBootMode is refused while any port is kept, as it decides about these at the next restart.
func (l *restartLock) SetBootMode(ctx context.Context, mode ocs.BootMode) error {
	if err := l.guard(ctx, "set boot mode"); err != nil {
		return err
	}
	return l.Restarter.SetBootMode(ctx, mode)
}

// Restart is refused while any port is kept: it interrupts all light.
func (l *restartLock) Restart(ctx context.Context) error {
	if err := l.guard(ctx, "restart"); err != nil {
		return err
	}
	return l.Restarter.Restart(ctx)
}
