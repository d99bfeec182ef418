package clock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/calibration/clock"
)

// truth is a clock that runs at one rate against ours, and may step once.
type truth struct {
	base int64   // its clock minus ours at 0
	rate float64 // 1e-6 is a part per million
	step int64   // what it jumps by
	at   int64   // when
}

func (c truth) offset(ours int64) float64 {
	o := float64(c.base) + c.rate*float64(ours)
	if ours >= c.at && c.step != 0 {
		o += float64(c.step)
	}
	return o
}

// reads returns what it shows, in whole nanoseconds as clocks do.
func (c truth) reads(ours int64) int64 { return ours + int64(math.Floor(c.offset(ours))) }

// exchange asks it: the question takes there, the answer back.
func (c truth) exchange(sent, there, back int64) clock.Exchange {
	return clock.Exchange{Sent: sent, Its: c.reads(sent + there), Received: sent + there + back}
}

// drawn makes batches of exchanges with a clock. The delays may be anything, and are all on one
// way if the draw says so.
func drawn(t *rapid.T, c truth, batches, exchanges int, slowest int64) []clock.Batch {
	now := rapid.Int64Range(0, 1e12).Draw(t, "begin")
	oneWay := rapid.Bool().Draw(t, "one way")
	var list []clock.Batch
	for i := range batches {
		b := clock.Batch{When: clock.During}
		switch i {
		case 0:
			b.When = clock.Before
		case batches - 1:
			b.When = clock.After
		}
		for range exchanges {
			there := rapid.Int64Range(0, slowest).Draw(t, "there")
			back := rapid.Int64Range(0, slowest).Draw(t, "back")
			if oneWay {
				back = 0
			}
			b.Exchanges = append(b.Exchanges, c.exchange(now, there, back))
			now += there + back + rapid.Int64Range(0, 1e5).Draw(t, "pause")
		}
		now += rapid.Int64Range(0, 1e10).Draw(t, "gap")
		list = append(list, b)
	}
	return list
}

// Ensure that of a clock that runs at one rate nothing is ever claimed that is not so, whatever
// the delays were: not the offset, at any time, nor the rate, nor a step.
func TestFit_HoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := truth{base: rapid.Int64Range(-1e15, 1e15).Draw(t, "base"), rate: rapid.Float64Range(-clock.DefaultDrift, clock.DefaultDrift).Draw(t, "rate")}
		c.base -= int64(c.rate * 1e12) // the rate is against times far from 0
		batches := drawn(t, c, rapid.IntRange(2, 6).Draw(t, "batches"), rapid.IntRange(1, 8).Draw(t, "exchanges"),
			rapid.SampledFrom([]int64{0, 1, 1000, 1e6, 1e9}).Draw(t, "slowest"))
		r, err := clock.Fit("gpu1", batches, clock.Options{})
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		if ppm := c.rate * 1e6; ppm < r.Drift.Low-1e-6 || ppm > r.Drift.High+1e-6 || r.Drift.Mid < r.Drift.Low || r.Drift.Mid > r.Drift.High {
			t.Fatalf("drift %v does not hold %v", r.Drift, ppm)
		}
		begin, end := r.Bounds[0].AtNS, r.Bounds[len(r.Bounds)-1].AtNS
		for range 5 {
			at := rapid.Int64Range(begin-1e12, end+1e12).Draw(t, "at")
			o, got := c.offset(at), r.At(at)
			if o < float64(got.Earliest)-1 || o > float64(got.Latest)+1 {
				t.Fatalf("at %d the offset is %.1f, not within %v", at, o, got)
			}
		}
		for i, b := range r.Batches {
			if o := c.offset(b.AtNS); o < float64(b.LowNS)-1 || o > float64(b.HighNS)+1 {
				t.Fatalf("batch %d at %d: the offset is %.1f, not within %d..%d", i, b.AtNS, o, b.LowNS, b.HighNS)
			}
		}
		// Nor is more known than there is to know: a clock at our own rate, with an offset that no
		// exchange contradicts, may be this one.
		low, high := int64(math.MinInt64), int64(math.MaxInt64)
		for _, b := range batches {
			for _, x := range b.Exchanges {
				low, high = max(low, x.Its-x.Received), min(high, x.Its-x.Sent)
			}
		}
		if o := r.Offset; low <= high && (o.LowNS > low+1 || o.HighNS < high-1) {
			t.Fatalf("the offset is said to be %d..%d, and %d..%d agrees with all exchanges", o.LowNS, o.HighNS, low, high)
		}
	})
}

