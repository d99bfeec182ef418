package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline"
)

// DefaultPatience is how long links may take to have light, and how long nothing may get through one that has lost it.
const DefaultPatience = 5 * time.Second

// mostEvents is of how many rounds of a repeat it is recorded how they went; later ones are only if they were rewired for.
const mostEvents = 32

// MostTime is the longest that a plan may be predicted to take on a lab.
const MostTime = time.Hour

// Errors of this package. Test with errors.Is.
var (
	// ErrStalled: transfers of a round do not get through, since links they need are not there.
	ErrStalled = errors.New("the collective does not get on")
	// ErrLab: the lab cannot hold the plan. The text says what would do.
	ErrLab = errors.New("the lab cannot hold the plan")
)

// Options say how a plan is run.
type Options struct {
	// Options say how it is recorded and how often it is run. Before, ReadBack, After and Opened are used here, and those
	// given are called, too.
	sequence.Options
	// Patience is how long links may take to come; 0 is DefaultPatience.
	Patience time.Duration
}

// Round is a round of a plan as it was run.
type Round struct {
	Number    int           // from 0
	Topology  string        // that it ran on
	Changed   bool          // rewired before
	Predicted time.Duration // of its transfers
	Measured  time.Duration // of its transfers, from Go to the barrier at its end
	Switching time.Duration // from Begin to Go; 0 if not Changed
	// Waited is from the barrier before to Begin, or to Go if not Changed: a change begins when the light of the one before
	// has been measured to its end, which takes some time more than the light. Measured, Switching and Waited of all rounds
	// add up to the total.
	Waited time.Duration

	// Times on the host's axis, in nanoseconds. Begin is when the change was asked for, Command
	// when the first request of the change began to be sent, Ack when the last switch had
	// acknowledged, Light when the last circuit had light as far as the switch tells: 0 if not Changed. Go is when transfers
	// began, End the barrier.
	Begin, Command, Ack, Light, Go, End int64
}

// Result is what running a plan came to.
type Result struct {
	*sequence.Result
	Repeats []Repeat // those that were run to the end
}

// Repeat is one time that a plan was run.
type Repeat struct {
	Rounds []Round
	// Total is from when the first change began, or if the first round has none, from its Go, to the last barrier. Wiring
	// the topology to begin with is not part of it.
	Total time.Duration
}

// Run wires the topology that a plan begins with on a lab, runs the plan there, and records a run. The lab is only
// looked at until it is known that the plan fits: then the error matches [ErrLab] or is one of
// [sequence.Play]. Links that do not come, or go, are errors that match [ErrStalled]; then, and when ctx ends, the
// lab is put back. Once a run was begun, Result is not nil.
func Run(ctx context.Context, f *lab.File, job Job, opt Options) (*Result, error) {
	l, err := Lay(f, job)
	if err != nil {
		return nil, err
	}
	if opt.Patience == 0 {
		opt.Patience = DefaultPatience
	}
	r := &run{Layout: l, opt: opt, lights: newLights(), result: &Result{}}
	defer func() {
		if r.unwatch != nil {
			r.unwatch()
		}
	}()
	inner := opt.Options
	inner.Opened = r.opened
	inner.Before = r.before
	inner.Hurry = func(step int) bool { return len(l.rounds[step]) > 0 && step < len(l.Steps)-1 }
	inner.ReadBack = func(ctx context.Context, step int, mv experiment.Move) error {
		if err := callback(ctx, opt.ReadBack, step, mv); err != nil {
			return err
		}
		return r.wired(ctx, step, mv)
	}
	inner.After = func(ctx context.Context, step int, mv experiment.Move) error {
		if step == len(l.Steps)-1 {
			if err := r.finish(); err != nil {
				return err
			}
		}
		return callback(ctx, opt.After, step, mv)
	}
	r.result.Result, err = sequence.Play(ctx, f, l.Steps, inner)
	if r.result.Result == nil {
		return nil, err
	}
	return r.result, err
}

func callback(ctx context.Context, fn func(context.Context, int, experiment.Move) error, step int, mv experiment.Move) error {
	if fn == nil {
		return nil
	}
	return fn(ctx, step, mv)
}

// run is a plan that is being run. Its methods are called one at a time.
type run struct {
	*Layout
	opt     Options
	lights  *lights
	unwatch func()
	event   func(kind, text string) error

	result *Result
	repeat Repeat    // that is under way
	begun  time.Time // when the step began
}

// opened begins to watch the light.
func (r *run) opened(s *sequence.Session) error {
	if r.unwatch != nil {
		r.unwatch()
	}
	r.unwatch = r.lights.watch(s.Testbed)
	r.event = s.Event
	if r.opt.Opened != nil {
		return r.opt.Opened(s)
	}
	return nil
}

