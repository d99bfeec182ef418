package emulator

import (
	"fmt"

	"github.com/ocslab/ocslab/ocs"
)

// Direction is which way the light goes that a monitor measures. Each monitored
// port has one monitor for either.
type Direction uint8

const (
	Forward Direction = iota // from ingress to egress
	Reverse                  // from egress to ingress, where nothing sends
	directions
)

// HasMonitor reports whether port n has power monitors.
func (d *Device) HasMonitor(n ocs.Port) bool {
	switch d.p.Monitors.Sides {
	case MonitorsBoth:
		return d.g.Has(n)
	case MonitorsEgress:
		return d.g.IsEgress(n)
	}
	return false
}

// MeasuresOutput reports whether the monitor at n measures light that leaves
// (an egress port) rather than light that enters.
func (d *Device) MeasuresOutput(n ocs.Port) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.measuresOutputLocked(n)
}

func (d *Device) measuresOutputLocked(n ocs.Port) bool {
	if d.g.SingleSided {
		return d.ports[n].peer != 0 && !d.ports[n].ingress
	}
	return d.g.IsEgress(n)
}

// Power returns what the monitor at port n reads now: the mean over its
// averaging time with its error, noise and offset, and not below its floor.
// The port must have a monitor.
func (d *Device) Power(n ocs.Port) ocs.DBm {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.readLocked(n, d.nowLocked(), true)
}

// readLocked reads the monitor at n. Alarms look at it without the noise, so
// that they depend on the light alone.
func (d *Device) readLocked(n ocs.Port, now int64, noise bool) ocs.DBm {
	m := d.monitorLocked(Forward, n)
	window := AveragingTime(m.Averaging)
	var mw float64
	if d.measuresOutputLocked(n) {
		mw = d.ports[n].out.mean(now, window)
	} else if in := d.inputs[n]; in != nil {
		mw = in.mean(now, window)
	} else {
		mw = ocs.DBm(d.ports[n].launch).Milliwatts()
	}
	set := d.p.Monitors
	reading := ocs.Milliwatts(mw).Add(ocs.DB(set.Accuracy * d.fixed(drawMonitor, n)))
	floor := ocs.DBm(set.Floor)
	if noise {
		reading = reading.Add(d.noiseLocked())
		floor = floor.Add(d.noiseLocked())
	}
	return max(reading, floor).Add(m.Offset)
}

func (d *Device) noiseLocked() ocs.DB { return ocs.DB(d.p.Monitors.Noise * d.noise.NormFloat64()) }

// ReversePower returns what the monitor for light in the other direction reads:
// its floor, since nothing sends there.
func (d *Device) ReversePower(n ocs.Port) ocs.DBm {
	d.mu.Lock()
	defer d.mu.Unlock()
	return ocs.DBm(d.p.Monitors.Floor).Add(d.noiseLocked()).Add(d.monitorLocked(Reverse, n).Offset)
}

// Wavelengths a monitor can be set to, in nm, and the default.
const (
	MinWavelength     = 1260.0
	MaxWavelength     = 1640.0
	DefaultWavelength = 1550.0
)

// Monitor is the setting of a power monitor.
type Monitor struct {
	Wavelength float64 `json:"wavelength_nm"`
	Offset     ocs.DB  `json:"offset_db"` // added to readings
	Averaging  int     `json:"averaging"` // step 1..8, see AveragingTime
}

func (m Monitor) check() error {
	switch {
	case !(m.Wavelength >= MinWavelength && m.Wavelength <= MaxWavelength):
		return fmt.Errorf("wavelength %g nm is outside %g to %g", m.Wavelength, MinWavelength, MaxWavelength)
	case !(m.Offset >= -100 && m.Offset <= 100):
		return fmt.Errorf("offset %g dB is outside -100 to 100", float64(m.Offset))
	case m.Averaging < 1 || m.Averaging > len(averagingSteps):
		return fmt.Errorf("averaging step %d is outside 1 to %d", m.Averaging, len(averagingSteps))
	}
	return nil
}

func (d *Device) checkMonitor(n ocs.Port, m Monitor) error {
	if !d.HasMonitor(n) {
		return &ocs.PortError{Port: n, Geometry: d.g, Reason: "has no power monitor"}
	}
	return m.check()
}

func (d *Device) monitorLocked(dir Direction, n ocs.Port) Monitor {
	if m, ok := d.monitors[dir][n]; ok {
		return m
	}
	return Monitor{Wavelength: DefaultWavelength, Averaging: d.p.Monitors.Default}
}

// Monitor returns how a monitor at port n is set.
func (d *Device) Monitor(dir Direction, n ocs.Port) Monitor {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.monitorLocked(dir, n)
}

// SetMonitors changes the setting of monitors for a client, nil if it is
// nobody's: all of those given or, with an error, none; see [Device.Edit].
func (d *Device) SetMonitors(by *Session, dir Direction, settings map[ocs.Port]Monitor) error {
	e := Edit{Monitors: settings}
	if dir == Reverse {
		e = Edit{ReverseMonitors: settings}
	}
	_, err := d.Edit(by, e)
	return err
}
