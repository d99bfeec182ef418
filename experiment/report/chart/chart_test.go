package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/timeline"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite golden files")

const ms = int64(1e6)

// samples are small charts of all kinds.
func samples() map[string]Chart {
	light, carrier := StageTone(timeline.Light), StageTone(timeline.CarrierUp)
	dark := StageTone(timeline.Dark)
	steps := func(from int64) timeline.Distribution {
		return timeline.Distribution{Count: 4, Steps: []timeline.Step{
			{Interval: timeline.Between(from*ms, (from+10)*ms), Mass: 0.5},
			{Interval: timeline.Point((from + 20) * ms), Mass: 0.25},
			{Interval: timeline.Between(30_000*ms, timeline.Never), Mass: 0.25},
		}}
	}
	return map[string]Chart{
		"waterfall": Waterfall{Frame: Frame{"Medians", "Light, then carrier."}, Rows: []Row{
			{Label: "dark", Tone: dark, To: 8 * ms, At: timeline.Between(2*ms, 13*ms), Note: "8.0 ms [2.4, 13.4]"},
			{Label: "light", Sub: "rail0/33", Tone: light, From: 8 * ms, To: 203 * ms, At: timeline.Between(198*ms, 208*ms), Tail: 230 * ms, Note: "203 ms ±5"},
			{Label: "carrier-up", Tone: carrier, From: 203 * ms, To: 3100 * ms, At: timeline.Point(3100 * ms), Note: "3.1 s"},
			{Label: "traffic", Absent: true, Note: "not within 30 s"},
		}},
		"cdf": CDF{Frame: Frame{Title: "light"}, Curves: []Curve{
			{"firmware=quick", SeriesTone(0), steps(200)}, {"firmware=slow", SeriesTone(1), steps(230)},
		}},
		"box": Boxes{Frame: Frame{Title: "Quartiles"}, Rows: []Box{
			{Group: "light", Label: "quick", Tone: light, Low: 190 * ms, Q1: 200 * ms, Median: 203 * ms, Q3: 206 * ms, High: 215 * ms, Least: 185 * ms, Most: 260 * ms, Outliers: []int64{260 * ms}, Note: "n 30"},
			{Group: "carrier-up", Label: "quick", Tone: carrier, Low: 3000 * ms, Q1: 3080 * ms, Median: 3100 * ms, Q3: 3120 * ms, High: 3200 * ms, Note: "n 30"},
		}},
		"heatmap": Heatmap{Frame: Frame{Title: "Pairs"}, Rows: []string{"a", "b"}, Columns: []string{"a", "b", "c"}, RowTitle: "from", ColTitle: "to",
			Cells: [][]float64{{math.NaN(), 3.1e9, 3.2e9}, {3.15e9}}},
		"series": Series{Frame: Frame{Title: "Over the run"}, XTitle: "reconfigurations", YTitle: "since the command",
			Lines:  []SeriesLine{{"light", light, []Bin{{0.5, 1.5, 190 * ms, 200 * ms, 210 * ms}, {1.5, 2.5, 195 * ms, 201 * ms, 205 * ms}}}},
			Events: []Event{{2, "null toggle"}, {2.5, "resumed"}}},
		"bars": Bars{Frame: Frame{Title: "Shares"}, Axis: Axis{Title: "part", Kind: Portion}, Rows: []Bar{
			{"quick", []Part{{"light", light, 0.25}, {"carrier-up", carrier, 0.75}}, "3.1 s"}}},
		"lines": Lines{Frame: Frame{Title: "Power"}, X: Axis{Title: "time since the command"}, Y: Axis{Title: "power (dBm)", Kind: Number},
			Curves: []Line{{Label: "rail0/33", Tone: light, Stepped: true, Points: []Point{{0, -3.2, 0, 0}, {8e6, -20, 0, 0}, {203e6, -3.3, 0, 0}}},
				{Label: "bounds", Tone: SeriesTone(1), Points: []Point{{0, -10, -11, -9}, {1e8, -9, -10, -8}}}},
			Spans: []Span{{2e6, 13e6, "dark", dark}}, Levels: []Level{{-6.2, "dark below"}}},
	}
}

func TestGolden(t *testing.T) {
	for name, c := range samples() {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := SVG(&b, c); err != nil {
				t.Fatal(err)
			}
			// The style is the same for all, and not what this test is about.
			got := strings.ReplaceAll(regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(b.String(), "<style/>"), "><", ">\n<")
			path := filepath.Join("testdata", name+".svg")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs from what is drawn now; look at both, then run with -update", path)
			}
		})
	}
}

