package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// Gate is the only way by which this program moves light: [Gate.Apply] for one switch, [Gate.ApplyAll] for several
// together. For each change it resolves the switch, waits for its turn at the device, reads, plans, records the change
// with its inverse, asks whether protection, a lease or a panic forbids it, sends it, reads back, and looks at the
// light. It is safe for concurrent use.
type Gate struct {
	lab     *Lab
	auth    Authority
	command string
	verify  Verify

	mu       sync.Mutex // guards what follows
	expected map[*Opened]expectation
	restored map[string]bool // devices whose abandoned settings were restored
}

// site is a device as the gate knows it.
type site struct {
	name, device string
	also         []string   // its URLs in the lab file, under which other programs may know it
	identity     string     // what all programs know it by; see [Authority.Lock]
	protected    []ocs.Port // by the lab file
	own          []ocs.Port // of the lab's NICs and cables; see [File.OwnPorts]
}

// lockTimeout is how long a change waits for another one of the same device.
const lockTimeout = 10 * time.Second

// Intent is one change of one switch.
type Intent struct {
	Switch string  // name in the lab, or URL; not used with On
	On     *Opened // the switch, if it is open

	// Plan says what to change on a device that holds have. If it is nil, Want is applied under Policy.
	Plan   func(have ocs.Map) (ocs.Change, error)
	Want   ocs.Map
	Policy ocs.Policy
	Ports  []ocs.Port // must exist on the device

	Command string // for the history; "" is that of the lab
	UndoOf  int    // the change of the history that it takes back
	Verify  Verify // "" is that of the lab
	// Restore gives light back that this program took: it goes ahead when the history cannot be written.
	Restore bool
	// Operation, if it is not nil, is what the change is part of.
	Operation *Operation
	// Wrap, if it is not nil, puts something around the switch for this change: a measurement.
	Wrap func(ocs.Switch) ocs.Switch
}

// Report is what became of an [Intent].
type Report struct {
	ocs.Report
	Switch, Device string
	ID             int     // in the history, 0 if nothing was recorded
	UndoOf         int     // the change that it was to take back, 0 for none
	Light          []Light // of the circuits that were added or asked for, in order of ingress
	// TookEffect is set when the device gave no clear answer, and reading it back showed that the change is there.
	TookEffect bool
	// PutBack is set when the change took effect and was taken back, since another one of [Gate.ApplyAll] failed.
	PutBack bool
}

// Gate returns the gate of the lab.
func (l *Lab) Gate() *Gate { return l.gate }

// Command is the command line that the history records.
func (l *Lab) Command() string { return l.opt.Command }

// Authority returns what the gate of the lab asks.
func (g *Gate) Authority() Authority { return g.auth }

// Gate returns the gate that the switch is behind.
func (o *Opened) Gate() *Gate { return o.gate }

// Around returns the same switch with something around it, which [ocs.As] can look through.
func (o *Opened) Around(wrap func(ocs.Switch) ocs.Switch) *Opened {
	return &Opened{Switch: wrap(o.Switch), Name: o.Name, Device: o.Device, Emulated: o.Emulated, gate: o.gate, at: o.at, url: o.url, again: o.again}
}

// Of returns a switch that is of no lab behind a gate of its own, which records nothing; one that is of a lab as it is.
func Of(name string, sw ocs.Switch) *Opened {
	if o, ok := sw.(*Opened); ok && o.gate != nil {
		return o
	}
	return New(nil, Options{}).Adopt(name, name, sw)
}

// Adopt returns a switch that was opened elsewhere behind the gate of the lab, under a name that the lab file may have.
func (l *Lab) Adopt(name, device string, sw ocs.Switch) *Opened {
	o := &Opened{Name: name, Device: device, gate: l.gate, at: l.siteOf(name, device, device)}
	o.Switch = l.gate.guarded(o.at, sw)
	return o
}

// siteOf returns what the gate is to know of a device.
func (l *Lab) siteOf(name, device, identity string) *site {
	at := &site{name: name, device: device, identity: identity}
	if l.File != nil {
		at.protected, at.own = l.File.ProtectedPorts(name), l.File.OwnPorts(name)
		if s, ok := l.File.Switch(name); ok && !l.opt.Emulated {
			at.also = append([]string{s.URL}, s.Also...)
		}
	}
	return at
}

