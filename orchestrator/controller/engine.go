package controller

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// An engine decides everything for one rail: who may run, and what moves. It is a state machine: events are calls, and what shall
// happen is in out when they return. It does no I/O, has no clock but now, and starts nothing, so that a test can
// take it through any order of events. It is not safe for concurrent use.
//
// # Why no program can get stuck
//
// A holder needs nothing more to end: its operation was granted to all its members. A change that is ready
// waits for holders and for changes in flight only, and for what became ready before it; so the first in the queue
// always moves on. When a change is done, the operations that it was made for are granted before anything else gets
// their ports; so each change that a demand asked for lets at least one operation run, and predictions, of which
// there are finitely many between two operations, cannot starve it. What remains are barriers: a group
// waits for its members, and a stage for its groups, which in a program that is the same for all come in the same order
// everywhere. A group that is behind the others of its stage, as after a wrong prediction, does not wait for them: they
// are past its operation, and count.
type engine struct {
	rail    string
	job     opus.Job
	policy  opus.Policy
	gran    Granularity
	per     int // duplex ports of a rank
	table   *opus.Table
	ring    opus.Matching
	groups  map[string]*group
	classes []*class
	byStage [][]*class // that ask for a digit of the stage
	ranks   []*rankState
	barrier int64 // ns; < 0: for ever
	drain   int64
	resume  int64 // ns; 0: never
	who     func(int) string
	logTo   func(Event)
	rails   []string // of the job, for group-ok
	noUnion bool

	now      int64
	mode     mode
	others   bool // whether another rail lives
	gathered bool // all ranks have said hello
	epoch    uint64
	run      uint64 // of the job, in this epoch
	gen      uint64
	shape    proto.Shape
	reason   string
	fellBack bool  // and ranks were told
	since    int64 // of draining, or of the fallback
	again    bool  // the plan may be tried with the next that asks
	alarm    string

	// What the rail will be once all that was sent is done.
	digits   opus.ID
	matching opus.Matching
	version  uint64 // of the two
	stale    bool   // the queue has not been looked at since something changed

	held   []uint16 // by duplex port: ranks that hold it
	flight []uint16 // changes in flight that touch it
	guard  []uint16 // operations that a change in flight is made for
	kept   []uint16 // entries of the queue that wait for it
	watch  []uint16 // entries of the queue that nothing but its holder keeps from going on
	holds  int
	random uint64 // which of several holders is waited for

	changes map[uint64]*change
	req     uint64
	queue   []*ticket
	predict []*barrier // complete predictions whose circuits are in flight
	clock   []due      // in order of time
	joins   []due      // in order of time: see joinPhase
	trigger *barrier   // what a resumption is for
	joined  int        // ranks that have said hello at least once

	counters Counters
	out      []action
}

type mode string

const (
	unopened  mode = ""
	normal    mode = "normal"
	onRing    mode = "on the giant ring"
	resuming  mode = "going back to the plan"
	draining  mode = "waiting for what runs, to fall back"
	ringing   mode = "being put on the giant ring"
	marking   mode = "being marked dead"
	dead      mode = "dead"
	checking  mode = "being looked at after an alarm"
	overtaken mode = "taken over by another controller"
)

// joinGrace is for how long a member that holds circuits of a group is given to ask for the next operation, too,
// before it is taken to be in the middle of a phase, in which it does not ask.
const joinGrace = int64(20e6)

type group struct {
	opus.Group
	axis   string
	joined []bool // by member
	count  int
	units  []*unit // one for each way
}

// A unit is what operations belong to: a symmetrical group, or one pair of stages of a pipeline.
type unit struct {
	group   *group
	way     int
	members []int
	class   *class
	need    []opus.Circuit // with granularity Circuit; the least that will do
	bars    map[uint64]*barrier
	passed  int64 // the last operation that was granted; -1
	ack     *proto.TopoAck
	waiting *barrier // in class.waiting
	union   *union   // of them; nil: not known yet
}

