package pods

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/crosswiring"
)

// Limits of a lab file: each switch is a server when it is emulated, and each NIC an interface.
const (
	MaxSwitches = 4096
	MaxNICs     = 1024
)

// LabOptions of [LabFile].
type LabOptions struct {
	Name      string        // of the lab; "" is "crosswiring"
	Model     string        // of the switches; "" is the smallest the program comes with that has enough ports
	Switching time.Duration // 0 is the model's own
	Seed      uint64
	// Hosts also writes a host for each pod, with a NIC for each spine port: for small fabrics, with MaxNICs ports or fewer.
	Hosts    bool
	Firmware string // profile of the NICs; "" is the lab's default
}

// LabFile returns a lab file with an emulated switch for each switch of a fabric. Input n of one is ingress n+1, and output n the
// egress of the same place. The error matches [crosswiring.ErrFabric] for a fabric that needs larger switches than there are or
// than the model is, more than [MaxSwitches], or with hosts more than [MaxNICs].
func LabFile(f crosswiring.Fabric, opt LabOptions) ([]byte, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	size, err := opt.fit(f)
	if err != nil {
		return nil, err
	}
	if opt.Name == "" {
		opt.Name = "crosswiring"
	}
	timing := ""
	if opt.Switching > 0 {
		timing = fmt.Sprintf(", switching: %v", opt.Switching)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %v wiring: %d pods with %d spines of %d ports. Switch g2-k5 is switch 5 of group 2: input n is ingress n+1, and\n"+
		"# output n the egress of the same place. %s\n"+
		"# Give the switches a url to drive real ones.\n", f.Wiring, f.Pods, f.Groups, f.SpinePorts, ends[f.Wiring])
	fmt.Fprintf(&b, "name: %s\n\nswitches:\n", opt.Name)
	for _, s := range f.Switches() {
		fmt.Fprintf(&b, "  - {name: %s, emulate: {model: %s%s, seed: %d}}\n", switchName(s), opt.Model, timing, opt.Seed)
	}
	if opt.Hosts {
		b.WriteString("\nhosts:\n")
		for pod := range f.Pods {
			writeHost(&b, f, pod, size, opt.Firmware)
		}
	}
	return []byte(b.String()), nil
}

// ends say which spine ports are at the inputs and outputs of a switch.
var ends = []string{
	crosswiring.Cross:    "Input p has the Tx of pod p, and output p the Rx of its port on the other switch of the pair.",
	crosswiring.Uniform:  "Input p has the Tx of a port of pod p, and output p its Rx.",
	crosswiring.DualLink: "Input and output p are the even port of pod p; the odd ports follow.",
}

// fit chooses the model, and returns how many ports a side of it has.
func (opt *LabOptions) fit(f crosswiring.Fabric) (size int, err error) {
	var fit []string
	for _, m := range lab.SquareModels {
		if m.Ports < f.Radix() {
			continue
		}
		if fit = append(fit, m.Name); size == 0 && (opt.Model == "" || opt.Model == m.Name) {
			size, opt.Model = m.Ports, m.Name
		}
	}
	n := f.Groups * f.GroupSwitches()
	switch {
	case len(fit) == 0:
		return 0, fmt.Errorf("%w: its switches have %d inputs and outputs, and no model has more than %d", crosswiring.ErrFabric,
			f.Radix(), lab.SquareModels[len(lab.SquareModels)-1].Ports)
	case size == 0:
		return 0, fmt.Errorf("%w: a switch of it has %d inputs and outputs: model %.60q is none that has as many a side: want %s",
			crosswiring.ErrFabric, f.Radix(), opt.Model, strings.Join(fit, ", "))
	case n > MaxSwitches:
		return 0, fmt.Errorf("%w: it has %d switches: a lab file for one with %d or fewer can be written", crosswiring.ErrFabric, n, MaxSwitches)
	case opt.Hosts && f.Ports() > MaxNICs:
		return 0, fmt.Errorf("%w: it has %d spine ports: a lab file with a NIC for each can be written for %d or fewer", crosswiring.ErrFabric,
			f.Ports(), MaxNICs)
	}
	return size, nil
}

func switchName(s crosswiring.Switch) string { return fmt.Sprintf("g%d-k%d", s.Group, s.Index) }

func hostName(pod int) string { return fmt.Sprintf("p%d", pod) }

// nicName is the name of the NIC of a spine port on the host of its pod: "h0k3".
func nicName(p crosswiring.Port) string { return fmt.Sprintf("h%dk%d", p.Group, p.Index) }

func writeHost(b *strings.Builder, f crosswiring.Fabric, pod, size int, firmware string) {
	fmt.Fprintf(b, "  - name: %s\n    nics:\n", hostName(pod))
	with := ""
	if firmware != "" {
		with = ", firmware: " + firmware
	}
	for p := range ports(f) {
		if p.Pod != pod {
			continue
		}
		tx, in := f.Tx(p)
		rx, out := f.Rx(p)
		fmt.Fprintf(b, "      - {name: %s, tx: %s/%d, rx: %s/%d%s}\n", nicName(p), switchName(tx), in+1, switchName(rx), size+out+1, with)
	}
}