// is reports whether a device that another program speaks of, perhaps with another lab file, is the one at at.
func (at *site) is(ctx context.Context, device string) bool {
	return device == at.device || drivers.SameAddress(ctx, device, at.device) ||
		slices.ContainsFunc(at.also, func(url string) bool { return drivers.SameAddress(ctx, device, url) })
}

// leases are those on a device that other programs hold, under whatever name they know it.
func (g *Gate) leases(ctx context.Context, at *site) ([]lease.Lease, error) {
	all, err := g.auth.Leases("")
	if err != nil || len(all) == 0 {
		return nil, err
	}
	held, err := g.auth.Leases(at.device)
	for _, l := range all {
		if at.is(ctx, l.Device) && !slices.ContainsFunc(held, func(x lease.Lease) bool { return x.Token == l.Token }) {
			held = append(held, l)
		}
	}
	return held, err
}

func newGate(l *Lab, opt Options) *Gate {
	auth := opt.Authority
	if auth == nil {
		auth = Files(opt.StateDir)
	}
	return &Gate{lab: l, auth: auth, command: opt.Command, verify: opt.Verify,
		expected: map[*Opened]expectation{}, restored: map[string]bool{}}
}

// open returns the switch of an intent.
func (g *Gate) open(ctx context.Context, i Intent) (*Opened, error) {
	if i.On != nil {
		return i.On, nil
	}
	return g.lab.Open(ctx, i.Switch)
}

// lock waits for the turn of a change of the switch.
func (g *Gate) lock(ctx context.Context, at *site) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockTimeout,
		fmt.Errorf("another change of %s has not ended within %v: %w", at.name, lockTimeout, context.DeadlineExceeded))
	defer cancel()
	unlock, err = g.auth.Lock(ctx, at.device, at.identity)
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", ocs.ErrConflict, err)
	}
	return unlock, err
}

// Lock waits until no change of the switch of that name is in progress, and keeps others out until unlock is called.
func (l *Lab) Lock(ctx context.Context, name string) (unlock func(), err error) {
	o, err := l.Switch(ctx, name)
	if err != nil {
		return nil, err
	}
	return l.gate.Lock(ctx, o)
}

// Lock is [Lab.Lock] for a switch that is open.
func (g *Gate) Lock(ctx context.Context, o *Opened) (unlock func(), err error) {
	return g.lock(ctx, o.at)
}

// preview returns the change that an intent comes to now. It sends nothing that changes anything.
func (i Intent) preview(ctx context.Context, o *Opened) (ocs.Report, error) {
	id, err := o.Identify(ctx)
	if err != nil {
		return ocs.Report{}, err
	}
	for _, p := range i.Ports {
		if !id.Geometry.Has(p) {
			return ocs.Report{}, &ocs.PortError{Port: p, Geometry: id.Geometry, Reason: "is not a port"}
		}
	}
	if i.Plan != nil {
		return ocs.PreviewExecute(ctx, o, i.Plan)
	}
	return ocs.Preview(ctx, o, i.Want, i.Policy)
}

// Preview returns what [Gate.Apply] would read and change now, and the error with which it would refuse.
func (g *Gate) Preview(ctx context.Context, i Intent) (Report, error) {
	o, err := g.open(ctx, i)
	if err != nil {
		return Report{Switch: i.Switch}, err
	}
	r := Report{Switch: o.Name, Device: o.Device}
	if r.Report, err = i.preview(ctx, o); err == nil {
		err = g.Permits(ctx, o, r.Before, r.Change)
	}
	return r, named(o.Name, err)
}

// MayApply returns the error with which [Gate.Apply] would refuse a change now, and records that it was refused. It is for
// what changes settings of a device before it moves circuits.
func (g *Gate) MayApply(ctx context.Context, i Intent) error {
	o, err := g.open(ctx, i)
	if err != nil {
		return err
	}
	i.On = o
	r, err := g.Preview(ctx, i)
	if err == nil || r.Change.Empty() {
		return err
	}
	e := g.entry(o, i)
	e.Change = r.Change
	ids, unrecorded := g.auth.BeginAll(ctx, []history.Entry{e})
	if unrecorded == nil {
		unrecorded = g.auth.End(ids[0], history.Failed, history.Result{Error: err.Error()})
	}
	return ocs.Join(err, unrecorded)
}

