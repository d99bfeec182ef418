package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

const opApply = "change circuits"

// tries are how often a change is begun while another host changes the same modules. Of
// two that get in each other's way one always gets through.
const tries = 8

// Apply makes a change in as few commands as the modules allow; the package comment says
// how, and what is refused before anything is sent.
//
// The Receipt counts what changes something: staging, commits and triggers, not what is
// read. Its SendStart and Sent are of the last of them, FirstByte and Acked of the reading
// that showed that the last module had ended. Its Parts are the modules that have
// switched, with the time from commit or trigger to light by their own clocks. A change
// that is there already gives a Receipt without Requests. See [ocs.Switch].
func (sw *Switch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	var total ocs.Receipt
	if c.Empty() {
		return total, nil
	}
	shares, err := sw.split(c)
	if err != nil {
		return total, sw.fail(opApply, err)
	}
	if err := sw.take(ctx, opApply); err != nil {
		return total, err
	}
	defer sw.turn.Pass()
	for range tries {
		var jobs []*job
		if jobs, err = sw.prepare(ctx, shares, &total); err != nil {
			return total, err
		}
		if err = sw.carry(ctx, jobs, &total); !crossed(err) {
			return total, err
		}
	}
	return total, err
}

// errCrossed is that a module did not stay as it was read, and nothing was switched.
var errCrossed = fmt.Errorf("%w: another host keeps changing the same modules; read what is there and try again", ocs.ErrDenied)

// crossed reports whether nothing was switched since another host has a module at work, has
// armed it, or has changed it since it was read.
func crossed(err error) bool {
	var e *ModuleError
	if errors.Is(err, ocs.ErrPartner) {
		return false // it is another switch that says so
	}
	return errors.Is(err, errCrossed) || errors.As(err, &e) && e.tried && e.refused && lit(e.State) &&
		(e.Fault == ocst.FaultBusy || e.Fault == ocst.FaultNotAllowed)
}

// job is what one module has to do for a change, and how that goes.
type job struct {
	slot  int
	ours  uint8 // lanes named in the change
	from  seen  // what it was planned on
	want  aims
	moves moves

	arms   bool  // it is told to arm
	missed bool  // its trigger has failed; perhaps it came all the same
	end    seen  // what was seen last
	err    error // why it has failed
}

// prepare looks at the modules of a change, refuses it or makes the jobs. There are none
// when all of it is there already.
func (sw *Switch) prepare(ctx context.Context, shares []share, total *ocs.Receipt) ([]*job, error) {
	slots := make([]int, len(shares))
	for i, s := range shares {
		slots[i] = s.slot
		if !sw.in[s.slot].there {
			return nil, sw.fail(opApply, fmt.Errorf("there is no %s, its slot is empty: %w", moduleName(s.slot), ocs.ErrDenied))
		}
	}
	all, r, err := sw.settled(ctx, opApply, slots)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if err := s.ready(); err != nil {
			return nil, sw.fail(opApply, err)
		}
	}
	// All removals first: whether a plan is old does not depend on which module tells.
	for i, s := range shares {
		if _, err := s.removed(aimsOf(all[i].lanes)); err != nil {
			return nil, sw.fail(opApply, err)
		}
	}
	var jobs []*job
	for i, s := range shares {
		j, err := sw.job(s, all[i])
		if err != nil {
			return nil, sw.fail(opApply, err)
		}
		if !j.moves.none() {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		r.Requests = 0
		*total = total.Then(r)
		if total.Requests == 0 {
			*total = r
		}
	}
	return jobs, nil
}

// job makes the job of one module that is ready.
func (sw *Switch) job(s share, now seen) (*job, error) {
	j := &job{slot: s.slot, from: now}
	for _, list := range [][]wish{s.remove, s.add} {
		for _, w := range list {
			j.ours |= 1 << w.lane
		}
	}
	var err error
	if j.want, err = sw.target(s, aimsOf(now.lanes)); err == nil {
		j.moves, err = plan(now.lanes, j.want)
	}
	return j, err
}

