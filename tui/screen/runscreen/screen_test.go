package runscreen_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/screen/runscreen"
	"github.com/ocslab/ocslab/tui/tuitest"
)

const experimentText = `name: two-speeds
about: How much of the outage is the switch, and how much is the firmware behind it?
sequence: [dp, pp]
parameters: {firmware: quick}
axes:
  - grid: {switching: [10ms, 200ms]}
repeats: 20
warm_ups: 1
order: interleaved
nulls: {count: 2, window: 500ms}
limits:
  - missing == 0
  - light_p50 < 220ms
  - carrier_p95 < 280ms
stop: {when: carrier_p50, within: 5%, after: 10}
finally: {light: restore}
`

const runID = "20261122T150011-two-speeds-3f2a"

// loaded is an experiment that was planned.
func loaded(t testing.TB) *live.Run {
	t.Helper()
	f, err := plan.Parse("experiments/two-speeds.yaml", []byte(experimentText))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Resolve(tuitest.Testbed().File, plan.Options{Emulated: true})
	if err != nil {
		t.Fatal(err)
	}
	return &live.Run{
		Path: f.Path, File: f, Plan: p, Total: p.Total(), Moves: []string{"rail0: 16 circuits, from 1-4 to 33-36"},
		Progress: runner.Progress{State: runner.Ready, Total: len(p.Points)},
	}
}

// measured is the durations of a stage.
func measured(c int, label string, stage timeline.Stage, mid, spread, width time.Duration, n, missing int) live.StageStat {
	random := rand.New(rand.NewPCG(uint64(c), uint64(mid)))
	x := live.StageStat{Condition: c, Label: label, Stage: stage, Missing: missing, Moves: n / 4}
	for range n {
		at := int64(mid) + int64(random.NormFloat64()*float64(spread))
		x.Durations = append(x.Durations, timeline.Between(at-int64(width)/2, at+int64(width)/2))
	}
	estimate := func(q float64) timeline.Estimate {
		at := timeline.Quantile(x.Durations, q)
		return timeline.Estimate{NS: at.Mid(), LowNS: at.Earliest - int64(spread)/4, HighNS: at.Latest + int64(spread)/4}
	}
	if n > 0 {
		x.Median, x.P95 = estimate(0.5), estimate(0.95)
	}
	return x
}

// running is one that is under way.
func running(t testing.TB) *live.Run {
	r := loaded(t)
	r.ID, r.Dir, r.Began, r.Told = runID, "/state/runs/"+runID, tuitest.Now.Add(-40*time.Second), tuitest.Now.Add(-2*time.Second)
	r.Progress = runner.Progress{
		State: runner.Running, Done: 23, Total: 42, Left: 31 * time.Second, Point: 17, Condition: 2, Label: "switching=200ms", Step: "dp to pp",
	}
	r.Setup = "not watched: gpu3: no carrier counters"
	for c, more := range map[int]time.Duration{1: 0, 2: 190 * time.Millisecond} {
		label := r.Plan.Conditions[c-1].Label
		r.Stages = append(r.Stages,
			measured(c, label, timeline.Ack, 12*time.Millisecond+more, time.Millisecond, 100*time.Microsecond, 40, 0),
			measured(c, label, timeline.Light, 14*time.Millisecond+more, 2*time.Millisecond, 10*time.Millisecond, 80, 0),
			measured(c, label, timeline.CarrierUp, 62*time.Millisecond+more, 8*time.Millisecond, 200*time.Microsecond, 78, 2*c-2),
			measured(c, label, timeline.Traffic, 66*time.Millisecond+more, 9*time.Millisecond, time.Millisecond, 80, 0),
		)
	}
	if r.Stages[0].Condition != 1 {
		r.Stages = append(r.Stages[4:], r.Stages[:4]...)
	}
	one, two := r.Plan.Conditions[0].Label, r.Plan.Conditions[1].Label
	r.Limits = []live.LimitStat{
		{Text: "missing == 0", Condition: 1, Label: one, Judgement: analysis.Pass, Found: "0"},
		{Text: "missing == 0", Condition: 2, Label: two, Judgement: analysis.Fail, Found: "2"},
		{Text: "light_p50 < 220ms", Condition: 1, Label: one, Judgement: analysis.Pass, Found: "14ms (9ms to 19ms)"},
		{Text: "light_p50 < 220ms", Condition: 2, Label: two, Judgement: analysis.Pass, Found: "204ms (199ms to 209ms)"},
		{Text: "carrier_p95 < 280ms", Condition: 1, Label: one, Judgement: analysis.Pass, Found: "75ms (70ms to 80ms)"},
		{Text: "carrier_p95 < 280ms", Condition: 2, Label: two, Judgement: analysis.Undecided, Found: "265ms (258ms to 284ms); takes 59 values to tell"},
	}
	return r
}