// A class is the units that change circuits together: with digits all groups of an axis in a stage, or all pairs of two
// stages, and else one unit.
type class struct {
	axis, stage int
	units       []*unit
	waiting     []*barrier // complete, and their circuits are not there
	queued      *ticket
}

// A barrier is one operation that somebody has asked for.
type barrier struct {
	unit            *unit
	op              uint64
	asks            []ask
	asked, demanded int
	since           int64
	ready           int64
	applied         *proto.Done // the change that was made for it
	change          *change     // in flight
	queued          *ticket
	predicted       bool // in engine.predict
	partial         bool // some have been granted it: see joinPhase
	over            bool
}

type ask struct {
	prov, dem *request
	in        bool // holds it already
}

type request struct {
	rank   int
	req    uint64
	mode   proto.Mode
	ref    proto.OpRef
	bar    *barrier // nil once it is answered
	answer action
	done   bool       // answer is there
	copies []*request // repetitions
}

type hold struct {
	unit  *unit
	op    uint64
	ports uint8
}

type rankState struct {
	here, seen bool
	conn       any // whose it is; compared only
	reqs       []*request
	holds      []hold
	units      []*unit
	table      *proto.PhaseTable
	fresh      bool // table has not been answered
}

// A ticket is an entry of the queue: a change, or an operation whose circuits are there and not free yet.
type ticket struct {
	class   *class
	bar     *barrier
	ready   int64
	version uint64 // of ports
	ports   []int
	witness int // the port whose holder is waited for; -1
	kept    []int
}

// A change is in flight.
type change struct {
	req    uint64
	ports  []int
	guard  []int
	bars   []*barrier
	resume bool
	kind   proto.Kind
}

type due struct {
	at  int64
	bar *barrier
}

// An action is what shall happen. One of msg, ack, apply, giant, mark and bye is set.
type action struct {
	rank  int
	req   uint64 // of ack
	msg   proto.Message
	ack   *proto.TopoAck // shared: req goes into a copy
	apply *proto.Apply
	giant *proto.GiantRing
	mark  *proto.Mark
	close any  // the connection that shall be closed, after msg
	state bool // whether the rail lives has changed
}

func newEngine(rail string, opt Options) (*engine, error) {
	j := opt.Job
	n, per := j.Ranks(), j.PortsPerRank()
	table, err := opus.NewTable(j, opt.Policy, opus.Regular(n*per, 1, 1))
	if err != nil {
		return nil, err
	}
	ring, err := opus.GiantRing(j)
	if err != nil {
		return nil, err
	}
	e := &engine{
		rail: rail, job: j, policy: opt.Policy, gran: opt.Granularity, per: per, table: table, ring: ring,
		groups: map[string]*group{}, byStage: make([][]*class, j.Stages), barrier: int64(opt.Barrier), drain: int64(opt.Drain),
		resume: int64(opt.ResumeAfter), noUnion: opt.NoUnion, who: func(x int) string { return opt.Who(rail, x) },
		logTo: opt.Log, changes: map[uint64]*change{}, gathered: n == 0, run: 1,
	}
	for _, ports := range []*[]uint16{&e.held, &e.flight, &e.guard, &e.kept, &e.watch} {
		*ports = make([]uint16, n*per)
	}
	for name := range opt.Rails {
		e.rails = append(e.rails, name)
	}
	slices.Sort(e.rails)
	e.ranks = make([]*rankState, n)
	for x := range e.ranks {
		e.ranks[x] = &rankState{}
	}
	classes := map[[2]int]*class{}
	for axis, axisName := range j.AxisNames() {
		for _, g := range j.Groups(axis) {
			gr := &group{Group: g, axis: axisName, joined: make([]bool, len(g.Members))}
			e.groups[g.Name] = gr
			ways := 1
			if axis == opus.PP {
				ways = len(g.Members) - 1
			}
			for w := range ways {
				u := &unit{group: gr, way: w, members: g.Members, bars: map[uint64]*barrier{}, passed: -1}
				key := [2]int{axis, j.Stage(g.Members[0])}
				if axis == opus.PP {
					u.members, key[1] = g.Members[w:w+2], w
					u.need = j.TransferCircuits(g, w, false)
				} else {
					u.need = j.GroupCircuits(g)
				}
				gr.units = append(gr.units, u)
				for _, x := range u.members {
					e.ranks[x].units = append(e.ranks[x].units, u)
				}
				c := classes[key]
				if c == nil || e.gran == Circuit {
					c = &class{axis: axis, stage: key[1]}
					classes[key] = c
					e.classes = append(e.classes, c)
					for _, s := range c.stages() {
						e.byStage[s] = append(e.byStage[s], c)
					}
				}
				c.units = append(c.units, u)
				u.class = c
			}
		}
	}
	return e, nil
}

