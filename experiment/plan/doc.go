// Package plan reads experiment files and lays out what they ask for, step by step,
// before anything is touched.
//
//	name: autoneg
//	sequence: [dp, pp]              # configurations to go through, again and again
//	parameters: {dwell: 0s}
//	axes:
//	  - grid: {firmware: [connectx-6-dx/autoneg-on, connectx-6-dx/autoneg-off]}
//	repeats: 30
//	order: interleaved
//	wait: traffic
//	limits: [carrier_p99 < 4s where firmware=connectx-6-dx/autoneg-off, missing == 0]
//	stop: {when: carrier_p50, within: 5%, after: 10}
//	finally: {light: restore}
//
// A [File] is what somebody wrote; [File.Resolve] holds it against a lab and gives a
// [Plan]: conditions, and points in the order in which they are run. Both are data: no
// device is asked, and the same file, lab and seed give the same plan.
//
// # Words
//
// A parameter is a name with a value. Those that ocslab knows are listed at [Parameters];
// others are the user's own, for hooks and for ${name} in the sequence and in planners. A
// condition is one choice of all parameters, made by the axes. A point is one repeat of one
// condition: the sequence gone through once, which is one reconfiguration for each of its
// configurations. A null toggle is a point in which everything happens but the change.
package plan
