package baseline_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/baseline"
	"github.com/ocslab/ocslab/topology/crosswiring/walk"
)

type planner = func(crosswiring.Fabric, *crosswiring.Demand, *crosswiring.Config) (*crosswiring.Config, error)

var planners = map[string]planner{"greedy": baseline.Greedy, "helios": baseline.Helios, "exact": baseline.Exact}

func uniform(pods, ports, groups int) crosswiring.Fabric {
	return crosswiring.Fabric{Pods: pods, SpinePorts: ports, Groups: groups, Wiring: crosswiring.Uniform}
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// must returns what takes a test and returns x, or ends the test.
func must[T any](x T, err error) func(fataler) T {
	return func(t fataler) T {
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func matrix(t fataler, rows [][]int) *crosswiring.Demand { return must(crosswiring.DemandOf(rows))(t) }

// sound checks that light returns from where it goes, and that there is no link that nobody wants.
func sound(t fataler, c *crosswiring.Config, d *crosswiring.Demand) {
	r, err := walk.Walk(c.Fabric().Fibres(), c.AllCircuits())
	if err != nil || len(r.Violations) > 0 {
		t.Fatal(err, r.Violations)
	}
	have := c.Demand()
	for h := range d.Groups() {
		for i := range d.Pods() {
			for j := range d.Pods() {
				if have.At(h, i, j) > d.At(h, i, j) {
					t.Fatalf("%d links of pods %d and %d, want at most %d", have.At(h, i, j), i, j, d.At(h, i, j))
				}
			}
		}
	}
}

func metrics(t fataler, c *crosswiring.Config, d *crosswiring.Demand) (ltrr, realised float64) {
	ltrr, err := crosswiring.LTRR(c.Demand(), d)
	if err != nil {
		t.Fatal(err)
	}
	if realised, err = crosswiring.Realised(c.Demand(), d); err != nil {
		t.Fatal(err)
	}
	return ltrr, realised
}

// What no planner for Uniform wiring can do better, and each does. LTRR is that of the worst of those that realise as much:
// of "two each" and "lopsided" there are others.
func TestUniform_AtBest(t *testing.T) {
	for _, x := range []struct {
		name           string
		ports          int
		demand         [][]int
		ltrr, realised float64
	}{
		{"triangle", 2, [][]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}, .8165, 2. / 3},
		{"two each", 4, [][]int{{0, 2, 2}, {2, 0, 2}, {2, 2, 0}}, .8165, 4. / 6},
		{"lopsided", 4, [][]int{{0, 3, 1}, {3, 0, 1}, {1, 1, 0}}, .9535, 4. / 5},
		{"nothing", 2, [][]int{{0, 0}, {0, 0}}, 1, 1},
		{"one pod", 2, [][]int{{0}}, 1, 1},
		{"two pods", 4, [][]int{{0, 4}, {4, 0}}, 1, 1},
	} {
		for name, plan := range planners {
			t.Run(x.name+"/"+name, func(t *testing.T) {
				d := matrix(t, x.demand)
				c := must(plan(uniform(len(x.demand), x.ports, 1), d, nil))(t)
				sound(t, c, d)
				ltrr, realised := metrics(t, c, d)
				if math.Abs(realised-x.realised) > 1e-12 {
					t.Errorf("%v is realised, want %v", realised, x.realised)
				}
				if ltrr < x.ltrr-5e-5 {
					t.Errorf("LTRR is %v, want at least %v", ltrr, x.ltrr)
				}
			})
		}
	}
}

// Of choices that are as good planners take what runs: here either of two matchings may come first.
func TestUniform_Ties(t *testing.T) {
	f := uniform(4, 2, 1)
	d := matrix(t, [][]int{{0, 1, 0, 1}, {1, 0, 1, 0}, {0, 1, 0, 1}, {1, 0, 1, 0}})
	a := []crosswiring.Circuit{{In: 0, Out: 1}, {In: 1, Out: 0}, {In: 2, Out: 3}, {In: 3, Out: 2}}
	b := []crosswiring.Circuit{{In: 1, Out: 2}, {In: 2, Out: 1}, {In: 3, Out: 0}, {In: 0, Out: 3}}
	for _, all := range [][2][]crosswiring.Circuit{{a, b}, {b, a}} {
		running := must(crosswiring.FromCircuits(f, map[crosswiring.Switch][]crosswiring.Circuit{{}: all[0], {Index: 1}: all[1]}))(t)
		for name, plan := range planners {
			if c := must(plan(f, d, running))(t); !c.Equal(running) {
				t.Errorf("%s changes %d circuits", name, changed(t, running, c))
			}
		}
	}
}

// What runs decides only among matchings of the same weight: three links weigh more than two that run.
func TestHelios_Weight(t *testing.T) {
	f := uniform(4, 4, 1)
	d := matrix(t, [][]int{{0, 1, 0, 0}, {1, 0, 3, 0}, {0, 3, 0, 1}, {0, 0, 1, 0}})
	all := []crosswiring.Circuit{{In: 0, Out: 1}, {In: 1, Out: 0}, {In: 2, Out: 3}, {In: 3, Out: 2}}
	running := must(crosswiring.FromCircuits(f, map[crosswiring.Switch][]crosswiring.Circuit{{}: all}))(t)
	c := must(baseline.Helios(f, d, running))(t)
	if c.At(crosswiring.Switch{}, 1) != 2 || !c.Demand().Equal(d) {
		t.Errorf("switch 0 has %v", c.Circuits(crosswiring.Switch{}))
	}
}

// random is a demand of any load.
func random(t fataler, f crosswiring.Fabric, seed uint64) *crosswiring.Demand {
	d := must(crosswiring.NewDemand(f.Pods, f.Groups))(t)
	r := rand.New(rand.NewPCG(seed, 9))
	for range r.IntN(f.Pods*f.SpinePorts*f.Groups + 1) {
		l := crosswiring.Link{Group: r.IntN(f.Groups), A: r.IntN(f.Pods), B: r.IntN(f.Pods)}
		if l.A != l.B && max(d.Degree(l.Group, l.A), d.Degree(l.Group, l.B)) < f.SpinePorts {
			d = must(d.With(l))(t)
		}
	}
	return d
}

// changed is how many circuits are other than before.
func changed(t fataler, from, to *crosswiring.Config) int {
	c := must(crosswiring.Diff(from, to))(t)
	return c.Removed + c.Added
}

// tryUniform goes through all matchings of all switches, and returns the most circuits, and the fewest changes with them.
func tryUniform(d *crosswiring.Demand, running *crosswiring.Config) (circuits, changes int) {
	f := running.Fabric()
	left := make([][]int, f.Pods)
	for i := range left {
		for j := range f.Pods {
			left[i] = append(left[i], d.At(0, i, j))
		}
	}
	var pod func(k, i, n, c int, peers []int)
	pod = func(k, i, n, c int, peers []int) {
		if k == f.SpinePorts {
			if n > circuits || n == circuits && c < changes {
				circuits, changes = n, c
			}
			return
		}
		for i < f.Pods && peers[i] >= 0 {
			i++
		}
		if i == f.Pods {
			for p, old := range running.Matching(crosswiring.Switch{Index: k}) {
				if peers[p] == p {
					peers = slices.Replace(slices.Clone(peers), p, p+1, crosswiring.Dark)
				}
				if old != peers[p] && old != crosswiring.Dark {
					c++
				}
				if old != peers[p] && peers[p] != crosswiring.Dark {
					c++
				}
			}
			pod(k+1, 0, n, c, slices.Repeat([]int{crosswiring.Dark}, f.Pods))
			return
		}
		alone := slices.Clone(peers)
		alone[i] = i
		pod(k, i+1, n, c, alone)
		for j := i + 1; j < f.Pods; j++ {
			if peers[j] >= 0 || left[i][j] == 0 {
				continue
			}
			joined := slices.Clone(peers)
			joined[i], joined[j] = j, i
			left[i][j]--
			pod(k, i+1, n+2, c, joined)
			left[i][j]++
		}
	}
	changes = math.MaxInt
	pod(0, 0, 0, 0, slices.Repeat([]int{crosswiring.Dark}, f.Pods))
	return circuits, changes
}

func TestExact_Oracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := uniform(rapid.IntRange(1, 4).Draw(t, "pods"), 2*rapid.IntRange(1, 2).Draw(t, "pairs"), 1)
		if f.Pods == 4 && rapid.Bool().Draw(t, "five") {
			f.Pods, f.SpinePorts = 5, 2
		}
		seed := rapid.Uint64().Draw(t, "seed")
		running := must(baseline.Greedy(f, random(t, f, seed), nil))(t)
		d := random(t, f, seed+1)
		c := must(baseline.Exact(f, d, running))(t)
		sound(t, c, d)
		circuits, changes := tryUniform(d, running)
		if got := changed(t, running, c); c.Count() != circuits || got != changes {
			t.Fatalf("%d circuits and %d changes, want %d and %d", c.Count(), got, circuits, changes)
		}
		for _, plan := range []planner{baseline.Greedy, baseline.Helios} {
			other := must(plan(f, d, running))(t)
			if n := other.Count(); n > circuits || n == circuits && changed(t, running, other) < changes {
				t.Fatalf("a planner has %d circuits, and changes %d", n, changed(t, running, other))
			}
		}
	})
}

