package timeline_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// layer is a stage of a made-up run: so long after the layer before (or the command, for
// the first), give or take, and known to within width.
type layer struct {
	stage              timeline.Stage
	after, spread, wid time.Duration
}

// madeUp is a report of n reconfigurations.
func madeUp(n int, layers []layer, expected ...timeline.Expectation) timeline.Report {
	random := rand.New(rand.NewPCG(7, 8))
	var marks []timeline.Mark
	for r := 1; r <= n; r++ {
		at := int64(r) * 100e9
		marks = append(marks, mark(r, timeline.Command, "rail0", timeline.Between(at, at+4000)))
		for _, l := range layers {
			at += int64(l.after) + int64(random.NormFloat64()*float64(l.spread))
			early := random.Int64N(int64(l.wid) + 1)
			marks = append(marks, mark(r, l.stage, "a", timeline.Between(at-early, at-early+int64(l.wid))))
		}
	}
	return timeline.Summarize(marks, timeline.Options{Expected: expected, Resamples: 200})
}

const us, msec = time.Microsecond, time.Millisecond

// slowNIC is a NIC that needs 3 s behind a switch that needs 200 ms.
var slowNIC = []layer{
	{timeline.TrafficLost, 8 * msec, msec, 100 * us},
	{timeline.Dark, 2 * msec, msec / 2, 10 * msec},
	{timeline.CarrierDown, 11 * msec, 2 * msec, 134 * us},
	{timeline.Light, 180 * msec, 3 * msec, 10 * msec},
	{timeline.Ack, 3 * msec, msec, 2 * us},
	{timeline.Firmware, 3000 * msec, 100 * msec, msec},
	{timeline.CarrierUp, 75 * us, 2 * us, 134 * us},
	{timeline.Traffic, 150 * msec, 20 * msec, 100 * us},
}

