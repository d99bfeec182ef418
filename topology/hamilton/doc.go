// Package hamilton decomposes complete graphs into Hamiltonian cycles: rings through all of k vertices, such that in
// k-1 of them each vertex is followed by every other exactly once.
//
//	cycles, err := hamilton.Directed(8)            // 7 rings of 8
//	cycles, directed, err := hamilton.Cycles(4)    // undirected ones, as 4 and 6 have no others
//
// # Words
//
// A cycle lists the vertices in order; after the last comes the first. An arc goes from a vertex to the one after it. A
// decomposition is directed if each of the k(k-1) arcs is in exactly one cycle. It is doubled if each of the k(k-1)/2
// unordered pairs is adjacent in exactly two cycles, in whichever order: that is all that is needed where links
// carry light both ways, and exists for every even k.
//
// # Source
//
// That every k but 4 and 6 has a directed decomposition is Tillson's theorem ("A Hamiltonian decomposition of K*_2m,
// 2m >= 8", 1980); the RailX paper cites it as Lemma 3.1 and gives Walecki's zig-zag for odd k in its appendix A.1.
// The construction for even k is ours: a decomposition of k-1 is extended by one vertex along a Hamiltonian path in
// which all arcs are from different cycles. Such paths take a search, so those for k up to 162 come with the package
// (paths.txt).
//
// Functions are pure and safe for concurrent use; what they return belongs to the caller.
package hamilton
