package crosswiring_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// ring is a circuit from each pod to the next.
func ring(pods int) (all []crosswiring.Circuit) {
	for p := range pods {
		all = append(all, crosswiring.Circuit{In: p, Out: (p + 1) % pods})
	}
	return all
}

// back is the transpose of circuits.
func back(circuits []crosswiring.Circuit) (all []crosswiring.Circuit) {
	for _, c := range circuits {
		all = append(all, crosswiring.Circuit{In: c.Out, Out: c.In})
	}
	return all
}

func circuits(t testing.TB, f crosswiring.Fabric, all map[crosswiring.Switch][]crosswiring.Circuit) *crosswiring.Config {
	t.Helper()
	c, err := crosswiring.FromCircuits(f, all)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type byIndex = map[crosswiring.Switch][]crosswiring.Circuit

func TestConfig_Check(t *testing.T) {
	f := func(w crosswiring.Wiring, pods int) crosswiring.Fabric {
		return crosswiring.Fabric{Pods: pods, SpinePorts: 2, Groups: 1, Wiring: w}
	}
	for _, x := range []struct {
		name     string
		fabric   crosswiring.Fabric
		circuits byIndex
		links    int
		says     []string // none: nothing is wrong
	}{
		{"dark", f(crosswiring.Cross, 3), nil, 0, nil},
		{"ring-and-back", f(crosswiring.Cross, 3), byIndex{{}: ring(3), {Index: 1}: back(ring(3))}, 3, nil},
		{"partial", f(crosswiring.Cross, 3), byIndex{{}: {{0, 1}}, {Index: 1}: {{1, 0}}}, 1, nil},
		{"one-way", f(crosswiring.Cross, 3), byIndex{{}: {{0, 1}}}, 0,
			[]string{"circuit 0>1 of switch 0/0: pod 0 spine 0 port 0 sends to pod 1 spine 0 port 1, which sends to nobody",
				"want circuit 1>0 of switch 0/1"}},
		{"not-transposed", f(crosswiring.Cross, 3), byIndex{{}: ring(3), {Index: 1}: ring(3)}, 0,
			[]string{"which sends to pod 2 spine 0 port 0", "and 2 more"}},
		{"itself", f(crosswiring.Cross, 3), byIndex{{}: {{1, 1}}, {Index: 1}: {{1, 1}}}, 0, []string{"it leads from pod 1 back to it"}},
		// A ring on one switch with straight wiring: port 0 of pod 0 sends to pod 1 and hears from pod 2.
		{"uniform-ring", f(crosswiring.Uniform, 3), byIndex{{}: ring(3)}, 0,
			[]string{"pod 0 spine 0 port 0 sends to pod 1 spine 0 port 0, which sends to pod 2 spine 0 port 0"}},
		{"uniform-pair", f(crosswiring.Uniform, 3), byIndex{{}: {{0, 1}, {1, 0}}}, 1, nil},
		{"dual-link-ring", f(crosswiring.DualLink, 3),
			byIndex{{}: {{0, 4}, {1, 5}, {2, 3}, {4, 0}, {5, 1}, {3, 2}}}, 3, nil},
		{"dual-link-even-even", f(crosswiring.DualLink, 3), byIndex{{}: {{0, 1}, {1, 0}}}, 1, []string{"joins port 0 of two pods"}},
		{"dual-link-one-way", f(crosswiring.DualLink, 3), byIndex{{}: {{0, 4}}}, 0, []string{"want circuit 4>0 of switch 0/0"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := circuits(t, x.fabric, x.circuits)
			if n := c.Demand().Total(); n != x.links {
				t.Errorf("%d links, want %d", n, x.links)
			}
			err := c.Check()
			if (err == nil) != (x.says == nil) || err != nil && !errors.Is(err, crosswiring.ErrConfig) {
				t.Fatalf("got %v", err)
			}
			for _, text := range x.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

func TestFromCircuits_Refuses(t *testing.T) {
	f := crosswiring.Fabric{Pods: 2, SpinePorts: 2, Groups: 1}
	for _, x := range []struct {
		circuits byIndex
		says     string
	}{
		{byIndex{{Index: 2}: nil}, "no switch 0/2"},
		{byIndex{{Group: -1}: nil}, "no switch -1/0"},
		{byIndex{{}: {{0, 2}}}, "circuit 0>2 of switch 0/0: want ports 0 to 1"},
		{byIndex{{}: {{-1, 0}}}, "circuit -1>0"},
		{byIndex{{}: {{0, math.MaxInt}}}, "want ports 0 to 1"},
		{byIndex{{}: {{0, 1}, {0, 0}}}, "input 0 of switch 0/0 leads to outputs 1 and 0"},
		{byIndex{{}: {{0, 1}, {1, 1}}}, "output 1 of switch 0/0 has light from inputs 0 and 1"},
	} {
		_, err := crosswiring.FromCircuits(f, x.circuits)
		if !errors.Is(err, crosswiring.ErrConfig) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("want %q, got %v", x.says, err)
		}
	}
	if _, err := crosswiring.FromCircuits(crosswiring.Fabric{}, nil); !errors.Is(err, crosswiring.ErrFabric) {
		t.Errorf("got %v", err)
	}
}

func TestConfig_Beyond(t *testing.T) {
	c := circuits(t, crosswiring.Fabric{Pods: 2, SpinePorts: 2, Groups: 1}, byIndex{{}: {{0, 1}}})
	if c.At(crosswiring.Switch{}, 0) != 1 || c.At(crosswiring.Switch{}, 1) != crosswiring.Dark {
		t.Error("At is wrong")
	}
	for _, in := range []int{-1, 2} {
		if c.At(crosswiring.Switch{}, in) != crosswiring.Dark || c.At(crosswiring.Switch{Group: in}, 0) != crosswiring.Dark {
			t.Errorf("input or group %d has a circuit", in)
		}
	}
	if c.Matching(crosswiring.Switch{Index: 2}) != nil || c.Circuits(crosswiring.Switch{Index: -1}) != nil {
		t.Error("there is a switch beyond the last")
	}
	for _, p := range []crosswiring.Port{{Pod: 2}, {Pod: -1}, {Group: 1}, {Index: 2}, {Pod: 1}} {
		if _, any := c.Peer(p); any {
			t.Errorf("%v sends", p)
		}
	}
}

func TestDiff(t *testing.T) {
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}
	one := []crosswiring.Circuit{{0, 1}, {1, 0}, {2, 3}}
	two := []crosswiring.Circuit{{0, 1}, {1, 2}, {3, 0}}
	from := circuits(t, f, byIndex{{}: one, {Index: 1}: back(one), {Index: 2}: ring(4), {Index: 3}: back(ring(4))})
	to := circuits(t, f, byIndex{{}: two, {Index: 1}: back(two), {Index: 2}: ring(4), {Index: 3}: back(ring(4))})
	c, err := crosswiring.Diff(from, to)
	if err != nil {
		t.Fatal(err)
	}
	if c.Kept != 10 || c.Removed != 4 || c.Added != 4 || c.Rewired != 6 || c.Links != 5 || c.Lost != 2 || len(c.Switches) != 2 {
		t.Fatalf("got %+v", *c)
	}
	even, removed, added := c.Switches[0], []crosswiring.Circuit{{1, 0}, {2, 3}}, []crosswiring.Circuit{{1, 2}, {3, 0}}
	if !slices.Equal(even.Removed, removed) || !slices.Equal(even.Added, added) || even.RewiredPorts() != 3 {
		t.Errorf("got %+v", even)
	}
	if c, err = crosswiring.Diff(to, to); err != nil || len(c.Switches) != 0 || c.Kept != to.Count() || c.Lost != 0 {
		t.Errorf("nothing changes: %+v, %v", *c, err)
	}
	other := circuits(t, crosswiring.Fabric{Pods: 4, SpinePorts: 2, Groups: 1}, nil)
	_, err = crosswiring.Diff(from, other)
	if !errors.Is(err, crosswiring.ErrConfig) || !strings.Contains(err.Error(), "4 ports of a spine") {
		t.Errorf("two fabrics: %v", err)
	}
}
