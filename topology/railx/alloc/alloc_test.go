package alloc_test

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/railx"
	"github.com/ocslab/ocslab/topology/railx/alloc"
)

// nodes makes faults from pairs of row and column.
func nodes(pairs ...[2]int) (all []railx.Node) {
	for _, p := range pairs {
		all = append(all, railx.Node{Row: p[0], Column: p[1]})
	}
	return all
}

// covers reports whether all faults are in rows or columns that were given up.
func covers(a alloc.Allocation, faults []railx.Node) bool {
	for _, f := range faults {
		if !slices.Contains(a.Rows, f.Row) && !slices.Contains(a.Columns, f.Column) {
			return false
		}
	}
	return true
}

func TestLargest(t *testing.T) {
	for _, x := range []struct {
		side   int
		faults []railx.Node
		want   int
	}{
		{8, nil, 64},
		{8, nodes([2]int{0, 0}, [2]int{1, 1}, [2]int{2, 2}), 42},
		{8, nodes([2]int{0, 0}, [2]int{0, 1}, [2]int{0, 2}), 56},
		{8, nodes([2]int{0, 0}, [2]int{0, 1}, [2]int{1, 0}), 49},
		{8, nodes([2]int{0, 0}, [2]int{0, 1}, [2]int{1, 0}, [2]int{1, 1}), 48},
		{64, nodes([2]int{3, 5}, [2]int{9, 60}, [2]int{20, 20}, [2]int{63, 0}), 3844},
		{1, nil, 1},
	} {
		a, err := alloc.Largest(x.side, x.side, x.faults)
		if err != nil {
			t.Fatal(err)
		}
		if a.Nodes() != x.want || !a.Exact || a.Bound != x.want || !covers(a, x.faults) {
			t.Errorf("%d faults: got %v (exact %v, bound %d), want %d nodes", len(x.faults), a, a.Exact, a.Bound, x.want)
		}
	}
}

// brute is the best of all sets of rows; the columns follow from it.
func brute(columns, rows int, faults []railx.Node) (best int) {
	gone := make([]bool, columns)
	for set := range 1 << rows {
		clear(gone)
		left := columns
		for _, f := range faults {
			if set>>f.Row&1 == 0 && !gone[f.Column] {
				gone[f.Column] = true
				left--
			}
		}
		best = max(best, (rows-bits.OnesCount(uint(set)))*left)
	}
	return best
}

// algorithm2 is that of appendix A.5: faults alone in their row and column are divided evenly, all choices of row or column
// are tried for the others.
func algorithm2(columns, rows int, faults []railx.Node) (best int) {
	inRow, inColumn := map[int]int{}, map[int]int{}
	for _, f := range faults {
		inRow[f.Row]++
		inColumn[f.Column]++
	}
	var rest []railx.Node
	alone := 0
	for _, f := range faults {
		if inRow[f.Row] == 1 && inColumn[f.Column] == 1 {
			alone++
		} else {
			rest = append(rest, f)
		}
	}
	for set := range 1 << len(rest) {
		r, c := map[int]bool{}, map[int]bool{}
		for i, f := range rest {
			if set>>i&1 == 0 {
				r[f.Row] = true
			} else {
				c[f.Column] = true
			}
		}
		h, w := rows-len(r), columns-len(c)
		for i := range alone { // evenly: the longer side gives one up
			_ = i
			if h >= w {
				h--
			} else {
				w--
			}
		}
		best = max(best, max(h, 0)*max(w, 0))
	}
	return best
}

func drawFaults(t *rapid.T, columns, rows, most int) []railx.Node {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) railx.Node {
		return railx.Node{Column: rapid.IntRange(0, columns-1).Draw(t, "column"), Row: rapid.IntRange(0, rows-1).Draw(t, "row")}
	}), 0, most, rapid.ID[railx.Node]).Draw(t, "faults")
}

func TestLargest_Brute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns, rows := rapid.IntRange(1, 9).Draw(t, "columns"), rapid.IntRange(1, 9).Draw(t, "rows")
		faults := drawFaults(t, columns, rows, columns*rows)
		a, err := alloc.Largest(columns, rows, faults)
		want := brute(columns, rows, faults)
		if want == 0 {
			if !errors.Is(err, railx.ErrFaults) {
				t.Fatalf("nothing is left: got %v, want ErrFaults", err)
			}
			return
		}
		if err != nil || a.Nodes() != want || !a.Exact || !covers(a, faults) {
			t.Fatalf("got %v, %v, want %d nodes", a, err, want)
		}
		if c, r := a.Kept(); len(c)*len(r) != want {
			t.Fatalf("%d columns and %d rows are kept, want %d nodes", len(c), len(r), want)
		}
	})
}

