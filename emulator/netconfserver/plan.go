package netconfserver

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// badEgress is what the device says of an egress that it does not have.
const badEgress = "Either the port is invalid or it does not have switching capability"

// plan is what an edit comes to at the device.
type plan struct {
	emulator.Edit
	view   *view
	after  []*netconf.Node // roots as they will be
	users  []func([]emulator.User) ([]emulator.User, error)
	alarms map[ocs.Port]alarmPair
	text   *notes // nil if nothing of it changes
}

func newPlan(v *view, after []*netconf.Node) *plan {
	return &plan{view: v, after: after, alarms: map[ocs.Port]alarmPair{}}
}

// notes returns the text to change.
func (p *plan) notes() *notes {
	if p.text == nil {
		p.text = p.view.notes().clone()
	}
	return p.text
}

// carryOut changes the device, all or nothing.
func (p *plan) carryOut(by *emulator.Session) (emulator.Operation, error) {
	if len(p.users) > 0 {
		p.Users = func(us []emulator.User) (_ []emulator.User, err error) {
			for _, change := range p.users {
				if us, err = change(us); err != nil {
					return nil, err
				}
			}
			return us, nil
		}
	}
	if p.text != nil {
		text := p.text.String()
		p.Notes = &text
	}
	op, err := p.view.dev.Edit(by, p.Edit)
	if err != nil {
		return op, err
	}
	for port, a := range p.alarms {
		setAlarms(p.view.dev, port, a)
	}
	return op, nil
}

// change adds one change of the configuration.
func (p *plan) change(c netconf.Change) *netconf.Error {
	switch root := rootOf(c.Path); root {
	case "cross-connects":
		return p.circuit(c)
	case "port-config", "ports", "opm-config", "opm-alarm-config", "voa":
		return p.port(root, c)
	case systemConfig:
		return p.system(c)
	default:
		p.notes().setRoot(root, p.root(root))
		return nil
	}
}

// root returns a root as it will be, or nil.
func (p *plan) root(local string) *netconf.Node {
	for _, n := range p.after {
		if n.Name.Local == local {
			return n.Clone()
		}
	}
	return nil
}

func invalid(format string, args ...any) *netconf.Error {
	return netconf.NewError(netconf.TypeApplication, netconf.InvalidValue, format, args...)
}

func (p *plan) circuit(c netconf.Change) *netconf.Error {
	g := p.view.dev.Geometry()
	if c.Before != nil {
		in, _ := p.view.port(c.Before.Value("ingress"))
		out, _ := p.view.port(c.Before.Value("egress"))
		p.DropPairs = append(p.DropPairs, ocs.CrossConnect{Ingress: in, Egress: out})
	}
	if c.After == nil {
		return nil
	}
	in, ok := p.view.port(c.After.Value("ingress"))
	if !ok || !g.IsIngress(in) {
		return invalid("Invalid OXC port: %s", c.After.Value("ingress"))
	}
	out, ok := p.view.port(c.After.Value("egress"))
	if !ok || !g.IsEgress(out) || out == in {
		return invalid("/cross-connects/%s[ingress='%d'] : %s", p.view.model.list, in, badEgress)
	}
	p.Add = append(p.Add, ocs.CrossConnect{Ingress: in, Egress: out})
	return nil
}

// system changes something below system-config.
func (p *plan) system(c netconf.Change) *netconf.Error {
	at := c.After
	if at == nil {
		at = c.Before
	}
	switch {
	case at.Is(plts, startupMode):
		p.Boot = ocs.BootRestore
		if c.After != nil && c.After.Text == modeVolatile {
			p.Boot = ocs.BootDark
		}
		return nil
	case at.Is(opsw, "user"):
		p.users = append(p.users, changeUser(c))
	case at.Is(opsw, "protocol") && c.Before == nil:
		return invalid("There is no protocol %s", excerpt(c.After.Value("protocol-id")))
	}
	p.notes().setRoot(systemConfig, p.systemText())
	return nil
}

// systemText returns what of system-config is kept as text.
func (p *plan) systemText() *netconf.Node {
	out := p.root(systemConfig)
	var kept []*netconf.Node
	for _, c := range out.Children {
		switch {
		case c.Is(plts, startupMode), c.Is(opsw, "protocols") && len(c.Children) == 0:
			continue
		case c.Is(opsw, "user"):
			u := netconf.El(opsw, "user", c.Child(opsw, "name"), c.Child(opsw, "type"))
			for _, k := range c.Children {
				if k.Is(opsw, "authorized-key") {
					u.Children = append(u.Children, k)
				}
			}
			if len(u.Children) == 2 && u.Value("type") == "LOCAL_USER" {
				continue
			}
			c = u
		}
		kept = append(kept, c)
	}
	out.Children = kept
	return out
}

// changeUser returns the change of the accounts. A password that is not told
// stays as it is; a new account has none until it is.
func changeUser(c netconf.Change) func([]emulator.User) ([]emulator.User, error) {
	return func(us []emulator.User) ([]emulator.User, error) {
		if c.After == nil {
			name := c.Before.Value("name")
			return slices.DeleteFunc(us, func(u emulator.User) bool { return u.Name == name }), nil
		}
		name := c.After.Value("name")
		i := slices.IndexFunc(us, func(u emulator.User) bool { return u.Name == name })
		if i < 0 {
			i = len(us)
			us = append(us, emulator.User{Name: name})
		}
		us[i].Group = emulator.Operator
		if g := c.After.Value("group"); g != "" {
			if err := us[i].Group.UnmarshalText([]byte(g)); err != nil {
				return nil, fmt.Errorf("group of user %s: %w", name, err)
			}
		}
		if pw := c.After.Child(opsw, "password"); pw != nil {
			us[i].Password = pw.Text
		}
		return us, nil
	}
}
