package analysis_test

import (
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

const ms = int64(time.Millisecond)

func stageOf(t *testing.T, c analysis.Condition, stage timeline.Stage) analysis.Stage {
	t.Helper()
	for _, s := range c.Stages {
		if s.Stage == stage {
			return s
		}
	}
	t.Fatalf("condition %d has no %s", c.Number, stage)
	return analysis.Stage{}
}

func TestOf_Synthetic(t *testing.T) {
	r := analysistest.Synthetic(400, 8, 1)
	a := analysis.Of(r)
	if len(a.Conditions) != 2 {
		t.Fatalf("%d conditions", len(a.Conditions))
	}
	for i, c := range a.Conditions {
		if c.Points != 100 || c.Reconfigurations != 200 {
			t.Errorf("condition %d has %d points and %d reconfigurations, want 100 and 200", c.Number, c.Points, c.Reconfigurations)
		}
		near := func(what string, e timeline.Estimate, want time.Duration) {
			if e.HighNS < int64(want)-3*ms || e.LowNS > int64(want)+3*ms {
				t.Errorf("condition %d: %s is %v, want %v", c.Number, what, e, want)
			}
		}
		near("light", stageOf(t, c, timeline.Light).Median, analysistest.LightMedian)
		near("carrier-up", stageOf(t, c, timeline.CarrierUp).Median,
			[]time.Duration{analysistest.QuickCarrierMedian, analysistest.SlowCarrierMedian}[i])

		if len(c.NICs) != 8 || c.NICs[0].Name != "gpu1/ens1f0" || c.NICs[7].Name != "gpu8/ens1f0" {
			t.Errorf("NICs %v", c.NICs)
		}
		for _, n := range c.NICs {
			for _, stage := range []timeline.Stage{timeline.Dark, timeline.Light, timeline.TrafficLost, timeline.Traffic, timeline.CarrierDown, timeline.CarrierUp} {
				s := n.Stages[stage]
				if all := stageOf(t, c, stage); s.Count < 190 || s.Median.LowNS > all.Median.HighNS || s.Median.HighNS < all.Median.LowNS {
					t.Errorf("%s: %s %+v, of all %+v", n.Name, stage, s, all.Median)
				}
			}
		}
		// Each NIC has two neighbours, and hears each of them in every second reconfiguration.
		if len(c.Pairs) != 16 {
			t.Errorf("%d pairs, want 16", len(c.Pairs))
		}
		total := 0
		for _, p := range c.Pairs {
			total += p.Count
			if p.Stage != timeline.Traffic || p.Count < 90 || p.Count > 100 {
				t.Errorf("pair %+v", p)
			}
		}
		if want := stageOf(t, c, timeline.Traffic).Count; total != want {
			t.Errorf("pairs have %d durations, want %d", total, want)
		}
		checkOutliers(t, r, c)
	}

	for _, d := range a.Differences {
		later := d.Stage == timeline.CarrierUp || d.Stage == timeline.Traffic
		if d.Condition != 2 || d.Resolved != later {
			t.Errorf("difference %+v", d)
		}
		if truth := int64(analysistest.SlowCarrierMedian - analysistest.QuickCarrierMedian); d.Stage == timeline.CarrierUp && (d.Median.LowNS > truth || d.Median.HighNS < truth) {
			t.Errorf("carrier comes later by %v, want %v", d.Median, time.Duration(truth))
		}
	}
	if len(a.Differences) != 7 {
		t.Errorf("%d differences, want those of 7 stages", len(a.Differences))
	}
	var judged []string
	for _, v := range a.Verdicts {
		judged = append(judged, fmt.Sprintf("%d %s %s", v.Condition, v.Limit.Statistic, v.Judgement))
	}
	if d := cmp.Diff([]string{"1 carrier-up_p50 pass", "2 carrier-up_p50 fail", "1 missing fail", "2 missing fail"}, judged); d != "" || a.Verdict != analysis.Fail {
		t.Errorf("verdict %s (-want +got):\n%s", a.Verdict, d)
	}
	for _, b := range a.Background {
		want := 0
		if b.Stage == timeline.CarrierDown || b.Stage == timeline.CarrierUp {
			want = 1
		}
		if b.Nulls != 20 || b.Marked != want || b.Window != time.Second {
			t.Errorf("background %+v, want %d of 20", b, want)
		}
	}
	if len(a.Violations) != 0 || len(a.Conflicts) != 0 || len(a.Accuracy) != 8 {
		t.Errorf("%d violations, %d conflicts, accuracy of %d stages", len(a.Violations), len(a.Conflicts), len(a.Accuracy))
	}
	if d := cmp.Diff(a, analysis.Of(r)); d != "" {
		t.Errorf("not the same again:\n%s", d)
	}
}

// checkOutliers looks for all that is far out in the marks themselves: links that came up
// three seconds late, and the traffic that waited for them.
func checkOutliers(t *testing.T, r *runs.Run, c analysis.Condition) {
	t.Helper()
	recs := map[int]runs.Reconfiguration{}
	for _, rec := range r.Reconfigurations {
		recs[rec.Number] = rec
	}
	late := map[int]bool{}
	latest, slowest := int64(0), 0
	var began timeline.Interval
	for _, m := range r.Marks {
		rec := recs[m.Reconfiguration]
		if rec.Null || rec.Condition != c.Number {
			continue
		}
		if m.Stage == timeline.Command {
			began = m.Interval
		}
		since := m.Sub(began).Mid()
		if m.Stage == timeline.CarrierUp && since > stageOf(t, c, timeline.CarrierUp).Median.NS+2000*ms {
			late[m.Reconfiguration] = true
		}
		if m.Stage == timeline.Traffic && since > latest {
			latest, slowest = since, m.Reconfiguration
		}
	}
	if c.Slowest != slowest {
		t.Errorf("slowest is %d, want %d", c.Slowest, slowest)
	}
	if late[c.Typical] || c.Typical == 0 {
		t.Errorf("%d is typical, and late: %v", c.Typical, late[c.Typical])
	}
	if len(late) == 0 {
		t.Fatal("no link is late: this test shows nothing")
	}
	for number := range late {
		if !slices.ContainsFunc(c.Outliers, func(o analysis.Outlier) bool {
			return o.Reconfiguration == number && o.Stage == timeline.CarrierUp && o.Score > 5
		}) {
			t.Errorf("the late link of %d is no outlier", number)
		}
	}
	if c.OutlierCount < len(c.Outliers) || !slices.IsSortedFunc(c.Outliers, func(a, b analysis.Outlier) int {
		return stdcmp.Compare(b.Score, a.Score)
	}) {
		t.Errorf("%d outliers of %d", len(c.Outliers), c.OutlierCount)
	}
}

// bench makes small runs: one condition for each list, with a command and one carrier-up
// per reconfiguration and duration. A duration of never is expected and does not come.
func bench(conditions ...[]timeline.Interval) *runs.Run {
	r := &runs.Run{Plan: &plan.Plan{Seed: 1, Window: int64(time.Second)}, File: &plan.File{}, Done: map[int]bool{}}
	number := 0
	for i, durations := range conditions {
		label := fmt.Sprintf("n=%d", i+1)
		r.Plan.Conditions = append(r.Plan.Conditions, plan.Condition{Number: i + 1, Label: label, Parameters: map[string]string{"n": fmt.Sprint(i + 1)}})
		for _, d := range durations {
			number++
			start := int64(number) * 10_000 * ms
			r.Reconfigurations = append(r.Reconfigurations, runs.Reconfiguration{
				Number: number, Point: number, Condition: i + 1, Session: 1, MonoNS: start, PatienceNS: 30_000 * ms,
			})
			r.Marks = append(r.Marks, timeline.Mark{Stage: timeline.Command, Subject: "s", Interval: timeline.Point(start), Reconfiguration: number, Source: "driver"})
			r.Expected = append(r.Expected, timeline.Expectation{Reconfiguration: number, Stage: timeline.CarrierUp, Subject: "a/n"})
			if d.Latest != timeline.Never {
				r.Marks = append(r.Marks, timeline.Mark{Stage: timeline.CarrierUp, Subject: "a/n", Host: "a", Reconfiguration: number, Source: "counters",
					Interval: timeline.Between(start+d.Earliest, start+d.Latest)})
			}
		}
	}
	return r
}

// around draws n durations near a median, in ns, known to 100 µs.
func around(random *rand.Rand, n int, median, deviation float64) []timeline.Interval {
	var list []timeline.Interval
	for range n {
		at := int64(median + deviation*random.NormFloat64())
		list = append(list, timeline.Between(at, at+ms/10))
	}
	return list
}

var missed = timeline.Interval{Latest: timeline.Never}

// TestOf_Busy: no figure stands on what the machine was too busy for, and it is counted.
func TestOf_Busy(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 1)
	whole := analysis.Of(r)
	of := map[int]int{} // reconfigurations that are left out, by condition
	var want []analysis.Busy
	for i := range r.Reconfigurations {
		rec := &r.Reconfigurations[i]
		if i%5 != 0 {
			continue
		}
		rec.Busy = []string{"no processor"}
		want = append(want, analysis.Busy{Reconfiguration: rec.Number, Reasons: rec.Busy})
		if !rec.Null {
			of[rec.Condition]++
		}
		for j := range r.Marks { // would show in every figure
			if m := &r.Marks[j]; m.Reconfiguration == rec.Number && m.Stage != timeline.Command {
				m.Interval = m.Shift(int64(time.Hour), 0)
			}
		}
	}
	a := analysis.Of(r)
	if d := cmp.Diff(want, a.Busy); d != "" || a.Measured != len(r.Reconfigurations) {
		t.Errorf("busy of %d (-want +got):\n%s", a.Measured, d)
	}
	for i, c := range a.Conditions {
		if n := whole.Conditions[i].Reconfigurations - of[c.Number]; c.Reconfigurations != n || c.Report.Reconfigurations != n {
			t.Errorf("condition %d: %d and %d reconfigurations, want %d", c.Number, c.Reconfigurations, c.Report.Reconfigurations, n)
		}
		for _, s := range c.Stages {
			if s.Max.Latest > int64(time.Minute) {
				t.Errorf("condition %d: %s reaches up to %v", c.Number, s.Stage, s.Max)
			}
		}
	}
	for i, x := range a.Accuracy {
		if before := whole.Accuracy[i]; x.Count >= before.Count || x.ErrMaxNS > int64(time.Minute) {
			t.Errorf("accuracy: %+v, of all %+v", x, before)
		}
	}
}

