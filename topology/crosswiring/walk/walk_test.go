package walk_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/walk"
)

type byIndex = map[crosswiring.Switch][]crosswiring.Circuit

func three(w crosswiring.Wiring) crosswiring.Fabric {
	return crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1, Wiring: w}
}

func port(pod, index int) crosswiring.Port { return crosswiring.Port{Pod: pod, Index: index} }

func link(a, b crosswiring.Port) crosswiring.PortLink { return crosswiring.PortLink{A: a, B: b} }

// c makes circuits of inputs and outputs.
func c(ends ...int) (all []crosswiring.Circuit) {
	for i := 0; i < len(ends); i += 2 {
		all = append(all, crosswiring.Circuit{In: ends[i], Out: ends[i+1]})
	}
	return all
}

func TestWalk(t *testing.T) {
	ring, reverse := c(0, 1, 1, 2, 2, 0), c(1, 0, 2, 1, 0, 2)
	for _, x := range []struct {
		name       string
		fibres     []crosswiring.Fibre
		circuits   byIndex
		links      []crosswiring.PortLink
		violations []string
	}{
		{"dark", three(crosswiring.Cross).Fibres(), nil, nil, nil},
		{"triangle", three(crosswiring.Cross).Fibres(), byIndex{{}: ring, {Index: 1}: reverse},
			[]crosswiring.PortLink{link(port(0, 0), port(1, 1)), link(port(1, 0), port(2, 1)), link(port(2, 0), port(0, 1))}, nil},
		{"uniform-ring", three(crosswiring.Uniform).Fibres(), byIndex{{}: ring}, nil, []string{
			"pod 0 spine 0 port 0 sends to pod 1 spine 0 port 0 by switch 0/0 and hears from pod 2 spine 0 port 0 by switch 0/0",
			"pod 1 spine 0 port 0 sends to pod 2", "pod 2 spine 0 port 0 sends to pod 0"}},
		{"one-way", three(crosswiring.Cross).Fibres(), byIndex{{}: c(0, 1)}, nil, []string{
			"pod 0 spine 0 port 0 sends to pod 1 spine 0 port 1 by switch 0/0 and hears from nobody",
			"pod 1 spine 0 port 1 hears from pod 0 spine 0 port 0 by switch 0/0 and sends to nobody"}},
		{"same-pod", three(crosswiring.Cross).Fibres(), byIndex{{}: c(1, 1), {Index: 1}: c(1, 1)},
			[]crosswiring.PortLink{link(port(1, 0), port(1, 1))}, []string{"of the same pod", "of the same pod"}},
		{"itself", three(crosswiring.Uniform).Fibres(), byIndex{{}: c(1, 1)}, nil, []string{
			"pod 1 spine 0 port 0 sends to itself by switch 0/0"}},
		{"nowhere", three(crosswiring.Uniform).Fibres(), byIndex{{}: c(0, 7, 9, 1, 8, 8)}, nil, []string{
			"pod 0 spine 0 port 0 sends into switch 0/0, whose output 7 leads to no port",
			"pod 1 spine 0 port 0 hears from switch 0/0, into whose input 9 no port sends"}},
		{"no-rx", three(crosswiring.Cross).Fibres()[:1], byIndex{{}: c(0, 1)}, nil, []string{"whose output 1 leads to no port"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, err := walk.Walk(x.fibres, x.circuits)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.Links, x.links) {
				t.Errorf("links %v, want %v", r.Links, x.links)
			}
			if len(r.Violations) != len(x.violations) {
				t.Fatalf("violations %v, want %v", r.Violations, x.violations)
			}
			for i, v := range r.Violations {
				if !strings.Contains(v.Error(), x.violations[i]) {
					t.Errorf("violation %q, want %q", v, x.violations[i])
				}
			}
		})
	}
}

func TestWalk_Refuses(t *testing.T) {
	tx := crosswiring.Fibre{Port: port(0, 0)}
	rx := crosswiring.Fibre{Port: port(0, 0), Rx: true}
	other := func(x crosswiring.Fibre) crosswiring.Fibre { x.Port.Pod++; return x }
	moved := func(x crosswiring.Fibre) crosswiring.Fibre { x.Number++; return x }
	for _, x := range []struct {
		fibres   []crosswiring.Fibre
		circuits byIndex
		says     string
	}{
		{[]crosswiring.Fibre{tx, moved(tx)}, nil,
			"the Tx of pod 0 spine 0 port 0 goes to input 0 of switch 0/0 and 1 of switch 0/0"},
		{[]crosswiring.Fibre{rx, moved(rx)}, nil, "the Rx of pod 0"},
		{[]crosswiring.Fibre{tx, other(tx)}, nil, "input 0 of switch 0/0 is cabled to pod 0 spine 0 port 0 and pod 1"},
		{[]crosswiring.Fibre{rx, other(rx)}, nil, "output 0 of switch 0/0 is cabled to"},
		{[]crosswiring.Fibre{tx, rx}, byIndex{{}: c(0, 0, 0, 1)}, "input 0 of switch 0/0 leads to outputs 0 and 1"},
		{[]crosswiring.Fibre{tx, rx}, byIndex{{}: c(0, 0, 1, 0)}, "output 0 of switch 0/0 has light from inputs 0 and 1"},
		{[]crosswiring.Fibre{tx, rx}, byIndex{{Group: 1}: c(0, 0)}, "switch 1/0 has circuits and no fibres"},
	} {
		_, err := walk.Walk(x.fibres, x.circuits)
		if !errors.Is(err, crosswiring.ErrConfig) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("want %q, got %v", x.says, err)
		}
	}
}

// Of any circuits the light and the configuration say the same: which links there are, and whether any port is wrong.
func TestWalk_SameAsConfig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := three(rapid.SampledFrom([]crosswiring.Wiring{crosswiring.Cross, crosswiring.Uniform, crosswiring.DualLink}).Draw(t, "wiring"))
		f.SpinePorts = 2 * rapid.IntRange(1, 2).Draw(t, "pairs")
		all := byIndex{}
		for _, s := range f.Switches() {
			outs := make([]int, f.Radix())
			for i := range outs {
				outs[i] = i
			}
			for in, out := range rapid.Permutation(outs).Draw(t, "outs") {
				if rapid.Bool().Draw(t, "lit") {
					all[s] = append(all[s], crosswiring.Circuit{In: in, Out: out})
				}
			}
		}
		c, err := crosswiring.FromCircuits(f, all)
		if err != nil {
			t.Fatal(err)
		}
		r, err := walk.Walk(f.Fibres(), all)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.Links(), r.Links) {
			t.Fatalf("links %v, the light makes %v", c.Links(), r.Links)
		}
		sound := c.Check() == nil
		if f.Wiring == crosswiring.DualLink { // whose planner wants an even port and an odd one besides
			sound = sound || len(r.Violations) == 0
		}
		if sound != (len(r.Violations) == 0) {
			t.Fatalf("Check says %v, the light %v", c.Check(), r.Violations)
		}
		for p, q := range r.SendsTo {
			if to, any := c.Peer(p); !any || to != q || r.HearsFrom[q] != p {
				t.Fatalf("%v sends to %v, Peer says %v", p, q, to)
			}
		}
	})
}
