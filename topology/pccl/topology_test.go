package pccl_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/pccl"
)

// mustTopology reads a topology that there is.
func mustTopology(t testing.TB, text string, gpus int) *pccl.Topology {
	t.Helper()
	top, err := pccl.ParseTopology(text, gpus)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func circuitsText(t *pccl.Topology) string {
	var all []string
	for c := range t.Circuits() {
		all = append(all, fmt.Sprintf("%d>%d", c.Src, c.Dst))
	}
	return strings.Join(all, " ")
}

func TestParseTopology(t *testing.T) {
	tests := []struct {
		text     string
		gpus     int
		name     string
		circuits string // "" only counts them
		len, out int
	}{
		{"ring", 4, "ring", "0>1 0>3 1>0 1>2 2>1 2>3 3>0 3>2", 8, 2},
		{"ring", 2, "ring", "0>1 1>0", 2, 1},
		{"Ring 8", 8, "ring", "", 16, 2},
		{"torus 2x2", 4, "torus 2x2", "0>1 0>2 1>0 1>3 2>0 2>3 3>1 3>2", 8, 2},
		{"grid 2x3", 6, "grid 2x3", "0>1 0>3 1>0 1>2 1>4 2>1 2>5 3>0 3>4 4>1 4>3 4>5 5>2 5>4", 14, 3},
		{"torus:2x3", 6, "torus 2x3", "0>1 0>2 0>3 1>0 1>2 1>4 2>0 2>1 2>5 3>0 3>4 3>5 4>1 4>3 4>5 5>2 5>3 5>4", 18, 3},
		{"torus 8x16", 128, "torus 8x16", "", 512, 4},
		{"torus2d", 128, "torus 8x16", "", 512, 4},
		{"torus", 128, "torus 8x16", "", 512, 4},
		{"torus3d", 128, "torus 4x4x8", "", 768, 6},
		{"grid 3d", 128, "grid 4x4x8", "", 608, 6},
		{"grid 2d", 32, "grid 4x8", "", 104, 4},
		{"torus 3d", 32, "torus 2x4x4", "", 160, 5},
		{"torus 3d", 64, "torus 4x4x4", "", 384, 6},
		{"grid 8", 8, "grid 8", "", 14, 2},
		{"hypercube", 8, "hypercube", "0>1 0>2 0>4 1>0 1>3 1>5 2>0 2>3 2>6 3>1 3>2 3>7 4>0 4>5 4>6 5>1 5>4 5>7 6>2 6>4 6>7 7>3 7>5 7>6", 24, 3},
		{"dark", 4, "dark", "", 0, 0},
		{"0-2,2-1, 1>3", 4, "circuits", "0>2 1>2 1>3 2>0 2>1", 5, 2},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			top := mustTopology(t, tt.text, tt.gpus)
			if got := circuitsText(top); tt.circuits != "" && got != tt.circuits {
				t.Errorf("circuits %s\nwant %s", got, tt.circuits)
			}
			out, _ := top.Degree()
			if top.Name() != tt.name || top.GPUs() != tt.gpus || top.Len() != tt.len || out != tt.out {
				t.Errorf("%s of %d with %d circuits, %d at a GPU: want %s, %d, %d, %d",
					top.Name(), top.GPUs(), top.Len(), out, tt.name, tt.gpus, tt.len, tt.out)
			}
		})
	}
}

