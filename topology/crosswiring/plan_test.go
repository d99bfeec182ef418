package crosswiring_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/walk"
)

// matrices returns the demand of matrices, one for each group.
func matrices(t testing.TB, all ...[][]int) *crosswiring.Demand {
	t.Helper()
	d, err := crosswiring.DemandOf(all...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func plan(t testing.TB, f crosswiring.Fabric, d *crosswiring.Demand) *crosswiring.Config {
	t.Helper()
	c, err := crosswiring.Plan(f, d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verify checks a configuration by following the light, and with Config.Check, and that it has the links of a demand.
func verify(t testing.TB, c *crosswiring.Config, d *crosswiring.Demand) {
	t.Helper()
	r, err := walk.Walk(c.Fabric().Fibres(), c.AllCircuits())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Violations) > 0 {
		t.Fatalf("%d violations, first %v", len(r.Violations), r.Violations[0])
	}
	var links []crosswiring.Link
	for _, l := range r.Links {
		if l.A.Index^1 != l.B.Index {
			t.Fatalf("%v are no pair of ports", l)
		}
		links = append(links, crosswiring.Link{Group: l.A.Group, A: l.A.Pod, B: l.B.Pod})
	}
	none, err := crosswiring.NewDemand(d.Pods(), d.Groups())
	if err != nil {
		t.Fatal(err)
	}
	walked, err := none.With(links...)
	if err != nil {
		t.Fatal(err)
	}
	if !walked.Equal(d) || !c.Demand().Equal(d) {
		t.Fatalf("the light makes %d links, Demand says %d, the demand is %d", walked.Total(), c.Demand().Total(), d.Total())
	}
	if !slices.Equal(c.Links(), r.Links) {
		t.Fatalf("Links says %v, the light %v", c.Links(), r.Links)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
}

// The demands of the figure and of examples with all and with some ports in use, S even and odd halves.
var examples = []struct {
	name   string
	ports  int
	matrix [][]int
}{
	{"triangle", 2, [][]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}},
	{"full", 8, [][]int{{0, 4, 1, 3}, {4, 0, 3, 1}, {1, 3, 0, 4}, {3, 1, 4, 0}}},
	{"partial", 6, [][]int{{0, 3, 0, 1}, {3, 0, 2, 0}, {0, 2, 0, 1}, {1, 0, 1, 0}}},
	{"two-each", 4, [][]int{{0, 2, 2}, {2, 0, 2}, {2, 2, 0}}},
	{"lopsided", 4, [][]int{{0, 3, 1}, {3, 0, 1}, {1, 1, 0}}},
	{"none", 2, [][]int{{0, 0}, {0, 0}}},
	{"one-pod", 2, [][]int{{0}}},
}

func TestPlan_Examples(t *testing.T) {
	for _, x := range examples {
		for _, wiring := range []crosswiring.Wiring{crosswiring.Cross, crosswiring.DualLink} {
			t.Run(fmt.Sprintf("%s-%v", x.name, wiring), func(t *testing.T) {
				d := matrices(t, x.matrix)
				f := crosswiring.Fabric{Pods: len(x.matrix), SpinePorts: x.ports, Groups: 1, Wiring: wiring}
				c := plan(t, f, d)
				verify(t, c, d)
				if again := plan(t, f, d); !again.Equal(c) {
					t.Fatal("the same demand gives other circuits")
				}
				for _, metric := range []func(a, b *crosswiring.Demand) (float64, error){crosswiring.LTRR, crosswiring.Realised} {
					if got, err := metric(c.Demand(), d); err != nil || got != 1 {
						t.Fatalf("%v, %v of the demand is realised", got, err)
					}
				}
			})
		}
	}
}

// The three pods of figure 1, of which Uniform wiring can join no more than two at a time: both switches hold a ring
// through all of them, one the other way round, and there are two such plans.
func TestPlan_Triangle(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	c := plan(t, f, matrices(t, examples[0].matrix))
	one, other := []int{1, 2, 0}, []int{2, 0, 1}
	even, odd := c.Matching(crosswiring.Switch{}), c.Matching(crosswiring.Switch{Index: 1})
	if !slices.Equal(even, one) {
		one, other = other, one
	}
	if !slices.Equal(even, one) || !slices.Equal(odd, other) {
		t.Fatalf("got %v and %v", even, odd)
	}
	for pod := range 3 {
		to, any := c.Peer(crosswiring.Port{Pod: pod})
		if want := (crosswiring.Port{Pod: even[pod], Index: 1}); !any || to != want {
			t.Errorf("port 0 of pod %d sends to %v, want %v", pod, to, want)
		}
	}
}

func TestPlan_Refuses(t *testing.T) {
	for _, x := range []struct {
		name   string
		fabric crosswiring.Fabric
		matrix [][]int
		want   error
		says   []string
	}{
		{"odd-diagonal", crosswiring.Fabric{Pods: 1, SpinePorts: 2, Groups: 1}, [][]int{{1}},
			crosswiring.ErrDemand, []string{"pod 0 in group 0 has 1 link with itself"}},
		{"even-diagonal", crosswiring.Fabric{Pods: 2, SpinePorts: 4, Groups: 1}, [][]int{{0, 1}, {1, 2}},
			crosswiring.ErrDemand, []string{"pod 1 in group 0 has 2 links with itself"}},
		{"asymmetric", crosswiring.Fabric{Pods: 2, SpinePorts: 4, Groups: 1}, [][]int{{0, 3}, {1, 0}},
			crosswiring.ErrDemand, []string{"3 from pod 0 to 1 and 1 back"}},
		{"negative", crosswiring.Fabric{Pods: 2, SpinePorts: 4, Groups: 1}, [][]int{{0, -1}, {-1, 0}},
			crosswiring.ErrDemand, []string{"pods 0 and 1 in group 0 have -1 links"}},
		{"degree", crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}, [][]int{{0, 2, 1}, {2, 0, 0}, {1, 0, 0}},
			crosswiring.ErrDemand, []string{"pod 0 in group 0 has 3 links on 2 ports"}},
		{"several", crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}, [][]int{{1, 9, 9}, {9, 2, 9}, {9, 8, 3}},
			crosswiring.ErrDemand, []string{"pod 0", "pod 1", "9 from pod 1 to 2 and 8 back", "20 links on 2 ports"}},
		{"huge", crosswiring.Fabric{Pods: 2, SpinePorts: 2, Groups: 1}, [][]int{{0, math.MaxInt32}, {math.MaxInt32, 0}},
			crosswiring.ErrDemand, []string{"2147483647 links on 2 ports"}},
		{"pods", crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}, [][]int{{0, 1}, {1, 0}},
			crosswiring.ErrDemand, []string{"2 pods", "the fabric has 3"}},
		{"uniform", crosswiring.Fabric{Pods: 2, SpinePorts: 2, Groups: 1, Wiring: crosswiring.Uniform}, [][]int{{0, 1}, {1, 0}},
			crosswiring.ErrFabric, []string{"uniform wiring"}},
		{"odd-ports", crosswiring.Fabric{Pods: 2, SpinePorts: 3, Groups: 1}, [][]int{{0, 1}, {1, 0}},
			crosswiring.ErrFabric, []string{"3 ports", "even"}},
		{"no-fabric", crosswiring.Fabric{}, [][]int{{0}},
			crosswiring.ErrFabric, []string{"0 pods"}},
		{"many", crosswiring.Fabric{Pods: 2048, SpinePorts: 1 << 20, Groups: 1 << 20}, [][]int{{0}},
			crosswiring.ErrFabric, []string{"at most"}},
		{"many-ports", crosswiring.Fabric{Pods: 2, SpinePorts: 1 << 20, Groups: 1 << 10}, [][]int{{0}},
			crosswiring.ErrFabric, []string{"at most 16777216"}},
		{"many-entries", crosswiring.Fabric{Pods: 2048, SpinePorts: 2, Groups: 5}, [][]int{{0}},
			crosswiring.ErrFabric, []string{"at most 16777216"}},
		{"no-wiring", crosswiring.Fabric{Pods: 1, SpinePorts: 2, Groups: 1, Wiring: 9}, [][]int{{0}},
			crosswiring.ErrFabric, []string{"wiring 9"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, err := crosswiring.Plan(x.fabric, matrices(t, x.matrix))
			if c != nil || !errors.Is(err, x.want) {
				t.Fatalf("got %v, want %v", err, x.want)
			}
			for _, text := range x.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

// A link that is there in one direction alone is found wherever it is.
func TestDemand_Check_FindsAny(t *testing.T) {
	const pods = 70
	f := crosswiring.Fabric{Pods: pods, SpinePorts: 2, Groups: 1}
	m := make([][]int, pods)
	for i := range m {
		m[i] = make([]int, pods)
	}
	for i := range m {
		for _, j := range []int{0, 1, 31, 32, 33, 63, 64, 69} {
			m[i][j] = 1
			if err := matrices(t, m).Check(f); !errors.Is(err, crosswiring.ErrDemand) {
				t.Fatalf("a link from %d to %d is not found: %v", i, j, err)
			}
			m[i][j] = 0
		}
	}
}

// Of many offenders the first few of each kind are named, and the others counted.
func TestDemand_Check_NamesFew(t *testing.T) {
	m := make([][]int, 20)
	for i := range m {
		m[i] = make([]int, 20)
		m[i][i] = 1
	}
	err := matrices(t, m).Check(crosswiring.Fabric{Pods: 20, SpinePorts: 2, Groups: 1})
	if err == nil || strings.Count(err.Error(), "itself") != 4 || !strings.HasSuffix(err.Error(), "and 16 more") {
		t.Fatalf("got %v", err)
	}
}

// drawFabric draws a fabric that is not Uniform.
func drawFabric(t *rapid.T) crosswiring.Fabric {
	return crosswiring.Fabric{
		Pods:       rapid.IntRange(1, 12).Draw(t, "pods"),
		SpinePorts: 2 * rapid.IntRange(1, 13).Draw(t, "pairs"),
		Groups:     rapid.IntRange(1, 3).Draw(t, "groups"),
		Wiring:     rapid.SampledFrom([]crosswiring.Wiring{crosswiring.Cross, crosswiring.DualLink}).Draw(t, "wiring"),
	}
}

// drawDemand draws a demand that fits, of links in an order that leaves ports unused or not.
func drawDemand(t *rapid.T, f crosswiring.Fabric) *crosswiring.Demand {
	d, err := crosswiring.NewDemand(f.Pods, f.Groups)
	if err != nil {
		t.Fatal(err)
	}
	if f.Pods == 1 {
		return d
	}
	var links []crosswiring.Link
	degree := map[[2]int]int{}
	for range rapid.IntRange(0, f.Ports()).Draw(t, "tries") {
		h, pod := rapid.IntRange(0, f.Groups-1).Draw(t, "h"), rapid.IntRange(0, f.Pods-1)
		a, b := pod.Draw(t, "a"), pod.Draw(t, "b")
		if a != b && degree[[2]int{h, a}] < f.SpinePorts && degree[[2]int{h, b}] < f.SpinePorts {
			degree[[2]int{h, a}]++
			degree[[2]int{h, b}]++
			links = append(links, crosswiring.Link{Group: h, A: a, B: b})
		}
	}
	if d, err = d.With(links...); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPlan_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t)
		d := drawDemand(t, f)
		c, err := crosswiring.Plan(f, d)
		if err != nil {
			t.Fatal(err)
		}
		r, err := walk.Walk(f.Fibres(), c.AllCircuits())
		if err != nil || len(r.Violations) > 0 {
			t.Fatal(err, r.Violations)
		}
		if !c.Demand().Equal(d) || len(r.Links) != d.Total() || c.Count() != 2*d.Total() {
			t.Fatalf("%d links, %d circuits of %d", len(r.Links), c.Count(), d.Total())
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		back, err := crosswiring.FromCircuits(f, c.AllCircuits())
		if err != nil || !back.Equal(c) {
			t.Fatal("circuits of a configuration do not give it back", err)
		}
	})
}

// With all ports in use, of which there may be any even number, every input of every switch is lit.
func TestPlan_Full(t *testing.T) {
	for pods := 2; pods <= 9; pods++ {
		for ports := 2; ports <= 26; ports += 2 {
			f := crosswiring.Fabric{Pods: pods, SpinePorts: ports, Groups: 2}
			d, err := crosswiring.RandomFull(f, uint64(ports))
			if err != nil {
				t.Fatal(err)
			}
			c := plan(t, f, d)
			verify(t, c, d)
			if c.Count() != f.Ports() {
				t.Fatalf("%v: %d circuits", f, c.Count())
			}
		}
	}
}

// What pods are called does not change what can be had.
func TestPlan_Relabelled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t)
		d := drawDemand(t, f)
		names := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for p := range f.Pods {
				if !yield(p) {
					return
				}
			}
		})).Draw(t, "names")
		var links []crosswiring.Link
		for h := range f.Groups {
			for a := range f.Pods {
				for b := a + 1; b < f.Pods; b++ {
					for range d.At(h, a, b) {
						links = append(links, crosswiring.Link{Group: h, A: names[a], B: names[b]})
					}
				}
			}
		}
		none, _ := crosswiring.NewDemand(f.Pods, f.Groups)
		other, err := none.With(links...)
		if err != nil {
			t.Fatal(err)
		}
		c, err := crosswiring.Plan(f, other)
		if err != nil || !c.Demand().Equal(other) {
			t.Fatal(err)
		}
	})
}

// A cluster of 8,192, 32,768 and 131,072 GPUs, each by a port, with all ports in use.
func BenchmarkPlan(b *testing.B) {
	for _, pods := range []int{32, 128, 512} {
		f := crosswiring.Fabric{Pods: pods, SpinePorts: 16, Groups: 16}
		b.Run(fmt.Sprintf("%d-gpus", f.Ports()), func(b *testing.B) { benchmarkPlan(b, f) })
	}
	b.Run("12-pairs", func(b *testing.B) { benchmarkPlan(b, crosswiring.Fabric{Pods: 128, SpinePorts: 24, Groups: 16}) })
}

// benchmarkPlan plans random demands in turn.
func benchmarkPlan(b *testing.B, f crosswiring.Fabric) {
	demands := make([]*crosswiring.Demand, 8)
	for i := range demands {
		d, err := crosswiring.RandomFull(f, uint64(i))
		if err != nil {
			b.Fatal(err)
		}
		demands[i] = d
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := crosswiring.Plan(f, demands[i%len(demands)]); err != nil {
			b.Fatal(err)
		}
	}
}
