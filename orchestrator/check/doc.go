// Package check is an observer that does not trust the control plane: from what the ranks did and from what the
// light did it says whether any operation ran on circuits that were being changed.
//
//	rec := check.Record("ocs1", device, nil)
//	// ... ranks run, and log each operation as a check.Op
//	truth, err := rec.Stop()
//	verdict := check.Check(ops, truth)
//	fmt.Println(verdict) // 1024 operations on 32 ports, 24 changes of circuits on 32 ports: no violation, no byte lost
//
// # What is asserted
//
// For a port q let [b,r] be the time from the first effect of a command on it until its light has settled, and [s,e] that
// of any operation that uses q. Then the two are disjoint:
//
//   - G1, no operation runs on circuits that are being changed: no operation begins in [b,r].
//   - G2, no circuit is changed under a running operation: no change begins in [s,e].
//
// And, which is stronger and does not need to know of any change: each cross-connect that an operation uses has settled
// light, unbroken, during all of [s,e]. Where it has not, and no change says why, the violation is [Absent]. So nothing is
// missed that is not in the list of changes, such as a restart that puts the same circuits back.
//
// Intervals may touch: an operation may end at the very moment at which a change begins, and begin at that at which the
// light has settled. A change that only removes has r = b, since what it leaves is dark; a change that is overtaken by the
// next one of the port ends there; one whose light never comes does not end. Ports are those of one switch: rails and jobs that
// share a switch are held against the same truth, port 3 of another switch is another port.
//
// # What the truth is worth
//
// [Record] takes it from an emulated switch's own reports and not from what its drivers believe:
//
//   - Light, from Device.WatchLight, is exact to the nanosecond of the model: the moment at which a command took
//     it, and that at which it had settled to within 0.5 dB. All changes are told, in order, also a light that
//     goes and comes back within the same nanosecond, as with a takeover at a switching time of 0: those are two spans. Light
//     that was still to come when it was taken back is never told as light.
//   - Changes, from Device.Observe, are told within the command, one for each command that moved anything, with a
//     takeover's losses in it; none is missed. They have no time on the host's axis of their own, so they are
//     stamped on arrival, after the first effect by as long as the command takes the device, which is microseconds. An
//     operation that ends in between is told as Absent, not as G2; it is told all the same.
//   - Circuits without any light (a dark source) are seen as changes only, and an operation on them is Absent.
//   - A jammed mirror makes the device list circuits as they were, and so does its truth.
//
// Times of operations come from the ranks, on the same axis (timeline.HostAxis): processes of one host on Linux share
// it. What ranks on other hosts log is off by what their clocks are, and must be shifted before.
package check
