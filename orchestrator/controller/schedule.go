package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// complete reports whether all members have asked, and all whether all are about to start.
func (b *barrier) complete() bool { return !b.over && b.asked+b.ins() == len(b.asks) }
func (b *barrier) all() bool      { return !b.over && b.demanded+b.ins() == len(b.asks) }

func (b *barrier) ins() int {
	if !b.partial {
		return 0
	}
	n := 0
	for _, a := range b.asks {
		if a.in && a.dem == nil && a.prov == nil {
			n++
		}
	}
	return n
}

// present reports whether the circuits of a unit will be there once all that was sent is done.
func (e *engine) present(u *unit) bool {
	if len(u.need) == 0 {
		return true // it is alone
	}
	if e.gran == Circuit {
		for _, c := range u.need {
			if peer, ok := e.matching.Peer(c.A); !ok || peer != c.B {
				return false
			}
		}
		return true
	}
	for _, s := range u.class.stages() {
		if int(e.digits[s]) != u.class.axis {
			return false
		}
	}
	return true
}

// portsOf returns the ports of a rank that a unit uses, the lowest bit being port 0.
func (e *engine) portsOf(u *unit, rank int) uint8 {
	if len(u.need) == 0 {
		return 0
	}
	var ports uint8
	for p := range e.per {
		peer, ok := e.matching.Peer(rank*e.per + p)
		if ok && (u.group.Axis != opus.PP || slices.Contains(u.members, peer/e.per)) {
			ports |= 1 << p
		}
	}
	return ports
}

// unitPorts yields the duplex ports that a unit uses.
func (e *engine) unitPorts(u *unit, yield func(q int) bool) bool {
	for _, x := range u.members {
		ports := e.portsOf(u, x)
		for p := range e.per {
			if ports>>p&1 != 0 && !yield(x*e.per+p) {
				return false
			}
		}
	}
	return true
}

// settled reports whether no port of the members is being changed: not only of those that the unit uses, since one that
// is about to lose a second circuit between the same ranks still has it.
func (e *engine) settled(u *unit) bool {
	for _, x := range u.members {
		for q := x * e.per; q < (x+1)*e.per; q++ {
			if e.flight[q] > 0 {
				return false
			}
		}
	}
	return true
}

// settle goes on with an operation as far as that is possible now.
func (e *engine) settle(b *barrier) {
	if !e.gathered || !b.complete() {
		return
	}
	switch e.mode {
	case dead:
		switch {
		case !e.others:
			e.refuseAll(b, proto.RailDead, fmt.Sprintf("rail %s is dead, and no other rail lives: %s", e.rail, e.reason))
		case b.all():
			e.grant(b, proto.Detoured)
		default:
			e.predicted(b, proto.Detoured)
		}
	case onRing:
		switch {
		case len(b.unit.need) == 0 && b.all():
			e.grant(b, proto.NoOp) // it is alone
		case len(b.unit.need) == 0:
			e.predicted(b, proto.NoOp)
		case e.again:
			e.again, e.mode, e.trigger, e.since = false, resuming, b, e.now
			e.drained()
		case b.all():
			e.grant(b, proto.OnRing)
		default:
			e.predicted(b, proto.OnRing)
		}
	case normal:
		u := b.unit
		switch {
		case b.change != nil || b.queued != nil || u.waiting != nil:
		case !e.present(u):
			u.waiting = b
			u.class.waiting = append(u.class.waiting, b)
			e.consider(u.class)
		case b.all():
			b.queued = &ticket{bar: b, witness: -1}
			e.enqueue(b.queued)
		case e.settled(u):
			e.predicted(b, proto.NoOp)
		case !b.predicted:
			b.predicted = true
			e.predict = append(e.predict, b)
		}
	}
}

// settleAll goes on with everything, after the rail has become something else.
func (e *engine) settleAll() {
	for _, c := range e.classes {
		for _, u := range c.units {
			if len(u.bars) == 0 {
				continue
			}
			for _, op := range sortedOps(u.bars) {
				if b := u.bars[op]; b != nil {
					e.settle(b)
				}
			}
		}
	}
	e.dirty()
}

