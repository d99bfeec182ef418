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

func (v *view) crossConnects(w want) *netconf.Node {
	list := netconf.El(opsw, "cross-connects")
	each, ok := w.of(v.model.list)
	if !ok {
		return list
	}
	pair := func(c ocs.CrossConnect) {
		list.Children = append(list.Children, netconf.El(opsw, v.model.list, ol("ingress", c.Ingress.String()), ol("egress", c.Egress.String())))
	}
	m := v.circuits()
	keys, all := each.keys("ingress")
	if all {
		list.Children = make([]*netconf.Node, 0, m.Len())
		for c := range m.All() {
			pair(c)
		}
		return list
	}
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		p, _ := v.port(k)
		for _, c := range m.At(p) {
			if c.Ingress == p {
				pair(c)
			}
		}
	}
	return list
}

func (v *view) anyPort(ocs.Port) bool { return true }

// status is what the three lists of ports call the state of one.
func (v *view) status(p ocs.Port, enabled, disabled, failed string) string {
	switch {
	case v.dev.Failed(p):
		return failed
	case v.dev.ShutterClosed(p):
		return disabled
	}
	return enabled
}

func (v *view) portConfig(w want) *netconf.Node {
	return v.portList(xml.Name{Space: opsw, Local: "port-config"}, w, v.anyPort, func(p ocs.Port, _ want) []*netconf.Node {
		l := []*netconf.Node{ol("label", v.dev.Label(p)), ol("peer-port", v.dev.Peer(p))}
		if v.state {
			l = slices.Insert(l, 0, ol("status", v.status(p, "ENABLED", "DISABLED", "FAILED")))
		}
		return l
	})
}

func (v *view) monitors(w want) *netconf.Node {
	return v.portList(xml.Name{Space: opsw, Local: "opm-config"}, w, v.dev.HasMonitor, func(p ocs.Port, _ want) []*netconf.Node {
		m := v.dev.Monitor(emulator.Forward, p)
		return []*netconf.Node{
			ol("wavelength", number(m.Wavelength)), ol("offset", number(float64(m.Offset))), ol("averaging-time", strconv.Itoa(m.Averaging)),
		}
	})
}

// Modes of opm-alarm-config and of the older container.
const (
	alarmDisabled   = "POWER_ALARM_DISABLED"
	alarmEnabled    = "POWER_ALARM_ENABLED"
	alarmSingle     = "POWER_ALARM_SINGLE"
	alarmContinuous = "POWER_ALARM_CONTINUOUS"
)

func (v *view) alarms(w want) *netconf.Node {
	return v.portList(xml.Name{Space: opsw, Local: "opm-alarm-config"}, w, v.dev.HasMonitor, func(p ocs.Port, _ want) []*netconf.Node {
		los := v.dev.Alarm(emulator.Forward, p, emulator.LossOfSignal)
		degraded := v.dev.Alarm(emulator.Forward, p, emulator.Degraded)
		mode := alarmEnabled
		if los.Mode == emulator.AlarmOff {
			mode = alarmDisabled
		}
		return []*netconf.Node{
			ol("mode", mode), ol("signal-low-threshold", number(float64(los.Low))),
			ol("signal-degrade-threshold", number(float64(degraded.Low))), ol("signal-high-threshold", number(float64(los.High))),
			ol("alarm-clear-holdoff", v.notes().port(p, "alarm-clear-holdoff", "0")),
		}
	})
}

const voaPrefix = "VOA_MODE_"

// voa returns the leaves of an attenuator.
func (v *view) voa(p ocs.Port) []*netconf.Node {
	a := v.dev.VOA(p)
	if a.Mode == "" {
		a.Mode = emulator.VOANone
	}
	l := []*netconf.Node{ol("atten-mode", voaPrefix+string(a.Mode))}
	switch a.Mode {
	case emulator.VOARelative:
		return append(l, ol("atten-level", number(a.Level)), ol("reference-port", a.Reference.String()))
	case emulator.VOAAbsolute, emulator.VOAConverged:
		return append(l, ol("atten-level", number(a.Level)))
	}
	return l
}

func (v *view) voas(w want) *netconf.Node {
	return v.portList(xml.Name{Space: opsw, Local: "voa"}, w, v.dev.HasVOA, func(p ocs.Port, _ want) []*netconf.Node { return v.voa(p) })
}

