// Package proto is the wire protocol of the Opus control plane: between the shim of a rank and
// the controller of its job, and between the controller and the orchestrator of a rail.
//
// A connection is a TCP stream (with TCP_NODELAY), or TLS over one. Each message is a frame: its
// length as four bytes, the highest first, and that many bytes of one JSON object in UTF-8. Its "kind" says which
// message it is; the others of its keys are in the type of that name here. Keys that a reader does not know
// are ignored, so that either side may be newer; a kind that it does not know is an error, as is a
// frame of more than [MaxFrame] bytes. Integers in nanoseconds are named …_ns, and are on the monotonic clock
// of the host of the sender.
//
//	shim                                controller                           orchestrator of a rail
//	 │ hello (job, rank, what it holds) ──►│ open (job, controller) ────────────►│
//	 │◄── welcome (epoch)                  │◄── opened (epoch, generation, circuits) │
//	 │ join-group ... ────────────────────►│                                     │
//	 │◄── group-ok, when all have joined   │                                     │
//	 │ topo-write (group, op) ────────────►│ waits for the others of the group   │
//	 │                                     │ apply (digits or circuits) ────────►│ disconnect, connect, read back
//	 │◄── topo-ack, or topo-nack           │◄── applied, or failed               │
//	 │ release ───────────────────────────►│                                     │
//	 │◄── fallback, resume                 │ giant ─────────────────────────────►│ the ring through all ranks
//
// # Rules
//
// A connection begins with hello or open; anything else first is answered by bye. Acknowledgements
// of one rank come in the order of its requests. A topo-write that is repeated, the same rank, group,
// op and mode, is answered with the result that it had. A request that carries an epoch which is no longer
// that of the controller or the rail is refused as stale and has no effect. A shim that gets no
// acknowledgement does not run the operation: it fails closed.
//
// # Deviations from the paper
//
// The paper names three fields of topo_write. Here an acknowledgement of mode [Provision] is a
// promise about circuits, not the leave to run: a prediction can be wrong, and what is wrong must not
// be able to stop a job. The leave is that of mode [Demand], which costs one round trip when the circuits
// are there. [Release] says at once that a rank no longer uses circuits; the paper infers it from the
// rank's next request, which may be seconds away.
package proto
