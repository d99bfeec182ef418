package model

import (
	"fmt"
	"math"
)

// Machine is what collectives run on.
type Machine struct {
	Mesh  int     // m
	Lanes int     // n
	Kappa float64 // bandwidth of a link of the mesh, in units of n ports
	Port  float64 // B: bytes a second of a port in one direction
	Alpha float64 // seconds of a hop between nodes
	Hop   float64 // seconds of a hop within a mesh; the paper leaves it out
}

// AllReduce are the times of an all-reduce in each of the four ways, seconds.
type AllReduce struct {
	Ring      float64 // one ring through all chips, on all four sides of each
	Rings2D   float64 // equation (7): rings of m·p chips in two dimensions
	Hierarchy float64 // equation (8): within nodes, and rings of p nodes in two dimensions between them
	HyperX    float64 // equation (13): within nodes, and direct exchange between p nodes in two dimensions
}

// RingHalf returns T_R of equation (6): a reduce-scatter or an all-gather of that many bytes in a ring of p in which both
// directions of bandwidth b are used.
func RingHalf(p int, bytes, b, alpha float64) float64 {
	return float64(p-1)*alpha + part(p)*bytes/(2*b)
}

// DirectHalf returns T_AR of equation (12): the same where each of p has a link to each other.
func DirectHalf(p int, bytes, b, alpha float64) float64 {
	if p <= 1 {
		return 0
	}
	return alpha + part(p)*bytes/(2*b)
}

func part(p int) float64 { return float64(p-1) / float64(p) }

// AllReduce returns how long p x p nodes take for that many bytes. Sums are exact, not simplified as on the right of the
// equations. An error matches [ErrArgument].
func (x Machine) AllReduce(p int, bytes float64) (AllReduce, error) {
	if err := x.check(p, bytes); err != nil {
		return AllReduce{}, err
	}
	m, n := float64(x.Mesh), float64(x.Lanes)
	side, chips := x.Mesh*p, x.Mesh*x.Mesh
	nB := n * x.Port
	within := 2*part(chips)*bytes/(2*x.Kappa*nB) + 2*float64(chips-1)*x.Hop
	share := bytes / (2 * m * m) // of a chip, in each of the two dimensions
	return AllReduce{
		Ring: 2 * RingHalf(side*side, bytes, 2*nB, x.Alpha),
		Rings2D: 2 * (RingHalf(side, bytes/2, nB, x.Alpha) +
			RingHalf(side, bytes/2/float64(side), nB, x.Alpha)),
		Hierarchy: within + 2*(RingHalf(p, share, nB/m, x.Alpha)+RingHalf(p, share/float64(p), nB/m, x.Alpha)),
		HyperX:    within + 2*(DirectHalf(p, share, nB/m, x.Alpha)+DirectHalf(p, share/float64(p), nB/m, x.Alpha)),
	}, nil
}

// Simplified returns the right sides of equations (7), (8) and (13); Ring is 0.
func (x Machine) Simplified(p int, bytes float64) (AllReduce, error) {
	if err := x.check(p, bytes); err != nil {
		return AllReduce{}, err
	}
	m, hops := float64(x.Mesh), 4*float64(p)*x.Alpha
	v := bytes / (2 * float64(x.Lanes) * x.Port)
	return AllReduce{Rings2D: m*hops + v, Hierarchy: hops + (2/x.Kappa+1/m)*v, HyperX: 4*x.Alpha + (2/x.Kappa+1/m)*v}, nil
}

// Shared returns the right sides of equation (9): all-reduces of nodes whose chips are one rank, and share the bandwidth
// n·B/m, in one ring and in two dimensions.
func (x Machine) Shared(p int, bytes float64) (ring, rings2D float64, err error) {
	if err := x.check(p, bytes); err != nil {
		return 0, 0, err
	}
	v := bytes / (float64(x.Lanes) * x.Port / float64(x.Mesh))
	return 2*float64(p)*x.Alpha + v, 4*float64(p)*x.Alpha + v/2, nil
}

func (x Machine) check(p int, bytes float64) error {
	for _, v := range []struct {
		name  string
		value float64
		above bool
	}{{"kappa", x.Kappa, true}, {"the bandwidth of a port", x.Port, true}, {"alpha", x.Alpha, false},
		{"the time of a mesh hop", x.Hop, false}, {"the size", bytes, false}} {
		if !(v.value >= 0) || math.IsInf(v.value, 1) || v.above && v.value == 0 {
			return fmt.Errorf("%w: %s is %v: want a number above 0, or 0 for times and sizes", ErrArgument, v.name, v.value)
		}
	}
	if x.Mesh < 1 || x.Mesh > 256 || x.Lanes < 1 || x.Lanes > 256 || p < 1 || p > 4096 {
		return fmt.Errorf("%w: %d x %d nodes of %d x %d chips with %d ports at an edge: want 1 to 4096, 1 to 256 and 1 to 256",
			ErrArgument, p, p, x.Mesh, x.Mesh, x.Lanes)
	}
	return nil
}

// StepTime returns equation (10): what computes without communication, then what overlaps, then the rest, seconds.
func StepTime(compute, overlappedCompute, overlappedCommunication, communication float64) float64 {
	return compute + max(overlappedCompute, overlappedCommunication) + communication
}
