package mesh

// Costs of a waveguide are whole numbers, so that a queue of buckets serves.
const (
	unit      = 16      // of a waveguide that nobody else wants
	mostCost  = 1 << 13 // of any
	full      = mostCost + 1
	buckets   = 1 << 14 // more than a step can add to the estimate of a path, which is unit + mostCost
	startSide = Side(sides)
)

// search finds cheapest paths, and knows who uses what. Its places are nodes; if circuits mind the states, a node
// and the side that light came in by, as what it can do next depends on that. Each wavelength has its own.
type search struct {
	m        *Mesh
	opt      Options
	stride   int       // places of a node
	elements []Element // by node, if circuits mind the states

	use, history       []int32 // by wavelength and edge
	pairs, nodeHistory []int32 // by node and pairing; by node: how many circuits want it
	press              int32   // what a circuit too many costs now
	hard               bool    // such a circuit is not allowed at all

	dist, via, seen, done []int32 // by place; seen and done hold the epoch
	epoch                 int32
	queue                 [][]entry
	searches, places      int // looked for; visited
}

type entry struct{ place, via, dist int32 }

func newSearch(m *Mesh, opt Options) *search {
	s := &search{m: m, opt: opt, stride: 1, queue: make([][]entry, buckets)}
	s.use = make([]int32, opt.Wavelengths*len(m.edges))
	s.history = make([]int32, len(s.use))
	if opt.Strict {
		s.stride = int(sides) + 1
		s.elements = m.elements(opt.Layout)
		s.pairs = make([]int32, m.Nodes()*int(pairings))
		s.nodeHistory = make([]int32, m.Nodes())
	}
	places := opt.Wavelengths * m.Nodes() * s.stride
	s.dist, s.via = make([]int32, places), make([]int32, places)
	s.seen, s.done = make([]int32, places), make([]int32, places)
	return s
}

func (m *Mesh) elements(l Layout) []Element {
	elements := make([]Element, m.Nodes())
	for n := range elements {
		elements[n] = l(n/m.columns, n%m.columns)
	}
	return elements
}

// bound is at least what is left to pay from a node to another.
func (s *search) bound(node, dst int) int32 {
	if s.m.columns == 0 {
		return 0
	}
	c := s.m.columns
	dr, dc := node/c-dst/c, node%c-dst%c
	return unit * int32(max(dr, -dr)+max(dc, -dc))
}

func (s *search) push(f int32, e entry) {
	b := &s.queue[f%buckets]
	*b = append(*b, e)
}

// path returns the nodes of a cheapest path and its wavelength; nil if there is none. Among paths
// of one cost and in an empty mesh it is the one that takes at each node the lowest next node. [A*, with a queue of
// buckets, the last in being the first out.]
func (s *search) path(r Request) (nodes []int, wavelength int) {
	s.epoch++
	s.searches++
	n, waiting := s.m.Nodes(), 0
	for w := s.opt.Wavelengths; w >= 1; w-- {
		if r.Wavelength == 0 || r.Wavelength == w {
			p := int32(((w-1)*n+r.Src)*s.stride + s.stride - 1)
			s.dist[p], s.seen[p] = 0, s.epoch
			s.push(s.bound(r.Src, r.Dst), entry{p, -1, 0})
			waiting++
		}
	}
	for f := s.bound(r.Src, r.Dst); waiting > 0; {
		b := &s.queue[f%buckets]
		if len(*b) == 0 {
			f++
			continue
		}
		e := (*b)[len(*b)-1]
		*b = (*b)[:len(*b)-1]
		waiting--
		if s.done[e.place] == s.epoch || e.dist > s.dist[e.place] {
			continue
		}
		s.done[e.place], s.via[e.place] = s.epoch, e.via
		if node := int(e.place) / s.stride % n; node == r.Dst {
			s.empty(f, waiting)
			return s.walk(e.place)
		}
		s.places++
		waiting += s.expand(e, r.Dst)
	}
	return nil, 0
}

// empty leaves nothing in the queue, of which the bucket of f is the first.
func (s *search) empty(f int32, waiting int) {
	for ; waiting > 0; f++ {
		b := &s.queue[f%buckets]
		waiting -= len(*b)
		*b = (*b)[:0]
	}
}

