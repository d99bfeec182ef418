package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// without returns calls without those of the given names.
func without(calls []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(c string) bool {
		first, _, _ := strings.Cut(c, " ")
		return slices.Contains(names, first)
	})
}

// Ensure the order of all that is done.
func TestRunner_Order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(3, 1)
		sum, err := w.runner(p).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		point := func(id, first int) []string {
			return []string{
				"hook before-point", fmt.Sprint("begin ", id),
				"truth 0", fmt.Sprintf("move %d pp", first), fmt.Sprint("truth ", first), fmt.Sprint("reconfiguration ", first),
				"truth 0", fmt.Sprintf("move %d dp", first+1), fmt.Sprint("truth ", first+1), fmt.Sprint("reconfiguration ", first+1),
				fmt.Sprint("finish-point ", id), "hook after-point",
			}
		}
		null := func(id, first int) []string {
			return []string{
				"hook before-point", fmt.Sprint("begin ", id), "truth 0", fmt.Sprint("null ", first), fmt.Sprint("truth ", first), fmt.Sprint("reconfiguration ", first),
				fmt.Sprint("finish-point ", id), "hook after-point",
			}
		}
		setUp := func(n int) []string {
			return []string{fmt.Sprint("open set-up ", n), "hook setup", "bench-setup", "record-setup", "move 0 dp", "move 0 pp", "move 0 dp"}
		}
		want := slices.Concat(
			[]string{"session", "hook before-run"},
			setUp(0), point(1, 1), point(2, 3), []string{"bench-close"},
			setUp(1), point(3, 5), []string{"bench-close"},
			setUp(0), null(4, 7), null(5, 8), []string{"bench-close"},
			setUp(1), null(6, 9),
			[]string{"hook after-run", "bench-close", "light found", "hook finally-one", "hook finally-two", "verdict", "end-session", "summary", "close"},
		)
		got := without(w.calls, "progress", "event", "mark", "record-truth", "expected", "note", "sample")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		wantSum := runs.Summary{
			Format: runs.Format, Run: "20261122T101500-test-3f2a", State: runs.Done, Ended: time.Now().UTC(),
			Points: 6, Planned: 6, Verdict: "pass", Restored: true,
		}
		if diff := cmp.Diff(wantSum, sum); diff != "" {
			t.Errorf("summary (-want +got):\n%s", diff)
		}
	})
}

// Ensure that what a move came to is recorded whole.
func TestRunner_Records(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(1, 1)
		r := w.runner(p)
		begun := time.Now().UTC()
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := len(w.recorded), 3; got != want {
			t.Fatalf("%d reconfigurations are recorded, want %d", got, want)
		}
		got := w.recorded[0]
		if got.Wall.Before(begun) || got.MonoNS != timeline.HostAxis().NS(got.Wall.In(time.Local)) && got.MonoNS == 0 {
			t.Errorf("it began %v (%d ns)", got.Wall, got.MonoNS)
		}
		got.Wall, got.MonoNS, got.PatienceNS = time.Time{}, 0, 0
		want := runs.Reconfiguration{
			Number: 1, Point: 1, Condition: 1, Repeat: 1, Session: 1, From: "dp", To: "pp", Removed: dp, Added: pp,
			Held: []string{"a/c"}, Unresolved: []string{"a/d: no monitor"}, Readings: 1,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reconfiguration (-want +got):\n%s", diff)
		}
		if last := w.recorded[2]; !last.Null || last.From != "dp" || last.To != "dp" {
			t.Errorf("the null toggle is recorded as %+v", last)
		}
		var sources []string
		for _, m := range w.marks[:3] {
			sources = append(sources, m.Source)
		}
		if want := []string{"driver", "driver", "counters+netlink"}; !slices.Equal(sources, want) {
			t.Errorf("sources of the marks are %v, want %v", sources, want)
		}
		if got, want := w.setups[0].Conditions, []int{1}; !slices.Equal(got, want) || w.setups[0].Session != 1 {
			t.Errorf("the set-up is recorded as %+v", w.setups[0])
		}
		if w.count("note") != 3 || w.count("expected") != 3 || w.count("sample") != 3 {
			t.Errorf("%d notes, %d expectations, %d samples, want 3 of each", w.count("note"), w.count("expected"), w.count("sample"))
		}
	})
}

