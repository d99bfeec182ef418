package pccl

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// The algorithms. [Bucket] and [Swing] name those of a lattice, and [ParseAlgorithm] reads all.
const (
	// RHDHalving is recursive halving: in round i each GPU exchanges with the one at a distance of N/2^(i+1),
	// farthest first. It is the order that reproduces the counts of the paper's section 5.
	RHDHalving Algorithm = "rhd-halving"
	// RHDDoubling is the same with the nearest first, which is cheaper on lattices.
	RHDDoubling Algorithm = "rhd-doubling"
	// RingPass sends from each GPU to the next, N-1 times.
	RingPass Algorithm = "ring"
	// Dex is Foster's exchange on the hypercube: half of all data in each round.
	Dex Algorithm = "dex"
	// Linear sends from each GPU directly to the one i further, in round i.
	Linear Algorithm = "linear"
)

// Bucket returns the name of the bucket algorithm on a lattice: a ring along each dimension in turn.
func Bucket(dims ...int) Algorithm { return Algorithm("bucket " + dimsText(dims)) }

// Swing returns the name of the Swing algorithm on a lattice whose sizes are powers of two; without sizes it is
// that on a ring.
func Swing(dims ...int) Algorithm {
	if len(dims) == 0 {
		return "swing"
	}
	return Algorithm("swing " + dimsText(dims))
}

// New lays an algorithm out. The collective of "dex" and "linear" is [AllToAll], that of all others any of the three
// other ones; [Algorithms] lists what there is. Bytes is the buffer of each GPU, more than 0.
//
// An all-gather has the rounds of the reduce-scatter in opposite order, and an all-reduce those of both. "ring" and
// "bucket" keep their direction in that, so that circuits in one direction do for both halves.
//
// A number of GPUs that the algorithm cannot have is an error that matches [ErrSize] and says which algorithms can; a
// name that cannot be read, or that computes something else, one that matches [ErrArgument].
func New(c Collective, a Algorithm, gpus int, bytes float64) (Schedule, error) {
	c, err := ParseCollective(string(c))
	if err != nil {
		return Schedule{}, err
	}
	read, err := parseAlgorithm(string(a))
	if err != nil {
		return Schedule{}, err
	}
	if err := checkGPUs("a schedule", gpus); err != nil {
		return Schedule{}, err
	}
	if err := checkBytes(bytes); err != nil {
		return Schedule{}, err
	}
	f := read.family
	if (c == AllToAll) != f.exchange {
		return Schedule{}, fmt.Errorf("%w: %s does not compute %s: want %s", ErrArgument, f.name, c, namesText(Algorithms(c, gpus)))
	}
	if f.power && bits.OnesCount(uint(gpus)) != 1 {
		return Schedule{}, fmt.Errorf("%w: %s of %d GPUs: want a power of two, such as %s; for %d there is %s", ErrSize,
			f.name, gpus, powersAround(gpus), gpus, namesText(Algorithms(c, gpus)))
	}
	return f.lay(c, read.rest, gpus, bytes)
}

// checkBytes returns why a buffer cannot have that size.
func checkBytes(bytes float64) error {
	if !(bytes > 0 && bytes <= 1e18) {
		return fmt.Errorf("%w: a buffer of %g bytes: want more than 0, and 1e18 at most", ErrSize, bytes)
	}
	return nil
}

// finish makes the schedule of a collective out of the rounds of its reduce-scatter, or of the all-to-all.
func finish(c Collective, a Algorithm, gpus int, bytes float64, scatter []Round) Schedule {
	s := Schedule{Algorithm: a, Collective: c, GPUs: gpus, Bytes: bytes, Rounds: scatter}
	switch c {
	case AllGather:
		slices.Reverse(s.Rounds)
	case AllReduce:
		s.Rounds = slices.Grow(s.Rounds, len(scatter))
		for _, r := range slices.Backward(scatter) {
			s.Rounds = append(s.Rounds, r)
		}
	}
	return s
}

