package widget_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/tuitest"
	"github.com/ocslab/ocslab/tui/widget"
)

// around returns n intervals of a width, whose middles are spread around a value.
func around(seed uint64, n int, mid, spread, width time.Duration) []timeline.Interval {
	random := rand.New(rand.NewPCG(seed, 1))
	var list []timeline.Interval
	for range n {
		at := int64(mid) + int64(random.NormFloat64()*float64(spread))
		list = append(list, timeline.Between(at-int64(width)/2, at+int64(width)/2))
	}
	return list
}

func letters(values ...[]timeline.Interval) []widget.Series {
	var list []widget.Series
	for i, v := range values {
		letter, role := widget.SeriesOf(i)
		list = append(list, widget.Series{Letter: letter, Role: role, Name: fmt.Sprintf("condition %d", i+1), Values: v})
	}
	return list
}

var wideRange = []timeline.Interval{
	timeline.Point(3_000), timeline.Point(8_000), timeline.Point(40_000), timeline.Between(90_000, 250_000),
	timeline.Point(int64(2 * time.Millisecond)), timeline.Point(int64(700 * time.Millisecond)), timeline.Point(int64(9 * time.Second)),
}

func charts() map[string][]widget.Series {
	one := letters([]timeline.Interval{timeline.Between(203e6, 204e6)})
	missing := letters(around(5, 20, time.Second, 50*time.Millisecond, 10*time.Millisecond))
	missing[0].Missing = 3
	return map[string][]widget.Series{
		"none":     letters(nil),
		"one":      one,
		"equal":    letters([]timeline.Interval{timeline.Point(5e6), timeline.Point(5e6), timeline.Point(5e6)}),
		"zero":     letters([]timeline.Interval{{}, {}}),
		"exact":    letters(around(1, 400, 203*time.Millisecond, 4*time.Millisecond, 0)),
		"interval": letters(around(2, 60, 3*time.Second, 200*time.Millisecond, 150*time.Millisecond)),
		"two":      letters(around(3, 80, 203*time.Millisecond, 10*time.Millisecond, 2*time.Millisecond), around(4, 60, 240*time.Millisecond, 12*time.Millisecond, 2*time.Millisecond)),
		"far":      letters(around(3, 80, 203*time.Millisecond, 10*time.Millisecond, 2*time.Millisecond), around(4, 60, 3*time.Second, 12*time.Millisecond, 2*time.Millisecond)),
		"range":    letters(wideRange),
		"missing":  missing,
	}
}

func TestHistogram(t *testing.T) {
	for name, series := range charts() {
		t.Run(name, func(t *testing.T) {
			tuitest.Golden(t, "hist-"+name, func(a canvas.Area) { widget.Histogram(a.Sub(0, 0, a.W/2, a.H*2/3), series, 0) })
		})
	}
}

func TestCDF(t *testing.T) {
	for name, series := range charts() {
		t.Run(name, func(t *testing.T) {
			tuitest.Golden(t, "cdf-"+name, func(a canvas.Area) { widget.CDF(a.Sub(0, 0, a.W/2, a.H*2/3), series, 0) })
		})
	}
}

// Ensure that every value is counted exactly once where it is known, and that no line is lost.
func TestHistogram_Counts(t *testing.T) {
	series := letters(around(7, 500, 90*time.Millisecond, 30*time.Millisecond, 0))
	for h := 3; h < 40; h++ {
		text := tuitest.Draw(60, h, func(a canvas.Area) { widget.Histogram(a, series, 0) }).String()
		sum := 0
		for _, line := range strings.Split(text, "\n") {
			fields := strings.Fields(line)
			if n := 0; strings.Contains(line, "┊") {
				if _, err := fmt.Sscan(fields[len(fields)-1], &n); err != nil {
					t.Fatalf("%d lines: %q: %v", h, line, err)
				}
				sum += n
			}
		}
		if sum != 500 {
			t.Errorf("%d lines count %d values, want 500:\n%s", h, sum, text)
		}
	}
}

