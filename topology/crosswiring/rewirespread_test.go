package crosswiring_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// podLevel returns how many links pods have in all groups together.
func podLevel(t fataler, d *crosswiring.Demand) *crosswiring.Demand {
	t.Helper()
	sum := make([][]int, d.Pods())
	for i := range sum {
		sum[i] = make([]int, d.Pods())
		for j := range sum[i] {
			for h := range d.Groups() {
				sum[i][j] += d.At(h, i, j)
			}
		}
	}
	p, err := crosswiring.DemandOf(sum)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sameDemand(a, b *crosswiring.Demand) bool {
	if a.Pods() != b.Pods() || a.Groups() != b.Groups() {
		return false
	}
	for h := range a.Groups() {
		for i := range a.Pods() {
			for j := range a.Pods() {
				if a.At(h, i, j) != b.At(h, i, j) {
					return false
				}
			}
		}
	}
	return true
}

// Whatever runs, the groups have what is wanted together, each no more than its ports; and what runs stays, if it is wanted.
func TestFitRunning_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t)
		from, err := crosswiring.Plan(f, drawDemand(t, f))
		if err != nil {
			t.Fatal(err)
		}
		want := podLevel(t, drawDemand(t, f))
		d, err := want.FitRunning(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Check(f); err != nil || !sameDemand(podLevel(t, d), want) {
			t.Fatal("the groups do not have what is wanted", err)
		}
		if d, err = podLevel(t, from.Demand()).FitRunning(from); err != nil || !sameDemand(d, from.Demand()) {
			t.Fatal("what runs is moved", err)
		}
	})
}

// Of 2 % of the links of a cluster of 2,048 GPUs few are in groups where they did not run.
func TestFitRunning_Keeps(t *testing.T) {
	f := crosswiring.Fabric{Pods: 32, SpinePorts: 8, Groups: 8}
	from, to := changed(t, f, .02, 1)
	near, err := podLevel(t, to).FitRunning(from)
	if err != nil {
		t.Fatal(err)
	}
	far, err := podLevel(t, to).Fit(f)
	if err != nil {
		t.Fatal(err)
	}
	_, n := rewire(t, from, near, crosswiring.RewireOptions{Rounds: -1})
	_, other := rewire(t, from, far, crosswiring.RewireOptions{Rounds: -1})
	t.Logf("rewired %.3f, with SplitOverGroups %.3f", n.Share(), other.Share())
	if n.Share() > .5 || other.Share() < n.Share() {
		t.Errorf("rewired %.3f, with SplitOverGroups %.3f: want .5 at most", n.Share(), other.Share())
	}
}

func TestFitRunning_Refuses(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 2}
	dark, uniform := circuits(t, f, nil), f
	uniform.Wiring = crosswiring.Uniform
	link := matrices(t, [][]int{{0, 1}, {1, 0}})
	for _, x := range []struct {
		name string
		d    *crosswiring.Demand
		from *crosswiring.Config
		err  error
	}{
		{"zero", link, &crosswiring.Config{}, crosswiring.ErrFabric},
		{"uniform", link, circuits(t, uniform, nil), crosswiring.ErrFabric},
		{"degree", matrices(t, [][]int{{0, 5}, {5, 0}}), dark, crosswiring.ErrDemand},
		{"asymmetric", matrices(t, [][]int{{0, 1}, {0, 0}}), dark, crosswiring.ErrDemand},
		{"pods", matrices(t, [][]int{{0, 1, 0, 0}, {1, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}), dark, crosswiring.ErrDemand},
		{"not-l2", link, circuits(t, f, byIndex{{}: ring(3)}), crosswiring.ErrConfig},
	} {
		if d, err := x.d.FitRunning(x.from); !errors.Is(err, x.err) || d != nil {
			t.Errorf("%s: %v: want %v", x.name, err, x.err)
		}
	}
	if d, err := link.FitRunning(dark); err != nil || d.Total() != 1 || d.Groups() != 2 || d.Pods() != 3 {
		t.Error(d, err)
	}
	// One that has groups is taken as it is.
	if d, err := dark.Demand().FitRunning(dark); err != nil || d.Total() != 0 {
		t.Error(d, err)
	}
}
