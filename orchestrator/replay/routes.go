package replay

import (
	"sync"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// route is what a rank's part in an operation needs.
type route struct {
	uses     []opus.Circuit
	slowdown float64 // of an operation at the full bandwidth of a rank
}

// router finds routes. Operations of one axis (and pair of stages) have the same ones in every step.
type router struct {
	job   opus.Job
	lanes bool // whether fewer circuits than a rank has ports make an operation longer

	mu    sync.Mutex // guards what follows
	known map[routeKey]route
	ring  *ring // nil until somebody asks
}

type routeKey struct {
	rank, axis, way int
	closed, onRing  bool
}

func newRouter(j opus.Job, lanes bool) *router {
	return &router{job: j, lanes: lanes, known: map[routeKey]route{}}
}

// route returns the way of a rank's traffic: on the circuits of the axis, or on the giant ring. A transfer that was granted more
// lanes than half the ports of a rank has those of a closed pair.
func (r *router) route(rank, axis, way, lanes int, result proto.Result) (route, error) {
	if axis != opus.PP {
		way = 0
	}
	k := routeKey{rank, axis, way, lanes > r.job.PortsPerRank()/2, result == proto.OnRing}
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, ok := r.known[k]; ok {
		return x, nil
	}
	x := r.direct(rank, axis, way, k.closed)
	if k.onRing {
		if r.ring == nil {
			g, err := newRing(r.job)
			if err != nil {
				return route{}, err
			}
			r.ring = g
		}
		x = r.ring.route(r.job, x.uses, rank, axis, way)
	}
	if !r.lanes {
		x.slowdown = 1
	}
	r.known[k] = x
	return x, nil
}

// direct is the route on circuits of the rank's own group. A ring takes all ports of a rank. A transfer takes half of
// them, and the other half as well where the pair of stages is closed.
func (r *router) direct(rank, axis, way int, closed bool) route {
	g := r.job.GroupOf(rank, axis)
	var x route
	if axis == opus.PP {
		x.uses = r.own(rank, r.job.TransferCircuits(g, way, closed))
	} else {
		x.uses = r.own(rank, r.job.GroupCircuits(g))
	}
	x.slowdown = 1
	if n := len(x.uses); n > 0 {
		x.slowdown = float64(r.job.PortsPerRank()) / float64(n)
	}
	return x
}

// own returns those circuits that end at a port of the rank.
func (r *router) own(rank int, all []opus.Circuit) (mine []opus.Circuit) {
	p := r.job.PortsPerRank()
	for _, c := range all {
		if c.A/p == rank || c.B/p == rank {
			mine = append(mine, c)
		}
	}
	return mine
}

// ring is the giant ring of a job, and how traffic takes it.
type ring struct {
	place []int            // of each rank on the ring
	hops  [][]opus.Circuit // from the rank at each place to the next: a circuit of each pair of ports
	load  map[[2]int]float64
}

func newRing(j opus.Job) (*ring, error) {
	m, err := opus.GiantRing(j)
	if err != nil {
		return nil, err
	}
	order, p := opus.RingOrder(j), j.PortsPerRank()
	n := len(order)
	g := &ring{place: make([]int, n), hops: make([][]opus.Circuit, n), load: map[[2]int]float64{}}
	for i, x := range order {
		g.place[x] = i
		for q := x*p + 1; q < (x+1)*p; q += 2 { // the right ports
			if peer, ok := m.Peer(q); ok {
				g.hops[i] = append(g.hops[i], opus.Circuit{A: min(q, peer), B: max(q, peer)})
			}
		}
	}
	return g, nil
}

// route leads the circuits that a rank wants along the ring, each the shorter way, and slows the operation down as much as
// the hop does that the most traffic takes when all groups of the axis (of a transfer: all of the pair of stages)
// communicate at once. That is a model: nothing is rerouted, and what is forwarded costs nothing but bandwidth.
func (g *ring) route(j opus.Job, wants []opus.Circuit, rank, axis, way int) route {
	var x route
	seen := map[int]bool{}
	p := j.PortsPerRank()
	for _, c := range wants {
		for _, hop := range g.way(c.A/p, c.B/p) {
			if !seen[hop] {
				seen[hop] = true
				x.uses = append(x.uses, g.hops[hop]...)
			}
		}
	}
	x.slowdown = g.busiest(j, axis, way)
	return x
}

// way returns the hops between two ranks.
func (g *ring) way(a, b int) (hops []int) {
	n := len(g.place)
	from, to := g.place[a], g.place[b]
	if forward := (to - from + n) % n; 2*forward > n || 2*forward == n && from > to {
		from, to = to, from
	}
	for i := from; i != to; i = (i + 1) % n {
		hops = append(hops, i)
	}
	return hops
}

// busiest returns how many times the traffic of a lane the busiest hop has to carry.
func (g *ring) busiest(j opus.Job, axis, way int) float64 {
	if most, ok := g.load[[2]int{axis, way}]; ok {
		return most
	}
	load := make([]float64, len(g.place))
	p := j.PortsPerRank()
	for _, group := range j.Groups(axis) {
		wants, weight := j.GroupCircuits(group), 1.0
		if axis == opus.PP {
			wants, weight = j.TransferCircuits(group, way, false), 2 // at full bandwidth it would take both ports
		}
		for _, c := range wants {
			for _, hop := range g.way(c.A/p, c.B/p) {
				load[hop] += weight / float64(max(len(g.hops[hop]), 1))
			}
		}
	}
	most := 1.0
	for _, l := range load {
		most = max(most, l)
	}
	g.load[[2]int{axis, way}] = most
	return most
}