// quorum reports whether all units of a class have asked, or are past what is asked for.
func (e *engine) quorum(c *class) bool {
	if len(c.waiting) == 0 {
		return false
	}
	if len(c.waiting) == len(c.units) || e.gran == Published {
		return true
	}
	first := c.waiting[0].op
	for _, b := range c.waiting {
		first = min(first, b.op)
	}
	for _, u := range c.units {
		if u.waiting == nil && u.passed < int64(first) {
			return false
		}
	}
	return true
}

// consider puts the change of a class into the queue when it is ready.
func (e *engine) consider(c *class) {
	if e.mode == normal && c.queued == nil && e.quorum(c) {
		c.queued = &ticket{class: c, ready: e.now, witness: -1}
		for _, b := range c.waiting {
			b.ready = e.now
		}
		last := c.waiting[len(c.waiting)-1]
		e.log(Event{Kind: EventReady, Rank: -1, Ref: last.unit.ref(last.op), Generation: e.gen})
		e.enqueue(c.queued)
	}
}

// enqueue puts an entry behind all others, unless it can go on at once.
func (e *engine) enqueue(t *ticket) {
	if !e.try(t) {
		e.keep(t)
		e.queue = append(e.queue, t)
	}
}

// keep marks what an entry of the queue waits for, for those behind it.
func (e *engine) keep(t *ticket) {
	t.kept = t.kept[:0]
	if t.bar != nil {
		e.unitPorts(t.bar.unit, func(q int) bool { t.kept = append(t.kept, q); return true })
	} else {
		t.kept = append(t.kept, t.ports...)
	}
	for _, q := range t.kept {
		e.kept[q]++
	}
	if t.witness >= 0 {
		e.watch[t.witness]++
	}
}

func (e *engine) unkeep(t *ticket) {
	for _, q := range t.kept {
		e.kept[q]--
	}
	t.kept = t.kept[:0]
	if t.witness >= 0 {
		e.watch[t.witness]--
		t.witness = -1
	}
}

// dirty: something that the queue waits for may have come.
func (e *engine) dirty() { e.stale = true }

// freed goes on with all that may go on. Every event ends with it.
func (e *engine) freed() {
	for e.stale && e.mode == normal {
		e.stale = false
		queue := e.queue
		e.queue = nil
		for _, t := range queue {
			e.unkeep(t)
		}
		for _, t := range queue {
			e.enqueue(t)
		}
	}
	e.drained()
}

// try carries out an entry of the queue, if nothing is in its way, or drops it, if it has become pointless.
func (e *engine) try(t *ticket) bool {
	if t.bar != nil {
		return e.tryGrant(t)
	}
	c := t.class
	if !e.quorum(c) {
		c.queued = nil
		return true
	}
	if e.present(c.waiting[0].unit) {
		c.queued = nil
		e.reconsider(c)
		return true
	}
	if t.version != e.version || t.ports == nil {
		ports, err := e.plan(c)
		if err != nil { // the job is possible and so are its IDs; if not, nobody shall run
			c.queued = nil
			for _, b := range slices.Clone(c.waiting) {
				e.refuseAll(b, proto.Bad, err.Error())
			}
			return true
		}
		t.version, t.ports = e.version, ports
	}
	partial := slices.ContainsFunc(c.waiting, func(b *barrier) bool { return b.partial })
	for _, q := range t.ports {
		if e.guard[q] > 0 || e.kept[q] > 0 && !partial {
			return false
		}
	}
	if e.gran != Published {
		// Any holder will do to wait for. The first would be the wrong one, as ranks tend to end in order, and each would be looked for
		// anew: a random one is likely to be among the last.
		e.random = e.random*6364136223846793005 + 1442695040888963407
		start := int(e.random>>33) % max(len(t.ports), 1)
		for i := range t.ports {
			if q := t.ports[(start+i)%len(t.ports)]; e.held[q] > 0 {
				t.witness = q
				return false
			}
		}
	}
	e.command(c, t.ports)
	return true
}

