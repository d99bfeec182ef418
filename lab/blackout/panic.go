package blackout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// How long a panic waits for what it does not depend on.
const (
	// lockPatience is for the lock of the record of panics, at the beginning and at the end.
	lockPatience = 250 * time.Millisecond
	// recordPatience is for what is about to be taken to be on disk before it is taken.
	recordPatience = time.Second
	// historyPatience is for the history, when the light is off.
	historyPatience = time.Second
	// finishPatience is for the record to be complete, when the light is off.
	finishPatience = 5 * time.Second
	// changePatience is for a change of another process that is in progress, before the switch is
	// read once more.
	changePatience = 3 * time.Second
)

// Panic darkens switches, those named or all of the lab, all at the same time, and returns
// what became of each, in order of names. Of call it uses Who, Reason, by default [NoReason],
// and, to call one again that was lifted, N; else N is 0.
//
// Nothing but the switches is needed for that: what is about to be taken is written down
// first where that can be done in a fraction of a second, and what could not is in Unrecorded
// of the results; [ByHand] are the commands that give it back.
//
// The error is for all of it: it says which switches failed; those have an Err of their own.
// The others are dark all the same. It matches [ErrNothing], and says what may be lit and how
// to darken it, when no panic is in force on any of the switches after all: what is dark by
// itself, or nobody's here, is not kept dark.
func (b *Blackout) Panic(ctx context.Context, call panics.Call, names ...string) ([]Result, error) {
	if call.Reason = strings.TrimSpace(call.Reason); call.Reason == "" {
		call.Reason = NoReason
	}
	names, err := b.names(names)
	if err != nil {
		return nil, err
	}
	p := b.announce(call, names)
	results := each(names, func(name string) Result { return b.blacken(ctx, p, name) })
	b.finish(p, results)
	if err := failed(results); err != nil {
		return results, err
	}
	return results, b.nothing(ctx, p, results)
}

// pending is a panic that is being carried out. What is known of it is written down by a goroutine of
// its own, so that a disk that hangs holds up no switch.
type pending struct {
	dir string
	end chan struct{} // closed when all is known

	mu     sync.Mutex // guards what follows
	call   panics.Call
	saved  int           // the Rev that was written last
	err    error         // of that
	change chan struct{} // closed and replaced whenever one of the above changes
	stuck  bool          // the disk is no longer waited for

	others chan struct{} // closed when known is known
	known  []panics.Call // the panics that were in force before

	written chan struct{} // closed when the goroutine has ended
	record  []panics.Call // what can be read at the end
	unread  error         // what cannot
}

// announce begins a panic, and writes down that the switches are to be dark.
func (b *Blackout) announce(call panics.Call, names []string) *pending {
	p := &pending{
		dir: b.opt.StateDir, call: panics.Call{At: time.Now(), Who: call.Who, Reason: call.Reason},
		end: make(chan struct{}), change: make(chan struct{}), others: make(chan struct{}), written: make(chan struct{}),
	}
	p.edit(func(c *panics.Call) {
		for _, name := range names {
			if device, err := b.opt.Device(name); err == nil && len(b.opt.File.OwnPorts(name)) > 0 {
				c.Device(name, device)
			}
		}
	})
	go func() {
		defer close(p.written)
		p.known, _ = b.InForce() // what cannot be read keeps nothing dark that could be lifted
		if call.N != 0 {
			p.again(call.N)
		}
		close(p.others)
		p.write()
	}()
	return p
}

// again makes the panic the one of a number: that was lifted, and is in force again, in its old place among the changes.
func (p *pending) again(n int) {
	all, _ := panics.Read(p.dir)
	i := slices.IndexFunc(all, func(c panics.Call) bool { return c.N == n })
	if i < 0 {
		return
	}
	old := all[i]
	p.edit(func(c *panics.Call) {
		old.Rev = max(old.Rev, c.Rev)
		if !old.Lifted.IsZero() { // else it is still in force, and this adds to it
			old.Lifted, old.Again, old.Dark, old.Round = time.Time{}, true, nil, old.Round+1
		}
		for _, d := range c.Dark {
			*old.Device(d.Switch, d.Device) = d
		}
		*c = old
	})
}

