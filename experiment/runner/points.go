package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
)

// points is the work of Run: all points that are left, in the order of the plan.
func (s *session) points(ctx context.Context) error {
	if s.File.Finally == nil { // which every experiment has
		return errors.New("its experiment file cannot be read by this version of ocslab, so hooks, waits and limits are not known: go on with the version that began it")
	}
	if len(s.done) == 0 {
		if err := s.hooks(ctx, plan.BeforeRun, s.File.Hooks.BeforeRun, nil, nil); err != nil {
			return err
		}
	}
	for _, c := range s.Plan.Conditions { // a rule may have been met just before a kill
		if err := s.stopEarly(c.Number); err != nil {
			return err
		}
	}
	for i := range s.Plan.Points {
		p := &s.Plan.Points[i]
		if s.done[p.ID] || s.dropped[p.ID] {
			continue
		}
		if err := s.persist(ctx, i); err != nil {
			return err
		}
		if err := s.stopEarly(p.Condition); err != nil {
			return err
		}
	}
	return s.hooks(ctx, plan.AfterRun, s.File.Hooks.AfterRun, nil, nil)
}

// persist does the i-th point of the plan, and again as often as failures are tolerated.
func (s *session) persist(ctx context.Context, i int) error {
	p := &s.Plan.Points[i]
	for {
		if err := s.gate(); err != nil {
			return err
		}
		s.point = p
		err := experiment.Guard(func() error { return s.try(ctx, i) })
		if err == nil {
			s.point, s.failures = nil, 0
			return nil
		}
		err = fmt.Errorf("point %d%s: %w", p.ID, about(p, s.Plan.Condition(p.Condition)), err)
		if unrecorded := s.abandon(err); unrecorded != nil {
			return and(err, unrecorded)
		}
		var failed *benchError
		if !errors.As(err, &failed) || s.failures >= s.Tolerate {
			return err
		}
		s.failures++
		unclosed := s.closeBench() // as is to be expected when a switch is lost
		text := fmt.Sprintf("%v; the testbed is opened anew and the point tried again (failure %d in a row, %d are tolerated)", and(err, unclosed), s.failures, s.Tolerate)
		if err := s.event("failed", text); err != nil {
			return err
		}
		s.expectSetUps(i)
		s.point = nil
	}
}

// about tells for people what a point is.
func about(p *plan.Point, c *plan.Condition) string {
	what := fmt.Sprintf("repeat %d", p.Repeat)
	if p.Null {
		what = "null toggle"
	}
	if c.Label != "" {
		what = c.Label + ", " + what
	}
	return " (" + what + ")"
}

// try does the i-th point of the plan.
func (s *session) try(ctx context.Context, i int) error {
	p := &s.Plan.Points[i]
	c := s.Plan.Condition(p.Condition)
	if s.bench == nil || plan.NeedsSetup(s.on, c) {
		if err := s.setUp(ctx, i, c); err != nil {
			return err
		}
	}
	s.begun = time.Now()
	defer func() { s.begun = time.Time{} }()
	if err := s.hooks(ctx, plan.BeforePoint, s.File.Hooks.BeforePoint, p, c); err != nil {
		return err
	}
	if err := s.approach(ctx, c); err != nil {
		return err
	}
	if err := s.Writer.BeginPoint(*p); err != nil {
		return &recordError{"begin the point", err}
	}
	s.open, s.fresh = true, nil
	if err := s.measure(ctx, p, c); err != nil {
		return err
	}
	if err := s.Writer.FinishPoint(); err != nil {
		return &recordError{"record the point", err}
	}
	s.open = false
	s.done[p.ID] = true
	s.count(*p)
	s.marks[p.Condition] = append(s.marks[p.Condition], s.fresh...)
	err := s.hooks(ctx, plan.AfterPoint, s.File.Hooks.AfterPoint, p, c)
	s.forecast.remove(kindOf(*p))
	s.forecast.measured(kindOf(*p), time.Since(s.begun))
	s.begun = time.Time{}
	s.tell("")
	return err
}

// setUp opens a testbed for the conditions that share that of c, in place of the one that
// is open, runs the hooks for it, and warms it up.
func (s *session) setUp(ctx context.Context, i int, c *plan.Condition) error {
	if err := s.closeBench(); err != nil {
		return err
	}
	s.expectSetUps(i)
	s.tell("setting up")
	var share []plan.Condition
	var numbers []int
	for _, other := range s.Plan.Conditions {
		if other.Setup == c.Setup {
			share, numbers = append(share, other), append(numbers, other.Number)
		}
	}
	if err := s.openBench(ctx, share); err != nil {
		return err
	}
	if err := s.hooks(ctx, plan.BeforeSetup, s.File.Hooks.Setup, nil, c); err != nil {
		return err
	}
	set := s.bench.Setup()
	set.Session, set.Conditions = s.number, numbers
	var remarks []error
	if s.Calibrations != nil {
		set.Calibrations, remarks = s.Calibrations(set)
	}
	if err := s.Writer.Setup(set); err != nil {
		return &recordError{"record the set-up", err}
	}
	if err := s.remark(set.Calibrations, remarks); err != nil {
		return err
	}
	if s.Plan.WarmUps > 0 {
		if err := s.warmUp(ctx, c); err != nil {
			return err
		}
	}
	s.on = c
	s.expectSetUps(i)
	return nil
}

