package hamilton

import (
	"errors"
	"fmt"
)

// Errors of this package. Test with errors.Is.
var (
	// ErrNone: there is no such decomposition, or none that is known.
	ErrNone = errors.New("no decomposition into directed cycles")
	// ErrSize: a number of vertices that is below 1, above MaxSize, or odd where it must be even.
	ErrSize = errors.New("no such number of vertices")
	// ErrCycles: cycles that are no decomposition.
	ErrCycles = errors.New("the cycles are no decomposition")
)

const (
	// MaxSize is the largest k: a decomposition of it has four million arcs.
	MaxSize = 2048
	// MaxEven is the largest even k with a directed decomposition.
	MaxEven = 162
)

// Directed returns k-1 cycles in which each ordered pair of different vertices is an arc exactly once. For k of at
// least 3, a pair and its reverse are in different cycles.
//
// A prime k has the circulant, in which cycle a goes on by a+1; any other odd k the zig-zag; 2 has its only cycle,
// and 1 none. The error for 4 and 6, for which there is none, and for even numbers above MaxEven, for which none is
// known here, matches ErrNone and says what would work; that for a k outside of 1 to MaxSize matches ErrSize.
func Directed(k int) ([][]int, error) {
	if err := checkSize(k); err != nil {
		return nil, err
	}
	switch {
	case k == 1:
		return nil, nil
	case prime(k):
		return Circulant(k)
	case k%2 == 1:
		return ZigZag(k)
	}
	path, err := path(k)
	if err != nil {
		return nil, err
	}
	return extend(k, path), nil
}

// Doubled returns k-1 cycles, k being even, in which each unordered pair is adjacent exactly twice, in two different
// cycles if k is not 2. The error for any other k matches ErrSize.
func Doubled(k int) ([][]int, error) {
	if err := checkSize(k); err != nil {
		return nil, err
	}
	if k%2 == 1 {
		return nil, fmt.Errorf("%w: doubled rings of %d: want an even number; an odd one has directed cycles", ErrSize, k)
	}
	// The zig-zag around the circle of k-1, turned by one each time; k-1 itself is the centre.
	n := k - 1
	cycles := block(n, k)
	for t, c := range cycles {
		c[0] = n
		for i := range n {
			c[i+1] = (zigzag(i, n) + t) % n
		}
	}
	return cycles, nil
}

// Cycles returns the directed decomposition where there is one, and else the doubled one. The error for a k outside
// of 1 to MaxSize matches ErrSize.
func Cycles(k int) (cycles [][]int, directed bool, err error) {
	cycles, err = Directed(k)
	if errors.Is(err, ErrNone) {
		cycles, err = Doubled(k)
		return cycles, false, err
	}
	return cycles, err == nil, err
}

// Circulant returns the decomposition in which cycle a goes from each vertex to the one a+1 further, around k. It
// exists for prime k only; the error for any other matches ErrSize.
func Circulant(k int) ([][]int, error) {
	if err := checkSize(k); err != nil {
		return nil, err
	}
	if !prime(k) {
		return nil, fmt.Errorf("%w: a circulant of %d: want a prime number, or some steps make several rings", ErrSize, k)
	}
	cycles := block(k-1, k)
	for a, c := range cycles {
		for i := range c {
			c[i] = i * (a + 1) % k
		}
	}
	return cycles, nil
}

// ZigZag returns Walecki's decomposition of an odd k of 3 or more: with N = k-1, cycle t goes from vertex N through
// t, t+1, t-1, t+2, t-2 and so on around N, and cycle t+N/2 is cycle t in reverse. The error for any other k matches
// ErrSize.
func ZigZag(k int) ([][]int, error) {
	if err := checkSize(k); err != nil {
		return nil, err
	}
	if k%2 == 0 || k < 3 {
		return nil, fmt.Errorf("%w: a zig-zag of %d: want an odd number of 3 or more", ErrSize, k)
	}
	n := k - 1
	cycles := block(n, k)
	for t, c := range cycles {
		c[0] = n
		for i := range n {
			c[i+1] = (zigzag(i, n) + t) % n
		}
	}
	return cycles, nil
}

// zigzag returns the i-th of 0, 1, -1, 2, -2, ... around n.
func zigzag(i, n int) int {
	if i%2 == 1 {
		return (i + 1) / 2 % n
	}
	return (n - i/2) % n
}

// zigzagOwner returns the cycle of ZigZag(n+1) that has the arc from x to y.
func zigzagOwner(n, x, y int) int {
	h := n / 2
	switch {
	case x == n:
		return y
	case y == n:
		return (x + h) % n
	}
	if u := (y - x + n) % n; u%2 == 1 {
		return (x + (u-1)/2) % n
	} else {
		return (x - (n-u)/2 + n) % n
	}
}

