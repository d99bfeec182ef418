package widget

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/tuitest"
)

const ms = int64(time.Millisecond)

// anyAxis draws axes of all lengths, linear and logarithmic.
func anyAxis(t *rapid.T) TimeAxis {
	x := TimeAxis{From: rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-5000*ms, 5000*ms)).Draw(t, "from")}
	x.To = x.From + rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, 40_000*ms), rapid.Just(int64(math.MaxInt64/4))).Draw(t, "length")
	x.Knee = rapid.SampledFrom([]int64{0, 0, 1, 1000, ms, 100 * ms}).Draw(t, "knee")
	return x
}

// instants draws instants on, before and after an axis.
func instants(t *rapid.T, x TimeAxis) int64 {
	return rapid.OneOf(rapid.Int64Range(x.From, x.To), rapid.Int64Range(-8000*ms, 50_000*ms), rapid.SampledFrom([]int64{x.From, x.To, 0, math.MinInt64, math.MaxInt64})).Draw(t, "instant")
}

func intervals(t *rapid.T, x TimeAxis) timeline.Interval {
	return timeline.Between(instants(t, x), instants(t, x))
}

func anyBar(t *rapid.T, x TimeAxis) Bar {
	yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
	return Bar{
		Name: rapid.StringN(0, 30, -1).Draw(t, "name"), Role: canvas.Light,
		Start: intervals(t, x), End: intervals(t, x), First: intervals(t, x), HasStart: yes("start"), HasEnd: yes("end"), HasFirst: yes("first"),
		Lead: instants(t, x), HasLead: yes("lead"), Until: instants(t, x), Open: yes("open"), Growing: yes("growing"),
		Usual: instants(t, x), HasUsual: yes("usual"), Note: rapid.SampledFrom([]string{"", "not within 30s"}).Draw(t, "note"),
		Cells: []Value{V("203.1 ms ±0.4", canvas.Text), V("a", canvas.Dim)},
	}
}

func TestTimeAxis_Column(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, w := anyAxis(t), rapid.IntRange(1, 200).Draw(t, "w")
		i := intervals(t, x)
		a, b := x.Column(i.Earliest, w), x.Column(i.Latest, w)
		if a > b {
			t.Fatalf("%d is in column %d, and later %d in column %d", i.Earliest, a, i.Latest, b)
		}
		for _, ns := range []int64{i.Earliest, i.Latest} {
			if c := x.Column(ns, w); (c < 0) != (ns < x.From) || (c >= w) != (ns > x.To) {
				t.Fatalf("%d is in column %d of %+v", ns, c, x)
			}
		}
		if x.Column(x.From, w) != 0 || x.Column(x.To, w) != w-1 {
			t.Fatalf("%+v begins in column %d and ends in %d of %d", x, x.Column(x.From, w), x.Column(x.To, w), w)
		}
	})
}

func TestTimeAxis_ZoomPan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := anyAxis(t)
		for range rapid.IntRange(0, 80).Draw(t, "times") {
			if rapid.Bool().Draw(t, "zoom") {
				x = x.Zoom(rapid.SampledFrom([]float64{0.5, 2}).Draw(t, "part"))
			} else {
				x = x.Pan(rapid.SampledFrom([]float64{-0.125, 0.125}).Draw(t, "part"))
			}
			if x.From >= x.To {
				t.Fatalf("%+v", x)
			}
		}
	})
}

func TestTimeAxis_Ruler(t *testing.T) {
	for name, tc := range map[string]struct {
		x    TimeAxis
		want string
	}{
		"seconds":      {TimeAxis{To: 3300 * ms}, "0 s         1           2           3\n┬───────────┬───────────┬───────────┬───\n"},
		"milliseconds": {TimeAxis{To: 25 * ms}, "0 ms    5       10      15      20    25\n┬───────┬───────┬───────┬───────┬──────┬\n"},
		"logarithmic":  {TimeAxis{To: 6000 * ms, Knee: ms}, "0  1 ms    10 ms     100 ms    1 s\n┬──┬───────┬─────────┬─────────┬────────\n"},
		"zoomed":       {TimeAxis{From: 1400 * ms, To: 1450 * ms}, "1.40 s  1.41    1.42    1.43    1.44\n┬───────┬───────┬───────┬───────┬──────┬\n"},
	} {
		if got := tuitest.Draw(40, 2, tc.x.Ruler).String(); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}

// The labels of a ruler stand on the columns of their instants, as far as there is room.
func TestTimeAxis_Ruler_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := anyAxis(t)
		framed(t, func(a canvas.Area) { x.Ruler(a) })
		for _, tick := range x.ticks(rapid.IntRange(0, 200).Draw(t, "columns")) {
			if tick.ns < x.From || tick.ns > x.To {
				t.Fatalf("%+v is not on %+v", tick, x)
			}
		}
	})
}

