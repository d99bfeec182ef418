package live

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

const briefExperiment = `name: brief
sequence: [dp, pp]
parameters: {firmware: quick, switching: 10ms}
repeats: REPEATS
warm_ups: 1
nulls: {count: 1, window: 50ms}
wait: carrier
measure: {traffic: false}
limits: [missing == 0, carrier_p50 < 10s]
finally: {light: restore}
`

// experimentFile writes an experiment of some repeats.
func experimentFile(t *testing.T, repeats string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "brief.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(briefExperiment, "REPEATS", repeats, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// openForRuns opens the testbed with a state directory.
func openForRuns(t *testing.T, change func(*Options)) *Session {
	t.Helper()
	return openTestbed(t, func(opt *Options) {
		dir := t.TempDir()
		log, err := history.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		opt.StateDir, opt.Lab.StateDir, opt.History, opt.Version = dir, dir, log, "test"
		if change != nil {
			change(opt)
		}
	})
}

// ended waits until the run that is shown is over and the switches are back.
func ended(t *testing.T, s *Session) *State {
	t.Helper()
	return until(t, s, "the run has ended, and the switches are back", func(x *State) bool {
		return x.Run != nil && x.Run.Ended && x.Switches[0].Status == Up
	})
}

// Ensure that a run goes from plan to analysis, has the switches meanwhile and gives them back with
// the circuits that it found, and is kept.
func TestRun(t *testing.T) {
	s := openForRuns(t, nil)
	before := ready(t, s).Switches[0].Map
	path := experimentFile(t, "3")
	if err := s.LoadRun(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	r := until(t, s, "it is loaded", func(x *State) bool { return x.Run != nil }).Run
	if r.ID != "" || len(r.Plan.Points) != 4 || len(r.Moves) != 1 || r.Total <= 0 {
		t.Errorf("planned: %+v", r)
	}
	if err := s.StartRun(t.Context(), ocs.Safe); err != nil {
		t.Fatal(err)
	}
	x := s.State()
	if x.Run.ID == "" && !x.Run.Ended {
		until(t, s, "it has begun", func(x *State) bool { return x.Run != nil && x.Run.ID != "" })
	}
	if err := s.StartRun(t.Context(), ocs.Safe); !errors.Is(err, ErrBusy) {
		t.Errorf("a second run at the same time: %v", err)
	}
	if err := s.LoadRun(t.Context(), path); !errors.Is(err, ErrBusy) {
		t.Errorf("another experiment meanwhile: %v", err)
	}
	if _, err := s.open(t.Context(), "rail0"); !errors.Is(err, ErrBusy) {
		t.Errorf("a change meanwhile: %v", err)
	}
	until(t, s, "the switch is lent", func(x *State) bool { return x.Switches[0].Status == Lent || x.Run.Ended })
	until(t, s, "statistics come in", func(x *State) bool { return len(x.Run.Stages) > 0 })
	x = ended(t, s)
	r = x.Run
	if r.Err != nil || r.State != runs.Done || r.Progress.Done != 4 || r.Progress.Total != 4 || r.Progress.State != runner.Ended {
		t.Errorf("at the end: %v, %s, %+v", r.Err, r.State, r.Progress)
	}
	if r.Analysis == nil || r.Analysis.Verdict == "" || len(r.Limits) != 2 {
		t.Errorf("analysis %v, limits %+v", r.Analysis, r.Limits)
	}
	carrier := slices.IndexFunc(r.Stages, func(x StageStat) bool { return x.Stage == timeline.CarrierUp })
	if carrier < 0 {
		t.Fatalf("no carrier among %d stages", len(r.Stages))
	}
	if got := r.Stages[carrier]; len(got.Durations) < 6*2 || got.Moves != 6 || got.Missing != 0 || got.Median.NS < int64(20*time.Millisecond) {
		t.Errorf("carrier-up: %d durations of %d moves, %d missing, median %v", len(got.Durations), got.Moves, got.Missing, got.Median)
	}
	if got := until(t, s, "the circuits are read", func(x *State) bool { return !x.Switches[0].MapAt.IsZero() }).Switches[0].Map; !got.Equal(before) {
		t.Errorf("afterwards %v are connected, want %v", got, before)
	}
	for _, want := range []string{"run brief began", "run brief ended: done, 4 of 4 points"} {
		if !slices.ContainsFunc(x.Log, func(e *Entry) bool {
			return e.Kind == Did && strings.Contains(e.Text, want) && strings.HasPrefix(e.CLI, "ocslab --emulated r")
		}) {
			t.Errorf("the log has no %q", want)
		}
	}
	byRun := slices.IndexFunc(x.Moves, func(m *Move) bool { return m.By == "run brief" })
	if byRun < 0 {
		t.Errorf("none of %d reconfigurations is the run's", len(x.Moves))
	}
	x = until(t, s, "the run is listed", func(x *State) bool { return len(x.Runs) == 1 && x.Runs[0].State == runs.Done })
	if l := x.Runs[0]; l.ID != r.ID || l.Points != 4 || l.Planned != 4 || l.Verdict != string(r.Analysis.Verdict) {
		t.Errorf("listed as %+v", l)
	}
	kept, err := s.Past(t.Context(), r.ID[:len(r.ID)-2])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Stages, kept.Stages); diff != "" || !kept.Ended || kept.State != runs.Done {
		t.Errorf("as it is kept (-live +kept):\n%s", diff)
	}
	if err := s.Resume(t.Context(), r.ID); !errors.Is(err, ErrNothing) {
		t.Errorf("resume of what is done: %v", err)
	}
}

// Ensure that a run that is paused goes on, one that is stopped can be gone on with, and one
// that is aborted says so, and that the light is put back each time.
func TestRun_Control(t *testing.T) {
	s := openForRuns(t, nil)
	before := ready(t, s).Switches[0].Map
	for name, fn := range map[string]func() error{"pause": s.PauseRun, "stop": s.StopRun, "abort": s.AbortRun} {
		if err := fn(); !errors.Is(err, ErrNothing) {
			t.Errorf("%s of nothing: %v", name, err)
		}
	}
	if err := s.StartRun(t.Context(), ocs.Safe); !errors.Is(err, ErrNothing) {
		t.Errorf("start of nothing: %v", err)
	}
	if err := s.LoadRun(t.Context(), experimentFile(t, "12")); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.StartRun(t.Context(), ocs.Safe))
	must(s.PauseRun())
	until(t, s, "it is paused", func(x *State) bool { return x.Run != nil && x.Run.Progress.State == runner.Paused })
	must(s.PauseRun())
	until(t, s, "it goes on", func(x *State) bool { return x.Run != nil && x.Run.Progress.Done > 0 })
	must(s.StopRun())
	x := ended(t, s)
	if x.Run.State != runs.Stopped || !errors.Is(x.Run.Err, runner.ErrStop) || x.Run.Progress.Done == 13 {
		t.Fatalf("stopped: %s, %v, %+v", x.Run.State, x.Run.Err, x.Run.Progress)
	}
	id, done := x.Run.ID, x.Run.Progress.Done

	must(s.Resume(t.Context(), id))
	x = until(t, s, "it has begun again", func(x *State) bool { return x.Run != nil && !x.Run.Ended })
	if x.Run.ID != id || len(x.Run.Stages) == 0 {
		t.Errorf("resumed: %s with %d stages, want what %d points have measured", x.Run.ID, len(x.Run.Stages), done)
	}
	must(s.AbortRun())
	x = ended(t, s)
	if x.Run.State != runs.Stopped || !errors.Is(x.Run.Err, runner.ErrAbort) || x.Run.Progress.Done < done {
		t.Errorf("aborted: %s, %v, %+v", x.Run.State, x.Run.Err, x.Run.Progress)
	}
	if got := until(t, s, "the circuits are read", func(x *State) bool { return !x.Switches[0].MapAt.IsZero() }).Switches[0].Map; !got.Equal(before) {
		t.Errorf("afterwards %v are connected, want %v", got, before)
	}
}