// Ensure that the time between two moves is the dwell time, however it is spent.
func TestRunner_Dwell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(1, 3)
		r := w.runner(p)
		r.SetHooks(func(ctx context.Context, words []string) error {
			if words[0] == "before-point" {
				return sleep(ctx, 5*time.Millisecond)
			}
			return nil
		})
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < 6; i++ {
			apart := w.recorded[i].Wall.Sub(w.recorded[i-1].Wall)
			if want := 30 * time.Millisecond; apart != want { // the move takes 10 ms
				t.Errorf("reconfigurations %d and %d are %v apart, want %v", i, i+1, apart, want)
			}
		}
	})
}

// Ensure that a pause is rest, comes after the point, and is told.
func TestRunner_Pause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(1, 2)
		r := w.runner(p)
		var states []runner.State
		r.Progress = func(p runner.Progress) {
			if p.Point == 1 && p.Step == "dp to pp" && r.State() == runner.Running {
				r.Pause()
			}
			if len(states) == 0 || states[len(states)-1] != p.State {
				states = append(states, p.State)
			}
		}
		ended := make(chan error)
		go func() { _, err := r.Run(t.Context()); ended <- err }()
		time.Sleep(time.Minute)
		if got := r.State(); got != runner.Paused {
			t.Fatalf("the run is %s, want it paused", got)
		}
		if got := len(w.done); got != 1 {
			t.Errorf("%d points are done, want 1", got)
		}
		r.Continue()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		want := []runner.State{runner.Running, runner.Pausing, runner.Paused, runner.Running, runner.Leaving, runner.Ended}
		if !slices.Equal(states, want) {
			t.Errorf("states are %v, want %v", states, want)
		}
		first, second := w.recorded[1].Wall, w.recorded[2].Wall
		if apart := second.Sub(first); apart > time.Minute+time.Second/10 {
			t.Errorf("the pause of a minute kept reconfigurations %v apart", apart)
		}
		if got := w.event("continued"); len(got) != 1 || !strings.HasPrefix(got[0], "the pause ended after 59.") {
			t.Errorf("events are %q", got)
		}
	})
}

// Ensure that what is sent through the store is done.
func TestRunner_Control(t *testing.T) {
	for _, c := range []struct {
		send  []runs.Control
		state runs.State
		match error
	}{
		{[]runs.Control{runs.Pause, runs.Continue}, runs.Done, nil},
		{[]runs.Control{runs.Stop}, runs.Stopped, runner.ErrStop},
		{[]runs.Control{runs.Pause, runs.Stop}, runs.Stopped, runner.ErrStop},
		{[]runs.Control{runs.Abort}, runs.Stopped, runner.ErrAbort},
		{[]runs.Control{runs.Pause, runs.Abort}, runs.Stopped, runner.ErrAbort},
		{[]runs.Control{"later"}, runs.Done, nil}, // of a version to come
	} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(), newPlan(2, 5)
			w.sent = c.send
			sum, err := w.runner(p).Run(t.Context())
			if sum.State != c.state || !errors.Is(err, c.match) || !sum.Restored {
				t.Errorf("after %v: %+v, error %v", c.send, sum, err)
			}
		})
	}
}

// Ensure that a run whose experiment file cannot be understood is not measured otherwise than
// planned, and that its light can still be put back.
func TestRunner_Unreadable(t *testing.T) {
	for finish, state := range map[bool]runs.State{false: runs.Failed, true: runs.Stopped} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(), newPlan(1, 2)
			r := w.runner(p)
			r.File = &plan.File{Name: "of another version"}
			w.light = pp
			work := r.Run
			if finish {
				work = r.Finish
			}
			sum, err := work(t.Context())
			if err == nil || sum.State != state || !sum.Restored || name(w.light) != "found" || w.count("open") > 0 {
				t.Errorf("finish %t: %+v, error %v, light at %s", finish, sum, err, name(w.light))
			}
		})
	}
}

// Ensure what the ends of a context mean.
func TestRunner_Context(t *testing.T) {
	lunch := errors.New("lunch")
	for _, c := range []struct {
		cause, match error
		abandons     bool
	}{
		{runner.ErrStop, runner.ErrStop, false},
		{fmt.Errorf("%w (interrupt)", runner.ErrStop), runner.ErrStop, false},
		{runner.ErrAbort, runner.ErrAbort, true},
		{lunch, lunch, true},
		{nil, context.Canceled, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(), newPlan(1, 3)
			ctx, cancel := context.WithCancelCause(t.Context())
			r := w.runner(p)
			r.Progress = func(p runner.Progress) {
				if p.Point == 2 && p.Step == "dp to pp" {
					cancel(c.cause)
				}
			}
			sum, err := r.Run(ctx)
			if !errors.Is(err, c.match) || sum.State != runs.Stopped {
				t.Errorf("%v: the run is %s, error %v", c.cause, sum.State, err)
			}
			if got := w.count("abandon") == 1; got != c.abandons {
				t.Errorf("%v: abandons are %v, want %v", c.cause, got, c.abandons)
			}
			if name(w.light) != "found" || !sum.Restored {
				t.Errorf("%v: the light is at %s", c.cause, name(w.light))
			}
		})
	}
}