func TestOf_Missing(t *testing.T) {
	at := around(rand.New(rand.NewPCG(1, 1)), 27, 3e9, 1e7)
	a := analysis.Of(bench(append(at, missed, missed, missed)))
	s := stageOf(t, a.Conditions[0], timeline.CarrierUp)
	if s.Count != 27 || s.Missing != 3 || s.Distribution.Count != 30 {
		t.Errorf("%d seen, %d missing, distribution of %d", s.Count, s.Missing, s.Distribution.Count)
	}
	last := s.Distribution.Steps[len(s.Distribution.Steps)-1]
	if last.Earliest != 30_000*ms+1 || last.Latest != timeline.Never || math.Abs(last.Mass-0.1) > 1e-4 {
		t.Errorf("the last step is %+v, want 10 %% later than 30 s", last)
	}
	n := a.Conditions[0].NICs[0].Stages[timeline.CarrierUp]
	if n.Count != 27 || n.Missing != 3 {
		t.Errorf("at the NIC: %+v", n)
	}
}

func TestOf_Verdicts(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	many := around(random, 200, 3e9, 1e8)
	lots := slices.Concat(many, around(random, 99, 3e9, 1e8))
	for _, tc := range []struct {
		limit     string
		durations []timeline.Interval
		want      analysis.Judgement
	}{
		{"carrier_p50 < 4s", many, analysis.Pass},
		{"carrier_p50 < 2s", many, analysis.Fail},
		{"carrier_p50 < 3s", many, analysis.Undecided},
		{"carrier_p50 > 2s", many, analysis.Pass},
		{"carrier_p50 >= 4s", many, analysis.Fail},
		{"carrier_p99 < 4s", lots, analysis.Pass},
		{"carrier_p99 < 4s", lots[:298], analysis.Undecided}, // the largest of 298 is no bound
		{"carrier_p99 < 2s", many[:5], analysis.Fail},        // the smallest of 5 is one
		{"carrier_p99 > 4s", many[:5], analysis.Undecided},
		{"carrier_p95 <= 4s", many[:58], analysis.Undecided},
		{"carrier_p95 <= 4s", many[:59], analysis.Pass},
		{"carrier_p50 < 4s", many[:5], analysis.Pass},
		{"carrier_p50 < 4s", many[:4], analysis.Undecided},
		{"carrier_p50 < 2s", many[:4], analysis.Undecided},
		{"carrier_p50 > 2s", many[:4], analysis.Undecided},
		// Of 1000, 45 never came and 30 came after 5 s: of all, more than 5 % are late, and of
		// those that came, 3 %.
		{"carrier_p95 < 4s", slices.Concat(around(random, 925, 3e9, 1e8), around(random, 30, 5e9, 1e7), slices.Repeat([]timeline.Interval{missed}, 45)), analysis.Fail},
		{"carrier_p95 < 3s", slices.Concat(many[:50], around(random, 46, 5e9, 1e7), slices.Repeat([]timeline.Interval{missed}, 4)), analysis.Fail},
		{"carrier_p95 > 20s", slices.Concat(many[:150], slices.Repeat([]timeline.Interval{missed}, 50)), analysis.Pass},
		{"carrier_p95 > 40s", slices.Concat(many[:150], slices.Repeat([]timeline.Interval{missed}, 50)), analysis.Undecided},
		{"carrier_max < 4s", many, analysis.Pass},
		{"carrier_max < 4s", append(slices.Clone(many), missed), analysis.Fail}, // not within 30 s
		{"carrier_max < 40s", append(slices.Clone(many), missed), analysis.Undecided},
		{"carrier_max > 20s", append(slices.Clone(many), missed), analysis.Pass},
		{"carrier_p50 < 4s", append(slices.Clone(many), missed), analysis.Pass}, // one does not matter here
		{"carrier_p50 < 4s", []timeline.Interval{missed, missed}, analysis.Fail},
		{"light_p50 < 4s", many, analysis.Undecided}, // nobody looked
		{"missing == 0", many, analysis.Pass},
		{"missing == 0", append(slices.Clone(many), missed), analysis.Fail},
		{"carrier_missing <= 1", append(slices.Clone(many), missed), analysis.Pass},
		{"carrier_missing <= 1", []timeline.Interval{missed, missed}, analysis.Fail},
		{"carrier_count >= 200", many, analysis.Pass},
		{"carrier_count > 0", []timeline.Interval{missed, missed}, analysis.Fail},
		{"carrier_share > 90%", many, analysis.Pass}, // the only stage
		{"command_count == 200", many, analysis.Pass},
		{"carrier_p50 < 4s where n=2", many, ""}, // no such condition: not judged, but not passed
	} {
		t.Run(tc.limit, func(t *testing.T) {
			var l plan.Limit
			if err := l.UnmarshalText([]byte(tc.limit)); err != nil {
				t.Fatal(err)
			}
			r := bench(tc.durations)
			r.File.Limits = []plan.Limit{l}
			a := analysis.Of(r)
			if tc.want == "" {
				if len(a.Verdicts) != 0 || a.Verdict != analysis.Undecided {
					t.Errorf("got %+v, %s", a.Verdicts, a.Verdict)
				}
				return
			}
			if len(a.Verdicts) != 1 || a.Verdicts[0].Judgement != tc.want || a.Verdict != tc.want {
				t.Fatalf("got %+v, want %s", a.Verdicts, tc.want)
			}
			if v := a.Verdicts[0]; v.Known && !(v.Low <= v.Value && v.Value <= v.High) {
				t.Errorf("%v is outside of %v and %v", v.Value, v.Low, v.High)
			}
		})
	}
}

