// Package plane carries the bytes of the operations that simulated ranks play: it stands where NICs and the
// collective library of a real job would.
//
// [Emulated] is a model. An operation begins when the last of its members has joined, lasts as long as the
// trace says for the circuits there are, and ends for all at once. Its bytes get through only while every
// circuit that it needs has settled light in the emulated switch, as the switch itself tells, and the rest is
// counted as lost: so that an operation on circuits that are being changed is seen, and not assumed away.
//
// [Packets] sends datagrams between real network devices (package fabric), along the same circuits, and repeats what is
// not acknowledged: it stalls while the light is gone or the firmware of a NIC brings its link up, as RDMA
// would.
//
// [Serve] and [Dial] lend a plane to ranks in other processes of the same host.
//
// # What is measured
//
// How long an operation takes in Emulated is arithmetic, not measurement: begin and end of an [Outcome] are computed, and a
// process that wakes up late does not make an operation longer. Which circuits had light, and when, is what the switch did.
// Instants are nanoseconds on the axis of the host (timeline.HostAxis), which all processes of a host share on Linux.
package plane
