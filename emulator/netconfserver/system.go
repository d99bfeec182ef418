package netconfserver

import (
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// Startup modes and what they are to the device.
const (
	startupMode  = "startup-mode"
	modeVolatile = "MODE_VOLATILE"
	modePreserve = "MODE_PRESERVE"
)

// system builds system-config from the accounts, the boot mode, and text.
func (v *view) system(w want) *netconf.Node {
	out := netconf.El(opsw, systemConfig)
	add := func(n ...*netconf.Node) { out.Children = append(out.Children, n...) }
	if v.state && w.wants("interface-status") {
		add(netconf.El(opsw, "interface-status", ol("name", "eth0"), ol("ip-address", "127.0.0.1"), ol("gateway", "0.0.0.0"),
			ol("subnet", "255.0.0.0"), ol("broadcast", "127.255.255.255"), ol("hw-addr", "02:00:00:00:00:01")))
	}
	kept := v.notes().root(systemConfig)
	text := func(name string) {
		if kept != nil && w.wants(name) {
			for _, c := range kept.Children {
				if c.Name.Local == name {
					add(v.masked(c))
				}
			}
		}
	}
	text("interface")
	if w.wants("user") {
		add(v.users(kept)...)
	}
	for _, name := range []string{"activity-log", "radius-servers", "ntp-servers", "remote-syslog"} {
		text(name)
	}
	if v.inner || !v.dev.Personality().NETCONF.OpenFlowError {
		text("openflow")
	}
	if w.wants("protocols") {
		add(v.protocols(kept))
	}
	if v.state && w.wants("current-datetime") {
		add(ol("current-datetime", stamp(v.dev.Now())))
	}
	if v.state && w.wants("boot-datetime") {
		add(ol("boot-datetime", stamp(v.srv.bootTime())))
	}
	text("alarm-clear-hysteresis")
	mode := modePreserve
	if v.dev.BootMode() == ocs.BootDark {
		mode = modeVolatile
	}
	add(pl(startupMode, mode))
	return out
}

// masked returns n without secrets, unless they are needed for an edit.
func (v *view) masked(n *netconf.Node) *netconf.Node {
	if v.inner || len(n.Children) == 0 {
		return n
	}
	out := &netconf.Node{Name: n.Name, Attrs: n.Attrs}
	for _, c := range n.Children {
		if c.Name.Local != "secret" {
			out.Children = append(out.Children, v.masked(c))
		}
	}
	return out
}

// users returns the accounts, without passwords.
func (v *view) users(kept *netconf.Node) []*netconf.Node {
	var list []*netconf.Node
	for _, u := range v.dev.Users() {
		n := netconf.El(opsw, "user", ol("name", u.Name))
		more := []*netconf.Node{ol("type", "LOCAL_USER")}
		if k := userOf(kept, u.Name); k != nil {
			more = k.Children[1:] // without the name
		}
		n.Children = append(append(n.Children, more...), pl("group", strings.ToLower(string(u.Group))))
		list = append(list, n)
	}
	return list
}

// userOf returns the account of that name below system-config, or nil.
func userOf(system *netconf.Node, name string) *netconf.Node {
	if system == nil {
		return nil
	}
	for _, c := range system.Children {
		if c.Is(opsw, "user") && c.Value("name") == name {
			return c
		}
	}
	return nil
}

// entry returns the child of n, which may be nil, that has a key of that value,
// or nil.
func entry(n *netconf.Node, key, value string) *netconf.Node {
	if n == nil {
		return nil
	}
	for _, c := range n.Children {
		if c.Value(key) == value {
			return c
		}
	}
	return nil
}

// tcpPorts are where the protocols are reached by default.
var tcpPorts = map[emulator.Protocol]int{emulator.SpeaksTL1: 3082, emulator.SpeaksSCPI: 5025, emulator.SpeaksNETCONF: 830}

func (v *view) protocols(kept *netconf.Node) *netconf.Node {
	out := netconf.El(opsw, "protocols")
	for i, p := range v.dev.Personality().Speaks {
		id := strconv.Itoa(i + 1)
		enabled := "true"
		if k := entry(kept.Child(opsw, "protocols"), "protocol-id", id); k.Child(opsw, "enabled") != nil {
			enabled = k.Value("enabled")
		}
		n := netconf.El(opsw, "protocol", ol("protocol-id", id))
		if v.state {
			n.Children = append(n.Children, ol("protocol-name", strings.ToUpper(string(p))), ol("protocol-type", "TCP"), ol("protocol-port", strconv.Itoa(tcpPorts[p])))
		}
		n.Children = append(n.Children, ol("enabled", enabled))
		out.Children = append(out.Children, n)
	}
	return out
}

// stamp is a date-and-time.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// bootTime returns when the network card came up, as far as sessions have seen
// it.
func (s *Server) bootTime() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.booted
}
