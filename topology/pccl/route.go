package pccl

import (
	"math"
	"slices"
)

// network is a topology laid out for routing: circuits numbered in order of sender, then receiver.
type network struct {
	gpus         int
	first, to    []int32 // the circuits of g are first[g] up to first[g+1]; to is the receiver of each
	inFirst      []int32 // as first, of the circuits that end at a GPU
	from, inEdge []int32 // sender and number of each of those
	out, in      int     // largest degrees
	chain        *chains // if it consists of such
}

// load is what a round puts on a topology, whatever its bytes.
type load struct {
	congestion, dilation int32 // dilation is noPath or unknown if that is what it is
}

const (
	noPath  = -1
	unknown = -2 // not worked out
)

func newNetwork(t *Topology) *network {
	n := &network{gpus: t.gpus, first: make([]int32, t.gpus+1), inFirst: make([]int32, t.gpus+1)}
	for g, peers := range t.out {
		n.out = max(n.out, len(peers))
		n.first[g+1] = n.first[g] + int32(len(peers))
		for _, p := range peers {
			n.to = append(n.to, int32(p))
			n.inFirst[p+1]++
		}
	}
	for g := range t.gpus {
		n.in = max(n.in, int(n.inFirst[g+1]))
		n.inFirst[g+1] += n.inFirst[g]
	}
	n.from, n.inEdge = make([]int32, len(n.to)), make([]int32, len(n.to))
	next := slices.Clone(n.inFirst)
	for g := range t.gpus {
		for e := n.first[g]; e < n.first[g+1]; e++ {
			at := next[n.to[e]]
			next[n.to[e]]++
			n.from[at], n.inEdge[at] = int32(g), e
		}
	}
	n.chain = newChains(n)
	return n
}

// edge returns the circuit from a to b, or -1.
func (n *network) edge(a, b int32) int32 {
	for e := n.first[a]; e < n.first[a+1]; e++ {
		if n.to[e] == b {
			return e
		}
	}
	return -1
}

// router works out loads. It has the memory that this takes, and is for one goroutine.
type router struct {
	distance, queue []int32
	loads           [][]int32 // by round of a batch and circuit
	byEnd           [][]ended // by destination: what lex routing has to bring there
	most, mark      []int32   // greedy routing
	sum             []int64
	ahead, back     []int32 // chains
}

type ended struct{ round, src int32 }

// batch is how many rounds are routed with one search from each GPU: so many have their loads in memory.
const batch = 64

// route works out what rounds put on a network, each by itself.
func (r *router) route(n *network, rounds []set, ties Ties, result []load) {
	if n.chain == nil {
		r.general(n, rounds, ties, result)
		return
	}
	for i, s := range rounds {
		var ok bool
		if result[i], ok = r.onChains(n.chain, s, ties); !ok {
			r.general(n, rounds[i:i+1], ties, result[i:i+1])
		}
	}
}