func (c *class) stages() []int {
	if c.axis == opus.PP {
		return []int{c.stage, c.stage + 1}
	}
	return []int{c.stage}
}

func (u *unit) ref(op uint64) proto.OpRef {
	return proto.OpRef{Group: u.group.Name, Op: op, Way: u.way}
}

// name is the unit for people: "dp/3", "pp/0 between the stages 1 and 2".
func (u *unit) name() string {
	if u.group.Axis != opus.PP {
		return u.group.Name
	}
	return fmt.Sprintf("%s between the stages %d and %d", u.group.Name, u.way, u.way+1)
}

func (e *engine) log(ev Event) {
	if e.logTo != nil {
		ev.AtNS, ev.Rail = e.now, e.rail
		e.logTo(ev)
	}
}

func (e *engine) note(kind EventKind, detail string) {
	e.log(Event{Kind: kind, Rank: -1, Generation: e.gen, ID: e.id(), Shape: e.shape, Detail: detail})
}

// id returns the topology ID that the rail will have, if it has one.
func (e *engine) id() string {
	if e.gran == Circuit || e.digits == nil {
		return ""
	}
	return e.digits.String()
}

func (e *engine) send(rank int, m proto.Message) {
	if e.ranks[rank].here {
		e.out = append(e.out, action{rank: rank, msg: m})
	}
}

func (e *engine) broadcast(m proto.Message) {
	for x := range e.ranks {
		e.send(x, m)
	}
}

// opened is told what the orchestrator has.
func (e *engine) opened(o proto.Opened) {
	e.epoch, e.gen, e.shape, e.reason = o.Epoch, o.Generation, o.Shape, o.Reason
	circuits := make([]opus.Circuit, 0, len(o.Circuits))
	for _, c := range o.Circuits {
		circuits = append(circuits, opus.Circuit{A: c[0], B: c[1]})
	}
	m, err := opus.NewMatching(e.job, circuits...)
	id, idErr := e.job.ParseID(o.ID)
	switch {
	case o.Shape == proto.Dead:
		e.mode, e.fellBack = dead, true
	case e.gran == Circuit && err == nil:
		e.mode, e.matching = normal, m
	case o.Shape == proto.Digits && idErr == nil:
		e.setDigits(id)
		e.mode = normal
	default:
		// The giant ring of a first start, or circuits that no ID has: the plan begins with whoever asks first.
		e.mode, e.again = onRing, true
	}
	e.version++
	e.note(EventOpened, o.Reason)
	e.out = append(e.out, action{state: true})
}

func (e *engine) setDigits(id opus.ID) {
	e.digits = id
	e.matching, _ = e.table.Matching(id) // the ID is the job's
	e.version++
}