// Ensure that closing ends a run after its point, with its light put back, and that closing again
// aborts it.
func TestRun_Close(t *testing.T) {
	for _, times := range []int{1, 2} {
		s := openForRuns(t, nil)
		before := ready(t, s).Switches[0].Map
		if err := s.LoadRun(t.Context(), experimentFile(t, "200")); err != nil {
			t.Fatal(err)
		}
		if err := s.StartRun(t.Context(), ocs.Safe); err != nil {
			t.Fatal(err)
		}
		until(t, s, "a point is done", func(x *State) bool { return x.Run != nil && x.Run.Progress.Done > 0 })
		closed := make(chan error, times)
		for range times {
			go func() { closed <- s.Close() }()
		}
		for range times {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
		r, err := s.Past(context.Background(), "last")
		if err != nil {
			t.Fatal(err)
		}
		if r.State != runs.Stopped || r.Progress.Done < 1 || r.Progress.Done >= 201 {
			t.Errorf("closed %d times: %s after %d points, %v", times, r.State, r.Progress.Done, r.Err)
		}
		if want := map[int]error{1: runner.ErrStop, 2: runner.ErrAbort}[times]; r.Err == nil || !strings.Contains(r.Err.Error(), want.Error()) {
			t.Errorf("closed %d times: %v, want %v", times, r.Err, want)
		}
		again := openTestbed(t, func(opt *Options) { opt.Lab.StateDir = s.opt.StateDir })
		if got := ready(t, again).Switches[0].Map; !got.Equal(before) {
			t.Errorf("afterwards %v are connected, want %v", got, before)
		}
	}
}

// Ensure that a session that only reads runs nothing, and still plans and shows.
func TestRun_ReadOnly(t *testing.T) {
	s := openForRuns(t, func(opt *Options) { opt.ReadOnly = true })
	ready(t, s)
	if err := s.LoadRun(t.Context(), experimentFile(t, "3")); err != nil {
		t.Fatal(err)
	}
	for name, fn := range map[string]func() error{
		"start": func() error { return s.StartRun(t.Context(), ocs.Safe) }, "resume": func() error { return s.Resume(t.Context(), "last") },
		"pause": s.PauseRun, "stop": s.StopRun, "abort": s.AbortRun,
	} {
		if err := fn(); !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v, want %v", name, err, ErrReadOnly)
		}
	}
	if x := s.State(); x.Switches[0].Status != Up || len(x.Runs) > 0 {
		t.Errorf("%s, %v", x.Switches[0].Status, x.Runs)
	}
}