// edit changes what is known of the panic, which is written down by and by.
func (p *pending) edit(fn func(*panics.Call)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.call.Dark = slices.Clone(p.call.Dark) // one who writes it down may have it
	fn(&p.call)
	p.call.Rev++
	p.changed()
}

// changed wakes those who wait. The caller has the lock.
func (p *pending) changed() {
	close(p.change)
	p.change = make(chan struct{})
}

// write writes the panic down, over and over as it changes, until all is known of it.
func (p *pending) write() {
	spilled := false
	for last := false; ; {
		p.mu.Lock()
		call, saved, change := p.call, p.saved, p.change
		p.mu.Unlock()
		if saved < call.Rev || last && spilled {
			var err error
			if spilled && !last {
				err = panics.Spill(p.dir, &call)
			} else {
				ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
				var why error
				why, err = panics.Save(ctx, p.dir, &call)
				spilled = why != nil
				cancel()
			}
			p.mu.Lock()
			p.saved, p.err = call.Rev, err
			p.call.N = call.N
			p.changed()
			p.mu.Unlock()
			if !last {
				continue
			}
		}
		if last {
			p.record, p.unread = panics.Read(p.dir)
			return
		}
		select {
		case <-change:
		case <-p.end:
			last = true
		}
	}
}

// wait waits until what is known of the panic has been written down, or could not be, for a moment at most.
func (p *pending) wait(ctx context.Context) {
	timer := time.NewTimer(recordPatience)
	defer timer.Stop()
	p.mu.Lock()
	rev := p.call.Rev
	for p.saved < rev && !p.stuck {
		change := p.change
		p.mu.Unlock()
		select {
		case <-change:
			p.mu.Lock()
		case <-ctx.Done():
			return
		case <-timer.C:
			p.mu.Lock()
			p.stuck = true
		}
	}
	p.mu.Unlock()
}

// before are the panics that were in force before this one, as far as they could be read in a moment.
func (p *pending) before() []panics.Call {
	timer := time.NewTimer(recordPatience)
	defer timer.Stop()
	select {
	case <-p.others:
		return p.known
	case <-timer.C:
		return nil
	}
}

// isSaved reports whether what is known of the panic has been written down.
func (p *pending) isSaved() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.saved == p.call.Rev && p.err == nil
}

// blacken darkens one switch.
func (b *Blackout) blacken(ctx context.Context, p *pending, name string) Result {
	look := b.look // without knowing anything there is no going ahead
	if _, known := b.last(name); known {
		look = b.briefly
	}
	step, now := b.plan(ctx, name, look)
	defer func() { now.close() }()
	r := Result{Step: step, State: panics.IsDark}
	fail := func(how string, err error) Result {
		if step.Device != "" && !step.Nobody {
			p.edit(func(c *panics.Call) {
				c.Device(name, step.Device).Became(panics.IsFailed, how+": "+strings.TrimPrefix(err.Error(), name+": "))
			})
		}
		r.State, r.Err = panics.IsFailed, about(name, "darken", err)
		return r
	}
	if step.Err != nil && !step.Stale {
		return fail("not reached", step.Err)
	}
	if step.Nobody {
		return r
	}
	// What another panic keeps dark this one wants dark, too, when that is lifted.
	kept, isKept := b.keptDark(p, step)
	p.edit(func(c *panics.Call) {
		d := c.Device(name, step.Device)
		d.Closed, d.Removed = sorted(step.Close, kept), step.Change.Remove
	})
	p.wait(ctx)
	if now.sw == nil { // it was not open in time
		var err error
		if now.sw, _, err = b.opt.Open(ctx, name); err != nil {
			now.sw = nil
			return fail("not reached", err)
		}
	}
	if err := b.darken(ctx, p, now.sw, &r, ocs.Map{}); err != nil {
		return fail("failed", err)
	}
	if err := b.stayDark(ctx, p, now, &r); err != nil {
		return fail("failed", err)
	}
	p.edit(func(c *panics.Call) {
		if c.Device(name, step.Device).Became(panics.IsDark, ""); !isKept {
			c.Prune(step.Device)
		}
	})
	return r
}