// What is not known is never drawn smaller than it is: of each interval, the columns of all
// instants are drawn on, and where these are several, as what is not known.
func TestBar_NeverUnderstates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, w := anyAxis(t), rapid.IntRange(1, 120).Draw(t, "w")
		b := anyBar(t, x)
		c := tuitest.Draw(w, 1, func(a canvas.Area) { b.Draw(a, x) })
		check := func(has bool, i timeline.Interval) {
			if !has || i.Latest < x.From || i.Earliest > x.To {
				return
			}
			from, to := x.Column(i.Earliest, w), x.Column(i.Latest, w)
			at := x.Column(rapid.Int64Range(max(i.Earliest, x.From), min(i.Latest, x.To)).Draw(t, "truth"), w)
			for col := max(from, 0); col <= min(to, w-1); col++ {
				r := c.At(col, 0).Rune
				if from < to && r != BarMaybe || from == to && !strings.ContainsRune("█░◆", r) {
					t.Fatalf("%v covers columns %d to %d, of which %d is %q: %q", i, from, to, col, r, c.String())
				}
			}
			if at < from || at > to {
				t.Fatalf("an instant of %v is in column %d, not in %d to %d", i, at, from, to)
			}
		}
		check(b.HasStart, b.Start)
		check(b.HasFirst, b.First)
		check(b.HasEnd, b.End)
	})
}

// What is drawn as certainly gone lies between the start and what came back first, never in
// one of their intervals.
func TestBar_NeverOverstates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, w := anyAxis(t), rapid.IntRange(1, 120).Draw(t, "w")
		b := anyBar(t, x)
		back, hasBack := b.End, b.HasEnd
		if b.HasFirst {
			back, hasBack = b.First, true
		}
		c := tuitest.Draw(w, 1, func(a canvas.Area) { b.Draw(a, x) })
		for col := range w {
			if c.At(col, 0).Rune != BarGone {
				continue
			}
			alone := func(has bool, i timeline.Interval) bool {
				return has && x.Column(i.Earliest, w) == col && x.Column(i.Latest, w) == col
			}
			if alone(b.HasStart, b.Start) || alone(b.HasFirst, b.First) || alone(b.HasEnd, b.End) {
				continue
			}
			if !b.HasStart || !hasBack {
				t.Fatalf("gone without a start or an end: %+v: %q", b, c.String())
			}
			from, to := x.Column(b.Start.Latest, w), x.Column(back.Earliest, w)
			if col < from || col > to {
				t.Fatalf("column %d is gone, of %d to %d: %+v: %q", col, from, to, b, c.String())
			}
		}
	})
}

func TestWaterfall_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := anyAxis(t)
		n := rapid.IntRange(0, 30).Draw(t, "rows")
		rows := make([]Bar, n)
		for i := range rows {
			rows[i] = anyBar(t, x)
			rows[i].Name = fmt.Sprintf("%02d name", i)
		}
		var c *canvas.Canvas
		f := Waterfall{Axis: x, Corner: "since command", Heads: []string{"back at", "away"}, Rows: n, Row: func(i int) Bar { return rows[i] },
			Top: rapid.IntRange(0, max(0, n-1)).Draw(t, "top"), Cursor: rapid.IntRange(-1, n).Draw(t, "cursor"), Zone: func(i int) any { return i }, ZoneAxis: "axis"}
		framed(t, func(a canvas.Area) {
			f.Draw(a)
			c = tuitest.Draw(a.W, a.H, f.Draw)
		})
		if c.W < 16 {
			return
		}
		// The rows are there in their order, each with its zone.
		for i := range min(WaterfallRows(c.H), n-f.Top) {
			y := c.H - WaterfallRows(c.H) + i
			name := []rune{c.At(2, y).Rune, c.At(3, y).Rune}
			z, _, _, ok := c.Hit(1, y)
			if string(name) != fmt.Sprintf("%02d", f.Top+i) || !ok || z.ID != f.Top+i {
				t.Fatalf("line %d is %q with zone %v, want row %d:\n%s", y, string(name), z.ID, f.Top+i, c.String())
			}
		}
	})
}