// hello is told that a rank is there, with a connection that is compared only. It returns why it is refused.
func (e *engine) hello(rank int, conn any, holds []proto.OpRef) error {
	r := e.ranks[rank]
	var restored []hold
	for _, ref := range holds {
		u, err := e.find(rank, ref)
		if err != nil {
			return err
		}
		restored = append(restored, hold{unit: u, op: ref.Op})
	}
	known := slices.Clone(r.holds)
	if r.here {
		// It comes again before its old connection was known to be gone. What that asked will be asked again.
		e.out = append(e.out, action{rank: rank, close: r.conn, msg: &proto.Bye{Reason: "the rank has connected again"}})
		e.forget(rank)
	}
	for len(r.holds) > 0 {
		e.drop(rank, 0)
	}
	r.here, r.conn = true, conn
	for _, h := range restored {
		h.ports = e.portsOf(h.unit, rank)
		if len(h.unit.need) > 0 && (h.ports == 0 || e.mode != normal) {
			h.ports = e.allPorts() // nobody knows what it uses
		}
		if i := slices.IndexFunc(known, func(o hold) bool { return o.unit == h.unit && o.op == h.op }); i >= 0 {
			h = known[i]
		}
		e.hold(rank, h)
	}
	for _, u := range r.units {
		if i := slices.Index(u.group.Members, rank); u.group.joined[i] {
			u.group.joined[i] = false
			u.group.count--
		}
	}
	e.log(Event{Kind: EventHello, Rank: rank, Generation: e.gen})
	if !r.seen {
		r.seen = true
		e.joined++
		if e.joined == len(e.ranks) {
			e.gathered = true
			e.settleAll()
		}
	}
	if e.fellBack && (e.mode == onRing || e.mode == dead || e.mode == resuming) {
		e.out = append(e.out, action{rank: rank, msg: &proto.Fallback{Rail: e.rail, Generation: e.gen, Dead: e.mode == dead, Reason: e.reason}})
	}
	e.freed()
	return nil
}

// between reports whether a rank that begins anew comes while others of its run are still there.
func (e *engine) between(rank int) bool {
	return e.ranks[rank].seen && slices.ContainsFunc(e.ranks, func(r *rankState) bool { return r.here })
}

// anew forgets a run of the job that has ended: no rank of it is there any more, and a rank has come that counts operations from
// 0. What the rail holds, and whether it is well, stays. Nothing happens while a rank is there.
func (e *engine) anew(opt Options) error {
	if e.joined == 0 || slices.ContainsFunc(e.ranks, func(r *rankState) bool { return r.here }) {
		return nil
	}
	if len(e.changes) > 0 {
		return &proto.Refusal{Code: proto.Conflict, Detail: fmt.Sprintf("rail %s still carries out what the last run of job %s has asked for: connect again in a moment", e.rail, e.job.Name)}
	}
	f, err := newEngine(e.rail, opt)
	if err != nil {
		return err
	}
	f.now, f.mode, f.others, f.epoch, f.gen, f.shape, f.reason = e.now, e.mode, e.others, e.epoch, e.gen, e.shape, e.reason
	f.fellBack, f.since, f.again, f.alarm = e.fellBack, e.since, e.again, e.alarm
	f.digits, f.matching, f.version = e.digits, e.matching, e.version
	f.random, f.req, f.counters, f.out = e.random, e.req, e.counters, e.out
	f.run = e.run + 1
	*e = *f
	return nil
}

// ended returns why a hello is refused that is of a run before this one: it must not take the place of a rank of this. A shim that
// was given up may have connected again just before, and its hello comes late.
func (e *engine) ended(h *proto.Hello) error {
	if h.Run == 0 || h.Run == e.run || h.Epoch != e.epoch {
		return nil
	}
	return &proto.Refusal{Code: proto.Conflict, Detail: fmt.Sprintf("%s comes back to run %d of job %s, and it is at run %d", e.who(h.Rank), h.Run, e.job.Name, e.run)}
}

func (e *engine) allPorts() uint8 { return uint8(1<<e.per - 1) }