// checkTotal returns why a schedule cannot have that many rounds, of as many transfers as there are GPUs.
func checkTotal(c Collective, a Algorithm, gpus, rounds int) error {
	if c == AllReduce {
		rounds *= 2
	}
	if rounds <= MaxTransfers/gpus {
		return nil
	}
	return fmt.Errorf("%w: %s of %d GPUs is %d rounds of %d transfers, more than %d in all: want fewer GPUs, or an algorithm of "+
		"fewer rounds, such as %s", ErrTooLarge, a, gpus, rounds, gpus, MaxTransfers, shortest(c))
}

// shortest returns the algorithm with the fewest rounds.
func shortest(c Collective) Algorithm {
	if c == AllToAll {
		return Dex
	}
	return RHDHalving
}

// everyone is the round in which each GPU x sends to to(x).
func everyone(gpus int, bytes float64, to func(x int) int) Round {
	r := Round{Transfers: make([]Transfer, gpus), Bytes: bytes}
	for x := range gpus {
		r.Transfers[x] = Transfer{Src: x, Dst: to(x)}
	}
	return r
}

// Reverse returns the mirror of a schedule: the rounds in opposite order, each transfer in the other direction. The
// mirror of a reduce-scatter is an all-gather and the other way around; those of an all-reduce and of an all-to-all
// compute the same collective again.
func (s Schedule) Reverse() Schedule {
	m := s
	m.Rounds = make([]Round, len(s.Rounds))
	for i, r := range s.Rounds {
		back := Round{Transfers: make([]Transfer, len(r.Transfers)), Bytes: r.Bytes}
		for k, t := range r.Transfers {
			back.Transfers[k] = Transfer{Src: t.Dst, Dst: t.Src}
		}
		slices.SortFunc(back.Transfers, compareTransfers)
		m.Rounds[len(s.Rounds)-1-i] = back
	}
	switch s.Collective {
	case ReduceScatter:
		m.Collective = AllGather
	case AllGather:
		m.Collective = ReduceScatter
	}
	return m
}

// Transfers returns the number of transfers of all rounds.
func (s Schedule) Transfers() int {
	n := 0
	for _, r := range s.Rounds {
		n += len(r.Transfers)
	}
	return n
}

// Sent returns how many bytes each GPU sends, or the most that any does if they differ.
func (s Schedule) Sent() float64 {
	if s.GPUs < 1 || s.GPUs > MaxGPUs {
		return 0
	}
	sent := make([]float64, s.GPUs)
	for _, r := range s.Rounds {
		for _, t := range r.Transfers {
			if t.Src >= 0 && t.Src < s.GPUs {
				sent[t.Src] += r.Bytes
			}
		}
	}
	return slices.Max(sent)
}

// Valid returns why a schedule is not well formed: sizes, GPUs that are not there, transfers twice or out of order. It
// does not look at what is computed; [Schedule.Check] does.
func (s Schedule) Valid() error {
	if err := checkGPUs("a schedule", s.GPUs); err != nil {
		return err
	}
	if err := checkBytes(s.Bytes); err != nil {
		return err
	}
	if len(s.Rounds) > MaxTransfers || s.Transfers() > MaxTransfers {
		return fmt.Errorf("%w: the schedule has more than %d rounds or transfers", ErrSize, MaxTransfers)
	}
	for i, r := range s.Rounds {
		if !(r.Bytes >= 0) || math.IsInf(r.Bytes, 0) {
			return fmt.Errorf("%w: round %d has transfers of %g bytes: want a finite number, 0 or more", ErrArgument, i, r.Bytes)
		}
		for k, t := range r.Transfers {
			if err := checkTransfer(t, s.GPUs); err != nil {
				return fmt.Errorf("round %d: %w", i, err)
			}
			if k > 0 && compareTransfers(r.Transfers[k-1], t) >= 0 {
				return fmt.Errorf("%w: round %d: transfer %d>%d is there twice or out of order: want each once, by Src, then Dst",
					ErrArgument, i, t.Src, t.Dst)
			}
		}
	}
	return nil
}

// compareTransfers is the order of transfers: by Src, then Dst.
func compareTransfers(a, b Transfer) int {
	return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
}
