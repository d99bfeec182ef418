package model

import (
	"fmt"
	"math"
)

// Use is one of two uses of a dimension that share its rails.
type Use struct {
	Bytes   float64 // V: what is sent
	Overlap float64 // T*: seconds of computation that hide as much of the sending
}

// Objective is what a split is for.
type Objective string

const (
	// Sum is equation (11): one use after the other.
	Sum Objective = "sum"
	// Slower is the longer of the two, for uses at the same time (section 3.3.4).
	Slower Objective = "max"
)

// Shares is a split of the lanes of each chip at the edge.
type Shares struct {
	First, Second int     // lanes of each use
	Time          float64 // seconds
}

// Split tries all ways to divide n lanes of bandwidth b, bytes a second, between two uses (equation 11), and returns the
// quickest; of equal ones the one with fewer lanes for the first. A use that sends nothing may have none. An error matches
// [ErrArgument].
func Split(lanes int, b float64, first, second Use, o Objective) (Shares, error) {
	for _, u := range []Use{first, second} {
		if !(u.Bytes >= 0) || !(u.Overlap >= 0) || math.IsInf(u.Bytes, 1) || math.IsInf(u.Overlap, 1) {
			return Shares{}, fmt.Errorf("%w: a use that sends %v bytes behind %v s of computation: want numbers from 0", ErrArgument, u.Bytes, u.Overlap)
		}
	}
	if o == "" {
		o = Sum
	}
	switch {
	case lanes < 1 || lanes > 1<<16:
		return Shares{}, fmt.Errorf("%w: %d lanes: want 1 to 65536", ErrArgument, lanes)
	case !(b > 0) || math.IsInf(b, 1):
		return Shares{}, fmt.Errorf("%w: a bandwidth of %v: want one above 0", ErrArgument, b)
	case o != Sum && o != Slower:
		return Shares{}, fmt.Errorf("%w: objective %q: want %q or %q", ErrArgument, o, Sum, Slower)
	}
	best := Shares{Time: math.Inf(1)}
	for n := 0; n <= lanes; n++ {
		x, y := first.time(n, b), second.time(lanes-n, b)
		time := x + y
		if o == Slower {
			time = max(x, y)
		}
		if time < best.Time {
			best = Shares{n, lanes - n, time}
		}
	}
	if math.IsInf(best.Time, 1) {
		return Shares{}, fmt.Errorf("%w: %d lane for two uses that both send: want 2 or more", ErrArgument, lanes)
	}
	return best, nil
}

// time is how long a use takes with n lanes, in both directions.
func (u Use) time(n int, b float64) float64 {
	if u.Bytes == 0 {
		return u.Overlap
	}
	return max(u.Overlap, u.Bytes/(2*float64(n)*b)) // with no lanes never: +Inf
}
