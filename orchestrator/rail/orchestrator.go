package rail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/opus"
)

// remembered is how many answers are kept for repetitions.
const remembered = 1024

// leastToStart is how long New waits for the switch at least.
const leastToStart = 5 * time.Second

// Orchestrator is the orchestrator of one job on one rail: controller.Rail in the process that has the switch. It is
// safe for concurrent use. For several jobs on one switch there is one for each; see [Disjoint].
type Orchestrator struct {
	// Set once.
	opt    Options
	table  *opus.Table
	ring   config
	all    []int
	ofIn   owners // of the ingress ports that ranks send into
	ofOut  owners
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	ended  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	wake    *sync.Cond // something is ready, or it is closed
	journal *journal

	epoch      uint64
	controller string
	generation uint64

	// What is planned: how the rail is when all that is outstanding is done.
	target []int32
	shape  proto.Shape
	id     string
	reason string
	plan   *config // that was left for the giant ring or death
	last   config  // how the rail was called when something was last done

	// What the switch was last seen to hold, by the port that sends.
	held    []int32
	unsure  []bool
	nUnsure int

	seq         uint64
	guarded     []bool                  // by port: somebody removes by name what begins there, see guardLocked
	queue       [][]*ticket             // by port, those that want it, in order of their numbers
	lastSeq     []uint64                // by port, the highest number when one last left its queue
	outstanding []*ticket               // in order of their numbers
	first       []*ticket               // that became first on all of their ports, to be started
	ready       []*ticket               // for the next session that is free
	waiting     map[*ticket]*time.Timer // between two attempts

	requests map[uint64]*ticket // of the epoch, by request
	order    []uint64           // of requests, as they came

	takes    answer        // whether the device takes over what is in the way of what is added
	took     time.Duration // what a command takes, as measured
	counters Counters
	closed   bool

	byDefault   bool                      // set once: nobody asked for Light
	unmonitored bool                      // the switch has no power monitors, so that Table has to do
	metered     bool                      // a monitor has been read
	monitored   bool                      // averages is known
	averages    time.Duration             // over how long the monitors average
	darkPaths   map[ocs.CrossConnect]Path // that failed a change
	unfed       map[ocs.Port]bool         // ingress ports of circuits that had no input light when they were looked at

	deliver *sync.Cond // out is not empty, or it is closed
	out     []func()
	muted   bool // nobody delivers any more
	sealed  bool // Close is done
	alarms  map[chan proto.Alarm]struct{}
	own     chan proto.Alarm
}

// New reads the journal and the switch and brings the rail to the configuration that was intended last; without a
// journal, or when that tells of a failure, to the giant ring. When neither can be had the rail is dead, which is no
// error: see [Orchestrator.Status]. One that was dead before stays so, unless Options.Revive asks for it.
//
// It waits for the first answers of the switch as long as all attempts at a change may take, and 5 seconds at least.
//
// It returns an error, and changes nothing, when the options make no sense, when the switch cannot be read, when another
// process has the journal, and when circuits of others lead to ports of the job under ocs.Safe: that matches
// [ocs.ErrConflict], and one for protected ports [ocs.ErrInterlock].
func New(ctx context.Context, opt Options) (*Orchestrator, error) {
	o, err := prepare(opt)
	if err != nil {
		return nil, fmt.Errorf("rail %s: %w", opt.Rail, err)
	}
	was, err := o.recall(ctx)
	if err != nil {
		return nil, fmt.Errorf("rail %s: %w", opt.Rail, err)
	}
	o.own = o.subscribe()
	for i := range o.opt.Sessions {
		o.ended.Go(func() { o.work(i) })
	}
	o.ended.Go(o.delivering)
	if was.torn {
		o.mu.Lock()
		o.alarmLocked(proto.Alarm{Detail: fmt.Sprintf("the end of the journal of rail %s could not be read and was moved aside", o.opt.Rail)})
		o.mu.Unlock()
	}
	if err := o.settle(ctx, was); err != nil {
		o.Close()
		return nil, fmt.Errorf("rail %s: %w", opt.Rail, err)
	}
	if o.opt.Health > 0 {
		o.ended.Go(o.watch)
	}
	return o, nil
}

