package crosswiring_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// follow switches the pairs of the rounds, and returns between how many pods, that have links before and after, there was
// none while a round was under way. At the end all must be as it is to be.
func follow(t fataler, from, to *crosswiring.Config, rounds [][]crosswiring.Pair) (dark int) {
	t.Helper()
	f := from.Fabric()
	now := from.AllCircuits()
	target := to.AllCircuits()
	for _, round := range rounds {
		for _, p := range round {
			for _, s := range f.Members(p) { // what stays of it
				now[s] = common(now[s], target[s])
			}
		}
		dark += missing(t, f, from, to, now)
		for _, p := range round {
			for _, s := range f.Members(p) {
				now[s] = target[s]
			}
		}
	}
	end, err := crosswiring.FromCircuits(f, now)
	if err != nil || !end.Equal(to) {
		t.Fatal("the rounds do not lead to what was asked for", err)
	}
	return dark
}

func common(a, b []crosswiring.Circuit) (both []crosswiring.Circuit) {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				both = append(both, x)
			}
		}
	}
	return both
}

func missing(t fataler, f crosswiring.Fabric, from, to *crosswiring.Config, now byIndex) (n int) {
	c, err := crosswiring.FromCircuits(f, now)
	if err != nil {
		t.Fatal(err)
	}
	before, meanwhile, after := joined(from), joined(c), joined(to)
	for pods := range before {
		if after[pods] && !meanwhile[pods] {
			n++
		}
	}
	return n
}

// joined returns which pods have a link in any group.
func joined(c *crosswiring.Config) map[[2]int]bool {
	all := map[[2]int]bool{}
	for _, l := range c.Links() {
		all[[2]int{min(l.A.Pod, l.B.Pod), max(l.A.Pod, l.B.Pod)}] = true
	}
	return all
}

// Whatever changes, the rounds lead there, touch only what changes, each pair once, and say so if pods go dark.
func TestStages_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t)
		from, err := crosswiring.Plan(f, drawDemand(t, f))
		if err != nil {
			t.Fatal(err)
		}
		to, _ := rewire(t, from, drawDemand(t, f), crosswiring.RewireOptions{})
		rounds, err := crosswiring.Stages(from, to)
		if err != nil && !errors.Is(err, crosswiring.ErrStages) {
			t.Fatal(err)
		}
		if dark := follow(t, from, to, rounds); (dark > 0) != (err != nil) {
			t.Fatalf("%d pods go dark: %v", dark, err)
		}
		change, _ := crosswiring.Diff(from, to)
		changed, seen := map[crosswiring.Pair]bool{}, map[crosswiring.Pair]bool{}
		for _, s := range change.Switches {
			changed[f.PairOf(s.Switch)] = true
		}
		for _, round := range rounds {
			for _, p := range round {
				if seen[p] || !changed[p] {
					t.Fatalf("%v again, or it does not change", p)
				}
				seen[p] = true
			}
		}
		if len(seen) != len(changed) {
			t.Fatalf("%d pairs of %d", len(seen), len(changed))
		}
	})
}

func TestStages(t *testing.T) {
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}
	link := func(pair, a, b int) byIndex {
		return byIndex{{Index: 2 * pair}: {{In: a, Out: b}}, {Index: 2*pair + 1}: {{In: b, Out: a}}}
	}
	both := func(x, y byIndex) byIndex {
		all := byIndex{}
		for _, m := range []byIndex{x, y} {
			for s, c := range m {
				all[s] = append(all[s], c...)
			}
		}
		return all
	}
	for _, x := range []struct {
		name     string
		from, to byIndex
		rounds   []int
		dark     string
	}{
		{"nothing", link(0, 0, 1), link(0, 0, 1), nil, ""},
		{"first-there-then-not-here", link(0, 0, 1), link(1, 0, 1), []int{1, 1}, ""},
		{"no-other", link(0, 0, 1), link(0, 2, 3), []int{1}, ""},
		{"turned-round", link(0, 0, 1), link(0, 1, 0), []int{1}, "pods 0 and 1 while pair 0/0 changes"},
		{"each-has-the-other's", both(link(0, 0, 1), link(1, 2, 3)), both(link(1, 0, 1), link(0, 2, 3)), []int{1, 1},
			"pods 0 and 1 while pair 0/0 changes"},
		{"two-of-two", both(link(0, 0, 1), link(1, 0, 1)), both(link(0, 1, 0), link(1, 1, 0)), []int{1, 1}, ""},
		{"half-a-link", byIndex{{}: {{In: 0, Out: 1}}}, link(0, 0, 1), []int{1}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			from, to := circuits(t, f, x.from), circuits(t, f, x.to)
			rounds, err := crosswiring.Stages(from, to)
			if (err != nil) != (x.dark != "") || err != nil && (!errors.Is(err, crosswiring.ErrStages) || !strings.Contains(err.Error(), x.dark)) {
				t.Errorf("%v: want %q", err, x.dark)
			}
			var sizes []int
			for _, r := range rounds {
				sizes = append(sizes, len(r))
			}
			if len(sizes) != len(x.rounds) {
				t.Fatalf("rounds %v: want %v", rounds, x.rounds)
			}
			for i := range sizes {
				if sizes[i] != x.rounds[i] {
					t.Errorf("rounds %v: want %v", rounds, x.rounds)
				}
			}
			follow(t, from, to, rounds)
		})
	}
}

func TestStages_Refuses(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	other, uniform := f, f
	other.Pods, uniform.Wiring = 4, crosswiring.Uniform
	for _, x := range []struct {
		from, to *crosswiring.Config
		err      error
	}{
		{circuits(t, f, nil), circuits(t, other, nil), crosswiring.ErrConfig},
		{circuits(t, uniform, nil), circuits(t, uniform, nil), crosswiring.ErrFabric},
		{&crosswiring.Config{}, &crosswiring.Config{}, crosswiring.ErrFabric},
	} {
		if rounds, err := crosswiring.Stages(x.from, x.to); !errors.Is(err, x.err) || rounds != nil {
			t.Errorf("%v: want %v", err, x.err)
		}
	}
}
