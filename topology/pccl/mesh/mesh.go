package mesh

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ocslab/ocslab/topology/pccl"
)

// Limits of what is accepted, so that a few characters of input do not take all memory.
const (
	MostNodes       = 1 << 20 // of a mesh
	MostRequests    = 1 << 14
	MostWavelengths = 64
)

// Mesh is nodes and the waveguides between them.
type Mesh struct {
	rows, columns int      // 0 if it is no grid
	edges         [][2]int // by edge, the lower node first
	off           []int32  // by node: where its arcs begin
	to, edge      []int32  // by arc: the node it leads to, in rising order, and its edge
	side          []Side   // by arc, of a grid
}

// Grid returns a mesh of rows by columns, each node joined to those above, left, right and below. The error
// matches pccl.ErrSize.
func Grid(rows, columns int) (*Mesh, error) {
	if rows < 1 || columns < 1 || rows > MostNodes || columns > MostNodes/rows {
		return nil, fmt.Errorf("mesh %dx%d: %w: want one row and column or more, and %d nodes at most", rows, columns, pccl.ErrSize, MostNodes)
	}
	edges := make([][2]int, 0, 2*rows*columns)
	for n := range rows * columns {
		if n%columns < columns-1 {
			edges = append(edges, [2]int{n, n + 1})
		}
		if n/columns < rows-1 {
			edges = append(edges, [2]int{n, n + columns})
		}
	}
	m := build(rows*columns, edges)
	m.rows, m.columns = rows, columns
	m.side = make([]Side, len(m.to))
	for n := range rows * columns {
		for k := m.off[n]; k < m.off[n+1]; k++ {
			switch int(m.to[k]) - n {
			case columns: // first: in a single column the next node is below
				m.side[k] = South
			case -columns:
				m.side[k] = North
			case 1:
				m.side[k] = East
			default:
				m.side[k] = West
			}
		}
	}
	return m, nil
}

// Graph returns a mesh of any shape. Its nodes have no states: Options.Strict is for grids. The error matches
// pccl.ErrSize or pccl.ErrArgument: an edge from a node to itself, or twice.
func Graph(nodes int, edges [][2]int) (*Mesh, error) {
	if nodes < 1 || nodes > MostNodes || len(edges) > 4*MostNodes {
		return nil, fmt.Errorf("mesh of %d nodes and %d edges: %w: want 1 to %d nodes and %d edges at most",
			nodes, len(edges), pccl.ErrSize, MostNodes, 4*MostNodes)
	}
	sorted := make([][2]int, len(edges))
	for i, e := range edges {
		if min(e[0], e[1]) < 0 || max(e[0], e[1]) >= nodes || e[0] == e[1] {
			return nil, fmt.Errorf("edge %d-%d: %w: want two of the nodes 0 to %d", e[0], e[1], pccl.ErrArgument, nodes-1)
		}
		sorted[i] = [2]int{min(e[0], e[1]), max(e[0], e[1])}
	}
	slices.SortFunc(sorted, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return nil, fmt.Errorf("edge %d-%d: %w: it is there twice; raise the capacity instead", sorted[i][0], sorted[i][1], pccl.ErrArgument)
		}
	}
	return build(nodes, sorted), nil
}

func build(nodes int, edges [][2]int) *Mesh {
	m := &Mesh{edges: edges, off: make([]int32, nodes+1), to: make([]int32, 2*len(edges)), edge: make([]int32, 2*len(edges))}
	for _, e := range edges {
		m.off[e[0]+1]++
		m.off[e[1]+1]++
	}
	for n := range nodes {
		m.off[n+1] += m.off[n]
	}
	next := slices.Clone(m.off)
	put := func(from, to, edge int) {
		m.to[next[from]], m.edge[next[from]] = int32(to), int32(edge)
		next[from]++
	}
	// Edges are in order of their lower node, then of their higher one. So a node gets its arcs downwards first,
	// in rising order, and then those upwards.
	for i, e := range edges {
		put(e[1], e[0], i)
	}
	for i, e := range edges {
		put(e[0], e[1], i)
	}
	return m
}

// Nodes returns how many nodes it has.
func (m *Mesh) Nodes() int { return len(m.off) - 1 }

// Size returns the rows and columns of a grid; 0, 0 of another graph.
func (m *Mesh) Size() (rows, columns int) { return m.rows, m.columns }

