package fibre

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ocslab/ocslab/topology/internal/graph"
	"github.com/ocslab/ocslab/topology/pccl"
)

// Options say how circuits are routed. The zero Options are those of the paper.
type Options struct {
	// Directed counts the fibres of each direction of a link on their own: z is the most circuits in one
	// direction. Otherwise a fibre carries one circuit, in either direction.
	Directed bool
	// Existing is how many fibres are taken already, 0 to MaxExisting, by link, or by direction of a link if Directed: that
	// of link k from its lower server is 2k, and 2k+1 back. Nil is none.
	Existing []int
	// Seed is of the order in which circuits are routed again.
	Seed uint64
	// Rounds is how often, at most, circuits are routed again while the bound is not met; 0 is 4000, and fewer,
	// down to 8, the larger the problem is: a second's work for the paper's sizes, some for the largest.
	Rounds int
}

// Result is a routing of circuits and what it proves.
type Result struct {
	Graph    *Graph
	Requests []Request
	Options  Options
	Paths    [][]int // by request, the servers from its source to its destination, each once
	Fibres   int     // z: of the fullest link or direction, existing ones included
	Bound    Bound   // no routing can do with fewer
	Rounds   int     // how often circuits were routed again
}

// Optimal reports whether no routing can need fewer fibres: the bound says so.
func (r *Result) Optimal() bool { return r.Fibres == r.Bound.Fibres }

// Loads returns how many fibres are needed, existing ones included, by link, or by direction of a link if Directed.
func (r *Result) Loads() []int {
	load := r.Options.existing(r.Graph)
	for _, path := range r.Paths {
		for i := 1; i < len(path); i++ {
			load[r.Options.place(r.Graph, path[i-1], path[i])]++
		}
	}
	return load
}

// place returns the number of the link from a server to its neighbour, or of its direction if Directed.
func (o Options) place(g *Graph, from, to int) int {
	link, _ := g.Link(from, to)
	return o.of(half{link, to}.arc(from))
}

// of returns the place where an arc is counted.
func (o Options) of(arc int) int {
	if o.Directed {
		return arc
	}
	return arc / 2
}

// places returns how many there are.
func (o Options) places(g *Graph) int {
	if o.Directed {
		return 2 * len(g.links)
	}
	return len(g.links)
}

// existing returns a copy of o.Existing that is never nil.
func (o Options) existing(g *Graph) []int {
	load := make([]int, o.places(g))
	copy(load, o.Existing)
	return load
}

// check returns why o does not fit g.
func (o Options) check(g *Graph) error {
	if o.Existing != nil && len(o.Existing) != o.places(g) {
		return fmt.Errorf("%w: there are %d numbers of existing fibres: want %d", pccl.ErrArgument, len(o.Existing), o.places(g))
	}
	for k, n := range o.Existing {
		if n < 0 || n > MaxExisting {
			return fmt.Errorf("%w: number %d of existing fibres is %d: want 0 to %d", pccl.ErrArgument, k, n, MaxExisting)
		}
	}
	if o.Rounds < 0 {
		return fmt.Errorf("%w: %d rounds: want 0 or more", pccl.ErrArgument, o.Rounds)
	}
	return nil
}

