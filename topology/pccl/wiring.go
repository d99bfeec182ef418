package pccl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology"
)

// ErrSwitches: ports that a circuit should join, and that are on different switches. Test with errors.Is.
var ErrSwitches = errors.New("circuits cannot be laid on the switches that the ports are on")

// Circuit is a circuit from a port of a GPU to a port of another. Ports of a GPU count from 0; each sends and receives.
type Circuit struct{ Src, SrcPort, Dst, DstPort int }

// back returns the circuit in the other direction, on the same ports.
func (c Circuit) back() Circuit { return Circuit{c.Dst, c.DstPort, c.Src, c.SrcPort} }

// Wiring is the circuits of a topology on the ports of its GPUs, in order of Src, then SrcPort. Each is one
// cross-connect; a duplex circuit is two.
type Wiring []Circuit

// WireOptions says how a topology is laid on ports. The zero value but for Ports is what [Wire] does.
type WireOptions struct {
	// Ports is how many each GPU has; 0 is as many as NICs has for it.
	Ports int
	// Keep is a wiring that stands. Circuits that the topology has stay on their ports; see [Wire].
	Keep Wiring
	// Bond lays each circuit on as many ports as both of its GPUs have for each of theirs: with two ports, a round
	// in which each GPU has one peer has both to it, and the full rate.
	Bond bool
	// NICs are the ports of each GPU, by GPU and port. With these, a circuit is laid only between ports on the same
	// switch. Without, all ports are taken to be on one.
	NICs [][]topology.NIC
	// OneWay permits that the two directions of a duplex circuit are on different ports. Links of most
	// hosts come up only if a port sends to the one that it receives from.
	OneWay bool
}

// Wire lays a topology on the ports of its GPUs, so many of each. The two directions of a duplex circuit are on the
// same two ports. Of a wiring that stands, what the topology has too stays where it is: all duplex circuits, and others
// unless a duplex one needs their ports. New circuits take the lowest free ports.
//
// It is the matching of the paper's section 4; how it is found is not there. A GPU with more circuits than ports is an error
// that matches [ErrTransmitters] and names it.
func Wire(t *Topology, ports int, keep Wiring) (Wiring, error) {
	if ports < 1 {
		return nil, fmt.Errorf("%w: GPUs with %d ports: want 1 or more", ErrArgument, ports)
	}
	return WireOptions{Ports: ports, Keep: keep}.Wire(t)
}

// Wire lays a topology on the ports of its GPUs as the options say. That no assignment of its circuits to switches exists,
// or that none was found in a bounded search, is an error that matches [ErrSwitches] and names a circuit that found no
// place.
func (o WireOptions) Wire(t *Topology) (Wiring, error) {
	p, err := newPanel(o, t.gpus)
	if err != nil {
		return nil, err
	}
	runs, err := p.runs(t)
	if err != nil {
		return nil, err
	}
	if p.several {
		err = p.search(runs)
	} else {
		p.place(runs)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	slices.SortFunc(p.done, func(a, b Circuit) int { return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.SrcPort, b.SrcPort)) })
	return p.done, nil
}

// Lanes returns how many circuits lead from a to b.
func (w Wiring) Lanes(a, b int) int {
	n := 0
	for _, c := range w {
		if c.Src == a && c.Dst == b {
			n++
		}
	}
	return n
}

// Minus returns the circuits of w that are not in o: from w to o these go, and those of o.Minus(w) come.
func (w Wiring) Minus(o Wiring) Wiring {
	in := make(map[Circuit]bool, len(o))
	for _, c := range o {
		in[c] = true
	}
	var rest Wiring
	for _, c := range w {
		if !in[c] {
			rest = append(rest, c)
		}
	}
	return rest
}