// find returns the unit that a rank means.
func (e *engine) find(rank int, ref proto.OpRef) (*unit, error) {
	g := e.groups[ref.Group]
	if g == nil {
		return nil, &proto.Refusal{Code: proto.UnknownGroup, Detail: fmt.Sprintf("%s names group %.40q, which job %s does not have", e.who(rank), ref.Group, e.job.Name)}
	}
	if !slices.Contains(g.Members, rank) {
		return nil, &proto.Refusal{Code: proto.UnknownGroup, Detail: fmt.Sprintf("%s is not in group %s, whose members are %v", e.who(rank), g.Name, g.Members)}
	}
	if ref.Way < 0 || ref.Way >= len(g.units) || !slices.Contains(g.units[ref.Way].members, rank) {
		return nil, &proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("%s names way %d of group %s, which it has no part in", e.who(rank), ref.Way, g.Name)}
	}
	return g.units[ref.Way], nil
}

// join is told that a rank knows a group as m says.
func (e *engine) join(rank int, m *proto.JoinGroup) error {
	g := e.groups[m.Group]
	if g == nil {
		return &proto.Refusal{Code: proto.UnknownGroup, Detail: fmt.Sprintf("%s joins group %.40q, which job %s does not have", e.who(rank), m.Group, e.job.Name)}
	}
	i := slices.Index(g.Members, rank)
	switch {
	case i < 0:
		return &proto.Refusal{Code: proto.UnknownGroup, Detail: fmt.Sprintf("%s joins group %s, whose members are %v", e.who(rank), g.Name, g.Members)}
	case !slices.Equal(m.Members, g.Members) || m.Index != i || m.Axis != g.axis:
		return &proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("%s takes group %s for members %v of axis %.40q with itself at %d, and it is %v of %s with it at %d",
			e.who(rank), g.Name, m.Members, m.Axis, m.Index, g.Members, g.axis, i)}
	}
	again := g.count == len(g.Members)
	if !g.joined[i] {
		g.joined[i] = true
		g.count++
		again = false
	}
	if g.count < len(g.Members) {
		return nil
	}
	ok := &proto.GroupOK{Group: g.Name, Domain: "rail", Rails: e.rails}
	if again {
		e.send(rank, ok)
		return nil
	}
	e.log(Event{Kind: EventJoined, Rank: -1, Ref: proto.OpRef{Group: g.Name}})
	for _, x := range g.Members {
		e.send(x, ok)
	}
	return nil
}

