package crosswiring_test

import (
	"encoding/csv"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

func TestFabric_Counts(t *testing.T) {
	for _, x := range []struct {
		fabric                         crosswiring.Fabric
		ports, pod, pairs, switches, n int
	}{
		{crosswiring.Fabric{Pods: 4, SpinePorts: 8, Groups: 4}, 128, 32, 4, 32, 4}, // the testbed
		{crosswiring.Fabric{Pods: 4, SpinePorts: 8, Groups: 4, Wiring: crosswiring.Uniform}, 128, 32, 4, 32, 4},
		{crosswiring.Fabric{Pods: 4, SpinePorts: 8, Groups: 4, Wiring: crosswiring.DualLink}, 128, 32, 4, 16, 8},
		{crosswiring.Fabric{Pods: 32, SpinePorts: 16, Groups: 16}, 8192, 256, 8, 256, 32},
		{crosswiring.Fabric{Pods: 128, SpinePorts: 32, Groups: 8}, 32768, 256, 16, 256, 128},
		{crosswiring.Fabric{Pods: 512, SpinePorts: 16, Groups: 16}, 131072, 256, 8, 256, 512},
		{crosswiring.Fabric{Pods: 1, SpinePorts: 2, Groups: 1}, 2, 2, 1, 2, 1},
	} {
		f := x.fabric
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		want := [5]int{x.ports, x.pod, x.pairs, x.switches, x.n}
		if got := [5]int{f.Ports(), f.PodPorts(), f.Pairs(), len(f.Switches()), f.Radix()}; got != want {
			t.Errorf("%v: ports, those of a pod, pairs, switches and their ports are %v, want %v", f, got, want)
		}
		var members []crosswiring.Switch
		for _, p := range f.AllPairs() {
			for _, s := range f.Members(p) {
				if f.PairOf(s) != p {
					t.Errorf("%v: switch %v is of %v, want %v", f, s, f.PairOf(s), p)
				}
				members = append(members, s)
			}
		}
		if !slices.Equal(members, f.Switches()) {
			t.Errorf("%v: pairs have %v", f, members)
		}
	}
}

// Every input and output has a fibre, every port has two, and Cross exchanges the Rx fibres of a pair.
func TestFabric_Fibres(t *testing.T) {
	for _, w := range []crosswiring.Wiring{crosswiring.Cross, crosswiring.Uniform, crosswiring.DualLink} {
		f := crosswiring.Fabric{Pods: 3, SpinePorts: 4, Groups: 2, Wiring: w}
		all := f.Fibres()
		if len(all) != 2*f.Ports() {
			t.Fatalf("%v: %d fibres", w, len(all))
		}
		far := map[crosswiring.Fibre]bool{}
		for _, x := range all {
			end := crosswiring.Fibre{Rx: x.Rx, Switch: x.Switch, Number: x.Number}
			if far[end] || x.Number < 0 || x.Number >= f.Radix() || !slices.Contains(f.Switches(), x.Switch) {
				t.Errorf("%v: %v is taken or not there", w, x)
			}
			far[end] = true
			if x.Rx && f.AtOutput(x.Switch, x.Number) != x.Port || !x.Rx && f.AtInput(x.Switch, x.Number) != x.Port {
				t.Errorf("%v: %v leads elsewhere back", w, x)
			}
			switch k := x.Port.Index; {
			case w == crosswiring.Cross && x.Rx && x.Switch.Index != k^1,
				w == crosswiring.Cross && !x.Rx && x.Switch.Index != k,
				w == crosswiring.Uniform && x.Switch.Index != k,
				w == crosswiring.DualLink && x.Switch.Index != k/2:
				t.Errorf("%v: %v goes to switch %v", w, x.Port, x.Switch)
			}
		}
	}
}

func TestFabric_WriteFibres(t *testing.T) {
	f := crosswiring.Fabric{Pods: 2, SpinePorts: 2, Groups: 1}
	var text strings.Builder
	if err := f.WriteFibres(&text); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text.String())).ReadAll()
	if err != nil || len(rows) != 1+2*f.Ports() {
		t.Fatal(len(rows), err)
	}
	want := []string{"1", "0", "0", "rx", "g0.r0", "0", "1", "out", "1", "p1.s0.k0 rx", "g0.o1 out1"}
	if !slices.Equal(rows[4], want) {
		t.Errorf("got %q, want %q", rows[4], want)
	}
	labels := map[string]bool{}
	for _, row := range rows {
		for _, label := range row[9:] {
			if labels[label] {
				t.Errorf("%q is on two ends", label)
			}
			labels[label] = true
		}
	}
	if err := f.WriteFibres(failing{}); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

var errFull = errors.New("the disk is full")

// failing is a writer that cannot.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestParseWiring(t *testing.T) {
	for _, w := range []crosswiring.Wiring{crosswiring.Cross, crosswiring.Uniform, crosswiring.DualLink} {
		if got, err := crosswiring.ParseWiring(w.String()); err != nil || got != w {
			t.Errorf("%v: %v, %v", w, got, err)
		}
	}
	if _, err := crosswiring.ParseWiring("crossed"); !errors.Is(err, crosswiring.ErrFabric) {
		t.Errorf("got %v", err)
	}
}
