// Package mesh routes circuits of light through a mesh of Mach-Zehnder interferometers (MZIs), as it is under
// the accelerators of a server with a photonic interposer.
//
//	m, err := mesh.Grid(16, 16)
//	r, err := m.Route(ctx, []mesh.Request{{Src: 0, Dst: 2}, {Src: 0, Dst: 8}}, mesh.Options{Strict: true})
//	switch r.Verdict { … }                          // routed, impossible with a proof, or not found
//	faults := m.Check(requests, r.Setting, opt)     // light, traced through the states of the elements
//
// # Words
//
// A node is an MZI and an edge the waveguide between two. Nodes count from 0, row by row. A waveguide carries
// [Options.Capacity] circuits of each wavelength, whichever way they go. A circuit ends at a node by way of a
// tap: a resonator that puts light of one wavelength onto a waveguide of the node, or takes it from there, and
// lets all others pass.
//
// # States
//
// An MZI joins its four waveguides two and two, in bar or in cross; the third pairing, which would send light back
// to the side it came from, it cannot do. It does so to light of all wavelengths alike. The paper's algorithm
// counts circuits on waveguides and is silent on this; [Options.Strict] minds it, and without it [Result.Conflicts] says
// where circuits cannot be as routed. Which pairings are bar and cross is how the mesh was drawn: see [Layout].
//
// # Source
//
// "PCCL: Photonic circuit-switched collective communication for distributed ML", arXiv 2509.15450, section 4.2 and
// algorithm 3: that greedy router is [Mesh.Greedy]. Negotiation (McMurchie and Ebeling, "PathFinder", FPGA 1995), exact
// search, proofs of impossibility and states are beyond the paper.
//
// Everything is pure arithmetic, and deterministic. A [Mesh] is immutable and safe for concurrent use.
package mesh
