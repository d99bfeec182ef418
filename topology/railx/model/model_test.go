package model_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/railx/model"
)

// Equation (1), as the paper counts chips.
func TestSize_Counts(t *testing.T) {
	for _, x := range []struct{ radix, mesh, lanes, chips, switches int }{
		{128, 5, 9, 102400, 5760}, {320, 2, 9, 102400, 5760}, {128, 7, 9, 200704, 8064}, {128, 4, 9, 65536, 4608},
	} {
		g, err := model.Size{Radix: x.radix, Mesh: x.mesh, Lanes: x.lanes}.Grid()
		if err != nil {
			t.Fatal(err)
		}
		c, err := g.Counts()
		if err != nil || c.Chips != x.chips || c.Switches != x.switches {
			t.Errorf("%+v: got %+v, %v", x, c, err)
		}
	}
}

// Equations (2) to (4), and table 2.
func TestSize(t *testing.T) {
	s := model.Size{Radix: 128, Mesh: 4, Lanes: 9}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name      string
		got, want float64
	}{
		{"torus", s.Torus(), 16. * 9 / (128 * 4)}, {"HyperX", s.HyperX(), 2. * 37 / 16}, {"Dragonfly", s.Dragonfly(), 4.5},
		// Figure 14: theory 1.0, 2(r+1)/m² is 1.125.
		{"figure 14", model.Size{Radix: 18, Mesh: 4, Lanes: 2}.HyperX(), 1.125}, {"figure 14, rounded", model.Size{Radix: 18, Mesh: 4, Lanes: 2}.Dragonfly(), 1},
		{"kappa", model.KappaNeeded, 2}, {"torus diameter", float64(s.TorusDiameter()), 64},
		{"nodes of a HyperX", float64(s.HyperXNodes()), 37}, {"groups", float64(s.DragonflyGroups()), 64},
		{"groups, r=4", float64(model.Size{Radix: 128, Mesh: 2, Lanes: 2}.DragonflyGroups()), 21},
	} {
		if math.Abs(x.got-x.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", x.name, x.got, x.want)
		}
	}
	if optical, mesh := s.HyperXHops(); optical != 2 || mesh != 14 {
		t.Errorf("got %d and %d hops, want 2 and 14", optical, mesh)
	}
	for _, bad := range []model.Size{{}, {Radix: 127, Mesh: 4, Lanes: 9}, {Radix: 128, Lanes: 9}, {Radix: 1 << 40, Mesh: 4, Lanes: 9}, {Radix: 128, Mesh: 4, Lanes: 1 << 40}} {
		if err := bad.Check(); !errors.Is(err, model.ErrArgument) {
			t.Errorf("%+v: got %v, want ErrArgument", bad, err)
		}
	}
}

// n=1, B=100 GB/s, kappa 4, m=4, alpha 300 ns, 10 ns for a hop of the mesh.
var small = model.Machine{Mesh: 4, Lanes: 1, Kappa: 4, Port: 100e9, Alpha: 300e-9, Hop: 10e-9}