// Between equals, a difference is hardly ever resolved; between different ones, always.
func TestOf_Differences(t *testing.T) {
	const trials = 60
	wrong, right := 0, 0
	for i := range uint64(trials) {
		random := rand.New(rand.NewPCG(i, 3))
		a := analysis.Of(bench(around(random, 30, 3e9, 5e7), around(random, 30, 3e9, 5e7), around(random, 30, 3.1e9, 5e7)))
		for _, d := range a.Differences {
			switch {
			case d.Resolved && d.Condition == 2:
				wrong++
			case d.Resolved && d.Condition == 3:
				right++
			}
		}
	}
	if wrong > 3 || right < trials*9/10 {
		t.Errorf("of %d, %d differences were resolved between equals and %d of 100 ms", trials, wrong, right)
	}
}

func TestOf_Drift(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	steady, warming := around(random, 300, 3e9, 1e7), around(random, 300, 3e9, 1e7)
	for i := range warming {
		shift := int64(i) * 50 * ms / 299
		warming[i] = timeline.Between(warming[i].Earliest+shift, warming[i].Latest+shift)
	}
	// Fewer than six show no drift, however steadily they grow.
	for n := range 6 {
		if d := stageOf(t, analysis.Of(bench([]timeline.Interval{timeline.Point(1), timeline.Point(2), timeline.Point(3), timeline.Point(4), timeline.Point(5), timeline.Point(6)}[:n+1])).Conditions[0], timeline.CarrierUp).Drift; d.NS != int64(n) || (d.LowNS <= 0) != (n < 5) {
			t.Errorf("drift of %d: %+v", n+1, d)
		}
	}
	a := analysis.Of(bench(steady, warming))
	if d := stageOf(t, a.Conditions[0], timeline.CarrierUp).Drift; d.LowNS > 0 || d.HighNS < 0 {
		t.Errorf("steady durations drift by %+v", d)
	}
	if d := stageOf(t, a.Conditions[1], timeline.CarrierUp).Drift; d.LowNS > 50*ms || d.HighNS < 50*ms || d.LowNS < 35*ms || d.HighNS > 65*ms {
		t.Errorf("a drift of 50 ms shows as %+v", d)
	}
}

