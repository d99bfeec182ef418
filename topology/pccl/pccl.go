package pccl

import (
	"errors"
	"fmt"
)

// Errors of this package. Test with errors.Is; their texts say what would work.
var (
	// ErrSize: a number of GPUs or bytes that the algorithm or topology cannot have.
	ErrSize = errors.New("no such size")
	// ErrTooLarge: a schedule or a problem whose plans would take too long, or too much memory. What matches it matches ErrSize, too.
	ErrTooLarge = fmt.Errorf("%w that can be planned", ErrSize)
	// ErrTransmitters: a topology or round needs more circuits at a GPU than it has transmitters or receivers.
	ErrTransmitters = errors.New("more circuits than transmitters or receivers")
	// ErrDisconnected: a transfer has no path on any topology that may be wired.
	ErrDisconnected = errors.New("no path")
	// ErrSchedule: a schedule that does not compute its collective.
	ErrSchedule = errors.New("the schedule does not compute its collective")
	// ErrArgument: anything else that is not right: a negative time, an unknown name.
	ErrArgument = errors.New("the argument is not right")
)

// Transfer is data that goes from one GPU to another; also a circuit of a topology. GPUs count from 0.
type Transfer struct{ Src, Dst int }

// Round is what happens at the same time.
type Round struct {
	Transfers []Transfer // each once, in order of Src, then Dst
	Bytes     float64    // of each transfer
}

// Collective is what a schedule computes.
type Collective string

// The collectives.
const (
	ReduceScatter Collective = "reduce-scatter"
	AllGather     Collective = "all-gather"
	AllReduce     Collective = "all-reduce"
	AllToAll      Collective = "all-to-all"
)

// Schedule is a collective algorithm laid out for a number of GPUs and a buffer of a size.
type Schedule struct {
	Algorithm  Algorithm
	Collective Collective
	GPUs       int
	Bytes      float64 // the buffer of each GPU
	Rounds     []Round // for reading only: equal ones share their transfers
}

// Algorithm is how a collective is computed: "rhd-halving", "ring", "swing 8x16".
type Algorithm string

// Params is what a fabric's links can do.
type Params struct {
	Alpha float64 // seconds for each hop; 0 or more
	Beta  float64 // seconds for each byte on a link; 0 or more
	// Transmitters and Receivers are how many circuits may begin and end at a GPU; 0 is as many as needed.
	Transmitters, Receivers int
	// Split says that the circuits of a GPU share its bandwidth 1/Beta: each of k circuits has
	// floor(Transmitters/k)/Transmitters of it. Otherwise each circuit has 1/Beta, whatever their number,
	// as in the paper's evaluation.
	Split bool
	Ties  Ties
}

// Ties says which of several shortest paths a transfer takes.
type Ties string

const (
	// Lex takes at each hop the lowest neighbour that is on a shortest path. It is what the zero Ties means.
	Lex Ties = "lex"
	// Greedy takes the path with the least (highest load, sum of loads, numbers of GPUs), transfer by
	// transfer in their order: fairer to topologies that are not rewired.
	Greedy Ties = "greedy"
)

// Cost is what a round costs on a topology.
type Cost struct {
	Congestion int     // the most transfers on one circuit
	Dilation   int     // hops of the longest path
	Time       float64 // seconds: Alpha*Dilation + Beta*Congestion*Bytes; +Inf if a transfer has no path
}

// Plan says what is wired in each round.
type Plan struct {
	Schedule Schedule
	Rounds   []PlannedRound // one for each round of the schedule
	Switch   float64        // the switching time it was made for, seconds
	// Alpha, Beta and Reconfiguration are the parts of Total, all in seconds: hops, bytes, and
	// Changes times Switch.
	Alpha, Beta, Reconfiguration, Total float64
	Changes                             int // how often the fabric is rewired
}

// PlannedRound is a round of a plan.
type PlannedRound struct {
	Topology *Topology
	Changed  bool // rewired before this round
	Cost     Cost
}