// reconsider looks again at operations whose circuits were not there.
func (e *engine) reconsider(c *class) {
	waiting := c.waiting
	c.waiting = nil
	for _, b := range waiting {
		b.unit.waiting = nil
	}
	for _, b := range waiting {
		e.settle(b)
	}
}

// next returns the digits that a class asks for.
func (e *engine) next(c *class) opus.ID {
	if c.axis == opus.PP {
		return e.digits.Transfer(c.stage)
	}
	return e.digits.Symmetrical(c.stage, c.axis)
}

// circuits returns what a request for one unit joins. A PP transfer takes both ports of its ranks, for the full
// bandwidth, unless another neighbour of the pipeline has one of them.
func (e *engine) circuits(u *unit) []opus.Circuit {
	if u.group.Axis != opus.PP || e.policy == opus.Chain {
		return u.need
	}
	for i, x := range u.members {
		other := u.way - 1 // the stage on the other side
		if i == 1 {
			other = u.way + 2
		}
		if other < 0 || other >= len(u.group.Members) {
			continue
		}
		for p := range e.per {
			if peer, ok := e.matching.Peer(x*e.per + p); ok && peer/e.per == u.group.Members[other] {
				return u.need
			}
		}
	}
	return e.job.TransferCircuits(u.group.Group, u.way, true)
}

