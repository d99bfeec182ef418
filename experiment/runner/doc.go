// Package runner carries a plan out, point by point, and records it as a run.
//
// A [Runner] is given a plan, something that measures (a [Bench]), and something that
// records (a [Recorder], in earnest a [runs.Writer]). It keeps the order of the plan, runs
// the hooks, rests and pauses, drops what the stop rule makes unnecessary, and can be told
// to pause, to stop after the point that is under way, or to abort: by its methods, by the
// context, by the signals of the process ([Signals]), or from another process through the
// store.
//
// # Finally
//
// However a run ends, its finally is carried out, on a context of its own: the light is
// put where the experiment wants it left, then the hooks of finally are run, then the
// summary is written. A panic of the bench, of a hook or of a callback is an end like any
// other. So is a bench that does not come back from a call when it is told to: it is left
// behind. A switch that cannot be reached is tried three times, and then the error says
// what is left to do. Where nothing can be recorded any more, the light is put back unrecorded.
// All that takes 45 seconds at most, and the hooks of finally as long as they may.
//
// Stronger are only kill -9, a panic on a goroutine of a driver or a watch, and a disk or a
// terminal on which writing never returns. Then [Runner.Run] with what the store has of the
// run goes on, and [Runner.Finish] only puts the light back.
//
// # Points
//
// A point is recorded as a whole or not at all: what was written of it counts once
// [Recorder.FinishPoint] has returned nil, and a point that fails or is aborted is
// abandoned. Resuming does the points that are neither done nor dropped, in the order of
// the plan, after setting up anew.
package runner
