package advice

import (
	"fmt"

	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// Slowdown returns how many times longer operations of a kind along an axis take on matching m than on
// matching own: by how much more the most loaded link has to carry. ok is false if m does not join all of
// the ranks that have to communicate, or own does not.
//
// The bookkeeping is that of the paper: a link is as fast as circuits join its two ranks, in each
// direction. Whatever goes between ranks that no circuit joins is forwarded by the ranks on the shortest
// ways, in equal parts if there are several; forwarding itself costs nothing but the bandwidth, and latency
// is left out. Ring collectives send half of their bytes each way around, an all-to-all equally to all
// members, and transfers of the pipeline go between all stages both ways at once. All groups of the axis
// are busy at the same time.
func Slowdown(j opus.Job, own, m opus.Matching, axis int, kind trace.Kind) (factor float64, ok bool) {
	flows := demand(j, axis, kind)
	if len(flows) == 0 {
		return 1, true
	}
	before, ok := links(j, own).load(flows)
	if !ok {
		return 0, false
	}
	after, ok := links(j, m).load(flows)
	if !ok {
		return 0, false
	}
	return after / before, true
}

// flow is a part of what the ranks send at once: bytes from one to another, a rank sending 1 in all.
type flow struct {
	from, to int
	bytes    float64
}

func demand(j opus.Job, axis int, kind trace.Kind) []flow {
	var flows []flow
	for _, g := range j.Groups(axis) {
		n := len(g.Members)
		for i, x := range g.Members {
			switch {
			case n == 1 || kind == trace.Barrier:
			case axis == opus.PP:
				if i+1 < n {
					flows = append(flows, flow{x, g.Members[i+1], 1}, flow{g.Members[i+1], x, 1})
				}
			case n == 2:
				flows = append(flows, flow{x, g.Members[1-i], 1})
			case kind == trace.AllToAll:
				for k, y := range g.Members {
					if k != i {
						flows = append(flows, flow{x, y, 1 / float64(n-1)})
					}
				}
			default:
				flows = append(flows, flow{x, g.Members[(i+1)%n], 0.5}, flow{x, g.Members[(i+n-1)%n], 0.5})
			}
		}
	}
	return flows
}

// link leads to a rank, over a number of circuits.
type link struct {
	to    int
	lanes float64
}

// network is the links of each rank.
type network [][]link

func links(j opus.Job, m opus.Matching) network {
	net := make(network, j.Ranks())
	ports := j.PortsPerRank()
	add := func(from, to int) {
		for i := range net[from] {
			if net[from][i].to == to {
				net[from][i].lanes++
				return
			}
		}
		net[from] = append(net[from], link{to, 1})
	}
	for c := range m.Circuits() {
		a, b := c.A/ports, c.B/ports
		add(a, b)
		add(b, a)
	}
	return net
}

// load returns what the most loaded link carries, for each of its lanes; ok is false if some flow has no
// way.
func (net network) load(flows []flow) (most float64, ok bool) {
	carried := make([][]float64, len(net))
	for x := range net {
		carried[x] = make([]float64, len(net[x]))
	}
	distance := make([]int, len(net))
	part := make([]float64, len(net)) // of the flow, that comes by each rank
	target := -1
	var order []int // ranks by distance from target
	for _, f := range flows {
		if f.to != target {
			target = f.to
			order = net.from(target, distance, order[:0])
		}
		if distance[f.from] < 0 {
			return 0, false
		}
		part[f.from] = f.bytes
		for i := len(order) - 1; i > 0; i-- { // the farthest first; order[0] is the target
			x := order[i]
			if part[x] == 0 {
				continue
			}
			lanes := 0.0
			for _, l := range net[x] {
				if distance[l.to] == distance[x]-1 {
					lanes += l.lanes
				}
			}
			for k, l := range net[x] {
				if distance[l.to] == distance[x]-1 {
					share := part[x] * l.lanes / lanes
					carried[x][k] += share
					part[l.to] += share
				}
			}
			part[x] = 0
		}
		part[target] = 0
	}
	for x, ls := range net {
		for k, l := range ls {
			most = max(most, carried[x][k]/l.lanes)
		}
	}
	return most, true
}

// from fills in the distance of each rank from one, -1 where there is no way, and appends the ranks that
// there is one to.
func (net network) from(rank int, distance, order []int) []int {
	for i := range distance {
		distance[i] = -1
	}
	distance[rank] = 0
	order = append(order, rank)
	for i := 0; i < len(order); i++ {
		for _, l := range net[order[i]] {
			if distance[l.to] < 0 {
				distance[l.to] = distance[order[i]] + 1
				order = append(order, l.to)
			}
		}
	}
	return order
}

// topologies are what a phase may run on: the topology of each axis that occurs, with all stages at it, and
// the giant ring.
type topologies struct {
	job       opus.Job
	names     []string
	matchings []opus.Matching
	known     map[operation]float64 // slowdowns on the giant ring
}

// operation is what a slowdown depends on.
type operation struct {
	axis int
	kind trace.Kind
}

// index of the giant ring in topologies.
const giant = 0

func newTopologies(j opus.Job, policy opus.Policy) (topologies, error) {
	ring, err := opus.GiantRing(j)
	if err != nil {
		return topologies{}, err
	}
	t := topologies{job: j, names: []string{"giant ring"}, matchings: []opus.Matching{ring}, known: map[operation]float64{}}
	for axis, name := range j.AxisNames() {
		id := make(opus.ID, j.Stages)
		for s := range id {
			id[s] = uint8(axis)
		}
		m, err := opus.Build(j, id, policy)
		if err != nil {
			return topologies{}, fmt.Errorf("topology of axis %s: %w", name, err)
		}
		t.names, t.matchings = append(t.names, name), append(t.matchings, m)
	}
	return t, nil
}

// own returns the index of the topology of an axis.
func own(axis int) int { return axis + 1 }

// slowdown returns how many times longer an operation takes on the giant ring than on its own topology.
func (t topologies) slowdown(axis int, kind trace.Kind) (float64, error) {
	key := operation{axis, kind}
	if factor, ok := t.known[key]; ok {
		return factor, nil
	}
	factor, ok := Slowdown(t.job, t.matchings[own(axis)], t.matchings[giant], axis, kind)
	if !ok {
		return 0, fmt.Errorf("%w: no circuits carry %s along axis %s", trace.ErrTrace, kind, t.job.AxisNames()[axis])
	}
	t.known[key] = factor
	return factor, nil
}
