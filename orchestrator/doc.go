// Package orchestrator runs the Opus control plane of a training job on a lab: an orchestrator for each
// rail (package rail), the controller of the job (package controller), and one listener for both.
//
//	s, err := orchestrator.Open(ctx, orchestrator.Options{Lab: l, Job: job, StateDir: dir})
//	...
//	go s.Serve(ctx, listener)   // shims (package shim) and controllers of other hosts
//	...
//	err = s.Close(ctx)
//
// # The way of a collective
//
//	rank ──► shim.PreOp ──topo-write──► controller ── all members of the group have asked, nobody holds
//	 │         │  table of phases         │           what would go: apply ──► rail ──► driver ──► switch
//	 │         │◄──────── topo-ack ───────┘◄── done, read back ◄────────────────┘
//	 ├── the collective runs
//	 └──► shim.PostOp: the phase ends here: ask for the next at once (provision)
//
// What is on a rail's ports is the rail's to say: after a controller has died, the next one goes on from there.
// What a rank may use is the controller's to say, and nobody else's. See package proto for the rules of the
// wire, which another implementation could speak.
//
// # While it runs
//
// The ports of the job are leased (package lease): other commands of this machine are refused them. A panic
// (package blackout) darkens them all the same, and stops further changes.
//
// # Afterwards
//
// What was on the ports before is in the history, so undo brings it back; with Options.Restore, Close does.
package orchestrator
