package lab

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/emulator"
)

// YAML returns the text of a lab file that [Parse] reads as f. Comments and the
// order of names are not kept.
func (f *File) YAML() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if f.Name != "" {
		line("name: %q", f.Name)
	}
	line("switches:")
	for _, s := range f.Switches {
		line("  - name: %q", s.Name)
		if s.URL != "" {
			line("    url: %q", s.URL)
		}
		for i, u := range s.Also {
			if i == 0 {
				line("    also:")
			}
			line("      - %q", u)
		}
		if s.Password != "" {
			line("    password: %q", string(s.Password))
		}
		if e := s.Emulate; e != nil {
			line("    emulate:")
			line("      model: %q", e.Model)
			if e.Switching != nil {
				line("      switching: %v", *e.Switching)
			}
			if e.Jitter != nil {
				line("      jitter: %v", *e.Jitter)
			}
			if e.Seed != nil {
				line("      seed: %d", *e.Seed)
			}
			if e.Ack != "" {
				line("      ack: %q", e.Ack)
			}
			if e.Busy != "" {
				line("      busy: %q", e.Busy)
			}
			if len(e.PortLoss) > 0 {
				var list []string
				for _, p := range slices.Sorted(maps.Keys(e.PortLoss)) {
					list = append(list, fmt.Sprintf("%d: %s", p, lossText(e.PortLoss[p])))
				}
				line("      port_loss_db: {%s}", strings.Join(list, ", "))
			}
			if len(e.PathLoss) > 0 {
				var list []string
				for _, p := range emulator.SortedPaths(e.PathLoss) {
					list = append(list, fmt.Sprintf("%q: %s", p.String(), lossText(e.PathLoss[p])))
				}
				line("      path_loss_db: {%s}", strings.Join(list, ", "))
			}
		}
	}
	if len(f.Hosts) > 0 {
		line("hosts:")
	}
	for _, h := range f.Hosts {
		line("  - name: %q", h.Name)
		if h.NetNS != "" {
			line("    netns: %q", h.NetNS)
		}
		if len(h.Agent) > 0 {
			line("    agent: %s", quoted(h.Agent))
		}
		if h.Tree != "" {
			line("    tree: %q", h.Tree)
		}
		if len(h.NICs) > 0 {
			line("    nics:")
		}
		for _, n := range h.NICs {
			more := ""
			if n.Firmware != "" {
				more = fmt.Sprintf(", firmware: %q", n.Firmware)
			}
			if n.Emulate != nil {
				more += ", emulate: " + n.Emulate.yaml()
			}
			line("      - {name: %q, tx: %q, rx: %q%s}", n.Name, n.Tx.String(), n.Rx.String(), more)
		}
	}
	if len(f.Cables) > 0 {
		line("cables:")
	}
	for _, c := range f.Cables {
		line("  - %s", c.yaml())
	}
	if len(f.Protect) > 0 {
		var ports []string
		for _, p := range f.Protect {
			ports = append(ports, p.String())
		}
		line("protect: %s", quoted(ports))
	}
	if len(f.Configurations) > 0 {
		line("configurations:")
	}
	for _, name := range f.ConfigNames() {
		c := f.Configurations[name]
		if len(c.Maps)+len(c.Links) == 0 {
			line("  %q: {}", name)
			continue
		}
		line("  %q:", name)
		if len(c.Maps) > 0 {
			line("    maps:")
		}
		for _, sw := range slices.Sorted(maps.Keys(c.Maps)) {
			line("      %q: %q", sw, c.Maps[sw].String())
		}
		if len(c.Links) > 0 {
			line("    links:")
		}
		for _, pair := range c.Links {
			line("      - %s", quoted(pair))
		}
	}
	return b.Bytes()
}

// yaml writes it on one line.
func (e *NICEmulate) yaml() string {
	var list []string
	add := func(given bool, key, value string) {
		if given {
			list = append(list, key+": "+value)
		}
	}
	add(e.Tx != PortRef{}, "tx", fmt.Sprintf("%q", e.Tx.String()))
	add(e.Rx != PortRef{}, "rx", fmt.Sprintf("%q", e.Rx.String()))
	add(e.TxLoss != 0, "tx_loss_db", lossText(e.TxLoss))
	add(e.RxLoss != 0, "rx_loss_db", lossText(e.RxLoss))
	add(len(e.Dead) > 0, "dead", quoted(e.Dead))
	return "{" + strings.Join(list, ", ") + "}"
}

// quoted writes a list in one line.
func quoted(list []string) string {
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(q, ", ") + "]"
}