// Apply makes one change. Nothing is sent that is not recorded, planned on what the device holds then, and permitted.
//
// Errors match those of [ocs.Reconcile]; [ocs.ErrInterlock] and [lease.ErrLeased] for a port that is protected or
// leased, [panics.ErrInForce] where a panic keeps the light away, and [history.ErrUnrecorded], all before anything
// was sent; [ocs.ErrVerify] also for a circuit that is dark though light goes in. A change that was sent when a panic
// began is taken back, and is ErrInForce. The Report is filled as far as things went, also with an error.
func (g *Gate) Apply(ctx context.Context, i Intent) (Report, error) {
	o, err := g.open(ctx, i)
	if err != nil {
		return Report{Switch: i.Switch}, err
	}
	unlock, err := g.lock(ctx, o.at)
	if err != nil {
		return Report{Switch: o.Name, Device: o.Device}, named(o.Name, err)
	}
	defer unlock()
	if in, ok := ocs.As[*guard](o); ok {
		g.restoreAbandoned(ctx, in)
	}
	r, err := g.apply(ctx, o, i, 0)
	if err == nil && r.Change.Empty() && i.UndoOf != 0 {
		r.ID, err = g.undone(ctx, o, i)
	}
	if err == nil {
		r.Light, err = g.look(ctx, o, i, r.Report)
	}
	return r, err
}

// undone records an undo that found nothing to take back.
func (g *Gate) undone(ctx context.Context, o *Opened, i Intent) (int, error) {
	ids, err := g.auth.BeginAll(ctx, []history.Entry{g.entry(o, i)})
	if err != nil {
		return 0, err
	}
	return ids[0], g.auth.End(ids[0], history.Done, history.Result{})
}

// entry is the record of an intent, without its change.
func (g *Gate) entry(o *Opened, i Intent) history.Entry {
	return history.Entry{Switch: cmp.Or(o.url, o.Name), Device: o.Device, Command: cmp.Or(i.Command, g.command), UndoOf: i.UndoOf, Who: panics.Me()}
}

// apply makes one change under the lock of its device; id is that of its entry in the history, if it has one already.
func (g *Gate) apply(ctx context.Context, o *Opened, i Intent, id int) (Report, error) {
	r := Report{Switch: o.Name, Device: o.Device, UndoOf: i.UndoOf}
	entry := g.entry(o, i)
	entry.ID = id
	var sw ocs.Switch = o
	if i.Wrap != nil {
		sw = i.Wrap(sw)
	}
	var book history.Book = g.auth
	if i.Operation != nil {
		book = i.Operation
	}
	rec := history.Wrap(book, sw, entry)
	report, err := g.execute(ctx, rec, o, i)
	if errors.Is(err, history.ErrUnrecorded) && i.Restore && ctx.Err() == nil {
		unrecorded := err
		if report, err = g.execute(ctx, sw, o, i); err == nil {
			slog.Warn("light was given back, and the history does not say so", "switch", o.Name, "error", unrecorded)
		}
	}
	r.Report = report
	if err != nil && report.Receipt.Requests > 0 && !report.ReadBack {
		r.Report, err = g.readAgain(ctx, o, report, err)
	}
	if r.ReadBack && !errors.Is(err, panics.ErrInForce) {
		// A device may show a circuit some time after it has acknowledged it.
		if in, ok := ocs.As[*guard](o); ok {
			if lost := g.inPanic(ctx, in.at, report.Change.Add); lost != nil {
				err = in.takeBack(ctx, report.Change.Add, lost)
				r.Report = g.afterTakeBack(ctx, o, r.Report)
			}
		}
	}
	recorded := rec.Confirm(r.Report, err)
	r.ID = cmp.Or(rec.ID(), id)
	r.TookEffect = err != nil && r.ReadBack && !errors.Is(err, ocs.ErrVerify) && !errors.Is(err, panics.ErrInForce) && r.asPlanned()
	err = named(o.Name, err)
	switch {
	case err == nil || report.Receipt.Requests == 0 || errors.Is(err, panics.ErrInForce):
	case r.TookEffect:
		err = fmt.Errorf("%w; the change took effect: change %d, \"ocslab undo %d\" takes it back", err, r.ID, r.ID)
	case !r.ReadBack:
		err = fmt.Errorf("%w; it may have taken effect: see change %d in the history", err, r.ID)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w; read back, the change has not taken effect: see change %d in the history", err, r.ID)
	}
	if r.ReadBack {
		g.expect(o, r.Report)
	}
	return r, ocs.Join(err, recorded)
}

