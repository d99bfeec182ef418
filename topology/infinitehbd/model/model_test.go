package model_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd/model"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: got %.6g, want %.6g ± %.2g", what, got, want, within)
	}
}

// TestTable7 is table 7 of the paper, TP-32, and what the bound is of.
func TestTable7(t *testing.T) {
	q4 := model.NodeRate(0.0103, 4)
	near(t, "nodes of 4", q4, 0.0406, 5e-5)
	const q8 = 0.0792
	for _, x := range []struct {
		gpus, hops    int
		rate          float64
		bound, within float64
		exact         float64
		accuracy      float64
	}{
		{4, 2, q4, 0.0922, 5e-5, 0.0055, 5e-5},
		{4, 3, q4, 0.0037, 5e-5, 0.00022, 5e-6},
		{4, 4, q4, 1.52e-4, 5e-7, 9.1e-6, 5e-8},
		{8, 2, q8, 0.3011, 5e-5, 0.0087, 5e-5},
		{8, 3, q8, 0.0238, 5e-5, 0.00069, 5e-6},
		{8, 4, q8, 0.0019, 5e-5, 5.4e-5, 1e-6},
	} {
		near(t, "bound", model.WasteBound(32, x.gpus, x.rate, x.hops), x.bound, x.within)
		got, err := model.Waste(32/x.gpus, x.rate, x.hops)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "exact", got, x.exact, x.accuracy)
	}
}

func TestWaste_Vectors(t *testing.T) {
	for _, x := range []struct {
		rate float64
		hops int
		want float64
	}{
		{0.05, 2, 8.30e-3}, {0.05, 3, 4.16e-4},
		{0.10, 2, 3.13e-2}, {0.10, 3, 3.15e-3},
		{0.121, 2, 4.47e-2}, {0.121, 3, 5.45e-3},
	} {
		got, err := model.Waste(8, x.rate, x.hops)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "waste", got, x.want, x.want*5e-3)
	}
}

// walk counts what a long random line wastes.
func walk(nodes, m, hops int, q float64) float64 {
	rng := rand.New(rand.NewPCG(1, uint64(m*100+hops)))
	wasted, piece, gap := 0, 0, 0
	for range nodes {
		if rng.Float64() < q {
			if gap++; gap == hops {
				wasted, piece = wasted+piece%m, 0
			}
			continue
		}
		gap = 0
		piece++
	}
	return float64(wasted) / float64(nodes)
}

func TestWaste_MonteCarlo(t *testing.T) {
	for _, m := range []int{1, 2, 4, 8} {
		for _, hops := range []int{1, 2, 3} {
			for _, q := range []float64{0.121, 0.2, 0.5} {
				want, err := model.Waste(m, q, hops)
				if err != nil {
					t.Fatal(err)
				}
				const nodes = 500_000
				breaks := nodes * (1 - q) * math.Pow(q, float64(hops))
				// What a break loses varies by no more than itself and a quarter: these are 4 standard errors.
				near(t, "waste", walk(nodes, m, hops, q), want, 5*want/math.Sqrt(breaks)+1e-5)
			}
		}
	}
}

func TestWaste_Bounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, hops := rapid.IntRange(1, 64).Draw(t, "m"), rapid.IntRange(1, 6).Draw(t, "hops")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		w, err := model.Waste(m, q, hops)
		if err != nil || !(w >= 0 && w <= 1-q+1e-12) {
			t.Fatalf("%v, %v", w, err)
		}
		if b := model.WasteBound(4*m, 4, q, hops); w > b+1e-12 {
			t.Fatalf("more than the bound: %v > %v", w, b)
		}
	})
}

// TestWaste_Sum compares with the sum that the closed form is of, also where differences lose digits.
func TestWaste_Sum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, hops := rapid.IntRange(1, 500).Draw(t, "m"), rapid.IntRange(1, 6).Draw(t, "hops")
		q := math.Pow(10, rapid.Float64Range(-6, 0).Draw(t, "log q"))
		b := math.Pow(q, float64(hops))
		if b == 1 {
			return
		}
		want := 0.0
		for j := 1; j < m; j++ {
			want += float64(j) * math.Exp(float64(j-1)*math.Log1p(-b))
		}
		want *= (1 - q) * b * b / -math.Expm1(float64(m)*math.Log1p(-b))
		if got, err := model.Waste(m, q, hops); err != nil || math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%g, %v: want %g", got, err, want)
		}
	})
}

func TestWaste_Extremes(t *testing.T) {
	for _, x := range []struct {
		m, hops int
		q, want float64
	}{
		{math.MaxInt, 1, 0.25, 0.75}, {math.MaxInt, math.MaxInt, 0.5, 0}, {8, 2, 0, 0}, {8, 2, 1, 0}, {1, 2, 0.5, 0},
		{1_000_000_001, 1, 1e-30, 5e-22}, {8, 1, math.SmallestNonzeroFloat64, 0},
	} {
		got, err := model.Waste(x.m, x.q, x.hops)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "waste", got, x.want, 1e-9*x.want+1e-300)
	}
}

func TestWaste_Errors(t *testing.T) {
	for _, x := range []struct {
		m, hops int
		q       float64
	}{{0, 2, 0.1}, {4, 0, 0.1}, {4, 2, -1}, {4, 2, 1.1}, {4, 2, math.NaN()}} {
		if _, err := model.Waste(x.m, x.q, x.hops); !errors.Is(err, model.ErrArgument) {
			t.Errorf("%+v: got %v", x, err)
		}
	}
}

func TestFragment(t *testing.T) {
	if got := 2 * model.Fragment(32, 1, 16); got != 30 {
		t.Errorf("two domains of 32: %d", got)
	}
	if got := model.Fragment(64, 2, 16); got != 14 {
		t.Errorf("one of 64: %d", got)
	}
	for _, x := range [][4]int{{64, 64, 16, 0}, {64, 65, 16, 0}, {64, 1, 128, 63}, {64, 1, 0, 63}} {
		if got := model.Fragment(x[0], x[1], x[2]); got != x[3] {
			t.Errorf("%v: %d", x, got)
		}
	}
}

func TestRates(t *testing.T) {
	gpu := model.GPURate(0.0266, 8)
	near(t, "GPU", gpu, 0.00336, 5e-6)
	near(t, "half a node", model.NodeRate(gpu, 4), 0.0134, 5e-5)
	near(t, "of a fault", model.HalfRate(0.0266, 8), 0.5034, 1e-4)
	near(t, "of no fault", model.HalfRate(0, 8), 0.5, 0)
	near(t, "of nearly none", model.HalfRate(1e-12, 8), 0.5, 1e-4)
	near(t, "where all are dead", model.HalfRate(1, 8), 1, 0)
	near(t, "of a whole node", model.PartRate(0.0266, 8, 8), 1, 0)
}

func TestLayer(t *testing.T) {
	l := model.Layer{Batch: 1, Sequence: 2048, Hidden: 12288, Experts: 2, Bytes: 2}
	near(t, "tensor parallel", l.TensorParallel(8), 2*2048*12288*2*7/8.0, 1e-6)
	near(t, "expert parallel", l.ExpertParallel(8), l.TensorParallel(8)/4, 1e-6)
}
