package grid

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/railx"
)

// LabOptions of [LabFile].
type LabOptions struct {
	Name      string        // of the lab; "" is "railx"
	Model     string        // of the switches; "" is the smallest the program comes with that has enough ports
	Switching time.Duration // 0 is the model's own
	Seed      uint64
	Hosts     bool // also a host for each node, with a NIC for each end of a rail
}

// maxSwitches is how many switches a lab file may get: each is a server when it is emulated.
const maxSwitches = 4096

// LabFile returns a lab file with an emulated switch for each rail of each row and column. The error matches
// [railx.ErrGrid] for a grid that needs larger switches than there are or than the model is, or more than 4096.
func LabFile(g railx.Grid, opt LabOptions) ([]byte, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	size, need := 0, max(g.Ports(railx.X), g.Ports(railx.Y))
	var fit []string
	for _, m := range lab.SquareModels {
		if m.Ports < need {
			continue
		}
		if fit = append(fit, m.Name); size == 0 && (opt.Model == "" || opt.Model == m.Name) {
			size, opt.Model = m.Ports, m.Name
		}
	}
	n := g.Rails * (g.Columns + g.Rows)
	switch {
	case len(fit) == 0:
		return nil, fmt.Errorf("%w: its switches have %d duplex ports, and no model has more than %d", railx.ErrGrid, need,
			lab.SquareModels[len(lab.SquareModels)-1].Ports)
	case size == 0:
		return nil, fmt.Errorf("%w: a switch of it has %d duplex ports: model %.60q is none that has as many a side: want %s",
			railx.ErrGrid, need, opt.Model, strings.Join(fit, ", "))
	case n > maxSwitches:
		return nil, fmt.Errorf("%w: it has %d switches: a lab file for one with %d or fewer can be written", railx.ErrGrid, n, maxSwitches)
	}
	cables, err := railx.Regular(g, size)
	if err != nil {
		return nil, err
	}
	if opt.Name == "" {
		opt.Name = "railx"
	}
	timing := ""
	if opt.Switching > 0 {
		timing = fmt.Sprintf(", switching: %v", opt.Switching)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# RailX: %d columns and %d rows of nodes with %d rails each way. Switch x3-0 is rail 0 of row 3, y2-1 is rail 1\n"+
		"# of column 2. The node of number v in its row or column has \"+\" at ingress 2v+1 and \"-\" at 2v+2, and\n"+
		"# receives from the egresses of the same places. Give the switches a url to drive real ones.\n", g.Columns, g.Rows, g.Rails)
	fmt.Fprintf(&b, "name: %s\n\nswitches:\n", opt.Name)
	for s := range switches(g) {
		fmt.Fprintf(&b, "  - {name: %s, emulate: {model: %s%s, seed: %d}}\n", cables[s][0].Tx.Switch, opt.Model, timing, opt.Seed)
	}
	if opt.Hosts {
		b.WriteString("\nhosts:\n")
		for row := range g.Rows {
			for column := range g.Columns {
				writeHost(&b, g, railx.Node{Column: column, Row: row}, cables)
			}
		}
	}
	return []byte(b.String()), nil
}

// switches yields the switches of a grid in order.
func switches(g railx.Grid) func(yield func(railx.Switch) bool) {
	return func(yield func(railx.Switch) bool) {
		for _, d := range []railx.Dimension{railx.X, railx.Y} {
			groups := g.Rows
			if d == railx.Y {
				groups = g.Columns
			}
			for group := range groups {
				for rail := range g.Rails {
					if !yield(railx.Switch{Dimension: d, Group: group, Rail: rail}) {
						return
					}
				}
			}
		}
	}
}

func hostName(n railx.Node) string { return fmt.Sprintf("n%d-%d", n.Column, n.Row) }

// nicName is the name of the NIC of an end of a rail: "x0p".
func nicName(s railx.Switch, plus bool) string {
	side := "m"
	if plus {
		side = "p"
	}
	return fmt.Sprintf("%s%d%s", strings.ToLower(s.Dimension.String()), s.Rail, side)
}

func writeHost(b *strings.Builder, g railx.Grid, n railx.Node, cables railx.Cables) {
	fmt.Fprintf(b, "  - name: %s\n    nics:\n", hostName(n))
	for s := range switches(g) {
		v, here := place(s, n)
		if !here {
			continue
		}
		for _, p := range []railx.Port{railx.Plus(v), railx.Minus(v)} {
			_, plus := p.Node()
			c := cables[s][p]
			fmt.Fprintf(b, "      - {name: %s, tx: %v, rx: %v}\n", nicName(s, plus), c.Tx, c.Rx)
		}
	}
}

