package pccl_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	planner "github.com/ocslab/ocslab/topology" // tests of plans have a function topology
	"github.com/ocslab/ocslab/topology/pccl"
)

// nics cables GPUs: port p of each is on switches[p]. On a switch with n ports of each GPU, port k of GPU g sends into
// ingress n*g+k+1 and receives from egress 1000 more.
func nics(gpus int, switches ...string) [][]planner.NIC {
	used := map[string]int{}
	all := make([][]planner.NIC, gpus)
	for g := range all {
		for p, name := range switches {
			used[name]++
			n := ocs.Port(used[name])
			all[g] = append(all[g], planner.NIC{Name: fmt.Sprintf("gpu%d.%d", g, p),
				Tx: planner.Port{Switch: name, Port: n}, Rx: planner.Port{Switch: name, Port: n + 1000}})
		}
	}
	return all
}

// wiringFaults says in what a wiring is not that of a topology; "" if it is.
func wiringFaults(w pccl.Wiring, top *pccl.Topology, ports int, duplex bool) string {
	lanes := map[pccl.Transfer]int{}
	tx, rx := map[[2]int]bool{}, map[[2]int]bool{}
	all := map[pccl.Circuit]bool{}
	for _, c := range w {
		all[c] = true
	}
	for _, c := range w {
		lanes[pccl.Transfer{Src: c.Src, Dst: c.Dst}]++
		from, to := [2]int{c.Src, c.SrcPort}, [2]int{c.Dst, c.DstPort}
		switch {
		case !top.Has(c.Src, c.Dst):
			return fmt.Sprintf("%v is not of the topology", c)
		case tx[from] || rx[to]:
			return fmt.Sprintf("%v has a port that another has", c)
		case c.SrcPort < 0 || c.SrcPort >= ports || c.DstPort < 0 || c.DstPort >= ports:
			return fmt.Sprintf("%v has a port that is not there", c)
		case duplex && top.Has(c.Dst, c.Src) && !all[pccl.Circuit{Src: c.Dst, SrcPort: c.DstPort, Dst: c.Src, DstPort: c.SrcPort}]:
			return fmt.Sprintf("%v does not come back on its ports", c)
		}
		tx[from], rx[to] = true, true
	}
	for c := range top.Circuits() {
		if lanes[c] == 0 {
			return fmt.Sprintf("%v is missing", c)
		}
	}
	return ""
}

