// Package fibre routes circuits between servers so that the fullest pair of neighbours needs as few fibres as possible.
//
//	g, err := fibre.Grid(8, 8)                              // 64 servers, each beside up to 4
//	requests, err := fibre.Random(g.Servers(), 512, 1)      // with a seed
//	r, err := fibre.Route(ctx, g, requests, fibre.Options{})
//	r.Fibres, r.Bound.Fibres, r.Optimal()                   // 33, 33, true
//	patch, err := r.Patch()                                 // which circuit is on which fibre, port by port
//
// # The problem
//
// Each request is one circuit from a server to another, over servers in between where they are no neighbours. Two circuits
// cannot share a fibre. z, the number of fibres of the fullest pair of neighbours, is what has to be laid
// between each two, and is to be least. That is Algorithm 4 of "PCCL: Photonic circuit-switched collective communication
// for distributed ML", arXiv 2509.15450, whose integer program asks z to be at least the load of every pair; its prose,
// which sums over all pairs, would give the fewest hops instead. A fibre is counted for the pair and not for
// a direction, since only that agrees with the numbers of the paper (7 fibres for 100 circuits, 31 for 512); Options.Directed
// counts each direction on its own.
//
// All circuits are of one wavelength. Circuits of different wavelengths do not meet on a fibre, so each wavelength is
// a problem of its own, and a pair needs as many fibres as the wavelength that has most on it.
//
// # Proof
//
// The problem is NP-hard, so Route searches: cheapest paths where a link costs more the more it carries, then each
// circuit again and again while the others stay. Beside the answer stands a lower bound with what proves it: a
// length for each link. Since every circuit covers at least the distance of its ends, the loads weighted
// with the lengths come to at least the sum of those distances, and some link has the average. Lengths that are 1 on
// the boundary of a rectangle of servers and 0 elsewhere are the cut that people see; others come from the loads
// of the search. An answer is called optimal only if it equals its bound. [Result.Check] believes neither of them.
//
// Everything is pure arithmetic, and with the same seed gives the same result on every machine. Values are
// immutable once made, and safe for concurrent use.
package fibre