// Ensure that a run that cannot begin leaves the switches with the session.
func TestRun_Refused(t *testing.T) {
	s := openForRuns(t, nil)
	ready(t, s)
	if err := s.LoadRun(t.Context(), experimentFile(t, "3")); err != nil {
		t.Fatal(err)
	}
	sw, err := s.open(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ocs.Reconcile(t.Context(), sw, mustMap(t, "1>40"), ocs.Overwrite); err != nil { // of no configuration
		t.Fatal(err)
	}
	if err := s.StartRun(t.Context(), ocs.Safe); err == nil || !strings.Contains(err.Error(), "in none of the configurations") {
		t.Errorf("with a foreign circuit in the way: %v", err)
	}
	x := until(t, s, "the switch is back", func(x *State) bool { return x.Switches[0].Status == Up })
	if x.Run == nil || x.Run.ID != "" {
		t.Errorf("the experiment is not as it was planned: %+v", x.Run)
	}
}

func TestLoadRun_Errors(t *testing.T) {
	s := openForRuns(t, nil)
	for path, want := range map[string]string{
		"opus-9c":                 "",
		"no-such-file.yaml":       "no-such-file.yaml",
		filepath.Join("testdata"): "testdata",
	} {
		switch err := s.LoadRun(t.Context(), path); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", path, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want something about %s", path, err, want)
		}
	}
	if x := until(t, s, "the preset is loaded", func(x *State) bool { return x.Run != nil }); x.Run.Path != "opus-9c" {
		t.Errorf("a failure has replaced what was loaded: %s", x.Run.Path)
	}
}

