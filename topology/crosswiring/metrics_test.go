package crosswiring_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// What Uniform wiring makes of some demands at best: with an odd number of pods each switch leaves one out.
func TestMetrics_UniformAtBest(t *testing.T) {
	pair := func(a, b int) []crosswiring.Circuit { return []crosswiring.Circuit{{a, b}, {b, a}} }
	for _, x := range []struct {
		name           string
		ports          int
		demand         [][]int
		pairs          [][]crosswiring.Circuit // by switch
		ltrr, realised float64
	}{
		{"triangle", 2, [][]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}, [][]crosswiring.Circuit{pair(0, 1), pair(0, 2)}, .8165, 2. / 3},
		{"two-each", 4, [][]int{{0, 2, 2}, {2, 0, 2}, {2, 2, 0}},
			[][]crosswiring.Circuit{pair(0, 1), pair(0, 1), pair(0, 2), pair(0, 2)}, .8165, 4. / 6},
		{"lopsided", 4, [][]int{{0, 3, 1}, {3, 0, 1}, {1, 1, 0}},
			[][]crosswiring.Circuit{pair(0, 1), pair(0, 1), pair(0, 1), pair(0, 2)}, .9535, 4. / 5},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := crosswiring.Fabric{Pods: 3, SpinePorts: x.ports, Groups: 1, Wiring: crosswiring.Uniform}
			all := byIndex{}
			for k, some := range x.pairs {
				all[crosswiring.Switch{Index: k}] = some
			}
			c := circuits(t, f, all)
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			d := matrices(t, x.demand)
			ltrr, err := crosswiring.LTRR(c.Demand(), d)
			if err != nil || math.Abs(ltrr-x.ltrr) > 5e-5 {
				t.Errorf("LTRR is %v, want %v (%v)", ltrr, x.ltrr, err)
			}
			realised, err := crosswiring.Realised(c.Demand(), d)
			if err != nil || math.Abs(realised-x.realised) > 1e-12 {
				t.Errorf("%v is realised, want %v (%v)", realised, x.realised, err)
			}
		})
	}
}

// The weakness of LTRR: it is 1 when only a part of every link is there.
func TestLTRR_Proportion(t *testing.T) {
	three, four := matrices(t, [][]int{{0, 3}, {3, 0}}), matrices(t, [][]int{{0, 4}, {4, 0}})
	if got, err := crosswiring.LTRR(three, four); err != nil || got != 1 {
		t.Errorf("LTRR is %v, %v", got, err)
	}
	if got, err := crosswiring.Realised(three, four); err != nil || got != .75 {
		t.Errorf("%v is realised, %v", got, err)
	}
}

func TestMetrics_Edges(t *testing.T) {
	none, some := matrices(t, [][]int{{0, 0}, {0, 0}}), matrices(t, [][]int{{0, 1}, {1, 0}})
	other := matrices(t, [][]int{{0}})
	for _, metric := range []func(a, b *crosswiring.Demand) (float64, error){crosswiring.LTRR, crosswiring.Realised} {
		if got, err := metric(some, none); err != nil || got != 1 {
			t.Errorf("a demand for nothing is realised by %v, %v", got, err)
		}
		if got, err := metric(none, some); err != nil || got != 0 {
			t.Errorf("nothing realises %v, %v", got, err)
		}
		if _, err := metric(other, some); !errors.Is(err, crosswiring.ErrDemand) {
			t.Errorf("two shapes: %v", err)
		}
	}
}

func TestMRAR(t *testing.T) {
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 2, Groups: 1}
	dark := circuits(t, f, nil)
	a := circuits(t, f, byIndex{{}: ring(4), {Index: 1}: back(ring(4))})
	b := circuits(t, f, byIndex{{}: {{0, 1}, {1, 0}, {2, 3}, {3, 2}}, {Index: 1}: {{0, 1}, {1, 0}, {2, 3}, {3, 2}}})
	for _, x := range []struct {
		from, to         *crosswiring.Config
		kept, similarity float64
	}{
		{a, a, 1, 1}, {a, b, .5, .5}, {dark, dark, 1, 1}, {dark, a, 1, 0}, {a, dark, 0, 0},
	} {
		kept, err := crosswiring.Kept(x.from, x.to)
		if err != nil || kept != x.kept {
			t.Errorf("%v is kept, want %v (%v)", kept, x.kept, err)
		}
		similarity, err := crosswiring.Similarity(x.from, x.to)
		if err != nil || similarity != x.similarity {
			t.Errorf("similarity %v, want %v (%v)", similarity, x.similarity, err)
		}
	}
	same := []*crosswiring.Config{a, a, a}
	if got, err := crosswiring.MRAR([]*crosswiring.Config{a, b, b}, same); err != nil || got != .75 {
		t.Errorf("MRAR is %v, want .75 (%v)", got, err)
	}
	other := circuits(t, crosswiring.Fabric{Pods: 2, SpinePorts: 2, Groups: 1}, nil)
	for _, x := range [][2][]*crosswiring.Config{
		{nil, nil}, {same[:1], same[:1]}, {same, same[:2]}, {same, {a, dark, a}}, {{a, other, a}, same}, {same, {a, a, other}},
	} {
		if _, err := crosswiring.MRAR(x[0], x[1]); !errors.Is(err, crosswiring.ErrConfig) {
			t.Errorf("got %v", err)
		}
	}
}

func TestKingmanWait(t *testing.T) {
	for _, x := range []struct {
		interval, service time.Duration
		ca2, cs2          float64
		want              time.Duration
		stable            bool
	}{
		{time.Minute, 30 * time.Second, 1, 1, 30 * time.Second, true},
		{time.Minute, 30 * time.Second, 1, 0, 15 * time.Second, true},
		{time.Minute, 20 * time.Millisecond, 1, 0, 3334 * time.Nanosecond, true},
		{time.Minute, 0, 1, 1, 0, true},
		{time.Minute, 400 * time.Second, 1, 0, 0, false}, // exact planning of a large cluster
		{time.Minute, time.Minute, 1, 0, 0, false},
		{0, 0, 1, 1, 0, false},
		{time.Minute, -1, 1, 1, 0, false},
		{time.Minute, 1, math.NaN(), 1, 0, false},
		{time.Minute, 1, 1, -1, 0, false},
		{time.Minute, time.Second, math.Inf(1), 1, 0, false},
	} {
		got, stable := crosswiring.KingmanWait(x.interval, x.service, x.ca2, x.cs2)
		if stable != x.stable || (got-x.want).Abs() > time.Nanosecond {
			t.Errorf("%v every %v waits %v, %v: want %v, %v", x.service, x.interval, got, stable, x.want, x.stable)
		}
	}
}
