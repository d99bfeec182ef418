package runner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/ocs"
)

// slow is a bench whose moves take a second more than the plan expects.
type slow struct{ *bench }

func (b slow) Move(ctx context.Context, number int, to map[string]ocs.Map, wait plan.Wait) (experiment.Move, error) {
	if err := sleep(ctx, time.Second); err != nil {
		return experiment.Move{}, err
	}
	return b.bench.Move(ctx, number, to, wait)
}

// Ensure that the time left is first that of the plan, then that which points have taken,
// and nothing in the end.
func TestRunner_TimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(1, 10)
		r := w.runner(p)
		open := r.Open
		r.Open = func(ctx context.Context, c []plan.Condition) (runner.Bench, error) {
			b, err := open(ctx, c)
			return slow{b.(*bench)}, err
		}
		at := map[int]runner.Progress{} // by points done
		when := map[int]time.Time{}
		r.Progress = func(p runner.Progress) {
			if _, ok := at[p.Done]; !ok && (p.Done == 0 || p.Step == "") {
				at[p.Done], when[p.Done] = p, time.Now()
			}
		}
		begun := time.Now()
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		const null = 70 * time.Millisecond // dwell and window
		// 10 points of 2 reconfigurations of 30 ms, a null toggle, a set-up with a lap.
		if got, want := at[0].Left, 10*2*30*time.Millisecond+null+300*time.Millisecond+2*30*time.Millisecond; got != want {
			t.Errorf("at the beginning %v are left, want %v", got, want)
		}
		if !when[0].Equal(begun) {
			t.Errorf("it was first told after %v", when[0].Sub(begun))
		}
		if got, want := at[2].Left, 8*2*30*time.Millisecond+null; got != want {
			t.Errorf("after two points %v are left, want %v", got, want)
		}
		for done := 3; done <= 10; done++ {
			if got, want := at[done].Left, ended.Sub(when[done]); got != want {
				t.Errorf("after %d points %v are left, want %v", done, got, want)
			}
		}
		if p := at[11]; p.Left != 0 || p.Total != 11 {
			t.Errorf("in the end: %+v", p)
		}
	})
}

// Ensure that the time left grows less while a point is under way, and not below nothing.
func TestRunner_TimeLeftInPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(1, 5)
		r := w.runner(p)
		var before, during time.Duration
		r.Progress = func(p runner.Progress) {
			if p.Left < 0 {
				t.Errorf("%v are left", p.Left)
			}
			if p.Point == 4 && p.Step == "dp to pp" {
				before = p.Left
			}
			if p.Point == 4 && p.Step == "pp to dp" {
				during = p.Left
			}
		}
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := before-during, 30*time.Millisecond; got != want {
			t.Errorf("a reconfiguration took %v off, want %v", got, want)
		}
	})
}

// Ensure that a panic of Progress ends the run, after the point and with its finally.
func TestRunner_ProgressPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(1, 5)
		r := w.runner(p)
		r.Progress = func(p runner.Progress) {
			if p.Point == 2 {
				panic("no terminal")
			}
		}
		sum, err := r.Run(t.Context())
		if err == nil || !sum.Restored || sum.Points != 2 || len(w.event("panic")) != 1 {
			t.Errorf("%+v, error %v", sum, err)
		}
	})
}
