// Package crosswiring plans the circuits between the pods of a cluster: what each optical switch joins so that every
// two pods have as many links as a demand says, on as few new circuits as possible.
//
//	f := crosswiring.Fabric{Pods: 4, SpinePorts: 8, Groups: 1}
//	d, err := crosswiring.ParseDemand(r, "demand.csv") // how many links each two pods shall have
//	d, err = d.Fit(f)                                  // in each group
//	config, err := crosswiring.Plan(f, d)              // from nothing
//	next, report, err := crosswiring.Rewire(config, d2, crosswiring.RewireOptions{})
//
// Fabric.Fibres lists the fibres of a cluster, and package walk follows the light through them.
//
// # Words
//
// A pod has a spine in each of G groups. A spine has S ports to optical switches; a group has S switches, of which
// every one has an input and an output for each pod. Spine port (p,h,k) is port k of the spine of pod p in group h; it
// sends into a switch by its Tx fibre and receives from one by its Rx fibre. A circuit leads from the input of one pod
// to the output of another. A link is a pair of circuits that joins one spine port to another in both directions, which
// is what an Ethernet port needs (L2 compatibility): what it sends must go to where it hears from.
//
// Uniform wiring takes both fibres of port (p,h,k) to switch k. Cross wiring takes the switches in pairs 2c and 2c+1
// and exchanges the Rx fibres of the two: so circuits i to j on the even switch and j to i on the odd one are a link, and
// any matching of the even switch is right if the odd one holds its transpose. Of a symmetric demand that fits the ports
// every link can then be had, which Uniform wiring cannot do (Theorem 4.1).
//
// With dual-link wiring a group has S/2 switches of 2·P inputs and outputs, each in place of a pair; a link is two
// circuits of it.
//
// Pods, groups, ports and switches are numbered from 0.
//
// # Source
//
// The Cross Wiring paper: "A Highly Scalable LLM Clusters with Optical Interconnect", arXiv 2411.01503. What is ours
// beyond the paper is said at each place.
//
// Everything is pure arithmetic. Values are immutable once made, and safe for concurrent use.
package crosswiring
