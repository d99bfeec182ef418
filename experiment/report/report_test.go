package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

func write(t testing.TB, r *runs.Run, a *analysis.Analysis, opt Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r, a, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// check fails unless the page is well-formed and needs nothing from anywhere.
func check(t testing.TB, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict = true
	d.Entity = xml.HTMLEntity
	ids := map[string]bool{}
	var links []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if slices.Contains([]string{"script", "link", "img", "iframe", "object", "image", "use", "base", "form"}, strings.ToLower(e.Name.Local)) {
			t.Errorf("the page has an element %q", e.Name.Local)
		}
		for _, a := range e.Attr {
			switch {
			case a.Name.Local == "id":
				if ids[a.Value] {
					t.Errorf("two elements have the id %q", a.Value)
				}
				ids[a.Value] = true
			case a.Name.Local == "href":
				links = append(links, a.Value)
			case a.Name.Local == "src", strings.HasPrefix(a.Name.Local, "on"):
				t.Errorf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
		}
		if e.Name.Local == "th" && !slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == "scope" }) {
			t.Error("a header of a table has no scope")
		}
		if e.Name.Local == "svg" && !slices.ContainsFunc(e.Attr, func(a xml.Attr) bool {
			return a.Name.Local == "role" || a.Name.Local == "aria-hidden"
		}) {
			t.Error("a drawing has no role")
		}
	}
	for _, l := range links {
		if !strings.HasPrefix(l, "#") || !ids[l[1:]] {
			t.Errorf("a link leads to %q", l)
		}
	}
	for _, bad := range []string{"http:", "https:", "NaN", "Inf<", "+Inf", "-Inf", "@import", "%!", "ZgotmplZ", "92233720"} {
		if i := strings.Index(page, bad); i >= 0 {
			t.Errorf("the page holds %q: %s", bad, page[max(0, i-80):min(len(page), i+80)])
		}
	}
	for _, u := range regexp.MustCompile(`url\(([^)]*)\)`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(u[1], "#") || !ids[u[1][1:]] {
			t.Errorf("the page refers to %s", u[0])
		}
	}
}

func TestHTML(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 1)
	r.Meta.File = "/home/lab/synthetic.yaml"
	page := write(t, r, analysis.Of(r), Options{Paper: &Paper{
		Title: "Opus, figure 9c", Source: "Somebody, 2025",
		Rows:   []PaperRow{{"median", "6 s", "5.9 s", "-1.7 %", "modelled"}},
		Charts: []chart.Chart{chart.Bars{Frame: chart.Frame{Title: "Beside each other"}, Rows: []chart.Bar{{Label: "paper", Parts: []chart.Part{{Label: "time", Value: 6e9}}}}}},
	}})
	check(t, page)
	at := 0
	for _, want := range []string{
		"<h1>", "Emulated.", "<h2>Verdict: ", "<h2>Against the paper: Opus, figure 9c", "<h2>Key figures", "<h2>Single reconfigurations", "<h2>Distributions",
		"<h2>Pairs", "<h2>Over the run", "<h2>Optical power", "<h2>By NIC", "<h2>Differences between conditions", "<h2>Null toggles",
		"<h2>Accuracy against the truth", "<h2>What is missing", "<h2>Methods", "B. W. Turnbull", "The experiment file, as it was given", "<h2>To repeat this",
		"ocslab --lab synthetic-lab.yaml --emulated run synthetic.yaml --seed 1", "ocslab runs export 20261122T010000-synthetic-0001",
	} {
		i := strings.Index(page[at:], want)
		if i < 0 {
			t.Fatalf("the page lacks %q, or has it too early", want)
		}
		at += i
	}
	if strings.Contains(page, "Not finished") {
		t.Error("a finished run is said to be unfinished")
	}
}

