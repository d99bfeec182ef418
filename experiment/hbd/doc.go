// Package hbd runs InfiniteHBD on a lab: the OCSTrx bundles of a line of nodes (package topology/infinitehbd) are brought
// to the states of a plan, the rings of GPUs are walked by their light, a node that dies is found and bypassed.
//
//	text, err := hbd.LabFile(line, hbd.LabOptions{Seed: 1})  // an emulated lab for the line
//	line, err := hbd.LineOf(file, layout)                    // and back
//	d, err := hbd.New(lab, line)
//	report, err := d.Bring(ctx, nil, plan, hbd.Options{})    // program, read back
//	walk, err := d.Walk(ctx)                                 // rings, from light alone
//	verdict, err := d.Detect(ctx, hbd.DetectOptions{})       // until something fails
//
// # Names
//
// Each bundle is a switch of the lab: n06-r is bundle R of node 6, n12-l2 bundle L2 of node 12. The lab's cables join
// fibre 1 or 2 of one bundle to one of another, lane to lane. In every module lanes 1 to 4 belong to the upper GPU and
// lanes 5 to 8 to the lower, so a loop takes lane 1 to the receiver of lane 5 and back.
//
// # Order
//
// Bundles of a group, and those at the two ends of a cable that comes or goes, switch together: every board is armed,
// with paths and loops, and only when all are does any of them switch (the rendezvous of package ocs). If one cannot be
// armed, none of them does. What has nothing to do with each other does not wait for each other. Within a module the
// light goes before it comes. A cable of which one end is on the path and the other is not is half open; that this
// certainly lasts longer than the settle window is an alarm in the report. (Loops might follow when
// the paths are there; with them at once a ring is back sooner, and no cable is half open for as long as arming takes.)
//
// # What is believed
//
// Nothing of the plan: [Domain.Walk] takes what each module says of its paths, the power at its taps, and the power that
// arrives from the other end, and follows that from GPU to GPU. That the cables lead where the lab file says is
// checked by [Domain.CheckCables], which lights lanes in a pattern that tells each of them by who receives what.
//
// InfiniteHBD is "InfiniteHBD: Building Datacenter-Scale High-Bandwidth Domain for LLM with Optical Circuit Switching
// Transceivers", arXiv 2502.03885. The walk, the check of cables, the detector and the half-open alarm are ours.
package hbd