// tryCross goes through all matchings of all pairs that satisfy a demand, and returns the most circuits that are kept.
func tryCross(d *crosswiring.Demand, running *crosswiring.Config) (most int) {
	f := running.Fabric()
	left := make([][]int, f.Pods)
	total := 0
	for i := range left {
		for j := range f.Pods {
			left[i] = append(left[i], d.At(0, i, j))
			total += d.At(0, i, j)
		}
	}
	most = -1
	var pod func(k, i int, taken uint, left [][]int, total, kept int)
	pod = func(k, i int, taken uint, left [][]int, total, kept int) {
		switch {
		case k == f.Pairs():
			if total == 0 {
				most = max(most, kept)
			}
			return
		case i == f.Pods:
			pod(k+1, 0, 0, left, total, kept)
			return
		}
		pod(k, i+1, taken, left, total, kept)
		for j := range f.Pods {
			if taken>>j&1 == 1 || left[i][j] == 0 {
				continue
			}
			same := 0
			if to, any := running.Peer(crosswiring.Port{Pod: i, Index: 2 * k}); any && to.Pod == j {
				same = 2
			}
			left[i][j]--
			left[j][i]--
			pod(k, i+1, taken|1<<j, left, total-2, kept+same)
			left[i][j]++
			left[j][i]++
		}
	}
	pod(0, 0, 0, left, total, 0)
	return most
}

