package netconfserver

import (
	"encoding/json"
	"maps"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// notes is what the device keeps for us as text ([emulator.Edit.Notes]): all that
// means nothing to it.
type notes struct {
	// XML are roots of the data tree within <notes>.
	XML string `json:"xml,omitempty"`
	// Ports are leaves of ports that are not at their defaults, by name.
	Ports map[ocs.Port]map[string]string `json:"ports,omitempty"`
	// Alarms are thresholds, which the device forgets when it is restarted.
	Alarms map[ocs.Port]alarmPair `json:"alarms,omitempty"`

	roots *netconf.Node
}

// alarmPair are the two alarms of a monitor.
type alarmPair struct {
	LOS, Degraded emulator.Alarm
}

// parseNotes reads what was kept; what cannot be read is as good as nothing.
func parseNotes(text string) *notes {
	n := &notes{}
	if text != "" && json.Unmarshal([]byte(text), n) != nil {
		n = &notes{}
	}
	if n.XML != "" {
		n.roots, _ = netconf.Parse([]byte(n.XML))
	}
	return n
}

// root returns a root, or nil.
func (n *notes) root(local string) *netconf.Node { return n.roots.Child("", local) }

// port returns a leaf of a port.
func (n *notes) port(p ocs.Port, leaf, preset string) string {
	if text, ok := n.Ports[p][leaf]; ok {
		return text
	}
	return preset
}

// clone returns a copy that can be changed.
func (n *notes) clone() *notes {
	c := &notes{Ports: map[ocs.Port]map[string]string{}, Alarms: map[ocs.Port]alarmPair{}}
	for p, leaves := range n.Ports {
		c.Ports[p] = maps.Clone(leaves)
	}
	maps.Copy(c.Alarms, n.Alarms)
	c.roots = netconf.El("", "notes")
	if n.roots != nil {
		c.roots.Children = append(c.roots.Children, n.roots.Children...)
	}
	return c
}

// setPort notes a leaf of a port, unless it is at its default.
func (n *notes) setPort(p ocs.Port, leaf, text, preset string) {
	if text == "" || text == preset {
		delete(n.Ports[p], leaf)
		if len(n.Ports[p]) == 0 {
			delete(n.Ports, p)
		}
		return
	}
	if n.Ports[p] == nil {
		n.Ports[p] = map[string]string{}
	}
	n.Ports[p][leaf] = text
}

// setRoot notes a root in the place of the one of that name; nil removes it.
func (n *notes) setRoot(local string, root *netconf.Node) {
	var kept []*netconf.Node
	for _, c := range n.roots.Children {
		if c.Name.Local != local {
			kept = append(kept, c)
		}
	}
	if root != nil {
		kept = append(kept, root)
	}
	n.roots.Children = kept
}

// String returns the text that [parseNotes] reads.
func (n *notes) String() string {
	n.XML = ""
	if len(n.roots.Children) > 0 {
		n.XML = n.roots.String()
	}
	text, err := json.Marshal(n)
	if err != nil {
		panic(err) // notes hold nothing that JSON cannot
	}
	if string(text) == "{}" {
		return ""
	}
	return string(text)
}

// rearm sets the alarms that were noted, once: the device has forgotten them
// when it was restarted.
func (s *Server) rearm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed {
		return
	}
	s.armed = true
	for p, a := range parseNotes(s.Device.Notes()).Alarms {
		if s.Device.HasMonitor(p) {
			setAlarms(s.Device, p, a)
		}
	}
}

// setAlarms sets the alarms of a port that has a monitor.
func setAlarms(d *emulator.Device, p ocs.Port, a alarmPair) {
	for kind, alarm := range map[emulator.AlarmType]emulator.Alarm{emulator.LossOfSignal: a.LOS, emulator.Degraded: a.Degraded} {
		if err := d.SetAlarms(emulator.Forward, kind, map[ocs.Port]emulator.Alarm{p: alarm}); err != nil {
			panic(err) // the port has a monitor
		}
	}
}
