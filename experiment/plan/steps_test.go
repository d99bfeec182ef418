package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/ocs"
)

func stepLine(s plan.Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8v %7v %-8s", s.At.Round(time.Millisecond), s.Takes.Round(time.Millisecond), s.Kind)
	if s.Condition > 0 {
		fmt.Fprintf(&b, " condition %d", s.Condition)
	}
	if s.Point > 0 {
		fmt.Fprintf(&b, " point %d repeat %d", s.Point, s.Repeat)
	}
	if s.Number > 0 {
		fmt.Fprintf(&b, " #%d", s.Number)
	}
	if s.Hook != nil {
		fmt.Fprintf(&b, " %s %q", s.Where, s.Hook)
	}
	if s.From+s.To != "" {
		fmt.Fprintf(&b, " %s>%s", s.From, s.To)
	}
	if all, known := s.Changes(); known {
		for _, name := range []string{"rail0"} {
			if c, ok := all[name]; ok {
				fmt.Fprintf(&b, " %s %v", name, c)
			}
		}
	}
	return b.String() + "\n"
}

// Ensure all that a run does is told, in the order in which it is done.
func TestSteps_Golden(t *testing.T) {
	f := parse(t, `
sequence: [dp, pp]
parameters: {who: me}
configurations:
  park: {maps: {rail0: 1>40}}
axes:
  - grid: {switching: [10ms, 20ms], dwell: [0s, 1s]}
repeats: 1
warm_ups: 1
order: fixed
nulls: {count: 1, window: 500ms}
hooks:
  before_run: [{run: [check, "${who}"]}]
  setup: [{run: [configure, "${switching}"]}]
  before_point: [{run: [begin, "${dwell}"]}]
  after_point: [{run: [end]}]
  after_run: [{run: [notify]}]
`)
	f.Finally.Light, f.Finally.Hooks = "park", []plan.Hook{{Run: []string{"unlock", "${who}"}}}
	p, err := f.Resolve(testbed(t), plan.Options{Emulated: true})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for s := range p.Steps(f, nil) {
		got.WriteString(stepLine(s))
	}
	path := filepath.Join("testdata", "steps.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Ensure every reconfiguration of the plan is a step, once, and the light is where it
// begins: what one step brings about is where the next one comes from.
func TestSteps_Complete(t *testing.T) {
	for _, order := range []string{"fixed", "random", "interleaved"} {
		p := resolve(t, mixed+"order: "+order)
		seen := map[int]bool{}
		var light map[string]ocs.Map
		at := ""
		for s := range p.Steps(nil, nil) {
			c := p.Condition(s.Condition)
			switch s.Kind {
			case plan.StepSetup:
				light, at = nil, ""
				continue
			case plan.StepFinally:
				continue
			case plan.StepApproach:
				if !plan.NeedsApproach(light, c) {
					t.Fatalf("an approach to where the light is: %s", stepLine(s))
				}
			case plan.StepNull, plan.StepMove:
				if seen[s.Number] {
					t.Errorf("reconfiguration %d is there twice", s.Number)
				}
				seen[s.Number] = true
			}
			if s.From != at {
				t.Fatalf("a step comes from %q, and the light is at %q: %s", s.From, at, stepLine(s))
			}
			if s.Kind != plan.StepNull {
				light, at = s.Want, s.To
			}
		}
		want := 0
		for _, x := range p.Points {
			n := x.Reconfigurations(p.Condition(x.Condition))
			want += n
			for i := range n {
				if !seen[x.First+i] {
					t.Errorf("%s: reconfiguration %d is no step", order, x.First+i)
				}
			}
		}
		if len(seen) != want {
			t.Errorf("%s: %d reconfigurations, want %d", order, len(seen), want)
		}
	}
}

// Ensure what is done takes no more time, and nothing is left in the end.
func TestRemaining(t *testing.T) {
	p := resolve(t, mixed)
	done, dropped := map[int]bool{}, map[int]bool{}
	left := p.Total()
	if left <= 0 {
		t.Fatalf("total=%v", left)
	}
	for i, x := range p.Points {
		if i%3 == 0 {
			dropped[x.ID] = true
		} else {
			done[x.ID] = true
		}
		now := p.Remaining(done, dropped)
		if now > left {
			t.Errorf("after point %d there is more to do, %v, than before, %v", x.ID, now, left)
		}
		left = now
	}
	if left != 0 {
		t.Errorf("when all is done, %v are left", left)
	}
}

// Ensure whoever wants no more steps gets none.
func TestSteps_Break(t *testing.T) {
	p := resolve(t, mixed)
	all := 0
	for range p.Steps(nil, nil) {
		all++
	}
	for most := range all {
		n := 0
		for range p.Steps(nil, nil) {
			if n++; n > most {
				break
			}
		}
		if n != most+1 {
			t.Fatalf("%d steps, want %d", n, most+1)
		}
	}
}

func TestNeedsApproach(t *testing.T) {
	c := resolve(t, "sequence: [dp, pp]").Condition(1)
	for _, x := range []struct {
		name string
		at   map[string]ocs.Map
		want bool
	}{
		{"nobody knows", nil, true},
		{"dark", map[string]ocs.Map{}, true},
		{"at the first", c.Maps[0], false},
		{"at the second", c.Maps[1], true},
	} {
		if got := plan.NeedsApproach(x.at, c); got != x.want {
			t.Errorf("%s: got %v, want %v", x.name, got, x.want)
		}
	}
}

func TestCondition(t *testing.T) {
	p := resolve(t, mixed)
	for _, n := range []int{-1, 0, len(p.Conditions) + 1} {
		if c := p.Condition(n); c != nil {
			t.Errorf("condition %d is %+v, want none", n, c)
		}
	}
}

// Ensure a plan is quick to go through, since progress asks often.
func BenchmarkRemaining(b *testing.B) {
	p := resolve(b, "sequence: [dp, pp]\nrepeats: 2500\norder: random\naxes: [{grid: {dwell: [0s, 1s]}}, {grid: {switching: [10ms, 20ms]}}]")
	b.ReportAllocs()
	for b.Loop() {
		p.Total()
	}
}

func BenchmarkResolve(b *testing.B) {
	f, l := parse(b, "sequence: [dp, pp]\nrepeats: 100\naxes: [{random: {points: 1000, values: {dwell: [0ms..10s]}}}]"), testbed(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Resolve(l, plan.Options{Emulated: true}); err != nil {
			b.Fatal(err)
		}
	}
}