// plan returns the duplex ports that the change of a class touches.
func (e *engine) plan(c *class) ([]int, error) {
	if e.gran != Circuit {
		d, err := e.table.Change(e.digits, e.next(c))
		return d.Ports, err
	}
	var ports []int
	for _, x := range e.circuits(c.units[0]) {
		if peer, ok := e.matching.Peer(x.A); ok && peer == x.B {
			continue
		}
		for _, q := range []int{x.A, x.B} {
			ports = append(ports, q)
			if peer, ok := e.matching.Peer(q); ok {
				ports = append(ports, peer)
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// command sends the change of a class.
func (e *engine) command(c *class, ports []int) {
	ch := e.change(ports)
	ch.bars = slices.Clone(c.waiting)
	a := &proto.Apply{Req: ch.req, Epoch: e.epoch}
	if e.gran == Circuit {
		join := e.circuits(c.units[0])
		e.matching, _, _, _ = e.matching.With(join, nil) // plan has seen that it is possible
		e.version++
		a.Join = pairs(join)
	} else {
		e.setDigits(e.next(c))
		a.ID = e.digits.String()
	}
	c.waiting, c.queued = nil, nil
	for _, b := range ch.bars {
		b.unit.waiting, b.change = nil, ch
		for _, x := range b.unit.members {
			for q := x * e.per; q < (x+1)*e.per; q++ {
				ch.guard = append(ch.guard, q)
				e.guard[q]++
			}
		}
	}
	e.apply(a)
	if e.gran != Circuit {
		for _, s := range c.stages() {
			for _, near := range e.byStage[s] {
				if near != c && len(near.waiting) > 0 && e.present(near.units[0]) {
					e.reconsider(near)
				}
			}
		}
	}
	e.dirty()
}

func pairs(circuits []opus.Circuit) [][2]int {
	var all [][2]int
	for _, c := range circuits {
		all = append(all, [2]int{c.A, c.B})
	}
	return all
}

// change registers a request to the orchestrator.
func (e *engine) change(ports []int) *change {
	e.req++
	ch := &change{req: e.req, ports: ports, kind: "apply"}
	e.changes[ch.req] = ch
	for _, q := range ports {
		e.flight[q]++
	}
	return ch
}

func (e *engine) apply(a *proto.Apply) {
	e.counters.Changes++
	e.log(Event{Kind: EventCommand, Rank: -1, Req: a.Req, ID: a.ID, Join: a.Join, Part: a.Part, Generation: e.gen})
	e.out = append(e.out, action{apply: a})
}

// tryGrant gives leave to run an operation whose circuits are there.
func (e *engine) tryGrant(t *ticket) bool {
	b := t.bar
	if !b.all() || !e.present(b.unit) {
		b.queued = nil
		e.settle(b)
		return true
	}
	if !e.settled(b.unit) || !b.partial && !e.unitPorts(b.unit, func(q int) bool { return e.kept[q] == 0 }) {
		return false
	}
	b.queued = nil
	e.grant(b, proto.NoOp)
	return true
}

func (e *engine) ack(b *barrier, result proto.Result) *proto.TopoAck {
	ack := &proto.TopoAck{ID: e.id(), Generation: e.gen, Result: result, ReadyNS: b.ready}
	if b.unit.group.Axis == opus.PP && result != proto.OnRing && result != proto.Detoured {
		ack.Lanes = e.matching.Lanes(b.unit.members[0], b.unit.members[1])
	}
	if result == proto.OnRing || result == proto.Detoured {
		ack.ID = ""
	} else if d := b.applied; d != nil && d.Result != proto.NoOp {
		ack.Result = proto.Applied
		ack.CommandNS, ack.SwitchAckNS, ack.VerifiedNS = d.CommandNS, d.SwitchAckNS, d.VerifiedNS
		ack.Removed, ack.Added = d.Removed, d.Added
	}
	return ack
}

// grant gives all members leave to run. They hold the circuits from now on.
func (e *engine) grant(b *barrier, result proto.Result) {
	u := b.unit
	ack := e.ack(b, result)
	if ack.Result != proto.Applied {
		e.log(Event{Kind: EventReady, Rank: -1, Ref: u.ref(b.op), Generation: e.gen})
	}
	for i, x := range u.members {
		if !b.asks[i].in {
			e.admit(b, x, result)
		}
	}
	u.passed, u.ack = max(u.passed, int64(b.op)), ack
	e.end(b)
	for i := range b.asks {
		e.answerAsk(&b.asks[i], ack)
	}
	for _, op := range sortedOps(u.bars) {
		switch o := u.bars[op]; {
		case o == nil:
		case o.partial && o.asked == 0 && o.op < b.op:
			e.end(o) // the others were in the middle of a phase, and did not ask
		default:
			e.settle(o)
		}
	}
	e.consider(u.class)
}

// admit makes a rank a holder.
func (e *engine) admit(b *barrier, rank int, result proto.Result) {
	if result == proto.Detoured {
		return // it uses other rails
	}
	h := hold{unit: b.unit, op: b.op, ports: e.allPorts()} // on the ring it goes through everybody's
	if result != proto.OnRing {
		h.ports = e.portsOf(b.unit, rank)
	}
	e.hold(rank, h)
}

func (e *engine) answerAsk(a *ask, ack *proto.TopoAck) {
	prov, dem := a.prov, a.dem
	a.prov, a.dem = nil, nil
	for _, q := range []*request{prov, dem} {
		if q != nil {
			e.answer(q, action{rank: q.rank, ack: ack})
		}
	}
}

// predicted answers the predictions of an operation whose circuits are there. They are forgotten: what was predicted is
// asked for anew, by demand.
func (e *engine) predicted(b *barrier, result proto.Result) {
	ack := e.ack(b, result)
	for i := range b.asks {
		a := &b.asks[i]
		if q := a.prov; q != nil {
			e.unask(q)
			e.answer(q, action{rank: q.rank, ack: ack})
		}
	}
	b.applied = nil
	if !b.over {
		e.start(b)
	}
}

// start starts the clock of a barrier anew.
func (e *engine) start(b *barrier) {
	b.since = e.now
	if e.barrier >= 0 {
		e.clock = append(e.clock, due{e.now + e.barrier, b})
	}
}

// inPhase reports whether all who have not asked for an operation hold circuits of an earlier one of the unit, so that they may
// be in the middle of a phase. One who is only late does no harm to a group, whose members do the same in the same order: it asks
// next for what the others have joined. Transfers are asked for each time, and of the two ranks each has a program of its own: who
// is late may have something else to do next, which would wait for the circuits of the other.
func (e *engine) inPhase(b *barrier) bool {
	if e.mode != normal || b.unit.group.Axis == opus.PP || b.demanded == 0 || b.demanded < b.asked {
		return false
	}
	for i, x := range b.unit.members {
		if a := b.asks[i]; a.dem == nil && a.prov == nil && !a.in &&
			!slices.ContainsFunc(e.ranks[x].holds, func(h hold) bool { return h.unit == b.unit && h.op <= b.op }) {
			return false
		}
	}
	return true
}

// joinPhase lets ranks take part in an operation in the middle of a phase of the others, who do not ask for it since they hold its circuits
// already. That is so when a rank alone has lost its place in the schedule and asks for everything. The others
// cannot end without it, so what they hold is there until it has come.
func (e *engine) joinPhase(b *barrier) {
	if b.over || b.complete() || !e.inPhase(b) || !e.present(b.unit) ||
		!e.settled(b.unit) {
		return
	}
	b.partial = true
	ack := e.ack(b, proto.NoOp)
	for i, x := range b.unit.members {
		a := &b.asks[i]
		if a.dem == nil {
			continue
		}
		a.in = true
		e.admit(b, x, proto.NoOp)
		b.asked, b.demanded = b.asked-1, b.demanded-1
		e.answerAsk(a, ack)
	}
	b.unit.passed, b.unit.ack = max(b.unit.passed, int64(b.op)), ack
}

// done is told how a request to the orchestrator ended.
func (e *engine) done(req uint64, d proto.Done, err error) {
	ch := e.changes[req]
	if ch == nil {
		return
	}
	delete(e.changes, req)
	for _, q := range ch.ports {
		e.flight[q]--
	}
	for _, q := range ch.guard {
		e.guard[q]--
	}
	for _, b := range ch.bars {
		b.change = nil
	}
	if err != nil {
		ev := Event{Kind: EventFailed, Rank: -1, Req: req, Detail: err.Error(), Generation: e.gen}
		var refusal *proto.Refusal
		if errors.As(err, &refusal) {
			ev.Code, ev.Detail = refusal.Code, refusal.Detail
		}
		e.counters.Failures++
		e.log(ev)
		for _, b := range ch.bars {
			e.outdated(b)
		}
		e.failed(ch, ev.Code, ev.Detail)
		e.freed()
		return
	}
	e.gen, e.shape = max(e.gen, d.Generation), d.Shape
	e.log(Event{Kind: EventDone, Rank: -1, Req: req, Generation: d.Generation, Shape: d.Shape, Result: d.Result, Done: &d})
	switch {
	case ch.kind == "giant-ring":
		e.fallen()
	case ch.kind == "mark" && e.mode == marking:
		e.died()
	case ch.kind == "mark":
		e.looked(d)
	default:
		for _, b := range ch.bars {
			b.applied = &d
		}
		if ch.resume {
			e.resumed()
		}
		e.carried(ch)
	}
	e.freed()
}

// outdated takes back predictions that a change was in flight for, of ranks that have asked for something else meanwhile: what they
// are granted is acknowledged after the prediction only.
func (e *engine) outdated(b *barrier) {
	for i := range b.asks {
		q := b.asks[i].prov
		if q == nil || b.over {
			continue
		}
		reqs := e.ranks[q.rank].reqs
		if last := reqs[len(reqs)-1]; last.ref != q.ref {
			e.withdrawn(q)
		}
	}
}

// carried grants what a change was made for, before anybody else gets its ports.
func (e *engine) carried(ch *change) {
	for _, b := range ch.bars {
		if b.over {
			continue
		}
		if e.mode == normal && b.all() && e.present(b.unit) && e.settled(b.unit) {
			e.grant(b, proto.NoOp)
			continue
		}
		if !b.all() {
			// They were there, as of this generation. To wait until nothing else is under way could be for ever: what a rank is
			// granted meanwhile is acknowledged after its prediction only.
			e.predicted(b, proto.NoOp)
		}
		e.settle(b)
	}
	predict := e.predict
	e.predict = nil
	for _, b := range predict {
		b.predicted = false
		e.settle(b)
	}
	e.dirty()
}

// suspend forgets the queue: the rail will be something else.
func (e *engine) suspend(m mode) {
	e.mode = m
	for _, t := range e.queue {
		e.unkeep(t)
		if t.bar != nil {
			t.bar.queued = nil
		}
	}
	e.queue, e.predict = nil, nil
	for _, c := range e.classes {
		for _, b := range c.waiting {
			b.unit.waiting = nil
		}
		c.waiting, c.queued = nil, nil
		for _, u := range c.units {
			for _, b := range u.bars {
				b.queued, b.predicted, b.applied = nil, false, nil
			}
		}
	}
}

// failed takes the rail down by one rung: to the giant ring, then dead.
func (e *engine) failed(ch *change, code proto.Code, detail string) {
	switch {
	case e.mode == overtaken || e.mode == dead:
	case code == proto.Stale:
		e.suspend(overtaken)
		e.reason = "another controller has taken over: " + detail
		for _, c := range e.classes {
			for _, u := range c.units {
				for _, op := range sortedOps(u.bars) {
					if b := u.bars[op]; b != nil {
						e.refuseAll(b, proto.Stale, e.reason)
					}
				}
			}
		}
		for x, r := range e.ranks {
			if r.here {
				e.out = append(e.out, action{rank: x, close: r.conn, msg: &proto.Bye{Code: proto.Stale, Reason: e.reason}})
			}
		}
		e.out = append(e.out, action{state: true})
	case ch.kind == "mark" && e.mode == marking:
		e.died() // for us it is, whatever the orchestrator says
	case ch.kind == "giant-ring":
		e.kill(detail)
	case e.mode == draining || e.mode == marking || e.mode == ringing:
	default:
		e.suspend(draining)
		e.reason, e.since, e.trigger = detail, e.now, nil
	}
}

// drained goes on when nothing uses the rail and nothing is under way.
func (e *engine) drained() {
	if e.holds > 0 || len(e.changes) > 0 {
		return
	}
	switch e.mode {
	case draining:
		e.mode = ringing
		ch := e.change(nil)
		ch.kind = "giant-ring"
		e.out = append(e.out, action{giant: &proto.GiantRing{Req: ch.req, Epoch: e.epoch, Reason: e.reason}})
	case resuming:
		if !e.trigger.complete() {
			e.stay()
			return
		}
		e.replan(e.trigger)
	}
}

// stay remains on the ring after all.
func (e *engine) stay() {
	e.mode, e.trigger, e.since = onRing, nil, e.now
	e.again = !e.fellBack
	e.settleAll()
}

// fallen tells all that the rail is on its giant ring.
func (e *engine) fallen() {
	e.mode, e.matching, e.digits, e.fellBack, e.again, e.since = onRing, e.ring, nil, true, false, e.now
	e.version++
	e.counters.Fallbacks++
	e.note(EventFallback, e.reason)
	e.broadcast(&proto.Fallback{Rail: e.rail, Generation: e.gen, Reason: e.reason})
	e.settleAll()
}

// replan leaves the giant ring for the circuits of an operation.
func (e *engine) replan(b *barrier) {
	u := b.unit
	a := &proto.Apply{Epoch: e.epoch}
	if e.gran == Circuit {
		join := e.circuits(u)
		next, removed, added, _ := e.matching.With(join, nil)
		if e.version++; len(removed)+len(added) == 0 {
			e.resumed() // the ring has them
			return
		}
		e.matching, a.Join = next, pairs(join)
	} else {
		// All stages begin where the first that asks does: programs begin with the same axis everywhere, and a stage that does
		// not asks for another.
		id := make(opus.ID, e.job.Stages)
		for s := range id {
			id[s] = uint8(u.class.axis)
		}
		e.setDigits(id)
		a.ID = id.String()
	}
	ports := make([]int, e.job.DuplexPorts())
	for q := range ports {
		ports[q] = q
	}
	ch := e.change(ports)
	ch.resume, ch.bars = true, []*barrier{b}
	b.change = ch
	a.Req = ch.req
	e.apply(a)
}

// resumed tells all that the rail is back at its plan.
func (e *engine) resumed() {
	if e.mode != resuming {
		return
	}
	e.mode, e.trigger = normal, nil
	if e.fellBack {
		e.fellBack = false
		e.counters.Resumes++
		e.note(EventResume, "")
		e.broadcast(&proto.Resume{Rail: e.rail, Generation: e.gen})
	}
	e.settleAll()
}

// kill has the rail marked dead.
func (e *engine) kill(reason string) {
	e.suspend(marking)
	e.reason = reason
	ch := e.change(nil)
	ch.kind = "mark"
	e.out = append(e.out, action{mark: &proto.Mark{Req: ch.req, Epoch: e.epoch, Dead: true, Reason: reason}})
}

func (e *engine) died() {
	e.mode, e.shape, e.fellBack = dead, proto.Dead, true
	e.note(EventDead, e.reason)
	e.broadcast(&proto.Fallback{Rail: e.rail, Generation: e.gen, Dead: true, Reason: e.reason})
	e.out = append(e.out, action{state: true})
	e.settleAll()
}

// otherRails is told whether another rail of the job lives.
func (e *engine) otherRails(live bool) {
	e.others = live
	if e.mode == dead {
		e.settleAll()
		e.freed()
	}
}

// alarmed is told that the rail is not what it was left as. Nothing is granted until the orchestrator has looked and
// put it right.
func (e *engine) alarmed(a proto.Alarm) {
	e.counters.Alarms++
	e.gen = max(e.gen, a.Generation)
	e.note(EventAlarm, a.Detail)
	switch e.mode {
	case normal:
		e.mode = checking
		e.look(a.Detail)
	case checking:
		e.alarm = a.Detail
	case onRing:
		if e.fellBack { // else the plan, which comes with the first that asks, puts it right
			e.suspend(draining)
			e.reason, e.since = a.Detail, e.now
		}
	}
	e.freed()
}

func (e *engine) look(why string) {
	ch := e.change(nil)
	ch.kind = "mark"
	e.out = append(e.out, action{mark: &proto.Mark{Req: ch.req, Epoch: e.epoch, Reason: why}})
}

// looked goes on after an alarm.
func (e *engine) looked(d proto.Done) {
	if e.mode != checking {
		return
	}
	why := e.alarm
	e.alarm = ""
	want := proto.Digits
	if e.gran == Circuit {
		want = proto.Circuits
	}
	switch {
	case d.Shape == proto.Dead:
		e.suspend(marking)
		e.reason = "the orchestrator has given it up after an alarm"
		e.died()
	case d.Shape == proto.Giant && want == proto.Digits:
		e.suspend(draining)
		e.reason, e.since = "the orchestrator has put it on the giant ring after an alarm", e.now
	case why != "":
		e.look(why)
	default:
		e.mode = normal
		e.settleAll()
	}
}

// tick is told the time, at nextDue at the latest.
func (e *engine) tick() {
	for len(e.clock) > 0 && (e.clock[0].bar.over || e.clock[0].at <= e.now) {
		d := e.clock[0]
		e.clock = e.clock[1:]
		switch {
		case d.bar.over || d.at != d.bar.since+e.barrier:
		case d.bar.change != nil:
			e.start(d.bar) // the orchestrator has its own patience
		default:
			code, detail := e.whoIsMissing(d.bar)
			e.refuseAll(d.bar, code, detail)
		}
	}
	for len(e.joins) > 0 && e.joins[0].at <= e.now {
		b := e.joins[0].bar
		e.joins = e.joins[1:]
		e.joinPhase(b)
	}
	switch e.mode {
	case draining:
		if e.now >= e.since+e.drain {
			e.kill(fmt.Sprintf("%s; and %s", e.reason, e.stillThere()))
		}
	case resuming:
		if e.now >= e.since+e.drain && len(e.changes) == 0 {
			e.stay()
		}
	case onRing:
		if e.fellBack && e.resume > 0 && e.now >= e.since+e.resume {
			e.again = true
		}
	}
	e.freed()
}

// nextDue returns when tick has to be called; ok is false if not before something happens.
func (e *engine) nextDue() (at int64, ok bool) {
	consider := func(t int64) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for len(e.clock) > 0 && e.clock[0].bar.over {
		e.clock = e.clock[1:]
	}
	if len(e.clock) > 0 {
		consider(e.clock[0].at)
	}
	if len(e.joins) > 0 {
		consider(e.joins[0].at)
	}
	switch {
	case e.mode == draining || e.mode == resuming && len(e.changes) == 0:
		consider(e.since + e.drain)
	case e.mode == onRing && e.fellBack && e.resume > 0 && !e.again:
		consider(e.since + e.resume)
	}
	return at, ok
}

// missing returns the ranks that an operation waits for.
func (e *engine) missing(b *barrier) []int {
	var all []int
	for i, x := range b.unit.members {
		if a := b.asks[i]; a.dem == nil && a.prov == nil && !a.in {
			all = append(all, x)
		}
	}
	if len(all) > 0 {
		return all
	}
	if !e.gathered {
		for x, r := range e.ranks {
			if !r.seen {
				all = append(all, x)
			}
		}
		return all
	}
	if b.unit.waiting != b || e.quorum(b.unit.class) {
		return nil
	}
	for _, u := range b.unit.class.units {
		if u.waiting == nil && u.passed < int64(b.op) {
			for _, x := range u.members {
				if !slices.ContainsFunc(e.ranks[x].reqs, func(q *request) bool { return q.bar != nil && q.bar.unit == u }) {
					all = append(all, x)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (e *engine) whoIsMissing(b *barrier) (proto.Code, string) {
	waits := fmt.Sprintf("operation %d of %s on rail %s waited for", b.op, b.unit.name(), e.rail)
	if missing := e.missing(b); len(missing) > 0 {
		code := proto.Timeout
		if slices.ContainsFunc(missing, func(x int) bool { return e.ranks[x].seen && !e.ranks[x].here }) {
			code = proto.RankLost
		}
		return code, waits + " " + e.names(missing)
	}
	if e.holds > 0 {
		return proto.Timeout, fmt.Sprintf("%s circuits, and %s", waits, e.stillThere())
	}
	if b.complete() {
		return proto.Timeout, fmt.Sprintf("%s circuits, and the rail is %s", waits, cmp.Or(e.mode, "not open"))
	}
	return proto.Timeout, waits + " somebody who only predicts it"
}

// stillThere says who holds circuits, or that a change is under way.
func (e *engine) stillThere() string {
	var who []int
	for x, r := range e.ranks {
		if len(r.holds) > 0 {
			who = append(who, x)
		}
	}
	if len(who) == 0 {
		return "the orchestrator has not answered"
	}
	return e.names(who) + " may still be using circuits"
}

// names lists ranks for people.
func (e *engine) names(ranks []int) string {
	const most = 8
	var parts []string
	for i, x := range ranks {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(ranks)-most))
			break
		}
		name := e.who(x)
		if e.ranks[x].seen && !e.ranks[x].here {
			name += ", which is gone"
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ")
}

// status returns what is to be seen.
func (e *engine) status() RailStatus {
	s := RailStatus{Rail: e.rail, Shape: e.shape, ID: "", Epoch: e.epoch, Generation: e.gen, InFlight: len(e.changes), Counters: e.counters}
	switch e.shape {
	case proto.Digits:
		s.ID = e.id()
	case proto.Giant, proto.Dead:
		s.Reason = e.reason
	}
	for x, r := range e.ranks {
		if r.here {
			s.Ranks++
		} else {
			s.Missing = append(s.Missing, x)
		}
		for _, h := range r.holds {
			s.Holders = append(s.Holders, Holder{Rank: x, Ref: h.unit.ref(h.op), Lost: !r.here})
		}
	}
	for _, c := range e.classes {
		for _, u := range c.units {
			for _, op := range sortedOps(u.bars) {
				b := u.bars[op]
				s.Pending = append(s.Pending, Pending{Ref: u.ref(op), Demands: b.demanded, Asked: b.asked, Missing: e.missing(b), SinceNS: b.since})
			}
		}
	}
	slices.SortFunc(s.Pending, func(a, b Pending) int {
		return cmp.Or(cmp.Compare(a.Ref.Group, b.Ref.Group), cmp.Compare(a.Ref.Way, b.Ref.Way), cmp.Compare(a.Ref.Op, b.Ref.Op))
	})
	return s
}