// darken does on a switch what its step says. before are circuits that were removed already.
func (b *Blackout) darken(ctx context.Context, p *pending, sw ocs.Switch, r *Result, before ocs.Map) error {
	var closing, removing error
	if len(r.Close) > 0 {
		closing = setShutters(ctx, sw, true, r.Close)
	}
	if r.Change.Remove.Len() > 0 {
		removing = b.remove(ctx, p, sw, r, before)
	}
	return ocs.Join(closing, removing)
}

// remove takes the circuits away that no shutter darkens. It reads them once more, and writes down
// what it finds: those of a step may be what the switch held long ago.
func (b *Blackout) remove(ctx context.Context, p *pending, sw ocs.Switch, r *Result, before ocs.Map) error {
	own, protected := b.opt.File.OwnPorts(r.Switch), b.opt.File.ProtectedPorts(r.Switch)
	began := time.Now()
	report, err := ocs.Execute(ctx, sw, func(have ocs.Map) (ocs.Change, error) {
		now := darken(r.Switch, own, protected, ocs.Geometry{}, Held{Map: have, Shut: r.Have.Shut})
		planned := r.Change.Remove
		r.Change, r.Left = now.Change, now.Left
		if !now.Change.Remove.Equal(planned) {
			p.edit(func(c *panics.Call) { c.Device(r.Switch, r.Device).Removed = union(before, now.Change.Remove) })
			p.wait(ctx)
		}
		return now.Change, nil
	})
	r.Report = report
	if report.Receipt.Requests == 0 {
		return err
	}
	e := history.Entry{Switch: r.Switch, Device: r.Device, Command: b.opt.Command, Began: began, Change: report.Change}
	e.State, e.Error = outcome(report, err)
	if at := report.Receipt; !at.Sent.IsZero() && !at.Acked.IsZero() {
		e.AckNS = at.Acked.Sub(at.SendStart).Nanoseconds()
	}
	unrecorded := b.record(e, r)
	p.edit(func(c *panics.Call) {
		d := c.Device(r.Switch, r.Device)
		if d.Change = r.ID; r.ID != 0 {
			c.Changes = append(slices.Clone(c.Changes), r.ID)
		}
		if report.ReadBack {
			d.Removed = d.Removed.Minus(report.After) // what is still held was not removed
		}
	})
	if unrecorded != nil {
		r.note("the history lacks it: " + unrecorded.Error())
	}
	return err
}

// outcome says for the history what is known of a change.
func outcome(report ocs.Report, err error) (history.State, string) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	gone := report.Change.Remove.Minus(report.After)
	switch {
	case !report.ReadBack:
		return history.Pending, "outcome unknown: " + text
	case gone.Equal(report.Change.Remove):
		return history.Done, ""
	case gone.Len() == 0 && !errors.Is(err, ocs.ErrVerify):
		return history.Failed, text
	}
	return history.Unverified, text
}

// record writes a change to the history, which has a moment for it.
func (b *Blackout) record(e history.Entry, r *Result) (err error) {
	if b.opt.History == nil {
		return errors.New("there is none")
	}
	type answer struct {
		id  int
		err error
	}
	done := make(chan answer, 1)
	ctx, cancel := context.WithTimeout(context.Background(), historyPatience)
	go func() {
		defer cancel()
		id, err := b.opt.History.Record(ctx, e)
		done <- answer{id, err}
	}()
	timer := time.NewTimer(finishPatience)
	defer timer.Stop()
	select {
	case a := <-done:
		r.ID = a.id
		return a.err
	case <-timer.C:
		return errors.New("the disk does not answer")
	}
}

// note adds a sentence for people.
func (r *Result) note(text string) { r.Note = strings.TrimPrefix(r.Note+"; "+text, "; ") }