// Maps returns the cross-connects of a wiring by switch: an empty map for a switch on which there is a port, but no
// circuit. NICs are the ports of each GPU, by GPU and port. A circuit between two switches is an error that matches
// [ErrSwitches]; [WireOptions] with these NICs makes a wiring that has none.
func (w Wiring) Maps(gpus [][]topology.NIC) (map[string]ocs.Map, error) {
	circuits := map[string][]ocs.CrossConnect{}
	for _, ports := range gpus {
		for _, n := range ports {
			circuits[n.Tx.Switch], circuits[n.Rx.Switch] = nil, nil
		}
	}
	nic := func(gpu, port int) (topology.NIC, error) {
		if gpu < 0 || gpu >= len(gpus) || port < 0 || port >= len(gpus[gpu]) {
			return topology.NIC{}, fmt.Errorf("%w: the wiring uses port %d of GPU %d, which has no NIC", ErrArgument, port, gpu)
		}
		return gpus[gpu][port], nil
	}
	for _, c := range w {
		from, err := nic(c.Src, c.SrcPort)
		if err != nil {
			return nil, err
		}
		to, err := nic(c.Dst, c.DstPort)
		if err != nil {
			return nil, err
		}
		if from.Tx.Switch != to.Rx.Switch {
			return nil, fmt.Errorf("%w: port %d of GPU %d sends into %v, and port %d of GPU %d receives from %v: "+
				"lay the topology with these NICs", ErrSwitches, c.SrcPort, c.Src, from.Tx, c.DstPort, c.Dst, to.Rx)
		}
		circuits[from.Tx.Switch] = append(circuits[from.Tx.Switch], ocs.CrossConnect{Ingress: from.Tx.Port, Egress: to.Rx.Port})
	}
	all := make(map[string]ocs.Map, len(circuits))
	for _, name := range slices.Sorted(maps.Keys(circuits)) {
		m, err := ocs.NewMap(circuits[name]...)
		if err != nil {
			return nil, fmt.Errorf("switch %s: two NICs have the same port, or one has none: %w", name, err)
		}
		all[name] = m
	}
	return all, nil
}

// panel is the ports of all GPUs while circuits are laid.
type panel struct {
	options WireOptions
	ports   []int    // by GPU
	tx, rx  [][]bool // by GPU and port: in use
	kept    map[Transfer][]Circuit
	several bool // ports are on several switches
	done    Wiring
}

// run is a circuit to be laid; duplex ones are laid in both directions.
type run struct {
	a, b   int
	duplex bool
}

func newPanel(o WireOptions, gpus int) (*panel, error) {
	if o.Ports < 0 || o.Ports > maxPorts || o.Ports == 0 && o.NICs == nil {
		return nil, fmt.Errorf("%w: GPUs with %d ports: want 1 to %d", ErrArgument, o.Ports, maxPorts)
	}
	if o.NICs != nil && len(o.NICs) < gpus {
		return nil, fmt.Errorf("%w: %d GPUs have NICs, and there are %d GPUs", ErrArgument, len(o.NICs), gpus)
	}
	p := &panel{options: o, ports: make([]int, gpus), tx: make([][]bool, gpus), rx: make([][]bool, gpus),
		kept: map[Transfer][]Circuit{}}
	total, one := 0, ""
	for g := range gpus {
		p.ports[g] = o.Ports
		if o.NICs != nil {
			if o.Ports > len(o.NICs[g]) {
				return nil, fmt.Errorf("%w: GPU %d has %d NICs, and it should have %d ports", ErrArgument, g, len(o.NICs[g]), o.Ports)
			}
			if o.Ports == 0 {
				p.ports[g] = len(o.NICs[g])
			}
			for _, n := range o.NICs[g][:p.ports[g]] {
				one = cmp.Or(one, n.Tx.Switch)
				p.several = p.several || n.Tx.Switch != one || n.Rx.Switch != one
			}
		}
		if total += p.ports[g]; total > MaxTransfers {
			return nil, fmt.Errorf("%w: GPUs have more than %d ports: want fewer", ErrSize, MaxTransfers)
		}
		p.tx[g], p.rx[g] = make([]bool, p.ports[g]), make([]bool, p.ports[g])
	}
	for _, c := range o.Keep {
		if p.exists(c) {
			p.kept[Transfer{c.Src, c.Dst}] = append(p.kept[Transfer{c.Src, c.Dst}], c)
		}
	}
	return p, nil
}

// maxPorts is the most ports of a GPU: no switch has more.
const maxPorts = int(ocs.MaxPort)

// exists reports whether a circuit that is kept is between ports that there are.
func (p *panel) exists(c Circuit) bool {
	has := func(g, port int) bool { return g >= 0 && g < len(p.ports) && port >= 0 && port < p.ports[g] }
	return has(c.Src, c.SrcPort) && has(c.Dst, c.DstPort) && p.joined(c)
}

// joined reports whether the ends of a circuit are on one switch.
func (p *panel) joined(c Circuit) bool {
	return !p.several || p.options.NICs[c.Src][c.SrcPort].Tx.Switch == p.options.NICs[c.Dst][c.DstPort].Rx.Switch
}

