package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// Granularity says what a request changes, and who must have asked for it.
type Granularity string

const (
	// Stage changes digits of the topology ID. A digit changes when every group of the axis in that stage (of a PP
	// transfer: every pair of the two stages) has asked or is past that operation, and nobody holds a circuit that goes.
	Stage Granularity = "stage"
	// Circuit changes the circuits of one group only, when that group has asked and nobody holds one that goes.
	Circuit Granularity = "circuit"
	// Published changes a digit as soon as one group has asked, whoever holds circuits: as the paper was published. It is
	// UNSAFE: it moves circuits under running operations of the other groups of the stage. It is there
	// to show that a checker notices, and must not be used for anything else.
	Published Granularity = "published"
)

// Granularities are all there are.
var Granularities = []Granularity{Stage, Circuit, Published}

// ErrOptions: the options of a controller make no sense. Test with errors.Is.
var ErrOptions = errors.New("options of a controller")

const (
	// DefaultBarrier is how long a demand waits unless Options say otherwise.
	DefaultBarrier = 30 * time.Second
	// DefaultDrain is how long holders are waited for unless Options say otherwise.
	DefaultDrain = 30 * time.Second
)

// Options are what a controller is made from. Job and Rails are required.
type Options struct {
	Job         opus.Job
	Policy      opus.Policy     // "" is opus.Pair
	Rails       map[string]Rail // by name; they stay the caller's, who closes them after the controller
	Granularity Granularity     // "" is Stage
	// Barrier is how long a demand may wait, for the other ranks of its group and for circuits, until all that wait for it are
	// refused with the names of those that are missing. 0 is DefaultBarrier, less than 0 is for ever.
	Barrier time.Duration
	// Drain is how long holders of circuits are waited for when a rail has to fall back; then it is marked dead
	// rather than moved under them. 0 is DefaultDrain.
	Drain time.Duration
	// ResumeAfter is how long after a fallback the plan is tried again, with the next operation that asks;
	// 0 is never.
	ResumeAfter time.Duration
	// NoUnion leaves boundaries as each rank sent them: to show why they are united.
	NoUnion bool
	Name    string                             // for people, at the orchestrators: "ocslab on gpu1"; "" is the job's
	Who     func(rail string, rank int) string // for people: "rank 3 of rail0 (gpu4)"; nil is without the host
	// Log is told everything that happens, in order for each rail, and by several goroutines at once for several. It must not
	// block, nor call the controller.
	Log func(Event)
}

// EventKind says what an Event is.
type EventKind string

// The kinds of events.
const (
	EventOpened   EventKind = "opened"   // the orchestrator has been taken over: Generation, ID, Shape
	EventHello    EventKind = "hello"    // Rank has come, or come back
	EventLost     EventKind = "lost"     // the connection of Rank is gone without bye
	EventBye      EventKind = "bye"      // Rank has left
	EventRefused  EventKind = "refused"  // a connection or message of Rank: Code, Detail
	EventJoined   EventKind = "joined"   // all members of Ref.Group have joined
	EventUnion    EventKind = "union"    // Rank was sent its boundaries
	EventWrite    EventKind = "write"    // Rank asks: Ref, Mode, Req
	EventReady    EventKind = "ready"    // the last that had to ask for a change or for an operation that changes nothing has asked: Ref
	EventCommand  EventKind = "command"  // a change was sent to the orchestrator: Req, ID or Join and Part
	EventDone     EventKind = "done"     // it was carried out: Req, Done
	EventFailed   EventKind = "failed"   // it was not: Req, Code, Detail
	EventAck      EventKind = "ack"      // to Rank: Ref, Mode, Result
	EventNack     EventKind = "nack"     // to Rank: Ref, Mode, Code, Detail
	EventRelease  EventKind = "release"  // Rank holds Ref no more
	EventFallback EventKind = "fallback" // the rail is on its giant ring: Detail
	EventDead     EventKind = "dead"     // the rail is marked dead: Detail
	EventResume   EventKind = "resume"   // the rail is back at its plan
	EventAlarm    EventKind = "alarm"    // of the orchestrator: Detail
)

// Event is something that has happened. Fields that do not belong to its kind are zero; Rank is -1 then.
type Event struct {
	AtNS       int64 // on the controller's clock, as all times that it sends
	Kind       EventKind
	Rail       string
	Rank       int
	Ref        proto.OpRef
	Mode       proto.Mode
	Req        uint64
	ID         string
	Join       [][2]int
	Part       []int
	Shape      proto.Shape
	Generation uint64
	Result     proto.Result
	Code       proto.Code
	Done       *proto.Done    // of EventDone; must not be changed
	Ack        *proto.TopoAck // of EventAck, but for Req; must not be changed
	Detail     string
}

// Status is how a controller is at one moment.
type Status struct {
	Job         opus.Job
	Policy      opus.Policy
	Granularity Granularity
	Rails       []RailStatus // by name
}

// RailStatus is how one rail is.
type RailStatus struct {
	Rail       string
	Shape      proto.Shape // "" until it has been opened
	Reason     string      // of Giant and Dead
	ID         string      // of Digits
	Epoch      uint64
	Generation uint64
	Ranks      int       // that are connected
	Missing    []int     // ranks that are not
	Pending    []Pending // operations that were asked for and are not granted, in order of group, way and op
	Holders    []Holder  // by rank
	InFlight   int       // changes that the orchestrator has not answered
	Counters   Counters
}