// write is told that a rank asks for the circuits of an operation.
func (e *engine) write(rank int, w *proto.TopoWrite) {
	r := e.ranks[rank]
	q := &request{rank: rank, req: w.Req, mode: w.Mode, ref: w.OpRef}
	r.reqs = append(r.reqs, q)
	e.counters.Writes++
	e.log(Event{Kind: EventWrite, Rank: rank, Ref: w.OpRef, Mode: w.Mode, Req: w.Req})
	u, err := e.find(rank, w.OpRef)
	switch {
	case w.Epoch != e.epoch:
		e.nack(q, proto.Stale, fmt.Sprintf("%s asks in epoch %d, and it is %d", e.who(rank), w.Epoch, e.epoch))
		return
	case e.mode == overtaken:
		e.nack(q, proto.Stale, e.reason)
		return
	case err != nil:
		e.refuse(q, err)
		return
	case w.Mode != proto.Demand && w.Mode != proto.Provision:
		e.nack(q, proto.Bad, fmt.Sprintf("%s asks with mode %.40q: want demand or provision", e.who(rank), w.Mode))
		return
	case !u.group.joined[slices.Index(u.group.Members, rank)]:
		e.nack(q, proto.UnknownGroup, fmt.Sprintf("%s has not joined group %s", e.who(rank), u.group.Name))
		return
	}
	i := slices.Index(u.members, rank)
	b := u.bars[w.Op]
	if e.repeated(q, u, b, i) {
		return
	}
	// The rank's own view of itself: it has ended what it did before.
	if w.Last != nil || w.Mode == proto.Provision {
		for len(r.holds) > 0 {
			e.drop(rank, 0)
		}
	} else {
		e.released(rank, u, w.Op)
	}
	for _, old := range slices.Clone(r.reqs[:len(r.reqs)-1]) { // before q
		if old.bar != nil && old.mode == proto.Provision && (old.bar.unit != u || old.bar.op != w.Op) && old.bar.change == nil {
			e.withdrawn(old) // it has thought better of it
		}
	}
	if b == nil {
		b = &barrier{unit: u, op: w.Op, asks: make([]ask, len(u.members)), since: e.now}
		u.bars[w.Op] = b
		e.start(b)
	}
	a := &b.asks[i]
	if a.prov == nil && a.dem == nil {
		if b.asked++; b.asked == len(b.asks) {
			b.ready = e.now
		}
	}
	q.bar = b
	if w.Mode == proto.Demand {
		if a.dem = q; b.demanded == 0 && b.since != e.now {
			e.start(b)
		}
		b.demanded++
	} else {
		a.prov = q
	}
	e.settle(b)
	if !b.over && b.asked < len(b.asks) && e.inPhase(b) {
		e.joins = append(e.joins, due{e.now + joinGrace, b})
	}
	e.freed()
}

// repeated answers a request that was made before.
func (e *engine) repeated(q *request, u *unit, b *barrier, i int) bool {
	if b != nil {
		old := b.asks[i].prov
		if q.mode == proto.Demand {
			old = b.asks[i].dem
		}
		if old != nil {
			e.counters.Duplicates++
			old.copies = append(old.copies, q)
			return true
		}
		if !b.asks[i].in {
			return false
		}
	} else if int64(q.ref.Op) > u.passed {
		return false
	}
	// It is over. Who lost the acknowledgement and holds nothing now may join only while the others keep its circuits.
	r := e.ranks[q.rank]
	e.counters.Duplicates++
	holds := func(x int) bool {
		return slices.ContainsFunc(e.ranks[x].holds, func(h hold) bool { return h.unit == u && h.op <= q.ref.Op })
	}
	granted := int64(q.ref.Op) == u.passed && u.ack != nil
	switch {
	case granted && (holds(q.rank) || q.mode == proto.Provision):
		e.answer(q, action{rank: q.rank, ack: u.ack})
	case granted && len(u.members) > 1 && !slices.ContainsFunc(u.members, func(x int) bool { return x != q.rank && !holds(x) }):
		if e.mode == normal && !e.settled(u) {
			e.nack(q, proto.Conflict, fmt.Sprintf("%s asks again for operation %d of %s, whose circuits are being changed", e.who(q.rank), q.ref.Op, u.name()))
			return true
		}
		for len(r.holds) > 0 {
			e.drop(q.rank, 0)
		}
		ports := e.allPorts()
		switch {
		case len(u.need) == 0:
			ports = 0
		case e.mode == normal && u.ack.Result != proto.OnRing:
			ports = e.portsOf(u, q.rank)
		}
		e.hold(q.rank, hold{unit: u, op: q.ref.Op, ports: ports})
		e.answer(q, action{rank: q.rank, ack: u.ack})
	case u.ack != nil && u.ack.Result == proto.Detoured && granted:
		e.answer(q, action{rank: q.rank, ack: u.ack})
	default:
		e.nack(q, proto.Bad, fmt.Sprintf("%s asks for operation %d of %s, which is over: the last that was granted is %d", e.who(q.rank), q.ref.Op, u.name(), u.passed))
	}
	return true
}

