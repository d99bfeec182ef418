package faults_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/topology/infinitehbd/faults"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: got %.6g, want %.6g ± %.2g", what, got, want, within)
	}
}

// published is the sample of the paper's trace, of 400 servers.
func published(t testing.TB) *faults.Trace {
	path := os.Getenv("OCSLAB_INFINITEHBD_TRACE")
	if path == "" {
		t.Skip("OCSLAB_INFINITEHBD_TRACE names no file: want fault_trace.json of github.com/stepfun-ai/InfiniteHBD-Trace")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := faults.Parse(f, path)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

const (
	sampleServers = 400
	nodes         = 2448 // 9792 GPUs, 17 of NVL-576
)

func TestPublished(t *testing.T) {
	trace := published(t)
	if len(trace.Faults) != 584 || len(trace.Unmatched) != 0 {
		t.Errorf("%d faults, %v", len(trace.Faults), trace.Unmatched)
	}
	near(t, "first event", trace.Start, 3.8955, 1e-9)
	near(t, "last event", trace.End, 348.98, 1e-3)
	s, err := trace.Stats(sampleServers)
	if err != nil {
		t.Fatal(err)
	}
	if s.Failing != 231 {
		t.Errorf("%d servers fail", s.Failing)
	}
	near(t, "mean", s.Mean, 0.0231, 2e-4)
	near(t, "median", s.P50, 0.0175, 1e-9)
	near(t, "p99", s.P99, 0.0775, 1e-9)
	near(t, "mean repair", s.RepairMean, 5.54, 0.005)
	near(t, "median repair", s.RepairP50, 0.85, 0.001)
	near(t, "p99 repair", s.RepairP99, 85, 0.1)
}

// TestGenerated is how near the generator is to the sample.
func TestGenerated(t *testing.T) {
	const servers = 20_000
	trace, err := faults.Generate(faults.GenerateOptions{Servers: servers, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := trace.Stats(servers)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", s.Mean, 0.0231, 0.002)
	near(t, "mean repair", s.RepairMean, 5.54, 0.4)
	near(t, "median repair", s.RepairP50, 0.85, 0.05)
	near(t, "share that fails at all", float64(s.Failing)/servers, 231.0/400, 0.02)
	perServer := map[int]int{}
	for _, f := range trace.Faults {
		perServer[f.Server]++
	}
	ones := 0
	for _, n := range perServer {
		if n == 1 {
			ones++
		}
	}
	near(t, "share that fails once", float64(ones)/servers, 96.0/400, 0.02)
	again, _ := faults.Generate(faults.GenerateOptions{Servers: servers, Seed: 1})
	if !slices.Equal(again.Faults, trace.Faults) {
		t.Error("the same seed gives another trace")
	}
}

// mean simulates with several placements of the servers, and returns the mean waste.
func mean(t testing.TB, trace *faults.Trace, stride int, tps ...int) func(name string, tp int) float64 {
	order, err := infinitehbd.Deploy(nodes, stride)
	if err != nil {
		t.Fatal(err)
	}
	const placements = 8
	sums := map[string]map[int]float64{}
	for seed := range uint64(placements) {
		r, err := faults.Simulate(trace, faults.Cluster{Nodes: nodes, Order: order}, faults.Architectures(), tps,
			faults.Options{Step: 1, Servers: sampleServers, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			if sums[row.Name] == nil {
				sums[row.Name] = map[int]float64{}
			}
			sums[row.Name][row.TP] += row.Mean / placements
		}
	}
	return func(name string, tp int) float64 { return sums[name][tp] }
}

// TestSimulate_Published is figures 9 and 17 of the paper on the sample. Where servers stand is drawn, which is what the
// tolerances are for.
func TestSimulate_Published(t *testing.T) {
	trace := published(t)
	got := mean(t, trace, 4, 8, 16, 32, 64)
	for _, x := range []struct {
		name   string
		want   [4]float64 // percent
		within [4]float64
	}{
		{"InfiniteHBD K=3", [4]float64{.022, .062, .150, .329}, [4]float64{.005, .01, .02, .06}},
		{"InfiniteHBD K=2", [4]float64{.029, .075, .19, .43}, [4]float64{.01, .02, .03, .08}},
		{"NVL-36", [4]float64{10.5, 11.0, 12.1, 98.8}, [4]float64{.2, .2, .5, .2}},
		{"NVL-72", [4]float64{.53, 10.0, 10.2, 10.5}, [4]float64{.1, .3, .3, .5}},
		{"NVL-576", [4]float64{.27, .98, 2.8, 6.8}, [4]float64{.05, .15, .5, 1.2}},
		{"TPUv4, SiP-Ring", [4]float64{.59, 2.4, 5.85, 12.4}, [4]float64{.1, .3, .6, 1.5}},
	} {
		for i, tp := range []int{8, 16, 32, 64} {
			near(t, x.name, 100*got(x.name, tp), x.want[i], x.within[i])
		}
	}
	if near := got("InfiniteHBD K=2", 32) - got("InfiniteHBD K=3", 32); near > 0.001 {
		t.Errorf("two bundles waste %.3f %% more than three where neighbours are in different servers", 100*near)
	}
	beside := mean(t, trace, 1, 32)
	if got := beside("InfiniteHBD K=2", 32); got < 0.008 || got > 0.015 {
		t.Errorf("where the halves of a server are neighbours, two bundles waste %.2f %%: want about 1.2", 100*got)
	}
}

// TestSimulate_Waiting: a job of 9216 GPUs, and the GPUs that there are for 99 % of the time: which servers stand where
// matters much to the worst days.
func TestSimulate_Waiting(t *testing.T) {
	order, err := infinitehbd.Deploy(nodes, 4)
	if err != nil {
		t.Fatal(err)
	}
	r, err := faults.Simulate(published(t), faults.Cluster{Nodes: nodes, Order: order}, faults.Architectures(), []int{32},
		faults.Options{Step: 1, Servers: sampleServers})
	if err != nil {
		t.Fatal(err)
	}
	if w := r.Row("InfiniteHBD K=3", 32).Waiting(9216); w != 0 {
		t.Errorf("K=3 waits %g", w)
	}
	if w := r.Row("NVL-72", 32).Waiting(9216); w != 1 {
		t.Errorf("NVL-72 waits %g", w)
	}
	near(t, "K=3, usable", r.Row("InfiniteHBD K=3", 32).Usable, 9661, 30)
	near(t, "NVL-72, usable", r.Row("NVL-72", 32).Usable, 8678, 30)
	near(t, "NVL-576, usable", r.Row("NVL-576", 32).Usable, 9403, 80)
	near(t, "TPUv4, usable", r.Row("TPUv4, SiP-Ring", 32).Usable, 9112, 120)
	near(t, "K=3, usable for 99 %", float64(r.Row("InfiniteHBD K=3", 32).UsableP1), 9536, 150)
	near(t, "TPUv4, usable for 99 %", float64(r.Row("TPUv4, SiP-Ring", 32).UsableP1), 8352, 700)
	near(t, "NVL-576, waiting", r.Row("NVL-576", 32).Waiting(9216), 0.003, 0.02)
	near(t, "TPUv4, waiting", r.Row("TPUv4, SiP-Ring", 32).Waiting(9216), 0.56, 0.2)
}

// counted is the rule of each architecture said in the simplest way.
func counted(a faults.Architecture, dead []bool, order []infinitehbd.Node, gpus, tp int) (usable int) {
	units := func(nodes int) {
		for i := 0; i+nodes <= len(dead); i += nodes {
			n := 0
			for _, d := range dead[i : i+nodes] {
				if !d {
					n += gpus
				}
			}
			usable += n / tp * tp
		}
	}
	switch a.Rule {
	case faults.BigSwitch:
		for _, d := range dead {
			if !d {
				usable += gpus
			}
		}
		usable = usable / tp * tp
	case faults.Unit:
		units(a.Size / gpus)
	case faults.Static:
		units(tp / gpus)
	case faults.Bypass:
		var text strings.Builder
		for _, n := range order {
			text.WriteByte(map[bool]byte{true: '.', false: 'x'}[dead[n-1]])
		}
		for piece := range strings.SplitSeq(text.String(), strings.Repeat(".", a.Size)) {
			usable += strings.Count(piece, "x") * gpus / tp * tp
		}
	}
	return usable
}

// TestSimulate_Counts compares the counts of one moment with rules said simply.
func TestSimulate_Counts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 2 * rapid.IntRange(1, 60).Draw(t, "servers")
		dead := make([]bool, n)
		trace := &faults.Trace{Start: 0, End: 2}
		for i := range dead {
			trace.Names = append(trace.Names, string(rune('a'+i)))
			if dead[i] = rapid.IntRange(0, 3).Draw(t, "dead") == 0; dead[i] {
				trace.Faults = append(trace.Faults, faults.Fault{Server: i, Start: 0, End: 2})
			}
		}
		c := faults.Cluster{Nodes: n, GPUs: 4, PerServer: 1}
		for _, i := range rapid.Permutation(iota(n)).Draw(t, "order") {
			c.Order = append(c.Order, infinitehbd.Node(i+1))
		}
		archs := append(faults.Architectures(), faults.Architecture{Name: "K=1", Rule: faults.Bypass, Size: 1})
		tps := []int{4, 8, 16, 32}
		r, err := faults.Simulate(trace, c, archs, tps, faults.Options{Half: 1, Placed: true})
		if err != nil {
			t.Fatal(err)
		}
		alive := 0
		for _, d := range dead {
			if !d {
				alive += 4
			}
		}
		for i, row := range r.Rows {
			want := counted(archs[i/len(tps)], dead, c.Order, 4, row.TP)
			if got := int(math.Round(row.Usable)); got != want {
				t.Fatalf("%s TP-%d: %d can be used, want %d", row.Name, row.TP, got, want)
			}
			if waste := float64(alive-want) / float64(4*n); math.Abs(row.Mean-waste) > 1e-12 {
				t.Fatalf("%s TP-%d: waste %g, want %g", row.Name, row.TP, row.Mean, waste)
			}
		}
	})
}

func iota(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestEvents(t *testing.T) {
	trace := &faults.Trace{Names: []string{"a", "b"}, Start: 1, End: 11, Faults: []faults.Fault{
		{Server: 0, Start: 2, End: 4}, {Server: 0, Start: 3, End: 6}, {Server: 1, Start: 5, End: 5}, {Server: 0, Start: 6, End: 7}}}
	c := faults.Cluster{Nodes: 2, PerServer: 1}
	all, err := faults.Events(trace, c, faults.Options{Placed: true})
	if err != nil || !slices.Equal(all, []faults.Event{{1, 1, true}, {6, 1, false}}) {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := faults.Events(trace, c, faults.Options{Half: 7}); !errors.Is(err, faults.ErrArgument) {
		t.Error(err)
	}
}

// drawTrace draws faults of which some follow each other, or last for no time.
func drawTrace(t *rapid.T) *faults.Trace {
	trace := &faults.Trace{Start: float64(rapid.IntRange(-3, 3).Draw(t, "start"))}
	trace.End = trace.Start + 16
	for i := range rapid.IntRange(1, 4).Draw(t, "servers") {
		trace.Names = append(trace.Names, fmt.Sprint(i))
	}
	for range rapid.IntRange(0, 12).Draw(t, "faults") {
		start := rapid.IntRange(0, 16).Draw(t, "from")
		end := rapid.IntRange(start, 16).Draw(t, "to")
		trace.Faults = append(trace.Faults, faults.Fault{Server: rapid.IntRange(0, len(trace.Names)-1).Draw(t, "server"),
			Start: trace.Start + float64(start), End: trace.Start + float64(end)})
	}
	return trace
}

// TestEvents_Simulate: what Events says is down is what Simulate cannot use, at every moment and over all the time.
func TestEvents_Simulate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t)
		c := faults.Cluster{PerServer: rapid.IntRange(1, 2).Draw(t, "nodes of a server")}
		c.Nodes = c.PerServer * rapid.IntRange(1, 9).Draw(t, "servers of the cluster")
		opt := faults.Options{Seed: rapid.Uint64().Draw(t, "seed"), Step: rapid.SampledFrom([]float64{0, 1, 2.5}).Draw(t, "step"),
			Shift: rapid.SampledFrom([]float64{0, 0.25, 0.75}).Draw(t, "shift"), Half: rapid.SampledFrom([]float64{0, 1}).Draw(t, "half"),
			Servers: len(trace.Names) + rapid.IntRange(0, 2).Draw(t, "servers that never fail")}
		events, err := faults.Events(trace, c, opt)
		if err != nil {
			t.Fatal(err)
		}
		r, err := faults.Simulate(trace, c, faults.Architectures()[:1], []int{4}, opt)
		if err != nil {
			t.Fatal(err)
		}
		down := map[infinitehbd.Node]bool{}
		dead, most, next := 0.0, 0, 0
		for i, at := range r.Times {
			for ; next < len(events) && events[next].At <= at-trace.Start; next++ {
				e := events[next]
				if down[e.Node] == e.Down {
					t.Fatalf("%+v, and it was so", e)
				}
				if delete(down, e.Node); e.Down {
					down[e.Node] = true
				}
			}
			weight := 1 / float64(len(r.Times))
			if opt.Step == 0 {
				weight = (append(r.Times, trace.End)[i+1] - at) / (trace.End - trace.Start)
			}
			dead += weight * float64(len(down)) / float64(c.Nodes)
			most = max(most, len(down))
		}
		if math.Abs(dead-r.Dead) > 1e-9 || math.Abs(float64(most)/float64(c.Nodes)-r.DeadMax) > 1e-12 {
			t.Fatalf("%g and %d of %d nodes by %+v, and %g and %g of them", dead, most, c.Nodes, events, r.Dead, r.DeadMax)
		}
	})
}