// wellFormed fails unless the drawing is XML whose coordinates are numbers.
func wellFormed(t rapid.TB, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader("<all>" + svg + "</all>"))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			if e.Name.Local == "pattern" {
				continue
			}
			switch a.Name.Local {
			case "x", "y", "cx", "cy", "r", "width", "height":
				v, err := strconv.ParseFloat(strings.TrimSuffix(a.Value, "%"), 64)
				if err != nil || math.Abs(v) > 1e5 {
					t.Fatalf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
				if strings.HasPrefix(a.Name.Local, "w") && v < 0 {
					t.Fatalf("%s is %s wide", e.Name.Local, a.Value)
				}
			case "d", "viewBox":
				if m := regexp.MustCompile(`(?i)nan|inf|e[+-]|\d{6,}`).FindString(a.Value); m != "" {
					t.Fatalf("%s has %q in %s=%q", e.Name.Local, m, a.Name.Local, a.Value)
				}
			}
		}
	}
	for _, bad := range []string{"NaN", "Inf", "<script", "{}"} {
		if strings.Contains(svg, bad) {
			t.Fatalf("the drawing holds %q:\n%s", bad, svg)
		}
	}
}

func draw(t rapid.TB, c Chart) string {
	t.Helper()
	var b bytes.Buffer
	if err := SVG(&b, c); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	page := string(HTML(c))
	wellFormed(t, page)
	return b.String() + page
}

// numbers are times as odd as they may come.
func numbers() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)), rapid.Just(math.Inf(-1)), rapid.Just(0.0), rapid.Float64Range(0, 1e10))
}

func TestAnythingCanBeDrawn(t *testing.T) {
	text := rapid.OneOf(rapid.String().Filter(func(s string) bool {
		return !strings.Contains(s, "NaN") && !strings.Contains(s, "Inf") && !strings.Contains(s, "{}")
	}), rapid.Just("<script>alert(1)</script>"), rapid.Just("\x00\xff]]>&amp;"), rapid.Just(strings.Repeat("w", 500)))
	ns := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1e10, 1e10))
	span := rapid.Custom(func(t *rapid.T) timeline.Interval { return timeline.Between(ns.Draw(t, "a"), ns.Draw(t, "b")) })
	tone := rapid.Custom(func(t *rapid.T) Tone {
		if rapid.Bool().Draw(t, "stage") {
			return StageTone(rapid.SampledFrom(timeline.Stages()).Draw(t, "of"))
		}
		return SeriesTone(rapid.IntRange(-1, 100).Draw(t, "series"))
	})
	axis := rapid.Custom(func(t *rapid.T) Axis {
		return Axis{text.Draw(t, "title"), Kind(rapid.IntRange(0, 2).Draw(t, "kind")), rapid.Bool().Draw(t, "log"), rapid.Bool().Draw(t, "whole")}
	})
	rapid.Check(t, func(t *rapid.T) {
		f := Frame{text.Draw(t, "title"), text.Draw(t, "about")}
		var w Waterfall
		var d CDF
		var b Boxes
		var s Series
		var bars Bars
		var l Lines
		h := Heatmap{Frame: f}
		w.Frame, d.Frame, b.Frame, s.Frame, bars.Frame, l.Frame = f, f, f, f, f, f
		l.X, l.Y, bars.Axis = axis.Draw(t, "x"), axis.Draw(t, "y"), axis.Draw(t, "bars")
		for range rapid.IntRange(0, 2).Draw(t, "n") {
			label, tn, at := text.Draw(t, "label"), tone.Draw(t, "tone"), span.Draw(t, "at")
			w.Rows = append(w.Rows, Row{label, label, tn, ns.Draw(t, "from"), ns.Draw(t, "to"), at, ns.Draw(t, "tail"), label, rapid.Bool().Draw(t, "absent")})
			var dist timeline.Distribution
			last := timeline.Interval{Earliest: math.MinInt64, Latest: math.MinInt64}
			for range rapid.IntRange(0, 3).Draw(t, "steps") {
				if i := span.Draw(t, "step"); last.Before(i) {
					dist.Steps = append(dist.Steps, timeline.Step{Interval: i, Mass: 0.3})
					last = i
				}
			}
			d.Curves = append(d.Curves, Curve{label, tn, dist})
			b.Rows = append(b.Rows, Box{label, label, tn, at.Earliest, at.Earliest, at.Mid(), at.Latest, at.Latest, ns.Draw(t, "least"), ns.Draw(t, "most"), []int64{ns.Draw(t, "out")}, label})
			v := numbers().Draw(t, "v")
			h.Rows, h.Columns, h.Cells = append(h.Rows, label), append(h.Columns, label), append(h.Cells, []float64{v})
			s.Lines = append(s.Lines, SeriesLine{label, tn, []Bin{{v, numbers().Draw(t, "x"), at.Earliest, at.Mid(), at.Latest}, {0, 1, 0, 1, 2}}})
			s.Events = append(s.Events, Event{v, label})
			bars.Rows = append(bars.Rows, Bar{label, []Part{{label, tn, v}}, label})
			p := Point{v, numbers().Draw(t, "y"), numbers().Draw(t, "low"), numbers().Draw(t, "high")}
			l.Curves = append(l.Curves, Line{Label: label, Tone: tn, Points: []Point{p, {1, 2, 0, 0}, p}})
			l.Spans = append(l.Spans, Span{v, p.Y, label, tn})
			l.Levels = append(l.Levels, Level{v, label})
		}
		for _, c := range []Chart{w, d, b, h, s, bars, l, Stack{f, []Chart{w, d}}} {
			draw(t, c)
		}
	})
}

