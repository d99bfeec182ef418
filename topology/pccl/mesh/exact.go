package mesh

import (
	"context"
	"slices"
)

// mostWidth is the most columns, or rows if these are fewer, of a grid that is searched exactly, and mostExact the
// most requests.
const (
	mostWidth = 12
	mostExact = 120
)

// decide searches for all that remains open, and completes the result. With several wavelengths it does so if each
// request has its own and states do not bind them together: then they are so many separate meshes.
func (m *Mesh) decide(ctx context.Context, requests []Request, opt Options, r *Result) error {
	if opt.States < 0 || m.rows == 0 || opt.Capacity > 1 || min(m.rows, m.columns) > mostWidth || len(requests) > mostExact {
		return nil
	}
	free := slices.ContainsFunc(requests, func(q Request) bool { return q.Wavelength == 0 })
	if opt.Wavelengths > 1 && (free || opt.Strict) {
		return nil
	}
	circuits := make([]Circuit, len(requests))
	open := false
	for w := range opt.Wavelengths {
		e := newExact(m, opt)
		var index []int
		for i, q := range requests {
			if max(q.Wavelength, 1) == w+1 {
				index = append(index, i)
				e.add(q)
			}
		}
		ways, decided, err := e.run(ctx, opt.States-r.Tried.States)
		r.Tried.States += e.total
		switch {
		case err != nil:
			return err
		case !decided:
			open = true
			continue
		case ways == nil:
			r.Verdict, r.Exhausted = Impossible, true
			return nil
		}
		for k, i := range index {
			circuits[i] = Circuit{Request: requests[i], Nodes: ways[k]}
			circuits[i].Wavelength = w + 1
		}
	}
	if !open {
		r.Verdict, r.Circuits = Routed, circuits
	}
	return nil
}

// exact searches all routings of one wavelength on a grid, node by node, line by line. All that the nodes behind
// mean for those ahead is which waveguides between them are in use, and by what: by a request of which one end has
// been seen, or by a piece of a path of which none has. Of all routings behind that leave the same there, one is
// kept.
type exact struct {
	m        *Mesh
	width    int
	turned   bool // lines are columns of the mesh
	elements []Element
	requests []Request
	ends     [][]int // by node: requests
	layers   []layer // by node, in order
	total    int     // states of all layers

	// What is being done: of one state, the node next.
	at    int
	now   frontier
	link  links
	used  []bool // by end at the node
	into  map[frontier]int32
	from  int32
	after *layer
}

// frontier is what uses the waveguides ahead: by column those downwards, and last the one to the right. 0 is
// nothing, 1 and up a request, and piece and up the two ends of a piece of a path.
type frontier [mostWidth + 1]uint8

const piece = 128

// links is to what each side of a node is joined: 0 nothing, 1 to 4 a side, 5 and up an end of a request.
type links [sides]uint8

type layer struct {
	states []frontier
	parent []int32
	link   []links
}

// Sides in order of a line: left and up lead back, right and down ahead.
func (e *exact) side(s Side) Side {
	if !e.turned {
		return s
	}
	return [...]Side{West, North, South, East}[s]
}

func newExact(m *Mesh, opt Options) *exact {
	e := &exact{m: m, width: min(m.rows, m.columns), turned: m.rows < m.columns, ends: make([][]int, m.Nodes())}
	if opt.Strict {
		e.elements = m.elements(opt.Layout)
	}
	return e
}

func (e *exact) add(r Request) {
	e.ends[r.Src] = append(e.ends[r.Src], len(e.requests))
	e.ends[r.Dst] = append(e.ends[r.Dst], len(e.requests))
	e.requests = append(e.requests, r)
}

// node returns the i-th in order.
func (e *exact) node(i int) int {
	if e.turned {
		return i%e.width*e.m.columns + i/e.width
	}
	return i
}

// run returns the ways, nil if there are none; decided is false if there were too many states.
func (e *exact) run(ctx context.Context, most int) (ways [][]int, decided bool, err error) {
	last := layer{states: []frontier{{}}}
	e.into = map[frontier]int32{}
	for e.at = range e.m.Nodes() {
		e.layers = append(e.layers, layer{})
		e.after = &e.layers[e.at]
		clear(e.into)
		e.used = make([]bool, len(e.ends[e.node(e.at)]))
		for i, f := range last.states {
			if i%1024 == 0 && ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
			if e.total+len(e.after.states) > most {
				return nil, false, nil
			}
			e.now, e.from, e.link = f, int32(i), links{}
			column := e.at % e.width
			left, up := f[e.width], f[column]
			e.now[e.width], e.now[column] = 0, 0
			e.incoming(left, up)
		}
		e.total += len(e.after.states)
		last = *e.after
		if len(last.states) == 0 {
			return nil, true, nil
		}
	}
	return e.ways(), true, nil
}

// incoming does what can be done with what comes from the left and from above.
func (e *exact) incoming(left, up uint8) {
	if left != 0 && up != 0 && e.may(West, North) {
		now := e.now
		if _, ok := e.join(left, up, 0); ok {
			e.set(West, uint8(North)+1)
			e.set(North, uint8(West)+1)
			e.terminals(0)
			e.link[West], e.link[North] = 0, 0
		}
		e.now = now
	}
	if e.elements == nil && left == up && left != 0 {
		return // a path that comes by a node twice can leave out what is between; the states of nodes may not let it
	}
	e.pass(West, left, up, func(up uint8) {
		e.pass(North, up, 0, func(uint8) { e.terminals(0) })
	})
}

