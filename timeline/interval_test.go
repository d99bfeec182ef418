package timeline_test

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

// anyNS draws small numbers, where collisions happen, and the whole of int64.
var anyNS = rapid.OneOf(rapid.Int64Range(-20, 20), rapid.Int64Range(-1e12, 1e12), rapid.Int64())

var anyInterval = rapid.Custom(func(t *rapid.T) timeline.Interval {
	return timeline.Between(anyNS.Draw(t, "a"), anyNS.Draw(t, "b"))
})

// inside draws an instant that the interval holds.
func inside(t *rapid.T, i timeline.Interval, name string) int64 {
	return rapid.Int64Range(i.Earliest, i.Latest).Draw(t, name)
}

func TestInterval_Arithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyInterval.Draw(t, "A"), anyInterval.Draw(t, "B")
		x, y := inside(t, a, "x"), inside(t, b, "y")

		holds := func(name string, i timeline.Interval, exact *big.Int) {
			if i.Earliest > i.Latest {
				t.Fatalf("%s = %+v is upside down", name, i)
			}
			if exact.IsInt64() && !i.Contains(exact.Int64()) {
				t.Fatalf("%s = %+v does not hold %s", name, i, exact)
			}
		}
		bx, by := big.NewInt(x), big.NewInt(y)
		holds("Sub", a.Sub(b), new(big.Int).Sub(bx, by))
		holds("Hull", a.Hull(b), bx)
		holds("Hull", a.Hull(b), by)
		holds("Earlier", timeline.Earlier(a, b), big.NewInt(min(x, y)))
		holds("Later", timeline.Later(a, b), big.NewInt(max(x, y)))
		if both, ok := a.Intersect(b); ok {
			holds("Intersect", both, big.NewInt(both.Mid()))
			if z := inside(t, both, "z"); !a.Contains(z) || !b.Contains(z) {
				t.Fatalf("Intersect = %+v holds %d, which is not in both", both, z)
			}
		} else if !a.Before(b) && !b.Before(a) {
			t.Fatal("neither before the other, yet nothing shared")
		}
		if a.Before(b) && x >= y {
			t.Fatalf("Before, but %d >= %d", x, y)
		}

		d := rapid.Int64().Draw(t, "d")
		bound := max(d, 0)
		e := rapid.Int64Range(-bound, bound).Draw(t, "error")
		holds("Widen", a.Widen(time.Duration(d)), new(big.Int).Add(bx, big.NewInt(e)))
		shifted := new(big.Int).Add(bx, by)
		holds("Shift", a.Shift(y, time.Duration(d)), shifted.Add(shifted, big.NewInt(e)))

		if !a.Contains(a.Mid()) {
			t.Fatalf("Mid = %d is outside %+v", a.Mid(), a)
		}
		exact := new(big.Int).Sub(big.NewInt(a.Latest), big.NewInt(a.Earliest))
		if got := a.Width(); exact.IsInt64() && int64(got) != exact.Int64() || !exact.IsInt64() && got != math.MaxInt64 {
			t.Fatalf("Width = %d, want %s", got, exact)
		}
	})
}

func TestInterval_Table(t *testing.T) {
	i := timeline.Between(30, 10)
	if got, want := i, (timeline.Interval{Earliest: 10, Latest: 30}); got != want {
		t.Errorf("Between = %+v, want %+v", got, want)
	}
	if got, want := i.Width(), 20*time.Nanosecond; got != want {
		t.Errorf("Width = %v, want %v", got, want)
	}
	if _, ok := i.Intersect(timeline.Between(31, 40)); ok {
		t.Error("Intersect found something in common with 31..40")
	}
	if got, want := i.Sub(timeline.Between(1, 2)), timeline.Between(8, 29); got != want {
		t.Errorf("Sub = %+v, want %+v", got, want)
	}
	if got, want := i.Shift(100, 5), timeline.Between(105, 135); got != want {
		t.Errorf("Shift = %+v, want %+v", got, want)
	}
	if got, want := i.Widen(-5), i; got != want {
		t.Errorf("Widen(-5) = %+v, want %+v", got, want)
	}
	whole := timeline.Between(math.MinInt64, math.MaxInt64)
	if got, want := whole.Shift(-5, 0), timeline.Between(math.MinInt64, math.MaxInt64-5); got != want {
		t.Errorf("Shift = %+v, want %+v", got, want)
	}
	if got, want := timeline.Earlier(i, timeline.Between(5, 40)), timeline.Between(5, 30); got != want {
		t.Errorf("Earlier = %+v, want %+v", got, want)
	}
	if got, want := timeline.Later(i, timeline.Between(5, 40)), timeline.Between(10, 40); got != want {
		t.Errorf("Later = %+v, want %+v", got, want)
	}
	if i.Before(timeline.Point(30)) {
		t.Error("10..30 is certainly before 30")
	}
	if got, want := whole.Mid(), int64(-1); got != want {
		t.Errorf("Mid = %d, want %d", got, want)
	}
}