// drawPoint draws what a point of two reconfigurations of a condition may have measured.
func drawPoint(t *rapid.T, id, condition int) finished {
	p := finished{point: plan.Point{ID: id, Condition: condition, Repeat: id, First: 2*id - 1, Null: rapid.IntRange(0, 9).Draw(t, "null") == 0}}
	for n := p.point.First; n < p.point.First+2; n++ {
		began := rapid.Int64Range(0, 1e9).Draw(t, "began")
		if rapid.IntRange(0, 9).Draw(t, "command") > 0 {
			p.marks = append(p.marks, timeline.Mark{Stage: timeline.Command, Subject: "rail0", Interval: timeline.Between(began, began+1000), Reconfiguration: n})
		}
		for _, nic := range []string{"gpu1/a", "gpu2/a"} {
			for _, stage := range []timeline.Stage{timeline.CarrierDown, timeline.CarrierUp} {
				p.expected = append(p.expected, timeline.Expectation{Reconfiguration: n, Stage: stage, Subject: nic})
				if rapid.IntRange(0, 4).Draw(t, "seen") > 0 {
					at := began + rapid.Int64Range(0, 1e8).Draw(t, "at")
					p.marks = append(p.marks, timeline.Mark{Stage: stage, Subject: nic, Interval: timeline.Between(at, at+rapid.Int64Range(0, 1e6).Draw(t, "width")), Reconfiguration: n})
				}
			}
		}
	}
	return p
}

// Ensure that counting point by point comes to what timeline.Summarize says of all at once, that
// bounds hold the estimate, and that what was handed out does not change.
func TestTally(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &plan.Plan{Conditions: []plan.Condition{{Number: 1, Label: "a=1", Sequence: []string{"x", "y"}}, {Number: 2, Label: "a=2", Sequence: []string{"x", "y"}}}}
		tally := newTally(&plan.File{}, p)
		var marks [3][]timeline.Mark
		var expected [3][]timeline.Expectation
		var early, copied []StageStat
		n := rapid.IntRange(1, 12).Draw(t, "points")
		for id := 1; id <= n; id++ {
			x := drawPoint(t, id, rapid.IntRange(1, 2).Draw(t, "condition"))
			tally.add(x)
			if !x.point.Null {
				marks[x.point.Condition] = append(marks[x.point.Condition], x.marks...)
				expected[x.point.Condition] = append(expected[x.point.Condition], x.expected...)
			}
			if id == n/2 {
				early = tally.stats()
				for _, s := range early {
					s.Durations = slices.Clone(s.Durations)
					copied = append(copied, s)
				}
			}
		}
		type counts struct {
			Count, Missing int
			Median, P95    int64
		}
		want, got := map[row]counts{}, map[row]counts{}
		for c := 1; c <= 2; c++ {
			report := timeline.Summarize(marks[c], timeline.Options{Expected: expected[c], Resamples: 2})
			for _, x := range report.Stages {
				want[row{c, x.Stage}] = counts{x.Count, x.Missing, x.Median.NS, x.P95.NS}
			}
			for _, u := range report.Unseen {
				want[row{c, u.Stage}] = counts{Missing: u.Missing}
			}
		}
		for _, x := range tally.stats() {
			got[row{x.Condition, x.Stage}] = counts{len(x.Durations), x.Missing, x.Median.NS, x.P95.NS}
			for _, e := range []timeline.Estimate{x.Median, x.P95} {
				if e.LowNS > e.NS || e.NS > e.HighNS {
					t.Fatalf("%v of condition %d: %+v", x.Stage, x.Condition, e)
				}
			}
		}
		for key, w := range want {
			g := got[key]
			near := func(a, b int64) bool { return max(a-b, b-a) <= 1 } // rounded once more, or less
			if g.Count != w.Count || g.Missing != w.Missing || !near(g.Median, w.Median) || !near(g.P95, w.P95) {
				t.Fatalf("%v: %+v, want %+v", key, g, w)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("rows %v, want %v", got, want)
		}
		if diff := cmp.Diff(copied, early, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("what was handed out has changed:\n%s", diff)
		}
	})
}

