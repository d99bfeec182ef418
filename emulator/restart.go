package emulator

import (
	"context"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// BootMode returns what a restart does with the cross-connects.
func (d *Device) BootMode() ocs.BootMode {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.boot
}

// ResetMatrix restarts the matrix for a client, nil if it is nobody's: all light
// goes dark; in boot mode restore the cross-connects settle again, in mode dark
// they are gone, every shutter is open and no shutter programme runs.
func (d *Device) ResetMatrix(by *Session) Operation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resetLocked(by)
}

func (d *Device) resetLocked(by *Session) Operation {
	now := d.nowLocked()
	op := d.beginLocked(now)
	var dropped []ocs.CrossConnect
	for i := range d.ports {
		if c, held := d.heldLocked(ocs.Port(i)); held && c.Ingress == ocs.Port(i) && !d.jammedLocked(c.Ingress) {
			d.dropLocked(c.Ingress, now)
			dropped = append(dropped, c)
		}
	}
	if d.boot == ocs.BootDark {
		d.tellCircuitsLocked(by, dropped, nil)
		open := map[ocs.Port]bool{}
		for i := range d.ports {
			d.stopFlapLocked(ocs.Port(i), now)
			if d.ports[i].closed {
				open[ocs.Port(i)] = false
			}
		}
		d.setShuttersLocked(by, open, now)
	} else {
		d.joinLocked(dropped, now, &op)
	}
	d.saveLocked()
	return op
}

// Reboot restarts the network card: every session ends, and none can begin
// until it is back. Light is not touched, except that in boot mode dark the
// matrix is reset.
func (d *Device) Reboot() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.back = time.Now().Add(d.p.Control.Reboot)
	d.down()
	d.up, d.down = context.WithCancel(context.Background())
	if d.boot == ocs.BootDark {
		d.resetLocked(nil)
	}
}

// Up returns a context that ends when the network card restarts.
func (d *Device) Up() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.up
}

// Rebooting reports whether the network card is down.
func (d *Device) Rebooting() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.back)
}