// stopped is one that is over.
func stopped(t testing.TB) *live.Run {
	r := running(t)
	r.Ended, r.State, r.Progress.State, r.Progress.Left = true, runs.Stopped, runner.Ended, 0
	r.Err = fmt.Errorf("stopped; 23 of 42 points are kept: ocslab runs resume %s goes on from there", runID)
	r.Analysis = &analysis.Analysis{Verdict: analysis.Fail}
	return r
}

func lines() []live.RunLine {
	at := tuitest.Now
	return []live.RunLine{
		{ID: "20261122T144000-night-77aa", Name: "night", State: runs.Running, When: at.Add(-24 * time.Minute), Points: 812, Planned: 4000, Lab: "opus-testbed", Emulated: true},
		{ID: runID, Name: "two-speeds", State: runs.Stopped, When: at.Add(-4 * time.Minute), Points: 23, Planned: 42, Verdict: "fail", Lab: "opus-testbed", Emulated: true},
		{ID: "20261121T101500-opus-toggle-91cd", Name: "opus-toggle", State: runs.Done, When: at.Add(-29 * time.Hour), Points: 9, Planned: 9, Verdict: "pass", Lab: "opus-testbed", Emulated: true},
		{ID: "20261119T081500-pairs-0b1c", Name: "pairs", State: runs.Interrupted, When: at.Add(-80 * time.Hour), Points: 3, Planned: 120, Lab: "lab7"},
		{ID: "20261118T081500-scatter-5e2f", Name: "scatter", State: runs.Failed, When: at.Add(-100 * time.Hour), Points: 0, Planned: 64, Lab: "lab7"},
	}
}

func env(r *live.Run) screen.Env {
	s := tuitest.Testbed()
	s.Run, s.Runs = r, lines()
	return screen.Env{State: s, Now: tuitest.Now}
}

func TestScreen_Draw(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(testing.TB) *live.Run
		do   []keymap.Action
	}{
		{"list", func(testing.TB) *live.Run { return nil }, []keymap.Action{keymap.Down}},
		{"planned", loaded, []keymap.Action{keymap.Down, keymap.Down, keymap.Down}},
		{"running", running, []keymap.Action{keymap.Down, keymap.Down}},
		{"running-cdf", running, []keymap.Action{keymap.Down, keymap.Down, keymap.View}},
		{"running-both", running, []keymap.Action{keymap.Down, keymap.View, keymap.View, keymap.Right}},
		{"running-large", running, []keymap.Action{keymap.End, keymap.Enter}},
		{"stopped", stopped, nil},
		{"list-running", running, []keymap.Action{keymap.All}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := env(tt.run(t))
			tuitest.Golden(t, tt.name, func(a canvas.Area) {
				s := runscreen.New()
				a = a.Sub(0, 0, a.W, a.H-5) // as the program leaves of a terminal
				s.Resize(a.W, a.H)
				for _, act := range tt.do {
					s.Do(act, e)
				}
				s.Draw(a, e)
			})
		})
	}
}

// Ensure that what was kept is shown once it was read, that the wrong answer is not, and what could
// not be read is told.
func TestScreen_Kept(t *testing.T) {
	e := env(nil)
	lab := tuitest.NewLab(e.State)
	s := runscreen.New()
	s.Resize(100, 30)
	s.Focus("run/"+runID, e)
	if got := s.Subject(e); got != "run/"+runID {
		t.Fatalf("the cursor is on %q", got)
	}
	call := only[screen.Call](t, s.Do(keymap.Enter, e))
	if call.Mutates || call.CLI != "ocslab runs show "+runID {
		t.Errorf("%+v", call)
	}
	if text := drawn(s, e); !strings.Contains(text, "loading "+runID) {
		t.Errorf("while it is loaded:\n%s", text)
	}
	if err := call.Do(t.Context(), lab); !errors.Is(err, runs.ErrUnknown) {
		t.Fatalf("%v", err)
	}
	if text := drawn(s, e); !strings.Contains(text, "cannot be shown") {
		t.Errorf("what is not there:\n%s", text)
	}
	lab.Kept = map[string]*live.Run{runID: stopped(t)}
	if err := call.Do(t.Context(), lab); err != nil {
		t.Fatal(err)
	}
	if text := drawn(s, e); !strings.Contains(text, "23 of 42 points") || !strings.Contains(text, "carrier-up") {
		t.Errorf("what was kept:\n%s", text)
	}
	if !s.Deselect() || !strings.Contains(drawn(s, e), "begun") {
		t.Errorf("back is not the list:\n%s", drawn(s, e))
	}
	if s.Deselect() {
		t.Error("there is something to go back from in the list")
	}
}