// Ensure a step that the bounds cannot hide is refused, and that what is said of it is so: it
// was between these batches, and at least so large.
func TestFit_FindsSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := truth{base: rapid.Int64Range(-1e12, 1e12).Draw(t, "base"), rate: rapid.Float64Range(-50e-6, 50e-6).Draw(t, "rate")}
		n := rapid.IntRange(2, 6).Draw(t, "batches")
		slowest := int64(1e5)
		batches := drawn(t, c, n, 4, slowest)
		k := rapid.IntRange(1, n-1).Draw(t, "stepped before")
		// More than the bounds of both sides and all drift between hide.
		first, last := batches[0].Exchanges[0], batches[n-1].Exchanges[3]
		hidden := 4*slowest + int64(2*clock.DefaultDrift*float64(last.Received-first.Sent)) + 10
		step := rapid.Int64Range(hidden+1, 10*hidden).Draw(t, "step")
		if rapid.Bool().Draw(t, "back") {
			step = -step
		}
		for _, b := range batches[k:] {
			for i := range b.Exchanges {
				b.Exchanges[i].Its += step
			}
		}
		_, err := clock.Fit("gpu1", batches, clock.Options{})
		var e *clock.StepError
		if !errors.As(err, &e) || !errors.Is(err, clock.ErrStep) {
			t.Fatalf("err = %v, want a step of %d before batch %d", err, step, k)
		}
		if e.After >= k || e.Before < k {
			t.Fatalf("found between %d and %d, is before %d", e.After, e.Before, k)
		}
		if !e.Certain || (e.AtLeast > 0) != (step > 0) || math.Abs(float64(e.AtLeast)) > math.Abs(float64(step)) ||
			math.Abs(float64(e.AtLeast)) < math.Abs(float64(step))-float64(hidden) {
			t.Fatalf("at least %d (certain %v), is %d, hidden %d", e.AtLeast, e.Certain, step, hidden)
		}
	})
}

// batches has n of them, 10 s apart, of exchanges that all take rtt there and back.
func batches(c truth, n int, rtt int64) []clock.Batch {
	var list []clock.Batch
	for i := range n {
		b := clock.Batch{When: clock.During}
		for j := range int64(clock.DefaultExchanges) {
			b.Exchanges = append(b.Exchanges, c.exchange(int64(i)*1e10+j*2*rtt, rtt/2, rtt/2))
		}
		list = append(list, b)
	}
	list[0].When, list[n-1].When = clock.Before, clock.After
	return list
}

func TestFit_Refuses(t *testing.T) {
	const ms = int64(time.Millisecond)
	inside := batches(truth{}, 3, 50_000)
	for i := 20; i < len(inside[1].Exchanges); i++ {
		inside[1].Exchanges[i].Its += 5 * ms
	}
	for i := range inside[2].Exchanges {
		inside[2].Exchanges[i].Its += 5 * ms
	}
	twice := batches(truth{}, 5, 50_000)
	for k, by := range []int64{0, 0, 30 * ms, 0, -30 * ms} {
		for i := range twice[k].Exchanges {
			twice[k].Exchanges[i].Its += by
		}
	}
	// 20 ppm for two batches, then -20: within what clocks do, and no line.
	bent := batches(truth{rate: 20e-6}, 3, 50_000)
	bent = append(bent, batches(truth{rate: -20e-6, base: 800_000}, 6, 50_000)[3:]...)
	for _, tc := range []struct {
		name    string
		batches []clock.Batch
		want    []string
	}{
		{"step", batches(truth{step: 5 * ms, at: 25e9}, 6, 50_000), []string{
			"host gpu1", "stepped ahead of ours by at least", "between batch 3 and batch 4 of 6", "suspended"}},
		{"back", batches(truth{step: -5 * ms, at: 25e9}, 6, 50_000), []string{"stepped behind ours by at least"}},
		{"inside", inside, []string{"during batch 2 of 3", "by at least"}},
		{"twice", twice, []string{"nor with a single step", "between batch 2 and batch 3 of 5"}},
		{"bent", bent, []string{"did not run at one rate", "between batch 3 and batch 4 of 6"}},
		{"small", batches(truth{step: int64(time.Millisecond), at: 25e9}, 6, 50_000), []string{
			"ahead of ours by at least 9", "or changed its rate, between batch 3 and batch 4 of 6", "time service"}},
	} {
		_, err := clock.Fit("gpu1", tc.batches, clock.Options{})
		if !errors.Is(err, clock.ErrStep) {
			t.Errorf("%s: err = %v, want ErrStep", tc.name, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", tc.name, err, want)
			}
		}
	}

	mute := batches(truth{}, 3, 50_000)
	mute[1].Exchanges, mute[2].Exchanges = nil, mute[2].Exchanges[:1]
	mute[2].Exchanges[0].Received = mute[2].Exchanges[0].Sent - 1
	for name, list := range map[string][]clock.Batch{"none": nil, "one": batches(truth{}, 2, 50_000)[:1], "mute": mute} {
		_, err := clock.Fit("gpu1", list, clock.Options{})
		if !errors.Is(err, clock.ErrTooFew) || !strings.Contains(err.Error(), "gpu1") {
			t.Errorf("%s: err = %v, want ErrTooFew", name, err)
		}
	}
}

