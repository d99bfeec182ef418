package infinitehbd_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// newLayout fails the test if there is none.
func newLayout(t testing.TB, gpus int, distances ...int) infinitehbd.Layout {
	t.Helper()
	l, err := infinitehbd.LayoutOf(gpus, distances)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wantError checks an error, and that it says what it should.
func wantError(t testing.TB, err, is error, says ...string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Fatalf("error %v, want one that matches %q", err, is)
	}
	for _, word := range says {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
}

// describe writes the bundles with their paths, upper and lower GPUs, and the copper.
func describe(l infinitehbd.Layout) string {
	var words []string
	for _, b := range l.Bundles {
		words = append(words, fmt.Sprintf("%s:%+d/%+d(%d,%d)", b.Name, b.Reach[0], b.Reach[1], b.Upper, b.Lower))
	}
	for _, c := range l.Copper {
		words = append(words, fmt.Sprintf("(%d,%d)", c[0], c[1]))
	}
	return strings.Join(words, " ")
}

func TestLayouts(t *testing.T) {
	for _, test := range []struct {
		gpus, hops int
		want       string
	}{
		{4, 1, "L:-1/+0(2,1) R:+1/+0(3,4) (2,3) (4,1)"},
		{4, 2, "L:-1/-2(2,1) R:+1/+2(3,4) (2,3) (4,1)"},
		{4, 3, "L:-1/-2(2,1) R:+1/+2(3,4) X:-3/+3(2,3) (4,1)"},
		{4, 4, "L1:-1/-2(2,1) L2:-3/-4(3,2) R1:+1/+2(3,4) R2:+3/+4(4,1)"},
		{8, 2, "L:-1/-2(2,1) R:+1/+2(5,6) (2,3) (3,4) (4,5) (6,7) (7,8) (8,1)"},
		{8, 3, "L:-1/-2(2,1) R:+1/+2(6,7) X:-3/+3(3,4) (2,3) (4,5) (5,6) (7,8) (8,1)"},
		{2, 2, "L:-1/-2(2,1) R:+1/+2(2,1)"},
	} {
		l, err := infinitehbd.NewLayout(test.gpus, test.hops)
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(l); got != test.want {
			t.Errorf("%d GPUs, %d hops:\n got %s\nwant %s", test.gpus, test.hops, got, test.want)
		}
		if got := l.Hops(); got != test.hops {
			t.Errorf("%d GPUs, %d hops: reaches %d", test.gpus, test.hops, got)
		}
	}
	l := newLayout(t, 8, 4, 1, 8, 2)
	if got, want := describe(l), "L1:-1/-2(2,1) L2:-4/-8(4,3) R1:+1/+2(5,6) R2:+4/+8(7,8) (2,3) (4,5) (6,7) (8,1)"; got != want {
		t.Errorf("powers of two:\n got %s\nwant %s", got, want)
	}
	if got, want := l.Distances(), []int{1, 2, 4, 8}; !slices.Equal(got, want) {
		t.Errorf("distances %v, want %v", got, want)
	}
}

func TestLayoutsThatCannotBe(t *testing.T) {
	for _, test := range []struct {
		gpus, hops int
		says       string
	}{
		{4, 0, "a reach of 0"}, {4, -1, "a reach of -1"}, {4, math.MaxInt, "a reach of"}, {4, 5, "4 edges"}, {1, 2, "nodes of 1 GPUs"},
		{math.MinInt, 1, "GPUs"}, {math.MaxInt, 1, "GPUs"},
	} {
		_, err := infinitehbd.NewLayout(test.gpus, test.hops)
		wantError(t, err, infinitehbd.ErrLayout, test.says)
	}
	for _, test := range []struct {
		distances []int
		says      string
	}{
		{nil, "no distance"}, {[]int{1, 2, 1}, "1 is given twice"}, {[]int{0}, "distance of 0"}, {[]int{1, -2}, "distance of -2"},
		{[]int{math.MaxInt}, "a distance of"},
	} {
		_, err := infinitehbd.LayoutOf(4, test.distances)
		wantError(t, err, infinitehbd.ErrLayout, test.says)
	}
}

func TestLayoutCheck(t *testing.T) {
	if err := (infinitehbd.Layout{}).Check(); !errors.Is(err, infinitehbd.ErrLayout) {
		t.Errorf("the zero layout: %v", err)
	}
	for _, test := range []struct {
		name  string
		spoil func(*infinitehbd.Layout)
		says  string
	}{
		{"no name", func(l *infinitehbd.Layout) { l.Bundles[0].Name = "" }, `named ""`},
		{"name twice", func(l *infinitehbd.Layout) { l.Bundles[0].Name = "R" }, `named "R"`},
		{"distance twice", func(l *infinitehbd.Layout) { l.Bundles[0].Reach[0] = 1 }, "L and R both lead to +1"},
		{"one way", func(l *infinitehbd.Layout) { l.Bundles[0].Reach[1] = 0 }, "R leads to +2, and none to -2"},
		{"no path", func(l *infinitehbd.Layout) { l.Bundles[0].Reach = [2]int{} }, "L has no path"},
		{"too far", func(l *infinitehbd.Layout) { l.Bundles[0].Reach[0] = math.MinInt }, "at most"},
		{"no such GPU", func(l *infinitehbd.Layout) { l.Bundles[0].Upper = 5 }, "GPUs 5 and 1"},
		{"itself", func(l *infinitehbd.Layout) { l.Copper[0] = [2]int{3, 3} }, "GPUs 3 and 3"},
		{"two cycles", func(l *infinitehbd.Layout) { l.Copper = [][2]int{{1, 2}, {3, 4}} }, "cycle of 2 GPUs"},
		{"an edge less", func(l *infinitehbd.Layout) { l.Copper = l.Copper[1:] }, "1 copper"},
		{"an edge twice", func(l *infinitehbd.Layout) { l.Copper[0] = l.Copper[1] }, "on 3 edges"},
		{"no bundles", func(l *infinitehbd.Layout) { l.Bundles = nil }, "0 bundles"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLayout(t, 4, 1, 2)
			test.spoil(&l)
			wantError(t, l.Check(), infinitehbd.ErrLayout, test.says)
		})
	}
}

// drawLayout draws a layout of consecutive distances or of others.
func drawLayout(t *rapid.T) infinitehbd.Layout {
	gpus := rapid.IntRange(2, 9).Draw(t, "gpus")
	distances := rapid.SliceOfNDistinct(rapid.IntRange(1, 6), 1, min(gpus, 5), rapid.ID).Draw(t, "distances")
	if rapid.Bool().Draw(t, "all") {
		for i := range distances {
			distances[i] = i + 1
		}
	}
	l, err := infinitehbd.LayoutOf(gpus, distances)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Every layout that is made passes its own check, and finds each of its distances both ways.
func TestLayoutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		for _, d := range l.Distances() {
			for _, far := range []int{d, -d} {
				b, path, ok := l.Find(far)
				if got, _ := l.Bundles[b].Path(far); !ok || got != path || path == infinitehbd.Loop {
					t.Fatalf("distance %d: bundle %d, %v, %v", far, b, path, ok)
				}
			}
		}
		if _, _, ok := l.Find(l.Hops() + 1); ok {
			t.Fatal("finds a path beyond the last")
		}
	})
}
