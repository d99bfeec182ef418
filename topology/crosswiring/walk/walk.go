package walk

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// Violation is a port that cannot work: what it sends does not go to where it hears from.
type Violation struct {
	Port   crosswiring.Port
	Switch crosswiring.Switch // that its Tx goes to, or that it hears from if it sends to nobody
	Reason string             // one sentence that names ports and switches
}

// Error returns the reason.
func (v Violation) Error() string { return v.Reason }

// Result is where all light goes.
type Result struct {
	SendsTo    map[crosswiring.Port]crosswiring.Port
	HearsFrom  map[crosswiring.Port]crosswiring.Port
	Links      []crosswiring.PortLink // ports that send to and hear from each other, each once, in order of ports
	Violations []Violation            // in order of ports: by group, number and pod
}

// end is an input or output of a switch.
type end struct {
	s      crosswiring.Switch
	number int
}

// tracer knows the fibres by their ends, and the circuits.
type tracer struct {
	tx, rx   map[crosswiring.Port]end
	from, to map[end]crosswiring.Port // by input the port that sends into it, by output the one that receives
	out, in  map[end]int              // circuits, by input and by output
}

// Walk follows the light from every port: by its Tx fibre to an input, by the circuit there to an output, and by a fibre
// to an Rx. A port that has no light either way is all right, and so is one whose light comes back from where it goes;
// any other is a violation. Circuits are by inputs and outputs as fibres number them; those between an input and an
// output without fibres are of no port.
//
// The error matches crosswiring.ErrConfig: two fibres or two circuits on one input or output, two fibres of a port that
// are alike, or circuits of a switch that has no fibres.
func Walk(fibres []crosswiring.Fibre, circuits map[crosswiring.Switch][]crosswiring.Circuit) (*Result, error) {
	t := tracer{
		tx: map[crosswiring.Port]end{}, rx: map[crosswiring.Port]end{},
		from: map[end]crosswiring.Port{}, to: map[end]crosswiring.Port{}, out: map[end]int{}, in: map[end]int{},
	}
	known := map[crosswiring.Switch]bool{}
	for _, x := range fibres {
		if err := t.fibre(x); err != nil {
			return nil, err
		}
		known[x.Switch] = true
	}
	for _, s := range slices.SortedFunc(maps.Keys(circuits), compareSwitches) {
		if len(circuits[s]) > 0 && !known[s] {
			return nil, fmt.Errorf("%w: switch %v has circuits and no fibres", crosswiring.ErrConfig, s)
		}
		for _, c := range circuits[s] {
			if err := t.circuit(s, c); err != nil {
				return nil, err
			}
		}
	}
	return t.walk(), nil
}

// fibre adds a fibre.
func (t *tracer) fibre(x crosswiring.Fibre) error {
	far := end{x.Switch, x.Number}
	ends, ports, way, side := t.tx, t.from, "Tx", "input"
	if x.Rx {
		ends, ports, way, side = t.rx, t.to, "Rx", "output"
	}
	if other, twice := ends[x.Port]; twice {
		return fmt.Errorf("%w: the %s of %v goes to %s %d of switch %v and %d of switch %v: want one",
			crosswiring.ErrConfig, way, x.Port, side, other.number, other.s, far.number, far.s)
	}
	if other, twice := ports[far]; twice {
		return fmt.Errorf("%w: %s %d of switch %v is cabled to %v and %v: want one",
			crosswiring.ErrConfig, side, far.number, far.s, other, x.Port)
	}
	ends[x.Port], ports[far] = far, x.Port
	return nil
}

// circuit adds a circuit.
func (t *tracer) circuit(s crosswiring.Switch, c crosswiring.Circuit) error {
	in, out := end{s, c.In}, end{s, c.Out}
	if other, twice := t.out[in]; twice {
		return fmt.Errorf("%w: input %d of switch %v leads to outputs %d and %d: want one",
			crosswiring.ErrConfig, c.In, s, other, c.Out)
	}
	if other, twice := t.in[out]; twice {
		return fmt.Errorf("%w: output %d of switch %v has light from inputs %d and %d: want one",
			crosswiring.ErrConfig, c.Out, s, other, c.In)
	}
	t.out[in], t.in[out] = c.Out, c.In
	return nil
}

// walk follows all light.
func (t *tracer) walk() *Result {
	r := &Result{SendsTo: map[crosswiring.Port]crosswiring.Port{}, HearsFrom: map[crosswiring.Port]crosswiring.Port{}}
	ports := maps.Clone(t.tx)
	maps.Copy(ports, t.rx)
	order := slices.SortedFunc(maps.Keys(ports), comparePorts)
	for _, p := range order {
		if far, cabled := t.tx[p]; cabled {
			if out, lit := t.out[far]; lit {
				if q, cabled := t.to[end{far.s, out}]; cabled {
					r.SendsTo[p], r.HearsFrom[q] = q, p
				}
			}
		}
	}
	for _, p := range order {
		if v, wrong := t.judge(r, p); wrong {
			r.Violations = append(r.Violations, v)
		}
		to, sends := r.SendsTo[p]
		from, hears := r.HearsFrom[p]
		if sends && hears && to == from && comparePorts(p, to) < 0 {
			r.Links = append(r.Links, crosswiring.PortLink{A: p, B: to})
		}
	}
	return r
}

// judge says what is wrong with the light of a port.
func (t *tracer) judge(r *Result, p crosswiring.Port) (Violation, bool) {
	to, sends := r.SendsTo[p]
	from, hears := r.HearsFrom[p]
	tx, rx := t.tx[p], t.rx[p]
	out, lit := t.out[tx]
	in, fed := t.in[rx]
	_, hasTx := t.tx[p]
	_, hasRx := t.rx[p]
	v := Violation{Port: p, Switch: tx.s}
	switch {
	case hasTx && lit && !sends:
		v.Reason = fmt.Sprintf("%v sends into switch %v, whose output %d leads to no port", p, tx.s, out)
	case hasRx && fed && !hears:
		v.Switch = rx.s
		v.Reason = fmt.Sprintf("%v hears from switch %v, into whose input %d no port sends", p, rx.s, in)
	case !sends && !hears:
		return v, false
	case !hears:
		v.Reason = fmt.Sprintf("%v sends to %v by switch %v and hears from nobody", p, to, tx.s)
	case !sends:
		v.Switch = rx.s
		v.Reason = fmt.Sprintf("%v hears from %v by switch %v and sends to nobody", p, from, rx.s)
	case to == p:
		v.Reason = fmt.Sprintf("%v sends to itself by switch %v", p, tx.s)
	case to != from:
		v.Reason = fmt.Sprintf("%v sends to %v by switch %v and hears from %v by switch %v", p, to, tx.s, from, rx.s)
	case to.Pod == p.Pod:
		v.Reason = fmt.Sprintf("%v sends to %v of the same pod by switch %v", p, to, tx.s)
	default:
		return v, false
	}
	return v, true
}

func compareSwitches(a, b crosswiring.Switch) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Index, b.Index))
}

func comparePorts(a, b crosswiring.Port) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Pod, b.Pod))
}