// Ticks are in order, within the axis, and their labels do not touch.
func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Float64Range(-1e12, 1e12).Draw(t, "lo")
		width := rapid.Float64Range(1e-3, 1e12).Draw(t, "width")
		a := Axis{Kind: Kind(rapid.IntRange(0, 2).Draw(t, "kind")), Log: rapid.Bool().Draw(t, "log")}
		if a.Log {
			lo = math.Abs(lo) + 1e-3
		}
		if width < math.Abs(lo)*1e-9 {
			t.Skip("an axis that floating point cannot resolve")
		}
		s := newScale(a, span{lo, lo + width}, 100, 700)
		last := math.Inf(-1)
		labels := map[string]bool{}
		for _, tick := range s.ticks(48) {
			if tick.at < 99.9 || tick.at > 700.1 || tick.at-last < 47.9 {
				t.Fatalf("tick %q at %v, after one at %v", tick.label, tick.at, last)
			}
			if labels[tick.label] {
				t.Fatalf("two ticks say %q", tick.label)
			}
			labels[tick.label] = true
			last = tick.at
		}
	})
}

func TestTicksAreRound(t *testing.T) {
	for _, test := range []struct {
		axis    Axis
		span    span
		want    string
		caption string
	}{
		{Axis{Title: "t"}, span{0, 3.2e9}, "0.0 0.5 1.0 1.5 2.0 2.5 3.0", "t (s)"},
		{Axis{}, span{0, 204e6}, "0 50 100 150 200", " (ms)"},
		{Axis{}, span{203.1e6, 203.4e6}, "203.10 203.15 203.20 203.25 203.30 203.35 203.40", " (ms)"},
		{Axis{Kind: Portion}, span{0, 1}, "0 20 40 60 80 100", " (%)"},
		{Axis{Log: true}, span{8e6, 3.1e9}, "10 100 1000", " (ms)"},
		{Axis{Kind: Number}, span{-12, -3}, "-12 -10 -8 -6 -4", ""},
		{Axis{}, span{5, 5}, "4.8 4.9 5.0 5.1 5.2", " (ns)"},
		{Axis{}, empty, "0.0 0.2 0.4 0.6 0.8 1.0", " (ms)"},
	} {
		s := newScale(test.axis, test.span, 0, 400)
		var got []string
		for _, tick := range s.ticks(48) {
			got = append(got, tick.label)
		}
		if strings.Join(got, " ") != test.want || s.caption() != test.caption {
			t.Errorf("%v: got %q in %q, want %q in %q", test.span, strings.Join(got, " "), s.caption(), test.want, test.caption)
		}
	}
}

// A curve of very many steps is drawn with few, and the band still holds all of them.
func TestCurvesAreJoinedOutwards(t *testing.T) {
	var steps []timeline.Step
	for i := range int64(20_000) {
		at := i * i * 1000
		steps = append(steps, timeline.Step{Interval: timeline.Between(at, at+500), Mass: 1.0 / 20_000})
	}
	x := newScale(Axis{}, span{0, float64(steps[len(steps)-1].Latest)}, 0, 600)
	joined := join(steps, x)
	if len(joined) > mostSteps {
		t.Fatalf("%d steps are drawn", len(joined))
	}
	k, mass, drawn := 0, 0.0, 0.0
	for _, s := range steps {
		for drawn+joined[k].Mass <= mass+1e-9 {
			drawn += joined[k].Mass
			k++
		}
		mass += s.Mass
		if x.at(float64(s.Earliest)) < joined[k].from-1e-9 || x.at(float64(s.Latest)) > joined[k].to+1e-9 {
			t.Fatalf("step at %v lies outside of %+v", s.Interval, joined[k])
		}
	}
}