// TestSimulate_Place: the rings of Bypass are those that the planner places, but that it ends a group at a node between
// two others as far away as the reach, if that is odd.
func TestSimulate_Place(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t)
		c := faults.Cluster{Nodes: 2 * rapid.IntRange(1, 20).Draw(t, "servers")}
		hops, m := rapid.IntRange(1, 4).Draw(t, "K"), rapid.IntRange(1, 4).Draw(t, "m")
		line := infinitehbd.Line{}
		var err error
		if line.Layout, err = infinitehbd.NewLayout(4, hops); err != nil {
			t.Fatal(err)
		}
		if line.Order, err = infinitehbd.Deploy(c.Nodes, rapid.SampledFrom([]int{1, 2}).Draw(t, "stride")); err != nil {
			t.Fatal(err)
		}
		c.Order = line.Order
		trace.Faults = slices.DeleteFunc(trace.Faults, func(f faults.Fault) bool { return f.Start == f.End })
		for i := range trace.Faults { // all at once
			trace.Faults[i].Start, trace.Faults[i].End = trace.Start, trace.End
		}
		events, err := faults.Events(trace, c, faults.Options{Half: 0.6})
		if err != nil {
			t.Fatal(err)
		}
		var dead []infinitehbd.Node
		for _, e := range events {
			if e.Down {
				dead = append(dead, e.Node)
			}
		}
		archs := []faults.Architecture{{Rule: faults.Bypass, Size: hops}}
		r, err := faults.Simulate(trace, c, archs, []int{4 * m}, faults.Options{Half: 0.6})
		if err != nil {
			t.Fatal(err)
		}
		groups, err := line.Place(m, dead)
		if err != nil {
			t.Fatal(err)
		}
		got, want := int(math.Round(r.Rows[0].Usable)), 4*m*len(groups)
		if got < want || got > want && (hops%2 == 0 || hops == 1) {
			t.Fatalf("K=%d, %v dead: %d GPUs in rings of %d nodes, and the planner has %d", hops, dead, got, m, want)
		}
	})
}