// prepare checks the options.
func prepare(opt Options) (*Orchestrator, error) {
	opt.Policy = cmp.Or(opt.Policy, opus.Pair)
	opt.Attempts = cmp.Or(opt.Attempts, DefaultAttempts)
	opt.Takeover = cmp.Or(opt.Takeover, ocs.Safe)
	opt.Threshold = cmp.Or(opt.Threshold, ocs.NoLight)
	opt.Patience = cmp.Or(opt.Patience, DefaultPatience)
	opt.Health = cmp.Or(opt.Health, DefaultHealth)
	switch {
	case len(opt.Sessions) == 0:
		return nil, errors.New("there is no session with the switch")
	case opt.Attempts < 0 || opt.Timeout < 0 || opt.Patience < 0:
		return nil, errors.New("attempts, timeout and patience must not be negative")
	case opt.Takeover != ocs.Safe && opt.Takeover != ocs.Update:
		return nil, fmt.Errorf("takeover %.40q: want safe or update", opt.Takeover)
	case opt.Verify != "" && opt.Verify != Table && opt.Verify != Light:
		return nil, fmt.Errorf("verify %.40q: want table or light", opt.Verify)
	}
	byDefault := opt.Verify == ""
	if _, ok := ocs.As[ocs.PowerMeter](opt.Sessions[0]); ok {
		opt.Verify = cmp.Or(opt.Verify, Light)
	} else if opt.Verify == Light {
		return nil, fmt.Errorf("the light of %s cannot be verified: %w", opt.Switch, errNoMonitors)
	} else {
		opt.Verify = Table
	}
	table, err := opus.NewTable(opt.Job, opt.Policy, opt.Assignment)
	if err != nil {
		return nil, err
	}
	n := opt.Job.DuplexPorts()
	o := &Orchestrator{
		opt: opt, table: table, ring: config{Shape: proto.Giant}, all: make([]int, n),
		held: make([]int32, n), unsure: make([]bool, n), guarded: make([]bool, n), queue: make([][]*ticket, n), lastSeq: make([]uint64, n),
		waiting: map[*ticket]*time.Timer{}, requests: map[uint64]*ticket{}, alarms: map[chan proto.Alarm]struct{}{},
		byDefault: byDefault, darkPaths: map[ocs.CrossConnect]Path{}, unfed: map[ocs.Port]bool{},
	}
	o.wake, o.deliver = sync.NewCond(&o.mu), sync.NewCond(&o.mu)
	o.ctx, o.cancel = context.WithCancelCause(context.Background())
	for q := range n {
		f := opt.Assignment[q]
		o.all[q] = q
		o.ofIn.set(f.In, int32(q))
		o.ofOut.set(f.Out, int32(q))
		for _, p := range []ocs.Port{f.In, f.Out} {
			if slices.Contains(opt.Protected, p) {
				return nil, fmt.Errorf("%s leads to port %d of %s: %w", o.name(q), p, opt.Switch, ocs.ErrInterlock)
			}
		}
	}
	return o, nil
}

