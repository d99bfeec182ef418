// Package baseline plans the circuits of Uniform wiring, where not every demand can be satisfied, and finds the least
// rewiring of small Cross fabrics by search: what the planners of package crosswiring are compared with.
//
//	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1, Wiring: crosswiring.Uniform}
//	config, err := baseline.Greedy(f, d, nil)
//	part, err := crosswiring.Realised(config.Demand(), d) // 2/3 of a triangle, which is OddBound(3)
//
// Greedy, Helios and Exact are for Uniform wiring: a switch joins pods in twos, both ways at once, so what it holds is
// a symmetric matching. ExactCross is for Cross and DualLink. Compare follows planners of all kinds over consecutive
// random demands.
//
// # Source
//
// The Cross Wiring paper: "A Highly Scalable LLM Clusters with Optical Interconnect", arXiv 2411.01503, sections 2.3 and
// 6. It compares with a greedy planner and with an integer linear program, of both of which the public version has no
// listing: these are our reading of them. The program for Uniform wiring is to realise as many links as can be and then to
// rewire little; the searches here find the same optimum without a solver. Helios-like matchings are after "Helios: A
// Hybrid Electrical/Optical Switch Architecture for Modular Data Centers", SIGCOMM 2010: a maximum weight matching of each
// switch.
//
// Everything is pure, and safe for concurrent use. The same arguments give the same result.
package baseline
