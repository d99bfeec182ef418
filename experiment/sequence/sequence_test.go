package sequence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/labtest"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// open returns a lab of a few quick switches in a directory of its own, and how to play there.
func open(t *testing.T, switches int, more string) (*lab.File, sequence.Options) {
	t.Helper()
	dir := t.TempDir()
	text := "name: rails\nswitches:\n"
	for i := range switches {
		text += fmt.Sprintf("  - {name: rail%d, emulate: {model: polatis-old-16x16, switching: 1ms}}\n", i)
	}
	path := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(path, []byte(text+more), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := lab.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	opt := sequence.Options{Name: "rails", About: "a test"}
	opt.Lab = lab.Options{Emulated: true, StateDir: dir, Command: "topology rails"}
	opt.Version = "1"
	if opt.Store, err = runs.Open(dir); err != nil {
		t.Fatal(err)
	}
	return f, opt
}

func circuits(t *testing.T, text string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// holds returns what the switches of a lab hold.
func holds(t *testing.T, f *lab.File, opt sequence.Options) map[string]string {
	t.Helper()
	l := lab.New(f, opt.Lab)
	defer func() { _ = l.Close() }()
	all := map[string]string{}
	for _, s := range f.Switches {
		sw, err := l.Switch(t.Context(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := sw.CrossConnects(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all[s.Name] = m.String()
	}
	return all
}

// connect makes circuits that are nobody's.
func connect(t *testing.T, f *lab.File, opt sequence.Options, name, text string) {
	t.Helper()
	l := lab.New(f, opt.Lab)
	defer func() { _ = l.Close() }()
	sw, err := l.Switch(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ocs.Reconcile(t.Context(), sw, circuits(t, text), ocs.Update); err != nil {
		t.Fatal(err)
	}
}

// Ensure that steps are brought about in order on several switches, that circuits of earlier steps go and those of
// others stay, that callbacks come in order, and that what is recorded can be shown and reported.
func TestPlay(t *testing.T) {
	f, opt := open(t, 3, "")
	connect(t, f, opt, "rail0", "9>25")
	connect(t, f, opt, "rail2", "1>17")
	steps := []sequence.Step{
		{Name: "ring", Maps: map[string]ocs.Map{"rail0": circuits(t, "1>18,2>17"), "rail1": circuits(t, "1>17"), "rail2": {}}},
		{Name: "round 0", Maps: map[string]ocs.Map{"rail0": circuits(t, "1>17")}},
		{Name: "ring", Maps: map[string]ocs.Map{"rail0": circuits(t, "1>18,2>17"), "rail1": circuits(t, "1>17")}},
		{Name: "ring", Maps: map[string]ocs.Map{"rail1": circuits(t, "2>17")}},
	}
	var told []string
	var bed *experiment.Testbed
	opt.Repeats = 2
	opt.Opened = func(s *sequence.Session) error {
		bed = s.Testbed
		return s.Event("remark", "it begins")
	}
	state := func(what string, step int) {
		var parts []string
		for _, r := range bed.Bench.Rigs {
			m, err := r.Switch.CrossConnects(t.Context())
			if err != nil {
				t.Error(err)
			}
			parts = append(parts, r.Name+" "+m.String())
		}
		told = append(told, fmt.Sprintf("%s %d: %s", what, step, strings.Join(parts, "; ")))
	}
	opt.ReadBack = func(_ context.Context, step int, mv experiment.Move) error {
		if len(mv.Reports) == 0 {
			t.Errorf("step %d: read back without a report", step)
		}
		told = append(told, fmt.Sprintf("read %d", step))
		return nil
	}
	opt.After = func(_ context.Context, step int, _ experiment.Move) error { state("after", step); return nil }
	r, err := sequence.Play(t.Context(), f, steps, opt)
	if err != nil {
		t.Fatal(err)
	}
	lap := []string{
		"read 0", "after 0: rail0 1>18,2>17,9>25; rail1 1>17",
		"read 1", "after 1: rail0 1>17,9>25; rail1 1>17",
		"read 2", "after 2: rail0 1>18,2>17,9>25; rail1 1>17",
		"read 3", "after 3: rail0 1>18,2>17,9>25; rail1 2>17",
	}
	if want := slices.Concat(lap, lap); !slices.Equal(told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if got, want := fmt.Sprint(holds(t, f, opt)), "map[rail0:9>25 rail1: rail2:1>17]"; got != want {
		t.Errorf("put back: %s, want %s", got, want)
	}
	if len(r.Moves) != 8 || r.Summary.State != runs.Done || !r.Summary.Restored {
		t.Errorf("%d moves, %+v", len(r.Moves), r.Summary)
	}
	recorded(t, opt, r.ID)
}

func recorded(t *testing.T, opt sequence.Options, id string) {
	t.Helper()
	run, err := opt.Store.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var ways []string
	for _, r := range run.Reconfigurations {
		ways = append(ways, r.From+" "+r.To)
	}
	lap := []string{"as-found ring", "ring round-0", "round-0 ring", "ring ring-2"}
	if want := append(slices.Clone(lap), lap...); !slices.Equal(ways[:8], want) {
		t.Errorf("reconfigurations %q, want %q", ways, want)
	}
	if !slices.ContainsFunc(run.Events, func(e runs.Event) bool { return e.Kind == "remark" }) {
		t.Errorf("events: %+v", run.Events)
	}
	for _, b := range []bool{true, false} {
		var page bytes.Buffer
		if err := report.HTML(&page, run, analysis.Of(run), report.Options{}); err != nil || page.Len() < 1000 {
			t.Errorf("report %v: %d bytes, %v", b, page.Len(), err)
		}
	}
	entries, _, err := lab.Files(opt.Lab.StateDir).Entries()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 10 || entries[0].Command != "topology rails" {
		t.Errorf("history: %d entries, %+v", len(entries), entries[0])
	}
	if err := execution.Left(run); !errors.Is(err, execution.ErrNothingLeft) {
		t.Errorf("left: %v", err)
	}
}

// Ensure that what was asked to be left is left, but put back when a step goes wrong.
func TestPlay_Leave(t *testing.T) {
	f, opt := open(t, 2, "")
	connect(t, f, opt, "rail0", "1>17")
	steps := []sequence.Step{
		{Name: "a", Maps: map[string]ocs.Map{"rail0": circuits(t, "1>17,2>18"), "rail1": circuits(t, "3>19")}},
		{Name: "b", Maps: map[string]ocs.Map{"rail0": circuits(t, "1>18")}},
	}
	opt.Leave = true
	failure := errors.New("no good")
	for _, when := range []string{"after", "read-back"} {
		wrong := opt
		fail := func(_ context.Context, step int, _ experiment.Move) error {
			if step == 1 {
				return failure
			}
			return nil
		}
		if when == "after" {
			wrong.After = fail
		} else {
			wrong.ReadBack = fail
		}
		r, err := sequence.Play(t.Context(), f, steps, wrong)
		if !errors.Is(err, failure) || r == nil || r.Summary.State != runs.Failed {
			t.Fatalf("%s: %v, %+v", when, err, r)
		}
		if got, want := fmt.Sprint(holds(t, f, opt)), "map[rail0:1>17 rail1:]"; got != want {
			t.Errorf("%s: left %s, want %s", when, got, want)
		}
	}
	if _, err := sequence.Play(t.Context(), f, steps, opt); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(holds(t, f, opt)), "map[rail0:1>18 rail1:3>19]"; got != want {
		t.Errorf("left %s, want %s", got, want)
	}
}

// Ensure that when the context ends, the lab is put back.
func TestPlay_Interrupted(t *testing.T) {
	f, opt := open(t, 1, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("somebody pressed a key")
	opt.After = func(inner context.Context, _ int, _ experiment.Move) error {
		cancel(why)
		<-inner.Done()
		return inner.Err()
	}
	r, err := sequence.Play(ctx, f, []sequence.Step{{Name: "a", Maps: map[string]ocs.Map{"rail0": circuits(t, "1>17")}}}, opt)
	if !errors.Is(err, why) || r == nil || r.Summary.State != runs.Stopped || !r.Summary.Restored {
		t.Errorf("%v, %+v", err, r)
	}
	if got := holds(t, f, opt)["rail0"]; got != "" {
		t.Errorf("left %s", got)
	}
}

// Ensure that steps which cannot be played are refused before anything moves, and that no run is begun.
func TestPlay_Refused(t *testing.T) {
	f, opt := open(t, 1, "protect: [rail0/4]\n")
	connect(t, f, opt, "rail0", "3>20")
	one := func(text string) []sequence.Step {
		return []sequence.Step{{Name: "a", Maps: map[string]ocs.Map{"rail0": circuits(t, text)}}}
	}
	for _, c := range []struct {
		name  string
		steps []sequence.Step
		opt   func(*sequence.Options)
		want  error
		begun bool
	}{
		{name: "none", want: sequence.ErrSteps},
		{name: "nothing connected", steps: []sequence.Step{{Name: "a"}}, want: sequence.ErrSteps},
		{name: "too many", steps: slices.Repeat(one("1>17"), sequence.Most+1), want: sequence.ErrSteps},
		{name: "repeats", steps: one("1>17"), opt: func(o *sequence.Options) { o.Repeats = -1 }, want: sequence.ErrSteps},
		{name: "mode", steps: one("1>17"), opt: func(o *sequence.Options) { o.Mode = ocs.Overwrite }, want: sequence.ErrSteps},
		{name: "no store", steps: one("1>17"), opt: func(o *sequence.Options) { o.Store = nil }, want: sequence.ErrSteps},
		{name: "a bad name", steps: one("1>17"), opt: func(o *sequence.Options) { o.Name = "a b" }, want: sequence.ErrSteps},
		{name: "unknown switch", steps: []sequence.Step{{Name: "a", Maps: map[string]ocs.Map{"rail7": circuits(t, "1>17")}}}, want: lab.ErrUnknown},
		{name: "no such port", steps: one("1>99"), want: ocs.ErrPort},
		{name: "protected", steps: one("4>17"), want: ocs.ErrInterlock},
		{name: "in the way", steps: one("3>17"), want: ocs.ErrConflict},
		{name: "panic", steps: one("1>17"), opt: func(o *sequence.Options) {
			device, err := lab.New(f, o.Lab).Device("rail0")
			if err != nil {
				t.Fatal(err)
			}
			auth := labtest.Around(nil)
			auth.Panic(device, 17)
			o.Lab.Authority = auth
		}, want: panics.ErrInForce, begun: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := opt
			if c.opt != nil {
				c.opt(&o)
			}
			r, err := sequence.Play(t.Context(), f, c.steps, o)
			if !errors.Is(err, c.want) || (r != nil) != c.begun {
				t.Errorf("%v, %+v: want %v", err, r, c.want)
			}
			if got := holds(t, f, opt)["rail0"]; got != "3>20" {
				t.Errorf("moved to %s", got)
			}
		})
	}
	opt.Mode = ocs.Update // moves it, and puts it back
	if _, err := sequence.Play(t.Context(), f, one("3>17"), opt); err != nil {
		t.Fatal(err)
	}
	if got := holds(t, f, opt)["rail0"]; got != "3>20" {
		t.Errorf("put back: %s", got)
	}
}

// Ensure that a change which is refused in mid-sequence, since somebody has leased a port meanwhile or called a panic, ends
// it, that what was done is put back, also when the end was to be left, and that the run cannot be gone on with. What
// the panic keeps dark stays dark, and no circuit of the steps is left there.
func TestPlay_RefusedLater(t *testing.T) {
	for _, tt := range []struct {
		name     string
		begin    func(a *labtest.Authority, device string)
		want     error
		restored bool
		left     string
		advice   string
	}{
		{"lease", func(a *labtest.Authority, device string) { a.Lease(device, 19) }, lease.ErrLeased, true, "map[rail0:1>17 rail1:]", "begin it again"},
		{"panic", func(a *labtest.Authority, device string) { a.Panic(device, 1) }, panics.ErrInForce, false, "map[rail0: rail1:]", "can be begun again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, opt := open(t, 2, "")
			connect(t, f, opt, "rail0", "1>17")
			steps := []sequence.Step{
				{Name: "a", Maps: map[string]ocs.Map{"rail0": circuits(t, "1>18"), "rail1": circuits(t, "1>17")}},
				{Name: "b", Maps: map[string]ocs.Map{"rail0": circuits(t, "1>19"), "rail1": circuits(t, "1>18")}},
			}
			opt.Leave, opt.Mode = true, ocs.Update
			auth := labtest.Around(lab.Files(opt.Lab.StateDir))
			auth.Begun = func(entries []history.Entry) error {
				if len(entries[0].Change.Add.At(19)) > 0 {
					tt.begin(auth, entries[0].Device)
				}
				return nil
			}
			opt.Lab.Authority = auth
			r, err := sequence.Play(t.Context(), f, steps, opt)
			if !errors.Is(err, tt.want) || r == nil || r.Summary.State != runs.Failed || r.Summary.Restored != tt.restored || !strings.Contains(err.Error(), tt.advice) {
				t.Fatalf("%v, %+v", err, r)
			}
			if got := fmt.Sprint(holds(t, f, opt)); got != tt.left {
				t.Errorf("left %s, want %s", got, tt.left)
			}
			run, err := opt.Store.Load(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if err := execution.Resumable(run); !errors.Is(err, execution.ErrSequence) {
				t.Errorf("resumable: %v", err)
			}
		})
	}
}

// Ensure that the NICs of a lab are watched when that is asked for, and not otherwise.
func TestPlay_Hosts(t *testing.T) {
	hosts := "hosts:\n  - {name: gpu1, nics: [{name: e0, tx: rail0/1, rx: rail0/17, firmware: quick}]}\n  - {name: gpu2, nics: [{name: e0, tx: rail0/2, rx: rail0/18, firmware: quick}]}\n"
	for _, watched := range []bool{true, false} {
		f, opt := open(t, 1, hosts)
		opt.Hosts, opt.Rung = watched, "memory"
		seen := false
		opt.Opened = func(s *sequence.Session) error {
			seen = s.Testbed.Watch != nil && s.Testbed.Fabric != nil
			return nil
		}
		steps := []sequence.Step{{Name: "a", Maps: map[string]ocs.Map{"rail0": circuits(t, "1>18,2>17")}}}
		r, err := sequence.Play(t.Context(), f, steps, opt)
		if err != nil || seen != watched {
			t.Fatalf("hosts %v: watched %v, %v", watched, seen, err)
		}
		run, err := opt.Store.Load(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if named := len(run.Setups) > 0 && len(run.Setups[0].NICs) == 2; named != watched {
			t.Errorf("hosts %v: set-up %+v", watched, run.Setups)
		}
	}
}

// Ensure that Reconcile is asked for each switch of a step at the same time, goes there by way of another map, and that neither the
// way back nor the way to a repeat concerns it; and that its error ends the sequence.
func TestPlay_Reconcile(t *testing.T) {
	f, opt := open(t, 2, "")
	first, second := circuits(t, "1>17,2>18"), circuits(t, "1>18,2>17")
	steps := []sequence.Step{
		{Name: "one", Maps: map[string]ocs.Map{"rail0": first, "rail1": first}},
		{Name: "other", Maps: map[string]ocs.Map{"rail0": second, "rail1": second}},
	}
	turn := make(chan struct{}, 1) // from rail0 to rail1: they are there at the same time
	var mu sync.Mutex
	var told []string
	opt.Repeats = 2
	opt.Reconcile = func(ctx context.Context, step int, name string, want ocs.Map, do sequence.Do) (ocs.Report, error) {
		if name == "rail1" {
			<-turn
		} else {
			defer func() { turn <- struct{}{} }()
		}
		empty, err := do(ctx, ocs.Map{})
		if err != nil || empty.After.Len() > 0 {
			t.Errorf("%+v: %v", empty, err)
		}
		r, err := do(ctx, want)
		r.Receipt = empty.Receipt.Then(r.Receipt)
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf("%d %s %v", step, name, r.After))
		return r, err
	}
	r, err := sequence.Play(t.Context(), f, steps, opt)
	if err != nil || len(r.Moves) != 4 {
		t.Fatalf("%+v: %v", r, err)
	}
	want := []string{"0 rail0 1>17,2>18", "0 rail1 1>17,2>18", "1 rail0 1>18,2>17", "1 rail1 1>18,2>17"}
	if want = append(want, want...); !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	refused := errors.New("not now")
	opt.Reconcile = func(ctx context.Context, step int, name string, want ocs.Map, do sequence.Do) (ocs.Report, error) {
		if step == 1 && name == "rail1" {
			return ocs.Report{}, refused
		}
		return do(ctx, want)
	}
	if r, err = sequence.Play(t.Context(), f, steps, opt); !errors.Is(err, refused) || len(r.Moves) != 1 || !r.Summary.Restored {
		t.Errorf("%+v: %v", r, err)
	}
	for name, m := range holds(t, f, opt) {
		if m != "" {
			t.Errorf("%s holds %s", name, m)
		}
	}
}