func (r *run) before(step int) {
	r.begun = time.Now()
	if step == 0 {
		r.repeat = Repeat{}
	}
	if r.opt.Before != nil {
		r.opt.Before(step)
	}
}

// wired waits for the light of a step, and runs the rounds that are to be run on it.
func (r *run) wired(ctx context.Context, step int, mv experiment.Move) error {
	r.lights.wire(r.links[step])
	defer r.lights.follow(mv)()
	since, err := r.lights.wait(ctx, r.opt.Patience)
	if err != nil {
		return err
	}
	for i, number := range r.rounds[step] {
		x := Round{Number: number, Topology: r.Plan.Rounds[number].Topology.Name(), Predicted: seconds(r.Plan.Rounds[number].Cost.Time)}
		if r.Plan.Rounds[number].Changed && i == 0 {
			x.Changed = true
			r.changed(&x, mv, since)
		}
		if err := r.transfer(ctx, &x); err != nil {
			return fmt.Errorf("round %d on %s: %w", number, x.Topology, err)
		}
		r.repeat.Rounds = append(r.repeat.Rounds, x)
	}
	return nil
}

// changed fills in when the change before a round was where.
func (r *run) changed(x *Round, mv experiment.Move, light time.Time) {
	axis := timeline.HostAxis()
	x.Begin, x.Light = axis.NS(r.begun), axis.NS(light)
	first, last := int64(math.MaxInt64), int64(0)
	for _, report := range mv.Reports {
		rc := report.Receipt
		if rc.Requests == 0 {
			continue
		}
		begun := rc.SendStart
		if !rc.Begun.IsZero() {
			begun = rc.Begun
		}
		first, last = min(first, axis.NS(begun)), max(last, axis.NS(rc.Acked))
	}
	if last > 0 {
		x.Command, x.Ack = first, last
	}
}

// transfer runs the transfers of a round.
func (r *run) transfer(ctx context.Context, x *Round) error {
	n := &network{
		alpha: seconds(r.Job.Params.Alpha), perByte: r.perByte[x.Number], patience: r.opt.Patience, light: r.lights,
	}
	round := r.Plan.Schedule.Rounds[x.Number]
	axis := timeline.HostAxis()
	x.Go = axis.NS(time.Now())
	if _, err := n.run(ctx, r.paths[x.Number], round.Bytes); err != nil {
		return err
	}
	x.End = axis.NS(time.Now())
	x.Measured = time.Duration(x.End - x.Go)
	ready := x.Go // to begin
	if x.Changed {
		x.Switching, ready = time.Duration(x.Go-x.Begin), x.Begin
	}
	if done := len(r.repeat.Rounds); done > 0 {
		x.Waited = time.Duration(ready - r.repeat.Rounds[done-1].End)
	}
	return nil
}

// finish takes down a repeat whose rounds are all done. What is recorded of rounds is recorded now, since writing to a disk
// between rounds would be part of what is measured.
func (r *run) finish() error {
	first, last := r.repeat.Rounds[0], r.repeat.Rounds[len(r.repeat.Rounds)-1]
	from := first.Go
	if first.Changed {
		from = first.Begin
	}
	r.repeat.Total = time.Duration(last.End - from)
	r.result.Repeats = append(r.result.Repeats, r.repeat)
	errs := []error{r.event("collective", fmt.Sprintf("%s of %d GPUs: predicted %v, measured %v; transfers are metered, no data is moved",
		r.Plan.Schedule.Algorithm, r.Plan.Schedule.GPUs, round(seconds(r.Plan.Total)), round(r.repeat.Total)))}
	for i, x := range r.repeat.Rounds {
		if x.Changed || i < mostEvents {
			errs = append(errs, r.event("round", x.text()))
		}
	}
	return errors.Join(errs...)
}

// text says what a round was, with the times of a change since it was begun.
func (x Round) text() string {
	text := fmt.Sprintf("round %d on %s took %v, predicted %v", x.Number, x.Topology, round(x.Measured), round(x.Predicted))
	if x.Changed {
		since := func(ns int64) time.Duration { return round(time.Duration(ns - x.Begin)) }
		text += fmt.Sprintf("; rewired in %v: command after %v, ack %v, light %v, go %v",
			round(x.Switching), since(x.Command), since(x.Ack), since(x.Light), since(x.Go))
	}
	return fmt.Sprintf("%s; t_go %d ns, t_end %d ns", text, x.Go, x.End)
}

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// seconds is a time in seconds as a duration; what is out of its range is at its end.
func seconds(s float64) time.Duration {
	if ns := s * 1e9; ns < math.MaxInt64 {
		return time.Duration(math.Round(ns))
	}
	return math.MaxInt64
}
