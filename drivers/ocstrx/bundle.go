package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// bundle arms the modules of jobs, makes sure that all are, waits for other switches if it is
// to, and triggers them. When that cannot be, those that are armed are disarmed, and nothing
// switches.
func (sw *Switch) bundle(ctx context.Context, jobs []*job, total *ocs.Receipt) error {
	begun := time.Now()
	err := sw.arm(ctx, jobs, total)
	if err == nil {
		err = sw.ready(ctx, begun)
	}
	if err == nil {
		err = sw.trigger(ctx, jobs, total)
	}
	if err != nil {
		sw.retract(ctx, jobs)
		return err
	}
	if err = sw.await(ctx, jobs, total); err != nil {
		// Nor does a module stay armed that the trigger has not reached.
		var left []*job
		for _, j := range jobs {
			if j.missed || j.end.state() == ocst.StateArmed {
				left = append(left, j)
			}
		}
		sw.retract(ctx, left)
	}
	return err
}

// readyTime is how long after the first module was told to arm others may keep the trigger
// waiting: a quarter of [ocst.ArmTimeout] is left for it to come.
const readyTime = ocst.ArmTimeout * 3 / 4

// ready waits for other switches, of a change that is to take effect together with theirs.
func (sw *Switch) ready(ctx context.Context, begun time.Time) error {
	if !ocs.Waits(ctx) {
		return nil
	}
	late := fmt.Errorf("the other switches were not ready within %v, and modules do not stay armed for much longer: %w",
		readyTime, context.DeadlineExceeded)
	ctx, end := context.WithDeadlineCause(ctx, begun.Add(readyTime), late)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(sw.life, func() { cancel(link.ErrClosed) })()
	err := ocs.Ready(ctx)
	switch {
	case err == nil:
		return nil
	case sw.life.Err() != nil:
		err = link.ErrClosed
	}
	// What another device was sent, and said, is in there, and is not ours.
	return &ocs.OpError{Op: opApply, Device: sw.cfg.Device, Err: err}
}

// trigger switches modules that are armed. Where they are told one after another there is
// no way back from the first on: all are told, also when nobody waits any more or one of
// them does not answer, which is then in its job. Nor is there where other switches change
// together with this one, and were told that it is ready.
func (sw *Switch) trigger(ctx context.Context, jobs []*job, total *ocs.Receipt) error {
	b := sw.triggers(jobs)
	together := ocs.Waits(ctx)
	if len(b) == 1 && !together {
		return sw.tell(ctx, b, total)
	}
	if err := sw.life.Gone(ctx); err != nil && !together {
		return sw.fail(opApply, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retractTime)
	defer cancel()
	if len(b) == 1 {
		return sw.tell(ctx, b, total)
	}
	var first error
	failed := 0
	for rest := jobs; len(rest) > 0; {
		err := sw.tell(ctx, b[len(jobs)-len(rest):], total)
		if err == nil {
			break
		}
		at := (*RequestError)(nil)
		if !errors.As(err, &at) || at.Index >= len(rest) {
			return err
		}
		if first == nil {
			first = err
		}
		failed++
		rest[at.Index].err, rest[at.Index].missed = err, true
		rest = rest[at.Index+1:]
	}
	if failed == len(jobs) {
		return first
	}
	return nil
}

// arm stages and arms, path by path, and looks after each at whether the module is armed:
// its result is only that of the last command.
func (sw *Switch) arm(ctx context.Context, jobs []*job, total *ocs.Receipt) error {
	var b batch
	for _, j := range jobs {
		j.arms = true
		sw.settings(&b, j.from)
	}
	for _, j := range jobs {
		if j.moves.loop != nil {
			b.write(j.slot, ocst.RegLoop, j.moves.loop[:]...)
		}
	}
	looks := make([][]gaze, len(jobs))
	// Modules take turns, so that the bus need not wait for one of them.
	for path := range ocst.Mixed {
		for _, j := range jobs {
			if mask := j.moves.lanes[path]; mask != 0 {
				b.write(j.slot, ocst.RegStaged, byte(path), mask, byte(ocst.CommitArm))
			}
		}
		for i, j := range jobs {
			if j.moves.lanes[path] != 0 {
				looks[i] = append(looks[i], b.look(j.slot))
			}
		}
	}
	if err := sw.tell(ctx, b, total); err != nil {
		return err
	}
	for i, j := range jobs {
		for _, g := range looks[i] {
			now := g.decode()
			if err := now.armed(); err != nil {
				return sw.fail(opApply, err)
			}
			if aimsOf(now.lanes) != aimsOf(j.from.lanes) || now.status.Sequence != j.from.status.Sequence {
				return sw.fail(opApply, errCrossed)
			}
		}
	}
	return nil
}

// armed returns why a module that was told to arm is not armed, if it is not.
func (s seen) armed() error {
	if s.state() == ocst.StateArmed && s.status.Result == ocst.NoFault {
		return nil
	}
	e := &ModuleError{Slot: s.slot, State: s.state(), Fault: s.status.Result, refused: true, tried: true}
	switch {
	case s.state() == ocst.StateFault:
		e.Fault, e.At = s.lanes.Fault, where(s.lanes)
	case e.Fault == ocst.NoFault:
		e.Fault = ocst.FaultNotArmed
	}
	return e
}

// triggers are the requests that switch modules that are armed.
func (sw *Switch) triggers(jobs []*job) batch {
	var b batch
	if len(jobs) > 1 && sw.cfg.Bus.HasTrigger() {
		line := Request{Op: OpTrigger}
		for _, j := range jobs {
			line.Mask |= 1 << j.slot
		}
		return append(b, line)
	}
	for _, j := range jobs {
		b.write(j.slot, ocst.RegCommit, byte(ocst.CommitTrigger))
	}
	return b
}

// retractTime is how long it may take to disarm, or to trigger one by one. Modules disarm
// themselves after [ocst.ArmTimeout].
const retractTime = ocst.ArmTimeout / 2

// retract has the modules of jobs that are armed forget it, and takes back the loops that
// were staged and not switched to. It does so as well when nobody waits any more; what goes
// wrong is left to the modules.
func (sw *Switch) retract(ctx context.Context, jobs []*job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retractTime)
	defer cancel()
	for _, j := range jobs {
		now, _, err := sw.look(ctx, opApply, []int{j.slot})
		if err != nil {
			continue
		}
		var b batch
		if j.arms && now[0].state() == ocst.StateArmed {
			b.write(j.slot, ocst.RegCommit, byte(ocst.CommitDisarm))
		}
		loop, next := now[0].lanes.Loop, now[0].lanes.Next
		if loop != next && j.moves.loop != nil && next == *j.moves.loop && !now[0].state().Busy() {
			b.write(j.slot, ocst.RegLoop, loop[:]...)
		}
		if len(b) > 0 {
			_, _ = sw.do(ctx, opApply, b...)
		}
	}
}
