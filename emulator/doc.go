// Package emulator is an optical circuit switch in software: the device behind
// the wire protocols. Front ends (tl1server and its siblings) speak for it.
//
// A [Device] has a matrix, optics, monitors, users and a memory that survives
// a restart. How it behaves is a [Personality], loaded from a file. It does
// nothing while nobody asks: light is a function of time, evaluated when it is
// measured, so a thousand idle switches cost their memory and no more.
//
// Everything drawn at random (insertion loss, monitor error, switching jitter)
// follows from name and seed, from release to release: the same seed and the same order of commands give
// the same device. Reading a monitor has no influence on how the mirrors move.
// Time is the local clock, also under testing/synctest.
//
// What the device really did, and when, is in its truth log in the words of
// package timeline: [Device.Truth]. A tool that measures the device can so
// state its own error.
//
// # Light
//
// A cross-connect that is made or moved goes dark at once, and its power then
// approaches the new level exponentially so that it stays within 0.5 dB from
// the switching time on. A shutter or a source acts at once, also while the
// mirrors move. The monitors report the mean power (in mW) over their averaging
// time, plus a fixed error per monitor and noise per reading. What a real device
// does during the move differs from model to model; no public measurement was
// found, which is one of the uses of this tool.
//
// What is bad inside a switch, a dirty connector or a poor path, is a loss between its
// ingress and its egress monitors: of the personality, or planted while it runs with
// [Device.SetPortLoss] and [Device.SetPathLoss]. What is bad outside changes the light that
// enters: [Device.SetInput].
//
// Alarms look at the monitors when something has changed and the averaging time
// has passed. Thresholds and shutter programmes are not in the memory: they are
// gone after a restart of the program.
package emulator