// execute is [ocs.Execute] or [ocs.Reconcile] of an intent.
func (g *Gate) execute(ctx context.Context, sw ocs.Switch, o *Opened, i Intent) (ocs.Report, error) {
	if len(i.Ports) > 0 {
		if _, err := i.preview(ctx, o); err != nil {
			return ocs.Report{}, err
		}
	}
	if i.Plan != nil {
		return ocs.Execute(ctx, sw, i.Plan)
	}
	return ocs.Reconcile(ctx, sw, i.Want, i.Policy)
}

// readAgain reads on a session of its own what a change came to whose session was lost.
func (g *Gate) readAgain(ctx context.Context, o *Opened, r ocs.Report, err error) (ocs.Report, error) {
	if ctx.Err() != nil || g.lab == nil || o.again == nil {
		return r, err
	}
	sw, opened := o.again(ctx)
	if opened != nil {
		return r, err
	}
	defer sw.Close()
	after, read := sw.CrossConnects(ctx)
	if read != nil {
		return r, err
	}
	r, _ = r.Again(after, ocs.Map{})
	return r, err
}

// afterTakeBack reads what a switch holds once circuits that were read back before have been removed.
func (g *Gate) afterTakeBack(ctx context.Context, o *Opened, r ocs.Report) ocs.Report {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	after, err := o.CrossConnects(ctx)
	if err != nil {
		r.ReadBack, r.After, r.Outcomes = false, ocs.Map{}, nil
		return r
	}
	r, _ = r.Again(after, ocs.Map{}) // the caller has the error of the panic
	return r
}

// asPlanned reports whether all that was to be changed reads back so.
func (r Report) asPlanned() bool {
	return !slices.ContainsFunc(r.Outcomes, func(o ocs.Outcome) bool { return o.State == ocs.Failed || o.State == ocs.Stuck })
}

// Undo returns what takes back a change of the history with those of its group, for [Gate.ApplyAll]: one change for each
// device, of the switch by the name that the history has. Settings have [Gate.UndoSettings].
func Undo(entries []history.Entry, e history.Entry) (intents []Intent) {
	of := map[string][]history.Entry{}
	for _, x := range history.Together(entries, e) {
		of[x.Device] = append(of[x.Device], x)
	}
	for _, device := range slices.Sorted(maps.Keys(of)) {
		its := of[device]
		last := its[len(its)-1]
		intents = append(intents, Intent{Switch: last.Switch, UndoOf: last.ID,
			Plan: func(have ocs.Map) (ocs.Change, error) { return history.PlanUndo(have, its) }})
	}
	return intents
}

// RefuseInPanic returns an error that matches [panics.ErrInForce] while a panic is in force that concerns a switch of the
// lab. It is for what moves light for long: single changes are refused by themselves.
func (g *Gate) RefuseInPanic() error {
	calls, err := g.auth.Panics()
	calls = slices.DeleteFunc(calls, func(c panics.Call) bool { return !c.Lifted.IsZero() })
	if err != nil || len(calls) == 0 || g.lab == nil || g.lab.File == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
	defer cancel()
	for _, s := range g.lab.File.Switches {
		device, err := g.lab.Device(s.Name)
		if err != nil {
			continue
		}
		at := g.lab.siteOf(s.Name, device, device)
		for _, c := range calls {
			if slices.ContainsFunc(c.Dark, func(d panics.Dark) bool { return !d.Lifted && at.is(ctx, d.Device) }) {
				return c.Refusal()
			}
		}
	}
	return nil
}

// resolveTime limits how long names of devices may take to be resolved.
const resolveTime = 5 * time.Second

// ErrTogether is why a switch was left alone or put back: another one of the same operation failed.
var ErrTogether = errors.New("another switch of the same operation failed")

// ApplyAll makes changes of several switches as one operation, which is one group in the history and is taken back by
// one undo. All of them are planned, permitted and recorded before the first is sent, and take effect at about the same
// time. When one fails, the others are put back to what they were; what could not be is in the error, circuit by
// circuit. The reports are in the order of intents, as far as things went.
func (g *Gate) ApplyAll(ctx context.Context, intents []Intent) ([]Report, error) {
	if len(intents) == 1 {
		r, err := g.Apply(ctx, intents[0])
		return []Report{r}, err
	}
	b := &batch{g: g, intents: intents, reports: make([]Report, len(intents)), opened: make([]*Opened, len(intents))}
	unlock, err := b.prepare(ctx)
	defer unlock()
	if err != nil {
		return b.reports, fmt.Errorf("nothing was changed: %w", err)
	}
	return b.reports, b.commit(ctx)
}

