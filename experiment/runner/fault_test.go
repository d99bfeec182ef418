package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
)

var errBroken = errors.New("it is broken")

// faults are what can go wrong at a call, or be asked for then.
var faults = []struct {
	name string
	do   func(ctx context.Context, r *runner.Runner, cancel context.CancelCauseFunc, released <-chan struct{}) error
	// blocks: is for calls only that can be left behind, or are told to end.
	blocks bool
}{
	{"error", func(context.Context, *runner.Runner, context.CancelCauseFunc, <-chan struct{}) error {
		return errBroken
	}, false},
	{"panic", func(context.Context, *runner.Runner, context.CancelCauseFunc, <-chan struct{}) error {
		panic("the bench fell over")
	}, false},
	{"stop", func(_ context.Context, r *runner.Runner, _ context.CancelCauseFunc, _ <-chan struct{}) error {
		r.Stop()
		return nil
	}, false},
	{"abort", func(_ context.Context, r *runner.Runner, _ context.CancelCauseFunc, _ <-chan struct{}) error {
		r.Abort()
		return nil
	}, false},
	{"stop, then abort", func(_ context.Context, r *runner.Runner, _ context.CancelCauseFunc, _ <-chan struct{}) error {
		r.Stop()
		r.Abort()
		return nil
	}, false},
	{"context", func(_ context.Context, _ *runner.Runner, cancel context.CancelCauseFunc, _ <-chan struct{}) error {
		cancel(nil)
		synctest.Wait()
		return nil
	}, false},
	{"error and abort", func(_ context.Context, r *runner.Runner, _ context.CancelCauseFunc, _ <-chan struct{}) error {
		r.Abort()
		return errBroken
	}, false},
	{"pause", func(_ context.Context, r *runner.Runner, _ context.CancelCauseFunc, _ <-chan struct{}) error {
		r.Pause()
		time.AfterFunc(time.Minute, r.Continue)
		return nil
	}, false},
	{"pause, then abort", func(_ context.Context, r *runner.Runner, _ context.CancelCauseFunc, _ <-chan struct{}) error {
		r.Pause()
		time.AfterFunc(time.Minute, r.Abort)
		return nil
	}, false},
	{"block until told", func(ctx context.Context, r *runner.Runner, _ context.CancelCauseFunc, _ <-chan struct{}) error {
		time.AfterFunc(time.Minute, r.Abort)
		<-ctx.Done()
		return ctx.Err()
	}, true},
	{"block", func(_ context.Context, r *runner.Runner, _ context.CancelCauseFunc, released <-chan struct{}) error {
		time.AfterFunc(time.Minute, r.Abort)
		<-released
		return nil
	}, true},
}

// Ensure that, whatever goes wrong or is asked for at whichever call, finally is carried
// out, nothing is left open, what is recorded is true, and the run can be resumed.
func TestRunner_Faults(t *testing.T) {
	var calls []string
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		if _, err := w.runner(faultPlan()).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls = w.calls
	})
	tried := 0
	for at, call := range calls {
		first, _, _ := strings.Cut(call, " ")
		for _, f := range faults {
			canBlock := slices.Contains([]string{"open", "move", "null", "light", "bench-close"}, first)
			if f.blocks && !canBlock && (first != "hook" || f.name == "block") {
				continue
			}
			if f.name == "block until told" && first == "bench-close" { // has no context
				continue
			}
			silent := slices.Contains([]string{"progress", "truth", "bench-setup", "reconfiguration", "mark", "record-truth", "expected", "note", "sample"}, first)
			if silent && f.name != "panic" && f.name != "abort" {
				continue
			}
			tried++
			what := fmt.Sprintf("%s at call %d (%s)", f.name, at+1, call)
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(), faultPlan()
				w.at = at + 1
				r := w.runner(p)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				released := make(chan struct{})
				var hurt atomic.Bool
				w.fault = func(ctx context.Context) error {
					hurt.Store(true)
					return f.do(ctx, r, cancel, released)
				}
				sum, err := r.Run(ctx)
				stuck := f.name == "block"
				if !hurt.Load() {
					t.Errorf("%s: the call was not made", what)
				}
				w.check(t, what, r, sum, err, stuck)
				close(released)
				synctest.Wait()
				if w.benches != 0 {
					t.Errorf("%s: %d benches are open at the end", what, w.benches)
				}
				if stuck && first == "light" {
					return // whoever is stuck there may still move the light
				}
				w.at, w.misuse = 0, nil
				w.resume(t, what, p)
			})
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d faults at %d calls", tried, len(calls))
}

