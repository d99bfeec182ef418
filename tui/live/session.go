package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/drivers/drift"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

// Options are what a Session is opened with.
type Options struct {
	File     *lab.File
	Lab      lab.Options
	History  *history.Log
	StateDir string // where history, leases and panics are
	Runs     string // where runs are kept; "" is StateDir

	// ReadOnly makes every method that could change something return ErrReadOnly.
	ReadOnly bool

	Fabric lab.FabricOptions // how hosts are emulated when the lab is
	// Quicken sets the monitors to their shortest averaging while a change is measured, and
	// back. It is something that changes the device.
	Quicken bool
	// Traffic sends packets between NICs, to see when traffic comes back.
	Traffic bool

	// MapEvery and PowerEvery are how often switches are read; 0 is 2 s and 1 s.
	MapEvery, PowerEvery time.Duration

	Version, Revision string // of ocslab, for runs
}

// Lab is what the UI needs of a lab that is open: *Session has it, and a fake for tests.
//
// Preview, Apply and the methods for runs may take as long as a switch does, and are
// called on goroutines of their own. Apply returns when the change has been read back;
// what comes after, a Move tells.
type Lab interface {
	// State returns the newest State. It takes no time.
	State() *State
	// Changed is sent to when there is a newer State than the one returned last.
	Changed() <-chan struct{}

	Preview(ctx context.Context, w Wish) Preview
	Apply(ctx context.Context, p Preview) Outcome

	// LoadRun plans an experiment, which replaces the one that is loaded.
	LoadRun(ctx context.Context, path string) error
	// StartRun runs the experiment that is loaded. It returns when the run has begun. The
	// policy says what may happen to circuits that are in none of its configurations and in the
	// way: Safe, which "" is, refuses, with an error that matches [ocs.ErrConflict]; Update moves
	// them.
	StartRun(ctx context.Context, policy ocs.Policy) error
	// Resume goes on with a run that was stopped or killed.
	Resume(ctx context.Context, id string) error
	PauseRun() error // or lets it go on
	StopRun() error
	AbortRun() error
	// Past loads a run that is kept, with its analysis.
	Past(ctx context.Context, id string) (*Run, error)

	// Reload reads the lab file anew, after it was edited.
	Reload(ctx context.Context) error
	// SetReadOnly begins or ends read-only; a session that was opened read-only stays so.
	SetReadOnly(on bool) error
	Close() error
}

// DefaultPowerEvery is how often power monitors are read when nobody says.
const DefaultPowerEvery = time.Second

// closeTime is how long switches are waited for that do not let go of their sessions.
const closeTime = 5 * time.Second

// Session is a lab that is open. It is safe for concurrent use.
type Session struct {
	opt     Options
	ctx     context.Context // ends with the Session
	end     context.CancelCauseFunc
	all     sync.WaitGroup // goroutines that end with ctx
	changed chan struct{}  // holds one: there is a newer State
	wake    chan struct{}  // holds one: parts have changed
	state   atomic.Pointer[State]

	// turn holds a token while the lab is being lent, taken back, reloaded or closed.
	turn chan struct{}

	mu      sync.Mutex // guards what follows
	parts   parts
	version uint64
	bed     *bed // what is open; nil while a run has the switches, and after Close
	reading bool // read-only by SetReadOnly
	closed  bool
	closing []func() // called first by each Close
	moving  *moving  // the Move that is measured

	chunks chunks // what was traced and is not in the log yet

	exp experiments // the one that is loaded, and the run that is under way

	act acting // what was done here

	measuring sync.Mutex // held until the switches of a measured change have been read back
}

// Open returns a Session whose first State says that all switches are being opened, and
// opens them in the background: one that cannot be reached holds up nobody. The context
// bounds nothing but this call; Close ends the Session.
func Open(ctx context.Context, opt Options) (*Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if opt.File == nil {
		return nil, errors.New("there is no lab to open: name a lab file")
	}
	s := newSession(opt)
	s.resume(s.opt.File)
	return s, nil
}

// newSession returns a Session that has nothing open yet.
func newSession(opt Options) *Session {
	opt.Runs = cmp.Or(opt.Runs, opt.StateDir)
	if opt.Lab.Authority == nil && opt.StateDir != "" {
		opt.Lab.Authority = lab.Files(opt.StateDir)
	}
	if opt.MapEvery <= 0 {
		opt.MapEvery = drift.DefaultEvery
	}
	if opt.PowerEvery <= 0 {
		opt.PowerEvery = DefaultPowerEvery
	}
	s := &Session{
		opt: opt, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		chunks: newChunks(),
	}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	s.parts = newParts(opt.File, opt.Lab.Emulated, opt, time.Now())
	s.publishNow()
	s.all.Go(s.publish)
	s.all.Go(s.keepLog)
	s.all.Go(s.keepRecalling)
	s.all.Go(s.keepRuns)
	return s
}

// resume opens the lab anew.
func (s *Session) resume(f *lab.File) {
	b := s.newBed(f)
	s.mu.Lock()
	s.bed = b
	s.mu.Unlock()
	b.start()
}

// State returns the newest State.
func (s *Session) State() *State { return s.state.Load() }

// Changed is sent to when there is a newer State than the one returned last. It is never
// closed.
func (s *Session) Changed() <-chan struct{} { return s.changed }

// file is the lab file as it was read last.
func (s *Session) file() *lab.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts.file
}

// readOnly reports whether nothing may be changed.
func (s *Session) readOnly() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opt.ReadOnly || s.reading
}