// carry does jobs.
func (sw *Switch) carry(ctx context.Context, jobs []*job, total *ocs.Receipt) error {
	switch {
	case len(jobs) == 0:
		return nil
	case len(jobs) > 1 || jobs[0].moves.paths() > 1 || ocs.Waits(ctx):
		return sw.bundle(ctx, jobs, total)
	}
	return sw.single(ctx, jobs[0], total)
}

// single does what takes one commit. The permutation was made from what was read before:
// when another host has come in between, some of its lanes may have been taken elsewhere,
// and are brought back.
func (sw *Switch) single(ctx context.Context, j *job, total *ocs.Receipt) error {
	was, err := sw.once(ctx, j, total)
	if err != nil || j.moves.loop == nil || was == aimsOf(j.from.lanes) {
		return err
	}
	next, err := j.repair(sw, was)
	for range tries {
		switch {
		case err != nil:
			return sw.fail(opApply, err)
		case next.moves.none():
			return nil
		}
		total.Parts = nil // it switches again
		if err := sw.carry(ctx, []*job{next}, total); !crossed(err) {
			return err
		}
		var all []seen
		if all, _, err = sw.settled(ctx, opApply, []int{j.slot}); err != nil {
			return err
		}
		next.from = all[0]
		next.moves, err = plan(next.from.lanes, next.want)
	}
	return sw.fail(opApply, fmt.Errorf("%s: another host keeps changing its loop at the same time, so read it and try again: %w", moduleName(j.slot), ocs.ErrVerify))
}

// once stages the loop, if it has to be, and commits. With that it looks at the lanes once
// more, just before, and returns where they went then.
func (sw *Switch) once(ctx context.Context, j *job, total *ocs.Receipt) (was aims, err error) {
	var b batch
	var again gaze
	sw.settings(&b, j.from)
	if j.moves.loop != nil {
		again = b.look(j.slot)
		b.write(j.slot, ocst.RegLoop, j.moves.loop[:]...)
	}
	for path, mask := range j.moves.lanes {
		if mask != 0 {
			b.write(j.slot, ocst.RegStaged, byte(path), mask, byte(ocst.CommitNow))
		}
	}
	if err := sw.tell(ctx, b, total); err != nil {
		if j.moves.loop != nil {
			sw.retract(ctx, []*job{j})
		}
		return was, err
	}
	if j.moves.loop != nil {
		was = aimsOf(again.decode().lanes)
	}
	return was, sw.await(ctx, []*job{j}, total)
}

// repair makes the job of bringing back what others had on a module just before j was
// done, while what j was for stays.
func (j *job) repair(sw *Switch, was aims) (*job, error) {
	next := &job{slot: j.slot, ours: j.ours, from: j.end, want: was}
	for lane := range was {
		if j.ours>>lane&1 != 0 {
			next.want[lane] = j.want[lane]
		}
	}
	for lane := range was {
		if j.ours>>lane&1 == 0 {
			continue
		}
		if other, shared := next.want.rival(lane); shared {
			mine, _ := sw.circuit(j.slot, lane, next.want[lane])
			have, _ := sw.circuit(j.slot, other, next.want[other])
			return nil, fmt.Errorf("another host has changed the module at the same time: %w", &ocs.ConflictError{Want: mine, Have: have})
		}
	}
	var err error
	next.moves, err = plan(j.end.lanes, next.want)
	return next, err
}

// tell does requests of which the last is the one that counts, and enters them into total.
func (sw *Switch) tell(ctx context.Context, b batch, total *ocs.Receipt) error {
	r, err := sw.do(ctx, opApply, b...)
	if r.Requests == 0 {
		return err
	}
	sent := b
	var stopped *RequestError
	if errors.As(err, &stopped) {
		sent = b[:min(stopped.Index+1, len(b))]
	}
	r.Requests = 0
	for _, q := range sent {
		if q.writes() {
			r.Requests++
		}
	}
	if err == nil {
		traceTold(ctx, r)
	}
	r.FirstByte, r.Acked = time.Time{}, time.Time{} // await says
	*total = total.Then(r)
	return err
}