func TestLargest_Algorithm2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns, rows := rapid.IntRange(4, 40).Draw(t, "columns"), rapid.IntRange(4, 40).Draw(t, "rows")
		faults := drawFaults(t, columns, rows, 10)
		a, err := alloc.Largest(columns, rows, faults)
		if want := algorithm2(columns, rows, faults); err != nil || a.Nodes() != want {
			t.Fatalf("got %v, %v, want %d nodes", a, err, want)
		}
	})
}

// Fit is there exactly when rows can be given up so that enough of both are left.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns, rows := rapid.IntRange(1, 8).Draw(t, "columns"), rapid.IntRange(1, 8).Draw(t, "rows")
		faults := drawFaults(t, columns, rows, columns*rows)
		w, h := rapid.IntRange(1, columns).Draw(t, "w"), rapid.IntRange(1, rows).Draw(t, "h")
		want := false
		for set := range 1 << rows {
			var gone uint64
			for _, f := range faults {
				if set>>f.Row&1 == 0 {
					gone |= 1 << f.Column
				}
			}
			want = want || rows-bits.OnesCount(uint(set)) >= h && columns-bits.OnesCount64(gone) >= w
		}
		a, err := alloc.Fit(columns, rows, faults, w, h)
		if !want {
			if !errors.Is(err, railx.ErrFaults) {
				t.Fatalf("got %v, %v, want ErrFaults", a, err)
			}
			return
		}
		if c, r := a.Size(); err != nil || c < w || r < h || !covers(a, faults) {
			t.Fatalf("got %v, %v, want %d x %d or more", a, err, w, h)
		}
	})
}

// A dense component is too large for all choices: what is found is valid, below the bound, and known as a bound.
func TestLargest_Bound(t *testing.T) {
	inexact := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var faults []railx.Node
		for range 130 {
			faults = append(faults, railx.Node{Column: r.IntN(40), Row: r.IntN(40)})
		}
		a, err := alloc.Largest(40, 40, faults)
		if err != nil {
			t.Fatal(err)
		}
		if !covers(a, faults) || a.Nodes() > a.Bound || a.Exact != (a.Nodes() == a.Bound) {
			t.Errorf("seed %d: got %v, exact %v, bound %d", seed, a, a.Exact, a.Bound)
		}
		if !a.Exact {
			inexact++
			if !strings.Contains(a.String(), "bound") {
				t.Errorf("%q does not say that it is a bound", a)
			}
		}
	}
	if inexact == 0 {
		t.Error("no case was beyond what is exact: this tests nothing")
	}
}

// Bounds must hold for components that can still be solved by brute force: 23 rows of a chain, far more columns.
func TestLargest_BoundHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// 2^14 sets of rows that matter, and a chain that makes it one component of 23 rows and 23 columns.
		const rows, columns = 23, 23
		var faults []railx.Node
		for i := range 23 {
			faults = append(faults, railx.Node{Column: i, Row: i}, railx.Node{Column: min(i+1, 22), Row: i})
		}
		faults = append(faults, drawFaults(t, columns, rows, 20)...)
		a, err := alloc.Largest(columns, rows, faults)
		if err != nil {
			t.Fatal(err)
		}
		// Any cover is a lower bound on the best: give up random rows.
		set := rapid.Uint64Range(0, 1<<rows-1).Draw(t, "rows")
		var gone uint64
		for _, f := range faults {
			if set>>f.Row&1 == 0 {
				gone |= 1 << f.Column
			}
		}
		if some := (rows - bits.OnesCount64(set)) * (columns - bits.OnesCount64(gone)); some > a.Bound {
			t.Fatalf("%d nodes can be kept, above the bound of %d", some, a.Bound)
		}
		if !covers(a, faults) || a.Nodes() > a.Bound {
			t.Fatalf("got %v, bound %d", a, a.Bound)
		}
	})
}

func TestErrors(t *testing.T) {
	all := func(n int) (faults []railx.Node) {
		for i := range n * n {
			faults = append(faults, railx.Node{Column: i % n, Row: i / n})
		}
		return faults
	}
	for name, x := range map[string]struct {
		columns, rows int
		faults        []railx.Node
		is            error
		text          string
	}{
		"no columns":  {0, 4, nil, railx.ErrGrid, "1 to 2048"},
		"huge":        {math.MaxInt, math.MaxInt, nil, railx.ErrGrid, "1 to 2048"},
		"outside":     {4, 4, nodes([2]int{4, 0}), railx.ErrFaults, "rows 0 to 3"},
		"below":       {4, 4, nodes([2]int{0, -1}), railx.ErrFaults, "outside"},
		"all faulty":  {3, 3, all(3), railx.ErrFaults, "none of the 3 x 3 nodes"},
		"all 30 x 30": {30, 30, all(30), railx.ErrFaults, "none of"},
	} {
		if _, err := alloc.Largest(x.columns, x.rows, x.faults); !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, x.is, x.text)
		}
	}
	if _, err := alloc.Fit(8, 8, nodes([2]int{0, 0}), 9, 1); !errors.Is(err, railx.ErrGrid) {
		t.Errorf("a job larger than the grid: got %v, want ErrGrid", err)
	}
	_, err := alloc.Fit(8, 8, nodes([2]int{0, 0}), 8, 8)
	if !errors.Is(err, railx.ErrFaults) || !strings.Contains(err.Error(), "the largest is 8 x 7") && !strings.Contains(err.Error(), "the largest is 7 x 8") {
		t.Errorf("a job that does not fit: got %v, want ErrFaults with the largest", err)
	}
}