// Ensure that what is asked for before the run begins is not forgotten.
func TestRunner_AskedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for match, ask := range map[error]func(*runner.Runner){runner.ErrStop: (*runner.Runner).Stop, runner.ErrAbort: (*runner.Runner).Abort} {
			w := newWorld()
			r := w.runner(newPlan(1, 3))
			ask(r)
			if _, err := r.Run(t.Context()); !errors.Is(err, match) || len(w.done) > 0 || w.count("light") != 1 {
				t.Errorf("%d points, error %v, calls %v", len(w.done), err, w.calls)
			}
		}
	})
}

// Ensure that the rule ends the repeats of a condition, of a resumed run, too.
func TestRunner_StopsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(2, 12)
		run := func(p *plan.Plan) (runs.Summary, []int) {
			r := w.runner(p)
			r.File.Stop = &plan.Stop{When: plan.Statistic{Stage: timeline.CarrierUp, Of: plan.P50}, After: 4}
			var asked []int // reconfigurations
			r.Enough = func(rule plan.Stop, marks []timeline.Mark, seed uint64) bool {
				numbers := map[int]bool{}
				for _, m := range marks {
					numbers[m.Reconfiguration] = true
				}
				asked = append(asked, len(numbers))
				return len(numbers) >= 10 && numbers[1] // of the first condition
			}
			if w.at == 0 {
				r.Progress = func(p runner.Progress) {
					if p.Done == 6 {
						r.Stop()
					}
				}
			}
			sum, _ := r.Run(t.Context())
			return sum, asked
		}
		if sum, asked := run(p); sum.State != runs.Stopped || len(asked) > 0 {
			t.Fatalf("%+v, asked with %v", sum, asked)
		}
		w.at = -1
		sum, asked := run(p)
		if want := []int{8, 8, 10, 10, 12, 14, 16, 18, 20, 22, 24}; !slices.Equal(asked, want) {
			t.Errorf("asked with %v reconfigurations, want %v", asked, want)
		}
		if len(w.dropped) != 7 || sum.State != runs.Done || sum.Points != 2*12-7+2 {
			t.Errorf("%d points dropped, summary %+v", len(w.dropped), sum)
		}
		if got := w.event("stopped-early"); len(got) != 1 || !strings.Contains(got[0], "after 5 repeats of condition 1 (n=1): its last 7 are not done") {
			t.Errorf("events are %q", got)
		}
	})
}

// Ensure that failures of the bench are tolerated as often as was said, and others not.
func TestRunner_Tolerate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			call     string
			tolerate int
			failures int
			ok       bool
		}{
			{"move 3 pp", 0, 1, false},
			{"move 3 pp", 2, 2, true},
			{"move 3 pp", 2, 3, false},
			{"open set-up 0", 1, 1, true},
			{"null 7", 1, 1, true},
			{"hook before-point", 2, 1, false},
			{"finish-point 2", 2, 1, false},
		} {
			w, p := newWorld(), newPlan(1, 3)
			r := w.runner(p)
			r.Tolerate = c.tolerate
			failed := 0
			w.every = func(call string) error {
				if call == c.call && failed < c.failures {
					failed++
					return errors.New("it is broken")
				}
				return nil
			}
			sum, err := r.Run(t.Context())
			if (err == nil) != c.ok || (sum.State == runs.Done) != c.ok || w.benches != 0 {
				t.Errorf("%+v: %+v, error %v", c, sum, err)
			}
			if c.ok && len(w.done) != 4 {
				t.Errorf("%+v: %d points are done", c, len(w.done))
			}
		}
	})
}

