package fibre

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ocslab/ocslab/topology/pccl"
)

// What is accepted: larger ones are no room of servers, and would take long.
const (
	MaxServers  = 4096
	MaxLinks    = 65536
	MaxRequests = 65536
	MaxExisting = 1_000_000 // fibres of a link, or of a direction, before
	maxWork     = 1 << 24   // servers times requests
)

// Request is a circuit from a server to another. Servers count from 0, on a grid row by row.
type Request struct {
	Src int `json:"src"`
	Dst int `json:"dst"`
}

// Graph says which servers are neighbours, so that fibres can lie between them. Make one with Grid or NewGraph.
type Graph struct {
	rows, columns int // of a grid; 0 otherwise
	servers       int
	links         [][2]int
	at            [][]half // by server, in order of the neighbour
}

// half is a link as one of its servers sees it.
type half struct{ link, to int }

// arc is the direction that leaves a server: those of link k are 2k, from its lower server, and 2k+1.
func (h half) arc(from int) int {
	if from < h.to {
		return 2 * h.link
	}
	return 2*h.link + 1
}

// Grid returns servers in rows and columns, each the neighbour of those beside, above and below it. The error for a
// size that is not positive or too large matches pccl.ErrSize.
func Grid(rows, columns int) (*Graph, error) {
	if rows < 1 || columns < 1 || rows > MaxServers || columns > MaxServers || rows*columns > MaxServers {
		return nil, fmt.Errorf("%w: a grid of %d x %d servers: want 1 or more rows and columns and at most %d servers",
			pccl.ErrSize, rows, columns, MaxServers)
	}
	var pairs [][2]int
	for s := range rows * columns {
		if s%columns < columns-1 {
			pairs = append(pairs, [2]int{s, s + 1})
		}
		if s/columns < rows-1 {
			pairs = append(pairs, [2]int{s, s + columns})
		}
	}
	g, err := NewGraph(rows*columns, pairs)
	if err != nil {
		return nil, err
	}
	g.rows, g.columns = rows, columns
	return g, nil
}

// NewGraph returns servers of which those of each pair are neighbours. A pair that is there twice, joins a server
// to itself, or names one that is not there is an error that matches pccl.ErrArgument.
func NewGraph(servers int, pairs [][2]int) (*Graph, error) {
	if servers < 1 || servers > MaxServers {
		return nil, fmt.Errorf("%w: %d servers: want 1 to %d", pccl.ErrSize, servers, MaxServers)
	}
	if len(pairs) > MaxLinks {
		return nil, fmt.Errorf("%w: %d pairs of neighbours: want at most %d", pccl.ErrSize, len(pairs), MaxLinks)
	}
	g := &Graph{servers: servers, at: make([][]half, servers), links: make([][2]int, 0, len(pairs))}
	for _, p := range pairs {
		if p[0] < 0 || p[1] < 0 || p[0] >= servers || p[1] >= servers {
			return nil, fmt.Errorf("%w: servers %d and %d are neighbours: want 0 to %d", pccl.ErrArgument, p[0], p[1], servers-1)
		}
		if p[0] == p[1] {
			return nil, fmt.Errorf("%w: server %d cannot be a neighbour of itself", pccl.ErrArgument, p[0])
		}
		g.links = append(g.links, [2]int{min(p[0], p[1]), max(p[0], p[1])})
	}
	slices.SortFunc(g.links, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for k, l := range g.links {
		if k > 0 && l == g.links[k-1] {
			return nil, fmt.Errorf("%w: servers %d and %d are neighbours twice: say it once; how many fibres they have is the answer",
				pccl.ErrArgument, l[0], l[1])
		}
		g.at[l[0]] = append(g.at[l[0]], half{k, l[1]})
		g.at[l[1]] = append(g.at[l[1]], half{k, l[0]})
	}
	for _, at := range g.at {
		slices.SortFunc(at, func(a, b half) int { return a.to - b.to })
	}
	return g, nil
}

// Servers returns how many there are.
func (g *Graph) Servers() int { return g.servers }

// Links returns the pairs of neighbours, each once, the lower server first, in order. The numbers of links are
// indices into it.
func (g *Graph) Links() [][2]int { return slices.Clone(g.links) }

// Link returns the number of the link between two servers, in either order.
func (g *Graph) Link(a, b int) (link int, ok bool) {
	if a < 0 || a >= g.servers {
		return 0, false
	}
	i, ok := slices.BinarySearchFunc(g.at[a], b, func(h half, b int) int { return h.to - b })
	if !ok {
		return 0, false
	}
	return g.at[a][i].link, true
}

// Name says what it is: "grid 8x8", "graph of 5 servers".
func (g *Graph) Name() string {
	if g.rows > 0 {
		return fmt.Sprintf("grid %dx%d", g.rows, g.columns)
	}
	return fmt.Sprintf("graph of %d servers", g.servers)
}

// Random returns n requests between servers drawn at random, source and destination never the same. The same seed gives
// the same requests.
func Random(servers, n int, seed uint64) ([]Request, error) {
	if servers < 2 || servers > MaxServers {
		return nil, fmt.Errorf("%w: circuits join servers, and there are %d: want 2 to %d", pccl.ErrSize, servers, MaxServers)
	}
	if n < 0 || n > MaxRequests {
		return nil, fmt.Errorf("%w: %d circuits: want 0 to %d", pccl.ErrSize, n, MaxRequests)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([]Request, n)
	for i := range all {
		src, dst := random.IntN(servers), random.IntN(servers-1)
		if dst >= src {
			dst++
		}
		all[i] = Request{src, dst}
	}
	return all, nil
}

// check returns why these cannot be routed on g.
func (g *Graph) check(requests []Request) error {
	if len(requests) > MaxRequests || len(requests)*g.servers > maxWork {
		return fmt.Errorf("%w: %d circuits between %d servers: want at most %d",
			pccl.ErrSize, len(requests), g.servers, min(MaxRequests, maxWork/g.servers))
	}
	part := g.parts()
	for i, r := range requests {
		if r.Src < 0 || r.Dst < 0 || r.Src >= g.servers || r.Dst >= g.servers {
			return fmt.Errorf("%w: circuit %d is from server %d to %d: want 0 to %d", pccl.ErrArgument, i, r.Src, r.Dst, g.servers-1)
		}
		if part[r.Src] != part[r.Dst] {
			return fmt.Errorf("%w: circuit %d: no neighbours lead from server %d to %d", pccl.ErrDisconnected, i, r.Src, r.Dst)
		}
	}
	return nil
}

// parts returns for each server the lowest that it can be reached from.
func (g *Graph) parts() []int {
	part := make([]int, g.servers)
	for s := range part {
		part[s] = -1
	}
	for s := range part {
		if part[s] >= 0 {
			continue
		}
		part[s] = s
		for queue := []int{s}; len(queue) > 0; {
			v := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, h := range g.at[v] {
				if part[h.to] < 0 {
					part[h.to] = s
					queue = append(queue, h.to)
				}
			}
		}
	}
	return part
}