func TestAllReduce(t *testing.T) {
	for _, x := range []struct {
		p     int
		bytes float64
		want  model.AllReduce
		half  model.AllReduce // half a unit of the last digit
	}{
		{16, 1e6, model.AllReduce{Ring: 2.462e-3, Rings2D: 80.6e-6, Hierarchy: 21.9e-6, HyperX: 5.09e-6}, model.AllReduce{Ring: 5e-7, Rings2D: 5e-8, Hierarchy: 5e-8, HyperX: 5e-9}},
		{16, 1e9, model.AllReduce{Ring: 7.456e-3, Rings2D: 5.074e-3, Hierarchy: 3.607e-3, HyperX: 3.590e-3}, model.AllReduce{Ring: 5e-7, Rings2D: 5e-7, Hierarchy: 5e-7, HyperX: 5e-7}},
		{32, 1e6, model.AllReduce{Ring: 9.835e-3, Rings2D: 157.4e-6, Hierarchy: 41.1e-6, HyperX: 5.09e-6}, model.AllReduce{Ring: 5e-7, Rings2D: 5e-8, Hierarchy: 5e-8, HyperX: 5e-9}},
	} {
		got, err := small.AllReduce(x.p, x.bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []struct {
			name            string
			got, want, half float64
		}{
			{"ring", got.Ring, x.want.Ring, x.half.Ring}, {"2D rings", got.Rings2D, x.want.Rings2D, x.half.Rings2D},
			{"hierarchy", got.Hierarchy, x.want.Hierarchy, x.half.Hierarchy}, {"HyperX", got.HyperX, x.want.HyperX, x.half.HyperX},
		} {
			if math.Abs(v.got-v.want) > v.half {
				t.Errorf("p %d, %v bytes, %s: got %.6g s, want %.4g", x.p, x.bytes, v.name, v.got, v.want)
			}
		}
	}
}

// The right sides of the equations are those of the left for many nodes of many chips, without hops of the mesh.
func TestSimplified(t *testing.T) {
	x := model.Machine{Mesh: 16, Lanes: 4, Kappa: 2, Port: 50e9, Alpha: 300e-9}
	exact, err := x.AllReduce(1024, 16e9)
	if err != nil {
		t.Fatal(err)
	}
	rough, err := x.Simplified(1024, 16e9)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string][2]float64{"2D rings": {exact.Rings2D, rough.Rings2D}, "hierarchy": {exact.Hierarchy, rough.Hierarchy}, "HyperX": {exact.HyperX, rough.HyperX}} {
		if math.Abs(v[0]/v[1]-1) > 0.01 {
			t.Errorf("%s: %v and %v are more than 1 %% apart", name, v[0], v[1])
		}
	}
	ring, rings2D, err := small.Shared(16, 1e9)
	if err != nil || math.Abs(ring-(2*16*300e-9+1e9/25e9)) > 1e-12 || math.Abs(rings2D-(4*16*300e-9+1e9/50e9)) > 1e-12 {
		t.Errorf("equation (9): got %v, %v, %v", ring, rings2D, err)
	}
	if got := model.StepTime(5, 2, 3, 1); got != 9 {
		t.Errorf("equation (10): got %v, want 9", got)
	}
	for _, bad := range []model.Machine{{}, {Mesh: 4, Lanes: 1, Kappa: 4, Port: math.NaN()}, {Mesh: 4, Lanes: 1, Kappa: 4, Port: 1, Alpha: -1}} {
		if _, err := bad.AllReduce(16, 1); !errors.Is(err, model.ErrArgument) {
			t.Errorf("%+v: got %v, want ErrArgument", bad, err)
		}
	}
}

// Hierarchical is best at every size and scale of those two that need rings, and its lead grows with the scale.
func TestAllReduce_Order(t *testing.T) {
	for _, bytes := range []float64{1e3, 1e6, 1e9} {
		lead := 0.0
		for _, p := range []int{4, 8, 16, 32, 64} {
			a, err := small.AllReduce(p, bytes)
			if err != nil {
				t.Fatal(err)
			}
			if !(a.HyperX < a.Hierarchy && a.Hierarchy < a.Rings2D && a.Rings2D < a.Ring) {
				t.Errorf("p %d, %v bytes: not in order: %+v", p, bytes, a)
			}
			if now := a.Ring / a.Hierarchy; now <= lead {
				t.Errorf("p %d, %v bytes: the lead over one ring fell to %v", p, bytes, now)
			} else {
				lead = now
			}
		}
	}
}

// No other split than what is returned is quicker.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lanes := rapid.IntRange(2, 40).Draw(t, "lanes")
		use := rapid.Custom(func(t *rapid.T) model.Use {
			return model.Use{Bytes: rapid.Float64Range(1, 1e9).Draw(t, "bytes"), Overlap: rapid.Float64Range(0, 1).Draw(t, "overlap")}
		})
		a, b := use.Draw(t, "first"), use.Draw(t, "second")
		got, err := model.Split(lanes, 1e8, a, b, model.Sum)
		if err != nil || got.First+got.Second != lanes || got.First < 1 || got.Second < 1 {
			t.Fatalf("got %+v, %v", got, err)
		}
		for n := 1; n < lanes; n++ {
			time := max(a.Overlap, a.Bytes/(2*float64(n)*1e8)) + max(b.Overlap, b.Bytes/(2*float64(lanes-n)*1e8))
			if time < got.Time-1e-12 {
				t.Fatalf("%d lanes take %v, %+v was returned", n, time, got)
			}
		}
	})
}