// expand puts what follows a place into the queue, and returns how many that are.
func (s *search) expand(e entry, dst int) (pushed int) {
	m, n := s.m, s.m.Nodes()
	node, layer := int(e.place)/s.stride%n, int(e.place)/s.stride/n
	in := Side(int(e.place) % s.stride)
	for k := m.off[node+1] - 1; k >= m.off[node]; k-- { // the lowest last, so that it is taken first
		cost := s.waveguide(layer, int(m.edge[k]))
		place := (layer*n + int(m.to[k])) * s.stride
		if s.stride > 1 {
			if in != startSide {
				cost += s.turn(node, in, m.side[k])
			}
			place += int(m.side[k].opposite())
		}
		if cost >= full {
			if s.hard || cost >= 2*full {
				continue
			}
			cost = mostCost
		}
		d := e.dist + cost
		if s.done[place] == s.epoch || s.seen[place] == s.epoch && d > s.dist[place] {
			continue
		}
		s.seen[place], s.dist[place] = s.epoch, d
		s.push(d+s.bound(int(m.to[k]), dst), entry{int32(place), e.place, d})
		pushed++
	}
	return pushed
}

// waveguide returns what one more circuit on it costs; full if there is no room and there must be.
func (s *search) waveguide(layer, edge int) int32 {
	i := layer*len(s.m.edges) + edge
	over := s.use[i] + 1 - int32(s.opt.Capacity)
	if over <= 0 {
		return min(unit+s.history[i], mostCost)
	}
	if s.hard {
		return full
	}
	return min(unit+s.history[i]+over*s.press, mostCost)
}

// turn returns what it costs to cross a node; twice full if it cannot be done at all.
func (s *search) turn(node int, in, out Side) int32 {
	if in == out {
		return 2 * full
	}
	p := pairingOf(in, out)
	if _, ok := s.elements[node].does(p); !ok {
		return 2 * full
	}
	others := s.others(node, p)
	if others == 0 {
		return s.nodeHistory[node] / unit
	}
	if s.hard {
		return full
	}
	return min(s.nodeHistory[node]+others*s.press, mostCost)
}

// others returns how many circuits want another pairing of a node.
func (s *search) others(node int, p Pairing) (n int32) {
	for q := Straight; q < pairings; q++ {
		if q != p {
			n += s.pairs[node*int(pairings)+int(q)]
		}
	}
	return n
}

func (s *search) walk(place int32) (nodes []int, wavelength int) {
	n := s.m.Nodes()
	wavelength = int(place)/s.stride/n + 1
	for ; place >= 0; place = s.via[place] {
		nodes = append(nodes, int(place)/s.stride%n)
	}
	for i, j := 0, len(nodes)-1; i < j; i, j = i+1, j-1 {
		nodes[i], nodes[j] = nodes[j], nodes[i]
	}
	return nodes, wavelength
}

// count adds a circuit to what is used, n times; -1 takes it away.
func (s *search) count(c Circuit, n int32) {
	s.m.steps(c, func(edge, node int, p Pairing) {
		s.use[(c.Wavelength-1)*len(s.m.edges)+edge] += n
		if s.pairs != nil && p != None {
			s.pairs[node*int(pairings)+int(p)] += n
		}
	})
}

// steps calls f with each edge of a circuit, the node before it, and the pairing that crosses that; None at the
// first, and of what is no grid.
func (m *Mesh) steps(c Circuit, f func(edge, node int, p Pairing)) {
	in := startSide
	for i := 1; i < len(c.Nodes); i++ {
		p, node := None, c.Nodes[i-1]
		for k := m.off[node]; k < m.off[node+1]; k++ {
			if int(m.to[k]) != c.Nodes[i] {
				continue
			}
			if m.side != nil {
				if in != startSide {
					p = pairingOf(in, m.side[k])
				}
				in = m.side[k].opposite()
			}
			f(int(m.edge[k]), node, p)
		}
	}
}

// over reports whether a circuit, which is counted, shares what is too little.
func (s *search) over(c Circuit) (over bool) {
	s.m.steps(c, func(edge, node int, p Pairing) {
		over = over || s.use[(c.Wavelength-1)*len(s.m.edges)+edge] > int32(s.opt.Capacity) ||
			s.pairs != nil && p != None && s.others(node, p) > 0
	})
	return over
}
