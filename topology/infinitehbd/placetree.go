package infinitehbd

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/internal/natural"
)

// Tree is the data centre network beside the rings: a fat-tree of Top-of-Rack switches with PerToR nodes each, in
// aggregation domains of PerDomain nodes. Nodes count from 1 through the ToRs, and ToRs through the domains.
type Tree struct{ Nodes, PerToR, PerDomain int }

// maxNodes bounds what is held in memory.
const maxNodes = 1 << 24

// Check returns why there is no such tree, as an error that matches ErrLayout: ToRs and domains have to be full.
func (t Tree) Check() error {
	switch {
	case t.Nodes < 1 || t.Nodes > maxNodes:
		return fmt.Errorf("%w: %d nodes: want 1 to %d", ErrLayout, t.Nodes, maxNodes)
	case t.PerToR < 1 || t.Nodes%t.PerToR != 0:
		return fmt.Errorf("%w: %d nodes in ToRs of %d: want a number that divides them", ErrLayout, t.Nodes, t.PerToR)
	case t.PerDomain < 1 || t.Nodes%t.PerDomain != 0:
		return fmt.Errorf("%w: %d nodes in domains of %d: want a number that divides them", ErrLayout, t.Nodes, t.PerDomain)
	case t.PerDomain%t.PerToR != 0:
		return fmt.Errorf("%w: domains of %d nodes in ToRs of %d: want whole ToRs", ErrLayout, t.PerDomain, t.PerToR)
	}
	return nil
}

// ToRs returns how many there are.
func (t Tree) ToRs() int { return t.Nodes / t.PerToR }

// Domains returns how many there are.
func (t Tree) Domains() int { return t.Nodes / t.PerDomain }

// ToR returns the Top-of-Rack switch of a node, from 0.
func (t Tree) ToR(n Node) int { return (int(n) - 1) / t.PerToR }

// Domain returns the aggregation domain of a node, from 0.
func (t Tree) Domain(n Node) int { return (int(n) - 1) / t.PerDomain }

// Line returns the nodes in the order of Deploy, not closed.
func (t Tree) Line(l Layout) (Line, error) {
	if err := t.Check(); err != nil {
		return Line{}, err
	}
	order, err := Deploy(t.Nodes, t.PerToR)
	return Line{Layout: l, Order: order}, err
}

// Relax is in which order the constraints on a placement are given up when there is no room.
type Relax uint8

// The orders. All of them first give up the alignment of nodes, and then the bounds of domains from the end of the line.
const (
	// ByDomain gives up the alignment of the last domain first, as in the paper.
	ByDomain Relax = iota
	// ByCost gives up first the domain whose alignment costs the most living nodes. Ours.
	ByCost
	// ByToR gives up ToR by ToR: domains as ByCost does, and in a domain the last ToR first, because what follows it in
	// the domain is what it puts out of line. Ours.
	ByToR
)

var relaxNames = []string{"domain", "cost", "tor"}

// String returns "domain", "cost" or "tor".
func (r Relax) String() string {
	if int(r) < len(relaxNames) {
		return relaxNames[r]
	}
	return fmt.Sprintf("relaxation %d", r)
}

// Request is what a job asks for.
type Request struct {
	GPUs  int // at least so many
	TP    int // in groups of so many: a multiple of the GPUs of a node
	Relax Relax
}

// Placement is where a job is placed.
type Placement struct {
	// Groups are all that there is room for under the constraints: as many as are asked for, or more.
	Groups []Group
	// Constraints is how many there are, of Most.
	Constraints, Most int
	// Probes are what the binary search tried, in order.
	Probes []Probe
}

// Probe is one placement that was tried.
type Probe struct {
	Constraints int
	GPUs        int // in groups
	Enough      bool
}

// Constraints returns the most constraints that Place can have: a bound for each domain of each sub-line, and the
// alignment of each domain.
func (t Tree) Constraints() int { return t.chunks() + t.Domains() }

// chunks is the number of pieces that the bounds of domains cut the line into; each has a node of every ToR of a domain.
func (t Tree) chunks() int { return t.PerToR * t.Domains() }

// Place returns groups of m nodes along Line under the first c constraints (Algorithm 4). Constraint i, from 0, is that
// no group leaves piece i of the line: the nodes of one sub-line in one domain. Those after them are that domain 0, then
// 1 and so on are aligned: where one node of a ToR is dead, the whole ToR is left out, so that groups of all sub-lines
// are beside each other. With c = 0 it is Line.Place. The printed bound on the number of pieces is n d/p, which can only
// be n p/d.
//
// The error matches ErrLayout, ErrNode as with Line.Place, and ErrGroup for an m below 1 and c out of range.
func (t Tree) Place(l Layout, m, c int, dead []Node) ([]Group, error) {
	p, err := t.placer(l, m, dead, ByDomain)
	if err != nil {
		return nil, err
	}
	if c < 0 || c > p.most() {
		return nil, fmt.Errorf("%w: %s: want 0 to %d", ErrGroup, natural.Count(c, "constraint"), p.most())
	}
	return p.groups(c), nil
}

