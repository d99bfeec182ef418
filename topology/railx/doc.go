// Package railx lays out RailX: a grid of nodes, each row and each column of which is joined by a set of
// optical circuit switches, one for each rail, to whatever rings make up the topology that is wanted.
//
//	g := railx.Grid{Columns: 5, Rows: 5, Rails: 4}
//	torus, err := railx.Build(g, railx.Torus2D())
//	hyperx, err := railx.Build(g, railx.HyperX2D())
//	hyperx = railx.Settle(torus, hyperx)        // the rings on the rails where most links stay
//	delta := railx.Diff(torus, hyperx)          // per switch
//
// # Words
//
// Node (i,j) is in column i and row j of the grid, from 0. It has r rails in each of the dimensions X and
// Y; a rail is two duplex optical ports, "+" and "-". Switch X/j/a joins rail a of all nodes of row j; switch
// Y/i/b joins rail b of all nodes of column i. A [Link] is a duplex circuit from a "+" to a "-"; those of a
// switch make up rings. A logical dimension is what a physical one is used as, in whole or in part: a torus, on which
// every rail has the same ring, or all-to-all, on which the rails have the rings of a decomposition (package hamilton)
// in which every node precedes every other exactly once.
//
// # Source
//
// The RailX paper: "RailX: A Flexible, Scalable, and Low-Cost Network Architecture for Hyper-Scale LLM Training
// Systems", arXiv 2507.18889. What is ours beyond the paper is said at each place.
//
// Everything is pure arithmetic. Values are immutable once made, and safe for concurrent use.
package railx
