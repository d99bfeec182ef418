package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/calibration/clock"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// session is the work of one process on a run. It is of the goroutine of Run.
type session struct {
	*Runner
	number int // as the recorder has given it, 0 before

	done, dropped map[int]bool // points, by ID
	repeats       map[int]int  // that are done, by condition
	marks         map[int][]timeline.Mark
	judged        map[int]int // how many repeats there were when Enough was asked

	bench  Bench                    // nil: none is open
	clocks map[string][]clock.Batch // of hosts with clocks of their own, see askClocks
	on     *plan.Condition          // that the bench was opened for
	at     map[string]ocs.Map
	rests  time.Time // since when the light has not been moved

	point    *plan.Point     // that is under way
	begun    time.Time       // when that was
	open     bool            // the recorder has begun it
	fresh    []timeline.Mark // of it, for the stop rule
	failures int             // of the bench, in a row
	urgent   bool            // the run was aborted or has failed: the light goes first

	forecast forecast
	setUps   time.Duration // what set-ups are left will take
	untold   error         // why Progress is told nothing more

	remarked map[string]bool // what was said of calibrations
}

func newSession(r *Runner) *session {
	return &session{
		Runner: r,
		done:   map[int]bool{}, dropped: map[int]bool{}, repeats: map[int]int{}, marks: map[int][]timeline.Mark{}, judged: map[int]int{}, remarked: map[string]bool{},
	}
}

// run does the work and all that comes after it, however the work ends.
func (s *session) run(ctx context.Context, work func(*session, context.Context) error) (runs.Summary, error) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	if err := s.control.begin(cancel); err != nil {
		return runs.Summary{}, err
	}
	unlisten := s.listen(ctx)
	err := experiment.Guard(func() error {
		if err := s.begin(); err != nil {
			return err
		}
		return work(s, inner)
	})
	if err == nil {
		err = s.untold
	}
	unlisten()
	s.control.enter(leaving)
	s.urgent = err != nil && !errors.Is(err, ErrStop)
	left := experiment.Guard(s.closeBench)
	restored, undone := s.finally(ctx)
	left = and(left, undone)
	summary, unrecorded := s.conclude(err, restored, left)
	s.control.enter(ended)
	left = and(left, unrecorded)
	s.tell("")
	if s.untold != nil && !errors.Is(err, s.untold) {
		left = and(left, s.untold)
	}
	return summary, s.whole(err, left, restored)
}

// begin takes up what is known of the run and records that a session begins.
func (s *session) begin() error {
	for _, p := range s.Plan.Points {
		c := s.Plan.Condition(p.Condition)
		switch {
		case c == nil:
			return fmt.Errorf("the plan is damaged: point %d is of condition %d, which it does not have", p.ID, p.Condition)
		case len(c.Maps) == 0 || len(c.Maps) != len(c.Sequence):
			return fmt.Errorf("the plan is damaged: condition %d has %d configurations and maps of %d", c.Number, len(c.Sequence), len(c.Maps))
		case s.Done[p.ID]:
			s.done[p.ID] = true
			s.count(p)
		case s.Dropped[p.ID]:
			s.dropped[p.ID] = true
		default:
			s.forecast.add(kindOf(p), planned(p, c, time.Duration(s.Plan.Window)))
		}
	}
	s.expectSetUps(0)
	s.sortMarks()
	number, err := s.Writer.Session(s.Session)
	if err != nil {
		return &recordError{"record the session", err}
	}
	s.number = number
	return nil
}

// count counts a point that is done.
func (s *session) count(p plan.Point) {
	if !p.Null {
		s.repeats[p.Condition]++
	}
}

