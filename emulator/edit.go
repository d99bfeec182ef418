package emulator

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// Edit is a set of changes that a device takes as a whole or not at all. The
// zero value changes nothing.
type Edit struct {
	// Only drops every cross-connect that is not in Add.
	Only bool
	// Drop names ports whose cross-connects go, at either end, unless Add has
	// the same. Ports that are not in use are left alone.
	Drop []ocs.Port
	// DropPairs are cross-connects that go, unless Add has them, too. Of one that
	// is not there, neither port may be in use: else the edit fails with a
	// *NotHeldError, since somebody has come first.
	DropPairs []ocs.CrossConnect
	// Add makes cross-connects in one operation. One that is there already is
	// left alone; a busy port is taken over or refused as the personality says.
	Add []ocs.CrossConnect

	Closed          map[ocs.Port]bool // shutters: true is closed
	Labels          map[ocs.Port]string
	Peers           map[ocs.Port]string // what is at the other end of the fibre, a text like a label
	Monitors        map[ocs.Port]Monitor
	ReverseMonitors map[ocs.Port]Monitor
	VOAs            map[ocs.Port]VOA
	Boot            ocs.BootMode // "" leaves it
	// Users changes the accounts. It gets a copy of them, passwords included.
	// Nil leaves them.
	Users func([]User) ([]User, error)
	// Notes replaces text that a front end keeps with the configuration and that
	// means nothing to the device. Nil leaves it.
	Notes *string
}

// Edit carries out e for a client, nil if it is nobody's. The Operation is the
// matrix's, with Number 0 when e does not concern it.
//
// Errors match [ocs.ErrPort] or [ocs.ErrConflict], or are a *FailedPortError, a
// *LimitError or one sentence on a value; nothing has changed then.
//
// What changes is told to the subscribers: a CircuitEvent for cross-connects, a
// PortEvent for each shutter, and one ActivityEvent for each kind of the rest:
// labels, peers and the boot mode (SYSTEM), monitors and attenuators (OPM),
// accounts (USER).
func (d *Device) Edit(by *Session, e Edit) (Operation, error) {
	want, err := d.checkEdit(&e)
	if err != nil {
		return Operation{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	users := d.users
	if e.Users != nil {
		if users, err = e.Users(slices.Clone(d.users)); err != nil {
			return Operation{}, err
		}
		if err := checkUsers(users); errors.Is(err, errNoAdmin) {
			return Operation{}, ErrLastAdmin
		} else if err != nil {
			return Operation{}, err
		}
	}
	out, err := d.leavingLocked(&e, want)
	if err != nil {
		return Operation{}, err
	}
	if err := d.admitLocked(out); err != nil {
		return Operation{}, err
	}

	now := d.nowLocked()
	var op Operation
	if e.Only || len(out.drop)+len(e.Add) > 0 {
		op = d.rearrangeLocked(by, out, now)
	}
	d.setShuttersLocked(by, e.Closed, now)
	d.tellEditLocked(by, &e, users)
	setTexts(d.labels, e.Labels)
	setTexts(d.peers, e.Peers)
	maps.Copy(d.monitors[Forward], e.Monitors)
	maps.Copy(d.monitors[Reverse], e.ReverseMonitors)
	d.setVOAsLocked(e.VOAs, now)
	if e.Boot != "" {
		d.boot = e.Boot
	}
	if e.Users != nil {
		d.evictLocked(by, users)
	}
	d.users = users
	if e.Notes != nil {
		d.notes = *e.Notes
	}
	d.saveLocked()
	return op, nil
}

// checkEdit checks what does not depend on the state of the device, and
// returns e.Add as a map.
func (d *Device) checkEdit(e *Edit) (ocs.Map, error) {
	want, err := ocs.NewMap(e.Add...)
	if err != nil {
		return want, err
	}
	if err := d.g.Check(want); err != nil {
		return want, err
	}
	if limit := d.p.Control.MaxPairs; limit > 0 && len(e.Add) > limit {
		return want, &LimitError{len(e.Add), limit}
	}
	if err := d.checkPorts(e.Drop); err != nil {
		return want, err
	}
	for _, c := range e.DropPairs {
		if err := d.checkPorts([]ocs.Port{c.Ingress, c.Egress}); err != nil {
			return want, err
		}
	}
	for n := range e.Closed {
		if err := d.checkPorts([]ocs.Port{n}); err != nil {
			return want, err
		}
	}
	for _, texts := range []map[ocs.Port]string{e.Labels, e.Peers} {
		for n, text := range texts {
			if err := d.checkLabel(n, text); err != nil {
				return want, err
			}
		}
	}
	for _, monitors := range []map[ocs.Port]Monitor{e.Monitors, e.ReverseMonitors} {
		for n, m := range monitors {
			if err := d.checkMonitor(n, m); err != nil {
				return want, err
			}
		}
	}
	for n, v := range e.VOAs {
		if err := d.checkVOA(n, v); err != nil {
			return want, err
		}
	}
	if e.Boot != "" && !validBoot(e.Boot) {
		return want, fmt.Errorf("boot mode %q: want dark, restore or autosave", e.Boot)
	}
	return want, nil
}

// setTexts stores texts; empty ones are removed.
func setTexts(into, texts map[ocs.Port]string) {
	for n, text := range texts {
		if text == "" {
			delete(into, n)
		} else {
			into[n] = text
		}
	}
}

// Connect makes all of ccs in one operation or, with an error, none; see
// [Device.Edit].
func (d *Device) Connect(ccs []ocs.CrossConnect) (Operation, error) {
	return d.Edit(nil, Edit{Add: ccs})
}

// Disconnect removes the cross-connects that use one of ports at either end, or
// all when none is named; see [Device.Edit].
func (d *Device) Disconnect(ports ...ocs.Port) (Operation, error) {
	return d.Edit(nil, Edit{Drop: ports, Only: len(ports) == 0})
}

// SetShutters closes or opens the shutters of ports. Light that passes a
// closed one is blocked; cross-connects stay.
func (d *Device) SetShutters(closed bool, ports ...ocs.Port) error {
	set := make(map[ocs.Port]bool, len(ports))
	for _, n := range ports {
		set[n] = closed
	}
	_, err := d.Edit(nil, Edit{Closed: set})
	return err
}

// setShuttersLocked reports each port that changes, in order.
func (d *Device) setShuttersLocked(by *Session, closed map[ocs.Port]bool, now int64) {
	for _, n := range slices.Sorted(maps.Keys(closed)) {
		p := &d.ports[n]
		if p.closed == closed[n] {
			continue
		}
		p.closed = closed[n]
		d.relightLocked(n, now)
		text := "enabled"
		if p.closed {
			text = "disabled"
		}
		d.publishLocked(Event{Kind: PortEvent, Port: n, Condition: "PORT", Text: fmt.Sprintf("Port %d %s", n, text), By: by.infoLocked()})
	}
}

// SetLabel stores a label of printable ASCII characters; the empty one removes
// it. The port must exist.
func (d *Device) SetLabel(n ocs.Port, label string) error {
	_, err := d.Edit(nil, Edit{Labels: map[ocs.Port]string{n: label}})
	return err
}
