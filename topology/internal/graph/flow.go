package graph

import "math"

// Flow is a network with capacities and costs, and a flow on it. Make one with [NewFlow], put arcs on it,
// and send. More arcs may follow, and more may be sent, from the same source or another.
type Flow struct {
	arcs  []arc // in pairs: an arc and its reverse, which has the flow as its capacity
	at    [][]int32
	price []float64 // potentials: no arc with room costs less than they differ by
	scale float64   // of the costs, for what is taken for rounding
	stale bool      // there are arcs that the prices do not know of

	distance []float64 // scratch, by node
	level    []int32
	next     []int32
	into     []int32 // the arc by which a node was reached
	queue    Queue
	order    []int32
}

type arc struct {
	to   int32
	room int
	cost float64
}

// NewFlow returns a network of that many nodes without arcs.
func NewFlow(nodes int) *Flow {
	return &Flow{
		at: make([][]int32, nodes), price: make([]float64, nodes), distance: make([]float64, nodes),
		level: make([]int32, nodes), next: make([]int32, nodes), into: make([]int32, nodes),
	}
}

// Arc puts an arc on the network and returns its number. A capacity below 0 is 0. The cost of a unit is finite; it
// may be negative, if no cycle of arcs has a negative sum: otherwise what is sent is not the cheapest.
func (f *Flow) Arc(from, to int, capacity int, cost float64) int {
	n := len(f.arcs)
	f.arcs = append(f.arcs, arc{int32(to), max(capacity, 0), cost}, arc{int32(from), 0, -cost})
	f.at[from] = append(f.at[from], int32(n))
	f.at[to] = append(f.at[to], int32(n+1))
	f.scale = max(f.scale, math.Abs(cost))
	f.stale = f.stale || f.reduced(from, &f.arcs[n]) < 0
	return n / 2
}

// On returns how much flows on an arc.
func (f *Flow) On(arc int) int { return f.arcs[2*arc+1].room }

// Send sends as much as goes from source to sink, at most most, at the least cost for that, and returns how
// much that is and what it costs. From a node to itself nothing is sent.
//
// It is the primal-dual method: each phase finds the cheapest distance and then sends along all paths of
// that length at once (Dinic), so that a network without costs is solved in one phase.
func (f *Flow) Send(source, sink, most int) (sent int, cost float64) {
	if source == sink {
		return 0, 0
	}
	if f.stale {
		f.reprice()
	}
	for sent < most && f.cheapest(source, sink) {
		phase := 0
		for sent+phase < most && f.layer(source, sink) {
			clear(f.next)
			phase += f.block(source, sink, most-sent-phase, &cost)
		}
		if phase == 0 { // rounding hid the path that cheapest found
			phase = f.along(source, sink, most-sent, &cost)
		}
		sent += phase
	}
	return sent, cost
}

// Cut reports which nodes can be reached from source where there is room. After a Send that was not
// limited, the arcs that leave them are full, and have no more capacity than any other cut.
func (f *Flow) Cut(source int) []bool {
	reached := make([]bool, len(f.at))
	reached[source] = true
	for queue := []int{source}; len(queue) > 0; {
		v := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, a := range f.at[v] {
			if to := int(f.arcs[a].to); f.arcs[a].room > 0 && !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	return reached
}

// reduced returns what an arc from a node costs beside the prices; below 0 only by rounding.
func (f *Flow) reduced(from int, a *arc) float64 { return a.cost + f.price[from] - f.price[a.to] }

// tight reports whether an arc has room and is on a cheapest path.
func (f *Flow) tight(from int, a *arc) bool {
	return a.room > 0 && f.reduced(from, a) <= 1e-12*(f.scale+math.Abs(f.price[from]))
}

// reprice makes prices for arcs of negative cost (Bellman-Ford with a queue). It gives up where
// it must have met a cycle of negative cost.
func (f *Flow) reprice() {
	f.stale = false
	queued, count := make([]bool, len(f.at)), make([]int, len(f.at))
	queue := make([]int, len(f.at))
	for v := range queue {
		queue[v], queued[v] = v, true
	}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		queued[v] = false
		if count[v]++; count[v] > len(f.at) {
			return
		}
		for _, n := range f.at[v] {
			a := &f.arcs[n]
			if a.room <= 0 || f.reduced(v, a) >= -1e-12*(f.scale+math.Abs(f.price[v])) {
				continue
			}
			f.price[a.to] = f.price[v] + a.cost
			if !queued[a.to] {
				queued[a.to] = true
				queue = append(queue, int(a.to))
			}
		}
	}
}

// cheapest brings the prices up to the cheapest path from source to sink (Dijkstra), and reports whether there
// is one.
func (f *Flow) cheapest(source, sink int) bool {
	for v := range f.distance {
		f.distance[v], f.into[v] = math.Inf(1), -1
	}
	f.queue.Clear()
	f.distance[source] = 0
	f.queue.Push(source, 0)
	for f.queue.Len() > 0 {
		v, d := f.queue.Pop()
		if v == sink {
			break
		}
		if d > f.distance[v] {
			continue
		}
		for _, n := range f.at[v] {
			a := &f.arcs[n]
			if a.room <= 0 {
				continue
			}
			if to := d + max(f.reduced(v, a), 0); to < f.distance[a.to] {
				f.distance[a.to], f.into[a.to] = to, n
				f.queue.Push(int(a.to), to)
			}
		}
	}
	end := f.distance[sink]
	if math.IsInf(end, 1) {
		return false
	}
	for v, d := range f.distance {
		f.price[v] += min(d, end)
	}
	return true
}

// layer finds how many tight arcs are between source and each node, and reports whether sink is reached.
func (f *Flow) layer(source, sink int) bool {
	for v := range f.level {
		f.level[v] = -1
	}
	f.level[source] = 0
	f.order = append(f.order[:0], int32(source))
	for i := 0; i < len(f.order) && f.level[sink] < 0; i++ {
		v := f.order[i]
		for _, n := range f.at[v] {
			if a := &f.arcs[n]; f.level[a.to] < 0 && f.tight(int(v), a) {
				f.level[a.to] = f.level[v] + 1
				f.order = append(f.order, a.to)
			}
		}
	}
	return f.level[sink] >= 0
}

// block sends along paths down the layers until none is left, at most most, and adds to the cost.
func (f *Flow) block(source, sink, most int, cost *float64) (sent int) {
	v := source
	for sent < most {
		if v == sink {
			sent += f.along(source, sink, most-sent, cost)
			v = source
			continue
		}
		if int(f.next[v]) < len(f.at[v]) {
			n := f.at[v][f.next[v]]
			a := &f.arcs[n]
			if f.level[a.to] == f.level[v]+1 && f.tight(v, a) {
				f.into[a.to] = n
				v = int(a.to)
			} else {
				f.next[v]++
			}
			continue
		}
		if v == source {
			break
		}
		f.level[v] = -1 // a dead end
		v = int(f.arcs[f.into[v]^1].to)
		f.next[v]++
	}
	return sent
}

// along sends as much as goes along the path that into says, at most most.
func (f *Flow) along(source, sink, most int, cost *float64) int {
	for v := sink; v != source; v = int(f.arcs[f.into[v]^1].to) {
		most = min(most, f.arcs[f.into[v]].room)
	}
	for v := sink; v != source; v = int(f.arcs[f.into[v]^1].to) {
		n := f.into[v]
		f.arcs[n].room -= most
		f.arcs[n^1].room += most
		*cost += float64(most) * f.arcs[n].cost
	}
	return most
}