func TestExactCross_Oracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := crosswiring.Fabric{Pods: rapid.IntRange(1, 4).Draw(t, "pods"), SpinePorts: 2, Groups: 1}
		f.SpinePorts = 2 * rapid.IntRange(1, 5-max(f.Pods, 2)).Draw(t, "pairs")
		if rapid.Bool().Draw(t, "dual") {
			f.Wiring = crosswiring.DualLink
		}
		seed := rapid.Uint64().Draw(t, "seed")
		running := must(crosswiring.Plan(f, random(t, f, seed)))(t)
		d := random(t, f, seed+1)
		c := must(baseline.ExactCross(running, d))(t)
		sound(t, c, d)
		if !c.Demand().Equal(d) {
			t.Fatal("it is not the demand")
		}
		if got, want := must(crosswiring.Diff(running, c))(t).Kept, tryCross(d, running); got != want {
			t.Fatalf("%d circuits kept, want %d", got, want)
		}
	})
}

// From the same running circuits no method keeps more than the search, and ours keeps nearly as much.
func TestExactCross_Methods(t *testing.T) {
	f := crosswiring.Fabric{Pods: 6, SpinePorts: 6, Groups: 1}
	kept := map[crosswiring.Method]int{}
	most := 0
	for seed := range uint64(20) {
		d := must(crosswiring.RandomFull(f, seed))(t)
		running := must(crosswiring.Plan(f, d))(t)
		next := must(crosswiring.Swapped(d, .3, seed))(t)
		exact := must(crosswiring.Diff(running, must(baseline.ExactCross(running, next))(t)))(t).Kept
		most += exact
		for _, m := range crosswiring.Methods() {
			_, r, err := crosswiring.Rewire(running, next, crosswiring.RewireOptions{Method: m})
			if err != nil {
				t.Fatal(err)
			}
			if r.Kept() > exact {
				t.Errorf("%s keeps %d circuits, the search %d", m, r.Kept(), exact)
			}
			kept[m] += r.Kept()
		}
	}
	if part := float64(kept[crosswiring.Best]) / float64(most); part < .98 {
		t.Errorf("ours keeps %v of the optimum, want .98", part)
	}
	if part := float64(kept[crosswiring.Bisect]) / float64(most); part > .95 {
		t.Errorf("the reference-like bisection keeps %v of the optimum", part)
	}
}

func TestUniform_Sound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := uniform(rapid.IntRange(1, 6).Draw(t, "pods"), 2*rapid.IntRange(1, 3).Draw(t, "pairs"),
			rapid.IntRange(1, 2).Draw(t, "groups"))
		seed := rapid.Uint64().Draw(t, "seed")
		d := random(t, f, seed)
		for _, name := range []string{"greedy", "helios", "exact"} {
			plan := planners[name]
			c := must(plan(f, d, nil))(t)
			sound(t, c, d)
			if again := must(plan(f, d, nil))(t); !again.Equal(c) {
				t.Fatalf("%s plans something else the second time", name)
			}
			full := must(crosswiring.RandomFull(f, seed))(t)
			next := must(plan(f, full, c))(t)
			if _, realised := metrics(t, next, full); full.Total() > 0 && realised > baseline.OddBound(f.Pods)+1e-12 {
				t.Fatalf("%s realises %v of a full demand, beyond the bound", name, realised)
			}
		}
		c := must(baseline.Exact(f, d, nil))(t)
		if again := must(baseline.Exact(f, d, c))(t); !again.Equal(c) {
			t.Fatal("the search rewires though nothing changed")
		}
	})
}

