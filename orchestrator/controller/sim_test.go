package controller

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// A sim takes an engine through a whole program in virtual time: ranks that run it as shims do, connections that are in order
// and slow, and a rail with a switch. It knows what every rank is really using, and what the switch really has.
type sim struct {
	t     fataler
	rng   *rand.Rand
	e     *engine
	opt   simOptions
	now   int64
	seq   int
	todo  agenda
	ranks []*simRank
	runs  map[string]*run // operations, by name

	actual   opus.Matching
	shape    proto.Shape
	busy     []int          // by port: applies that touch it and have not ended
	using    []map[int]bool // by port: ranks that use it
	queue    []*simApply
	last     opus.Matching // target
	lastID   string
	applies  int
	faults   int
	hit      map[int]bool // ports that were changed while somebody used them
	maxWhile int          // applies at the same time
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

type simOptions struct {
	provision bool
	always    bool    // every operation asks
	wrong     float64 // predictions
	fault     float64 // of applies
	ringFault float64
	slow      int64 // messages
	hazard    bool  // count violations, and go on
}

type simApply struct {
	ports   []int
	to      opus.Matching
	started bool
	fail    bool
	done    func()
	latency int64
}

type step struct {
	u     *unit
	op    uint64
	first bool // of a phase
	last  bool
}

type simRank struct {
	x       int
	program []step
	pc      int
	req     uint64
	dem     uint64 // that is waited for
	prov    uint64 // that has not been answered
	begun   bool   // the phase
	result  proto.Result
	ports   []int
	toCtl   int64 // when the last message arrives
	fromCtl int64
	nacks   int
}

type run struct{ in []int }

type agenda []event

type event struct {
	at  int64
	seq int
	f   func()
}

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	x := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return x
}

func testEngine(t fataler, j opus.Job, opt Options) *engine {
	t.Helper()
	opt.Job = j
	opt.Rails = map[string]Rail{"rail0": nil}
	c, err := New(opt)
	if err != nil {
		t.Fatalf("%v", err)
	}
	e := c.rails["rail0"].e
	e.req = 100
	return e
}

func newSim(t fataler, j opus.Job, opt Options, so simOptions, seed uint64, schedule []*class) *sim {
	e := testEngine(t, j, opt)
	s := &sim{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), e: e, opt: so, runs: map[string]*run{}, busy: make([]int, j.DuplexPorts()),
		using: make([]map[int]bool, j.DuplexPorts()), hit: map[int]bool{}, shape: proto.Giant, actual: e.ring, last: e.ring,
	}
	for q := range s.using {
		s.using[q] = map[int]bool{}
	}
	ops := map[*unit]uint64{}
	for x := range j.Ranks() {
		s.ranks = append(s.ranks, &simRank{x: x})
	}
	for _, c := range schedule {
		for _, real := range s.classOf(c) {
			for _, u := range real.units {
				op := ops[u]
				ops[u]++
				for _, x := range u.members {
					s.ranks[x].program = append(s.ranks[x].program, step{u: u, op: op, first: true, last: true})
				}
			}
		}
	}
	if !so.always {
		for _, r := range s.ranks {
			for i := 1; i < len(r.program); i++ {
				if a, b := &r.program[i-1], &r.program[i]; a.u == b.u && a.u.group.Axis != opus.PP {
					a.last, b.first = false, false
				}
			}
		}
	}
	return s
}

// classOf returns the classes of the engine with that axis and stage: several with granularity circuit.
func (s *sim) classOf(c *class) []*class {
	var all []*class
	for _, x := range s.e.classes {
		if x.axis == c.axis && x.stage == c.stage {
			all = append(all, x)
		}
	}
	return all
}

func (s *sim) after(d int64, f func()) {
	s.seq++
	heap.Push(&s.todo, event{s.now + d, s.seq, f})
}

func (s *sim) delay(most int64) int64 {
	if most <= 0 {
		return 0
	}
	return s.rng.Int64N(most)
}

// tell brings a message of a rank to the controller.
func (s *sim) tell(r *simRank, f func()) {
	r.toCtl = max(r.toCtl, s.now+s.delay(s.opt.slow))
	s.after(r.toCtl-s.now, func() { s.event(f) })
}