func drawn(s *runscreen.Screen, e screen.Env) string {
	return tuitest.Draw(100, 30, func(a canvas.Area) { s.Draw(a, e) }).String()
}

// only returns the only request, which is of a type.
func only[T screen.Request](t *testing.T, list []screen.Request) T {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("%d requests, want one: %+v", len(list), list)
	}
	r, ok := list[0].(T)
	if !ok {
		t.Fatalf("a request of another type: %#v", list[0])
	}
	return r
}

// Ensure that what changes a run is asked for, calls what it should, and is marked so.
func TestScreen_Acts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		run    *live.Run
		do     []keymap.Action
		answer string // to what is asked; "" if nothing is asked
		want   string // what the lab is called for
		cli    string
	}{
		{"run", loaded(t), []keymap.Action{keymap.Run}, "first", "start", "ocslab run experiments/two-speeds.yaml"},
		{"run anew", stopped(t), []keymap.Action{keymap.Run}, "first", "start", "ocslab run experiments/two-speeds.yaml"},
		{"resume", stopped(t), []keymap.Action{keymap.Run}, "resume", "resume " + runID, "ocslab runs resume " + runID},
		{"resume from the list", nil, []keymap.Action{keymap.Down, keymap.Run}, "first", "resume " + runID, "ocslab runs resume " + runID},
		{"pause", running(t), []keymap.Action{keymap.Pause}, "", "pause", "ocslab runs pause " + runID},
		{"stop", running(t), []keymap.Action{keymap.Stop}, "", "stop", "ocslab runs stop " + runID},
		{"abort", running(t), []keymap.Action{keymap.Abort}, "first", "abort", "ocslab runs abort " + runID},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := env(tt.run)
			lab := tuitest.NewLab(e.State)
			s := runscreen.New()
			s.Resize(80, 20)
			var got []screen.Request
			for _, act := range tt.do {
				got = s.Do(act, e)
			}
			if tt.answer != "" {
				got = way(t, only[screen.Confirm](t, got), tt.answer)
			}
			call := only[screen.Call](t, got)
			if !call.Mutates || call.CLI != tt.cli {
				t.Errorf("mutates %v, CLI %q, want %q", call.Mutates, call.CLI, tt.cli)
			}
			if err := call.Do(context.Background(), lab); err != nil {
				t.Fatal(err)
			}
			if calls := strings.Join(lab.Mutations(), "; "); calls != tt.want {
				t.Errorf("the lab was called for %q, want %q", calls, tt.want)
			}
		})
	}
}

// Ensure that what makes no sense is refused in words.
func TestScreen_Refuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  *live.Run
		do   []keymap.Action
		want string
	}{
		{"nothing loaded", nil, []keymap.Action{keymap.Run}, "no experiment is loaded"},
		{"pause of nothing", loaded(t), []keymap.Action{keymap.Pause}, "no run is under way"},
		{"abort of what is over", stopped(t), []keymap.Action{keymap.Abort}, "no run is under way"},
		{"run twice", running(t), []keymap.Action{keymap.Run}, "a run is under way"},
		{"open while it runs", running(t), []keymap.Action{keymap.Open}, "a run is under way"},
		{"resume of what is done", loaded(t), []keymap.Action{keymap.All, keymap.Down, keymap.Down, keymap.Run}, "nothing left to do"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := env(tt.run)
			s := runscreen.New()
			s.Resize(80, 20)
			var got []screen.Request
			for _, act := range tt.do {
				got = s.Do(act, e)
			}
			if said := only[screen.Say](t, got); !said.Bad || !strings.Contains(said.Text, tt.want) {
				t.Errorf("%+v, want %q", said, tt.want)
			}
		})
	}
}

// Ensure that opening plans what is named, and that editing plans it anew.
func TestScreen_Open(t *testing.T) {
	e := env(loaded(t))
	s := runscreen.New()
	ask := only[screen.Ask](t, s.Do(keymap.Open, e))
	if !ask.Files || ask.Initial != "experiments/two-speeds.yaml" || !strings.Contains(ask.Title, "opus-9c") {
		t.Errorf("%+v", ask)
	}
	if then := ask.Then(""); len(then) > 0 {
		t.Errorf("an empty name leads to %+v", then)
	}
	call := only[screen.Call](t, ask.Then("other.yaml"))
	if call.Mutates || call.CLI != "ocslab run other.yaml --plan" {
		t.Errorf("%+v", call)
	}
	edit := only[screen.EditFile](t, s.Do(keymap.Edit, e))
	if edit.Path != "experiments/two-speeds.yaml" || len(edit.Then) != 1 {
		t.Errorf("%+v", edit)
	}
	if edit := only[screen.EditFile](t, s.Do(keymap.Edit, env(running(t)))); len(edit.Then) != 0 {
		t.Errorf("editing plans another experiment while one runs: %+v", edit)
	}
}