// What never came is missing at the end of a curve, and does not stretch the axis.
func TestNeverLeavesAGap(t *testing.T) {
	var b bytes.Buffer
	d := samples()["cdf"].(CDF)
	if err := SVG(&b, d); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "(ms)") {
		t.Error("the axis reaches to what never came")
	}
	s := join(d.Curves[0].Distribution.Steps, newScale(Axis{}, span{0, 1e9}, 0, 500))
	if last := s[len(s)-1]; !last.never {
		t.Errorf("the last step is %+v", last)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := "firmware=" + strings.Repeat("very-", 30) + "quick"
	got := fit(long, 150, textSize)
	if textWidth(got, textSize) > 150 || !strings.HasPrefix(got, "firm") || !strings.HasSuffix(got, "quick") {
		t.Errorf("cut to %q", got)
	}
	svg := draw(t, Waterfall{Rows: []Row{{Label: long, To: 5}}})
	if !strings.Contains(svg, "<title>"+long+"</title>") {
		t.Error("the whole name is nowhere")
	}
}

func TestTonesDiffer(t *testing.T) {
	seen := map[string]int{}
	for i := range 32 {
		tone := SeriesTone(i)
		key := tone.class() + tone.dash()
		if k, ok := seen[key]; ok {
			t.Errorf("series %d and %d look the same", k, i)
		}
		seen[key] = i
	}
	looks := map[string]timeline.Stage{}
	for _, s := range timeline.Stages() {
		tone := StageTone(s)
		if tone == Plain {
			t.Errorf("%s has no tone", s)
		}
		c := newCanvas(wide)
		tone.marker(c, 0, 0)
		look := stageTones[tone-1].marker + fmt.Sprint(tone.lost(), tone.paint())
		if other, ok := looks[look]; ok {
			t.Errorf("%s and %s look the same", s, other)
		}
		looks[look] = s
	}
}

// Colours have the contrast that WCAG 2 asks for: 4.5 for text, 3 for what is drawn.
func TestContrast(t *testing.T) {
	for scheme, text := range map[string]string{"light": lightColours, "dark": darkColours} {
		colours := map[string]float64{}
		for _, pair := range strings.Split(text, ";") {
			name, value, _ := strings.Cut(strings.TrimPrefix(pair, "--"), ":")
			colours[name] = luminance(t, value)
		}
		check := func(front, back string, least float64) {
			a, b := colours[front], colours[back]
			if got := (max(a, b) + 0.05) / (min(a, b) + 0.05); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", scheme, front, back, got, least)
			}
		}
		for _, back := range []string{"ground", "panel"} {
			for _, front := range []string{"ink", "soft", "pass", "fail", "open"} {
				check(front, back, 4.5)
			}
		}
		for _, front := range []string{"ack", "light", "firmware", "carrier", "traffic", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"} {
			check(front, "ground", 3)
		}
		for i := range heatColours {
			text := "hl"
			if i >= heatColours/2 {
				text = "hd"
			}
			check(text, fmt.Sprintf("h%d", i), 4.5)
		}
	}
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	hex := strings.TrimPrefix(colour, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || len(hex) != 6 {
		t.Fatalf("%q is no colour", colour)
	}
	part := func(v uint64) float64 {
		c := float64(v&255) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(n>>16) + 0.7152*part(n>>8) + 0.0722*part(n)
}

// Of what never came, a curve shows only that it is missing.
func TestCDFEndsBelowWhatNeverCame(t *testing.T) {
	d := CDF{Curves: []Curve{{Distribution: timeline.Distribution{Steps: []timeline.Step{
		{Interval: timeline.Between(10*ms, 20*ms), Mass: 0.75},
		{Interval: timeline.Between(30_000*ms, timeline.Never), Mass: 0.25},
	}}}}}
	c := newCanvas(wide)
	d.draw(c)
	curve := regexp.MustCompile(`<path d="([^"]*)" class="[^"]* curve`).FindStringSubmatch(c.b.String())
	if curve == nil {
		t.Fatal("there is no curve")
	}
	if got, want := strings.Count(curve[1], "V"), 2; got != want { // up at one end of the box, and at the other
		t.Errorf("the curve has %d steps, want %d: %s", got, want, curve[1])
	}
}

func TestWholeTicks(t *testing.T) {
	for _, tick := range newScale(Axis{Kind: Number, Whole: true}, span{1, 4}, 0, 800).ticks(40) {
		if strings.Contains(tick.label, ".") {
			t.Errorf("an axis of whole numbers has a tick at %s", tick.label)
		}
	}
}