// Ensure that errors say what went wrong, what is kept, and what to do.
func TestRunner_Errors(t *testing.T) {
	const id = "20261122T101500-test-3f2a"
	for call, want := range map[string]string{
		"move 5 pp": "point 3 (n=1, repeat 3): move to pp: it is broken; 2 of 4 points are kept: ocslab runs resume " + id + " goes on from there",
		"null 7":    "point 4 (n=1, null toggle): null toggle: it is broken; 3 of 4 points are kept: ocslab runs resume " + id + " goes on from there",
		"open set-up 0": "point 1 (n=1, repeat 1): open the testbed: it is broken; 0 of 4 points are kept: ocslab runs resume " + id +
			" goes on from there",
		"finish-point 2": "point 2 (n=1, repeat 2): record the point: it is broken; 1 of 4 points are kept: ocslab runs resume " + id + " goes on from there",
		"hook after-run": `hook of after_run ["after-run"]: it is broken; all points are kept: ocslab runs resume ` + id + " does what is left",
		"light found": "the light is not where it should be left: it is broken; when the switch can be reached, ocslab runs finish " + id +
			" puts it there",
		"hook finally-one": `hook of finally ["finally-one"]: it is broken`,
		"summary":          "write the summary: it is broken",
		"verdict":          "judge the limits: it is broken",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.every = func(c string) error {
				if c == call {
					return errors.New("it is broken")
				}
				return nil
			}
			if _, err := w.runner(newPlan(1, 3)).Run(t.Context()); err == nil || err.Error() != want {
				t.Errorf("%s:\n got: %v\nwant: %s", call, err, want)
			}
		})
	}
}

// Ensure that a run can be finished without doing its points.
func TestRunner_Finish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(1, 3)
		w.light = pp
		sum, err := w.runner(p).Finish(t.Context())
		if !errors.Is(err, runner.ErrStop) || sum.State != runs.Stopped || !sum.Restored || name(w.light) != "found" || w.count("open") != 0 {
			t.Errorf("%+v, error %v, calls %v", sum, err, w.calls)
		}
		for _, point := range p.Points {
			w.done[point.ID] = []int{point.First}
		}
		if sum, err := w.runner(p).Finish(t.Context()); err != nil || sum.State != runs.Done {
			t.Errorf("with all points done: %+v, error %v", sum, err)
		}
	})
}

// Ensure that the light is left where the experiment says.
func TestRunner_FinallyConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPlan(1, 1)
		p.Finally = pp
		if _, err := w.runner(p).Run(t.Context()); err != nil || name(w.light) != "pp" {
			t.Errorf("the light is at %s, error %v", name(w.light), err)
		}
	})
}

// Ensure that a switch that is away for a while gets its light back.
func TestRunner_LostSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		failures := 2
		w.every = func(c string) error {
			if c == "light found" && failures > 0 {
				failures--
				return errors.New("connection refused")
			}
			return nil
		}
		sum, err := w.runner(newPlan(1, 1)).Run(t.Context())
		if err != nil || !sum.Restored || w.count("light") != 3 {
			t.Errorf("%+v, error %v, %d tries", sum, err, w.count("light"))
		}
	})
}

// Ensure that a Runner is not run twice.
func TestRunner_Once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.runner(newPlan(1, 1))
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Run(t.Context()); err == nil || w.count("session") != 1 {
			t.Errorf("it ran twice, error %v", err)
		}
	})
}

// Ensure that a damaged plan is an error, and that finally is carried out for it.
func TestRunner_DamagedPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, damage := range map[string]func(*plan.Plan){
			"no such condition": func(p *plan.Plan) { p.Points[0].Condition = 9 },
			"no maps":           func(p *plan.Plan) { p.Conditions[0].Maps = nil },
		} {
			w, p := newWorld(), newPlan(1, 1)
			damage(p)
			sum, err := w.runner(p).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "the plan is damaged") || !sum.Restored {
				t.Errorf("%s: %+v, error %v", what, sum, err)
			}
		}
	})
}

// Ensure that what is done is what the steps of the plan say.
func TestRunner_FollowsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, laps := range []int{0, 2} {
			w, p := newWorld(), newPlan(4, 3)
			p.WarmUps = laps
			p.Conditions[1].Sequence, p.Conditions[1].Maps = []string{"pp", "dp"}, []map[string]ocs.Map{pp, dp}
			r := w.runner(p)
			if _, err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			var want []string
			for s := range p.Steps(r.File, nil) {
				switch s.Kind {
				case plan.StepHook:
					want = append(want, "hook "+strings.Join(s.Hook, " "))
				case plan.StepSetup:
					want = append(want, "open "+p.Condition(s.Condition).Setup)
				case plan.StepApproach, plan.StepWarmUp, plan.StepMove:
					want = append(want, fmt.Sprintf("move %d %s", s.Number, name(s.Want)))
				case plan.StepNull:
					want = append(want, fmt.Sprint("null ", s.Number))
				case plan.StepFinally:
					want = append(want, "light found")
				}
			}
			var got []string
			for _, c := range w.calls {
				if first, _, _ := strings.Cut(c, " "); slices.Contains([]string{"hook", "open", "move", "null", "light"}, first) {
					got = append(got, c)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with %d laps (-steps +done):\n%s", laps, diff)
			}
		}
	})
}