// Ensure that no size, order of actions, or state leads to a panic, and that nothing is drawn
// outside.
func TestScreen_Any(t *testing.T) {
	states := []*live.Run{nil, loaded(t), running(t), stopped(t), {}, {ID: runID}, {Plan: &plan.Plan{}}}
	acts := []keymap.Action{
		keymap.Up, keymap.Down, keymap.Left, keymap.Right, keymap.PageUp, keymap.PageDown, keymap.Home, keymap.End, keymap.View, keymap.All,
		keymap.Enter, keymap.Open, keymap.Edit, keymap.Run, keymap.Pause, keymap.Stop, keymap.Abort, keymap.Sort,
	}
	rapid.Check(t, func(t *rapid.T) {
		s := runscreen.New()
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			e := env(rapid.SampledFrom(states).Draw(t, "state"))
			if rapid.Bool().Draw(t, "none") {
				e.State.Runs = nil
			}
			e.Filter = filter.Parse(rapid.SampledFrom([]string{"", "zz", "light", "two"}).Draw(t, "filter"))
			w, h := rapid.IntRange(0, 150).Draw(t, "w"), rapid.IntRange(0, 50).Draw(t, "h")
			s.Resize(w, h)
			s.Do(rapid.SampledFrom(acts).Draw(t, "act"), e)
			if rapid.IntRange(0, 5).Draw(t, "back") == 0 {
				s.Deselect()
			}
			c := canvas.New(w+2, h+2)
			c.Area().Fill('x', canvas.Style{})
			inner := c.Area().Sub(1, 1, w, h)
			inner.Clear()
			s.Draw(inner, e)
			for y := range c.H {
				for x := range c.W {
					if (x == 0 || y == 0 || x == w+1 || y == h+1) && c.At(x, y).Rune != 'x' {
						t.Fatalf("drawn outside, at %d,%d of %d,%d", x-1, y-1, w, h)
					}
				}
			}
			if z, dx, dy, ok := c.Hit(rapid.IntRange(0, w+1).Draw(t, "x"), rapid.IntRange(0, h+1).Draw(t, "y")); ok {
				s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, W: z.W, H: z.H, Double: rapid.Bool().Draw(t, "double"), Wheel: rapid.IntRange(-2, 2).Draw(t, "wheel")}, e)
			}
			_, _, _ = s.Copy(e), s.Status(e), s.Subject(e)
		}
	})
}

// Ensure that a click on a row moves the cursor there, and on the charts shows another.
func TestScreen_Mouse(t *testing.T) {
	e := env(running(t))
	s := runscreen.New()
	s.Resize(100, 30)
	c := tuitest.Draw(100, 30, func(a canvas.Area) { s.Draw(a, e) })
	hit := func(text string) screen.Mouse {
		for y, line := range strings.Split(c.String(), "\n") {
			if i := strings.Index(line, text); i >= 0 {
				z, dx, dy, ok := c.Hit(3, y)
				if !ok {
					t.Fatalf("%q does not react to the mouse", text)
				}
				return screen.Mouse{ID: z.ID, DX: dx, DY: dy, W: z.W, H: z.H}
			}
		}
		t.Fatalf("%q is not shown:\n%s", text, c)
		return screen.Mouse{}
	}
	s.Mouse(hit("carrier-up"), e)
	if got := s.Copy(e); !strings.Contains(got, "carrier-up") {
		t.Errorf("a click on carrier-up selects %q", got)
	}
	s.Mouse(hit(": histogram"), e)
	if text := drawn(s, e); !strings.Contains(text, "part that was over") {
		t.Errorf("a click on the charts:\n%s", text)
	}
}

func BenchmarkScreen_Draw(b *testing.B) {
	r := running(b)
	for i := range r.Stages {
		x := &r.Stages[i]
		*x = measured(x.Condition, x.Label, x.Stage, 100*time.Millisecond, 5*time.Millisecond, time.Millisecond, 10000, 0)
	}
	e := env(r)
	s := runscreen.New()
	s.Resize(200, 55)
	s.Do(keymap.View, e)
	s.Do(keymap.View, e)
	c := canvas.New(200, 55)
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(200, 55)
		s.Draw(c.Area(), e)
	}
}

