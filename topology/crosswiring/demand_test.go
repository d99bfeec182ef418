package crosswiring_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

func TestSplitOverGroups(t *testing.T) {
	for _, groups := range []int{1, 2, 3, 4, 5, 6, 7, 16} {
		for _, pods := range []int{1, 2, 3, 8, 11} {
			whole, err := crosswiring.RandomFull(crosswiring.Fabric{Pods: pods, SpinePorts: 4 * groups, Groups: 1}, 7)
			if err != nil {
				t.Fatal(err)
			}
			f := crosswiring.Fabric{Pods: pods, SpinePorts: 4, Groups: groups}
			d, err := crosswiring.SplitOverGroups(f, whole)
			if err != nil {
				t.Fatal(err)
			}
			verify(t, plan(t, f, d), d)
			for i := range pods {
				for j := range pods {
					sum := 0
					for h := range groups {
						n, all := d.At(h, i, j), whole.At(0, i, j)
						sum += n
						if n < all/2/groups*2 || n > 2*((all+1)/2+groups-1)/groups {
							t.Fatalf("%d links of %d on %d groups", n, all, groups)
						}
					}
					if sum != whole.At(0, i, j) {
						t.Fatalf("pods %d and %d have %d links, want %d", i, j, sum, whole.At(0, i, j))
					}
				}
			}
		}
	}
}

// Any demand that fits the ports of a pod fits those of its spines.
func TestSplitOverGroups_AlwaysFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t)
		wide := crosswiring.Fabric{Pods: f.Pods, SpinePorts: f.PodPorts(), Groups: 1}
		whole := drawDemand(t, wide)
		d, err := crosswiring.SplitOverGroups(f, whole)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Check(f); err != nil || d.Total() != whole.Total() {
			t.Fatal(d.Total(), whole.Total(), err)
		}
	})
}

func TestSplitOverGroups_Refuses(t *testing.T) {
	f := crosswiring.Fabric{Pods: 2, SpinePorts: 2, Groups: 2}
	for _, m := range [][][]int{{{0, 5}, {5, 0}}, {{0, 1}, {2, 0}}, {{1, 0}, {0, 0}}, {{0}}} {
		if _, err := crosswiring.SplitOverGroups(f, matrices(t, m)); !errors.Is(err, crosswiring.ErrDemand) {
			t.Errorf("%v: got %v", m, err)
		}
	}
	_, err := crosswiring.SplitOverGroups(crosswiring.Fabric{}, matrices(t, [][]int{{0}}))
	if !errors.Is(err, crosswiring.ErrFabric) {
		t.Errorf("got %v", err)
	}
}

func TestDemand_Fit(t *testing.T) {
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 2}
	pods := matrices(t, [][]int{{0, 4}, {4, 0}})
	d, err := pods.Fit(f)
	if err != nil || d.At(0, 0, 1) != 2 || d.At(1, 0, 1) != 2 || d.Pods() != 4 {
		t.Errorf("a pod-level demand is not spread: %v", err)
	}
	groups := matrices(t, [][]int{{0, 4}, {4, 0}}, [][]int{{0, 1}, {1, 0}})
	if d, err = groups.Fit(f); err != nil || d.At(0, 0, 1) != 4 || d.At(1, 1, 0) != 1 || d.Check(f) != nil {
		t.Errorf("groups are not kept: %v", err)
	}
	if _, err = groups.Fit(crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}); !errors.Is(err, crosswiring.ErrDemand) {
		t.Errorf("two groups fit one: %v", err)
	}
}

