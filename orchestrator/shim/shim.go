package shim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/opus"
)

// Mode says when a shim asks. All ranks of a job must have the same one but for Provision and Demand, which go
// together.
type Mode string

const (
	// ModeProvision profiles first; then it asks for the circuits of the next phase when one ends, and once more, by
	// demand, before the first operation runs. The zero Mode is ModeProvision.
	ModeProvision Mode = "provision"
	// ModeDemand profiles first; then it asks when a phase begins.
	ModeDemand Mode = "demand"
	// ModeAlways asks for every operation, and learns nothing.
	ModeAlways Mode = "always"
)

// Options of [Dial].
type Options struct {
	// Dial connects to the controller. It is called by [Dial], and when the connection was lost. TLS, if any, is its
	// matter.
	Dial      func(context.Context) (net.Conn, error)
	Job       opus.Job
	Rail      string // name
	Rank      int    // of the rail, from 0
	Host      string // for people
	LocalRank int    // of the host: which rail
	Mode      Mode   // "" is ModeProvision

	// ProfileSteps is how many steps are profiled, and after how many the tables are looked at again: 3 or more; 0 is
	// DefaultProfileSteps. All ranks of a job must have the same.
	ProfileSteps int
	// Timeout is how long an answer may take; 0 is what the controller says, which may be for ever. It is also how long an
	// operation waits for a lost connection to come back, which is DefaultTimeout if answers may take for ever.
	Timeout time.Duration
	// NoReconnect makes operations fail when the connection is lost, until somebody calls [Shim.Reconnect].
	NoReconnect bool
	// Log, if it is not nil, is told what happens, one event at a time. It must not block, nor call the Shim.
	Log func(Event)
}

// Defaults of [Options].
const (
	DefaultProfileSteps = 5
	DefaultTimeout      = 30 * time.Second
)

// EventKind is what an [Event] is about.
type EventKind string

// The events.
const (
	Connected    EventKind = "connected"    // all groups are complete
	Disconnected EventKind = "disconnected" // Detail says why
	Granted      EventKind = "granted"      // the controller answered; Result, Generation, WaitedNS
	Refused      EventKind = "refused"      // Code, Detail
	Provisioned  EventKind = "provisioned"  // a prediction was answered; Result, or Code and Detail
	Mispredicted EventKind = "mispredicted" // Op came where another was expected
	Learnt       EventKind = "learnt"       // a new table is in use
	Distrusted   EventKind = "distrusted"   // too many mispredictions: there are none until the next table
	FellBack     EventKind = "fell-back"    // the rail left its plan; Detail says why
	Resumed      EventKind = "resumed"      // and is back
)

// Event is something that happened at a shim.
type Event struct {
	Kind       EventKind
	At         time.Time
	Op         proto.OpRef // zero where there is none
	Result     proto.Result
	Code       proto.Code
	Generation uint64
	WaitedNS   int64
	Detail     string // one sentence for people
}

// Stats are counts since [Dial].
type Stats struct {
	Steps          int
	Operations     int    // granted, on the rail
	Asked          int    // demands
	NoOps          int    // of these, answered without a change
	Provisioned    int    // predictions sent
	Hits           int    // of these, the operation came
	Mispredictions int    // operations that came where another was expected
	Withdrawn      int    // predictions taken back before they were answered
	Reprofiles     int    // how often predictions were given up until the next table
	Reconnects     int    //
	WaitedNS       int64  // in PreOp, all in all
	Fallback       bool   // the rail is on its giant ring
	Dead           bool   // the rail is dead
	Reason         string // of Fallback and Dead
	Generation     uint64
}

// MaxMisses is how many mispredictions a shim makes before it makes none until the next table.
const MaxMisses = 3