// recall reads the journal and the switch.
func (o *Orchestrator) recall(ctx context.Context) (past, error) {
	limit := max(time.Duration(o.opt.Attempts)*o.timeout(), leastToStart)
	first, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	silent := func(err error) error {
		if first.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("the switch %s did not answer within %v: see that it is on and can be reached, and start again: %w", o.opt.Switch, limit, err)
		}
		return fmt.Errorf("the switch %s cannot be read: %w", o.opt.Switch, err)
	}
	id, err := o.opt.Sessions[0].Identify(first)
	if err != nil {
		return past{}, silent(err)
	}
	for q, f := range o.opt.Assignment[:len(o.all)] {
		if !id.Geometry.IsIngress(f.In) || !id.Geometry.IsEgress(f.Out) {
			return past{}, fmt.Errorf("%s sends into port %d and receives from port %d of %s, which is %v: %w", o.name(q), f.In, f.Out, o.opt.Switch, id.Geometry, ocs.ErrPort)
		}
	}
	m, err := o.opt.Sessions[0].CrossConnects(first)
	if err != nil {
		return past{}, silent(err)
	}
	v := o.see(m)
	if len(v.foreign) > 0 && o.opt.Takeover == ocs.Safe {
		return past{}, o.conflict(v.foreign[0])
	}
	j, was, err := openJournal(ctx, &o.opt)
	if err != nil {
		return past{}, err
	}
	o.journal = j
	copy(o.held, v.to)
	for q := range o.held {
		if v.to[q] == foreign {
			o.held[q] = dark
		}
	}
	o.target = slices.Clone(o.held)
	// What was answered before the restart is forgotten, so those who asked must open again.
	o.epoch, o.generation, o.plan = was.Epoch, was.Generation, was.Plan
	switch {
	case was.known:
		o.epoch++
	case was.torn:
		o.epoch = uint64(time.Now().UnixMilli()) // beyond all that the lost journal can have had
	}
	return was, nil
}

