package firmwarenotes_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
)

func TestSpan_Draw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := firmwarenotes.Span{Median: 40 * time.Millisecond, Spread: 2 * time.Millisecond, Min: 37 * time.Millisecond, Max: 44 * time.Millisecond}
	const n = 10_000
	draws := make([]time.Duration, n)
	var free, sum, squares float64
	for i := range draws {
		draws[i] = s.Draw(r)
		if d := float64(draws[i] - s.Median); draws[i] > s.Min && draws[i] < s.Max {
			free++
			sum += d
			squares += d * d
		}
	}
	slices.Sort(draws)
	if got := draws[n/2]; (got - s.Median).Abs() > 100*time.Microsecond {
		t.Errorf("median %v, want %v", got, s.Median)
	}
	// A normal distribution cut at -1.5 and +2 standard deviations: 6.7 % and 2.3 % lie
	// at the ends, and what is between has a standard deviation of 0.83.
	atMin, atMax := share(draws, s.Min), share(draws, s.Max)
	if math.Abs(atMin-0.067) > 0.01 || math.Abs(atMax-0.023) > 0.006 || draws[0] != s.Min || draws[n-1] != s.Max {
		t.Errorf("%.3f at %v, %.3f at %v; from %v to %v", atMin, s.Min, atMax, s.Max, draws[0], draws[n-1])
	}
	if got := math.Sqrt(squares/free-math.Pow(sum/free, 2)) / float64(s.Spread); math.Abs(got-0.83) > 0.03 {
		t.Errorf("standard deviation between the ends %.3f of the spread, want 0.83", got)
	}
}

func share(draws []time.Duration, of time.Duration) float64 {
	n := 0
	for _, d := range draws {
		if d == of {
			n++
		}
	}
	return float64(n) / float64(len(draws))
}

func TestSpan_DrawConstant(t *testing.T) {
	if got := (firmwarenotes.Span{Median: time.Second}).Draw(nil); got != time.Second {
		t.Errorf("got %v: no spread needs no randomness", got)
	}
	if got := (firmwarenotes.Span{}).Draw(nil); got != 0 {
		t.Errorf("got %v of the zero Span", got)
	}
}

func TestSpan_DrawProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Map(rapid.Int64Range(0, int64(time.Hour)), func(ns int64) time.Duration { return time.Duration(ns) })
		s := firmwarenotes.Span{Median: duration.Draw(t, "median"), Spread: duration.Draw(t, "spread"), Min: duration.Draw(t, "min")}
		if rapid.Bool().Draw(t, "max") {
			s.Max = max(duration.Draw(t, "max"), s.Min, 1)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		r, again := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 0))
		for range 20 {
			d := s.Draw(r)
			if d < s.Min || s.Max > 0 && d > s.Max {
				t.Fatalf("%+v: drew %v", s, d)
			}
			if d != s.Draw(again) {
				t.Fatal("same seed, other draw")
			}
		}
	})
}

func TestBurst_Stretch(t *testing.T) {
	const s = int64(time.Second)
	b := &firmwarenotes.Burst{Window: 20 * time.Second, Free: 2, Step: 2 * time.Second, Most: 7 * time.Second}
	for _, c := range []struct {
		name  string
		burst *firmwarenotes.Burst
		times []int64
		now   int64
		want  time.Duration
	}{
		{"none", nil, []int64{1, 2, 3}, 4, 0},
		{"first", b, nil, 100 * s, 0},
		{"free", b, []int64{98 * s, 99 * s}, 100 * s, 0},
		{"one more", b, []int64{99 * s, 97 * s, 98 * s}, 100 * s, 2 * time.Second},
		{"two more", b, []int64{96 * s, 97 * s, 98 * s, 99 * s}, 100 * s, 4 * time.Second},
		{"most", b, []int64{93 * s, 94 * s, 95 * s, 96 * s, 97 * s, 98 * s, 99 * s}, 100 * s, 7 * time.Second},
		{"window over", b, []int64{80 * s, 98 * s, 99 * s}, 100 * s, 0},
		{"window not over", b, []int64{80*s + 1, 98 * s, 99 * s}, 100 * s, 2 * time.Second},
		{"now counts, later not", b, []int64{98 * s, 99 * s, 100 * s, 101 * s}, 100 * s, 2 * time.Second},
		{"before zero", b, []int64{-3 * s, -2 * s, -1 * s}, 0, 2 * time.Second},
	} {
		if got := c.burst.Stretch(c.times, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Nothing is ever taken back, and nothing exceeds Most.
func TestBurst_StretchProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := firmwarenotes.Burst{
			Window: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "window")),
			Free:   rapid.IntRange(0, 5).Draw(t, "free"),
			Step:   time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "step")),
			Most:   time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "most")),
		}
		now := rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "now")
		times := rapid.SliceOfN(rapid.Int64Range(0, int64(3*time.Hour)), 0, 20).Draw(t, "times")
		all := b.Stretch(times, now)
		if all < 0 || all > b.Most {
			t.Fatalf("%v", all)
		}
		if len(times) > 0 && b.Stretch(times[1:], now) > all {
			t.Fatal("fewer link-ups, longer training")
		}
	})
}