// More faults than rows are no error as long as one node works.
func TestLargest_MoreFaultsThanRows(t *testing.T) {
	var faults []railx.Node
	for i := range 8 * 8 {
		if i != 27 {
			faults = append(faults, railx.Node{Column: i % 8, Row: i / 8})
		}
	}
	a, err := alloc.Largest(8, 8, faults)
	if err != nil || a.Nodes() != 1 {
		t.Errorf("got %v, %v, want the one node that works", a, err)
	}
}

func TestAllocation_String(t *testing.T) {
	a, err := alloc.Largest(64, 64, nodes([2]int{9, 3}, [2]int{9, 4}, [2]int{1, 1}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.String(), "63 x 63 of 64 x 64 nodes (96.9 %); without row 9 and column 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Figure 17: availability by rate of faults and by number of faults.
func TestSampling(t *testing.T) {
	for _, x := range []struct {
		side        int
		faults      int
		mean, least float64 // least 0: not given
	}{
		{16, 0, 0.983, 0}, {32, 0, 0.970, 0}, {64, 0, 0.942, 0}, {128, 0, 0.888, 0},
		{64, 2, 0.969, 0.969}, {64, 4, 0.941, 0.938}, {64, 8, 0.890, 0.879}, {64, 16, 0.806, 0.766}, {64, 32, 0.681, 0.563},
	} {
		s := alloc.Sampling{Columns: x.side, Rows: x.side, Faults: x.faults, Seed: 1}
		if x.faults == 0 {
			s.Rate = 0.001
		}
		a, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(a.Mean-x.mean) > 0.01 || a.Samples != 100 || a.Inexact > 0 {
			t.Errorf("%d x %d, %d faults: got %+v, want a mean of %.3f", x.side, x.side, x.faults, a, x.mean)
		}
		// The worst that many faults can do is to be alone each: half of them rows, half columns.
		if x.least > 0 && (a.Least < x.least-0.0005 || a.Least > x.mean+0.005) {
			t.Errorf("%d x %d, %d faults: got at least %.4f, want %.3f or more", x.side, x.side, x.faults, a.Least, x.least)
		}
		again, err := s.Run()
		if err != nil || again != a {
			t.Errorf("%d x %d: the same seed gave %+v, then %+v, %v", x.side, x.side, a, again, err)
		}
	}
}

func TestSampling_Edges(t *testing.T) {
	none, err := alloc.Sampling{Columns: 5, Rows: 5, Rate: 1, Samples: 3}.Run()
	if err != nil || none.Mean != 0 || none.Faults != 25 {
		t.Errorf("all faulty: got %+v, %v, want nothing available", none, err)
	}
	for name, s := range map[string]alloc.Sampling{
		"rate": {Columns: 5, Rows: 5, Rate: math.NaN()}, "faults": {Columns: 5, Rows: 5, Faults: 26}, "both": {Columns: 5, Rows: 5, Faults: 2, Rate: 0.1},
		"samples": {Columns: 5, Rows: 5, Samples: math.MaxInt},
	} {
		if _, err := s.Run(); !errors.Is(err, alloc.ErrSampling) {
			t.Errorf("%s: got %v, want ErrSampling", name, err)
		}
	}
	if _, err := (alloc.Sampling{Rows: 5}).Run(); !errors.Is(err, railx.ErrGrid) {
		t.Errorf("no columns: got %v, want ErrGrid", err)
	}
}

func random(side, n int, seed uint64) (faults []railx.Node) {
	r := rand.New(rand.NewPCG(seed, 2))
	for range n {
		faults = append(faults, railx.Node{Column: r.IntN(side), Row: r.IntN(side)})
	}
	return faults
}

// BenchmarkLargest allocates around faults. The goals are 10 ms on 64x64 with 0.1 % of nodes faulty, which is 4, and 1 ms
// with 40.
func BenchmarkLargest(b *testing.B) {
	for _, x := range []struct{ side, faults int }{{64, 4}, {64, 40}, {64, 64}, {128, 164}, {160, 400}} {
		faults := random(x.side, x.faults, 1)
		b.Run(fmt.Sprintf("%dx%d/%d faults", x.side, x.side, x.faults), func(b *testing.B) {
			exact := false
			for b.Loop() {
				a, err := alloc.Largest(x.side, x.side, faults)
				if err != nil {
					b.Fatal(err)
				}
				exact = a.Exact
			}
			if exact {
				b.ReportMetric(1, "exact")
			}
		})
	}
}

// BenchmarkLargest_Algorithm2 holds the fronts against the paper's algorithm, with faults in pairs: none is alone.
func BenchmarkLargest_Algorithm2(b *testing.B) {
	for _, n := range []int{8, 12, 16} {
		var faults []railx.Node
		for i := range n {
			faults = append(faults, railx.Node{Column: i / 2, Row: i})
		}
		b.Run(fmt.Sprintf("%d faults/fronts", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := alloc.Largest(64, 64, faults); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d faults/algorithm 2", n), func(b *testing.B) {
			for b.Loop() {
				algorithm2(64, 64, faults)
			}
		})
	}
}

// The least and the greatest that are allowed: one sample, one node left, the longest sides.
func TestSampling_Limits(t *testing.T) {
	one, err := alloc.Sampling{Columns: 2, Rows: 1, Faults: 1, Samples: 1, Seed: 1}.Run()
	if want := (alloc.Availability{Mean: 0.5, Least: 0.5, Most: 0.5, Faults: 1, Samples: 1}); err != nil || one != want {
		t.Errorf("got %+v, %v, want %+v", one, err, want)
	}
	some, err := alloc.Sampling{Columns: 8, Rows: 8, Rate: 0.05, Samples: 50, Seed: 1}.Run()
	if err != nil || !(some.Least < some.Mean && some.Mean < some.Most && some.Most <= 1) {
		t.Errorf("got %+v, %v, want least below mean below most", some, err)
	}
	if _, err := (alloc.Sampling{Columns: alloc.MostSide, Rows: alloc.MostSide, Faults: 1, Samples: 2}).Run(); err != nil {
		t.Error(err)
	}
	if a, err := alloc.Largest(alloc.MostSide, alloc.MostSide, nodes([2]int{0, 0})); err != nil || a.Nodes() != 2047*2048 {
		t.Errorf("got %v, %v, want 2047 x 2048 nodes", a, err)
	}
}

// Components of a few rows and many columns, and the other way round, against all choices of those rows.
func TestLargest_LongComponent(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, side := range []int{12, 63, 64, 65, 130} { // around the words of a set
		var faults, turned []railx.Node
		for row := range 8 {
			for column := range side {
				if r.Float64() < 0.1 {
					faults = append(faults, railx.Node{Column: column, Row: row})
					turned = append(turned, railx.Node{Column: row, Row: column})
				}
			}
		}
		want := brute(side, 8, faults)
		for i, got := range []func() (alloc.Allocation, error){
			func() (alloc.Allocation, error) { return alloc.Largest(side, 8, faults) },
			func() (alloc.Allocation, error) { return alloc.Largest(8, side, turned) },
		} {
			a, err := got()
			if err != nil || !a.Exact || a.Nodes() != want || !covers(a, [][]railx.Node{faults, turned}[i]) {
				t.Errorf("%d columns, turned %d: got %v, %v, want %d nodes", side, i, a, err, want)
			}
		}
	}
}

// The fewest rows given up need not leave the most nodes, and what is returned must not say that they do.
func TestFit_NotLargest(t *testing.T) {
	a, err := alloc.Fit(8, 8, nodes([2]int{0, 0}, [2]int{0, 1}, [2]int{0, 2}), 5, 8)
	if columns, rows := a.Size(); err != nil || columns != 5 || rows != 8 || a.Exact || a.Bound != 56 {
		t.Errorf("got %v, %v (exact %v, bound %d), want 5 x 8, not exact, 56", a, err, a.Exact, a.Bound)
	}
}

// It is the smaller side of a component that makes an exact answer hard.
func TestLargest_longLines(t *testing.T) {
	var faults []railx.Node
	for i := range 2 * alloc.MostExact {
		faults = append(faults, railx.Node{Row: 0, Column: i}, railx.Node{Row: 1 + i%3, Column: i})
	}
	faults = append(faults, faults...) // named twice
	got, err := alloc.Largest(64, 64, faults)
	if err != nil || !got.Exact || got.Nodes() != 64*60 {
		t.Errorf("%+v, %v: want exactly %d nodes", got, err, 64*60)
	}
}
