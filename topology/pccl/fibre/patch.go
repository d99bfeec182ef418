package fibre

import (
	"cmp"
	"slices"

	"github.com/ocslab/ocslab/topology/pccl"
)

// Fibre is a circuit's way from a server to its neighbour: what stands in one line of a patch list.
type Fibre struct {
	Circuit          int // index of the request
	Hop              int // of the circuit's path, from 0
	From, To         int // servers; the light goes this way
	Number           int // among the fibres of the two servers, in this direction if Directed; from 0, existing ones first
	FromPort, ToPort int // of the servers, from 0
}

// Patch says which circuit is on which fibre, and on which ports of the servers each fibre ends: a matching of ports,
// so that a patch panel or optical switch can hold it.
type Patch struct {
	Result *Result
	Fibres []Fibre // in order of the lower server, the higher one, Number, then From
	// Ports is how many ports each server needs, those of existing fibres included. The ports of a server are numbered
	// by neighbour, then fibre. A port sends and receives: if Directed, fibre n forth and fibre n back share a port at
	// both ends; otherwise a port has one fibre, and uses one direction.
	Ports []int
}

// Patch lays the circuits of a result on fibres. Circuits that stay in a server need none.
func (r *Result) Patch() *Patch {
	p := &Patch{Result: r, Ports: make([]int, r.Graph.servers)}
	base := p.number()
	next := r.Options.existing(r.Graph)
	for i, path := range r.Paths {
		for hop := 1; hop < len(path); hop++ {
			from, to := path[hop-1], path[hop]
			link, _ := r.Graph.Link(from, to)
			k := r.Options.place(r.Graph, from, to)
			at := base[link]
			if from > to {
				at[0], at[1] = at[1], at[0]
			}
			n := next[k]
			p.Fibres = append(p.Fibres, Fibre{
				Circuit: i, Hop: hop - 1, From: from, To: to, Number: n, FromPort: at[0] + n, ToPort: at[1] + n,
			})
			next[k]++
		}
	}
	slices.SortFunc(p.Fibres, func(a, b Fibre) int {
		return cmp.Or(cmp.Compare(min(a.From, a.To), min(b.From, b.To)), cmp.Compare(max(a.From, a.To), max(b.From, b.To)),
			cmp.Compare(a.Number, b.Number), cmp.Compare(a.From, b.From))
	})
	return p
}

// number counts the ports, and returns by link the first port that it has at its lower and at its higher server.
func (p *Patch) number() [][2]int {
	r := p.Result
	loads := r.Loads()
	base := make([][2]int, len(r.Graph.links))
	for s, at := range r.Graph.at {
		for _, h := range at {
			n := 0
			if r.Options.Directed {
				n = max(loads[2*h.link], loads[2*h.link+1])
			} else {
				n = loads[h.link]
			}
			side := 0
			if s > h.to {
				side = 1
			}
			base[h.link][side] = p.Ports[s]
			p.Ports[s] += n
		}
	}
	return base
}

// Wiring returns the fibres as circuits between the ports of servers, for the maps of optical switches that join them.
func (p *Patch) Wiring() pccl.Wiring {
	w := make(pccl.Wiring, len(p.Fibres))
	for i, f := range p.Fibres {
		w[i] = pccl.Circuit{Src: f.From, SrcPort: f.FromPort, Dst: f.To, DstPort: f.ToPort}
	}
	slices.SortFunc(w, func(a, b pccl.Circuit) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.SrcPort, b.SrcPort))
	})
	return w
}

// Check returns what is wrong with a patch: a circuit whose fibres do not lead from its source to its destination
// along its path, two fibres on a port in the same direction, or a port that is not there. It shares no code with
// what made the patch. The error matches ErrRouting.
func (p *Patch) Check() error {
	hops := map[[2]int]Fibre{}
	type end struct {
		server, port int
		sends        bool
	}
	taken := map[end]Fibre{}
	for _, f := range p.Fibres {
		if f.Circuit < 0 || f.Circuit >= len(p.Result.Paths) {
			return wrong("a fibre has circuit %d", f.Circuit)
		}
		if _, twice := hops[[2]int{f.Circuit, f.Hop}]; twice {
			return wrong("hop %d of circuit %d has two fibres", f.Hop, f.Circuit)
		}
		hops[[2]int{f.Circuit, f.Hop}] = f
		ends := []end{{f.From, f.FromPort, true}, {f.To, f.ToPort, false}}
		if !p.Result.Options.Directed { // a port has one fibre
			ends = append(ends, end{f.From, f.FromPort, false}, end{f.To, f.ToPort, true})
		}
		for _, e := range ends {
			if e.server < 0 || e.server >= len(p.Ports) || e.port < 0 || e.port >= p.Ports[e.server] {
				return wrong("there is no port %d of server %d", e.port, e.server)
			}
			if other, is := taken[e]; is {
				return wrong("circuits %d and %d share port %d of server %d", other.Circuit, f.Circuit, e.port, e.server)
			}
			taken[e] = f
		}
	}
	for i, path := range p.Result.Paths {
		for k := 1; k < len(path); k++ {
			f, is := hops[[2]int{i, k - 1}]
			if !is || f.From != path[k-1] || f.To != path[k] {
				return wrong("hop %d of circuit %d has no fibre from server %d to %d", k-1, i, path[k-1], path[k])
			}
			delete(hops, [2]int{i, k - 1})
		}
	}
	if len(hops) > 0 {
		return wrong("%d fibres lead nowhere", len(hops))
	}
	return nil
}
