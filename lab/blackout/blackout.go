package blackout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

var (
	// ErrNone: no panic is in force.
	ErrNone = errors.New("no panic is in force")
	// ErrNothing: a panic found no light of the lab to take, and so is not in force.
	ErrNothing = errors.New("no light was taken, and no panic is in force")
)

// NoReason is the reason of a panic that was called without one.
const NoReason = "no reason given"

// lockWait is how long a lift waits for a change of another process that is in progress.
const lockWait = 10 * time.Second

// Options are what a Blackout works with.
type Options struct {
	File *lab.File
	// Device names a switch as the history does, without opening it.
	Device func(name string) (string, error)
	// Open opens a session of its own with a switch, past the guard of the lab, as
	// [lab.Lab.Emergency] does. It is called for several switches at once. The session is closed
	// after use.
	Open func(ctx context.Context, name string) (sw ocs.Switch, device string, err error)
	// History may be nil for a panic, which then is not recorded there.
	History *history.Log
	// StateDir may be "" for a panic, which then cannot be lifted by its record.
	StateDir string
	Command  string // the command line, for the history

	// Last returns what a switch held when it last answered. It may be nil.
	Last func(name string) (Held, bool)
	// Patience is how long a switch may take to say what it holds before Last is used; 0 is
	// as long as it takes.
	Patience time.Duration
	// Lock takes the lock under which changes are made to a switch, when no change of another
	// process is in progress any more. A panic does not wait for it before it darkens. It may be nil.
	Lock func(ctx context.Context, name string) (unlock func(), err error)
}

// Blackout darkens a lab and lights it again. It is safe for concurrent use.
type Blackout struct{ opt Options }

// New returns a Blackout.
func New(opt Options) *Blackout { return &Blackout{opt} }

// Result is what was done to one switch.
type Result struct {
	Step   // what was to be done
	State  panics.State
	Report ocs.Report // of the change of circuits
	ID     int        // of that in the history, 0 if it is not there
	Err    error      // why it failed, nil otherwise
	// Unrecorded says why lifting the panic would not give back all of what was taken here; nil when it would.
	Unrecorded error
	panic      int // number of the panic, if the record says that it is in force here
}

