package mesh

import (
	"fmt"
	"slices"
)

// Program returns what a grid has to be set to for circuits, and where that cannot be. A node whose circuits
// contradict each other is set for the first of them; one that no circuit crosses is in bar. A nil layout is
// Alternate.
func (m *Mesh) Program(circuits []Circuit, layout Layout) (*Setting, []Conflict) {
	if layout == nil {
		layout = Alternate
	}
	wants, crosses := make([][]Pairing, m.Nodes()), make([][]int, m.Nodes())
	set := &Setting{States: make([]State, m.Nodes())}
	for i, c := range circuits {
		var last Side
		m.steps(c, func(edge, node int, p Pairing) {
			to := m.edges[edge][0] + m.edges[edge][1] - node
			out := m.toward(node, to)
			last = out.opposite()
			if p == None {
				set.Taps = append(set.Taps, Tap{Node: node, Side: out, Wavelength: c.Wavelength, Adds: true})
				return
			}
			crosses[node] = append(crosses[node], i)
			if !slices.Contains(wants[node], p) {
				wants[node] = append(wants[node], p)
			}
		})
		if len(c.Nodes) > 1 {
			set.Taps = append(set.Taps, Tap{Node: c.Nodes[len(c.Nodes)-1], Side: last, Wavelength: c.Wavelength})
		}
	}
	var conflicts []Conflict
	for n, w := range wants {
		if len(w) == 0 {
			continue
		}
		state, ok := layout(n/m.columns, n%m.columns).does(w[0])
		set.States[n] = state
		if !ok || len(w) > 1 {
			conflicts = append(conflicts, Conflict{Node: n, Circuits: slices.Compact(crosses[n]), Wants: w})
		}
	}
	return set, conflicts
}

// toward returns the side of a node where a neighbour is.
func (m *Mesh) toward(node, to int) Side {
	for k := m.off[node]; k < m.off[node+1]; k++ {
		if int(m.to[k]) == to {
			return m.side[k]
		}
	}
	return startSide
}

// Light is where the light of a source went.
type Light struct {
	Source int   // the tap that adds it, by index
	Sink   int   // the tap that takes it; -1: none does
	Nodes  []int // that it came by, the first and the last included
	Lost   string
}

// Trace launches light at each tap of a grid that adds, and follows it through the states of the nodes. It knows
// nothing of circuits: what it says is what the setting does. A nil layout is Alternate.
func (m *Mesh) Trace(set *Setting, layout Layout) []Light {
	if layout == nil {
		layout = Alternate
	}
	type place struct {
		node, wavelength int
		side             Side
	}
	takes := map[place]int{}
	for i, t := range set.Taps {
		if !t.Adds {
			takes[place{t.Node, t.Wavelength, t.Side}] = i
		}
	}
	var all []Light
	for i, t := range set.Taps {
		if !t.Adds {
			continue
		}
		l := Light{Source: i, Sink: -1, Nodes: []int{t.Node}}
		node, out := t.Node, t.Side
		for range 4*m.Nodes() + 1 {
			row, column := node/m.columns, node%m.columns
			switch out {
			case North:
				row--
			case South:
				row++
			case West:
				column--
			default:
				column++
			}
			if row < 0 || row >= m.rows || column < 0 || column >= m.columns {
				l.Lost = fmt.Sprintf("it leaves the mesh at node %d, %v", node, out)
				break
			}
			node = row*m.columns + column
			l.Nodes = append(l.Nodes, node)
			in := out.opposite()
			if sink, ok := takes[place{node, t.Wavelength, in}]; ok {
				l.Sink = sink
				break
			}
			p := layout(row, column)[set.States[node]]
			if p == None {
				l.Lost = fmt.Sprintf("node %d has no state %v", node, set.States[node])
				break
			}
			out = p.through(in)
			if node == t.Node && out == t.Side {
				l.Lost = fmt.Sprintf("it comes back to its source at node %d", node)
				break
			}
		}
		all = append(all, l)
	}
	return all
}

// Fault is what is wrong with a setting.
type Fault struct {
	Node     int
	Circuits []int // requests that it concerns, by index
	Text     string
}