// Degree returns how many waveguides end at a node.
func (m *Mesh) Degree(node int) int { return int(m.off[node+1] - m.off[node]) }

// Request is a circuit that is wanted: light from Src to Dst. Its Wavelength is 1 to Options.Wavelengths, or 0 if
// any will do.
type Request struct{ Src, Dst, Wavelength int }

// Options say what is wanted of a routing. The zero value is the paper's: one wavelength, one circuit of it
// on a waveguide, and whatever an MZI would have to do for it.
type Options struct {
	Wavelengths int // of the mesh; 0: 1
	Capacity    int // circuits of one wavelength on a waveguide; 0: 1
	// Strict has circuits only turn where the state of the node lets them, and all that cross a node agree on
	// its state. For grids of capacity 1.
	Strict bool
	Layout Layout // what states do; nil: Alternate
	// Rounds is the most rounds of negotiation, of all attempts together; 0: DefaultRounds, and in large meshes as
	// many as take some ten seconds.
	Rounds int
	// States is the most states of the exact search, which tells impossible from hard for grids of up to about
	// eight rows or columns; 0: DefaultStates, negative: no exact search.
	States int
}

// Defaults of Options.
const (
	DefaultRounds = 1000
	DefaultStates = 4_000_000
)

// Verdict is what a router found. The three are never mixed up: what it did not find may still be possible.
type Verdict string

// The verdicts.
const (
	Routed     Verdict = "routed"
	Impossible Verdict = "impossible" // proved: Result.Cut, or Result.Exhausted
	NotFound   Verdict = "not-found"
)

// Circuit is the way of a request.
type Circuit struct {
	Request
	Nodes []int // from Src to Dst; nil: not routed. Request.Wavelength is what it got
}

// Result is what a router found.
type Result struct {
	Verdict  Verdict
	Circuits []Circuit // by request. Unless all are routed, as many as could be put beside each other
	Routed   int       // of the requests
	// Cut proves that not all requests can be routed.
	Cut *Cut
	// Exhausted: the exact search has seen all routings, and none serves.
	Exhausted bool
	// Setting is the states that carry the circuits; nil of a graph that is no grid, and of a capacity above 1.
	Setting *Setting
	// Conflicts are the nodes whose states cannot do what the circuits want; none if Strict.
	Conflicts []Conflict
	Tried     Tried
}

// Tried is what a router did.
type Tried struct {
	Searches int // for a path
	Rounds   int // of negotiation; of Greedy: trials
	Restarts int // of negotiation, in another order of the requests
	States   int // of the exact search
	Cuts     int // looked at
}

// Cut is a set of nodes that more circuits would have to leave or enter than its boundary has room for.
type Cut struct {
	Nodes      []int // in rising order
	Wavelength int   // that it speaks of; 0: all together
	Crossing   []int // the requests with one end inside, by index
	Edges      int   // waveguides of its boundary
	Room       int   // circuits that they carry: fewer than cross
}

