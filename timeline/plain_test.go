package timeline_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

// plainly is Summarize written down so that it can be checked by reading: it copies the
// durations of the reconfigurations that each resample draws, and asks Quantile.
func plainly(marks []timeline.Mark, opt timeline.Options) timeline.Report {
	commands := map[int]timeline.Interval{}
	var numbers []int
	for _, m := range marks {
		if m.Stage != timeline.Command {
			continue
		}
		at, ok := commands[m.Reconfiguration]
		if !ok {
			at = m.Interval
			numbers = append(numbers, m.Reconfiguration)
		}
		commands[m.Reconfiguration] = timeline.Interval{Earliest: min(at.Earliest, m.Earliest), Latest: min(at.Latest, m.Latest)}
	}
	slices.Sort(numbers)
	report := timeline.Report{Reconfigurations: len(numbers)}

	type event struct {
		reconfiguration int
		subject, host   string
	}
	stages := map[timeline.Stage]map[event]timeline.Interval{}
	for _, m := range marks {
		if _, ok := commands[m.Reconfiguration]; !ok {
			if m.Reconfiguration != 0 {
				report.Orphans++
			}
			continue
		}
		if m.Stage == timeline.Command {
			continue
		}
		if stages[m.Stage] == nil {
			stages[m.Stage] = map[event]timeline.Interval{}
		}
		e := event{m.Reconfiguration, m.Subject, m.Host}
		at, ok := stages[m.Stage][e]
		switch {
		case !ok:
			at = m.Interval
		case m.Stage == timeline.Dark || m.Stage == timeline.TrafficLost || m.Stage == timeline.CarrierDown:
			at = timeline.Interval{Earliest: min(at.Earliest, m.Earliest), Latest: min(at.Latest, m.Latest)}
		default:
			at = timeline.Interval{Earliest: max(at.Earliest, m.Earliest), Latest: max(at.Latest, m.Latest)}
		}
		stages[m.Stage][e] = at
	}

	random := rand.New(rand.NewPCG(opt.Seed, 0))
	var draws [][]int
	for range opt.Resamples {
		var draw []int
		for range numbers {
			draw = append(draw, numbers[random.IntN(len(numbers))])
		}
		draws = append(draws, draw)
	}
	for stage, events := range stages {
		clusters, subjects := map[int][]timeline.Interval{}, map[[2]string]bool{}
		var all, widths []timeline.Interval
		for e, at := range events {
			d := at.Sub(commands[e.reconfiguration])
			clusters[e.reconfiguration] = append(clusters[e.reconfiguration], d)
			subjects[[2]string{e.subject, e.host}] = true
			all = append(all, d)
			widths = append(widths, timeline.Point(int64(d.Width())))
		}
		estimate := func(q float64) timeline.Estimate {
			here := timeline.Quantile(all, q)
			bounds := timeline.Interval{Earliest: timeline.Quantile(all, 0).Earliest, Latest: timeline.Quantile(all, 1).Latest}
			var ends []timeline.Interval
			for _, draw := range draws {
				var sample []timeline.Interval
				for _, reconfiguration := range draw {
					sample = append(sample, clusters[reconfiguration]...)
				}
				if len(sample) > 0 {
					ends = append(ends, timeline.Quantile(sample, q))
				}
			}
			if len(clusters) >= 2 && len(ends) > 0 {
				tail := (1 - opt.Confidence) / 2
				bounds = here.Hull(timeline.Interval{Earliest: timeline.Quantile(ends, tail).Earliest, Latest: timeline.Quantile(ends, 1-tail).Latest})
			}
			return timeline.Estimate{NS: here.Mid(), LowNS: bounds.Earliest, HighNS: bounds.Latest}
		}
		report.Stages = append(report.Stages, timeline.Summary{
			Stage: stage, Count: len(all), Missing: len(subjects)*len(numbers) - len(all),
			Median: estimate(0.5), P95: estimate(0.95), P99: estimate(0.99),
			Resolution: time.Duration(timeline.Quantile(widths, 0.5).Mid()),
		})
	}
	slices.SortFunc(report.Stages, func(a, b timeline.Summary) int { return cmp.Compare(a.Median.NS, b.Median.NS) })
	return report
}

// sameStatistics compares all but steps, shares and the order of equals.
func sameStatistics(t interface{ Fatalf(string, ...any) }, want, got timeline.Report) {
	byStage := func(r timeline.Report) map[timeline.Stage]timeline.Summary {
		m := map[timeline.Stage]timeline.Summary{}
		for _, s := range r.Stages {
			s.Step, s.Share = 0, 0
			m[s.Stage] = s
		}
		return m
	}
	if d := gocmp.Diff(byStage(want), byStage(got)); d != "" || want.Reconfigurations != got.Reconfigurations || want.Orphans != got.Orphans {
		t.Fatalf("%d and %d reconfigurations, %d and %d orphans (-want +got):\n%s",
			want.Reconfigurations, got.Reconfigurations, want.Orphans, got.Orphans, d)
	}
}

