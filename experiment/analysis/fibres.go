package analysis

import (
	"maps"
	"slices"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// fibres says which NIC is at the other end of a port's fibre.
type fibres struct {
	senders, receivers map[lab.PortRef]string
	byPort             map[string]string // receivers by "rail0/33"
	names              []string          // of all NICs, as the lab lists them
}

// newFibres reads a lab file. One that cannot be read has no fibres: the run was made with
// it, so what is wrong has been told elsewhere.
func newFibres(text []byte) *fibres {
	f := &fibres{senders: map[lab.PortRef]string{}, receivers: map[lab.PortRef]string{}, byPort: map[string]string{}}
	if len(text) == 0 {
		return f
	}
	l, err := lab.Parse("lab.yaml", text)
	if err != nil {
		return f
	}
	for _, h := range l.Hosts {
		for i := range h.NICs {
			n := &h.NICs[i]
			f.senders[n.Tx] = n.FullName()
			f.receivers[n.Rx] = n.FullName()
			f.byPort[n.Rx.String()] = n.FullName()
			f.names = append(f.names, n.FullName())
		}
	}
	return f
}

// joint is what a cross-connect joins: two NICs, or, if one is missing, the ports.
type joint struct {
	from, to string
	egress   string // "rail0/34"
	flow     string // "gpu1/ens1f0>gpu2/ens1f0"; "" without NICs
}

// joint returns what a cross-connect joins.
func (f *fibres) joint(onSwitch string, c ocs.CrossConnect) joint {
	in, out := lab.PortRef{Switch: onSwitch, Port: c.Ingress}, lab.PortRef{Switch: onSwitch, Port: c.Egress}
	j := joint{from: in.String(), to: out.String(), egress: out.String()}
	if from, to := f.senders[in], f.receivers[out]; from != "" && to != "" {
		j.from, j.to, j.flow = from, to, from+">"+to
	}
	return j
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
