package faults_test

import (
	"bytes"
	"errors"
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

// TestSimulate_Waiting: a job of 9216 GPUs.
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
	all, err := faults.Events(trace, faults.Cluster{Nodes: 2, PerServer: 1}, faults.Options{Half: 1, Placed: true})
	if err != nil || !slices.Equal(all, []faults.Event{{1, 1, true}, {6, 1, false}}) {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := faults.Events(trace, faults.Cluster{Nodes: 2, PerServer: 1}, faults.Options{Half: 7}); !errors.Is(err, faults.ErrArgument) {
		t.Error(err)
	}
}

func TestSimulate_Shift(t *testing.T) {
	trace := &faults.Trace{Names: []string{"a"}, Start: 0, End: 10, Faults: []faults.Fault{{Server: 0, Start: 6, End: 9}}}
	r, err := faults.Simulate(trace, faults.Cluster{Nodes: 2, PerServer: 1}, faults.Architectures()[:1], []int{4}, faults.Options{Half: 1, Shift: 0.25})
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
	if !slices.Equal(said, []string{"event 2: server b fails on day 1.50 and does not recover", "event 6: server c recovers on day 5.00 from no fault"}) {
		t.Errorf("got %q", said)
	}
	if _, err := trace.Stats(2); !errors.Is(err, faults.ErrArgument) {
		t.Errorf("too few servers: %v", err)
	}
}

func TestParse_Errors(t *testing.T) {
	for text, want := range map[string]string{
		"":    "must be a JSON list",
		"{}":  "must be a JSON list",
		"[]":  "no events",
		`[1]`: "event 1",
		`[{"event_time": 1, "event_type": "fault_start"}]`:                 "event 1: it has no node_id",
		`[{"node_id": "a", "event_type": "fault_start"}]`:                  "event 1: it has no event_time",
		`[{"node_id": "a", "event_time": 1, "event_type": "start"}]`:       `event_type "start"`,
		`[{"node_id": "a", "event_time": 1e9, "event_type": "fault_end"}]`: "event_time 1e+09",
		`[{"node_id": "a", "event_time": "x", "event_type": "fault_end"}]`: "event 1",
		strings.Replace(good, `"event_time": 2`, `"event_time": 0.5`, 1):   "event 3: event_time 0.5 comes after 1.5",
		good + "x":         "behind the list",
		good[:len(good)-2]: "does not end",
	} {
		_, err := faults.Parse(strings.NewReader(text), "trace.json")
		if !errors.Is(err, faults.ErrTrace) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "trace.json") {
			t.Errorf("%.60q: got %v, want %q", text, err, want)
		}
	}
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
		if len(again.Faults) != len(trace.Faults) || len(again.Unmatched) > 0 {
			t.Fatalf("%d faults became %d, unmatched %v", len(trace.Faults), len(again.Faults), again.Unmatched)
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
				if _, err := faults.Simulate(trace, faults.Cluster{Nodes: nodes, Order: order}, faults.Architectures(), []int{8, 16, 32, 64}, faults.Options{Step: step}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