// ports is the deprecated container that has everything about a port.
func (v *view) ports(w want) *netconf.Node {
	return v.portList(xml.Name{Space: opsw, Local: "ports"}, w, v.anyPort, func(p ocs.Port, each want) []*netconf.Node {
		state := "PC_ENABLED"
		if v.dev.ShutterClosed(p) {
			state = "PC_DISABLED"
		}
		l := []*netconf.Node{ol("port-label", v.dev.Label(p)), ol("port-state", state)}
		if v.state {
			l = append(l, ol("port-status", v.status(p, "PO_ENABLED", "PO_DISABLED", "PO_FAILED")))
		}
		l = append(l, ol("peer-port", v.dev.Peer(p)))
		if opm, ok := each.of("opm"); ok && v.dev.HasMonitor(p) {
			l = append(l, v.oldMonitor(p, opm))
		}
		if each.wants("voa") && v.dev.HasVOA(p) {
			a := netconf.El(opsw, "voa", v.voa(p)...)
			if v.state {
				a.Children = append(a.Children, pl("polatis-atten-modes", voaPrefix+string(emulator.VOAConverged)))
			}
			l = append(l, a)
		}
		if v.state {
			l = append(l, pl("fibre-id", "NA"))
		}
		return l
	})
}

// oldTexts are leaves of an old monitor that mean nothing to the device.
var oldTexts = []string{"power-high-warning-offset", "power-low-warning-offset"}
var oldAddedTexts = []string{"power-alarm-hysteresis", "power-alarm-clear-holdoff"}

func (v *view) oldMonitor(p ocs.Port, w want) *netconf.Node {
	m := v.dev.Monitor(emulator.Forward, p)
	a := v.dev.Alarm(emulator.Forward, p, emulator.LossOfSignal)
	schema := v.model.roots[xml.Name{Space: opsw, Local: "ports"}].child("port").child("opm")
	high, low := number(float64(a.High)), number(float64(a.Low))
	if a.Mode == emulator.AlarmOff && a.High == factoryHigh && a.Low == factoryLow {
		high, low = schema.child("power-high-alarm").preset, schema.child("power-low-alarm").preset
	}
	control, status := alarmDisabled, "POWER_ALARM_STATUS_OFF"
	switch a.Mode {
	case emulator.AlarmSingle:
		control, status = alarmSingle, "POWER_ALARM_STATUS_ARMED"
	case emulator.AlarmContinuous:
		control, status = alarmContinuous, "POWER_ALARM_STATUS_ARMED"
	}
	if a.Triggered {
		status = "POWER_ALARM_STATUS_TRIGGERED"
	}
	l := []*netconf.Node{ol("lambda", number(m.Wavelength)), ol("power-high-alarm", high), ol("power-low-alarm", low)}
	for _, name := range oldTexts {
		l = append(l, ol(name, v.notes().port(p, name, schema.child(name).preset)))
	}
	l = append(l, ol("power-alarm-control", control))
	if v.state {
		l = append(l, ol("power-alarm-status", status))
		if w.wants("power") {
			l = append(l, ol("power", reading(v.dev.Power(p))))
		}
	}
	l = append(l, pl("offset", number(float64(m.Offset))), pl("averaging-time-select", strconv.Itoa(m.Averaging)))
	for _, name := range oldAddedTexts {
		l = append(l, pl(name, v.notes().port(p, name, schema.children[xml.Name{Space: plts, Local: name}].preset)))
	}
	return netconf.El(opsw, "opm", l...)
}

// Thresholds of the device before anybody sets them.
const (
	factoryLow  ocs.DBm = -60
	factoryHigh ocs.DBm = 25
)

// keptRoot builds a root that is text to the device.
func keptRoot(name string) func(*view, want) *netconf.Node {
	return func(v *view, _ want) *netconf.Node { return v.notes().root(name) }
}

// groups adds to the text which group each is connected to.
func (v *view) groups(want) *netconf.Node {
	kept := v.notes().root("groups")
	if kept == nil || !v.state {
		return kept
	}
	out := netconf.El(opsw, "groups")
	m := v.circuits()
	for _, g := range kept.Children {
		g = netconf.El(opsw, "group", g.Children...)
		for _, other := range kept.Children {
			if ccs, ok := v.joined(g, other); ok && len(ccs) > 0 && !slices.ContainsFunc(ccs, func(c ocs.CrossConnect) bool { return !m.Has(c) }) {
				g.Children = append(slices.Clip(g.Children), ol("connected-group", other.Value("group-name")))
				break
			}
		}
		out.Children = append(out.Children, g)
	}
	return out
}

// joined returns the cross-connects that join the ingress ports of one group to
// the egress ports of another, in order; ok is false if their numbers differ.
func (v *view) joined(from, to *netconf.Node) (ccs []ocs.CrossConnect, ok bool) {
	in, out := portsNamed(from, "ingress"), portsNamed(to, "egress")
	if len(in) != len(out) {
		return nil, false
	}
	for i := range in {
		ccs = append(ccs, ocs.CrossConnect{Ingress: in[i], Egress: out[i]})
	}
	return ccs, true
}

// portsNamed returns the values of a leaf-list of ports.
func portsNamed(n *netconf.Node, local string) (ports []ocs.Port) {
	for _, c := range n.Children {
		if c.Name.Local == local {
			p, _ := strconv.ParseUint(strings.TrimSpace(c.Text), 10, 16) // the schema allows no other
			ports = append(ports, ocs.Port(p))
		}
	}
	return ports
}
