package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// benchError is a failure of the bench, which may pass.
type benchError struct {
	what string
	err  error
}

func (e *benchError) Error() string { return e.what + ": " + e.err.Error() }
func (e *benchError) Unwrap() error { return e.err }

// call calls the bench. When the run is aborted meanwhile, the error is the reason for
// that. A bench that does not return then is left behind, and closed should it ever do.
func call[T any](ctx context.Context, s *session, what string, fn func(Bench) (T, error)) (T, error) {
	b := s.bench
	v, err := within(ctx, stuckTime, what, func(T, error) { _ = b.Close() }, func() (T, error) { return fn(b) })
	if stuck := (*stuckError)(nil); errors.As(err, &stuck) {
		s.bench = nil
	}
	return v, told(ctx, what, err)
}

// told makes of an error of the bench what is told of it.
func told(ctx context.Context, what string, err error) error {
	var stuck *stuckError
	var panicked *experiment.Panic
	switch {
	case err == nil, errors.As(err, &stuck):
		return err
	case errors.As(err, &panicked):
		return fmt.Errorf("%s: %w", what, err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &benchError{what, err}
}

// openBench opens a testbed for conditions.
func (s *session) openBench(ctx context.Context, conditions []plan.Condition) error {
	late := func(b Bench, err error) {
		if err == nil {
			_ = b.Close()
		}
	}
	b, err := within(ctx, stuckTime, "opening the testbed", late, func() (Bench, error) { return s.Open(ctx, conditions) })
	if err == nil {
		s.bench, s.rests = b, time.Now()
		if err := s.askClocks(ctx, false); err != nil {
			return err
		}
	}
	return told(ctx, "open the testbed", err)
}

// closeBench closes what is open, if anything is.
func (s *session) closeBench() error {
	b := s.bench
	untold := s.askClocks(context.Background(), true)
	s.bench, s.on, s.at = nil, nil, nil
	if b == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stuckTime)
	defer cancel()
	_, err := within(ctx, stuckTime, "closing the testbed", func(struct{}, error) {}, func() (struct{}, error) { return struct{}{}, b.Close() })
	if err != nil {
		return and(fmt.Errorf("close the testbed: %w", err), untold)
	}
	return untold
}

// rest waits until the light has not been moved for as long as the condition wants. What
// went on meanwhile, a pause or hooks, counts as rest.
func (s *session) rest(ctx context.Context, c *plan.Condition) error {
	return pause.For(ctx, c.Settings.Dwell-time.Since(s.rests))
}

// move brings the light to the configuration of c with that index. After an error nobody
// knows where the light is; the bench is then closed, and what is opened next begins so.
func (s *session) move(ctx context.Context, number int, c *plan.Condition, to int) (experiment.Move, error) {
	mv, err := call(ctx, s, "move to "+c.Sequence[to], func(b Bench) (experiment.Move, error) {
		return b.Move(ctx, number, c.Maps[to], s.wait())
	})
	s.rests = time.Now()
	if err == nil {
		s.at = c.Maps[to]
	}
	return mv, err
}

// wait is what ends a reconfiguration.
func (s *session) wait() plan.Wait {
	if s.File.Wait == nil {
		return plan.Wait{Until: plan.UntilTraffic}
	}
	return *s.File.Wait
}

// reconfigure does one reconfiguration, or null toggle, and records what came of it.
func (s *session) reconfigure(ctx context.Context, c *plan.Condition, to int, r runs.Reconfiguration) error {
	s.bench.Truth(0) // what was before is of no reconfiguration
	began := time.Now()
	var mv experiment.Move
	var err error
	if r.Null {
		mv, err = call(ctx, s, "null toggle", func(b Bench) (experiment.Move, error) {
			return b.Null(ctx, r.Number, time.Duration(s.Plan.Window))
		})
	} else {
		mv, err = s.move(ctx, r.Number, c, to)
	}
	if err != nil {
		return err
	}
	took := time.Since(began)
	r.Wall, r.MonoNS = began.UTC(), timeline.HostAxis().NS(began)
	r.Removed, r.Added = map[string]ocs.Map{}, map[string]ocs.Map{}
	for name, report := range mv.Reports {
		if !report.Change.Empty() {
			r.Removed[name], r.Added[name] = report.Change.Remove, report.Change.Add
		}
	}
	r.Held, r.Unresolved, r.Readings, r.Busy, r.Dark = mv.Held, mv.Unresolved, mv.Readings, mv.Busy, mv.Dark
	marks, conflicts := timeline.Merge(mv.Marks)
	r.PatienceNS = int64(patience(r.MonoNS, took, marks, mv.Expected))
	return s.record(r, mv, marks, conflicts, s.bench.Truth(r.Number))
}

// record hands a reconfiguration to the recorder.
func (s *session) record(r runs.Reconfiguration, mv experiment.Move, marks []timeline.Mark, conflicts []timeline.Conflict, truth []timeline.Mark) error {
	w := s.Writer
	w.Reconfiguration(r)
	for _, m := range marks {
		w.Mark(m)
	}
	for _, m := range truth {
		w.Truth(m)
	}
	for _, e := range mv.Expected {
		w.Expected(e)
	}
	for _, n := range mv.Notes {
		w.Note(r.Number, n)
	}
	if s.File.Measure.Samples == nil || *s.File.Measure.Samples {
		for _, x := range samples(r.Number, mv.Samples) {
			w.Sample(x)
		}
	}
	for _, c := range conflicts {
		if err := s.event("conflict", c.Error()); err != nil {
			return err
		}
	}
	if s.File.Stop != nil && s.Enough != nil && !r.Null && len(r.Busy) == 0 {
		s.fresh = append(s.fresh, marks...)
	}
	return nil
}

// patience is how long after the command was watched for what did not come, at least: a
// move ends when it need not wait any longer, and light has less time than the rest.
func patience(began int64, took time.Duration, marks []timeline.Mark, expected []timeline.Expectation) time.Duration {
	type event struct {
		stage   timeline.Stage
		subject string
	}
	seen := map[event]bool{}
	sent := began
	for _, m := range marks {
		seen[event{m.Stage, m.Subject}] = true
		if m.Stage == timeline.Command {
			sent = max(sent, m.Latest)
		}
	}
	waited := max(took-time.Duration(sent-began), 0)
	for _, e := range expected {
		if (e.Stage == timeline.Light || e.Stage == timeline.Dark) && !seen[event{e.Stage, e.Subject}] {
			return min(waited, experiment.DefaultPatience)
		}
	}
	return waited
}
