// Package collective runs plans of package pccl on a lab: it wires what the plan says, on real or
// emulated switches, and lets the transfers of each round take the time that they would take on the
// circuits that are there.
//
//	r, err := collective.Run(ctx, opt, collective.Job{Lab: f, LabText: text, Plan: plan})
//	report, err := collective.Demo(ctx, collective.DemoOptions{})
//
// # What is real and what is not
//
// Switches, drivers, read-back, light and the clock are real, or emulated behind real sockets. No
// payload is moved. A transfer is metered: its bytes are cut into pieces, and each piece waits in front of
// every link on its path for its turn, occupies it for [pccl.Params].Beta a byte, and is at the other end
// [pccl.Params].Alpha later. A link serves the transfers that wait for it in turn, so congestion comes about;
// nothing of the planner's cost model is used. A link is there only while the switch
// says so: an emulated one by its own light, a real one by having been read back and, where it has monitors, by
// its power. Pieces in front of a link that is not there wait, and when nothing gets through for
// [Options].Patience the round fails with [ErrStalled], which names the links.
//
// On links that are shared, rounds may be up to (dilation - 1) alpha quicker than alpha dilation + beta congestion bytes, the
// planner's cost: that adds the worst of both, and the fullest link is busy while the longest path fills.
//
// # Source
//
// "PCCL: Photonic circuit-switched collective communication for distributed ML", arXiv 2509.15450. The three regimes of
// [Demo] are ours: its parameters, scaled by 1000, to switching times that switches have.
package collective