// ByHand are the commands, without the name of the program, that give back what was taken where the record cannot; none
// where lifting the panic gives back all. Where nothing is on record, they use another state directory.
func ByHand(results []Result) (commands [][]string) {
	var lift, rest [][]string
	var numbers []int
	for _, r := range results {
		if r.panic != 0 && !slices.Contains(numbers, r.panic) { // in force, it would refuse the rest
			numbers = append(numbers, r.panic)
			lift = append(lift, []string{"panic", "--lift", "--id", strconv.Itoa(r.panic)})
		}
		if r.Unrecorded == nil {
			continue
		}
		if len(r.Close) > 0 {
			rest = append(rest, []string{"shutters", r.Switch, "open", ocs.FormatPorts(r.Close)})
		}
		if r.Change.Remove.Len() > 0 {
			rest = append(rest, []string{"connect", r.Switch, r.Change.Remove.String()})
		}
	}
	if len(rest) > 0 && len(lift) == 0 { // nothing could be written: where that is so, no circuit is connected either
		for i := range rest {
			rest[i] = append(rest[i], "--state-dir", filepath.Join(os.TempDir(), "ocslab-by-hand"))
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return append(lift, rest...)
}

// names are the switches asked for, or all of the lab, in order of names.
func (b *Blackout) names(names []string) ([]string, error) {
	if len(names) == 0 {
		for _, s := range b.opt.File.Switches {
			names = append(names, s.Name)
		}
	}
	for _, n := range names {
		if _, ok := b.opt.File.Switch(n); !ok {
			return nil, fmt.Errorf("the switch %.60q %w", n, lab.ErrUnknown)
		}
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// each calls do for all names at once and returns what it returned, in their order.
func each[T any](names []string, do func(name string) T) []T {
	out := make([]T, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { out[i] = do(name) })
	}
	all.Wait()
	return out
}

// seen is what a switch has said of itself.
type seen struct {
	sw       ocs.Switch // nil if it could not be opened
	geometry ocs.Geometry
	held     Held
	err      error
}

// close ends the session.
func (s seen) close() {
	if s.sw != nil {
		_ = s.sw.Close()
	}
}

// look opens a switch and asks what it holds, and the shutters of ports.
func (b *Blackout) look(ctx context.Context, name string, ports []ocs.Port) (s seen) {
	if s.sw, _, s.err = b.opt.Open(ctx, name); s.err != nil {
		s.sw = nil
		return s
	}
	id, err := s.sw.Identify(ctx)
	if err != nil {
		s.err = err
		return s
	}
	s.geometry = id.Geometry
	s.held, s.err = held(ctx, s.sw, within(id.Geometry, ports))
	return s
}

// held asks a switch what it holds, and the shutters of ports.
func held(ctx context.Context, sw ocs.Switch, ports []ocs.Port) (h Held, err error) {
	if h.Map, err = sw.CrossConnects(ctx); err == nil {
		h.Shut, err = shut(ctx, sw, ports)
	}
	return h, err
}

// within are those of ports that a device has.
func within(g ocs.Geometry, ports []ocs.Port) []ocs.Port {
	return slices.DeleteFunc(slices.Clone(ports), func(p ocs.Port) bool { return !g.Has(p) })
}

// shut reads the shutters of ports. A device without has none of them.
func shut(ctx context.Context, sw ocs.Switch, ports []ocs.Port) (map[ocs.Port]bool, error) {
	s, ok := ocs.As[ocs.Shutter](sw)
	if !ok || len(ports) == 0 {
		return nil, nil
	}
	closed, err := s.Shutters(ctx, ports...)
	if errors.Is(err, ocs.ErrNotSupported) {
		return nil, nil
	}
	return closed, err
}

// briefly looks for as long as Patience says. A switch that takes longer keeps a goroutine
// until it has noticed that nobody waits any more.
func (b *Blackout) briefly(ctx context.Context, name string, ports []ocs.Port) seen {
	if b.opt.Patience <= 0 {
		return b.look(ctx, name, ports)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.opt.Patience,
		fmt.Errorf("%s did not answer within %v: %w", name, b.opt.Patience, context.DeadlineExceeded))
	answer := make(chan seen, 1)
	go func() {
		defer cancel()
		answer <- b.look(ctx, name, ports)
	}()
	select {
	case s := <-answer:
		return s
	case <-ctx.Done():
	}
	select {
	case s := <-answer: // it was about to say why not
		return s
	default:
		go func() { (<-answer).close() }()
		return seen{err: context.Cause(ctx)}
	}
}

// Plan returns what a panic comes to now, by switch: those named, or all of the lab. Nothing
// is sent that changes anything. A switch that does not answer is planned on what it said
// last; one that never has has only an Err.
func (b *Blackout) Plan(ctx context.Context, names ...string) ([]Step, error) {
	names, err := b.names(names)
	if err != nil {
		return nil, err
	}
	return each(names, func(name string) Step {
		s, now := b.plan(ctx, name, b.briefly)
		now.close()
		return s
	}), nil
}

type looker func(ctx context.Context, name string, ports []ocs.Port) seen

// last returns what a switch held when it last answered.
func (b *Blackout) last(name string) (Held, bool) {
	if b.opt.Last == nil {
		return Held{}, false
	}
	return b.opt.Last(name)
}

// plan looks at a switch and plans a panic on it.
func (b *Blackout) plan(ctx context.Context, name string, look looker) (Step, seen) {
	own := b.opt.File.OwnPorts(name)
	device, err := b.opt.Device(name)
	if err != nil || len(own) == 0 {
		s := darken(name, own, nil, ocs.Geometry{}, Held{})
		s.Device, s.Err = device, err
		return s, seen{err: err}
	}
	now := look(ctx, name, own)
	have, stale := now.held, false
	if now.err != nil {
		have, stale = b.last(name)
	}
	if now.err != nil && !stale {
		return Step{Switch: name, Device: device, Err: now.err, Note: "it does not answer, and what it holds is not known"}, now
	}
	s := darken(name, own, b.opt.File.ProtectedPorts(name), now.geometry, have)
	s.Device, s.Stale, s.Err = device, stale, now.err
	return s, now
}

// sorted are the ports of all lists, each once.
func sorted(lists ...[]ocs.Port) []ocs.Port {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// setShutters closes or opens shutters, and reads them back.
func setShutters(ctx context.Context, sw ocs.Switch, closed bool, ports []ocs.Port) error {
	s, ok := ocs.As[ocs.Shutter](sw)
	if !ok {
		return fmt.Errorf("shutters: %w", ocs.ErrNotSupported)
	}
	sent := s.SetShutters(ctx, closed, ports...)
	now, err := s.Shutters(ctx, ports...)
	if err != nil {
		return cmp.Or(sent, fmt.Errorf("the shutters were set but could not be read back: %w", err))
	}
	var wrong []ocs.Port
	for _, p := range ports {
		if now[p] != closed {
			wrong = append(wrong, p)
		}
	}
	switch {
	case len(wrong) == 0:
		return nil // it is as wished, whatever was answered
	case sent != nil:
		return sent
	case closed:
		return fmt.Errorf("%w: the shutters of %s are open", ocs.ErrVerify, ocs.FormatPorts(wrong))
	}
	return fmt.Errorf("%w: the shutters of %s are closed", ocs.ErrVerify, ocs.FormatPorts(wrong))
}

// InForce returns the panics of this lab that are in force, oldest first. With an error, which
// says what could not be read, it returns those that could.
func (b *Blackout) InForce() ([]panics.Call, error) {
	calls, err := panics.Read(b.opt.StateDir)
	return slices.DeleteFunc(calls, func(c panics.Call) bool { return !c.Lifted.IsZero() || !b.Ours(c) }), err
}

// Ours reports whether a panic concerns a switch of this lab.
func (b *Blackout) Ours(c panics.Call) bool {
	for _, s := range b.opt.File.Switches {
		device, err := b.opt.Device(s.Name)
		if err == nil && slices.ContainsFunc(c.Dark, func(d panics.Dark) bool { return d.Device == device }) {
			return true
		}
	}
	return false
}

// lifting are the panics in force of some numbers, or all, the newest first. unread says what
// of the record cannot be read; then there may be more.
func (b *Blackout) lifting(numbers []int) (calls []panics.Call, unread, err error) {
	calls, unread = b.InForce()
	if len(numbers) > 0 {
		calls = slices.DeleteFunc(calls, func(c panics.Call) bool { return !slices.Contains(numbers, c.N) })
	}
	if unread != nil {
		unread = fmt.Errorf("what it may hold was not lifted: %w; \"ocslab panic --status\" reads the switches", unread)
	}
	switch {
	case len(calls) == 0 && unread != nil:
		return nil, nil, unread
	case len(calls) == 0:
		return nil, nil, ErrNone
	}
	slices.Reverse(calls)
	return calls, unread, nil
}

// darkening is what one panic has done to one switch.
type darkening struct {
	panics.Dark
	call panics.Call
}

// darkOn returns what panics have darkened on a switch.
func darkOn(calls []panics.Call, device string) (dark []darkening) {
	for _, c := range calls {
		if d, ok := c.On(device); ok {
			dark = append(dark, darkening{d, c})
		}
	}
	return dark
}

// closedBy are all ports whose shutters were closed.
func closedBy(dark []darkening) (ports []ocs.Port) {
	for _, d := range dark {
		ports = append(ports, d.Closed...)
	}
	return sorted(ports)
}

// without returns what panics have darkened on a switch, less the shutters that others, which
// stay in force, want closed.
func (b *Blackout) without(calls []panics.Call, device string) []darkening {
	dark := darkOn(calls, device)
	all, _ := b.InForce()
	stay := closedBy(darkOn(slices.DeleteFunc(all, func(c panics.Call) bool {
		return slices.ContainsFunc(calls, func(x panics.Call) bool { return x.N == c.N })
	}), device))
	for i := range dark {
		dark[i].Closed = slices.DeleteFunc(slices.Clone(dark[i].Closed), func(p ocs.Port) bool { return slices.Contains(stay, p) })
	}
	return dark
}

// affected are the switches of the lab that panics have darkened, in order of names.
func (b *Blackout) affected(calls []panics.Call) (names []string, devices map[string]string) {
	devices = map[string]string{}
	all, _ := b.names(nil)
	for _, name := range all {
		if device, err := b.opt.Device(name); err == nil && len(darkOn(calls, device)) > 0 {
			names, devices[name] = append(names, name), device
		}
	}
	return names, devices
}

// PlanLift returns what lifting panics comes to now, those of the numbers given or all that
// are in force. The error matches [ErrNone] when there are none.
func (b *Blackout) PlanLift(ctx context.Context, numbers ...int) ([]Step, error) {
	calls, unread, err := b.lifting(numbers)
	if err != nil {
		return nil, err
	}
	names, devices := b.affected(calls)
	return each(names, func(name string) Step {
		s, now := b.planLift(ctx, name, devices[name], b.without(calls, devices[name]), b.briefly)
		now.close()
		return s
	}), unread
}

// took is how many of the darkenings took any light.
func took(dark []darkening) (n int) {
	for _, d := range dark {
		if len(d.Closed) > 0 || d.Removed.Len() > 0 {
			n++
		}
	}
	return n
}

func (b *Blackout) planLift(ctx context.Context, name, device string, dark []darkening, look looker) (Step, seen) {
	if took(dark) == 0 {
		// It may be one that was not reached, and is not now; there is nothing to ask it for.
		return Step{Switch: name, Device: device, Note: noteNothing}, seen{}
	}
	now := look(ctx, name, closedBy(dark))
	have, stale := now.held, false
	if now.err != nil {
		have, stale = b.last(name)
	}
	s := Step{Switch: name}
	if now.err == nil || stale {
		s = relight(name, dark, now.geometry, have)
	}
	s.Device, s.Stale, s.Err = device, stale, now.err
	return s, now
}

// Lift ends panics, those of the numbers given or all that are in force: it opens exactly
// the shutters that they have closed, and puts back the circuits that they have removed as
// far as their ports are free. What could not be put back is in Left, and forgotten. A switch
// that fails stays dark, and in force. Where the record cannot be read in whole, that is an
// error, and what can be read is lifted.
func (b *Blackout) Lift(ctx context.Context, numbers ...int) ([]Result, error) {
	calls, unread, err := b.lifting(numbers)
	if err != nil {
		return nil, err
	}
	names, devices := b.affected(calls)
	results := each(names, func(name string) Result { return b.relight(ctx, calls, name, devices[name]) })
	return results, ocs.Join(failed(results), unread)
}

// lock takes the lock of a switch, waiting for at most wait.
func (b *Blackout) lock(ctx context.Context, name string, wait time.Duration) (unlock func(), err error) {
	if b.opt.Lock == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	unlock, err = b.opt.Lock(ctx, name)
	if err != nil {
		return func() {}, err
	}
	return unlock, nil
}

// relight gives one switch its light back.
func (b *Blackout) relight(ctx context.Context, calls []panics.Call, name, device string) Result {
	dark := b.without(calls, device)
	unlock, err := func() {}, error(nil)
	if took(dark) > 0 {
		unlock, err = b.lock(ctx, name, lockWait)
	}
	if err != nil {
		return Result{Step: Step{Switch: name, Device: device}, State: panics.IsFailed, Err: about(name, "give the light back", err)}
	}
	defer unlock()
	step, now := b.planLift(ctx, name, device, dark, b.look)
	defer now.close()
	r := Result{Step: step, State: panics.IsLifted}
	err = step.Err
	if err == nil && len(step.Open) > 0 {
		err = setShutters(ctx, now.sw, false, step.Open)
	}
	r.Change, r.Left = ocs.Change{}, ocs.Map{}
	var left []ocs.CrossConnect
	for _, d := range dark {
		if err != nil {
			break
		}
		var rest ocs.Map
		rest, err = b.putBack(ctx, now, d, &r)
		left = append(left, rest.Slice()...)
	}
	if err == nil {
		err = b.lifted(ctx, calls, device)
	}
	if err != nil {
		r.State, r.Err = panics.IsFailed, about(name, "give the light back", err)
	}
	if r.Left = mapOf(left); len(left) > 0 {
		r.Note = formatCircuits(left) + " " + noteTaken
	}
	return r
}

// putBack brings back the circuits that one panic has removed, and returns those it could
// not. It is an undo of that change, for the history.
func (b *Blackout) putBack(ctx context.Context, now seen, d darkening, r *Result) (left ocs.Map, err error) {
	if d.Removed.Len() == 0 {
		return left, nil
	}
	if b.opt.History == nil {
		return left, errors.New("there is no history to record that in")
	}
	undo, err := b.undoOf(d)
	if err != nil {
		return left, err
	}
	entry := history.Entry{Switch: r.Switch, Device: d.Device, Command: b.opt.Command, UndoOf: undo}
	rec := b.opt.History.Wrap(now.sw, entry)
	report, err := ocs.Execute(ctx, rec, func(have ocs.Map) (c ocs.Change, _ error) {
		c.Add, left = putBack(have, d.Removed, now.geometry)
		return c, nil
	})
	err = ocs.Join(err, rec.Confirm(report, err))
	if err == nil && report.Change.Empty() && undo != 0 {
		// Nothing is left to be taken back: that counts, too.
		var id int
		if id, err = b.opt.History.Begin(entry); err == nil {
			err = b.opt.History.End(id, history.Done, history.Result{})
		}
	}
	if rec.ID() != 0 {
		r.ID, r.Report = rec.ID(), report
		r.Change.Add, _ = r.Change.Add.Plus(report.Change.Add)
	}
	return left, err
}

// undoOf returns the change that removed the circuits, 0 if there is none or it was taken
// back already.
func (b *Blackout) undoOf(d darkening) (int, error) {
	entries, _, err := b.opt.History.Entries()
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if e.Device == d.Device && d.call.Made(e) && e.UndoneBy == 0 && (d.Change == 0 || d.Change == e.ID) {
			return e.ID, nil
		}
	}
	return 0, nil
}

// lifted writes down that a device has its light back.
func (b *Blackout) lifted(ctx context.Context, calls []panics.Call, device string) error {
	return panics.Edit(context.WithoutCancel(ctx), b.opt.StateDir, func(c *panics.Content) error {
		for _, x := range calls {
			call := c.Call(x.N)
			if call == nil {
				return cmp.Or(c.Unread, fmt.Errorf("panic %d is not on record any more", x.N))
			}
			rest := 0
			for i := range call.Dark {
				if d := &call.Dark[i]; d.Device == device {
					d.Lifted = true
				} else if !d.Lifted {
					rest++
				}
			}
			if rest == 0 {
				call.Lifted = time.Now()
			}
		}
		return nil
	})
}

// about puts the name of the switch before errors that do not have it, as errors of the
// device.
func about(name, op string, err error) error {
	var of *ocs.OpError
	if err == nil || errors.As(err, &of) {
		return err
	}
	return &ocs.OpError{Op: op, Device: name, Err: err}
}

// failed is the error of all results, nil if none has one.
func failed(results []Result) error {
	var errs []error
	for _, r := range results {
		errs = append(errs, r.Err)
	}
	return ocs.Join(errs...)
}
