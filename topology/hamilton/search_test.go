package hamilton

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var searchTo = flag.Int("search", 40, "look for the paths of even k up to this one; 80 takes some seconds")

// The paths of paths.txt are found again, by search, and any path found makes a decomposition.
func TestSearch(t *testing.T) {
	for k := 8; k <= *searchTo; k += 2 {
		runs := find(k)
		if runs == nil {
			t.Fatalf("%d: no path", k)
		}
		path, err := parsePath(k, runs)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(k, extend(k, path), true); err != nil {
			t.Errorf("%d: %v: %v", k, runs, err)
		}
		if k <= MaxEven && !strings.Contains(paths, fmt.Sprintf("%d: %s\n", k, strings.Join(runs, " "))) {
			t.Errorf("%d: %s is not the one in paths.txt", k, strings.Join(runs, " "))
		}
	}
	for _, k := range []int{4, 6} {
		if runs := find(k); runs != nil {
			t.Errorf("%d: found %v, and there is none (Tillson)", k, runs)
		}
	}
}

// Each arc of a path in paths.txt is of another cycle, which is all that extend relies on.
func TestPathsHaveAllColours(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(paths), "\n")
	if len(lines) != (MaxEven-8)/2+1 {
		t.Fatalf("%d paths: want one for each even number from 8 to %d", len(lines), MaxEven)
	}
	for i, line := range lines {
		k := 8 + 2*i
		if !strings.HasPrefix(line, strconv.Itoa(k)+": ") {
			t.Fatalf("line %d is not for %d: %s", i+1, k, line)
		}
		path, err := path(k)
		if err != nil {
			t.Fatal(err)
		}
		seen := make([]bool, k-2)
		for j := range k - 2 {
			c := zigzagOwner(k-2, path[j], path[j+1])
			if seen[c] {
				t.Fatalf("%d: cycle %d has two arcs of the path", k, c)
			}
			seen[c] = true
		}
	}
	for _, bad := range [][]string{{"0-x"}, {"x"}, {"0", "inf"}} {
		if _, err := parsePath(8, bad); err == nil {
			t.Errorf("%v was read", bad)
		}
	}
}

// find looks for a path with few runs.
func find(k int) []string {
	for q := 3; q <= min(8, k-2); q++ {
		s := newSearch(k-2, q)
		if s.need(s.n-1) && s.run(0) {
			return s.items
		}
		s = newSearch(k-2, q)
		s.infinity = true
		s.items = append(s.items, "inf")
		s.used[0] = true // the arc from infinity to 0
		if s.need(s.n-1) && s.need(0) && s.run(0) {
			return s.items
		}
	}
	return nil
}

// search is a path under construction. An arc from x to x+1 is of cycle x, so runs of consecutive vertices use each
// cycle once but for those of their ends; the arcs that join runs and infinity must be of just those.
type search struct {
	n, left                    int // vertices around, runs to be placed
	infinity                   bool
	taken, end, required, used []bool // by vertex: in a run; the end of one; must become one; is the cycle of a joining arc
	open                       int    // how many are required
	items                      []string
}

func newSearch(n, runs int) *search {
	return &search{n: n, left: runs, taken: make([]bool, n), end: make([]bool, n), required: make([]bool, n), used: make([]bool, n)}
}

// need says that v must be the end of a run; it is false if that cannot be.
func (s *search) need(v int) bool {
	switch {
	case s.end[v] || s.required[v]:
		return true
	case s.taken[v] || s.open == s.left:
		return false
	}
	s.required[v] = true
	s.open++
	return true
}

// want needs all of them, does what is to be done, and takes the needs back if that fails.
func (s *search) want(vs []int, do func() bool) bool {
	var new []int
	ok := true
	for _, v := range vs {
		was := s.required[v]
		if ok = s.need(v); !ok {
			break
		}
		if !was && s.required[v] {
			new = append(new, v)
		}
	}
	if ok && do() {
		return true
	}
	for _, v := range new {
		s.required[v] = false
		s.open--
	}
	return false
}

// run places a run that begins with y, and what comes after it.
func (s *search) run(y int) bool {
	var mine []int
	for e := y; !s.taken[e]; e = (e + 1) % s.n {
		s.taken[e] = true
		mine = append(mine, e)
		was := s.required[e]
		if was || s.open < s.left {
			if was {
				s.required[e] = false
				s.open--
			}
			s.end[e] = true
			s.left--
			item := strconv.Itoa(y)
			if e != y {
				item += "-" + strconv.Itoa(e)
			}
			s.items = append(s.items, item)
			if s.next(e) {
				return true
			}
			s.items = s.items[:len(s.items)-1]
			s.left++
			s.end[e] = false
			if was {
				s.required[e] = true
				s.open++
			}
		}
		if was {
			break
		}
	}
	for _, v := range mine {
		s.taken[v] = false
	}
	return false
}

// next joins what comes after x, which is n for infinity.
func (s *search) next(x int) bool {
	if s.left == 0 && s.infinity {
		return s.open == 0 && !slices.Contains(s.taken, false)
	}
	if !s.infinity {
		if c := zigzagOwner(s.n, x, s.n); !s.used[c] {
			s.used[c], s.infinity = true, true
			s.items = append(s.items, "inf")
			if s.want([]int{c}, func() bool { return s.next(s.n) }) {
				return true
			}
			s.items = s.items[:len(s.items)-1]
			s.used[c], s.infinity = false, false
		}
	}
	if s.left == 0 {
		return false
	}
	for y := range s.n {
		if s.taken[y] || x < s.n && y == (x+1)%s.n {
			continue
		}
		c := zigzagOwner(s.n, x, y)
		if s.used[c] {
			continue
		}
		s.used[c] = true
		if s.want([]int{(y + s.n - 1) % s.n, c}, func() bool { return s.run(y) }) {
			return true
		}
		s.used[c] = false
	}
	return false
}

// The paths that come along against looking for them.
func BenchmarkEven(b *testing.B) {
	for _, k := range []int{24, 40} {
		b.Run(fmt.Sprintf("%d/known", k), func(b *testing.B) {
			for b.Loop() {
				if _, err := path(k); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/searched", k), func(b *testing.B) {
			for b.Loop() {
				if find(k) == nil {
					b.Fatal("no path")
				}
			}
		})
	}
}