// invented are bars of all kinds.
func invented() []Bar {
	at := func(from, to int64) timeline.Interval { return timeline.Between(from*ms, to*ms) }
	cells := func(back, away string) []Value { return []Value{V(back, canvas.Text), V(away, canvas.Text)} }
	return []Bar{
		{Name: "a mark", Role: canvas.Text, HasLead: true, End: at(203, 203), HasEnd: true, Cells: cells("203 ms", "")},
		{Name: "an outage", Role: canvas.Light, Start: at(3, 15), HasStart: true, End: at(1185, 1201), HasEnd: true, Cells: cells("1.19 s", "1.18 s"), Usual: 900 * ms, HasUsual: true},
		{Name: "not known well", Role: canvas.Light, Start: at(100, 600), HasStart: true, End: at(1500, 2900), HasEnd: true, Cells: cells("2.20 s", "1.9 s")},
		{Name: "hardly known", Role: canvas.Light, Start: at(100, 2000), HasStart: true, End: at(1500, 2900), HasEnd: true, Cells: cells("2.20 s", "1.2 s")},
		{Name: "since the light", Role: canvas.Series4, Lead: 200 * ms, HasLead: true, End: at(2900, 3100), HasEnd: true, Cells: cells("3.0 s", "")},
		{Name: "of several", Role: canvas.Series1, Start: at(9, 9), HasStart: true, First: at(1000, 1001), HasFirst: true, End: at(2500, 2501), HasEnd: true, Cells: cells("2.50 s", "2.49 s")},
		{Name: "some are back", Role: canvas.Series1, Start: at(9, 9), HasStart: true, First: at(700, 701), HasFirst: true, Open: true, Growing: true, Until: 1300 * ms, Cells: cells("waiting 1.3 s", "")},
		{Name: "not back yet", Role: canvas.Series1, Start: at(9, 9), HasStart: true, Open: true, Growing: true, Until: 1300 * ms, Usual: 3000 * ms, HasUsual: true, Cells: cells("waiting 1.3 s", "")},
		{Name: "never came back", Role: canvas.Series1, Start: at(9, 400), HasStart: true, Open: true, Until: 3300 * ms, Note: "not within 30s", NoteRole: canvas.Bad, Cells: cells("not seen", "")},
		{Name: "never seen", Role: canvas.Series3, HasLead: true, Open: true, Until: 3300 * ms, Note: "not within 30s", NoteRole: canvas.Bad, Cells: cells("not seen", "")},
		{Name: "later than shown", Role: canvas.Series3, HasEnd: true, End: at(5000, 5001), Cells: cells("5 s", "")},
		{Name: "a name that is longer than there is room for", Role: canvas.Series3, HasEnd: true, End: at(0, 0), Cells: cells("0 ns", "")},
	}
}

func TestWaterfall(t *testing.T) {
	list := invented()
	for name, x := range map[string]TimeAxis{"linear": {To: 3300 * ms}, "logarithmic": {To: 3300 * ms, Knee: ms}} {
		tuitest.Golden(t, "waterfall-"+name, func(a canvas.Area) {
			Waterfall{Axis: x, Corner: "since command", Heads: []string{"back at", "away"}, Rows: len(list), Row: func(i int) Bar { return list[i] }, Cursor: 3}.Draw(a)
		})
	}
}

func TestRoundUp(t *testing.T) {
	for ns, want := range map[float64]int64{-3: 1, 0: 1, 1: 1, 1.5: 2, 2: 2, 3: 5, 5: 5, 6: 10, 11: 20, 3.3e9: 5e9} {
		if got := RoundUp(ns); got != want {
			t.Errorf("%v: %d, want %d", ns, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Float64Range(1, 1e17).Draw(t, "ns")
		if got := float64(RoundUp(ns)); got < ns || got > 2.5*ns && got > 2 {
			t.Fatalf("%v: %v", ns, got)
		}
	})
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0 s", 0: "0.0 s", 1299 * time.Millisecond: "1.2 s", 9999 * time.Millisecond: "9.9 s", 10 * time.Second: "10 s",
		119 * time.Second: "119 s", 2 * time.Minute: "2 min", 59 * time.Minute: "59 min", 185 * time.Minute: "3 h 5 min", 50 * time.Hour: "2 d",
	} {
		if got := Age(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// A column in which no row has anything leaves its room to the bars.
func TestWaterfall_EmptyColumn(t *testing.T) {
	draw := func(away string) string {
		c := canvas.New(80, 4)
		Waterfall{
			Axis: TimeAxis{To: 100 * ms}, Corner: "since", Heads: []string{"back at", "away for", "usually"}, Rows: 1, Cursor: -1,
			Row: func(int) Bar {
				return Bar{Name: "a", Cells: []Value{V("9 ms", canvas.Text), V(away, canvas.Text), V("8 ms", canvas.Dim)}, HasLead: true, Open: true, Until: 100 * ms}
			},
		}.Draw(c.Area())
		return c.String()
	}
	with, without := draw("7 ms"), draw("")
	if !strings.Contains(with, "away for") || strings.Contains(without, "away for") || !strings.Contains(without, "usually") || !strings.Contains(without, "8 ms") {
		t.Errorf("with:\n%s\nwithout:\n%s", with, without)
	}
	if a, b := strings.Count(with, "━"), strings.Count(without, "━"); b != a+len("away for")+2 {
		t.Errorf("bars of %d and %d columns", a, b)
	}
}

// What is said of a bar that is not expected back stands before a bar that has no room behind.
func TestBar_NoteBefore(t *testing.T) {
	x := TimeAxis{To: 1000 * ms}
	b := Bar{Start: timeline.Point(900 * ms), HasStart: true, Open: true, Until: x.To, Note: "not expected back"}
	c := tuitest.Draw(60, 1, func(a canvas.Area) { b.Draw(a, x) })
	if text := c.String(); !strings.Contains(text, "not expected back █") {
		t.Errorf("%q", text)
	}
}