// Route routes a circuit for each request. A request from a server to itself needs no fibre. The error matches
// pccl.ErrSize, pccl.ErrArgument or pccl.ErrDisconnected, or is that of ctx.
func Route(ctx context.Context, g *Graph, requests []Request, opt Options) (*Result, error) {
	if err := g.check(requests); err != nil {
		return nil, err
	}
	if err := opt.check(g); err != nil {
		return nil, err
	}
	r := &Result{Graph: g, Requests: slices.Clone(requests), Options: opt}
	r.Options.Existing = slices.Clone(opt.Existing)
	if err := newSearch(r).run(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

const (
	penalty   = 1.6     // how much more a link costs for each circuit that it carries
	spread    = 16      // rounds in which loads are spread, before links above the target are negotiated about
	proofs    = 16      // rounds of negotiation between looks for a better bound
	manyRound = 4000    // what Options.Rounds of 0 means
	manySteps = 1 << 25 // but at most so many servers, times requests, times rounds
)

// search is the work on a result. It has two ways to say what a link costs. At first that grows with its
// load, which spreads circuits. Then it aims at one fibre less than the best so far: a link costs more the further it
// is above that, and the more often it was, so that circuits which have another way learn to take it
// (negotiated congestion). What links cost then is near the best lengths for a bound: both are multipliers of
// the same linear program.
type search struct {
	r       *Result
	g       *Graph
	paths   [][]int
	load    []int
	most    int       // no load is higher
	weight  []float64 // what a link costs, by how far its load is below most
	target  int       // the load to get down to; -1 while loads are spread
	history []float64 // how far above the target a link was, summed over rounds
	older   []float64 // history some rounds ago
	best    int       // the highest load of r.Paths
	random  *rand.Rand

	distance []float64 // scratch, by server
	from     []int
	queue    graph.Queue
}

func newSearch(r *Result) *search {
	s := &search{
		r: r, g: r.Graph, paths: make([][]int, len(r.Requests)), load: r.Options.existing(r.Graph),
		target: -1, best: math.MaxInt, random: rand.New(rand.NewPCG(r.Options.Seed, 1)),
		distance: make([]float64, r.Graph.servers), from: make([]int, r.Graph.servers),
	}
	s.history = make([]float64, len(s.load))
	s.older = make([]float64, len(s.load))
	s.most = highest(s.load)
	// Far below the highest load costs no longer fall, so that hops count.
	for w := 1.0; w > 1e-9; w /= penalty {
		s.weight = append(s.weight, w)
	}
	return s
}

func highest(load []int) int {
	n := 0
	for _, l := range load {
		n = max(n, l)
	}
	return n
}

// rounds returns how many there are at most.
func (s *search) rounds() int {
	if s.r.Options.Rounds > 0 {
		return s.r.Options.Rounds
	}
	return min(manyRound, max(8, manySteps/max(1, s.g.servers*len(s.paths))))
}

// run searches until the bound is met or the rounds are over.
func (s *search) run(ctx context.Context) error {
	s.r.Bound = s.r.firstBound()
	order := make([]int, len(s.paths))
	for i := range order {
		order[i] = i
	}
	if err := s.again(ctx, order, func(int) bool { return true }); err != nil {
		return err
	}
	rounds := s.rounds()
	for ; ; s.r.Rounds++ {
		s.keep()
		if s.r.Optimal() {
			return nil
		}
		negotiated := s.r.Rounds - min(spread, rounds/2)
		if negotiated > 0 && (negotiated%proofs == 0 || s.r.Rounds == rounds) {
			s.prove()
			if negotiated&(negotiated-1) == 0 { // a power of two
				copy(s.older, s.history)
			}
		}
		if s.r.Optimal() || s.r.Rounds == rounds {
			return nil
		}
		which := func(int) bool { return true }
		if negotiated >= 0 {
			s.target = s.best - 1
			if negotiated%4 != 0 { // those that are in nobody's way move now and then, too
				which = s.above
			}
		}
		s.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if err := s.again(ctx, order, which); err != nil {
			return err
		}
		s.remember()
	}
}

// again routes requests again, in that order and while the others stay.
func (s *search) again(ctx context.Context, order []int, which func(i int) bool) error {
	for k, i := range order {
		if k%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if which(i) {
			s.add(s.paths[i], -1)
			s.route(i)
		}
	}
	return ctx.Err()
}

// keep makes the paths the result if they are better.
func (s *search) keep() {
	s.most = highest(s.load)
	if s.most < s.best {
		s.best = s.most
		s.r.Fibres, s.r.Paths = s.most, slices.Clone(s.paths) // a path is replaced, never changed
	}
}

// above reports whether a request's path has a link above the target.
func (s *search) above(i int) bool {
	path := s.paths[i]
	for k := 1; k < len(path); k++ {
		if s.load[s.r.Options.place(s.g, path[k-1], path[k])] > s.target {
			return true
		}
	}
	return false
}

// remember adds how far links are above the target.
func (s *search) remember() {
	if s.target < 0 {
		return
	}
	for k, l := range s.load {
		s.history[k] += float64(max(0, l-s.target))
	}
}

// prove looks for a better bound among lengths made of the history: of all of it, and of what came since the last
// power of two of rounds, when costs were nearer to their balance. Which power of it is nearest to the best lengths differs.
func (s *search) prove() {
	recent := make([]float64, len(s.history))
	for k, h := range s.history {
		recent[k] = h - s.older[k]
	}
	for _, history := range [][]float64{s.history, recent} {
		top := 0.0
		for _, h := range history {
			top = max(top, h)
		}
		for _, power := range []float64{0.5, 1, 2} {
			lengths := make([]int, len(history))
			for k, h := range history {
				lengths[k] = int(maxLength * math.Pow(h/max(top, 1), power))
			}
			s.r.raise(lengths, "links weighted by how often they were too full")
		}
	}
}

// cost returns what an arc costs.
func (s *search) cost(arc int) float64 {
	k := s.r.Options.of(arc)
	if s.target < 0 {
		return s.weight[min(s.most-s.load[k], len(s.weight)-1)]
	}
	return 0.05 + 0.02*s.history[k] + 0.3*float64(max(0, s.load[k]+1-s.target))
}

// route gives a request the cheapest path (Dijkstra).
func (s *search) route(i int) {
	req := s.r.Requests[i]
	for v := range s.distance {
		s.distance[v] = math.Inf(1)
	}
	s.queue.Clear()
	s.distance[req.Src], s.from[req.Src] = 0, -1
	s.queue.Push(req.Src, 0)
	for s.queue.Len() > 0 {
		v, d := s.queue.Pop()
		if v == req.Dst {
			break
		}
		if d > s.distance[v] {
			continue
		}
		for _, h := range s.g.at[v] {
			if to := d + s.cost(h.arc(v)); to < s.distance[h.to] {
				s.distance[h.to], s.from[h.to] = to, v
				s.queue.Push(h.to, to)
			}
		}
	}
	var path []int
	for v := req.Dst; v >= 0; v = s.from[v] {
		path = append(path, v)
	}
	slices.Reverse(path)
	s.paths[i] = path
	s.add(path, 1)
}

// add counts a path n more times.
func (s *search) add(path []int, n int) {
	for i := 1; i < len(path); i++ {
		k := s.r.Options.place(s.g, path[i-1], path[i])
		s.load[k] += n
		s.most = max(s.most, s.load[k])
	}
}