// ports yields the spine ports by group, number and pod.
func ports(f crosswiring.Fabric) func(yield func(crosswiring.Port) bool) {
	return func(yield func(crosswiring.Port) bool) {
		for x := range f.AllFibres() {
			if !x.Rx && !yield(x.Port) {
				return
			}
		}
	}
}

// end is where a fibre ends at a switch of the fabric: input or output n of it.
type end struct {
	sw crosswiring.Switch
	n  int
}

// Cables are where the spine ports of a fabric are in a lab. [FindCables] makes them; they do not change.
type Cables struct {
	fabric  crosswiring.Fabric
	nics    map[crosswiring.Port]topology.NIC
	names   map[crosswiring.Switch]string // of the switches of the lab
	ingress map[end]ocs.Port              // of inputs
	egress  map[end]ocs.Port              // of outputs
	inputs  map[topology.Port]end
	outputs map[topology.Port]end
}

// Fabric returns whose ports they are.
func (c *Cables) Fabric() crosswiring.Fabric { return c.fabric }

// NIC returns where a spine port sends into and receives from; the zero NIC if there is no such port.
func (c *Cables) NIC(p crosswiring.Port) topology.NIC { return c.nics[p] }

// Name returns the name in the lab of a switch of the fabric; "" if there is no such switch. Several switches may be parts of one of
// the lab's.
func (c *Cables) Name(s crosswiring.Switch) string { return c.names[s] }

// Size returns the geometry of a switch of a lab.
type Size func(ctx context.Context, name string) (ocs.Geometry, error)