// withdraw is told that a rank takes a prediction back. One that a change is in flight for is answered when that is
// done, and a demand when it is granted.
func (e *engine) withdraw(rank int, req uint64) {
	for _, q := range e.ranks[rank].reqs {
		if q.req == req && q.bar != nil && q.mode == proto.Provision && q.bar.change == nil {
			e.withdrawn(q)
			e.freed()
			return
		}
	}
}

func (e *engine) withdrawn(q *request) {
	e.counters.Withdrawn++
	e.unask(q)
	e.nack(q, proto.Withdrawn, fmt.Sprintf("%s has taken its prediction of operation %d of %s back", e.who(q.rank), q.ref.Op, q.ref.Group))
}

// unask takes a request out of its barrier.
func (e *engine) unask(q *request) {
	b := q.bar
	if b == nil {
		return
	}
	i := slices.Index(b.unit.members, q.rank)
	a := &b.asks[i]
	if a.prov == q {
		a.prov = nil
	}
	if a.dem == q {
		a.dem = nil
		b.demanded--
	}
	if a.prov == nil && a.dem == nil {
		b.asked--
		e.unready(b)
	}
	if b.asked == 0 && !b.partial {
		e.end(b)
	}
}

// unready takes a barrier that is not complete any more out of what waits. Tickets notice by themselves.
func (e *engine) unready(b *barrier) {
	if u := b.unit; u.waiting == b {
		u.waiting = nil
		i := slices.Index(u.class.waiting, b)
		u.class.waiting = slices.Delete(u.class.waiting, i, i+1)
		e.dirty()
	}
	if b.queued != nil {
		e.dirty()
	}
}

func (e *engine) end(b *barrier) {
	b.over = true
	if b.unit.bars[b.op] == b {
		delete(b.unit.bars, b.op)
	}
}

// release is told that a rank has completed an operation, and all before it of the same group and way.
func (e *engine) release(rank int, m *proto.Release) {
	u, err := e.find(rank, m.OpRef)
	if err != nil || m.Epoch != e.epoch {
		return // nothing is held under that name
	}
	e.released(rank, u, m.Op)
	e.freed()
}

func (e *engine) released(rank int, u *unit, op uint64) {
	r := e.ranks[rank]
	for i := len(r.holds) - 1; i >= 0; i-- {
		if h := r.holds[i]; h.unit == u && h.op <= op {
			e.drop(rank, i)
		}
	}
}

func (e *engine) hold(rank int, h hold) {
	e.ranks[rank].holds = append(e.ranks[rank].holds, h)
	e.holds++
	for p := range e.per {
		if h.ports>>p&1 != 0 {
			e.held[rank*e.per+p]++
		}
	}
}

// drop ends a hold.
func (e *engine) drop(rank, i int) {
	r := e.ranks[rank]
	h := r.holds[i]
	r.holds = slices.Delete(r.holds, i, i+1)
	e.holds--
	for p := range e.per {
		if q := rank*e.per + p; h.ports>>p&1 != 0 {
			e.held[q]--
			if e.held[q] == 0 && e.watch[q] > 0 {
				e.dirty()
			}
		}
	}
	e.log(Event{Kind: EventRelease, Rank: rank, Ref: h.unit.ref(h.op)})
	if r.here {
		e.orphans(h)
	}
}

// orphans ends the holds of lost ranks in an operation that is over for all others: each circuit has two
// ends, and those of the others hold none any more.
func (e *engine) orphans(h hold) {
	var lost []int
	for _, x := range h.unit.members {
		if slices.ContainsFunc(e.ranks[x].holds, func(o hold) bool { return o.unit == h.unit && o.op == h.op }) {
			if e.ranks[x].here {
				return
			}
			lost = append(lost, x)
		}
	}
	for _, x := range lost {
		e.released(x, h.unit, h.op)
	}
}

