// Package infinitehbd lays out InfiniteHBD: a line of nodes whose GPUs are joined to rings of any length by
// transceivers that switch circuits (OCSTrx), around nodes that are dead.
//
//	layout, err := infinitehbd.NewLayout(4, 2)                // nodes of 4 GPUs, neighbours up to 2 away
//	order, err := infinitehbd.Deploy(16, 4)                   // across Top-of-Rack switches of 4 nodes
//	line := infinitehbd.Line{Layout: layout, Order: order}
//	groups, err := line.Place(4, nil)                         // as many groups of 4 nodes as there are
//	plan, err := line.Build(groups, nil)                      // the state of every bundle
//	rings, err := plan.Rings()                                // followed GPU by GPU
//	repaired, err := infinitehbd.Repair(plan, []infinitehbd.Node{6}, infinitehbd.RepairOptions{})
//
// # Words
//
// Nodes are numbered from 1 in the order of the data centre network, and GPUs of a node from 1, as in the paper; so
// 2.3 is the third GPU of node 2. The line is the order in which nodes are cabled. A node has g GPUs on an internal
// cycle of g edges. An edge is a copper cable, or a bundle of OCSTrx of which half the lanes belong to each of the two
// GPUs. A bundle is looped (its two GPUs are joined), on path 1, on path 2, or dark. A path leads over a fixed distance
// along the line: with K bundles a node reaches the nodes up to K before it and K behind it.
//
// A group is what one tensor-parallel job runs on: m nodes, in the order of the line, of which each is at most K from
// the next. Its GPUs form one ring. Fewer than K dead nodes in a row are bypassed; K in a row break the line.
// With odd K the distance K has one bundle for both directions, so a node with both its neighbours that far away must
// be the end of a group (ours).
//
// # Source
//
// The InfiniteHBD paper: "InfiniteHBD: Building Datacenter-Scale High-Bandwidth Domain for LLM with Optical Circuit
// Switching Transceivers", arXiv 2502.03885. What is ours beyond the paper, and what we read into what it leaves open,
// is said at each place.
//
// Everything is pure arithmetic. Values are immutable once made, and safe for concurrent use.
package infinitehbd