// stayDark reads a switch once more when no change of another process is in progress on it any more, or after a few
// seconds: what that process has lit meanwhile is darkened, too.
func (b *Blackout) stayDark(ctx context.Context, p *pending, now seen, r *Result) error {
	unlock, busy := b.lock(ctx, r.Switch, changePatience)
	defer unlock()
	if ctx.Err() != nil {
		r.note("not read once more, as it was interrupted")
		return nil
	}
	if !errors.Is(busy, context.DeadlineExceeded) {
		busy = nil // no lock can be had here, so no other program has one either
	}
	own := b.opt.File.OwnPorts(r.Switch)
	if now.geometry == (ocs.Geometry{}) { // it was not asked in time
		id, err := now.sw.Identify(ctx)
		if err != nil {
			return fmt.Errorf("not read back: %w", err)
		}
		now.geometry = id.Geometry
	}
	have, err := held(ctx, now.sw, within(now.geometry, own))
	if err != nil {
		return fmt.Errorf("not read back: %w", err)
	}
	more := darken(r.Switch, own, b.opt.File.ProtectedPorts(r.Switch), now.geometry, have)
	if !more.Empty() {
		p.edit(func(c *panics.Call) {
			d := c.Device(r.Switch, r.Device)
			d.Closed, d.Removed = sorted(d.Closed, more.Close), union(d.Removed, more.Change.Remove)
		})
		p.wait(ctx)
		again := Result{Step: more}
		again.Device = r.Device
		err = b.darken(ctx, p, now.sw, &again, r.Change.Remove)
		r.Close, r.Change.Remove = sorted(r.Close, again.Close), union(r.Change.Remove, again.Change.Remove)
		if again.ID != 0 {
			r.ID, r.Report = again.ID, again.Report
		}
		r.note(joinWords(again.Note, joinWords(ocs.FormatPorts(again.Close), again.Change.Remove.String())+
			" lit again by another client meanwhile, and darkened again"))
		if err != nil {
			return err
		}
	}
	if busy != nil {
		r.note("a change of another process is in progress, and may light it again: " + strings.TrimSuffix(busy.Error(), ": "+context.DeadlineExceeded.Error()))
	}
	return nil
}

func joinWords(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// union are the circuits of both, as far as they fit together.
func union(a, b ocs.Map) ocs.Map { return mapOf(append(a.Slice(), b.Minus(a).Slice()...)) }

// keptDark reports whether another panic in force has darkened a switch, and which of the
// shutters that are closed it has closed.
func (b *Blackout) keptDark(p *pending, step Step) (ports []ocs.Port, kept bool) {
	own := b.opt.File.OwnPorts(step.Switch)
	dark := darkOn(p.before(), step.Device)
	for _, port := range closedBy(dark) {
		if step.Have.Shut[port] && slices.Contains(own, port) {
			ports = append(ports, port)
		}
	}
	return ports, len(dark) > 0
}

// finish waits until all that is known is written down, for a few seconds at most, and says of each result whether
// lifting the panic gives back what was taken there.
func (b *Blackout) finish(p *pending, results []Result) {
	close(p.end)
	timer := time.NewTimer(finishPatience)
	defer timer.Stop()
	var record []panics.Call
	var why error
	select {
	case <-p.written:
		record, why = p.record, cmp.Or(p.err, p.unread)
	case <-timer.C:
		why = errors.New("the disk does not answer")
	}
	p.mu.Lock()
	call := p.call
	p.mu.Unlock()
	var saved int // its number, where it was written and can only not be read back
	if why != nil && p.isSaved() {
		saved = call.N
	}
	i := slices.IndexFunc(record, func(c panics.Call) bool { return c.At.Equal(call.At) && c.Who == call.Who })
	for j := range results {
		r := &results[j]
		taken, _ := call.On(r.Device)
		var closed []ocs.Port
		removed := taken.Removed
		if i < 0 && taken.Device != "" {
			r.panic = saved
		}
		if i >= 0 {
			if _, inForce := record[i].On(r.Device); inForce {
				r.panic = record[i].N
			}
			for _, d := range record[i].Dark { // one that was lifted meanwhile was given back
				if d.Device == r.Device {
					closed, removed = append(closed, d.Closed...), removed.Minus(d.Removed)
				}
			}
		}
		if removed.Len() > 0 || slices.ContainsFunc(taken.Closed, func(port ocs.Port) bool { return !slices.Contains(closed, port) }) {
			r.Unrecorded = cmp.Or(why, errors.New("the record of the panic lacks it"))
		}
	}
}