func TestParseTopology_errors(t *testing.T) {
	tests := []struct {
		text string
		gpus int
		is   error
		want string
	}{
		{"rnig", 8, pccl.ErrArgument, "did you mean"},
		{"", 8, pccl.ErrArgument, "want ring"},
		{"torus 8x8", 128, pccl.ErrSize, "want 8x16 or 4x4x8"},
		{"torus", 7, pccl.ErrSize, "no lattice of 2 dimensions"},
		{"torus 8d", 128, pccl.ErrSize, "no lattice of 8"},
		{"torus xd", 128, pccl.ErrArgument, "such as 2d"},
		{"torus 8x", 128, pccl.ErrArgument, "such as 8x16"},
		{"torus 1x128", 128, pccl.ErrSize, "dimension of 1"},
		{"hypercube", 12, pccl.ErrSize, "8 or 16"},
		{"ring 9", 8, pccl.ErrArgument, "nothing after"},
		{"ring", 1, pccl.ErrSize, "2 to 65536"},
		{"ring", 1 << 30, pccl.ErrSize, "2 to 65536"},
		{"0-8", 8, pccl.ErrArgument, "no GPU 8"},
		{"0-0", 8, pccl.ErrArgument, "itself"},
		{"0-1,", 8, pccl.ErrArgument, "no circuit"},
		{"0-1-2", 8, pccl.ErrArgument, "no circuit"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			_, err := pccl.ParseTopology(tt.text, tt.gpus)
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %v with %q", err, tt.is, tt.want)
			}
		})
	}
}

// drawLattice returns a torus or grid of up to four dimensions, none larger than most.
func drawLattice(t *rapid.T, most int) (top *pccl.Topology, dims []int, wrap bool) {
	dims = rapid.SliceOfN(rapid.IntRange(2, most), 1, 4).Draw(t, "dims")
	wrap = rapid.Bool().Draw(t, "wrap")
	of := pccl.Grid
	if wrap {
		of = pccl.Torus
	}
	top, err := of(dims...)
	if err != nil {
		t.Fatal(err)
	}
	return top, dims, wrap
}

// The distance between neighbours of a lattice is one in one coordinate, around or not, and everything is duplex.
func TestLattice_property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top, dims, wrap := drawLattice(t, 5)
		at := func(x int) []int {
			c := make([]int, len(dims))
			for i, d := range slices.Backward(dims) {
				c[i], x = x%d, x/d
			}
			return c
		}
		for a := range top.GPUs() {
			for b := range top.GPUs() {
				ca, cb := at(a), at(b)
				differ, near := 0, false
				for i, d := range dims {
					if ca[i] != cb[i] {
						differ++
						far := max(ca[i]-cb[i], cb[i]-ca[i])
						near = far == 1 || wrap && far == d-1
					}
				}
				if want := differ == 1 && near; top.Has(a, b) != want {
					t.Fatalf("%s has %d>%d: %v, want %v", top.Name(), a, b, top.Has(a, b), want)
				}
			}
		}
	})
}

func checkCycle(t *rapid.T, top *pccl.Topology, cycle []int) {
	if len(cycle) != top.GPUs() || cycle[0] != 0 {
		t.Fatalf("%s: cycle %v", top.Name(), cycle)
	}
	seen := map[int]bool{}
	for i, x := range cycle {
		if next := cycle[(i+1)%len(cycle)]; !top.Has(x, next) || seen[x] {
			t.Fatalf("%s: no cycle: %v at %d", top.Name(), cycle, x)
		}
		seen[x] = true
	}
}

func TestCycle_lattices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top, dims, wrap := drawLattice(t, 7)
		cycle, err := pccl.Cycle(top)
		if has := wrap || top.GPUs()%2 == 0 && (len(dims) > 1 || dims[0] == 2); !has {
			if !errors.Is(err, pccl.ErrSize) {
				t.Fatalf("%s: got %v, want ErrSize", top.Name(), err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		checkCycle(t, top, cycle)
		if top.GPUs() > 400 {
			return
		}
		for _, c := range reductions {
			s, err := pccl.RingOn(top, c, 1e6)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			for _, tr := range s.Rounds[0].Transfers {
				if !top.Has(tr.Src, tr.Dst) {
					t.Fatalf("%s: %v is no hop", top.Name(), tr)
				}
			}
		}
	})
}