// SetReadOnly begins or ends read-only; a Session that was opened read-only stays so, which
// is an error that matches ErrReadOnly.
func (s *Session) SetReadOnly(on bool) error {
	if s.opt.ReadOnly && !on {
		return fmt.Errorf("%w: the session was opened so (--read-only), and stays so", ErrReadOnly)
	}
	s.mu.Lock()
	s.reading = on
	s.mu.Unlock()
	s.update(func(*parts) {})
	return nil
}

// say adds a line to the log, now.
func (s *Session) say(e Entry) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	s.update(func(p *parts) { p.say(e) })
}

// touch has a switch read anew, now. Nothing happens while it is not open.
func (s *Session) touch(name string) {
	s.mu.Lock()
	b := s.bed
	s.mu.Unlock()
	if b != nil && b.readers[name] != nil {
		b.readers[name].touch()
	}
}

// errLent is why there is no session to be had while a run is under way.
var errLent = fmt.Errorf("%w: a run has the switches", ErrBusy)

// open returns the session that changes of a switch go through, with interlock, and read
// only when the Session is. Opening it is waited for as long as ctx allows. The error
// matches ErrBusy while a run has the switches. Nobody but the Session closes it.
func (s *Session) open(ctx context.Context, name string) (*lab.Opened, error) {
	s.mu.Lock()
	b, closed := s.bed, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case b == nil:
		return nil, errLent
	}
	r := b.readers[name]
	if r == nil {
		_, err := b.lab.Switch(ctx, name) // says which names there are
		return nil, err
	}
	return r.command(ctx)
}

var errClosed = errors.New("the session with the lab was closed")

// onClose has fn called by each Close before anything else ends: whoever has something under
// way ends it there. fn may take its time, and is called again meanwhile when somebody closes
// the Session once more, being in a hurry.
func (s *Session) onClose(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = append(s.closing, fn)
}

// take waits until nobody else lends, takes back, reloads or closes; give ends that.
func (s *Session) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Session) give() { <-s.turn }

// takeBed takes, and returns what is open, while nothing is being sent; release gives both back.
func (s *Session) takeBed(ctx context.Context) (b *bed, release func(), err error) {
	if err := s.take(ctx); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	b, closed := s.bed, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		err = errClosed
	case b == nil:
		err = errLent
	case !s.measuring.TryLock():
		err = fmt.Errorf("%w: a change is being sent", ErrBusy)
	}
	if err != nil {
		s.give()
		return nil, nil, err
	}
	return b, func() { s.measuring.Unlock(); s.give() }, nil
}

// lend ends all sessions with the switches and the watching of hosts, so that a run can
// have them; the switches are Lent then. What is open after an error is as with none: ask
// takeBack for it. A Move that is still measured ends with what has come back until then.
func (s *Session) lend(ctx context.Context) error {
	b, release, err := s.takeBed(ctx)
	if err != nil {
		return err
	}
	defer release()
	s.mu.Lock()
	s.bed = nil
	s.mu.Unlock()
	err = b.close()
	now := time.Now()
	s.update(func(p *parts) {
		p.opening = map[string]bool{}
		for _, x := range p.switches {
			x.Status, x.Since, x.Err, x.Tries, x.dirty = Lent, now, nil, 0, true
		}
	})
	return err
}

// takeBack opens everything again after lend. Nothing happens when it is open, or the
// Session was closed.
func (s *Session) takeBack() {
	if s.take(s.ctx) != nil {
		return
	}
	defer s.give()
	s.mu.Lock()
	f, idle := s.parts.file, s.bed == nil && !s.closed
	s.mu.Unlock()
	if !idle {
		return
	}
	now := time.Now()
	s.update(func(p *parts) {
		for _, x := range p.switches {
			x.Status, x.Since, x.dirty = Opening, now, true
			p.opening[x.Name] = true
		}
		if len(p.nics) > 0 {
			p.opening[openingHosts] = true
		}
	})
	s.resume(f)
}

// Reload reads the lab file anew and opens what it says in place of what is open. With an
// error, which matches ErrNothing when the lab is no file and ErrBusy while a run has the
// switches or a change is being sent, all is as it was.
func (s *Session) Reload(ctx context.Context) error {
	path := s.file().Path
	if path == "" {
		return fmt.Errorf("%w: the lab is built in, not a file", ErrNothing)
	}
	f, err := lab.Load(path)
	if err != nil {
		return err
	}
	b, release, err := s.takeBed(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := b.close(); err != nil {
		s.say(Entry{Kind: Event, Text: "while the lab was closed: " + err.Error(), Bad: true})
	}
	s.update(func(p *parts) { p.reload(newParts(f, s.opt.Lab.Emulated, s.opt, time.Now())) })
	s.resume(f)
	return nil
}

// reload puts another lab in place of the one that was open. What has happened stays: moves,
// the log, what can be undone.
func (p *parts) reload(next parts) {
	p.file, p.schemes, p.rung, p.opening, p.lacks = next.file, next.schemes, "", next.opening, nil
	p.switches, p.nics, p.byNIC, p.rewired = next.switches, next.nics, next.byNIC, true
	p.follow, p.recent = nil, marks{}
}

// Close ends everything: what is under way, the watching, the emulation, the sessions with
// the switches, and puts monitors back. A switch that hangs is not waited for longer than a
// few seconds; the error says so then.
func (s *Session) Close() error {
	s.mu.Lock()
	ending := s.closing
	s.mu.Unlock()
	for _, fn := range ending {
		fn()
	}
	if err := s.take(context.Background()); err != nil {
		return err
	}
	defer s.give()
	s.mu.Lock()
	b := s.bed
	s.bed, s.closed = nil, true
	s.mu.Unlock()
	var err error
	if b != nil {
		err = b.close()
	}
	s.end(errClosed)
	s.all.Wait()
	return err
}
