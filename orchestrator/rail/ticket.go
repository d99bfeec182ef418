package rail

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// Peers that are none.
const (
	dark    int32 = -1
	foreign int32 = -2 // a port of the switch that is not the job's
)

type kind uint8

const (
	apply   kind = iota
	repair       // circuits that were lost are made again
	whole        // the giant ring, or back to the plan, or the start: all ports, whatever they hold
	bury         // marked dead: nothing is sent
	takeOld      // a controller opens the job: waits for all before it
)

// ticket is a request that has been accepted. Its ports are closed under what was planned for them before and
// under its goal: no circuit of either leads to a port that is not among them.
type ticket struct {
	// Set once, before it is in a queue.
	kind   kind
	seq    uint64
	req    uint64
	ports  []int // ascending
	goal   []int32
	config config // of the whole rail, when all before it are done; without circuits
	named  bool   // what the configuration is called has changed
	intent line   // for the journal
	msg    any    // the request, to know a repetition
	byID   bool
	look   bool // read before the first command
	// fromDead: the rail is dead, and stays so if this fails.
	fromDead bool
	was      []int32 // what was planned for the ports before; nil: not looked at

	// Guarded by Orchestrator.mu.
	waits    int      // ports that are not its own yet
	own      []bool   // by index: whether the port is
	dim      []bool   // by index: it goes dark since its peer moves, and others may come past; nil: none
	passed   []passed // by index: what came past at a port that is dim; nil as dim is
	over     []bool   // by index: it came past another one there; nil: none
	started  bool     // all are its own; it cannot be taken back
	finished bool
	alone    bool   // one that its topology ID includes has failed meanwhile: its own ports are as they should
	freed    []bool // ports given back early, by index; nil: none
	guards   []int  // ports that are not its own, and nobody else's until it is done
	done     []func(proto.Done, error)
	opened   func(proto.Opened, error)
	result   proto.Done
	err      error

	// Of the worker that has it.
	attempt                         int
	written                         bool // its intent is in the journal
	sent                            bool // a command may have reached the switch
	removed, added                  int
	displaced                       int // cross-connects that the device had to take over without being told to remove them
	command, acked, verified, light time.Time
}

// passed says what became of a request that came past a dim port of another one.
type passed uint8

const (
	untouched passed = iota
	entered          // it is outstanding
	settled          // it has ended: what the port holds is its business
)

// dimLocked finds the ports of t that go dark only because the peer that they have moves.
func (t *ticket) dimLocked() {
	for i, q := range t.ports {
		p := t.was[i]
		if t.goal[i] >= 0 || p < 0 {
			continue
		}
		if k, its := slices.BinarySearch(t.ports, int(p)); !its || t.goal[k] < 0 || t.was[k] != int32(q) {
			continue
		}
		if t.dim == nil {
			t.dim, t.passed = make([]bool, len(t.ports)), make([]passed, len(t.ports))
		}
		t.dim[i] = true
	}
}

// left reports whether port i of t is no business of t any more: given back, or taken by one that came past.
func (t *ticket) left(i int) bool {
	return t.freed != nil && t.freed[i] || t.dim != nil && t.passed[i] != untouched
}

// shareLocked decides, as t starts, whether others may come past its dim ports. All must be known: that the device takes
// over what is in the way, and what the ports hold.
func (o *Orchestrator) shareLocked(t *ticket) {
	if t.dim == nil {
		return
	}
	if o.takes != yes || t.look {
		t.dim, t.passed = nil, nil
		return
	}
	for i, q := range t.ports {
		if t.dim[i] {
			t.dim[i] = o.held[q] == t.was[i] || o.held[q] == dark
		}
	}
	for i, q := range t.ports {
		if t.dim[i] {
			o.admitLocked(q)
		}
	}
}