func TestOf_Box(t *testing.T) {
	var xs []timeline.Interval
	for _, x := range []int64{10, 11, 12, 13, 14, 15, 16, 17, 30} {
		xs = append(xs, timeline.Point(x*ms))
	}
	box := stageOf(t, analysis.Of(bench(xs)).Conditions[0], timeline.CarrierUp).Box
	if want := (analysis.Box{Low: 10 * ms, Q1: 12 * ms, Median: 14 * ms, Q3: 16 * ms, High: 17 * ms}); box != want {
		t.Errorf("got %+v, want %+v", box, want)
	}
}

// The median of these is 55 ms, and half of them are within 25 ms of it.
func TestOf_OutlierScore(t *testing.T) {
	var xs []timeline.Interval
	for _, x := range []int64{10, 20, 30, 40, 50, 60, 70, 80, 90, 500} {
		xs = append(xs, timeline.Point(x*ms))
	}
	c := analysis.Of(bench(xs)).Conditions[0]
	if c.OutlierCount != 1 || c.Outliers[0].Reconfiguration != 10 || math.Abs(c.Outliers[0].Score-445/(1.4826*25)) > 1e-6 {
		t.Errorf("%d outliers: %+v", c.OutlierCount, c.Outliers)
	}
}

// Values of two kinds are no outliers, however few the second are of a tenth, and what lies
// far from both is one.
func TestOf_OutliersOfTwoKinds(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, tc := range []struct{ quick, slow, far, want int }{
		{50, 50, 1, 1}, {60, 40, 1, 1}, {80, 20, 1, 1}, {20, 80, 1, 1}, {98, 2, 0, 2}, {9, 1, 0, 1},
	} {
		far := slices.Repeat([]timeline.Interval{timeline.Point(29e9)}, tc.far)
		xs := slices.Concat(around(random, tc.quick, 3e9, 1e7), around(random, tc.slow, 6e9, 1e7), far)
		if c := analysis.Of(bench(xs)).Conditions[0]; c.OutlierCount != tc.want {
			t.Errorf("of %+v, %d are outliers", tc, c.OutlierCount)
		}
	}
}

