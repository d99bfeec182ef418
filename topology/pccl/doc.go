// Package pccl decides when a photonic fabric is rewired during a collective, and to what.
//
//	s, err := pccl.New(pccl.AllReduce, pccl.RHDHalving, 128, 256e6) // rounds of transfers
//	ring, err := pccl.Ring(128)
//	p := pccl.Problem{Schedule: s, Start: ring, Params: pccl.Params{Alpha: 3e-6, Beta: 1 / 450e9}}
//	plan, err := p.Best(5e-6)                           // at a switching time of 5 µs
//	envelope, err := p.Envelope()                       // at any switching time
//
// # Words
//
// A [Schedule] is a collective algorithm as a fixed list of rounds; a [Round] is a set of transfers of
// equal size between GPUs. A [Topology] is a set of direct circuits, each from one GPU to another. On a
// topology that lacks some of its transfers a round suffers dilation (transfers take several hops) and
// congestion (several share a link). Between rounds the fabric can be rewired for the switching time. A
// [Plan] says for each round what is wired: just the transfers of that round, what was wired before, or a
// standard topology such as a ring or a torus.
//
// # Units
//
// Times are seconds and sizes bytes, both as float64: a round of 3.2778 µs is no whole number of
// nanoseconds, and plans are compared by sums of such.
//
// # Source
//
// "PCCL: Photonic circuit-switched collective communication for distributed ML", arXiv 2509.15450. The decision is
// its integer program, solved exactly by dynamic programming. Where the paper is silent or its formulas are
// defective, what is done instead is said at each place; what goes beyond the paper is marked "beyond the paper".
//
// Everything is pure arithmetic. Values are immutable once made, and safe for concurrent use.
package pccl
