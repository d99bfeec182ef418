package emulator

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// AlarmType is which of the two power alarms of a monitor is meant.
type AlarmType string

const (
	LossOfSignal AlarmType = "LOS"
	Degraded     AlarmType = "DEGRADED"
)

var alarmTypes = [...]AlarmType{LossOfSignal, Degraded}

// AlarmMode is how often an alarm may come.
type AlarmMode string

const (
	AlarmOff        AlarmMode = "OFF"
	AlarmSingle     AlarmMode = "SINGLE" // once, then off
	AlarmContinuous AlarmMode = "CONT"   // at each crossing
)

// AlarmEdge is which crossing of a threshold counts.
type AlarmEdge string

const (
	EdgeLow  AlarmEdge = "LOW"  // the power falls below Low
	EdgeHigh AlarmEdge = "HIGH" // the power rises above High
)

// Alarm is a power threshold of a monitor.
type Alarm struct {
	Mode      AlarmMode
	Edge      AlarmEdge
	Low, High ocs.DBm

	Triggered bool // has come and was not cleared
	beyond    bool // the power is beyond the threshold now
}

type alarmKey struct {
	port ocs.Port
	dir  Direction
	kind AlarmType
}

// SetAlarms sets thresholds: all of those given or, with an error, none. Power
// that is beyond one already is not a crossing.
func (d *Device) SetAlarms(dir Direction, kind AlarmType, alarms map[ocs.Port]Alarm) error {
	for n := range alarms {
		if !d.HasMonitor(n) {
			return &ocs.PortError{Port: n, Geometry: d.g, Reason: "has no power monitor"}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.nowLocked()
	for n, a := range alarms {
		a.beyond = dir == Forward && a.isBeyond(d.readLocked(n, now, false))
		d.alarms[alarmKey{n, dir, kind}] = &a
	}
	return nil
}

// Alarm returns a threshold at port n; off at the factory settings unless set.
func (d *Device) Alarm(dir Direction, n ocs.Port, kind AlarmType) Alarm {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.alarms[alarmKey{n, dir, kind}]; a != nil {
		return *a
	}
	return Alarm{Mode: AlarmOff, Edge: EdgeLow, Low: -60, High: 25}
}

// ClearAlarms forgets that alarms of ports have come.
func (d *Device) ClearAlarms(dir Direction, ports ...ocs.Port) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range ports {
		for _, kind := range alarmTypes {
			if a := d.alarms[alarmKey{n, dir, kind}]; a != nil {
				a.Triggered = false
			}
		}
	}
}

func (a *Alarm) isBeyond(power ocs.DBm) bool {
	if a.Edge == EdgeHigh {
		return power > a.High
	}
	return power < a.Low
}

// watchAlarmsLocked looks at the thresholds of port n once its monitor has
// caught up with what happens at t.
func (d *Device) watchAlarmsLocked(n ocs.Port, t, now int64) {
	los, degraded := d.alarms[alarmKey{n, Forward, LossOfSignal}], d.alarms[alarmKey{n, Forward, Degraded}]
	if los == nil && degraded == nil {
		return
	}
	after := time.Duration(t-now) + AveragingTime(d.monitorLocked(Forward, n).Averaging)
	time.AfterFunc(after, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		power := d.readLocked(n, d.nowLocked(), false)
		for _, kind := range alarmTypes {
			d.checkAlarmLocked(n, kind, power)
		}
	})
}

func (d *Device) checkAlarmLocked(n ocs.Port, kind AlarmType, power ocs.DBm) {
	a := d.alarms[alarmKey{n, Forward, kind}]
	if a == nil || a.Mode == AlarmOff {
		return
	}
	was := a.beyond
	a.beyond = a.isBeyond(power)
	switch {
	case was == a.beyond:
	case a.beyond:
		a.Triggered = true
		if a.Mode == AlarmSingle {
			a.Mode = AlarmOff
		}
		d.publishLocked(Event{
			Kind: PowerEvent, Severity: "major", Port: n, Condition: string(kind),
			Text: fmt.Sprintf("Port %d power alarm: %.2f dBm", n, float64(power)),
		})
	default:
		d.publishLocked(Event{
			Kind: PowerEvent, Port: n, Condition: string(kind),
			Text: fmt.Sprintf("Port %d power alarm cleared: %.2f dBm", n, float64(power)),
		})
	}
}
