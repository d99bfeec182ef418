package timeline

// Distribution is the distribution of durations each of which is known to lie in an
// interval, by [Turnbull].
type Distribution struct {
	Steps []Step // in order of time, not overlapping
	Count int    // durations it was made from
}

// Step says that a part of all durations lies in an interval; where in it, nobody knows. Of
// what never came, the interval ends at [Never].
type Step struct {
	Interval
	Mass float64 // above 0; all add up to 1
}
