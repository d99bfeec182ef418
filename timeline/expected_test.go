package timeline_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

// Two configurations alternate. Carrier returns to both NICs in each, but each pair
// exists in one of them only.
func TestSummarize_Expected(t *testing.T) {
	const ab, ac = "a>b", "a>c"
	var marks []timeline.Mark
	var expected []timeline.Expectation
	for r := 1; r <= 4; r++ {
		pair := []string{ab, ac}[r%2]
		marks = append(marks,
			mark(r, timeline.Command, "s", timeline.Point(0)),
			mark(r, timeline.CarrierUp, "a", timeline.Point(10)))
		if r != 4 { // one lost
			marks = append(marks, mark(r, timeline.Traffic, pair, timeline.Point(20)))
		}
		expected = append(expected,
			timeline.Expectation{r, timeline.CarrierUp, "a"}, timeline.Expectation{r, timeline.CarrierUp, "b"},
			timeline.Expectation{r, timeline.Traffic, pair}, timeline.Expectation{r, timeline.Traffic, pair},
			timeline.Expectation{r, timeline.Firmware, "a"}, timeline.Expectation{r, timeline.Dark, "a"},
			timeline.Expectation{r, timeline.Command, "other"})
	}
	marks = append(marks,
		mark(1, timeline.CarrierUp, "c", timeline.Point(30)), // not expected; makes up for nothing
		mark(9, timeline.Firmware, "a", timeline.Point(30)))  // an orphan is not seen
	expected = append(expected, timeline.Expectation{9, timeline.Traffic, ab}) // and nothing is missing there

	type row struct {
		Stage          timeline.Stage
		Count, Missing int
	}
	rows := func(opt timeline.Options) (rows []row, unseen []timeline.Unseen) {
		report := timeline.Summarize(marks, opt)
		for _, s := range report.Stages {
			rows = append(rows, row{s.Stage, s.Count, s.Missing})
		}
		return rows, report.Unseen
	}
	for _, c := range []struct {
		name       string
		expected   []timeline.Expectation
		want       []row
		wantUnseen []timeline.Unseen
	}{
		{"not known", nil, []row{{timeline.CarrierUp, 5, 3}, {timeline.Traffic, 3, 5}}, nil},
		{"nothing", []timeline.Expectation{}, []row{{timeline.CarrierUp, 5, 0}, {timeline.Traffic, 3, 0}}, nil},
		{"all", expected, []row{{timeline.CarrierUp, 5, 4}, {timeline.Traffic, 3, 1}},
			[]timeline.Unseen{{timeline.Dark, 4}, {timeline.Firmware, 4}}},
	} {
		got, unseen := rows(timeline.Options{Expected: c.expected})
		if d := cmp.Diff(c.want, got) + cmp.Diff(c.wantUnseen, unseen); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// What is expected changes nothing but what is missing, and each expectation is either
// seen or missing.
func TestSummarize_ExpectedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks := anyRun.Draw(t, "marks")
		expected := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) timeline.Expectation {
			return timeline.Expectation{
				Reconfiguration: rapid.IntRange(0, 6).Draw(t, "reconfiguration"),
				Stage:           rapid.SampledFrom(timeline.Stages()[1:]).Draw(t, "stage"),
				Subject:         rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "subject"),
			}
		}), rapid.ID).Draw(t, "expected")
		if expected == nil {
			expected = []timeline.Expectation{}
		}
		opt := timeline.Options{Resamples: 5}
		plain := timeline.Summarize(marks, opt)
		opt.Expected = expected
		report := timeline.Summarize(marks, opt)

		commanded := map[int]bool{}
		seen := map[timeline.Expectation]bool{}
		for _, m := range marks {
			commanded[m.Reconfiguration] = commanded[m.Reconfiguration] || m.Stage == timeline.Command
			seen[timeline.Expectation{m.Reconfiguration, m.Stage, m.Subject}] = true
		}
		want, got := 0, 0
		for _, e := range expected {
			if commanded[e.Reconfiguration] && !seen[e] {
				want++
			}
		}
		for i := range report.Stages {
			got += report.Stages[i].Missing
			report.Stages[i].Missing = plain.Stages[i].Missing
		}
		for _, u := range report.Unseen {
			got += u.Missing
		}
		if len(report.Missed) != want {
			t.Fatalf("%d are told to be missing, want %d", len(report.Missed), want)
		}
		report.Unseen, report.Missed = nil, nil
		if got != want {
			t.Fatalf("%d are missing, want %d", got, want)
		}
		if d := cmp.Diff(plain, report); d != "" {
			t.Fatalf("more changed than what is missing:\n%s", d)
		}
	})
}

func TestUnseen_JSON(t *testing.T) {
	got, err := json.Marshal(timeline.Report{Unseen: []timeline.Unseen{{timeline.Traffic, 8}}})
	const want = `{"kind":"summary","reconfigurations":0,"orphans":0,"stages":[],"total_ns":0,"total_low_ns":0,"total_high_ns":0,` +
		`"unseen":[{"stage":"traffic","missing":8}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}
