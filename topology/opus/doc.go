// Package opus computes the circuits of photonic rails: which ports of a rail's optical
// switch are joined while the ranks of a training job communicate along one dimension of
// parallelism, and what has to move when they go on to the next.
//
//	job := opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}
//	id, err := job.ParseID("11")               // both stages communicate along axis 1, dp
//	m, err := opus.Build(job, id, opus.Pair)   // which ports of which ranks are joined
//	circuits, err := assignment.Map(m)         // 1>36,2>35,... of the switch
//
// # Words
//
// A rail is the set of GPUs with the same place in their hosts; each is a rank of the rail.
// Ranks are arranged in pipeline stages (PP, the asymmetrical axis) and, within a stage, along
// symmetrical axes such as DP, CP and EP; see [Job]. Those that differ in one coordinate only
// are a [Group], whose members communicate. Tensor parallelism stays inside the hosts and does
// not occur here.
//
// A topology ID has one digit for each stage: 0 while its ports serve PP, j while they serve
// axis j; see [ID]. From it follows a [Matching] of the ranks' duplex ports, and with
// an [Assignment] of these to the ports of a switch a map of cross-connects.
//
// What has to move between two matchings is a [Delta]. A [Table] finds that of two IDs by looking only at
// the stages that differ; [Matching.With] is the other way to ask, for the circuits of one group, which disturbs
// nobody else. The [GiantRing] is what a rail falls back to. [Arrange] chooses among the rings that would
// do for a phase those that leave most circuits where they are.
//
// # Source
//
// "Photonic Rails in ML Datacenters with Opus", arXiv 2602.12521. What the paper leaves open
// (the order of ranks, the numbering of ports, what a run of zeros means) is decided here and
// said at each place.
//
// Everything is pure arithmetic. Values are immutable once made, and safe for concurrent use.
package opus
