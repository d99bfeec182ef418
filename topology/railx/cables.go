package railx

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology"
)

// ErrCables: fibres that do not do: a port that is not cabled, or used twice, or light that goes nowhere. Test with
// errors.Is.
var ErrCables = errors.New("the cables do not fit")

// SwitchPorts says for each duplex port of a switch of the grid what hangs on it: the NIC, the ingress that it sends
// into and the egress that it receives from. One that is zero is not cabled.
type SwitchPorts []topology.NIC

// Cables says how a grid is cabled. It is data: the duplex ports of a switch of the grid may be any ports of any
// switch of the lab, and several switches of the grid may be parts of one of the lab's.
type Cables map[Switch]SwitchPorts

// Regular returns cables for examples and tests, in which each switch of the grid is one of the lab's, named such as
// "x2-0" for X/2/0 and with size ingress ports, numbered from 1, and as many egress ports after them: duplex port p
// sends into ingress p+1 and receives from egress p+1+size. A size of 0 is as many as the grid takes. NICs are named
// such as "n2-3/x0p" for the "+" of rail X/0 of node (2,3), and "n2-3/x0m" for its "-". The error matches ErrGrid or
// ErrCables.
func Regular(g Grid, size int) (Cables, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if need := max(g.Ports(X), g.Ports(Y)); size == 0 {
		size = need
	} else if size < need || size > int(ocs.MaxPort)/2 {
		return nil, fmt.Errorf("%w: switches of %d ports a side, and the grid takes %d: want %[2]d to %d",
			ErrCables, size, need, int(ocs.MaxPort)/2)
	}
	cables := make(Cables, g.Rails*(g.Columns+g.Rows))
	for i := range g.Rails * (g.Columns + g.Rows) {
		s := g.at(i)
		name := fmt.Sprintf("%s%d-%d", strings.ToLower(s.Dimension.String()), s.Group, s.Rail)
		ports := make(SwitchPorts, g.Ports(s.Dimension))
		for p := range ports {
			v, plus := Port(p).Node()
			n, side := s.node(v), "m"
			if plus {
				side = "p"
			}
			ports[p] = topology.NIC{
				Name: fmt.Sprintf("n%d-%d/%s%d%s", n.Column, n.Row, strings.ToLower(s.Dimension.String()), s.Rail, side),
				Tx:   topology.Port{Switch: name, Port: ocs.Port(p + 1)},
				Rx:   topology.Port{Switch: name, Port: ocs.Port(p + 1 + size)},
			}
		}
		cables[s] = ports
	}
	return cables, nil
}

// Check returns why the cables cannot be: two duplex ports on one port of a switch. The error matches ErrCables.
func (c Cables) Check() error {
	tx, rx := map[topology.Port]string{}, map[topology.Port]string{}
	for _, s := range slices.SortedFunc(maps.Keys(c), compareSwitches) {
		for p, nic := range c[s] {
			if nic == (topology.NIC{}) {
				continue
			}
			here := fmt.Sprintf("port %d of %v", p, s)
			if !(ocs.CrossConnect{Ingress: nic.Tx.Port, Egress: nic.Rx.Port}).Valid() {
				return fmt.Errorf("%w: %s is cabled to %v and %v: want ports from 1 to %d",
					ErrCables, here, nic.Tx, nic.Rx, ocs.MaxPort)
			}
			if other, taken := tx[nic.Tx]; taken {
				return fmt.Errorf("%w: %s and %s both send into %v", ErrCables, other, here, nic.Tx)
			}
			if other, taken := rx[nic.Rx]; taken {
				return fmt.Errorf("%w: %s and %s both receive from %v", ErrCables, other, here, nic.Rx)
			}
			tx[nic.Tx], rx[nic.Rx] = here, here
		}
	}
	return nil
}

// Maps returns the circuits of all switches of the lab: two cross-connects for each link. A switch that is cabled for
// the configuration and has no links gets an empty map, since whatever it has must go. The error matches ErrCables.
func (c *Config) Maps(cables Cables) (map[string]ocs.Map, error) {
	links := map[Switch][]Link{}
	for _, s := range c.Switches() {
		links[s] = c.on(s)
	}
	return cables.Maps(links)
}