// event takes the engine through one event.
func (s *sim) event(f func()) {
	s.e.now = s.now
	f()
	for len(s.e.out) > 0 {
		out := s.e.out
		s.e.out = nil
		for _, a := range out {
			s.act(a)
		}
	}
}

func (s *sim) act(a action) {
	switch {
	case a.ack != nil:
		s.hear(a.rank, func(r *simRank) { s.acked(r, a.req, a.ack) })
	case a.apply != nil:
		s.apply(*a.apply)
	case a.giant != nil:
		s.giant(*a.giant)
	case a.mark != nil:
		req := a.mark.Req
		s.shape = proto.Dead
		s.after(s.delay(50), func() { s.event(func() { s.e.done(req, proto.Done{Shape: proto.Dead}, nil) }) })
	case a.msg != nil:
		if nack, ok := a.msg.(*proto.TopoNack); ok {
			s.hear(a.rank, func(r *simRank) { s.nacked(r, nack) })
		}
	}
}

func (s *sim) hear(rank int, f func(r *simRank)) {
	r := s.ranks[rank]
	r.fromCtl = max(r.fromCtl, s.now+s.delay(s.opt.slow))
	s.after(r.fromCtl-s.now, func() { f(r) })
}

func (s *sim) violated(q int, what string) {
	s.hit[q] = true
	if !s.opt.hazard {
		s.t.Fatalf("at %d: duplex port %d: %s\n%+v", s.now, q, what, s.e.status())
	}
}

func (s *sim) apply(a proto.Apply) {
	var to opus.Matching
	if a.ID != "" {
		if a.ID == s.lastID {
			s.t.Fatalf("apply of %s, which the rail is at already", a.ID)
		}
		id, err := s.e.job.ParseID(a.ID)
		if err != nil {
			s.t.Fatalf("%v", err)
		}
		to, _ = opus.Build(s.e.job, id, s.e.policy)
		s.lastID = a.ID
	} else {
		var join []opus.Circuit
		for _, c := range a.Join {
			join = append(join, opus.Circuit{A: c[0], B: c[1]})
		}
		var err error
		if to, _, _, err = s.last.With(join, a.Part); err != nil {
			s.t.Fatalf("%v", err)
		}
	}
	ports := diff(s.last, to, s.e.job.DuplexPorts())
	if len(ports) == 0 && a.ID == "" {
		s.t.Fatalf("apply of circuits that are there: %v", a.Join)
	}
	s.last = to
	s.applies++
	for _, q := range ports {
		s.busy[q]++
		if len(s.using[q]) > 0 {
			s.violated(q, fmt.Sprintf("it is changed under ranks %v, which use it", slices.Sorted(maps.Keys(s.using[q]))))
		}
	}
	ap := &simApply{ports: ports, to: to, latency: 1 + s.delay(200), fail: s.rng.Float64() < s.opt.fault}
	ap.done = func() {
		if ap.fail {
			s.faults++
			s.event(func() {
				s.e.done(a.Req, proto.Done{}, &proto.Refusal{Code: proto.Verify, Attempts: 3, Detail: "the switch does not answer"})
			})
			return
		}
		s.event(func() {
			s.e.done(a.Req, proto.Done{Shape: proto.Digits, Result: proto.Applied, Generation: uint64(s.applies)}, nil)
		})
	}
	s.queue = append(s.queue, ap)
	s.railGoesOn()
}

func diff(a, b opus.Matching, n int) []int {
	var ports []int
	for q := range n {
		x, xok := a.Peer(q)
		y, yok := b.Peer(q)
		if x != y || xok != yok {
			ports = append(ports, q)
		}
	}
	return ports
}

// railGoesOn starts what is not behind anything that touches the same ports.
func (s *sim) railGoesOn() {
	taken := map[int]bool{}
	running := 0
	for _, ap := range s.queue {
		free := !slices.ContainsFunc(ap.ports, func(q int) bool { return taken[q] })
		for _, q := range ap.ports {
			taken[q] = true
		}
		if free && !ap.started {
			ap.started = true
			s.after(ap.latency, func() {
				s.queue = slices.DeleteFunc(s.queue, func(o *simApply) bool { return o == ap })
				if !ap.fail {
					s.splice(ap)
				}
				for _, q := range ap.ports {
					s.busy[q]--
				}
				ap.done()
				s.railGoesOn()
			})
		}
		if ap.started {
			running++
		}
	}
	s.maxWhile = max(s.maxWhile, running)
}