// On small topologies of any kind the search finds a cycle if, and only if, trying all orders does.
func TestCycle_search(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 7).Draw(t, "gpus")
		var circuits []pccl.Transfer
		for a := range n {
			for b := range n {
				if a != b && rapid.IntRange(0, 2).Draw(t, "") == 0 {
					circuits = append(circuits, pccl.Transfer{Src: a, Dst: b})
				}
			}
		}
		top, err := pccl.NewTopology("drawn", n, circuits)
		if err != nil {
			t.Fatal(err)
		}
		var any func(way []int) bool
		any = func(way []int) bool {
			if len(way) == n {
				return top.Has(way[n-1], 0)
			}
			for _, x := range top.Out(way[len(way)-1]) {
				if !slices.Contains(way, x) && any(append(way, x)) {
					return true
				}
			}
			return false
		}
		cycle, err := pccl.Cycle(top)
		if want := any([]int{0}); want != (err == nil) {
			t.Fatalf("%s: got %v, %v; there is one: %v", circuitsText(top), cycle, err, want)
		}
		if err == nil {
			checkCycle(t, top, cycle)
		}
	})
}

func TestDirect(t *testing.T) {
	s := mustNew(t, pccl.ReduceScatter, "rhd-halving", 8, 1e6)
	union, err := pccl.Direct(8, "rounds 0 to 2", s.Rounds...)
	if err != nil {
		t.Fatal(err)
	}
	cube := mustTopology(t, "hypercube", 8)
	if !union.Equal(cube) || union.Name() != "rounds 0 to 2" {
		t.Errorf("the rounds of RHD are %s, want a hypercube", circuitsText(union))
	}
	if one, err := pccl.Direct(8, "round 0", s.Rounds[0]); err != nil || one.Equal(cube) || one.Len() != 8 {
		t.Errorf("one round: %v, %v", one, err)
	}
	if _, err := pccl.Direct(4, "round 0", s.Rounds[0]); !errors.Is(err, pccl.ErrArgument) {
		t.Errorf("got %v, want ErrArgument", err)
	}
}

func TestDims(t *testing.T) {
	for _, tt := range []struct {
		gpus, n int
		want    []int
	}{{128, 2, []int{8, 16}}, {128, 3, []int{4, 4, 8}}, {64, 2, []int{8, 8}}, {64, 3, []int{4, 4, 4}}, {32, 2, []int{4, 8}},
		{32, 3, []int{2, 4, 4}}, {12, 2, []int{3, 4}}, {60, 3, []int{3, 4, 5}}, {7, 1, []int{7}}, {65536, 2, []int{256, 256}}} {
		if got, err := pccl.Dims(tt.gpus, tt.n); err != nil || !cmp.Equal(got, tt.want) {
			t.Errorf("Dims(%d, %d) = %v, %v, want %v", tt.gpus, tt.n, got, err, tt.want)
		}
	}
	for _, tt := range [][2]int{{7, 2}, {8, 4}, {8, 0}, {8, -1}, {8, 1 << 40}, {1, 1}, {-8, 2}} {
		if got, err := pccl.Dims(tt[0], tt[1]); !errors.Is(err, pccl.ErrSize) {
			t.Errorf("Dims(%d, %d) = %v, %v, want ErrSize", tt[0], tt[1], got, err)
		}
	}
}

func FuzzParseTopology(f *testing.F) {
	for _, seed := range []string{"ring", "torus 8x16", "Grid:4x4", "torus2d", "0-1,2>3", "hypercube 16", "torus 0x", "dark"} {
		f.Add(seed, 16)
	}
	f.Fuzz(func(t *testing.T, text string, gpus int) {
		if gpus > 256 {
			return
		}
		top, err := pccl.ParseTopology(text, gpus)
		if err != nil {
			if !errors.Is(err, pccl.ErrArgument) && !errors.Is(err, pccl.ErrSize) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if top.GPUs() != gpus {
			t.Errorf("%q of %d GPUs has %d", text, gpus, top.GPUs())
		}
		if top.Name() == "circuits" {
			return
		}
		if again, err := pccl.ParseTopology(top.Name(), gpus); err != nil || !again.Equal(top) {
			t.Errorf("%q is %q, which is read otherwise: %v", text, top.Name(), err)
		}
	})
}
