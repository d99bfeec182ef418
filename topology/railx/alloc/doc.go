// Package alloc finds the largest grid of nodes that RailX can still be wired to when some nodes are faulty.
//
//	a, err := alloc.Largest(64, 64, []railx.Node{{Column: 3, Row: 9}})
//	fmt.Println(a) // 64 x 63 of 64 x 64 nodes (98.4 %); without row 9
//
// A job takes whole rows and whole columns: optical switches skip what is between them, so they need not be next to
// each other. A faulty node costs its row or its column. More faults than rows or columns are no error, as several may lie in
// one: there is an allocation as long as one node works. Which of the two, for all faults together, is the
// allocation: [Largest] keeps the most nodes, and [Fit] keeps a grid of a wanted size.
//
// # How
//
// Faults are edges of a bipartite graph between rows and columns; the rows P and columns Q that are given up cover all
// of them. For each connected component, the front f(a) is the fewest columns to give up if a of its rows are. Fronts
// are combined by min-plus convolution, and the answer is the best of (rows - a)(columns - f(a)). This is exact, and
// exponential only in the smaller side of the largest component; the paper's algorithm 2 (appendix A.5) is exponential
// in the number of all faults that are not alone in their row and column. Beyond the paper.
//
// A component whose smaller side is above [MostExact] has its front bounded instead: vertex covers of least weight, at
// all ratios of what a row and a column weigh, are the corners of the front's lower hull. [Allocation.Exact] says
// whether what was found is known to be the best.
//
// # Source
//
// "RailX: A Flexible, Scalable, and Low-Cost Network Architecture for Hyper-Scale LLM Training Systems", arXiv
// 2507.18889, appendix A.5 and figure 17.
//
// Everything is pure arithmetic and safe for concurrent use.
package alloc
