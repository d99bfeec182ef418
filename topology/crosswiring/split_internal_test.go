package crosswiring

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// symmetric draws a matrix without a diagonal.
func symmetric(t *rapid.T, n int) []int32 {
	c := make([]int32, n*n)
	most := rapid.SampledFrom([]int32{1, 3, 20}).Draw(t, "most")
	for i := range n {
		for j := i + 1; j < n; j++ {
			x := rapid.Int32Range(0, most).Draw(t, "links")
			c[i*n+j], c[j*n+i] = x, x
		}
	}
	return c
}

// sums returns the sums of rows and of columns.
func sums(a []int32, n int) (rows, columns []int) {
	rows, columns = make([]int, n), make([]int, n)
	for k, x := range a {
		rows[k/n] += int(x)
		columns[k%n] += int(x)
	}
	return rows, columns
}

// matrix counts arcs.
func matrix(arcs [][2]int32, n int) []int32 {
	a := make([]int32, n*n)
	for _, arc := range arcs {
		a[int(arc[0])*n+int(arc[1])]++
	}
	return a
}

// Theorem 3.1: C = A + Aᵀ, every entry of A is half of C's, rounded, and so are its rows and columns.
func TestOrient_Halves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(t, "pods")
		c := symmetric(t, n)
		a := matrix(newSplitter(n).orient(c), n)
		rows, columns := sums(a, n)
		degrees, _ := sums(c, n)
		for k, x := range c {
			if y := a[k] + a[k%n*n+k/n]; y != x || a[k] < x/2 || a[k] > (x+1)/2 {
				t.Fatalf("entry %d: %d + %d of %d", k, a[k], a[k%n*n+k/n], x)
			}
		}
		for p, degree := range degrees {
			if rows[p]+columns[p] != degree || max(rows[p], columns[p]) > (degree+1)/2 {
				t.Fatalf("pod %d: %d out, %d in", p, rows[p], columns[p])
			}
		}
	})
}

// The orientations of examples: what leads out of and into each pod.
func TestOrient_Examples(t *testing.T) {
	for _, x := range []struct {
		links []int32
		most  int
	}{
		{[]int32{0, 1, 1, 1, 0, 1, 1, 1, 0}, 1},
		{[]int32{0, 4, 1, 3, 4, 0, 3, 1, 1, 3, 0, 4, 3, 1, 4, 0}, 4},
	} {
		n := 3
		if len(x.links) == 16 {
			n = 4
		}
		rows, columns := sums(matrix(newSplitter(n).orient(x.links), n), n)
		for p := range n {
			if rows[p] != x.most || columns[p] != x.most {
				t.Errorf("pod %d: %d out, %d in, want %d", p, rows[p], columns[p], x.most)
			}
		}
	}
}

// Theorem 3.2: every entry, row and column of a part is its fair part of the whole, rounded.
func TestSpread_FairParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "pods")
		parts := rapid.IntRange(1, 13).Draw(t, "parts")
		a := make([]int32, n*n)
		most := rapid.SampledFrom([]int32{1, 5, 40}).Draw(t, "most")
		for k := range a {
			a[k] = rapid.Int32Range(0, most).Draw(t, "entry")
		}
		fairParts(t, a, n, parts)
	})
	// Here a column gets what it lacks from a row that gives up what it has from another column.
	fairParts(t, []int32{2, 0, 0, 1, 0, 1, 0, 2, 1, 2, 0, 0, 1, 0, 2, 0}, 4, 3)
}

// fairParts checks the parts of a matrix.
func fairParts(t rapid.TB, whole []int32, n, parts int) {
	rows, columns := sums(whole, n)
	total := make([]int32, n*n)
	count := 0
	newSplitter(n).spread(append([]int32{}, whole...), parts, func(part []int32) {
		count++
		r, c := sums(part, n)
		for k, x := range part {
			total[k] += x
			fair(t, "entry", k, int(x), int(whole[k]), parts)
		}
		for i := range n {
			fair(t, "row", i, r[i], rows[i], parts)
			fair(t, "column", i, c[i], columns[i], parts)
		}
	})
	if count != parts || fmt.Sprint(total) != fmt.Sprint(whole) {
		t.Fatalf("%d parts come to %v, want %v", count, total, whole)
	}
}

func fair(t rapid.TB, what string, i, got, whole, parts int) {
	if got < whole/parts || got > (whole+parts-1)/parts {
		t.Fatalf("%s %d has %d, a %d-th part of %d", what, i, got, parts, whole)
	}
}

// Colours are matchings, and none but those that there are.
func TestColour_Matchings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "pods")
		colours := rapid.IntRange(1, 17).Draw(t, "colours")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var arcs [][2]int32
		for range colours {
			for i, j := range random.Perm(n) {
				if random.IntN(8) > 0 {
					arcs = append(arcs, [2]int32{int32(i), int32(j)})
				}
			}
		}
		random.Shuffle(len(arcs), func(i, j int) { arcs[i], arcs[j] = arcs[j], arcs[i] })
		want := fmt.Sprint(matrix(arcs, n))
		got := make([]int32, n*n)
		newSplitter(n).colour(arcs, colours, func(colour int, some [][2]int32) {
			rows, columns := sums(matrix(some, n), n)
			for p := range n {
				if colour < 0 || colour >= colours || rows[p] > 1 || columns[p] > 1 {
					t.Fatalf("colour %d of %d: pod %d has %d out, %d in", colour, colours, p, rows[p], columns[p])
				}
			}
			for k, x := range matrix(some, n) {
				got[k] += x
			}
		})
		if fmt.Sprint(got) != want {
			t.Fatalf("the colours come to %v, want %s", got, want)
		}
	})
}