func TestSummarize_Plainly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks := anyRun.Draw(t, "marks")
		opt := timeline.Options{Confidence: 0.9, Resamples: 20, Seed: rapid.Uint64().Draw(t, "seed")}
		sameStatistics(t, plainly(marks, opt), timeline.Summarize(marks, opt))
	})
}

// Where there are enough subjects in each reconfiguration, quantiles are searched for
// from a place near them. One in a hundred reconfigurations is far from all others, so
// that some resamples have their quantile before that place.
func TestSummarize_PlainlyMany(t *testing.T) {
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 7))
		var marks []timeline.Mark
		for r := range 60 {
			start := int64(r) * 1e6
			marks = append(marks, mark(r+1, timeline.Command, "s", timeline.Between(start, start+7)))
			for i := range 20 + 200*(r%40/39) {
				at := start + random.Int64N(1e4) + int64(r%40/39)*1e4
				marks = append(marks, mark(r+1, timeline.Light, fmt.Sprint(i), timeline.Between(at, at+random.Int64N(100))))
			}
		}
		opt := timeline.Options{Confidence: 0.95, Resamples: 200, Seed: seed}
		sameStatistics(t, plainly(marks, opt), timeline.Summarize(marks, opt))
	}
}

func TestSummarize_Missed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks := anyRun.Draw(t, "marks")
		expected := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) timeline.Expectation {
			return timeline.Expectation{
				Reconfiguration: rapid.IntRange(0, 7).Draw(t, "reconfiguration"),
				Stage:           rapid.SampledFrom(timeline.Stages()).Draw(t, "stage"),
				Subject:         rapid.SampledFrom([]string{"a", "b", "s"}).Draw(t, "subject"),
			}
		}), 0, 30).Draw(t, "expected")
		got := timeline.Summarize(marks, timeline.Options{Resamples: 1, Expected: expected}).Missed
		for i, e := range got {
			if slices.Contains(got[:i], e) {
				t.Fatalf("%v is told twice", e)
			}
		}
		for _, e := range expected {
			seen, commanded := false, false
			for _, m := range marks {
				commanded = commanded || m.Reconfiguration == e.Reconfiguration && m.Stage == timeline.Command
				seen = seen || m.Reconfiguration == e.Reconfiguration && m.Stage == e.Stage && m.Subject == e.Subject
			}
			if want := commanded && !seen && e.Stage != timeline.Command; slices.Contains(got, e) != want {
				t.Fatalf("%v is missed: %v, want %v", e, !want, want)
			}
		}
	})
}

// manyMarks are those of 10,000 reconfigurations with 16 subjects that reach 6 stages.
func manyMarks() ([]timeline.Mark, []timeline.Expectation) {
	random := rand.New(rand.NewPCG(5, 6))
	var subjects []string
	for i := range 16 {
		subjects = append(subjects, fmt.Sprintf("gpu%d/ens1f0", i+1))
	}
	var marks []timeline.Mark
	var expected []timeline.Expectation
	for r := 1; r <= 10_000; r++ {
		start := int64(r) * 5e9
		marks = append(marks, mark(r, timeline.Command, "rail0", timeline.Between(start, start+1000)))
		for s, stage := range timeline.Stages()[2:8] {
			common := random.NormFloat64() * 2e6
			for _, subject := range subjects {
				at := start + int64(float64(s+1)*1e8+common+random.ExpFloat64()*5e6)
				marks = append(marks, mark(r, stage, subject, timeline.Between(at, at+134_000)))
				expected = append(expected, timeline.Expectation{Reconfiguration: r, Stage: stage, Subject: subject})
			}
		}
	}
	return marks, expected
}

func BenchmarkSummarize10kx16x6(b *testing.B) {
	marks, expected := manyMarks()
	for b.Loop() {
		timeline.Summarize(marks, timeline.Options{Expected: expected})
	}
	b.StopTimer()
	b.ReportMetric(peak(func() { timeline.Summarize(marks, timeline.Options{Expected: expected}) }), "MiB-peak")
}

func BenchmarkCheck10kx16x6(b *testing.B) {
	marks, _ := manyMarks()
	for b.Loop() {
		timeline.Check(marks)
	}
}

func BenchmarkCompare10kx16x6(b *testing.B) {
	marks, _ := manyMarks()
	for b.Loop() {
		timeline.Compare(marks, marks)
	}
}

// peak returns about how much memory is in use at most while fn runs, above what was
// before, in MiB: the heap is looked at every millisecond.
func peak(fn func()) float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, m.HeapAlloc
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	for {
		select {
		case <-done:
			return float64(most-before) / (1 << 20)
		case <-time.After(time.Millisecond):
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
}