// What may have come between two readings is missing, but not late.
func TestOf_Unresolved(t *testing.T) {
	r := bench(slices.Concat(around(rand.New(rand.NewPCG(8, 8)), 60, 3e9, 1e8), slices.Repeat([]timeline.Interval{missed}, 12)))
	for i := 60; i < 66; i++ {
		r.Reconfigurations[i].Unresolved = []string{"a/n: carrier-up: " + timeline.NoDark.String()}
	}
	s := stageOf(t, analysis.Of(r).Conditions[0], timeline.CarrierUp)
	if s.Count != 60 || s.Missing != 12 || s.Distribution.Count != 66 {
		t.Errorf("%d seen, %d missing, %d in the distribution; want 60, 12, 66", s.Count, s.Missing, s.Distribution.Count)
	}
	all := bench([]timeline.Interval{missed, missed})
	all.File.Limits = []plan.Limit{{Statistic: plan.Statistic{Stage: timeline.CarrierUp, Of: plan.P50}, Op: "<", Value: 4e9}}
	for i := range all.Reconfigurations {
		all.Reconfigurations[i].Unresolved = r.Reconfigurations[60].Unresolved
	}
	if v := analysis.Of(all).Verdict; v != analysis.Undecided {
		t.Errorf("of what nobody could see, the verdict is %s", v)
	}
	// 6 of 66 are later than 30 s: 9 %.
	p95, p50 := s.Counted[plan.P95], s.Counted[plan.P50]
	if p95.NS != 30_000*ms || p95.HighNS != timeline.Never || p50.HighNS > 4e9 || p50.NS <= s.Median.NS {
		t.Errorf("counted: %+v", s.Counted)
	}
}

// A NIC that never came has a place in the table, too.
func TestOf_DeadNIC(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 1)
	r.Marks = slices.DeleteFunc(r.Marks, func(m timeline.Mark) bool {
		return m.Subject == "gpu2/ens1f0" || strings.HasSuffix(m.Subject, ">gpu2/ens1f0") || m.Subject == "rail0/6"
	})
	a := analysis.Of(r)
	for _, c := range a.Conditions {
		if n := c.NICs[1]; n.Name != "gpu2/ens1f0" || len(n.Stages) != 0 || n.Unseen[timeline.Light] != 20 {
			t.Errorf("got %+v", n)
		}
	}
	text, err := json.Marshal(a)
	if want := `{"kind":"nic-summary","condition":1,"nic":"gpu2/ens1f0","stage":"light","count":0,"missing":20}`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v: no line %s", err, want)
	}
}

// Nothing is missing of what is not expected, also if nothing is.
func TestOf_NothingExpected(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 1)
	r.File.Measure.Stages = []timeline.Stage{timeline.Ack}
	for i := range r.Marks {
		if m := &r.Marks[i]; m.Stage == timeline.Ack && m.Reconfiguration%2 == 0 {
			m.Subject = "rail1"
		}
	}
	for _, c := range analysis.Of(r).Conditions {
		if s := stageOf(t, c, timeline.Ack); s.Missing != 0 {
			t.Errorf("%d acknowledgements are missing", s.Missing)
		}
	}
}

// A limit at the very quantile is kept by chance only: in no more than about 5 % of cases.
func TestOf_VerdictsByChance(t *testing.T) {
	for _, tc := range []struct {
		limit string
		n     int
	}{{"carrier_p50 < 693147180ns", 5}, {"carrier_p95 < 2995732274ns", 20}, {"carrier_p95 < 2995732274ns", 60}, {"carrier_p95 < 2995732274ns", 150}} {
		var l plan.Limit
		if err := l.UnmarshalText([]byte(tc.limit)); err != nil {
			t.Fatal(err)
		}
		const trials = 120
		passed := 0
		for i := range uint64(trials) {
			random := rand.New(rand.NewPCG(i, 9))
			var xs []timeline.Interval
			for range tc.n {
				xs = append(xs, timeline.Point(int64(random.ExpFloat64()*1e9)))
			}
			r := bench(xs)
			r.File.Limits = []plan.Limit{l}
			if analysis.Of(r).Verdict == analysis.Pass {
				passed++
			}
		}
		t.Logf("%s of %d values passes in %.1f %%", tc.limit, tc.n, 100*float64(passed)/trials)
		if passed > trials*8/100 {
			t.Errorf("%s of %d values passes in %d of %d", tc.limit, tc.n, passed, trials)
		}
	}
}

