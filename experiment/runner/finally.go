package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/internal/pause"
)

// Bounds of finally: of the light as a whole, of one try, and of what does not return when
// its time is over. Hooks have their own.
const (
	lightTime = 30 * time.Second
	tryTime   = 12 * time.Second
	stuckTime = 5 * time.Second
)

// ErrDark is for Light to return when there is to be no light for now: it is not asked again.
var ErrDark = errors.New("the light is left dark")

// betweenTries is how long is waited before the light is tried again: a switch that has
// hung up may be back.
var betweenTries = [...]time.Duration{time.Second, 3 * time.Second}

// finally puts the light where the experiment wants it left and runs the hooks for the end,
// all of them. It does so whatever the context says and whatever has happened. It reports
// whether the light is there, and what went wrong.
func (s *session) finally(ctx context.Context) (restored bool, err error) {
	ctx = context.WithoutCancel(ctx)
	s.point = nil
	s.tell("putting the light back")
	if dark := s.light(ctx); dark != nil {
		err = and(err, fmt.Errorf("the light is not where it should be left: %w; when the switch can be reached, ocslab runs finish %s puts it there", dark, s.Writer.ID()))
		err = and(err, experiment.Guard(func() error { return s.event("finally", dark.Error()) }))
	} else {
		restored = true
	}
	if s.File.Finally == nil {
		return restored, err
	}
	for _, h := range s.File.Finally.Hooks {
		err = and(err, experiment.Guard(func() error { return s.hook(ctx, plan.AtEnd, h, nil, nil) }))
	}
	return restored, err
}

// light puts the light where it is wanted, in three tries.
func (s *session) light(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lightTime, fmt.Errorf("the time for that, %v, is over", lightTime))
	defer cancel()
	for try := 0; ; try++ {
		err := s.tryLight(ctx)
		if err == nil {
			return nil
		}
		var stuck *stuckError
		if try == len(betweenTries) || errors.As(err, &stuck) || errors.Is(err, ErrDark) {
			return err // a second one must not come between
		}
		if pause.For(ctx, betweenTries[try]) != nil {
			return err
		}
	}
}

func (s *session) tryLight(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, tryTime, fmt.Errorf("it took longer than %v", tryTime))
	defer cancel()
	want := s.Plan.Finally
	if s.Plan.Exact && !s.complete() {
		want = nil // where a sequence leads to is nothing without the steps before
	}
	_, err := within(ctx, stuckTime, "putting the light back", func(struct{}, error) {}, func() (struct{}, error) {
		return struct{}{}, s.Light(ctx, want)
	})
	return err
}
