package alloc

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/ocslab/ocslab/topology/railx"
)

// ErrSampling: rates, counts or sizes of [Sampling] that cannot be. Test with errors.Is.
var ErrSampling = errors.New("nothing can be drawn")

// MostWork bounds Samples times the nodes of the grid.
const MostWork = 1 << 30

// Sampling draws faulty nodes at random and allocates around them, as in figure 17.
type Sampling struct {
	Columns, Rows int
	// Faults is how many nodes are faulty in each sample. If it is 0, each node is faulty with probability Rate,
	// on its own.
	Faults  int
	Rate    float64 // from 0 to 1
	Samples int     // 0 is 100, as in the paper
	Seed    uint64  // the same seed gives the same samples
}

// Availability is what samples came to. Portions of all nodes, from 0 to 1.
type Availability struct {
	Mean, Least, Most float64
	Deviation         float64 // standard deviation of a sample
	Faults            float64 // mean number of faulty nodes
	Samples           int
	Inexact           int // samples whose allocation is not known to be the best
}

// Run allocates around each sample. A sample with nothing left counts as 0. An error matches [ErrSampling] or
// [railx.ErrGrid].
func (s Sampling) Run() (Availability, error) {
	if s.Samples == 0 {
		s.Samples = 100
	}
	if err := s.check(); err != nil {
		return Availability{}, err
	}
	r := rand.New(rand.NewPCG(s.Seed, 0x7261696c78))
	out := Availability{Samples: s.Samples, Least: 1}
	var sum, squares float64
	for range s.Samples {
		faults := s.draw(r)
		out.Faults += float64(len(faults)) / float64(s.Samples)
		portion := 0.0
		a, err := Largest(s.Columns, s.Rows, faults)
		switch {
		case err == nil:
			portion = a.Portion()
			if !a.Exact {
				out.Inexact++
			}
		case !errors.Is(err, railx.ErrFaults):
			return Availability{}, err
		}
		sum += portion
		squares += portion * portion
		out.Least, out.Most = min(out.Least, portion), max(out.Most, portion)
	}
	n := float64(s.Samples)
	out.Mean = sum / n
	if s.Samples > 1 {
		out.Deviation = math.Sqrt(max(squares-n*out.Mean*out.Mean, 0) / (n - 1))
	}
	return out, nil
}

func (s Sampling) check() error {
	if s.Columns < 1 || s.Rows < 1 || s.Columns > MostSide || s.Rows > MostSide {
		return fmt.Errorf("%w: %d columns and %d rows: want 1 to %d of each", railx.ErrGrid, s.Columns, s.Rows, MostSide)
	}
	nodes := s.Columns * s.Rows
	switch {
	case s.Samples < 1 || s.Samples > MostWork/nodes:
		return fmt.Errorf("%w: %d samples of %d nodes: want 1 to %d", ErrSampling, s.Samples, nodes, MostWork/nodes)
	case s.Faults < 0 || s.Faults > nodes:
		return fmt.Errorf("%w: %d faults: want 0 to %d, as many as there are nodes", ErrSampling, s.Faults, nodes)
	case !(s.Rate >= 0 && s.Rate <= 1):
		return fmt.Errorf("%w: a rate of %v: want 0 to 1, the probability that a node is faulty", ErrSampling, s.Rate)
	case s.Faults > 0 && s.Rate > 0:
		return fmt.Errorf("%w: both %d faults and a rate of %v: give one of them", ErrSampling, s.Faults, s.Rate)
	}
	return nil
}

// draw returns the faulty nodes of a sample.
func (s Sampling) draw(r *rand.Rand) (faults []railx.Node) {
	at := func(i int) railx.Node { return railx.Node{Column: i % s.Columns, Row: i / s.Columns} }
	nodes := s.Columns * s.Rows
	if s.Faults == 0 {
		for i := range nodes {
			if r.Float64() < s.Rate {
				faults = append(faults, at(i))
			}
		}
		return faults
	}
	// Floyd: each set of that many nodes is as likely as any other.
	taken := map[int]bool{}
	for i := nodes - s.Faults; i < nodes; i++ {
		pick := r.IntN(i + 1)
		if taken[pick] {
			pick = i
		}
		taken[pick] = true
		faults = append(faults, at(pick))
	}
	return faults
}
