package topology_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology"
)

// nics returns n NICs on one switch: the i-th, from 0, sends into port i+1 and receives
// from n+i+1.
func nics(n int) []topology.NIC {
	all := make([]topology.NIC, n)
	for i := range all {
		all[i] = topology.NIC{
			Name: fmt.Sprintf("gpu%d/eth0", i),
			Tx:   topology.Port{Switch: "rail0", Port: ocs.Port(i + 1)},
			Rx:   topology.Port{Switch: "rail0", Port: ocs.Port(n + i + 1)},
		}
	}
	return all
}

// targets returns to which NIC each sends; -1 is none.
func targets(t interface{ Fatalf(string, ...any) }, planner string, n int, with map[string]string) []int {
	maps, err := topology.Plan(planner, topology.Request{NICs: nics(n), With: with})
	if err != nil {
		t.Fatalf("%s of %d with %v: %v", planner, n, with, err)
	}
	to := make([]int, n)
	for i := range to {
		to[i] = -1
		if e, ok := maps["rail0"].EgressOf(ocs.Port(i + 1)); ok {
			to[i] = int(e) - n - 1
		}
	}
	return to
}

func TestPlan(t *testing.T) {
	for _, x := range []struct {
		planner string
		n       int
		with    map[string]string
		want    string
	}{
		{"pairs", 4, nil, "[1 0 3 2]"},
		{"pairs", 4, map[string]string{"distance": "2"}, "[2 3 0 1]"},
		{"pairs", 8, map[string]string{"distance": "2"}, "[2 3 0 1 6 7 4 5]"},
		{"ring", 4, nil, "[1 2 3 0]"},
		{"ring", 4, map[string]string{"step": "3"}, "[3 0 1 2]"},
		{"ring", 5, map[string]string{"step": "-2"}, "[3 4 0 1 2]"},
		{"shift", 4, map[string]string{"by": "2"}, "[2 3 0 1]"},
		{"shift", 6, map[string]string{"by": "-2"}, "[4 5 0 1 2 3]"},
		{"round-robin", 4, nil, "[3 2 1 0]"},
		{"round-robin", 4, map[string]string{"round": "2"}, "[2 3 0 1]"},
		{"round-robin", 4, map[string]string{"round": "3"}, "[1 0 3 2]"},
		{"round-robin", 3, map[string]string{"round": "1"}, "[-1 2 1]"},
		{"round-robin", 2, nil, "[1 0]"},
	} {
		if got := fmt.Sprint(targets(t, x.planner, x.n, x.with)); got != x.want {
			t.Errorf("%s of %d with %v: got %s, want %s", x.planner, x.n, x.with, got, x.want)
		}
	}
}

func TestPlan_Refused(t *testing.T) {
	elsewhere := nics(4)
	elsewhere[2].Rx.Switch = "rail1"
	shared := nics(4)
	shared[3].Rx = shared[1].Rx
	for _, x := range []struct {
		planner string
		nics    []topology.NIC
		with    map[string]string
		want    string
		is      error
	}{
		{"rinng", nics(4), nil, `did you mean "ring"?`, topology.ErrPlanner},
		{"ring", nics(1), nil, "there are 1 of them", nil},
		{"ring", nil, nil, "there are 0 of them", nil},
		{"ring", nics(4), map[string]string{"stp": "1"}, `did you mean "step"?`, topology.ErrArgument},
		{"ring", nics(4), map[string]string{"step": "one"}, "want a whole number", topology.ErrArgument},
		{"ring", nics(4), map[string]string{"step": "2"}, "several rings", topology.ErrArgument},
		{"ring", nics(4), map[string]string{"step": "0"}, "several rings", topology.ErrArgument},
		{"shift", nics(4), map[string]string{"by": "8"}, "sends to itself", topology.ErrArgument},
		{"pairs", nics(6), map[string]string{"distance": "2"}, "divides 6", topology.ErrArgument},
		{"pairs", nics(3), nil, "divides 3", topology.ErrArgument},
		{"pairs", nics(4), map[string]string{"distance": "0"}, "1 or more", topology.ErrArgument},
		{"round-robin", nics(4), map[string]string{"round": "4"}, "want 1 to 3", topology.ErrArgument},
		{"round-robin", nics(5), map[string]string{"round": "0"}, "want 1 to 5", topology.ErrArgument},
		{"shift", nics(4), map[string]string{"by": "99999999999"}, "want a whole number", topology.ErrArgument},
		{"ring", elsewhere, nil, "no switch joins gpu1/eth0 to gpu2/eth0: one sends into rail0/2, the other receives from rail1/7", nil},
		{"ring", shared, nil, "switch rail0: ", ocs.ErrConflict},
	} {
		m, err := topology.Plan(x.planner, topology.Request{NICs: x.nics, With: x.with})
		switch {
		case err == nil:
			t.Errorf("%s with %v: %v, want an error", x.planner, x.with, m)
		case !strings.Contains(err.Error(), x.want) || x.is != nil && !errors.Is(err, x.is):
			t.Errorf("%s with %v: %v; want %q, and %v", x.planner, x.with, err, x.want, x.is)
		}
	}
}

