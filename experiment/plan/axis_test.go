package plan_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/experiment/plan"
)

func labels(p *plan.Plan) []string {
	var all []string
	for _, c := range p.Conditions {
		all = append(all, c.Label)
	}
	return all
}

// Ensure conditions come in the order in which the axes are written, the last changing
// fastest.
func TestAxes(t *testing.T) {
	for _, x := range []struct {
		name, axes string
		want       []string
		varied     []string
	}{
		{"none", "", []string{""}, []string{}},
		{
			"grid", "axes: [{grid: {switching: [10ms, 20ms], ack: [before, after]}}]",
			[]string{"switching=10ms ack=before", "switching=10ms ack=after", "switching=20ms ack=before", "switching=20ms ack=after"},
			[]string{"switching", "ack"},
		},
		{
			"zip across a list", "axes: [{zip: {dwell: [1s, 2s], pace: [1ms, 2ms]}}, {list: [{ack: before}, {ack: after}]}]",
			[]string{"dwell=1s pace=1ms ack=before", "dwell=1s pace=1ms ack=after", "dwell=2s pace=2ms ack=before", "dwell=2s pace=2ms ack=after"},
			[]string{"dwell", "pace", "ack"},
		},
		{"one value does not vary", "axes: [{grid: {firmware: [quick], dwell: [1s, 2s]}}]", []string{"dwell=1s", "dwell=2s"}, []string{"dwell"}},
	} {
		p := resolve(t, "sequence: [dp, pp]\n"+x.axes)
		if d := cmp.Diff(x.want, labels(p)); d != "" {
			t.Errorf("%s: -want +got\n%s", x.name, d)
		}
		if d := cmp.Diff(x.varied, p.Varied); d != "" {
			t.Errorf("%s: -want +got\n%s", x.name, d)
		}
	}
}

// Ensure random axes draw different conditions, from all that there is to draw from.
func TestAxes_Random(t *testing.T) {
	p := resolve(t, `
sequence: [dp, pp]
repeats: 1
axes:
  - random: {points: 500, values: {switching: [100ms..200ms], n: [-3..3, other]}}
hooks: {before_point: [{run: [echo, "${n}"]}]}
`)
	seen, n := map[string]bool{}, map[string]int{}
	least, most := time.Hour, time.Duration(0)
	for _, c := range p.Conditions {
		if seen[c.Label] {
			t.Errorf("%s is there twice", c.Label)
		}
		seen[c.Label] = true
		n[c.Parameters["n"]]++
		least, most = min(least, *c.Settings.Switching), max(most, *c.Settings.Switching)
		if len(c.Parameters["switching"]) > len("199.9ms") {
			t.Errorf("switching=%s is more precise than a person would write it", c.Parameters["switching"])
		}
	}
	if least < 100*time.Millisecond || least > 105*time.Millisecond || most > 200*time.Millisecond || most < 195*time.Millisecond {
		t.Errorf("drawn from %v to %v, want about all of 100ms to 200ms", least, most)
	}
	for i := -3; i <= 3; i++ {
		if n[strconv.Itoa(i)] == 0 {
			t.Errorf("%d was never drawn", i)
		}
	}
	if n["other"] < 200 || n["other"] > 300 { // one of two in the list
		t.Errorf("other was drawn %d times of 500, want about half", n["other"])
	}
}

// Ensure all of a small number of choices can be had.
func TestAxes_RandomAll(t *testing.T) {
	p := resolve(t, "sequence: [dp, pp]\naxes: [{random: {points: 8, values: {ack: [before, after], pace: [1ms, 2ms, 3ms, 4ms]}}}]")
	if len(p.Conditions) != 8 {
		t.Errorf("%d conditions, want 8", len(p.Conditions))
	}
}

// Ensure conditions share a set-up exactly when nothing differs that a testbed is opened
// with.
func TestSetup(t *testing.T) {
	for _, x := range []struct {
		text string
		want int
	}{
		{"axes: [{grid: {dwell: [1s, 2s]}}]", 1},
		{"axes: [{grid: {switching: [10ms, 20ms]}}]", 2},
		{"axes: [{grid: {pace: [1ms, 2ms]}}, {grid: {ack: [before, after]}}]", 4},
		{"axes: [{grid: {mine: [1, 2]}}]\nhooks: {before_point: [{run: [echo]}]}", 1},
		{"axes: [{grid: {mine: [1, 2]}}]\nhooks: {setup: [{run: [echo]}]}", 2},
		{"axes: [{grid: {dwell: [1s, 2s]}}]\nhooks: {setup: [{run: [echo]}]}", 1},
		{"axes: [{grid: {dwell: [1s, 2s]}}]\nhooks: {setup: [{run: [echo, \"${dwell}\"]}]}", 2},
	} {
		different := map[string]bool{}
		for _, c := range resolve(t, "sequence: [dp, pp]\n"+x.text).Conditions {
			different[c.Setup] = true
		}
		if len(different) != x.want {
			t.Errorf("%s: %d set-ups, want %d", strings.ReplaceAll(x.text, "\n", "; "), len(different), x.want)
		}
	}
}

// Ensure parameters reach the names of configurations and the arguments of planners.
func TestSubstitution(t *testing.T) {
	p := resolve(t, `
sequence: ["${first}", turned]
parameters: {first: dp}
configurations:
  turned: {topology: {planner: shift, nics: [gpu4, gpu3, gpu2, gpu1], with: {by: "${by}"}}}
axes: [{grid: {by: [1, 2]}}]
`)
	for i, want := range []string{"1>36,2-4>33-35", "1>35,2>36,3>33,4>34"} {
		c := p.Conditions[i]
		if got := c.Maps[1]["rail0"].String(); got != want || c.Sequence[0] != "dp" {
			t.Errorf("condition %d goes from %s to %s, want dp to %s", i+1, c.Sequence[0], got, want)
		}
	}
}

// Ensure the settings of a condition reach the lab, and no other lab.
func TestSettings_Apply(t *testing.T) {
	l := testbed(t)
	before := string(l.YAML())
	d := 5 * time.Millisecond
	n := plan.Settings{Firmware: "quick", Model: "fast-mems-25ms", Ack: "before", Switching: &d}.Apply(l)
	e := n.Switches[0].Emulate
	if e.Model != "fast-mems-25ms" || e.Ack != "before" || *e.Switching != d || n.Hosts[2].NICs[0].Firmware != "quick" {
		t.Errorf("emulate=%+v, firmware=%s", *e, n.Hosts[2].NICs[0].Firmware)
	}
	if string(l.YAML()) != before {
		t.Error("the lab that it was made from has changed")
	}
	if string(plan.Settings{}.Apply(l).YAML()) != before {
		t.Error("no settings have changed the lab")
	}
}