// Orchestrate places a job under as many constraints as there is room for, found by binary search (Algorithm 5): a
// constraint more never makes room. The placement is the best of those tried that suffice, where the paper prints the
// last one tried.
//
// When there is no room without constraints either, the error matches ErrRoom and says for how many GPUs there is. It
// matches ErrGroup for a request that no tree can meet, and otherwise is as that of Place.
func (t Tree) Orchestrate(l Layout, r Request, dead []Node) (*Placement, error) {
	if err := t.checkRequest(l, r); err != nil {
		return nil, err
	}
	p, err := t.placer(l, r.TP/l.GPUs, dead, r.Relax)
	if err != nil {
		return nil, err
	}
	out := &Placement{Constraints: -1, Most: p.most()}
	for lo, hi := 0, p.most(); lo <= hi; {
		mid := lo + (hi-lo)/2
		gpus := len(p.place(mid)) * l.GPUs
		out.Probes = append(out.Probes, Probe{mid, gpus, gpus >= r.GPUs})
		if gpus < r.GPUs {
			hi = mid - 1
			continue
		}
		out.Constraints = mid
		lo = mid + 1
	}
	if out.Constraints < 0 {
		return nil, fmt.Errorf("%w: a job of %d GPUs in groups of %d, and with %d of %d nodes dead there are %d",
			ErrRoom, r.GPUs, r.TP, len(dead), t.Nodes, out.Probes[len(out.Probes)-1].GPUs)
	}
	out.Groups = p.groups(out.Constraints)
	return out, nil
}

// checkRequest returns why no tree of this size can meet a request.
func (t Tree) checkRequest(l Layout, r Request) error {
	if err := l.Check(); err != nil {
		return err
	}
	switch {
	case r.TP < 1 || r.TP%l.GPUs != 0:
		return fmt.Errorf("%w: groups of %d GPUs on nodes of %d: want a multiple", ErrGroup, r.TP, l.GPUs)
	case r.GPUs < 1:
		return fmt.Errorf("%w: a job of %d GPUs: want 1 or more", ErrGroup, r.GPUs)
	case int(r.Relax) >= len(relaxNames):
		return fmt.Errorf("%w: there is no %v: want domain, cost or tor", ErrGroup, r.Relax)
	}
	if err := t.Check(); err != nil {
		return err
	}
	if (r.GPUs-1)/l.GPUs >= t.Nodes {
		return fmt.Errorf("%w: a job of %d GPUs, and %d nodes have %d", ErrRoom, r.GPUs, t.Nodes, t.Nodes*l.GPUs)
	}
	return nil
}

// placer places groups under constraints that give way.
type placer struct {
	Tree
	*cutter
	dead   []bool // by position in the line
	faulty []int  // dead nodes by ToR
	// rank is, by ToR, how many alignments are given before its own; units is how many there are in all.
	rank  []int
	units int
	// Scratch.
	living, out []int
}

func (t Tree) placer(l Layout, m int, dead []Node, relax Relax) (*placer, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	if m < 1 {
		return nil, fmt.Errorf("%w: a group of %s: want 1 or more", ErrGroup, natural.Count(m, "node"))
	}
	p := &placer{Tree: t, cutter: newCutter(l, m), dead: make([]bool, t.Nodes), faulty: make([]int, t.ToRs())}
	for _, n := range dead {
		if n < 1 || int(n) > t.Nodes {
			return nil, fmt.Errorf("%w: node %d is dead, and there are nodes 1 to %d", ErrNode, n, t.Nodes)
		}
		if at := p.position(n); !p.dead[at] {
			p.dead[at] = true
			p.faulty[t.ToR(n)]++
			continue
		}
		return nil, fmt.Errorf("%w: node %d is twice among the dead", ErrNode, n)
	}
	p.order(relax)
	return p, nil
}

// position is where a node is in the line.
func (t Tree) position(n Node) int { return (int(n)-1)%t.PerToR*t.ToRs() + t.ToR(n) }

// node is the node at a position of the line.
func (t Tree) node(at int) Node { return Node(at%t.ToRs()*t.PerToR + at/t.ToRs() + 1) }

func (p *placer) most() int { return p.chunks() + p.units }

// order sets the ranks of the ToRs.
func (p *placer) order(relax Relax) {
	tors := p.ToRs() / p.Domains()
	cost := make([]int, p.Domains()) // living nodes that alignment leaves out
	for tor, n := range p.faulty {
		if n > 0 {
			cost[tor/tors] += p.PerToR - n
		}
	}
	domains := make([]int, p.Domains())
	for i := range domains {
		domains[i] = i
	}
	if relax != ByDomain {
		slices.SortStableFunc(domains, func(a, b int) int { return cmp.Compare(cost[a], cost[b]) })
	}
	p.rank = make([]int, p.ToRs())
	for _, domain := range domains {
		for tor := domain * tors; tor < (domain+1)*tors; tor++ {
			p.rank[tor] = p.units
			if relax == ByToR && p.faulty[tor] > 0 {
				p.units++
			}
		}
		if relax != ByToR {
			p.units++
		}
	}
}

// place returns the positions of the nodes of all groups under the first c constraints, valid until the next call.
func (p *placer) place(c int) []int {
	pieces, aligned := min(c, p.chunks()), c-p.chunks()
	length := p.Nodes / p.chunks()
	p.out = p.out[:0]
	for i := range pieces {
		p.piece(i*length, (i+1)*length, aligned)
	}
	p.piece(pieces*length, p.Nodes, aligned)
	return p.out
}

// piece places the nodes of the positions from..to-1 as one line.
func (p *placer) piece(from, to, aligned int) {
	p.living = p.living[:0]
	for tor, at := from%p.ToRs(), from; at < to; tor, at = tor+1, at+1 {
		if tor == len(p.faulty) {
			tor = 0
		}
		if !p.dead[at] && (p.faulty[tor] == 0 || p.rank[tor] >= aligned) {
			p.living = append(p.living, at)
		}
	}
	p.out = p.cut(p.out, p.living)
}

func (p *placer) groups(c int) []Group {
	places := p.place(c)
	nodes := make([]Node, len(places))
	for i, at := range places {
		nodes[i] = p.node(at)
	}
	return split(nodes, p.m)
}