// Ensure that circuits of others are moved only when that is asked for, which is offered for the
// very plan that they were in the way of.
func TestScreen_Update(t *testing.T) {
	r := loaded(t)
	e := env(r)
	lab := tuitest.NewLab(e.State)
	s := runscreen.New()
	s.Resize(100, 30)
	values := func(c screen.Confirm) (list []string) {
		for _, w := range c.Ways {
			list = append(list, w.Name)
		}
		return list
	}
	ask := only[screen.Confirm](t, s.Do(keymap.Run, e))
	if got := strings.Join(values(ask), " "); got != "anew" {
		t.Errorf("asks for %q before anything was refused", got)
	}
	lab.Fail = map[string]error{"start": fmt.Errorf("%w: 1>33 is in none of the configurations", ocs.ErrConflict)}
	if err := only[screen.Call](t, way(t, ask, "anew")).Do(context.Background(), lab); !errors.Is(err, ocs.ErrConflict) || !strings.Contains(err.Error(), "r offers") {
		t.Errorf("refused with %v", err)
	}
	if text := picture(s, e, 100, 30); !strings.Contains(text, "refused") || !strings.Contains(text, "in none of the configurations") {
		t.Errorf("the plan does not say that it was refused:\n%s", text)
	}
	ask = only[screen.Confirm](t, s.Do(keymap.Run, e))
	if got := strings.Join(values(ask), " "); got != "anew update" {
		t.Errorf("asks for %q after it was refused", got)
	}
	call := only[screen.Call](t, way(t, ask, "update"))
	if want := "ocslab run experiments/two-speeds.yaml --mode update"; !call.Mutates || call.CLI != want {
		t.Errorf("mutates %t, CLI %q, want %q", call.Mutates, call.CLI, want)
	}
	if err := call.Do(context.Background(), lab); err != nil {
		t.Fatal(err)
	}
	if got := lab.Mutations(); got[len(got)-1] != "start update" {
		t.Errorf("the lab was called for %q", got)
	}
	if ask := only[screen.Confirm](t, s.Do(keymap.Run, env(loaded(t)))); len(ask.Ways) != 1 {
		t.Errorf("asks for %q of another plan", values(ask))
	}
}

// way is what the way of that name leads to; "first" is the one that is chosen at first.
func way(t *testing.T, c screen.Confirm, name string) []screen.Request {
	t.Helper()
	for i, w := range c.Ways {
		if w.Name == name || name == "first" && i == 0 {
			return w.Then()
		}
	}
	t.Fatalf("there is no way %q: %+v", name, c.Ways)
	return nil
}

// picture is what a screen draws.
func picture(s *runscreen.Screen, e screen.Env, w, h int) string {
	var c canvas.Canvas
	c.Reset(w, h)
	s.Resize(w, h)
	s.Draw(c.Area(), e)
	return c.String()
}

// Ensure that what is said is so: a filter that hides all, a rule without a number, a preset's
// command, an error that is longer than a line, a panic.
func TestScreen_Says(t *testing.T) {
	s := runscreen.New()
	e := env(running(t))
	e.Filter = filter.Parse("nothing-like-it")
	if text := picture(s, e, 100, 30); !strings.Contains(text, "No stage passes the filter.") || strings.Contains(text, "Nothing is measured") {
		t.Errorf("with a filter that hides all:\n%s", text)
	}
	r := loaded(t)
	r.File.Stop.After = 0
	if text := picture(s, env(r), 140, 40); !strings.Contains(text, fmt.Sprintf("after %d repeats", plan.DefaultAfter)) {
		t.Errorf("a rule without a number:\n%s", text)
	}
	r.Path = "opus-9c"
	if got := s.Copy(env(r)); got != "ocslab figure opus-9c" {
		t.Errorf("the command of a preset is %q", got)
	}
	r = stopped(t)
	r.State, r.Err = runs.Failed, errors.New(strings.Repeat("1>35 is missing; ", 12)+"ocslab runs finish puts the light back")
	if text := picture(s, env(r), 80, 19); !strings.Contains(text, "back") || !strings.Contains(text, "stage") {
		t.Errorf("a long error:\n%s", text)
	}
	e = env(loaded(t))
	e.State.Panic = &live.Panic{Reason: "a fibre is open"}
	if ask := only[screen.Confirm](t, s.Do(keymap.Run, e)); !strings.HasSuffix(ask.Title, "while a panic is in force (a fibre is open)") {
		t.Errorf("in a panic it asks %q", ask.Title)
	}
}
