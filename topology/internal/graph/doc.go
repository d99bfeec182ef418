// Package graph has the graph algorithms that planners share: edge colourings, matchings, assignments and
// flows, each the textbook's, with its bound.
//
//	colours, n := graph.EdgeColouring(4, 4, edges) // edges of a colour have no end in common; n = largest degree
//	f := graph.NewFlow(6)
//	a := f.Arc(0, 1, 3, 0.5)                       // capacity 3, at 0.5 a unit
//	sent, cost := f.Send(0, 5, math.MaxInt)        // as much as goes, and of that the cheapest
//	sent = f.On(a)
//
// Nodes are numbered from 0; the two sides of a bipartite graph each from 0. The same input gives the same
// output on every machine. Functions are pure; a [Flow] and a [Queue] are used by one goroutine at a time.
//
// Callers are planners that have checked what people gave them: as with a slice, a node that is not there is a panic.
package graph
