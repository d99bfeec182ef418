package netconfserver

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// init makes the maps of the edit.
func (p *plan) init() {
	if p.Labels == nil {
		p.Labels, p.Peers, p.Closed = map[ocs.Port]string{}, map[ocs.Port]string{}, map[ocs.Port]bool{}
		p.Monitors, p.VOAs = map[ocs.Port]emulator.Monitor{}, map[ocs.Port]emulator.VOA{}
	}
}

// port changes an entry of a list of ports. One that was deleted goes back to
// its defaults, since a port cannot be removed.
func (p *plan) port(root string, c netconf.Change) *netconf.Error {
	p.init()
	at := c.Before
	if at == nil {
		// Those that there are have been in the tree.
		return invalid("Invalid port: %s", excerpt(c.After.Value("port-id")))
	}
	n, _ := p.view.port(at.Value("port-id"))
	m := p.view.model.roots[xml.Name{Space: opsw, Local: root}].child("port")
	e := entryChange{m, c.Before, c.After}
	d := p.view.dev
	switch root {
	case "port-config":
		p.texts(n, e, "label")
	case "opm-config":
		return p.monitor(n, e, "wavelength", "averaging-time")
	case "opm-alarm-config":
		p.alarm(n, e)
	case "voa":
		return p.voa(n, e)
	case "ports":
		p.texts(n, e, "port-label")
		if e.changed("port-state") {
			p.Closed[n] = e.value("port-state") == "PC_DISABLED"
		}
		opm := e.below("opm")
		if d.HasMonitor(n) {
			if bad := p.monitor(n, opm, "lambda", "averaging-time-select"); bad != nil {
				return bad
			}
			p.oldAlarm(n, opm)
		} else if opm.after != nil {
			return invalid("Port %d has no power monitor", n)
		}
		voa := e.below("voa")
		if d.HasVOA(n) {
			return p.voa(n, voa)
		} else if voa.after != nil {
			return invalid("Port %d has no attenuator", n)
		}
	}
	return nil
}

// entryChange is a list entry, or a container in one, before and after; nil is
// none.
type entryChange struct {
	model         *schemaNode
	before, after *netconf.Node
}

func (e entryChange) below(local string) entryChange {
	return entryChange{e.model.child(local), e.before.Child("", local), e.after.Child("", local)}
}

// leaf returns the model of a leaf in any namespace.
func (e entryChange) leaf(local string) *schemaNode {
	for name, c := range e.model.children {
		if name.Local == local {
			return c
		}
	}
	panic(local + " is not in the schema")
}

// value returns what a leaf will be.
func (e entryChange) value(local string) string { return e.in(e.after, local) }

func (e entryChange) in(n *netconf.Node, local string) string {
	if c := n.Child("", local); c != nil {
		return c.Text
	}
	return e.leaf(local).preset
}

// changed reports whether one of some leaves will be another.
func (e entryChange) changed(locals ...string) bool {
	return slices.ContainsFunc(locals, func(l string) bool { return e.in(e.before, l) != e.in(e.after, l) })
}

// number returns what a decimal leaf will be.
func (e entryChange) number(local string) float64 {
	x, err := strconv.ParseFloat(e.value(local), 64)
	if err != nil {
		panic(err) // the schema has seen it
	}
	return x
}

func (p *plan) texts(n ocs.Port, e entryChange, label string) {
	if e.changed(label) {
		p.Labels[n] = e.value(label)
	}
	if e.changed("peer-port") {
		p.Peers[n] = e.value("peer-port")
	}
}

func (p *plan) monitor(n ocs.Port, e entryChange, wavelength, averaging string) *netconf.Error {
	if e.changed(wavelength, "offset", averaging) {
		step, _ := strconv.Atoi(e.value(averaging))
		p.Monitors[n] = emulator.Monitor{Wavelength: e.number(wavelength), Offset: ocs.DB(e.number("offset")), Averaging: step}
	}
	return nil
}

func (p *plan) voa(n ocs.Port, e entryChange) *netconf.Error {
	if !e.changed("atten-mode", "atten-level", "reference-port") {
		return nil
	}
	v := emulator.VOA{Mode: emulator.VOAMode(strings.TrimPrefix(e.value("atten-mode"), voaPrefix))}
	switch v.Mode {
	case emulator.VOARelative:
		ref, ok := p.view.port(e.value("reference-port"))
		if !ok && ref != 0 {
			return invalid("Invalid port: %s", excerpt(e.value("reference-port")))
		}
		v.Reference = ref
		v.Level = e.number("atten-level")
	case emulator.VOAAbsolute, emulator.VOAConverged:
		v.Level = e.number("atten-level")
	}
	p.VOAs[n] = v
	return nil
}

func (p *plan) alarm(n ocs.Port, e entryChange) {
	p.notes().setPort(n, "alarm-clear-holdoff", e.value("alarm-clear-holdoff"), e.leaf("alarm-clear-holdoff").preset)
	if !e.changed("mode", "signal-low-threshold", "signal-degrade-threshold", "signal-high-threshold") {
		return
	}
	mode := emulator.AlarmOff
	if e.value("mode") == alarmEnabled {
		mode = emulator.AlarmContinuous
	}
	high := ocs.DBm(e.number("signal-high-threshold"))
	p.setAlarms(n, alarmPair{
		LOS:      emulator.Alarm{Mode: mode, Edge: emulator.EdgeLow, Low: ocs.DBm(e.number("signal-low-threshold")), High: high},
		Degraded: emulator.Alarm{Mode: mode, Edge: emulator.EdgeLow, Low: ocs.DBm(e.number("signal-degrade-threshold")), High: high},
	})
}

func (p *plan) oldAlarm(n ocs.Port, e entryChange) {
	for _, name := range slices.Concat(oldTexts, oldAddedTexts) {
		if e.changed(name) {
			p.notes().setPort(n, name, e.value(name), e.leaf(name).preset)
		}
	}
	if !e.changed("power-alarm-control", "power-low-alarm", "power-high-alarm", "power-low-warning-offset") {
		return
	}
	mode := emulator.AlarmOff
	switch e.value("power-alarm-control") {
	case alarmSingle:
		mode = emulator.AlarmSingle
	case alarmContinuous:
		mode = emulator.AlarmContinuous
	}
	los := emulator.Alarm{Mode: mode, Edge: emulator.EdgeLow, Low: ocs.DBm(e.number("power-low-alarm")), High: ocs.DBm(e.number("power-high-alarm"))}
	warning := los
	if offset := e.number("power-low-warning-offset"); offset > 0 {
		warning.Low += ocs.DBm(offset)
	} else {
		warning.Mode = emulator.AlarmOff
	}
	p.setAlarms(n, alarmPair{los, warning})
}

// setAlarms plans alarms and notes them.
func (p *plan) setAlarms(n ocs.Port, a alarmPair) {
	p.alarms[n] = a
	p.notes().Alarms[n] = a
}
