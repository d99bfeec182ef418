// Package interposer drives the MZI mesh of a photonic interposer: circuits are routed, the mesh is set, and what it
// is set to is read back and the light followed.
//
//	d, err := interposer.Emulate(emulated)                // or anything else that is a Device
//	b, err := interposer.New(d, interposer.Options{Wavelengths: 1})
//	r, err := b.Bring(ctx, requests)                      // routed strictly, set, read back, traced, and seen
//
// # What is believed
//
// A routing is not: [mesh.Mesh.Check], which shares nothing with the router, follows the light from every source through the
// states that were read back. The states are not, either: the receivers have to see the power that is left after so
// many MZIs. What comes out wrong has a cause. An MZI that reads back another state than it was sent to is stuck. One
// that reads back what it should, while the light is gone, is found by taps: a receiver is put on the circuit's way, in the
// middle of what is left in question, until light comes to one end of an MZI and not to the other. Then the circuits are
// routed around it, or through it as it is, and that again until all is right, or until the router proves that there is no way or
// finds none.
//
// # Time
//
// An MZI's heater takes microseconds, which no timer of an operating system resolves: the phases are read without a pause at
// first. Switching is an interval: at least until the last reading in which something moved, at most until
// the first in which nothing did.
//
// The interposer and the routing are those of "PCCL: Photonic circuit-switched collective communication for distributed
// ML", arXiv 2509.15450, section 4.2; the reading back is ours. A mesh is no ocs.Switch, as it has no fixed ports:
// circuits begin and end at any of its nodes.
package interposer
