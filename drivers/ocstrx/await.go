package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// await reads the modules of jobs until each has ended, well or not.
func (sw *Switch) await(ctx context.Context, jobs []*job, total *ocs.Receipt) error {
	pending := jobs
	begun := time.Now()
	for n := 0; len(pending) > 0; n++ {
		if d := pauses(n); d > 0 {
			if err := sw.pause(ctx, d); err != nil {
				return sw.fail(opApply, err)
			}
		}
		slots := make([]int, len(pending))
		for i, j := range pending {
			slots[i] = j.slot
		}
		all, r, err := sw.look(ctx, opApply, slots)
		if err != nil {
			return err
		}
		traceSeen(ctx, r, all)
		late := time.Since(begun) > sw.cfg.Timeout
		var rest []*job
		for i, j := range pending {
			j.end = all[i]
			ended, err := j.judge()
			switch {
			case j.err != nil && j.end.state() == ocst.StateArmed:
				// The trigger has not reached it.
			case err != nil:
				j.err = err
			case !ended && late:
				j.err = j.overdue(sw.cfg.Timeout)
			case !ended:
				rest = append(rest, j)
			default:
				j.err = nil // it has switched, whatever became of the reply
			}
		}
		if pending = rest; len(pending) == 0 {
			total.FirstByte, total.Acked = r.FirstByte, r.Acked
		}
	}
	return sw.conclude(jobs, total)
}

// judge says from what was seen last whether a module has ended its switch, and how.
func (j *job) judge() (ended bool, err error) {
	state, result := j.end.state(), j.end.status.Result
	rise := int32(j.end.status.Sequence - j.from.status.Sequence)
	switch {
	case !lit(state) && state != ocst.StateFault, rise < 0:
		// It has started anew: it counts from 0 then.
		e := &ModuleError{Slot: j.slot, State: state, Fault: result, tried: true}
		if result == ocst.NoFault {
			e.Fault = ocst.FaultBrownOut
		}
		return true, e
	case state == ocst.StateFault:
		return true, &ModuleError{Slot: j.slot, State: state, Fault: j.end.lanes.Fault, At: where(j.end.lanes), tried: true}
	case state.Busy() || j.end.status.State.Busy():
		return false, nil
	case result != ocst.NoFault && (rise == 0 || j.check() != nil):
		return true, &ModuleError{Slot: j.slot, State: state, Fault: result, tried: true, refused: refusal(result)}
	case rise == 0:
		return false, nil
	}
	// A bad result beside what was wanted is that of a command of another host.
	return true, j.check()
}

// refusal reports whether a result is that of a command that was not done, rather than of
// a switch.
func refusal(f ocst.Fault) bool {
	switch f {
	case ocst.FaultBusy, ocst.FaultHalfOpen, ocst.FaultNotArmed, ocst.FaultStage, ocst.FaultNotAllowed:
		return true
	}
	return false
}

// check compares what the module says of the lanes that it was to switch.
func (j *job) check() error {
	have := aimsOf(j.end.lanes)
	for lane, a := range j.want {
		if j.moves.touches(lane) && have[lane] != a {
			return fmt.Errorf("%s says that it has switched, but its lane %d is on %v, not on %v: %w", moduleName(j.slot), lane+1, have[lane], a, ocs.ErrVerify)
		}
	}
	return nil
}

// touches reports whether a lane is switched.
func (m moves) touches(lane int) bool {
	for _, mask := range m.lanes {
		if mask>>lane&1 != 0 {
			return true
		}
	}
	return false
}

// String is the aim for messages.
func (a aim) String() string {
	if a.path == ocst.LoopPath {
		return fmt.Sprintf("%v to lane %d", a.path, a.to+1)
	}
	return a.path.String()
}

// overdue is the error of a module that has not ended in time.
func (j *job) overdue(limit time.Duration) error {
	return fmt.Errorf("%s has not switched within %v: it is %v, and its count of switches is still %d: %w",
		moduleName(j.slot), limit, j.end.state(), j.end.status.Sequence, context.DeadlineExceeded)
}

// conclude enters the modules that have switched into total, and makes one error of those
// that have not.
func (sw *Switch) conclude(jobs []*job, total *ocs.Receipt) error {
	var done []int
	var err error
	for _, j := range jobs {
		switch {
		case j.err == nil:
			done = append(done, j.slot)
			total.Parts = append(total.Parts, ocs.Part{Name: moduleName(j.slot), Took: j.end.status.Duration})
			continue
		case len(jobs) > 1:
			// Others have switched, so the change was not refused.
			if e := (*ModuleError)(nil); errors.As(j.err, &e) {
				e.refused = false
			}
		}
		err = and(err, j.err)
	}
	switch {
	case err == nil:
		return nil
	case len(done) > 0:
		err = fmt.Errorf("%w; %s switched", err, moduleNames(done))
	}
	return sw.fail(opApply, err)
}