// FindCables returns where the spine ports of a fabric are in a lab: by its hosts if it has p0, else by the names of its switches,
// whose sizes it asks for; see the package. The error says what the lab lacks, and matches [ErrLab],
// [crosswiring.ErrFabric], or is that of size.
func FindCables(ctx context.Context, l *lab.File, f crosswiring.Fabric, size Size) (*Cables, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	c := &Cables{
		fabric: f, nics: map[crosswiring.Port]topology.NIC{}, names: map[crosswiring.Switch]string{}, ingress: map[end]ocs.Port{},
		egress: map[end]ocs.Port{}, inputs: map[topology.Port]end{}, outputs: map[topology.Port]end{},
	}
	sizes := map[crosswiring.Switch]ocs.Geometry{}
	byHosts := hasHost(l, hostName(0))
	if !byHosts {
		for _, s := range f.Switches() {
			var err error
			if sizes[s], err = sized(ctx, l, f, s, size); err != nil {
				return nil, err
			}
		}
	}
	for p := range ports(f) {
		var nic topology.NIC
		var err error
		if byHosts {
			nic, err = ofHost(l, p)
		} else {
			nic = byName(f, p, sizes)
		}
		if err == nil {
			err = c.lay(p, nic)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

func hasHost(l *lab.File, name string) bool {
	for _, h := range l.Hosts {
		if h.Name == name {
			return true
		}
	}
	return false
}

// sized returns the geometry of the switch of the lab that has the name of one of the fabric, if it is large enough.
func sized(ctx context.Context, l *lab.File, f crosswiring.Fabric, s crosswiring.Switch, size Size) (ocs.Geometry, error) {
	name := switchName(s)
	if _, ok := l.Switch(name); !ok {
		return ocs.Geometry{}, fmt.Errorf("%w: lab %s has no switch %s for switch %d of group %d, and no hosts such as p0 that say where it is: "+
			"\"ocslab topology crosswiring --write-lab FILE\" writes a lab that has", ErrLab, l.Name, name, s.Index, s.Group)
	}
	has, err := size(ctx, name)
	if err != nil {
		return has, err
	}
	if has.SingleSided {
		return has, fmt.Errorf("%w: the ports of %s have no sides, so its name does not say where the two fibres of a port are: "+
			"give the lab hosts such as p0", ErrLab, name)
	}
	if ingress, egress := len(has.IngressPorts()), len(has.EgressPorts()); ingress < f.Radix() || egress < f.Radix() {
		return has, fmt.Errorf("%w: %s has %d ingress and %d egress ports, and the fabric takes %d of each",
			ErrLab, name, ingress, egress, f.Radix())
	}
	return has, nil
}

// byName finds a spine port by the names of switches, which are large enough.
func byName(f crosswiring.Fabric, p crosswiring.Port, sizes map[crosswiring.Switch]ocs.Geometry) topology.NIC {
	tx, in := f.Tx(p)
	rx, out := f.Rx(p)
	return topology.NIC{
		Name: hostName(p.Pod) + "/" + nicName(p),
		Tx:   topology.Port{Switch: switchName(tx), Port: sizes[tx].IngressPorts()[in]},
		Rx:   topology.Port{Switch: switchName(rx), Port: sizes[rx].EgressPorts()[out]},
	}
}

// ofHost finds it by the NIC.
func ofHost(l *lab.File, p crosswiring.Port) (topology.NIC, error) {
	name := hostName(p.Pod) + "/" + nicName(p)
	nic, err := l.NIC(name)
	if err != nil {
		return topology.NIC{}, fmt.Errorf("%w: %v has no NIC %s in lab %s", ErrLab, p, name, l.Name)
	}
	return topology.NIC{
		Name: name, Tx: topology.Port{Switch: nic.Tx.Switch, Port: nic.Tx.Port}, Rx: topology.Port{Switch: nic.Rx.Switch, Port: nic.Rx.Port},
	}, nil
}

// lay notes where a spine port is. All fibres of a switch of the fabric must lead to one of the lab.
func (c *Cables) lay(p crosswiring.Port, nic topology.NIC) error {
	tx, in := c.fabric.Tx(p)
	rx, out := c.fabric.Rx(p)
	for _, x := range []struct {
		at   crosswiring.Switch
		to   topology.Port
		what string
	}{{tx, nic.Tx, "sends into"}, {rx, nic.Rx, "receives from"}} {
		if x.to.Switch == "" || !x.to.Port.Valid() {
			return fmt.Errorf("%w: it does not say what %s %s", ErrLab, nic.Name, x.what)
		}
		if name, known := c.names[x.at]; known && name != x.to.Switch {
			return fmt.Errorf("%w: %s %s %v, and %v of the fabric wants it on %s as its other fibres are: are its Tx and Rx wired for %v?",
				ErrLab, nic.Name, x.what, x.to, x.at, name, c.fabric.Wiring)
		}
		c.names[x.at] = x.to.Switch
	}
	if other, taken := c.inputs[nic.Tx]; taken {
		return fmt.Errorf("%w: %s sends into %v, and so does %v", ErrLab, nic.Name, nic.Tx, c.fabric.AtInput(other.sw, other.n))
	}
	if other, taken := c.outputs[nic.Rx]; taken {
		return fmt.Errorf("%w: %s receives from %v, and so does %v", ErrLab, nic.Name, nic.Rx, c.fabric.AtOutput(other.sw, other.n))
	}
	c.nics[p] = nic
	c.inputs[nic.Tx], c.outputs[nic.Rx] = end{tx, in}, end{rx, out}
	c.ingress[end{tx, in}], c.egress[end{rx, out}] = nic.Tx.Port, nic.Rx.Port
	return nil
}

// Maps returns what the switches of a lab hold in a configuration, by name: all that have a switch of the fabric. The error
// matches [ErrLab] if the configuration is of another fabric.
func (c *Cables) Maps(of *crosswiring.Config) (map[string]ocs.Map, error) {
	if of.Fabric() != c.fabric {
		return nil, fmt.Errorf("%w: the configuration is of %+v, and the cables are of %+v", ErrLab, of.Fabric(), c.fabric)
	}
	return c.maps(of.AllCircuits())
}

func (c *Cables) maps(circuits map[crosswiring.Switch][]crosswiring.Circuit) (map[string]ocs.Map, error) {
	byName := map[string][]ocs.CrossConnect{}
	for s, name := range c.names {
		byName[name] = append(byName[name], c.crossConnects(s, circuits[s])...)
	}
	all := map[string]ocs.Map{}
	for name, ccs := range byName {
		m, err := ocs.NewMap(ccs...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = m
	}
	return all, nil
}

func (c *Cables) crossConnects(s crosswiring.Switch, circuits []crosswiring.Circuit) []ocs.CrossConnect {
	ccs := make([]ocs.CrossConnect, 0, len(circuits))
	for _, x := range circuits {
		ccs = append(ccs, ocs.CrossConnect{Ingress: c.ingress[end{s, x.In}], Egress: c.egress[end{s, x.Out}]})
	}
	return ccs
}

// Circuits returns the circuits of the fabric that the switches of a lab hold, by what was read of them. Circuits between
// other ports are nobody's business here. The error matches [ErrLab] and names a circuit that has only one end in the fabric, or
// joins two switches of it that are parts of one.
func (c *Cables) Circuits(held map[string]ocs.Map) (map[crosswiring.Switch][]crosswiring.Circuit, error) {
	all := map[crosswiring.Switch][]crosswiring.Circuit{}
	for name, m := range held {
		for x := range m.All() {
			in, ours := c.inputs[topology.Port{Switch: name, Port: x.Ingress}]
			out, also := c.outputs[topology.Port{Switch: name, Port: x.Egress}]
			switch {
			case !ours && !also:
			case ours != also:
				return nil, fmt.Errorf("%w: circuit %v of %s has one end at a port of the fabric and the other elsewhere: %w", ErrLab, x, name, ocs.ErrConflict)
			case in.sw != out.sw:
				return nil, fmt.Errorf("%w: circuit %v of %s joins %v and %v of the fabric, which no fibre does", ErrLab, x, name, in.sw, out.sw)
			default:
				all[in.sw] = append(all[in.sw], crosswiring.Circuit{In: in.n, Out: out.n})
			}
		}
	}
	return all, nil
}