// Maps is Config.Maps for any links, such as those of jobs that share the grid; see Together. Cables should have
// passed Check.
func (c Cables) Maps(links map[Switch][]Link) (map[string]ocs.Map, error) {
	circuits := map[string][]ocs.CrossConnect{}
	for _, s := range slices.SortedFunc(maps.Keys(links), compareSwitches) {
		ports := c[s]
		for _, nic := range ports {
			if name := nic.Tx.Switch; name != "" && circuits[name] == nil {
				circuits[name] = []ocs.CrossConnect{}
			}
		}
		for _, l := range links[s] {
			for _, way := range [2]Link{l, {l.Minus, l.Plus}} {
				from, err := ports.at(s, way.Plus)
				if err != nil {
					return nil, err
				}
				to, err := ports.at(s, way.Minus)
				if err != nil {
					return nil, err
				}
				if from.Tx.Switch != to.Rx.Switch {
					return nil, fmt.Errorf("%w: %v: no switch joins ports %d and %d: one sends into %v, the other receives from %v",
						ErrCables, s, way.Plus, way.Minus, from.Tx, to.Rx)
				}
				cc := ocs.CrossConnect{Ingress: from.Tx.Port, Egress: to.Rx.Port}
				circuits[from.Tx.Switch] = append(circuits[from.Tx.Switch], cc)
			}
		}
	}
	all := make(map[string]ocs.Map, len(circuits))
	for _, name := range slices.Sorted(maps.Keys(circuits)) {
		m, err := ocs.NewMap(circuits[name]...)
		if err != nil {
			return nil, fmt.Errorf("%w: switch %s: %w", ErrCables, name, err)
		}
		all[name] = m
	}
	return all, nil
}

// at returns what hangs on a duplex port.
func (p SwitchPorts) at(s Switch, port Port) (topology.NIC, error) {
	if port < 0 || int(port) >= len(p) || p[port] == (topology.NIC{}) {
		return topology.NIC{}, fmt.Errorf("%w: %v: port %d is not cabled", ErrCables, s, port)
	}
	return p[port], nil
}

// Links is the inverse of Maps: it returns the links that the circuits of the lab's switches make, by switch of the
// grid. What is wrong with them as rings is for Config.Check to find; but light that goes one way only, or to a port
// that is not cabled to the same switch of the grid, is no link, and an error that matches ErrCables. Circuits that
// begin at none of these ports are not looked at.
func (c Cables) Links(circuits map[string]ocs.Map) (map[Switch][]Link, error) {
	all := make(map[Switch][]Link, len(c))
	for _, s := range slices.SortedFunc(maps.Keys(c), compareSwitches) {
		ports := c[s]
		receiver := make(map[topology.Port]Port, len(ports))
		for p, nic := range ports {
			if nic.Rx.Port != 0 {
				receiver[nic.Rx] = Port(p)
			}
		}
		to := make([]Port, len(ports))
		for p, nic := range ports {
			to[p] = -1
			egress, lit := circuits[nic.Tx.Switch].EgressOf(nic.Tx.Port)
			if !lit {
				continue
			}
			q, known := receiver[topology.Port{Switch: nic.Tx.Switch, Port: egress}]
			if !known {
				return nil, fmt.Errorf("%w: %v: the light of port %d goes to %s/%d, which is not cabled to %[2]v",
					ErrCables, s, p, nic.Tx.Switch, egress)
			}
			to[p] = q
		}
		all[s] = nil
		for p, q := range to {
			if q < 0 {
				continue
			}
			if q == Port(p) {
				return nil, fmt.Errorf("%w: %v: the light of port %d comes back to it", ErrCables, s, p)
			}
			if to[q] != Port(p) {
				return nil, fmt.Errorf("%w: %v: light goes from port %d to port %d, and not back", ErrCables, s, p, q)
			}
			if l := (Link{Port(p), q}); p%2 == 0 && (q%2 == 1 || Port(p) < q) || p%2 == 1 && q%2 == 1 && Port(p) < q {
				all[s] = append(all[s], l)
			}
		}
	}
	return all, nil
}