// The levels at which the greedy planner is.
func TestGreedy_Levels(t *testing.T) {
	for _, x := range []struct {
		name                      string
		pods                      int
		demand                    func(crosswiring.Fabric, uint64) (*crosswiring.Demand, error)
		ltrr, realised, tolerance float64
	}{
		{"full-32", 32, crosswiring.RandomFull, .970, .91, .015},
		{"full-128", 128, crosswiring.RandomFull, .957, .91, .015},
		{"odd-rings", 128, crosswiring.JobShaped, .99, .75, .015},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := uniform(x.pods, 16, 4)
			d := must(x.demand(f, 1))(t)
			ltrr, realised := metrics(t, must(baseline.Greedy(f, d, nil))(t), d)
			if math.Abs(ltrr-x.ltrr) > x.tolerance || math.Abs(realised-x.realised) > x.tolerance {
				t.Errorf("LTRR %v and %v realised, want about %v and %v", ltrr, realised, x.ltrr, x.realised)
			}
		})
	}
}

// Maximum weight matchings realise nearly all of a random demand on an even number of pods, and no more of odd rings.
func TestHelios_Levels(t *testing.T) {
	f := uniform(32, 16, 4)
	full, rings := must(crosswiring.RandomFull(f, 1))(t), must(crosswiring.JobShaped(f, 1))(t)
	if _, realised := metrics(t, must(baseline.Helios(f, full, nil))(t), full); realised < .99 {
		t.Errorf("%v of a random demand is realised", realised)
	}
	if _, realised := metrics(t, must(baseline.Helios(f, rings, nil))(t), rings); realised > .8 {
		t.Errorf("%v of odd rings is realised", realised)
	}
}

func TestOddBound(t *testing.T) {
	for pods, want := range map[int]float64{-1: 0, 0: 0, 1: 0, 2: 1, 3: 2. / 3, 4: 1, 5: .8, 127: 126. / 127} {
		if got := baseline.OddBound(pods); got != want {
			t.Errorf("bound of %d pods is %v, want %v", pods, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	f := uniform(3, 2, 1)
	cross := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	triangle := matrix(t, [][]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}})
	skew := matrix(t, [][]int{{0, 1, 1}, {0, 0, 1}, {1, 1, 0}})
	running := must(crosswiring.Plan(cross, triangle))(t)
	oneWay := func(f crosswiring.Fabric) *crosswiring.Config {
		return must(crosswiring.FromCircuits(f, map[crosswiring.Switch][]crosswiring.Circuit{{}: {{In: 0, Out: 1}}}))(t)
	}
	for name, plan := range planners {
		for _, x := range []struct {
			f       crosswiring.Fabric
			d       *crosswiring.Demand
			running *crosswiring.Config
			want    error
		}{
			{crosswiring.Fabric{}, triangle, nil, crosswiring.ErrFabric}, {cross, triangle, nil, crosswiring.ErrFabric},
			{f, skew, nil, crosswiring.ErrDemand}, {f, matrix(t, [][]int{{1}}), nil, crosswiring.ErrDemand},
			{f, triangle, running, crosswiring.ErrConfig}, {f, triangle, oneWay(f), crosswiring.ErrConfig},
		} {
			if _, err := plan(x.f, x.d, x.running); !errors.Is(err, x.want) {
				t.Errorf("%s: got %v, want %v", name, err, x.want)
			}
		}
	}
	for _, large := range []crosswiring.Fabric{uniform(7, 2, 1), uniform(2, 10, 1)} {
		d := must(crosswiring.RandomFull(large, 0))(t)
		if _, err := baseline.Exact(large, d, nil); !errors.Is(err, baseline.ErrTooLarge) {
			t.Errorf("%v: got %v", large, err)
		}
	}
	wide := crosswiring.Fabric{Pods: 2, SpinePorts: 8, Groups: 1}
	for _, x := range []struct {
		running *crosswiring.Config
		d       *crosswiring.Demand
		want    error
	}{
		{running, skew, crosswiring.ErrDemand}, {oneWay(f), triangle, crosswiring.ErrFabric},
		{oneWay(cross), triangle, crosswiring.ErrConfig},
		{must(crosswiring.NewConfig(wide))(t), must(crosswiring.NewDemand(2, 1))(t), baseline.ErrTooLarge},
	} {
		if _, err := baseline.ExactCross(x.running, x.d); !errors.Is(err, x.want) {
			t.Errorf("got %v, want %v", err, x.want)
		}
	}
}

func BenchmarkUniform(b *testing.B) {
	f := uniform(128, 16, 16)
	d := must(crosswiring.RandomFull(f, 1))(b)
	for _, name := range []string{"greedy", "helios"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must(planners[name](f, d, nil))(b)
			}
		})
	}
}
