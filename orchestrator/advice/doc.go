// Package advice says whether a training job should reconfigure its rails at all, and if so where in its
// step.
//
//	firmware, err := firmwarenotes.Find("connectx-6-dx/autoneg-off")
//	a, err := advice.Advise(t, advice.Options{Switch: 200 * time.Millisecond, Firmware: &firmware})
//	fmt.Print(a.Text())
//
// A step of a job is a cycle of phases, in each of which its ranks communicate along one axis. Each phase
// has a topology of its own, which serves its axis with all ports; and there is the giant ring through all
// ranks, on which every phase works, more slowly. Between two phases nothing is sent for a while: the
// window. A reconfiguration that begins with the window costs only what does not fit into it.
//
// So the question is one of shortest paths: which topology for each phase, if phase i on topology j takes
// so long, and going to another topology after phase i takes max(0, delay - window i). [Problem] solves it
// exactly. Its answer is never worse than reconfiguring at each boundary, as Opus does, and never worse
// than staying on the giant ring.
//
// # The delay
//
// The delay of a reconfiguration is the switch time, from the command until the light is back, and the time
// of the control plane, and the time until the NICs' firmware calls the light a link (package
// firmwarenotes): medians of detection, training and the driver, added up. A switch that is faster than the
// least time in which the firmware notices the dark costs no link-up. Two things are left out, and both
// make reconfiguring look better than it is: that a collective waits for the slowest of many links, and
// that firmware becomes slower when light comes and goes often. The second is told beside the result.
//
// # What is assumed
//
//   - The stages of the pipeline are looked at one by one, as each can change its circuits by itself. The
//     advice is for the one that would wait longest; what one stage waits for is taken to delay the step,
//     and waiting at several stages at once not to add up.
//   - The durations in the trace are those on the topology of the phase. On another one the operations of a
//     phase take longer by the factor by which the most loaded link gets more to carry; see [Slowdown].
//     Computation within the phase stays as it is, and no wait becomes shorter.
//   - All groups of an axis communicate at the same time. That is the worst case for the giant ring, which
//     they share.
//   - Windows do not depend on the plan.
//
// # Source
//
// Exposure and windows: "Photonic Rails in ML Datacenters with Opus", arXiv 2602.12521, which always
// reconfigures; the choice is ours. All functions are pure and safe for concurrent use.
package advice
