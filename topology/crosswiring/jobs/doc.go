// Package jobs simulates a queue of training jobs on a cluster of pods joined by optical switches: what planning times and
// links without a place cost the jobs.
//
//	f := crosswiring.Fabric{Pods: 128, SpinePorts: 16, Groups: 16}
//	rows, err := jobs.Compare(f, jobs.Workload{}, jobs.Architectures(), jobs.Options{})
//
// # Model
//
// A pod has S/2 blocks; a block is two ports of each of its spines and as many GPUs, 2·G. A job takes blocks of one pod if
// there is one with room, and then needs no links between pods; or else as equal shares as can be of few pods, which form a
// ring with as many links to the next pod as the share has blocks. So jobs that have a place never want more links than there are
// ports. Jobs wait in order of arrival, and one that has no place does not keep later ones from theirs. What a job needs
// links for is planned, by one planner, before it starts; its GPUs are taken by then. Ends of jobs need no plan on Cross wiring.
//
// A job spends a share of its time on its links, if it has all of them, and the rest without. Of two pods with
// fewer links than wanted all jobs have the same part of theirs. What the weakest bundle of a ring lacks goes the other way
// round the ring. Jobs share nothing else: this is not a simulation of packets.
//
// # Source
//
// The Cross Wiring paper: "A Highly Scalable LLM Clusters with Optical Interconnect", arXiv 2411.01503: sections 2.3 and
// 6, and equation 17. It gives the workload level, the number of jobs, and that arrivals are a Poisson process; sizes and
// run times, the share that is spent on links, and how jobs are placed are ours, so that its figures can be compared by their
// order of magnitude only.
//
// Everything is pure, seeded, and safe for concurrent use. The same arguments give the same result.
package jobs