// admitLocked gives port q to the first in its queue, and to one behind it that comes past.
func (o *Orchestrator) admitLocked(q int) {
	if o.guarded[q] {
		return
	}
	n := 0 // those before, which are all dim here
	for _, t := range o.queue[q] {
		i, _ := slices.BinarySearch(t.ports, q)
		if !t.own[i] {
			if n > 0 && (t.kind != apply || t.goal[i] < 0) {
				return // only one that adds here takes over what is left
			}
			t.own[i] = true
			if n > 0 {
				if t.over == nil {
					t.over = make([]bool, len(t.ports))
				}
				t.over[i] = true
				for _, u := range o.queue[q][:n] {
					k, _ := slices.BinarySearch(u.ports, q)
					u.passed[k] = max(u.passed[k], entered)
				}
			}
			if t.waits--; t.waits == 0 {
				o.first = append(o.first, t)
			}
		}
		if !t.started || t.dim == nil || !t.dim[i] {
			return
		}
		n++
	}
}

// passedLocked tells those that t came past at its port i that it has ended.
func (o *Orchestrator) passedLocked(t *ticket, i int, err error) {
	if t.over == nil || !t.over[i] {
		return
	}
	for _, u := range o.queue[t.ports[i]] {
		if u == t {
			return
		}
		k, _ := slices.BinarySearch(u.ports, t.ports[i])
		if u.dim == nil || u.passed[k] != entered {
			continue
		}
		if u.passed[k] = settled; err != nil && !t.sent {
			u.passed[k] = untouched
		}
	}
}

// handOverLocked ends the sharing of t, which is to be repeated: what another one came past is that one's, the rest t's alone.
func (o *Orchestrator) handOverLocked(t *ticket) {
	if t.dim == nil {
		return
	}
	for i, q := range t.ports {
		if t.passed[i] == untouched || t.freed != nil && t.freed[i] {
			continue
		}
		if t.passed[i] == entered {
			o.doubtLocked(q) // until that one is done
		}
		if t.freed == nil {
			t.freed = make([]bool, len(t.ports))
		}
		t.freed[i] = true
		o.leaveLocked(t, q)
	}
	t.dim, t.passed = nil, nil
}

// guardLocked keeps port q, which nobody has asked for, from others while t removes by name what begins there.
func (o *Orchestrator) guardLocked(t *ticket, q int) {
	if !o.guarded[q] {
		o.guarded[q] = true
		t.guards = append(t.guards, q)
	}
}

func (o *Orchestrator) unguardLocked(t *ticket) {
	for _, q := range t.guards {
		o.guarded[q] = false
		o.admitLocked(q)
	}
	t.guards = nil
}

// barrier reports whether what comes behind does not rely on what came before.
func (t *ticket) barrier() bool { return t.kind >= whole }

// enqueueLocked gives t its place. The caller calls pumpLocked afterwards.
func (o *Orchestrator) enqueueLocked(t *ticket) {
	o.seq++
	t.seq = o.seq
	if t.intent.Whole != nil || t.intent.Join != nil || t.intent.Part != nil {
		t.intent.Do = t.seq
	}
	o.outstanding = append(o.outstanding, t)
	if t.was != nil {
		t.dimLocked()
	}
	t.own = make([]bool, len(t.ports))
	t.waits = len(t.ports)
	if t.waits == 0 {
		o.first = append(o.first, t)
	}
	for _, q := range t.ports {
		o.queue[q] = append(o.queue[q], t)
		o.admitLocked(q)
	}
}

// pumpLocked starts all that are first on all of their ports.
func (o *Orchestrator) pumpLocked() {
	for len(o.first) > 0 {
		t := o.first[0]
		o.first = o.first[1:]
		if !t.finished && !t.started {
			t.started = true
			o.startLocked(t)
		}
	}
	o.first = nil
	if o.closed && len(o.outstanding) == 0 {
		o.wake.Broadcast()
	}
}