// Ensure that limits are judged as far as can be told.
func TestTally_Judge(t *testing.T) {
	var file plan.File
	for _, text := range []string{"missing == 0", "carrier-up_p50 < 1s", "carrier-up_p50 < 1ms", "carrier-up_max < 61ms", "carrier-up_count > 100"} {
		var l plan.Limit
		if err := l.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		file.Limits = append(file.Limits, l)
	}
	tally := newTally(&file, &plan.Plan{Conditions: []plan.Condition{{Number: 1, Sequence: []string{"x", "y"}}}})
	for id := 1; id <= 20; id++ {
		x := finished{point: plan.Point{ID: id, Condition: 1, First: id}}
		x.marks = []timeline.Mark{
			{Stage: timeline.Command, Subject: "rail0", Reconfiguration: id},
			{Stage: timeline.CarrierUp, Subject: "gpu1/a", Interval: timeline.Point(int64(40+id) * 1e6), Reconfiguration: id},
		}
		tally.add(x)
	}
	var got []analysis.Judgement
	for _, l := range tally.judge() {
		got = append(got, l.Judgement)
	}
	want := []analysis.Judgement{analysis.Pass, analysis.Pass, analysis.Fail, analysis.Pass, analysis.Fail}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%+v", diff, tally.judge())
	}
}

// silent is a Recorder that keeps nothing.
type silent struct {
	runner.Recorder
	fail error
}

func (silent) BeginPoint(plan.Point) error   { return nil }
func (silent) Mark(timeline.Mark)            {}
func (silent) Expected(timeline.Expectation) {}
func (silent) AbandonPoint(string) error     { return nil }
func (s silent) FinishPoint() error          { return s.fail }

