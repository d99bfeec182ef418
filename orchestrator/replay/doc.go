// Package replay plays the ranks of a training job: each computes (it sleeps), asks its shim before an operation, moves bytes
// through a data plane, tells its shim after, and goes on to the next, step by step as a trace says. The
// control plane in between is the real one, over real connections; see packages shim and controller.
//
//	result, err := replay.Run(ctx, replay.Options{Trace: t, Rails: []string{"rail0"}, Dial: dial, Plane: p, Clock: clock})
//	fmt.Println(result.Mean().Wall)
//
// # What is measured and what is modelled
//
// Modelled: computation, and how long operations take once they have begun. They are as long as the trace says,
// divided by [Options.Compress], for the circuits that the operation is on.
//
// Measured: all that ranks wait for the control plane and the switches. What the control plane made a rank wait is in
// the step times to its full length, whatever Compress is.
//
// A process wakes up late: Linux some 50 µs, a busy machine more. A rank that did not have to ask for leave counts from
// when it should have woken, so this costs no step any time. One that had to ask asks late and counts from when it was
// answered; how late those were is [Step.Late].
//
// Step times are no training results.
package replay
