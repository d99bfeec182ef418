package advice_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/orchestrator/advice"
)

const ms = time.Millisecond

func TestProblem_Best(t *testing.T) {
	for _, c := range []struct {
		name string
		p    advice.Problem
		want advice.Plan
	}{
		{"one phase", advice.Problem{
			Time: [][]time.Duration{{20, 10}}, Window: []time.Duration{0}, Delay: 100,
		}, advice.Plan{Topology: []int{1}, Time: 10}},
		{"the windows hide all", advice.Problem{
			Time: [][]time.Duration{{20, 10, advice.Never}, {20, advice.Never, 10}}, Window: []time.Duration{5, 5}, Delay: 5,
		}, advice.Plan{Topology: []int{1, 2}, Time: 20, Changes: 2}},
		{"not worth it", advice.Problem{
			Time: [][]time.Duration{{20, 10, advice.Never}, {20, advice.Never, 10}}, Window: []time.Duration{5, 5}, Delay: 16,
		}, advice.Plan{Topology: []int{0, 0}, Time: 40}},
		{"even: the one with fewer changes", advice.Problem{
			Time: [][]time.Duration{{20, 10, advice.Never}, {20, advice.Never, 10}}, Window: []time.Duration{5, 5}, Delay: 15,
		}, advice.Plan{Topology: []int{0, 0}, Time: 40}},
		{"only for the long phase, from and to the ring", advice.Problem{
			Time: [][]time.Duration{{100, 10, advice.Never}, {10, advice.Never, 12}, {10, 12, advice.Never}}, Window: []time.Duration{0, 0, 0}, Delay: 20,
		}, advice.Plan{Topology: []int{1, 0, 0}, Time: 70, Changes: 2}},
		{"across the end of the step", advice.Problem{
			Time: [][]time.Duration{{100, 10}, {10, 100}, {100, 10}}, Window: []time.Duration{0, 0, 0}, Delay: 3,
		}, advice.Plan{Topology: []int{1, 0, 1}, Time: 36, Changes: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.p.Best()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblem_Refused(t *testing.T) {
	one := [][]time.Duration{{1}}
	for _, c := range []struct {
		p    advice.Problem
		want string
	}{
		{advice.Problem{}, "it has 0 phases"},
		{advice.Problem{Time: one}, "1 phases and 0 windows"},
		{advice.Problem{Time: [][]time.Duration{{}}, Window: []time.Duration{0}}, "it has no topology"},
		{advice.Problem{Time: [][]time.Duration{{1}, {1, 2}}, Window: []time.Duration{0, 0}}, "phase 1 has times for 2 topologies"},
		{advice.Problem{Time: one, Window: []time.Duration{0}, Delay: -1}, "a reconfiguration takes -1ns"},
		{advice.Problem{Time: one, Window: []time.Duration{0}, Delay: advice.Never}, "a reconfiguration takes"},
		{advice.Problem{Time: one, Window: []time.Duration{-1}}, "the window after phase 0 is -1ns"},
		{advice.Problem{Time: [][]time.Duration{{-1}}, Window: []time.Duration{0}}, "phase 0 takes -1ns on topology 0"},
		{advice.Problem{Time: [][]time.Duration{{advice.Never - 1}}, Window: []time.Duration{0}}, "phase 0 takes"},
		{advice.Problem{Time: [][]time.Duration{{1}, {advice.Never}}, Window: []time.Duration{0, 0}}, "works on none of the 1 topologies"},
	} {
		_, err := c.p.Best()
		if !errors.Is(err, advice.ErrProblem) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want one that says %q", c.p, err, c.want)
		}
		if c.p.Delay != 0 {
			continue // which does not matter for the break-even
		}
		if _, _, err := c.p.BreakEven(); !errors.Is(err, advice.ErrProblem) {
			t.Errorf("break-even of %+v: %v", c.p, err)
		}
	}
	p := advice.Problem{Time: one, Window: []time.Duration{0}}
	for _, topology := range [][]int{nil, {1}, {-1}, {0, 0}} {
		if _, err := p.Follow(topology); !errors.Is(err, advice.ErrProblem) {
			t.Errorf("plan %v: %v", topology, err)
		}
	}
}

// problems draws problems of up to n phases and k topologies, of which topology 0 carries all phases.
func problems(n, k int) *rapid.Generator[advice.Problem] {
	return rapid.Custom(func(t *rapid.T) advice.Problem {
		n, k := rapid.IntRange(1, n).Draw(t, "phases"), rapid.IntRange(1, k).Draw(t, "topologies")
		times := rapid.Custom(func(t *rapid.T) time.Duration {
			if rapid.IntRange(0, 5).Draw(t, "never") == 0 {
				return advice.Never
			}
			return time.Duration(rapid.IntRange(0, 12).Draw(t, "time"))
		})
		p := advice.Problem{Delay: time.Duration(rapid.IntRange(0, 15).Draw(t, "delay"))}
		for range n {
			row := rapid.SliceOfN(times, k, k).Draw(t, "times")
			if row[0] == advice.Never {
				row[0] = 12
			}
			p.Time = append(p.Time, row)
			p.Window = append(p.Window, time.Duration(rapid.IntRange(0, 12).Draw(t, "window")))
		}
		return p
	})
}

// brute tries all plans.
func brute(t *rapid.T, p advice.Problem) advice.Plan {
	best := advice.Plan{Time: advice.Never}
	topology := make([]int, len(p.Time))
	for {
		plan, err := p.Follow(topology)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Time < best.Time || plan.Time == best.Time && plan.Changes < best.Changes {
			best = plan
		}
		i := 0
		for ; i < len(topology); i++ {
			if topology[i]++; topology[i] < len(p.Time[i]) {
				break
			}
			topology[i] = 0
		}
		if i == len(topology) {
			return best
		}
	}
}

// The shortest path is what trying all plans finds, and takes as long as it says.
func TestProblem_BestOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(6, 4).Draw(t, "problem")
		got, err := p.Best()
		if err != nil {
			t.Fatal(err)
		}
		want := brute(t, p)
		if got.Time != want.Time || got.Changes != want.Changes {
			t.Fatalf("%+v, and trying all finds %+v", got, want)
		}
		same, err := p.Follow(got.Topology)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(same, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The best plan is never worse than any other: than the fastest topology of each phase, as with Opus, or
// any one throughout.
func TestProblem_NeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(300, 6).Draw(t, "problem")
		best, err := p.Best()
		if err != nil {
			t.Fatal(err)
		}
		always := make([]int, len(p.Time))
		for i, row := range p.Time {
			for j := range row {
				if row[j] < row[always[i]] {
					always[i] = j
				}
			}
		}
		others := [][]int{always, rapid.SliceOfN(rapid.IntRange(0, len(p.Time[0])-1), len(p.Time), len(p.Time)).Draw(t, "plan")}
		for j := range p.Time[0] {
			fixed := make([]int, len(p.Time))
			for i := range fixed {
				fixed[i] = j
			}
			others = append(others, fixed)
		}
		for _, o := range others {
			plan, err := p.Follow(o)
			if err != nil {
				t.Fatal(err)
			}
			if best.Time > plan.Time || best.Time == plan.Time && best.Changes > plan.Changes {
				t.Fatalf("best %+v, other %+v", best, plan)
			}
		}
	})
}

// It pays up to the break-even and not beyond.
func TestProblem_BreakEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(8, 4).Draw(t, "problem")
		delay, pays, err := p.BreakEven()
		if err != nil {
			t.Fatal(err)
		}
		changes := func(d time.Duration) bool {
			p.Delay = d
			best, err := p.Best()
			if err != nil {
				t.Fatal(err)
			}
			return best.Changes > 0
		}
		if !pays {
			if delay != 0 || changes(0) {
				t.Fatalf("%v, and yet with 0 it pays", delay)
			}
			return
		}
		if !changes(delay) || changes(delay+1) {
			t.Fatalf("it pays with %v: %v; with 1 ns more: %v", delay, changes(delay), changes(delay+1))
		}
	})
}

// If no topology carries all phases, it pays however long it takes.
func TestProblem_BreakEvenNever(t *testing.T) {
	p := advice.Problem{Time: [][]time.Duration{{1, advice.Never}, {advice.Never, 1}}, Window: []time.Duration{0, 0}}
	if delay, pays, err := p.BreakEven(); delay != advice.Longest || !pays || err != nil {
		t.Errorf("%v, %v, %v", delay, pays, err)
	}
}

func BenchmarkProblem_Best(b *testing.B) {
	p := advice.Problem{Delay: 5 * ms}
	for i := range 130 { // a step of 16 stages and 32 microbatches
		p.Time = append(p.Time, []time.Duration{20 * ms, 10*ms + time.Duration(i), advice.Never, 10 * ms})
		p.Window = append(p.Window, time.Duration(i)*ms/10)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Best(); err != nil {
			b.Fatal(err)
		}
	}
}
