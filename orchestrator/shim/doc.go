// Package shim is what runs beside each rank: it sees every operation that the rank issues, knows where the rank goes
// over from one dimension of parallelism to another, and asks the controller for the circuits.
//
//	s, err := shim.Dial(ctx, shim.Options{Dial: dial, Job: job, Rail: "rail0", Rank: 3})
//	for range steps {
//		for op := range ops {
//			if _, err := s.PreOp(ctx, op); err != nil {
//				return err // the operation must not run
//			}
//			run(op)
//			s.PostOp(op)
//		}
//		s.Step(ctx)
//	}
//
// Whoever binds a real backend calls [Hooks].
//
// # Leave to run
//
// An operation runs on the rail only if the controller has acknowledged a demand for it, or if the rank still holds
// the circuits that it was granted for an earlier operation of the same phase. Everything else (a refusal, no answer,
// no connection, an answer that makes no sense) is an error of PreOp: the shim fails closed. What the shim predicts
// has no part in this. A prediction only has circuits moved earlier; the demand for them is sent all the same, right
// behind it if need be, since answers come in order.
//
// Transfers of the pipeline ask one by one, even when nothing seems to change: the peer may have been elsewhere in
// between.
//
// # Learning
//
// For the first steps the shim asks for every operation, and takes down which come. Phases are then the longest runs
// of operations of one axis. A step is a period: operations are counted from its beginning, and no phase goes on into
// the next one.
//
// A member of a group that sees a boundary waits for all others, so all must see the same boundaries. Therefore the
// ranks exchange them, after the same step, and each goes by the union. A rank whose last three steps were not alike
// declares every operation to be a boundary: so its groups go on as if profiling, with everybody knowing. The exchange
// is repeated after as many steps again as the profiling took, so that a schedule that has changed is learnt again, at
// the same step everywhere; nobody waits then unless somebody is more than a step behind. Who asks is in this way a
// function of the group's own count of operations, never of timing.
//
// Between a change of the schedule and the next exchange the old boundaries hold. Operations that come unexpected are
// asked for unless the rank holds their circuits; the prediction that was wrong is withdrawn; after [MaxMisses] of
// them there are no more until the next exchange. Members of one group must then change in the same way, as those of
// one pipeline stage do: if one puts a transfer in the middle of what another still takes for a phase, then both wait,
// until the controller refuses.
//
// # Lost connections
//
// The shim connects again by itself, tells the controller what the rank holds, sends its last table once more, since a
// controller that has started anew knows none, and repeats the demand that had no answer; operations wait for that as
// long as for an answer. While there is no connection none begins, not even in the
// middle of a phase, since the controller may have given up on the rank. A controller that no longer honours what
// hello says is held must refuse hello by bye. An answer that does not come in time, or a context that ends while one
// is waited for, ends the connection, so that both sides know again where they are.
//
// # Source
//
// The procedures are those of "Photonic Rails in ML Datacenters with Opus", arXiv 2602.12521, as far as its text
// has them; the exchange of boundaries, the answer to mispredictions and the refusal to run without an answer are ours.
package shim