func TestDemand_With(t *testing.T) {
	none, err := crosswiring.NewDemand(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	l := crosswiring.Link{Group: 1, A: 2, B: 0}
	d, err := none.With(l, l, crosswiring.Link{Group: 0, A: 0, B: 1})
	if err != nil || d.At(1, 0, 2) != 2 || d.At(1, 2, 0) != 2 || d.Degree(1, 2) != 2 || d.Total() != 3 || none.Total() != 0 {
		t.Fatalf("%d links, %v", d.Total(), err)
	}
	if d, err = d.Without(l); err != nil || d.At(1, 0, 2) != 1 {
		t.Fatal(err)
	}
	for _, bad := range []crosswiring.Link{
		{Group: 2, A: 0, B: 1}, {Group: -1, A: 0, B: 1}, {A: 0, B: 3}, {A: -1, B: 0}, {A: 1, B: 1},
	} {
		if _, err := d.With(bad); !errors.Is(err, crosswiring.ErrDemand) {
			t.Errorf("%v: got %v", bad, err)
		}
	}
	if _, err := none.Without(l); !errors.Is(err, crosswiring.ErrDemand) {
		t.Errorf("got %v", err)
	}
	full := matrices(t, [][]int{{0, math.MaxInt32}, {math.MaxInt32, 0}})
	if _, err := full.With(crosswiring.Link{A: 0, B: 1}); !errors.Is(err, crosswiring.ErrDemand) {
		t.Errorf("more than 31 bits: got %v", err)
	}
	if d.At(0, -1, 0) != 0 || d.At(0, 0, 3) != 0 || d.At(2, 0, 0) != 0 || d.At(-1, 0, 0) != 0 || d.Degree(0, 3) != 0 {
		t.Error("there are links beyond the pods")
	}
}

func TestNewDemand_Refuses(t *testing.T) {
	for _, x := range [][2]int{{0, 1}, {-1, 1}, {1, 0}, {2049, 1}, {2048, 5}, {1, 1 << 40}, {math.MaxInt, math.MaxInt}} {
		if _, err := crosswiring.NewDemand(x[0], x[1]); !errors.Is(err, crosswiring.ErrDemand) {
			t.Errorf("%v: got %v", x, err)
		}
	}
	if _, err := crosswiring.DemandOf(); !errors.Is(err, crosswiring.ErrDemand) {
		t.Errorf("no matrices: got %v", err)
	}
}

func TestRandomFull(t *testing.T) {
	for pods := 1; pods <= 9; pods++ {
		f := crosswiring.Fabric{Pods: pods, SpinePorts: 6, Groups: 2}
		d, err := crosswiring.RandomFull(f, 5)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := crosswiring.RandomFull(f, 5)
		if err := d.Check(f); err != nil || !d.Equal(again) {
			t.Fatal(err)
		}
		for p := range pods {
			if got, want := d.Degree(1, p), min(6, 6*(pods-1)); got != want {
				t.Errorf("%d pods: degree %d, want %d", pods, got, want)
			}
		}
	}
	if _, err := crosswiring.RandomFull(crosswiring.Fabric{}, 1); !errors.Is(err, crosswiring.ErrFabric) {
		t.Errorf("got %v", err)
	}
}

// Swaps move that many links, leave the degrees, and move none back.
func TestSwapped(t *testing.T) {
	for _, pods := range []int{4, 8, 128} {
		f := crosswiring.Fabric{Pods: pods, SpinePorts: 16, Groups: 2}
		d, err := crosswiring.RandomFull(f, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, fraction := range []float64{0, .02, .1, .3, .5} {
			t.Run(fmt.Sprintf("%d-%v", pods, fraction), func(t *testing.T) {
				o, err := crosswiring.Swapped(d, fraction, 3)
				if err != nil {
					t.Fatal(err)
				}
				if again, _ := crosswiring.Swapped(d, fraction, 3); !again.Equal(o) {
					t.Error("the same seed gives others")
				}
				if err := o.Check(f); err != nil {
					t.Error(err)
				}
				kept, err := crosswiring.Realised(o, d)
				if err != nil {
					t.Fatal(err)
				}
				for h := range 2 {
					for p := range pods {
						if o.Degree(h, p) != d.Degree(h, p) {
							t.Fatalf("pod %d has %d links, had %d", p, o.Degree(h, p), d.Degree(h, p))
						}
					}
				}
				if want := 1 - fraction; pods == 128 && math.Abs(kept-want) > .002 || kept < want-.04 {
					t.Errorf("%v stays, want %v", kept, want)
				}
			})
		}
	}
}

func TestSwapped_Refuses(t *testing.T) {
	d := matrices(t, [][]int{{0, 1}, {1, 0}})
	for _, fraction := range []float64{-.1, 1.1, math.NaN(), math.Inf(1)} {
		if _, err := crosswiring.Swapped(d, fraction, 1); !errors.Is(err, crosswiring.ErrDemand) {
			t.Errorf("%v: got %v", fraction, err)
		}
	}
	if _, err := crosswiring.Swapped(matrices(t, [][]int{{0, 1}, {2, 0}}), .5, 1); !errors.Is(err, crosswiring.ErrDemand) {
		t.Errorf("a demand that differs by direction: %v", err)
	}
	for _, pods := range []int{1, 2, 3} { // there is nothing to exchange
		full, err := crosswiring.RandomFull(crosswiring.Fabric{Pods: pods, SpinePorts: 4, Groups: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := crosswiring.Swapped(full, 1, 1); err != nil || o.Pods() != pods {
			t.Errorf("%d pods: %v", pods, err)
		}
	}
}

// Jobs are rings of an odd number of pods that use all ports of their pods.
func TestJobShaped(t *testing.T) {
	for pods := 1; pods <= 40; pods++ {
		f := crosswiring.Fabric{Pods: pods, SpinePorts: 8, Groups: 2}
		d, err := crosswiring.JobShaped(f, uint64(pods))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Check(f); err != nil {
			t.Fatal(err)
		}
		idle := 0
		for p := range pods {
			switch d.Degree(1, p) {
			case 0:
				idle++
			case 8:
			default:
				t.Fatalf("pod %d has %d links", p, d.Degree(1, p))
			}
		}
		if idle > 2 {
			t.Errorf("%d of %d pods are idle", idle, pods)
		}
	}
	if _, err := crosswiring.JobShaped(crosswiring.Fabric{}, 1); !errors.Is(err, crosswiring.ErrFabric) {
		t.Errorf("got %v", err)
	}
}
