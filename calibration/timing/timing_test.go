package timing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/calibration/timing"
	"github.com/ocslab/ocslab/timeline"
)

const msec = int64(time.Millisecond)

// observed is a lab of one switch that was toggled n times: light comes after 20 ms, known to
// 4 ms, and each toggle is later than that by what late says.
func observed(n int, late func(i int) int64) timing.Observations {
	o := timing.Observations{
		From: "dp", To: "pp", Toggles: n, Nulls: 6, Window: 10 * time.Second, Seed: 1,
		Exchanges: map[string][]time.Duration{"rail0": nil},
		Readings:  map[string][][]timeline.Sample{"rail0": nil},
		Averaging: map[string]time.Duration{"rail0": time.Millisecond},
	}
	for i := range 100 {
		o.Exchanges["rail0"] = append(o.Exchanges["rail0"], time.Duration(i+1)*10*time.Microsecond)
	}
	var row []timeline.Sample
	for i := range int64(50) {
		row = append(row, timeline.Sample{Interval: timeline.Point(i * 2 * msec)})
	}
	o.Readings["rail0"] = [][]timeline.Sample{row}
	for i := range n {
		began := int64(i) * 1000 * msec
		light := began + 20*msec + late(i)
		mark := func(stage timeline.Stage, subject, source string, at timeline.Interval) timeline.Mark {
			return timeline.Mark{Stage: stage, Subject: subject, Host: "h", Source: source, Interval: at, Reconfiguration: i + 1}
		}
		o.Seen = append(o.Seen, mark(timeline.Command, "rail0", "driver", timeline.Point(began)),
			mark(timeline.Light, "rail0/33", "opm", timeline.Between(light-2*msec, light+2*msec)))
		o.Expected = append(o.Expected, timeline.Expectation{Reconfiguration: i + 1, Stage: timeline.Light, Subject: "rail0/33"})
		truth := mark(timeline.Light, "rail0/33", "", timeline.Point(light+msec))
		o.Truth = append(o.Truth, truth)
	}
	o.Merged = o.Seen
	return o
}

func none(int) int64 { return 0 }

func floorOf(t *testing.T, b timing.Baseline, stage timeline.Stage) timing.Floor {
	t.Helper()
	for _, f := range b.Floors {
		if f.Stage == stage {
			return f
		}
	}
	t.Fatalf("no floor of %s in %+v", stage, b.Floors)
	return timing.Floor{}
}

func TestFloorIsOfWhatItIsMade(t *testing.T) {
	b := timing.Of(observed(20, none))
	if !b.Complete() {
		t.Errorf("missing: %q", b.Missing)
	}
	f := floorOf(t, b, timeline.Light)
	want := timing.Floor{Stage: timeline.Light, NS: 4 * msec, ResolutionNS: 4 * msec, Toggles: 20, Of: []timing.Part{
		{What: "intervals of opm", NS: 4 * msec},
		{What: "readings of rail0, averaged", NS: 3 * msec},    // every 2 ms, averaged over 1 ms
		{What: "exchanges with rail0 vary", NS: 450_500 - 500}, // p95 less p50 of 10 µs to 1 ms
		{What: "halves of 20 equals"},
	}}
	want.Of[2].NS = f.Of[2].NS
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	if got := f.Of[2].NS; got < 440_000 || got > 450_000 {
		t.Errorf("exchanges vary by %d, want about 445 µs", got)
	}
}

// Slow monitors are a floor even where intervals are narrow, and so is a device that is late in half
// of all cases.
func TestWhatMakesTheFloor(t *testing.T) {
	o := observed(20, none)
	o.Averaging["rail0"] = 50 * time.Millisecond
	if f := floorOf(t, timing.Of(o), timeline.Light); f.NS != 52*msec || f.Of[0].What != "readings of rail0, averaged" {
		t.Errorf("with 50 ms of averaging: %+v", f)
	}
	two := rand.New(rand.NewPCG(1, 2))
	f := floorOf(t, timing.Of(observed(20, func(int) int64 { return int64(two.IntN(2)) * 100 * msec })), timeline.Light)
	if f.ResolutionNS != 4*msec || f.EqualsNS < 50*msec || f.NS != f.EqualsNS || !strings.HasPrefix(f.Of[0].What, "halves of 20 equals") {
		t.Errorf("light in one of two times: %+v", f)
	}
}