func TestInterval_String(t *testing.T) {
	for _, tc := range []struct {
		a, b int64
		want string
	}{
		{0, 0, "0 ns"},
		{1, 2, "1 ns ±1"},
		{-3, -3, "-3 ns"},
		{202_690_000, 203_530_000, "203.11 ms ±0.42"},
		{202_690_001, 203_529_999, "203.11 ms ±0.42"},
		{202_690_000, 203_530_001, "203.11 ms ±0.43"},
		{203_113_456, 203_113_456, "203.113456 ms"},
		{200_000_000, 200_000_000, "200.000000 ms"},
		{134_000, 268_000, "201 µs ±67"},
		{5_950_000_000, 6_050_000_000, "6.000 s ±0.050"},
		{6_011_000_000_000, 6_011_000_134_000, "6011.000067 s ±0.000067"},
		{-5_000_000, 500_000_000, "250 ms ±260"},
		{-500_000, 100_000, "-200 µs ±300"},
		{-250_000_000, 1_750_000_000, "0.8 s ±1.1"},
		{-1_350_000_000, 850_000_000, "-0.2 s ±1.2"},
		{math.MinInt64, math.MaxInt64, "-9223372036854775808..9223372036854775807 ns"},
	} {
		if got := timeline.Between(tc.a, tc.b).String(); got != tc.want {
			t.Errorf("Between(%d, %d) = %q, want %q", tc.a, tc.b, got, tc.want)
		}
	}
}

// What is shown must not claim more than is known, nor much less.
func TestInterval_StringEncloses(t *testing.T) {
	shape := regexp.MustCompile(`^(-?[0-9.]+) (ns|µs|ms|s)(?: ±([0-9.]+))?$`)
	units := map[string]int64{"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(-1e13, 1e13).Draw(t, "a")
		i := timeline.Between(a, a+rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 2000), rapid.Int64Range(0, 1e12)).Draw(t, "width"))
		parts := shape.FindStringSubmatch(i.String())
		if parts == nil {
			t.Fatalf("%q has no known shape", i)
		}
		value := func(s string) *big.Rat {
			r, ok := new(big.Rat).SetString("0" + s)
			if s[0] == '-' {
				r, ok = new(big.Rat).SetString(s)
			}
			if !ok {
				t.Fatalf("%q is not a number", s)
			}
			return r.Mul(r, big.NewRat(units[parts[2]], 1))
		}
		mid, half := value(parts[1]), new(big.Rat)
		if parts[3] != "" {
			half = value(parts[3])
			if len(strings.ReplaceAll(strings.TrimLeft(parts[3], "0."), ".", "")) > 4 {
				t.Fatalf("%q: half width has too many digits", i)
			}
		}
		low, high := new(big.Rat).Sub(mid, half), new(big.Rat).Add(mid, half)
		if low.Cmp(big.NewRat(i.Earliest, 1)) > 0 || high.Cmp(big.NewRat(i.Latest, 1)) < 0 {
			t.Fatalf("%q does not enclose %+v", i, [2]int64{i.Earliest, i.Latest})
		}
		// Two digits: at most 15 % too wide, and 1 ns for odd widths.
		limit := new(big.Rat).Add(big.NewRat(int64(i.Width())*115, 200), big.NewRat(1, 1))
		if half.Cmp(limit) > 0 {
			t.Fatalf("%q is much wider than %v", i, i.Width())
		}
	})
}
