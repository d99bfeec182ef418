package emulator

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// losses are what is bad inside a switch, beyond its losses when it was made.
type losses struct {
	ports map[ocs.Port]ocs.DB
	paths map[ocs.CrossConnect]ocs.DB
}

// of returns what the light of c loses to them, dB; infinity is all of it.
func (l *losses) of(c ocs.CrossConnect) ocs.DB {
	return l.ports[c.Ingress] + l.ports[c.Egress] + l.paths[c]
}

// SetPortLoss makes every path through port p lose extra dB more than it did in the
// factory, in place of what was said before, by the personality or here: 0 takes the fault
// away, infinity lets no light pass. Circuits that are up lose or get their light at
// once, and the device goes on to list them. A port that is not there is a
// [*ocs.PortError]; a loss that is negative or not a number is refused.
func (d *Device) SetPortLoss(p ocs.Port, extra ocs.DB) error {
	if err := d.checkPorts([]ocs.Port{p}); err != nil {
		return err
	}
	if err := checkExtra(extra); err != nil {
		return fmt.Errorf("loss of port %d: %w", p, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.nowLocked()
	set(d.losses.ports, p, extra)
	d.relightLocked(p, now)
	return nil
}

// SetPathLoss is [Device.SetPortLoss] for one path.
func (d *Device) SetPathLoss(c ocs.CrossConnect, extra ocs.DB) error {
	if err := checkPath(d.g, c); err != nil {
		return err
	}
	if err := checkExtra(extra); err != nil {
		return fmt.Errorf("loss of path %v: %w", c, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.nowLocked()
	set(d.losses.paths, c, extra)
	d.relightLocked(c.Egress, now)
	return nil
}

func set[K comparable](m map[K]ocs.DB, k K, extra ocs.DB) {
	if extra == 0 {
		delete(m, k)
	} else {
		m[k] = extra
	}
}

// checkPath reports a cross-connect that a switch cannot have.
func checkPath(g ocs.Geometry, c ocs.CrossConnect) error {
	m, err := ocs.NewMap(c)
	if err != nil {
		return err
	}
	return g.Check(m)
}

func checkExtra(extra ocs.DB) error {
	if math.IsNaN(float64(extra)) || extra < 0 {
		return fmt.Errorf("%v: want 0 or more, or infinity for no light at all", extra)
	}
	return nil
}

// lossesOf returns what a personality, which has been checked, has of them.
func lossesOf(o *Optics) losses {
	l := losses{map[ocs.Port]ocs.DB{}, map[ocs.CrossConnect]ocs.DB{}}
	for p, extra := range o.PortLoss {
		set(l.ports, p, ocs.DB(extra))
	}
	for c, extra := range o.PathLoss {
		set(l.paths, ocs.CrossConnect(c), ocs.DB(extra))
	}
	return l
}

// CheckExtraLoss reports a loss that no file can plant: want 0 to [MaxExtraLoss] dB, or
// infinity.
func CheckExtraLoss(db float64) error {
	if db >= 0 && db <= MaxExtraLoss || math.IsInf(db, 1) {
		return nil
	}
	return fmt.Errorf("%g dB: want 0 to %d, or .inf for no light at all", db, MaxExtraLoss)
}

// checkLosses reports losses of ports and paths that a switch does not have, or that cannot
// be.
func (o *Optics) checkLosses(g ocs.Geometry) error {
	for _, p := range slices.Sorted(maps.Keys(o.PortLoss)) {
		if !g.Has(p) {
			return fmt.Errorf("optics.port_loss_db: %w", &ocs.PortError{Port: p, Geometry: g, Reason: "is not a port"})
		}
		if err := CheckExtraLoss(o.PortLoss[p]); err != nil {
			return fmt.Errorf("optics.port_loss_db: %d: %w", p, err)
		}
	}
	for _, c := range SortedPaths(o.PathLoss) {
		if err := checkPath(g, ocs.CrossConnect(c)); err != nil {
			return fmt.Errorf("optics.path_loss_db: %w", err)
		}
		if err := CheckExtraLoss(o.PathLoss[c]); err != nil {
			return fmt.Errorf("optics.path_loss_db: %v: %w", c, err)
		}
	}
	return nil
}

// SortedPaths returns the paths that losses are planted in, by ingress, then egress.
func SortedPaths(losses map[Path]float64) []Path {
	return slices.SortedFunc(maps.Keys(losses), Path.compare)
}