func TestAt(t *testing.T) {
	f := timing.Floor{ResolutionNS: 4 * msec, EqualsNS: 10 * msec, NS: 10 * msec, Toggles: 16}
	for n, want := range map[int]int64{1000: 4, timing.MinToggles: 4, 4: 20, 1: 40, 0: 40} {
		if got := f.At(n); got != time.Duration(want*msec) {
			t.Errorf("At(%d) = %v, want %d ms", n, got, want)
		}
	}
}

// More repeats never make a floor worse.
func TestAtFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.Int64Range(0, 1<<62)
		f := timing.Floor{ResolutionNS: some.Draw(t, "resolution"), EqualsNS: some.Draw(t, "equals"), Toggles: rapid.IntRange(0, 1000).Draw(t, "toggles")}
		n := rapid.IntRange(0, 1000).Draw(t, "n")
		if a, b := f.At(n), f.At(n+1); b > a || b < time.Duration(f.ResolutionNS) {
			t.Fatalf("At(%d) = %v, At(%d) = %v", n, a, n+1, b)
		}
	})
}

func TestWhatIsMissingIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*timing.Observations)
		want  string
	}{
		"no toggles":    {func(o *timing.Observations) { o.Toggles, o.Seen, o.Merged, o.Expected = 0, nil, nil, nil }, "nothing was moved"},
		"few toggles":   {func(o *timing.Observations) { *o = observed(3, none) }, "3 toggles are too few"},
		"few exchanges": {func(o *timing.Observations) { o.Exchanges["rail0"] = o.Exchanges["rail0"][:5] }, "5 exchanges are too few"},
		"no monitors":   {func(o *timing.Observations) { o.Readings = nil }, "none of its power monitors"},
		"no nulls":      {func(o *timing.Observations) { o.Nulls = 0 }, "spurious events are not known"},
		"no light": {func(o *timing.Observations) {
			o.Expected = append(o.Expected, timeline.Expectation{Reconfiguration: 1, Stage: timeline.CarrierUp, Subject: "gpu1/ens1f0"})
		}, "carrier-up was expected 1 time more often"},
		"said before": {func(o *timing.Observations) { o.Missing = []string{"the clock stepped"} }, "the clock stepped"},
	} {
		o := observed(20, none)
		c.spoil(&o)
		b := timing.Of(o)
		if b.Complete() || !strings.Contains(strings.Join(b.Missing, "\n"), c.want) {
			t.Errorf("%s: missing %q, want %q", name, b.Missing, c.want)
		}
		if _, err := json.Marshal(b); err != nil { // no NaN
			t.Errorf("%s: %v", name, err)
		}
	}
	if f := floorOf(t, timing.Of(observed(3, none)), timeline.Light); f.EqualsNS != 0 {
		t.Errorf("3 toggles say that equals differ by %d", f.EqualsNS)
	}
}

func TestSpurious(t *testing.T) {
	o := observed(20, none)
	o.Idle = []timeline.Mark{
		{Stage: timeline.CarrierDown, Subject: "gpu1/ens1f0", Source: "counters", Reconfiguration: 1},
		{Stage: timeline.Ack, Subject: "rail0", Source: "driver", Reconfiguration: 1}, // of the null itself
	}
	got := map[string][3]float64{}
	for _, s := range timing.Of(o).Sources {
		got[s.Name+" "+string(s.Stage)] = [3]float64{float64(s.Spurious), s.PerMinute, s.PerMinuteHigh}
	}
	// In 6 windows of 10 s: 97.5 % bounds of Poisson rates are 3.689 for none and 5.572 for one
	// (Garwood 1936, tables).
	for what, want := range map[string][3]float64{"counters carrier-down": {1, 1, 5.572}, "opm light": {0, 0, 3.689}} {
		g, ok := got[what]
		if !ok || g[0] != want[0] || g[1] != want[1] || g[2] < want[2]-0.001 || g[2] > want[2]+0.001 {
			t.Errorf("%s: %v, want %v", what, g, want)
		}
	}
	if _, ok := got["driver ack"]; ok {
		t.Error("the ack of a null is told as spurious")
	}
}

