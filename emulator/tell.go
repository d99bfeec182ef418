package emulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/ocs"
)

// tellEditLocked tells what an edit is about to change beside cross-connects and
// shutters.
func (d *Device) tellEditLocked(by *Session, e *Edit, users []User) {
	if !d.heardLocked() {
		return
	}
	tell := func(category, format string, args ...any) {
		d.publishLocked(Event{Kind: ActivityEvent, Condition: category, Text: fmt.Sprintf(format, args...), By: by.infoLocked()})
	}
	ports := func(category, what string, changed []ocs.Port) {
		if len(changed) > 0 {
			noun := "port"
			if len(changed) > 1 {
				noun = "ports"
			}
			tell(category, "%s of %s %s changed", what, noun, ocs.FormatPorts(changed))
		}
	}
	ports("SYSTEM", "Label", changed(e.Labels, func(n ocs.Port) string { return d.labels[n] }))
	ports("SYSTEM", "Peer", changed(e.Peers, func(n ocs.Port) string { return d.peers[n] }))
	ports("OPM", "Monitor", changed(e.Monitors, func(n ocs.Port) Monitor { return d.monitorLocked(Forward, n) }))
	ports("OPM", "Reverse monitor", changed(e.ReverseMonitors, func(n ocs.Port) Monitor { return d.monitorLocked(Reverse, n) }))
	ports("OPM", "Attenuator", changed(e.VOAs, d.voaLocked))
	if e.Boot != "" && e.Boot != d.boot {
		tell("SYSTEM", "Boot mode set to %s", e.Boot)
	}
	if text := describeUsers(d.users, users); text != "" {
		tell("USER", "%s", text)
	}
}

// changed returns the ports, ascending, of settings that are not what they are
// now.
func changed[T comparable](to map[ocs.Port]T, now func(ocs.Port) T) (ports []ocs.Port) {
	for n, v := range to {
		if v != now(n) {
			ports = append(ports, n)
		}
	}
	slices.Sort(ports)
	return ports
}

// describeUsers says a change of the accounts in words, without passwords.
func describeUsers(before, after []User) string {
	if slices.Equal(before, after) {
		return ""
	}
	byName := func(us []User) map[string]User {
		m := map[string]User{}
		for _, u := range us {
			m[u.Name] = u
		}
		return m
	}
	was, is := byName(before), byName(after)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if u, stays := is[name]; !stays {
			parts = append(parts, "user "+name+" removed")
		} else if u != was[name] {
			parts = append(parts, "user "+name+" changed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, known := was[name]; !known {
			parts = append(parts, "user "+name+" added as "+string(is[name].Group))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, ", ")
	return "U" + text[1:]
}

func (d *Device) tellCircuitsLocked(by *Session, gone, made []ocs.CrossConnect) {
	if len(gone)+len(made) == 0 || !d.heardLocked() {
		return
	}
	change := ocs.Change{Remove: ocs.MustMap(gone...), Add: ocs.MustMap(made...)}
	d.publishLocked(Event{Kind: CircuitEvent, Condition: "OXC", Text: describe(change), Change: change, By: by.infoLocked()})
}

// describe says a change of circuits in words.
func describe(c ocs.Change) string {
	var parts []string
	for _, p := range []struct {
		m    ocs.Map
		text string
	}{{c.Remove, "disconnected"}, {c.Add, "connected"}} {
		if p.m.Len() > 0 {
			parts = append(parts, p.text+" "+p.m.String())
		}
	}
	return strings.Join(parts, ", ")
}