func TestWaterfall_Golden(t *testing.T) {
	var both []timeline.Expectation
	for r := 1; r <= 20; r++ {
		for _, subject := range []string{"a", "b"} {
			both = append(both, timeline.Expectation{r, timeline.CarrierUp, subject}, timeline.Expectation{r, timeline.Traffic, subject})
		}
	}
	slow := madeUp(40, slowNIC)
	for _, c := range []struct {
		name      string
		waterfall timeline.Waterfall
		report    timeline.Report
	}{
		{"slow-nic", timeline.Waterfall{}, slow},
		{"slow-nic-wide", timeline.Waterfall{Width: 120}, slow},
		{"slow-nic-ascii", timeline.Waterfall{Width: 100, ASCII: true}, slow},
		{"slow-nic-70", timeline.Waterfall{Width: 70}, slow},
		{"slow-nic-60", timeline.Waterfall{Width: 60}, slow},
		{"slow-nic-20", timeline.Waterfall{Width: 20}, slow},
		{"fast", timeline.Waterfall{}, madeUp(100, []layer{ // 50 us in all
			{timeline.Ack, 12 * us, us, 200}, {timeline.Light, 8 * us, us / 2, us}, {timeline.Traffic, 30 * us, 2 * us, us},
		})},
		{"fast-ascii", timeline.Waterfall{ASCII: true}, madeUp(100, []layer{{timeline.Ack, 50 * us, us, 200}})},
		{"ten-seconds", timeline.Waterfall{Width: 100}, madeUp(40, []layer{
			{timeline.Ack, 25 * msec, msec, 2 * us}, {timeline.Firmware, 8 * time.Second, time.Second, 500 * msec},
			{timeline.CarrierUp, 75 * us, 2 * us, 134 * us},
		})},
		{"coarse", timeline.Waterfall{}, madeUp(20, []layer{ // polled slower than things happen
			{timeline.Dark, 5 * msec, msec, 100 * msec}, {timeline.Light, 195 * msec, msec, 100 * msec},
		})},
		{"once", timeline.Waterfall{}, madeUp(1, slowNIC)},
		{"exact", timeline.Waterfall{}, timeline.Summarize([]timeline.Mark{
			mark(1, timeline.Command, "s", timeline.Point(0)), mark(1, timeline.Ack, "s", timeline.Point(203_456_789)),
			mark(1, timeline.Light, "s", timeline.Point(203_456_789)), mark(1, timeline.TrafficLost, "s", timeline.Point(-9_876_543)),
		}, timeline.Options{})},
		{"before-command", timeline.Waterfall{}, madeUp(20, []layer{
			{timeline.TrafficLost, -20 * msec, msec, msec}, {timeline.Light, 220 * msec, msec, 10 * msec},
		})},
		{"missing", timeline.Waterfall{}, madeUp(20, slowNIC[:7], both...)},
		{"never", timeline.Waterfall{}, madeUp(20, nil, both...)},
		{"nothing", timeline.Waterfall{}, timeline.Report{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(c.waterfall.Lines(c.report), "\n") + "\n"
			file := filepath.Join("testdata", "waterfall", c.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// anyReport draws what Summarize may make, and what it never would.
var anyReport = rapid.Custom(func(t *rapid.T) timeline.Report {
	marks := anyRun.Draw(t, "marks")
	if rapid.Bool().Draw(t, "wild intervals") {
		for i := range marks {
			marks[i].Interval = anyInterval.Draw(t, "interval")
		}
	}
	var expected []timeline.Expectation
	if rapid.Bool().Draw(t, "expected") {
		expected = []timeline.Expectation{{1, timeline.Traffic, "c"}, {2, timeline.Firmware, "c"}}
	}
	r := timeline.Summarize(marks, timeline.Options{Resamples: 3, Expected: expected})
	if rapid.IntRange(0, 4).Draw(t, "nonsense") == 0 {
		number := rapid.Int64()
		for i := range r.Stages {
			s := &r.Stages[i]
			s.Median = timeline.Estimate{NS: number.Draw(t, "ns"), LowNS: number.Draw(t, "low"), HighNS: number.Draw(t, "high")}
			s.P95 = timeline.Estimate{NS: number.Draw(t, "ns"), LowNS: number.Draw(t, "low"), HighNS: number.Draw(t, "high")}
			s.Step = time.Duration(number.Draw(t, "step"))
			s.Stage = timeline.Stage(rapid.SampledFrom([]string{"", "ack", "a stage with a very long name indeed", "λ"}).Draw(t, "stage"))
		}
	}
	return r
})

func TestWaterfall_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyReport.Draw(t, "report")
		w := timeline.Waterfall{Width: rapid.IntRange(-2, 200).Draw(t, "width"), ASCII: rapid.Bool().Draw(t, "ascii")}
		width := w.Width
		if width < 1 {
			width = timeline.DefaultWidth
		}
		lines := w.Lines(r)
		if n := len(r.Stages) + len(r.Unseen); n == 0 && lines != nil || n > 0 && len(lines) < n {
			t.Fatalf("%d lines for %d stages", len(lines), n)
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > width || strings.HasSuffix(l, " ") || strings.Contains(l, "\n") {
				t.Fatalf("width %d, line of %d: %q", width, n, l)
			}
			if i := strings.IndexFunc(l, func(r rune) bool { return r > '~' }); w.ASCII && i >= 0 && !strings.Contains(l, "λ") {
				t.Fatalf("not ASCII: %q", l)
			}
		}
	})
}

// Each bar is where its stage is: read back from the drawing, to one character, the block
// begins at the median and ends at the 95th percentile, the step ends there, and the
// shade ends at the bounds.
func TestWaterfall_Truth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := int64(math.Pow10(rapid.IntRange(1, 10).Draw(t, "scale")))
		var stages []timeline.Summary
		var end, before int64
		for _, stage := range timeline.Stages()[1:rapid.IntRange(2, 6).Draw(t, "stages")] {
			at := make([]int64, 4)
			for i := range at {
				at[i] = rapid.Int64Range(0, 10*scale).Draw(t, "ns")
			}
			slices.Sort(at)
			stages = append(stages, timeline.Summary{
				Stage:  stage,
				Median: timeline.Estimate{NS: at[1], LowNS: at[0], HighNS: at[1]},
				P95:    timeline.Estimate{NS: at[2], LowNS: at[2], HighNS: at[3]},
			})
			end = max(end, at[3], 1)
		}
		slices.SortFunc(stages, func(a, b timeline.Summary) int { return int(a.Median.NS - b.Median.NS) })
		for i := range stages {
			stages[i].Step = time.Duration(stages[i].Median.NS - before)
			before = stages[i].Median.NS
		}
		lines := timeline.Waterfall{Width: rapid.IntRange(100, 200).Draw(t, "width")}.Lines(timeline.Report{Stages: stages})

		left := strings.Index(lines[1], "┬") // names are ASCII
		width := utf8.RuneCountInString(lines[1][left:])
		for i, s := range stages {
			bar := []rune(lines[2+i])[left : left+width]
			near := func(what string, at int, ns int64) {
				if want := float64(ns) / float64(end) * float64(width); math.Abs(float64(at)+0.5-want) > 0.5001 {
					t.Fatalf("%s: the %s is at character %d, want %.2f\n%s", s.Stage, what, at, want, strings.Join(lines, "\n"))
				}
			}
			block := slices.Index(bar, '█')
			near("median", block, s.Median.NS)
			for block+1 < width && bar[block+1] == '█' {
				block++
			}
			near("percentile", block, s.P95.NS)
			if shade := slices.Index(bar, '░'); shade >= 0 && bar[max(shade-1, 0)] != '█' {
				near("lower bound", shade, s.Median.LowNS)
			}
			if block+1 < width && bar[block+1] == '░' {
				for block+1 < width && bar[block+1] == '░' {
					block++
				}
				near("upper bound", block, s.P95.HighNS)
			}
			if step := slices.Index(bar, '━'); step >= 0 {
				near("stage before", step, s.Median.NS-int64(s.Step))
			}
		}
	})
}

func ExampleWaterfall() {
	var marks []timeline.Mark
	for r := 1; r <= 30; r++ {
		start := int64(r) * int64(10*time.Second)
		add := func(stage timeline.Stage, subject string, after, known time.Duration) {
			at := timeline.Point(start + int64(after)).Widen(known)
			marks = append(marks, timeline.Mark{Stage: stage, Subject: subject, Interval: at, Reconfiguration: r})
		}
		late := time.Duration(r) * 10 * time.Millisecond
		add(timeline.Command, "rail0", 0, 0)
		add(timeline.Light, "rail0/33", 200*time.Millisecond, 5*time.Millisecond)
		add(timeline.Firmware, "gpu1/ens1f0", 3*time.Second+late, time.Millisecond)
		add(timeline.CarrierUp, "gpu1/ens1f0", 3*time.Second+late+75*time.Microsecond, 67*time.Microsecond)
	}
	for _, line := range (timeline.Waterfall{}).Lines(timeline.Summarize(marks, timeline.Options{})) {
		fmt.Println(line)
	}
	// Output:
	//            0 s      1        2        3            median     step       p95   n
	//            ┬────────┬────────┬────────┬──
	// light      ━█                               200.0 ms ±5.0  +200 ms  200.0 ms  30
	// firmware   ·━━━━━━━━━━━━━━━━━━━━━━━━━━━██  3.155 s ±0.051  +2.96 s   3.285 s  30
	// carrier-up ····························██  3.155 s ±0.051  <1.2 ms   3.286 s  30
	// ━━ since the stage before   ██ median to p95   ░░ their confidence bounds
}