// Shim is the connection of one rank to the controller of its job. Make one with [Dial]. It is safe for concurrent use.
type Shim struct {
	opt    Options
	groups map[string]opus.Group
	ctx    context.Context // of connections that the shim makes by itself
	cancel context.CancelFunc
	wg     sync.WaitGroup // readers, writers, and what makes connections

	mu      sync.Mutex    // guards everything below
	changed chan struct{} // closed and replaced when something has happened that is waited for
	waiting int           // how many wait
	closed  bool

	link     *link // the connection; nil if there is none. It is of use when ready
	lost     error // why there is none
	dialling bool
	epoch    uint64 // of the last connection
	run      uint64 // of the last connection; see proto.Welcome
	req      uint64 // the last request
	domains  map[string]trace.Net
	timeout  time.Duration // of connections
	patience time.Duration // with answers; 0 is for ever

	running []proto.OpRef // granted and not complete
	asking  bool          // somebody waits for the answer to a demand
	hold    hold
	last    proto.OpRef // the last that was complete
	guess   *request    // the prediction that was sent and neither came true nor turned out wrong

	table   *table // nil while profiling
	at      int    // in the table: the call that is expected
	misses  int    // since the table is in use
	next    map[key]uint64
	count   map[key]uint64 // of this step
	calls   []call         // of this step
	measure []measure
	history [][]call // of the steps before, the newest last
	began   time.Time
	longest time.Duration     // of a step
	round   *round            // of exchanging tables, under way
	sent    *proto.PhaseTable // the last

	stats Stats
}

// A hold is the circuits that the rank was granted.
type hold struct {
	active     bool
	ref        proto.OpRef // that was granted
	result     proto.Result
	generation uint64
	lanes      int
	ended      bool // the last operation of the phase was granted: nothing else may run on it
}

// A request is a topo-write.
type request struct {
	proto.TopoWrite
	ack  *proto.TopoAck // one of the two is the answer
	nack *proto.TopoNack
}

// A round is an exchange of tables.
type round struct {
	table  *table
	agreed *proto.Boundaries // the answer
}