// settle brings the rail to what it was meant to hold.
func (o *Orchestrator) settle(ctx context.Context, was past) error {
	want, hint := o.called(was.Intent), ""
	plan := o.plan
	switch {
	case !was.known:
		want = config{Shape: proto.Giant, Reason: "the rail begins with it"}
	case want.Shape == proto.Dead && !o.opt.Revive:
		hint = "; it stays so until it is started with --revive, or marked as no longer dead"
	case want.Shape == proto.Dead && plan != nil:
		want, plan = o.called(*plan), nil // it is resumed
	case want.Shape == proto.Dead:
		want = config{Shape: proto.Giant, Reason: "the rail was dead, and has no plan to go back to"}
	case len(was.Unsure) > 0:
		want = config{Shape: proto.Giant, Reason: "the last change before the restart failed"}
	case was.lost:
		want = config{Shape: proto.Giant, Reason: "the journal is damaged"}
	}
	fallback := config{Shape: proto.Giant, Reason: "what was intended before the restart could not be had"}
	var cause error
	for _, c := range []config{want, fallback} {
		if c.Shape == proto.Dead {
			cause = errors.New(cmp.Or(c.Reason, "it was marked dead before the restart"))
			break
		}
		o.mu.Lock()
		b := base{Version: journalVersion, Rail: o.opt.Rail, Switch: o.opt.Switch, Job: o.opt.Job, Policy: o.opt.Policy,
			Epoch: o.epoch, Generation: o.generation, Intent: c, Plan: plan}
		if err := o.journal.begin(b); err != nil {
			o.mu.Unlock()
			return err
		}
		t, err := o.wholeLocked(c)
		if err != nil {
			o.mu.Unlock()
			return err
		}
		t.intent = line{} // it is the beginning of the journal
		o.shape, o.id, o.reason = c.Shape, c.ID, c.Reason
		result := make(chan error, 1)
		t.done = append(t.done, func(_ proto.Done, err error) { result <- err })
		o.enqueueLocked(t)
		o.pumpLocked()
		o.mu.Unlock()
		select {
		case err = <-result:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err == nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.plan = plan
			return nil
		}
		cause, plan = err, o.plan
		if c.Shape == proto.Giant {
			break
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	reason := cause.Error()
	if r := (*proto.Refusal)(nil); errors.As(cause, &r) {
		reason = r.Detail
	}
	o.shape, o.id, o.reason = proto.Dead, "", o.bare(reason)
	o.last = config{Shape: proto.Dead, Reason: o.reason}
	b := base{Version: journalVersion, Rail: o.opt.Rail, Switch: o.opt.Switch, Job: o.opt.Job, Policy: o.opt.Policy,
		Epoch: o.epoch, Generation: o.generation, Intent: o.intentLocked(), Plan: o.plan, Unsure: o.unsureLocked()}
	o.reason += hint
	return o.journal.begin(b)
}

// Disjoint returns an error that names a port which two jobs on one switch share. It matches ocs.ErrConflict.
func Disjoint(all ...*Orchestrator) error {
	type end struct {
		device string
		port   ocs.Port
	}
	of := map[end]*Orchestrator{}
	for _, o := range all {
		for q, f := range o.opt.Assignment[:len(o.all)] {
			for _, p := range []ocs.Port{f.In, f.Out} {
				e := end{o.opt.Switch, p}
				if other := of[e]; other != nil && other != o {
					return fmt.Errorf("port %d of %s belongs to job %s (%s) and to job %s: %w", p, o.opt.Switch, o.opt.Job.Name, o.name(q), other.opt.Job.Name, ocs.ErrConflict)
				}
				of[e] = o
			}
		}
	}
	return nil
}

// Open takes the job over: requests of earlier epochs that have not begun are stale, and those that have are waited for.
// One that names an epoch to resume keeps that, if it still is the current one.
func (o *Orchestrator) Open(m proto.Open, done func(proto.Opened, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	refuse := func(err error) { o.deliverLocked(func() { done(proto.Opened{}, err) }) }
	switch {
	case o.closed:
		refuse(o.gone())
		return
	case m.Version != proto.Version:
		refuse(&proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("the controller speaks version %d of the protocol, rail %s version %d", m.Version, o.opt.Rail, proto.Version)})
		return
	case m.Rail != o.opt.Rail:
		refuse(&proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("this is rail %s, not %.60q", o.opt.Rail, m.Rail)})
		return
	case !sameJob(m.Job, o.opt.Job) || cmp.Or(m.Policy, opus.Pair) != o.opt.Policy:
		refuse(&proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("the controller's job %.60q is not the one that rail %s has as %q: number and order of ranks, axes and the policy must be the same", m.Job.Name, o.opt.Rail, o.opt.Job.Name)})
		return
	case m.Resume > 0 && m.Resume != o.epoch:
		refuse(o.staleLocked(m.Resume))
		return
	case m.Resume > 0:
		state := o.openedLocked()
		o.deliverLocked(func() { done(state, nil) })
		return
	}
	if err := o.journal.add(line{Epoch: o.epoch + 1, By: m.Controller}); err != nil {
		refuse(&proto.Refusal{Code: proto.RailDead, Detail: err.Error()})
		return
	}
	o.epoch++
	o.controller = m.Controller
	o.dropLocked(func(t *ticket) error {
		return &proto.Refusal{Code: proto.Stale, Detail: fmt.Sprintf("%s has taken rail %s over before this could begin", m.Controller, o.opt.Rail)}
	})
	clear(o.requests)
	o.order = nil
	o.tellLocked(Event{What: Opened})
	o.enqueueLocked(&ticket{kind: takeOld, ports: o.all, opened: done})
	o.pumpLocked()
}

// dropLocked fails the requests that have not begun.
func (o *Orchestrator) dropLocked(why func(*ticket) error) {
	var drop []*ticket
	for _, t := range o.outstanding {
		if !t.started && t.kind == apply {
			drop = append(drop, t)
		}
	}
	if len(drop) > 0 {
		o.abandonLocked(drop, why)
	}
}

func (o *Orchestrator) staleLocked(epoch uint64) error {
	by := ""
	if o.controller != "" {
		by = ", that of " + o.controller
	}
	return &proto.Refusal{Code: proto.Stale, Detail: fmt.Sprintf("epoch %d of rail %s is over: it is at %d%s", epoch, o.opt.Rail, o.epoch, by)}
}

func (o *Orchestrator) openedLocked() proto.Opened {
	return proto.Opened{Epoch: o.epoch, Generation: o.generation, Shape: o.shape, ID: o.id, Circuits: o.circuitsLocked(), Reason: o.reason}
}