func faultPlan() *plan.Plan {
	p := newPlan(2, 1)
	p.Conditions[1].Setup = "another"
	return p
}

// check looks at what a run has left behind.
func (w *world) check(t *testing.T, what string, r *runner.Runner, sum runs.Summary, err error, stuck bool) {
	t.Helper()
	bad := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s\nsummary %+v\nerror %v\ncalls %s", what, fmt.Sprintf(format, args...), sum, err, strings.Join(w.calls, ", "))
	}
	for _, m := range w.misuse {
		if !stuck {
			bad("%s", m)
		}
	}
	if got := r.State(); got != runner.Ended {
		bad("its state is %s", got)
	}
	if got := name(w.light); sum.Restored != (got == "found") {
		bad("the light is at %s", got)
	}
	if !sum.Restored && (!stuck || !strings.Contains(what, "light")) {
		bad("finally was not carried out")
	}
	if got := w.count("light"); got < 1 || got > 2 {
		bad("the light was put back %d times", got)
	}
	for _, hook := range []string{"hook finally-one", "hook finally-two"} {
		if w.count(hook) != 1 {
			bad("%s ran %d times", hook, w.count(hook))
		}
	}
	if !stuck && w.benches != 0 || w.most > 1 {
		bad("%d benches are open, %d were at once", w.benches, w.most)
	}
	if n := len(w.calls); !slices.Equal(without(w.calls, "progress")[len(without(w.calls, "progress"))-3:], []string{"end-session", "summary", "close"}) {
		bad("the last of %d calls are not those that close the run", n)
	}
	if w.open != nil {
		bad("point %d is still open", w.open.ID)
	}
	if w.closed != 1 || len(w.sessions) != 1 {
		bad("the recorder was closed %d times, %d sessions were ended", w.closed, len(w.sessions))
	}
	if sum.Points != len(w.done) {
		bad("%d points are recorded", len(w.done))
	}
	if sum.State == runs.Done && len(w.done) != sum.Planned {
		bad("it is done with %d points", len(w.done))
	}
	if err == nil && (sum.State != runs.Done || !sum.Restored) {
		bad("there is no error")
	}
	if asked := errors.Is(err, runner.ErrStop) || errors.Is(err, runner.ErrAbort); asked != (sum.State == runs.Stopped) {
		bad("the error says otherwise than the summary")
	}
	if len(w.summaries) == 1 && w.summaries[0] != sum {
		bad("another summary was written: %+v", w.summaries[0])
	}
}

// resume goes on without faults and sees that all is there in the end, once.
func (w *world) resume(t *testing.T, what string, p *plan.Plan) {
	t.Helper()
	before := len(w.done)
	from := len(w.calls)
	sum, err := w.runner(p).Run(context.Background())
	if err != nil || sum.State != runs.Done || !sum.Restored {
		t.Errorf("%s: resumed: %+v, error %v", what, sum, err)
	}
	var begun int
	for _, c := range w.calls[from:] {
		if strings.HasPrefix(c, "begin ") {
			begun++
		}
	}
	if begun != len(p.Points)-before {
		t.Errorf("%s: %d points were done again or not at all", what, begun-(len(p.Points)-before))
	}
	for _, point := range p.Points {
		c := p.Condition(point.Condition)
		var want []int
		for k := range point.Reconfigurations(c) {
			want = append(want, point.First+k)
		}
		if !slices.Equal(w.done[point.ID], want) {
			t.Errorf("%s: point %d has reconfigurations %v, want %v", what, point.ID, w.done[point.ID], want)
		}
	}
	if len(w.misuse) > 0 {
		t.Errorf("%s: resumed: %v", what, w.misuse)
	}
}
