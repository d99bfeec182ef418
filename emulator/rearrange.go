package emulator

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// NotHeldError is a cross-connect that was to go and is not there, while one of
// its ports is in use. It matches [ocs.ErrConflict].
type NotHeldError struct{ Drop, Held ocs.CrossConnect }

// Error returns one sentence.
func (e *NotHeldError) Error() string {
	return fmt.Sprintf("%v is not connected, %v is", e.Drop, e.Held)
}

// Is reports whether target is [ocs.ErrConflict].
func (e *NotHeldError) Is(target error) bool { return target == ocs.ErrConflict }

// leaving is what an edit makes of the cross-connects.
type leaving struct {
	want ocs.Map    // to be there
	only bool       // and nothing else
	drop []ocs.Port // what is at these goes, unless it is wanted; ascending
}

// goes reports whether a cross-connect that is there is dropped.
func (l *leaving) goes(c ocs.CrossConnect) bool {
	named := func(n ocs.Port) bool { _, found := slices.BinarySearch(l.drop, n); return found }
	return (l.only || named(c.Ingress) || named(c.Egress)) && !l.want.Has(c)
}

// leavingLocked reads an edit, which fails if a pair of it is not there.
func (d *Device) leavingLocked(e *Edit, want ocs.Map) (*leaving, error) {
	l := &leaving{want: want, only: e.Only, drop: slices.Clone(e.Drop)}
	for _, c := range e.DropPairs {
		for _, n := range [...]ocs.Port{c.Ingress, c.Egress} {
			switch held, busy := d.heldLocked(n); {
			case busy && held != c:
				return nil, &NotHeldError{c, held}
			case busy:
				l.drop = append(l.drop, n)
			}
		}
	}
	slices.Sort(l.drop)
	return l, nil
}

// admitLocked reports why cross-connects cannot be made.
func (d *Device) admitLocked(l *leaving) error {
	for c := range l.want.All() {
		for _, n := range [...]ocs.Port{c.Ingress, c.Egress} {
			if d.ports[n].failed {
				return &FailedPortError{n}
			}
			held, busy := d.heldLocked(n)
			if busy && held != c && d.p.Control.Busy == Deny && !l.goes(held) {
				return &ocs.ConflictError{Want: c, Have: held}
			}
		}
	}
	return nil
}

// rearrangeLocked drops what goes and makes what is wanted. It looks only at the
// ports that are named, unless nothing else is to stay.
func (d *Device) rearrangeLocked(by *Session, l *leaving, now int64) Operation {
	op := d.beginLocked(now)
	heard := d.heardLocked()
	var gone, made []ocs.CrossConnect
	drop := func(n ocs.Port) {
		if c, ok := d.dropLocked(n, now); ok && heard {
			gone = append(gone, c)
		}
	}
	leave := func(n ocs.Port) {
		if c, busy := d.heldLocked(n); busy && l.goes(c) && !d.jammedLocked(n) {
			drop(n)
		}
	}
	if l.only {
		for i := range d.ports {
			leave(ocs.Port(i))
		}
	} else {
		for _, n := range l.drop {
			leave(n)
		}
	}
	for c := range l.want.All() {
		held, busy := d.heldLocked(c.Ingress)
		if busy && held == c || d.jammedLocked(c.Ingress) || d.jammedLocked(c.Egress) {
			continue
		}
		drop(c.Ingress)
		drop(c.Egress)
		made = append(made, c)
	}
	d.joinLocked(made, now, &op)
	d.tellCircuitsLocked(by, gone, made)
	return op
}
