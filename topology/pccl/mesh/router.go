package mesh

import (
	"context"
	"math/rand/v2"
)

// mostPlaces is after how many places visited negotiation ends if no number of rounds is given: some ten seconds.
const mostPlaces = 1 << 26

// attempt is how many rounds of negotiation there are before it begins anew in another order.
const attempt = 50

// Route looks for ways for all requests: by negotiation, and if that fails for a cut that proves that there are none,
// and then, in grids that are narrow enough, by exact search. An error is one of the arguments, matching
// pccl.ErrArgument or pccl.ErrSize, or that of ctx; that something could not be routed is in the result.
func (m *Mesh) Route(ctx context.Context, requests []Request, opt Options) (*Result, error) {
	unlimited := opt.Rounds > 0
	opt, err := m.check(requests, opt)
	if err != nil {
		return nil, err
	}
	n := &negotiation{search: newSearch(m, opt), unlimited: unlimited, requests: requests, best: make([]Circuit, len(requests))}
	for i, r := range requests {
		n.best[i].Request = r
	}
	r := &Result{Verdict: NotFound}
	cuts := &cutter{m: m, opt: opt, requests: requests}
	if r.Cut = cuts.first(); r.Cut != nil {
		opt.Rounds = min(opt.Rounds, attempt) // for what can be routed
	}
	done, err := n.run(ctx, opt.Rounds)
	if err != nil {
		return nil, err
	}
	r.Circuits, r.Tried = n.best, n.tried
	switch {
	case done:
		r.Verdict, r.Cut = Routed, nil
	case r.Cut == nil:
		r.Cut = cuts.congested(n.search)
	}
	r.Tried.Cuts = cuts.looked
	if r.Cut != nil {
		r.Verdict = Impossible
	} else if !done {
		if err := m.decide(ctx, requests, opt, r); err != nil {
			return nil, err
		}
	}
	n.shorten(r.Circuits)
	r.Tried.Searches = n.searches
	r.finish(m, opt)
	return r, nil
}

// shorten routes each circuit again beside all others: negotiation leaves detours that are needed no more.
func (n *negotiation) shorten(circuits []Circuit) {
	n.forget()
	n.hard = true
	for _, c := range circuits {
		n.count(c, 1)
	}
	const passes = 2
	for i := range passes * len(circuits) {
		i %= len(circuits)
		old := circuits[i]
		if old.Nodes == nil {
			continue
		}
		n.count(old, -1)
		c := Circuit{Request: n.requests[i]}
		if c.Nodes, c.Wavelength = n.path(n.requests[i]); c.Nodes != nil && len(c.Nodes) < len(old.Nodes) {
			circuits[i] = c
		}
		n.count(circuits[i], 1)
		if n.over(circuits[i]) { // it crosses itself
			n.count(circuits[i], -1)
			n.count(old, 1)
			circuits[i] = old
		}
	}
	n.hard = false
}

// forget leaves nothing used, and all of one price.
func (n *negotiation) forget() {
	clear(n.use)
	clear(n.history)
	clear(n.pairs)
	clear(n.nodeHistory)
}

// finish counts what is routed, and sets the states for it.
func (r *Result) finish(m *Mesh, opt Options) {
	for _, c := range r.Circuits {
		if c.Nodes != nil {
			r.Routed++
		}
	}
	if m.rows > 0 && opt.Capacity == 1 {
		r.Setting, r.Conflicts = m.Program(r.Circuits, opt.Layout)
	}
}

// negotiation lets circuits share waveguides at a price that rises until each is content with what it has for itself.
type negotiation struct {
	*search
	requests []Request
	circuits []Circuit // as they are
	best     []Circuit // the most that could be put beside each other
	most     int
	tried    Tried

	unlimited bool // in places: the caller has said how many rounds
}

// tired reports whether there have been rounds enough.
func (n *negotiation) tired(rounds int) bool {
	return n.tried.Rounds >= rounds || !n.unlimited && n.places > mostPlaces
}

func (n *negotiation) run(ctx context.Context, rounds int) (done bool, err error) {
	order := make([]int, len(n.requests))
	for i := range order {
		order[i] = i
	}
	draw := rand.New(rand.NewPCG(1, uint64(len(order))))
	for n.tried.Rounds == 0 || !n.tired(rounds) {
		if n.tried.Rounds > 0 {
			n.tried.Restarts++
			draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		if done, err = n.attempt(ctx, order, rounds); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// attempt negotiates from an empty mesh.
func (n *negotiation) attempt(ctx context.Context, order []int, rounds int) (done bool, err error) {
	n.forget()
	n.press = unit / 2
	n.circuits = make([]Circuit, len(n.requests))
	for round := range attempt {
		if round > 0 && n.tired(rounds) {
			n.keep(order)
			break
		}
		n.tried.Rounds++
		all := round%8 == 0 // those that are content may be in the way of others
		for _, i := range order {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if !all && !n.over(n.circuits[i]) {
				continue
			}
			n.count(n.circuits[i], -1)
			c := Circuit{Request: n.requests[i]}
			if c.Nodes, c.Wavelength = n.path(n.requests[i]); c.Nodes == nil {
				c.Wavelength = n.requests[i].Wavelength
			}
			n.circuits[i] = c
			n.count(c, 1)
		}
		if n.settled() {
			n.best, n.most = n.circuits, len(n.circuits)
			return true, nil
		}
		n.raise()
		if round == 0 || round == attempt-1 {
			n.keep(order)
		}
	}
	return false, nil
}

func (n *negotiation) settled() bool {
	for _, c := range n.circuits {
		if c.Nodes == nil || n.over(c) {
			return false
		}
	}
	return true
}

// raise makes dearer what too many want.
func (n *negotiation) raise() {
	for i, u := range n.use {
		if over := u - int32(n.opt.Capacity); over > 0 {
			n.history[i] = min(n.history[i]+over*unit/2, mostCost/4)
		}
	}
	for node := range n.nodeHistory {
		for p := Straight; p < pairings; p++ {
			if n.pairs[node*int(pairings)+int(p)] > 0 && n.others(node, p) > 0 {
				n.nodeHistory[node] = min(n.nodeHistory[node]+unit/2, mostCost/4)
			}
		}
	}
	n.press = min(n.press+n.press/2, mostCost/4)
}

// keep takes the circuits that can be beside each other, and routes as many of the others as there is room
// for. If they are the most so far they are the best; what is used is as it was before.
func (n *negotiation) keep(order []int) {
	for _, c := range n.circuits {
		n.count(c, -1)
	}
	n.hard = true
	kept, left, most := make([]Circuit, len(n.circuits)), []int(nil), 0
	put := func(i int, c Circuit) {
		n.count(c, 1)
		kept[i] = c
		most++
	}
	for _, i := range order {
		n.count(n.circuits[i], 1)
		over := n.circuits[i].Nodes == nil || n.over(n.circuits[i])
		n.count(n.circuits[i], -1)
		if over {
			left = append(left, i)
			continue
		}
		put(i, n.circuits[i])
	}
	for _, i := range left {
		kept[i].Request = n.requests[i]
		if nodes, w := n.path(n.requests[i]); nodes != nil {
			c := Circuit{Request: n.requests[i], Nodes: nodes}
			c.Wavelength = w
			put(i, c)
			if n.over(c) { // it crosses itself
				n.count(c, -1)
				kept[i] = Circuit{Request: n.requests[i]}
				most--
			}
		}
	}
	n.hard = false
	for i := range kept {
		n.count(kept[i], -1)
		n.count(n.circuits[i], 1)
	}
	if most > n.most {
		n.best, n.most = kept, most
	}
}