// splice brings the ports of an apply to what it wants.
func (s *sim) splice(ap *simApply) {
	var all []opus.Circuit
	touched := map[int]bool{}
	for _, q := range ap.ports {
		touched[q] = true
		if p, ok := ap.to.Peer(q); ok && q < p {
			all = append(all, opus.Circuit{A: q, B: p})
		}
	}
	for c := range s.actual.Circuits() {
		if !touched[c.A] && !touched[c.B] {
			all = append(all, c)
		}
	}
	m, err := opus.NewMatching(s.e.job, all...)
	if err != nil {
		s.t.Fatalf("the switch would hold what is no matching: %v", err)
	}
	s.actual = m
}

func (s *sim) giant(g proto.GiantRing) {
	for q, ranks := range s.using {
		if len(ranks) > 0 {
			s.violated(q, "giant ring under a running operation")
		}
	}
	fail := s.rng.Float64() < s.opt.ringFault
	s.after(s.delay(300), func() {
		if fail {
			s.event(func() { s.e.done(g.Req, proto.Done{}, &proto.Refusal{Code: proto.Timeout, Detail: "still silent"}) })
			return
		}
		s.actual, s.last, s.lastID, s.shape = s.e.ring, s.e.ring, "", proto.Giant
		s.event(func() { s.e.done(g.Req, proto.Done{Shape: proto.Giant, Generation: uint64(s.applies)}, nil) })
	})
}

// run takes everything to its end.
func (s *sim) run(opened proto.Opened) {
	s.t.Helper()
	s.event(func() { s.e.opened(opened) })
	for _, r := range s.ranks {
		s.tell(r, func() {
			if err := s.e.hello(r.x, r, nil); err != nil {
				s.t.Fatalf("%v", err)
			}
			for _, u := range s.e.ranks[r.x].units {
				g := u.group
				if err := s.e.join(r.x, &proto.JoinGroup{Group: g.Name, Axis: g.axis, Members: g.Members, Index: slices.Index(g.Members, r.x)}); err != nil {
					s.t.Fatalf("%v", err)
				}
			}
		})
		s.after(s.delay(1000), func() { s.goOn(r) })
	}
	for {
		at, ok := s.e.nextDue()
		if ok && (len(s.todo) == 0 || at <= s.todo[0].at) {
			s.now = max(s.now, at)
			s.event(s.e.tick)
			continue
		}
		if len(s.todo) == 0 {
			break
		}
		ev := heap.Pop(&s.todo).(event)
		s.now = ev.at
		ev.f()
	}
	for _, r := range s.ranks {
		if r.pc < len(r.program) {
			st := r.program[r.pc]
			s.t.Fatalf("rank %d is stuck before operation %d of %s (%d of %d) in mode %q:\n%+v", r.x, st.op, st.u.name(), r.pc, len(r.program), s.e.mode, s.e.status())
		}
	}
}

func (s *sim) goOn(r *simRank) {
	if r.pc == len(r.program) {
		return
	}
	st := r.program[r.pc]
	if r.begun && !st.first {
		s.enter(r, st)
		return
	}
	w := &proto.TopoWrite{Epoch: s.e.epoch, OpRef: st.u.ref(st.op), Mode: proto.Demand}
	if r.prov != 0 { // unanswered: it was wrong, or it is on its way
		if prov := r.prov; s.rng.Float64() < .3 {
			s.tell(r, func() { s.e.message(r.x, &proto.Withdraw{Req: prov}) })
		}
	}
	if s.rng.Float64() < .5 && r.pc > 0 {
		w.Last = &proto.OpRef{}
	}
	r.req++
	w.Req, r.dem = r.req, r.req
	s.tell(r, func() { s.e.message(r.x, w) })
}

func (s *sim) nacked(r *simRank, n *proto.TopoNack) {
	r.nacks++
	if n.Req == r.prov {
		r.prov = 0
	}
	if n.Req == r.dem {
		s.t.Fatalf("at %d rank %d was refused: %s: %s", s.now, r.x, n.Code, n.Detail)
	}
}