func TestSplit_Cases(t *testing.T) {
	for name, x := range map[string]struct {
		lanes         int
		first, second model.Use
		o             model.Objective
		want          model.Shares
	}{
		"alike":            {8, model.Use{Bytes: 8}, model.Use{Bytes: 8}, model.Sum, model.Shares{First: 4, Second: 4, Time: 2}},
		"four times, sum":  {9, model.Use{Bytes: 36}, model.Use{Bytes: 9}, model.Sum, model.Shares{First: 6, Second: 3, Time: 4.5}},
		"twice, max":       {9, model.Use{Bytes: 36}, model.Use{Bytes: 18}, model.Slower, model.Shares{First: 6, Second: 3, Time: 3}},
		"second silent":    {4, model.Use{Bytes: 8}, model.Use{}, "", model.Shares{First: 4, Time: 1}},
		"hidden behind it": {4, model.Use{Bytes: 8, Overlap: 4}, model.Use{Bytes: 6}, model.Sum, model.Shares{First: 1, Second: 3, Time: 5}},
	} {
		got, err := model.Split(x.lanes, 1, x.first, x.second, x.o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(x.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	sends := model.Use{Bytes: 1}
	for name, err := range map[string]error{
		"one lane":  second(model.Split(1, 1, sends, sends, model.Sum)),
		"no lanes":  second(model.Split(0, 1, sends, sends, model.Sum)),
		"bandwidth": second(model.Split(2, 0, sends, sends, model.Sum)),
		"negative":  second(model.Split(2, 1, model.Use{Bytes: -1}, sends, model.Sum)),
		"objective": second(model.Split(2, 1, sends, sends, "least")),
	} {
		if !errors.Is(err, model.ErrArgument) {
			t.Errorf("%s: got %v, want ErrArgument", name, err)
		}
	}
}

func second[A, B any](_ A, b B) B { return b }

var moe = model.Training{Batch: 1, Sequence: 1 << 13, Hidden: 4096, Intermediate: 14336, TopK: 2, Layers: 32, Vocabulary: 128 << 10, MicroBatches: 8,
	Heads: 32, KVHeads: 8, Tensor: 4, Context: 2, Expert: 8, Data: 2, Pipeline: 4}

// Table 4, each row worked out by hand.
func TestTraffic(t *testing.T) {
	got, err := moe.Traffic()
	if err != nil {
		t.Fatal(err)
	}
	const bsh = (1 << 13) * 4096 * 2 // bytes
	want := []model.Traffic{
		{Parallelism: "tensor, attention", Pattern: "reduce-scatter and all-gather", Bytes: bsh, Times: 256, Over: []string{"T"}, Dimensions: 1},
		{Parallelism: "tensor, experts", Pattern: "reduce-scatter and all-gather", Bytes: 2 * bsh, Times: 256, Over: []string{"T"}, Dimensions: 1},
		{Parallelism: "context", Pattern: "point to point", Bytes: bsh / 8, Times: 128, Over: []string{"C"}, Dimensions: 1},
		{Parallelism: "expert", Pattern: "all-to-all", Bytes: bsh / 4, Times: 256, Over: []string{"E"}, Dimensions: 1},
		{Parallelism: "data, vocabulary", Pattern: "all-reduce", Bytes: 2 * 4096 * (128 << 10) * 2 / 8, Times: 1, Over: []string{"E", "D"}, Dimensions: 2},
		{Parallelism: "data, attention", Pattern: "reduce-scatter and all-gather", Bytes: 2.5 * 4096 * 4096 * 2 / 4, Times: 8, Over: []string{"C", "E", "D"}, Dimensions: 3},
		{Parallelism: "data, feed-forward", Pattern: "reduce-scatter and all-gather", Bytes: 3 * 4096 * 14336 * 2 / 4, Times: 8, Over: []string{"C", "D"}, Dimensions: 2},
		{Parallelism: "pipeline", Pattern: "point to point", Bytes: bsh / 8, Times: 16, Over: []string{"P"}, Dimensions: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// (Cα + V/(2n/m))F and (α + V/(2n/m))F, with n=2, m=4, B=1 GB/s.
	if got, want := got[2].ContextTime(2, 2, 4, 1e9, 1e-6), (2e-6+bsh/8/1e9)*128; math.Abs(got-want) > 1e-12 {
		t.Errorf("context: got %v s, want %v", got, want)
	}
	if got, want := got[3].ExpertTime(2, 4, 1e9, 1e-6), (1e-6+bsh/4/1e9)*256; math.Abs(got-want) > 1e-12 {
		t.Errorf("expert: got %v s, want %v", got, want)
	}
	alone := moe
	alone.Tensor, alone.Context, alone.Expert, alone.Data, alone.Pipeline = 1, 1, 1, 1, 1
	if got, err := alone.Traffic(); err != nil || len(got) != 0 {
		t.Errorf("one chip: got %v, %v, want nothing", got, err)
	}
	for name, change := range map[string]func(*model.Training){
		"no layers": func(x *model.Training) { x.Layers = 0 }, "stages": func(x *model.Training) { x.Pipeline = 5 },
		"heads": func(x *model.Training) { x.KVHeads = 64 }, "huge": func(x *model.Training) { x.Hidden = math.MaxInt },
		"element": func(x *model.Training) { x.Element = math.Inf(1) },
	} {
		bad := moe
		change(&bad)
		if _, err := bad.Traffic(); !errors.Is(err, model.ErrArgument) {
			t.Errorf("%s: got %v, want ErrArgument", name, err)
		}
	}
}

// Groups of ranks: a fixed step for each dimension, and products of those.
func TestGroup(t *testing.T) {
	for _, x := range []struct {
		rank int
		over []string
		want []int
	}{
		// T, C, E, De, P are 4, 2, 8, 2, 4: steps of 1, 4, 8, 64, 128.
		{0, []string{"T"}, []int{0, 1, 2, 3}},
		{511, []string{"T"}, []int{508, 509, 510, 511}},
		{5, []string{"C"}, []int{1, 5}},
		{5, []string{"E"}, []int{5, 13, 21, 29, 37, 45, 53, 61}},
		{5, []string{"D"}, []int{5, 69}},
		{5, []string{"P"}, []int{5, 133, 261, 389}},
		{5, []string{"D", "C"}, []int{1, 5, 65, 69}},
		{5, nil, []int{5}},
	} {
		got, err := moe.Group(x.rank, x.over...)
		if d := cmp.Diff(x.want, got); d != "" || err != nil {
			t.Errorf("rank %d over %v: %v (-want +got):\n%s", x.rank, x.over, err, d)
		}
	}
	// Data parallelism of attention is over E and De: step TC, length E·De.
	got, err := moe.Group(131, "E", "D")
	if err != nil || len(got) != 16 {
		t.Fatalf("got %v, %v, want 16 ranks", got, err)
	}
	for i, r := range got {
		if r != 131+8*i {
			t.Errorf("got %v, want steps of 8 from 131", got)
		}
	}
	huge := moe
	huge.Tensor, huge.Context = 1<<24, 1<<24
	_, ranks := huge.Group(0, "T")
	_, low := moe.Group(-1, "T")
	_, high := moe.Group(512, "T")
	_, name := moe.Group(0, "X")
	_, none := model.Training{}.Group(0, "T")
	for i, err := range []error{ranks, low, high, name, none} {
		if !errors.Is(err, model.ErrArgument) {
			t.Errorf("%d: got %v, want ErrArgument", i, err)
		}
	}
}

// Figure 16: longer sequences want more of the lanes for context parallelism.
func TestLongContext(t *testing.T) {
	last := 0
	var lanes []int
	for sequence := 1 << 14; sequence <= 1<<22; sequence *= 2 {
		s, err := moe.LongContext(sequence, 1<<13, 9, 50e9)
		if err != nil {
			t.Fatal(err)
		}
		if s.First < last || s.First+s.Second != 9 {
			t.Errorf("%d tokens: %+v after %d lanes", sequence, s, last)
		}
		last = s.First
		lanes = append(lanes, s.First)
	}
	if lanes[0] >= 5 || last < 7 {
		t.Errorf("lanes for context parallelism are %v: want few at first and most at last", lanes)
	}
	if _, err := moe.LongContext(100, 64, 9, 50e9); !errors.Is(err, model.ErrArgument) {
		t.Errorf("got %v, want ErrArgument", err)
	}
}