// lost is told that a rank's connection is gone; clean is after a bye. What it asked for and what waits for it is refused. Its
// circuits stay, and stay held until it comes back or the others of the operation have completed it.
func (e *engine) lost(rank int, conn any, clean bool) {
	r := e.ranks[rank]
	if !r.here || r.conn != conn {
		return // it has connected again meanwhile
	}
	kind := EventLost
	if clean {
		kind = EventBye
	}
	e.log(Event{Kind: kind, Rank: rank})
	e.forget(rank)
	r.here, r.conn = false, nil
	if clean {
		for len(r.holds) > 0 {
			e.drop(rank, 0)
		}
	} else {
		for _, h := range slices.Clone(r.holds) {
			e.orphanIfAlone(h)
		}
	}
	for _, u := range r.units {
		for _, op := range sortedOps(u.bars) {
			e.refuseAll(u.bars[op], proto.RankLost, fmt.Sprintf("%s is gone, and %s waits for it", e.who(rank), u.name()))
		}
	}
	e.freed()
}

// orphanIfAlone ends the hold of a rank that was lost after all others had completed the operation.
func (e *engine) orphanIfAlone(h hold) {
	if len(h.unit.members) > 1 {
		e.orphans(h)
	}
}

func sortedOps(bars map[uint64]*barrier) []uint64 {
	ops := make([]uint64, 0, len(bars))
	for op := range bars {
		ops = append(ops, op)
	}
	slices.Sort(ops)
	return ops
}

// forget drops what a rank has asked without answering.
func (e *engine) forget(rank int) {
	r := e.ranks[rank]
	for _, q := range r.reqs {
		e.unask(q)
		q.bar = nil
	}
	r.reqs = nil
}

// refuseAll answers all that wait for an operation.
func (e *engine) refuseAll(b *barrier, code proto.Code, detail string) {
	for i := range b.asks {
		for _, q := range []*request{b.asks[i].prov, b.asks[i].dem} {
			if q != nil {
				e.unask(q)
				e.nack(q, code, detail)
			}
		}
	}
	if !b.over {
		e.end(b)
	}
}

func (e *engine) refuse(q *request, err error) {
	var refusal *proto.Refusal
	if errors.As(err, &refusal) {
		e.nack(q, refusal.Code, refusal.Detail)
		return
	}
	e.nack(q, proto.Bad, err.Error())
}

func (e *engine) nack(q *request, code proto.Code, detail string) {
	e.answer(q, action{rank: q.rank, msg: &proto.TopoNack{Code: code, Detail: detail}})
}

// answer answers a request, behind those that the rank made before.
func (e *engine) answer(q *request, a action) {
	q.bar = nil
	q.answered(a)
	for _, each := range q.copies {
		each.answered(a)
	}
	q.copies = nil
	r := e.ranks[q.rank]
	for len(r.reqs) > 0 && r.reqs[0].done {
		first := r.reqs[0]
		r.reqs = slices.Delete(r.reqs, 0, 1) // there are few, and the space is for the next
		ev := Event{Rank: first.rank, Ref: first.ref, Mode: first.mode, Req: first.req, Generation: e.gen}
		if ack := first.answer.ack; ack != nil {
			ev.Kind, ev.Result, ev.ID, ev.Ack = EventAck, ack.Result, ack.ID, ack
			e.counters.Acks++
			if ack.Result == proto.NoOp {
				e.counters.NoOps++
			}
		} else if nack, ok := first.answer.msg.(*proto.TopoNack); ok {
			ev.Kind, ev.Code, ev.Detail = EventNack, nack.Code, nack.Detail
			e.counters.Nacks++
		}
		e.log(ev)
		if r.here {
			e.out = append(e.out, first.answer)
		}
	}
}

// answered notes the answer of a request, with its number.
func (q *request) answered(a action) {
	q.answer, q.done = a, true
	q.answer.req = q.req
	if nack, ok := a.msg.(*proto.TopoNack); ok {
		q.answer.msg = &proto.TopoNack{Req: q.req, Code: nack.Code, Detail: nack.Detail}
	}
}