// general routes on a network of any shape.
func (r *router) general(n *network, rounds []set, ties Ties, result []load) {
	r.distance, r.queue = grown(r.distance, n.gpus), grown(r.queue, n.gpus)
	for len(rounds) > 0 {
		k := min(batch, len(rounds))
		r.begin(k, len(n.to))
		for i := range k {
			result[i] = load{}
		}
		if ties == Greedy {
			r.greedy(n, rounds[:k], result)
		} else {
			r.lex(n, rounds[:k], result)
		}
		for i := range k {
			if result[i].dilation != noPath && len(rounds[i].transfers) > 0 {
				result[i].congestion = slices.Max(r.loads[i])
			}
		}
		rounds, result = rounds[k:], result[k:]
	}
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (r *router) begin(rounds, circuits int) {
	for len(r.loads) < rounds {
		r.loads = append(r.loads, nil)
	}
	for i := range rounds {
		r.loads[i] = grown(r.loads[i], circuits)
		clear(r.loads[i])
	}
}

// lex brings everything to one destination after another: at each hop to the lowest neighbour that is nearer to it.
func (r *router) lex(n *network, rounds []set, result []load) {
	for len(r.byEnd) < n.gpus {
		r.byEnd = append(r.byEnd, nil)
	}
	for g := range n.gpus {
		r.byEnd[g] = r.byEnd[g][:0]
	}
	for i, s := range rounds {
		for _, t := range s.transfers {
			if e := n.edge(int32(t.Src), int32(t.Dst)); e >= 0 {
				r.loads[i][e]++
				result[i].dilation = max(result[i].dilation, 1)
				continue
			}
			r.byEnd[t.Dst] = append(r.byEnd[t.Dst], ended{round: int32(i), src: int32(t.Src)})
		}
	}
	for d := range n.gpus {
		if len(r.byEnd[d]) == 0 {
			continue
		}
		r.search(int32(d), n.inFirst, n.from)
		for _, t := range r.byEnd[d] {
			hops := r.distance[t.src]
			switch l := &result[t.round]; {
			case l.dilation == noPath:
				continue
			case hops < 0:
				l.dilation = noPath
				continue
			default:
				l.dilation = max(l.dilation, hops)
			}
			loads := r.loads[t.round]
			for at := t.src; hops > 0; hops-- {
				e := n.first[at]
				for r.distance[n.to[e]] != hops-1 {
					e++
				}
				loads[e]++
				at = n.to[e]
			}
		}
	}
}

// search sets distance to the hops from a GPU along circuits, or against them: -1 is no path.
func (r *router) search(begin int32, first, to []int32) {
	for i := range r.distance {
		r.distance[i] = -1
	}
	r.distance[begin] = 0
	r.queue[0] = begin
	for head, tail := 0, 1; head < tail; head++ {
		g := r.queue[head]
		next := r.distance[g] + 1
		for _, p := range to[first[g]:first[g+1]] {
			if r.distance[p] < 0 {
				r.distance[p] = next
				r.queue[tail] = p
				tail++
			}
		}
	}
}

// greedy routes transfer by transfer, all rounds together: they do not share their loads, but the search from each
// source.
func (r *router) greedy(n *network, rounds []set, result []load) {
	r.most, r.sum = grown(r.most, n.gpus), grown(r.sum, n.gpus)
	r.mark = grown(r.mark, n.gpus)
	clear(r.mark)
	stamp := int32(0)
	next := make([]int, len(rounds))
	for s := range n.gpus {
		searched := false
		for i := range rounds {
			for transfers := rounds[i].transfers; next[i] < len(transfers) && transfers[next[i]].Src == s; next[i]++ {
				l, d := &result[i], int32(transfers[next[i]].Dst)
				if l.dilation == noPath {
					continue
				}
				if e := n.edge(int32(s), d); e >= 0 {
					r.loads[i][e]++
					l.dilation = max(l.dilation, 1)
					continue
				}
				if !searched {
					r.search(int32(s), n.first, n.to)
					searched = true
				}
				if r.distance[d] < 0 {
					l.dilation = noPath
					continue
				}
				l.dilation = max(l.dilation, r.distance[d])
				stamp++
				r.thread(n, int32(s), d, r.loads[i], stamp)
			}
		}
	}
}

// thread loads, of the shortest paths from s to d, the one with the least (highest load, sum of loads, numbers of
// GPUs). The least highest load is found first: only among paths that keep below it can sums be put together from
// those of their parts.
func (r *router) thread(n *network, s, d int32, loads []int32, stamp int32) {
	const far, farSum = math.MaxInt32, math.MaxInt64
	// Against the circuits from d: the queue has a GPU only behind all that are nearer to d.
	queue := r.queue[:0]
	visit := func(g int32) {
		if r.mark[g] != stamp {
			r.mark[g] = stamp
			r.most[g], r.sum[g] = far, farSum
			queue = append(queue, g)
		}
	}
	visit(d)
	r.most[d], r.sum[d] = 0, 0
	for head := 0; head < len(queue); head++ {
		g := queue[head]
		for x := n.inFirst[g]; x < n.inFirst[g+1]; x++ {
			if p := n.from[x]; r.distance[p] >= 0 && r.distance[p] == r.distance[g]-1 {
				visit(p)
				r.most[p] = min(r.most[p], max(r.most[g], loads[n.inEdge[x]]))
			}
		}
	}
	limit := r.most[s]
	for _, g := range queue {
		if r.sum[g] == farSum {
			continue
		}
		for x := n.inFirst[g]; x < n.inFirst[g+1]; x++ {
			p, on := n.from[x], loads[n.inEdge[x]]
			if r.distance[p] >= 0 && r.distance[p] == r.distance[g]-1 && on <= limit {
				r.sum[p] = min(r.sum[p], r.sum[g]+int64(on))
			}
		}
	}
	for g := s; g != d; {
		e := n.first[g]
		for ; ; e++ {
			p := n.to[e]
			if r.mark[p] == stamp && r.distance[p] == r.distance[g]+1 && r.sum[p] != farSum && loads[e] <= limit &&
				r.sum[g] == r.sum[p]+int64(loads[e]) {
				break
			}
		}
		loads[e]++
		g = n.to[e]
	}
}

// missing returns the first transfer that has no path.
func (r *router) missing(n *network, transfers []Transfer) (Transfer, bool) {
	r.distance, r.queue = grown(r.distance, n.gpus), grown(r.queue, n.gpus)
	for i, t := range transfers {
		if i == 0 || transfers[i-1].Src != t.Src {
			r.search(int32(t.Src), n.first, n.to)
		}
		if r.distance[t.Dst] < 0 {
			return t, true
		}
	}
	return Transfer{}, false
}