func TestAccuracyAgainstWhatIsClaimed(t *testing.T) {
	o := observed(20, none)
	o.Truth[0].Interval = timeline.Point(o.Truth[0].Mid() + 10*msec) // one that neither is held nor claimed
	// The module tells of light, too, and statistics leave it out.
	o.Seen = append(o.Seen, timeline.Mark{Stage: timeline.Light, Subject: "gpu1/ens1f0", Source: "module", Reconfiguration: 1})
	o.Truth = append(o.Truth, timeline.Mark{Stage: timeline.Light, Subject: "gpu1/ens1f0", Reconfiguration: 1})
	b := timing.Of(o)
	want := []timing.Accuracy{{Stage: timeline.Light, Marks: 20, Hold: 19, Within: 19, ErrP50NS: msec, ErrP95NS: b.Accuracy[0].ErrP95NS, ErrMaxNS: 11 * msec}}
	if diff := cmp.Diff(want, b.Accuracy); diff != "" {
		t.Error(diff)
	}
	o.Truth = nil
	if b := timing.Of(o); b.Accuracy != nil {
		t.Errorf("of a real lab: %+v", b.Accuracy)
	}
}

func TestJSONReadsBack(t *testing.T) {
	b := timing.Of(observed(20, none))
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := timing.Parse(data)
	if diff := cmp.Diff(b, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{
		``, `[]`, `{"floors":[{"stage":"luck"}]}`, `{"floors":[{"stage":"light"},{"stage":"light"}]}`,
		`{"floors":[{"stage":"light","floor_ns":-1}]}`, `{"switches":[{"averaging_ns":-1}]}`,
	} {
		if _, err := timing.Parse(json.RawMessage(bad)); !errors.Is(err, timing.ErrData) {
			t.Errorf("Parse(%s) = %v, want ErrData", bad, err)
		}
	}
}

func TestTextSaysWhatCounts(t *testing.T) {
	o := observed(20, none)
	o.Missing, o.NotWatched = []string{"the clock stepped"}, []string{"gpu1: no bpf: permission denied"}
	text := textOf(t, timing.Of(o), 80)
	for _, want := range []string{
		"20 toggles between dp and pp; 6 windows of 10s in which nothing was done\n",
		"\nlight  4.000     4.000   0.000  intervals of opm\n",
		"missing:\n  the clock stepped\n", "not watched:\n  gpu1: no bpf", "100 %", "0..3.69",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, l := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(l) > 80 {
			t.Errorf("a line of more than 80 characters: %q", l)
		}
	}
	if err := timing.Text(&bytes.Buffer{}, json.RawMessage(`[]`), 80); !errors.Is(err, timing.ErrData) {
		t.Errorf("Text of what is none = %v", err)
	}
}

func textOf(t *testing.T, b timing.Baseline, width int) string {
	t.Helper()
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := timing.Text(&out, data, width); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func FuzzText(f *testing.F) {
	good, err := json.Marshal(timing.Of(observed(9, none)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(good), 80)
	f.Add([]byte(`{"toggles":1,"floors":[{"stage":"light","toggles":0,"of":[]}],"sources":[{}],"accuracy":[{}],"missing":["x"]}`), 1)
	f.Fuzz(func(t *testing.T, data []byte, width int) {
		b, err := timing.Parse(data)
		var out bytes.Buffer
		if textErr := timing.Text(&out, data, width); (textErr == nil) != (err == nil) {
			t.Fatalf("Parse says %v, Text %v", err, textErr)
		}
		for _, x := range b.Floors {
			for _, n := range []int{-1, 0, 1, 1 << 40} {
				if x.At(n) < 0 {
					t.Fatalf("a floor below 0: %+v", x)
				}
			}
		}
	})
}