// Pending is an operation that somebody waits for.
type Pending struct {
	Ref     proto.OpRef
	Demands int   // ranks that are about to start it
	Asked   int   // ranks that demand or predict it
	Missing []int // ranks that neither demand nor predict it, or the circuits that it takes
	SinceNS int64 // the first asked
}

// Holder is a rank that may be using circuits.
type Holder struct {
	Rank int
	Ref  proto.OpRef
	Lost bool // its connection is gone
}

// Counters count what has happened on a rail since it was opened.
type Counters struct {
	Writes, Acks, NoOps, Nacks, Duplicates, Withdrawn uint64 // messages from and to ranks; NoOps are among Acks
	Changes                                           uint64 // sent to the orchestrator
	Failures                                          uint64 // of changes
	Fallbacks, Resumes, Alarms                        uint64
}

// ErrRefused: a shim was sent away, as the reason says. Test with errors.Is.
var ErrRefused = errors.New("the controller does not serve this connection")

// Controller is the controller of one job. Its methods are safe for concurrent use.
type Controller struct {
	opt     Options
	names   []string
	rails   map[string]*rail
	telling sync.Mutex // one count of the living at a time
}

// New makes a controller; it does nothing until Run or Serve. The error matches ErrOptions.
func New(opt Options) (*Controller, error) {
	if err := opt.Job.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	opt.Policy = cmp.Or(opt.Policy, opus.Pair)
	if _, err := opus.ParsePolicy(string(opt.Policy)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	opt.Granularity = cmp.Or(opt.Granularity, Stage)
	if !slices.Contains(Granularities, opt.Granularity) {
		return nil, fmt.Errorf("%w: granularity %.40q: want one of %v", ErrOptions, opt.Granularity, Granularities)
	}
	if len(opt.Rails) == 0 {
		return nil, fmt.Errorf("%w: job %s has no rails", ErrOptions, opt.Job.Name)
	}
	opt.Barrier = cmp.Or(opt.Barrier, DefaultBarrier)
	opt.Drain = cmp.Or(max(opt.Drain, 0), DefaultDrain)
	opt.Name = cmp.Or(opt.Name, opt.Job.Name)
	if opt.Who == nil {
		opt.Who = func(rail string, rank int) string { return fmt.Sprintf("rank %d of %s", rank, rail) }
	}
	c := &Controller{opt: opt, names: slices.Sorted(maps.Keys(opt.Rails)), rails: map[string]*rail{}}
	for _, name := range c.names {
		e, err := newEngine(name, opt)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
		c.rails[name] = &rail{c: c, name: name, to: opt.Rails[name], e: e, conns: make([]*conn, opt.Job.Ranks()), open: make(chan struct{})}
	}
	return c, nil
}

// Run opens the rails and keeps them until ctx is done, whose cause it then returns, or until one cannot be opened. Call it once,
// before or while connections are served.
func (c *Controller) Run(ctx context.Context) error {
	defer func() {
		for _, name := range c.names {
			c.rails[name].stop()
		}
	}()
	failed := make(chan error, len(c.names))
	for _, name := range c.names {
		r := c.rails[name]
		r.to.Open(proto.Open{Version: proto.Version, Rail: name, Controller: c.opt.Name, Job: c.opt.Job, Policy: c.opt.Policy},
			func(o proto.Opened, err error) {
				if err != nil {
					failed <- fmt.Errorf("rail %s could not be opened: %w", name, err)
					return
				}
				r.do(func(e *engine) { e.opened(o) })
				close(r.open)
				failed <- nil
			})
	}
	for range c.names {
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, name := range c.names {
		r := c.rails[name]
		wg.Go(func() {
			for {
				select {
				case a, ok := <-r.to.Alarms():
					if !ok {
						return
					}
					r.do(func(e *engine) { e.alarmed(a) })
				case <-ctx.Done():
					return
				}
			}
		})
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// Serve runs the controller and serves the shims that connect to l, until ctx is done or l fails; it closes l and
// returns when all connections have ended.
func (c *Controller) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	defer l.Close()
	wg.Go(func() { cancel(c.Run(ctx)) })
	for {
		nc, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			cancel(err)
			return err
		}
		wg.Go(func() { _ = c.ServeConn(ctx, nc) }) // the log has it
	}
}

// Status returns how the controller is now.
func (c *Controller) Status() Status {
	s := Status{Job: c.opt.Job, Policy: c.opt.Policy, Granularity: c.opt.Granularity}
	for _, name := range c.names {
		r := c.rails[name]
		r.mu.Lock()
		s.Rails = append(s.Rails, r.e.status())
		r.mu.Unlock()
	}
	return s
}

// others tells the other rails whether they may send the traffic of a dead one elsewhere.
func (c *Controller) others() {
	c.telling.Lock()
	defer c.telling.Unlock()
	live := 0
	for _, name := range c.names {
		if c.rails[name].live.Load() {
			live++
		}
	}
	for _, name := range c.names {
		r := c.rails[name]
		r.do(func(e *engine) {
			n := live
			if r.live.Load() {
				n--
			}
			e.otherRails(n > 0)
		})
	}
}
