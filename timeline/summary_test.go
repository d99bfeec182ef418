package timeline_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

const ms = int64(time.Millisecond)

func mark(reconfiguration int, stage timeline.Stage, subject string, at timeline.Interval) timeline.Mark {
	return timeline.Mark{Stage: stage, Subject: subject, Interval: at, Reconfiguration: reconfiguration}
}

func TestSummarize(t *testing.T) {
	p := timeline.Point
	marks := []timeline.Mark{
		mark(0, timeline.CarrierUp, "a", p(1)), // before the first: no orphan
		mark(9, timeline.CarrierUp, "a", p(1)), // an orphan
		mark(9, timeline.CarrierUp, "b", p(1)),

		// The first of two commands counts; the last carrier-up; the first carrier-down.
		mark(1, timeline.Command, "rail1", timeline.Between(1000*ms, 1001*ms)),
		mark(1, timeline.Command, "rail0", p(1500*ms)),
		mark(1, timeline.Ack, "rail0", p(1011*ms)),
		mark(1, timeline.CarrierDown, "a", p(1200*ms)),
		mark(1, timeline.CarrierDown, "a", p(1100*ms)),
		mark(1, timeline.CarrierUp, "a", p(2000*ms)),
		mark(1, timeline.CarrierUp, "a", p(3000*ms)),
		mark(1, timeline.CarrierUp, "b", timeline.Between(3000*ms, 3100*ms)),

		mark(2, timeline.Command, "rail0", p(5000*ms)),
		mark(2, timeline.Ack, "rail0", p(5010*ms)),
		mark(2, timeline.CarrierDown, "a", p(5100*ms)),
		mark(2, timeline.CarrierUp, "a", p(7000*ms)),
	}
	got := timeline.Summarize(marks, timeline.Options{})
	if got.Reconfigurations != 2 || got.Orphans != 2 {
		t.Errorf("%d reconfigurations, %d orphans, want 2 and 2", got.Reconfigurations, got.Orphans)
	}
	type row struct {
		Stage          timeline.Stage
		Count, Missing int
		Median         int64
		Resolution     time.Duration
		Step           time.Duration
	}
	var rows []row
	for _, s := range got.Stages {
		rows = append(rows, row{s.Stage, s.Count, s.Missing, s.Median.NS, s.Resolution, s.Step})
	}
	const down, up = 99_750_000, 1_999_500_000
	want := []row{
		{timeline.Ack, 2, 0, 10_250_000, 500 * time.Microsecond, 10_250_000},
		{timeline.CarrierDown, 2, 0, down, 500 * time.Microsecond, down - 10_250_000},
		// 1999..2000, 1999..2100, 2000..2000: of the lower and of the upper ends the
		// medians are 1999 and 2000.
		{timeline.CarrierUp, 3, 1, up, time.Millisecond, up - down},
	}
	if d := gocmp.Diff(want, rows); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got.Total != got.Stages[2].Median {
		t.Errorf("Total = %+v, want %+v", got.Total, got.Stages[2].Median)
	}
}

// With nothing to resample the bounds are the ends of the durations.
func TestSummarize_OneReconfiguration(t *testing.T) {
	got := timeline.Summarize([]timeline.Mark{
		mark(1, timeline.Command, "s", timeline.Point(0)),
		mark(1, timeline.Light, "a", timeline.Between(10, 30)),
		mark(1, timeline.Light, "b", timeline.Between(20, 40)),
	}, timeline.Options{}).Stages[0]
	if want := (timeline.Estimate{NS: 25, LowNS: 10, HighNS: 40}); got.Median != want {
		t.Errorf("Median = %+v, want %+v", got.Median, want)
	}
	if got.Share != 1 || got.Step != 25 {
		t.Errorf("Share, Step = %v, %v, want 1, 25", got.Share, got.Step)
	}
}

// A stage in one of many reconfigurations, and a resample that misses a stage.
func TestSummarize_RareStage(t *testing.T) {
	var marks []timeline.Mark
	for r := 1; r <= 40; r++ {
		marks = append(marks, mark(r, timeline.Command, "s", timeline.Point(0)))
	}
	marks = append(marks,
		mark(1, timeline.Dark, "a", timeline.Between(5, 7)),
		mark(1, timeline.Light, "a", timeline.Point(10)), mark(2, timeline.Light, "a", timeline.Point(20)))
	for seed := range uint64(20) {
		got := timeline.Summarize(marks, timeline.Options{Resamples: 1, Seed: seed})
		if want := (timeline.Estimate{NS: 6, LowNS: 5, HighNS: 7}); got.Stages[0].Median != want {
			t.Fatalf("dark: %+v, want %+v", got.Stages[0].Median, want)
		}
		m := got.Stages[1].Median
		if m.NS != 15 || m.LowNS < 10 || m.LowNS > 15 || m.HighNS < 15 || m.HighNS > 20 {
			t.Fatalf("light: %+v", m)
		}
	}
}