// batch is one operation on several switches.
type batch struct {
	g       *Gate
	intents []Intent
	opened  []*Opened
	reports []Report
	ids     []int // in the history; 0 where nothing is to be changed
}

// prepare takes the turns at all devices, in an order that all programs share, plans, permits and records.
func (b *batch) prepare(ctx context.Context) (unlock func(), err error) {
	var unlocks []func()
	unlock = func() {
		for _, f := range slices.Backward(unlocks) {
			f()
		}
	}
	order := make([]int, len(b.intents))
	for i, x := range b.intents {
		order[i] = i
		b.reports[i].Switch = x.Switch
		if b.opened[i], err = b.g.open(ctx, x); err != nil {
			return unlock, err
		}
		b.reports[i].Switch, b.reports[i].Device = b.opened[i].Name, b.opened[i].Device
	}
	slices.SortFunc(order, func(i, k int) int {
		x, y := b.opened[i].at, b.opened[k].at
		return cmp.Or(strings.Compare(x.identity, y.identity), strings.Compare(x.device, y.device))
	})
	for n, i := range order {
		at := b.opened[i].at
		if n > 0 && b.opened[order[n-1]].at.device == at.device {
			return unlock, fmt.Errorf("%s: two changes of one operation are of the same device: make them one", at.name)
		}
		one, err := b.g.lock(ctx, at)
		if err != nil {
			return unlock, named(at.name, err)
		}
		unlocks = append(unlocks, one)
		if in, ok := ocs.As[*guard](b.opened[i]); ok {
			b.g.restoreAbandoned(ctx, in)
		}
	}
	var entries []history.Entry
	for i, x := range b.intents {
		r, err := x.preview(ctx, b.opened[i])
		b.reports[i].Report = r
		if err != nil {
			return unlock, named(b.opened[i].Name, err)
		}
		if r.Change.Empty() && x.UndoOf == 0 {
			continue
		}
		e := b.g.entry(b.opened[i], x)
		e.Change = r.Change
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		b.ids = make([]int, len(b.intents))
		return unlock, nil
	}
	ids, err := b.g.auth.BeginAll(ctx, entries)
	if err != nil {
		return unlock, fmt.Errorf("%w: %w", history.ErrUnrecorded, err)
	}
	for i, x := range b.intents {
		if b.reports[i].Change.Empty() && x.UndoOf == 0 {
			b.ids = append(b.ids, 0)
			continue
		}
		b.reports[i].ID = ids[0]
		b.ids, ids = append(b.ids, ids[0]), ids[1:]
	}
	if err := b.permit(ctx); err != nil {
		for _, id := range b.ids {
			if id != 0 {
				err = ocs.Join(err, b.g.auth.End(id, history.Failed, history.Result{Error: err.Error()}))
			}
		}
		return unlock, err
	}
	return unlock, nil
}

// permit asks for all switches whether their changes are allowed.
func (b *batch) permit(ctx context.Context) error {
	for i, o := range b.opened {
		if err := b.g.Permits(ctx, o, b.reports[i].Before, b.reports[i].Change); err != nil {
			return named(o.Name, err)
		}
	}
	return nil
}

// commit sends the changes, each when all are ready to be sent, and puts those back that took effect when one failed.
func (b *batch) commit(ctx context.Context) error {
	errs := make([]error, len(b.intents))
	var wait sync.WaitGroup
	read, together := ocs.NewRendezvous(len(b.intents)), ocs.NewRendezvous(len(b.intents))
	for i, x := range b.intents {
		planned := b.reports[i].Change
		if b.ids[i] != 0 { // an empty change only looks at the circuits
			x.Plan = func(have ocs.Map) (ocs.Change, error) { return planned, b.reports[i].still(have) }
		}
		wait.Go(func() {
			errs[i] = together.Do(ctx, func(ctx context.Context) error {
				return read.Do(ctx, func(all context.Context) (err error) {
					defer func() {
						if p := recover(); p != nil {
							err = fmt.Errorf("%s: panic: %v", b.opened[i].Name, p)
						}
					}()
					if planned.Empty() && b.ids[i] != 0 {
						return b.g.auth.End(b.ids[i], history.Done, history.Result{})
					}
					x := x.after(func() error { return ocs.Ready(all) })
					b.reports[i], err = b.g.apply(ctx, b.opened[i], x, b.ids[i])
					return err
				})
			})
		})
	}
	wait.Wait()
	if err := b.conclude(errs); err != nil {
		return ocs.Join(err, b.putBack(context.WithoutCancel(ctx)))
	}
	var dark error
	for i, o := range b.opened {
		var err error
		b.reports[i].Light, err = b.g.look(ctx, o, b.intents[i], b.reports[i].Report)
		dark = ocs.Join(dark, err)
	}
	return dark
}