func (o *Orchestrator) startLocked(t *ticket) {
	switch t.kind {
	case bury:
		_ = o.journal.add(t.intent, line{Did: t.seq, Generation: o.generation, Unsure: o.unsureLocked()})
		o.finishLocked(t, proto.Done{Generation: o.generation, Shape: proto.Dead, Result: proto.NoOp}, nil)
		o.tellLocked(Event{What: Marked, Requests: []uint64{t.req}})
		return
	case takeOld:
		if o.nUnsure == 0 || o.shape == proto.Dead {
			o.finishLocked(t, proto.Done{}, nil)
			return
		}
		t.look = true
	default:
		same := !t.look
		for i, q := range t.ports {
			if o.unsure[q] {
				t.look, same = true, false
			}
			same = same && o.held[q] == t.goal[i]
		}
		if same {
			if err := o.lit(); err != nil {
				o.failLocked(t, proto.Conflict, fmt.Errorf("rail %s: %w", o.opt.Rail, err))
				return
			}
			if t.named {
				if err := o.journal.add(t.intent, line{Did: t.seq, Generation: o.generation, Unsure: o.unsureLocked()}); err != nil {
					o.failLocked(t, proto.RailDead, err)
					return
				}
			}
			o.counters.NoOps++
			o.finishLocked(t, proto.Done{Generation: o.generation, Shape: t.config.Shape, Result: proto.NoOp, Attempts: 1}, nil)
			return
		}
	}
	o.ready = append(o.ready, t)
	o.wake.Signal()
	o.shareLocked(t)
}

// leaveLocked takes t out of the queue of port q.
func (o *Orchestrator) leaveLocked(t *ticket, q int) {
	i := slices.Index(o.queue[q], t)
	o.queue[q] = slices.Delete(o.queue[q], i, i+1)
	o.lastSeq[q] = max(o.lastSeq[q], o.seq)
	o.admitLocked(q)
}

// finishLocked gives back the ports of t and answers it.
func (o *Orchestrator) finishLocked(t *ticket, d proto.Done, err error) {
	t.finished = true
	d.Req = t.req
	if t.alone && err == nil {
		d.Shape = proto.Circuits
	}
	t.result, t.err = d, err
	for i, q := range t.ports {
		if t.freed == nil || !t.freed[i] {
			o.passedLocked(t, i, err)
			o.leaveLocked(t, q)
		}
	}
	o.unguardLocked(t)
	if i := slices.Index(o.outstanding, t); i >= 0 {
		o.outstanding = slices.Delete(o.outstanding, i, i+1)
	}
	if err == nil && t.kind != takeOld && !t.alone {
		o.last = t.config
	}
	for _, f := range t.done {
		o.deliverLocked(func() { f(d, err) })
	}
	t.done = nil
	if o.closed {
		o.deliver.Broadcast()
	}
	if f := t.opened; f != nil {
		if err != nil {
			o.deliverLocked(func() { f(proto.Opened{}, err) })
		} else {
			state := o.openedLocked()
			o.deliverLocked(func() { f(state, nil) })
		}
	}
}

// abandonLocked finishes ts, of which the first may have started, with errors, and takes back what was planned for their
// ports. It reports whether it did so: a barrier behind them has planned all ports anew.
func (o *Orchestrator) abandonLocked(ts []*ticket, why func(*ticket) error) bool {
	for _, t := range ts {
		o.finishLocked(t, proto.Done{}, why(t))
	}
	barrier := slices.ContainsFunc(o.outstanding, func(u *ticket) bool { return u.barrier() && u.kind != takeOld && u.seq > ts[0].seq })
	if barrier {
		return false
	}
	ports := map[int]bool{}
	for _, t := range ts {
		for i, q := range t.ports {
			if t.freed == nil || !t.freed[i] {
				ports[q] = true
			}
		}
	}
	for q := range maps.Keys(ports) {
		o.target[q] = o.plannedLocked(q)
	}
	o.renameLocked()
	return true
}