// place returns the number of a node among those of a switch, and whether it is one of them.
func place(s railx.Switch, n railx.Node) (v int, here bool) {
	if s.Dimension == railx.X {
		return n.Column, n.Row == s.Group
	}
	return n.Row, n.Column == s.Group
}

// Cables returns where the ports of a grid are in a lab: by its hosts if it has them, else by the names of its switches,
// whose sizes it asks for; see the package. The error says what the lab lacks, and matches [railx.ErrCables] or is
// that of size.
func Cables(ctx context.Context, f *lab.File, g railx.Grid, size func(ctx context.Context, name string) (ocs.Geometry, error)) (railx.Cables, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	cables := railx.Cables{}
	byHosts := hasHost(f, hostName(railx.Node{}))
	for s := range switches(g) {
		var ports railx.SwitchPorts
		var err error
		if byHosts {
			ports, err = ofHosts(f, g, s)
		} else {
			ports, err = ofSwitch(ctx, f, g, s, size)
		}
		if err != nil {
			return nil, err
		}
		cables[s] = ports
	}
	return cables, cables.Check()
}

func hasHost(f *lab.File, name string) bool {
	for _, h := range f.Hosts {
		if h.Name == name {
			return true
		}
	}
	return false
}

// ofHosts finds the ports of a switch of the grid by the NICs of the nodes.
func ofHosts(f *lab.File, g railx.Grid, s railx.Switch) (railx.SwitchPorts, error) {
	ports := make(railx.SwitchPorts, g.Ports(s.Dimension))
	for p := range ports {
		v, plus := railx.Port(p).Node()
		n := railx.Node{Column: v, Row: s.Group}
		if s.Dimension == railx.Y {
			n = railx.Node{Column: s.Group, Row: v}
		}
		name := hostName(n) + "/" + nicName(s, plus)
		nic, err := f.NIC(name)
		if err != nil {
			return nil, fmt.Errorf("%w: rail %d of node %v has no NIC %s in lab %s, as %v of the grid wants", railx.ErrCables, s.Rail, n, name, f.Name, s)
		}
		ports[p] = topology.NIC{Name: name, Tx: topology.Port{Switch: nic.Tx.Switch, Port: nic.Tx.Port}, Rx: topology.Port{Switch: nic.Rx.Switch, Port: nic.Rx.Port}}
	}
	return ports, nil
}

// ofSwitch finds them by the name of the switch.
func ofSwitch(ctx context.Context, f *lab.File, g railx.Grid, s railx.Switch, size func(ctx context.Context, name string) (ocs.Geometry, error)) (railx.SwitchPorts, error) {
	name := fmt.Sprintf("%s%d-%d", strings.ToLower(s.Dimension.String()), s.Group, s.Rail)
	if _, ok := f.Switch(name); !ok {
		return nil, fmt.Errorf("%w: lab %s has no switch %s for rail %d of %s, and no hosts such as n0-0 that say where it is: "+
			"\"ocslab topology railx --write-lab FILE\" writes a lab that has", railx.ErrCables, f.Name, name, s.Rail, groupName(s))
	}
	has, err := size(ctx, name)
	if err != nil {
		return nil, err
	}
	if has.SingleSided {
		return nil, fmt.Errorf("%w: the ports of %s have no sides, so its name does not say where the two fibres of an end are: give the lab hosts such as n0-0", railx.ErrCables, name)
	}
	ingress, egress := has.IngressPorts(), has.EgressPorts()
	if need := g.Ports(s.Dimension); len(ingress) < need || len(egress) < need {
		return nil, fmt.Errorf("%w: %s has %d ingress and %d egress ports, and %v takes %d of each", railx.ErrCables, name, len(ingress), len(egress), s, need)
	}
	ports := make(railx.SwitchPorts, g.Ports(s.Dimension))
	for p := range ports {
		ports[p] = topology.NIC{Name: fmt.Sprintf("%s:%d", name, p),
			Tx: topology.Port{Switch: name, Port: ingress[p]}, Rx: topology.Port{Switch: name, Port: egress[p]}}
	}
	return ports, nil
}

// groupName is "row 3" or "column 2".
func groupName(s railx.Switch) string {
	if s.Dimension == railx.X {
		return fmt.Sprintf("row %d", s.Group)
	}
	return fmt.Sprintf("column %d", s.Group)
}
