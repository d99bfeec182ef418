// Package controller is the Opus controller of one training job: it knows for each rail which ranks wait for which
// operation, has the orchestrator of the rail move circuits when all have asked that must have asked and nobody uses what goes,
// and gives leave to run.
//
//	c, err := controller.New(controller.Options{Job: job, Rails: map[string]controller.Rail{"rail0": orchestrator}})
//	err = c.Serve(ctx, listener) // shims connect to it; see package proto
//
// # Words
//
// A rank asks by demand (an operation is about to start) or predicts (provision). An operation is granted to all its
// members at once. From then on until its release a rank holds the circuits of the operation, port by port; nothing
// that is held is moved. A prediction holds nothing, and so a wrong one costs time only: the same rank's next
// request takes it back unless a change for it is in flight.
//
// # Decisions
//
// A group that wants a digit changed waits for the other groups of its axis in the stage, but not for those that have been granted
// that operation already: after a wrong prediction it may be behind them, and they will not ask again.
//
// A first start is on the giant ring. The first operation that asks takes the rail to its plan, all stages at the axis of
// that operation; nothing moves and nobody runs before every rank of the rail has said hello, with what it holds.
//
// What a lost rank holds stays held until it comes back, or until all others of the operation have completed it: a circuit has two
// ends, and the other one protects it as long as it is in use. A bye ends holds. What waits for the rank is
// refused at once; what is asked for afterwards waits for it, as long as a barrier does.
//
// A refusal is not kept: who repeats a request that was refused makes a new one. One that was granted is answered
// with its result for as long as the rank or all others hold the circuits, and refused when it is over.
//
// A rank that alone has lost its place in the schedule asks for operations in the middle of a phase of the others, who do
// not ask since they hold the circuits. It is let in after a grace of 20 ms. Transfers are always asked for, so nobody is let into
// one before the other rank has asked.
//
// When all ranks of a rail have left, those that come next begin another run of the job. A rank of the run before that comes
// back late is sent away.
//
// After an alarm nothing is granted until the orchestrator has looked at the rail and put it right. A change that fails, for
// whatever reason but a stale epoch, takes the rail to the giant ring once nothing is held on it, and one
// that cannot be put on that is marked dead. With a stale epoch, another controller has the rail: all is refused.
//
// # What is not promised
//
// With [Stage], a program that is not the same for all groups of an axis in a stage waits for groups that never ask, until the
// watchdog names them. [Circuit] has no such rule.
package controller
