// Package model says how fast RailX is: sizes and throughput in closed form, collectives, how to split rails between two
// uses of a dimension, what a training job sends, and, on the links of a configuration, routes and a fluid all-to-all.
//
//	size := model.Size{Radix: 128, Mesh: 4, Lanes: 9}
//	fmt.Println(size.HyperX()) // port bandwidths that each chip has for all-to-all
//
//	load, err := model.Fluid(config, model.Nearest)   // any *railx.Config whose rows and columns are all-to-all
//	fmt.Println(load.Throughput(2))                   // with a mesh twice as fast as a port
//
// # Words
//
// A node is a mesh of m by m chips. A chip at its edge has n optical ports there, so that a node has r = m·n rails in
// each dimension. Kappa is the bandwidth of a link of the mesh in units of n ports: what the paper calls k. B is the
// bandwidth of a port in one direction. Throughput is what a chip sends, in ports.
//
// Times are seconds, sizes bytes, and bandwidths bytes a second, all as float64.
//
// # Source
//
// "RailX: A Flexible, Scalable, and Low-Cost Network Architecture for Hyper-Scale LLM Training Systems", arXiv
// 2507.18889. Equations are numbered as there. Equation (13) is printed with m·p as the first argument of its second
// term; p is what its simplification uses, and so does this package. The fluid model is beyond the paper, which has a
// packet simulation.
//
// Everything is pure arithmetic and safe for concurrent use.
package model