// The circuits of section 9: a ring of 8 is 16 cross-connects, the first round of RHD is 8, or 16 if both ports are
// bonded.
func TestWire_section9(t *testing.T) {
	ring := mustTopology(t, "ring", 8)
	s := mustNew(t, pccl.ReduceScatter, "rhd-halving", 8, 100e6)
	fabric := nics(8, "ocs", "ocs")
	w, err := pccl.Wire(ring, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps, err := w.Maps(fabric)
	if err != nil || maps["ocs"].Len() != 16 {
		t.Fatalf("ring: %v, %v, want 16 cross-connects", maps, err)
	}
	for i, want := range [][]string{{"0-4", "1-5", "2-6", "3-7"}, {"0-2", "1-3", "4-6", "5-7"}, {"0-1", "2-3", "4-5", "6-7"}} {
		own, err := pccl.Direct(8, fmt.Sprint("round ", i), s.Rounds[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, bond := range []bool{false, true} {
			w, err := pccl.WireOptions{Ports: 2, Keep: w, Bond: bond}.Wire(own)
			if err != nil {
				t.Fatal(err)
			}
			lanes := 1
			if bond {
				lanes = 2
			}
			if len(w) != 8*lanes {
				t.Errorf("round %d has %d circuits, want %d", i, len(w), 8*lanes)
			}
			for _, pair := range want {
				var a, b int
				fmt.Sscanf(pair, "%d-%d", &a, &b)
				if w.Lanes(a, b) != lanes || w.Lanes(b, a) != lanes {
					t.Errorf("round %d: %d and %d lanes of %s, want %d", i, w.Lanes(a, b), w.Lanes(b, a), pair, lanes)
				}
			}
			if fault := wiringFaults(w, own, 2, true); fault != "" {
				t.Errorf("round %d: %s", i, fault)
			}
			if maps, err := w.Maps(fabric); err != nil || maps["ocs"].Len() != 8*lanes {
				t.Errorf("round %d: %v, %v", i, maps, err)
			}
		}
	}
	// Of the ring, the last round has every other circuit: they stay where they are.
	own, _ := pccl.Direct(8, "round 2", s.Rounds[2])
	last, err := pccl.Wire(own, 2, w)
	if err != nil || len(last.Minus(w)) != 0 || len(w.Minus(last)) != 8 {
		t.Errorf("from the ring to the last round %v come and %v go (%v), want none and 8", last.Minus(w), w.Minus(last), err)
	}
	again, err := pccl.Wire(ring, 2, last)
	if err != nil || len(last.Minus(again)) != 0 {
		t.Errorf("back to the ring %v go (%v), want none", last.Minus(again), err)
	}
}

func TestWire_oneWay(t *testing.T) {
	s := mustNew(t, pccl.ReduceScatter, "ring", 5, 1e6)
	top, err := pccl.Direct(5, "around", s.Rounds[0])
	if err != nil {
		t.Fatal(err)
	}
	w, err := pccl.Wire(top, 1, nil)
	if err != nil || len(w) != 5 || wiringFaults(w, top, 1, true) != "" {
		t.Errorf("a ring in one direction takes one port: %v, %v", w, err)
	}
}

// A new duplex circuit leaves alone the ports of circuits in one direction that stand, if it can; and takes them if it must.
func TestWire_keepsOneWay(t *testing.T) {
	stands := pccl.Circuit{Src: 0, SrcPort: 0, Dst: 1, DstPort: 0}
	w, err := pccl.Wire(mustTopology(t, "0>1,0-2,1-2", 3), 2, pccl.Wiring{stands})
	if err != nil || !slices.Contains(w, stands) {
		t.Errorf("%v moves, although it can stay: %v, %v", stands, w, err)
	}
	top := mustTopology(t, "0>1,0-2,3>0", 4)
	across := pccl.Wiring{stands, {Src: 3, SrcPort: 0, Dst: 0, DstPort: 1}}
	w, err = pccl.Wire(top, 2, across)
	if err != nil || wiringFaults(w, top, 2, true) != "" || len(across.Minus(w)) != 1 {
		t.Errorf("%v stands, and one of these has to move: %v, %v", across, w, err)
	}
}

func TestWire_property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "gpus")
		draw := func(name string) *pccl.Topology {
			var all []pccl.Transfer
			for a := range n {
				for b := range n {
					switch rapid.IntRange(0, 5).Draw(t, name) {
					case 0:
						if a != b {
							all = append(all, pccl.Transfer{Src: a, Dst: b})
						}
					case 1:
						if a != b {
							all = append(all, pccl.Transfer{Src: a, Dst: b}, pccl.Transfer{Src: b, Dst: a})
						}
					}
				}
			}
			top, err := pccl.NewTopology(name, n, all)
			if err != nil {
				t.Fatal(err)
			}
			return top
		}
		first, second := draw("first"), draw("second")
		ports := rapid.IntRange(1, 8).Draw(t, "ports")
		bond := rapid.Bool().Draw(t, "bond")
		var kept pccl.Wiring
		for _, top := range []*pccl.Topology{first, second} {
			out, in := top.Degree()
			w, err := pccl.WireOptions{Ports: ports, Keep: kept, Bond: bond}.Wire(top)
			if max(out, in) > ports {
				if !errors.Is(err, pccl.ErrTransmitters) {
					t.Fatalf("got %v, want ErrTransmitters", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if fault := wiringFaults(w, top, ports, true); fault != "" {
				t.Fatal(fault)
			}
			if !bond && len(w) != top.Len() {
				t.Fatalf("%d circuits, want %d", len(w), top.Len())
			}
			if again, err := (pccl.WireOptions{Ports: ports, Keep: w, Bond: bond}).Wire(top); err != nil || !slices.Equal(again, w) {
				t.Fatalf("what stands moves: %v, %v", again, err)
			}
			// Of what stood in both directions, all that the topology has in both directions stays.
			for _, c := range kept {
				back := pccl.Circuit{Src: c.Dst, SrcPort: c.DstPort, Dst: c.Src, DstPort: c.SrcPort}
				if !bond && slices.Contains(kept, back) && top.Has(c.Src, c.Dst) && top.Has(c.Dst, c.Src) && !slices.Contains(w, c) {
					t.Fatalf("%v moved: %v to %v", c, kept, w)
				}
			}
			kept = w
		}
	})
}

func TestWire_switches(t *testing.T) {
	tests := []struct {
		name     string
		topology string
		gpus     int
		switches []string
		oneWay   bool
		counts   map[string]int // cross-connects
		want     string         // of the error
	}{
		{"an even ring, a switch a port", "ring", 8, []string{"a", "b"}, false, map[string]int{"a": 8, "b": 8}, ""},
		{"an odd ring has no such wiring", "ring", 7, []string{"a", "b"}, false, nil, "can join 6 pairs of ports, and it takes 7"},
		{"but with one direction on each", "ring", 7, []string{"a", "b"}, true, map[string]int{"a": 7, "b": 7}, ""},
		{"an odd ring, three switches", "ring", 7, []string{"a", "b", "c"}, false, nil, ""},
		{"an odd ring, both on one of two", "ring", 7, []string{"a", "a", "b"}, false, nil, ""},
		{"a torus, a switch a port", "torus 8x16", 128, []string{"a", "b", "c", "d"}, false,
			map[string]int{"a": 128, "b": 128, "c": 128, "d": 128}, ""},
		{"a torus, two ports a switch", "torus 4x4", 16, []string{"a", "a", "b", "b"}, false, map[string]int{"a": 32, "b": 32}, ""},
		{"a hypercube, a switch a port", "hypercube", 64, []string{"a", "b", "c", "d", "e", "f"}, false, nil, ""},
		{"an odd torus, a switch a port", "torus 5x5", 25, []string{"a", "b", "c", "d"}, false, nil, "can join 48 pairs of ports, and it takes 50"},
		{"all to all, a switch a port", "0-1,0-2,0-3,0-4,0-5,1-2,1-3,1-4,1-5,2-3,2-4,2-5,3-4,3-5,4-5", 6,
			[]string{"a", "b", "c", "d", "e"}, false, map[string]int{"a": 6, "b": 6, "c": 6, "d": 6, "e": 6}, ""},
		{"an odd torus, a switch a port, a direction each", "torus 3x5", 15, []string{"a", "b", "c", "d"}, true, nil, ""},
		{"a thousand GPUs, a switch a port", "hypercube", 1024, strings.Split("abcdefghij", ""), false,
			map[string]int{"a": 1024, "j": 1024}, ""},
		{"as many, in one direction a port", "ring", 2049, []string{"a", "b"}, true, map[string]int{"a": 2049, "b": 2049}, ""},
		{"an odd ring that is too large to search", "ring", 4097, []string{"a", "b"}, false, nil, "too many to search"},
		{"a switch has nothing to do", "0-1", 4, []string{"a", "b"}, false, map[string]int{"a": 2, "b": 0}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			top := mustTopology(t, tt.topology, tt.gpus)
			fabric := nics(tt.gpus, tt.switches...)
			w, err := pccl.WireOptions{NICs: fabric, OneWay: tt.oneWay}.Wire(top)
			if tt.want != "" {
				if !errors.Is(err, pccl.ErrSwitches) || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("got %v, want ErrSwitches with %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if fault := wiringFaults(w, top, len(tt.switches), !tt.oneWay); fault != "" {
				t.Fatal(fault)
			}
			maps, err := w.Maps(fabric)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range tt.counts {
				if m, there := maps[name]; !there || m.Len() != want {
					t.Errorf("switch %s has %d cross-connects (%v), want %d", name, m.Len(), there, want)
				}
			}
			again, err := pccl.WireOptions{NICs: fabric, OneWay: tt.oneWay, Keep: w}.Wire(top)
			if err != nil || !slices.Equal(again, w) {
				t.Errorf("what stands moves, or %v", err)
			}
		})
	}
}

// A GPU is cabled with its ports the other way around: the assignment goes by switches, not by numbers of ports.
func TestWire_irregular(t *testing.T) {
	fabric := nics(4, "a", "b")
	fabric[2][0], fabric[2][1] = fabric[2][1], fabric[2][0]
	top := mustTopology(t, "ring", 4)
	w, err := pccl.WireOptions{NICs: fabric}.Wire(top)
	if err != nil {
		t.Fatal(err)
	}
	if fault := wiringFaults(w, top, 2, true); fault != "" {
		t.Error(fault)
	}
	got, err := w.Maps(fabric)
	if err != nil || got["a"].Len() != 4 || got["b"].Len() != 4 {
		t.Errorf("%v, %v", got, err)
	}
	plain, err := pccl.Wire(top, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Maps(fabric); !errors.Is(err, pccl.ErrSwitches) || !strings.Contains(err.Error(), "sends into b/1, and port 0 of GPU 3 receives from a/1004") {
		t.Errorf("got %v, want ErrSwitches and where", err)
	}
}

// What a search finds is right, and on two switches with a port of each GPU it finds what there is: the duplex circuits
// are paths and even cycles.
func TestWire_switchesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "gpus")
		var all []pccl.Transfer
		degree := map[int]int{}
		for a := range n {
			for b := range a {
				if degree[a] < 2 && degree[b] < 2 && rapid.Bool().Draw(t, "") {
					all = append(all, pccl.Transfer{Src: a, Dst: b}, pccl.Transfer{Src: b, Dst: a})
					degree[a]++
					degree[b]++
				}
			}
		}
		top, err := pccl.NewTopology("drawn", n, all)
		if err != nil {
			t.Fatal(err)
		}
		odd := false
		for x := range n {
			// A cycle is odd if a way of an odd number of circuits leads around it.
			length, last, at := 0, -1, x
			for len(top.Out(at)) == 2 && (length == 0 || at != x) {
				next := top.Out(at)[0]
				if next == last {
					next = top.Out(at)[1]
				}
				last, at = at, next
				length++
			}
			odd = odd || length > 1 && at == x && length%2 == 1
		}
		fabric := nics(n, "a", "b")
		w, err := pccl.WireOptions{NICs: fabric}.Wire(top)
		if (err == nil) == odd {
			t.Fatalf("%s: %v, and there is an odd cycle: %v", circuitsText(top), err, odd)
		}
		if err != nil {
			return
		}
		if fault := wiringFaults(w, top, 2, true); fault != "" {
			t.Fatal(fault)
		}
		if _, err := w.Maps(fabric); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWire_errors(t *testing.T) {
	torus := mustTopology(t, "torus 4x4", 16)
	tests := []struct {
		name string
		o    pccl.WireOptions
		is   error
		want string
	}{
		{"too few ports", pccl.WireOptions{Ports: 3}, pccl.ErrTransmitters, "GPU 0 has circuits to 4 others and from 4, and 3 ports: want 4"},
		{"none", pccl.WireOptions{}, pccl.ErrArgument, "0 ports"},
		{"negative", pccl.WireOptions{Ports: -1}, pccl.ErrArgument, "-1 ports"},
		{"absurd", pccl.WireOptions{Ports: 1 << 40}, pccl.ErrArgument, "65535"},
		{"too few GPUs", pccl.WireOptions{NICs: nics(3, "a")}, pccl.ErrArgument, "3 GPUs have NICs"},
		{"too few NICs", pccl.WireOptions{NICs: nics(16, "a"), Ports: 4}, pccl.ErrArgument, "1 NICs"},
		{"no NICs at all", pccl.WireOptions{NICs: make([][]planner.NIC, 16)}, pccl.ErrTransmitters, "0 ports"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.o.Wire(torus); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %v with %q", err, tt.is, tt.want)
			}
		})
	}
	w, err := pccl.WireOptions{Ports: 4, Keep: pccl.Wiring{{Src: -1, Dst: 99}, {Src: 0, SrcPort: 9, Dst: 1}, {}}}.Wire(torus)
	if err != nil || wiringFaults(w, torus, 4, true) != "" {
		t.Errorf("a wiring of something else that stands: %v, %v", w, err)
	}
	if _, err := w.Maps(nics(3, "a")); !errors.Is(err, pccl.ErrArgument) {
		t.Errorf("got %v, want ErrArgument", err)
	}
	same := nics(16, "a", "a", "a", "a")
	same[1] = same[0]
	if _, err := w.Maps(same); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	got, err := pccl.Wiring{}.Maps(nics(2, "a", "b"))
	if names := slices.Sorted(maps.Keys(got)); err != nil || !slices.Equal(names, []string{"a", "b"}) || got["a"].Len() != 0 {
		t.Errorf("a wiring without circuits is %v, %v, want empty maps of a and b", got, err)
	}
}
