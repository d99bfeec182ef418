// Package faults replays what breaks in a cluster, and counts the GPUs that an architecture cannot use then.
//
//	trace, err := faults.Parse(r, "trace.json")          // or faults.Generate(...)
//	cluster := faults.Cluster{Nodes: 2448, Order: order}
//	result, err := faults.Simulate(trace, cluster, faults.Architectures(), []int{8, 16, 32, 64}, faults.Options{})
//	result.Row("InfiniteHBD K=3", 32).Mean                // 0.0015: of all GPUs, healthy and in no ring
//
// # Source
//
// Section 6.2 and appendix A of the InfiniteHBD paper (see package infinitehbd), and the format of the sample of its
// trace that its authors have published (github.com/stepfun-ai/InfiniteHBD-Trace). Servers there have 8 GPUs.
//
// Values are immutable once made and safe for concurrent use.
package faults