// plannedLocked returns the peer of q once all that is outstanding is done.
func (o *Orchestrator) plannedLocked(q int) int32 {
	for _, t := range slices.Backward(o.queue[q]) {
		if i, ok := slices.BinarySearch(t.ports, q); ok && t.goal != nil {
			return t.goal[i]
		}
	}
	// A request that concerns the peer and not this port has come past, and joins the peer to another one.
	if p := o.held[q]; p >= 0 && o.held[p] == int32(q) && !slices.ContainsFunc(o.queue[p], func(t *ticket) bool { return t.goal != nil }) {
		return p
	}
	return dark
}

// renameLocked finds out what the configuration that is planned is called.
func (o *Orchestrator) renameLocked() {
	candidates := []config{o.last}
	for _, t := range o.outstanding {
		if t.kind != takeOld {
			candidates = append(candidates, t.config)
		}
	}
	if o.nUnsure > 0 {
		candidates = nil // what it looks like is not certain
	}
	for _, c := range slices.Backward(candidates) {
		if c.Shape == proto.Dead && o.shape == proto.Dead {
			return
		}
		if c.Shape != proto.Digits && c.Shape != proto.Giant {
			continue
		}
		if peers, err := c.peers(&o.opt); err == nil && slices.Equal(peers, o.target) {
			o.shape, o.reason, o.id = c.Shape, c.Reason, c.ID
			return
		}
	}
	o.shape, o.id, o.reason = proto.Circuits, "", ""
}

// failLocked fails t, and what relies on it. With sent, what its ports hold is not certain any more.
func (o *Orchestrator) failLocked(t *ticket, code proto.Code, cause error) {
	o.counters.Failures++
	o.noteDarkLocked(cause)
	bad := map[int]bool{}
	// What came past has taken over circuits of t, whether t has sent anything or not.
	doubt := t.sent || t.attempt > 1 || errors.As(cause, new(*unlit)) || slices.ContainsFunc(t.passed, func(p passed) bool { return p != untouched })
	for i, q := range t.ports {
		if t.freed != nil && t.freed[i] || t.dim != nil && t.passed[i] == settled {
			continue
		}
		if doubt {
			o.doubtLocked(q)
		}
		bad[q] = !t.left(i)
	}
	if t.sent {
		o.generation++
	}
	if t.kind == repair { // what is intended is still intended
		_ = o.journal.add(line{Failed: t.seq, Generation: o.generation, Unsure: o.unsureLocked()})
		o.finishLocked(t, proto.Done{}, &proto.Refusal{Code: code, Attempts: t.attempt, Detail: cause.Error()})
		o.tellLocked(Event{What: Failed, Attempt: t.attempt, Err: cause})
		return
	}
	fallen := []*ticket{t}
	for _, u := range o.outstanding {
		if u.seq <= t.seq {
			continue
		}
		if u.kind == takeOld {
			continue
		}
		if u.barrier() {
			break
		}
		overlaps := slices.ContainsFunc(u.ports, func(q int) bool { return bad[q] })
		if u.started {
			u.alone = u.alone || u.byID
			continue
		}
		if !overlaps && !u.byID {
			continue
		}
		fallen = append(fallen, u)
		for _, q := range u.ports {
			bad[q] = true
		}
	}
	anew := o.abandonLocked(fallen, func(u *ticket) error {
		if u == t {
			return &proto.Refusal{Code: code, Attempts: t.attempt, Detail: cause.Error()}
		}
		return &proto.Refusal{Code: code, Detail: fmt.Sprintf("rail %s: a request before it, on which it relies, failed: %s", o.opt.Rail, o.bare(cause.Error()))}
	})
	if anew {
		o.reason = o.bare(cause.Error())
		if t.fromDead {
			o.shape = proto.Dead
		}
	}
	if t.written {
		holds := o.intentLocked()
		_ = o.journal.add(line{Failed: t.seq, Generation: o.generation, Unsure: o.unsureLocked(), Holds: &holds})
	}
	o.tellLocked(Event{What: Failed, Requests: []uint64{t.req}, Attempt: t.attempt, Err: cause})
}

