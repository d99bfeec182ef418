package ocst_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Every one of the 8! permutations is routed: the light of each lane is followed through the
// wiring. No two of them are the same.
func TestRoute_All(t *testing.T) {
	t.Parallel()
	seen := make(map[ocst.Permutation]bool, 40320)
	permutations(func(p ocst.Permutation) {
		seen[p] = true
		s, err := ocst.Route(p)
		if err != nil {
			t.Fatal(err)
		}
		for lane, want := range p {
			if got, _ := s.Follow(lane); got != int(want) {
				t.Fatalf("%v: lane %d arrives at %d, want %d", p, lane, got, want)
			}
		}
	})
	if len(seen) != 40320 {
		t.Errorf("%d different permutations were tried, want 8!", len(seen))
	}
}

// The wiring as the comment of States has it: a line that no element crosses, worked out by
// hand, and one that all cross.
func TestFollow_Golden(t *testing.T) {
	t.Parallel()
	var bar, cross ocst.States
	for column := range cross {
		for row := range cross[column] {
			cross[column][row] = true
		}
	}
	for _, tt := range []struct {
		s        ocst.States
		lane, to int
		rows     [ocst.Columns]int
	}{
		{bar, 0, 0, [5]int{0, 0, 0, 0, 0}},
		{bar, 1, 1, [5]int{0, 2, 2, 2, 0}},   // lower half, its upper quarter
		{bar, 7, 7, [5]int{3, 3, 3, 3, 3}},   // lower half, its lower quarter
		{cross, 0, 4, [5]int{0, 2, 3, 3, 2}}, // lower half, lower quarter, and out of them at their outputs 2 and 1
		{cross, 7, 3, [5]int{3, 1, 0, 0, 1}},
	} {
		to, passed := tt.s.Follow(tt.lane)
		if to != tt.to {
			t.Errorf("lane %d arrives at %d, want %d", tt.lane, to, tt.to)
		}
		for column, e := range passed {
			if want := ocst.Loop(column, tt.rows[column]); e != want {
				t.Errorf("lane %d passes %v in column %d, want %v", tt.lane, e, column+1, want)
			}
		}
	}
	for _, lane := range []int{-1, ocst.Lanes} {
		if to, _ := bar.Follow(lane); to != -1 {
			t.Errorf("lane %d, which is not there, arrives at %d", lane, to)
		}
	}
}

// Whatever the states, the network takes the lanes to different receivers, and each column
// passes all eight lines, two at each element.
func TestFollow_AnyStates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s ocst.States
		for column := range s {
			for row := range s[column] {
				s[column][row] = rapid.Bool().Draw(t, "cross")
			}
		}
		var p ocst.Permutation
		lines := map[ocst.Element]int{}
		for lane := range p {
			to, passed := s.Follow(lane)
			p[lane] = uint8(to)
			for _, e := range passed {
				lines[e]++
			}
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if len(lines) != ocst.Columns*ocst.Rows {
			t.Fatalf("%d elements are passed", len(lines))
		}
		for e, n := range lines {
			if n != 2 {
				t.Fatalf("%v is passed by %d lanes", e, n)
			}
		}
	})
}

// Wire and Line join each output of a column with one input of the next.
func TestWireLine(t *testing.T) {
	t.Parallel()
	for column := range ocst.Columns {
		inputs, lines := map[[2]int]bool{}, map[int]bool{}
		for line := range ocst.Lanes {
			row, input := ocst.Wire(column, line)
			inputs[[2]int{row, input}] = row >= 0 && row < ocst.Rows && (input == 0 || input == 1)
		}
		for row := range ocst.Rows {
			for output := range 2 {
				line := ocst.Line(column, row, output)
				lines[line] = line >= 0 && line < ocst.Lanes
			}
		}
		if len(inputs) != ocst.Lanes || len(lines) != ocst.Lanes {
			t.Errorf("column %d: %d inputs and %d outputs", column+1, len(inputs), len(lines))
		}
		for in, ok := range inputs {
			if !ok {
				t.Errorf("column %d has no input %v", column+1, in)
			}
		}
		for line, ok := range lines {
			if !ok {
				t.Errorf("column %d has no line %d", column+1, line)
			}
		}
	}
}

func genPermutation() *rapid.Generator[ocst.Permutation] {
	return rapid.Map(rapid.Permutation([]uint8{0, 1, 2, 3, 4, 5, 6, 7}), func(s []uint8) ocst.Permutation { return ocst.Permutation(s) })
}

