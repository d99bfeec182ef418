package plan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/plan"
)

const mixed = `
sequence: [dp, pp]
axes:
  - grid: {firmware: [quick, connectx-6-dx/autoneg-off]}
  - zip: {switching: [20ms, 40ms], dwell: [0s, 1s]}
  - random: {points: 3, values: {color: [1..100, red], shape: [a, b]}}
hooks: {before_point: [{run: [echo, "${color}", "${shape}"]}]}
repeats: 3
`

// Ensure the same file, lab and seed give the same plan, on every machine and in every
// version; and that it is the same when read back.
func TestPlan_Golden(t *testing.T) {
	got, err := json.MarshalIndent(resolve(t, mixed+"order: random\nseed: 7\n"), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "plan.json")
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("the plan differs from what it was; -want +got\n%s", d)
	}
	var p plan.Plan
	if err := json.Unmarshal(got, &p); err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(p, "", " ")
	if err != nil || string(again) != string(got) {
		t.Errorf("read back it differs: %v %s", err, cmp.Diff(string(got), string(again)))
	}
	if d := cmp.Diff(resolve(t, mixed+"seed: 7\n"), &p, cmp.AllowUnexported()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Ensure names do not take part in chance: with other names for all that people name, the
// same is done in the same order.
func TestPlan_Relabelled(t *testing.T) {
	for _, order := range []string{"fixed", "random", "interleaved"} {
		a := resolve(t, mixed+"order: "+order)
		renamed := strings.NewReplacer("color", "z9", "shape", "a1", "[dp, pp]", "[two, one]", "red", "green").Replace(mixed) +
			"configurations: {two: {links: [[gpu1, gpu2], [gpu3, gpu4]]}, one: {links: [[gpu1, gpu3], [gpu2, gpu4]]}}\norder: " + order
		b := resolve(t, renamed)
		if d := cmp.Diff(a.Points, b.Points); d != "" {
			t.Errorf("%s: -before +after\n%s", order, d)
		}
		for i := range a.Conditions {
			x, y := a.Conditions[i].Parameters, b.Conditions[i].Parameters
			if c := strings.Replace(x["color"], "red", "green", 1); c != y["z9"] || x["shape"] != y["a1"] {
				t.Errorf("condition %d: %v and %v", i+1, x, y)
			}
		}
	}
}

// Ensure a seed changes the order and what is drawn, and nothing else.
func TestPlan_Seed(t *testing.T) {
	f, l := parse(t, mixed), testbed(t)
	one, err := f.Resolve(l, plan.Options{Emulated: true})
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(2)
	two, err := f.Resolve(l, plan.Options{Emulated: true, Seed: &seed})
	if err != nil {
		t.Fatal(err)
	}
	if one.Seed != plan.DefaultSeed || two.Seed != 2 {
		t.Errorf("seeds %d and %d", one.Seed, two.Seed)
	}
	if slices.Equal(one.Points, two.Points) {
		t.Error("another seed gave the same order")
	}
	if one.Conditions[0].Parameters["color"] == two.Conditions[0].Parameters["color"] &&
		one.Conditions[1].Parameters["color"] == two.Conditions[1].Parameters["color"] {
		t.Error("another seed drew the same")
	}
	repeats := 5
	more, err := f.Resolve(l, plan.Options{Emulated: true, Repeats: &repeats})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(one.Conditions, more.Conditions); d != "" {
		t.Errorf("with more repeats the conditions differ:\n%s", d)
	}
}

// Ensure every order has each point once, as its name says, and null toggles where they
// need no set-up of their own.
func TestPoints(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		firmware := rapid.IntRange(1, 3).Draw(rt, "firmware")
		dwells := rapid.IntRange(1, 4).Draw(rt, "dwells")
		repeats := rapid.IntRange(1, 7).Draw(rt, "repeats")
		order := rapid.SampledFrom([]plan.Order{plan.Fixed, plan.Random, plan.Interleaved}).Draw(rt, "order")
		nulls := rapid.IntRange(-1, 40).Draw(rt, "nulls")
		text := fmt.Sprintf("sequence: [dp, pp]\nrepeats: %d\norder: %s\nseed: %d\naxes:\n  - grid: {firmware: [%s]}\n  - grid: {dwell: [%s]}\n",
			repeats, order, rapid.Uint64().Draw(rt, "seed"),
			strings.Join([]string{"quick", "connectx-6-dx/autoneg-on", "connectx-6-dx/autoneg-off"}[:firmware], ", "),
			strings.Join([]string{"0s", "1s", "2s", "3s"}[:dwells], ", "))
		conditions := firmware * dwells
		if nulls >= 0 {
			text += fmt.Sprintf("nulls: {count: %d}\n", nulls)
		} else {
			nulls = max((conditions*repeats+9)/10, conditions)
		}
		p := resolve(t, text)
		if len(p.Conditions) != conditions || len(p.Points) != conditions*repeats+nulls {
			rt.Fatalf("%d conditions and %d points, want %d and %d", len(p.Conditions), len(p.Points), conditions, conditions*repeats+nulls)
		}
		byID := slices.SortedFunc(slices.Values(p.Points), func(a, b plan.Point) int { return a.ID - b.ID })
		first, ofCondition := 1, map[int]int{}
		for i, x := range byID {
			want := plan.Point{ID: i + 1, Condition: i/repeats + 1, Repeat: i%repeats + 1, First: first}
			if i >= conditions*repeats {
				want.Condition, want.Repeat, want.Null = x.Condition, x.Repeat, true
				ofCondition[x.Condition]++
			}
			if x != want {
				rt.Fatalf("point %+v, want %+v", x, want)
			}
			first += x.Reconfigurations(p.Condition(x.Condition))
		}
		for c := range conditions {
			if n := ofCondition[c+1]; n < nulls/conditions || n > (nulls+conditions-1)/conditions {
				rt.Fatalf("condition %d has %d of %d null toggles", c+1, n, nulls)
			}
		}
		var repeated []plan.Point
		for i, x := range p.Points {
			switch {
			case !x.Null:
				repeated = append(repeated, x)
			case i == 0 || p.Points[i-1].Condition != x.Condition:
				rt.Fatalf("the null toggle %+v does not follow a point of its condition", x)
			}
		}
		changes := 0
		for i, x := range repeated {
			if i == 0 || plan.NeedsSetup(p.Condition(repeated[i-1].Condition), p.Condition(x.Condition)) {
				changes++
			}
			switch order {
			case plan.Fixed:
				if x.ID != i+1 {
					rt.Fatalf("point %d is number %d", x.ID, i+1)
				}
			case plan.Interleaved:
				if x.Repeat != i/conditions+1 {
					rt.Fatalf("repeat %d in round %d", x.Repeat, i/conditions+1)
				}
			}
		}
		if most := map[plan.Order]int{plan.Fixed: firmware, plan.Random: firmware, plan.Interleaved: firmware * repeats}[order]; changes > most {
			rt.Fatalf("%d set-ups, want %d at most", changes, most)
		}
	})
}

// Ensure null toggles are spread over the run where conditions take turns.
func TestPoints_NullsSpread(t *testing.T) {
	p := resolve(t, "sequence: [dp, pp]\nrepeats: 30\norder: interleaved\nnulls: {count: 10}\naxes:\n  - grid: {dwell: [0s, 1s, 2s, 3s, 4s]}\n")
	last := 0
	for i, x := range p.Points {
		if x.Null {
			if gap := i - last; gap > 25 { // 160 points, 10 toggles
				t.Errorf("%d points without a null toggle before number %d", gap, i)
			}
			last = i
		}
	}
}