// circuitsLocked returns the circuits of which it is certain that they are there.
func (o *Orchestrator) circuitsLocked() [][2]int {
	return slices.DeleteFunc(pairs(o.held), func(c [2]int) bool { return o.unsure[c[0]] || o.unsure[c[1]] })
}

// accept puts a request in its place, or answers it: one that was there before with the result that it had.
func (o *Orchestrator) accept(epoch, req uint64, msg any, done func(proto.Done, error), makeLocked func() (*ticket, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	refuse := func(err error) { o.deliverLocked(func() { done(proto.Done{}, err) }) }
	if o.closed {
		refuse(o.gone())
		return
	}
	if epoch != o.epoch || epoch == 0 {
		refuse(o.staleLocked(epoch))
		return
	}
	if t := o.requests[req]; req > 0 && t != nil {
		switch {
		case !reflect.DeepEqual(t.msg, msg):
			refuse(&proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("request %d is repeated with other content", req)})
		case t.finished:
			d, err := t.result, t.err
			o.deliverLocked(func() { done(d, err) })
		default:
			t.done = append(t.done, done)
		}
		return
	}
	t, err := makeLocked()
	if err != nil {
		var r *proto.Refusal
		if !errors.As(err, &r) {
			err = &proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("rail %s: %v", o.opt.Rail, err)}
		}
		refuse(err)
		return
	}
	t.req, t.msg, t.done = req, msg, []func(proto.Done, error){done}
	if req > 0 {
		o.requests[req] = t
		o.order = append(o.order, req)
		if len(o.order) > remembered && o.requests[o.order[0]].finished {
			delete(o.requests, o.order[0])
			o.order = o.order[1:]
		}
	}
	o.counters.Requests++
	o.enqueueLocked(t)
	o.pumpLocked()
}

// deadLocked is the refusal of a dead rail, or nil.
func (o *Orchestrator) deadLocked() error {
	if o.shape != proto.Dead {
		return nil
	}
	return &proto.Refusal{Code: proto.RailDead, Detail: fmt.Sprintf("rail %s is dead: %s", o.opt.Rail, o.reason)}
}

// Apply asks for circuits; see proto.Apply. A request that was made before in this epoch gets the answer that it had.
func (o *Orchestrator) Apply(a proto.Apply, done func(proto.Done, error)) {
	o.accept(a.Epoch, a.Req, a, done, func() (*ticket, error) {
		if err := o.deadLocked(); err != nil {
			return nil, err
		}
		circuits := len(a.Join)+len(a.Part) > 0
		if circuits == (a.ID != "") {
			return nil, errors.New("a request names a topology ID or circuits, one of the two")
		}
		var t *ticket
		var err error
		if circuits {
			t, err = o.joinLocked(a.Join, a.Part)
		} else {
			var id opus.ID
			if id, err = o.opt.Job.ParseID(a.ID); err == nil {
				t, err = o.planLocked(id)
			}
		}
		if err != nil {
			return nil, err
		}
		o.shape, o.id, o.reason = t.config.Shape, t.config.ID, t.config.Reason
		if t.named && o.plan != nil {
			o.plan, t.intent.Resumed = nil, true
		}
		return t, nil
	})
}

// GiantRing asks for the ring through all ranks, after all requests before it.
func (o *Orchestrator) GiantRing(g proto.GiantRing, done func(proto.Done, error)) {
	o.accept(g.Epoch, g.Req, g, done, func() (*ticket, error) {
		if err := o.deadLocked(); err != nil {
			return nil, err
		}
		aside := o.asideLocked()
		t, err := o.wholeLocked(config{Shape: proto.Giant, Reason: o.bare(g.Reason)})
		if err != nil {
			return nil, err
		}
		t.intent.Aside = aside
		o.shape, o.id, o.reason = proto.Giant, "", o.bare(g.Reason)
		return t, nil
	})
}