func (e *exact) set(s Side, to uint8) { e.link[s] = to }

// pass leads what comes in on a side, if anything does, ahead or to an end, each in turn, and goes on. The
// other is what comes in besides, which may be the other end of the same piece.
func (e *exact) pass(in Side, what, other uint8, then func(other uint8)) {
	if what == 0 {
		then(other)
		return
	}
	home := e.elements == nil && what < piece && slices.Contains(e.ends[e.node(e.at)], int(what)-1)
	for _, out := range [...]Side{East, South} {
		if !home && e.ahead(out) && e.link[out] == 0 && e.may(in, out) {
			e.link[in], e.link[out] = uint8(out)+1, uint8(in)+1
			e.now[e.slot(out)] = what
			then(other)
			e.now[e.slot(out)] = 0
			e.link[in], e.link[out] = 0, 0
		}
	}
	for t, q := range e.ends[e.node(e.at)] {
		if e.used[t] {
			continue
		}
		now := e.now
		if rest, ok := e.join(what, uint8(q)+1, other); ok {
			e.used[t], e.link[in] = true, uint8(sides)+1+uint8(t)
			then(rest)
			e.used[t], e.link[in] = false, 0
		}
		e.now = now
	}
}

// join makes one of two, of which one may be new. What else has the name of a piece that ends there gets
// the name of what it is joined to; so does other.
func (e *exact) join(a, b, other uint8) (uint8, bool) {
	if a < piece {
		a, b = b, a
	}
	switch {
	case a < piece: // of two requests, or both ends of one
		return other, a == b
	case a == b: // a ring
		return other, false
	}
	for i := range e.now {
		if e.now[i] == a {
			e.now[i] = b
		}
	}
	if other == a {
		other = b
	}
	return other, true
}

// terminals leads the ends of requests that nothing has come to ahead, each in turn.
func (e *exact) terminals(t int) {
	ends := e.ends[e.node(e.at)]
	for t < len(ends) && e.used[t] {
		t++
	}
	if t == len(ends) {
		e.fresh()
		return
	}
	for _, out := range [...]Side{East, South} {
		if e.ahead(out) && e.link[out] == 0 {
			e.link[out] = uint8(sides) + 1 + uint8(t)
			e.now[e.slot(out)] = uint8(ends[t]) + 1
			e.used[t] = true
			e.terminals(t + 1)
			e.used[t] = false
			e.now[e.slot(out)] = 0
			e.link[out] = 0
		}
	}
}

// fresh keeps what there is now, without and with a piece of a path that begins here both ways.
func (e *exact) fresh() {
	e.keep()
	if e.ahead(East) && e.ahead(South) && e.link[East] == 0 && e.link[South] == 0 && e.may(East, South) {
		e.link[East], e.link[South] = uint8(South)+1, uint8(East)+1
		e.now[e.slot(East)], e.now[e.slot(South)] = 255, 255 // named anew when it is kept
		e.keep()
		e.now[e.slot(East)], e.now[e.slot(South)] = 0, 0
		e.link[East], e.link[South] = 0, 0
	}
}

func (e *exact) keep() {
	key, name, next := e.now, [256]uint8{}, uint8(piece)
	for i, v := range key {
		if v < piece {
			continue
		}
		if name[v] == 0 {
			name[v] = next
			next++
		}
		key[i] = name[v]
	}
	if _, ok := e.into[key]; ok {
		return
	}
	e.into[key] = int32(len(e.after.states))
	e.after.states = append(e.after.states, key)
	e.after.parent = append(e.after.parent, e.from)
	e.after.link = append(e.after.link, e.link)
}

func (e *exact) slot(out Side) int {
	if out == East {
		return e.width
	}
	return e.at % e.width
}

// ahead reports whether there is a waveguide.
func (e *exact) ahead(out Side) bool {
	if out == East {
		return e.at%e.width < e.width-1
	}
	return e.at+e.width < e.m.Nodes()
}

// may reports whether light may cross the node so.
func (e *exact) may(a, b Side) bool {
	if e.elements == nil {
		return true
	}
	_, ok := e.elements[e.node(e.at)].does(pairingOf(e.side(a), e.side(b)))
	return ok
}

// ways follows the paths of the only state of the last layer.
func (e *exact) ways() [][]int {
	link := make([]links, e.m.Nodes()) // in order
	for i, state := e.m.Nodes()-1, int32(0); i >= 0; i-- {
		link[i] = e.layers[i].link[state]
		state = e.layers[i].parent[state]
	}
	order := make([]int, e.m.Nodes()) // by node
	for i := range order {
		order[e.node(i)] = i
	}
	step := [...]int{North: -e.width, West: -1, East: 1, South: e.width}
	ways := make([][]int, len(e.requests))
	for q, r := range e.requests {
		at := order[r.Src]
		end := uint8(slices.Index(e.ends[r.Src], q)) + uint8(sides) + 1
		out := slices.Index(link[at][:], end)
		for {
			ways[q] = append(ways[q], e.node(at))
			at += step[out]
			in := Side(out).opposite()
			if next := link[at][in]; next <= uint8(sides) {
				out = int(next) - 1
				continue
			}
			ways[q] = append(ways[q], e.node(at))
			break
		}
	}
	return ways
}
