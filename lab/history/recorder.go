package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ocslab/ocslab/ocs"
)

// Recorder is a Switch that records each change it passes on. [Log.Wrap] makes
// one; [ocs.As] finds it in a stack of wrappers.
type Recorder struct {
	ocs.Switch // what is wrapped; Close closes it

	log   Book
	entry Entry // what each change has in common
	begun int   // the ID of a change that is in the history already; it is for the next one

	mu    sync.Mutex // guards all following fields
	id    int        // of the last change, 0 if there was none
	state State      // last recorded for it
}

var _ ocs.Wrapper = (*Recorder)(nil)

// Book is where a Recorder keeps its record: a [Log], or what stands in for one.
type Book interface {
	BeginAll(ctx context.Context, entries []Entry) (ids []int, err error)
	End(id int, state State, detail Result) error
}

// Wrap returns sw with a record kept in l of each change; see [Wrap].
func (l *Log) Wrap(sw ocs.Switch, e Entry) *Recorder { return Wrap(l, sw, e) }

// Wrap returns sw with a record kept in b of each change. The Switch, Device,
// Command, Who, Group and UndoOf of e go into each entry. If e has an ID, the next change
// is already recorded as that entry.
//
// It belongs outside of everything that may refuse a change, such as an
// interlock or a lease gate: a change refused there is Failed, as is one
// refused by the device. So no refusal leaves a Pending entry, and a record
// that cannot be written keeps the change from being sent, whoever asked.
func Wrap(b Book, sw ocs.Switch, e Entry) *Recorder {
	return &Recorder{Switch: sw, log: b, entry: e, begun: e.ID}
}

// Unwrap returns the Switch that is wrapped.
func (r *Recorder) Unwrap() ocs.Switch { return r.Switch }

// ID returns the ID of the last change, 0 if there was none.
func (r *Recorder) ID() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// Apply records c, passes it on, and records what became of it, also when ctx
// has ended meanwhile. An empty change is passed on unrecorded.
//
// When c cannot be recorded it is not passed on, the Receipt is zero, and the
// error matches [ErrUnrecorded]. When its outcome cannot be, the Receipt is that
// of the device, the error says so, and the entry stays [Pending]. It also stays
// Pending, with a note, when the outcome is unknown: something was sent, and then
// ctx ended or the device gave no clear answer, or refused a change of which an
// earlier request may have taken effect.
func (r *Recorder) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if c.Empty() {
		return r.Switch.Apply(ctx, c)
	}
	e := r.entry
	e.Change = c
	id, err := r.begin(ctx, e)
	if err != nil {
		return ocs.Receipt{}, fmt.Errorf("%w: %w", ErrUnrecorded, err)
	}
	receipt, err := r.Switch.Apply(ctx, c)
	state, detail := outcome(ctx, receipt, err)
	recorded := r.log.End(id, state, detail)
	if recorded != nil {
		state = Pending
		recorded = fmt.Errorf("the outcome of change %d could not be recorded: %w", id, recorded)
		if err != nil {
			recorded = fmt.Errorf("%w; %w", err, recorded)
		}
		err = recorded
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id, r.state = id, state
	return receipt, err
}

// begin returns the ID of a change that is recorded now, or was before.
func (r *Recorder) begin(ctx context.Context, e Entry) (int, error) {
	r.mu.Lock()
	id := r.begun
	r.begun = 0
	r.mu.Unlock()
	if id != 0 {
		return id, nil
	}
	ids, err := r.log.BeginAll(ctx, []Entry{e})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// refusals are the errors with which a device says that it did nothing.
var refusals = []error{ocs.ErrDenied, ocs.ErrConflict, ocs.ErrInterlock, ocs.ErrNotConnected, ocs.ErrNotSupported, ocs.ErrPort}

// outcome says what is known of a change after Apply.
func outcome(ctx context.Context, receipt ocs.Receipt, err error) (State, Result) {
	var detail Result
	if !receipt.Sent.IsZero() && !receipt.Acked.IsZero() {
		detail.AckNS = max(0, receipt.Acked.Sub(receipt.SendStart).Nanoseconds())
	}
	if err == nil {
		return Done, detail
	}
	detail.Error = err.Error()
	refused := slices.ContainsFunc(refusals, func(target error) bool { return errors.Is(err, target) })
	switch {
	case receipt.Requests == 0:
		return Failed, detail
	case errors.Is(err, ocs.ErrVerify):
		return Unverified, detail
	case refused && receipt.Requests == 1 && ctx.Err() == nil:
		return Failed, detail
	}
	detail.Error = "outcome unknown: " + detail.Error
	return Pending, detail
}

// Verified records what reading back showed of the last change: ok, the device
// holds what was asked for and the change is Done, whatever it answered; not
// ok, it is [Unverified] for the reason err, unless it has Failed, which is no
// news. It does nothing when there was no change, or nothing new is learnt.
func (r *Recorder) Verified(ok bool, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	state, detail := Done, Result{}
	if !ok {
		state, detail.Error = Unverified, ocs.ErrVerify.Error()
	}
	if r.id == 0 || r.state == state || state == Unverified && r.state == Failed {
		return nil
	}
	if err != nil {
		detail.Error = err.Error()
	}
	if err := r.log.End(r.id, state, detail); err != nil {
		return err
	}
	r.state = state
	return nil
}

// Confirm is [Recorder.Verified] with what [ocs.Reconcile] or [ocs.Execute]
// returned for the last change. It does nothing when the device was not read
// back.
func (r *Recorder) Confirm(report ocs.Report, err error) error {
	if !report.ReadBack {
		return nil
	}
	wrong := slices.ContainsFunc(report.Outcomes, func(o ocs.Outcome) bool {
		return o.State == ocs.Failed || o.State == ocs.Stuck
	})
	return r.Verified(!wrong, err)
}