func TestOddRuns(t *testing.T) {
	const evil = `<script>alert("x")</script>]]>&'` + "\x00\xff\u202e"
	long := strings.Repeat("very-long-", 60)
	for name, change := range map[string]func(*runs.Run){
		"as it is":         func(*runs.Run) {},
		"no samples":       func(r *runs.Run) { r.Samples = nil },
		"no set-ups":       func(r *runs.Run) { r.Setups, r.Sessions = nil, nil },
		"no truth":         func(r *runs.Run) { r.Truth, r.Meta.Emulated = nil, false },
		"nothing expected": func(r *runs.Run) { r.Expected = nil },
		"no marks":         func(r *runs.Run) { r.Marks, r.Truth, r.Samples = nil, nil, nil },
		"nothing":          func(r *runs.Run) { *r = runs.Run{Plan: r.Plan, File: r.File} },
		"unfinished":       func(r *runs.Run) { r.State, r.Summary = runs.Interrupted, nil },
		"evil names": func(r *runs.Run) {
			r.Meta.Name, r.Meta.About, r.Meta.Lab, r.Meta.ID = evil, evil, evil, evil
			r.Meta.Command = []string{"run", evil}
			r.File.Text, r.Lab = []byte(evil), []byte(evil)
			for i := range r.Marks {
				r.Marks[i].Subject += evil
			}
			for i := range r.Plan.Conditions {
				r.Plan.Conditions[i].Label += evil
			}
			r.Events = append(r.Events, runs.Event{Kind: evil, Text: evil})
		},
		"long names": func(r *runs.Run) {
			r.Meta.Name = long
			for i := range r.Marks {
				r.Marks[i].Subject = long + r.Marks[i].Subject
			}
		},
		"right to left": func(r *runs.Run) {
			r.Meta.Name = "ניסוי בלילה"
			for i := range r.Marks {
				r.Marks[i].Subject = "מתג/" + r.Marks[i].Subject
			}
		},
		"times at the end": func(r *runs.Run) {
			for i := range r.Marks {
				if r.Marks[i].Stage == timeline.Light {
					r.Marks[i].Interval = timeline.Between(math.MinInt64, math.MaxInt64)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := analysistest.Synthetic(8, 4, 1)
			change(r)
			a := analysis.Of(r)
			page := write(t, r, a, Options{})
			if name != "times at the end" {
				check(t, strings.NewReplacer("http://www.w3.org/2000/svg", "").Replace(page))
			}
			if strings.Contains(page, "<script") {
				t.Error("a name is taken for markup")
			}
			for _, f := range Figures() {
				var b bytes.Buffer
				if err := SVG(&b, r, a, f); err != nil && !strings.Contains(err.Error(), "nothing to draw") {
					t.Errorf("%s: %v", f, err)
				} else if err == nil && !strings.HasPrefix(b.String(), "<svg xmlns=") {
					t.Errorf("%s is no drawing", f)
				}
			}
		})
	}
}

func TestUnfinishedRunSaysSo(t *testing.T) {
	r := analysistest.Synthetic(8, 4, 1)
	r.State, r.Summary.State, r.Summary.Reason, r.Summary.Restored = runs.Stopped, runs.Stopped, "somebody stopped it", false
	page := write(t, r, analysis.Of(r), Options{})
	for _, want := range []string{"Not finished.", "somebody stopped it", "runs resume", "The light was not put back."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Many conditions are bounded, and the page says what it left out.
func TestManyConditions(t *testing.T) {
	r := analysistest.Synthetic(8, 4, 1)
	a := analysis.Of(r)
	first := a.Conditions[0]
	for i := len(a.Conditions); i < 80; i++ {
		c := first
		c.Number, c.Label = i+1, "n="+strings.Repeat("x", i)
		a.Conditions = append(a.Conditions, c)
	}
	page := write(t, r, a, Options{})
	check(t, page)
	for _, want := range []string{"32 more conditions are not shown", "The first 12 conditions are drawn, 68 are not", "more rows are not shown"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if len(page) > 5<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

func TestUnknownFigure(t *testing.T) {
	r := analysistest.Synthetic(4, 4, 1)
	err := SVG(io.Discard, r, &analysis.Analysis{}, "pie")
	if err == nil || !strings.Contains(err.Error(), "waterfall, stages") {
		t.Errorf("the error is %v", err)
	}
	if err := SVG(io.Discard, &runs.Run{}, &analysis.Analysis{}, "box"); err == nil || !strings.Contains(err.Error(), "no stage was seen") {
		t.Errorf("the error is %v", err)
	}
}

func TestNumbers(t *testing.T) {
	ms := func(v float64) int64 { return int64(v * 1e6) }
	for _, test := range []struct {
		e          timeline.Estimate
		resolution time.Duration
		want       string
	}{
		{timeline.Estimate{NS: ms(203.1234), LowNS: ms(202.71), HighNS: ms(203.55)}, 0, "203.12 ms [202.71, 203.55]"},
		{timeline.Estimate{NS: ms(203.1234), LowNS: ms(203.12), HighNS: ms(203.13)}, 10 * time.Millisecond, "203.1 ms [203.1, 203.2]"},
		{timeline.Estimate{NS: ms(3100.4), LowNS: ms(3000), HighNS: timeline.Never}, 0, "3.10 s [3.00, ∞]"},
		{timeline.Estimate{NS: 0, LowNS: -ms(11), HighNS: ms(12)}, 0, "0 ms [-11, 12]"},
		{timeline.Estimate{NS: -ms(0.1), LowNS: -ms(11), HighNS: ms(12)}, 0, "0 ms [-11, 12]"},
		{timeline.Estimate{NS: math.MinInt64, LowNS: math.MinInt64, HighNS: math.MaxInt64}, 0, "∞ s [∞, ∞]"},
		{timeline.Estimate{NS: 1234567890, LowNS: 1234567890, HighNS: 1234567890}, 0, "1.235 s [1.234, 1.235]"},
	} {
		if got := estimate(test.e, test.resolution); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.e, got, test.want)
		}
	}
	for d, want := range map[time.Duration]string{30 * time.Second: "30 s", 1500 * time.Millisecond: "1.5 s", 100 * time.Microsecond: "100 µs", 0: "0 ns"} {
		if got := exact(d); got != want {
			t.Errorf("exact(%v) is %q, want %q", d, got, want)
		}
	}
	if got := most(1234567); got != "1.3 ms" {
		t.Errorf("most is %q", got)
	}
	for v, want := range map[float64]string{math.NaN(): "–", math.Inf(1): "∞", 3: "3"} {
		if got := bound(plan.Missing, v); got != want {
			t.Errorf("bound(%v) is %q, want %q", v, got, want)
		}
	}
}

func TestBlocks(t *testing.T) {
	names := map[string]bool{}
	for i := range 130 {
		names["rail0/"+string(rune('a'+i/26))+string(rune('a'+i%26))] = true
	}
	b := blocks(names)
	if b.size != 2 || len(b.labels) != 65 || b.labels[0] != "rail0/aa to rail0/ab" || b.of["rail0/ez"] != 64 {
		t.Errorf("blocks of %d: %q", b.size, b.labels)
	}
}

// The size of a page does not grow with the run.
func TestSizeIsBounded(t *testing.T) {
	r := analysistest.Synthetic(2000, 16, 1)
	if page := write(t, r, quick(r), Options{}); len(page) > 5<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// quick is an analysis of a large run that has what takes room, without the bootstrap.
func quick(r *runs.Run) *analysis.Analysis {
	a := &analysis.Analysis{}
	condition := map[int]int{}
	for _, rec := range r.Reconfigurations {
		condition[rec.Number] = rec.Condition
	}
	durations := timeline.Durations(r.Marks)
	for _, of := range r.Plan.Conditions {
		c := analysis.Condition{Condition: of, Typical: of.Number, Slowest: of.Number + 2}
		for _, stage := range timeline.Stages() {
			var d timeline.Distribution
			for _, x := range durations {
				if x.Stage != stage || condition[x.Reconfiguration] != of.Number {
					continue
				}
				if c.OutlierCount++; c.OutlierCount <= 50 {
					c.Outliers = append(c.Outliers, analysis.Outlier{Reconfiguration: x.Reconfiguration, Stage: stage, Subject: x.Subject, Interval: x.Interval})
				}
				d.Steps = append(d.Steps, timeline.Step{Interval: x.Interval})
			}
			if len(d.Steps) == 0 {
				continue
			}
			slices.SortFunc(d.Steps, func(x, y timeline.Step) int { return int(x.Mid() - y.Mid()) })
			for i := range d.Steps {
				d.Steps[i].Mass = 1 / float64(len(d.Steps))
			}
			middle := timeline.Estimate{NS: d.Steps[len(d.Steps)/2].Mid()}
			c.Stages = append(c.Stages, analysis.Stage{Summary: timeline.Summary{Stage: stage, Count: len(d.Steps), Median: middle}, Distribution: d})
		}
		a.Conditions = append(a.Conditions, c)
	}
	return a
}

func BenchmarkReport10kx16x6(b *testing.B) {
	r := analysistest.Synthetic(10_000, 16, 1)
	a := quick(r)
	var size counter
	for b.Loop() {
		size = 0
		if err := HTML(&size, r, a, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size), "bytes/page")
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// A null toggle is acknowledged, too, but at once: it must not look like a quick change.
func TestSeriesLeavesOutNullToggles(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 1)
	nulls := 0
	for _, rec := range r.Reconfigurations {
		if !rec.Null {
			continue
		}
		nulls++
		for i, stage := range []timeline.Stage{timeline.Command, timeline.Ack} {
			r.Marks = append(r.Marks, timeline.Mark{Stage: stage, Subject: "rail0", Host: "labhost", Source: "driver",
				Interval: timeline.Point(rec.MonoNS + int64(i)), Reconfiguration: rec.Number})
		}
	}
	slices.SortStableFunc(r.Marks, func(a, b timeline.Mark) int { return a.Reconfiguration - b.Reconfiguration })
	if nulls == 0 {
		t.Fatal("the run has no null toggles")
	}
	for _, l := range newBook(r, analysis.Of(r)).series().(chart.Series).Lines {
		for _, bin := range l.Bins {
			if l.Label == string(timeline.Ack) && bin.Low < -int64(100*time.Millisecond) {
				t.Errorf("at %v an acknowledgement came %v before the median", bin.From, time.Duration(-bin.Low))
			}
		}
	}
}

func TestVerdictSaysWhatItTakes(t *testing.T) {
	r := analysistest.Synthetic(8, 4, 1)
	limit := plan.Limit{Text: "carrier_p99 < 9s", Statistic: plan.Statistic{Stage: timeline.CarrierUp, Of: plan.P99}}
	r.File.Limits = []plan.Limit{limit, {Text: "light_p50 < 1s where color=blue"}}
	a := analysis.Of(r)
	a.Verdict = analysis.Undecided
	a.Verdicts = []analysis.Verdict{{Limit: limit, Condition: a.Conditions[0].Number, Judgement: analysis.Undecided, Value: 3e9, Low: 2e9, High: 4e9, Known: true, Need: 299}}
	page := write(t, r, a, Options{})
	for _, want := range []string{"Verdict: undecided", "undecided: takes 299 values to tell", "light_p50 &lt; 1s where color=blue", "none that is done"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// What one reads first is a few figures; the others are folded away.
func TestDetailsAreFolded(t *testing.T) {
	r := analysistest.Synthetic(200, 8, 1)
	page := write(t, r, analysis.Of(r), Options{})
	open, deep := 0, 0
	for _, tag := range regexp.MustCompile(`<(/?details|figure)>`).FindAllString(page, -1) {
		switch {
		case tag == "<details>":
			deep++
		case tag == "</details>":
			deep--
		case deep == 0:
			open++
		}
	}
	if total := strings.Count(page, "<figure>"); open > 10 || open == total {
		t.Errorf("%d of %d figures are not folded away", open, total)
	}
}

func TestGroups(t *testing.T) {
	g := newGroups()
	for i := range 10 {
		g.add("gap", []string{"gpu1", "gpu2"}[i%2], i, "no sweep for 100 ms")
	}
	g.add("outage", "", 3, "")
	got := g.table("Notes").Rows
	want := [][]string{{"gap", "10", "gpu1, gpu2", "1, 2, 3, 4, 5, 6, …", "no sweep for 100 ms"}, {"outage", "1", "", "3", ""}}
	for i := range want {
		var texts []string
		for _, c := range got[i] {
			texts = append(texts, c.Text)
		}
		if !slices.Equal(texts, want[i]) {
			t.Errorf("row %d is %q, want %q", i, texts, want[i])
		}
	}
}