// Null toggles: of ten, one shows a carrier. Clopper and Pearson's bounds for 1 of 10 are
// in every table: 0.0025 and 0.4450.
func TestOf_Background(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	r := bench(around(random, 40, 3e9, 1e8))
	for i := range 10 {
		n := 1000 + i
		r.Reconfigurations = append(r.Reconfigurations, runs.Reconfiguration{Number: n, Point: n, Condition: 1, Null: true})
		if i == 4 {
			r.Marks = append(r.Marks, timeline.Mark{Stage: timeline.CarrierUp, Subject: "a/n", Reconfiguration: n})
		}
	}
	a := analysis.Of(r)
	if len(a.Background) != 1 {
		t.Fatalf("got %+v", a.Background)
	}
	b := a.Background[0]
	if b.Nulls != 10 || b.Marked != 1 || math.Abs(b.Low-0.0025) > 5e-5 || math.Abs(b.High-0.4450) > 5e-5 {
		t.Errorf("got %+v", b)
	}
	// 40 reconfigurations of 3 s are 120 windows; one in ten windows with at least one mark
	// is -ln 0.9 marks a window.
	s := stageOf(t, a.Conditions[0], timeline.CarrierUp)
	if s.Spurious == nil || math.Abs(s.Spurious.Expected+120*math.Log(0.9)) > 1 || s.Spurious.High != 40 {
		t.Errorf("spurious %+v", s.Spurious)
	}
	if s.Count != 40 {
		t.Errorf("marks of null toggles count: %d", s.Count)
	}
}

func TestOneKind(t *testing.T) {
	mark := func(stage timeline.Stage, subject, source string) timeline.Mark {
		return timeline.Mark{Stage: stage, Subject: subject, Source: source}
	}
	expect := func(stage timeline.Stage, subject string) timeline.Expectation {
		return timeline.Expectation{Stage: stage, Subject: subject}
	}
	opm, module, carrier := mark(timeline.Light, "rail0/33", "opm"), mark(timeline.Light, "gpu1/n", "module"), mark(timeline.CarrierUp, "gpu1/n", "counters")
	expected := []timeline.Expectation{expect(timeline.Light, "rail0/33"), expect(timeline.Light, "gpu1/n"), expect(timeline.CarrierUp, "gpu1/n")}

	marks, left := analysis.OneKind([]timeline.Mark{opm, module, carrier}, expected)
	if d := cmp.Diff([]timeline.Mark{opm, carrier}, marks); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]timeline.Expectation{expected[0], expected[2]}, left); d != "" {
		t.Error(d)
	}
	marks, left = analysis.OneKind([]timeline.Mark{module, carrier}, expected)
	if len(marks) != 2 || len(left) != 3 {
		t.Errorf("without monitors: %d marks, %d expected", len(marks), len(left))
	}
}

// Of a NIC whose module was read, light is what the module says, and of the others what
// the switch says.
func TestOf_Modules(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 2)
	for _, m := range slices.Clone(r.Marks) {
		if m.Stage == timeline.Light && m.Subject == "rail0/5" {
			m.Subject, m.Host, m.Source, m.Interval = "gpu1/ens1f0", "gpu1", "module", timeline.Between(m.Earliest+500*ms, m.Latest+500*ms)
			at := slices.IndexFunc(r.Marks, func(x timeline.Mark) bool { return x.Reconfiguration == m.Reconfiguration })
			r.Marks = slices.Insert(r.Marks, at+1, m)
		}
	}
	c := analysis.Of(r).Conditions[0]
	if s := stageOf(t, c, timeline.Light); s.Count != 80 || s.Max.Latest > 500*ms {
		t.Errorf("light of all: %d, until %v", s.Count, s.Max)
	}
	if m := c.NICs[0].Stages[timeline.Light].Median; m.NS < 600*ms {
		t.Errorf("light of gpu1: %+v, want what its module says", m)
	}
	if m := c.NICs[1].Stages[timeline.Light].Median; m.NS > 300*ms {
		t.Errorf("light of gpu2: %+v, want what the switch says", m)
	}
}

// Of a circuit, the last stage tells that was seen of it; without the lab, its ports.
func TestOf_Pairs(t *testing.T) {
	for _, tc := range []struct {
		stages []timeline.Stage
		noLab  bool
		want   timeline.Stage
		first  string
	}{
		{nil, false, timeline.Traffic, "gpu1/ens1f0>gpu2/ens1f0"},
		{[]timeline.Stage{timeline.Light, timeline.CarrierUp}, false, timeline.CarrierUp, "gpu1/ens1f0>gpu2/ens1f0"},
		{[]timeline.Stage{timeline.Light}, false, timeline.Light, "gpu1/ens1f0>gpu2/ens1f0"},
		{nil, true, timeline.Light, "rail0/1>rail0/6"},
	} {
		r := analysistest.Synthetic(80, 4, 3)
		r.File.Measure.Stages = tc.stages
		if tc.noLab {
			r.Lab = nil
		}
		c := analysis.Of(r).Conditions[0]
		want, seen := stageOf(t, c, tc.want), 0
		for _, p := range c.Pairs {
			seen += p.Count
			if p.Stage != tc.want || p.Median.Mid() < want.Min.Earliest || p.Median.Mid() > want.Max.Latest {
				t.Errorf("want %s, got %+v", tc.want, p)
			}
		}
		if len(c.Pairs) != 8 || seen != want.Count {
			t.Fatalf("%s: %d pairs with %d durations, want 8 with %d", tc.want, len(c.Pairs), seen, want.Count)
		}
		if first := c.Pairs[0].From + ">" + c.Pairs[0].To; first != tc.first {
			t.Errorf("%s: the first pair is %s, want %s", tc.want, first, tc.first)
		}
	}
}