func (s *sim) acked(r *simRank, req uint64, ack *proto.TopoAck) {
	if req == r.prov {
		r.prov = 0
		return
	}
	if req != r.dem {
		return
	}
	r.dem = 0
	st := r.program[r.pc]
	r.begun, r.result = true, ack.Result
	// G1: what it needs is there, and nothing is about to change it.
	switch ack.Result {
	case proto.Applied, proto.NoOp:
		for _, c := range st.u.need {
			if p, ok := s.actual.Peer(c.A); !ok || p != c.B {
				s.violated(c.A, fmt.Sprintf("rank %d got leave for operation %d of %s, and the circuit is not there", r.x, st.op, st.u.name()))
			}
		}
		for q := r.x * s.e.per; q < (r.x+1)*s.e.per; q++ {
			p, ok := s.actual.Peer(q)
			if !ok || len(st.u.need) == 0 || st.u.group.Axis == opus.PP && !slices.Contains(st.u.members, p/s.e.per) {
				continue
			}
			r.ports = append(r.ports, q)
		}
	case proto.OnRing:
		for q := r.x * s.e.per; q < (r.x+1)*s.e.per; q++ {
			r.ports = append(r.ports, q)
		}
		if !s.actual.Equal(s.e.ring) {
			s.t.Fatalf("rank %d runs on a giant ring that is not there", r.x)
		}
	}
	for _, q := range r.ports {
		if s.busy[q] > 0 {
			s.violated(q, "it is granted while it is being changed")
		}
		s.using[q][r.x] = true
	}
	s.enter(r, st)
}

// enter joins a collective; it runs when all members are there.
func (s *sim) enter(r *simRank, st step) {
	key := fmt.Sprint(st.u.group.Name, "@", st.u.way, ":", st.op)
	o := s.runs[key]
	if o == nil {
		o = &run{}
		s.runs[key] = o
	}
	o.in = append(o.in, r.x)
	if len(o.in) < len(st.u.members) {
		return
	}
	delete(s.runs, key)
	duration := 1 + s.delay(100)
	for _, x := range o.in {
		m := s.ranks[x]
		s.after(duration, func() { s.completed(m, st) })
	}
}

func (s *sim) completed(r *simRank, st step) {
	r.pc++
	if st.last {
		for _, q := range r.ports {
			delete(s.using[q], r.x)
		}
		r.ports, r.begun = nil, false
		if s.opt.provision && r.pc < len(r.program) {
			next := r.program[r.pc]
			u, op := next.u, next.op
			if s.rng.Float64() < s.opt.wrong {
				units := s.e.ranks[r.x].units
				u = units[s.rng.IntN(len(units))]
				op = 0
				for _, st := range r.program[:r.pc] {
					if st.u == u {
						op = st.op + 1
					}
				}
			}
			r.req++
			w := &proto.TopoWrite{Req: r.req, Epoch: s.e.epoch, OpRef: u.ref(op), Mode: proto.Provision}
			r.prov = r.req
			s.tell(r, func() { s.e.message(r.x, w) })
		} else {
			rel := &proto.Release{Epoch: s.e.epoch, OpRef: st.u.ref(st.op)}
			s.tell(r, func() { s.e.message(r.x, rel) })
		}
	}
	s.after(s.delay(150), func() { s.goOn(r) })
}

// check says whether the engine has forgotten everything that is over.
func (s *sim) checkEnd(t *testing.T) {
	t.Helper()
	st := s.e.status()
	if s.opt.wrong == 0 && len(st.Pending) > 0 {
		s.t.Fatalf("operations are pending at the end: %+v", st.Pending)
	}
	if len(st.Holders) > 0 || st.InFlight > 0 {
		s.t.Fatalf("something is held or in flight at the end: %+v", st)
	}
	for q := range s.e.held {
		if s.e.held[q]+s.e.flight[q]+s.e.guard[q] != 0 {
			s.t.Fatalf("port %d: held %d, in flight %d, guarded %d at the end", q, s.e.held[q], s.e.flight[q], s.e.guard[q])
		}
	}
	if int(st.Counters.Changes) != s.applies {
		s.t.Fatalf("%d changes were counted and %d applies sent", st.Counters.Changes, s.applies)
	}
}