// asideLocked remembers the plan that is left.
func (o *Orchestrator) asideLocked() *config {
	if o.shape != proto.Digits && o.shape != proto.Circuits {
		return nil
	}
	c := o.called(o.intentLocked())
	c.Reason = ""
	o.plan = &c
	return o.plan
}

// called returns c by its topology ID, where its circuits are those of one.
func (o *Orchestrator) called(c config) config {
	if c.Shape != proto.Circuits {
		return c
	}
	peers, err := c.peers(&o.opt)
	if err != nil {
		return c
	}
	// All ports of a stage that serves a symmetrical axis are joined within it; else it serves the pipeline.
	id := make([]byte, o.opt.Job.Stages)
	per := len(peers) / len(id)
	for stage := range id {
		id[stage] = '0'
	}
	for axis := 1; axis <= len(o.opt.Job.Axes); axis++ {
		digit := byte('0' + axis)
		all := config{Shape: proto.Digits, ID: strings.Repeat(string(digit), len(id))}
		of, err := all.peers(&o.opt)
		if err != nil {
			return c
		}
		for stage := range id {
			if from, to := stage*per, (stage+1)*per; slices.Equal(of[from:to], peers[from:to]) {
				id[stage] = digit
			}
		}
	}
	named := config{Shape: proto.Digits, ID: string(id), Reason: c.Reason}
	if of, err := named.peers(&o.opt); err != nil || !slices.Equal(of, peers) {
		return c
	}
	return named
}

// Mark marks the rail dead, or has it looked at again and brought to its last plan, or else to the giant ring. A dead
// rail stays dead when that fails.
func (o *Orchestrator) Mark(m proto.Mark, done func(proto.Done, error)) {
	reason := o.bare(m.Reason)
	o.accept(m.Epoch, m.Req, m, done, func() (*ticket, error) {
		if m.Dead {
			o.dropLocked(func(*ticket) error {
				return &proto.Refusal{Code: proto.RailDead, Detail: fmt.Sprintf("rail %s is dead: %s", o.opt.Rail, reason)}
			})
			aside := o.asideLocked()
			o.shape, o.id, o.reason = proto.Dead, "", reason
			dead := o.intentLocked()
			return &ticket{kind: bury, ports: o.all, config: config{Shape: proto.Dead, Reason: reason}, intent: line{Whole: &dead, Aside: aside}}, nil
		}
		was := o.shape
		c := config{Shape: proto.Giant, Reason: reason}
		switch {
		case o.plan != nil:
			c = o.called(*o.plan)
		case was == proto.Digits || was == proto.Circuits:
			c = o.called(o.intentLocked())
			c.Reason = ""
		}
		t, err := o.wholeLocked(c)
		if err != nil {
			return nil, err
		}
		t.fromDead = was == proto.Dead
		t.intent.Resumed = true
		o.shape, o.id, o.reason, o.plan = c.Shape, c.ID, c.Reason, nil
		return t, nil
	})
}

// Alarms returns the channel of alarms; see controller.Rail.
func (o *Orchestrator) Alarms() <-chan proto.Alarm { return o.own }

// subscribe returns a channel of alarms of its own, which is closed by Close or unsubscribe.
func (o *Orchestrator) subscribe() chan proto.Alarm {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := make(chan proto.Alarm, 1)
	if o.closed {
		close(c)
	} else {
		o.alarms[c] = struct{}{}
	}
	return c
}

func (o *Orchestrator) unsubscribe(c chan proto.Alarm) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, there := o.alarms[c]; there {
		delete(o.alarms, c)
		close(c)
	}
}

// alarmLocked tells all who listen; what they have not read yet gives way.
func (o *Orchestrator) alarmLocked(a proto.Alarm) {
	a.Generation = o.generation
	o.counters.Alarms++
	for c := range o.alarms {
		select {
		case <-c:
		default:
		}
		c <- a // only here is anything sent, under the lock
	}
	o.tellLocked(Event{What: Drifted, Err: errors.New(a.Detail)})
}

