package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/calibration/clock"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
)

// clockedBench is a bench with a host that has a clock of its own.
type clockedBench struct{ *bench }

func (b clockedBench) Clocks(context.Context) map[string][]clock.Exchange {
	_ = b.hit(context.Background(), "clocks")
	b.mu.Lock()
	defer b.mu.Unlock()
	at := int64(len(b.calls)) * 1_000_000
	return map[string][]clock.Exchange{"gpu1": {{Sent: at, Its: at + 10, Received: at + 20}}}
}

// The hosts are asked when a bench is opened and before it is closed; a run that was aborted or has failed
// puts the light back first, and says so.
func TestClocksWaitForTheLight(t *testing.T) {
	for what, c := range map[string]struct {
		at   func(r *runner.Runner) error // what the second move meets
		asks int
		want string
	}{
		"done":    {func(*runner.Runner) error { return nil }, 2, "host gpu1: its clock was"},
		"stopped": {func(r *runner.Runner) error { r.Stop(); return nil }, 2, "host gpu1: its clock was"},
		"aborted": {func(r *runner.Runner) error { r.Abort(); return nil }, 1, "not asked at the end, since the light"},
		"failed":  {func(*runner.Runner) error { return errors.New("boom") }, 1, "not asked at the end, since the light"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld()
			r := w.runner(newPlan(1, 2))
			open := r.Open
			r.Open = func(ctx context.Context, conditions []plan.Condition) (runner.Bench, error) {
				b, err := open(ctx, conditions)
				if err != nil {
					return nil, err
				}
				return clockedBench{b.(*bench)}, nil
			}
			moves := 0
			w.every = func(call string) error {
				if strings.HasPrefix(call, "move ") {
					if moves++; moves == 2 {
						return c.at(r)
					}
				}
				return nil
			}
			_, _ = r.Run(t.Context())
			if n := w.count("clocks"); n != c.asks {
				t.Errorf("asked %d times, want %d: %q", n, c.asks, w.calls)
			}
			if !slices.ContainsFunc(w.event("clock"), func(text string) bool { return strings.Contains(text, c.want) }) {
				t.Errorf("events %q, want %q", w.event("clock"), c.want)
			}
			if name(w.light) != "found" {
				t.Errorf("the light is left at %s", name(w.light))
			}
		})
	}
}
