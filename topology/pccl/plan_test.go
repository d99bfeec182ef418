package pccl_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/topology/pccl"
)

const (
	us = 1e-6
	kB = 1e3
	MB = 1e6
	GB = 1e9
)

// paper is what the paper's evaluation has: 3 µs a hop, 450 GB/s a link.
func paper() pccl.Params { return pccl.Params{Alpha: 3 * us, Beta: 1.0 / 450e9} }

func greedy() pccl.Params {
	p := paper()
	p.Ties = pccl.Greedy
	return p
}

// split has n transmitters share a GPU's bandwidth.
func split(n int) pccl.Params {
	p := paper()
	p.Transmitters, p.Split = n, true
	return p
}

func get[T any](tb testing.TB) func(T, error) T {
	return func(v T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

func schedule(tb testing.TB, c pccl.Collective, a pccl.Algorithm, gpus int, bytes float64) pccl.Schedule {
	tb.Helper()
	return get[pccl.Schedule](tb)(pccl.New(c, a, gpus, bytes))
}

func topology(tb testing.TB, text string, gpus int) *pccl.Topology {
	tb.Helper()
	return get[*pccl.Topology](tb)(pccl.ParseTopology(text, gpus))
}

// problem is a reduce-scatter that starts on a ring.
func problem(tb testing.TB, a pccl.Algorithm, gpus int, bytes float64) pccl.Problem {
	tb.Helper()
	return pccl.Problem{
		Schedule: schedule(tb, pccl.ReduceScatter, a, gpus, bytes), Start: topology(tb, "ring", gpus), Params: paper(),
	}
}

func table(tb testing.TB, p pccl.Problem) *pccl.Table {
	tb.Helper()
	return get[*pccl.Table](tb)(pccl.NewTable(p))
}

// figure writes seconds as the specification does: microseconds with that many decimals.
func figure(seconds float64, decimals int) string { return fmt.Sprintf("%.*f", decimals, seconds*1e6) }

func wired(p pccl.Plan) string {
	var names []string
	for _, r := range p.Rounds {
		names = append(names, strings.Replace(r.Topology.Name(), "round ", "I", 1))
	}
	return strings.Join(names, " ")
}

// checkPlan is what holds for any plan.
func checkPlan(tb testing.TB, p pccl.Plan, start *pccl.Topology) {
	tb.Helper()
	var time float64
	changes, before := 0, start
	for i, r := range p.Rounds {
		time += r.Cost.Time
		if r.Changed != !r.Topology.Equal(before) {
			tb.Errorf("round %d: changed is %v, from %s to %s", i, r.Changed, before.Name(), r.Topology.Name())
		}
		if r.Changed {
			changes++
		}
		before = r.Topology
	}
	if changes != p.Changes {
		tb.Errorf("%d changes, of which %d can be seen", p.Changes, changes)
	}
	if got, want := p.Total, p.Alpha+p.Beta+p.Reconfiguration; !same(got, want) || !same(time, p.Alpha+p.Beta) {
		tb.Errorf("total %v, parts %v, rounds %v", got, want, time)
	}
	if !same(p.Reconfiguration, float64(p.Changes)*p.Switch) {
		tb.Errorf("reconfiguration %v: %d changes of %v", p.Reconfiguration, p.Changes, p.Switch)
	}
}

// same reports whether two costs are the same but for rounding.
func same(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// Sections 4.2 and 5 of the paper, and small cases worked out by hand.
func TestBest(t *testing.T) {
	for _, test := range []struct {
		name      string
		algorithm pccl.Algorithm
		gpus      int
		bytes     float64
		params    pccl.Params
		switchUS  float64
		total     string
		changes   int
		wired     string // empty: not told
		static    string // empty: not told
	}{
		{"N4", pccl.RHDHalving, 4, 1 * MB, paper(), 5, "11.7778", 0, "ring ring", "11.7778"},
		{"N4", pccl.RHDHalving, 4, 10 * MB, paper(), 5, "32.6667", 2, "I0 ring", "36.7778"},
		{"N4", pccl.RHDHalving, 4, 100 * MB, paper(), 5, "182.6667", 2, "I0 ring", "286.7778"},
		{"N4 greedy", pccl.RHDHalving, 4, 100 * MB, greedy(), 5, "175.6667", 0, "ring ring", "175.6667"},
		{"N4", pccl.RHDDoubling, 4, 10 * MB, paper(), 5, "27.6667", 1, "ring I1", ""},
		{"N8", pccl.RHDHalving, 8, 1 * MB, paper(), 5, "24.5000", 2, "I0 ring ring", "26.8333"},
		{"N8", pccl.RHDHalving, 8, 10 * MB, paper(), 5, "43.4444", 3, "I0 I1 ring", ""},
		{"N8", pccl.RHDHalving, 8, 100 * MB, paper(), 5, "218.4444", 3, "I0 I1 ring", "604.3333"},
		{"N8", pccl.RHDHalving, 8, 250 * MB, paper(), 5, "510.1111", 3, "", ""},
		{"N8", pccl.RHDDoubling, 8, 1 * MB, paper(), 5, "19.5000", 1, "ring ring I2", ""},
		{"N8", pccl.RHDDoubling, 8, 10 * MB, paper(), 5, "38.4444", 2, "", ""},
		{"N8", pccl.RHDDoubling, 8, 100 * MB, paper(), 5, "213.4444", 2, "", ""},
		{"figure 8", pccl.RHDHalving, 128, 256 * MB, paper(), 5, "620.4444", 7, "", "24652.1111"},
		{"figure 8, greedy", pccl.RHDHalving, 128, 256 * MB, greedy(), 5, "620.4444", 7, "", ""},
		{"figure 9", pccl.RHDHalving, 128, 1 * GB, paper(), 1000, "7474.1389", 4, "I0 I1 I2 ring ring ring ring", "95190.0278"},
		{"figure 9, greedy", pccl.RHDHalving, 128, 1 * GB, greedy(), 1000, "7474.1389", 4, "I0 I1 I2 ring ring ring ring", ""},
		{"25 ms", pccl.RHDHalving, 128, 1 * GB, paper(), 25e3, "75001.0278", 2, "", ""},
		{"200 ms", pccl.RHDHalving, 128, 1 * GB, paper(), 200e3, "95190.0278", 0, "", ""},
		{"doubling", pccl.RHDDoubling, 128, 256 * MB, paper(), 5, "", 6, "", ""},
		{"doubling", pccl.RHDDoubling, 128, 1 * GB, paper(), 1000, "", 3, "", ""},
		{"doubling, greedy", pccl.RHDDoubling, 128, 1 * GB, greedy(), 1000, "7603.2222", 0, "", "7603.2222"},
	} {
		t.Run(fmt.Sprintf("%s %s %g MB", test.name, test.algorithm, test.bytes/MB), func(t *testing.T) {
			p := problem(t, test.algorithm, test.gpus, test.bytes)
			p.Params = test.params
			all := table(t, p)
			plan := get[pccl.Plan](t)(all.Best(test.switchUS * us))
			checkPlan(t, plan, p.Start)
			if got := figure(plan.Total, 4); test.total != "" && got != test.total {
				t.Errorf("total %s, want %s", got, test.total)
			}
			if plan.Changes != test.changes {
				t.Errorf("%d changes, want %d: %s; total %s", plan.Changes, test.changes, wired(plan), figure(plan.Total, 4))
			}
			if got := wired(plan); test.wired != "" && got != test.wired {
				t.Errorf("wired %s, want %s", got, test.wired)
			}
			static := get[pccl.Plan](t)(all.Static())
			checkPlan(t, static, p.Start)
			if got := figure(static.Total, 4); test.static != "" && got != test.static {
				t.Errorf("static %s, want %s", got, test.static)
			}
		})
	}
}

// The cells of the cost tables of N = 4 and N = 8, on a ring and on each round's own topology.
func TestCost(t *testing.T) {
	for _, test := range []struct {
		gpus, round int
		bytes       float64
		ties        pccl.Ties
		on          string // "ring", or the round whose topology it is
		want        string // congestion, dilation, time
	}{
		{4, 0, 1 * MB, "", "ring", "2 2 8.2222"},
		{4, 0, 1 * MB, "", "0", "1 1 4.1111"},
		{4, 1, 1 * MB, "", "ring", "1 1 3.5556"},
		{4, 1, 1 * MB, "", "0", "0 0 +Inf"},
		{4, 1, 1 * MB, "", "1", "1 1 3.5556"},
		{4, 0, 10 * MB, "", "ring", "2 2 28.2222"},
		{4, 0, 10 * MB, "", "0", "1 1 14.1111"},
		{4, 1, 10 * MB, "", "ring", "1 1 8.5556"},
		{4, 0, 100 * MB, "", "ring", "2 2 228.2222"},
		{4, 0, 100 * MB, "", "0", "1 1 114.1111"},
		{4, 1, 100 * MB, "", "ring", "1 1 58.5556"},
		{4, 0, 100 * MB, pccl.Greedy, "ring", "1 2 117.1111"},
		{8, 0, 1 * MB, "", "ring", "4 4 16.4444"},
		{8, 1, 1 * MB, "", "ring", "2 2 7.1111"},
		{8, 2, 1 * MB, "", "ring", "1 1 3.2778"},
		{8, 0, 1 * MB, "", "0", "1 1 4.1111"},
		{8, 1, 1 * MB, "", "1", "1 1 3.5556"},
		{8, 2, 1 * MB, "", "2", "1 1 3.2778"},
	} {
		name := fmt.Sprintf("N%d round %d %g MB %s on %s", test.gpus, test.round, test.bytes/MB, test.ties, test.on)
		t.Run(name, func(t *testing.T) {
			s := schedule(t, pccl.ReduceScatter, pccl.RHDHalving, test.gpus, test.bytes)
			on := topology(t, "ring", test.gpus)
			if test.on != "ring" {
				on = get[*pccl.Topology](t)(pccl.Direct(test.gpus, "own", s.Rounds[test.on[0]-'0']))
			}
			p := paper()
			p.Ties = test.ties
			c := get[pccl.Cost](t)(p.Cost(on, s.Rounds[test.round]))
			got := fmt.Sprint(c.Congestion, c.Dilation, " ", figure(c.Time, 4))
			if got != test.want {
				t.Errorf("cost %s, want %s", got, test.want)
			}
		})
	}
}

// Table is what Cost says, cell by cell, also where no plan gets.
func TestTableCost(t *testing.T) {
	p := problem(t, pccl.RHDHalving, 16, 1*MB)
	p.Standard = []*pccl.Topology{topology(t, "grid 4x4", 16), topology(t, "ring", 16), topology(t, "torus 4x4", 16)}
	all := table(t, p)
	var names []string
	for c, x := range all.Candidates() {
		names = append(names, x.Name())
		for i, r := range p.Schedule.Rounds {
			want := get[pccl.Cost](t)(p.Params.Cost(x, r))
			if got := get[pccl.Cost](t)(all.Cost(i, c)); got != want {
				t.Errorf("round %d on %s: %v, want %v", i, x.Name(), got, want)
			}
		}
	}
	want := []string{"ring", "grid 4x4", "torus 4x4", "round 0", "round 1", "round 2", "round 3"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	for i := range p.Schedule.Rounds {
		if got := all.Own(i); got != 3+i {
			t.Errorf("own topology of round %d is candidate %d, want %d", i, got, 3+i)
		}
	}
	if all.Own(4) != -1 || all.Own(-1) != -1 {
		t.Error("a round that is not there has a topology of its own")
	}
	if _, err := all.Cost(4, 0); !errors.Is(err, pccl.ErrArgument) {
		t.Errorf("round 4: %v, want ErrArgument", err)
	}
}

// Also of cells that no plan gets to: a round before that whose topology it is.
func TestTableCostUnused(t *testing.T) {
	s := schedule(t, pccl.AllToAll, pccl.Linear, 7, 1*MB)
	p := pccl.Problem{Schedule: s, Start: topology(t, "ring", 7), Params: paper()}
	all := table(t, p)
	for i, r := range s.Rounds {
		for c, x := range all.Candidates() {
			want := get[pccl.Cost](t)(p.Params.Cost(x, r))
			if got := get[pccl.Cost](t)(all.Cost(i, c)); got != want || math.IsInf(got.Time, 1) {
				t.Errorf("round %d on %s: %v, want %v", i, x.Name(), got, want)
			}
		}
	}
}

// A thousand times slower hops and links, as in a demonstration with circuit switches: three classes of them, three plans.
func TestRegimes(t *testing.T) {
	p := problem(t, pccl.RHDHalving, 8, 100*MB)
	p.Params = pccl.Params{Alpha: 3e-3, Beta: 1 / 0.45e9}
	all := table(t, p)
	for ms, want := range map[float64]string{
		25: "I0 I1 ring 278.44", 100: "I0 ring ring 462.00", 200: "ring ring ring 604.33",
	} {
		plan := get[pccl.Plan](t)(all.Best(ms / 1e3))
		if got := fmt.Sprintf("%s %.2f", wired(plan), plan.Total*1e3); got != want {
			t.Errorf("%v ms: %s, want %s", ms, got, want)
		}
	}
}

func TestEnvelope(t *testing.T) {
	inf := math.Inf(1)
	for _, test := range []struct {
		gpus     int
		bytes    float64
		decimals int
		pieces   string    // changes:time
		breaks   []float64 // switching times in µs
		within   float64
	}{
		{4, 100 * MB, 4, "2:172.6667 0:286.7778", []float64{57.0556, inf}, 5e-5},
		{8, 1 * MB, 4, "3:10.9444 2:14.5000 0:26.8333", []float64{3.5556, 6.1667, inf}, 5e-5},
		{8, 100 * MB, 4, "3:203.4444 2:262.0000 0:604.3333", []float64{58.5556, 171.1667, inf}, 5e-5},
		{128, 1 * GB, 0, "", []float64{37.722, 217.333, 993.222, 4211.667, 17315.22, 35094.5, inf}, 6e-3},
		{128, 256 * MB, 0, "", []float64{11.889, 62.333, 269.889, 1111.667, 4501.889, 9054.5, inf}, 6e-4},
	} {
		t.Run(fmt.Sprintf("N%d %g MB", test.gpus, test.bytes/MB), func(t *testing.T) {
			p := problem(t, pccl.RHDHalving, test.gpus, test.bytes)
			pieces := get[[]pccl.Piece](t)(p.Envelope())
			if len(pieces) != len(test.breaks) {
				t.Fatalf("%d pieces, want %d", len(pieces), len(test.breaks))
			}
			var text []string
			changes := []int{}
			for i, x := range pieces {
				text = append(text, fmt.Sprintf("%d:%s", x.Changes, figure(x.Time, test.decimals)))
				changes = append(changes, x.Changes)
				checkPlan(t, x.Plan, p.Start)
				if got, want := x.To*1e6, test.breaks[i]; got != want && math.Abs(got-want) > test.within {
					t.Errorf("piece %d ends at %v µs, want %v", i, got, want)
				}
			}
			if got := strings.Join(text, " "); test.pieces != "" && got != test.pieces {
				t.Errorf("pieces %s, want %s", got, test.pieces)
			}
			if test.gpus == 128 && !slices.Equal(changes, []int{7, 6, 5, 4, 3, 2, 0}) {
				t.Errorf("changes %v", changes)
			}
		})
	}
}

// Where the plan for N = 8 at 5 µs changes as the buffer grows, on a grid of 10 kB.
func TestSizesOfChange(t *testing.T) {
	found := map[int]int{}
	for size := 10; size <= 5000; size += 10 { // kB
		plan := get[pccl.Plan](t)(problem(t, pccl.RHDHalving, 8, float64(size)*kB).Best(5 * us))
		if _, ok := found[plan.Changes]; !ok {
			found[plan.Changes] = size
		}
	}
	if diff := cmp.Diff(map[int]int{0: 10, 2: 310, 3: 3610}, found); diff != "" {
		t.Errorf("first size in kB by number of changes (-want +got):\n%s", diff)
	}
}

var lattices = []string{"ring", "torus 8x16", "torus 4x4x8", "grid 8x16", "grid 4x4x8"}

// The comparison of baselines, N = 128, 256 MB, 5 µs, with the ring by number, not laid along a cycle.
func TestBaselines(t *testing.T) {
	algorithms := []pccl.Algorithm{"ring", "bucket 8x16", "bucket 4x4x8", "rhd-halving", "swing 8x16", "swing 4x4x8"}
	for on, row := range map[string]string{
		"ring":        "620.4 (7) | 945.4 9042.1 15188.8 24652.1 6884.4 12091.4",
		"torus 8x16":  "620.4 (7) | 1890.9 630.4 2730.4 1937.1 645.0 2266.4",
		"torus 4x4x8": "620.4 (7) | 2836.3 1779.7 603.4 1021.2 1239.2 595.9",
		"grid 8x16":   "620.4 (7) | 9510.9 1386.4 2873.1 1937.1 905.7 2349.6",
		"grid 4x4x8":  "620.4 (7) | 6646.3 2589.4 765.4 1021.2 1327.1 698.6",
	} {
		var cells []string
		for _, a := range algorithms {
			p := problem(t, a, 128, 256*MB)
			p.Start = topology(t, on, 128)
			all := table(t, p)
			if a == pccl.RHDHalving {
				best := get[pccl.Plan](t)(all.Best(5 * us))
				cells = slices.Insert(cells, 0, fmt.Sprintf("%s (%d) |", figure(best.Total, 1), best.Changes))
			}
			cells = append(cells, figure(get[pccl.Plan](t)(all.Static()).Total, 1))
		}
		if got := strings.Join(cells, " "); got != row {
			t.Errorf("on %s:\n got %s\nwant %s", on, got, row)
		}
	}
	p := problem(t, pccl.RHDHalving, 128, 256*MB)
	p.Start, p.Params = topology(t, "torus 4x4x8", 128), greedy()
	if plan := get[pccl.Plan](t)(p.Best(5 * us)); figure(plan.Total, 1) != "606.4" || plan.Changes != 3 {
		t.Errorf("torus 4x4x8, greedy: %s with %d changes, want 606.4 with 3", figure(plan.Total, 1), plan.Changes)
	}
	// The paper's 4 changes at 1 GB and 1 ms do not come about if it may wire all five.
	for ties, want := range map[pccl.Ties]int{pccl.Lex: 2, pccl.Greedy: 1} {
		p := problem(t, pccl.RHDHalving, 128, 1*GB)
		p.Params.Ties = ties
		for _, l := range lattices {
			p.Standard = append(p.Standard, topology(t, l, 128))
		}
		if plan := get[pccl.Plan](t)(p.Best(1000 * us)); plan.Changes != want {
			t.Errorf("%s, with all lattices: %d changes, want %d", ties, plan.Changes, want)
		}
	}
}

// All-to-all of 32 MB at 5 µs: the time on the start alone, that of the plan, and the speed-up.
func TestAllToAll(t *testing.T) {
	for _, test := range []struct {
		gpus int
		on   string
		want string
	}{
		{128, "ring", "4896.56/299.89 = 16.33"},
		{128, "torus 8x16", "848.22/299.89 = 2.83"},
		{128, "torus 4x4x8", "501.22/299.89 = 1.67"},
		{128, "grid 8x16", "848.22/299.89 = 2.83"},
		{128, "grid 4x4x8", "501.22/299.89 = 1.67"},
		{64, "torus 4x4x4", "347.00/256.33 = 1.35"},
	} {
		s := schedule(t, pccl.AllToAll, pccl.Dex, test.gpus, 32*MB)
		all := table(t, pccl.Problem{Schedule: s, Start: topology(t, test.on, test.gpus), Params: paper()})
		static, best := get[pccl.Plan](t)(all.Static()), get[pccl.Plan](t)(all.Best(5*us))
		got := fmt.Sprintf("%s/%s = %.2f", figure(static.Total, 2), figure(best.Total, 2), static.Total/best.Total)
		if got != test.want {
			t.Errorf("%d GPUs, %s: %s, want %s", test.gpus, test.on, got, test.want)
		}
	}
}

// A path 0-2-1-3 and two rounds: wiring the second round's topology already for the first saves a change, which
// the paper's rule forbids.
func TestFree(t *testing.T) {
	duplex := func(pairs ...int) (all []pccl.Transfer) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, pccl.Transfer{Src: pairs[i], Dst: pairs[i+1]}, pccl.Transfer{Src: pairs[i+1], Dst: pairs[i]})
		}
		return all
	}
	start := get[*pccl.Topology](t)(pccl.NewTopology("path", 4, duplex(0, 2, 2, 1, 1, 3)))
	p := pccl.Problem{
		Schedule: pccl.Schedule{GPUs: 4, Bytes: 1 * MB, Rounds: []pccl.Round{
			{Transfers: duplex(0, 1), Bytes: 1 * MB}, {Transfers: duplex(0, 1, 2, 3), Bytes: 1 * MB},
		}},
		Start: start, Params: paper(),
	}
	for _, test := range []struct {
		free     bool
		switchUS float64
		want     string
	}{
		{false, 5, "18.444 path I1"}, {true, 5, "15.444 I1 I1"},
		{false, 100, "18.667 path path"}, {true, 100, "18.667 path path"},
	} {
		p.Free = test.free
		plan := get[pccl.Plan](t)(p.Best(test.switchUS * us))
		checkPlan(t, plan, start)
		if got := figure(plan.Total, 3) + " " + wired(plan); got != test.want {
			t.Errorf("free %v at %v µs: %s, want %s", test.free, test.switchUS, got, test.want)
		}
	}
}

func TestUnions(t *testing.T) {
	for _, test := range []struct {
		gpus, transmitters int
		bytes, switchUS    float64
		without, with      string
		decimals           int
	}{
		{8, 6, 1 * MB, 5, "25.889", "19.833", 3},
		{8, 6, 0.1 * MB, 5, "22.167", "14.583", 3},
		{128, 8, 0.1 * MB, 5, "54.233", "27.764", 3},
		{128, 8, 10 * MB, 1000, "2277.2", "1197.4", 1},
		{128, 8, 100 * MB, 1000, "4449.7", "2784.9", 1},
	} {
		p := problem(t, pccl.RHDHalving, test.gpus, test.bytes)
		p.Params = split(test.transmitters)
		without := get[pccl.Plan](t)(p.Best(test.switchUS * us))
		p.Unions = 16
		with := get[pccl.Plan](t)(p.Best(test.switchUS * us))
		checkPlan(t, with, p.Start)
		got := figure(without.Total, test.decimals) + " -> " + figure(with.Total, test.decimals)
		if want := test.without + " -> " + test.with; got != want {
			t.Errorf("N%d, %g MB, %v µs: %s, want %s", test.gpus, test.bytes/MB, test.switchUS, got, want)
		}
		if test.gpus == 8 && test.bytes == 1*MB && wired(with) != "rounds 0 to 2 rounds 0 to 2 rounds 0 to 2" {
			t.Errorf("wired %s, want the three rounds at once", wired(with))
		}
	}
	// Of no use to large buffers and fast switches.
	p := problem(t, pccl.RHDHalving, 8, 100*MB)
	p.Params = split(6)
	without := get[pccl.Plan](t)(p.Best(5 * us))
	p.Unions = 3
	if with := get[pccl.Plan](t)(p.Best(5 * us)); with.Total != without.Total {
		t.Errorf("100 MB at 5 µs: unions make %v of %v", with.Total, without.Total)
	}
	// No candidate has more circuits than there are transmitters.
	p.Params = split(2)
	for _, c := range table(t, p).Candidates() {
		if out, _ := c.Degree(); out > 2 {
			t.Errorf("%s has %d circuits at a GPU", c.Name(), out)
		}
	}
}

// A whole all-reduce saves the change in its middle.
func TestAllReduce(t *testing.T) {
	for _, test := range []struct {
		gpus            int
		bytes, switchUS float64
		want, twice     string
		changes         int
		decimals        int
	}{
		{8, 1 * MB, 5, "44.0", "49.0", 3, 1},
		{8, 10 * MB, 5, "81.889", "86.889", 5, 3},
		{128, 256 * MB, 5, "1235.889", "1240.889", 13, 3},
		{128, 1 * GB, 1000, "13948.278", "14948.278", 7, 3},
	} {
		p := problem(t, pccl.RHDHalving, test.gpus, test.bytes)
		half := get[pccl.Plan](t)(p.Best(test.switchUS * us))
		scatter := p.Schedule
		p.Schedule = schedule(t, pccl.AllReduce, pccl.RHDHalving, test.gpus, test.bytes)
		whole := get[pccl.Plan](t)(p.Best(test.switchUS * us))
		checkPlan(t, whole, p.Start)
		got := fmt.Sprint(figure(whole.Total, test.decimals), " ", figure(2*half.Total, test.decimals), " ", whole.Changes)
		if want := fmt.Sprint(test.want, " ", test.twice, " ", test.changes); got != want {
			t.Errorf("N%d, %g MB: %s, want %s", test.gpus, test.bytes/MB, got, want)
		}
		p.Schedule = get[pccl.Schedule](t)(pccl.Concat(scatter, scatter.Reverse()))
		if both := get[pccl.Plan](t)(p.Best(test.switchUS * us)); !same(both.Total, whole.Total) {
			t.Errorf("reduce-scatter and all-gather one after the other: %v, want %v", both.Total, whole.Total)
		}
	}
}

func TestPortfolio(t *testing.T) {
	best := func(on string, bytes, switchUS float64, params pccl.Params) (all, halving pccl.Alternative) {
		problems := get[[]pccl.Problem](t)(pccl.Portfolio(pccl.ReduceScatter, 128, bytes, topology(t, on, 128), nil, params))
		list := get[[]pccl.Alternative](t)(pccl.Choose(problems, switchUS*us))
		i := slices.IndexFunc(list, func(a pccl.Alternative) bool { return a.Schedule.Algorithm == pccl.RHDHalving })
		for k, a := range list {
			checkPlan(t, a.Plan, topology(t, on, 128))
			if a.Total > a.Static.Total || k > 0 && a.Total < list[k-1].Total*(1-1e-9) {
				t.Errorf("%s: %v, static %v", a.Schedule.Algorithm, a.Total, a.Static.Total)
			}
		}
		return list[0], list[i]
	}
	ring, halving := best("ring", 1*GB, 1000, paper())
	got := fmt.Sprintf("%s %s (%d), halving %s", ring.Schedule.Algorithm, figure(ring.Total, 1), ring.Changes,
		figure(halving.Total, 1))
	if got != "ring 2585.9 (0), halving 7474.1" {
		t.Errorf("1 GB at 1 ms: %s", got)
	}
	for _, test := range []struct {
		on              string
		bytes, switchUS float64
		low, high       string // the gain, by what is told of it
	}{
		{"ring", 1 * MB, 5, "1.17", "1.17"},
		{"torus 8x16", 1 * MB, 5, "1.43", "1.43"},
		{"torus 4x4x8", 1 * MB, 5, "1.52", "1.52"},
		{"ring", 256 * MB, 5, "1.01", "1.05"},
		{"torus 8x16", 256 * MB, 5, "1.01", "1.05"},
		{"torus 4x4x8", 256 * MB, 5, "1.02", "1.05"},
		{"ring", 1 * GB, 1000, "2.89", "2.89"},
	} {
		all, halving := best(test.on, test.bytes, test.switchUS, paper())
		gain := fmt.Sprintf("%.2f", halving.Total/all.Total)
		if gain < test.low || gain > test.high {
			t.Errorf("%s, %g MB at %v µs: %s is %s times better than halving, want %s to %s", test.on, test.bytes/MB,
				test.switchUS, all.Schedule.Algorithm, gain, test.low, test.high)
		}
	}
	for _, c := range []pccl.Collective{pccl.AllGather, pccl.AllReduce, pccl.AllToAll} {
		problems := get[[]pccl.Problem](t)(pccl.Portfolio(c, 8, 1*MB, topology(t, "ring", 8), nil, paper()))
		for _, p := range problems {
			if p.Schedule.Collective != c {
				t.Errorf("portfolio of %s has %s", c, p.Schedule.Collective)
			}
		}
		if len(problems) < 2 {
			t.Errorf("portfolio of %s has %d problems", c, len(problems))
		}
	}
}

// Of a torus and a grid the portfolio has the ring along a cycle, which is as fast there as on a ring, and the plain one.
func TestPortfolioEmbedsRing(t *testing.T) {
	for _, on := range []string{"torus 8x16", "grid 8x16", "grid 4x4x8"} {
		problems := get[[]pccl.Problem](t)(pccl.Portfolio(pccl.ReduceScatter, 128, 256*MB, topology(t, on, 128), nil, paper()))
		var rings []string
		for _, p := range problems {
			if strings.HasPrefix(string(p.Schedule.Algorithm), "ring") {
				static := get[pccl.Plan](t)(table(t, p).Static())
				rings = append(rings, fmt.Sprintf("%s: %s", p.Schedule.Algorithm, figure(static.Total, 1)))
			}
		}
		if want := fmt.Sprintf("ring on %s: 945.4", on); len(rings) != 2 || rings[1] != want {
			t.Errorf("rings on %s: %q, want the plain one and %q", on, rings, want)
		}
	}
	// Where the cycle is the plain ring there is one only.
	problems := get[[]pccl.Problem](t)(pccl.Portfolio(pccl.ReduceScatter, 8, 1*MB, topology(t, "ring", 8), nil, paper()))
	rings := 0
	for _, p := range problems {
		if strings.HasPrefix(string(p.Schedule.Algorithm), "ring") {
			rings++
		}
	}
	if rings != 1 {
		t.Errorf("on a ring: %d ring algorithms, want 1", rings)
	}
}

// Unions has just the runs of rounds that it may have.
func TestUnionCandidates(t *testing.T) {
	for unions, want := range map[int]string{
		0: "", 1: "", 2: "rounds 0 to 1, rounds 1 to 2", 3: "rounds 0 to 1, rounds 0 to 2, rounds 1 to 2",
	} {
		p := problem(t, pccl.RHDHalving, 8, 1*MB)
		p.Params, p.Unions = split(6), unions
		var names []string
		for _, c := range table(t, p).Candidates()[4:] {
			names = append(names, c.Name())
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("unions of %d: %s, want %s", unions, got, want)
		}
	}
}

// A table answers from several goroutines at once.
func TestConcurrent(t *testing.T) {
	all := table(t, problem(t, pccl.RHDHalving, 32, 10*MB))
	want := get[pccl.Plan](t)(table(t, problem(t, pccl.RHDHalving, 32, 10*MB)).Best(5 * us))
	var asked sync.WaitGroup
	for range 4 {
		asked.Go(func() {
			plan, err := all.Best(5 * us)
			if err != nil || plan.Total != want.Total {
				t.Errorf("best %v, %v, want %v", plan.Total, err, want.Total)
			}
			if _, err := all.Envelope(); err != nil {
				t.Error(err)
			}
			if _, _, err := all.Robust(0, 1); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
}