// sortMarks keeps the marks of finished repeats by condition, for the stop rule.
func (s *session) sortMarks() {
	if s.File.Stop == nil || s.Enough == nil || len(s.Marks) == 0 {
		return
	}
	of := map[int]int{} // condition by reconfiguration
	for _, p := range s.Plan.Points {
		if s.done[p.ID] && !p.Null {
			for k := range p.Reconfigurations(s.Plan.Condition(p.Condition)) {
				of[p.First+k] = p.Condition
			}
		}
	}
	for _, m := range s.Marks {
		if c, ok := of[m.Reconfiguration]; ok {
			s.marks[c] = append(s.marks[c], m)
		}
	}
}

// none is the work of Finish.
func (s *session) none(context.Context) error {
	if s.complete() {
		return nil
	}
	return fmt.Errorf("%w: it was finished without the rest of its points", ErrStop)
}

// complete reports whether no point is left.
func (s *session) complete() bool { return len(s.done)+len(s.dropped) >= len(s.Plan.Points) }

// abandon gives up the point that is under way, if there is one, for what has gone wrong.
func (s *session) abandon(why error) error {
	if !s.open {
		return nil
	}
	s.open = false
	err := experiment.Guard(func() error { return s.Writer.AbandonPoint(why.Error()) })
	var unrecorded *recordError
	if err == nil || errors.As(why, &unrecorded) {
		return nil // it is said already that nothing can be recorded
	}
	return &recordError{fmt.Sprintf("abandon point %d", s.point.ID), err}
}

// event records something that a reader of the report should know.
func (s *session) event(kind, text string) error {
	e := runs.Event{Kind: kind, Session: s.number, Wall: time.Now().UTC(), Text: text}
	if s.point != nil {
		e.Point = s.point.ID
	}
	if err := s.Writer.Event(e); err != nil {
		return &recordError{fmt.Sprintf("record an event (%s)", kind), err}
	}
	return nil
}

// conclude records how the run has ended.
func (s *session) conclude(err error, restored bool, left error) (runs.Summary, error) {
	sum := runs.Summary{
		Format: runs.Format, Run: s.Writer.ID(), State: runs.Done, Ended: time.Now().UTC(),
		Points: len(s.done), Planned: len(s.Plan.Points), Restored: restored,
	}
	reason := string(runs.Done)
	if err != nil {
		sum.State, sum.Reason, reason = runs.Failed, err.Error(), err.Error()
		if errors.Is(err, ErrStop) || errors.Is(err, ErrAbort) {
			sum.State = runs.Stopped
		}
	}
	if left != nil {
		sum.Finally = left.Error()
	}
	var failed error
	note := func(what string, fn func() error) {
		if err := experiment.Guard(fn); err != nil {
			failed = and(failed, fmt.Errorf("%s: %w", what, err))
		}
	}
	var p *experiment.Panic
	if errors.As(errors.Join(err, left), &p) {
		note("record the panic", func() error { return s.event("panic", fmt.Sprintf("%v\n%s", p, p.Stack)) })
	}
	if s.Verdict != nil && len(s.done) > 0 {
		note("judge the limits", func() (err error) { sum.Verdict, err = s.Verdict(); return err })
	}
	note("record the end of the session", func() error { return s.Writer.EndSession(reason) })
	note("write the summary", func() error { return s.Writer.Finish(sum) })
	note("close the run", s.Writer.Close)
	return sum, failed
}

// whole is what Run returns: what ended the work, what else went wrong, and how to go on.
func (s *session) whole(err, left error, restored bool) error {
	id := s.Writer.ID()
	if err != nil && s.Plan.Exact {
		err = fmt.Errorf("%w; %d of %d repeats are kept: %s", err, len(s.done), len(s.Plan.Points), s.Plan.GoOn(id, restored))
	} else if err != nil && !s.complete() {
		err = fmt.Errorf("%w; %d of %d points are kept: ocslab runs resume %s goes on from there", err, len(s.done), len(s.Plan.Points), id)
	} else if err != nil {
		err = fmt.Errorf("%w; all points are kept: ocslab runs resume %s does what is left", err, id)
	}
	return and(err, left)
}
