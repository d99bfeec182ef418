// Package wiring finds out by light which NIC hangs on which ports of the lab's switches,
// so that a lab file need not be believed.
//
// # Receive fibres
//
// Every egress port that may be used gets a word of n bits, and each of n steps lights exactly
// the ports whose bit is 1. What the module of a NIC sees in the steps is the word of the port
// that it hangs on. All words have the same number of ones, so light that is lost in some
// steps, or gained in some, never makes one word of another, and neither does any single error.
// No word is all zeros or all ones: a fibre that is dead and one that sees light which nobody
// switches are told from every port. 32 ports take 7 steps where a plain binary number would
// take 5; the two are what the check costs.
//
// A reading that is neither clearly light nor clearly dark, or that changed within a step, is
// taken once more; if it stays so the bit is unknown, and the NIC is placed nowhere.
//
// Then every NIC that was found is lit once more, all at the same time, which must agree, and
// shows what its receive fibre loses: egress monitor less received power, against its peers.
//
// # Transmit fibres
//
// Light does not say who sent it, so the NICs do: each that has a carrier sends frames with its
// name, and whoever hears them is on a port that is known by now. Without a carrier a NIC cannot
// speak; its transmit fibre is told by elimination if only one is left for it, and is
// marked so.
//
// # What is claimed and what is not
//
// A [Fibre] that says where it is has been seen there. Everything else says what is known: the
// raw bits, the ports that are left, and why no more can be said.
package wiring