// Complete keeps what was asked for, takes every lane somewhere, and leaves the lanes that
// were not asked for where they were, unless another has come there.
func TestComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, goal := genPermutation().Draw(t, "before"), genPermutation().Draw(t, "goal")
		var want [ocst.Lanes]int
		taken := map[int]bool{}
		for lane, to := range goal {
			want[lane] = -rapid.IntRange(1, 9).Draw(t, "any")
			if rapid.Bool().Draw(t, "asked") {
				want[lane] = int(to)
				taken[int(to)] = true
			}
		}
		got, err := p.Complete(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Check(); err != nil {
			t.Fatal(err)
		}
		for lane, to := range want {
			switch {
			case to >= 0 && int(got[lane]) != to:
				t.Fatalf("lane %d goes to %d, asked was %d", lane, got[lane], to)
			case to < 0 && !taken[int(p[lane])] && got[lane] != p[lane]:
				t.Fatalf("lane %d goes to %d, and nothing has taken %d from it", lane, got[lane], p[lane])
			}
		}
		if q := got.Inverse(); q.Check() != nil || q.Inverse() != got {
			t.Fatalf("the inverse of %v is %v", got, q)
		}
	})
}

// Bytes of a module are not trusted: what is no permutation is an error or is mended, and
// nothing panics.
func TestPermutation_Bad(t *testing.T) {
	t.Parallel()
	none := [ocst.Lanes]int{-1, -1, -1, -1, -1, -1, -1, -1}
	for _, tt := range []struct {
		p    ocst.Permutation
		want string
	}{
		{ocst.Permutation{}, "two lanes would go to lane 1"},
		{ocst.Permutation{15, 1, 2, 3, 4, 5, 6, 7}, "lane 1 would go to lane 16"},
		{ocst.Permutation{255, 255, 255, 255, 255, 255, 255, 255}, "lane 256"},
	} {
		if err := tt.p.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q in it", tt.p, err, tt.want)
		}
		if _, err := ocst.Route(tt.p); err == nil {
			t.Errorf("%v is routed", tt.p)
		}
		_ = tt.p.Inverse()
		if q, err := tt.p.Complete(none); err != nil || q.Check() != nil {
			t.Errorf("%v is completed to %v, %v", tt.p, q, err)
		}
	}
	for _, want := range [][ocst.Lanes]int{{8, -1, -1, -1, -1, -1, -1, -1}, {1, 1, -1, -1, -1, -1, -1, -1}, {1 << 40}} {
		p := ocst.DefaultPermutation()
		if q, err := p.Complete(want); err == nil || q != p {
			t.Errorf("%v: %v, %v", want, q, err)
		}
	}
}

// Elements have one number and one name each.
func TestElement(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for e := range ocst.Element(ocst.Elements) {
		names[e.String()] = true
		column, row, loop := e.IsLoop()
		switch {
		case loop && ocst.Loop(column, row) != e:
			t.Errorf("%v is at %d, %d", e, column, row)
		case loop != (e >= 16):
			t.Errorf("%v: loop %v", e, loop)
		}
	}
	if len(names) != 36 {
		t.Errorf("%d names", len(names))
	}
	for e, want := range map[ocst.Element]string{
		ocst.S1(2): "S1 of lane 3", ocst.S2(7): "S2 of lane 8", ocst.Loop(1, 3): "loop element 2.4", 16: "loop element 1.1", 35: "loop element 5.4",
		-1: "element -1, which is not there", 36: "element 36, which is not there",
	} {
		if got := e.String(); got != want {
			t.Errorf("element %d is %q, want %q", int(e), got, want)
		}
	}
}

// permutations calls f with every permutation (Heap's algorithm).
func permutations(f func(ocst.Permutation)) {
	p := ocst.Permutation{0, 1, 2, 3, 4, 5, 6, 7}
	var heap func(k int)
	heap = func(k int) {
		if k == 1 {
			f(p)
			return
		}
		for i := range k {
			heap(k - 1)
			j := 0
			if k%2 == 0 {
				j = i
			}
			if i < k-1 {
				p[j], p[k-1] = p[k-1], p[j]
			}
		}
	}
	heap(ocst.Lanes)
}

func BenchmarkRoute(b *testing.B) {
	p := ocst.Permutation{3, 7, 0, 5, 1, 6, 2, 4}
	for b.Loop() {
		if _, err := ocst.Route(p); err != nil {
			b.Fatal(err)
		}
	}
}