// tellLocked calls Options.Changed.
func (o *Orchestrator) tellLocked(e Event) {
	if o.opt.Changed == nil {
		return
	}
	e.Rail, e.Switch, e.Epoch, e.Generation = o.opt.Rail, o.opt.Switch, o.epoch, o.generation
	if e.At.IsZero() {
		e.At = time.Now()
	}
	o.opt.Changed(e)
}

// Status returns what the rail is in.
func (o *Orchestrator) Status() Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	return Status{
		Rail: o.opt.Rail, Switch: o.opt.Switch, Job: o.opt.Job.Name, Epoch: o.epoch, Controller: o.controller, Generation: o.generation,
		Shape: o.shape, ID: o.id, Circuits: o.circuitsLocked(), Unsure: o.unsureLocked(), Pending: len(o.outstanding), Reason: o.reason,
		Verify: o.verifyingLocked(), Dark: o.darkLocked(), NoInput: slices.Sorted(maps.Keys(o.unfed)), Counters: o.counters,
	}
}

func (o *Orchestrator) gone() error { return fmt.Errorf("rail %s: %w", o.opt.Rail, net.ErrClosed) }

// Close ends the Orchestrator and leaves the circuits as they are. What has not begun fails, what has is interrupted,
// and the next start completes it. All callbacks have been called when it returns, so it must not be called from one.
func (o *Orchestrator) Close() error {
	o.mu.Lock()
	if !o.closed {
		o.closed = true
		o.cancel(net.ErrClosed)
		for t, timer := range o.waiting {
			if timer.Stop() {
				delete(o.waiting, t)
				o.finishLocked(t, proto.Done{}, o.gone())
			}
		}
		for _, t := range append(o.ready, o.outstanding...) {
			if !t.finished && (!t.started || slices.Contains(o.ready, t)) {
				o.finishLocked(t, proto.Done{}, o.gone())
			}
		}
		o.ready, o.first = nil, nil
		o.wake.Broadcast()
		o.deliver.Broadcast()
	}
	o.mu.Unlock()
	o.ended.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.sealed {
		o.sealed = true
		for c := range o.alarms {
			close(c)
		}
		clear(o.alarms)
		o.journal.close()
	}
	return nil
}

// deliverLocked has f called from another goroutine, in the order in which it is told.
func (o *Orchestrator) deliverLocked(f func()) {
	if o.muted {
		go f() // after Close; there is nobody left to do it
		return
	}
	o.out = append(o.out, f)
	o.deliver.Signal()
}

// delivering calls back until all workers have ended.
func (o *Orchestrator) delivering() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.out) > 0 {
			fs := o.out
			o.out = nil
			o.mu.Unlock()
			for _, f := range fs {
				f()
			}
			o.mu.Lock()
		}
		if o.closed && len(o.outstanding) == 0 {
			o.muted = true
			return
		}
		o.deliver.Wait()
	}
}

// name says whose a duplex port is, for people.
func (o *Orchestrator) name(q int) string {
	if o.opt.Where != nil {
		if s := o.opt.Where(o.opt.Assignment[q].In); s != "" {
			return s
		}
	}
	per := o.opt.Job.PortsPerRank()
	return fmt.Sprintf("port %d of rank %d", q%per, q/per)
}

// names are the names of ports, the first few of many.
func (o *Orchestrator) names(ports []int) string {
	const most = 3
	var all []string
	for _, q := range ports[:min(len(ports), most)] {
		all = append(all, o.name(q))
	}
	if more := len(ports) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// conflict says that a circuit of somebody else is in the way.
func (o *Orchestrator) conflict(c ocs.CrossConnect) error {
	q, ours := o.ofIn.at(c.Ingress)
	if !ours {
		q, _ = o.ofOut.at(c.Egress)
	}
	return fmt.Errorf("%v of %s leads from or to %s and is not the job's: %w", c, o.opt.Switch, o.name(int(q)), ocs.ErrConflict)
}

// nanos is a time for a message; 0 for none.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return timeline.HostAxis().NS(t)
}
