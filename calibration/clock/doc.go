// Package clock finds how far the monotonic clock of another machine is from ours, and how
// fast it runs against it, from questions and answers over a network whose delays nobody
// knows.
//
// # What is certain
//
// We ask, the other machine reads its clock once, we have the answer. The reading lies between
// the two, and that is all that is certain: [Exchange.Bound] is as wide as the round trip, and
// its middle is right only if the way there takes as long as the way back. Of a path that is
// always slower in one direction the middle is always wrong by half the difference, and no
// number of exchanges shows it. So nothing here is a number plus an error that was estimated; the
// truth is within the bounds, whatever the delays were, or there is an error.
//
// # The line
//
// A clock that runs at one rate is ahead of ours by a + b·t. An exchange says that this
// line is not above (sent, its - sent) and not below (received, its - received): two
// half-planes of (a, b), without any approximation. [Fit] cuts the polygon of all lines that no
// exchange contradicts, and what it reports is read from that: the least and the most that the
// offset can be at any time, the slowest and the fastest rate, and as the line for people the one
// in the middle of the polygon. This is the method of Duda and others (1987) and of Moon, Skelly
// and Towsley (INFOCOM 1999), with the whole polygon in place of its lowest line.
//
// Exchanges come in batches, before, during and after what they are for. In a batch of 64
// the quickest tells nearly all; many batches, far apart, tell the rate.
//
// # Clocks that do not run at one rate
//
// If there is no such line, the clock has stepped, or changed its rate: [Fit] refuses, and says
// between which batches and by how much at least. A machine that was suspended looks the same,
// since its monotonic clock stood still. A change of rate so small that a line still fits within
// the bounds is not seen: [Result.Bounds] are then off by as much as the bounds of a batch are
// wide, at most, and those of a [Summary], which stand for their batch alone, hold all the same.
// Outside of the batches nothing is known of the rate but what clocks do: the bounds of
// [Result.At] widen there by [DefaultDrift].
//
// # Time
//
// Times are nanoseconds on the axis of this machine (timeline.HostAxis). Offsets are its clock
// minus ours, as in package watch. On Linux the axis is the machine's CLOCK_MONOTONIC, which
// begins anew with every boot: see [Result.Rebooted].
//
// The package has no state; all functions may be called from several goroutines at once.
package clock
