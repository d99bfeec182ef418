// Package ocs is the ground floor of ocslab: the words and the contract that
// every optical circuit switch (OCS) is spoken of and driven with.
//
// An OCS joins one ingress port to one egress port with light. What it holds
// at a moment is a [Map]: a set of [CrossConnect] in which every ingress and
// every egress appears at most once. A [Change] takes one map to another and
// has an inverse. A [Switch] is anything that can be asked for its map and
// told to apply a change; what only some devices can do is a second, small
// interface found with [As].
//
//	want, err := ocs.ParseMap("1-4>33-36,7>40")
//	...
//	report, err := ocs.Reconcile(ctx, sw, want, ocs.Safe)
//
// [Reconcile] is how people change circuits: it reads the device, refuses or
// takes over busy ports by [Policy], touches only what differs, reads back and
// compares. A wrong light path is never reported as success, and an
// acknowledgement is never taken for light: see [Receipt].
//
// The package uses the standard library only and imports nothing of the
// project.
package ocs