// extend returns the decomposition of an even k out of the zig-zag of k-1 and a path through all of the latter's
// vertices whose arcs are of different cycles: each of these arcs is replaced by a way through the new vertex, k-1, and
// the path itself closes to one more cycle.
func extend(k int, path []int) [][]int {
	n := k - 2 // cycles of the zig-zag
	star := k - 1
	after := make([]int, n) // by cycle, after which vertex the new one comes
	for i := range n {
		after[zigzagOwner(n, path[i], path[i+1])] = path[i]
	}
	cycles := block(k-1, k)
	for t, c := range cycles[:n] {
		at := 0
		put := func(v int) {
			c[at] = v
			at++
			if v == after[t] {
				c[at] = star
				at++
			}
		}
		put(n)
		for i := range n {
			put((zigzag(i, n) + t) % n)
		}
	}
	last := cycles[n]
	last[0] = star
	copy(last[1:], path)
	return cycles
}

// Owner says which cycle of Directed(k) has an arc, in constant time. Make one with NewOwner; the zero Owner has no arcs.
type Owner struct {
	k      int
	prime  bool
	next   []int // by vertex: the one after it on the path of an even k; -1 at its end
	before []int
}

// NewOwner returns the owner of arcs of Directed(k), and errors as that does.
func NewOwner(k int) (Owner, error) {
	if err := checkSize(k); err != nil {
		return Owner{}, err
	}
	o := Owner{k: k, prime: prime(k)}
	if k%2 == 1 || k == 2 {
		return o, nil
	}
	path, err := path(k)
	if err != nil {
		return Owner{}, err
	}
	o.next, o.before = make([]int, k-1), make([]int, k-1)
	o.next[path[k-2]], o.before[path[0]] = -1, -1
	for i := range k - 2 {
		o.next[path[i]], o.before[path[i+1]] = path[i+1], path[i]
	}
	return o, nil
}

// Of returns the cycle in which to follows from; -1 if one of them is no vertex, or both are the same.
func (o Owner) Of(from, to int) int {
	k := o.k
	switch {
	case from < 0 || to < 0 || from >= k || to >= k || from == to:
		return -1
	case o.prime:
		return (to - from - 1 + k) % k
	case k%2 == 1:
		return zigzagOwner(k-1, from, to)
	}
	n, star, extra := k-2, k-1, k-2
	switch {
	case from == star:
		if o.before[to] < 0 {
			return extra
		}
		return zigzagOwner(n, o.before[to], to)
	case to == star:
		if o.next[from] < 0 {
			return extra
		}
		return zigzagOwner(n, from, o.next[from])
	case o.next[from] == to:
		return extra
	}
	return zigzagOwner(n, from, to)
}

// Check returns what is wrong with cycles as a decomposition of k, directed or doubled. It knows nothing of how they
// were made. Its error matches ErrCycles, or ErrSize for a k outside of 1 to MaxSize.
func Check(k int, cycles [][]int, directed bool) error {
	if err := checkSize(k); err != nil {
		return err
	}
	if len(cycles) != k-1 {
		return fmt.Errorf("%w: there are %d cycles for %d vertices: want %d", ErrCycles, len(cycles), k, k-1)
	}
	seen := make([]uint8, k*k) // arcs, or pairs with the lower vertex first
	at := make([]int, k)       // the last cycle a vertex was in, from 1
	want := uint8(1)
	if !directed {
		want = 2
	}
	for t, c := range cycles {
		if len(c) != k {
			return fmt.Errorf("%w: cycle %d has %d vertices: want %d", ErrCycles, t, len(c), k)
		}
		for _, v := range c {
			if v < 0 || v >= k {
				return fmt.Errorf("%w: cycle %d has vertex %d: want 0 to %d", ErrCycles, t, v, k-1)
			}
			if at[v] == t+1 {
				return fmt.Errorf("%w: cycle %d comes through vertex %d twice", ErrCycles, t, v)
			}
			at[v] = t + 1
		}
		for i, v := range c {
			w := c[(i+1)%k]
			if !directed && w < v {
				v, w = w, v
			}
			if seen[v*k+w]++; seen[v*k+w] > want {
				return fmt.Errorf("%w: %d and %d are neighbours more often than %d times, again in cycle %d",
					ErrCycles, v, w, want, t)
			}
		}
	}
	// As many arcs as there are places, none too often: each is there.
	return nil
}

// checkSize returns why k is no number of vertices.
func checkSize(k int) error {
	if k < 1 || k > MaxSize {
		return fmt.Errorf("%w: %d: want 1 to %d", ErrSize, k, MaxSize)
	}
	return nil
}

// block returns n slices of k numbers in one piece of memory.
func block(n, k int) [][]int {
	all, rows := make([]int, n*k), make([][]int, n)
	for i := range rows {
		rows[i] = all[i*k : (i+1)*k : (i+1)*k]
	}
	return rows
}

func prime(k int) bool {
	for d := 2; d*d <= k; d++ {
		if k%d == 0 {
			return false
		}
	}
	return k >= 2
}