// after returns the intent with a change that waits before it is passed on. Switches are not prepared before all of
// the operation have been read: transceivers stay armed for a second, and a device may take longer to be read.
func (i Intent) after(wait func() error) Intent {
	wrap := i.Wrap
	i.Wrap = func(sw ocs.Switch) ocs.Switch {
		if wrap != nil {
			sw = wrap(sw)
		}
		return &waiting{sw, wait}
	}
	return i
}

// waiting is a switch whose changes wait for something.
type waiting struct {
	ocs.Switch
	wait func() error
}

// Unwrap returns the switch inside.
func (w *waiting) Unwrap() ocs.Switch { return w.Switch }

// Apply waits.
func (w *waiting) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if err := w.wait(); err != nil {
		return ocs.Receipt{}, err
	}
	return w.Switch.Apply(ctx, c)
}

// conclude ends the entries of changes that were not sent, and returns why the operation failed: errors of switches
// that only waited for another one are left out.
func (b *batch) conclude(errs []error) error {
	var first error
	for i, err := range errs {
		if err == nil || b.ids[i] == 0 && errors.Is(err, ocs.ErrPartner) {
			continue
		}
		if b.ids[i] != 0 && b.reports[i].Receipt.Requests == 0 {
			err = ocs.Join(err, b.g.auth.End(b.ids[i], history.Failed, history.Result{Error: err.Error()}))
		}
		if !errors.Is(err, ocs.ErrPartner) {
			first = ocs.Join(first, err)
		}
	}
	if first == nil {
		return errors.Join(errs...)
	}
	return first
}

// putBackTime limits how long the switches of an operation that failed may take to be put back.
const putBackTime = 30 * time.Second

// putBack takes back what was sent to any switch.
func (b *batch) putBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, putBackTime)
	defer cancel()
	var texts []string
	var failed error
	for i, r := range b.reports {
		if r.Receipt.Requests == 0 || b.ids[i] == 0 {
			continue
		}
		x := b.intents[i]
		x.Plan = func(have ocs.Map) (ocs.Change, error) { return ocs.PlanUndo(have, r.Change) }
		x.Command, x.UndoOf, x.Verify, x.Restore, x.Wrap = cmp.Or(x.Command, b.g.command)+" (put back)", b.ids[i], VerifyTable, true, nil
		back, err := b.g.apply(ctx, b.opened[i], x, 0)
		switch {
		case err == nil && back.Change.Empty():
			_, err = b.g.undone(ctx, b.opened[i], x)
			texts = append(texts, fmt.Sprintf("%s was not changed", r.Switch))
		case err == nil:
			b.reports[i].PutBack = true
			texts = append(texts, fmt.Sprintf("%s was put back (%v)", r.Switch, back.Change))
		default:
			texts = append(texts, fmt.Sprintf("%s could not be put back and may hold %v in place of %v", r.Switch, r.Change.Add, r.Change.Remove))
		}
		failed = ocs.Join(failed, err)
	}
	if len(texts) == 0 {
		return failed
	}
	return ocs.Join(fmt.Errorf("%w: %s", ErrTogether, strings.Join(texts, "; ")), failed)
}

// still returns an error that matches [ocs.ErrConflict] when a device no longer holds what a change was planned on.
func (r Report) still(have ocs.Map) error {
	for _, p := range r.Change.Ports() {
		if was, is := r.Before.At(p), have.At(p); !slices.Equal(was, is) {
			return fmt.Errorf("%w: port %d was changed by another user meanwhile", ocs.ErrConflict, p)
		}
	}
	return nil
}

// named puts the name of a switch before errors that do not name one.
func named(name string, err error) error {
	var of *ocs.OpError
	if err == nil || errors.As(err, &of) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
