package hamilton_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/hamilton"
)

func TestVectors(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(int) ([][]int, error)
		k    int
		want [][]int
	}{
		{"one", hamilton.Directed, 1, nil},
		{"two", hamilton.Directed, 2, [][]int{{0, 1}}},
		{"three", hamilton.Directed, 3, [][]int{{0, 1, 2}, {0, 2, 1}}},
		{"circulant 5", hamilton.Directed, 5, [][]int{{0, 1, 2, 3, 4}, {0, 2, 4, 1, 3}, {0, 3, 1, 4, 2}, {0, 4, 3, 2, 1}}},
		{"zig-zag 5", hamilton.ZigZag, 5, [][]int{{4, 0, 1, 3, 2}, {4, 1, 2, 0, 3}, {4, 2, 3, 1, 0}, {4, 3, 0, 2, 1}}},
		{"extended 8", hamilton.Directed, 8, [][]int{
			{6, 0, 1, 5, 2, 4, 3, 7}, {6, 1, 7, 2, 0, 3, 5, 4}, {6, 2, 7, 3, 1, 4, 0, 5}, {6, 3, 4, 2, 5, 7, 1, 0},
			{6, 4, 7, 5, 3, 0, 2, 1}, {6, 5, 0, 7, 4, 1, 3, 2}, {7, 0, 4, 5, 1, 2, 3, 6}}},
		{"doubled 4", hamilton.Doubled, 4, [][]int{{3, 0, 1, 2}, {3, 1, 2, 0}, {3, 2, 0, 1}}},
		{"doubled 6", hamilton.Doubled, 6, [][]int{
			{5, 0, 1, 4, 2, 3}, {5, 1, 2, 0, 3, 4}, {5, 2, 3, 1, 4, 0}, {5, 3, 4, 2, 0, 1}, {5, 4, 0, 3, 1, 2}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.make(test.k)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// Every k of the table, directed and doubled, and the owners of all arcs.
func TestEveryK(t *testing.T) {
	for k := 1; k <= hamilton.MaxEven; k++ {
		if k%2 == 0 {
			cycles, err := hamilton.Doubled(k)
			if err != nil {
				t.Fatal(err)
			}
			if err := hamilton.Check(k, cycles, false); err != nil {
				t.Errorf("doubled %d: %v", k, err)
			}
		}
		if k == 4 || k == 6 {
			continue
		}
		cycles, err := hamilton.Directed(k)
		if err != nil {
			t.Fatal(err)
		}
		if err := hamilton.Check(k, cycles, true); err != nil {
			t.Errorf("directed %d: %v", k, err)
		}
		owner, err := hamilton.NewOwner(k)
		if err != nil {
			t.Fatal(err)
		}
		for at, c := range cycles {
			for i, v := range c {
				w := c[(i+1)%k]
				if got := owner.Of(v, w); got != at {
					t.Fatalf("k=%d: the owner of %d to %d is %d: want %d", k, v, w, got, at)
				}
				if k >= 3 && owner.Of(w, v) == at {
					t.Fatalf("k=%d: cycle %d has %d to %d and its reverse", k, at, v, w)
				}
			}
		}
	}
}

func TestLargeOdd(t *testing.T) {
	for _, k := range []int{163, 165, 511, 1023, 2047} {
		cycles, directed, err := hamilton.Cycles(k)
		if err != nil || !directed {
			t.Fatalf("%d: directed %t, %v", k, directed, err)
		}
		if err := hamilton.Check(k, cycles, true); err != nil {
			t.Errorf("%d: %v", k, err)
		}
	}
}

// In the zig-zag a cycle and the one half a turn on are each other's reverse (RailX, appendix A.1).
func TestZigZagReverses(t *testing.T) {
	for k := 3; k < 40; k += 2 {
		cycles, err := hamilton.ZigZag(k)
		if err != nil {
			t.Fatal(err)
		}
		for i := range k / 2 {
			back := slices.Clone(cycles[i+k/2])
			slices.Reverse(back[1:])
			if d := cmp.Diff(cycles[i], back); d != "" {
				t.Fatalf("k=%d cycle %d (-want +got)\n%s", k, i, d)
			}
		}
	}
}

func TestNoneAndFallback(t *testing.T) {
	for _, test := range []struct {
		k    int
		says string
	}{{4, "doubled rings"}, {6, "5 or 7 vertices"}, {164, "an even one up to 162"}, {2048, "doubled rings"}} {
		_, err := hamilton.Directed(test.k)
		if !errors.Is(err, hamilton.ErrNone) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%d: %v: want ErrNone that says %q", test.k, err, test.says)
		}
		if _, err := hamilton.NewOwner(test.k); !errors.Is(err, hamilton.ErrNone) {
			t.Errorf("owner of %d: %v: want ErrNone", test.k, err)
		}
		cycles, directed, err := hamilton.Cycles(test.k)
		if err != nil || directed {
			t.Fatalf("%d: directed %t, %v", test.k, directed, err)
		}
		if err := hamilton.Check(test.k, cycles, false); err != nil {
			t.Errorf("%d: %v", test.k, err)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, k := range []int{0, -1, -1 << 63, hamilton.MaxSize + 1, 1 << 62} {
		_, directed := hamilton.Directed(k)
		_, doubled := hamilton.Doubled(k)
		_, _, cycles := hamilton.Cycles(k)
		_, owner := hamilton.NewOwner(k)
		for i, err := range []error{directed, doubled, cycles, owner, hamilton.Check(k, nil, true)} {
			if !errors.Is(err, hamilton.ErrSize) {
				t.Errorf("k=%d, function %d: %v: want ErrSize", k, i, err)
			}
		}
	}
	for k, f := range map[int]func(int) ([][]int, error){9: hamilton.Circulant, 8: hamilton.ZigZag, 7: hamilton.Doubled, 1: hamilton.ZigZag} {
		if _, err := f(k); !errors.Is(err, hamilton.ErrSize) {
			t.Errorf("k=%d: %v: want ErrSize", k, err)
		}
	}
	o, err := hamilton.NewOwner(8)
	if err != nil {
		t.Fatal(err)
	}
	for _, arc := range [][2]int{{-1, 0}, {0, 8}, {3, 3}} {
		if got := o.Of(arc[0], arc[1]); got != -1 {
			t.Errorf("owner of %v is %d: want -1", arc, got)
		}
	}
}

// Any exchange of two different vertices of one cycle is noticed.
func TestCheckNotices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(4, 24).Draw(t, "k")
		cycles, directed, err := hamilton.Cycles(k)
		if err != nil {
			t.Fatal(err)
		}
		c := cycles[rapid.IntRange(0, k-2).Draw(t, "cycle")]
		i, j := rapid.IntRange(0, k-1).Draw(t, "i"), rapid.IntRange(0, k-1).Draw(t, "j")
		if i == j {
			return
		}
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			c[i], c[j] = c[j], c[i]
		case 1:
			c[i] = c[j]
		case 2:
			c[i] = k
		}
		if !directed && k == 4 {
			return // four vertices have three cycles in all: an exchange may turn one around
		}
		if err := hamilton.Check(k, cycles, directed); !errors.Is(err, hamilton.ErrCycles) {
			t.Fatalf("damaged cycles %v: %v", cycles, err)
		}
	})
	cycles, _ := hamilton.Directed(5)
	if err := hamilton.Check(5, cycles[:3], true); !errors.Is(err, hamilton.ErrCycles) {
		t.Errorf("a cycle too few: %v", err)
	}
}

func ExampleDirected() {
	cycles, err := hamilton.Directed(5)
	fmt.Println(cycles, err)
	_, err = hamilton.Directed(4)
	fmt.Println(errors.Is(err, hamilton.ErrNone))
	cycles, directed, err := hamilton.Cycles(4)
	fmt.Println(cycles, directed, err)
	// Output:
	// [[0 1 2 3 4] [0 2 4 1 3] [0 3 1 4 2] [0 4 3 2 1]] <nil>
	// true
	// [[3 0 1 2] [3 1 2 0] [3 2 0 1]] false <nil>
}

// The decompositions of K*_k. The goals are 50 ms for 162 nodes and 1 ms for 64, out of the table of paths; BenchmarkEven
// searches for the paths instead.
func BenchmarkDirected(b *testing.B) {
	for _, k := range []int{61, 63, 64, 161, 162} {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			for b.Loop() {
				if _, err := hamilton.Directed(k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