// RandomPairs returns requests between nodes drawn at random, no node being in two of them. They are the same for
// the same seed. The error matches pccl.ErrSize.
func (m *Mesh) RandomPairs(n int, seed uint64) ([]Request, error) {
	if n < 0 || 2*n > m.Nodes() || n > MostRequests {
		return nil, fmt.Errorf("%d random pairs: %w: want 0 to %d, so that no node of the %d is in two",
			n, pccl.ErrSize, min(m.Nodes()/2, MostRequests), m.Nodes())
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(m.Nodes())
	requests := make([]Request, n)
	for i := range requests {
		requests[i] = Request{Src: order[2*i], Dst: order[2*i+1]}
	}
	return requests, nil
}

// Place returns where GPUs are on a grid, each in the middle of its share, row by row. The error matches
// pccl.ErrSize.
func (m *Mesh) Place(gpus int) ([]int, error) {
	if m.rows == 0 || gpus < 1 || gpus > m.Nodes() {
		return nil, fmt.Errorf("%d GPUs on a mesh of %d nodes: %w: want a grid, and 1 to as many as nodes", gpus, m.Nodes(), pccl.ErrSize)
	}
	// Of the ways to lay them out as a rectangle without gaps, the one whose shares are nearest to squares.
	best, lines := 0.0, 0
	for l := 1; l <= min(gpus, m.rows); l++ {
		if gpus%l != 0 || gpus/l > m.columns {
			continue
		}
		height, width := float64(m.rows)/float64(l), float64(m.columns)/float64(gpus/l)
		if fit := min(height/width, width/height); fit > best {
			best, lines = fit, l
		}
	}
	if lines == 0 {
		return nil, fmt.Errorf("%d GPUs on a mesh of %dx%d: %w: no rectangle of them fits; want a number up to %d times one up to %d",
			gpus, m.rows, m.columns, pccl.ErrSize, m.rows, m.columns)
	}
	per := gpus / lines
	nodes := make([]int, gpus)
	for g := range nodes {
		row, column := (2*(g/per)+1)*m.rows/(2*lines), (2*(g%per)+1)*m.columns/(2*per)
		nodes[g] = row*m.columns + column
	}
	return nodes, nil
}

// Requests returns the circuits of a round, for GPUs at the nodes given. The error matches pccl.ErrArgument.
func Requests(r pccl.Round, place []int) ([]Request, error) {
	requests := make([]Request, len(r.Transfers))
	for i, t := range r.Transfers {
		if min(t.Src, t.Dst) < 0 || max(t.Src, t.Dst) >= len(place) {
			return nil, fmt.Errorf("transfer %d to %d: %w: there are GPUs 0 to %d", t.Src, t.Dst, pccl.ErrArgument, len(place)-1)
		}
		requests[i] = Request{Src: place[t.Src], Dst: place[t.Dst]}
	}
	return requests, nil
}

// check returns the options with their defaults in place.
func (m *Mesh) check(requests []Request, opt Options) (Options, error) {
	opt.Wavelengths, opt.Capacity = orDefault(opt.Wavelengths, 1), orDefault(opt.Capacity, 1)
	opt.Rounds, opt.States = orDefault(opt.Rounds, DefaultRounds), orDefault(opt.States, DefaultStates)
	if opt.Layout == nil {
		opt.Layout = Alternate
	}
	switch {
	case opt.Wavelengths < 1 || opt.Wavelengths > MostWavelengths || opt.Wavelengths*m.Nodes() > MostNodes:
		return opt, fmt.Errorf("%d wavelengths on %d nodes: %w: want 1 to %d",
			opt.Wavelengths, m.Nodes(), pccl.ErrSize, min(MostWavelengths, MostNodes/m.Nodes()))
	case opt.Capacity < 1 || opt.Capacity > MostRequests:
		return opt, fmt.Errorf("capacity %d: %w: want 1 to %d", opt.Capacity, pccl.ErrArgument, MostRequests)
	case opt.Rounds < 0:
		return opt, fmt.Errorf("%d rounds: %w: want 1 or more", opt.Rounds, pccl.ErrArgument)
	case len(requests) > MostRequests:
		return opt, fmt.Errorf("%d circuits: %w: want %d at most", len(requests), pccl.ErrSize, MostRequests)
	case opt.Strict && m.rows == 0:
		return opt, fmt.Errorf("states: %w: only nodes of a grid have them; leave strict out", pccl.ErrArgument)
	case opt.Strict && opt.Capacity > 1:
		return opt, fmt.Errorf("states: %w: a node with several waveguides a side is more than one MZI; want capacity 1", pccl.ErrArgument)
	}
	for i, r := range requests {
		switch {
		case min(r.Src, r.Dst) < 0 || max(r.Src, r.Dst) >= m.Nodes():
			return opt, fmt.Errorf("circuit %d, %d-%d: %w: there are nodes 0 to %d", i, r.Src, r.Dst, pccl.ErrArgument, m.Nodes()-1)
		case r.Src == r.Dst:
			return opt, fmt.Errorf("circuit %d, %d-%d: %w: it ends where it begins", i, r.Src, r.Dst, pccl.ErrArgument)
		case r.Wavelength < 0 || r.Wavelength > opt.Wavelengths:
			return opt, fmt.Errorf("circuit %d, %d-%d: %w: wavelength %d; want 1 to %d, or 0 for any",
				i, r.Src, r.Dst, pccl.ErrArgument, r.Wavelength, opt.Wavelengths)
		}
	}
	return opt, nil
}

func orDefault(n, instead int) int {
	if n == 0 {
		return instead
	}
	return n
}