func TestOf_OnlyMeasuredStages(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 2)
	r.File.Measure.Stages = []timeline.Stage{timeline.Traffic, timeline.Light}
	for _, c := range analysis.Of(r).Conditions {
		if len(c.Stages) != 2 || len(c.Report.Stages) != 2 || c.Stages[1].Stage != timeline.Traffic || len(c.Report.Unseen) != 0 {
			t.Errorf("stages %v, unseen %v", c.Report.Stages, c.Report.Unseen)
		}
	}
}

// Whatever is in a run, the analysis comes to an end, says what JSON can say, and leaves
// the run as it was.
func TestOf_Anything(t *testing.T) {
	if a := analysis.Of(&runs.Run{}); a.Verdict != "" || len(a.Lines()) != 0 {
		t.Errorf("of nothing: %+v", a)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := analysistest.Synthetic(8, 4, rapid.Uint64().Draw(t, "seed"))
		at := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "at") }
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			switch rapid.IntRange(0, 7).Draw(t, "kind") {
			case 0:
				r.Marks = slices.Delete(r.Marks, 0, at(len(r.Marks)))
			case 1:
				r.Marks[at(len(r.Marks))].Interval = timeline.Between(rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b"))
			case 2:
				r.Marks[at(len(r.Marks))].Reconfiguration = rapid.IntRange(0, 20).Draw(t, "reconfiguration")
			case 3:
				r.Reconfigurations[at(len(r.Reconfigurations))].Condition = rapid.IntRange(-1, 4).Draw(t, "condition")
			case 4:
				r.Lab = []byte("switches: [")
			case 5:
				r.Expected = nil
			case 6:
				r.Marks[at(len(r.Marks))].Stage = rapid.SampledFrom([]timeline.Stage{"", "unheard-of", timeline.Command}).Draw(t, "stage")
			case 7:
				r.Plan.Window = 0
			}
			if len(r.Marks) == 0 {
				break
			}
		}
		before := slices.Clone(r.Marks)
		a := analysis.Of(r)
		if !slices.Equal(before, r.Marks) {
			t.Fatal("the run was changed")
		}
		if _, err := json.Marshal(a); err != nil {
			t.Fatal(err)
		}
		for _, c := range a.Conditions {
			for _, s := range c.Stages {
				if s.Floor < s.AA || s.Floor < s.Resolution || s.Drift.LowNS > s.Drift.NS || s.Drift.NS > s.Drift.HighNS {
					t.Fatalf("%+v", s)
				}
			}
		}
	})
}