// Ensure a plan uses the switch that two NICs share, whichever it is.
func TestPlan_Switches(t *testing.T) {
	all := append(nics(2), nics(2)...)
	for i := 2; i < 4; i++ {
		all[i].Tx.Switch, all[i].Rx.Switch = "rail1", "rail1"
	}
	got, err := topology.Plan("pairs", topology.Request{NICs: all})
	if err != nil || len(got) != 2 || got["rail0"].String() != "1>4,2>3" || got["rail1"].String() != "1>4,2>3" {
		t.Errorf("%v, %v", got, err)
	}
}

// Ensure a ring is one ring, through all.
func TestRing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 64).Draw(rt, "n")
		step := rapid.IntRange(-200, 200).Filter(func(s int) bool { return gcd(s, n) == 1 }).Draw(rt, "step")
		to := targets(rt, "ring", n, map[string]string{"step": strconv.Itoa(step)})
		at := 0
		for i := range n {
			if at == 0 && i > 0 {
				rt.Fatalf("back after %d of %d NICs", i, n)
			}
			at = to[at]
		}
		if at != 0 {
			rt.Fatalf("after all NICs it is at %d", at)
		}
	})
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// Ensure pairs are both ways, of two different NICs.
func TestPairs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.IntRange(1, 16).Draw(rt, "distance")
		n := 2 * d * rapid.IntRange(1, 8).Draw(rt, "blocks")
		for i, j := range targets(rt, "pairs", n, map[string]string{"distance": strconv.Itoa(d)}) {
			back := targets(rt, "pairs", n, map[string]string{"distance": strconv.Itoa(d)})[j]
			if back != i || max(i-j, j-i) != d {
				rt.Fatalf("%d is joined to %d, and that to %d", i, j, back)
			}
		}
	})
}

// Ensure all rounds together have every pair once, both ways, and leave each NIC out once
// if their number is odd.
func TestRoundRobin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 33).Draw(rt, "n")
		rounds := n - 1 + n%2
		met := map[[2]int]int{}
		out := make([]int, n)
		for r := range rounds {
			to := targets(rt, "round-robin", n, map[string]string{"round": strconv.Itoa(r + 1)})
			for i, j := range to {
				if j < 0 {
					out[i]++
					continue
				}
				if to[j] != i || i == j {
					rt.Fatalf("round %d: %d sends to %d, and that to %d", r+1, i, j, to[j])
				}
				met[[2]int{i, j}]++
			}
		}
		for i := range n {
			if out[i] != n%2 {
				rt.Fatalf("%d of %d NICs is left out %d times", i, n, out[i])
			}
			for j := range n {
				if i != j && met[[2]int{i, j}] != 1 {
					rt.Fatalf("%d and %d of %d meet %d times", i, j, n, met[[2]int{i, j}])
				}
			}
		}
	})
}

// Ensure planners can be listed, found, and asked without arguments.
func TestPlanners(t *testing.T) {
	last := ""
	for _, p := range topology.Planners() {
		if p.Name <= last || p.About == "" {
			t.Errorf("%q after %q: %q", p.Name, last, p.About)
		}
		last = p.Name
		if _, err := topology.Plan(p.Name, topology.Request{NICs: nics(4)}); err != nil {
			t.Errorf("%s with its defaults: %v", p.Name, err)
		}
		for _, a := range p.Arguments {
			if a.Name == "" || a.About == "" {
				t.Errorf("%s: argument %+v", p.Name, a)
			}
		}
	}
}