func TestSummarize_TotalBeforeCommand(t *testing.T) {
	got := timeline.Summarize([]timeline.Mark{
		mark(1, timeline.Command, "s", timeline.Point(100)),
		mark(1, timeline.TrafficLost, "a", timeline.Point(90)),
	}, timeline.Options{})
	if s := got.Stages[0]; s.Median.NS != -10 || s.Step != 0 || s.Share != 0 {
		t.Errorf("got %+v", s)
	}
}

// anyRun draws what an experiment may leave: every stage may miss or repeat.
var anyRun = rapid.Custom(func(t *rapid.T) []timeline.Mark {
	var marks []timeline.Mark
	for r := range rapid.IntRange(0, 6).Draw(t, "reconfigurations") {
		start := rapid.Int64Range(-1000, 1000).Draw(t, "start")
		if rapid.IntRange(0, 9).Draw(t, "command") > 0 {
			marks = append(marks, mark(r, timeline.Command, "s", timeline.Between(start, start+3)))
		}
		for range rapid.IntRange(0, 8).Draw(t, "marks") {
			at := start + rapid.Int64Range(-20, 200).Draw(t, "after")
			marks = append(marks, mark(r,
				rapid.SampledFrom(timeline.Stages()[1:]).Draw(t, "stage"),
				rapid.SampledFrom([]string{"a", "b"}).Draw(t, "subject"),
				timeline.Between(at, at+rapid.Int64Range(0, 30).Draw(t, "width"))))
		}
	}
	return marks
})

func TestSummarize_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks := anyRun.Draw(t, "marks")
		if rapid.IntRange(0, 3).Draw(t, "wild") == 0 {
			for i := range marks {
				marks[i].Interval = anyInterval.Draw(t, "interval")
			}
		}
		opt := timeline.Options{Resamples: 20, Seed: rapid.Uint64().Draw(t, "seed")}
		input := slices.Clone(marks)
		report := timeline.Summarize(marks, opt)
		if !slices.Equal(input, marks) {
			t.Fatal("the input was changed")
		}
		again := timeline.Summarize(rapid.Permutation(marks).Draw(t, "shuffled"), opt)
		if d := gocmp.Diff(report, again); d != "" {
			t.Fatalf("not deterministic:\n%s", d)
		}

		var shares float64
		var steps time.Duration
		for _, s := range report.Stages {
			for _, e := range []timeline.Estimate{s.Median, s.P95, s.P99} {
				if e.LowNS > e.NS || e.NS > e.HighNS {
					t.Fatalf("%s: %+v is outside its bounds", s.Stage, e)
				}
			}
			if s.Median.NS > s.P95.NS || s.P95.NS > s.P99.NS || s.Count < 1 || s.Missing < 0 || s.Share < 0 || s.Share > 1 || s.Step < 0 {
				t.Fatalf("%+v", s)
			}
			shares += s.Share
			steps += s.Step
		}
		if report.Total.NS > 0 && (math.Abs(shares-1) > 1e-9 || int64(steps) != report.Total.NS) {
			t.Fatalf("shares add up to %v, steps to %d of %d", shares, steps, report.Total.NS)
		}
		if !slices.IsSortedFunc(report.Stages, func(a, b timeline.Summary) int { return cmp.Compare(a.Median.NS, b.Median.NS) }) {
			t.Fatal("stages are not in order of time")
		}
		if _, err := json.Marshal(report); err != nil {
			t.Fatal(err)
		}
	})
}

// The bounds equal those of a bootstrap written down plainly: copy the durations of
// the reconfigurations drawn, and take Quantile of them.
func TestSummarize_PlainBootstrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		confidence := rapid.SampledFrom([]float64{0.5, 0.9, 0.95}).Draw(t, "confidence")
		clusters := make([][]timeline.Interval, rapid.IntRange(2, 6).Draw(t, "reconfigurations"))
		var marks []timeline.Mark
		var all []timeline.Interval
		for r := range clusters {
			marks = append(marks, mark(r, timeline.Command, "s", timeline.Point(0)))
			for i := range rapid.IntRange(1, 4).Draw(t, "subjects") {
				at := rapid.Int64Range(0, 300).Draw(t, "at")
				d := timeline.Between(at, at+rapid.Int64Range(0, 100).Draw(t, "width"))
				clusters[r] = append(clusters[r], d)
				all = append(all, d)
				marks = append(marks, mark(r, timeline.Light, fmt.Sprint(i), d))
			}
		}
		const resamples = 30
		random := rand.New(rand.NewPCG(seed, 0))
		var draws [][]timeline.Interval
		for range resamples {
			var draw []timeline.Interval
			for range clusters {
				draw = append(draw, clusters[random.IntN(len(clusters))]...)
			}
			draws = append(draws, draw)
		}
		want := func(q float64) timeline.Estimate {
			var ends []timeline.Interval
			for _, draw := range draws {
				ends = append(ends, timeline.Quantile(draw, q))
			}
			here := timeline.Quantile(all, q)
			bounds := here.Hull(timeline.Interval{
				Earliest: timeline.Quantile(ends, (1-confidence)/2).Earliest,
				Latest:   timeline.Quantile(ends, 1-(1-confidence)/2).Latest,
			})
			return timeline.Estimate{NS: here.Mid(), LowNS: bounds.Earliest, HighNS: bounds.Latest}
		}
		got := timeline.Summarize(marks, timeline.Options{Confidence: confidence, Resamples: resamples, Seed: seed}).Stages[0]
		for q, e := range map[float64]timeline.Estimate{0.5: got.Median, 0.95: got.P95, 0.99: got.P99} {
			if e != want(q) {
				t.Fatalf("q = %v: got %+v, want %+v", q, e, want(q))
			}
		}
	})
}