// intentLocked returns what is planned, for the journal.
func (o *Orchestrator) intentLocked() config {
	c := config{Shape: o.shape, ID: o.id, Reason: o.reason}
	if c.Shape == proto.Circuits || c.Shape == proto.Dead {
		c.Circuits = pairs(o.target)
	}
	return c
}

// doubtLocked notes that it is not certain what port q holds.
func (o *Orchestrator) doubtLocked(q int) {
	if !o.unsure[q] {
		o.unsure[q] = true
		o.nUnsure++
	}
}

func (o *Orchestrator) trustLocked(q int) {
	if o.unsure[q] {
		o.unsure[q] = false
		o.nUnsure--
	}
}

func (o *Orchestrator) unsureLocked() []int {
	if o.nUnsure == 0 {
		return nil
	}
	var all []int
	for q, u := range o.unsure {
		if u {
			all = append(all, q)
		}
	}
	return all
}

// planLocked makes the ticket of a request for a topology ID. What is planned is that from now on.
func (o *Orchestrator) planLocked(id opus.ID) (*ticket, error) {
	m, err := o.table.Matching(id)
	if err != nil {
		return nil, err
	}
	t := &ticket{kind: apply, byID: true, config: config{Shape: proto.Digits, ID: id.String()}}
	t.named = o.shape != proto.Digits || o.id != t.config.ID
	t.intent.Whole = &t.config
	goal := peersOf(m, len(o.target))
	in := make([]bool, len(goal))
	n := 0
	mark := func(q int32) {
		if q >= 0 && !in[q] {
			in[q] = true
			n++
		}
	}
	for q := range goal {
		if goal[q] != o.target[q] || o.unsure[q] {
			mark(int32(q))
			mark(goal[q])
			mark(o.target[q])
		}
	}
	if n == 0 { // all that is under way is what it waits for
		for q := range goal {
			if len(o.queue[q]) > 0 {
				mark(int32(q))
			}
		}
	}
	t.ports, t.goal = make([]int, 0, n), make([]int32, 0, n)
	t.was = make([]int32, 0, n)
	for q := range in {
		if in[q] {
			t.ports, t.goal, t.was = append(t.ports, q), append(t.goal, goal[q]), append(t.was, o.target[q])
		}
	}
	o.target = goal
	return t, nil
}

// joinLocked is planLocked for circuits.
func (o *Orchestrator) joinLocked(join [][2]int, part []int) (*ticket, error) {
	goal := slices.Clone(o.target)
	if err := rejoin(goal, join, part); err != nil {
		return nil, err
	}
	in := map[int]bool{}
	for _, c := range join {
		in[c[0]], in[c[1]] = true, true
	}
	for _, q := range part {
		in[q] = true
	}
	for _, q := range slices.Collect(maps.Keys(in)) {
		if p := o.target[q]; p >= 0 {
			in[int(p)] = true
		}
	}
	t := &ticket{kind: apply, config: config{Shape: proto.Circuits}, ports: slices.Sorted(maps.Keys(in))}
	if same := slices.Equal(goal, o.target); same && o.shape != proto.Dead {
		// Nothing moves, and what it is called stays.
		t.config = config{Shape: o.shape, ID: o.id, Reason: o.reason}
	}
	t.named = o.shape != t.config.Shape
	t.intent.Join, t.intent.Part = join, part
	for _, q := range t.ports {
		t.goal, t.was = append(t.goal, goal[q]), append(t.was, o.target[q])
	}
	o.target = goal
	return t, nil
}

// wholeLocked makes the ticket of a configuration of all ports, whatever they hold.
func (o *Orchestrator) wholeLocked(c config) (*ticket, error) {
	goal, err := c.peers(&o.opt)
	if err != nil {
		return nil, err
	}
	t := &ticket{kind: whole, config: config{Shape: c.Shape, ID: c.ID, Reason: c.Reason}, ports: o.all, goal: goal, look: true, named: true}
	t.intent.Whole = &c
	o.target = slices.Clone(goal)
	return t, nil
}
