package loss

import (
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// FalseAlarms is the share of sound switches, at most, of whose map [Map.Analyze] flags a port or
// a path that loses too much or too little: by chance alone, one in a hundred.
const FalseAlarms = 0.01

// Shares of FalseAlarms: of all paths of a map together, and of all ports of one side.
const (
	pathShare = FalseAlarms / 2
	portShare = FalseAlarms / 4
)

// tableSizes are the numbers of ports that the tables have. What is between two of them
// takes the larger value of both.
var tableSizes = []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 24, 32}

// bracket returns the sizes of the table next to n, of which it takes the larger value.
func bracket(n int) (low, high int) {
	i, ok := slices.BinarySearch(tableSizes, n)
	last := len(tableSizes) - 1
	switch {
	case i > last:
		return last, last
	case ok || i == 0:
		return i, i
	}
	return i - 1, i
}

// pathLimit is how many spreads of the rests (see [Model]) a path must be out in a map of so many rows and
// columns. It is a maximum of that many rests of one fit, divided by a spread from the same
// rests, so no quantile of a normal distribution will do: in a 5 x 5 map it is twice that.
func pathLimit(rows, columns int) float64 {
	long, short := max(rows, columns), min(rows, columns)
	a1, a2 := bracket(long)
	b1, b2 := bracket(short)
	limit := 0.0
	for _, a := range []int{a1, a2} {
		for _, b := range []int{b1, b2} {
			limit = max(limit, pathTable[max(a, b)][min(a, b)])
		}
	}
	return limit * beyond(rows*columns, tableSizes[a2]*tableSizes[b2], pathShare)
}

// portLimit is how many spreads a port of n on a side must be away from their median, whether
// its peers scatter normally or evenly between two limits, as errors of monitors are taken to.
func portLimit(n int) float64 {
	low, high := bracket(n)
	return max(portTable[low], portTable[high]) * beyond(n, tableSizes[high], portShare/2)
}

// beyond is by how much a limit of so many numbers is larger than that of as many as the table has.
func beyond(n, has int, share float64) float64 {
	if n <= has {
		return 1
	}
	far := func(n int) float64 { return distuv.UnitNormal.Quantile(1 - share/float64(n)) }
	return far(n) / far(has)
}

// The tables are from simulated maps of normal scatter, with fixed seeds: go test -run TestTables -tables prints them.

// pathTable has a row for each of tableSizes, with as many columns as are no larger.
var pathTable = [][]float64{
	{6.62},
	{7.25, 7.65},
	{5.65, 5.77, 5.21},
	{6.25, 6.06, 5.22, 5.51},
	{5.41, 5.42, 4.90, 5.09, 4.67},
	{5.65, 5.54, 4.94, 5.00, 4.85, 4.82},
	{5.21, 5.22, 4.79, 5.00, 4.64, 4.90, 4.50},
	{5.25, 5.21, 4.87, 4.90, 4.75, 4.71, 4.57, 4.71},
	{4.97, 4.99, 4.70, 4.80, 4.64, 4.61, 4.42, 4.68, 4.43},
	{4.97, 5.05, 4.81, 4.96, 4.56, 4.56, 4.54, 4.58, 4.49, 4.56},
	{4.91, 4.95, 4.56, 4.69, 4.49, 4.59, 4.49, 4.59, 4.44, 4.53, 4.47},
	{4.67, 4.60, 4.50, 4.74, 4.52, 4.72, 4.41, 4.48, 4.40, 4.54, 4.52, 4.40},
	{4.81, 4.75, 4.46, 4.66, 4.35, 4.72, 4.40, 4.55, 4.52, 4.55, 4.43, 4.58, 4.51},
}

// portTable has an entry for each of tableSizes. Of few ports, a spread says little.
var portTable = []float64{459.03, 35.17, 40.39, 16.23, 17.50, 11.72, 13.21, 9.77, 9.62, 8.45, 7.05, 6.20, 5.60}