func TestSimulate_Shift(t *testing.T) {
	trace := &faults.Trace{Names: []string{"a"}, End: 10, Faults: []faults.Fault{{Server: 0, Start: 6, End: 9}}}
	r, err := faults.Simulate(trace, faults.Cluster{Nodes: 2, PerServer: 1}, faults.Architectures()[:1], []int{4},
		faults.Options{Shift: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	// Down from 6 to 9, and from 8.5 to 10 and on to 1.5 on the other.
	near(t, "dead", r.Dead, 0.3, 1e-12)
	near(t, "both at once", r.Row("Big-Switch", 4).Waiting(4), 0.05, 1e-12)
	near(t, "any", r.Row("Big-Switch", 4).Waiting(8), 0.55, 1e-12)
}

func TestSimulate_Errors(t *testing.T) {
	trace := &faults.Trace{Names: []string{"a"}, End: 10}
	archs, tps := faults.Architectures(), []int{8}
	for name, x := range map[string]struct {
		c     faults.Cluster
		archs []faults.Architecture
		tps   []int
		opt   faults.Options
	}{
		"no nodes":    {faults.Cluster{}, archs, tps, faults.Options{}},
		"half server": {faults.Cluster{Nodes: 3}, archs, tps, faults.Options{}},
		"servers":     {faults.Cluster{Nodes: 2}, archs, tps, faults.Options{Servers: -1}},
		"step":        {faults.Cluster{Nodes: 2}, archs, tps, faults.Options{Step: math.NaN()}},
		"tiny step":   {faults.Cluster{Nodes: 2}, archs, tps, faults.Options{Step: 1e-12}},
		"no end":      {faults.Cluster{Nodes: 2}, archs, tps, faults.Options{Step: math.Inf(1)}},
		"many":        {faults.Cluster{Nodes: 2}, archs, tps, faults.Options{Servers: math.MaxInt}},
		"no rule":     {faults.Cluster{Nodes: 2}, []faults.Architecture{{Rule: 9}}, tps, faults.Options{}},
		"huge":        {faults.Cluster{Nodes: math.MaxInt}, archs, tps, faults.Options{}},
		"half":        {faults.Cluster{Nodes: 2}, archs, tps, faults.Options{Half: 2}},
		"shift":       {faults.Cluster{Nodes: 2}, archs, tps, faults.Options{Shift: 1}},
		"TP":          {faults.Cluster{Nodes: 2}, archs, []int{6}, faults.Options{}},
		"no TP":       {faults.Cluster{Nodes: 2}, archs, nil, faults.Options{}},
		"reach":       {faults.Cluster{Nodes: 2}, []faults.Architecture{{Rule: faults.Bypass}}, tps, faults.Options{}},
		"unit":        {faults.Cluster{Nodes: 2}, []faults.Architecture{{Rule: faults.Unit, Size: 37}}, tps, faults.Options{}},
		"order":       {faults.Cluster{Nodes: 2, Order: []infinitehbd.Node{1, 1}}, archs, tps, faults.Options{}},
		"short order": {faults.Cluster{Nodes: 2, Order: []infinitehbd.Node{1}}, archs, tps, faults.Options{}},
	} {
		if _, err := faults.Simulate(trace, x.c, x.archs, x.tps, x.opt); !errors.Is(err, faults.ErrArgument) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSimulate_Trace(t *testing.T) {
	fault := func(server int, start, end float64) []faults.Fault {
		return []faults.Fault{{Server: server, Start: start, End: end}}
	}
	for says, trace := range map[string]*faults.Trace{
		"from day 3 to day 3":          {Names: []string{"a"}, Start: 3, End: 3},
		"from day 0 to day NaN":        {Names: []string{"a"}, End: math.NaN()},
		"from day -Inf to day 1":       {Names: []string{"a"}, Start: math.Inf(-1), End: 1},
		"of 0 servers":                 {End: 1},
		"fault 1 is of server 1":       {Names: []string{"a"}, End: 9, Faults: fault(1, 2, 3)},
		"fault 1 is of server -1":      {Names: []string{"a"}, End: 9, Faults: fault(-1, 2, 3)},
		"fault 1 lasts from day 3 to":  {Names: []string{"a"}, End: 9, Faults: fault(0, 3, 2)},
		"fault 1 lasts from day 2 to":  {Names: []string{"a"}, End: 9, Faults: fault(0, 2, 10)},
		"fault 1 lasts from day NaN":   {Names: []string{"a"}, End: 9, Faults: fault(0, math.NaN(), 2)},
		"copies of 3 faults":           {Names: []string{"a"}, End: 9, Faults: slices.Repeat(fault(0, 1, 2), 3)},
		"1.05e+06 samples of 7 archit": {Names: []string{"a"}, End: 1 << 20},
	} {
		c, opt := faults.Cluster{Nodes: 2}, faults.Options{Step: 1}
		if strings.Contains(says, "copies") {
			says, c = "4194304 copies of 3 faults", faults.Cluster{Nodes: 1 << 22, PerServer: 1}
		}
		_, err := faults.Simulate(trace, c, faults.Architectures(), []int{8, 16, 32}, opt)
		if !errors.Is(err, faults.ErrArgument) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: want %q", err, says)
		}
	}
}

func TestGenerate_Errors(t *testing.T) {
	for _, o := range []faults.GenerateOptions{{Servers: -1}, {Days: math.NaN()}, {Days: math.Inf(1)}, {PerYear: -1},
		{Servers: 100_000, Days: 100_000, PerYear: 1000}} {
		if _, err := faults.Generate(o); !errors.Is(err, faults.ErrArgument) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

const good = `[
 {"node_id": "a", "event_time": 1, "event_type": "fault_start", "fault_type": {"Level": "Hardware Failure", "Class": "GPU", "Desc": "x"}},
 {"node_id": "b", "event_time": 1.5, "event_type": "fault_start", "fault_type": {"Level": "l", "Class": "NIC", "Desc": "y"}},
 {"node_id": "a", "event_time": 2, "event_type": "fault_start", "fault_type": {"Level": "l", "Class": "NIC", "Desc": "y"}},
 {"node_id": "a", "event_time": 3, "event_type": "fault_end", "fault_type": {"Level": "l", "Class": "NIC", "Desc": "y"}},
 {"node_id": "a", "event_time": 4, "event_type": "fault_end", "fault_type": {"Level": "Hardware Failure", "Class": "GPU", "Desc": "x"}},
 {"node_id": "c", "event_time": 5, "event_type": "fault_end", "fault_type": {"Level": "l", "Class": "NIC", "Desc": "y"}}
]`

func TestParse(t *testing.T) {
	trace, err := faults.Parse(strings.NewReader(good), "good")
	if err != nil {
		t.Fatal(err)
	}
	want := []faults.Fault{
		{0, 1, 4, faults.Kind{"Hardware Failure", "GPU", "x"}},
		{1, 1.5, 5, faults.Kind{"l", "NIC", "y"}}, // does not end
		{0, 2, 3, faults.Kind{"l", "NIC", "y"}},
	}
	if !slices.Equal(trace.Faults, want) {
		t.Errorf("got %+v", trace.Faults)
	}
	var said []string
	for _, u := range trace.Unmatched {
		said = append(said, u.String())
	}
	if !slices.Equal(said, []string{"event 2: server b fails on day 1.50 and does not recover",
		"event 6: server c recovers on day 5.00 from no fault"}) {
		t.Errorf("got %q", said)
	}
	if _, err := trace.Stats(2); !errors.Is(err, faults.ErrArgument) {
		t.Errorf("too few servers: %v", err)
	}
}

func TestParse_Errors(t *testing.T) {
	many := "[" + strings.Repeat(`{"node_id": "a", "event_time": 1, "event_type": "fault_start"},`, 1025) + "]"
	for text, want := range map[string]string{
		"":    "must be a JSON list",
		"{}":  "must be a JSON list",
		"[]":  "no events",
		`[1]`: "event 1",
		`[{"event_time": 1, "event_type": "fault_start"}]`:                 "event 1: it has no node_id",
		`[{"node_id": "a", "event_type": "fault_start"}]`:                  "event 1: it has no event_time",
		`[{"node_id": "a", "event_time": 1, "event_type": "start"}]`:       `event_type "start": want`,
		`[{"node_id": "a", "event_time": 1e9, "event_type": "fault_end"}]`: "event_time 1e9: want",
		`[{"node_id": "a", "event_time": "x", "event_type": "fault_end"}]`: "event 1",
		strings.Replace(good, `"event_time": 2`, `"event_time": 0.5`, 1):   "event 3: event_time 0.5 comes after 1.5",
		`[null]`: "event 1: null: want an object",
		`[{"node_id": 1, "event_time": 1, "event_type": "fault_end"}]`:                               "node_id 1: want",
		`[{"node_id": "", "event_time": 1, "event_type": "fault_end"}]`:                              `node_id "": want`,
		`[{"node_id": "a", "event_time": null, "event_type": "fault_end"}]`:                          "event_time null: want",
		`[{"node_id": "a", "event_time": 1e400, "event_type": "fault_end"}]`:                         "event_time 1e400: want",
		`[{"node_id": "a", "event_time": NaN, "event_type": "fault_end"}]`:                           "event 1: invalid character",
		`[{"node_id": "a", "node_id": "b", "event_time": 1, "event_type": "fault_end"}]`:             `it has "node_id" twice`,
		`[{"node_id": "a", "event_time": 1, "event_type": "fault_end", "fault_type": 7}]`:            "fault_type: 7: want an object",
		`[{"node_id": "a", "event_time": 1, "event_type": "fault_end", "fault_type": {"Class": 7}}]`: "Class 7: want a text",
		many:               "event 1025: server \"a\" has 1024 faults",
		good + "x":         "behind the list",
		good[:len(good)-2]: "does not end",
	} {
		_, err := faults.Parse(strings.NewReader(text), "trace.json")
		if !errors.Is(err, faults.ErrTrace) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "trace.json") {
			t.Errorf("%.60q: got %v, want %q", text, err, want)
		}
	}
}

// lines writes faults without the numbers of the servers, in an order of their own.
func lines(t *faults.Trace) []string {
	var all []string
	for _, f := range t.Faults {
		all = append(all, fmt.Sprintf("%q %v %v %q", t.Names[f.Server], f.Start, f.End, f.Kind))
	}
	slices.Sort(all)
	return all
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`[{"node_id":"a","event_time":0,"event_type":"fault_end","fault_type":null}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := faults.Parse(bytes.NewReader(data), "fuzz")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := trace.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		if len(trace.Faults) == 0 {
			return
		}
		again, err := faults.Parse(&b, "again")
		if err != nil {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		if len(again.Unmatched) > 0 || !slices.Equal(lines(again), lines(trace)) {
			t.Fatalf("%q became %q, unmatched %v", lines(trace), lines(again), again.Unmatched)
		}
	})
}

// BenchmarkSimulate is 349 days of 2448 nodes, all architectures and sizes, looked at once a day and at every change.
func BenchmarkSimulate(b *testing.B) {
	trace, err := faults.Generate(faults.GenerateOptions{Servers: nodes / 2})
	if err != nil {
		b.Fatal(err)
	}
	order, err := infinitehbd.Deploy(nodes, 4)
	if err != nil {
		b.Fatal(err)
	}
	for name, step := range map[string]float64{"daily": 1, "changes": 0} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := faults.Simulate(trace, faults.Cluster{Nodes: nodes, Order: order}, faults.Architectures(),
					[]int{8, 16, 32, 64}, faults.Options{Step: step}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