func (f Fault) String() string { return f.Text }

// Check traces the light of a setting of a grid and compares where it comes out with what was requested: each
// request has to have light of its own, there must be no other, and nowhere two of one wavelength on a waveguide.
// It shares nothing with the routers but the mesh.
func (m *Mesh) Check(requests []Request, set *Setting, layout Layout) []Fault {
	var faults []Fault
	if set == nil || m.rows == 0 || len(set.States) != m.Nodes() {
		return []Fault{{Text: "there are no states for the nodes of this mesh"}}
	}
	for _, t := range set.Taps {
		if t.Node < 0 || t.Node >= m.Nodes() || t.Side < North || t.Side >= sides {
			return []Fault{{Node: t.Node, Text: fmt.Sprintf("a tap is at node %d, side %d, which is not there", t.Node, t.Side)}}
		}
	}
	for n, s := range set.States {
		if s >= states {
			return []Fault{{Node: n, Text: fmt.Sprintf("node %d is in state %d, which is not there", n, s)}}
		}
	}
	lights := m.Trace(set, layout)
	owner := m.owners(requests, set, lights)
	for i, l := range lights {
		t := set.Taps[l.Source]
		concerns := []int{}
		if owner[i] >= 0 {
			concerns = append(concerns, owner[i])
		}
		switch {
		case l.Sink < 0 && l.Lost == "":
			l.Lost = "it goes round in the mesh"
			fallthrough
		case l.Sink < 0:
			faults = append(faults, Fault{t.Node, concerns, fmt.Sprintf("light of wavelength %d from node %d is lost: %s",
				t.Wavelength, t.Node, l.Lost)})
		case owner[i] < 0:
			faults = append(faults, Fault{t.Node, concerns, fmt.Sprintf(
				"light of wavelength %d from node %d comes out at node %d, which nobody asked for",
				t.Wavelength, t.Node, set.Taps[l.Sink].Node)})
		}
	}
	for q, r := range requests {
		if !slices.Contains(owner, q) {
			faults = append(faults, Fault{r.Src, []int{q}, fmt.Sprintf("circuit %v: no light of its own comes out at node %d", r, r.Dst)})
		}
	}
	return append(faults, m.shared(set, lights, owner)...)
}

// owners returns whose light it is, by light: the request that it serves, or -1. Those that must have their
// wavelength are served first.
func (m *Mesh) owners(requests []Request, set *Setting, lights []Light) []int {
	owner, served := make([]int, len(lights)), make([]bool, len(requests))
	for i := range owner {
		owner[i] = -1
	}
	for _, any := range []bool{false, true} {
		for i, l := range lights {
			if l.Sink < 0 || owner[i] >= 0 {
				continue
			}
			from, to := set.Taps[l.Source], set.Taps[l.Sink]
			for q, r := range requests {
				wanted := from.Wavelength
				if any {
					wanted = 0
				}
				if served[q] || r.Src != from.Node || r.Dst != to.Node || r.Wavelength != wanted {
					continue
				}
				owner[i], served[q] = q, true
				break
			}
		}
	}
	return owner
}

// shared finds waveguides with two lights of one wavelength.
func (m *Mesh) shared(set *Setting, lights []Light, owner []int) (faults []Fault) {
	type way struct{ a, b, wavelength int }
	first := map[way]int{}
	for i, l := range lights {
		for k := 1; k < len(l.Nodes); k++ {
			a, b := l.Nodes[k-1], l.Nodes[k]
			w := way{min(a, b), max(a, b), set.Taps[l.Source].Wavelength}
			before, ok := first[w]
			if !ok {
				first[w] = i
				continue
			}
			var concerns []int
			for _, j := range []int{before, i} {
				if owner[j] >= 0 {
					concerns = append(concerns, owner[j])
				}
			}
			faults = append(faults, Fault{a, concerns, fmt.Sprintf("light from nodes %d and %d meets on the waveguide %d-%d, both of wavelength %d",
				set.Taps[lights[before].Source].Node, set.Taps[l.Source].Node, w.a, w.b, w.wavelength)})
		}
	}
	return faults
}