// Of many experiments about 95 % have bounds that hold the median of the distribution
// behind them, although subjects of one reconfiguration depend on each other.
func TestSummarize_Coverage(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const experiments, reconfigurations, subjects = 200, 40, 2
	held := 0
	for range experiments {
		var marks []timeline.Mark
		for r := range reconfigurations {
			marks = append(marks, mark(r, timeline.Command, "s", timeline.Point(0)))
			common := random.ExpFloat64() * 1e6
			for i := range subjects {
				at := int64(common + random.NormFloat64()*1e3)
				marks = append(marks, mark(r, timeline.Light, fmt.Sprint(i), timeline.Point(at)))
			}
		}
		m := timeline.Summarize(marks, timeline.Options{Resamples: 200, Seed: random.Uint64()}).Stages[0].Median
		if truth := int64(math.Log(2) * 1e6); m.LowNS <= truth && truth <= m.HighNS {
			held++
		}
	}
	share := float64(held) / experiments
	if share < 0.90 || share > 0.99 {
		t.Errorf("bounds hold the truth in %.1f %% of cases, want about 95 %%", 100*share)
	}
	t.Logf("coverage %.1f %%", 100*share)
}

func TestReport_JSON(t *testing.T) {
	got, err := json.Marshal(timeline.Report{})
	const empty = `{"kind":"summary","reconfigurations":0,"orphans":0,"stages":[],"total_ns":0,"total_low_ns":0,"total_high_ns":0}`
	if err != nil || string(got) != empty {
		t.Errorf("got %s, %v\nwant %s", got, err, empty)
	}
	got, err = json.Marshal(timeline.Report{
		Reconfigurations: 2, Orphans: 3, Total: timeline.Estimate{NS: 4, LowNS: 5, HighNS: 6},
		Stages: []timeline.Summary{{
			Stage: timeline.Ack, Count: 7, Missing: 8,
			Median:     timeline.Estimate{NS: 9, LowNS: 10, HighNS: 11},
			P95:        timeline.Estimate{NS: 12, LowNS: 13, HighNS: 14},
			P99:        timeline.Estimate{NS: 15, LowNS: 16, HighNS: 17},
			Resolution: 18, Step: 19, Share: 0.25,
		}},
	})
	const full = `{"kind":"summary","reconfigurations":2,"orphans":3,"stages":[{"stage":"ack","count":7,"missing":8,` +
		`"median_ns":9,"median_low_ns":10,"median_high_ns":11,"p95_ns":12,"p95_low_ns":13,"p95_high_ns":14,` +
		`"p99_ns":15,"p99_low_ns":16,"p99_high_ns":17,"resolution_ns":18,"step_ns":19,"share":0.25}],` +
		`"total_ns":4,"total_low_ns":5,"total_high_ns":6}`
	if err != nil || string(got) != full {
		t.Errorf("got %s, %v\nwant %s", got, err, full)
	}
}

func BenchmarkSummarize(b *testing.B) {
	random := rand.New(rand.NewPCG(5, 6))
	var marks []timeline.Mark
	for r := range 1000 {
		marks = append(marks, mark(r, timeline.Command, "rail0", timeline.Between(0, 1000)))
		for s, stage := range timeline.Stages()[1:7] {
			for subject := range 8 {
				at := int64(float64(s+1) * 1e8 * (1 + random.ExpFloat64()))
				marks = append(marks, mark(r, stage, fmt.Sprint("gpu", subject, "/ens1f0"), timeline.Between(at, at+134_000)))
			}
		}
	}
	for b.Loop() {
		timeline.Summarize(marks, timeline.Options{})
	}
}

func BenchmarkMerge(b *testing.B) {
	var counters, netlink []timeline.Mark
	for r := range 1000 {
		for subject := range 8 {
			m := mark(r, timeline.CarrierUp, fmt.Sprint("gpu", subject, "/ens1f0"), timeline.Between(int64(r)*ms, int64(r)*ms+134_000))
			m.Source = "counters"
			counters = append(counters, m)
			m.Source = "netlink"
			m.Latest += ms
			netlink = append(netlink, m)
		}
	}
	for b.Loop() {
		timeline.Merge(counters, netlink)
	}
}