// runs returns what is to be laid, duplex circuits first.
func (p *panel) runs(t *Topology) ([]run, error) {
	in := make([]int, t.gpus)
	for c := range t.Circuits() {
		in[c.Dst]++
	}
	room := make([]int, t.gpus) // by GPU: ports for each circuit
	for g, out := range t.out {
		degree := max(len(out), in[g])
		if degree > p.ports[g] {
			return nil, fmt.Errorf("%w: %s: GPU %d has circuits to %d others and from %d, and %d ports: want %d ports, or a "+
				"topology with fewer circuits at a GPU; rounds can be split into sub-rounds", ErrTransmitters,
				t.name, g, len(out), in[g], p.ports[g], degree)
		}
		if room[g] = 1; p.options.Bond && degree > 0 {
			room[g] = p.ports[g] / degree
		}
	}
	var duplex, others []run
	for c := range t.Circuits() {
		both := t.Has(c.Dst, c.Src) && !p.options.OneWay
		for range min(room[c.Src], room[c.Dst]) {
			switch {
			case both && c.Src < c.Dst:
				duplex = append(duplex, run{c.Src, c.Dst, true})
			case !both:
				others = append(others, run{c.Src, c.Dst, false})
			}
		}
	}
	return append(duplex, others...), nil
}

// free reports whether a run can be laid on two ports.
func (p *panel) free(r run, at, to int) bool {
	if p.tx[r.a][at] || p.rx[r.b][to] {
		return false
	}
	return !r.duplex || !p.rx[r.a][at] && !p.tx[r.b][to]
}

// mark takes the ports of a run, or gives them back.
func (p *panel) mark(r run, at, to int, used bool) {
	p.tx[r.a][at], p.rx[r.b][to] = used, used
	if r.duplex {
		p.rx[r.a][at], p.tx[r.b][to] = used, used
	}
}

// lay takes the ports of a run for good.
func (p *panel) lay(r run, at, to int) {
	p.mark(r, at, to, true)
	c := Circuit{r.a, at, r.b, to}
	p.done = append(p.done, c)
	if r.duplex {
		p.done = append(p.done, c.back())
	}
}

// standing returns the ports on which a run stands already, in one direction at least, and can stay.
func (p *panel) standing(r run) (at, to int, ok bool) {
	for _, c := range p.kept[Transfer{r.a, r.b}] {
		if p.free(r, c.SrcPort, c.DstPort) {
			return c.SrcPort, c.DstPort, true
		}
	}
	return 0, 0, false
}

// place lays runs on ports of one switch, where any port can be joined to any other: there is always a place. Duplex
// runs come first, as they take both directions of a port; when the others follow, each port has both
// directions free, or none, but for what they took themselves.
func (p *panel) place(runs []run) {
	duplex := len(runs)
	for i, r := range runs {
		if !r.duplex {
			duplex = i
			break
		}
	}
	wanted := p.wanted(runs[duplex:])
	for _, part := range [][]run{runs[:duplex], runs[duplex:]} {
		var rest []run
		for _, r := range part {
			if at, to, ok := p.standing(r); ok {
				p.lay(r, at, to)
			} else {
				rest = append(rest, r)
			}
		}
		for _, r := range rest {
			p.lay(r, p.lowest(r, r.a, p.tx, wanted), p.lowest(r, r.b, p.rx, wanted))
		}
	}
}

// wanted returns the ports, by GPU and port, on which runs stand already.
func (p *panel) wanted(runs []run) map[[2]int]bool {
	all := map[[2]int]bool{}
	for _, r := range runs {
		for _, c := range p.kept[Transfer{r.a, r.b}] {
			all[[2]int{c.Src, c.SrcPort}], all[[2]int{c.Dst, c.DstPort}] = true, true
		}
	}
	return all
}

// lowest returns the lowest port of a GPU that is free for one end of a run, preferably one that nothing else wants.
func (p *panel) lowest(r run, gpu int, side [][]bool, wanted map[[2]int]bool) int {
	found := -1
	for port, used := range side[gpu] {
		if used || r.duplex && (p.tx[gpu][port] || p.rx[gpu][port]) {
			continue
		}
		if !r.duplex || !wanted[[2]int{gpu, port}] {
			return port
		}
		if found < 0 {
			found = port
		}
	}
	return found
}