// Dial connects a rank: it says hello and joins all groups of the rank, and returns when they are complete, which takes
// as long as the last rank takes to come, or ctx is done.
func Dial(ctx context.Context, opt Options) (*Shim, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	s := &Shim{
		opt:     opt,
		groups:  groupsOf(opt.Job, opt.Rank),
		changed: make(chan struct{}),
		domains: map[string]trace.Net{},
		timeout: cmp.Or(opt.Timeout, DefaultTimeout), patience: opt.Timeout,
		next:  map[key]uint64{},
		count: map[key]uint64{},
		began: time.Now(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.connect(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("rank %d of %s: %w", opt.Rank, opt.Rail, err)
	}
	return s, nil
}

func (o *Options) check() error {
	if o.Mode == "" {
		o.Mode = ModeProvision
	}
	if o.ProfileSteps == 0 {
		o.ProfileSteps = DefaultProfileSteps
	}
	if err := o.Job.Check(); err != nil {
		return err
	}
	switch {
	case o.Dial == nil:
		return errors.New("a shim cannot connect without Dial")
	case o.Rank < 0 || o.Rank >= o.Job.Ranks():
		return fmt.Errorf("job %s has no rank %d: want 0 to %d", o.Job.Name, o.Rank, o.Job.Ranks()-1)
	case !slices.Contains([]Mode{ModeProvision, ModeDemand, ModeAlways}, o.Mode):
		return fmt.Errorf("there is no mode %q: want %s, %s or %s", o.Mode, ModeProvision, ModeDemand, ModeAlways)
	case o.ProfileSteps < steady:
		return fmt.Errorf("profiling takes %d steps or more, not %d: the last %d must be the same",
			steady, o.ProfileSteps, steady)
	case o.Timeout < 0:
		return fmt.Errorf("timeout %v: want more than 0", o.Timeout)
	}
	return nil
}

// PreOp is called before an operation starts, and returns when it may. The error is a [*NotGranted]: the operation
// must not run, and may be tried again. An operation of another network than the rail returns at once.
//
// Within a phase the rank holds its circuits, and PreOp asks nobody. Otherwise it waits until all operations that were
// granted are complete, says so, and asks; the answer comes when all members of the group have asked and the circuits
// are there. If ctx ends before, or no answer comes in time, the shim gives the connection up, since nobody knows
// whether the controller counts on this rank.
func (s *Shim) PreOp(ctx context.Context, op Op) (Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.preOpLocked(ctx, op)
	if err != nil {
		n := &NotGranted{Rail: s.opt.Rail, Rank: s.opt.Rank, Op: op, Detail: err.Error(), Err: err}
		if refusal := (*proto.Refusal)(nil); errors.As(err, &refusal) {
			n.Code, n.Detail, n.Err = refusal.Code, refusal.Detail, ofCode(refusal.Code)
		}
		s.logLocked(Event{Kind: Refused, Op: op.OpRef, Code: n.Code, Detail: n.Detail})
		return Grant{}, n
	}
	return g, nil
}

func (s *Shim) preOpLocked(ctx context.Context, op Op) (Grant, error) {
	if s.closed {
		return Grant{}, ErrClosed
	}
	if s.netLocked(op) != trace.RailNet {
		return Grant{}, nil
	}
	if err := s.checkLocked(op); err != nil {
		return Grant{}, err
	}
	var began time.Time // of waiting
	for tries := 0; ; tries++ {
		if !s.freeLocked(op) {
			if began.IsZero() {
				began = time.Now()
			}
			if err := s.awaitLocked(ctx, op); err != nil {
				return Grant{}, err
			}
		}
		if s.coveredLocked(op) {
			s.enterLocked(op)
			return s.grantLocked(began, false), nil
		}
		if began.IsZero() {
			began = time.Now()
		}
		again, err := s.askLocked(ctx, op)
		if err != nil {
			return Grant{}, err
		}
		if !again {
			g := s.grantLocked(began, true)
			s.logLocked(Event{Kind: Granted, Op: op.OpRef, Result: g.Result, Generation: g.Generation, WaitedNS: g.WaitedNS})
			return g, nil
		}
		if tries == maxTries {
			return Grant{}, fmt.Errorf("%w %d times while it asked", ErrLost, tries+1)
		}
	}
}

// maxTries is how often an operation asks again when the connection was lost before there was an answer.
const maxTries = 10

// checkLocked returns why the rank has no such operation.
func (s *Shim) checkLocked(op Op) error {
	g, ok := s.groups[op.Group]
	switch {
	case !ok:
		return fmt.Errorf("%w: rank %d is in no group %.40q", ErrBadOp, s.opt.Rank, op.Group)
	case g.Axis != op.Axis:
		return fmt.Errorf("%w: group %s is of axis %d, and not of %d", ErrBadOp, op.Group, g.Axis, op.Axis)
	case g.Axis != opus.PP && op.Way != 0:
		return fmt.Errorf("%w: group %s has no ways, and it names way %d", ErrBadOp, op.Group, op.Way)
	case g.Axis == opus.PP:
		stage := s.opt.Job.Stage(s.opt.Rank)
		if op.Way < 0 || op.Way > s.opt.Job.Stages-2 || op.Way != stage && op.Way != stage-1 {
			return fmt.Errorf("%w: a rank of stage %d takes no part in way %d", ErrBadOp, stage, op.Way)
		}
	}
	if next := s.next[keyOf(op.OpRef)]; op.Op < next {
		return fmt.Errorf("%w: the next of %s is %d", ErrBadOp, keyOf(op.OpRef), next)
	}
	return nil
}

func (s *Shim) netLocked(op Op) trace.Net {
	if op.Net != "" {
		return op.Net
	}
	if d, ok := s.domains[op.Group]; ok {
		return d
	}
	return trace.RailNet
}

// coveredLocked reports whether the rank holds the circuits of the operation, so that nobody has to be asked. This is
// what G1 rests on: circuits that a rank holds are not touched.
func (s *Shim) coveredLocked(op Op) bool {
	if !s.hold.active || s.hold.ended || s.hold.ref.Group != op.Group || s.hold.ref.Way != op.Way {
		return false
	}
	start, _ := s.table.bounds(keyOf(op.OpRef), s.count[keyOf(op.OpRef)])
	return !start
}

// freeLocked reports whether an operation has nothing to wait for before it runs or asks. Without a connection none
// runs: the controller may have given up on the rank, and on what it holds.
func (s *Shim) freeLocked(op Op) bool {
	return s.readyLocked() && !s.asking && (len(s.running) == 0 || s.coveredLocked(op))
}

// awaitLocked waits until freeLocked.
func (s *Shim) awaitLocked(ctx context.Context, op Op) error {
	var until time.Time // for the connection
	for !s.freeLocked(op) {
		if s.closed {
			return ErrClosed
		}
		if s.readyLocked() {
			until = time.Time{}
		} else {
			if !s.dialling && (s.opt.NoReconnect || errors.Is(s.lost, ErrRefused)) {
				return s.lost
			}
			if until.IsZero() {
				until = time.Now().Add(s.timeout)
			}
			if s.link == nil {
				s.redialLocked()
			}
		}
		err := s.waitLocked(ctx, until)
		if errors.Is(err, errOver) {
			return fmt.Errorf("%w, and it did not come back in %v: %w", ErrLost, s.timeout, s.lost)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// askLocked sends a demand and waits for the answer. If the connection is lost meanwhile, the demand may be sent again
// on the next: who repeats one is answered as before.
func (s *Shim) askLocked(ctx context.Context, op Op) (again bool, err error) {
	s.asking = true
	defer func() {
		s.asking = false
		s.notifyLocked()
	}()
	l := s.link
	var last *proto.OpRef
	if s.hold.active {
		last = new(s.last)
		s.hold = hold{}
	}
	if g := s.guess; g != nil && g.OpRef != op.OpRef && !g.answered() {
		s.stats.Withdrawn++
		s.queueLocked(l, &proto.Withdraw{Req: g.Req}) // the demand follows
	}
	hit := s.guess != nil && s.guess.OpRef == op.OpRef
	s.guess = nil
	r := s.requestLocked(l, op.OpRef, proto.Demand, last)
	s.stats.Asked++
	patience := s.patience
	until := after(patience)
	for !r.answered() && l.err == nil {
		err := s.waitLocked(ctx, until)
		if err == nil || r.answered() || l.err != nil {
			continue
		}
		if errors.Is(err, errOver) {
			err = fmt.Errorf("%w: %v have passed", ErrTimeout, patience)
		}
		s.failLocked(l, err)
		return false, err
	}
	switch {
	case r.nack != nil && r.nack.Code == proto.Stale:
		s.failLocked(l, fmt.Errorf("%w: %s", ErrStale, r.nack.Detail))
	case r.nack != nil:
		return false, &proto.Refusal{Code: r.nack.Code, Detail: r.nack.Detail}
	case r.ack != nil:
		if r.ack.Result == proto.NoOp {
			s.stats.NoOps++
		}
		if hit {
			s.stats.Hits++
		}
		s.hold = hold{active: true, ref: op.OpRef, result: r.ack.Result, generation: r.ack.Generation, lanes: r.ack.Lanes}
		s.stats.Generation = max(s.stats.Generation, r.ack.Generation)
		s.enterLocked(op)
		return false, nil
	}
	if s.closed {
		return false, ErrClosed
	}
	if s.opt.NoReconnect || !errors.Is(l.err, ErrLost) && !errors.Is(l.err, ErrStale) {
		return false, l.err
	}
	return true, nil
}

// enterLocked notes an operation that was granted.
func (s *Shim) enterLocked(op Op) {
	k := keyOf(op.OpRef)
	c := call{key: k, axis: op.Axis, n: s.count[k], skip: op.Op - s.next[k]}
	s.stats.Operations++
	s.running = append(s.running, op.OpRef)
	s.next[k] = op.Op + 1
	s.count[k]++
	if _, end := s.table.bounds(k, c.n); end {
		s.hold.ended = true
	}
	if s.opt.Mode == ModeAlways {
		return
	}
	s.calls = append(s.calls, c)
	s.measure = append(s.measure, measure{ref: op.OpRef, bytes: op.Bytes, issued: time.Now()})
	if s.table == nil || len(s.table.calls) == 0 {
		return
	}
	if s.at < len(s.table.calls) && s.table.calls[s.at] == c {
		s.at++
		return
	}
	s.missLocked(op.OpRef)
	if at, ok := s.table.find(k, c.n); ok {
		s.at = at + 1
	}
}

// missLocked notes that the step is not as expected.
func (s *Shim) missLocked(ref proto.OpRef) {
	s.stats.Mispredictions++
	s.misses++
	s.logLocked(Event{Kind: Mispredicted, Op: ref})
	if s.misses == MaxMisses {
		s.stats.Reprofiles++
		s.logLocked(Event{Kind: Distrusted, Op: ref, Detail: fmt.Sprintf("%d operations came unexpected; there are no predictions"+
			" until the ranks have exchanged their tables again", s.misses)})
	}
}

func (s *Shim) grantLocked(began time.Time, asked bool) Grant {
	g := Grant{Result: s.hold.result, Generation: s.hold.generation, Lanes: s.hold.lanes, Asked: asked}
	if !began.IsZero() {
		g.WaitedNS = int64(time.Since(began))
		s.stats.WaitedNS += g.WaitedNS
	}
	return g
}

// PostOp is called when an operation is complete, from any goroutine. It does not block: what it has to tell the
// controller (that the rank does not use its circuits any more, and which it is likely to use next) is sent by
// another. An operation that PreOp has not granted is an error.
func (s *Shim) PostOp(op Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.running, op.OpRef)
	if i < 0 {
		if s.netLocked(op) != trace.RailNet {
			return nil
		}
		return fmt.Errorf("rank %d of %s: %w: %s is complete, and was not running",
			s.opt.Rank, s.opt.Rail, ErrBadOp, name(op.OpRef))
	}
	s.running = slices.Delete(s.running, i, i+1)
	s.last = op.OpRef
	for i := len(s.measure) - 1; i >= 0; i-- {
		if s.measure[i].ref == op.OpRef {
			s.measure[i].done = time.Now()
			break
		}
	}
	if len(s.running) == 0 {
		if s.hold.active && s.hold.ended {
			s.releaseLocked()
		}
		s.notifyLocked()
	}
	return nil
}

// releaseLocked tells the controller that the rank uses no circuits any more; if it knows which it is going to use,
// with that.
//
// A prediction is sent even when the next operation is of the same group, and on circuits that are there. Its peers
// may have gone elsewhere in between, and wait for all members, this one among them, before the circuits come back.
func (s *Shim) releaseLocked() {
	s.hold = hold{}
	l := s.link
	if l == nil || l.welcome == nil {
		return // the next hello says what is held
	}
	t := s.table
	if s.opt.Mode != ModeProvision || t == nil || len(t.calls) == 0 || s.misses >= MaxMisses || !l.ready {
		s.sendLocked(l, &proto.Release{Epoch: l.welcome.Epoch, OpRef: s.last})
		return
	}
	c := t.calls[s.at%len(t.calls)]
	ref := proto.OpRef{Group: c.group, Op: s.next[c.key] + c.skip, Way: c.way}
	s.guess = s.requestLocked(l, ref, proto.Provision, new(s.last))
	s.stats.Provisioned++
}

// Step ends a step of the training. All ranks of a job call it after the same operations, before they issue the next.
//
// After [Options.ProfileSteps] steps the ranks exchange their tables, and Step waits until all have; from then on they
// ask only when a phase begins. They exchange them again each time as many steps have passed, and then Step waits one
// step later, when everybody has been there: so a schedule that has changed is learnt. Until then what comes
// unexpected is asked for. An error means that the members of a group may not agree about who asks when: nothing more
// should be run.
func (s *Shim) Step(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.stats.Steps++
	s.longest = max(s.longest, time.Since(s.began))
	s.began = time.Now()
	if t := s.table; t != nil && len(t.calls) > 0 && s.at != len(t.calls) {
		s.missLocked(proto.OpRef{})
	}
	s.at = 0
	if s.hold.active && !s.hold.ended {
		// No phase goes on into the next step: between them a rank does things that others wait for.
		s.hold.ended = true
		if len(s.running) == 0 {
			s.releaseLocked()
		}
	}
	if s.opt.Mode == ModeAlways {
		clear(s.count)
		return nil
	}
	times := s.measure
	s.history = append(s.history, s.calls)
	s.history = s.history[max(0, len(s.history)-steady):]
	s.calls, s.measure = make([]call, 0, len(s.calls)), make([]measure, 0, len(times))
	clear(s.count)

	if s.round != nil {
		if err := s.agreeLocked(ctx); err != nil {
			return err
		}
	}
	if s.stats.Steps%s.opt.ProfileSteps != 0 {
		return nil
	}
	s.round = &round{table: newTable(s.history, times)}
	s.sent = s.round.table.message()
	s.sent.Step = uint64(s.stats.Steps)
	if s.readyLocked() {
		s.sendLocked(s.link, s.sent)
	}
	if s.stats.Steps == s.opt.ProfileSteps {
		return s.agreeLocked(ctx)
	}
	return nil
}

// agreeLocked waits for the answer to a table, and goes by it from now on. Ranks may be a step apart, so that is how
// much longer than other answers it may take.
func (s *Shim) agreeLocked(ctx context.Context) error {
	r := s.round
	patience := s.patience
	if patience > 0 {
		patience += 2 * s.longest
	}
	until := after(patience)
	for r.agreed == nil {
		if s.closed {
			return ErrClosed
		}
		if !s.readyLocked() && s.opt.NoReconnect {
			return fmt.Errorf("rank %d of %s: %w", s.opt.Rank, s.opt.Rail, s.lost)
		}
		if s.link == nil && !s.dialling && errors.Is(s.lost, ErrRefused) {
			return fmt.Errorf("rank %d of %s: %w", s.opt.Rank, s.opt.Rail, s.lost)
		}
		if s.link == nil {
			s.redialLocked()
		}
		if err := s.waitLocked(ctx, until); err != nil && r.agreed == nil {
			if errors.Is(err, errOver) {
				err = fmt.Errorf("%w to the table of its phases: not all ranks have sent theirs in %v", ErrTimeout, patience)
			}
			return fmt.Errorf("rank %d of %s: %w", s.opt.Rank, s.opt.Rail, err)
		}
	}
	s.round = nil
	r.table.agree(r.agreed)
	s.table, s.at, s.misses = r.table, 0, 0
	rows := r.table.rows()
	s.logLocked(Event{Kind: Learnt, Detail: fmt.Sprintf("%d phases of %d operations", len(rows), len(r.table.calls))})
	return nil
}

// Rows returns the phases of a step as the shim knows them now; none while it is profiling or steps differ.
func (s *Shim) Rows() []Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.rows()
}

// Stats returns the counts.
func (s *Shim) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

func (s *Shim) readyLocked() bool { return s.link != nil && s.link.ready }

func (r *request) answered() bool { return r.ack != nil || r.nack != nil }

// requestLocked sends a topo-write.
func (s *Shim) requestLocked(l *link, ref proto.OpRef, mode proto.Mode, last *proto.OpRef) *request {
	s.req++
	r := &request{TopoWrite: proto.TopoWrite{Req: s.req, Epoch: l.welcome.Epoch, OpRef: ref, Mode: mode, Last: last,
		IssueNS: timeline.HostAxis().NS(time.Now())}}
	l.pending[r.Req] = r
	s.sendLocked(l, &r.TopoWrite)
	return r
}

var errOver = errors.New("waited long enough")

// after returns when something will have been waited for long enough: never with 0.
func after(patience time.Duration) time.Time {
	if patience == 0 {
		return time.Time{}
	}
	return time.Now().Add(patience)
}

// waitLocked waits until something has happened, ctx is done, or until, if it is not zero, has come: errOver.
func (s *Shim) waitLocked(ctx context.Context, until time.Time) error {
	changed := s.changed
	s.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting--
	}()
	var over <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		over = t.C
	}
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
		return errOver
	}
}

func (s *Shim) notifyLocked() {
	if s.waiting > 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *Shim) logLocked(e Event) {
	if s.opt.Log != nil {
		e.At = time.Now()
		s.opt.Log(e)
	}
}