// remark records what is wrong with calibrations: of each once, though a testbed may be set up
// often.
func (s *session) remark(found []runs.Calibration, remarks []error) error {
	once := func(key, kind, text string) error {
		if text == "" || s.remarked[key] {
			return nil
		}
		s.remarked[key] = true
		return s.event(kind, text)
	}
	for _, c := range found {
		if err := once(c.String(), "calibration-stale", c.Remark()); err != nil {
			return err
		}
	}
	for _, r := range remarks {
		if err := once(r.Error(), "calibration-damaged", r.Error()); err != nil {
			return err
		}
	}
	return nil
}

// warmUp goes through the sequence of c as often as the plan says, unrecorded.
func (s *session) warmUp(ctx context.Context, c *plan.Condition) error {
	if err := s.approach(ctx, c); err != nil {
		return err
	}
	for lap := range s.Plan.WarmUps {
		if err := s.gate(); err != nil {
			return err
		}
		s.tell(fmt.Sprintf("warming up, lap %d of %d", lap+1, s.Plan.WarmUps))
		for k := range c.Maps {
			if err := s.rest(ctx, c); err != nil {
				return err
			}
			if _, err := s.move(ctx, 0, c, (k+1)%len(c.Maps)); err != nil {
				return err
			}
		}
	}
	return nil
}

// approach brings the light to where a lap of c begins.
func (s *session) approach(ctx context.Context, c *plan.Condition) error {
	if !plan.NeedsApproach(s.at, c) {
		return nil
	}
	s.tell("to " + c.Sequence[0] + ", where the sequence begins")
	_, err := s.move(ctx, 0, c, 0)
	return err
}

// measure does the reconfigurations of a point and records them.
func (s *session) measure(ctx context.Context, p *plan.Point, c *plan.Condition) error {
	for k := range p.Reconfigurations(c) {
		r := runs.Reconfiguration{
			Number: p.First + k, Point: p.ID, Condition: p.Condition, Repeat: p.Repeat, Null: p.Null, Session: s.number,
			From: c.Sequence[k], To: c.Sequence[(k+1)%len(c.Sequence)],
		}
		if p.Null {
			r.To = r.From
		}
		s.tell(step(r))
		if err := s.rest(ctx, c); err != nil {
			return err
		}
		if err := s.reconfigure(ctx, c, (k+1)%len(c.Maps), r); err != nil {
			return err
		}
	}
	return nil
}

// step tells for people what a reconfiguration does.
func step(r runs.Reconfiguration) string {
	if r.Null {
		return "null toggle: nothing is moved"
	}
	return r.From + " to " + r.To
}

// stopEarly drops the repeats of a condition that are left if the stop rule is met.
func (s *session) stopEarly(condition int) error {
	rule, n := s.File.Stop, s.repeats[condition]
	if rule == nil || s.Enough == nil || n == s.judged[condition] || n < cmp.Or(rule.After, plan.DefaultAfter) {
		return nil
	}
	s.judged[condition] = n
	if !s.Enough(*rule, s.marks[condition], s.Plan.Seed) {
		return nil
	}
	dropped := 0
	for _, p := range s.Plan.Points {
		if p.Condition != condition || p.Null || s.done[p.ID] || s.dropped[p.ID] {
			continue
		}
		if err := s.Writer.DropPoint(p.ID, "the stop rule is met"); err != nil {
			return &recordError{fmt.Sprintf("drop point %d", p.ID), err}
		}
		s.dropped[p.ID] = true
		s.forecast.remove(kindOf(p))
		dropped++
	}
	if dropped == 0 {
		return nil
	}
	s.expectSetUps(0)
	c := s.Plan.Condition(condition)
	text := fmt.Sprintf("%v is known well enough after %d repeats of condition %d", rule.When, n, condition)
	if c.Label != "" {
		text += " (" + c.Label + ")"
	}
	return s.event("stopped-early", fmt.Sprintf("%s: its last %d are not done", text, dropped))
}

// gate lets a run go on between two points, or says why it shall end. It waits while there
// is a pause.
func (s *session) gate() error {
	if s.untold != nil {
		return s.untold
	}
	wait, end := s.control.pass()
	if wait == nil {
		return end
	}
	began := time.Now()
	err := s.event("paused", "the run was paused")
	for wait != nil && err == nil {
		s.tell("")
		<-wait
		wait, end = s.control.pass()
	}
	if err == nil {
		err = s.event("continued", fmt.Sprintf("the pause ended after %v", time.Since(began).Round(time.Millisecond)))
	}
	return and(end, err)
}

// recordError is a failure to record. The points before it are kept.
type recordError struct {
	what string
	err  error
}

func (e *recordError) Error() string { return e.what + ": " + e.err.Error() }
func (e *recordError) Unwrap() error { return e.err }