var drawSeries = rapid.Custom(func(t *rapid.T) widget.Series {
	time := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-10, 10), rapid.Int64Range(0, 1e10))
	values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) timeline.Interval {
		if rapid.IntRange(0, 9).Draw(t, "never") == 0 {
			return timeline.Interval{Earliest: time.Draw(t, "earliest"), Latest: timeline.Never}
		}
		return timeline.Between(time.Draw(t, "from"), time.Draw(t, "to"))
	}), 0, 12).Draw(t, "values")
	return widget.Series{Letter: 'A', Role: canvas.Series1, Values: values, Missing: rapid.IntRange(0, 3).Draw(t, "missing")}
})

// Ensure that nothing is drawn outside and nothing panics, whatever the size and the values.
func TestCharts_Stay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := rapid.SliceOfN(drawSeries, 0, 4).Draw(t, "series")
		at := rapid.IntRange(-1, 4).Draw(t, "at")
		part := rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Float64Range(0, 1)).Draw(t, "part")
		w, h := rapid.IntRange(0, 90).Draw(t, "w"), rapid.IntRange(0, 30).Draw(t, "h")
		for name, draw := range map[string]func(canvas.Area){
			"histogram": func(a canvas.Area) { widget.Histogram(a, series, at) },
			"cdf":       func(a canvas.Area) { widget.CDF(a, series, at) },
			"progress":  func(a canvas.Area) { widget.Progress(a, part, canvas.S(canvas.Busy), canvas.S(canvas.Dim)) },
		} {
			c := canvas.New(w+4, h+4)
			c.Area().Fill('x', canvas.Style{})
			draw(c.Area().Sub(2, 2, w, h))
			for y := range c.H {
				for x := range c.W {
					inside := x >= 2 && y >= 2 && x < 2+w && y < 2+h
					if !inside && c.At(x, y).Rune != 'x' {
						t.Fatalf("%s draws at %d,%d of %d,%d", name, x-2, y-2, w, h)
					}
				}
			}
		}
	})
}

func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		part float64
		want string
	}{
		{0, "░░░░"}, {0.001, "▏░░░"}, {0.5, "██░░"}, {0.55, "██▏░"}, {0.999, "███▉"}, {1, "████"}, {7, "████"}, {-1, "░░░░"}, {math.NaN(), "░░░░"},
	} {
		got := tuitest.Draw(4, 1, func(a canvas.Area) {
			widget.Progress(a, tt.part, canvas.S(canvas.Busy), canvas.S(canvas.Dim))
		}).String()
		if got = strings.TrimSpace(got); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.part, got, tt.want)
		}
	}
}

func TestTime(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0 s", 1: "1 ns", 999: "999 ns", 1500: "1.5 µs", 203_110_000: "203 ms", 20_000_000: "20 ms", 20_040_000: "20.0 ms", 3_155_400_000: "3.16 s",
		-3_100: "-3.1 µs", 61e9: "61 s", 5e6: "5 ms", 5_250_000: "5.25 ms",
	} {
		if got := widget.Time(ns); got != want {
			t.Errorf("%d: %q, want %q", ns, got, want)
		}
	}
}

func BenchmarkHistogram(b *testing.B) {
	series := letters(around(1, 10000, time.Second, 100*time.Millisecond, time.Millisecond))
	c := canvas.New(100, 40)
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(100, 40)
		widget.Histogram(c.Area(), series, 0)
	}
}

func BenchmarkCDF(b *testing.B) {
	series := letters(around(1, 10000, time.Second, 100*time.Millisecond, time.Millisecond), around(2, 10000, time.Second, 100*time.Millisecond, time.Millisecond))
	c := canvas.New(100, 40)
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(100, 40)
		widget.CDF(c.Area(), series, 0)
	}
}
