package hamilton

import (
	_ "embed" // for paths
	"fmt"
	"strconv"
	"strings"
)

// paths has for each even k from 8 to MaxEven a path through the vertices of the zig-zag of k-1 whose arcs are all of
// different cycles, written in runs: "3-6" is 3, 4, 5, 6, counted around k-2, and "inf" is vertex k-2. The search
// that found them is in search_test.go; what it finds is checked there.
//
//go:embed paths.txt
var paths string

// path returns the path for an even k.
func path(k int) ([]int, error) {
	switch {
	case k == 4 || k == 6:
		return nil, fmt.Errorf("%w of %d vertices exists (Tillson): doubled rings have the same bandwidth on duplex links, and "+
			"%d or %d vertices have directed cycles", ErrNone, k, k-1, k+1)
	case k > MaxEven:
		return nil, fmt.Errorf("%w of %d vertices is known here: want any odd number, an even one up to %d, or doubled rings",
			ErrNone, k, MaxEven)
	}
	prefix := strconv.Itoa(k) + ": "
	for line := range strings.Lines(paths) {
		if runs, ok := strings.CutPrefix(line, prefix); ok {
			return parsePath(k, strings.Fields(runs))
		}
	}
	return nil, fmt.Errorf("%w of %d vertices is known here", ErrNone, k)
}

// parsePath reads a path of k-1 vertices. That its arcs are of different cycles is for Check to find.
func parsePath(k int, runs []string) ([]int, error) {
	n := k - 2
	list := make([]int, 0, k-1)
	for _, run := range runs {
		if run == "inf" {
			list = append(list, n)
			continue
		}
		first, last, isRange := strings.Cut(run, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			return nil, err
		}
		to, err := strconv.Atoi(last)
		if err != nil {
			return nil, err
		}
		for v := from; len(list) < k-1; v = (v + 1) % n {
			list = append(list, v)
			if v == to {
				break
			}
		}
	}
	if len(list) != k-1 {
		return nil, fmt.Errorf("the path for %d has %d vertices: want %d", k, len(list), k-1)
	}
	return list, nil
}
