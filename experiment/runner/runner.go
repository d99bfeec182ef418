package runner

import (
	"context"
	"errors"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Runner carries out one plan, once. Its fields are set before [Runner.Run] or
// [Runner.Finish] is called; Pause, Continue, Toggle, Stop, Abort and State may be called
// by any goroutine at any time.
type Runner struct {
	Plan   *plan.Plan
	File   *plan.File // its hooks, wait, stop rule and finally
	Writer Recorder   // is closed when Run returns

	// Session is what is recorded of this session. Found should be set in the first one that
	// is recorded.
	Session runs.Session

	// Open opens a testbed for conditions, which share a set-up.
	Open func(ctx context.Context, conditions []plan.Condition) (Bench, error)
	// Light puts the light to what is wanted, by switch, or for nil to what the run has
	// found. It is called when no bench is open, and again when it fails, so it opens its
	// own sessions each time, and a switch that has come back is found.
	Light func(ctx context.Context, want map[string]ocs.Map) error

	// Done and Dropped are the points that need not be done, by ID, and Marks what was
	// recorded of those that are done: all from the run that is resumed.
	Done, Dropped map[int]bool
	Marks         []timeline.Mark

	// Dir is where hooks are run; "" is beside the experiment file.
	Dir string

	// Enough says whether the stop rule is met by the marks of a condition; nil: never.
	// It is analysis.Enough.
	Enough func(rule plan.Stop, marks []timeline.Mark, seed uint64) bool
	// Verdict judges the limits at the end, for the summary; nil: nobody does.
	Verdict func() (string, error)

	// Calibrations looks up what is calibrated of a set-up, which is recorded with it; a remark is of
	// what cannot be read. Nil: nothing is looked up.
	Calibrations func(runs.Setup) (found []runs.Calibration, remarks []error)

	// Tolerate is how many failures of the bench in a row are answered by setting up anew
	// and trying the point again; 0: the first ends the run.
	Tolerate int

	// Progress is told what goes on; nil: nobody is. It is called on the goroutine of Run.
	Progress func(Progress)

	control control
	execute func(context.Context, command) (ran, error) // a hook; nil: as it is
}

// ErrStop is the cause of a context that asks a run to stop after the point that is under
// way, and what the error of a run matches that was stopped.
var ErrStop = errors.New("stopped")

// ErrAbort is what the error of a run matches that was aborted.
var ErrAbort = errors.New("aborted")

// Run does all points of the plan that are neither Done nor Dropped, then finally, and
// returns the summary as it was written. The error is nil when all points are done and
// finally has done its part; otherwise it says what went wrong, what is kept and how to
// go on. It matches ErrStop or ErrAbort when somebody ended the run.
//
// When ctx ends with the cause [ErrStop], Run stops after the point that is under way;
// with any other cause it aborts, and the error matches that, too.
//
// Hooks of the set-up are run in every session, and those before the run in every session
// that begins without a point done.
func (r *Runner) Run(ctx context.Context) (runs.Summary, error) {
	return newSession(r).run(ctx, (*session).points)
}

// Finish does no points but only finally, for a run that was killed and shall not go on.
// The summary then says that the run is done or stopped.
func (r *Runner) Finish(ctx context.Context) (runs.Summary, error) {
	return newSession(r).run(ctx, (*session).none)
}