// Ensure that only points count that were kept.
func TestCollector(t *testing.T) {
	c := newCollector(silent{})
	point := func(id int, end func() error) {
		_ = c.BeginPoint(plan.Point{ID: id})
		c.Mark(timeline.Mark{Reconfiguration: id})
		c.Expected(timeline.Expectation{Reconfiguration: id})
		_ = end()
	}
	point(1, c.FinishPoint)
	point(2, func() error { return c.AbandonPoint("aborted") })
	c.Recorder = silent{fail: errors.New("disk full")}
	point(3, c.FinishPoint)
	c.Recorder = silent{}
	point(4, c.FinishPoint)
	var ids []int
	for _, p := range c.take() {
		ids = append(ids, p.point.ID)
		if len(p.marks) != 1 || len(p.expected) != 1 || p.marks[0].Reconfiguration != p.point.ID {
			t.Errorf("point %d has %v and %v", p.point.ID, p.marks, p.expected)
		}
	}
	if diff := cmp.Diff([]int{1, 4}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(c.take()) != 0 {
		t.Error("a point is taken twice")
	}
}

// What a run of 10000 points of 16 durations costs who shows it: one more point, and all
// statistics.
func BenchmarkTally(b *testing.B) {
	tally := newTally(&plan.File{}, &plan.Plan{Conditions: []plan.Condition{{Number: 1, Sequence: []string{"x"}}}})
	add := func(id int) {
		x := finished{point: plan.Point{ID: id, Condition: 1, First: id}}
		x.marks = append(x.marks, timeline.Mark{Stage: timeline.Command, Subject: "rail0", Reconfiguration: id})
		for i := range 16 {
			at := int64(id*7919%1000+i*13) * 1e5
			x.marks = append(x.marks, timeline.Mark{Stage: timeline.CarrierUp, Subject: string(rune('a' + i)), Interval: timeline.Between(at, at+1000), Reconfiguration: id})
		}
		tally.add(x)
	}
	for id := range 10000 {
		add(id + 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		add(10001)
		_ = tally.stats()
	}
}

// Ensure that circuits of others are moved when that is asked for, that the run and its command
// say so, and that they are put back.
func TestRun_Update(t *testing.T) {
	s := openForRuns(t, nil)
	ready(t, s)
	if err := s.LoadRun(t.Context(), experimentFile(t, "1")); err != nil {
		t.Fatal(err)
	}
	sw, err := s.open(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ocs.Reconcile(t.Context(), sw, mustMap(t, "1>40"), ocs.Overwrite); err != nil {
		t.Fatal(err)
	}
	if err := s.StartRun(t.Context(), ""); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("by default: %v, want a conflict", err)
	}
	until(t, s, "the switch is back", func(x *State) bool { return x.Switches[0].Status == Up })
	if err := s.StartRun(t.Context(), ocs.Overwrite); err == nil || errors.Is(err, ocs.ErrConflict) {
		t.Errorf("with a policy that runs do not have: %v", err)
	}
	if err := s.StartRun(t.Context(), ocs.Update); err != nil {
		t.Fatal(err)
	}
	x := until(t, s, "it has ended", func(x *State) bool {
		return x.Run.Ended && x.Switches[0].Status == Up && !x.Switches[0].MapAt.IsZero()
	})
	if x.Run.State != runs.Done || !x.Switches[0].Map.Equal(mustMap(t, "1>40")) {
		t.Errorf("%s, %v; then %v are connected", x.Run.State, x.Run.Err, x.Switches[0].Map)
	}
	if !slices.ContainsFunc(x.Log, func(e *Entry) bool {
		return strings.Contains(e.Text, "run brief began") && strings.Contains(e.CLI, "brief.yaml --mode update")
	}) {
		t.Error("the log has no command with --mode update")
	}
}

// Ensure that a panic ends a run at once and leaves the light dark, and that what the run has
// found can be put back later.
func TestRun_PanicLeavesDark(t *testing.T) {
	s := openForRuns(t, nil)
	ready(t, s)
	if err := s.LoadRun(t.Context(), experimentFile(t, "200")); err != nil {
		t.Fatal(err)
	}
	if err := s.StartRun(t.Context(), ocs.Safe); err != nil {
		t.Fatal(err)
	}
	until(t, s, "a point is done", func(x *State) bool { return x.Run != nil && x.Run.ID != "" && x.Run.Progress.Done > 0 })
	p := s.Preview(t.Context(), Wish{Verb: PanicNow, Reason: "a fibre is open"})
	if p.Err != nil {
		t.Fatal(p.Err)
	}
	if o := s.Apply(t.Context(), p); o.Err != nil {
		t.Error(o.Err)
	}
	x := until(t, s, "the run has ended", func(x *State) bool { return x.Run.Ended && x.Panic != nil })
	if x.Run.Err == nil || !strings.Contains(x.Run.Err.Error(), "a panic was called") || !strings.Contains(x.Run.Err.Error(), "ocslab runs finish") {
		t.Errorf("the run says %v", x.Run.Err)
	}
	store, err := runs.Open(s.opt.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.Load(t.Context(), x.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if r.Summary == nil || r.Summary.Restored {
		t.Errorf("it has put the light back: %+v", r.Summary)
	}
	for name, begin := range map[string]func() error{
		"start":  func() error { return s.StartRun(t.Context(), ocs.Safe) },
		"resume": func() error { return s.Resume(t.Context(), x.Run.ID) },
	} {
		if err := begin(); !errors.Is(err, panics.ErrInForce) || !strings.Contains(err.Error(), "panic --lift") {
			t.Errorf("%s in a panic: %v", name, err)
		}
	}
	mustApply(t, s, Wish{Verb: Lift})
	if err := s.Resume(t.Context(), x.Run.ID); err != nil { // it can be gone on with
		t.Error(err)
	}
}

// Ensure that a panic ends a run that is only being begun.
func TestRun_PanicBeforeItBegan(t *testing.T) {
	s := openForRuns(t, nil)
	ready(t, s)
	if err := s.LoadRun(t.Context(), experimentFile(t, "200")); err != nil {
		t.Fatal(err)
	}
	preparing := make(chan struct{})
	begun := make(chan error)
	go func() {
		begun <- s.begin(context.Background(), func(ctx context.Context, _ execution.Options) (*execution.Execution, error) {
			close(preparing)
			<-ctx.Done() // a switch that hangs
			return nil, context.Cause(ctx)
		})
	}()
	<-preparing
	p := s.Preview(t.Context(), Wish{Verb: PanicNow, Reason: "a fibre is open"})
	if o := s.Apply(t.Context(), p); o.Err != nil {
		t.Error(o.Err)
	}
	if err := <-begun; !errors.Is(err, errPanicked) {
		t.Errorf("the run: %v, want %v", err, errPanicked)
	}
	if x := s.State(); x.Panic == nil && until(t, s, "the panic is in force", func(x *State) bool { return x.Panic != nil }) == nil {
		t.Error("no panic is in force")
	}
}

// Ensure that a plan that was made for the lab as it was before is not carried out.
func TestRun_PlansAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	if err := os.WriteFile(path, examples.OpusTestbed, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openForRuns(t, func(opt *Options) {
		f, err := lab.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		opt.File = f
	})
	ready(t, s)
	if err := s.LoadRun(t.Context(), experimentFile(t, "1")); err != nil {
		t.Fatal(err)
	}
	before := until(t, s, "it is loaded", func(x *State) bool { return x.Run != nil }).Run.Plan
	text := strings.NewReplacer("dp:", "was-dp:", "pp:", "dp:").Replace(string(examples.OpusTestbed))
	text = strings.Replace(text, "was-dp:", "pp:", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, s, "the switch is back", func(x *State) bool { return x.Switches[0].Status == Up })
	if err := s.StartRun(t.Context(), ocs.Safe); !errors.Is(err, errPlanned) {
		t.Fatalf("with another lab: %v, want %v", err, errPlanned)
	}
	until(t, s, "the new plan is shown", func(x *State) bool { return x.Run.ID == "" && x.Run.Plan != before })
	if err := s.StartRun(t.Context(), ocs.Safe); err != nil {
		t.Errorf("once it was shown: %v", err)
	}
}

// Ensure that a run that is over says of its quantiles what its analysis says.
func TestRun_AsAnalyzed(t *testing.T) {
	s := openForRuns(t, nil)
	ready(t, s)
	if err := s.LoadRun(t.Context(), experimentFile(t, "3")); err != nil {
		t.Fatal(err)
	}
	if err := s.StartRun(t.Context(), ocs.Safe); err != nil {
		t.Fatal(err)
	}
	r := ended(t, s).Run
	compared := 0
	for _, x := range r.Stages {
		for _, want := range r.Analysis.Conditions[x.Condition-1].Report.Stages {
			if want.Stage != x.Stage {
				continue
			}
			compared++
			if x.Median != want.Median || x.P95 != want.P95 || len(x.Durations) != want.Count || x.Missing != want.Missing {
				t.Errorf("%s: median %v, p95 %v, %d, %d missing; the analysis has %+v", x.Stage, x.Median, x.P95, len(x.Durations), x.Missing, want)
			}
		}
	}
	if compared == 0 || compared != len(r.Stages) {
		t.Errorf("%d of %d stages are in the analysis", compared, len(r.Stages))
	}
}