func TestEnough(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	durations := around(random, 400, 3e9, 1e8) // the median of n is known to about 0.25/sqrt(n) s
	carrier := plan.Statistic{Stage: timeline.CarrierUp, Of: plan.P50}
	for _, tc := range []struct {
		name string
		stop plan.Stop
		n    int
		want bool
	}{
		{"Part", plan.Stop{When: carrier, Within: plan.Tolerance{Part: 0.01}}, 400, true},
		{"PartTooFew", plan.Stop{When: carrier, Within: plan.Tolerance{Part: 0.01}}, 20, false},
		{"Time", plan.Stop{When: carrier, Within: plan.Tolerance{Time: 20 * time.Millisecond}}, 400, true},
		{"TimeTooFew", plan.Stop{When: carrier, Within: plan.Tolerance{Time: 20 * time.Millisecond}}, 40, false},
		{"One", plan.Stop{When: carrier, Within: plan.Tolerance{Part: 1}}, 1, false},
		{"None", plan.Stop{When: carrier, Within: plan.Tolerance{Part: 1}}, 0, false},
		{"NotSeen", plan.Stop{When: plan.Statistic{Stage: timeline.Light, Of: plan.P50}, Within: plan.Tolerance{Part: 1}}, 400, false},
		{"FewForP99", plan.Stop{When: plan.Statistic{Stage: timeline.CarrierUp, Of: plan.P99}, Within: plan.Tolerance{Part: 1}}, 298, false},
		{"EnoughForP99", plan.Stop{When: plan.Statistic{Stage: timeline.CarrierUp, Of: plan.P99}, Within: plan.Tolerance{Part: 1}}, 299, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := analysis.Enough(tc.stop, bench(durations[:tc.n]).Marks, 1); got != tc.want {
				t.Errorf("Enough = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	a := analysistest.Synthetic(120, 4, 1)
	same := analysis.Compare(a, a)
	if len(same.Setup) != 0 || len(same.OnlyA) != 0 || len(same.OnlyB) != 0 || len(same.Differences) != 14 {
		t.Errorf("a run differs from itself: %+v", same)
	}
	for _, d := range same.Differences {
		if d.Resolved || d.Median.NS != 0 || d.Median.LowNS > 0 || d.Median.HighNS < 0 {
			t.Errorf("a run differs from itself: %+v", d)
		}
	}

	b := analysistest.Synthetic(120, 4, 2)
	b.Setups[0].Devices[0].Firmware = "6.7.0.1"
	b.Plan.Conditions[1].Label = "firmware=other"
	for i := range b.Marks {
		if m := &b.Marks[i]; m.Stage == timeline.Traffic {
			m.Interval = m.Shift(300*ms, 0)
		}
	}
	c := analysis.Compare(a, b)
	if d := cmp.Diff([]analysis.SetupDifference{{What: "rail0: firmware", A: "6.6.2.12", B: "6.6.2.12, 6.7.0.1"}}, c.Setup); d != "" {
		t.Error(d)
	}
	if !slices.Equal(c.OnlyA, []string{"firmware=" + analysistest.Slow}) || !slices.Equal(c.OnlyB, []string{"firmware=other"}) {
		t.Errorf("only in a: %v, only in b: %v", c.OnlyA, c.OnlyB)
	}
	for _, d := range c.Differences {
		if d.Resolved != (d.Stage == timeline.Traffic) {
			t.Errorf("%+v", d)
		}
	}
	for _, l := range c.Lines() {
		if _, err := json.Marshal(l); err != nil {
			t.Error(err)
		}
	}
}

// Keys of lines are what scripts rely on.
func TestLines_Keys(t *testing.T) {
	keys := map[string]string{}
	for _, l := range analysis.Of(analysistest.Synthetic(400, 4, 1)).Lines() {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(strings.NewReader(string(text)))
		var names []string
		var kind string
		depth := 0
		for isKey := false; ; {
			token, err := d.Token()
			if err != nil {
				break
			}
			if delim, ok := token.(json.Delim); ok {
				depth += map[json.Delim]int{'{': 1, '}': -1}[delim]
				isKey = true
				continue
			}
			if depth == 1 && isKey {
				names = append(names, token.(string))
			} else if kind == "" {
				kind, _ = token.(string)
			}
			isKey = !isKey
		}
		if list := strings.Join(names, " "); len(list) > len(keys[kind]) {
			keys[kind] = list
		}
	}
	const quantiles = "median_ns median_low_ns median_high_ns p95_ns p95_low_ns p95_high_ns p99_ns p99_low_ns p99_high_ns resolution_ns"
	want := map[string]string{
		"condition":     "kind condition label points reconfigurations orphans total_ns total_low_ns total_high_ns typical slowest outliers held",
		"stage-summary": "kind condition label stage count missing " + quantiles + " step_ns share min_ns q1_ns q3_ns max_ns aa_ns floor_ns drift_ns drift_low_ns drift_high_ns spurious spurious_high",
		"nic-summary":   "kind condition nic stage count missing " + quantiles,
		"pair":          "kind condition from to stage count earliest_ns latest_ns",
		"outlier":       "kind condition reconfiguration stage subject earliest_ns latest_ns score",
		"background":    "kind stage nulls marked low high window_ns",
		"difference":    "kind condition stage difference_ns low_ns high_ns resolved",
		"verdict":       "kind limit condition label judgement known unit value low high",
		"accuracy":      "kind stage count inside unmatched err_p50_ns err_p95_ns err_max_ns width_p50_ns",
	}
	if d := cmp.Diff(want, keys); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func BenchmarkOf10kx16x6(b *testing.B) {
	r := analysistest.Synthetic(10_000, 16, 1)
	b.ReportAllocs()
	for b.Loop() {
		analysis.Of(r)
	}
}

// A duration may be as long as 64 bits of nanoseconds are; what is made of such must not
// come out on the other side of zero.
func TestFarApart(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64
	for _, values := range [][]int64{{0, most}, {0, most - 1, most}, {least, most}, {least, 0, most}, {most, least}, {most, most}} {
		d := analysis.TheilSen(values)
		if grows, first, last := d.NS > 0, values[0], values[len(values)-1]; grows != (last > first) || d.LowNS > d.NS || d.NS > d.HighNS {
			t.Errorf("%d drift by %+v", values, d)
		}
	}
	for q, want := range map[float64]int64{0: least, 0.25: least / 2, 0.5: 0, 0.75: most/2 + 1, 1: most} {
		if got := analysis.Quantile([]int64{least, most}, q); got != want {
			t.Errorf("quantile %v of the widest is %d, want %d", q, got, want)
		}
	}
}
