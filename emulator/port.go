package emulator

import (
	"fmt"
	"math"

	"github.com/ocslab/ocslab/ocs"
)

func (d *Device) checkPorts(ports []ocs.Port) error {
	for _, n := range ports {
		if !d.g.Has(n) {
			return &ocs.PortError{Port: n, Geometry: d.g, Reason: "is not a port"}
		}
	}
	return nil
}

// SetInput changes the light that enters at port n from outside; minus
// infinity is none.
func (d *Device) SetInput(n ocs.Port, power ocs.DBm) error {
	if err := d.checkPorts([]ocs.Port{n}); err != nil {
		return err
	}
	if mw := power.Milliwatts(); math.IsNaN(mw) || math.IsInf(mw, 0) {
		return fmt.Errorf("input of port %d: %v is no power", n, power)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.nowLocked()
	p := &d.ports[n]
	light := func() segment {
		return segment{from: now, path: path{begin: always}, level: ocs.DBm(p.launch).Milliwatts()}
	}
	if d.inputs[n] == nil {
		before := light()
		before.from = always
		d.inputs[n] = trace{before}
	}
	p.launch = float32(power)
	d.inputs[n] = d.inputs[n].then(light())
	if p.ingress {
		d.relightLocked(n, now)
	}
	if !d.measuresOutputLocked(n) {
		d.watchAlarmsLocked(n, now, now)
	}
	return nil
}

// ShutterClosed reports whether the shutter of port n is closed.
func (d *Device) ShutterClosed(n ocs.Port) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ports[n].closed
}

// Label returns the label of port n.
func (d *Device) Label(n ocs.Port) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.labels[n]
}

// Peer returns what was noted as the other end of the fibre at port n.
func (d *Device) Peer(n ocs.Port) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[n]
}

// Failed reports whether the hardware of port n has failed.
func (d *Device) Failed(n ocs.Port) bool { return d.ports[n].failed } // never changes

// Notes returns the text of [Edit.Notes].
func (d *Device) Notes() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.notes
}

// MaxLabel is the longest label in bytes.
const MaxLabel = 128

func (d *Device) checkLabel(n ocs.Port, label string) error {
	if len(label) > MaxLabel || !printable(label) {
		return fmt.Errorf("label %.40q: want at most %d printable ASCII characters", label, MaxLabel)
	}
	return d.checkPorts([]ocs.Port{n})
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