// Ensure the bounds of a quiet path are half its round trip, and that the rate follows from them
// and the time between the first batch and the last.
func TestFit_Quiet(t *testing.T) {
	r, err := clock.Fit("gpu1", batches(truth{base: 5e9, rate: 3e-6}, 7, 20_000), clock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Offset.Half(); got > 10_100 || got < 9_000 {
		t.Errorf("bound %v, want half of 20 µs", got)
	}
	if got, want := r.Drift.High-r.Drift.Low, 2*20e3/60e9*1e6; got > want*1.01 || got < want/2 {
		t.Errorf("drift within %.3f ppm, want about %.3f", got, want)
	}
	if got := r.Offset.MidNS; got < 5e9+180_000-1000 || got > 5e9+180_000+1000 {
		t.Errorf("offset %d, want 5 s and 180 µs", got)
	}
	if got, want := r.Exchanges, 7*64; got != want {
		t.Errorf("%d exchanges, want %d", got, want)
	}
	if m := r.Missing(); m != nil {
		t.Errorf("missing %q", m)
	}
	// Outside of the batches it may run at any rate up to the limit.
	after := r.At(r.Offset.AtNS + int64(time.Hour))
	if got, want := after.Width()-r.Offset.Interval().Width(), time.Duration(2*3600*200_000); got != want {
		t.Errorf("an hour later wider by %v, want %v", got, want)
	}
}

// Ensure a path that is slower one way has the truth within the bounds, at their end.
func TestFit_Asymmetric(t *testing.T) {
	var list []clock.Batch
	for i := range int64(3) {
		list = append(list, clock.Batch{When: clock.During, Exchanges: []clock.Exchange{truth{}.exchange(i*1e10, 5e6, 0)}})
	}
	r, err := clock.Fit("gpu1", list, clock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := r.Offset
	if b.LowNS > 0 || b.HighNS < 0 {
		t.Errorf("0 is not within %+v", b)
	}
	if b.MidNS < 2e6 || b.HighNS < 4_900_000 {
		t.Errorf("%+v: the middle is half the difference of the ways off, and nothing can tell", b)
	}
	if got, want := r.Missing(), []string{"no batch before", "no batch after"}; !cmp.Equal(got, want) {
		t.Errorf("missing %q, want %q", got, want)
	}
}

// Ensure what is told of exchanges is of all that answered, in whatever order they took long, and
// of no others.
func TestFit_Numbers(t *testing.T) {
	c := truth{base: 5_000_000}
	list := []clock.Batch{
		{When: clock.Before, Exchanges: []clock.Exchange{c.exchange(0, 400, 500), c.exchange(10_000, 50, 50), c.exchange(20_000, 150, 150), {Sent: 30_000, Received: 29_999}}},
		{When: clock.During, Exchanges: []clock.Exchange{{Sent: 1e9, Received: 1e9 - 1}, {Sent: math.MinInt64, Its: 0, Received: math.MaxInt64}}},
		{When: clock.After, Exchanges: []clock.Exchange{c.exchange(2e9, 300, 300), c.exchange(2e9+10_000, 100, 100), c.exchange(2e9+20_000, 350, 350)}},
	}
	r, err := clock.Fit("gpu1", list, clock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Exchanges != 9 || r.Unusable != 3 || r.RTTBestNS != 100 || r.RTTMedianNS != 600 {
		t.Errorf("%d exchanges, %d unusable, best %d, median %d", r.Exchanges, r.Unusable, r.RTTBestNS, r.RTTMedianNS)
	}
	want := []clock.Summary{
		{When: clock.Before, AtNS: 10_050, Exchanges: 4, Unusable: 1, RTTBestNS: 100, RTTMedianNS: 300},
		{When: clock.During, Exchanges: 2, Unusable: 2},
		{When: clock.After, AtNS: 2e9 + 10_100, Exchanges: 3, RTTBestNS: 200, RTTMedianNS: 600},
	}
	for i, b := range r.Batches {
		b.LowNS, b.HighNS = 0, 0
		if b != want[i] {
			t.Errorf("batch %d: %+v, want %+v", i, b, want[i])
		}
	}
	var ats []int64
	for _, b := range r.Bounds {
		ats = append(ats, b.AtNS)
		if b.LowNS > c.base || b.HighNS < c.base || b.MidNS < b.LowNS || b.MidNS > b.HighNS || b.Half() < time.Duration(b.HighNS-b.LowNS)/2 {
			t.Errorf("%+v: want %d within", b, c.base)
		}
	}
	if want := []int64{0, 10_050, 2e9 + 10_100, 2e9 + 20_700}; !cmp.Equal(ats, want) {
		t.Errorf("bounds at %d, want %d", ats, want)
	}
	if first := r.Batches[0]; first.HighNS-first.LowNS < 100 || first.HighNS-first.LowNS > 104 {
		t.Errorf("%+v: want the best round trip, a nanosecond for the rounding of each stamp, and one for the rate", first)
	}
	// Outside of the exchanges the clock may run at any rate within the limit.
	before, after := r.At(-1e9).Width()-r.At(0).Width(), r.At(3e9+20_700).Width()-r.At(2e9+20_700).Width()
	if before != 400_000 || after != 400_000 {
		t.Errorf("within a second bounds widen by %d ns and %d ns, want 400000: 200 ppm on both sides", before, after)
	}
	if here := clock.Here("gpu1", time.Now()); here.At(5) != (clock.Result{}).At(5) || here.Missing() != nil {
		t.Errorf("%v, %v: the clock of this machine is this machine's", here.At(5), here.Missing())
	}
}

// Ensure a step among more exchanges than it is looked for in is found all the same, and not said
// to be anywhere it was not.
func TestFit_StepAmongMany(t *testing.T) {
	const step = 5_000_000
	c := truth{step: step, at: 25e9}
	list := batches(c, 6, 50_000)
	for i := range list {
		from := list[i].Exchanges[0].Sent
		for j := range int64(1000) { // slow ones tell less
			list[i].Exchanges = append(list[i].Exchanges, c.exchange(from+1e8+j*2e6, 400_000, 600_000))
		}
	}
	_, err := clock.Fit("gpu1", list, clock.Options{})
	var e *clock.StepError
	if !errors.As(err, &e) {
		t.Fatalf("err = %v", err)
	}
	if e.After != 2 || e.Before != 3 || e.Batches != 6 || e.Limit < 199.999 || e.Limit > 200.001 || e.AtLeast > step || e.AtLeast < step*9/10 ||
		e.Since < 20*time.Second || e.Since > 25*time.Second || e.Until < 25*time.Second || e.Until > 33*time.Second {
		t.Errorf("%+v", *e)
	}
}

func TestResult_Rebooted(t *testing.T) {
	r := clock.Result{Host: "gpu1", Boot: "a", ItsBoot: "b"}
	for _, tc := range []struct{ boot, its, want string }{
		{"a", "b", ""}, {"", "", ""}, {"c", "b", "this machine has booted since"}, {"a", "c", "gpu1 has booted since"},
	} {
		if got, ok := r.Rebooted(tc.boot, tc.its); got != tc.want || ok != (tc.want != "") {
			t.Errorf("Rebooted(%q, %q) = %q, %v; want %q", tc.boot, tc.its, got, ok, tc.want)
		}
	}
}

// Ensure two calibrations of the same boots give the mean rate between them, and that a step
// between them is told.
func TestResult_Since(t *testing.T) {
	at := func(c truth, from int64) clock.Result {
		list := batches(c, 2, 20_000)
		for _, b := range list {
			for i, x := range b.Exchanges {
				b.Exchanges[i] = c.exchange(x.Sent+from, 10_000, 10_000)
			}
		}
		r, err := clock.Fit("gpu1", list, clock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r.Boot, r.ItsBoot = "a", "b"
		return r
	}
	c := truth{base: 1e9, rate: 7e-6}
	first, later := at(c, 0), at(c, int64(time.Hour))
	drift, over, ok, err := later.Since(first)
	if err != nil || !ok || over < 59*time.Minute || drift.Low > 7 || drift.High < 7 || drift.High-drift.Low > 0.02 {
		t.Errorf("Since = %+v, %v, %v, %v", drift, over, ok, err)
	}
	c.step, c.at = 2e9, int64(time.Hour)/2
	if _, _, ok, err := at(c, int64(time.Hour)).Since(first); !ok || !errors.Is(err, clock.ErrStep) {
		t.Errorf("a step between: ok %v, err %v", ok, err)
	}
	later.ItsBoot = "c"
	if _, _, ok, err := later.Since(first); ok || err != nil {
		t.Errorf("after a reboot: ok %v, err %v", ok, err)
	}
}

// Ensure what is kept says the same when it is read again, and can be read by people within the
// width of their terminal.
func TestText(t *testing.T) {
	r, err := clock.Fit("gpu1", batches(truth{base: -5e9, rate: -3e-6}, 7, 20_000), clock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back clock.Result
	if err := json.Unmarshal(data, &back); err != nil || cmp.Diff(r, back) != "" {
		t.Errorf("read back: %v\n%s", err, cmp.Diff(r, back))
	}
	for _, width := range []int{0, 60, 80} {
		var out bytes.Buffer
		if err := clock.Text(&out, data, width); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"gpu1", "5.00018", "behind", "-3.00 ppm", "20.0 µs", "before", "after", "448 exchanges"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("width %d: %q is missing in\n%s", width, want, out.String())
			}
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > max(width, 60) && n > 80 {
				t.Errorf("width %d: %d characters in %q", width, n, line)
			}
		}
	}
	here, err := json.Marshal(clock.Here("gpu2", time.Unix(0, 0).UTC()))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := clock.Text(&out, here, 80); err != nil || !strings.Contains(out.String(), "0, exactly") {
		t.Errorf("%v: %s", err, out.String())
	}
	if err := clock.Text(&out, json.RawMessage("{"), 80); err == nil {
		t.Error("what is damaged is taken for a result")
	}
}

func FuzzText(f *testing.F) {
	r, err := clock.Fit("gpu1", batches(truth{base: 7}, 2, 20_000), clock.Options{})
	if err != nil {
		f.Fatal(err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(data), 80)
	f.Add([]byte(`{"host":"gpu1","same_clock":true}`), 1)
	f.Fuzz(func(t *testing.T, data []byte, width int) {
		var out bytes.Buffer
		var r clock.Result
		if err := clock.Text(&out, data, width%1000); err != nil || json.Unmarshal(data, &r) != nil {
			return
		}
		if out.Len() == 0 {
			t.Error("nothing is said")
		}
		r.At(0)
	})
}

func BenchmarkFit(b *testing.B) {
	list := batches(truth{base: 5e9, rate: 3e-6}, 7, 20_000)
	for b.Loop() {
		if _, err := clock.Fit("gpu1", list, clock.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFit_Step(b *testing.B) {
	list := batches(truth{base: 5e9, rate: 3e-6, step: 5e6, at: 35e9}, 360, 200_000)
	for b.Loop() {
		if _, err := clock.Fit("gpu1", list, clock.Options{}); err == nil {
			b.Fatal("not refused")
		}
	}
}
